/* Memory of the emulated GPU: what is wrong with it is a fault, and the host cannot touch that of the device. */
#include "runtime_bed.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void fresh_memory_is_nan(void **state)
{
    bed t;
    float *more;
    bed_open(&t, EMU_EAGER, 0);
    OK(cudaMalloc((void **)&more, BYTES));
    assert_int_equal((uintptr_t)more % 256, 0);
    bed_scale(more, t.y, 1, 1, t.a);
    OK(cudaMemcpyAsync(t.host, t.y, BYTES, cudaMemcpyDefault, t.a));
    for (int i = 0; i < COUNT; i++) assert_true(isnan(t.host[i]));
    OK(cudaFree(more));
    bed_close(&t);
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
    cudaGraphExec_t exec = bed_instance(graph);
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
    for (size_t i = 0; i < sizeof all_mistakes / sizeof *all_mistakes; i++) {
        const mistake *m = &all_mistakes[i];
        bed t;
        bed_open(&t, EMU_LAZY, 0);
        cudaError_t error = m->make(&t);
        if (!emu_fault() || !strstr(emu_fault(), m->words)) fail_msg("mistake %zu: %s", i, emu_fault());
        assert_int_equal(error, m->error);
        assert_int_equal(cudaMemsetAsync(t.x, 0, BYTES, t.a), cudaErrorLaunchFailure);
        assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
        assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
        bed_close(&t);
    }
}

/* A child touches *at, unless NULL; what it says comes into words. */
static int touched(volatile float *at, char *words, size_t size)
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
    for (ssize_t got; (got = read(ends[0], words + used, used < size - 1 ? size - 1 - used : 0)) > 0;)
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
    bed_open(&t, timing, 5);
    assert_int_equal(touched(t.x + 3, words, sizeof words), 0);
    emu_protect(1);
    assert_int_equal(touched(NULL, words, sizeof words), 0);
    assert_int_not_equal(touched(t.x + 3, words, sizeof words), 0);
    assert_non_null(strstr(words, "the host touches memory of the device, byte 12 of device memory of 400"));
    bed_scale(t.x, t.y, 1, 5, t.a);
    assert_int_not_equal(touched(t.y, words, sizeof words), 0);
    assert_true(bed_device_holds(&t, t.y, 6));
    assert_int_not_equal(touched(t.y, words, sizeof words), 0);
    assert_int_equal(run_beyond(&t), cudaErrorLaunchFailure);
    assert_non_null(strstr(emu_fault(), "of device memory of 400"));
    bed_close(&t);
    emu_protect(0);
}

static void the_host_cannot_touch_device_memory(void **state)
{
    void (*former)(int) = signal(SIGSEGV, SIG_DFL); /* cmocka's, which would go on in the child */
    for (int timing = 0; timing < EMU_TIMINGS; timing++) hidden_memory(timing);
    signal(SIGSEGV, former);
}

static void many_small_blocks(void **state)
{
    enum { MANY = 5000 };
    static float *blocks[MANY];
    bed t;
    bed_open(&t, EMU_LAZY, 0);
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
    bed_close(&t);
}

static void mapped_memory_is_written_by_kernels(void **state)
{
    bed t;
    float *mapped;
    bed_open(&t, EMU_LAZY, 0);
    OK(cudaHostGetDevicePointer((void **)&mapped, t.pinned, 0));
    bed_scale(t.x, mapped, 1, 5, t.a);
    assert_false(bed_holds(t.pinned, 6));
    OK(cudaStreamSynchronize(t.a));
    assert_true(bed_holds(t.pinned, 6));
    struct cudaPointerAttributes about;
    OK(cudaPointerGetAttributes(&about, t.pinned + 1));
    assert_int_equal(about.type, cudaMemoryTypeHost);
    OK(cudaPointerGetAttributes(&about, t.x + 1));
    assert_int_equal(about.type, cudaMemoryTypeDevice);
    OK(cudaPointerGetAttributes(&about, &about));
    assert_int_equal(about.type, cudaMemoryTypeUnregistered);
    bed_close(&t);
}

static void shared_memory_must_be_allowed(void **state)
{
    bed t;
    bed_open(&t, EMU_EAGER, 0);
    OK(queued_shared_launch(t.x, 48 * 1024, 0, t.a));
    OK(queued_shared_launch(t.x, 64 * 1024, 64 * 1024, t.a));
    assert_int_equal(queued_shared_launch(t.x, 64 * 1024 + 1, 0, t.a), cudaErrorLaunchFailure);
    assert_non_null(strstr(emu_fault(), "refused"));
    emu_clear();
    OK(queued_shared_launch(t.x, 100 * 1024, 100 * 1024, t.a));
    assert_int_equal(queued_shared_launch(t.x, 100 * 1024, 228 * 1024, t.a), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
    /* Another thread may be about to launch it. */
    assert_int_equal(queued_shared_launch(t.x, 64 * 1024, 64 * 1024, t.a), cudaErrorLaunchFailure);
    assert_non_null(strstr(emu_fault(), "allowed less shared memory than before"));
    emu_clear();
    OK(cudaMemcpyAsync(t.host, t.x, BYTES, cudaMemcpyDeviceToHost, t.a));
    assert_true(t.host[0] == 4 && t.host[1] == 2);
    bed_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_memory_is_nan),
        cmocka_unit_test(mistakes_are_faults),
        cmocka_unit_test(the_host_cannot_touch_device_memory),
        cmocka_unit_test(many_small_blocks),
        cmocka_unit_test(mapped_memory_is_written_by_kernels),
        cmocka_unit_test(shared_memory_must_be_allowed),
    };
    return cmocka_run_group_tests_name("cuda_memory", tests, NULL, NULL);
}
