/* Draws actions head by head from the trunk (XPH_OP_SAMPLE): the value drawn for a head changes the trunk
 * that the next head sees, so a row is a chain, whose time is latency. A block works on one row. Each of its
 * warps holds the whole trunk, lane l the columns l, l + 32, ..., and makes every WARPS-th logit of a head,
 * ONCE of them at a time; each logit's score in the draw goes to shared memory, and behind one barrier every
 * warp draws for itself and updates its trunk.
 *
 * Logits have the bits of heads.cu. The heads and their settings, host arrays in args, are passed with the
 * launch. With few rows the weights are prefetched: they do not depend on what is drawn.
 */
#include "fold.cuh"
#include "kernels.h"

#include <math.h>

namespace
{

constexpr int THREADS = 256, WARPS = THREADS / WARP, MOST_HEADS = 32, MOST_CLASSES = 1024, ONCE = 4;
constexpr int TWINS = WARP / ONCE; /* lanes that end with the same logit of those made at once */
constexpr int64_t FEW_ROWS = 64, LINE = 128;

/* One head and its rule. */
struct rule {
    xph_head head;
    xph_sample_head how;
};
struct all_rules {
    rule of[MOST_HEADS];
};

__device__ inline const float *floats(const void *of)
{
    return static_cast<const float *>(of);
}

/* Zero means "as it is": 1 for the temperature, 1/2 for the thresholds. */
__device__ inline float or_else(float given, float otherwise)
{
    return given > 0.0f ? given : otherwise;
}

/* Asks for memory that a thread of this block will read. */
__device__ inline void ask(const void *at)
{
#ifdef __CUDACC__
    asm volatile("prefetch.global.L1 [%0];" ::"l"(at));
#else
    (void)at;
#endif
}
__device__ inline void ask_all(const float *from, int64_t count)
{
    const char *at = reinterpret_cast<const char *>(from);
    for (int64_t i = threadIdx.x * LINE; i < count * int64_t(sizeof *from); i += THREADS * LINE) ask(at + i);
}

/* f(i, c) for every column c of the lane, its i-th. */
template <int HELD, class Each> __device__ inline void each_column(int64_t width, int lane, Each f)
{
    XPH_UNROLL
    for (int i = 0; i < HELD; i++)
        if (i * WARP + lane < width) f(i, i * WARP + lane);
}

/* A row on its way through the heads, as one of the block's warps sees it. */
template <int HELD> struct trunk {
    float s[HELD], hidden[HELD];
    int64_t width;
    int lane;

    __device__ void see()
    {
        XPH_UNROLL
        for (int i = 0; i < HELD; i++) hidden[i] = i * WARP + lane < width ? silu(s[i]) : 0.0f;
    }
    /* v . hidden for rows of v a warp apart; returns which of them the lane has, and that one. */
    __device__ int times(const float *v, int left, float *sum) const
    {
        float sums[ONCE];
        XPH_UNROLL
        for (int k = 0; k < ONCE; k++) {
            sums[k] = 0.0f;
            if (k * WARPS >= left) continue;
            const float *row = v + k * WARPS * width;
            each_column<HELD>(width, lane,
                              [&](int i, int64_t c) { sums[k] = fmaf(load(row + c), hidden[i], sums[k]); });
        }
        const int which = fold_lanes<ONCE, 1>(sums, lane);
        *sum = sums[0];
        return which;
    }
    /* s += the rows of e that an action takes, one after the other. */
    __device__ void move_on(const float *e, const xph_head &head, int32_t action)
    {
        if (head.kind == EXPHIL_CATEGORICAL) {
            add(e + (head.first + action) * width);
            return;
        }
        for (int k = 0; k < head.count; k++)
            if (static_cast<uint32_t>(action) >> k & 1u) add(e + (head.first + k) * width);
    }
    __device__ void add(const float *row)
    {
        each_column<HELD>(width, lane, [&](int i, int64_t c) { s[i] += load(row + c); });
    }
};

/* What class or bit k of a head scores with this logit: the best class is taken, and bits above 0. */
__device__ inline float score_of(const rule &r, float logit, float noise, bool was_on)
{
    if (r.how.deterministic) {
        if (r.head.kind == EXPHIL_CATEGORICAL) return logit;
        const float threshold = or_else(was_on ? r.how.release : r.how.press, 0.5f);
        return sigmoid(logit) > threshold ? 1.0f : 0.0f;
    }
    const float scaled = logit / or_else(r.how.temperature, 1.0f);
    if (r.head.kind == EXPHIL_CATEGORICAL) return scaled - logf(-logf(noise));
    return noise < sigmoid(scaled) ? 1.0f : 0.0f;
}

/* The class with the best score, of equal ones the lowest; a NaN is never the best, and nothing above -infinity gives
 * class 0. In every lane. */
__device__ inline int32_t best_class(const float *scores, int count, int lane)
{
    float best = -INFINITY;
    int32_t taken = 0;
    for (int k = lane; k < count; k += WARP) {
        if (!(scores[k] > best)) continue;
        best = scores[k];
        taken = k;
    }
    XPH_UNROLL
    for (int bit = WARP / 2; bit; bit /= 2) {
        const float other = __shfl_xor_sync(ALL_LANES, best, bit);
        const int32_t theirs = __shfl_xor_sync(ALL_LANES, taken, bit);
        if (!(other > best) && !(other == best && theirs < taken)) continue;
        best = other;
        taken = theirs;
    }
    return taken;
}

__device__ inline int32_t draw(const xph_head &head, const float *scores, int lane)
{
    if (head.kind == EXPHIL_CATEGORICAL) return best_class(scores, head.count, lane);
    return static_cast<int32_t>(__ballot_sync(ALL_LANES, lane < head.count && scores[lane] > 0.0f));
}

/* A logit of the row, from its product on: to y, and what it scores. */
template <class Stored>
__device__ inline float finish(const xph_sample_args &a, const rule &r, int64_t row, int k, float sum,
                               bool was_on)
{
    const xph_heads_args &h = a.heads;
    const int64_t l = r.head.first + k;
    if (h.bias) sum += load(floats(h.bias) + l);
    if (h.base) sum += load_changing(static_cast<const Stored *>(h.base) + row * h.ldbase + l);
    store(static_cast<Stored *>(h.y) + row * h.ldy + l, sum);
    return score_of(r, sum, a.noise ? load(a.noise + row * a.ldn + l) : 0.5f, was_on);
}

template <class Stored, int HELD>
__global__ void __launch_bounds__(THREADS, 1)
    sample_row(const xph_sample_args a, const all_rules rules, const bool ahead)
{
    XPH_ENTER();
    XPH_SHARED(float, scores, [2][MOST_CLASSES]); /* one head's are written while the last one's are read */
    const xph_heads_args &h = a.heads;
    const int lane = static_cast<int>(threadIdx.x) % WARP, warp = static_cast<int>(threadIdx.x) / WARP;
    const int64_t row = blockIdx.x;
    const Stored *z = static_cast<const Stored *>(h.z) + row * h.ldz;
    trunk<HELD> s;
    s.width = h.width;
    s.lane = lane;
    if (ahead) ask_all(floats(h.v), h.logits * h.width);
    if (ahead && h.e) ask_all(floats(h.e), h.logits * h.width);
    if (ahead && a.noise) ask_all(a.noise + row * a.ldn, h.logits);
    each_column<HELD>(h.width, lane, [&](int i, int64_t c) { s.s[i] = load(z + c); });
    s.see();
    for (int i = 0; i < h.heads; i++) {
        const rule &r = rules.of[i];
        float *to = scores[i % 2];
        const uint32_t before = a.previous ? static_cast<uint32_t>(a.previous[row * a.ldp + i]) : 0u;
        for (int first = warp; first < r.head.count; first += ONCE * WARPS) {
            float sum;
            const float *v = floats(h.v) + (r.head.first + first) * h.width;
            const int k = first + s.times(v, r.head.count - first, &sum) * WARPS;
            if (lane % TWINS || k >= r.head.count) continue;
            to[k] = finish<Stored>(a, r, row, k, sum, k < 32 && before >> k & 1u);
        }
        __syncthreads();
        const int32_t action = draw(r.head, to, lane);
        if (threadIdx.x == 0) a.actions[row * a.lda + i] = action;
        if (!h.e || i + 1 == h.heads) continue;
        s.move_on(floats(h.e), r.head, action);
        s.see();
    }
}

/* ---- candidates ---- */

all_rules rules_of(const xph_sample_args *a)
{
    all_rules to = {};
    for (int64_t h = 0; h < a->heads.heads; h++) to.of[h] = {a->heads.head[h], a->how[h]};
    return to;
}

template <int HELD> bool accepts(const void *args)
{
    const xph_heads_args *a = &static_cast<const xph_sample_args *>(args)->heads;
    return is_stored(a->type) && a->heads <= MOST_HEADS && a->width <= HELD * WARP &&
           a->rows < int64_t(1) << 31;
}

template <int HELD> int launch(const void *args, cudaStream_t stream)
{
    const xph_sample_args *a = static_cast<const xph_sample_args *>(args);
    const dim3 grid(as_grid(a->heads.rows));
    const bool ahead = a->heads.rows <= FEW_ROWS;
    if (!a->heads.rows || !a->heads.heads) return cudaSuccess;
    with_stored(a->heads.type, [&](auto zero) {
        XPH_LAUNCH((sample_row<decltype(zero), HELD>), grid, dim3(THREADS), 0, stream, *a, rules_of(a),
                   ahead);
    });
    return cudaGetLastError();
}

}  // namespace

const xph_cuda_candidate xph_cuda_sample[] = {
    {"sample_256", accepts<8>, nullptr, launch<8>},
    {"sample", accepts<32>, nullptr, launch<32>},
    {nullptr, nullptr, nullptr, nullptr},
};
