/* Players and learners as if in processes of their own: runs with contexts of their own, and blocks and weights that go between
 * them as bytes. */
#ifndef EXPHIL_BLOCK_CASE_H
#define EXPHIL_BLOCK_CASE_H

#include "learn_case.h"

#include <exphil/blocks.h>

/* The full chunk of a run, in malloc'ed memory of just its size. */
unsigned char *block_of(const learn_run *player, size_t *bytes);
/* The same, taken as streams from first on by another run. */
exphil_status block_give(const learn_run *player, learn_run *learner, int64_t first);
/* What the learner has now is what the player plays from here on. */
void block_return(const learn_run *learner, learn_run *player);
/* One update; fails the test when it fails. */
exphil_learner_metrics block_learn(learn_run *learner);
/* A block's hash anew, after it was changed. */
void block_forge(unsigned char *block, size_t bytes);

#endif
