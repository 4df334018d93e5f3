/* Attention forward in tiles: a block has 64 frames of one head and visits the tiles of 64 keys that they
 * see, oldest first (Dao et al. 2022). A warp has 16 of the frames and skips bands of 16 keys that none of
 * them sees.
 *
 * A key that a frame does not see has probability 0, but 0 times a number that is not finite is NaN. Where a
 * result is NaN, the block recomputes its frames one by one with attention_frame, which reads nothing unseen.
 */
#include "attention_frame.cuh"
#include "attention_tile.cuh"

namespace
{

struct fixing {
    const xph_attention_args *a;
    const float *stats;
};

template <class Unit, class Stored, int DIM> struct forward_tile {
    using number = typename Unit::number;
    static constexpr int LD = DIM + Unit::PAD, ROWS = Unit::ROWS, COLUMNS = Unit::columns_of(DIM);
    static constexpr int SLOT =
        Unit::THROUGH_BUFFER && Unit::BUFFER_LD > LD ? TILE *Unit::BUFFER_LD : TILE *LD;
    static constexpr int SLOTS = 3; /* queries; keys, then probabilities; values */
    static constexpr size_t SHARED = SLOTS * SLOT * sizeof(number);
    static constexpr int BLOCKS = DIM == 128 ? 2 : Unit::THROUGH_BUFFER ? 3 : 4;
    static constexpr int MOST = Unit::THROUGH_BUFFER || sizeof(Stored) == 2 ? 8 : 4; /* as registers allow */

    struct softmax {
        float base[ROWS], total[ROWS];
    };

    /* Scores become 2^(score - base), where units differ in any case without the care of exp2_from; sums so far follow the
     * base. A frame that has seen no key yet counts what it does not see as 1: its first key scales that by 0. */
    static __device__ void weigh(const head_view &v, int t0, int k0, bool masked, const int *first,
                                 const float *bias, float (&s)[ROWS][Unit::SCORES], softmax *of,
                                 float (&sum)[ROWS][COLUMNS])
    {
        XPH_UNROLL
        for (int i = 0; i < ROWS; i++) {
            const int r = Unit::row(i), near = t0 + r - k0, far = masked ? first[r] - k0 : 0;
            float most = UNSEEN;
            XPH_UNROLL
            for (int j = 0; j < Unit::SCORES; j++) {
                const int c = Unit::score_column(j);
                const float x = fmaf(s[i][j], v.scale2, bias[TILE - 1 + r - c]);
                s[i][j] = masked && (c > near || c < far) ? UNSEEN : x;
                most = fmaxf(most, s[i][j]);
            }
            XPH_UNROLL
            for (int bit = Unit::LANES / 2; bit; bit /= 2)
                most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, bit));
            const float next = fmaxf(of->base[i], to_whole(most)), factor = power_of_two(of->base[i] - next);
            of->total[i] *= factor;
            XPH_UNROLL
            for (int j = 0; j < Unit::SCORES; j++) {
                s[i][j] = Unit::THROUGH_BUFFER ? exp2_from(s[i][j], next) : exp2_fast(s[i][j] - next);
                of->total[i] += s[i][j];
            }
            XPH_UNROLL
            for (int j = 0; j < COLUMNS; j++) sum[i][j] *= factor;
            of->base[i] = next;
        }
    }

    /* Keys of one tile, that shared memory has. */
    static __device__ void visit(const head_view &v, int t0, int k0, number *tiles, const int *first,
                                 const float *bias, softmax *of, float (&sum)[ROWS][COLUMNS])
    {
        number *const keys = tiles + SLOT, *const values = tiles + 2 * SLOT;
        const int own = own_rows(), oldest = first[own] - k0, newest = t0 + own - k0;
        const int begin = oldest > 0 ? oldest & -BAND : 0;
        const int end = t0 + own >= v.time ? 0 : newest + BAND < TILE ? newest + BAND : TILE;
        const bool masked = oldest > 0 || newest < TILE - 1 || first[own + BAND - 1] > k0, any = begin < end;
        float s[ROWS][Unit::SCORES];
        if (any) {
            Unit::template scores<DIM>(s, tiles, keys, begin, end);
            weigh(v, t0, k0, masked, first, bias, s, of, sum);
        }
        if (Unit::THROUGH_BUFFER) {
            __syncthreads(); /* nobody needs the keys any more */
            if (any) Unit::put(keys, s);
            __syncwarp();
        }
        if (any) Unit::template times<DIM>(sum, s, keys, values, begin, end);
    }

    /* Whether any result of the block's `count` frames is no number; the last barrier lies behind. */
    static __device__ bool bad(const float (&sum)[ROWS][COLUMNS], const softmax &of, int count, int *found)
    {
        float all = 0.0f;
        XPH_UNROLL
        for (int i = 0; i < ROWS; i++) {
            all += Unit::row(i) < count ? total_of(of.base[i], of.total[i]) : 0.0f;
            XPH_UNROLL
            for (int j = 0; j < COLUMNS; j++) all += sum[i][j];
        }
        if (threadIdx.x == 0) *found = 0;
        __syncthreads();
        if (!(all - all == 0.0f)) *found = 1;
        __syncthreads();
        return *found;
    }

    /* stats: only the tiles that are cut, as xph_attention_fix has it; null: all. */
    static int launch(const xph_attention_args *a, const float *stats, cudaStream_t stream);
    static int run(const xph_attention_args *a, cudaStream_t stream) { return launch(a, nullptr, stream); }
    static int run(const fixing *f, cudaStream_t stream) { return launch(f->a, f->stats, stream); }
};

