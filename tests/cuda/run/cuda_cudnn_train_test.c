/* Training with long chunks of attention, with a stand-in for cuDNN at work, and with one that refuses wherever it can: the next
 * candidate does it, the log says so once with shape and status, updates are recorded all the same, and losses stay within
 * the gates of the CPU's. */
#include "cudnn_api.h"
#include "emulated.h"
#include "train_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UPDATES = 3, BATCH = 2, TIME = 512, DIM = 128, WINDOW = 24 };

typedef struct heard {
    int refusals, starts, others;
    char last[512];
} heard;

static heard said;

static void hear(void *user, exphil_log_level level, const char *message)
{
    heard *h = user;
    if (level > EXPHIL_LOG_WARNING || strstr(message, "no cuBLASLt")) return;
    if (strstr(message, "cuDNN refuses attention of 2 x 512 frames, 1 heads of 128"))
        h->refusals++;
    else if (strstr(message, "cuDNN does not start"))
        h->starts++;
    else
        h->others++;
    if (h->others) print_message("logged: %s\n", message);
    snprintf(h->last, sizeof h->last, "%s", message);
}

static train_plan plan_of(int32_t mode, int32_t precision, bool on_gpu)
{
    train_plan plan = train_plan_of("attention", mode);
    plan.model.attention_heads = 1;
    plan.model.attention_dim = DIM;
    plan.model.attention_window_frames = mode == EXPHIL_MODE_WINDOW ? TIME : WINDOW;
    plan.model.window_frames = mode == EXPHIL_MODE_WINDOW ? TIME : 0;
    plan.sampling.batch = BATCH;
    plan.sampling.time = TIME;
    plan.episodes = 20;
    plan.log = hear;
    plan.log_user = &said;
    if (!on_gpu) return plan;
    plan.trainer.precision = precision;
    plan.device = "cuda:0";
    plan.backend_path = EMULATED_FOLDER;
    return plan;
}

static void losses_of(const train_plan *plan, double losses[UPDATES + 1], bool recorded)
{
    train_run run = train_begin(plan);
    for (int i = 0; i <= UPDATES; i++) losses[i] = -1.0;
    for (int i = 0; i <= UPDATES; i++) {
        emulated_gpu()->counts_clear();
        const exphil_metrics metrics = train_steps(&run, 1);
        if (metrics.update <= UPDATES) losses[metrics.update] = metrics.loss;
        if (i == UPDATES && recorded) assert_int_equal(emulated_gpu()->count().graph_launches, 1);
    }
    train_end(&run);
}

typedef struct way {
    const char *name;
    int where, status, spoils;
    const char *text;
} way;

/* Runs of the attention by the library: all, or none. */
static int trains(int32_t mode, int32_t precision, const way *w)
{
    static double cpu[2][UPDATES + 1];
    const bool windows = mode == EXPHIL_MODE_WINDOW;
    double gpu[UPDATES + 1], worst = 0.0;
    if (cpu[windows][UPDATES] == 0.0) {
        const train_plan plan = plan_of(mode, precision, false);
        losses_of(&plan, cpu[windows], false);
    }
    fake_cudnn *dn = emulated_cudnn();
    dn->where = w ? w->where : FAKE_DNN_NOWHERE;
    dn->status = w ? w->status : 0;
    dn->spoils = w && w->spoils;
    dn->runs = dn->refusals = dn->wrong = 0;
    said = (heard){.refusals = 0};
    const train_plan plan = plan_of(mode, precision, true);
    losses_of(&plan, gpu, !(w && w->spoils));
    for (int i = 1; i <= UPDATES; i++) worst = fmax(worst, fabs(gpu[i] - cpu[windows][i]) / cpu[windows][i]);
    print_message("mode %d, precision %d, refused %s: %d runs, %d refusals, losses differ by %.1e\n", mode,
                  precision, w ? w->name : "nowhere", dn->runs, dn->refusals, worst);
    assert_true(worst <= 3e-2);
    assert_int_equal(dn->wrong, 0);
    assert_int_equal(dn->refusals, w != NULL);
    assert_int_equal(said.refusals + said.starts, w != NULL);
    assert_int_equal(said.others, 0);
    if (w && !strstr(said.last, w->text)) fail_msg("%s", said.last);
    assert_int_equal(dn->alive, 0);
    dn->where = FAKE_DNN_NOWHERE;
    emulated_clean();
    return dn->runs;
}

