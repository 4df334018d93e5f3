/* Hostile use of what learns from play: rewards that are no numbers, rollouts of other models, weights of another layout, a full
 * disk, an end in the middle. A status, a message, and what was there goes on as if nothing had been: to the same bits. */
#include "block_case.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHUNKS = 3 };

static learn_plan plan_of(void)
{
    learn_plan p = learn_plan_of("gru mlp");
    p.model.delay_frames = 1;
    p.model.neutral_start = 1;
    p.taught = true;
    p.learner.to_teacher = 0.1;
    return p;
}

/* Weights after CHUNKS chunks that nobody disturbed. */
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

/* ---- numbers --------------------------------------------------------------------------------------------------------- */

/* A host that gives them by hand gives the right ones after that. */
static void rewards_that_are_no_numbers(void **unused)
{
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    learn_plan p = plan_of();
    uint64_t found[2];
    for (int hostile = 0; hostile < 2; hostile++) {
        noise n = {.fail_at = 0};
        exphil_error error = EXPHIL_ERROR_INIT;
        learn_run r = learn_begin(&p);
        exphil_status status = EXPHIL_OK;
        for (int t = 0; status == EXPHIL_OK; t++) {
            float floats[13 * 6], reward[6], bad[6];
            int32_t ids[2 * 6], actions[3 * 6];
            uint8_t ends[6];
            for (int b = 0; b < 6; b++) noise_row(&n, b, floats + 13 * b, ids + 2 * b);
            assert_ok(exphil_rollout_step(r.rollout, floats, ids, actions));
            for (int b = 0; b < 6; b++) reward[b] = (float)(t % 3 + b), ends[b] = (uint8_t)(t % 5 == b);
            for (int k = 0; hostile && k < 6; k++) {
                memcpy(bad, reward, sizeof bad);
                bad[k] = wrong[(t + k) % 3];
                assert_int_equal(exphil_rollout_reward(r.rollout, bad, ends, floats, ids), EXPHIL_E_NUMERIC);
                assert_int_equal(exphil_session_error(exphil_rollout_session(r.rollout), &error),
                                 EXPHIL_E_NUMERIC);
                assert_says(&error, "is not finite");
            }
            status = exphil_rollout_reward(r.rollout, reward, ends, floats, ids);
        }
        assert_int_equal(status, EXPHIL_END);
        block_learn(&r);
        found[hostile] = learn_weights(&r);
        learn_end(&r);
    }
    assert_true(found[1] == found[0]);
}

/* A world that gives them has spoilt its games: only that rollout is done with, and the learner goes on with another one. */
static void a_world_that_gives_no_numbers(void **unused)
{
    learn_plan p = plan_of();
    p.taught = false;
    p.learner.to_teacher = 0.0;
    const uint64_t expected = undisturbed(&p);
    for (int k = 0; k < 2; k++) {
        noise n = {.fail_at = 4, .bad = k ? INFINITY : NAN}, fresh = {.fail_at = 0};
        exphil_error error = EXPHIL_ERROR_INIT;
        learn_run r = learn_begin(&p), other = learn_begin(&p);
        const exphil_world world = noise_world(&n, p.lanes), sound = noise_world(&fresh, p.lanes);
        assert_int_equal(exphil_rollout_run(r.rollout, &world, &error), EXPHIL_E_NUMERIC);
        assert_says(&error, "reward[0] is not finite");
        assert_int_equal(exphil_rollout_run(r.rollout, &world, &error), EXPHIL_E_STATE);
        assert_int_equal(exphil_learner_update(r.learner, r.rollout, NULL, &error), EXPHIL_E_STATE);
        for (int i = 0; i < CHUNKS; i++) { /* of a player whose world is sound */
            assert_ok(exphil_rollout_run(other.rollout, &sound, NULL));
            if (i == 0) { /* the broken rollout takes none either: rows are recorded */
                size_t bytes;
                unsigned char *block = block_of(&other, &bytes);
                assert_int_equal(exphil_rollout_block_take(r.rollout, 0, 0, block, bytes, &error),
                                 EXPHIL_E_STATE);
                free(block);
            }
            block_learn(&other);
        }
        assert_true(learn_weights(&other) == expected);
        learn_end(&r);
        learn_end(&other);
    }
}

