/* What the tests of learning from play share: a made-up world, and everything a run needs under one roof. */
#ifndef EXPHIL_LEARN_CASE_H
#define EXPHIL_LEARN_CASE_H

#include "model_case.h"

#include "learn/learn.h"

/* Rows of model_case_spec, random, and so is what they come to; a reward is larger for stick 2. Episodes end by both ways, one
 * frame in 25. In frame fail_at (from 1) a step fails with 7, or gives the reward bad if that is not 0. */
enum { NOISE_LANES = 64 };
typedef struct noise {
    xph_rng rng[NOISE_LANES];
    int32_t fail_at, frames;
    float bad;
} noise;
exphil_world noise_world(noise *n, int64_t lanes);
/* The same with save and load: its games are its random streams. */
exphil_world noise_kept_world(noise *n, int64_t lanes);
void noise_row(noise *n, int64_t lane, float *floats, int32_t *ids);

/* A run as it will be made: learn_plan_of fills in small numbers, the caller changes what it wants. */
typedef struct learn_plan {
    exphil_model_config model;
    exphil_learner_config learner;
    exphil_head_play play[EXPHIL_HEADS_MAX];
    int64_t lanes, time;
    int threads;
    int32_t precision;                 /* of the trainer */
    bool taught;                       /* the model is its own teacher */
    const char *device, *backend_path; /* NULL: the CPU */
    test_memory *memory;
    test_io *io;
    uint64_t seed; /* of the draws; 0 = 5 */
} learn_plan;
learn_plan learn_plan_of(const char *blocks);

typedef struct learn_run {
    exphil_context *context;
    exphil_model *model;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    exphil_rollout *rollout;
    exphil_learner *learner;
} learn_run;
/* Fails the test when any part cannot be made. */
learn_run learn_begin(const learn_plan *plan);
void learn_end(learn_run *run);
/* One chunk; fails the test when it fails. */
exphil_learner_metrics learn_chunk(learn_run *run, const exphil_world *world);
uint64_t learn_weights(const learn_run *run); /* hash */

#endif
