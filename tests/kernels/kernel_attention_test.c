/* Sliding-window attention: every method against softmax written out in double, frames against chunks, the
 * ring, resets, and the gradient against differences. */
#include "kernel_case.h"

#include <math.h>

typedef struct shape {
    int64_t batch, time, heads, dim, window;
    int ring;    /* -1: no state_in; else slots filled */
    int resets;  /* one frame in so many; 0: none */
    int64_t pad; /* between the rows */
} shape;

static const shape shapes[] = {
    {1, 1, 1, 1, 1, -1, 0, 0},    {1, 7, 1, 3, 1, 1, 0, 1},        {2, 5, 3, 2, 9, -1, 3, 0},
    {3, 17, 2, 5, 4, 3, 5, 2},    {1, 70, 2, 64, 33, 33, 0, 0},    {2, 67, 1, 13, 64, 20, 11, 3},
    {2, 1, 4, 64, 31, 31, 0, 0},  {1, 96, 1, 70, 200, 150, 40, 0}, {2, 40, 2, 8, 13, 13, 1, 0},
    {0, 4, 2, 3, 5, -1, 0, 0},    {2, 0, 2, 3, 5, 2, 0, 0},        {5, 33, 1, 128, 32, 0, 7, 5},
    {2, 61, 2, 64, 60, 60, 0, 0}, {1, 200, 1, 64, 30, 10, 17, 0},  {1, 150, 2, 16, 90, 90, 60, 1},
    {3, 40, 1, 48, 7, 7, 0, 0},   {2, 30, 1, 80, 4, 2, 9, 0},      {1, 130, 1, 20, 65, -1, 0, 0},
};

/* Everything of one call, as doubles. */
typedef struct attention {
    shape s;
    int64_t span, state; /* heads * dim; numbers of one state */
    double *qkv, *bias, *state_in, *dy;
    uint8_t *reset;
    double *y, *lse, *state_out; /* results */
    double *dqkv, *dbias;
} attention;

static attention attention_make(const shape *s)
{
    attention a = {.s = *s, .span = s->heads * s->dim};
    int64_t rows = s->batch * s->time;
    a.state = 2 * s->window * a.span + 2;
    a.qkv = case_random(rows * 3 * a.span, -1.5, 1.5);
    a.bias = case_random(s->heads * s->window, -1, 1);
    a.dy = case_random(rows * a.span, -1, 1);
    if (s->ring >= 0) a.state_in = case_random(s->batch * a.state, -1.5, 1.5);
    for (int64_t b = 0; b < s->batch && s->ring >= 0; b++) {
        a.state_in[(b + 1) * a.state - 2] = (double)case_below(s->window);
        a.state_in[(b + 1) * a.state - 1] = (double)s->ring;
    }
    if (s->resets) a.reset = case_alloc((size_t)rows);
    for (int64_t i = 0; i < rows && s->resets; i++) a.reset[i] = case_below(s->resets) == 0;
    return a;
}

static xph_attention_args attention_args(const attention *a, xph_type type, int32_t method)
{
    const shape *s = &a->s;
    int64_t rows = s->batch * s->time, ldqkv = 3 * a->span + s->pad, ldy = a->span + 2 * s->pad;
    xph_attention_args args = {.type = type,
                               .method = method,
                               .batch = s->batch,
                               .time = s->time,
                               .heads = s->heads,
                               .dim = s->dim,
                               .window = s->window,
                               .ldqkv = ldqkv,
                               .reset = a->reset,
                               .ldy = ldy,
                               .ld_state = a->state + s->pad};
    args.qkv = case_give(type, a->qkv, rows, 3 * a->span, ldqkv);
    args.bias = case_give(type, a->bias, s->heads, s->window, s->window);
    args.state_in = case_give(type, a->state_in, s->batch, a->state, args.ld_state);
    args.state_out =
        case_give(type, case_random(s->batch * a->state, 0, 1), s->batch, a->state, args.ld_state);
    args.y = case_give(type, case_random(rows * a->span, 0, 1), rows, a->span, ldy);
    args.saved = case_alloc((size_t)(rows * s->heads) * case_bytes(type));
    return args;
}

