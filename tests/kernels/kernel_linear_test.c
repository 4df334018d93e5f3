/* Matrix products: every candidate against sums in double, packed and not, on odd shapes; gradients against
 * differences; a row alone and in a batch. */
#include "linear_case.h"

#include <math.h>

/* Whether the weights are packed. */
typedef struct shape {
    linear_shape s;
    bool packed;
} shape;

/* The last seven: cut by rows or by panels, one row and two panels, groups of panels larger than a cache. */
static const shape shapes[] = {{{1, 1, 1, 0, true, true}, true},       {{1, 1, 1, 0, false, false}, false},
                               {{0, 5, 3, 0, true, false}, true},      {{3, 0, 4, 1, true, true}, true},
                               {{5, 7, 0, 1, false, false}, true},     {{2, 3, 5, 2, false, true}, true},
                               {{7, 17, 31, 3, true, true}, true},     {{7, 17, 31, 3, true, true}, false},
                               {{1, 64, 129, 0, true, false}, true},   {{1, 33, 64, 1, true, false}, false},
                               {{49, 65, 130, 0, true, true}, true},   {{97, 70, 67, 5, true, true}, false},
                               {{13, 130, 16, 0, false, false}, true}, {{300, 13, 21, 0, true, false}, true},
                               {{6, 257, 80, 1, true, true}, false},   {{8, 15, 47, 0, true, false}, true},
                               {{48, 128, 64, 0, false, false}, true}, {{100, 3, 2, 1, true, false}, true},
                               {{192, 9, 200, 0, true, true}, true},   {{193, 20, 190, 3, true, true}, true},
                               {{241, 20, 128, 0, true, true}, false}, {{1, 70, 128, 0, true, true}, true},
                               {{1, 70, 191, 0, false, true}, true},   {{1, 9, 323, 1, true, false}, true},
                               {{197, 1300, 150, 1, true, true}, true}};

static linear_layer layer_make(const linear_shape *s)
{
    linear_layer l = linear_layer_make(s);
    l.y = case_zeros(s->rows * s->out);
    return l;
}

static void layer_forward(linear_layer *l)
{
    const linear_shape *s = &l->s;
    for (int64_t m = 0; m < s->rows; m++) {
        for (int64_t n = 0; n < s->out; n++) {
            double y = case_dot(l->x + m * s->in, l->w + n * s->in, s->in);
            if (l->bias) y += l->bias[n];
            if (l->residual) y += l->residual[m * s->out + n];
            l->y[m * s->out + n] = y;
        }
    }
}

static void pack_weights(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_linear_args *args = given;
    xph_linear_pack_args pack = {set->type, 0, args->in, args->out, args->w, NULL, NULL};
    pack.packed = case_alloc(xph_kernels_packed_bytes(XPH_OP_LINEAR_PACK, &pack));
    case_run(xph_kernels_choose(set, XPH_OP_LINEAR_PACK, &pack), &pack, 1);
    args->packed = pack.packed;
    args->w = NULL;
    linear_in_place(c, set, given);
}

/* Each time the other way round. */
static kt_case forward_case(const linear_layer *l, bool packed)
{
    static int32_t back;
    kt_case c = linear_case(l);
    KT_ARGS(&c, xph_linear_args)->back = back = !back;
    c.prepare = packed ? pack_weights : linear_in_place;
    return c;
}

static void forward(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        linear_layer l = layer_make(&shapes[i].s);
        layer_forward(&l);
        kt_case c = forward_case(&l, shapes[i].packed);
        kt_check(&c);
        case_release();
    }
}

/* Packed and not, alone and in a batch: the same bits. */
static void rows_alone(void **state)
{
    const linear_shape s = {23, 70, 83, 0, true, false};
    case_seed(77);
    linear_layer all = layer_make(&s);
    EACH_SET(set) {
        double *together[KT_MOST], *result[KT_MOST];
        kt_case c = forward_case(&all, true);
        kt_run(&c, set, NULL, 1, together);
        c.prepare = linear_in_place;
        kt_run(&c, set, NULL, 2, result);
        case_same("not packed", result[LINEAR_Y], together[LINEAR_Y], s.rows * s.out);
        for (int64_t m = 0; m < s.rows; m++) {
            linear_layer one = linear_row_of(&all, m);
            c = forward_case(&one, true);
            kt_run(&c, set, NULL, 1, result);
            case_same("row alone", result[LINEAR_Y], together[LINEAR_Y] + m * s.out, s.out);
        }
    }
    case_release();
}

