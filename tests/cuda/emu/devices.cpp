/* Devices of the emulated runtime, their contexts, and which of them a thread has. */
#include "calls.h"

namespace
{

using namespace emu;

/* EXPHIL_EMULATED_GPUS: how many a program finds; of them those that CUDA_VISIBLE_DEVICES numbers. */
int devices_of_environment()
{
    const char *count = getenv("EXPHIL_EMULATED_GPUS"), *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!count) return 1;
    const long all = strtol(count, nullptr, 10);
    int seen = 0;
    for (const char *at = visible; at && *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] != 0)) {
        char *end;
        const long which = strtol(at, &end, 10);
        if (end == at || which < 0 || which >= all) break;
        seen++;
    }
    return visible ? seen : static_cast<int>(all);
}

int device_count = devices_of_environment();
bool no_entries; /* of the driver */

/* A thread's contexts, primary ones all: the last is current. Without one a call takes that of the device which the thread has
 * set, which is made then. */
constexpr int NO_CONTEXT = -1, MOST_DEVICES = 64, DEPTH = 16;
thread_local int set_device, contexts[DEPTH] = {NO_CONTEXT}, context_depth;
bool has_context[MOST_DEVICES], exclusive[MOST_DEVICES];

cudaError_t make_context(int device)
{
    if (exclusive[device]) return cudaErrorDevicesUnavailable;
    has_context[device] = true;
    return cudaSuccess;
}

}  // namespace

/* What kernels of clusters have inside unless emu_code says otherwise. */
int emu::code = emu::CLUSTER_CODE;
int emu::multiprocessors = emu::MULTIPROCESSORS;
cudaError_t emu::device_error = device_count ? cudaSuccess : cudaErrorNoDevice;
size_t emu::memory_limit;
thread_local cudaError_t emu::last_error;

int emu::current_device()
{
    return contexts[context_depth] == NO_CONTEXT ? set_device : contexts[context_depth];
}

cudaError_t emu::need_context()
{
    if (contexts[context_depth] != NO_CONTEXT) return cudaSuccess;
    const cudaError_t error = make_context(set_device);
    if (!error) contexts[context_depth] = set_device;
    return error;
}

cudaError_t emu::refusal()
{
    if (device_error) return device_error;
    return emu::failed ? cudaErrorLaunchFailure : cudaSuccess;
}

/* ---- errors ---- */

