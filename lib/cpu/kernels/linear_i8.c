/* Products with int8 weights: inputs are rounded per row to 255 levels, the sums of products are exact in int32, so
 * they are the same whichever instruction makes them:
 *   vpdpbusd    four products of a uint8 and an int8: inputs are offset by 128, and 128 times the sum of a column's
 *               weights is taken off again (sums wrap, the difference does not: |sum| <= 131072 * 127 * 127 < 2^31)
 *   vpmaddubsw  two products in int16, which saturate: |x| times w with the sign of x, at most 2 * 127 * 127 < 2^15
 * Packed: groups as in linear_narrow.h, then per column, filled up to whole panels, the float scale, then int32 128
 * times the sum of the weights. */
#include "cpu/kernels/narrow.h"
#include "cpu/simd/vec.h"

#if defined(XPH_REAL_F32)

typedef uint8_t held;
typedef int32_t total;

#  define NARROW_ITEMS XPH_FN(xph_linear_i8_items)
#  define NARROW_RUN   XPH_FN(xph_linear_i8_run)
#  if defined(__AVX512VNNI__)
#    define LANE_BYTES 64
#    define MANY       14
#    define OFFSET     128
#  elif defined(__AVXVNNI__)
#    define LANE_BYTES 32
#    define MANY       6
#    define OFFSET     128
#  elif defined(__AVX2__)
#    define LANE_BYTES 32
#    define MANY       4
#    define OFFSET     0
#  else
#    define LANE_BYTES 4
#    define MANY       2
#    define OFFSET     0
#  endif
enum { STEP = 4 };

#  include "cpu/kernels/linear_narrow.h"

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

typedef lanes loose_lanes __attribute__((aligned(4), may_alias));

XPH_INLINE lanes lanes_at(const void *from)
{
    return *(const loose_lanes *)from;
}

XPH_INLINE void lanes_to(void *to, lanes l)
{
    *(loose_lanes *)to = l;
}

XPH_INLINE void tile(const int rows, const int panels, const int64_t ldx, const panel_tile *t)
{
    enum { PER_PANEL = NARROW_PANEL_BYTES / LANE_BYTES, COLUMNS = LANE_BYTES / 4 };
    const int columns = panels * PER_PANEL;
    const uint8_t *x = t->x;
    int32_t *sums = t->sums;
    narrow_weights w = t->w;
    soon later = rows >= 8 ? *t->soon : (soon){0};
    lanes sum[TILE_SUMS], weight[8 * PER_PANEL];
    TILE_UNROLL
    for (int i = 0; i < rows * columns; i++) sum[i] = lanes_at(t->zeros);
    if (t->more) {
        TILE_UNROLL
        for (int i = 0; i < rows * columns; i++)
            sum[i] = lanes_at(sums + i / columns * BLOCK + i % columns * COLUMNS);
    }
    for (int64_t k = t->depth; k > 0; k--, x += STEP, w.at += w.depth) {
        if (rows >= 8 && (k & 0) == 0) ask(&later.x), ask(&later.y);
        TILE_UNROLL
        for (int c = 0; c < columns; c++)
            weight[c] =
                lanes_at(w.at + c / PER_PANEL / NARROW_GROUP * w.group +
                         c / PER_PANEL % NARROW_GROUP * NARROW_PANEL_BYTES + c % PER_PANEL * LANE_BYTES);
        TILE_UNROLL
        for (int r = 0; r < rows; r++) {
            inputs four = inputs_at(x + r * ldx);
            TILE_UNROLL
            for (int c = 0; c < columns; c++)
                sum[r * columns + c] = add_products(sum[r * columns + c], four, weight[c]);
        }
    }
    TILE_UNROLL
    for (int i = 0; i < rows * columns; i++)
        lanes_to(sums + i / columns * BLOCK + i % columns * COLUMNS, sum[i]);
    if (rows >= 8) *t->soon = later;
}

/* ---- inputs: x = largest / 127 * level, level = nearest even integer of x * (127 / largest) ---- */

/* What is done by registers of floats; returns how many numbers it was done for. */
#  if VEC_BYTES == 64
XPH_INLINE int64_t largest_of_vecs(const float *x, int64_t count, uint32_t *largest)
{
    __m512i most[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()}, size = _mm512_set1_epi32(0x7fffffff);
    int64_t k = 0;
    for (; k + 32 <= count; k += 32) {
        most[0] = _mm512_max_epu32(most[0], _mm512_and_si512(size, _mm512_loadu_si512(x + k)));
        most[1] = _mm512_max_epu32(most[1], _mm512_and_si512(size, _mm512_loadu_si512(x + k + 16)));
    }
    *largest = _mm512_reduce_max_epu32(_mm512_max_epu32(most[0], most[1]));
    return k;
}

