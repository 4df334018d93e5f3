/* Operations as tables of arrays. */
#include "ops_case.h"

#include <stdlib.h>

const int32_t ops_forward[7] = {EXPHIL_OP_SCAN, EXPHIL_OP_ATTENTION, EXPHIL_OP_LSTM, EXPHIL_OP_GRU,
                                EXPHIL_OP_NORM, EXPHIL_OP_CONV,      EXPHIL_OP_ADAMW};

enum {
    IN = OPS_FORWARD_IN | OPS_BACKWARD_IN,
    FIRST = OPS_FORWARD_IN, /* backward does not read it */
    OUT = OPS_FORWARD_OUT,
    KEPT = OPS_FORWARD_OUT | OPS_BACKWARD_IN, /* backward reads what forward gave */
    UP = OPS_BACKWARD_IN,
    DOWN = OPS_BACKWARD_OUT,
    BOTH = OPS_FORWARD_IN | OPS_FORWARD_OUT
};

/* ---- tables ---------------------------------------------------------------------------------------------- */

static void add(ops_case *c, const char *name, size_t at, uint32_t role, int64_t batch, int64_t frames,
                int64_t columns)
{
    c->array[c->count++] = (ops_array){name, at, role, {batch, frames, columns}, -1.0, 1.0, NULL, false};
}
#define ADD(type, field, role, ...) add(c, #field, offsetof(type, field), role, __VA_ARGS__)

static void between(ops_case *c, const char *name, double low, double high)
{
    ops_array *a = ops_find(c, name);
    a->low = low;
    a->high = high;
}

static void scan_tables(ops_case *c, const ops_shape *s)
{
    const int64_t b = s->batch, t = s->frames, d = s->width, n = s->more;
    exphil_scan_args a = EXPHIL_SCAN_ARGS_INIT;
    a.batch = b, a.frames = t, a.width = d, a.states = n, a.delta_plain = s->flag;
    memcpy(c->args, &a, sizeof a);
    ADD(exphil_scan_args, u, IN, b, t, d), ADD(exphil_scan_args, delta, IN, b, t, d);
    ADD(exphil_scan_args, delta_bias, IN, 1, 1, d);
    if (s->flag)
        ADD(exphil_scan_args, a, IN, 1, d, n);
    else
        ADD(exphil_scan_args, a_log, IN, 1, d, n);
    ADD(exphil_scan_args, b, IN, b, t, n), ADD(exphil_scan_args, c, IN, b, t, n);
    ADD(exphil_scan_args, skip, IN, 1, 1, d), ADD(exphil_scan_args, z, IN, b, t, d);
    ADD(exphil_scan_args, state_in, IN, b, d, n), ADD(exphil_scan_args, state_out, OUT, b, d, n);
    ADD(exphil_scan_args, y, OUT, b, t, d), ADD(exphil_scan_args, dy, UP, b, t, d);
    ADD(exphil_scan_args, dstate_out, UP, b, d, n);
    ADD(exphil_scan_args, du, DOWN, b, t, d), ADD(exphil_scan_args, ddelta, DOWN, b, t, d);
    ADD(exphil_scan_args, ddelta_bias, DOWN, 1, 1, d), ADD(exphil_scan_args, da, DOWN, 1, d, n);
    ADD(exphil_scan_args, db, DOWN, b, t, n), ADD(exphil_scan_args, dc, DOWN, b, t, n);
    ADD(exphil_scan_args, dskip, DOWN, 1, 1, d), ADD(exphil_scan_args, dz, DOWN, b, t, d);
    ADD(exphil_scan_args, dstate_in, DOWN, b, d, n), ADD(exphil_scan_args, reset, IN | OPS_BYTES, b, t, 1);
    if (!s->flag) return;
    between(c, "a", -2.0, -0.01);
    between(c, "delta", 0.2, 1.0);
    between(c, "delta_bias", -0.1, 0.5);
}

