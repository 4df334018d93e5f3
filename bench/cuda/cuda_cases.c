/* The cases: arguments of every operation that training and play spend time in, and the least bytes that each
 * must move. */
#include "cuda_kernels.h"

#include <math.h>
#include <stdlib.h>

enum { TAPS = 4, HEADS = 4, DIM = 64, LOGIT_HEADS = 6, LOGITS = 81, TRUNK = 128, FLOATS = 200 };

static double rows_of(const shape *s)
{
    return (double)(s->batch * s->time);
}

/* ---- scan, convolution, norm ---- */

static void *rates(card *c, int64_t width, int64_t states)
{
    float *host = malloc((size_t)(width * states) * sizeof *host);
    if (!host) abort();
    for (int64_t i = 0; i < width * states; i++) host[i] = logf(1.0f + (float)(i % states));
    void *there = card_bytes(c, host, (size_t)(width * states) * sizeof *host);
    free(host);
    return there;
}

static double give_scan(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, d = s->width, n = s->states;
    *(xph_scan_args *)args = (xph_scan_args){.type = s->type,
                                             .batch = s->batch,
                                             .time = s->time,
                                             .width = d,
                                             .states = n,
                                             .x = card_numbers(c, s->type, rows * d, 1),
                                             .ldx = d,
                                             .dt = card_numbers(c, s->type, rows * d, 2),
                                             .lddt = d,
                                             .a_log = rates(c, d, n),
                                             .b = card_numbers(c, s->type, rows * n, 1),
                                             .ldb = n,
                                             .c = card_numbers(c, s->type, rows * n, 1),
                                             .ldc = n,
                                             .skip = card_numbers(c, XPH_F32, d, 1),
                                             .z = card_numbers(c, s->type, rows * d, 1),
                                             .ldz = d,
                                             .ld_state = d * n,
                                             .state_in = card_numbers(c, XPH_F32, s->batch * d * n, 0.5),
                                             .state_out = card_zeros(c, (size_t)(s->batch * d * n) * 4),
                                             .y = card_zeros(c, (size_t)(rows * d) * card_size(s->type)),
                                             .ldy = d};
    return rows_of(s) * (double)(4 * d + 2 * n) * (double)card_size(s->type) +
           8.0 * (double)(s->batch * d * n);
}

static double give_scan_grad(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, d = s->width, n = s->states;
    const size_t wide = (size_t)(rows * d) * card_size(s->type),
                 thin = (size_t)(rows * n) * card_size(s->type);
    xph_scan_grad_args *g = args;
    *g = (xph_scan_grad_args){.dy = card_numbers(c, s->type, rows * d, 1e-3),
                              .lddy = d,
                              .dx = card_zeros(c, wide),
                              .lddx = d,
                              .ddt = card_zeros(c, wide),
                              .ldddt = d,
                              .db = card_zeros(c, thin),
                              .lddb = n,
                              .dc = card_zeros(c, thin),
                              .lddc = n,
                              .dz = card_zeros(c, wide),
                              .lddz = d,
                              .da_log = card_zeros(c, (size_t)(d * n) * 4),
                              .dskip = card_zeros(c, (size_t)d * 4)};
    give_scan(c, s, &g->fwd);
    g->fwd.state_in = NULL;
    return rows_of(s) * (double)(7 * d + 4 * n) * (double)card_size(s->type);
}

static double give_conv(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, d = s->width;
    *(xph_conv_args *)args = (xph_conv_args){.type = s->type,
                                             .batch = s->batch,
                                             .time = s->time,
                                             .width = d,
                                             .taps = TAPS,
                                             .x = card_numbers(c, s->type, rows * 2 * d, 1),
                                             .ldx = 2 * d, /* half of the product before, as in a block */
                                             .w = card_numbers(c, XPH_F32, d * TAPS, 0.5),
                                             .bias = card_numbers(c, XPH_F32, d, 0.1),
                                             .ld_state = (TAPS - 1) * d,
                                             .y = card_zeros(c, (size_t)(rows * d) * card_size(s->type)),
                                             .ldy = d};
    return rows_of(s) * 2.0 * (double)d * (double)card_size(s->type);
}

