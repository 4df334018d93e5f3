/* Operations that work row by row or over whole arenas: norm, input rows, action heads, loss, sampling, the
 * optimizer. */
#include "kernels.h"

/* ---- norm ---------------------------------------------------------------------------------------------- */

void bench_give_norm(xph_norm_args *a, int64_t rows, int64_t width)
{
    size_t count = (size_t)(rows * width);
    *a = (xph_norm_args){.type = XPH_F32, .act = XPH_ACT_SILU, .rows = rows, .width = width, .epsilon = 1e-5};
    a->x = bench_floats(count, 1);
    a->gain = bench_floats((size_t)width, 1);
    a->shift = bench_floats((size_t)width, 0.1f);
    a->y = bench_memory(count * sizeof(float));
    a->ldx = a->ldy = width;
}

static void norm_forward(kernel_bench *k, int64_t rows, int64_t width)
{
    kernel_case c = {.subject = "norm+SiLU forward", .op = XPH_OP_NORM, .item = "element"};
    if (!kernel_begin(k, &c, "%d x %d", (int)rows, (int)width)) return;
    xph_norm_args args;
    bench_give_norm(&args, rows, width);
    args.saved = bench_memory((size_t)(2 * rows) * sizeof(float));
    c.items = (double)(rows * width);
    c.floor = FLOOR_PASS;
    c.pass = (bench_pass){.in = {args.x}, .out = {args.y}, .count = rows * width};
    if (rows == 15360) c.bar_ns = 0.35 * c.items;
    kernel_time(k, &c, &args);
}

static void norm_gradient(kernel_bench *k, int64_t rows, int64_t width)
{
    kernel_case c = {
        .subject = "norm+SiLU gradient", .op = XPH_OP_NORM_GRAD, .item = "element", .floor = FLOOR_PASS};
    if (!kernel_begin(k, &c, "%d x %d", (int)rows, (int)width)) return;
    xph_norm_grad_args args = {0};
    bench_give_norm(&args.fwd, rows, width);
    float *saved = bench_memory((size_t)(2 * rows) * sizeof(float));
    for (int64_t i = 0; i < rows; i++) saved[2 * i + 1] = 1.7f; /* mean 0, spread of the numbers above */
    args.fwd.saved = saved;
    args.dy = bench_floats((size_t)(rows * width), 1e-3f);
    args.dx = bench_memory((size_t)(rows * width) * sizeof(float));
    args.lddy = args.lddx = width;
    args.dgain = bench_floats((size_t)width, 0);
    args.dshift = bench_floats((size_t)width, 0);
    c.scratch_at = offsetof(xph_norm_grad_args, scratch);
    c.items = (double)(rows * width);
    c.pass = (bench_pass){.in = {args.fwd.x, args.dy}, .out = {args.dx}, .count = rows * width};
    kernel_time(k, &c, &args);
}

/* ---- actions of the Melee preset --------------------------------------------------------------------------- */

enum { TRUNK = 128 };

typedef struct action_heads {
    xph_head head[EXPHIL_HEADS_MAX];
    xph_head_loss loss[EXPHIL_HEADS_MAX];
    xph_sample_head how[EXPHIL_HEADS_MAX];
    int64_t heads, logits;
    exphil_spec spec;
} action_heads;

static bool melee_heads(action_heads *a)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    *a = (action_heads){.spec = EXPHIL_SPEC_INIT};
    if (exphil_melee_spec(NULL, NULL, &a->spec, &error) < 0) return false;
    a->heads = a->spec.head_count;
    for (int64_t h = 0; h < a->heads; h++) {
        a->head[h] = (xph_head){a->spec.heads[h].kind, a->spec.heads[h].count, a->logits};
        a->logits += a->spec.heads[h].count;
        a->loss[h] = (xph_head_loss){.weight = 1};
        a->how[h] = (xph_sample_head){.temperature = 1, .press = 0.5f, .release = 0.5f};
    }
    return true;
}

static int32_t *some_actions(const action_heads *a, int64_t rows)
{
    int32_t *actions = bench_memory((size_t)(rows * a->heads) * sizeof *actions);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < a->heads; h++)
            actions[r * a->heads + h] = (int32_t)(r * 7 + h * 3) % (a->head[h].kind ? a->head[h].count : 4);
    return actions;
}

