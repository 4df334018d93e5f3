/* See faulty.h: kernels as they are written in cuda/, but wrong. */
#include "launch.cuh"

#include "faulty.h"

namespace
{

__device__ float warp_sum(float x)
{
    for (int bits = WARP / 2; bits; bits /= 2) x += __shfl_xor_sync(ALL_LANES, x, bits);
    return x;
}

__device__ float divergent_sum(float x, int lane)
{
    if (lane < WARP / 2) x += __shfl_xor_sync(ALL_LANES, x, 1);
    return x;
}

__device__ float forked_sum(float x, int lane)
{
    if (lane < WARP / 2)
        x += __shfl_xor_sync(ALL_LANES, x, 1);
    else
        x += __shfl_xor_sync(ALL_LANES, x, 2);
    return x;
}

__device__ void forked_barrier(int thread)
{
    if (thread < FAULTY_THREADS / 2)
        __syncthreads();
    else
        __syncthreads();
}

__device__ int endless(int depth, volatile int *last)
{
    volatile int frame[64];
    frame[depth & 63] = depth;
    *last = depth;
    return depth < 0 ? 0 : endless(depth + 1, last) + frame[(depth + 1) & 63];
}

/* The sums of the warps, each left by its first lane. */
__device__ float block_sum(const float *partial, int fault)
{
    if (fault != FAULTY_NO_BARRIER_SUM) __syncthreads();
    float sum = 0;
    for (int i = 0; i < FAULTY_THREADS / WARP; i++) sum += partial[i];
    return sum;
}

__global__ void faulty(int fault, const float *in, float *out, float *sums)
{
    XPH_ENTER();
    XPH_SHARED(float, staged, [FAULTY_THREADS]);
    XPH_SHARED(float, left, [FAULTY_THREADS]);
    XPH_SHARED(float, partial, [FAULTY_THREADS / WARP]);
    const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP, last = FAULTY_THREADS - 1;
    const int first = static_cast<int>(blockIdx.x) * FAULTY_THREADS, at = first + thread;
    const bool end = blockIdx.x == FAULTY_BLOCKS - 1 && thread == last;
    float x = in[at + (fault == FAULTY_OUT_OF_RANGE && end)];
    if (fault != FAULTY_UNINITIALISED || thread != 77) staged[thread] = x;
    left[thread] = x;
    if (fault == FAULTY_EARLY_EXIT && thread == last) return;
    if (fault == FAULTY_DIVERGENT_BARRIER) forked_barrier(thread);
    if (fault != FAULTY_NO_BARRIER_STAGED) __syncthreads();
    int next = (thread + 1) % FAULTY_THREADS;
    if (fault == FAULTY_SHARED_OUT_OF_RANGE && thread == last) next = last + 1;
    const float *row = staged; /* that a sanitizer would know the end of */
    out[at - (fault == FAULTY_OUT_OF_RANGE_WRITE && !at)] = x + row[next];

    __syncthreads();
    left[thread] = -x;
    if (fault != FAULTY_NO_WARP_BARRIER) __syncwarp();
    x = -left[thread ^ 1];
    if (fault == FAULTY_DIVERGENT_SHUFFLE) x = divergent_sum(x, lane);
    if (fault == FAULTY_OTHER_SHUFFLE) x = forked_sum(x, lane);
    if (fault == FAULTY_STRANGE_LANE && lane < 4) x = __shfl_sync(0xfu, x, 9);
    if (fault == FAULTY_MISALIGNED && thread / 2 == 4) XPH_ALIGNED(in + at, 2 * sizeof *in);
    if (fault == FAULTY_STACK && thread == 5) {
        volatile int depth = 0;
        x += static_cast<float>(endless(0, &depth));
    }
    x = warp_sum(x);
    if (lane == 0) partial[thread / WARP] = x;
    x = block_sum(partial, fault);
    if (thread == 0) sums[blockIdx.x] = x;
}

__global__ void collectives(int32_t *out, int32_t *counter)
{
    XPH_ENTER();
    const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP;
    const unsigned ulane = static_cast<unsigned>(lane), half = lane < 16 ? 0xffffu : 0xffff0000u;
    int32_t results[14] = {
        __shfl_sync(ALL_LANES, thread, 5),
        __shfl_sync(ALL_LANES, thread, lane + 3, 8),
        __shfl_xor_sync(ALL_LANES, thread, 3),
        __shfl_xor_sync(ALL_LANES, thread, 4, 4),
        __shfl_down_sync(ALL_LANES, thread, 2),
        __shfl_down_sync(ALL_LANES, thread, 3, 8),
        __shfl_up_sync(ALL_LANES, thread, 2),
        __shfl_up_sync(ALL_LANES, thread, 3, 8),
        static_cast<int32_t>(__ballot_sync(ALL_LANES, lane % 3 == 0)),
        __any_sync(ALL_LANES, lane == 31) + 2 * __any_sync(ALL_LANES, lane == 32),
        __all_sync(ALL_LANES, lane < 32) + 2 * __all_sync(ALL_LANES, lane < 31),
        static_cast<int32_t>(__shfl_xor_sync(half, static_cast<double>(thread) * 0.5, 1) * 2),
        __popc(__ballot_sync(half, ulane % 2)),
        __ffs(lane),
    };
    for (int i = 0; i < 14; i++) out[i * 64 + thread] = results[i];
    atomicAdd(&counter[0], thread);
    atomicMax(&counter[1], thread);
    atomicCAS(&counter[2], 0, 7);
}

__global__ void scaled(const float *in, float *out, float scale, int64_t count)
{
    XPH_ENTER();
    XPH_SHARED_DYNAMIC(float, tile);
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    const int64_t at = static_cast<int64_t>(block) * threads + thread;
    tile[thread] = at < count ? __ldg(in + at) : 0.0f;
    __syncthreads();
    const unsigned other = threads - 1 - thread;
    const int64_t to = static_cast<int64_t>(block) * threads + other;
    if (to < count) out[to] = scale * tile[other];
}

__global__ void neighbours(int fault, const float *in, float *out)
{
    XPH_ENTER();
    XPH_SHARED(float, left, [CLUSTER_THREADS]);
    const int thread = static_cast<int>(threadIdx.x);
    const int at = static_cast<int>(blockIdx.x) * CLUSTER_THREADS + thread;
    const unsigned next =
        fault == CLUSTER_STRANGE ? xph_cluster_size() : (xph_cluster_rank() + 1) % xph_cluster_size();
    left[thread] = in[at];
    if (fault == CLUSTER_HALF && thread < CLUSTER_THREADS / 2) return;
    if (fault != CLUSTER_EARLY) xph_cluster_sync();
    const float *from = fault == CLUSTER_LOCAL ? in : left;
    from = xph_cluster_map(from, next);
    if (fault == CLUSTER_NO_BARRIER || fault == CLUSTER_OWN_BARRIER) {
        left[thread] = -in[at];
        if (fault == CLUSTER_OWN_BARRIER) __syncthreads();
        out[at] = -from[thread];
    } else if (fault != CLUSTER_ENDS || xph_cluster_rank() != 0) {
        if (fault == CLUSTER_ENDS) __syncthreads();
        out[at] = from[thread + (fault == CLUSTER_BEYOND && thread + 1 == CLUSTER_THREADS)];
    }
    if (fault != CLUSTER_ENDS) xph_cluster_sync();
}

}  // namespace

