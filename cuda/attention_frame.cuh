/* Attention of one frame by one warp: its lanes are 32 keys, then the columns. */
#ifndef XPH_CUDA_ATTENTION_FRAME_CUH
#define XPH_CUDA_ATTENTION_FRAME_CUH

#include "attention.cuh"

constexpr int FRAME_COLUMNS = 4; /* that a lane sums at once */

/* Score of the key `distance` frames ago. */
template <class Stored>
__device__ inline float score_at(const xph_attention_args &a, const head_view &v, int t, int distance)
{
    const Stored *q = query_at<Stored>(a, v, t);
    const float dot = dot_with(a, v, q, 1, t - distance);
    const float bias = bias_at(a, v, distance), score = fmaf(dot, v.scale2, bias);
    if (bias == UNSEEN && score == score) return UNSEEN;
    return at_least_lowest(score);
}

/* What a warp keeps of a softmax as it goes through groups of 32 keys, oldest group first; the lane is the distance in
 * the group. total: of the classes, in the first CLASSES lanes. */
struct running {
    float base = UNSEEN, total = 0.0f;

    /* 2^score of the lane, and what sums so far are to be scaled by. */
    __device__ float take(float score, float *factor)
    {
        const float next = fmaxf(base, to_whole(largest_of_warp(score)));
        const float e = exp2_from(score, next), older = __shfl_down_sync(ALL_LANES, e, CLASSES);
        *factor = power_of_two(base - next);
        total = (total * *factor + older) + e;
        base = next;
        return e;
    }
    /* In every lane. */
    __device__ float sum() const { return total_of(base, __shfl_sync(ALL_LANES, sum_of_classes(total), 0)); }
};

/* Columns from..from + FRAME_COLUMNS * WARP - 1 of frame t; the softmax is made again for each such part. */
template <class Stored>
__device__ inline void frame_part(const xph_attention_args &a, const head_view &v, int t, int count, int from,
                                  int lane)
{
    running r;
    float sum[FRAME_COLUMNS] = {}, factor;
    for (int group = (count - 1) / WARP; group >= 0; group--) {
        const int near = group * WARP;
        const float e =
            r.take(near + lane < count ? score_at<Stored>(a, v, t, near + lane) : UNSEEN, &factor);
        XPH_UNROLL
        for (int i = 0; i < FRAME_COLUMNS; i++) sum[i] *= factor;
        XPH_KEEP_LOOP
        for (int k = WARP - 1; k >= 0; k--) {
            const float p = __shfl_sync(ALL_LANES, e, k);
            const int j = t - near - k;
            if (near + k >= count) continue;
            XPH_UNROLL
            for (int i = 0; i < FRAME_COLUMNS; i++) {
                const int d = from + i * WARP + lane;
                if (d >= v.dim) continue;
                sum[i] =
                    fmaf(p, j < 0 ? ring_value(v, j)[d] : load(query_at<Stored>(a, v, j) + 2 * v.span + d),
                         sum[i]);
            }
        }
    }
    const float total = r.sum(), quotient = __fdividef(1.0f, total);
    Stored *y = static_cast<Stored *>(a.y) + (v.row + t) * a.ldy + int64_t(v.head) * v.dim;
    XPH_UNROLL
    for (int i = 0; i < FRAME_COLUMNS; i++)
        if (from + i * WARP + lane < v.dim) store(y + from + i * WARP + lane, sum[i] * quotient);
    if (a.saved && !from && !lane)
        static_cast<float *>(a.saved)[(v.row + t) * a.heads + v.head] = log_of(r.base, total);
}

/* Frame t and the `count` keys that it sees. */
template <class Stored>
__device__ inline void attention_frame(const xph_attention_args &a, const head_view &v, int t, int count,
                                       int lane)
{
    for (int from = 0; from < v.dim; from += FRAME_COLUMNS * WARP)
        frame_part<Stored>(a, v, t, count, from, lane);
}

/* What a stream's ring says of itself after the chunk, of which `filled` frames count. */
__device__ inline void leave_counters(const xph_attention_args &a, const head_view &v, int64_t stream,
                                      int filled)
{
    float *counters = static_cast<float *>(a.state_out) + stream * a.ld_state + 2 * a.window * v.span;
    counters[0] = static_cast<float>((int64_t(v.next) + v.time) % v.window);
    counters[1] = static_cast<float>(filled < v.window ? filled : v.window);
}

#endif
