/* Finds the functions of emu_control.h in the plugin, and opens it. */
#include "emulated.h"

#include "device/device.h"

#include <dlfcn.h>
#include <stdio.h>

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
    *(void **)(&gpu.multiprocessors) = find(library, "emu_multiprocessors");
    *(void **)(&gpu.clusters) = find(library, "emu_clusters");
    *(void **)(&gpu.clusters_at_once) = find(library, "emu_clusters_at_once");
    *(void **)(&gpu.shared) = find(library, "emu_shared");
    *(void **)(&gpu.code) = find(library, "emu_code");
    *(void **)(&gpu.has_context) = find(library, "emu_has_context");
    *(void **)(&gpu.exclusive) = find(library, "emu_exclusive");
    *(void **)(&gpu.entries) = find(library, "emu_entries");
    *(void **)(&gpu.device) = find(library, "emu_device");
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

exphil_context_config emulated_config(const char *device, exphil_log_fn log, void *user)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    config.device = device;
    config.backend_path = EMULATED_FOLDER;
    config.log = log;
    config.log_user = user;
    return config;
}

exphil_context *emulated_context(void)
{
    const exphil_context_config config = emulated_config("cuda:0", NULL, NULL);
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_context_create(&config, &context, &error) < 0) fail_msg("%s", error.message);
    return context;
}

/* ---- choices of algorithms ---- */

static void note(void *user, const char *line)
{
    print_message("%s\n", line);
    ++*(int *)user;
}

static void tune(xph_device *device, const char *to)
{
    int lines = 0;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (device->backend->tune(device, to, note, &lines, &error) < 0) fail_msg("%s", error.message);
    assert_int_equal(lines, 1);
}

void emulated_product(float y[EMULATED_NUMBERS], char name[64], const char *tune_to)
{
    enum { SIDE = EMULATED_SIDE, BYTES = EMULATED_NUMBERS * 4 };
    float x[EMULATED_NUMBERS];
    void *at[3];
    exphil_context *context = emulated_context();
    xph_device *device = xph_context_backend(context);
    const xph_backend *b = device->backend;
    xph_stream *stream = NULL;
    xph_op_info info = {0};
    for (int i = 0; i < EMULATED_NUMBERS; i++) x[i] = (float)((i * 7919) % 1013) / 1013.0f - 0.4f;
    assert_int_equal(b->stream_create(device, XPH_STREAM_NET, &stream), EXPHIL_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(b->alloc(device, BYTES, &at[i]), EXPHIL_OK);
        assert_int_equal(b->upload(stream, at[i], x, BYTES), EXPHIL_OK);
    }
    xph_linear_args a = {.rows = SIDE, .in = SIDE, .out = SIDE, .x = at[0], .ldx = SIDE, .w = at[1]};
    a.y = at[2];
    a.ldy = SIDE;
    assert_int_equal(b->query(device, XPH_OP_LINEAR, &a, &info), EXPHIL_OK);
    snprintf(name, 64, "%s", info.name);
    assert_int_equal(b->run(stream, info.kernel, &a), EXPHIL_OK);
    assert_int_equal(b->download(stream, y, at[2], BYTES), EXPHIL_OK);
    assert_int_equal(b->stream_wait(stream), EXPHIL_OK);
    if (tune_to) tune(device, tune_to);
    for (int i = 0; i < 3; i++) b->free(device, at[i], BYTES);
    b->stream_destroy(stream);
    exphil_context_destroy(context);
}

uint64_t emulated_sum(const char *text, size_t bytes)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++) sum = (sum ^ (unsigned char)text[i]) * 0x100000001b3u;
    return sum;
}
