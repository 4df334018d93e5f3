/* A policy that learns behind the game that it plays: the calls of the thread that plays. What they learn from goes into a ring;
 * what was learnt comes back through one pointer. */
#include "learn/live.h"

/* ---- entering and failing ------------------------------------------------------------------------------------ */

/* Every call of the thread that plays begins with this and ends with leave. */
static exphil_status enter(exphil_live *live)
{
    if (!live) return EXPHIL_E_INVALID;
    XPH_TRY(xph_context_check(live->context, NULL));
    return xph_busy_enter(&live->busy) ? EXPHIL_OK : EXPHIL_E_BUSY;
}

static void leave(exphil_live *live)
{
    xph_busy_leave(&live->busy);
}

exphil_session *exphil_live_session(exphil_live *live)
{
    return live ? live->session : NULL;
}

/* ---- new weights ------------------------------------------------------------------------------------------- */

/* Hot. Whatever is given back is freed by the thread that learns; until it has been there, no other weights are taken. */
static void take_fresh(exphil_live *live)
{
    exphil_model *before = NULL;
    if (atomic_load_explicit(&live->spent, memory_order_acquire)) return;
    exphil_model *fresh = atomic_exchange_explicit(&live->fresh, NULL, memory_order_acq_rel);
    if (!fresh) return;
    exphil_status status = xph_play_enter(live->session);
    if (status >= 0) {
        status = xph_play_exchange(live->session, fresh, &before);
        xph_play_leave(live->session);
    }
    if (status < 0) {
        atomic_store_explicit(&live->spent, fresh, memory_order_release);
        return;
    }
    xph_model_release(fresh); /* the session has it: nothing is freed */
    atomic_store_explicit(&live->spent, before, memory_order_release);
    if (live->rollout)
        live->rollout->policy.head = xph_model_heads(xph_play_weights_now(live->session)->model);
    atomic_fetch_add_explicit(&live->adopted, 1, memory_order_relaxed);
}

/* ---- a frame ------------------------------------------------------------------------------------------------- */

static int64_t stamp_of(const unsigned char *entry)
{
    xph_live_head head;
    memcpy(&head, entry, sizeof head);
    return head.stamp;
}

/* A state was restored: what was played after its step is taken back, as far as nobody has seen it. Whatever stays in the ring
 * led up to that state, for a step has a greater stamp than all before it. */
static void take_back(exphil_live *live, int64_t stamp)
{
    int64_t back = 0;
    for (const unsigned char *last; (last = xph_ring_last(&live->ring)) && stamp_of(last) > stamp; back++)
        if (!xph_ring_take_back(&live->ring)) break;
    if (back) atomic_fetch_add_explicit(&live->taken_back, back, memory_order_relaxed);
}

/* The person's action is what acts in this frame. With a delay the policy's decisions for the frames to come stay in the queue. */
static void person_acts(exphil_live *live, const int32_t *person)
{
    const int64_t heads = live->shape->heads, delay = live->session->delay;
    memcpy(xph_play_history(live->session, 0) + delay * heads, person, (size_t)heads * sizeof *person);
}

/* In the chunk under way, the row at which was decided what the person has now done otherwise is not the policy's. */
static void person_acted(exphil_live *live, const int32_t *person)
{
    exphil_rollout *r = live->rollout;
    const int64_t row = r->decided - 1 - r->delay, heads = live->shape->heads;
    if (row < 0 || r->frames[0] < r->delay) return; /* of the chunk before, or neutral as an episode begins */
    memcpy(r->actions + row * heads, person, (size_t)heads * sizeof *person);
    r->taken[row] = 0;
}

/* before: the stamp of the state that the step began with. An entry that finds no room leaves a gap behind. */
static void record(exphil_live *live, int64_t before, const float *floats, const int32_t *ids,
                   const int32_t *actions, bool person, bool starts)
{
    const xph_model_shape *s = live->shape;
    const unsigned char *last = xph_ring_last(&live->ring);
    const xph_live_head head = {.stamp = *xph_play_stamp(live->session, 0),
                                .person = person,
                                .starts = starts || !last || stamp_of(last) != before};
    unsigned char *to = xph_ring_room(&live->ring);
    if (!to) {
        atomic_fetch_add_explicit(&live->dropped, 1, memory_order_relaxed);
        return;
    }
    memcpy(to, &head, sizeof head);
    to += sizeof head;
    if (s->floats) memcpy(to, floats, (size_t)s->floats * sizeof *floats);
    to += (size_t)s->floats * sizeof *floats;
    if (s->ids) memcpy(to, ids, (size_t)s->ids * sizeof *ids);
    to += (size_t)s->ids * sizeof *ids;
    memcpy(to, actions, (size_t)s->heads * sizeof *actions);
    xph_ring_written(&live->ring);
}

