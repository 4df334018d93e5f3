/* The input of a step as an ONNX graph: the row, put together of floats, tables and past actions, and its linear
 * (input.c). Past actions are the values of heads, as a host has them; here they become bits and one-hots. */
#include "model/layer.h"
#include "model/onnx_graph.h"

#include <stdio.h>

enum { WEIGHT, BIAS, TABLES };

bool xph_onnx_has(const exphil_model *model, int32_t kind)
{
    for (int64_t h = 0; h < model->shape.heads; h++)
        if (model->head[h].kind == kind) return true;
    return false;
}

/* ---- ids and what is told ------------------------------------------------------------------------------- */

/* One row of the concatenation that is under way. The node is not open yet: its inputs are kept. */
typedef struct parts {
    xph_onnx_value value[EXPHIL_IDS_MAX + 3];
    int32_t count;
} parts;

static void add_part(parts *p, xph_onnx_value value)
{
    p->value[p->count++] = value;
}

/* Columns [first, first + count) of tables, by the columns of an input. */
static void add_tables(xph_onnx *g, parts *p, xph_onnx_value ids, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        char name[XPH_ONNX_NAME];
        const int64_t index = g->model->input_first + TABLES + first + i;
        const char *table = xph_model_param(g->model, index)->name;
        xph_onnx_value rows = xph_onnx_tensor(g, index);
        snprintf(name, sizeof name, "%s.column", table);
        xph_onnx_value at = xph_onnx_int(g, name, i);
        snprintf(name, sizeof name, "%s.id", table);
        at = xph_onnx_gather(g, name, ids, at, 1);
        snprintf(name, sizeof name, "%s.row", table);
        add_part(p, xph_onnx_gather(g, name, rows, at, 0));
    }
}

static void add_ids(xph_onnx *g, parts *p)
{
    const exphil_spec *spec = g->model->spec;
    const int64_t dims[] = {-1, spec->id_count};
    if (!spec->id_count) return;
    xph_onnx_value ids =
        xph_onnx_input(g, "ids", XPH_ONNX_INT64, 2, dims, "ids of the frame, in the order of the spec");
    add_tables(g, p, ids, 0, spec->id_count);
}

static void add_conditions(xph_onnx *g, parts *p)
{
    const xph_told *told = &g->model->told;
    const int64_t dims[] = {-1, told->conditions};
    if (!told->conditions) return;
    xph_onnx_value values =
        xph_onnx_input(g, "conditions", XPH_ONNX_INT64, 2, dims, "what the policy is told; 0: not known");
    add_tables(g, p, values, g->model->spec->id_count, told->conditions);
}

/* The delay in frames, as a row of its table: row 1 + its index. No delay is -1. */
static void add_delay(xph_onnx *g, parts *p, xph_onnx_row *row)
{
    const xph_told *told = &g->model->told;
    const int64_t dims[] = {-1};
    int64_t known[EXPHIL_DELAYS_MAX + 1] = {-1};
    if (!told->delays) return;
    for (int64_t i = 0; i < told->delays; i++) known[i + 1] = told->delay[i];
    row->delay =
        xph_onnx_input(g, "delay", XPH_ONNX_INT64, 1, dims, "frames: one of the delays of the model");
    xph_onnx_value list = xph_onnx_ints(g, "delay.list", told->delays + 1, known),
                   table = xph_onnx_tensor(g, g->model->input_first + TABLES + g->model->spec->id_count +
                                                  told->conditions);
    xph_onnx_value which = xph_onnx_widen(g, "delay.column", row->delay, 1);
    which = xph_onnx_both(g, "Equal", "delay.which", which, list);
    which = xph_onnx_cast(g, "delay.one_hot", which, XPH_ONNX_FLOAT);
    add_part(p, xph_onnx_both(g, "MatMul", "delay.row", which, table));
}

/* ---- past actions --------------------------------------------------------------------------------------- */

/* Of every logit: its head; what its value is divided by and reduced to; and what it then is when the logit is on. */
static void logit_tables(xph_onnx *g, int64_t *head, int64_t *divisor, int64_t *modulus, int64_t *target)
{
    const exphil_model *model = g->model;
    for (int64_t h = 0; h < model->shape.heads; h++) {
        const bool bits = model->head[h].kind == EXPHIL_BERNOULLI;
        for (int64_t i = 0; i < model->head[h].count; i++) {
            const int64_t l = model->head[h].first + i;
            head[l] = h;
            divisor[l] = bits ? (int64_t)1 << i : 1;
            modulus[l] = bits ? 2 : INT32_MAX;
            target[l] = bits ? 1 : i;
        }
    }
}

/* [N, queue, L]: which logits the actions have on. */
static xph_onnx_value on_logits(xph_onnx *g, xph_onnx_value past, const int64_t *table, int64_t logits)
{
    xph_onnx_value head = xph_onnx_ints(g, "past.head", logits, table),
                   target = xph_onnx_ints(g, "past.target", logits, table + 3 * logits);
    xph_onnx_value value = xph_onnx_gather(g, "past.value", past, head, 2);
    if (xph_onnx_has(g->model, EXPHIL_BERNOULLI)) {
        xph_onnx_value divisor = xph_onnx_ints(g, "past.divisor", logits, table + logits),
                       modulus = xph_onnx_ints(g, "past.modulus", logits, table + 2 * logits);
        value = xph_onnx_both(g, "Div", "past.shifted", value, divisor);
        value = xph_onnx_both(g, "Mod", "past.bit", value, modulus);
    }
    return xph_onnx_both(g, "Equal", "past.on", value, target);
}