/* Finite rewards whose sums are not: the update is refused, and weights and moments are as before it. */
static void rewards_too_large_to_learn_from(void **unused)
{
    learn_plan p = plan_of();
    p.learner.reward_scale = 1e9;
    learn_run r = learn_begin(&p);
    noise n = {.fail_at = 3, .bad = 3e38f};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_optimizer_info info = EXPHIL_OPTIMIZER_INFO_INIT;
    const exphil_world world = noise_world(&n, p.lanes);
    uint64_t before = learn_weights(&r);
    assert_ok(exphil_rollout_run(r.rollout, &world, NULL));
    assert_int_equal(exphil_learner_update(r.learner, r.rollout, NULL, &error), EXPHIL_E_NUMERIC);
    assert_says(&error, "is not finite");
    assert_true(learn_weights(&r) == before);
    assert_ok(exphil_optimizer_query(r.optimizer, &info, NULL));
    assert_int_equal(info.updates, 0);
    exphil_learner_metrics m = learn_chunk(&r, &world); /* the chunk is done with */
    assert_true(m.updates > 0 && m.recomputed == 0.0 && xph_finite(m.loss));
    assert_true(learn_weights(&r) != before);
    learn_end(&r);
}

/* ---- others ---------------------------------------------------------------------------------------------------------- */

/* In the middle of a run everything that belongs to another one is tried. */
static void others_are_refused(learn_run *r, const learn_run *other, const exphil_world *world, bool full)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *before = NULL;
    const char *path = test_path("others");
    assert_int_equal(exphil_learner_update(r->learner, other->rollout, NULL, &error), EXPHIL_E_MISMATCH);
    assert_says(&error, "rollout");
    assert_int_equal(exphil_learner_save(r->learner, other->rollout, NULL, path, &error), EXPHIL_E_MISMATCH);
    assert_int_equal(exphil_learner_resume(r->learner, other->rollout, NULL, path, &error),
                     EXPHIL_E_MISMATCH);
    if (full) assert_int_equal(exphil_rollout_run(r->rollout, world, &error), EXPHIL_E_STATE);
    assert_int_equal(exphil_rollout_adopt(r->rollout, other->model, &error), EXPHIL_E_MISMATCH);
    assert_says(&error, "cannot be adopted");
    assert_int_equal(exphil_session_adopt(exphil_rollout_session(r->rollout), other->model, &before),
                     EXPHIL_E_STATE);
    assert_null(before);
}

static void other_models_change_nothing(void **unused)
{
    learn_plan p = plan_of(), narrow = p, slow = p, block = p;
    const uint64_t expected = undisturbed(&p);
    narrow.model.hidden = 16;
    slow.model.delay_frames = 2;
    block.model.blocks = "lstm mlp";
    learn_run other[4] = {learn_begin(&narrow), learn_begin(&slow), learn_begin(&block),
                          learn_begin(&p)}; /* the last: of another context */
    learn_run r = learn_begin(&p);
    noise n = {.fail_at = 0};
    const exphil_world world = noise_world(&n, p.lanes);
    for (int i = 0; i < CHUNKS; i++) {
        for (int k = 0; k < 4; k++) others_are_refused(&r, &other[k], &world, false);
        assert_ok(exphil_rollout_run(r.rollout, &world, NULL));
        for (int k = 0; k < 4; k++) others_are_refused(&r, &other[k], &world, true);
        block_learn(&r);
    }
    assert_true(learn_weights(&r) == expected);
    learn_end(&r);
    for (int k = 0; k < 4; k++) learn_end(&other[k]);
}

