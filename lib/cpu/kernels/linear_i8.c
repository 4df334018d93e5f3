/* Products with int8 weights: inputs are rounded per row to 255 levels, the sums of products are exact in int32, so
 * they are the same whichever instruction makes them:
 *   vpdpbusd    four products of a uint8 and an int8: inputs are offset by 128, and 128 times the sum of a column's
 *               weights is taken off again (sums wrap, the difference does not: |sum| <= 131072 * 127 * 127 < 2^31)
 *   vpmaddubsw  two products in int16, which saturate: |x| times w with the sign of x, at most 2 * 127 * 127 < 2^15
 *   sdot        four products of int8s
 *   smull       one product in int16, of which two are added, at most the same
 *   i32x4.dot_i16x8_s   two products of int16s, which the int8s are made before
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
#  elif defined(XPH_NEON) || defined(XPH_SIMD128)
#    define LANE_BYTES 16
#    define MANY       6
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
#  elif defined(XPH_NEON)
typedef int32x4_t lanes;
typedef int8x16_t inputs;

XPH_INLINE inputs inputs_at(const uint8_t *x)
{
    return vreinterpretq_s8_s32(vdupq_n_s32(four_at(x)));
}
XPH_INLINE lanes add_products(lanes sum, inputs x, lanes w)
{
    const int8x16_t all = vreinterpretq_s8_s32(w);
#    if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(sum, all, x);
#    else
    int16x8_t low = vmull_s8(vget_low_s8(all), vget_low_s8(x)), high = vmull_high_s8(all, x);
    return vpadalq_s16(sum, vpaddq_s16(low, high));
#    endif
}
#  elif defined(XPH_SIMD128)
typedef v128_t lanes;
typedef v128_t inputs;

XPH_INLINE inputs inputs_at(const uint8_t *x)
{
    return wasm_i16x8_extend_low_i8x16(wasm_i32x4_splat(four_at(x)));
}
XPH_INLINE lanes add_products(lanes sum, inputs x, lanes w)
{
    const v128_t low = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(w), x),
                 high = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(w), x);
    return wasm_i32x4_add(sum, wasm_i32x4_add(wasm_i32x4_shuffle(low, high, 0, 2, 4, 6),
                                              wasm_i32x4_shuffle(low, high, 1, 3, 5, 7)));
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

enum { PER_PANEL = NARROW_PANEL_BYTES / LANE_BYTES };

/* `count` registers of weights, from number `first` of a step on. */
XPH_INLINE void weights_at(narrow_weights w, const int first, const int count, lanes *weight)
{
    TILE_UNROLL
    for (int i = 0; i < count; i++) {
        const int panel = (first + i) / PER_PANEL;
        weight[i] =
            lanes_at(w.at + panel / NARROW_GROUP * w.group + panel % NARROW_GROUP * NARROW_PANEL_BYTES +
                     (first + i) % PER_PANEL * LANE_BYTES);
    }
#  if defined(XPH_NEON)
    TILE_UNROLL
    for (int i = 0; i + 1 < count; i += 2) VEC_HOLD_TWO(weight[i], weight[i + 1]);
#  endif
}

XPH_INLINE void tile(const int rows, const int panels, const int64_t ldx, const panel_tile *t)
{
    enum { COLUMNS = LANE_BYTES / 4 };
    const int columns = panels * PER_PANEL, some = VEC_LOADS == 2 && columns > 4 ? 2 : columns;
    const uint8_t *x = t->x;
    int32_t *sums = t->sums;
    narrow_weights w = t->w;
    prefetch later = rows >= 8 ? *t->prefetch : (prefetch){0};
    lanes sum[TILE_SUMS], weight[8 * PER_PANEL];
    TILE_UNROLL
    for (int i = 0; i < rows * columns; i++) sum[i] = lanes_at(t->zeros);
    if (t->more) {
        TILE_UNROLL
        for (int i = 0; i < rows * columns; i++)
            sum[i] = lanes_at(sums + i / columns * BLOCK + i % columns * COLUMNS);
    }
    for (int64_t k = t->depth; k > 0; k--, x += STEP, w.at += w.depth) {
        if (rows >= 8 && (k & 0) == 0) prefetch_line(&later.x), prefetch_line(&later.y);
        TILE_UNROLL
        for (int first = 0; first < columns; first += some) {
            weights_at(w, first, some, weight);
            TILE_UNROLL
            for (int r = 0; r < rows; r++) {
                inputs four = inputs_at(x + r * ldx);
                TILE_UNROLL
                for (int c = 0; c < some; c++)
                    sum[r * columns + first + c] =
                        add_products(sum[r * columns + first + c], four, weight[c]);
            }
        }
    }
    TILE_UNROLL
    for (int i = 0; i < rows * columns; i++)
        lanes_to(sums + i / columns * BLOCK + i % columns * COLUMNS, sum[i]);
    if (rows >= 8) *t->prefetch = later;
}

/* ---- inputs: x = largest / 127 * level, level = nearest even integer of x * (127 / largest) ---- */

/* Vectors are taken two, or VEC_NARROW, at a time; both return how many numbers they have gone through. */
XPH_INLINE int64_t largest_of_vecs(const float *x, int64_t count, uint32_t *largest)
{
    vec_bits most[2] = {{0}};
    int64_t k = 0;
    for (; k + 2 * VEC <= count; k += 2 * VEC) {
        XPH_UNROLL
        for (int i = 0; i < 2; i++)
            most[i] = vec_bits_max(most[i], vec_bits_load(x + k + i * VEC) & 0x7fffffffu);
    }
    *largest = vec_bits_top(vec_bits_max(most[0], most[1]));
    return k;
}

XPH_INLINE int64_t levels_of_vecs(const float *x, int64_t count, float inverse, uint8_t *levels)
{
    const vec rounder = vec_all(ROUND_TO_1), unit = vec_all(inverse);
    int64_t k = 0;
    for (; k + VEC_NARROW * VEC <= count; k += VEC_NARROW * VEC) {
        vec_bits at[VEC_NARROW];
        XPH_UNROLL
        for (int i = 0; i < VEC_NARROW; i++)
            at[i] = (vec_bits)vec_fma(vec_load(x + k + i * VEC), unit, rounder);
        vec_store_bytes(levels + k, at, OFFSET);
    }
    return k;
}

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
    float filled[VEC_NARROW * VEC] = {0};
    uint8_t all[VEC_NARROW * VEC];
    memcpy(filled, x, (size_t)count * sizeof *x);
    levels_of_vecs(filled, VEC_NARROW * VEC, inverse, all);
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
