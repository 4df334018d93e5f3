/* The blocks as nodes of an ONNX graph: one frame of every stream, f(LayerNorm(x)), then x + that. A kind that has no
 * function here is refused by its word. */
#include "model/layer.h"
#include "model/onnx_graph.h"

#include <stdio.h>

#define STEP_LEAST 0.001f /* of mamba_exphil */
#define STEP_MOST  0.1f
#define NEVER      1e30f /* what is not seen lies so far below what is */

typedef xph_onnx_value (*block_fn)(xph_onnx *g, const xph_block *block, xph_onnx_value x);

static xph_onnx_value residual(xph_onnx *g, xph_onnx_value x, xph_onnx_value f)
{
    return xph_onnx_both(g, "Add", "x", x, f);
}

/* ---- mamba ---------------------------------------------------------------------------------------------- */

/* Tensors of a block of the kind, by their places behind its first; -1: it has none. */
typedef struct mamba_tensors {
    int32_t in, conv, x, x_bias, dt, a_log, skip, out;
} mamba_tensors;

/* A linear whose bias is the tensor behind its weight. */
static xph_onnx_value biased(xph_onnx *g, const char *name, xph_onnx_value x, int64_t weight)
{
    return xph_onnx_linear(g, name, x, weight, weight + 1);
}

/* [N, D]: the convolution, with its latest inputs as state [N, D, taps - 1]. first: of its two tensors. */
static xph_onnx_value convolve(xph_onnx *g, int64_t first, xph_onnx_value x, int64_t width, int64_t taps)
{
    const int64_t dims[] = {-1, width, taps - 1};
    xph_onnx_value newest = xph_onnx_widen(g, "conv.newest", x, 2),
                   state = xph_onnx_state(g, "conv", 3, dims), weight = xph_onnx_tensor(g, first),
                   bias = xph_onnx_tensor(g, first + 1), begin = xph_onnx_axis(g, 1),
                   end = xph_onnx_ints(g, "conv.end", 1, &taps), axis = xph_onnx_axis(g, 2);
    xph_onnx_value window = xph_onnx_concat(g, "conv.window", state, newest, 2);
    xph_onnx_node(g, "Slice");
    xph_onnx_in(g, window);
    xph_onnx_in(g, begin);
    xph_onnx_in(g, end);
    xph_onnx_in(g, axis);
    xph_onnx_state_out(g, xph_onnx_out(g, "conv_out"), 3, dims);
    xph_onnx_value sum = xph_onnx_both(g, "Mul", "conv.products", window, weight);
    sum = xph_onnx_sum(g, "conv.sum", sum, 2, false);
    sum = xph_onnx_both(g, "Add", "conv.y", sum, bias);
    return xph_onnx_silu(g, "conv.active", sum);
}

/* What a scan goes by: delta [N, D], A [D, states] or what spreads to that, b and c [N, states]. */
typedef struct selection {
    xph_onnx_value delta, a, b, c;
} selection;

static xph_onnx_value rates(xph_onnx *g, int64_t a_log)
{
    xph_onnx_value a = xph_onnx_tensor(g, a_log);
    a = xph_onnx_of(g, "Exp", "A.exp", a);
    return xph_onnx_of(g, "Neg", "A", a);
}

/* ExPhil's: 1 to states in every channel. */
static xph_onnx_value fixed_rates(xph_onnx *g)
{
    const int64_t states = g->model->config.mamba_states;
    const size_t bytes = (size_t)states * sizeof(float);
    float *a = xph_alloc(g->model->context, bytes);
    xph_onnx_value value = {"A"};
    if (!a) {
        g->status = xph_no_memory(bytes, g->error);
        return value;
    }
    for (int64_t n = 0; n < states; n++) a[n] = -(float)(n + 1);
    value = xph_onnx_floats(g, "A", states, a);
    xph_free(g->model->context, a, bytes);
    return value;
}

/* Within the limits of ExPhil's steps. */
static xph_onnx_value limited(xph_onnx *g, xph_onnx_value delta)
{
    xph_onnx_value least = xph_onnx_float(g, "delta.least", STEP_LEAST),
                   most = xph_onnx_float(g, "delta.most", STEP_MOST);
    xph_onnx_node(g, "Clip");
    xph_onnx_in(g, delta);
    xph_onnx_in(g, least);
    xph_onnx_in(g, most);
    return xph_onnx_out(g, "delta.limited");
}

