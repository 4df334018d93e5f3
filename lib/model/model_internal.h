/* The model as the files of this room see it: configuration, table of tensors, blocks, and what plans a
 * net.
 *
 * Creation: config.c checks and fills in defaults, pattern.c reads the blocks, every layer declares its
 * tensors and its state, model.c lays them out and init.c fills them. A net (net.c) is planned by asking
 * every layer to emit its operations once, forward and backward; segment.c says what stays in between;
 * plan.c keeps buffers and addresses, emit.c turns one operation into one step. */
#ifndef XPH_MODEL_INTERNAL_H
#define XPH_MODEL_INTERNAL_H

#include "base/base.h"
#include "model/model.h"

#define XPH_BLOCKS_MOST 64
#define XPH_BLOCKS_TEXT 256 /* characters of a pattern, its end among them */

/* ---- tensors ------------------------------------------------------------------------------------------- */

/* How a tensor starts (init.c). scale: half-width of the uniform distributions. */
typedef int32_t xph_init;
enum {
    XPH_INIT_ZERO,
    XPH_INIT_ONE,
    XPH_INIT_UNIFORM,
    XPH_INIT_STATES, /* [D,N]: log(1..N) in every row */
    XPH_INIT_REPEAT, /* [L, slots*L]: scale where a logit meets itself in the newest past action */
    XPH_INIT_BITS,   /* [L]: -scale for the bits of Bernoulli heads, else 0 */
    XPH_INIT_DT      /* softplus of it is log-uniform in [1e-3, 1e-1] */
};

typedef struct xph_tensor {
    xph_param param;
    xph_init init;
    double scale;
    int32_t packs;                  /* 1: has a packed form, of a matrix [out,in] */
    int32_t prepares;               /* 1: has a prepared form instead, the decay of a scan [width,states] */
    int32_t keeps;                  /* when weights are rounded: 0 or an XPH_KEEPS */
    int32_t bias, reserved;         /* of a matrix: index of the vector that its products add, or -1 */
    size_t packed_at, packed_bytes; /* in the packed arena; 0 bytes: the device wants none */
} xph_tensor;

/* ---- blocks -------------------------------------------------------------------------------------------- */

typedef int32_t xph_block_kind;
enum {
    XPH_BLOCK_MAMBA,
    XPH_BLOCK_LSTM,
    XPH_BLOCK_GRU,
    XPH_BLOCK_ATTENTION,
    XPH_BLOCK_MLP,
    XPH_BLOCK_FFN,
    XPH_BLOCK_KINDS
};

typedef struct xph_block {
    xph_block_kind kind;
    int32_t first;           /* index of its first tensor; the others follow in the layer's order */
    int64_t state_at, state; /* place and reals of its state in that of a stream */
} xph_block;

/* ---- model --------------------------------------------------------------------------------------------- */

struct exphil_model {
    exphil_context *context;
    xph_device *device;
    atomic_int references;        /* the caller's handle and every child */
    exphil_spec *spec;            /* own copy */
    exphil_model_config config;   /* defaults filled in; spec and blocks point into this model */
    char blocks[XPH_BLOCKS_TEXT]; /* the pattern as it was given */
    xph_block block[XPH_BLOCKS_MOST];
    int64_t block_count;
    xph_tensor *tensor; /* in the order input, ids, blocks, norm, heads */
    int64_t tensor_count, tensor_room;
    int32_t input_first, norm_first, heads_first; /* indices of tensors */
    int32_t reserved;
    int64_t row; /* width of an input row: floats + ids + past actions */
    xph_head head[EXPHIL_HEADS_MAX];
    xph_model_shape shape;
    void *weights;      /* device */
    xph_mutex *packing; /* guards packed */
    void *packed;       /* device; NULL until somebody wants it, and after a change */
    bool packed_valid;
    uint64_t updates, frames;      /* training that the weights have seen */
    exphil_comparison calibration; /* of a quantised model, if calibrated */
    bool calibrated;
};

/* Fills *known from given (NULL: all defaults) with every 0 replaced. spec stays as given, NULL included. */
exphil_status xph_model_config_resolve(const exphil_model_config *given, exphil_model_config *known,
                                       exphil_error *error);
