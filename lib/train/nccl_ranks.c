/* The library's own communicator of GPUs: what the device's plugin has for sums over ranks. */
#include "train/ranks.h"

#include <exphil/ranks.h>

_Static_assert((int)EXPHIL_RANKS_ID_BYTES == (int)XPH_COMM_ID_BYTES, "an id is the plugin's");

/* Of the host's numbers at once, and of a piece at least; pauses while they are waited for. */
enum {
    HOST_BYTES = 1 << 16,
    LEAST_PIECE = 4096,
    PIECE_BYTES = 64 << 20,
    START_MS = 600000,
    TIMEOUT_MS = 30000
};
#define MOST_BYTES (INT64_MAX / 8)
#define SPIN_NS    ((int64_t)200000)
#define PAUSE_NS   ((int64_t)20000)

struct exphil_ranks {
    exphil_context *context;
    xph_device *device;
    xph_comm *comm;
    exphil_ranks_config config;
    xph_wrapped place; /* of the trainer's stream */
    xph_stream *stream;
    void *native;
    /* for numbers of the host's */
    xph_stream *own;
    xph_event *done;
    void *block; /* HOST_BYTES of the device */
};

static exphil_status none(const xph_backend *backend, exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_UNSUPPORTED, "ranks: device %s adds up nothing over ranks",
                    backend->name);
}

exphil_status exphil_ranks_id(const exphil_context *context, uint8_t id[EXPHIL_RANKS_ID_BYTES],
                              exphil_error *error)
{
    if (!context || !id) return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", context ? "id" : "context");
    XPH_TRY(xph_context_check((exphil_context *)(uintptr_t)context, error));
    const xph_backend *backend = xph_context_backend(context)->backend;
    return backend->comm_id ? backend->comm_id(id, error) : none(backend, error);
}

static exphil_status check(const exphil_ranks_config *config, exphil_error *error)
{
    if (!config->id || !config->context)
        return xph_fail(error, EXPHIL_E_INVALID, "ranks config: %s is NULL", config->id ? "context" : "id");
    if (config->sums < EXPHIL_SUMS_ORDERED || config->sums > EXPHIL_SUMS_PLAIN)
        return xph_fail(error, EXPHIL_E_INVALID, "ranks config: sums is %d, not EXPHIL_SUMS_...",
                        config->sums);
    if (config->ranks < 1 || config->ranks > XPH_COMM_RANKS || config->rank < 0 ||
        config->rank >= config->ranks)
        return xph_fail(error, EXPHIL_E_INVALID, "ranks config: rank %d of %d ranks, at most %d",
                        config->rank, config->ranks, (int)XPH_COMM_RANKS);
    if (config->piece_bytes && (config->piece_bytes < LEAST_PIECE || config->piece_bytes > MOST_BYTES))
        return xph_fail(error, EXPHIL_E_INVALID,
                        "ranks config: piece_bytes is %lld, must be 0, or %d or more",
                        (long long)config->piece_bytes, (int)LEAST_PIECE);
    if (config->start_ms < 0 || config->timeout_ms < 0)
        return xph_fail(error, EXPHIL_E_INVALID, "ranks config: %s is %d, must be 0 or more",
                        config->start_ms < 0 ? "start_ms" : "timeout_ms",
                        config->start_ms < 0 ? config->start_ms : config->timeout_ms);
    if (config->reserved)
        return xph_fail(error, EXPHIL_E_INVALID, "ranks config: reserved is %d, must be 0", config->reserved);
    return EXPHIL_OK;
}

static exphil_status open(exphil_ranks *made, exphil_error *error)
{
    static const uint32_t flags[] = {0, XPH_COMM_TREE, XPH_COMM_PLAIN};
    const exphil_ranks_config *config = &made->config;
    const xph_comm_args args = {.id = config->id,
                                .rank = config->rank,
                                .ranks = config->ranks,
                                .flags = flags[config->sums],
                                .timeout_ms = config->start_ms,
                                .bytes = config->piece_bytes};
    const xph_backend *backend = made->device->backend;
    return backend->comm_open ? backend->comm_open(made->device, &args, &made->comm, error)
                              : none(backend, error);
}

