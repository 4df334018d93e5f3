/* The weights that a session plays, and how new ones enter between two steps: state, queue and random streams stay.
 *
 * An adoptable session has two slots. The newest weights are in one, those before them in the other, with the frame from
 * which the newest play: so a stream that is restored to an earlier frame finds the weights of that frame, and meets the
 * newest again where it met them before. Where the device records steps, a slot is a copy in the session's own memory,
 * because a recording holds addresses; elsewhere it is where the model has its weights. */
#include "play/play.h"

#include <exphil/learn.h>

/* ---- slots --------------------------------------------------------------------------------------------- */

static size_t weight_bytes(const exphil_session *session)
{
    size_t bytes = (size_t)session->shape->weights * session->shape->real_bytes;
    return (bytes + 255) / 256 * 256;
}

static exphil_status copy_in(const exphil_session *session, xph_play_weights *slot, const exphil_model *model,
                             const void *packed)
{
    const xph_backend *backend = session->device->backend;
    const xph_model_shape *shape = session->shape;
    xph_stream *stream = xph_net_stream(session->net);
    unsigned char *to = slot->copy;
    XPH_TRY(backend->copy(stream, to, xph_model_weights(model), (size_t)shape->weights * shape->real_bytes));
    if (shape->packed_bytes)
        XPH_TRY(backend->copy(stream, to + weight_bytes(session), packed, shape->packed_bytes));
    slot->weights = to;
    slot->packed = packed ? to + weight_bytes(session) : NULL;
    return EXPHIL_OK;
}

/* The slot takes a model, which is retained already; what was in it is the caller's to release. Hot. */
static exphil_status fill(exphil_session *session, int32_t index, exphil_model *model, const void *packed,
                          uint64_t hash)
{
    xph_play_weights *slot = &session->slot[index];
    if (slot->copy) XPH_TRY(copy_in(session, slot, model, packed));
    if (!slot->copy) slot->weights = xph_model_weights(model), slot->packed = packed;
    slot->model = model;
    slot->hash = hash;
    slot->from = session->clock;
    session->now = session->newest = index;
    return EXPHIL_OK;
}

/* Cold: whatever the model lacks is made. */
static exphil_status fill_any(exphil_session *session, int32_t index, const exphil_model *model,
                              exphil_error *error)
{
    const void *packed = NULL;
    uint64_t hash = 0;
    exphil_model *before = session->slot[index].model, *taken = xph_model_retain(model);
    exphil_status status = EXPHIL_OK;
    if (!xph_model_prepared(taken, &packed, &hash)) {
        status = xph_model_weights_hash(taken, &hash, error);
        if (status >= 0) status = xph_model_packed(taken, &packed, error);
    }
    if (status >= 0) {
        status = fill(session, index, taken, packed, hash);
        if (status < 0)
            xph_fail_device(error, session->device, status, "session: the device could not take the weights");
    }
    if (status < 0) before = taken;
    if (before) xph_model_release(before);
    return status;
}

/* ---- making and freeing -------------------------------------------------------------------------------- */

static exphil_status make_copies(exphil_session *session, exphil_error *error)
{
    const xph_backend *backend = session->device->backend;
    size_t each = weight_bytes(session) + (session->shape->packed_bytes + 255) / 256 * 256;
    void *block = NULL;
    if (!session->adoptable || !backend->record_begin) return EXPHIL_OK;
    exphil_status status = backend->alloc(session->device, 2 * each, &block);
    if (status < 0) return xph_no_device_memory(error, session->device, status, 2 * each);
    session->copies = block;
    session->copies_bytes = 2 * each;
    for (int i = 0; i < 2; i++) session->slot[i].copy = session->copies + (size_t)i * each;
    return EXPHIL_OK;
}

static exphil_status record(exphil_session *session, exphil_error *error)
{
    exphil_status status = xph_play_record(session);
    return status < 0
               ? xph_fail_device(error, session->device, status, "session: the device failed in a step")
               : EXPHIL_OK;
}

