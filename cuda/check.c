/* What every C file of this folder needs of CUDA: the device of a thread, and what CUDA says as a status, a line of the log
 * or an error. Calls no other file here. */
#include "device.h"

#include <stdarg.h>
#include <stdio.h>

xph_cuda_scope xph_cuda_enter(const xph_device *device)
{
    xph_cuda_scope scope = {0, 0};
    int wanted = ((const xph_cuda_device *)device)->ordinal;
    if (cudaGetDevice(&scope.before) == cudaSuccess && scope.before != wanted)
        scope.changed = cudaSetDevice(wanted) == cudaSuccess;
    return scope;
}

void xph_cuda_leave(const xph_cuda_scope *scope)
{
    if (scope->changed) cudaSetDevice(scope->before);
}

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
