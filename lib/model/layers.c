/* All kinds of layers, and the table of tensors: layers declare theirs in order, then every tensor gets its
 * place in the arena of weights (first those that weight decay applies to) and in that of packed weights. */
#include "model/layer.h"

#include <stdio.h>

#define ALIGN_ELEMENTS 16 /* tensors start at multiples: 64 bytes in single precision */
#define PACKED_ALIGN   64

const xph_layer *xph_layer_of(xph_block_kind kind)
{
#define LAYER(NAME, name) [XPH_BLOCK_##NAME] = &xph_layer_##name,
    static const xph_layer *const layers[XPH_BLOCK_KINDS] = {XPH_BLOCKS(LAYER)};
    return kind >= 0 && kind < XPH_BLOCK_KINDS ? layers[kind] : NULL;
}

const char *xph_block_word(xph_block_kind kind)
{
#define WORD(NAME, name) [XPH_BLOCK_##NAME] = #name,
    static const char *const words[XPH_BLOCK_KINDS] = {XPH_BLOCKS(WORD)};
    return kind >= 0 && kind < XPH_BLOCK_KINDS ? words[kind] : NULL;
}

/* ---- places -------------------------------------------------------------------------------------------- */

static int64_t place(exphil_model *model, int32_t decays, int64_t at)
{
    for (int64_t i = 0; i < model->tensor_count; i++) {
        xph_param *param = &model->tensor[i].param;
        if (param->decays != decays) continue;
        param->offset = at;
        at += (param->count + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
    }
    return at;
}

static exphil_status matrix_bytes(const exphil_model *model, int64_t index, size_t *bytes,
                                  exphil_error *error)
{
    const xph_tensor *tensor = &model->tensor[index];
    xph_linear_pack_args args = {.type = model->shape.type,
                                 .weights = xph_model_narrow(model, index),
                                 .in = tensor->param.dim[1],
                                 .out = tensor->param.dim[0]};
    xph_op_info info = {0};
    exphil_status status = model->device->backend->query(model->device, XPH_OP_LINEAR_PACK, &args, &info);
    if (status < 0)
        return xph_fail(error, status, "the device %s cannot pack %s for weights of type %s",
                        model->device->backend->name, tensor->param.name,
                        xph_type_word(args.weights ? args.weights : args.type));
    *bytes = info.packed_bytes;
    return EXPHIL_OK;
}

/* 0 where the device does not prepare it: the scan then makes it anew. */
static size_t decay_bytes(const exphil_model *model, const xph_tensor *tensor)
{
    xph_scan_pack_args args = {
        .type = model->shape.type, .width = tensor->param.dim[0], .states = tensor->param.dim[1]};
    xph_op_info info = {0};
    exphil_status status = model->device->backend->query(model->device, XPH_OP_SCAN_PACK, &args, &info);
    return status < 0 ? 0 : info.packed_bytes;
}

static exphil_status place_packed(exphil_model *model, exphil_error *error)
{
    size_t *total = &model->shape.packed_bytes;
    for (int64_t i = 0; i < model->tensor_count; i++) {
        xph_tensor *tensor = &model->tensor[i];
        if (tensor->packs) XPH_TRY(matrix_bytes(model, i, &tensor->packed_bytes, error));
        if (tensor->prepares) tensor->packed_bytes = decay_bytes(model, tensor);
        tensor->packed_at = *total;
        if (!xph_size_add(*total, tensor->packed_bytes, total) ||
            !xph_size_align(*total, PACKED_ALIGN, total))
            return xph_no_memory(SIZE_MAX, error);
    }
    return EXPHIL_OK;
}

/* ---- declaring ----------------------------------------------------------------------------------------- */

static void declare_blocks(xph_declaring *to)
{
    exphil_model *model = to->model;
    for (int64_t i = 0; i < model->block_count; i++) {
        xph_block *block = &model->block[i];
        snprintf(to->prefix, sizeof to->prefix, "blocks.%d.", (int)i);
        block->first = (int32_t)model->tensor_count;
        block->state_at = model->shape.state;
        const xph_layer *layer = xph_layer_of(block->kind);
        if (layer) layer->declare(to, block); /* kinds of a pattern have one */
        model->shape.state += block->state;
    }
    to->prefix[0] = 0;
}

exphil_status xph_model_declare(exphil_model *model, exphil_error *error)
{
    xph_declaring to = {.model = model, .error = error};
    model->input_first = 0;
    xph_input_declare(&to);
    declare_blocks(&to);
    model->norm_first = (int32_t)model->tensor_count;
    if (!model->config.no_final_norm) xph_declare_norm(&to, "norm", model->shape.hidden);
    model->heads_first = (int32_t)model->tensor_count;
    xph_heads_declare(&to);
    model->value_first = (int32_t)model->tensor_count;
    xph_value_declare(&to);
    XPH_TRY(to.status);
    model->shape.decaying = place(model, 1, 0);
    model->shape.weights = place(model, 0, model->shape.decaying);
    return place_packed(model, error);
}