static void attention_tables(ops_case *c, const ops_shape *s)
{
    const int64_t b = s->batch, t = s->frames, w = s->more, span = 2 * s->width, state = 2 * w * span + 2;
    exphil_attention_args a = EXPHIL_ATTENTION_ARGS_INIT;
    a.batch = b, a.frames = t, a.heads = 2, a.dim = s->width, a.window = w, a.method = s->flag;
    memcpy(c->args, &a, sizeof a);
    c->saved_at = offsetof(exphil_attention_args, saved);
    ADD(exphil_attention_args, q, IN, b, t, span), ADD(exphil_attention_args, k, IN, b, t, span);
    ADD(exphil_attention_args, v, IN, b, t, span), ADD(exphil_attention_args, bias, IN, 1, 2, w);
    ADD(exphil_attention_args, state_in, IN, b, 1, state);
    ADD(exphil_attention_args, state_out, OUT, b, 1, state);
    ADD(exphil_attention_args, y, KEPT, b, t, span), ADD(exphil_attention_args, dy, UP, b, t, span);
    ADD(exphil_attention_args, dq, DOWN, b, t, span), ADD(exphil_attention_args, dk, DOWN, b, t, span);
    ADD(exphil_attention_args, dv, DOWN, b, t, span), ADD(exphil_attention_args, dbias, DOWN, 1, 2, w);
    ADD(exphil_attention_args, reset, IN | OPS_BYTES, b, t, 1);
}

static void rnn_tables(ops_case *c, const ops_shape *s)
{
    const bool lstm = c->op == EXPHIL_OP_LSTM;
    const int64_t b = s->batch, t = s->frames, h = s->width, g = (lstm ? 4 : 3) * h;
    exphil_rnn_args a = EXPHIL_RNN_ARGS_INIT;
    a.op = c->op, a.batch = b, a.frames = t, a.hidden = h;
    memcpy(c->args, &a, sizeof a);
    c->saved_at = offsetof(exphil_rnn_args, saved);
    ADD(exphil_rnn_args, gates, FIRST, b, t, g), ADD(exphil_rnn_args, weight, IN, 1, g, h);
    ADD(exphil_rnn_args, bias, FIRST, 1, 1, g);
    ADD(exphil_rnn_args, h_in, IN, b, 1, h), ADD(exphil_rnn_args, h_out, OUT, b, 1, h);
    ADD(exphil_rnn_args, y, KEPT, b, t, h), ADD(exphil_rnn_args, dy, UP, b, t, h);
    ADD(exphil_rnn_args, dh_out, UP, b, 1, h), ADD(exphil_rnn_args, dh_in, DOWN, b, 1, h);
    ADD(exphil_rnn_args, dgates, DOWN, b, t, g), ADD(exphil_rnn_args, dweight, DOWN, 1, g, h);
    ADD(exphil_rnn_args, dbias, DOWN, 1, 1, g), ADD(exphil_rnn_args, reset, IN | OPS_BYTES, b, t, 1);
    between(c, "weight", -0.4, 0.4);
    if (!lstm) return;
    ADD(exphil_rnn_args, c_in, IN, b, 1, h), ADD(exphil_rnn_args, c_out, OUT, b, 1, h);
    ADD(exphil_rnn_args, dc_out, UP, b, 1, h), ADD(exphil_rnn_args, dc_in, DOWN, b, 1, h);
}

static void norm_tables(ops_case *c, const ops_shape *s)
{
    const int64_t b = s->batch, t = s->frames, d = s->width;
    exphil_norm_args a = EXPHIL_NORM_ARGS_INIT;
    a.batch = b, a.frames = t, a.width = d, a.silu = s->flag;
    memcpy(c->args, &a, sizeof a);
    c->saved_at = offsetof(exphil_norm_args, saved);
    ADD(exphil_norm_args, x, IN, b, t, d), ADD(exphil_norm_args, gain, IN, 1, 1, d);
    ADD(exphil_norm_args, shift, IN, 1, 1, d), ADD(exphil_norm_args, y, OUT, b, t, d);
    ADD(exphil_norm_args, dy, UP, b, t, d), ADD(exphil_norm_args, dx, DOWN, b, t, d);
    ADD(exphil_norm_args, dgain, DOWN, 1, 1, d), ADD(exphil_norm_args, dshift, DOWN, 1, 1, d);
}