static selection select_of(xph_onnx *g, const mamba_tensors *t, int64_t first, xph_onnx_value v)
{
    static const char *const names[] = {"r", "b", "c"};
    const exphil_model_config *c = &g->model->config;
    const int64_t widths[] = {c->mamba_rank, c->mamba_states, c->mamba_states},
                  bias = t->x_bias < 0 ? -1 : first + t->x_bias;
    xph_onnx_value to[3], all = xph_onnx_linear(g, "x_proj", v, first + t->x, bias);
    xph_onnx_split(g, "x_proj", all, 1, 3, widths, names, to);
    xph_onnx_value delta = biased(g, "dt_proj", to[0], first + t->dt);
    delta = xph_onnx_of(g, "Softplus", "delta", delta);
    if (t->a_log >= 0)
        return (selection){.delta = delta, .a = rates(g, first + t->a_log), .b = to[1], .c = to[2]};
    return (selection){.delta = limited(g, delta), .a = fixed_rates(g), .b = to[1], .c = to[2]};
}

/* h = exp(delta A) h + delta v b, y = h c: [N, D], with h [N, D, states] as state. */
static xph_onnx_value scan(xph_onnx *g, xph_onnx_value v, const selection *s, int64_t width)
{
    const int64_t dims[] = {-1, width, g->model->config.mamba_states};
    xph_onnx_value h = xph_onnx_state(g, "scan", 3, dims),
                   decay = xph_onnx_widen(g, "delta.column", s->delta, 2);
    decay = xph_onnx_both(g, "Mul", "delta.A", decay, s->a);
    decay = xph_onnx_of(g, "Exp", "decay", decay);
    xph_onnx_value fresh = xph_onnx_both(g, "Mul", "delta.v", s->delta, v),
                   b = xph_onnx_widen(g, "b.row", s->b, 1);
    fresh = xph_onnx_widen(g, "delta.v.column", fresh, 2);
    fresh = xph_onnx_both(g, "Mul", "scan.fresh", fresh, b);
    h = xph_onnx_both(g, "Mul", "scan.kept", decay, h);
    h = xph_onnx_both(g, "Add", "scan_out", h, fresh);
    xph_onnx_state_out(g, h, 3, dims);
    xph_onnx_value c = xph_onnx_widen(g, "c.column", s->c, 2), axis = xph_onnx_axis(g, 2);
    h = xph_onnx_both(g, "MatMul", "scan.read", h, c);
    return xph_onnx_both(g, "Squeeze", "scan.y", h, axis);
}

static xph_onnx_value mamba_of(xph_onnx *g, const mamba_tensors *t, int64_t first, xph_onnx_value x)
{
    static const char *const names[] = {"x", "z"};
    const exphil_model_config *c = &g->model->config;
    const int64_t width = c->mamba_expand * c->hidden, widths[] = {width, width};
    xph_onnx_value u = xph_onnx_norm(g, "norm", x, first), half[2];
    xph_onnx_split(g, "in_proj", biased(g, "in_proj", u, first + t->in), 1, 2, widths, names, half);
    xph_onnx_value v = convolve(g, first + t->conv, half[0], width, c->mamba_taps);
    selection s = select_of(g, t, first, v);
    xph_onnx_value y = scan(g, v, &s, width);
    if (t->skip >= 0) {
        xph_onnx_value skip = xph_onnx_tensor(g, first + t->skip);
        skip = xph_onnx_both(g, "Mul", "skip", v, skip);
        y = xph_onnx_both(g, "Add", "scan.skipped", y, skip);
    }
    xph_onnx_value gate = xph_onnx_silu(g, "z", half[1]);
    y = xph_onnx_both(g, "Mul", "gated", y, gate);
    return residual(g, x, biased(g, "out_proj", y, first + t->out));
}

static xph_onnx_value mamba(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    static const mamba_tensors places = {2, 4, 6, -1, 7, 9, 10, 11};
    return mamba_of(g, &places, block->first, x);
}

static xph_onnx_value mamba_exphil(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    static const mamba_tensors places = {2, 4, 6, 7, 8, -1, -1, 10};
    return mamba_of(g, &places, block->first, x);
}

