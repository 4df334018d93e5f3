/* The CUDA kernels of attention on the emulated GPU: against the CPU's in double, frames against chunks, the ring,
 * resets, windows shorter and longer than a tile, widths that fill no tile. */
#include "device_case.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct shape {
    int64_t batch, time, heads, dim, window;
    int ring;   /* -1: no state_in; else slots filled */
    int resets; /* one frame in so many; 0: none */
    int64_t pad;
} shape;

static const shape shapes[] = {
    {1, 1, 1, 1, 1, -1, 0, 0},    {1, 7, 1, 3, 1, 1, 0, 1},        {2, 5, 3, 2, 9, -1, 3, 0},
    {3, 17, 2, 5, 4, 3, 5, 2},    {1, 70, 2, 64, 33, 33, 0, 0},    {2, 67, 1, 13, 64, 20, 11, 3},
    {2, 1, 4, 64, 31, 31, 0, 0},  {1, 96, 1, 70, 200, 150, 40, 0}, {2, 40, 2, 8, 13, 13, 1, 0},
    {0, 4, 2, 3, 5, -1, 0, 0},    {2, 0, 2, 3, 5, 2, 0, 0},        {2, 33, 1, 128, 32, 0, 7, 4},
    {1, 60, 2, 64, 60, 60, 0, 0}, {1, 200, 1, 32, 30, 10, 17, 0},  {1, 150, 1, 16, 90, 90, 60, 1},
    {3, 1, 2, 20, 7, 5, 2, 3},    {1, 64, 1, 31, 128, 65, 0, 1},   {1, 129, 1, 36, 65, -1, 0, 4},
    {1, 9, 1, 300, 12, 4, 0, 0},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct layer {
    shape s;
    int64_t rows, span, state; /* heads * dim; numbers of one state */
    double *qkv, *bias, *in, *dy;
    uint8_t *reset;
} layer;

static layer layer_make(const shape *s)
{
    layer l = {.s = *s, .rows = s->batch * s->time, .span = s->heads * s->dim};
    l.state = 2 * s->window * l.span + 2;
    l.qkv = case_random(l.rows * 3 * l.span, -1.5, 1.5);
    l.bias = case_random(s->heads * s->window, -1, 1);
    l.dy = case_random(l.rows * l.span, -1, 1);
    if (s->ring >= 0) l.in = case_random(s->batch * l.state, -1.5, 1.5);
    for (int64_t b = 0; b < s->batch && l.in; b++) {
        l.in[(b + 1) * l.state - 2] = (double)case_below(s->window);
        l.in[(b + 1) * l.state - 1] = (double)s->ring;
    }
    l.reset = kt_resets(l.rows, s->resets);
    return l;
}

static xph_attention_args args_of(const layer *l)
{
    const shape *s = &l->s;
    return (xph_attention_args){.batch = s->batch,
                                .time = s->time,
                                .heads = s->heads,
                                .dim = s->dim,
                                .window = s->window,
                                .reset = l->reset};
}

enum { Y = 2, SAVED, STATE_OUT, STATE_IN }; /* places in the table below */

static kt_case forward_case(const layer *l)
{
    const shape *s = &l->s;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_attention_args, qkv, ldqkv, l->rows, 3 * l->span, KT_IN, l->qkv, NULL),
        KT_FLAT(xph_attention_args, bias, s->heads, s->window, KT_IN, l->bias, NULL),
        KT_FIELD(xph_attention_args, y, ldy, l->rows, l->span, KT_OUT, NULL, NULL),
        KT_FLAT(xph_attention_args, saved, l->rows, s->heads, KT_OUT, NULL, NULL),
        KT_FIELD(xph_attention_args, state_out, ld_state, s->batch, l->state, KT_OUT, NULL, NULL),
        KT_FIELD(xph_attention_args, state_in, ld_state, s->batch, l->state, KT_IN, l->in, NULL),
    };
    const xph_attention_args args = args_of(l);
    return KT_CASE("attention", XPH_OP_ATTENTION, args, offsetof(xph_attention_args, scratch), tensors,
                   s->pad);
}

