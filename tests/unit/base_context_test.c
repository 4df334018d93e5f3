/* Contexts: hooks and their checks, references, memory figures, log, fork, floating-point mode, devices. */
#include "base/system.h"
#include "test.h"
#include "test_modes.h"

#include "device/device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static exphil_status create(exphil_context_config *config, exphil_error *error)
{
    exphil_context *context = NULL;
    exphil_status status = exphil_context_create(config, &context, error);
    assert_true((status == EXPHIL_OK) == (context != NULL));
    exphil_context_destroy(context);
    return status;
}

static void assert_refused(exphil_context_config *config, exphil_status status, const char *says)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(create(config, &error), status);
    assert_int_equal(error.status, status);
    assert_says(&error, says);
}

static void defaults_work(void **state)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    assert_int_equal(create(NULL, NULL), EXPHIL_OK);
    assert_int_equal(create(&config, NULL), EXPHIL_OK);
    assert_int_equal(exphil_context_create(&config, NULL, NULL), EXPHIL_E_INVALID);
    exphil_context_destroy(NULL);
}

static void never(void *user, void (*fn)(void *arg, int64_t i, int32_t worker), void *arg, int64_t count)
{
    fail();
}

static int32_t map_nothing(void *user, void *file, size_t bytes, const void **data)
{
    return 1;
}

static void bad_fields_are_named(void **state)
{
    test_memory memory;
    test_io io;
    test_memory_init(&memory);
    test_io_init(&io);
    exphil_executor executor = {sizeof executor, NULL, 4, 0, NULL};
#define WITH(field, value)                                                                                   \
  (&(exphil_context_config){.struct_size = sizeof(exphil_context_config), .field = (value)})
    assert_refused(WITH(threads, -1), EXPHIL_E_INVALID, "threads");
    assert_refused(WITH(threads, 1000000), EXPHIL_E_INVALID, "threads");
    assert_refused(WITH(log_level, 9), EXPHIL_E_INVALID, "log_level");
    assert_refused(WITH(cpu_isa, "sse9"), EXPHIL_E_INVALID, "cpu_isa");
    assert_refused(WITH(device, "gpu"), EXPHIL_E_INVALID, "device");
    assert_refused(WITH(device, "cuda:"), EXPHIL_E_INVALID, "device");
    assert_refused(WITH(device, "cuda:1x"), EXPHIL_E_INVALID, "device");
    assert_refused(WITH(device, "cuda:99999999999"), EXPHIL_E_INVALID, "device");
    assert_refused(WITH(executor, &executor), EXPHIL_E_INVALID, "parallel_for");
    executor.parallel_for = never;
    executor.workers = 0;
    assert_refused(WITH(executor, &executor), EXPHIL_E_INVALID, "workers");
    executor.workers = 2;
    executor.flags = 1;
    assert_refused(WITH(executor, &executor), EXPHIL_E_INVALID, "flags");
    memory.hook.free = NULL;
    assert_refused(WITH(allocator, &memory.hook), EXPHIL_E_INVALID, "free");
    memory.hook.struct_size = 3;
    assert_refused(WITH(allocator, &memory.hook), EXPHIL_E_INVALID, "exphil_allocator.struct_size");
    io.hook.sync = NULL;
    assert_refused(WITH(io, &io.hook), EXPHIL_E_INVALID, "io");
    test_io_init(&io);
    io.hook.map = map_nothing;
    assert_refused(WITH(io, &io.hook), EXPHIL_E_INVALID, "unmap");
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    config.struct_size = 4;
    assert_refused(&config, EXPHIL_E_INVALID, "struct_size");
}

static void a_missing_backend_is_explained(void **state)
{
    char name[64], says[128];
    snprintf(name, sizeof name, XPH_PLUGIN_NAME, "cuda");
    snprintf(says, sizeof says, "/nowhere/at-all/%s: not there", name);
    assert_refused(&(exphil_context_config){.struct_size = sizeof(exphil_context_config),
                                            .device = "cuda:3",
                                            .backend_path = "/nowhere/at-all"},
                   EXPHIL_E_UNSUPPORTED, says);
    char *path = strdup(test_path(name));
    test_write(path, "not a library", 13);
    assert_refused(&(exphil_context_config){.struct_size = sizeof(exphil_context_config),
                                            .device = "cuda",
                                            .backend_path = test_folder()},
                   EXPHIL_E_UNSUPPORTED, path);
#ifdef XPH_CUDA_BUILTIN
    path[0] = 0; /* what is inside answers instead */
#endif
    /* The environment's folder is tried before the built-in ones. */
    test_setenv("EXPHIL_BACKEND_DIR", test_folder());
    assert_refused(&(exphil_context_config){.struct_size = sizeof(exphil_context_config), .device = "cuda"},
                   EXPHIL_E_UNSUPPORTED, path);
    test_setenv("EXPHIL_BACKEND_DIR", NULL);
    free(path);
    test_folder_remove();
}

