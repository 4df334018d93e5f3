/* LayerNorm over the width with an optional SiLU behind it, and its gradient.
 *
 * A warp takes a row, lane l its columns 4 l .. 4 l + 3, those 128 further on, ...: up to 32 HELD columns stay in registers,
 * wider rows are read again for every pass (HELD 0). Four columns move at once where rows allow it (FOURS), and a row
 * that fills the registers needs no conditions (FULL). Sums run along a lane's columns, then over the lanes by halves,
 * whatever HELD is and however numbers move: all candidates give the same bits.
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

constexpr int THREADS = 256, WARPS = THREADS / WARP, GROUP = 4;
constexpr int64_t MOST_BLOCKS = 256;

/* How the columns of a row move: one by one, GROUP at once, or so and HELD * WARP of them. */
constexpr int ANY = 0, FOURS = 1, FULL = 2;

/* ---- a row in a warp ---- */

__host__ __device__ constexpr int groups_of(int held)
{
    return held > 0 ? held / GROUP : 1;
}

/* f(k, c) for the groups of columns of the lane: c is the first of its k-th. */
template <int HELD, int HOW, class Each> __device__ inline void each_group(int64_t width, int lane, Each f)
{
    if constexpr (HELD > 0) {
        XPH_UNROLL
        for (int k = 0; k < groups_of(HELD); k++)
            if (HOW == FULL || (k * WARP + lane) * GROUP < width) f(k, (k * WARP + lane) * GROUP);
    } else {
        for (int64_t c = lane * GROUP; c < width; c += WARP * GROUP) f(0, c);
    }
}

/* Of a group that begins in the row. */
template <int HOW> __device__ inline bool there(int64_t c, int64_t width)
{
    return HOW != ANY || c < width;
}

template <int HOW, class Stored>
__device__ inline void read_columns(const Stored *from, int64_t c, int64_t width, float (&x)[GROUP])
{
    if constexpr (HOW != ANY) {
        load_group(from + c, x);
    } else {
        XPH_UNROLL
        for (int j = 0; j < GROUP; j++) x[j] = c + j < width ? load_changing(from + c + j) : 0.0f;
    }
}

template <int HOW, class Stored>
__device__ inline void write_columns(Stored *to, int64_t c, int64_t width, const float (&x)[GROUP])
{
    if constexpr (HOW != ANY) {
        store_group(to + c, x);
    } else {
        XPH_UNROLL
        for (int j = 0; j < GROUP; j++)
            if (c + j < width) store(to + c + j, x[j]);
    }
}

template <int HOW>
__device__ inline void parameters(const void *of, int64_t c, int64_t width, float (&x)[GROUP])
{
    read_columns<HOW>(static_cast<const float *>(of), c, width, x);
}

template <class Stored, int HELD, int HOW> struct row {
    const Stored *from;
    int64_t width;
    float held[groups_of(HELD)][GROUP];

    __device__ row(const Stored *x, int64_t columns, int lane) : from(x), width(columns)
    {
        if constexpr (HELD > 0)
            each_group<HELD, HOW>(width, lane,
                                  [&](int k, int64_t c) { read_columns<HOW>(from, c, width, held[k]); });
    }
    __device__ void group(int k, int64_t c, float (&x)[GROUP]) const
    {
        if constexpr (HELD > 0) {
            XPH_UNROLL
            for (int j = 0; j < GROUP; j++) x[j] = held[k][j];
        } else {
            read_columns<HOW>(from, c, width, x);
        }
    }
};

struct moments {
    float mean, rstd;
};

/* Two passes: the squares are of what is left of the mean. */
template <class Stored, int HELD, int HOW>
__device__ inline moments moments_of(const row<Stored, HELD, HOW> &x, float epsilon, int lane)
{
    float sum = 0.0f, squares = 0.0f;
    each_group<HELD, HOW>(x.width, lane, [&](int k, int64_t c) {
        float v[GROUP];
        x.group(k, c, v);
        XPH_UNROLL
        for (int j = 0; j < GROUP; j++)
            if (there<HOW>(c + j, x.width)) sum += v[j];
    });
    const float count = static_cast<float>(x.width), mean = sum_of_warp(sum) / count;
    each_group<HELD, HOW>(x.width, lane, [&](int k, int64_t c) {
        float v[GROUP];
        x.group(k, c, v);
        XPH_UNROLL
        for (int j = 0; j < GROUP; j++) {
            const float d = v[j] - mean;
            if (there<HOW>(c + j, x.width)) squares = fmaf(d, d, squares);
        }
    });
    return {mean, 1.0f / sqrtf(sum_of_warp(squares) / count + epsilon)};
}

/* ---- forward ---- */

