/* The runtime of the emulated GPU does what CUDA promises and no more: work runs as late, or in as strange an order, as
 * it may, and hosts that are wrong get wrong results, an error or a fault. Every mistake stands beside the same host
 * without it. */
#include "test.h"

#include "emu_control.h"
#include "queued.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 100, SEEDS = 20 };
#define BYTES    (COUNT * sizeof(float))
#define OK(call) assert_int_equal(call, cudaSuccess)

/* Two streams, an event, memory of both kinds. */
typedef struct bed {
    cudaStream_t a, b;
    cudaEvent_t event;
    float *x, *y;  /* of the device */
    float *pinned; /* its first half goes up, the second comes down */
    float host[COUNT];
} bed;

static void fill(float *to, float value)
{
    for (int i = 0; i < COUNT; i++) to[i] = value + (float)i;
}

static bool holds(const float *at, float value)
{
    for (int i = 0; i < COUNT; i++)
        if (!(at[i] == value + (float)i)) return false;
    return true;
}

static void upload(float *to, float value, cudaStream_t stream)
{
    float host[COUNT];
    fill(host, value);
    OK(cudaMemcpyAsync(to, host, sizeof host, cudaMemcpyHostToDevice, stream));
    memset(host, 0, sizeof host);
}

static void open_bed(bed *t, int timing, uint64_t seed)
{
    emu_timing(timing, seed);
    OK(cudaStreamCreateWithFlags(&t->a, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&t->b, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&t->event, cudaEventDisableTiming));
    OK(cudaMalloc((void **)&t->x, BYTES));
    OK(cudaMalloc((void **)&t->y, BYTES));
    OK(cudaHostAlloc((void **)&t->pinned, 2 * BYTES, cudaHostAllocDefault));
    upload(t->x, 1, t->a);
    upload(t->y, 2, t->a);
    OK(cudaStreamSynchronize(t->a));
    emu_counts_clear();
}

/* Nothing is left. */
static void close_bed(bed *t)
{
    emu_clear();
    OK(cudaStreamDestroy(t->a));
    OK(cudaStreamDestroy(t->b));
    OK(cudaEventDestroy(t->event));
    OK(cudaFree(t->x));
    OK(cudaFree(t->y));
    OK(cudaFreeHost(t->pinned));
    assert_int_equal(emu_count().objects, 0);
    assert_int_equal(emu_allocated(), 0);
    emu_timing(EMU_EAGER, 0);
}

static void scale(const float *from, float *to, float by, float plus, cudaStream_t stream)
{
    queued_args a = {from, to, COUNT, by, plus};
    OK(queued_launch(&a, stream));
    memset(&a, 0, sizeof a);
}

static bool device_holds(bed *t, const float *at, float value)
{
    OK(cudaMemcpyAsync(t->host, at, BYTES, cudaMemcpyDeviceToHost, t->a));
    return holds(t->host, value);
}

/* ---- streams ---- */

static void nothing_runs_before_a_wait(void **state)
{
    (void)state;
    bed t;
    open_bed(&t, EMU_LAZY, 0);
    fill(t.pinned + COUNT, 0);
    scale(t.x, t.y, 1, 5, t.a);
    OK(cudaMemcpyAsync(t.pinned + COUNT, t.y, BYTES, cudaMemcpyDeviceToHost, t.a));
    assert_int_equal(emu_count().operations, 0);
    assert_true(holds(t.pinned + COUNT, 0));
    OK(cudaStreamSynchronize(t.a));
    assert_true(holds(t.pinned + COUNT, 6));
    OK(cudaStreamSynchronize(t.a));
    emu_counts c = emu_count();
    assert_int_equal(c.operations, 2);
    assert_int_equal(c.launches, 1);
    assert_int_equal(c.copies, 1);
    assert_int_equal(c.synchronisations, 2);
    assert_int_equal(c.waits, 1);
    close_bed(&t);
}

/* scale and upload overwrite what they gave; so does this. */
static void arguments_and_pageable_memory_are_taken_at_the_call(void **state)
{
    (void)state;
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        bed t;
        open_bed(&t, timing, 1);
        upload(t.x, 10, t.a);
        scale(t.x, t.y, 1, 5, t.a);
        assert_true(device_holds(&t, t.y, 15));
        close_bed(&t);
    }
}