/* For numbers of the host's: before ranks meet, so that one that has no memory keeps nobody waiting for its sums. */
static exphil_status make_own(exphil_ranks *made, exphil_error *error)
{
    xph_device *device = made->device;
    const xph_backend *backend = device->backend;
    if (!backend->comm_open) return none(backend, error);
    exphil_status status = backend->alloc(device, HOST_BYTES, &made->block);
    if (status < 0) return xph_no_device_memory(error, device, status, HOST_BYTES);
    status = backend->stream_create(device, 0, &made->own);
    if (status >= 0) status = backend->event_create(device, 0, &made->done);
    return status < 0 ? xph_fail_device(error, device, status, "ranks: no stream on the device") : EXPHIL_OK;
}

exphil_status exphil_ranks_open(const exphil_ranks_config *config, exphil_ranks **ranks, exphil_error *error)
{
    exphil_ranks_config known = EXPHIL_RANKS_CONFIG_INIT;
    if (!config || !ranks)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", config ? "ranks" : "config");
    XPH_TRY(XPH_TAKE(exphil_ranks_config, &known, config, error));
    XPH_TRY(check(&known, error));
    exphil_context *context = known.context;
    XPH_TRY(xph_context_check(context, error));
    if (!known.piece_bytes) known.piece_bytes = PIECE_BYTES;
    if (known.sums == EXPHIL_SUMS_PLAIN) known.piece_bytes = MOST_BYTES;
    if (!known.start_ms) known.start_ms = START_MS;
    if (!known.timeout_ms) known.timeout_ms = TIMEOUT_MS;
    exphil_ranks *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->device = xph_context_backend(context);
    made->config = known;
    exphil_status status = make_own(made, error);
    if (status >= 0) status = open(made, error);
    made->config.id = NULL; /* the caller's */
    if (status < 0)
        exphil_ranks_destroy(made);
    else
        *ranks = made;
    return status;
}

void exphil_ranks_destroy(exphil_ranks *ranks)
{
    if (!ranks) return;
    exphil_context *context = ranks->context;
    const xph_backend *backend = ranks->device->backend;
    if (ranks->comm) backend->comm_close(ranks->comm);
    if (ranks->own) backend->stream_destroy(ranks->own);
    if (ranks->done) backend->event_destroy(ranks->done);
    if (ranks->block) backend->free(ranks->device, ranks->block, HOST_BYTES);
    xph_free(context, ranks, sizeof *ranks);
    xph_context_release(context);
}

/* ---- as a communicator -------------------------------------------------------------------------------------------- */

static int64_t size_of(int32_t type)
{
    return type == EXPHIL_TYPE_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
}

/* Each number has its sum by itself: pieces change none. */
static exphil_status reduce(const exphil_ranks *ranks, xph_stream *stream, void *data, int64_t count,
                            int32_t type)
{
    enum { ALIGNED = 16 };
    const int64_t size = size_of(type), most = ranks->config.piece_bytes / ALIGNED * ALIGNED / size;
    for (int64_t at = 0; at < count; at += most)
        XPH_TRY(ranks->device->backend->comm_reduce(ranks->comm, stream, (unsigned char *)data + at * size,
                                                    count - at < most ? count - at : most,
                                                    type == EXPHIL_TYPE_F64 ? XPH_F64 : XPH_F32));
    return EXPHIL_OK;
}

/* A trainer has one stream for it. */
static int32_t all_reduce(void *user, void *data, int64_t count, int32_t type, void *stream)
{
    exphil_ranks *ranks = user;
    if (!ranks->stream || ranks->native != stream) {
        ranks->stream = ranks->device->backend->stream_wrap(ranks->device, stream, &ranks->place);
        ranks->native = stream;
    }
    return reduce(ranks, ranks->stream, data, count, type);
}

