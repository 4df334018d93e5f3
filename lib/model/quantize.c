/* Models with weights in fewer bits: those whose matrices with a packed form (XPH_PACKS) hold rounded
 * numbers. They stand in the arena as reals, exactly, so that code that reads tensors need not know of it;
 * only the packed form, which a step reads, has fewer bits.
 *
 * Not all tolerate 8 bits equally well (held-out human play, Kullback-Leibler divergence of the actions from
 * those in F32): most of the loss came from the input, where observations and one-hot actions share one
 * scale, then from the large diagonal of past actions, then from the trunk. So the first and the last are
 * kept in bfloat16, and past actions as they are (XPH_KEEPS): a tenth of the divergence or less, for a few
 * percent of the bytes. Norms, biases, convolutions, scan parameters, tables of ids and the last matrices of
 * the heads stay as they are too: they are small, and no product of a matrix. */
#include "device/device.h"
#include "model/tensor_table.h"
#include "model/tensors.h"

#include <inttypes.h>

/* int32 sums of products of two numbers up to 127 (lib/device/backend.h). */
#define I8_COLUMNS_MOST 131072

/* ---- rounding ------------------------------------------------------------------------------------------ */

static xph_round_args round_args(const exphil_model *model, xph_type narrow, int64_t index)
{
    const xph_param *param = xph_model_param(model, index);
    return (xph_round_args){.type = model->shape.type,
                            .weights = xph_tensor_narrow(&model->tensor[index], narrow),
                            .in = param->dim[1],
                            .out = param->dim[0]};
}

exphil_status xph_model_can_round(const exphil_model *model, xph_type narrow, exphil_error *error)
{
    if (model->shape.type != XPH_F32)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "a model of %s has no form with weights of %s",
                        xph_type_word(model->config.type), xph_type_word(narrow));
    for (int64_t i = 0; i < model->tensor_count; i++) {
        const xph_param *param = xph_model_param(model, i);
        xph_round_args args = round_args(model, narrow, i);
        if (!args.weights) continue;
        if (args.weights == XPH_I8 && param->dim[1] > I8_COLUMNS_MOST)
            return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                            "tensor \"%s\" has %" PRId64 " columns, more than %d", param->name, param->dim[1],
                            I8_COLUMNS_MOST);
        xph_op_info info = {0};
        exphil_status status = model->device->backend->query(model->device, XPH_OP_ROUND, &args, &info);
        if (status < 0)
            return xph_fail(error, status, "the device %s cannot round tensor \"%s\" to %s",
                            model->device->backend->name, param->name, xph_type_word(narrow));
    }
    return EXPHIL_OK;
}

exphil_status xph_model_round(const exphil_model *model, xph_stream *stream, xph_type narrow,
                              const void *from, void *to)
{
    const xph_backend *backend = model->device->backend;
    size_t real_bytes = model->shape.real_bytes;
    if (from != to) XPH_TRY(backend->copy(stream, to, from, (size_t)model->shape.weights * real_bytes));
    for (int64_t i = 0; i < model->tensor_count; i++) {
        size_t at = (size_t)xph_model_param(model, i)->offset * real_bytes;
        xph_round_args args = round_args(model, narrow, i);
        if (!args.weights) continue;
        args.w = (const unsigned char *)from + at;
        args.to = (unsigned char *)to + at;
        XPH_TRY(xph_run_once(stream, XPH_OP_ROUND, &args));
    }
    return EXPHIL_OK;
}

exphil_status xph_model_take_rounded(exphil_model *model, xph_type narrow, const void *from,
                                     exphil_error *error)
{
    const xph_backend *backend = model->device->backend;
    xph_stream *stream;
    exphil_status status = backend->stream_create(model->device, 0, &stream);
    if (status < 0) return xph_fail(error, status, "the device made no stream");
    status = xph_stream_end(stream, xph_model_round(model, stream, narrow, from, model->weights));
    model->packed_valid = false;
    atomic_store_explicit(&model->prepared, false, memory_order_release);
    return status < 0 ? xph_fail(error, status, "the device could not round the weights") : EXPHIL_OK;
}

/* ---- a rounded model ----------------------------------------------------------------------------------- */

/* The largest float rounds to infinity. */
static exphil_status check_finite(const exphil_model *model, exphil_error *error)
{
    size_t bytes = (size_t)model->shape.weights * model->shape.real_bytes;
    unsigned char *host = xph_alloc(model->context, bytes);
    if (!host) return xph_no_memory(bytes, error);
    exphil_status status = xph_model_pull(model, NULL, 0, model->shape.weights, host, error);
    for (int64_t i = 0; status >= 0 && i < model->tensor_count; i++) {
        const xph_param *param = xph_model_param(model, i);
        int64_t bad = xph_first_bad(model->shape.type, host + (size_t)param->offset * model->shape.real_bytes,
                                    param->count);
        if (bad >= 0)
            status = xph_fail(error, EXPHIL_E_NUMERIC,
                              "tensor \"%s\" would not be finite in %s at element %" PRId64, param->name,
                              xph_type_word(model->shape.narrow), bad);
    }
    xph_free(model->context, host, bytes);
    return status;
}

static exphil_status quantize(const exphil_model *model, xph_type narrow, exphil_model **quantized,
                              exphil_error *error)
{
    exphil_model *made;
    XPH_TRY(xph_model_can_round(model, narrow, error));
    XPH_TRY(xph_model_make(model->context, &model->config, narrow, &made, error));
    made->updates = model->updates;
    made->frames = model->frames;
    exphil_status status = xph_model_take_notes(made, model->notes.text, error);
    if (status >= 0) status = xph_model_take_rounded(made, narrow, model->weights, error);
    if (status >= 0) status = check_finite(made, error);
    if (status < 0) {
        xph_model_release(made);
        return status;
    }
    *quantized = made;
    return EXPHIL_OK;
}

exphil_status exphil_model_quantize(const exphil_model *model, int32_t type, exphil_model **quantized,
                                    exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_model_check(model, error));
    if (!quantized) return xph_fail(error, EXPHIL_E_INVALID, "quantized is NULL");
    if (type < 0 || type > EXPHIL_TYPE_F16)
        return xph_fail(error, EXPHIL_E_INVALID, "type is %d, which is no EXPHIL_TYPE", (int)type);
    XPH_TRY(xph_model_check_plain(model, "quantise the model it was made of", error));
    if (type != EXPHIL_TYPE_BF16 && type != EXPHIL_TYPE_I8)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "weights are rounded to EXPHIL_TYPE_BF16 or EXPHIL_TYPE_I8, not to %s",
                        xph_type_word(type));
    return quantize(model, type, quantized, error);
}
