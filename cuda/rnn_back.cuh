/* What the kernels of LSTM and GRU backward share, whichever way they multiply (rnn_grad.cu, rnn_cluster_grad.cu): the gates of
 * a unit, what is left of a frame, scratch.
 */
#ifndef XPH_CUDA_RNN_BACK_CUH
#define XPH_CUDA_RNN_BACK_CUH

#include "rnn.cuh"

#include <math.h>

namespace rnn_back
{

/* ---- cells ---- */

/* One unit of one stream at frame t, as it was forward. */
template <int G> struct cell {
    float saved[G + 1], dy, h, c; /* h, c: before */
    bool fresh;
};

template <class Stored, int G>
__device__ inline cell<G> cell_of(const xph_rnn_grad_args &of, int64_t t, int64_t stream, int64_t unit)
{
    const xph_rnn_args &a = of.fwd;
    const int64_t row = stream * a.time + t;
    const float *saved = static_cast<const float *>(a.saved) + row * (G + 1) * a.hidden + unit;
    cell<G> to;
    XPH_UNROLL
    for (int g = 0; g < G + 1; g++) to.saved[g] = load(saved + g * a.hidden);
    to.dy = load(static_cast<const Stored *>(of.dy) + row * of.lddy + unit);
    to.fresh = is_fresh(a, stream, t);
    to.h = to.c = 0.0f;
    if (to.fresh) return to;
    if (t > 0) {
        to.h = load(static_cast<const Stored *>(a.y) + (row - 1) * a.ldy + unit);
        if (G == LSTM) to.c = load(saved - a.hidden); /* the last of the frame before */
    } else if (a.state_in) {
        const float *state = static_cast<const float *>(a.state_in) + stream * a.ld_state + unit;
        to.h = load(state);
        if (G == LSTM) to.c = load(state + a.hidden);
    } else {
        to.fresh = true;
    }
    return to;
}

/* Gradients of the gates: whole, and what of them is W's; dh comes in, and dc of an LSTM, which goes on. */
template <int G> struct gates {
    float whole[G], recurrent[G], aside;
};

template <int G> __device__ inline gates<G> back(const cell<G> &v, float dh, float dc)
{
    gates<G> d;
    dh += v.dy;
    if constexpr (G == LSTM) {
        const float i = v.saved[0], f = v.saved[1], g = v.saved[2], o = v.saved[3],
                    tanh_c = tanhf(v.saved[4]);
        dc = fmaf(dh * o, fmaf(-tanh_c, tanh_c, 1.0f), dc);
        d.whole[0] = dc * g * i * (1.0f - i);
        d.whole[1] = v.fresh ? 0.0f : dc * v.c * f * (1.0f - f);
        d.whole[2] = dc * i * fmaf(-g, g, 1.0f);
        d.whole[3] = dh * tanh_c * o * (1.0f - o);
        d.aside = dc * f;
    } else {
        const float r = v.saved[0], z = v.saved[1], n = v.saved[2], m = v.saved[3];
        const float dn = dh * (1.0f - z) * fmaf(-n, n, 1.0f);
        d.whole[0] = dn * m * r * (1.0f - r);
        d.whole[1] = dh * (v.h - n) * z * (1.0f - z);
        d.whole[2] = dn;
        d.aside = dh * z;
    }
    XPH_UNROLL
    for (int g = 0; g < G; g++) d.recurrent[g] = d.whole[g];
    if (G == GRU) d.recurrent[2] *= v.saved[0];
    return d;
}

/* What the gradients of weights are made of (linear.cu): h before every frame; of a GRU the gradient of W_n h + bias_n. Both
 * [M][H]. */
struct back_rows {
    void *before, *third;
};

/* Of one unit of one stream what backward leaves of a frame. */
template <class Stored, int G>
__device__ inline void give_rows(const xph_rnn_grad_args &to, const back_rows &rows, int64_t t,
                                 int64_t stream, int64_t unit, const cell<G> &v, const gates<G> &d)
{
    const int64_t hidden = to.fwd.hidden, row = stream * to.fwd.time + t;
    Stored *dgx = static_cast<Stored *>(to.dgx) + row * to.lddgx + unit;
    XPH_UNROLL
    for (int g = 0; g < G; g++) store(dgx + g * hidden, d.whole[g]);
    store(static_cast<Stored *>(rows.before) + row * hidden + unit, v.h);
    if (G == GRU) store(static_cast<Stored *>(rows.third) + row * hidden + unit, d.recurrent[2]);
}
template <int G>
__device__ inline void give_state(const xph_rnn_grad_args &to, int64_t stream, int64_t unit, float dh,
                                  float dc)
{
    float *state = static_cast<float *>(to.dstate_in) + stream * to.fwd.ld_state + unit;
    state[0] = dh;
    if (G == LSTM) state[to.fwd.hidden] = dc;
}

/* Gradients of h and c behind a frame but for dy, and but for what W adds to that of h if it passes anything. */
struct carried {
    float h, c;
    bool passes;
};

/* Behind the last frame. */
template <int G>
__device__ inline carried carried_from_end(const xph_rnn_grad_args &of, int64_t stream, int64_t unit)
{
    if (!of.dstate_out) return {0.0f, 0.0f, false};
    const float *d = static_cast<const float *>(of.dstate_out) + stream * of.fwd.ld_state + unit;
    return {load_changing(d), G == LSTM ? load_changing(d + of.fwd.hidden) : 0.0f, false};
}
/* Behind any other; fresh: the next frame is. */
template <int G> __device__ inline carried carried_on(float aside, bool fresh)
{
    if (fresh) return {0.0f, 0.0f, false};
    return {G == LSTM ? 0.0f : aside, G == LSTM ? aside : 0.0f, true};
}

/* ---- scratch ---- */

/* What scratch holds, each from a multiple of ROUND bytes on. */
constexpr int64_t ROUND = 256;
struct layout {
    int64_t ld, gates, aside, rows, transposed; /* bytes, gates twice and rows up to twice */
    size_t kept;

    explicit layout(const xph_rnn_grad_args *g)
    {
        const xph_rnn_args *a = &g->fwd;
        const int64_t real = sizeof(float), stored = a->type == XPH_F32 ? 4 : 2;
        ld = round_up(gates_of(a), QUAD);
        gates = round_up(a->batch * ld * real, ROUND);
        aside = round_up(a->batch * a->hidden * real, ROUND);
        rows = round_up(a->batch * a->time * a->hidden * stored, ROUND);
        transposed = rnn_tensor_fits(a) ? round_up(gates_of(a) * a->hidden * real, ROUND) : 0;
        kept = static_cast<size_t>(2 * gates + aside + (a->kind == XPH_RNN_LSTM ? 1 : 2) * rows + transposed);
    }
};

inline back_rows rows_of(const xph_rnn_grad_args *g)
{
    const layout r(g);
    char *before = static_cast<char *>(g->scratch) + 2 * r.gates + r.aside;
    return {before, before + r.rows};
}

}  // namespace rnn_back

/* All frames in one launch by clusters (rnn_cluster_grad.cu), but not the gradients of the weights; as in rnn.cuh. */
bool rnn_cluster_fits_grad(const xph_rnn_grad_args *g);
int rnn_cluster_run_grad(const xph_rnn_grad_args *g, cudaStream_t stream);

#endif
