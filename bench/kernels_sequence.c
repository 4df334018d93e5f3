/* Operations along time: scan, convolution, attention. */
#include "kernels.h"

#include <math.h>

enum { WIDTH = 512, STATES = 16, TIME = 60, TAPS = 4, HEADS = 4, DIM = 64, WINDOW = 60 };

static void give_scan(xph_scan_args *a, int64_t batch, int64_t time)
{
    size_t rows = (size_t)(batch * time);
    float *rates = bench_memory(WIDTH * STATES * sizeof *rates);
    for (int i = 0; i < WIDTH * STATES; i++)
        rates[i] = 0.173f * (float)(1 + i % STATES); /* log 1 .. log 16, about */
    *a = (xph_scan_args){.type = XPH_F32, .batch = batch, .time = time, .width = WIDTH, .states = STATES};
    a->x = bench_floats(rows * WIDTH, 1);
    a->dt = bench_floats(rows * WIDTH, 2);
    a->a_log = rates;
    a->b = bench_floats(rows * STATES, 1);
    a->c = bench_floats(rows * STATES, 1);
    a->skip = bench_floats(WIDTH, 1);
    a->z = bench_floats(rows * WIDTH, 1);
    a->ldx = a->lddt = a->ldz = a->ldy = WIDTH;
    a->ldb = a->ldc = STATES;
    a->ld_state = WIDTH * STATES;
    a->state_in = bench_floats((size_t)batch * WIDTH * STATES, 0.5f);
    a->state_out = bench_memory((size_t)batch * WIDTH * STATES * sizeof(float));
    a->y = bench_memory(rows * WIDTH * sizeof(float));
}

static void scan_forward(kernel_bench *k, int64_t batch, int64_t time)
{
    const char *subject = time == 1 ? "scan step" : "scan forward";
    kernel_case c = {.subject = subject,
                     .op = XPH_OP_SCAN,
                     .scratch_at = offsetof(xph_scan_args, scratch),
                     .item = "element"};
    if (!kernel_begin(k, &c, "B=%d T=%d D=%d N=%d", (int)batch, (int)time, WIDTH, STATES)) return;
    xph_scan_args args;
    give_scan(&args, batch, time);
    c.items = c.amount = (double)(batch * time) * WIDTH * STATES;
    c.floor = FLOOR_EXP;
    c.bar_ns = c.items * (batch > 16 ? 0.20 : 0.17);
    if (time == 1) {
        float *decay = bench_memory(WIDTH * STATES * sizeof(float)); /* prepared once, as sessions do */
        for (int i = 0; i < WIDTH * STATES; i++)
            decay[i] = expf(((const float *)args.a_log)[i]) * 1.44269504f;
        args.decay = decay;
        c.item = "frame";
        c.items = (double)batch;
        c.bar_ns = batch == 1 ? 2500 : 0;
    }
    kernel_time(k, &c, &args);
}

static void scan_gradient(kernel_bench *k, int64_t batch, int64_t time)
{
    kernel_case c = {
        .subject = "scan gradient", .op = XPH_OP_SCAN_GRAD, .item = "element", .floor = FLOOR_EXP};
    if (!kernel_begin(k, &c, "B=%d T=%d D=%d N=%d", (int)batch, (int)time, WIDTH, STATES)) return;
    size_t rows = (size_t)(batch * time);
    xph_scan_grad_args args = {0};
    give_scan(&args.fwd, batch, time);
    args.dy = bench_floats(rows * WIDTH, 1e-3f);
    args.dx = bench_memory(rows * WIDTH * sizeof(float));
    args.ddt = bench_memory(rows * WIDTH * sizeof(float));
    args.dz = bench_memory(rows * WIDTH * sizeof(float));
    args.db = bench_memory(rows * STATES * sizeof(float));
    args.dc = bench_memory(rows * STATES * sizeof(float));
    args.lddy = args.lddx = args.ldddt = args.lddz = WIDTH;
    args.lddb = args.lddc = STATES;
    args.da_log = bench_floats(WIDTH * STATES, 0);
    args.dskip = bench_floats(WIDTH, 0);
    c.scratch_at = offsetof(xph_scan_grad_args, scratch);
    c.items = c.amount = (double)rows * WIDTH * STATES;
    c.bar_ns = c.items * (batch > 16 ? 0.60 : 0.45);
    kernel_time(k, &c, &args);
}

