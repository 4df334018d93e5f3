/* A model's configuration as JSON text: every field of exphil_model_config with its default written out,
 * and the whole spec. Enumerations are words, 64-bit numbers that JSON cannot carry are hexadecimal text. */
#include "model/model_text.h"

#include <stddef.h>

/* Counts of the configuration, in the order of the file. All are positive once defaults are written out. */
static const struct {
    const char *name;
    size_t at;
} counts[] = {
    {"hidden", offsetof(exphil_model_config, hidden)},
    {"head_width", offsetof(exphil_model_config, head_width)},
    {"mamba_states", offsetof(exphil_model_config, mamba_states)},
    {"mamba_expand", offsetof(exphil_model_config, mamba_expand)},
    {"mamba_taps", offsetof(exphil_model_config, mamba_taps)},
    {"mamba_rank", offsetof(exphil_model_config, mamba_rank)},
    {"attention_heads", offsetof(exphil_model_config, attention_heads)},
    {"attention_dim", offsetof(exphil_model_config, attention_dim)},
    {"attention_window_frames", offsetof(exphil_model_config, attention_window_frames)},
    {"ffn_expand", offsetof(exphil_model_config, ffn_expand)},
    {"window_frames", offsetof(exphil_model_config, window_frames)},
};
/* Of the members that are written only where they are not the usual: integers, from 1 to most. */
static const struct {
    const char *name;
    size_t at;
    int64_t most;
    bool wide; /* int64_t */
} extras[] = {
    {"no_final_norm", offsetof(exphil_model_config, no_final_norm), 1, false},
    {"head_layers", offsetof(exphil_model_config, head_layers), XPH_HEAD_LAYERS_MOST, false},
    {"head_units", offsetof(exphil_model_config, head_units), INT32_MAX, true},
    {"head_last", offsetof(exphil_model_config, head_last), 1, false},
    {"no_head_past", offsetof(exphil_model_config, no_head_past), 1, false},
    {"no_head_trunk", offsetof(exphil_model_config, no_head_trunk), 1, false},
    {"input_width", offsetof(exphil_model_config, input_width), INT32_MAX, true},
};
#define EXTRAS ((int32_t)(sizeof extras / sizeof extras[0]))
#define COUNTS ((int32_t)(sizeof counts / sizeof counts[0]))
#define MEMBERS                                                                                              \
  (COUNTS + 13) /* of the object: those, seven of the spec, six more of the configuration; then weights,
                    neutral_start, conditions, delays, value and what is not the usual (extras, norm_epsilon,
                    head_activation) where they are needed */

static const char *const kind_words[] = {"bernoulli", "categorical", NULL};
static const char *const mode_words[] = {"carry", "window", NULL};
static const char *const order_words[] = {"independent", "autoregressive", NULL};
static const char *const type_words[] = {"F32", "F64", NULL};
static const char *const value_words[] = {"detached", "shared", NULL}; /* from EXPHIL_VALUE_DETACHED on */
static const char *const activation_words[] = {"relu", "gelu_tanh",
                                               NULL};            /* from EXPHIL_ACTIVATION_RELU on */
static const char *const weights_words[] = {"BF16", "I8", NULL}; /* from XPH_BF16 on */

/* ---- writing ------------------------------------------------------------------------------------------- */

static void write_ids(const exphil_spec *spec, xph_json_out *out)
{
    xph_json_open(out, "ids", '[');
    for (int64_t i = 0; i < spec->id_count; i++) {
        xph_json_open(out, NULL, '{');
        xph_json_add_text(out, "name", spec->ids[i].name);
        xph_json_add_int(out, "entries", spec->ids[i].entries);
        xph_json_add_int(out, "width", spec->ids[i].width);
        xph_json_close(out, '}');
    }
    xph_json_close(out, ']');
}

static void write_heads(const exphil_spec *spec, xph_json_out *out)
{
    xph_json_open(out, "heads", '[');
    for (int64_t i = 0; i < spec->head_count; i++) {
        xph_json_open(out, NULL, '{');
        xph_json_add_text(out, "name", spec->heads[i].name);
        xph_json_add_text(out, "kind", kind_words[spec->heads[i].kind]);
        xph_json_add_int(out, "count", spec->heads[i].count);
        xph_json_add_int(out, "neutral", spec->heads[i].neutral);
        xph_json_close(out, '}');
    }
    xph_json_close(out, ']');
}

