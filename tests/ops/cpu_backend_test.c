/* The CPU behind table A: host table checked, memory, copies, queries, work spread over threads or kept
 * inline. */
#include "test.h"

#include "cpu/kernels.h"
#include "device/device.h"

#include <stdlib.h>

typedef struct counting_host {
    xph_host table;
    int64_t live, parallel_calls, pieces;
    int32_t workers;
    bool refuse;
} counting_host;

static void *host_alloc(void *context, size_t bytes)
{
    counting_host *host = context;
    if (host->refuse) return NULL;
    host->live += (int64_t)bytes;
    return test_aligned(64, bytes ? bytes : 1);
}

static void host_free(void *context, void *pointer, size_t bytes)
{
    ((counting_host *)context)->live -= (int64_t)bytes;
    test_aligned_free(pointer);
}

/* The last piece first, so that an order that somebody relies on shows. */
static void host_parallel(void *context, void (*fn)(void *arg, int64_t i, int32_t worker), void *arg,
                          int64_t count)
{
    counting_host *host = context;
    host->parallel_calls++;
    host->pieces += count;
    for (int64_t i = count - 1; i >= 0; i--) fn(arg, i, (int32_t)(i % host->workers));
}

static int32_t host_workers(void *context)
{
    return ((counting_host *)context)->workers;
}

static xph_device *open_on(counting_host *host, int32_t workers, int32_t isa)
{
    xph_device *device = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    *host = (counting_host){.workers = workers};
    host->table = (xph_host){.struct_size = sizeof(xph_host),
                             .abi = XPH_BACKEND_ABI,
                             .context = host,
                             .alloc = host_alloc,
                             .free = host_free,
                             .parallel = host_parallel,
                             .workers = host_workers,
                             .isa = isa};
    assert_int_equal(xph_cpu_backend()->device_open(&host->table, 0, &device, &error), EXPHIL_OK);
    return device;
}

static void info(void **state)
{
    const xph_backend *cpu = xph_cpu_backend();
    exphil_device_info found = EXPHIL_DEVICE_INFO_INIT;
    assert_int_equal(cpu->device_count(), 1);
    assert_int_equal(cpu->device_info(0, &found), EXPHIL_OK);
    assert_string_equal(found.id, "cpu");
    assert_string_equal(found.isa, xph_isa_name(xph_cpu_detect()));
    assert_true(found.name[0] && found.workers >= 1 && found.struct_size == sizeof found);
    assert_true(cpu->device_info(1, &found) < 0);
    assert_null(cpu->record_begin);
}

static void refused(void **state)
{
    const xph_backend *cpu = xph_cpu_backend();
    counting_host host;
    exphil_error error = EXPHIL_ERROR_INIT;
    cpu->device_close(open_on(&host, 1, XPH_ISA_REF));
    xph_device *none = NULL;
    assert_int_equal(cpu->device_open(&host.table, 1, &none, &error), EXPHIL_E_INVALID);
    host.refuse = true;
    assert_int_equal(cpu->device_open(&host.table, 0, &none, &error), EXPHIL_E_MEMORY);
    host.table.abi++;
    assert_int_equal(cpu->device_open(&host.table, 0, &none, &error), EXPHIL_E_VERSION);
    assert_null(none);
    assert_int_equal(host.live, 0);
}

static void memory(void **state)
{
    const xph_backend *cpu = xph_cpu_backend();
    counting_host host;
    xph_device *device = open_on(&host, 1, XPH_ISA_REF);
    xph_stream *stream = NULL;
    void *a = NULL, *b = NULL, *kept = &host;
    char text[8] = "before";
    assert_int_equal(cpu->alloc(device, 100, &a), EXPHIL_OK);
    assert_int_equal(cpu->alloc(device, 0, &b), EXPHIL_OK);
    assert_int_equal(cpu->stream_create(device, 0, &stream), EXPHIL_OK);
    assert_ptr_equal(stream->device, device);
    assert_true((uintptr_t)a % 64 == 0);
    assert_int_equal(cpu->zero(stream, a, 100), EXPHIL_OK);
    assert_int_equal(cpu->upload(stream, a, "after", 6), EXPHIL_OK);
    assert_int_equal(cpu->copy(stream, (char *)a + 50, a, 6), EXPHIL_OK);
    assert_int_equal(cpu->download(stream, text, (char *)a + 50, 6), EXPHIL_OK);
    assert_int_equal(cpu->stream_wait(stream), EXPHIL_OK);
    assert_string_equal(text, "after");
    assert_int_equal(((char *)a)[99], 0);
    host.refuse = true;
    assert_int_equal(cpu->alloc(device, 10, &kept), EXPHIL_E_MEMORY);
    assert_ptr_equal(kept, &host);
    cpu->free(device, a, 100);
    cpu->free(device, b, 0);
    cpu->free(device, NULL, 5);
    cpu->stream_destroy(stream);
    cpu->stream_destroy(NULL);
    cpu->device_close(device);
    assert_int_equal(host.live, 0);
}