/* ---- lstm, gru ------------------------------------------------------------------------------------------ */

enum { R_NORM, R_IH = 2, R_HH, R_IH_BIAS, R_HH_BIAS };

/* first: of weight_ih, weight_hh and their biases. Written out rather than as the operator LSTM, whose weights would have
 * another order and could not be of fewer bits. */
static xph_onnx_value lstm(xph_onnx *g, xph_onnx_value u, int64_t first)
{
    static const char *const names[] = {"i", "f", "g", "o"};
    const int64_t hidden = g->model->config.hidden, dims[] = {-1, hidden},
                  widths[] = {hidden, hidden, hidden, hidden};
    xph_onnx_value h = xph_onnx_state(g, "h", 2, dims), c = xph_onnx_state(g, "c", 2, dims), gate[4];
    xph_onnx_value p = xph_onnx_linear(g, "ih", u, first, first + 2),
                   q = xph_onnx_linear(g, "hh", h, first + 1, first + 3);
    p = xph_onnx_both(g, "Add", "gates", p, q);
    xph_onnx_split(g, "gates", p, 1, 4, widths, names, gate);
    xph_onnx_value i = xph_onnx_of(g, "Sigmoid", "i", gate[0]), f = xph_onnx_of(g, "Sigmoid", "f", gate[1]),
                   t = xph_onnx_of(g, "Tanh", "g", gate[2]), o = xph_onnx_of(g, "Sigmoid", "o", gate[3]);
    c = xph_onnx_both(g, "Mul", "c.kept", f, c);
    t = xph_onnx_both(g, "Mul", "c.fresh", i, t);
    c = xph_onnx_both(g, "Add", "c_out", c, t);
    t = xph_onnx_of(g, "Tanh", "c.tanh", c);
    h = xph_onnx_both(g, "Mul", "h_out", o, t);
    xph_onnx_state_out(g, h, 2, dims);
    xph_onnx_state_out(g, c, 2, dims);
    return h;
}

/* h = (1 - z) n + z h = n + z (h - n) */
static xph_onnx_value gru(xph_onnx *g, xph_onnx_value u, int64_t first)
{
    static const char *const ps[] = {"rz", "n"};
    static const char *const names[] = {"r", "z"};
    const int64_t hidden = g->model->config.hidden, dims[] = {-1, hidden}, widths[] = {2 * hidden, hidden},
                  halves[] = {hidden, hidden};
    xph_onnx_value h = xph_onnx_state(g, "h", 2, dims), p[2], q[2], gate[2];
    xph_onnx_value in = xph_onnx_linear(g, "ih", u, first, first + 2),
                   of = xph_onnx_linear(g, "hh", h, first + 1, first + 3);
    xph_onnx_split(g, "ih", in, 1, 2, widths, ps, p);
    xph_onnx_split(g, "hh", of, 1, 2, widths, ps, q);
    xph_onnx_value both = xph_onnx_both(g, "Add", "gates", p[0], q[0]);
    both = xph_onnx_of(g, "Sigmoid", "gates.on", both);
    xph_onnx_split(g, "gates", both, 1, 2, halves, names, gate);
    xph_onnx_value n = xph_onnx_both(g, "Mul", "n.past", gate[0], q[1]);
    n = xph_onnx_both(g, "Add", "n.sum", p[1], n);
    n = xph_onnx_of(g, "Tanh", "n", n);
    h = xph_onnx_both(g, "Sub", "h.change", h, n);
    h = xph_onnx_both(g, "Mul", "h.kept", gate[1], h);
    h = xph_onnx_both(g, "Add", "h_out", n, h);
    xph_onnx_state_out(g, h, 2, dims);
    return h;
}

static xph_onnx_value lstm_block(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    return residual(g, x, lstm(g, xph_onnx_norm(g, "norm", x, block->first + R_NORM), block->first + R_IH));
}

static xph_onnx_value gru_block(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    return residual(g, x, gru(g, xph_onnx_norm(g, "norm", x, block->first + R_NORM), block->first + R_IH));
}

static xph_onnx_value lstm_bare(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    return residual(g, x, lstm(g, x, block->first));
}

static xph_onnx_value gru_bare(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    return residual(g, x, gru(g, x, block->first));
}

