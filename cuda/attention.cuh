/* What all kernels of attention share: which keys a frame sees, where they lie, and the arithmetic of the softmax, which
 * is written so that frames alone, chunks of any length and tiles of any size give the same bits:
 *   q.k        one chain of fmaf over the columns; score = fmaf(q.k, scale log2(e), bias log2(e)), a power of 2
 *   softmax    against a base that is a whole number near the largest score so far. Its change scales sums by powers of
 *              two, which is exact: when the base changes leaves no trace. exp2_from makes 2^score from a part that
 *              does not know the base, and a power of two
 *   sum        of the exponentials by class, which is the distance modulo CLASSES, each oldest key first, then the
 *              classes in a tree: 8 apart, 4, 2, 1
 *   values     one chain of fmaf over the keys, oldest first; then times 1 / sum
 *
 * Keys are counted as on the CPU: 0..time-1 are the chunk's own, -1 is the newest of the ring, -2 the one before.
 */
#ifndef XPH_CUDA_ATTENTION_CUH
#define XPH_CUDA_ATTENTION_CUH

#include "kernels.h"
#include "tile.cuh"

constexpr int CLASSES = 16;
constexpr float UNSEEN = -1e30f; /* score of a key that a frame does not see: gives exactly 0 */
/* Of finite scores the lowest: beside an ordinary score it gives exactly 0, beside itself 1. A power of two, so that it
 * comes back from a logarithm, times LN_2 and then LOG2_E, as it was. */
constexpr float LOWEST = -0x1p99f;

/* ---- powers of two ---- */

constexpr float WHOLE = 12582912.0f; /* 1.5 * 2^23: floats around it are whole numbers */

__device__ inline float to_whole(float x)
{
    return (x + WHOLE) - WHOLE;
}
/* 2^k for a whole k up to 127; below -126 it is 0. */
__device__ inline float power_of_two(float k)
{
    return __uint_as_float(__float_as_uint(fmaxf(k + 127.0f, 0.0f) + WHOLE) << 23);
}
/* 2^(s - base) for a whole base; the bits before the scaling do not depend on it. */
__device__ inline float exp2_from(float s, float base)
{
    const float near = to_whole(s);
    return exp2_fast(s - near) * power_of_two(near - base);
}
/* Natural logarithm of 2^base sum, the same bits for the same product. */
__device__ inline float log_of(float base, float sum)
{
    const unsigned bits = __float_as_uint(sum);
    const float exponent = static_cast<float>(static_cast<int>(bits >> 23) - 127);
    const float part = __uint_as_float((bits & 0x007fffffu) | 0x3f800000u);
    return bits < 0x7f800000u ? fmaf(base + exponent, LN_2, logf(part)) : sum;
}

/* NaN stays. */
__device__ inline float at_least_lowest(float score)
{
    return score < LOWEST ? LOWEST : score;
}
/* Of a frame's exponentials; NaN where nothing it sees has a finite score. */
__device__ inline float total_of(float base, float sum)
{
    return base == UNSEEN ? NAN : sum;
}

/* ---- one head of one stream ---- */

struct head_view {
    const float *ring; /* at the head's columns: keys, window rows on the values; null: nothing carried */
    int64_t row, span; /* of the stream's first frame; heads * dim */
    int head, time, dim, window, next, filled;
    float scale, scale2; /* of q.k, and with log2(e) */
};

/* Slot numbers are kept as floats; whatever was restored from outside must not lead out of the ring. */
__device__ inline int slot_number(float value, int limit)
{
    return value >= 0.0f && value <= static_cast<float>(limit) ? static_cast<int>(value) : 0;
}

