/* Table A on CUDA. Operations are the candidates of kernels.h; only the one query function is exported, and
 * libexphil is called only through the host table. The driver is not started before a device is opened. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(XPH_NVTX)
#  include <nvtx3/nvToolsExt.h>
#  define RANGE_BEGIN(name) nvtxRangePushA(name)
#  define RANGE_END()       nvtxRangePop()
#else
#  define RANGE_BEGIN(name) ((void)(name))
#  define RANGE_END()       ((void)0)
#endif

enum { COMPUTE_LEAST = 80 };

static atomic_bool driver_runs;

/* Whether a variable says "none"; what else it says is nothing that is known. */
static bool is_none(const char *name)
{
    const char *asked = secure_getenv(name);
    return asked && strcmp(asked, "none") == 0;
}

static void tell_odd(const xph_cuda_device *device, const char *name)
{
    const char *asked = secure_getenv(name);
    char text[256];
    if (!asked || !*asked || is_none(name)) return;
    snprintf(text, sizeof text, "cuda:%d: %s is \"%.100s\": \"none\" is all that is known, nothing changes",
             device->ordinal, name, asked);
    device->host.log(device->host.context, EXPHIL_LOG_WARNING, text);
}

static const char overlap_variable[] = "EXPHIL_CUDA_OVERLAP", join_variable[] = "EXPHIL_CUDA_JOIN";

/* Launches of kernels (launch.cuh) may overlap where all devices that were opened can: sm_90, code for it, and a driver that also
 * records it. EXPHIL_CUDA_OVERLAP=none: they do not. */
int xph_cuda_overlap = 1;
enum { OVERLAP_COMPUTE = 90, OVERLAP_DRIVER = 12040 };

static void find_overlap(const xph_cuda_device *device)
{
    int driver = 0;
    cudaDriverGetVersion(&driver);
    if (device->compute < OVERLAP_COMPUTE || driver < OVERLAP_DRIVER || is_none(overlap_variable) ||
        xph_cuda_code() < OVERLAP_COMPUTE)
        __atomic_store_n(&xph_cuda_overlap, 0, __ATOMIC_RELAXED);
}

/* ---- devices ---- */

/* Before one is opened as far as can be told without the driver. */
static int32_t device_count(void)
{
    char name[128];
    int count = 0;
    if (!atomic_load(&driver_runs)) return xph_cuda_list(name);
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

static cudaError_t describe(int32_t ordinal, exphil_device_info *info, int32_t *compute, int32_t *ordered)
{
    struct cudaDeviceProp properties;
    cudaError_t code = cudaGetDeviceProperties(&properties, ordinal);
    if (code) return code;
    size_t size = info->struct_size;
    *info = (exphil_device_info){.struct_size = size, .memory_bytes = (int64_t)properties.totalGlobalMem};
    snprintf(info->id, sizeof info->id, "cuda:%d", (int)ordinal);
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, properties.name);
    snprintf(info->isa, sizeof info->isa, "sm_%d%d", properties.major, properties.minor);
    *compute = 10 * properties.major + properties.minor;
    *ordered = properties.memoryPoolsSupported;
    return cudaSuccess;
}

static exphil_status device_info(int32_t ordinal, exphil_device_info *info)
{
    int32_t compute, ordered;
    if (ordinal < 0 || ordinal >= device_count()) return EXPHIL_E_INVALID;
    if (atomic_load(&driver_runs))
        return describe(ordinal, info, &compute, &ordered) ? EXPHIL_E_DEVICE : EXPHIL_OK;
    *info = (exphil_device_info){.struct_size = info->struct_size};
    snprintf(info->id, sizeof info->id, "cuda:%d", (int)ordinal);
    xph_cuda_list(info->name);
    return EXPHIL_OK;
}