/* Reads a pattern: kinds[XPH_BLOCKS_MOST] and their number. EXPHIL_E_INVALID names the column, counted
 * from 1. */
exphil_status xph_pattern_read(const char *text, xph_block_kind *kinds, int64_t *count, exphil_error *error);

/* Everything but the weights, which have no memory yet: what a file is compared with before it costs any.
 * Then the memory, zero. make does both; init fills it by the seed. model is not NULL in outline. narrow as in
 * xph_model_shape; EXPHIL_E_UNSUPPORTED when the device cannot hold weights so. */
exphil_status xph_model_outline(exphil_context *context, const exphil_model_config *config, xph_type narrow,
                                exphil_model **model, exphil_error *error);
exphil_status xph_model_zero(exphil_model *model, exphil_error *error);
exphil_status xph_model_make(exphil_context *context, const exphil_model_config *config, xph_type narrow,
                             exphil_model **model, exphil_error *error);
exphil_status xph_model_init(exphil_model *model, exphil_error *error);

/* Fills the table of tensors, their places and the sizes in shape (declare.c). */
exphil_status xph_model_declare(exphil_model *model, exphil_error *error);
/* All packed forms of an arena of weights. */
exphil_status xph_model_pack(const exphil_model *model, xph_stream *stream, xph_type type,
                             const void *weights, void *packed);

/* What a tensor is rounded to where weights are rounded to narrow (0: nowhere), and in this model; 0: it is not. */
xph_type xph_tensor_narrow(const xph_tensor *tensor, xph_type narrow);
xph_type xph_model_narrow(const exphil_model *model, int64_t index);
/* EXPHIL_E_STATE about a model whose weights are rounded, else EXPHIL_OK. */
exphil_status xph_model_check_plain(const exphil_model *model, const char *what, exphil_error *error);
/* The name of an EXPHIL_TYPE, "?" for what is none. */
const char *xph_type_word(int32_t type);
/* A comparison that may stand with this model: EXPHIL_E_INVALID names the field. */
exphil_status xph_calibration_check(const exphil_model *model, const exphil_comparison *comparison,
                                    exphil_error *error);

/* Index of a tensor, -1 for an unknown name. */
int64_t xph_model_find(const exphil_model *model, const char *name);
/* True while nobody but the caller's handle uses the model: its weights may be changed. */
bool xph_model_alone(const exphil_model *model);
/* Elements [first, first + count) of an arena, device to host and host to this model's arena. push lets
 * the packed form be made anew. weights NULL: the model's own. */
exphil_status xph_model_pull(const exphil_model *model, const void *weights, int64_t first, int64_t count,
                             void *host, exphil_error *error);
exphil_status xph_model_push(exphil_model *model, int64_t first, int64_t count, const void *host,
                             exphil_error *error);

/* ---- declaring tensors (declare.c; the layers call it) ------------------------------------------------- */

/* Collects the table; the first failure sticks and makes the rest do nothing. prefix: "blocks.0." or "". */
typedef struct xph_declaring {
    exphil_model *model;
    exphil_error *error;
    exphil_status status;
    char prefix[32];
} xph_declaring;

enum {
    XPH_DECAYS = 1,
    XPH_PACKS = 2,
    XPH_KEEPS_HALF = 4, /* packs, but never with less than a bfloat16 */
    XPH_KEEPS_ALL = 8,  /* packs, and is never rounded */
    XPH_PREPARES = 16   /* is the a_log of a scan, which the device may prepare (scan_pack) */
};
/* columns 0: a vector of rows elements. */
void xph_declare(xph_declaring *to, const char *name, int64_t rows, int64_t columns, int32_t flags,
                 xph_init init, double scale);
/* The vector that products with the matrix add which was declared so many tensors before. */
void xph_declare_bias(xph_declaring *to, int32_t before, const char *name, int64_t rows, xph_init init,
                      double scale);
/* "<name>.weight" [out,in], uniform +-scale/sqrt(in), and "<name>.bias" [out], zero. */
void xph_declare_linear(xph_declaring *to, const char *name, int64_t in, int64_t out, double scale);
/* "<name>.weight" and "<name>.bias" [width] of a LayerNorm, one and zero. */
void xph_declare_norm(xph_declaring *to, const char *name, int64_t width);
/* 1/sqrt(number of blocks): on what a block adds to its input, so that depth does not change the scale of
 * the sum. */
