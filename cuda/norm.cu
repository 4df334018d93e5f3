/* LayerNorm over the width with an optional SiLU behind it, and its gradient.
 *
 * A warp takes a row, lane l its columns l, l + 32, ...: up to 32 HELD columns stay in registers, wider rows
 * are read again for every pass (HELD 0). Sums run along a lane's columns, then over the lanes by halves,
 * whatever HELD is: all candidates give the same bits.
 *
 * The gradients of gain and shift are sums over rows: warp w of all takes rows w, w + W, ... in registers,
 * the warps of a block are added in order, the blocks by fold. How many blocks there are depends on the rows
 * alone. With HELD 0 a separate kernel takes these sums in that order, a thread per column; above 512
 * columns, which would not fit the registers, it always does.
 */
#include "fold.cuh"
#include "kernels.h"

namespace
{

constexpr int THREADS = 256, WARPS = THREADS / WARP;
constexpr int64_t MOST_BLOCKS = 256;

/* ---- a row in a warp ---- */

/* f(i, c) for every column c of the lane, its i-th. */
template <int HELD, class Each> __device__ inline void each_column(int64_t width, int lane, Each f)
{
    if constexpr (HELD > 0) {
        XPH_UNROLL
        for (int i = 0; i < HELD; i++)
            if (i * WARP + lane < width) f(i, i * WARP + lane);
    } else {
        for (int64_t c = lane; c < width; c += WARP) f(0, c);
    }
}

template <class Stored, int HELD> struct row {
    const Stored *from;
    float held[HELD > 0 ? HELD : 1];

    __device__ row(const Stored *x, int64_t width, int lane) : from(x)
    {
        if constexpr (HELD > 0)
            each_column<HELD>(width, lane, [&](int i, int64_t c) { held[i] = load(from + c); });
    }
    __device__ float at(int i, int64_t c) const
    {
        if constexpr (HELD > 0) return held[i];
        return load(from + c);
    }
};

struct moments {
    float mean, rstd;
};

/* Two passes: the squares are of what is left of the mean. */
template <class Stored, int HELD>
__device__ inline moments moments_of(const row<Stored, HELD> &x, int64_t width, float epsilon, int lane)
{
    float sum = 0.0f, squares = 0.0f;
    each_column<HELD>(width, lane, [&](int i, int64_t c) { sum += x.at(i, c); });
    const float count = static_cast<float>(width), mean = sum_of_warp(sum) / count;
    each_column<HELD>(width, lane, [&](int i, int64_t c) {
        const float d = x.at(i, c) - mean;
        squares = fmaf(d, d, squares);
    });
    return {mean, 1.0f / sqrtf(sum_of_warp(squares) / count + epsilon)};
}

__device__ inline float parameter(const void *of, int64_t c)
{
    return load(static_cast<const float *>(of) + c);
}

/* ---- forward ---- */

template <class Stored, int HELD>
__global__ void __launch_bounds__(THREADS, HELD > 16 ? 1 : 2) norm_rows(const xph_norm_args a)
{
    XPH_ENTER();
    const int lane = static_cast<int>(threadIdx.x) % WARP;
    const int64_t at = int64_t(blockIdx.x) * WARPS + threadIdx.x / WARP;
    if (at >= a.rows) return;
    const row<Stored, HELD> x(static_cast<const Stored *>(a.x) + at * a.ldx, a.width, lane);
    const moments m = moments_of(x, a.width, static_cast<float>(a.epsilon), lane);
    Stored *y = static_cast<Stored *>(a.y) + at * a.ldy;
    each_column<HELD>(a.width, lane, [&](int i, int64_t c) {
        const float n = fmaf((x.at(i, c) - m.mean) * m.rstd, parameter(a.gain, c), parameter(a.shift, c));
        store(y + c, a.act == XPH_ACT_SILU ? silu(n) : n);
    });
    if (lane || !a.saved) return;
    float *saved = static_cast<float *>(a.saved) + 2 * at;
    saved[0] = m.mean;
    saved[1] = m.rstd;
}

/* ---- gradient ---- */

__device__ inline moments saved_moments(const xph_norm_args &a, int64_t at)
{
    const float *saved = static_cast<const float *>(a.saved) + 2 * at;
    return {load(saved), load(saved + 1)};
}

/* Of one number of a row: what it is in units of the deviation, and its gradient before the activation. */
struct element {
    float unit, d;
};
__device__ inline element element_of(const xph_norm_args &a, moments m, int64_t c, float x, float dy)
{
    const float unit = (x - m.mean) * m.rstd;
    if (a.act != XPH_ACT_SILU) return {unit, dy};
    const float n = fmaf(unit, parameter(a.gain, c), parameter(a.shift, c));
    return {unit, dy * silu_slope(n, sigmoid(n))};
}

/* dx of a row from two means over it: of g = d gain, and of g unit. */
template <class Stored, int HELD> struct row_back {
    row<Stored, HELD> x, dy;
    moments m;

    __device__ row_back(const xph_norm_grad_args &g, int64_t at, int lane)
        : x(static_cast<const Stored *>(g.fwd.x) + at * g.fwd.ldx, g.fwd.width, lane),
          dy(static_cast<const Stored *>(g.dy) + at * g.lddy, g.fwd.width, lane), m(saved_moments(g.fwd, at))
    {
    }
    __device__ element at(const xph_norm_grad_args &g, int i, int64_t c) const
    {
        return element_of(g.fwd, m, c, x.at(i, c), dy.at(i, c));
    }
    __device__ float leave(const xph_norm_grad_args &g, Stored *dx, int64_t c, element e, float mean,
                           float mean_unit) const
    {
        const float rest = e.d * parameter(g.fwd.gain, c) - mean; /* as it was summed: alone it is 0 */
        const float d = m.rstd * fmaf(-e.unit, mean_unit, rest),
                    sum = g.dx_add ? load_changing(dx + c) + d : d;
        store(dx + c, sum);
        return as_stored<Stored>(sum);
    }
};

/* One row; sums(i, e) sees each of its elements once, left(i, dx) what it leaves. */
template <class Stored, int HELD, class Sums, class Left>
__device__ inline void back(const xph_norm_grad_args &g, int64_t at, int lane, Sums sums, Left left)
{
    const int64_t width = g.fwd.width;
    const row_back<Stored, HELD> r(g, at, lane);
    float mean = 0.0f, mean_unit = 0.0f;
    element held[HELD > 0 ? HELD : 1];
    each_column<HELD>(width, lane, [&](int i, int64_t c) {
        const element e = r.at(g, i, c);
        const float by_gain = e.d * parameter(g.fwd.gain, c);
        held[i] = e;
        sums(i, e);
        mean += by_gain;
        mean_unit = fmaf(by_gain, e.unit, mean_unit);
    });
    mean = sum_of_warp(mean) / static_cast<float>(width);
    mean_unit = sum_of_warp(mean_unit) / static_cast<float>(width);
    Stored *dx = static_cast<Stored *>(g.dx) + at * g.lddx;
    each_column<HELD>(width, lane, [&](int i, int64_t c) {
        left(i, r.leave(g, dx, c, HELD > 0 ? held[i] : r.at(g, i, c), mean, mean_unit));
    });
}

/* dgain, dshift and the columns of dx of the blocks: part [blocks][3][width] */
template <class Stored, int HELD>
__global__ void __launch_bounds__(THREADS) norm_grad(const xph_norm_grad_args g)
{
    XPH_ENTER();
    XPH_SHARED(float, total, [3][HELD * WARP]);
    const int lane = static_cast<int>(threadIdx.x) % WARP, warp = static_cast<int>(threadIdx.x) / WARP;
    const int64_t width = g.fwd.width;
    float dgain[HELD], dshift[HELD], columns[HELD];
    XPH_UNROLL
    for (int i = 0; i < HELD; i++) dgain[i] = dshift[i] = columns[i] = 0.0f;
    for (int64_t at = int64_t(blockIdx.x) * WARPS + warp; at < g.fwd.rows; at += int64_t(gridDim.x) * WARPS)
        back<Stored, HELD>(
            g, at, lane,
            [&](int i, element e) {
                dgain[i] = fmaf(e.d, e.unit, dgain[i]);
                dshift[i] += e.d;
            },
            [&](int i, float dx) { columns[i] += dx; });
    for (int w = 0; w < WARPS; w++) {
        if (w == warp)
            each_column<HELD>(width, lane, [&](int i, int64_t c) {
                total[0][c] = w ? total[0][c] + dgain[i] : dgain[i];
                total[1][c] = w ? total[1][c] + dshift[i] : dshift[i];
                total[2][c] = w ? total[2][c] + columns[i] : columns[i];
            });
        __syncthreads();
    }
    float *part = static_cast<float *>(g.scratch) + blockIdx.x * 3 * width;
    for (int64_t c = threadIdx.x; c < width; c += THREADS) {
        part[c] = total[0][c];
        part[width + c] = total[1][c];
        part[2 * width + c] = total[2][c];
    }
}

/* The same sums for rows that are not in registers. */
template <class Stored> __global__ void __launch_bounds__(THREADS) norm_columns(const xph_norm_grad_args g)
{
    XPH_ENTER();
    const int64_t c = int64_t(blockIdx.y) * THREADS + threadIdx.x, width = g.fwd.width;
    float total_gain = 0.0f, total_shift = 0.0f;
    if (c >= width) return;
    for (int w = 0; w < WARPS; w++) {
        float dgain = 0.0f, dshift = 0.0f;
        for (int64_t at = int64_t(blockIdx.x) * WARPS + w; at < g.fwd.rows;
             at += int64_t(gridDim.x) * WARPS) {
            const float x = load(static_cast<const Stored *>(g.fwd.x) + at * g.fwd.ldx + c);
            const float dy = load(static_cast<const Stored *>(g.dy) + at * g.lddy + c);
            const element e = element_of(g.fwd, saved_moments(g.fwd, at), c, x, dy);
            dgain = fmaf(e.d, e.unit, dgain);
            dshift += e.d;
        }
        total_gain = w ? total_gain + dgain : dgain;
        total_shift = w ? total_shift + dshift : dshift;
    }
    float *part = static_cast<float *>(g.scratch) + blockIdx.x * 3 * width;
    part[c] = total_gain;
    part[width + c] = total_shift;
}

template <class Stored> __global__ void __launch_bounds__(THREADS) norm_back(const xph_norm_grad_args g)
{
    XPH_ENTER();
    const int lane = static_cast<int>(threadIdx.x) % WARP;
    const int64_t at = int64_t(blockIdx.x) * WARPS + threadIdx.x / WARP;
    if (at < g.fwd.rows)
        back<Stored, 0>(
            g, at, lane, [](int, element) {}, [](int, float) {});
}

/* The columns of dx then, in the order in which warps with rows in registers add them. */
template <class Stored> __global__ void __launch_bounds__(THREADS) norm_dx_columns(const xph_norm_grad_args g)
{
    XPH_ENTER();
    const int64_t c = int64_t(blockIdx.y) * THREADS + threadIdx.x, width = g.fwd.width;
    float total = 0.0f;
    if (c >= width) return;
    for (int w = 0; w < WARPS; w++) {
        float sum = 0.0f;
        for (int64_t at = int64_t(blockIdx.x) * WARPS + w; at < g.fwd.rows; at += int64_t(gridDim.x) * WARPS)
            sum += load_changing(static_cast<const Stored *>(g.dx) + at * g.lddx + c);
        total = w ? total + sum : sum;
    }
    static_cast<float *>(g.scratch)[blockIdx.x * 3 * width + 2 * width + c] = total;
}

/* ---- candidates ---- */

int64_t blocks_for(const xph_norm_args *a)
{
    const int64_t blocks = blocks_of(a->rows, WARPS);
    return blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
}

template <int HELD> bool fits(const xph_norm_args *a)
{
    return is_stored(a->type) && a->rows < int64_t(1) << 31 && (!HELD || a->width <= HELD * WARP);
}

template <int HELD> bool accepts(const void *args)
{
    return fits<HELD>(static_cast<const xph_norm_args *>(args));
}

template <class Stored, int HELD> int forward(const xph_norm_args *a, cudaStream_t stream)
{
    XPH_LAUNCH((norm_rows<Stored, HELD>), dim3(as_grid(blocks_of(a->rows, WARPS))), dim3(THREADS), 0, stream,
               *a);
    return cudaGetLastError();
}

template <int HELD> int launch(const void *args, cudaStream_t stream)
{
    const xph_norm_args *a = static_cast<const xph_norm_args *>(args);
    if (!a->rows || !a->width) return cudaSuccess;
    return with_stored(a->type, [&](auto zero) { return forward<decltype(zero), HELD>(a, stream); });
}

template <int HELD> bool grad_accepts(const void *args)
{
    return fits<HELD>(&static_cast<const xph_norm_grad_args *>(args)->fwd);
}

size_t grad_scratch(const void *args)
{
    const xph_norm_args *a = &static_cast<const xph_norm_grad_args *>(args)->fwd;
    return static_cast<size_t>(blocks_for(a) * 3 * a->width) * sizeof(float);
}

/* dx may lie where dy does: columns are summed first. */
template <class Stored, int HELD> void rows_back(const xph_norm_grad_args *g, cudaStream_t stream)
{
    const dim3 blocks(as_grid(blocks_for(&g->fwd)));
    if constexpr (HELD > 0) {
        XPH_LAUNCH((norm_grad<Stored, HELD>), blocks, dim3(THREADS), 0, stream, *g);
    } else {
        const dim3 grid(blocks.x, as_grid(blocks_of(g->fwd.width, THREADS)));
        XPH_LAUNCH((norm_columns<Stored>), grid, dim3(THREADS), 0, stream, *g);
        const dim3 rows(as_grid(blocks_of(g->fwd.rows, WARPS)));
        XPH_LAUNCH((norm_back<Stored>), rows, dim3(THREADS), 0, stream, *g);
        if (g->dx_sum) XPH_LAUNCH((norm_dx_columns<Stored>), grid, dim3(THREADS), 0, stream, *g);
    }
}

template <int HELD> int grad_launch(const void *args, cudaStream_t stream)
{
    const xph_norm_grad_args *g = static_cast<const xph_norm_grad_args *>(args);
    const int64_t width = g->fwd.width, blocks = blocks_for(&g->fwd);
    const float *part = static_cast<const float *>(g->scratch);
    if (!g->fwd.rows || !width) return cudaSuccess;
    with_stored(g->fwd.type, [&](auto zero) { rows_back<decltype(zero), HELD>(g, stream); });
    fold_targets targets = fold_target(static_cast<float *>(g->dgain), width);
    fold_more(&targets, g->dshift, width);
    fold_more(&targets, g->dx_sum, width);
    fold_to(part, targets, blocks, stream);
    return cudaGetLastError();
}

}  // namespace

const xph_cuda_candidate xph_cuda_norm[] = {
    {"norm_256", accepts<8>, nullptr, launch<8>},
    {"norm_512", accepts<16>, nullptr, launch<16>},
    {"norm_1024", accepts<32>, nullptr, launch<32>},
    {"norm", accepts<0>, nullptr, launch<0>},
    {nullptr, nullptr, nullptr, nullptr},
};
const xph_cuda_candidate xph_cuda_norm_grad[] = {
    {"norm_grad_256", grad_accepts<8>, grad_scratch, grad_launch<8>},
    {"norm_grad_512", grad_accepts<16>, grad_scratch, grad_launch<16>},
    {"norm_grad", grad_accepts<0>, grad_scratch, grad_launch<0>},
    {nullptr, nullptr, nullptr, nullptr},
};
