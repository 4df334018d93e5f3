/* The functions of element.h for a vector: the same bits as those of one number, lane by lane. */
#ifndef XPH_CPU_SIMD_VEC_ELEMENT_H
#define XPH_CPU_SIMD_VEC_ELEMENT_H

#include "cpu/simd/vec.h"

/* vecs_...: of `count` vectors, a constant, step by step side by side. One after another, their chains of dependent
 * operations are longer than what a processor looks ahead. */
enum { MOST_ABREAST = VEC_ABREAST * VEC_ABREAST };
#define EACH_VEC(i, count) XPH_UNROLL for (int64_t i = 0; i < (count); i++)

#if defined(XPH_REAL_F32)

XPH_INLINE vec vec_abs(vec x)
{
    return (vec)((vec_bits)x & 0x7fffffffu);
}
/* The size of one, the sign of the other. */
XPH_INLINE vec vec_copysign(vec size, vec sign)
{
    return (vec)(((vec_bits)size & 0x7fffffffu) | ((vec_bits)sign & 0x80000000u));
}

/* power_of_two of every lane. */
XPH_INLINE vec vec_power_of_two(vec shifted)
{
    return (vec)((vec_bits)shifted << 23);
}

/* real_exp2_falling of every lane; near: none is below -126. */
XPH_INLINE void vecs_exp2_falling(vec *x, const int64_t count, const bool near)
{
    vec whole[MOST_ABREAST], q[MOST_ABREAST];
    if (!near) EACH_VEC(i, count) x[i] = vec_not_below(x[i], -126.0f);
    EACH_VEC(i, count) x[i] = vec_floor_parts(x[i], &whole[i]);
    EACH_VEC(i, count) q[i] = vec_fma(vec_all(FALL_5), x[i], vec_all(FALL_4));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], x[i], vec_all(FALL_3));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], x[i], vec_all(FALL_2));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], x[i], vec_all(FALL_1));
    EACH_VEC(i, count) x[i] = vec_times_two_to(vec_fma(q[i], x[i], vec_all(1.0f)), whole[i]);
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
    return vec_exp_within(vec_not_below(vec_not_above(x, EXP_HIGHEST), EXP_LOWEST));
}

XPH_INLINE void vecs_exp_minus(vec *x, vec *power, const int64_t count, float above, float unit)
{
    const vec rounder = vec_all(ROUNDER + above);
    vec q[MOST_ABREAST];
    EACH_VEC(i, count) power[i] = vec_fma(x[i], vec_all(-0x1.715476p+0f), rounder);
    EACH_VEC(i, count) x[i] = vec_fma(power[i] - rounder, vec_all(LN2_HIGH), x[i]);
    EACH_VEC(i, count) q[i] = vec_fma(vec_all(EXP_6 / 2 * unit), x[i], vec_all(-EXP_5 / 2 * unit));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], x[i], vec_all(EXP_4 / 2 * unit));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], x[i], vec_all(-EXP_3 / 2 * unit));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], x[i], vec_all(0.5f * unit));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], x[i], vec_all(-unit));
    EACH_VEC(i, count) power[i] = vec_power_of_two(power[i]);
    EACH_VEC(i, count) x[i] = vec_fma(q[i], x[i], vec_all(unit));
}

XPH_INLINE vec vec_exp_minus(vec x, float above, float unit, vec *power)
{
    vecs_exp_minus(&x, power, 1, above, unit);
    return x;
}

XPH_INLINE vec vec_minus_within(vec x, float lowest)
{
    return vec_not_below(vec_not_above(x, MINUS_HIGHEST), lowest);
}

/* e^-|x| */
XPH_INLINE void vecs_exp_down(vec *x, const int64_t count)
{
    vec power[MOST_ABREAST];
    EACH_VEC(i, count) x[i] = vec_not_above(vec_abs(x[i]), -MINUS_LOWEST);
    vecs_exp_minus(x, power, count, 126.0f, 2.0f);
    EACH_VEC(i, count) x[i] *= power[i];
}
XPH_INLINE vec vec_exp_down(vec x)
{
    vecs_exp_down(&x, 1);
    return x;
}

XPH_INLINE void vecs_one_and_exp_minus(vec *x, const int64_t count)
{
    vec power[MOST_ABREAST];
    EACH_VEC(i, count) x[i] = vec_minus_within(x[i], MINUS_LOWEST);
    vecs_exp_minus(x, power, count, 129.0f, 0.25f);
    EACH_VEC(i, count) x[i] = vec_fma(x[i], power[i], vec_all(1.0f));
}

XPH_INLINE vec vec_sigmoid(vec x)
{
    vecs_one_and_exp_minus(&x, 1);
    return vec_all(1.0f) / x;
}

XPH_INLINE void vecs_silu(vec *x, const int64_t count)
{
    vec one_and[MOST_ABREAST];
    EACH_VEC(i, count) one_and[i] = x[i];
    vecs_one_and_exp_minus(one_and, count);
    EACH_VEC(i, count) x[i] /= one_and[i];
}

/* The slope of SiLU, and sigmoid(x) but for x far below 0. */
XPH_INLINE vec vec_silu_parts(vec x, vec *sigmoid)
{
    const vec one = vec_all(1.0f);
    vec power, c = vec_minus_within(x, -86.5f), part = vec_exp_minus(c, 129.0f, 0.25f, &power);
    vec e = part * power, s = one / (one + e);
    *sigmoid = s;
    return vec_fma(c * (e * s), s, s);
}

