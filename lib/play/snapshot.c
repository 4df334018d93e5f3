/* The state of one stream as one flat block, for rollback, clones and other processes; and the small hot
 * calls that change a stream between steps. Block: header, host part of the stream, recurrent state, logits
 * of the last step, and what the value head said. */
#include "play/play.h"

#include <exphil/conditions.h>
#include <exphil/learn.h>

typedef struct snapshot_header {
    uint64_t magic, weights_hash, play_hash;
    uint64_t
        model; /* hash of its configuration; FIRST_MAGIC: bytes of the block, which said no more of the model */
} snapshot_header;

#define CLOCK_MOST     ((int64_t)1 << 62)
#define FIRST_MAGIC    0x3130455441545358ull /* "XSTATE01": of releases up to 0.1, taken for ever */
#define SNAPSHOT_MAGIC 0x3230455441545358ull /* "XSTATE02" */

static size_t logit_bytes(const exphil_session *session)
{
    return (size_t)session->shape->logits * sizeof(float);
}

static size_t value_bytes(const exphil_session *session)
{
    return session->values ? sizeof(float) : 0;
}

size_t exphil_session_state_size(const exphil_session *session)
{
    if (!session) return 0;
    return sizeof(snapshot_header) + session->host_bytes + session->state_bytes + logit_bytes(session) +
           value_bytes(session);
}

static exphil_status check_stream(const exphil_session *session, int64_t stream)
{
    if (stream >= 0 && stream < session->streams) return EXPHIL_OK;
    return xph_play_fail(session, EXPHIL_E_INVALID, "stream is %lld, the session has %lld", (long long)stream,
                         (long long)session->streams);
}

static exphil_status check_block(const exphil_session *session, int64_t stream, const void *state,
                                 size_t size_bytes)
{
    XPH_TRY(check_stream(session, stream));
    if (!state) return xph_play_fail(session, EXPHIL_E_INVALID, "state is NULL");
    if (size_bytes != exphil_session_state_size(session))
        return xph_play_fail(session, EXPHIL_E_INVALID, "size_bytes is %zu, a state has %zu", size_bytes,
                             exphil_session_state_size(session));
    return EXPHIL_OK;
}

static exphil_status save(const exphil_session *session, int64_t stream, unsigned char *to)
{
    const xph_backend *backend = session->device->backend;
    const xph_play_weights *now = xph_play_weights_now(session);
    const snapshot_header header = {SNAPSHOT_MAGIC, now->hash, session->play_hash,
                                    xph_model_config_hash(now->model)};
    memcpy(to, &header, sizeof header);
    to += sizeof header;
    memcpy(to, xph_play_at(session, stream), session->host_bytes);
    to += session->host_bytes;
    if (session->state_bytes) {
        XPH_TRY(backend->download(xph_net_stream(session->net), to, xph_play_recurrent(session, stream),
                                  session->state_bytes));
        XPH_TRY(backend->stream_wait(xph_net_stream(session->net)));
    }
    to += session->state_bytes;
    memcpy(to, session->logits + stream * session->shape->logits, logit_bytes(session));
    if (session->values) memcpy(to + logit_bytes(session), session->values + stream, value_bytes(session));
    return EXPHIL_OK;
}

exphil_status exphil_session_state_save(const exphil_session *session, int64_t stream, void *state,
                                        size_t size_bytes)
{
    XPH_TRY(xph_play_enter(session));
    exphil_status status = check_block(session, stream, state, size_bytes);
    if (status >= 0) {
        status = save(session, stream, state);
        if (status < 0) xph_play_fail(session, status, "the device failed to give its state");
    }
    xph_play_leave(session);
    return status;
}

/* Sessions of one model have states of two sizes, of which the adoptable ones' is the larger. */
exphil_status xph_play_block_state(const exphil_model *model, const void *block, size_t size_bytes,
                                   const void **state, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    snapshot_header header;
    size_t behind = (size_t)shape->state * shape->real_bytes +
                    ((size_t)shape->logits + (size_t)shape->value) * sizeof(float);
    if (size_bytes < sizeof header)
        return xph_fail(error, EXPHIL_E_FORMAT, "%zu bytes are no state", size_bytes);
    memcpy(&header, block, sizeof header);
    if (header.magic != SNAPSHOT_MAGIC)
        return xph_fail(error, EXPHIL_E_FORMAT, "not a state of this release of libexphil");
    if (header.model != xph_model_config_hash(model))
        return xph_fail(error, EXPHIL_E_MISMATCH, "a state of a model of another configuration");
    bool fits = false;
    for (int adoptable = 0; adoptable < 2; adoptable++)
        fits |= size_bytes == sizeof header + xph_play_host_bytes(model, adoptable) + behind;
    if (!fits) return xph_fail(error, EXPHIL_E_FORMAT, "no state of this model has %zu bytes", size_bytes);
    *state = (const unsigned char *)block + size_bytes - behind;
    return EXPHIL_OK;
}

static bool header_fits(const exphil_session *session, const snapshot_header *header)
{
    const uint64_t expected = header->magic == FIRST_MAGIC
                                  ? exphil_session_state_size(session)
                                  : xph_model_config_hash(xph_play_weights_now(session)->model);
    return header->play_hash == session->play_hash && header->model == expected;
}

