/* Numbers of fewer bits: bfloat16 and int8 with a scale, as lib/device/backend.h defines them. The same operations in every
 * set, so the same bits. */
#ifndef XPH_CPU_KERNELS_NARROW_H
#define XPH_CPU_KERNELS_NARROW_H

#include "cpu/kernels/real.h"

XPH_INLINE uint32_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

XPH_INLINE float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

XPH_INLINE float wide_bf16(uint16_t bits)
{
    return float_of_bits((uint32_t)bits << 16);
}

/* Nearest even, with something behind the bfloat16; a NaN becomes a quiet NaN. */
XPH_INLINE uint32_t nearest_bits(uint32_t bits)
{
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return (bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : rounded;
}

XPH_INLINE uint16_t nearest_bf16(float x)
{
    return (uint16_t)(nearest_bits(bits_of_float(x)) >> 16);
}

/* The same, and what is below 2^-50 becomes 0; as a float. */
XPH_INLINE uint32_t narrow_bits(float x)
{
    const uint32_t least = 0x26800000u; /* 2^-50 */
    uint32_t bits = bits_of_float(x), rounded = nearest_bits(bits) & 0xffff0000u;
    return (bits & 0x7fffffffu) < least ? 0u : rounded;
}

XPH_INLINE uint16_t narrow_bf16(float x)
{
    return (uint16_t)(narrow_bits(x) >> 16);
}

/* Smallest number of 16 significant bits not below largest / 127, so that its multiples up to 127 are exact; 1 for a
 * row of zeros, at least 2^-100, below which nothing is left of a weight, at most 2^120, so that none is infinite. NaN
 * where largest is NaN or infinite. */
XPH_INLINE float i8_scale(float largest)
{
    if (!(largest < __builtin_inff())) return __builtin_nanf("");
    if (largest <= 127.0f * 0x1p-100f) return largest > 0.0f ? 0x1p-100f : 1.0f;
    uint32_t bits = bits_of_float(largest / 127.0f);
    float scale = float_of_bits((bits + 0xffu) & ~(uint32_t)0xffu);
    return scale < 0x1p120f ? scale : 0x1p120f;
}

/* 1.5 * 2^23: of this and a small number the last bit counts 1, and the last byte is an int8. */
#define ROUND_TO_1 12582912.0f

/* Nearest even integer of a number within +-2^22, of a NaN 0. */
XPH_INLINE int32_t nearest_integer(float x)
{
    return x == x ? (int32_t)(bits_of_float(x + ROUND_TO_1) - bits_of_float(ROUND_TO_1)) : 0;
}

/* w / scale, within +-127. */
XPH_INLINE int8_t i8_of(float w, float scale)
{
    float q = w / scale;
    q = q > 127.0f ? 127.0f : q;
    q = q < -127.0f ? -127.0f : q;
    return (int8_t)nearest_integer(q);
}

/* The largest |x|, as bits: these order as the numbers do, with infinity and then NaN above all. */
XPH_INLINE uint32_t largest_size(const real *x, int64_t count)
{
    uint32_t largest = 0;
    XPH_VECTOR
    for (int64_t i = 0; i < count; i++) {
        uint32_t size = bits_of_float((float)x[i]) & 0x7fffffffu;
        largest = size > largest ? size : largest;
    }
    return largest;
}

/* ---- packed weights of fewer bits: see linear_narrow.h ---- */

enum {
    NARROW_GROUP = 4,       /* panels */
    NARROW_PANEL_BYTES = 64 /* of a panel, two bfloat16s or four int8s of each column */
};

/* Panel i lies at at + i/NARROW_GROUP*group + i%NARROW_GROUP*NARROW_PANEL_BYTES, its next inputs `depth` bytes on. */
typedef struct narrow_weights {
    const char *at;
    int64_t group, depth;
} narrow_weights;

/* ---- what linear.c lists for them: single precision only, and last in line nothing that would take them ---- */

XPH_INLINE bool linear_bf16_accepts(const void *args)
{
    const xph_linear_args *a = args;
    return a->weights == XPH_BF16;
}
XPH_INLINE bool linear_i8_accepts(const void *args)
{
    const xph_linear_args *a = args;
    return a->weights == XPH_I8 && a->in <= 131072;
}
XPH_INLINE bool linear_plain_accepts(const void *args)
{
    const xph_linear_args *a = args;
    return a->weights == 0;
}
XPH_INLINE bool pack_bf16_accepts(const void *args)
{
    const xph_linear_pack_args *a = args;
    return a->weights == XPH_BF16;
}
XPH_INLINE bool pack_i8_accepts(const void *args)
{
    const xph_linear_pack_args *a = args;
    return a->weights == XPH_I8 && a->in <= 131072;
}
XPH_INLINE bool pack_plain_accepts(const void *args)
{
    const xph_linear_pack_args *a = args;
    return a->weights == 0;
}

int64_t XPH_FN(xph_linear_bf16_items)(const void *args);
int64_t XPH_FN(xph_linear_dp_items)(const void *args);
int64_t XPH_FN(xph_linear_i8_items)(const void *args);
int64_t XPH_FN(xph_narrow_pack_items)(const void *args);
void XPH_FN(xph_linear_bf16_run)(const void *args, int64_t begin, int64_t end);
void XPH_FN(xph_linear_dp_run)(const void *args, int64_t begin, int64_t end);
void XPH_FN(xph_linear_i8_run)(const void *args, int64_t begin, int64_t end);
void XPH_FN(xph_pack_bf16_run)(const void *args, int64_t begin, int64_t end);
void XPH_FN(xph_pack_i8_run)(const void *args, int64_t begin, int64_t end);
/* y of a block of results: sums [rows][256] + bias + residual */
void XPH_FN(xph_linear_bf16_finish)(const xph_linear_args *a, int64_t row, int64_t rows, int64_t column,
                                    int64_t columns, const float *sums);

/* In front of the candidates that linear.c has itself. */
#if defined(__AVX512BF16__)
#  define NARROW_DP                                                                                          \
    {.name = XPH_LABEL("linear_bf16_dp"),                                                                    \
     .accepts = linear_bf16_accepts,                                                                         \
     .phase = {{XPH_FN(xph_linear_dp_items), XPH_FN(xph_linear_dp_run)}}},
#else
#  define NARROW_DP
#endif
#if defined(XPH_REAL_F32)
#  define XPH_NARROW_LINEAR                                                                                  \
    NARROW_DP{.name = XPH_LABEL("linear_bf16"),                                                              \
              .accepts = linear_bf16_accepts,                                                                \
              .phase = {{XPH_FN(xph_linear_bf16_items), XPH_FN(xph_linear_bf16_run)}}},                      \
        {.name = XPH_LABEL("linear_i8"),                                                                     \
         .accepts = linear_i8_accepts,                                                                       \
         .phase = {{XPH_FN(xph_linear_i8_items), XPH_FN(xph_linear_i8_run)}}},
#  define XPH_NARROW_PACK                                                                                    \
    {.name = XPH_LABEL("pack_bf16"),                                                                         \
     .accepts = pack_bf16_accepts,                                                                           \
     .phase = {{XPH_FN(xph_narrow_pack_items), XPH_FN(xph_pack_bf16_run)}}},                                 \
        {.name = XPH_LABEL("pack_i8"),                                                                       \
         .accepts = pack_i8_accepts,                                                                         \
         .phase = {{XPH_FN(xph_narrow_pack_items), XPH_FN(xph_pack_i8_run)}}},
#else
#  define XPH_NARROW_LINEAR
#  define XPH_NARROW_PACK
#endif

#endif
