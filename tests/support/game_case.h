/* What tests of games share: replays to try, and whether two are the same. */
#ifndef EXPHIL_GAME_CASE_H
#define EXPHIL_GAME_CASE_H

#include "context_case.h"
#include "slp_writer.h"

#include <exphil/slp.h>

/* The same dumps, and what a policy sees from every port. */
void assert_same_replay(const exphil_slp *a, const exphil_slp *b);

/* Right after slp_head of a newest layout: a seed of its own and no match id, so that games are of different matches. */
void game_seed(slp_writer *writer, uint8_t seed);

/* 23 frames of three characters with items; slp_free ends the writer's life. */
exphil_slp *game_small(slp_writer *writer);

/* Calls fn for every real replay that can be read; false, after saying so loudly: there are none here. */
bool game_each_real(void (*fn)(const char *path, exphil_slp *slp, void *arg), void *arg);

#endif
