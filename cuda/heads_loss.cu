/* The action heads in training (XPH_OP_HEADS_LOSS): logits, loss and every gradient in one pass over the rows, products by
 * matrix units on floats of 10 bits of fraction (mma.cuh).
 *
 * A block takes ROWS rows. Their trunk s stays in shared memory, and so do the logits, which become their own gradients. Head
 * after head a warp makes the logits of 16 rows from part of the columns. On the way back a warp has 16 columns of all rows:
 *   dhidden = V dlogits, transposed, so that a lane has columns g and g + 8 of rows 2 t and 2 t + 1: what it makes of them,
 *   SiLU(s) and the gradient of s, lies in its registers as the products for dv and de want it, whose inner dimension are the
 *   rows in any order.
 * Every block leaves its part of the gradients of weights and of the sums; heads_fold adds the parts in order. A block whose
 * mask is 0 everywhere does nothing but leave zeros.
 */
#include "kernels.h"
#include "loss.cuh"
#include "mma.cuh"

namespace
{

constexpr int THREADS = 512, WARPS = THREADS / WARP, BAND = 16, COLUMNS = 16, WHOLE = 64;
constexpr int MOST_COUNT = 32, MOST_WIDTH = COLUMNS * WARPS, STRANDS = 32;

/* Where a head's logits lie in the tile: from `at` on, in `tiles` of 8, of which the last may be longer than the head. */
struct place_of_head {
    int32_t at, tiles;
};
struct fused {
    xph_heads_grad_args g;
    heads_of_loss heads;
    place_of_head place[MOST_LOSS_HEADS];
    const float *mask;
    const xph_given *given;
    xph_control *control;
    double scale;
    float *part;          /* [blocks][part_floats] */
    double *loss;         /* [blocks][heads] */
    int32_t padded, most; /* columns of the tile of logits; of a head at most */
    int32_t width;        /* of s in shared memory: whole 64 columns */
};

/* A block's part: dv, de [L, R], dbias [L], columns of dz [R]. */
__host__ __device__ inline int64_t part_floats(int64_t logits, int64_t width)
{
    return (2 * logits + 1) * width + logits;
}

/* Rows of shared memory, in floats: four more than whole 32, or 8, so that the lanes of a product find them in different
 * banks. */
struct view {
    float *s, *v, *d, *mask;
    int32_t *actions;
    double *loss;
    int ld, ldd;
};
template <int ROWS> __host__ __device__ inline size_t shared_bytes(int width, int most, int padded, int heads)
{
    const size_t floats =
        size_t(ROWS + most) * static_cast<size_t>(width + 4) + size_t(ROWS) * static_cast<size_t>(padded + 4);
    return floats * sizeof(float) + ROWS * sizeof(float) * (1 + static_cast<size_t>(heads)) +
           ROWS * sizeof(double) * static_cast<size_t>(heads);
}
template <int ROWS> __device__ inline view view_of(const fused &a, unsigned char *shared)
{
    view w;
    const int heads = static_cast<int>(a.g.fwd.heads);
    w.ld = a.width + 4;
    w.ldd = a.padded + 4;
    w.loss = reinterpret_cast<double *>(shared);
    w.s = reinterpret_cast<float *>(w.loss + ROWS * heads);
    w.v = w.s + ROWS * w.ld;
    w.d = w.v + a.most * w.ld;
    w.mask = w.d + ROWS * w.ldd;
    w.actions = reinterpret_cast<int32_t *>(w.mask + ROWS);
    return w;
}

__device__ inline int lane_of()
{
    return static_cast<int>(threadIdx.x) % WARP;
}
__device__ inline int warp_of()
{
    return static_cast<int>(threadIdx.x) / WARP;
}
__device__ inline const float *floats(const void *of)
{
    return static_cast<const float *>(of);
}

/* ---- filling ---- */

/* Rows beyond the last one count as masked. Whether any row counts: the same in every warp. */
template <int ROWS>
__device__ inline bool take_actions(const fused &a, const view &w, int64_t first, int rows)
{
    const xph_heads_args &h = a.g.fwd;
    const int heads = static_cast<int>(h.heads);
    bool any = false;
    for (int r = lane_of(); r < ROWS; r += WARP) {
        const float m = r >= rows ? 0.0f : a.mask ? load(a.mask + first + r) : 1.0f;
        if (warp_of() == 0) w.mask[r] = m;
        any = any || m != 0.0f;
    }
    for (int i = static_cast<int>(threadIdx.x); i < ROWS * heads; i += THREADS)
        w.actions[i] = i / heads < rows ? h.actions[(first + i / heads) * h.lda + i % heads] : -1;
    return __any_sync(ALL_LANES, any);
}

template <class Stored, int ROWS>
__device__ inline void take_trunk(const fused &a, const view &w, int64_t first, int rows)
{
    const int width = static_cast<int>(a.g.fwd.width);
    const Stored *z = static_cast<const Stored *>(a.g.fwd.z);
    for (int r = warp_of(); r < ROWS; r += WARPS) {
        const bool counts = r < rows && w.mask[r] != 0.0f; /* others may hold anything */
        for (int c = lane_of(); c < a.width; c += WARP)
            w.s[r * w.ld + c] = counts && c < width ? load(z + (first + r) * a.g.fwd.ldz + c) : 0.0f;
    }
}

/* Rows of v of a head, as the units take them, to whole tiles. */
__device__ inline void take_weights(const fused &a, const view &w, int h)
{
    const int width = static_cast<int>(a.g.fwd.width), count = a.heads.head[h].count;
    const float *v = floats(a.g.fwd.v) + int64_t(a.heads.head[h].first) * width;
    for (int k = warp_of(); k < 8 * a.place[h].tiles; k += WARPS)
        for (int c = lane_of(); c < a.width; c += WARP)
            w.v[k * w.ld + c] = k < count && c < width ? to_tf32(load(v + k * width + c)) : 0.0f;
}

/* s += sign times the rows of e that the actions take. */
template <int ROWS> __device__ inline void move_on(const fused &a, const view &w, int h, float sign)
{
    const int width = static_cast<int>(a.g.fwd.width), heads = static_cast<int>(a.g.fwd.heads);
    const head_of_loss &head = a.heads.head[h];
    const float *e = floats(a.g.fwd.e) + int64_t(head.first) * width;
    const bool bits = head.kind == EXPHIL_BERNOULLI;
    for (int r = warp_of(); r < ROWS; r += WARPS) {
        const uint32_t action = static_cast<uint32_t>(w.actions[r * heads + h]);
        const uint32_t count = static_cast<uint32_t>(head.count);
        if (w.mask[r] == 0.0f || (!bits && action >= count)) continue;
        for (uint32_t k = bits ? 0 : action; k < (bits ? count : action + 1); k++) {
            if (bits && !(action >> k & 1u)) continue;
            for (int c = lane_of(); c < width; c += WARP)
                w.s[r * w.ld + c] =
                    fmaf(sign, load(e + k * static_cast<uint32_t>(width) + c), w.s[r * w.ld + c]);
        }
    }
}

/* ---- logits ---- */

/* d[rows of the warp][logits of h] = SiLU(s) v^T along the warp's share of the columns, TILES tiles of logits. */
template <int ROWS, int TILES> __device__ inline void add_logits(const fused &a, const view &w, int h)
{
    constexpr int BANDS = ROWS / BAND, SHARES = WARPS / BANDS;
    const int g = lane_of() / 4, t = lane_of() % 4, share = warp_of() / BANDS;
    const int row = warp_of() % BANDS * BAND + g, columns = a.width / SHARES, begin = share * columns;
    float sum[TILES][4];
    XPH_UNROLL
    for (int j = 0; j < TILES; j++) sum[j][0] = sum[j][1] = sum[j][2] = sum[j][3] = 0.0f;
    const float *s = w.s + row * w.ld + begin + t, *v = w.v + g * w.ld + begin + t;
    for (int k = 0; k < columns; k += 8) {
        const unsigned x[4] = {
            __float_as_uint(to_tf32(silu(s[k]))), __float_as_uint(to_tf32(silu(s[k + 8 * w.ld]))),
            __float_as_uint(to_tf32(silu(s[k + 4]))), __float_as_uint(to_tf32(silu(s[k + 4 + 8 * w.ld])))};
        XPH_UNROLL
        for (int j = 0; j < TILES; j++)
            mma_tf32(sum[j][0], sum[j][1], sum[j][2], sum[j][3], x, __float_as_uint(v[8 * j * w.ld + k]),
                     __float_as_uint(v[8 * j * w.ld + k + 4]));
    }
    float *d = w.d + row * w.ldd + a.place[h].at + 2 * t;
    for (int turn = 0; turn < SHARES; turn++) {
        if (turn) __syncthreads();
        if (turn != share) continue;
        XPH_UNROLL
        for (int j = 0; j < TILES; j++) XPH_UNROLL
        for (int i = 0; i < 4; i++) {
            float *to = d + 8 * j + i / 2 * 8 * w.ldd + i % 2;
            *to = turn ? *to + sum[j][i] : sum[j][i];
        }
    }
}

template <int ROWS> __device__ inline void logits_of(const fused &a, const view &w, int h)
{
    const int tiles = a.place[h].tiles;
    if (tiles == 1) add_logits<ROWS, 1>(a, w, h);
    if (tiles == 2) add_logits<ROWS, 2>(a, w, h);
    if (tiles == 3) add_logits<ROWS, 3>(a, w, h);
    if (tiles == 4) add_logits<ROWS, 4>(a, w, h);
}

/* ---- loss ---- */

/* A thread per row and head: bias and base, then the loss; the logits become their gradients. */
template <class Stored, int ROWS>
__device__ inline void losses_of(const fused &a, const view &w, int64_t first, int rows)
{
    const xph_heads_args &f = a.g.fwd;
    const int heads = static_cast<int>(f.heads);
    const double scale = a.given ? a.given->scale * a.control->loss_scale : a.scale;
    for (int i = static_cast<int>(threadIdx.x); i < ROWS * heads; i += THREADS) {
        const int r = i % ROWS, h = i / ROWS;
        const head_of_loss &head = a.heads.head[h];
        float *x = w.d + r * w.ldd + a.place[h].at;
        const Stored *base = f.base && r < rows
                                 ? static_cast<const Stored *>(f.base) + (first + r) * f.ldbase + head.first
                                 : nullptr;
        for (int k = 0; k < head.count; k++) {
            x[k] += load(floats(f.bias) + head.first + k);
            if (base) x[k] += load(base + k);
        }
        const double mask = static_cast<double>(w.mask[r]);
        loss_job<float, 1> j;
        j.x = x;
        j.dx = x;
        j.action = w.actions[r * heads + h];
        j.factor = static_cast<float>(scale * mask * head.weight);
        j.counts = mask != 0.0;
        j.lane = 0;
        w.loss[h * ROWS + r] = loss_of_head(j, head, a.heads.positive, mask);
    }
}

/* What the block has of the losses and of dbias; dlogits go to memory, and are rounded for the products. */
template <class Stored, int ROWS>
__device__ inline void leave_logits(const fused &a, const view &w, float *part, int64_t first, int rows)
{
    const xph_heads_args &f = a.g.fwd;
    const int heads = static_cast<int>(f.heads), thread = static_cast<int>(threadIdx.x);
    if (thread < heads) {
        double sum = 0.0;
        for (int r = 0; r < ROWS; r++) sum += w.loss[thread * ROWS + r];
        a.loss[blockIdx.x * static_cast<unsigned>(heads) + static_cast<unsigned>(thread)] = sum;
    }
    for (int h = warp_of(); h < heads; h += WARPS) {
        const head_of_loss &head = a.heads.head[h];
        if (lane_of() >= head.count) continue;
        float sum = 0.0f;
        for (int r = 0; r < ROWS; r++) sum += w.d[r * w.ldd + a.place[h].at + lane_of()];
        part[2 * f.logits * f.width + head.first + lane_of()] = sum;
    }
    __syncthreads();
    for (int i = warp_of(); i < ROWS * heads; i += WARPS) {
        const int r = i % ROWS, h = i / ROWS;
        const head_of_loss &head = a.heads.head[h];
        float *x = w.d + r * w.ldd + a.place[h].at + lane_of();
        if (lane_of() >= head.count) continue;
        if (a.g.dy && r < rows)
            store(static_cast<Stored *>(const_cast<void *>(a.g.dy)) + (first + r) * a.g.lddy + head.first +
                      lane_of(),
                  *x);
        *x = to_tf32(*x);
    }
}

/* ---- gradients ---- */

/* 16 columns by TILES of logits, into rows of a [L,R] part. c[0], c[1]: column g of logits 2 t, 2 t + 1. */
template <int TILES> struct weight_sums {
    float c[TILES][4];

    __device__ void clear()
    {
        XPH_UNROLL
        for (int i = 0; i < TILES * 4; i++) c[i / 4][i % 4] = 0.0f;
    }
    __device__ void add(int j, const unsigned (&a)[4], unsigned b0, unsigned b1)
    {
        mma_tf32(c[j][0], c[j][1], c[j][2], c[j][3], a, b0, b1);
    }
    __device__ void leave(float *to, int count, int width, int column) const
    {
        const int t = lane_of() % 4;
        XPH_UNROLL
        for (int i = 0; i < TILES * 4; i++) {
            const int k = i / 4 * 8 + 2 * t + i % 2, at = column + i % 4 / 2 * 8;
            if (k < count && at < width) to[k * width + at] = c[i / 4][i % 4];
        }
    }
};

/* The gradient of s of ROWS rows by 16 columns, as products give it. */
template <int ROWS> struct trunk_grad {
    float c[ROWS / 8][4];
};

/* Four numbers of such a product as the first operand of the next: its inner dimension are the rows. */
__device__ inline void turn_over(unsigned (&to)[4], const float (&from)[4])
{
    XPH_UNROLL
    for (int i = 0; i < 4; i++) to[i % 2 * 2 + i / 2] = __float_as_uint(to_tf32(from[i]));
}

/* de of a head: which rows took a choice, times the gradient behind. */
template <int ROWS, int TILES>
__device__ inline void choices_back(const fused &a, const view &w, const trunk_grad<ROWS> &ds, int h,
                                    float *part)
{
    const head_of_loss &head = a.heads.head[h];
    const int g = lane_of() / 4, t = lane_of() % 4, heads = static_cast<int>(a.g.fwd.heads);
    const int width = static_cast<int>(a.g.fwd.width);
    const bool bits = head.kind == EXPHIL_BERNOULLI;
    weight_sums<TILES> sum;
    sum.clear();
    XPH_UNROLL
    for (int n = 0; n < ROWS / 8; n++) {
        const int32_t *action = w.actions + (8 * n + 2 * t) * heads + h;
        unsigned x[4];
        turn_over(x, ds.c[n]);
        XPH_UNROLL
        for (int j = 0; j < TILES; j++) {
            unsigned taken[2];
            const int k = 8 * j + g;
            XPH_UNROLL
            for (int i = 0; i < 2; i++) {
                const int32_t done = action[i * heads];
                const bool takes = bits ? (static_cast<uint32_t>(done) >> k & 1u) != 0 : done == k;
                taken[i] = takes ? 0x3f800000u : 0u; /* 1.0 */
            }
            sum.add(j, x, taken[0], taken[1]);
        }
    }
    sum.leave(part + (a.g.fwd.logits + head.first) * width, head.count, width, warp_of() * COLUMNS + g);
}

/* ds += dhidden times the slope at s; dv on the way. */
template <int ROWS, int TILES>
__device__ inline void head_back(const fused &a, const view &w, trunk_grad<ROWS> *ds, int h, float *part)
{
    const head_of_loss &head = a.heads.head[h];
    const int g = lane_of() / 4, t = lane_of() % 4, column = warp_of() * COLUMNS + g;
    const int width = static_cast<int>(a.g.fwd.width);
    unsigned v[TILES][4]; /* v transposed */
    XPH_UNROLL
    for (int i = 0; i < TILES * 4; i++)
        v[i / 4][i % 4] = __float_as_uint(w.v[(i / 4 * 8 + t + i % 4 / 2 * 4) * w.ld + column + i % 2 * 8]);
    weight_sums<TILES> sum;
    sum.clear();
    XPH_UNROLL
    for (int n = 0; n < ROWS / 8; n++) {
        const float *d = w.d + (8 * n + g) * w.ldd + a.place[h].at + t;
        const float *across = w.d + (8 * n + 2 * t) * w.ldd + a.place[h].at + g;
        const float *s = w.s + (8 * n + 2 * t) * w.ld + column;
        float dhidden[4] = {0.0f, 0.0f, 0.0f, 0.0f}, hidden[4];
        XPH_UNROLL
        for (int j = 0; j < TILES; j++)
            mma_tf32(dhidden[0], dhidden[1], dhidden[2], dhidden[3], v[j], __float_as_uint(d[8 * j]),
                     __float_as_uint(d[8 * j + 4]));
        XPH_UNROLL
        for (int i = 0; i < 4; i++) {
            const float x = s[i % 2 * w.ld + i / 2 * 8], half = sigmoid(x);
            hidden[i] = x * half;
            ds->c[n][i] = fmaf(dhidden[i], silu_slope(x, half), ds->c[n][i]);
        }
        unsigned turned[4];
        turn_over(turned, hidden);
        XPH_UNROLL
        for (int j = 0; j < TILES; j++)
            sum.add(j, turned, __float_as_uint(across[8 * j]), __float_as_uint(across[8 * j + w.ldd]));
    }
    sum.leave(part + int64_t(head.first) * width, head.count, width, column);
}

template <int ROWS, int TILES>
__device__ inline void back_by(const fused &a, const view &w, trunk_grad<ROWS> *ds, int h, float *part,
                               bool behind)
{
    if (behind) choices_back<ROWS, TILES>(a, w, *ds, h, part);
    head_back<ROWS, TILES>(a, w, ds, h, part);
}

/* The warps that have columns go through one head. */
template <int ROWS>
__device__ inline void back_of(const fused &a, const view &w, trunk_grad<ROWS> *ds, int h, float *part,
                               bool behind)
{
    const int tiles = a.place[h].tiles;
    if (warp_of() * COLUMNS >= a.width) return;
    if (tiles == 1) back_by<ROWS, 1>(a, w, ds, h, part, behind);
    if (tiles == 2) back_by<ROWS, 2>(a, w, ds, h, part, behind);
    if (tiles == 3) back_by<ROWS, 3>(a, w, ds, h, part, behind);
    if (tiles == 4) back_by<ROWS, 4>(a, w, ds, h, part, behind);
}

/* The gradient of s through shared memory, so that rows are written along memory; then its columns. */
template <class Stored, int ROWS>
__device__ inline void leave_trunk(const fused &a, const view &w, const trunk_grad<ROWS> &ds, float *part,
                                   int64_t first, int rows)
{
    const int g = lane_of() / 4, t = lane_of() % 4, width = static_cast<int>(a.g.fwd.width);
    if (warp_of() * COLUMNS < a.width) {
        XPH_UNROLL
        for (int n = 0; n < ROWS / 8; n++) XPH_UNROLL
        for (int i = 0; i < 4; i++)
            w.s[(8 * n + 2 * t + i % 2) * w.ld + warp_of() * COLUMNS + g + i / 2 * 8] = ds.c[n][i];
    }
    __syncthreads();
    Stored *dz = static_cast<Stored *>(a.g.dz);
    for (int r = warp_of(); r < rows; r += WARPS)
        for (int c = lane_of(); c < width; c += WARP)
            store(dz + (first + r) * a.g.lddz + c, w.s[r * w.ld + c]);
    if (static_cast<int>(threadIdx.x) >= width) return;
    float sum = 0.0f;
    for (int r = 0; r < ROWS; r++) sum += w.s[r * w.ld + static_cast<int>(threadIdx.x)];
    part[(2 * width + 1) * a.g.fwd.logits + threadIdx.x] = sum;
}

template <class Stored>
__device__ inline void leave_nothing(const fused &a, float *part, int64_t first, int rows)
{
    const xph_heads_args &f = a.g.fwd;
    const int thread = static_cast<int>(threadIdx.x);
    for (int64_t i = thread; i < part_floats(f.logits, f.width); i += THREADS) part[i] = 0.0f;
    if (thread < f.heads) a.loss[blockIdx.x * f.heads + thread] = 0.0;
    for (int r = warp_of(); r < rows; r += WARPS) {
        for (int64_t c = lane_of(); c < f.width; c += WARP)
            store(static_cast<Stored *>(a.g.dz) + (first + r) * a.g.lddz + c, 0.0f);
        for (int64_t c = lane_of(); a.g.dy && c < f.logits; c += WARP)
            store(static_cast<Stored *>(const_cast<void *>(a.g.dy)) + (first + r) * a.g.lddy + c, 0.0f);
    }
}

template <class Stored, int ROWS> __global__ void __launch_bounds__(THREADS, 1) heads_loss(const fused a)
{
    XPH_ENTER();
    XPH_SHARED_DYNAMIC(unsigned char, shared);
    const view w = view_of<ROWS>(a, shared);
    const int heads = static_cast<int>(a.g.fwd.heads);
    const int64_t first = int64_t(blockIdx.x) * ROWS, left = a.g.fwd.rows - first;
    const int rows = static_cast<int>(left < ROWS ? left : ROWS);
    float *part = a.part + blockIdx.x * part_floats(a.g.fwd.logits, a.g.fwd.width);
    const bool chained = a.g.fwd.e != nullptr;
    if (!take_actions<ROWS>(a, w, first, rows)) {
        leave_nothing<Stored>(a, part, first, rows);
        return;
    }
    __syncthreads();
    take_trunk<Stored, ROWS>(a, w, first, rows);
    for (int h = 0; h < heads; h++) {
        take_weights(a, w, h);
        __syncthreads();
        logits_of<ROWS>(a, w, h);
        __syncthreads();
        if (!chained || h + 1 == heads) continue;
        move_on<ROWS>(a, w, h, 1.0f);
    }
    losses_of<Stored, ROWS>(a, w, first, rows);
    __syncthreads();
    leave_logits<Stored, ROWS>(a, w, part, first, rows);
    trunk_grad<ROWS> ds;
    XPH_UNROLL
    for (int i = 0; i < ROWS / 2; i++) ds.c[i / 4][i % 4] = 0.0f;
    for (int h = heads - 1; h >= 0; h--) {
        const bool behind = chained && h + 1 < heads;
        if (h + 1 < heads) take_weights(a, w, h);
        if (behind) move_on<ROWS>(a, w, h, -1.0f);
        __syncthreads();
        back_of<ROWS>(a, w, &ds, h, part, behind);
        __syncthreads();
    }
    leave_trunk<Stored, ROWS>(a, w, ds, part, first, rows);
}

/* ---- the parts of all blocks ---- */

/* Whether blocks leave something for a logit: it belongs to one of the first `heads` heads. */
__device__ inline bool is_left(const fused &a, int64_t logit, int64_t heads)
{
    for (int64_t h = 0; h < heads; h++)
        if (logit >= a.heads.head[h].first && logit < a.heads.head[h].first + a.heads.head[h].count)
            return true;
    return false;
}

/* Where number i of a part goes; NULL: nowhere. Nothing is behind the last head. */
__device__ inline float *place_of(const fused &a, int64_t i)
{
    const xph_heads_args &f = a.g.fwd;
    const int64_t weights = f.logits * f.width;
    if (i < weights) return is_left(a, i / f.width, f.heads) ? static_cast<float *>(a.g.dv) + i : nullptr;
    i -= weights;
    if (i < weights)
        return f.e && is_left(a, i / f.width, f.heads - 1) ? static_cast<float *>(a.g.de) + i : nullptr;
    i -= weights;
    if (i < f.logits) return is_left(a, i, f.heads) ? static_cast<float *>(a.g.dbias) + i : nullptr;
    return a.g.dz_sum ? static_cast<float *>(a.g.dz_sum) + (i - f.logits) : nullptr;
}

/* 32 numbers a block, strand s takes the parts s, s + 32, ..., then the strands in order. The last block adds up the losses: a
 * warp per head, its lanes as strands. */
template <class Unused = void>
__global__ void __launch_bounds__(WARP *STRANDS, 1) heads_fold(const fused a, int64_t parts, double *sums)
{
    XPH_ENTER();
    XPH_SHARED(float, strands, [STRANDS][WARP]);
    const int64_t count = part_floats(a.g.fwd.logits, a.g.fwd.width),
                  i = int64_t(blockIdx.x) * WARP + threadIdx.x;
    if (blockIdx.x + 1 == gridDim.x) {
        const int64_t heads = a.g.fwd.heads;
        if (threadIdx.y >= heads) return;
        double sum = 0.0;
        for (int64_t p = threadIdx.x; p < parts; p += WARP) sum += a.loss[p * heads + threadIdx.y];
        sum = sum_of_warp(sum);
        if (threadIdx.x) return;
        sums[threadIdx.y] = sum;
        if (a.given) a.control->head[threadIdx.y] += sum * a.given->scale;
        return;
    }
    float *to = i < count ? place_of(a, i) : nullptr;
    float sum = 0.0f;
    for (int64_t p = threadIdx.y; to && p < parts; p += STRANDS) sum += a.part[p * count + i];
    strands[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || !to) return;
    sum = 0.0f;
    for (int s = 0; s < STRANDS; s++) sum += strands[s][threadIdx.x];
    *to += sum;
}

/* ---- candidates ---- */

/* What a launch needs; false: a head has more logits than a tile takes. loss may be NULL: it is not known to query. */
bool fused_of(const xph_heads_loss_args *args, fused *to)
{
    const xph_heads_args *f = &args->grad.fwd;
    if (f->heads > MOST_LOSS_HEADS || f->width > MOST_WIDTH) return false;
    to->g = args->grad;
    to->width = static_cast<int32_t>(blocks_of(f->width, WHOLE) * WHOLE);
    for (int64_t h = 0; h < f->heads; h++) {
        const xph_head *head = &f->head[h];
        if (head->count > MOST_COUNT) return false;
        const int32_t tiles = (head->count + 7) / 8;
        to->place[h] = {to->padded, tiles};
        to->padded += 8 * tiles;
        if (8 * tiles > to->most) to->most = 8 * tiles;
        to->heads.head[h] = {head->kind, head->count, static_cast<int32_t>(head->first), -1, 0.0f, 0.0f, 1.0};
    }
    return !args->loss || heads_of(args->loss, &to->heads);
}

template <int ROWS> bool accepts(const void *given)
{
    const xph_heads_loss_args *args = static_cast<const xph_heads_loss_args *>(given);
    const xph_heads_args *f = &args->grad.fwd;
    fused a = {};
    int device, most = 0;
    if (args->math != XPH_MATH_TF32 || !is_stored(f->type) || !f->heads || !f->width ||
        f->rows >= int64_t(1) << 31)
        return false;
    if (!fused_of(args, &a) || cudaGetDevice(&device)) return false;
    if (cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device)) return false;
    return shared_bytes<ROWS>(a.width, a.most, a.padded, static_cast<int>(f->heads)) <=
           static_cast<size_t>(most);
}