template <bool SILU, class Stored, int HELD, int HOW>
__device__ inline void write_row(const xph_norm_args &a, const row<Stored, HELD, HOW> &x, moments m,
                                 Stored *y, int lane)
{
    each_group<HELD, HOW>(a.width, lane, [&](int k, int64_t c) {
        float v[GROUP], gain[GROUP], shift[GROUP];
        x.group(k, c, v);
        parameters<HOW>(a.gain, c, a.width, gain);
        parameters<HOW>(a.shift, c, a.width, shift);
        XPH_UNROLL
        for (int j = 0; j < GROUP; j++) {
            const float n = fmaf((v[j] - m.mean) * m.rstd, gain[j], shift[j]);
            v[j] = SILU ? silu(n) : n;
        }
        write_columns<HOW>(y, c, a.width, v);
    });
}

template <class Stored, int HELD, int HOW>
__global__ void __launch_bounds__(THREADS, HELD > 16 ? 1 : 2) norm_rows(const xph_norm_args a)
{
    XPH_ENTER();
    const int lane = static_cast<int>(threadIdx.x) % WARP;
    const int64_t at = int64_t(blockIdx.x) * WARPS + threadIdx.x / WARP;
    if (at >= a.rows) return;
    const row<Stored, HELD, HOW> x(static_cast<const Stored *>(a.x) + at * a.ldx, a.width, lane);
    const moments m = moments_of(x, static_cast<float>(a.epsilon), lane);
    Stored *y = static_cast<Stored *>(a.y) + at * a.ldy;
    if (a.act == XPH_ACT_SILU)
        write_row<true>(a, x, m, y, lane);
    else
        write_row<false>(a, x, m, y, lane);
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
template <bool SILU>
__device__ inline element element_of(moments m, float x, float dy, float gain, float shift)
{
    const float unit = (x - m.mean) * m.rstd;
    if (!SILU) return {unit, dy};
    const float n = fmaf(unit, gain, shift);
    return {unit, dy * silu_slope(n, sigmoid(n))};
}

/* Elements of a group, and their gradients times the gain. */
struct element_group {
    element of[GROUP];
    float by_gain[GROUP];
};

template <class Stored, int HELD, int HOW> struct row_back {
    row<Stored, HELD, HOW> x, dy;
    moments m;

    __device__ row_back(const xph_norm_grad_args &g, int64_t at, int lane)
        : x(static_cast<const Stored *>(g.fwd.x) + at * g.fwd.ldx, g.fwd.width, lane),
          dy(static_cast<const Stored *>(g.dy) + at * g.lddy, g.fwd.width, lane), m(saved_moments(g.fwd, at))
    {
    }
    template <bool SILU> __device__ element_group group(const xph_norm_grad_args &g, int k, int64_t c) const
    {
        float in[GROUP], out[GROUP], gain[GROUP], shift[GROUP] = {};
        element_group e;
        x.group(k, c, in);
        dy.group(k, c, out);
        parameters<HOW>(g.fwd.gain, c, g.fwd.width, gain);
        if (SILU) parameters<HOW>(g.fwd.shift, c, g.fwd.width, shift);
        XPH_UNROLL
        for (int j = 0; j < GROUP; j++) {
            e.of[j] = element_of<SILU>(m, in[j], out[j], gain[j], shift[j]);
            e.by_gain[j] = e.of[j].d * gain[j];
        }
        return e;
    }
    /* dx from two means over the row: of g = d gain, and of g unit. Gives what is then stored. */
    __device__ void leave(const xph_norm_grad_args &g, Stored *dx, int64_t c, const element_group &e,
                          float mean, float mean_unit, float (&stored)[GROUP]) const
    {
        float before[GROUP], sum[GROUP];
        if (g.dx_add) read_columns<HOW>(dx, c, g.fwd.width, before);
        XPH_UNROLL
        for (int j = 0; j < GROUP; j++) {
            const float rest = e.by_gain[j] - mean; /* as it was summed: alone it is 0 */
            const float d = m.rstd * fmaf(-e.of[j].unit, mean_unit, rest);
            sum[j] = g.dx_add ? before[j] + d : d;
        }
        write_columns<HOW>(dx, c, g.fwd.width, sum);
        as_stored_group<Stored>(sum, stored);
    }
};

/* One row; sums(k, j, e) sees each of its elements once, left(k, j, dx) what it leaves. */
template <bool SILU, class Stored, int HELD, int HOW, class Sums, class Left>
__device__ inline void back(const xph_norm_grad_args &g, int64_t at, int lane, Sums sums, Left left)
{
    const int64_t width = g.fwd.width;
    const row_back<Stored, HELD, HOW> r(g, at, lane);
    float mean = 0.0f, mean_unit = 0.0f;
    element_group held[groups_of(HELD)];
    each_group<HELD, HOW>(width, lane, [&](int k, int64_t c) {
        const element_group e = r.template group<SILU>(g, k, c);
        held[k] = e;
        XPH_UNROLL
        for (int j = 0; j < GROUP; j++) {
            if (!there<HOW>(c + j, width)) continue;
            sums(k, j, e.of[j]);
            mean += e.by_gain[j];
            mean_unit = fmaf(e.by_gain[j], e.of[j].unit, mean_unit);
        }
    });
    mean = sum_of_warp(mean) / static_cast<float>(width);
    mean_unit = sum_of_warp(mean_unit) / static_cast<float>(width);
    Stored *dx = static_cast<Stored *>(g.dx) + at * g.lddx;
    each_group<HELD, HOW>(width, lane, [&](int k, int64_t c) {
        float stored[GROUP];
        if constexpr (HELD > 0)
            r.leave(g, dx, c, held[k], mean, mean_unit, stored);
        else
            r.leave(g, dx, c, r.template group<SILU>(g, k, c), mean, mean_unit, stored);
        XPH_UNROLL
        for (int j = 0; j < GROUP; j++) left(k, j, stored[j]);
    });
}

/* What a lane adds up over its rows; columns: of dx. */
enum { DGAIN, DSHIFT, COLUMNS, SUMS };
template <int HELD> struct lane_sums {
    float of[SUMS][groups_of(HELD)][GROUP];
};

template <bool SILU, class Stored, int HELD, int HOW>
__device__ inline void rows_of_warp(const xph_norm_grad_args &g, int warp, int lane, lane_sums<HELD> *own)
{
    for (int64_t at = int64_t(blockIdx.x) * WARPS + warp; at < g.fwd.rows; at += int64_t(gridDim.x) * WARPS)
        back<SILU, Stored, HELD, HOW>(
            g, at, lane,
            [&](int k, int j, element e) {
                own->of[DGAIN][k][j] = fmaf(e.d, e.unit, own->of[DGAIN][k][j]);
                own->of[DSHIFT][k][j] += e.d;
            },
            [&](int k, int j, float dx) { own->of[COLUMNS][k][j] += dx; });
}

/* dgain, dshift and the columns of dx of the blocks: part [blocks][3][width] */
template <class Stored, int HELD, int HOW>
__global__ void __launch_bounds__(THREADS) norm_grad(const xph_norm_grad_args g)
{
    using four = stored_group<float, GROUP>;
    XPH_ENTER();
    XPH_SHARED(four, total, [SUMS][HELD * WARP / GROUP]);
    const int lane = static_cast<int>(threadIdx.x) % WARP, warp = static_cast<int>(threadIdx.x) / WARP;
    const int64_t width = g.fwd.width;
    lane_sums<HELD> own = {};
    if (g.fwd.act == XPH_ACT_SILU)
        rows_of_warp<true, Stored, HELD, HOW>(g, warp, lane, &own);
    else
        rows_of_warp<false, Stored, HELD, HOW>(g, warp, lane, &own);
    for (int w = 0; w < WARPS; w++) {
        XPH_UNROLL
        for (int i = 0; w == warp && i < SUMS * groups_of(HELD); i++) {
            const int s = i / groups_of(HELD), k = i % groups_of(HELD);
            four sum = w ? total[s][k * WARP + lane] : four{};
            XPH_UNROLL
            for (int j = 0; j < GROUP; j++) sum.v[j] = w ? sum.v[j] + own.of[s][k][j] : own.of[s][k][j];
            total[s][k * WARP + lane] = sum;
        }
        __syncthreads();
    }
    float *part = static_cast<float *>(g.scratch) + blockIdx.x * SUMS * width;
    for (int64_t c = threadIdx.x; c < width; c += THREADS) {
        XPH_UNROLL
        for (int s = 0; s < SUMS; s++) part[s * width + c] = total[s][c / GROUP].v[c % GROUP];
    }
}

/* The same sums for rows that are not in registers. */
template <class Stored> __global__ void __launch_bounds__(THREADS) norm_columns(const xph_norm_grad_args g)
{
    XPH_ENTER();
    const int64_t c = int64_t(blockIdx.y) * THREADS + threadIdx.x, width = g.fwd.width;
    float total_gain = 0.0f, total_shift = 0.0f;
    if (c >= width) return;
    const bool silu_behind = g.fwd.act == XPH_ACT_SILU;
    const float gain = load(static_cast<const float *>(g.fwd.gain) + c);
    const float shift = load(static_cast<const float *>(g.fwd.shift) + c);
    for (int w = 0; w < WARPS; w++) {
        float dgain = 0.0f, dshift = 0.0f;
        for (int64_t at = int64_t(blockIdx.x) * WARPS + w; at < g.fwd.rows;
             at += int64_t(gridDim.x) * WARPS) {
            const float x = load(static_cast<const Stored *>(g.fwd.x) + at * g.fwd.ldx + c);
            const float dy = load(static_cast<const Stored *>(g.dy) + at * g.lddy + c);
            const moments m = saved_moments(g.fwd, at);
            const element e = silu_behind ? element_of<true>(m, x, dy, gain, shift)
                                          : element_of<false>(m, x, dy, gain, shift);
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

template <class Stored, int HOW>
__global__ void __launch_bounds__(THREADS) norm_back(const xph_norm_grad_args g)
{
    XPH_ENTER();
    const int lane = static_cast<int>(threadIdx.x) % WARP;
    const int64_t at = int64_t(blockIdx.x) * WARPS + threadIdx.x / WARP;
    if (at >= g.fwd.rows) return;
    const auto no_sums = [](int, int, element) {};
    const auto no_columns = [](int, int, float) {};
    if (g.fwd.act == XPH_ACT_SILU)
        back<true, Stored, 0, HOW>(g, at, lane, no_sums, no_columns);
    else
        back<false, Stored, 0, HOW>(g, at, lane, no_sums, no_columns);
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

template <class Stored> bool has_fours(const xph_norm_args *a)
{
    return a->width % GROUP == 0 && grouped<Stored>(a->x, a->ldx, GROUP) &&
           grouped<float>(a->gain, 0, GROUP) && grouped<float>(a->shift, 0, GROUP);
}

template <class Stored, int HELD, int HOW> int rows_by(const xph_norm_args *a, cudaStream_t stream)
{
    XPH_LAUNCH((norm_rows<Stored, HELD, HOW>), dim3(as_grid(blocks_of(a->rows, WARPS))), dim3(THREADS), 0,
               stream, *a);
    return cudaGetLastError();
}

template <class Stored, int HELD> int forward(const xph_norm_args *a, cudaStream_t stream)
{
    if (!has_fours<Stored>(a) || !grouped<Stored>(a->y, a->ldy, GROUP))
        return rows_by<Stored, HELD, ANY>(a, stream);
    if constexpr (HELD > 0)
        if (a->width == HELD * WARP) return rows_by<Stored, HELD, FULL>(a, stream);
    return rows_by<Stored, HELD, FOURS>(a, stream);
}

template <int HELD> int launch(const void *args, cudaStream_t stream)
{
    const xph_norm_args *a = static_cast<const xph_norm_args *>(args);
    if (!a->rows || !a->width) return cudaSuccess;
    return with_stored(a->type, [&](auto zero) { return forward<decltype(zero), HELD>(a, stream); });
}

template <int HELD> bool grad_accepts(const void *args)
{
    const xph_norm_args *a = &static_cast<const xph_norm_grad_args *>(args)->fwd;
    return fits<HELD>(a) && (HELD || fits_across(blocks_of(a->width, THREADS)));
}

size_t grad_scratch(const void *args)
{
    const xph_norm_args *a = &static_cast<const xph_norm_grad_args *>(args)->fwd;
    return static_cast<size_t>(blocks_for(a) * 3 * a->width) * sizeof(float);
}

/* dx may lie where dy does: columns are summed first. */
template <class Stored, int HELD, int HOW> void rows_back_by(const xph_norm_grad_args *g, cudaStream_t stream)
{
    const dim3 blocks(as_grid(blocks_for(&g->fwd)));
    if constexpr (HELD > 0) {
        XPH_LAUNCH((norm_grad<Stored, HELD, HOW>), blocks, dim3(THREADS), 0, stream, *g);
    } else {
        const dim3 grid(blocks.x, as_grid(blocks_of(g->fwd.width, THREADS)));
        XPH_LAUNCH((norm_columns<Stored>), grid, dim3(THREADS), 0, stream, *g);
        const dim3 rows(as_grid(blocks_of(g->fwd.rows, WARPS)));
        XPH_LAUNCH((norm_back<Stored, HOW>), rows, dim3(THREADS), 0, stream, *g);
        if (g->dx_sum) XPH_LAUNCH((norm_dx_columns<Stored>), grid, dim3(THREADS), 0, stream, *g);
    }
}

template <class Stored, int HELD> void rows_back(const xph_norm_grad_args *g, cudaStream_t stream)
{
    if (!has_fours<Stored>(&g->fwd) || !grouped<Stored>(g->dy, g->lddy, GROUP) ||
        !grouped<Stored>(g->dx, g->lddx, GROUP))
        return rows_back_by<Stored, HELD, ANY>(g, stream);
    if constexpr (HELD > 0)
        if (g->fwd.width == HELD * WARP) return rows_back_by<Stored, HELD, FULL>(g, stream);
    rows_back_by<Stored, HELD, FOURS>(g, stream);
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
