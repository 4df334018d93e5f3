/* A session that plays and records. Everything is allocated at creation; steps and rewards copy. */
#include "learn/learn.h"

enum { TIME_USUAL = 64, TIME_MOST = 4096 };

/* ---- memory --------------------------------------------------------------------------------------------------------- */

static void cut_rows(exphil_rollout *r, xph_cutter *c)
{
    const xph_model_shape *shape = r->shape;
    int64_t all = r->streams * r->rows;
    r->floats = xph_cut(c, all, shape->floats, sizeof(float));
    r->ids = xph_cut(c, all, shape->ids, sizeof(int32_t));
    r->past = xph_cut(c, all, shape->slots * shape->heads, sizeof(int32_t));
    r->actions = xph_cut(c, all, shape->heads, sizeof(int32_t));
    r->logits = xph_cut(c, all, shape->logits, sizeof(float));
    r->value = xph_cut(c, all, 1, sizeof(float));
    r->reward = xph_cut(c, all, 1, sizeof(float));
    r->cut_off = xph_cut(c, all, 1, sizeof(float));
    r->log_probability = xph_cut(c, all, 1, sizeof(double));
    r->reset = xph_cut(c, all, 1, 1);
    r->end = xph_cut(c, all, 1, 1);
    r->taken = xph_cut(c, all, 1, 1);
    r->ended_sum = xph_cut(c, all, 1, sizeof(double));
    r->ended_frames = xph_cut(c, all, 1, sizeof(int64_t));
}

static void cut_world(exphil_rollout *r, xph_cutter *c)
{
    const xph_model_shape *shape = r->shape;
    r->world_floats = xph_cut(c, r->streams, shape->floats, sizeof(float));
    r->world_ids = xph_cut(c, r->streams, shape->ids, sizeof(int32_t));
    r->world_actions = xph_cut(c, r->streams, shape->heads, sizeof(int32_t));
    r->world_reward = xph_cut(c, r->streams, 1, sizeof(float));
    r->world_end = xph_cut(c, r->streams, 1, 1);
    r->stream_end = xph_cut(c, r->streams, 1, 1);
}

static void cut_all(exphil_rollout *r, xph_cutter *c)
{
    size_t state = (size_t)r->shape->state * r->shape->real_bytes;
    cut_rows(r, c);
    cut_world(r, c);
    r->state = xph_cut(c, r->streams, (int64_t)state, 1);
    r->next_value = xph_cut(c, r->streams, 1, sizeof(float));
    r->fresh = xph_cut(c, r->streams, 1, 1);
    r->arrived = xph_cut(c, r->streams, 1, 1);
    r->episodes = xph_cut(c, r->streams, 1, sizeof(int64_t));
    r->sum = xph_cut(c, r->streams, 1, sizeof(double));
    r->frames = xph_cut(c, r->streams, 1, sizeof(int64_t));
    r->logs = xph_cut(c, r->streams, r->shape->logits, sizeof(double));
}

static exphil_status allocate(exphil_rollout *r, exphil_error *error)
{
    xph_cutter c = {NULL, 0};
    cut_all(r, &c);
    r->memory_bytes = c.at;
    r->memory = xph_calloc(r->context, 1, c.at);
    if (!r->memory) return xph_no_memory(c.at, error);
    c = (xph_cutter){r->memory, 0};
    cut_all(r, &c);
    memset(r->fresh, 1, (size_t)r->streams);
    return EXPHIL_OK;
}

/* ---- making and freeing ----------------------------------------------------------------------------------------------- */

static exphil_status refused(const char *why, exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_UNSUPPORTED, "rollout: %s", why);
}

static exphil_status check_model(const exphil_model *model, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    if (shape->narrow) return refused("a quantised model cannot be learnt with", error);
    if (shape->mode == EXPHIL_MODE_WINDOW) return refused("a model in window mode plays no chunks", error);
    if (shape->told) return refused("a model with conditions or several delays", error);
    if (shape->type != XPH_F32) return refused("a model of doubles", error);
    if (!shape->value) return xph_fail(error, EXPHIL_E_INVALID, "rollout: the model has no value head");
    return EXPHIL_OK;
}