/* A host that writes its pinned buffer again before the copy has run. */
static bool upload_twice(int timing, bool wait)
{
    bed t;
    open_bed(&t, timing, 0);
    fill(t.pinned, 3);
    OK(cudaMemcpyAsync(t.x, t.pinned, BYTES, cudaMemcpyHostToDevice, t.a));
    OK(cudaEventRecord(t.event, t.a));
    if (wait) OK(cudaEventSynchronize(t.event));
    fill(t.pinned, 4);
    OK(cudaMemcpyAsync(t.y, t.pinned, BYTES, cudaMemcpyHostToDevice, t.a));
    bool right = device_holds(&t, t.x, 3) && device_holds(&t, t.y, 4);
    close_bed(&t);
    return right;
}

static void pinned_memory_is_read_when_the_copy_runs(void **state)
{
    (void)state;
    assert_true(upload_twice(EMU_EAGER, false));
    assert_false(upload_twice(EMU_LAZY, false));
    for (int timing = 0; timing < EMU_TIMINGS; timing++) assert_true(upload_twice(timing, true));
}

/* b reads what a writes. */
static bool hand_over(int timing, uint64_t seed, bool wait)
{
    bed t;
    open_bed(&t, timing, seed);
    scale(t.x, t.y, 1, 5, t.a);
    OK(cudaEventRecord(t.event, t.a));
    if (wait) OK(cudaStreamWaitEvent(t.b, t.event, 0));
    scale(t.y, t.y, 1, 100, t.b);
    OK(cudaStreamSynchronize(t.b));
    OK(cudaStreamSynchronize(t.a));
    bool right = device_holds(&t, t.y, 106);
    close_bed(&t);
    return right;
}

static void events_order_streams(void **state)
{
    (void)state;
    int found = 0;
    assert_true(hand_over(EMU_EAGER, 0, false));
    assert_false(hand_over(EMU_LAZY, 0, false));
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        found += !hand_over(EMU_SHUFFLED, seed, false);
        assert_true(hand_over(EMU_SHUFFLED, seed, true));
    }
    assert_in_range(found, 1, SEEDS - 1);
    assert_true(hand_over(EMU_LAZY, 0, true));
}

/* A wait is for the record before it, whatever the event is recorded for afterwards. */
static void events_can_be_recorded_again(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        bed t;
        open_bed(&t, seed ? EMU_SHUFFLED : EMU_LAZY, seed);
        OK(cudaEventQuery(t.event));
        scale(t.x, t.y, 1, 5, t.a);
        OK(cudaEventRecord(t.event, t.a));
        OK(cudaStreamWaitEvent(t.b, t.event, 0));
        scale(t.y, t.y, 1, 100, t.b);
        OK(cudaEventRecord(t.event, t.b));
        OK(cudaEventSynchronize(t.event));
        assert_true(device_holds(&t, t.y, 106));
        close_bed(&t);
    }
}

static void who_asks_often_comes_to_the_end(void **state)
{
    (void)state;
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        bed t;
        int asked = 0;
        open_bed(&t, timing, 2);
        for (int i = 0; i < 30; i++) scale(t.x, t.x, 1, 1, t.a);
        OK(cudaEventRecord(t.event, t.a));
        OK(cudaStreamWaitEvent(t.b, t.event, 0));
        while (cudaStreamQuery(t.b) == cudaErrorNotReady) assert_true(asked++ < 100);
        OK(cudaEventQuery(t.event));
        assert_int_equal(cudaGetLastError(), asked ? cudaErrorNotReady : cudaSuccess);
        assert_int_equal(asked != 0, timing != EMU_EAGER);
        assert_true(device_holds(&t, t.x, 31));
        close_bed(&t);
    }
}

/* What a destroyed stream holds still runs, and a destroyed event still orders. */
static void destroyed_streams_finish(void **state)
{
    (void)state;
    bed t;
    cudaStream_t gone;
    cudaEvent_t event;
    open_bed(&t, EMU_LAZY, 0);
    OK(cudaStreamCreateWithPriority(&gone, cudaStreamNonBlocking, 0));
    OK(cudaEventCreate(&event));
    scale(t.x, t.y, 1, 5, gone);
    OK(cudaEventRecord(event, gone));
    OK(cudaStreamWaitEvent(t.a, event, 0));
    OK(cudaEventDestroy(event));
    OK(cudaStreamDestroy(gone));
    assert_true(device_holds(&t, t.y, 6));
    assert_int_equal(cudaStreamSynchronize(gone), cudaErrorInvalidResourceHandle);
    assert_non_null(strstr(emu_fault(), "no such stream"));
    close_bed(&t);
}

static void append(void *data)
{
    float *list = data;
    list[(int)++list[0]] = list[COUNT];
}

static void call_cuda(void *data)
{
    int *error = data, device;
    *error = (int)cudaGetDevice(&device);
}