static void attention_take(attention *a, const xph_attention_args *args)
{
    int64_t rows = a->s.batch * a->s.time;
    a->y = case_take(args->type, args->y, rows, a->span, args->ldy);
    a->lse = case_take(args->type, args->saved, rows, a->s.heads, a->s.heads);
    a->state_out = case_take(args->type, args->state_out, a->s.batch, a->state, args->ld_state);
    case_padding_intact(args->type, args->y, rows, a->span, args->ldy);
}

static void attention_run(attention *a, const xph_kernel_set *set, const xph_candidate *c, int32_t method,
                          int threads)
{
    xph_attention_args args = attention_args(a, set->type, method);
    args.scratch = case_scratch(c, &args);
    case_run(c, &args, threads);
    attention_take(a, &args);
}

static const xph_candidate *chosen(const xph_kernel_set *set, const attention *a, int32_t method)
{
    xph_attention_args args = {.method = method, .time = a->s.time, .window = a->s.window, .dim = a->s.dim};
    return xph_kernels_choose(set, XPH_OP_ATTENTION, &args);
}

/* ---- reference: the definition, with history and chunk laid out one behind the other ---- */

static const double *history(const attention *a, int64_t b, int64_t j, bool value)
{
    if (j >= 0) return a->qkv + (b * a->s.time + j) * 3 * a->span + (value ? 2 : 1) * a->span;
    const double *state = a->state_in + b * a->state;
    int64_t next = (int64_t)state[a->state - 2],
            slot = ((next + j) % a->s.window + a->s.window) % a->s.window;
    return state + (value ? a->s.window * a->span : 0) + slot * a->span;
}

static int64_t oldest(const attention *a, int64_t b, int64_t t)
{
    int64_t first = a->s.ring > 0 ? -a->s.ring : 0;
    for (int64_t i = 0; i <= t && a->reset; i++)
        if (a->reset[b * a->s.time + i]) first = i;
    return first > t - a->s.window + 1 ? first : t - a->s.window + 1;
}

static double score(const attention *a, int64_t b, int64_t h, int64_t t, int64_t j)
{
    const double *q = a->qkv + (b * a->s.time + t) * 3 * a->span + h * a->s.dim;
    const double *k = history(a, b, j, false) + h * a->s.dim;
    return case_dot(q, k, a->s.dim) / sqrt((double)a->s.dim) + a->bias[h * a->s.window + t - j];
}

static void reference_frame(attention *a, int64_t b, int64_t h, int64_t t)
{
    double total = 0.0, *y = a->y + (b * a->s.time + t) * a->span + h * a->s.dim;
    for (int64_t j = oldest(a, b, t); j <= t; j++) total += exp(score(a, b, h, t, j));
    for (int64_t j = oldest(a, b, t); j <= t; j++)
        for (int64_t d = 0; d < a->s.dim; d++)
            y[d] += exp(score(a, b, h, t, j)) / total * history(a, b, j, true)[h * a->s.dim + d];
    a->lse[(b * a->s.time + t) * a->s.heads + h] = log(total);
}

static void reference(attention *a)
{
    int64_t rows = a->s.batch * a->s.time;
    a->y = case_zeros(rows * a->span);
    a->lse = case_zeros(rows * a->s.heads);
    for (int64_t b = 0; b < a->s.batch; b++)
        for (int64_t h = 0; h < a->s.heads; h++)
            for (int64_t t = 0; t < a->s.time; t++) reference_frame(a, b, h, t);
}

/* The window's frames that the ring would hold after the chunk, newest first, as the next call would read
 * them. */
