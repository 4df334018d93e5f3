/* The trunk of the action heads, shared by heads.c (actions known) and sample.c (actions drawn on the way).
 *
 * Logits are sums over blocks of the trunk's width, in order, on top of base and bias; a block is summed in
 * LANES lanes. Both callers cut the same blocks, so play has the bits of training, however many rows and
 * classes are taken together. */
#ifndef XPH_CPU_KERNELS_TRUNK_H
#define XPH_CPU_KERNELS_TRUNK_H

#include "cpu/kernels/real.h"
#include "cpu/simd/lanes.h"
#include "cpu/simd/silu.h"

enum { TRUNK_COLUMNS = 256, TRUNK_ROWS = 32 / (int)sizeof(real) };

/* Rows of e that an action takes: the bits that are on, or its class. A class outside the head takes none. */
typedef struct trunk_rows {
    const real *row[32];
    int64_t count;
} trunk_rows;

XPH_INLINE void trunk_taken(const real *e, int64_t width, const xph_head *head, int32_t action,
                            trunk_rows *rows)
{
    uint32_t taken = (uint32_t)action, count = (uint32_t)head->count;
    const real *first = e + head->first * width;
    rows->count = 0;
    if (head->kind == EXPHIL_BERNOULLI) {
        for (uint32_t bits = taken & (0xffffffffu >> (32u - count)); bits; bits &= bits - 1)
            rows->row[rows->count++] = first + __builtin_ctz(bits) * width;
    } else if (taken < count) {
        rows->row[rows->count++] = first + (int64_t)taken * width;
    }
}

/* to = s + the rows, one after the other, each from `column` on. */
XPH_INLINE vec trunk_sum(vec s, const trunk_rows *rows, int64_t column, int64_t left)
{
    for (int64_t i = 0; i < rows->count; i++)
        s += left >= VEC ? vec_load(rows->row[i] + column) : vec_load_part(rows->row[i] + column, left);
    return s;
}

/* s = from + the rows; hidden = SiLU(s), zeros up to the next whole register of lanes. */
XPH_INLINE void trunk_next(const real *from, const trunk_rows *rows, int64_t column, int64_t columns, real *s,
                           real *hidden)
{
    int64_t at = 0;
    for (; at + VEC <= columns; at += VEC) {
        vec x = trunk_sum(vec_load(from + at), rows, column + at, VEC);
        vec_store(s + at, x);
        vec_store(hidden + at, silu_vec(x));
    }
    for (; at % LANES || at < columns; at += VEC) {
        int64_t left = int_max(0, columns - at);
        vec x = trunk_sum(vec_load_part(from + at, left), rows, column + at, left);
        vec_store_part(s + at, x, left);
        vec_store(hidden + at, silu_vec(x));
    }
}

/* logits of one head += v[., column..column+columns) . hidden, of one row or (many) of TRUNK_ROWS rows; in
 * heads.c */
void XPH_FN(xph_trunk_logits)(const xph_heads_args *args, const xph_head *head, int64_t column,
                              int64_t columns, const real *hidden, bool many, real *y);

XPH_INLINE void trunk_bias(const xph_heads_args *args, int64_t row, int64_t first, int64_t count,
                           real *restrict logits)
{
    const real *restrict bias = args->bias;
    const real *restrict base = args->base ? (const real *)args->base + row * args->ldbase : NULL;
    XPH_VECTOR
    for (int64_t i = first; i < first + count; i++)
        logits[i] = (base ? base[i] : R(0.0)) + (bias ? bias[i] : R(0.0));
}

#endif
