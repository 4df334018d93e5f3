/* The CUDA kernels of the causal convolution on the emulated GPU: against the CPU's in double, frames against chunks,
 * resets, carried state, all numbers of taps, more frames than a span. */
#include "conv_case.h"
#include "device_case.h"

#include <math.h>
#include <string.h>

static const conv_shape shapes[] = {
    {1, 1, 1, 1, 0, false, 0},  {1, 1, 1, 4, 0, true, 0},     {2, 5, 3, 4, 1, true, 3},
    {0, 4, 5, 4, 0, true, 0},   {2, 0, 5, 4, 1, true, 2},     {3, 7, 67, 4, 2, true, 4},
    {1, 2, 130, 4, 0, true, 0}, {2, 11, 16, 3, 0, false, 2},  {2, 9, 65, 2, 3, true, 1},
    {1, 40, 5, 7, 1, true, 9},  {2, 3, 4, 9, 0, true, 0},     {1, 6, 33, 16, 0, true, 4},
    {2, 3, 5, 1, 2, true, 2},   {1, 131, 34, 4, 0, true, 0},  {2, 140, 7, 8, 1, true, 50},
    {2, 1, 129, 5, 2, true, 2}, {1, 129, 3, 4, 0, false, 64}, {3, 1, 516, 4, 4, true, 2},
    {2, 1, 32, 3, 0, true, 0},  {4, 1, 20, 2, 4, false, 2},   {1, 3, 8, 1, 0, true, 2},
    {2, 1, 30, 4, 0, true, 2},  {2, 1, 64, 16, 0, true, 0},
};

static device_case on_device(const kt_case *c, xph_type type, int64_t rows)
{
    device_case d = device_case_of(c, xph_cuda_conv, type);
    d.reset_at = offsetof(xph_conv_args, reset);
    d.rows = rows;
    return d;
}

static void forward(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        case_seed(i / DEVICE_TYPES);
        conv_layer l = conv_layer_make(&shapes[i / DEVICE_TYPES]);
        kt_case c = conv_case(&l);
        device_case d = on_device(&c, device_types[i % DEVICE_TYPES], l.rows);
        device_check(&d);
        case_release();
    }
}

/* `frames` frames of stream b from t on, the state in place. */
static double *some_frames(const conv_layer *all, xph_type type, int64_t b, int64_t t, int64_t frames,
                           double *carried, double *const *together)
{
    double *result[KT_MOST];
    int64_t row = b * all->s.time + t;
    conv_layer some = conv_frames_of(all, row, frames);
    kt_case c = conv_case_carried(&some, carried);
    device_case d = on_device(&c, type, frames);
    device_run(&d, result);
    case_same("frames", result[CONV_Y], together[CONV_Y] + row * all->s.width, frames * all->s.width);
    return result[CONV_STATE];
}

static void chunks_have_the_bits_of_one(const conv_shape *s, xph_type type, int64_t most)
{
    double *together[KT_MOST];
    conv_layer all = conv_layer_make(s);
    kt_case c = conv_case(&all);
    device_case d = on_device(&c, type, all.rows);
    device_run(&d, together);
    for (int64_t b = 0; b < s->batch; b++) {
        double *carried = kt_copy(all.in ? all.in + b * all.state : case_zeros(all.state), all.state);
        for (int64_t t = 0; t < s->time; t += most) {
            int64_t frames = t + most < s->time ? most : s->time - t;
            carried = some_frames(&all, type, b, t, frames, carried, together);
        }
        case_same("state", carried, together[CONV_STATE] + b * all.state, all.state);
    }
    case_release();
}

static void frames_have_the_bits_of_a_chunk(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int64_t most = 1; most < 128; most *= 101) {
            case_seed(i);
            chunks_have_the_bits_of_one(&shapes[i], XPH_F32, most);
            case_seed(i);
            chunks_have_the_bits_of_one(&shapes[i], XPH_BF16, most);
        }
    }
}