static void ring_right(const attention *a, double tolerance)
{
    for (int64_t b = 0; b < a->s.batch; b++) {
        const double *state = a->state_out + b * a->state;
        int64_t next = (int64_t)state[a->state - 2], filled = (int64_t)state[a->state - 1];
        int64_t before = a->s.ring > 0 ? a->s.ring : 0, expected = before;
        for (int64_t t = 0; t < a->s.time; t++) {
            if (a->reset && a->reset[b * a->s.time + t]) expected = 0;
            expected = expected < a->s.window ? expected + 1 : expected;
        }
        assert_int_equal(filled, expected);
        for (int64_t i = 1; i <= filled; i++) {
            int64_t slot = (next - i + a->s.window) % a->s.window;
            case_close("ring k", state + slot * a->span, history(a, b, a->s.time - i, false), a->span,
                       tolerance);
            case_close("ring v", state + (a->s.window + slot) * a->span, history(a, b, a->s.time - i, true),
                       a->span, tolerance);
        }
    }
}

static void forward_is_the_definition(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        attention a = attention_make(&shapes[i]), expected = a;
        reference(&expected);
        EACH_SET(set) {
            double tolerance = set->type == XPH_F64 ? 1e-12 : 5e-6;
            for (int32_t method = 0; method < 3; method++) {
                case_guard_front(method == 1);
                attention_run(&a, set, chosen(set, &a, method), method, 1);
                case_close("y", a.y, expected.y, a.s.batch * a.s.time * a.span, tolerance);
                case_close("log-sum-exp", a.lse, expected.lse, a.s.batch * a.s.time * a.s.heads, tolerance);
                ring_right(&a, 0);
            }
        }
        case_release();
    }
}

static void methods_are_chosen(void **state)
{
    const xph_kernel_set *set = &xph_kernels_f32_ref;
    attention a = {.s = {1, 1, 1, 8, 16, -1, 0, 0}};
    for (int32_t method = 0; method < 3; method++)
        assert_string_equal(chosen(set, &a, method)->name, "attention_plain_f32_ref");
    a.s.time = 64;
    assert_string_equal(chosen(set, &a, XPH_ATTENTION_AUTO)->name, "attention_tiled_f32_ref");
    assert_string_equal(chosen(set, &a, XPH_ATTENTION_PLAIN)->name, "attention_plain_f32_ref");
}

/* All methods, all single precision sets, 1 to 4 threads: the same bits, of results and gradients. */
static void grad_run(attention *a, const xph_kernel_set *set, int threads);

static void bits_do_not_depend_on_set_or_threads(void **state)
{
    const xph_kernel_set *sets[CASE_SETS];
    int count = case_sets(sets);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        attention a = attention_make(&shapes[i]), first = a;
        int64_t rows = a.s.batch * a.s.time;
        attention_run(&first, &xph_kernels_f32_ref, chosen(&xph_kernels_f32_ref, &a, 1), 1, 1);
        grad_run(&first, &xph_kernels_f32_ref, 1);
        for (int32_t method = 0; method < 3; method++) {
            for (int s = 1; s < count; s++) {
                int threads = s == 1 ? 4 : s;
                attention_run(&a, sets[s], chosen(sets[s], &a, method), method, threads);
                grad_run(&a, sets[s], threads);
                case_same("y", a.y, first.y, rows * a.span);
                case_same("log-sum-exp", a.lse, first.lse, rows * a.s.heads);
                case_same("state", a.state_out, first.state_out, a.s.batch * a.state);
                case_same("dqkv", a.dqkv, first.dqkv, rows * 3 * a.span);
                case_same("dbias", a.dbias, first.dbias, a.s.heads * a.s.window);
            }
        }
        case_release();
    }
}

