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
 *     others EXPHIL_E_IO, whose message names the rank and its status, and ends with what its own error says, where its host
 *     takes one (EXPHIL_E_CANCELLED where it was cancelled);
 *   ranks do different things, or are at different places: EXPHIL_E_MISMATCH on all of them, which names both;
 *   the communicator failed: EXPHIL_E_IO.
 * After each of them weights, moments, carried state and place are as they were before the call: an update may be tried again,
 * a run goes on from its checkpoint, with as many ranks as there are then. What ranks do not hear of is a rank that makes no
 * call, one whose call is refused before it begins (EXPHIL_E_BUSY, EXPHIL_E_STATE between forward and backward, among more than
 * 64 ranks no memory for the meeting itself, on a GPU none of the device for it), and a device that failed after the gradients
 * were added up, or with a device_communicator after the meeting of the last batch (EXPHIL_E_DEVICE): they wait as long as the
 * communicator does. An update that a device refused (EXPHIL_E_NUMERIC) is refused on all ranks in the same call.
 *
 * exphil_trainer_create compares: version of the library, kind of processor, model, weights, moments, losses, settings of
 * optimizer, trainer and sampling, content of the dataset, conditions, weights of rows, lanes (which must be those of
 * exphil_rank_lanes). EXPHIL_E_MISMATCH on all ranks names the first rank that differs from rank 0, and in what.
 *
 * all_reduce is called several times an update: with ranks * 24 doubles for each batch and once more for the losses, then
 * with all gradients; and with 60 doubles after a meeting in which a rank failed. Of a device_communicator, below, with ranks * 24
 * doubles for each batch, then with all gradients, then with 18 doubles: the losses, and two that say that all is there.
 * Communicators must add doubles. Metrics are those of the joint batch: loss, norm and frames are the same on all ranks. The
 * update differs from that of one rank with all lanes by rounding alone, for sums are taken in another order; it is the same on
 * all ranks, to the bit, and from run to run.
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
 * used for it: old ranks with trainers that have made the same updates, new ones with trainers that resumed them. communicator
 * NULL: this rank alone, without any; it may get others later. prefetcher: this rank's lanes of the same data, with the same
 * sampling otherwise; it stands where the trainer stands afterwards. Carried state goes with its lanes; that of lanes which no
 * rank has starts from zero, and is logged. The trainer then lets go of its old communicator, of either kind, and prefetcher.
 * EXPHIL_E_STATE: reduction is not EXPHIL_REDUCTION_SUMS. EXPHIL_E_UNSUPPORTED: it has no prefetcher; save and resume instead.
 * EXPHIL_E_MISMATCH and EXPHIL_E_IO as above: the trainer is then as before the call, but for a failure when all had agreed:
 * a rank that has no memory for its new shape returns EXPHIL_E_MEMORY, the others EXPHIL_E_IO that names it, and all are of
 * the new ranks. So keep both communicators and prefetchers until a call has succeeded; the trainer may be saved then, or the
 * call made again. Other ranks do not hear of a communicator that is refused with EXPHIL_E_INVALID. */
EXPHIL_API EXPHIL_NODISCARD exphil_status
exphil_trainer_set_communicator(exphil_trainer *trainer, const exphil_communicator *communicator,
                                exphil_prefetcher *prefetcher, exphil_error *error);

/* ---- ranks with a GPU each ---------------------------------------------------------------------------------------- */

/* What exphil_device_communicator.state says. */
enum { EXPHIL_RANKS_OK = 0, EXPHIL_RANKS_FAILED = 1 };

/* exphil_device_communicator.flags. */
enum {
    /* all_reduce may be called while its stream is captured (cudaStreamCaptureModeThreadLocal), once it was called with the
     * same count and type outside of a capture; what was captured is launched any number of times. It may refuse that with a
     * code: it is then called outside of captures as before. A sum that fails is never done before abort is called, neither
     * when it was enqueued nor when it was captured. An update then follows its sum on the device: backward, sum and update
     * are one graph. Without the flag the host waits for the sum and asks state before it goes on: three steps. Bits are the
     * same, and ranks need not have the same flags. */
    EXPHIL_RANKS_CAPTURABLE = 1,
    /* Sums are taken in the order of the ranks, ((0 + 1) + 2) + 3: what a host may want to know. A trainer does not ask. */
    EXPHIL_RANKS_ORDERED = 2
};

/* As exphil_communicator, for memory of the device: pointed to from exphil_trainer_config.device_communicator, in the place of a
 * communicator. A trainer calls it from the thread that calls the trainer, with one stream, in the same order on all ranks; for
 * its meetings too, which are small and are waited for. A call of step returns when its update is done, and metrics are its own.
 * A sum that failed leaves everything as it was before the call. Where it failed on one rank after it was done on another, they
 * differ by an update: the one returns EXPHIL_E_IO, the other EXPHIL_OK, and their next meeting EXPHIL_E_MISMATCH. */