static void write_told(const xph_told *told, xph_json_out *out)
{
    if (told->conditions) {
        xph_json_open(out, "conditions", '[');
        for (int64_t i = 0; i < told->conditions; i++) {
            xph_json_open(out, NULL, '{');
            xph_json_add_text(out, "name", told->condition[i].name);
            xph_json_add_int(out, "values", told->condition[i].values);
            xph_json_add_int(out, "width", told->condition[i].width);
            xph_json_add_double(out, "mask", told->condition[i].mask);
            xph_json_close(out, '}');
        }
        xph_json_close(out, ']');
    }
    if (!told->delays) return;
    xph_json_open(out, "delays", '[');
    for (int64_t i = 0; i < told->delays; i++) xph_json_add_int(out, NULL, told->delay[i]);
    xph_json_close(out, ']');
}

static int64_t extra_of(const exphil_model_config *config, int32_t i)
{
    int32_t narrow;
    int64_t wide;
    memcpy(&narrow, (const char *)config + extras[i].at, sizeof narrow);
    if (!extras[i].wide) return narrow;
    memcpy(&wide, (const char *)config + extras[i].at, sizeof wide);
    return wide;
}

static void write_extras(const exphil_model_config *config, xph_json_out *out)
{
    if (config->norm_epsilon != XPH_NORM_EPSILON)
        xph_json_add_double(out, "norm_epsilon", config->norm_epsilon);
    for (int32_t i = 0; i < EXTRAS; i++)
        if (extra_of(config, i)) xph_json_add_int(out, extras[i].name, extra_of(config, i));
    if (config->head_activation)
        xph_json_add_text(out, "head_activation",
                          activation_words[config->head_activation - EXPHIL_ACTIVATION_RELU]);
}

void xph_model_text_write(const exphil_model *model, xph_json_out *out)
{
    const exphil_model_config *config = &model->config;
    const exphil_spec *spec = model->spec;
    xph_json_open(out, NULL, '{');
    xph_json_add_text(out, "layout", spec->layout);
    xph_json_add_text(out, "codec", spec->codec);
    xph_json_add_hex(out, "layout_hash", spec->layout_hash);
    xph_json_add_int(out, "float_count", spec->float_count);
    write_ids(spec, out);
    write_heads(spec, out);
    xph_json_add_text(out, "blocks", model->blocks);
    xph_json_add_hex(out, "seed", config->seed);
    for (int32_t i = 0; i < COUNTS; i++) {
        int64_t value;
        memcpy(&value, (const char *)config + counts[i].at, sizeof value);
        xph_json_add_int(out, counts[i].name, value);
    }
    xph_json_add_int(out, "delay_frames", config->delay_frames);
    xph_json_add_int(out, "no_previous_action", config->no_previous_action);
    xph_json_add_text(out, "mode", mode_words[config->mode]);
    xph_json_add_text(out, "head_order", order_words[config->heads]);
    xph_json_add_text(out, "type", type_words[config->type]);
    if (config->neutral_start) xph_json_add_int(out, "neutral_start", 1); /* absent is what 0.1 wrote */
    write_told(&model->told, out);
    if (config->value) xph_json_add_text(out, "value", value_words[config->value - EXPHIL_VALUE_DETACHED]);
    write_extras(config, out);
    if (model->shape.narrow) xph_json_add_text(out, "weights", weights_words[model->shape.narrow - XPH_BF16]);
    xph_json_close(out, '}');
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static exphil_status read_int32(const xph_json *json, int32_t object, const char *name, int32_t *value,
                                exphil_error *error)
{
    int64_t wide;
    XPH_TRY(xph_json_get_int(json, object, name, 0, INT32_MAX, &wide, error));
    *value = (int32_t)wide;
    return EXPHIL_OK;
}

static exphil_status read_word(const xph_json *json, int32_t object, const char *name,
                               const char *const *words, int32_t *value, exphil_error *error)
{
    const char *text;
    XPH_TRY(xph_json_get_text(json, object, name, &text, error));
    for (int32_t i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) != 0) continue;
        *value = i;
        return EXPHIL_OK;
    }
    return xph_json_refuse(json, xph_json_find(json, object, name), "is an unknown word", error);
}

/* An object with so many members, so that none is there that nobody reads. */
static exphil_status check_members(const xph_json *json, int32_t at, int32_t members, exphil_error *error)
{
    if (xph_json_kind(json, at) != XPH_JSON_OBJECT) return xph_json_refuse(json, at, "is no object", error);
    if (xph_json_count(json, at) == members) return EXPHIL_OK;
    return xph_json_refuse(json, at, "has other fields than this version knows", error);
}