static void give_heads(xph_heads_args *args, const action_heads *a, int64_t rows)
{
    *args = (xph_heads_args){
        .type = XPH_F32, .rows = rows, .width = TRUNK, .heads = a->heads, .logits = a->logits};
    args->head = a->head;
    args->z = bench_floats((size_t)rows * TRUNK, 1);
    args->ldz = TRUNK;
    args->v = bench_floats((size_t)a->logits * TRUNK, 0.1f);
    args->bias = bench_floats((size_t)a->logits, 0.1f);
    args->e = bench_floats((size_t)a->logits * TRUNK, 0.1f);
    args->base = bench_floats((size_t)(rows * a->logits), 0.5f);
    args->ldbase = args->ldy = a->logits;
    args->actions = some_actions(a, rows);
    args->lda = a->heads;
    args->y = bench_memory((size_t)(rows * a->logits) * sizeof(float));
}

static void heads_forward(kernel_bench *k, const action_heads *a, int64_t rows)
{
    kernel_case c = {.subject = "heads forward", .op = XPH_OP_HEADS, .item = "flop"};
    if (!kernel_begin(k, &c, "M=%d R=%d L=%d", (int)rows, TRUNK, (int)a->logits)) return;
    xph_heads_args args;
    give_heads(&args, a, rows);
    c.floor = FLOOR_FMA;
    c.items = c.amount = 2.0 * (double)(rows * a->logits) * TRUNK;
    kernel_time(k, &c, &args);
}

static void heads_gradient(kernel_bench *k, const action_heads *a, int64_t rows)
{
    kernel_case c = {
        .subject = "heads gradient", .op = XPH_OP_HEADS_GRAD, .item = "flop", .floor = FLOOR_FMA};
    if (!kernel_begin(k, &c, "M=%d R=%d L=%d", (int)rows, TRUNK, (int)a->logits)) return;
    xph_heads_grad_args args = {0};
    give_heads(&args.fwd, a, rows);
    args.dy = bench_floats((size_t)(rows * a->logits), 1e-3f);
    args.lddy = a->logits;
    args.dz = bench_memory((size_t)rows * TRUNK * sizeof(float));
    args.lddz = TRUNK;
    args.dv = bench_floats((size_t)a->logits * TRUNK, 0);
    args.dbias = bench_floats((size_t)a->logits, 0);
    args.de = bench_floats((size_t)a->logits * TRUNK, 0);
    c.scratch_at = offsetof(xph_heads_grad_args, scratch);
    c.items = c.amount = 4.0 * (double)(rows * a->logits) * TRUNK;
    kernel_time(k, &c, &args);
}

static void loss(kernel_bench *k, const action_heads *a, int64_t rows)
{
    kernel_case c = {.subject = "loss", .op = XPH_OP_LOSS, .item = "element"};
    if (!kernel_begin(k, &c, "M=%d L=%d", (int)rows, (int)a->logits)) return;
    size_t count = (size_t)(rows * a->logits);
    xph_loss_args args = {.type = XPH_F32, .rows = rows, .heads = a->heads, .logits = a->logits, .scale = 1};
    args.head = a->head;
    args.loss = a->loss;
    args.y = bench_floats(count, 2);
    args.actions = some_actions(a, rows);
    args.lda = a->heads;
    args.dy = bench_memory(count * sizeof(float));
    args.ldy = args.lddy = a->logits;
    args.sums = bench_memory((size_t)a->heads * sizeof(double));
    args.rows_loss = bench_memory((size_t)(rows * a->heads) * sizeof(double));
    c.items = c.amount = (double)count;
    c.floor = FLOOR_EXP;
    kernel_time(k, &c, &args);
}

static void sample(kernel_bench *k, action_heads *a, bool deterministic)
{
    kernel_case c = {.subject = "sampling", .op = XPH_OP_SAMPLE, .item = "frame", .bar_ns = 2000};
    if (!kernel_begin(k, &c, "R=%d L=%d %s", TRUNK, (int)a->logits, deterministic ? "likeliest" : "drawn"))
        return;
    xph_sample_args args = {.how = a->how, .ldn = a->logits, .lda = a->heads};
    for (int64_t h = 0; h < a->heads; h++) a->how[h].deterministic = deterministic;
    give_heads(&args.heads, a, 1);
    float *noise = bench_floats((size_t)a->logits, 0.45f);
    for (int64_t i = 0; i < a->logits; i++) noise[i] += 0.5f;
    args.noise = noise;
    args.actions = bench_memory((size_t)a->heads * sizeof(int32_t));
    c.scratch_at = offsetof(xph_sample_args, scratch);
    c.items = 1;
    kernel_time(k, &c, &args);
}

