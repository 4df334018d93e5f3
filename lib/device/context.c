/* Contexts and devices as the host sees them: makes the bare context of lib/base, opens a device for it,
 * lists the devices. */
#include "device/device.h"
#include "device/measure.h"
#include "device/plugin.h"

#include <stdio.h>

#define CPU  "cpu"
#define CUDA "cuda"

/* ---- what a backend is given of its context -------------------------------------------------------------- */

typedef struct opened {
    xph_host host;
    exphil_context *context;
    const xph_backend *backend;
    xph_device *device;
    exphil_device_info info;
    size_t limit; /* of memory that this device takes from the host; 0: none */
    atomic_size_t taken;
    exphil_context *stands_for; /* of a context that measures; else NULL */
} opened;

/* Memory of the CPU device is host memory: the configured limit is kept here. */
static void *host_alloc(void *user, size_t bytes)
{
    opened *owner = user;
    size_t taken = atomic_fetch_add(&owner->taken, bytes);
    if (owner->limit && (bytes > owner->limit || taken > owner->limit - bytes)) {
        atomic_fetch_sub(&owner->taken, bytes);
        xph_log_from_worker(owner->context, EXPHIL_LOG_WARNING,
                            "memory limit of %zu bytes: %zu are in use, %zu more were asked for",
                            owner->limit, taken, bytes);
        return NULL;
    }
    void *pointer = xph_alloc(owner->context, bytes);
    if (!pointer) atomic_fetch_sub(&owner->taken, bytes);
    return pointer;
}

static void host_free(void *user, void *pointer, size_t bytes)
{
    opened *owner = user;
    if (!pointer) return;
    xph_free(owner->context, pointer, bytes);
    atomic_fetch_sub(&owner->taken, bytes);
}

/* A backend may speak from any thread. */
static void host_log(void *user, exphil_log_level level, const char *message)
{
    xph_log_from_worker(((opened *)user)->context, level, "%s", message);
}

static int32_t host_cancelled(void *user)
{
    return xph_cancelled(((opened *)user)->context);
}

static void host_parallel(void *user, void (*fn)(void *arg, int64_t i, int32_t worker), void *arg,
                          int64_t count)
{
    xph_parallel(((opened *)user)->context, fn, arg, count);
}

static int32_t host_workers(void *user)
{
    return xph_workers(((opened *)user)->context);
}

/* ---- opening --------------------------------------------------------------------------------------------- */

xph_device *xph_context_backend(const exphil_context *context)
{
    return ((const opened *)xph_context_attached(context))->device;
}

static void close_device(void *user)
{
    opened *owner = user;
    exphil_context *stands_for = owner->stands_for;
    owner->backend->device_close(owner->device);
    xph_free(owner->context, owner, sizeof *owner);
    if (stands_for) xph_context_release(stands_for);
}

static void cpu_info(exphil_device_info *info, xph_isa isa, int32_t workers)
{
    *info = (exphil_device_info){.struct_size = sizeof *info};
    info->memory_bytes = xph_memory_total();
    info->workers = workers;
    snprintf(info->id, sizeof info->id, "%s", CPU);
    xph_cpu_name(info->name, sizeof info->name);
    snprintf(info->isa, sizeof info->isa, "%s", xph_isa_name(isa));
}

/* owner is taken over on success, also by open_plugin. */
static exphil_status open_cpu(opened *owner, size_t limit, exphil_error *error)
{
    cpu_info(&owner->info, xph_context_isa(owner->context), xph_workers(owner->context));
    owner->backend = xph_cpu_backend();
    owner->limit = limit;
    XPH_TRY(owner->backend->device_open(&owner->host, 0, &owner->device, error));
    xph_context_attach(owner->context, owner, close_device);
    return EXPHIL_OK;
}

static exphil_status open_plugin(opened *owner, const exphil_context_config *config, int32_t ordinal,
                                 exphil_error *error)
{
    XPH_TRY(xph_plugin_load(CUDA, config->backend_path, &owner->host, &owner->backend, error));
    XPH_TRY(owner->backend->device_open(&owner->host, ordinal, &owner->device, error));
    owner->info = (exphil_device_info)EXPHIL_DEVICE_INFO_INIT;
    exphil_status status = owner->backend->device_info(ordinal, &owner->info);
    if (status < 0) {
        owner->backend->device_close(owner->device);
        return xph_fail(error, status, "CUDA device %d does not answer", (int)ordinal);
    }
    owner->info.index = ordinal + 1; /* in the list of exphil_device_get */
    xph_context_attach(owner->context, owner, close_device);
    return EXPHIL_OK;
}

