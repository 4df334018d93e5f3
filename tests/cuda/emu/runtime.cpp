/* The CUDA runtime of the emulated GPU: what is checked at the call, and what is then enqueued. */
#include "calls.h"

/* cuda/backend.c, where it is there. */
extern "C" int xph_cuda_overlap __attribute__((weak));

namespace
{

using namespace emu;

CUstream_st *null_stream; /* one of the objects, once it was used */
int64_t failing_allocation;
/* ---- calls ---- */

cudaError_t strange(const char *what)
{
    emu::fail("no such %s: it was never made, or it is gone", what);
    return cudaErrorInvalidResourceHandle;
}

cudaError_t implicit_wait()
{
    cudaError_t error = cudaSuccess;
    counts.null_streams++;
    any_stream([&](CUstream_st *s) {
        if (s->capture && s->capture->origin->blocking)
            error = invalidate(s->capture, cudaErrorStreamCaptureImplicit);
        return false;
    });
    return error;
}

/* body(the stream of a handle). */
template <class Body> cudaError_t with_stream(cudaStream_t handle, Body body)
{
    return call([&]() -> cudaError_t {
        if (!handle) {
            if (!null_stream) null_stream = make_object<CUstream_st>(STREAM);
            cudaError_t error = implicit_wait();
            return error ? error : body(null_stream);
        }
        if (!is_object(handle, STREAM) || handle->destroyed) return strange("stream");
        return body(handle);
    });
}

template <class Body> cudaError_t with_event(cudaEvent_t event, Body body)
{
    return call([&]() -> cudaError_t { return is_object(event, EVENT) ? body() : strange("event"); });
}

bool allocation_fails()
{
    return failing_allocation && !--failing_allocation;
}

cudaError_t allocate(void **address, size_t bytes)
{
    size_t limit = memory_limit ? memory_limit : size_t(1) << 32;
    counts.mallocs++;
    *address = nullptr;
    if (allocation_fails()) return cudaErrorMemoryAllocation;
    if (!bytes) return cudaSuccess;
    if (bytes <= limit && emu::memory_taken() <= limit - bytes)
        *address = emu::take_memory(bytes, 256, current_device());
    return *address ? cudaSuccess : cudaErrorMemoryAllocation;
}

bool right_kind(cudaMemcpyKind kind, bool to_device, bool from_device)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
        return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
        return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
        return to_device && from_device;
    case cudaMemcpyDefault:
        return true;
    }
    return false;
}

cudaError_t enqueue_copy(CUstream_st *s, void *to, const void *from, size_t bytes, bool staged)
{
    operation *o = make_operation(COPY, staged ? bytes : 0);
    if (staged) memcpy(o->payload(), from, bytes);
    o->to = to;
    o->from = staged ? o->payload() : from;
    o->bytes = bytes;
    counts.copies++;
    return enqueue(s, o);
}

}  // namespace

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
    return call([&]() -> cudaError_t {
        *total = memory_limit ? memory_limit : size_t(1) << 32;
        *unused = emu::memory_taken() < *total ? *total - emu::memory_taken() : 0;
        return cudaSuccess;
    });
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **address, size_t bytes)
{
    return call([&]() -> cudaError_t {
        cudaError_t error = no_capture();
        return error ? error : allocate(address, bytes);
    });
}

cudaError_t cudaFree(void *address)
{
    return call(ALWAYS, [&]() -> cudaError_t {
        cudaError_t error = no_capture();
        if (error || !address) return error;
        finish_all(current_device());
        counts.frees++;
        if (emu::give_memory(address)) return cudaSuccess;
        emu::fail("memory is freed that is none of the device");
        return cudaErrorInvalidValue;
    });
}