static double objective(void *context)
{
    linear_layer *l = context;
    layer_forward(l);
    return case_dot(l->y, l->dy, l->s.rows * l->s.out);
}

static void gradient_shape(const linear_shape *s, bool dx_add, bool dx_wanted, bool dw_wanted)
{
    linear_layer l = layer_make(s);
    int64_t rows = s->rows, in = s->in, out = s->out;
    double *before_w = case_random(out * in, -1, 1), *before_b = case_random(out, -1, 1);
    double *before_x = dx_add ? case_random(rows * in, -1, 1) : NULL;
    if (!l.bias) l.bias = case_zeros(out);
    kt_case c = linear_gradient_case(&l, before_x, before_w, before_b);
    c.tensors[LINEAR_DX].want = kt_differences(objective, &l, l.x, rows * in, before_x);
    c.tensors[LINEAR_DW].want = kt_differences(objective, &l, l.w, out * in, before_w);
    c.tensors[LINEAR_DBIAS].want = kt_differences(objective, &l, l.bias, out, before_b);
    if (!dx_wanted) linear_without_dx(&c);
    if (!dw_wanted) linear_without_dw(&c);
    kt_check(&c);
    case_release();
}

static void gradient(void **state)
{
    const linear_shape some[] = {{1, 1, 1, 0, true, false},    {0, 3, 2, 0, true, false},
                                 {3, 0, 2, 0, true, false},    {3, 2, 0, 0, true, false},
                                 {5, 17, 33, 3, true, false},  {51, 7, 11, 0, true, false},
                                 {2, 70, 19, 1, false, false}, {300, 2, 3, 1, true, false}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        case_seed(100 + i);
        gradient_shape(&some[i], i % 2, true, true);
    }
    gradient_shape(&some[4], false, false, true);
    gradient_shape(&some[4], true, true, false);
}

/* Larger than every block that a gradient is cut into, against sums in double. */
static void large_gradient_shape(const linear_shape *s)
{
    linear_layer l = layer_make(s);
    int64_t rows = s->rows, in = s->in, out = s->out;
    double *before_w = case_random(out * in, -1, 1), *before_b = case_random(out, -1, 1);
    double *before_x = case_random(rows * in, -1, 1);
    double *want_x = kt_copy(before_x, rows * in), *want_w = kt_copy(before_w, out * in);
    double *want_b = kt_copy(before_b, out);
    for (int64_t m = 0; m < rows; m++) {
        for (int64_t n = 0; n < out; n++) {
            double dy = l.dy[m * out + n];
            want_b[n] += dy;
            for (int64_t k = 0; k < in; k++) want_x[m * in + k] += dy * l.w[n * in + k];
            for (int64_t k = 0; k < in; k++) want_w[n * in + k] += dy * l.x[m * in + k];
        }
    }
    kt_case c = linear_gradient_case(&l, before_x, before_w, before_b);
    c.tensors[LINEAR_DX].want = want_x;
    c.tensors[LINEAR_DW].want = want_w;
    c.tensors[LINEAR_DBIAS].want = want_b;
    c.tolerance64 = 1e-13;
    c.tolerance32 = 1e-5;
    kt_check(&c);
    case_release();
}

static void large_gradient(void **state)
{
    const linear_shape some[] = {
        {300, 70, 331, 0, true, false},
        {129, 530, 291, 0, true, false},
        {261, 140, 13, 2, true, false},
        {128, 64, 576, 0, true, false},
        {2, 1090, 2330, 0, true, false}}; /* more parts of dw than slots of scratch */
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        case_seed(200 + i);
        large_gradient_shape(&some[i]);
    }
}

