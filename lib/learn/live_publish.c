/* What was learnt goes from the thread that learns to the session that plays: a copy on the session's context, made ready there. */
#include "learn/live.h"

exphil_status xph_live_publish(exphil_live *live, exphil_error *error)
{
    exphil_model *learnt = NULL, *copy = NULL;
    XPH_TRY(exphil_trainer_model(live->trainer, EXPHIL_WEIGHTS, &learnt, error));
    exphil_status status = xph_model_copy(live->context, learnt, &copy, error);
    xph_model_release(learnt);
    XPH_TRY(status);
    status = xph_model_prepare(copy, error);
    if (status < 0) {
        xph_model_release(copy);
        return status;
    }
    xph_mutex_lock(live->lock);
    exphil_model *before = live->newest;
    live->newest = xph_model_retain(copy);
    xph_mutex_unlock(live->lock);
    xph_model_release(before);
    exphil_model *missed = atomic_exchange_explicit(&live->fresh, copy, memory_order_acq_rel);
    if (missed) xph_model_release(missed);
    return EXPHIL_OK;
}