static device_case on_device(const kt_case *c, xph_type type, int64_t rows)
{
    device_case d = device_case_of(c, xph_cuda_attention, type);
    d.reset_at = offsetof(xph_attention_args, reset);
    d.rows = rows;
    d.candidates_differ = type != XPH_F32;
    return d;
}

static void forward(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * SHAPES; i++) {
        case_seed(i / DEVICE_TYPES);
        layer l = layer_make(&shapes[i / DEVICE_TYPES]);
        kt_case c = forward_case(&l);
        device_case d = on_device(&c, device_types[i % DEVICE_TYPES], l.rows);
        device_check(&d);
        case_release();
    }
}

/* On matrix units that read 10 bits of a float's fraction. */
static void forward_on_matrix_units(void **state)
{
    for (size_t i = 0; i < SHAPES; i++) {
        case_seed(i);
        layer l = layer_make(&shapes[i]);
        kt_case c = forward_case(&l);
        KT_ARGS(&c, xph_attention_args)->math = XPH_MATH_TF32;
        device_case d = on_device(&c, XPH_F32, l.rows);
        d.tolerance = 2e-3;
        d.candidates_differ = true;
        device_check(&d);
        case_release();
    }
}

/* Without a state that goes out, and without saved: as in training and in play. */
static void what_is_not_asked_for(void **state)
{
    double *all[KT_MOST], *result[KT_MOST];
    for (size_t i = 3; i < SHAPES; i += 3) {
        case_seed(i);
        layer l = layer_make(&shapes[i]);
        kt_case c = forward_case(&l);
        device_case d = on_device(&c, XPH_F32, l.rows);
        device_run(&d, all);
        c.tensors[SAVED].role = c.tensors[STATE_OUT].role = KT_IN;
        device_run(&d, result);
        case_same("y", result[Y], all[Y], l.rows * l.span);
        case_release();
    }
}

/* ---- masks ---- */

/* How biases mask keys: so that every frame has one left; all by the lowest float; the nearest, or all, by -infinity. */
enum { MASK_SOME, MASK_FINITE, MASK_NEAREST, MASK_ALL, MASKS };

static const shape masked_shapes[] = {{1, 1, 2, 8, 16, 9, 0, 0},      {2, 40, 2, 8, 16, 7, 9, 0},
                                      {1, 130, 1, 20, 70, 70, 50, 3}, {1, 70, 1, 128, 64, -1, 0, 0},
                                      {2, 33, 1, 40, 3, 2, 4, 0},     {1, 9, 1, 300, 12, 4, 0, 0},
                                      {3, 1, 1, 16, 1, -1, 0, 0},     {1, 200, 2, 64, 33, 33, 17, 1}};
enum { MASKED_SHAPES = sizeof masked_shapes / sizeof *masked_shapes };

static layer masked_layer(const shape *s, int how)
{
    static const double masks[] = {-INFINITY, (double)-FLT_MAX, -3e38, -2.4e38, -2.3e38, -1e36, -1e31, -1e10};
    layer l = layer_make(s);
    for (int64_t i = 0; i < s->heads * s->window; i++) {
        const int64_t distance = i % s->window;
        if (how == MASK_SOME && distance && case_below(3))
            l.bias[i] = masks[case_below(sizeof masks / sizeof *masks)];
        if (how == MASK_FINITE) l.bias[i] = (double)-FLT_MAX;
        if (how == MASK_ALL || (how == MASK_NEAREST && distance < 3)) l.bias[i] = -INFINITY;
    }
    return l;
}

