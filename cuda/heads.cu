/* The action heads on one trunk (XPH_OP_HEADS): a warp keeps the trunk s of a row in registers, lane l its columns l, l + 32, ...,
 * and goes through the heads in order; a logit is a sum along a lane's columns, then over the lanes. Where there are many rows of
 * 128 or 256 numbers a warp has several of them, for which it reads the weights once.
 *
 * In the gradient the same warp leaves SiLU(s) of every head, and the gradient of s behind it, in scratch; the gradients of v, e
 * and bias are then sums over rows: a block has 64 columns of up to 8 logits of a head over SLICE rows, of which strand s of its
 * threads takes every STRANDS-th, and leaves its part, which fold.cuh adds up in order. The heads, a host array in args, are
 * passed with the launch.
 */
#include "fold.cuh"
#include "kernels.h"

namespace
{

constexpr int THREADS = 128, WARPS = THREADS / WARP, MOST_HEADS = 32;
constexpr int STRANDS = 8, SLICE = 512, TOGETHER = 8, SPREAD = 2; /* columns of a lane */
constexpr int64_t MANY = 2048; /* rows: warps of several leave no multiprocessor without */

struct all_heads {
    xph_head head[MOST_HEADS];
};

/* f(i, c) for every column c of the lane, its i-th. A warp of several rows has whole columns. */
template <int HELD, int ROWS, class Each> __device__ inline void each_column(int64_t width, int lane, Each f)
{
    XPH_UNROLL
    for (int i = 0; i < HELD; i++)
        if (ROWS > 1 || i * WARP + lane < width) f(i, i * WARP + lane);
}

/* Row r of the warp's; those beyond the last are the last again, and are not written. */
template <int ROWS> __device__ inline int64_t row_of(const xph_heads_args &a, int64_t first, int r)
{
    const int64_t row = first + r;
    return ROWS == 1 || row < a.rows ? row : a.rows - 1;
}
template <int ROWS> __device__ inline int64_t first_row()
{
    return (int64_t(blockIdx.x) * WARPS + threadIdx.x / WARP) * ROWS;
}

/* Whether an action takes class or bit k of a head. */
__device__ inline bool takes(const xph_head &head, int32_t action, int k)
{
    if (head.kind == EXPHIL_BERNOULLI) return static_cast<uint32_t>(action) >> k & 1u;
    return action == k;
}

/* s += the rows of e that the action of head h takes, one after the other. */
template <int HELD, int ROWS>
__device__ inline void move_on(float (&s)[HELD], const xph_heads_args &a, const xph_head &head, int64_t row,
                               int64_t h, int lane)
{
    const int32_t action = a.actions[row * a.lda + h];
    const bool bits = head.kind == EXPHIL_BERNOULLI;
    if (!bits && static_cast<uint32_t>(action) >= static_cast<uint32_t>(head.count)) return;
    for (int k = bits ? 0 : action; k < (bits ? head.count : action + 1); k++) {
        if (!takes(head, action, k)) continue;
        const float *from = floats(a.e) + (head.first + k) * a.width;
        each_column<HELD, ROWS>(a.width, lane, [&](int i, int64_t c) { s[i] += load(from + c); });
    }
}

template <class Stored, int HELD, int ROWS>
__global__ void __launch_bounds__(THREADS, 2) heads_rows(const xph_heads_args a, const all_heads heads)
{
    XPH_ENTER();
    const int lane = static_cast<int>(threadIdx.x) % WARP;
    const int64_t first = first_row<ROWS>();
    if (first >= a.rows) return;
    float s[ROWS][HELD], hidden[ROWS][HELD];
    XPH_UNROLL
    for (int r = 0; r < ROWS; r++) {
        const Stored *z = static_cast<const Stored *>(a.z) + row_of<ROWS>(a, first, r) * a.ldz;
        each_column<HELD, ROWS>(a.width, lane, [&](int i, int64_t c) {
            s[r][i] = load(z + c);
            hidden[r][i] = silu(s[r][i]);
        });
    }
    for (int h = 0; h < a.heads; h++) {
        const xph_head &head = heads.head[h];
        for (int64_t l = head.first; l < head.first + head.count; l++) {
            const float *v = floats(a.v) + l * a.width;
            float sum[ROWS] = {};
            each_column<HELD, ROWS>(a.width, lane, [&](int i, int64_t c) {
                const float x = load(v + c);
                XPH_UNROLL
                for (int r = 0; r < ROWS; r++) sum[r] = fmaf(x, hidden[r][i], sum[r]);
            });
            XPH_UNROLL
            for (int r = 0; r < ROWS; r++) {
                const int64_t row = row_of<ROWS>(a, first, r);
                sum[r] = sum_of_warp(sum[r]) + load(floats(a.bias) + l);
                if (a.base) sum[r] += load_changing(static_cast<const Stored *>(a.base) + row * a.ldbase + l);
                if (lane == 0 && row == first + r)
                    store(static_cast<Stored *>(a.y) + row * a.ldy + l, sum[r]);
            }
        }
        if (!a.e || h + 1 == a.heads) continue;
        XPH_UNROLL
        for (int r = 0; r < ROWS; r++) {
            move_on<HELD, ROWS>(s[r], a, head, row_of<ROWS>(a, first, r), h, lane);
            each_column<HELD, ROWS>(a.width, lane, [&](int i, int64_t) { hidden[r][i] = silu(s[r][i]); });
        }
    }
}

/* ---- gradient ---- */

/* In scratch, [heads or 1][rows][width] each: SiLU(s) that head h saw, and the gradient of s behind it. Independent heads
 * all see the same, and nothing lies behind. */
struct kept {
    float *hidden, *behind;
    float *part;   /* [slices][dv, de, dbias] */
    int64_t heads; /* different ones */

