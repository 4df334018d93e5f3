/* Finds the functions of emu_control.h in the plugin. */
#include "emulated.h"

#include <dlfcn.h>

static void *find(void *library, const char *name)
{
    void *at = dlsym(library, name);
    if (!at) fail_msg("there is no %s in it", name);
    return at;
}

const emulated *emulated_gpu(void)
{
    static emulated gpu;
    if (gpu.timing) return &gpu;
    void *library = dlopen(EMULATED_FOLDER "/libexphil_cuda.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    *(void **)(&gpu.schedule) = find(library, "emu_schedule");
    *(void **)(&gpu.clock) = find(library, "emu_clock");
    *(void **)(&gpu.protect) = find(library, "emu_protect");
    *(void **)(&gpu.allocated) = find(library, "emu_allocated");
    *(void **)(&gpu.fault) = find(library, "emu_fault");
    *(void **)(&gpu.clusters) = find(library, "emu_clusters");
    *(void **)(&gpu.clear) = find(library, "emu_clear");
    *(void **)(&gpu.devices) = find(library, "emu_devices");
    *(void **)(&gpu.memory) = find(library, "emu_memory");
    *(void **)(&gpu.fail_allocation) = find(library, "emu_fail_allocation");
    *(void **)(&gpu.fail_operation) = find(library, "emu_fail_operation");
    *(void **)(&gpu.count) = find(library, "emu_count");
    *(void **)(&gpu.counts_clear) = find(library, "emu_counts_clear");
    *(void **)(&gpu.call) = find(library, "emu_call");
    *(void **)(&gpu.capturing) = find(library, "emu_capturing");
    *(void **)(&gpu.spoil_capture) = find(library, "emu_spoil_capture");
    *(void **)(&gpu.dry) = find(library, "emu_dry");
    *(void **)(&gpu.timing) = find(library, "emu_timing");
    return &gpu;
}

void emulated_clean(void)
{
    const char *fault = emulated_gpu()->fault();
    if (fault) fail_msg("the emulated GPU says: %s", fault);
    assert_int_equal(emulated_gpu()->allocated(), 0);
    assert_int_equal(emulated_gpu()->count().objects, 0);
}

fake_blaslt *emulated_blaslt(void)
{
    void *library = dlopen(EMULATED_BLASLT, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    fake_blaslt *fake = find(library, "fake");
    fake->call = emulated_gpu()->call;
    fake->capturing = emulated_gpu()->capturing;
    fake->spoil = emulated_gpu()->spoil_capture;
    return fake;
}

fake_cudnn *emulated_cudnn(void)
{
    void *library = dlopen(EMULATED_CUDNN, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    fake_cudnn *fake = find(library, "fake");
    fake->call = emulated_gpu()->call;
    fake->capturing = emulated_gpu()->capturing;
    fake->spoil = emulated_gpu()->spoil_capture;
    return fake;
}

fake_nccl *emulated_nccl(int devices)
{
    void *library = dlopen(EMULATED_NCCL, RTLD_NOW | RTLD_LOCAL),
         *plugin = dlopen(EMULATED_FOLDER "/libexphil_cuda.so", RTLD_NOW | RTLD_LOCAL);
    if (!library || !plugin) fail_msg("%s", dlerror());
    fake_nccl *fake = find(library, "fake");
    *(void **)(&fake->meet) = find(plugin, "emu_meet");
    *(void **)(&fake->device) = find(plugin, "emu_device");
    *(void **)(&fake->device_of) = find(plugin, "emu_device_of");
    *(void **)(&fake->stream_device) = find(plugin, "emu_stream_device");
    fake->capturing = emulated_gpu()->capturing;
    emulated_gpu()->devices(devices, 0);
    return fake;
}

exphil_context *emulated_context(void)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.device = "cuda:0";
    config.backend_path = EMULATED_FOLDER;
    if (exphil_context_create(&config, &context, &error) < 0) fail_msg("%s", error.message);
    return context;
}
