/* Memory of a device: freed blocks are kept by size and reused, so that making and dropping nets, sessions
 * and trainers needs no new memory from the driver. */
#include "device.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SMALL_ROUND = 512, LARGE = 1 << 20, LARGE_ROUND = 1 << 21 };

/* 0: too much. */
size_t xph_cuda_rounded(size_t bytes)
{
    size_t to = bytes > LARGE ? LARGE_ROUND : SMALL_ROUND;
    if (bytes == 0) bytes = 1;
    return bytes > SIZE_MAX / 2 ? 0 : (bytes + to - 1) / to * to;
}

static xph_cuda_device *of(xph_device *device)
{
    return (xph_cuda_device *)device;
}

exphil_status xph_cuda_memory_open(xph_cuda_device *device)
{
    xph_cuda_memory *memory = &device->memory;
    if (pthread_mutex_init(&memory->lock, NULL) != 0) return EXPHIL_E_MEMORY;
    memory->limit = device->host.memory_limit_bytes;
    cudaError_t code = cudaStreamCreateWithFlags(&memory->stream, cudaStreamNonBlocking);
    if (code) pthread_mutex_destroy(&memory->lock);
    return xph_cuda_check(&device->base, code, "a stream for memory");
}

static void give_back(const xph_cuda_device *device, void *address)
{
    if (device->memory.ordered)
        cudaFreeAsync(address, device->memory.stream);
    else
        cudaFree(address);
}

static void give_back_kept(xph_cuda_device *device)
{
    xph_cuda_memory *memory = &device->memory;
    for (int64_t i = 0; i < memory->count; i++) give_back(device, memory->kept[i].address);
    memory->count = 0;
    cudaStreamSynchronize(memory->stream);
}

void xph_cuda_memory_close(xph_cuda_device *device)
{
    xph_cuda_memory *memory = &device->memory;
    give_back_kept(device);
    cudaStreamDestroy(memory->stream);
    if (memory->kept)
        device->host.free(device->host.context, memory->kept,
                          (size_t)memory->capacity * sizeof *memory->kept);
    pthread_mutex_destroy(&memory->lock);
}

static void *take_kept(xph_cuda_memory *memory, size_t bytes)
{
    for (int64_t i = memory->count - 1; i >= 0; i--) {
        if (memory->kept[i].bytes != bytes) continue;
        void *address = memory->kept[i].address;
        memory->kept[i] = memory->kept[--memory->count];
        return address;
    }
    return NULL;
}

static cudaError_t ask(const xph_cuda_device *device, size_t bytes, void **address)
{
    if (!device->memory.ordered) return cudaMalloc(address, bytes);
    cudaError_t code = cudaMallocAsync(address, bytes, device->memory.stream);
    return code ? code : cudaStreamSynchronize(device->memory.stream);
}

/* Under the lock. */
static cudaError_t ask_driver(xph_cuda_device *device, size_t bytes, void **address)
{
    cudaError_t code = ask(device, bytes, address);
    if (code != cudaErrorMemoryAllocation || !device->memory.count) return code;
    cudaGetLastError();
    give_back_kept(device);
    return ask(device, bytes, address);
}

static void tell_limit(const xph_cuda_device *device, size_t used, size_t bytes)
{
    char text[160];
    snprintf(text, sizeof text, "memory limit of %zu bytes: %zu are in use, %zu more were asked for",
             device->memory.limit, used, bytes);
    device->host.log(device->host.context, EXPHIL_LOG_WARNING, text);
}

exphil_status xph_cuda_alloc(xph_device *base, size_t bytes, void **address)
{
    xph_cuda_device *device = of(base);
    xph_cuda_memory *memory = &device->memory;
    size_t whole = xph_cuda_rounded(bytes);
    cudaError_t code = cudaSuccess;
    if (!whole) return EXPHIL_E_MEMORY;
    XPH_ON(base);
    pthread_mutex_lock(&memory->lock);
    void *got = NULL;
    bool fits = !memory->limit || (whole <= memory->limit && memory->used <= memory->limit - whole);
    if (fits) {
        memory->requests++;
        got = take_kept(memory, whole);
        if (got)
            memory->reused++;
        else
            code = ask_driver(device, whole, &got);
    }
    if (fits && !code) {
        memory->used += whole;
        if (memory->used > memory->peak) memory->peak = memory->used;
    }
    size_t used = memory->used;
    pthread_mutex_unlock(&memory->lock);
    if (!fits) tell_limit(device, used, whole);
    if (!fits) return EXPHIL_E_MEMORY;
    if (code) cudaGetLastError();
    if (code == cudaErrorMemoryAllocation) return EXPHIL_E_MEMORY;
    if (code) return xph_cuda_check(base, code, "memory");
    *address = got;
    return EXPHIL_OK;
}

