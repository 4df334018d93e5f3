/* One checkpoint of all ranks: the carried state of all lanes comes together, rank 0 writes it as one rank would. */
#include "train/checkpoint.h"
#include "train/ranks.h"

#define LOOKS_NS                                                                                             \
  ((int64_t)1000000000) /* how often ranks meet while rank 0 writes, so that no rank waits for long */

enum { LANES_MOST = 4096 }; /* that a file may have (checkpoint_resume.c) */

/* ---- what is written ---------------------------------------------------------------------------------------------- */

/* Ranks other than 0 need the state alone. */
static exphil_status make(xph_checkpoint *c, exphil_trainer *trainer, int64_t lanes, int64_t time,
                          const char *path, exphil_error *error)
{
    int64_t first = 0, batch = xph_ranks_lanes(trainer, &first);
    exphil_status status = EXPHIL_OK;
    if (batch > LANES_MOST)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "checkpoint: the batches of all ranks have %lld lanes, a file at most %d",
                        (long long)batch, LANES_MOST);
    if (trainer->communicator.rank == 0) {
        status = xph_checkpoint_make(c, trainer, batch, time, path, NULL, error);
        if (status >= 0) status = xph_checkpoint_list(c, error);
    } else {
        *c = (xph_checkpoint){.trainer = trainer, .batch = batch, .time = time};
        c->state_bytes = xph_checkpoint_state_bytes(trainer, batch);
        if (c->state_bytes) c->state = xph_alloc(trainer->context, c->state_bytes);
        if (c->state_bytes && !c->state) status = xph_no_memory(c->state_bytes, error);
        if (status >= 0 && !trainer->feed.net)
            status = trainer->device->backend->stream_create(trainer->device, 0, &c->stream);
    }
    c->first_lane = first;
    c->lanes = lanes;
    return status;
}

static exphil_status bring(xph_checkpoint *c, exphil_status status, exphil_error *error)
{
    if (status >= 0) {
        if (c->state) memset(c->state, 0, c->state_bytes);
        status = xph_checkpoint_fetch(c, error);
    }
    return xph_ranks_join(c->trainer, c->state, c->state_bytes, status, error);
}

/* ---- writing ------------------------------------------------------------------------------------------------------ */

typedef struct writer {
    xph_checkpoint *checkpoint;
    const char *path;
    xph_mutex *lock;
    bool done;
    exphil_status status;
    exphil_error error;
} writer;

static void write_all(void *arg)
{
    writer *w = arg;
    exphil_status status = xph_checkpoint_write(w->checkpoint, w->path, &w->error);
    xph_mutex_lock(w->lock);
    w->status = status;
    w->done = true;
    xph_mutex_broadcast(w->lock);
    xph_mutex_unlock(w->lock);
}

static bool look(writer *w)
{
    xph_mutex_lock(w->lock);
    if (!w->done) xph_mutex_wait_for(w->lock, LOOKS_NS);
    bool done = w->done;
    xph_mutex_unlock(w->lock);
    return done;
}

/* The files are written by a thread, and this one goes to the meetings. */
static exphil_status write_as_first(xph_checkpoint *c, const char *path, exphil_error *error)
{
    writer w = {.checkpoint = c, .path = path, .error = EXPHIL_ERROR_INIT};
    exphil_trainer *trainer = c->trainer;
    struct xph_said own = {.call = 0.0};
    xph_thread *thread = NULL;
    exphil_status status = xph_mutex_create(trainer->context, &w.lock, error), met = EXPHIL_OK;
    if (status >= 0) status = xph_thread_create(trainer->context, write_all, &w, &thread, error);
    while (status >= 0 && met >= 0 && own.number[0] == 0.0) {
        own.number[0] = look(&w) ? 1.0 : 0.0;
        if (own.number[0] != 0.0 && w.status < 0) status = xph_fail(error, w.status, "%s", w.error.message);
        met = xph_ranks_say(trainer, XPH_CALL_WRITE, own, status, error);
    }
    if (!thread) met = xph_ranks_tell(trainer, XPH_CALL_WRITE, status, error);
    xph_thread_join(thread);
    if (w.lock) xph_mutex_destroy(w.lock);
    return status < 0 ? status : met;
}

static exphil_status wait_for_first(exphil_trainer *trainer, exphil_error *error)
{
    exphil_status status;
    do {
        status = xph_ranks_tell(trainer, XPH_CALL_WRITE, EXPHIL_OK, error);
    } while (status >= 0 && trainer->said[0].number[0] == 0.0);
    return status;
}

exphil_status xph_ranks_save(exphil_trainer *trainer, const char *path, exphil_status status,
                             exphil_error *error)
{
    xph_checkpoint c = {.trainer = trainer};
    struct xph_said own = {.call = 0.0};
    int64_t lanes = 0, time = 0;
    if (status >= 0) status = xph_checkpoint_shape(trainer, &lanes, &time, error);
    if (status >= 0) status = xph_trainer_settle(trainer, error);
    own.lanes = (double)lanes;
    XPH_TRY(xph_ranks_say(trainer, XPH_CALL_SAVE, own, status, error));
    status = bring(&c, make(&c, trainer, lanes, time, path, error), error);
    if (status >= 0)
        status = trainer->communicator.rank == 0 ? write_as_first(&c, path, error)
                                                 : wait_for_first(trainer, error);
    xph_checkpoint_free(&c);
    return status;
}
