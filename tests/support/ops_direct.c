/* The kernels of a device themselves, on dense arrays: what exphil/ops.h must give the bits of. */
#include "ops_case.h"

#include "ops/ops.h"

/* One call of table A: arrays by name. */
typedef struct direct {
    const ops_case *c;
    bool backward;
    int32_t type;
    void *memory[OPS_MOST];
    void *saved;
} direct;

static bool is_used(const direct *d, const ops_array *a, uint32_t forward, uint32_t backward)
{
    return !a->left_out && a->role & (d->backward ? backward : forward);
}

/* NULL where the case has none, or leaves it out; outputs are zeros, to which gradients are added. */
static void *of(direct *d, const char *name)
{
    for (int i = 0; i < d->c->count; i++) {
        const ops_array *a = &d->c->array[i];
        if (strcmp(a->name, name) != 0) continue;
        const bool in = is_used(d, a, OPS_FORWARD_IN, OPS_BACKWARD_IN);
        if (!in && !is_used(d, a, OPS_FORWARD_OUT, OPS_BACKWARD_OUT)) return NULL;
        if (d->memory[i]) return d->memory[i];
        const int64_t count = ops_elements(a);
        if (a->role & OPS_BYTES) {
            unsigned char *bytes = case_alloc((size_t)count);
            for (int64_t k = 0; k < count; k++) bytes[k] = (unsigned char)a->x[k];
            return d->memory[i] = bytes;
        }
        return d->memory[i] = case_give(d->type, in ? a->x : case_zeros(count), 1, count, count);
    }
    return NULL;
}

/* Several arrays side by side, [rows][parts][width]. */
static void *joined(direct *d, const char *const *names, int parts, int64_t rows, int64_t width)
{
    const size_t bytes = case_bytes(d->type) * (size_t)width;
    unsigned char *to = case_alloc((size_t)rows * (size_t)parts * bytes);
    bool some = false;
    memset(to, 0, (size_t)rows * (size_t)parts * bytes);
    for (int i = 0; i < parts; i++) {
        const unsigned char *from = of(d, names[i]);
        some |= from != NULL;
        for (int64_t r = 0; from && r < rows; r++)
            memcpy(to + (r * parts + i) * (int64_t)bytes, from + r * (int64_t)bytes, bytes);
    }
    return some ? to : NULL;
}

static void parted(direct *d, const char *const *names, int parts, int64_t rows, int64_t width,
                   const void *joint)
{
    const size_t bytes = case_bytes(d->type) * (size_t)width;
    for (int i = 0; joint && i < parts; i++) {
        unsigned char *to = of(d, names[i]);
        for (int64_t r = 0; to && r < rows; r++)
            memcpy(to + r * (int64_t)bytes, (const unsigned char *)joint + (r * parts + i) * (int64_t)bytes,
                   bytes);
    }
}

static void execute(exphil_context *context, xph_op op, void *args, void **scratch, const void *packed_of,
                    void **packed)
{
    xph_device *device = xph_context_backend(context);
    xph_stream *stream = NULL;
    xph_op_info info = {0};
    assert_int_equal(device->backend->query(device, op, args, &info), EXPHIL_OK);
    if (scratch) *scratch = case_alloc(info.scratch_bytes);
    assert_int_equal(device->backend->stream_create(device, 0, &stream), EXPHIL_OK);
    if (packed && info.packed_bytes) {
        const xph_rnn_args *rnn = args;
        *packed = case_alloc(info.packed_bytes);
        xph_linear_pack_args pack = {.type = rnn->type,
                                     .in = rnn->hidden,
                                     .out = (rnn->kind == XPH_RNN_LSTM ? 4 : 3) * rnn->hidden,
                                     .w = packed_of,
                                     .packed = *packed};
        assert_int_equal(xph_run_once(stream, XPH_OP_LINEAR_PACK, &pack), EXPHIL_OK);
    }
    assert_int_equal(device->backend->run(stream, info.kernel, args), EXPHIL_OK);
    device->backend->stream_destroy(stream);
}

/* A log2(e) */
static void *decay_of(direct *d, int64_t count)
{
    void *a = of(d, "a"), *decay = case_alloc((size_t)count * case_bytes(d->type));
    for (int64_t i = 0; i < count; i++) {
        if (d->type == XPH_F64)
            ((double *)decay)[i] = ((double *)a)[i] * 1.44269504088896340736;
        else
            ((float *)decay)[i] = ((float *)a)[i] * 1.44269504088896340736f;
    }
    return decay;
}

