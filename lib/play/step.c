/* The hot path: one frame of every stream through the net. Allocates nothing, takes no lock, makes no system call.
 * Order of a step: check and stage all inputs, run the net, check the logits, then move queues and random streams. */
#include "play/play.h"

enum { RECORDINGS_MOST = 32 }; /* that may fail before no more are tried */

/* ---- input rows ------------------------------------------------------------------------------------------------ */

static exphil_status bad_float(const exphil_session *session, int64_t b, int64_t i)
{
    return xph_play_fail(session, EXPHIL_E_NUMERIC, "stream %lld: floats[%lld] is not finite", (long long)b,
                         (long long)i);
}

/* Whether there are rows at all. */
static exphil_status check_rows(const exphil_session *session, const float *floats, const int32_t *ids)
{
    const exphil_spec *spec = session->spec;
    if (spec->float_count && !floats) return xph_play_fail(session, EXPHIL_E_INVALID, "floats is NULL");
    if (spec->id_count && !ids) return xph_play_fail(session, EXPHIL_E_INVALID, "ids is NULL");
    return EXPHIL_OK;
}

static exphil_status check_ids(const exphil_session *session, int64_t b, const int32_t *ids)
{
    const exphil_spec *spec = session->spec;
    for (int64_t i = 0; i < spec->id_count; i++)
        if (ids[i] < 0 || ids[i] >= spec->ids[i].entries)
            return xph_play_fail(session, EXPHIL_E_INVALID, "stream %lld: ids[%lld] %s is %d, outside 0..%d",
                                 (long long)b, (long long)i, spec->ids[i].name, ids[i],
                                 spec->ids[i].entries - 1);
    return EXPHIL_OK;
}

/* The kept rows of a window one frame later: width elements of 4 bytes per row. Returns where the newest goes. */
static void *next_window(void *to, const void *kept, int64_t frames, int64_t width)
{
    size_t bytes = (size_t)width * 4, rest = bytes * (size_t)(frames - 1);
    if (rest) memcpy(to, (const unsigned char *)kept + bytes, rest);
    return (unsigned char *)to + rest;
}

/* Some words, too few for a call. */
static inline void copy_few(int32_t *to, const int32_t *from, int64_t count)
{
    memcpy(to, from, (size_t)count * sizeof *to);
}

/* The ids of a row as the net takes them: those of the frame, then what the policy is told. */
static void stage_ids(const exphil_session *session, int64_t b, const int32_t *ids, int32_t *to)
{
    int64_t own = session->spec->id_count, told = session->told->conditions;
    if (ids) copy_few(to, ids, own);
    if (told) copy_few(to + own, xph_play_told(session, b), told);
    if (session->delay_id) to[own + told] = session->delay_id;
}

/* Past actions of a row, newest first. */
static void stage_past(const exphil_session *session, int64_t b, int32_t *to)
{
    const exphil_spec *spec = session->spec;
    int64_t heads = spec->head_count, seen = session->seen_slots, slots = session->shape->slots;
    copy_few(to, xph_play_history(session, b), seen * heads);
    for (int64_t i = seen * heads; i < slots * heads; i++) to[i] = spec->heads[i % heads].neutral;
}

/* Where the floats of a row go. In window mode the kept ones go before them: the window itself moves only in commit, staging
 * reads frames-1 kept rows and the new one. */
static float *floats_of(const exphil_session *session, int64_t b)
{
    const int64_t width = session->spec->float_count, frames = session->frames;
    float *first = session->floats + b * frames * width;
    if (!session->windowed) return first;
    return next_window(first, xph_play_part(session, b, session->floats_at), frames, width);
}

/* Window mode: ids and past actions of the stream's rows so far, the episode's start marked. */
static void stage_window(exphil_session *session, int64_t b, const int32_t *ids)
{
    const int64_t frames = session->frames, slots = session->shape->slots * session->spec->head_count,
                  first = b * frames, seen = xph_play_at(session, b)->seen, tables = session->shape->tables;
    int32_t *d = session->ids + first * tables, *p = session->past + first * slots;
    stage_ids(session, b, ids, next_window(d, xph_play_part(session, b, session->ids_at), frames, tables));
    stage_past(session, b, next_window(p, xph_play_part(session, b, session->past_at), frames, slots));
    memset(session->reset + first, 0, (size_t)frames);
    session->reset[first + frames - 1 - (seen < frames - 1 ? seen : frames - 1)] = 1;
}

