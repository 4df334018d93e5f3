/* Functions of one number: exp, log, log1p, sigmoid, SiLU, tanh, softplus. Part of real.h; the same for vectors:
 * vec_element.h.
 *
 * Single precision: own polynomials (Chebyshev fits made with 150 bits), no branches and no tables, one
 * division at most, so that loops over them vectorise and give the same bits at every width. Within a few
 * ulp on the whole range; NaN gives NaN; nothing overflows on the way. Denormals are slow on many
 * processors, so an exponential below 2^-125.5 is 0, and what is made of it too. Double precision, the
 * reference, has those of base/double.h.
 */
#ifndef XPH_CPU_SIMD_ELEMENT_H
#define XPH_CPU_SIMD_ELEMENT_H

#if defined(XPH_REAL_F64)

#  include "base/double.h"

XPH_INLINE real real_exp(real x)
{
    return xph_exp_of(x);
}
XPH_INLINE real real_log(real x)
{
    return xph_log_of(x);
}
XPH_INLINE real real_log1p_unit(real x)
{
    return xph_log1p_of(x);
}
XPH_INLINE real real_tanh(real x)
{
    return xph_tanh_of(x);
}
XPH_INLINE real real_exp2_falling(real x)
{
    return xph_exp2_of(x);
}
/* e^-|x| */
XPH_INLINE real real_exp_down(real x)
{
    return xph_exp_of(-REAL_ABS(x));
}
XPH_INLINE real real_sigmoid(real x)
{
    return 1.0 / (1.0 + xph_exp_of(-x));
}
XPH_INLINE real real_silu(real x)
{
    return x / (1.0 + xph_exp_of(-x));
}
/* Derivative of SiLU: s + x s (1 - s) with s = sigmoid(x), 1 - s = sigmoid(-x). */
XPH_INLINE real real_silu_slope(real x)
{
    double s = real_sigmoid(x);
    return FMA(x * s, real_sigmoid(-x), s);
}
XPH_INLINE real real_softplus(real x)
{
    return xph_softplus_of(x);
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
#  define ROUNDER       12582912.0f
#  define LN2_HIGH      0x1.62e43p-1f
#  define LN2_LOW       (-0x1.05c61p-29f)

/* 2 e^r = 2 + 2 r + r^2 + EXP_3 r^3 + ... + EXP_6 r^6 for |r| <= ln2/2, within 5e-9. */
#  define EXP_3         0x1.555466p-2f
#  define EXP_4         0x1.5552fep-4f
#  define EXP_5         0x1.1257dap-6f
#  define EXP_6         0x1.6ff26cp-9f
#  define EXP_HIGHEST   88.8f    /* rounds to 2^128 */
#  define EXP_LOWEST    (-87.5f) /* rounds to 2^-126, where exp ends */

/* x = n ln2 + r, x within +-120; the low bits of what is returned are n + above. */
XPH_INLINE float exp_reduce(float x, float above, float *r)
{
    float shifted = FMA(x, 0x1.715476p+0f, ROUNDER + above), n = shifted - (ROUNDER + above);
    *r = FMA(n, -LN2_LOW, FMA(n, -LN2_HIGH, x));
    return shifted;
}

/* 2^(k - 127) of the k in the low bits of shifted, 0 <= k <= 255: 0 and infinity at the ends. */
XPH_INLINE float power_of_two(float shifted)
{
    return float_from(float_bits(shifted) << 23);
}

/* e^c for c in [EXP_LOWEST, EXP_HIGHEST] or NaN: twice the polynomial, times 2^(n-1), which is a number up
 * to n = 128 and 0 from n = -126 down: the product overflows where it should, and is never a denormal. */
XPH_INLINE float exp_within(float c)
{
    float r, shifted = exp_reduce(c, 126.0f, &r);
    float q = FMA(EXP_6, r, EXP_5);
    q = FMA(q, r, EXP_4);
    q = FMA(q, r, EXP_3);
    q = FMA(q, r, 1.0f);
    q = FMA(q, r, 2.0f);
    return FMA(q, r, 2.0f) * power_of_two(shifted);
}

XPH_INLINE real real_exp(real x)
{
    float c = x > EXP_HIGHEST ? EXP_HIGHEST : x;
    return exp_within(c < EXP_LOWEST ? EXP_LOWEST : c);
}

/* For x within [-87.5, 89] or NaN: e^-x = part * power, part = unit * e^-r, power = 2^(n + above - 127),
 * -x = n ln2 - r. ln2 in one piece: |n| 2^-29 is lost, which the quotients and sums below bear. */
#  define MINUS_LOWEST  (-87.5f)
#  define MINUS_HIGHEST 89.0f
XPH_INLINE float exp_minus(float x, float above, float unit, float *power)
{
    float shifted = FMA(x, -0x1.715476p+0f, ROUNDER + above), n = shifted - (ROUNDER + above);
    float r = FMA(n, LN2_HIGH, x);
    float q = FMA(EXP_6 / 2 * unit, r, -EXP_5 / 2 * unit);
    q = FMA(q, r, EXP_4 / 2 * unit);
    q = FMA(q, r, -EXP_3 / 2 * unit);
    q = FMA(q, r, 0.5f * unit);
    q = FMA(q, r, -unit);
    *power = power_of_two(shifted);
    return FMA(q, r, unit);
}

XPH_INLINE float minus_within(float x, float lowest)
{
    float c = x > MINUS_HIGHEST ? MINUS_HIGHEST : x;
    return c < lowest ? lowest : c;
}

/* e^-|x|; twice a part and half a power, as in exp_within. */
XPH_INLINE real real_exp_down(real x)
{
    float size = REAL_ABS(x), power;
    float part = exp_minus(size > -MINUS_LOWEST ? -MINUS_LOWEST : size, 126.0f, 2.0f, &power);
    return part * power;
}

/* 1 + e^-x; a quarter of the part and four times the power, so that it is infinite from 2^125.5 on, and
 * what is divided by it no denormal. */
XPH_INLINE float one_and_exp_minus(float x)
{
    float power, part = exp_minus(minus_within(x, MINUS_LOWEST), 129.0f, 0.25f, &power);
    return FMA(part, power, 1.0f);
}

XPH_INLINE real real_sigmoid(real x)
{
    return 1.0f / one_and_exp_minus(x);
}

XPH_INLINE real real_silu(real x)
{
    return x / one_and_exp_minus(x);
}

/* Derivative of SiLU: s + x s (1 - s) with s = sigmoid(x), 1 - s = e^-x s; e^-x stays finite here. */
XPH_INLINE real real_silu_slope(real x)
{
    float power, c = minus_within(x, -86.5f), part = exp_minus(c, 129.0f, 0.25f, &power);
    float e = part * power, s = 1.0f / (1.0f + e);
    return FMA(c * (e * s), s, s);
}

/* log(1 + u) = LOG_1 u + ... + LOG_9 u^9 for 0 <= u <= 1, within 7.2e-8 of itself. */
#  define LOG_1         0x1.fffffep-1f
#  define LOG_2         (-0x1.fffda0p-2f)
#  define LOG_3         0x1.5518fep-2f
#  define LOG_4         (-0x1.fb49bep-3f)
#  define LOG_5         0x1.813728p-3f
#  define LOG_6         (-0x1.0a7e2cp-3f)
#  define LOG_7         0x1.202416p-4f
#  define LOG_8         (-0x1.925308p-6f)
#  define LOG_9         0x1.0463a4p-8f

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|); no division. */
XPH_INLINE real real_softplus(real x)
{
    float u = real_exp_down(x), q = FMA(LOG_9, u, LOG_8);
    q = FMA(q, u, LOG_7);
    q = FMA(q, u, LOG_6);
    q = FMA(q, u, LOG_5);
    q = FMA(q, u, LOG_4);
    q = FMA(q, u, LOG_3);
    q = FMA(q, u, LOG_2);
    q = FMA(q, u, LOG_1);
    return FMA(q, u, x > 0.0f ? x : 0.0f);
}

