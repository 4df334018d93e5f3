/* Causal depthwise convolution with SiLU, and its gradient.
 *
 * An item of the forward is one stream and a block of channels: loops over channels vectorise, time runs in
 * order. The input `lag` frames back is the row of x, a row of the carried state, or zeros when a reset lies
 * between. The gradient has blocks of channels as items and takes the streams in order: per stream dw and
 * dbias are summed from 0 over time, and these sums added in order to what is there.
 */
#include "cpu/kernels/real.h"
#include "cpu/simd/columns.h"
#include "cpu/simd/lanes.h"
#include "cpu/simd/vec_element.h"

/* Weights of a block stay below MOST_WEIGHTS: they lie on the stack. */
enum { CHANNELS = 64, MOST_TAPS = 256, MOST_WEIGHTS = 1024, COMMON_TAPS = 4 };

static bool conv_accepts(const void *args)
{
    const xph_conv_args *a = args;
    return a->taps >= 1 && a->taps <= MOST_TAPS;
}

static int64_t block_width(const xph_conv_args *a)
{
    return int_max(1, int_min(CHANNELS, MOST_WEIGHTS / a->taps));
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

/* Weights of the block transposed to [taps][channels]. */
static void transpose_weights(const place *p, real *transposed)
{
    const real *w = p->a->w;
    for (int64_t j = 0; j < p->a->taps; j++)
        for (int64_t c = 0; c < p->channels; c++)
            transposed[j * p->channels + c] = w[(p->channel + c) * p->a->taps + j];
}

/* Whole registers go by plain loads and stores: a load cannot take its number from a masked store under
 * way. */
XPH_INLINE vec some_load(const real *from, int64_t count)
{
    return count >= VEC ? vec_load(from) : vec_load_part(from, count);
}
XPH_INLINE void some_store(real *to, vec v, int64_t count)
{
    if (count >= VEC)
        vec_store(to, v);
    else
        vec_store_part(to, v, count);
}

/* Columns c.. of the block before the activation: bias + sum over the taps, oldest first. `inputs` are the
 * rows of input_at, oldest first. */
XPH_INLINE vec before_activation(const place *p, const real *const *inputs, const real *transposed, int64_t c)
{
    const int64_t left = p->channels - c;
    vec sum = some_load((const real *)p->a->bias + p->channel + c, left);
    for (int64_t j = 0; j < p->a->taps; j++)
        sum = vec_fma(some_load(transposed + j * p->channels + c, left), some_load(inputs[j] + c, left), sum);
    return sum;
}

/* The inputs of frame t, oldest first. */
static void inputs_of(const place *p, int64_t t, const real **inputs)
{
    for (int64_t j = 0; j < p->a->taps; j++) inputs[j] = input_at(p, t, p->a->taps - 1 - j);
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

/* ---- COMMON_TAPS taps: VEC channels through all frames, what was seen in registers ---- */

enum { OLDER = COMMON_TAPS - 1 };

typedef struct strip {
    vec w[COMMON_TAPS], bias;
    vec seen[OLDER]; /* inputs before the frame, oldest first */
} strip;

/* Weights of the strip, a register per tap. */
XPH_INLINE void strip_weights(const place *p, int64_t c, vec w[COMMON_TAPS])
{
    real column[COMMON_TAPS * VEC];
    const real *row[VEC];
    for (int64_t r = 0; r < VEC; r++) /* of channels that are not there, those of the last */
        row[r] = (const real *)p->a->w + (p->channel + int_min(c + r, p->channels - 1)) * COMMON_TAPS;
    columns_in(row, 0, COMMON_TAPS, column, VEC);
    XPH_UNROLL
    for (int64_t j = 0; j < COMMON_TAPS; j++) w[j] = vec_load(column + j * VEC);
}

XPH_INLINE strip strip_at(const place *p, int64_t c)
{
    const int64_t left = p->channels - c;
    strip s = {.bias = some_load((const real *)p->a->bias + p->channel + c, left)};
    strip_weights(p, c, s.w);
    XPH_UNROLL
    for (int64_t j = 0; j < OLDER; j++)
        s.seen[j] = p->a->state_in ? some_load((const real *)p->a->state_in + state_at(p, j) + c, left)
                                   : vec_all(R(0.0));
    return s;
}

/* Sum before the activation of a frame with input x. */
XPH_INLINE vec strip_sum(const strip *s, vec x)
{
    vec sum = s->bias;
    XPH_UNROLL
    for (int64_t j = 0; j < OLDER; j++) sum = vec_fma(s->w[j], s->seen[j], sum);
    return vec_fma(s->w[OLDER], x, sum);
}

XPH_INLINE void strip_shift(strip *s, vec x)
{
    XPH_UNROLL
    for (int64_t j = 0; j + 1 < OLDER; j++) s->seen[j] = s->seen[j + 1];
    s->seen[OLDER - 1] = x;
}

XPH_INLINE void strip_forget(strip *s)
{
    XPH_UNROLL
    for (int64_t j = 0; j < OLDER; j++) s->seen[j] = vec_all(R(0.0));
}

/* Rows lie pages apart: the next strip's lines are prefetched while this one's are at work. */
XPH_INLINE void prefetch_beside(const real *here)
{
    __builtin_prefetch(here + VEC);
}

/* What was seen at last is the state. */
XPH_INLINE void strip_save(const place *p, const strip *s, int64_t c)
{
    real *state = p->a->state_out;
    XPH_UNROLL
    for (int64_t j = 0; state && j < OLDER; j++)
        some_store(state + state_at(p, j) + c, s->seen[j], p->channels - c);
}

static void conv_strip(const place *p, int64_t c)
{
    const xph_conv_args *a = p->a;
    const int64_t left = p->channels - c, row = p->stream * a->time;
    const real *x = (const real *)a->x + row * a->ldx + p->channel + c;
    real *y = (real *)a->y + row * a->ldy + p->channel + c;
    strip s = strip_at(p, c);
    for (int64_t t = 0; t < a->time; t++, x += a->ldx, y += a->ldy) {
        vec now = some_load(x, left);
        if (left > VEC) prefetch_beside(x), prefetch_beside(y);
        if (a->reset && a->reset[row + t]) strip_forget(&s);
        some_store(y, vec_silu(strip_sum(&s, now)), left);
        strip_shift(&s, now);
    }
    strip_save(p, &s, c);
}

static void conv_frames(place *p)
{
    const xph_conv_args *a = p->a;
    real transposed[MOST_WEIGHTS];
    const real *inputs[MOST_TAPS];
    transpose_weights(p, transposed);
    for (int64_t t = 0; t < a->time; t++) {
        real *y = (real *)a->y + (p->stream * a->time + t) * a->ldy + p->channel;
        enter_frame(p, t);
        inputs_of(p, t, inputs);
        for (int64_t c = 0; c < p->channels; c += VEC)
            some_store(y + c, vec_silu(before_activation(p, inputs, transposed, c)), p->channels - c);
    }
}

static void conv_place(const xph_conv_args *a, int64_t stream, int64_t channel)
{
    place p = place_at(a, stream, channel);
    if (a->taps == COMMON_TAPS) {
        for (int64_t c = 0; c < p.channels; c += VEC) conv_strip(&p, c);
    } else {
        conv_frames(&p);
        save_state(&p);
    }
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

/* Frame t: dp, the gradient before the activation, and from it the gradients of bias, weights and inputs.
 * The input of the frame itself meets its first term here, older ones are added to. `dx` are the rows of
 * input_grad_at, oldest first. */
XPH_INLINE void back_frame(const place *p, const real *const *inputs, real *const *dx, const real *transposed,
                           int64_t taps, const real *dy, real *dw, real *dbias)
{
    for (int64_t c = 0; c < p->channels; c += VEC) {
        const int64_t left = p->channels - c;
        vec slope = vec_silu_slope(before_activation(p, inputs, transposed, c));
        vec dp = some_load(dy + c, left) * slope;
        some_store(dbias + c, some_load(dbias + c, left) + dp, left);
        for (int64_t j = 0; j < taps; j++) {
            real *dwj = dw + j * p->channels + c;
            some_store(dwj, vec_fma(dp, some_load(inputs[j] + c, left), some_load(dwj, left)), left);
            if (!dx[j]) continue;
            vec w = some_load(transposed + j * p->channels + c, left);
            vec to = j + 1 < taps ? vec_fma(dp, w, some_load(dx[j] + c, left)) : dp * w;
            some_store(dx[j] + c, to, left);
        }
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

/* Gradients of the inputs before a frame, oldest first, and where they go when they are whole; NULL:
 * nowhere. */
typedef struct pending {
    vec dx[OLDER];
    real *to[OLDER];
} pending;

XPH_INLINE pending pending_at(const place *p, const xph_conv_grad_args *g, int64_t c)
{
    pending o;
    real *dstate = g->dstate_in;
    for (int64_t j = 0; j < OLDER; j++) {
        o.dx[j] = vec_all(R(0.0));
        o.to[j] = p->a->state_in && dstate ? dstate + state_at(p, j) + c : NULL;
    }
    return o;
}

/* All pending gradients are complete: nothing later adds to them. */
XPH_INLINE void pending_store(pending *o, int64_t left)
{
    for (int64_t j = 0; j < OLDER; j++) {
        if (o->to[j]) some_store(o->to[j], o->dx[j], left);
        o->to[j] = NULL;
    }
}

/* A frame with dp, the gradient before the activation, whose own input's gradient goes to `to`. */
XPH_INLINE void pending_add(pending *o, const strip *s, vec dp, real *to, int64_t left)
{
    XPH_UNROLL
    for (int64_t j = 0; j < OLDER; j++) o->dx[j] = vec_fma(dp, s->w[j], o->dx[j]);
    if (o->to[0]) some_store(o->to[0], o->dx[0], left);
    XPH_UNROLL
    for (int64_t j = 0; j + 1 < OLDER; j++) o->dx[j] = o->dx[j + 1], o->to[j] = o->to[j + 1];
    o->dx[OLDER - 1] = dp * s->w[OLDER];
    o->to[OLDER - 1] = to;
}

static void grad_strip(const place *p, const xph_conv_grad_args *g, int64_t c, real *dw, real *dbias)
{
    const xph_conv_args *a = p->a;
    const int64_t left = p->channels - c, row = p->stream * a->time;
    const real *x = (const real *)a->x + row * a->ldx + p->channel + c;
    const real *dy = (const real *)g->dy + row * g->lddy + p->channel + c;
    real *dx = (real *)g->dx + row * g->lddx + p->channel + c;
    strip s = strip_at(p, c);
    pending o = pending_at(p, g, c);
    vec sum = vec_all(R(0.0)), sums[COMMON_TAPS] = {{0}};
    for (int64_t t = 0; t < a->time; t++, x += a->ldx, dy += g->lddy, dx += g->lddx) {
        vec now = some_load(x, left), up = some_load(dy, left);
        if (left > VEC) prefetch_beside(x), prefetch_beside(dy), prefetch_beside(dx);
        if (a->reset && a->reset[row + t]) strip_forget(&s), pending_store(&o, left);
        vec dp = up * vec_silu_slope(strip_sum(&s, now));
        sum += dp;
        XPH_UNROLL
        for (int64_t j = 0; j < OLDER; j++) sums[j] = vec_fma(dp, s.seen[j], sums[j]);
        sums[OLDER] = vec_fma(dp, now, sums[OLDER]);
        pending_add(&o, &s, dp, dx, left);
        strip_shift(&s, now);
    }
    pending_store(&o, left);
    some_store(dbias + c, sum, left);
    for (int64_t j = 0; j < COMMON_TAPS; j++) some_store(dw + j * p->channels + c, sums[j], left);
}

static void grad_frames(place *p, const xph_conv_grad_args *g, real *dw, real *dbias)
{
    const xph_conv_args *a = p->a;
    real transposed[MOST_WEIGHTS], *dx[MOST_TAPS];
    const real *inputs[MOST_TAPS];
    transpose_weights(p, transposed);
    for (int64_t t = 0; t < a->time; t++) {
        const real *dy = (const real *)g->dy + (p->stream * a->time + t) * g->lddy + p->channel;
        enter_frame(p, t);
        inputs_of(p, t, inputs);
        for (int64_t j = 0; j < a->taps; j++) dx[j] = input_grad_at(p, g, t, a->taps - 1 - j);
        back_frame(p, inputs, dx, transposed, a->taps, dy, dw, dbias);
    }
}

static void grad_place(const xph_conv_grad_args *g, int64_t stream, int64_t channel)
{
    const xph_conv_args *a = &g->fwd;
    real dw[MOST_WEIGHTS] = {0}, dbias[CHANNELS] = {0};
    place p = place_at(a, stream, channel);
    clear_state_grad(&p, g);
    if (a->taps == COMMON_TAPS) {
        for (int64_t c = 0; c < p.channels; c += VEC) grad_strip(&p, g, c, dw, dbias);
        for (int64_t t = 0; t < a->time; t++) enter_frame(&p, t);
    } else {
        grad_frames(&p, g, dw, dbias);
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
