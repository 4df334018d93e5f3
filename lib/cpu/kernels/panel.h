/* Panels of weights, [depth][XPH_PANEL], from a matrix: transposed, or with its rows kept. */
#ifndef XPH_CPU_KERNELS_PANEL_H
#define XPH_CPU_KERNELS_PANEL_H

#include "cpu/kernels/real.h"
#include "cpu/simd/columns.h"

enum { PIECE_DEPTH = 32 /* of a piece: 2 lines of a row of floats */ };

/* Rows of `from` become columns, VEC at a time; those beyond `columns` are 0. */
XPH_INLINE void panel_transposed(const real *from, int64_t ld, int64_t depth, int64_t columns, real *panel)
{
    for (int64_t k = 0; k < depth; k += PIECE_DEPTH) {
        int64_t count = int_min(PIECE_DEPTH, depth - k);
        real *to = panel + k * XPH_PANEL;
        for (int64_t c = 0; c < columns; c += VEC) {
            const real *row[VEC];
            for (int64_t r = 0; r < VEC; r++) row[r] = from + int_min(c + r, columns - 1) * ld;
            columns_in(row, k, count, to + c, XPH_PANEL);
        }
        for (int64_t i = 0; i < count && columns < XPH_PANEL; i++)
            memset(to + i * XPH_PANEL + columns, 0, (size_t)(XPH_PANEL - columns) * sizeof(real));
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
