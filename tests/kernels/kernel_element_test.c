/* The functions of one number in single precision against libm in double, over all exponents. */
#define XPH_REAL_F32
#include "cpu/simd/real.h"

#include "test.h"

#include <math.h>

static double sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}
static double exp_down(double x)
{
    return exp(-fabs(x));
}
static double silu(double x)
{
    return x * sigmoid(x);
}
static double silu_slope(double x)
{
    return sigmoid(x) * (1 + x * sigmoid(-x));
}
static double softplus(double x)
{
    return x > 40 ? x : log1p(exp(x));
}

/* What is a macro or inline there, to be called by its address. */
#define SINGLE(name, function)                                                                               \
  static float name(float x)                                                                                 \
  {                                                                                                          \
    return function(x);                                                                                      \
  }
SINGLE(f32_exp, real_exp)
SINGLE(f32_exp_down, real_exp_down)
SINGLE(f32_log, real_log)
SINGLE(f32_tanh, real_tanh)
SINGLE(f32_sigmoid, real_sigmoid)
SINGLE(f32_silu, real_silu)
SINGLE(f32_silu_slope, real_silu_slope)
SINGLE(f32_softplus, real_softplus)
SINGLE(f32_log1p, real_log1p_unit)
SINGLE(f32_exp2, real_exp2_falling)

typedef struct function {
    const char *name;
    float (*single)(float);
    double (*exact)(double);
    double low, high; /* where it is promised */
    double ulp;       /* distance allowed, in units of the last place of a float near the result */
    double floor;     /* and absolute */
} function;

/* exp and what is made of it end at 2^-125.5. The exponential of sigmoid, SiLU and softplus loses |x|
 * 2^-29 on its way down. SiLU's slope crosses 0: there only its absolute error is small. exp2 for x <= 0
 * ends at 2^-126. Over every single float exp is within 0.91. */
#define END 0x1.6cp-126
static const function functions[] = {
    {"exp", f32_exp, exp, -INFINITY, INFINITY, 0.91, END},
    {"log", f32_log, log, -INFINITY, INFINITY, 2.0, 0},
    {"tanh", f32_tanh, tanh, -INFINITY, INFINITY, 2.6, 0},
    {"exp of -|x|", f32_exp_down, exp_down, -INFINITY, INFINITY, 4.6, END},
    {"exp of -|x| near 0", f32_exp_down, exp_down, -10, 10, 1.5, 0},
    {"sigmoid", f32_sigmoid, sigmoid, -INFINITY, INFINITY, 5.2, END},
    {"sigmoid near 0", f32_sigmoid, sigmoid, -10, INFINITY, 2.8, 0},
    {"silu", f32_silu, silu, -1e30, INFINITY, 5.2, 100 * END},
    {"silu near 0", f32_silu, silu, -10, INFINITY, 2.8, 0},
    {"silu slope", f32_silu_slope, silu_slope, -1e30, 1e30, 4.0, 1.5e-7},
    {"softplus", f32_softplus, softplus, -INFINITY, INFINITY, 3.6, END},
    {"softplus near 0", f32_softplus, softplus, -10, INFINITY, 2.8, 0},
    {"log1p", f32_log1p, log1p, 0, 1, 3.0, 0},
    {"exp2", f32_exp2, exp2, -126, 0, 4.0, 0},
    {"exp2 near 0", f32_exp2, exp2, -0.1, 0, 2.2, 0},
};

static void check_at(const function *f, float x)
{
    float got = f->single(x);
    double want = f->exact((double)x);
    if (isnan(want) || isnan(got)) {
        if (isnan(want) && isnan(got)) return;
        fail_msg("%s(%a) = %a, exact %a", f->name, (double)x, (double)got, want);
    }
    float near = (float)want;
    if (got == near) return;
    double unit = (double)nextafterf(fabsf(near), INFINITY) - fabs((double)near);
    if (fabs((double)got - want) <= f->ulp * unit + f->floor) return;
    fail_msg("%s(%a) = %a, exact %a", f->name, (double)x, (double)got, want);
}

static void all_exponents(void **state)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const function *f = &functions[i];
        for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 9973) {
            float x = float_from((uint32_t)bits);
            if (isnan(x)) assert_true(isnan(f->single(x)));
            if ((double)x >= f->low && (double)x <= f->high) check_at(f, x);
        }
        const float special[] = {0.0f,      -0.0f, 1.0f,  -1.0f,  0x1p-149f, -0x1p-149f,
                                 0x1p-126f, 88.7f, 88.8f, -87.4f, -103.9f,   -104.1f,
                                 1e4f,      -1e4f, 3e38f, -3e38f, INFINITY,  -INFINITY};
        for (size_t k = 0; k < sizeof special / sizeof *special; k++)
            if ((double)special[k] >= f->low && (double)special[k] <= f->high) check_at(f, special[k]);
        assert_true(isnan(f->single(NAN)) && isnan(f->single(-NAN)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_exponents)};
    return cmocka_run_group_tests_name("kernel_element", tests, NULL, NULL);
}
