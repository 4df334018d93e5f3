/* The runtime of the emulated GPU does what CUDA promises and no more: work runs as late, or in as strange an order, as
 * it may, and hosts that are wrong get wrong results, an error or a fault. Every mistake stands beside the same host
 * without it. */
#include "runtime_bed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* ---- streams ---- */

static void nothing_runs_before_a_wait(void **state)
{
    bed t;
    bed_open(&t, EMU_LAZY, 0);
    bed_fill(t.pinned + COUNT, 0);
    bed_scale(t.x, t.y, 1, 5, t.a);
    OK(cudaMemcpyAsync(t.pinned + COUNT, t.y, BYTES, cudaMemcpyDeviceToHost, t.a));
    assert_int_equal(emu_count().operations, 0);
    assert_true(bed_holds(t.pinned + COUNT, 0));
    OK(cudaStreamSynchronize(t.a));
    assert_true(bed_holds(t.pinned + COUNT, 6));
    OK(cudaStreamSynchronize(t.a));
    emu_counts c = emu_count();
    assert_int_equal(c.operations, 2);
    assert_int_equal(c.launches, 1);
    assert_int_equal(c.copies, 1);
    assert_int_equal(c.synchronisations, 2);
    assert_int_equal(c.waits, 1);
    bed_close(&t);
}

/* bed_scale and bed_upload overwrite what they gave; so does this. */
static void arguments_and_pageable_memory_are_taken_at_the_call(void **state)
{
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        bed t;
        bed_open(&t, timing, 1);
        bed_upload(t.x, 10, t.a);
        bed_scale(t.x, t.y, 1, 5, t.a);
        assert_true(bed_device_holds(&t, t.y, 15));
        bed_close(&t);
    }
}

/* A host that writes its pinned buffer again before the copy has run. */
static bool upload_twice(int timing, bool wait)
{
    bed t;
    bed_open(&t, timing, 0);
    bed_fill(t.pinned, 3);
    OK(cudaMemcpyAsync(t.x, t.pinned, BYTES, cudaMemcpyHostToDevice, t.a));
    OK(cudaEventRecord(t.event, t.a));
    if (wait) OK(cudaEventSynchronize(t.event));
    bed_fill(t.pinned, 4);
    OK(cudaMemcpyAsync(t.y, t.pinned, BYTES, cudaMemcpyHostToDevice, t.a));
    bool right = bed_device_holds(&t, t.x, 3) && bed_device_holds(&t, t.y, 4);
    bed_close(&t);
    return right;
}

static void pinned_memory_is_read_when_the_copy_runs(void **state)
{
    assert_true(upload_twice(EMU_EAGER, false));
    assert_false(upload_twice(EMU_LAZY, false));
    for (int timing = 0; timing < EMU_TIMINGS; timing++) assert_true(upload_twice(timing, true));
}

/* b reads what a writes. */
static bool hand_over(int timing, uint64_t seed, bool wait)
{
    bed t;
    bed_open(&t, timing, seed);
    bed_scale(t.x, t.y, 1, 5, t.a);
    OK(cudaEventRecord(t.event, t.a));
    if (wait) OK(cudaStreamWaitEvent(t.b, t.event, 0));
    bed_scale(t.y, t.y, 1, 100, t.b);
    OK(cudaStreamSynchronize(t.b));
    OK(cudaStreamSynchronize(t.a));
    bool right = bed_device_holds(&t, t.y, 106);
    bed_close(&t);
    return right;
}

static void events_order_streams(void **state)
{
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
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        bed t;
        bed_open(&t, seed ? EMU_SHUFFLED : EMU_LAZY, seed);
        OK(cudaEventQuery(t.event));
        bed_scale(t.x, t.y, 1, 5, t.a);
        OK(cudaEventRecord(t.event, t.a));
        OK(cudaStreamWaitEvent(t.b, t.event, 0));
        bed_scale(t.y, t.y, 1, 100, t.b);
        OK(cudaEventRecord(t.event, t.b));
        OK(cudaEventSynchronize(t.event));
        assert_true(bed_device_holds(&t, t.y, 106));
        bed_close(&t);
    }
}

