/* The life of a model: it is made from a configuration, shared by counted references, and has its weights in
 * one arena on the device. */
#include "device/device.h"
#include "model/layer.h"

/* ---- making and freeing -------------------------------------------------------------------------------- */

static size_t weights_bytes(const exphil_model *model)
{
    return (size_t)model->shape.weights * model->shape.real_bytes;
}

/* Also of a model that is only partly made. */
static void free_model(exphil_model *model)
{
    exphil_context *context = model->context;
    const xph_backend *backend = model->device->backend;
    if (model->packed) backend->free(model->device, model->packed, model->shape.packed_bytes);
    if (model->weights) backend->free(model->device, model->weights, weights_bytes(model));
    if (model->packing) xph_mutex_destroy(model->packing);
    xph_free(context, model->tensor, (size_t)model->tensor_capacity * sizeof *model->tensor);
    if (model->spec) xph_spec_free(context, model->spec);
    xph_notes_free(context, &model->notes);
    xph_free(context, model, sizeof *model);
    xph_context_release(context);
}

static exphil_status take_spec(exphil_model *model, exphil_error *error)
{
    exphil_spec melee = EXPHIL_SPEC_INIT;
    const exphil_spec *spec = model->config.spec;
    if (!spec) {
        XPH_TRY(exphil_melee_spec(NULL, NULL, &melee, error));
        spec = &melee;
    }
    XPH_TRY(xph_spec_copy(model->context, spec, &model->spec, error));
    model->config.spec = model->spec;
    return EXPHIL_OK;
}

static exphil_status take_told(exphil_model *model, exphil_error *error)
{
    exphil_model_config *config = &model->config;
    xph_told *told = &model->told;
    XPH_TRY(xph_told_take(told, config->conditions, config->condition_count, config->delays,
                          config->delay_count, &config->delay_frames, "exphil_model_config", error));
    config->conditions = told->conditions ? told->condition : NULL;
    config->delays = told->delays ? told->delay : NULL;
    int64_t columns = xph_told_columns(told), ids = model->spec->id_count;
    if (ids + columns <= EXPHIL_IDS_MAX) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID,
                    "the spec has %lld ids, conditions and delays are %lld tables more: at most %d in all",
                    (long long)ids, (long long)columns, EXPHIL_IDS_MAX);
}

static exphil_status take_blocks(exphil_model *model, exphil_error *error)
{
    xph_block_kind kinds[XPH_BLOCKS_MOST];
    XPH_TRY(xph_pattern_read(model->config.blocks, kinds, &model->block_count, error));
    for (int64_t i = 0; i < model->block_count; i++) model->block[i].kind = kinds[i];
    memcpy(model->blocks, model->config.blocks, strlen(model->config.blocks) + 1);
    model->config.blocks = model->blocks;
    return EXPHIL_OK;
}

/* Of x in front of every block: the input's until one of them takes it to hidden. */
static exphil_status fill_widths(exphil_model *model, exphil_error *error)
{
    int64_t hidden = model->config.hidden,
            width = model->config.input_width ? model->config.input_width : hidden;
    model->first_width = width;
    model->widest = width > hidden ? width : hidden;
    for (int64_t i = 0; i < model->block_count; i++) {
        xph_block *block = &model->block[i];
        const xph_layer *layer = xph_layer_of(block->kind);
        block->width = width;
        if (width != hidden && !layer->any_width)
            return xph_fail(
                error, EXPHIL_E_INVALID,
                "exphil_model_config.input_width is %lld and hidden %lld: block %lld, %s, needs hidden; only "
                "norm and relu may stand before the first of lstm_only, gru_only and dense",
                (long long)width, (long long)hidden, (long long)i, xph_block_word(block->kind));
        if (layer->to_hidden) width = hidden;
    }
    if (width == hidden) return EXPHIL_OK;
    return xph_fail(
        error, EXPHIL_E_INVALID,
        "exphil_model_config.input_width is %lld and hidden %lld: none of lstm_only, gru_only and dense is "
        "among the blocks",
        (long long)width, (long long)hidden);
}

static void fill_heads(exphil_model *model)
{
    int64_t first = 0;
    for (int64_t i = 0; i < model->spec->head_count; i++) {
        const exphil_head_spec *head = &model->spec->heads[i];
        model->head[i] = (xph_head){.kind = head->kind, .count = head->count, .first = first};
        model->alone[i] = (xph_head){.kind = head->kind, .count = head->count};
        first += head->count;
    }
}

static void fill_shape(exphil_model *model, xph_type narrow)
{
    const exphil_model_config *config = &model->config;
    const exphil_spec *spec = model->spec;
    model->shape = (xph_model_shape){
        .type = config->type == EXPHIL_TYPE_F64 ? XPH_F64 : XPH_F32,
        .narrow = narrow,
        .mode = config->mode,
        .delay = config->delay_frames,
        .slots = config->delay_frames + !config->no_previous_action,
        .neutral_start = config->neutral_start,
        .autoregressive = config->heads == EXPHIL_HEADS_AUTOREGRESSIVE,
        .window = config->mode == EXPHIL_MODE_WINDOW ? config->window_frames : 0,
        .floats = spec->float_count,
        .ids = spec->id_count,
        .heads = spec->head_count,
        .logits = xph_spec_logits(spec),
        .hidden = config->hidden,
        .value = config->value != EXPHIL_VALUE_NONE,
        .detached = config->value == EXPHIL_VALUE_DETACHED,
        .real_bytes = config->type == EXPHIL_TYPE_F64 ? sizeof(double) : sizeof(float),
        .spec_hash = exphil_spec_hash(spec),
    };
    model->shape.told = xph_told_columns(&model->told);
    model->shape.tables = model->shape.ids + model->shape.told;
    model->row = spec->float_count + model->shape.slots * model->shape.logits;
    for (int64_t i = 0; i < spec->id_count; i++) model->row += spec->ids[i].width;
    for (int64_t i = 0; i < model->told.conditions; i++) model->row += model->told.condition[i].width;
    if (model->told.delays) model->row += XPH_DELAY_WIDTH;
}

