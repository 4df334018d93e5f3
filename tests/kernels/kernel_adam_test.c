/* AdamW, the norm of an arena and y = a x + b y against their formulas in double. */
#include "adam_case.h"

#include <float.h>
#include <math.h>

static void adam_shape(int64_t count, int64_t decay_count, bool averaged)
{
    kt_case c = adam_case(count, decay_count, averaged);
    const xph_adam_args *a = KT_ARGS(&c, xph_adam_args);
    kt_tensor *t = c.tensors;
    for (int i = 0; i < c.count; i++)
        if (t[i].role == KT_ADD) t[i].want = kt_copy(t[i].x, count);
    for (int64_t i = 0; i < count; i++) {
        double g = t[ADAM_GRAD].x[i] * a->grad_scale, decay = i < decay_count ? a->decay : 0;
        double m = a->beta1 * t[ADAM_M].x[i] + (1 - a->beta1) * g;
        double v = a->beta2 * t[ADAM_V].x[i] + (1 - a->beta2) * g * g;
        double step = m / a->correction1 / (sqrt(v / a->correction2) + a->epsilon), p = t[ADAM_P].x[i];
        t[ADAM_M].want[i] = m;
        t[ADAM_V].want[i] = v;
        t[ADAM_P].want[i] = p - a->rate * (step + decay * p);
        if (averaged)
            t[ADAM_EMA].want[i] = t[ADAM_EMA].x[i] * a->ema_decay + t[ADAM_P].want[i] * (1 - a->ema_decay);
    }
    c.tolerance64 = 1e-14;
    c.tolerance32 = 1e-6;
    kt_check(&c);
    case_release();
}

static void adam(void **state)
{
    case_seed(1);
    adam_shape(0, 0, true);
    adam_shape(1, 1, true);
    adam_shape(37, 13, true);
    adam_shape(1000, 0, false);
    adam_shape(40001, 16390, true);
    adam_shape(32768, 40000, false);
}

/* A gradient that is not finite reaches its parameter, and only that. */
static void adam_bad(void **state)
{
    EACH_SET(set) {
        case_seed(4);
        kt_case c = adam_case(50, 0, false);
        double *grad = kt_copy(c.tensors[ADAM_GRAD].x, 50), *results[KT_MOST];
        grad[17] = NAN;
        grad[30] = INFINITY;
        grad[33] = -INFINITY;
        c.tensors[ADAM_GRAD].x = grad;
        kt_run(&c, set, set->op[XPH_OP_ADAM], 1, results);
        for (int i = 0; i < 50; i++)
            assert_int_equal(isfinite(results[ADAM_P][i]) == 0, i == 17 || i == 30 || i == 33);
        case_release();
    }
}

typedef struct norm {
    double norm;
    int64_t bad;
} norm;

static norm norm_of(const xph_kernel_set *set, const double *x, int64_t count, int threads)
{
    norm n = {-1, -2};
    const xph_candidate *candidate = set->op[XPH_OP_NORM2];
    xph_norm2_args args = {set->type, count, case_give(set->type, x, 1, count, count), &n.norm, &n.bad,
                           NULL,      NULL};
    args.scratch = case_scratch(candidate, &args);
    case_run(candidate, &args, threads);
    return n;
}

static void norm2_shape(int64_t count, double low, double high)
{
    double *x = case_random(count, low, high), sum = 0, first = -1;
    for (int64_t i = 0; i < count; i++) sum += x[i] * x[i];
    EACH_SET(set) {
        norm one = norm_of(set, x, count, 1), four = norm_of(set, x, count, 4);
        assert_true(fabs(one.norm - sqrt(sum)) <= 1e-12 * sqrt(sum));
        assert_true(one.norm == four.norm && one.bad == -1 && four.bad == -1);
        if (set->type == XPH_F32 && first < 0) first = one.norm;
        if (set->type == XPH_F32) assert_true(one.norm == first);
    }
    case_release();
}

static void norm2(void **state)
{
    case_seed(2);
    norm2_shape(0, 0, 1);
    norm2_shape(1, -3, -3);
    norm2_shape(31, -1, 1);
    norm2_shape(16385, -1, 1);
    norm2_shape(100003, -1e-3, 1e-3);
    norm2_shape(5000, -3e38, 3e38);
    norm2_shape(70000, 0, 0);
}

/* Squares beyond the range of a double, and the first element that is not finite. */
static void norm2_limits(void **state)
{
    double *x = case_zeros(40000);
    x[3] = 3e300;
    x[39999] = -4e300;
    assert_true(fabs(norm_of(&xph_kernels_f64_ref, x, 40000, 2).norm - 5e300) < 1e287);
    x[3] = 3e-300;
    x[39999] = -4e-300;
    assert_true(fabs(norm_of(&xph_kernels_f64_ref, x, 40000, 2).norm - 5e-300) < 1e-313);
    const double bad[] = {NAN, INFINITY, -INFINITY};
    EACH_SET(set) {
        for (int i = 0; i < 3; i++) {
            x[3] = x[39999] = 1;
            x[20001] = bad[i];
            x[30000] = NAN;
            norm n = norm_of(set, x, 40000, 2);
            assert_true(n.bad == 20001 && !isfinite(n.norm));
        }
    }
    case_release();
}

static void axpby(void **state)
{
    const int64_t counts[] = {0, 1, 33, 16384, 40001};
    for (int i = 0; i < 5; i++) {
        int64_t count = counts[i];
        case_seed((uint64_t)i);
        double *x = case_random(count, -1, 1), *y = case_random(count, -1, 1), *want = kt_copy(y, count);
        for (int64_t k = 0; k < count; k++) want[k] = x[k] * 0.75 + y[k] * -1.5;
        const kt_tensor tensors[] = {KT_FLAT(xph_axpby_args, x, 1, count, KT_IN, x, NULL),
                                     KT_FLAT(xph_axpby_args, y, 1, count, KT_ADD, y, want)};
        const xph_axpby_args args = {.count = count, .a = 0.75, .b = -1.5};
        kt_case c = KT_CASE("axpby", XPH_OP_AXPBY, args, KT_DENSE, tensors, 0);
        c.tolerance64 = 1e-14;
        c.tolerance32 = 3e-7;
        kt_check(&c);
        case_release();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(adam), cmocka_unit_test(adam_bad),
                                       cmocka_unit_test(norm2), cmocka_unit_test(norm2_limits),
                                       cmocka_unit_test(axpby)};
    return cmocka_run_group_tests_name("kernel_adam", tests, NULL, NULL);
}
