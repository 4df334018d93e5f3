/* See powers.h. Plain loops over a strip of numbers, in which a compiler finds vectors on every processor. */
#include "learn/powers.h"

#define STRIP 16

/* x = n ln2 + r: r in the place of x, and 2^n, or 0 where e^x is. */
static void reduce(double *restrict x, double *restrict power)
{
    uint64_t bits[STRIP];
    for (int i = 0; i < STRIP; i++) {
        const double above = x[i] < -XPH_POWER_MOST ? -XPH_POWER_MOST : x[i];
        const double at = above < XPH_POWER_MOST ? above : XPH_POWER_MOST;
        const int32_t n = (int32_t)(at / 0.6931471805599453 + (at < 0.0 ? -0.5 : 0.5));
        const uint64_t exponent = (uint64_t)(n + 1023) << 52;
        bits[i] = x[i] < -XPH_POWER_MOST ? 0 : exponent;
        x[i] = (at - (double)n * XPH_LN2_HIGH) - (double)n * XPH_LN2_LOW;
    }
    memcpy(power, bits, sizeof bits);
}

/* The series of xph_exp_double, in its order. */
static void strip(double *restrict x)
{
    double power[STRIP];
    reduce(x, power);
    for (int i = 0; i < STRIP; i++) {
        const double r = x[i];
        double sum = 1.0 + r / 17.0;
#define TERM(k) sum = 1.0 + sum * r / (double)(k)
        TERM(16), TERM(15), TERM(14), TERM(13), TERM(12), TERM(11), TERM(10), TERM(9);
        TERM(8), TERM(7), TERM(6), TERM(5), TERM(4), TERM(3), TERM(2), TERM(1);
#undef TERM
        x[i] = sum * power[i];
    }
}

void xph_powers(double *x, int64_t n)
{
    for (; n >= STRIP; n -= STRIP, x += STRIP) strip(x);
    for (int64_t i = 0; n < STRIP / 2 && i < n; i++) x[i] = xph_power(x[i]); /* faster than a whole strip */
    if (n < STRIP / 2) return;
    double rest[STRIP] = {0.0};
    memcpy(rest, x, (size_t)n * sizeof *x);
    strip(rest);
    memcpy(x, rest, (size_t)n * sizeof *x);
}