/* What has no softmax is NaN, as in the formula; log-sum-exps of it, and of what only the lowest float masks, are left out. */
static void masked_forward(const shape *s, int how, xph_type type, int32_t math)
{
    case_seed(11);
    layer l = masked_layer(s, how);
    kt_case c = forward_case(&l);
    KT_ARGS(&c, xph_attention_args)->math = math;
    device_case d = on_device(&c, type, l.rows);
    if (math) d.tolerance = 2e-3, d.candidates_differ = true;
    if (how != MASK_SOME) c.tensors[SAVED].role = KT_IN;
    if (how < MASK_NEAREST) {
        device_check(&d);
        return;
    }
    double *want[KT_MOST], *got[KT_MOST];
    kt_reference(&c, want);
    for (const xph_cuda_candidate *k = xph_cuda_attention; k->name; k++) {
        const xph_cuda_candidate alone[] = {*k, {0}};
        const bool step = strcmp(k->name, "attention_step") == 0, few = step || strstr(k->name, "plain");
        if (!few || (step && s->time > 1)) continue;
        d.list = alone;
        device_run(&d, got);
        for (int64_t i = 0; i < l.rows * l.span; i++)
            if (isnan(got[Y][i]) != isnan(want[Y][i])) fail_msg("%s: y[%lld]", k->name, (long long)i);
    }
    d.list = xph_cuda_attention;
    device_run(&d, got);
    for (int64_t i = 0; i < l.rows * l.span; i++) {
        assert_int_equal(isnan(got[Y][i]), isnan(want[Y][i]));
        if (isnan(want[Y][i])) got[Y][i] = want[Y][i] = 0.0;
    }
    case_close("y", got[Y], want[Y], l.rows * l.span, fmax(d.tolerance, 5 * device_tolerance(type)));
}

static void masks_are_those_of_the_formula(void **state)
{
    for (int how = 0; how < MASKS; how++)
        for (size_t i = 0; i < MASKED_SHAPES; i++) {
            for (int t = 0; t < DEVICE_TYPES; t++) {
                masked_forward(&masked_shapes[i], how, device_types[t], XPH_MATH_F32);
                case_release();
            }
            masked_forward(&masked_shapes[i], how, XPH_F32, XPH_MATH_TF32);
            case_release();
        }
}

/* ---- frame by frame ---- */

static void in_place(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_attention_args *args = given;
    args->state_in = args->state_out;
}

static layer frames_of(const layer *all, int64_t row, int64_t frames)
{
    layer some = *all;
    some.s.batch = 1;
    some.s.time = some.rows = frames;
    some.qkv += row * 3 * all->span;
    if (some.reset) some.reset += row;
    return some;
}

/* Stream b of all in pieces of so many frames, its state in place. */
static void one_stream(const layer *all, xph_type type, int64_t b, int64_t frames, double *const *together)
{
    double *carried = kt_copy(all->in ? all->in + b * all->state : case_zeros(all->state), all->state);
    for (int64_t t = 0; t < all->s.time; t += frames) {
        double *result[KT_MOST];
        int64_t row = b * all->s.time + t, left = all->s.time - t;
        layer some = frames_of(all, row, left < frames ? left : frames);
        kt_case c = forward_case(&some);
        c.tensors[STATE_OUT].role = KT_ADD;
        c.tensors[STATE_OUT].x = carried;
        c.count = STATE_IN;
        c.prepare = in_place;
        device_case d = on_device(&c, type, some.rows);
        device_run(&d, result);
        case_same("y of a piece", result[Y], together[Y] + row * all->span, some.rows * all->span);
        case_same("saved of a piece", result[SAVED], together[SAVED] + row * all->s.heads,
                  some.rows * all->s.heads);
        carried = result[STATE_OUT];
    }
    case_same("state", carried, together[STATE_OUT] + b * all->state, all->state);
}

static void frames_have_the_bits_of_a_chunk(void **state)
{
    for (size_t i = 0; i < SHAPES; i++) {
        double *together[KT_MOST];
        case_seed(i);
        layer all = layer_make(&shapes[i]);
        kt_case c = forward_case(&all);
        device_case d = on_device(&c, XPH_F32, all.rows);
        device_run(&d, together);
        for (int64_t b = 0; b < all.s.batch; b++)
            for (int64_t frames = 1; frames < 40; frames += 18)
                one_stream(&all, XPH_F32, b, frames, together);
        case_release();
    }
}

static int32_t lagging; /* for the next call */

