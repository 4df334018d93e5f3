/* Queries of a model: dimensions, spec, hashes, counters. */
#include "model/tensor_table.h"

#include <stddef.h>
#include <stdio.h>

#define HASH_ELEMENTS 65536 /* of the arena hashed at a time */

const xph_model_shape *xph_model_shape_of(const exphil_model *model)
{
    return &model->shape;
}

exphil_context *xph_model_context(const exphil_model *model)
{
    return model->context;
}

const xph_told *xph_model_told(const exphil_model *model)
{
    return &model->told;
}

const exphil_spec *xph_model_spec(const exphil_model *model)
{
    return model->spec;
}

const xph_head *xph_model_heads(const exphil_model *model)
{
    return model->head;
}

const void *xph_model_weights(const exphil_model *model)
{
    return model->weights;
}

void xph_model_trained(const exphil_model *model, uint64_t *updates, uint64_t *frames)
{
    *updates = model->updates;
    *frames = model->frames;
}

/* ---- tensors ------------------------------------------------------------------------------------------- */

int64_t xph_model_param_count(const exphil_model *model)
{
    return model->tensor_count;
}

const xph_param *xph_model_param(const exphil_model *model, int64_t index)
{
    return &model->tensor[index].param;
}

int64_t xph_model_param_at(const exphil_model *model, int64_t element)
{
    for (int64_t i = 0; i < model->tensor_count; i++) {
        const xph_param *param = &model->tensor[i].param;
        if (element >= param->offset && element < param->offset + param->count) return i;
    }
    return -1;
}

int64_t xph_model_find(const exphil_model *model, const char *name)
{
    for (int64_t i = 0; name && i < model->tensor_count; i++)
        if (strcmp(model->tensor[i].param.name, name) == 0) return i;
    return -1;
}

/* ---- hashes -------------------------------------------------------------------------------------------- */

static void add_number(xph_hasher *hasher, int64_t value)
{
    uint8_t bytes[8]; /* little-endian on every machine */
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)value >> (8 * i));
    xph_hash_add(hasher, bytes, sizeof bytes);
}

/* Nothing where there is nothing: that is 0.1's hash. */
static void add_told(xph_hasher *hasher, const xph_told *told)
{
    if (!xph_told_columns(told)) return;
    add_number(hasher, -2);
    add_number(hasher, told->conditions);
    for (int64_t i = 0; i < told->conditions; i++) {
        xph_hash_add(hasher, told->name[i], sizeof told->name[i]);
        add_number(hasher, told->condition[i].values);
        add_number(hasher, told->condition[i].width);
    }
    for (int64_t i = 0; i < told->delays; i++) add_number(hasher, told->delay[i]);
}

/* What is not the usual: its number behind those of other fields, and what it is. */
static void add_extras(xph_hasher *hasher, const exphil_model_config *c)
{
    int64_t epsilon = 0;
    if (c->norm_epsilon != XPH_NORM_EPSILON) memcpy(&epsilon, &c->norm_epsilon, sizeof epsilon);
    const int64_t extras[] = {epsilon,         c->no_final_norm, c->head_layers,
                              c->head_units,   c->head_last,     c->head_activation,
                              c->no_head_past, c->no_head_trunk, c->input_width};
    for (size_t i = 0; i < sizeof extras / sizeof extras[0]; i++) {
        if (!extras[i]) continue;
        add_number(hasher, -16 - (int64_t)i);
        add_number(hasher, extras[i]);
    }
}

static void add_config(xph_hasher *hasher, const exphil_model *model)
{
    const exphil_model_config *c = &model->config;
    const int64_t numbers[] = {
        (int64_t)model->shape.spec_hash,
        c->hidden,
        c->head_width,
        c->mamba_states,
        c->mamba_expand,
        c->mamba_taps,
        c->mamba_rank,
        c->attention_heads,
        c->attention_dim,
        c->attention_window_frames,
        c->ffn_expand,
        model->shape.window,
        c->delay_frames,
        c->no_previous_action,
        c->mode,
        c->heads,
        c->type,
        model->block_count,
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) add_number(hasher, numbers[i]);
    for (int64_t i = 0; i < model->block_count; i++) add_number(hasher, model->block[i].kind);
    if (model->shape.narrow) add_number(hasher, model->shape.narrow); /* the same numbers compute otherwise */
    if (c->neutral_start) add_number(hasher, -1);                     /* of no type; absent is 0.1's hash */
    add_told(hasher, &model->told);
    if (c->value) add_number(hasher, -2 - (int64_t)c->value); /* likewise */
    add_extras(hasher, c);
}

