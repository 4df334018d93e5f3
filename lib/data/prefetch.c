/* The prefetcher: threads fill a ring of batches ahead of the one that takes them. The ring has one slot more than batches
 * are prefetched, for the batch that the taker is reading. Work is handed out in pieces under one lock, in an order
 * that does not depend on the threads: a batch is begun, rows that it needs are made, its lanes are filled. A lane of
 * a batch waits for the same lane of the one before. So which thread does what changes nothing in the batches.
 *
 * Only a file (damaged rows, a disk) or memory for the games that lanes enter can make filling fail. No new batch is begun
 * then, and the taker gets the error after the good batches. The next call tries that batch again: a disk may have
 * recovered. */
#include "data/sampler.h"

#define BUFFERS_MOST 65 /* 64 buffers and the one that is looked at */
#define WORKERS_MOST 64

/* A batch of the ring. Pieces that were handed out, and those that are not done. */
typedef struct slot {
    xph_batch_buffer buffer;
    bool begun;
    int64_t epoch, index;
    int64_t runs, next_run, runs_left;
    int64_t next_lane, lanes_left;
    exphil_status failed; /* below 0: failure says why */
    exphil_error failure;
} slot;

typedef struct worker {
    exphil_prefetcher *of;
    int32_t number;
    xph_thread *thread;
} worker;

struct exphil_prefetcher {
    exphil_context *context;
    atomic_int references;
    xph_busy busy;
    xph_sampler *sampler; /* of the threads alone, but for what never changes in it */
    worker workers[WORKERS_MOST];
    int32_t worker_count;
    xph_mutex *lock;
    int64_t buffers, lanes; /* lanes: those that it fills */
    slot ring[BUFFERS_MOST];
    /* Under the lock. Ready batches are at taken, taken+1, ... in the ring, those that were handed out behind them;
     * what is looked at is before them. */
    int64_t taken, ready, begun;
    int64_t epoch, index; /* the next to be begun */
    bool *lane_busy;      /* [lanes] */
    int64_t in_flight;    /* pieces */
    bool beginning;       /* one of them begins a batch */
    bool again;           /* what is not ready is to be forgotten, once nothing is in flight */
    bool stop, ended;     /* ended: the last batch of an epoch was delivered, and not yet EXPHIL_END */
    bool told;            /* the failure has been returned to the caller */
    bool waiting;         /* the taker waits for a batch */
    int32_t asleep;       /* threads that wait for work */
    exphil_prefetcher_info info;
};

/* ---- pieces of work ---------------------------------------------------------------------------------- */

enum { BEGIN, RUN, LANE };
typedef struct piece {
    int32_t kind;
    slot *of;
    int64_t i;
} piece;

static slot *slot_at(exphil_prefetcher *p, int64_t i)
{
    return &p->ring[(p->taken + i) % p->buffers];
}

/* Under the lock, with nothing in flight: batches behind the ready ones were never begun. */
static void forget_begun(exphil_prefetcher *p)
{
    for (int64_t i = p->ready; i < p->begun; i++) slot_at(p, i)->begun = false;
    p->begun = p->ready;
    p->again = false;
    xph_sampler_forget(p->sampler);
}

/* Of a batch that was begun; false: whoever wants work has to wait. */
static bool take_from(exphil_prefetcher *p, slot *of, piece *work)
{
    if (of->next_run < of->runs) {
        *work = (piece){RUN, of, of->next_run++};
        return true;
    }
    if (of->runs_left || p->lane_busy[of->next_lane]) return false;
    p->lane_busy[of->next_lane] = true;
    *work = (piece){LANE, of, of->next_lane++};
    return true;
}

/* A plan is of one epoch: nothing may be in flight when another is made. */
static bool take_begin(exphil_prefetcher *p, piece *work)
{
    bool full = p->begun == p->buffers - 1, other = xph_sampler_planned(p->sampler) != p->epoch;
    if (full || p->beginning || (other && p->in_flight)) return false;
    slot *of = slot_at(p, p->begun++);
    of->begun = false;
    of->failed = EXPHIL_OK;
    of->epoch = p->epoch;
    of->index = p->index;
    if (++p->index == p->info.batches_per_epoch) {
        p->index = 0;
        p->epoch++;
    }
    p->beginning = true;
    *work = (piece){BEGIN, of, 0};
    return true;
}

