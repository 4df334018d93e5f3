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

/* Tensors that are packed together, if the device can. */
enum { TOGETHER = 32 };
typedef struct waiting {
    xph_packs_args all;
    xph_linear_pack_args matrix[TOGETHER];
    xph_scan_pack_args decay[TOGETHER];
} waiting;

static void add_tensor(waiting *w, const exphil_model *model, xph_type type, int64_t index,
                       const void *weights, void *to)
{
    const xph_tensor *tensor = &model->tensor[index];
    const void *from = tensor_in(model, weights, index);
    if (tensor->prepares)
        w->decay[w->all.decays++] = (xph_scan_pack_args){.type = model->shape.type,
                                                         .width = tensor->param.dim[0],
                                                         .states = tensor->param.dim[1],
                                                         .a_log = from,
                                                         .decay = to};
    else
        w->matrix[w->all.matrices++] = (xph_linear_pack_args){.type = type,
                                                              .weights = xph_model_narrow(model, index),
                                                              .in = tensor->param.dim[1],
                                                              .out = tensor->param.dim[0],
                                                              .w = from,
                                                              .bias = tensor_in(model, weights, tensor->bias),
                                                              .packed = to};
}

static exphil_status pack_waiting(waiting *w, xph_stream *stream)
{
    xph_packs_args *all = &w->all;
    const int64_t matrices = all->matrices, decays = all->decays;
    const xph_kernel *packs;
    all->matrix = w->matrix, all->decay = w->decay;
    if (xph_choose_kernel(stream->device, XPH_OP_PACKS, all, &packs) >= 0)
        return stream->device->backend->run(stream, packs, all);
    for (int64_t i = 0; i < matrices; i++) XPH_TRY(xph_run_once(stream, XPH_OP_LINEAR_PACK, &w->matrix[i]));
    for (int64_t i = 0; i < decays; i++) XPH_TRY(xph_run_once(stream, XPH_OP_SCAN_PACK, &w->decay[i]));
    return EXPHIL_OK;
}

exphil_status xph_model_pack(const exphil_model *model, xph_stream *stream, xph_type type,
                             const void *weights, void *packed)
{
    waiting w = {.all = {.type = type}};
    for (int64_t i = 0; i < model->tensor_count; i++) {
        const xph_tensor *tensor = &model->tensor[i];
        if (tensor->packed_bytes == 0) continue;
        add_tensor(&w, model, type, i, weights, (unsigned char *)packed + tensor->packed_at);
        if (w.all.matrices < TOGETHER && w.all.decays < TOGETHER) continue;
        XPH_TRY(pack_waiting(&w, stream));
        w.all.matrices = w.all.decays = 0;
    }
    return w.all.matrices || w.all.decays ? pack_waiting(&w, stream) : EXPHIL_OK;
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
