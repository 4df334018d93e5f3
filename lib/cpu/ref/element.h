/* Functions of one number for the kernels: exp, log, log1p, sigmoid, SiLU, tanh, softplus. Part of real.h.
 *
 * Single precision: own polynomials (Chebyshev fits made with 120 bits), no branches and no tables, so that
 * loops over them vectorise and give the same bits at every width. Within a few ulp on the whole range,
 * denormal results included; NaN gives NaN; nothing overflows on the way. Double precision is the reference
 * and uses libm.
 */
#ifndef XPH_CPU_REF_ELEMENT_H
#define XPH_CPU_REF_ELEMENT_H

#if defined(XPH_REAL_F64)

#  include <math.h>

XPH_INLINE real real_exp(real x)
{
    return exp(x);
}
XPH_INLINE real real_log(real x)
{
    return log(x);
}
XPH_INLINE real real_log1p_unit(real x)
{
    return log1p(x);
}
XPH_INLINE real real_tanh(real x)
{
    return tanh(x);
}
XPH_INLINE real real_exp2_falling(real x)
{
    return exp2(x);
}

#else

XPH_INLINE uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

XPH_INLINE float float_from(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x + 1.5*2^23 rounds x to the nearest integer, which then stands in the low bits of the sum. */
#  define ROUNDER  12582912.0f
#  define LN2_HIGH 0x1.62e43p-1f
#  define LN2_LOW  (-0x1.05c61p-29f)

/* e^r - 1 for |r| <= ln2/2; error of the polynomial 8e-9. */
XPH_INLINE float exp_reduced(float r)
{
    float q = FMA(0x1.6d117cp-10f, r, 0x1.120be2p-7f);
    q = FMA(q, r, 0x1.555518p-5f);
    q = FMA(q, r, 0x1.5554dcp-3f);
    q = FMA(q, r, 0.5f);
    return FMA(r * r, q, r);
}

/* x = n ln2 + r; returns n as an integer in two's complement. x within +-120. */
XPH_INLINE int32_t exp_reduce(float x, float *r)
{
    float shifted = FMA(x, 0x1.715476p+0f, ROUNDER);
    float n = shifted - ROUNDER;
    *r = FMA(n, -LN2_LOW, FMA(n, -LN2_HIGH, x));
    return (int32_t)(float_bits(shifted) - float_bits(ROUNDER));
}

XPH_INLINE float power_of_two(int32_t n)
{
    return float_from((uint32_t)(n + 127) << 23);
}

/* Two factors of 2^(n/2): the first product is exact, the second rounds once, also into the denormals and to
 * infinity. A NaN passes both comparisons and every product. */
XPH_INLINE real real_exp(real x)
{
    float r, c = x > 89.0f ? 89.0f : x;
    c = c < -104.0f ? -104.0f : c;
    int32_t n = exp_reduce(c, &r), half = n >> 1;
    return (exp_reduced(r) + 1.0f) * power_of_two(half) * power_of_two(n - half);
}

/* 2^f = 1 + EXP2_0 f + ... + EXP2_5 f^6 for |f| <= 1/2, within 4e-9. */
#  define EXP2_0   0x1.62e430p-1f
#  define EXP2_1   0x1.ebfbe0p-3f
#  define EXP2_2   0x1.c6af6cp-5f
#  define EXP2_3   0x1.3b2a52p-7f
#  define EXP2_4   0x1.5f0956p-10f
#  define EXP2_5   0x1.441412p-13f

/* 2^x for x <= 0, cheaper than exp: no infinity to reach, and below 2^-126 it stays there. The low bits of
 * `shifted` are the exponent; those above it leave by the shift. */
XPH_INLINE real real_exp2_falling(real x)
{
    float c = x < -126.0f ? -126.0f : x;
    float shifted = c + ROUNDER, f = c - (shifted - ROUNDER);
    float q = FMA(EXP2_5, f, EXP2_4);
    q = FMA(q, f, EXP2_3);
    q = FMA(q, f, EXP2_2);
    q = FMA(q, f, EXP2_1);
    q = FMA(q, f, EXP2_0);
    return FMA(q, f, 1.0f) * float_from((float_bits(shifted) + 127u) << 23);
}

/* 2 atanh(s) for |s| <= 1/3; error of the polynomial 4e-10. */
XPH_INLINE float twice_atanh(float s)
{
    float w = s * s;
    float q = FMA(0x1.dba25ep-3f, w, 0x1.bc8cf8p-3f);
    q = FMA(q, w, 0x1.24c926p-2f);
    q = FMA(q, w, 0x1.9998d4p-2f);
    q = FMA(q, w, 0x1.555556p-1f);
    return FMA(s * w, q, 2.0f * s);
}

/* log(1 + x) for 0 <= x <= 1, keeping every digit of a tiny x. */
XPH_INLINE real real_log1p_unit(real x)
{
    return twice_atanh(x / (2.0f + x));
}

/* x = 2^n m with m in [sqrt(1/2), sqrt(2)); log x = n ln2 + 2 atanh((m-1)/(m+1)). Denormals are scaled up
 * first. */
XPH_INLINE real real_log(real x)
{
    float tiny = x < 0x1p-126f ? 0x1p23f : 1.0f, scale = x < 0x1p-126f ? -23.0f : 0.0f;
    uint32_t bits = float_bits(x * tiny) - 0x3f3504f3u;
    float n = (float)((int32_t)bits >> 23) + scale;
    float m = float_from((bits & 0x7fffffu) + 0x3f3504f3u);
    float part = twice_atanh((m - 1.0f) / (m + 1.0f));
    float y = FMA(n, LN2_HIGH, FMA(n, LN2_LOW, part));
    y = x < 0.0f ? x - x + (REAL_INFINITY - REAL_INFINITY) : y;
    y = x == 0.0f ? -REAL_INFINITY : y;
    return x < REAL_INFINITY ? y : x;
}

/* t = e^(-2|x|) - 1; tanh|x| = -t / (2 + t). From |x| = 10 on the result is 1 in single precision. */
XPH_INLINE real real_tanh(real x)
{
    float r, a = REAL_ABS(x), c = a > 20.0f ? 20.0f : a;
    int32_t n = exp_reduce(-2.0f * c, &r);
    float scale = power_of_two(n), t = FMA(exp_reduced(r), scale, scale - 1.0f);
    return __builtin_copysignf(t / (2.0f + t), x);
}

#endif

/* 1 / (1 + e^-x), through e^-|x| so that neither side overflows or loses digits. */
XPH_INLINE real real_sigmoid(real x)
{
    real e = real_exp(-REAL_ABS(x));
    return (x < R(0.0) ? e : R(1.0)) / (R(1.0) + e);
}

XPH_INLINE real real_silu(real x)
{
    return x * real_sigmoid(x);
}

/* Derivative of SiLU: s + x s (1 - s) with s = sigmoid(x), 1 - s = sigmoid(-x). */
XPH_INLINE real real_silu_slope(real x)
{
    real e = real_exp(-REAL_ABS(x)), large = R(1.0) / (R(1.0) + e), small = e * large;
    real s = x < R(0.0) ? small : large, rest = x < R(0.0) ? large : small;
    return FMA(x * s, rest, s);
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|). */
XPH_INLINE real real_softplus(real x)
{
    return (x > R(0.0) ? x : R(0.0)) + real_log1p_unit(real_exp(-REAL_ABS(x)));
}

#endif