static void who_asks_often_comes_to_the_end(void **state)
{
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        bed t;
        int asked = 0;
        bed_open(&t, timing, 2);
        for (int i = 0; i < 30; i++) bed_scale(t.x, t.x, 1, 1, t.a);
        OK(cudaEventRecord(t.event, t.a));
        OK(cudaStreamWaitEvent(t.b, t.event, 0));
        while (cudaStreamQuery(t.b) == cudaErrorNotReady) assert_true(asked++ < 100);
        OK(cudaEventQuery(t.event));
        assert_int_equal(cudaGetLastError(), asked ? cudaErrorNotReady : cudaSuccess);
        assert_int_equal(asked != 0, timing != EMU_EAGER);
        assert_true(bed_device_holds(&t, t.x, 31));
        bed_close(&t);
    }
}

/* What a destroyed stream holds still runs, and a destroyed event still orders. */
static void destroyed_streams_finish(void **state)
{
    bed t;
    cudaStream_t gone;
    cudaEvent_t event;
    bed_open(&t, EMU_LAZY, 0);
    OK(cudaStreamCreateWithPriority(&gone, cudaStreamNonBlocking, 0));
    OK(cudaEventCreate(&event));
    bed_scale(t.x, t.y, 1, 5, gone);
    OK(cudaEventRecord(event, gone));
    OK(cudaStreamWaitEvent(t.a, event, 0));
    OK(cudaEventDestroy(event));
    OK(cudaStreamDestroy(gone));
    assert_true(bed_device_holds(&t, t.y, 6));
    assert_int_equal(cudaStreamSynchronize(gone), cudaErrorInvalidResourceHandle);
    assert_non_null(strstr(emu_fault(), "no such stream"));
    bed_close(&t);
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
    bed t;
    int error = 0;
    bed_open(&t, EMU_LAZY, 0);
    t.pinned[0] = 0;
    for (float i = 7; i < 9; i++) {
        OK(cudaMemsetAsync(t.x, 0, BYTES, t.a));
        bed_scale(t.x, t.x, 1, i, t.a);
        OK(cudaMemcpyAsync(t.pinned + COUNT, t.x, BYTES, cudaMemcpyDeviceToHost, t.a));
        OK(cudaLaunchHostFunc(t.a, append, t.pinned));
    }
    OK(cudaStreamSynchronize(t.a));
    assert_true(t.pinned[0] == 2 && t.pinned[1] == 7 && t.pinned[2] == 8);
    OK(cudaLaunchHostFunc(t.a, call_cuda, &error));
    assert_int_equal(cudaStreamSynchronize(t.a), cudaErrorLaunchFailure);
    assert_int_equal(error, cudaErrorNotPermitted);
    assert_non_null(strstr(emu_fault(), "a host function calls CUDA"));
    bed_close(&t);
}

static void times_between_events(void **state)
{
    bed t;
    cudaEvent_t start, end;
    float ms = -1;
    bed_open(&t, EMU_LAZY, 0);
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaEventRecord(start, t.a));
    bed_scale(t.x, t.y, 1, 5, t.a);
    OK(cudaEventRecord(end, t.a));
    assert_int_equal(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
    OK(cudaEventSynchronize(end));
    OK(cudaEventElapsedTime(&ms, start, end));
    assert_true(ms > 0 && ms < 10000);
    OK(cudaEventRecord(t.event, t.a));
    assert_int_equal(cudaEventElapsedTime(&ms, start, t.event), cudaErrorInvalidResourceHandle);
    OK(cudaEventDestroy(start));
    OK(cudaEventDestroy(end));
    bed_close(&t);
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
    bed_fill(host, w->value);
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
    w->right = bed_holds(host, w->value + ROUNDS);
    w->errors += cudaFree(x) != cudaSuccess;
    w->errors += cudaFree(y) != cudaSuccess;
    w->errors += cudaStreamDestroy(stream) != cudaSuccess;
    return NULL;
}

