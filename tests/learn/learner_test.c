/* Rollouts and learners: what was played is recomputed to the last bit, for blocks, delays and heads; a run depends on its
 * seeds and not on threads; what is wrong is refused and changes nothing. */
#include "learn_case.h"

#include <math.h>
#include <stdlib.h>

/* ---- tests --------------------------------------------------------------------------------------------------------- */

static void check_recomputed(const char *blocks, int32_t delay, int32_t heads, bool warm)
{
    learn_plan p = learn_plan_of(blocks);
    noise n = {.fail_at = 0};
    p.model.delay_frames = delay;
    p.model.neutral_start = 1;
    p.model.heads = heads;
    p.learner.most_kl = 1e9; /* looks at the whole chunk */
    for (int h = 0; h < 3; h++) p.play[h].temperature = warm ? 0.6f + 0.5f * (float)h : 0.0f;
    learn_run r = learn_begin(&p);
    const exphil_world world = noise_world(&n, p.lanes);
    for (int i = 0; i < 4; i++) {
        exphil_learner_metrics m = learn_chunk(&r, &world);
        if (m.recomputed != 0.0)
            fail_msg("%s, delay %d, chunk %d: recomputed with %g", blocks, delay, i, m.recomputed);
        assert_true(m.chunks == i + 1 && m.updates > 0 && m.updates <= (i + 1) * 6);
        assert_true(m.rows > 0 && m.rows <= p.lanes * p.time);
        assert_true(m.kl_old > 0.0 && m.entropy > 0.0 && m.unexplained > 0.0);
    }
    learn_end(&r);
}

static void what_was_played_is_recomputed(void **unused)
{
    static const char *const patterns[] = {EACH_OF_SOME "mamba attention gru mlp ffn"};
    static const int32_t delays[] = {0, 1, 18};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        for (int d = 0; d < 3; d++)
            check_recomputed(patterns[i], delays[d], (int32_t)(i + (size_t)d) % 2, d != 1);
}

static void a_run_depends_on_its_seeds(void **unused)
{
    uint64_t found[4];
    for (int k = 0; k < 4; k++) {
        learn_plan p = learn_plan_of("gru attention");
        noise n = {.fail_at = 0};
        p.taught = true;
        p.learner.to_teacher = 0.1;
        p.learner.from_teacher = 0.05;
        p.learner.entropy = 0.01;
        p.learner.to_old = 0.2;
        p.threads = k < 3 ? 1 << k : 1;
        p.model.delay_frames = 2;
        p.model.neutral_start = 1;
        learn_run r = learn_begin(&p);
        const exphil_world world = noise_world(&n, p.lanes);
        exphil_learner_metrics m = EXPHIL_LEARNER_METRICS_INIT;
        for (int i = 0; i < 3; i++) m = learn_chunk(&r, &world);
        assert_true(m.kl_to_teacher > 0.0 && m.kl_from_teacher > 0.0);
        found[k] = learn_weights(&r);
        learn_end(&r);
    }
    for (int k = 1; k < 4; k++) assert_true(found[k] == found[0]);
}

/* At its start a policy is its own teacher: no distance, and only what was played moves it. */
static void a_teacher_is_at_no_distance_from_itself(void **unused)
{
    learn_plan p = learn_plan_of("lstm");
    noise n = {.fail_at = 0};
    p.taught = true;
    p.learner.surrogate = -1.0;
    p.learner.value_only = 3;
    p.learner.to_teacher = 1.0;
    p.model.value = EXPHIL_VALUE_DETACHED;
    learn_run r = learn_begin(&p);
    const exphil_world world = noise_world(&n, p.lanes);
    for (int i = 0; i < 6; i++) {
        exphil_learner_metrics m = learn_chunk(&r, &world);
        assert_true(m.kl_old == 0.0 && m.kl_to_teacher == 0.0 && m.kl_from_teacher == 0.0);
        assert_true(m.ratio == 1.0 && m.clipped == 0.0 && m.value_loss > 0.0);
    }
    learn_end(&r);
}