static double give_conv_grad(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, d = s->width;
    xph_conv_grad_args *g = args;
    *g = (xph_conv_grad_args){.dy = card_numbers(c, s->type, rows * d, 1e-3),
                              .lddy = d,
                              .dx = card_zeros(c, (size_t)(rows * d) * card_size(s->type)),
                              .lddx = d,
                              .dw = card_zeros(c, (size_t)(d * TAPS) * 4),
                              .dbias = card_zeros(c, (size_t)d * 4)};
    give_conv(c, s, &g->fwd);
    return rows_of(s) * 3.0 * (double)d * (double)card_size(s->type);
}

static double give_norm(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, width = s->width;
    *(xph_norm_args *)args = (xph_norm_args){.type = s->type,
                                             .act = XPH_ACT_SILU,
                                             .rows = rows,
                                             .width = width,
                                             .epsilon = 1e-5,
                                             .x = card_numbers(c, s->type, rows * width, 1),
                                             .ldx = width,
                                             .gain = card_numbers(c, XPH_F32, width, 1),
                                             .shift = card_numbers(c, XPH_F32, width, 0.1),
                                             .y = card_zeros(c, (size_t)(rows * width) * card_size(s->type)),
                                             .ldy = width,
                                             .saved = card_zeros(c, (size_t)(2 * rows) * 4)};
    return rows_of(s) * 2.0 * (double)width * (double)card_size(s->type);
}

static double give_norm_grad(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, width = s->width;
    xph_norm_grad_args *g = args;
    *g = (xph_norm_grad_args){.dy = card_numbers(c, s->type, rows * width, 1e-3),
                              .lddy = width,
                              .dx = card_zeros(c, (size_t)(rows * width) * card_size(s->type)),
                              .lddx = width,
                              .dgain = card_zeros(c, (size_t)width * 4),
                              .dshift = card_zeros(c, (size_t)width * 4)};
    give_norm(c, s, &g->fwd);
    g->fwd.saved = card_numbers(c, XPH_F32, 2 * rows, 1);
    return rows_of(s) * 3.0 * (double)width * (double)card_size(s->type);
}

/* ---- products, attention, recurrent layers: width in, states out, heads of 64, hidden ---- */

/* Weights as products of 16-bit rows want them; NULL where there is nothing to pack. */
static const void *packed(card *c, const shape *s, const float *w, const float *bias)
{
    xph_linear_pack_args pack = {.type = s->type, .in = s->width, .out = s->states, .w = w, .bias = bias};
    xph_op_info info = {0};
    if (s->type == XPH_F32 || c->backend->query(c->device, XPH_OP_LINEAR_PACK, &pack, &info) < 0) return NULL;
    pack.packed = card_zeros(c, info.packed_bytes);
    if (c->backend->run(c->stream, info.kernel, &pack) < 0) abort();
    return pack.packed;
}

static double give_linear(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, in = s->width, out = s->states;
    const float *w = card_numbers(c, XPH_F32, in * out, 0.1), *bias = card_numbers(c, XPH_F32, out, 0.1);
    *(xph_linear_args *)args =
        (xph_linear_args){.type = s->type,
                          .rows = rows,
                          .in = in,
                          .out = out,
                          .x = card_numbers(c, s->type, rows * in, 1),
                          .ldx = in,
                          .w = w,
                          .packed = packed(c, s, w, bias),
                          .bias = bias,
                          .y = card_zeros(c, (size_t)(rows * out) * card_size(s->type)),
                          .ldy = out,
                          .math = s->math};
    return rows_of(s) * (double)(in + out) * (double)card_size(s->type) + 4.0 * (double)(in * out);
}

