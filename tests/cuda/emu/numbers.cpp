/* bfloat16 and half of the emulated GPU. */
#include "emu.h"

__nv_bfloat16 __float2bfloat16(float x)
{
    uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
    return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}

float __bfloat162float(__nv_bfloat16 x)
{
    return __uint_as_float(uint32_t(x.bits) << 16);
}

/* Below 2^-14 the unit is 2^-24, and the processor's own addition rounds to it. */
__half __float2half(float x)
{
    uint32_t bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return {0x7fff};
    if (size >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};
    if (size < 0x38800000u) {
        uint32_t tiny = __float_as_uint(__uint_as_float(size) + 0.5f) - __float_as_uint(0.5f);
        return {static_cast<uint16_t>(sign | tiny)};
    }
    uint32_t rounded = size + 0xfffu + (size >> 13 & 1) - (112u << 23);
    return {static_cast<uint16_t>(sign | rounded >> 13)};
}

float __half2float(__half x)
{
    uint32_t sign = (x.bits & 0x8000u) << 16, size = x.bits & 0x7fffu;
    if (size >= 0x7c00u) return __uint_as_float(sign | 0x7f800000u | (size & 0x3ffu) << 13);
    float value = static_cast<float>(size) * 0x1p-24f; /* below 2^-14 */
    if (size >= 0x400u) value = __uint_as_float((size << 13) + (112u << 23));
    return sign ? -value : value;
}
