/* Functions of single numbers against their formulas in double, their gradients against differences and formulas. */
#include "activate_case.h"

#include <math.h>

static const int64_t counts[] = {0, 1, 33, 1000, 16384, 40001};

static void functions_are_their_formulas(void **state)
{
    for (int32_t i = 0; i < 6 * ACTIVATE_KINDS; i++) {
        int64_t count = counts[i / ACTIVATE_KINDS];
        case_seed((uint64_t)i);
        kt_case c = activate_case(i % ACTIVATE_KINDS, case_random(count, -6, 6), NULL, count);
        kt_check(&c);
        case_release();
    }
}

static void gradients_are_their_formulas(void **state)
{
    for (int32_t i = 0; i < 6 * ACTIVATE_KINDS; i++) {
        int64_t count = counts[i / ACTIVATE_KINDS];
        case_seed((uint64_t)i);
        double *x = case_random(count, -6, 6);
        kt_case c = activate_case(i % ACTIVATE_KINDS, x, case_random(count, -1, 1), count);
        kt_check(&c);
        case_release();
    }
}

static void forward_in_place(const kt_case *c, const xph_kernel_set *set, void *args)
{
    (void)c, (void)set;
    ((xph_activate_args *)args)->x = ((xph_activate_args *)args)->y;
}

static void gradient_in_place(const kt_case *c, const xph_kernel_set *set, void *args)
{
    (void)c, (void)set;
    ((xph_activate_grad_args *)args)->dy = ((xph_activate_grad_args *)args)->dx;
}

/* What is made may take the place of what it is made of. */
static void in_place(void **state)
{
    enum { COUNT = 1001 };
    for (int32_t kind = 0; kind < ACTIVATE_KINDS; kind++) {
        case_seed((uint64_t)kind);
        double *x = case_random(COUNT, -6, 6), *dy = case_random(COUNT, -1, 1);
        kt_case c = activate_case(kind, x, NULL, COUNT), g = activate_case(kind, x, dy, COUNT);
        c.tensors[1].role = g.tensors[2].role = KT_ADD;
        c.tensors[1].x = x;
        g.tensors[2].x = dy;
        c.prepare = forward_in_place;
        g.prepare = gradient_in_place;
        kt_check(&c);
        kt_check(&g);
        case_release();
    }
}

/* The formulas of the gradients are derivatives of the others. */
static void slopes_are_derivatives(void **state)
{
    for (int32_t kind = 0; kind < ACTIVATE_KINDS; kind++) {
        for (double x = -5.03; x < 5; x += 0.05) {
            double h = 1e-5, slope = (activate_of(kind, x + h) - activate_of(kind, x - h)) / (2 * h);
            assert_true(fabs(slope - activate_slope(kind, x)) < 1e-8);
        }
    }
}

/* On corners the slope is 0. Far away nothing overflows, a NaN stays, and of infinities
 * come 0, limits or infinities. */
static void corners_and_extremes(void **state)
{
    enum { COUNT = 9 };
    const double huge = 0x1p127;
    double x[COUNT] = {0, activate_low, activate_high, NAN, huge, -huge, INFINITY, 60, -60}, dy[COUNT];
    for (int i = 0; i < COUNT; i++) dy[i] = 1;
    for (int32_t kind = 0; kind < ACTIVATE_KINDS; kind++) {
        EACH_SET(set) {
            double *y[KT_MOST], *slope[KT_MOST];
            kt_case c = activate_case(kind, x, NULL, COUNT), g = activate_case(kind, x, dy, COUNT);
            kt_run(&c, set, set->op[XPH_OP_ACTIVATE], 1, y);
            kt_run(&g, set, set->op[XPH_OP_ACTIVATE_GRAD], 1, slope);
            assert_true(isnan(y[1][3]));
            for (int i = 0; i < COUNT; i++) {
                double want = activate_of(kind, x[i]),
                       steep = activate_slope(kind, i < 4 ? x[i] : copysign(60, x[i]));
                if (i != 3)
                    assert_true(y[1][i] == want ||
                                fabs(y[1][i] - want) < 1e-6 + 2e-38 * fmin(fabs(x[i]), huge));
                bool near = kind != XPH_ACTIVATE_SILU || fabs(x[i]) <= 60;
                if (i != 3 && near) assert_true(fabs(slope[2][i] - steep) < 1e-6);
            }
        }
    }
    case_release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_their_formulas),
        cmocka_unit_test(gradients_are_their_formulas),
        cmocka_unit_test(in_place),
        cmocka_unit_test(slopes_are_derivatives),
        cmocka_unit_test(corners_and_extremes),
    };
    return cmocka_run_group_tests_name("kernel_activate", tests, NULL, NULL);
}
