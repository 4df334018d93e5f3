/* The table of tensors: layers declare theirs in order, then every tensor gets its place in the arena of
 * weights (first those that weight decay applies to) and in that of packed weights. */
#include "model/model_internal.h"

#include <stdio.h>

#define ALIGN_ELEMENTS 16 /* tensors start at multiples: 64 bytes in single precision */
#define PACKED_ALIGN   64

const xph_layer *xph_layer_of(xph_block_kind kind)
{
    static const xph_layer *const layers[XPH_BLOCK_KINDS] = {
        [XPH_BLOCK_MAMBA] = &xph_layer_mamba, [XPH_BLOCK_LSTM] = &xph_layer_lstm,
        [XPH_BLOCK_GRU] = &xph_layer_gru,     [XPH_BLOCK_ATTENTION] = &xph_layer_attention,
        [XPH_BLOCK_MLP] = &xph_layer_mlp,     [XPH_BLOCK_FFN] = &xph_layer_ffn,
    };
    return kind >= 0 && kind < XPH_BLOCK_KINDS ? layers[kind] : NULL;
}

double xph_residual_scale(const exphil_model *model)
{
    return 1.0 / __builtin_sqrt((double)model->block_count);
}

/* ---- declaring ----------------------------------------------------------------------------------------- */

static exphil_status grow(exphil_model *model, exphil_error *error)
{
    if (model->tensor_count < model->tensor_room) return EXPHIL_OK;
    int64_t room = model->tensor_room ? 2 * model->tensor_room : 64;
    size_t bytes = (size_t)room * sizeof *model->tensor,
           old = (size_t)model->tensor_room * sizeof *model->tensor;
    xph_tensor *more = xph_alloc(model->context, bytes);
    if (!more) return xph_no_memory(bytes, error);
    if (old) memcpy(more, model->tensor, old);
    xph_free(model->context, model->tensor, old);
    model->tensor = more;
    model->tensor_room = room;
    return EXPHIL_OK;
}

void xph_declare(xph_declaring *to, const char *name, int64_t rows, int64_t columns, int32_t flags,
                 xph_init init, double scale)
{
    exphil_model *model = to->model;
    if (to->status >= 0) to->status = grow(model, to->error);
    if (to->status < 0) return;
    xph_tensor tensor = {.init = init,
                         .scale = scale,
                         .bias = -1,
                         .packs = (flags & XPH_PACKS) != 0,
                         .prepares = (flags & XPH_PREPARES) != 0};
    tensor.keeps = flags & (XPH_KEEPS_HALF | XPH_KEEPS_ALL);
    tensor.param = (xph_param){.rank = columns ? 2 : 1,
                               .decays = (flags & XPH_DECAYS) != 0,
                               .dim = {rows, columns ? columns : 1, 1, 1},
                               .count = rows * (columns ? columns : 1)};
    snprintf(tensor.param.name, sizeof tensor.param.name, "%s%s", to->prefix, name);
    model->tensor[model->tensor_count++] = tensor;
}

void xph_declare_bias(xph_declaring *to, int32_t before, const char *name, int64_t rows, xph_init init,
                      double scale)
{
    exphil_model *model = to->model;
    xph_declare(to, name, rows, 0, 0, init, scale);
    if (to->status < 0) return;
    int64_t own = model->tensor_count - 1;
    model->tensor[own - before].bias = (int32_t)own;
}

void xph_declare_linear(xph_declaring *to, const char *name, int64_t in, int64_t out, double scale)
{
    char text[64];
    snprintf(text, sizeof text, "%s.weight", name);
    xph_declare(to, text, out, in, XPH_DECAYS | XPH_PACKS, XPH_INIT_UNIFORM,
                scale / __builtin_sqrt((double)in));
    snprintf(text, sizeof text, "%s.bias", name);
    xph_declare_bias(to, 1, text, out, XPH_INIT_ZERO, 0.0);
}

void xph_declare_norm(xph_declaring *to, const char *name, int64_t width)
{
    char text[64];
    snprintf(text, sizeof text, "%s.weight", name);
    xph_declare(to, text, width, 0, 0, XPH_INIT_ONE, 0.0);
    snprintf(text, sizeof text, "%s.bias", name);
    xph_declare(to, text, width, 0, 0, XPH_INIT_ZERO, 0.0);
}

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

exphil_status xph_model_declare(exphil_model *model, exphil_error *error)
{
    xph_declaring to = {.model = model, .error = error};
    model->input_first = 0;
    xph_input_declare(&to);
    declare_blocks(&to);
    model->norm_first = (int32_t)model->tensor_count;
    xph_declare_norm(&to, "norm", model->shape.hidden);
    model->heads_first = (int32_t)model->tensor_count;
    xph_heads_declare(&to);
    XPH_TRY(to.status);
    model->shape.decaying = place(model, 1, 0);
    model->shape.weights = place(model, 0, model->shape.decaying);
    return place_packed(model, error);
}

/* ---- looking up ---------------------------------------------------------------------------------------- */

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