static exphil_status step_imitating(exphil_live *live, const float *floats, const int32_t *ids,
                                    const int32_t *person, int32_t *actions)
{
    exphil_session *session = live->session;
    XPH_TRY(xph_play_enter(session));
    const int64_t before = *xph_play_stamp(session, 0);
    const bool starts = xph_play_at(session, 0)->seen == 0;
    exphil_status status = xph_play_step_row(session, floats, ids, NULL, actions);
    if (status >= 0 && person) {
        person_acts(live, person);
        memcpy(actions, person, (size_t)live->shape->heads * sizeof *person);
    }
    if (status >= 0) {
        take_back(live, before);
        record(live, before, floats, ids, actions, person != NULL, starts);
        xph_ring_publish(&live->ring, live->config.rollback_frames);
    }
    xph_play_leave(session);
    return status;
}

static exphil_status step_rewarded(exphil_live *live, const float *floats, const int32_t *ids,
                                   const int32_t *person, int32_t *actions)
{
    XPH_TRY(exphil_rollout_step(live->rollout, floats, ids, actions));
    if (!person) return EXPHIL_OK;
    person_acts(live, person);
    person_acted(live, person);
    memcpy(actions, person, (size_t)live->shape->heads * sizeof *person);
    return EXPHIL_OK;
}

static exphil_status step(exphil_live *live, const float *floats, const int32_t *ids, const int32_t *person,
                          int32_t *actions)
{
    exphil_error why = EXPHIL_ERROR_INIT;
    exphil_session *session = live->session;
    if (!actions) return xph_play_fail(session, EXPHIL_E_INVALID, "actions is NULL");
    if (person && xph_action_check(live->spec, person, -1, &why) < 0)
        return xph_play_fail(session, EXPHIL_E_INVALID, "person: %s", why.message);
    if (!live->config.paced && !live->rollout) take_fresh(live);
    XPH_TRY(live->rollout ? step_rewarded(live, floats, ids, person, actions)
                          : step_imitating(live, floats, ids, person, actions));
    atomic_fetch_add_explicit(&live->frames, 1, memory_order_relaxed);
    if (person) atomic_fetch_add_explicit(&live->person, 1, memory_order_relaxed);
    return EXPHIL_OK;
}

exphil_status exphil_live_step_row(exphil_live *live, const float *floats, const int32_t *ids,
                                   const int32_t *person, int32_t *actions)
{
    XPH_OWN_FPU;
    XPH_TRY(enter(live));
    exphil_status status = step(live, floats, ids, person, actions);
    leave(live);
    return status;
}

static exphil_status step_melee(exphil_live *live, const exphil_melee_frame *frame, const exphil_pad *person,
                                exphil_pad *pad)
{
    exphil_error why = EXPHIL_ERROR_INIT;
    exphil_session *session = live->session;
    const exphil_spec *spec = live->spec;
    int32_t pressed[EXPHIL_HEADS_MAX];
    if (!session->layout || !session->codec)
        return xph_play_fail(session, EXPHIL_E_STATE,
                             "%s/%s is not one of the Melee specs: use exphil_live_step_row", spec->layout,
                             spec->codec);
    if (!frame || !pad)
        return xph_play_fail(session, EXPHIL_E_INVALID, "%s is NULL", frame ? "pad" : "frame");
    if (exphil_melee_encode(spec->layout, frame, live->floats, live->ids, &why) < 0)
        return xph_play_fail(session, why.status, "%s", why.message);
    if (person && exphil_melee_pad_encode(spec->codec, person, pressed, &why) < 0)
        return xph_play_fail(session, why.status, "person: %s", why.message);
    XPH_TRY(step(live, live->floats, live->ids, person ? pressed : NULL, live->action));
    if (person) {
        *pad = *person;
        return EXPHIL_OK;
    }
    if (exphil_melee_pad_decode(spec->codec, live->action, pad, &why) < 0)
        return xph_play_fail(session, why.status, "%s", why.message);
    return EXPHIL_OK;
}

exphil_status exphil_live_step(exphil_live *live, const exphil_melee_frame *frame, const exphil_pad *person,
                               exphil_pad *pad)
{
    XPH_OWN_FPU;
    XPH_TRY(enter(live));
    exphil_status status = step_melee(live, frame, person, pad);
    leave(live);
    return status;
}

/* ---- what came of it ------------------------------------------------------------------------------------------- */

/* A chunk is full: it goes to the thread, and the next one begins, with new weights that are there before the thread has seen
 * this one. */
static exphil_status hand_over(exphil_live *live)
{
    unsigned char *to = xph_ring_room(&live->ring);
    if (to) {
        XPH_TRY(exphil_rollout_block_save(live->rollout, to, live->ring.bytes, NULL));
        xph_ring_written(&live->ring);
    } else {
        atomic_fetch_add_explicit(&live->dropped, live->rollout->rows, memory_order_relaxed);
    }
    xph_rollout_next(live->rollout);
    if (!live->config.paced || live->owed) take_fresh(live);
    live->owed = false;
    xph_ring_publish(&live->ring, 0);
    return EXPHIL_OK;
}

