/* Ranks whose gradients stay on their devices: sums are enqueued by the host's communicator, and watched, so that a rank that is
 * gone ends the wait. Meetings go the same way, through a small block of the device.
 *
 * Which sums are taken, and in which order, is the same on all ranks: a meeting for each batch, then gradients, then losses of
 * heads. Whether an update follows its sums on the device, or the host waits between, is a rank's own affair: what it can record.
 * Where it follows, a sum that fails is never done before abort, and the host says `stopped` to the device before it aborts: the
 * update behind the sum then changes nothing. So does one whose sum has not all ranks in it, whoever ended that. */
#include "train/ranks.h"

#include <exphil/ranks.h>
#include <stddef.h>

enum { EXCHANGE_BYTES = 1 << 20, TIMEOUT_MS = 30000 };
/* Losses of heads, between what says that they are whole. */
enum { HEADS = EXPHIL_HEADS_MAX + 2 };
_Static_assert(offsetof(xph_control, came) % 16 == 0, "a sum is of aligned numbers");
_Static_assert(offsetof(xph_control, came_too) - offsetof(xph_control, came) == (HEADS - 1) * sizeof(double),
               "the ends of the sum");
#define SPIN_NS  ((int64_t)200000) /* so long a sum is asked for again at once, then after a pause */
#define PAUSE_NS ((int64_t)20000)

/* ---- making and freeing ------------------------------------------------------------------------------------------ */

static exphil_status check(const exphil_trainer *trainer, const exphil_device_communicator *known,
                           exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    if (backend->host_memory || !backend->event_done || !backend->stream_native)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "device_communicator: %s works in the host's memory: give a communicator",
                        backend->name);
    if (!known->all_reduce || !known->state || !known->abort)
        return xph_fail(error, EXPHIL_E_INVALID, "device_communicator: %s is NULL",
                        !known->all_reduce ? "all_reduce"
                        : !known->state    ? "state"
                                           : "abort");
    if (known->ranks < 1 || known->rank < 0 || known->rank >= known->ranks)
        return xph_fail(error, EXPHIL_E_INVALID, "device_communicator: rank %d of %d ranks", known->rank,
                        known->ranks);
    if (known->timeout_ms < 0)
        return xph_fail(error, EXPHIL_E_INVALID, "device_communicator: timeout_ms is %d, must be 0 or more",
                        known->timeout_ms);
    if (known->flags & ~(EXPHIL_RANKS_CAPTURABLE | EXPHIL_RANKS_ORDERED))
        return xph_fail(error, EXPHIL_E_INVALID, "device_communicator: flags is %d, not EXPHIL_RANKS_...",
                        known->flags);
    return EXPHIL_OK;
}

static exphil_status make(xph_device_ranks *d, xph_device *device, exphil_error *error)
{
    const xph_backend *backend = device->backend;
    exphil_status status = backend->alloc(device, EXCHANGE_BYTES, &d->exchange);
    if (status < 0) return xph_no_device_memory(error, device, status, EXCHANGE_BYTES);
    status = backend->stream_create(device, 0, &d->stream);
    if (status >= 0) status = backend->event_create(device, 0, &d->done);
    if (status >= 0) status = backend->event_create(device, 0, &d->before);
    return status < 0 ? xph_fail_device(error, device, status, "trainer: no stream on the device")
                      : EXPHIL_OK;
}

/* A plan of memory says nothing of it. */
static bool follows(const exphil_trainer *trainer, const exphil_device_communicator *known)
{
    const xph_backend *backend = trainer->device->backend;
    const bool can = (known->flags & EXPHIL_RANKS_CAPTURABLE) && backend->record_begin && backend->word_set;
    if (!can && !xph_context_measures(trainer->context))
        xph_log(trainer->context, EXPHIL_LOG_INFO,
                "trainer: sums of the device_communicator are not recorded, the host waits for each");
    return can;
}

static int32_t through_device(void *user, void *data, int64_t count, int32_t type);

