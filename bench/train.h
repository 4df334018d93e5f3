/* Updates of small policies on made-up batches. */
#ifndef EXPHIL_BENCH_TRAIN_H
#define EXPHIL_BENCH_TRAIN_H

#include "bench.h"

#include <exphil/exphil.h>

typedef struct bench_workload {
    const char *name, *blocks;
    int64_t hidden, batch, time;
    double bar_alone, bar_two; /* at most so many times the floor, on one thread and on two */
} bench_workload;

enum { BENCH_WORKLOADS = 5 };
extern const bench_workload bench_workloads[BENCH_WORKLOADS];

/* What is trained on a device; with quick, small. */
enum { BENCH_ROOFLINES = 3 };
bench_workload bench_roofline_workload(const bench_options *options, int i);

typedef struct bench_trainer {
    exphil_context *context;
    exphil_model *model;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    exphil_batch batch;
    int64_t heads;
    double flop, scanned; /* of one update: multiply-adds twice; numbers of the state that scans pass */
    double loss;
    bool failed;
} bench_trainer;

/* What they are trained on; its pointers are static. */
exphil_status bench_train_spec(exphil_spec *spec, exphil_error *error);
/* One for a policy of any kind, in rows that say nothing; a policy of windows has their length for time. Its memory is the
 * harness's. */
exphil_status bench_batch_for(const exphil_model *model, int64_t lanes, int64_t time, exphil_batch *batch,
                              exphil_error *error);
/* Memory of the batch is the harness's. False with a message. */
bool bench_trainer_make(bench_trainer *trainer, const bench_workload *workload, int threads,
                        const bench_options *options);
/* Of the policy of options->weights, in updates of options->batch and time. False with a message. */
bool bench_trainer_load(bench_trainer *trainer, const bench_options *options);
void bench_trainer_end(bench_trainer *trainer);
void bench_trainer_update(void *trainer, int64_t calls);

#endif
