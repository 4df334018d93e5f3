/* Matrix products: training's large ones, the few rows of several streams, and the single row of a step in every type of
 * weights; the recurrent layers, whose work is the same. */
#include "kernels.h"

typedef struct product {
    int64_t rows, in, out;
} product;

static const product products[] = {
    {15360, 288, 1024}, {15360, 512, 512}, {3840, 288, 256}, {3840, 256, 1024},
    {3840, 512, 1024},  {3840, 1024, 256}, {64, 288, 1024},  {64, 256, 512},
    {64, 512, 256},     {32, 288, 1024},   {32, 512, 512},
};

static const char *const weights_name[] = {[XPH_F32] = "f32", [XPH_BF16] = "bf16", [XPH_I8] = "int8"};

static double flop_of(product p)
{
    return 2.0 * (double)p.rows * (double)p.in * (double)p.out;
}

/* 0.90, 0.95 of the peak as so many times the floor. */
static double bar_of(product p, double large, double small)
{
    return 1 / (p.rows <= 64 ? small : large);
}

static xph_linear_args give_linear(kernel_bench *k, product p, xph_type weights, size_t *packed_bytes)
{
    const float *w = bench_floats((size_t)(p.in * p.out), 0.1f);
    xph_linear_args a = {
        .type = XPH_F32, .weights = weights, .rows = p.rows, .in = p.in, .out = p.out, .w = w};
    a.x = bench_floats((size_t)(p.rows * p.in), 1);
    a.packed = kernel_pack(k, weights, p.in, p.out, w, packed_bytes);
    a.bias = bench_floats((size_t)p.out, 0.1f);
    a.y = bench_memory((size_t)(p.rows * p.out) * sizeof(float));
    a.ldx = p.in;
    a.ldy = p.out;
    return a;
}

static void forward(kernel_bench *k, product p, xph_type weights)
{
    kernel_case c = {.subject = "linear forward", .op = XPH_OP_LINEAR, .item = "flop"};
    if (!kernel_begin(k, &c, "M=%d K=%d N=%d %s", (int)p.rows, (int)p.in, (int)p.out, weights_name[weights]))
        return;
    xph_linear_args args = give_linear(k, p, weights, NULL);
    c.items = c.amount = flop_of(p);
    /* where bfloat16 products are slower than plain ones the plain ones are the floor */
    c.floor = weights == XPH_I8 ? FLOOR_INT8 : FLOOR_FMA;
    if (weights == XPH_BF16 && k->options->floors.bf16 > k->options->floors.fma) c.floor = FLOOR_BF16;
    c.bar_floors = weights == XPH_BF16 ? 1 / 0.87 : weights == XPH_F32 ? bar_of(p, 0.90, 0.95) : 0;
    kernel_time(k, &c, &args);
}

static void gradient(kernel_bench *k, product p, bool of_weights)
{
    const char *subject = of_weights ? "linear weight gradient" : "linear data gradient";
    kernel_case c = {.subject = subject, .op = XPH_OP_LINEAR_GRAD, .item = "flop", .floor = FLOOR_FMA};
    if (!kernel_begin(k, &c, "M=%d K=%d N=%d", (int)p.rows, (int)p.in, (int)p.out)) return;
    xph_linear_grad_args args = {
        .type = XPH_F32, .rows = p.rows, .in = p.in, .out = p.out, .ldx = p.in, .lddy = p.out, .lddx = p.in};
    args.x = bench_floats((size_t)(p.rows * p.in), 1);
    args.w = bench_floats((size_t)(p.in * p.out), 0.1f);
    args.dy = bench_floats((size_t)(p.rows * p.out), 1e-3f);
    if (of_weights) {
        args.dw = bench_floats((size_t)(p.in * p.out), 0);
        args.dbias = bench_floats((size_t)p.out, 0);
    } else {
        args.dx = bench_memory((size_t)(p.rows * p.in) * sizeof(float));
    }
    c.scratch_at = offsetof(xph_linear_grad_args, scratch);
    c.items = c.amount = flop_of(p);
    c.bar_floors = of_weights ? bar_of(p, 0.85, 0.85) : bar_of(p, 0.90, 0.95);
    kernel_time(k, &c, &args);
}

/* One row reads every weight once: that is the floor. */
static void single(kernel_bench *k, int64_t in, int64_t out, xph_type weights)
{
    kernel_case c = {.subject = "linear of one row", .op = XPH_OP_LINEAR, .item = "byte"};
    if (!kernel_begin(k, &c, "K=%d N=%d %s", (int)in, (int)out, weights_name[weights])) return;
    size_t bytes;
    xph_linear_args args = give_linear(k, (product){1, in, out}, weights, &bytes);
    c.floor = FLOOR_READ;
    c.pass = (bench_pass){.in = {args.packed}, .count = (int64_t)(bytes / 256 * 64)};
    c.items = (double)bytes;
    if (weights == XPH_F32) c.bar_floors = 1.10;
    kernel_time(k, &c, &args);
}

void kernel_cases_linear(kernel_bench *k)
{
    static const int64_t shape[][2] = {{288, 1024}, {256, 1024}, {288, 512},
                                       {512, 512},  {512, 288},  {512, 2048}};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (!k->options->quick || products[i].rows <= 64) forward(k, products[i], XPH_F32);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        if (k->options->quick && products[i].rows > 64) continue;
        gradient(k, products[i], false);
        gradient(k, products[i], true);
    }
    forward(k, (product){k->options->quick ? 64 : 3840, 256, 1024}, XPH_BF16);
    forward(k, (product){64, 288, 1024}, XPH_BF16);
    forward(k, (product){64, 288, 1024}, XPH_I8);
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        single(k, shape[i][0], shape[i][1], XPH_F32);
        single(k, shape[i][0], shape[i][1], XPH_BF16);
        single(k, shape[i][0], shape[i][1], XPH_I8);
    }
}

