/* The logarithm of a register of positive numbers: the bits of real_log, lane by lane. */
#ifndef XPH_CPU_SIMD_VEC_LOG_H
#define XPH_CPU_SIMD_VEC_LOG_H

#include "cpu/simd/lanes.h"

#if VEC_BYTES > 16
typedef int32_t vec_int __attribute__((vector_size(VEC_BYTES)));

XPH_INLINE vec vec_of_int(vec_int n)
{
#  if VEC_BYTES == 64
    return (vec)_mm512_cvtepi32_ps((__m512i)n);
#  else
    return (vec)_mm256_cvtepi32_ps((__m256i)n);
#  endif
}

/* Of 0 and below it is not right, NaN and infinity stay. */
XPH_INLINE vec vec_log(vec x)
{
    const vec one = vec_all(1.0f), least = vec_all(0x1p-126f);
    vec scale = vec_larger(least, x, vec_all(-23.0f), vec_all(0.0f));
    vec_int bits = (vec_int)vec_larger(least, x, x * vec_all(0x1p23f), x) - 0x3f3504f3;
    vec n = vec_of_int(bits >> 23) + scale, m = (vec)((bits & 0x7fffff) + 0x3f3504f3);
    vec s = (m - one) / (m + one), w = s * s;
    vec q = vec_fma(vec_all(0x1.dba25ep-3f), w, vec_all(0x1.bc8cf8p-3f));
    q = vec_fma(q, w, vec_all(0x1.24c926p-2f));
    q = vec_fma(q, w, vec_all(0x1.9998d4p-2f));
    q = vec_fma(q, w, vec_all(0x1.555556p-1f));
    vec part = vec_fma(s * w, q, s + s);
    vec y = vec_fma(n, vec_all(LN2_HIGH), vec_fma(n, vec_all(LN2_LOW), part));
    return vec_larger(vec_all(REAL_INFINITY), x, y, x);
}
#else
XPH_INLINE vec vec_log(vec x)
{
    for (int i = 0; i < VEC; i++) x[i] = real_log(x[i]);
    return x;
}
#endif

#endif