static void threads_have_streams_of_their_own(void **state)
{
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

/* ---- what goes wrong on order ---- */

static void machines_without_a_device(void **state)
{
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
    bed t;
    bed_open(&t, EMU_EAGER, 0);
    queued_args a = {t.x, t.y, COUNT, 1, 1};
    emu_devices(2, 0);
    OK(cudaSetDevice(1));
    assert_int_equal(queued_launch(&a, t.a), cudaErrorInvalidResourceHandle);
    OK(cudaSetDevice(0));
    OK(queued_launch(&a, t.a));
    emu_devices(1, 0);
    bed_close(&t);
}

static void allocations_fail_on_order(void **state)
{
    bed t;
    void *more[2] = {NULL};
    size_t unused, total;
    bed_open(&t, EMU_LAZY, 0);
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
    bed_scale(t.x, t.y, 1, 5, t.a); /* an error that nobody requested would come here */
    assert_true(bed_device_holds(&t, t.y, 6));
    bed_close(&t);
}

static void operations_fail_on_order(void **state)
{
    bed t;
    bed_open(&t, EMU_LAZY, 0);
    emu_fail_operation(2);
    bed_scale(t.x, t.y, 1, 5, t.a);
    bed_scale(t.y, t.y, 1, 5, t.a);
    OK(cudaEventRecord(t.event, t.a));
    assert_null(emu_fault());
    assert_int_equal(cudaEventSynchronize(t.event), cudaErrorLaunchFailure);
    assert_int_equal(cudaStreamSynchronize(t.b), cudaErrorLaunchFailure);
    emu_clear();
    assert_true(bed_device_holds(&t, t.y, 6));
    bed_close(&t);
}

/* ---- operations that wait for others ---- */

typedef struct appointment {
    atomic_int there, tried, gone;
} appointment;

static int try_to_meet(const void *data)
{
    appointment *with = *(appointment *const *)data;
    atomic_fetch_add(&with->tried, 1);
    return atomic_load(&with->there);
}

static void count_gone(const void *data)
{
    atomic_fetch_add(&(*(appointment *const *)data)->gone, 1);
}

static void *come(void *of)
{
    atomic_store(&((appointment *)of)->there, 1);
    return NULL;
}

/* b goes on while a waits, asking does not hold the host, and a wait lets other threads in. */
static void meetings_wait_for_others(void **state)
{
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        bed t;
        pthread_t other;
        appointment with = {0}, *place = &with;
        bed_open(&t, timing, 5);
        OK((cudaError_t)emu_meet(t.a, try_to_meet, count_gone, &place, sizeof place));
        bed_scale(t.x, t.x, 1, 100, t.a);
        OK(cudaEventRecord(t.event, t.a));
        bed_scale(t.y, t.y, 1, 5, t.b);
        OK(cudaStreamSynchronize(t.b));
        for (int i = 0; i < 20; i++) assert_int_equal(cudaEventQuery(t.event), cudaErrorNotReady);
        assert_true(atomic_load(&with.tried) > 0 && !atomic_load(&with.gone));
        assert_int_equal(pthread_create(&other, NULL, come, &with), 0);
        OK(cudaStreamSynchronize(t.a));
        pthread_join(other, NULL);
        assert_int_equal(atomic_load(&with.gone), 1);
        assert_true(bed_device_holds(&t, t.x, 101) && bed_device_holds(&t, t.y, 7));
        bed_close(&t);
    }
}

/* Whenever the graph is; it is gone with the graph. */
static void meetings_are_replayed(void **state)
{
    for (int timing = 0; timing < EMU_TIMINGS; timing++) {
        bed t;
        cudaGraph_t graph;
        appointment with = {0}, *place = &with;
        bed_open(&t, timing, 6);
        OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
        OK((cudaError_t)emu_meet(t.a, try_to_meet, count_gone, &place, sizeof place));
        bed_scale(t.x, t.x, 1, 100, t.a);
        OK(cudaStreamEndCapture(t.a, &graph));
        cudaGraphExec_t exec = bed_instance(graph);
        for (int i = 0; i < 2; i++) {
            atomic_store(&with.there, 0);
            OK(cudaGraphLaunch(exec, t.a));
            for (int k = 0; k < 20; k++) assert_int_equal(cudaStreamQuery(t.a), cudaErrorNotReady);
            atomic_store(&with.there, 1);
            OK(cudaStreamSynchronize(t.a));
        }
        assert_true(bed_device_holds(&t, t.x, 201));
        assert_int_equal(atomic_load(&with.gone), 0);
        OK(cudaGraphExecDestroy(exec));
        assert_int_equal(atomic_load(&with.gone), 1);
        bed_close(&t);
    }
}

