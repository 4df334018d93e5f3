/* What forward (rnn.cu) and backward (rnn_grad.cu) of LSTM and GRU share: sizes, loads into shared memory,
 * the order of sums. Kernels know the kind by its number of gates: 4 an LSTM, 3 a GRU.
 *
 * A product with recurrent weights is summed in strands: of S strands number s takes the inner numbers k with
 * k / 4 % S = s, in order, by fused multiply-adds from 0; then strands are added whose numbers differ in the
 * highest bit, in the next lower one, and so on. A strand is a group of neighbouring lanes.
 */
#ifndef XPH_CUDA_RNN_CUH
#define XPH_CUDA_RNN_CUH

#include "fold.cuh"
#include "kernels.h"

constexpr int RNN_THREADS = 256, LSTM = 4, GRU = 3, QUAD = 4;

inline int64_t round_up(int64_t count, int64_t to)
{
    return blocks_of(count, to) * to;
}
inline int64_t gates_of(const xph_rnn_args *a)
{
    return (a->kind == XPH_RNN_LSTM ? LSTM : GRU) * a->hidden;
}
/* h, and c of an LSTM behind it. */
inline int64_t state_width(const xph_rnn_args *a)
{
    return (a->kind == XPH_RNN_LSTM ? 2 : 1) * a->hidden;
}
inline bool is_rnn(const xph_rnn_args *a)
{
    return (a->kind == XPH_RNN_LSTM || a->kind == XPH_RNN_GRU) && a->hidden <= 8192 &&
           a->batch < int64_t(1) << 20 && (!a->input.rows || a->input_product);
}
inline bool rnn_fits(const xph_rnn_args *a)
{
    return is_stored(a->type) && !a->weights && is_rnn(a);
}

/* Whether rows of `count` numbers, ld apart, are read four numbers at a time. */
inline bool in_quads(const void *at, int64_t ld, int64_t count)
{
    return reinterpret_cast<uintptr_t>(at) % sizeof(float4) == 0 && ld % QUAD == 0 && count % QUAD == 0;
}

/* Four numbers from from[k] on, zeros from `count` on. */
__device__ inline float4 quad_of(const float *from, int k, int count, bool quads)
{
    if (quads && k + QUAD <= count) return *reinterpret_cast<const float4 *>(from + k);
    return {k < count ? from[k] : 0.0f, k + 1 < count ? from[k + 1] : 0.0f,
            k + 2 < count ? from[k + 2] : 0.0f, k + 3 < count ? from[k + 3] : 0.0f};
}

/* A thread's share of ROWS rows, DEPTH numbers of each at a time, on their way into shared memory, where they are
 * LD quads apart. */
template <int ROWS, int DEPTH, int LD> struct share {
    static constexpr int QUADS = DEPTH / QUAD, STEP = RNN_THREADS / QUADS;
    static constexpr int COUNT = (ROWS + STEP - 1) / STEP;
    static_assert(RNN_THREADS % QUADS == 0, "a thread has the same quad of all its rows");
    const float *row[COUNT];
    float4 held[COUNT];
    int first, quad; /* row and quad */

    /* row_of(r): where row r begins, which is read for any r below ROWS. */
    template <class Row> __device__ explicit share(Row row_of)
    {
        first = static_cast<int>(threadIdx.x) / QUADS;
        quad = static_cast<int>(threadIdx.x) % QUADS;
        XPH_UNROLL
        for (int i = 0; i < COUNT; i++) {
            const int r = first + i * STEP;
            row[i] = row_of(r < ROWS ? r : first % ROWS);
        }
    }
    /* Numbers from k on, zeros from `count` on. */
    __device__ void take(int k, int count, bool quads)
    {
        k += quad * QUAD;
        XPH_UNROLL
        for (int i = 0; i < COUNT; i++) held[i] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (!quads) {
            XPH_UNROLL
            for (int i = 0; i < COUNT; i++) held[i] = quad_of(row[i], k, count, false);
        } else if (k + QUAD <= count) {
            XPH_UNROLL
            for (int i = 0; i < COUNT; i++) held[i] = *reinterpret_cast<const float4 *>(row[i] + k);
        }
    }
    __device__ void put(float4 (*to)[LD]) const
    {
        XPH_UNROLL
        for (int i = 0; i < COUNT; i++)
            if (ROWS % STEP == 0 || first + i * STEP < ROWS) to[first + i * STEP][quad] = held[i];
    }
};

__device__ inline float add_quad(const float4 &a, const float4 &b, float sum)
{
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

__device__ inline bool is_fresh(const xph_rnn_args &a, int64_t stream, int64_t t)
{
    return a.reset && a.reset[stream * a.time + t];
}

/* Frames by matrix units (rnn_tensor.cu); ready: the weights are there, and lie so that they can be read. */
bool rnn_tensor_fits(const xph_rnn_args *a);
bool rnn_tensor_ready(const xph_rnn_args *a);
size_t rnn_tensor_scratch(const xph_rnn_args *a);
int rnn_tensor_frames(const xph_rnn_args *a, cudaStream_t stream);

/* All frames in one launch by clusters (rnn_cluster.cu), with the bits of those; an error, or XPH_CUDA_NO_ROOM. */
bool rnn_cluster_fits(const xph_rnn_args *a);
bool rnn_cluster_ready(const xph_rnn_args *a);
int rnn_cluster_run(const xph_rnn_args *a, cudaStream_t stream);

/* All frames in one launch (rnn_stay.cu), where the device has enough shared memory. */
bool rnn_stay_fits(const xph_rnn_args *a);
int rnn_stay_run(const xph_rnn_args *a, cudaStream_t stream);

#endif
