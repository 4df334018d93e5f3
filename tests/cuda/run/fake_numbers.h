/* Numbers of 16 bits, as the stand-ins for libraries read and write them. */
#ifndef EXPHIL_FAKE_NUMBERS_H
#define EXPHIL_FAKE_NUMBERS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float half_to_float(uint16_t half)
{
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    float x = exponent == 31 ? float_of(0x7f800000u | (uint32_t)fraction << 13)
              : exponent     ? ldexpf((float)(1024 + fraction), exponent - 25)
                             : ldexpf((float)fraction, -24);
    return half & 0x8000 ? -x : x;
}

static inline uint16_t float_to_half(float x)
{
    const uint16_t sign = (uint16_t)(bits_of(x) >> 16 & 0x8000u);
    const float size = fabsf(x);
    int exponent;
    if (isnan(x)) return 0x7e00;
    if (size >= 65520.0f) return sign | 0x7c00;
    if (size < 0x1p-14f) return (uint16_t)(sign | (uint16_t)nearbyintf(ldexpf(size, 24)));
    (void)frexpf(size, &exponent); /* size in [0.5, 1) 2^exponent */
    return (uint16_t)(sign |
                      (uint16_t)((exponent + 13) * 1024 + (int)nearbyintf(ldexpf(size, 11 - exponent))));
}

static inline uint32_t rounded(uint32_t bits, int dropped)
{
    const uint32_t half = 1u << (dropped - 1);
    return (bits + half - 1 + (bits >> dropped & 1)) & ~(2 * half - 1);
}

static inline float bfloat_to_float(uint16_t narrow)
{
    return float_of((uint32_t)narrow << 16);
}

static inline uint16_t float_to_bfloat(float x)
{
    return (uint16_t)(rounded(bits_of(x), 16) >> 16);
}

#endif
