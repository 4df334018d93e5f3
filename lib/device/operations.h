/* Operations of table A (backend.h): their list, and the arguments of each.
 *
 * Operations are whole layer pieces (forward, backward; a streaming step is the forward with time 1). All
 * pointers in args are addresses on the device of the stream unless marked host.
 *
 * Letters: B batch (streams), T time (frames), M = B*T rows (row b*T + t), D width, H hidden, N scan states,
 * A heads, L logits of all action heads together, R width of the action-head trunk. Matrices are row-major;
 * ld* is the distance between rows in elements. `real` is float or double as args.type says.
 *
 * Sequences: reset is uint8 [B*T], nonzero where a frame starts an episode: what was carried is zero from
 * there on and nothing before it is seen; NULL = no resets. state_in/state_out are per stream, stride
 * ld_state elements; they may be the same memory (play). Gradients marked += are accumulated, all others are
 * overwritten. Nothing flows back through state_in unless dstate_in is given. Every sum has one fixed order,
 * whatever the number of threads. */
#ifndef XPH_DEVICE_OPERATIONS_H
#define XPH_DEVICE_OPERATIONS_H

#include <exphil/exphil.h>

typedef int32_t xph_type;
enum { XPH_F32 = 0, XPH_F64 = 1, XPH_BF16 = 2, XPH_I8 = 3, XPH_F16 = 4 };
/* Weights of a matrix in fewer bits (linear, linear_pack, rnn: args.weights; 0 is the type of the
 * arithmetic). The arithmetic stays XPH_F32 around them, and every device and instruction set rounds alike:
 *   XPH_BF16  w and x are rounded to nearest even, below 2^-50 to 0; sums in float from 0, two products at a
 *             time (odd column first, then even, each a fused multiply-add); then the bias is added, then the
 *             residual
 *   XPH_I8    w[o][k] = scale[o] q[o][k], |q| <= 127, scale = max|w[o]| / 127 rounded up to 16 significant
 *             bits, so that scale * q is exact and rounding what is rounded changes nothing; x is rounded per
 *             row to 255 levels, x = sx u, sx = max|x| / 127, u = nearest even of x * (127 / max|x|), 0 in a
 *             row below 2^-100; sums are exact in int32 (in <= 131072); y = fma(sx scale[o], sum, bias) +
 *             residual. A row of w or x with a NaN or an infinity gives NaN */

typedef struct xph_kernel xph_kernel; /* a way to do an operation, there as long as its backend */

/* How a device may multiply floats: XPH_MATH_TF32 allows matrix units that read 10 bits of a float's 23 (sums
 * stay in float). A device without them, and the CPU, does XPH_MATH_F32. */
enum { XPH_MATH_F32 = 0, XPH_MATH_TF32 = 1 };

/* y = x W^T + bias + residual; x [rows,in], W [out,in], y [rows,out]. residual may be y itself. */
typedef struct xph_linear_args {
    xph_type type, weights; /* weights XPH_BF16, XPH_I8: packed is needed and w is not read */
    int64_t rows, in, out;
    const void *x;
    int64_t ldx;
    const void *w;        /* [out,in], dense */
    const void *packed;   /* made of w and bias by linear_pack: packed_bytes of query */
    const void *bias;     /* [out] or NULL */
    const void *residual; /* or NULL */
    int64_t ldr;
    void *y;
    int64_t ldy;
    int32_t back; /* nonzero: better read packed from its end. The same bits */
    int32_t math;
} xph_linear_args;
typedef struct xph_linear_grad_args {
    xph_type type;
    int64_t rows, in, out;
    const void *x;
    int64_t ldx;
    const void *w, *packed; /* as in linear */
    const void *dy;
    int64_t lddy;
    void *dx; /* NULL: not wanted */
    int64_t lddx;
    int32_t dx_add; /* nonzero: dx += */
    int32_t math;
    void *dw, *dbias; /* +=, or NULL */
    void *scratch;
} xph_linear_grad_args;
/* bias: that of the products with w, or NULL: they have none. */
typedef struct xph_linear_pack_args {
    xph_type type, weights;
    int64_t in, out;
    const void *w, *bias;
    void *packed;
} xph_linear_pack_args;
/* to = w as weights of fewer bits would hold it, in type; to may be w. q, scale: the numbers themselves
 * (uint16 bfloat16s and no scale, or int8 and scale[out]) or NULL. */