/* "cuda" or "cuda:<number>" with at most three digits. */
static bool cuda_ordinal(const char *device, int32_t *ordinal)
{
    size_t length = sizeof CUDA - 1;
    if (strncmp(device, CUDA, length) != 0) return false;
    const char *c = device + length;
    *ordinal = 0;
    if (!*c) return true;
    if (*c++ != ':' || !*c || strlen(c) > 3) return false;
    for (; *c >= '0' && *c <= '9'; c++) *ordinal = *ordinal * 10 + (*c - '0');
    return !*c;
}

static exphil_status open_asked(opened *owner, const exphil_context_config *config, exphil_error *error)
{
    const char *device = config->device ? config->device : CPU;
    size_t limit = config->memory_limit_bytes;
    int32_t ordinal;
    if (strcmp(device, CPU) == 0) return open_cpu(owner, limit, error);
    if (strcmp(device, "auto") == 0) {
        exphil_error why = EXPHIL_ERROR_INIT;
        if (open_plugin(owner, config, 0, &why) == EXPHIL_OK) return EXPHIL_OK;
        xph_log(owner->context, EXPHIL_LOG_WARNING, "running on the CPU: %s", why.message);
        return open_cpu(owner, limit, error);
    }
    if (cuda_ordinal(device, &ordinal)) return open_plugin(owner, config, ordinal, error);
    return xph_fail(error, EXPHIL_E_INVALID, "device is \"%s\", must be cpu, cuda, cuda:<number> or auto",
                    device);
}

static exphil_status open_device(exphil_context *context, const exphil_context_config *config,
                                 exphil_error *error)
{
    opened *owner = xph_calloc(context, 1, sizeof *owner);
    if (!owner) return xph_no_memory(sizeof *owner, error);
    owner->context = context;
    xph_host_head(&owner->host);
    owner->host.context = owner;
    owner->host.alloc = host_alloc;
    owner->host.free = host_free;
    owner->host.log = host_log;
    owner->host.cancelled = host_cancelled;
    owner->host.parallel = host_parallel;
    owner->host.workers = host_workers;
    owner->host.isa = xph_context_isa(context);
    owner->host.memory_limit_bytes = config->memory_limit_bytes;
    exphil_status status = open_asked(owner, config, error);
    if (status < 0) xph_free(context, owner, sizeof *owner);
    return status;
}

exphil_status exphil_context_create(const exphil_context_config *config, exphil_context **context,
                                    exphil_error *error)
{
    if (!context) return xph_fail(error, EXPHIL_E_INVALID, "context is NULL");
    exphil_context_config taken = EXPHIL_CONTEXT_CONFIG_INIT;
    XPH_TRY(XPH_TAKE(exphil_context_config, &taken, config, error));
    exphil_context *made = NULL;
    XPH_TRY(xph_context_make(&taken, &made, error));
    exphil_status status = open_device(made, &taken, error);
    xph_log_flush(made);
    if (status < 0) {
        xph_context_release(made);
        return status;
    }
    *context = made;
    return EXPHIL_OK;
}

void exphil_context_destroy(exphil_context *context)
{
    xph_context_release(context);
}

/* ---- plans of memory ------------------------------------------------------------------------------------- */

static exphil_status open_measured(exphil_context *context, exphil_context *of, exphil_error *error)
{
    const opened *real = xph_context_attached(of);
    opened *owner = xph_calloc(context, 1, sizeof *owner);
    if (!owner) return xph_no_memory(sizeof *owner, error);
    owner->context = context;
    owner->info = real->info;
    exphil_status status = xph_measure_open(context, real->device, &owner->device, error);
    if (status < 0) {
        xph_free(context, owner, sizeof *owner);
        return status;
    }
    owner->backend = owner->device->backend;
    owner->stands_for = xph_context_retain(of);
    xph_context_attach(context, owner, close_device);
    return EXPHIL_OK;
}

