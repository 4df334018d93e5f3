/* New weights for a session, between two steps: state, queue and random streams stay. */
#include "play/play.h"

exphil_status xph_play_adopt(exphil_session *session, const exphil_model *model, exphil_error *error)
{
    const void *packed = NULL;
    uint64_t hash = 0;
    if (xph_model_context(model) != session->context ||
        xph_model_config_hash(model) != xph_model_config_hash(session->model))
        return xph_fail(error, EXPHIL_E_MISMATCH, "a model of another configuration cannot be adopted");
    exphil_model *taken = xph_model_retain(model);
    exphil_status status = xph_model_weights_hash(taken, &hash, error);
    if (status >= 0) status = xph_model_packed(taken, &packed, error);
    if (status < 0) {
        xph_model_release(taken);
        return status;
    }
    xph_play_forget(session); /* recordings hold addresses of the weights */
    xph_model_release(session->model);
    session->model = taken;
    session->shape = xph_model_shape_of(taken);
    session->spec = xph_model_spec(taken);
    session->told = xph_model_told(taken);
    session->packed = packed;
    session->weights_hash = hash;
    status = xph_play_record(session);
    return status < 0
               ? xph_fail_device(error, session->device, status, "session: the device failed in a step")
               : EXPHIL_OK;
}
