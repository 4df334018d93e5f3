/* Heads with hidden layers of their own: a first one on z, and on values as rows of tables, those of the heads before it
 * (autoregressive) and its own in the newest past action (head_last); more of the same width; a linear to the logits.
 * In a draw the heads follow one another; with actions given they are independent, and gradients need no order. */
#include "model/layer.h"

#include <stdio.h>

#define CODE_SCALE                                                                                           \
  0.1 /* half-width of what a value adds to the first layer at first, as heads_block.c has it */

/* ---- tensors -------------------------------------------------------------------------------------------- */

static int64_t layers_of(const exphil_model *model)
{
    return model->config.head_layers;
}

/* Whether the first layer of a head sees others. */
static bool sees_before(const exphil_model *model, int64_t head)
{
    return model->shape.autoregressive && head > 0;
}

static int64_t values_before(const exphil_model *model, int64_t head)
{
    return model->head[head].first;
}

/* Index of the weight of a layer, its bias follows; layer head_layers is that of the logits. */
static int64_t layer_at(const exphil_model *model, int64_t head, int64_t layer)
{
    int64_t own = 2 * (layers_of(model) + 1) + model->config.head_last;
    int64_t seen = sees_before(model, head) ? head - 1 : 0;
    return model->layers_first + head * own + seen + 2 * layer;
}

static int64_t before_at(const exphil_model *model, int64_t head)
{
    return layer_at(model, head, layers_of(model) + 1);
}

static int64_t last_at(const exphil_model *model, int64_t head)
{
    return before_at(model, head) + sees_before(model, head);
}

static int64_t seen_width(const exphil_model *model)
{
    return model->config.no_head_trunk ? model->config.hidden : model->config.head_width;
}

static void declare_layer(xph_declaring *to, int64_t head, int64_t layer)
{
    const exphil_model *model = to->model;
    const char *name = model->spec->heads[head].name;
    bool logits = layer == layers_of(model);
    bool repeats = logits && model->shape.slots > 0 && !model->config.no_head_past &&
                   model->head[head].kind == EXPHIL_BERNOULLI;
    int64_t in = layer ? model->config.head_units : seen_width(model),
            out = logits ? model->head[head].count : model->config.head_units;
    char text[128];
    snprintf(text, sizeof text, "heads.%s.%d.weight", name, (int)layer);
    xph_declare(to, text, out, in, XPH_DECAYS | XPH_PACKS | (logits ? XPH_KEEPS_ALL : XPH_KEEPS_HALF),
                XPH_INIT_UNIFORM, 1.0 / __builtin_sqrt((double)in));
    snprintf(text, sizeof text, "heads.%s.%d.bias", name, (int)layer);
    xph_declare_bias(to, 1, text, out, repeats ? XPH_INIT_SAME : XPH_INIT_ZERO, -XPH_REPEAT_SCALE / 2);
}

static void declare_codes(xph_declaring *to, int64_t head, const char *what, int64_t rows)
{
    char text[128];
    snprintf(text, sizeof text, "heads.%s.%s", to->model->spec->heads[head].name, what);
    xph_declare(to, text, rows, to->model->config.head_units, XPH_DECAYS, XPH_INIT_UNIFORM, CODE_SCALE);
}

void xph_layers_declare(xph_declaring *to)
{
    exphil_model *model = to->model;
    model->layers_first = (int32_t)model->tensor_count;
    for (int64_t head = 0; head < model->shape.heads; head++) {
        for (int64_t layer = 0; layer <= layers_of(model); layer++) declare_layer(to, head, layer);
        if (sees_before(model, head)) declare_codes(to, head, "before", values_before(model, head));
        if (model->config.head_last) declare_codes(to, head, "last", model->head[head].count);
    }
}

/* ---- values --------------------------------------------------------------------------------------------- */

static xph_codes_args codes_args(const xph_plan *plan, const xph_head *head, int64_t heads, xph_ref actions,
                                 xph_ref y)
{
    return (xph_codes_args){.type = plan->type,
                            .rows = plan->rows,
                            .width = y.ld,
                            .heads = heads,
                            .head = head,
                            .lda = actions.ld,
                            .ldy = y.ld};
}