/* Runs the whole in pieces of `frames`, the state carried in place, by one method. */
static void in_pieces(const attention *whole, const xph_kernel_set *set, int64_t frames, double *y,
                      double *state, int32_t method)
{
    int64_t ld = 3 * whole->span;
    xph_type type = set->type;
    void *ring = case_give(type, whole->state_in, whole->s.batch, whole->state, whole->state);
    for (int64_t t = 0; t < whole->s.time; t += frames) {
        attention part = *whole;
        part.s.time = whole->s.time - t < frames ? whole->s.time - t : frames;
        part.qkv = case_alloc((size_t)(part.s.batch * part.s.time * ld) * sizeof(double));
        part.reset = whole->reset ? case_alloc((size_t)(part.s.batch * part.s.time)) : NULL;
        for (int64_t b = 0; b < part.s.batch; b++) {
            memcpy(part.qkv + b * part.s.time * ld, whole->qkv + (b * whole->s.time + t) * ld,
                   (size_t)(part.s.time * ld) * sizeof(double));
            if (part.reset)
                memcpy(part.reset + b * part.s.time, whole->reset + b * whole->s.time + t,
                       (size_t)part.s.time);
        }
        xph_attention_args args = attention_args(&part, type, method);
        args.state_in = args.state_out = ring;
        args.ld_state = whole->state;
        const xph_candidate *c = chosen(set, &part, method);
        args.scratch = case_scratch(c, &args);
        case_run(c, &args, 2);
        double *piece = case_take(type, args.y, part.s.batch * part.s.time, part.span, args.ldy);
        for (int64_t b = 0; b < part.s.batch; b++)
            memcpy(y + (b * whole->s.time + t) * part.span, piece + b * part.s.time * part.span,
                   (size_t)(part.s.time * part.span) * sizeof(double));
    }
    memcpy(state, case_take(type, ring, whole->s.batch, whole->state, whole->state),
           (size_t)(whole->s.batch * whole->state) * sizeof(double));
}

static void pieces_have_the_bits_of_the_whole(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        attention a = attention_make(&shapes[i]);
        if (!a.state_in) a.state_in = case_zeros(a.s.batch * a.state);
        double *y = case_zeros(a.s.batch * a.s.time * a.span), *end = case_zeros(a.s.batch * a.state);
        EACH_SET(set) {
            attention_run(&a, set, chosen(set, &a, 0), 0, 1);
            for (int64_t frames = 1; frames < 40; frames += 18) {
                void *mark = case_mark();
                in_pieces(&a, set, frames, y, end, frames == 1 ? XPH_ATTENTION_PLAIN : XPH_ATTENTION_AUTO);
                case_same("y in pieces", y, a.y, a.s.batch * a.s.time * a.span);
                case_same("state in pieces", end, a.state_out, a.s.batch * a.state);
                case_release_to(mark);
            }
        }
        case_release();
    }
}

/* Single frames between two states, the older of which lags one frame behind: the bits of whole copies,
 * wherever a frame starts an episode. */
static void lagging_states_are_whole(void **state)
{
    static const shape lagging[] = {{3, 1, 2, 16, 5, 2, 0, 3},
                                    {1, 1, 1, 3, 1, 0, 0, 0},
                                    {2, 1, 1, 64, 2, 2, 0, 0},
                                    {2, 1, 2, 7, 12, 12, 0, 1}};
    enum { STEPS = 40 };
    for (size_t i = 0; i < sizeof lagging / sizeof *lagging; i++)
        EACH_SET(set) {
            case_seed(i);
            attention a = attention_make(&lagging[i]);
            xph_type type = set->type;
            int64_t ld = a.state + a.s.pad, batch = a.s.batch;
            void *whole = case_give(type, a.state_in, batch, a.state, ld), *two[2];
            two[0] = case_give(type, a.state_in, batch, a.state, ld);
            two[1] = case_give(type, case_random(batch * a.state, 0, 1), batch, a.state, ld);
            for (int t = 0; t < STEPS; t++) {
                void *mark = case_mark();
                a.qkv = case_random(batch * 3 * a.span, -1.5, 1.5);
                a.reset = case_alloc((size_t)batch);
                for (int64_t b = 0; b < batch; b++) a.reset[b] = case_below(7) == 0;
                xph_attention_args args = attention_args(&a, type, 0);
                const xph_candidate *c = chosen(set, &a, 0);
                args.scratch = case_scratch(c, &args);
                args.state_in = args.state_out = whole;
                case_run(c, &args, 1);
                double *y = case_take(type, args.y, batch, a.span, args.ldy);
                args.state_in = two[t % 2];
                args.state_out = two[1 - t % 2];
                args.lagging = t > 0;
                case_run(c, &args, 2);
                case_same("y", case_take(type, args.y, batch, a.span, args.ldy), y, batch * a.span);
                case_same("state", case_take(type, two[1 - t % 2], batch, a.state, ld),
                          case_take(type, whole, batch, a.state, ld), batch * a.state);
                case_release_to(mark);
            }
            case_release();
        }
}