/* 2^f = 1 + EXP2_0 f + ... + EXP2_5 f^6 for |f| <= 1/2, within 4e-9. */
#  define EXP2_0        0x1.62e430p-1f
#  define EXP2_1        0x1.ebfbe0p-3f
#  define EXP2_2        0x1.c6af6cp-5f
#  define EXP2_3        0x1.3b2a52p-7f
#  define EXP2_4        0x1.5f0956p-10f
#  define EXP2_5        0x1.441412p-13f

/* 2^f = 1 + FALL_1 f + ... + FALL_5 f^5 for 0 <= f <= 1, exact at 0, within 1.8e-7, and 2.5e-8 above 0.9:
 * a decay near 1 is remembered for long, so its errors count for more. There f comes rounded down, which
 * FALL_1 to FALL_3 make up for: on average a decay of 0.99 or more is off by less than 6e-9. */
#  define FALL_1        0x1.62e530p-1f
#  define FALL_2        0x1.ebc832p-3f
#  define FALL_3        0x1.ca0f7ap-5f
#  define FALL_4        0x1.22cd16p-7f
#  define FALL_5        0x1.f92ee6p-10f

/* 2^x for x <= 0, cheaper than exp: no infinity to reach, and below 2^-126 it stays there. f = x -
 * floor(x), this difference rounded down too, as vreduceps has it: where it is not exact, close to 1, the
 * number before it. */