static xph_onnx_value lstm_only(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    return lstm(g, x, block->first);
}

static xph_onnx_value gru_only(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    return gru(g, x, block->first);
}

/* ---- attention ------------------------------------------------------------------------------------------ */

enum { A_NORM, A_QKV = 2, A_QKV_BIAS, A_RELATIVE, A_OUT, A_OUT_BIAS };

/* Frames that all attention blocks see: state [N, window - 1], 1 where there was one, the newest first. Gives
 * [N, 1, window], 0 or far below it. */
static void see_frames(xph_onnx *g)
{
    static const int64_t pads[] = {0, 1, 0, 0};
    const int64_t window = g->model->config.attention_window_frames, dims[] = {-1, window - 1};
    if (window < 2) return;
    xph_onnx_value seen = xph_onnx_state(g, "seen", 2, dims), front = xph_onnx_ints(g, "seen.front", 4, pads),
                   one = xph_onnx_float(g, "seen.one", 1.0f), never = xph_onnx_float(g, "seen.never", NEVER);
    xph_onnx_node(g, "Pad");
    xph_onnx_in(g, seen);
    xph_onnx_in(g, front);
    xph_onnx_in(g, one);
    seen = xph_onnx_out(g, "seen.all");
    xph_onnx_state_out(g, xph_onnx_first(g, "seen_out", seen, window - 1, 1), 2, dims);
    seen = xph_onnx_both(g, "Sub", "seen.less", seen, one);
    seen = xph_onnx_both(g, "Mul", "seen.mask", seen, never);
    (void)xph_onnx_widen(g, "seen.heads", seen, 1);
}

/* What of k or v is there: state [N, A, window - 1, dim], newest first; the whole window. */
static xph_onnx_value remember(xph_onnx *g, const char *name, xph_onnx_value newest)
{
    const exphil_model_config *c = &g->model->config;
    const int64_t window = c->attention_window_frames,
                  dims[] = {-1, c->attention_heads, window - 1, c->attention_dim};
    char all[32], out[32];
    if (window < 2) return newest;
    snprintf(all, sizeof all, "%s.window", name);
    snprintf(out, sizeof out, "%s_out", name);
    xph_onnx_value window_of = xph_onnx_concat(g, all, newest, xph_onnx_state(g, name, 4, dims), 2);
    xph_onnx_state_out(g, xph_onnx_first(g, out, window_of, window - 1, 2), 4, dims);
    return window_of;
}

static xph_onnx_value attend(xph_onnx *g, const xph_block *block, const xph_onnx_value part[3])
{
    static const xph_onnx_value mask = {"seen.heads"};
    const exphil_model_config *c = &g->model->config;
    const int64_t heads = c->attention_heads, dim = c->attention_dim, line[] = {0, heads, 1, dim},
                  column[] = {0, heads, dim, 1}, flat[] = {0, heads * dim};
    xph_onnx_value q = xph_onnx_reshape(g, "q.column", part[0], 4, column),
                   k = xph_onnx_reshape(g, "k.row", part[1], 4, line),
                   v = xph_onnx_reshape(g, "v.row", part[2], 4, line),
                   scale = xph_onnx_float(g, "q.scale", (float)(1.0 / __builtin_sqrt((double)dim))),
                   bias = xph_onnx_tensor(g, block->first + A_RELATIVE), axis = xph_onnx_axis(g, 3);
    q = xph_onnx_both(g, "Mul", "q.scaled", q, scale);
    k = remember(g, "k", k);
    v = remember(g, "v", v);
    xph_onnx_value score = xph_onnx_both(g, "MatMul", "score.column", k, q);
    score = xph_onnx_both(g, "Squeeze", "score", score, axis);
    score = xph_onnx_both(g, "Add", "score.biased", score, bias);
    if (c->attention_window_frames > 1) score = xph_onnx_both(g, "Add", "score.seen", score, mask);
    xph_onnx_node(g, "Softmax");
    xph_onnx_in(g, score);
    xph_onnx_set_int(g, "axis", -1);
    score = xph_onnx_widen(g, "share.row", xph_onnx_out(g, "share"), 2);
    xph_onnx_value y = xph_onnx_both(g, "MatMul", "y.heads", score, v);
    return xph_onnx_reshape(g, "y", y, 2, flat);
}