/* Once unrecorded, or a few times; recorded once. */
static void nothing_refused_nothing_said(void **state)
{
    assert_true(trains(EXPHIL_MODE_CARRY, EXPHIL_PRECISION_BF16, NULL) > 1);
    assert_true(trains(EXPHIL_MODE_WINDOW, EXPHIL_PRECISION_BF16, NULL) > 1);
    assert_true(trains(EXPHIL_MODE_CARRY, EXPHIL_PRECISION_F16, NULL) > 1);
    assert_int_equal(trains(EXPHIL_MODE_CARRY, EXPHIL_PRECISION_TF32, NULL), 0);
}

static void training_goes_on(void **state)
{
    static const way ways[] = {
        {"at start", FAKE_DNN_AT_START, DN_NOT_INITIALIZED, 0, "status 1001 (NOT_INITIALIZED)"},
        {"at query", FAKE_DNN_AT_QUERY, DN_NOT_SUPPORTED_SHAPE, 0,
         "status 3002 (NOT_SUPPORTED) when asked for"},
        {"no engine", FAKE_DNN_AT_QUERY, FAKE_DNN_NO_ENGINE, 0, "status -1 (no engine) when asked for"},
        {"at plan", FAKE_DNN_AT_PLAN, DN_INTERNAL_ERROR, 0,
         "status 4000 (INTERNAL_ERROR) when asked for a plan"},
        {"at run", FAKE_DNN_AT_RUN, DN_NOT_SUPPORTED, 0, "status 3000 (NOT_SUPPORTED) when it was to run"},
        {"in a recording", FAKE_DNN_IN_CAPTURE, DN_INTERNAL_ERROR, 0,
         "status 4000 (INTERNAL_ERROR) when it was to run"},
        {"ending a recording", FAKE_DNN_IN_CAPTURE, DN_NOT_SUPPORTED, 1,
         "status 3000 (NOT_SUPPORTED) when it was to run"},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const int runs = trains(EXPHIL_MODE_CARRY, EXPHIL_PRECISION_BF16, &ways[i]);
        assert_int_equal(runs > 0, ways[i].where == FAKE_DNN_IN_CAPTURE);
    }
}

/* That is no refusal: who knows what was done. */
static void what_failed_is_a_lost_device(void **state)
{
    fake_cudnn *dn = emulated_cudnn();
    said = (heard){.refusals = 0};
    const train_plan plan = plan_of(EXPHIL_MODE_CARRY, EXPHIL_PRECISION_BF16, true);
    train_run run = train_begin(&plan);
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    dn->where = FAKE_DNN_AT_RUN;
    dn->status = DN_EXECUTION_FAILED;
    assert_int_equal(exphil_trainer_step(run.trainer, &metrics, &error), EXPHIL_E_DEVICE);
    assert_int_equal(said.refusals, 0);
    dn->where = FAKE_DNN_NOWHERE;
    train_end(&run);
    emulated_clean();
}

/* The scratch that the library needs was requested when the trainer was created. */
static void a_limit_is_met_at_creation(void **state)
{
    train_plan plan = plan_of(EXPHIL_MODE_CARRY, EXPHIL_PRECISION_BF16, true);
    fake_cudnn *dn = emulated_cudnn();
    exphil_memory_info made[2] = {EXPHIL_MEMORY_INFO_INIT, EXPHIL_MEMORY_INFO_INIT},
                       after = EXPHIL_MEMORY_INFO_INIT;
    for (int i = 0; i < 2; i++) {
        dn->wants = i ? (size_t)16 << 20 : 0;
        train_run run = train_begin(&plan);
        assert_int_equal(exphil_context_memory(run.context, &made[i], NULL), EXPHIL_OK);
        if (i) train_steps(&run, 4);
        assert_int_equal(exphil_context_memory(run.context, &after, NULL), EXPHIL_OK);
        assert_int_equal(after.device_requests, made[i].device_requests);
        assert_int_equal(after.device_used_bytes, made[i].device_used_bytes);
        train_end(&run);
    }
    dn->wants = 0;
    assert_true(made[1].device_used_bytes > made[0].device_used_bytes + (12 << 20));
    emulated_clean();
}

static int setup(void **state)
{
    setenv("EXPHIL_CUDNN", EMULATED_CUDNN, 1);
    emulated_gpu()->timing(EMU_LAZY, 1);
    emulated_gpu()->protect(1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_refused_nothing_said),
        cmocka_unit_test(training_goes_on),
        cmocka_unit_test(what_failed_is_a_lost_device),
        cmocka_unit_test(a_limit_is_met_at_creation),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
