/*
 * libexphil - ranks.h: training by several processes together, each a rank.
 * SPDX-License-Identifier: MIT
 *
 * The rules of exphil.h hold. Letters: P ranks, numbered r = 0..P-1; B lanes of the joint batch
 * (exphil_sampling.batch); T frames of a chunk.
 *
 * All ranks have the same dataset and, but for their lanes, the same sampling: one order of one joint batch. Each fills and
 * computes its own lanes alone, and EXPHIL_REDUCTION_SUMS makes the update that of the joint batch:
 *   exphil_rank_lanes(B, r, P, &sampling.first_lane, &sampling.lane_count, &error), exphil_prefetcher_create,
 *   exphil_trainer_create with an exphil_communicator of this rank and reduction EXPHIL_REDUCTION_SUMS
 *
 * Calls of all ranks. With EXPHIL_REDUCTION_SUMS these are made by all ranks, in the same order: exphil_trainer_create, step,
 * step_batch, backward, save, resume, and agree below. Each begins with a meeting: ranks say what they are about to do, or
 * that they cannot. So one of these holds for all of them:
 *   all go on;
 *   a rank failed before (a damaged file, no memory, cancelled by its host, another argument): it returns its own status, the
 *     others EXPHIL_E_IO, whose message names the rank and its status (EXPHIL_E_CANCELLED where it was cancelled);
 *   ranks do different things, or are at different places: EXPHIL_E_MISMATCH on all of them, which names both;
 *   the communicator failed: EXPHIL_E_IO.
 * After each of them weights, moments, carried state and place are as they were before the call: an update may be tried again,
 * a run goes on from its checkpoint, with as many ranks as there are then. What ranks do not hear of is a rank that makes no
 * call, and a device that failed after the gradients were added up (EXPHIL_E_DEVICE): they wait as long as the communicator
 * does.
 *
 * exphil_trainer_create compares: version of the library, kind of processor, model, weights, moments, losses, settings of
 * optimizer, trainer and sampling, content of the dataset, conditions, weights of rows, lanes (which must be those of
 * exphil_rank_lanes). EXPHIL_E_MISMATCH on all ranks names the first rank that differs from rank 0, and in what.
 *
 * all_reduce is called several times an update: with ranks * 24 doubles for each batch and once more for the losses, then
 * with all gradients. Communicators must add doubles. Metrics are those of the joint batch: loss, norm and frames are the same
 * on all ranks. The update differs from that of one rank with all lanes by rounding alone, for sums are taken in another
 * order; it is the same on all ranks, to the bit, and from run to run.
 *
 * Checkpoints. exphil_trainer_save: the state of all lanes comes together, rank 0 writes both files as one rank would, the
 * others wait; path of the others is not used. exphil_trainer_resume: rank 0 reads, the others get what it read; a file may be
 * of any number of ranks, of one, and of 0.1. So ranks need no disk that they share.
 *
 * What belongs to the lanes of a rank: the rows of exphil_batch and exphil_batch.frames ([lanes, T]), the trainer's shape
 * (lanes x T), its activations, its carried state ([lanes, state]). What belongs to the joint batch: exphil_sampling.batch, the
 * order of an epoch, batches per epoch, the place of a batch (epoch, index; exphil_prefetcher_seek), frames per epoch, the
 * state in a checkpoint. All that is drawn (order, mirror, drop_past, own_past, masks of conditions, delays) is a function of
 * the seed and of what a row is of: with any number of ranks it is what it is with one. Batches of the host's own
 * (exphil_trainer_step_batch) may have other numbers of lanes on each rank; they are numbered in the order of the ranks.
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

/* Most numbers of exphil_trainer_agree. */
#define EXPHIL_AGREE_MOST 16

/* A call of all ranks: each number becomes the largest that a rank gives. What a clock, a signal or a file says on one rank
 * (stop now, save now; as 0 and 1) so becomes what all do. count: 1..EXPHIL_AGREE_MOST; no number may be NaN or infinite. With
 * one rank, or without EXPHIL_REDUCTION_SUMS, numbers stay as they are. Errors as above; numbers are then as before. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_agree(exphil_trainer *trainer, double *numbers,
                                                               int64_t count, exphil_error *error);

/* Other ranks for a trainer that goes on: some are gone, more have come. A call of all ranks of the new communicator, which is
 * used for it: old ranks with trainers that have made the same updates, new ones with trainers that resumed them. prefetcher:
 * this rank's lanes of the same data, with the same sampling otherwise; it stands where the trainer stands afterwards. Carried
 * state goes with its lanes; that of lanes which no rank has starts from zero, and is logged. The trainer then lets go of its
 * old communicator and prefetcher.
 * EXPHIL_E_STATE: reduction is not EXPHIL_REDUCTION_SUMS. EXPHIL_E_UNSUPPORTED: it has no prefetcher; save and resume instead.
 * EXPHIL_E_MISMATCH and EXPHIL_E_IO as above: the trainer is then as before the call. After EXPHIL_E_MEMORY, of the new shape,
 * it may be saved, or the call made again. */
EXPHIL_API EXPHIL_NODISCARD exphil_status
exphil_trainer_set_communicator(exphil_trainer *trainer, const exphil_communicator *communicator,
                                exphil_prefetcher *prefetcher, exphil_error *error);

#ifdef __cplusplus
}
#endif
#endif
