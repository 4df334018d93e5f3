/* Table A on the CPU: memory is the context's, work is done when run returns, a kernel is the first
 * candidate of the best kernel set that accepts the arguments, its phases spread over the threads of the
 * context.
 *
 * Splitting items over threads never changes a result: an item is a whole set of outputs, summed in its own
 * fixed order.
 */
#include "cpu/kernels.h"

#include "base/base.h"

typedef struct cpu_device {
    xph_device base;
    xph_host host;
    const xph_kernel_set *set[2]; /* XPH_F32, XPH_F64 */
} cpu_device;

typedef struct cpu_stream {
    xph_stream base;
    uint32_t flags;
} cpu_stream;

/* Items of one phase: every worker has a share of neighbours, takes it in pieces, and then helps the others with
 * theirs (past SHARES_MOST they only help). Items of most operations are rows in order, so a worker finds in its own cache
 * what it wrote there in the phase before. */
enum { SHARES_MOST = 64, PIECES_PER_SHARE = 8 };
typedef struct share {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
} share;
typedef struct spread {
    const xph_phase *phase;
    const void *args;
    int64_t shares, piece; /* piece: items taken at a time */
    share share[SHARES_MOST];
} spread;

static int32_t device_count(void)
{
    return 1;
}

static exphil_status device_info(int32_t ordinal, exphil_device_info *info)
{
    if (ordinal != 0 || !info) return EXPHIL_E_INVALID;
    *info = (exphil_device_info){.struct_size = info->struct_size, .workers = xph_cpu_count(), .id = "cpu"};
    xph_cpu_name(info->name, sizeof info->name);
    strncpy(info->isa, xph_isa_name(xph_cpu_detect()), sizeof info->isa - 1);
    return EXPHIL_OK;
}

static exphil_status device_open(const xph_host *host, int32_t ordinal, xph_device **device,
                                 exphil_error *error)
{
    if (host->abi != XPH_BACKEND_ABI || host->struct_size < sizeof *host)
        return xph_fail(error, EXPHIL_E_VERSION, "cpu: host table of version %u, this backend has %u",
                        (unsigned)host->abi, XPH_BACKEND_ABI);
    if (ordinal != 0)
        return xph_fail(error, EXPHIL_E_INVALID, "device: there is no cpu:%d, only cpu", (int)ordinal);
    cpu_device *cpu = host->alloc(host->context, sizeof *cpu);
    if (!cpu) return xph_no_memory(sizeof *cpu, error);
    cpu->base.backend = xph_cpu_backend();
    cpu->host = *host;
    cpu->set[XPH_F32] = xph_kernels_pick(XPH_F32, host->isa);
    cpu->set[XPH_F64] = xph_kernels_pick(XPH_F64, host->isa);
    *device = &cpu->base;
    return EXPHIL_OK;
}

static void device_close(xph_device *device)
{
    cpu_device *cpu = (cpu_device *)device;
    if (!cpu) return;
    xph_host host = cpu->host;
    host.free(host.context, cpu, sizeof *cpu);
}

static exphil_status memory_alloc(xph_device *device, size_t bytes, void **address)
{
    const xph_host *host = &((cpu_device *)device)->host;
    void *memory = host->alloc(host->context, bytes);
    if (!memory) return EXPHIL_E_MEMORY;
    *address = memory;
    return EXPHIL_OK;
}

static void memory_free(xph_device *device, void *address, size_t bytes)
{
    const xph_host *host = &((cpu_device *)device)->host;
    if (address) host->free(host->context, address, bytes);
}

static void memory_info(xph_device *device, exphil_memory_info *info)
{
    (void)device, (void)info; /* host memory, which the context counts */
}

/* All work runs in the call that requests it: an event has nothing to wait for. */
struct xph_event {
    xph_device *device;
    int64_t at; /* ns */
};

static exphil_status event_create(xph_device *device, uint32_t flags, xph_event **event)
{
    (void)flags;
    void *memory = NULL;
    XPH_TRY(memory_alloc(device, sizeof(xph_event), &memory));
    *event = memory;
    (*event)->device = device;
    return EXPHIL_OK;
}

static void event_destroy(xph_event *event)
{
    if (event) memory_free(event->device, event, sizeof *event);
}

