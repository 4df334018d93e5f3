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

/* Rows in the type of the shape: numbers to read, room to write. */
static void *rows_in(card *c, const shape *s, int64_t width, double scale)
{
    return card_numbers(c, s->type, s->batch * s->time * width, scale);
}

static void *rows_out(card *c, const shape *s, int64_t width)
{
    return card_zeros(c, (size_t)(s->batch * s->time * width) * card_size(s->type));
}

static void *floats_in(card *c, int64_t count, double scale)
{
    return card_numbers(c, XPH_F32, count, scale);
}

static void *floats_out(card *c, int64_t count)
{
    return card_zeros(c, (size_t)count * sizeof(float));
}

/* Bytes of rows so wide. */
static double moved(const shape *s, double width)
{
    return rows_of(s) * width * (double)card_size(s->type);
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
    const int64_t d = s->width, n = s->states, states = s->batch * d * n;
    xph_scan_args a = {.type = s->type, .batch = s->batch, .time = s->time, .width = d, .states = n};
    a.x = rows_in(c, s, d, 1);
    a.dt = rows_in(c, s, d, 2);
    a.a_log = rates(c, d, n);
    a.b = rows_in(c, s, n, 1);
    a.c = rows_in(c, s, n, 1);
    a.skip = floats_in(c, d, 1);
    a.z = rows_in(c, s, d, 1);
    a.state_in = floats_in(c, states, 0.5);
    a.state_out = floats_out(c, states);
    a.y = rows_out(c, s, d);
    a.ldx = a.lddt = a.ldz = a.ldy = d;
    a.ldb = a.ldc = n;
    a.ld_state = d * n;
    *(xph_scan_args *)args = a;
    return moved(s, (double)(4 * d + 2 * n)) + 8.0 * (double)states;
}

static double give_scan_grad(card *c, const shape *s, void *args)
{
    const int64_t d = s->width, n = s->states;
    xph_scan_grad_args *g = args;
    give_scan(c, s, &g->fwd);
    g->fwd.state_in = NULL;
    g->dy = rows_in(c, s, d, 1e-3);
    g->dx = rows_out(c, s, d);
    g->ddt = rows_out(c, s, d);
    g->db = rows_out(c, s, n);
    g->dc = rows_out(c, s, n);
    g->dz = rows_out(c, s, d);
    g->lddy = g->lddx = g->ldddt = g->lddz = d;
    g->lddb = g->lddc = n;
    g->da_log = floats_out(c, d * n);
    g->dskip = floats_out(c, d);
    return moved(s, (double)(7 * d + 4 * n));
}

static double give_conv(card *c, const shape *s, void *args)
{
    const int64_t d = s->width;
    xph_conv_args a = {.type = s->type, .batch = s->batch, .time = s->time, .width = d, .taps = TAPS};
    a.x = rows_in(c, s, 2 * d, 1);
    a.ldx = 2 * d; /* half of the product before, as in a block */
    a.w = floats_in(c, d * TAPS, 0.5);
    a.bias = floats_in(c, d, 0.1);
    a.ld_state = (TAPS - 1) * d;
    a.y = rows_out(c, s, d);
    a.ldy = d;
    *(xph_conv_args *)args = a;
    return moved(s, 2.0 * (double)d);
}

static double give_conv_grad(card *c, const shape *s, void *args)
{
    const int64_t d = s->width;
    xph_conv_grad_args *g = args;
    give_conv(c, s, &g->fwd);
    g->dy = rows_in(c, s, d, 1e-3);
    g->dx = rows_out(c, s, d);
    g->lddy = g->lddx = d;
    g->dw = floats_out(c, d * TAPS);
    g->dbias = floats_out(c, d);
    return moved(s, 3.0 * (double)d);
}

static double give_norm(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, width = s->width;
    xph_norm_args a = {.type = s->type, .act = XPH_ACT_SILU, .rows = rows, .width = width, .epsilon = 1e-5};
    a.x = rows_in(c, s, width, 1);
    a.gain = floats_in(c, width, 1);
    a.shift = floats_in(c, width, 0.1);
    a.y = rows_out(c, s, width);
    a.ldx = a.ldy = width;
    a.saved = floats_out(c, 2 * rows);
    *(xph_norm_args *)args = a;
    return moved(s, 2.0 * (double)width);
}