void cluster_launch(int fault, int size, int blocks, const float *in, float *out)
{
    XPH_LAUNCH_CLUSTER(neighbours, static_cast<unsigned>(size), dim3(static_cast<unsigned>(blocks)),
                       dim3(CLUSTER_THREADS), 0, nullptr, fault, in, out);
}

void faulty_launch(int fault, const float *in, float *out, float *sums)
{
    XPH_LAUNCH(faulty, dim3(FAULTY_BLOCKS), dim3(FAULTY_THREADS), 0, nullptr, fault, in, out, sums);
}

void collectives_launch(int32_t *out, int32_t *counter)
{
    XPH_LAUNCH(collectives, dim3(1), dim3(64), 0, nullptr, out, counter);
}

void dynamic_launch(const float *in, float *out, float scale, int64_t count)
{
    XPH_LAUNCH(scaled, dim3(2, 3, 2), dim3(32, 3), 96 * sizeof(float), nullptr, in, out, scale, count);
}

void too_large_launch(float *out)
{
    XPH_LAUNCH(scaled, dim3(1), dim3(1025), 0, nullptr, out, out, 1.0f, 1);
}

uint16_t bf16_of(float x)
{
    __nv_bfloat16 to = __float2bfloat16(x);
    uint16_t bits;
    memcpy(&bits, &to, sizeof bits);
    return bits;
}

float of_bf16(uint16_t bits)
{
    __nv_bfloat16 from;
    memcpy(&from, &bits, sizeof bits);
    return __bfloat162float(from);
}

uint16_t half_of(float x)
{
    __half to = __float2half(x);
    uint16_t bits;
    memcpy(&bits, &to, sizeof bits);
    return bits;
}

float of_half(uint16_t bits)
{
    __half from;
    memcpy(&from, &bits, sizeof bits);
    return __half2float(from);
}