/* Nothing is carried in or out: the same bits. */
static void without_states(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double *with[KT_MOST], *without[KT_MOST];
        if (shapes[i].carried) continue;
        case_seed(i);
        conv_layer l = conv_layer_make(&shapes[i]);
        kt_case c = conv_case(&l);
        device_case d = on_device(&c, XPH_F32, l.rows);
        device_run(&d, with);
        c.count = CONV_STATE;
        d = on_device(&c, XPH_F32, l.rows);
        device_run(&d, without);
        case_same("y", without[CONV_Y], with[CONV_Y], l.rows * l.s.width);
        case_release();
    }
}

static void gradient_shape(const conv_shape *s, xph_type type)
{
    conv_layer l = conv_layer_make(s);
    double *dw = case_random(s->width * s->taps, -1, 1), *dbias = case_random(s->width, -1, 1);
    const kt_case c = conv_gradient_case(&l, dw, dbias);
    device_case d = device_case_of(&c, xph_cuda_conv_grad, type);
    d.reset_at = offsetof(xph_conv_grad_args, fwd.reset);
    d.rows = l.rows;
    device_check(&d);
    d.columns_at = offsetof(xph_conv_grad_args, dx_sum);
    d.columns_of = CONV_DX;
    device_check(&d);
    case_release();
}

static void gradient(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        case_seed(50 + i / DEVICE_TYPES);
        gradient_shape(&shapes[i / DEVICE_TYPES], device_types[i % DEVICE_TYPES]);
    }
    case_seed(90);
    gradient_shape(&(conv_shape){19, 4, 9, 4, 0, true, 3}, XPH_F32);
}

/* ---- two channels a thread ---- */

/* Frames in multiples of those that are read at once and not, streams without resets, with some and with many, widths that
 * fill a block and do not. */
static const conv_shape even[] = {
    {3, 60, 6, 4, 0, false, 0},   {2, 60, 4, 4, 2, true, 25},   {2, 67, 2, 3, 4, true, 13},
    {2, 29, 8, 2, 0, false, 3},   {1, 24, 258, 4, 0, false, 9}, {1, 33, 6, 1, 2, true, 5},
    {1, 131, 10, 4, 6, true, 40}, {2, 9, 4, 4, 0, true, 0},     {1, 16, 4, 4, 0, true, 16},
};

static void same_results(const kt_case *c, double *const *a, double *const *b)
{
    for (int i = 0; i < c->count; i++)
        if (a[i]) case_same(c->tensors[i].name, a[i], b[i], c->tensors[i].rows * c->tensors[i].width);
}

/* Rows that lie an odd number apart have no pairs, nor has what begins between two: the bits are the same. */
static void check_pairs(device_case *d, kt_case *c)
{
    double *pairs[KT_MOST], *alone[KT_MOST];
    d->align = 16;
    device_check(d);
    device_run(d, pairs);
    for (d->astray = 1; d->astray <= c->count; d->astray++) {
        device_run(d, alone);
        same_results(c, pairs, alone);
    }
    d->astray = 0;
    c->pad++;
    device_run(d, alone);
    same_results(c, pairs, alone);
}

static void pairs_have_the_bits_of_channels(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof even / sizeof *even; i++) {
        const conv_shape *s = &even[i / DEVICE_TYPES];
        case_seed(200 + i / DEVICE_TYPES);
        conv_layer l = conv_layer_make(s);
        kt_case c = conv_case(&l);
        device_case d = on_device(&c, device_types[i % DEVICE_TYPES], l.rows);
        check_pairs(&d, &c);
        double *dw = case_random(s->width * s->taps, -1, 1), *dbias = case_random(s->width, -1, 1);
        kt_case back = conv_gradient_case(&l, dw, dbias);
        d = device_case_of(&back, xph_cuda_conv_grad, device_types[i % DEVICE_TYPES]);
        d.reset_at = offsetof(xph_conv_grad_args, fwd.reset);
        d.rows = l.rows;
        d.columns_at = offsetof(xph_conv_grad_args, dx_sum);
        d.columns_of = CONV_DX;
        check_pairs(&d, &back);
        case_release();
    }
}

