/* Products with int8 weights: inputs are rounded per row to 255 levels, the sums of products are exact in int32, so
 * they are the same whichever instruction makes them:
 *   vpdpbusd    four products of a uint8 and an int8: inputs are offset by 128, and 128 times the sum of a column's
 *               weights is taken off again (sums wrap, the difference does not: |sum| <= 131072 * 127 * 127 < 2^31)
 *   vpmaddubsw  two products in int16, which saturate: |x| times w with the sign of x, at most 2 * 127 * 127 < 2^15
 * Packed: groups as in linear_narrow.h, then per column, filled up to whole panels, the float scale, then int32 128
 * times the sum of the weights. */
#include "cpu/ref/narrow.h"
#include "cpu/ref/vec.h"

#if defined(XPH_REAL_F32)

typedef uint8_t held;
typedef int32_t total;

#  if defined(__AVX512VNNI__)
#    define LANE_BYTES 64
#    define OFFSET     128
#  elif defined(__AVXVNNI__)
#    define LANE_BYTES 32
#    define OFFSET     128
#  elif defined(__AVX2__)
#    define LANE_BYTES 32
#    define OFFSET     0
#  else
#    define LANE_BYTES 4
#    define OFFSET     0
#  endif

#  define NARROW_RUN XPH_FN(xph_linear_i8_run)
enum {
    STEP = 4,
#  if LANE_BYTES == 64
    MANY = 14,
    MANY_PANELS = 2,
    FEW = 8,
    FEW_PANELS = 4,
    LONE_PANELS = 8
#  elif LANE_BYTES == 32
    MANY = 4,
    MANY_PANELS = 1,
    FEW = 3,
    FEW_PANELS = 2,
    LONE_PANELS = 4
#  else
    MANY = 1,
    MANY_PANELS = 1,
    FEW = 0,
    FEW_PANELS = 1,
    LONE_PANELS = 1
#  endif
};

#  include "cpu/ref/linear_narrow.h"

/* ---- lanes: LANE_BYTES of weights, the sums of LANE_BYTES / 4 columns, four inputs of a row in all lanes ---- */

XPH_INLINE int32_t four_at(const uint8_t *x)
{
    int32_t four;
    memcpy(&four, x, sizeof four);
    return four;
}

#  if LANE_BYTES == 64
typedef __m512i lanes;
typedef __m512i inputs;

XPH_INLINE inputs inputs_at(const uint8_t *x)
{
    return _mm512_set1_epi32(four_at(x));
}
XPH_INLINE lanes add_products(lanes sum, inputs x, lanes w)
{
    return _mm512_dpbusd_epi32(sum, x, w);
}
#  elif defined(__AVXVNNI__)
typedef __m256i lanes;
typedef __m256i inputs;

XPH_INLINE inputs inputs_at(const uint8_t *x)
{
    return _mm256_set1_epi32(four_at(x));
}
XPH_INLINE lanes add_products(lanes sum, inputs x, lanes w)
{
    return _mm256_dpbusd_avx_epi32(sum, x, w);
}
#  elif LANE_BYTES == 32
typedef __m256i lanes;
typedef struct inputs {
    __m256i x, size;
} inputs;

XPH_INLINE inputs inputs_at(const uint8_t *x)
{
    __m256i all = _mm256_set1_epi32(four_at(x));
    return (inputs){all, _mm256_abs_epi8(all)};
}
XPH_INLINE lanes add_products(lanes sum, inputs x, lanes w)
{
    __m256i twos = _mm256_maddubs_epi16(x.size, _mm256_sign_epi8(w, x.x));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(twos, _mm256_set1_epi16(1)));
}
#  else
typedef int32_t lanes;
typedef const int8_t *inputs;

XPH_INLINE inputs inputs_at(const uint8_t *x)
{
    return (const int8_t *)x;
}
XPH_INLINE lanes add_products(lanes sum, inputs x, lanes w)
{
    int8_t four[4];
    memcpy(four, &w, sizeof four);
    return sum + x[0] * four[0] + x[1] * four[1] + x[2] * four[2] + x[3] * four[3];
}
#  endif

XPH_INLINE lanes lanes_at(const void *from)
{
    lanes l;
    memcpy(&l, from, sizeof l);
    return l;
}

XPH_INLINE void tile(const int rows, const int panels, const uint8_t *x, int64_t ldx, narrow_weights w,
                     int64_t depth, int32_t *sums)
{
    enum { PER_PANEL = NARROW_PANEL_BYTES / LANE_BYTES, COLUMNS = LANE_BYTES / 4 };
    const int columns = panels * PER_PANEL;
    lanes sum[28], weight[8 * PER_PANEL];
    XPH_UNROLL
    for (int i = 0; i < rows * columns; i++) sum[i] = lanes_at(sums + i / columns * BLOCK + i % columns * COLUMNS);
    for (int64_t k = 0; k < depth; k++, w.at += w.depth) {
        XPH_UNROLL
        for (int c = 0; c < columns; c++)
            weight[c] = lanes_at(w.at + c / PER_PANEL / NARROW_GROUP * w.group +
                                 c / PER_PANEL % NARROW_GROUP * NARROW_PANEL_BYTES + c % PER_PANEL * LANE_BYTES);
        XPH_UNROLL
        for (int r = 0; r < rows; r++) {
            inputs four = inputs_at(x + r * ldx + 4 * k);
            XPH_UNROLL
            for (int c = 0; c < columns; c++)
                sum[r * columns + c] = add_products(sum[r * columns + c], four, weight[c]);
        }
    }
    XPH_UNROLL
    for (int i = 0; i < rows * columns; i++)
        memcpy(sums + i / columns * BLOCK + i % columns * COLUMNS, &sum[i], sizeof sum[i]);
}