static void set_lagging(const kt_case *c, const xph_kernel_set *set, void *given)
{
    ((xph_attention_args *)given)->lagging = lagging;
}

/* Single frames between two states, the older of which lags one frame behind: the bits of whole copies. */
static void lagging_states_are_whole(void **state)
{
    static const shape list[] = {{2, 1, 2, 6, 5, 2, 0, 3},
                                 {1, 1, 1, 3, 1, 0, 0, 0},
                                 {2, 1, 1, 4, 2, 2, 0, 0},
                                 {1, 1, 2, 1030, 3, 3, 0, 1}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        case_seed(i);
        layer l = layer_make(&list[i]);
        int64_t numbers = l.s.batch * l.state;
        double *now = l.in, *other = case_random(numbers, 0, 1);
        for (int t = 0; t < 20; t++) {
            double *whole[KT_MOST], *lag[KT_MOST];
            l.qkv = case_random(l.rows * 3 * l.span, -1.5, 1.5);
            l.reset = kt_resets(l.rows, 7);
            l.in = now;
            kt_case c = forward_case(&l);
            device_case d = on_device(&c, XPH_F32, l.rows);
            device_run(&d, whole);
            c.tensors[STATE_OUT].role = KT_ADD;
            c.tensors[STATE_OUT].x = other;
            c.prepare = set_lagging;
            lagging = t > 0;
            device_run(&d, lag);
            case_same("y", lag[Y], whole[Y], l.rows * l.span);
            case_same("state", lag[STATE_OUT], whole[STATE_OUT], numbers);
            other = now;
            now = lag[STATE_OUT];
        }
        case_release();
    }
}

/* ---- gradient ---- */

/* own: forward ran on the device too; of floats alone. */
static void gradient_of(layer l, xph_type type, int32_t math, double tolerance, bool own)
{
    const shape *s = &l.s;
    double *results[KT_MOST], *dbias = case_random(s->heads * s->window, -1, 1);
    kt_case f = forward_case(&l);
    kt_reference(&f, results);
    kt_tensor tensors[] = {
        KT_FIELD(xph_attention_grad_args, fwd.qkv, fwd.ldqkv, l.rows, 3 * l.span, KT_IN, l.qkv, NULL),
        KT_FLAT(xph_attention_grad_args, fwd.bias, s->heads, s->window, KT_IN, l.bias, NULL),
        KT_FIELD(xph_attention_grad_args, fwd.y, fwd.ldy, l.rows, l.span, KT_IN, results[Y], NULL),
        KT_FLAT(xph_attention_grad_args, fwd.saved, l.rows, s->heads, KT_IN, results[SAVED], NULL),
        KT_FIELD(xph_attention_grad_args, fwd.state_in, fwd.ld_state, s->batch, l.state, KT_IN, l.in, NULL),
        KT_FIELD(xph_attention_grad_args, dy, lddy, l.rows, l.span, KT_IN, l.dy, NULL),
        KT_FIELD(xph_attention_grad_args, dqkv, lddqkv, l.rows, 3 * l.span, KT_OUT, NULL, NULL),
        KT_FLAT(xph_attention_grad_args, dbias, s->heads, s->window, KT_ADD, dbias, NULL),
    };
    xph_attention_grad_args args = {.fwd = args_of(&l)};
    args.fwd.math = math;
    kt_case c = KT_CASE("attention_grad", XPH_OP_ATTENTION_GRAD, args,
                        offsetof(xph_attention_grad_args, scratch), tensors, s->pad);
    device_case d = device_case_of(&c, xph_cuda_attention_grad, type);
    if (own) {
        double *want[KT_MOST], *device[KT_MOST];
        kt_reference(&c, want);
        for (int i = 0; i < c.count; i++) c.tensors[i].want = want[i];
        d.wanted = true;
        const device_case forward = on_device(&f, type, l.rows);
        device_run(&forward, device);
        c.tensors[2].x = device[Y], c.tensors[3].x = device[SAVED];
    }
    d.tolerance = tolerance;
    d.reset_at = offsetof(xph_attention_grad_args, fwd.reset);
    d.rows = l.rows;
    d.candidates_differ = type != XPH_F32 || math != XPH_MATH_F32;
    device_check(&d);
    case_release();
}