exphil_status xph_context_measure(exphil_context *of, exphil_context **context, exphil_error *error)
{
    exphil_context *made = NULL;
    XPH_TRY(xph_context_check(of, error));
    XPH_TRY(xph_context_like(of, &made, error));
    exphil_status status = open_measured(made, of, error);
    if (status < 0) {
        xph_context_release(made);
        return status;
    }
    *context = made;
    return EXPHIL_OK;
}

bool xph_context_measures(const exphil_context *context)
{
    return ((const opened *)xph_context_attached(context))->stands_for != NULL;
}

xph_held xph_context_held(const exphil_context *context)
{
    const xph_device *device = xph_context_backend(context);
    exphil_memory_info host = EXPHIL_MEMORY_INFO_INIT;
    uint64_t bytes, pinned;
    xph_context_host_memory(context, &host);
    xph_measure_bytes(device, &bytes, &pinned);
    if (device->backend->host_memory)
        return (xph_held){.host = host.host_used_bytes + bytes + pinned, .limited = bytes + pinned};
    return (xph_held){.host = host.host_used_bytes + pinned, .device = bytes, .limited = bytes};
}

xph_held xph_held_since(const exphil_context *context, const xph_held *before)
{
    const xph_held now = xph_context_held(context);
    return (xph_held){now.host - before->host, now.device - before->device, now.limited - before->limited};
}

static uint64_t known_or_most(uint64_t bytes)
{
    return bytes ? bytes : UINT64_MAX;
}

xph_room xph_context_room(const exphil_context *context)
{
    const opened *owner = xph_context_attached(context);
    xph_room room = {known_or_most((uint64_t)xph_memory_free("")), UINT64_MAX, UINT64_MAX};
    size_t taken = atomic_load(&((opened *)(uintptr_t)owner)->taken);
    if (owner->limit) room.limited = owner->limit > taken ? owner->limit - taken : 0;
    if (owner->backend->memory_free) room.device = known_or_most(owner->backend->memory_free(owner->device));
    return room;
}

/* ---- questions ------------------------------------------------------------------------------------------- */

/* Plugin for listing only: it gets no context, and must not start its driver for device_count and device_info: a plugin
 * may count none before one of its devices was opened. */
static const xph_backend *listing_plugin(void)
{
    static const xph_host nobody = {
        .struct_size = sizeof nobody,
        .abi = XPH_BACKEND_ABI,
        .core_version = EXPHIL_VERSION,
        .build_id = XPH_BUILD_ID,
    };
    const xph_backend *backend = NULL;
    return xph_plugin_load(CUDA, NULL, &nobody, &backend, NULL) == EXPHIL_OK ? backend : NULL;
}

int64_t exphil_device_count(void)
{
    const xph_backend *plugin = listing_plugin();
    int32_t more = plugin ? plugin->device_count() : 0;
    return 1 + (more > 0 ? more : 0);
}

exphil_status exphil_device_get(int64_t index, exphil_device_info *info, exphil_error *error)
{
    exphil_device_info known = EXPHIL_DEVICE_INFO_INIT;
    int64_t count = exphil_device_count();
    if (index < 0 || index >= count) {
        return xph_fail(error, EXPHIL_E_INVALID, "index is %lld, there are %lld devices", (long long)index,
                        (long long)count);
    }
    if (index == 0) {
        cpu_info(&known, xph_cpu_detect(), xph_cpu_count());
    } else {
        const xph_backend *plugin = listing_plugin();
        exphil_status status = plugin ? plugin->device_info((int32_t)(index - 1), &known) : EXPHIL_E_DEVICE;
        if (status < 0) return xph_fail(error, status, "device %lld does not answer", (long long)index);
        known.index = (int32_t)index;
    }
    return XPH_GIVE(exphil_device_info, info, &known, error);
}

exphil_status exphil_context_device(const exphil_context *context, exphil_device_info *info,
                                    exphil_error *error)
{
    XPH_TRY(xph_context_check(context, error));
    const opened *owner = xph_context_attached(context);
    return XPH_GIVE(exphil_device_info, info, &owner->info, error);
}

exphil_status exphil_context_memory(const exphil_context *context, exphil_memory_info *info,
                                    exphil_error *error)
{
    XPH_TRY(xph_context_check(context, error));
    exphil_memory_info known = EXPHIL_MEMORY_INFO_INIT;
    xph_context_host_memory(context, &known);
    xph_context_backend(context)->backend->memory_info(xph_context_backend(context), &known);
    return XPH_GIVE(exphil_memory_info, info, &known, error);
}