typedef struct xph_round_args {
    xph_type type, weights;
    int64_t in, out;
    const void *w;
    void *to, *q;
    float *scale;
} xph_round_args;
/* count numbers: narrow nonzero of type to as, XPH_BF16 or XPH_F16 (nearest even), else back. */
typedef struct xph_cast_args {
    xph_type type, as;
    int32_t narrow, reserved;
    int64_t count;
    const void *x;
    void *y;
} xph_cast_args;

/* y = act((x - mean) * rstd * gain + shift), LayerNorm over the width (Ba et al. 2016), two passes. */
enum { XPH_ACT_NONE = 0, XPH_ACT_SILU = 1 };
typedef struct xph_norm_args {
    xph_type type;
    int32_t act;
    int64_t rows, width;
    double epsilon;
    const void *x;
    int64_t ldx;
    const void *gain, *shift; /* [width] */
    void *y;
    int64_t ldy;
    void *saved; /* [rows,2] mean, rstd for backward; NULL in play */
} xph_norm_args;
typedef struct xph_norm_grad_args {
    xph_norm_args fwd; /* y is not read */
    const void *dy;
    int64_t lddy;
    void *dx;
    int64_t lddx;
    int32_t dx_add;
    void *dgain, *dshift; /* += */
    void *dx_sum;         /* [width] += columns of dx, or NULL: see xph_op_info.sums */
    void *scratch;
} xph_norm_grad_args;

/* y = SiLU(bias[d] + sum_j w[d][j] x[t-taps+1+j][d]), causal, depthwise. state: the last taps-1 inputs,
 * oldest first, [taps-1, D]. */
typedef struct xph_conv_args {
    xph_type type;
    int64_t batch, time, width, taps;
    const void *x;
    int64_t ldx;
    const void *w, *bias; /* [D,taps], [D] */
    const uint8_t *reset;
    const void *state_in;
    void *state_out;
    int64_t ld_state;
    void *y;
    int64_t ldy;
} xph_conv_args;
typedef struct xph_conv_grad_args {
    xph_conv_args fwd; /* y, state_out not read */
    const void *dy;
    int64_t lddy;
    void *dx;
    int64_t lddx;
    void *dw, *dbias; /* += */
    void *dx_sum;     /* [D] += columns of dx, or NULL: see xph_op_info.sums */
    /* each may be NULL; stride fwd.ld_state */
    void *dstate_in;
    const void *dstate_out;
    void *scratch;
} xph_conv_grad_args;

/* Selective scan of Mamba (Gu & Dao 2023, S6, zero-order hold for A, Euler for B):
 *   delta = softplus(dt + delta_bias[d]);  h[d][n] = exp(-delta exp(a_log[d][n])) h[d][n] + delta x[d] b[n]
 *   y[d] = (sum_n c[n] h[d][n] + skip[d] x[d]) * SiLU(z[d])            state: h [D,N]
 * where delta is 0 or more, and A = -exp(a_log). */
