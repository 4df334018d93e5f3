/* Private to lib/data: how much rows count, as a host says it by game, port and frame (row_weights.c). */
#ifndef XPH_DATA_ROW_WEIGHTS_H
#define XPH_DATA_ROW_WEIGHTS_H

#include "data/dataset.h"

/* Shared by counted references between a dataset, its snapshots and its splits. NULL: all rows weigh 1. */
typedef struct xph_row_weights xph_row_weights;
xph_row_weights *xph_row_weights_retain(xph_row_weights *weights);
void xph_row_weights_release(xph_row_weights *weights);

/* As exphil_dataset_weight says; *weights becomes another one when others share it. On failure nothing changed. */
exphil_status xph_row_weights_set(exphil_context *context, xph_row_weights **weights, uint64_t game,
                                  int32_t port, int32_t first, int32_t last, float weight,
                                  exphil_error *error);

/* Does any row weigh other than 1? */
bool xph_row_weights_any(const xph_row_weights *weights);
/* How many rows of an episode from row t on, but not from row end on, weigh the same, and what. One look into a table and a
 * binary search among the ranges of a game. */
int64_t xph_row_weights_run(const xph_row_weights *weights, const xph_episode *episode, int64_t t,
                            int64_t end, float *weight);

#endif
