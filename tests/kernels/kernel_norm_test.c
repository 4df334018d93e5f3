/* LayerNorm with and without SiLU against the formula in double, gradients against differences. */
#include "kernel_test.h"

#include <math.h>

typedef struct shape {
    int64_t rows, width, pad;
    int32_t act;
} shape;

static const shape shapes[] = {
    {1, 1, 0, XPH_ACT_NONE},    {0, 7, 0, XPH_ACT_SILU},   {3, 2, 1, XPH_ACT_SILU},
    {5, 31, 2, XPH_ACT_NONE},   {4, 32, 0, XPH_ACT_SILU},  {7, 33, 3, XPH_ACT_SILU},
    {2, 64, 0, XPH_ACT_NONE},   {300, 5, 1, XPH_ACT_SILU}, {9, 287, 1, XPH_ACT_SILU},
    {40, 129, 0, XPH_ACT_NONE}, {3, 16, 0, XPH_ACT_SILU},  {2, 47, 1, XPH_ACT_SILU}};

typedef struct layer {
    shape s;
    double epsilon;
    double *x, *gain, *shift, *y, *saved, *dy;
} layer;

static layer layer_make(const shape *s)
{
    layer l = {.s = *s, .epsilon = 1e-5};
    l.x = case_random(s->rows * s->width, -1, 4);
    l.gain = case_random(s->width, -2, 2);
    l.shift = case_random(s->width, -1, 1);
    l.dy = case_random(s->rows * s->width, -1, 1);
    l.y = case_zeros(s->rows * s->width);
    l.saved = case_zeros(s->rows * 2);
    return l;
}

static void layer_forward(layer *l)
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

static kt_case forward_case(const layer *l, kt_tensor tensors[KT_MOST], xph_norm_args *args)
{
    const shape *s = &l->s;
    const kt_tensor list[] = {
        KT_FIELD(xph_norm_args, x, ldx, s->rows, s->width, KT_IN, l->x, NULL),
        KT_FLAT(xph_norm_args, gain, 1, s->width, KT_IN, l->gain, NULL),
        KT_FLAT(xph_norm_args, shift, 1, s->width, KT_IN, l->shift, NULL),
        KT_FIELD(xph_norm_args, y, ldy, s->rows, s->width, KT_OUT, NULL, l->y),
        KT_FLAT(xph_norm_args, saved, s->rows, 2, KT_OUT, NULL, l->saved),
    };
    memcpy(tensors, list, sizeof list);
    *args = (xph_norm_args){.act = s->act, .rows = s->rows, .width = s->width, .epsilon = l->epsilon};
    return (kt_case){"norm", XPH_OP_NORM, args,  sizeof *args, KT_DENSE, tensors,
                     5,      s->pad,      1e-12, 5e-6,         NULL,     NULL};
}

static void forward(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        kt_tensor tensors[KT_MOST];
        xph_norm_args args;
        case_seed(i);
        layer l = layer_make(&shapes[i]);
        layer_forward(&l);
        kt_case c = forward_case(&l, tensors, &args);
        kt_check(&c);
        case_release();
    }
}

/* Without saved the result is the same, and a row does not see its neighbours. */
static void rows_alone(void **state)
{
    const shape s = {11, 70, 0, XPH_ACT_SILU};
    const xph_kernel_set *sets[8];
    int count = case_sets(sets);
    case_seed(3);
    layer all = layer_make(&s);
    for (int k = 0; k < count; k++) {
        double *together[KT_MOST], *result[KT_MOST];
        kt_tensor tensors[KT_MOST];
        xph_norm_args args;
        kt_case c = forward_case(&all, tensors, &args);
        kt_run(&c, sets[k], sets[k]->op[XPH_OP_NORM], 1, together);
        for (int64_t m = 0; m < s.rows; m++) {
            layer one = all;
            one.s.rows = 1;
            one.x = all.x + m * s.width;
            c = forward_case(&one, tensors, &args);
            c.count = 4;
            kt_run(&c, sets[k], sets[k]->op[XPH_OP_NORM], 1, result);
            case_same("row alone", result[3], together[3] + m * s.width, s.width);
        }
    }
    case_release();
}

static double objective(void *context)
{
    layer *l = context;
    layer_forward(l);
    return case_dot(l->y, l->dy, l->s.rows * l->s.width);
}

static void gradient_shape(const shape *s, bool dx_add)
{
    layer l = layer_make(s);
    int64_t rows = s->rows, width = s->width;
    double *gain = case_random(width, -1, 1), *shift = case_random(width, -1, 1);
    double *before_x = dx_add ? case_random(rows * width, -1, 1) : NULL;
    double *want_x = kt_differences(objective, &l, l.x, rows * width, before_x);
    double *want_gain = kt_differences(objective, &l, l.gain, width, gain);
    double *want_shift = kt_differences(objective, &l, l.shift, width, shift);
    layer_forward(&l);
    kt_tensor tensors[] = {
        KT_FIELD(xph_norm_grad_args, fwd.x, fwd.ldx, rows, width, KT_IN, l.x, NULL),
        KT_FLAT(xph_norm_grad_args, fwd.gain, 1, width, KT_IN, l.gain, NULL),
        KT_FLAT(xph_norm_grad_args, fwd.shift, 1, width, KT_IN, l.shift, NULL),
        KT_FLAT(xph_norm_grad_args, fwd.saved, rows, 2, KT_IN, l.saved, NULL),
        KT_FIELD(xph_norm_grad_args, dy, lddy, rows, width, KT_IN, l.dy, NULL),
        KT_FIELD(xph_norm_grad_args, dx, lddx, rows, width, dx_add ? KT_ADD : KT_OUT, before_x, want_x),
        KT_FLAT(xph_norm_grad_args, dgain, 1, width, KT_ADD, gain, want_gain),
        KT_FLAT(xph_norm_grad_args, dshift, 1, width, KT_ADD, shift, want_shift),
    };
    xph_norm_grad_args args = {.fwd = {.act = s->act, .rows = rows, .width = width, .epsilon = l.epsilon},
                               .dx_add = dx_add};
    kt_case c = {"norm_grad",
                 XPH_OP_NORM_GRAD,
                 &args,
                 sizeof args,
                 offsetof(xph_norm_grad_args, scratch),
                 tensors,
                 8,
                 s->pad,
                 1e-6,
                 3e-5,
                 NULL,
                 NULL};
    kt_check(&c);
    case_release();
}

