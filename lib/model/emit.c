/* Operations that several layers share: one function makes one step, shapes taken from the tensors. */
#include "model/net_plan.h"

xph_linear_args xph_linear_shape(const xph_plan *plan, xph_ref x, int64_t weight, xph_ref y)
{
    const xph_param *w = &plan->model->tensor[weight].param;
    return (xph_linear_args){.type = plan->type,
                             .math = plan->math,
                             .weights = xph_model_narrow(plan->model, weight),
                             .rows = plan->rows,
                             .in = w->dim[1],
                             .out = w->dim[0],
                             .ldx = x.ld,
                             .ldy = y.ld};
}

/* Weights are packed for products of the net's type: others read them as they are. */
static xph_ref packed_as(const xph_plan *plan, xph_type type, int64_t weight)
{
    return type == plan->type ? xph_packed(plan, weight) : (xph_ref){0};
}

void xph_bind_linear(xph_plan *plan, xph_linear_args *a, xph_ref x, int64_t weight, int64_t bias,
                     xph_ref residual, xph_ref y)
{
    xph_plan_bind(plan, &a->x, x);
    xph_plan_bind(plan, &a->w, xph_weight(plan, weight));
    xph_plan_bind(plan, &a->packed, packed_as(plan, a->type, weight));
    xph_plan_bind(plan, &a->bias, xph_weight(plan, bias));
    xph_plan_bind(plan, &a->residual, residual);
    xph_plan_bind(plan, &a->y, y);
    xph_plan_bind(plan, &a->back, (xph_ref){.space = XPH_SPACE_BACK});
}

static void emit_linear(xph_plan *plan, xph_type type, xph_ref x, int64_t weight, int64_t bias,
                        xph_ref residual, xph_ref y)
{
    xph_linear_args args = xph_linear_shape(plan, x, weight, y);
    args.type = type;
    args.ldr = residual.ld;
    xph_step *step = xph_plan_step(plan, XPH_OP_LINEAR, &args, sizeof args);
    if (!step) return;
    xph_plan_scratch(plan, step, NULL);
    xph_bind_linear(plan, &step->args.linear, x, weight, bias, residual, y);
}

void xph_emit_linear(xph_plan *plan, xph_ref x, int64_t weight, int64_t bias, xph_ref residual, xph_ref y)
{
    emit_linear(plan, plan->type, x, weight, bias, residual, y);
}

void xph_emit_linear_of_reals(xph_plan *plan, xph_ref x, int64_t weight, int64_t bias, xph_ref residual,
                              xph_ref y)
{
    emit_linear(plan, plan->model->shape.type, x, weight, bias, residual, y);
}

/* A step writes to `to`: what was added up of dx before is no longer all of it. */
static void writes(xph_plan *plan, xph_ref to)
{
    if (to.space == plan->dx.space && to.at == plan->dx.at) plan->dx_sum = NULL;
}

int64_t xph_plan_bias_of_dx(xph_plan *plan, int64_t bias)
{
    if (!plan->dx_sum || bias < 0) return bias;
    xph_plan_bind(plan, plan->dx_sum, xph_gradient(plan, bias));
    plan->dx_sum = NULL;
    return -1;
}

static void emit_linear_grad(xph_plan *plan, xph_type type, xph_ref x, int64_t weight, int64_t bias,
                             xph_ref dy, xph_ref dx, bool add)
{
    const xph_param *w = &plan->model->tensor[weight].param;
    const xph_linear_grad_args args = {.type = type,
                                       .math = plan->math,
                                       .rows = plan->rows,
                                       .in = w->dim[1],
                                       .out = w->dim[0],
                                       .ldx = x.ld,
                                       .lddy = dy.ld,
                                       .lddx = dx.ld,
                                       .dx_add = add};
    xph_step *step = xph_plan_step(plan, XPH_OP_LINEAR_GRAD, &args, sizeof args);
    writes(plan, dx);
    if (!step) return;
    xph_linear_grad_args *a = &step->args.linear_grad;
    xph_plan_scratch(plan, step, &a->scratch);
    xph_plan_bind(plan, &a->x, x);
    xph_plan_bind(plan, &a->w, xph_weight(plan, weight));
    xph_plan_bind(plan, &a->packed, packed_as(plan, type, weight));
    xph_plan_bind(plan, &a->dy, dy);
    xph_plan_bind(plan, &a->dx, dx);
    xph_plan_bind(plan, &a->dw, xph_gradient(plan, weight));
    xph_plan_bind(plan, &a->dbias, xph_gradient(plan, bias));
}

