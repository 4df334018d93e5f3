/* Order of work on a device: streams, copies, events, and recorded work. */
#include "device.h"

#include <string.h>

struct xph_event {
    xph_device *device;
    cudaEvent_t event;
};

struct xph_graph {
    xph_device *device;
    cudaGraphExec_t exec;
};

static cudaStream_t of(const xph_stream *stream)
{
    return ((const xph_cuda_stream *)stream)->stream;
}

static void *host_alloc(xph_device *device, size_t bytes)
{
    const xph_host *host = &((xph_cuda_device *)device)->host;
    return host->alloc(host->context, bytes);
}

static void host_free(xph_device *device, void *pointer, size_t bytes)
{
    const xph_host *host = &((xph_cuda_device *)device)->host;
    host->free(host->context, pointer, bytes);
}

/* ---- streams and copies ---- */

/* What a wait without spinning needs, and the memory of products, so that no product asks for it. */
static exphil_status furnish(xph_cuda_stream *stream, uint32_t flags)
{
    const xph_device *device = stream->base.device;
    if (!(flags & XPH_STREAM_INLINE)) {
        const unsigned quiet = cudaEventBlockingSync | cudaEventDisableTiming;
        exphil_status status =
            xph_cuda_check(device, cudaEventCreateWithFlags(&stream->idle, quiet), "a new event");
        if (status < 0) return status;
    }
    return flags & XPH_STREAM_NET ? xph_blaslt_prepare(stream) : EXPHIL_OK;
}

exphil_status xph_cuda_stream_create(xph_device *device, uint32_t flags, xph_stream **stream)
{
    xph_cuda_stream *made = host_alloc(device, sizeof *made);
    if (!made) return EXPHIL_E_MEMORY;
    *made = (xph_cuda_stream){.base = {device}};
    XPH_ON(device);
    exphil_status status = xph_cuda_check(
        device, cudaStreamCreateWithFlags(&made->stream, cudaStreamNonBlocking), "a new stream");
    if (status < 0) {
        host_free(device, made, sizeof *made);
        return status;
    }
    status = furnish(made, flags);
    if (status < 0) {
        xph_cuda_stream_destroy(&made->base);
        return status;
    }
    *stream = &made->base;
    return EXPHIL_OK;
}

void xph_cuda_stream_destroy(xph_stream *base)
{
    xph_device *device = base->device;
    xph_cuda_stream *stream = (xph_cuda_stream *)base;
    XPH_ON(device);
    cudaStreamSynchronize(stream->stream);
    xph_blaslt_forget(stream);
    if (stream->idle) cudaEventDestroy(stream->idle);
    cudaStreamDestroy(stream->stream);
    host_free(device, stream, sizeof *stream);
}

_Static_assert(sizeof(xph_cuda_stream) <= sizeof(xph_wrapped), "there is room for one");

xph_stream *xph_cuda_stream_wrap(xph_device *device, void *native, xph_wrapped *place)
{
    const xph_cuda_stream made = {.base = {device}, .stream = native};
    memcpy(place, &made, sizeof made);
    return (xph_stream *)place;
}

exphil_status xph_cuda_move(xph_stream *stream, void *to, const void *from, size_t bytes)
{
    if (!bytes) return EXPHIL_OK;
    XPH_ON(stream->device);
    return xph_cuda_check(stream->device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, of(stream)),
                          "a copy");
}

exphil_status xph_cuda_zero(xph_stream *stream, void *to, size_t bytes)
{
    if (!bytes) return EXPHIL_OK;
    XPH_ON(stream->device);
    return xph_cuda_check(stream->device, cudaMemsetAsync(to, 0, bytes, of(stream)), "zeros");
}

exphil_status xph_cuda_stream_wait(xph_stream *stream)
{
    XPH_ON(stream->device);
    cudaEvent_t idle = ((xph_cuda_stream *)stream)->idle;
    cudaError_t code = idle ? cudaEventRecord(idle, of(stream)) : cudaStreamSynchronize(of(stream));
    if (!code && idle) code = cudaEventSynchronize(idle);
    return xph_cuda_check(stream->device, code, "waiting for a stream");
}

/* ---- events ---- */

exphil_status xph_cuda_event_create(xph_device *device, uint32_t flags, xph_event **event)
{
    xph_event *made = host_alloc(device, sizeof *made);
    if (!made) return EXPHIL_E_MEMORY;
    made->device = device;
    XPH_ON(device);
    const unsigned kind = cudaEventBlockingSync | (flags & XPH_EVENT_TIMED ? 0u : cudaEventDisableTiming);
    exphil_status status =
        xph_cuda_check(device, cudaEventCreateWithFlags(&made->event, kind), "a new event");
    if (status < 0) {
        host_free(device, made, sizeof *made);
        return status;
    }
    *event = made;
    return EXPHIL_OK;
}