static void host_functions_run_in_order(void **state)
{
    (void)state;
    bed t;
    int error = 0;
    open_bed(&t, EMU_LAZY, 0);
    t.pinned[0] = 0;
    for (float i = 7; i < 9; i++) {
        OK(cudaMemsetAsync(t.x, 0, BYTES, t.a));
        scale(t.x, t.x, 1, i, t.a);
        OK(cudaMemcpyAsync(t.pinned + COUNT, t.x, BYTES, cudaMemcpyDeviceToHost, t.a));
        OK(cudaLaunchHostFunc(t.a, append, t.pinned));
    }
    OK(cudaStreamSynchronize(t.a));
    assert_true(t.pinned[0] == 2 && t.pinned[1] == 7 && t.pinned[2] == 8);
    OK(cudaLaunchHostFunc(t.a, call_cuda, &error));
    assert_int_equal(cudaStreamSynchronize(t.a), cudaErrorLaunchFailure);
    assert_int_equal(error, cudaErrorNotPermitted);
    assert_non_null(strstr(emu_fault(), "a host function calls CUDA"));
    close_bed(&t);
}

static void times_between_events(void **state)
{
    (void)state;
    bed t;
    cudaEvent_t start, end;
    float ms = -1;
    open_bed(&t, EMU_LAZY, 0);
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaEventRecord(start, t.a));
    scale(t.x, t.y, 1, 5, t.a);
    OK(cudaEventRecord(end, t.a));
    assert_int_equal(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
    OK(cudaEventSynchronize(end));
    OK(cudaEventElapsedTime(&ms, start, end));
    assert_true(ms > 0 && ms < 10000);
    OK(cudaEventRecord(t.event, t.a));
    assert_int_equal(cudaEventElapsedTime(&ms, start, t.event), cudaErrorInvalidResourceHandle);
    OK(cudaEventDestroy(start));
    OK(cudaEventDestroy(end));
    close_bed(&t);
}

enum { ROUNDS = 50 };

typedef struct worker {
    float value;
    int errors; /* a thread may not use cmocka's assertions */
    bool right;
} worker;

static void *one_thread(void *data)
{
    worker *w = data;
    float *x = NULL, *y = NULL, host[COUNT];
    cudaStream_t stream;
    fill(host, w->value);
    w->errors += cudaSetDevice(0) != cudaSuccess;
    w->errors += cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess;
    w->errors += cudaMalloc((void **)&x, BYTES) != cudaSuccess;
    w->errors += cudaMalloc((void **)&y, BYTES) != cudaSuccess;
    w->errors += cudaMemcpyAsync(x, host, BYTES, cudaMemcpyHostToDevice, stream) != cudaSuccess;
    for (int i = 0; i < ROUNDS; i++) {
        const queued_args a = {x, y, COUNT, 1, 1};
        w->errors += queued_launch(&a, stream) != cudaSuccess;
        w->errors += cudaMemcpyAsync(x, y, BYTES, cudaMemcpyDeviceToDevice, stream) != cudaSuccess;
        if (i % 10 == 0) w->errors += cudaStreamSynchronize(stream) != cudaSuccess;
    }
    w->errors += cudaMemcpyAsync(host, x, BYTES, cudaMemcpyDeviceToHost, stream) != cudaSuccess;
    w->right = holds(host, w->value + ROUNDS);
    w->errors += cudaFree(x) != cudaSuccess;
    w->errors += cudaFree(y) != cudaSuccess;
    w->errors += cudaStreamDestroy(stream) != cudaSuccess;
    return NULL;
}

static void threads_have_streams_of_their_own(void **state)
{
    (void)state;
    emu_timing(EMU_SHUFFLED, 3);
    pthread_t threads[3];
    worker workers[3] = {{.value = 1}, {.value = 200}, {.value = 3000}};
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, one_thread, &workers[i]), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 3; i++) assert_true(workers[i].right && !workers[i].errors);
    assert_int_equal(emu_count().objects, 0);
    emu_timing(EMU_EAGER, 0);
}

/* ---- graphs ---- */

static cudaGraphExec_t instance(cudaGraph_t graph)
{
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    return exec;
}

