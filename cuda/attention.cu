/* Causal sliding-window attention, forward:
 *   cudnn   long chunks of 16-bit rows, where that library is: cudnn.c
 *   step    one frame: a block takes heads of a stream, and moves their ring on itself
 *   plain   any shape: a warp takes a frame, its lanes 32 keys, then the columns
 *   tiles   chunks of up to 128 columns: attention_tile.cu, by chains of fmaf or by matrix units
 * All but matrix units give the same bits (attention.cuh says why). After a chunk separate kernels write the
 * ring (attention_parts.cu), when nothing reads it any more: it may be the ring that was read.
 */
#include "attention_frame.cuh"

namespace
{

/* ---- one frame ---- */

constexpr int STEP_THREADS = 256, STEP_WARPS = STEP_THREADS / WARP;
constexpr int64_t STEP_SCORES = 4096; /* that shared memory holds, as a heads * window */

/* Scores of a head become exponentials; their sum in *total. Returns the base. */
__device__ inline float step_softmax(float *score, int count, int lane, float *total)
{
    running r;
    float most = UNSEEN, factor;
    for (int i = lane; i < count; i += WARP) most = fmaxf(most, score[i]);
    r.base = to_whole(largest_of_warp(most));
    for (int group = (count - 1) / WARP; group >= 0; group--) {
        const int i = group * WARP + lane;
        const float e = r.take(i < count ? score[i] : UNSEEN, &factor);
        if (i < count) score[i] = e;
    }
    *total = r.sum();
    return r.base;
}

/* The ring where only the frame's own slot, and what state_out has not yet, change. Columns begin..end-1. */
template <class Stored>
__device__ inline void step_ring(const xph_attention_args &a, const head_view &v, int64_t stream,
                                 int64_t begin, int64_t end)
{
    float *out = static_cast<float *>(a.state_out) + stream * a.ld_state;
    const Stored *row = query_at<Stored>(a, v, 0);
    const int newest = v.next ? v.next - 1 : v.window - 1;
    const bool moves = a.state_in != a.state_out, whole = moves && !(v.ring && a.lagging);
    for (int part = 0; part < 2; part++)
        for (int64_t c = begin + threadIdx.x; c < end; c += STEP_THREADS) {
            const int64_t at = part * v.window * v.span + c;
            for (int s = 0; whole && s < v.window; s++)
                out[at + s * v.span] = v.ring ? v.ring[at + s * v.span] : 0.0f;
            if (moves && !whole) out[at + newest * v.span] = v.ring[at + newest * v.span];
            out[at + v.next * v.span] = load(row + (1 + part) * v.span + c);
        }
}

/* blockIdx.x: stream; its heads in equal shares over blockIdx.y. The counters move here if one block has all heads. */
template <class Stored>
__global__ void __launch_bounds__(STEP_THREADS) attention_step(const xph_attention_args a)
{
    XPH_ENTER();
    XPH_SHARED_DYNAMIC(float, score); /* [heads][window], then 1 / sum [heads] */
    const int tid = static_cast<int>(threadIdx.x), heads = static_cast<int>(a.heads / gridDim.y);
    const int64_t stream = blockIdx.x;
    const int head = static_cast<int>(blockIdx.y) * heads;
    const head_view v = view_of(a, stream, 0);
    const bool cut = a.reset && a.reset[stream];
    const int seen = (cut ? 0 : v.filled) + 1, count = seen < v.window ? seen : v.window;
    float *quotient = score + heads * v.window;
    for (int i = tid; i < heads * count; i += STEP_THREADS)
        score[i / count * v.window + i % count] =
            score_at<Stored>(a, with_head(v, head + i / count), 0, i % count);
    __syncthreads();
    for (int h = tid / WARP; h < heads; h += STEP_WARPS) {
        float total;
        const float base = step_softmax(score + h * v.window, count, tid % WARP, &total);
        if (tid % WARP) continue;
        quotient[h] = __fdividef(1.0f, total);
        if (a.saved) static_cast<float *>(a.saved)[stream * a.heads + head + h] = log_of(base, total);
    }
    __syncthreads();
    const int64_t begin = int64_t(head) * v.dim, end = begin + int64_t(heads) * v.dim;
    for (int64_t c = begin + tid; c < end; c += STEP_THREADS) {
        const int h = static_cast<int>((c - begin) / v.dim);
        const float *p = score + h * v.window;
        float y = 0.0f;
        for (int distance = count - 1; distance > 0; distance--)
            y = fmaf(p[distance], ring_value(v, -distance)[c], y);
        y = fmaf(p[0], load(query_at<Stored>(a, v, 0) + 2 * v.span + c), y);
        store(static_cast<Stored *>(a.y) + stream * a.ldy + c, y * quotient[h]);
    }
    if (!a.state_out) return;
    step_ring<Stored>(a, v, stream, begin, end);
    if (gridDim.y == 1 && tid == 0) leave_counters(a, v, stream, seen);
}

/* Blocks of a stream: one where it is quickly done, else one per head. */
int64_t step_shares(const xph_attention_args *a)
{
    return a->heads * a->window <= STEP_SCORES && a->heads * a->dim <= 1024 ? 1 : a->heads;
}

template <class Stored> int step(const xph_attention_args *a, cudaStream_t stream)
{
    const int64_t shares = step_shares(a), heads = a->heads / shares;
    const dim3 grid(as_grid(a->batch), as_grid(shares));
    const size_t shared = static_cast<size_t>(heads * (a->window + 1)) * sizeof(float);
    XPH_LAUNCH((attention_step<Stored>), grid, dim3(STEP_THREADS), shared, stream, *a);
    if (shares > 1 && a->state_out) attention_count_ring(a, stream);
    return cudaGetLastError();
}

bool step_accepts(const void *args)
{
    const xph_attention_args *a = static_cast<const xph_attention_args *>(args);
    return attention_fits(a) && a->time == 1 && a->heads < (1 << 16) &&
           a->heads / step_shares(a) * (a->window + 1) * static_cast<int64_t>(sizeof(float)) <= 48 * 1024;
}

int step_launch(const void *args, cudaStream_t stream)
{
    const xph_attention_args *a = static_cast<const xph_attention_args *>(args);
    if (!a->batch) return cudaSuccess;
    return with_stored(a->type, [=](auto zero) { return step<decltype(zero)>(a, stream); });
}

/* ---- any shape ---- */

constexpr int PLAIN_THREADS = 128;

template <class Stored>
__global__ void __launch_bounds__(PLAIN_THREADS) attention_plain(const xph_attention_args a)
{
    XPH_ENTER();
    XPH_SHARED(int, first, [TILE]);
    const int lane = static_cast<int>(threadIdx.x) % WARP, warp = static_cast<int>(threadIdx.x) / WARP;
    const tile_place p = place_of(a);
    const head_view v = view_of(a, p.stream, p.head);
    find_first(a, v, p.t0, first);
    __syncthreads();
    for (int r = warp; r < TILE && p.t0 + r < v.time; r += PLAIN_THREADS / WARP)
        attention_frame<Stored>(a, v, p.t0 + r, p.t0 + r - first[r] + 1, lane);
}

template <class Stored> int plain(const xph_attention_args *a, cudaStream_t stream)
{
    const int64_t blocks = a->batch * a->heads * blocks_of(a->time, TILE);
    if (blocks)
        XPH_LAUNCH((attention_plain<Stored>), dim3(as_grid(blocks)), dim3(PLAIN_THREADS), 0, stream, *a);
    attention_move_ring(a, stream);
    return cudaGetLastError();
}

bool plain_accepts(const void *args)
{
    return attention_fits(static_cast<const xph_attention_args *>(args));
}

int plain_launch(const void *args, cudaStream_t stream)
{
    const xph_attention_args *a = static_cast<const xph_attention_args *>(args);
    if (!a->batch) return cudaSuccess;
    return with_stored(a->type, [=](auto zero) { return plain<decltype(zero)>(a, stream); });
}

/* ---- tiles ---- */

template <attention_unit UNIT> bool tile_accepts(const void *args)
{
    return attention_tile_accepts(static_cast<const xph_attention_args *>(args), UNIT);
}
template <attention_unit UNIT> int tile_launch(const void *args, cudaStream_t stream)
{
    const xph_attention_args *a = static_cast<const xph_attention_args *>(args);
    return a->batch ? attention_tile_launch(a, UNIT, stream) : static_cast<int>(cudaSuccess);
}

}  // namespace

const xph_cuda_candidate xph_cuda_attention[] = {
    {"attention_step", step_accepts, nullptr, step_launch},
    {"attention_cudnn", xph_cudnn_attention_accepts, xph_cudnn_attention_scratch, xph_cudnn_attention},
    {"attention_matrices", tile_accepts<ATTENTION_MATRICES>, nullptr, tile_launch<ATTENTION_MATRICES>},
    {"attention_tile", tile_accepts<ATTENTION_CHAINS>, nullptr, tile_launch<ATTENTION_CHAINS>},
    {"attention_plain", plain_accepts, nullptr, plain_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
