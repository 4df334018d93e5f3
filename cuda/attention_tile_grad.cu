/* Gradient of attention in tiles of 64 frames and 64 keys. Scores are made with the keys as rows: their transpose is what
 * dk and dv need as it lies in registers, and what dq needs once it has gone through shared memory.
 *
 *   frames   a block has 64 frames, visits the tiles of keys that they see, oldest first, and gives dq and its share of
 *            dbias; where one tile has the whole chunk, it gives dk and dv too (alone), and nothing is read twice
 *   keys     a block has 64 keys, visits the tiles of frames that see them, and gives dk and dv
 *
 * Both skip bands of 16 frames or keys that do not see each other.
 */
#include "attention_grad.cuh"
#include "attention_tile.cuh"

namespace
{

template <class Unit, class Stored, int DIM> struct back_tile {
    using number = typename Unit::number;
    static constexpr int LD = DIM + Unit::PAD, ROWS = Unit::ROWS, COLUMNS = Unit::columns_of(DIM);
    static constexpr int BUFFER = TILE * Unit::BUFFER_LD, SLOT = TILE * LD;
    static constexpr int VALUES = SLOT > BUFFER ? SLOT : BUFFER; /* their place becomes the buffer */
    static constexpr bool SPARE = sizeof(number) == 2; /* a second buffer is cheaper than registers */
    static constexpr size_t FRAMES_SHARED = (3 * SLOT + VALUES + (SPARE ? BUFFER : 0)) * sizeof(number);
    static constexpr size_t KEYS_SHARED = (4 * SLOT + (Unit::THROUGH_BUFFER ? BUFFER : 0)) * sizeof(number);

    /* Blocks of a multiprocessor that share its registers; shared memory has space for three in sm_90 and sm_100. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
    static constexpr int BLOCKS = DIM == 128 ? 1 : 3;
#else
    static constexpr int BLOCKS = DIM == 128 ? 1 : 2;
#endif

    /* Of the frames of a tile; lse with log2(e). */
    struct frames {
        int first[TILE];
        float lse[TILE], along[TILE], bias[BIASES];
    };
    struct place {
        int t0, k0;
    };

    static __device__ void fill_frames(const xph_attention_grad_args &g, const head_view &v, int t0,
                                       number *q, number *dy)
    {
        const rows_at<Stored> rows = {query_at<Stored>(g.fwd, v, t0), g.fwd.ldqkv};
        fill<Unit, DIM, 4>(q, rows, dy, rows_at<Stored>{dy_at<Stored>(g, v, t0), g.lddy}, 0, v.time - t0,
                           v.dim);
    }
    static __device__ void fill_lse(const xph_attention_grad_args &g, const back_view &b, int t0, frames *f)
    {
        const int i = static_cast<int>(threadIdx.x), t = t0 + i;
        if (i < TILE) f->lse[i] = t < b.v.time ? at_least_lowest(b.saved[t * g.fwd.heads] * LOG2_E) : 0.0f;
    }

    /* y.dy of the block's frames, dy as shared memory has it: what is multiplied with values is the same. */
    static __device__ void fill_along(const xph_attention_grad_args &g, const head_view &v, int t0,
                                      const number *dy, float *along)
    {
        constexpr int TOGETHER = TILE_THREADS / CLASSES, EACH = TILE / TOGETHER;
        constexpr int STEPS = (DIM < TILE ? DIM : TILE) / CLASSES;
        const int lane = static_cast<int>(threadIdx.x) % CLASSES,
                  row = static_cast<int>(threadIdx.x) / CLASSES;
        const Stored *y =
            static_cast<const Stored *>(g.fwd.y) + (v.row + t0) * g.fwd.ldy + int64_t(v.head) * v.dim;
        float s[EACH] = {};
        XPH_UNROLL
        for (int from = lane; from < DIM; from += STEPS * CLASSES) {
            float x[EACH][STEPS];
            XPH_UNROLL
            for (int i = 0; i < EACH; i++) {
                const int r = row + i * TOGETHER;
                XPH_UNROLL
                for (int k = 0; k < STEPS; k++) {
                    const int d = from + k * CLASSES;
                    x[i][k] = t0 + r < v.time && d < v.dim ? load(y + r * g.fwd.ldy + d) : 0.0f;
                }
            }
            XPH_UNROLL
            for (int i = 0; i < EACH; i++) {
                XPH_UNROLL
                for (int k = 0; k < STEPS; k++)
                    s[i] =
                        fmaf(x[i][k], Unit::get(dy + (row + i * TOGETHER) * LD + from + k * CLASSES), s[i]);
            }
        }
        XPH_UNROLL
        for (int i = 0; i < EACH; i++) {
            const float sum = sum_of_classes(s[i]);
            if (lane == 0) along[row + i * TOGETHER] = sum;
        }
    }

    /* Columns of frames that may see the warp's keys: begin..end-1 in whole bands; none where begin >= end. */
    static __device__ void frames_of_band(const head_view &v, place at, int *begin, int *end)
    {
        const int key = at.k0 + own_rows() - at.t0, left = (v.time - at.t0 + BAND - 1) & -BAND;
        const int64_t last = (int64_t(key) + BAND - 1 + v.window + BAND - 1) & -BAND;
        *begin = key > 0 ? key : 0;
        *end = left < TILE ? left : TILE;
        if (last < *end) *end = static_cast<int>(last);
    }

    /* p and ds of the warp's keys and all frames; 0 where they do not see each other. */
    static __device__ void pairs(const head_view &v, const frames &f, place at, const number *keys,
                                 const number *values, const number *q, const number *dy, int begin, int end,
                                 float (&p)[ROWS][Unit::SCORES], float (&ds)[ROWS][Unit::SCORES])
    {
        Unit::template scores<DIM>(p, keys, q, begin, end);
        Unit::template scores<DIM>(ds, values, dy, begin, end);
        XPH_UNROLL
        for (int j = 0; j < Unit::SCORES; j++) {
            const int c = Unit::score_column(j), t = at.t0 + c;
            const int near = t < v.time ? t - at.k0 : -1, far = f.first[c] - at.k0;
            const float lse = f.lse[c], along = f.along[c];
            XPH_UNROLL
            for (int i = 0; i < ROWS; i++) {
                const int r = Unit::row(i);
                const bool seen = r <= near && r >= far;
                const float score = fmaf(p[i][j], v.scale2, f.bias[TILE - 1 + c - r]);
                const float x = exp2_fast(score - lse);
                p[i][j] = seen ? x : 0.0f;
                ds[i][j] = seen ? x * (ds[i][j] - along) : 0.0f;
            }
        }
    }

    /* to += p b, p through the warp's rows of the buffer where the unit wants that. */
    static __device__ void add(float (&to)[ROWS][COLUMNS], const float (&p)[ROWS][Unit::SCORES],
                               number *buffer, const number *b, int begin, int end)
    {
        if (Unit::THROUGH_BUFFER) {
            __syncwarp();
            Unit::put(buffer, p);
            __syncwarp();
        }
        Unit::template times<DIM>(to, p, buffer, b, begin, end);
    }

    static __device__ void leave_keys(const xph_attention_grad_args &g, const head_view &v, int k0,
                                      float (&dk)[ROWS][COLUMNS], float (&dv)[ROWS][COLUMNS])
    {
        Stored *to = dq_at<Stored>(g, v, k0);
        leave<Unit, DIM>(dk, to + v.span, g.lddqkv, v.time - k0, v.dim, [&](int) { return v.scale; });
        leave<Unit, DIM>(dv, to + 2 * v.span, g.lddqkv, v.time - k0, v.dim, [](int) { return 1.0f; });
    }

    /* dbias of a thread's distance, over the frames that have a key there, oldest first; where it lies, or NULL. */
    static __device__ float *bias_of_thread(const back_view &b, place at)
    {
        const int off = static_cast<int>(threadIdx.x) - (TILE - 1), distance = at.t0 - at.k0 + off;
        return off < TILE && distance >= 0 && distance < b.v.window ? b.dbias + distance : nullptr;
    }
    static __device__ float sum_of_bias(float sum, const number *buffer)
    {
        const int off = static_cast<int>(threadIdx.x) - (TILE - 1);
        const int begin = off > 0 ? off : 0, end = off > 0 ? TILE : TILE + off;
        for (int c = begin; c < end; c++) sum += Unit::get(buffer + (c - off) * Unit::BUFFER_LD + c);
        return sum;
    }

    /* dv and dk of a chunk of one tile, one after the other: registers are scarce. ds is in the buffer then. */
    static __device__ void leave_keys_alone(const xph_attention_grad_args &g, const head_view &v, int k0,
                                            number *tiles, int begin, int end,
                                            const float (&p)[ROWS][Unit::SCORES],
                                            const float (&ds)[ROWS][Unit::SCORES])
    {
        const number *const q = tiles, *const dy = q + SLOT;
        number *const buffer = tiles + 3 * SLOT, *const spare = buffer + VALUES;
        Stored *to = dq_at<Stored>(g, v, k0);
        float sum[ROWS][COLUMNS];
        clear<Unit, DIM>(sum);
        Unit::put(buffer, Unit::THROUGH_BUFFER ? p : ds);
        if (SPARE) Unit::put(spare, p);
        __syncwarp();
        if (SPARE)
            Unit::template times_of_buffer<DIM>(sum, spare, dy, begin, end);
        else
            Unit::template times<DIM>(sum, p, buffer, dy, begin, end);
        leave<Unit, DIM>(sum, to + 2 * v.span, g.lddqkv, v.time - k0, v.dim, [](int) { return 1.0f; });
        if (Unit::THROUGH_BUFFER) {
            __syncwarp();
            Unit::put(buffer, ds);
            __syncwarp();
        }
        clear<Unit, DIM>(sum);
        Unit::template times_of_buffer<DIM>(sum, buffer, q, begin, end);
        leave<Unit, DIM>(sum, to + v.span, g.lddqkv, v.time - k0, v.dim, [&](int) { return v.scale; });
    }

    /* What visit needs of a tile of keys. */
    static __device__ void fetch(const xph_attention_grad_args &g, const head_view &v, place at, int oldest,
                                 number *tiles, frames *f)
    {
        fill_keys<Unit, DIM, 4, Stored>(g.fwd, v, at.k0, oldest, tiles + 2 * SLOT, tiles + 3 * SLOT);
        fill_bias(g.fwd, v, at.t0, at.k0, f->bias);
        __syncthreads();
    }

    /* A tile of keys for the block's frames; alone: it is the chunk's own, and its gradients are wanted. */
    static __device__ void visit(const xph_attention_grad_args &g, const back_view &b, const frames &f,
                                 place at, number *tiles, bool alone, float (&dq)[ROWS][COLUMNS])
    {
        number *const q = tiles, *const dy = q + SLOT, *const keys = dy + SLOT, *const buffer = keys + SLOT;
        float p[ROWS][Unit::SCORES], ds[ROWS][Unit::SCORES];
        int begin, end;
        float *const bias = bias_of_thread(b, at), before = bias ? *bias : 0.0f;
        frames_of_band(b.v, at, &begin, &end);
        pairs(b.v, f, at, keys, buffer, q, dy, begin, end, p, ds);
        __syncthreads(); /* nobody needs the values any more */
        if (alone) leave_keys_alone(g, b.v, at.k0, tiles, begin, end, p, ds);
        if (!alone) Unit::put(buffer, ds);
        __syncthreads();
        const int own = own_rows(), oldest = f.first[own] - at.k0, newest = at.t0 + own + BAND - at.k0;
        if (at.t0 + own < b.v.time)
            Unit::template transposed<DIM>(dq, buffer, keys, oldest > 0 ? oldest & -BAND : 0,
                                           newest < TILE ? newest : TILE);
        if (bias) *bias = sum_of_bias(before, buffer);
    }

    static int run(const xph_attention_grad_args *g, cudaStream_t stream);
};

template <class Unit, class Stored, int DIM>
__global__ void __launch_bounds__(TILE_THREADS, (back_tile<Unit, Stored, DIM>::BLOCKS))
    attention_back_frames(const xph_attention_grad_args g, bool alone)
{
    XPH_ENTER();
    using work = back_tile<Unit, Stored, DIM>;
    XPH_SHARED(typename work::frames, shared, [1]);
    XPH_SHARED_DYNAMIC(typename Unit::number, tiles);
    typename work::frames &f = shared[0];
    const int tid = static_cast<int>(threadIdx.x);
    const tile_place p = place_of(g.fwd);
    const back_view b = back_of(g, p);
    const head_view &v = b.v;
    float dq[work::ROWS][work::COLUMNS];
    clear<Unit, DIM>(dq);
    find_first(g.fwd, v, p.t0, f.first);
    work::fill_frames(g, v, p.t0, tiles, tiles + work::SLOT);
    work::fill_lse(g, b, p.t0, &f);
    for (int i = tid; i < v.window; i += TILE_THREADS) b.dbias[i] = 0.0f;
    __syncthreads();
    work::fill_along(g, v, p.t0, tiles + work::SLOT, f.along);
    const int oldest = f.first[0];
    for (int k0 = oldest & -TILE; k0 < p.t0; k0 += TILE) {
        work::fetch(g, v, {p.t0, k0}, oldest, tiles, &f);
        work::visit(g, b, f, {p.t0, k0}, tiles, false, dq);
        __syncthreads();
    }
    work::fetch(g, v, {p.t0, p.t0}, oldest, tiles, &f);
    work::visit(g, b, f, {p.t0, p.t0}, tiles, alone, dq);
    if (!alone && tid < TILE && p.t0 + tid < v.time) b.along[(p.t0 + tid) * g.fwd.heads] = f.along[tid];
    leave<Unit, DIM>(dq, dq_at<Stored>(g, v, p.t0), g.lddqkv, v.time - p.t0, v.dim,
                     [&](int) { return v.scale; });
}

template <class Unit, class Stored, int DIM>
__global__ void __launch_bounds__(TILE_THREADS, DIM == 128 ? 1 : 2)
    attention_back_keys(const xph_attention_grad_args g)
{
    XPH_ENTER();
    using work = back_tile<Unit, Stored, DIM>;
    XPH_SHARED(typename work::frames, shared, [1]);
    XPH_SHARED_DYNAMIC(typename Unit::number, tiles);
    typename work::frames &f = shared[0];
    const int tid = static_cast<int>(threadIdx.x);
    const tile_place place = place_of(g.fwd);
    const back_view b = back_of(g, place);
    const head_view &v = b.v;
    const int k0 = place.t0;
    number_of<Unit> *const keys = tiles, *const values = keys + work::SLOT, *const q = values + work::SLOT,
                           *const dy = q + work::SLOT, *const buffer = dy + work::SLOT;
    float dk[work::ROWS][work::COLUMNS], dv[work::ROWS][work::COLUMNS];
    clear<Unit, DIM>(dk);
    clear<Unit, DIM>(dv);
    fill_keys<Unit, DIM, 4, Stored>(g.fwd, v, k0, k0, keys, values);
    for (int t0 = k0; t0 < v.time && t0 - v.window < k0 + TILE - 1; t0 += TILE) {
        __syncthreads(); /* the tile before is done with */
        find_first(g.fwd, v, t0, f.first);
        work::fill_frames(g, v, t0, q, dy);
        work::fill_lse(g, b, t0, &f);
        if (tid < TILE) f.along[tid] = t0 + tid < v.time ? b.along[(t0 + tid) * g.fwd.heads] : 0.0f;
        fill_bias(g.fwd, v, t0, k0, f.bias);
        __syncthreads();
        if (f.first[0] >= k0 + TILE) break;
        float p[work::ROWS][Unit::SCORES], ds[work::ROWS][Unit::SCORES];
        int begin, end;
        work::frames_of_band(v, {t0, k0}, &begin, &end);
        if (begin >= end) continue;
        work::pairs(v, f, {t0, k0}, keys, values, q, dy, begin, end, p, ds);
        work::add(dv, p, buffer, dy, begin, end);
        work::add(dk, ds, buffer, q, begin, end);
    }
    work::leave_keys(g, v, k0, dk, dv);
}

template <class Unit, class Stored, int DIM>
int back_tile<Unit, Stored, DIM>::run(const xph_attention_grad_args *g, cudaStream_t stream)
{
    const int64_t tiles = grad_layout_of(&g->fwd).tiles;
    const unsigned blocks = as_grid(g->fwd.batch * g->fwd.heads * tiles);
    int error = allow_shared(attention_back_frames<Unit, Stored, DIM>, FRAMES_SHARED);
    if (!error) error = allow_shared(attention_back_keys<Unit, Stored, DIM>, KEYS_SHARED);
    if (error) return error;
    XPH_LAUNCH((attention_back_frames<Unit, Stored, DIM>), dim3(blocks), dim3(TILE_THREADS), FRAMES_SHARED,
               stream, *g, tiles == 1);
    if (tiles > 1)
        XPH_LAUNCH((attention_back_keys<Unit, Stored, DIM>), dim3(blocks), dim3(TILE_THREADS), KEYS_SHARED,
                   stream, *g);
    attention_fold_bias(g, stream);
    return cudaGetLastError();
}

}  // namespace

bool attention_tile_grad_accepts(const xph_attention_grad_args *g, attention_unit unit)
{
    const xph_attention_args *a = &g->fwd;
    const int64_t size = a->type == XPH_BF16 ? 2 : 4, ld = attention_padded(a->dim) + 16 / size;
    return attention_tiles_fit(a, unit) && (4 * TILE * ld + TILE * (TILE + 8)) * size + 4096 <= most_shared();
}

int attention_tile_grad_launch(const xph_attention_grad_args *g, attention_unit unit, cudaStream_t stream)
{
    return attention_by_unit<back_tile>(&g->fwd, unit, g, stream);
}
