/* A learner behind a live game is made, and freed: its configuration, the session that plays, the ring, and the thread. */
#include "learn/live.h"

enum {
    PIECE_USUAL = 120,
    PIECE_MOST = 100000,
    UPDATES_USUAL = 32,
    UPDATES_MOST = 1000000,
    TIME_USUAL = 256,
    TIME_MOST = 4096,
    RING_USUAL = 3600,
    RING_MOST = 1000000,
    CHUNKS_USUAL = 4,
    CHUNKS_MOST = 1024,
    BACK_MOST = 600,
    SAVES_USUAL = 16,
    SAVES_MOST = 1000000
};

/* ---- configuration ----------------------------------------------------------------------------------------- */

static exphil_status take_count(int64_t *value, int64_t usual, int64_t most, const char *name,
                                exphil_error *error)
{
    if (*value < 0 || *value > most)
        return xph_fail(error, EXPHIL_E_INVALID, "live config: %s is %lld, outside 0..%lld", name,
                        (long long)*value, (long long)most);
    if (*value == 0) *value = usual;
    return EXPHIL_OK;
}

static exphil_status take_counts(exphil_live_config *c, exphil_error *error)
{
    const bool chunks = c->way == EXPHIL_LIVE_REINFORCE;
    XPH_TRY(take_count(&c->piece_frames, PIECE_USUAL, PIECE_MOST, "piece_frames", error));
    XPH_TRY(take_count(&c->updates, UPDATES_USUAL, UPDATES_MOST, "updates", error));
    XPH_TRY(take_count(&c->time, TIME_USUAL, TIME_MOST, "time", error));
    XPH_TRY(take_count(&c->ring_frames, chunks ? CHUNKS_USUAL : RING_USUAL, chunks ? CHUNKS_MOST : RING_MOST,
                       "ring_frames", error));
    XPH_TRY(take_count(&c->save_pieces, SAVES_USUAL, SAVES_MOST, "save_pieces", error));
    return take_count(&c->rollback_frames, 0, BACK_MOST, "rollback_frames", error);
}

/* What the other way alone has a use for is refused, not ignored. */
static exphil_status check_way(const exphil_live_config *c, exphil_error *error)
{
    const bool imitates = c->way == EXPHIL_LIVE_IMITATE;
    if (!imitates && c->way != EXPHIL_LIVE_REINFORCE)
        return xph_fail(error, EXPHIL_E_INVALID, "live config: way is %d, which is none", (int)c->way);
    const char *other = imitates ? (c->learner   ? "learner"
                                    : c->teacher ? "teacher"
                                    : c->time    ? "time"
                                                 : NULL)
                                 : (c->sampling          ? "sampling"
                                    : c->dataset         ? "dataset"
                                    : c->share != 0.0    ? "share"
                                    : c->approved != 0.0 ? "approved"
                                    : c->piece_frames    ? "piece_frames"
                                    : c->updates         ? "updates"
                                    : c->rollback_frames ? "rollback_frames"
                                                         : NULL);
    if (!other) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "live config: %s is for %s", other,
                    imitates ? "EXPHIL_LIVE_REINFORCE" : "EXPHIL_LIVE_IMITATE");
}

static exphil_status take_config(exphil_live_config *c, exphil_error *error)
{
    XPH_TRY(check_way(c, error));
    XPH_TRY(take_counts(c, error));
    if (!(c->share >= 0.0 && c->share < 1.0))
        return xph_fail(error, EXPHIL_E_INVALID, "live config: share is %g, must be 0..1, below 1", c->share);
    if (!(c->approved >= 0.0 && c->approved <= 1.0))
        return xph_fail(error, EXPHIL_E_INVALID, "live config: approved is %g, must be 0..1", c->approved);
    if (c->paced != 0 && c->paced != 1)
        return xph_fail(error, EXPHIL_E_INVALID, "live config: paced is %d, must be 0 or 1", (int)c->paced);
    if (c->rollback_frames >= c->ring_frames)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "live config: rollback_frames is %lld, ring_frames only %lld",
                        (long long)c->rollback_frames, (long long)c->ring_frames);
    if (c->path && !c->path[0]) return xph_fail(error, EXPHIL_E_INVALID, "live config: path is empty");
    if (c->share == 0.0) c->share = 0.5;
    return EXPHIL_OK;
}

static exphil_status check_model(const exphil_model *model, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    const char *why = shape->narrow            ? "a quantised model cannot be learnt with"
                      : shape->told            ? "a model with conditions or several delays"
                      : shape->type != XPH_F32 ? "a model of doubles"
                                               : NULL;
    return why ? xph_fail(error, EXPHIL_E_UNSUPPORTED, "live: %s", why) : EXPHIL_OK;
}

/* ---- what plays ------------------------------------------------------------------------------------------------ */

