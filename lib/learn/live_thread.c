/* The thread that learns behind a live game. It looks into the ring every few milliseconds, because a game that woke it would
 * make a system call; tasks of the host wake it at once. */
#include "learn/live.h"

#define REST_NS ((int64_t)4000000)

/* What the session is done with is freed here. */
static void collect(exphil_live *live)
{
    exphil_model *spent = atomic_exchange_explicit(&live->spent, NULL, memory_order_acq_rel);
    if (spent) xph_model_release(spent);
}

/* ---- what learns ----------------------------------------------------------------------------------------------- */

static int32_t is_ending(void *user)
{
    return atomic_load_explicit(&((exphil_live *)user)->ending, memory_order_relaxed);
}

static exphil_status make_context(exphil_live *live, const exphil_live_config *given, exphil_error *error)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_allocator allocator;
    exphil_io io;
    XPH_TRY(XPH_TAKE(exphil_context_config, &config, given->context, error));
    if (!given->context) {
        xph_context_hooks(live->context, &allocator, &io);
        config.allocator = &allocator;
        config.io = &io;
        config.cpu_isa = xph_isa_name(xph_context_isa(live->context));
        config.threads = 1;
    }
    config.cancel = is_ending;
    config.cancel_user = live;
    return exphil_context_create(&config, &live->learning, error);
}

static exphil_status make(exphil_live *live, const exphil_model *model, const exphil_live_config *given,
                          exphil_error *error)
{
    exphil_trainer_config trainer = EXPHIL_TRAINER_CONFIG_INIT;
    XPH_TRY(make_context(live, given, error));
    XPH_TRY(xph_model_copy(live->learning, model, &live->start, error));
    XPH_TRY(exphil_optimizer_create(live->start, given->optimizer, &live->optimizer, error));
    XPH_TRY(XPH_TAKE(exphil_trainer_config, &trainer, given->trainer, error));
    if (trainer.accumulate > 1 || trainer.communicator)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "live config: trainer has %s",
                        trainer.communicator ? "a communicator" : "accumulate");
    if (live->rollout) trainer.as_played = 1;
    XPH_TRY(exphil_trainer_create(live->start, live->optimizer, NULL, &trainer, &live->trainer, error));
    return live->rollout ? xph_live_reinforce_make(live, given, error)
                         : xph_live_imitate_make(live, given, error);
}

static void end(exphil_live *live)
{
    xph_live_reinforce_end(live);
    xph_live_imitate_end(live);
    exphil_trainer_destroy(live->trainer);
    exphil_optimizer_destroy(live->optimizer);
    if (live->start) xph_model_release(live->start);
    if (live->learning) xph_context_release(live->learning);
}

/* ---- learning -------------------------------------------------------------------------------------------------- */

/* Whatever goes wrong ends learning, and not the game. */
static bool fine(exphil_live *live, exphil_status status, const exphil_error *why)
{
    if (status >= 0) return true;
    if (status == EXPHIL_E_CANCELLED && is_ending(live)) return false;
    xph_mutex_lock(live->lock);
    live->failure = *why;
    live->failure.status = status;
    xph_mutex_unlock(live->lock);
    return false;
}

/* What a disk refuses is told, and tried again after the next pieces. */
static void save_now_and_then(exphil_live *live, int64_t pieces)
{
    exphil_error why = EXPHIL_ERROR_INIT;
    if (!live->save_path || live->told.pieces == pieces || live->told.pieces % live->config.save_pieces)
        return;
    exphil_status status = xph_live_write(live, live->save_path, &why);
    if (status == EXPHIL_E_CANCELLED) return;
    xph_mutex_lock(live->lock);
    live->told.saved += status >= 0;
    live->told.unsaved = status < 0 ? status : EXPHIL_OK;
    memcpy(live->told.message, why.message, sizeof why.message);
    xph_mutex_unlock(live->lock);
}

/* One piece or chunk; false: there is none, or nothing is learnt any more. */
static bool learn(exphil_live *live)
{
    exphil_error why = EXPHIL_ERROR_INIT;
    const int64_t pieces = live->told.pieces;
    bool done = false;
    if (live->failure.status) { /* so that the ring does not fill */
        while (xph_ring_front(&live->ring)) xph_ring_done(&live->ring);
        return false;
    }
    exphil_status status =
        live->rollout ? xph_live_reinforce(live, &done, &why) : xph_live_imitate(live, &done, &why);
    if (!fine(live, status, &why)) return false;
    save_now_and_then(live, pieces);
    return done;
}