static double give_norm_grad(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, width = s->width;
    xph_norm_grad_args *g = args;
    give_norm(c, s, &g->fwd);
    g->fwd.saved = floats_in(c, 2 * rows, 1);
    g->dy = rows_in(c, s, width, 1e-3);
    g->dx = rows_out(c, s, width);
    g->lddy = g->lddx = width;
    g->dgain = floats_out(c, width);
    g->dshift = floats_out(c, width);
    return moved(s, 3.0 * (double)width);
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
    const float *w = floats_in(c, in * out, 0.1), *bias = floats_in(c, out, 0.1);
    xph_linear_args a = {.type = s->type, .math = s->math, .rows = rows, .in = in, .out = out};
    a.x = rows_in(c, s, in, 1);
    a.ldx = in;
    a.w = w;
    a.packed = packed(c, s, w, bias);
    a.bias = bias;
    a.y = rows_out(c, s, out);
    a.ldy = out;
    *(xph_linear_args *)args = a;
    return moved(s, (double)(in + out)) + 4.0 * (double)(in * out);
}

static double give_linear_grad(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, in = s->width, out = s->states;
    const float *w = floats_in(c, in * out, 0.1);
    xph_linear_grad_args a = {.type = s->type, .math = s->math, .rows = rows, .in = in, .out = out};
    a.x = rows_in(c, s, in, 1);
    a.w = w;
    a.packed = packed(c, s, w, NULL);
    a.dy = rows_in(c, s, out, 1e-3);
    a.dx = rows_out(c, s, in);
    a.ldx = a.lddx = in;
    a.lddy = out;
    a.dw = floats_out(c, in * out);
    a.dbias = floats_out(c, out);
    *(xph_linear_grad_args *)args = a;
    return moved(s, (double)(2 * in + out)) + 8.0 * (double)(in * out);
}

static double give_attention(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, width = HEADS * DIM;
    xph_attention_args a = {
        .type = s->type, .math = s->math, .batch = s->batch, .time = s->time, .heads = HEADS, .dim = DIM};
    a.window = s->width;
    a.qkv = rows_in(c, s, 3 * width, 1);
    a.ldqkv = 3 * width;
    a.bias = floats_in(c, HEADS * s->width, 0.1);
    a.y = rows_out(c, s, width);
    a.ldy = width;
    a.saved = floats_out(c, rows * HEADS);
    *(xph_attention_args *)args = a;
    return moved(s, 4.0 * (double)width);
}

static double give_attention_grad(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, width = HEADS * DIM;
    xph_attention_grad_args *g = args;
    give_attention(c, s, &g->fwd);
    g->fwd.saved = floats_in(c, rows * HEADS, 8);
    g->dy = rows_in(c, s, width, 1e-3);
    g->lddy = width;
    g->dqkv = rows_out(c, s, 3 * width);
    g->lddqkv = 3 * width;
    g->dbias = floats_out(c, HEADS * s->width);
    return moved(s, 8.0 * (double)width);
}

/* Of a frame: gates, and what forward keeps. */
static int64_t rnn_gates(const shape *s)
{
    return (s->states == XPH_RNN_LSTM ? 4 : 3) * s->width;
}

static int64_t rnn_kept(const shape *s)
{
    return rnn_gates(s) + s->width;
}

static double give_rnn(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, hidden = s->width, gates = rnn_gates(s), kept = rnn_kept(s);
    xph_rnn_args a = {.type = s->type, .kind = (int32_t)s->states, .math = s->math};
    a.batch = s->batch;
    a.time = s->time;
    a.hidden = hidden;
    a.gx = rows_in(c, s, gates, 1);
    a.ldgx = gates;
    a.w = floats_in(c, gates * hidden, 0.06);
    a.bias = floats_in(c, gates, 0.1);
    a.ld_state = (s->states == XPH_RNN_LSTM ? 2 : 1) * hidden;
    a.y = rows_out(c, s, hidden);
    a.ldy = hidden;
    a.saved = floats_out(c, rows * kept);
    *(xph_rnn_args *)args = a;
    return moved(s, (double)(gates + hidden)) + rows_of(s) * 4.0 * (double)kept;
}

