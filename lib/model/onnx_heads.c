/* The end of a step as an ONNX graph: LayerNorm, trunk, the heads one after the other, the action that is drawn, the
 * queue of decided actions, the value (heads_block.c, value_block.c, doc/model.md). Heads with layers of their own:
 * onnx_layers.c. */
#include "model/onnx_graph.h"

#include <stdio.h>

enum { VALUE_TRUNK, VALUE_TRUNK_BIAS, VALUE_OUT, VALUE_OUT_BIAS };

/* What the heads share while they are drawn: parts by head. */
typedef struct drawing {
    int64_t count[EXPHIL_HEADS_MAX];
    const char *name[EXPHIL_HEADS_MAX];
    char part[EXPHIL_HEADS_MAX][40]; /* "head.<name>": a head may be called like anything else */
    const char *parts[EXPHIL_HEADS_MAX];
    xph_onnx_value base[EXPHIL_HEADS_MAX];                                /* what logits start from */
    xph_onnx_value temperature[EXPHIL_HEADS_MAX], luck[EXPHIL_HEADS_MAX]; /* of each logit */
    xph_onnx_value value[EXPHIL_HEADS_MAX];                               /* [N, 1] what was taken */
    xph_onnx_value last[EXPHIL_HEADS_MAX];                                /* in the newest past action */
    xph_onnx_value before; /* [N, logits of the heads so far] what they took, as codes; "" */
} drawing;

static bool autoregressive(const xph_onnx *g)
{
    return g->model->config.heads == EXPHIL_HEADS_AUTOREGRESSIVE;
}

static bool layered(const xph_onnx *g)
{
    return g->model->config.head_layers > 0;
}

static xph_onnx_value all_logits(xph_onnx *g, const char *name, xph_onnx_value of_heads)
{
    const xph_onnx_value head = {"logit.head"};
    return xph_onnx_gather(g, name, of_heads, head, 1);
}

static void split_heads(xph_onnx *g, const drawing *d, const char *name, xph_onnx_value x, int32_t axis,
                        xph_onnx_value *to)
{
    xph_onnx_split(g, name, x, axis, (int32_t)g->model->shape.heads, d->count, d->parts, to);
}

/* ---- how actions are drawn ------------------------------------------------------------------------------ */

static void number_logits(xph_onnx *g)
{
    const exphil_model *model = g->model;
    const size_t bytes = (size_t)model->shape.logits * sizeof(int64_t);
    int64_t *head = xph_alloc(model->context, bytes);
    if (!head) {
        g->status = xph_no_memory(bytes, g->error);
        return;
    }
    for (int64_t h = 0; h < model->shape.heads; h++)
        for (int64_t i = 0; i < model->head[h].count; i++) head[model->head[h].first + i] = h;
    (void)xph_onnx_ints(g, "logit.head", model->shape.logits, head);
    xph_free(model->context, head, bytes);
}

/* What a bit's probability must exceed: noise, or where the choice is not drawn a threshold that depends on what was
 * pressed. */
static xph_onnx_value bars(xph_onnx *g, const xph_onnx_row *row, xph_onnx_value noise, xph_onnx_value draws)
{
    const int64_t dims[] = {-1, g->model->shape.heads};
    static const char on[] = "of each head: a bit goes on above it, where temperature is 0",
                      stays[] = "of each head: a bit stays on above it, where temperature is 0";
    xph_onnx_value press = xph_onnx_input(g, "press", XPH_ONNX_FLOAT, 2, dims, on),
                   release = xph_onnx_input(g, "release", XPH_ONNX_FLOAT, 2, dims, stays);
    press = all_logits(g, "press.logits", press);
    release = all_logits(g, "release.logits", release);
    xph_onnx_value bar = xph_onnx_where(g, "bar", row->pressed, release, press);
    return xph_onnx_where(g, "bar.drawn", draws, noise, bar);
}

