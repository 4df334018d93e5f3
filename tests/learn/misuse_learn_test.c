/* Learning from play, used wrongly: objects that do not belong together are refused by name before anything has changed, and
 * what was there goes on to the bits of a run that nobody disturbed. */
#include "block_case.h"

#include <math.h>
#include <stdlib.h>

enum { CHUNKS = 3 };

static learn_plan plan_of(bool taught)
{
    learn_plan p = learn_plan_of("gru mlp");
    p.model.neutral_start = 1;
    p.taught = taught;
    p.learner.to_teacher = taught ? 0.1 : 0.0;
    return p;
}

/* Two runs of one context: the second has only what the first cannot share. */
static learn_run beside(const learn_run *r, const learn_plan *p, uint64_t seed)
{
    learn_run other = {.context = r->context, .model = r->model};
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config rollout = EXPHIL_ROLLOUT_CONFIG_INIT;
    session.streams = p->lanes;
    session.seed = seed;
    rollout.time = p->time;
    assert_ok(exphil_rollout_create(r->model, &session, &rollout, &other.rollout, NULL));
    return other;
}

static uint64_t undisturbed(const learn_plan *p)
{
    noise n = {.fail_at = 0};
    learn_run r = learn_begin(p);
    const exphil_world world = noise_world(&n, p->lanes);
    for (int i = 0; i < CHUNKS; i++) learn_chunk(&r, &world);
    uint64_t weights = learn_weights(&r);
    learn_end(&r);
    return weights;
}

/* ---- which world, which rollout ------------------------------------------------------------------------------------- */

static void a_rollout_has_one_world(void **unused)
{
    learn_plan p = plan_of(false);
    const uint64_t expected = undisturbed(&p);
    noise n = {.fail_at = 0}, second = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    float floats[13 * 6] = {0};
    int32_t ids[2 * 6] = {0}, actions[3 * 6];
    learn_run r = learn_begin(&p);
    const exphil_world world = noise_world(&n, p.lanes), other = noise_world(&second, p.lanes);
    for (int i = 0; i < CHUNKS; i++) {
        if (i > 0) {
            assert_int_equal(exphil_rollout_run(r.rollout, &other, &error), EXPHIL_E_STATE);
            assert_says(&error, "plays another world already");
            assert_int_equal(exphil_rollout_step(r.rollout, floats, ids, actions), EXPHIL_E_STATE);
            assert_int_equal(exphil_session_error(exphil_rollout_session(r.rollout), &error), EXPHIL_E_STATE);
            assert_says(&error, "it plays a world");
            assert_int_equal(second.frames, 0);
        }
        learn_chunk(&r, &world);
    }
    assert_true(learn_weights(&r) == expected);
    learn_end(&r);
}

static void a_teacher_follows_one_rollout(void **unused)
{
    learn_plan p = plan_of(true);
    const uint64_t expected = undisturbed(&p);
    noise n = {.fail_at = 0}, second = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    const char *path = test_path("follows");
    learn_run r = learn_begin(&p), other = beside(&r, &p, 9);
    const exphil_world world = noise_world(&n, p.lanes), far = noise_world(&second, p.lanes);
    learn_chunk(&r, &world);
    assert_ok(exphil_rollout_run(other.rollout, &far, NULL));
    for (int i = 1; i < CHUNKS; i++) {
        assert_int_equal(exphil_learner_update(r.learner, other.rollout, NULL, &error), EXPHIL_E_STATE);
        assert_says(&error, "its teacher follows another rollout");
        assert_int_equal(exphil_learner_save(r.learner, other.rollout, NULL, path, &error), EXPHIL_E_STATE);
        learn_chunk(&r, &world);
    }
    assert_true(learn_weights(&r) == expected);
    /* a rollout that has the address of one that is gone is another one */
    exphil_rollout_destroy(other.rollout);
    exphil_rollout_destroy(r.rollout);
    exphil_model *now = NULL;
    assert_ok(exphil_trainer_model(r.trainer, EXPHIL_WEIGHTS, &now, NULL));
    learn_run like = {.context = r.context, .model = now};
    noise third = {.fail_at = 0};
    const exphil_world fresh = noise_world(&third, p.lanes);
    r.rollout = beside(&like, &p, 5).rollout;
    assert_ok(exphil_rollout_run(r.rollout, &fresh, NULL));
    assert_int_equal(exphil_learner_update(r.learner, r.rollout, NULL, &error), EXPHIL_E_STATE);
    assert_says(&error, "another rollout");
    exphil_model_destroy(now);
    learn_end(&r);
}