static void remember_line(void *user, exphil_log_level level, const char *message)
{
    char *all = user;
    snprintf(all + strlen(all), 1000 - strlen(all), "%d:%s\n", (int)level, message);
}

static void auto_falls_back_and_says_so_once(void **state)
{
    char all[1000] = "";
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
    config.device = "auto";
    config.backend_path = "/nowhere/at-all";
    config.log = remember_line;
    config.log_user = all;
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    assert_int_equal(exphil_context_device(context, &info, NULL), EXPHIL_OK);
    assert_string_equal(info.id, "cpu");
    assert_non_null(strstr(all, "/nowhere/at-all"));
    assert_ptr_equal(strchr(all, '\n'), all + strlen(all) - 1);
    exphil_context_destroy(context);
}

static void instruction_sets_are_capped(void **state)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    for (xph_isa isa = XPH_ISA_REF; isa < XPH_ISA_COUNT; isa++) {
        exphil_context *context = NULL;
        config.cpu_isa = xph_isa_name(isa);
        exphil_status status = exphil_context_create(&config, &context, NULL);
        assert_int_equal(status, xph_cpu_has(isa) ? EXPHIL_OK : EXPHIL_E_UNSUPPORTED);
        if (context) assert_int_equal(xph_context_isa(context), isa);
        exphil_context_destroy(context);
    }
    exphil_context *context = NULL;
    test_setenv("EXPHIL_CPU_ISA", "ref");
    config.cpu_isa = NULL;
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    assert_int_equal(xph_context_isa(context), XPH_ISA_REF);
    exphil_context_destroy(context);
    test_setenv("EXPHIL_CPU_ISA", "avx2vnni"); /* a cap may name a level that is left out here */
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    assert_true(xph_cpu_has(xph_context_isa(context)) && xph_context_isa(context) <= XPH_ISA_AVX2_VNNI);
    exphil_context_destroy(context);
    test_setenv("EXPHIL_CPU_ISA", "neon"); /* one of another kind of processor leaves what all have */
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    assert_int_equal(xph_context_isa(context), xph_cpu_has(XPH_ISA_NEON) ? XPH_ISA_NEON : XPH_ISA_REF);
    exphil_context_destroy(context);
    test_setenv("EXPHIL_CPU_ISA", "mmx");
    assert_refused(&config, EXPHIL_E_INVALID, "EXPHIL_CPU_ISA");
    test_setenv("EXPHIL_CPU_ISA", NULL);
}

static void every_allocation_may_fail(void **state)
{
    exphil_status status = EXPHIL_E_MEMORY;
    long long at = 1;
    for (; status == EXPHIL_E_MEMORY && at < 100; at++) {
        test_memory memory;
        test_memory_init(&memory);
        memory.fail_at = at;
        exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
        config.allocator = &memory.hook;
        status = create(&config, NULL);
        assert_memory_clean(&memory);
    }
    assert_int_equal(status, EXPHIL_OK);
    assert_true(at > 2);
}

