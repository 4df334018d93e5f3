/* Products with bfloat16 weights by the instruction for them: vdpbf16ps adds the odd product, then the even
 * one, each as an fma that rounds to nearest, whatever the rounding mode is, and treats denormals as 0
 * (Intel's manual, vol. 2). There are no denormals (narrow.h), so these are the bits of linear_bf16.c. */
#include "cpu/kernels/narrow.h"
#include "cpu/simd/vec.h"

/* CFLAGS may name such a processor to all sets. */
#if defined(__AVX512BF16__) && defined(XPH_REAL_F32)

typedef uint16_t held;
typedef float total;

#  define NARROW_ITEMS XPH_FN(xph_linear_dp_items)
#  define NARROW_RUN   XPH_FN(xph_linear_dp_run)
#  define LANE_BYTES   64
#  define MANY         14
enum { STEP = 2 };

#  include "cpu/kernels/linear_narrow.h"

XPH_INLINE vec_bits pair_of(const uint16_t *x)
{
    float pair;
    memcpy(&pair, x, sizeof pair);
    return (vec_bits)vec_all(pair);
}

XPH_INLINE void tile(const int rows, const int panels, const int64_t ldx, const panel_tile *t)
{
    const uint16_t *x = t->x;
    float *sums = t->sums;
    narrow_weights w = t->w;
    prefetch later = rows >= 8 ? *t->prefetch : (prefetch){0};
    vec sum[TILE_SUMS];
    vec_bits weight[8];
    TILE_UNROLL
    for (int i = 0; i < rows * panels; i++) sum[i] = (vec)vec_bits_load(t->zeros);
    if (t->more) {
        TILE_UNROLL
        for (int i = 0; i < rows * panels; i++)
            sum[i] = (vec)vec_bits_load(sums + i / panels * BLOCK + i % panels * VEC);
    }
    for (int64_t k = t->depth; k > 0; k--, x += STEP, w.at += w.depth) {
        if (rows >= 8 && (k & 1) == 0) prefetch_line(&later.x), prefetch_line(&later.y);
        TILE_UNROLL
        for (int c = 0; c < panels; c++)
            weight[c] =
                vec_bits_load(w.at + c / NARROW_GROUP * w.group + c % NARROW_GROUP * NARROW_PANEL_BYTES);
        TILE_UNROLL
        for (int r = 0; r < rows; r++) {
            vec_bits pair = pair_of(x + r * ldx);
            TILE_UNROLL
            for (int c = 0; c < panels; c++)
                sum[r * panels + c] =
                    (vec)_mm512_dpbf16_ps((__m512)sum[r * panels + c], (__m512bh)pair, (__m512bh)weight[c]);
        }
    }
    TILE_UNROLL
    for (int i = 0; i < rows * panels; i++) vec_store(sums + i / panels * BLOCK + i % panels * VEC, sum[i]);
    if (rows >= 8) *t->prefetch = later;
}

static void measure(const xph_linear_args *a, const item *i, float scales[ROWS])
{
    (void)a, (void)i, (void)scales;
}

static void hold(const xph_linear_args *a, const item *i, const float scales[ROWS], int64_t from,
                 int64_t count, uint16_t *x, int64_t ldx)
{
    int64_t there = int_min(count, a->in - from);
    (void)scales;
    for (int64_t r = 0; r < i->rows; r++, x += ldx) {
        const float *row = (const float *)a->x + (i->row + r) * a->ldx + from;
        XPH_VECTOR
        for (int64_t k = 0; k < there; k++) x[k] = narrow_bf16(row[k]);
        for (int64_t k = there; k < count; k++) x[k] = 0;
    }
}

static void finish(const xph_linear_args *a, const item *i, const float scales[ROWS], const float *sums)
{
    (void)scales;
    XPH_FN(xph_linear_bf16_finish)(a, i->row, i->rows, i->column, i->columns, sums);
}

#endif
