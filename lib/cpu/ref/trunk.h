/* The trunk of the action heads, shared by heads.c (actions known) and sample.c (actions drawn on the way).
 *
 * Logits are sums over blocks of the trunk's width, in order, on top of the bias; both callers cut the same
 * blocks, so what is played has the bits of what is trained. */
#ifndef XPH_CPU_REF_TRUNK_H
#define XPH_CPU_REF_TRUNK_H

#include "cpu/ref/lanes.h"

enum { TRUNK_COLUMNS = 256 };

/* logits of one head += v[., column..column+columns) . SiLU(s); hidden: room for TRUNK_COLUMNS */
XPH_INLINE void trunk_logits(const xph_heads_args *args, const xph_head *head, int64_t column,
                             int64_t columns, const real *hidden, real *logits)
{
    const real *v = (const real *)args->v + head->first * args->width + column;
    for (int64_t i = 0; i < head->count; i++)
        logits[head->first + i] += lanes_dot(v + i * args->width, hidden, columns);
}

XPH_INLINE void trunk_hidden(const real *s, int64_t columns, real *hidden)
{
    XPH_VECTOR
    for (int64_t i = 0; i < columns; i++) hidden[i] = real_silu(s[i]);
}

XPH_INLINE void trunk_bias(const xph_heads_args *args, int64_t row, int64_t first, int64_t count,
                           real *logits)
{
    const real *bias = args->bias, *base = args->base ? (const real *)args->base + row * args->ldbase : NULL;
    for (int64_t i = first; i < first + count; i++)
        logits[i] = (base ? base[i] : R(0.0)) + (bias ? bias[i] : R(0.0));
}

/* s += rows of e at the bits, or the class, of an action. A class outside the head adds nothing. */
XPH_INLINE void trunk_take(const xph_heads_args *args, const xph_head *head, int32_t action, int64_t column,
                           int64_t columns, real *s)
{
    const real *e = (const real *)args->e + head->first * args->width + column;
    bool bits = head->kind == XPH_HEAD_BERNOULLI;
    uint32_t taken = (uint32_t)action, count = (uint32_t)head->count;
    uint32_t from = bits ? 0 : taken, to = bits ? count : taken < count ? taken + 1 : 0;
    for (uint32_t i = from; i < to; i++) {
        if (bits && !(taken >> i & 1u)) continue;
        const real *row = e + (int64_t)i * args->width;
        XPH_VECTOR
        for (int64_t c = 0; c < columns; c++) s[c] += row[c];
    }
}

#endif