/* The array `name` with at most `most` items: *first of them, and *count. */
static exphil_status read_list(const xph_json *json, const char *name, int32_t most, int32_t *first,
                               int64_t *count, exphil_error *error)
{
    int32_t list;
    XPH_TRY(xph_json_get(json, 0, name, XPH_JSON_ARRAY, &list, error));
    if (xph_json_count(json, list) > most) return xph_json_refuse(json, list, "has too many items", error);
    *first = xph_json_first(json, list);
    *count = xph_json_count(json, list);
    return EXPHIL_OK;
}

static exphil_status read_ids(const xph_json *json, xph_model_text *text, exphil_error *error)
{
    int32_t at = -1;
    XPH_TRY(read_list(json, "ids", EXPHIL_IDS_MAX, &at, &text->spec.id_count, error));
    for (exphil_id_spec *id = text->ids; at >= 0; at = xph_json_next(json, at), id++) {
        XPH_TRY(check_members(json, at, 3, error));
        XPH_TRY(xph_json_get_text(json, at, "name", &id->name, error));
        XPH_TRY(read_int32(json, at, "entries", &id->entries, error));
        XPH_TRY(read_int32(json, at, "width", &id->width, error));
        if (!id->width) return xph_json_refuse(json, at, "has width 0", error);
    }
    return EXPHIL_OK;
}

static exphil_status read_heads(const xph_json *json, xph_model_text *text, exphil_error *error)
{
    int32_t at = -1;
    XPH_TRY(read_list(json, "heads", EXPHIL_HEADS_MAX, &at, &text->spec.head_count, error));
    for (exphil_head_spec *head = text->heads; at >= 0; at = xph_json_next(json, at), head++) {
        XPH_TRY(check_members(json, at, 4, error));
        XPH_TRY(xph_json_get_text(json, at, "name", &head->name, error));
        XPH_TRY(read_word(json, at, "kind", kind_words, &head->kind, error));
        XPH_TRY(read_int32(json, at, "count", &head->count, error));
        XPH_TRY(read_int32(json, at, "neutral", &head->neutral, error));
    }
    return EXPHIL_OK;
}

static exphil_status read_spec(const xph_json *json, xph_model_text *text, exphil_error *error)
{
    exphil_spec *spec = &text->spec;
    spec->struct_size = sizeof *spec;
    spec->ids = text->ids;
    spec->heads = text->heads;
    XPH_TRY(xph_json_get_text(json, 0, "layout", &spec->layout, error));
    XPH_TRY(xph_json_get_text(json, 0, "codec", &spec->codec, error));
    XPH_TRY(xph_json_get_hex(json, 0, "layout_hash", &spec->layout_hash, error));
    if (!spec->layout_hash) {
        return xph_json_refuse(json, xph_json_find(json, 0, "layout_hash"), "is 0", error);
    }
    XPH_TRY(xph_json_get_int(json, 0, "float_count", 0, INT32_MAX, &spec->float_count, error));
    XPH_TRY(read_ids(json, text, error));
    return read_heads(json, text, error);
}

/* Written when it is 1 only. */
static exphil_status read_start(const xph_json *json, exphil_model_config *config, exphil_error *error)
{
    int64_t value;
    if (xph_json_find(json, 0, "neutral_start") < 0) return EXPHIL_OK;
    XPH_TRY(xph_json_get_int(json, 0, "neutral_start", 1, 1, &value, error));
    config->neutral_start = (int32_t)value;
    return EXPHIL_OK;
}

static exphil_status read_value(const xph_json *json, exphil_model_config *config, exphil_error *error)
{
    if (xph_json_find(json, 0, "value") < 0) return EXPHIL_OK;
    XPH_TRY(read_word(json, 0, "value", value_words, &config->value, error));
    config->value += EXPHIL_VALUE_DETACHED;
    return EXPHIL_OK;
}

static exphil_status read_conditions(const xph_json *json, xph_model_text *text, exphil_error *error)
{
    exphil_model_config *config = &text->config;
    int32_t at = -1;
    if (xph_json_find(json, 0, "conditions") < 0) return EXPHIL_OK;
    XPH_TRY(read_list(json, "conditions", EXPHIL_CONDITIONS_MAX, &at, &config->condition_count, error));
    if (at < 0) return xph_json_refuse(json, xph_json_find(json, 0, "conditions"), "is empty", error);
    config->conditions = text->conditions;
    for (exphil_condition_spec *c = text->conditions; at >= 0; at = xph_json_next(json, at), c++) {
        XPH_TRY(check_members(json, at, 4, error));
        XPH_TRY(xph_json_get_text(json, at, "name", &c->name, error));
        XPH_TRY(read_int32(json, at, "values", &c->values, error));
        XPH_TRY(read_int32(json, at, "width", &c->width, error));
        XPH_TRY(xph_json_get_double(json, at, "mask", &c->mask, error));
        if (!c->width) return xph_json_refuse(json, at, "has width 0", error);
    }
    return EXPHIL_OK;
}

