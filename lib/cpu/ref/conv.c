/* Causal depthwise convolution with SiLU, and its gradient.
 *
 * An item of the forward is one stream and a block of channels: loops over channels vectorise, time runs in
 * order. The input `lag` frames back is the row of x, a row of the carried state, or zeros when a reset lies
 * between. The gradient has blocks of channels as items and takes the streams in order: per stream dw and
 * dbias are summed from 0 over time, and these sums added in order to what is there.
 */
#include "cpu/ref/real.h"

/* Taps times channels of a block stay below MOST_TAPS (the stack). */
enum { CHANNELS = 64, MOST_TAPS = 1024 };

static bool conv_accepts(const void *args)
{
    const xph_conv_args *a = args;
    return a->taps >= 1 && a->taps <= MOST_TAPS;
}

static int64_t block_width(const xph_conv_args *a)
{
    return int_max(1, int_min(CHANNELS, MOST_TAPS / a->taps));
}

static const real no_input[CHANNELS] = {0};

/* One stream and one block of channels. */
typedef struct place {
    const xph_conv_args *a;
    int64_t stream, channel, channels;
    int64_t seen; /* inputs that can be seen from the frame: since the last reset, at most taps */
} place;

static place place_at(const xph_conv_args *a, int64_t stream, int64_t channel)
{
    return (place){a, stream, channel, int_min(block_width(a), a->width - channel),
                   a->state_in ? a->taps - 1 : 0};
}

/* To be called for t = 0, 1, 2, ... in order. */
static void enter_frame(place *p, int64_t t)
{
    const uint8_t *reset = p->a->reset;
    if (reset && reset[p->stream * p->a->time + t]) p->seen = 0;
    p->seen = int_min(p->seen + 1, p->a->taps);
}

/* Offset of row `row` of a state of this stream, 0 the oldest. */
static int64_t state_at(const place *p, int64_t row)
{
    return p->stream * p->a->ld_state + row * p->a->width + p->channel;
}

/* The inputs of frame t - lag as seen from frame t. */
static const real *input_at(const place *p, int64_t t, int64_t lag)
{
    const xph_conv_args *a = p->a;
    const real *x = a->x, *state = a->state_in;
    if (lag >= p->seen) return no_input;
    if (t >= lag) return x + (p->stream * a->time + t - lag) * a->ldx + p->channel;
    return state + state_at(p, a->taps - 1 + t - lag);
}

/* Weights of the block turned to [taps][channels]. */
static void turn_weights(const place *p, real *turned)
{
    const real *w = p->a->w;
    for (int64_t j = 0; j < p->a->taps; j++)
        for (int64_t c = 0; c < p->channels; c++)
            turned[j * p->channels + c] = w[(p->channel + c) * p->a->taps + j];
}

/* sum = bias + sum over the taps, oldest first. */
static void before_activation(const place *p, int64_t t, const real *restrict turned, real *restrict sum)
{
    const real *bias = p->a->bias;
    memcpy(sum, bias + p->channel, (size_t)p->channels * sizeof(real));
    for (int64_t j = 0; j < p->a->taps; j++) {
        const real *restrict x = input_at(p, t, p->a->taps - 1 - j), *restrict w = turned + j * p->channels;
        for (int64_t c = 0; c < p->channels; c++) sum[c] = FMA(w[c], x[c], sum[c]);
    }
}

/* Oldest row first, so that state_out may be state_in: a row moves towards the old end, and is read before
 * that. */
static void save_state(const place *p)
{
    const xph_conv_args *a = p->a;
    real *state = a->state_out;
    for (int64_t row = 0; state && row < a->taps - 1; row++) {
        const real *from = input_at(p, a->time - 1, a->taps - 2 - row);
        memmove(state + state_at(p, row), from, (size_t)p->channels * sizeof(real));
    }
}

static int64_t conv_items(const void *args)
{
    const xph_conv_args *a = args;
    return a->batch * blocks_of(a->width, block_width(a));
}

static void conv_place(const xph_conv_args *a, int64_t stream, int64_t channel)
{
    real turned[MOST_TAPS], sum[CHANNELS];
    place p = place_at(a, stream, channel);
    turn_weights(&p, turned);
    for (int64_t t = 0; t < a->time; t++) {
        real *restrict y = (real *)a->y + (stream * a->time + t) * a->ldy + channel;
        enter_frame(&p, t);
        before_activation(&p, t, turned, sum);
        XPH_VECTOR
        for (int64_t c = 0; c < p.channels; c++) y[c] = real_silu(sum[c]);
    }
    save_state(&p);
}

static void conv_run(const void *args, int64_t begin, int64_t end)
{
    const xph_conv_args *a = args;
    int64_t width = block_width(a), blocks = blocks_of(a->width, width);
    for (int64_t i = begin; i < end; i++) conv_place(a, i / blocks, i % blocks * width);
}