XPH_INLINE int64_t levels_of_vecs(const float *x, int64_t count, float inverse, uint8_t *levels)
{
    const __m512 rounder = _mm512_set1_ps(ROUND_TO_1), unit = _mm512_set1_ps(inverse);
    int64_t k = 0;
    for (; k + 16 <= count; k += 16) {
        __m512 at = _mm512_fmadd_ps(_mm512_loadu_ps(x + k), unit, rounder);
        __m128i bytes = _mm512_cvtepi32_epi8(_mm512_castps_si512(at));
        _mm_storeu_si128((__m128i *)(void *)(levels + k), _mm_xor_si128(bytes, _mm_set1_epi8((char)OFFSET)));
    }
    return k;
}
#  elif VEC_BYTES == 32
XPH_INLINE int64_t largest_of_vecs(const float *x, int64_t count, uint32_t *largest)
{
    __m256i most = _mm256_setzero_si256(), size = _mm256_set1_epi32(0x7fffffff);
    uint32_t each[8];
    int64_t k = 0;
    for (; k + 8 <= count; k += 8) {
        __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)(x + k));
        most = _mm256_max_epu32(most, _mm256_and_si256(size, at));
    }
    memcpy(each, &most, sizeof each);
    *largest = 0;
    for (int i = 0; i < 8; i++) *largest = each[i] > *largest ? each[i] : *largest;
    return k;
}

XPH_INLINE __m256i levels_at(const float *x, __m256 unit)
{
    __m256 rounder = _mm256_set1_ps(ROUND_TO_1);
    __m256i at = _mm256_castps_si256(_mm256_fmadd_ps(_mm256_loadu_ps(x), unit, rounder));
    return _mm256_srai_epi32(_mm256_slli_epi32(at, 24), 24);
}

XPH_INLINE int64_t levels_of_vecs(const float *x, int64_t count, float inverse, uint8_t *levels)
{
    const __m256 unit = _mm256_set1_ps(inverse);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    int64_t k = 0;
    for (; k + 32 <= count; k += 32) {
        __m256i low = _mm256_packs_epi32(levels_at(x + k, unit), levels_at(x + k + 8, unit));
        __m256i high = _mm256_packs_epi32(levels_at(x + k + 16, unit), levels_at(x + k + 24, unit));
        __m256i all = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
        all = _mm256_xor_si256(all, _mm256_set1_epi8((char)OFFSET));
        _mm256_storeu_si256((__m256i *)(void *)(levels + k), all);
    }
    return k;
}
#  else
XPH_INLINE int64_t largest_of_vecs(const float *x, int64_t count, uint32_t *largest)
{
    (void)x, (void)count;
    *largest = 0;
    return 0;
}

XPH_INLINE int64_t levels_of_vecs(const float *x, int64_t count, float inverse, uint8_t *levels)
{
    for (int64_t k = 0; k < count; k++)
        levels[k] = (uint8_t)(bits_of_float(FMA(x[k], inverse, ROUND_TO_1)) ^ OFFSET);
    return count;
}
#  endif

/* The largest size of each row: 0 if below 2^-100, NaN if one is not finite. */
static void measure(const xph_linear_args *a, const item *i, float largest[ROWS])
{
    for (int64_t r = 0; r < i->rows; r++) {
        const float *row = (const float *)a->x + (i->row + r) * a->ldx;
        uint32_t bits;
        int64_t done = largest_of_vecs(row, a->in, &bits);
        uint32_t rest = largest_size(row + done, a->in - done);
        bits = rest > bits ? rest : bits;
        float size = float_of_bits(bits);
        largest[r] = bits >= 0x7f800000u ? __builtin_nanf("") : size < 0x1p-100f ? 0.0f : size;
    }
}

/* Fewer numbers than levels_of_vecs takes at once. */
static void last_levels(const float *x, int64_t count, float inverse, uint8_t *levels)
{
    float filled[32] = {0};
    uint8_t all[32];
    memcpy(filled, x, (size_t)count * sizeof *x);
    levels_of_vecs(filled, 32, inverse, all);
    memcpy(levels, all, (size_t)count);
}

static void hold(const xph_linear_args *a, const item *i, const float largest[ROWS], int64_t from,
                 int64_t count, uint8_t *x, int64_t ldx)
{
    int64_t there = int_min(count, a->in - from);
    for (int64_t r = 0; r < i->rows; r++, x += ldx) {
        const float *row = (const float *)a->x + (i->row + r) * a->ldx + from;
        float inverse = largest[r] > 0.0f ? 127.0f / largest[r] : 0.0f;
        int64_t done = levels_of_vecs(row, there, inverse, x);
        if (done < there) last_levels(row + done, there - done, inverse, x + done);
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
        const float *more =
            a->residual ? (const float *)a->residual + (i->row + r) * a->ldr + i->column : NULL;
        if (bias)
            memcpy(sum, bias, (size_t)i->columns * sizeof *sum);
        else
            memset(sum, 0, (size_t)i->columns * sizeof *sum);
        XPH_VECTOR
        for (int64_t c = 0; c < i->columns; c++) {
            uint32_t exact = (uint32_t)sums[c] - (OFFSET ? (uint32_t)offset[c] : 0u);
            sum[c] = FMA(unit * scale[c], (float)(int32_t)exact, sum[c]);
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

static void pack_column(const float *from, int64_t in, int64_t width, int8_t *to, float *scale,
                        int32_t *offset)
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
    int64_t panels = int_min(NARROW_GROUP, blocks_of(a->out - first, XPH_NARROW_PANEL)),
            width = panels * XPH_NARROW_PANEL;
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
