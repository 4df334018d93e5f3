/* What the selective scan and its gradient share. N states are padded to PADDED = 8, 16, 32 or 64 of them;
 * those beyond N have rate, b and c zero, so they stay zero and add zero.
 *
 * Every state is h' = fma(2^(delta rate), h, (delta x) b) with rate = -exp(a_log) log2(e), in every kernel:
 * forward, one frame and the recomputation in the gradient hold the same bits. The sum over the states runs
 * in four chains of PADDED / 4 neighbours each, joined (0 + 1) + (2 + 3): one lane, two or four per channel
 * make the same sum.
 */
#ifndef XPH_CUDA_SCAN_CUH
#define XPH_CUDA_SCAN_CUH

#include "element.cuh"
#include "kernels.h"

/* In a branch: it stays one, and the compiler makes no choice of values of it. */
#define XPH_BRANCH asm volatile("")

constexpr int CHAINS = 4;
constexpr int MOST_STATES = 64;
constexpr int CHUNK = 8; /* frames between two marks */

/* Where a frame starts an episode, what was carried counts as zero. */
__device__ inline float scan_next(float decay, float before, bool cut, float inflow_b)
{
    return fmaf(decay, cut ? 0.0f : before, inflow_b);
}

__device__ inline float scan_rate_of(float a_log)
{
    return -expf(a_log) * LOG2_E;
}

__device__ inline float scan_rate(const xph_scan_args &a, int64_t channel, int n)
{
    if (n >= a.states) return 0.0f;
    if (a.fixed) return -static_cast<float>(n + 1) * LOG2_E;
    const int64_t at = channel * a.states + n;
    if (a.decay) return load(static_cast<const float *>(a.decay) + at);
    return scan_rate_of(load(static_cast<const float *>(a.a_log) + at));
}

/* softplus and its slope. log(1 + t) / t is a polynomial for 0 <= t <= 1, within 4e-8 of itself. */
struct scan_soft {
    float value, slope;
};
__device__ inline scan_soft scan_softplus(float x)
{
    const float t = exp2_fast(-fabsf(x) * LOG2_E);
    float p = 5.126102141e-03f;
    p = fmaf(p, t, -2.907406468e-02f);
    p = fmaf(p, t, 7.751608674e-02f);
    p = fmaf(p, t, -1.360224762e-01f);
    p = fmaf(p, t, 1.907688074e-01f);
    p = fmaf(p, t, -2.483539899e-01f);
    p = fmaf(p, t, 3.331812171e-01f);
    p = fmaf(p, t, -4.999944498e-01f);
    p = fmaf(p, t, 9.999999659e-01f);
    return {fmaf(p, t, fmaxf(x, 0.0f)), (x < 0.0f ? t : 1.0f) * reciprocal_fast(1.0f + t)};
}
/* Of what it is made of, the bias added; plain: of itself. */
__device__ inline scan_soft scan_step_of(bool plain, float dt)
{
    if (plain) return {dt, 1.0f};
    return scan_softplus(dt);
}
__device__ inline float scan_delta(bool plain, float dt)
{
    return scan_step_of(plain, dt).value;
}
__device__ inline float scan_sigmoid(float x)
{
    return reciprocal_fast(1.0f + exp2_fast(-x * LOG2_E));
}

/* The states of a lane one frame on; returns the channel's sum of c h, in all its lanes. cut is the same for all lanes of
 * a warp, and rare: a branch clears the states, or every frame would choose each of them. */
template <int PADDED, int LANES>
__device__ inline float scan_advance(float (&h)[PADDED / LANES], const float (&rate)[PADDED / LANES],
                                     float delta, float inflow, bool cut, const float *b, const float *c)
{
    constexpr int CHAIN = PADDED / CHAINS, OWN = CHAINS / LANES;
    float sum[OWN];
    if (cut) {
        XPH_BRANCH;
        XPH_UNROLL
        for (int n = 0; n < PADDED / LANES; n++) h[n] = 0.0f;
    }
    XPH_UNROLL
    for (int k = 0; k < OWN; k++) {
        sum[k] = 0.0f;
        XPH_UNROLL
        for (int i = 0; i < CHAIN; i++) {
            const int n = k * CHAIN + i;
            h[n] = scan_next(exp2_fast(delta * rate[n]), h[n], false, inflow * b[n]);
            sum[k] = fmaf(c[n], h[n], sum[k]);
        }
    }
    XPH_UNROLL
    for (int k = 1; k < OWN; k *= 2) {
        XPH_UNROLL
        for (int i = 0; i + k < OWN; i += 2 * k) sum[i] += sum[i + k];
    }
    XPH_UNROLL
    for (int lane = 1; lane < LANES; lane *= 2) sum[0] += __shfl_xor_sync(ALL_LANES, sum[0], lane);
    return sum[0];
}

