/* The prefetcher: one thread fills a ring of batches ahead of the one that takes them. The ring has one slot
 * more than batches are prefetched, for the batch that the taker is reading. All shared state is under one
 * lock; a batch's rows belong to the thread while it fills them and to the taker from then on. All memory is
 * allocated at creation, so only a file (damaged rows, a disk) can make filling fail. The thread then pauses,
 * and the taker gets the error after the good batches. The next call tries that batch again: a disk may have
 * recovered. */
#include "data/sampler.h"

#define BUFFERS_MOST 65 /* 64 buffers and the one that is looked at */

struct exphil_prefetcher {
    exphil_context *context;
    atomic_int references;
    xph_busy busy;
    xph_sampler *sampler; /* of the thread alone, but for what never changes in it */
    xph_thread *thread;
    xph_mutex *lock;
    int64_t buffers;
    xph_batch_buffer buffer[BUFFERS_MOST];
    /* Under the lock. Ready batches are at taken, taken+1, ... in the ring; what is looked at is before
     * them. */
    int64_t taken, ready;
    int64_t epoch, index; /* the next to be filled */
    uint64_t seeks;       /* a batch begun before the last seek is thrown away */
    exphil_status failed; /* below 0: the next batch could not be filled, failure says why */
    exphil_error failure;
    bool stop, ended; /* ended: the last batch of an epoch was delivered, and not yet EXPHIL_END */
    bool told;        /* failed has been returned to the caller */
    exphil_prefetcher_info info;
};

/* ---- the thread -------------------------------------------------------------------------------------- */

static void publish(exphil_prefetcher *p, int64_t started_ns, uint64_t seeks)
{
    p->info.worked_ns += xph_clock_ns() - started_ns;
    if (seeks != p->seeks) return;
    p->ready++;
    if (++p->index == xph_sampler_batches(p->sampler)) {
        p->index = 0;
        p->epoch++;
    }
    xph_mutex_broadcast(p->lock);
}

static void run(void *arg)
{
    exphil_prefetcher *p = arg;
    xph_mutex_lock(p->lock);
    while (!p->stop) {
        if (p->ready == p->buffers - 1 || p->failed < 0) {
            xph_mutex_wait(p->lock);
            continue;
        }
        xph_batch_buffer *buffer = &p->buffer[(p->taken + p->ready) % p->buffers];
        int64_t epoch = p->epoch, index = p->index;
        uint64_t seeks = p->seeks;
        xph_mutex_unlock(p->lock);
        int64_t started = xph_clock_ns();
        exphil_error failure = EXPHIL_ERROR_INIT;
        exphil_status status = xph_sampler_fill(p->sampler, epoch, index, buffer, &failure);
        xph_mutex_lock(p->lock);
        if (status >= 0) {
            publish(p, started, seeks);
        } else if (!p->stop && seeks == p->seeks) {
            p->failed = status;
            p->failure = failure;
            xph_mutex_broadcast(p->lock);
        }
    }
    xph_mutex_unlock(p->lock);
}

/* ---- making and ending ------------------------------------------------------------------------------- */

static void stop_thread(exphil_prefetcher *p)
{
    if (!p->thread) return;
    xph_sampler_stop(p->sampler);
    xph_mutex_lock(p->lock);
    p->stop = true;
    xph_mutex_broadcast(p->lock);
    xph_mutex_unlock(p->lock);
    xph_thread_join(p->thread);
}

static void free_prefetcher(exphil_prefetcher *p)
{
    exphil_context *context = p->context;
    if (xph_context_check(context, NULL) < 0)
        return; /* after fork(): the thread is not here to be waited for */
    stop_thread(p);
    for (int64_t i = 0; p->sampler && i < p->buffers; i++) xph_batch_buffer_free(p->sampler, &p->buffer[i]);
    xph_mutex_destroy(p->lock);
    xph_sampler_destroy(p->sampler);
    xph_free(context, p, sizeof *p);
    xph_context_release(context);
}

static exphil_status make(exphil_prefetcher *p, const exphil_dataset *dataset,
                          const exphil_sampling *sampling, exphil_error *error)
{
    XPH_TRY(xph_sampler_create(dataset, sampling, &p->sampler, error));
    p->buffers = xph_sampler_sampling(p->sampler)->buffers + 1;
    for (int64_t i = 0; i < p->buffers; i++)
        XPH_TRY(xph_batch_buffer_create(p->sampler, &p->buffer[i], error));
    p->info.batches_per_epoch = xph_sampler_batches(p->sampler);
    p->info.frames_per_epoch = xph_sampler_frames(p->sampler);
    XPH_TRY(xph_mutex_create(p->context, &p->lock, error));
    return xph_thread_create(p->context, run, p, &p->thread, error);
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

/* Under the lock. */
static void forget_failure(exphil_prefetcher *p)
{
    p->told = false;
    p->failed = EXPHIL_OK;
    xph_mutex_broadcast(p->lock);
}

/* Under the lock: waits, counting, then takes the oldest batch. What was looked at before is free from here
 * on. NULL: there is none and will be none. */
static const xph_batch_buffer *take(exphil_prefetcher *p)
{
    if (!p->ready) {
        int64_t started = xph_clock_ns();
        while (!p->ready && p->failed >= 0) xph_mutex_wait(p->lock);
        if (!p->ready) return NULL;
        p->info.waited_ns += xph_clock_ns() - started;
        p->info.waits++;
    }
    const xph_batch_buffer *buffer = &p->buffer[p->taken];
    p->taken = (p->taken + 1) % p->buffers;
    p->ready--;
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
    if (p->told) forget_failure(p);
    const xph_batch_buffer *buffer = ended ? NULL : take(p);
    if (buffer) xph_batch_buffer_show(p->sampler, buffer, &now);
    exphil_status status = ended ? EXPHIL_END : buffer ? EXPHIL_OK : p->failed;
    if (status < 0) {
        p->told = true;
        status = xph_fail(error, status, "%s", p->failure.message);
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
        prefetcher->epoch = epoch;
        prefetcher->index = index;
        prefetcher->seeks++;
        prefetcher->ended = false;
        forget_failure(prefetcher);
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