static void emit_codes(xph_plan *plan, const xph_head *head, int64_t heads, int64_t table, xph_ref actions,
                       xph_ref y)
{
    const xph_codes_args args = codes_args(plan, head, heads, actions, y);
    xph_step *step = xph_plan_step(plan, XPH_OP_CODES, &args, sizeof args);
    if (!step) return;
    xph_plan_scratch(plan, step, NULL);
    xph_plan_bind(plan, &step->args.codes.table, xph_weight(plan, table));
    xph_plan_bind(plan, &step->args.codes.actions, actions);
    xph_plan_bind(plan, &step->args.codes.y, y);
}

static void emit_codes_grad(xph_plan *plan, const xph_head *head, int64_t heads, int64_t table,
                            xph_ref actions, xph_ref dy)
{
    const xph_codes_grad_args args = {.fwd = codes_args(plan, head, heads, actions, dy), .lddy = dy.ld};
    xph_step *step = xph_plan_step(plan, XPH_OP_CODES_GRAD, &args, sizeof args);
    if (!step) return;
    xph_plan_scratch(plan, step, NULL);
    xph_plan_bind(plan, &step->args.codes_grad.fwd.actions, actions);
    xph_plan_bind(plan, &step->args.codes_grad.dy, dy);
    xph_plan_bind(plan, &step->args.codes_grad.dtable, xph_gradient(plan, table));
}

/* Column `head` of actions or of the newest past action. */
static xph_ref value_of(xph_ref actions, int64_t head)
{
    actions.at += head * (int64_t)sizeof(int32_t);
    return actions;
}

/* ---- forward -------------------------------------------------------------------------------------------- */

static xph_ref first_layer(xph_plan *plan, const xph_heads_input *shown, int64_t head)
{
    const exphil_model *model = plan->model;
    xph_ref s = xph_plan_buffer(plan, plan->rows, model->config.head_units);
    int64_t layer = layer_at(model, head, 0);
    xph_emit_linear(plan, shown->z, layer, layer + 1, (xph_ref){0}, s);
    if (sees_before(model, head))
        emit_codes(plan, model->head, head, before_at(model, head), shown->actions, s);
    if (model->config.head_last)
        emit_codes(plan, &model->alone[head], 1, last_at(model, head), value_of(shown->past, head), s);
    return s;
}

/* act(s) in a buffer of its own: s is kept for backward. */
static xph_ref activated(xph_plan *plan, xph_ref s)
{
    xph_ref a = plan->train ? xph_plan_buffer(plan, plan->rows, s.ld) : s;
    xph_emit_activate(plan, plan->model->config.head_activation, NULL, s, a);
    return a;
}

/* Logits of a head to its columns of y. kept: the layers before their activation, or NULL. */
static void emit_head(xph_plan *plan, const xph_heads_input *shown, xph_ref base, int64_t head, xph_ref *kept,
                      xph_ref y)
{
    const exphil_model *model = plan->model;
    int64_t layers = layers_of(model), out = layer_at(model, head, layers), first = model->head[head].first;
    xph_ref s = first_layer(plan, shown, head);
    for (int64_t k = 1; k <= layers; k++) {
        if (kept) kept[k - 1] = s;
        xph_ref a = activated(plan, s);
        if (k == layers) {
            xph_emit_linear_of_reals(plan, xph_emit_reals(plan, a, plan->rows), out, out + 1,
                                     base.space ? xph_columns(base, first) : base, xph_columns(y, first));
            return;
        }
        int64_t layer = layer_at(model, head, k);
        s = xph_plan_buffer(plan, plan->rows, model->config.head_units);
        xph_emit_linear(plan, a, layer, layer + 1, (xph_ref){0}, s);
    }
}

void xph_layers_forward(xph_plan *plan, const xph_heads_input *shown, xph_ref base)
{
    for (int64_t head = 0; head < plan->model->shape.heads; head++)
        emit_head(plan, shown, base, head, plan->before[head], plan->logits);
}

/* ---- backward ------------------------------------------------------------------------------------------- */

