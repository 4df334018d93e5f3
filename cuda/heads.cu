/* The action heads on one trunk (XPH_OP_HEADS): a warp per row keeps the trunk s in registers, lane l its
 * columns l, l + 32, ..., and goes through the heads in order; a logit is a sum along a lane's columns, then
 * over the lanes.
 *
 * In the gradient the same warp leaves SiLU(s) of every head, and the gradient of s behind it, in scratch;
 * the gradients of v, e and bias are then sums over rows, a block for 32 columns of a logit: strand s of its
 * threads takes the rows s, s + 32, ..., the strands are added in order. The heads, a host array in args, are
 * passed with the launch.
 */
#include "fold.cuh"
#include "kernels.h"

namespace
{

constexpr int THREADS = 128, WARPS = THREADS / WARP, MOST_HEADS = 32, STRANDS = 32;

struct all_heads {
    xph_head head[MOST_HEADS];
};

/* f(i, c) for every column c of the lane, its i-th. */
template <int HELD, class Each> __device__ inline void each_column(int64_t width, int lane, Each f)
{
    XPH_UNROLL
    for (int i = 0; i < HELD; i++)
        if (i * WARP + lane < width) f(i, i * WARP + lane);
}

__device__ inline const float *floats(const void *of)
{
    return static_cast<const float *>(of);
}

/* Whether an action takes class or bit k of a head. */
__device__ inline bool takes(const xph_head &head, int32_t action, int k)
{
    if (head.kind == EXPHIL_BERNOULLI) return static_cast<uint32_t>(action) >> k & 1u;
    return action == k;
}

/* s += the rows of e that the action of head h takes, one after the other. */
template <int HELD>
__device__ inline void move_on(float (&s)[HELD], const xph_heads_args &a, const xph_head &head, int64_t row,
                               int64_t h, int lane)
{
    const int32_t action = a.actions[row * a.lda + h];
    const bool bits = head.kind == EXPHIL_BERNOULLI;
    if (!bits && static_cast<uint32_t>(action) >= static_cast<uint32_t>(head.count)) return;
    for (int k = bits ? 0 : action; k < (bits ? head.count : action + 1); k++) {
        if (!takes(head, action, k)) continue;
        const float *from = floats(a.e) + (head.first + k) * a.width;
        each_column<HELD>(a.width, lane, [&](int i, int64_t c) { s[i] += load(from + c); });
    }
}

template <class Stored, int HELD>
__global__ void __launch_bounds__(THREADS, 2) heads_rows(const xph_heads_args a, const all_heads heads)
{
    XPH_ENTER();
    const int lane = static_cast<int>(threadIdx.x) % WARP;
    const int64_t row = int64_t(blockIdx.x) * WARPS + threadIdx.x / WARP;
    if (row >= a.rows) return;
    float s[HELD], hidden[HELD];
    const Stored *z = static_cast<const Stored *>(a.z) + row * a.ldz;
    const Stored *base = a.base ? static_cast<const Stored *>(a.base) + row * a.ldbase : nullptr;
    each_column<HELD>(a.width, lane, [&](int i, int64_t c) {
        s[i] = load(z + c);
        hidden[i] = silu(s[i]);
    });
    for (int h = 0; h < a.heads; h++) {
        const xph_head &head = heads.head[h];
        for (int64_t l = head.first; l < head.first + head.count; l++) {
            const float *v = floats(a.v) + l * a.width;
            float sum = 0.0f;
            each_column<HELD>(a.width, lane,
                              [&](int i, int64_t c) { sum = fmaf(load(v + c), hidden[i], sum); });
            sum = sum_of_warp(sum) + load(floats(a.bias) + l);
            if (base) sum += load_changing(base + l);
            if (lane == 0) store(static_cast<Stored *>(a.y) + row * a.ldy + l, sum);
        }
        if (!a.e || h + 1 == a.heads) continue;
        move_on<HELD>(s, a, head, row, h, lane);
        each_column<HELD>(a.width, lane, [&](int i, int64_t) { hidden[i] = silu(s[i]); });
    }
}

/* ---- gradient ---- */

/* In scratch, [heads or 1][rows][width] each: SiLU(s) that head h saw, and the gradient of s behind it. Independent heads
 * all see the same, and nothing lies behind. */
struct kept {
    float *hidden, *behind;
    int64_t heads; /* different ones */