static exphil_status event_mark(xph_event *event, xph_stream *stream)
{
    (void)stream;
    event->at = xph_clock_ns();
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

static exphil_status event_elapsed(xph_event *from, xph_event *to, double *ns)
{
    *ns = (double)(to->at - from->at);
    return EXPHIL_OK;
}

static exphil_status stream_create(xph_device *device, uint32_t flags, xph_stream **stream)
{
    void *memory = NULL;
    XPH_TRY(memory_alloc(device, sizeof(cpu_stream), &memory));
    cpu_stream *created = memory;
    created->base.device = device;
    created->flags = flags;
    *stream = &created->base;
    return EXPHIL_OK;
}

static void stream_destroy(xph_stream *stream)
{
    if (stream) memory_free(stream->device, stream, sizeof(cpu_stream));
}

static exphil_status stream_wait(xph_stream *stream)
{
    (void)stream;
    return EXPHIL_OK;
}

/* Every args struct begins with its type. No candidate refuses when it runs. */
static const xph_candidate *choose(const cpu_device *cpu, xph_op op, void *args)
{
    xph_type type = *(const xph_type *)args;
    if (type != XPH_F32 && type != XPH_F64) return NULL;
    return xph_kernels_choose(cpu->set[type], op, args);
}

static exphil_status query(xph_device *device, xph_op op, void *args, xph_op_info *info)
{
    const xph_candidate *candidate = choose((cpu_device *)device, op, args);
    if (!candidate) return EXPHIL_E_UNSUPPORTED;
    *info = (xph_op_info){.kernel = (const xph_kernel *)candidate, .name = candidate->name};
    if (candidate->scratch_bytes) info->scratch_bytes = candidate->scratch_bytes(args);
    info->packed_bytes = xph_kernels_packed_bytes(op, args);
    return EXPHIL_OK;
}

static void run_share(void *arg, int64_t i, int32_t worker)
{
    spread *s = arg;
    (void)worker;
    for (int64_t k = 0; k < s->shares; k++) {
        share *from = &s->share[(i + k) % s->shares];
        for (;;) {
            int64_t begin = atomic_fetch_add_explicit(&from->next, s->piece, memory_order_relaxed);
            if (begin >= from->end) break;
            int64_t end = begin + s->piece;
            s->phase->run(s->args, begin, end < from->end ? end : from->end);
        }
    }
}

static void run_shares(const xph_host *host, const xph_phase *phase, const void *args, int64_t items,
                       int64_t workers)
{
    spread s;
    s.phase = phase;
    s.args = args;
    s.shares = workers < items ? workers : items;
    if (s.shares > SHARES_MOST) s.shares = SHARES_MOST;
    s.piece = items / (s.shares * PIECES_PER_SHARE) + (items % (s.shares * PIECES_PER_SHARE) != 0);
    for (int64_t i = 0; i < s.shares; i++) {
        atomic_init(&s.share[i].next, items * i / s.shares);
        s.share[i].end = items * (i + 1) / s.shares;
    }
    host->parallel(host->context, run_share, &s, workers < items ? workers : items);
}

static void run_phase(const cpu_stream *stream, const xph_phase *phase, const void *args)
{
    const xph_host *host = &((const cpu_device *)stream->base.device)->host;
    int64_t items = phase->items(args);
    int32_t workers = stream->flags & XPH_STREAM_INLINE ? 1 : host->workers(host->context);
    if (items <= 1 || workers <= 1) {
        if (items > 0) phase->run(args, 0, items);
        return;
    }
    run_shares(host, phase, args, items, workers);
}

/* ---- memory: one core does not use all of its bandwidth ---- */

enum { MOVE_ITEM = 1 << 17 }; /* bytes */

typedef struct move_args {
    unsigned char *to;
    const unsigned char *from; /* NULL: zeros */
    size_t bytes;
} move_args;

static int64_t move_items(const void *args)
{
    return (int64_t)((((const move_args *)args)->bytes + MOVE_ITEM - 1) / MOVE_ITEM);
}

static void move_run(const void *args, int64_t begin, int64_t end)
{
    const move_args *a = args;
    size_t first = (size_t)begin * MOVE_ITEM, last = (size_t)end * MOVE_ITEM;
    if (last > a->bytes) last = a->bytes;
    if (a->from)
        memmove(a->to + first, a->from + first, last - first);
    else
        memset(a->to + first, 0, last - first);
}

static exphil_status move_bytes(xph_stream *stream, void *to, const void *from, size_t bytes)
{
    static const xph_phase phase = {move_items, move_run};
    const move_args args = {to, from, bytes};
    const unsigned char *first = to, *source = from;
    if (!bytes) return EXPHIL_OK;
    bool disjoint = first + bytes <= source || source + bytes <= first;
    if (disjoint)
        run_phase((const cpu_stream *)stream, &phase, &args);
    else
        memmove(to, from, bytes);
    return EXPHIL_OK;
}

static exphil_status zero_bytes(xph_stream *stream, void *to, size_t bytes)
{
    static const xph_phase phase = {move_items, move_run};
    const move_args args = {to, NULL, bytes};
    run_phase((const cpu_stream *)stream, &phase, &args);
    return EXPHIL_OK;
}

static exphil_status run(xph_stream *stream, const xph_kernel *kernel, const void *args)
{
    const xph_candidate *candidate = (const xph_candidate *)kernel;
    for (int i = 0; i < XPH_PHASES && candidate->phase[i].run; i++)
        run_phase((const cpu_stream *)stream, &candidate->phase[i], args);
    return EXPHIL_OK;
}

const xph_backend *xph_cpu_backend(void)
{
    static const xph_backend backend = {
        .struct_size = sizeof(xph_backend),
        .abi = XPH_BACKEND_ABI,
        .core_version = EXPHIL_VERSION,
        .name = "cpu",
        .build_id = XPH_BUILD_ID,
        .host_memory = 1,
        .precisions = 1u << EXPHIL_PRECISION_F32,
        .device_count = device_count,
        .device_info = device_info,
        .device_open = device_open,
        .device_close = device_close,
        .alloc = memory_alloc,
        .free = memory_free,
        .host_alloc = memory_alloc,
        .host_free = memory_free,
        .memory_info = memory_info,
        .stream_create = stream_create,
        .stream_destroy = stream_destroy,
        .upload = move_bytes,
        .download = move_bytes,
        .copy = move_bytes,
        .zero = zero_bytes,
        .stream_wait = stream_wait,
        .event_create = event_create,
        .event_destroy = event_destroy,
        .event_mark = event_mark,
        .event_wait = event_wait,
        .stream_follow = stream_follow,
        .event_elapsed = event_elapsed,
        .query = query,
        .run = run,
    };
    return &backend;
}
