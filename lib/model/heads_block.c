/* The end of a model: LayerNorm, a linear to the trunk z of the action heads, the heads on it. Past actions
 * also reach the logits directly, through one table (heads.past.weight): at 60 Hz two frames in three repeat
 * their input, so a policy begins by repeating (about 3 to 1 for the last of 17 classes, 7 to 1 for a bit)
 * and learns when not to. Either logits are computed for all rows, with given actions, or the last frame of
 * every stream draws its action. */
#include "model/layer.h"

#define EMBED_SCALE                                                                                          \
  0.1 /* half-width of what a taken action adds to the trunk at first, against about 0.6 of the trunk */

enum { TRUNK, TRUNK_BIAS, LOGITS, LOGITS_BIAS, PAST, EMBED };

/* Whether past actions reach the logits directly, too. */
static bool has_past(const exphil_model *model)
{
    return model->shape.slots > 0 && !model->config.no_head_past;
}

static bool is_layered(const exphil_model *model)
{
    return model->config.head_layers > 0;
}

static void declare_logits(xph_declaring *to)
{
    const exphil_model *model = to->model;
    int64_t width = model->config.head_width, logits = model->shape.logits;
    xph_declare(to, "heads.logits.weight", logits, width, XPH_DECAYS, XPH_INIT_UNIFORM,
                1.0 / __builtin_sqrt((double)width));
    xph_declare(to, "heads.logits.bias", logits, 0, 0, has_past(model) ? XPH_INIT_BITS : XPH_INIT_ZERO,
                XPH_REPEAT_SCALE / 2);
}

void xph_heads_declare(xph_declaring *to)
{
    const exphil_model *model = to->model;
    int64_t width = model->config.head_width, logits = model->shape.logits;
    if (!model->config.no_head_trunk) {
        xph_declare(to, "heads.trunk.weight", width, model->config.hidden,
                    XPH_DECAYS | XPH_PACKS | XPH_KEEPS_HALF, XPH_INIT_UNIFORM,
                    1.0 / __builtin_sqrt((double)model->config.hidden));
        xph_declare_bias(to, 1, "heads.trunk.bias", width, XPH_INIT_ZERO, 0.0);
    }
    if (!is_layered(model)) declare_logits(to);
    if (has_past(model))
        xph_declare(to, "heads.past.weight", logits, model->shape.slots * logits, XPH_PACKS | XPH_KEEPS_ALL,
                    XPH_INIT_REPEAT, XPH_REPEAT_SCALE);
    if (is_layered(model))
        xph_layers_declare(to);
    else if (model->config.heads == EXPHIL_HEADS_AUTOREGRESSIVE)
        xph_declare(to, "heads.embed", logits, width, XPH_DECAYS, XPH_INIT_UNIFORM, EMBED_SCALE);
}

/* -1: the model has none. */
static int64_t tensor(const xph_plan *plan, int64_t role)
{
    const exphil_model *model = plan->model;
    const bool trunk = !model->config.no_head_trunk, logits = !is_layered(model), past = has_past(model);
    const bool embed = logits && model->config.heads == EXPHIL_HEADS_AUTOREGRESSIVE;
    const bool there[] = {trunk, trunk, logits, logits, past, embed};
    int64_t at = model->heads_first;
    if (!there[role]) return -1;
    for (int64_t i = 0; i < role; i++) at += there[i];
    return at;
}

/* The columns of past actions in the input rows of all frames. */
static xph_ref past_columns(const xph_plan *plan)
{
    const xph_model_shape *shape = &plan->model->shape;
    return xph_columns(plan->row, plan->model->row - shape->slots * shape->logits);
}

/* What the logits of plan->rows rows start from; nothing without past actions. */
static xph_ref emit_typed_base(xph_plan *plan, xph_ref past)
{
    if (!has_past(plan->model)) return (xph_ref){0};
    xph_ref base = xph_plan_buffer(plan, plan->rows, plan->model->shape.logits);
    xph_emit_linear(plan, past, tensor(plan, PAST), -1, (xph_ref){0}, base);
    return base;
}