static exphil_status read_delays(const xph_json *json, xph_model_text *text, exphil_error *error)
{
    exphil_model_config *config = &text->config;
    int32_t at = -1;
    if (xph_json_find(json, 0, "delays") < 0) return EXPHIL_OK;
    XPH_TRY(read_list(json, "delays", EXPHIL_DELAYS_MAX, &at, &config->delay_count, error));
    if (at < 0) return xph_json_refuse(json, xph_json_find(json, 0, "delays"), "is empty", error);
    config->delays = text->delays;
    for (int32_t *delay = text->delays; at >= 0; at = xph_json_next(json, at), delay++) {
        int64_t value;
        XPH_TRY(xph_json_int_at(json, at, 0, INT32_MAX, &value, error));
        *delay = (int32_t)value;
    }
    int32_t longest = text->delays[config->delay_count - 1];
    if (config->delay_frames == longest) return EXPHIL_OK;
    return xph_json_refuse(json, xph_json_find(json, 0, "delay_frames"), "is not the longest of delays",
                           error);
}

/* Those that are there; *members grows by their number. */
static exphil_status read_extras(const xph_json *json, exphil_model_config *config, int32_t *members,
                                 exphil_error *error)
{
    for (int32_t i = 0; i < EXTRAS; i++) {
        int64_t value;
        if (xph_json_find(json, 0, extras[i].name) < 0) continue;
        XPH_TRY(xph_json_get_int(json, 0, extras[i].name, 1, extras[i].most, &value, error));
        const int32_t narrow = (int32_t)value;
        memcpy((char *)config + extras[i].at, extras[i].wide ? (const void *)&value : &narrow,
               extras[i].wide ? sizeof value : sizeof narrow);
        ++*members;
    }
    if (xph_json_find(json, 0, "head_activation") >= 0) {
        XPH_TRY(read_word(json, 0, "head_activation", activation_words, &config->head_activation, error));
        config->head_activation += EXPHIL_ACTIVATION_RELU;
        ++*members;
    }
    int32_t epsilon = xph_json_find(json, 0, "norm_epsilon");
    if (epsilon < 0) return EXPHIL_OK;
    XPH_TRY(xph_json_get_double(json, 0, "norm_epsilon", &config->norm_epsilon, error));
    if (config->norm_epsilon == 0.0) return xph_json_refuse(json, epsilon, "is 0", error);
    ++*members;
    return EXPHIL_OK;
}

exphil_status xph_model_text_read(const xph_json *json, xph_model_text *text, exphil_error *error)
{
    exphil_model_config *config = &text->config;
    memset(text, 0, sizeof *text);
    config->struct_size = sizeof *config;
    config->spec = &text->spec;
    XPH_TRY(read_spec(json, text, error));
    XPH_TRY(xph_json_get_text(json, 0, "blocks", &config->blocks, error));
    XPH_TRY(xph_json_get_hex(json, 0, "seed", &config->seed, error));
    for (int32_t i = 0; i < COUNTS; i++) {
        int64_t value;
        XPH_TRY(xph_json_get_int(json, 0, counts[i].name, 1, INT32_MAX, &value, error));
        memcpy((char *)config + counts[i].at, &value, sizeof value);
    }
    XPH_TRY(read_int32(json, 0, "delay_frames", &config->delay_frames, error));
    XPH_TRY(read_int32(json, 0, "no_previous_action", &config->no_previous_action, error));
    XPH_TRY(read_word(json, 0, "mode", mode_words, &config->mode, error));
    XPH_TRY(read_word(json, 0, "head_order", order_words, &config->heads, error));
    XPH_TRY(read_word(json, 0, "type", type_words, &config->type, error));
    XPH_TRY(read_start(json, config, error));
    XPH_TRY(read_conditions(json, text, error));
    XPH_TRY(read_delays(json, text, error));
    XPH_TRY(read_value(json, config, error));
    int32_t members = MEMBERS + config->neutral_start + (config->condition_count > 0) +
                      (config->delay_count > 0) + (config->value > 0);
    XPH_TRY(read_extras(json, config, &members, error));
    if (xph_json_find(json, 0, "weights") < 0) return check_members(json, 0, members, error);
    XPH_TRY(read_word(json, 0, "weights", weights_words, &text->narrow, error));
    text->narrow += XPH_BF16;
    if (config->type != EXPHIL_TYPE_F32)
        return xph_json_refuse(json, xph_json_find(json, 0, "weights"), "needs type F32", error);
    return check_members(json, 0, members + 1, error);
}