typedef struct xph_scan_args {
    xph_type type;
    int32_t fixed; /* nonzero: exp(a_log[d][n]) is n + 1; there are no a_log, decay and da_log */
    int64_t batch, time, width, states;
    const void *x; /* [M,D] */
    int64_t ldx;
    const void *dt; /* [M,D] before softplus */
    int64_t lddt;
    /* [D] or NULL: 0. Beside rows of 16 bits, which would round dt with it in: near -4.6 a bfloat16 is off by
     * up to 0.016, and delta by as much of itself */
    const void *delta_bias;
    const void *a_log; /* [D,N] */
    const void *decay; /* made of a_log by scan_pack, or NULL: made anew; the same bits */
    const void *b;     /* [M,N] */
    int64_t ldb;
    const void *c; /* [M,N] */
    int64_t ldc;
    const void *skip; /* [D] or NULL */
    const void *z;    /* [M,D] or NULL: no gate */
    int64_t ldz;
    const uint8_t *reset;
    const void *state_in;
    void *state_out;
    int64_t ld_state;
    void *y;
    int64_t ldy;
    void *scratch;
    /* nonzero: dt and its bias are delta, without softplus; decay is A log2(e) of an A that is no a_log's, and da_log is
     * the gradient of that A */
    int32_t plain_delta, plain_a;
    /* What forward leaves for the gradient: saved_bytes of query; NULL in play, and where that is 0. Without marks the gradient
     * runs forward again */
    void *marks;
    int32_t marked, reserved; /* marked: marks will be there for the gradient, which query does not see */
    /* step.rows not 0, only with one frame and where query says products: this product (its y not written, without residual) makes
     * dt, which is not read */
    xph_linear_args step;
} xph_scan_args;
typedef struct xph_scan_pack_args {
    xph_type type;
    int64_t width, states;
    const void *a_log;
    void *decay;
} xph_scan_pack_args;
typedef struct xph_scan_grad_args {
    xph_scan_args fwd; /* y, state_out, scratch not read */
    const void *dy;
    int64_t lddy;
    void *dx;
    int64_t lddx;
    void *ddt;
    int64_t ldddt;
    void *db;
    int64_t lddb;
    void *dc;
    int64_t lddc;
    void *dz; /* NULL if fwd.z is */
    int64_t lddz;
    void *da_log, *dskip, *ddelta_bias; /* +=; NULL if fwd.skip, fwd.delta_bias are */
    /* [D] += columns of dz and ddt, or NULL: see xph_op_info.sums. Where there is ddelta_bias, that has those of ddt */
    void *dz_sum, *ddt_sum;
    /* each may be NULL; stride fwd.ld_state */
    void *dstate_in;
    const void *dstate_out;
    void *scratch;
} xph_scan_grad_args;

/* What linear_pack and scan_pack make of them, at once; type is that of the matrices. A device may have no kernel for it. */
typedef struct xph_packs_args {
    xph_type type;
    int32_t reserved;
    int64_t matrices, decays;
    const xph_linear_pack_args *matrix; /* host, [matrices] */
    const xph_scan_pack_args *decay;    /* host, [decays] */
} xph_packs_args;

/* Causal sliding-window attention with a learned bias per head and distance:
 *   y[t] = sum_j softmax_j(q[t].k[j] / sqrt(dim) + bias[a][t-j]) v[j],  t-window < j <= t, same episode.
 * state (ring): k [window, A*dim], v [window, A*dim], then two reals: next slot, filled slots. */
enum { XPH_ATTENTION_AUTO = 0, XPH_ATTENTION_PLAIN = 1, XPH_ATTENTION_CHUNKED = 2 };
typedef struct xph_attention_args {
    xph_type type;
    int32_t method; /* a test or the model may force one */
    /* lagging: state_out already holds what was state_in one frame ago (time is 1), so only the slot that
     * state_in wrote last is copied to it */
    int32_t lagging, math;
    /* nonzero: streams begin with a reset and hold no other that matters. Believed for the choice of a kernel alone:
     * results are right either way */
    int32_t fresh, reserved;
    int64_t batch, time, heads, dim, window;
    const void *qkv; /* [M, 3*A*dim]: q | k | v */
    int64_t ldqkv;
    const void *bias; /* [A, window] */
    const uint8_t *reset;
    const void *state_in;
    void *state_out;
    int64_t ld_state;
    void *y; /* [M, A*dim] */
    int64_t ldy;
    void *saved; /* [M,A] log-sum-exp for backward; NULL in play */
    void *scratch;
} xph_attention_args;
typedef struct xph_attention_grad_args {
    xph_attention_args fwd; /* y is read; state_out is not */
    const void *dy;
    int64_t lddy;
    void *dqkv;
    int64_t lddqkv;
    void *dbias;   /* += */
    void *scratch; /* nothing flows into the ring's keys and values */
} xph_attention_grad_args;

