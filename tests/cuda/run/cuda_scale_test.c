/* Runs in float16 whose loss scale has changed, on the emulated GPU: saved after it was halved by overflows, or before, at and
 * after its growth, and resumed, they give the bits of the run that went on. What is saved there is no run of another precision,
 * and a file that tells an impossible scale is refused with nothing changed. */
#include "emulated.h"
#include "train_case.h"

#include "file/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UPDATES = 6, GROWTH = 2000, BEFORE_GROWTH = GROWTH - 3 };
#define LARGEST 0x1p24
#define HALF_OF 0x1p23 /* what no gradient of these models can be scaled by */

static train_plan plan_of(const char *blocks, int64_t accumulate, double scale)
{
    train_plan plan = train_plan_of(blocks, EXPHIL_MODE_CARRY);
    plan.device = "cuda:0";
    plan.backend_path = EMULATED_FOLDER;
    plan.trainer.precision = EXPHIL_PRECISION_F16;
    plan.trainer.accumulate = accumulate;
    plan.trainer.loss_scale = scale;
    plan.adam.ema_decay = 0.9;
    plan.adam.warmup_updates = 20; /* every update has a rate of its own */
    return plan;
}

/* good below 0: as the trainer begins. */
static train_run begun(const train_plan *plan, double scale, int64_t good)
{
    train_run run = train_begin(plan);
    if (good >= 0) assert_ok(xph_control_begin(run.trainer, scale, good, NULL));
    return run;
}

typedef struct state {
    unsigned char *all;
    size_t bytes;
    char *file;
    size_t file_bytes;
    exphil_metrics metrics;
} state;

static state ended(train_run *run)
{
    state s = {.metrics = EXPHIL_METRICS_INIT};
    assert_ok(exphil_trainer_wait(run->trainer, &s.metrics, NULL));
    s.all = train_snapshot(run->trainer, &s.bytes);
    assert_ok(exphil_trainer_save(run->trainer, test_path("end"), NULL));
    s.file = test_read(test_path("end.optimizer"), &s.file_bytes);
    assert_non_null(s.file);
    train_end(run);
    return s;
}

static void state_free(state *s)
{
    free(s->all);
    free(s->file);
}

static void same_state(const state *got, const state *want, const char *what, int64_t at)
{
    assert_int_equal(got->bytes, want->bytes);
    assert_int_equal(got->file_bytes, want->file_bytes);
    if (memcmp(got->all, want->all, want->bytes) != 0)
        fail_msg("%s %lld: the trainers differ", what, (long long)at);
    if (memcmp(got->file, want->file, want->file_bytes) != 0)
        fail_msg("%s %lld: the checkpoints differ", what, (long long)at);
    assert_true(got->metrics.loss_scale == want->metrics.loss_scale);
    assert_int_equal(got->metrics.update, want->metrics.update);
    assert_int_equal(got->metrics.skipped, want->metrics.skipped);
}

/* Calls, of which those that overflow make no update. */
static void calls(train_run *run, int64_t count)
{
    for (int64_t i = 0; i < count; i++) assert_ok(exphil_trainer_step(run->trainer, NULL, NULL));
}

/* Saved after each call; resumed by a new trainer, and by one that is at work on something else. */
static state resumed_anywhere(const train_plan *plan, double scale, int64_t good)
{
    train_plan other = *plan;
    train_run run = begun(plan, scale, good);
    other.trainer.loss_scale = 256.0; /* what the file says counts */
    calls(&run, UPDATES);
    state want = ended(&run);
    for (int64_t at = 1; at < UPDATES; at++)
        for (int busy = 0; busy <= 1; busy++) {
            run = begun(plan, scale, good);
            calls(&run, at);
            assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
            train_end(&run);
            run = begun(&other, 0.0, -1);
            if (busy) calls(&run, 3);
            assert_ok(exphil_trainer_resume(run.trainer, test_path("net"), NULL));
            calls(&run, UPDATES - at);
            state got = ended(&run);
            same_state(&got, &want, "saved after call", at);
            state_free(&got);
        }
    return want;
}

