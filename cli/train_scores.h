/* The held-out scores of a run so far, and what follows from them: which was best, and how long nothing was gained. They are
 * kept in OUT.scores, as doc/file-format.md says. */
#ifndef EXPHIL_CLI_TRAIN_SCORES_H
#define EXPHIL_CLI_TRAIN_SCORES_H

#include <exphil/exphil.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the best weights are chosen by. Of nll, loss, alone and unexplained less is better. */
typedef enum score_metric {
    SCORE_NLL,
    SCORE_LOSS,
    SCORE_EXACT,
    SCORE_CHANGE,
    SCORE_ALONE,
    SCORE_UNEXPLAINED,
    SCORE_METRICS
} score_metric;
extern const char *const score_names[SCORE_METRICS];

/* NaN where it was not measured, or was not finite. */
typedef struct held_score {
    int64_t update;
    double of[SCORE_METRICS];
} held_score;

/* What was scored must stay the same for scores to be compared, also when a run is made longer: most_frames (0: all that is
 * held out) decides which games, alone_frames the part of them that is measured alone. */
typedef struct train_scores {
    held_score *at; /* by update, each once */
    size_t count, capacity;
    int64_t *checkpoints; /* updates of the numbered checkpoints that this run wrote and has not removed */
    size_t checkpoint_count;
    int64_t updates, most_frames, frames, alone_frames;
    score_metric metric;
} train_scores;

/* What follows from scores. */
typedef struct standing {
    const held_score *best, *last; /* NULL: there is none */
    int64_t without_gain;          /* scores since the last gain */
} standing;

held_score score_of(int64_t update, const exphil_report *report);
/* Behind the last one; false: no memory, said on stderr. */
bool scores_add(train_scores *s, const held_score *one);
bool scores_have(const train_scores *s, int64_t update);
/* A gain: better than at the last gain by more than this share. */
standing scores_stand(const train_scores *s, double least_gain);
bool scores_keep_checkpoint(train_scores *s, int64_t update);
void scores_drop_checkpoint(train_scores *s, size_t index);
void scores_free(train_scores *s);

/* Whole or not at all; false with a message. */
bool scores_write(const train_scores *s, const char *path);
/* *there: there is such a file. Scores of updates beyond this one are left out: the run that goes on makes them again.
 * False with a message: it cannot be used. */
bool scores_read(train_scores *s, const char *path, int64_t updates, bool *there);

#endif
