/* A net as it is planned and run: where arguments of operations stand, lists of operations, buffers.
 *
 * A net (net.c) is planned by asking every layer to emit its operations once, forward and backward; segment.c
 * says what stays in between; plan.c keeps buffers and addresses, emit.c turns one operation into one
 * step. */
#ifndef XPH_MODEL_NET_PLAN_H
#define XPH_MODEL_NET_PLAN_H

#include "base/base.h"
#include "model/model.h"
#include "model/tensor_table.h"

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
    XPH_SPACE_DVALUES,
    XPH_SPACE_HOW,
    XPH_SPACE_NOISE,
    XPH_SPACE_DRAW,
    XPH_SPACE_PREVIOUS,
    XPH_SPACE_DRAWN,
    XPH_SPACE_LOSS, /* host: xph_loss_args of xph_net_learn */
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
#define XPH_STEP_ARGS(NAME, name) xph_##name##_args name;
typedef union xph_step_args {
    XPH_EACH_OP(XPH_STEP_ARGS)
    xph_copy_args copy;
} xph_step_args;
#undef XPH_STEP_ARGS
/* Where a device has heads and loss in one (XPH_HEADS_ALL), some steps are for it, and others for who makes the loss between
 * forward and backward. */
enum { XPH_WHEN_ALWAYS, XPH_WHEN_APART, XPH_WHEN_FUSED };
typedef struct xph_step {
    struct xph_step *next;
    xph_op op;
    int32_t when;
    xph_op_info chosen;   /* how the device does it; of a copy none */
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
    int64_t patch_count, patch_capacity;
    int64_t patch_states; /* the first of those of the states, which are the last */
    const void *base[XPH_SPACES];
    int64_t ld_state;
    int32_t lagging, back;
    xph_embed_table table[EXPHIL_IDS_MAX];
    unsigned char *arena; /* device */
    size_t arena_bytes;
    size_t logits_at, values_at, actions_at; /* in the arena */
    size_t kept_bytes;                       /* of the arena: what stays from forward to backward */
    xph_spare *spares;                       /* live as long as the net: recordings may hold them */
    bool recording, refused;                 /* refused: something in this recording */
    bool gives_actions;                      /* there is room for actions at actions_at */
    bool draws;                              /* the device makes its own noise: xph_net_io.draw */
    xph_joined_op *calls;                    /* of blocks and draw, for the device to do in one launch */
    int64_t call_count;
    bool joins;  /* it does, and has not refused */
    bool fuses;  /* there is a step of heads and loss in one, and it is not refused */
    int32_t now; /* XPH_WHEN_APART or FUSED: which steps run */
};

/* What the forward of a block leaves for its backward; every layer uses `more` in its own order. stored:
 * where it waits, where that is another place (segment.c). */
enum { XPH_SAVED_MORE = 6 };
typedef struct xph_saved {
    xph_ref x, u, stats, more[XPH_SAVED_MORE];
    xph_ref stored_x, stored[XPH_SAVED_MORE];
} xph_saved;

/* Why the forward of a block is emitted: for the first time; in backward, to make again all that was dropped;
 * or in backward, to make again what was not stored (xph_layer.bf16, exact) from what was. Only the first
 * time state moves on. */
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
    bool ends;    /* the block being emitted need not give its output */
    int32_t when; /* XPH_WHEN_... of the steps being emitted */
    xph_pass pass;
    xph_type type;             /* of what has a row per frame */
    int32_t math;              /* XPH_MATH_... of products */
    uint32_t element;          /* bytes of type */
    int64_t batch, time, rows; /* rows of the steps being emitted */
    size_t top, peak;          /* of the arena: a stack */
    size_t stored;             /* bytes of the store */
    size_t region;             /* of the arena from here on every segment of blocks keeps its activations */
    xph_ref x, dx; /* residual stream [rows,H], of another width before some blocks; its gradient */
    void **
        dx_sum; /* where the step that wrote dx last would add up its columns; NULL: it does not, or does already */
    xph_ref out;                      /* where the block being emitted gives its output; none: a new buffer */
    xph_ref row, stats, u, z, logits; /* input row; final norm, its output, trunk */
    xph_ref base;                     /* what logits start from */
    xph_ref value_z, values;          /* trunk of the value head, and what it says */
    bool units, value_units; /* heads, and that of the value, go by XPH_OP_HEADS_LOSS, on rows of type */
    xph_ref before[EXPHIL_HEADS_MAX][XPH_HEAD_LAYERS_MOST]; /* layers of the heads, before their activation */
    xph_saved saved[XPH_BLOCKS_MOST];
} xph_plan;

