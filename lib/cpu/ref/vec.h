/* A register of reals, for the few loops that a compiler does not keep in registers by itself (matrix products). The
 * width differs between sets, results do not: every lane is an output of its own. Compiler vector extensions, and the
 * fused multiply-add of the set, which those lack.
 */
#ifndef XPH_CPU_REF_VEC_H
#define XPH_CPU_REF_VEC_H

#include "cpu/ref/real.h"

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

#if defined(__clang__)
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
#elif VEC_BYTES == 32
XPH_INLINE vec vec_all(real x)
{
    return (vec)_mm256_set1_ps(x);
}
XPH_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
#else
XPH_INLINE vec vec_all(real x)
{
    vec v;
    for (int i = 0; i < VEC; i++) v[i] = x;
    return v;
}

XPH_INLINE vec vec_fma(vec a, vec b, vec c)
{
    for (int i = 0; i < VEC; i++) c[i] = FMA(a[i], b[i], c[i]);
    return c;
}
#endif

#endif
