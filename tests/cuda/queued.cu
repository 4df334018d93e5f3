/* See queued.h. */
#include "launch.cuh"

#include "emu_control.h"
#include "queued.h"

#include <string.h>

namespace
{

struct call {
    void (*function)(const void *);
    alignas(16) unsigned char data[256];
};

__global__ void called(call c)
{
    XPH_ENTER();
    c.function(c.data);
}

constexpr int THREADS = 64;

__global__ void queued(queued_args a)
{
    XPH_ENTER();
    const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < a.count) a.to[i] = fmaf(a.from[i], a.scale, a.shift);
}

__global__ void queued_shared(float *to, int bytes)
{
    XPH_ENTER();
    XPH_SHARED_DYNAMIC(unsigned char, shared);
    shared[bytes - 1] = 1;
    *to += static_cast<float>(shared[bytes - 1]);
}

}  // namespace

int emu_call(void *stream, void (*function)(const void *), const void *data, size_t bytes)
{
    call c = {function, {}};
    if (bytes > sizeof c.data) return cudaErrorInvalidValue;
    memcpy(c.data, data, bytes);
    XPH_LAUNCH(called, dim3(1), dim3(1), 0, static_cast<cudaStream_t>(stream), c);
    return cudaGetLastError();
}

int emu_capturing(void *stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status);
    return status != cudaStreamCaptureStatusNone;
}

void emu_spoil_capture(void *stream)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
    cudaGetLastError();
}

cudaError_t queued_launch(const queued_args *a, cudaStream_t stream)
{
    const unsigned blocks = static_cast<unsigned>((a->count + THREADS - 1) / THREADS);
    XPH_LAUNCH(queued, dim3(blocks), dim3(THREADS), 0, stream, *a);
    return cudaGetLastError();
}

cudaError_t queued_shared_launch(float *to, int bytes, int allowed, cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    if (allowed)
        error = cudaFuncSetAttribute(queued_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, allowed);
    if (error) return error;
    XPH_LAUNCH(queued_shared, dim3(1), dim3(1), static_cast<size_t>(bytes), stream, to, bytes);
    return cudaGetLastError();
}