/* Its addresses are taken at once. */
cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream)
{
    return with_stream(stream, [&](CUstream_st *s) -> cudaError_t {
        if (s->capture) return invalidate(s->capture, cudaErrorStreamCaptureUnsupported);
        return allocate(address, bytes);
    });
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
    return with_stream(stream, [&](CUstream_st *s) -> cudaError_t {
        if (s->capture) return invalidate(s->capture, cudaErrorStreamCaptureUnsupported);
        if (!address) return cudaSuccess;
        operation *o = make_operation(FREE, 0);
        o->to = address;
        counts.frees++;
        return enqueue(s, o);
    });
}

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned flags)
{
    return call([&]() -> cudaError_t {
        cudaError_t error = no_capture();
        if (error) return error;
        *address = nullptr;
        if (flags & ~(cudaHostAllocPortable | cudaHostAllocMapped)) return cudaErrorInvalidValue;
        counts.pinned++;
        if (allocation_fails()) return cudaErrorMemoryAllocation;
        if (bytes) *address = emu::take_pinned(bytes);
        return !bytes || *address ? cudaSuccess : cudaErrorMemoryAllocation;
    });
}

cudaError_t cudaFreeHost(void *address)
{
    return call(ALWAYS, [&]() -> cudaError_t {
        cudaError_t error = no_capture();
        if (error || !address) return error;
        finish_all(current_device());
        if (emu::give_pinned(address)) return cudaSuccess;
        emu::fail("memory is freed that is not pinned");
        return cudaErrorInvalidValue;
    });
}

cudaError_t cudaHostGetDevicePointer(void **address, void *host, unsigned flags)
{
    return call([&]() -> cudaError_t {
        if (flags || emu::kind_of(host, 1) != emu::PINNED) return cudaErrorInvalidValue;
        *address = host;
        return cudaSuccess;
    });
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
    return call([&]() -> cudaError_t {
        emu::address_kind kind = emu::kind_of(address, 1);
        void *known = const_cast<void *>(address);
        if (kind == emu::DEVICE)
            *attributes = {cudaMemoryTypeDevice, emu::device_of(address), known, nullptr};
        else if (kind == emu::PINNED)
            *attributes = {cudaMemoryTypeHost, 0, known, known};
        else
            *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, known};
        return cudaSuccess;
    });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return with_stream(stream, [&](CUstream_st *s) -> cudaError_t {
        if (!bytes) return cudaSuccess;
        if (!reaches("target of a copy", to, bytes) || !reaches("source of a copy", from, bytes))
            return cudaErrorInvalidValue;
        emu::address_kind target = emu::kind_of(to, bytes), source = emu::kind_of(from, bytes);
        if (!right_kind(kind, target == emu::DEVICE, source == emu::DEVICE)) {
            emu::fail("a copy of the wrong kind, %d", static_cast<int>(kind));
            return cudaErrorInvalidValue;
        }
        bool pageable = target == emu::PAGEABLE || source == emu::PAGEABLE;
        if (pageable && s->capture) return invalidate(s->capture, cudaErrorStreamCaptureUnsupported);
        cudaError_t error = enqueue_copy(s, to, from, bytes, source == emu::PAGEABLE);
        if (!error && target == emu::PAGEABLE) finish(s);
        return error;
    });
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    return with_stream(stream, [&](CUstream_st *s) -> cudaError_t {
        if (!bytes) return cudaSuccess;
        if (!reaches("memory to set", to, bytes)) return cudaErrorInvalidValue;
        if (emu::kind_of(to, bytes) == emu::PAGEABLE) {
            emu::fail("memory to set is the host's");
            return cudaErrorInvalidValue;
        }
        operation *o = make_operation(SET, 0);
        o->to = to;
        o->value = value;
        o->bytes = bytes;
        counts.sets++;
        return enqueue(s, o);
    });
}