/* A buffer [rows,width] of plan->type on top of the arena, or of the model's reals. */
xph_ref xph_plan_buffer(xph_plan *plan, int64_t rows, int64_t width);
xph_ref xph_plan_reals(xph_plan *plan, int64_t rows, int64_t width);
/* Columns from `first` on. */
xph_ref xph_columns(xph_ref matrix, int64_t first);
/* Reals that only backward reads (args.saved of table A): none outside training. */
xph_ref xph_plan_kept(xph_plan *plan, int64_t rows, int64_t width);
/* The same by bytes, as query asks for (saved_bytes of table A): none for 0. */
xph_ref xph_plan_kept_bytes(xph_plan *plan, size_t bytes);
/* Where a block gives its output: plan->out or a new buffer in training, the memory of x otherwise. */
xph_ref xph_plan_next(xph_plan *plan, int64_t width);
/* count elements of so many bytes in the store. */
xph_ref xph_plan_store(xph_plan *plan, int64_t count, size_t element);
/* Appends a copy of args; NULL after a failure. */
xph_step *xph_plan_step(xph_plan *plan, xph_op op, const void *args, size_t bytes);
/* slot, inside a step or the net, will hold the address of ref. */
void xph_plan_bind(xph_plan *plan, void *slot, xph_ref ref);
/* Scratch as the device asks for this operation, free again for the next. */
void xph_plan_scratch(xph_plan *plan, xph_step *step, void *slot);
/* The device refused the candidate of a planned step: the next one, with scratch as it wants it.
 * EXPHIL_E_UNSUPPORTED: none is left. */
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
void xph_emit_linear_of_reals(xph_plan *plan, xph_ref x, int64_t weight, int64_t bias, xph_ref residual,
                              xph_ref y); /* x, residual and y are reals */
void xph_emit_linear(xph_plan *plan, xph_ref x, int64_t weight, int64_t bias, xph_ref residual, xph_ref y);
/* dx none: not wanted; add: dx +=. */
void xph_emit_linear_grad(xph_plan *plan, xph_ref x, int64_t weight, int64_t bias, xph_ref dy, xph_ref dx,
                          bool add);
void xph_emit_linear_grad_of_reals(xph_plan *plan, xph_ref x, int64_t weight, int64_t bias, xph_ref dy,
                                   xph_ref dx);
/* For a linear whose dy is plan->dx, before it is emitted: the index of its bias, or -1 where the step that wrote dx adds up the
 * bias's gradient. */
int64_t xph_plan_bias_of_dx(xph_plan *plan, int64_t bias);
/* gain is the index of the norm's weight, its shift follows. stats none: not kept. */
void xph_emit_norm(xph_plan *plan, xph_ref x, int64_t gain, int32_t act, xph_ref stats, xph_ref y);
void xph_emit_norm_grad(xph_plan *plan, xph_ref x, int64_t gain, int32_t act, xph_ref stats, xph_ref dy,
                        xph_ref dx, bool add);
/* count reals from as (XPH_BF16, XPH_F16) or, narrow, to it. */
void xph_emit_cast(xph_plan *plan, xph_type as, bool narrow, int64_t count, xph_ref from, xph_ref to);
/* A dense buffer of plan->type as reals, and one of reals as plan->type: itself where they are the same. */
xph_ref xph_emit_reals(xph_plan *plan, xph_ref from, int64_t rows);
xph_ref xph_emit_typed(xph_plan *plan, xph_ref from, int64_t rows);
/* Scratch of a planned draw, and where it finds what a call gives: of heads from `head` on. */
void xph_bind_draw(xph_plan *plan, xph_step *step, int64_t head);
void xph_emit_copy(xph_plan *plan, size_t bytes, xph_ref from, xph_ref to);
/* Whether the device has heads of this shape on matrix units (XPH_OP_HEADS_LOSS), in this net. */
bool xph_plan_has_units(const xph_plan *plan, const xph_heads_args *shape);
/* Heads and their gradients, on matrix units or by their own operations; give the arguments whose addresses are to be bound, NULL
 * after a failure. units: z, base and dz are of plan->type, and dz_sum is added up. */
xph_heads_args *xph_emit_heads(xph_plan *plan, const xph_heads_args *args, bool units);
xph_heads_grad_args *xph_emit_heads_grad(xph_plan *plan, const xph_heads_grad_args *args, bool units);
/* part: XPH_HEADS_... */
xph_heads_loss_args *xph_emit_units(xph_plan *plan, int32_t part, const xph_heads_grad_args *args);
/* y = act(x) over dense buffers, kind as in XPH_ACTIVATE_...; low and high are of CLAMP. y may be x, dx dy. */
void xph_emit_activate(xph_plan *plan, int32_t kind, const double limits[2], xph_ref x, xph_ref y);
void xph_emit_activate_grad(xph_plan *plan, int32_t kind, const double limits[2], xph_ref x, xph_ref dy,
                            xph_ref dx);
/* What every block begins with: s->x, s->stats, s->u = LayerNorm(x); gain as in xph_emit_norm, -1: u is x. And the
 * gradient of the norm: dx += that of x. */
void xph_emit_enter(xph_plan *plan, int64_t gain, xph_saved *s);
void xph_emit_leave(xph_plan *plan, int64_t gain, const xph_saved *s, xph_ref du);
/* What it gives to the next, if that is wanted: x + y, x + linear(y), or y alone. */
void xph_emit_out(xph_plan *plan, const xph_saved *s, xph_ref y);
void xph_emit_out_linear(xph_plan *plan, const xph_saved *s, xph_ref y, int64_t weight, int64_t bias);
void xph_emit_out_alone(xph_plan *plan, xph_ref y);

#endif