double xph_residual_scale(const exphil_model *model);

/* ---- planning a net (plan.c) --------------------------------------------------------------------------- */

/* What an address in the arguments of an operation stands in. All but the arena change from call to call. */
typedef int32_t xph_space;
enum {
    XPH_SPACE_NONE,  /* NULL */
    XPH_SPACE_ARENA, /* of the net: activations, gradients of them, scratch */
    XPH_SPACE_STORE, /* behind it: what waits for backward while the arena is used again */
    XPH_SPACE_WEIGHTS,
    XPH_SPACE_PACKED,
    XPH_SPACE_GRADIENTS,
    XPH_SPACE_FLOATS,
    XPH_SPACE_IDS,
    XPH_SPACE_PAST,
    XPH_SPACE_ACTIONS,
    XPH_SPACE_RESET,
    XPH_SPACE_STATE_IN,
    XPH_SPACE_STATE_OUT,
    XPH_SPACE_LD_STATE, /* not an address: the stride itself */
    XPH_SPACE_LAGGING,  /* nor this: xph_net_io.lagging */
    XPH_SPACE_BACK,     /* nor this: xph_net_io.back */
    XPH_SPACE_DLOGITS,
    XPH_SPACE_HOW,
    XPH_SPACE_NOISE,
    XPH_SPACE_PREVIOUS,
    XPH_SPACE_DRAWN,
    XPH_SPACES
};

/* A matrix somewhere: offset in bytes, ld in elements. {0} is "none" and becomes NULL. */
typedef struct xph_ref {
    xph_space space;
    uint32_t element; /* bytes, of a buffer */
    int64_t at, ld;
} xph_ref;

/* One operation with its arguments; programs are lists in the order of running. */
enum { XPH_STEP_COPY = XPH_OP_COUNT };
typedef struct xph_copy_args {
    void *to;
    const void *from;
    size_t bytes;
} xph_copy_args;
typedef union xph_step_args {
    xph_linear_args linear;
    xph_linear_grad_args linear_grad;
    xph_norm_args norm;
    xph_norm_grad_args norm_grad;
    xph_conv_args conv;
    xph_conv_grad_args conv_grad;
    xph_scan_args scan;
    xph_scan_grad_args scan_grad;
    xph_attention_args attention;
    xph_attention_grad_args attention_grad;
    xph_rnn_args rnn;
    xph_rnn_grad_args rnn_grad;
    xph_embed_args embed;
    xph_embed_grad_args embed_grad;
    xph_heads_args heads;
    xph_heads_grad_args heads_grad;
    xph_sample_args sample;
    xph_axpby_args axpby;
    xph_cast_args cast;
    xph_copy_args copy;
} xph_step_args;
typedef struct xph_step {
    struct xph_step *next;
    xph_op op;
    uint32_t refused;     /* candidates that the device does not take for it (xph_op_info) */
    void **scratch;       /* the slot in args, or NULL: has none */
    size_t scratch_bytes; /* that lie there */
    xph_step_args args;
} xph_step;
typedef struct xph_program {
    xph_step *first, *last;
} xph_program;

/* Scratch of a step whose candidate was refused after planning, free for the next step like all scratch. */
typedef struct xph_spare {
    struct xph_spare *next;
    void *address; /* device */
    size_t bytes;
} xph_spare;

/* A slot in some arguments that gets base[space] + at before a run. */
typedef struct xph_patch {
    void *slot;
    int64_t at;
    xph_space space;
    int32_t reserved;
} xph_patch;

