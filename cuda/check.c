/* What every C file of this folder needs of CUDA: the device of a thread, and what CUDA says as a status, a line of the log
 * or an error. Calls no other file here. */
#include "device.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- the device of a thread ---- */

enum { ENTRY_VERSION = 12000 };

/* Of the driver; a CUresult is the cudaError_t of that number. */
static int (*context_retain)(void **context, int ordinal);
static int (*context_push)(void *context);
static int (*context_pop)(void **context);
static int (*context_current)(void **context);

static void *entry(const char *name)
{
    void *at = NULL;
#if CUDART_VERSION >= 12000
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
#endif
#if CUDART_VERSION >= 12050
    cudaError_t code = cudaGetDriverEntryPointByVersion(name, &at, ENTRY_VERSION, cudaEnableDefault, &found);
#elif CUDART_VERSION >= 12000
    cudaError_t code = cudaGetDriverEntryPoint(name, &at, cudaEnableDefault, &found);
#else
    cudaError_t code = cudaGetDriverEntryPoint(name, &at, cudaEnableDefault);
#endif
    if (code) cudaGetLastError();
#if CUDART_VERSION >= 12000
    if (found != cudaDriverEntryPointSuccess) at = NULL;
#endif
    return code ? NULL : at;
}

/* A context is held until the process ends, as by CUDA's run-time: libraries keep what they loaded into it. It is asked for at
 * every opening, for the host may have reset the device since. */
exphil_status xph_cuda_begin(xph_cuda_device *device, exphil_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const int ordinal = device->ordinal;
    int code = 0;
    pthread_mutex_lock(&lock);
    if (!context_pop) {
        *(void **)(&context_retain) = entry("cuDevicePrimaryCtxRetain");
        *(void **)(&context_push) = entry("cuCtxPushCurrent");
        *(void **)(&context_current) = entry("cuCtxGetCurrent");
        *(void **)(&context_pop) =
            context_retain && context_push && context_current ? entry("cuCtxPopCurrent") : NULL;
    }
    const bool asked = context_pop != NULL;
    pthread_mutex_unlock(&lock);
    device->context = NULL;
    if (asked) code = context_retain(&device->context, ordinal);
    if (code) device->context = NULL;
    if (!code) return EXPHIL_OK;
    return xph_cuda_fail(error, code == cudaErrorMemoryAllocation ? EXPHIL_E_MEMORY : EXPHIL_E_DEVICE, code,
                         "cuda:%d cannot be used by this process: %s (%s)", ordinal,
                         cudaGetErrorName((cudaError_t)code), cudaGetErrorString((cudaError_t)code));
}

/* A context of the thread's own on the same device is not ours. Without the driver's functions, or where it refuses, the device of
 * the thread is set, and set back. */
xph_cuda_scope xph_cuda_enter(const xph_device *base)
{
    const xph_cuda_device *device = (const xph_cuda_device *)base;
    xph_cuda_scope scope = {0, 0, 0};
    void *now = NULL;
    if (device->context) {
        if (context_current(&now) == 0 && now == device->context) return scope;
        scope.pushed = context_push(device->context) == 0;
        if (scope.pushed) return scope;
    }
    if (cudaGetDevice(&scope.before) != cudaSuccess)
        cudaGetLastError();
    else if (!device->context && scope.before == device->ordinal)
        return scope;
    scope.changed = cudaSetDevice(device->ordinal) == cudaSuccess;
    return scope;
}

void xph_cuda_leave(const xph_cuda_scope *scope)
{
    void *ours;
    if (scope->pushed) context_pop(&ours);
    if (scope->changed && cudaSetDevice(scope->before)) cudaGetLastError();
}

/* ---- what CUDA says ---- */

exphil_status xph_cuda_told(const xph_device *device, cudaError_t code, const char *what,
                            exphil_log_level level)
{
    char text[256];
    xph_cuda_device *own = (xph_cuda_device *)(uintptr_t)device;
    const xph_host *host = &own->host;
    if (!code) return EXPHIL_OK;
    cudaGetLastError(); /* or the host's next call of CUDA would find it */
    snprintf(text, sizeof text, "cuda:%d: %s: %s (%s)", own->ordinal, what, cudaGetErrorName(code),
             cudaGetErrorString(code));
    host->log(host->context, level, text);
    if (code == cudaErrorMemoryAllocation) return EXPHIL_E_MEMORY;
    atomic_store(&own->native_code, (int)code);
    return EXPHIL_E_DEVICE;
}

exphil_status xph_cuda_check(const xph_device *device, cudaError_t code, const char *what)
{
    return xph_cuda_told(device, code, what, EXPHIL_LOG_ERROR);
}

exphil_status xph_cuda_fail(exphil_error *error, exphil_status status, int native, const char *format, ...)
{
    va_list list;
    if (!error) return status;
    error->status = status;
    error->native_code = native;
    va_start(list, format);
    vsnprintf(error->message, sizeof error->message, format, list);
    va_end(list);
    return status;
}
