/* The sampling that a model needs. */
#include "model/tensor_table.h"

exphil_status exphil_model_sampling(const exphil_model *model, exphil_sampling *sampling, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_model_check(model, error));
    if (!sampling) return xph_fail(error, EXPHIL_E_INVALID, "sampling is NULL");
    const xph_model_shape *shape = &model->shape;
    exphil_sampling known = EXPHIL_SAMPLING_INIT;
    known.mode = shape->mode;
    known.delay_frames = shape->delay;
    known.action_slots = shape->slots;
    known.neutral_start = shape->neutral_start;
    known.conditions = model->config.conditions;
    known.condition_count = model->told.conditions;
    known.delays = model->config.delays;
    known.delay_count = model->told.delays;
    known.time = shape->mode == EXPHIL_MODE_WINDOW ? shape->window : 0;
    return XPH_GIVE(exphil_sampling, sampling, &known, error);
}
