/* The attention block: one linear to q | k | v, causal sliding-window attention with a learned bias per
 * head and distance, out-projection. State: the ring of keys and values, then its two counters
 * (lib/device/backend.h). */
#include "model/layer.h"

enum { NORM, NORM_BIAS, QKV, QKV_BIAS, RELATIVE, OUT, OUT_BIAS };
enum { HEADS_QKV, Y, LOG_SUM }; /* of xph_saved.more: [M,3*A*dim], [M,A*dim], [M,A] */

static int64_t span(const exphil_model *model)
{
    return model->config.attention_heads * model->config.attention_dim;
}

static void declare(xph_declaring *to, xph_block *block)
{
    const exphil_model_config *c = &to->model->config;
    int64_t width = span(to->model);
    xph_declare_norm(to, "norm", c->hidden);
    xph_declare_linear(to, "qkv", c->hidden, 3 * width, 1.0);
    xph_declare(to, "relative_bias", c->attention_heads, c->attention_window_frames, 0, XPH_INIT_ZERO, 0.0);
    xph_declare_linear(to, "out_proj", width, c->hidden, xph_residual_scale(to->model));
    block->state = 2 * c->attention_window_frames * width + 2;
}

static xph_attention_args attention_args(const xph_plan *plan, const xph_saved *s)
{
    const exphil_model_config *c = &plan->model->config;
    bool plain = (plan->net->flags & XPH_NET_PLAIN) != 0;
    return (xph_attention_args){.type = plan->type,
                                .math = plan->math,
                                .method = plain ? XPH_ATTENTION_PLAIN : XPH_ATTENTION_AUTO,
                                .fresh = plan->model->shape.mode == EXPHIL_MODE_WINDOW,
                                .batch = plan->batch,
                                .time = plan->time,
                                .heads = c->attention_heads,
                                .dim = c->attention_dim,
                                .window = c->attention_window_frames,
                                .ldqkv = s->more[HEADS_QKV].ld,
                                .ldy = s->more[Y].ld};
}

static void bind_attention(xph_plan *plan, const xph_block *block, const xph_saved *s, xph_attention_args *a,
                           bool forward)
{
    xph_plan_bind(plan, &a->qkv, s->more[HEADS_QKV]);
    xph_plan_bind(plan, &a->bias, xph_weight(plan, block->first + RELATIVE));
    xph_plan_bind(plan, &a->reset, (xph_ref){.space = XPH_SPACE_RESET});
    xph_plan_bind_state(plan, block, 0, &a->state_in, forward ? &a->state_out : NULL, &a->ld_state);
    xph_plan_bind(plan, &a->y, s->more[Y]);
    xph_plan_bind(plan, &a->saved, s->more[LOG_SUM]);
}

static void forward(xph_plan *plan, const xph_block *block, xph_saved *s)
{
    int64_t width = span(plan->model), first = block->first;
    xph_emit_enter(plan, first + NORM, s);
    s->more[HEADS_QKV] = xph_plan_buffer(plan, plan->rows, 3 * width);
    s->more[Y] = xph_plan_buffer(plan, plan->rows, width);
    s->more[LOG_SUM] = xph_plan_kept(plan, plan->rows, plan->model->config.attention_heads);
    if (plan->pass == XPH_PASS_RESTORE) return;
    xph_emit_linear(plan, s->u, first + QKV, first + QKV_BIAS, (xph_ref){0}, s->more[HEADS_QKV]);
    xph_attention_args args = attention_args(plan, s);
    xph_step *step = xph_plan_step(plan, XPH_OP_ATTENTION, &args, sizeof args);
    if (!step) return;
    xph_plan_scratch(plan, step, &step->args.attention.scratch);
    bind_attention(plan, block, s, &step->args.attention, true);
    if (plan->time == 1)
        xph_plan_bind(plan, &step->args.attention.lagging, (xph_ref){.space = XPH_SPACE_LAGGING});
    xph_emit_out_linear(plan, s, s->more[Y], first + OUT, first + OUT_BIAS);
}

static void backward(xph_plan *plan, const xph_block *block, const xph_saved *s)
{
    int64_t width = span(plan->model), first = block->first;
    xph_ref dy = xph_plan_buffer(plan, plan->rows, width),
            dqkv = xph_plan_buffer(plan, plan->rows, 3 * width);
    xph_ref du = xph_plan_buffer(plan, plan->rows, plan->model->shape.hidden);
    const int64_t bias = xph_plan_bias_of_dx(plan, first + OUT_BIAS);
    xph_emit_linear_grad(plan, s->more[Y], first + OUT, bias, plan->dx, dy, false);
    xph_attention_grad_args args = {.fwd = attention_args(plan, s), .lddy = dy.ld, .lddqkv = dqkv.ld};
    xph_step *step = xph_plan_step(plan, XPH_OP_ATTENTION_GRAD, &args, sizeof args);
    if (!step) return;
    xph_attention_grad_args *a = &step->args.attention_grad;
    xph_plan_scratch(plan, step, &a->scratch);
    bind_attention(plan, block, s, &a->fwd, false);
    xph_plan_bind(plan, &a->dy, dy);
    xph_plan_bind(plan, &a->dqkv, dqkv);
    xph_plan_bind(plan, &a->dbias, xph_gradient(plan, first + RELATIVE));
    xph_emit_linear_grad(plan, s->u, first + QKV, first + QKV_BIAS, dqkv, du, false);
    xph_emit_leave(plan, first + NORM, s, du);
}

/* An error in the log-sum-exp is one of all probabilities of a frame. */
const xph_layer xph_layer_attention = {declare,       forward, backward, 1u << HEADS_QKV | 1u << Y,
                                       1u << LOG_SUM, false,   false};
