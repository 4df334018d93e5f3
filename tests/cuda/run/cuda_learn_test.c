/* Learning from play on the emulated GPU: what was played there is recomputed there, and learnt from as on the CPU. */
#include "emulated.h"
#include "learn_case.h"

#include <math.h>
#include <stdlib.h>

enum { CHUNKS = 3 };

/* Streams run as late as they may, and the host that touches the device's memory is stopped. */
static void late(void)
{
    emulated_gpu()->timing(EMU_LAZY, 1);
    emulated_gpu()->protect(1);
}

static void what_was_played_is_recomputed(void **state)
{
    static const char *const patterns[] = {"gru", "mamba", "attention", "lstm ffn mlp"};
    late();
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        for (int32_t delay = 0; delay <= 2; delay += 2) {
            learn_plan plan = learn_plan_of(patterns[i]);
            noise n = {.fail_at = 0};
            plan.lanes = 4;
            plan.learner.batches = 2;
            plan.model.delay_frames = delay;
            plan.model.neutral_start = 1;
            plan.model.heads = (int32_t)i % 2;
            plan.device = "cuda:0";
            plan.backend_path = EMULATED_FOLDER;
            learn_run run = learn_begin(&plan);
            const exphil_world world = noise_world(&n, plan.lanes);
            for (int k = 0; k < CHUNKS; k++) {
                exphil_learner_metrics m = learn_chunk(&run, &world);
                if (!(m.recomputed <= 1e-6))
                    fail_msg("%s, delay %d, chunk %d: recomputed with %g nats", patterns[i], (int)delay, k,
                             m.recomputed);
                assert_true(isfinite(m.loss) && m.kl_old > 0.0);
            }
            learn_end(&run);
            emulated_clean();
        }
}

/* One chunk, of which both devices make nearly the same. */
static void both_devices_learn_alike(void **state)
{
    exphil_learner_metrics found[2];
    late();
    for (int gpu = 0; gpu < 2; gpu++) {
        learn_plan plan = learn_plan_of("gru attention");
        noise n = {.fail_at = 0};
        plan.taught = true;
        plan.learner.to_teacher = 0.1;
        plan.learner.entropy = 0.01;
        plan.learner.most_kl = 1e9;
        plan.lanes = 4;
        plan.learner.batches = 2;
        plan.device = gpu ? "cuda:0" : NULL;
        plan.backend_path = EMULATED_FOLDER;
        learn_run run = learn_begin(&plan);
        const exphil_world world = noise_world(&n, plan.lanes);
        found[gpu] = learn_chunk(&run, &world);
        learn_end(&run);
    }
    emulated_clean();
    assert_int_equal(found[0].rows, found[1].rows);
    assert_true(fabs(found[0].loss - found[1].loss) < 1e-4 * fabs(found[0].loss));
    assert_true(fabs(found[0].kl_old - found[1].kl_old) < 1e-2 * found[0].kl_old);
    assert_true(fabs(found[0].value_loss - found[1].value_loss) < 1e-3 * found[0].value_loss);
}

enum { FRAMES = 60, BACK = 6 };

static exphil_session *adoptable(const exphil_model *model)
{
    exphil_session *session = NULL;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    config.adoptable = 1;
    assert_ok(exphil_session_create(model, &config, &session, NULL));
    return session;
}

/* Recordings hold addresses: weights that enter are those that are played, and a rollback finds those of its frame. */
static void new_weights_enter_between_frames(void **state)
{
    learn_plan plan = learn_plan_of("gru attention");
    noise n = {.fail_at = 0};
    float floats[FRAMES][13], logits[FRAMES][12], again[12], its[12];
    int32_t ids[FRAMES][2], action[3];
    late();
    plan.device = "cuda:0";
    plan.backend_path = EMULATED_FOLDER;
    learn_run run = learn_begin(&plan);
    plan.model.seed = 77;
    exphil_model *next = model_case_create(run.context, &plan.model), *before = NULL;
    exphil_session *session = adoptable(run.model), *other = adoptable(next);
    size_t bytes = exphil_session_state_size(session);
    unsigned char *kept = calloc(FRAMES, bytes);
    assert_ok(exphil_model_prepare(next, NULL));
    for (int f = 0; f < FRAMES; f++) noise_row(&n, 0, floats[f], ids[f]);
    for (int f = 0; f < FRAMES; f++) {
        assert_ok(exphil_session_state_save(session, 0, kept + (size_t)f * bytes, bytes));
        if (f == FRAMES / 2) {
            assert_ok(exphil_session_adopt(session, next, &before));
            assert_null(before);
            assert_ok(exphil_session_state_restore(other, 0, kept + (size_t)f * bytes, bytes));
        }
        assert_ok(exphil_session_step_row(session, floats[f], ids[f], NULL, action));
        assert_ok(exphil_session_logits(session, 0, logits[f], 12));
        if (f >= FRAMES / 2) {
            assert_ok(exphil_session_step_row(other, floats[f], ids[f], NULL, action));
            assert_ok(exphil_session_logits(other, 0, its, 12));
            assert_memory_equal(its, logits[f], sizeof its);
        }
        for (int g = f > BACK ? f - BACK : 0; f % 3 == 0 && g <= f; g++) {
            if (g == f - BACK || g == 0)
                assert_ok(exphil_session_state_restore(session, 0, kept + (size_t)g * bytes, bytes));
            assert_ok(exphil_session_step_row(session, floats[g], ids[g], NULL, action));
            assert_ok(exphil_session_logits(session, 0, again, 12));
            assert_memory_equal(again, logits[g], sizeof again);
        }
    }
    free(kept);
    exphil_session_destroy(session);
    exphil_session_destroy(other);
    exphil_model_destroy(next);
    learn_end(&run);
    emulated_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_played_is_recomputed),
        cmocka_unit_test(both_devices_learn_alike),
        cmocka_unit_test(new_weights_enter_between_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
