/* Vectors of reals. A kernel says what is computed, a set of vectors how a processor does it: a new processor is a new
 * file beside avx512.h, avx2.h, neon.h, wasm128.h and generic128.h with all functions of the list below, and the line in
 * this one that takes it; no kernel changes.
 *
 * A vec has VEC lanes: 64 or 32 bytes of floats, else 16 bytes of floats or doubles. Every lane is an output of its
 * own, so that results have the same bits at every width; where lanes are summed, halves are added (lane i and lane
 * i + VEC/2, then VEC/4, ... 1), which is one order for all widths (lanes.h). + - * / and unary - are those of the
 * compiler's vectors: each lane rounds once. The functions of a set:
 *
 *   vec_all(x)                      x in every lane
 *   vec_fma(a, b, c)                a b + c, rounded once
 *   multiplier_of(x)                a number that multiplies many vectors, as a multiply-add takes it
 *   vec_fma_by(a, b, c)             a b + c of a multiplier a
 *   vec_sqrt(x)                     correctly rounded
 *   vec_max(a, b), vec_min(a, b)    a > b ? a : b, a < b ? a : b: b where they are equal or one is NaN
 *   vec_within(x, limit)            x, but at most limit and at least -limit; of NaN NaN or a number
 *   vec_greater(a, b), vec_equal    bit i of the result: a > b, a == b in lane i; no lane with a NaN
 *   vec_all_at_most(a, b)           a <= b in every lane
 *   vec_where_greater(a, b, yes, no), vec_where_equal    yes where a > b (a == b), no elsewhere and with NaN
 *   vec_where_minus(x, yes, no)     yes where the sign bit of x is set (-0 and NaN too)
 *   vec_first(count, v, rest)       the first count lanes of v, 0 <= count < VEC, then those of rest
 *   vec_load_part(from, count)      the first count lanes, 0 elsewhere; count from 0 on, more than VEC: all. Memory
 *   vec_store_part(to, v, count)    beyond is not touched
 *   vec_sum(v)                      the lanes, in halves
 *   vec_top(v)                      the largest lane; none is NaN
 *   vec_sum_rows(row)               lane i: vec_sum(row[i]) of VEC vectors
 *   VEC_HOLD(x)                     keeps x in a register where compilers would rather load it again each time
 *   VEC_HOLD_TWO(x, y)              both, at the same time
 *   VEC_LOADS                       2: two vectors that lie behind each other are one load, if neither waits for its use
 *   VEC_FMA_HELD(sum, a, b)         sum = vec_fma_by(a, b, sum), with nothing moved between registers
 *
 * In single precision only, where quarters are the 16 bytes of four floats:
 *
 *   vec_of_int(n)                   the number of each integer
 *   vec_floor_parts(x, &whole)      x - floor(x), rounded down, for x within +-2^22; whole: what vec_times_two_to takes
 *   vec_times_two_to(x, whole)      x 2^floor, floor within [-126, 127]
 *   vec_transpose4(x)               of x[0..3], each quarter as a matrix of four rows
 *   vec_transpose_quarters(x)       of x[0..VEC/4), as a matrix of quarters
 *   vec_sum_fours(x)                lane 4 k + i: the sum of quarter k of x[i], (0 + 2) + (1 + 3)
 *   vec_load_fours(row, at)         quarter k: four numbers from row[4 k] + at on; and back
 *   vec_store_fours(row, at, v)
 *   vec_repeat_four(from)           four numbers in every quarter
 *   vec_bits_max(a, b), vec_bits_top(v)    of unsigned integers
 *   vec_store_bytes(to, v, flip)    the low bytes of all lanes of v[0..VEC_NARROW), their bits flipped by flip
 *
 *   VEC_NARROW                      vectors that vec_store_bytes stores together
 *   VEC_NEAR_PAYS                   1: looking at what a near vecs_exp2_falling asks for costs less than it saves
 *   VEC_ABREAST                     2: chains of operations are taken side by side, in pairs and fours; 1: the processor
 *                                   does so by itself
 */
#ifndef XPH_CPU_SIMD_VEC_H
#define XPH_CPU_SIMD_VEC_H

#include "cpu/simd/real.h"

#include <stdbool.h>

/* VEC_REGISTERS: how many a kernel may fill, 0 where the compiler's own vectors are used and nobody knows. XPH_NEON is of
 * the sets of AArch64, whose reference has Advanced SIMD too, as every compiler for it. */
