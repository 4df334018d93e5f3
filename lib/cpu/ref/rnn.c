/* LSTM and GRU: what recurs. The input parts of the gates are made before, by one linear over all frames.
 *
 * Products with the recurrent weights are those of linear.c, called frame by frame for a block of streams:
 * each gate starts from its bias and takes h[0], h[1], ... in order, then joins the input part, gate = gx +
 * (bias + W h). The sums of one stream do not depend on which others are in its block.
 *
 * Backward: W is packed the other way round; then every block of streams goes back through its frames,
 * leaving the gradients of the gates and the h before each frame; then dw and dbias are those of a linear
 * layer over all rows. */
#include "cpu/ref/real.h"

enum { STREAMS = 8 }; /* of one block: share every weight that is loaded */

XPH_INLINE int64_t gates_of(const xph_rnn_args *args)
{
    return (args->kind == XPH_RNN_LSTM ? 4 : 3) * args->hidden;
}

XPH_INLINE int64_t state_width(const xph_rnn_args *args)
{
    return (args->kind == XPH_RNN_LSTM ? 2 : 1) * args->hidden;
}

XPH_INLINE int64_t saved_width(const xph_rnn_args *args)
{
    return (args->kind == XPH_RNN_LSTM ? 5 : 4) * args->hidden;
}

XPH_INLINE int64_t streams_per_item(const xph_rnn_args *args)
{
    return args->batch < 2 * STREAMS ? 1 : STREAMS;
}

static int64_t stream_items(const void *given)
{
    const xph_rnn_args *args = given;
    return blocks_of(args->batch, streams_per_item(args));
}

/* The candidate that takes everything. */
static const xph_candidate *last_of(const xph_candidate *list)
{
    while (list[1].name) list++;
    return list;
}

static void linear_now(const xph_linear_args *linear)
{
    const xph_phase *phase = last_of(XPH_LIST(linear))->phase;
    phase->run(linear, 0, phase->items(linear));
}

/* ---- forward ---- */

/* Scratch of one stream: state h (| c), then the recurrent part of the gates. */
XPH_INLINE int64_t forward_reals(const xph_rnn_args *args)
{
    return state_width(args) + gates_of(args);
}

static size_t forward_scratch(const void *given)
{
    const xph_rnn_args *args = given;
    return (size_t)(args->batch * forward_reals(args)) * sizeof(real);
}

static void state_load(const xph_rnn_args *args, int64_t stream, real *state)
{
    size_t bytes = (size_t)state_width(args) * sizeof(real);
    if (args->state_in)
        memcpy(state, (const real *)args->state_in + stream * args->ld_state, bytes);
    else
        memset(state, 0, bytes);
}

static void lstm_cell(const xph_rnn_args *args, int64_t row, const real *recurrent, real *state)
{
    int64_t hidden = args->hidden;
    const real *gx = (const real *)args->gx + row * args->ldgx;
    real *h = state, *c = state + hidden, *y = (real *)args->y + row * args->ldy;
    real *saved = args->saved ? (real *)args->saved + row * 5 * hidden : NULL;
    XPH_VECTOR
    for (int64_t k = 0; k < hidden; k++) {
        real i = real_sigmoid(gx[k] + recurrent[k]);
        real f = real_sigmoid(gx[hidden + k] + recurrent[hidden + k]);
        real g = real_tanh(gx[2 * hidden + k] + recurrent[2 * hidden + k]);
        real o = real_sigmoid(gx[3 * hidden + k] + recurrent[3 * hidden + k]);
        c[k] = FMA(f, c[k], i * g);
        h[k] = o * real_tanh(c[k]);
        y[k] = h[k];
        if (saved) {
            saved[k] = i;
            saved[hidden + k] = f;
            saved[2 * hidden + k] = g;
            saved[3 * hidden + k] = o;
            saved[4 * hidden + k] = c[k];
        }
    }
}

static void gru_cell(const xph_rnn_args *args, int64_t row, const real *recurrent, real *h)
{
    int64_t hidden = args->hidden;
    const real *gx = (const real *)args->gx + row * args->ldgx;
    real *y = (real *)args->y + row * args->ldy;
    real *saved = args->saved ? (real *)args->saved + row * 4 * hidden : NULL;
    XPH_VECTOR
    for (int64_t k = 0; k < hidden; k++) {
        real m = recurrent[2 * hidden + k];
        real r = real_sigmoid(gx[k] + recurrent[k]);
        real z = real_sigmoid(gx[hidden + k] + recurrent[hidden + k]);
        real n = real_tanh(FMA(r, m, gx[2 * hidden + k]));
        h[k] = FMA(z, h[k] - n, n);
        y[k] = h[k];
        if (saved) {
            saved[k] = r;
            saved[hidden + k] = z;
            saved[2 * hidden + k] = n;
            saved[3 * hidden + k] = m;
        }
    }
}