__device__ inline head_view view_of(const xph_attention_args &a, int64_t stream, int head)
{
    head_view v;
    v.head = head, v.time = static_cast<int>(a.time), v.dim = static_cast<int>(a.dim);
    v.window = static_cast<int>(a.window);
    v.row = stream * a.time, v.span = a.heads * a.dim;
    v.scale = 1.0f / sqrtf(static_cast<float>(v.dim)), v.scale2 = v.scale * LOG2_E;
    v.ring = nullptr, v.next = 0, v.filled = 0;
    if (a.state_in) {
        const float *state = static_cast<const float *>(a.state_in) + stream * a.ld_state;
        const float *counters = state + 2 * a.window * v.span;
        v.ring = state + int64_t(head) * v.dim;
        v.next = slot_number(counters[0], v.window - 1);
        v.filled = slot_number(counters[1], v.window);
    }
    return v;
}

/* Another head of the same stream. */
__device__ inline head_view with_head(head_view v, int head)
{
    if (v.ring) v.ring += int64_t(head - v.head) * v.dim;
    v.head = head;
    return v;
}

/* Where key -filled <= j < 0 lies. */
__device__ inline const float *ring_key(const head_view &v, int j)
{
    const int slot = v.next + j;
    return v.ring + (slot < 0 ? slot + v.window : slot) * v.span;
}
__device__ inline const float *ring_value(const head_view &v, int j)
{
    return ring_key(v, j) + v.window * v.span;
}
/* The head's columns of frame t; keys and values lie span and 2 span further. */
template <class Stored>
__device__ inline const Stored *query_at(const xph_attention_args &a, const head_view &v, int t)
{
    return static_cast<const Stored *>(a.qkv) + (v.row + t) * a.ldqkv + int64_t(v.head) * v.dim;
}
/* Biases mask by -infinity, or by the lowest float, which log2(e) makes infinite: no sum of scores may meet either. A frame
 * of whose keys the former masks all has no softmax, and its base stays UNSEEN. */
__device__ inline float bias_at(const xph_attention_args &a, const head_view &v, int distance)
{
    const float bias = load(static_cast<const float *>(a.bias) + int64_t(v.head) * v.window + distance);
    if (bias == -INFINITY) return UNSEEN;
    return at_least_lowest(bias * LOG2_E);
}

/* ---- the tile of frames of a block ---- */

struct tile_place {
    int64_t stream, tile; /* tile: of the stream */
    int head, t0;
};
/* Tiles of one head lie side by side: they read the same keys. */
__device__ inline tile_place place_of(const xph_attention_args &a)
{
    const unsigned tiles = static_cast<unsigned>(blocks_of(a.time, TILE)), item = blockIdx.x / tiles;
    const unsigned heads = static_cast<unsigned>(a.heads);
    tile_place p;
    p.tile = blockIdx.x % tiles;
    p.stream = item / heads;
    p.head = static_cast<int>(item % heads);
    p.t0 = static_cast<int>(p.tile) * TILE;
    return p;
}

/* ---- what a frame sees ---- */

/* The last reset of the frames stop+1..from, or `otherwise`. For a whole warp. */
__device__ inline int last_reset(const uint8_t *reset, int from, int stop, int otherwise, int lane)
{
    constexpr int WORDS = 8, NONE = 1 << 30;
    for (int top = from; top >= 0 && top > stop; top -= WORDS * WARP) {
        int nearest = NONE;
        XPH_UNROLL
        for (int k = WORDS - 1; k >= 0; k--) {
            const int t = top - k * WARP - lane;
            if (t >= 0 && t > stop && reset[t]) nearest = from - t;
        }
        XPH_UNROLL
        for (int bit = WARP / 2; bit; bit /= 2) {
            const int other = __shfl_xor_sync(ALL_LANES, nearest, bit);
            nearest = other < nearest ? other : nearest;
        }
        if (nearest != NONE) return from - nearest;
    }
    return otherwise;
}