exphil_status xph_device_ranks_make(exphil_trainer *trainer, const exphil_device_communicator *given,
                                    exphil_communicator *communicator, xph_device_ranks *d,
                                    exphil_error *error)
{
    exphil_device_communicator known = EXPHIL_DEVICE_COMMUNICATOR_INIT;
    XPH_TRY(XPH_TAKE(exphil_device_communicator, &known, given, error));
    XPH_TRY(check(trainer, &known, error));
    d->user = known.user;
    d->all_reduce = known.all_reduce;
    d->state = known.state;
    d->give_up = known.abort;
    d->timeout_ms = known.timeout_ms ? known.timeout_ms : TIMEOUT_MS;
    d->follows = follows(trainer, &known);
    *communicator = (exphil_communicator){.struct_size = sizeof *communicator,
                                          .user = trainer,
                                          .all_reduce = through_device,
                                          .rank = known.rank,
                                          .ranks = known.ranks};
    return make(d, trainer->device, error);
}

void xph_device_ranks_drop(const exphil_trainer *trainer, xph_device_ranks *d)
{
    const xph_backend *backend = trainer->device->backend;
    if (d->stream) backend->stream_destroy(d->stream);
    if (d->done) backend->event_destroy(d->done);
    if (d->before) backend->event_destroy(d->before);
    if (d->exchange) backend->free(trainer->device, d->exchange, EXCHANGE_BYTES);
    *d = (xph_device_ranks){.user = NULL};
}

size_t xph_device_ranks_bytes(const exphil_trainer *trainer)
{
    return trainer->device_ranks.exchange ? EXCHANGE_BYTES : 0;
}

/* ---- waiting ------------------------------------------------------------------------------------------------------ */

typedef struct watch {
    int64_t began, most; /* ns */
} watch;

static watch begin_watch(const xph_device_ranks *d)
{
    return (watch){xph_clock_ns(), (int64_t)d->timeout_ms * 1000000};
}

/* EXPHIL_E_IO: nothing is waited for any longer. Else a pause. */
static exphil_status look(const exphil_trainer *trainer, const watch *w, exphil_error *error)
{
    const xph_device_ranks *d = &trainer->device_ranks;
    const int32_t rank = trainer->communicator.rank;
    if (d->state(d->user) != EXPHIL_RANKS_OK)
        return xph_fail(error, EXPHIL_E_IO, "device_communicator: a rank is gone, says that of rank %d",
                        rank);
    const int64_t waited = xph_clock_ns() - w->began;
    if (waited > w->most)
        return xph_fail(error, EXPHIL_E_IO, "device_communicator: rank %d waited %d ms for the others", rank,
                        d->timeout_ms);
    if (waited > SPIN_NS) xph_sleep(PAUSE_NS);
    return EXPHIL_OK;
}

/* What was enqueued before the mark is done, and was right. */
exphil_status xph_device_ranks_wait(const exphil_trainer *trainer, exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    const xph_device_ranks *d = &trainer->device_ranks;
    const watch w = begin_watch(d);
    for (;;) {
        int32_t done = 0;
        exphil_status status = backend->event_done(d->done, &done);
        if (status < 0)
            return xph_fail_device(error, trainer->device, status,
                                   "trainer: the device failed in a sum of ranks");
        if (done && d->state(d->user) == EXPHIL_RANKS_OK) return EXPHIL_OK;
        status = look(trainer, &w, error);
        if (status >= 0) continue;
        d->give_up(d->user);
        return status;
    }
}

/* The device hears of it before what it waits for is let go, and forgets it when there is nothing left to stop. */
static exphil_status stop(const exphil_trainer *trainer, xph_event *settled)
{
    const xph_backend *backend = trainer->device->backend;
    const xph_device_ranks *d = &trainer->device_ranks;
    exphil_status status = backend->word_set(trainer->device, &trainer->control->stopped, 1);
    d->give_up(d->user);
    if (status >= 0) status = backend->event_wait(settled);
    if (status >= 0) status = backend->word_set(trainer->device, &trainer->control->stopped, 0);
    return status;
}

exphil_status xph_device_ranks_watch(const exphil_trainer *trainer, xph_event *settled, exphil_error *why)
{
    const xph_backend *backend = trainer->device->backend;
    const watch w = begin_watch(&trainer->device_ranks);
    for (;;) {
        int32_t done = 0;
        XPH_TRY(backend->event_done(settled, &done));
        if (done) return EXPHIL_OK;
        if (look(trainer, &w, why) < 0) return stop(trainer, settled);
    }
}

