/* Blocks of rows of the action heads on matrix units (heads_loss.cu).
 *
 * The trunk s of ROWS rows stays in shared memory, and so do the logits, which become their own gradients. A head of more than 32
 * logits is taken in pieces of 32: they see the same s, so that each adds its share of the gradient of s. Piece after piece a
 * warp makes the logits of 16 rows from part of the columns. On the way back a warp has 16 columns of all rows, GROUPS times:
 *   dhidden = V dlogits, transposed, so that a lane has columns g and g + 8 of rows 2 t and 2 t + 1: what it makes of them,
 *   SiLU(s) and the gradient of s, lies in its registers as the products for dv and de want it, whose inner dimension are the
 *   rows in any order.
 */
#ifndef XPH_CUDA_HEADS_TILE_CUH
#define XPH_CUDA_HEADS_TILE_CUH

#include "kernels.h"
#include "loss.cuh"
#include "mma.cuh"

namespace
{

constexpr int THREADS = 512, WARPS = THREADS / WARP, BAND = 16, COLUMNS = 16, WHOLE = 64;
constexpr int PIECE = 32, MOST_PIECES = 64, GROUP_WIDTH = COLUMNS * WARPS;

/* Logits `from` on of a head, at most PIECE, and where they lie in the tile: from `at` on, in `tiles` of 8, of which the last may
 * be longer than the head. */
struct piece_of_head {
    int32_t head, from, at, tiles;
};
struct fused {
    xph_heads_grad_args g;
    heads_of_loss heads;
    piece_of_head piece[MOST_PIECES];
    int32_t at[MOST_LOSS_HEADS]; /* where the logits of a head begin in the tile */
    const float *mask;
    const xph_given *given;
    xph_control *control;
    double scale;
    float *part;                  /* [blocks][part_floats] */
    double *loss;                 /* [blocks][heads], or NULL */
    void *left;                   /* where gradients of logits go, or NULL */
    int32_t pieces, padded, most; /* columns of the tile of logits; of a piece at most */
    int32_t width;                /* of s in shared memory: whole 64 columns */
};
static_assert(sizeof(fused) <= 4000, "a launch takes 4096 bytes of arguments");

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

/* The rows of a block, and its part; made anew where they are used, so that no register keeps them. */
struct span {
    int64_t first;
    int rows;
};
template <int ROWS> __device__ inline span span_of(const fused &a)
{
    const int64_t first = int64_t(blockIdx.x) * ROWS, left = a.g.fwd.rows - first;
    return {first, static_cast<int>(left < ROWS ? left : ROWS)};
}
__device__ inline float *part_of(const fused &a)
{
    return a.part + blockIdx.x * part_floats(a.g.fwd.logits, a.g.fwd.width);
}

/* ---- filling ---- */

/* Rows beyond the last one count as masked. Whether any row counts: the same in every warp. */
template <int ROWS> __device__ inline bool take_actions(const fused &a, const view &w)
{
    const span own = span_of<ROWS>(a);
    const xph_heads_args &h = a.g.fwd;
    const int heads = static_cast<int>(h.heads);
    bool any = false;
    for (int r = lane_of(); r < ROWS; r += WARP) {
        const float m = r >= own.rows ? 0.0f : a.mask ? load(a.mask + own.first + r) : 1.0f;
        if (warp_of() == 0) w.mask[r] = m;
        any = any || m != 0.0f;
    }
    for (int i = static_cast<int>(threadIdx.x); i < ROWS * heads; i += THREADS)
        w.actions[i] =
            h.actions && i / heads < own.rows ? h.actions[(own.first + i / heads) * h.lda + i % heads] : -1;
    return __any_sync(ALL_LANES, any);
}

/* Gradients of logits that are given; a row where all are 0 counts as masked. */
template <int ROWS> __device__ inline void take_given(const fused &a, const view &w)
{
    const span own = span_of<ROWS>(a);
    for (int r = warp_of(); r < ROWS; r += WARPS) {
        const float *dy = floats(a.g.dy) + (own.first + r) * a.g.lddy;
        bool any = false;
        for (int p = 0; p < a.pieces; p++) {
            const piece_of_head &piece = a.piece[p];
            const head_of_loss &head = a.heads.head[piece.head];
            const int k = piece.from + lane_of();
            if (lane_of() >= 8 * piece.tiles) continue;
            const float d = r < own.rows && k < head.count ? load(dy + head.first + k) : 0.0f;
            any = any || d != 0.0f;
            w.d[r * w.ldd + piece.at + lane_of()] = d;
        }
        any = __any_sync(ALL_LANES, any);
        if (lane_of() == 0) w.mask[r] = any ? 1.0f : 0.0f;
    }
}
template <int ROWS> __device__ inline bool counts_any(const view &w)
{
    bool any = false;
    for (int r = lane_of(); r < ROWS; r += WARP) any = any || w.mask[r] != 0.0f;
    return __any_sync(ALL_LANES, any);
}

template <class Stored, int ROWS> __device__ inline void take_trunk(const fused &a, const view &w)
{
    const span own = span_of<ROWS>(a);
    const int width = static_cast<int>(a.g.fwd.width);
    const Stored *z = static_cast<const Stored *>(a.g.fwd.z);
    for (int r = warp_of(); r < ROWS; r += WARPS) {
        const bool counts = r < own.rows && w.mask[r] != 0.0f; /* others may hold anything */
        for (int c = lane_of(); c < a.width; c += WARP)
            w.s[r * w.ld + c] = counts && c < width ? load(z + (own.first + r) * a.g.fwd.ldz + c) : 0.0f;
    }
}

/* Of the logits of a piece: the first, and how many there are up to the end of its head. */
__device__ inline int first_of(const fused &a, const piece_of_head &piece)
{
    return a.heads.head[piece.head].first + piece.from;
}
__device__ inline int count_of(const fused &a, const piece_of_head &piece)
{
    return a.heads.head[piece.head].count - piece.from;
}

/* Rows of v of a piece, as the units take them, to whole tiles. */
__device__ inline void take_weights(const fused &a, const view &w, const piece_of_head &piece)
{
    const int width = static_cast<int>(a.g.fwd.width), count = count_of(a, piece);
    const float *v = floats(a.g.fwd.v) + int64_t(first_of(a, piece)) * width;
    for (int k = warp_of(); k < 8 * piece.tiles; k += WARPS)
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

/* d[rows of the warp][logits at `at`] = SiLU(s) v^T along the warp's share of the columns, TILES tiles of logits. */
template <int ROWS, int TILES> __device__ inline void add_logits(const fused &a, const view &w, int at)
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
    float *d = w.d + row * w.ldd + at + 2 * t;
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

template <int ROWS>
__device__ inline void logits_of(const fused &a, const view &w, const piece_of_head &piece)
{
    if (piece.tiles == 1) add_logits<ROWS, 1>(a, w, piece.at);
    if (piece.tiles == 2) add_logits<ROWS, 2>(a, w, piece.at);
    if (piece.tiles == 3) add_logits<ROWS, 3>(a, w, piece.at);
    if (piece.tiles == 4) add_logits<ROWS, 4>(a, w, piece.at);
}

/* Whether a head before the last ends with this piece, and s moves on behind it. */
__device__ inline bool moves_behind(const fused &a, int p)
{
    return a.g.fwd.e && p + 1 < a.pieces && a.piece[p + 1].head != a.piece[p].head;
}

/* The logits of all heads but for bias and base; s is then that of the last. */
template <int ROWS> __device__ inline void all_logits(const fused &a, const view &w)
{
    for (int p = 0; p < a.pieces; p++) {
        take_weights(a, w, a.piece[p]);
        __syncthreads();
        logits_of<ROWS>(a, w, a.piece[p]);
        __syncthreads();
        if (moves_behind(a, p)) move_on<ROWS>(a, w, a.piece[p].head, 1.0f);
    }
}

/* What logit k of a head starts from, in a row of base that may be NULL. */
template <class Stored>
__device__ inline const Stored *base_of(const fused &a, const head_of_loss &head, int64_t row)
{
    const xph_heads_args &f = a.g.fwd;
    return f.base ? static_cast<const Stored *>(f.base) + row * f.ldbase + head.first : nullptr;
}
template <class Stored>
__device__ inline float whole_logit(const fused &a, const head_of_loss &head, const Stored *base, int k,
                                    float x)
{
    x += load(floats(a.g.fwd.bias) + head.first + k);
    return base ? x + load(base + k) : x;
}

/* Logits are all that is wanted. */
template <class Stored, int ROWS> __device__ inline void write_logits(const fused &a, const view &w)
{
    const span own = span_of<ROWS>(a);
    const xph_heads_args &f = a.g.fwd;
    const int heads = static_cast<int>(f.heads);
    for (int i = warp_of(); i < ROWS * heads; i += WARPS) {
        const int r = i % ROWS, h = i / ROWS;
        const head_of_loss &head = a.heads.head[h];
        if (r >= own.rows) continue;
        const Stored *base = base_of<Stored>(a, head, own.first + r);
        float *y = static_cast<float *>(f.y) + (own.first + r) * f.ldy + head.first;
        for (int k = lane_of(); k < head.count; k += WARP)
            y[k] = whole_logit(a, head, base, k, w.d[r * w.ldd + a.at[h] + k]);
    }
}

/* ---- loss ---- */

/* A thread per row and head: bias and base, then the loss; the logits become their gradients. */
template <class Stored, int ROWS> __device__ inline void losses_of(const fused &a, const view &w)
{
    const span own = span_of<ROWS>(a);
    const int heads = static_cast<int>(a.g.fwd.heads);
    const double scale = a.given ? a.given->scale * a.control->loss_scale : a.scale;
    for (int i = static_cast<int>(threadIdx.x); i < ROWS * heads; i += THREADS) {
        const int r = i % ROWS, h = i / ROWS;
        const head_of_loss &head = a.heads.head[h];
        float *x = w.d + r * w.ldd + a.at[h];
        const Stored *base = r < own.rows ? base_of<Stored>(a, head, own.first + r) : nullptr;
        for (int k = 0; k < head.count; k++) x[k] = whole_logit(a, head, base, k, x[k]);
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
template <class Stored, int ROWS> __device__ inline void leave_logits(const fused &a, const view &w)
{
    const span own = span_of<ROWS>(a);
    const xph_heads_args &f = a.g.fwd;
    const int heads = static_cast<int>(f.heads), thread = static_cast<int>(threadIdx.x);
    if (a.loss && thread < heads) {
        double sum = 0.0;
        for (int r = 0; r < ROWS; r++) sum += w.loss[thread * ROWS + r];
        a.loss[blockIdx.x * static_cast<unsigned>(heads) + static_cast<unsigned>(thread)] = sum;
    }
    for (int p = warp_of(); p < a.pieces; p += WARPS) {
        const piece_of_head &piece = a.piece[p];
        if (lane_of() >= count_of(a, piece)) continue;
        float sum = 0.0f;
        for (int r = 0; r < ROWS; r++) sum += w.d[r * w.ldd + piece.at + lane_of()];
        part_of(a)[2 * f.logits * f.width + first_of(a, piece) + lane_of()] = sum;
    }
    __syncthreads();
    for (int i = warp_of(); i < ROWS * a.pieces; i += WARPS) {
        const int r = i % ROWS;
        const piece_of_head &piece = a.piece[i / ROWS];
        float *x = w.d + r * w.ldd + piece.at + lane_of();
        if (lane_of() >= count_of(a, piece)) continue;
        if (a.left && r < own.rows)
            store(static_cast<Stored *>(a.left) + (own.first + r) * a.g.lddy + first_of(a, piece) + lane_of(),
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

/* de of a piece, for 16 columns from `column` on: which rows took a choice, times the gradient behind the head. */
template <int ROWS, int TILES>
__device__ inline void choices_back(const fused &a, const view &w, const trunk_grad<ROWS> &ds,
                                    const piece_of_head &piece, int column)
{
    const int g = lane_of() / 4, t = lane_of() % 4, heads = static_cast<int>(a.g.fwd.heads);
    const int width = static_cast<int>(a.g.fwd.width);
    const bool bits = a.heads.head[piece.head].kind == EXPHIL_BERNOULLI;
    weight_sums<TILES> sum;
    sum.clear();
    XPH_UNROLL
    for (int n = 0; n < ROWS / 8; n++) {
        const int32_t *action = w.actions + (8 * n + 2 * t) * heads + piece.head;
        unsigned x[4];
        turn_over(x, ds.c[n]);
        XPH_UNROLL
        for (int j = 0; j < TILES; j++) {
            unsigned taken[2];
            const int k = piece.from + 8 * j + g;
            XPH_UNROLL
            for (int i = 0; i < 2; i++) {
                const int32_t done = action[i * heads];
                const bool takes = bits ? (static_cast<uint32_t>(done) >> k & 1u) != 0 : done == k;
                taken[i] = takes ? 0x3f800000u : 0u; /* 1.0 */
            }
            sum.add(j, x, taken[0], taken[1]);
        }
    }
    sum.leave(part_of(a) + (static_cast<int>(a.g.fwd.logits) + first_of(a, piece)) * width,
              count_of(a, piece), width, column + g);
}

/* ds += dhidden times the slope at s; dv on the way. */
template <int ROWS, int TILES>
__device__ inline void piece_back(const fused &a, const view &w, trunk_grad<ROWS> *ds,
                                  const piece_of_head &piece, int first)
{
    const int g = lane_of() / 4, t = lane_of() % 4, column = first + g;
    const int width = static_cast<int>(a.g.fwd.width);
    unsigned v[TILES][4]; /* v transposed */
    XPH_UNROLL
    for (int i = 0; i < TILES * 4; i++)
        v[i / 4][i % 4] = __float_as_uint(w.v[(i / 4 * 8 + t + i % 4 / 2 * 4) * w.ld + column + i % 2 * 8]);
    weight_sums<TILES> sum;
    sum.clear();
    XPH_UNROLL
    for (int n = 0; n < ROWS / 8; n++) {
        const float *d = w.d + (8 * n + g) * w.ldd + piece.at + t;
        const float *across = w.d + (8 * n + 2 * t) * w.ldd + piece.at + g;
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
    sum.leave(part_of(a) + first_of(a, piece) * width, count_of(a, piece), width, column);
}

template <int ROWS>
__device__ inline void choices_of(const fused &a, const view &w, const trunk_grad<ROWS> &ds,
                                  const piece_of_head &piece, int column)
{
    if (piece.tiles == 1) choices_back<ROWS, 1>(a, w, ds, piece, column);
    if (piece.tiles == 2) choices_back<ROWS, 2>(a, w, ds, piece, column);
    if (piece.tiles == 3) choices_back<ROWS, 3>(a, w, ds, piece, column);
    if (piece.tiles == 4) choices_back<ROWS, 4>(a, w, ds, piece, column);
}
template <int ROWS>
__device__ inline void back_of(const fused &a, const view &w, trunk_grad<ROWS> *ds,
                               const piece_of_head &piece, int column)
{
    if (piece.tiles == 1) piece_back<ROWS, 1>(a, w, ds, piece, column);
    if (piece.tiles == 2) piece_back<ROWS, 2>(a, w, ds, piece, column);
    if (piece.tiles == 3) piece_back<ROWS, 3>(a, w, ds, piece, column);
    if (piece.tiles == 4) piece_back<ROWS, 4>(a, w, ds, piece, column);
}

/* The first of the warp's columns in a group. */
__device__ inline int column_of(int group)
{
    return group * GROUP_WIDTH + warp_of() * COLUMNS;
}

/* Piece p by the warps that have columns. The rows of e that a head takes want the gradient of s before any piece of it adds
 * to that. */
template <int ROWS, int GROUPS>
__device__ inline void go_through(const fused &a, const view &w, trunk_grad<ROWS> (&ds)[GROUPS], int p)
{
    const piece_of_head piece = a.piece[p];
    const int first = moves_behind(a, p) ? p - piece.from / PIECE : p + 1;
    XPH_UNROLL
    for (int group = 0; group < GROUPS; group++) {
        const int column = column_of(group);
        if (column >= a.width) return;
        for (int q = first; q <= p; q++) choices_of<ROWS>(a, w, ds[group], a.piece[q], column);
        back_of<ROWS>(a, w, &ds[group], piece, column);
    }
}

/* The gradient of s through shared memory, so that rows are written along memory; then its columns. */
template <class Stored, int ROWS, int GROUPS>
__device__ inline void leave_trunk(const fused &a, const view &w, const trunk_grad<ROWS> (&ds)[GROUPS])
{
    const span own = span_of<ROWS>(a);
    const int g = lane_of() / 4, t = lane_of() % 4, width = static_cast<int>(a.g.fwd.width);
    XPH_UNROLL
    for (int group = 0; group < GROUPS; group++) {
        float *s = w.s + 2 * t * w.ld + column_of(group) + g;
        if (column_of(group) >= a.width) continue;
        XPH_UNROLL
        for (int n = 0; n < ROWS / 8; n++) XPH_UNROLL
        for (int i = 0; i < 4; i++) s[(8 * n + i % 2) * w.ld + i / 2 * 8] = ds[group].c[n][i];
    }
    __syncthreads();
    Stored *dz = static_cast<Stored *>(a.g.dz);
    for (int r = warp_of(); r < own.rows; r += WARPS)
        for (int c = lane_of(); c < width; c += WARP)
            store(dz + (own.first + r) * a.g.lddz + c, w.s[r * w.ld + c]);
    if (static_cast<int>(threadIdx.x) >= width) return;
    float sum = 0.0f;
    for (int r = 0; r < ROWS; r++) sum += w.s[r * w.ld + static_cast<int>(threadIdx.x)];
    part_of(a)[(2 * width + 1) * a.g.fwd.logits + threadIdx.x] = sum;
}

/* From the gradients of the logits to all others. */
template <class Stored, int ROWS, int GROUPS> __device__ inline void all_back(const fused &a, const view &w)
{
    trunk_grad<ROWS> ds[GROUPS];
    XPH_UNROLL
    for (int i = 0; i < GROUPS * ROWS / 2; i++) ds[i / (ROWS / 2)].c[i % (ROWS / 2) / 4][i % 4] = 0.0f;
    for (int p = a.pieces - 1; p >= 0; p--) {
        take_weights(a, w, a.piece[p]);
        if (moves_behind(a, p)) move_on<ROWS>(a, w, a.piece[p].head, -1.0f);
        __syncthreads();
        go_through<ROWS, GROUPS>(a, w, ds, p);
        __syncthreads();
    }
    leave_trunk<Stored, ROWS, GROUPS>(a, w, ds);
}

/* A block in which no row counts. */
template <class Stored, int ROWS> __device__ inline void leave_nothing(const fused &a)
{
    const span own = span_of<ROWS>(a);
    const xph_heads_args &f = a.g.fwd;
    const int thread = static_cast<int>(threadIdx.x);
    for (int64_t i = thread; i < part_floats(f.logits, f.width); i += THREADS) part_of(a)[i] = 0.0f;
    if (a.loss && thread < f.heads) a.loss[blockIdx.x * f.heads + thread] = 0.0;
    for (int r = warp_of(); r < own.rows; r += WARPS) {
        for (int64_t c = lane_of(); c < f.width; c += WARP)
            store(static_cast<Stored *>(a.g.dz) + (own.first + r) * a.g.lddz + c, 0.0f);
        for (int64_t c = lane_of(); a.left && c < f.logits; c += WARP)
            store(static_cast<Stored *>(a.left) + (own.first + r) * a.g.lddy + c, 0.0f);
    }
}

}  // namespace

#endif