    __device__ int64_t at(const xph_heads_args &a, int64_t h, int64_t row) const
    {
        return ((heads > 1 ? h : 0) * a.rows + row) * a.width;
    }
};

/* What the heads of a row saw goes to scratch. */
template <class Stored, int HELD, int ROWS>
__device__ inline void keep_row(const xph_heads_args &a, const all_heads &heads, const kept &keep,
                                int64_t row, int lane)
{
    const Stored *z = static_cast<const Stored *>(a.z) + row * a.ldz;
    float s[HELD];
    each_column<HELD, ROWS>(a.width, lane, [&](int i, int64_t c) { s[i] = load(z + c); });
    for (int h = 0; h < keep.heads; h++) { /* behind holds s for now */
        const int64_t at = keep.at(a, h, row);
        each_column<HELD, ROWS>(a.width, lane, [&](int i, int64_t c) {
            keep.hidden[at + c] = silu(s[i]);
            keep.behind[at + c] = s[i];
        });
        if (h + 1 < keep.heads) move_on<HELD, ROWS>(s, a, heads.head[h], row, h, lane);
    }
}

template <class Stored, int HELD, int ROWS>
__global__ void __launch_bounds__(THREADS, 2)
    heads_back(const xph_heads_grad_args g, const all_heads heads, const kept keep)
{
    XPH_ENTER();
    const xph_heads_args &a = g.fwd;
    const int lane = static_cast<int>(threadIdx.x) % WARP;
    const int64_t first = first_row<ROWS>();
    if (first >= a.rows) return;
    float ds[ROWS][HELD];
    XPH_UNROLL
    for (int r = 0; r < ROWS; r++) {
        if (first + r < a.rows) keep_row<Stored, HELD, ROWS>(a, heads, keep, first + r, lane);
        each_column<HELD, ROWS>(a.width, lane, [&](int i, int64_t) { ds[r][i] = 0.0f; });
    }
    for (int h = static_cast<int>(a.heads) - 1; h >= 0; h--) {
        const xph_head &head = heads.head[h];
        float dhidden[ROWS][HELD];
        XPH_UNROLL
        for (int r = 0; r < ROWS; r++)
            each_column<HELD, ROWS>(a.width, lane, [&](int i, int64_t) { dhidden[r][i] = 0.0f; });
        for (int64_t l = head.first; l < head.first + head.count; l++) {
            const float *v = floats(a.v) + l * a.width;
            float d[ROWS];
            XPH_UNROLL
            for (int r = 0; r < ROWS; r++)
                d[r] = load(static_cast<const Stored *>(g.dy) + row_of<ROWS>(a, first, r) * g.lddy + l);
            each_column<HELD, ROWS>(a.width, lane, [&](int i, int64_t c) {
                const float x = load(v + c);
                XPH_UNROLL
                for (int r = 0; r < ROWS; r++) dhidden[r][i] = fmaf(d[r], x, dhidden[r][i]);
            });
        }
        XPH_UNROLL
        for (int r = 0; r < ROWS; r++) {
            if (first + r >= a.rows) continue;
            const int64_t at = keep.at(a, h, first + r);
            each_column<HELD, ROWS>(a.width, lane, [&](int i, int64_t c) {
                const float x = keep.behind[at + c];
                if (keep.heads > 1) keep.behind[at + c] = ds[r][i];
                ds[r][i] = fmaf(dhidden[r][i], silu_slope(x, sigmoid(x)), ds[r][i]);
            });
        }
    }
    XPH_UNROLL
    for (int r = 0; r < ROWS; r++) {
        if (first + r >= a.rows) continue;
        Stored *dz = static_cast<Stored *>(g.dz) + (first + r) * g.lddz;
        each_column<HELD, ROWS>(a.width, lane, [&](int i, int64_t c) { store(dz + c, ds[r][i]); });
    }
}

/* ---- sums over rows ---- */

/* Some logits of a head, from the from-th on. */
struct some_logits {
    int head, from, count;
};
__host__ __device__ inline int64_t pieces_of(const xph_head &head)
{
    return (head.count + TOGETHER - 1) / TOGETHER;
}
__device__ inline some_logits logits_of(const all_heads &heads, int64_t piece)
{
    int h = 0;
    while (piece >= pieces_of(heads.head[h])) piece -= pieces_of(heads.head[h++]);
    const int from = static_cast<int>(piece) * TOGETHER, left = heads.head[h].count - from;
    return {h, from, left < TOGETHER ? left : TOGETHER};
}

/* Bit k: the action takes the k-th of these logits. */
__device__ inline uint32_t taken_of(const xph_head &head, int32_t action, int from)
{
    if (head.kind == EXPHIL_BERNOULLI) return static_cast<uint32_t>(action) >> from;
    return action >= from && action < from + TOGETHER ? 1u << (action - from) : 0u;
}

/* What a lane adds up. */
struct sums {
    float dv[TOGETHER][SPREAD], de[TOGETHER][SPREAD], dbias[TOGETHER];
};

/* Columns c, c + 32, ... of rows first, first + STRANDS, ... before end. */
template <class Stored>
__device__ inline sums sums_of(const xph_heads_grad_args &g, const all_heads &heads, const kept &keep,
                               const some_logits &own, int64_t c, int64_t first, int64_t end)
{
    const xph_heads_args &a = g.fwd;
    const xph_head &head = heads.head[own.head];
    const bool behind = a.e && own.head + 1 < a.heads;
    const Stored *dy = static_cast<const Stored *>(g.dy) + head.first + own.from;
    sums mine = {};
    for (int64_t row = first; row < end; row += STRANDS) {
        const int64_t at = keep.at(a, own.head, row) + c;
        const uint32_t taken = behind ? taken_of(head, a.actions[row * a.lda + own.head], own.from) : 0;
        float hidden[SPREAD], next[SPREAD];
        XPH_UNROLL
        for (int i = 0; i < SPREAD; i++) {
            const bool there = c + i * WARP < a.width;
            hidden[i] = there ? keep.hidden[at + i * WARP] : 0.0f;
            next[i] = there && taken ? keep.behind[at + i * WARP] : 0.0f;
        }
        XPH_UNROLL
        for (int k = 0; k < TOGETHER; k++) {
            if (k >= own.count) break;
            const float d = load(dy + row * g.lddy + k);
            mine.dbias[k] += d;
            XPH_UNROLL
            for (int i = 0; i < SPREAD; i++) {
                mine.dv[k][i] = fmaf(d, hidden[i], mine.dv[k][i]);
                if (taken >> k & 1u) mine.de[k][i] += next[i];
            }
        }
    }
    return mine;
}

/* to = the strands in order. */
__device__ inline void fold_strands(float (&strands)[STRANDS][WARP], float mine, bool there, float *to)
{
    strands[threadIdx.y][threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.y == 0 && there) {
        float sum = strands[0][threadIdx.x];
        for (int s = 1; s < STRANDS; s++) sum += strands[s][threadIdx.x];
        *to = sum;
    }
    __syncthreads();
}

template <class Stored>
__global__ void __launch_bounds__(WARP *STRANDS)
    heads_sums(const xph_heads_grad_args g, const all_heads heads, const kept keep)
{
    XPH_ENTER();
    XPH_SHARED(float, strands, [STRANDS][WARP]);
    const xph_heads_args &a = g.fwd;
    const some_logits own = logits_of(heads, blockIdx.z);
    const int64_t c = int64_t(blockIdx.y) * WARP * SPREAD + threadIdx.x, slice = int64_t(blockIdx.x) * SLICE;
    const int64_t end = slice + SLICE < a.rows ? slice + SLICE : a.rows, numbers = a.logits * a.width;
    const sums mine = sums_of<Stored>(g, heads, keep, own, c, slice + threadIdx.y, end);
    float *part = keep.part + blockIdx.x * (2 * numbers + a.logits);
    XPH_UNROLL
    for (int k = 0; k < TOGETHER; k++) {
        const int64_t l = heads.head[own.head].first + own.from + k;
        if (k >= own.count) break;
        XPH_UNROLL
        for (int i = 0; i < SPREAD; i++) {
            const bool there = c + i * WARP < a.width;
            fold_strands(strands, mine.dv[k][i], there, part + l * a.width + c + i * WARP);
            fold_strands(strands, mine.de[k][i], there, part + numbers + l * a.width + c + i * WARP);
        }
        fold_strands(strands, mine.dbias[k], c == 0, part + 2 * numbers + l);
    }
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
    const xph_heads_args *a = &static_cast<const xph_heads_grad_args *>(args)->fwd;
    return fits<HELD>(a) && fits_across(a->logits / TOGETHER + a->heads);
}

/* Numbers of a row that a lane holds, and rows of a warp. */
template <int COLUMNS, int WITH> struct held_by_lane {
    static constexpr int held = COLUMNS, rows = WITH;
};
template <int HELD, class Work> void with_held(const xph_heads_args *a, Work work)
{
    const bool many = a->rows >= MANY;
    if (many && a->width == 4 * WARP)
        work(held_by_lane<4, 4>());
    else if (many && a->width == 8 * WARP)
        work(held_by_lane<8, 2>());
    else
        work(held_by_lane<HELD, 1>());
}

template <class Stored, int HELD, int ROWS> void forward(const xph_heads_args *a, cudaStream_t stream)
{
    const dim3 grid(as_grid(blocks_of(a->rows, WARPS * ROWS)));
    XPH_LAUNCH((heads_rows<Stored, HELD, ROWS>), grid, dim3(THREADS), 0, stream, *a, heads_of(a));
}

template <int HELD> int launch(const void *args, cudaStream_t stream)
{
    const xph_heads_args *a = static_cast<const xph_heads_args *>(args);
    if (!a->rows || !a->logits) return cudaSuccess;
    with_stored(a->type, [&](auto zero) {
        with_held<HELD>(
            a, [&](auto by) { forward<decltype(zero), decltype(by)::held, decltype(by)::rows>(a, stream); });
    });
    return cudaGetLastError();
}

int64_t slice_floats(const xph_heads_args *a)
{
    return a->logits * (2 * a->width + 1);
}

kept kept_of(const xph_heads_grad_args *g)
{
    const xph_heads_args *a = &g->fwd;
    float *scratch = static_cast<float *>(g->scratch);
    const int64_t heads = a->e ? a->heads : 1, rows = heads * a->rows * a->width;
    return {scratch, scratch + rows, scratch + 2 * rows, heads};
}

size_t grad_scratch(const void *args)
{
    const xph_heads_args *a = &static_cast<const xph_heads_grad_args *>(args)->fwd;
    const int64_t rows = 2 * (a->e || a->chained ? a->heads : 1) * a->rows * a->width;
    return static_cast<size_t>(rows + blocks_of(a->rows, SLICE) * slice_floats(a)) * sizeof(float);
}

/* Logits that are nobody's have parts of 0. */
cudaError_t clear_gaps(const xph_heads_args *a, const kept &keep, cudaStream_t stream)
{
    int64_t logits = 0;
    for (int64_t h = 0; h < a->heads; h++) logits += a->head[h].count;
    if (logits == a->logits) return cudaSuccess;
    return cudaMemsetAsync(keep.part, 0,
                           static_cast<size_t>(blocks_of(a->rows, SLICE) * slice_floats(a)) * sizeof(float),
                           stream);
}

template <class Stored> int sum_up(const xph_heads_grad_args *g, const kept &keep, cudaStream_t stream)
{
    const xph_heads_args *a = &g->fwd;
    const int64_t slices = blocks_of(a->rows, SLICE), numbers = a->logits * a->width;
    fold_targets targets = fold_target(static_cast<float *>(g->dv), numbers);
    int64_t pieces = 0;
    for (int64_t h = 0; h < a->heads; h++) pieces += pieces_of(a->head[h]);
    const dim3 grid(as_grid(slices), as_grid(blocks_of(a->width, WARP * SPREAD)), as_grid(pieces));
    const cudaError_t code = clear_gaps(a, keep, stream);
    if (code) return code;
    fold_more(&targets, a->e ? g->de : nullptr, numbers);
    fold_more(&targets, g->dbias, a->logits);
    XPH_LAUNCH((heads_sums<Stored>), grid, dim3(WARP, STRANDS), 0, stream, *g, heads_of(a), keep);
    fold_to(keep.part, targets, slices, stream);
    return cudaGetLastError();
}

template <class Stored, int HELD, int ROWS> int back(const xph_heads_grad_args *g, cudaStream_t stream)
{
    const dim3 grid(as_grid(blocks_of(g->fwd.rows, WARPS * ROWS)));
    const kept keep = kept_of(g);
    XPH_LAUNCH((heads_back<Stored, HELD, ROWS>), grid, dim3(THREADS), 0, stream, *g, heads_of(&g->fwd), keep);
    return sum_up<Stored>(g, keep, stream);
}

template <int HELD> int grad_launch(const void *args, cudaStream_t stream)
{
    const xph_heads_grad_args *g = static_cast<const xph_heads_grad_args *>(args);
    int code = cudaSuccess;
    if (!g->fwd.rows || !g->fwd.logits || !g->fwd.width) return cudaSuccess;
    with_stored(g->fwd.type, [&](auto zero) {
        with_held<HELD>(&g->fwd, [&](auto by) {
            code = back<decltype(zero), decltype(by)::held, decltype(by)::rows>(g, stream);
        });
    });
    return code;
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