static double give_rnn_grad(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, hidden = s->width, gates = rnn_gates(s), kept = rnn_kept(s);
    xph_rnn_grad_args *g = args;
    give_rnn(c, s, &g->fwd);
    g->fwd.saved = floats_in(c, rows * kept, 0.5);
    g->dy = rows_in(c, s, hidden, 1e-3);
    g->lddy = hidden;
    g->dgx = rows_out(c, s, gates);
    g->lddgx = gates;
    g->dw = floats_out(c, gates * hidden);
    g->dbias = floats_out(c, gates);
    return moved(s, (double)(gates + 2 * hidden)) + rows_of(s) * 4.0 * (double)kept;
}

/* ---- input rows, action heads, loss ---- */

static const xph_head action_heads[LOGIT_HEADS] = {
    {EXPHIL_BERNOULLI, 8, 0},     {EXPHIL_CATEGORICAL, 17, 8},  {EXPHIL_CATEGORICAL, 17, 25},
    {EXPHIL_CATEGORICAL, 17, 42}, {EXPHIL_CATEGORICAL, 17, 59}, {EXPHIL_CATEGORICAL, 5, 76},
};
static const xph_head_loss losses[LOGIT_HEADS] = {{.weight = 1}, {.weight = 1}, {.weight = 1},
                                                  {.weight = 1}, {.weight = 1}, {.weight = 1}};

static void *some_actions(card *c, int64_t rows)
{
    int32_t *host = malloc((size_t)(rows * LOGIT_HEADS) * sizeof *host);
    if (!host) abort();
    for (int64_t i = 0; i < rows * LOGIT_HEADS; i++)
        host[i] = (int32_t)((i / LOGIT_HEADS * 7 + i * 3) % action_heads[i % LOGIT_HEADS].count);
    void *there = card_bytes(c, host, (size_t)(rows * LOGIT_HEADS) * sizeof *host);
    free(host);
    return there;
}

static double give_embed(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time, width = FLOATS + LOGITS;
    xph_embed_args a = {.type = s->type, .rows = rows, .floats = FLOATS, .slots = 1};
    a.heads = LOGIT_HEADS;
    a.logits = LOGITS;
    a.head = action_heads;
    a.x = floats_in(c, rows * FLOATS, 1);
    a.ldx = FLOATS;
    a.actions = some_actions(c, rows);
    a.lda = LOGIT_HEADS;
    a.y = rows_out(c, s, width);
    a.ldy = width;
    *(xph_embed_args *)args = a;
    return rows_of(s) * 4.0 * (FLOATS + LOGIT_HEADS) + moved(s, (double)width);
}

static double give_heads(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time;
    xph_heads_args a = {
        .type = s->type, .rows = rows, .width = TRUNK, .heads = LOGIT_HEADS, .logits = LOGITS};
    a.head = action_heads;
    a.z = rows_in(c, s, TRUNK, 1);
    a.ldz = TRUNK;
    a.v = floats_in(c, LOGITS * TRUNK, 0.1);
    a.bias = floats_in(c, LOGITS, 0.1);
    a.e = floats_in(c, LOGITS * TRUNK, 0.1);
    a.actions = some_actions(c, rows);
    a.lda = LOGIT_HEADS;
    a.y = rows_out(c, s, LOGITS);
    a.ldy = LOGITS;
    *(xph_heads_args *)args = a;
    return moved(s, TRUNK + LOGITS);
}

static double give_heads_grad(card *c, const shape *s, void *args)
{
    xph_heads_grad_args *g = args;
    give_heads(c, s, &g->fwd);
    g->dy = rows_in(c, s, LOGITS, 1e-3);
    g->lddy = LOGITS;
    g->dz = rows_out(c, s, TRUNK);
    g->lddz = TRUNK;
    g->dv = floats_out(c, LOGITS * TRUNK);
    g->dbias = floats_out(c, LOGITS);
    g->de = floats_out(c, LOGITS * TRUNK);
    return moved(s, (double)(2 * TRUNK + LOGITS));
}

