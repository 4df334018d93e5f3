/* Our own matrix products, for when cuBLASLt is missing or refuses: y = x W^T + bias + residual, and the
 * gradients of x, W and bias. Weights are float.
 *
 * A block makes TALL x WIDE numbers of the product from tiles in shared memory, DEPTH deep; a thread TALL /
 * 16 x 4 of them. Each is one chain of fused multiply-adds along the inner dimension, from its first element
 * on, whatever the tiles: a row has the same bits alone and among others. dW and dbias are such chains over
 * SLICE rows at least, the slices are added by fold; their number depends on the rows alone.
 */
#include "fold.cuh"
#include "kernels.h"

namespace
{

constexpr int THREADS = 256, SIDE = 16, WIDE = 64, DEPTH = 16, COLUMNS = WIDE / SIDE;
constexpr int64_t SLICE = 256, MOST_SLICES = 32, FEW_ROWS = 512;

/* A matrix as a product sees it: `outer` rows or columns that stay, along an inner dimension that is summed. */
template <class Stored, bool INNER_LIES> struct operand {
    const Stored *at;
    int64_t ld, outer; /* INNER_LIES: neighbours in the inner dimension are neighbours in memory */

    __device__ float element(int64_t o, int64_t k) const
    {
        return load(at + (INNER_LIES ? o * ld + k : k * ld + o));
    }
};

/* Reads run along memory. What is outside is zero. */
template <int OUTER, class Stored, bool INNER_LIES>
__device__ inline void fill(float (*tile)[OUTER + 4], const operand<Stored, INNER_LIES> &from, int64_t o0,
                            int64_t k0, int64_t k1)
{
    for (int i = static_cast<int>(threadIdx.x); i < OUTER * DEPTH; i += THREADS) {
        const int o = INNER_LIES ? i / DEPTH : i % OUTER, k = INNER_LIES ? i % DEPTH : i / OUTER;
        const bool inside = o0 + o < from.outer && k0 + k < k1;
        tile[k][o] = inside ? from.element(o0 + o, k0 + k) : 0.0f;
    }
}

/* The thread's part of a tile: rows m0 + ty R .., columns n0 + tx 4 ... */
template <int TALL> struct part {
    static constexpr int ROWS = TALL / SIDE;
    float sum[ROWS][COLUMNS];
    int64_t row, column;

    __device__ part(int64_t m0, int64_t n0)
    {
        const int thread = static_cast<int>(threadIdx.x);
        row = m0 + thread / SIDE * ROWS;
        column = n0 + thread % SIDE * COLUMNS;
        XPH_UNROLL
        for (int i = 0; i < ROWS * COLUMNS; i++) sum[i / COLUMNS][i % COLUMNS] = 0.0f;
    }
    /* f(row, column, sum) for what lies inside of rows x columns. */
    template <class Each> __device__ void each(int64_t rows, int64_t columns, Each f) const
    {
        XPH_UNROLL
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            const int64_t r = row + i / COLUMNS, c = column + i % COLUMNS;
            if (r < rows && c < columns) f(r, c, sum[i / COLUMNS][i % COLUMNS]);
        }
    }
};

template <int TALL> __device__ inline void add_tile(part<TALL> *p, float (*a)[TALL + 4], float (*b)[WIDE + 4])
{
    constexpr int ROWS = part<TALL>::ROWS;
    const int thread = static_cast<int>(threadIdx.x), m = thread / SIDE * ROWS, n = thread % SIDE * COLUMNS;
    XPH_UNROLL
    for (int k = 0; k < DEPTH; k++) {
        XPH_UNROLL
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            const int r = i / COLUMNS, c = i % COLUMNS;
            p->sum[r][c] = fmaf(a[k][m + r], b[k][n + c], p->sum[r][c]);
        }
    }
}