/* Of one context, so that it is the configuration that is refused. */
static void a_model_of_another_layout(void **unused)
{
    learn_plan p = plan_of();
    const uint64_t expected = undisturbed(&p);
    learn_run r = learn_begin(&p);
    noise n = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    const exphil_world world = noise_world(&n, p.lanes);
    exphil_world cart = {0};
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_model *model = NULL, *before = NULL;
    exphil_rollout *rollout = NULL;
    exphil_learner *learner = NULL;
    assert_ok(exphil_world_create(r.context, "cartpole", 6, &cart, NULL));
    config.spec = cart.spec;
    config.blocks = "gru mlp";
    config.hidden = p.model.hidden;
    config.value = EXPHIL_VALUE_SHARED;
    assert_ok(exphil_model_create(r.context, &config, &model, NULL));
    session.streams = 6;
    assert_ok(exphil_rollout_create(model, &session, NULL, &rollout, NULL));
    for (int i = 0; i < CHUNKS; i++) {
        assert_int_equal(exphil_rollout_adopt(r.rollout, model, &error), EXPHIL_E_MISMATCH);
        assert_int_equal(exphil_rollout_adopt(rollout, r.model, &error), EXPHIL_E_MISMATCH);
        assert_int_equal(exphil_session_adopt(exphil_rollout_session(r.rollout), model, &before),
                         EXPHIL_E_STATE);
        assert_int_equal(exphil_rollout_run(r.rollout, &cart, &error), EXPHIL_E_MISMATCH);
        assert_int_equal(exphil_rollout_run(rollout, &world, &error), EXPHIL_E_MISMATCH);
        assert_int_equal(exphil_learner_update(r.learner, rollout, NULL, &error), EXPHIL_E_MISMATCH);
        assert_int_equal(exphil_learner_create(r.trainer, model, NULL, &learner, &error), EXPHIL_E_MISMATCH);
        learn_chunk(&r, &world);
    }
    assert_true(learn_weights(&r) == expected);
    assert_null(before);
    assert_ok(exphil_rollout_run(rollout, &cart, NULL)); /* the other one is as good as it was */
    exphil_rollout_destroy(rollout);
    exphil_model_destroy(model);
    exphil_world_destroy(&cart);
    learn_end(&r);
}

/* Of the same blocks and spec, and yet another configuration: type, weights of fewer bits, value head, first actions. */
static void a_model_of_another_type(void **unused)
{
    learn_plan p = plan_of();
    const uint64_t expected = undisturbed(&p);
    learn_run r = learn_begin(&p);
    noise n = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    const exphil_world world = noise_world(&n, p.lanes);
    exphil_model *other[6] = {NULL};
    exphil_model_config config = p.model;
    config.type = EXPHIL_TYPE_F64;
    other[0] = model_case_create(r.context, &config);
    config = p.model;
    config.neutral_start = 0;
    other[1] = model_case_create(r.context, &config);
    assert_ok(exphil_model_with_value(r.model, EXPHIL_VALUE_DETACHED, 1, &other[2], NULL));
    assert_ok(exphil_model_quantize(r.model, EXPHIL_TYPE_I8, &other[3], NULL));
    assert_ok(exphil_model_quantize(r.model, EXPHIL_TYPE_BF16, &other[4], NULL));
    config = p.model;
    config.value = EXPHIL_VALUE_NONE;
    other[5] = model_case_create(r.context, &config);
    for (int i = 0; i < CHUNKS; i++) {
        for (int k = 0; k < 6; k++) {
            assert_int_equal(exphil_rollout_adopt(r.rollout, other[k], &error), EXPHIL_E_MISMATCH);
            assert_says(&error, "another configuration");
        }
        learn_chunk(&r, &world);
    }
    assert_true(learn_weights(&r) == expected);
    for (int k = 0; k < 6; k++) exphil_model_destroy(other[k]);
    learn_end(&r);
}

/* ---- a full disk ----------------------------------------------------------------------------------------------------- */

