/* The CUDA kernels of LayerNorm on the emulated GPU: against the CPU's in double, with and without SiLU, rows that
 * registers hold and wider ones, more rows than warps. */
#include "device_case.h"

#include <math.h>
#include <string.h>

typedef struct shape {
    int64_t rows, width, pad;
    int32_t act;
} shape;

static const shape shapes[] = {
    {1, 1, 0, XPH_ACT_NONE},     {0, 7, 0, XPH_ACT_SILU},    {3, 2, 1, XPH_ACT_SILU},
    {5, 31, 2, XPH_ACT_NONE},    {4, 32, 0, XPH_ACT_SILU},   {7, 33, 3, XPH_ACT_SILU},
    {9, 287, 1, XPH_ACT_SILU},   {40, 129, 0, XPH_ACT_NONE}, {17, 256, 0, XPH_ACT_NONE},
    {3, 513, 1, XPH_ACT_SILU},   {2, 1024, 0, XPH_ACT_NONE}, {11, 1500, 4, XPH_ACT_SILU},
    {2100, 17, 0, XPH_ACT_SILU},
};

typedef struct layer {
    shape s;
    double *x, *gain, *shift, *saved, *dy;
} layer;

static layer layer_make(const shape *s)
{
    layer l = {.s = *s};
    l.x = case_random(s->rows * s->width, -1, 4);
    l.gain = case_random(s->width, -2, 2);
    l.shift = case_random(s->width, -1, 1);
    l.dy = case_random(s->rows * s->width, -1, 1);
    return l;
}

enum { Y = 3, SAVED = 4 }; /* places in the table below */

static kt_case forward_case(const layer *l, kt_tensor tensors[KT_MOST], xph_norm_args *args)
{
    const shape *s = &l->s;
    const kt_tensor list[] = {
        KT_FIELD(xph_norm_args, x, ldx, s->rows, s->width, KT_IN, l->x, NULL),
        KT_FLAT(xph_norm_args, gain, 1, s->width, KT_IN, l->gain, NULL),
        KT_FLAT(xph_norm_args, shift, 1, s->width, KT_IN, l->shift, NULL),
        KT_FIELD(xph_norm_args, y, ldy, s->rows, s->width, KT_OUT, NULL, NULL),
        KT_FLAT(xph_norm_args, saved, s->rows, 2, KT_OUT, NULL, NULL),
    };
    memcpy(tensors, list, sizeof list);
    *args = (xph_norm_args){.act = s->act, .rows = s->rows, .width = s->width, .epsilon = 1e-5};
    return (kt_case){.name = "norm",
                     .op = XPH_OP_NORM,
                     .args = args,
                     .args_bytes = sizeof *args,
                     .scratch_at = KT_DENSE,
                     .tensors = tensors,
                     .count = 5,
                     .pad = s->pad};
}

static device_case on_device(const kt_case *c, const xph_cuda_candidate *list, xph_type type)
{
    return (device_case){c, list, type, device_tolerance(type), KT_DENSE, 0, false};
}

static void forward(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        kt_tensor tensors[KT_MOST];
        xph_norm_args args;
        case_seed(i / DEVICE_TYPES);
        layer l = layer_make(&shapes[i / DEVICE_TYPES]);
        kt_case c = forward_case(&l, tensors, &args);
        device_case d = on_device(&c, xph_cuda_norm, device_types[i % DEVICE_TYPES]);
        device_check(&d, NULL);
        case_release();
    }
}

/* Without saved the result is the same, and a row does not see its neighbours. */
static void rows_alone(void **state)
{
    const shape s = {11, 70, 0, XPH_ACT_SILU};
    double *together[KT_MOST], *result[KT_MOST];
    kt_tensor tensors[KT_MOST];
    xph_norm_args args;
    case_seed(3);
    layer all = layer_make(&s);
    kt_case c = forward_case(&all, tensors, &args);
    device_case d = on_device(&c, xph_cuda_norm, XPH_F32);
    device_run(&d, together);
    for (int64_t m = 0; m < s.rows; m++) {
        layer one = all;
        one.s.rows = 1;
        one.x = all.x + m * s.width;
        c = forward_case(&one, tensors, &args);
        c.count = SAVED;
        device_run(&d, result);
        case_same("row alone", result[Y], together[Y] + m * s.width, s.width);
    }
    case_release();
}

/* Means and deviations as forward saves them. */
static double *saved_of(const layer *l)
{
    double *result[KT_MOST];
    kt_tensor tensors[KT_MOST];
    xph_norm_args args;
    kt_case c = forward_case(l, tensors, &args);
    kt_reference(&c, result);
    return result[SAVED];
}

