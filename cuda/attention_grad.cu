/* Gradient of attention. Probabilities are recomputed from the saved log-sum-exp (Dao et al. 2022):
 *   p = 2^(score - log-sum-exp)   ds = p (v.dy - y.dy)   dbias += ds
 *   dq = scale sum ds k           dk = scale sum ds q    dv = sum p dy
 * The owner of a frame sums dq over the keys, oldest first; the owner of a key sums dk and dv over the
 * frames, oldest first: no sum is shared. dbias: over the frames of a tile, oldest first, for each distance;
 * then over tiles and streams by fold. The products are chains of fmaf over the columns; y.dy runs in CLASSES
 * chains, joined as in sum_of_classes.
 */
#include "attention_grad.cuh"
#include "fold.cuh"

namespace
{

/* ---- any shape ---- */

constexpr int THREADS = 128;
constexpr int64_t MOST_WINDOW = 4096; /* of which shared memory holds a row */

/* p and ds of frame t and key j. */
struct pair {
    float p, ds;
};
template <class Stored>
__device__ inline pair pair_of(const xph_attention_grad_args &g, const back_view &b, int t, int j)
{
    const head_view &v = b.v;
    const Stored *q = query_at<Stored>(g.fwd, v, t), *dy = dy_at<Stored>(g, v, t);
    const float dot = dot_with(g.fwd, v, q, 1, j), dp = dot_with(g.fwd, v, dy, 2, j);
    const float score = fmaf(dot, v.scale2, bias_at(g.fwd, v, t - j)),
                lse = at_least_lowest(b.saved[t * g.fwd.heads] * LOG2_E);
    pair of;
    of.p = exp2_fast(score - lse);
    of.ds = of.p * (dp - b.along[t * g.fwd.heads]);
    return of;
}

/* A tile of frames, one after the other: a thread has its distances, then its columns. */
template <class Stored>
__global__ void __launch_bounds__(THREADS) attention_grad_frames(const xph_attention_grad_args g)
{
    XPH_ENTER();
    XPH_SHARED(int, first, [TILE]);
    XPH_SHARED_DYNAMIC(float, ds); /* [window] */
    const int tid = static_cast<int>(threadIdx.x);
    const tile_place p = place_of(g.fwd);
    const back_view b = back_of(g, p);
    const head_view &v = b.v;
    find_first(g.fwd, v, p.t0, first);
    for (int r = tid / CLASSES; r < TILE; r += THREADS / CLASSES) {
        const float along = along_of<Stored>(g, v, p.t0 + r, tid % CLASSES);
        if (tid % CLASSES == 0 && p.t0 + r < v.time) b.along[(p.t0 + r) * g.fwd.heads] = along;
    }
    for (int i = tid; i < v.window; i += THREADS) b.dbias[i] = 0.0f;
    __syncthreads();
    for (int r = 0; r < TILE && p.t0 + r < v.time; r++) {
        const int t = p.t0 + r, count = t - first[r] + 1;
        for (int i = tid; i < count; i += THREADS) {
            ds[i] = pair_of<Stored>(g, b, t, t - i).ds;
            b.dbias[i] += ds[i];
        }
        __syncthreads();
        for (int d = tid; d < v.dim; d += THREADS) {
            float sum = 0.0f;
            for (int i = count - 1; i >= 0; i--)
                sum =
                    fmaf(ds[i],
                         t < i ? ring_key(v, t - i)[d] : load(query_at<Stored>(g.fwd, v, t - i) + v.span + d),
                         sum);
            store(dq_at<Stored>(g, v, t) + d, sum * v.scale);
        }
        __syncthreads();
    }
}

/* A tile of keys, one after the other: a thread has its frames, then its columns. */
template <class Stored>
__global__ void __launch_bounds__(THREADS) attention_grad_keys(const xph_attention_grad_args g)
{
    XPH_ENTER();
    XPH_SHARED(int, first, [TILE]);
    XPH_SHARED_DYNAMIC(float, of_frames); /* p [window], ds [window] */
    const int tid = static_cast<int>(threadIdx.x);
    const tile_place place = place_of(g.fwd);
    const back_view b = back_of(g, place);
    const head_view &v = b.v;
    float *p = of_frames, *ds = of_frames + v.window;
    for (int r = 0; r < TILE && place.t0 + r < v.time; r++) {
        const int j = place.t0 + r;
        int count = 0;
        for (bool open = true;
             open && j + count < v.time;) { /* frames that see j, a tile of them at a time */
            const int t0 = j + count;
            __syncthreads();
            find_first(g.fwd, v, t0, first);
            __syncthreads();
            for (int i = 0; open && i < TILE && t0 + i < v.time; i++) {
                open = first[i] <= j;
                count += open;
            }
        }
        for (int i = tid; i < count; i += THREADS) {
            const pair of = pair_of<Stored>(g, b, j + i, j);
            p[i] = of.p, ds[i] = of.ds;
        }
        __syncthreads();
        for (int d = tid; d < v.dim; d += THREADS) {
            float dk = 0.0f, dv = 0.0f;
            for (int i = 0; i < count; i++) {
                dk = fmaf(ds[i], load(query_at<Stored>(g.fwd, v, j + i) + d), dk);
                dv = fmaf(p[i], load(dy_at<Stored>(g, v, j + i) + d), dv);
            }
            store(dq_at<Stored>(g, v, j) + v.span + d, dk * v.scale);
            store(dq_at<Stored>(g, v, j) + 2 * v.span + d, dv);
        }
        __syncthreads();
    }
}

template <class Stored> int plain(const xph_attention_grad_args *g, cudaStream_t stream)
{
    const unsigned blocks = as_grid(g->fwd.batch * g->fwd.heads * grad_layout_of(&g->fwd).tiles);
    const size_t row = static_cast<size_t>(g->fwd.window) * sizeof(float);
    XPH_LAUNCH((attention_grad_frames<Stored>), dim3(blocks), dim3(THREADS), row, stream, *g);
    XPH_LAUNCH((attention_grad_keys<Stored>), dim3(blocks), dim3(THREADS), 2 * row, stream, *g);
    attention_fold_bias(g, stream);
    return cudaGetLastError();
}

bool plain_accepts(const void *args)
{
    const xph_attention_args *a = &static_cast<const xph_attention_grad_args *>(args)->fwd;
    return attention_fits(a) && a->window <= MOST_WINDOW;
}

size_t scratch_bytes(const void *args)
{
    const grad_layout at = grad_layout_of(&static_cast<const xph_attention_grad_args *>(args)->fwd);
    return static_cast<size_t>(at.total) * sizeof(float);
}

int plain_launch(const void *args, cudaStream_t stream)
{
    const xph_attention_grad_args *g = static_cast<const xph_attention_grad_args *>(args);
    if (!g->fwd.batch || !g->fwd.time) return cudaSuccess;
    return with_stored(g->fwd.type, [=](auto zero) { return plain<decltype(zero)>(g, stream); });
}

/* ---- tiles ---- */

template <attention_unit UNIT> bool tile_accepts(const void *args)
{
    return attention_tile_grad_accepts(static_cast<const xph_attention_grad_args *>(args), UNIT);
}
template <attention_unit UNIT> int tile_launch(const void *args, cudaStream_t stream)
{
    const xph_attention_grad_args *g = static_cast<const xph_attention_grad_args *>(args);
    if (!g->fwd.batch || !g->fwd.time) return cudaSuccess;
    return attention_tile_grad_launch(g, UNIT, stream);
}

}  // namespace

const xph_cuda_candidate xph_cuda_attention_grad[] = {
    {"attention_grad_matrices", tile_accepts<ATTENTION_MATRICES>, scratch_bytes,
     tile_launch<ATTENTION_MATRICES>},
    {"attention_grad_tile", tile_accepts<ATTENTION_CHAINS>, scratch_bytes, tile_launch<ATTENTION_CHAINS>},
    {"attention_grad_plain", plain_accepts, scratch_bytes, plain_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
