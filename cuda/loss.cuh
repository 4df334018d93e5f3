/* The loss of one head of one row and its gradient, by a warp or by one thread.
 *
 * The formulas are those of lib/cpu/kernels/loss.c, which says how they keep their digits: no exponential has
 * a positive argument, the probability of all classes but the target is never 1 minus something. Host arrays
 * in args (heads, weights of bits) are passed with the launch.
 */
#ifndef XPH_CUDA_LOSS_CUH
#define XPH_CUDA_LOSS_CUH

#include "fold.cuh"

constexpr int MOST_LOSS_HEADS = 32, MOST_LOSS_WEIGHTS = 256;

template <int LANES, class Number> __device__ inline Number sum_of_lanes(Number x)
{
    if constexpr (LANES == 1)
        return x;
    else
        return sum_of_warp(x);
}

struct head_of_loss {
    int32_t kind, count, first, weights; /* weights: its first among all, or -1 */
    float smoothing, gamma;
    double weight;
};
struct heads_of_loss {
    head_of_loss head[MOST_LOSS_HEADS];
    float positive[MOST_LOSS_WEIGHTS];
};

/* False where there are too many for a launch. */
inline bool heads_of(const xph_loss_args *a, heads_of_loss *to)
{
    int32_t used = 0;
    if (a->heads > MOST_LOSS_HEADS) return false;
    for (int64_t h = 0; h < a->heads; h++) {
        const xph_head *head = &a->head[h];
        const xph_head_loss *how = &a->loss[h];
        const bool weighted = head->kind == EXPHIL_BERNOULLI && how->positive_weight;
        if (used + (weighted ? head->count : 0) > MOST_LOSS_WEIGHTS || head->first > INT32_MAX) return false;
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

/* One head of one row, and the lane of those that work on it: a warp, or one thread. */
template <class Stored, int LANES> struct loss_job {
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
template <class Stored, int LANES>
__device__ inline double bernoulli_loss(const loss_job<Stored, LANES> &j, const head_of_loss &head,
                                        const float *positive)
{
    double sum = 0.0;
    for (int i = j.lane; i < head.count; i += LANES) {
        const bool on = static_cast<uint32_t>(j.action) >> i & 1u;
        const float x = j.logit(i), z = on ? x : -x, e = expf(-fabsf(z)), near = log1pf(e);
        const float share = 1.0f / (1.0f + e), missed = (z > 0.0f ? 0.0f : -z) + near,
                    hit = (z > 0.0f ? z : 0.0f) + near;
        const float q = z > 0.0f ? e * share : share, p = z > 0.0f ? share : e * share;
        float factor = on && head.weights >= 0 ? positive[head.weights + i] : 1.0f;
        if (head.gamma != 0.0f) factor *= expf(-head.gamma * hit);
        const float slope = factor * fmaf(head.gamma * p, missed, q);
        j.leave(i, j.factor / static_cast<float>(head.count) * (on ? -slope : slope));
        sum += static_cast<double>(factor * missed);
    }
    return sum_of_lanes<LANES>(sum) / head.count;
}

/* The largest logit and the first place of it; a NaN in the first stays the largest. */
struct largest_logit {
    float x;
    int place;
};
template <class Stored, int LANES>
__device__ inline largest_logit largest_of(const loss_job<Stored, LANES> &j, int count)
{
    largest_logit top = {j.logit(0), 0};
    for (int i = j.lane; i < count; i += LANES) {
        const float x = j.logit(i);
        if (x > top.x) top = {x, i};
    }
    for (int bit = LANES / 2; bit; bit /= 2) {
        const float x = __shfl_xor_sync(ALL_LANES, top.x, bit);
        const int place = __shfl_xor_sync(ALL_LANES, top.place, bit);
        if (x > top.x || (x == top.x && place < top.place)) top = {x, place};
    }
    return top;
}

template <class Stored, int LANES>
__device__ inline double categorical_loss(const loss_job<Stored, LANES> &j, const head_of_loss &head)
{
    const int count = head.count,
              asked = static_cast<uint32_t>(j.action) < static_cast<uint32_t>(count) ? j.action : 0;
    const float number = static_cast<float>(count), keep = 1.0f - head.smoothing,
                even = head.smoothing / number;
    const largest_logit top = largest_of(j, count);
    const float own = j.logit(asked);
    float others = 0.0f, below = 0.0f; /* sums of e^(x - top) but for the largest, and of top - x */
    for (int i = j.lane; i < count; i += LANES) {
        const float d = j.logit(i) - top.x;
        others += i == top.place ? 0.0f : expf(d);
        below -= d;
    }
    others = sum_of_lanes<LANES>(others);
    below = sum_of_lanes<LANES>(below);
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
    for (int i = j.lane; j.dx && i < count; i += LANES)
        j.leave(i, i == asked ? at_asked : fmaf(slope, expf(j.logit(i) - top.x), -flat));
    return static_cast<double>(power) * static_cast<double>(entropy);
}

/* mask * loss of the row, unweighted by head; the gradient is left on the way. */
template <class Stored, int LANES>
__device__ inline double loss_of_head(const loss_job<Stored, LANES> &j, const head_of_loss &head,
                                      const float *positive, double mask)
{
    const double loss =
        head.kind == EXPHIL_BERNOULLI ? bernoulli_loss(j, head, positive) : categorical_loss(j, head);
    return j.counts ? mask * loss : 0.0;
}

#endif