/* A NaN or an infinity in any slot of x and w is seen in its row or column, and nowhere else. */
static void bad_forward(const shape *given)
{
    const linear_shape *s = &given->s;
    const double bad[] = {NAN, INFINITY, -INFINITY};
    linear_layer l = layer_make(s);
    for (int i = 0; i < 6; i++) {
        double *at = i < 3 ? &l.x[case_below(s->rows * s->in)] : &l.w[case_below(s->out * s->in)], kept = *at;
        *at = bad[i % 3];
        EACH_SET(set) {
            double *result[KT_MOST];
            kt_case c = forward_case(&l, given->packed);
            kt_run(&c, set, NULL, 1, result);
            int64_t row = i < 3 ? (at - l.x) / s->in : -1, column = i < 3 ? -1 : (at - l.w) / s->in;
            for (int64_t m = 0; m < s->rows; m++)
                for (int64_t n = 0; n < s->out; n++)
                    assert_int_equal(isfinite(result[LINEAR_Y][m * s->out + n]) == 0,
                                     m == row || n == column);
        }
        *at = kept;
    }
    case_release();
}

static void bad_numbers(void **state)
{
    const shape some[] = {{{9, 35, 37, 0, false, false}, true},
                          {{1, 21, 130, 0, false, false}, true},
                          {{5, 66, 70, 0, true, true}, false},
                          {{200, 10, 66, 0, false, false}, true}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        case_seed(5 + i);
        bad_forward(&some[i]);
    }
}

/* The same of dy and x in the gradients: tensors that share their row or column, and no others. */
static void bad_in_gradient(void **state)
{
    const linear_shape s = {133, 70, 20, 0, false, false};
    const int64_t rows = s.rows, in = s.in, out = s.out, row = 130, input = 65, output = 13;
    const xph_kernel_set *sets[CASE_SETS];
    int count = case_sets(sets);
    case_seed(9);
    for (int i = 0; i < 2 * count; i++) {
        bool of_x = i % 2;
        double *result[KT_MOST];
        linear_layer l = linear_layer_make(&s);
        if (of_x)
            l.x[row * in + input] = NAN;
        else
            l.dy[row * out + output] = INFINITY;
        kt_case c = linear_gradient_case(&l, NULL, case_zeros(out * in), case_zeros(out));
        kt_run(&c, sets[i / 2], NULL, 1, result);
        for (int64_t m = 0; m < rows; m++)
            for (int64_t k = 0; k < in; k++)
                assert_int_equal(isfinite(result[LINEAR_DX][m * in + k]) == 0, !of_x && m == row);
        for (int64_t n = 0; n < out; n++)
            for (int64_t k = 0; k < in; k++)
                assert_int_equal(isfinite(result[LINEAR_DW][n * in + k]) == 0,
                                 of_x ? k == input : n == output);
        for (int64_t n = 0; n < out; n++)
            assert_int_equal(isfinite(result[LINEAR_DBIAS][n]) == 0, !of_x && n == output);
    }
    case_release();
}

/* Numbers below the normal range are multiplied and added like all others: here every sum is exact. */
static void denormals(void **state)
{
    const shape some[] = {{{1, 40, 130, 0, false, false}, true},
                          {{7, 33, 70, 0, false, false}, true},
                          {{200, 9, 20, 0, false, false}, true},
                          {{7, 70, 20, 0, false, false}, false}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        const linear_shape *s = &some[i].s;
        case_seed(300 + i);
        linear_layer l = layer_make(s);
        for (int64_t k = 0; k < s->rows * s->in; k++) l.x[k] = ldexp((double)case_below(2001) - 1000, -149);
        for (int64_t k = 0; k < s->out * s->in; k++) l.w[k] = (double)case_below(9) - 4;
        layer_forward(&l);
        EACH_SET(set) {
            double *result[KT_MOST];
            kt_case c = forward_case(&l, some[i].packed);
            kt_run(&c, set, NULL, 1, result);
            case_same("denormal", result[LINEAR_Y], l.y, s->rows * s->out);
        }
        case_release();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward),     cmocka_unit_test(rows_alone),
                                       cmocka_unit_test(gradient),    cmocka_unit_test(large_gradient),
                                       cmocka_unit_test(bad_numbers), cmocka_unit_test(bad_in_gradient),
                                       cmocka_unit_test(denormals)};
    return cmocka_run_group_tests_name("kernel_linear", tests, NULL, NULL);
}
