/* Causal depthwise convolution of 1 to 16 taps with SiLU, forward (one frame: conv_frame.cu) and gradient.
 *
 * A thread walks a channel, or two side by side where rows allow to move two numbers at once, through time with the
 * last inputs in registers, and reads AHEAD frames at a time. Forward cuts time into spans and reads the inputs
 * before each span again, so that few streams fill a GPU too; where a reset lies in between these inputs are zero, and
 * before the first frame they are the carried state. Zeros times weights are added like any input, so that the bits do
 * not depend on where a span begins.
 *
 * The gradient walks back: the sum before SiLU is recomputed from the inputs, and its gradients in the frames
 * ahead stay in registers. The thread sums dw and dbias over a stream, fold over the streams.
 *
 * The lanes of a warp read the resets of 32 frames at once. AHEAD frames that no reset touches, nor the first or
 * the last frame of the stream, take a branch without conditions. It does the same operations.
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
static_assert(AHEAD + MOST_TAPS - 1 <= WARP, "the lanes of a warp read the resets that AHEAD frames see");

/* Taps that the kernel has and the convolution has not; they come first. */
template <int TAPS> __device__ inline int missing(const xph_conv_args &a)
{
    return TAPS <= 4 ? 0 : TAPS - static_cast<int>(a.taps);
}

/* Channels of a thread, of one stream. A thread without channels of its own goes along with the first ones and writes
 * nothing: its warp reads resets together. */
template <int EACH> struct place {
    int64_t stream, row, channel; /* row: of frame 0 */
    bool mine;

    __device__ explicit place(const xph_conv_args &a)
        : stream(blockIdx.x), row(stream * a.time),
          channel((int64_t(blockIdx.y) * THREADS + threadIdx.x) * EACH), mine(channel < a.width)
    {
        if (!mine) channel = 0;
    }
};

/* What is carried stands before frame 0. */
__device__ inline float carried_at(const xph_conv_args &a, int64_t stream, int64_t t, int64_t channel)
{
    const float *state = static_cast<const float *>(a.state_in);
    const int64_t row = t + a.taps - 1;
    return state && row >= 0 ? state[stream * a.ld_state + row * a.width + channel] : 0.0f;
}

/* Frame t of the channels as frames of this chunk see it. */
template <class Stored, int EACH>
__device__ inline void inputs_at(const xph_conv_args &a, const place<EACH> &p, int64_t t, float (&x)[EACH])
{
    if (t >= 0) {
        load_group(static_cast<const Stored *>(a.x) + (p.row + t) * a.ldx + p.channel, x);
        return;
    }
    XPH_UNROLL
    for (int e = 0; e < EACH; e++) x[e] = carried_at(a, p.stream, t, p.channel + e);
}

/* Bit k: a reset at first + k by. */
__device__ inline unsigned cuts_from(const xph_conv_args &a, int64_t row, int64_t first, int by)
{
    if (!a.reset) return 0;
    const int64_t t = first + static_cast<int>(threadIdx.x % WARP) * by;
    return __ballot_sync(ALL_LANES, t >= 0 && t < a.time && a.reset[row + t]);
}

