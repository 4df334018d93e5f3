/* Door of lib/train: the declarations that its files share. No other room needs them. */
#ifndef XPH_TRAIN_TRAIN_H
#define XPH_TRAIN_TRAIN_H

#include "base/base.h"
#include "data/data.h"
#include "device/device.h"
#include "model/model.h"

#include <exphil/learn.h>

/* ---- schedule ------------------------------------------------------------------------------------------ */

/* Rate of update u (0-based) under a checked configuration; no libm, so that all systems train alike. */
double xph_schedule_rate(const exphil_optimizer_config *config, int64_t update);
exphil_status xph_schedule_check(const exphil_optimizer_config *config, exphil_error *error);

/* ---- optimizer ----------------------------------------------------------------------------------------- */

struct exphil_optimizer {
    exphil_context *context;
    xph_device *device;
    exphil_optimizer_config config; /* defaults filled in */
    atomic_int references;
    atomic_int attached; /* serves one trainer */
    xph_type type;
    size_t arena_bytes;
    int64_t weights, decaying; /* elements */
    uint64_t config_hash;      /* of the model it was made for */
    void *m, *v, *average;     /* device arenas; average NULL without EMA */
    const xph_kernel *adam;
    _Atomic int64_t updates; /* may be read while the trainer works */
};

exphil_optimizer *xph_optimizer_retain(exphil_optimizer *optimizer);
void xph_optimizer_release(exphil_optimizer *optimizer);
/* Numbers of update `number` (from 1). */
xph_rates xph_optimizer_rates(const exphil_optimizer *optimizer, int64_t number);
/* One AdamW update of weights on the device, with rates from given, clipping and verdict from control. */
exphil_status xph_optimizer_update(const exphil_optimizer *optimizer, xph_stream *stream, void *weights,
                                   const void *gradients, const xph_given *given, const xph_control *control);

/* ---- trainer ------------------------------------------------------------------------------------------- */

/* Losses of all heads with their positive weights copied behind them. */
typedef struct xph_losses {
    xph_head_loss head[EXPHIL_HEADS_MAX];
    float positive[EXPHIL_HEADS_MAX][32];
} xph_losses;
exphil_status xph_losses_take(const exphil_spec *spec, const exphil_head_loss *given, xph_losses *losses,
                              exphil_error *error);

enum { XPH_FEED_INPUTS = 7, XPH_FEED_BLOCKS = 13 };

/* One of the two slots for a batch. */
typedef struct xph_feed_slot {
    /* on the device: floats, mask, ids, past, actions, reset, given; all NULL where the device works in the
     * host's memory */
    void *own[XPH_FEED_INPUTS];
    xph_given *given;           /* host, pinned */
    int32_t *tables;            /* likewise: ids and conditions side by side; NULL without conditions */
    xph_event *uploaded, *read; /* the batch has left the host; the device has no more use for it */
} xph_feed_slot;

/* Batches on the device and what the loss needs, for one shape. Shared by training and evaluation. */
typedef struct xph_feed {
    const exphil_model *model;
    xph_device *device;
    xph_net *net;
    xph_stream *uploads;
    int64_t batch, time;
    int64_t shards,
        shard; /* parts of the batch that the net computes one after another; the one that is next */
    const float *floats, *mask; /* the batch as the device reads it: in own, or where it was given */
    const int32_t *ids, *past, *actions;
    const uint8_t *reset;
    const xph_given *given;
    xph_feed_slot slot[2];
    /* Of the slot that is next to be filled, or is being worked on: it changes with every batch, as state[0]
     * does. */
    int32_t parity;
    int32_t reserved;
    void *state[2], *dlogits; /* state: in and out, swapped after every batch */
    void *dvalues;            /* NULL: the model has no value head; 0 where nothing is asked of it */
    double *sums, *rows_loss;
    const xph_kernel *loss;
    size_t bytes[XPH_FEED_BLOCKS]; /* of the device blocks above, in order */
    size_t state_bytes;
} xph_feed;

/* losses: those that forward is given. shards divides batch; 1: the net computes all of it at once. */
exphil_status xph_feed_create(const exphil_model *model, const xph_losses *losses, int64_t batch,
                              int64_t time, int64_t shards, uint32_t net_flags, xph_feed *feed,
                              exphil_error *error);
static inline int64_t xph_feed_rows(const xph_feed *feed) /* of a shard */
{
    return feed->batch / feed->shards * feed->time;
}
void xph_feed_destroy(xph_feed *feed);
size_t xph_feed_tables_bytes(const xph_feed *feed); /* of a slot's tables */
/* Begins to upload the batch, or has it read where it is: then it must stay until the work on it is done,
 * else until xph_feed_uploaded returns. */
