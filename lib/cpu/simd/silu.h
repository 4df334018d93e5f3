/* SiLU and its slope of a register: x / (1 + e^-x), one division and no absolute value, cheaper than by way
 * of real_sigmoid. Single precision: within 3 units in the last place; below 0, where SiLU fades, within 3 -
 * x / 4 of them; below -88 within 1e-38 |x| of 0. NaN stays NaN; infinity gives infinity or NaN. Same bits at
 * every width. */
#ifndef XPH_CPU_SIMD_SILU_H
#define XPH_CPU_SIMD_SILU_H

#include "cpu/simd/vec_element.h"

#if defined(XPH_REAL_F64)

XPH_INLINE vec silu_vec(vec x)
{
    for (int i = 0; i < VEC; i++) x[i] = x[i] / (R(1.0) + real_exp(-x[i]));
    return x;
}

/* SiLU, and in *slope its derivative. */
XPH_INLINE vec silu_slope_vec(vec x, vec *slope)
{
    for (int i = 0; i < VEC; i++) {
        (*slope)[i] = real_silu_slope(x[i]);
        x[i] = real_silu(x[i]);
    }
    return x;
}

#else

/* e^-x = part power, x taken within +-88; a NaN may become a number, both callers see x itself again. Rounded to
 * ROUNDER + 127, the low bits are the exponent as it stands in a float; 0 makes a power of 0. */
XPH_INLINE vec silu_exp(vec x, vec *power)
{
    const vec minus = vec_all(-0x1.715476p+0f), rounder = vec_all(ROUNDER + 127.0f);
    vec c = vec_within(x, 88.0f), shifted = vec_fma(c, minus, rounder),
        f = vec_fma(c, minus, rounder - shifted);
    vec q = vec_fma(vec_all(EXP2_5), f, vec_all(EXP2_4));
    q = vec_fma(q, f, vec_all(EXP2_3));
    q = vec_fma(q, f, vec_all(EXP2_2));
    q = vec_fma(q, f, vec_all(EXP2_1));
    q = vec_fma(q, f, vec_all(EXP2_0));
    *power = vec_power_of_two(shifted);
    return vec_fma(q, f, vec_all(1.0f));
}

XPH_INLINE vec silu_vec(vec x)
{
    vec power, part = silu_exp(x, &power);
    return x / vec_fma(part, power, vec_all(1.0f));
}

/* With s = sigmoid(x), 1 - s = e^-x s: slope = s (1 + x (1 - s)). */
XPH_INLINE vec silu_slope_vec(vec x, vec *slope)
{
    vec power, one = vec_all(1.0f), part = silu_exp(x, &power);
    vec e = part * power, s = one / (one + e);
    *slope = s * vec_fma(x, e * s, one);
    return x * s;
}

#endif

#endif
