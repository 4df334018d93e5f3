/* What a policy makes of a world: episodes that all begin at once, and all count. */
#ifndef EXPHIL_CLI_LEARN_SCORE_H
#define EXPHIL_CLI_LEARN_SCORE_H

#include <exphil/learn.h>

#include <stdbool.h>

/* Means over the episodes of the first seat. */
typedef struct learn_score {
    int64_t episodes;
    double mean, deviation, least, most; /* of their returns */
    double frames;
} learn_score;

/* A score of a run under way: the mean return, or against its start the share of games, with an interval. */
typedef struct learn_score_line {
    int64_t update;
    double score, low, high;
} learn_score_line;

enum { SCORE_MOST = 128 };
/* One episode in each lane of this world, at most SCORE_MOST, whose starts follow from seed. likeliest: the most likely actions,
 * else drawn ones. False: said on stderr. */
bool learn_score_of(const exphil_world *world, const exphil_model *model, uint64_t seed, bool likeliest,
                    learn_score *score);

#endif