/* ---- recurrent ----------------------------------------------------------------------------------------- */

enum { SAVED_LSTM = 5, SAVED_GRU = 4 };

static void give_rnn(kernel_bench *k, xph_rnn_args *a, bool saved, size_t *packed_bytes)
{
    int64_t gates = (a->kind == XPH_RNN_LSTM ? 4 : 3) * a->hidden, rows = a->batch * a->time;
    int64_t state = (a->kind == XPH_RNN_LSTM ? 2 : 1) * a->hidden;
    const float *w = bench_floats((size_t)(gates * a->hidden), 0.06f);
    a->gx = bench_floats((size_t)(rows * gates), 1);
    a->ldgx = gates;
    a->w = w;
    a->packed = kernel_pack(k, a->weights, a->hidden, gates, w, packed_bytes);
    a->bias = bench_floats((size_t)gates, 0.1f);
    a->state_in = bench_floats((size_t)(a->batch * state), 0.5f);
    a->state_out = bench_memory((size_t)(a->batch * state) * sizeof(float));
    a->ld_state = state;
    a->y = bench_memory((size_t)(rows * a->hidden) * sizeof(float));
    a->ldy = a->hidden;
    int64_t kept = a->kind == XPH_RNN_LSTM ? SAVED_LSTM : SAVED_GRU;
    if (saved) a->saved = bench_memory((size_t)(rows * kept * a->hidden) * sizeof(float));
}

static const char *rnn_name(int32_t kind)
{
    return kind == XPH_RNN_LSTM ? "lstm" : "gru";
}

static void rnn_step(kernel_bench *k, int32_t kind, int64_t hidden, xph_type weights)
{
    kernel_case c = {.subject = "recurrent step", .op = XPH_OP_RNN, .item = "byte", .floor = FLOOR_READ};
    if (!kernel_begin(k, &c, "%s H=%d %s", rnn_name(kind), (int)hidden, weights_name[weights])) return;
    size_t bytes;
    xph_rnn_args args = {
        .type = XPH_F32, .weights = weights, .kind = kind, .batch = 1, .time = 1, .hidden = hidden};
    give_rnn(k, &args, false, &bytes);
    c.scratch_at = offsetof(xph_rnn_args, scratch);
    c.items = (double)bytes;
    c.pass = (bench_pass){.in = {args.packed}, .count = (int64_t)(bytes / 256 * 64)};
    if (weights == XPH_F32) c.bar_floors = 1.10;
    kernel_time(k, &c, &args);
}

static void rnn_sequence(kernel_bench *k, int32_t kind, int64_t batch, int64_t hidden)
{
    kernel_case c = {.subject = "recurrent forward", .op = XPH_OP_RNN, .item = "flop", .floor = FLOOR_FMA};
    int64_t time = k->options->quick ? 4 : 60;
    if (!kernel_begin(k, &c, "%s B=%d T=%d H=%d", rnn_name(kind), (int)batch, (int)time, (int)hidden)) return;
    xph_rnn_args args = {.type = XPH_F32, .kind = kind, .batch = batch, .time = time, .hidden = hidden};
    give_rnn(k, &args, true, NULL);
    c.scratch_at = offsetof(xph_rnn_args, scratch);
    c.items = c.amount = 2.0 * (double)(batch * time * hidden) * (double)args.ldgx;
    kernel_time(k, &c, &args);
}

static void rnn_gradient(kernel_bench *k, int32_t kind, int64_t batch, int64_t hidden)
{
    kernel_case c = {
        .subject = "recurrent gradient", .op = XPH_OP_RNN_GRAD, .item = "flop", .floor = FLOOR_FMA};
    int64_t time = k->options->quick ? 4 : 60;
    if (!kernel_begin(k, &c, "%s B=%d T=%d H=%d", rnn_name(kind), (int)batch, (int)time, (int)hidden)) return;
    xph_rnn_grad_args args = {
        .fwd = {.type = XPH_F32, .kind = kind, .batch = batch, .time = time, .hidden = hidden}};
    give_rnn(k, &args.fwd, true, NULL);
    int64_t gates = args.fwd.ldgx, rows = batch * time;
    /* gates between 0 and 1, as a forward pass leaves them */
    float *saved = args.fwd.saved;
    int64_t kept = (kind == XPH_RNN_LSTM ? SAVED_LSTM : SAVED_GRU) * hidden;
    for (int64_t i = 0; i < rows * kept; i++) saved[i] = 0.25f + 0.5f * (float)(i % 7) / 7.0f;
    args.dy = bench_floats((size_t)(rows * hidden), 1e-3f);
    args.lddy = hidden;
    args.dgx = bench_memory((size_t)(rows * gates) * sizeof(float));
    args.lddgx = gates;
    args.dw = bench_floats((size_t)(gates * hidden), 0);
    args.dbias = bench_floats((size_t)gates, 0);
    c.scratch_at = offsetof(xph_rnn_grad_args, scratch);
    c.items = c.amount = 4.0 * (double)(rows * hidden) * (double)gates;
    kernel_time(k, &c, &args);
}

void kernel_cases_recurrent(kernel_bench *k)
{
    static const xph_type types[] = {XPH_F32, XPH_BF16, XPH_I8};
    for (int32_t kind = XPH_RNN_LSTM; kind <= XPH_RNN_GRU; kind++) {
        for (int i = 0; i < 3; i++) {
            rnn_step(k, kind, 256, types[i]);
            rnn_step(k, kind, 512, types[i]);
        }
        rnn_sequence(k, kind, 64, 256);
        rnn_gradient(k, kind, 64, 256);
    }
}