static void embed(kernel_bench *k, const action_heads *a, int64_t rows)
{
    kernel_case c = {.subject = "input rows", .op = XPH_OP_EMBED, .item = "frame"};
    if (!kernel_begin(k, &c, "M=%d F=%d K=%d", (int)rows, (int)a->spec.float_count, (int)a->spec.id_count))
        return;
    xph_embed_table tables[EXPHIL_IDS_MAX];
    xph_embed_args args = {
        .type = XPH_F32, .rows = rows, .floats = a->spec.float_count, .ids = a->spec.id_count};
    int64_t width = args.floats + a->logits;
    int32_t *ids = bench_memory((size_t)(rows * args.ids) * sizeof *ids);
    for (int64_t i = 0; i < args.ids; i++) {
        const exphil_id_spec *id = &a->spec.ids[i];
        int64_t row = id->width ? id->width : 8;
        tables[i] = (xph_embed_table){bench_floats((size_t)(id->entries * row), 1), NULL, id->entries, row};
        width += row;
        for (int64_t r = 0; r < rows; r++) ids[r * args.ids + i] = (int32_t)(r * 5 + i) % id->entries;
    }
    args.x = bench_floats((size_t)(rows * args.floats), 1);
    args.ldx = args.floats;
    args.id = ids;
    args.ldid = args.ids;
    args.tables = tables;
    args.slots = 1;
    args.heads = a->heads;
    args.logits = a->logits;
    args.actions = some_actions(a, rows);
    args.lda = a->heads;
    args.head = a->head;
    args.ldy = width;
    args.y = bench_memory((size_t)(rows * width) * sizeof(float));
    c.items = (double)rows;
    kernel_time(k, &c, &args);
}

/* ---- optimizer ----------------------------------------------------------------------------------------- */

static void adam(kernel_bench *k, int64_t count)
{
    kernel_case c = {.subject = "AdamW", .op = XPH_OP_ADAM, .item = "element"};
    if (!kernel_begin(k, &c, "%.2f M parameters", (double)count * 1e-6)) return;
    size_t n = (size_t)count;
    xph_adam_args args = {.type = XPH_F32, .count = count, .decay_count = count};
    args.p = bench_floats(n, 0.1f);
    args.grad = bench_floats(n, 1e-3f);
    args.m = bench_floats(n, 1e-4f);
    float *v = bench_floats(n, 1e-7f);
    for (size_t i = 0; i < n; i++) v[i] += 2e-7f;
    args.v = v;
    args.rate = 1e-9, args.beta1 = 0.9, args.beta2 = 0.999, args.epsilon = 1e-8, args.decay = 0.01;
    args.correction1 = args.correction2 = args.grad_scale = 1;
    c.items = (double)count;
    c.floor = FLOOR_PASS;
    c.pass =
        (bench_pass){.in = {bench_floats(n, 1), bench_floats(n, 1), bench_floats(n, 1), bench_floats(n, 1)},
                     .count = count / 16 * 16};
    for (int i = 0; i < 3; i++) c.pass.out[i] = (float *)(uintptr_t)c.pass.in[i];
    if (count < 1000000) c.bar_ns = 0.33 * c.items;
    kernel_time(k, &c, &args);
}

static void norm_of_gradient(kernel_bench *k, int64_t count)
{
    kernel_case c = {
        .subject = "norm of the gradient", .op = XPH_OP_NORM2, .item = "element", .floor = FLOOR_READ};
    if (!kernel_begin(k, &c, "%.2f M parameters", (double)count * 1e-6)) return;
    double norm;
    int64_t bad;
    xph_norm2_args args = {.type = XPH_F32, .count = count, .norm = &norm, .first_bad = &bad};
    args.x = bench_floats((size_t)count, 1);
    c.scratch_at = offsetof(xph_norm2_args, scratch);
    c.items = (double)count;
    c.pass = (bench_pass){.in = {args.x}, .count = count / 64 * 64};
    kernel_time(k, &c, &args);
}

void kernel_cases_rows(kernel_bench *k)
{
    int64_t many = k->options->quick ? 64 : 3840, parameters = k->options->quick ? 1000 : 8400000;
    action_heads a;
    if (!melee_heads(&a)) {
        k->failed = true;
        return;
    }
    norm_forward(k, k->options->quick ? 64 : 15360, 256);
    norm_gradient(k, k->options->quick ? 64 : 15360, 256);
    norm_forward(k, 1, 256);
    embed(k, &a, 1);
    embed(k, &a, many);
    heads_forward(k, &a, 1);
    heads_forward(k, &a, many);
    heads_gradient(k, &a, many);
    loss(k, &a, many);
    sample(k, &a, false);
    sample(k, &a, true);
    adam(k, 560000);
    adam(k, parameters);
    norm_of_gradient(k, 560000);
}