static void after_overflows(void **state_)
{
    emulated_gpu()->timing(EMU_LAZY, 1);
    for (int64_t accumulate = 1; accumulate <= 2; accumulate++) {
        const train_plan plan = plan_of(accumulate == 1 ? "lstm" : "mamba gru", accumulate, LARGEST);
        state want = resumed_anywhere(&plan, 0.0, -1);
        print_message("%lld overflows, %lld updates, scale %g\n", (long long)want.metrics.skipped,
                      (long long)want.metrics.update, want.metrics.loss_scale);
        assert_true(want.metrics.skipped > 0 && want.metrics.skipped < UPDATES);
        assert_int_equal(want.metrics.skipped + want.metrics.update, UPDATES);
        assert_true(want.metrics.loss_scale <= HALF_OF);
        state_free(&want);
    }
    emulated_clean();
}

static void around_growth(void **state_)
{
    emulated_gpu()->timing(EMU_SHUFFLED, 3);
    const train_plan plan = plan_of("gru", 1, 1024.0);
    state want = resumed_anywhere(&plan, 1024.0, BEFORE_GROWTH);
    assert_true(want.metrics.loss_scale == 2048.0);
    assert_int_equal(want.metrics.skipped, 0);
    state_free(&want);
    emulated_clean();
}

/* The largest does not grow, and what has grown too much is halved again, with the count anew. */
static void ends_of_the_scale(void **state_)
{
    const train_plan plan = plan_of("lstm", 1, LARGEST);
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    train_run run = begun(&plan, 1.0, GROWTH - 1);
    calls(&run, 1);
    assert_ok(exphil_trainer_wait(run.trainer, &metrics, NULL));
    assert_true(metrics.loss_scale == 2.0);
    train_end(&run);
    run = begun(&plan, 0x1p14, GROWTH - 1);
    for (double scale = 0x1p15; metrics.skipped == 0 && scale <= LARGEST; scale *= 2.0) {
        calls(&run, 1);
        assert_ok(exphil_trainer_wait(run.trainer, &metrics, NULL));
        if (metrics.skipped) break;
        assert_true(metrics.loss_scale == scale);
        assert_ok(xph_control_begin(run.trainer, scale, GROWTH - 1, NULL));
    }
    print_message("overflow, then a scale of %g\n", metrics.loss_scale);
    assert_int_equal(metrics.skipped, 1);
    calls(&run, 2);
    assert_ok(exphil_trainer_wait(run.trainer, &metrics, NULL));
    assert_true(metrics.loss_scale < LARGEST);
    train_end(&run);
    emulated_clean();
}

/* A rate belongs to the update that was made, however many were refused before it and whether or not the host knew. */
static void rates_are_those_of_the_update(void **state_)
{
    const train_plan plan = plan_of("lstm", 1, 1024.0);
    emulated_gpu()->timing(EMU_LAZY, 1);
    for (int waits = 0; waits <= 1; waits++) {
        exphil_metrics metrics = EXPHIL_METRICS_INIT;
        int64_t seen = 0;
        train_run run = begun(&plan, 0.0, -1);
        calls(&run, 3);
        assert_ok(exphil_trainer_wait(run.trainer, &metrics, NULL));
        assert_ok(xph_control_begin(run.trainer, LARGEST, 0, NULL)); /* overflows from here on */
        for (int i = 0; i < UPDATES + 4; i++) {
            const int64_t before = metrics.update;
            assert_ok(exphil_trainer_step(run.trainer, &metrics, NULL));
            if (waits) assert_ok(exphil_trainer_wait(run.trainer, &metrics, NULL));
            if (metrics.update == before) continue; /* refused, or still under way */
            const double rate = xph_schedule_rate(&run.optimizer->config, metrics.update - 1);
            if (metrics.rate != rate)
                fail_msg("update %lld: a rate of %g is told, %g was used", (long long)metrics.update,
                         metrics.rate, rate);
            seen++;
        }
        assert_true(metrics.skipped > 0 && seen > 1);
        train_end(&run);
    }
    emulated_clean();
}