/* ---- convolution --------------------------------------------------------------------------------------- */

static void give_conv(xph_conv_args *a, int64_t batch, int64_t time)
{
    size_t rows = (size_t)(batch * time);
    *a = (xph_conv_args){.type = XPH_F32, .batch = batch, .time = time, .width = WIDTH, .taps = TAPS};
    a->x = bench_floats(rows * WIDTH, 1);
    a->w = bench_floats(WIDTH * TAPS, 0.5f);
    a->bias = bench_floats(WIDTH, 0.1f);
    a->ld_state = (TAPS - 1) * WIDTH;
    a->state_in = bench_floats((size_t)(batch * a->ld_state), 1);
    a->state_out = bench_memory((size_t)(batch * a->ld_state) * sizeof(float));
    a->y = bench_memory(rows * WIDTH * sizeof(float));
    a->ldx = a->ldy = WIDTH;
}

static void conv_forward(kernel_bench *k, int64_t batch, int64_t time)
{
    kernel_case c = {.subject = "convolution forward", .op = XPH_OP_CONV, .item = "element"};
    if (!kernel_begin(k, &c, "B=%d T=%d D=%d", (int)batch, (int)time, WIDTH)) return;
    xph_conv_args args;
    give_conv(&args, batch, time);
    c.items = (double)(batch * time) * WIDTH;
    c.floor = FLOOR_PASS;
    c.pass = (bench_pass){.in = {args.x}, .out = {args.y}, .count = batch * time * WIDTH};
    kernel_time(k, &c, &args);
}

static void conv_gradient(kernel_bench *k, int64_t batch, int64_t time)
{
    kernel_case c = {
        .subject = "convolution gradient", .op = XPH_OP_CONV_GRAD, .item = "element", .floor = FLOOR_PASS};
    if (!kernel_begin(k, &c, "B=%d T=%d D=%d", (int)batch, (int)time, WIDTH)) return;
    size_t rows = (size_t)(batch * time);
    xph_conv_grad_args args = {0};
    give_conv(&args.fwd, batch, time);
    args.dy = bench_floats(rows * WIDTH, 1e-3f);
    args.dx = bench_memory(rows * WIDTH * sizeof(float));
    args.lddy = args.lddx = WIDTH;
    args.dw = bench_floats(WIDTH * TAPS, 0);
    args.dbias = bench_floats(WIDTH, 0);
    c.scratch_at = offsetof(xph_conv_grad_args, scratch);
    c.items = (double)rows * WIDTH;
    c.pass = (bench_pass){.in = {args.fwd.x, args.dy}, .out = {args.dx}, .count = (int64_t)rows * WIDTH};
    kernel_time(k, &c, &args);
}

/* ---- attention ----------------------------------------------------------------------------------------- */

static void give_attention(xph_attention_args *a, int64_t batch, int64_t time)
{
    size_t rows = (size_t)(batch * time), width = HEADS * DIM;
    *a = (xph_attention_args){
        .type = XPH_F32, .batch = batch, .time = time, .heads = HEADS, .dim = DIM, .window = WINDOW};
    a->qkv = bench_floats(rows * 3 * width, 1);
    a->ldqkv = 3 * (int64_t)width;
    a->bias = bench_floats(HEADS * WINDOW, 0.1f);
    a->ldy = (int64_t)width;
    a->y = bench_memory(rows * width * sizeof(float));
}

/* Products of queries with keys and of weights with values: what the causal window leaves of T x T. */
static double attention_flop(int64_t batch, int64_t time)
{
    double pairs = 0;
    for (int64_t t = 0; t < time; t++) pairs += (double)(t + 1 < WINDOW ? t + 1 : WINDOW);
    return (double)batch * pairs * HEADS * DIM * 4;
}