static xph_ref emit_base(xph_plan *plan, xph_ref past)
{
    return xph_emit_reals(plan, emit_typed_base(plan, past), plan->rows);
}

static xph_heads_args heads_args(const xph_plan *plan, xph_ref z, xph_ref base)
{
    const xph_model_shape *shape = &plan->model->shape;
    return (xph_heads_args){.type = shape->type,
                            .chained = shape->autoregressive,
                            .rows = plan->rows,
                            .width = plan->model->config.head_width,
                            .heads = shape->heads,
                            .logits = shape->logits,
                            .head = plan->model->head,
                            .ldz = z.ld,
                            .ldbase = base.ld,
                            .lda = shape->heads,
                            .ldy = shape->logits};
}

static void bind_heads(xph_plan *plan, xph_heads_args *a, xph_ref z)
{
    xph_plan_bind(plan, &a->z, z);
    xph_plan_bind(plan, &a->v, xph_weight(plan, tensor(plan, LOGITS)));
    xph_plan_bind(plan, &a->bias, xph_weight(plan, tensor(plan, LOGITS_BIAS)));
    xph_plan_bind(plan, &a->e, xph_weight(plan, tensor(plan, EMBED)));
}

/* What the heads see of rows of x, and their trunk. */
typedef struct seen {
    xph_ref u, z;
} seen;

/* LayerNorm and trunk of plan->rows rows of x, as far as there are such. */
static seen emit_trunk(xph_plan *plan, xph_ref x, xph_ref stats)
{
    const exphil_model_config *config = &plan->model->config;
    seen to = {x, x};
    if (!config->no_final_norm) {
        to.u = to.z = xph_plan_buffer(plan, plan->rows, config->hidden);
        xph_emit_norm(plan, x, plan->model->norm_first, XPH_ACT_NONE, stats, to.u);
    }
    if (config->no_head_trunk) return to;
    to.z = xph_plan_buffer(plan, plan->rows, config->head_width);
    xph_emit_linear(plan, to.u, tensor(plan, TRUNK), tensor(plan, TRUNK_BIAS), (xph_ref){0}, to.z);
    return to;
}

/* What heads with layers are shown of rows `every` apart, from row `skipped` on. */
static xph_heads_input shown_of(const xph_plan *plan, xph_ref z, xph_space actions, int64_t skipped,
                                int64_t every)
{
    const xph_model_shape *shape = &plan->model->shape;
    int64_t past = shape->slots * shape->heads;
    return (xph_heads_input){
        z,
        {.space = actions, .ld = shape->heads},
        {.space = XPH_SPACE_PAST, .at = skipped * past * (int64_t)sizeof(int32_t), .ld = every * past}};
}

static void emit_heads(xph_plan *plan)
{
    const xph_heads_args args = heads_args(plan, plan->z, plan->base);
    xph_heads_args *a = xph_emit_heads(plan, &args, plan->units);
    if (!a) return;
    bind_heads(plan, a, plan->z);
    xph_plan_bind(plan, &a->base, plan->base);
    xph_plan_bind(plan, &a->actions, (xph_ref){.space = XPH_SPACE_ACTIONS});
    xph_plan_bind(plan, &a->y, plan->logits);
}

/* ---- all rows ---- */

/* On matrix units the heads read rows as they are. A loss that is made with them asks nothing of the value head. */
void xph_heads_forward(xph_plan *plan)
{
    const bool layered = is_layered(plan->model);
    if (!plan->model->config.no_final_norm) plan->stats = xph_plan_kept(plan, plan->rows, 2);
    const seen to = emit_trunk(plan, plan->x, plan->stats);
    plan->u = to.u;
    plan->base = emit_typed_base(plan, past_columns(plan));
    const xph_heads_args shape = heads_args(plan, to.z, plan->base);
    plan->units = !layered && xph_plan_has_units(plan, &shape);
    plan->net->fuses = plan->units && plan->train;
    plan->when = plan->net->fuses ? XPH_WHEN_APART : XPH_WHEN_ALWAYS;
    plan->value_z = xph_value_forward(plan, plan->u, true);
    plan->z = layered || plan->units ? to.z : xph_emit_reals(plan, to.z, plan->rows);
    if (!plan->units) plan->base = xph_emit_reals(plan, plan->base, plan->rows);
    const xph_heads_input shown = shown_of(plan, plan->z, XPH_SPACE_ACTIONS, 0, 1);
    if (layered)
        xph_layers_forward(plan, &shown, plan->base);
    else
        emit_heads(plan);
    plan->when = XPH_WHEN_ALWAYS;
}