/* Arguments are those of the capture; what changes must lie in memory. */
static void graphs_replay_what_was_recorded(void **state)
{
    (void)state;
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        bed t;
        cudaGraph_t graph;
        enum cudaStreamCaptureStatus status;
        size_t nodes = 0;
        open_bed(&t, timing, 4);
        queued_args a = {t.x, t.y, COUNT, 1, 5};
        fill(t.pinned, 0);
        OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
        OK(cudaMemcpyAsync(t.x, t.pinned, BYTES, cudaMemcpyHostToDevice, t.a));
        OK(queued_launch(&a, t.a));
        OK(cudaStreamIsCapturing(t.a, &status));
        OK(cudaStreamEndCapture(t.a, &graph));
        assert_int_equal(status, cudaStreamCaptureStatusActive);
        OK(cudaGraphGetNodes(graph, NULL, &nodes));
        assert_int_equal(nodes, 2);
        assert_int_equal(emu_count().operations, 0);
        cudaGraphExec_t exec = instance(graph);
        a.shift = 1000;
        for (float value = 10; value < 13; value++) {
            fill(t.pinned, value);
            OK(cudaGraphLaunch(exec, t.a));
            assert_true(device_holds(&t, t.y, value + 5));
        }
        assert_int_equal(emu_count().graph_launches, 3);
        assert_int_equal(emu_count().launches, 1);
        OK(cudaGraphLaunch(exec, t.a));
        OK(cudaGraphExecDestroy(exec)); /* it still runs */
        OK(cudaStreamSynchronize(t.a));
        close_bed(&t);
    }
}

/* a forks to b and both meet again: x and y change at the same time, then y takes x in. */
static bool forked(int timing, uint64_t seed, bool wait_twice)
{
    bed t;
    cudaGraph_t graph;
    cudaEvent_t other;
    open_bed(&t, timing, seed);
    OK(cudaEventCreateWithFlags(&other, cudaEventDisableTiming));
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeGlobal));
    scale(t.y, t.y, 1, 10, t.a);
    OK(cudaEventRecord(t.event, t.a));
    OK(cudaStreamWaitEvent(t.b, t.event, 0));
    scale(t.x, t.x, 1, 100, t.b);
    OK(cudaEventRecord(t.event, t.b));
    scale(t.y, t.y, 1, 1000, t.a);
    if (wait_twice) OK(cudaStreamWaitEvent(t.a, t.event, 0));
    scale(t.x, t.y, 1, 1, t.a);
    if (!wait_twice) OK(cudaStreamWaitEvent(t.a, t.event, 0));
    OK(cudaStreamEndCapture(t.a, &graph));
    cudaGraphExec_t exec = instance(graph);
    OK(cudaGraphLaunch(exec, t.b));
    OK(cudaStreamSynchronize(t.b));
    bool right = device_holds(&t, t.y, 102) && device_holds(&t, t.x, 101);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaEventDestroy(other));
    close_bed(&t);
    return right;
}

static void branches_of_graphs_keep_to_their_waits(void **state)
{
    (void)state;
    int found = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        assert_true(forked(EMU_SHUFFLED, seed, true));
        found += !forked(EMU_SHUFFLED, seed, false);
    }
    assert_in_range(found, 1, SEEDS - 1);
    assert_true(forked(EMU_EAGER, 0, true));
    assert_true(forked(EMU_LAZY, 0, true));
}

/* error: of the call, or of the end where the call says nothing. */
typedef struct forbidden {
    const char *what;
    cudaError_t (*call)(bed *t);
    cudaError_t error;
    bool relaxed; /* may be done where the capture is relaxed */
} forbidden;

static cudaError_t do_malloc(bed *t)
{
    void *more = NULL;
    cudaError_t error = cudaMalloc(&more, 16);
    (void)t;
    return more ? cudaFree(more) : error;
}

static cudaError_t do_free(bed *t)
{
    (void)t;
    return cudaFree(NULL);
}

static cudaError_t do_synchronise(bed *t)
{
    return cudaStreamSynchronize(t->a);
}

static cudaError_t do_query(bed *t)
{
    return cudaStreamQuery(t->a);
}

static cudaError_t do_query_event(bed *t)
{
    return cudaEventQuery(t->event);
}

static cudaError_t do_query_captured(bed *t)
{
    OK(cudaEventRecord(t->event, t->a));
    return cudaEventQuery(t->event);
}

static cudaError_t do_copy_pageable(bed *t)
{
    return cudaMemcpyAsync(t->x, t->host, BYTES, cudaMemcpyHostToDevice, t->a);
}

static cudaError_t do_wait_outside(bed *t)
{
    return cudaStreamWaitEvent(t->a, t->event, 0);
}

static cudaError_t do_fork(bed *t)
{
    cudaEvent_t fork;
    OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    OK(cudaEventRecord(fork, t->a));
    OK(cudaStreamWaitEvent(t->b, fork, 0));
    scale(t->x, t->x, 1, 1, t->b);
    OK(cudaEventDestroy(fork));
    return cudaErrorStreamCaptureUnjoined;
}

