/* Notes of a model. */
#include "model/tensor_table.h"

#include <exphil/notes.h>

exphil_status xph_model_take_notes(exphil_model *model, const char *text, exphil_error *error)
{
    return xph_notes_take(model->context, text, &model->notes, error);
}

const char *xph_model_notes(const exphil_model *model)
{
    return model->notes.text;
}

exphil_status exphil_model_notes_set(exphil_model *model, const char *notes, exphil_error *error)
{
    XPH_TRY(xph_model_check(model, error));
    if (!xph_model_alone(model))
        return xph_fail(error, EXPHIL_E_STATE, "the model is in use: its notes stay as they are");
    return xph_model_take_notes(model, notes, error);
}

exphil_status exphil_model_notes(const exphil_model *model, const char **notes, exphil_error *error)
{
    XPH_TRY(xph_model_check(model, error));
    if (!notes) return xph_fail(error, EXPHIL_E_INVALID, "notes is NULL");
    *notes = model->notes.text ? model->notes.text : "";
    return EXPHIL_OK;
}
