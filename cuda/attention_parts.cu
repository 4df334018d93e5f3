/* What attention in any shape, by tiles and by a library call: the ring after a chunk, the bias as a matrix, and the sum of
 * what tiles leave for the bias. */
#include "attention_frame.cuh"
#include "attention_grad.cuh"
#include "fold.cuh"

namespace
{

constexpr int RING_THREADS = 256;

/* Frame whose keys slot holds after the chunk, or -1: what it held before. */
__device__ inline int frame_of_slot(const head_view &v, int slot)
{
    const int off = slot < v.next ? slot - v.next + v.window : slot - v.next;
    return off < v.time ? off + (v.time - 1 - off) / v.window * v.window : -1;
}

/* A stream is blockIdx.x, numbers of its ring are dealt out over blockIdx.y. */
template <class Stored> __global__ void __launch_bounds__(RING_THREADS) ring_write(const xph_attention_args a)
{
    XPH_ENTER();
    const int64_t stream = blockIdx.x, half = a.window * a.heads * a.dim,
                  step = int64_t(gridDim.y) * RING_THREADS;
    const head_view v = view_of(a, stream, 0);
    float *out = static_cast<float *>(a.state_out) + stream * a.ld_state;
    for (int64_t i = int64_t(blockIdx.y) * RING_THREADS + threadIdx.x; i < 2 * half; i += step) {
        const int part = i < half ? 1 : 2; /* keys, values */
        const int64_t at = i < half ? i : i - half, column = at % v.span;
        const int t = frame_of_slot(v, static_cast<int>(at / v.span));
        if (t >= 0)
            out[i] = load(query_at<Stored>(a, v, t) + part * v.span + column);
        else if (a.state_in != a.state_out)
            out[i] = v.ring ? v.ring[i] : 0.0f;
    }
}

/* A warp per stream. A reset more than a window ago counts as none: either way the ring is full. */
template <class Unused = void> __global__ void __launch_bounds__(WARP) ring_count(const xph_attention_args a)
{
    XPH_ENTER();
    const int64_t stream = blockIdx.x;
    const head_view v = view_of(a, stream, 0);
    int start = -v.filled;
    if (a.reset)
        start = last_reset(a.reset + v.row, v.time - 1, v.time - 1 - v.window, start,
                           static_cast<int>(threadIdx.x));
    __syncwarp(); /* all have read the counters */
    if (threadIdx.x == 0) leave_counters(a, v, stream, v.time - start);
}

template <class Stored> void move_ring(const xph_attention_args *a, cudaStream_t stream)
{
    const int64_t blocks = blocks_of(2 * a->window * a->heads * a->dim, 8 * RING_THREADS);
    const dim3 grid(as_grid(a->batch), as_grid(blocks < 1024 ? blocks : 1024));
    XPH_LAUNCH((ring_write<Stored>), grid, dim3(RING_THREADS), 0, stream, *a);
    attention_count_ring(a, stream);
}

/* A row of the matrix is blockIdx.x: heads, then frames. What masks is finite there, for any arithmetic. */
template <class Unused = void>
__global__ void __launch_bounds__(RING_THREADS) bias_rows(const xph_attention_args a, float *to)
{
    XPH_ENTER();
    const int time = static_cast<int>(a.time), row = static_cast<int>(blockIdx.x), t = row % time;
    const float *bias = static_cast<const float *>(a.bias) + row / time * a.window;
    for (int j = static_cast<int>(threadIdx.x); j < time; j += RING_THREADS)
        to[int64_t(row) * time + j] =
            j <= t && t - j < a.window ? at_least_lowest(load(bias + (t - j))) : 0.0f;
}

}  // namespace

int xph_attention_spread_bias(const xph_attention_args *a, float *to, cudaStream_t stream)
{
    XPH_LAUNCH((bias_rows<>), dim3(as_grid(a->heads * a->time)), dim3(RING_THREADS), 0, stream, *a, to);
    return cudaGetLastError();
}

void attention_count_ring(const xph_attention_args *a, cudaStream_t stream)
{
    XPH_LAUNCH((ring_count<>), dim3(as_grid(a->batch)), dim3(WARP), 0, stream, *a);
}

void attention_move_ring(const xph_attention_args *a, cudaStream_t stream)
{
    if (a->state_out) with_stored(a->type, [=](auto zero) { move_ring<decltype(zero)>(a, stream); });
}

void attention_fold_bias(const xph_attention_grad_args *g, cudaStream_t stream)
{
    const grad_layout at = grad_layout_of(&g->fwd);
    if (g->dbias)
        fold(static_cast<const float *>(g->scratch) + at.part, static_cast<float *>(g->dbias),
             g->fwd.batch * at.tiles, g->fwd.heads * g->fwd.window, stream);
}
