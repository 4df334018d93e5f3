/* LayerNorm with and without SiLU against the formula in double, gradients against differences. */
#include "norm_case.h"

#include <math.h>

static const norm_shape shapes[] = {
    {1, 1, 0, XPH_ACT_NONE},    {0, 7, 0, XPH_ACT_SILU},   {3, 2, 1, XPH_ACT_SILU},
    {5, 31, 2, XPH_ACT_NONE},   {4, 32, 0, XPH_ACT_SILU},  {7, 33, 3, XPH_ACT_SILU},
    {2, 64, 0, XPH_ACT_NONE},   {300, 5, 1, XPH_ACT_SILU}, {9, 287, 1, XPH_ACT_SILU},
    {40, 129, 0, XPH_ACT_NONE}, {3, 16, 0, XPH_ACT_SILU},  {2, 47, 1, XPH_ACT_SILU}};

static norm_layer layer_make(const norm_shape *s)
{
    norm_layer l = norm_layer_make(s);
    l.y = case_zeros(s->rows * s->width);
    l.saved = case_zeros(s->rows * 2);
    return l;
}

static void layer_forward(norm_layer *l)
{
    int64_t width = l->s.width;
    for (int64_t m = 0; m < l->s.rows; m++) {
        const double *x = l->x + m * width;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < width; i++) mean += x[i] / (double)width;
        for (int64_t i = 0; i < width; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)width;
        l->saved[2 * m] = mean;
        l->saved[2 * m + 1] = 1 / sqrt(variance + l->epsilon);
        for (int64_t i = 0; i < width; i++) {
            double n = (x[i] - mean) * l->saved[2 * m + 1] * l->gain[i] + l->shift[i];
            l->y[m * width + i] = l->s.act == XPH_ACT_SILU ? n / (1 + exp(-n)) : n;
        }
    }
}

static void forward(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        norm_layer l = layer_make(&shapes[i]);
        layer_forward(&l);
        kt_case c = norm_case(&l);
        kt_check(&c);
        case_release();
    }
}

/* Without saved the result is the same, and a row does not see its neighbours. */
static void rows_alone(void **state)
{
    const norm_shape s = {11, 70, 0, XPH_ACT_SILU};
    case_seed(3);
    norm_layer all = layer_make(&s);
    EACH_SET(set) {
        double *together[KT_MOST], *result[KT_MOST];
        kt_case c = norm_case(&all);
        kt_run(&c, set, set->op[XPH_OP_NORM], 1, together);
        for (int64_t m = 0; m < s.rows; m++) {
            c = norm_case_of_row(&all, m);
            kt_run(&c, set, set->op[XPH_OP_NORM], 1, result);
            case_same("row alone", result[NORM_Y], together[NORM_Y] + m * s.width, s.width);
        }
    }
    case_release();
}

static double objective(void *context)
{
    norm_layer *l = context;
    layer_forward(l);
    return case_dot(l->y, l->dy, l->s.rows * l->s.width);
}

static void gradient_shape(const norm_shape *s, bool dx_add)
{
    norm_layer l = layer_make(s);
    int64_t rows = s->rows, width = s->width;
    double *gain = case_random(width, -1, 1), *shift = case_random(width, -1, 1);
    double *before_x = dx_add ? case_random(rows * width, -1, 1) : NULL;
    kt_case c = norm_gradient_case(&l, before_x, gain, shift);
    c.tensors[NORM_DX].want = kt_differences(objective, &l, l.x, rows * width, before_x);
    c.tensors[NORM_DGAIN].want = kt_differences(objective, &l, l.gain, width, gain);
    c.tensors[NORM_DSHIFT].want = kt_differences(objective, &l, l.shift, width, shift);
    layer_forward(&l);
    kt_check(&c);
    case_release();
}

static void gradient(void **state)
{
    const norm_shape some[] = {{0, 3, 0, XPH_ACT_SILU},  {3, 2, 1, XPH_ACT_NONE},   {5, 31, 0, XPH_ACT_SILU},
                               {4, 67, 2, XPH_ACT_NONE}, {300, 3, 1, XPH_ACT_SILU}, {6, 96, 0, XPH_ACT_SILU}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        case_seed(50 + i);
        gradient_shape(&some[i], i % 2);
    }
}

/* A bad number makes its row bad; rows of one value and large logits do not overflow. */
static void bad_numbers(void **state)
{
    const norm_shape s = {5, 39, 0, XPH_ACT_SILU};
    case_seed(9);
    norm_layer l = layer_make(&s);
    l.x[0 * s.width + 38] = NAN;
    l.x[1 * s.width + 3] = INFINITY;
    for (int64_t i = 0; i < s.width; i++) l.x[2 * s.width + i] = 3.0;
    for (int64_t i = 0; i < s.width; i++) l.shift[i] = i % 2 ? 1e4 : -1e4;
    EACH_SET(set) {
        double *result[KT_MOST];
        kt_case c = norm_case(&l);
        kt_run(&c, set, set->op[XPH_OP_NORM], 1, result);
        for (int64_t i = 0; i < s.rows * s.width; i++)
            assert_int_equal(isfinite(result[NORM_Y][i]) == 0, i < 2 * s.width);
    }
    case_release();
}

/* On the way back: a bad number in dy, or statistics of a bad row, make that row and the sums bad. */
static void bad_gradients(void **state)
{
    const double bad[] = {NAN, INFINITY, -INFINITY};
    const norm_shape s = {140, 37, 1, XPH_ACT_SILU};
    const xph_kernel_set *sets[CASE_SETS];
    int count = case_sets(sets);
    for (int k = 0; k < count * 3; k++) {
        case_seed(12);
        norm_layer l = layer_make(&s);
        layer_forward(&l);
        l.dy[3 * s.width + 36] = bad[k % 3];
        l.x[130 * s.width + 1] = bad[k % 3];
        l.saved[2 * 130] = l.saved[2 * 130 + 1] = NAN;
        const kt_case c = norm_gradient_case(&l, NULL, case_zeros(s.width), case_zeros(s.width));
        double *result[KT_MOST];
        kt_run(&c, sets[k / 3], sets[k / 3]->op[XPH_OP_NORM_GRAD], 1, result);
        for (int64_t i = 0; i < s.rows * s.width; i++)
            assert_int_equal(!isfinite(result[NORM_DX][i]), i / s.width == 3 || i / s.width == 130);
        for (int64_t i = 0; i < s.width; i++)
            assert_true(isnan(result[NORM_DGAIN][i]) && isnan(result[NORM_DSHIFT][i]));
        case_release();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward), cmocka_unit_test(rows_alone),
                                       cmocka_unit_test(gradient), cmocka_unit_test(bad_numbers),
                                       cmocka_unit_test(bad_gradients)};
    return cmocka_run_group_tests_name("kernel_norm", tests, NULL, NULL);
}
