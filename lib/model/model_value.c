/* Models made of models: one with a new value head, tensor by tensor, and one in another context. */
#include "model/tensor_table.h"

#include <exphil/learn.h>

#include <inttypes.h>

static exphil_status copy_tensor(const exphil_model *from, exphil_model *to, const xph_param *param,
                                 exphil_error *error)
{
    int64_t other = xph_model_find(from, param->name);
    size_t bytes = (size_t)param->count * from->shape.real_bytes;
    if (other < 0 || strncmp(param->name, "value.", 6) == 0) return EXPHIL_OK;
    void *host = xph_alloc(from->context, bytes);
    if (!host) return xph_no_memory(bytes, error);
    exphil_status status =
        xph_model_pull(from, NULL, xph_model_param(from, other)->offset, param->count, host, error);
    if (status >= 0) status = xph_model_push(to, param->offset, param->count, host, error);
    xph_free(from->context, host, bytes);
    return status;
}

static exphil_status fill(const exphil_model *from, exphil_model *to, exphil_error *error)
{
    XPH_TRY(xph_model_init(to, error));
    to->config.seed = from->config.seed;
    for (int64_t i = 0; i < to->tensor_count; i++)
        XPH_TRY(copy_tensor(from, to, xph_model_param(to, i), error));
    to->updates = from->updates;
    to->frames = from->frames;
    return xph_model_take_notes(to, xph_model_notes(from), error);
}

exphil_status xph_model_copy(exphil_context *context, const exphil_model *from, exphil_model **copy,
                             exphil_error *error)
{
    exphil_model *made = NULL;
    size_t bytes = (size_t)from->shape.weights * from->shape.real_bytes;
    XPH_TRY(xph_model_make(context, &from->config, from->shape.narrow, &made, error));
    void *host = xph_alloc(context, bytes);
    exphil_status status = host ? EXPHIL_OK : xph_no_memory(bytes, error);
    if (status >= 0) status = xph_model_pull(from, NULL, 0, from->shape.weights, host, error);
    if (status >= 0) status = xph_model_push(made, 0, from->shape.weights, host, error);
    if (status >= 0) status = xph_model_take_notes(made, xph_model_notes(from), error);
    if (host) xph_free(context, host, bytes);
    if (status < 0) {
        xph_model_release(made);
        return status;
    }
    made->updates = from->updates;
    made->frames = from->frames;
    *copy = made;
    return EXPHIL_OK;
}

exphil_status exphil_model_with_value(const exphil_model *model, int32_t value, uint64_t seed,
                                      exphil_model **with, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_model_check(model, error));
    if (!with) return xph_fail(error, EXPHIL_E_INVALID, "with is NULL");
    if (value != EXPHIL_VALUE_DETACHED && value != EXPHIL_VALUE_SHARED)
        return xph_fail(error, EXPHIL_E_INVALID, "value is %" PRId32 ", not a kind of value head", value);
    if (model->shape.narrow)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "a quantised model gets no value head: give one to the model it was made of");
    exphil_model_config config = model->config;
    config.value = value;
    config.seed = seed;
    exphil_model *made = NULL;
    XPH_TRY(xph_model_make(model->context, &config, 0, &made, error));
    exphil_status status = fill(model, made, error);
    if (status < 0) {
        xph_model_release(made);
        return status;
    }
    *with = made;
    return EXPHIL_OK;
}
