/* Products with bfloat16 weights, in float arithmetic: a bfloat16 is the upper half of a float, so a shift or a mask
 * of two of them makes floats, and the product of two bfloat16s has 16 significant bits, so an fma rounds only the sum.
 * No product and no sum is a denormal (narrow.h), so that hardware which flushes those gives the same bits.
 *
 * For processors whose own bfloat16 product takes longer than two fmas and this expansion: Intel's as of 2025 (the
 * other is linear_dp.c). Packing is for both. */
#include "cpu/ref/narrow.h"
#include "cpu/ref/vec.h"

#if defined(XPH_REAL_F32)

typedef float held, total;
typedef uint32_t pair_bits __attribute__((vector_size(VEC_BYTES)));

#  define NARROW_RUN XPH_FN(xph_linear_bf16_run)
enum {
    STEP = 2,
#  if VEC_BYTES == 64
    MANY = 14,
    MANY_PANELS = 2,
    FEW = 8,
    FEW_PANELS = 4,
    LONE_PANELS = 8
#  elif VEC_BYTES == 32
    MANY = 6,
    MANY_PANELS = 1,
    FEW = 3,
    FEW_PANELS = 2,
    LONE_PANELS = 4
#  else
    MANY = 2,
    MANY_PANELS = 1,
    FEW = 0,
    FEW_PANELS = 1,
    LONE_PANELS = 4
#  endif
};

#  include "cpu/ref/linear_narrow.h"

XPH_INLINE pair_bits pairs_at(narrow_weights w, int column)
{
    enum { PER_PANEL = NARROW_PANEL_BYTES / VEC_BYTES };
    int panel = column / PER_PANEL;
    pair_bits pairs;
    memcpy(&pairs,
           w.at + panel / NARROW_GROUP * w.group + panel % NARROW_GROUP * NARROW_PANEL_BYTES +
               column % PER_PANEL * VEC_BYTES,
           sizeof pairs);
    return pairs;
}

XPH_INLINE void tile(const int rows, const int panels, const float *x, int64_t ldx, narrow_weights w,
                     int64_t depth, float *sums)
{
    const int columns = panels * NARROW_PANEL_BYTES / VEC_BYTES;
    vec sum[28], weight[8 * NARROW_PANEL_BYTES / VEC_BYTES];
    XPH_UNROLL
    for (int i = 0; i < rows * columns; i++) sum[i] = vec_load(sums + i / columns * BLOCK + i % columns * VEC);
    for (int64_t k = 0; k < depth; k++, w.at += w.depth) {
        XPH_UNROLL
        for (int c = 0; c < columns; c++) weight[c] = (vec)(pairs_at(w, c) & 0xffff0000u);
        XPH_UNROLL
        for (int r = 0; r < rows; r++) {
            vec odd = vec_all(x[r * ldx + 2 * k + 1]);
            XPH_UNROLL
            for (int c = 0; c < columns; c++) sum[r * columns + c] = vec_fma(odd, weight[c], sum[r * columns + c]);
        }
        XPH_UNROLL
        for (int c = 0; c < columns; c++) weight[c] = (vec)(pairs_at(w, c) << 16);
        XPH_UNROLL
        for (int r = 0; r < rows; r++) {
            vec even = vec_all(x[r * ldx + 2 * k]);
            XPH_UNROLL
            for (int c = 0; c < columns; c++)
                sum[r * columns + c] = vec_fma(even, weight[c], sum[r * columns + c]);
        }
    }
    XPH_UNROLL
    for (int i = 0; i < rows * columns; i++) vec_store(sums + i / columns * BLOCK + i % columns * VEC, sum[i]);
}

static void measure(const xph_linear_args *a, const item *i, float scales[ROWS])
{
    (void)a, (void)i, (void)scales;
}

static void hold(const xph_linear_args *a, const item *i, const float scales[ROWS], int64_t from, int64_t count,
                 float *x)
{
    int64_t there = int_min(count, a->in - from);
    (void)scales;
    for (int64_t r = 0; r < i->rows; r++, x += count) {
        const float *row = (const float *)a->x + (i->row + r) * a->ldx + from;
        XPH_VECTOR
        for (int64_t k = 0; k < there; k++) x[k] = wide_bf16(narrow_bf16(row[k]));
        for (int64_t k = there; k < count; k++) x[k] = 0.0f;
    }
}

static void finish(const xph_linear_args *a, const item *i, const float scales[ROWS], const float *sums)
{
    (void)scales;
    XPH_FN(xph_linear_bf16_finish)(a, i->row, i->rows, i->column, i->columns, sums);
}

void XPH_FN(xph_linear_bf16_finish)(const xph_linear_args *a, int64_t row, int64_t rows, int64_t column,
                                    int64_t columns, const float *sums)
{
    const float *bias = a->bias ? (const float *)a->bias + column : NULL;
    for (int64_t r = 0; r < rows; r++, sums += BLOCK) {
        float *y = (float *)a->y + (row + r) * a->ldy + column;
        const float *more = a->residual ? (const float *)a->residual + (row + r) * a->ldr + column : NULL;
        if (bias && more) {
            XPH_VECTOR
            for (int64_t c = 0; c < columns; c++) y[c] = (sums[c] + bias[c]) + more[c];
        } else if (bias || more) {
            const float *one = bias ? bias : more;
            XPH_VECTOR
            for (int64_t c = 0; c < columns; c++) y[c] = sums[c] + one[c];
        } else {
            memcpy(y, sums, (size_t)columns * sizeof *y);
        }
    }
}

int64_t XPH_FN(xph_narrow_items)(const void *args)
{
    const xph_linear_args *a = args;
    return blocks_of(a->rows, ROWS) * blocks_of(a->out, BLOCK);
}

/* ---- packing: an item is a group ---- */

int64_t XPH_FN(xph_narrow_pack_items)(const void *args)
{
    const xph_linear_pack_args *a = args;
    return blocks_of(a->out, NARROW_GROUP * XPH_NARROW_PANEL);
}

static void pack_group(const xph_linear_pack_args *a, int64_t group)
{
    int64_t depth = blocks_of(a->in, STEP), first = group * NARROW_GROUP * XPH_NARROW_PANEL;
    int64_t panels = int_min(NARROW_GROUP, blocks_of(a->out - first, XPH_NARROW_PANEL)), width = panels * XPH_NARROW_PANEL;
    uint16_t *to = (uint16_t *)a->packed + first * depth * STEP;
    memset(to, 0, (size_t)(width * depth * STEP) * sizeof *to);
    for (int64_t c = 0; c < int_min(width, a->out - first); c++) {
        const float *from = (const float *)a->w + (first + c) * a->in;
        for (int64_t k = 0; k < a->in; k++) to[(k / 2 * width + c) * 2 + k % 2] = narrow_bf16(from[k]);
    }
}

void XPH_FN(xph_pack_bf16_run)(const void *args, int64_t begin, int64_t end)
{
    for (int64_t group = begin; group < end; group++) pack_group(args, group);
}

#endif