/* ---- sums ----------------------------------------------------------------------------------------------------------- */

/* What failed in a recording was not enqueued. */
static exphil_status reduce(xph_device_ranks *d, const xph_backend *backend, void *data, int64_t count,
                            int32_t type)
{
    d->code = d->all_reduce(d->user, data, count, type, backend->stream_native(d->stream));
    return d->code ? EXPHIL_E_IO : EXPHIL_OK;
}

exphil_status xph_device_ranks_sum(exphil_trainer *trainer)
{
    const xph_backend *backend = trainer->device->backend;
    xph_device_ranks *d = &trainer->device_ranks;
    xph_control *control = trainer->control;
    const exphil_optimizer *optimizer = trainer->optimizer;
    xph_stream *stream = xph_net_stream(trainer->feed.net);
    XPH_TRY(backend->copy(stream, &control->came, &control->self, sizeof control->came));
    XPH_TRY(backend->copy(stream, &control->came_too, &control->self, sizeof control->came_too));
    XPH_TRY(backend->event_mark(d->before, stream));
    XPH_TRY(backend->stream_follow(d->stream, d->before));
    exphil_status status = reduce(d, backend, trainer->gradients, optimizer->weights,
                                  optimizer->type == XPH_F64 ? EXPHIL_TYPE_F64 : EXPHIL_TYPE_F32);
    if (status >= 0) status = reduce(d, backend, &control->came, HEADS, EXPHIL_TYPE_F64);
    if (status < 0 && !d->recording)
        d->give_up(d->user); /* others, and the first of the two, may wait for ever */
    if (status >= 0) status = backend->event_mark(d->done, d->stream);
    return status < 0 ? status : backend->stream_follow(stream, d->done);
}

exphil_status xph_device_ranks_failed(exphil_trainer *trainer, exphil_status status, const char *what,
                                      exphil_error *error)
{
    const int32_t code = trainer->device_ranks.code;
    trainer->device_ranks.code = 0;
    if (!code) return xph_fail_device(error, trainer->device, status, "%s", what);
    return xph_fail(error, EXPHIL_E_IO, "device_communicator: all_reduce failed with %d on rank %d", code,
                    trainer->communicator.rank);
}

static exphil_status enqueue(const exphil_trainer *trainer, void *data, int64_t count, int32_t type)
{
    const xph_backend *backend = trainer->device->backend;
    const xph_device_ranks *d = &trainer->device_ranks;
    int32_t code = d->all_reduce(d->user, data, count, type, backend->stream_native(d->stream));
    return code ? EXPHIL_E_IO : backend->event_mark(d->done, d->stream);
}

/* A piece of the host's memory there and back. */
static exphil_status exchange(const exphil_trainer *trainer, void *data, int64_t count, int32_t type,
                              size_t bytes)
{
    const xph_backend *backend = trainer->device->backend;
    const xph_device_ranks *d = &trainer->device_ranks;
    XPH_TRY(backend->upload(d->stream, d->exchange, data, bytes));
    XPH_TRY(enqueue(trainer, d->exchange, count, type));
    XPH_TRY(xph_device_ranks_wait(trainer, NULL));
    XPH_TRY(backend->download(d->stream, data, d->exchange, bytes));
    return backend->stream_wait(d->stream);
}

/* Statuses are the codes. */
static int32_t through_device(void *user, void *data, int64_t count, int32_t type)
{
    const exphil_trainer *trainer = user;
    const size_t element = type == EXPHIL_TYPE_F64 ? sizeof(double) : sizeof(float);
    const int64_t most = (int64_t)((size_t)EXCHANGE_BYTES / element);
    for (int64_t at = 0; at < count; at += most) {
        int64_t part = count - at < most ? count - at : most;
        exphil_status status = exchange(trainer, (unsigned char *)data + (size_t)at * element, part, type,
                                        (size_t)part * element);
        if (status < 0) return status;
    }
    return 0;
}