XPH_INLINE real real_exp2_falling(real x)
{
    float c = x < -126.0f ? -126.0f : x;
    float shifted = c + ROUNDER, near = shifted - ROUNDER;
    float below = near > c ? near - 1.0f : near, f = c - below;
    f = float_from(float_bits(f) - (f + below > c ? 1u : 0u));
    float q = FMA(FALL_5, f, FALL_4);
    q = FMA(q, f, FALL_3);
    q = FMA(q, f, FALL_2);
    q = FMA(q, f, FALL_1);
    return FMA(q, f, 1.0f) * power_of_two(below + (ROUNDER + 127.0f));
}

/* 2 atanh(s) = 2 s + s^3 (ATANH_1 + ATANH_3 s^2 + ...) for |s| <= 1/3, within 4e-10. */
#  define ATANH_1       0x1.555556p-1f
#  define ATANH_3       0x1.9998d4p-2f
#  define ATANH_5       0x1.24c926p-2f
#  define ATANH_7       0x1.bc8cf8p-3f
#  define ATANH_9       0x1.dba25ep-3f
XPH_INLINE float twice_atanh(float s)
{
    float w = s * s, q = FMA(ATANH_9, w, ATANH_7);
    q = FMA(q, w, ATANH_5);
    q = FMA(q, w, ATANH_3);
    q = FMA(q, w, ATANH_1);
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

#  define TANH_3 0x1.5554dcp-3f
#  define TANH_4 0x1.555518p-5f
#  define TANH_5 0x1.120be2p-7f
#  define TANH_6 0x1.6d117cp-10f

/* t = e^(-2|x|) - 1; tanh|x| = -t / (2 + t). From |x| = 10 on the result is 1 in single precision. e^r - 1 =
 * r + r^2 q here, which keeps the digits of a tiny r; error of the polynomial 8e-9. */
XPH_INLINE real real_tanh(real x)
{
    float r, a = REAL_ABS(x), shifted = exp_reduce(-2.0f * (a > 20.0f ? 20.0f : a), 127.0f, &r);
    float q = FMA(TANH_6, r, TANH_5);
    q = FMA(q, r, TANH_4);
    q = FMA(q, r, TANH_3);
    q = FMA(q, r, 0.5f);
    float scale = power_of_two(shifted), t = FMA(FMA(r * r, q, r), scale, scale - 1.0f);
    return __builtin_copysignf(t / (2.0f + t), x);
}

#endif

#endif