/* Under the lock: the oldest work that can be done now. */
static bool take_work(exphil_prefetcher *p, piece *work)
{
    if (p->again && p->in_flight) return false;
    if (p->again) forget_begun(p);
    for (int64_t i = p->ready; i < p->begun; i++) {
        slot *of = slot_at(p, i);
        if (of->failed < 0 || !of->begun) return false;
        if (of->next_run < of->runs || of->runs_left || of->next_lane < p->lanes)
            return take_from(p, of, work);
    }
    return take_begin(p, work);
}

static exphil_status do_work(exphil_prefetcher *p, int32_t number, const piece *work, exphil_error *failure)
{
    slot *of = work->of;
    if (work->kind == BEGIN) return xph_sampler_begin(p->sampler, of->epoch, of->index, &of->buffer, failure);
    if (work->kind == RUN) return xph_sampler_run(p->sampler, number, work->i, &of->buffer, failure);
    return xph_sampler_lane(p->sampler, number, work->i, &of->buffer, failure);
}

static void note_begun(exphil_prefetcher *p, slot *of)
{
    of->runs = of->runs_left = of->buffer.fresh ? of->buffer.fresh->count : 0;
    of->next_run = of->next_lane = 0;
    of->lanes_left = p->lanes;
    of->begun = true;
}

/* The batch that cannot be taken since it failed; NULL: there is none. */
static slot *failed_slot(exphil_prefetcher *p)
{
    bool next = !p->ready && p->begun;
    return next && slot_at(p, 0)->failed < 0 ? slot_at(p, 0) : NULL;
}

/* Under the lock. The taker is woken for a batch, not for every lane of it: a wake-up costs as much as a lane. */
static void note_done(exphil_prefetcher *p, const piece *work, exphil_status status,
                      const exphil_error *failure)
{
    slot *of = work->of;
    p->in_flight--;
    if (work->kind == BEGIN) p->beginning = false;
    if (work->kind == LANE) p->lane_busy[work->i] = false;
    if (status < 0 && of->failed >= 0) {
        of->failed = status;
        of->failure = *failure;
    }
    if (status >= 0 && work->kind == BEGIN) note_begun(p, of);
    if (status >= 0 && work->kind == RUN) of->runs_left--;
    if (status >= 0 && work->kind == LANE && !--of->lanes_left) xph_sampler_end(p->sampler, &of->buffer);
    while (!p->again && p->ready < p->begun && slot_at(p, p->ready)->begun &&
           slot_at(p, p->ready)->failed >= 0 && !slot_at(p, p->ready)->lanes_left)
        p->ready++;
    if (p->asleep || (p->waiting && (p->ready || failed_slot(p)))) xph_mutex_broadcast(p->lock);
}

static void run(void *arg)
{
    worker *self = arg;
    exphil_prefetcher *p = self->of;
    xph_mutex_lock(p->lock);
    while (!p->stop) {
        piece work;
        if (!take_work(p, &work)) {
            p->asleep++;
            xph_mutex_wait(p->lock);
            p->asleep--;
            continue;
        }
        p->in_flight++;
        xph_mutex_unlock(p->lock);
        int64_t started = xph_clock_ns();
        exphil_error failure = EXPHIL_ERROR_INIT;
        exphil_status status = do_work(p, self->number, &work, &failure);
        xph_mutex_lock(p->lock);
        p->info.worked_ns += xph_clock_ns() - started;
        note_done(p, &work, status, &failure);
    }
    xph_mutex_unlock(p->lock);
}

/* ---- making and ending ------------------------------------------------------------------------------- */

static void stop_threads(exphil_prefetcher *p)
{
    if (!p->worker_count) return;
    xph_sampler_stop(p->sampler);
    xph_mutex_lock(p->lock);
    p->stop = true;
    xph_mutex_broadcast(p->lock);
    xph_mutex_unlock(p->lock);
    for (int32_t i = 0; i < p->worker_count; i++) xph_thread_join(p->workers[i].thread);
}

static void free_prefetcher(exphil_prefetcher *p)
{
    exphil_context *context = p->context;
    if (xph_context_check(context, NULL) < 0)
        return; /* after fork(): the threads are not here to be waited for */
    stop_threads(p);
    for (int64_t i = 0; p->sampler && i < p->buffers; i++)
        xph_batch_buffer_free(p->sampler, &p->ring[i].buffer);
    xph_mutex_destroy(p->lock);
    xph_free(context, p->lane_busy, (size_t)p->lanes * sizeof *p->lane_busy);
    xph_sampler_destroy(p->sampler);
    xph_free(context, p, sizeof *p);
    xph_context_release(context);
}

