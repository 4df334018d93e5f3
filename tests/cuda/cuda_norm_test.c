/* The CUDA kernels of LayerNorm on the emulated GPU: against the CPU's in double, with and without SiLU, rows that
 * registers hold and wider ones, more rows than warps. */
#include "device_case.h"
#include "norm_case.h"

#include <math.h>

static const norm_shape shapes[] = {
    {1, 1, 0, XPH_ACT_NONE},     {0, 7, 0, XPH_ACT_SILU},    {3, 2, 1, XPH_ACT_SILU},
    {5, 31, 2, XPH_ACT_NONE},    {4, 32, 0, XPH_ACT_SILU},   {7, 33, 3, XPH_ACT_SILU},
    {9, 287, 1, XPH_ACT_SILU},   {40, 129, 0, XPH_ACT_NONE}, {17, 256, 0, XPH_ACT_NONE},
    {3, 513, 1, XPH_ACT_SILU},   {2, 1024, 0, XPH_ACT_NONE}, {11, 1500, 4, XPH_ACT_SILU},
    {2100, 17, 0, XPH_ACT_SILU},
};

static void forward(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        case_seed(i / DEVICE_TYPES);
        norm_layer l = norm_layer_make(&shapes[i / DEVICE_TYPES]);
        kt_case c = norm_case(&l);
        device_case d = device_case_of(&c, xph_cuda_norm, device_types[i % DEVICE_TYPES]);
        device_check(&d);
        case_release();
    }
}

/* Without saved the result is the same, and a row does not see its neighbours. */
static void rows_alone(void **state)
{
    const norm_shape s = {11, 70, 0, XPH_ACT_SILU};
    double *together[KT_MOST], *result[KT_MOST];
    case_seed(3);
    norm_layer all = norm_layer_make(&s);
    kt_case c = norm_case(&all);
    device_case d = device_case_of(&c, xph_cuda_norm, XPH_F32);
    device_run(&d, together);
    for (int64_t m = 0; m < s.rows; m++) {
        c = norm_case_of_row(&all, m);
        device_run(&d, result);
        case_same("row alone", result[NORM_Y], together[NORM_Y] + m * s.width, s.width);
    }
    case_release();
}

/* Means and deviations as forward saves them. */
static double *saved_of(const norm_layer *l)
{
    double *result[KT_MOST];
    kt_case c = norm_case(l);
    kt_reference(&c, result);
    return result[NORM_SAVED];
}