static exphil_status take_policy(exphil_rollout *r, exphil_error *error)
{
    const exphil_session *session = r->session;
    r->policy = (xph_policy){.head = xph_model_heads(xph_play_weights_now(session)->model),
                             .heads = r->shape->heads,
                             .logits = r->shape->logits};
    for (int64_t h = 0; h < r->shape->heads; h++) {
        if (session->how[h].deterministic)
            return refused("heads that take the likeliest value have no probabilities", error);
        r->policy.temperature[h] = (double)session->how[h].temperature;
    }
    return EXPHIL_OK;
}

static void free_rollout(exphil_rollout *r)
{
    exphil_context *context = r->context;
    exphil_session_destroy(r->session);
    xph_free(context, r->memory, r->memory_bytes);
    xph_free(context, r, sizeof *r);
    xph_context_release(context);
}

void exphil_rollout_destroy(exphil_rollout *rollout)
{
    if (rollout) free_rollout(rollout);
}

static exphil_status build(exphil_rollout *r, const exphil_model *model, const exphil_session_config *config,
                           exphil_error *error)
{
    XPH_TRY(exphil_session_create(model, config, &r->session, error));
    r->shape = r->session->shape;
    r->streams = r->session->streams;
    r->delay = r->session->delay;
    r->rows = r->time + r->delay;
    r->session->held = true;
    XPH_TRY(take_policy(r, error));
    return allocate(r, error);
}

exphil_status exphil_rollout_create(const exphil_model *model, const exphil_session_config *session,
                                    const exphil_rollout_config *config, exphil_rollout **rollout,
                                    exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_rollout_config known = EXPHIL_ROLLOUT_CONFIG_INIT;
    if (!model || !rollout)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", model ? "rollout" : "model");
    XPH_TRY(xph_context_check(xph_model_context(model), error));
    XPH_TRY(XPH_TAKE(exphil_rollout_config, &known, config, error));
    XPH_TRY(check_model(model, error));
    if (known.time < 0 || known.time > TIME_MOST)
        return xph_fail(error, EXPHIL_E_INVALID, "rollout config: time is %lld, outside 0..%d",
                        (long long)known.time, TIME_MOST);
    exphil_context *context = xph_model_context(model);
    exphil_rollout *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->time = known.time ? known.time : TIME_USUAL;
    made->seed = known.seed;
    exphil_status status = build(made, model, session, error);
    if (status < 0) {
        free_rollout(made);
        return status;
    }
    *rollout = made;
    return EXPHIL_OK;
}

exphil_session *exphil_rollout_session(exphil_rollout *rollout)
{
    return rollout ? rollout->session : NULL;
}

/* ---- steps -------------------------------------------------------------------------------------------------------------- */

static int64_t row_at(const exphil_rollout *r, int64_t b, int64_t t)
{
    return b * r->rows + t;
}

bool xph_rollout_full(const exphil_rollout *r)
{
    return r->rewarded == r->rows;
}

exphil_status xph_rollout_check_whole(const exphil_rollout *r, exphil_error *error)
{
    if (!r->broken) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_STATE, "rollout: its world has failed before");
}

exphil_status xph_rollout_check_full(const exphil_rollout *r, exphil_error *error)
{
    XPH_TRY(xph_rollout_check_whole(r, error));
    if (xph_rollout_full(r)) return EXPHIL_OK;
    if (r->received)
        return xph_fail(error, EXPHIL_E_STATE, "the chunk has %lld of %lld streams", (long long)r->received,
                        (long long)r->streams);
    return xph_fail(error, EXPHIL_E_STATE, "the chunk has %lld of %lld rows", (long long)r->rewarded,
                    (long long)r->rows);
}