static exphil_status make_workers(exphil_prefetcher *p, exphil_error *error)
{
    for (int32_t i = 0; i < xph_sampler_workers(p->sampler); i++) {
        p->workers[i] = (worker){.of = p, .number = i};
        XPH_TRY(xph_thread_create(p->context, run, &p->workers[i], &p->workers[i].thread, error));
        p->worker_count++;
    }
    return EXPHIL_OK;
}

static exphil_status make(exphil_prefetcher *p, const exphil_dataset *dataset,
                          const exphil_sampling *sampling, exphil_error *error)
{
    XPH_TRY(xph_sampler_create(dataset, sampling, &p->sampler, error));
    const char *missing =
        xph_conditions_missing(xph_sampler_dataset(p->sampler), xph_sampler_told(p->sampler));
    if (missing)
        return xph_fail(error, EXPHIL_E_INVALID, "the dataset has no values of condition %s (conditions.h)",
                        missing);
    XPH_TRY(xph_sampler_weigh(p->sampler, error));
    p->buffers = xph_sampler_sampling(p->sampler)->buffers + 1;
    p->lanes = xph_sampler_sampling(p->sampler)->lane_count;
    for (int64_t i = 0; i < p->buffers; i++)
        XPH_TRY(xph_batch_buffer_create(p->sampler, &p->ring[i].buffer, error));
    p->info.batches_per_epoch = xph_sampler_batches(p->sampler);
    p->info.frames_per_epoch = xph_sampler_frames(p->sampler);
    p->info.effective_share = xph_weighing_share(xph_sampler_weighing(p->sampler));
    p->lane_busy = xph_calloc(p->context, (size_t)p->lanes, sizeof *p->lane_busy);
    if (!p->lane_busy) return xph_no_memory((size_t)p->lanes * sizeof *p->lane_busy, error);
    XPH_TRY(xph_mutex_create(p->context, &p->lock, error));
    return make_workers(p, error);
}

size_t xph_prefetcher_bytes(int64_t lanes)
{
    return sizeof(exphil_prefetcher) + (size_t)lanes * sizeof(bool);
}

exphil_status exphil_prefetcher_create(const exphil_dataset *dataset, const exphil_sampling *sampling,
                                       exphil_prefetcher **prefetcher, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!dataset || !prefetcher)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", dataset ? "prefetcher" : "dataset");
    exphil_context *context = xph_dataset_context(dataset);
    XPH_TRY(xph_context_check(context, error));
    exphil_prefetcher *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->references = 1;
    made->info.struct_size = sizeof made->info;
    exphil_status status = make(made, dataset, sampling, error);
    if (status < 0) {
        free_prefetcher(made);
        return status;
    }
    *prefetcher = made;
    return EXPHIL_OK;
}

void exphil_prefetcher_destroy(exphil_prefetcher *prefetcher)
{
    xph_prefetcher_release(prefetcher);
}

/* ---- the door ---------------------------------------------------------------------------------------- */

exphil_prefetcher *xph_prefetcher_retain(exphil_prefetcher *prefetcher)
{
    atomic_fetch_add(&prefetcher->references, 1);
    return prefetcher;
}

void xph_prefetcher_release(exphil_prefetcher *prefetcher)
{
    if (prefetcher && atomic_fetch_sub(&prefetcher->references, 1) == 1) free_prefetcher(prefetcher);
}

const exphil_sampling *xph_prefetcher_sampling(const exphil_prefetcher *prefetcher)
{
    return xph_sampler_sampling(prefetcher->sampler);
}

const xph_told *xph_prefetcher_told(const exphil_prefetcher *prefetcher)
{
    return xph_sampler_told(prefetcher->sampler);
}

uint64_t xph_prefetcher_values_hash(const exphil_prefetcher *prefetcher)
{
    return xph_sampler_values_hash(prefetcher->sampler);
}

uint64_t xph_prefetcher_weights_hash(const exphil_prefetcher *prefetcher)
{
    return xph_weighing_hash(xph_sampler_weighing(prefetcher->sampler));
}

