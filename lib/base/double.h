/* exp, log and what is made of them in double for any x, from + - * / alone, so that they have the same bits with every C
 * library. Within three ulp of the number, softplus within four; NaN gives NaN. What initial weights and returns are made of:
 * scalar.h. */
#ifndef XPH_BASE_DOUBLE_H
#define XPH_BASE_DOUBLE_H

#include "base/scalar.h"

#define XPH_LOG2_E 1.4426950408889634
#define XPH_SHIFT  0x1.8p52 /* added to numbers below 2^51, this leaves the nearest integer in the last bits */

/* 2^n, -1022 <= n <= 1023 */
static inline double xph_two_to(int64_t n)
{
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* The integer in the last bits of a number that XPH_SHIFT was added to. */
static inline int64_t xph_shifted(double x)
{
    const double zero = XPH_SHIFT;
    uint64_t bits, of_zero;
    memcpy(&bits, &x, sizeof bits);
    memcpy(&of_zero, &zero, sizeof of_zero);
    return (int64_t)(bits - of_zero);
}

/* x 2^n, |n| <= 2044, also where 2^n is no double. */
static inline double xph_times_two_to(double x, int64_t n)
{
    const int64_t half = n / 2;
    return x * xph_two_to(half) * xph_two_to(n - half);
}

/* e^r - 1 for |r| <= 0.35: Taylor's series to r^14. */
static inline double xph_expm1_near(double r)
{
    double sum = 1.0 / 87178291200.0;
    sum = sum * r + 1.0 / 6227020800.0;
    sum = sum * r + 1.0 / 479001600.0;
    sum = sum * r + 1.0 / 39916800.0;
    sum = sum * r + 1.0 / 3628800.0;
    sum = sum * r + 1.0 / 362880.0;
    sum = sum * r + 1.0 / 40320.0;
    sum = sum * r + 1.0 / 5040.0;
    sum = sum * r + 1.0 / 720.0;
    sum = sum * r + 1.0 / 120.0;
    sum = sum * r + 1.0 / 24.0;
    sum = sum * r + 1.0 / 6.0;
    sum = sum * r + 0.5;
    return r + r * r * sum;
}

static inline double xph_within(double x, double most)
{
    return x > most ? most : x < -most ? -most : x;
}

/* x = n ln2 + r */
static inline double xph_exp_of(double x)
{
    x = xph_within(x, 1100.0); /* infinite, or 0 */
    const double shifted = x * XPH_LOG2_E + XPH_SHIFT, n = shifted - XPH_SHIFT;
    const double r = (x - n * XPH_LN2_HIGH) - n * XPH_LN2_LOW;
    return xph_times_two_to(1.0 + xph_expm1_near(r), xph_shifted(shifted));
}

static inline double xph_exp2_of(double x)
{
    x = xph_within(x, 1100.0);
    const double shifted = x + XPH_SHIFT;
    const double r = (x - (shifted - XPH_SHIFT)) * 0.6931471805599453;
    return xph_times_two_to(1.0 + xph_expm1_near(r), xph_shifted(shifted));
}

/* (e^2a - 1) / (e^2a + 1), in which nothing cancels. */
static inline double xph_tanh_of(double x)
{
    const double a = xph_within(x < 0.0 ? -x : x, 20.0);
    const double shifted = 2.0 * a * XPH_LOG2_E + XPH_SHIFT, n = shifted - XPH_SHIFT;
    const double r = (2.0 * a - n * XPH_LN2_HIGH) - n * XPH_LN2_LOW;
    const double power = xph_two_to(xph_shifted(shifted)), e = power * xph_expm1_near(r) + (power - 1.0);
    return __builtin_copysign(e / (e + 2.0), x);
}

static inline double xph_log_of(double x)
{
    if (x - x != 0.0) return x > 0.0 ? x : x - x;
    if (x <= 0.0) return x < 0.0 ? __builtin_nan("") : -__builtin_inf();
    if (x < 0x1p-1022) return xph_log_double(x * 0x1p54) - 54.0 * 0.6931471805599453;
    return xph_log_double(x);
}

/* log(1 + u), 0 <= u <= 1: the logarithm of what 1 + u is rounded to, and the rest by its slope. */
static inline double xph_log1p_of(double u)
{
    const double y = 1.0 + u;
    return y == y ? xph_log_double(y) + (u - (y - 1.0)) / y : y;
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|) */
static inline double xph_softplus_of(double x)
{
    return (x > 0.0 ? x : 0.0) + xph_log1p_of(xph_exp_of(x > 0.0 ? -x : x));
}

#endif