void xph_cuda_event_destroy(xph_event *event)
{
    XPH_ON(event->device);
    cudaEventDestroy(event->event);
    host_free(event->device, event, sizeof *event);
}

exphil_status xph_cuda_event_mark(xph_event *event, xph_stream *stream)
{
    XPH_ON(event->device);
    return xph_cuda_check(event->device, cudaEventRecord(event->event, of(stream)), "marking an event");
}

exphil_status xph_cuda_event_wait(xph_event *event)
{
    XPH_ON(event->device);
    return xph_cuda_check(event->device, cudaEventSynchronize(event->event), "waiting for an event");
}

exphil_status xph_cuda_stream_follow(xph_stream *stream, xph_event *event)
{
    XPH_ON(event->device);
    return xph_cuda_check(event->device, cudaStreamWaitEvent(of(stream), event->event, 0),
                          "following an event");
}

exphil_status xph_cuda_event_elapsed(xph_event *from, xph_event *to, double *ns)
{
    float milliseconds = 0.0f;
    XPH_ON(from->device);
    cudaError_t code = cudaEventElapsedTime(&milliseconds, from->event, to->event);
    *ns = (double)milliseconds * 1e6;
    return xph_cuda_check(from->device, code, "the time between events");
}

exphil_status xph_cuda_event_done(xph_event *event, int32_t *done)
{
    XPH_ON(event->device);
    cudaError_t code = cudaEventQuery(event->event);
    *done = code == cudaSuccess;
    if (code == cudaErrorNotReady) {
        cudaGetLastError();
        return EXPHIL_OK;
    }
    return xph_cuda_check(event->device, code, "asking for an event");
}

exphil_status xph_cuda_word_set(xph_device *device, uint32_t *address, uint32_t value)
{
    cudaStream_t words = ((xph_cuda_device *)device)->words;
    XPH_ON(device);
    cudaError_t code = cudaMemcpyAsync(address, &value, sizeof value, cudaMemcpyHostToDevice, words);
    if (!code) code = cudaStreamSynchronize(words);
    return xph_cuda_check(device, code, "setting a word");
}

void *xph_cuda_stream_native(xph_stream *stream)
{
    return of(stream);
}

/* ---- recorded work ---- */

exphil_status xph_cuda_record_begin(xph_stream *stream)
{
    xph_cuda_stream *own = (xph_cuda_stream *)stream;
    XPH_ON(stream->device);
    exphil_status status = xph_blaslt_prepare(own);
    if (status < 0) return status;
    /* Thread local: what other threads of the host do with CUDA meanwhile is none of our concern, nor ours of theirs. */
    cudaError_t code = cudaStreamBeginCapture(own->stream, cudaStreamCaptureModeThreadLocal);
    own->recording = code == cudaSuccess;
    own->spoilt = 0;
    return xph_cuda_told(stream->device, code, "beginning to record", EXPHIL_LOG_WARNING);
}

static cudaError_t instantiate(cudaGraph_t graph, xph_graph **made, xph_device *device)
{
    xph_graph *got = host_alloc(device, sizeof *got);
    if (!got) return cudaErrorMemoryAllocation;
    got->device = device;
    cudaError_t code = cudaGraphInstantiateWithFlags(&got->exec, graph, 0);
    if (code)
        host_free(device, got, sizeof *got);
    else
        *made = got;
    return code;
}

exphil_status xph_cuda_record_end(xph_stream *stream, xph_graph **graph)
{
    xph_cuda_stream *own = (xph_cuda_stream *)stream;
    cudaGraph_t recorded = NULL;
    XPH_ON(stream->device);
    cudaError_t code = cudaStreamEndCapture(own->stream, &recorded);
    if (!code && !own->spoilt) code = instantiate(recorded, graph, stream->device);
    if (recorded) cudaGraphDestroy(recorded);
    own->recording = 0;
    if (own->spoilt) {
        cudaGetLastError(); /* the refusal was reported */
        return EXPHIL_E_UNSUPPORTED;
    }
    return xph_cuda_told(stream->device, code, "recording", EXPHIL_LOG_WARNING);
}

exphil_status xph_cuda_replay(xph_stream *stream, xph_graph *graph)
{
    XPH_ON(stream->device);
    return xph_cuda_check(stream->device, cudaGraphLaunch(graph->exec, of(stream)), "replaying");
}

void xph_cuda_graph_destroy(xph_graph *graph)
{
    XPH_ON(graph->device);
    cudaGraphExecDestroy(graph->exec);
    host_free(graph->device, graph, sizeof *graph);
}