const exphil_dataset *xph_prefetcher_dataset(const exphil_prefetcher *prefetcher)
{
    return xph_sampler_dataset(prefetcher->sampler);
}

/* ---- taking ------------------------------------------------------------------------------------------ */

static exphil_status enter(exphil_prefetcher *prefetcher, exphil_error *error)
{
    if (!prefetcher) return xph_fail(error, EXPHIL_E_INVALID, "prefetcher is NULL");
    XPH_TRY(xph_context_check(prefetcher->context, error));
    return xph_busy_enter(&prefetcher->busy) ? EXPHIL_OK : xph_busy_error("prefetcher", error);
}

/* Under the lock: batches from this one on are made anew. */
static void begin_at(exphil_prefetcher *p, int64_t epoch, int64_t index)
{
    p->told = false;
    p->epoch = epoch;
    p->index = index;
    p->again = true;
    xph_mutex_broadcast(p->lock);
}

/* Under the lock: waits, counting, then takes the oldest batch. What was looked at before is free from here
 * on. NULL: there is none, and one has failed. */
static const xph_batch_buffer *take(exphil_prefetcher *p)
{
    if (!p->ready) {
        int64_t started = xph_clock_ns();
        p->waiting = true;
        while (p->again || (!p->ready && !failed_slot(p))) xph_mutex_wait(p->lock);
        p->waiting = false;
        if (!p->ready) return NULL;
        p->info.waited_ns += xph_clock_ns() - started;
        p->info.waits++;
    }
    const xph_batch_buffer *buffer = &slot_at(p, 0)->buffer;
    p->taken = (p->taken + 1) % p->buffers;
    p->ready--;
    p->begun--;
    p->info.delivered++;
    p->ended = buffer->index == p->info.batches_per_epoch - 1;
    xph_mutex_broadcast(p->lock);
    return buffer;
}

static exphil_status next(exphil_prefetcher *p, exphil_batch *batch, exphil_error *error)
{
    exphil_batch now = EXPHIL_BATCH_INIT;
    if (!batch) return xph_fail(error, EXPHIL_E_INVALID, "batch is NULL");
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_batch, batch, error)); /* before one is taken, so that none is lost */
    if (xph_cancelled(p->context)) return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
    xph_mutex_lock(p->lock);
    bool ended = p->ended;
    p->ended = false;
    if (p->told && failed_slot(p)) begin_at(p, failed_slot(p)->epoch, failed_slot(p)->index);
    p->told = false;
    const xph_batch_buffer *buffer = ended ? NULL : take(p);
    if (buffer) xph_batch_buffer_show(p->sampler, buffer, &now);
    exphil_status status = ended ? EXPHIL_END : EXPHIL_OK;
    if (!ended && !buffer) {
        p->told = true;
        status = xph_fail(error, failed_slot(p)->failed, "%s", failed_slot(p)->failure.message);
    }
    xph_mutex_unlock(p->lock);
    if (status != EXPHIL_OK) return status;
    return XPH_GIVE(exphil_batch, batch, &now, error);
}

exphil_status exphil_prefetcher_next(exphil_prefetcher *prefetcher, exphil_batch *batch, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(enter(prefetcher, error));
    exphil_status status = next(prefetcher, batch, error);
    xph_busy_leave(&prefetcher->busy);
    return status;
}

exphil_status exphil_prefetcher_seek(exphil_prefetcher *prefetcher, int64_t epoch, int64_t index,
                                     exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(enter(prefetcher, error));
    exphil_status status = xph_sampler_place(prefetcher->sampler, epoch, index, error);
    if (status == EXPHIL_OK) {
        xph_mutex_lock(prefetcher->lock);
        prefetcher->ready = 0;
        prefetcher->ended = false;
        begin_at(prefetcher, epoch, index);
        xph_mutex_unlock(prefetcher->lock);
    }
    xph_busy_leave(&prefetcher->busy);
    return status;
}

exphil_status exphil_prefetcher_query(exphil_prefetcher *prefetcher, exphil_prefetcher_info *info,
                                      exphil_error *error)
{
    XPH_TRY(enter(prefetcher, error));
    xph_mutex_lock(prefetcher->lock);
    exphil_prefetcher_info now = prefetcher->info;
    xph_mutex_unlock(prefetcher->lock);
    exphil_status status = XPH_GIVE(exphil_prefetcher_info, info, &now, error);
    xph_busy_leave(&prefetcher->busy);
    return status;
}
