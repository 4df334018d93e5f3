/* See queue.h. */
#include "queue.h"

#include <stdlib.h>
#include <time.h>

namespace emu
{

object *objects;
emu_counts counts;
int timing;
int64_t failing_operation;
thread_local bool in_host_function;
void (*watcher)(const emu_event *event);

static uint64_t chance = 1, captures;

uint64_t draw()
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    return chance ^= chance << 17;
}

void seed(uint64_t value)
{
    chance = value * 2 + 1; /* never 0 */
}

void *zeroed(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory) abort();
    return memory;
}

void forget(object *gone)
{
    object **at = &objects;
    while (*at != gone) at = &(*at)->next;
    *at = gone->next;
    free(gone);
}

void release(mark *m)
{
    if (m && !--m->refs) free(m);
}

operation *make_operation(operation_kind kind, size_t payload_bytes)
{
    operation *o = static_cast<operation *>(zeroed(sizeof *o + payload_bytes));
    o->kind = kind;
    o->before = o->other = -1;
    return o;
}

static void drop(operation *o)
{
    release(o->event);
    if (o->graph) release(o->graph);
    if (o->gone) o->gone(o->payload());
    free(o);
}

/* The handle and every graph that can still be launched, and launch that has not run, hold one. */
void release(CUgraph_st *graph)
{
    if (--graph->refs) return;
    for (int i = 0; i < graph->count; i++) drop(graph->nodes[i]);
    free(graph->nodes);
    forget(&graph->head);
}

/* ---- operations ---- */

static double (*told_time)();

