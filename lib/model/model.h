/* Door of lib/model: what training and play may use of a model. Stands on lib/device and lib/file.
 *
 * A model owns one arena of weights on its device, in the order: tensors that decay (matrices), then those
 * that do not. A net is a plan for one shape (B, T): it owns activations and scratch, made once; forward and
 * backward allocate nothing. Several nets may share one model. Weights are passed at each call, so a trainer
 * runs nets on its own copy. */
#ifndef XPH_MODEL_MODEL_H
#define XPH_MODEL_MODEL_H

#include "base/base.h"
#include "device/device.h"
#include "file/file.h"

/* One tensor of the arena. */
typedef struct xph_param {
    char name[128];
    int32_t rank, decays; /* decays: 1 for matrices that weight decay applies to */
    int64_t dim[4];
    int64_t offset, count; /* elements in the arena; offset is a multiple of 16 */
} xph_param;

/* Dimensions that the other rooms need, fixed at creation. */
typedef struct xph_model_shape {
    xph_type type;   /* of arithmetic: F32 or F64 */
    xph_type narrow; /* XPH_BF16 or XPH_I8: what xph_model_round rounds is rounded; 0: a plain model */
    int32_t mode, delay, slots; /* slots: past actions that are inputs */
    int32_t neutral_start;
    int32_t autoregressive; /* 1: the logits of a head depend on the values of the heads before it */
    int64_t window;         /* frames, 0 in carry mode */
    int64_t floats, ids, heads, logits, hidden;
    int32_t value, detached;   /* 1: there is a value head; its gradient ends before the blocks */
    int64_t told, tables;      /* columns of xph_model_told; ids + told: what the net takes as ids */
    int64_t state;             /* reals of recurrent state per stream */
    int64_t weights, decaying; /* elements of the arena (padding included, zero); the first of which decay */
    size_t real_bytes;         /* 4 or 8 */
    size_t packed_bytes;       /* of packed weights */
    uint64_t spec_hash;
} xph_model_shape;

const xph_model_shape *xph_model_shape_of(const exphil_model *model);
exphil_context *xph_model_context(const exphil_model *model);
const exphil_spec *xph_model_spec(const exphil_model *model);
const xph_told *xph_model_told(const exphil_model *model);
const xph_head *xph_model_heads(const exphil_model *model); /* [heads], with first logits */
int64_t xph_model_param_count(const exphil_model *model);
const xph_param *xph_model_param(const exphil_model *model, int64_t index);
const void *xph_model_weights(const exphil_model *model); /* device address of the arena */
/* Packed form of the weights, made once and shared by all sessions. */
exphil_status xph_model_packed(exphil_model *model, const void **packed, exphil_error *error);
/* Children: retain makes tensor_set refuse; release destroys with the last. const: the count is atomic. */
exphil_model *xph_model_retain(const exphil_model *model);
void xph_model_release(exphil_model *model);
/* Notes (exphil/notes.h): a checked copy in context memory; text NULL: none. take replaces what was there, or leaves it and
 * fails; text may be NULL. */
typedef struct xph_notes {
    char *text;
    size_t bytes; /* with its end */
} xph_notes;
exphil_status xph_notes_take(exphil_context *context, const char *text, xph_notes *notes,
                             exphil_error *error);
void xph_notes_free(exphil_context *context, xph_notes *notes);
exphil_status xph_model_take_notes(exphil_model *model, const char *text, exphil_error *error);
const char *xph_model_notes(const exphil_model *model); /* NULL: none */
/* Same configuration and notes, given weights (device address, copied) and training counters. */
exphil_status xph_model_with_weights(const exphil_model *like, const void *weights, uint64_t updates,
                                     uint64_t frames, exphil_model **model, exphil_error *error);
/* Same configuration in another context, all weights 0; like NULL: of config. */
exphil_status xph_model_blank(exphil_context *context, const exphil_model *like,
                              const exphil_model_config *config, exphil_model **model, exphil_error *error);
/* The same configuration, weights, counters and notes in another context. */
exphil_status xph_model_copy(exphil_context *context, const exphil_model *from, exphil_model **copy,
                             exphil_error *error);