static void gradient(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * SHAPES; i++) {
        xph_type type = device_types[i % DEVICE_TYPES];
        case_seed(50 + i / DEVICE_TYPES);
        gradient_of(layer_make(&shapes[i / DEVICE_TYPES]), type, XPH_MATH_F32, device_tolerance(type), false);
    }
}

static void gradient_on_matrix_units(void **state)
{
    for (size_t i = 0; i < SHAPES; i++) {
        case_seed(50 + i);
        gradient_of(layer_make(&shapes[i]), XPH_F32, XPH_MATH_TF32, 5e-3, false);
    }
}

/* What is masked takes no part; where the lowest float masks all that a frame sees, each key counts as 1, as on the CPU. */
static void gradient_under_masks(void **state)
{
    for (int how = MASK_SOME; how <= MASK_FINITE; how++)
        for (size_t i = 0; i < (DEVICE_TYPES + 2) * MASKED_SHAPES; i++) {
            const size_t way = i % (DEVICE_TYPES + 2);
            const xph_type type = way < DEVICE_TYPES ? device_types[way] : XPH_F32;
            const bool tf32 = way == DEVICE_TYPES, own = way > DEVICE_TYPES;
            case_seed(12);
            gradient_of(masked_layer(&masked_shapes[i / (DEVICE_TYPES + 2)], how), type,
                        tf32 ? XPH_MATH_TF32 : XPH_MATH_F32, tf32 ? 2e-2 : device_tolerance(type), own);
        }
}

/* ---- what is wrong ---- */

/* What must not be seen (before a reset, beyond the window, empty slots) may hold anything; what is seen shows. */
static void hidden_frames_do_not_leak(void **state)
{
    static const shape s = {1, 50, 1, 6, 12, 5, 0, 0};
    for (const xph_cuda_candidate *k = xph_cuda_attention; k->name; k++) {
        double *result[KT_MOST];
        case_seed(6);
        layer l = layer_make(&s);
        int64_t next = (int64_t)l.in[l.state - 2];
        for (int64_t j = -s.window; j < -s.ring; j++) {
            int64_t slot = (next + j + 2 * s.window) % s.window;
            for (int64_t d = 0; d < s.dim; d++) l.in[slot * s.dim + d] = NAN;
            for (int64_t d = 0; d < s.dim; d++) l.in[(s.window + slot) * s.dim + d] = INFINITY;
        }
        l.reset = case_alloc((size_t)s.time);
        for (int64_t t = 0; t < s.time; t++) l.reset[t] = t == 30;
        for (int64_t d = 0; d < 3 * s.dim; d++) l.qkv[2 * 3 * s.dim + d] = d % 2 ? NAN : INFINITY;
        for (int64_t d = 0; d < 3 * s.dim; d++) l.qkv[29 * 3 * s.dim + d] = d % 2 ? NAN : INFINITY;
        kt_case c = forward_case(&l);
        device_case d = on_device(&c, XPH_F32, l.rows);
        d.list = k;
        if (strcmp(k->name, "attention_step") == 0) continue;
        device_run(&d, result);
        for (int64_t i = 0; i < s.time * s.dim; i++) {
            int64_t t = i / s.dim;
            assert_int_equal(!isfinite(result[Y][i]), (t >= 2 && t < 14) || t == 29);
        }
        case_release();
    }
}

/* A hidden value alone, in a tile that other frames see. */
static void hidden_values_do_not_leak(void **state)
{
    static const shape s = {1, 60, 1, 16, 20, -1, 0, 0};
    double *result[KT_MOST];
    case_seed(7);
    layer l = layer_make(&s);
    l.qkv[10 * 3 * s.dim + 2 * s.dim + 3] = NAN;
    kt_case c = forward_case(&l);
    device_case d = on_device(&c, XPH_F32, l.rows);
    device_run(&d, result);
    for (int64_t t = 0; t < s.time; t++)
        assert_int_equal(kt_any_bad(result[Y] + t * s.dim, s.dim), t >= 10 && t < 30);
    case_release();
}

