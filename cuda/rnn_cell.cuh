/* A frame of LSTM and GRU forward without the product: inputs, the gates of a unit, outputs. For kernels that
 * each compute the product in their own way. */
#ifndef XPH_CUDA_RNN_CELL_CUH
#define XPH_CUDA_RNN_CELL_CUH

#include "rnn.cuh"

#include <math.h>

struct frame {
    xph_rnn_args a;
    int64_t t;
    const float *before; /* h | c of every stream, or NULL: zeros */
    float *after;        /* or NULL */
    int64_t ld_before, ld_after;
    bool quads_before, quads_w;
};

template <int G> struct cell {
    float gx[G], h, c; /* input parts, the state before */
    float saved[G + 1];
    bool fresh; /* nothing was before */

    /* gate: bias + W h */
    __device__ void step(const float (&gate)[G])
    {
        if constexpr (G == LSTM) {
            const float i = sigmoid(gx[0] + gate[0]), f = sigmoid(gx[1] + gate[1]);
            const float g = tanhf(gx[2] + gate[2]), o = sigmoid(gx[3] + gate[3]);
            c = fmaf(f, c, i * g);
            h = o * tanhf(c);
            saved[0] = i;
            saved[1] = f;
            saved[2] = g;
            saved[3] = o;
            saved[4] = c;
        } else {
            const float r = sigmoid(gx[0] + gate[0]), z = sigmoid(gx[1] + gate[1]);
            const float n = tanhf(fmaf(r, gate[2], gx[2]));
            h = fmaf(z, h - n, n);
            saved[0] = r;
            saved[1] = z;
            saved[2] = n;
            saved[3] = gate[2];
        }
    }
};

template <class Stored, int G>
__device__ inline cell<G> cell_before(const frame &f, int64_t stream, int64_t unit)
{
    const xph_rnn_args &a = f.a;
    cell<G> to;
    const Stored *gx = static_cast<const Stored *>(a.gx) + (stream * a.time + f.t) * a.ldgx + unit;
    to.fresh = !f.before || is_fresh(a, stream, f.t);
    XPH_UNROLL
    for (int g = 0; g < G; g++) to.gx[g] = load(gx + g * a.hidden);
    to.h = to.c = 0.0f;
    if (to.fresh) return to;
    const float *state = f.before + stream * f.ld_before + unit;
    if (G == GRU) to.h = state[0];
    if (G == LSTM) to.c = state[a.hidden];
    return to;
}

template <class Stored, int G>
__device__ inline void cell_after(const frame &f, int64_t stream, int64_t unit, const cell<G> &from)
{
    const xph_rnn_args &a = f.a;
    const int64_t row = stream * a.time + f.t;
    store(static_cast<Stored *>(a.y) + row * a.ldy + unit, from.h);
    if (f.after) {
        float *state = f.after + stream * f.ld_after + unit;
        state[0] = from.h;
        if (G == LSTM) state[a.hidden] = from.c;
    }
    if (!a.saved) return;
    float *saved = static_cast<float *>(a.saved) + row * (G + 1) * a.hidden + unit;
    XPH_UNROLL
    for (int g = 0; g < G + 1; g++) saved[g * a.hidden] = from.saved[g];
}

/* State from one place to another; zeros from nowhere, and for streams that a reset begins with. */
template <class Unused = void>
__global__ void __launch_bounds__(RNN_THREADS)
    rnn_carry(const xph_rnn_args a, float *to, int64_t ld, int64_t width, bool resets)
{
    XPH_ENTER();
    const int64_t i = int64_t(blockIdx.x) * RNN_THREADS + threadIdx.x, stream = i / width, at = i % width;
    if (stream >= a.batch) return;
    const float *from = static_cast<const float *>(a.state_in);
    const bool none = !from || (resets && is_fresh(a, stream, 0));
    to[stream * ld + at] = none ? 0.0f : from[stream * a.ld_state + at];
}

inline void carry(const xph_rnn_args *a, float *to, int64_t ld, bool resets, cudaStream_t stream)
{
    const int64_t width = state_width(a);
    const dim3 grid(as_grid(blocks_of(a->batch * width, RNN_THREADS)));
    XPH_LAUNCH((rnn_carry<>), grid, dim3(RNN_THREADS), 0, stream, *a, to, ld, width, resets);
}

#endif
