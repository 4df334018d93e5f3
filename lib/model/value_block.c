/* The value head: u, the LayerNorm that the action heads read too, -> linear -> SiLU -> linear to one number,
 * which is 0 in a new model. Its second half is the operation of the heads, with one logit. */
#include "model/layer.h"

enum { TRUNK, TRUNK_BIAS, OUT, OUT_BIAS };

static const xph_head one_number = {.kind = EXPHIL_BERNOULLI, .count = 1};

void xph_value_declare(xph_declaring *to)
{
    const exphil_model *model = to->model;
    int64_t width = model->config.head_width, hidden = model->config.hidden;
    if (!model->shape.value) return;
    xph_declare(to, "value.trunk.weight", width, hidden, XPH_DECAYS | XPH_PACKS | XPH_KEEPS_HALF,
                XPH_INIT_UNIFORM, 1.0 / __builtin_sqrt((double)hidden));
    xph_declare_bias(to, 1, "value.trunk.bias", width, XPH_INIT_ZERO, 0.0);
    xph_declare(to, "value.out.weight", 1, width, XPH_DECAYS, XPH_INIT_ZERO, 0.0);
    xph_declare(to, "value.out.bias", 1, 0, 0, XPH_INIT_ZERO, 0.0);
}

static int64_t tensor(const xph_plan *plan, int64_t role)
{
    return plan->model->value_first + role;
}

static xph_heads_args head_args(const xph_plan *plan, xph_ref z)
{
    return (xph_heads_args){.type = plan->model->shape.type,
                            .rows = plan->rows,
                            .width = plan->model->config.head_width,
                            .heads = 1,
                            .logits = 1,
                            .head = &one_number,
                            .ldz = z.ld,
                            .lda = 1,
                            .ldy = 1};
}

static void bind_head(xph_plan *plan, xph_heads_args *a, xph_ref z)
{
    xph_plan_bind(plan, &a->z, z);
    xph_plan_bind(plan, &a->v, xph_weight(plan, tensor(plan, OUT)));
    xph_plan_bind(plan, &a->bias, xph_weight(plan, tensor(plan, OUT_BIAS)));
}

xph_ref xph_value_forward(xph_plan *plan, xph_ref u, bool all)
{
    if (!plan->model->shape.value) return (xph_ref){0};
    xph_ref z = xph_plan_buffer(plan, plan->rows, plan->model->config.head_width);
    xph_emit_linear(plan, u, tensor(plan, TRUNK), tensor(plan, TRUNK_BIAS), (xph_ref){0}, z);
    const xph_heads_args args = head_args(plan, z);
    const bool units = all && xph_plan_has_units(plan, &args);
    if (all) plan->value_units = units;
    if (!units) z = xph_emit_reals(plan, z, plan->rows);
    xph_heads_args *a = xph_emit_heads(plan, &args, units);
    if (!a) return (xph_ref){0};
    bind_head(plan, a, z);
    xph_plan_bind(plan, &a->y, plan->values);
    return z;
}

void xph_value_backward(xph_plan *plan, xph_ref u, xph_ref du)
{
    if (!plan->model->shape.value) return;
    const bool units = plan->value_units;
    const int64_t width = plan->model->config.head_width;
    xph_ref dz = units ? xph_plan_buffer(plan, plan->rows, width) : xph_plan_reals(plan, plan->rows, width);
    const xph_heads_grad_args args = {.fwd = head_args(plan, plan->value_z), .lddy = 1, .lddz = dz.ld};
    xph_heads_grad_args *a = xph_emit_heads_grad(plan, &args, units);
    if (!a) return;
    bind_head(plan, &a->fwd, plan->value_z);
    xph_plan_bind(plan, &a->dy, (xph_ref){.space = XPH_SPACE_DVALUES});
    xph_plan_bind(plan, &a->dz, dz);
    xph_plan_bind(plan, &a->dv, xph_gradient(plan, tensor(plan, OUT)));
    xph_plan_bind(plan, &a->dbias, xph_gradient(plan, tensor(plan, OUT_BIAS)));
    if (units) xph_plan_bind(plan, &a->dz_sum, xph_gradient(plan, tensor(plan, TRUNK_BIAS)));
    xph_emit_linear_grad(plan, u, tensor(plan, TRUNK), units ? -1 : tensor(plan, TRUNK_BIAS),
                         units ? dz : xph_emit_typed(plan, dz, plan->rows),
                         plan->model->shape.detached ? (xph_ref){0} : du, true);
}