/* Marks: the state before every chunk but the first, as float4s [stream][chunk - 1][PADDED / 4][channel], for the gradient,
 * which would else have to run forward again. */
__host__ __device__ inline int64_t scan_chunks(const xph_scan_args &a)
{
    return (a.time + CHUNK - 1) / CHUNK;
}
/* Where a number lies in a matrix, both counted in 31 bits. */
__device__ inline uint64_t scan_at(int row, int64_t ld, int column)
{
    return uint64_t(static_cast<uint32_t>(row)) * static_cast<uint32_t>(ld) + static_cast<uint32_t>(column);
}

/* Of the block's stream. */
__device__ inline uint64_t scan_mark_at(const xph_scan_args &a, int padded, int chunk, int quad, int channel)
{
    const int before = static_cast<int>(blockIdx.x) * (static_cast<int>(scan_chunks(a)) - 1) + chunk - 1;
    return scan_at(before * (padded / 4) + quad, a.width, channel);
}

/* threadIdx.x, read anew: what is made of it does not stay in registers while a chunk needs them. */
__device__ inline unsigned this_thread()
{
#ifdef __CUDACC__
    unsigned thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
#else
    return threadIdx.x;
#endif
}

/* Of skip or delta_bias. */
__device__ inline float scan_of_channel(const void *vector, int64_t channel)
{
    return vector ? load(static_cast<const float *>(vector) + channel) : 0.0f;
}

/* b (c) of a frame, state n. */
template <class Stored>
__device__ inline float scan_row(const xph_scan_args &a, const void *matrix, int64_t ld, int64_t row, int n)
{
    return n < a.states ? load(static_cast<const Stored *>(matrix) + row * ld + n) : 0.0f;
}

/* Frames of a stage lie within 31 bits of each other, and rows, and those of marks, are counted in 31 bits. */
constexpr int64_t MOST_LD = int64_t(1) << 27;
inline bool scan_fits(const xph_scan_args *a)
{
    const int64_t far = MOST_LD;
    return is_stored(a->type) && a->states >= 1 && a->states <= MOST_STATES &&
           a->batch < (int64_t(1) << 31) && a->time < (int64_t(1) << 31) &&
           a->batch * a->time < (int64_t(1) << 27) && a->width < (int64_t(1) << 24) && a->ldx < far &&
           a->lddt < far && a->ldb < far && a->ldc < far && a->ldz < far && a->ldy < far;
}

inline int scan_padded(const xph_scan_args *a)
{
    int padded = 8;
    while (padded < a->states) padded *= 2;
    return padded;
}
inline size_t scan_marks_bytes(const xph_scan_args *a)
{
    if (a->time <= CHUNK) return 0;
    return static_cast<size_t>(a->batch * (scan_chunks(*a) - 1) * scan_padded(a) * a->width) * sizeof(float);
}

/* Runs Do<Stored, PADDED>::run for the type and the number of states of a. */
template <template <class, int> class Do, class Stored, class... More>
int scan_by_states(const xph_scan_args *a, More... more)
{
    switch (scan_padded(a)) {
    case 8:
        return Do<Stored, 8>::run(more...);
    case 16:
        return Do<Stored, 16>::run(more...);
    case 32:
        return Do<Stored, 32>::run(more...);
    default:
        return Do<Stored, 64>::run(more...);
    }
}
template <template <class, int> class Do, class... More>
int scan_by_type(const xph_scan_args *a, More... more)
{
    return with_stored(a->type, [&](auto zero) { return scan_by_states<Do, decltype(zero)>(a, more...); });
}

#endif