/* LSTM (Hochreiter & Schmidhuber 1997) and GRU (Cho et al. 2014) in cuDNN's and PyTorch's form and gate
 * order:
 *   LSTM i,f,g,o:  g_ = gx + W h + bias;  c' = sig(f) c + sig(i) tanh(g);  h' = sig(o) tanh(c')
 *   GRU  r,z,n:    n = tanh(gx_n + r (W_n h + bias_n));  h' = (1-z) n + z h
 * state: LSTM h | c, GRU h. */
enum { XPH_RNN_LSTM = 0, XPH_RNN_GRU = 1 };
typedef struct xph_rnn_args {
    xph_type type, weights; /* weights as in linear: of w */
    int32_t kind, back;     /* back as in linear */
    int32_t math, reserved;
    int64_t batch, time, hidden;
    const void *gx; /* [M, G*H]: input part of the gates, its bias added; G = 4 or 3 */
    int64_t ldgx;
    const void *w, *packed; /* [G*H, H] recurrent, and packed by linear_pack (in H, out G*H) */
    const void *bias;       /* [G*H] recurrent */
    const uint8_t *reset;
    const void *state_in;
    void *state_out;
    int64_t ld_state;
    void *y; /* [M,H] */
    int64_t ldy;
    void *saved; /* [M, 5H] LSTM i,f,g,o,c or [M, 4H] GRU r,z,n,W_n h + bias_n; NULL in play */
    void *scratch;
    /* input.rows 1, only with one stream and one frame: this product makes gx (its y) and is run here, before
     * that of w or, with back, after it */
    xph_linear_args input;
    /* of query: those with w and of input, where the kernel calls others */
    const xph_kernel *product, *input_product;
} xph_rnn_args;
typedef struct xph_rnn_grad_args {
    xph_rnn_args fwd; /* y is read; gx and state_out are not */
    const void *dy;
    int64_t lddy;
    void *dgx;
    int64_t lddgx;
    void *dw, *dbias; /* += */
    /* each may be NULL; stride fwd.ld_state */
    void *dstate_in;
    const void *dstate_out;
    void *scratch;
    const xph_kernel *products[2]; /* of query: those that make dw and dbias, where the kernel calls others */
} xph_rnn_grad_args;

/* What an update of the weights needs to know that differs from update to update, and what it finds out: in
 * the device's memory, so that a whole update can be recorded once and the host be one update ahead of the
 * device. */
typedef struct xph_rates {
    double rate, correction1, correction2, ema_decay;
} xph_rates;
/* Comes with every batch. */
typedef struct xph_given {
    int64_t update;     /* number of this update, from 1, if none before it is refused */
    double scale;       /* of this batch's loss: 1 / (sum of its mask * batches of the update) */
    xph_rates rates[2]; /* of this update; and of the number before, when the last one was refused */
} xph_given;
enum {
    XPH_UPDATE_DONE = 0,
    XPH_UPDATE_BAD_GRADIENT = 1,
    XPH_UPDATE_BAD_LOSS = 2,
    XPH_UPDATE_TOO_LARGE = 3,
    /* of a scaled gradient in float16: skipped, and the loss scale halved */
    XPH_UPDATE_OVERFLOW = 4,
    /* the sum over ranks was ended: the gradient is arbitrary, and nothing else is said of it */
    XPH_UPDATE_STOPPED = 5
};
typedef struct xph_control {
    /* carried from update to update */
    int64_t done;      /* updates that were made */
    int64_t good;      /* of them since the loss scale last changed */
    double loss_scale; /* the gradient is so much too large: 1 but for float16 */
    double self; /* done + 1: what each rank adds to came; of another update it would be another number */
    /* of this update. Over ranks what lies from came to came_too is summed at once, behind the gradient: one end at least
     * comes from another rank, so that whoever has both has the gradient */
    double came;
    double head[EXPHIL_HEADS_MAX]; /* sum over its batches of scale * sums of the loss */
    double came_too;
    double norm;       /* of the gradient */
    int64_t first_bad; /* element of it, or -1 */
    double grad_scale; /* clipping and the loss scale undone */
    int64_t verdict;   /* XPH_UPDATE_... */
    uint32_t arrived;  /* the device's own: 0 between operations */
    uint32_t stopped;  /* not 0: updates come to XPH_UPDATE_STOPPED; the host's, by word_set */
} xph_control;
/* After norm2 of the gradient, before adam: verdict, grad_scale, the next loss_scale (dynamic loss scaling:
 * Micikevicius et al. 2018). clip 0: never. largest: a norm above it is refused unless it is clipped. growth:
 * updates without overflow after which loss_scale doubles, 0: it stays 1. ranks: who must have come, 0: nobody is
 * asked. */