    __device__ int64_t at(const xph_heads_args &a, int64_t h, int64_t row) const
    {
        return ((heads > 1 ? h : 0) * a.rows + row) * a.width;
    }
};

template <class Stored, int HELD>
__global__ void __launch_bounds__(THREADS, 2)
    heads_back(const xph_heads_grad_args g, const all_heads heads, const kept keep)
{
    XPH_ENTER();
    const xph_heads_args &a = g.fwd;
    const int lane = static_cast<int>(threadIdx.x) % WARP;
    const int64_t row = int64_t(blockIdx.x) * WARPS + threadIdx.x / WARP;
    if (row >= a.rows) return;
    const Stored *z = static_cast<const Stored *>(a.z) + row * a.ldz;
    const Stored *dy = static_cast<const Stored *>(g.dy) + row * g.lddy;
    float s[HELD], ds[HELD];
    each_column<HELD>(a.width, lane, [&](int i, int64_t c) {
        s[i] = load(z + c);
        ds[i] = 0.0f;
    });
    for (int h = 0; h < keep.heads; h++) { /* behind holds s for now */
        const int64_t at = keep.at(a, h, row);
        each_column<HELD>(a.width, lane, [&](int i, int64_t c) {
            keep.hidden[at + c] = silu(s[i]);
            keep.behind[at + c] = s[i];
        });
        if (h + 1 < keep.heads) move_on<HELD>(s, a, heads.head[h], row, h, lane);
    }
    for (int h = static_cast<int>(a.heads) - 1; h >= 0; h--) {
        const xph_head &head = heads.head[h];
        const int64_t at = keep.at(a, h, row);
        float dhidden[HELD];
        each_column<HELD>(a.width, lane, [&](int i, int64_t) { dhidden[i] = 0.0f; });
        for (int64_t l = head.first; l < head.first + head.count; l++) {
            const float d = load(dy + l);
            const float *v = floats(a.v) + l * a.width;
            each_column<HELD>(a.width, lane,
                              [&](int i, int64_t c) { dhidden[i] = fmaf(d, load(v + c), dhidden[i]); });
        }
        each_column<HELD>(a.width, lane, [&](int i, int64_t c) {
            const float x = keep.behind[at + c];
            if (keep.heads > 1) keep.behind[at + c] = ds[i];
            ds[i] = fmaf(dhidden[i], silu_slope(x, sigmoid(x)), ds[i]);
        });
    }
    Stored *dz = static_cast<Stored *>(g.dz) + row * g.lddz;
    each_column<HELD>(a.width, lane, [&](int i, int64_t c) { store(dz + c, ds[i]); });
}

/* What a block adds up for logit blockIdx.x and its 32 columns. */
struct sums {
    float dv, de, dbias;
};

template <class Stored>
__global__ void __launch_bounds__(WARP *STRANDS)
    heads_sums(const xph_heads_grad_args g, const all_heads heads, const kept keep)
{
    XPH_ENTER();
    XPH_SHARED(sums, strands, [STRANDS][WARP]);
    const xph_heads_args &a = g.fwd;
    const int64_t l = blockIdx.x, c = int64_t(blockIdx.y) * WARP + threadIdx.x;
    const bool there = c < a.width;
    int h = 0;
    while (h < a.heads && (l < heads.head[h].first || l >= heads.head[h].first + heads.head[h].count)) h++;
    if (h == a.heads) return; /* nobody's logit: the whole block */
    const int k = static_cast<int>(l - heads.head[h].first);
    sums mine = {0.0f, 0.0f, 0.0f};
    for (int64_t row = threadIdx.y; row < a.rows; row += STRANDS) {
        const float d = load(static_cast<const Stored *>(g.dy) + row * g.lddy + l);
        const int64_t at = keep.at(a, h, row) + c;
        mine.dbias += d;
        if (!there) continue;
        mine.dv = fmaf(d, keep.hidden[at], mine.dv);
        if (a.e && takes(heads.head[h], a.actions[row * a.lda + h], k) && h + 1 < a.heads)
            mine.de += keep.behind[at];
    }
    strands[threadIdx.y][threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.y || !there) return;
    mine = strands[0][threadIdx.x];
    for (int s = 1; s < STRANDS; s++) {
        const sums next = strands[s][threadIdx.x];
        mine = {mine.dv + next.dv, mine.de + next.de, mine.dbias + next.dbias};
    }
    static_cast<float *>(g.dv)[l * a.width + c] += mine.dv;
    if (a.e) static_cast<float *>(g.de)[l * a.width + c] += mine.de;
    if (c == 0) static_cast<float *>(g.dbias)[l] += mine.dbias;
}

/* ---- candidates ---- */

all_heads heads_of(const xph_heads_args *a)
{
    all_heads to = {};
    for (int64_t h = 0; h < a->heads; h++) to.head[h] = a->head[h];
    return to;
}

template <int HELD> bool fits(const xph_heads_args *a)
{
    return is_stored(a->type) && a->heads <= MOST_HEADS && a->width <= HELD * WARP &&
           a->rows < int64_t(1) << 31;
}
template <int HELD> bool accepts(const void *args)
{
    return fits<HELD>(static_cast<const xph_heads_args *>(args));
}
template <int HELD> bool grad_accepts(const void *args)
{
    return fits<HELD>(&static_cast<const xph_heads_grad_args *>(args)->fwd);
}

template <int HELD> int launch(const void *args, cudaStream_t stream)
{
    const xph_heads_args *a = static_cast<const xph_heads_args *>(args);
    const dim3 grid(as_grid(blocks_of(a->rows, WARPS)));
    if (!a->rows || !a->logits) return cudaSuccess;
    with_stored(a->type, [&](auto zero) {
        XPH_LAUNCH((heads_rows<decltype(zero), HELD>), grid, dim3(THREADS), 0, stream, *a, heads_of(a));
    });
    return cudaGetLastError();
}

kept kept_of(const xph_heads_grad_args *g)
{
    const xph_heads_args *a = &g->fwd;
    float *scratch = static_cast<float *>(g->scratch);
    const int64_t heads = a->e ? a->heads : 1;
    return {scratch, scratch + heads * a->rows * a->width, heads};
}

size_t grad_scratch(const void *args)
{
    const xph_heads_args *a = &static_cast<const xph_heads_grad_args *>(args)->fwd;
    return static_cast<size_t>(2 * (a->e || a->chained ? a->heads : 1) * a->rows * a->width) * sizeof(float);
}

template <class Stored, int HELD> void back(const xph_heads_grad_args *g, cudaStream_t stream)
{
    const xph_heads_args *a = &g->fwd;
    const dim3 rows(as_grid(blocks_of(a->rows, WARPS)));
    const dim3 columns(as_grid(a->logits), as_grid(blocks_of(a->width, WARP)));
    XPH_LAUNCH((heads_back<Stored, HELD>), rows, dim3(THREADS), 0, stream, *g, heads_of(a), kept_of(g));
    XPH_LAUNCH((heads_sums<Stored>), columns, dim3(WARP, STRANDS), 0, stream, *g, heads_of(a), kept_of(g));
}

template <int HELD> int grad_launch(const void *args, cudaStream_t stream)
{
    const xph_heads_grad_args *g = static_cast<const xph_heads_grad_args *>(args);
    if (!g->fwd.rows || !g->fwd.logits || !g->fwd.width) return cudaSuccess;
    with_stored(g->fwd.type, [&](auto zero) { back<decltype(zero), HELD>(g, stream); });
    return cudaGetLastError();
}

}  // namespace

const xph_cuda_candidate xph_cuda_heads[] = {
    {"heads_256", accepts<8>, nullptr, launch<8>},
    {"heads", accepts<32>, nullptr, launch<32>},
    {nullptr, nullptr, nullptr, nullptr},
};
const xph_cuda_candidate xph_cuda_heads_grad[] = {
    {"heads_grad_256", grad_accepts<8>, grad_scratch, grad_launch<8>},
    {"heads_grad", grad_accepts<32>, grad_scratch, grad_launch<32>},
    {nullptr, nullptr, nullptr, nullptr},
};