typedef struct exphil_device_communicator {
    size_t struct_size;
    void *user;
    /* Enqueues on stream (a cudaStream_t) that data[count] (EXPHIL_TYPE_F32 or F64, memory of the context's device, aligned to 16
     * bytes) becomes the sum over all ranks, with the same bits on every rank. 0, or a code that is in the message of EXPHIL_E_IO.
     * Does not wait for the stream. */
    int32_t (*all_reduce)(void *user, void *data, int64_t count, int32_t type, void *stream);
    /* EXPHIL_RANKS_FAILED, for ever, once a rank is gone; what was done while it was OK is right. From any thread. */
    int32_t (*state)(void *user);
    /* Ends what is enqueued, and has everything that comes fail. Returns at once. A trainer calls it, more than once maybe, when
     * state says EXPHIL_RANKS_FAILED or its patience is over. */
    void (*abort)(void *user);
    int32_t rank, ranks; /* 0 <= rank < ranks */
    /* how long a sum is waited for, with the rest of its update; then abort is called, and the call ends with EXPHIL_E_IO;
     * 0 = 30000 */
    int32_t timeout_ms;
    int32_t flags; /* EXPHIL_RANKS_CAPTURABLE, _ORDERED, or both */
} exphil_device_communicator;
/* clang-format off */
#define EXPHIL_DEVICE_COMMUNICATOR_INIT { sizeof(exphil_device_communicator), 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* exphil_trainer_set_communicator with ranks that have a GPU each; NULL is refused. What was done by the old communicator is
 * ended when it returns EXPHIL_OK: an exphil_ranks that failed may be destroyed then, and not before. EXPHIL_E_UNSUPPORTED: the
 * context's device works in the host's memory. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_set_device_communicator(
    exphil_trainer *trainer, const exphil_device_communicator *communicator, exphil_prefetcher *prefetcher,
    exphil_error *error);

/* The library's own: NCCL, which the CUDA plugin loads on demand (EXPHIL_NCCL: a path, or "none"; else libnccl.so.2; 2.18 or
 * newer). Ranks are threads or processes, on one machine or several, each with a context on a GPU of its own. */
typedef struct exphil_ranks exphil_ranks;

#define EXPHIL_RANKS_ID_BYTES 128
/* Names a new group of ranks: made by one rank, given by the host to all others (a pipe, a file, a message), used once.
 * EXPHIL_E_UNSUPPORTED: the context's device has no such library. EXPHIL_E_VERSION: it is too old. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_ranks_id(const exphil_context *context,
                                                          uint8_t id[EXPHIL_RANKS_ID_BYTES],
                                                          exphil_error *error);

/* In which order a sum is taken. */
enum {
    EXPHIL_SUMS_ORDERED = 0, /* that of the ranks, as on the CPU: ((0 + 1) + 2) + 3 */
    EXPHIL_SUMS_TREE = 1,    /* ((0 + 1) + (2 + 3)) + ..., for shards */
    /* that of NCCL's own all-reduce, the fastest within a machine: the same bits on all ranks, but not the same with another
     * number of GPUs, another machine or another version */
    EXPHIL_SUMS_PLAIN = 2
};

/* One rank of a group, with a GPU of its own. */
typedef struct exphil_ranks_config {
    size_t struct_size;
    const uint8_t *id; /* [EXPHIL_RANKS_ID_BYTES] */
    /* of that GPU: the trainer's, or another one of the same GPU. Kept until destroy */
    exphil_context *context;
    /* a longer sum goes in pieces of so many bytes, for each of which the GPU has memory; they change no bits. 4096 or more,
     * 0 = 64 MiB. EXPHIL_SUMS_PLAIN has neither */
    int64_t piece_bytes;
    int32_t rank, ranks; /* 0 <= rank < ranks <= 256 */
    int32_t sums;        /* EXPHIL_SUMS_... */
    int32_t start_ms;    /* how long open waits for the other ranks; 0 = 600000 */
    int32_t timeout_ms;  /* of the communicators; 0 = 30000 */
    int32_t reserved;    /* must be 0 */
} exphil_ranks_config;
/* clang-format off */
#define EXPHIL_RANKS_CONFIG_INIT { sizeof(exphil_ranks_config), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* By all ranks at once; waits for them. EXPHIL_E_INVALID names the field, or two ranks have one GPU; EXPHIL_E_MISMATCH names the
 * rank that has other ranks, sums or pieces; EXPHIL_E_IO: start_ms is over, or the library failed; EXPHIL_E_CANCELLED: the
 * context's hook said so. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_ranks_open(const exphil_ranks_config *config,
                                                            exphil_ranks **ranks, exphil_error *error);
/* For exphil_trainer_config; good until destroy. Serves one trainer. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_ranks_communicator(exphil_ranks *ranks,
                                                                    exphil_device_communicator *communicator,
                                                                    exphil_error *error);
/* The same ranks as a communicator of the host's memory, which waits for its sums: for what a program asks its ranks before it has
 * a trainer, and between the calls of one, after exphil_trainer_wait if it made updates. Good until destroy; from the thread that
 * calls the trainer. Its all_reduce gives 0, or a status (EXPHIL_E_IO: a rank did not come within timeout_ms, or is gone), after
 * which the state of the other communicator is EXPHIL_RANKS_FAILED. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_ranks_host_communicator(exphil_ranks *ranks,
                                                                         exphil_communicator *communicator,
                                                                         exphil_error *error);
/* After the end of the trainer, or when it has another communicator; by all ranks, but one that failed does not wait for them.
 * NULL is allowed. */
EXPHIL_API void exphil_ranks_destroy(exphil_ranks *ranks);

#ifdef __cplusplus
}
#endif
#endif
