/* The numbers of a kernel: how they are stored, and functions of a single number. */
#ifndef XPH_CUDA_ELEMENT_CUH
#define XPH_CUDA_ELEMENT_CUH

#include "device/backend.h"
#include "launch.cuh"

constexpr float LOG2_E = 1.44269504088896340736f, LN_2 = 0.69314718055994530942f;

/* The types of rows, in which kernels store them as a template argument: f(a zero of it). */
inline bool is_stored(xph_type type)
{
    return type == XPH_F32 || type == XPH_BF16 || type == XPH_F16;
}
template <class Each> auto with_stored(xph_type type, Each f)
{
    if (type == XPH_BF16) return f(__nv_bfloat16());
    if (type == XPH_F16) return f(__half());
    return f(0.0f);
}

__device__ inline float load(const float *from)
{
    return __ldg(from);
}
__device__ inline float load(const __nv_bfloat16 *from)
{
    return __bfloat162float(*from);
}
__device__ inline float load(const __half *from)
{
    return __half2float(*from);
}
/* Of what this kernel also writes. */
__device__ inline float load_changing(const float *from)
{
    return *from;
}
__device__ inline float load_changing(const __nv_bfloat16 *from)
{
    return __bfloat162float(*from);
}
__device__ inline float load_changing(const __half *from)
{
    return __half2float(*from);
}
__device__ inline void store(float *to, float x)
{
    *to = x;
}
__device__ inline void store(__nv_bfloat16 *to, float x)
{
    *to = __float2bfloat16(x);
}
__device__ inline void store(__half *to, float x)
{
    *to = __float2half_rn(x);
}

/* x as it is when it has been stored. */
template <class Stored> __device__ inline float as_stored(float x)
{
    Stored cell;
    store(&cell, x);
    return load_changing(&cell);
}

/* Four numbers at once, at a multiple of their size. */
template <class Stored> struct alignas(4 * sizeof(Stored)) stored_four {
    Stored v[4];
};
template <class Stored> __device__ inline float4 load_four(const Stored *from)
{
    const stored_four<Stored> four = *reinterpret_cast<const stored_four<Stored> *>(from);
    return make_float4(load_changing(&four.v[0]), load_changing(&four.v[1]), load_changing(&four.v[2]),
                       load_changing(&four.v[3]));
}
template <class Stored> __device__ inline void store_four(Stored *to, float4 x)
{
    stored_four<Stored> four;
    store(&four.v[0], x.x);
    store(&four.v[1], x.y);
    store(&four.v[2], x.z);
    store(&four.v[3], x.w);
    *reinterpret_cast<stored_four<Stored> *>(to) = four;
}

/* 2^x, to 2 units of the last place; below 2^-126 it is 0. */
__device__ inline float exp2_fast(float x)
{
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

/* 1 / x, to 1 unit of the last place; of more than 2^126 it is 0. */
__device__ inline float reciprocal_fast(float x)
{
#ifdef __CUDACC__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.0f / x;
#endif
}

__device__ inline float sigmoid(float x)
{
    return reciprocal_fast(1.0f + exp2_fast(-LOG2_E * x));
}
__device__ inline float silu(float x)
{
    return x * sigmoid(x);
}
/* Derivative of silu, its sigmoid given. */
__device__ inline float silu_slope(float x, float s)
{
    return s * fmaf(x, 1.0f - s, 1.0f);
}
__host__ __device__ constexpr int64_t blocks_of(int64_t count, int64_t size)
{
    return (count + size - 1) / size;
}
inline unsigned as_grid(int64_t count)
{
    return static_cast<unsigned>(count);
}

#endif
