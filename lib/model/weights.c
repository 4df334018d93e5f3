/* The weights of a model: what they are rounded to, values out of the arena and into it, and their packed
 * form. */
#include "device/device.h"
#include "model/tensor_table.h"

/* ---- types --------------------------------------------------------------------------------------------- */

const char *xph_type_word(int32_t type)
{
    static const char *const names[] = {"EXPHIL_TYPE_F32", "EXPHIL_TYPE_F64", "EXPHIL_TYPE_BF16",
                                        "EXPHIL_TYPE_I8", "EXPHIL_TYPE_F16"};
    return type < 0 || type > EXPHIL_TYPE_F16 ? "?" : names[type];
}

xph_type xph_tensor_narrow(const xph_tensor *tensor, xph_type narrow)
{
    if (!tensor->packs || tensor->keeps & XPH_KEEPS_ALL) return 0;
    return narrow && tensor->keeps & XPH_KEEPS_HALF ? XPH_BF16 : narrow;
}

xph_type xph_model_narrow(const exphil_model *model, int64_t index)
{
    return xph_tensor_narrow(&model->tensor[index], model->shape.narrow);
}

exphil_status xph_model_check_plain(const exphil_model *model, const char *what, exphil_error *error)
{
    if (!model->shape.narrow) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_STATE, "the weights of the model are rounded to %s: %s",
                    xph_type_word(model->shape.narrow), what);
}

/* ---- values -------------------------------------------------------------------------------------------- */

exphil_status xph_model_pull(const exphil_model *model, const void *weights, int64_t first, int64_t count,
                             void *host, exphil_error *error)
{
    const xph_backend *backend = model->device->backend;
    size_t real_bytes = model->shape.real_bytes;
    const unsigned char *from = weights ? weights : model->weights;
    xph_stream *stream;
    exphil_status status = backend->stream_create(model->device, 0, &stream);
    if (status < 0) return xph_fail_device(error, model->device, status, "the device made no stream");
    status = backend->download(stream, host, from + (size_t)first * real_bytes, (size_t)count * real_bytes);
    status = xph_stream_end(stream, status);
    return status < 0 ? xph_fail_device(error, model->device, status, "the device could not give its weights")
                      : EXPHIL_OK;
}

exphil_status xph_model_push(exphil_model *model, int64_t first, int64_t count, const void *host,
                             exphil_error *error)
{
    const xph_backend *backend = model->device->backend;
    size_t real_bytes = model->shape.real_bytes;
    unsigned char *to = model->weights;
    xph_stream *stream;
    exphil_status status = backend->stream_create(model->device, 0, &stream);
    if (status < 0) return xph_fail_device(error, model->device, status, "the device made no stream");
    status = backend->upload(stream, to + (size_t)first * real_bytes, host, (size_t)count * real_bytes);
    status = xph_stream_end(stream, status);
    model->packed_valid = false;
    atomic_store_explicit(&model->prepared, false, memory_order_release);
    return status < 0 ? xph_fail_device(error, model->device, status, "the device could not take the weights")
                      : EXPHIL_OK;
}

/* ---- the packed form ----------------------------------------------------------------------------------- */

static const void *tensor_in(const exphil_model *model, const void *weights, int64_t index)
{
    if (index < 0) return NULL;
    size_t at = (size_t)model->tensor[index].param.offset * model->shape.real_bytes;
    return (const unsigned char *)weights + at;
}

static exphil_status pack_tensor(const exphil_model *model, xph_stream *stream, xph_type type, int64_t index,
                                 const void *weights, void *to)
{
    const xph_tensor *tensor = &model->tensor[index];
    const void *from = tensor_in(model, weights, index);
    if (tensor->prepares) {
        xph_scan_pack_args args = {.type = model->shape.type,
                                   .width = tensor->param.dim[0],
                                   .states = tensor->param.dim[1],
                                   .a_log = from,
                                   .decay = to};
        return xph_run_once(stream, XPH_OP_SCAN_PACK, &args);
    }
    xph_linear_pack_args args = {.type = type,
                                 .weights = xph_model_narrow(model, index),
                                 .in = tensor->param.dim[1],
                                 .out = tensor->param.dim[0],
                                 .w = from,
                                 .bias = tensor_in(model, weights, tensor->bias),
                                 .packed = to};
    return xph_run_once(stream, XPH_OP_LINEAR_PACK, &args);
}

exphil_status xph_model_pack(const exphil_model *model, xph_stream *stream, xph_type type,
                             const void *weights, void *packed)
{
    for (int64_t i = 0; i < model->tensor_count; i++) {
        const xph_tensor *tensor = &model->tensor[i];
        if (tensor->packed_bytes == 0) continue;
        XPH_TRY(pack_tensor(model, stream, type, i, weights, (unsigned char *)packed + tensor->packed_at));
    }
    return EXPHIL_OK;
}

static exphil_status pack_own(exphil_model *model, exphil_error *error)
{
    const xph_backend *backend = model->device->backend;
    size_t bytes = model->shape.packed_bytes;
    exphil_status status = EXPHIL_OK;
    if (!model->packed) status = backend->alloc(model->device, bytes, &model->packed);
    if (status < 0) return xph_no_device_memory(error, model->device, status, bytes);
    xph_stream *stream;
    status = backend->stream_create(model->device, 0, &stream);
    if (status >= 0) {
        status = xph_model_pack(model, stream, model->shape.type, model->weights, model->packed);
        status = xph_stream_end(stream, status);
    }
    model->packed_valid = status >= 0;
    return status < 0 ? xph_fail_device(error, model->device, status, "the device could not pack the weights")
                      : EXPHIL_OK;
}

exphil_status xph_model_packed(exphil_model *model, const void **packed, exphil_error *error)
{
    exphil_status status = EXPHIL_OK;
    xph_mutex_lock(model->packing);
    if (!model->packed_valid && model->shape.packed_bytes) status = pack_own(model, error);
    if (status >= 0) *packed = model->packed;
    xph_mutex_unlock(model->packing);
    return status;
}
