/* Graphs of the emulated GPU: they replay what was recorded, their branches keep to their waits, and captures forbid what
 * waits. Every mistake stands beside the same host without it. */
#include "runtime_bed.h"

#include <pthread.h>

/* Arguments are those of the capture; what changes must lie in memory. */
static void graphs_replay_what_was_recorded(void **state)
{
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        bed t;
        cudaGraph_t graph;
        enum cudaStreamCaptureStatus status;
        size_t nodes = 0;
        bed_open(&t, timing, 4);
        queued_args a = {t.x, t.y, COUNT, 1, 5};
        bed_fill(t.pinned, 0);
        OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
        OK(cudaMemcpyAsync(t.x, t.pinned, BYTES, cudaMemcpyHostToDevice, t.a));
        OK(queued_launch(&a, t.a));
        OK(cudaStreamIsCapturing(t.a, &status));
        OK(cudaStreamEndCapture(t.a, &graph));
        assert_int_equal(status, cudaStreamCaptureStatusActive);
        OK(cudaGraphGetNodes(graph, NULL, &nodes));
        assert_int_equal(nodes, 2);
        assert_int_equal(emu_count().operations, 0);
        cudaGraphExec_t exec = bed_instance(graph);
        a.shift = 1000;
        for (float value = 10; value < 13; value++) {
            bed_fill(t.pinned, value);
            OK(cudaGraphLaunch(exec, t.a));
            assert_true(bed_device_holds(&t, t.y, value + 5));
        }
        assert_int_equal(emu_count().graph_launches, 3);
        assert_int_equal(emu_count().launches, 1);
        OK(cudaGraphLaunch(exec, t.a));
        OK(cudaGraphExecDestroy(exec)); /* it still runs */
        OK(cudaStreamSynchronize(t.a));
        bed_close(&t);
    }
}

/* a forks to b and both meet again: x and y change at the same time, then y takes x in. */
static bool forked(int timing, uint64_t seed, bool wait_twice)
{
    bed t;
    cudaGraph_t graph;
    cudaEvent_t other;
    bed_open(&t, timing, seed);
    OK(cudaEventCreateWithFlags(&other, cudaEventDisableTiming));
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeGlobal));
    bed_scale(t.y, t.y, 1, 10, t.a);
    OK(cudaEventRecord(t.event, t.a));
    OK(cudaStreamWaitEvent(t.b, t.event, 0));
    bed_scale(t.x, t.x, 1, 100, t.b);
    OK(cudaEventRecord(t.event, t.b));
    bed_scale(t.y, t.y, 1, 1000, t.a);
    if (wait_twice) OK(cudaStreamWaitEvent(t.a, t.event, 0));
    bed_scale(t.x, t.y, 1, 1, t.a);
    if (!wait_twice) OK(cudaStreamWaitEvent(t.a, t.event, 0));
    OK(cudaStreamEndCapture(t.a, &graph));
    cudaGraphExec_t exec = bed_instance(graph);
    OK(cudaGraphLaunch(exec, t.b));
    OK(cudaStreamSynchronize(t.b));
    bool right = bed_device_holds(&t, t.y, 102) && bed_device_holds(&t, t.x, 101);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaEventDestroy(other));
    bed_close(&t);
    return right;
}

static void branches_of_graphs_keep_to_their_waits(void **state)
{
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
    return more ? cudaFree(more) : error;
}

static cudaError_t do_free(bed *t)
{
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
    bed_scale(t->x, t->x, 1, 1, t->b);
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
    bed_open(&t, EMU_LAZY, 0);
    OK(cudaEventRecord(t.event, t.b));
    OK(cudaEventSynchronize(t.event));
    OK(cudaStreamBeginCapture(t.a, mode));
    bed_scale(t.x, t.x, 1, 1, t.a);
    cudaError_t error = f->call(&t), end = cudaStreamEndCapture(t.a, &graph);
    bool may = f->relaxed && mode == cudaStreamCaptureModeRelaxed;
    if (error != (may ? cudaSuccess : f->error)) fail_msg("%s gives %s", f->what, cudaGetErrorName(error));
    assert_int_equal(graph != NULL, may);
    assert_int_equal(end == cudaSuccess, may);
    assert_int_equal(end == f->error, f->call == do_fork);
    if (graph) OK(cudaGraphDestroy(graph));
    assert_null(emu_fault());
    (void)cudaGetLastError();
    bed_scale(t.x, t.y, 1, 1, t.a); /* as if nothing had been */
    assert_true(bed_device_holds(&t, t.y, 2));
    bed_close(&t);
}

static void captures_forbid_what_waits(void **state)
{
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
    bed_open(&t, EMU_LAZY, 0);
    OK(cudaStreamBeginCapture(t.a, mode));
    assert_int_equal(pthread_create(&thread, NULL, malloc_elsewhere, &error), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(cudaStreamEndCapture(t.a, &graph) == cudaSuccess, error == cudaSuccess);
    if (graph) OK(cudaGraphDestroy(graph));
    bed_close(&t);
    return !error;
}

static void captures_of_a_thread_leave_others_alone(void **state)
{
    assert_false(others_may(cudaStreamCaptureModeGlobal));
    assert_true(others_may(cudaStreamCaptureModeThreadLocal));
    assert_true(others_may(cudaStreamCaptureModeRelaxed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_replay_what_was_recorded),
        cmocka_unit_test(branches_of_graphs_keep_to_their_waits),
        cmocka_unit_test(captures_forbid_what_waits),
        cmocka_unit_test(captures_of_a_thread_leave_others_alone),
    };
    return cmocka_run_group_tests_name("cuda_graph", tests, NULL, NULL);
}