static void a_full_disk_leaves_the_old_checkpoint(void **unused)
{
    learn_plan p = plan_of();
    const uint64_t expected = undisturbed(&p);
    test_io io;
    noise n = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    test_io_init(&io);
    io.code = ENOSPC;
    p.io = &io;
    char path[256];
    (void)snprintf(path, sizeof path, "%s", test_path("learnt"));
    learn_run r = learn_begin(&p);
    const exphil_world world = noise_world(&n, p.lanes);
    long long operations = 0;
    char *old = NULL;
    size_t old_bytes = 0;
    for (int i = 0; i < CHUNKS; i++) {
        learn_chunk(&r, &world);
        for (long long k = 1; i > 0 && k <= operations; k++)
            for (int on = 0; on < 2; on++) {
                size_t bytes;
                io.fail_at = atomic_load(&io.calls) + k;
                io.fail_on = on;
                exphil_status status = exphil_learner_save(r.learner, r.rollout, NULL, path, &error);
                io.fail_at = 0;
                char *now = test_read(path, &bytes);
                assert_non_null(now);
                if (status < 0) {
                    assert_int_equal(status, EXPHIL_E_IO);
                    assert_true(error.native_code == ENOSPC && strstr(error.message, "No space left"));
                    if (bytes != old_bytes ||
                        memcmp(now, old, bytes) != 0) { /* after the rename: the new one */
                        learn_run other = learn_begin(&p);
                        assert_ok(exphil_learner_resume(other.learner, other.rollout, NULL, path, NULL));
                        assert_true(learn_weights(&other) == learn_weights(&r));
                        learn_end(&other);
                        test_write(path, old, old_bytes);
                    }
                } else
                    test_write(path, old,
                               old_bytes); /* what failed did not matter: removing what is not there */
                free(now);
                assert_int_equal(atomic_load(&io.open_files), 0);
            }
        long long before = atomic_load(&io.calls);
        assert_ok(exphil_learner_save(r.learner, r.rollout, NULL, path, NULL));
        operations = atomic_load(&io.calls) - before;
        assert_true(operations >= 5);
        free(old);
        old = test_read(path, &old_bytes);
    }
    assert_true(learn_weights(&r) == expected);
    free(old);
    learn_end(&r);
}

/* ---- an end in the middle -------------------------------------------------------------------------------------------- */

static void destroy(learn_run *r, int which)
{
    switch (which) {
    case 0:
        exphil_trainer_destroy(r->trainer);
        break;
    case 1:
        exphil_learner_destroy(r->learner);
        break;
    case 2:
        exphil_rollout_destroy(r->rollout);
        break;
    case 3:
        exphil_optimizer_destroy(r->optimizer);
        break;
    case 4:
        exphil_model_destroy(r->model);
        break;
    default:
        exphil_context_destroy(r->context);
        break;
    }
}

/* All 720 orders, with nothing played, in the middle of a chunk, with a full one, with one that half came as blocks, and after
 * an update. */
static void everything_ends_in_any_order(void **unused)
{
    learn_plan p = plan_of();
    test_memory memory;
    test_memory_init(&memory);
    p.lanes = 2;
    p.time = 3;
    p.learner.batches = 1;
    p.model.hidden = 8;
    learn_plan one = p;
    one.lanes = 1;
    noise far = {.fail_at = 0};
    learn_run player = learn_begin(&one);
    const exphil_world half = noise_world(&far, 1);
    assert_ok(exphil_rollout_run(player.rollout, &half, NULL));
    p.memory = &memory;
    for (int order = 0; order < 720; order++) {
        int left[6] = {0, 1, 2, 3, 4, 5}, code = order;
        noise n = {.fail_at = 0};
        float floats[26] = {0};
        int32_t ids[4] = {0}, actions[6];
        learn_run r = learn_begin(&p);
        const exphil_world world = noise_world(&n, p.lanes);
        switch (order % 5) {
        case 1:
            assert_ok(exphil_rollout_step(r.rollout, floats, ids, actions));
            break;
        case 2:
            assert_ok(exphil_rollout_run(r.rollout, &world, NULL));
            break;
        case 3:
            assert_int_equal(block_give(&player, &r, order % 2), EXPHIL_OK);
            break;
        case 4:
            learn_chunk(&r, &world);
            break;
        default:
            break;
        }
        for (int count = 6; count > 0; count--) {
            int at = code % count;
            code /= count;
            destroy(&r, left[at]);
            left[at] = left[count - 1];
        }
        assert_memory_clean(&memory);
    }
    learn_end(&player);
}