static exphil_status find_device(xph_cuda_device *device, exphil_error *error)
{
    int count = 0, driver = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code) {
        cudaGetLastError();
        cudaDriverGetVersion(&driver);
        if (code == cudaErrorInsufficientDriver && driver == 0)
            return xph_cuda_fail(
                error, EXPHIL_E_UNSUPPORTED, (int)code,
                "cuda: no device: %s: there is no NVIDIA driver; one for CUDA %d.%d or newer is needed",
                cudaGetErrorName(code), CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
        return xph_cuda_fail(
            error, EXPHIL_E_UNSUPPORTED, (int)code,
            "cuda: no device: %s (%s); the driver is for CUDA %d.%d, %d.%d or newer is needed",
            cudaGetErrorName(code), cudaGetErrorString(code), driver / 1000, driver % 1000 / 10,
            CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    }
    if (device->ordinal >= count)
        return xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, 0,
                             count == 1 ? "device is \"cuda:%d\", but there is %d CUDA device"
                                        : "device is \"cuda:%d\", but there are %d CUDA devices",
                             device->ordinal, count);
    atomic_store(&driver_runs, true);
    device->info.struct_size = sizeof device->info;
    code = describe(device->ordinal, &device->info, &device->compute, &device->memory.ordered);
    if (code)
        return xph_cuda_fail(error, EXPHIL_E_DEVICE, (int)code, "cuda:%d does not answer: %s",
                             device->ordinal, cudaGetErrorName(code));
    if (device->compute < COMPUTE_LEAST)
        return xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, 0, "cuda:%d is %s (%s), at least sm_%d is needed",
                             device->ordinal, device->info.name, device->info.isa, COMPUTE_LEAST);
    return EXPHIL_OK;
}

static exphil_status device_open(const xph_host *host, int32_t ordinal, xph_device **device,
                                 exphil_error *error);

static void device_close(xph_device *base)
{
    xph_cuda_device *device = (xph_cuda_device *)base;
    if (!device) return;
    {
        XPH_ON(base);
        xph_blaslt_close(device);
        xph_cudnn_close(device);
        cudaStreamDestroy(device->words);
        xph_cuda_memory_close(device);
    }
    xph_host host = device->host;
    host.free(host.context, device, sizeof *device);
}

/* ---- operations ---- */

enum { HEADS_WIDEST = 1024 }; /* heads.cu, sample.cu: a warp holds a row */

/* Others have kernels for every shape, or stand beside some that have. */
static exphil_status no_kernel(xph_cuda_device *device, xph_op op, const void *args)
{
    const xph_heads_args *heads = args;
    char text[160];
    if (op != XPH_OP_HEADS || heads->width <= HEADS_WIDEST || atomic_exchange(&device->wide_heads, 1))
        return EXPHIL_E_UNSUPPORTED;
    snprintf(text, sizeof text, "cuda:%d: heads of head_width %lld: at most %d here", device->ordinal,
             (long long)heads->width, (int)HEADS_WIDEST);
    device->host.log(device->host.context, EXPHIL_LOG_WARNING, text);
    return EXPHIL_E_UNSUPPORTED;
}

static exphil_status query(xph_device *device, xph_op op, void *args, xph_op_info *info)
{
    XPH_ON(device);
    uint32_t bit;
    xph_cudnn_for(device, NULL);
    const xph_cuda_candidate *candidate = xph_cuda_choose(op, args, info->refused, &bit);
    xph_cudnn_for(NULL, NULL);
    if (!candidate) return no_kernel((xph_cuda_device *)device, op, args);
    *info = (xph_op_info){.kernel = (const xph_kernel *)candidate,
                          .name = xph_blaslt_name(device, candidate, args),
                          .packed_bytes = xph_cuda_packed_bytes(op, args),
                          .saved_bytes = op == XPH_OP_SCAN ? xph_scan_saved_bytes(args) : 0,
                          .draws = op == XPH_OP_SAMPLE,
                          .products = op == XPH_OP_SCAN && ((const xph_scan_args *)args)->step.rows > 0,
                          .sums = op == XPH_OP_SCAN_GRAD || op == XPH_OP_CONV_GRAD || op == XPH_OP_NORM_GRAD,
                          .refused = info->refused,
                          .candidate = bit};
    if (candidate->scratch_bytes) info->scratch_bytes = candidate->scratch_bytes(args);
    return EXPHIL_OK;
}

