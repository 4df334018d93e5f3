/* Runs on the emulated GPU that their host cancels, wherever it is asked: between the batches that an update accumulates, while
 * float16 overflows, while own decisions are drawn, or in an evaluation. Weights, moments, average, state, loss scale and the
 * place in the data stay what they were, and going on gives the bits of the run that was never cancelled. */
#include "emulated.h"
#include "retry_case.h"

#include <stdlib.h>
#include <string.h>

#if defined(EXPHIL_SANITIZE)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static train_plan plan_of(const char *blocks, int32_t mode, int64_t accumulate)
{
    train_plan plan = train_plan_of(blocks, mode);
    plan.device = "cuda:0";
    plan.backend_path = EMULATED_FOLDER;
    plan.trainer.accumulate = accumulate;
    plan.adam.ema_decay = 0.9;
    plan.adam.warmup_updates = 20;
    return plan;
}

static train_plan overflowing(const char *blocks, int64_t accumulate)
{
    train_plan plan = plan_of(blocks, EXPHIL_MODE_CARRY, accumulate);
    plan.trainer.precision = EXPHIL_PRECISION_F16;
    plan.trainer.loss_scale = 0x1p24; /* halved by the first updates */
    return plan;
}

/* ---- between the batches of an update ---- */

static void between_batches(void **state)
{
    for (int looks = 0; looks <= 1; looks++) {
        if (SANITIZED && !looks) continue;
        emulated_gpu()->timing(looks ? EMU_LAZY : EMU_SHUFFLED, 5);
        train_plan plan = plan_of("mamba lstm", EXPHIL_MODE_CARRY, 4);
        plan.trainer.precision = EXPHIL_PRECISION_BF16;
        retry_as_never_failed(plan, RETRY_CANCEL, looks);
        plan = plan_of("gru", EXPHIL_MODE_WINDOW, 3);
        retry_as_never_failed(plan, RETRY_CANCEL, looks);
    }
    emulated_clean();
}

static void while_the_scale_is_halved(void **state)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    for (int64_t accumulate = 1; accumulate <= 3; accumulate += 2) {
        const train_plan plan = overflowing("lstm", accumulate);
        train_run run = train_begin(&plan);
        for (int i = 0; i < 7; i++) assert_ok(exphil_trainer_step(run.trainer, &metrics, NULL));
        assert_true(metrics.skipped > 0 && metrics.update > 0);
        train_end(&run);
        for (int looks = 0; looks <= 1; looks++) {
            emulated_gpu()->timing(looks ? EMU_EAGER : EMU_LAZY, 1);
            if (!SANITIZED || looks) retry_as_never_failed(plan, RETRY_CANCEL, looks);
        }
    }
    emulated_clean();
}

/* Past actions of the policy's own, drawn on the device between the batches. */
static void while_own_decisions_are_drawn(void **state)
{
    emulated_gpu()->timing(EMU_LAZY, 1);
    train_plan plan = plan_of("gru", EXPHIL_MODE_CARRY, 3);
    plan.sampling.drop_past = 0.3;
    plan.trainer.own_past = 0.7;
    plan.trainer.own_past_seed = 9;
    retry_as_never_failed(plan, RETRY_CANCEL, true);
    emulated_clean();
}

/* ---- other calls ---- */

typedef struct trouble {
    atomic_llong at, asked;
} trouble;

static int32_t strikes(void *user)
{
    trouble *t = user;
    return atomic_fetch_add(&t->asked, 1) + 1 == atomic_load(&t->at);
}

static exphil_status evaluates(const train_run *run, exphil_error *error)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    report.alone_most_frames = 30;
    return exphil_trainer_evaluate(run->trainer, EXPHIL_WEIGHTS, run->dataset, NULL, &report, error);
}

static void same_as(const train_run *run, const unsigned char *want, size_t bytes, const char *what,
                    long long at)
{
    size_t other;
    unsigned char *now = train_snapshot(run->trainer, &other);
    assert_int_equal(other, bytes);
    if (memcmp(now, want, bytes) != 0) fail_msg("%s, question %lld: the trainer differs", what, at);
    free(now);
}