/* With several delays slots beyond that which holds are neutral. */
static xph_onnx_value hide_slots(xph_onnx *g, xph_onnx_value codes, xph_onnx_value delay)
{
    const exphil_model *model = g->model;
    const int64_t slots = model->shape.slots, logits = model->shape.logits, each[] = {-1, 1, 1};
    int64_t number[65 + 1];
    for (int64_t i = 0; i < slots; i++) number[i] = i - (slots - model->shape.delay);
    size_t bytes = (size_t)logits * sizeof(float);
    float *neutral = xph_alloc(model->context, bytes);
    if (!neutral) {
        g->status = xph_no_memory(bytes, g->error);
        return codes;
    }
    for (int64_t h = 0; h < model->shape.heads; h++)
        for (int32_t i = 0, value = model->spec->heads[h].neutral; i < model->head[h].count; i++)
            neutral[model->head[h].first + i] =
                (float)(model->head[h].kind == EXPHIL_BERNOULLI ? value >> i & 1 : value == i);
    xph_onnx_value rest = xph_onnx_floats(g, "past.neutral", logits, neutral);
    xph_free(model->context, neutral, bytes);
    xph_onnx_value slot = xph_onnx_ints(g, "past.slot", slots, number),
                   last = xph_onnx_reshape(g, "past.delay", delay, 3, each);
    slot = xph_onnx_widen(g, "past.slot.column", slot, 1);
    xph_onnx_value hidden = xph_onnx_both(g, "Less", "past.shown", slot, last);
    return xph_onnx_where(g, "past.visible", hidden, codes, rest);
}

/* So many decided actions are kept: those that are inputs, those under way, and the newest where a bit depends on it. */
static int64_t queue_of(const exphil_model *model)
{
    int64_t slots = model->shape.slots;
    return slots ? slots : xph_onnx_has(model, EXPHIL_BERNOULLI);
}

static void make_codes(xph_onnx *g, xph_onnx_row *row, const int64_t *table)
{
    const exphil_model *model = g->model;
    const int64_t slots = model->shape.slots, logits = model->shape.logits, flat[] = {0, slots * logits};
    xph_onnx_value on = on_logits(g, row->past, table, logits);
    if (xph_onnx_has(model, EXPHIL_BERNOULLI)) {
        xph_onnx_value newest = xph_onnx_int(g, "past.newest", 0);
        row->pressed = xph_onnx_gather(g, "past.pressed", on, newest, 1);
    }
    if (!slots) return;
    xph_onnx_value codes = xph_onnx_cast(g, "past.codes", on, XPH_ONNX_FLOAT);
    if (*row->delay.name) codes = hide_slots(g, codes, row->delay);
    row->seen = xph_onnx_reshape(g, "past.row", codes, 2, flat);
}

static void take_past(xph_onnx *g, xph_onnx_row *row)
{
    const exphil_model *model = g->model;
    const int64_t logits = model->shape.logits, dims[] = {-1, queue_of(model), model->shape.heads};
    const size_t bytes = 4 * (size_t)logits * sizeof(int64_t);
    row->queue = dims[1];
    if (!row->queue) return;
    int64_t *table = xph_alloc(model->context, bytes);
    if (!table) {
        g->status = xph_no_memory(bytes, g->error);
        return;
    }
    logit_tables(g, table, table + logits, table + 2 * logits, table + 3 * logits);
    row->past = xph_onnx_input(g, "past", XPH_ONNX_INT64, 3, dims,
                               "decided actions, newest first; neutral at an episode's start");
    make_codes(g, row, table);
    xph_free(model->context, table, bytes);
}

xph_onnx_value xph_onnx_enter(xph_onnx *g, xph_onnx_row *row)
{
    const exphil_model *model = g->model;
    const int64_t dims[] = {-1, model->shape.floats};
    parts p = {.count = 0};
    *row = (xph_onnx_row){.queue = 0};
    if (model->shape.floats)
        add_part(&p, xph_onnx_input(g, "floats", XPH_ONNX_FLOAT, 2, dims, "floats of the frame"));
    add_ids(g, &p);
    add_conditions(g, &p);
    add_delay(g, &p, row);
    take_past(g, row);
    if (*row->seen.name) add_part(&p, row->seen);
    if (p.count > 1) {
        xph_onnx_node(g, "Concat");
        for (int32_t i = 0; i < p.count; i++) xph_onnx_in(g, p.value[i]);
        xph_onnx_set_int(g, "axis", 1);
        p.value[0] = xph_onnx_out(g, "row");
    }
    return xph_onnx_linear(g, "input", p.value[0], model->input_first + WEIGHT, model->input_first + BIAS);
}
