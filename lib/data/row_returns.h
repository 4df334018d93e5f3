/* Private to lib/data: what is still to come for a player of a game, by frame, as a host said it in rewards (row_returns.c). */
#ifndef XPH_DATA_ROW_RETURNS_H
#define XPH_DATA_ROW_RETURNS_H

#include "data/dataset.h"

/* Shared by counted references between a dataset, its snapshots and its splits. NULL: nothing is known. */
typedef struct xph_row_returns xph_row_returns;
xph_row_returns *xph_row_returns_retain(xph_row_returns *returns);
void xph_row_returns_release(xph_row_returns *returns);

/* As exphil_dataset_rewards_set says; *returns becomes another one when others share it. On failure nothing changed. */
exphil_status xph_row_returns_set(exphil_context *context, xph_row_returns **returns, uint64_t game,
                                  int32_t port, int32_t first, const float *rewards, int64_t count, bool over,
                                  double half_life, exphil_error *error);

/* Of rows t to t + count - 1 of an episode, what comes from the frame on in which their actions act, delay frames later; NaN
 * where that is not known. */
void xph_row_returns_get(const xph_row_returns *returns, const xph_episode *episode, int64_t t, int64_t count,
                         int64_t delay, float *to);

#endif
