/* The CUDA backend's own matrix products on the emulated GPU: against the CPU's in double, rows alone against all,
 * tiles cut on every side, more rows than a slice. */
#include "device_case.h"
#include "linear_case.h"

#include <string.h>

static const linear_shape shapes[] = {
    {1, 1, 1, 0, false, false},   {0, 5, 3, 0, true, true},     {1, 17, 64, 0, true, false},
    {3, 16, 65, 1, true, true},   {16, 33, 5, 2, false, true},  {17, 7, 130, 0, true, true},
    {63, 48, 31, 3, true, false}, {64, 64, 64, 0, true, true},  {65, 15, 66, 1, false, true},
    {2, 300, 9, 0, true, true},   {130, 31, 33, 0, true, true}, {5, 100, 67, 4, true, false},
};

static void forward(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        case_seed(i / DEVICE_TYPES);
        linear_layer l = linear_layer_make(&shapes[i / DEVICE_TYPES]);
        kt_case c = linear_case(&l);
        device_case d = device_case_of(&c, xph_cuda_linear, device_types[i % DEVICE_TYPES]);
        device_check(&d);
        case_release();
    }
}

/* A row alone has the bits that it has among others, and a residual may be the result's own place. */
static void rows_alone(void **state)
{
    const linear_shape s = {600, 40, 70, 1, true, true};
    double *together[KT_MOST], *result[KT_MOST];
    case_seed(3);
    linear_layer all = linear_layer_make(&s);
    kt_case c = linear_case(&all);
    device_case d = device_case_of(&c, xph_cuda_linear, XPH_F32);
    device_run(&d, together);
    for (int64_t m = 0; m < s.rows; m += 77) {
        linear_layer one = linear_row_of(&all, m);
        c = linear_case(&one);
        c.prepare = linear_in_place;
        device_run(&d, result);
        case_same("row alone", result[LINEAR_Y], together[LINEAR_Y] + m * s.out, s.out);
    }
    case_release();
}

static void gradient_shape(const linear_shape *s, xph_type type, bool dx_wanted, bool dx_add, bool dw_wanted)
{
    linear_layer l = linear_layer_make(s);
    double *before_x = dx_add ? case_random(s->rows * s->in, -1, 1) : NULL;
    double *before_w = case_random(s->out * s->in, -1, 1), *before_b = case_random(s->out, -1, 1);
    kt_case c = linear_gradient_case(&l, before_x, before_w, before_b);
    if (!dx_wanted) linear_without_dx(&c);
    if (!dw_wanted) linear_without_dw(&c);
    const device_case d = device_case_of(&c, xph_cuda_linear_grad, type);
    device_check(&d);
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
    gradient_shape(&(linear_shape){800, 5, 7, 1, true, true}, XPH_F32, true, true, true);
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

/* 65535 blocks of 64 lie beside each other. */
static void what_is_too_wide_is_not_accepted(void **state)
{
    for (int64_t blocks = 65535; blocks <= 65536; blocks++) {
        const xph_linear_args args = {.rows = 1, .in = 1, .out = 64 * blocks};
        const xph_linear_grad_args grad = {.rows = 1, .in = 64 * blocks, .out = 1};
        assert_int_equal(xph_linear_accepts(&args), blocks < 65536);
        assert_int_equal(xph_linear_accepts_few(&args), blocks < 65536);
        assert_int_equal(xph_linear_accepts_grad(&grad), blocks < 65536);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward),
                                       cmocka_unit_test(rows_alone),
                                       cmocka_unit_test(gradient),
                                       cmocka_unit_test(gradients_over_many_rows),
                                       cmocka_unit_test(other_numbers_are_not_accepted),
                                       cmocka_unit_test(what_is_too_wide_is_not_accepted)};
    return cmocka_run_group_tests_name("cuda_linear", tests, NULL, NULL);
}