const xph_candidate XPH_LIST(conv)[] = {
    {.name = XPH_LABEL("conv"), .accepts = conv_accepts, .phase = {{conv_items, conv_run}}},
    XPH_LIST_END,
};

/* ---- gradient ---- */

/* Where the gradient of the input `lag` frames before t goes; NULL: nowhere. */
static real *input_grad_at(const place *p, const xph_conv_grad_args *g, int64_t t, int64_t lag)
{
    const xph_conv_args *a = p->a;
    real *dx = g->dx, *dstate = g->dstate_in;
    if (lag >= p->seen) return NULL;
    if (t >= lag) return dx + (p->stream * a->time + t - lag) * g->lddx + p->channel;
    return dstate ? dstate + state_at(p, a->taps - 1 + t - lag) : NULL;
}

/* Frame t: gradients of its inputs and weights from dp, the gradient before the activation. The input of the
 * frame itself meets its first term here, older ones are added to. */
static void spread_frame(const place *p, const xph_conv_grad_args *g, int64_t t, const real *restrict turned,
                         const real *restrict dp, real *restrict dw)
{
    int64_t taps = p->a->taps;
    for (int64_t lag = 0; lag < taps; lag++) {
        int64_t j = taps - 1 - lag;
        const real *restrict x = input_at(p, t, lag), *restrict w = turned + j * p->channels;
        real *restrict dx = input_grad_at(p, g, t, lag), *restrict dwj = dw + j * p->channels;
        for (int64_t c = 0; c < p->channels; c++) dwj[c] = FMA(dp[c], x[c], dwj[c]);
        if (!dx) continue;
        for (int64_t c = 0; c < p->channels; c++) dx[c] = lag ? FMA(dp[c], w[c], dx[c]) : dp[c] * w[c];
    }
}

/* The rows of state_out are inputs, so their gradients are too. */
static void spread_state(const place *p, const xph_conv_grad_args *g)
{
    const real *dstate = g->dstate_out;
    int64_t taps = p->a->taps;
    for (int64_t row = 0; dstate && row < taps - 1; row++) {
        const real *from = dstate + state_at(p, row);
        real *dx = input_grad_at(p, g, p->a->time - 1, taps - 2 - row);
        for (int64_t c = 0; dx && c < p->channels; c++) dx[c] += from[c];
    }
}

static void clear_state_grad(const place *p, const xph_conv_grad_args *g)
{
    real *dstate = g->dstate_in;
    for (int64_t row = 0; dstate && row < p->a->taps - 1; row++)
        memset(dstate + state_at(p, row), 0, (size_t)p->channels * sizeof(real));
}

static void add_weight_grads(const place *p, const xph_conv_grad_args *g, const real *dw, const real *dbias)
{
    real *to = g->dw, *to_bias = g->dbias;
    for (int64_t c = 0; c < p->channels; c++) {
        for (int64_t j = 0; j < p->a->taps; j++)
            to[(p->channel + c) * p->a->taps + j] += dw[j * p->channels + c];
        to_bias[p->channel + c] += dbias[c];
    }
}

static void grad_place(const xph_conv_grad_args *g, int64_t stream, int64_t channel)
{
    const xph_conv_args *a = &g->fwd;
    real turned[MOST_TAPS], dw[MOST_TAPS] = {0}, dbias[CHANNELS] = {0}, sum[CHANNELS], dp[CHANNELS];
    place p = place_at(a, stream, channel);
    turn_weights(&p, turned);
    clear_state_grad(&p, g);
    for (int64_t t = 0; t < a->time; t++) {
        const real *restrict dy = (const real *)g->dy + (stream * a->time + t) * g->lddy + channel;
        enter_frame(&p, t);
        before_activation(&p, t, turned, sum);
        XPH_VECTOR
        for (int64_t c = 0; c < p.channels; c++) dp[c] = dy[c] * real_silu_slope(sum[c]);
        for (int64_t c = 0; c < p.channels; c++) dbias[c] += dp[c];
        spread_frame(&p, g, t, turned, dp, dw);
    }
    spread_state(&p, g);
    add_weight_grads(&p, g, dw, dbias);
}

static int64_t grad_items(const void *args)
{
    const xph_conv_grad_args *g = args;
    return blocks_of(g->fwd.width, block_width(&g->fwd));
}

static void grad_run(const void *args, int64_t begin, int64_t end)
{
    const xph_conv_grad_args *g = args;
    int64_t width = block_width(&g->fwd);
    for (int64_t i = begin; i < end; i++)
        for (int64_t b = 0; b < g->fwd.batch; b++) grad_place(g, b, i * width);
}

static bool grad_accepts(const void *args)
{
    return conv_accepts(&((const xph_conv_grad_args *)args)->fwd);
}

const xph_candidate XPH_LIST(conv_grad)[] = {
    {.name = XPH_LABEL("conv_grad"), .accepts = grad_accepts, .phase = {{grad_items, grad_run}}},
    XPH_LIST_END,
};