static double give_linear_grad(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, in = s->width, out = s->states;
    const float *w = card_numbers(c, XPH_F32, in * out, 0.1);
    *(xph_linear_grad_args *)args =
        (xph_linear_grad_args){.type = s->type,
                               .rows = rows,
                               .in = in,
                               .out = out,
                               .x = card_numbers(c, s->type, rows * in, 1),
                               .ldx = in,
                               .w = w,
                               .packed = packed(c, s, w, NULL),
                               .dy = card_numbers(c, s->type, rows * out, 1e-3),
                               .lddy = out,
                               .dx = card_zeros(c, (size_t)(rows * in) * card_size(s->type)),
                               .lddx = in,
                               .math = s->math,
                               .dw = card_zeros(c, (size_t)(in * out) * 4),
                               .dbias = card_zeros(c, (size_t)out * 4)};
    return rows_of(s) * (double)(2 * in + out) * (double)card_size(s->type) + 8.0 * (double)(in * out);
}

static double give_attention(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, width = HEADS * DIM;
    *(xph_attention_args *)args =
        (xph_attention_args){.type = s->type,
                             .math = s->math,
                             .batch = s->batch,
                             .time = s->time,
                             .heads = HEADS,
                             .dim = DIM,
                             .window = s->width,
                             .qkv = card_numbers(c, s->type, rows * 3 * width, 1),
                             .ldqkv = 3 * width,
                             .bias = card_numbers(c, XPH_F32, HEADS * s->width, 0.1),
                             .y = card_zeros(c, (size_t)(rows * width) * card_size(s->type)),
                             .ldy = width,
                             .saved = card_zeros(c, (size_t)(rows * HEADS) * 4)};
    return rows_of(s) * 4.0 * (double)width * (double)card_size(s->type);
}

static double give_attention_grad(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, width = HEADS * DIM;
    xph_attention_grad_args *g = args;
    *g = (xph_attention_grad_args){.dy = card_numbers(c, s->type, rows * width, 1e-3),
                                   .lddy = width,
                                   .dqkv = card_zeros(c, (size_t)(rows * 3 * width) * card_size(s->type)),
                                   .lddqkv = 3 * width,
                                   .dbias = card_zeros(c, (size_t)(HEADS * s->width) * 4)};
    give_attention(c, s, &g->fwd);
    g->fwd.saved = card_numbers(c, XPH_F32, rows * HEADS, 8);
    return rows_of(s) * 8.0 * (double)width * (double)card_size(s->type);
}

static double give_rnn(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, hidden = s->width, lstm = s->states == XPH_RNN_LSTM;
    const int64_t gates = (lstm ? 4 : 3) * hidden, kept = (lstm ? 5 : 4) * hidden;
    *(xph_rnn_args *)args = (xph_rnn_args){.type = s->type,
                                           .kind = (int32_t)s->states,
                                           .math = s->math,
                                           .batch = s->batch,
                                           .time = s->time,
                                           .hidden = hidden,
                                           .gx = card_numbers(c, s->type, rows * gates, 1),
                                           .ldgx = gates,
                                           .w = card_numbers(c, XPH_F32, gates * hidden, 0.06),
                                           .bias = card_numbers(c, XPH_F32, gates, 0.1),
                                           .ld_state = (lstm ? 2 : 1) * hidden,
                                           .y = card_zeros(c, (size_t)(rows * hidden) * card_size(s->type)),
                                           .ldy = hidden,
                                           .saved = card_zeros(c, (size_t)(rows * kept) * 4)};
    return rows_of(s) * ((double)(gates + hidden) * (double)card_size(s->type) + 4.0 * (double)kept);
}

static double give_rnn_grad(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, hidden = s->width, lstm = s->states == XPH_RNN_LSTM;
    const int64_t gates = (lstm ? 4 : 3) * hidden, kept = (lstm ? 5 : 4) * hidden;
    xph_rnn_grad_args *g = args;
    *g = (xph_rnn_grad_args){.dy = card_numbers(c, s->type, rows * hidden, 1e-3),
                             .lddy = hidden,
                             .dgx = card_zeros(c, (size_t)(rows * gates) * card_size(s->type)),
                             .lddgx = gates,
                             .dw = card_zeros(c, (size_t)(gates * hidden) * 4),
                             .dbias = card_zeros(c, (size_t)gates * 4)};
    give_rnn(c, s, &g->fwd);
    g->fwd.saved = card_numbers(c, XPH_F32, rows * kept, 0.5);
    return rows_of(s) * ((double)(gates + 2 * hidden) * (double)card_size(s->type) + 4.0 * (double)kept);
}