/* Staged from a copy of the random stream: the stream itself moves only in commit. */
static void stage_draw(exphil_session *session, int64_t b, const float *noise)
{
    int64_t width = session->shape->logits, heads = session->shape->heads;
    copy_few(session->previous + b * heads, xph_play_history(session, b), heads);
    if (!session->drawing) return;
    float *to = session->noise + b * width;
    xph_rng rng = xph_play_at(session, b)->rng;
    session->draw[b] = noise ? (xph_draw){0, 0, 0} : (xph_draw){rng.seed, rng.stream, rng.position};
    if (noise)
        memcpy(to, noise + b * width, (size_t)width * sizeof *to);
    else if (!session->draws)
        xph_rng_floats(&rng, to, width);
}

/* Checks the rows of all streams and stages them. Staging moves nothing: a row that is refused may come after others that are
 * staged. */
static exphil_status stage(exphil_session *session, const float *floats, const int32_t *ids,
                           const float *noise)
{
    const exphil_spec *spec = session->spec;
    const int64_t slots = session->shape->slots * spec->head_count;
    XPH_TRY(check_rows(session, floats, ids));
    for (int64_t b = 0; b < session->streams; b++) {
        const int32_t *id = spec->id_count ? ids + b * spec->id_count : NULL;
        float *to = floats_of(session, b);
        int64_t bad =
            spec->float_count ? xph_copy_finite(to, floats + b * spec->float_count, spec->float_count) : -1;
        if (bad >= 0) return bad_float(session, b, bad);
        if (id) XPH_TRY(check_ids(session, b, id));
        if (session->windowed) {
            stage_window(session, b, id);
        } else {
            stage_ids(session, b, id, session->ids + b * session->shape->tables);
            stage_past(session, b, session->past + b * slots);
        }
        stage_draw(session, b, noise);
    }
    return EXPHIL_OK;
}

/* ---- the net ---------------------------------------------------------------------------------------------------- */

/* Where the device reads a part of what was staged. */
static const void *there(const exphil_session *session, const void *staged)
{
    return session->d_staged + ((const unsigned char *)staged - session->staged);
}

/* What a step gives the host, of a device with memory of its own in one piece; returns how many. */
static int64_t list_results(const exphil_session *session, xph_download results[2])
{
    const xph_model_shape *shape = session->shape;
    const size_t streams = (size_t)session->streams, count = streams * (size_t)shape->logits;
    void *to = session->wide ? (void *)session->wide : (void *)session->fresh;
    if (session->actions != session->fresh_actions) {
        results[0] = (xph_download){session->outputs[1], session->d_actions, session->outputs_bytes};
        return 1;
    }
    int64_t n = 0;
    results[n++] = (xph_download){to, xph_net_logits(session->net), count * shape->real_bytes};
    if (!session->values) return n;
    to = session->wide ? (void *)(session->wide + count) : (void *)session->fresh_values;
    results[n++] = (xph_download){to, xph_net_values(session->net), streams * shape->real_bytes};
    return n;
}

/* The new state goes to the second half: a step that fails has moved nothing, but spoilt that half. A window needs no
 * state at all. */
static exphil_status enqueue(const exphil_session *session, bool lagging)
{
    const xph_play_weights *now = xph_play_weights_now(session);
    bool carried = session->state_bytes != 0;
    xph_stream *stream = xph_net_stream(session->net);
    const xph_net_io io = {
        .floats = there(session, session->floats),
        .ids = there(session, session->ids),
        .past = there(session, session->past),
        .reset = session->windowed ? there(session, session->reset) : NULL,
        .draw = session->draws ? there(session, session->draw) : NULL,
        .state_in = carried ? session->state[0] : NULL,
        .state_out = carried ? session->state[1] : NULL,
        .ld_state = session->shape->state,
        .lagging = lagging,
        .back = session->back,
    };
    if (session->d_staged != session->staged)
        XPH_TRY(session->device->backend->upload(stream, session->d_staged, session->staged,
                                                 session->every_bytes));
    xph_download results[2];
    int64_t count = list_results(session, results);
    return xph_net_play(session->net, now->weights, now->packed, &io, session->how,
                        session->drawing ? there(session, session->noise) : NULL,
                        there(session, session->previous), session->d_actions, results, count);
}

typedef struct recording {
    const exphil_session *session;
    bool lagging;
} recording;

static exphil_status enqueue_recorded(void *arg)
{
    const recording *r = arg;
    return enqueue(r->session, r->lagging);
}

/* A step of both kinds on inputs of zeros, unrecorded, so that libraries find their ways before there is a recording or a
 * game. It moves nothing: the state that it makes goes where the first step will put its own. */