/* -log(-log u), what the logits of a class are moved by; 0 where the choice is not drawn. */
static xph_onnx_value gumbel(xph_onnx *g, xph_onnx_value noise, xph_onnx_value draws)
{
    xph_onnx_value none = xph_onnx_float(g, "luck.none", 0.0f);
    xph_onnx_value luck = xph_onnx_of(g, "Log", "luck.log", noise);
    luck = xph_onnx_of(g, "Neg", "luck.minus", luck);
    luck = xph_onnx_of(g, "Log", "luck.log_log", luck);
    luck = xph_onnx_of(g, "Neg", "luck", luck);
    return xph_onnx_where(g, "luck.drawn", draws, luck, none);
}

static void take_luck(xph_onnx *g, const xph_onnx_row *row, drawing *d)
{
    const exphil_model *model = g->model;
    const int64_t dims[] = {-1, model->shape.logits}, each[] = {-1, model->shape.heads};
    static const char every[] = "uniform in (0, 1), one for each logit",
                      cold[] = "of each head; 0: the most likely, nothing is drawn";
    xph_onnx_value bar[EXPHIL_HEADS_MAX], none = xph_onnx_float(g, "temperature.none", 0.0f),
                                          one = xph_onnx_float(g, "temperature.one", 1.0f);
    xph_onnx_value noise = xph_onnx_input(g, "noise", XPH_ONNX_FLOAT, 2, dims, every),
                   heat = xph_onnx_input(g, "temperature", XPH_ONNX_FLOAT, 2, each, cold);
    heat = all_logits(g, "temperature.logits", heat);
    xph_onnx_value draws = xph_onnx_both(g, "Greater", "draws", heat, none);
    heat = xph_onnx_where(g, "temperature.or_one", draws, heat, one);
    split_heads(g, d, "temperature", heat, 1, d->temperature);
    if (xph_onnx_has(model, EXPHIL_CATEGORICAL))
        split_heads(g, d, "luck", gumbel(g, noise, draws), 1, d->luck);
    if (!xph_onnx_has(model, EXPHIL_BERNOULLI)) return;
    split_heads(g, d, "bar", bars(g, row, noise, draws), 1, bar);
    for (int64_t h = 0; h < model->shape.heads; h++)
        if (model->head[h].kind == EXPHIL_BERNOULLI) d->luck[h] = bar[h];
}

/* ---- heads ---------------------------------------------------------------------------------------------- */

/* [N, 1]: the class taken. */
static void draw_class(xph_onnx *g, drawing *d, int64_t h, xph_onnx_value logits)
{
    logits = xph_onnx_both(g, "Div", "scaled", logits, d->temperature[h]);
    logits = xph_onnx_both(g, "Add", "moved", logits, d->luck[h]);
    xph_onnx_node(g, "ArgMax");
    xph_onnx_in(g, logits);
    xph_onnx_set_int(g, "axis", 1);
    xph_onnx_set_int(g, "keepdims", 1);
    d->value[h] = xph_onnx_out(g, "value");
}

/* [N, 1]: the bits that are on as one number; gives them as [N, count] bools. */
static xph_onnx_value draw_bits(xph_onnx *g, drawing *d, int64_t h, xph_onnx_value logits)
{
    int64_t power[32];
    for (int64_t i = 0; i < d->count[h]; i++) power[i] = (int64_t)1 << i;
    xph_onnx_value powers = xph_onnx_ints(g, "powers", d->count[h], power);
    logits = xph_onnx_both(g, "Div", "scaled", logits, d->temperature[h]);
    logits = xph_onnx_of(g, "Sigmoid", "probability", logits);
    xph_onnx_value on = xph_onnx_both(g, "Greater", "on", logits, d->luck[h]);
    xph_onnx_value bits = xph_onnx_cast(g, "bits", on, XPH_ONNX_INT64);
    bits = xph_onnx_both(g, "Mul", "bits.placed", bits, powers);
    d->value[h] = xph_onnx_sum(g, "value", bits, 1, true);
    return on;
}