exphil_status xph_rollout_check_empty(const exphil_rollout *r, exphil_error *error)
{
    if (r->decided)
        return xph_fail(error, EXPHIL_E_STATE, "rollout: a chunk is under way, %lld of its rows are played",
                        (long long)r->decided);
    if (r->received)
        return xph_fail(error, EXPHIL_E_STATE,
                        "rollout: a chunk is under way, %lld of its streams came as blocks",
                        (long long)r->received);
    return EXPHIL_OK;
}

/* Where a chunk begins: the recurrent state of every stream, before its first row. */
static exphil_status keep_states(const exphil_rollout *r)
{
    const exphil_session *session = r->session;
    const xph_backend *backend = session->device->backend;
    size_t bytes = session->state_bytes * (size_t)r->streams;
    if (!bytes) return EXPHIL_OK;
    XPH_TRY(backend->download(xph_net_stream(session->net), r->state, session->state[0], bytes));
    return backend->stream_wait(xph_net_stream(session->net));
}

/* A host that overrode the last action has changed the queue, or agrees with it; rows that came as blocks are not of it. */
static void note_overrides(exphil_rollout *r)
{
    const int64_t heads = r->shape->heads;
    if (r->decided == 0 || r->received) return;
    for (int64_t b = 0; b < r->streams; b++) {
        int64_t row = row_at(r, b, r->decided - 1);
        if (r->fresh[b] || !r->session->overridden[b]) continue;
        memcpy(r->actions + row * heads, xph_play_history(r->session, b), (size_t)heads * sizeof(int32_t));
        r->taken[row] = 0;
    }
}

exphil_status xph_rollout_take_overrides(exphil_rollout *r, exphil_error *error)
{
    if (xph_play_enter(r->session) < 0) return xph_busy_error("the rollout's session", error);
    note_overrides(r);
    xph_play_leave(r->session);
    return EXPHIL_OK;
}

/* r->logs: of all streams. */
static void record_stream(exphil_rollout *r, int64_t b, const float *floats, const int32_t *ids)
{
    const xph_model_shape *shape = r->shape;
    const exphil_session *session = r->session;
    const int64_t row = row_at(r, b, r->decided), past = shape->slots * shape->heads;
    if (shape->floats)
        memcpy(r->floats + row * shape->floats, floats + b * shape->floats,
               (size_t)shape->floats * sizeof *floats);
    if (shape->ids) memcpy(r->ids + row * shape->ids, ids + b * shape->ids, (size_t)shape->ids * sizeof *ids);
    if (past) memcpy(r->past + row * past, session->past + b * past, (size_t)past * sizeof(int32_t));
    memcpy(r->actions + row * shape->heads, session->actions + b * shape->heads,
           (size_t)shape->heads * sizeof(int32_t));
    memcpy(r->logits + row * shape->logits, session->logits + b * shape->logits,
           (size_t)shape->logits * sizeof(float));
    r->value[row] = session->values[b];
    r->reset[row] = r->fresh[b];
    r->taken[row] = 1;
    session->overridden[b] = 0;
    r->log_probability[row] =
        xph_policy_log_probability(&r->policy, r->logs + b * shape->logits, r->actions + row * shape->heads);
    r->fresh[b] = 0;
}

/* The next row of stream b is the first of another episode. */
static void end_episode(exphil_rollout *r, int64_t b, int64_t row)
{
    r->ended_sum[row] = r->sum[b];
    r->ended_frames[row] = r->frames[b];
    r->sum[b] = 0.0;
    r->frames[b] = 0;
    r->fresh[b] = 1;
}

/* A stream whose logits overflowed was reset by the session: its episode was cut off before this row. */
static void note_overflow(exphil_rollout *r)
{
    for (int64_t b = 0; b < r->streams; b++) {
        /* Before the first row of a chunk there is none to tell it, and that place is still free. */
        int64_t before = row_at(r, b, r->decided ? r->decided - 1 : 0);
        if (r->fresh[b] || xph_play_at(r->session, b)->seen) continue;
        end_episode(r, b, before);
        if (r->decided == 0) continue;
        r->end[before] = EXPHIL_CUT_OFF;
        r->cut_off[before] = r->value[before];
    }
}