exphil_status xph_model_zero(exphil_model *model, exphil_error *error)
{
    const xph_backend *backend = model->device->backend;
    size_t bytes;
    if (!xph_size_mul((size_t)model->shape.weights, model->shape.real_bytes, &bytes))
        return xph_no_memory(SIZE_MAX, error);
    exphil_status status = backend->alloc(model->device, bytes, &model->weights);
    if (status < 0) return xph_no_device_memory(error, model->device, status, bytes);
    xph_stream *stream;
    status = backend->stream_create(model->device, 0, &stream);
    if (status < 0) return xph_fail_device(error, model->device, status, "the device made no stream");
    status = xph_stream_end(stream, backend->zero(stream, model->weights, bytes));
    return status < 0
               ? xph_fail_device(error, model->device, status, "the device could not clear the weights")
               : EXPHIL_OK;
}

static exphil_status check_last(const exphil_model *model, exphil_error *error)
{
    if (!model->config.head_last || model->shape.slots) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID,
                    "exphil_model_config.head_last needs a past action as input: without delay, and with "
                    "no_previous_action, there is none");
}

static exphil_status fill_model(exphil_model *model, xph_type narrow, exphil_error *error)
{
    XPH_TRY(take_spec(model, error));
    XPH_TRY(take_told(model, error));
    XPH_TRY(take_blocks(model, error));
    XPH_TRY(fill_widths(model, error));
    fill_heads(model);
    fill_shape(model, narrow);
    XPH_TRY(check_last(model, error));
    XPH_TRY(xph_model_declare(model, error));
    return xph_mutex_create(model->context, &model->packing, error);
}

exphil_status xph_model_outline(exphil_context *context, const exphil_model_config *config, xph_type narrow,
                                exphil_model **model, exphil_error *error)
{
    XPH_TRY(xph_context_check(context, error));
    if (!model) return xph_fail(error, EXPHIL_E_INVALID, "model is NULL");
    exphil_model_config known;
    XPH_TRY(xph_model_config_resolve(config, &known, error));
    exphil_model *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->device = xph_context_backend(context);
    made->config = known;
    atomic_init(&made->references, 1);
    exphil_status status = fill_model(made, narrow, error);
    if (status < 0) {
        free_model(made);
        return status;
    }
    *model = made;
    return EXPHIL_OK;
}

exphil_status xph_model_make(exphil_context *context, const exphil_model_config *config, xph_type narrow,
                             exphil_model **model, exphil_error *error)
{
    exphil_model *made;
    XPH_TRY(xph_model_outline(context, config, narrow, &made, error));
    exphil_status status = xph_model_zero(made, error);
    if (status < 0) {
        free_model(made);
        return status;
    }
    *model = made;
    return EXPHIL_OK;
}

exphil_status exphil_model_create(exphil_context *context, const exphil_model_config *config,
                                  exphil_model **model, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_model *made;
    XPH_TRY(xph_context_check(context, error));
    if (!model) return xph_fail(error, EXPHIL_E_INVALID, "model is NULL");
    XPH_TRY(xph_model_make(context, config, 0, &made, error));
    exphil_status status = xph_model_init(made, error);
    if (status < 0) {
        xph_model_release(made);
        return status;
    }
    *model = made;
    return EXPHIL_OK;
}

void exphil_model_destroy(exphil_model *model)
{
    xph_model_release(model);
}

exphil_model *xph_model_retain(const exphil_model *model)
{
    exphil_model *shared = (exphil_model *)(uintptr_t)model;
    atomic_fetch_add_explicit(&shared->references, 1, memory_order_relaxed);
    return shared;
}

void xph_model_release(exphil_model *model)
{
    if (!model || atomic_fetch_sub_explicit(&model->references, 1, memory_order_acq_rel) != 1) return;
    free_model(model);
}

bool xph_model_alone(const exphil_model *model)
{
    return atomic_load_explicit(&((exphil_model *)(uintptr_t)model)->references, memory_order_acquire) == 1;
}

exphil_status xph_model_blank(exphil_context *context, const exphil_model *like,
                              const exphil_model_config *config, exphil_model **model, exphil_error *error)
{
    return xph_model_make(context, like ? &like->config : config, like ? like->shape.narrow : 0, model,
                          error);
}

exphil_status xph_model_with_weights(const exphil_model *like, const void *weights, uint64_t updates,
                                     uint64_t frames, exphil_model **model, exphil_error *error)
{
    exphil_model *made;
    XPH_TRY(xph_model_make(like->context, &like->config, like->shape.narrow, &made, error));
    const xph_backend *backend = made->device->backend;
    xph_stream *stream;
    exphil_status status = xph_notes_take(made->context, like->notes.text, &made->notes, error);
    if (status < 0) {
        xph_model_release(made);
        return status;
    }
    status = backend->stream_create(made->device, 0, &stream);
    if (status >= 0)
        status = xph_stream_end(stream, backend->copy(stream, made->weights, weights, weights_bytes(made)));
    if (status < 0) {
        xph_model_release(made);
        return xph_fail_device(error, like->device, status, "the device could not copy the weights");
    }
    made->updates = updates;
    made->frames = frames;
    *model = made;
    return EXPHIL_OK;
}