static void memory_is_counted(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_memory_info before = EXPHIL_MEMORY_INFO_INIT, after = EXPHIL_MEMORY_INFO_INIT;
    assert_int_equal(exphil_context_memory(context, &before, NULL), EXPHIL_OK);
    void *a = xph_alloc(context, 1000), *b = xph_calloc(context, 10, 20), *none = xph_alloc(context, 0);
    assert_true(a && b && none && none != a && none != b);
    assert_int_equal((uintptr_t)a % 64 + (uintptr_t)b % 64 + (uintptr_t)none % 64, 0);
    for (int i = 0; i < 200; i++) assert_int_equal(((char *)b)[i], 0);
    assert_null(xph_calloc(context, SIZE_MAX / 2, 3));
    assert_null(xph_alloc(context, SIZE_MAX));
    assert_int_equal(exphil_context_memory(context, &after, NULL), EXPHIL_OK);
    assert_int_equal(after.host_used_bytes, atomic_load(&memory.live_bytes));
    assert_true(after.host_used_bytes >= before.host_used_bytes + 1200);
    assert_int_equal(after.host_allocations, before.host_allocations + 3);
    xph_free(context, a, 1000);
    xph_free(context, b, 200);
    xph_free(context, none, 0);
    xph_free(context, NULL, 5);
    assert_int_equal(exphil_context_memory(context, &after, NULL), EXPHIL_OK);
    assert_int_equal(after.host_used_bytes, before.host_used_bytes);
    assert_true(after.host_peak_bytes >= before.host_used_bytes + 1200);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

/* On the CPU the device's memory is the host's, and the limit holds for what the device takes. */
static void device_memory_has_a_limit(void **state)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    config.memory_limit_bytes = 1 << 20;
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    xph_device *device = xph_context_backend(context);
    void *half = NULL, *more = NULL;
    assert_int_equal(device->backend->alloc(device, 600000, &half), EXPHIL_OK);
    assert_int_equal(device->backend->alloc(device, 600000, &more), EXPHIL_E_MEMORY);
    device->backend->free(device, half, 600000);
    assert_int_equal(device->backend->alloc(device, 600000, &more), EXPHIL_OK);
    device->backend->free(device, more, 600000);
    exphil_context_destroy(context);
}

static void references_keep_it_alive(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_context *child = xph_context_retain(context);
    exphil_context_destroy(context);
    assert_int_equal(xph_context_check(child, NULL), EXPHIL_OK);
    assert_true(atomic_load(&memory.live) > 0);
    xph_context_release(child);
    assert_memory_clean(&memory);
    assert_int_equal(xph_context_check(NULL, NULL), EXPHIL_E_INVALID);
}

static void log_lines_have_levels_and_a_queue(void **state)
{
    char all[1000] = "";
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    config.log = remember_line;
    config.log_user = all;
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    xph_log(context, EXPHIL_LOG_WARNING, "w%d", 1);
    xph_log(context, EXPHIL_LOG_INFO, "not heard");
    xph_log_from_worker(context, EXPHIL_LOG_ERROR, "e%d", 2);
    xph_log_from_worker(context, EXPHIL_LOG_DEBUG, "not heard");
    assert_string_equal(all, "2:w1\n");
    xph_log_flush(context);
    assert_string_equal(all, "2:w1\n1:e2\n");
    all[0] = '\0';
    for (int i = 0; i < 40; i++) xph_log_from_worker(context, EXPHIL_LOG_ERROR, "%d", i);
    xph_log_flush(context);
    assert_non_null(strstr(all, "1:0\n1:1\n"));
    assert_non_null(strstr(all, "1:31\n2:8 log lines"));
    xph_log_from_worker(context, EXPHIL_LOG_ERROR, "last");
    exphil_context_destroy(context);
    assert_non_null(strstr(all, "1:last\n"));
}

static int32_t say_yes(void *user)
{
    return ++*(int32_t *)user;
}

static void cancel_is_asked(void **state)
{
    int32_t asked = 0;
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    config.cancel = say_yes;
    config.cancel_user = &asked;
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    assert_true(xph_cancelled(context));
    assert_int_equal(asked, 1);
    exphil_context_destroy(context);
    context = test_context(NULL, NULL, 1);
    assert_false(xph_cancelled(context));
    exphil_context_destroy(context);
}

static void touch(void *arg, int64_t i, int32_t worker)
{
    ((char *)arg)[i] = 1;
}

/* Three items that end when all three threads have come. */
static void gather(void *arg, int64_t i, int32_t worker)
{
    atomic_int *arrived = arg;
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < 3) test_thread_yield();
}

/* The thread sanitizer cannot follow new threads in a child. */
#if defined(__SANITIZE_THREAD__)
#  define CHILD_THREADS 1
#elif defined(__has_feature)
#  if __has_feature(thread_sanitizer)
#    define CHILD_THREADS 1
#  endif
#endif
#ifndef CHILD_THREADS
#  define CHILD_THREADS 3
#endif