exphil_status xph_feed_take(xph_feed *feed, const exphil_batch *batch, const xph_given *given);
exphil_status xph_feed_uploaded(const xph_feed *feed);
/* Other past actions for the batch that was taken: past (host) stays until the work on it is done. */
exphil_status xph_feed_past(xph_feed *feed, const int32_t *past);
/* Forward and loss of the batch that was taken. With control (device) its head losses grow and feed->dlogits
 * is filled. */
exphil_status xph_feed_forward(xph_feed *feed, const void *weights, const void *packed,
                               const xph_losses *losses, xph_control *control);
/* Forward, loss and backward; gradients +=. */
exphil_status xph_feed_learn(xph_feed *feed, const void *weights, const void *packed,
                             const xph_losses *losses, xph_control *control, void *gradients);
/* Takes a batch and waits for its losses: head_sums [heads]. Moves the carried state, as forward does. */
exphil_status xph_feed_measure(xph_feed *feed, const void *weights, const void *packed,
                               const xph_losses *losses, const exphil_batch *batch, double *head_sums);
void xph_feed_io(const xph_feed *feed, xph_net_io *io);
/* The batch is done: the next one goes to the other slot and finds the state that this one left. */
exphil_status xph_feed_swap(xph_feed *feed);
/* The last batch did not count: the next one goes to its slot and finds the state that it found. */
void xph_feed_swap_back(xph_feed *feed);
/* Of so many parts of it, joined as a tree joins what shards have (shards.h). */
double xph_mask_sum(const exphil_batch *batch, int64_t shards);

/* An update that the device may still work on, and what the host knows of it. */
typedef struct xph_pending {
    xph_control *result; /* host, pinned; valid after settled */
    xph_event *settled;
    int64_t frames, epoch;
    int32_t live, reserved;
} xph_pending;

/* A resumed run without a prefetcher, until its first batch comes: its shape, of which nothing is made on the
 * word of a file alone, and the carried state, which the file holds. batch 0: there is none. */
typedef struct xph_resumed {
    int64_t batch, time;
    void *state; /* host; NULL: the model carries none */
    size_t state_bytes;
} xph_resumed;

/* Programs of an update, as bits: the first batch clears the gradient, the last is followed by the update
 * itself. */
/* Where the loss is the host's, forward and backward stand for BATCH. */
enum {
    XPH_PART_FIRST = 1,
    XPH_PART_BATCH = 2,
    XPH_PART_FORWARD = 4,
    XPH_PART_BACKWARD = 8,
    XPH_PART_LAST = 16,
    XPH_PART_SUM = 32, /* over the ranks, on the device; before LAST */
    XPH_PARTS = 64
};

/* Between forward and backward by the host. */
typedef struct xph_split {
    bool open, here;       /* here: gradients are made on the device */
    int64_t frames, epoch; /* of the batch */
    int64_t began;         /* ns */
    /* Host memory that copies need not stage: what the device gives, and then takes in the same place. values NULL: no
     * value head, or the loss is not the host's. */
    void *logits, *values, *states;
    size_t logits_bytes, values_bytes;
} xph_split;

/* Past actions that are the policy's own (own_past.c); net NULL: none are, or the shape is not known yet. */
typedef struct xph_own_past {
    double share;
    int64_t ramp; /* updates */
    uint64_t seed;
    xph_net *net;
    xph_event *ready;
    float *noise;          /* [M,L] */
    int32_t *drawn, *past; /* [M,A] decided; [M,slots,A] what training sees */
    uint8_t *taken;        /* [M] 1: the decision of this row is past to others */
    unsigned char *memory;
    size_t memory_bytes;
    float *d_noise; /* on the device */
    int32_t *d_drawn;
    unsigned char *d_memory;
    size_t d_memory_bytes;
} xph_own_past;

/* Sums over ranks on the device (ranks_device.c): what the host gave for them, and what they need. */
typedef struct xph_device_ranks {
    void *user;
    int32_t (*all_reduce)(void *user, void *data, int64_t count, int32_t type, void *stream);
    int32_t (*state)(void *user);
    void (*give_up)(void *user);
    int32_t timeout_ms;
    int32_t code;   /* of all_reduce, where it failed in a program */
    bool follows;   /* an update follows its sum on the device, in one program; else the host waits between */
    bool recording; /* a program is being recorded */
    bool under_way; /* an update whose sum the host has not waited for */
    void *exchange; /* on the device, for meetings */
    xph_stream *stream;
    xph_event *before, *done;
} xph_device_ranks;

