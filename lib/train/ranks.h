/* What ranks that train together say to each other (exphil_trainer_config.reduction: EXPHIL_REDUCTION_SUMS). Whatever changes
 * a trainer begins with a meeting, in which every rank says what it is about to do, or that it cannot: so either all go on, or
 * none. A meeting is one all_reduce of doubles in which each rank has a place of its own and zeros everywhere else: its sum is
 * exact in any order. */
#ifndef XPH_TRAIN_RANKS_H
#define XPH_TRAIN_RANKS_H

#include "train/train.h"

enum { XPH_SAID_NUMBERS = 16 };

/* What a rank is about to do. Of all ranks it must be the same. */
typedef enum xph_call {
    XPH_CALL_CREATE = 1,
    XPH_CALL_BATCH, /* to run its next batch */
    XPH_CALL_SUM,   /* to give its gradients; numbers are the losses of heads */
    XPH_CALL_SAVE,
    XPH_CALL_WRITE, /* rank 0 is writing; number 0 is 1 when it is done */
    XPH_CALL_RESUME,
    XPH_CALL_AGREE,
    XPH_CALL_JOIN,
    XPH_CALL_CHANGE,
    XPH_CALLS
} xph_call;

/* What a rank says: doubles alone, for they are summed. */
struct xph_said {
    double call;   /* 0: it has said nothing */
    double status; /* below 0: it cannot */
    double update, epoch, index;
    double lanes; /* of its batches; 0: not known yet */
    double weight,
        frames; /* of the batch: the sum of its mask, and the rows above 0; how many numbers are agreed on */
    double number[XPH_SAID_NUMBERS];
};

/* A host's communicator, checked; NULL: one rank. */
exphil_status xph_communicator_take(const exphil_communicator *given, exphil_communicator *known,
                                    exphil_error *error);
/* True: ranks meet. All functions below do nothing without, and give status back. */
static inline bool xph_ranks_meet(const exphil_trainer *trainer)
{
    return trainer->said != NULL;
}
/* Memory for meetings of so many ranks; NULL, with an error. */
struct xph_said *xph_ranks_said(exphil_context *context, int32_t ranks, exphil_error *error);
void xph_ranks_forget(exphil_context *context, struct xph_said *said, int32_t ranks);
/* A meeting: own is what this rank says; call, update and place are filled in. status, with its error, is what this rank came
 * to before, and is given back where it is a failure. EXPHIL_E_IO: the communicator failed, or a rank cannot; which one, and
 * why, is in the message, with what that rank's own error says where it has one. EXPHIL_E_CANCELLED: a rank was cancelled by its
 * host. EXPHIL_E_MISMATCH: ranks do different things. Afterwards trainer->said has what all said. */
exphil_status xph_ranks_say(exphil_trainer *trainer, xph_call call, struct xph_said own, exphil_status status,
                            exphil_error *error);
/* For a rank that has no memory for a meeting, and so has no trainer that meets: with has been checked. Does nothing with more
 * than XPH_RANKS_EARLY ranks, which wait as long as their communicator does. */
enum { XPH_RANKS_EARLY = 64 };
void xph_ranks_tell_early(const exphil_communicator *with, xph_call call, exphil_status status,
                          const exphil_error *error);
/* For a rank that cannot go on: so that the others do not wait. */
exphil_status xph_ranks_tell(exphil_trainer *trainer, xph_call call, exphil_status status,
                             exphil_error *error);
/* Room for a number of each rank; and their sum, in the order of the ranks, or of the tree of shards. Overwrites them. */
double *xph_ranks_numbers(const exphil_trainer *trainer);
double xph_ranks_add(const exphil_trainer *trainer, double *number);
/* Of the last meeting: what was said, added. */
double xph_ranks_weight(const exphil_trainer *trainer);
int64_t xph_ranks_frames(const exphil_trainer *trainer);
/* Lanes of all ranks, and those of the ranks before this one. */
int64_t xph_ranks_lanes(const exphil_trainer *trainer, int64_t *before);
/* all_reduce of the communicator, on data that all ranks have. EXPHIL_E_IO. */
exphil_status xph_ranks_reduce(const exphil_trainer *trainer, void *data, int64_t count, int32_t type,
                               exphil_error *error);
/* Bytes, of which each rank has its own and zeros everywhere else, become whole on all. Begins with a meeting; data may be
 * NULL where status is a failure. */
exphil_status xph_ranks_join(exphil_trainer *trainer, void *data, size_t bytes, exphil_status status,
                             exphil_error *error);
/* A host's device_communicator, checked: a communicator for the trainer, and what it needs on the device, which the trainer must
 * have when it is called. drop also undoes a make that failed. */
struct exphil_device_communicator;
exphil_status xph_device_ranks_make(exphil_trainer *trainer, const struct exphil_device_communicator *given,
                                    exphil_communicator *communicator, xph_device_ranks *ranks,
                                    exphil_error *error);
void xph_device_ranks_drop(const exphil_trainer *trainer, xph_device_ranks *ranks);
size_t xph_device_ranks_bytes(const exphil_trainer *trainer); /* of the device's memory */
/* Enqueues, or records, that gradients and losses of heads become their sums over the ranks where they are, behind what the
 * net's stream has and before what comes. */
exphil_status xph_device_ranks_sum(exphil_trainer *trainer);
/* EXPHIL_E_IO where all_reduce had failed in it; else the device's status, and what is said of it. */
exphil_status xph_device_ranks_failed(exphil_trainer *trainer, exphil_status status, const char *what,
                                      exphil_error *error);
/* The host waits for that sum: nothing may follow it yet. */
exphil_status xph_device_ranks_wait(const exphil_trainer *trainer, exphil_error *error);
/* Waits for the mark behind an update that follows its sum. Where a rank is gone, or the time is over, the communicator is brought
 * to its end, and the update comes to XPH_UPDATE_STOPPED, unless its sum was done already; why is then a failure. */
exphil_status xph_device_ranks_watch(const exphil_trainer *trainer, xph_event *settled, exphil_error *why);
/* True: programs of updates have their sum in them. */
static inline bool xph_device_ranks_follow(const exphil_trainer *trainer)
{
    return trainer->device_ranks.all_reduce && trainer->device_ranks.follows;
}
/* EXPHIL_E_MISMATCH: the prefetcher's lanes are not those of this rank (exphil_rank_lanes). */
exphil_status xph_ranks_lanes_check(const exphil_trainer *trainer, exphil_error *error);
/* EXPHIL_E_MISMATCH on all ranks, which names the first thing that a rank has otherwise than rank 0. */
exphil_status xph_ranks_check(exphil_trainer *trainer, exphil_status status, exphil_error *error);

#endif