static exphil_status settle(exphil_live *live, exphil_error *error)
{
    exphil_error why = EXPHIL_ERROR_INIT;
    while (learn(live)) {
    }
    if (!live->failure.status && !live->rollout) (void)fine(live, xph_live_imitate_rest(live, &why), &why);
    if (live->failure.status)
        return xph_fail(error, live->failure.status, "live: learning has ended: %s", live->failure.message);
    return EXPHIL_OK;
}

static exphil_status do_task(exphil_live *live, xph_live_task task, const char *path, exphil_error *error)
{
    XPH_TRY(settle(live, error));
    if (task == XPH_LIVE_SAVE && !live->rollout)
        xph_live_imitate_cut(live); /* as it is where the run goes on */
    if (task == XPH_LIVE_SAVE) return xph_live_write(live, path, error);
    return task == XPH_LIVE_RESUME ? xph_live_read(live, path, error) : EXPHIL_OK;
}

static void answer(exphil_live *live)
{
    exphil_error why = EXPHIL_ERROR_INIT;
    exphil_status status = do_task(live, live->task, live->path, &why);
    collect(live);
    xph_mutex_lock(live->lock);
    live->answer = status;
    live->error = why;
    live->task = XPH_LIVE_NOTHING;
    xph_mutex_broadcast(live->lock);
    xph_mutex_unlock(live->lock);
}

/* What the host wants next, after a rest if it is nothing and there was nothing to do. */
static xph_live_task next_task(exphil_live *live, bool rests)
{
    xph_mutex_lock(live->lock);
    if (rests && live->task == XPH_LIVE_NOTHING && !is_ending(live)) xph_mutex_wait_for(live->lock, REST_NS);
    xph_live_task task = live->task;
    xph_mutex_unlock(live->lock);
    return task;
}

/* ---- the thread ------------------------------------------------------------------------------------------------- */

typedef struct beginning {
    exphil_live *live;
    const exphil_model *model;
    const exphil_live_config *given;
} beginning;

static bool begin(const beginning *b)
{
    exphil_live *live = b->live;
    exphil_error why = EXPHIL_ERROR_INIT;
    exphil_status status = make(live, b->model, b->given, &why);
    xph_mutex_lock(live->lock);
    live->answer = status;
    live->error = why;
    live->begun = true;
    xph_mutex_broadcast(live->lock);
    xph_mutex_unlock(live->lock); /* what b points to is gone now */
    return status >= 0;
}

static void run(void *arg)
{
    const beginning *b = arg;
    exphil_live *live = b->live;
    xph_thread_step_back();
    bool works = begin(b), rests = false;
    while (works && !is_ending(live)) {
        collect(live);
        if (next_task(live, rests) != XPH_LIVE_NOTHING)
            answer(live);
        else
            rests = !learn(live);
    }
    end(live);
}

exphil_status xph_live_start(exphil_live *live, const exphil_model *model, const exphil_live_config *given,
                             exphil_error *error)
{
    beginning b = {live, model, given};
    XPH_TRY(xph_thread_create(live->context, run, &b, &live->thread, error));
    xph_mutex_lock(live->lock);
    while (!live->begun) xph_mutex_wait(live->lock);
    exphil_status status = live->answer;
    exphil_error why = live->error;
    xph_mutex_unlock(live->lock);
    return status < 0 ? xph_fail(error, status, "%s", why.message) : EXPHIL_OK;
}

void xph_live_stop(exphil_live *live)
{
    if (!live->thread) return;
    xph_mutex_lock(live->lock);
    atomic_store(&live->ending, true);
    xph_mutex_broadcast(live->lock);
    xph_mutex_unlock(live->lock);
    xph_thread_join(live->thread);
    live->thread = NULL;
}

exphil_status xph_live_ask(exphil_live *live, xph_live_task task, const char *path, exphil_error *error)
{
    xph_mutex_lock(live->lock);
    live->path = path;
    live->task = task;
    xph_mutex_broadcast(live->lock);
    while (live->task != XPH_LIVE_NOTHING) xph_mutex_wait(live->lock);
    exphil_status status = live->answer;
    exphil_error why = live->error;
    xph_mutex_unlock(live->lock);
    return status < 0 ? xph_fail(error, status, "%s", why.message) : status;
}
