/*
 * libexphil - ranks.h: training by several processes together, each a rank.
 * SPDX-License-Identifier: MIT
 *
 * The rules of exphil.h hold. Letters: P ranks, numbered r = 0..P-1; B lanes of the joint batch
 * (exphil_sampling.batch); T frames of a chunk.
 *
 * All ranks have the same dataset and, but for their lanes, the same sampling: one order of one joint batch. Each fills and
 * computes its own lanes alone:
 *   exphil_rank_lanes(B, r, P, &sampling.first_lane, &sampling.lane_count, &error), exphil_prefetcher_create,
 *   exphil_trainer_create with an exphil_communicator of this rank
 *
 * What belongs to the lanes of a rank: the rows of exphil_batch and exphil_batch.frames ([lanes, T]), the trainer's shape
 * (lanes x T), its activations, its carried state ([lanes, state]), and so the state in its checkpoint: a rank goes on from a
 * checkpoint of its own lanes. What belongs to the joint batch: exphil_sampling.batch, the order of an epoch, batches per
 * epoch, the place of a batch (epoch, index; exphil_prefetcher_seek), frames per epoch. All that is drawn (order, mirror,
 * drop_past, masks of conditions, delays) is a function of the seed and of what a row is of: with any number of ranks
 * it is what it is with one.
 *
 * A rank reads what its own lanes need. In window mode with shuffle_frames the windows of a group are dealt to all lanes: every
 * rank then makes all rows of the group from its games, and holds them.
 */
#ifndef EXPHIL_RANKS_H
#define EXPHIL_RANKS_H

#include <exphil/exphil.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The lanes of rank r of P: from floor(r*B/P) up to, not including, floor((r+1)*B/P). Every lane belongs to one rank, and ranks
 * have floor(B/P) lanes or one more. batch: B, 1..4096; ranks: P, 1..B; rank: r, 0..P-1. From any thread; allocates
 * nothing. EXPHIL_E_INVALID names the argument. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_rank_lanes(int64_t batch, int32_t rank, int32_t ranks,
                                                            int64_t *first_lane, int64_t *lane_count,
                                                            exphil_error *error);

#ifdef __cplusplus
}
#endif
#endif