static exphil_status reward_chunk(exphil_live *live, float reward, uint8_t end, const float *floats,
                                  const int32_t *ids)
{
    exphil_status status = exphil_rollout_reward(live->rollout, &reward, &end, floats, ids);
    return status == EXPHIL_END ? hand_over(live) : status;
}

static exphil_status end_episode(exphil_live *live, uint8_t end)
{
    exphil_session *session = live->session;
    if (end > EXPHIL_CUT_OFF) return xph_play_fail(session, EXPHIL_E_INVALID, "end is %d", end);
    if (end == EXPHIL_GOES_ON) return EXPHIL_OK;
    XPH_TRY(xph_play_enter(session));
    exphil_status status = xph_play_reset(session, 0);
    if (status < 0) xph_play_fail(session, status, "the device failed to clear its state");
    xph_play_leave(session);
    return status;
}

exphil_status exphil_live_reward(exphil_live *live, float reward, uint8_t end, const float *floats,
                                 const int32_t *ids)
{
    XPH_OWN_FPU;
    XPH_TRY(enter(live));
    exphil_status status =
        live->rollout ? reward_chunk(live, reward, end, floats, ids) : end_episode(live, end);
    leave(live);
    return status;
}

/* ---- calls that are not hot ------------------------------------------------------------------------------------ */

exphil_status exphil_live_query(const exphil_live *live, exphil_live_info *info, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!live || !info) return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", live ? "info" : "live");
    XPH_TRY(xph_context_check(live->context, error));
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_live_info, info, error));
    xph_mutex_lock(live->lock);
    exphil_live_info known = live->told;
    known.failed = live->failure.status;
    if (known.failed) memcpy(known.message, live->failure.message, sizeof known.message);
    xph_mutex_unlock(live->lock);
    known.struct_size = sizeof known;
    known.frames = atomic_load_explicit(&live->frames, memory_order_relaxed);
    known.person = atomic_load_explicit(&live->person, memory_order_relaxed);
    known.dropped = atomic_load_explicit(&live->dropped, memory_order_relaxed);
    known.taken_back = atomic_load_explicit(&live->taken_back, memory_order_relaxed);
    known.adopted = atomic_load_explicit(&live->adopted, memory_order_relaxed);
    return XPH_GIVE(exphil_live_info, info, &known, error);
}

exphil_status exphil_live_model(exphil_live *live, exphil_model **model, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!live || !model) return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", live ? "model" : "live");
    XPH_TRY(xph_context_check(live->context, error));
    xph_mutex_lock(live->lock);
    *model = xph_model_retain(live->newest);
    xph_mutex_unlock(live->lock);
    return EXPHIL_OK;
}

static exphil_status enter_cold(exphil_live *live, const char *path, bool wants_path, exphil_error *error)
{
    if (!live || (wants_path && !path))
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", live ? "path" : "live");
    if (wants_path && !path[0]) return xph_fail(error, EXPHIL_E_INVALID, "path is empty");
    XPH_TRY(xph_context_check(live->context, error));
    return xph_busy_enter(&live->busy) ? EXPHIL_OK : xph_busy_error("live", error);
}

/* Everything that was given is shown to the thread, which does the task; then the session has what came of it. */
static exphil_status ask(exphil_live *live, xph_live_task task, const char *path, exphil_error *error)
{
    const bool between = !live->rollout || !live->rollout->decided;
    if (!live->rollout) {
        take_back(live, *xph_play_stamp(live->session, 0));
        xph_ring_publish(&live->ring, 0);
    }
    XPH_TRY(xph_live_ask(live, task, path, error));
    if (between) take_fresh(live);
    live->owed = !between;
    return EXPHIL_OK;
}

exphil_status exphil_live_settle(exphil_live *live, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(enter_cold(live, NULL, false, error));
    exphil_status status = ask(live, XPH_LIVE_SETTLE, NULL, error);
    leave(live);
    return status;
}

exphil_status exphil_live_save(exphil_live *live, const char *path, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(enter_cold(live, path, true, error));
    exphil_status status = ask(live, XPH_LIVE_SAVE, path, error);
    leave(live);
    return status;
}

exphil_status exphil_live_resume(exphil_live *live, const char *path, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(enter_cold(live, path, true, error));
    exphil_status status =
        atomic_load_explicit(&live->frames, memory_order_relaxed)
            ? xph_fail(error, EXPHIL_E_STATE, "live: frames were played already; resume comes before them")
            : ask(live, XPH_LIVE_RESUME, path, error);
    leave(live);
    return status;
}