/* ---- inputs: x = largest / 127 * level, level = nearest even integer of x * (127 / largest) ---- */

/* The largest size of each row: 0 if below 2^-100, NaN if one is not finite. */
static void measure(const xph_linear_args *a, const item *i, float largest[ROWS])
{
    for (int64_t r = 0; r < i->rows; r++) {
        uint32_t bits = largest_size((const float *)a->x + (i->row + r) * a->ldx, a->in);
        float size = float_of_bits(bits);
        largest[r] = bits >= 0x7f800000u ? __builtin_nanf("") : size < 0x1p-100f ? 0.0f : size;
    }
}

static void hold(const xph_linear_args *a, const item *i, const float largest[ROWS], int64_t from, int64_t count,
                 uint8_t *x)
{
    const float rounder = 12582912.0f; /* 1.5 * 2^23: of it and small numbers the last bit counts 1 */
    int64_t there = int_min(count, a->in - from);
    for (int64_t r = 0; r < i->rows; r++, x += count) {
        const float *row = (const float *)a->x + (i->row + r) * a->ldx + from;
        float inverse = largest[r] > 0.0f ? 127.0f / largest[r] : 0.0f;
        XPH_VECTOR
        for (int64_t k = 0; k < there; k++)
            x[k] = (uint8_t)(bits_of_float(FMA(row[k], inverse, rounder)) ^ OFFSET);
        for (int64_t k = there; k < count; k++) x[k] = OFFSET;
    }
}

/* ---- results ---- */

/* Bytes of packed before the scales. */
XPH_INLINE int64_t scales_offset(int64_t in, int64_t out)
{
    return blocks_of(out, XPH_NARROW_PANEL) * blocks_of(in, STEP) * NARROW_PANEL_BYTES;
}

static void finish(const xph_linear_args *a, const item *i, const float largest[ROWS], const int32_t *sums)
{
    const float *scale = (const float *)((const char *)a->packed + scales_offset(a->in, a->out));
    const int32_t *offset = (const int32_t *)(scale + blocks_of(a->out, XPH_NARROW_PANEL) * XPH_NARROW_PANEL);
    const float *bias = a->bias ? (const float *)a->bias + i->column : NULL;
    scale += i->column, offset += i->column;
    for (int64_t r = 0; r < i->rows; r++, sums += BLOCK) {
        _Alignas(64) float sum[BLOCK];
        float *y = (float *)a->y + (i->row + r) * a->ldy + i->column, unit = largest[r] / 127.0f;
        const float *more = a->residual ? (const float *)a->residual + (i->row + r) * a->ldr + i->column : NULL;
        XPH_VECTOR
        for (int64_t c = 0; c < i->columns; c++) {
            uint32_t exact = (uint32_t)sums[c] - (OFFSET ? (uint32_t)offset[c] : 0u);
            sum[c] = FMA(unit * scale[c], (float)(int32_t)exact, bias ? bias[c] : 0.0f);
        }
        if (more) {
            XPH_VECTOR
            for (int64_t c = 0; c < i->columns; c++) y[c] = sum[c] + more[c];
        } else {
            memcpy(y, sum, (size_t)i->columns * sizeof *y);
        }
    }
}

/* ---- packing: an item is a group ---- */

static void pack_column(const float *from, int64_t in, int64_t width, int8_t *to, float *scale, int32_t *offset)
{
    float unit = i8_scale(float_of_bits(largest_size(from, in)));
    int32_t sum = 0;
    for (int64_t k = 0; k < in; k++) {
        int8_t level = i8_of(from[k], unit);
        sum += level;
        to[k / 4 * width * 4 + k % 4] = level;
    }
    *scale = unit;
    *offset = (int32_t)(128u * (uint32_t)sum);
}

static void pack_group(const xph_linear_pack_args *a, int64_t group)
{
    int64_t depth = blocks_of(a->in, STEP), first = group * NARROW_GROUP * XPH_NARROW_PANEL;
    int64_t panels = int_min(NARROW_GROUP, blocks_of(a->out - first, XPH_NARROW_PANEL)), width = panels * XPH_NARROW_PANEL;
    int8_t *to = (int8_t *)a->packed + first * depth * STEP;
    float *scale = (float *)((char *)a->packed + scales_offset(a->in, a->out));
    int32_t *offset = (int32_t *)(scale + blocks_of(a->out, XPH_NARROW_PANEL) * XPH_NARROW_PANEL);
    memset(to, 0, (size_t)(width * depth * STEP));
    for (int64_t c = first; c < first + width; c++) {
        scale[c] = 0.0f, offset[c] = 0;
        if (c < a->out)
            pack_column((const float *)a->w + c * a->in, a->in, width, to + (c - first) * STEP, &scale[c],
                        &offset[c]);
    }
}

void XPH_FN(xph_pack_i8_run)(const void *args, int64_t begin, int64_t end)
{
    for (int64_t group = begin; group < end; group++) pack_group(args, group);
}

#endif
