/* The CUDA kernels of the causal convolution on the emulated GPU: against the CPU's in double, frames against chunks,
 * resets, carried state, all numbers of taps, more frames than a span. */
#include "device_case.h"

#include <math.h>
#include <string.h>

typedef struct shape {
    int64_t batch, time, width, taps, pad;
    bool carried;
    int64_t resets; /* one frame in so many; 0: none */
} shape;

static const shape shapes[] = {
    {1, 1, 1, 1, 0, false, 0},  {1, 1, 1, 4, 0, true, 0},     {2, 5, 3, 4, 1, true, 3},
    {0, 4, 5, 4, 0, true, 0},   {2, 0, 5, 4, 1, true, 2},     {3, 7, 67, 4, 2, true, 4},
    {1, 2, 130, 4, 0, true, 0}, {2, 11, 16, 3, 0, false, 2},  {2, 9, 65, 2, 3, true, 1},
    {1, 40, 5, 7, 1, true, 9},  {2, 3, 4, 9, 0, true, 0},     {1, 6, 33, 16, 0, true, 4},
    {2, 3, 5, 1, 2, true, 2},   {1, 131, 34, 4, 0, true, 0},  {2, 140, 7, 8, 1, true, 50},
    {2, 1, 129, 5, 2, true, 2}, {1, 129, 3, 4, 0, false, 64},
};

typedef struct layer {
    shape s;
    int64_t rows, state; /* elements of one state */
    double *x, *w, *bias, *in, *dy, *dout;
    uint8_t *reset;
} layer;

static layer layer_make(const shape *s)
{
    layer l = {.s = *s, .rows = s->batch * s->time, .state = (s->taps - 1) * s->width};
    l.x = case_random(l.rows * s->width, -2, 2);
    l.w = case_random(s->width * s->taps, -1, 1);
    l.bias = case_random(s->width, -1, 1);
    l.dy = case_random(l.rows * s->width, -1, 1);
    l.in = s->carried ? case_random(s->batch * l.state, -2, 2) : NULL;
    l.dout = s->carried ? case_random(s->batch * l.state, -1, 1) : NULL;
    l.reset = kt_resets(l.rows, s->resets);
    return l;
}

enum { Y = 3, STATE_OUT = 4 }; /* places in the table below */

static kt_case forward_case(const layer *l, kt_tensor tensors[KT_MOST], xph_conv_args *args)
{
    const shape *s = &l->s;
    const kt_tensor list[] = {
        KT_FIELD(xph_conv_args, x, ldx, l->rows, s->width, KT_IN, l->x, NULL),
        KT_FLAT(xph_conv_args, w, s->width, s->taps, KT_IN, l->w, NULL),
        KT_FLAT(xph_conv_args, bias, 1, s->width, KT_IN, l->bias, NULL),
        KT_FIELD(xph_conv_args, y, ldy, l->rows, s->width, KT_OUT, NULL, NULL),
        KT_FIELD(xph_conv_args, state_out, ld_state, s->batch, l->state, KT_OUT, NULL, NULL),
        KT_FIELD(xph_conv_args, state_in, ld_state, s->batch, l->state, KT_IN, l->in, NULL),
    };
    memcpy(tensors, list, sizeof list);
    *args = (xph_conv_args){
        .batch = s->batch, .time = s->time, .width = s->width, .taps = s->taps, .reset = l->reset};
    return (kt_case){.name = "conv",
                     .op = XPH_OP_CONV,
                     .args = args,
                     .args_bytes = sizeof *args,
                     .scratch_at = KT_DENSE,
                     .tensors = tensors,
                     .count = 6,
                     .pad = s->pad};
}

static device_case on_device(const kt_case *c, xph_type type, int64_t rows)
{
    return (device_case){c,    xph_cuda_conv, type, device_tolerance(type), offsetof(xph_conv_args, reset),
                         rows, false};
}

static void forward(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        kt_tensor tensors[KT_MOST];
        xph_conv_args args;
        case_seed(i / DEVICE_TYPES);
        layer l = layer_make(&shapes[i / DEVICE_TYPES]);
        kt_case c = forward_case(&l, tensors, &args);
        device_case d = on_device(&c, device_types[i % DEVICE_TYPES], l.rows);
        device_check(&d, NULL);
        case_release();
    }
}

static void in_place(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_conv_args *args = given;
    args->state_in = args->state_out;
}

/* `frames` frames of stream b from t on, the state in place. */
static double *some_frames(const layer *all, xph_type type, int64_t b, int64_t t, int64_t frames,
                           double *carried, double *const *together)
{
    double *result[KT_MOST];
    kt_tensor tensors[KT_MOST];
    xph_conv_args args;
    int64_t row = b * all->s.time + t;
    layer some = *all;
    some.s.batch = 1;
    some.s.time = some.rows = frames;
    some.x += row * all->s.width;
    if (some.reset) some.reset += row;
    kt_case c = forward_case(&some, tensors, &args);
    tensors[STATE_OUT].role = KT_ADD;
    tensors[STATE_OUT].x = carried;
    c.count = STATE_OUT + 1;
    c.prepare = in_place;
    device_case d = on_device(&c, type, frames);
    device_run(&d, result);
    case_same("frames", result[Y], together[Y] + row * all->s.width, frames * all->s.width);
    return result[STATE_OUT];
}