/* One stream alone gives what it gives among others. */
static void streams_do_not_touch(void **state)
{
    static const shape s = {4, 37, 2, 19, 11, 9, 6, 0};
    for (int32_t method = 1; method < 3; method++) {
        case_seed(5);
        const xph_kernel_set *set = xph_kernels_pick(XPH_F32, xph_cpu_detect());
        attention a = attention_make(&s), one = a;
        attention_run(&a, set, chosen(set, &a, method), method, 3);
        one.s.batch = 1;
        one.qkv = a.qkv + 2 * s.time * 3 * a.span;
        one.state_in = a.state_in + 2 * a.state;
        one.reset = a.reset + 2 * s.time;
        attention_run(&one, set, chosen(set, &one, method), method, 1);
        case_same("y", one.y, a.y + 2 * s.time * a.span, s.time * a.span);
        case_same("state", one.state_out, a.state_out + 2 * a.state, a.state);
        case_release();
    }
}

/* What must not be seen (before a reset, beyond the window, empty slots) may hold anything; what is seen
 * shows. */
static void hidden_frames_do_not_leak(void **state)
{
    static const shape s = {1, 50, 1, 6, 12, 5, 0, 0};
    EACH_SET(set) {
        for (int32_t method = 1; method < 3; method++) {
            case_seed(6);
            attention a = attention_make(&s);
            int64_t next = (int64_t)a.state_in[a.state - 2];
            for (int64_t j = -s.window; j < -s.ring; j++) {
                int64_t slot = (next + j + 2 * s.window) % s.window;
                for (int64_t d = 0; d < s.dim; d++) a.state_in[slot * s.dim + d] = NAN;
                for (int64_t d = 0; d < s.dim; d++) a.state_in[(s.window + slot) * s.dim + d] = INFINITY;
            }
            a.reset = case_alloc(50);
            memset(a.reset, 0, 50);
            a.reset[30] = 1;
            for (int64_t d = 0; d < 3 * s.dim; d++) a.qkv[2 * 3 * s.dim + d] = d % 2 ? NAN : INFINITY;
            for (int64_t d = 0; d < 3 * s.dim; d++) a.qkv[29 * 3 * s.dim + d] = d % 2 ? NAN : INFINITY;
            attention_run(&a, set, chosen(set, &a, method), method, 1);
            for (int64_t t = 0; t < s.time; t++) {
                bool seen = (t >= 2 && t < 14) || t == 29;
                for (int64_t d = 0; d < s.dim; d++) assert_int_equal(!isfinite(a.y[t * s.dim + d]), seen);
            }
            case_release();
        }
    }
}

/* Counters that point out of the ring are taken for an empty one. */
static void broken_counters_stay_inside(void **state)
{
    static const double counters[][2] = {{-1, 3}, {1e9, 3}, {2, 1e30}, {2, -5}, {NAN, NAN}, {2.5, 3.5}};
    static const shape s = {1, 3, 1, 4, 7, 3, 0, 0};
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        case_seed(i);
        attention a = attention_make(&s);
        memcpy(a.state_in + a.state - 2, counters[i], sizeof counters[i]);
        attention_run(&a, &xph_kernels_f32_ref, chosen(&xph_kernels_f32_ref, &a, 1), 1, 1);
        for (int64_t k = 0; k < 3 * 4; k++) assert_true(isfinite(a.y[k]));
        case_release();
    }
}

/* ---- gradients ---- */