static xph_scan_args scan_args(direct *d)
{
    const exphil_scan_args *a = (const exphil_scan_args *)(const void *)d->c->args;
    xph_scan_args s = {
        .type = d->type, .batch = a->batch, .time = a->frames, .width = a->width, .states = a->states};
    s.x = of(d, "u"), s.dt = of(d, "delta"), s.delta_bias = of(d, "delta_bias"), s.a_log = of(d, "a_log");
    s.b = of(d, "b"), s.c = of(d, "c"), s.skip = of(d, "skip"), s.z = of(d, "z"), s.reset = of(d, "reset");
    s.ldx = s.lddt = s.ldz = s.ldy = a->width;
    s.ldb = s.ldc = a->states;
    s.state_in = of(d, "state_in"), s.ld_state = a->width * a->states;
    if (s.a_log) return s;
    s.plain_a = s.plain_delta = 1;
    s.decay = s.a_log = decay_of(d, a->width * a->states);
    return s;
}

static void run_scan(exphil_context *context, direct *d)
{
    xph_scan_args s = scan_args(d);
    if (!d->backward) {
        s.state_out = of(d, "state_out"), s.y = of(d, "y");
        execute(context, XPH_OP_SCAN, &s, &s.scratch, NULL, NULL);
        return;
    }
    xph_scan_grad_args g = {.fwd = s, .dy = of(d, "dy"), .dx = of(d, "du"), .ddt = of(d, "ddelta")};
    g.lddy = g.lddx = g.ldddt = g.lddz = s.width;
    g.lddb = g.lddc = s.states;
    g.db = of(d, "db"), g.dc = of(d, "dc"), g.dz = of(d, "dz"), g.da_log = of(d, "da"),
    g.dskip = of(d, "dskip");
    g.ddelta_bias = of(d, "ddelta_bias"), g.dstate_in = of(d, "dstate_in"),
    g.dstate_out = of(d, "dstate_out");
    execute(context, XPH_OP_SCAN_GRAD, &g, &g.scratch, NULL, NULL);
}

static void run_attention(exphil_context *context, direct *d)
{
    static const char *const in[] = {"q", "k", "v"}, *const out[] = {"dq", "dk", "dv"};
    const exphil_attention_args *a = (const exphil_attention_args *)(const void *)d->c->args;
    const int64_t span = a->heads * a->dim, rows = a->batch * a->frames;
    xph_attention_args s = {
        .type = d->type, .batch = a->batch, .time = a->frames, .heads = a->heads, .dim = a->dim};
    s.window = a->window, s.method = a->method, s.qkv = joined(d, in, 3, rows, span), s.ldqkv = 3 * span;
    s.bias = of(d, "bias"), s.reset = of(d, "reset"), s.state_in = of(d, "state_in"), s.saved = d->saved;
    if (!s.bias) s.bias = case_give(d->type, case_zeros(a->heads * a->window), 1, a->heads * a->window, 1);
    s.ld_state = 2 * a->window * span + 2, s.y = of(d, "y"), s.ldy = span;
    if (!d->backward) {
        s.state_out = of(d, "state_out");
        execute(context, XPH_OP_ATTENTION, &s, &s.scratch, NULL, NULL);
        return;
    }
    xph_attention_grad_args g = {
        .fwd = s, .dy = of(d, "dy"), .lddy = span, .lddqkv = 3 * span, .dbias = of(d, "dbias")};
    g.dqkv = case_alloc((size_t)(rows * 3 * span) * case_bytes(d->type));
    execute(context, XPH_OP_ATTENTION_GRAD, &g, &g.scratch, NULL, NULL);
    parted(d, out, 3, rows, span, g.dqkv);
}

static void run_rnn(exphil_context *context, direct *d)
{
    static const char *const in[] = {"h_in", "c_in"}, *const out[] = {"h_out", "c_out"};
    static const char *const outer[] = {"dh_out", "dc_out"}, *const inner[] = {"dh_in", "dc_in"};
    const exphil_rnn_args *a = (const exphil_rnn_args *)(const void *)d->c->args;
    const bool lstm = d->c->op == EXPHIL_OP_LSTM;
    const int64_t h = a->hidden, gates = (lstm ? 4 : 3) * h;
    const int parts = lstm ? 2 : 1;
    xph_rnn_args s = {
        .type = d->type, .kind = lstm ? XPH_RNN_LSTM : XPH_RNN_GRU, .batch = a->batch, .time = a->frames};
    s.hidden = h, s.gx = of(d, "gates"), s.ldgx = gates, s.w = of(d, "weight"), s.bias = of(d, "bias");
    if (!s.bias) s.bias = case_give(d->type, case_zeros(gates), 1, gates, 1);
    s.reset = of(d, "reset"), s.state_in = joined(d, in, parts, a->batch, h), s.ld_state = parts * h;
    s.y = of(d, "y"), s.ldy = h, s.saved = d->saved;
    if (!d->backward) {
        s.state_out = case_alloc((size_t)(a->batch * parts * h) * case_bytes(d->type));
        execute(context, XPH_OP_RNN, &s, &s.scratch, s.w, (void **)(void *)&s.packed);
        parted(d, out, parts, a->batch, h, s.state_out);
        return;
    }
    xph_rnn_grad_args g = {.fwd = s, .dy = of(d, "dy"), .lddy = h, .dgx = of(d, "dgates"), .lddgx = gates};
    g.dw = of(d, "dweight"), g.dbias = of(d, "dbias"), g.dstate_out = joined(d, outer, parts, a->batch, h);
    g.dstate_in = case_alloc((size_t)(a->batch * parts * h) * case_bytes(d->type));
    execute(context, XPH_OP_RNN_GRAD, &g, &g.scratch, NULL, NULL);
    parted(d, inner, parts, a->batch, h, g.dstate_in);
}