static void queries(void **state)
{
    const xph_backend *cpu = xph_cpu_backend();
    counting_host host;
    xph_device *device = open_on(&host, 1, xph_cpu_detect());
    const xph_kernel_set *set = xph_kernels_pick(XPH_F32, xph_cpu_detect());
    xph_linear_args linear = {.type = XPH_F32, .rows = 3, .in = 5, .out = 17};
    xph_rnn_args gru = {.type = XPH_F64, .kind = XPH_RNN_GRU, .batch = 2, .time = 3, .hidden = 6};
    xph_norm_grad_args norm = {.fwd = {.type = XPH_F32, .rows = 3, .width = 5}};
    xph_scan_args wide = {.type = XPH_F32, .batch = 1, .time = 2, .width = 8, .states = 100000};
    xph_axpby_args half = {.type = XPH_BF16, .count = 1};
    xph_op_info found = {.name = "nothing", .scratch_bytes = 1, .packed_bytes = 1};
    assert_int_equal(cpu->query(device, XPH_OP_LINEAR, &linear, &found), EXPHIL_OK);
    assert_string_equal(found.name, xph_kernels_choose(set, XPH_OP_LINEAR, &linear)->name);
    assert_int_equal(found.packed_bytes, XPH_PANEL * 5 * sizeof(float));
    assert_int_equal(found.scratch_bytes, 0);
    assert_int_equal(cpu->query(device, XPH_OP_RNN, &gru, &found), EXPHIL_OK);
    assert_int_equal(found.packed_bytes, XPH_PANEL * 6 * sizeof(double));
    assert_int_equal(cpu->query(device, XPH_OP_NORM_GRAD, &norm, &found), EXPHIL_OK);
    assert_true(found.scratch_bytes >= 15 * sizeof(float) && found.packed_bytes == 0);
    xph_op_info before = found;
    assert_int_equal(cpu->query(device, XPH_OP_SCAN, &wide, &found), EXPHIL_E_UNSUPPORTED);
    assert_int_equal(cpu->query(device, XPH_OP_AXPBY, &half, &found), EXPHIL_E_UNSUPPORTED);
    assert_int_equal(cpu->query(device, XPH_OP_COUNT, &linear, &found), EXPHIL_E_UNSUPPORTED);
    assert_ptr_equal(found.kernel, before.kernel);
    cpu->device_close(device);
}

enum { COUNT = 1000003 };

/* y = 2x + y on a stream of such flags and a host of so many workers. */
static int64_t axpby(int32_t workers, uint32_t flags, float *y)
{
    const xph_backend *cpu = xph_cpu_backend();
    counting_host host;
    xph_device *device = open_on(&host, workers, xph_cpu_detect());
    xph_stream *stream = NULL;
    float *x = malloc(COUNT * sizeof *x);
    for (int i = 0; i < COUNT; i++) x[i] = (float)i;
    for (int i = 0; i < COUNT; i++) y[i] = 1.0f;
    xph_axpby_args args = {XPH_F32, COUNT, x, y, 2.0, 1.0, NULL};
    assert_int_equal(cpu->stream_create(device, flags, &stream), EXPHIL_OK);
    assert_int_equal(xph_run_once(stream, XPH_OP_AXPBY, &args), EXPHIL_OK);
    for (int i = 0; i < COUNT; i++) assert_true(y[i] == 2.0f * (float)i + 1.0f);
    cpu->stream_destroy(stream);
    cpu->device_close(device);
    assert_true(host.pieces <= 4 * workers);
    free(x);
    return host.parallel_calls;
}

static void spread(void **state)
{
    float *y = malloc(COUNT * sizeof *y);
    assert_int_equal(axpby(1, 0, y), 0);
    assert_int_equal(axpby(3, 0, y), 1);
    assert_int_equal(axpby(5, 0, y), 1);
    assert_int_equal(axpby(3, XPH_STREAM_INLINE, y), 0);
    free(y);
}

/* Nothing to do is done. */
static void empty(void **state)
{
    const xph_backend *cpu = xph_cpu_backend();
    counting_host host;
    xph_device *device = open_on(&host, 2, xph_cpu_detect());
    xph_stream *stream = NULL;
    xph_axpby_args none = {XPH_F32, 0, NULL, NULL, 1, 1, NULL};
    xph_linear_args linear = {.type = XPH_F32, .rows = 0, .in = 5, .out = 17};
    assert_int_equal(cpu->stream_create(device, 0, &stream), EXPHIL_OK);
    assert_int_equal(xph_run_once(stream, XPH_OP_AXPBY, &none), EXPHIL_OK);
    assert_int_equal(xph_run_once(stream, XPH_OP_LINEAR, &linear), EXPHIL_OK);
    assert_int_equal(cpu->upload(stream, NULL, NULL, 0), EXPHIL_OK);
    assert_int_equal(cpu->zero(stream, NULL, 0), EXPHIL_OK);
    cpu->stream_destroy(stream);
    cpu->device_close(device);
}

/* The level that the context allows decides, not what the processor could. */
static void level(void **state)
{
    const xph_backend *cpu = xph_cpu_backend();
    xph_linear_args linear = {.type = XPH_F32, .rows = 3, .in = 5, .out = 17};
    counting_host host;
    for (int32_t isa = XPH_ISA_REF; isa < XPH_ISA_COUNT; isa++) {
        if (!xph_cpu_has(isa)) continue;
        xph_device *device = open_on(&host, 1, isa);
        xph_op_info found;
        assert_int_equal(cpu->query(device, XPH_OP_LINEAR, &linear, &found), EXPHIL_OK);
        assert_non_null(strstr(found.name, xph_isa_name(isa)));
        cpu->device_close(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(info),   cmocka_unit_test(refused),
                                       cmocka_unit_test(memory), cmocka_unit_test(queries),
                                       cmocka_unit_test(spread), cmocka_unit_test(empty),
                                       cmocka_unit_test(level)};
    return cmocka_run_group_tests_name("cpu_backend", tests, NULL, NULL);
}