/* ---- streams ---- */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int)
{
    return call([&]() -> cudaError_t {
        if (flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
        CUstream_st *s = make_object<CUstream_st>(STREAM);
        s->device = current_device();
        s->blocking = !flags;
        s->tail = s->joined = -1;
        *stream = s;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return call(ALWAYS, [&]() -> cudaError_t {
        if (!is_object(stream, STREAM) || stream->destroyed) return strange("stream");
        if (stream->capture) {
            emu::fail("a stream is destroyed while it is captured");
            return cudaErrorInvalidResourceHandle;
        }
        stream->destroyed = true;
        if (!stream->first) forget(&stream->head);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return with_stream(stream, [&](CUstream_st *s) -> cudaError_t {
        counts.synchronisations++;
        counts.spins++;
        if (s->capture) return invalidate(s->capture, cudaErrorStreamCaptureUnsupported);
        finish(s);
        return cudaSuccess;
    });
}

/* A host that asks often enough comes to the end. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return with_stream(stream, [&](CUstream_st *s) -> cudaError_t {
        if (s->capture) return invalidate(s->capture, cudaErrorStreamCaptureUnsupported);
        if (!s->first) return cudaSuccess;
        advance(s);
        return cudaErrorNotReady;
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    return with_stream(stream, [&](CUstream_st *s) -> cudaError_t {
        return is_object(event, EVENT) ? wait_for(s, event->last) : strange("event");
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
    return with_stream(stream, [&](CUstream_st *s) -> cudaError_t {
        operation *o = make_operation(HOST, 0);
        o->function = function;
        o->to = data;
        return enqueue(s, o);
    });
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    return call([&]() -> cudaError_t {
        if (flags > (cudaEventBlockingSync | cudaEventDisableTiming)) return cudaErrorInvalidValue;
        *event = make_object<CUevent_st>(EVENT);
        (*event)->timed = !(flags & cudaEventDisableTiming);
        (*event)->blocking = flags & cudaEventBlockingSync;
        return cudaSuccess;
    });
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return call(ALWAYS, [&]() -> cudaError_t {
        if (!is_object(event, EVENT)) return strange("event");
        release(event->last);
        forget(&event->head);
        return cudaSuccess;
    });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return with_stream(stream, [&](CUstream_st *s) -> cudaError_t {
        return is_object(event, EVENT) ? record(event, s) : strange("event");
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return with_event(event, [&]() -> cudaError_t {
        counts.synchronisations++;
        counts.spins += !event->blocking;
        cudaError_t error = may_wait(event->last);
        if (!error && event->last) finish(event->last);
        return error;
    });
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return with_event(event, [&]() -> cudaError_t {
        cudaError_t error = may_wait(event->last);
        if (error || !event->last || event->last->done) return error;
        advance(event->last->by);
        return cudaErrorNotReady;
    });
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    return call([&]() -> cudaError_t {
        if (!is_object(start, EVENT) || !is_object(end, EVENT)) return strange("event");
        if (!start->timed || !end->timed || !start->last || !end->last) return cudaErrorInvalidResourceHandle;
        if (start->last->capture || end->last->capture) return cudaErrorInvalidResourceHandle;
        if (!start->last->done || !end->last->done) return cudaErrorNotReady;
        *milliseconds = static_cast<float>(end->last->at - start->last->at);
        return cudaSuccess;
    });
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    return with_stream(stream, [&](CUstream_st *s) -> cudaError_t {
        if (s == null_stream) return cudaErrorStreamCaptureUnsupported;
        if (s->capture) return cudaErrorInvalidValue;
        begin_capture(s, mode);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    *graph = nullptr;
    return call(ALWAYS, [&]() -> cudaError_t {
        if (!is_object(stream, STREAM) || stream->destroyed) return strange("stream");
        CUgraph_st *g = stream->capture;
        if (!g) return cudaErrorInvalidValue;
        if (g->origin != stream) return invalidate(g, cudaErrorStreamCaptureUnmatched);
        if (g->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(g->thread, pthread_self()))
            return cudaErrorStreamCaptureWrongThread;
        return end_capture(stream, graph);
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    return with_stream(stream, [&](CUstream_st *s) -> cudaError_t {
        *status = !s->capture           ? cudaStreamCaptureStatusNone
                  : s->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                        : cudaStreamCaptureStatusActive;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    return call([&]() -> cudaError_t {
        if (!is_object(graph, GRAPH) || graph->destroyed) return strange("graph");
        *exec = make_object<CUgraphExec_st>(EXEC);
        (*exec)->graph = graph;
        graph->refs++;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    return with_stream(stream,
                       [&](CUstream_st *) { return is_object(exec, EXEC) ? cudaSuccess : strange("graph"); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    return with_stream(stream, [&](CUstream_st *s) -> cudaError_t {
        if (!is_object(exec, EXEC)) return strange("graph");
        operation *o = make_operation(REPLAY, static_cast<size_t>(exec->graph->count));
        o->graph = exec->graph;
        o->graph->refs++;
        counts.graph_launches++;
        return enqueue(s, o);
    });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    return call([&]() -> cudaError_t {
        if (!is_object(graph, GRAPH) || graph->destroyed) return strange("graph");
        size_t found = 0, most = *count;
        for (int i = 0; i < graph->count; i++) {
            if (graph->nodes[i]->kind == WAIT) continue;
            if (nodes && found < most) nodes[found] = reinterpret_cast<cudaGraphNode_t>(graph->nodes[i]);
            found++;
        }
        *count = found;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return call(ALWAYS, [&]() -> cudaError_t {
        if (!is_object(graph, GRAPH) || graph->destroyed) return strange("graph");
        graph->destroyed = true;
        release(graph);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return call(ALWAYS, [&]() -> cudaError_t {
        if (!is_object(exec, EXEC)) return strange("graph");
        release(exec->graph);
        forget(&exec->head);
        return cudaSuccess;
    });
}

/* ---- kernels ---- */

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    return call([&]() -> cudaError_t {
        return emu::allow(kernel, attribute, value) ? cudaSuccess : cudaErrorInvalidValue;
    });
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel)
{
    return call([&]() -> cudaError_t {
        *attributes = {0, static_cast<int>(emu::most_shared_of(kernel)), code, CLUSTER_CODE};
        return cudaSuccess;
    });
}

void emu::enqueue_launch(const launch_shape &shape, const void *closure, size_t bytes, cudaStream_t stream)
{
    with_stream(stream, [&](CUstream_st *s) -> cudaError_t {
        if (s != null_stream && s->device != current_device()) return cudaErrorInvalidResourceHandle;
        if (code < CLUSTER_CODE && &xph_cuda_overlap && xph_cuda_overlap)
            fail("%s: kernels overlap whose code does not wait for the one before", shape.name);
        if (!fits(shape)) {
            fail("%s: a launch of this size is refused", shape.name);
            return cudaErrorInvalidConfiguration;
        }
        operation *o = make_operation(LAUNCH, bytes);
        o->shape = shape;
        memcpy(o->payload(), closure, bytes);
        counts.launches++;
        return enqueue(s, o);
    });
}

/* ---- control ---- */

int emu_meet(void *stream, int (*meet)(const void *), void (*gone)(const void *), const void *data,
             size_t bytes)
{
    return with_stream(static_cast<cudaStream_t>(stream), [&](CUstream_st *s) -> cudaError_t {
        operation *o = make_operation(MEET, bytes);
        memcpy(o->payload(), data, bytes);
        o->meet = meet;
        o->gone = gone;
        counts.launches++;
        return enqueue(s, o);
    });
}

int emu_device_of(const void *address)
{
    emu::guard held;
    return emu::kind_of(address, 1) == emu::DEVICE ? emu::device_of(address) : -1;
}

int emu_stream_device(void *stream)
{
    int device = -1;
    with_stream(static_cast<cudaStream_t>(stream), [&](CUstream_st *s) -> cudaError_t {
        device = s->device;
        return cudaSuccess;
    });
    return device;
}

void emu_timing(int how, uint64_t seed)
{
    ask(ALWAYS, [&]() -> cudaError_t {
        finish_all(-1);
        emu::timing = how;
        emu::seed(seed);
        return cudaSuccess;
    });
}

void emu_protect(int on)
{
    emu::guard held;
    emu::protect(on != 0);
}

void *emu_alloc(size_t bytes, size_t alignment)
{
    emu::guard held;
    return emu::take_memory(bytes, alignment, current_device());
}

void emu_free(void *address)
{
    if (!address) return;
    emu::guard held;
    finish_all(current_device());
    emu::give_memory(address);
    emu::hide();
}

size_t emu_allocated(void)
{
    emu::guard held;
    return emu::memory_taken();
}

void emu_clear(void)
{
    emu::guard held;
    discard_all();
    emu::failed = false;
    last_error = cudaSuccess;
}

void emu_fail_allocation(int64_t n)
{
    const emu::guard held;
    failing_allocation = n;
}
void emu_fail_operation(int64_t n)
{
    const emu::guard held;
    failing_operation = n;
}

emu_counts emu_count(void)
{
    emu::guard held;
    emu_counts now = counts;
    now.objects = emu::pinned_blocks() - (null_stream != nullptr);
    for (const object *o = objects; o; o = o->next) now.objects++;
    return now;
}

void emu_counts_clear(void)
{
    emu::guard held;
    counts = {};
}
