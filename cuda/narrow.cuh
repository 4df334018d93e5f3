/* Numbers of fewer bits as lib/device/backend.h defines them: the operations of lib/cpu/kernels/narrow.h, so the same bits. */
#ifndef XPH_CUDA_NARROW_CUH
#define XPH_CUDA_NARROW_CUH

#include "element.cuh"

/* 1.5 * 2^23: of this and a small number the last bit counts 1, and the last byte is an int8. */
constexpr float ROUND_TO_1 = 12582912.0f, LEAST_ROW = 0x1p-100f, LEVELS = 127.0f;
constexpr unsigned SIZE_BITS = 0x7fffffffu, INFINITY_BITS = 0x7f800000u, NAN_BITS = 0x7fc00000u;

/* The nearest bfloat16, even of two, as the float it is; what is below 2^-50 is 0, a NaN a quiet one. */
__device__ inline unsigned narrow_bits(float x)
{
    const unsigned least = 0x26800000u, bits = __float_as_uint(x), size = bits & SIZE_BITS;
    const unsigned rounded = size > INFINITY_BITS ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
    return size < least ? 0u : rounded & 0xffff0000u;
}

/* Sizes as bits order as the numbers do, with infinity and then NaN above all. */
__device__ inline unsigned size_bits(float x)
{
    return __float_as_uint(x) & SIZE_BITS;
}

/* Smallest number of 16 significant bits not below largest / 127; 1 for a row of zeros, at least 2^-100, at most 2^120.
 * NaN where largest, given as bits, is NaN or infinite. */
__device__ inline float i8_scale(unsigned largest_bits)
{
    const float largest = __uint_as_float(largest_bits);
    if (largest_bits >= INFINITY_BITS) return __uint_as_float(NAN_BITS);
    if (largest <= LEVELS * LEAST_ROW) return largest > 0.0f ? LEAST_ROW : 1.0f;
    const unsigned bits = __float_as_uint(largest / LEVELS);
    const float scale = __uint_as_float((bits + 0xffu) & ~0xffu);
    return scale < 0x1p120f ? scale : 0x1p120f;
}

/* w / scale as the nearest integer, even of two, within +-127; 0 of a NaN. */
__device__ inline int i8_of(float w, float scale)
{
    float q = w / scale;
    q = q > LEVELS ? LEVELS : q;
    q = q < -LEVELS ? -LEVELS : q;
    return q == q ? static_cast<int>(__float_as_uint(q + ROUND_TO_1) - __float_as_uint(ROUND_TO_1)) : 0;
}

/* sum + the products of four int8s each. */
__device__ inline int add_four(int a, int b, int sum)
{
#ifdef __CUDACC__
    return __dp4a(a, b, sum);
#else
    for (int i = 0; i < 32; i += 8)
        sum += static_cast<int8_t>(a >> i & 0xff) * static_cast<int8_t>(b >> i & 0xff);
    return sum;
#endif
}

__device__ inline unsigned largest_of_warp(unsigned mine)
{
    XPH_UNROLL
    for (int bit = WARP / 2; bit; bit /= 2) {
        const unsigned other = __shfl_xor_sync(ALL_LANES, mine, bit);
        mine = other > mine ? other : mine;
    }
    return mine;
}

/* The largest of all THREADS threads' numbers, in every one of them. */
template <int THREADS> __device__ inline unsigned largest_of_block(unsigned mine)
{
    XPH_SHARED(unsigned, each, [THREADS / WARP]);
    mine = largest_of_warp(mine);
    if (threadIdx.x % WARP == 0) each[threadIdx.x / WARP] = mine;
    __syncthreads();
    XPH_UNROLL
    for (int i = 0; i < THREADS / WARP; i++) mine = each[i] > mine ? each[i] : mine;
    __syncthreads(); /* each is free again */
    return mine;
}

#endif
