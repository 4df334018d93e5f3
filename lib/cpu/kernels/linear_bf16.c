/* Products with bfloat16 weights, in float arithmetic: a bfloat16 is the upper half of a float, so a shift or a mask
 * of two of them makes floats, and the product of two bfloat16s has 16 significant bits, so an fma rounds only the sum.
 * No product and no sum is a denormal (narrow.h), so that hardware which flushes those gives the same bits.
 *
 * For processors whose own bfloat16 product takes longer than two fmas and this expansion: Intel's as of 2025 (the
 * other is linear_dp.c). Packing is for both. */
#define XPH_PRODUCTS /* multiply-adds in line (simd/wasm128.h) */
#include "cpu/kernels/narrow.h"
#include "cpu/simd/vec.h"

#if defined(XPH_REAL_F32)

typedef float held, total;

#  define NARROW_ITEMS XPH_FN(xph_linear_bf16_items)
#  define NARROW_RUN   XPH_FN(xph_linear_bf16_run)
#  define LANE_BYTES   VEC_BYTES
#  if VEC_BYTES == 64
#    define MANY 12
#  elif VEC_REGISTERS > 0
#    define MANY 6
#  else
#    define MANY 2
#  endif
enum { STEP = 2 };

#  include "cpu/kernels/linear_narrow.h"

XPH_INLINE vec_bits pairs_at(narrow_weights w, int column)
{
    enum { PER_PANEL = NARROW_PANEL_BYTES / VEC_BYTES };
    int panel = column / PER_PANEL;
    const char *at = w.at + panel / NARROW_GROUP * w.group + panel % NARROW_GROUP * NARROW_PANEL_BYTES;
    return vec_bits_load(at + column % PER_PANEL * VEC_BYTES);
}

/* Keeps pairs in their registers: loaded a second time for the other half they would take longer than the halving. */
XPH_INLINE void pairs_once(narrow_weights w, int column, const int count, vec_bits *pairs)
{
    TILE_UNROLL
    for (int i = 0; i < count; i++) pairs[i] = pairs_at(w, column + i);
    if (count == 1) VEC_HOLD(pairs[0]);
    if (count == 2) VEC_HOLD_TWO(pairs[0], pairs[1]);
}

XPH_INLINE vec odd_of(vec_bits pairs)
{
    return (vec)(pairs & 0xffff0000u);
}

XPH_INLINE vec even_of(vec_bits pairs)
{
    return (vec)(pairs << 16);
}

/* One pair of inputs: of few rows column by column, so that halves of weights need no registers. */
XPH_INLINE void add_columns(const int rows, const int columns, const float *x, int64_t ldx, narrow_weights w,
                            vec *sum)
{
    multiplier odd[2], even[2];
    TILE_UNROLL
    for (int r = 0; r < rows; r++)
        odd[r] = multiplier_of(x[r * ldx + 1]), even[r] = multiplier_of(x[r * ldx]);
    TILE_UNROLL
    for (int c = 0; c < columns; c += VEC_LOADS) {
        vec_bits pairs[VEC_LOADS];
        pairs_once(w, c, VEC_LOADS, pairs);
        TILE_UNROLL
        for (int i = 0; i < rows * VEC_LOADS; i++) {
            const int r = i / VEC_LOADS, at = r * columns + c + i % VEC_LOADS;
            sum[at] = vec_fma_by(odd[r], odd_of(pairs[i % VEC_LOADS]), sum[at]);
        }
        TILE_UNROLL
        for (int i = 0; i < rows * VEC_LOADS; i++) {
            const int r = i / VEC_LOADS, at = r * columns + c + i % VEC_LOADS;
            sum[at] = vec_fma_by(even[r], even_of(pairs[i % VEC_LOADS]), sum[at]);
        }
    }
}

XPH_INLINE void add_rows(const int rows, const int columns, const float *x, int64_t ldx, narrow_weights w,
                         vec *sum)
{
    vec_bits pairs[4];
    vec half[4];
    TILE_UNROLL
    for (int c = 0; c < columns; c += VEC_LOADS) pairs_once(w, c, VEC_LOADS, pairs + c);
    TILE_UNROLL
    for (int c = 0; c < columns; c++) half[c] = odd_of(pairs[c]);
    TILE_UNROLL
    for (int r = 0; r < rows; r++) {
        multiplier odd = multiplier_of(x[r * ldx + 1]);
        TILE_UNROLL
        for (int c = 0; c < columns; c++)
            sum[r * columns + c] = vec_fma_by(odd, half[c], sum[r * columns + c]);
    }
    TILE_UNROLL
    for (int c = 0; c < columns; c++) half[c] = even_of(VEC_BYTES == 64 ? pairs[c] : pairs_at(w, c));
    TILE_UNROLL
    for (int r = 0; r < rows; r++) {
        multiplier even = multiplier_of(x[r * ldx]);
        TILE_UNROLL
        for (int c = 0; c < columns; c++)
            sum[r * columns + c] = vec_fma_by(even, half[c], sum[r * columns + c]);
    }
}

XPH_INLINE void tile(const int rows, const int panels, const int64_t ldx, const panel_tile *t)
{
    const int columns = panels * NARROW_PANEL_BYTES / VEC_BYTES;
    const float *x = t->x;
    narrow_weights w = t->w;
    prefetch later = rows >= 8 ? *t->prefetch : (prefetch){0};
    vec sum[TILE_SUMS];
    TILE_UNROLL
    for (int i = 0; i < rows * columns; i++) sum[i] = (vec)vec_bits_load(t->zeros);
    if (t->more) {
        TILE_UNROLL
        for (int i = 0; i < rows * columns; i++)
            sum[i] = (vec)vec_bits_load(t->sums + i / columns * BLOCK + i % columns * VEC);
    }
    for (int64_t k = t->depth; k > 0; k--, x += STEP, w.at += w.depth) {
        if (rows >= 8 && (k & 3) == 0) prefetch_line(&later.x), prefetch_line(&later.y);
        if (rows <= 2)
            add_columns(rows, columns, x, ldx, w, sum);
        else
            add_rows(rows, columns, x, ldx, w, sum);
    }
    TILE_UNROLL
    for (int i = 0; i < rows * columns; i++)
        vec_store(t->sums + i / columns * BLOCK + i % columns * VEC, sum[i]);
    if (rows >= 8) *t->prefetch = later;
}

static void measure(const xph_linear_args *a, const item *i, float scales[ROWS])
{
    (void)a, (void)i, (void)scales;
}

static void hold(const xph_linear_args *a, const item *i, const float scales[ROWS], int64_t from,
                 int64_t count, float *x, int64_t ldx)
{
    int64_t there = int_min(count, a->in - from);
    (void)scales;
    for (int64_t r = 0; r < i->rows; r++, x += ldx) {
        const float *row = (const float *)a->x + (i->row + r) * a->ldx + from;
        XPH_VECTOR
        for (int64_t k = 0; k < there; k++) x[k] = float_of_bits(narrow_bits(row[k]));
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

/* ---- packing: an item is a group ---- */

int64_t XPH_FN(xph_narrow_pack_items)(const void *args)
{
    const xph_linear_pack_args *a = args;
    return blocks_of(a->out, NARROW_GROUP * XPH_NARROW_PANEL);
}

static void pack_group(const xph_linear_pack_args *a, int64_t group)
{
    int64_t depth = blocks_of(a->in, STEP), first = group * NARROW_GROUP * XPH_NARROW_PANEL;
    int64_t panels = int_min(NARROW_GROUP, blocks_of(a->out - first, XPH_NARROW_PANEL)),
            width = panels * XPH_NARROW_PANEL;
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