/* A block may come from anywhere: what indexes memory later is checked here. */
static exphil_status check_content(const exphil_session *session, const unsigned char *block)
{
    snapshot_header header;
    xph_play_stream stream;
    memcpy(&header, block, sizeof header);
    if (header.magic != SNAPSHOT_MAGIC && header.magic != FIRST_MAGIC)
        return xph_play_fail(session, EXPHIL_E_FORMAT, "state: not a state of libexphil");
    const uint64_t weights = xph_play_weights_now(session)->hash;
    if (!session->adoptable && header.weights_hash != weights)
        return xph_play_fail(session, EXPHIL_E_MISMATCH,
                             "state is of weights %016llx, the session plays %016llx",
                             (unsigned long long)header.weights_hash, (unsigned long long)weights);
    if (!header_fits(session, &header))
        return xph_play_fail(
            session, EXPHIL_E_MISMATCH,
            "state is of a session with another configuration, or of a release that keeps states otherwise");
    block += sizeof header;
    memcpy(&stream, block, sizeof stream);
    if (stream.seen < 0 || stream.seen > session->frames)
        return xph_play_fail(session, EXPHIL_E_FORMAT, "state: seen is %lld, outside 0..%lld",
                             (long long)stream.seen, (long long)session->frames);
    if (session->adoptable) {
        int64_t clock[2]; /* and stamp */
        memcpy(clock, block + session->clock_at, sizeof clock);
        if (clock[0] < 0 || clock[0] > CLOCK_MOST || clock[1] < 0 || clock[1] > CLOCK_MOST)
            return xph_play_fail(session, EXPHIL_E_FORMAT, "state: its frame is %lld, its step %lld",
                                 (long long)clock[0], (long long)clock[1]);
    }
    for (int64_t i = 0; i < session->history; i++) {
        int32_t action[EXPHIL_HEADS_MAX];
        size_t bytes = (size_t)session->spec->head_count * sizeof(int32_t);
        memcpy(action, block + session->history_at + (size_t)i * bytes, bytes);
        if (xph_action_check(session->spec, action, i, NULL) < 0)
            return xph_play_fail(session, EXPHIL_E_FORMAT, "state: action %lld of the queue is out of range",
                                 (long long)i);
    }
    return EXPHIL_OK;
}

static int32_t entries_of(const exphil_session *session, int64_t table)
{
    const exphil_spec *spec = session->spec;
    return table < spec->id_count ? spec->ids[table].entries
                                  : xph_told_entries(session->told, table - spec->id_count);
}

static exphil_status check_conditions(const exphil_session *session, const unsigned char *block)
{
    block += sizeof(snapshot_header) + session->told_at;
    for (int64_t i = 0; i < session->told->conditions; i++) {
        int32_t value;
        memcpy(&value, block + (size_t)i * sizeof value, sizeof value);
        if (value < 0 || value >= xph_told_entries(session->told, i))
            return xph_play_fail(session, EXPHIL_E_FORMAT, "state: condition %s is out of range",
                                 session->told->name[i]);
    }
    return EXPHIL_OK;
}

/* Window mode: kept ids and past actions index tables too. */
static exphil_status check_window(const exphil_session *session, const unsigned char *block)
{
    const exphil_spec *spec = session->spec;
    if (!session->windowed) return EXPHIL_OK;
    block += sizeof(snapshot_header);
    const int64_t tables = session->shape->tables;
    for (int64_t i = 0; i < session->frames * tables; i++) {
        int32_t id;
        memcpy(&id, block + session->ids_at + (size_t)i * sizeof id, sizeof id);
        if (id < 0 || id >= entries_of(session, i % tables))
            return xph_play_fail(session, EXPHIL_E_FORMAT, "state: id %lld of the window is out of range",
                                 (long long)i);
    }
    for (int64_t i = 0; i < session->frames * session->shape->slots; i++) {
        int32_t action[EXPHIL_HEADS_MAX];
        size_t bytes = (size_t)spec->head_count * sizeof(int32_t);
        memcpy(action, block + session->past_at + (size_t)i * bytes, bytes);
        if (xph_action_check(spec, action, i, NULL) < 0)
            return xph_play_fail(session, EXPHIL_E_FORMAT, "state: past action %lld is out of range",
                                 (long long)i);
    }
    return EXPHIL_OK;
}

