/* LSTM (Hochreiter & Schmidhuber 1997) and GRU (Cho et al. 2014) blocks: x + rnn(LayerNorm(x)), bare ones x + rnn(x),
 * and alone rnn(x); gates and tensors in PyTorch's order. The input part of all gates is one linear for the whole
 * chunk; the recurrent part runs frame by frame. State: LSTM h | c, GRU h. */
#include "model/layer.h"

enum { NORM, NORM_BIAS, WEIGHT_IH, WEIGHT_HH, BIAS_IH, BIAS_HH };
enum { GX, Y, GATES }; /* of xph_saved.more: [M,G*H], [M,H], what the kernel keeps */

static bool is_lstm(const xph_block *block)
{
    return block->kind == XPH_BLOCK_LSTM || block->kind == XPH_BLOCK_LSTM_BARE ||
           block->kind == XPH_BLOCK_LSTM_ONLY;
}

/* Has a LayerNorm in front. */
static bool is_normed(const xph_block *block)
{
    return block->kind == XPH_BLOCK_LSTM || block->kind == XPH_BLOCK_GRU;
}

/* Takes the place of x. */
static bool is_alone(const xph_block *block)
{
    return block->kind == XPH_BLOCK_LSTM_ONLY || block->kind == XPH_BLOCK_GRU_ONLY;
}

static int64_t tensor(const xph_block *block, int64_t role)
{
    if (is_normed(block)) return block->first + role;
    return role < WEIGHT_IH ? -1 : block->first + role - WEIGHT_IH;
}

static int64_t gates(const xph_block *block)
{
    return is_lstm(block) ? 4 : 3;
}

/* What the kernel keeps per row, in units of H: LSTM i,f,g,o,c; GRU r,z,n and the recurrent part of n. */
static int64_t kept(const xph_block *block)
{
    return is_lstm(block) ? 5 : 4;
}

static void declare(xph_declaring *to, xph_block *block)
{
    int64_t hidden = to->model->config.hidden, out = gates(block) * hidden;
    double scale = 1.0 / __builtin_sqrt((double)hidden);
    if (is_normed(block)) xph_declare_norm(to, "norm", hidden);
    xph_declare(to, "weight_ih", out, block->width, XPH_DECAYS | XPH_PACKS, XPH_INIT_UNIFORM, scale);
    xph_declare(to, "weight_hh", out, hidden, XPH_DECAYS | XPH_PACKS, XPH_INIT_UNIFORM, scale);
    xph_declare_bias(to, 2, "bias_ih", out, XPH_INIT_UNIFORM, scale);
    xph_declare(to, "bias_hh", out, 0, 0, XPH_INIT_UNIFORM, scale);
    block->state = (is_lstm(block) ? 2 : 1) * hidden;
}

static xph_rnn_args rnn_args(const xph_plan *plan, const xph_block *block, const xph_saved *s)
{
    return (xph_rnn_args){.type = plan->type,
                          .math = plan->math,
                          .kind = is_lstm(block) ? XPH_RNN_LSTM : XPH_RNN_GRU,
                          .batch = plan->batch,
                          .time = plan->time,
                          .hidden = plan->model->shape.hidden,
                          .ldgx = s->more[GX].ld,
                          .ldy = s->more[Y].ld};
}

static void bind_rnn(xph_plan *plan, const xph_block *block, const xph_saved *s, xph_rnn_args *a,
                     bool forward)
{
    if (forward) xph_plan_bind(plan, &a->gx, s->more[GX]);
    if (forward) xph_plan_bind(plan, &a->back, (xph_ref){.space = XPH_SPACE_BACK});
    xph_plan_bind(plan, &a->w, xph_weight(plan, tensor(block, WEIGHT_HH)));
    xph_plan_bind(plan, &a->packed, xph_packed(plan, tensor(block, WEIGHT_HH)));
    xph_plan_bind(plan, &a->bias, xph_weight(plan, tensor(block, BIAS_HH)));
    xph_plan_bind(plan, &a->reset, (xph_ref){.space = XPH_SPACE_RESET});
    xph_plan_bind_state(plan, block, 0, &a->state_in, forward ? &a->state_out : NULL, &a->ld_state);
    xph_plan_bind(plan, &a->y, s->more[Y]);
    xph_plan_bind(plan, &a->saved, s->more[GATES]);
}