void xph_model_trained(const exphil_model *model, uint64_t *updates, uint64_t *frames);
/* The matrices that have a packed form, as weights of fewer bits hold them (XPH_OP_ROUND); the rest as it is.
 * from and to are arenas of the device and may be the same. Ask xph_model_can_round first:
 * EXPHIL_E_UNSUPPORTED names what cannot be. */
exphil_status xph_model_can_round(const exphil_model *model, xph_type narrow, exphil_error *error);
exphil_status xph_model_round(const exphil_model *model, xph_stream *stream, xph_type narrow,
                              const void *from, void *to);
/* The same with an arena into the model's own, which may be the same; nobody else uses the model yet. */
exphil_status xph_model_take_rounded(exphil_model *model, xph_type narrow, const void *from,
                                     exphil_error *error);
/* Hash of configuration (not of weights): equal for models whose optimizer states fit each other. */
uint64_t xph_model_config_hash(const exphil_model *model);
/* Makes the packed form and the hash, once, from any thread; and what was made: false if it was not. Hot. */
exphil_status xph_model_prepare(const exphil_model *model, exphil_error *error);
bool xph_model_prepared(const exphil_model *model, const void **packed, uint64_t *hash);
/* Hash of configuration and weights. */
exphil_status xph_model_weights_hash(const exphil_model *model, uint64_t *hash, exphil_error *error);
/* What a weights file says of its history. notes NULL: none. */
typedef struct xph_trained {
    uint64_t updates, frames;
    const char *notes;
} xph_trained;
/* Writes a safetensors file from given weights (device) as exphil_model_save does, with extra metadata pairs.
 * Begins only: the caller commits, so that several files can change together. */
size_t xph_model_write_bytes(const exphil_model *model); /* that writing takes of host memory */
exphil_status xph_model_write(const exphil_model *model, const void *weights, const xph_trained *trained,
                              const xph_pair *extra, int64_t extra_count, const char *path,
                              xph_file_writer *writer, exphil_error *error);

/* Index of the tensor that holds arena element i, -1 for padding. */
int64_t xph_model_param_at(const exphil_model *model, int64_t element);

/* ---- nets ---------------------------------------------------------------------------------------------- */

typedef struct xph_net xph_net;
enum {
    XPH_NET_TRAIN = 1,      /* keeps what backward needs */
    XPH_NET_INLINE = 2,     /* one thread, for play */
    XPH_NET_PLAIN = 4,      /* attention by the plain method: the same bits however frames are cut up */
    XPH_NET_BF16 = 8,       /* training: what stays for backward is bfloat16 (segment.c) */
    XPH_NET_DRAWS_ALL = 16, /* sample draws on all rows, not on the last frame of every stream */
    XPH_NET_JOINS = 32      /* for xph_net_play alone, without resets */
};
/* Training: activations of every n blocks (0: of none) are dropped after forward and made again in backward
 * from the input of the first of them; gradients are the same to the last bit. In flags. */
#define XPH_NET_CHECKPOINT(n)       ((uint32_t)(n) << 16)
/* EXPHIL_PRECISION_... that the device offers; in flags. Weights, states, logits and gradients are floats in
 * all. */
#define XPH_NET_PRECISION(p)        ((uint32_t)(p) << 8)
#define XPH_NET_PRECISION_OF(flags) ((flags) >> 8 & 0xffu)

/* Device addresses; M = B*T rows. state_in/state_out [B, state] stride ld_state, may be the same when not
 * training. */
typedef struct xph_net_io {
    const float *floats;    /* [M, F] */
    const int32_t *ids;     /* [M, tables]: those of the frame, then the conditions */
    const int32_t *past;    /* [M, slots*A] */
    const int32_t *actions; /* [M, A] what was done (targets); needed for autoregressive heads */
    const uint8_t *reset;   /* [M] or NULL */
    const xph_draw *draw;   /* of a draw: [B] as in xph_sample_args, or NULL; only where xph_net_draws */
    const void *state_in;
    void *state_out;
    int64_t ld_state;
    /* state_out already holds what was state_in one frame ago (T is 1): what did not change in it need not be
     * written. */
    int32_t lagging;
    /* nonzero: packed weights better from their end. Changed from frame to frame, what was read last, and is
     * still in a cache, is read first. The same bits. */
    int32_t back;
} xph_net_io;

exphil_status xph_net_create(const exphil_model *model, int64_t batch, int64_t time, uint32_t flags,
                             xph_net **net, exphil_error *error);