template <int ROWS> size_t scratch(const void *given)
{
    const xph_heads_args *f = &static_cast<const xph_heads_loss_args *>(given)->grad.fwd;
    const size_t blocks = static_cast<size_t>(blocks_of(f->rows, ROWS));
    return blocks * (static_cast<size_t>(f->heads) * sizeof(double) +
                     static_cast<size_t>(part_floats(f->logits, f->width)) * sizeof(float));
}

template <class Stored, int ROWS>
int launch_as(const fused &a, int64_t blocks, double *sums, cudaStream_t stream)
{
    const size_t bytes = shared_bytes<ROWS>(a.width, a.most, a.padded, static_cast<int>(a.g.fwd.heads));
    const cudaError_t code = cudaFuncSetAttribute(
        heads_loss<Stored, ROWS>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    if (code) return code;
    XPH_LAUNCH((heads_loss<Stored, ROWS>), dim3(as_grid(blocks)), dim3(THREADS), bytes, stream, a);
    const int64_t columns = blocks_of(part_floats(a.g.fwd.logits, a.g.fwd.width), WARP);
    XPH_LAUNCH((heads_fold<>), dim3(as_grid(columns + 1)), dim3(WARP, STRANDS), 0, stream, a, blocks, sums);
    return cudaGetLastError();
}

template <int ROWS> int launch(const void *given, cudaStream_t stream)
{
    const xph_heads_loss_args *args = static_cast<const xph_heads_loss_args *>(given);
    fused a = {};
    int code = cudaSuccess;
    if (!fused_of(args, &a)) return XPH_CUDA_REFUSED;
    const int64_t blocks = blocks_of(args->grad.fwd.rows, ROWS);
    a.mask = args->loss->mask;
    a.given = args->loss->given;
    a.control = args->loss->control;
    a.scale = args->loss->scale;
    a.loss = static_cast<double *>(args->grad.scratch);
    a.part = reinterpret_cast<float *>(a.loss + blocks * args->grad.fwd.heads);
    with_stored(args->grad.fwd.type, [&](auto zero) {
        code = launch_as<decltype(zero), ROWS>(a, blocks, args->loss->sums, stream);
    });
    return code;
}

}  // namespace

const xph_cuda_candidate xph_cuda_heads_loss[] = {
    {"heads_loss_64", accepts<64>, scratch<64>, launch<64>},
    {"heads_loss_32", accepts<32>, scratch<32>, launch<32>},
    {nullptr, nullptr, nullptr, nullptr},
};