struct xph_net {
    exphil_model *model; /* retained */
    const xph_backend *backend;
    xph_stream *stream;
    int64_t batch, time;
    uint32_t flags;
    xph_type type;   /* of rows */
    int32_t patched; /* 1: the slots hold base */
    xph_program blocks, heads, draw,
        backward; /* input and blocks; heads of all rows; of the last rows; gradients */
    xph_patch *patch;
    int64_t patch_count, patch_room;
    int64_t patch_states; /* the first of those of the states, which are the last */
    const void *base[XPH_SPACES];
    int64_t ld_state;
    int32_t lagging, back;
    xph_embed_table table[EXPHIL_IDS_MAX];
    unsigned char *arena; /* device */
    size_t arena_bytes;
    size_t logits_at; /* in the arena */
    xph_spare *spares; /* live as long as the net: recordings may hold them */
    bool recording, refused; /* refused: something in this recording */
};

/* What the forward of a block leaves for its backward; every layer uses `more` in its own order. stored: where it
 * waits, where that is another place (segment.c). */
enum { XPH_SAVED_MORE = 6 };
typedef struct xph_saved {
    xph_ref x, u, stats, more[XPH_SAVED_MORE];
    xph_ref stored_x, stored[XPH_SAVED_MORE];
} xph_saved;

/* Why the forward of a block is emitted: for the first time; in backward, to make again all that was dropped; or in
 * backward, to make again what was not stored (xph_layer.bf16, exact) from what was. Only the first time state moves
 * on. */
typedef int32_t xph_pass;
enum { XPH_PASS_FIRST, XPH_PASS_AGAIN, XPH_PASS_RESTORE };

/* Alive while a net is being planned. The first failure sticks and makes the rest do nothing. */
typedef struct xph_plan {
    xph_net *net;
    const exphil_model *model;
    xph_program *program; /* where steps go */
    exphil_error *error;
    exphil_status status;
    bool train;
    bool ends; /* the block being emitted need not give its output */
    xph_pass pass;
    xph_type type;             /* of what has a row per frame */
    int32_t math;              /* XPH_MATH_... of products */
    uint32_t element;          /* bytes of type */
    int64_t batch, time, rows; /* rows of the steps being emitted */
    size_t top, peak;          /* of the arena: a stack */
    size_t stored;             /* bytes of the store */
    size_t region;             /* of the arena from here on every segment of blocks keeps its activations */
    xph_ref x, dx;             /* residual stream [rows,H] and its gradient */
    xph_ref out;               /* where the block being emitted gives its output; none: a new buffer */
    xph_ref row, stats, u, z, logits; /* input row; final norm, its output, trunk */
    xph_saved saved[XPH_BLOCKS_MOST];
} xph_plan;

/* A buffer [rows,width] of plan->type on top of the arena, or of the model's reals. */
xph_ref xph_plan_buffer(xph_plan *plan, int64_t rows, int64_t width);
xph_ref xph_plan_reals(xph_plan *plan, int64_t rows, int64_t width);
/* Columns from `first` on. */
xph_ref xph_columns(xph_ref matrix, int64_t first);
/* Reals that only backward reads (args.saved of table A): none outside training. */
xph_ref xph_plan_kept(xph_plan *plan, int64_t rows, int64_t width);
/* Where a block writes x + f(x): plan->out or a new buffer in training, x itself otherwise. */
xph_ref xph_plan_next(xph_plan *plan);
/* count elements of so many bytes in the store. */
xph_ref xph_plan_store(xph_plan *plan, int64_t count, size_t element);
/* Appends a copy of args; NULL after a failure. */
xph_step *xph_plan_step(xph_plan *plan, xph_op op, const void *args, size_t bytes);
/* slot, inside a step or the net, will hold the address of ref. */
void xph_plan_bind(xph_plan *plan, void *slot, xph_ref ref);
/* Scratch as the device asks for this operation, free again for the next. */
void xph_plan_scratch(xph_plan *plan, xph_step *step, void *slot);
/* The device refused the candidate of a planned step: the next one, with scratch as it wants it. EXPHIL_E_UNSUPPORTED:
 * none is left. */
exphil_status xph_plan_next_candidate(xph_net *net, xph_step *step);

/* Where a tensor, its gradient and its packed form stand; index -1: none. */
xph_ref xph_weight(const xph_plan *plan, int64_t index);
xph_ref xph_gradient(const xph_plan *plan, int64_t index);
xph_ref xph_packed(const xph_plan *plan, int64_t index);
/* Binds the state of a block, from real `first` of it on, and its stride. */
void xph_plan_bind_state(xph_plan *plan, const xph_block *block, int64_t first, const void **state_in,
                         void **state_out, int64_t *ld_state);
