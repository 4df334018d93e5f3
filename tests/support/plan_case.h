/* What the tests of plans of memory share: twenty-two trainings of different kinds, each planned, made and compared with what it
 * was planned to take; bytes are counted, nothing else. */
#ifndef EXPHIL_PLAN_CASE_H
#define EXPHIL_PLAN_CASE_H

#include "test.h"

#include <exphil/plan.h>

#if defined(EXPHIL_TEST_FEWER) /* each fifth: ten times as slow, and about other mistakes */
enum { PLAN_CASES = 22, PLAN_NEXT = 5 };
#else
enum { PLAN_CASES = 22, PLAN_NEXT = 1 };
#endif
/* Where they run. limit_bytes: of the context. memory: counts what the host allocates; NULL: nobody does. */
typedef struct plan_place {
    const char *device, *backend_path; /* NULL: the CPU */
    test_memory *memory;
    size_t limit_bytes;
} plan_place;

const char *plan_case_name(int number);

/* Bytes of a context's allocator. */
typedef struct plan_count {
    exphil_allocator hook;
    atomic_llong used, most;
} plan_count;

/* A case with the context and the data that it is made on; plan_case_close frees it. */
typedef struct plan_case {
    int number;
    bool gpu;
    plan_count count; /* where the place counts nothing */
    exphil_context *context;
    exphil_dataset *dataset;
    exphil_model *model;
    exphil_model_config model_config;
    exphil_sampling sampling;
    exphil_optimizer_config adam;
    exphil_trainer_config trainer;
} plan_case;
plan_case *plan_case_open(int number, const plan_place *place);
void plan_case_close(plan_case *c);

/* batch 0: that of the case. host_limit: 0: what is free. */
exphil_plan plan_case_plan(const plan_case *c, int64_t batch, uint64_t host_limit);

/* Of updates alone: nothing is scored or saved. */
exphil_plan plan_case_updates(const plan_case *c);

/* What the context held at most, more than before: up to the last update, and in all. */
typedef struct plan_taken {
    uint64_t host, device, host_peak, device_peak;
} plan_taken;
/* Trains for some updates, through an epoch where the data are games, scores and saves. Returns the first status below 0
 * with its message in error. */
exphil_status plan_case_run(plan_case *c, int64_t batch, plan_taken *taken, exphil_error *error);

/* So many lanes go through all of that, twice as many are refused for want of memory. */
void plan_case_fits(plan_case *c, int64_t largest);

/* Both within 10 % of each other; what names them in a failure. */
void assert_planned(const char *name, const char *what, uint64_t planned, uint64_t taken);

#endif