template <int TAPS> struct weights {
    float w[TAPS], bias;
    int first; /* of the taps that are there */

    __device__ void read(const xph_conv_args &a, int64_t channel)
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

template <int TAPS> struct inputs {
    float x[TAPS]; /* the newest comes last */

    __device__ void push(float newest, bool cut)
    {
        XPH_UNROLL
        for (int j = 0; j + 1 < TAPS; j++) x[j] = cut ? 0.0f : x[j + 1];
        x[TAPS - 1] = newest;
    }
};

/* The newest input is that of the frame before t0. */
template <class Stored, int TAPS, int EACH>
__device__ inline void enter(inputs<TAPS> (&seen)[EACH], const xph_conv_args &a, const place<EACH> &p,
                             int64_t t0)
{
    const unsigned cuts = cuts_from(a, p.row, t0 - 1, -1);
    XPH_UNROLL
    for (int e = 0; e < EACH; e++) seen[e].x[0] = 0.0f;
    XPH_UNROLL
    for (int k = 1; k < TAPS; k++) {
        float x[EACH];
        inputs_at<Stored>(a, p, t0 - k, x);
        const bool cut = cuts & ((1u << (k - 1)) - 1);
        XPH_UNROLL
        for (int e = 0; e < EACH; e++) seen[e].x[TAPS - k] = cut ? 0.0f : x[e];
    }
}

/* AHEAD frames from t on. WHOLE: all of them are there, and no reset. */
template <bool WHOLE, class Stored, int TAPS, int EACH>
__device__ inline void frames(const xph_conv_args &a, const place<EACH> &p,
                              const weights<TAPS> (&weight)[EACH], inputs<TAPS> (&seen)[EACH],
                              const float (&next)[AHEAD][EACH], unsigned cuts, int64_t t, int64_t t1)
{
    Stored *y = static_cast<Stored *>(a.y) + (p.row + t) * a.ldy + p.channel;
    XPH_UNROLL
    for (int i = 0; i < AHEAD; i++, y += a.ldy) {
        float out[EACH];
        if (!WHOLE && t + i >= t1) continue;
        XPH_UNROLL
        for (int e = 0; e < EACH; e++) {
            seen[e].push(next[i][e], !WHOLE && cuts >> i & 1);
            out[e] = silu(weight[e].sum(seen[e].x));
        }
        if (p.mine) store_group(y, out);
    }
}

template <int TAPS, int EACH>
__device__ inline void leave(const xph_conv_args &a, const place<EACH> &p, const inputs<TAPS> (&seen)[EACH])
{
    float *out = static_cast<float *>(a.state_out);
    if (!out || !p.mine) return;
    XPH_UNROLL
    for (int j = 1; j < TAPS; j++) {
        const int64_t row = j - 1 - missing<TAPS>(a);
        XPH_UNROLL
        for (int e = 0; e < EACH; e++)
            if (row >= 0) out[p.stream * a.ld_state + row * a.width + p.channel + e] = seen[e].x[j];
    }
}

template <class Stored, int TAPS, int EACH>
__global__ void __launch_bounds__(THREADS) conv_frames(const xph_conv_args a, int64_t span)
{
    XPH_ENTER();
    const place<EACH> p(a);
    const int64_t t0 = blockIdx.z * span, t1 = t0 + span < a.time ? t0 + span : a.time;
    weights<TAPS> weight[EACH];
    inputs<TAPS> seen[EACH];
    XPH_UNROLL
    for (int e = 0; e < EACH; e++) weight[e].read(a, p.channel + e);
    enter<Stored>(seen, a, p, t0);
    for (int64_t t = t0; t < t1; t += AHEAD) {
        float next[AHEAD][EACH];
        const bool all = t + AHEAD <= t1;
        const Stored *x = static_cast<const Stored *>(a.x) + (p.row + t) * a.ldx + p.channel;
        XPH_UNROLL
        for (int i = 0; i < AHEAD; i++, x += a.ldx)
            if (all || t + i < t1) load_group(x, next[i]);
        const unsigned cuts = cuts_from(a, p.row, t, 1) & ((1u << AHEAD) - 1);
        if (all && !cuts)
            frames<true, Stored>(a, p, weight, seen, next, 0, t, t1);
        else
            frames<false, Stored>(a, p, weight, seen, next, cuts, t, t1);
    }
    if (t1 == a.time) leave(a, p, seen);
}

/* ---- gradient ---- */

/* The walk back: what a thread knows of a channel at frame t. */
template <int TAPS> struct walk {
    float x[TAPS];     /* inputs t-TAPS+1 .. t as they lie in memory */
    float ahead[TAPS]; /* gradient of the sum before SiLU at t, t+1, ...; 0 where a reset lies between */
    float dw[TAPS], dbias, columns; /* columns: of dx */

    /* Input j as frame t sees it; bit k of cuts: a reset at t - k. */
    __device__ float seen(int j, unsigned cuts) const
    {
        return cuts & ((1u << (TAPS - 1 - j)) - 1) ? 0.0f : x[j];
    }
    /* dx goes to frame t through the state that goes out; what goes through the frames that see it is added. */
    __device__ float input_gradient(const weights<TAPS> &weight, float dx) const
    {
        XPH_UNROLL
        for (int i = 0; i < TAPS; i++)
            if (i < TAPS - weight.first) dx = fmaf(weight.w[TAPS - 1 - i], ahead[i], dx);
        return dx;
    }
    __device__ void shift_ahead(float newest)
    {
        XPH_UNROLL
        for (int i = TAPS - 1; i > 0; i--) ahead[i] = ahead[i - 1];
        ahead[0] = newest;
    }
    /* One frame: gradients of the sum, the weights and, given what dx is without it, the input. */
    __device__ float back(const weights<TAPS> &weight, unsigned cuts, float dy, float dx)
    {
        float in[TAPS];
        XPH_UNROLL
        for (int j = 0; j < TAPS; j++) in[j] = j < weight.first ? 0.0f : seen(j, cuts);
        const float sum = weight.sum(in), d = dy * silu_slope(sum, sigmoid(sum));
        XPH_UNROLL
        for (int j = 0; j < TAPS; j++) dw[j] = fmaf(d, in[j], dw[j]);
        dbias += d;
        shift_ahead(d);
        dx = input_gradient(weight, dx);
        columns += dx;
        if (cuts & 1) {
            XPH_UNROLL
            for (int i = 0; i < TAPS; i++) ahead[i] = 0.0f;
        }
        return dx;
    }
    /* On to the frame before. */
    __device__ void step(float oldest)
    {
        XPH_UNROLL
        for (int j = TAPS - 1; j > 0; j--) x[j] = x[j - 1];
        x[0] = oldest;
    }
};

/* Gradient of the state that goes out, of the part of it that input t is. */
__device__ inline float left_gradient(const xph_conv_grad_args &g, int64_t stream, int64_t t, int64_t channel)
{
    const float *dout = static_cast<const float *>(g.dstate_out);
    const int64_t row = t - (g.fwd.time - g.fwd.taps + 1);
    return dout && row >= 0 && row < g.fwd.taps - 1
               ? dout[stream * g.fwd.ld_state + row * g.fwd.width + channel]
               : 0.0f;
}

/* AHEAD frames from t back. WHOLE: all of them are there, none sees a reset or goes into the state. open: no reset from t+1 to
 * the end, so that t may. */
template <bool WHOLE, class Stored, int TAPS, int EACH>
__device__ inline void frames_back(const xph_conv_grad_args &g, const place<EACH> &p,
                                   const weights<TAPS> (&weight)[EACH], walk<TAPS> (&k)[EACH],
                                   const float (&oldest)[AHEAD][EACH], const float (&dy)[AHEAD][EACH],
                                   unsigned cuts, int64_t t, bool *open)
{
    Stored *to = static_cast<Stored *>(g.dx) + (p.row + t) * g.lddx + p.channel;
    XPH_UNROLL
    for (int i = 0; i < AHEAD; i++, to -= g.lddx) {
        float dx[EACH];
        if (!WHOLE && t - i < 0) continue;
        XPH_UNROLL
        for (int e = 0; e < EACH; e++) {
            const float left = !WHOLE && *open ? left_gradient(g, p.stream, t - i, p.channel + e) : 0.0f;
            dx[e] = k[e].back(weight[e], WHOLE ? 0u : cuts >> i, dy[i][e], left);
            k[e].step(oldest[i][e]);
        }
        if (p.mine) store_group(to, dx);
        if (!WHOLE) *open = *open && !(cuts >> i & 1);
    }
}

template <class Stored, int TAPS, int EACH>
__device__ inline void begin_walk(const xph_conv_args &a, const place<EACH> &p, walk<TAPS> (&k)[EACH])
{
    XPH_UNROLL
    for (int j = 0; j < TAPS; j++) {
        float x[EACH];
        inputs_at<Stored>(a, p, a.time - TAPS + j, x);
        XPH_UNROLL
        for (int e = 0; e < EACH; e++) {
            k[e].x[j] = x[e];
            k[e].ahead[j] = k[e].dw[j] = k[e].dbias = k[e].columns = 0.0f;
        }
    }
}

/* The sums over the stream, and the gradient of the state that came in. */
template <int TAPS>
__device__ inline void end_walk(const xph_conv_grad_args &g, walk<TAPS> *k, const weights<TAPS> &weight,
                                int64_t stream, int64_t channel, bool open)
{
    const int64_t width = g.fwd.width, taps = g.fwd.taps;
    float *part = static_cast<float *>(g.scratch) + stream * width * (taps + 2);
    float *din = static_cast<float *>(g.dstate_in);
    XPH_UNROLL
    for (int j = 0; j < TAPS; j++)
        if (j >= weight.first) part[channel * taps + j - weight.first] = k->dw[j];
    part[width * taps + channel] = k->dbias;
    part[width * (taps + 1) + channel] = k->columns;
    if (!din) return;
    XPH_UNROLL
    for (int t = -1; t > -TAPS; t--) {
        const int64_t row = t + g.fwd.taps - 1;
        k->shift_ahead(0.0f);
        if (row >= 0)
            din[stream * g.fwd.ld_state + row * g.fwd.width + channel] =
                k->input_gradient(weight, open ? left_gradient(g, stream, t, channel) : 0.0f);
    }
}

template <class Stored, int TAPS, int EACH>
__global__ void __launch_bounds__(THREADS) conv_grad(const xph_conv_grad_args g)
{
    XPH_ENTER();
    const xph_conv_args &a = g.fwd;
    const place<EACH> p(a);
    weights<TAPS> weight[EACH];
    walk<TAPS> k[EACH];
    bool open = true;
    XPH_UNROLL
    for (int e = 0; e < EACH; e++) weight[e].read(a, p.channel + e);
    begin_walk<Stored>(a, p, k);
    for (int64_t t = a.time - 1; t >= 0; t -= AHEAD) {
        float oldest[AHEAD][EACH], dy[AHEAD][EACH];
        const Stored *x = static_cast<const Stored *>(a.x) + (p.row + t - TAPS) * a.ldx + p.channel;
        const Stored *from = static_cast<const Stored *>(g.dy) + (p.row + t) * g.lddy + p.channel;
        const bool all = t - AHEAD - TAPS + 1 >= 0;
        XPH_UNROLL
        for (int i = 0; i < AHEAD; i++, x -= a.ldx, from -= g.lddy) {
            if (!all && t - i < 0) continue;
            if (all)
                load_group(x, oldest[i]);
            else
                inputs_at<Stored>(a, p, t - i - TAPS, oldest[i]);
            load_group(from, dy[i]);
        }
        const unsigned cuts = cuts_from(a, p.row, t, -1) & ((1u << (AHEAD + TAPS - 1)) - 1);
        const bool into_state = g.dstate_out && t > a.time - TAPS;
        if (all && !cuts && !into_state)
            frames_back<true, Stored>(g, p, weight, k, oldest, dy, 0, t, &open);
        else
            frames_back<false, Stored>(g, p, weight, k, oldest, dy, cuts, t, &open);
    }
    XPH_UNROLL
    for (int e = 0; e < EACH; e++)
        if (p.mine) end_walk(g, &k[e], weight[e], p.stream, p.channel + e, open);
}

/* ---- candidates ---- */

bool fits(const xph_conv_args *a)
{
    return is_stored(a->type) && a->taps >= 1 && a->taps <= MOST_TAPS && a->batch < (int64_t(1) << 31) &&
           fits_across(blocks_of(a->width, THREADS));
}

/* Of a state that changes in place no span may read what another has written. */
int64_t span_of(const xph_conv_args *a)
{
    const int64_t whole = a->time > 1 ? a->time : 1, most = (1 << 16) - 1;
    const int64_t span = SPAN * blocks_of(blocks_of(whole, SPAN), most);
    const bool in_place = a->state_in && a->state_in == a->state_out;
    return in_place || whole < span ? whole : span;
}

/* Two channels a thread where rows have pairs; few frames have few instructions, which then wait for each other. */
constexpr int PAIR = 2;
template <class Stored, int TAPS> bool has_pairs(const xph_conv_args *a)
{
    return TAPS <= 4 && a->time >= AHEAD && a->width % PAIR == 0 && grouped<Stored>(a->x, a->ldx, PAIR);
}

template <class Stored, int TAPS, int EACH> int forward_by(const xph_conv_args *a, cudaStream_t stream)
{
    const int64_t span = span_of(a), spans = a->time ? blocks_of(a->time, span) : 1;
    const dim3 grid(as_grid(a->batch), as_grid(blocks_of(a->width, THREADS * EACH)), as_grid(spans));
    XPH_LAUNCH((conv_frames<Stored, TAPS, EACH>), grid, dim3(THREADS), 0, stream, *a, span);
    return cudaGetLastError();
}

template <class Stored, int TAPS> int forward(const xph_conv_args *a, cudaStream_t stream)
{
    if constexpr (TAPS <= 4)
        if (has_pairs<Stored, TAPS>(a) && grouped<Stored>(a->y, a->ldy, PAIR))
            return forward_by<Stored, TAPS, PAIR>(a, stream);
    return forward_by<Stored, TAPS, 1>(a, stream);
}

template <class Stored, int TAPS, int EACH> void gradient_by(const xph_conv_grad_args *g, cudaStream_t stream)
{
    const dim3 grid(as_grid(g->fwd.batch), as_grid(blocks_of(g->fwd.width, THREADS * EACH)));
    XPH_LAUNCH((conv_grad<Stored, TAPS, EACH>), grid, dim3(THREADS), 0, stream, *g);
}

template <class Stored, int TAPS> bool gradient_has_pairs(const xph_conv_grad_args *g)
{
    return has_pairs<Stored, TAPS>(&g->fwd) && grouped<Stored>(g->dy, g->lddy, PAIR) &&
           grouped<Stored>(g->dx, g->lddx, PAIR);
}

template <class Stored, int TAPS> int gradient(const xph_conv_grad_args *g, cudaStream_t stream)
{
    const int64_t batch = g->fwd.batch, width = g->fwd.width;
    fold_targets targets = fold_target(static_cast<float *>(g->dw), width * g->fwd.taps);
    fold_more(&targets, g->dbias, width);
    fold_more(&targets, g->dx_sum, width);
    if constexpr (TAPS <= 4) {
        if (gradient_has_pairs<Stored, TAPS>(g))
            gradient_by<Stored, TAPS, PAIR>(g, stream);
        else
            gradient_by<Stored, TAPS, 1>(g, stream);
    } else {
        gradient_by<Stored, TAPS, 1>(g, stream);
    }
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
    {"conv_frame", xph_conv_frame_accepts, nullptr, xph_conv_frame},
    {"conv", accepts, nullptr, launch},
    {nullptr, nullptr, nullptr, nullptr},
};
const xph_cuda_candidate xph_cuda_conv_grad[] = {
    {"conv_grad", grad_accepts, grad_scratch, grad_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