/* A chunk that another learner had is missing in the teacher's state. */
static void a_teacher_has_every_chunk(void **unused)
{
    learn_plan p = plan_of(true), plain = plan_of(false);
    noise n = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    learn_run r = learn_begin(&p), other = r;
    const exphil_world world = noise_world(&n, p.lanes);
    learn_chunk(&r, &world);
    assert_ok(exphil_learner_create(r.trainer, NULL, &plain.learner, &other.learner, NULL));
    learn_chunk(&other, &world);
    assert_ok(exphil_rollout_run(r.rollout, &world, NULL));
    assert_int_equal(exphil_learner_update(r.learner, r.rollout, NULL, &error), EXPHIL_E_STATE);
    assert_says(&error, "another learner had a chunk of this one");
    block_learn(&other);
    exphil_learner_destroy(other.learner);
    learn_end(&r);
}

/* Without a teacher a learner takes chunks of several, as long as each plays what the trainer has. */
static void other_weights_are_refused(void **unused)
{
    learn_plan p = plan_of(false);
    noise n = {.fail_at = 0}, second = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *now = NULL;
    learn_run r = learn_begin(&p), other = beside(&r, &p, 9);
    const exphil_world world = noise_world(&n, p.lanes), far = noise_world(&second, p.lanes);
    assert_ok(exphil_rollout_run(other.rollout, &far, NULL));
    learn_chunk(&r, &world);
    const uint64_t before = learn_weights(&r);
    assert_int_equal(exphil_learner_update(r.learner, other.rollout, NULL, &error), EXPHIL_E_MISMATCH);
    assert_says(&error, "the rollout plays weights");
    assert_true(learn_weights(&r) == before);
    assert_ok(exphil_trainer_model(r.trainer, EXPHIL_WEIGHTS, &now, NULL));
    assert_ok(exphil_rollout_adopt(other.rollout, now, NULL));
    other.learner = r.learner;
    assert_true(learn_chunk(&other, &far).recomputed == 0.0);
    assert_int_equal(exphil_learner_update(r.learner, r.rollout, NULL, &error), EXPHIL_E_STATE);
    exphil_model_destroy(now);
    exphil_rollout_destroy(other.rollout);
    learn_end(&r);
}

/* ---- trainers -------------------------------------------------------------------------------------------------------- */

static void a_trainer_of_another_shape(void **unused)
{
    learn_plan p = plan_of(false), other = p;
    other.learner.batches = 1;
    noise n = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_learner *learner = NULL;
    learn_run r = learn_begin(&p);
    const exphil_world world = noise_world(&n, p.lanes);
    learn_chunk(&r, &world); /* batches of 2 streams of 11 rows */
    const uint64_t before = learn_weights(&r);
    assert_ok(exphil_learner_create(r.trainer, NULL, &other.learner, &learner, NULL));
    assert_ok(exphil_rollout_run(r.rollout, &world, NULL));
    assert_int_equal(exphil_learner_update(learner, r.rollout, NULL, &error), EXPHIL_E_MISMATCH);
    assert_says(&error, "2 streams of 11 rows, this rollout and the learner's batches make them 6 of 11");
    assert_true(learn_weights(&r) == before);
    block_learn(&r); /* the chunk is still there */
    exphil_learner_destroy(learner);
    learn_end(&r);
}

static void decay_moves_no_policy(void **unused)
{
    learn_plan p = plan_of(false);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_learner *learner = NULL;
    exphil_learner_config how = p.learner;
    learn_run r = learn_begin(&p);
    adam.decay = 0.1;
    assert_ok(exphil_optimizer_create(r.model, &adam, &optimizer, NULL));
    assert_ok(exphil_trainer_create(r.model, optimizer, NULL, NULL, &trainer, NULL));
    how.value_only = 1;
    assert_int_equal(exphil_learner_create(trainer, NULL, &how, &learner, &error), EXPHIL_E_UNSUPPORTED);
    assert_says(&error, "value_only: the optimizer's decay");
    how.value_only = 0;
    how.surrogate = -1.0;
    assert_int_equal(exphil_learner_create(trainer, NULL, &how, &learner, &error), EXPHIL_E_UNSUPPORTED);
    assert_says(&error, "surrogate: the optimizer's decay");
    how.entropy = 0.01;
    assert_ok(exphil_learner_create(trainer, NULL, &how, &learner, &error));
    exphil_learner_destroy(learner);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    learn_end(&r);
}

/* ---- returns --------------------------------------------------------------------------------------------------------- */

/* Rewards that are always the same, of one episode without end: nothing is to be explained. */
static void returns_without_variance(void **unused)
{
    learn_plan p = plan_of(false);
    p.time = 1;
    p.model.delay_frames = 0;
    p.learner.lambda = 1.0;
    p.learner.half_life_frames = 0.01; /* what comes later counts for nothing */
    learn_run r = learn_begin(&p);
    float floats[13 * 6] = {0}, reward[6] = {0.3f, 0.3f, 0.3f, 0.3f, 0.3f, 0.3f};
    int32_t ids[2 * 6] = {0}, actions[3 * 6];
    uint8_t ends[6] = {0};
    for (int b = 0; b < 6; b++) ends[b] = EXPHIL_OVER;
    for (int i = 0; i < CHUNKS; i++) {
        assert_ok(exphil_rollout_step(r.rollout, floats, ids, actions));
        assert_int_equal(exphil_rollout_reward(r.rollout, reward, ends, floats, ids), EXPHIL_END);
        assert_true(block_learn(&r).unexplained == 1.0);
    }
    learn_end(&r);
}

