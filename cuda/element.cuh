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

__host__ __device__ inline const float *floats(const void *of)
{
    return static_cast<const float *>(of);
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

/* Two numbers, which are rounded in one instruction. */
__device__ inline void set_two(float *to, float x, float y)
{
    to[0] = x;
    to[1] = y;
}
__device__ inline void set_two(__nv_bfloat16 *to, float x, float y)
{
#ifdef __CUDACC__
    const __nv_bfloat162 two = __floats2bfloat162_rn(x, y);
    to[0] = two.x;
    to[1] = two.y;
#else
    store(to, x);
    store(to + 1, y);
#endif
}
__device__ inline void set_two(__half *to, float x, float y)
{
#ifdef __CUDACC__
    const __half2 two = __floats2half2_rn(x, y);
    to[0] = two.x;
    to[1] = two.y;
#else
    store(to, x);
    store(to + 1, y);
#endif
}

/* Numbers side by side, which move at once: they lie at a multiple of their size. */
template <class Stored, int COUNT> struct alignas(COUNT * sizeof(Stored)) stored_group {
    Stored v[COUNT];
};
template <int COUNT, class Stored> __device__ inline void load_group(const Stored *from, float (&x)[COUNT])
{
    if constexpr (COUNT == 1) {
        x[0] = load(from);
    } else {
        XPH_ALIGNED(from, sizeof(stored_group<Stored, COUNT>));
        const auto group = *reinterpret_cast<const stored_group<Stored, COUNT> *>(from);
        XPH_UNROLL
        for (int i = 0; i < COUNT; i++) x[i] = load_changing(&group.v[i]);
    }
}
template <int COUNT, class Stored> __device__ inline void store_group(Stored *to, const float (&x)[COUNT])
{
    if constexpr (COUNT == 1) {
        store(to, x[0]);
    } else {
        XPH_ALIGNED(to, sizeof(stored_group<Stored, COUNT>));
        stored_group<Stored, COUNT> group;
        XPH_UNROLL
        for (int i = 0; i < COUNT; i += 2) set_two(&group.v[i], x[i], x[i + 1]);
        *reinterpret_cast<stored_group<Stored, COUNT> *>(to) = group;
    }
}
/* The numbers as they are when they have been stored. */
template <class Stored, int COUNT>
__device__ inline void as_stored_group(const float (&x)[COUNT], float (&stored)[COUNT])
{
    XPH_UNROLL
    for (int i = 0; i < COUNT; i += 2) {
        Stored two[2];
        set_two(two, x[i], x[i + 1]);
        stored[i] = load_changing(&two[0]);
        stored[i + 1] = load_changing(&two[1]);
    }
}
/* Whether rows that begin at `at`, ld numbers apart, can be read and written by so many numbers at once. */
template <class Stored> inline bool grouped(const void *at, int64_t ld, int count)
{
    return reinterpret_cast<uintptr_t>(at) % (static_cast<unsigned>(count) * sizeof(Stored)) == 0 &&
           ld % count == 0;
}

template <class Stored> __device__ inline float4 load_four(const Stored *from)
{
    float x[4];
    load_group(from, x);
    return make_float4(x[0], x[1], x[2], x[3]);
}
template <class Stored> __device__ inline void store_four(Stored *to, float4 x)
{
    const float four[4] = {x.x, x.y, x.z, x.w};
    store_group(to, four);
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
/* Whether a grid can have so many blocks along y or z; along x it can have 2^31 - 1. */
inline bool fits_across(int64_t blocks)
{
    return blocks < 1 << 16;
}
inline unsigned as_grid(int64_t count)
{
    return static_cast<unsigned>(count);
}

#endif
