/* A register of reals, for the few loops that a compiler does not keep in registers by itself (matrix
 * products, the scan). The width differs between sets, results do not: every lane is an output of its own.
 * Compiler vector extensions, and the fused multiply-add of the set, which those lack.
 */
#ifndef XPH_CPU_SIMD_VEC_H
#define XPH_CPU_SIMD_VEC_H

#include "cpu/simd/real.h"

#if defined(XPH_REAL_F32) && (defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__)))
#  include <immintrin.h>
#endif

#if defined(XPH_REAL_F32) && defined(__AVX512F__)
#  define VEC_BYTES 64
#elif defined(XPH_REAL_F32) && defined(__AVX2__) && defined(__FMA__)
#  define VEC_BYTES 32
#else
#  define VEC_BYTES 16
#endif

typedef real vec __attribute__((vector_size(VEC_BYTES)));
enum { VEC = VEC_BYTES / sizeof(real) };

/* Without wide registers there is nothing to keep in them, and a compiler that must unroll such loops, with a
 * sanitizer's checks in each turn, needs minutes for a file. */
#if VEC_BYTES == 16 || defined(EXPHIL_SANITIZE)
#  define XPH_UNROLL
#elif defined(__clang__)
#  define XPH_UNROLL _Pragma("clang loop unroll(full)")
#else
#  define XPH_UNROLL _Pragma("GCC unroll 16")
#endif

XPH_INLINE vec vec_load(const real *from)
{
    vec v;
    memcpy(&v, from, sizeof v);
    return v;
}

XPH_INLINE void vec_store(real *to, vec v)
{
    memcpy(to, &v, sizeof v);
}

#if VEC_BYTES == 64
XPH_INLINE vec vec_all(real x)
{
    return (vec)_mm512_set1_ps(x);
}
XPH_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
/* x < low ? low : x; a NaN in x stays. */
XPH_INLINE vec vec_at_least(vec x, vec low)
{
    return (vec)_mm512_max_ps((__m512)low, (__m512)x);
}
/* x > high ? high : x; a NaN in x stays. */
XPH_INLINE vec vec_at_most(vec x, vec high)
{
    return (vec)_mm512_min_ps((__m512)high, (__m512)x);
}
#elif VEC_BYTES == 32
XPH_INLINE vec vec_all(real x)
{
    return (vec)_mm256_set1_ps(x);
}
XPH_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
/* x < low ? low : x; a NaN in x stays. */
XPH_INLINE vec vec_at_least(vec x, vec low)
{
    return (vec)_mm256_max_ps((__m256)low, (__m256)x);
}
/* x > high ? high : x; a NaN in x stays. */
XPH_INLINE vec vec_at_most(vec x, vec high)
{
    return (vec)_mm256_min_ps((__m256)high, (__m256)x);
}
#else
XPH_INLINE vec vec_all(real x)
{
    vec v = {0};
    for (int i = 0; i < VEC; i++) v[i] = x;
    return v;
}

XPH_INLINE vec vec_fma(vec a, vec b, vec c)
{
    for (int i = 0; i < VEC; i++) c[i] = FMA(a[i], b[i], c[i]);
    return c;
}
#endif

#if VEC_BYTES > 16
typedef uint32_t vec_bits __attribute__((vector_size(VEC_BYTES)));

/* power_of_two of every lane. */
XPH_INLINE vec vec_power_of_two(vec shifted)
{
    return (vec)((vec_bits)shifted << 23);
}

/* The polynomial of real_exp2_falling. */
XPH_INLINE vec vec_fall(vec f)
{
    vec q = vec_fma(vec_all(FALL_5), f, vec_all(FALL_4));
    q = vec_fma(q, f, vec_all(FALL_3));
    q = vec_fma(q, f, vec_all(FALL_2));
    q = vec_fma(q, f, vec_all(FALL_1));
    return vec_fma(q, f, vec_all(1.0f));
}
#endif

/* real_exp2_falling of every lane; _near: of lanes that are not below -126. */
#if VEC_BYTES == 64
XPH_INLINE vec vec_exp2_falling_near(vec x)
{
    /* 1 | 8: down, in silence */
    return (vec)_mm512_scalef_ps((__m512)vec_fall((vec)_mm512_reduce_ps((__m512)x, 9)), (__m512)x);
}
XPH_INLINE vec vec_exp2_falling(vec x)
{
    return vec_exp2_falling_near(vec_at_least(x, vec_all(-126.0f)));
}
#elif VEC_BYTES == 32
XPH_INLINE vec vec_exp2_falling(vec x)
{
    vec c = vec_at_least(x, vec_all(-126.0f)), below = (vec)_mm256_floor_ps((__m256)c), f = c - below;
    __m256 above = _mm256_cmp_ps((__m256)(f + below), (__m256)c, _CMP_GT_OQ);
    f = (vec)_mm256_add_epi32((__m256i)f, (__m256i)above);
    return vec_fall(f) * vec_power_of_two(below + vec_all(ROUNDER + 127.0f));
}
XPH_INLINE vec vec_exp2_falling_near(vec x)
{
    return vec_exp2_falling(x);
}
#else
XPH_INLINE vec vec_exp2_falling(vec x)
{
    for (int i = 0; i < VEC; i++) x[i] = real_exp2_falling(x[i]);
    return x;
}
XPH_INLINE vec vec_exp2_falling_near(vec x)
{
    return vec_exp2_falling(x);
}
#endif

#endif