/* Memory for the arena and all addresses in it. */
exphil_status xph_plan_finish(xph_plan *plan);

/* ---- operations that several layers share (emit.c) ----------------------------------------------------- */

/* A product within another operation: its shape, and its addresses. */
xph_linear_args xph_linear_shape(const xph_plan *plan, xph_ref x, int64_t weight, xph_ref y);
void xph_bind_linear(xph_plan *plan, xph_linear_args *a, xph_ref x, int64_t weight, int64_t bias,
                     xph_ref residual, xph_ref y);
/* y = x W^T + bias + residual; weight and bias are indices of tensors, bias -1: none. */
void xph_emit_linear(xph_plan *plan, xph_ref x, int64_t weight, int64_t bias, xph_ref residual, xph_ref y);
/* dx none: not wanted; add: dx +=. */
void xph_emit_linear_grad(xph_plan *plan, xph_ref x, int64_t weight, int64_t bias, xph_ref dy, xph_ref dx,
                          bool add);
/* gain is the index of the norm's weight, its shift follows. stats none: not kept. */
void xph_emit_norm(xph_plan *plan, xph_ref x, int64_t gain, int32_t act, xph_ref stats, xph_ref y);
void xph_emit_norm_grad(xph_plan *plan, xph_ref x, int64_t gain, int32_t act, xph_ref stats, xph_ref dy,
                        xph_ref dx, bool add);
/* count reals from as (XPH_BF16, XPH_F16) or, narrow, to it. */
void xph_emit_cast(xph_plan *plan, xph_type as, bool narrow, int64_t count, xph_ref from, xph_ref to);
/* A dense buffer of plan->type as reals, and one of reals as plan->type: itself where they are the same. */
xph_ref xph_emit_reals(xph_plan *plan, xph_ref from, int64_t rows);
xph_ref xph_emit_typed(xph_plan *plan, xph_ref from, int64_t rows);
void xph_emit_copy(xph_plan *plan, size_t bytes, xph_ref from, xph_ref to);
/* What every block begins with: s->x, s->stats, s->u = LayerNorm(x); gain as in xph_emit_norm. And its
 * gradient: dx += that of x. */
void xph_emit_enter(xph_plan *plan, int64_t gain, xph_saved *s);
void xph_emit_leave(xph_plan *plan, int64_t gain, const xph_saved *s, xph_ref du);
/* What it gives to the next, if that is wanted: x + y, or x + linear(y). */
void xph_emit_out(xph_plan *plan, const xph_saved *s, xph_ref y);
void xph_emit_out_linear(xph_plan *plan, const xph_saved *s, xph_ref y, int64_t weight, int64_t bias);

/* ---- layers -------------------------------------------------------------------------------------------- */

typedef struct xph_layer {
    const char *name;                                     /* its word in a pattern */
    void (*declare)(xph_declaring *to, xph_block *block); /* tensors and state */
    void (*forward)(xph_plan *plan, const xph_block *block, xph_saved *saved);
    void (*backward)(xph_plan *plan, const xph_block *block, const xph_saved *saved);
    /* Of xph_saved.more by bit: what is stored for backward where activations are bfloat16, as such or as it is. The
     * rest is made again from it, or not read by backward. */
    uint32_t bf16, exact;
} xph_layer;
extern const xph_layer xph_layer_mamba, xph_layer_lstm, xph_layer_gru, xph_layer_attention, xph_layer_mlp,
    xph_layer_ffn;
const xph_layer *xph_layer_of(xph_block_kind kind); /* NULL past the last */

/* All blocks, and where their activations wait for backward (segment.c). */
void xph_blocks_forward(xph_plan *plan);
void xph_blocks_backward(xph_plan *plan);

void xph_input_declare(xph_declaring *to);
void xph_input_forward(xph_plan *plan);
void xph_input_backward(xph_plan *plan);

void xph_heads_declare(xph_declaring *to);
void xph_heads_forward(xph_plan *plan);
void xph_heads_backward(xph_plan *plan);
void xph_heads_draw(xph_plan *plan); /* last frame of every stream */

#endif