/* What the value of a head adds to the trunk. */
static xph_onnx_value taken(xph_onnx *g, const drawing *d, int64_t h, xph_onnx_value on)
{
    char part[40];
    const xph_head *head = &g->model->head[h];
    snprintf(part, sizeof part, ".%s", d->name[h]);
    xph_onnx_value rows = xph_onnx_rows(g, xph_onnx_find(g, "heads.embed"), part, head->first, head->count);
    if (head->kind == EXPHIL_BERNOULLI) {
        on = xph_onnx_cast(g, "bits.f32", on, XPH_ONNX_FLOAT);
        return xph_onnx_both(g, "MatMul", "taken", on, rows);
    }
    xph_onnx_value axis = xph_onnx_axis(g, 1), at = xph_onnx_both(g, "Squeeze", "class", d->value[h], axis);
    return xph_onnx_gather(g, "taken", rows, at, 0);
}

/* [N, count] of a class [N, 1]. */
static xph_onnx_value one_hot(xph_onnx *g, xph_onnx_value value, int64_t count)
{
    static const float off_on[] = {0.0f, 1.0f};
    xph_onnx_value axis = xph_onnx_axis(g, 1), depth = xph_onnx_int(g, "classes", count),
                   values = xph_onnx_floats(g, "off_on", 2, off_on);
    value = xph_onnx_both(g, "Squeeze", "class", value, axis);
    xph_onnx_node(g, "OneHot");
    xph_onnx_in(g, value);
    xph_onnx_in(g, depth);
    xph_onnx_in(g, values);
    return xph_onnx_out(g, "codes");
}

/* The value of a head as codes, behind those of the heads before it. */
static void add_codes(xph_onnx *g, drawing *d, int64_t h, xph_onnx_value on)
{
    const bool bits = g->model->head[h].kind == EXPHIL_BERNOULLI;
    xph_onnx_value codes =
        bits ? xph_onnx_cast(g, "codes", on, XPH_ONNX_FLOAT) : one_hot(g, d->value[h], d->count[h]);
    d->before = *d->before.name ? xph_onnx_concat(g, "codes.all", d->before, codes, 1) : codes;
}

static xph_onnx_value draw_head(xph_onnx *g, drawing *d, int64_t h, xph_onnx_value logits)
{
    if (g->model->head[h].kind == EXPHIL_BERNOULLI) return draw_bits(g, d, h, logits);
    draw_class(g, d, h, logits);
    return (xph_onnx_value){""};
}

/* Logits of head h from the trunk so far. */
static xph_onnx_value head_logits(xph_onnx *g, const drawing *d, int64_t h, xph_onnx_value s)
{
    char part[40];
    const xph_head *head = &g->model->head[h];
    snprintf(part, sizeof part, ".%s", d->name[h]);
    xph_onnx_value rows =
        xph_onnx_rows(g, xph_onnx_find(g, "heads.logits.weight"), part, head->first, head->count);
    s = xph_onnx_silu(g, "active", s);
    return xph_onnx_gemm(g, "logits", s, rows, d->base[h]);
}

/* What past actions add to all logits, with the bias where there is one for all; "": nothing. */
static xph_onnx_value past_term(xph_onnx *g, const xph_onnx_row *row)
{
    if (!*row->seen.name || g->model->config.no_head_past) return (xph_onnx_value){""};
    const int64_t bias = layered(g) ? -1 : xph_onnx_find(g, "heads.logits.bias");
    return xph_onnx_linear(g, "past.logits", row->seen, xph_onnx_find(g, "heads.past.weight"), bias);
}

/* Where the logits of each head start: past actions, or the bias alone. */
static void take_bases(xph_onnx *g, const xph_onnx_row *row, drawing *d)
{
    const exphil_model *model = g->model;
    const xph_onnx_value past = past_term(g, row);
    if (*past.name) split_heads(g, d, "past.logits", past, 1, d->base);
    if (*past.name || layered(g)) return;
    for (int64_t h = 0; h < model->shape.heads; h++) {
        char part[40];
        snprintf(part, sizeof part, ".%s", d->name[h]);
        d->base[h] = xph_onnx_rows(g, xph_onnx_find(g, "heads.logits.bias"), part, model->head[h].first,
                                   model->head[h].count);
    }
}