static exphil_status restore(exphil_session *session, int64_t stream, const unsigned char *from)
{
    const xph_backend *backend = session->device->backend;
    XPH_TRY(check_content(session, from));
    XPH_TRY(check_conditions(session, from));
    XPH_TRY(check_window(session, from));
    snapshot_header header;
    memcpy(&header, from, sizeof header);
    from += sizeof(snapshot_header);
    const unsigned char *state = from + session->host_bytes;
    session->lagging = false;
    if (session->state_bytes) {
        xph_stream *order = xph_net_stream(session->net);
        exphil_status status =
            backend->upload(order, xph_play_recurrent(session, stream), state, session->state_bytes);
        if (status >= 0) status = backend->stream_wait(order); /* the block is the caller's again */
        if (status < 0) return xph_play_fail(session, status, "the device failed to take its state");
    }
    memcpy(xph_play_at(session, stream), from, session->host_bytes);
    if (session->adoptable) {
        session->clock = *xph_play_clock(session, stream);
        if (session->stamps < *xph_play_stamp(session, stream))
            session->stamps = *xph_play_stamp(session, stream);
        xph_play_go_back(session, header.weights_hash);
    }
    memcpy(session->logits + stream * session->shape->logits, state + session->state_bytes,
           logit_bytes(session));
    if (session->values)
        memcpy(session->values + stream, state + session->state_bytes + logit_bytes(session),
               value_bytes(session));
    return EXPHIL_OK;
}

exphil_status xph_play_restore(exphil_session *session, int64_t stream, const void *state, size_t size_bytes)
{
    XPH_TRY(check_block(session, stream, state, size_bytes));
    return restore(session, stream, state);
}

exphil_status exphil_session_state_restore(exphil_session *session, int64_t stream, const void *state,
                                           size_t size_bytes)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_play_enter_back(session));
    exphil_status status = xph_play_restore(session, stream, state, size_bytes);
    xph_play_leave(session);
    return status;
}

exphil_status exphil_session_reset(exphil_session *session, int64_t stream)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_play_enter_free(session));
    bool all = stream == -1;
    exphil_status status = all ? EXPHIL_OK : check_stream(session, stream);
    int64_t first = all ? 0 : stream, count = all ? session->streams : 1;
    for (int64_t i = first; status >= 0 && i - first < count; i++) {
        status = xph_play_reset(session, i);
        if (status < 0) xph_play_fail(session, status, "the device failed to clear its state");
    }
    xph_play_leave(session);
    return status;
}

exphil_status exphil_session_override(exphil_session *session, int64_t stream, const int32_t *action)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_play_enter(session));
    exphil_status status = check_stream(session, stream);
    if (status >= 0 && session->guided)
        status = xph_play_fail(session, EXPHIL_E_STATE,
                               "what a person does is given with each frame, and not put in afterwards");
    if (status >= 0 && !action) status = xph_play_fail(session, EXPHIL_E_INVALID, "action is NULL");
    if (status >= 0) {
        exphil_error why = EXPHIL_ERROR_INIT;
        status = xph_action_check(session->spec, action, 0, &why);
        if (status < 0) xph_play_fail(session, status, "%s", why.message);
    }
    if (status >= 0) {
        memcpy(xph_play_history(session, stream), action, (size_t)session->spec->head_count * sizeof *action);
        session->overridden[stream] = 1;
    }
    xph_play_leave(session);
    return status;
}

exphil_status exphil_session_conditions_set(exphil_session *session, int64_t stream, const int32_t *values,
                                            int64_t count)
{
    XPH_TRY(xph_play_enter(session));
    bool all = stream == -1;
    exphil_error why = EXPHIL_ERROR_INIT;
    exphil_status status = all ? EXPHIL_OK : check_stream(session, stream);
    if (status >= 0) {
        status = values || !count ? xph_told_check(session->told, values, count, "", &why)
                                  : xph_fail(&why, EXPHIL_E_INVALID, "values is NULL");
        if (status >= 0 && count != session->told->conditions)
            status = xph_fail(&why, EXPHIL_E_INVALID, "count is %lld, the model has %lld conditions",
                              (long long)count, (long long)session->told->conditions);
        if (status < 0) xph_play_fail(session, status, "%s", why.message);
    }
    int64_t first = all ? 0 : stream, end = all ? session->streams : stream + 1;
    for (int64_t i = first; status >= 0 && values && i < end; i++)
        memcpy(xph_play_told(session, i), values, (size_t)count * sizeof *values);
    xph_play_leave(session);
    return status;
}

exphil_status exphil_session_logits(const exphil_session *session, int64_t stream, float *logits,
                                    int64_t count)
{
    XPH_TRY(xph_play_enter(session));
    exphil_status status = check_stream(session, stream);
    if (status >= 0 && !logits) status = xph_play_fail(session, EXPHIL_E_INVALID, "logits is NULL");
    if (status >= 0 && count != session->shape->logits)
        status = xph_play_fail(session, EXPHIL_E_INVALID, "count is %lld, there are %lld logits",
                               (long long)count, (long long)session->shape->logits);
    if (status >= 0) memcpy(logits, session->logits + stream * count, (size_t)count * sizeof *logits);
    xph_play_leave(session);
    return status;
}

exphil_status exphil_session_value(const exphil_session *session, int64_t stream, float *value)
{
    XPH_TRY(xph_play_enter(session));
    exphil_status status = check_stream(session, stream);
    if (status >= 0 && !value) status = xph_play_fail(session, EXPHIL_E_INVALID, "value is NULL");
    if (status >= 0 && !session->values)
        status = xph_play_fail(session, EXPHIL_E_STATE, "the model has no value head");
    if (status >= 0) *value = session->values[stream];
    xph_play_leave(session);
    return status;
}
