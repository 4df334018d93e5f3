/* Door of lib/train. Nothing stands on training: other rooms need nothing of it. The declarations here are shared by the
 * files of this room. */
#ifndef XPH_TRAIN_TRAIN_H
#define XPH_TRAIN_TRAIN_H

#include "backend.h"
#include "base/base.h"
#include "data/data.h"
#include "model/model.h"

/* ---- schedule ------------------------------------------------------------------------------------------------ */

/* Rate of update u (0-based) under a checked configuration; no libm, so that all systems train alike. */
double xph_schedule_rate(const exphil_optimizer_config *config, int64_t update);
exphil_status xph_schedule_check(const exphil_optimizer_config *config, exphil_error *error);
double xph_power(double base, int64_t exponent); /* exponent >= 0 */

/* ---- optimizer ------------------------------------------------------------------------------------------------ */

struct exphil_optimizer {
    exphil_context *context;
    xph_device *device;
    exphil_optimizer_config config;     /* defaults filled in */
    atomic_int references;
    atomic_int attached;                /* serves one trainer */
    xph_type type;
    size_t arena_bytes;
    int64_t weights, decaying;          /* elements */
    uint64_t config_hash;               /* of the model it was made for */
    void *m, *v, *average;              /* device arenas; average NULL without EMA */
    _Atomic int64_t updates;            /* may be asked for while the trainer works */
};

exphil_optimizer *xph_optimizer_retain(exphil_optimizer *optimizer);
void xph_optimizer_release(exphil_optimizer *optimizer);
/* One AdamW update of weights with gradients of the given norm (clipping happens here). */
exphil_status xph_optimizer_update(exphil_optimizer *optimizer, xph_stream *stream, void *weights, const void *gradients,
                                   double norm);

/* ---- trainer -------------------------------------------------------------------------------------------------- */

/* Losses of all heads with their positive weights copied behind them. */
typedef struct xph_losses {
    xph_head_loss head[EXPHIL_HEADS_MAX];
    float positive[EXPHIL_HEADS_MAX][32];
} xph_losses;
exphil_status xph_losses_take(const exphil_spec *spec, const exphil_head_loss *given, xph_losses *losses,
                              exphil_error *error);

/* Device copies of a batch and what the loss needs, for one shape. Shared by training and evaluation. */
typedef struct xph_feed {
    const exphil_model *model;
    xph_device *device;
    xph_net *net;
    int64_t batch, time;
    const float *floats, *mask;         /* the batch as the device reads it: in own, or where it was given */
    const int32_t *ids, *past, *actions;
    const uint8_t *reset;
    void *own[6];                       /* memory for that; NULL where the device works in the host's memory */
    void *state[2], *dlogits;           /* state: in and out, swapped after every batch */
    double *sums, *rows_loss;
    size_t bytes[11];                   /* of the device blocks above, in order */
    size_t state_bytes;
} xph_feed;

exphil_status xph_feed_create(const exphil_model *model, int64_t batch, int64_t time, uint32_t net_flags, xph_feed *feed,
                              exphil_error *error);
void xph_feed_destroy(xph_feed *feed);
/* Uploads the batch, or reads it where it is: it must stay until backward is done. Runs forward and loss; head_sums [heads] on the host afterwards. scale: see xph_loss_args; with
 * gradients wanted feed->dlogits is filled. Moves the carried state. */
exphil_status xph_feed_forward(xph_feed *feed, const void *weights, const void *packed, const xph_losses *losses,
                               const exphil_batch *batch, double scale, bool gradients, double *head_sums);
void xph_feed_io(const xph_feed *feed, xph_net_io *io);
void xph_feed_swap(xph_feed *feed);
double xph_mask_sum(const exphil_batch *batch);

struct exphil_trainer {
    exphil_context *context;
    xph_device *device;
    exphil_model *model;                /* retained; its weights are never written */
    exphil_optimizer *optimizer;
    exphil_prefetcher *prefetcher;      /* or NULL */
    xph_busy busy;
    xph_losses losses;
    exphil_communicator communicator;   /* all_reduce NULL: alone */
    void *shared;                       /* host copy of the gradients for it */
    int64_t accumulate;
    int32_t fake_quantize;              /* 0, EXPHIL_TYPE_BF16 or EXPHIL_TYPE_I8 */
    int32_t activations, checkpoint_blocks; /* EXPHIL_TYPE_F32 or BF16; 0: all activations are kept */
    xph_feed feed;                      /* feed.net NULL until the shape is known */
    void *weights, *packed, *gradients, *norm_scratch;
    void *rounded;                      /* with fake_quantize: the weights that forward and backward see; else NULL */
    void *kept;                         /* carried state before an update of several batches; NULL for one */
    size_t arena_bytes, packed_bytes, norm_scratch_bytes;
    double *norm_out;                   /* device: norm */
    int64_t *bad_out;                   /* device: first bad element */
    int64_t frames, skipped;
    int64_t epoch, index;               /* of the batch that comes next */
    uint64_t base_updates, base_frames; /* training that the model had seen before */
};

/* Makes the feed on the first call; later ones must ask for the same shape. drop makes it as if never called. */
/* Replaces the gradients by their mean over the ranks of the communicator, if there is one. refused: this rank's numbers are
 * not finite. */
exphil_status xph_comm_average(exphil_trainer *trainer, bool refused, exphil_error *error);
exphil_status xph_trainer_shape(exphil_trainer *trainer, int64_t batch, int64_t time, exphil_error *error);
void xph_trainer_drop_shape(exphil_trainer *trainer);
/* What forward and backward see of the weights; refresh makes it, and its packed form, from weights that have changed. */
const void *xph_trainer_seen(const exphil_trainer *trainer);
exphil_status xph_trainer_refresh(exphil_trainer *trainer);
/* Whole episodes in order, as a model wants them: the sampler of an evaluation, and its first batch. EXPHIL_E_MISMATCH,
 * EXPHIL_E_INVALID: dataset is not of the model's spec, is empty; batch is out of range. */
exphil_status xph_whole_sampler(const exphil_model *model, const exphil_dataset *dataset, int64_t batch,
                                xph_sampler **sampler, exphil_batch *first, exphil_error *error);
/* Logits of the last forward as doubles in wide [rows*L]; narrow is room for them as floats. */
exphil_status xph_feed_logits(const xph_feed *feed, float *narrow, double *wide);
/* Evaluation of given weights; what exphil_evaluate and exphil_trainer_evaluate share. */
exphil_status xph_evaluate(const exphil_model *model, const void *weights, const void *packed,
                           const exphil_dataset *dataset, const exphil_dataset *frequencies, const xph_losses *losses,
                           int64_t batch, exphil_report *report, exphil_error *error);

#endif
