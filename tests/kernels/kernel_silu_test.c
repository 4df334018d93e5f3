/* SiLU, its slope and the logarithm of registers against libm in double, over all exponents. */
#define XPH_REAL_F32
#include "cpu/simd/silu.h"

#include "test.h"

#include <math.h>

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double slope(double x)
{
    double s = 1 / (1 + exp(-x));
    return s * (1 + x * (1 / (1 + exp(x))));
}

/* Within so many units of the last place of a float near the exact result, and so much. */
static void near_exact(const char *what, float x, float got, double want, double ulp, double floor)
{
    float near = (float)want;
    double unit = (double)nextafterf(fabsf(near), INFINITY) - fabs((double)near);
    if (fabs((double)got - want) > ulp * unit + floor)
        fail_msg("%s(%a) = %a, exact %a", what, (double)x, (double)got, want);
}

/* Four numbers of different sizes at once: a lane sees only itself. */
static void all_exponents(void **state)
{
    for (uint64_t bits = 0; bits < UINT64_C(1) << 30; bits += 9973) {
        vec x, d;
        for (int i = 0; i < VEC; i++) x[i] = float_from((uint32_t)(bits + ((uint64_t)i << 30)));
        vec y = silu_vec(x), z = silu_slope_vec(x, &d);
        for (int i = 0; i < VEC; i++) {
            if (isnan(x[i])) {
                assert_true(isnan(y[i]) && isnan(z[i]) && isnan(d[i]));
                continue;
            }
            if (fabsf(x[i]) > 1e30f) continue;
            double floor = 1e-38 * fmax(1, fabs((double)x[i])), ulp = x[i] < 0 ? 3 - (double)x[i] / 4 : 3;
            near_exact("silu", x[i], y[i], silu((double)x[i]), ulp, floor);
            near_exact("silu beside its slope", x[i], z[i], silu((double)x[i]), ulp, floor);
            near_exact("slope", x[i], d[i], slope((double)x[i]), 4, 1.5e-7);
        }
    }
}

/* Infinity never becomes a number. */
static void infinities(void **state)
{
    vec x = {INFINITY, -INFINITY, 0.0f, -0.0f}, d;
    vec y = silu_vec(x), z = silu_slope_vec(x, &d);
    for (int i = 0; i < 2; i++) assert_true(!isfinite(y[i]) && !isfinite(z[i]) && !isfinite(d[i]));
    for (int i = 2; i < 4; i++) assert_true(y[i] == 0 && z[i] == 0 && d[i] == 0.5f);
}

static void logarithms(void **state)
{
    for (uint32_t bits = 1; bits < 0x7f800000u; bits += 9973) {
        vec x = {float_from(bits), 1, 2, 0.5f};
        vec y = vec_log(x);
        near_exact("log", x[0], y[0], log((double)x[0]), 2, 0);
        assert_true(y[1] == 0 && y[2] == -y[3]);
    }
    vec x = {NAN, NAN, 1, 1};
    assert_true(isnan(vec_log(x)[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_exponents), cmocka_unit_test(infinities),
                                       cmocka_unit_test(logarithms)};
    return cmocka_run_group_tests_name("kernel_silu", tests, NULL, NULL);
}