/* ---- input rows, action heads, loss ---- */

static const xph_head heads[LOGIT_HEADS] = {
    {XPH_HEAD_BERNOULLI, 8, 0},     {XPH_HEAD_CATEGORICAL, 17, 8},  {XPH_HEAD_CATEGORICAL, 17, 25},
    {XPH_HEAD_CATEGORICAL, 17, 42}, {XPH_HEAD_CATEGORICAL, 17, 59}, {XPH_HEAD_CATEGORICAL, 5, 76},
};
static const xph_head_loss losses[LOGIT_HEADS] = {{.weight = 1}, {.weight = 1}, {.weight = 1},
                                                  {.weight = 1}, {.weight = 1}, {.weight = 1}};

static void *some_actions(card *c, int64_t rows)
{
    int32_t *host = malloc((size_t)(rows * LOGIT_HEADS) * sizeof *host);
    if (!host) abort();
    for (int64_t i = 0; i < rows * LOGIT_HEADS; i++)
        host[i] = (int32_t)((i / LOGIT_HEADS * 7 + i * 3) % heads[i % LOGIT_HEADS].count);
    void *there = card_bytes(c, host, (size_t)(rows * LOGIT_HEADS) * sizeof *host);
    free(host);
    return there;
}

static double give_embed(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, width = FLOATS + LOGITS;
    *(xph_embed_args *)args =
        (xph_embed_args){.type = s->type,
                         .rows = rows,
                         .floats = FLOATS,
                         .slots = 1,
                         .heads = LOGIT_HEADS,
                         .logits = LOGITS,
                         .x = card_numbers(c, XPH_F32, rows * FLOATS, 1),
                         .ldx = FLOATS,
                         .actions = some_actions(c, rows),
                         .lda = LOGIT_HEADS,
                         .head = heads,
                         .y = card_zeros(c, (size_t)(rows * width) * card_size(s->type)),
                         .ldy = width};
    return rows_of(s) * (4.0 * (FLOATS + LOGIT_HEADS) + (double)width * (double)card_size(s->type));
}

static double give_heads(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time;
    *(xph_heads_args *)args =
        (xph_heads_args){.type = s->type,
                         .rows = rows,
                         .width = TRUNK,
                         .heads = LOGIT_HEADS,
                         .logits = LOGITS,
                         .head = heads,
                         .z = card_numbers(c, s->type, rows * TRUNK, 1),
                         .ldz = TRUNK,
                         .v = card_numbers(c, XPH_F32, LOGITS * TRUNK, 0.1),
                         .bias = card_numbers(c, XPH_F32, LOGITS, 0.1),
                         .e = card_numbers(c, XPH_F32, LOGITS * TRUNK, 0.1),
                         .actions = some_actions(c, rows),
                         .lda = LOGIT_HEADS,
                         .y = card_zeros(c, (size_t)(rows * LOGITS) * card_size(s->type)),
                         .ldy = LOGITS};
    return rows_of(s) * (TRUNK + LOGITS) * (double)card_size(s->type);
}

static double give_heads_grad(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time;
    xph_heads_grad_args *g = args;
    *g = (xph_heads_grad_args){.dy = card_numbers(c, s->type, rows * LOGITS, 1e-3),
                               .lddy = LOGITS,
                               .dz = card_zeros(c, (size_t)(rows * TRUNK) * card_size(s->type)),
                               .lddz = TRUNK,
                               .dv = card_zeros(c, (size_t)(LOGITS * TRUNK) * 4),
                               .dbias = card_zeros(c, (size_t)LOGITS * 4),
                               .de = card_zeros(c, (size_t)(LOGITS * TRUNK) * 4)};
    give_heads(c, s, &g->fwd);
    return rows_of(s) * (2.0 * TRUNK + LOGITS) * (double)card_size(s->type);
}