/* The newest past action, as the network sees it. */
static void take_last(xph_onnx *g, const xph_onnx_row *row, drawing *d)
{
    if (!g->model->config.head_last) return;
    xph_onnx_value last = xph_onnx_first(g, "past.last", row->seen, g->model->shape.logits, 1);
    split_heads(g, d, "past.last", last, 1, d->last);
}

static xph_onnx_value next_logits(xph_onnx *g, const drawing *d, int64_t h, xph_onnx_value s)
{
    if (!layered(g)) return head_logits(g, d, h, s);
    const xph_onnx_shown shown = {.z = s, .before = d->before, .last = d->last[h]};
    return xph_onnx_layers(g, d->name[h], &shown, d->base[h]);
}

/* What the next head sees: the trunk, and what this one took. */
static xph_onnx_value pass_on(xph_onnx *g, drawing *d, int64_t h, xph_onnx_value on, xph_onnx_value s)
{
    if (!autoregressive(g) || h + 1 == g->model->shape.heads) return s;
    if (!layered(g)) return xph_onnx_both(g, "Add", "trunk", s, taken(g, d, h, on));
    add_codes(g, d, h, on);
    return s;
}

static void draw_in_order(xph_onnx *g, const xph_onnx_row *row, drawing *d, xph_onnx_value s)
{
    const int64_t heads = g->model->shape.heads, dims[] = {-1, g->model->shape.logits};
    xph_onnx_value logits[EXPHIL_HEADS_MAX];
    take_bases(g, row, d);
    take_last(g, row, d);
    for (int64_t h = 0; h < heads; h++) {
        snprintf(g->prefix, sizeof g->prefix, "head.%d.%s.", (int)h, d->name[h]);
        logits[h] = next_logits(g, d, h, s);
        xph_onnx_value on = draw_head(g, d, h, logits[h]);
        s = pass_on(g, d, h, on, s);
        g->prefix[0] = 0;
    }
    xph_onnx_node(g, "Concat");
    for (int64_t h = 0; h < heads; h++) xph_onnx_in(g, logits[h]);
    xph_onnx_set_int(g, "axis", 1);
    xph_onnx_output(g, xph_onnx_out(g, "logits"), XPH_ONNX_FLOAT, 2, dims, "logits of the heads, in order");
}

static void draw_apart(xph_onnx *g, const xph_onnx_row *row, drawing *d, xph_onnx_value z)
{
    const int64_t dims[] = {-1, g->model->shape.logits};
    xph_onnx_value part[EXPHIL_HEADS_MAX],
        base = past_term(g, row), weight = xph_onnx_tensor(g, xph_onnx_find(g, "heads.logits.weight"));
    if (!*base.name) base = xph_onnx_tensor(g, xph_onnx_find(g, "heads.logits.bias"));
    z = xph_onnx_silu(g, "heads.active", z);
    xph_onnx_value logits = xph_onnx_gemm(g, "logits", z, weight, base);
    xph_onnx_output(g, logits, XPH_ONNX_FLOAT, 2, dims, "logits of the heads, in order");
    split_heads(g, d, "heads.logits", logits, 1, part);
    for (int64_t h = 0; h < g->model->shape.heads; h++) {
        snprintf(g->prefix, sizeof g->prefix, "head.%d.%s.", (int)h, d->name[h]);
        (void)draw_head(g, d, h, part[h]);
        g->prefix[0] = 0;
    }
}

/* ---- what goes out --------------------------------------------------------------------------------------- */