/* ---- sizes ----------------------------------------------------------------------------------------------------------- */

static int32_t save_nothing(void *user, int64_t lane, void *state)
{
    return 0;
}

static int32_t load_nothing(void *user, int64_t lane, const void *state)
{
    return 0;
}

/* What a world says of the size of its games is the host's, and may be anything. */
static void games_of_any_size(void **unused)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 6 + 1, (size_t)PTRDIFF_MAX - 8};
    learn_plan p = plan_of(false);
    noise n = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    const char *path = test_path("large");
    test_memory memory;
    test_memory_init(&memory);
    memory.limit_bytes = 1 << 30;
    p.memory = &memory;
    learn_run r = learn_begin(&p);
    exphil_world world = noise_world(&n, p.lanes), two = {0}, against = {0};
    world.save = save_nothing;
    world.load = load_nothing;
    learn_chunk(&r, &world);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        world.state_bytes = sizes[i];
        assert_int_equal(exphil_learner_save(r.learner, r.rollout, &world, path, &error), EXPHIL_E_MEMORY);
        assert_int_equal(exphil_learner_resume(r.learner, r.rollout, &world, path, &error), EXPHIL_E_MEMORY);
    }
    assert_false(test_exists(path));
    assert_ok(exphil_world_create(r.context, "pong-two", 2, &two, NULL));
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_model *model = NULL;
    config.spec = two.spec;
    config.blocks = "mlp";
    config.hidden = 8;
    assert_ok(exphil_model_create(r.context, &config, &model, NULL));
    const exphil_model *others[] = {model};
    exphil_world huge = two;
    huge.state_bytes = SIZE_MAX - 4;
    assert_int_equal(exphil_world_against(r.context, &huge, others, 1, 1, &against, &error),
                     EXPHIL_E_INVALID);
    assert_says(&error, "state_bytes");
    assert_null(against.user);
    exphil_model_destroy(model);
    exphil_world_destroy(&two);
    learn_end(&r);
    assert_memory_clean(&memory);
}

/* ---- words ----------------------------------------------------------------------------------------------------------- */

/* Other languages print these texts: they name no function of C. */
static void texts_name_no_functions(void **unused)
{
    learn_plan p = plan_of(false);
    noise n = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    float floats[13 * 6] = {0}, reward[6] = {0};
    int32_t ids[2 * 6] = {0}, actions[3 * 6];
    uint8_t ends[6] = {0};
    exphil_rollout *rollout = NULL;
    exphil_learner *learner = NULL;
    learn_run r = learn_begin(&p);
    const exphil_world world = noise_world(&n, p.lanes);
    const exphil_session *session = exphil_rollout_session(r.rollout);
    assert_int_equal(exphil_rollout_reward(r.rollout, reward, ends, floats, ids), EXPHIL_E_STATE);
    assert_int_equal(exphil_session_error(session, &error), EXPHIL_E_STATE);
    assert_null(strstr(error.message, "exphil_"));
    assert_ok(exphil_rollout_run(r.rollout, &world, NULL));
    assert_int_equal(exphil_rollout_run(r.rollout, &world, &error), EXPHIL_E_STATE);
    assert_null(strstr(error.message, "exphil_"));
    assert_int_equal(exphil_rollout_step(r.rollout, floats, ids, actions), EXPHIL_E_STATE);
    assert_int_equal(exphil_session_error(session, &error), EXPHIL_E_STATE);
    assert_null(strstr(error.message, "exphil_"));
    exphil_model_config plain = p.model;
    plain.value = EXPHIL_VALUE_NONE;
    exphil_model *model = model_case_create(r.context, &plain);
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    assert_ok(exphil_optimizer_create(model, NULL, &optimizer, NULL));
    assert_ok(exphil_trainer_create(model, optimizer, NULL, NULL, &trainer, NULL));
    assert_int_equal(exphil_rollout_create(model, NULL, NULL, &rollout, &error), EXPHIL_E_INVALID);
    assert_null(strstr(error.message, "exphil_"));
    assert_int_equal(exphil_learner_create(trainer, NULL, NULL, &learner, &error), EXPHIL_E_INVALID);
    assert_null(strstr(error.message, "exphil_"));
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
    learn_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rollout_has_one_world),    cmocka_unit_test(a_teacher_follows_one_rollout),
        cmocka_unit_test(a_teacher_has_every_chunk),  cmocka_unit_test(other_weights_are_refused),
        cmocka_unit_test(a_trainer_of_another_shape), cmocka_unit_test(decay_moves_no_policy),
        cmocka_unit_test(returns_without_variance),   cmocka_unit_test(games_of_any_size),
        cmocka_unit_test(texts_name_no_functions),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