static void conv_tables(ops_case *c, const ops_shape *s)
{
    const int64_t b = s->batch, t = s->frames, d = s->width, k = s->more, o = s->more - 1;
    exphil_conv_args a = EXPHIL_CONV_ARGS_INIT;
    a.batch = b, a.frames = t, a.width = d, a.taps = k;
    memcpy(c->args, &a, sizeof a);
    ADD(exphil_conv_args, x, IN, b, t, d), ADD(exphil_conv_args, weight, IN, 1, d, k);
    ADD(exphil_conv_args, bias, IN, 1, 1, d), ADD(exphil_conv_args, state_in, IN, b, o, d);
    ADD(exphil_conv_args, state_out, OUT, b, o, d), ADD(exphil_conv_args, y, OUT, b, t, d);
    ADD(exphil_conv_args, dy, UP, b, t, d), ADD(exphil_conv_args, dstate_out, UP, b, o, d);
    ADD(exphil_conv_args, dx, DOWN, b, t, d), ADD(exphil_conv_args, dweight, DOWN, 1, d, k);
    ADD(exphil_conv_args, dbias, DOWN, 1, 1, d), ADD(exphil_conv_args, dstate_in, DOWN, b, o, d);
    ADD(exphil_conv_args, reset, IN | OPS_BYTES, b, t, 1);
}

static void adamw_tables(ops_case *c, const ops_shape *s)
{
    exphil_adamw_args a = EXPHIL_ADAMW_ARGS_INIT;
    a.count = s->width, a.step = 3, a.rate = 0.01, a.decay = 0.1, a.average_decay = 0.9;
    memcpy(c->args, &a, sizeof a);
    ADD(exphil_adamw_args, p, BOTH, 1, 1, s->width), ADD(exphil_adamw_args, m, BOTH, 1, 1, s->width);
    ADD(exphil_adamw_args, v, BOTH, 1, 1, s->width), ADD(exphil_adamw_args, grad, FIRST, 1, 1, s->width);
    ADD(exphil_adamw_args, average, BOTH, 1, 1, s->width);
    between(c, "v", 0.0, 1.0);
}

/* ---- cases ----------------------------------------------------------------------------------------------- */

ops_array *ops_find(ops_case *c, const char *name)
{
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->array[i].name, name) == 0) return &c->array[i];
    fail_msg("there is no %s", name);
    return NULL;
}

void ops_leave_out(ops_case *c, const char *name)
{
    ops_find(c, name)->left_out = true;
}

/* Two numbers behind the ring say where it stands: the window may have gone round. */
static void fill_ring(ops_case *c, const ops_shape *s)
{
    ops_array *a = ops_find(c, "state_in");
    for (int64_t b = 0; b < a->count[0]; b++) {
        double *end = a->x + (b + 1) * a->count[2];
        end[-2] = (double)(b % s->more);
        end[-1] = b % 2 ? (double)s->more : (double)(b % s->more);
    }
}