static double give_loss(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time;
    const size_t bytes = (size_t)(rows * LOGITS) * card_size(s->type);
    *(xph_loss_args *)args = (xph_loss_args){.type = s->type,
                                             .rows = rows,
                                             .heads = LOGIT_HEADS,
                                             .logits = LOGITS,
                                             .head = heads,
                                             .loss = losses,
                                             .y = card_numbers(c, s->type, rows * LOGITS, 2),
                                             .ldy = LOGITS,
                                             .actions = some_actions(c, rows),
                                             .lda = LOGIT_HEADS,
                                             .scale = 1,
                                             .dy = card_zeros(c, bytes),
                                             .lddy = LOGITS,
                                             .sums = card_zeros(c, LOGIT_HEADS * sizeof(double)),
                                             .rows_loss = card_zeros(c, (size_t)(rows * LOGIT_HEADS) * 8)};
    return rows_of(s) * (2.0 * LOGITS * (double)card_size(s->type) + 12.0 * LOGIT_HEADS);
}

/* ---- over arenas: width numbers ---- */

static double give_adam(card *c, const shape *s, void *args)
{
    const int64_t n = s->width;
    *(xph_adam_args *)args = (xph_adam_args){.type = XPH_F32,
                                             .count = n,
                                             .decay_count = n,
                                             .p = card_numbers(c, XPH_F32, n, 0.1),
                                             .grad = card_numbers(c, XPH_F32, n, 1e-3),
                                             .m = card_zeros(c, (size_t)n * 4),
                                             .v = card_zeros(c, (size_t)n * 4),
                                             .rate = 1e-6,
                                             .beta1 = 0.9,
                                             .beta2 = 0.999,
                                             .epsilon = 1e-8,
                                             .decay = 0.01,
                                             .correction1 = 1,
                                             .correction2 = 1,
                                             .grad_scale = 1};
    return 28.0 * (double)n;
}

static double give_norm2(card *c, const shape *s, void *args)
{
    double *norm = card_zeros(c, 16);
    *(xph_norm2_args *)args = (xph_norm2_args){.type = XPH_F32,
                                               .count = s->width,
                                               .x = card_numbers(c, XPH_F32, s->width, 1),
                                               .norm = norm,
                                               .first_bad = (int64_t *)(void *)(norm + 1)};
    return 4.0 * (double)s->width;
}

static double give_axpby(card *c, const shape *s, void *args)
{
    *(xph_axpby_args *)args = (xph_axpby_args){.type = XPH_F32,
                                               .count = s->width,
                                               .x = card_numbers(c, XPH_F32, s->width, 1),
                                               .y = card_numbers(c, XPH_F32, s->width, 1),
                                               .a = 0.5,
                                               .b = 0.5};
    return 12.0 * (double)s->width;
}

static double give_cast(card *c, const shape *s, void *args)
{
    *(xph_cast_args *)args = (xph_cast_args){.type = XPH_F32,
                                             .as = XPH_BF16,
                                             .narrow = 1,
                                             .count = s->width,
                                             .x = card_numbers(c, XPH_F32, s->width, 1),
                                             .y = card_zeros(c, (size_t)s->width * 2)};
    return 6.0 * (double)s->width;
}

/* ---- the list ---- */

#define NONE          SIZE_MAX
#define SCRATCH(kind) sizeof(kind), offsetof(kind, scratch)
#define PLAIN(kind)   sizeof(kind), NONE
#define SCAN(b, t, d, ty)                                                                                    \
  {                                                                                                          \
    b, t, d, 16, ty, 0                                                                                       \
  }
#define ROWS(m, w, ty)                                                                                       \
  {                                                                                                          \
    m, 1, w, 0, ty, 0                                                                                        \
  }
#define MANY(n)                                                                                              \
  {                                                                                                          \
    1, 1, n, 0, XPH_F32, 0                                                                                   \
  }
#define LAYER(m, i, o, ty, math)                                                                             \
  {                                                                                                          \
    m, 1, i, o, ty, math                                                                                     \
  }
#define WINDOW(b, t, w, ty, math)                                                                            \
  {                                                                                                          \
    b, t, w, 0, ty, math                                                                                     \
  }
#define CELL(kind, ty, math)                                                                                 \
  {                                                                                                          \
    256, 60, 256, kind, ty, math                                                                             \
  }

