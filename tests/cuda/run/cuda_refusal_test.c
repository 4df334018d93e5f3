/* A cuBLASLt that refuses, wherever it can, whatever is requested: the next candidate does the product, the log says so
 * once for each shape with its status, updates and steps are recorded all the same, and the numbers stay within the gates. */
#include "emulated.h"
#include "play_case.h"
#include "train_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UPDATES = 7, LINES = 512, STREAMS = 2, FRAMES = 6 };

/* ---- what the log says ---- */

typedef struct heard {
    int count, others;
    char line[LINES][320];
} heard;

static heard said;

static void hear(void *user, exphil_log_level level, const char *message)
{
    heard *h = user;
    if (level > EXPHIL_LOG_WARNING) return;
    if (!strstr(message, "cuBLASLt refuses")) {
        print_message("logged: %s\n", message);
        h->others++;
        return;
    }
    assert_true(h->count < LINES);
    assert_int_equal(level, EXPHIL_LOG_WARNING);
    snprintf(h->line[h->count++], sizeof h->line[0], "%s", message);
}

static void each_shape_was_said_once(const fake_blaslt *lt, const char *status)
{
    assert_true(lt->refusals > 0);
    assert_int_equal(said.count, lt->shapes);
    assert_int_equal(said.others, 0);
    for (int i = 0; i < said.count; i++) {
        if (!strstr(said.line[i], status) || !strstr(said.line[i], " rows, "))
            fail_msg("no status or no shape: %s", said.line[i]);
        for (int j = 0; j < i; j++)
            if (strcmp(said.line[i], said.line[j]) == 0) fail_msg("said twice: %s", said.line[i]);
    }
}

/* ---- every way to refuse ---- */

typedef struct refusal {
    const char *name;
    int where, status, spoils;
    const char *text;
} refusal;

static const refusal refusals[] = {
    {"no algorithm", FAKE_AT_QUERY, FAKE_NO_ALGORITHM, 0, "status -1 (no algorithm) when asked"},
    {"at query", FAKE_AT_QUERY, 15, 0, "status 15 (NOT_SUPPORTED) when asked"},
    {"at run", FAKE_AT_RUN, 15, 0, "status 15 (NOT_SUPPORTED) when it was to run"},
    {"at run, invalid", FAKE_AT_RUN, 7, 0, "status 7 (INVALID_VALUE) when it was to run"},
    {"in a recording", FAKE_IN_CAPTURE, 14, 0, "status 14 (INTERNAL_ERROR) when it was to run"},
    {"ending a recording", FAKE_IN_CAPTURE, 15, 1, "status 15 (NOT_SUPPORTED) when it was to run"},
};
enum { REFUSALS = sizeof refusals / sizeof *refusals };

static fake_blaslt *asked_to(const refusal *r, int which)
{
    fake_blaslt *lt = emulated_blaslt();
    lt->where = r ? r->where : FAKE_NOWHERE;
    lt->which = which;
    lt->status = r ? r->status : 0;
    lt->spoils = r && r->spoils;
    lt->products = lt->refusals = lt->shapes = 0;
    said.count = said.others = 0;
    return lt;
}

/* ---- training ---- */

static void losses_of(const train_plan *plan, double losses[UPDATES + 1], bool recorded)
{
    train_run run = train_begin(plan);
    for (int i = 0; i <= UPDATES; i++) losses[i] = -1.0;
    for (int i = 0; i <= UPDATES; i++) {
        emulated_gpu()->counts_clear();
        const exphil_metrics metrics = train_steps(&run, 1);
        if (metrics.update <= UPDATES) losses[metrics.update] = metrics.loss;
        if (i == UPDATES && recorded) {
            const emu_counts counts = emulated_gpu()->count();
            assert_int_equal(counts.graph_launches, 1);
            assert_int_equal(counts.launches, 0);
        }
    }
    train_end(&run);
}

static void trains(int32_t precision, const refusal *r, int which, bool recorded)
{
    static double cpu[UPDATES + 1];
    double gpu[UPDATES + 1], worst = 0.0;
    train_plan plan = train_plan_of("mamba attention lstm", EXPHIL_MODE_CARRY);
    if (cpu[UPDATES] == 0.0) losses_of(&plan, cpu, false);
    fake_blaslt *lt = asked_to(r, which);
    plan.device = "cuda:0";
    plan.backend_path = EMULATED_FOLDER;
    plan.trainer.precision = precision;
    plan.log = hear;
    plan.log_user = &said;
    losses_of(&plan, gpu, recorded);
    for (int i = 1; i <= UPDATES; i++) worst = fmax(worst, fabs(gpu[i] - cpu[i]) / cpu[i]);
    print_message(
        "precision %d, %d refused %s: %d products, %d refusals of %d shapes, losses differ by %.1e\n",
        precision, which, r ? r->name : "nowhere", lt->products, lt->refusals, lt->shapes, worst);
    assert_true(worst <= (precision == EXPHIL_PRECISION_F32 ? 1e-4 : 3e-2));
    if (r)
        each_shape_was_said_once(lt, r->text);
    else
        assert_int_equal(said.count + said.others, 0);
    emulated_clean();
}

