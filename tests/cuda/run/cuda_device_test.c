/* What a context leaves of CUDA to its process and its thread: on a machine with several GPUs no context of CUDA on one that
 * nobody opened, the thread's own device as it was, also beside a GPU that another process has for itself. And variables that
 * say what nobody knows. The tests stand in this order: contexts of CUDA stay until the process ends. */
#include "emulated.h"
#include "play_case.h"
#include "train_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UPDATES = 4, FRAMES = 4, STREAMS = 2 };

static int told;
static char last[512];

static void hear(void *user, exphil_log_level level, const char *message)
{
    if (level > EXPHIL_LOG_WARNING || strstr(message, "cuda: no cuBLASLt") || strstr(message, "no cuDNN"))
        return;
    print_message("logged: %s\n", message);
    told++;
    snprintf(last, sizeof last, "%s", message);
}

static exphil_context *context_on(const char *device)
{
    const exphil_context_config config = emulated_config(device, hear, NULL);
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_context_create(&config, &context, &error) < 0) fail_msg("%s: %s", device, error.message);
    return context;
}

static unsigned char *trains(const char *device, size_t *bytes)
{
    train_plan plan = train_plan_of("lstm mamba attention", EXPHIL_MODE_CARRY);
    plan.device = device;
    plan.backend_path = EMULATED_FOLDER;
    plan.log = hear;
    train_run run = train_begin(&plan);
    train_steps(&run, UPDATES);
    unsigned char *all = train_snapshot(run.trainer, bytes);
    train_end(&run);
    return all;
}

/* Logits of all frames. */
static float *plays(const char *device, size_t *bytes)
{
    const exphil_model_config config = model_case_config("lstm mamba", EXPHIL_TYPE_F32);
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    exphil_context *context = context_on(device);
    how.streams = STREAMS;
    exphil_model *model = play_model(context, &config, 0.1);
    exphil_session *session = play_session(model, &how);
    play_frames *frames = play_frames_make(model, STREAMS, FRAMES, 5);
    const int64_t width = STREAMS * frames->logits;
    float *logits = malloc((size_t)(FRAMES * width) * sizeof *logits);
    int32_t actions[STREAMS * PLAY_HEADS];
    for (int64_t t = 0; t < FRAMES; t++) {
        play_step(session, frames, t, true, actions);
        play_logits(session, frames, logits + t * width);
    }
    *bytes = (size_t)(FRAMES * width) * sizeof *logits;
    play_frames_free(frames);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return logits;
}

/* With the bits of another device, which has the first one beside it. */
static void works_on_the_second(size_t train_bytes, const unsigned char *trained, size_t play_bytes,
                                const float *played)
{
    size_t bytes;
    unsigned char *all = trains("cuda:1", &bytes);
    assert_int_equal(bytes, train_bytes);
    assert_memory_equal(all, trained, bytes);
    float *logits = plays("cuda:1", &bytes);
    assert_int_equal(bytes, play_bytes);
    assert_memory_equal(logits, played, bytes);
    free(all);
    free(logits);
    emulated_clean();
}

/* Of a process that opens cuda:1 alone. */
static void no_context_on_a_device_that_nobody_opened(void **state)
{
    const emulated *gpu = emulated_gpu();
    size_t train_bytes, play_bytes;
    unsigned char *trained = trains("cuda:1", &train_bytes);
    float *played = plays("cuda:1", &play_bytes);
    assert_true(gpu->has_context(1));
    assert_false(gpu->has_context(0));
    gpu->exclusive(0, 1);
    told = 0;
    works_on_the_second(train_bytes, trained, play_bytes, played);
    assert_int_equal(told, 0);
    assert_int_equal(gpu->device(), 0);
    gpu->exclusive(0, 0);
    assert_false(gpu->has_context(0));
    free(played);
    free(trained);
}

/* A device that is another process's is refused by name, and opens when that has ended. */
static void a_device_of_another_process(void **state)
{
    const exphil_context_config config = emulated_config("cuda:2", NULL, NULL);
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    emulated_gpu()->exclusive(2, 1);
    assert_int_equal(exphil_context_create(&config, &context, &error), EXPHIL_E_DEVICE);
    assert_non_null(
        strstr(error.message, "cuda:2 cannot be used by this process: cudaErrorDevicesUnavailable"));
    emulated_gpu()->exclusive(2, 0);
    assert_false(emulated_gpu()->has_context(2));
    exphil_context_destroy(context_on("cuda:2"));
    assert_true(emulated_gpu()->has_context(2));
    emulated_clean();
}

/* In a process of its own, before any other: they are looked for once. Then the device is set, and set back. */
static void a_driver_that_tells_no_functions(void **state)
{
    int status = -1;
    const pid_t child = fork();
    if (!child) {
        size_t bytes;
        emulated_gpu()->entries(0);
        free(trains("cuda:1", &bytes));
        free(plays("cuda:1", &bytes));
        _exit(emulated_gpu()->device() == 0 && emulated_gpu()->has_context(0) && !emulated_gpu()->fault()
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void variables_that_say_what_nobody_knows(void **state)
{
    static const char *const names[] = {"EXPHIL_CUDA_OVERLAP", "EXPHIL_CUDA_JOIN"};
    for (int i = 0; i < 2; i++) {
        static const char *const known[] = {"", "none"}, *const odd[] = {"nonsense", "None", "none ", "1"};
        for (int k = 0; k < 2; k++) {
            setenv(names[i], known[k], 1);
            told = 0;
            exphil_context_destroy(context_on("cuda:0"));
            assert_int_equal(told, 0);
        }
        for (int k = 0; k < 4; k++) {
            setenv(names[i], odd[k], 1);
            told = 0;
            exphil_context_destroy(context_on("cuda:0"));
            assert_int_equal(told, 1);
            assert_non_null(strstr(last, names[i]));
            assert_non_null(strstr(last, odd[k]));
        }
        unsetenv(names[i]);
    }
    told = 0;
    exphil_context_destroy(context_on("cuda:0"));
    assert_int_equal(told, 0);
    emulated_clean();
}

static int setup(void **state)
{
    setenv("EXPHIL_CUBLASLT", "none", 1);
    emulated_gpu()->devices(3, 0);
    emulated_gpu()->timing(EMU_LAZY, 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_that_tells_no_functions),
        cmocka_unit_test(no_context_on_a_device_that_nobody_opened),
        cmocka_unit_test(a_device_of_another_process),
        cmocka_unit_test(variables_that_say_what_nobody_knows),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
