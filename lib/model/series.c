/* Blocks that take the place of x and have no state: a linear, a LayerNorm, and max(x, 0). Nothing is kept beside x. */
#include "model/layer.h"

enum { WEIGHT, BIAS };

/* ---- dense ---------------------------------------------------------------------------------------------- */

static void dense_declare(xph_declaring *to, xph_block *block)
{
    int64_t hidden = to->model->config.hidden;
    xph_declare(to, "weight", hidden, block->width, XPH_DECAYS | XPH_PACKS, XPH_INIT_UNIFORM,
                1.0 / __builtin_sqrt((double)block->width));
    xph_declare_bias(to, 1, "bias", hidden, XPH_INIT_ZERO, 0.0);
}

static void dense_forward(xph_plan *plan, const xph_block *block, xph_saved *s)
{
    xph_emit_enter(plan, -1, s);
    if (plan->pass == XPH_PASS_RESTORE || plan->ends) return;
    xph_ref y = plan->train ? xph_plan_next(plan, plan->model->shape.hidden)
                            : xph_plan_buffer(plan, plan->rows, plan->model->shape.hidden);
    xph_emit_linear(plan, s->u, block->first + WEIGHT, block->first + BIAS, (xph_ref){0}, y);
    if (plan->train)
        plan->x = y;
    else
        xph_emit_out_alone(plan, y);
}

static void dense_backward(xph_plan *plan, const xph_block *block, const xph_saved *s)
{
    xph_ref du = xph_plan_buffer(plan, plan->rows, s->x.ld);
    const int64_t bias = xph_plan_bias_of_dx(plan, block->first + BIAS);
    xph_emit_linear_grad(plan, s->u, block->first + WEIGHT, bias, plan->dx, du, false);
    plan->dx.ld = block->width;
    xph_emit_copy(plan, (size_t)(plan->rows * du.ld) * du.element, du, plan->dx);
}

/* ---- norm ----------------------------------------------------------------------------------------------- */

static void norm_declare(xph_declaring *to, xph_block *block)
{
    xph_declare_norm(to, "norm", block->width);
}

static void norm_forward(xph_plan *plan, const xph_block *block, xph_saved *s)
{
    xph_emit_enter(plan, block->first, s); /* u is what it gives */
    if (plan->pass != XPH_PASS_RESTORE) xph_emit_out_alone(plan, s->u);
}

static void norm_backward(xph_plan *plan, const xph_block *block, const xph_saved *s)
{
    xph_emit_norm_grad(plan, s->x, block->first, XPH_ACT_NONE, s->stats, plan->dx, plan->dx, false);
}

/* ---- relu ----------------------------------------------------------------------------------------------- */

static void relu_declare(xph_declaring *to, xph_block *block)
{
    (void)to, (void)block;
}

static void relu_forward(xph_plan *plan, const xph_block *block, xph_saved *s)
{
    (void)block;
    xph_emit_enter(plan, -1, s);
    if (plan->ends) return;
    plan->x = xph_plan_next(plan, s->x.ld);
    xph_emit_activate(plan, XPH_ACTIVATE_RELU, NULL, s->x, plan->x);
}

static void relu_backward(xph_plan *plan, const xph_block *block, const xph_saved *s)
{
    (void)block;
    xph_emit_activate_grad(plan, XPH_ACTIVATE_RELU, NULL, s->x, plan->dx, plan->dx);
}

const xph_layer xph_layer_dense = {dense_declare, dense_forward, dense_backward, 0, 0, true, true};
const xph_layer xph_layer_norm = {norm_declare, norm_forward, norm_backward, 0, 0, true, false};
const xph_layer xph_layer_relu = {relu_declare, relu_forward, relu_backward, 0, 0, true, false};