typedef struct stopper {
    long long left; /* questions until yes; below 0: never */
} stopper;

static int32_t stops(void *user)
{
    stopper *s = user;
    return s->left >= 0 && s->left-- == 0;
}

static learn_run begin_stoppable(const learn_plan *p, stopper *s)
{
    learn_run r = {.context = NULL};
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_trainer_config how = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config rollout = EXPHIL_ROLLOUT_CONFIG_INIT;
    config.threads = 1;
    config.cancel = stops;
    config.cancel_user = s;
    how.as_played = 1;
    session.streams = p->lanes;
    session.seed = 5;
    rollout.time = p->time;
    rollout.seed = 6;
    assert_ok(exphil_context_create(&config, &r.context, NULL));
    r.model = model_case_create(r.context, &p->model);
    assert_ok(exphil_optimizer_create(r.model, NULL, &r.optimizer, NULL));
    assert_ok(exphil_trainer_create(r.model, r.optimizer, NULL, &how, &r.trainer, NULL));
    assert_ok(exphil_rollout_create(r.model, &session, &rollout, &r.rollout, NULL));
    assert_ok(exphil_learner_create(r.trainer, NULL, &p->learner, &r.learner, NULL));
    return r;
}

/* An update is stopped in the middle and its learner destroyed: trainer and rollout are as before it, and another learner makes
 * of the same chunk what the first one would have. */
static void a_learner_ends_in_the_middle_of_an_update(void **unused)
{
    learn_plan p = learn_plan_of("gru mlp");
    stopper never = {-1}, s = {-1};
    noise n = {.fail_at = 0}, same = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    learn_run one = begin_stoppable(&p, &never), r = begin_stoppable(&p, &s);
    const exphil_world world = noise_world(&n, p.lanes), other = noise_world(&same, p.lanes);
    learn_chunk(&one, &world);
    uint64_t expected = learn_weights(&one), before = learn_weights(&r);
    assert_ok(exphil_rollout_run(r.rollout, &other, NULL));
    int stopped = 0;
    for (long long k = 0;; k++) {
        s.left = k;
        exphil_status status = exphil_learner_update(r.learner, r.rollout, NULL, &error);
        bool done = s.left >= 0;
        s.left = -1;
        if (done) {
            assert_int_equal(status, EXPHIL_OK);
            break;
        }
        assert_int_equal(status, EXPHIL_E_CANCELLED);
        assert_true(learn_weights(&r) == before);
        exphil_learner_destroy(r.learner);
        assert_ok(exphil_learner_create(r.trainer, NULL, &p.learner, &r.learner, NULL));
        stopped++;
    }
    assert_true(stopped >= 6); /* before each of the updates */
    assert_true(learn_weights(&r) == expected);
    learn_end(&one);
    learn_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rewards_that_are_no_numbers),
        cmocka_unit_test(a_world_that_gives_no_numbers),
        cmocka_unit_test(rewards_too_large_to_learn_from),
        cmocka_unit_test(other_models_change_nothing),
        cmocka_unit_test(a_model_of_another_layout),
        cmocka_unit_test(a_model_of_another_type),
        cmocka_unit_test(a_full_disk_leaves_the_old_checkpoint),
        cmocka_unit_test(everything_ends_in_any_order),
        cmocka_unit_test(a_learner_ends_in_the_middle_of_an_update),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