XPH_INLINE vec vec_silu_slope(vec x)
{
    vec s;
    return vec_silu_parts(x, &s);
}

/* softplus(x), u = e^-|x|. */
XPH_INLINE void vecs_softplus_of(vec *x, const vec *u, const int64_t count)
{
    vec q[MOST_ABREAST];
    EACH_VEC(i, count) q[i] = vec_fma(vec_all(LOG_9), u[i], vec_all(LOG_8));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], u[i], vec_all(LOG_7));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], u[i], vec_all(LOG_6));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], u[i], vec_all(LOG_5));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], u[i], vec_all(LOG_4));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], u[i], vec_all(LOG_3));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], u[i], vec_all(LOG_2));
    EACH_VEC(i, count) q[i] = vec_fma(q[i], u[i], vec_all(LOG_1));
    EACH_VEC(i, count) x[i] = vec_fma(q[i], u[i], vec_at_least(x[i], vec_all(0.0f)));
}

XPH_INLINE void vecs_softplus(vec *x, const int64_t count)
{
    vec u[MOST_ABREAST];
    EACH_VEC(i, count) u[i] = x[i];
    vecs_exp_down(u, count);
    vecs_softplus_of(x, u, count);
}

/* softplus(x) and its slope sigmoid(x), from one exponential. */
XPH_INLINE vec vec_softplus_both(vec x, vec *slope)
{
    const vec one = vec_all(1.0f);
    vec u = vec_exp_down(x);
    *slope = vec_where_minus(x, u, one) / (one + u);
    vecs_softplus_of(&x, &u, 1);
    return x;
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
    vec r, c = -vec_not_above(vec_abs(x), 20.0f);
    vec scale = vec_power_of_two(vec_exp_reduce(c + c, vec_all(127.0f), &r));
    vec q = vec_fma(vec_all(TANH_6), r, vec_all(TANH_5));
    q = vec_fma(q, r, vec_all(TANH_4));
    q = vec_fma(q, r, vec_all(TANH_3));
    q = vec_fma(q, r, vec_all(0.5f));
    vec t = vec_fma(vec_fma(r * r, q, r), scale, scale - vec_all(1.0f));
    return vec_copysign(t / (vec_all(2.0f) + t), x);
}

/* Of 0 and below it is not right, NaN and infinity stay. */
XPH_INLINE vec vec_log(vec x)
{
    const vec one = vec_all(1.0f), least = vec_all(0x1p-126f);
    vec scale = vec_where_greater(least, x, vec_all(-23.0f), vec_all(0.0f));
    vec_int bits = (vec_int)vec_where_greater(least, x, x * vec_all(0x1p23f), x) - 0x3f3504f3;
    vec n = vec_of_int(bits >> 23) + scale, m = (vec)((bits & 0x7fffff) + 0x3f3504f3);
    vec s = (m - one) / (m + one), w = s * s;
    vec q = vec_fma(vec_all(0x1.dba25ep-3f), w, vec_all(0x1.bc8cf8p-3f));
    q = vec_fma(q, w, vec_all(0x1.24c926p-2f));
    q = vec_fma(q, w, vec_all(0x1.9998d4p-2f));
    q = vec_fma(q, w, vec_all(0x1.555556p-1f));
    vec part = vec_fma(s * w, q, s + s);
    vec y = vec_fma(n, vec_all(LN2_HIGH), vec_fma(n, vec_all(LN2_LOW), part));
    return vec_where_greater(vec_all(REAL_INFINITY), x, y, x);
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
XPH_EACH_LANE(log)
XPH_EACH_LANE(log1p_unit)
XPH_EACH_LANE(tanh)
XPH_EACH_LANE(sigmoid)
XPH_EACH_LANE(silu_slope)
#  undef XPH_EACH_LANE

XPH_INLINE void vecs_exp2_falling(vec *x, const int64_t count, const bool near)
{
    (void)near;
    EACH_VEC(i, count)
    for (int l = 0; l < VEC; l++) x[i][l] = real_exp2_falling(x[i][l]);
}
XPH_INLINE void vecs_silu(vec *x, const int64_t count)
{
    EACH_VEC(i, count)
    for (int l = 0; l < VEC; l++) x[i][l] = real_silu(x[i][l]);
}
XPH_INLINE void vecs_softplus(vec *x, const int64_t count)
{
    EACH_VEC(i, count)
    for (int l = 0; l < VEC; l++) x[i][l] = real_softplus(x[i][l]);
}
XPH_INLINE vec vec_silu_parts(vec x, vec *sigmoid)
{
    *sigmoid = vec_sigmoid(x);
    return vec_silu_slope(x);
}
XPH_INLINE vec vec_softplus_both(vec x, vec *slope)
{
    vec s = x;
    for (int i = 0; i < VEC; i++) {
        real u = real_exp_down(x[i]);
        s[i] = (x[i] < R(0.0) ? u : R(1.0)) / (R(1.0) + u);
    }
    *slope = s;
    vecs_softplus(&x, 1);
    return x;
}

#endif

/* Of one vector. */
XPH_INLINE vec vec_exp2_falling(vec x)
{
    vecs_exp2_falling(&x, 1, false);
    return x;
}
XPH_INLINE vec vec_silu(vec x)
{
    vecs_silu(&x, 1);
    return x;
}
XPH_INLINE vec vec_softplus(vec x)
{
    vecs_softplus(&x, 1);
    return x;
}

#endif
