/* A bed for the tests of the emulated GPU's runtime. */
#include "runtime_bed.h"

void bed_fill(float *to, float value)
{
    for (int i = 0; i < COUNT; i++) to[i] = value + (float)i;
}

bool bed_holds(const float *at, float value)
{
    for (int i = 0; i < COUNT; i++)
        if (!(at[i] == value + (float)i)) return false;
    return true;
}

void bed_upload(float *to, float value, cudaStream_t stream)
{
    float host[COUNT];
    bed_fill(host, value);
    OK(cudaMemcpyAsync(to, host, sizeof host, cudaMemcpyHostToDevice, stream));
    memset(host, 0, sizeof host);
}

void bed_open(bed *t, int timing, uint64_t seed)
{
    emu_timing(timing, seed);
    OK(cudaStreamCreateWithFlags(&t->a, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&t->b, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&t->event, cudaEventDisableTiming));
    OK(cudaMalloc((void **)&t->x, BYTES));
    OK(cudaMalloc((void **)&t->y, BYTES));
    OK(cudaHostAlloc((void **)&t->pinned, 2 * BYTES, cudaHostAllocDefault));
    bed_upload(t->x, 1, t->a);
    bed_upload(t->y, 2, t->a);
    OK(cudaStreamSynchronize(t->a));
    emu_counts_clear();
}

void bed_close(bed *t)
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

void bed_scale(const float *from, float *to, float by, float plus, cudaStream_t stream)
{
    queued_args a = {from, to, COUNT, by, plus};
    OK(queued_launch(&a, stream));
    memset(&a, 0, sizeof a);
}

bool bed_device_holds(bed *t, const float *at, float value)
{
    OK(cudaMemcpyAsync(t->host, at, BYTES, cudaMemcpyDeviceToHost, t->a));
    return bed_holds(t->host, value);
}

cudaGraphExec_t bed_instance(cudaGraph_t graph)
{
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    return exec;
}