typedef struct xph_settle_args {
    int32_t heads, ranks;
    xph_control *control;
    double clip, largest, loss_scale_least, loss_scale_most;
    int64_t growth;
} xph_settle_args;
/* Zeros where the update was refused: carried state that may hold what is not finite. */
typedef struct xph_clear_args {
    xph_type type;
    int64_t count;
    const xph_control *control;
    void *x;
} xph_clear_args;

/* One head of an action. EXPHIL_BERNOULLI: independent bits in an int32 (bit i = class logit first+i);
 * EXPHIL_CATEGORICAL: one of count classes. */
typedef struct xph_head {
    int32_t kind, count; /* bits (1..31) or classes (2..1024) */
    int64_t first;       /* first logit of this head */
} xph_head;

/* Builds input rows: floats | table rows of the ids | one-hot (bits for Bernoulli) of the given past actions.
 * y [rows, floats + sum of widths + slots*L], in that order. */
typedef struct xph_embed_table {
    const void *table;
    void *dtable;
    int64_t entries, width;
} xph_embed_table;
typedef struct xph_embed_args {
    xph_type type;
    int64_t rows, floats, ids, slots, heads, logits;
    const float *x; /* [rows, floats] always float */
    int64_t ldx;
    const int32_t *id; /* [rows, ids], range-checked by the caller */
    int64_t ldid;
    const xph_embed_table *tables; /* host, [ids]; dtable += in backward */
    const int32_t *actions;        /* [rows, slots*heads] or NULL */
    int64_t lda;
    const xph_head *head; /* host, [heads] */
    void *y;
    int64_t ldy;
} xph_embed_args;
typedef struct xph_embed_grad_args {
    xph_embed_args fwd;
    const void *dy;
    int64_t lddy;
    void *scratch;
} xph_embed_grad_args;

/* Action heads on one trunk: s_0 = z; logits_i = base_i + bias_i + v_i SiLU(s_i); s_{i+1} = s_i + (rows of e
 * at the bits or the class taken for head i). e NULL: the heads are independent. v, e [L,R]. The gradient of
 * base is dy. */
typedef struct xph_heads_args {
    xph_type type;
    int32_t chained; /* nonzero: e will be there, which query does not see */
    int64_t rows, width, heads, logits;
    const xph_head *head; /* host */
    const void *z;        /* [rows,R] */
    int64_t ldz;
    const void *v, *bias, *e;
    const void *base; /* [rows,L] what the logits start from, or NULL: 0 */
    int64_t ldbase;
    const int32_t *actions; /* [rows,heads] what was done; may be NULL when e is */
    int64_t lda;
    void *y; /* logits [rows,L] */
    int64_t ldy;
} xph_heads_args;
typedef struct xph_heads_grad_args {
    xph_heads_args fwd; /* y not read */
    const void *dy;
    int64_t lddy;
    void *dz;
    int64_t lddz;
    void *dv, *dbias, *de; /* += */
    void *dz_sum;          /* [R] += columns of dz, or NULL: see xph_op_info.sums */
    void *scratch;
} xph_heads_grad_args;

/* Loss and its gradient in one pass. Per frame with weight w = mask[row] and per head:
 *   Bernoulli: mean over bits of (1-p_t)^gamma * (BCE with logits, positive_weight on y = 1)
 *   categorical: (1-p_t)^gamma * cross-entropy against (1-eps) onehot + eps/classes;
 *                p_t = sum_k p_k target_k
 * (focal: Lin et al. 2017, constant gamma; gamma 0 is the plain loss). */
