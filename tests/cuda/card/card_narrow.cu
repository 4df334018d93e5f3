/* The narrow numbers of faulty.h as CUDA's own headers make them on the host; the faulty kernels stay with the emulator. */
#include "faulty.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

uint16_t bf16_of(float x)
{
    return static_cast<__nv_bfloat16_raw>(__float2bfloat16(x)).x;
}

float of_bf16(uint16_t bits)
{
    __nv_bfloat16_raw raw;
    raw.x = bits;
    return __bfloat162float(raw);
}

uint16_t half_of(float x)
{
    return static_cast<__half_raw>(__float2half(x)).x;
}

float of_half(uint16_t bits)
{
    __half_raw raw;
    raw.x = bits;
    return __half2float(raw);
}
