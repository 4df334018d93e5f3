/* A policy learns from nothing to balance a pole: with what it sees, from memory, and with a delay. */
#include "learn_case.h"

/* Mean frames of the last episodes after so many frames of play. */
static double balance(const char *name, const char *blocks, int32_t delay, int64_t frames)
{
    enum { LANES = 16, TIME = 64 };
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_world world = {0};
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_learner_config how = EXPHIL_LEARNER_CONFIG_INIT;
    exphil_trainer_config trainer = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    learn_run r = {.context = context};
    assert_ok(exphil_world_create(context, name, LANES, &world, NULL));
    config.spec = world.spec;
    config.blocks = blocks;
    config.hidden = 64;
    config.head_width = 64;
    config.delay_frames = delay;
    config.neutral_start = 1;
    config.value = EXPHIL_VALUE_SHARED;
    adam.clip_norm = 0.5;
    adam.schedule = EXPHIL_SCHEDULE_COSINE;
    adam.total_updates = 16 * frames / (LANES * (TIME + delay));
    trainer.as_played = 1;
    session.streams = LANES;
    how.half_life_frames = 69.0;
    how.reward_scale = 0.1;
    r.model = model_case_create(context, &config);
    assert_ok(exphil_optimizer_create(r.model, &adam, &r.optimizer, NULL));
    assert_ok(exphil_trainer_create(r.model, r.optimizer, NULL, &trainer, &r.trainer, NULL));
    assert_ok(exphil_rollout_create(r.model, &session, NULL, &r.rollout, NULL));
    assert_ok(exphil_learner_create(r.trainer, NULL, &how, &r.learner, NULL));
    double sum = 0.0, episodes = 0.0;
    for (int64_t played = 0; played < frames; played += LANES * (TIME + delay)) {
        exphil_learner_metrics m = learn_chunk(&r, &world);
        assert_true(m.recomputed == 0.0);
        if (played < frames * 4 / 5) continue;
        sum += m.episode_frames * (double)m.episodes;
        episodes += (double)m.episodes;
    }
    learn_end(&r);
    exphil_world_destroy(&world);
    return sum / episodes;
}

static void a_cart_learns_to_balance(void **unused)
{
    assert_true(balance("cartpole", "mlp", 0, 150000) >= 475.0);
}

static void from_memory_and_with_a_delay(void **unused)
{
    assert_true(balance("cartpole-blind", "gru", 0, 200000) >= 400.0);
    assert_true(balance("cartpole", "mlp", 4, 200000) >= 300.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cart_learns_to_balance),
        cmocka_unit_test(from_memory_and_with_a_delay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