/* A launch that failed may be half in a recording. */
static exphil_status not_done(xph_cuda_stream *stream, atomic_int *told, const char *why, const char *name)
{
    xph_cuda_device *device = (xph_cuda_device *)stream->base.device;
    char text[160];
    if (stream->recording) stream->spoilt = 1;
    if (atomic_exchange(told, 1)) return EXPHIL_E_UNSUPPORTED;
    snprintf(text, sizeof text, "cuda:%d: %s %s; other kernels do it", device->ordinal, why, name);
    device->host.log(device->host.context, EXPHIL_LOG_WARNING, text);
    return EXPHIL_E_UNSUPPORTED;
}

static exphil_status no_room(xph_cuda_stream *stream, const char *name)
{
    return not_done(stream, &((xph_cuda_device *)stream->base.device)->no_room, "no room for the clusters of",
                    name);
}

/* What fails while it is recorded is tried again unrecorded, and reported then. */
static exphil_status run(xph_stream *stream, const xph_kernel *kernel, const void *args)
{
    XPH_ON(stream->device);
    const xph_cuda_candidate *candidate = (const xph_cuda_candidate *)kernel;
    xph_cudnn_for(stream->device, stream);
    RANGE_BEGIN(candidate->name);
    int code = candidate->launch(args, ((xph_cuda_stream *)stream)->stream);
    RANGE_END();
    xph_cudnn_for(NULL, NULL);
    if (code == XPH_CUDA_REFUSED) return EXPHIL_E_UNSUPPORTED;
    if (code == XPH_CUDA_NO_ROOM) return no_room((xph_cuda_stream *)stream, candidate->name);
    return xph_cuda_told(stream->device, (cudaError_t)code, candidate->name,
                         ((xph_cuda_stream *)stream)->recording ? EXPHIL_LOG_DEBUG : EXPHIL_LOG_ERROR);
}

/* EXPHIL_CUDA_JOIN=none: never, to compare. */
static int32_t joins(xph_device *device, const xph_joined_op *calls, int64_t count)
{
    XPH_ON(device);
    return !is_none(join_variable) && xph_joined_fits(calls, count);
}

static exphil_status run_joined(xph_stream *base, const xph_joined_op *calls, int64_t count,
                                const xph_download *results, int64_t result_count)
{
    static const char name[] = "joined_step";
    xph_cuda_stream *stream = (xph_cuda_stream *)base;
    XPH_ON(base->device);
    RANGE_BEGIN(name);
    int code = xph_joined_run(calls, count, results, result_count, stream->stream);
    RANGE_END();
    if (code == XPH_CUDA_NO_ROOM) return no_room(stream, name);
    if (code == XPH_CUDA_REFUSED)
        return not_done(stream, &((xph_cuda_device *)base->device)->no_join,
                        "what was planned does not fit the", name);
    return xph_cuda_told(base->device, (cudaError_t)code, name,
                         stream->recording ? EXPHIL_LOG_DEBUG : EXPHIL_LOG_ERROR);
}

/* ---- the table ---- */

static int32_t native_code(const xph_device *device)
{
    return atomic_load(&((xph_cuda_device *)(uintptr_t)device)->native_code);
}

static size_t stream_bytes(const xph_device *device, uint32_t flags)
{
    return flags & XPH_STREAM_NET ? xph_blaslt_bytes(device) : 0;
}