static exphil_status warm_up(exphil_session *session)
{
    int64_t count = session->drawing ? session->streams * session->shape->logits : 0;
    for (int64_t i = 0; i < count; i++) session->noise[i] = 0.5f;
    for (int64_t b = 0; b < session->streams; b++) session->draw[b] = (xph_draw){0, XPH_RNG_SAMPLE, 0};
    XPH_TRY(enqueue(session, false));
    XPH_TRY(enqueue(session, true));
    XPH_TRY(session->device->backend->stream_wait(xph_net_stream(session->net)));
    memset(session->staged, 0, session->staged_bytes);
    return EXPHIL_OK;
}

/* Of the weights that play now. */
static exphil_status record_forms(exphil_session *session)
{
    unsigned char *const halves[2] = {session->state[0], session->state[1]}, *const outputs[2] = {
                                                                                 session->outputs[0],
                                                                                 session->outputs[1]};
    xph_play_weights *slot = &session->slot[session->now];
    exphil_status status = EXPHIL_OK;
    for (int form = 0; status >= 0 && form < 4; form++) {
        int parity = form / 2, lagging = form % 2;
        const bool turned = parity != session->parity;
        recording r = {session, lagging};
        session->state[0] = halves[turned];
        session->state[1] = halves[!turned];
        session->outputs[1] = outputs[!turned];
        status = xph_net_record(session->net, enqueue_recorded, &r, &slot->recorded[parity][lagging]);
    }
    session->state[0] = halves[0];
    session->state[1] = halves[1];
    session->outputs[1] = outputs[1];
    return status;
}

static exphil_status record_slots(exphil_session *session)
{
    const int32_t now = session->now;
    exphil_status status = EXPHIL_OK;
    for (int32_t i = 0; status >= 0 && i < 2; i++) {
        session->now = i;
        if (session->slot[i].model) status = record_forms(session);
    }
    session->now = now;
    return status;
}

/* What fails in a recording alone ends nothing: the step that follows settles what was refused, then it is tried again.
 * Without recordings steps run operation by operation. */
static exphil_status record(exphil_session *session)
{
    XPH_TRY(warm_up(session));
    for (int attempt = 0; attempt < RECORDINGS_MOST; attempt++) {
        if (record_slots(session) >= 0) return EXPHIL_OK;
        xph_play_forget(session);
        XPH_TRY(warm_up(session));
    }
    xph_log(session->context, EXPHIL_LOG_WARNING,
            "session: %s does not record steps, they run operation by operation",
            session->device->backend->name);
    return EXPHIL_OK;
}

exphil_status xph_play_record(exphil_session *session)
{
    if (!session->device->backend->record_begin) return EXPHIL_OK;
    exphil_status status = record(session);
    xph_log_flush(session->context); /* what was refused */
    return status;
}

void xph_play_forget(exphil_session *session)
{
    for (int i = 0; i < 8; i++) {
        xph_graph **graph = &session->slot[i / 4].recorded[i / 2 % 2][i % 2];
        if (*graph) session->device->backend->graph_destroy(*graph);
        *graph = NULL;
    }
}

/* Noise that a caller gave lies behind what every step takes. */
static exphil_status send_noise(const exphil_session *session)
{
    return session->device->backend->upload(
        xph_net_stream(session->net), session->d_staged + ((unsigned char *)session->noise - session->staged),
        session->noise, (size_t)(session->streams * session->shape->logits) * sizeof *session->noise);
}

static exphil_status run_net(exphil_session *session, bool given_noise)
{
    const xph_backend *backend = session->device->backend;
    xph_stream *stream = xph_net_stream(session->net);
    size_t count = (size_t)(session->streams * session->shape->logits);
    bool lagging = session->lagging;
    xph_graph *recorded = xph_play_weights_now(session)->recorded[session->parity][lagging];
    session->lagging = false;
    if (given_noise && session->draws && session->d_staged != session->staged) XPH_TRY(send_noise(session));
    exphil_status status = recorded ? backend->replay(stream, recorded) : enqueue(session, lagging);
    session->back = !session->back;
    XPH_TRY(status);
    XPH_TRY(backend->stream_wait(stream));
    for (size_t i = 0; session->wide && i < count; i++) session->fresh[i] = (float)session->wide[i];
    for (int64_t b = 0; session->wide && session->values && b < session->streams; b++)
        session->fresh_values[b] = (float)session->wide[count + (size_t)b];
    return EXPHIL_OK;
}