/* ---- other precisions, other devices ---- */

static void refused_as(const train_plan *plan, const char *path, exphil_status status, const char *words)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t bytes, other;
    train_run run = train_begin(plan);
    train_steps(&run, 2);
    unsigned char *before = train_snapshot(run.trainer, &bytes);
    assert_int_equal(exphil_trainer_resume(run.trainer, path, &error), status);
    if (!strstr(error.message, words)) fail_msg("\"%s\" lacks \"%s\"", error.message, words);
    unsigned char *after = train_snapshot(run.trainer, &other);
    assert_int_equal(bytes, other);
    assert_memory_equal(before, after, bytes);
    train_steps(&run, 1);
    free(before);
    free(after);
    train_end(&run);
}

static train_plan on_cpu(train_plan plan)
{
    plan.device = plan.backend_path = NULL;
    plan.trainer.precision = EXPHIL_PRECISION_F32;
    plan.trainer.loss_scale = 0.0;
    return plan;
}

static void other_precisions_are_refused(void **state_)
{
    emulated_gpu()->timing(EMU_LAZY, 1);
    const train_plan half = plan_of("gru", 1, LARGEST), cpu = on_cpu(half);
    train_plan floats = half, bf16 = half;
    floats.trainer.precision = EXPHIL_PRECISION_F32;
    floats.trainer.loss_scale = 0.0;
    bf16.trainer.precision = EXPHIL_PRECISION_BF16;
    bf16.trainer.loss_scale = 0.0;
    char path[4096];
    snprintf(path, sizeof path, "%s", test_path("half"));
    train_run run = train_begin(&half);
    calls(&run, 4);
    assert_ok(exphil_trainer_save(run.trainer, path, NULL));
    train_end(&run);
    refused_as(&cpu, path, EXPHIL_E_MISMATCH, "precision");
    refused_as(&floats, path, EXPHIL_E_MISMATCH, "precision");
    refused_as(&bf16, path, EXPHIL_E_MISMATCH, "precision");
    snprintf(path, sizeof path, "%s", test_path("floats"));
    run = train_begin(&cpu);
    calls(&run, 2);
    assert_ok(exphil_trainer_save(run.trainer, path, NULL));
    train_end(&run);
    refused_as(&half, path, EXPHIL_E_MISMATCH, "precision");
    emulated_clean();
}

/* Taken to the CPU and back between two updates of the device: the files are the same ones, and so is what follows. */
static void by_way_of_the_cpu(void **state_)
{
    emulated_gpu()->timing(EMU_LAZY, 1);
    train_plan plan = plan_of("mamba lstm", 2, 0.0);
    plan.trainer.precision = EXPHIL_PRECISION_F32;
    const train_plan cpu = on_cpu(plan);
    train_run run = train_begin(&plan);
    calls(&run, UPDATES);
    state want = ended(&run);
    for (int64_t at = 1; at < UPDATES; at += 2) {
        run = train_begin(&plan);
        calls(&run, at);
        assert_ok(exphil_trainer_save(run.trainer, test_path("there"), NULL));
        train_end(&run);
        run = train_begin(&cpu);
        assert_ok(exphil_trainer_resume(run.trainer, test_path("there"), NULL));
        assert_ok(exphil_trainer_save(run.trainer, test_path("here"), NULL));
        train_end(&run);
        assert_same_file(test_path("there"), test_path("here"));
        assert_same_file(test_path("there.optimizer"), test_path("here.optimizer"));
        run = train_begin(&plan);
        assert_ok(exphil_trainer_resume(run.trainer, test_path("here"), NULL));
        calls(&run, UPDATES - at);
        state got = ended(&run);
        same_state(&got, &want, "by way of the CPU after call", at);
        state_free(&got);
    }
    state_free(&want);
    emulated_clean();
}