/* Goals: those of an H200; kernels that only move memory reach 70 % of what a copy does. */
const card_case card_cases[] = {
    {"scan", XPH_OP_SCAN, SCAN(256, 60, 512, XPH_F32), give_scan, PLAIN(xph_scan_args), 75, 0, 0},
    {"scan", XPH_OP_SCAN, SCAN(256, 60, 512, XPH_BF16), give_scan, PLAIN(xph_scan_args), 75, 0, 0},
    {"scan", XPH_OP_SCAN, SCAN(256, 1024, 1536, XPH_F32), give_scan, PLAIN(xph_scan_args), 3200, 0, 0},
    {"scan", XPH_OP_SCAN, SCAN(256, 1024, 1536, XPH_BF16), give_scan, PLAIN(xph_scan_args), 3200, 0, 0},
    {"scan", XPH_OP_SCAN, SCAN(1, 1, 512, XPH_F32), give_scan, PLAIN(xph_scan_args), 0, 0, 0},
    {"scan", XPH_OP_SCAN, SCAN(32, 1, 512, XPH_F32), give_scan, PLAIN(xph_scan_args), 0, 0, 0},
    {"scan", XPH_OP_SCAN, SCAN(256, 1, 512, XPH_F32), give_scan, PLAIN(xph_scan_args), 0, 0, 0},
    {"scan_grad", XPH_OP_SCAN_GRAD, SCAN(256, 60, 512, XPH_F32), give_scan_grad, SCRATCH(xph_scan_grad_args),
     200, 0, 0},
    {"scan_grad", XPH_OP_SCAN_GRAD, SCAN(256, 60, 512, XPH_BF16), give_scan_grad, SCRATCH(xph_scan_grad_args),
     200, 0, 0},
    {"scan_grad", XPH_OP_SCAN_GRAD, SCAN(256, 1024, 1536, XPH_F32), give_scan_grad,
     SCRATCH(xph_scan_grad_args), 10000, 0, 0},
    {"scan_grad", XPH_OP_SCAN_GRAD, SCAN(256, 1024, 1536, XPH_BF16), give_scan_grad,
     SCRATCH(xph_scan_grad_args), 10000, 0, 0},
    {"conv", XPH_OP_CONV, SCAN(256, 60, 512, XPH_F32), give_conv, PLAIN(xph_conv_args), 0, 0.7, 0},
    {"conv", XPH_OP_CONV, SCAN(256, 60, 512, XPH_BF16), give_conv, PLAIN(xph_conv_args), 0, 0.7, 0},
    {"conv", XPH_OP_CONV, SCAN(256, 1024, 1536, XPH_F32), give_conv, PLAIN(xph_conv_args), 0, 0.7, 0},
    {"conv_grad", XPH_OP_CONV_GRAD, SCAN(256, 60, 512, XPH_F32), give_conv_grad, SCRATCH(xph_conv_grad_args),
     0, 0.7, 0},
    {"conv_grad", XPH_OP_CONV_GRAD, SCAN(256, 60, 512, XPH_BF16), give_conv_grad, SCRATCH(xph_conv_grad_args),
     0, 0.7, 0},
    {"conv_grad", XPH_OP_CONV_GRAD, SCAN(256, 1024, 1536, XPH_F32), give_conv_grad,
     SCRATCH(xph_conv_grad_args), 0, 0.7, 0},
    {"norm", XPH_OP_NORM, ROWS(15360, 256, XPH_F32), give_norm, PLAIN(xph_norm_args), 0, 0.7, 0},
    {"norm", XPH_OP_NORM, ROWS(15360, 256, XPH_BF16), give_norm, PLAIN(xph_norm_args), 0, 0.7, 0},
    {"norm", XPH_OP_NORM, ROWS(262144, 1536, XPH_F32), give_norm, PLAIN(xph_norm_args), 0, 0.7, 0},
    {"norm_grad", XPH_OP_NORM_GRAD, ROWS(15360, 256, XPH_F32), give_norm_grad, SCRATCH(xph_norm_grad_args), 0,
     0.7, 0},
    {"norm_grad", XPH_OP_NORM_GRAD, ROWS(15360, 256, XPH_BF16), give_norm_grad, SCRATCH(xph_norm_grad_args),
     0, 0.7, 0},
    {"norm_grad", XPH_OP_NORM_GRAD, ROWS(262144, 1536, XPH_F32), give_norm_grad, SCRATCH(xph_norm_grad_args),
     0, 0.7, 0},
    {"adam", XPH_OP_ADAM, MANY(1 << 20), give_adam, PLAIN(xph_adam_args), 0, 0.7, 0},
    {"adam", XPH_OP_ADAM, MANY(1 << 26), give_adam, PLAIN(xph_adam_args), 0, 0.7, 0},
    {"norm2", XPH_OP_NORM2, MANY(1 << 20), give_norm2, SCRATCH(xph_norm2_args), 0, 0, 0},
    {"norm2", XPH_OP_NORM2, MANY(1 << 26), give_norm2, SCRATCH(xph_norm2_args), 0, 0.7, 0},
    {"axpby", XPH_OP_AXPBY, MANY(1 << 26), give_axpby, PLAIN(xph_axpby_args), 0, 0.7, 0},
    {"cast", XPH_OP_CAST, MANY(1 << 26), give_cast, PLAIN(xph_cast_args), 0, 0.7, 0},
    {"embed", XPH_OP_EMBED, ROWS(15360, 0, XPH_F32), give_embed, PLAIN(xph_embed_args), 0, 0.7, 0},
    {"embed", XPH_OP_EMBED, ROWS(15360, 0, XPH_BF16), give_embed, PLAIN(xph_embed_args), 0, 0.7, 0},
    {"heads", XPH_OP_HEADS, ROWS(15360, 0, XPH_F32), give_heads, PLAIN(xph_heads_args), 0, 0, 0},
    {"heads_grad", XPH_OP_HEADS_GRAD, ROWS(15360, 0, XPH_F32), give_heads_grad, SCRATCH(xph_heads_grad_args),
     0, 0, 0},
    {"loss", XPH_OP_LOSS, ROWS(15360, 0, XPH_F32), give_loss, PLAIN(xph_loss_args), 0, 0, 0},
    {"linear", XPH_OP_LINEAR, LAYER(15360, 256, 1024, XPH_F32, 0), give_linear, PLAIN(xph_linear_args), 0, 0,
     2.0 * 15360 * 256 * 1024},
    {"linear", XPH_OP_LINEAR, LAYER(15360, 256, 1024, XPH_F32, 1), give_linear, PLAIN(xph_linear_args), 0, 0,
     2.0 * 15360 * 256 * 1024},
    {"linear", XPH_OP_LINEAR, LAYER(15360, 256, 1024, XPH_BF16, 0), give_linear, PLAIN(xph_linear_args), 0, 0,
     2.0 * 15360 * 256 * 1024},
    {"linear", XPH_OP_LINEAR, LAYER(256, 256, 1024, XPH_F32, 0), give_linear, PLAIN(xph_linear_args), 0, 0,
     2.0 * 256 * 256 * 1024},
    {"linear", XPH_OP_LINEAR, LAYER(1, 256, 1024, XPH_F32, 0), give_linear, PLAIN(xph_linear_args), 0, 0,
     2.0 * 256 * 1024},
    {"linear_grad", XPH_OP_LINEAR_GRAD, LAYER(15360, 256, 1024, XPH_F32, 0), give_linear_grad,
     SCRATCH(xph_linear_grad_args), 0, 0, 4.0 * 15360 * 256 * 1024},
    {"linear_grad", XPH_OP_LINEAR_GRAD, LAYER(15360, 256, 1024, XPH_F32, 1), give_linear_grad,
     SCRATCH(xph_linear_grad_args), 0, 0, 4.0 * 15360 * 256 * 1024},
    {"linear_grad", XPH_OP_LINEAR_GRAD, LAYER(15360, 256, 1024, XPH_BF16, 0), give_linear_grad,
     SCRATCH(xph_linear_grad_args), 0, 0, 4.0 * 15360 * 256 * 1024},
    {"attention", XPH_OP_ATTENTION, WINDOW(256, 60, 60, XPH_F32, 0), give_attention,
     SCRATCH(xph_attention_args), 0, 0, 0},
    {"attention", XPH_OP_ATTENTION, WINDOW(256, 60, 60, XPH_F32, 1), give_attention,
     SCRATCH(xph_attention_args), 0, 0, 0},
    {"attention", XPH_OP_ATTENTION, WINDOW(256, 60, 60, XPH_BF16, 0), give_attention,
     SCRATCH(xph_attention_args), 0, 0, 0},
    {"attention", XPH_OP_ATTENTION, WINDOW(256, 1024, 128, XPH_F32, 0), give_attention,
     SCRATCH(xph_attention_args), 0, 0, 0},
    {"attention", XPH_OP_ATTENTION, WINDOW(256, 1024, 128, XPH_BF16, 0), give_attention,
     SCRATCH(xph_attention_args), 0, 0, 0},
    {"attention_grad", XPH_OP_ATTENTION_GRAD, WINDOW(256, 60, 60, XPH_F32, 0), give_attention_grad,
     SCRATCH(xph_attention_grad_args), 0, 0, 0},
    {"attention_grad", XPH_OP_ATTENTION_GRAD, WINDOW(256, 60, 60, XPH_BF16, 0), give_attention_grad,
     SCRATCH(xph_attention_grad_args), 0, 0, 0},
    {"attention_grad", XPH_OP_ATTENTION_GRAD, WINDOW(256, 1024, 128, XPH_F32, 0), give_attention_grad,
     SCRATCH(xph_attention_grad_args), 0, 0, 0},
    {"attention_grad", XPH_OP_ATTENTION_GRAD, WINDOW(256, 1024, 128, XPH_BF16, 0), give_attention_grad,
     SCRATCH(xph_attention_grad_args), 0, 0, 0},
    {"lstm", XPH_OP_RNN, CELL(XPH_RNN_LSTM, XPH_F32, 0), give_rnn, SCRATCH(xph_rnn_args), 0, 0, 0},
    {"lstm", XPH_OP_RNN, CELL(XPH_RNN_LSTM, XPH_F32, 1), give_rnn, SCRATCH(xph_rnn_args), 0, 0, 0},
    {"lstm", XPH_OP_RNN, CELL(XPH_RNN_LSTM, XPH_BF16, 0), give_rnn, SCRATCH(xph_rnn_args), 0, 0, 0},
    {"lstm_grad", XPH_OP_RNN_GRAD, CELL(XPH_RNN_LSTM, XPH_F32, 0), give_rnn_grad, SCRATCH(xph_rnn_grad_args),
     0, 0, 0},
    {"lstm_grad", XPH_OP_RNN_GRAD, CELL(XPH_RNN_LSTM, XPH_BF16, 0), give_rnn_grad, SCRATCH(xph_rnn_grad_args),
     0, 0, 0},
    {"gru", XPH_OP_RNN, CELL(XPH_RNN_GRU, XPH_F32, 0), give_rnn, SCRATCH(xph_rnn_args), 0, 0, 0},
    {"gru", XPH_OP_RNN, CELL(XPH_RNN_GRU, XPH_BF16, 0), give_rnn, SCRATCH(xph_rnn_args), 0, 0, 0},
    {"gru_grad", XPH_OP_RNN_GRAD, CELL(XPH_RNN_GRU, XPH_F32, 0), give_rnn_grad, SCRATCH(xph_rnn_grad_args), 0,
     0, 0},
    {"gru_grad", XPH_OP_RNN_GRAD, CELL(XPH_RNN_GRU, XPH_BF16, 0), give_rnn_grad, SCRATCH(xph_rnn_grad_args),
     0, 0, 0},
    {NULL, 0, {0, 0, 0, 0, 0, 0}, NULL, 0, 0, 0, 0, 0},
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

shape card_small(const card_case *k)
{
    shape s = k->shape;
    const bool cell = k->op == XPH_OP_RNN || k->op == XPH_OP_RNN_GRAD;
    const bool layer = k->op == XPH_OP_LINEAR || k->op == XPH_OP_LINEAR_GRAD;
    s.batch = least(s.batch, 2);
    s.time = least(s.time, 3);
    s.width = least(s.width, cell ? 32 : 48);
    if (layer) s.states = 24;
    return s;
}
