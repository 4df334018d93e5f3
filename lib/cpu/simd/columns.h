/* Matrices transposed: VEC rows as columns, where lane r of column k is number k of row r, and any matrix. Columns are
 * for what is summed along a row but is too short to fill registers by itself: every lane is then a row of its own. */
#ifndef XPH_CPU_SIMD_COLUMNS_H
#define XPH_CPU_SIMD_COLUMNS_H

#include "cpu/simd/vec.h"

/* count numbers from `at` on of every row, column k to to + k ld. Four at a time; the last four may be taken twice. */
XPH_INLINE void columns_in(const real *const row[VEC], int64_t at, int64_t count, real *to, int64_t ld)
{
#if defined(XPH_REAL_F32)
    for (int64_t k = 0; count >= 4 && k < count; k += 4) {
        int64_t from = int_min(k, count - 4);
        vec x[4];
        for (int i = 0; i < 4; i++) x[i] = vec_load_fours(row + i, at + from);
        vec_transpose4(x);
        for (int i = 0; i < 4; i++) vec_store(to + (from + i) * ld, x[i]);
    }
    if (count >= 4) return;
#endif
    for (int64_t k = 0; k < count; k++)
        for (int r = 0; r < VEC; r++) to[k * ld + r] = row[r][at + k];
}

/* And back, from columns behind each other. */
XPH_INLINE void columns_out(const real *from, int64_t at, int64_t count, real *const row[VEC])
{
#if defined(XPH_REAL_F32)
    for (int64_t k = 0; count >= 4 && k < count; k += 4) {
        int64_t first = int_min(k, count - 4);
        vec x[4];
        for (int i = 0; i < 4; i++) x[i] = vec_load(from + (first + i) * VEC);
        vec_transpose4(x);
        for (int i = 0; i < 4; i++) vec_store_fours(row + i, at + first, x[i]);
    }
    if (count >= 4) return;
#endif
    for (int64_t k = 0; k < count; k++)
        for (int r = 0; r < VEC; r++) row[r][at + k] = from[k * VEC + r];
}

/* to[j ld_to + i] = from[i ld_from + j], i, j < 4 */
XPH_INLINE void transpose_fours(real *to, int64_t ld_to, const real *from, int64_t ld_from)
{
#if defined(XPH_REAL_F32)
    quarter x[4];
    for (int i = 0; i < 4; i++) memcpy(x + i, from + i * ld_from, sizeof *x);
    quarter_transpose(x);
    for (int j = 0; j < 4; j++) memcpy(to + j * ld_to, x + j, sizeof *x);
#else
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 4; j++) to[j * ld_to + i] = from[i * ld_from + j];
#endif
}

/* to[j ld_to + i] = from[i ld_from + j], i < rows, j < columns */
XPH_INLINE void transpose(real *to, int64_t ld_to, const real *from, int64_t ld_from, int64_t rows,
                          int64_t columns)
{
    int64_t fours = rows / 4 * 4, wide = columns / 4 * 4;
    for (int64_t i = 0; i < fours; i += 4)
        for (int64_t j = 0; j < wide; j += 4)
            transpose_fours(to + j * ld_to + i, ld_to, from + i * ld_from + j, ld_from);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i < fours ? wide : 0; j < columns; j++) to[j * ld_to + i] = from[i * ld_from + j];
}

#endif
