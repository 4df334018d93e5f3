/* Device backends in plugins: found, compared, opened, listed; every way of not fitting is told apart. */
#include "test.h"
#include "test_places.h"

#include "device/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FOLDER(kind) EXPHIL_BINARY_DIR "/tests/plugin-" kind

static exphil_status open_from(const char *folder, const char *device, exphil_error *error, char *id)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
    exphil_context *context = NULL;
    config.device = device;
    config.backend_path = folder;
    exphil_status status = exphil_context_create(&config, &context, error);
    if (status == EXPHIL_OK) {
        assert_int_equal(exphil_context_device(context, &info, NULL), EXPHIL_OK);
        snprintf(id, sizeof info.id, "%s", info.id);
        exphil_context_destroy(context);
    }
    return status;
}

static void a_fitting_plugin_is_opened(void **state)
{
    char id[32];
    assert_int_equal(open_from(FOLDER("good"), "cuda", NULL, id), EXPHIL_OK);
    assert_string_equal(id, "cuda:0");
    assert_int_equal(open_from(FOLDER("good"), "cuda:1", NULL, id), EXPHIL_OK);
    assert_string_equal(id, "cuda:1");
    assert_int_equal(open_from(FOLDER("good"), "auto", NULL, id), EXPHIL_OK);
    assert_string_equal(id, "cuda:0");
    assert_int_equal(open_from(FOLDER("good"), NULL, NULL, id), EXPHIL_OK);
    assert_string_equal(id, "cpu");
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(open_from(FOLDER("good"), "cuda:2", &error, id), EXPHIL_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "2 CUDA devices"));
}

static void misfits_are_told_apart(void **state)
{
    static const struct {
        const char *folder;
        exphil_status status;
        const char *says;
    } misfit[] = {
        {FOLDER("old"), EXPHIL_E_VERSION, "other sources"},
        {FOLDER("shy"), EXPHIL_E_VERSION, "refused"},
        {FOLDER("empty"), EXPHIL_E_UNSUPPORTED, "no xph_backend_query"},
        {FOLDER("none"), EXPHIL_E_UNSUPPORTED, "not there"},
    };
    for (size_t i = 0; i < sizeof misfit / sizeof *misfit; i++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        char id[32];
        assert_int_equal(open_from(misfit[i].folder, "cuda", &error, id), misfit[i].status);
        /* Long build folders may push the reason out of the message, never the path's beginning. */
        if (strlen(error.message) < 200 && !strstr(error.message, misfit[i].says))
            fail_msg("%s", error.message);
        assert_int_equal(open_from(misfit[i].folder, "auto", &error, id), EXPHIL_OK);
        assert_string_equal(id, "cpu");
    }
}

static void plugins_are_listed(void **state)
{
    exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
    setenv("EXPHIL_BACKEND_DIR", FOLDER("good"), 1);
    assert_int_equal(exphil_device_count(), 3);
    assert_int_equal(exphil_device_get(0, &info, NULL), EXPHIL_OK);
    assert_string_equal(info.id, "cpu");
    assert_int_equal(exphil_device_get(2, &info, NULL), EXPHIL_OK);
    assert_string_equal(info.id, "cuda:1");
    assert_int_equal(info.index, 2);
    assert_int_equal(exphil_device_get(3, &info, NULL), EXPHIL_E_INVALID);
    char id[32];
    assert_int_equal(open_from(NULL, "cuda:1", NULL, id), EXPHIL_OK);
    unsetenv("EXPHIL_BACKEND_DIR");
}

/* A plugin in the current folder is somebody else's file. */
static void the_current_folder_is_not_searched(void **state)
{
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(FOLDER("good")), 0);
    char id[32];
    exphil_status status = open_from(NULL, "cuda", NULL, id);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(status, EXPHIL_E_UNSUPPORTED);
}

static void remember(void *user, exphil_log_level level, const char *message)
{
    snprintf(user, 100, "%s", message);
}

static void memory_and_log_go_through_the_context(void **state)
{
    char line[100] = "";
    for (long long at = 1; at < 10; at++) {
        test_memory memory;
        test_memory_init(&memory);
        memory.fail_at = at;
        exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
        exphil_context *context = NULL;
        config.allocator = &memory.hook;
        config.log = remember;
        config.log_user = line;
        config.device = "cuda";
        config.backend_path = FOLDER("good");
        if (exphil_context_create(&config, &context, NULL) == EXPHIL_OK) assert_true(at > 3);
        exphil_context_destroy(context);
        assert_memory_clean(&memory);
    }
    assert_string_equal(line, "fake device closed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fitting_plugin_is_opened),
        cmocka_unit_test(misfits_are_told_apart),
        cmocka_unit_test(plugins_are_listed),
        cmocka_unit_test(the_current_folder_is_not_searched),
        cmocka_unit_test(memory_and_log_go_through_the_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