static xph_heads_grad_args grad_args(const xph_plan *plan, xph_ref dz)
{
    return (xph_heads_grad_args){
        .fwd = heads_args(plan, plan->z, plan->base), .lddy = plan->model->shape.logits, .lddz = dz.ld};
}

/* All but the gradient of the logits. Matrix units add up the bias of the trunk. */
static void bind_grad(xph_plan *plan, xph_heads_grad_args *a, xph_ref dz)
{
    bind_heads(plan, &a->fwd, plan->z);
    xph_plan_bind(plan, &a->fwd.actions, (xph_ref){.space = XPH_SPACE_ACTIONS});
    xph_plan_bind(plan, &a->dz, dz);
    xph_plan_bind(plan, &a->dv, xph_gradient(plan, tensor(plan, LOGITS)));
    xph_plan_bind(plan, &a->dbias, xph_gradient(plan, tensor(plan, LOGITS_BIAS)));
    xph_plan_bind(plan, &a->de, xph_gradient(plan, tensor(plan, EMBED)));
    if (plan->units) xph_plan_bind(plan, &a->dz_sum, xph_gradient(plan, tensor(plan, TRUNK_BIAS)));
}

static void emit_heads_grad(xph_plan *plan, xph_ref dz)
{
    const xph_heads_grad_args args = grad_args(plan, dz);
    xph_heads_grad_args *a = xph_emit_heads_grad(plan, &args, plan->units);
    if (!a) return;
    bind_grad(plan, a, dz);
    xph_plan_bind(plan, &a->dy, (xph_ref){.space = XPH_SPACE_DLOGITS});
}

/* Heads, loss and gradients at once. */
static void emit_fused(xph_plan *plan, xph_ref dz, xph_ref dlogits)
{
    const xph_heads_grad_args args = grad_args(plan, dz);
    xph_heads_loss_args *a = xph_emit_units(plan, XPH_HEADS_ALL, &args);
    if (!a) return;
    bind_grad(plan, &a->grad, dz);
    xph_plan_bind(plan, &a->grad.fwd.base, plan->base);
    xph_plan_bind(plan, &a->grad.dy, dlogits);
    xph_plan_bind(plan, &a->loss, (xph_ref){.space = XPH_SPACE_LOSS});
}

/* Gradients of logits as the gradient of past actions reads them. */
static xph_ref emit_typed_dlogits(xph_plan *plan)
{
    const xph_ref dlogits = {.space = XPH_SPACE_DLOGITS, .ld = plan->model->shape.logits};
    return has_past(plan->model) ? xph_emit_typed(plan, dlogits, plan->rows) : (xph_ref){0};
}

static void emit_past_grad(xph_plan *plan, xph_ref dlogits)
{
    if (has_past(plan->model))
        xph_emit_linear_grad(plan, past_columns(plan), tensor(plan, PAST), -1, dlogits, (xph_ref){0}, false);
}

static void emit_trunk_grad(xph_plan *plan, xph_ref dz, xph_ref du, bool bias)
{
    xph_emit_linear_grad(plan, plan->u, tensor(plan, TRUNK), bias ? tensor(plan, TRUNK_BIAS) : -1, dz, du,
                         false);
}