static int32_t state(void *user)
{
    exphil_ranks *ranks = user;
    return ranks->device->backend->comm_state(ranks->comm) == XPH_COMM_FAILED ? EXPHIL_RANKS_FAILED
                                                                              : EXPHIL_RANKS_OK;
}

static void end(void *user)
{
    exphil_ranks *ranks = user;
    ranks->device->backend->comm_abort(ranks->comm);
}

exphil_status exphil_ranks_communicator(exphil_ranks *ranks, exphil_device_communicator *communicator,
                                        exphil_error *error)
{
    if (!ranks || !communicator)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", ranks ? "communicator" : "ranks");
    const exphil_device_communicator made = {
        .struct_size = sizeof made,
        .user = ranks,
        .all_reduce = all_reduce,
        .state = state,
        .abort = end,
        .rank = ranks->config.rank,
        .ranks = ranks->config.ranks,
        .timeout_ms = ranks->config.timeout_ms,
        .flags =
            EXPHIL_RANKS_CAPTURABLE | (ranks->config.sums == EXPHIL_SUMS_ORDERED ? EXPHIL_RANKS_ORDERED : 0)};
    return XPH_GIVE(exphil_device_communicator, communicator, &made, error);
}

/* ---- of the host's memory ------------------------------------------------------------------------------------------ */

/* Until what was enqueued is done, and was right. */
static exphil_status wait_for(exphil_ranks *ranks)
{
    const int64_t began = xph_clock_ns(), most = (int64_t)ranks->config.timeout_ms * 1000000;
    for (;;) {
        int32_t done = 0;
        XPH_TRY(ranks->device->backend->event_done(ranks->done, &done));
        if (state(ranks) != EXPHIL_RANKS_OK) return EXPHIL_E_IO;
        if (done) return EXPHIL_OK;
        const int64_t waited = xph_clock_ns() - began;
        if (waited > most) {
            end(ranks);
            return EXPHIL_E_IO;
        }
        if (waited > SPIN_NS) xph_sleep(PAUSE_NS);
    }
}

static exphil_status exchange(exphil_ranks *ranks, void *data, int64_t count, int32_t type)
{
    const xph_backend *backend = ranks->device->backend;
    const size_t bytes = (size_t)(count * size_of(type));
    XPH_TRY(backend->upload(ranks->own, ranks->block, data, bytes));
    XPH_TRY(reduce(ranks, ranks->own, ranks->block, count, type));
    XPH_TRY(backend->event_mark(ranks->done, ranks->own));
    XPH_TRY(wait_for(ranks));
    XPH_TRY(backend->download(ranks->own, data, ranks->block, bytes));
    return backend->stream_wait(ranks->own);
}

/* Whoever fails here comes to no sum any more. */
static int32_t all_reduce_host(void *user, void *data, int64_t count, int32_t type)
{
    exphil_ranks *ranks = user;
    const int64_t size = size_of(type), most = HOST_BYTES / size;
    for (int64_t at = 0; at < count; at += most) {
        exphil_status status =
            exchange(ranks, (unsigned char *)data + at * size, count - at < most ? count - at : most, type);
        if (status < 0) {
            end(ranks);
            return status;
        }
    }
    return 0;
}

exphil_status exphil_ranks_host_communicator(exphil_ranks *ranks, exphil_communicator *communicator,
                                             exphil_error *error)
{
    if (!ranks || !communicator)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", ranks ? "communicator" : "ranks");
    const exphil_communicator made = {.struct_size = sizeof made,
                                      .user = ranks,
                                      .all_reduce = all_reduce_host,
                                      .rank = ranks->config.rank,
                                      .ranks = ranks->config.ranks};
    return XPH_GIVE(exphil_communicator, communicator, &made, error);
}