static void gradient_shape(const norm_shape *s, xph_type type, bool dx_add)
{
    norm_layer l = norm_layer_make(s);
    double *gain = case_random(s->width, -1, 1), *shift = case_random(s->width, -1, 1);
    double *before_x = dx_add ? case_random(s->rows * s->width, -1, 1) : NULL;
    l.saved = saved_of(&l);
    const kt_case c = norm_gradient_case(&l, before_x, gain, shift);
    device_case d = device_case_of(&c, xph_cuda_norm_grad, type);
    device_check(&d);
    d.columns_at = offsetof(xph_norm_grad_args, dx_sum);
    d.columns_of = NORM_DX;
    device_check(&d);
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

/* ---- four columns at once ---- */

/* Rows that fill the registers of a kernel, rows that do not, and wider ones. */
static const norm_shape fours[] = {
    {5, 4, 4, XPH_ACT_SILU},    {7, 64, 0, XPH_ACT_NONE},   {21, 256, 0, XPH_ACT_SILU},
    {9, 256, 8, XPH_ACT_NONE},  {6, 132, 4, XPH_ACT_SILU},  {11, 512, 0, XPH_ACT_SILU},
    {5, 384, 4, XPH_ACT_NONE},  {3, 1024, 4, XPH_ACT_SILU}, {2, 780, 0, XPH_ACT_SILU},
    {3, 1540, 4, XPH_ACT_SILU}, {2100, 8, 0, XPH_ACT_SILU},
};

static void same_results(const kt_case *c, double *const *a, double *const *b)
{
    for (int i = 0; i < c->count; i++)
        if (a[i]) case_same(c->tensors[i].name, a[i], b[i], c->tensors[i].rows * c->tensors[i].width);
}

/* Rows that lie an odd number apart move one by one, and so does what begins elsewhere: the bits are the same. */
static void check_fours(device_case *d, kt_case *c)
{
    double *together[KT_MOST], *alone[KT_MOST];
    d->align = 16;
    device_check(d);
    device_run(d, together);
    for (d->astray = 1; d->astray <= c->count; d->astray++) {
        device_run(d, alone);
        same_results(c, together, alone);
    }
    d->astray = 0;
    c->pad++;
    device_run(d, alone);
    same_results(c, together, alone);
}

static void fours_have_the_bits_of_columns(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof fours / sizeof *fours; i++) {
        const norm_shape *s = &fours[i / DEVICE_TYPES];
        const xph_type type = device_types[i % DEVICE_TYPES];
        case_seed(100 + i / DEVICE_TYPES);
        norm_layer l = norm_layer_make(s);
        kt_case c = norm_case(&l);
        device_case d = device_case_of(&c, xph_cuda_norm, type);
        check_fours(&d, &c);
        double *gain = case_random(s->width, -1, 1), *shift = case_random(s->width, -1, 1);
        double *before = i / DEVICE_TYPES % 2 ? case_random(s->rows * s->width, -1, 1) : NULL;
        l.saved = saved_of(&l);
        kt_case back = norm_gradient_case(&l, before, gain, shift);
        d = device_case_of(&back, xph_cuda_norm_grad, type);
        d.columns_at = offsetof(xph_norm_grad_args, dx_sum);
        d.columns_of = NORM_DX;
        check_fours(&d, &back);
        case_release();
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
    const norm_shape s = {19, 65, 2, XPH_ACT_SILU};
    double *apart[KT_MOST], *together[KT_MOST];
    case_seed(7);
    norm_layer l = norm_layer_make(&s);
    double *zeros = case_zeros(s.width);
    l.saved = saved_of(&l);
    kt_case c = norm_gradient_case(&l, NULL, zeros, zeros);
    c.tensors[NORM_DX].role = KT_ADD;
    c.tensors[NORM_DX].x = l.dy;
    for (const xph_cuda_candidate *k = xph_cuda_norm_grad; k->name; k++) {
        device_case d = device_case_of(&c, k, XPH_F32);
        c.prepare = NULL;
        device_run(&d, apart);
        c.prepare = in_place;
        device_run(&d, together);
        case_same("dx", together[NORM_DX], apart[NORM_DX], s.rows * s.width);
        case_same("dgain", together[NORM_DGAIN], apart[NORM_DGAIN], s.width);
        case_same("dshift", together[NORM_DSHIFT], apart[NORM_DSHIFT], s.width);
    }
    case_release();
}

/* A bad number makes its row bad, no other; rows of one value and large numbers do not overflow. */
static void bad_numbers(void **state)
{
    const norm_shape s = {6, 40, 0, XPH_ACT_SILU};
    double *result[KT_MOST];
    case_seed(5);
    norm_layer l = norm_layer_make(&s);
    l.x[1 * s.width + 9] = NAN;
    l.x[2 * s.width + 3] = INFINITY;
    for (int64_t i = 0; i < s.width; i++) {
        l.x[3 * s.width + i] = 7;
        l.x[4 * s.width + i] *= 1e15;
    }
    kt_case c = norm_case(&l);
    device_case d = device_case_of(&c, xph_cuda_norm, XPH_F32);
    device_run(&d, result);
    for (int64_t m = 0; m < s.rows; m++)
        assert_int_equal(kt_any_bad(result[NORM_Y] + m * s.width, s.width), m == 1 || m == 2);
    case_release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward),
                                       cmocka_unit_test(rows_alone),
                                       cmocka_unit_test(gradient),
                                       cmocka_unit_test(fours_have_the_bits_of_columns),
                                       cmocka_unit_test(gradients_in_place),
                                       cmocka_unit_test(bad_numbers)};
    return cmocka_run_group_tests_name("cuda_norm", tests, NULL, NULL);
}