/* Logits, loss and their gradients are one step, or the loss lies between two. */
static void emit_plain_grad(xph_plan *plan, xph_ref dz, xph_ref du)
{
    plan->when = plan->net->fuses ? XPH_WHEN_APART : XPH_WHEN_ALWAYS;
    emit_heads_grad(plan, dz);
    const xph_ref dlogits = emit_typed_dlogits(plan);
    plan->when = XPH_WHEN_FUSED;
    if (plan->net->fuses) emit_fused(plan, dz, dlogits);
    plan->when = XPH_WHEN_ALWAYS;
    emit_past_grad(plan, dlogits);
    if (!plan->units) dz = xph_emit_typed(plan, dz, plan->rows);
    emit_trunk_grad(plan, dz, du, !plan->units);
}

static void emit_layered_grad(xph_plan *plan, const xph_heads_input *shown, xph_ref dz, xph_ref du)
{
    xph_layers_backward(plan, shown, dz);
    emit_past_grad(plan, emit_typed_dlogits(plan));
    if (!plan->model->config.no_head_trunk) emit_trunk_grad(plan, dz, du, true);
}

/* Where there is no LayerNorm du is the gradient of x, and without a trunk dz is du. */
void xph_heads_backward(xph_plan *plan)
{
    const exphil_model_config *config = &plan->model->config;
    const xph_heads_input shown = shown_of(plan, plan->z, XPH_SPACE_ACTIONS, 0, 1);
    const bool layered = is_layered(plan->model);
    xph_ref du = config->no_final_norm ? plan->dx : xph_plan_buffer(plan, plan->rows, config->hidden),
            dz = du;
    if (!config->no_head_trunk)
        dz = layered || plan->units ? xph_plan_buffer(plan, plan->rows, config->head_width)
                                    : xph_plan_reals(plan, plan->rows, config->head_width);
    if (layered)
        emit_layered_grad(plan, &shown, dz, du);
    else
        emit_plain_grad(plan, dz, du);
    plan->when = plan->net->fuses ? XPH_WHEN_APART : XPH_WHEN_ALWAYS;
    xph_value_backward(plan, plan->u, du);
    plan->when = XPH_WHEN_ALWAYS;
    if (!config->no_final_norm)
        xph_emit_norm_grad(plan, plan->x, plan->model->norm_first, XPH_ACT_NONE, plan->stats, du, plan->dx,
                           false);
}

static void emit_sample(xph_plan *plan, xph_ref z, xph_ref base)
{
    const xph_model_shape *shape = &plan->model->shape;
    const xph_sample_args args = {
        .heads = heads_args(plan, z, base), .ldn = shape->logits, .ldp = shape->heads, .lda = shape->heads};
    xph_step *step = xph_plan_step(plan, XPH_OP_SAMPLE, &args, sizeof args);
    if (!step) return;
    xph_sample_args *a = &step->args.sample;
    bind_heads(plan, &a->heads, z);
    xph_plan_bind(plan, &a->heads.base, base);
    xph_plan_bind(plan, &a->heads.y, plan->logits);
    xph_bind_draw(plan, step, 0);
}

void xph_heads_draw(xph_plan *plan)
{
    const xph_model_shape *shape = &plan->model->shape;
    const bool all = plan->net->flags & XPH_NET_DRAWS_ALL;
    int64_t skipped = all ? 0 : plan->time - 1, every = all ? 1 : plan->time;
    xph_ref last = xph_columns(plan->x, skipped * shape->hidden), past = past_columns(plan);
    last.ld = every * shape->hidden;
    past = xph_columns(past, skipped * plan->row.ld);
    past.ld = every * plan->row.ld;
    plan->rows = all ? plan->rows : plan->batch;
    const seen to = emit_trunk(plan, last, (xph_ref){0});
    const bool layered = is_layered(plan->model);
    xph_ref z = layered ? to.z : xph_emit_reals(plan, to.z, plan->rows);
    (void)xph_value_forward(plan, to.u, false);
    xph_ref base = emit_base(plan, past);
    const xph_heads_input shown = shown_of(plan, z, XPH_SPACE_DRAWN, skipped, every);
    if (layered)
        xph_layers_draw(plan, &shown, base);
    else
        emit_sample(plan, z, base);
    plan->rows = plan->batch * plan->time;
}