ops_case *ops_case_make(int32_t op, const ops_shape *s)
{
    ops_case *c = case_alloc(sizeof *c);
    memset(c, 0, sizeof *c);
    c->op = op;
    if (op == EXPHIL_OP_SCAN) scan_tables(c, s);
    if (op == EXPHIL_OP_ATTENTION) attention_tables(c, s);
    if (op == EXPHIL_OP_LSTM || op == EXPHIL_OP_GRU) rnn_tables(c, s);
    if (op == EXPHIL_OP_NORM) norm_tables(c, s);
    if (op == EXPHIL_OP_CONV) conv_tables(c, s);
    if (op == EXPHIL_OP_ADAMW) adamw_tables(c, s);
    for (int i = 0; i < c->count; i++) {
        ops_array *a = &c->array[i];
        a->x = case_random(ops_elements(a), a->low, a->high);
        for (int64_t k = 0; a->role & OPS_BYTES && k < ops_elements(a); k++)
            a->x[k] = s->resets && case_below(s->resets) == 0 ? 1.0 : 0.0;
    }
    if (op == EXPHIL_OP_ATTENTION) fill_ring(c, s);
    return c;
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

static size_t element_of(const ops_array *a, int32_t type)
{
    return a->role & OPS_BYTES ? 1 : case_bytes(type);
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Vectors and matrices lie as the strides that they have say. */
static void strides_of(const ops_array *a, int layout, int64_t stride[3])
{
    const int64_t b = most(1, a->count[0]), t = most(1, a->count[1]), d = most(1, a->count[2]);
    const int64_t all[OPS_LAYOUTS][3] = {[OPS_DENSE] = {t * d, d, 1},
                                         [OPS_PADDED] = {t * (d + 3) + 5, d + 3, 1},
                                         [OPS_COLUMNS_APART] = {t * d + 1, 1, t},
                                         [OPS_TIME_FIRST] = {2 * d, 2 * b * d, 2}};
    memcpy(stride, all[layout], sizeof all[0]);
}

static double read_at(const ops_laid *l, const ops_array *a, int32_t type, int64_t at)
{
    if (a->role & OPS_BYTES) return l->data[at];
    return type == EXPHIL_OPS_F64 ? ((const double *)(void *)l->data)[at]
                                  : (double)((const float *)(void *)l->data)[at];
}

static void write_at(const ops_laid *l, const ops_array *a, int32_t type, int64_t at, double x)
{
    if (a->role & OPS_BYTES)
        l->data[at] = (unsigned char)x;
    else if (type == EXPHIL_OPS_F64)
        ((double *)(void *)l->data)[at] = x;
    else
        ((float *)(void *)l->data)[at] = (float)x;
}

static int64_t place_of(const ops_laid *l, const ops_array *a, int64_t i)
{
    const int64_t d = a->count[2], t = a->count[1];
    return i / (t * d) * l->stride[0] + i / d % t * l->stride[1] + i % d * l->stride[2];
}

static void lay(ops_run *r, int i, int layout)
{
    const ops_array *a = &r->c->array[i];
    ops_laid *l = &r->laid[i];
    const int64_t count = ops_elements(a);
    strides_of(a, layout, l->stride);
    l->bytes = count ? (size_t)(place_of(l, a, count - 1) + 1) * element_of(a, r->type) : 0;
    l->data = case_alloc(l->bytes);
    for (int64_t k = 0; ops_is_in(r, i) && k < count; k++)
        write_at(l, a, r->type, place_of(l, a, k), a->x[k]);
    exphil_input given = {l->data, l->stride[0], l->stride[1], l->stride[2]};
    if (layout == OPS_DENSE) given = (exphil_input){.data = l->data};
    memcpy(r->args + a->at, &given, sizeof given);
}

static void put(ops_run *r, size_t at, const void *value, size_t bytes)
{
    memcpy(r->args + at, value, bytes);
}

ops_run *ops_run_make(exphil_ops *ops, const ops_case *c, bool backward, int32_t type, int layout,
                      void *saved)
{
    ops_run *r = case_alloc(sizeof *r);
    memset(r, 0, sizeof *r);
    *r = (ops_run){.c = c, .op = c->op + backward, .type = type, .backward = backward};
    memcpy(r->args, c->args, sizeof r->args);
    put(r, offsetof(exphil_scan_args, op), &r->op, sizeof r->op);
    put(r, offsetof(exphil_scan_args, type), &type, sizeof type);
    for (int i = 0; i < c->count; i++)
        if (ops_is_in(r, i) || ops_is_out(r, i)) lay(r, i, layout);
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_ops_query(ops, r->args, &info, &error) < 0) fail_msg("query: %s", error.message);
    r->copies = info.copies;
    r->saved_bytes = info.saved_bytes;
    r->saved = saved ? saved : case_alloc(info.saved_bytes);
    if (c->saved_at) {
        put(r, c->saved_at, &r->saved, sizeof r->saved);
        put(r, c->saved_at + sizeof r->saved, &r->saved_bytes, sizeof r->saved_bytes);
    }
    r->workspace_bytes = info.workspace_bytes;
    r->workspace = case_alloc(info.workspace_bytes);
    return r;
}

exphil_status ops_run_do(exphil_ops *ops, ops_run *r, exphil_error *error)
{
    return exphil_ops_run(ops, r->args, r->workspace, r->workspace_bytes, NULL, error);
}

double *ops_run_result(const ops_run *r, int i)
{
    const ops_array *a = &r->c->array[i];
    double *x = case_zeros(ops_elements(a));
    for (int64_t k = 0; k < ops_elements(a); k++)
        x[k] = read_at(&r->laid[i], a, r->type, place_of(&r->laid[i], a, k));
    return x;
}

void *ops_forward_of(exphil_ops *ops, ops_case *c, int32_t type)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    ops_run *r = ops_run_make(ops, c, false, type, OPS_DENSE, NULL);
    if (ops_run_do(ops, r, &error) < 0) fail_msg("forward: %s", error.message);
    for (int i = 0; i < c->count; i++)
        if (ops_is_out(r, i) && c->array[i].role & OPS_BACKWARD_IN) c->array[i].x = ops_run_result(r, i);
    return r->saved;
}

exphil_ops *ops_make(exphil_context *context, int32_t threads)
{
    exphil_ops_config config = EXPHIL_OPS_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_ops *ops = NULL;
    config.threads = threads;
    if (exphil_ops_create(context, &config, &ops, &error) < 0) fail_msg("%s", error.message);
    return ops;
}
