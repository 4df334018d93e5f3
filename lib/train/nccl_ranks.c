/* The library's own communicator of GPUs: what the device's plugin has for sums over ranks. */
#include "train/ranks.h"

#include <exphil/ranks.h>

_Static_assert((int)EXPHIL_RANKS_ID_BYTES == (int)XPH_COMM_ID_BYTES, "an id is the plugin's");

struct exphil_ranks {
    exphil_context *context;
    xph_device *device;
    xph_comm *comm;
    exphil_ranks_config config;
    xph_wrapped place; /* of the trainer's stream */
    xph_stream *stream;
    void *native;
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
    if (!config->id || !config->model)
        return xph_fail(error, EXPHIL_E_INVALID, "ranks config: %s is NULL", config->id ? "model" : "id");
    if (config->sums < EXPHIL_SUMS_ORDERED || config->sums > EXPHIL_SUMS_PLAIN)
        return xph_fail(error, EXPHIL_E_INVALID, "ranks config: sums is %d, not EXPHIL_SUMS_...",
                        config->sums);
    if (config->ranks < 1 || config->ranks > XPH_COMM_RANKS || config->rank < 0 ||
        config->rank >= config->ranks)
        return xph_fail(error, EXPHIL_E_INVALID, "ranks config: rank %d of %d ranks, at most %d",
                        config->rank, config->ranks, (int)XPH_COMM_RANKS);
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
    enum { LEAST_BYTES = 1 << 20 /* of meetings (ranks_device.c) */, START_MS = 600000 };
    static const uint32_t flags[] = {0, XPH_COMM_TREE, XPH_COMM_PLAIN};
    const exphil_ranks_config *config = &made->config;
    const xph_model_shape *shape = xph_model_shape_of(config->model);
    const int64_t bytes = shape->weights * (int64_t)shape->real_bytes;
    const xph_comm_args args = {.id = config->id,
                                .rank = config->rank,
                                .ranks = config->ranks,
                                .flags = flags[config->sums],
                                .timeout_ms = config->start_ms ? config->start_ms : START_MS,
                                .bytes = bytes > LEAST_BYTES ? bytes : LEAST_BYTES};
    const xph_backend *backend = made->device->backend;
    return backend->comm_open ? backend->comm_open(made->device, &args, &made->comm, error)
                              : none(backend, error);
}

exphil_status exphil_ranks_open(const exphil_ranks_config *config, exphil_ranks **ranks, exphil_error *error)
{
    exphil_ranks_config known = EXPHIL_RANKS_CONFIG_INIT;
    if (!config || !ranks)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", config ? "ranks" : "config");
    XPH_TRY(XPH_TAKE(exphil_ranks_config, &known, config, error));
    XPH_TRY(check(&known, error));
    exphil_context *context = xph_model_context(known.model);
    XPH_TRY(xph_context_check(context, error));
    exphil_ranks *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->device = xph_context_backend(context);
    made->config = known;
    exphil_status status = open(made, error);
    made->config.id = NULL; /* the caller's */
    made->config.model = NULL;
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
    if (ranks->comm) ranks->device->backend->comm_close(ranks->comm);
    xph_free(context, ranks, sizeof *ranks);
    xph_context_release(context);
}

/* ---- as a communicator -------------------------------------------------------------------------------------------- */

/* A trainer has one stream for it. */
static int32_t all_reduce(void *user, void *data, int64_t count, int32_t type, void *stream)
{
    exphil_ranks *ranks = user;
    const xph_backend *backend = ranks->device->backend;
    if (!ranks->stream || ranks->native != stream) {
        ranks->stream = backend->stream_wrap(ranks->device, stream, &ranks->place);
        ranks->native = stream;
    }
    return backend->comm_reduce(ranks->comm, ranks->stream, data, count,
                                type == EXPHIL_TYPE_F64 ? XPH_F64 : XPH_F32);
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