static void forward(xph_plan *plan, const xph_block *block, xph_saved *s)
{
    int64_t hidden = plan->model->shape.hidden;
    const int64_t in = tensor(block, WEIGHT_IH), bias = tensor(block, BIAS_IH),
                  across = tensor(block, WEIGHT_HH);
    xph_emit_enter(plan, tensor(block, NORM), s);
    s->more[Y] = xph_plan_buffer(plan, plan->rows, hidden);
    s->more[GATES] = xph_plan_kept(plan, plan->rows, kept(block) * hidden);
    if (plan->pass == XPH_PASS_RESTORE) return;
    size_t mark = plan->top;
    s->more[GX] = xph_plan_buffer(plan, plan->rows, gates(block) * hidden);
    bool joined = !plan->train && plan->rows == 1;
    if (!joined) xph_emit_linear(plan, s->u, in, bias, (xph_ref){0}, s->more[GX]);
    xph_rnn_args args = rnn_args(plan, block, s);
    args.weights = xph_model_narrow(plan->model, across);
    if (joined) args.input = xph_linear_shape(plan, s->u, in, s->more[GX]);
    xph_step *step = xph_plan_step(plan, XPH_OP_RNN, &args, sizeof args);
    if (!step) return;
    xph_plan_scratch(plan, step, &step->args.rnn.scratch);
    bind_rnn(plan, block, s, &step->args.rnn, true);
    if (joined) xph_bind_linear(plan, &step->args.rnn.input, s->u, in, bias, (xph_ref){0}, s->more[GX]);
    plan->top = mark; /* backward does not read the input part of the gates */
    if (is_alone(block))
        xph_emit_out_alone(plan, s->more[Y]);
    else
        xph_emit_out(plan, s, s->more[Y]);
}

static void backward(xph_plan *plan, const xph_block *block, const xph_saved *s)
{
    int64_t hidden = plan->model->shape.hidden;
    xph_ref dgx = xph_plan_buffer(plan, plan->rows, gates(block) * hidden), du = plan->dx;
    if (is_normed(block)) du = xph_plan_buffer(plan, plan->rows, hidden);
    if (is_alone(block)) du.ld = block->width;
    xph_rnn_grad_args args = {.fwd = rnn_args(plan, block, s), .lddy = plan->dx.ld, .lddgx = dgx.ld};
    xph_step *step = xph_plan_step(plan, XPH_OP_RNN_GRAD, &args, sizeof args);
    if (!step) return;
    xph_rnn_grad_args *a = &step->args.rnn_grad;
    xph_plan_scratch(plan, step, &a->scratch);
    bind_rnn(plan, block, s, &a->fwd, false);
    xph_plan_bind(plan, &a->dy, plan->dx);
    xph_plan_bind(plan, &a->dgx, dgx);
    xph_plan_bind(plan, &a->dw, xph_gradient(plan, tensor(block, WEIGHT_HH)));
    xph_plan_bind(plan, &a->dbias, xph_gradient(plan, tensor(block, BIAS_HH)));
    bool adds = !is_normed(block) && !is_alone(block);
    xph_emit_linear_grad(plan, s->u, tensor(block, WEIGHT_IH), tensor(block, BIAS_IH), dgx, du, adds);
    if (is_normed(block)) xph_emit_leave(plan, tensor(block, NORM), s, du);
    plan->dx.ld = block->width;
}

#define LAYER(alone)                                                                                         \
  {                                                                                                          \
    declare, forward, backward, 1u << Y | 1u << GATES, 0, alone, alone                                       \
  }
const xph_layer xph_layer_lstm = LAYER(false), xph_layer_gru = LAYER(false),
                xph_layer_lstm_bare = LAYER(false), xph_layer_gru_bare = LAYER(false),
                xph_layer_lstm_only = LAYER(true), xph_layer_gru_only = LAYER(true);