/* Along [k0, k1). */
template <int TALL, class A, class B>
__device__ inline part<TALL> product(const A &a, const B &b, int64_t m0, int64_t n0, int64_t k0, int64_t k1)
{
    XPH_SHARED(float, left, [DEPTH][TALL + 4]);
    XPH_SHARED(float, right, [DEPTH][WIDE + 4]);
    part<TALL> p(m0, n0);
    for (int64_t k = k0; k < k1; k += DEPTH) {
        __syncthreads();
        fill<TALL>(left, a, m0, k, k1);
        fill<WIDE>(right, b, n0, k, k1);
        __syncthreads();
        add_tile<TALL>(&p, left, right);
    }
    return p;
}

/* ---- forward ---- */

template <class Stored, int TALL>
__global__ void __launch_bounds__(THREADS, 2) linear(const xph_linear_args a)
{
    XPH_ENTER();
    const operand<Stored, true> x = {static_cast<const Stored *>(a.x), a.ldx, a.rows};
    const operand<float, true> w = {static_cast<const float *>(a.w), a.in, a.out};
    const float *bias = static_cast<const float *>(a.bias);
    const Stored *residual = static_cast<const Stored *>(a.residual);
    Stored *y = static_cast<Stored *>(a.y);
    const part<TALL> p = product<TALL>(x, w, int64_t(blockIdx.x) * TALL, int64_t(blockIdx.y) * WIDE, 0, a.in);
    p.each(a.rows, a.out, [&](int64_t row, int64_t o, float sum) {
        if (bias) sum += load(bias + o);
        if (residual) sum += load_changing(residual + row * a.ldr + o);
        store(y + row * a.ldy + o, sum);
    });
}

bool fits(const xph_linear_args *a)
{
    return is_stored(a->type) && !a->weights && a->rows < int64_t(1) << 31 &&
           fits_across(blocks_of(a->out, WIDE));
}

template <int TALL> int launch(const void *args, cudaStream_t stream)
{
    const xph_linear_args *a = static_cast<const xph_linear_args *>(args);
    const dim3 grid(as_grid(blocks_of(a->rows, TALL)), as_grid(blocks_of(a->out, WIDE)));
    if (!a->rows || !a->out) return cudaSuccess;
    with_stored(a->type, [&](auto zero) {
        XPH_LAUNCH((linear<decltype(zero), TALL>), grid, dim3(THREADS), 0, stream, *a);
    });
    return cudaGetLastError();
}

/* ---- gradients ---- */

template <class Stored> __global__ void __launch_bounds__(THREADS, 2) linear_dx(const xph_linear_grad_args g)
{
    XPH_ENTER();
    const operand<Stored, true> dy = {static_cast<const Stored *>(g.dy), g.lddy, g.rows};
    const operand<float, false> w = {static_cast<const float *>(g.w), g.in, g.in};
    Stored *dx = static_cast<Stored *>(g.dx);
    const part<WIDE> p =
        product<WIDE>(dy, w, int64_t(blockIdx.x) * WIDE, int64_t(blockIdx.y) * WIDE, 0, g.out);
    p.each(g.rows, g.in, [&](int64_t row, int64_t i, float sum) {
        Stored *to = dx + row * g.lddx + i;
        store(to, g.dx_add ? load_changing(to) + sum : sum);
    });
}

/* Rows of a slice, and slices. */
struct slices {
    int64_t rows, count;
};
inline slices slices_of(const xph_linear_grad_args *g)
{
    const int64_t wanted = blocks_of(g->rows, SLICE), most = wanted < MOST_SLICES ? wanted : MOST_SLICES;
    if (!most) return {0, 0};
    const int64_t rows = blocks_of(g->rows, most);
    return {rows, blocks_of(g->rows, rows)};
}

