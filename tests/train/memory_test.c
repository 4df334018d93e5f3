/* Training in less memory: activations made again in backward change no bit of a run, bfloat16 ones little; and after the
 * first update nothing is allocated any more, by the trainer, its prefetcher or the threads. */
#include "train_case.h"

#include <math.h>
#include <stdlib.h>

/* By mode: the usual words, with the usual heads; and those of other programs, with heads of layers. */
static const char *const mixture[] = {"mamba lstm attention ffn gru mlp mamba",
                                      "mamba_exphil gru_bare attention ffn_gelu lstm_bare mlp norm dense"};
enum { DEEP = 2 }; /* of model_case_end */

static train_plan plan_of(int32_t mode, int32_t checkpoint_blocks, int32_t activations)
{
    train_plan plan = train_plan_of(mixture[mode], mode);
    plan.model.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    if (mode == EXPHIL_MODE_WINDOW) {
        model_case_end(&plan.model, DEEP);
        plan.adam.rate = 2e-3; /* with more, runs of deep heads part from a change in the last digits */
    }
    plan.adam.ema_decay = 0.9;
    plan.trainer.accumulate = mode == EXPHIL_MODE_CARRY ? 2 : 1;
    plan.trainer.checkpoint_blocks = checkpoint_blocks;
    plan.trainer.activations = activations;
    return plan;
}

static unsigned char *outcome(const train_plan *plan, int64_t updates, size_t *bytes, double *loss)
{
    train_run run = train_begin(plan);
    exphil_metrics metrics = train_steps(&run, updates);
    unsigned char *all = train_snapshot(run.trainer, bytes);
    if (loss) *loss = metrics.loss;
    train_end(&run);
    return all;
}

/* ---- the same run in less memory --------------------------------------------------------------------------- */

static void checkpoints_train_the_same(void **state)
{
    static const int32_t blocks[] = {1, 2, 3, 5, 1000};
    for (int32_t mode = 0; mode <= 1; mode++) {
        size_t bytes;
        train_plan plan = plan_of(mode, 0, EXPHIL_TYPE_F32);
        unsigned char *want = outcome(&plan, 25, &bytes, NULL);
        for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
            plan = plan_of(mode, blocks[i], EXPHIL_TYPE_F32);
            plan.threads = i % 2 ? 4 : 1;
            unsigned char *got = outcome(&plan, 25, &bytes, NULL);
            assert_memory_equal(got, want, bytes);
            free(got);
        }
        free(want);
    }
}

static double first_loss(const train_plan *plan)
{
    double loss;
    size_t bytes;
    free(outcome(plan, 1, &bytes, &loss));
    return loss;
}

/* Half a hundred updates on, the loss is where it would be, to 2 % of what was learnt; and every run is the same run. */
static void rounded_activations_train_alike(void **state)
{
    for (int32_t mode = 0; mode <= 1; mode++) {
        size_t bytes;
        double exact, loss[2];
        train_plan plan = plan_of(mode, 0, EXPHIL_TYPE_F32);
        double first = first_loss(&plan);
        unsigned char *plain = outcome(&plan, 50, &bytes, &exact);
        assert_true(exact < 0.9 * first);
        for (int32_t blocks = 0; blocks <= 2; blocks += 2) {
            plan = plan_of(mode, blocks, EXPHIL_TYPE_BF16);
            unsigned char *once = outcome(&plan, 50, &bytes, &loss[0]);
            plan.threads = 3;
            unsigned char *again = outcome(&plan, 50, &bytes, &loss[1]);
            assert_memory_equal(once, again, bytes);
            assert_memory_not_equal(once, plain, bytes);
            print_message("mode %d, checkpoints of %d: loss %.5f -> %.5f, with bfloat16 %.5f\n", mode, blocks,
                          first, exact, loss[0]);
            assert_true(fabs(loss[0] - exact) <= 0.02 * (first - exact));
            free(once);
            free(again);
        }
        free(plain);
    }
}

/* ---- saved and resumed ------------------------------------------------------------------------------------- */

static exphil_status resume(const train_plan *plan, int64_t updates, const unsigned char *want,
                            exphil_error *error)
{
    train_run run = train_begin(plan);
    exphil_status status = exphil_trainer_resume(run.trainer, test_path("net"), error);
    if (status == EXPHIL_OK) {
        size_t bytes;
        (void)train_steps(&run, updates);
        unsigned char *got = train_snapshot(run.trainer, &bytes);
        assert_memory_equal(got, want, bytes);
        free(got);
    }
    train_end(&run);
    return status;
}

static void less_memory_goes_on_too(void **state)
{
    static const int32_t types[] = {EXPHIL_TYPE_F32, EXPHIL_TYPE_BF16};
    for (int t = 0; t < 2; t++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        size_t bytes;
        train_plan plan = plan_of(EXPHIL_MODE_CARRY, 2, types[t]), other = plan;
        train_run run = train_begin(&plan);
        (void)train_steps(&run, 7);
        assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
        (void)train_steps(&run, 6);
        unsigned char *want = train_snapshot(run.trainer, &bytes);
        train_end(&run);
        assert_ok(resume(&plan, 6, want, &error));
        /* what keeps all activations computes the same, unless they are rounded */
        other.trainer.checkpoint_blocks = 0;
        exphil_status status = resume(&other, 6, want, &error);
        assert_int_equal(status, t ? EXPHIL_E_MISMATCH : EXPHIL_OK);
        if (t) assert_non_null(strstr(error.message, "checkpoint_blocks 2, this run has 0"));
        other = plan;
        other.trainer.activations = types[1 - t];
        assert_int_equal(resume(&other, 6, want, &error), EXPHIL_E_MISMATCH);
        assert_non_null(strstr(error.message, "activations"));
        free(want);
    }
    test_folder_remove();
}

/* ---- nothing is allocated ---------------------------------------------------------------------------------- */

static void count_updates(train_plan *plan)
{
    test_memory memory;
    test_memory_init(&memory);
    plan->memory = &memory;
    plan->threads = 3;
    train_run run = train_begin(plan);
    (void)train_steps(&run, 1);
    long long calls = atomic_load(&memory.calls), live = atomic_load(&memory.live_bytes);
    (void)train_steps(&run, 40); /* several epochs: the order of each is planned in the memory of the first */
    assert_int_equal(atomic_load(&memory.calls), calls);
    assert_int_equal(atomic_load(&memory.live_bytes), live);
    train_end(&run);
    assert_memory_clean(&memory);
}

static void updates_allocate_nothing(void **state)
{
    static const int32_t types[] = {EXPHIL_TYPE_F32, EXPHIL_TYPE_BF16};
    for (int32_t mode = 0; mode <= 1; mode++)
        for (int32_t blocks = 0; blocks <= 2; blocks += 2)
            for (int t = 0; t < 2; t++) {
                train_plan plan = plan_of(mode, blocks, types[t]);
                plan.episodes = 3;
                count_updates(&plan);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_train_the_same),
        cmocka_unit_test(rounded_activations_train_alike),
        cmocka_unit_test(less_memory_goes_on_too),
        cmocka_unit_test(updates_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
