/* What the tests of learners behind a live game share: a person who plays by a rule, and a game of random rows. */
#ifndef EXPHIL_LIVE_CASE_H
#define EXPHIL_LIVE_CASE_H

#include "learn_case.h"

#include <exphil/live.h>

enum { LIVE_SEEN = 8 }; /* rows that a person remembers */

/* The person sees each row and acts by the one `delay` frames ago, as a policy with this delay can. */
typedef struct live_person {
    xph_rng rng;
    int32_t seen[LIVE_SEEN][2]; /* ids, the newest first */
    int32_t delay;
    int64_t frame;
} live_person;
live_person live_person_of(uint64_t seed, int32_t delay);
/* The next row, and what the person presses in its frame. */
void live_person_look(live_person *person, float *floats, int32_t *ids, int32_t *action);
/* An episode begins: what was seen before is nothing to go by. */
void live_person_begins(live_person *person);

/* Plays frames; the person has the pad in the first `on` of every `of` frames; an episode ends every `episode` frames. Adds what
 * was played to *hash. Fails the test when a call fails. */
typedef struct live_plan {
    int64_t frames, on, of, episode;
    int64_t settle; /* every so many frames; 0: never */
} live_plan;
void live_play(exphil_live *live, live_person *person, const live_plan *plan, uint64_t *hash);
/* Share of frames in which the policy's likeliest stick is the person's, of a fresh session. */
double live_agreement(const exphil_model *model, uint64_t seed, int64_t frames);
uint64_t live_weights(exphil_live *live); /* hash of the newest */
exphil_live_info live_info(const exphil_live *live);

/* A model with a value head, and a learner behind it by the configurations that stand here: pieces of 50 frames, 6 updates each. */
typedef struct live_bench {
    exphil_context *context;
    exphil_model *model;
    exphil_live_config config;
    exphil_session_config session;
    exphil_context_config learning;
    exphil_sampling sampling;
    exphil_optimizer_config optimizer;
} live_bench;
void live_bench_make(live_bench *b, const char *blocks, int32_t delay);
void live_bench_free(live_bench *b);
exphil_live *live_bench_live(const live_bench *b); /* fails the test where it cannot be made */

#endif
