/* What a run has shown so far: its training loss and its held-out scores, each as a curve of bounded size. */
#ifndef EXPHIL_CLI_HISTORY_H
#define EXPHIL_CLI_HISTORY_H

#include "train_scores.h"

#include <exphil/exphil.h>

#include <jansson.h>
#include <stdbool.h>

enum { HISTORY_MOST = 64 };

/* A held-out score. */
typedef struct history_score {
    int64_t update; /* 0: there is none */
    double loss, nll, accuracy, change_accuracy;
    double alone_nll, alone_accuracy; /* 0 where it was not measured */
    double unexplained;               /* 0 likewise */
    bool alone, valued;
} history_score;

/* Means of the loss over equal numbers of updates: when there is no room, two neighbours become one. A loss that swings
 * with the games at hand is so smoothed by what the run is long. */
typedef struct history {
    int64_t every, filled, count; /* updates of a mean; of the one that is being made; whole ones */
    double sum, loss[HISTORY_MOST];
    double first, peak; /* of single updates */
    int64_t updates;
    int64_t refused;                              /* updates whose loss or gradient was not finite */
    history_score held[HISTORY_MOST], best, last; /* the first of equally good ones */
    int64_t held_count, held_every, held_seen;
    score_metric by; /* what the best is chosen by; set it first */
} history;

/* The nll of a score: alone, where the best is chosen by that. */
double history_nll(const history *of, const history_score *score);
void history_update(history *of, double loss);
void history_held(history *of, int64_t update, const exphil_report *report);
/* The training loss as JSON, exactly, and back: a run that goes on has the curve of one that was never ended. NULL: there is
 * none. */
json_t *history_loss_json(const history *of);
void history_loss_read(history *of, const json_t *json);
/* Held-out scores as JSON, and back from what history_json wrote; what is not such a thing adds nothing. */
json_t *history_json(const history *of);
void history_read(history *of, const json_t *json);
json_t *history_score_json(const history_score *score);
bool history_score_read(const json_t *json, history_score *score);

#endif