static double now()
{
    timespec t;
    if (told_time) return told_time();
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

bool reaches(const char *what, const void *address, size_t bytes)
{
    if (kind_of(address, bytes) != BROKEN) return true;
    fail("%s of %zu bytes does not lie in one block of memory", what, bytes);
    add_place(address);
    return false;
}

static void copy(const operation *o)
{
    bool staged = o->from == o->payload();
    if (!reaches("target of a copy", o->to, o->bytes) ||
        (!staged && !reaches("source of a copy", o->from, o->bytes)))
        return;
    const char *to = static_cast<const char *>(o->to), *from = static_cast<const char *>(o->from);
    if (to < from + o->bytes && from < to + o->bytes)
        fail("source and target of a copy overlap");
    else
        memcpy(o->to, o->from, o->bytes);
}

static void call_host(const operation *o)
{
    hide();
    in_host_function = true;
    o->function(o->to);
    in_host_function = false;
}

/* Of a dry run. */
static void tell_launch(const operation *o)
{
    const launch_shape &s = o->shape;
    static unsigned char arguments[4096];
    emu_event event = {};
    event.kind = EMU_LAUNCH;
    event.stream = o->stream;
    event.name = s.name;
    event.kernel = s.kernel;
    const unsigned grid[3] = {s.grid.x, s.grid.y, s.grid.z}, block[3] = {s.block.x, s.block.y, s.block.z};
    memcpy(event.grid, grid, sizeof grid);
    memcpy(event.block, block, sizeof block);
    event.cluster = s.cluster;
    event.shared_bytes = s.shared_bytes;
    event.argument_bytes = s.arguments(o->payload(), nullptr);
    if (event.argument_bytes > sizeof arguments) {
        fail("%s has %zu bytes of arguments, more than a launch takes", s.name, event.argument_bytes);
        return;
    }
    memset(arguments, 0, sizeof arguments);
    s.arguments(o->payload(), arguments);
    event.arguments = arguments;
    watcher(&event);
}

static void tell_move(const operation *o)
{
    emu_event event = {};
    event.kind = o->kind == COPY ? EMU_COPY : EMU_SET;
    event.stream = o->stream;
    event.to = o->to;
    event.from = o->from;
    event.bytes = o->bytes;
    event.to_device = is_of_device(o->to);
    event.from_device = o->kind == COPY && is_of_device(o->from);
    watcher(&event);
}

/* An operation is through, or has to be tried again: who is met is not there yet. */
static bool perform(operation *o);

static bool meet(const operation *o)
{
    in_host_function = true;
    const int met = o->meet(o->payload());
    in_host_function = false;
    return met != 0;
}

static bool can_run(const CUgraph_st *graph, const char *done, int i)
{
    const operation *o = graph->nodes[i];
    return !done[i] && (o->before < 0 || done[o->before]) && (o->other < 0 || done[o->other]);
}

/* The i-th place to look for the next node. Lazy: the branch that began last goes first. */
static int place_of(const CUgraph_st *graph, int i, int first)
{
    return timing == EMU_LAZY && graph->branches ? graph->count - 1 - i : (first + i) % graph->count;
}

static bool run_node(const CUgraph_st *graph, char *done, int first)
{
    for (int i = 0; i < graph->count; i++) {
        const int at = place_of(graph, i, first);
        if (!can_run(graph, done, at)) continue;
        if (graph->nodes[at]->kind != WAIT && !perform(graph->nodes[at])) continue;
        done[at] = 1;
        return true;
    }
    return false;
}

static bool replay(operation *o)
{
    const CUgraph_st *graph = o->graph;
    char *done = static_cast<char *>(o->payload());
    const bool in_order = timing == EMU_EAGER || !graph->branches;
    int next = 0;
    while (!failed) {
        while (next < graph->count && done[next]) next++;
        if (next == graph->count) return true;
        const int first = in_order ? next : static_cast<int>(draw() % static_cast<uint64_t>(graph->count));
        if (!run_node(graph, done, first)) return false;
    }
    return true;
}

static bool perform(operation *o)
{
    if (o->kind == REPLAY) return failed || replay(o);
    const bool counted = o->kind != RECORD && o->kind != WAIT;
    expose();
    if (o->kind == MEET && !failed && !meet(o)) return false;
    counts.operations += counted;
    if (counted && failing_operation && !--failing_operation) fail("an operation fails as it was told");
    if (failed) return true;
    if (o->kind == HOST) call_host(o);
    if (o->kind == LAUNCH && watcher) tell_launch(o);
    if (o->kind == LAUNCH && !watcher) run(o->shape, o->payload());
    if (o->kind == COPY) copy(o);
    if (o->kind == SET && reaches("memory to set", o->to, o->bytes)) memset(o->to, o->value, o->bytes);
    if (watcher && (o->kind == COPY || o->kind == SET) && !failed) tell_move(o);
    if (o->kind == RECORD) o->event->done = true, o->event->at = now();
    if (o->kind == FREE && !give_memory(o->to)) fail("memory is freed that is none of the device");
    return true;
}

/* ---- when they run ---- */

static bool waits(const CUstream_st *s)
{
    return s->first->kind == WAIT && !s->first->event->done;
}

/* False: it has to be tried again. */
static bool run_first(CUstream_st *s)
{
    operation *o = s->first;
    if (!perform(o)) return false;
    s->first = o->next;
    if (!s->first) s->last = nullptr;
    drop(o);
    if (s->destroyed && !s->first) forget(&s->head);
    return true;
}

/* One operation nearer to the end of the stream. A wait came after its record, so this ends. */
static bool step(CUstream_st *s)
{
    while (waits(s)) s = s->first->event->by;
    return run_first(s);
}

/* One of the streams from..to - 1 of those that wait for no event. */
static bool run_of(uint64_t from, uint64_t to)
{
    uint64_t at = 0;
    return any_stream([&](CUstream_st *s) {
        if (!s->first || waits(s)) return false;
        const uint64_t i = at++;
        return i >= from && i < to && run_first(s);
    });
}

/* Of some stream; false: there is none, or all wait for others. */
static bool run_any()
{
    uint64_t ready = 0;
    any_stream([&](CUstream_st *s) {
        ready += s->first && !waits(s);
        return false;
    });
    const uint64_t chosen = ready ? draw() % ready : 0;
    return ready && (run_of(chosen, ready) || run_of(0, chosen));
}

bool advance(CUstream_st *s)
{
    return (timing != EMU_SHUFFLED && step(s)) || run_any();
}

/* What runs though nobody waits: by chance less than what comes. */
static void idle()
{
    while (!failed && (timing == EMU_EAGER || (timing == EMU_SHUFFLED && draw() % 5 < 2)) && run_any())
        continue;
}

/* Who is met may need the lock. */
static void let_others_go()
{
    const timespec little = {0, 20000};
    hide();
    let_lock_go();
    nanosleep(&little, nullptr);
    take_lock();
}

void finish(CUstream_st *s)
{
    counts.waits += s->first != nullptr;
    while (s->first && !failed)
        if (!advance(s)) let_others_go();
}

void finish(mark *m)
{
    counts.waits += !m->done;
    m->refs++;
    while (!m->done && !failed)
        if (!advance(m->by)) let_others_go();
    release(m);
}

static bool any_left(int device)
{
    return any_stream([&](CUstream_st *s) { return s->first && (device < 0 || s->device == device); });
}

void finish_all(int device)
{
    counts.waits += any_left(device);
    while (!failed && any_left(device))
        if (!run_any()) let_others_go();
}

/* After a fault. */
void discard_all()
{
    any_stream([](CUstream_st *s) {
        while (operation *o = s->first) {
            s->first = o->next;
            if (o->kind == RECORD) o->event->done = true;
            drop(o);
        }
        s->last = nullptr;
        if (s->destroyed) forget(&s->head);
        return false;
    });
}

/* ---- captures ---- */

cudaError_t invalidate(CUgraph_st *graph, cudaError_t error)
{
    graph->invalid = true;
    return error;
}

/* What may wait, while a capture forbids it. */
cudaError_t no_capture()
{
    cudaError_t error = cudaSuccess;
    any_stream([&](CUstream_st *s) {
        CUgraph_st *g = s->capture;
        bool forbids =
            g && (g->mode == cudaStreamCaptureModeGlobal ||
                  (g->mode == cudaStreamCaptureModeThreadLocal && pthread_equal(g->thread, pthread_self())));
        if (forbids) error = invalidate(g, cudaErrorStreamCaptureUnsupported);
        return false;
    });
    return error;
}

static CUgraph_st *capture_of(uint64_t serial)
{
    CUgraph_st *found = nullptr;
    any_stream([&](CUstream_st *s) {
        if (s->capture && s->capture->serial == serial) found = s->capture;
        return found != nullptr;
    });
    return found;
}

static cudaError_t add_node(CUstream_st *s, operation *o)
{
    CUgraph_st *g = s->capture;
    if (g->invalid) {
        drop(o);
        return cudaErrorStreamCaptureInvalidated;
    }
    if (g->count == g->capacity) {
        g->capacity = g->capacity ? 2 * g->capacity : 64;
        g->nodes =
            static_cast<operation **>(realloc(g->nodes, sizeof *g->nodes * static_cast<size_t>(g->capacity)));
        if (!g->nodes) abort();
    }
    o->before = s->tail;
    s->tail = g->count;
    g->nodes[g->count++] = o;
    return cudaSuccess;
}

cudaError_t enqueue(CUstream_st *s, operation *o)
{
    o->stream = s;
    if (s->capture) return add_node(s, o);
    if (s->last)
        s->last->next = o;
    else
        s->first = o;
    s->last = o;
    idle();
    return cudaSuccess;
}

static cudaError_t join(CUstream_st *s, const mark *m)
{
    CUgraph_st *g = capture_of(m->capture);
    if (!g) return cudaErrorCapturedEvent;
    if (s->capture && s->capture != g) {
        invalidate(g, cudaErrorStreamCaptureMerge);
        return invalidate(s->capture, cudaErrorStreamCaptureMerge);
    }
    if (!s->capture) {
        s->capture = g;
        s->tail = s->joined = -1;
        g->branches = true;
    }
    if (m->by != s) m->by->joined = m->node;
    operation *o = make_operation(WAIT, 0);
    o->other = m->node;
    return add_node(s, o);
}

cudaError_t wait_for(CUstream_st *s, mark *m)
{
    if (!m) return s->capture ? invalidate(s->capture, cudaErrorStreamCaptureIsolation) : cudaSuccess;
    if (m->capture) return join(s, m);
    if (s->capture) return invalidate(s->capture, cudaErrorStreamCaptureIsolation);
    if (m->done) return cudaSuccess;
    operation *o = make_operation(WAIT, 0);
    o->event = m;
    m->refs++;
    return enqueue(s, o);
}

cudaError_t record(CUevent_st *event, CUstream_st *s)
{
    release(event->last);
    mark *m = event->last = static_cast<mark *>(zeroed(sizeof *m));
    m->refs = 1;
    m->by = s;
    if (s->capture) {
        m->capture = s->capture->serial;
        m->node = s->tail;
        return s->capture->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
    }
    m->refs++;
    operation *o = make_operation(RECORD, 0);
    o->event = m;
    return enqueue(s, o);
}

/* Its record must be one that can be waited for. */
cudaError_t may_wait(const mark *m)
{
    if (m && m->capture) {
        CUgraph_st *g = capture_of(m->capture);
        return g ? invalidate(g, cudaErrorCapturedEvent) : cudaErrorCapturedEvent;
    }
    return no_capture();
}

void begin_capture(CUstream_st *s, cudaStreamCaptureMode mode)
{
    CUgraph_st *g = s->capture = make_object<CUgraph_st>(GRAPH);
    g->refs = 1;
    g->serial = ++captures;
    g->origin = s;
    g->mode = mode;
    g->thread = pthread_self();
    s->tail = s->joined = -1;
}

/* The origin's. Every branch must have been waited for where it ends. */
cudaError_t end_capture(CUstream_st *s, cudaGraph_t *graph)
{
    CUgraph_st *g = s->capture;
    cudaError_t error = g->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
    any_stream([&](CUstream_st *other) {
        if (other->capture != g) return false;
        if (!error && other != s && other->joined != other->tail) error = cudaErrorStreamCaptureUnjoined;
        other->capture = nullptr;
        return false;
    });
    if (error)
        release(g);
    else
        *graph = g;
    return error;
}

}  // namespace emu

void emu_clock(double (*milliseconds)(void))
{
    emu::guard held;
    emu::told_time = milliseconds;
}

void emu_dry(void (*watch)(const emu_event *event))
{
    emu::guard held;
    emu::finish_all(-1);
    emu::watcher = watch;
    emu::fill_memory(!watch);
    emu::hide();
}