/* One frame of the streams from `first` on; room: forward_reals of each. */
static void frame(const xph_rnn_args *args, int64_t first, int64_t streams, int64_t t, real *room)
{
    int64_t width = state_width(args), each = forward_reals(args);
    for (int64_t r = 0; r < streams && args->reset; r++)
        if (args->reset[(first + r) * args->time + t])
            memset(room + r * each, 0, (size_t)width * sizeof(real));
    xph_linear_args product = {.type = args->type,
                               .rows = streams,
                               .in = args->hidden,
                               .out = gates_of(args),
                               .x = room,
                               .ldx = each,
                               .w = args->w,
                               .packed = args->packed,
                               .bias = args->bias,
                               .y = room + width,
                               .ldy = each};
    linear_now(&product);
    for (int64_t r = 0; r < streams; r++) {
        int64_t row = (first + r) * args->time + t;
        real *state = room + r * each;
        if (args->kind == XPH_RNN_LSTM)
            lstm_cell(args, row, state + width, state);
        else
            gru_cell(args, row, state + width, state);
    }
}

static void forward_run(const void *given, int64_t begin, int64_t end)
{
    const xph_rnn_args *args = given;
    int64_t block = streams_per_item(args), each = forward_reals(args);
    for (int64_t first = begin * block; first < int_min(args->batch, end * block); first += block) {
        int64_t streams = int_min(block, args->batch - first);
        real *room = (real *)args->scratch + first * each;
        for (int64_t r = 0; r < streams; r++) state_load(args, first + r, room + r * each);
        for (int64_t t = 0; t < args->time; t++) frame(args, first, streams, t, room);
        for (int64_t r = 0; r < streams && args->state_out; r++)
            memcpy((real *)args->state_out + (first + r) * args->ld_state, room + r * each,
                   (size_t)state_width(args) * sizeof(real));
    }
}

/* ---- backward ---- */

/* Parts of the scratch: W packed for products over its gates [panels][gates][XPH_PANEL]; per stream what
 * comes back from the next frame, dh | dc; h before every row [M, H]; GRU: gradients of the recurrent part of
 * the gates [M, 3H]. */
typedef struct back {
    real *packed, *carried, *before, *gates;
} back;

static int64_t packed_reals(const xph_rnn_args *args)
{
    return blocks_of(args->hidden, XPH_PANEL) * XPH_PANEL * gates_of(args);
}

static back back_of(const xph_rnn_grad_args *grad)
{
    const xph_rnn_args *args = &grad->fwd;
    back k = {.packed = grad->scratch};
    k.carried = k.packed + packed_reals(args);
    k.before = k.carried + args->batch * 2 * args->hidden;
    k.gates = args->kind == XPH_RNN_LSTM ? grad->dgx : k.before + args->batch * args->time * args->hidden;
    return k;
}

static size_t grad_scratch(const void *given)
{
    const xph_rnn_args *args = &((const xph_rnn_grad_args *)given)->fwd;
    int64_t rows = args->batch * args->time;
    int64_t reals = packed_reals(args) + args->batch * 2 * args->hidden + rows * args->hidden;
    if (args->kind == XPH_RNN_GRU) reals += rows * gates_of(args);
    return (size_t)reals * sizeof(real);
}

/* Row distance of back.gates. */
XPH_INLINE int64_t gates_ld(const xph_rnn_grad_args *grad)
{
    return grad->fwd.kind == XPH_RNN_LSTM ? grad->lddgx : gates_of(&grad->fwd);
}

static int64_t pack_items(const void *given)
{
    return blocks_of(((const xph_rnn_grad_args *)given)->fwd.hidden, XPH_PANEL);
}