/* The library does every product of these, in the type of the rows. */
static void nothing_refused_nothing_said(void **state)
{
    for (int32_t p = EXPHIL_PRECISION_F32; p <= EXPHIL_PRECISION_F16; p++) trains(p, NULL, 0, true);
}

/* With a sanitizer, which is slow and about other mistakes, each refusal has one precision, and all have their turn. */
#if defined(EXPHIL_SANITIZE)
enum { PRECISIONS_OF_ONE = 1 };
#else
enum { PRECISIONS_OF_ONE = EXPHIL_PRECISION_F16 + 1 };
#endif

static void training_goes_on(void **state)
{
    for (int i = 0; i < REFUSALS; i++)
        for (int32_t p = 0; p < PRECISIONS_OF_ONE; p++)
            trains((i + p) % (EXPHIL_PRECISION_F16 + 1), &refusals[i], FAKE_ALL, !refusals[i].spoils);
}

static void one_product_of_three_refused(void **state)
{
    static const struct {
        int32_t precision;
        int refusal;
    } ways[] = {{EXPHIL_PRECISION_BF16, 1}, {EXPHIL_PRECISION_TF32, 2}, {EXPHIL_PRECISION_F32, 4}};
    for (int which = FAKE_Y, first = 0; which <= FAKE_DX; which *= 2, first++)
        for (int i = 0; i < (PRECISIONS_OF_ONE == 1 ? 1 : 3); i++)
            trains(ways[(first + i) % 3].precision, &refusals[ways[(first + i) % 3].refusal], which, true);
}

/* ---- clusters of blocks ---- */

static void hear_of_room(void *user, exphil_log_level level, const char *message)
{
    if (level <= EXPHIL_LOG_WARNING && strstr(message, "no room for the clusters of ")) ++*(int *)user;
}

/* Of a training on code for this processor; blocks: that a cluster may have, once the model is planned. */
static int losses_with_clusters(int32_t precision, int code, int blocks, double losses[UPDATES + 1])
{
    int lines = 0;
    train_plan plan = train_plan_of("lstm gru", EXPHIL_MODE_CARRY);
    plan.model.hidden = 32;
    plan.device = "cuda:0";
    plan.backend_path = EMULATED_FOLDER;
    plan.trainer.precision = precision;
    plan.log = hear_of_room;
    plan.log_user = &lines;
    emulated_gpu()->code(code);
    train_run run = train_begin(&plan);
    emulated_gpu()->clusters(blocks);
    for (int i = 0; i <= UPDATES; i++) {
        emulated_gpu()->counts_clear();
        const exphil_metrics metrics = train_steps(&run, 1);
        if (metrics.update <= UPDATES) losses[metrics.update] = metrics.loss;
        if (i == UPDATES) assert_int_equal(emulated_gpu()->count().graph_launches, 1);
    }
    train_end(&run);
    emulated_gpu()->clusters(16);
    emulated_gpu()->code(90);
    emulated_clean();
    return lines;
}

/* The next kernels do it, with the same bits, and the log says so once. */
static void clusters_find_no_room(void **state)
{
    (void)asked_to(NULL, 0);
    for (int32_t p = EXPHIL_PRECISION_F32; p <= EXPHIL_PRECISION_F16; p++) {
        double with[UPDATES + 1] = {0}, without[UPDATES + 1] = {0};
        assert_int_equal(losses_with_clusters(p, 90, 16, with), 0);
        assert_int_equal(losses_with_clusters(p, 90, 1, without), 1);
        assert_memory_equal(with, without, sizeof with);
    }
}

/* Code that a driver made of that for an older processor has no clusters, and does not wait: neither is asked of it. */
static void code_for_older_processors(void **state)
{
    (void)asked_to(NULL, 0);
    for (int32_t p = EXPHIL_PRECISION_F32; p <= EXPHIL_PRECISION_F16; p++) {
        double with[UPDATES + 1] = {0}, without[UPDATES + 1] = {0};
        assert_int_equal(losses_with_clusters(p, 90, 16, with), 0);
        assert_int_equal(losses_with_clusters(p, 89, 16, without), 0);
        assert_memory_equal(with, without, sizeof with);
    }
}