/* Whether all frames of the tile see what they would of a stream that is one episode and has no ring. */
__device__ inline bool is_whole(const head_view &v, int t0, const int *first)
{
    bool whole = true;
    XPH_UNROLL
    for (int r = tile_lane(); r < TILE; r += WARP) {
        const int edge = t0 + r - v.window + 1;
        whole = whole && (t0 + r >= v.time || first[r] == (edge > 0 ? edge : 0));
    }
    return __all_sync(ALL_LANES, whole);
}

__device__ inline void take_stats(const xph_attention_args &a, const head_view &v, const tile_place &p,
                                  const float *stats)
{
    const int t = p.t0 + static_cast<int>(threadIdx.x);
    if (a.saved && threadIdx.x < TILE && t < v.time)
        static_cast<float *>(a.saved)[(v.row + t) * a.heads + v.head] =
            load(stats + (p.stream * a.heads + v.head) * v.time + t);
}

template <class Unit, class Stored, int DIM>
__global__ void __launch_bounds__(TILE_THREADS, (forward_tile<Unit, Stored, DIM>::BLOCKS))
    attention_tile(const xph_attention_args a, const float *stats)
{
    XPH_ENTER();
    using work = forward_tile<Unit, Stored, DIM>;
    XPH_SHARED(int, first, [TILE]);
    XPH_SHARED(float, bias, [BIASES]);
    XPH_SHARED(int, found, [1]);
    XPH_SHARED_DYNAMIC(typename Unit::number, tiles);
    const tile_place p = place_of(a);
    const head_view v = view_of(a, p.stream, p.head);
    typename work::softmax of;
    float sum[work::ROWS][work::COLUMNS];
    clear<Unit, DIM>(sum);
    XPH_UNROLL
    for (int i = 0; i < work::ROWS; i++) of.base[i] = UNSEEN, of.total[i] = 0.0f;
    find_first(a, v, p.t0, first);
    if constexpr (sizeof(Stored) < sizeof(float)) {
        if (stats) {
            __syncthreads();
            if (is_whole(v, p.t0, first)) {
                take_stats(a, v, p, stats);
                return;
            }
        }
    }
    fill_queries<Unit, DIM, Stored>(a, v, p.t0, tiles);
    __syncthreads();
    const int oldest = first[0];
    for (int k0 = oldest & -TILE; k0 <= p.t0; k0 += TILE) {
        fill_keys<Unit, DIM, work::MOST, Stored>(a, v, k0, oldest, tiles + work::SLOT,
                                                 tiles + 2 * work::SLOT);
        fill_bias(a, v, p.t0, k0, bias);
        __syncthreads();
        work::visit(v, p.t0, k0, tiles, first, bias, &of, sum);
        __syncthreads();
    }
    if (work::bad(sum, of, v.time - p.t0, found)) {
        for (int r = static_cast<int>(threadIdx.x) / WARP; r < TILE && p.t0 + r < v.time;
             r += TILE_THREADS / WARP)
            attention_frame<Stored>(a, v, p.t0 + r, p.t0 + r - first[r] + 1, tile_lane());
        return;
    }
    XPH_UNROLL
    for (int i = 0; i < work::ROWS; i++) {
        XPH_UNROLL
        for (int bit = Unit::LANES / 2; bit; bit /= 2)
            of.total[i] += __shfl_xor_sync(ALL_LANES, of.total[i], bit);
    }
    leave<Unit, DIM>(sum, static_cast<Stored *>(a.y) + (v.row + p.t0) * a.ldy + int64_t(v.head) * v.dim,
                     a.ldy, v.time - p.t0, v.dim, [&](int i) { return __fdividef(1.0f, of.total[i]); });
    if (!a.saved || tile_lane() % Unit::LANES) return;
    XPH_UNROLL
    for (int i = 0; i < work::ROWS; i++) {
        const int64_t t = p.t0 + Unit::row(i);
        if (t < v.time)
            static_cast<float *>(a.saved)[(v.row + t) * a.heads + v.head] = log_of(of.base[i], of.total[i]);
    }
}

template <class Unit, class Stored, int DIM>
int forward_tile<Unit, Stored, DIM>::launch(const xph_attention_args *a, const float *stats,
                                            cudaStream_t stream)
{
    const unsigned blocks = as_grid(a->batch * a->heads * blocks_of(a->time, TILE));
    const int error = allow_shared(attention_tile<Unit, Stored, DIM>, SHARED);
    if (error) return error;
    XPH_LAUNCH((attention_tile<Unit, Stored, DIM>), dim3(blocks), dim3(TILE_THREADS), SHARED, stream, *a,
               stats);
    attention_move_ring(a, stream);
    return cudaGetLastError();
}

}  // namespace

bool attention_tile_accepts(const xph_attention_args *a, attention_unit unit)
{
    const int64_t size = a->type == XPH_BF16 ? 2 : 4, ld = attention_padded(a->dim) + 16 / size;
    return attention_tiles_fit(a, unit) && a->time > 1 && (3 * TILE * ld + TILE * 8) * size <= most_shared();
}

int attention_tile_launch(const xph_attention_args *a, attention_unit unit, cudaStream_t stream)
{
    return attention_by_unit<forward_tile>(a, unit, a, stream);
}

bool xph_attention_fix_accepts(const xph_attention_args *a)
{
    return attention_tile_accepts(a, ATTENTION_MATRICES);
}

int xph_attention_fix(const xph_attention_args *a, const float *stats, cudaStream_t stream)
{
    const fixing f = {a, stats};
    return attention_by_unit<forward_tile>(a, ATTENTION_MATRICES, &f, stream);
}
