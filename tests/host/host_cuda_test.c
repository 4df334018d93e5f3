/* The real plugin where it can do least: without a driver, from other sources, in the way of a host that only wanted "auto".
 * Built with EXPHIL_CUDA=PLUGIN; elsewhere, and where there is a card, what cannot be seen is left out. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef EXPHIL_CUDA_FOLDER
#  define EXPHIL_CUDA_FOLDER ""
#endif

typedef struct outcome {
    exphil_status status;
    exphil_error error;
    char id[32], log[1000];
} outcome;

static void remember(void *user, exphil_log_level level, const char *message)
{
    char *all = user;
    snprintf(all + strlen(all), sizeof((outcome *)0)->log - strlen(all), "%d:%s\n", (int)level, message);
}

static outcome open_on(const char *device, const char *folder, const exphil_allocator *allocator)
{
    outcome o = {.error = EXPHIL_ERROR_INIT};
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
    exphil_context *context = NULL;
    config.device = device;
    config.backend_path = folder;
    config.allocator = allocator;
    config.log = remember;
    config.log_user = o.log;
    config.threads = 1;
    o.status = exphil_context_create(&config, &context, &o.error);
    if (o.status < 0) return o;
    assert_int_equal(exphil_context_device(context, &info, NULL), EXPHIL_OK);
    snprintf(o.id, sizeof o.id, "%s", info.id);
    exphil_context_destroy(context);
    return o;
}

static bool left_out(bool card_matters)
{
    const char *why = *EXPHIL_CUDA_FOLDER ? NULL : "EXPHIL_CUDA is not PLUGIN";
    if (!why && card_matters && open_on("cuda", EXPHIL_CUDA_FOLDER, NULL).status == EXPHIL_OK)
        why = "there is a CUDA device";
    if (why) printf("SKIPPED: %s\n", why);
    return why != NULL;
}

static void without_a_driver_cuda_is_refused(void **state)
{
    if (left_out(true)) return;
    const char *devices[] = {"cuda", "cuda:0", "cuda:7"};
    for (int i = 0; i < 3; i++) {
        outcome o = open_on(devices[i], EXPHIL_CUDA_FOLDER, NULL);
        assert_int_equal(o.status, EXPHIL_E_UNSUPPORTED);
        assert_int_equal(o.error.status, EXPHIL_E_UNSUPPORTED);
        assert_true(o.error.native_code > 0);
        if (!strstr(o.error.message, "no device: cudaError")) fail_msg("%s", o.error.message);
        assert_string_equal(o.log, "");
    }
}

static void auto_falls_back_and_says_so_once(void **state)
{
    if (left_out(true)) return;
    outcome o = open_on("auto", EXPHIL_CUDA_FOLDER, NULL);
    assert_int_equal(o.status, EXPHIL_OK);
    assert_string_equal(o.id, "cpu");
    assert_non_null(strstr(o.log, "running on the CPU: "));
    assert_non_null(strstr(o.log, "no device: cudaError"));
    assert_ptr_equal(strchr(o.log, '\n'), o.log + strlen(o.log) - 1);
}

/* What the plugin asked of the host's memory it gives back when there is no device. */
static void nothing_is_left_behind(void **state)
{
    if (left_out(true)) return;
    for (long long at = 0; at < 6; at++) {
        test_memory memory;
        test_memory_init(&memory);
        memory.fail_at = at;
        outcome o = open_on("cuda", EXPHIL_CUDA_FOLDER, &memory.hook);
        assert_true(o.status == EXPHIL_E_UNSUPPORTED || (at && o.status == EXPHIL_E_MEMORY));
        assert_memory_clean(&memory);
    }
}

/* A device is listed once it was opened: to count them before would start the driver. */
static void listing_starts_nothing(void **state)
{
    if (left_out(true)) return;
    setenv("EXPHIL_BACKEND_DIR", EXPHIL_CUDA_FOLDER, 1);
    assert_int_equal(exphil_device_count(), 1);
    unsetenv("EXPHIL_BACKEND_DIR");
}

/* The same file with another build id, as a plugin left over from another release has it. */
static void a_stale_plugin_is_told(void **state)
{
    if (left_out(false)) return;
    size_t bytes = 0, length = strlen(XPH_BUILD_ID);
    int places = 0;
    char *file = test_read(EXPHIL_CUDA_FOLDER "/libexphil_cuda.so", &bytes);
    assert_non_null(file);
    for (char *at = file; (at = memmem(at, bytes - (size_t)(at - file), XPH_BUILD_ID, length)) != NULL;
         places++)
        memset(at, 'e', length);
    assert_true(places > 0);
    test_write(test_path("libexphil_cuda.so"), file, bytes);
    free(file);
    outcome o = open_on("cuda", test_folder(), NULL);
    assert_int_equal(o.status, EXPHIL_E_VERSION);
    assert_non_null(strstr(o.error.message, "other sources (eeeeeeeeeeeeeeee, this library " XPH_BUILD_ID));
    o = open_on("auto", test_folder(), NULL);
    assert_string_equal(o.id, "cpu");
    assert_non_null(strstr(o.log, "other sources"));
    test_folder_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_driver_cuda_is_refused),
        cmocka_unit_test(auto_falls_back_and_says_so_once),
        cmocka_unit_test(nothing_is_left_behind),
        cmocka_unit_test(listing_starts_nothing),
        cmocka_unit_test(a_stale_plugin_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