/* The action that acts now: the one decided `delay` frames ago. */
static void deliver(xph_onnx *g, const xph_onnx_row *row, xph_onnx_value all)
{
    const int64_t heads = g->model->shape.heads, dims[] = {-1, heads}, each[] = {-1, 1, 1};
    static const char what[] = "the action that acts now: decided delay frames ago";
    if (!*row->delay.name) {
        xph_onnx_value at = xph_onnx_int(g, "actions.slot", g->model->shape.delay);
        xph_onnx_output(g, xph_onnx_gather(g, "actions", all, at, 1), XPH_ONNX_INT64, 2, dims, what);
        return;
    }
    int64_t ones[EXPHIL_HEADS_MAX];
    for (int64_t h = 0; h < heads; h++) ones[h] = 1;
    xph_onnx_value at = xph_onnx_reshape(g, "actions.delay", row->delay, 3, each),
                   one = xph_onnx_ints(g, "actions.ones", heads, ones), axis = xph_onnx_axis(g, 1);
    at = xph_onnx_both(g, "Mul", "actions.slots", at, one);
    xph_onnx_node(g, "GatherElements");
    xph_onnx_in(g, all);
    xph_onnx_in(g, at);
    xph_onnx_set_int(g, "axis", 1);
    xph_onnx_value due = xph_onnx_both(g, "Squeeze", "actions", xph_onnx_out(g, "actions.due"), axis);
    xph_onnx_output(g, due, XPH_ONNX_INT64, 2, dims, what);
}

static void give_actions(xph_onnx *g, const xph_onnx_row *row, const drawing *d)
{
    const int64_t heads = g->model->shape.heads, dims[] = {-1, heads}, queue[] = {-1, row->queue, heads};
    xph_onnx_node(g, "Concat");
    for (int64_t h = 0; h < heads; h++) xph_onnx_in(g, d->value[h]);
    xph_onnx_set_int(g, "axis", 1);
    xph_onnx_value decided = xph_onnx_out(g, "decided");
    xph_onnx_output(g, decided, XPH_ONNX_INT64, 2, dims, "the action decided in this frame");
    if (!row->queue) {
        xph_onnx_output(g, xph_onnx_of(g, "Identity", "actions", decided), XPH_ONNX_INT64, 2, dims,
                        "the action that acts now");
        return;
    }
    xph_onnx_value all = xph_onnx_widen(g, "decided.slot", decided, 1);
    all = xph_onnx_concat(g, "past.all", all, row->past, 1);
    xph_onnx_output(g, xph_onnx_first(g, "past_out", all, row->queue, 1), XPH_ONNX_INT64, 3, queue,
                    "state of the next frame");
    deliver(g, row, all);
}

static void give_value(xph_onnx *g, xph_onnx_value u)
{
    const int64_t first = g->model->value_first, dims[] = {-1, 1};
    if (!g->model->shape.value) return;
    u = xph_onnx_linear(g, "value.trunk", u, first + VALUE_TRUNK, first + VALUE_TRUNK_BIAS);
    u = xph_onnx_silu(g, "value.active", u);
    u = xph_onnx_linear(g, "value", u, first + VALUE_OUT, first + VALUE_OUT_BIAS);
    xph_onnx_output(g, u, XPH_ONNX_FLOAT, 2, dims, "the return that is still to come");
}

void xph_onnx_heads(xph_onnx *g, xph_onnx_value x, const xph_onnx_row *row)
{
    const exphil_model *model = g->model;
    drawing *d = xph_calloc(model->context, 1, sizeof *d);
    if (!d) {
        g->status = xph_no_memory(sizeof *d, g->error);
        return;
    }
    for (int64_t h = 0; h < model->shape.heads; h++) {
        d->count[h] = model->head[h].count;
        d->name[h] = model->spec->heads[h].name;
        snprintf(d->part[h], sizeof d->part[h], "head.%s", d->name[h]);
        d->parts[h] = d->part[h];
    }
    if (!model->config.no_final_norm) x = xph_onnx_norm(g, "norm", x, xph_onnx_find(g, "norm.weight"));
    xph_onnx_value z = x;
    if (!model->config.no_head_trunk) {
        const int64_t trunk = xph_onnx_find(g, "heads.trunk.weight");
        z = xph_onnx_linear(g, "heads.trunk", x, trunk, trunk + 1);
    }
    number_logits(g);
    take_luck(g, row, d);
    if (autoregressive(g) || layered(g))
        draw_in_order(g, row, d, z);
    else
        draw_apart(g, row, d, z);
    give_actions(g, row, d);
    give_value(g, x);
    xph_free(model->context, d, sizeof *d);
}