/* ---- scales in a file ---- */

/* The checkpoint with 16 digits of a number written over. */
static void forge(exphil_context *context, const char *from, const char *to, const char *name,
                  const char *digits)
{
    size_t bytes;
    char *data = test_read(from, &bytes), sum[XPH_HEX_TEXT];
    xph_tensors file;
    xph_file_writer writer;
    assert_ok(xph_tensors_parse(context, data, bytes, "checkpoint", &file, NULL));
    char *text = strdup(xph_tensors_metadata(&file, "exphil.optimizer"));
    char *at = strstr(strstr(text, "\"loss_scale\":"), name);
    assert_non_null(at);
    assert_int_equal(strlen(digits), 16);
    memcpy(at + strlen(name), digits, 16);
    const xph_pair pairs[] = {{"exphil.optimizer", text},
                              {"exphil.optimizer_xxh64", xph_hex_text(sum, xph_hash(text, strlen(text)))}};
    assert_ok(xph_tensors_write(context, file.tensor, file.count, pairs, 2, to, &writer, NULL));
    assert_ok(xph_file_commit(&writer, NULL));
    xph_tensors_free(&file);
    free(text);
    free(data);
}

static void impossible_scales_are_refused(void **state_)
{
    static const struct {
        const char *name, *digits, *says;
    } bad[] = {
        {"\"value\":\"", "0000000000000000", "loss_scale.value"}, /* 0 */
        {"\"value\":\"", "3fe0000000000000", "loss_scale.value"}, /* 1/2 */
        {"\"value\":\"", "4180000000000000", "loss_scale.value"}, /* 2^25 */
        {"\"value\":\"", "c0f0000000000000", "loss_scale.value"}, /* -65536 */
        {"\"value\":\"", "7ff0000000000000", "loss_scale.value"}, /* infinity */
        {"\"value\":\"", "7ff8000000000000", "loss_scale.value"}, /* NaN */
        {"\"good\":\"", "8000000000000000", "loss_scale.good"},   /* below 0 */
        {"\"good\":\"", "1000000000000000", "loss_scale.good"},   /* more than there are updates */
    };
    emulated_gpu()->timing(EMU_LAZY, 1);
    const train_plan plan = plan_of("gru", 1, 1024.0);
    train_run run = train_begin(&plan);
    calls(&run, 2);
    assert_ok(exphil_trainer_save(run.trainer, test_path("good"), NULL));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        forge(run.context, test_path("good.optimizer"), test_path("bad.optimizer"), bad[i].name,
              bad[i].digits);
        refused_as(&plan, test_path("bad"), EXPHIL_E_FORMAT, bad[i].says);
    }
    /* at the ends, and in between where no power of two is */
    static const char *const right[] = {"3ff0000000000000", "4170000000000000", "40c81c8000000000"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        exphil_metrics metrics = EXPHIL_METRICS_INIT;
        forge(run.context, test_path("good.optimizer"), test_path("bad.optimizer"), "\"value\":\"", right[i]);
        assert_ok(exphil_trainer_resume(run.trainer, test_path("bad"), NULL));
        calls(&run, 1);
        assert_ok(exphil_trainer_wait(run.trainer, &metrics, NULL));
        assert_true(metrics.loss_scale >= 1.0 && metrics.loss_scale <= LARGEST);
    }
    train_end(&run);
    emulated_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_overflows),
        cmocka_unit_test(around_growth),
        cmocka_unit_test(ends_of_the_scale),
        cmocka_unit_test(rates_are_those_of_the_update),
        cmocka_unit_test(other_precisions_are_refused),
        cmocka_unit_test(by_way_of_the_cpu),
        cmocka_unit_test(impossible_scales_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