static bool keep(xph_cuda_device *device, void *address, size_t bytes)
{
    xph_cuda_memory *memory = &device->memory;
    const xph_host *host = &device->host;
    if (memory->count == memory->capacity) {
        int64_t capacity = memory->capacity ? 2 * memory->capacity : 64;
        xph_block_kept *more = host->alloc(host->context, (size_t)capacity * sizeof *more);
        if (!more) return false;
        if (memory->kept) {
            memcpy(more, memory->kept, (size_t)memory->count * sizeof *more);
            host->free(host->context, memory->kept, (size_t)memory->capacity * sizeof *more);
        }
        memory->kept = more;
        memory->capacity = capacity;
    }
    memory->kept[memory->count++] = (xph_block_kept){address, bytes};
    return true;
}

void xph_cuda_free(xph_device *base, void *address, size_t bytes)
{
    xph_cuda_device *device = of(base);
    size_t whole = xph_cuda_rounded(bytes);
    if (!address) return;
    XPH_ON(base);
    pthread_mutex_lock(&device->memory.lock);
    device->memory.used -= whole;
    if (!keep(device, address, whole)) give_back(device, address);
    pthread_mutex_unlock(&device->memory.lock);
}

exphil_status xph_cuda_host_alloc(xph_device *device, size_t bytes, void **address)
{
    xph_cuda_memory *memory = &of(device)->memory;
    XPH_ON(device);
    cudaError_t code = cudaHostAlloc(address, bytes ? bytes : 1, cudaHostAllocPortable);
    if (code == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return EXPHIL_E_MEMORY; /* for the caller to tell */
    }
    if (code) return xph_cuda_check(device, code, "pinned memory");
    pthread_mutex_lock(&memory->lock);
    memory->pinned += bytes;
    if (memory->pinned > memory->pinned_peak) memory->pinned_peak = memory->pinned;
    pthread_mutex_unlock(&memory->lock);
    return EXPHIL_OK;
}

void xph_cuda_host_free(xph_device *device, void *address, size_t bytes)
{
    xph_cuda_memory *memory = &of(device)->memory;
    if (!address) return;
    XPH_ON(device);
    cudaFreeHost(address);
    pthread_mutex_lock(&memory->lock);
    memory->pinned -= bytes;
    pthread_mutex_unlock(&memory->lock);
}

/* Blocks that are kept are given back when the driver has nothing else. */
uint64_t xph_cuda_memory_free(xph_device *device)
{
    xph_cuda_memory *memory = &of(device)->memory;
    size_t room = 0, total = 0;
    XPH_ON(device);
    if (cudaMemGetInfo(&room, &total)) {
        cudaGetLastError();
        return 0;
    }
    pthread_mutex_lock(&memory->lock);
    for (int64_t i = 0; i < memory->count; i++) room += memory->kept[i].bytes;
    size_t left = memory->limit > memory->used ? memory->limit - memory->used : 0;
    if (memory->limit && left < room) room = left;
    pthread_mutex_unlock(&memory->lock);
    return room;
}

void xph_cuda_memory_info(xph_device *device, exphil_memory_info *info)
{
    xph_cuda_memory *memory = &of(device)->memory;
    pthread_mutex_lock(&memory->lock);
    info->device_used_bytes = memory->used;
    info->device_peak_bytes = memory->peak;
    info->device_requests = memory->requests;
    info->device_reused = memory->reused;
    info->pinned_used_bytes = memory->pinned;
    info->pinned_peak_bytes = memory->pinned_peak;
    pthread_mutex_unlock(&memory->lock);
}