static const forbidden all_forbidden[] = {
    {"malloc", do_malloc, cudaErrorStreamCaptureUnsupported, true},
    {"free", do_free, cudaErrorStreamCaptureUnsupported, true},
    {"synchronise", do_synchronise, cudaErrorStreamCaptureUnsupported, false},
    {"query", do_query, cudaErrorStreamCaptureUnsupported, false},
    {"query of an event", do_query_event, cudaErrorStreamCaptureUnsupported, true},
    {"query of a captured event", do_query_captured, cudaErrorCapturedEvent, false},
    {"pageable memory", do_copy_pageable, cudaErrorStreamCaptureUnsupported, false},
    {"a wait for work outside", do_wait_outside, cudaErrorStreamCaptureIsolation, false},
    {"a branch that does not join", do_fork, cudaErrorStreamCaptureUnjoined, false},
};

static void forbid(const forbidden *f, enum cudaStreamCaptureMode mode)
{
    bed t;
    cudaGraph_t graph = NULL;
    open_bed(&t, EMU_LAZY, 0);
    OK(cudaEventRecord(t.event, t.b));
    OK(cudaEventSynchronize(t.event));
    OK(cudaStreamBeginCapture(t.a, mode));
    scale(t.x, t.x, 1, 1, t.a);
    cudaError_t error = f->call(&t), end = cudaStreamEndCapture(t.a, &graph);
    bool may = f->relaxed && mode == cudaStreamCaptureModeRelaxed;
    if (error != (may ? cudaSuccess : f->error)) fail_msg("%s gives %s", f->what, cudaGetErrorName(error));
    assert_int_equal(graph != NULL, may);
    assert_int_equal(end == cudaSuccess, may);
    assert_int_equal(end == f->error, f->call == do_fork);
    if (graph) OK(cudaGraphDestroy(graph));
    assert_null(emu_fault());
    (void)cudaGetLastError();
    scale(t.x, t.y, 1, 1, t.a); /* as if nothing had been */
    assert_true(device_holds(&t, t.y, 2));
    close_bed(&t);
}

static void captures_forbid_what_waits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all_forbidden / sizeof *all_forbidden; i++)
        for (int mode = 0; mode < 3; mode++) forbid(&all_forbidden[i], (enum cudaStreamCaptureMode)mode);
}

static void *malloc_elsewhere(void *data)
{
    *(cudaError_t *)data = do_malloc(NULL);
    return NULL;
}

