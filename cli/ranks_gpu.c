/* Ranks of exphil launch, or of what else hands on an id, with a GPU each: NCCL adds their gradients up. See ranks_engine.h.
 *
 * The id goes from rank 0 to the others through the descriptors that EXPHIL_ID_OUT and EXPHIL_ID_IN name. A context of its own
 * holds the group, since ranks ask each other before the run has one. */
#include "rank_place.h"
#include "ranks_engine.h"

#include <exphil/ranks.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    rank_place place;
    int id; /* descriptor of the id */
    exphil_context *context;
    exphil_ranks *ranks;
    exphil_device_communicator on_device;
} gpu = {.on_device = EXPHIL_DEVICE_COMMUNICATOR_INIT};

/* ---- is it there? ---------------------------------------------------------------------------------------- */

static bool wants_gpu(const char *device)
{
    return device && (strncmp(device, "cuda", 4) == 0 || strcmp(device, "auto") == 0);
}

static bool refuse(const char *what)
{
    fprintf(stderr,
            "exphil: %s has started %d processes, and each would be a run of its own: %smpirun -n %d exphil "
            "train --mpi makes them one\n",
            gpu.place.family, gpu.place.ranks, what, gpu.place.ranks);
    return false;
}

static bool load(const ranks_wanted *wanted)
{
    char why[RANK_PLACE_WHY];
    if (!rank_place_find(getenv, &gpu.place, why)) {
        fprintf(stderr, "exphil: ranks: %s\n", why);
        return false;
    }
    gpu.id = rank_place_descriptor(getenv, gpu.place.rank ? "EXPHIL_ID_IN" : "EXPHIL_ID_OUT");
    if (gpu.id < 0) return refuse("");
    if (!wants_gpu(wanted->machine.device))
        return refuse("with --device cuda they are one, each with a GPU; on processors ");
    if (ranks_gpus(gpu.place.local_rank) == 0)
        return refuse("no GPU is here (exphil devices tells why); on processors ");
    return true;
}

/* ---- the id ---------------------------------------------------------------------------------------------- */

static exphil_status fail(exphil_error *error, exphil_status status, const char *what, int number)
{
    error->status = status;
    error->native_code = number;
    (void)snprintf(error->message, sizeof error->message, "the id of the ranks: %s%s%s", what,
                   number ? ": " : "", number ? strerror(number) : "");
    return status;
}

/* NULL: there will be none, which one byte says. */
static exphil_status give_id(const uint8_t *id, exphil_error *error)
{
    const uint8_t none = 0;
    const size_t bytes = id ? EXPHIL_RANKS_ID_BYTES : sizeof none;
    ssize_t wrote;
    while ((wrote = write(gpu.id, id ? id : &none, bytes)) < 0 && errno == EINTR) continue;
    (void)close(gpu.id);
    return wrote == (ssize_t)bytes ? EXPHIL_OK
                                   : fail(error, EXPHIL_E_IO, "EXPHIL_ID_OUT", wrote < 0 ? errno : EPIPE);
}

/* Up to its end. */
static exphil_status take_id(uint8_t id[EXPHIL_RANKS_ID_BYTES], double timeout, exphil_error *error)
{
    const int64_t until = now_ns() + (int64_t)(timeout * 1e9);
    size_t have = 0;
    while (have < EXPHIL_RANKS_ID_BYTES) {
        struct pollfd wait = {.fd = gpu.id, .events = POLLIN};
        const int64_t left_ms = (until - now_ns()) / 1000000;
        int there = left_ms > 0 ? poll(&wait, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX) : 0;
        if (there == 0) return fail(error, EXPHIL_E_IO, "rank 0 did not give it in time", 0);
        ssize_t got = there < 0 ? -1 : read(gpu.id, id + have, EXPHIL_RANKS_ID_BYTES - have);
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return fail(error, EXPHIL_E_IO, "EXPHIL_ID_IN", errno);
        if (got == 0)
            return have == 1 ? fail(error, EXPHIL_E_UNSUPPORTED, "rank 0 makes none", 0)
                             : fail(error, EXPHIL_E_IO, "rank 0 has ended and gave none", 0);
        if (got > 0) have += (size_t)got;
    }
    (void)close(gpu.id);
    return EXPHIL_OK;
}