static double give_loss(card *c, const shape *s, void *args)
{
    const int64_t rows = s->batch * s->time;
    xph_loss_args a = {.type = s->type, .rows = rows, .heads = LOGIT_HEADS, .logits = LOGITS, .scale = 1};
    a.head = action_heads;
    a.loss = losses;
    a.y = rows_in(c, s, LOGITS, 2);
    a.actions = some_actions(c, rows);
    a.lda = LOGIT_HEADS;
    a.dy = rows_out(c, s, LOGITS);
    a.ldy = a.lddy = LOGITS;
    a.sums = card_zeros(c, LOGIT_HEADS * sizeof(double));
    a.rows_loss = card_zeros(c, (size_t)(rows * LOGIT_HEADS) * sizeof(double));
    *(xph_loss_args *)args = a;
    return moved(s, (double)(2 * LOGITS)) + rows_of(s) * (double)(12 * LOGIT_HEADS);
}

/* ---- over arenas: width numbers ---- */

static double give_adam(card *c, const shape *s, void *args)
{
    const int64_t n = s->width;
    xph_adam_args a = {.type = XPH_F32, .count = n, .decay_count = n};
    a.p = floats_in(c, n, 0.1);
    a.grad = floats_in(c, n, 1e-3);
    a.m = floats_out(c, n);
    a.v = floats_out(c, n);
    a.rate = 1e-6, a.beta1 = 0.9, a.beta2 = 0.999, a.epsilon = 1e-8, a.decay = 0.01;
    a.correction1 = a.correction2 = a.grad_scale = 1;
    *(xph_adam_args *)args = a;
    return 28.0 * (double)n;
}

static double give_norm2(card *c, const shape *s, void *args)
{
    double *norm = card_zeros(c, 16);
    *(xph_norm2_args *)args = (xph_norm2_args){.type = XPH_F32,
                                               .count = s->width,
                                               .x = floats_in(c, s->width, 1),
                                               .norm = norm,
                                               .first_bad = (int64_t *)(void *)(norm + 1)};
    return 4.0 * (double)s->width;
}

static double give_axpby(card *c, const shape *s, void *args)
{
    xph_axpby_args a = {.type = XPH_F32, .count = s->width, .a = 0.5, .b = 0.5};
    a.x = floats_in(c, s->width, 1);
    a.y = floats_in(c, s->width, 1);
    *(xph_axpby_args *)args = a;
    return 12.0 * (double)s->width;
}

static double give_cast(card *c, const shape *s, void *args)
{
    xph_cast_args a = {.type = XPH_F32, .as = XPH_BF16, .narrow = 1, .count = s->width};
    a.x = floats_in(c, s->width, 1);
    a.y = card_zeros(c, (size_t)s->width * 2);
    *(xph_cast_args *)args = a;
    return 6.0 * (double)s->width;
}

/* ---- the list ---- */

#define SCRATCH(kind)                   sizeof(kind), offsetof(kind, scratch)
#define PLAIN(kind)                     sizeof(kind), SIZE_MAX
#define OPERATION(name, op, give, args) static const card_op name = {#name, XPH_OP_##op, give, args};