static void run_norm(exphil_context *context, direct *d)
{
    const exphil_norm_args *a = (const exphil_norm_args *)(const void *)d->c->args;
    const int64_t w = a->width;
    xph_norm_args s = {
        .type = d->type, .act = a->silu, .rows = a->batch * a->frames, .width = w, .epsilon = 1e-5};
    s.x = of(d, "x"), s.ldx = w, s.gain = of(d, "gain"), s.shift = of(d, "shift"), s.ldy = w,
    s.saved = d->saved;
    if (!d->backward) {
        s.y = of(d, "y");
        execute(context, XPH_OP_NORM, &s, NULL, NULL, NULL);
        return;
    }
    xph_norm_grad_args g = {.fwd = s, .dy = of(d, "dy"), .lddy = w, .dx = of(d, "dx"), .lddx = w};
    g.dgain = of(d, "dgain"), g.dshift = of(d, "dshift");
    execute(context, XPH_OP_NORM_GRAD, &g, &g.scratch, NULL, NULL);
}

static void run_conv(exphil_context *context, direct *d)
{
    const exphil_conv_args *a = (const exphil_conv_args *)(const void *)d->c->args;
    const int64_t w = a->width;
    xph_conv_args s = {.type = d->type, .batch = a->batch, .time = a->frames, .width = w, .taps = a->taps};
    s.x = of(d, "x"), s.ldx = w, s.w = of(d, "weight"), s.bias = of(d, "bias"), s.reset = of(d, "reset"),
    s.ldy = w;
    if (!s.bias) s.bias = case_give(d->type, case_zeros(w), 1, w, 1);
    s.state_in = of(d, "state_in"), s.ld_state = (a->taps - 1) * w;
    if (!d->backward) {
        s.state_out = of(d, "state_out"), s.y = of(d, "y");
        execute(context, XPH_OP_CONV, &s, NULL, NULL, NULL);
        return;
    }
    xph_conv_grad_args g = {.fwd = s, .dy = of(d, "dy"), .lddy = w, .dx = of(d, "dx"), .lddx = w};
    g.dw = of(d, "dweight"), g.dbias = of(d, "dbias");
    g.dstate_in = of(d, "dstate_in"), g.dstate_out = of(d, "dstate_out");
    execute(context, XPH_OP_CONV_GRAD, &g, &g.scratch, NULL, NULL);
}

static void run_adamw(exphil_context *context, direct *d)
{
    const exphil_adamw_args *a = (const exphil_adamw_args *)(const void *)d->c->args;
    xph_adam_args s = {
        .type = d->type, .count = a->count, .decay_count = a->count, .rate = a->rate, .decay = a->decay};
    s.p = of(d, "p"), s.grad = of(d, "grad"), s.m = of(d, "m"), s.v = of(d, "v"), s.ema = of(d, "average");
    s.beta1 = 0.9, s.beta2 = 0.999, s.epsilon = 1e-8, s.grad_scale = 1.0, s.ema_decay = a->average_decay;
    s.correction1 = 1.0 - xph_whole_power(0.9, a->step),
    s.correction2 = 1.0 - xph_whole_power(0.999, a->step);
    execute(context, XPH_OP_ADAM, &s, NULL, NULL, NULL);
}

void ops_direct(exphil_context *context, const ops_case *c, bool backward, int32_t type, const void *saved,
                double *results[OPS_MOST])
{
    direct d = {.c = c, .backward = backward, .type = type, .saved = (void *)(uintptr_t)saved};
    if (c->op == EXPHIL_OP_SCAN) run_scan(context, &d);
    if (c->op == EXPHIL_OP_ATTENTION) run_attention(context, &d);
    if (c->op == EXPHIL_OP_LSTM || c->op == EXPHIL_OP_GRU) run_rnn(context, &d);
    if (c->op == EXPHIL_OP_NORM) run_norm(context, &d);
    if (c->op == EXPHIL_OP_CONV) run_conv(context, &d);
    if (c->op == EXPHIL_OP_ADAMW) run_adamw(context, &d);
    for (int i = 0; i < c->count; i++) {
        const ops_array *a = &c->array[i];
        const bool out = is_used(&d, a, OPS_FORWARD_OUT, OPS_BACKWARD_OUT);
        const int64_t count = ops_elements(a);
        results[i] = out ? case_take(type, of(&d, a->name), 1, count, count) : NULL;
    }
}