static void gradient(void **state)
{
    const shape some[] = {{0, 3, 0, XPH_ACT_SILU},  {3, 2, 1, XPH_ACT_NONE},   {5, 31, 0, XPH_ACT_SILU},
                          {4, 67, 2, XPH_ACT_NONE}, {300, 3, 1, XPH_ACT_SILU}, {6, 96, 0, XPH_ACT_SILU}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        case_seed(50 + i);
        gradient_shape(&some[i], i % 2);
    }
}

/* A bad number makes its row bad; rows of one value and large logits do not overflow. */
static void bad_numbers(void **state)
{
    const shape s = {5, 39, 0, XPH_ACT_SILU};
    const xph_kernel_set *sets[8];
    int count = case_sets(sets);
    case_seed(9);
    layer l = layer_make(&s);
    l.x[0 * s.width + 38] = NAN;
    l.x[1 * s.width + 3] = INFINITY;
    for (int64_t i = 0; i < s.width; i++) l.x[2 * s.width + i] = 3.0;
    for (int64_t i = 0; i < s.width; i++) l.shift[i] = i % 2 ? 1e4 : -1e4;
    for (int k = 0; k < count; k++) {
        double *result[KT_MOST];
        kt_tensor tensors[KT_MOST];
        xph_norm_args args;
        kt_case c = forward_case(&l, tensors, &args);
        kt_run(&c, sets[k], sets[k]->op[XPH_OP_NORM], 1, result);
        for (int64_t i = 0; i < s.rows * s.width; i++)
            assert_int_equal(isfinite(result[3][i]) == 0, i < 2 * s.width);
    }
    case_release();
}

/* On the way back: a bad number in dy, or statistics of a bad row, make that row and the sums bad. */
static void bad_gradients(void **state)
{
    const double bad[] = {NAN, INFINITY, -INFINITY};
    const shape s = {140, 37, 1, XPH_ACT_SILU};
    const xph_kernel_set *sets[8];
    int count = case_sets(sets);
    for (int k = 0; k < count * 3; k++) {
        case_seed(12);
        layer l = layer_make(&s);
        layer_forward(&l);
        l.dy[3 * s.width + 36] = bad[k % 3];
        l.x[130 * s.width + 1] = bad[k % 3];
        l.saved[2 * 130] = l.saved[2 * 130 + 1] = NAN;
        const kt_tensor tensors[] = {
            KT_FIELD(xph_norm_grad_args, fwd.x, fwd.ldx, s.rows, s.width, KT_IN, l.x, NULL),
            KT_FLAT(xph_norm_grad_args, fwd.gain, 1, s.width, KT_IN, l.gain, NULL),
            KT_FLAT(xph_norm_grad_args, fwd.shift, 1, s.width, KT_IN, l.shift, NULL),
            KT_FLAT(xph_norm_grad_args, fwd.saved, s.rows, 2, KT_IN, l.saved, NULL),
            KT_FIELD(xph_norm_grad_args, dy, lddy, s.rows, s.width, KT_IN, l.dy, NULL),
            KT_FIELD(xph_norm_grad_args, dx, lddx, s.rows, s.width, KT_OUT, NULL, NULL),
            KT_FLAT(xph_norm_grad_args, dgain, 1, s.width, KT_ADD, case_zeros(s.width), NULL),
            KT_FLAT(xph_norm_grad_args, dshift, 1, s.width, KT_ADD, case_zeros(s.width), NULL),
        };
        const xph_norm_grad_args args = {
            .fwd = {.act = s.act, .rows = s.rows, .width = s.width, .epsilon = 1e-5}};
        const kt_case c = {"norm_grad",
                           XPH_OP_NORM_GRAD,
                           &args,
                           sizeof args,
                           offsetof(xph_norm_grad_args, scratch),
                           tensors,
                           8,
                           s.pad,
                           0,
                           0,
                           NULL,
                           NULL};
        double *result[KT_MOST];
        kt_run(&c, sets[k / 3], sets[k / 3]->op[XPH_OP_NORM_GRAD], 1, result);
        for (int64_t i = 0; i < s.rows * s.width; i++)
            assert_int_equal(!isfinite(result[5][i]), i / s.width == 3 || i / s.width == 130);
        for (int64_t i = 0; i < s.width; i++) assert_true(isnan(result[6][i]) && isnan(result[7][i]));
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
