/* Objects of the emulated runtime, and the queues of its streams: when what was enqueued runs, and what a capture makes
 * of it. A stream is a queue of operations; whoever waits runs them, or chance does whenever something is enqueued
 * (emu_timing). A wait stands in its queue until the record that it saw has run. A captured stream puts its operations
 * into a graph, whose branches keep to the order of their own and of their waits alone. All under the lock.
 */
#ifndef EXPHIL_EMU_QUEUE_H
#define EXPHIL_EMU_QUEUE_H

#include "device.h"

struct CUgraph_st;

namespace emu
{

/* ---- objects ---- */

enum object_kind : uint8_t { STREAM, EVENT, GRAPH, EXEC };
struct object {
    object *next;
    object_kind kind;
};

/* A record of an event: who waits for it holds it. */
struct mark {
    int refs;
    bool done;
    CUstream_st *by;
    uint64_t capture; /* serial of the graph, or 0 */
    int node;         /* after which it stands there, -1: at the start of its branch */
    double at;        /* milliseconds, once done */
};

enum operation_kind : uint8_t { LAUNCH, COPY, SET, HOST, RECORD, WAIT, REPLAY, FREE, MEET };

/* Behind it lie the arguments of a kernel, what a copy took from the host, what a meeting is given, or which nodes of a
 * graph have run. */
struct alignas(16) operation {
    operation *next;
    operation_kind kind;
    int before, other;         /* nodes of its graph that must have run, or -1 */
    const CUstream_st *stream; /* in which it was enqueued; it may be gone */
    emu::launch_shape shape;
    void *to;
    const void *from;
    size_t bytes;
    int value;
    cudaHostFn_t function;
    int (*meet)(const void *data);
    void (*gone)(const void *data);
    mark *event;
    CUgraph_st *graph;
    void *payload() { return this + 1; }
    const void *payload() const { return this + 1; }
};

}  // namespace emu

struct CUstream_st {
    emu::object head;
    emu::operation *first, *last;
    int device;
    bool blocking, destroyed;
    CUgraph_st *capture; /* the graph that it is recorded into, or NULL */
    int tail, joined;    /* its last node there, and the last that another stream waits for */
};

struct CUevent_st {
    emu::object head;
    bool timed, blocking;
    emu::mark *last;
};

struct CUgraph_st {
    emu::object head;
    int refs;
    bool destroyed;         /* but not by those who launch it */
    emu::operation **nodes; /* in the order in which they were captured */
    int count, capacity;
    bool branches, invalid;
    uint64_t serial;
    CUstream_st *origin;
    cudaStreamCaptureMode mode;
    pthread_t thread;
};

struct CUgraphExec_st {
    emu::object head;
    CUgraph_st *graph;
};

namespace emu
{

extern object *objects;
extern emu_counts counts;
extern int timing; /* EMU_EAGER.. */
extern int64_t failing_operation;
extern void (*watcher)(const emu_event *event); /* of a dry run */
extern thread_local bool in_host_function;

uint64_t draw();
void seed(uint64_t value);
void *zeroed(size_t bytes);

template <class Object> Object *make_object(object_kind kind)
{
    Object *o = static_cast<Object *>(zeroed(sizeof *o));
    o->head = {objects, kind};
    objects = &o->head;
    return o;
}

template <class Object> bool is_object(const Object *handle, object_kind kind)
{
    for (const object *o = objects; o; o = o->next)
        if (static_cast<const void *>(o) == handle) return o->kind == kind;
    return false;
}

void forget(object *gone);

/* fn of every stream until it says true. It may free what it is given. */
template <class Body> bool any_stream(Body fn)
{
    for (object *o = objects, *next; o; o = next) {
        next = o->next;
        if (o->kind == STREAM && fn(reinterpret_cast<CUstream_st *>(o))) return true;
    }
    return false;
}

void release(mark *m);
void release(CUgraph_st *graph);
operation *make_operation(operation_kind kind, size_t payload_bytes);
bool reaches(const char *what, const void *address, size_t bytes); /* else a fault */

cudaError_t enqueue(CUstream_st *s, operation *o); /* takes it */
bool advance(CUstream_st *s); /* by one operation, of this or another stream; false: all wait for others */
/* These let go of the lock while they wait for other threads or processes. */
void finish(CUstream_st *s);
void finish(mark *m);
void finish_all(int device); /* -1: of all */
void discard_all();          /* after a fault */

cudaError_t record(CUevent_st *event, CUstream_st *s);
cudaError_t wait_for(CUstream_st *s, mark *m);

void begin_capture(CUstream_st *s, cudaStreamCaptureMode mode);
cudaError_t end_capture(CUstream_st *s, cudaGraph_t *graph);
cudaError_t invalidate(CUgraph_st *graph, cudaError_t error); /* gives the error back */
cudaError_t no_capture();            /* an error where a capture forbids what may wait */
cudaError_t may_wait(const mark *m); /* the host, for this record */

}  // namespace emu

#endif
