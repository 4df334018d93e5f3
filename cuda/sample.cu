/* Draws actions head by head from the trunk (XPH_OP_SAMPLE): the value drawn for a head changes the trunk
 * that the next head sees, so a row is a chain, whose time is latency. A block works on one row. Each of its
 * warps holds the whole trunk, lane l the columns l, l + 32, ..., and makes every WARPS-th logit of a head,
 * ONCE of them at a time; logits go to shared memory, and behind one barrier every warp draws for itself, lane
 * l of the classes l, l + 32, ..., and updates its trunk. A narrow trunk has fewer warps.
 *
 * Noise is given, or made here of a place in a stream of random numbers (lib/base/rng.c), to the bit what the
 * host would give: all of a row at its start, or, of more logits than there is room for, where it is needed. So
 * are the logarithms that a draw of a class takes of it.
 *
 * Logits have the bits of heads.cu. The heads and their settings, host arrays in args, are passed with the
 * launch. With few rows the weights are prefetched: they do not depend on what is drawn.
 */
#include "draw.cuh"
#include "fold.cuh"
#include "kernels.h"

namespace
{

constexpr int MOST_HEADS = 32, MOST_CLASSES = 1024;
constexpr int MOST_MADE = 1024; /* logits whose noise is made at once */
constexpr int64_t FEW_ROWS = 64, LINE = 128;
constexpr int MANY_HELD =
    4; /* columns of a lane of trunks that have two warps a row, where there are many rows */

struct all_rules {
    rule of[MOST_HEADS];
};

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
    for (int64_t i = threadIdx.x * LINE; i < count * int64_t(sizeof *from); i += blockDim.x * LINE)
        ask(at + i);
}

/* ---- trunk ---- */

/* A row on its way through the heads, as one of the block's warps sees it. Of what has the trunk's columns rows are given from
 * the lane's first column on; its i-th is i warps further. */
template <int HELD, int WARPS, int ONCE> struct trunk {
    float s[HELD], hidden[HELD];
    int width, columns; /* of the trunk, and those from the lane's first on */

    template <class Each> __device__ void each_column(Each f) const
    {
        XPH_UNROLL
        for (int i = 0; i < HELD; i++)
            if (i * WARP < columns) f(i);
    }
    __device__ void see()
    {
        XPH_UNROLL
        for (int i = 0; i < HELD; i++) hidden[i] = i * WARP < columns ? silu(s[i]) : 0.0f;
    }
    /* v . hidden for rows of v a warp apart, the first at `at`; returns which of them the lane has, and that one. Places are
     * counted in 32 bits: an address is one instruction. */
    __device__ int times(const float *v, uint32_t at, int left, int lane, float *sum) const
    {
        float sums[ONCE];
        XPH_UNROLL
        for (int k = 0; k < ONCE; k++) {
            sums[k] = 0.0f;
            if (k * WARPS >= left) continue;
            const float *row = v + (at + static_cast<uint32_t>(k * WARPS * width));
            each_column([&](int i) { sums[k] = fmaf(load(row + i * WARP), hidden[i], sums[k]); });
        }
        const int which = fold_lanes<ONCE, 1>(sums, lane);
        *sum = sums[0];
        return which;
    }
    /* s += the rows of e that an action takes, one after the other; e: of the head's first class or bit. */
    __device__ void move_on(const float *e, const xph_head &head, int32_t action)
    {
        if (head.kind == EXPHIL_CATEGORICAL) {
            add(e + int64_t(action) * width);
            return;
        }
        for (uint32_t bits = static_cast<uint32_t>(action); bits; bits >>= 1, e += width)
            if (bits & 1u) add(e);
    }
    __device__ void add(const float *row)
    {
        each_column([&](int i) { s[i] += load(row + i * WARP); });
    }
};

/* A logit of the row, from its product on, which also goes to y. */
template <class Stored>
__device__ inline float finish(const xph_heads_args &h, int64_t row, int64_t l, float sum)
{
    if (h.bias) sum += load(floats(h.bias) + l);
    if (h.base) sum += load_changing(static_cast<const Stored *>(h.base) + row * h.ldbase + l);
    store(static_cast<Stored *>(h.y) + row * h.ldy + l, sum);
    return sum;
}