static void attention_forward(kernel_bench *k, int64_t batch, int64_t time)
{
    kernel_case c = {
        .subject = "attention forward", .op = XPH_OP_ATTENTION, .item = "flop", .floor = FLOOR_FMA};
    if (!kernel_begin(k, &c, "B=%d T=%d %d x %d", (int)batch, (int)time, HEADS, DIM)) return;
    xph_attention_args args;
    give_attention(&args, batch, time);
    args.saved = bench_memory((size_t)(batch * time) * HEADS * sizeof(float));
    c.scratch_at = offsetof(xph_attention_args, scratch);
    c.items = c.amount = attention_flop(batch, time);
    kernel_time(k, &c, &args);
}

static void attention_gradient(kernel_bench *k, int64_t batch, int64_t time)
{
    kernel_case c = {
        .subject = "attention gradient", .op = XPH_OP_ATTENTION_GRAD, .item = "flop", .floor = FLOOR_FMA};
    if (!kernel_begin(k, &c, "B=%d T=%d %d x %d", (int)batch, (int)time, HEADS, DIM)) return;
    size_t rows = (size_t)(batch * time);
    xph_attention_grad_args args = {0};
    give_attention(&args.fwd, batch, time);
    float *sums = bench_memory(rows * HEADS * sizeof(float));
    for (size_t i = 0; i < rows * HEADS; i++) sums[i] = 8; /* no exponential grows */
    args.fwd.saved = sums;
    args.dy = bench_floats(rows * HEADS * DIM, 1e-3f);
    args.lddy = HEADS * DIM;
    args.dqkv = bench_memory(rows * 3 * HEADS * DIM * sizeof(float));
    args.lddqkv = 3 * HEADS * DIM;
    args.dbias = bench_floats(HEADS * WINDOW, 0);
    c.scratch_at = offsetof(xph_attention_grad_args, scratch);
    c.items = c.amount = 2.5 * attention_flop(batch, time);
    kernel_time(k, &c, &args);
}

/* One frame against a full ring, which is read once. */
static void attention_step(kernel_bench *k, int64_t batch)
{
    kernel_case c = {
        .subject = "attention step", .op = XPH_OP_ATTENTION, .item = "frame", .floor = FLOOR_READ};
    if (!kernel_begin(k, &c, "B=%d %d x %d, window %d", (int)batch, HEADS, DIM, WINDOW)) return;
    xph_attention_args args;
    give_attention(&args, batch, 1);
    args.ld_state = 2 * WINDOW * HEADS * DIM + 2;
    float *state = bench_floats((size_t)(batch * args.ld_state), 1);
    for (int64_t b = 0; b < batch; b++) {
        float *counters = state + b * args.ld_state + args.ld_state - 2;
        counters[0] = 7;
        counters[1] = WINDOW;
    }
    args.state_in = args.state_out = state; /* as in play: the ring is moved on in place */
    c.scratch_at = offsetof(xph_attention_args, scratch);
    c.items = (double)batch;
    c.pass = (bench_pass){.in = {state}, .count = batch * args.ld_state / 64 * 64};
    kernel_time(k, &c, &args);
}

void kernel_cases_sequence(kernel_bench *k)
{
    static const int64_t batches[] = {1, 4, 16, 64};
    int64_t time = k->options->quick ? 4 : TIME;
    for (int i = 0; i < 4; i++) scan_forward(k, batches[i], time);
    for (int i = 0; i < 4; i++) scan_gradient(k, batches[i], time);
    for (int i = 0; i < 4; i++) scan_forward(k, batches[i], 1);
    conv_forward(k, 64, time);
    conv_gradient(k, 64, time);
    conv_forward(k, 1, 1);
    attention_forward(k, 64, time);
    attention_gradient(k, 64, time);
    attention_step(k, 1);
    attention_step(k, 16);
}
