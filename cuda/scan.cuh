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

/* Of what it is made of, the bias added; plain: of itself. */
__device__ inline float scan_delta(bool plain, float dt)
{
    return plain ? dt : softplus(dt);
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

/* Frames of a stage lie within 31 bits of each other. */
inline bool scan_fits(const xph_scan_args *a)
{
    const int64_t far = int64_t(1) << 27;
    return is_stored(a->type) && a->states >= 1 && a->states <= MOST_STATES &&
           a->batch < (int64_t(1) << 31) && a->time < (int64_t(1) << 31) && a->ldx < far && a->lddt < far &&
           a->ldb < far && a->ldc < far && a->ldz < far && a->ldy < far;
}

inline int scan_padded(const xph_scan_args *a)
{
    int padded = 8;
    while (padded < a->states) padded *= 2;
    return padded;
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