void xph_net_destroy(xph_net *net);
xph_stream *xph_net_stream(const xph_net *net);
/* Records work on the net's stream, where the backend can. The work must have run before, so that nothing is
 * found out while it is recorded; what fails all the same (a library that refuses in a recording alone) gives
 * no graph and is no reason to end anything: run the work unrecorded, and it settles what was refused. */
exphil_status xph_net_record(xph_net *net, exphil_status (*work)(void *arg), void *arg, xph_graph **graph);
size_t xph_net_bytes(const xph_net *net);      /* activations and scratch */
size_t xph_net_planning_bytes(void);           /* host memory, while one is made */
size_t xph_net_kept_bytes(const xph_net *net); /* of them, what forward leaves for backward */
/* Operations as they were planned, in the order of running. part: "blocks"; then "heads", of all rows, and in
 * training "backward"; or "draw", of the last rows. Addresses that a call gives are stood for by some that are
 * not NULL. args of a copy, whose op is XPH_OP_COUNT, is NULL. */
typedef void (*xph_net_visit)(void *arg, const char *part, xph_op op, const xph_op_info *chosen,
                              const void *args);
void xph_net_show(xph_net *net, xph_net_visit visit, void *arg);
/* weights -> packed (both device; packed is shape.packed_bytes). After every update. */
exphil_status xph_net_pack(xph_net *net, const void *weights, void *packed);
/* Blocks and heads, teacher-forced; logits [M, L] stay in the net until the next forward. */
exphil_status xph_net_forward(xph_net *net, const void *weights, const void *packed, const xph_net_io *io);
void *xph_net_logits(const xph_net *net); /* device [M, L], real */
void *xph_net_values(const xph_net *net); /* likewise [M]; NULL: the model has no value head */
/* Device [B, A]: room for what a net for play (XPH_NET_INLINE) draws, on a device with memory of its own, else NULL. Behind it
 * lie the values, then the logits, so that one copy takes all of a step. */
void *xph_net_actions(const xph_net *net);
/* After forward with the same io: dlogits [M, L], and with a value head dvalues [M] -> gradients, += into an arena
 * shaped as the weights. */
exphil_status xph_net_backward(xph_net *net, const void *weights, const void *packed, const xph_net_io *io,
                               const void *dlogits, const void *dvalues, void *gradients);
/* Forward, loss and backward at once, where the device has heads and loss in one for this net; nothing is left in
 * xph_net_logits, and the value head does not run. dlogits is room for them. EXPHIL_E_UNSUPPORTED: the device refused it,
 * gradients are as before, and the net fuses no more. */
bool xph_net_fuses(const xph_net *net);
exphil_status xph_net_learn(xph_net *net, const void *weights, const void *packed, const xph_net_io *io,
                            const xph_loss_args *loss, void *dlogits, void *gradients);
/* Blocks, then the heads draw the action of the last frame of every stream: how [A], noise [B,L] or NULL,
 * previous [B,A] or NULL, actions [B,A] as in xph_sample_args; xph_net_logits then holds [B,L], xph_net_values [B]. So a step in
 * carry mode is a net (B,1), in window mode a net (B,window) whose state is not given. With
 * XPH_NET_DRAWS_ALL there are M rows where there are B here. */
exphil_status xph_net_sample(xph_net *net, const void *weights, const void *packed, const xph_net_io *io,
                             const xph_sample_head *how, const float *noise, const int32_t *previous,
                             int32_t *actions);
/* The same, and what it made is downloaded: results, from where it would lie on the device. Of a net with XPH_NET_JOINS nothing
 * else may be asked for; where the device does it all in one launch (xph_net_joins), inputs may lie in memory of host_alloc, and
 * results are not left on the device. */
exphil_status xph_net_play(xph_net *net, const void *weights, const void *packed, const xph_net_io *io,
                           const xph_sample_head *how, const float *noise, const int32_t *previous,
                           int32_t *actions, const xph_download *results, int64_t result_count);
bool xph_net_joins(const xph_net *net);
bool xph_net_draws(const xph_net *net); /* whether the device makes its own noise */
/* After sample, whose io had actions: logits [M, L] of all rows with what was done, as of forward. */
exphil_status xph_net_heads(xph_net *net);

#endif