/* dbias is added to what was there. */
static void grad_run(attention *a, const xph_kernel_set *set, int threads)
{
    const xph_candidate *c = set->op[XPH_OP_ATTENTION_GRAD];
    int64_t rows = a->s.batch * a->s.time, biases = a->s.heads * a->s.window;
    xph_attention_grad_args args = {.fwd = attention_args(a, set->type, 0)};
    args.fwd.state_out = NULL;
    args.fwd.y = case_give(set->type, a->y, rows, a->span, args.fwd.ldy);
    args.fwd.saved = case_give(set->type, a->lse, rows, a->s.heads, a->s.heads);
    args.lddy = a->span + a->s.pad;
    args.dy = case_give(set->type, a->dy, rows, a->span, args.lddy);
    args.lddqkv = 3 * a->span + a->s.pad;
    args.dqkv = case_give(set->type, case_zeros(rows * 3 * a->span), rows, 3 * a->span, args.lddqkv);
    double *zeros = case_zeros(biases);
    for (int64_t i = 0; i < biases; i++) zeros[i] = 0.5;
    args.dbias = case_give(set->type, zeros, a->s.heads, a->s.window, a->s.window);
    args.scratch = case_scratch(c, &args);
    case_run(c, &args, threads);
    a->dqkv = case_take(set->type, args.dqkv, rows, 3 * a->span, args.lddqkv);
    a->dbias = case_take(set->type, args.dbias, a->s.heads, a->s.window, a->s.window);
    for (int64_t i = 0; i < biases; i++) a->dbias[i] -= 0.5;
}

static double objective(void *context)
{
    attention *a = context;
    void *mark = case_mark();
    attention_run(a, &xph_kernels_f64_ref, chosen(&xph_kernels_f64_ref, a, 1), 1, 1);
    double sum = case_dot(a->y, a->dy, a->s.batch * a->s.time * a->span);
    case_release_to(mark);
    return sum;
}

static const shape grad_shapes[] = {
    {1, 1, 1, 1, 1, -1, 0, 0},   {2, 5, 3, 2, 9, -1, 3, 0},    {2, 17, 2, 5, 4, 3, 5, 2},
    {1, 70, 1, 3, 33, 33, 0, 0}, {1, 37, 1, 7, 64, 20, 11, 3}, {1, 4, 2, 4, 3, 3, 0, 0},
};

static void gradient_is_the_derivative(void **state)
{
    for (size_t i = 0; i < sizeof grad_shapes / sizeof *grad_shapes; i++) {
        case_seed(i + 50);
        attention a = attention_make(&grad_shapes[i]);
        attention_run(&a, &xph_kernels_f64_ref, chosen(&xph_kernels_f64_ref, &a, 1), 1, 1);
        grad_run(&a, &xph_kernels_f64_ref, 1);
        case_gradient("dqkv", objective, &a, a.qkv, a.dqkv, a.s.batch * a.s.time * 3 * a.span, 1e-6);
        case_gradient("dbias", objective, &a, a.bias, a.dbias, a.s.heads * a.s.window, 1e-6);
        case_release();
    }
}

static void gradient_in_single_is_that_in_double(void **state)
{
    const xph_kernel_set *set = xph_kernels_pick(XPH_F32, xph_cpu_detect());
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        attention a = attention_make(&shapes[i]), exact = a;
        attention_run(&exact, &xph_kernels_f64_ref, chosen(&xph_kernels_f64_ref, &a, 0), 0, 1);
        grad_run(&exact, &xph_kernels_f64_ref, 1);
        attention_run(&a, set, chosen(set, &a, 0), 0, 1);
        grad_run(&a, set, 2);
        case_close("dqkv", a.dqkv, exact.dqkv, a.s.batch * a.s.time * 3 * a.span, 2e-5);
        /* a lone key has no gradient but rounding */
        if (a.s.window > 1 && a.s.resets != 1)
            case_close("dbias", a.dbias, exact.dbias, a.s.heads * a.s.window, 2e-5);
        case_release();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_the_definition),
        cmocka_unit_test(methods_are_chosen),
        cmocka_unit_test(bits_do_not_depend_on_set_or_threads),
        cmocka_unit_test(pieces_have_the_bits_of_the_whole),
        cmocka_unit_test(lagging_states_are_whole),
        cmocka_unit_test(streams_do_not_touch),
        cmocka_unit_test(hidden_frames_do_not_leak),
        cmocka_unit_test(broken_counters_stay_inside),
        cmocka_unit_test(gradient_is_the_derivative),
        cmocka_unit_test(gradient_in_single_is_that_in_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
