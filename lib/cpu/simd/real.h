/* What a real is in this set, -DXPH_REAL_F32 or -DXPH_REAL_F64, and its functions of one number.
 *
 * a*b+c is written FMA(a, b, c), which rounds once on every processor (fma.h), and contraction is off, so that every
 * compiler rounds alike. Single precision uses no libm but sqrtf, which IEEE 754 fixes. */
#ifndef XPH_CPU_SIMD_REAL_H
#define XPH_CPU_SIMD_REAL_H

#include "cpu/simd/fma.h"

#if defined(XPH_REAL_F32)
typedef float real;
#  define R(number)     number##f
#  define REAL_SQRT(x)  __builtin_sqrtf(x)
#  define REAL_ABS(x)   __builtin_fabsf(x)
#  define REAL_INFINITY __builtin_inff()
#elif defined(XPH_REAL_F64)
typedef double real;
#  define R(number)     number
#  define REAL_SQRT(x)  __builtin_sqrt(x)
#  define REAL_ABS(x)   __builtin_fabs(x)
#  define REAL_INFINITY __builtin_inf()
#else
#  error "define XPH_REAL_F32 or XPH_REAL_F64"
#endif

#if defined(XPH_REAL_F32) && defined(XPH_SIMD128) && defined(__wasm_relaxed_simd__)
#  include <wasm_simd128.h>
#  define FMA(a, b, c)                                                                                       \
    wasm_f32x4_extract_lane(                                                                                 \
        wasm_f32x4_relaxed_madd(wasm_f32x4_splat(a), wasm_f32x4_splat(b), wasm_f32x4_splat(c)), 0)
#elif defined(XPH_REAL_F32) && defined(XPH_HAVE_FMA)
#  define FMA(a, b, c) __builtin_fmaf(a, b, c)
#elif defined(XPH_REAL_F32)
#  define FMA(a, b, c) xph_fmaf(a, b, c)
#elif defined(XPH_HAVE_FMA)
#  define FMA(a, b, c) __builtin_fma(a, b, c)
#else
#  define FMA(a, b, c) xph_fma(a, b, c)
#endif

/* Before loops over independent outputs: nothing is carried from one iteration to the next. Where clang may not
 * act on it (sanitizers, coverage) that is nothing to warn about. */
#if defined(__clang__)
#  define XPH_VECTOR _Pragma("clang loop vectorize(enable)")
#  pragma clang diagnostic ignored "-Wpass-failed"
#else
#  define XPH_VECTOR _Pragma("GCC ivdep")
#endif

#define XPH_INLINE static inline __attribute__((always_inline, unused))

XPH_INLINE int64_t int_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
XPH_INLINE int64_t int_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#include "cpu/simd/element.h"

#endif
