/* A device that has addresses and no memory, for plans of memory: what is made on it is made by the code that makes it
 * on the device that it stands for, of which it asks kernels, scratch and sizes. So a plan has no formula of its own.
 * Work on it does nothing: the addresses must not be looked at. */
#include "device/measure.h"

typedef struct measured {
    xph_device base;
    xph_backend table; /* that of real, but for what is here */
    exphil_context *context;
    xph_device *real;
    uint64_t bytes, pinned;
    uintptr_t next; /* address that the next block gets */
} measured;

struct xph_event {
    xph_device *device;
};

static measured *of(const xph_device *device)
{
    return (measured *)(uintptr_t)device;
}

static size_t whole(const measured *device, size_t bytes)
{
    return device->real->backend->alloc_bytes ? device->real->backend->alloc_bytes(bytes) : bytes;
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

enum { ADDRESS_ALIGN = 4096, FIRST_ADDRESS = 1 << 20 };

/* 0: there are no addresses left. */
static void *take_addresses(measured *device, size_t bytes)
{
    size_t end;
    uintptr_t at = device->next;
    if (!xph_size_add(bytes, at, &end) || !xph_size_align(end + !bytes, ADDRESS_ALIGN, &end)) return NULL;
    device->next = end;
    return (void *)at; /* NOLINT(performance-no-int-to-ptr): nothing is there */
}

static exphil_status memory_alloc(xph_device *device, size_t bytes, void **address)
{
    void *block = take_addresses(of(device), bytes);
    if (!block) return EXPHIL_E_MEMORY;
    of(device)->bytes += whole(of(device), bytes);
    *address = block;
    return EXPHIL_OK;
}

static void memory_free(xph_device *device, void *address, size_t bytes)
{
    if (address) of(device)->bytes -= whole(of(device), bytes);
}

static exphil_status pinned_alloc(xph_device *device, size_t bytes, void **address)
{
    void *block = take_addresses(of(device), bytes);
    if (!block) return EXPHIL_E_MEMORY;
    of(device)->pinned += bytes;
    *address = block;
    return EXPHIL_OK;
}

static void pinned_free(xph_device *device, void *address, size_t bytes)
{
    if (address) of(device)->pinned -= bytes;
}

static void memory_info(xph_device *device, exphil_memory_info *info)
{
    info->device_used_bytes = of(device)->bytes;
    info->pinned_used_bytes = of(device)->pinned;
}

/* ---- order ----------------------------------------------------------------------------------------------- */

typedef struct measured_stream {
    xph_stream base;
    size_t bytes;
} measured_stream;

static exphil_status stream_create(xph_device *device, uint32_t flags, xph_stream **stream)
{
    const xph_backend *real = of(device)->real->backend;
    measured_stream *made = xph_alloc(of(device)->context, sizeof *made);
    if (!made) return EXPHIL_E_MEMORY;
    *made = (measured_stream){{device}, real->stream_bytes ? real->stream_bytes(of(device)->real, flags) : 0};
    of(device)->bytes += made->bytes;
    *stream = &made->base;
    return EXPHIL_OK;
}

static void stream_destroy(xph_stream *stream)
{
    if (!stream) return;
    of(stream->device)->bytes -= ((measured_stream *)stream)->bytes;
    xph_free(of(stream->device)->context, stream, sizeof(measured_stream));
}

static exphil_status stream_wait(xph_stream *stream)
{
    (void)stream;
    return EXPHIL_OK;
}

static exphil_status event_create(xph_device *device, uint32_t flags, xph_event **event)
{
    (void)flags;
    *event = xph_alloc(of(device)->context, sizeof **event);
    if (!*event) return EXPHIL_E_MEMORY;
    (*event)->device = device;
    return EXPHIL_OK;
}

static void event_destroy(xph_event *event)
{
    if (event) xph_free(of(event->device)->context, event, sizeof *event);
}

static exphil_status event_mark(xph_event *event, xph_stream *stream)
{
    (void)event, (void)stream;
    return EXPHIL_OK;
}

static exphil_status event_wait(xph_event *event)
{
    (void)event;
    return EXPHIL_OK;
}

static exphil_status stream_follow(xph_stream *stream, xph_event *event)
{
    (void)stream, (void)event;
    return EXPHIL_OK;
}

/* ---- work that is not done ------------------------------------------------------------------------------- */

static exphil_status copy(xph_stream *stream, void *to, const void *from, size_t bytes)
{
    (void)stream, (void)to, (void)from, (void)bytes;
    return EXPHIL_OK;
}

static exphil_status zero(xph_stream *stream, void *to, size_t bytes)
{
    (void)stream, (void)to, (void)bytes;
    return EXPHIL_OK;
}

static exphil_status query(xph_device *device, xph_op op, void *args, xph_op_info *info)
{
    xph_device *real = of(device)->real;
    return real->backend->query(real, op, args, info);
}

static exphil_status run(xph_stream *stream, const xph_kernel *kernel, const void *args)
{
    (void)stream, (void)kernel, (void)args;
    return EXPHIL_OK;
}

static int32_t joins(xph_device *device, const xph_joined_op *calls, int64_t count)
{
    xph_device *real = of(device)->real;
    return real->backend->joins(real, calls, count);
}

static exphil_status run_joined(xph_stream *stream, const xph_joined_op *calls, int64_t count,
                                const xph_download *results, int64_t result_count)
{
    (void)stream, (void)calls, (void)count, (void)results, (void)result_count;
    return EXPHIL_OK;
}

static void device_close(xph_device *device)
{
    if (device) xph_free(of(device)->context, device, sizeof(measured));
}

/* ---- opening --------------------------------------------------------------------------------------------- */

exphil_status xph_measure_open(exphil_context *context, xph_device *real, xph_device **device,
                               exphil_error *error)
{
    measured *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = context;
    made->real = real;
    made->next = FIRST_ADDRESS;
    made->table = *real->backend;
    made->table.device_close = device_close;
    made->table.alloc = memory_alloc;
    made->table.free = memory_free;
    made->table.host_alloc = pinned_alloc;
    made->table.host_free = pinned_free;
    made->table.memory_info = memory_info;
    made->table.stream_create = stream_create;
    made->table.stream_destroy = stream_destroy;
    made->table.upload = made->table.download = made->table.copy = copy;
    made->table.zero = zero;
    made->table.stream_wait = stream_wait;
    made->table.event_create = event_create;
    made->table.event_destroy = event_destroy;
    made->table.event_mark = event_mark;
    made->table.event_wait = event_wait;
    made->table.stream_follow = stream_follow;
    made->table.event_elapsed = NULL;
    made->table.record_begin = NULL;
    made->table.record_end = NULL;
    made->table.replay = NULL;
    made->table.graph_destroy = NULL;
    made->table.query = query;
    made->table.run = run;
    made->table.native_code = NULL;
    if (made->table.joins) made->table.joins = joins;
    made->table.run_joined = run_joined;
    made->base.backend = &made->table;
    *device = &made->base;
    return EXPHIL_OK;
}

void xph_measure_bytes(const xph_device *device, uint64_t *of_device, uint64_t *pinned)
{
    *of_device = of(device)->bytes;
    *pinned = of(device)->pinned;
}