typedef struct copied {
    exphil_context *context;
    char touched[64];
} copied;

static int goes_on(void *arg)
{
    copied *c = arg;
    test_end_after(20);
    exphil_memory_info memory = EXPHIL_MEMORY_INFO_INIT;
    exphil_device_info device = EXPHIL_DEVICE_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_context_memory(c->context, &memory, &error) != EXPHIL_E_STATE) return 1;
    if (!strstr(error.message, "fork")) return 2;
    if (exphil_context_device(c->context, &device, NULL) != EXPHIL_E_STATE) return 3;
    exphil_context_destroy(c->context);
    exphil_context *own = NULL;
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    config.threads = CHILD_THREADS;
    if (exphil_context_create(&config, &own, NULL) != EXPHIL_OK) return 4;
    memset(c->touched, 0, sizeof c->touched);
    xph_parallel(own, touch, c->touched, 64);
    if (memchr(c->touched, 0, sizeof c->touched)) return 5;
    if (exphil_context_memory(own, &memory, NULL) != EXPHIL_OK) return 6;
    exphil_context_destroy(own);
    return 0;
}

/* A child that goes on with the parent's context gets a status, at once, and may destroy it without harm. */
static void a_forked_child_is_told(void **state)
{
    copied c = {.context = test_context(NULL, NULL, 3)};
    /* Threads are running when we fork, and past their beginning: the sanitizers' allocator does not survive a fork while
     * a thread is inside it. */
    atomic_int arrived = 0;
    xph_parallel(c.context, gather, &arrived, 3);
    const int status = test_in_copy(goes_on, &c);
    assert_int_equal(status, 0);
    assert_int_equal(xph_context_check(c.context, NULL), EXPHIL_OK);
    exphil_context_destroy(c.context);
}

static void floating_point_mode_is_put_back(void **state)
{
    test_needs_modes();
    const uint32_t entry = test_mode();
    test_mode_set(TEST_ODD);
    xph_fpu saved = xph_fpu_push();
    const uint32_t inside = test_mode();
    volatile float tiny = 1e-38f, third = 1.0f;
    tiny = tiny * 0.001f;
    third = third / 3.0f; /* raises a flag */
    float result = tiny;
    xph_fpu_pop(saved);
    const uint32_t after = test_mode();
    test_mode_set(entry);
    assert_int_equal(inside, TEST_PLAIN);
    assert_true(result > 0);
    assert_int_equal(after, TEST_ODD);
}

static void devices_are_listed(void **state)
{
    exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_true(exphil_device_count() >= 1);
    assert_int_equal(exphil_device_get(0, &info, NULL), EXPHIL_OK);
    assert_string_equal(info.id, "cpu");
    assert_true(info.name[0] && info.memory_bytes > 0 && info.workers >= 1);
    assert_string_equal(info.isa, xph_isa_name(xph_cpu_detect()));
    assert_int_equal(exphil_device_get(-1, &info, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_device_get(exphil_device_count(), &info, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_device_get(0, NULL, &error), EXPHIL_E_INVALID);
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    config.threads = 3;
    config.cpu_isa = "ref";
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    assert_int_equal(exphil_context_device(context, &info, NULL), EXPHIL_OK);
    assert_int_equal(info.workers, 3);
    assert_string_equal(info.isa, "ref");
    exphil_context_destroy(context);
}

static void clock_goes_forward(void **state)
{
    for (int i = 0; i < 100; i++) {
        int64_t before = test_clock_ns(), now = xph_clock_ns(), later = test_clock_ns();
        assert_true(before <= now && now <= later);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_work),
        cmocka_unit_test(bad_fields_are_named),
        cmocka_unit_test(a_missing_backend_is_explained),
        cmocka_unit_test(auto_falls_back_and_says_so_once),
        cmocka_unit_test(instruction_sets_are_capped),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(memory_is_counted),
        cmocka_unit_test(device_memory_has_a_limit),
        cmocka_unit_test(references_keep_it_alive),
        cmocka_unit_test(log_lines_have_levels_and_a_queue),
        cmocka_unit_test(cancel_is_asked),
        cmocka_unit_test(a_forked_child_is_told),
        cmocka_unit_test(floating_point_mode_is_put_back),
        cmocka_unit_test(devices_are_listed),
        cmocka_unit_test(clock_goes_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