struct exphil_trainer {
    exphil_context *context;
    atomic_int references; /* the caller's handle and every learner */
    xph_device *device;
    exphil_model *model; /* retained; its weights are never written */
    exphil_optimizer *optimizer;
    exphil_prefetcher *prefetcher; /* or NULL */
    xph_busy busy;
    xph_losses losses;
    exphil_communicator communicator; /* all_reduce NULL: alone */
    bool sums;                        /* EXPHIL_REDUCTION_SUMS: it may get another one */
    void *shared;                     /* host copy of the gradients for it */
    xph_device_ranks device_ranks;    /* all_reduce NULL: there are none */
    struct xph_said *said; /* by all ranks, in the last meeting (ranks.h); NULL: they do not meet */
    int64_t accumulate;
    int32_t fake_quantize;                  /* 0, EXPHIL_TYPE_BF16 or EXPHIL_TYPE_I8 */
    int32_t activations, checkpoint_blocks; /* EXPHIL_TYPE_F32 or BF16; 0: all activations are kept */
    int32_t precision, saved_weights;       /* EXPHIL_WEIGHTS or EXPHIL_WEIGHTS_AVERAGED */
    int32_t as_played;
    int32_t shards;    /* of the joint batch; 1: a batch is computed at once */
    double loss_scale; /* the first */
    xph_feed feed;     /* feed.net NULL until the shape is known */
    xph_resumed resumed;
    xph_own_past own_past;
    xph_split split;
    const xph_kernel *norm2, *clear;
    void *weights, *packed, *gradients, *norm_scratch;
    void *rounded; /* with fake_quantize: the weights that forward and backward see; else NULL */
    void *kept;    /* carried state before an update of several batches; of one, it is still in the feed */
    void *joining; /* gradients and losses of shards that wait to be joined (shards.c); NULL: there is one */
    size_t joining_bytes;
    size_t arena_bytes, packed_bytes, norm_scratch_bytes;
    xph_control *control; /* device */
    /* By the feed's parity, on which addresses depend, and the program; NULL: not yet. */
    xph_graph *recorded[2][XPH_PARTS];
    uint64_t ran;           /* programs that have run, by bit */
    int32_t unrecorded;     /* recordings that failed */
    xph_pending pending[2]; /* of even and odd updates: the device may be one update behind */
    int32_t pending_parity; /* of the next update */
    int32_t ahead;          /* updates that the host may be ahead: 0 or 1 */
    exphil_error late;      /* what an update came to that nobody waited for; status OK: nothing */
    int64_t frames, skipped;
    exphil_metrics metrics;             /* of the last update whose result is known */
    int64_t epoch, index;               /* of the batch that comes next */
    uint64_t base_updates, base_frames; /* training that the model had seen before */
    xph_notes notes;                    /* of the weights it writes, if noted; else those of the model */
    bool noted;
};

exphil_trainer *xph_trainer_retain(exphil_trainer *trainer); /* until exphil_trainer_destroy */
/* Weights, moments, averaged weights and counters as they are now, in one block of xph_mark_bytes; and back to them. Updates
 * under way are waited for. */
size_t xph_mark_bytes(const exphil_trainer *trainer);
exphil_status xph_trainer_mark(exphil_trainer *trainer, void *mark, exphil_error *error);
exphil_status xph_trainer_return(exphil_trainer *trainer, const void *mark, exphil_error *error);
/* Something beside the trainer that lives in the same checkpoint, so that both are of one moment: data is written, or filled
 * from the file, which must have as many bytes. check looks at what was read before anything of the trainer changes. */
typedef struct xph_beside {
    void *data;
    size_t bytes;
    exphil_status (*check)(void *user, exphil_error *error);
    void *user;
    /* Resume, of data whose length is not known before: makes room for so many bytes, and says where. NULL: bytes it is */
    exphil_status (*fit)(void *user, size_t bytes, struct xph_beside *beside, exphil_error *error);
} xph_beside;
/* exphil_trainer_save and exphil_trainer_resume, with it. */
exphil_status xph_trainer_save(const exphil_trainer *trainer, const char *path, const xph_beside *beside,
                               exphil_error *error);
exphil_status xph_trainer_resume(exphil_trainer *trainer, const char *path, xph_beside *beside,
                                 exphil_error *error);
/* The next batch of the trainer's prefetcher, for a loss that is not the trainer's; and back where the trainer was before. */
typedef struct xph_taken {
    int64_t epoch, index;             /* of the batch */
    int64_t place_epoch, place_index; /* of the trainer before */
} xph_taken;
exphil_status xph_trainer_take(exphil_trainer *trainer, exphil_batch *batch, xph_taken *taken,
                               exphil_error *error);
