/* Ranks whose gradients stay on their devices: sums are enqueued by the host's communicator, and watched, so that a rank that is
 * gone ends the wait. Meetings go the same way, through a small block of the device. */
#include "train/ranks.h"

#include <exphil/ranks.h>

enum { EXCHANGE_BYTES = 1 << 20, TIMEOUT_MS = 30000 };
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
    if (known->timeout_ms < 0 || known->reserved)
        return xph_fail(error, EXPHIL_E_INVALID, "device_communicator: %s is %d, must be 0%s",
                        known->reserved ? "reserved" : "timeout_ms",
                        known->reserved ? known->reserved : known->timeout_ms,
                        known->reserved ? "" : " or more");
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

/* ---- sums ----------------------------------------------------------------------------------------------------------- */

/* What was enqueued before the mark is done, and was right. */
static exphil_status wait_for(const exphil_trainer *trainer, exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    const xph_device_ranks *d = &trainer->device_ranks;
    const int64_t began = xph_clock_ns(), most = (int64_t)d->timeout_ms * 1000000;
    for (;;) {
        int32_t done = 0;
        exphil_status status = backend->event_done(d->done, &done);
        if (status < 0)
            return xph_fail_device(error, trainer->device, status,
                                   "trainer: the device failed in a sum of ranks");
        if (d->state(d->user) != EXPHIL_RANKS_OK)
            return xph_fail(error, EXPHIL_E_IO, "device_communicator: a rank is gone, says that of rank %d",
                            trainer->communicator.rank);
        if (done) return EXPHIL_OK;
        int64_t waited = xph_clock_ns() - began;
        if (waited > most) {
            d->give_up(d->user);
            return xph_fail(error, EXPHIL_E_IO, "device_communicator: rank %d waited %d ms for the others",
                            trainer->communicator.rank, d->timeout_ms);
        }
        if (waited > SPIN_NS) xph_sleep(PAUSE_NS);
    }
}

static exphil_status enqueue(const exphil_trainer *trainer, void *data, int64_t count, int32_t type,
                             exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    const xph_device_ranks *d = &trainer->device_ranks;
    int32_t code = d->all_reduce(d->user, data, count, type, backend->stream_native(d->stream));
    if (code)
        return xph_fail(error, EXPHIL_E_IO, "device_communicator: all_reduce failed with %d on rank %d", code,
                        trainer->communicator.rank);
    exphil_status status = backend->event_mark(d->done, d->stream);
    return status < 0 ? xph_fail_device(error, trainer->device, status,
                                        "trainer: the device failed in a sum of ranks")
                      : EXPHIL_OK;
}

exphil_status xph_device_ranks_sum(const exphil_trainer *trainer, exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    const xph_device_ranks *d = &trainer->device_ranks;
    const exphil_optimizer *optimizer = trainer->optimizer;
    exphil_status status = backend->event_mark(d->before, xph_net_stream(trainer->feed.net));
    if (status >= 0) status = backend->stream_follow(d->stream, d->before);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status,
                               "trainer: the device failed to give its gradients");
    XPH_TRY(enqueue(trainer, trainer->gradients, optimizer->weights,
                    optimizer->type == XPH_F64 ? EXPHIL_TYPE_F64 : EXPHIL_TYPE_F32, error));
    return wait_for(trainer, error);
}

/* A piece of the host's memory there and back. */
static exphil_status exchange(const exphil_trainer *trainer, void *data, int64_t count, int32_t type,
                              size_t bytes)
{
    const xph_backend *backend = trainer->device->backend;
    const xph_device_ranks *d = &trainer->device_ranks;
    XPH_TRY(backend->upload(d->stream, d->exchange, data, bytes));
    XPH_TRY(enqueue(trainer, d->exchange, count, type, NULL));
    XPH_TRY(wait_for(trainer, NULL));
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