/* Whether another thread may allocate meanwhile. */
static bool others_may(enum cudaStreamCaptureMode mode)
{
    bed t;
    pthread_t thread;
    cudaError_t error = cudaSuccess;
    cudaGraph_t graph;
    open_bed(&t, EMU_LAZY, 0);
    OK(cudaStreamBeginCapture(t.a, mode));
    assert_int_equal(pthread_create(&thread, NULL, malloc_elsewhere, &error), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(cudaStreamEndCapture(t.a, &graph) == cudaSuccess, error == cudaSuccess);
    if (graph) OK(cudaGraphDestroy(graph));
    close_bed(&t);
    return !error;
}

static void captures_of_a_thread_leave_others_alone(void **state)
{
    (void)state;
    assert_false(others_may(cudaStreamCaptureModeGlobal));
    assert_true(others_may(cudaStreamCaptureModeThreadLocal));
    assert_true(others_may(cudaStreamCaptureModeRelaxed));
}

/* ---- memory ---- */

static void fresh_memory_is_nan(void **state)
{
    (void)state;
    bed t;
    float *more;
    open_bed(&t, EMU_EAGER, 0);
    OK(cudaMalloc((void **)&more, BYTES));
    assert_int_equal((uintptr_t)more % 256, 0);
    scale(more, t.y, 1, 1, t.a);
    OK(cudaMemcpyAsync(t.host, t.y, BYTES, cudaMemcpyDefault, t.a));
    for (int i = 0; i < COUNT; i++) assert_true(isnan(t.host[i]));
    OK(cudaFree(more));
    close_bed(&t);
}

static cudaError_t copy_too_much(bed *t)
{
    return cudaMemcpyAsync(t->x, t->y, BYTES + 1, cudaMemcpyDeviceToDevice, t->a);
}

static cudaError_t copy_too_much_pinned(bed *t)
{
    return cudaMemcpyAsync(t->pinned + COUNT + 1, t->y, BYTES, cudaMemcpyDeviceToHost, t->a);
}

static cudaError_t copy_the_wrong_way(bed *t)
{
    return cudaMemcpyAsync(t->x, t->y, BYTES, cudaMemcpyHostToDevice, t->a);
}

static cudaError_t copy_onto_itself(bed *t)
{
    OK(cudaMemcpyAsync(t->x, t->x + 1, BYTES / 2, cudaMemcpyDeviceToDevice, t->a));
    return cudaStreamSynchronize(t->a);
}

static cudaError_t set_too_much(bed *t)
{
    return cudaMemsetAsync(t->x + 1, 0, BYTES, t->a);
}

static cudaError_t set_host(bed *t)
{
    return cudaMemsetAsync(t->host, 0, BYTES, t->a);
}

static float *freed(void)
{
    void *gone;
    OK(cudaMalloc(&gone, BYTES));
    OK(cudaFree(gone));
    return gone;
}

static cudaError_t free_twice(bed *t)
{
    (void)t;
    return cudaFree(freed());
}

static cudaError_t free_the_middle(bed *t)
{
    return cudaFree(t->x + 1);
}

static cudaError_t copy_freed(bed *t)
{
    return cudaMemcpyAsync(t->x, freed(), BYTES, cudaMemcpyDeviceToDevice, t->a);
}

static cudaError_t run_with(bed *t, const float *from)
{
    queued_args a = {from, t->y, COUNT, 1, 1};
    cudaError_t error = queued_launch(&a, t->a);
    return error ? error : cudaStreamSynchronize(t->a);
}

static cudaError_t run_with_freed(bed *t)
{
    return run_with(t, freed());
}

/* Beyond what lies between the end of the block and that of its page. */
static cudaError_t run_beyond(bed *t)
{
    return run_with(t, t->x + 512 / sizeof(float) + COUNT);
}

static cudaError_t replay_freed(bed *t)
{
    cudaGraph_t graph;
    void *gone;
    OK(cudaMalloc(&gone, BYTES));
    OK(cudaStreamBeginCapture(t->a, cudaStreamCaptureModeThreadLocal));
    OK(cudaMemcpyAsync(t->x, gone, BYTES, cudaMemcpyDeviceToDevice, t->a));
    OK(cudaStreamEndCapture(t->a, &graph));
    OK(cudaFree(gone));
    cudaGraphExec_t exec = instance(graph);
    OK(cudaGraphLaunch(exec, t->a));
    cudaError_t error = cudaStreamSynchronize(t->a);
    assert_int_equal(cudaGraphExecDestroy(exec), cudaErrorLaunchFailure);
    return error;
}

typedef struct mistake {
    cudaError_t (*make)(bed *t);
    cudaError_t error;
    const char *words;
} mistake;

static const mistake all_mistakes[] = {
    {copy_too_much, cudaErrorInvalidValue, "target of a copy of 401 bytes"},
    {copy_too_much_pinned, cudaErrorInvalidValue, "byte 404 of pinned memory of 800"},
    {copy_the_wrong_way, cudaErrorInvalidValue, "a copy of the wrong kind"},
    {copy_onto_itself, cudaErrorLaunchFailure, "overlap"},
    {set_too_much, cudaErrorInvalidValue, "byte 4 of device memory of 400"},
    {set_host, cudaErrorInvalidValue, "memory to set is the host's"},
    {free_twice, cudaErrorInvalidValue, "memory is freed that is none of the device"},
    {free_the_middle, cudaErrorInvalidValue, "memory is freed that is none of the device"},
    {copy_freed, cudaErrorInvalidValue, "freed device memory"},
    {run_with_freed, cudaErrorLaunchFailure, "of freed device memory"},
    {run_beyond, cudaErrorLaunchFailure, "of device memory of 400"},
    {replay_freed, cudaErrorLaunchFailure, "freed device memory"},
};

/* Then nothing works any more, but that things can be given back. */
static void mistakes_are_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all_mistakes / sizeof *all_mistakes; i++) {
        const mistake *m = &all_mistakes[i];
        bed t;
        open_bed(&t, EMU_LAZY, 0);
        cudaError_t error = m->make(&t);
        if (!emu_fault() || !strstr(emu_fault(), m->words)) fail_msg("mistake %zu: %s", i, emu_fault());
        assert_int_equal(error, m->error);
        assert_int_equal(cudaMemsetAsync(t.x, 0, BYTES, t.a), cudaErrorLaunchFailure);
        assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
        assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
        close_bed(&t);
    }
}

/* A child touches *at, unless NULL; what it says comes into words. */
static int touched(volatile float *at, char *words, size_t room)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], STDERR_FILENO);
        if (at) *at = 1;
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t got; (got = read(ends[0], words + used, used < room - 1 ? room - 1 - used : 0)) > 0;)
        used += (size_t)got;
    words[used] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void hidden_memory(int timing)
{
    char words[1000];
    bed t;
    open_bed(&t, timing, 5);
    assert_int_equal(touched(t.x + 3, words, sizeof words), 0);
    emu_protect(1);
    assert_int_equal(touched(NULL, words, sizeof words), 0);
    assert_int_not_equal(touched(t.x + 3, words, sizeof words), 0);
    assert_non_null(strstr(words, "the host touches memory of the device, byte 12 of device memory of 400"));
    scale(t.x, t.y, 1, 5, t.a);
    assert_int_not_equal(touched(t.y, words, sizeof words), 0);
    assert_true(device_holds(&t, t.y, 6));
    assert_int_not_equal(touched(t.y, words, sizeof words), 0);
    assert_int_equal(run_beyond(&t), cudaErrorLaunchFailure);
    assert_non_null(strstr(emu_fault(), "of device memory of 400"));
    close_bed(&t);
    emu_protect(0);
}