typedef struct xph_head_loss {
    double weight, smoothing, focal_gamma;
    const float *positive_weight; /* host, [count] of a Bernoulli head, or NULL */
} xph_head_loss;
typedef struct xph_loss_args {
    xph_type type;
    int64_t rows, heads, logits;
    const xph_head *head;      /* host */
    const xph_head_loss *loss; /* host */
    const void *y;             /* logits */
    int64_t ldy;
    const int32_t *actions; /* targets [rows,heads] */
    int64_t lda;
    const float *mask;      /* [rows] or NULL: all 1 */
    double scale;           /* dy = scale * mask * weight * gradient */
    const xph_given *given; /* device, or NULL: */
    xph_control *control;   /* with given: scale is given's times control's loss_scale, and its head grows */
    void *dy;               /* or NULL */
    int64_t lddy;
    double *sums;      /* [heads] sum of mask * head loss, unweighted by head; overwritten */
    double *rows_loss; /* [rows, heads] scratch */
} xph_loss_args;

/* Heads by matrix units, where the device has them; z, base and dz are of type. XPH_HEADS_ALL: heads, loss and gradients of both in
 * one pass over the rows; y is not written, and dlogits go to grad.dy, of type, which may be NULL. Where the loss is made by
 * somebody else: XPH_HEADS_LOGITS, y as in heads; and XPH_HEADS_GIVEN, all gradients from dlogits, grad.dy. y and that dy are
 * reals. */
enum { XPH_HEADS_ALL, XPH_HEADS_LOGITS, XPH_HEADS_GIVEN };
typedef struct xph_heads_loss_args {
    xph_heads_grad_args grad;
    int32_t math, part;
    const xph_loss_args *loss; /* of ALL, host; its y, dy and rows_loss are not used; NULL in query */
} xph_heads_loss_args;

/* Draws actions head by head from the trunk (as heads: what is drawn for head i is seen by i+1).
 * Bernoulli: u < sigmoid(logit / temperature), or hysteresis (see deterministic); categorical: Gumbel-max,
 * argmax(logit / temperature - log(-log u)); ties to the lower class. */
typedef struct xph_sample_head {
    float temperature, press, release;
    int32_t deterministic;
} xph_sample_head;
/* A place in a stream of random numbers (base/base.h, xph_rng). */
typedef struct xph_draw {
    uint64_t seed, stream, position;
} xph_draw;
typedef struct xph_sample_args {
    xph_heads_args heads;       /* actions not read */
    const xph_sample_head *how; /* host, [heads]; deterministic: argmax; bits by press/release on sigmoid */
    const float *noise;         /* [rows,L] uniform in (0,1); may be NULL when all are deterministic */
    int64_t ldn;
    /* [rows] or NULL: the device makes the noise itself, where query says draws: that of logit l is number position + drawn +
     * l of the stream, as a float in (0,1), to the bit what the host would give. A row whose stream is 0 reads noise. */
    const xph_draw *draw;
    int64_t drawn;
    const int32_t *previous; /* [rows,heads] last actions for hysteresis, or NULL */
    int64_t ldp;
    int32_t *actions; /* [rows,heads] out */
    int64_t lda;
    void *scratch;
} xph_sample_args;

/* AdamW (Loshchilov & Hutter 2019) over one arena: g = grad*grad_scale; m, v; p -= lr*(m/c1/(sqrt(v/c2)+eps)
 * + decay p); decay only for the first decay_count elements; ema = ema*ema_decay + p*(1-ema_decay) when ema
 * is given. */
typedef struct xph_adam_args {
    xph_type type;
    int64_t count, decay_count;
    void *p;
    const void *grad;
    void *m, *v, *ema;
    double rate, beta1, beta2, epsilon, decay, correction1, correction2, grad_scale, ema_decay;
    const xph_given *given; /* device, or NULL: */
    /* with given: rates are given's, grad_scale is control's, and only an update that is not refused is
     * made */
    const xph_control *control;
} xph_adam_args;
/* Euclidean norm without overflow, and the first element that is not finite (-1: none). Results in device
 * memory. */
