/* Learning from play on the emulated GPU: what was played there is recomputed there, and learnt from as on the CPU. */
#include "emulated.h"
#include "learn_case.h"

#include <math.h>
#include <stdlib.h>

enum { CHUNKS = 2 }; /* the second continues what the first left */

/* Steps in one launch, or operation by operation, which is emulated ten times as fast. */
static void joined(bool on)
{
    if (on)
        unsetenv("EXPHIL_CUDA_JOIN");
    else
        setenv("EXPHIL_CUDA_JOIN", "none", 1);
}

/* Streams run as late as they may, and the host that touches the device's memory is stopped. */
static void late(void)
{
    emulated_gpu()->timing(EMU_LAZY, 1);
    emulated_gpu()->protect(1);
}

/* In one launch with a delay or without one, in turn. */
static void what_was_played_is_recomputed(void **state)
{
    static const char *const patterns[] = {"gru", "mamba", "attention", "lstm ffn mlp"};
    late();
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        for (int32_t delay = 0; delay <= 2; delay += 2) {
            learn_plan plan = learn_plan_of(patterns[i]);
            noise n = {.fail_at = 0};
            joined((int32_t)i % 2 == delay / 2);
            plan.lanes = 4;
            plan.time = 7;
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

static exphil_learner_metrics one_chunk(bool gpu, int32_t precision)
{
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
    plan.precision = precision;
    learn_run run = learn_begin(&plan);
    const exphil_world world = noise_world(&n, plan.lanes);
    const exphil_learner_metrics found = learn_chunk(&run, &world);
    learn_end(&run);
    return found;
}

/* Apart by at most part of what the CPU found. */
static void near(const char *what, int32_t precision, double found, double wanted, double part)
{
    print_message("precision %d, %s: %.6g, on the CPU %.6g\n", (int)precision, what, found, wanted);
    if (!(fabs(found - wanted) <= part * fabs(wanted))) fail_msg("%s: more than %g apart", what, part);
}

/* One chunk, of which both devices make nearly the same. In TF32 and BF16 both heads go by matrix units. */
static void both_devices_learn_alike(void **state)
{
    static const struct {
        double loss, kl_old, value_loss, norm;
    } gates[] = {{1e-4, 1e-2, 1e-3, 1e-3}, {5e-4, 1e-2, 1e-3, 1e-3}, {5e-3, 0.1, 5e-3, 5e-3}};
    late();
    joined(false);
    const exphil_learner_metrics cpu = one_chunk(false, EXPHIL_PRECISION_F32);
    for (int32_t p = EXPHIL_PRECISION_F32; p <= EXPHIL_PRECISION_BF16; p++) {
        const exphil_learner_metrics gpu = one_chunk(true, p);
        emulated_clean();
        assert_int_equal(gpu.rows, cpu.rows);
        near("loss", p, gpu.loss, cpu.loss, gates[p].loss);
        near("KL to the old", p, gpu.kl_old, cpu.kl_old, gates[p].kl_old);
        near("loss of the value", p, gpu.value_loss, cpu.value_loss, gates[p].value_loss);
        near("norm of the gradient", p, gpu.gradient_norm, cpu.gradient_norm, gates[p].norm);
    }
}

enum { FRAMES = 24, BACK = 4 };

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
    joined(true);
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