static void the_host_cannot_touch_device_memory(void **state)
{
    (void)state;
    void (*former)(int) = signal(SIGSEGV, SIG_DFL); /* cmocka's, which would go on in the child */
    for (int timing = 0; timing < EMU_TIMINGS; timing++) hidden_memory(timing);
    signal(SIGSEGV, former);
}

static void many_small_blocks(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    static float *blocks[MANY];
    bed t;
    open_bed(&t, EMU_LAZY, 0);
    emu_protect(1);
    for (int i = 0; i < MANY; i++) {
        OK(cudaMalloc((void **)&blocks[i], sizeof(float[4])));
        OK(cudaMemsetAsync(blocks[i], 0, sizeof(float[4]), t.a));
    }
    assert_int_equal(emu_allocated(), MANY * sizeof(float[4]) + 2 * BYTES);
    assert_int_equal(emu_count().mallocs, MANY);
    OK(cudaMemcpyAsync(t.host, blocks[MANY / 2], sizeof(float[4]), cudaMemcpyDeviceToHost, t.a));
    assert_true(t.host[0] == 0 && t.host[3] == 0);
    for (int i = 0; i < MANY; i += 2) OK(cudaFreeAsync(blocks[i], t.a));
    for (int i = 1; i < MANY; i += 2) OK(cudaFree(blocks[i]));
    emu_protect(0);
    close_bed(&t);
}

static void mapped_memory_is_written_by_kernels(void **state)
{
    (void)state;
    bed t;
    float *mapped;
    open_bed(&t, EMU_LAZY, 0);
    OK(cudaHostGetDevicePointer((void **)&mapped, t.pinned, 0));
    scale(t.x, mapped, 1, 5, t.a);
    assert_false(holds(t.pinned, 6));
    OK(cudaStreamSynchronize(t.a));
    assert_true(holds(t.pinned, 6));
    struct cudaPointerAttributes about;
    OK(cudaPointerGetAttributes(&about, t.pinned + 1));
    assert_int_equal(about.type, cudaMemoryTypeHost);
    OK(cudaPointerGetAttributes(&about, t.x + 1));
    assert_int_equal(about.type, cudaMemoryTypeDevice);
    OK(cudaPointerGetAttributes(&about, &about));
    assert_int_equal(about.type, cudaMemoryTypeUnregistered);
    close_bed(&t);
}