static const xph_backend backend = {
    .struct_size = sizeof(xph_backend),
    .abi = XPH_BACKEND_ABI,
    .core_version = EXPHIL_VERSION,
    .name = "cuda",
    .build_id = XPH_BUILD_ID,
    .precisions = 1u << EXPHIL_PRECISION_F32 | 1u << EXPHIL_PRECISION_TF32 | 1u << EXPHIL_PRECISION_BF16 |
                  1u << EXPHIL_PRECISION_F16,
    .device_count = device_count,
    .device_info = device_info,
    .device_open = device_open,
    .device_close = device_close,
    .alloc = xph_cuda_alloc,
    .free = xph_cuda_free,
    .host_alloc = xph_cuda_host_alloc,
    .host_free = xph_cuda_host_free,
    .memory_info = xph_cuda_memory_info,
    .stream_create = xph_cuda_stream_create,
    .stream_destroy = xph_cuda_stream_destroy,
    .upload = xph_cuda_move,
    .download = xph_cuda_move,
    .copy = xph_cuda_move,
    .zero = xph_cuda_zero,
    .stream_wait = xph_cuda_stream_wait,
    .event_create = xph_cuda_event_create,
    .event_destroy = xph_cuda_event_destroy,
    .event_mark = xph_cuda_event_mark,
    .event_wait = xph_cuda_event_wait,
    .stream_follow = xph_cuda_stream_follow,
    .event_elapsed = xph_cuda_event_elapsed,
    .record_begin = xph_cuda_record_begin,
    .record_end = xph_cuda_record_end,
    .replay = xph_cuda_replay,
    .graph_destroy = xph_cuda_graph_destroy,
    .query = query,
    .run = run,
    .native_code = native_code,
    .alloc_bytes = xph_cuda_rounded,
    .stream_bytes = stream_bytes,
    .memory_free = xph_cuda_memory_free,
    .stream_wrap = xph_cuda_stream_wrap,
    .comm_id = xph_cuda_comm_id,
    .comm_open = xph_cuda_comm_open,
    .comm_reduce = xph_cuda_comm_reduce,
    .comm_state = xph_cuda_comm_state,
    .comm_abort = xph_cuda_comm_abort,
    .comm_close = xph_cuda_comm_close,
    .event_done = xph_cuda_event_done,
    .word_set = xph_cuda_word_set,
    .stream_native = xph_cuda_stream_native,
    .tune = xph_cuda_tune,
    .joins = joins,
    .run_joined = run_joined,
};

/* With the memory, whose allocations are ordered in one. */
static exphil_status open_streams(xph_cuda_device *device)
{
    exphil_status status = xph_cuda_memory_open(device);
    if (status < 0) return status;
    status = xph_cuda_check(&device->base, cudaStreamCreateWithFlags(&device->words, cudaStreamNonBlocking),
                            "a stream for words");
    if (status < 0) xph_cuda_memory_close(device);
    return status;
}

static exphil_status device_open(const xph_host *host, int32_t ordinal, xph_device **device,
                                 exphil_error *error)
{
    if (host->abi != XPH_BACKEND_ABI || host->struct_size < sizeof *host)
        return xph_cuda_fail(error, EXPHIL_E_VERSION, 0,
                             "cuda: host table of version %u, this backend has %u", (unsigned)host->abi,
                             XPH_BACKEND_ABI);
    xph_cuda_device *made = host->alloc(host->context, sizeof *made);
    if (!made) return xph_cuda_fail(error, EXPHIL_E_MEMORY, 0, "cuda: could not get %zu bytes", sizeof *made);
    memset(made, 0, sizeof *made);
    made->base.backend = &backend;
    made->host = *host;
    made->ordinal = ordinal;
    exphil_status status = find_device(made, error);
    if (status >= 0) status = xph_cuda_begin(made, error);
    if (status >= 0) {
        XPH_ON(&made->base);
        tell_odd(made, overlap_variable);
        tell_odd(made, join_variable);
        find_overlap(made);
        status = open_streams(made);
        if (status < 0) xph_cuda_fail(error, status, 0, "cuda:%d gave no stream", ordinal);
        if (status >= 0) {
            status = xph_blaslt_open(made, error);
            if (status < 0) {
                cudaStreamDestroy(made->words);
                xph_cuda_memory_close(made);
            }
        }
        if (status >= 0) xph_cudnn_open(made);
    }
    if (status < 0) {
        host->free(host->context, made, sizeof *made);
        return status;
    }
    *device = &made->base;
    return EXPHIL_OK;
}

/* The one name that a plugin shows; inside libexphil, where the build names it otherwise, nobody outside sees it. */
__attribute__((visibility("default"))) const xph_backend *xph_backend_query(uint32_t abi,
                                                                            const xph_host *host)
{
    (void)host;
    return abi == XPH_BACKEND_ABI ? &backend : NULL;
}
