/* The functions of element.h for a register: the same bits as those of one number, lane by lane. */
#ifndef XPH_CPU_REF_VEC_ELEMENT_H
#define XPH_CPU_REF_VEC_ELEMENT_H

#include "cpu/ref/vec.h"

#if VEC_BYTES > 16

XPH_INLINE vec vec_minus_abs(vec x)
{
    return (vec)((vec_bits)x | 0x80000000u);
}
/* The size of one, the sign of the other. */
XPH_INLINE vec vec_copysign(vec size, vec sign)
{
    return (vec)(((vec_bits)size & 0x7fffffffu) | ((vec_bits)sign & 0x80000000u));
}

XPH_INLINE vec vec_exp_reduce(vec x, vec above, vec *r)
{
    const vec rounder = above + vec_all(ROUNDER);
    vec shifted = vec_fma(x, vec_all(0x1.715476p+0f), rounder), n = shifted - rounder;
    *r = vec_fma(n, vec_all(-LN2_LOW), vec_fma(n, vec_all(-LN2_HIGH), x));
    return shifted;
}

XPH_INLINE vec vec_exp_within(vec c)
{
    vec r, shifted = vec_exp_reduce(c, vec_all(126.0f), &r);
    vec q = vec_fma(vec_all(EXP_6), r, vec_all(EXP_5));
    q = vec_fma(q, r, vec_all(EXP_4));
    q = vec_fma(q, r, vec_all(EXP_3));
    q = vec_fma(q, r, vec_all(1.0f));
    q = vec_fma(q, r, vec_all(2.0f));
    return vec_fma(q, r, vec_all(2.0f)) * vec_power_of_two(shifted);
}

XPH_INLINE vec vec_exp(vec x)
{
    return vec_exp_within(vec_at_least(vec_at_most(x, vec_all(EXP_HIGHEST)), vec_all(EXP_LOWEST)));
}

/* e^-|x| */
XPH_INLINE vec vec_exp_down(vec x)
{
    return vec_exp_within(vec_at_least(vec_minus_abs(x), vec_all(EXP_LOWEST)));
}

XPH_INLINE vec vec_log1p_unit(vec x)
{
    vec s = x / (vec_all(2.0f) + x), w = s * s;
    vec q = vec_fma(vec_all(ATANH_9), w, vec_all(ATANH_7));
    q = vec_fma(q, w, vec_all(ATANH_5));
    q = vec_fma(q, w, vec_all(ATANH_3));
    q = vec_fma(q, w, vec_all(ATANH_1));
    return vec_fma(s * w, q, s + s);
}

XPH_INLINE vec vec_tanh(vec x)
{
    vec r, c = vec_at_least(vec_minus_abs(x), vec_all(-20.0f));
    vec scale = vec_power_of_two(vec_exp_reduce(c + c, vec_all(127.0f), &r));
    vec q = vec_fma(vec_all(TANH_6), r, vec_all(TANH_5));
    q = vec_fma(q, r, vec_all(TANH_4));
    q = vec_fma(q, r, vec_all(TANH_3));
    q = vec_fma(q, r, vec_all(0.5f));
    vec t = vec_fma(vec_fma(r * r, q, r), scale, scale - vec_all(1.0f));
    return vec_copysign(t / (vec_all(2.0f) + t), x);
}

XPH_INLINE vec vec_sigmoid(vec x)
{
    return vec_all(1.0f) / (vec_all(1.0f) + vec_exp(-x));
}

XPH_INLINE vec vec_silu(vec x)
{
    return x * vec_sigmoid(x);
}

XPH_INLINE vec vec_silu_slope(vec x)
{
    const vec one = vec_all(1.0f);
    vec c = vec_at_least(x, vec_all(-87.0f)), e = vec_exp(-c), s = one / (one + e);
    return vec_fma(c * s, e * s, s);
}

XPH_INLINE vec vec_softplus(vec x)
{
    return vec_at_least(x, vec_all(0.0f)) + vec_log1p_unit(vec_exp_down(x));
}

#else

#  define XPH_EACH_LANE(name)                                                                                \
    XPH_INLINE vec vec_##name(vec x)                                                                         \
    {                                                                                                        \
      for (int i = 0; i < VEC; i++) x[i] = real_##name(x[i]);                                                \
      return x;                                                                                              \
    }
XPH_EACH_LANE(exp)
XPH_EACH_LANE(exp_down)
XPH_EACH_LANE(log1p_unit)
XPH_EACH_LANE(tanh)
XPH_EACH_LANE(sigmoid)
XPH_EACH_LANE(silu)
XPH_EACH_LANE(silu_slope)
XPH_EACH_LANE(softplus)
#  undef XPH_EACH_LANE

#endif

#endif