static void shared_memory_must_be_allowed(void **state)
{
    (void)state;
    bed t;
    open_bed(&t, EMU_EAGER, 0);
    OK(queued_shared_launch(t.x, 48 * 1024, 0, t.a));
    OK(queued_shared_launch(t.x, 100 * 1024, 100 * 1024, t.a));
    assert_int_equal(queued_shared_launch(t.x, 100 * 1024, 228 * 1024, t.a), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
    OK(queued_shared_launch(t.x, 64 * 1024, 64 * 1024, t.a));
    assert_int_equal(queued_shared_launch(t.x, 64 * 1024 + 1, 0, t.a), cudaErrorLaunchFailure);
    assert_non_null(strstr(emu_fault(), "refused"));
    emu_clear();
    OK(cudaMemcpyAsync(t.host, t.x, BYTES, cudaMemcpyDeviceToHost, t.a));
    assert_true(t.host[0] == 4 && t.host[1] == 2);
    close_bed(&t);
}

/* ---- what goes wrong on order ---- */

static void machines_without_a_device(void **state)
{
    (void)state;
    int count = 7, device;
    static const cudaError_t errors[] = {cudaErrorNoDevice, cudaErrorInsufficientDriver};
    for (int i = 0; i < 2; i++) {
        struct cudaDeviceProp properties;
        emu_devices(0, (int)errors[i]);
        assert_int_equal(cudaGetDeviceCount(&count), errors[i]);
        assert_int_equal(count, 0);
        assert_int_equal(cudaGetDeviceProperties(&properties, 0), errors[i]);
        assert_int_equal(cudaGetLastError(), errors[i]);
        OK(cudaGetLastError());
    }
    emu_devices(2, 0);
    OK(cudaGetDeviceCount(&count));
    assert_int_equal(count, 2);
    OK(cudaSetDevice(1));
    OK(cudaGetDevice(&device));
    assert_int_equal(device, 1);
    assert_int_equal(cudaSetDevice(2), cudaErrorInvalidDevice);
    OK(cudaSetDevice(0));
    emu_devices(1, 0);
    assert_string_equal(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice");
    assert_string_equal(cudaGetErrorString(cudaErrorNoDevice), "no CUDA-capable device is detected");
    (void)cudaGetLastError();
}

/* A stream belongs to the device that was current. */
static void streams_belong_to_a_device(void **state)
{
    (void)state;
    bed t;
    open_bed(&t, EMU_EAGER, 0);
    queued_args a = {t.x, t.y, COUNT, 1, 1};
    emu_devices(2, 0);
    OK(cudaSetDevice(1));
    assert_int_equal(queued_launch(&a, t.a), cudaErrorInvalidResourceHandle);
    OK(cudaSetDevice(0));
    OK(queued_launch(&a, t.a));
    emu_devices(1, 0);
    close_bed(&t);
}

static void allocations_fail_on_order(void **state)
{
    (void)state;
    bed t;
    void *more[2] = {NULL};
    size_t unused, total;
    open_bed(&t, EMU_LAZY, 0);
    emu_fail_allocation(2);
    OK(cudaMalloc(&more[0], 16));
    assert_int_equal(cudaHostAlloc(&more[1], 16, cudaHostAllocMapped), cudaErrorMemoryAllocation);
    OK(cudaHostAlloc(&more[1], 16, cudaHostAllocMapped));
    OK(cudaFree(more[0]));
    OK(cudaFreeHost(more[1]));
    emu_memory(1000);
    OK(cudaMemGetInfo(&unused, &total));
    assert_int_equal(total, 1000);
    assert_int_equal(unused, 1000 - 2 * BYTES);
    assert_int_equal(cudaMalloc(&more[0], unused + 1), cudaErrorMemoryAllocation);
    assert_null(more[0]);
    OK(cudaMalloc(&more[0], unused));
    OK(cudaFree(more[0]));
    emu_memory(0);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    scale(t.x, t.y, 1, 5, t.a); /* an error that nobody asked for would come here */
    assert_true(device_holds(&t, t.y, 6));
    close_bed(&t);
}

static void operations_fail_on_order(void **state)
{
    (void)state;
    bed t;
    open_bed(&t, EMU_LAZY, 0);
    emu_fail_operation(2);
    scale(t.x, t.y, 1, 5, t.a);
    scale(t.y, t.y, 1, 5, t.a);
    OK(cudaEventRecord(t.event, t.a));
    assert_null(emu_fault());
    assert_int_equal(cudaEventSynchronize(t.event), cudaErrorLaunchFailure);
    assert_int_equal(cudaStreamSynchronize(t.b), cudaErrorLaunchFailure);
    emu_clear();
    assert_true(device_holds(&t, t.y, 6));
    close_bed(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_runs_before_a_wait),
        cmocka_unit_test(arguments_and_pageable_memory_are_taken_at_the_call),
        cmocka_unit_test(pinned_memory_is_read_when_the_copy_runs),
        cmocka_unit_test(events_order_streams),
        cmocka_unit_test(events_can_be_recorded_again),
        cmocka_unit_test(who_asks_often_comes_to_the_end),
        cmocka_unit_test(destroyed_streams_finish),
        cmocka_unit_test(host_functions_run_in_order),
        cmocka_unit_test(times_between_events),
        cmocka_unit_test(threads_have_streams_of_their_own),
        cmocka_unit_test(graphs_replay_what_was_recorded),
        cmocka_unit_test(branches_of_graphs_keep_to_their_waits),
        cmocka_unit_test(captures_forbid_what_waits),
        cmocka_unit_test(captures_of_a_thread_leave_others_alone),
        cmocka_unit_test(fresh_memory_is_nan),
        cmocka_unit_test(mistakes_are_faults),
        cmocka_unit_test(the_host_cannot_touch_device_memory),
        cmocka_unit_test(many_small_blocks),
        cmocka_unit_test(mapped_memory_is_written_by_kernels),
        cmocka_unit_test(shared_memory_must_be_allowed),
        cmocka_unit_test(machines_without_a_device),
        cmocka_unit_test(streams_belong_to_a_device),
        cmocka_unit_test(allocations_fail_on_order),
        cmocka_unit_test(operations_fail_on_order),
    };
    return cmocka_run_group_tests_name("cuda_runtime", tests, NULL, NULL);
}