/* Counters that point out of the ring are taken for an empty one. */
static void broken_counters_stay_inside(void **state)
{
    static const double counters[][2] = {{-1, 3}, {1e9, 3}, {2, 1e30}, {2, -5}, {NAN, NAN}, {2.5, 3.5}};
    for (size_t i = 0; i < 2 * sizeof counters / sizeof *counters; i++) {
        const shape s = {1, i % 2 ? 3 : 1, 1, 4, 7, 3, 0, 0};
        double *result[KT_MOST];
        case_seed(i);
        layer l = layer_make(&s);
        memcpy(l.in + l.state - 2, counters[i / 2], sizeof *counters);
        kt_case c = forward_case(&l);
        device_case d = on_device(&c, XPH_F32, l.rows);
        device_run(&d, result);
        assert_false(kt_any_bad(result[Y], l.rows * l.span));
        case_release();
    }
}

/* A frame's only key, or the nearest of two, may have a product below any mask. */
static void products_below_all_masks(void **state)
{
    for (int frames = 1; frames < 3; frames++)
        for (const xph_cuda_candidate *k = xph_cuda_attention; k->name; k++) {
            const shape s = {1, frames, 1, 4, 2, -1, 0, 0};
            const xph_cuda_candidate alone[] = {*k, {0}};
            if (strcmp(k->name, "attention_plain") &&
                strcmp(k->name, frames > 1 ? "attention_tile" : "attention_step"))
                continue;
            double *got[KT_MOST];
            case_seed(13);
            layer l = layer_make(&s);
            for (int64_t d = 0; d < s.dim; d++) {
                l.qkv[d] = l.qkv[3 * l.span * (frames - 1) + d] = 1.0;
                l.qkv[l.span + d] = d ? 0.0 : -3e38;
            }
            kt_case c = forward_case(&l);
            device_case d = on_device(&c, XPH_F32, l.rows);
            d.list = alone;
            device_run(&d, got);
            case_close("y", got[Y], l.qkv + 2 * l.span, l.span, 1e-6);
            if (frames > 1) case_close("y of both", got[Y] + l.span, l.qkv + 5 * l.span, l.span, 1e-6);
            case_release();
        }
}

/* Scores far apart: the largest decides, nothing overflows. */
static void large_scores(void **state)
{
    static const shape s = {1, 70, 1, 4, 70, -1, 0, 0};
    case_seed(8);
    layer l = layer_make(&s);
    for (int64_t i = 0; i < l.rows * 3 * l.span; i++)
        if (i % (3 * s.dim) < 2 * s.dim) l.qkv[i] *= 20;
    for (int64_t i = 0; i < s.window; i++) l.bias[i] *= 100;
    kt_case c = forward_case(&l);
    device_case d = on_device(&c, XPH_F32, l.rows);
    d.tolerance = 1e-4; /* scores near 500 are exact to 3e-5 */
    device_check(&d);
    case_release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward),
                                       cmocka_unit_test(forward_on_matrix_units),
                                       cmocka_unit_test(what_is_not_asked_for),
                                       cmocka_unit_test(frames_have_the_bits_of_a_chunk),
                                       cmocka_unit_test(lagging_states_are_whole),
                                       cmocka_unit_test(gradient),
                                       cmocka_unit_test(gradient_on_matrix_units),
                                       cmocka_unit_test(masks_are_those_of_the_formula),
                                       cmocka_unit_test(gradient_under_masks),
                                       cmocka_unit_test(hidden_frames_do_not_leak),
                                       cmocka_unit_test(hidden_values_do_not_leak),
                                       cmocka_unit_test(broken_counters_stay_inside),
                                       cmocka_unit_test(products_below_all_masks),
                                       cmocka_unit_test(large_scores)};
    return cmocka_run_group_tests_name("cuda_attention", tests, NULL, NULL);
}