static void chunks_have_the_bits_of_one(const shape *s, xph_type type, int64_t most)
{
    double *together[KT_MOST];
    kt_tensor tensors[KT_MOST];
    xph_conv_args args;
    layer all = layer_make(s);
    kt_case c = forward_case(&all, tensors, &args);
    device_case d = on_device(&c, type, all.rows);
    device_run(&d, together);
    for (int64_t b = 0; b < s->batch; b++) {
        double *carried = kt_copy(all.in ? all.in + b * all.state : case_zeros(all.state), all.state);
        for (int64_t t = 0; t < s->time; t += most) {
            int64_t frames = t + most < s->time ? most : s->time - t;
            carried = some_frames(&all, type, b, t, frames, carried, together);
        }
        case_same("state", carried, together[STATE_OUT] + b * all.state, all.state);
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

static void gradient_shape(const shape *s, xph_type type)
{
    layer l = layer_make(s);
    int64_t rows = l.rows, weights = s->width * s->taps;
    double *dw = case_random(weights, -1, 1), *dbias = case_random(s->width, -1, 1);
    const kt_tensor tensors[] = {
        KT_FIELD(xph_conv_grad_args, fwd.x, fwd.ldx, rows, s->width, KT_IN, l.x, NULL),
        KT_FLAT(xph_conv_grad_args, fwd.w, s->width, s->taps, KT_IN, l.w, NULL),
        KT_FLAT(xph_conv_grad_args, fwd.bias, 1, s->width, KT_IN, l.bias, NULL),
        KT_FIELD(xph_conv_grad_args, fwd.state_in, fwd.ld_state, s->batch, l.state, KT_IN, l.in, NULL),
        KT_FIELD(xph_conv_grad_args, dstate_out, fwd.ld_state, s->batch, l.state, KT_IN, l.dout, NULL),
        KT_FIELD(xph_conv_grad_args, dy, lddy, rows, s->width, KT_IN, l.dy, NULL),
        KT_FIELD(xph_conv_grad_args, dx, lddx, rows, s->width, KT_OUT, NULL, NULL),
        KT_FLAT(xph_conv_grad_args, dw, s->width, s->taps, KT_ADD, dw, NULL),
        KT_FLAT(xph_conv_grad_args, dbias, 1, s->width, KT_ADD, dbias, NULL),
        KT_FIELD(xph_conv_grad_args, dstate_in, fwd.ld_state, s->batch, l.state, KT_OUT, NULL, NULL),
    };
    const xph_conv_grad_args args = {
        .fwd = {.batch = s->batch, .time = s->time, .width = s->width, .taps = s->taps, .reset = l.reset}};
    /* Without a carried state nothing flows into one. */
    const kt_case c = {.name = "conv_grad",
                       .op = XPH_OP_CONV_GRAD,
                       .args = &args,
                       .args_bytes = sizeof args,
                       .scratch_at = offsetof(xph_conv_grad_args, scratch),
                       .tensors = tensors,
                       .count = l.in ? 10 : 9,
                       .pad = s->pad};
    const device_case d = {
        &c,   xph_cuda_conv_grad, type, device_tolerance(type), offsetof(xph_conv_grad_args, fwd.reset), rows,
        false};
    device_check(&d, NULL);
    case_release();
}

static void gradient(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        case_seed(50 + i / DEVICE_TYPES);
        gradient_shape(&shapes[i / DEVICE_TYPES], device_types[i % DEVICE_TYPES]);
    }
    case_seed(90);
    gradient_shape(&(shape){19, 4, 9, 4, 0, true, 3}, XPH_F32);
}

/* A bad input is seen for `taps` frames, then gone; a large one does not overflow. */
static void bad_numbers(void **state)
{
    for (int64_t taps = 4; taps <= 6; taps += 2) {
        const shape s = {1, 12, 20, taps, 0, false, 0};
        double *result[KT_MOST];
        kt_tensor tensors[KT_MOST];
        xph_conv_args args;
        case_seed(9);
        layer l = layer_make(&s);
        l.x[2 * s.width + 7] = NAN;
        for (int64_t t = 0; t < s.time; t++) l.x[t * s.width + 3] = -1e4;
        kt_case c = forward_case(&l, tensors, &args);
        device_case d = on_device(&c, XPH_F32, l.rows);
        device_run(&d, result);
        for (int64_t i = 0; i < s.time * s.width; i++) {
            int64_t t = i / s.width, channel = i % s.width;
            assert_int_equal(isfinite(result[Y][i]) == 0, channel == 7 && t >= 2 && t < 2 + taps);
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
                                       cmocka_unit_test(gradient), cmocka_unit_test(bad_numbers),
                                       cmocka_unit_test(too_many_taps_are_not_accepted)};
    return cmocka_run_group_tests_name("cuda_conv", tests, NULL, NULL);
}