/* At each of its questions: nothing of the trainer moves. */
static void evaluation_cancelled(const train_run *run, trouble *t)
{
    size_t bytes;
    unsigned char *before = train_snapshot(run->trainer, &bytes);
    long long at = 1;
    for (;; at++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        atomic_store(&t->asked, 0);
        atomic_store(&t->at, at);
        const exphil_status status = evaluates(run, &error);
        atomic_store(&t->at, 0);
        if (status == EXPHIL_OK && atomic_load(&t->asked) < at) break;
        if (status != EXPHIL_E_CANCELLED)
            fail_msg("question %lld: %s: %s", at, exphil_status_name(status), error.message);
        same_as(run, before, bytes, "an evaluation", at);
    }
    assert_true(at > 1);
    free(before);
}

/* The trainer is in the midst of an update each time, with a scale that has changed. */
static void in_evaluations(void **state)
{
    trouble t = {0, 0};
    train_plan plan = overflowing("lstm", 2);
    emulated_gpu()->timing(EMU_LAZY, 1);
    train_run straight = train_begin(&plan);
    for (int i = 0; i < 8; i++) assert_ok(exphil_trainer_step(straight.trainer, NULL, NULL));
    size_t bytes;
    unsigned char *want = train_snapshot(straight.trainer, &bytes);
    assert_ok(exphil_trainer_save(straight.trainer, test_path("straight"), NULL));
    train_end(&straight);
    plan.cancel = strikes;
    plan.cancel_user = &t;
    train_run run = train_begin(&plan), other = train_begin(&plan);
    for (int i = 0; i < 5; i++) assert_ok(exphil_trainer_step(run.trainer, NULL, NULL));
    evaluation_cancelled(&run, &t);
    assert_ok(exphil_trainer_step(run.trainer, NULL, NULL));
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    for (int i = 0; i < 2; i++) assert_ok(exphil_trainer_step(other.trainer, NULL, NULL));
    assert_ok(exphil_trainer_resume(other.trainer, test_path("net"), NULL));
    train_run *const both[] = {&run, &other};
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 2; i++) assert_ok(exphil_trainer_step(both[r]->trainer, NULL, NULL));
        same_as(both[r], want, bytes, r ? "the resumed run" : "the run", 0);
        assert_ok(exphil_trainer_save(both[r]->trainer, test_path("end"), NULL));
        assert_same_file(test_path("end"), test_path("straight"));
        assert_same_file(test_path("end.optimizer"), test_path("straight.optimizer"));
        train_end(both[r]);
    }
    free(want);
    emulated_clean();
}

/* A host that cancels and gives up: what was accumulated is dropped, and what was saved before goes on elsewhere. */
static void and_nothing_goes_on(void **state)
{
    trouble t = {0, 0};
    train_plan plan = plan_of("mamba", EXPHIL_MODE_CARRY, 4);
    emulated_gpu()->timing(EMU_SHUFFLED, 2);
    plan.cancel = strikes;
    plan.cancel_user = &t;
    for (long long at = 1; at < 12; at += 2) {
        exphil_error error = EXPHIL_ERROR_INIT;
        train_run run = train_begin(&plan);
        assert_ok(exphil_trainer_step(run.trainer, NULL, NULL));
        atomic_store(&t.asked, 0);
        atomic_store(&t.at, at);
        const exphil_status status = exphil_trainer_step(run.trainer, NULL, &error);
        assert_true(status == EXPHIL_E_CANCELLED || (status == EXPHIL_OK && atomic_load(&t.asked) < at));
        atomic_store(&t.at, 0);
        train_end(&run);
        emulated_clean();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(between_batches),
        cmocka_unit_test(while_the_scale_is_halved),
        cmocka_unit_test(while_own_decisions_are_drawn),
        cmocka_unit_test(in_evaluations),
        cmocka_unit_test(and_nothing_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