/* Rows of a world and rows of the host's do not follow each other. */
static exphil_status check_of(const exphil_rollout *r, xph_rollout_of of)
{
    const char *why = r->broken                         ? "its world has failed before"
                      : of == XPH_OF_HOST && r->of.step ? "it plays a world, not steps of the host's"
                                                        : NULL;
    return why ? xph_play_fail(r->session, EXPHIL_E_STATE, "rollout: %s", why) : EXPHIL_OK;
}

static exphil_status step(exphil_rollout *r, xph_rollout_of of, const float *floats, const int32_t *ids,
                          int32_t *actions)
{
    const char *why = r->decided == r->rows       ? "the chunk is full: a learner takes it first"
                      : r->decided != r->rewarded ? "the last step has no reward yet"
                      : r->received               ? "streams of this chunk came as blocks"
                                                  : NULL;
    XPH_TRY(check_of(r, of));
    if (why) return xph_play_fail(r->session, EXPHIL_E_STATE, "rollout: %s", why);
    note_overrides(r);
    exphil_status status = r->decided == 0 ? keep_states(r) : EXPHIL_OK;
    if (status < 0) return xph_play_fail(r->session, status, "the device failed to give its state");
    status = xph_play_step_row(r->session, floats, ids, NULL, actions);
    if (status == EXPHIL_E_NUMERIC) note_overflow(r);
    XPH_TRY(status);
    xph_policy_logs(&r->policy, r->session->logits, XPH_F32, r->streams, r->logs);
    for (int64_t b = 0; b < r->streams; b++) record_stream(r, b, floats, ids);
    r->decided++;
    r->by_host |= of == XPH_OF_HOST;
    return EXPHIL_OK;
}

exphil_status xph_rollout_step(exphil_rollout *r, xph_rollout_of of, const float *floats, const int32_t *ids,
                               int32_t *actions)
{
    XPH_TRY(xph_play_enter(r->session));
    exphil_status status = step(r, of, floats, ids, actions);
    xph_play_leave(r->session);
    return status;
}

/* Every call on a rollout begins with this and ends with leave. */
static exphil_status enter(exphil_rollout *r)
{
    if (!r) return EXPHIL_E_INVALID;
    XPH_TRY(xph_context_check(r->context, NULL));
    return xph_busy_enter(&r->busy) ? EXPHIL_OK : EXPHIL_E_BUSY;
}

exphil_status exphil_rollout_step(exphil_rollout *rollout, const float *floats, const int32_t *ids,
                                  int32_t *actions)
{
    XPH_OWN_FPU;
    XPH_TRY(enter(rollout));
    exphil_status status = xph_rollout_step(rollout, XPH_OF_HOST, floats, ids, actions);
    xph_busy_leave(&rollout->busy);
    return status;
}

/* ---- rewards ------------------------------------------------------------------------------------------------------------ */

/* Without delay values of rows that come next are part of a chunk: at its end, and where an episode is cut off. */
static bool wants_next(const exphil_rollout *r, const uint8_t *end)
{
    if (r->delay) return false;
    if (r->rewarded + 1 == r->rows) return true;
    for (int64_t b = 0; b < r->streams; b++)
        if (end[b] == EXPHIL_CUT_OFF) return true;
    return false;
}

static exphil_status check_rewards(exphil_rollout *r, const float *reward, const uint8_t *end)
{
    if (!reward || !end)
        return xph_play_fail(r->session, EXPHIL_E_INVALID, "%s is NULL", reward ? "end" : "reward");
    if (r->decided == r->rewarded)
        return xph_play_fail(r->session, EXPHIL_E_STATE, "rollout: the last step has its reward already");
    for (int64_t b = 0; b < r->streams; b++) {
        if (!xph_finite((double)reward[b]))
            return xph_play_fail(r->session, EXPHIL_E_NUMERIC, "reward[%lld] is not finite", (long long)b);
        if (end[b] > EXPHIL_CUT_OFF)
            return xph_play_fail(r->session, EXPHIL_E_INVALID, "end[%lld] is %d", (long long)b, end[b]);
    }
    return EXPHIL_OK;
}