/* ---- play ---- */

static exphil_context *listening(void)
{
    const exphil_context_config config = emulated_config("cuda:0", hear, &said);
    exphil_context *context = NULL;
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    return context;
}

/* Logits of all frames of all streams. */
static float *plays(exphil_context *context, bool on_gpu)
{
    const exphil_model_config config = model_case_config("mamba attention lstm mlp", EXPHIL_TYPE_F32);
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = STREAMS;
    exphil_model *model = play_model(context, &config, 0.1);
    exphil_session *session = play_session(model, &how);
    play_frames *frames = play_frames_make(model, STREAMS, FRAMES, 5);
    const int64_t width = STREAMS * frames->logits;
    float *logits = malloc((size_t)(FRAMES * width) * sizeof *logits);
    int32_t actions[STREAMS * 8];
    for (int64_t t = 0; t < FRAMES; t++) {
        emulated_gpu()->counts_clear();
        play_step(session, frames, t, true, actions);
        const emu_counts counts = emulated_gpu()->count();
        assert_int_equal(counts.graph_launches, on_gpu);
        assert_int_equal(counts.launches + counts.mallocs + counts.pinned, 0);
        play_logits(session, frames, logits + t * width);
    }
    play_frames_free(frames);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return logits;
}

/* Of steps whose operations are launched one by one: one launch asks no library. */
static void play_goes_on(void **state)
{
    setenv("EXPHIL_CUDA_JOIN", "none", 1);
    float *want = plays(test_context(NULL, NULL, 1), false);
    const exphil_model_config config = model_case_config("mamba", EXPHIL_TYPE_F32);
    exphil_context *cpu = test_context(NULL, NULL, 1);
    exphil_model *model = model_case_create(cpu, &config);
    const int64_t count = FRAMES * STREAMS * xph_model_shape_of(model)->logits;
    exphil_model_destroy(model);
    exphil_context_destroy(cpu);
    for (int i = -1; i < REFUSALS; i++) {
        const refusal *r = i < 0 ? NULL : &refusals[i];
        fake_blaslt *lt = asked_to(r, FAKE_ALL);
        float *got = plays(listening(), true);
        double worst = 0.0;
        for (int64_t k = 0; k < count; k++) worst = fmax(worst, fabs((double)got[k] - (double)want[k]));
        print_message("refused %s: %d products, %d shapes, logits differ by %.1e\n", r ? r->name : "nowhere",
                      lt->products, lt->shapes, worst);
        assert_true(worst <= 2e-5);
        if (r) each_shape_was_said_once(lt, r->text);
        free(got);
        emulated_clean();
    }
    unsetenv("EXPHIL_CUDA_JOIN");
    free(want);
}

/* ---- memory ---- */

/* All that products need was requested when the trainer was created. */
static void a_limit_is_met_at_creation(void **state)
{
    (void)asked_to(&refusals[2], FAKE_ALL);
    train_plan plan = train_plan_of("mamba lstm", EXPHIL_MODE_CARRY);
    plan.device = "cuda:0";
    plan.backend_path = EMULATED_FOLDER;
    train_run run = train_begin(&plan);
    exphil_memory_info made = EXPHIL_MEMORY_INFO_INIT, after = EXPHIL_MEMORY_INFO_INIT;
    assert_int_equal(exphil_context_memory(run.context, &made, NULL), EXPHIL_OK);
    train_steps(&run, 4);
    assert_int_equal(exphil_context_memory(run.context, &after, NULL), EXPHIL_OK);
    assert_int_equal(after.device_requests, made.device_requests);
    assert_int_equal(after.device_used_bytes, made.device_used_bytes);
    train_end(&run);
    emulated_clean();
}

static int setup(void **state)
{
    setenv("EXPHIL_CUBLASLT", EMULATED_BLASLT, 1);
    emulated_gpu()->timing(EMU_LAZY, 1);
    emulated_gpu()->protect(1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_refused_nothing_said), cmocka_unit_test(training_goes_on),
        cmocka_unit_test(one_product_of_three_refused), cmocka_unit_test(clusters_find_no_room),
        cmocka_unit_test(code_for_older_processors),    cmocka_unit_test(play_goes_on),
        cmocka_unit_test(a_limit_is_met_at_creation),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
