/* What every call on a session stands on: entering and failing, the parts of a stream, and its start. */
#include "play/play.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- entering and failing ------------------------------------------------------------------------------ */

static exphil_session *shared(const exphil_session *session)
{
    return (exphil_session *)(uintptr_t)session;
}

exphil_status xph_play_enter(const exphil_session *session)
{
    if (!session) return EXPHIL_E_INVALID;
    XPH_TRY(xph_context_check(session->context, NULL));
    return xph_busy_enter(&shared(session)->busy) ? EXPHIL_OK : EXPHIL_E_BUSY;
}

static exphil_status enter_unless(const exphil_session *session, bool (*refused)(const exphil_session *))
{
    XPH_TRY(xph_play_enter(session));
    if (!refused(session)) return EXPHIL_OK;
    xph_play_remember(session, EXPHIL_E_STATE, "the session is moved by what was made with it");
    xph_play_leave(session);
    return EXPHIL_E_STATE;
}

static bool is_held(const exphil_session *session)
{
    return session->held;
}

static bool stays(const exphil_session *session)
{
    return session->held && !session->goes_back;
}

exphil_status xph_play_enter_free(const exphil_session *session)
{
    return enter_unless(session, is_held);
}

exphil_status xph_play_enter_back(const exphil_session *session)
{
    return enter_unless(session, stays);
}

void xph_play_leave(const exphil_session *session)
{
    xph_busy_leave(&shared(session)->busy);
}

void xph_play_remember(const exphil_session *session, exphil_status status, const char *format, ...)
{
    exphil_error *error = &shared(session)->error;
    va_list args;
    error->status = status;
    error->native_code = xph_native_code(session->device, status);
    va_start(args, format);
    (void)vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
}

/* ---- streams ------------------------------------------------------------------------------------------- */

/* Offsets inside the host part of one stream. */
void xph_play_lay_out(exphil_session *session)
{
    const xph_model_shape *shape = session->shape;
    xph_cutter c = {NULL, 0};
    int64_t kept = session->windowed ? session->frames : 0;
    (void)xph_cut(&c, 1, 1, sizeof(xph_play_stream));
    session->history_at = c.at;
    (void)xph_cut(&c, session->history, shape->heads, sizeof(int32_t));
    session->floats_at = c.at;
    (void)xph_cut(&c, kept, shape->floats, sizeof(float));
    session->ids_at = c.at;
    (void)xph_cut(&c, kept, shape->tables, sizeof(int32_t));
    session->past_at = c.at;
    (void)xph_cut(&c, kept * shape->slots, shape->heads, sizeof(int32_t));
    session->told_at = c.at;
    (void)xph_cut(&c, session->told->conditions, 1, sizeof(int32_t));
    session->clock_at = c.at;
    (void)xph_cut(&c, session->adoptable, 2, sizeof(int64_t)); /* clock, stamp */
    session->host_bytes = c.at;
}

void xph_play_point(exphil_session *session)
{
    const size_t values_at = session->values_at, logits_at = session->logits_at;
    unsigned char *kept = session->outputs[0], *fresh = session->outputs[1];
    if (xph_net_actions(session->net)) {
        session->actions = (int32_t *)(void *)kept;
        session->fresh_actions = (int32_t *)(void *)fresh;
    }
    session->logits = (float *)(void *)(kept + logits_at);
    session->fresh = (float *)(void *)(fresh + logits_at);
    if (!session->shape->value) return;
    session->values = (float *)(void *)(kept + values_at);
    session->fresh_values = (float *)(void *)(fresh + values_at);
}

int64_t xph_play_history_of(const xph_model_shape *shape)
{
    int64_t due = shape->delay + 1;
    return shape->slots > due ? shape->slots : due;
}

size_t xph_play_host_bytes(const exphil_model *model, bool adoptable)
{
    exphil_session like = {
        .shape = xph_model_shape_of(model), .told = xph_model_told(model), .adoptable = adoptable};
    like.history = xph_play_history_of(like.shape);
    xph_play_lay_out(&like);
    return like.host_bytes;
}

exphil_status xph_play_reset(exphil_session *session, int64_t i)
{
    const exphil_spec *spec = session->spec;
    xph_play_stream *stream = xph_play_at(session, i);
    xph_rng rng = stream->rng;
    memset(stream, 0, session->told_at); /* what is told stays */
    stream->rng = rng;
    int32_t *history = xph_play_history(session, i);
    for (int64_t k = 0; k < session->history; k++)
        for (int64_t h = 0; h < spec->head_count; h++)
            history[k * spec->head_count + h] = spec->heads[h].neutral;
    if (session->state_bytes == 0) return EXPHIL_OK;
    session->lagging = false;
    return session->device->backend->zero(xph_net_stream(session->net), xph_play_recurrent(session, i),
                                          session->state_bytes);
}

/* ---- which weights play --------------------------------------------------------------------------------- */

const xph_play_weights *xph_play_weights_now(const exphil_session *session)
{
    return &session->slot[session->now];
}

void xph_play_advance(exphil_session *session)
{
    if (session->now != session->newest && session->clock >= session->slot[session->newest].from)
        session->now = session->newest;
}

void xph_play_go_back(exphil_session *session, uint64_t hash)
{
    const int32_t other = !session->newest;
    bool older = session->slot[other].model && session->slot[other].hash == hash &&
                 session->slot[session->newest].hash != hash;
    session->now = older ? other : session->newest;
}
