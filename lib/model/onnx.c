/* Models as ONNX graphs. This release can express none of the blocks: the call says so, after it has checked
 * its arguments. */
#include "model/layer.h"

exphil_status exphil_model_export_onnx(const exphil_model *model, const char *path, exphil_error *error)
{
    XPH_TRY(xph_model_check(model, error));
    if (!path || !*path) return xph_fail(error, EXPHIL_E_INVALID, "path is %s", path ? "empty" : "NULL");
    const char *word = xph_block_word(model->block[0].kind);
    return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                    "this release cannot express block 0 (%s) in ONNX, nor any other",
                    word ? word : "unknown");
}