/* A rank 0 that fails, with a status of its own, lets the others know. */
static exphil_status share_id(uint8_t id[EXPHIL_RANKS_ID_BYTES], exphil_status status, double timeout,
                              exphil_error *error)
{
    exphil_error told = EXPHIL_ERROR_INIT;
    if (gpu.place.rank > 0) return status < 0 ? status : take_id(id, timeout, error);
    if (status >= 0) status = exphil_ranks_id(gpu.context, id, error);
    exphil_status given = give_id(status < 0 ? NULL : id, status < 0 ? &told : error);
    return status < 0 ? status : given;
}

/* ---- the group ------------------------------------------------------------------------------------------- */

static exphil_status open_ranks(const ranks_wanted *wanted, const uint8_t *id, exphil_error *error)
{
    exphil_ranks_config config = EXPHIL_RANKS_CONFIG_INIT;
    const double ms = wanted->timeout * 1e3 + 0.5;
    config.id = id;
    config.context = gpu.context;
    config.rank = gpu.place.rank;
    config.ranks = gpu.place.ranks;
    config.sums = wanted->tree ? EXPHIL_SUMS_TREE : EXPHIL_SUMS_ORDERED;
    config.start_ms = config.timeout_ms = ms < INT32_MAX ? (int32_t)ms : INT32_MAX;
    exphil_status status = exphil_ranks_open(&config, &gpu.ranks, error);
    return status < 0 ? status : exphil_ranks_communicator(gpu.ranks, &gpu.on_device, error);
}

static exphil_status open_group(const ranks_wanted *wanted, void **group, exphil_error *error)
{
    uint8_t id[EXPHIL_RANKS_ID_BYTES] = {0};
    machine_options machine = {.device = wanted->machine.device, .threads = 1, .quiet = true};
    char device[RANKS_DEVICE];
    exphil_status status = EXPHIL_OK;
    ranks_choose_gpu(gpu.place.local_rank, &machine, device);
    if (!open_context(&machine, NULL, &gpu.context))
        status = fail(error, EXPHIL_E_UNSUPPORTED, "this rank has no GPU", 0);
    status = share_id(id, status, wanted->timeout, error);
    if (status >= 0) status = open_ranks(wanted, id, error);
    *group = gpu.ranks;
    return status;
}

static exphil_status communicator(void *group, exphil_communicator *out, exphil_error *error)
{
    return exphil_ranks_host_communicator(group, out, error);
}

static const exphil_device_communicator *on_device(void *group)
{
    (void)group;
    return &gpu.on_device;
}

static exphil_status local(void *group, int32_t *rank, exphil_error *error)
{
    (void)group;
    (void)error;
    *rank = gpu.place.local_rank;
    return EXPHIL_OK;
}

static const char *why(void *group)
{
    (void)group;
    return gpu.on_device.state(gpu.on_device.user) == EXPHIL_RANKS_OK
               ? ""
               : "a rank is gone, has not come in time, or NCCL failed";
}

/* The others hear of it from what started them, or wait no longer than --ranks-timeout. */
static void abort_own(void *group, int status)
{
    (void)status;
    if (group && gpu.on_device.abort) gpu.on_device.abort(gpu.on_device.user);
}

/* All come; after that nobody waits for anybody. */
static exphil_status close_group(void *group)
{
    exphil_communicator all = {.struct_size = sizeof all};
    double number = 0.0;
    exphil_status status = exphil_ranks_host_communicator(group, &all, NULL);
    if (status >= 0 && all.all_reduce(all.user, &number, 1, EXPHIL_TYPE_F64) != 0) status = EXPHIL_E_IO;
    if (status >= 0) gpu.on_device.abort(gpu.on_device.user);
    return status;
}

static void release(void *group)
{
    exphil_ranks_destroy(group);
    exphil_context_destroy(gpu.context);
}

const ranks_engine ranks_by_gpu = {.name = "ranks",
                                   .load = load,
                                   .open = open_group,
                                   .communicator = communicator,
                                   .on_device = on_device,
                                   .local = local,
                                   .why = why,
                                   .abort = abort_own,
                                   .close = close_group,
                                   .release = release};