#if defined(XPH_REAL_F32) && defined(__AVX512F__)
#  define VEC_BYTES     64
#  define VEC_REGISTERS 32
#elif defined(XPH_REAL_F32) && defined(__AVX2__) && defined(__FMA__)
#  define VEC_BYTES     32
#  define VEC_REGISTERS 16
#elif defined(XPH_REAL_F32) && defined(XPH_NEON)
#  define VEC_BYTES     16
#  define VEC_REGISTERS 32
#elif defined(XPH_REAL_F32) && defined(XPH_SIMD128)
#  define VEC_BYTES     16
#  define VEC_REGISTERS 16
#else
#  define VEC_BYTES     16
#  define VEC_REGISTERS 0
#endif

typedef real vec __attribute__((vector_size(VEC_BYTES)));
/* The lanes of a vec as integers. */
#if defined(XPH_REAL_F32)
typedef uint32_t vec_bits __attribute__((vector_size(VEC_BYTES)));
typedef int32_t vec_int __attribute__((vector_size(VEC_BYTES)));
#else
typedef uint64_t vec_bits __attribute__((vector_size(VEC_BYTES)));
typedef int64_t vec_int __attribute__((vector_size(VEC_BYTES)));
#endif
enum { VEC = VEC_BYTES / sizeof(real) };

/* Without registers that are known there is nothing to keep in them, and a compiler that must unroll such loops, with a
 * sanitizer's checks in each iteration, needs minutes for a file. */
#if VEC_REGISTERS == 0 || defined(EXPHIL_SANITIZE)
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

/* Of any type, aligned to 4 bytes. Not by a copy: gcc 12 has arrays of vectors that two branches fill so in memory. */
typedef vec_bits vec_bits_anywhere __attribute__((aligned(4), may_alias));
XPH_INLINE vec_bits vec_bits_load(const void *from)
{
    return *(const vec_bits_anywhere *)from;
}

#if defined(XPH_REAL_F32)
/* Four floats: a quarter of the widest vector. */
typedef float quarter __attribute__((vector_size(16)));
#  if defined(__clang__)
#    define QUARTER_OF(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#  else
typedef int32_t quarter_places __attribute__((vector_size(16)));
#    define QUARTER_OF(a, b, i, j, k, l) __builtin_shuffle(a, b, (quarter_places){i, j, k, l})
#  endif

XPH_INLINE void quarter_transpose(quarter x[4])
{
    quarter a = QUARTER_OF(x[0], x[1], 0, 4, 1, 5), b = QUARTER_OF(x[0], x[1], 2, 6, 3, 7);
    quarter c = QUARTER_OF(x[2], x[3], 0, 4, 1, 5), d = QUARTER_OF(x[2], x[3], 2, 6, 3, 7);
    x[0] = QUARTER_OF(a, c, 0, 1, 4, 5);
    x[1] = QUARTER_OF(a, c, 2, 3, 6, 7);
    x[2] = QUARTER_OF(b, d, 0, 1, 4, 5);
    x[3] = QUARTER_OF(b, d, 2, 3, 6, 7);
}
#endif

#if VEC_BYTES == 64
#  include "cpu/simd/avx512.h"
#elif VEC_BYTES == 32
#  include "cpu/simd/avx2.h"
#elif VEC_REGISTERS == 32
#  include "cpu/simd/neon.h"
#elif VEC_REGISTERS == 16
#  include "cpu/simd/wasm128.h"
#else
#  include "cpu/simd/generic128.h"
#endif

/* ---- what follows from these ---- */

/* `count` vectors, a constant of at most VEC_LOADS, that lie behind each other; all are used soon. */
XPH_INLINE void vecs_load(vec *v, const int count, const real *from)
{
    for (int i = 0; i < count; i++) v[i] = vec_load(from + i * VEC);
    if (count == 2) VEC_HOLD_TWO(v[0], v[1]);
}
/* x < low ? low : x; a NaN in x stays. */
XPH_INLINE vec vec_at_least(vec x, vec low)
{
    return vec_max(low, x);
}
/* x > high ? high : x; a NaN in x stays. */
XPH_INLINE vec vec_at_most(vec x, vec high)
{
    return vec_min(high, x);
}
#if !defined(VEC_HAS_LIMITS)
/* The same for limits that are numbers other than 0. */
XPH_INLINE vec vec_not_below(vec x, real low)
{
    return vec_max(vec_all(low), x);
}
XPH_INLINE vec vec_not_above(vec x, real high)
{
    return vec_min(vec_all(high), x);
}
#endif

#endif
