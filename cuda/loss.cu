/* Loss of the action heads and its gradient in one pass, a warp per row and head; then the sums of each head.
 *
 * The formulas are those of lib/cpu/kernels/loss.c, which says how they keep their digits: no exponential has
 * a positive argument, the probability of all classes but the target is never 1 minus something. Host arrays
 * in args (heads, weights of bits) are passed with the launch.
 */
#include "fold.cuh"
#include "kernels.h"

namespace
{

constexpr int THREADS = 128, WARPS = THREADS / WARP, MOST_HEADS = 32, MOST_WEIGHTS = 256;

struct head_of_loss {
    int32_t kind, count, first, weights; /* weights: its first among all, or -1 */
    float smoothing, gamma;
    double weight;
};
struct heads_of_loss {
    head_of_loss head[MOST_HEADS];
    float positive[MOST_WEIGHTS];
};

/* False where there are too many for a launch. */
bool heads_of(const xph_loss_args *a, heads_of_loss *to)
{
    int32_t used = 0;
    if (a->heads > MOST_HEADS) return false;
    for (int64_t h = 0; h < a->heads; h++) {
        const xph_head *head = &a->head[h];
        const xph_head_loss *how = &a->loss[h];
        const bool weighted = head->kind == EXPHIL_BERNOULLI && how->positive_weight;
        if (used + (weighted ? head->count : 0) > MOST_WEIGHTS || head->first > INT32_MAX) return false;
        to->head[h] = {head->kind,
                       head->count,
                       static_cast<int32_t>(head->first),
                       weighted ? used : -1,
                       static_cast<float>(how->smoothing),
                       static_cast<float>(how->focal_gamma),
                       how->weight};
        for (int32_t i = 0; weighted && i < head->count; i++) to->positive[used++] = how->positive_weight[i];
    }
    return true;
}

/* One head of one row: what a warp works on. */
template <class Stored> struct job {
    const Stored *x;
    Stored *dx; /* or NULL */
    int32_t action;
    float factor; /* of the gradient */
    bool counts;  /* else it is zero, whatever x is */
    int lane;

    __device__ float logit(int i) const { return load_changing(x + i); }
    __device__ void leave(int i, float d) const
    {
        if (dx) store(dx + i, counts ? d : 0.0f);
    }
};

/* Mean over the bits of q^gamma times the cross-entropy, a lane each. */
template <class Stored>
__device__ inline double bernoulli(const job<Stored> &j, const head_of_loss &head, const float *positive)
{
    const int i = j.lane;
    const bool there = i < head.count;
    const bool on = there && (static_cast<uint32_t>(j.action) >> i & 1u);
    const float x = there ? j.logit(i) : 0.0f, z = on ? x : -x, e = expf(-fabsf(z)), near = log1pf(e);
    const float share = 1.0f / (1.0f + e), missed = (z > 0.0f ? 0.0f : -z) + near,
                hit = (z > 0.0f ? z : 0.0f) + near;
    const float q = z > 0.0f ? e * share : share, p = z > 0.0f ? share : e * share;
    float factor = on && head.weights >= 0 ? positive[head.weights + i] : 1.0f;
    if (head.gamma != 0.0f) factor *= expf(-head.gamma * hit);
    const float slope = factor * fmaf(head.gamma * p, missed, q);
    if (there) j.leave(i, j.factor / static_cast<float>(head.count) * (on ? -slope : slope));
    return sum_of_warp(there ? static_cast<double>(factor * missed) : 0.0) / head.count;
}

/* The largest logit and the first place of it; a NaN in the first stays the largest. */
struct largest {
    float x;
    int place;
};
template <class Stored> __device__ inline largest largest_of(const job<Stored> &j, int count)
{
    largest top = {j.logit(0), 0};
    for (int i = j.lane; i < count; i += WARP) {
        const float x = j.logit(i);
        if (x > top.x) top = {x, i};
    }
    for (int bit = WARP / 2; bit; bit /= 2) {
        const float x = __shfl_xor_sync(ALL_LANES, top.x, bit);
        const int place = __shfl_xor_sync(ALL_LANES, top.place, bit);
        if (x > top.x || (x == top.x && place < top.place)) top = {x, place};
    }
    return top;
}

template <class Stored> __device__ inline double categorical(const job<Stored> &j, const head_of_loss &head)
{
    const int count = head.count,
              asked = static_cast<uint32_t>(j.action) < static_cast<uint32_t>(count) ? j.action : 0;
    const float number = static_cast<float>(count), keep = 1.0f - head.smoothing,
                even = head.smoothing / number;
    const largest top = largest_of(j, count);
    const float own = j.logit(asked);
    float others = 0.0f, below = 0.0f; /* sums of e^(x - top) but for the largest, and of top - x */
    for (int i = j.lane; i < count; i += WARP) {
        const float d = j.logit(i) - top.x;
        others += i == top.place ? 0.0f : expf(d);
        below -= d;
    }
    others = sum_of_warp(others);
    below = sum_of_warp(below);
    const float own_power = expf(own - top.x), total = 1.0f + others, inverse = 1.0f / total,
                p = own_power * inverse;
    const float norm = others > 1.0f ? logf(total) : log1pf(others);
    const float rest = (asked == top.place ? others : 1.0f + (others - own_power)) * inverse;
    const float q = fmaf(keep, rest, head.smoothing - even);
    float entropy = keep * (top.x - own + norm), power = 1.0f, pull = 0.0f;
    if (head.smoothing > 0.0f) entropy = fmaf(even, fmaf(number, norm, below), entropy);
    if (head.gamma > 0.0f) { /* a NaN stays one */
        power = q > 0.0f ? expf(head.gamma * logf(q)) : q;
        pull = q > 0.0f ? head.gamma * power * (entropy / q) : q;
    }
    const float slope = fmaf(pull * keep, p, power) * j.factor * inverse, flat = power * even * j.factor;
    const float at_asked = j.factor * fmaf(power, head.smoothing - even - rest, -pull * keep * p * rest);
    for (int i = j.lane; j.dx && i < count; i += WARP)
        j.leave(i, i == asked ? at_asked : fmaf(slope, expf(j.logit(i) - top.x), -flat));
    return static_cast<double>(power) * static_cast<double>(entropy);
}

template <class Stored>
__global__ void __launch_bounds__(THREADS) loss_rows(const xph_loss_args a, const heads_of_loss heads)
{
    XPH_ENTER();
    const int64_t at = int64_t(blockIdx.x) * WARPS + threadIdx.x / WARP, row = at / a.heads;
    if (row >= a.rows) return;
    const int64_t h = at % a.heads;
    const head_of_loss &head = heads.head[h];
    const double mask = a.mask ? static_cast<double>(load(a.mask + row)) : 1.0;
    job<Stored> j;
    j.x = static_cast<const Stored *>(a.y) + row * a.ldy + head.first;
    j.dx = a.dy ? static_cast<Stored *>(a.dy) + row * a.lddy + head.first : nullptr;
    j.action = a.actions[row * a.lda + h];
    const double scale = a.given ? a.given->scale * a.control->loss_scale : a.scale;
    j.factor = static_cast<float>(scale * mask * head.weight);
    j.counts = mask != 0.0;
    j.lane = static_cast<int>(threadIdx.x) % WARP;
    const double loss =
        head.kind == EXPHIL_BERNOULLI ? bernoulli(j, head, heads.positive) : categorical(j, head);
    if (j.lane == 0) a.rows_loss[at] = j.counts ? mask * loss : 0.0;
}

/* A block per head: thread t takes rows t, t + 128, ..., then the threads by halves. */
__global__ void __launch_bounds__(THREADS) loss_sums(const xph_loss_args a)
{
    XPH_ENTER();
    XPH_SHARED(double, buffer, [THREADS]);
    const int thread = static_cast<int>(threadIdx.x);
    double sum = 0.0;
    for (int64_t row = thread; row < a.rows; row += THREADS) sum += a.rows_loss[row * a.heads + blockIdx.x];
    buffer[thread] = sum;
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (thread < half) buffer[thread] += buffer[thread + half];
    }
    if (thread) return;
    a.sums[blockIdx.x] = buffer[0];
    if (a.given) a.control->head[blockIdx.x] += buffer[0] * a.given->scale;
}

bool accepts(const void *args)
{
    const xph_loss_args *a = static_cast<const xph_loss_args *>(args);
    heads_of_loss heads;
    return is_stored(a->type) && a->rows < int64_t(1) << 31 && heads_of(a, &heads);
}

int launch(const void *args, cudaStream_t stream)
{
    const xph_loss_args *a = static_cast<const xph_loss_args *>(args);
    heads_of_loss heads = {};
    heads_of(a, &heads);
    if (!a->heads) return cudaSuccess;
    const dim3 grid(as_grid(blocks_of(a->rows * a->heads, WARPS)));
    with_stored(a->type, [&](auto zero) {
        if (a->rows) XPH_LAUNCH((loss_rows<decltype(zero)>), grid, dim3(THREADS), 0, stream, *a, heads);
    });
    XPH_LAUNCH(loss_sums, dim3(as_grid(a->heads)), dim3(THREADS), 0, stream, *a);
    return cudaGetLastError();
}

}  // namespace

const xph_cuda_candidate xph_cuda_loss[] = {
    {"loss", accepts, nullptr, launch},
    {nullptr, nullptr, nullptr, nullptr},
};