exphil_status xph_play_take(exphil_session *session, const exphil_model *model, exphil_error *error)
{
    XPH_TRY(make_copies(session, error));
    /* Both are recorded; the second is filled with the same weights until others come. */
    if (session->adoptable) XPH_TRY(fill_any(session, 1, model, error));
    XPH_TRY(fill_any(session, 0, model, error));
    XPH_TRY(record(session, error));
    if (session->adoptable) xph_model_release(session->slot[1].model);
    session->slot[1].model = NULL;
    return EXPHIL_OK;
}

void xph_play_drop(exphil_session *session)
{
    xph_play_forget(session);
    for (int i = 0; i < 2; i++)
        if (session->slot[i].model) xph_model_release(session->slot[i].model);
    if (session->copies)
        session->device->backend->free(session->device, session->copies, session->copies_bytes);
}

exphil_status xph_play_take_both(const exphil_session *from, exphil_session *to, exphil_error *error)
{
    for (int32_t i = 0; i < 2; i++) {
        const xph_play_weights *slot = &from->slot[i];
        if (slot->model) XPH_TRY(fill_any(to, i, slot->model, error));
        to->slot[i].from = slot->from;
    }
    to->now = from->now;
    to->newest = from->newest;
    to->clock = from->clock;
    to->stamps = from->stamps;
    to->adoptions = from->adoptions;
    return EXPHIL_OK;
}

/* ---- adoption ------------------------------------------------------------------------------------------- */

static exphil_status check(const exphil_session *session, const exphil_model *model, exphil_error *error)
{
    if (xph_model_context(model) == session->context &&
        xph_model_config_hash(model) == xph_model_config_hash(session->slot[session->newest].model))
        return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH, "a model of another configuration cannot be adopted");
}

exphil_status xph_play_adopt(exphil_session *session, const exphil_model *model, exphil_error *error)
{
    XPH_TRY(check(session, model, error));
    XPH_TRY(xph_model_prepare(model, error)); /* what wants memory, while the session is whole */
    xph_play_forget(session);                 /* recordings hold addresses of the weights */
    XPH_TRY(fill_any(session, session->newest, model, error));
    return record(session, error);
}

exphil_status exphil_model_prepare(const exphil_model *model, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!model) return xph_fail(error, EXPHIL_E_INVALID, "model is NULL");
    XPH_TRY(xph_context_check(xph_model_context(model), error));
    return xph_model_prepare(model, error);
}

exphil_status xph_play_exchange(exphil_session *session, const exphil_model *model, exphil_model **before)
{
    exphil_error why = EXPHIL_ERROR_INIT;
    const void *packed;
    uint64_t hash;
    if (!session->adoptable)
        return xph_play_fail(session, EXPHIL_E_STATE, "the session is not adoptable (exphil_session_config)");
    if (check(session, model, &why) < 0) return xph_play_fail(session, why.status, "%s", why.message);
    if (!xph_model_prepared(model, &packed, &hash))
        return xph_play_fail(session, EXPHIL_E_STATE, "the model is not prepared (exphil_model_prepare)");
    /* What was to come, after a restore, never comes. */
    const int32_t index = session->now == session->newest ? !session->newest : session->newest;
    exphil_model *returned = session->slot[index].model, *taken = xph_model_retain(model);
    exphil_status status = fill(session, index, taken, packed, hash);
    if (status < 0) {
        xph_model_release(taken); /* the caller has it too: nothing is freed */
        return xph_play_fail(session, status, "the device could not take the weights");
    }
    session->adoptions++;
    *before = returned;
    return EXPHIL_OK;
}

exphil_status exphil_session_adopt(exphil_session *session, const exphil_model *model, exphil_model **before)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_play_enter_free(session));
    exphil_status status =
        model && before ? xph_play_exchange(session, model, before)
                        : xph_play_fail(session, EXPHIL_E_INVALID, "%s is NULL", model ? "before" : "model");
    xph_play_leave(session);
    return status;
}
