/* Logarithm and exponential in double from + - * / alone, so that numbers made with them (initial weights)
 * have the same bits with every C library. For cold code: a few ulp, no special values beyond what is
 * said. */
#ifndef XPH_BASE_SCALAR_H
#define XPH_BASE_SCALAR_H

#include <stdint.h>
#include <string.h>

/* What a device's compiler needs before a function and a loop, and how it divides by a number that it knows: with the bits of
 * x / k, unless the quotient is subnormal. */
#ifndef XPH_ON_DEVICE
#  define XPH_ON_DEVICE
#endif
#ifndef XPH_UNROLLED
#  define XPH_UNROLLED
#endif
#ifndef XPH_DIVIDED
#  define XPH_DIVIDED(x, k) ((x) / (double)(k))
#endif

#define XPH_LN2_HIGH 0x1.62e42fee00000p-1 /* 33 bits: multiples up to 2^20 are exact */
#define XPH_LN2_LOW  0x1.a39ef35793c76p-33

/* log x for finite normal x > 0. x = 2^n m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh s, s =
 * (m-1)/(m+1). */
XPH_ON_DEVICE static inline double xph_log_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t low = 0x3FE6A09E667F3BCDu; /* sqrt(1/2) */
    int64_t n = (int64_t)(bits - low) >> 52;
    bits -= (uint64_t)n << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    double s = (m - 1.0) / (m + 1.0), w = s * s, sum = 0.0;
    XPH_UNROLLED
    for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / (double)k) * w; /* |s| < 0.172: s^24 < 5e-19 */
    return (double)n * XPH_LN2_HIGH + ((double)n * XPH_LN2_LOW + (2.0 * s + 2.0 * s * sum));
}

/* e^x for |x| <= 700. x = n ln2 + r, |r| <= ln2/2; Taylor series to r^17. */
XPH_ON_DEVICE static inline double xph_exp_double(double x)
{
    int32_t n = (int32_t)(XPH_DIVIDED(x, 0.6931471805599453) + (x < 0.0 ? -0.5 : 0.5));
    double r = (x - (double)n * XPH_LN2_HIGH) - (double)n * XPH_LN2_LOW, sum = 1.0, power;
    XPH_UNROLLED
    for (int k = 17; k >= 1; k--) sum = 1.0 + XPH_DIVIDED(sum * r, k);
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

/* e^-700 is next to nothing beside 1, and the smallest that xph_exp_double takes: below it is 0. Above 700: e^700. */
#define XPH_POWER_MOST 700.0

XPH_ON_DEVICE static inline double xph_power(double x)
{
    return x < -XPH_POWER_MOST ? 0.0 : xph_exp_double(x < XPH_POWER_MOST ? x : XPH_POWER_MOST);
}

#endif
