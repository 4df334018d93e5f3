/* Feed-forward blocks, without state: linear up, LayerNorm with SiLU in one operation, or GELU alone, linear down. The
 * inner width is hidden for mlp, ffn_expand * hidden for the others. */
#include "model/layer.h"

enum { NORM, NORM_BIAS, UP, UP_BIAS, UP_NORM, UP_NORM_BIAS, DOWN, DOWN_BIAS };
enum { INNER, ACTIVE, INNER_STATS }; /* of xph_saved.more: before and after norm and SiLU, [M,inner]; [M,2] */

static bool is_gelu(const xph_block *block)
{
    return block->kind == XPH_BLOCK_FFN_GELU;
}

/* Of a role that the block has. */
static int64_t tensor(const xph_block *block, int64_t role)
{
    return block->first + role - (is_gelu(block) && role >= DOWN ? DOWN - UP_NORM : 0);
}

static int64_t inner(const exphil_model *model, const xph_block *block)
{
    return model->config.hidden * (block->kind == XPH_BLOCK_MLP ? 1 : model->config.ffn_expand);
}

static void declare(xph_declaring *to, xph_block *block)
{
    int64_t hidden = to->model->config.hidden, width = inner(to->model, block);
    xph_declare_norm(to, "norm", hidden);
    xph_declare_linear(to, "up", hidden, width, 1.0);
    if (!is_gelu(block)) xph_declare_norm(to, "up_norm", width);
    xph_declare_linear(to, "down", width, hidden, xph_residual_scale(to->model));
}

static void forward(xph_plan *plan, const xph_block *block, xph_saved *s)
{
    int64_t width = inner(plan->model, block), first = block->first;
    xph_emit_enter(plan, first + NORM, s);
    s->more[INNER] = xph_plan_buffer(plan, plan->rows, width);
    s->more[ACTIVE] = xph_plan_buffer(plan, plan->rows, width);
    s->more[INNER_STATS] = is_gelu(block) ? (xph_ref){0} : xph_plan_kept(plan, plan->rows, 2);
    bool all = plan->pass != XPH_PASS_RESTORE;
    if (all) xph_emit_linear(plan, s->u, first + UP, first + UP_BIAS, (xph_ref){0}, s->more[INNER]);
    if (is_gelu(block))
        xph_emit_activate(plan, XPH_ACTIVATE_GELU_TANH, NULL, s->more[INNER], s->more[ACTIVE]);
    else
        xph_emit_norm(plan, s->more[INNER], first + UP_NORM, XPH_ACT_SILU, s->more[INNER_STATS],
                      s->more[ACTIVE]);
    if (all) xph_emit_out_linear(plan, s, s->more[ACTIVE], tensor(block, DOWN), tensor(block, DOWN_BIAS));
}

static void backward(xph_plan *plan, const xph_block *block, const xph_saved *s)
{
    int64_t width = inner(plan->model, block), first = block->first;
    xph_ref dactive = xph_plan_buffer(plan, plan->rows, width), dinner = dactive;
    if (!is_gelu(block)) dinner = xph_plan_buffer(plan, plan->rows, width);
    xph_ref du = xph_plan_buffer(plan, plan->rows, plan->model->shape.hidden);
    const int64_t bias = xph_plan_bias_of_dx(plan, tensor(block, DOWN_BIAS));
    xph_emit_linear_grad(plan, s->more[ACTIVE], tensor(block, DOWN), bias, plan->dx, dactive, false);
    if (is_gelu(block))
        xph_emit_activate_grad(plan, XPH_ACTIVATE_GELU_TANH, NULL, s->more[INNER], dactive, dinner);
    else
        xph_emit_norm_grad(plan, s->more[INNER], first + UP_NORM, XPH_ACT_SILU, s->more[INNER_STATS], dactive,
                           dinner, false);
    xph_emit_linear_grad(plan, s->u, first + UP, first + UP_BIAS, dinner, du, false);
    xph_emit_leave(plan, first + NORM, s, du);
}

const xph_layer xph_layer_mlp = {declare, forward, backward, 1u << INNER, 0, false, false};
const xph_layer xph_layer_ffn = {declare, forward, backward, 1u << INNER, 0, false, false};
const xph_layer xph_layer_ffn_gelu = {declare, forward, backward, 1u << INNER, 0, false, false};
