/* Models with weights in fewer bits. This release has kernels for none of the types: the call says so,
 * after looking at its arguments as it always will. */
#include "model/model_internal.h"

static const char *type_name(int32_t type)
{
    static const char *const names[] = {"EXPHIL_TYPE_F32", "EXPHIL_TYPE_F64", "EXPHIL_TYPE_BF16",
                                        "EXPHIL_TYPE_I8", "EXPHIL_TYPE_F16"};
    return type < 0 || type > EXPHIL_TYPE_F16 ? NULL : names[type];
}

exphil_status exphil_model_quantize(const exphil_model *model, int32_t type, exphil_model **quantized,
                                    exphil_error *error)
{
    if (!model) return xph_fail(error, EXPHIL_E_INVALID, "model is NULL");
    XPH_TRY(xph_context_check(model->context, error));
    if (!quantized) return xph_fail(error, EXPHIL_E_INVALID, "quantized is NULL");
    const char *name = type_name(type);
    if (!name) return xph_fail(error, EXPHIL_E_INVALID, "type is %d, which is no EXPHIL_TYPE", (int)type);
    return xph_fail(error, EXPHIL_E_UNSUPPORTED, "this release has no kernels for weights stored as %s",
                    name);
}