void xph_trainer_put_back(exphil_trainer *trainer, const xph_taken *taken);
/* EXPHIL_E_MISMATCH: its data, or its batches, are not what the model was made for. */
exphil_status xph_trainer_check_data(const exphil_model *model, const exphil_prefetcher *prefetcher,
                                     exphil_error *error);
/* EXPHIL_E_MISMATCH: batches by this sampling (defaults filled in) are not what the model was made for. */
exphil_status xph_trainer_check_sampling(const exphil_model *model, const exphil_sampling *sampling,
                                         const xph_told *told, exphil_error *error);
/* Every call on a trainer begins and ends with these: NULL, a forked child and a second thread are refused.
 * const: the flag is no part of a trainer's value. */
exphil_status xph_trainer_enter(const exphil_trainer *trainer, exphil_error *error);
void xph_trainer_leave(const exphil_trainer *trainer);
/* The same after forward, which the others refuse. */
exphil_status xph_trainer_enter_open(const exphil_trainer *trainer, exphil_error *error);
/* EXPHIL_E_INVALID, EXPHIL_E_MISMATCH, EXPHIL_E_NUMERIC: what is wrong with a batch of the host's own. */
exphil_status xph_batch_check(const exphil_model *model, const exphil_batch *batch, exphil_error *error);
/* What comes with a batch of this weight, the sum of its mask, that is one of parts; and the numbers of the update that was
 * begun, on their way to the host. */
xph_given xph_update_given(const exphil_trainer *trainer, double weight, int64_t parts);
exphil_status xph_update_send(exphil_trainer *trainer, int64_t frames, int64_t epoch, exphil_error *error);
/* exphil_trainer_forward, with states [B, state] as reals, or NULL. */
exphil_status xph_trainer_forward(exphil_trainer *trainer, const exphil_batch *batch, const void *states,
                                  exphil_forward *forward, exphil_error *error);
/* The same for a loss that is computed on the device: what forward left there, and where it takes the gradients, all as in the
 * net; work on the stream comes between. Whoever computes it waits for that before backward or exphil_trainer_abandon.
 * values and dvalues are NULL without a value head. */
typedef struct xph_halves {
    xph_stream *stream;
    const void *logits, *values;
    const int32_t *actions;
    void *dlogits, *dvalues;
} xph_halves;
exphil_status xph_trainer_forward_here(exphil_trainer *trainer, const exphil_batch *batch, const void *states,
                                       xph_halves *halves, exphil_error *error);
/* exphil_trainer_backward; bad_...: the first of the gradients that is not finite, -1: none. */
exphil_status xph_trainer_backward_here(exphil_trainer *trainer, int64_t bad_logit, int64_t bad_value,
                                        double loss, exphil_metrics *metrics, exphil_error *error);
/* EXPHIL_E_UNSUPPORTED: settings that a loss which is not the trainer's own does not go with. */
exphil_status xph_split_possible(const exphil_trainer *trainer, exphil_error *error);
/* Made once for a shape, states, and what the host computes with, when they are first wanted; dropped with the shape. */
exphil_status xph_split_make(exphil_trainer *trainer, bool states, bool by_host, exphil_error *error);
void xph_split_drop(exphil_trainer *trainer);
/* Tells the device where the optimizer stands: after creation and resume. good: updates since the loss scale
 * changed. */
exphil_status xph_control_put(exphil_trainer *trainer, xph_stream *stream, double loss_scale, int64_t good);
exphil_status xph_control_begin(exphil_trainer *trainer, double loss_scale, int64_t good,
                                exphil_error *error);
/* NULL: none. */
static inline const char *xph_trainer_notes(const exphil_trainer *trainer)
{
    return trainer->noted ? trainer->notes.text : xph_model_notes(trainer->model);
}
/* Runs a program (XPH_PART_...) on the batch that was taken, recorded where the device can. */
exphil_status xph_trainer_run(exphil_trainer *trainer, uint32_t parts);
void xph_trainer_forget(exphil_trainer *trainer); /* all recordings */
/* Waits for all updates under way and counts them; what went wrong with them waits in late. */
exphil_status xph_trainer_settle(exphil_trainer *trainer, exphil_error *error);
/* Counts one update that is under way: EXPHIL_E_NUMERIC when the device refused it. */
exphil_status xph_pending_settle(exphil_trainer *trainer, xph_pending *pending, exphil_error *error);
exphil_status xph_pending_create(exphil_trainer *trainer, exphil_error *error);
void xph_pending_destroy(exphil_trainer *trainer);
/* With a communicator: replaces the gradients by what its ranks have together, then runs the update. status, with its
 * error, is what this rank came to before: a failure is told to the others where ranks meet, and given back. */