/* ---- devices ---- */

static void memory_belongs_to_a_device(void **state)
{
    void *first, *second;
    struct cudaPointerAttributes of;
    cudaStream_t stream;
    emu_devices(2, 0);
    OK(cudaMalloc(&first, 64));
    OK(cudaSetDevice(1));
    OK(cudaMalloc(&second, 64));
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    assert_int_equal(emu_device(), 1);
    assert_int_equal(emu_device_of(first), 0);
    assert_int_equal(emu_device_of((char *)second + 63), 1);
    assert_int_equal(emu_device_of(&second), -1);
    assert_int_equal(emu_stream_device(stream), 1);
    OK(cudaPointerGetAttributes(&of, second));
    assert_int_equal(of.device, 1);
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(first));
    OK(cudaFree(second));
    OK(cudaSetDevice(0));
    emu_devices(1, 0);
}

/* ---- a dry run ---- */

static emu_event watched[8];
static queued_args watched_arguments;
static int watched_count;

static void watch(const emu_event *event)
{
    if (watched_count < 8) watched[watched_count] = *event;
    if (event->kind == EMU_LAUNCH) memcpy(&watched_arguments, event->arguments, sizeof watched_arguments);
    watched_count++;
}

/* Kernels are told, in graphs too, and do nothing; copies take place. */
static void a_dry_run_tells_and_does_nothing(void **state)
{
    cudaGraph_t graph;
    bed t;
    bed_open(&t, EMU_EAGER, 0);
    bed_upload(t.x, 10, t.a);
    bed_upload(t.y, 20, t.a);
    emu_dry(watch);
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
    bed_scale(t.x, t.y, 1, 5, t.a);
    OK(cudaMemcpyAsync(t.x, t.y, BYTES, cudaMemcpyDeviceToDevice, t.a));
    OK(cudaStreamEndCapture(t.a, &graph));
    assert_int_equal(watched_count, 0);
    cudaGraphExec_t exec = bed_instance(graph);
    OK(cudaGraphLaunch(exec, t.a));
    OK(cudaStreamSynchronize(t.a));
    assert_int_equal(watched_count, 2);
    emu_dry(NULL);
    assert_int_equal(watched[0].kind, EMU_LAUNCH);
    assert_int_equal(watched[0].argument_bytes, sizeof(queued_args));
    assert_int_equal(watched[0].grid[0] * watched[0].block[0] / 64, (COUNT + 63) / 64);
    assert_ptr_equal(watched_arguments.from, t.x);
    assert_ptr_equal(watched_arguments.to, t.y);
    assert_int_equal(watched_arguments.count, COUNT);
    assert_int_equal(watched[1].kind, EMU_COPY);
    assert_true(watched[1].stream == watched[0].stream && watched[1].from_device && watched[1].to_device);
    assert_true(bed_device_holds(&t, t.x, 20));
    OK(cudaGraphLaunch(exec, t.a));
    assert_true(bed_device_holds(&t, t.y, 25));
    assert_int_equal(watched_count, 2);
    OK(cudaGraphExecDestroy(exec));
    bed_close(&t);
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
        cmocka_unit_test(machines_without_a_device),
        cmocka_unit_test(streams_belong_to_a_device),
        cmocka_unit_test(allocations_fail_on_order),
        cmocka_unit_test(operations_fail_on_order),
        cmocka_unit_test(meetings_wait_for_others),
        cmocka_unit_test(meetings_are_replayed),
        cmocka_unit_test(memory_belongs_to_a_device),
        cmocka_unit_test(a_dry_run_tells_and_does_nothing),
    };
    return cmocka_run_group_tests_name("cuda_runtime", tests, NULL, NULL);
}