/* part [slices][out][in] */
template <class Stored>
__global__ void __launch_bounds__(THREADS, 2)
    linear_dw(const xph_linear_grad_args g, float *to, int64_t slice)
{
    XPH_ENTER();
    const operand<Stored, false> dy = {static_cast<const Stored *>(g.dy), g.lddy, g.out};
    const operand<Stored, false> x = {static_cast<const Stored *>(g.x), g.ldx, g.in};
    const int64_t first = blockIdx.z * slice, last = first + slice < g.rows ? first + slice : g.rows;
    const part<WIDE> p =
        product<WIDE>(dy, x, int64_t(blockIdx.x) * WIDE, int64_t(blockIdx.y) * WIDE, first, last);
    p.each(g.out, g.in,
           [&](int64_t o, int64_t i, float sum) { to[(blockIdx.z * g.out + o) * g.in + i] = sum; });
}

/* part [slices][out] */
template <class Stored>
__global__ void __launch_bounds__(THREADS)
    linear_dbias(const xph_linear_grad_args g, float *to, int64_t slice)
{
    XPH_ENTER();
    const int64_t o = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    const int64_t first = blockIdx.y * slice, last = first + slice < g.rows ? first + slice : g.rows;
    if (o >= g.out) return;
    float sum = 0.0f;
    for (int64_t row = first; row < last; row++)
        sum += load(static_cast<const Stored *>(g.dy) + row * g.lddy + o);
    to[blockIdx.y * g.out + o] = sum;
}

template <class Stored> void gradients(const xph_linear_grad_args *g, cudaStream_t stream)
{
    const slices s = slices_of(g);
    float *parts = static_cast<float *>(g->scratch), *sums = parts + s.count * g->out * g->in;
    const unsigned outs = as_grid(blocks_of(g->out, WIDE)), ins = as_grid(blocks_of(g->in, WIDE));
    const unsigned count = as_grid(s.count);
    if (g->dw) {
        XPH_LAUNCH((linear_dw<Stored>), dim3(outs, ins, count), dim3(THREADS), 0, stream, *g, parts, s.rows);
        fold(parts, static_cast<float *>(g->dw), s.count, g->out * g->in, stream);
    }
    if (g->dbias) {
        const dim3 grid(as_grid(blocks_of(g->out, THREADS)), count);
        XPH_LAUNCH((linear_dbias<Stored>), grid, dim3(THREADS), 0, stream, *g, sums, s.rows);
        fold(sums, static_cast<float *>(g->dbias), s.count, g->out, stream);
    }
    if (g->dx) { /* last: it may lie where x does */
        const dim3 grid(as_grid(blocks_of(g->rows, WIDE)), ins);
        XPH_LAUNCH((linear_dx<Stored>), grid, dim3(THREADS), 0, stream, *g);
    }
}

}  // namespace

bool xph_linear_accepts(const void *args)
{
    return fits(static_cast<const xph_linear_args *>(args));
}

bool xph_linear_accepts_few(const void *args)
{
    const xph_linear_args *a = static_cast<const xph_linear_args *>(args);
    return a->rows <= FEW_ROWS && fits(a);
}

int xph_linear_few(const void *args, cudaStream_t stream)
{
    return launch<SIDE>(args, stream);
}

int xph_linear(const void *args, cudaStream_t stream)
{
    return launch<WIDE>(args, stream);
}

bool xph_linear_accepts_grad(const void *args)
{
    const xph_linear_grad_args *g = static_cast<const xph_linear_grad_args *>(args);
    return is_stored(g->type) && g->rows < int64_t(1) << 31 && fits_across(blocks_of(g->in, WIDE));
}

size_t xph_linear_grad_scratch(const void *args)
{
    const xph_linear_grad_args *g = static_cast<const xph_linear_grad_args *>(args);
    return static_cast<size_t>(slices_of(g).count * g->out * (g->in + 1)) * sizeof(float);
}

int xph_linear_grad(const void *args, cudaStream_t stream)
{
    const xph_linear_grad_args *g = static_cast<const xph_linear_grad_args *>(args);
    if (!g->rows || !g->in || !g->out) return cudaSuccess;
    with_stored(g->type, [&](auto zero) { gradients<decltype(zero)>(g, stream); });
    return cudaGetLastError();
}