OPERATION(scan, SCAN, give_scan, PLAIN(xph_scan_args))
OPERATION(scan_grad, SCAN_GRAD, give_scan_grad, SCRATCH(xph_scan_grad_args))
OPERATION(conv, CONV, give_conv, PLAIN(xph_conv_args))
OPERATION(conv_grad, CONV_GRAD, give_conv_grad, SCRATCH(xph_conv_grad_args))
OPERATION(norm, NORM, give_norm, PLAIN(xph_norm_args))
OPERATION(norm_grad, NORM_GRAD, give_norm_grad, SCRATCH(xph_norm_grad_args))
OPERATION(adam, ADAM, give_adam, PLAIN(xph_adam_args))
OPERATION(norm2, NORM2, give_norm2, SCRATCH(xph_norm2_args))
OPERATION(axpby, AXPBY, give_axpby, PLAIN(xph_axpby_args))
OPERATION(cast, CAST, give_cast, PLAIN(xph_cast_args))
OPERATION(embed, EMBED, give_embed, PLAIN(xph_embed_args))
OPERATION(heads, HEADS, give_heads, PLAIN(xph_heads_args))
OPERATION(heads_grad, HEADS_GRAD, give_heads_grad, SCRATCH(xph_heads_grad_args))
OPERATION(loss, LOSS, give_loss, PLAIN(xph_loss_args))
OPERATION(linear, LINEAR, give_linear, PLAIN(xph_linear_args))
OPERATION(linear_grad, LINEAR_GRAD, give_linear_grad, SCRATCH(xph_linear_grad_args))
OPERATION(attention, ATTENTION, give_attention, SCRATCH(xph_attention_args))
OPERATION(attention_grad, ATTENTION_GRAD, give_attention_grad, SCRATCH(xph_attention_grad_args))
OPERATION(lstm, RNN, give_rnn, SCRATCH(xph_rnn_args))
OPERATION(lstm_grad, RNN_GRAD, give_rnn_grad, SCRATCH(xph_rnn_grad_args))
OPERATION(gru, RNN, give_rnn, SCRATCH(xph_rnn_args))
OPERATION(gru_grad, RNN_GRAD, give_rnn_grad, SCRATCH(xph_rnn_grad_args))