/* Updates that went too far never were. */
static void updates_are_taken_back(void **unused)
{
    learn_plan p = learn_plan_of("gru");
    noise n = {.fail_at = 0};
    p.learner.most_kl = 1e-12;
    learn_run r = learn_begin(&p);
    exphil_optimizer_info info = EXPHIL_OPTIMIZER_INFO_INIT;
    const exphil_world world = noise_world(&n, p.lanes);
    uint64_t before = learn_weights(&r);
    for (int i = 0; i < 2; i++) {
        exphil_learner_metrics m = learn_chunk(&r, &world);
        assert_true(m.taken_back == 1 && m.kl_old > 1e-12);
        assert_true(m.recomputed == 0.0);
        assert_true(learn_weights(&r) == before);
        assert_ok(exphil_optimizer_query(r.optimizer, &info, NULL));
        assert_int_equal(info.updates, 0);
    }
    learn_end(&r);
}

/* Frames that somebody else decided are not learnt from. */
static void overridden_frames_are_left_out(void **unused)
{
    learn_plan p = learn_plan_of("gru");
    p.lanes = 2;
    p.learner.batches = 1;
    p.model.delay_frames = 1;
    learn_run r = learn_begin(&p);
    noise n = {.fail_at = 0};
    exphil_learner_metrics m = EXPHIL_LEARNER_METRICS_INIT;
    float floats[26], reward[2] = {1.0f, 2.0f};
    int32_t ids[4], actions[6], other[3] = {5, 1, 3};
    uint8_t ends[2] = {EXPHIL_GOES_ON, EXPHIL_GOES_ON};
    exphil_status status = EXPHIL_OK;
    for (int t = 0; t < 12; t++) {
        for (int b = 0; b < 2; b++) noise_row(&n, b, floats + 13 * b, ids + 2 * b);
        assert_int_equal(status, EXPHIL_OK);
        assert_ok(exphil_rollout_step(r.rollout, floats, ids, actions));
        if (t % 4 == 1) assert_ok(exphil_session_override(exphil_rollout_session(r.rollout), 1, other));
        status = exphil_rollout_reward(r.rollout, reward, ends, floats, ids);
    }
    assert_int_equal(status, EXPHIL_END);
    assert_ok(exphil_learner_update(r.learner, r.rollout, &m, NULL));
    assert_int_equal(m.rows, 22 - 3);
    assert_true(m.recomputed == 0.0 && m.reward == 1.5);
    learn_end(&r);
}

static void a_full_chunk_is_full(void **unused)
{
    learn_plan p = learn_plan_of("gru");
    learn_run r = learn_begin(&p);
    noise n = {.fail_at = 0};
    const exphil_world world = noise_world(&n, p.lanes);
    assert_ok(exphil_rollout_run(r.rollout, &world, NULL));
    assert_int_equal(exphil_rollout_run(r.rollout, &world, NULL), EXPHIL_E_STATE);
    assert_ok(exphil_learner_update(r.learner, r.rollout, NULL, NULL));
    assert_ok(exphil_rollout_run(r.rollout, &world, NULL));
    learn_end(&r);
}