uint64_t xph_model_config_hash(const exphil_model *model)
{
    static const char what[] = "exphil model 1"; /* another number when tensors or their meaning change */
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    xph_hash_add(&hasher, what, sizeof what);
    add_config(&hasher, model);
    return xph_hash_end(&hasher);
}

exphil_status xph_model_weights_hash(const exphil_model *model, uint64_t *hash, exphil_error *error)
{
    size_t bytes = HASH_ELEMENTS * model->shape.real_bytes;
    void *host = xph_alloc(model->context, bytes);
    if (!host) return xph_no_memory(bytes, error);
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    add_number(&hasher, (int64_t)xph_model_config_hash(model));
    exphil_status status = EXPHIL_OK;
    for (int64_t at = 0; at < model->shape.weights && status >= 0; at += HASH_ELEMENTS) {
        int64_t left = model->shape.weights - at, count = left < HASH_ELEMENTS ? left : HASH_ELEMENTS;
        status = xph_model_pull(model, NULL, at, count, host, error);
        if (status >= 0) xph_hash_add(&hasher, host, (size_t)count * model->shape.real_bytes);
    }
    xph_free(model->context, host, bytes);
    if (status >= 0) *hash = xph_hash_end(&hasher);
    return status;
}

/* ---- public -------------------------------------------------------------------------------------------- */

exphil_status xph_model_check(const exphil_model *model, exphil_error *error)
{
    if (!model) return xph_fail(error, EXPHIL_E_INVALID, "model is NULL");
    return xph_context_check(model->context, error);
}

static int64_t parameters(const exphil_model *model)
{
    int64_t count = 0;
    for (int64_t i = 0; i < model->tensor_count; i++) count += model->tensor[i].param.count;
    return count;
}

static void tell_settings(const exphil_model_config *config, exphil_model_info *known)
{
    known->heads = config->heads;
    known->type = config->type;
    known->value = config->value;
    known->norm_epsilon = config->norm_epsilon;
    known->no_final_norm = config->no_final_norm;
    known->input_width = config->input_width;
    known->head_layers = config->head_layers;
    known->head_units = config->head_units;
    known->head_activation = config->head_activation;
    known->head_last = config->head_last;
    known->no_head_past = config->no_head_past;
    known->no_head_trunk = config->no_head_trunk;
}

exphil_status exphil_model_query(const exphil_model *model, exphil_model_info *info, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_model_check(model, error));
    const xph_model_shape *shape = &model->shape;
    exphil_model_info known = EXPHIL_MODEL_INFO_INIT;
    XPH_TRY(xph_model_weights_hash(model, &known.weights_hash, error));
    known.spec_hash = shape->spec_hash;
    known.parameter_count = parameters(model);
    known.tensor_count = model->tensor_count;
    known.float_count = shape->floats;
    known.id_count = shape->ids;
    known.condition_count = model->told.conditions;
    known.delay_count = model->told.delays;
    known.head_count = shape->heads;
    known.logit_count = shape->logits;
    known.hidden = shape->hidden;
    known.window_frames = shape->window;
    known.state_bytes = (uint64_t)shape->state * shape->real_bytes;
    known.trained_updates = model->updates;
    known.trained_frames = model->frames;
    known.delay_frames = shape->delay;
    known.action_slots = shape->slots;
    known.mode = shape->mode;
    known.weights = model->shape.narrow ? model->shape.narrow : model->config.type;
    known.calibrated = model->calibrated;
    known.neutral_start = shape->neutral_start;
    tell_settings(&model->config, &known);
    snprintf(known.layout, sizeof known.layout, "%s", model->spec->layout);
    snprintf(known.codec, sizeof known.codec, "%s", model->spec->codec);
    snprintf(known.blocks, sizeof known.blocks, "%s", model->blocks);
    return XPH_GIVE(exphil_model_info, info, &known, error);
}

exphil_status exphil_model_spec(const exphil_model *model, exphil_spec *spec, exphil_error *error)
{
    XPH_TRY(xph_model_check(model, error));
    return XPH_GIVE(exphil_spec, spec, model->spec, error);
}