template <class Stored, int HELD, int WARPS, int ONCE>
__global__ void __launch_bounds__(WARPS *WARP, 1)
    sample_row(const xph_sample_args a, const all_rules rules, const bool ahead)
{
    XPH_ENTER();
    constexpr int TWINS = WARP / ONCE; /* lanes that end with the same logit of those made at once */
    XPH_SHARED(float, logits, [2][MOST_CLASSES]); /* one head's are written while the last one's are read */
    XPH_SHARED(float, made, [MOST_MADE]);
    const xph_heads_args &h = a.heads;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP, warp = thread / WARP;
    const int64_t row = blockIdx.x;
    const bool at_once = h.logits <= MOST_MADE;
    const Stored *z = static_cast<const Stored *>(h.z) + row * h.ldz;
    const row_noise noise(a.draw, a.drawn, a.noise, a.ldn, row);
    trunk<HELD, WARPS, ONCE> s;
    s.width = static_cast<int>(h.width);
    s.columns = s.width - lane;
    if (ahead) ask_all(floats(h.v), h.logits * h.width);
    if (ahead && h.e) ask_all(floats(h.e), h.logits * h.width);
    s.each_column([&](int i) { s.s[i] = load(z + i * WARP + lane); });
    if (at_once) {
        noise.make(made, static_cast<int>(h.logits));
        __syncthreads();
        for (int i = 0; i < h.heads; i++) {
            const rule &r = rules.of[i];
            float *const own = made + r.head.first;
            for (int k = thread; draws_class(r) && k < r.head.count; k += WARPS * WARP)
                own[k] = compared(r, own[k]);
        }
    }
    s.see();
    for (int i = 0; i < h.heads; i++) {
        const rule &r = rules.of[i];
        float *to = logits[i % 2];
        const uint32_t before = a.previous ? static_cast<uint32_t>(a.previous[row * a.ldp + i]) : 0u;
        for (int first = warp; first < r.head.count; first += ONCE * WARPS) {
            float sum;
            const uint32_t at = static_cast<uint32_t>((r.head.first + first) * s.width + lane);
            const int k = first + s.times(floats(h.v), at, r.head.count - first, lane, &sum) * WARPS;
            if (lane % TWINS == 0 && k < r.head.count) to[k] = finish<Stored>(h, row, r.head.first + k, sum);
        }
        __syncthreads();
        const int32_t action = draw(r, to, before, lane, [&](int k) {
            return at_once ? made[r.head.first + k] : compared(r, noise.at(r.head.first + k));
        });
        if (thread == 0) a.actions[row * a.lda + i] = action;
        if (!h.e || i + 1 == h.heads) continue;
        s.move_on(floats(h.e) + r.head.first * h.width + lane, r.head, action);
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
           a->rows < int64_t(1) << 31 && a->logits < int64_t(1) << 20;
}

template <int HELD, int WARPS, int ONCE> int launch(const void *args, cudaStream_t stream)
{
    const xph_sample_args *a = static_cast<const xph_sample_args *>(args);
    const dim3 grid(as_grid(a->heads.rows));
    const bool ahead = a->heads.rows <= FEW_ROWS;
    if (!a->heads.rows || !a->heads.heads) return cudaSuccess;
    with_stored(a->heads.type, [&](auto zero) {
        if (ahead || HELD > MANY_HELD)
            XPH_LAUNCH((sample_row<decltype(zero), HELD, WARPS, ONCE>), grid, dim3(WARPS * WARP), 0, stream,
                       *a, rules_of(a), ahead);
        else
            XPH_LAUNCH((sample_row<decltype(zero), MANY_HELD, 2, 16>), grid, dim3(2 * WARP), 0, stream, *a,
                       rules_of(a), false);
    });
    return cudaGetLastError();
}

}  // namespace

const xph_cuda_candidate xph_cuda_sample[] = {
    {"sample_128", accepts<4>, nullptr, launch<4, 4, 8>},
    {"sample_256", accepts<8>, nullptr, launch<8, 8, 4>},
    {"sample", accepts<32>, nullptr, launch<32, 8, 4>},
    {nullptr, nullptr, nullptr, nullptr},
};
