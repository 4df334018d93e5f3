/* How an action is drawn (XPH_OP_SAMPLE): noise, what a class or a bit scores with it, and what is taken. */
#ifndef XPH_CUDA_DRAW_CUH
#define XPH_CUDA_DRAW_CUH

#include "element.cuh"

#include <math.h>

/* ---- noise ---- */

/* Philox4x32-10, as xph_philox has it: the four words of block n of a stream. */
struct philox_words {
    uint32_t v[4];
};
__device__ inline philox_words philox(const xph_draw &of, uint64_t n)
{
    uint32_t c0 = static_cast<uint32_t>(n), c1 = static_cast<uint32_t>(n >> 32);
    uint32_t c2 = static_cast<uint32_t>(of.stream), c3 = static_cast<uint32_t>(of.stream >> 32);
    uint32_t k0 = static_cast<uint32_t>(of.seed), k1 = static_cast<uint32_t>(of.seed >> 32);
    XPH_UNROLL
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
        c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
        c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
        c1 = static_cast<uint32_t>(p1);
        c3 = static_cast<uint32_t>(p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}
/* An odd multiple of 2^-24. */
__device__ inline float unit_float(uint32_t bits)
{
    return static_cast<float>(static_cast<int32_t>((bits >> 9) * 2 + 1)) * 0x1p-24f;
}

/* The numbers of a row: given, or made; none is 1/2. */
struct row_noise {
    const float *given;
    xph_draw from; /* stream 0: nothing is made */

    __device__ row_noise(const xph_draw *draw, int64_t drawn, const float *noise, int64_t ld, int64_t row)
        : given(nullptr), from{}
    {
        if (draw) from = draw[row];
        from.position += static_cast<uint64_t>(drawn);
        if (!from.stream && noise) given = noise + row * ld;
    }
    /* All of them, a thread a block of four. */
    __device__ void make(float *to, int count) const
    {
        const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
        if (!from.stream) {
            for (int l = thread; l < count; l += threads) to[l] = given ? load(given + l) : 0.5f;
            return;
        }
        const uint64_t first = from.position / 4;
        const int skipped = static_cast<int>(from.position % 4);
        for (int i = thread; 4 * i < skipped + count; i += threads) {
            const philox_words four = philox(from, first + static_cast<uint64_t>(i));
            XPH_UNROLL
            for (int k = 0; k < 4; k++) {
                const int at = 4 * i + k - skipped;
                if (at >= 0 && at < count) to[at] = unit_float(four.v[k]);
            }
        }
    }
    __device__ float at(int64_t l) const
    {
        if (!from.stream) return given ? load(given + l) : 0.5f;
        const uint64_t n = from.position + static_cast<uint64_t>(l);
        const philox_words four = philox(from, n / 4);
        const int k = static_cast<int>(n % 4);
        return unit_float(k < 2 ? (k ? four.v[1] : four.v[0]) : (k == 2 ? four.v[2] : four.v[3]));
    }
};

/* One head and its rule. */
struct rule {
    xph_head head;
    xph_sample_head how;
};

/* Zero means "as it is": 1 for the temperature, 1/2 for the thresholds. */
__device__ inline float or_else(float given, float otherwise)
{
    return given > 0.0f ? given : otherwise;
}

__device__ inline bool draws_class(const rule &r)
{
    return r.head.kind == EXPHIL_CATEGORICAL && !r.how.deterministic;
}

/* What a draw compares with: the noise of a bit, the logarithms of a class's. */
__device__ inline float compared(const rule &r, float noise)
{
    return draws_class(r) ? logf(-logf(noise)) : noise;
}

/* What class or bit k of a head scores with this logit: the best class is taken, and bits above 0. */
__device__ inline float score_of(const rule &r, float logit, float against, bool was_on)
{
    if (r.how.deterministic) {
        if (r.head.kind == EXPHIL_CATEGORICAL) return logit;
        const float threshold = or_else(was_on ? r.how.release : r.how.press, 0.5f);
        return sigmoid(logit) > threshold ? 1.0f : 0.0f;
    }
    const float temperature = or_else(r.how.temperature, 1.0f);
    const float scaled = temperature == 1.0f ? logit : logit / temperature;
    if (r.head.kind == EXPHIL_CATEGORICAL) return scaled - against;
    return against < sigmoid(scaled) ? 1.0f : 0.0f;
}

/* Of the lanes' best classes the best, of equal ones the lowest. In every lane. */
__device__ inline int32_t best_class(float best, int32_t taken)
{
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

/* A NaN is never the best class, and nothing above -infinity gives class 0. against(k): see compared. In every lane. */
template <class Against>
__device__ inline int32_t draw(const rule &r, const float *logits, uint32_t before, int lane, Against against)
{
    float best = -INFINITY;
    int32_t taken = 0;
    bool on = false;
    for (int k = lane; k < r.head.count; k += WARP) {
        const float score = score_of(r, logits[k], against(k), k < 32 && before >> k & 1u);
        if (k == lane) on = score > 0.0f;
        if (!(score > best)) continue;
        best = score;
        taken = k;
    }
    if (r.head.kind == EXPHIL_CATEGORICAL) return best_class(best, taken);
    return static_cast<int32_t>(__ballot_sync(ALL_LANES, on));
}

#endif
