/* The action heads in training (XPH_OP_HEADS_LOSS), products by matrix units on floats of 10 bits of fraction (heads_tile.cuh): in
 * one pass over the rows logits, loss and every gradient; or the logits alone, and later every gradient, where somebody else
 * makes that of the logits.
 *
 * A block takes ROWS rows and leaves its part of the gradients of weights and of the sums; heads_fold adds the parts in order. A
 * block in which no row counts does nothing but leave zeros.
 */
#include "heads_tile.cuh"

namespace
{

constexpr int STRANDS = 32;

template <class Stored, int ROWS, int GROUPS>
__global__ void __launch_bounds__(THREADS, 1) heads_loss(const fused a)
{
    XPH_ENTER();
    XPH_SHARED_DYNAMIC(unsigned char, shared);
    const view w = view_of<ROWS>(a, shared);
    if (!take_actions<ROWS>(a, w)) {
        leave_nothing<Stored, ROWS>(a);
        return;
    }
    __syncthreads();
    take_trunk<Stored, ROWS>(a, w);
    all_logits<ROWS>(a, w);
    losses_of<Stored, ROWS>(a, w);
    __syncthreads();
    leave_logits<Stored, ROWS>(a, w);
    all_back<Stored, ROWS, GROUPS>(a, w);
}

/* The logits alone. */
template <class Stored, int ROWS> __global__ void __launch_bounds__(THREADS, 1) heads_logits(const fused a)
{
    XPH_ENTER();
    XPH_SHARED_DYNAMIC(unsigned char, shared);
    const view w = view_of<ROWS>(a, shared);
    take_actions<ROWS>(a, w);
    __syncthreads();
    take_trunk<Stored, ROWS>(a, w);
    all_logits<ROWS>(a, w);
    write_logits<Stored, ROWS>(a, w);
}

/* All gradients, of those of the logits. */
template <class Stored, int ROWS, int GROUPS>
__global__ void __launch_bounds__(THREADS, 1) heads_given(const fused a)
{
    XPH_ENTER();
    XPH_SHARED_DYNAMIC(unsigned char, shared);
    const view w = view_of<ROWS>(a, shared);
    take_actions<ROWS>(a, w);
    __syncthreads();
    take_given<ROWS>(a, w);
    __syncthreads();
    if (!counts_any<ROWS>(w)) {
        leave_nothing<Stored, ROWS>(a);
        return;
    }
    take_trunk<Stored, ROWS>(a, w);
    for (int p = 0; p < a.pieces; p++)
        if (moves_behind(a, p)) move_on<ROWS>(a, w, a.piece[p].head, 1.0f);
    leave_logits<Stored, ROWS>(a, w);
    all_back<Stored, ROWS, GROUPS>(a, w);
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
        const int64_t heads = sums ? a.g.fwd.heads : 0;
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

bool has_losses(const xph_heads_loss_args *args)
{
    return args->part == XPH_HEADS_ALL;
}

/* Appends the pieces of a head; false: there are too many. */
bool take_head(fused *to, int32_t h, const xph_head *head)
{
    if (head->first > INT32_MAX) return false;
    to->at[h] = to->padded;
    to->heads.head[h] = {head->kind, head->count, static_cast<int32_t>(head->first), -1, 0.0f, 0.0f, 1.0};
    for (int32_t from = 0; from < head->count; from += PIECE) {
        const int32_t left = head->count - from, tiles = (left < PIECE ? left + 7 : PIECE) / 8;
        if (to->pieces == MOST_PIECES) return false;
        to->piece[to->pieces++] = {h, from, to->padded, tiles};
        to->padded += 8 * tiles;
        if (8 * tiles > to->most) to->most = 8 * tiles;
    }
    return true;
}

/* What a launch needs; false: there are too many heads, logits or weights of losses. loss may be NULL: it is not known to
 * query. */
bool fused_of(const xph_heads_loss_args *args, fused *to)
{
    const xph_heads_args *f = &args->grad.fwd;
    if (f->heads > MOST_LOSS_HEADS) return false;
    to->g = args->grad;
    to->width = static_cast<int32_t>(blocks_of(f->width, WHOLE) * WHOLE);
    for (int32_t h = 0; h < f->heads; h++)
        if (!take_head(to, h, &f->head[h])) return false;
    return !args->loss || heads_of(args->loss, &to->heads);
}

template <int ROWS> size_t shared_of(const fused &a)
{
    return shared_bytes<ROWS>(a.width, a.most, a.padded, static_cast<int>(a.g.fwd.heads));
}

template <int ROWS, int GROUPS> bool accepts(const void *given)
{
    const xph_heads_loss_args *args = static_cast<const xph_heads_loss_args *>(given);
    const xph_heads_args *f = &args->grad.fwd;
    fused a = {};
    if (args->math != XPH_MATH_TF32 || !is_stored(f->type) || !f->heads || !f->width ||
        f->width > GROUPS * GROUP_WIDTH || f->rows >= int64_t(1) << 31)
        return false;
    return fused_of(args, &a) && shared_of<ROWS>(a) <= static_cast<size_t>(xph_most_shared());
}

template <int ROWS> size_t scratch(const void *given)
{
    const xph_heads_loss_args *args = static_cast<const xph_heads_loss_args *>(given);
    const xph_heads_args *f = &args->grad.fwd;
    const size_t blocks = static_cast<size_t>(blocks_of(f->rows, ROWS));
    const size_t losses = has_losses(args) ? static_cast<size_t>(f->heads) * sizeof(double) : 0;
    if (args->part == XPH_HEADS_LOGITS) return 0;
    return blocks * (losses + static_cast<size_t>(part_floats(f->logits, f->width)) * sizeof(float));
}

template <class Stored, int ROWS> int give_logits(const fused &a, const dim3 &blocks, cudaStream_t stream)
{
    const cudaError_t code = xph_allow_shared(heads_logits<Stored, ROWS>);
    if (code || !blocks.x) return code;
    XPH_LAUNCH((heads_logits<Stored, ROWS>), blocks, dim3(THREADS), shared_of<ROWS>(a), stream, a);
    return cudaGetLastError();
}

template <class Stored, int ROWS, int GROUPS>
int give_gradients(const fused &a, const dim3 &blocks, double *sums, cudaStream_t stream)
{
    const cudaError_t code =
        xph_allow_shared(sums ? heads_loss<Stored, ROWS, GROUPS> : heads_given<Stored, ROWS, GROUPS>);
    const int64_t columns =
        blocks.x ? part_floats(a.g.fwd.logits, a.g.fwd.width) : 0; /* of no rows the losses alone */
    const dim3 numbers(as_grid(blocks_of(columns, WARP) + 1));
    const dim3 threads(THREADS);
    const size_t bytes = shared_of<ROWS>(a);
    if (code) return code;
    if (blocks.x && sums)
        XPH_LAUNCH((heads_loss<Stored, ROWS, GROUPS>), blocks, threads, bytes, stream, a);
    else if (blocks.x)
        XPH_LAUNCH((heads_given<Stored, ROWS, GROUPS>), blocks, threads, bytes, stream, a);
    XPH_LAUNCH((heads_fold<>), numbers, dim3(WARP, STRANDS), 0, stream, a, int64_t(blocks.x), sums);
    return cudaGetLastError();
}

/* Where parts and losses lie in scratch, and what the loss says. */
void take_places(const xph_heads_loss_args *args, int64_t blocks, fused *a)
{
    a->part = static_cast<float *>(args->grad.scratch);
    if (!has_losses(args)) return;
    a->mask = args->loss->mask;
    a->given = args->loss->given;
    a->control = args->loss->control;
    a->scale = args->loss->scale;
    a->left = const_cast<void *>(args->grad.dy); /* in GIVEN the same argument is only read */
    a->loss = static_cast<double *>(args->grad.scratch);
    a->part = reinterpret_cast<float *>(a->loss + blocks * args->grad.fwd.heads);
}

template <int ROWS, int GROUPS> int launch(const void *given, cudaStream_t stream)
{
    const xph_heads_loss_args *args = static_cast<const xph_heads_loss_args *>(given);
    const int64_t blocks = blocks_of(args->grad.fwd.rows, ROWS);
    fused a = {};
    int code = cudaSuccess;
    if (!fused_of(args, &a)) return XPH_CUDA_REFUSED;
    take_places(args, blocks, &a);
    const dim3 grid(as_grid(blocks));
    with_stored(args->grad.fwd.type, [&](auto zero) {
        using Stored = decltype(zero);
        if (args->part == XPH_HEADS_LOGITS)
            code = give_logits<Stored, ROWS>(a, grid, stream);
        else
            code = give_gradients<Stored, ROWS, GROUPS>(
                a, grid, has_losses(args) ? args->loss->sums : nullptr, stream);
    });
    return code;
}

}  // namespace

const xph_cuda_candidate xph_cuda_heads_loss[] = {
    {"heads_loss_64", accepts<64, 1>, scratch<64>, launch<64, 1>},
    {"heads_loss_32", accepts<32, 1>, scratch<32>, launch<32, 1>},
    {"heads_loss_wide", accepts<32, 2>, scratch<32>, launch<32, 2>},
    {nullptr, nullptr, nullptr, nullptr},
};
