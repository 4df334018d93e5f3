/* What a policy makes of a world: episodes that all begin at once, and all count. */
#ifndef EXPHIL_CLI_LEARN_SCORE_H
#define EXPHIL_CLI_LEARN_SCORE_H

#include <exphil/learn.h>

#include <stdbool.h>

/* Means over the episodes of the first seat. */
typedef struct learn_score {
    double mean, deviation, least, most; /* of their returns */
    double frames;
} learn_score;

enum { SCORE_EPISODES = 100 };
/* 100 fresh episodes of this world, whose starts follow from seed. likeliest: the most likely actions, else drawn ones. False:
 * said on stderr. */
bool learn_score_of(exphil_context *context, const char *world, const exphil_model *model, uint64_t seed,
                    bool likeliest, learn_score *score);

#endif