static bool outputs_finite(const exphil_session *session, int64_t b)
{
    int64_t width = session->shape->logits;
    return xph_find_not_finite(session->fresh + b * width, width) < 0 &&
           (!session->values || xph_find_not_finite(session->fresh_values + b, 1) < 0);
}

static bool all_finite(const exphil_session *session)
{
    return xph_find_not_finite(session->fresh, session->streams * session->shape->logits) < 0 &&
           (!session->values || xph_find_not_finite(session->fresh_values, session->streams) < 0);
}

/* Finite weights and inputs can still overflow; such streams start again. */
static exphil_status check_outputs(exphil_session *session)
{
    int64_t bad = -1;
    if (all_finite(session)) return EXPHIL_OK;
    for (int64_t b = 0; b < session->streams; b++) {
        if (outputs_finite(session, b)) continue;
        XPH_TRY(xph_play_reset(session, b));
        bad = b;
    }
    if (bad < 0) return EXPHIL_OK;
    return xph_play_fail(session, EXPHIL_E_NUMERIC, "stream %lld: the logits%s are not finite; it was reset",
                         (long long)bad, session->values ? " or the value" : "");
}

/* ---- what a step changes ---------------------------------------------------------------------------------------- */

static void commit_stream(exphil_session *session, int64_t b, bool own_noise)
{
    const exphil_spec *spec = session->spec;
    xph_play_stream *stream = xph_play_at(session, b);
    int64_t heads = spec->head_count, frames = session->frames, slots = session->shape->slots * heads;
    int32_t *history = xph_play_history(session, b);
    if (session->windowed) {
        int64_t first = b * frames;
        memcpy(xph_play_part(session, b, session->floats_at), session->floats + first * spec->float_count,
               (size_t)(frames * spec->float_count) * sizeof(float));
        memcpy(xph_play_part(session, b, session->ids_at), session->ids + first * session->shape->tables,
               (size_t)(frames * session->shape->tables) * sizeof(int32_t));
        memcpy(xph_play_part(session, b, session->past_at), session->past + first * slots,
               (size_t)(frames * slots) * sizeof(int32_t));
    }
    if (stream->seen < frames) stream->seen++;
    if (session->drawing && own_noise)
        stream->rng.position += (uint64_t)session->shape->logits; /* one number each */
    if (session->adoptable) {
        *xph_play_clock(session, b) = session->clock;
        *xph_play_stamp(session, b) = session->stamps;
    }
    if (session->history > 1)
        memmove(history + heads, history, (size_t)((session->history - 1) * heads) * sizeof *history);
    copy_few(history, session->actions + b * heads, heads);
}

static void commit(exphil_session *session, bool own_noise)
{
    unsigned char *state = session->state[0], *outputs = session->outputs[0];
    session->state[0] = session->state[1];
    session->state[1] = state;
    session->outputs[0] = session->outputs[1];
    session->outputs[1] = outputs;
    xph_play_point(session);
    session->parity = !session->parity;
    session->lagging = true;
    session->clock++;
    session->stamps++;
    for (int64_t b = 0; b < session->streams; b++) commit_stream(session, b, own_noise);
}

static void give_actions(const exphil_session *session, int32_t *actions)
{
    int64_t heads = session->spec->head_count;
    int64_t slot = session->config.deliver == EXPHIL_DELIVER_DUE ? session->delay : 0;
    for (int64_t b = 0; b < session->streams; b++)
        copy_few(actions + b * heads, xph_play_history(session, b) + slot * heads, heads);
}

static exphil_status step_rows(exphil_session *session, const float *noise, int32_t *actions)
{
    xph_play_advance(session);
    exphil_status status = run_net(session, noise != NULL);
    if (status < 0) return xph_play_fail(session, status, "the device failed in a step");
    XPH_TRY(check_outputs(session));
    commit(session, noise == NULL);
    give_actions(session, actions);
    return EXPHIL_OK;
}

exphil_status xph_play_peek(exphil_session *session, const float *floats, const int32_t *ids)
{
    XPH_TRY(stage(session, floats, ids, NULL));
    exphil_status status = run_net(session, false);
    if (status < 0) return xph_play_fail(session, status, "the device failed in a step");
    for (int64_t b = 0; b < session->streams; b++)
        if (!outputs_finite(session, b))
            return xph_play_fail(session, EXPHIL_E_NUMERIC,
                                 "stream %lld: the logits or the value are not finite", (long long)b);
    return EXPHIL_OK;
}