void xph_emit_linear_grad(xph_plan *plan, xph_ref x, int64_t weight, int64_t bias, xph_ref dy, xph_ref dx,
                          bool add)
{
    emit_linear_grad(plan, plan->type, x, weight, bias, dy, dx, add);
}

void xph_emit_linear_grad_of_reals(xph_plan *plan, xph_ref x, int64_t weight, int64_t bias, xph_ref dy,
                                   xph_ref dx)
{
    emit_linear_grad(plan, plan->model->shape.type, x, weight, bias, dy, dx, false);
}

static xph_norm_args norm_args(const xph_plan *plan, xph_ref x, int64_t gain, int32_t act)
{
    return (xph_norm_args){.type = plan->type,
                           .act = act,
                           .rows = plan->rows,
                           .width = plan->model->tensor[gain].param.dim[0],
                           .epsilon = plan->model->config.norm_epsilon,
                           .ldx = x.ld};
}

static void bind_norm(xph_plan *plan, xph_norm_args *a, xph_ref x, int64_t gain, xph_ref stats)
{
    xph_plan_bind(plan, &a->x, x);
    xph_plan_bind(plan, &a->gain, xph_weight(plan, gain));
    xph_plan_bind(plan, &a->shift, xph_weight(plan, gain + 1));
    xph_plan_bind(plan, &a->saved, stats);
}

void xph_emit_norm(xph_plan *plan, xph_ref x, int64_t gain, int32_t act, xph_ref stats, xph_ref y)
{
    xph_norm_args args = norm_args(plan, x, gain, act);
    args.ldy = y.ld;
    xph_step *step = xph_plan_step(plan, XPH_OP_NORM, &args, sizeof args);
    if (!step) return;
    xph_norm_args *a = &step->args.norm;
    xph_plan_scratch(plan, step, NULL);
    bind_norm(plan, a, x, gain, stats);
    xph_plan_bind(plan, &a->y, y);
}

void xph_emit_norm_grad(xph_plan *plan, xph_ref x, int64_t gain, int32_t act, xph_ref stats, xph_ref dy,
                        xph_ref dx, bool add)
{
    xph_norm_grad_args args = {
        .fwd = norm_args(plan, x, gain, act), .lddy = dy.ld, .lddx = dx.ld, .dx_add = add};
    xph_step *step = xph_plan_step(plan, XPH_OP_NORM_GRAD, &args, sizeof args);
    writes(plan, dx);
    if (!step) return;
    xph_norm_grad_args *a = &step->args.norm_grad;
    xph_plan_scratch(plan, step, &a->scratch);
    bind_norm(plan, &a->fwd, x, gain, stats);
    xph_plan_bind(plan, &a->dy, dy);
    xph_plan_bind(plan, &a->dx, dx);
    xph_plan_bind(plan, &a->dgain, xph_gradient(plan, gain));
    xph_plan_bind(plan, &a->dshift, xph_gradient(plan, gain + 1));
    if (step->chosen.sums && dx.space == plan->dx.space && dx.at == plan->dx.at) plan->dx_sum = &a->dx_sum;
}

void xph_emit_cast(xph_plan *plan, xph_type as, bool narrow, int64_t count, xph_ref from, xph_ref to)
{
    const xph_cast_args args = {.type = plan->model->shape.type, .as = as, .narrow = narrow, .count = count};
    xph_step *step = xph_plan_step(plan, XPH_OP_CAST, &args, sizeof args);
    if (!step) return;
    xph_plan_scratch(plan, step, NULL);
    xph_plan_bind(plan, &step->args.cast.x, from);
    xph_plan_bind(plan, &step->args.cast.y, to);
}