exphil_status xph_comm_join(exphil_trainer *trainer, exphil_status status, exphil_error *error);
/* Before a backward whose sum is the device's: ranks say that they are there, and how many frames they have. */
exphil_status xph_comm_meet(exphil_trainer *trainer, exphil_error *error);
/* What of an update its last batch's program has with it: XPH_PART_..., or 0. */
uint32_t xph_comm_parts(const exphil_trainer *trainer);
/* xph_trainer_shape makes the feed on the first call; later calls must ask for the same shape.
 * xph_trainer_drop_shape undoes it. */
exphil_status xph_trainer_shape(exphil_trainer *trainer, int64_t batch, int64_t time, exphil_error *error);
bool xph_trainer_shaped(const exphil_trainer *trainer); /* by a batch, or by what was resumed */
void xph_trainer_drop_shape(exphil_trainer *trainer);
void xph_resumed_drop(exphil_trainer *trainer);
exphil_status xph_trainer_share(exphil_trainer *trainer, exphil_error *error); /* room for what is summed */
/* False, with a message, where the settings cannot be. */
bool xph_own_past_check(const exphil_model *model, const exphil_trainer_config *config, exphil_error *error);
/* With and without the shape. drop also undoes a make that failed. */
exphil_status xph_own_past_make(exphil_trainer *trainer, exphil_error *error);
void xph_own_past_drop(exphil_trainer *trainer);
/* Mixes the past of the batch that the feed has taken: batch `part` of update `number` (from 1). */
exphil_status xph_own_past_take(exphil_trainer *trainer, const exphil_batch *batch, int64_t number,
                                int64_t part);
/* What forward and backward see of the weights; refresh makes it, and its packed form, from weights that have
 * changed. */
const void *xph_trainer_seen(const exphil_trainer *trainer);
exphil_status xph_trainer_refresh(exphil_trainer *trainer);
/* What an evaluation shows in the place of what the dataset has: NULL, and 0, leave it. */
typedef struct xph_fixed {
    const int32_t *conditions;
    int32_t delay_id, reserved;
} xph_fixed;
/* EXPHIL_E_INVALID, EXPHIL_E_MISMATCH: what is no value, or no delay, of the model. conditions are borrowed. */
exphil_status xph_fixed_take(const exphil_model *model, const int32_t *conditions, int64_t condition_count,
                             const int32_t *delay, xph_fixed *fixed, exphil_error *error);
/* EXPHIL_E_MISMATCH unless the dataset is of the model's context and spec. */
exphil_status xph_check_spec(const exphil_model *model, const exphil_dataset *dataset, exphil_error *error);
/* Whole episodes in order, as a model wants them, no condition masked: the sampler of an evaluation, and its first batch.
 * EXPHIL_E_MISMATCH, EXPHIL_E_INVALID: dataset is not of the model's spec, is empty; batch is out of
 * range. */
exphil_status xph_whole_sampler(const exphil_model *model, const exphil_dataset *dataset, int64_t batch,
                                const xph_fixed *fixed, xph_sampler **sampler, exphil_batch *first,
                                exphil_error *error);
/* Logits of the last forward as doubles in wide [rows*L]; narrow is a buffer for them as floats. */
exphil_status xph_feed_logits(const xph_feed *feed, float *narrow, double *wide);
/* Most likely value of a head and -log p of the target; rank: classes that beat the target, 0 for bits. */
int32_t xph_judge_head(const xph_head *head, const double *logit, int32_t target, double *nll, int32_t *rank);
/* What an evaluation takes at most, of a model on a context that measures, while the dataset's is another: teacher-forced,
 * and while the policy is alone (0 where it never is). */
exphil_status xph_evaluate_held(const exphil_model *model, const exphil_dataset *dataset,
                                const exphil_dataset *frequencies, const xph_losses *losses, int64_t most,
                                xph_held *forced, xph_held *alone, exphil_error *error);
/* Evaluation of given weights; what exphil_evaluate and exphil_trainer_evaluate share. */
exphil_status xph_evaluate(const exphil_model *model, const void *weights, const void *packed,
                           const exphil_dataset *dataset, const exphil_dataset *frequencies,
                           const xph_losses *losses, int64_t batch, const xph_fixed *fixed,
                           exphil_report *report, exphil_error *error);

#endif