typedef struct xph_norm2_args {
    xph_type type;
    int64_t count;
    const void *x;
    double *norm;
    int64_t *first_bad;
    /* host, or NULL: then done at once, norm and first_bad being its control's */
    const xph_settle_args *settle;
    void *scratch;
} xph_norm2_args;
/* y = x * a + from * b over count elements (any may be the same); from NULL: y. */
typedef struct xph_axpby_args {
    xph_type type;
    int64_t count;
    const void *x;
    void *y;
    double a, b;
    const void *from;
} xph_axpby_args;

/* y = act(x), each number by itself; x and y may be the same. RELU: max(x, 0). GELU_TANH (Hendrycks & Gimpel 2016):
 * x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). CLAMP: min(max(x, low), high). The gradient dx = dy act'(x)
 * may take the place of dy; it is 0 at the corners of RELU and CLAMP, so that there y may stand for x. A NaN in x
 * stays in y. */
enum {
    XPH_ACTIVATE_SILU = EXPHIL_ACTIVATION_SILU,
    XPH_ACTIVATE_RELU = EXPHIL_ACTIVATION_RELU,
    XPH_ACTIVATE_GELU_TANH = EXPHIL_ACTIVATION_GELU_TANH,
    XPH_ACTIVATE_CLAMP
};
typedef struct xph_activate_args {
    xph_type type;
    int32_t kind;
    int64_t count;
    double low, high; /* of CLAMP */
    const void *x;
    void *y;
} xph_activate_args;
typedef struct xph_activate_grad_args {
    xph_activate_args fwd; /* y not read */
    const void *dy;
    void *dx;
} xph_activate_grad_args;

/* y += the rows of a table that actions take: of each head the rows of the bits that are on, or of the class; row
 * head.first + k belongs to class or bit k. A class outside its head takes none. The gradient is that of the table; dy is
 * that of x, too. */
typedef struct xph_codes_args {
    xph_type type;
    int64_t rows, width, heads;
    const xph_head *head;   /* host, [heads] */
    const void *table;      /* [sum of counts, width] */
    const int32_t *actions; /* [rows, heads] */
    int64_t lda;
    void *y; /* [rows, width] */
    int64_t ldy;
} xph_codes_args;
typedef struct xph_codes_grad_args {
    xph_codes_args fwd; /* table and y not read */
    const void *dy;
    int64_t lddy;
    void *dtable; /* += */
} xph_codes_grad_args;

/* Weights of the terms, all 0 or more. */
typedef struct xph_policy_terms {
    double surrogate;    /* c: of PPO's clipped surrogate */
    double clip;         /* epsilon: the ratio counts within 1 - epsilon .. 1 + epsilon */
    double to_old;       /* beta: KL(old || new) */
    double to_teacher;   /* k: KL(new || teacher) */
    double from_teacher; /* k': KL(teacher || new) */
    double entropy;      /* e: of the entropy, which is subtracted */
} xph_policy_terms;

/* What a row is to the loss: nothing; played by the policy; decided by the host, and so imitated. */
enum { XPH_ROW_NONE = 0, XPH_ROW_PLAYED = 1, XPH_ROW_IMITATED = 2 };

/* What comes of a row; kl_... are 0 without what they are measured to. */
typedef struct xph_policy_result {
    double loss, surrogate, ratio, clipped; /* clipped: 1 where the gradient of the surrogate is 0 */
    double apart;                           /* log of the ratio, as a distance */
    double kl_old, kl_to_teacher, kl_from_teacher, entropy;
} xph_policy_result;

/* Sums over rows, and what is not finite. */
typedef struct xph_policy_tally {
    double rows, loss, miss, ratio, clipped, kl_old, to_teacher, from_teacher, entropy; /* of PLAYED rows */
    double imitated, nll;                                                               /* of IMITATED rows */
    double apart;                 /* the largest of the rows */
    int64_t bad_logit, bad_value; /* the first of dlogits and dvalues that is not finite, -1: none */
} xph_policy_tally;