static void pack_run(const void *given, int64_t begin, int64_t end)
{
    const xph_rnn_grad_args *grad = given;
    int64_t hidden = grad->fwd.hidden, gates = gates_of(&grad->fwd);
    for (int64_t panel = begin; panel < end; panel++) {
        const real *from = (const real *)grad->fwd.w + panel * XPH_PANEL;
        real *to = back_of(grad).packed + panel * XPH_PANEL * gates;
        int64_t columns = int_min(XPH_PANEL, hidden - panel * XPH_PANEL);
        for (int64_t g = 0; g < gates; g++, from += hidden, to += XPH_PANEL)
            for (int64_t c = 0; c < XPH_PANEL; c++) to[c] = c < columns ? from[c] : R(0.0);
    }
}

/* The state before a frame, part 0 (h) or 1 (c); NULL where it is zero. */
XPH_INLINE const real *state_before(const xph_rnn_args *args, int64_t stream, int64_t t, int part)
{
    int64_t row = stream * args->time + t;
    if (args->reset && args->reset[row]) return NULL;
    if (t > 0 && part == 0) return (const real *)args->y + (row - 1) * args->ldy;
    if (t > 0) return (const real *)args->saved + (row - 1) * saved_width(args) + 4 * args->hidden;
    if (!args->state_in) return NULL;
    return (const real *)args->state_in + stream * args->ld_state + part * args->hidden;
}

/* dh, dc: gradient from the next frame; dc is taken back one frame, dh is left for the product with W. */
static void lstm_back(const xph_rnn_grad_args *grad, int64_t stream, int64_t t, real *dh, real *dc)
{
    const xph_rnn_args *args = &grad->fwd;
    int64_t hidden = args->hidden, row = stream * args->time + t;
    const real *s = (const real *)args->saved + row * 5 * hidden, *before = state_before(args, stream, t, 1);
    const real *dy = (const real *)grad->dy + row * grad->lddy;
    real *d = (real *)grad->dgx + row * grad->lddgx, one = R(1.0);
    XPH_VECTOR
    for (int64_t k = 0; k < hidden; k++) {
        real i = s[k], f = s[hidden + k], g = s[2 * hidden + k], o = s[3 * hidden + k];
        real tanh_c = real_tanh(s[4 * hidden + k]), dh_k = dy[k] + dh[k];
        real dc_k = FMA(dh_k * o, FMA(-tanh_c, tanh_c, one), dc[k]);
        d[k] = dc_k * g * i * (one - i);
        d[hidden + k] = before ? dc_k * before[k] * f * (one - f) : R(0.0);
        d[2 * hidden + k] = dc_k * i * FMA(-g, g, one);
        d[3 * hidden + k] = dh_k * tanh_c * o * (one - o);
        dc[k] = dc_k * f;
        dh[k] = R(0.0);
    }
}

/* dh is left with the part that goes straight back to h, dh z; the product with W is added to it. behind:
 * gradients of the recurrent part, which differ by the reset gate. */
static void gru_back(const xph_rnn_grad_args *grad, int64_t stream, int64_t t, real *dh, real *behind)
{
    const xph_rnn_args *args = &grad->fwd;
    int64_t hidden = args->hidden, row = stream * args->time + t;
    const real *s = (const real *)args->saved + row * 4 * hidden, *before = state_before(args, stream, t, 0);
    const real *dy = (const real *)grad->dy + row * grad->lddy;
    real *d = (real *)grad->dgx + row * grad->lddgx, one = R(1.0);
    XPH_VECTOR
    for (int64_t k = 0; k < hidden; k++) {
        real r = s[k], z = s[hidden + k], n = s[2 * hidden + k], m = s[3 * hidden + k], dh_k = dy[k] + dh[k];
        real dn = dh_k * (one - z) * FMA(-n, n, one);
        real dr = dn * m * r * (one - r);
        real dz = dh_k * ((before ? before[k] : R(0.0)) - n) * z * (one - z);
        d[k] = behind[k] = dr;
        d[hidden + k] = behind[hidden + k] = dz;
        d[2 * hidden + k] = dn;
        behind[2 * hidden + k] = dn * r;
        dh[k] = dh_k * z;
    }
}

/* Keeps the h before a row for dw. */
static void keep_before(const xph_rnn_args *args, int64_t stream, int64_t t, real *to)
{
    const real *h = state_before(args, stream, t, 0);
    size_t bytes = (size_t)args->hidden * sizeof(real);
    if (h)
        memcpy(to, h, bytes);
    else
        memset(to, 0, bytes);
}