static void what_is_wrong_is_refused(void **unused)
{
    learn_plan p = learn_plan_of("gru");
    p.model.delay_frames = 0;
    learn_run r = learn_begin(&p);
    noise n = {.fail_at = 5};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_world world = noise_world(&n, p.lanes), other = world;
    float floats[13 * 6] = {0}, reward[6] = {0};
    int32_t ids[2 * 6] = {0}, actions[3 * 6];
    uint8_t ends[6] = {0};
    assert_int_equal(exphil_learner_update(r.learner, r.rollout, NULL, &error), EXPHIL_E_STATE);
    assert_int_equal(exphil_rollout_reward(r.rollout, reward, ends, floats, ids), EXPHIL_E_STATE);
    assert_ok(exphil_rollout_step(r.rollout, floats, ids, actions));
    assert_int_equal(exphil_rollout_step(r.rollout, floats, ids, actions), EXPHIL_E_STATE);
    reward[3] = NAN;
    assert_int_equal(exphil_rollout_reward(r.rollout, reward, ends, floats, ids), EXPHIL_E_NUMERIC);
    assert_int_equal(exphil_session_error(exphil_rollout_session(r.rollout), &error), EXPHIL_E_NUMERIC);
    assert_string_equal(error.message, "reward[3] is not finite");
    reward[3] = 0.0f;
    ends[1] = 3;
    assert_int_equal(exphil_rollout_reward(r.rollout, reward, ends, floats, ids), EXPHIL_E_INVALID);
    ends[1] = EXPHIL_CUT_OFF;
    assert_int_equal(exphil_rollout_reward(r.rollout, reward, ends, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_error(exphil_rollout_session(r.rollout), &error), EXPHIL_E_INVALID);
    assert_string_equal(error.message, "floats is NULL");
    ends[1] = 0;
    assert_ok(exphil_rollout_reward(r.rollout, reward, ends, NULL, NULL));
    exphil_session *held = exphil_rollout_session(r.rollout);
    assert_int_equal(exphil_session_step_row(held, floats, ids, NULL, actions), EXPHIL_E_STATE);
    assert_int_equal(exphil_session_reset(held, -1), EXPHIL_E_STATE);
    assert_int_equal(exphil_rollout_run(r.rollout, &world, &error), EXPHIL_E_STATE);
    assert_says(&error, "steps of the host's");
    learn_end(&r);
    r = learn_begin(&p);
    other.lanes = 5;
    assert_int_equal(exphil_rollout_run(r.rollout, &other, &error), EXPHIL_E_MISMATCH);
    other = world;
    other.step = NULL;
    assert_int_equal(exphil_rollout_run(r.rollout, &other, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_rollout_run(r.rollout, NULL, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_rollout_run(r.rollout, &world, &error), EXPHIL_E_IO);
    assert_string_equal(error.message, "the world's step failed with 7");
    assert_int_equal(exphil_rollout_run(r.rollout, &world, &error), EXPHIL_E_STATE);
    assert_says(&error, "its world has failed before");
    assert_int_equal(exphil_rollout_step(r.rollout, floats, ids, actions), EXPHIL_E_STATE);
    assert_int_equal(exphil_learner_update(r.learner, r.rollout, NULL, &error), EXPHIL_E_STATE);
    assert_says(&error, "its world has failed before");
    learn_end(&r);
}

static void what_cannot_be_made_is_refused(void **unused)
{
    learn_plan p = learn_plan_of("gru");
    learn_run r = learn_begin(&p);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_rollout *rollout = NULL;
    exphil_learner *learner = NULL;
    exphil_model *model = NULL;
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config config = EXPHIL_ROLLOUT_CONFIG_INIT;
    exphil_learner_config how = EXPHIL_LEARNER_CONFIG_INIT;
    session.deterministic = 1;
    assert_int_equal(exphil_rollout_create(r.model, &session, NULL, &rollout, &error), EXPHIL_E_UNSUPPORTED);
    config.time = -1;
    assert_int_equal(exphil_rollout_create(r.model, NULL, &config, &rollout, &error), EXPHIL_E_INVALID);
    assert_ok(exphil_model_quantize(r.model, EXPHIL_TYPE_I8, &model, NULL));
    assert_int_equal(exphil_rollout_create(model, NULL, NULL, &rollout, &error), EXPHIL_E_UNSUPPORTED);
    exphil_model_destroy(model);
    exphil_model_config plain = model_case_config("gru", EXPHIL_TYPE_F32);
    model = model_case_create(r.context, &plain);
    assert_int_equal(exphil_rollout_create(model, NULL, NULL, &rollout, &error), EXPHIL_E_INVALID);
    exphil_model_destroy(model);
    plain.mode = EXPHIL_MODE_WINDOW;
    plain.value = EXPHIL_VALUE_SHARED;
    model = model_case_create(r.context, &plain);
    assert_int_equal(exphil_rollout_create(model, NULL, NULL, &rollout, &error), EXPHIL_E_UNSUPPORTED);
    assert_int_equal(exphil_learner_create(r.trainer, model, &how, &learner, &error), EXPHIL_E_MISMATCH);
    exphil_model_destroy(model);
    how.to_teacher = 1.0;
    assert_int_equal(exphil_learner_create(r.trainer, NULL, &how, &learner, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "to_teacher"));
    how.to_teacher = 0.0;
    how.lambda = 1.5;
    assert_int_equal(exphil_learner_create(r.trainer, NULL, &how, &learner, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "lambda"));
    how.lambda = NAN;
    assert_int_equal(exphil_learner_create(r.trainer, NULL, &how, &learner, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_learner_create(NULL, NULL, NULL, &learner, &error), EXPHIL_E_INVALID);
    learn_end(&r);
}

/* ---- cartpole ------------------------------------------------------------------------------------------------------ */

/* A caller's struct has the size that it says, whatever the library's own is; one that is all zero is of 0.2. */
static void worlds_are_of_any_age(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_error error = EXPHIL_ERROR_INIT;
    typedef struct later_world {
        exphil_world world;
        uint64_t more, behind;
    } later_world;
    later_world later = {.more = 7, .behind = 9}, before = later;
    assert_ok(exphil_world_create(context, "cartpole", 2, &later.world, NULL));
    assert_true(later.world.struct_size == 88 && later.world.lanes == 2 && later.more == 7 &&
                later.behind == 9);
    exphil_world_destroy(&later.world);
    assert_memory_equal(&later, &before, sizeof later);
    later.world.struct_size = offsetof(later_world, behind);
    assert_ok(exphil_world_create(context, "cartpole", 2, &later.world, NULL));
    assert_true(later.world.struct_size == offsetof(later_world, behind));
    assert_true(later.world.user && later.more == 7 && later.behind == 9);
    exphil_world_destroy(&later.world);
    assert_true(!later.world.struct_size && !later.world.user && !later.more && later.behind == 9);
    before.world.struct_size = 80;
    later = before;
    assert_int_equal(exphil_world_create(context, "cartpole", 2, &later.world, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "exphil_world.struct_size is 80"));
    exphil_world_destroy(&later.world);
    assert_memory_equal(&later, &before, sizeof later);
    exphil_context_destroy(context);
}

static void worlds_are_made(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_world world = {0};
    float row[2][4], reward;
    int32_t push = 1;
    uint8_t ended = 0;
    assert_int_equal(exphil_world_create(context, "chess", 1, &world, &error), EXPHIL_E_INVALID);
    assert_string_equal(error.message,
                        "there is no world \"chess\"; there are cartpole, cartpole-blind, pong, pong-two");
    assert_int_equal(exphil_world_create(context, "cartpole", 0, &world, &error), EXPHIL_E_INVALID);
    assert_ok(exphil_world_create(context, "cartpole", 2, &world, NULL));
    unsigned char *saved = malloc(world.state_bytes);
    assert_int_equal(world.reset(world.user, 0, 3, row[0], NULL), 0);
    assert_int_equal(world.reset(world.user, 1, 3, row[1], NULL), 0);
    assert_memory_equal(row[0], row[1], sizeof row[0]);
    assert_int_equal(world.reset(world.user, 2, 3, row[1], NULL), 1);
    assert_int_equal(world.save(world.user, 0, saved), 0);
    int frames = 0;
    while (ended == EXPHIL_GOES_ON) {
        assert_int_equal(world.step(world.user, 0, 1, &push, row[0], NULL, &reward, &ended), 0);
        frames++;
    }
    assert_true(ended == EXPHIL_OVER && frames > 5 && frames < 20 && reward == 1.0f);
    assert_int_equal(world.load(world.user, 1, saved), 0);
    for (int i = 0; i < frames; i++)
        assert_int_equal(world.step(world.user, 1, 1, &push, row[1], NULL, &reward, &ended), 0);
    assert_memory_equal(row[0], row[1], sizeof row[0]);
    free(saved);
    exphil_world_destroy(&world);
    assert_null(world.user);
    exphil_world_destroy(&world);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_played_is_recomputed),
        cmocka_unit_test(a_run_depends_on_its_seeds),
        cmocka_unit_test(a_teacher_is_at_no_distance_from_itself),
        cmocka_unit_test(updates_are_taken_back),
        cmocka_unit_test(overridden_frames_are_left_out),
        cmocka_unit_test(a_full_chunk_is_full),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(what_cannot_be_made_is_refused),
        cmocka_unit_test(worlds_are_made),
        cmocka_unit_test(worlds_are_of_any_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