static double *dx_of(const conv_layer *l, xph_type type)
{
    double *result[KT_MOST];
    double *dw = case_zeros(l->s.width * l->s.taps), *dbias = case_zeros(l->s.width);
    const kt_case c = conv_gradient_case(l, dw, dbias);
    device_case d = device_case_of(&c, xph_cuda_conv_grad, type);
    d.reset_at = offsetof(xph_conv_grad_args, fwd.reset);
    d.rows = l->rows;
    d.align = 16;
    device_run(&d, result);
    return result[CONV_DX];
}

/* Wherever a reset lies, frames that it does not reach have the bits that they have without it, so that it does not matter
 * which of them were walked through together. */
static void a_reset_reaches_as_many_frames_as_taps(void **state)
{
    const conv_shape s = {1, 45, 4, 4, 0, true, 0};
    for (int64_t r = 0; r < s.time; r++) {
        case_seed(300);
        conv_layer l = conv_layer_make(&s);
        uint8_t *reset = case_alloc((size_t)s.time);
        const double *without = dx_of(&l, XPH_BF16), *with;
        memset(reset, 0, (size_t)s.time);
        reset[r] = 1;
        l.reset = reset;
        with = dx_of(&l, XPH_BF16);
        for (int64_t t = 0; t < s.time; t++) {
            const bool reached = t > r - s.taps && t < r + s.taps - 1;
            const double *a = with + t * s.width, *b = without + t * s.width;
            if (!reached) case_same("dx", a, b, s.width);
            if (t == r - 1) assert_memory_not_equal(a, b, (size_t)s.width * sizeof *a);
        }
        case_release();
    }
}

/* A bad input is seen for `taps` frames, then gone; a large one does not overflow. */
static void bad_numbers(void **state)
{
    for (int64_t taps = 4; taps <= 6; taps += 2) {
        const conv_shape s = {1, 12, 20, taps, 0, false, 0};
        double *result[KT_MOST];
        case_seed(9);
        conv_layer l = conv_layer_make(&s);
        l.x[2 * s.width + 7] = NAN;
        for (int64_t t = 0; t < s.time; t++) l.x[t * s.width + 3] = -1e4;
        kt_case c = conv_case(&l);
        device_case d = on_device(&c, XPH_F32, l.rows);
        device_run(&d, result);
        for (int64_t i = 0; i < s.time * s.width; i++) {
            int64_t t = i / s.width, channel = i % s.width;
            assert_int_equal(isfinite(result[CONV_Y][i]) == 0, channel == 7 && t >= 2 && t < 2 + taps);
        }
        case_release();
    }
}

static void too_many_taps_are_not_accepted(void **state)
{
    const xph_conv_grad_args args = {.fwd = {.batch = 1, .time = 1, .width = 1, .taps = 17}};
    const xph_conv_grad_args wide = {.fwd = {.type = XPH_F64, .batch = 1, .time = 1, .width = 1, .taps = 4}};
    assert_false(xph_cuda_conv->accepts(&args.fwd));
    assert_false(xph_cuda_conv->accepts(&wide.fwd));
    assert_false(xph_cuda_conv_grad->accepts(&args));
    assert_false(xph_cuda_conv_grad->accepts(&wide));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward),
                                       cmocka_unit_test(frames_have_the_bits_of_a_chunk),
                                       cmocka_unit_test(without_states),
                                       cmocka_unit_test(gradient),
                                       cmocka_unit_test(bad_numbers),
                                       cmocka_unit_test(pairs_have_the_bits_of_channels),
                                       cmocka_unit_test(a_reset_reaches_as_many_frames_as_taps),
                                       cmocka_unit_test(too_many_taps_are_not_accepted)};
    return cmocka_run_group_tests_name("cuda_conv", tests, NULL, NULL);
}
