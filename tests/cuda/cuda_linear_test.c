/* The CUDA backend's own matrix products on the emulated GPU: against the CPU's in double, rows alone against all,
 * tiles cut on every side, more rows than a slice. */
#include "device_case.h"

#include <math.h>
#include <string.h>

typedef struct shape {
    int64_t rows, in, out, pad;
    bool bias, residual;
} shape;

static const shape shapes[] = {
    {1, 1, 1, 0, false, false},   {0, 5, 3, 0, true, true},     {1, 17, 64, 0, true, false},
    {3, 16, 65, 1, true, true},   {16, 33, 5, 2, false, true},  {17, 7, 130, 0, true, true},
    {63, 48, 31, 3, true, false}, {64, 64, 64, 0, true, true},  {65, 15, 66, 1, false, true},
    {2, 300, 9, 0, true, true},   {130, 31, 33, 0, true, true}, {5, 100, 67, 4, true, false},
};

typedef struct layer {
    shape s;
    double *x, *w, *bias, *residual, *dy;
} layer;

static layer layer_make(const shape *s)
{
    layer l = {.s = *s};
    l.x = case_random(s->rows * s->in, -1, 1);
    l.w = case_random(s->out * s->in, -1, 1);
    l.bias = s->bias ? case_random(s->out, -1, 1) : NULL;
    l.residual = s->residual ? case_random(s->rows * s->out, -1, 1) : NULL;
    l.dy = case_random(s->rows * s->out, -1, 1);
    return l;
}

enum { Y = 4 }; /* place in the table below */

static kt_case forward_case(const layer *l, kt_tensor tensors[KT_MOST], xph_linear_args *args)
{
    const shape *s = &l->s;
    const kt_tensor list[] = {
        KT_FIELD(xph_linear_args, x, ldx, s->rows, s->in, KT_IN, l->x, NULL),
        KT_FLAT(xph_linear_args, w, s->out, s->in, KT_IN, l->w, NULL),
        KT_FLAT(xph_linear_args, bias, 1, s->out, KT_IN, l->bias, NULL),
        KT_FIELD(xph_linear_args, residual, ldr, s->rows, s->out, KT_IN, l->residual, NULL),
        KT_FIELD(xph_linear_args, y, ldy, s->rows, s->out, KT_ADD, l->residual ? l->residual : l->dy, NULL),
    };
    memcpy(tensors, list, sizeof list);
    *args = (xph_linear_args){.rows = s->rows, .in = s->in, .out = s->out};
    return (kt_case){.name = "linear",
                     .op = XPH_OP_LINEAR,
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
        xph_linear_args args;
        case_seed(i / DEVICE_TYPES);
        layer l = layer_make(&shapes[i / DEVICE_TYPES]);
        kt_case c = forward_case(&l, tensors, &args);
        device_case d = on_device(&c, xph_cuda_linear, device_types[i % DEVICE_TYPES]);
        device_check(&d, NULL);
        case_release();
    }
}

static void in_place(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_linear_args *args = given;
    args->residual = args->y;
    args->ldr = args->ldy;
}

/* A row alone has the bits that it has among others, and a residual may be the result's own place. */
static void rows_alone(void **state)
{
    const shape s = {600, 40, 70, 1, true, true};
    double *together[KT_MOST], *result[KT_MOST];
    kt_tensor tensors[KT_MOST];
    xph_linear_args args;
    case_seed(3);
    layer all = layer_make(&s);
    kt_case c = forward_case(&all, tensors, &args);
    device_case d = on_device(&c, xph_cuda_linear, XPH_F32);
    device_run(&d, together);
    for (int64_t m = 0; m < s.rows; m += 77) {
        layer one = all;
        one.s.rows = 1;
        one.x = all.x + m * s.in;
        one.residual = all.residual + m * s.out;
        c = forward_case(&one, tensors, &args);
        c.prepare = in_place;
        device_run(&d, result);
        case_same("row alone", result[Y], together[Y] + m * s.out, s.out);
    }
    case_release();
}

static void gradient_shape(const shape *s, xph_type type, bool dx_wanted, bool dx_add, bool dw_wanted)
{
    layer l = layer_make(s);
    int64_t rows = s->rows, in = s->in, out = s->out;
    double *before_x = dx_wanted ? case_random(rows * in, -1, 1) : NULL;
    double *before_w = dw_wanted ? case_random(out * in, -1, 1) : NULL;
    double *before_b = dw_wanted ? case_random(out, -1, 1) : NULL;
    const int32_t role_x = dx_wanted ? KT_ADD : KT_IN, role_w = dw_wanted ? KT_ADD : KT_IN;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_linear_grad_args, x, ldx, rows, in, KT_IN, l.x, NULL),
        KT_FLAT(xph_linear_grad_args, w, out, in, KT_IN, l.w, NULL),
        KT_FIELD(xph_linear_grad_args, dy, lddy, rows, out, KT_IN, l.dy, NULL),
        KT_FIELD(xph_linear_grad_args, dx, lddx, rows, in, role_x, before_x, NULL),
        KT_FLAT(xph_linear_grad_args, dw, out, in, role_w, before_w, NULL),
        KT_FLAT(xph_linear_grad_args, dbias, 1, out, role_w, before_b, NULL),
    };
    const xph_linear_grad_args args = {.rows = rows, .in = in, .out = out, .dx_add = dx_add};
    const kt_case c = {.name = "linear_grad",
                       .op = XPH_OP_LINEAR_GRAD,
                       .args = &args,
                       .args_bytes = sizeof args,
                       .scratch_at = offsetof(xph_linear_grad_args, scratch),
                       .tensors = tensors,
                       .count = 6,
                       .pad = s->pad};
    const device_case d = on_device(&c, xph_cuda_linear_grad, type);
    device_check(&d, NULL);
    case_release();
}

static void gradient(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        case_seed(50 + i / DEVICE_TYPES);
        gradient_shape(&shapes[i / DEVICE_TYPES], device_types[i % DEVICE_TYPES], i / DEVICE_TYPES % 5 != 4,
                       i / DEVICE_TYPES % 2, i / DEVICE_TYPES % 4 != 3);
    }
}

static void gradients_over_many_rows(void **state)
{
    case_seed(90);
    gradient_shape(&(shape){800, 5, 7, 1, true, true}, XPH_F32, true, true, true);
}

static void other_numbers_are_not_accepted(void **state)
{
    const xph_linear_args narrow = {.weights = XPH_BF16, .rows = 1, .in = 1, .out = 1};
    const xph_linear_args wide = {.type = XPH_F64, .rows = 1, .in = 1, .out = 1};
    for (const xph_cuda_candidate *k = xph_cuda_linear; k->name; k++) {
        assert_int_equal(k->accepts(&narrow), strcmp(k->name, "linear_narrow") == 0);
        assert_false(k->accepts(&wide));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward), cmocka_unit_test(rows_alone),
                                       cmocka_unit_test(gradient), cmocka_unit_test(gradients_over_many_rows),
                                       cmocka_unit_test(other_numbers_are_not_accepted)};
    return cmocka_run_group_tests_name("cuda_linear", tests, NULL, NULL);
}