static exphil_status check_noise(const exphil_session *session, const float *noise)
{
    for (int64_t i = 0; noise && i < session->streams * session->shape->logits; i++)
        if (!(noise[i] > 0.0f && noise[i] < 1.0f))
            return xph_play_fail(session, EXPHIL_E_INVALID, "noise[%lld] is not within (0, 1)", (long long)i);
    return EXPHIL_OK;
}

exphil_status xph_play_step_row(exphil_session *session, const float *floats, const int32_t *ids,
                                const float *noise, int32_t *actions)
{
    int64_t began = xph_clock_ns();
    if (!actions) return xph_play_fail(session, EXPHIL_E_INVALID, "actions is NULL");
    XPH_TRY(stage(session, floats, ids, noise));
    XPH_TRY(check_noise(session, noise));
    XPH_TRY(step_rows(session, noise, actions));
    xph_latency_add(&session->latency, xph_clock_ns() - began);
    return EXPHIL_OK;
}

exphil_status exphil_session_step_row(exphil_session *session, const float *floats, const int32_t *ids,
                                      const float *noise, int32_t *actions)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_play_enter_free(session));
    exphil_status status = xph_play_step_row(session, floats, ids, noise, actions);
    xph_play_leave(session);
    return status;
}

/* Element i of a caller's array, whose structs may be shorter or longer than this library's. */
static const exphil_melee_frame *frame_at(const exphil_melee_frame *frames, int64_t i)
{
    return (const exphil_melee_frame *)(const void *)((const unsigned char *)frames +
                                                      (size_t)i * frames->struct_size);
}

/* Before anything is read at that distance; what is in the frames is the encoder's to check. */
static exphil_status check_distance(const exphil_session *session, const exphil_melee_frame *frames)
{
    size_t given = frames->struct_size;
    if (given < XPH_LEAST(exphil_melee_frame) || given % _Alignof(exphil_melee_frame))
        return xph_play_fail(session, EXPHIL_E_INVALID, "frames[0].struct_size is %zu, at least %zu expected",
                             given, XPH_LEAST(exphil_melee_frame));
    for (int64_t b = 1; b < session->streams && given <= XPH_STRUCT_MOST; b++)
        if (frame_at(frames, b)->struct_size != given)
            return xph_play_fail(session, EXPHIL_E_INVALID,
                                 "frames[%lld].struct_size is not that of frames[0]", (long long)b);
    return EXPHIL_OK;
}

static exphil_status encode_frames(exphil_session *session, const exphil_melee_frame *frames)
{
    const exphil_spec *spec = session->spec;
    for (int64_t b = 0; b < session->streams; b++) {
        exphil_error refused = EXPHIL_ERROR_INIT;
        exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
        const char *culprit = refused.message;
        exphil_status status = XPH_TAKE(exphil_melee_frame, &frame, frame_at(frames, b), &refused);
        if (status >= 0)
            status = xph_melee_encode(session->layout, &frame, session->melee_floats + b * spec->float_count,
                                      session->melee_ids + b * spec->id_count, &culprit);
        if (status < 0) return xph_play_fail(session, status, "frames[%lld]: %s", (long long)b, culprit);
    }
    return EXPHIL_OK;
}

static exphil_status step_frames(exphil_session *session, const exphil_melee_frame *frames, exphil_pad *pads)
{
    if (!session->layout || !session->codec)
        return xph_play_fail(session, EXPHIL_E_STATE,
                             "%s/%s is not one of the Melee specs: use exphil_session_step_row",
                             session->spec->layout, session->spec->codec);
    if (!frames || !pads)
        return xph_play_fail(session, EXPHIL_E_INVALID, "%s is NULL", frames ? "pads" : "frames");
    XPH_TRY(check_distance(session, frames));
    XPH_TRY(encode_frames(session, frames));
    XPH_TRY(stage(session, session->melee_floats, session->melee_ids, NULL));
    XPH_TRY(step_rows(session, NULL, session->decided));
    for (int64_t b = 0; b < session->streams; b++) {
        const char *culprit = "";
        exphil_status status = xph_melee_pad_decode(
            session->codec, session->decided + b * session->spec->head_count, &pads[b], &culprit);
        if (status < 0) return xph_play_fail(session, status, "stream %lld: %s", (long long)b, culprit);
    }
    return EXPHIL_OK;
}

exphil_status exphil_session_step(exphil_session *session, const exphil_melee_frame *frames, exphil_pad *pads)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_play_enter_free(session));
    int64_t began = xph_clock_ns();
    exphil_status status = step_frames(session, frames, pads);
    if (status >= 0) xph_latency_add(&session->latency, xph_clock_ns() - began);
    xph_play_leave(session);
    return status;
}