/* The loss of learning from play and its gradients. A device may have no kernel for it; one that it has gives the bits of
 * policy_row.h, and sums of its own order.
 *
 * Rows are those of whole streams. LOGS reads the logits y of rows that were played, `stride` of each stream, and leaves logs and
 * chances (lib/learn/policy.h) of the first `time` of them, `all` together, logit by logit. LOSS is that of the rows of a batch,
 * which has `time` rows of each of the streams of these numbers. */
enum { XPH_POLICY_LOGS, XPH_POLICY_LOSS };
typedef struct xph_policy_loss_args {
    int32_t part, reserved;
    int64_t rows, time, heads, logits;
    const xph_head *head;      /* host, [heads] */
    const double *temperature; /* host, [heads] */
    const float *y;            /* [rows, L] */
    int64_t all;
    /* LOGS */
    int64_t stride;
    double *logs, *chances; /* [L, all] */
    uint32_t *not_finite;   /* 1 if a logit is not; else it stays. Or NULL */
    /* LOSS. Of all rows: [all], or [L, all]; old and teacher may be NULL */
    const double *log_probability, *advantage, *target;
    const uint8_t *counts;
    const double *old, *old_chances, *teacher, *teacher_chances;
    /* of the batch */
    const int64_t *stream;  /* [rows / time] */
    const int32_t *actions; /* [rows, heads] */
    const float *values;    /* [rows] */
    xph_policy_terms terms;
    /* one over the rows of each kind, the latter times its weight; weight of the value: the gradients are times these */
    double scale, imitation, value;
    float *dlogits, *dvalues;  /* [rows, L] and [rows]; both may be NULL */
    xph_policy_result *result; /* [rows] or NULL */
    double *miss;              /* [rows] or NULL: (V - G)^2; of imitated rows -log p of the action */
    xph_policy_tally *tally;
    void *scratch;
} xph_policy_loss_args;

/* Every operation, in the order of its number: XPH_OP_<NAME>, arguments xph_<name>_args, lists of kernels
 * xph_<name>_<set> and xph_cuda_<name>. Whoever has something for each makes it of this list: a name here without its
 * struct or its kernels does not build. product: matrix products and what is made of them, which a CPU set of
 * instructions for products alone compiles anew (lib/cpu/kernels/set.c). */
/* clang-format off */
#define XPH_OPS(product, other) \
    product(LINEAR, linear) product(LINEAR_GRAD, linear_grad) product(LINEAR_PACK, linear_pack)  \
    other(NORM, norm) other(NORM_GRAD, norm_grad) other(CONV, conv) other(CONV_GRAD, conv_grad)  \
    other(SCAN, scan) other(SCAN_GRAD, scan_grad) other(ATTENTION, attention)                    \
    other(ATTENTION_GRAD, attention_grad) product(RNN, rnn) product(RNN_GRAD, rnn_grad)          \
    other(EMBED, embed) other(EMBED_GRAD, embed_grad) other(HEADS, heads)                        \
    other(HEADS_GRAD, heads_grad) other(LOSS, loss) other(HEADS_LOSS, heads_loss)                \
    other(SAMPLE, sample) other(ADAM, adam)                                                      \
    other(NORM2, norm2) other(AXPBY, axpby) other(ROUND, round) other(CAST, cast)                \
    other(SCAN_PACK, scan_pack) other(CLEAR, clear) other(ACTIVATE, activate)                    \
    other(ACTIVATE_GRAD, activate_grad) other(CODES, codes) other(CODES_GRAD, codes_grad)   \
    other(PACKS, packs) other(POLICY_LOSS, policy_loss)
/* clang-format on */
#define XPH_EACH_OP(each) XPH_OPS(each, each)

typedef int32_t xph_op; /* of enum xph_op_number: a switch over that, without default, names them all */
#define XPH_OP_NUMBER(NAME, name) XPH_OP_##NAME,
enum xph_op_number { XPH_EACH_OP(XPH_OP_NUMBER) XPH_OP_COUNT };
#undef XPH_OP_NUMBER
#endif
