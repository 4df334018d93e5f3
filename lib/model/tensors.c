/* Tensors of a model by name: listing them, reading and setting their values. */
#include "model/tensors.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

int64_t xph_first_bad(xph_type type, const void *data, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float single = 0;
        double value;
        if (type == XPH_F64) {
            memcpy(&value, (const char *)data + (size_t)i * sizeof value, sizeof value);
        } else {
            memcpy(&single, (const char *)data + (size_t)i * sizeof single, sizeof single);
            value = (double)single;
        }
        if (!xph_finite(value)) return i;
    }
    return -1;
}

exphil_status exphil_model_tensor_info(const exphil_model *model, int64_t index, exphil_tensor_info *info,
                                       exphil_error *error)
{
    XPH_TRY(xph_model_check(model, error));
    if (index < 0 || index >= model->tensor_count) {
        return xph_fail(error, EXPHIL_E_INVALID, "index is %" PRId64 ", the model has %" PRId64 " tensors",
                        index, model->tensor_count);
    }
    const xph_param *param = xph_model_param(model, index);
    exphil_tensor_info known = EXPHIL_TENSOR_INFO_INIT;
    for (int32_t d = 0; d < 4; d++) known.dim[d] = d < param->rank ? param->dim[d] : 1;
    known.size_bytes = (uint64_t)param->count * model->shape.real_bytes;
    known.rank = param->rank;
    known.type = model->config.type;
    snprintf(known.name, sizeof known.name, "%s", param->name);
    return XPH_GIVE(exphil_tensor_info, info, &known, error);
}

exphil_status xph_named_param(const exphil_model *model, const char *name, const xph_param **param,
                              exphil_error *error)
{
    XPH_TRY(xph_model_check(model, error));
    if (!name) return xph_fail(error, EXPHIL_E_INVALID, "name is NULL");
    int64_t index = xph_model_find(model, name);
    if (index < 0) return xph_fail(error, EXPHIL_E_INVALID, "the model has no tensor \"%s\"", name);
    *param = xph_model_param(model, index);
    return EXPHIL_OK;
}

static exphil_status check_size(const exphil_model *model, const xph_param *param, const void *data,
                                size_t size_bytes, exphil_error *error)
{
    size_t needed = (size_t)param->count * model->shape.real_bytes;
    if (!data) return xph_fail(error, EXPHIL_E_INVALID, "data is NULL");
    if (size_bytes == needed) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "size_bytes is %zu, tensor \"%s\" has %zu", size_bytes,
                    param->name, needed);
}

exphil_status exphil_model_tensor_get(const exphil_model *model, const char *name, void *data,
                                      size_t size_bytes, exphil_error *error)
{
    XPH_OWN_FPU;
    const xph_param *param = NULL;
    XPH_TRY(xph_named_param(model, name, &param, error));
    XPH_TRY(check_size(model, param, data, size_bytes, error));
    return xph_model_pull(model, NULL, param->offset, param->count, data, error);
}

exphil_status xph_param_set(exphil_model *model, const xph_param *param, const void *data,
                            exphil_error *error)
{
    if (!xph_model_alone(model)) {
        return xph_fail(
            error, EXPHIL_E_STATE,
            "the model is in use by a session, trainer or exported tensor: its tensors stay as they are");
    }
    XPH_TRY(xph_model_check_plain(model, "its tensors stay as they are", error));
    int64_t bad = xph_first_bad(model->shape.type, data, param->count);
    if (bad >= 0) {
        return xph_fail(error, EXPHIL_E_NUMERIC, "tensor \"%s\" would not be finite at element %" PRId64,
                        param->name, bad);
    }
    return xph_model_push(model, param->offset, param->count, data, error);
}

exphil_status exphil_model_tensor_set(exphil_model *model, const char *name, const void *data,
                                      size_t size_bytes, exphil_error *error)
{
    XPH_OWN_FPU;
    const xph_param *param = NULL;
    XPH_TRY(xph_named_param(model, name, &param, error));
    XPH_TRY(check_size(model, param, data, size_bytes, error));
    return xph_param_set(model, param, data, error);
}