cudaError_t cudaPeekAtLastError(void)
{
    return emu::failed ? cudaErrorLaunchFailure : last_error;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = cudaPeekAtLastError();
    last_error = cudaSuccess;
    return error;
}

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 0;
    return ask([&]() -> cudaError_t {
        *count = device_count;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDevice(int *device)
{
    return ask([&]() -> cudaError_t {
        *device = current_device();
        return cudaSuccess;
    });
}

cudaError_t cudaSetDevice(int device)
{
    return ask([&]() -> cudaError_t {
        if (device < 0 || device >= device_count) return cudaErrorInvalidDevice;
        const cudaError_t error = make_context(device);
        if (!error) set_device = contexts[context_depth] = device;
        return error;
    });
}

/* As one of compute capability 9.0, but small. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    return ask([&]() -> cudaError_t {
        if (device < 0 || device >= device_count) return cudaErrorInvalidDevice;
        cudaDeviceProp p = {};
        memcpy(p.name, "Emulated GPU", sizeof "Emulated GPU");
        p.totalGlobalMem = memory_limit ? memory_limit : size_t(1) << 32;
        p.sharedMemPerBlock = 48 * 1024;
        p.sharedMemPerBlockOptin = shared_limit();
        p.sharedMemPerMultiprocessor = 228 * 1024;
        p.totalConstMem = 64 * 1024;
        p.major = 9;
        p.multiProcessorCount = multiprocessors;
        p.warpSize = 32;
        p.regsPerBlock = p.regsPerMultiprocessor = 65536;
        p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
        p.maxThreadsDim[2] = 64;
        p.maxGridSize[0] = 0x7fffffff;
        p.maxGridSize[1] = p.maxGridSize[2] = 0xffff;
        p.maxThreadsPerMultiProcessor = 2048;
        p.maxBlocksPerMultiProcessor = 32;
        p.l2CacheSize = 50 << 20;
        p.memoryBusWidth = 5120;
        p.asyncEngineCount = p.concurrentKernels = p.canMapHostMemory = p.unifiedAddressing = 1;
        p.streamPrioritiesSupported = p.memoryPoolsSupported = 1;
        p.pciBusID = 1 + device;
        *properties = p;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    cudaDeviceProp p;
    cudaError_t error = cudaGetDeviceProperties(&p, device);
    if (error) return error;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
        return *value = p.maxThreadsPerBlock, cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        return *value = static_cast<int>(p.sharedMemPerBlock), cudaSuccess;
    case cudaDevAttrWarpSize:
        return *value = p.warpSize, cudaSuccess;
    case cudaDevAttrClockRate:
        return *value = 1000000, cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
        return *value = p.multiProcessorCount, cudaSuccess;
    case cudaDevAttrL2CacheSize:
        return *value = p.l2CacheSize, cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
        return *value = p.major, cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        return *value = p.minor, cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        return *value = static_cast<int>(p.sharedMemPerBlockOptin), cudaSuccess;
    }
    return last_error = cudaErrorInvalidValue;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = device_error == cudaErrorInsufficientDriver ? 11040 : CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* A context is the number of its device, and one. */
namespace
{

/* What its functions say is no last error of the run-time's. */
template <class Body> int driver(Body body)
{
    const cudaError_t before = last_error, error = ask(ALWAYS, body);
    last_error = before;
    return error;
}

void *handle_of(int device)
{
    return reinterpret_cast<void *>(static_cast<uintptr_t>(device + 1));
}
int retain(void **context, int device)
{
    return driver([&]() -> cudaError_t {
        if (device < 0 || device >= device_count) return cudaErrorInvalidDevice;
        *context = handle_of(device);
        return make_context(device);
    });
}
int push(void *context)
{
    return driver([&]() -> cudaError_t {
        const int device = static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1;
        if (device < 0 || device >= MOST_DEVICES || !has_context[device] || context_depth + 1 == DEPTH)
            return cudaErrorInvalidValue;
        contexts[++context_depth] = device;
        return cudaSuccess;
    });
}
int pop(void **context)
{
    return driver([&]() -> cudaError_t {
        if (!context_depth) return cudaErrorInvalidValue;
        *context = handle_of(contexts[context_depth--]);
        return cudaSuccess;
    });
}
int current(void **context)
{
    return driver([&]() -> cudaError_t {
        const int device = contexts[context_depth];
        *context = device == NO_CONTEXT ? nullptr : handle_of(device);
        return cudaSuccess;
    });
}

}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned, unsigned long long,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    *function = strcmp(name, "cuDevicePrimaryCtxRetain") == 0 ? reinterpret_cast<void *>(retain)
                : strcmp(name, "cuCtxPushCurrent") == 0       ? reinterpret_cast<void *>(push)
                : strcmp(name, "cuCtxPopCurrent") == 0        ? reinterpret_cast<void *>(pop)
                : strcmp(name, "cuCtxGetCurrent") == 0        ? reinterpret_cast<void *>(current)
                                                              : nullptr;
    if (no_entries) *function = nullptr;
    *found = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

/* ---- control ---- */

int emu_device(void)
{
    return current_device();
}

void emu_devices(int count, int error)
{
    emu::guard held;
    device_count = count;
    device_error = static_cast<cudaError_t>(error);
}

int emu_has_context(int device)
{
    emu::guard held;
    return has_context[device];
}

void emu_exclusive(int device, int on)
{
    emu::guard held;
    exclusive[device] = on != 0;
}

void emu_entries(int on)
{
    emu::guard held;
    no_entries = !on;
}

void emu_code(int processor)
{
    emu::guard held;
    emu::code = processor;
}

void emu_memory(size_t bytes)
{
    emu::guard held;
    memory_limit = bytes;
}