xph_ref xph_emit_reals(xph_plan *plan, xph_ref from, int64_t rows)
{
    if (plan->type == plan->model->shape.type || !from.space) return from;
    xph_ref to = xph_plan_reals(plan, rows, from.ld);
    xph_emit_cast(plan, plan->type, false, rows * from.ld, from, to);
    return to;
}

xph_ref xph_emit_typed(xph_plan *plan, xph_ref from, int64_t rows)
{
    if (plan->type == plan->model->shape.type) return from;
    xph_ref to = xph_plan_buffer(plan, rows, from.ld);
    xph_emit_cast(plan, plan->type, true, rows * from.ld, from, to);
    return to;
}

void xph_emit_activate(xph_plan *plan, int32_t kind, const double limits[2], xph_ref x, xph_ref y)
{
    xph_activate_args args = {.type = plan->type, .kind = kind, .count = plan->rows * x.ld};
    if (limits) args.low = limits[0], args.high = limits[1];
    xph_step *step = xph_plan_step(plan, XPH_OP_ACTIVATE, &args, sizeof args);
    if (!step) return;
    xph_plan_scratch(plan, step, NULL);
    xph_plan_bind(plan, &step->args.activate.x, x);
    xph_plan_bind(plan, &step->args.activate.y, y);
}

void xph_emit_activate_grad(xph_plan *plan, int32_t kind, const double limits[2], xph_ref x, xph_ref dy,
                            xph_ref dx)
{
    xph_activate_grad_args args = {.fwd = {.type = plan->type, .kind = kind, .count = plan->rows * x.ld}};
    if (limits) args.fwd.low = limits[0], args.fwd.high = limits[1];
    xph_step *step = xph_plan_step(plan, XPH_OP_ACTIVATE_GRAD, &args, sizeof args);
    writes(plan, dx);
    if (!step) return;
    xph_plan_scratch(plan, step, NULL);
    xph_plan_bind(plan, &step->args.activate_grad.fwd.x, x);
    xph_plan_bind(plan, &step->args.activate_grad.dy, dy);
    xph_plan_bind(plan, &step->args.activate_grad.dx, dx);
}

void xph_emit_copy(xph_plan *plan, size_t bytes, xph_ref from, xph_ref to)
{
    const xph_copy_args args = {.bytes = bytes};
    xph_step *step = xph_plan_step(plan, XPH_STEP_COPY, &args, sizeof args);
    writes(plan, to);
    if (!step) return;
    xph_plan_bind(plan, &step->args.copy.to, to);
    xph_plan_bind(plan, &step->args.copy.from, from);
}

void xph_emit_enter(xph_plan *plan, int64_t gain, xph_saved *s)
{
    s->x = s->u = plan->x;
    if (gain < 0) return;
    s->stats = xph_plan_kept(plan, plan->rows, 2);
    s->u = xph_plan_buffer(plan, plan->rows, s->x.ld);
    xph_emit_norm(plan, s->x, gain, XPH_ACT_NONE, s->stats, s->u);
}

void xph_emit_leave(xph_plan *plan, int64_t gain, const xph_saved *s, xph_ref du)
{
    xph_emit_norm_grad(plan, s->x, gain, XPH_ACT_NONE, s->stats, du, plan->dx, true);
}

void xph_emit_out(xph_plan *plan, const xph_saved *s, xph_ref y)
{
    const xph_model_shape *shape = &plan->model->shape;
    int64_t count = plan->rows * shape->hidden;
    if (plan->ends) return;
    plan->x = xph_plan_next(plan, plan->model->shape.hidden);
    const xph_axpby_args args = {.type = plan->type, .count = count, .a = 1.0, .b = 1.0};
    xph_step *step = xph_plan_step(plan, XPH_OP_AXPBY, &args, sizeof args);
    if (!step) return;
    xph_plan_scratch(plan, step, NULL);
    xph_plan_bind(plan, &step->args.axpby.x, y);
    xph_plan_bind(plan, &step->args.axpby.y, plan->x);
    xph_plan_bind(plan, &step->args.axpby.from, s->x);
}