static exphil_status make_session(exphil_live *live, const exphil_model *model,
                                  const exphil_live_config *given, exphil_error *error)
{
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config rollout = EXPHIL_ROLLOUT_CONFIG_INIT;
    XPH_TRY(XPH_TAKE(exphil_session_config, &session, given->session, error));
    if (session.streams != 0 && session.streams != 1)
        return xph_fail(error, EXPHIL_E_INVALID, "live config: session.streams is %lld, must be 1",
                        (long long)session.streams);
    if (session.deliver != EXPHIL_DELIVER_DUE)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "live config: session.deliver must be EXPHIL_DELIVER_DUE");
    session.adoptable = 1;
    if (live->config.way == EXPHIL_LIVE_IMITATE) {
        XPH_TRY(exphil_session_create(model, &session, &live->session, error));
        live->session->held = true;
        live->session->goes_back = live->config.rollback_frames > 0;
        live->session->guided = true;
        return EXPHIL_OK;
    }
    rollout.time = live->config.time;
    XPH_TRY(exphil_rollout_create(model, &session, &rollout, &live->rollout, error));
    live->session = exphil_rollout_session(live->rollout);
    live->session->guided = true;
    return EXPHIL_OK;
}

static void cut_all(exphil_live *live, xph_cutter *c)
{
    const xph_model_shape *s = live->shape;
    live->ring.entries = xph_cut(c, live->ring.capacity, (int64_t)live->ring.bytes, 1);
    live->floats = xph_cut(c, 1, s->floats, sizeof(float));
    live->ids = xph_cut(c, 1, s->ids, sizeof(int32_t));
    live->action = xph_cut(c, 1, s->heads, sizeof(int32_t));
}

static exphil_status make_ring(exphil_live *live, exphil_error *error)
{
    const xph_model_shape *s = live->shape;
    const size_t frame = sizeof(xph_live_head) + (size_t)(s->floats + s->ids + s->heads) * sizeof(float);
    xph_cutter c = {NULL, 0};
    live->ring.bytes = live->rollout ? exphil_rollout_block_size(live->rollout) : (frame + 15) / 16 * 16;
    live->ring.capacity = live->config.ring_frames;
    cut_all(live, &c);
    live->memory_bytes = c.at;
    live->memory = xph_calloc(live->context, 1, c.at);
    if (!live->memory) return xph_no_memory(c.at, error);
    c = (xph_cutter){live->memory, 0};
    cut_all(live, &c);
    return EXPHIL_OK;
}

/* ---- making and freeing --------------------------------------------------------------------------------------- */

static void free_live(exphil_live *live)
{
    exphil_context *context = live->context;
    if (xph_context_check(context, NULL) < 0)
        return; /* after fork(): the thread is not here to be waited for */
    xph_live_stop(live);
    exphil_model *fresh = atomic_load(&live->fresh), *spent = atomic_load(&live->spent);
    if (fresh) xph_model_release(fresh);
    if (spent) xph_model_release(spent);
    if (live->newest) xph_model_release(live->newest);
    if (live->rollout)
        exphil_rollout_destroy(live->rollout);
    else
        exphil_session_destroy(live->session);
    xph_mutex_destroy(live->lock);
    xph_free(context, live->save_path, live->save_path_bytes);
    xph_free(context, live->memory, live->memory_bytes);
    xph_free(context, live, sizeof *live);
    xph_context_release(context);
}

void exphil_live_destroy(exphil_live *live)
{
    if (live) free_live(live);
}

static exphil_status copy_path(exphil_live *live, const char *path, exphil_error *error)
{
    live->save_path_bytes = strlen(path) + 1;
    live->save_path = xph_alloc(live->context, live->save_path_bytes);
    if (!live->save_path) return xph_no_memory(live->save_path_bytes, error);
    memcpy(live->save_path, path, live->save_path_bytes);
    return EXPHIL_OK;
}

static exphil_status build(exphil_live *live, const exphil_model *model, const exphil_live_config *given,
                           exphil_error *error)
{
    XPH_TRY(make_session(live, model, given, error));
    XPH_TRY(make_ring(live, error));
    if (given->path) XPH_TRY(copy_path(live, given->path, error));
    XPH_TRY(xph_mutex_create(live->context, &live->lock, error));
    return xph_live_start(live, model, given, error);
}

exphil_status exphil_live_create(const exphil_model *model, const exphil_live_config *config,
                                 exphil_live **live, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_live_config known = EXPHIL_LIVE_CONFIG_INIT;
    if (!model || !live) return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", model ? "live" : "model");
    XPH_TRY(xph_context_check(xph_model_context(model), error));
    XPH_TRY(XPH_TAKE(exphil_live_config, &known, config, error));
    const exphil_live_config given = known;
    XPH_TRY(take_config(&known, error));
    XPH_TRY(check_model(model, error));
    exphil_context *context = xph_model_context(model);
    exphil_live *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->newest = xph_model_retain(model);
    made->shape = xph_model_shape_of(model);
    made->spec = xph_model_spec(model);
    made->config = known;
    made->failure = (exphil_error)EXPHIL_ERROR_INIT;
    exphil_status status = build(made, model, &given, error);
    if (status < 0) {
        free_live(made);
        return status;
    }
    *live = made;
    return EXPHIL_OK;
}