/* Into first[r], r < TILE: the oldest key that frame t0 + r sees. By the first warp of the block. */
__device__ inline void find_first(const xph_attention_args &a, const head_view &v, int t0, int *first)
{
    const int lane = static_cast<int>(threadIdx.x);
    if (lane >= WARP) return;
    int before = -v.filled;
    unsigned cuts[TILE / WARP] = {}; /* bit i: a reset at the i-th frame from the end of these 32 */
    if (a.reset) {
        const uint8_t *reset = a.reset + v.row;
        XPH_UNROLL
        for (int k = 0; k < TILE / WARP; k++) {
            const int t = t0 + k * WARP + WARP - 1 - lane;
            cuts[k] = __ballot_sync(ALL_LANES, t < v.time && reset[t]);
        }
        before = last_reset(reset, t0 - 1, t0 - v.window, before, lane);
    }
    XPH_UNROLL
    for (int k = 0; k < TILE / WARP; k++) {
        const int t = t0 + k * WARP + lane;
        const unsigned here = cuts[k] >> (WARP - 1 - lane);
        const int start = here ? t + 1 - __ffs(static_cast<int>(here)) : before, edge = t - v.window + 1;
        first[k * WARP + lane] = start > edge ? start : edge;
        if (cuts[k]) before = t0 + (k + 1) * WARP - __ffs(static_cast<int>(cuts[k]));
    }
}

/* ---- sums ---- */

template <class A, class B> __device__ inline float chain(const A *a, const B *b, int count)
{
    float s = 0.0f;
    for (int d = 0; d < count; d++) s = fmaf(load(a + d), load(b + d), s);
    return s;
}
/* x . the head's part of key j: 1 its key, 2 its value. */
__device__ inline float dot_with(const xph_attention_args &a, const head_view &v, const float *x, int part,
                                 int j)
{
    const float *row = j >= 0      ? query_at<float>(a, v, j) + part * v.span
                       : part == 1 ? ring_key(v, j)
                                   : ring_value(v, j);
    return chain(x, row, v.dim);
}
template <class Narrow>
__device__ inline float dot_with(const xph_attention_args &a, const head_view &v, const Narrow *x, int part,
                                 int j)
{
    if (j < 0) return chain(x, part == 1 ? ring_key(v, j) : ring_value(v, j), v.dim);
    return chain(x, query_at<Narrow>(a, v, j) + part * v.span, v.dim);
}
/* The classes' tree, over the lanes that differ in the lowest bits. */
__device__ inline float sum_of_classes(float x)
{
    XPH_UNROLL
    for (int bit = CLASSES / 2; bit; bit /= 2) x += __shfl_xor_sync(ALL_LANES, x, bit);
    return x;
}
/* Largest of the warp; NaN counts for nothing. */
__device__ inline float largest_of_warp(float x)
{
    XPH_UNROLL
    for (int bit = WARP / 2; bit; bit /= 2) x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, bit));
    return x;
}

/* ---- what is accepted ---- */

inline bool attention_fits(const xph_attention_args *a)
{
    const int64_t most = int64_t(1) << 30, tiles = blocks_of(a->time, TILE);
    return is_stored(a->type) && a->time < most && a->window >= 1 && a->window < most && a->dim >= 1 &&
           a->heads >= 1 && a->heads * a->dim < most && a->batch < most && a->batch * a->heads < most &&
           a->batch * a->heads * (tiles ? tiles : 1) < most;
}

/* Tiles of 64 frames and 64 keys, by a unit of tile.cuh: for up to 128 columns. Which of them: chains of fmaf, or matrix
 * units where args allow them. */
enum attention_unit { ATTENTION_CHAINS, ATTENTION_MATRICES };
bool attention_tile_accepts(const xph_attention_args *a, attention_unit unit);
int attention_tile_launch(const xph_attention_args *a, attention_unit unit, cudaStream_t stream);
bool attention_tile_grad_accepts(const xph_attention_grad_args *g, attention_unit unit);
int attention_tile_grad_launch(const xph_attention_grad_args *g, attention_unit unit, cudaStream_t stream);

/* Writes state_out, if there is one, when all that reads state_in is done; or its two counters alone. */
void attention_move_ring(const xph_attention_args *a, cudaStream_t stream);
void attention_count_ring(const xph_attention_args *a, cudaStream_t stream);

#endif