/* Goals: those of an H200; kernels that only move memory reach 70 % of what a copy does. */
const card_case card_cases[] = {
    {&scan, {256, 60, 512, 16, XPH_F32, 0}, 75, 0},
    {&scan, {256, 60, 512, 16, XPH_BF16, 0}, 75, 0},
    {&scan, {256, 1024, 1536, 16, XPH_F32, 0}, 3200, 0},
    {&scan, {256, 1024, 1536, 16, XPH_BF16, 0}, 3200, 0},
    {&scan, {1, 1, 512, 16, XPH_F32, 0}, 0, 0},
    {&scan, {32, 1, 512, 16, XPH_F32, 0}, 0, 0},
    {&scan, {256, 1, 512, 16, XPH_F32, 0}, 0, 0},
    {&scan_grad, {256, 60, 512, 16, XPH_F32, 0}, 200, 0},
    {&scan_grad, {256, 60, 512, 16, XPH_BF16, 0}, 200, 0},
    {&scan_grad, {256, 1024, 1536, 16, XPH_F32, 0}, 10000, 0},
    {&scan_grad, {256, 1024, 1536, 16, XPH_BF16, 0}, 10000, 0},
    {&conv, {256, 60, 512, 16, XPH_F32, 0}, 0, 0.7},
    {&conv, {256, 60, 512, 16, XPH_BF16, 0}, 0, 0.7},
    {&conv, {256, 1024, 1536, 16, XPH_F32, 0}, 0, 0.7},
    {&conv_grad, {256, 60, 512, 16, XPH_F32, 0}, 0, 0.7},
    {&conv_grad, {256, 60, 512, 16, XPH_BF16, 0}, 0, 0.7},
    {&conv_grad, {256, 1024, 1536, 16, XPH_F32, 0}, 0, 0.7},
    {&norm, {15360, 1, 256, 0, XPH_F32, 0}, 0, 0.7},
    {&norm, {15360, 1, 256, 0, XPH_BF16, 0}, 0, 0.7},
    {&norm, {262144, 1, 1536, 0, XPH_F32, 0}, 0, 0.7},
    {&norm_grad, {15360, 1, 256, 0, XPH_F32, 0}, 0, 0.7},
    {&norm_grad, {15360, 1, 256, 0, XPH_BF16, 0}, 0, 0.7},
    {&norm_grad, {262144, 1, 1536, 0, XPH_F32, 0}, 0, 0.7},
    {&adam, {1, 1, 1 << 20, 0, XPH_F32, 0}, 0, 0.7},
    {&adam, {1, 1, 1 << 26, 0, XPH_F32, 0}, 0, 0.7},
    {&norm2, {1, 1, 1 << 20, 0, XPH_F32, 0}, 0, 0},
    {&norm2, {1, 1, 1 << 26, 0, XPH_F32, 0}, 0, 0.7},
    {&axpby, {1, 1, 1 << 26, 0, XPH_F32, 0}, 0, 0.7},
    {&cast, {1, 1, 1 << 26, 0, XPH_F32, 0}, 0, 0.7},
    {&embed, {15360, 1, 0, 0, XPH_F32, 0}, 0, 0.7},
    {&embed, {15360, 1, 0, 0, XPH_BF16, 0}, 0, 0.7},
    {&heads, {15360, 1, 0, 0, XPH_F32, 0}, 0, 0},
    {&heads_grad, {15360, 1, 0, 0, XPH_F32, 0}, 0, 0},
    {&loss, {15360, 1, 0, 0, XPH_F32, 0}, 0, 0},
    {&linear, {15360, 1, 256, 1024, XPH_F32, 0}, 0, 0},
    {&linear, {15360, 1, 256, 1024, XPH_F32, XPH_MATH_TF32}, 0, 0},
    {&linear, {15360, 1, 256, 1024, XPH_BF16, 0}, 0, 0},
    {&linear, {256, 1, 256, 1024, XPH_F32, 0}, 0, 0},
    {&linear, {1, 1, 256, 1024, XPH_F32, 0}, 0, 0},
    {&linear_grad, {15360, 1, 256, 1024, XPH_F32, 0}, 0, 0},
    {&linear_grad, {15360, 1, 256, 1024, XPH_F32, XPH_MATH_TF32}, 0, 0},
    {&linear_grad, {15360, 1, 256, 1024, XPH_BF16, 0}, 0, 0},
    {&attention, {256, 60, 60, 0, XPH_F32, 0}, 0, 0},
    {&attention, {256, 60, 60, 0, XPH_F32, XPH_MATH_TF32}, 0, 0},
    {&attention, {256, 60, 60, 0, XPH_BF16, 0}, 0, 0},
    {&attention, {256, 1024, 128, 0, XPH_F32, 0}, 0, 0},
    {&attention, {256, 1024, 128, 0, XPH_BF16, 0}, 0, 0},
    {&attention_grad, {256, 60, 60, 0, XPH_F32, 0}, 0, 0},
    {&attention_grad, {256, 60, 60, 0, XPH_BF16, 0}, 0, 0},
    {&attention_grad, {256, 1024, 128, 0, XPH_F32, 0}, 0, 0},
    {&attention_grad, {256, 1024, 128, 0, XPH_BF16, 0}, 0, 0},
    {&lstm, {256, 60, 256, XPH_RNN_LSTM, XPH_F32, 0}, 0, 0},
    {&lstm, {256, 60, 256, XPH_RNN_LSTM, XPH_F32, XPH_MATH_TF32}, 0, 0},
    {&lstm, {256, 60, 256, XPH_RNN_LSTM, XPH_BF16, 0}, 0, 0},
    {&lstm_grad, {256, 60, 256, XPH_RNN_LSTM, XPH_F32, 0}, 0, 0},
    {&lstm_grad, {256, 60, 256, XPH_RNN_LSTM, XPH_BF16, 0}, 0, 0},
    {&gru, {256, 60, 256, XPH_RNN_GRU, XPH_F32, 0}, 0, 0},
    {&gru, {256, 60, 256, XPH_RNN_GRU, XPH_BF16, 0}, 0, 0},
    {&gru_grad, {256, 60, 256, XPH_RNN_GRU, XPH_F32, 0}, 0, 0},
    {&gru_grad, {256, 60, 256, XPH_RNN_GRU, XPH_BF16, 0}, 0, 0},
    {NULL, {0, 0, 0, 0, 0, 0}, 0, 0},
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

shape card_small(const card_case *k)
{
    shape s = k->shape;
    const bool cell = k->of->op == XPH_OP_RNN || k->of->op == XPH_OP_RNN_GRAD;
    const bool layer = k->of->op == XPH_OP_LINEAR || k->of->op == XPH_OP_LINEAR_GRAD;
    s.batch = least(s.batch, 2);
    s.time = least(s.time, 3);
    s.width = least(s.width, cell ? 32 : 48);
    if (layer) s.states = 24;
    return s;
}

double card_flop(const card_case *k)
{
    const double products = 2.0 * rows_of(&k->shape) * (double)k->shape.width * (double)k->shape.states;
    return k->of == &linear ? products : k->of == &linear_grad ? 2 * products : 0;
}
