/* What a host needs to make rows and controllers of its own, as JSON: the columns of Melee's layouts and what the
 * values of Melee's codecs press. Of other games the layout is the host's own. */
#include "melee/melee.h"
#include "model/onnx_graph.h"

/* Names alone do not make a layout or codec the library's own. */
static bool is_melee(const exphil_model *model)
{
    exphil_spec own = EXPHIL_SPEC_INIT;
    return exphil_melee_spec(model->spec->layout, model->spec->codec, &own, NULL) >= 0 &&
           exphil_spec_hash(&own) == model->shape.spec_hash;
}

/* What sets column c of a one-hot: a number, a list of several or of none, or "other": all that no column has. */
static void write_value(const xph_melee_layout *layout, int64_t field, int32_t c, xph_json_out *out)
{
    int32_t numbers[XPH_MELEE_NUMBERS], count = 0;
    if (xph_melee_one_hot_column(layout, field, -1) == c) {
        xph_json_add_text(out, NULL, "other");
        return;
    }
    for (int32_t n = 0; n < XPH_MELEE_NUMBERS; n++)
        if (xph_melee_one_hot_column(layout, field, n) == c) numbers[count++] = n;
    if (count != 1) xph_json_open(out, NULL, '[');
    for (int32_t i = 0; i < count; i++) xph_json_add_int(out, NULL, numbers[i]);
    if (count != 1) xph_json_close(out, ']');
}

static void write_values(const char *name, int64_t field, int64_t count, xph_json_out *out)
{
    const xph_melee_layout *layout = xph_melee_layout_find(name);
    const char *rule;
    if (!xph_melee_one_hot(layout, field, &rule)) return;
    xph_json_open(out, "values", '[');
    for (int32_t c = 0; c < count; c++) write_value(layout, field, c, out);
    xph_json_close(out, ']');
    if (rule) xph_json_add_text(out, "rule", rule);
}

bool xph_onnx_layout(const exphil_model *model, xph_json_out *out)
{
    const char *layout = model->spec->layout;
    if (!is_melee(model)) return false;
    xph_json_open(out, NULL, '{');
    xph_json_add_text(out, "name", layout);
    xph_json_open(out, "columns", '[');
    for (int64_t i = 0; i < exphil_melee_field_count(layout); i++) {
        exphil_melee_field field = EXPHIL_MELEE_FIELD_INIT;
        if (exphil_melee_field_get(layout, i, &field, NULL) < 0) continue;
        xph_json_open(out, NULL, '{');
        xph_json_add_text(out, "name", field.name);
        xph_json_add_text(out, "of", field.is_id ? "ids" : "floats");
        xph_json_add_int(out, "offset", field.offset);
        xph_json_add_int(out, "count", field.count);
        xph_json_add_double(out, "scale", field.scale);
        xph_json_add_double(out, "low", field.low);
        xph_json_add_double(out, "high", field.high);
        xph_json_add_text(out, "source", field.source);
        write_values(layout, i, field.count, out);
        xph_json_close(out, '}');
    }
    xph_json_close(out, ']');
    xph_json_close(out, '}');
    return true;
}

/* ---- the codec ------------------------------------------------------------------------------------------ */

enum { AXES = 5 };
static const char *const axes[AXES] = {"main_x", "main_y", "c_x", "c_y", "trigger"};

/* The controller of this value of head h, all other heads neutral. */
static exphil_pad pad_of(const exphil_spec *spec, int64_t h, int32_t value)
{
    int32_t action[EXPHIL_HEADS_MAX];
    exphil_pad pad = {0};
    for (int64_t i = 0; i < spec->head_count; i++) action[i] = i == h ? value : spec->heads[i].neutral;
    const exphil_pad nothing = {0}; /* values in range are never refused */
    return exphil_melee_pad_decode(spec->codec, action, &pad, NULL) < 0 ? nothing : pad;
}

static float axis_of(const exphil_pad *pad, int32_t axis)
{
    const float values[AXES] = {pad->main_x, pad->main_y, pad->c_x, pad->c_y, pad->trigger};
    return values[axis];
}

/* The axis that this head moves. */
static int32_t axis_moved(const exphil_spec *spec, int64_t h)
{
    const exphil_pad first = pad_of(spec, h, 0), last = pad_of(spec, h, spec->heads[h].count - 1);
    int32_t axis = 0;
    while (axis + 1 < AXES && !(axis_of(&first, axis) < axis_of(&last, axis))) axis++;
    return axis;
}

static void write_head(const exphil_spec *spec, int64_t h, xph_json_out *out)
{
    const exphil_head_spec *head = &spec->heads[h];
    const bool bits = head->kind == EXPHIL_BERNOULLI;
    const int32_t axis = axis_moved(spec, h);
    xph_json_open(out, NULL, '{');
    xph_json_add_text(out, "head", head->name);
    xph_json_add_text(out, "moves", bits ? "buttons" : axes[axis]);
    xph_json_open(out, "values", '[');
    for (int32_t i = 0; i < head->count; i++) {
        const exphil_pad pad = pad_of(spec, h, bits ? 1 << i : i);
        if (bits)
            xph_json_add_int(out, NULL, pad.buttons);
        else
            xph_json_add_double(out, NULL, (double)axis_of(&pad, axis));
    }
    xph_json_close(out, ']');
    xph_json_close(out, '}');
}

bool xph_onnx_codec(const exphil_model *model, xph_json_out *out)
{
    if (!is_melee(model)) return false;
    xph_json_open(out, NULL, '{');
    xph_json_add_text(out, "name", model->spec->codec);
    xph_json_open(out, "heads", '[');
    for (int64_t h = 0; h < model->spec->head_count; h++) write_head(model->spec, h, out);
    xph_json_close(out, ']');
    xph_json_close(out, '}');
    return true;
}