static void gradient_shape(const shape *s, xph_type type, bool dx_add)
{
    layer l = layer_make(s);
    int64_t rows = s->rows, width = s->width;
    double *gain = case_random(width, -1, 1), *shift = case_random(width, -1, 1);
    double *before_x = dx_add ? case_random(rows * width, -1, 1) : NULL;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_norm_grad_args, fwd.x, fwd.ldx, rows, width, KT_IN, l.x, NULL),
        KT_FLAT(xph_norm_grad_args, fwd.gain, 1, width, KT_IN, l.gain, NULL),
        KT_FLAT(xph_norm_grad_args, fwd.shift, 1, width, KT_IN, l.shift, NULL),
        KT_FLAT(xph_norm_grad_args, fwd.saved, rows, 2, KT_IN, saved_of(&l), NULL),
        KT_FIELD(xph_norm_grad_args, dy, lddy, rows, width, KT_IN, l.dy, NULL),
        KT_FIELD(xph_norm_grad_args, dx, lddx, rows, width, dx_add ? KT_ADD : KT_OUT, before_x, NULL),
        KT_FLAT(xph_norm_grad_args, dgain, 1, width, KT_ADD, gain, NULL),
        KT_FLAT(xph_norm_grad_args, dshift, 1, width, KT_ADD, shift, NULL),
    };
    const xph_norm_grad_args args = {.fwd = {.act = s->act, .rows = rows, .width = width, .epsilon = 1e-5},
                                     .dx_add = dx_add};
    const kt_case c = {.name = "norm_grad",
                       .op = XPH_OP_NORM_GRAD,
                       .args = &args,
                       .args_bytes = sizeof args,
                       .scratch_at = offsetof(xph_norm_grad_args, scratch),
                       .tensors = tensors,
                       .count = 8,
                       .pad = s->pad};
    const device_case d = on_device(&c, xph_cuda_norm_grad, type);
    device_check(&d, NULL);
    case_release();
}

static void gradient(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        /* Of one or two numbers the gradient is zero but for epsilon: it is seen on top of something. */
        case_seed(50 + i / DEVICE_TYPES);
        gradient_shape(&shapes[i / DEVICE_TYPES], device_types[i % DEVICE_TYPES],
                       i / DEVICE_TYPES % 2 || shapes[i / DEVICE_TYPES].width < 3);
    }
}

static void in_place(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_norm_grad_args *args = given;
    args->dy = args->dx;
    args->lddy = args->lddx;
}

/* The gradient of x may take the place of that of y, for every candidate. */
static void gradients_in_place(void **state)
{
    const shape s = {19, 65, 2, XPH_ACT_SILU};
    double *apart[KT_MOST], *together[KT_MOST];
    case_seed(7);
    layer l = layer_make(&s);
    double *zeros = case_zeros(s.width);
    const kt_tensor tensors[] = {
        KT_FIELD(xph_norm_grad_args, fwd.x, fwd.ldx, s.rows, s.width, KT_IN, l.x, NULL),
        KT_FLAT(xph_norm_grad_args, fwd.gain, 1, s.width, KT_IN, l.gain, NULL),
        KT_FLAT(xph_norm_grad_args, fwd.shift, 1, s.width, KT_IN, l.shift, NULL),
        KT_FLAT(xph_norm_grad_args, fwd.saved, s.rows, 2, KT_IN, saved_of(&l), NULL),
        KT_FIELD(xph_norm_grad_args, dy, lddy, s.rows, s.width, KT_IN, l.dy, NULL),
        KT_FIELD(xph_norm_grad_args, dx, lddx, s.rows, s.width, KT_ADD, l.dy, NULL),
        KT_FLAT(xph_norm_grad_args, dgain, 1, s.width, KT_ADD, zeros, NULL),
        KT_FLAT(xph_norm_grad_args, dshift, 1, s.width, KT_ADD, zeros, NULL),
    };
    const xph_norm_grad_args args = {
        .fwd = {.act = s.act, .rows = s.rows, .width = s.width, .epsilon = 1e-5}};
    kt_case c = {.name = "norm_grad",
                 .op = XPH_OP_NORM_GRAD,
                 .args = &args,
                 .args_bytes = sizeof args,
                 .scratch_at = offsetof(xph_norm_grad_args, scratch),
                 .tensors = tensors,
                 .count = 8,
                 .pad = s.pad};
    for (const xph_cuda_candidate *k = xph_cuda_norm_grad; k->name; k++) {
        device_case d = on_device(&c, k, XPH_F32);
        c.prepare = NULL;
        device_run(&d, apart);
        c.prepare = in_place;
        device_run(&d, together);
        case_same("dx", together[5], apart[5], s.rows * s.width);
        case_same("dgain", together[6], apart[6], s.width);
        case_same("dshift", together[7], apart[7], s.width);
    }
    case_release();
}

/* A bad number makes its row bad, no other; rows of one value and large numbers do not overflow. */
static void bad_numbers(void **state)
{
    const shape s = {6, 40, 0, XPH_ACT_SILU};
    double *result[KT_MOST];
    kt_tensor tensors[KT_MOST];
    xph_norm_args args;
    case_seed(5);
    layer l = layer_make(&s);
    l.x[1 * s.width + 9] = NAN;
    l.x[2 * s.width + 3] = INFINITY;
    for (int64_t i = 0; i < s.width; i++) {
        l.x[3 * s.width + i] = 7;
        l.x[4 * s.width + i] *= 1e15;
    }
    kt_case c = forward_case(&l, tensors, &args);
    device_case d = on_device(&c, xph_cuda_norm, XPH_F32);
    device_run(&d, result);
    for (int64_t m = 0; m < s.rows; m++)
        assert_int_equal(kt_any_bad(result[Y] + m * s.width, s.width), m == 1 || m == 2);
    case_release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward), cmocka_unit_test(rows_alone),
                                       cmocka_unit_test(gradient), cmocka_unit_test(gradients_in_place),
                                       cmocka_unit_test(bad_numbers)};
    return cmocka_run_group_tests_name("cuda_norm", tests, NULL, NULL);
}