static xph_onnx_value attention(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    static const char *const names[] = {"q", "k", "v"};
    const exphil_model_config *c = &g->model->config;
    const int64_t width = c->attention_heads * c->attention_dim, widths[] = {width, width, width};
    xph_onnx_value u = xph_onnx_norm(g, "norm", x, block->first + A_NORM), part[3];
    u = xph_onnx_linear(g, "qkv", u, block->first + A_QKV, block->first + A_QKV_BIAS);
    xph_onnx_split(g, "qkv", u, 1, 3, widths, names, part);
    xph_onnx_value y = attend(g, block, part);
    return residual(g, x, xph_onnx_linear(g, "out_proj", y, block->first + A_OUT, block->first + A_OUT_BIAS));
}

/* ---- mlp, ffn ------------------------------------------------------------------------------------------- */

enum { F_NORM, F_UP = 2, F_UP_BIAS, F_UP_NORM, F_DOWN = F_UP_NORM + 2, F_DOWN_BIAS };

static xph_onnx_value feedforward(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    xph_onnx_value u = xph_onnx_norm(g, "norm", x, block->first + F_NORM);
    u = xph_onnx_linear(g, "up", u, block->first + F_UP, block->first + F_UP_BIAS);
    u = xph_onnx_norm(g, "up_norm", u, block->first + F_UP_NORM);
    u = xph_onnx_silu(g, "active", u);
    return residual(g, x, xph_onnx_linear(g, "down", u, block->first + F_DOWN, block->first + F_DOWN_BIAS));
}

static xph_onnx_value ffn_gelu(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    xph_onnx_value u = xph_onnx_norm(g, "norm", x, block->first);
    u = xph_onnx_gelu(g, "gelu", biased(g, "up", u, block->first + 2));
    return residual(g, x, biased(g, "down", u, block->first + 4));
}

/* ---- what takes the place of x --------------------------------------------------------------------------- */

static xph_onnx_value dense(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    return biased(g, "y", x, block->first);
}

static xph_onnx_value norm(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    return xph_onnx_norm(g, "norm", x, block->first);
}

static xph_onnx_value relu(xph_onnx *g, const xph_block *block, xph_onnx_value x)
{
    (void)block;
    return xph_onnx_of(g, "Relu", "relu", x);
}

/* ---- all ------------------------------------------------------------------------------------------------ */

static const block_fn blocks[XPH_BLOCK_KINDS] = {
    [XPH_BLOCK_MAMBA] = mamba,         [XPH_BLOCK_LSTM] = lstm_block,
    [XPH_BLOCK_GRU] = gru_block,       [XPH_BLOCK_ATTENTION] = attention,
    [XPH_BLOCK_MLP] = feedforward,     [XPH_BLOCK_FFN] = feedforward,
    [XPH_BLOCK_LSTM_BARE] = lstm_bare, [XPH_BLOCK_GRU_BARE] = gru_bare,
    [XPH_BLOCK_FFN_GELU] = ffn_gelu,   [XPH_BLOCK_MAMBA_EXPHIL] = mamba_exphil,
    [XPH_BLOCK_LSTM_ONLY] = lstm_only, [XPH_BLOCK_GRU_ONLY] = gru_only,
    [XPH_BLOCK_DENSE] = dense,         [XPH_BLOCK_NORM] = norm,
    [XPH_BLOCK_RELU] = relu,
};

xph_onnx_value xph_onnx_blocks(xph_onnx *g, xph_onnx_value x)
{
    const exphil_model *model = g->model;
    bool seen = false;
    for (int64_t i = 0; i < model->block_count; i++) {
        const xph_block *block = &model->block[i];
        const block_fn emit = block->kind < XPH_BLOCK_KINDS ? blocks[block->kind] : NULL;
        if (!emit) {
            const char *word = xph_block_word(block->kind);
            xph_onnx_refuse(g, "block %d (%s) has no form there", (int)i, word ? word : "unknown");
            return x;
        }
        if (block->kind == XPH_BLOCK_ATTENTION && !seen) see_frames(g);
        seen |= block->kind == XPH_BLOCK_ATTENTION;
        snprintf(g->prefix, sizeof g->prefix, "blocks.%d.", (int)i);
        x = emit(g, block, x);
        g->prefix[0] = 0;
    }
    return x;
}