void xph_emit_out_linear(xph_plan *plan, const xph_saved *s, xph_ref y, int64_t weight, int64_t bias)
{
    if (plan->ends) return;
    plan->x = xph_plan_next(plan, plan->model->shape.hidden);
    xph_emit_linear(plan, y, weight, bias, s->x, plan->x);
}

void xph_emit_out_alone(xph_plan *plan, xph_ref y)
{
    if (plan->ends) return;
    if (plan->train && !plan->out.space) {
        plan->x = y; /* stays for backward, and nobody writes into x */
        return;
    }
    plan->x = xph_plan_next(plan, y.ld);
    xph_emit_copy(plan, (size_t)(plan->rows * y.ld) * y.element, y, plan->x);
}

static xph_ref from_head(xph_space space, int64_t head, size_t bytes)
{
    return (xph_ref){.space = space, .at = head * (int64_t)bytes};
}

void xph_bind_draw(xph_plan *plan, xph_step *step, int64_t head)
{
    xph_sample_args *a = &step->args.sample;
    xph_plan_scratch(plan, step, &a->scratch);
    plan->net->draws = plan->net->draws && step->chosen.draws;
    xph_plan_bind(plan, &a->how, from_head(XPH_SPACE_HOW, head, sizeof *a->how));
    xph_plan_bind(plan, &a->noise,
                  from_head(XPH_SPACE_NOISE, plan->model->head[head].first, sizeof *a->noise));
    xph_plan_bind(plan, &a->draw, (xph_ref){.space = XPH_SPACE_DRAW});
    xph_plan_bind(plan, &a->previous, from_head(XPH_SPACE_PREVIOUS, head, sizeof *a->previous));
    xph_plan_bind(plan, &a->actions, from_head(XPH_SPACE_DRAWN, head, sizeof *a->actions));
}

/* ---- heads ---- */

static xph_heads_loss_args units_args(const xph_plan *plan, int32_t part, const xph_heads_grad_args *args)
{
    xph_heads_loss_args units = {.grad = *args, .math = plan->math, .part = part};
    units.grad.fwd.type = plan->type;
    return units;
}

bool xph_plan_has_units(const xph_plan *plan, const xph_heads_args *shape)
{
    xph_device *device = plan->model->device;
    const xph_heads_grad_args args = {.fwd = *shape};
    xph_heads_loss_args units = units_args(plan, XPH_HEADS_ALL, &args);
    xph_op_info info = {0};
    return device->backend->query(device, XPH_OP_HEADS_LOSS, &units, &info) >= 0;
}

xph_heads_loss_args *xph_emit_units(xph_plan *plan, int32_t part, const xph_heads_grad_args *args)
{
    const xph_heads_loss_args units = units_args(plan, part, args);
    xph_step *step = xph_plan_step(plan, XPH_OP_HEADS_LOSS, &units, sizeof units);
    if (!step) return NULL;
    xph_plan_scratch(plan, step, &step->args.heads_loss.grad.scratch);
    return &step->args.heads_loss;
}

xph_heads_args *xph_emit_heads(xph_plan *plan, const xph_heads_args *args, bool units)
{
    const xph_heads_grad_args alone = {.fwd = *args};
    xph_heads_loss_args *a = units ? xph_emit_units(plan, XPH_HEADS_LOGITS, &alone) : NULL;
    if (units) return a ? &a->grad.fwd : NULL;
    xph_step *step = xph_plan_step(plan, XPH_OP_HEADS, args, sizeof *args);
    if (!step) return NULL;
    xph_plan_scratch(plan, step, NULL);
    return &step->args.heads;
}

xph_heads_grad_args *xph_emit_heads_grad(xph_plan *plan, const xph_heads_grad_args *args, bool units)
{
    xph_heads_loss_args *a = units ? xph_emit_units(plan, XPH_HEADS_GIVEN, args) : NULL;
    if (units) return a ? &a->grad : NULL;
    xph_step *step = xph_plan_step(plan, XPH_OP_HEADS_GRAD, args, sizeof *args);
    if (!step) return NULL;
    xph_plan_scratch(plan, step, &step->args.heads_grad.scratch);
    return &step->args.heads_grad;
}
