/* What the tests of training share: a small made-up task, and everything a run needs under one roof. */
#ifndef EXPHIL_TRAIN_CASE_H
#define EXPHIL_TRAIN_CASE_H

#include "model_case.h"

#include "train/train.h"

/* A run as it will be made; train_plan_of fills in small defaults, the caller changes what it wants. */
typedef struct train_plan {
    exphil_model_config model;
    exphil_sampling sampling; /* mode, delay, slots and window come from the model */
    exphil_optimizer_config adam;
    exphil_trainer_config trainer;
    int64_t episodes;
    int32_t threads;
    const char *isa;                   /* NULL: the best there is */
    const char *device, *backend_path; /* NULL: the CPU */
    bool by_hand;                      /* no prefetcher: batches are given */
    test_memory *memory;
    test_io *io;
    exphil_cancel_fn cancel;
    void *cancel_user;
    exphil_log_fn log;
    void *log_user;
    exphil_log_level log_level;
} train_plan;
train_plan train_plan_of(const char *blocks, int32_t mode);

typedef struct train_run {
    exphil_context *context;
    exphil_dataset *dataset;
    exphil_model *model;
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
} train_run;
/* Fails the test when any part cannot be made. */
train_run train_begin(const train_plan *plan);
void train_end(train_run *run);
/* So many updates, none of which may fail; the metrics of the last. */
exphil_metrics train_steps(train_run *run, int64_t updates);

/* Episodes of 41, 54, 67, ... frames of model_case_spec. Buttons and stick follow from the frame, the trigger from the frame
 * before: something to learn for any block, and something only for those with memory. */
exphil_dataset *train_dataset(exphil_context *context, int64_t episodes);
void train_row(int64_t episode, int64_t t, float *floats, int32_t *ids, int32_t *action);
int64_t train_episode_frames(int64_t episode);
/* Gives a condition a value in every episode: train_value. train_begin does it for those of the plan's model. */
void train_tell(exphil_dataset *dataset, const exphil_condition_spec *condition);
int32_t train_value(int64_t episode, const exphil_condition_spec *condition);

/* A batch of the host's own, of rows of the task with resets at the start of each lane; conditions, and the delay, are 1.
 * Freed with train_batch_free. */
exphil_batch train_batch(const exphil_model *model, int64_t batch, int64_t time, int64_t first_episode);
void train_batch_free(exphil_batch *batch);

/* Everything that an update changes, as one piece of memory: weights, moments, average, carried state, counters. */
unsigned char *train_snapshot(const exphil_trainer *trainer, size_t *bytes);

#endif
