/* Causal depthwise convolution of 1 to 16 taps with SiLU, forward (one frame is a chunk of one) and gradient.
 *
 * A thread walks a channel through time with the last inputs in registers, and reads AHEAD frames at a time.
 * Forward cuts time into spans and reads the inputs before each span again, so that few streams fill a GPU
 * too; where a reset lies in between these inputs are zero, and before the first frame they are the carried
 * state. Zeros times weights are added like any input, so that the bits do not depend on where a span begins.
 *
 * The gradient walks back: the sum before SiLU is recomputed from the inputs, and its gradients in the frames
 * ahead stay in registers. The thread sums dw and dbias over a stream, fold over the streams.
 *
 * Kernels are made for TAPS = 1, 2, 3, 4, 8 and 16; with 8 and 16 the convolution may have fewer, the last of
 * them.
 */
#include "fold.cuh"
#include "kernels.h"

namespace
{

constexpr int THREADS = 128, AHEAD = 8, MOST_TAPS = 16;
constexpr int64_t SPAN = 64;

/* Taps that the kernel has and the convolution has not; they come first. */
template <int TAPS> __device__ inline int missing(const xph_conv_args &a)
{
    return TAPS <= 4 ? 0 : TAPS - static_cast<int>(a.taps);
}

/* Frame t of the channel as frames of this chunk see it; before the first one what was carried. */
template <class Stored>
__device__ inline float input_at(const xph_conv_args &a, int64_t stream, int64_t t, int64_t channel)
{
    if (t >= 0) return load(static_cast<const Stored *>(a.x) + (stream * a.time + t) * a.ldx + channel);
    const float *state = static_cast<const float *>(a.state_in);
    const int64_t row = t + a.taps - 1;
    return state && row >= 0 ? state[stream * a.ld_state + row * a.width + channel] : 0.0f;
}

__device__ inline bool cut_at(const xph_conv_args &a, int64_t stream, int64_t t)
{
    return a.reset && t >= 0 && a.reset[stream * a.time + t];
}

template <int TAPS> struct weights {
    float w[TAPS], bias;
    int first; /* of the taps that are there */

    __device__ weights(const xph_conv_args &a, int64_t channel)
    {
        const float *own = static_cast<const float *>(a.w) + channel * a.taps;
        first = missing<TAPS>(a);
        bias = load(static_cast<const float *>(a.bias) + channel);
        XPH_UNROLL
        for (int j = 0; j < TAPS; j++) w[j] = j < first ? 0.0f : load(own + j - first);
    }
    __device__ float sum(const float (&x)[TAPS]) const
    {
        float s = bias;
        XPH_UNROLL
        for (int j = 0; j < TAPS; j++)
            if (j >= first) s = fmaf(w[j], x[j], s);
        return s;
    }
};

/* ---- forward ---- */

/* x[TAPS - 1] is the newest input, the frame before t0. */
template <class Stored, int TAPS>
__device__ inline void enter(float (&x)[TAPS], const xph_conv_args &a, int64_t stream, int64_t t0,
                             int64_t channel)
{
    bool open = true;
    x[0] = 0.0f;
    XPH_UNROLL
    for (int k = 1; k < TAPS; k++) {
        x[TAPS - k] = open ? input_at<Stored>(a, stream, t0 - k, channel) : 0.0f;
        open = open && !cut_at(a, stream, t0 - k);
    }
}

template <int TAPS> __device__ inline void push(float (&x)[TAPS], float newest, bool cut)
{
    XPH_UNROLL
    for (int j = 0; j + 1 < TAPS; j++) x[j] = cut ? 0.0f : x[j + 1];
    x[TAPS - 1] = newest;
}

template <class Stored, int TAPS>
__global__ void __launch_bounds__(THREADS) conv_frames(const xph_conv_args a, int64_t span)
{
    XPH_ENTER();
    const int64_t stream = blockIdx.x, channel = int64_t(blockIdx.y) * THREADS + threadIdx.x;
    const int64_t t0 = blockIdx.z * span, t1 = t0 + span < a.time ? t0 + span : a.time;
    if (channel >= a.width) return;
    const weights<TAPS> weight(a, channel);
    float x[TAPS];
    enter<Stored>(x, a, stream, t0, channel);
    for (int64_t t = t0; t < t1; t += AHEAD) {
        float next[AHEAD];
        bool cut[AHEAD];
        XPH_UNROLL
        for (int i = 0; i < AHEAD; i++) {
            if (t + i >= t1) continue;
            next[i] = input_at<Stored>(a, stream, t + i, channel);
            cut[i] = cut_at(a, stream, t + i);
        }
        XPH_UNROLL
        for (int i = 0; i < AHEAD; i++) {
            if (t + i >= t1) continue;
            push(x, next[i], cut[i]);
            store(static_cast<Stored *>(a.y) + (stream * a.time + t + i) * a.ldy + channel,
                  silu(weight.sum(x)));
        }
    }
    float *out = static_cast<float *>(a.state_out);
    if (!out || t1 < a.time) return;
    XPH_UNROLL
    for (int j = 1; j < TAPS; j++) {
        const int64_t row = j - 1 - weight.first;
        if (row >= 0) out[stream * a.ld_state + row * a.width + channel] = x[j];
    }
}

/* ---- gradient ---- */

/* The walk back: what a thread knows at frame t. */
template <int TAPS> struct walk {
    float x[TAPS];     /* inputs t-TAPS+1 .. t as they lie in memory */
    float ahead[TAPS]; /* gradient of the sum before SiLU at t, t+1, ...; 0 where a reset lies between */
    float dw[TAPS], dbias, columns; /* columns: of dx */
    unsigned cuts;                  /* bit k: a reset at t - k */
    bool open;                      /* no reset from t+1 to the end: t may be in the state that goes out */
};

/* Input j as frame t sees it. */
template <int TAPS> __device__ inline float seen(const walk<TAPS> &k, int j)
{
    const unsigned between = (1u << (TAPS - 1 - j)) - 1;
    return k.cuts & between ? 0.0f : k.x[j];
}

/* Gradient of the input at t: through the frames that see it, and through the state that goes out. */
template <int TAPS>
__device__ inline float input_gradient(const xph_conv_grad_args &g, const walk<TAPS> &k,
                                       const weights<TAPS> &weight, int64_t stream, int64_t t,
                                       int64_t channel)
{
    const float *dout = static_cast<const float *>(g.dstate_out);
    const int64_t row = t - (g.fwd.time - g.fwd.taps + 1);
    float dx = dout && k.open && row >= 0 && row < g.fwd.taps - 1
                   ? dout[stream * g.fwd.ld_state + row * g.fwd.width + channel]
                   : 0.0f;
    XPH_UNROLL
    for (int i = 0; i < TAPS; i++)
        if (i < TAPS - weight.first) dx = fmaf(weight.w[TAPS - 1 - i], k.ahead[i], dx);
    return dx;
}

template <int TAPS> __device__ inline void shift_ahead(walk<TAPS> *k, float newest)
{
    XPH_UNROLL
    for (int i = TAPS - 1; i > 0; i--) k->ahead[i] = k->ahead[i - 1];
    k->ahead[0] = newest;
}

/* One frame: gradients of the sum, the weights and the input; then on to the frame before, whose oldest input and reset
 * are given. */
template <class Stored, int TAPS>
__device__ inline void back(const xph_conv_grad_args &g, walk<TAPS> *k, const weights<TAPS> &weight,
                            int64_t stream, int64_t t, int64_t channel, float dy)
{
    float x[TAPS];
    XPH_UNROLL
    for (int j = 0; j < TAPS; j++) x[j] = j < weight.first ? 0.0f : seen(*k, j);
    const float sum = weight.sum(x), d = dy * silu_slope(sum, sigmoid(sum));
    XPH_UNROLL
    for (int j = 0; j < TAPS; j++) k->dw[j] = fmaf(d, x[j], k->dw[j]);
    k->dbias += d;
    shift_ahead(k, d);
    const float dx = input_gradient(g, *k, weight, stream, t, channel);
    k->columns += dx;
    store(static_cast<Stored *>(g.dx) + (stream * g.fwd.time + t) * g.lddx + channel, dx);
    if (!(k->cuts & 1)) return;
    k->open = false;
    XPH_UNROLL
    for (int i = 0; i < TAPS; i++) k->ahead[i] = 0.0f;
}

template <int TAPS> __device__ inline void step_back(walk<TAPS> *k, float oldest, bool oldest_cut)
{
    XPH_UNROLL
    for (int j = TAPS - 1; j > 0; j--) k->x[j] = k->x[j - 1];
    k->x[0] = oldest;
    k->cuts = k->cuts >> 1 | (oldest_cut ? 1u << (TAPS - 1) : 0u);
}

template <class Stored, int TAPS>
__device__ inline walk<TAPS> begin_walk(const xph_conv_grad_args &g, int64_t stream, int64_t channel)
{
    walk<TAPS> k;
    k.dbias = k.columns = 0.0f, k.cuts = 0, k.open = true;
    XPH_UNROLL
    for (int j = 0; j < TAPS; j++) {
        const int64_t t = g.fwd.time - TAPS + j;
        k.x[j] = input_at<Stored>(g.fwd, stream, t, channel);
        k.cuts |= cut_at(g.fwd, stream, t) ? 1u << (TAPS - 1 - j) : 0u;
        k.ahead[j] = k.dw[j] = 0.0f;
    }
    return k;
}

/* The sums over the stream, and the gradient of the state that came in. */
template <int TAPS>
__device__ inline void end_walk(const xph_conv_grad_args &g, walk<TAPS> *k, const weights<TAPS> &weight,
                                int64_t stream, int64_t channel)
{
    const int64_t width = g.fwd.width, taps = g.fwd.taps;
    float *part = static_cast<float *>(g.scratch) + stream * width * (taps + 2);
    float *din = static_cast<float *>(g.dstate_in);
    XPH_UNROLL
    for (int j = 0; j < TAPS; j++)
        if (j >= weight.first) part[channel * taps + j - weight.first] = k->dw[j];
    part[width * taps + channel] = k->dbias;
    part[width * (taps + 1) + channel] = k->columns;
    XPH_UNROLL
    for (int t = -1; t > -TAPS; t--) {
        const int64_t row = t + g.fwd.taps - 1;
        shift_ahead(k, 0.0f);
        if (din && row >= 0)
            din[stream * g.fwd.ld_state + row * g.fwd.width + channel] =
                input_gradient(g, *k, weight, stream, t, channel);
    }
}

template <class Stored, int TAPS>
__global__ void __launch_bounds__(THREADS) conv_grad(const xph_conv_grad_args g)
{
    XPH_ENTER();
    const xph_conv_args &a = g.fwd;
    const int64_t stream = blockIdx.x, channel = int64_t(blockIdx.y) * THREADS + threadIdx.x;
    if (channel >= a.width) return;
    const weights<TAPS> weight(a, channel);
    walk<TAPS> k = begin_walk<Stored, TAPS>(g, stream, channel);
    for (int64_t t = a.time - 1; t >= 0; t -= AHEAD) {
        float oldest[AHEAD], dy[AHEAD];
        bool cut[AHEAD];
        XPH_UNROLL
        for (int i = 0; i < AHEAD; i++) {
            if (t - i < 0) continue;
            oldest[i] = input_at<Stored>(a, stream, t - i - TAPS, channel);
            cut[i] = cut_at(a, stream, t - i - TAPS);
            dy[i] = load(static_cast<const Stored *>(g.dy) + (stream * a.time + t - i) * g.lddy + channel);
        }
        XPH_UNROLL
        for (int i = 0; i < AHEAD; i++) {
            if (t - i < 0) continue;
            back<Stored>(g, &k, weight, stream, t - i, channel, dy[i]);
            step_back(&k, oldest[i], cut[i]);
        }
    }
    end_walk(g, &k, weight, stream, channel);
}

/* ---- candidates ---- */

bool fits(const xph_conv_args *a)
{
    return is_stored(a->type) && a->taps >= 1 && a->taps <= MOST_TAPS && a->batch < (int64_t(1) << 31);
}

/* Of a state that changes in place no span may read what another has written. */
int64_t span_of(const xph_conv_args *a)
{
    const int64_t whole = a->time > 1 ? a->time : 1, most = (1 << 16) - 1;
    const int64_t span = SPAN * blocks_of(blocks_of(whole, SPAN), most);
    return a->state_in == a->state_out || whole < span ? whole : span;
}

template <class Stored, int TAPS> int forward(const xph_conv_args *a, cudaStream_t stream)
{
    const int64_t span = span_of(a), spans = a->time ? blocks_of(a->time, span) : 1;
    const dim3 grid(as_grid(a->batch), as_grid(blocks_of(a->width, THREADS)), as_grid(spans));
    XPH_LAUNCH((conv_frames<Stored, TAPS>), grid, dim3(THREADS), 0, stream, *a, span);
    return cudaGetLastError();
}

template <class Stored, int TAPS> int gradient(const xph_conv_grad_args *g, cudaStream_t stream)
{
    const int64_t batch = g->fwd.batch, width = g->fwd.width;
    const dim3 grid(as_grid(batch), as_grid(blocks_of(width, THREADS)));
    fold_targets targets = fold_target(static_cast<float *>(g->dw), width * g->fwd.taps);
    fold_more(&targets, g->dbias, width);
    fold_more(&targets, g->dx_sum, width);
    XPH_LAUNCH((conv_grad<Stored, TAPS>), grid, dim3(THREADS), 0, stream, *g);
    fold_to(static_cast<const float *>(g->scratch), targets, batch, stream);
    return cudaGetLastError();
}

template <class Stored> int forward_of(const xph_conv_args *a, cudaStream_t stream)
{
    switch (a->taps) {
    case 1:
        return forward<Stored, 1>(a, stream);
    case 2:
        return forward<Stored, 2>(a, stream);
    case 3:
        return forward<Stored, 3>(a, stream);
    case 4:
        return forward<Stored, 4>(a, stream);
    }
    return a->taps <= 8 ? forward<Stored, 8>(a, stream) : forward<Stored, 16>(a, stream);
}

template <class Stored> int gradient_of(const xph_conv_grad_args *g, cudaStream_t stream)
{
    switch (g->fwd.taps) {
    case 1:
        return gradient<Stored, 1>(g, stream);
    case 2:
        return gradient<Stored, 2>(g, stream);
    case 3:
        return gradient<Stored, 3>(g, stream);
    case 4:
        return gradient<Stored, 4>(g, stream);
    }
    return g->fwd.taps <= 8 ? gradient<Stored, 8>(g, stream) : gradient<Stored, 16>(g, stream);
}

bool accepts(const void *args)
{
    return fits(static_cast<const xph_conv_args *>(args));
}

int launch(const void *args, cudaStream_t stream)
{
    const xph_conv_args *a = static_cast<const xph_conv_args *>(args);
    if (!a->batch || !a->width) return cudaSuccess;
    return with_stored(a->type, [&](auto zero) { return forward_of<decltype(zero)>(a, stream); });
}

bool grad_accepts(const void *args)
{
    return fits(&static_cast<const xph_conv_grad_args *>(args)->fwd);
}

/* Of each stream dw [D,taps], dbias [D] and the columns of dx [D]. */
size_t grad_scratch(const void *args)
{
    const xph_conv_args *a = &static_cast<const xph_conv_grad_args *>(args)->fwd;
    return static_cast<size_t>(a->batch * a->width * (a->taps + 2)) * sizeof(float);
}

int grad_launch(const void *args, cudaStream_t stream)
{
    const xph_conv_grad_args *g = static_cast<const xph_conv_grad_args *>(args);
    if (!g->fwd.batch || !g->fwd.width) return cudaSuccess;
    return with_stored(g->fwd.type, [&](auto zero) { return gradient_of<decltype(zero)>(g, stream); });
}

}  // namespace

const xph_cuda_candidate xph_cuda_conv[] = {
    {"conv", accepts, nullptr, launch},
    {nullptr, nullptr, nullptr, nullptr},
};
const xph_cuda_candidate xph_cuda_conv_grad[] = {
    {"conv_grad", grad_accepts, grad_scratch, grad_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