static void frame_back(const xph_rnn_grad_args *grad, const back *k, int64_t first, int64_t streams,
                       int64_t t)
{
    const xph_rnn_args *args = &grad->fwd;
    int64_t hidden = args->hidden, ld = gates_ld(grad), row = first * args->time + t;
    real *carried = k->carried + first * 2 * hidden;
    for (int64_t r = 0; r < streams; r++) {
        real *dh = carried + r * 2 * hidden;
        keep_before(args, first + r, t, k->before + (row + r * args->time) * hidden);
        if (args->kind == XPH_RNN_LSTM)
            lstm_back(grad, first + r, t, dh, dh + hidden);
        else
            gru_back(grad, first + r, t, dh, k->gates + (row + r * args->time) * ld);
    }
    xph_linear_args product = {.type = args->type,
                               .rows = streams,
                               .in = gates_of(args),
                               .out = hidden,
                               .x = k->gates + row * ld,
                               .ldx = args->time * ld,
                               .packed = k->packed,
                               .residual = carried,
                               .ldr = 2 * hidden,
                               .y = carried,
                               .ldy = 2 * hidden};
    linear_now(&product);
    for (int64_t r = 0; r < streams && args->reset; r++)
        if (args->reset[row + r * args->time])
            memset(carried + r * 2 * hidden, 0, (size_t)(2 * hidden) * sizeof(real));
}

static int64_t grad_items(const void *given)
{
    return stream_items(&((const xph_rnn_grad_args *)given)->fwd);
}

static void grad_run(const void *given, int64_t begin, int64_t end)
{
    const xph_rnn_grad_args *grad = given;
    const xph_rnn_args *args = &grad->fwd;
    back k = back_of(grad);
    int64_t block = streams_per_item(args), hidden = args->hidden;
    size_t bytes = (size_t)state_width(args) * sizeof(real);
    for (int64_t first = begin * block; first < int_min(args->batch, end * block); first += block) {
        int64_t streams = int_min(block, args->batch - first);
        real *carried = k.carried + first * 2 * hidden;
        memset(carried, 0, (size_t)(streams * 2 * hidden) * sizeof(real));
        for (int64_t r = 0; r < streams && grad->dstate_out; r++)
            memcpy(carried + r * 2 * hidden, (const real *)grad->dstate_out + (first + r) * args->ld_state,
                   bytes);
        for (int64_t t = args->time; t-- > 0;) frame_back(grad, &k, first, streams, t);
        for (int64_t r = 0; r < streams && grad->dstate_in; r++)
            memcpy((real *)grad->dstate_in + (first + r) * args->ld_state, carried + r * 2 * hidden, bytes);
    }
}

/* dw and dbias as of a linear layer with the states before as inputs: the second and third phase of its
 * gradient, which do not need each other. */
static xph_linear_grad_args weights_of(const xph_rnn_grad_args *grad)
{
    const xph_rnn_args *args = &grad->fwd;
    back k = back_of(grad);
    return (xph_linear_grad_args){.type = args->type,
                                  .rows = args->batch * args->time,
                                  .in = args->hidden,
                                  .out = gates_of(args),
                                  .x = k.before,
                                  .ldx = args->hidden,
                                  .w = args->w,
                                  .dy = k.gates,
                                  .lddy = gates_ld(grad),
                                  .dw = grad->dw,
                                  .dbias = grad->dbias};
}

static int64_t weight_items(const void *given)
{
    xph_linear_grad_args linear = weights_of(given);
    const xph_phase *phase = last_of(XPH_LIST(linear_grad))->phase;
    return phase[1].items(&linear) + phase[2].items(&linear);
}

static void weight_run(const void *given, int64_t begin, int64_t end)
{
    xph_linear_grad_args linear = weights_of(given);
    const xph_phase *phase = last_of(XPH_LIST(linear_grad))->phase;
    int64_t first = phase[1].items(&linear);
    if (begin < first) phase[1].run(&linear, begin, int_min(first, end));
    if (end > first) phase[2].run(&linear, int_max(begin, first) - first, end - first);
}

const xph_candidate XPH_LIST(rnn)[] = {
    {XPH_LABEL("rnn"), NULL, forward_scratch, {{stream_items, forward_run}}},
    XPH_LIST_END,
};

const xph_candidate XPH_LIST(rnn_grad)[] = {
    {XPH_LABEL("rnn_grad"),
     NULL,
     grad_scratch,
     {{pack_items, pack_run}, {grad_items, grad_run}, {weight_items, weight_run}}},
    XPH_LIST_END,
};