/* From the gradient of the logits to that of the last hidden layer, before its activation. */
static xph_ref logits_back(xph_plan *plan, int64_t head)
{
    const exphil_model *model = plan->model;
    int64_t layers = layers_of(model), out = layer_at(model, head, layers);
    xph_ref s = plan->before[head][layers - 1], a = xph_emit_reals(plan, activated(plan, s), plan->rows);
    xph_ref da = xph_plan_reals(plan, plan->rows, s.ld);
    const xph_ref dlogits = {
        .space = XPH_SPACE_DLOGITS, .element = (uint32_t)model->shape.real_bytes, .ld = model->shape.logits};
    xph_emit_linear_grad_of_reals(plan, a, out, out + 1, xph_columns(dlogits, model->head[head].first), da);
    xph_ref ds = xph_emit_typed(plan, da, plan->rows);
    xph_emit_activate_grad(plan, model->config.head_activation, NULL, s, ds, ds);
    return ds;
}

static void head_back(xph_plan *plan, const xph_heads_input *shown, int64_t head, xph_ref dz)
{
    const exphil_model *model = plan->model;
    xph_ref ds = logits_back(plan, head);
    for (int64_t k = layers_of(model) - 1; k > 0; k--) {
        xph_ref s = plan->before[head][k - 1], da = xph_plan_buffer(plan, plan->rows, s.ld);
        int64_t layer = layer_at(model, head, k);
        xph_emit_linear_grad(plan, activated(plan, s), layer, layer + 1, ds, da, false);
        xph_emit_activate_grad(plan, model->config.head_activation, NULL, s, da, da);
        ds = da;
    }
    int64_t layer = layer_at(model, head, 0);
    xph_emit_linear_grad(plan, shown->z, layer, layer + 1, ds, dz, head > 0);
    if (sees_before(model, head))
        emit_codes_grad(plan, model->head, head, before_at(model, head), shown->actions, ds);
    if (model->config.head_last)
        emit_codes_grad(plan, &model->alone[head], 1, last_at(model, head), value_of(shown->past, head), ds);
}

void xph_layers_backward(xph_plan *plan, const xph_heads_input *shown, xph_ref dz)
{
    for (int64_t head = 0; head < plan->model->shape.heads; head++) {
        size_t mark = plan->top;
        head_back(plan, shown, head, dz);
        plan->top = mark;
    }
}

/* ---- draw ----------------------------------------------------------------------------------------------- */

/* The draw of one head, or of all where `head` is 0 and they do not see each other, from logits that are made: the operation of
 * the other heads, on a trunk without width. */
static void emit_draw(xph_plan *plan, xph_ref made, int64_t head, int64_t heads)
{
    const exphil_model *model = plan->model;
    const xph_model_shape *shape = &model->shape;
    int64_t first = model->head[head].first, own = model->head[head].count;
    const xph_sample_args args = {.heads = {.type = shape->type,
                                            .rows = plan->rows,
                                            .heads = heads,
                                            .logits = heads > 1 ? shape->logits : own,
                                            .head = heads > 1 ? model->head : &model->alone[head],
                                            .ldz = made.ld,
                                            .ldbase = made.ld,
                                            .ldy = shape->logits},
                                  .ldn = shape->logits,
                                  .drawn = first,
                                  .ldp = shape->heads,
                                  .lda = shape->heads};
    xph_step *step = xph_plan_step(plan, XPH_OP_SAMPLE, &args, sizeof args);
    if (!step) return;
    xph_sample_args *a = &step->args.sample;
    xph_plan_bind(plan, &a->heads.z, made);
    xph_plan_bind(plan, &a->heads.v, made);
    xph_plan_bind(plan, &a->heads.base, xph_columns(made, first));
    xph_plan_bind(plan, &a->heads.y, xph_columns(plan->logits, first));
    xph_bind_draw(plan, step, head);
}

void xph_layers_draw(xph_plan *plan, const xph_heads_input *shown, xph_ref base)
{
    const xph_model_shape *shape = &plan->model->shape;
    xph_ref made = xph_plan_reals(plan, plan->rows, shape->logits);
    for (int64_t head = 0; head < shape->heads; head++) {
        size_t mark = plan->top;
        emit_head(plan, shown, base, head, NULL, made);
        if (shape->autoregressive) emit_draw(plan, made, head, 1);
        plan->top = mark;
    }
    if (!shape->autoregressive) emit_draw(plan, made, 0, shape->heads);
}
