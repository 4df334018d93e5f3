/* VEC rows of a matrix as columns: lane r of column k is number k of row r. For what is summed along a row but is too
 * short to fill registers by itself: every lane is then a row of its own. */
#ifndef XPH_CPU_SIMD_COLUMNS_H
#define XPH_CPU_SIMD_COLUMNS_H

#include "cpu/simd/vec.h"

#if VEC_BYTES == 64
typedef __m512 wide;
#  define WIDE(name) _mm512_##name
#elif VEC_BYTES == 32
typedef __m256 wide;
#  define WIDE(name) _mm256_##name
#endif

#if VEC_BYTES >= 32
enum { QUARTERS = VEC / 4 };

/* Four numbers of the rows q, q + 4, ... */
XPH_INLINE wide four_of(const real *const *row, int64_t at)
{
#  if VEC_BYTES == 64
    __m512 x = _mm512_castps128_ps512(_mm_loadu_ps(row[0] + at));
    x = _mm512_insertf32x4(x, _mm_loadu_ps(row[4] + at), 1);
    x = _mm512_insertf32x4(x, _mm_loadu_ps(row[8] + at), 2);
    return _mm512_insertf32x4(x, _mm_loadu_ps(row[12] + at), 3);
#  else
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row[0] + at)), _mm_loadu_ps(row[4] + at),
                                1);
#  endif
}

XPH_INLINE void four_to(real *const *row, int64_t at, wide x)
{
#  if VEC_BYTES == 64
    _mm_storeu_ps(row[0] + at, _mm512_castps512_ps128(x));
    _mm_storeu_ps(row[4] + at, _mm512_extractf32x4_ps(x, 1));
    _mm_storeu_ps(row[8] + at, _mm512_extractf32x4_ps(x, 2));
    _mm_storeu_ps(row[12] + at, _mm512_extractf32x4_ps(x, 3));
#  else
    _mm_storeu_ps(row[0] + at, _mm256_castps256_ps128(x));
    _mm_storeu_ps(row[4] + at, _mm256_extractf128_ps(x, 1));
#  endif
}

/* Four rows of four in every quarter, turned over. */
XPH_INLINE void turn_four(wide x[4])
{
    wide a = WIDE(unpacklo_ps)(x[0], x[1]), b = WIDE(unpackhi_ps)(x[0], x[1]);
    wide c = WIDE(unpacklo_ps)(x[2], x[3]), d = WIDE(unpackhi_ps)(x[2], x[3]);
    x[0] = WIDE(shuffle_ps)(a, c, 0x44);
    x[1] = WIDE(shuffle_ps)(a, c, 0xee);
    x[2] = WIDE(shuffle_ps)(b, d, 0x44);
    x[3] = WIDE(shuffle_ps)(b, d, 0xee);
}
#endif

/* count numbers from `at` on of every row. Four at a time; the last four may be taken twice. */
XPH_INLINE void columns_in(const real *const row[VEC], int64_t at, int64_t count, real *to)
{
#if VEC_BYTES >= 32
    for (int64_t k = 0; count >= 4 && k < count; k += 4) {
        int64_t from = int_min(k, count - 4);
        wide x[4];
        for (int i = 0; i < 4; i++) x[i] = four_of(row + i, at + from);
        turn_four(x);
        for (int i = 0; i < 4; i++) vec_store(to + (from + i) * VEC, (vec)x[i]);
    }
    if (count >= 4) return;
#endif
    for (int64_t k = 0; k < count; k++)
        for (int r = 0; r < VEC; r++) to[k * VEC + r] = row[r][at + k];
}

XPH_INLINE void columns_out(const real *from, int64_t at, int64_t count, real *const row[VEC])
{
#if VEC_BYTES >= 32
    for (int64_t k = 0; count >= 4 && k < count; k += 4) {
        int64_t first = int_min(k, count - 4);
        wide x[4];
        for (int i = 0; i < 4; i++) x[i] = (wide)vec_load(from + (first + i) * VEC);
        turn_four(x);
        for (int i = 0; i < 4; i++) four_to(row + i, at + first, x[i]);
    }
    if (count >= 4) return;
#endif
    for (int64_t k = 0; k < count; k++)
        for (int r = 0; r < VEC; r++) row[r][at + k] = from[k * VEC + r];
}

#endif