static exphil_status value_next(exphil_rollout *r, const uint8_t *end, const float *floats,
                                const int32_t *ids)
{
    if (!wants_next(r, end)) return EXPHIL_OK;
    exphil_status status = xph_play_peek(r->session, floats, ids);
    for (int64_t b = 0; status >= 0 && b < r->streams; b++) {
        r->next_value[b] = r->session->fresh_values[b];
        r->cut_off[row_at(r, b, r->rewarded)] = r->next_value[b];
    }
    return status;
}

static exphil_status note_reward(exphil_rollout *r, int64_t b, float reward, uint8_t end)
{
    int64_t row = row_at(r, b, r->rewarded);
    r->reward[row] = reward;
    r->end[row] = end;
    r->sum[b] += (double)reward;
    r->frames[b]++;
    r->ended_sum[row] = 0.0;
    r->ended_frames[row] = 0;
    if (end == EXPHIL_GOES_ON) return EXPHIL_OK;
    end_episode(r, b, row);
    exphil_status status = xph_play_reset(r->session, b);
    return status < 0 ? xph_play_fail(r->session, status, "the device failed to clear its state") : EXPHIL_OK;
}

static exphil_status take_reward(exphil_rollout *r, xph_rollout_of of, const float *reward,
                                 const uint8_t *end, const float *floats, const int32_t *ids)
{
    XPH_TRY(check_of(r, of));
    XPH_TRY(check_rewards(r, reward, end));
    note_overrides(r);
    XPH_TRY(value_next(r, end, floats, ids));
    for (int64_t b = 0; b < r->streams; b++) XPH_TRY(note_reward(r, b, reward[b], end[b]));
    r->rewarded++;
    return xph_rollout_full(r) ? EXPHIL_END : EXPHIL_OK;
}

exphil_status xph_rollout_reward(exphil_rollout *r, xph_rollout_of of, const float *reward,
                                 const uint8_t *end, const float *floats, const int32_t *ids)
{
    XPH_TRY(xph_play_enter(r->session));
    exphil_status status = take_reward(r, of, reward, end, floats, ids);
    xph_play_leave(r->session);
    return status;
}

exphil_status exphil_rollout_reward(exphil_rollout *rollout, const float *reward, const uint8_t *end,
                                    const float *floats, const int32_t *ids)
{
    XPH_OWN_FPU;
    XPH_TRY(enter(rollout));
    exphil_status status = xph_rollout_reward(rollout, XPH_OF_HOST, reward, end, floats, ids);
    xph_busy_leave(&rollout->busy);
    return status;
}

exphil_status xph_rollout_fail(const exphil_rollout *r, exphil_status status, exphil_error *error)
{
    if (status == EXPHIL_E_BUSY) return xph_busy_error("the rollout's session", error);
    return xph_fail(error, status, "%s", r->session->error.message);
}

/* ---- chunks ------------------------------------------------------------------------------------------------------------- */

void xph_rollout_next(exphil_rollout *r)
{
    r->decided = r->rewarded = r->received = 0;
    memset(r->arrived, 0, (size_t)r->streams);
}

exphil_status xph_rollout_adopt(exphil_rollout *r, const exphil_model *model, exphil_error *error)
{
    if (xph_play_enter(r->session) < 0) return xph_busy_error("the rollout's session", error);
    exphil_status status = xph_play_adopt(r->session, model, error);
    r->policy.head = xph_model_heads(xph_play_weights_now(r->session)->model);
    xph_play_leave(r->session);
    return status;
}
