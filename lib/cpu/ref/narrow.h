/* Numbers of fewer bits: bfloat16 and int8 with a scale, as lib/backend.h defines them. The same operations in every
 * set, so the same bits. */
#ifndef XPH_CPU_REF_NARROW_H
#define XPH_CPU_REF_NARROW_H

#include "cpu/ref/real.h"

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

/* Nearest even; a NaN becomes a quiet NaN. */
XPH_INLINE uint16_t nearest_bf16(float x)
{
    uint32_t bits = bits_of_float(x), rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return (uint16_t)((x == x ? rounded : bits | 0x400000u) >> 16);
}

/* The same, and what is below 2^-50 becomes 0. */
XPH_INLINE uint16_t narrow_bf16(float x)
{
    float size = __builtin_fabsf(x);
    return nearest_bf16(size < 0x1p-50f ? 0.0f : x);
}

/* Smallest number of 16 significant bits not below largest / 127, so that its multiples up to 127 are exact; 1 for a
 * row of zeros, and at least 2^-100, below which nothing is left of a weight. */
XPH_INLINE float i8_scale(float largest)
{
    float scale = largest / 127.0f;
    if (!(scale > 0x1p-100f)) return largest > 0.0f ? 0x1p-100f : 1.0f;
    uint32_t bits = bits_of_float(scale);
    return float_of_bits((bits + 0xffu) & ~(uint32_t)0xffu);
}

/* Nearest even of w / scale, within +-127. */
XPH_INLINE int8_t i8_of(float w, float scale)
{
    const float rounder = 12582912.0f; /* 1.5 * 2^23 */
    float q = w / scale;
    q = q > 127.0f ? 127.0f : q;
    q = q < -127.0f ? -127.0f : q;
    return (int8_t)(int32_t)((q + rounder) - rounder);
}

#endif
