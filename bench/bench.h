/* The subjects of `exphil bench`. Each fills a report; false: something that must not fail did, said on stderr. */
#ifndef EXPHIL_BENCH_BENCH_H
#define EXPHIL_BENCH_BENCH_H

#include "report.h"

#include <exphil/exphil.h>

typedef struct bench_options {
    const char *isa;      /* at most; NULL: the best */
    const char *replays;  /* folder of .slp; NULL: none */
    const char *folder;   /* for files made on the way; NULL: the system's */
    const char *large;    /* data: where the corpus of many games stays; NULL: it is removed */
    int64_t large_frames; /* data: of that corpus; 0: by effort */
    const char *weights;  /* step, tune, ranks: file of a policy; NULL: drawn ones of usual shapes */
    int64_t threads;      /* of training and kernels; 0: one after the other 1 and 2 for training, else 1 */
    double effort;        /* 1: as documented; less: shorter */
    bool quick;           /* everything once, for a look whether it works */
    const char *device;   /* train: of a context; NULL: the CPU */
    int64_t precision;    /* train: EXPHIL_PRECISION_... */
    bool roofline;        /* train: every operation of an update */
    const char *choices;  /* tune: the file */
    void (*opened)(exphil_context *context); /* train: called with every context that is made; or NULL */
    bool candidates;                         /* kernels: all that accept, not only the one that is chosen */
    int filters;                             /* only rows whose subject, what or how holds one of these */
    char **filter;
    uint64_t memory_limit;                   /* train: of the device; 0: none */
    const exphil_communicator *communicator; /* ranks: of this one; NULL: there are none */
    int64_t batch, time; /* ranks, tune of weights: lanes of each rank, frames of a chunk */
    bench_floors floors;
} bench_options;

/* Was it requested? */
bool bench_wanted(const bench_options *options, const char *subject, const char *what);
/* Where files go that are made on the way. */
const char *bench_folder(const bench_options *options);
/* Rounds and time scaled by the options. */
bench_effort bench_effort_of(const bench_options *options);

bool bench_kernels(bench_report *report, const bench_options *options);
bool bench_step(bench_report *report, const bench_options *options);
bool bench_host(bench_report *report, const bench_options *options);
bool bench_train(bench_report *report, const bench_options *options);
bool bench_tune(bench_report *report, const bench_options *options);
bool bench_roofline(bench_report *report, const bench_options *options);
/* By all ranks; each has options and report of its own. */
bool bench_ranks(bench_report *report, const bench_options *options);
bool bench_data(bench_report *report, const bench_options *options);

#endif
