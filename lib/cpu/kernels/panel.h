/* Panels of weights, [depth][XPH_PANEL], out of a matrix: rows become columns, or they stay. */
#ifndef XPH_CPU_KERNELS_PANEL_H
#define XPH_CPU_KERNELS_PANEL_H

#include "cpu/kernels/real.h"
#include "cpu/simd/vec.h"

enum { TURN = 8, TURN_DEPTH = 32 /* of a block: 2 lines of a row of floats */ };

#if VEC_BYTES >= 32
XPH_INLINE __m256 two_halves(const float *low, const float *high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}

/* 4 columns of 8 rows: to[k][0..7] = from[0..7][k] for k < 4. */
XPH_INLINE void turn_4(const float *from, int64_t ld, float *to)
{
    __m256 a = two_halves(from, from + 4 * ld), b = two_halves(from + ld, from + 5 * ld);
    __m256 c = two_halves(from + 2 * ld, from + 6 * ld), d = two_halves(from + 3 * ld, from + 7 * ld);
    __m256 ab_low = _mm256_unpacklo_ps(a, b), ab_high = _mm256_unpackhi_ps(a, b);
    __m256 cd_low = _mm256_unpacklo_ps(c, d), cd_high = _mm256_unpackhi_ps(c, d);
    _mm256_storeu_ps(to, _mm256_shuffle_ps(ab_low, cd_low, 0x44));
    _mm256_storeu_ps(to + XPH_PANEL, _mm256_shuffle_ps(ab_low, cd_low, 0xee));
    _mm256_storeu_ps(to + 2 * XPH_PANEL, _mm256_shuffle_ps(ab_high, cd_high, 0x44));
    _mm256_storeu_ps(to + 3 * XPH_PANEL, _mm256_shuffle_ps(ab_high, cd_high, 0xee));
}
#endif

/* to[k][0..TURN) = from[0..TURN)[k]. */
XPH_INLINE void turn_rows(const real *from, int64_t ld, int64_t depth, real *to)
{
    int64_t k = 0;
#if VEC_BYTES >= 32
    for (; k + 4 <= depth; k += 4) turn_4(from + k, ld, to + k * XPH_PANEL);
#endif
    for (; k < depth; k++)
        for (int c = 0; c < TURN; c++) to[k * XPH_PANEL + c] = from[c * ld + k];
}

/* Rows of `from` become columns; those beyond `columns` are 0. */
XPH_INLINE void panel_turned(const real *from, int64_t ld, int64_t depth, int64_t columns, real *panel)
{
    for (int64_t k = 0; k < depth; k += TURN_DEPTH) {
        int64_t count = int_min(TURN_DEPTH, depth - k), c = 0;
        real *to = panel + k * XPH_PANEL;
        for (; c + TURN <= columns; c += TURN) turn_rows(from + c * ld + k, ld, count, to + c);
        for (; c < columns; c++)
            for (int64_t i = 0; i < count; i++) to[i * XPH_PANEL + c] = from[c * ld + k + i];
        for (int64_t i = 0; i < count && c < XPH_PANEL; i++)
            memset(to + i * XPH_PANEL + c, 0, (size_t)(XPH_PANEL - c) * sizeof(real));
    }
}

/* Rows stay rows; columns beyond `columns` are 0. */
XPH_INLINE void panel_straight(const real *from, int64_t ld, int64_t depth, int64_t columns, real *panel)
{
    for (int64_t k = 0; k < depth; k++, from += ld, panel += XPH_PANEL) {
        if (columns == XPH_PANEL) {
            XPH_UNROLL
            for (int c = 0; c < XPH_PANEL / VEC; c++) vec_store(panel + c * VEC, vec_load(from + c * VEC));
        } else {
            memcpy(panel, from, (size_t)columns * sizeof(real));
            memset(panel + columns, 0, (size_t)(XPH_PANEL - columns) * sizeof(real));
        }
    }
}

#endif
