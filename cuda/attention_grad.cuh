/* What the kernels of attention's gradient share: their scratch, and y.dy.
 *
 * Scratch: y.dy [B*T][A] (along), then what tiles leave of dbias [B][tiles][A][window].
 */
#ifndef XPH_CUDA_ATTENTION_GRAD_CUH
#define XPH_CUDA_ATTENTION_GRAD_CUH

#include "attention.cuh"

struct grad_layout {
    int64_t tiles, part, total; /* part: where dbias of the tiles begins */
};
__host__ __device__ inline grad_layout grad_layout_of(const xph_attention_args *a)
{
    grad_layout at;
    at.tiles = blocks_of(a->time, TILE);
    at.part = a->batch * a->time * a->heads;
    at.total = at.part + a->batch * at.tiles * a->heads * a->window;
    return at;
}

/* What a block knows of its gradient. */
struct back_view {
    head_view v;
    const float
        *saved; /* of the stream's first frame and the head; along likewise: frames lie `heads` apart */
    float *along, *dbias;
};
__device__ inline back_view back_of(const xph_attention_grad_args &g, const tile_place &p)
{
    const grad_layout at = grad_layout_of(&g.fwd);
    back_view b;
    b.v = view_of(g.fwd, p.stream, p.head);
    b.saved = static_cast<const float *>(g.fwd.saved) + b.v.row * g.fwd.heads + p.head;
    b.along = static_cast<float *>(g.scratch) + b.v.row * g.fwd.heads + p.head;
    b.dbias = static_cast<float *>(g.scratch) + at.part +
              ((p.stream * at.tiles + p.tile) * g.fwd.heads + p.head) * g.fwd.window;
    return b;
}

template <class Stored>
__device__ inline const Stored *dy_at(const xph_attention_grad_args &g, const head_view &v, int t)
{
    return static_cast<const Stored *>(g.dy) + (v.row + t) * g.lddy + int64_t(v.head) * v.dim;
}
template <class Stored>
__device__ inline Stored *dq_at(const xph_attention_grad_args &g, const head_view &v, int t)
{
    return static_cast<Stored *>(g.dqkv) + (v.row + t) * g.lddqkv + int64_t(v.head) * v.dim;
}

/* y.dy of frame t in the 16 lanes that ask for it; frames beyond the chunk give 0. */
template <class Stored>
__device__ inline float along_of(const xph_attention_grad_args &g, const head_view &v, int t, int lane)
{
    float s = 0.0f;
    if (t < v.time) {
        const Stored *y =
            static_cast<const Stored *>(g.fwd.y) + (v.row + t) * g.fwd.ldy + int64_t(v.head) * v.dim;
        const Stored *dy = dy_at<Stored>(g, v, t);
        for (int d = lane; d < v.dim; d += CLASSES) s = fmaf(load(y + d), load(dy + d), s);
    }
    return sum_of_classes(s);
}

/* Adds up what the tiles have left. */
void attention_fold_bias(const xph_attention_grad_args *g, cudaStream_t stream);

#endif
