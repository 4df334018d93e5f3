/* A learner behind a game, used wrongly or met by faults: it is refused by name, nothing moves, and the game goes on. */
#include "live_case.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

typedef struct bench {
    test_memory memory;
    exphil_context *context;
    exphil_model *model;
    exphil_live_config config;
    exphil_session_config session;
    exphil_sampling sampling;
} bench;

static void bench_make(bench *b, const char *blocks, int32_t delay)
{
    exphil_model_config model = model_case_config(blocks, EXPHIL_TYPE_F32);
    memset(b, 0, sizeof *b);
    test_memory_init(&b->memory);
    b->context = test_context(&b->memory, NULL, 1);
    model.delay_frames = delay;
    model.neutral_start = 1;
    model.value = EXPHIL_VALUE_SHARED;
    b->model = model_case_create(b->context, &model);
    b->config = (exphil_live_config)EXPHIL_LIVE_CONFIG_INIT;
    b->session = (exphil_session_config)EXPHIL_SESSION_CONFIG_INIT;
    b->sampling = (exphil_sampling)EXPHIL_SAMPLING_INIT;
    assert_ok(exphil_model_sampling(b->model, &b->sampling, NULL));
    b->sampling.batch = 2;
    b->sampling.time = 10;
    b->config.session = &b->session;
    b->config.sampling = &b->sampling;
    b->config.piece_frames = 30;
    b->config.updates = 2;
    b->config.paced = 1;
}

static void bench_free(bench *b)
{
    exphil_model_destroy(b->model);
    exphil_context_destroy(b->context);
    assert_memory_clean(&b->memory);
}

static exphil_live *live_of(const bench *b)
{
    exphil_live *live = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_live_create(b->model, &b->config, &live, &error) < 0) fail_msg("%s", error.message);
    return live;
}

static void refuse(const bench *b, exphil_status status, const char *words)
{
    exphil_live *live = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_live_create(b->model, &b->config, &live, &error), status);
    assert_null(live);
    assert_says(&error, words);
}

/* ---- creation ------------------------------------------------------------------------------------------------------ */

static void configurations_that_cannot_be(void **state)
{
    bench b;
    exphil_live *live = NULL;
    exphil_learner_config learner = EXPHIL_LEARNER_CONFIG_INIT;
    exphil_context_config context = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_optimizer_config optimizer = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config trainer = EXPHIL_TRAINER_CONFIG_INIT;
    bench_make(&b, "gru", 0);
    const exphil_live_config fine = b.config;
#define WITH(change, status, words)                                                                          \
  do {                                                                                                       \
    b.config = fine;                                                                                         \
    change;                                                                                                  \
    refuse(&b, status, words);                                                                               \
  } while (0)
    WITH(b.config.way = 2, EXPHIL_E_INVALID, "way is 2");
    WITH(b.config.learner = &learner, EXPHIL_E_INVALID, "learner is for EXPHIL_LIVE_REINFORCE");
    WITH(b.config.teacher = b.model, EXPHIL_E_INVALID, "teacher is for EXPHIL_LIVE_REINFORCE");
    WITH(b.config.time = 3, EXPHIL_E_INVALID, "time is for EXPHIL_LIVE_REINFORCE");
    WITH(b.config.way = EXPHIL_LIVE_REINFORCE, EXPHIL_E_INVALID, "sampling is for EXPHIL_LIVE_IMITATE");
    WITH(b.config.share = 1.0, EXPHIL_E_INVALID, "share is 1");
    WITH(b.config.share = NAN, EXPHIL_E_INVALID, "share is");
    WITH(b.config.approved = -0.5, EXPHIL_E_INVALID, "approved is -0.5");
    WITH(b.config.piece_frames = -1, EXPHIL_E_INVALID, "piece_frames is -1");
    WITH(b.config.updates = INT64_MAX, EXPHIL_E_INVALID, "updates is");
    WITH(b.config.ring_frames = 2000000, EXPHIL_E_INVALID, "ring_frames is 2000000");
    WITH(b.config.rollback_frames = 601, EXPHIL_E_INVALID, "rollback_frames is 601");
    WITH((b.config.rollback_frames = 20, b.config.ring_frames = 20), EXPHIL_E_INVALID, "ring_frames only 20");
    WITH(b.config.paced = 2, EXPHIL_E_INVALID, "paced is 2");
    WITH((b.session.streams = 2), EXPHIL_E_INVALID, "streams is 2");
    b.session.streams = 1;
    WITH(b.session.deliver = EXPHIL_DELIVER_DECIDED, EXPHIL_E_UNSUPPORTED, "deliver");
    b.session.deliver = 0;
    WITH(b.sampling.delay_frames = 3, EXPHIL_E_MISMATCH, "delay_frames");
    b.sampling.delay_frames = 0;
    WITH(b.sampling.time = 70000, EXPHIL_E_INVALID, "70000");
    b.sampling.time = 10;
    WITH(b.sampling.workers = -1, EXPHIL_E_INVALID, "workers"); /* before there is a piece */
    b.sampling.workers = 0;
    WITH(b.sampling.drop_past = 2.0, EXPHIL_E_INVALID, "drop_past");
    b.sampling.drop_past = 0.0;
    WITH(b.sampling.mirror = 0.5, EXPHIL_E_INVALID, "mirror");
    b.sampling.mirror = 0.0;
    WITH(b.sampling.in_order = 1, EXPHIL_E_INVALID, "in_order");
    b.sampling.in_order = 0;
    WITH(b.sampling.lane_count = 1, EXPHIL_E_INVALID, "lanes of a rank");
    b.sampling.lane_count = 0;
    WITH((trainer.accumulate = 3, b.config.trainer = &trainer), EXPHIL_E_UNSUPPORTED, "accumulate");
    WITH(b.sampling.seed = 5, EXPHIL_E_INVALID, "a seed: the live config has one");
    b.sampling.seed = 0;
    WITH((context.device = "abacus", b.config.context = &context), EXPHIL_E_INVALID, "abacus");
    WITH((optimizer.rate = -1.0, b.config.optimizer = &optimizer), EXPHIL_E_INVALID, "rate");
    WITH(b.config.struct_size = 7, EXPHIL_E_INVALID, "struct_size");
    assert_int_equal(exphil_live_create(NULL, &fine, &live, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_live_create(b.model, &fine, NULL, NULL), EXPHIL_E_INVALID);
    bench_free(&b);
}

static void models_that_cannot_be_learnt_with(void **state)
{
    bench b;
    bench_make(&b, "gru", 0);
    exphil_model *plain = b.model, *other = NULL;
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F64);
    b.config.sampling = NULL;
    assert_ok(exphil_model_quantize(plain, EXPHIL_TYPE_I8, &other, NULL));
    b.model = other;
    refuse(&b, EXPHIL_E_UNSUPPORTED, "quantised");
    exphil_model_destroy(other);
    b.model = model_case_create(b.context, &config);
    refuse(&b, EXPHIL_E_UNSUPPORTED, "doubles");
    exphil_model_destroy(b.model);
    config.type = EXPHIL_TYPE_F32;
    b.model = model_case_create(b.context, &config);
    b.config.way = EXPHIL_LIVE_REINFORCE;
    b.config.piece_frames = b.config.updates = 0;
    refuse(&b, EXPHIL_E_INVALID, "value head");
    exphil_model_destroy(b.model);
    b.model = plain;
    b.session.deterministic = 1;
    refuse(&b, EXPHIL_E_UNSUPPORTED, "likeliest");
    bench_free(&b);
}

static void data_of_another_layout(void **state)
{
    bench b;
    exphil_dataset *dataset = NULL;
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT; /* melee2 */
    bench_make(&b, "gru", 0);
    assert_ok(exphil_dataset_create(b.context, &config, &dataset, NULL));
    b.config.dataset = dataset;
    refuse(&b, EXPHIL_E_MISMATCH, "dataset has rows of melee2/exphil81");
    exphil_dataset_destroy(dataset);
    bench_free(&b);
}

/* ---- calls ----------------------------------------------------------------------------------------------------------- */

static void wrong_calls_move_nothing(void **state)
{
    bench b;
    uint64_t hash[2] = {0, 0}, weights[2];
    for (int disturbed = 0; disturbed < 2; disturbed++) {
        bench_make(&b, "gru", 1);
        exphil_live *live = live_of(&b);
        exphil_session *session = exphil_live_session(live);
        live_person person = live_person_of(1, 1);
        unsigned char *kept = malloc(exphil_session_state_size(session));
        for (int i = 0; i < 200; i++) {
            float floats[13], bad[13];
            int32_t ids[2], none[2] = {5, 0}, action[3], wrong[3] = {0, 5, 0}, actions[3];
            exphil_error error = EXPHIL_ERROR_INIT;
            exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
            exphil_pad pad;
            live_person_look(&person, floats, ids, action);
            memcpy(bad, floats, sizeof bad);
            bad[4] = i % 2 ? NAN : INFINITY;
            if (disturbed) {
                assert_int_equal(exphil_live_step_row(live, bad, ids, NULL, actions), EXPHIL_E_NUMERIC);
                assert_int_equal(exphil_live_step_row(live, floats, none, action, actions), EXPHIL_E_INVALID);
                assert_int_equal(exphil_live_step_row(live, floats, ids, wrong, actions), EXPHIL_E_INVALID);
                assert_int_equal(exphil_session_error(session, &error), EXPHIL_E_INVALID);
                assert_says(&error, "person: ");
                assert_int_equal(exphil_live_step_row(live, floats, ids, NULL, NULL), EXPHIL_E_INVALID);
                assert_int_equal(exphil_live_step_row(live, NULL, ids, NULL, actions), EXPHIL_E_INVALID);
                assert_int_equal(exphil_live_step_row(NULL, floats, ids, NULL, actions), EXPHIL_E_INVALID);
                assert_int_equal(exphil_live_step(live, &frame, NULL, &pad), EXPHIL_E_STATE);
                assert_int_equal(exphil_live_reward(live, 0.0f, 3, NULL, NULL), EXPHIL_E_INVALID);
                assert_int_equal(exphil_live_reward(NULL, 0.0f, 0, NULL, NULL), EXPHIL_E_INVALID);
                assert_int_equal(exphil_session_step_row(session, floats, ids, NULL, actions),
                                 EXPHIL_E_STATE);
                assert_int_equal(exphil_session_reset(session, 0), EXPHIL_E_STATE);
                assert_int_equal(exphil_session_override(session, 0, action), EXPHIL_E_STATE);
                assert_ok(exphil_session_state_save(session, 0, kept, exphil_session_state_size(session)));
                assert_int_equal(
                    exphil_session_state_restore(session, 0, kept, exphil_session_state_size(session)),
                    EXPHIL_E_STATE);
                assert_int_equal(exphil_live_save(live, "", NULL), EXPHIL_E_INVALID);
                assert_int_equal(exphil_live_save(live, NULL, NULL), EXPHIL_E_INVALID);
                assert_int_equal(exphil_live_settle(NULL, NULL), EXPHIL_E_INVALID);
                assert_int_equal(exphil_live_model(live, NULL, NULL), EXPHIL_E_INVALID);
                assert_int_equal(exphil_live_query(live, NULL, NULL), EXPHIL_E_INVALID);
                if (i) assert_int_equal(exphil_live_resume(live, "there", NULL), EXPHIL_E_STATE);
            }
            assert_ok(exphil_live_step_row(live, floats, ids, i % 4 ? action : NULL, actions));
            hash[disturbed] = xph_mix(hash[disturbed] + xph_hash(actions, sizeof actions));
        }
        assert_ok(exphil_live_settle(live, NULL));
        weights[disturbed] = live_weights(live);
        free(kept);
        exphil_live_destroy(live);
        bench_free(&b);
    }
    assert_int_equal(hash[1], hash[0]);
    assert_int_equal(weights[1], weights[0]);
    assert_null(exphil_live_session(NULL));
    exphil_live_destroy(NULL);
}

static void rewards_that_are_none(void **state)
{
    bench b;
    float floats[13];
    int32_t ids[2], action[3], actions[3];
    bench_make(&b, "gru", 0);
    b.config = (exphil_live_config)EXPHIL_LIVE_CONFIG_INIT;
    b.config.way = EXPHIL_LIVE_REINFORCE;
    b.config.time = 8;
    exphil_live *live = live_of(&b);
    live_person person = live_person_of(1, 0);
    for (int i = 0; i < 8; i++) {
        live_person_look(&person, floats, ids, action);
        assert_int_equal(exphil_live_reward(live, 1.0f, 0, floats, ids), EXPHIL_E_STATE);
        assert_ok(exphil_live_step_row(live, floats, ids, NULL, actions));
        assert_int_equal(exphil_live_reward(live, NAN, 0, floats, ids), EXPHIL_E_NUMERIC);
        assert_int_equal(exphil_live_reward(live, -INFINITY, 0, floats, ids), EXPHIL_E_NUMERIC);
        assert_int_equal(exphil_live_reward(live, 1.0f, 9, floats, ids), EXPHIL_E_INVALID);
        if (i == 7) assert_int_equal(exphil_live_reward(live, 1.0f, 0, NULL, ids), EXPHIL_E_INVALID);
        assert_int_equal(exphil_live_save(live, "nothing-yet", NULL), EXPHIL_E_STATE);
        assert_ok(exphil_live_reward(live, 1.0f, 0, floats, ids));
    }
    assert_ok(exphil_live_settle(live, NULL));
    assert_int_equal(live_info(live).pieces, 1);
    exphil_live_destroy(live);
    bench_free(&b);
}

/* ---- life ------------------------------------------------------------------------------------------------------------- */

/* In the middle of updates, with the ring full of what nobody has learnt from, in any order. */
static void destroyed_while_it_learns(void **state)
{
    for (int round = 0; round < 30; round++) {
        bench b;
        uint64_t hash = 0;
        bench_make(&b, "mamba gru", 0);
        b.config.updates = 1000000;
        b.config.paced = 0;
        exphil_live *live = live_of(&b);
        live_person person = live_person_of(1, 0);
        const live_plan plan = {.frames = 7 * round, .on = 1, .of = 1, .episode = 1000};
        live_play(live, &person, &plan, &hash);
        exphil_model *newest = NULL;
        assert_ok(exphil_live_model(live, &newest, NULL));
        if (round % 2) exphil_model_destroy(b.model), b.model = NULL;
        if (round % 3 == 0) exphil_context_destroy(b.context), b.context = NULL;
        exphil_live_destroy(live);
        exphil_model_destroy(newest);
        exphil_model_destroy(b.model);
        exphil_context_destroy(b.context);
        assert_memory_clean(&b.memory);
    }
}

/* Memory that ends at any call of creation leaves nothing; later it ends learning, which is told, and not the game. */
static void memory_may_end(void **state)
{
    bench b;
    bench_make(&b, "gru", 0);
    exphil_live *live = NULL;
    exphil_status status = EXPHIL_E_MEMORY;
    long long at = 1;
    for (; status == EXPHIL_E_MEMORY; at++) {
        b.memory.fail_at = atomic_load(&b.memory.calls) + at;
        status = exphil_live_create(b.model, &b.config, &live, NULL);
    }
    b.memory.fail_at = 0;
    assert_ok(status);
    assert_true(at > 20);
    exphil_live_destroy(live);
    for (at = 1; at < 60; at++) {
        uint64_t hash = 0;
        exphil_error error = EXPHIL_ERROR_INIT;
        live = live_of(&b);
        live_person person = live_person_of(1, 0);
        const live_plan plan = {.frames = 20, .on = 1, .of = 1, .episode = 1000};
        live_play(live, &person, &plan, &hash);
        b.memory.fail_at = atomic_load(&b.memory.calls) + at;
        status = exphil_live_settle(live, &error);
        b.memory.fail_at = 0;
        assert_int_equal(live_info(live).failed, status);
        if (status < 0) {
            assert_int_equal(status, EXPHIL_E_MEMORY);
            assert_says(&error, "learning has ended");
            assert_int_equal(exphil_live_save(live, "anything", NULL), EXPHIL_E_MEMORY);
        }
        live_play(live, &person, &plan, &hash); /* the game goes on */
        exphil_live_destroy(live);
    }
    bench_free(&b);
}

/* ---- files ------------------------------------------------------------------------------------------------------------- */

static exphil_live *played(const bench *b)
{
    exphil_live *live = live_of(b);
    uint64_t hash = 0;
    live_person person = live_person_of(1, 0);
    const live_plan plan = {.frames = 80, .on = 2, .of = 3, .episode = 50};
    live_play(live, &person, &plan, &hash);
    return live;
}

static void other_runs_are_named(void **state)
{
    bench b;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset *dataset = NULL;
    exphil_dataset_config data = EXPHIL_DATASET_CONFIG_INIT;
    exphil_model_config wider = model_case_config("gru", EXPHIL_TYPE_F32);
    (void)test_folder();
    bench_make(&b, "gru", 0);
    exphil_live *live = played(&b);
    assert_ok(exphil_live_save(live, test_path("live"), NULL));
    exphil_live_destroy(live);
    const exphil_live_config fine = b.config;
    exphil_model *model = b.model;
#define OTHER(change, words)                                                                                 \
  do {                                                                                                       \
    b.config = fine;                                                                                         \
    change;                                                                                                  \
    live = live_of(&b);                                                                                      \
    uint64_t before = live_weights(live);                                                                    \
    assert_int_equal(exphil_live_resume(live, test_path("live"), &error), EXPHIL_E_MISMATCH);                \
    assert_says(&error, words);                                                                              \
    assert_int_equal(live_weights(live), before);                                                            \
    assert_int_equal(live_info(live).learnt, 0);                                                             \
    exphil_live_destroy(live);                                                                               \
  } while (0)
    OTHER(b.config.share = 0.25, "share 0.5, this is 0.25");
    OTHER(b.config.approved = 0.5, "approved 0, this is 0.5");
    OTHER(b.config.piece_frames = 31, "piece_frames 30, this is 31");
    OTHER(b.config.updates = 3, "updates 2, this is 3");
    OTHER(b.config.seed = 3, "seed 0, this is 3");
    OTHER(b.sampling.drop_past = 0.25, "another sampling");
    b.sampling.drop_past = 0.0;
    OTHER(b.sampling.batch = 3, "sampling.batch 2, this is 3");
    b.sampling.batch = 2;
    data.spec = &model_case_spec;
    assert_ok(exphil_dataset_create(b.context, &data, &dataset, NULL));
    float floats[13] = {0};
    int32_t ids[2] = {0}, action[3] = {0};
    assert_ok(exphil_dataset_add_rows(dataset, 1, 1, floats, ids, action, NULL));
    OTHER(b.config.dataset = dataset, "without a dataset, this is with");
    exphil_dataset_destroy(dataset);
    wider.hidden = 40;
    wider.delay_frames = 0;
    wider.neutral_start = 1;
    wider.value = EXPHIL_VALUE_SHARED;
    b.model = model_case_create(b.context, &wider);
    OTHER(b.config.seed = 0, "checkpoint");
    exphil_model_destroy(b.model);
    b.model = model;
    b.config = fine;
    live = live_of(&b);
    assert_int_equal(exphil_live_resume(live, test_path("nowhere"), &error), EXPHIL_E_IO);
    assert_ok(exphil_live_resume(live, test_path("live"), &error));
    assert_true(live_info(live).learnt > 0);
    exphil_live_destroy(live);
    test_folder_remove();
    bench_free(&b);
}

/* Every checkpoint that is cut, or has a byte changed, is refused and leaves what there is; a trainer's is told apart. */
static void damaged_checkpoints_are_refused(void **state)
{
    bench b;
    size_t bytes;
    (void)test_folder();
    bench_make(&b, "mlp", 0);
    exphil_live *live = played(&b);
    assert_ok(exphil_live_save(live, test_path("live"), NULL));
    char *whole = test_read(test_path("live.optimizer"), &bytes);
    assert_non_null(whole);
    exphil_live_destroy(live);
    live = live_of(&b);
    uint64_t before = live_weights(live);
    xph_rng rng = {.seed = 1, .stream = XPH_RNG_TEST};
    for (int i = 0; i < 400; i++) {
        size_t at = (size_t)xph_rng_below(&rng, bytes);
        test_write(test_path("bad.optimizer"), whole, i % 4 ? bytes : at);
        if (i % 4) {
            char *changed = malloc(bytes);
            memcpy(changed, whole, bytes);
            changed[at] = (char)(changed[at] ^ (char)(1 + xph_rng_below(&rng, 255)));
            test_write(test_path("bad.optimizer"), changed, bytes);
            free(changed);
        }
        exphil_status status = exphil_live_resume(live, test_path("bad"), NULL);
        assert_true(status == EXPHIL_E_FORMAT || status == EXPHIL_E_MISMATCH);
        assert_int_equal(live_weights(live), before);
        assert_int_equal(live_info(live).failed, EXPHIL_OK);
    }
    free(whole);
    exphil_live_destroy(live);
    test_folder_remove();
    bench_free(&b);
}

/* A disk that fails at any operation leaves the old files or the new ones, and what is learnt goes on. */
static void disks_may_fail(void **state)
{
    bench b;
    test_io io;
    exphil_context_config context = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    (void)test_folder();
    bench_make(&b, "mlp", 0);
    test_io_init(&io);
    context.io = &io.hook;
    context.threads = 1;
    b.config.context = &context;
    exphil_live *live = played(&b), *again;
    assert_ok(exphil_live_save(live, test_path("live"), NULL));
    uint64_t before = live_weights(live);
    io.code = ENOSPC;
    exphil_status status = EXPHIL_E_IO;
    long long at = 1;
    for (; status < 0; at++) {
        io.fail_at = atomic_load(&io.calls) + at;
        status = exphil_live_save(live, test_path("live"), &error);
        io.fail_at = 0;
        if (status < 0) assert_int_equal(status, EXPHIL_E_IO);
        again = live_of(&b);
        assert_ok(exphil_live_resume(again, test_path("live"), NULL));
        assert_int_equal(live_weights(again), before);
        exphil_live_destroy(again);
    }
    assert_true(at > 8);
    assert_int_equal(live_info(live).failed, EXPHIL_OK);
    exphil_live_destroy(live);
    test_folder_remove();
    bench_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations_that_cannot_be),
        cmocka_unit_test(models_that_cannot_be_learnt_with),
        cmocka_unit_test(data_of_another_layout),
        cmocka_unit_test(wrong_calls_move_nothing),
        cmocka_unit_test(rewards_that_are_none),
        cmocka_unit_test(destroyed_while_it_learns),
        cmocka_unit_test(memory_may_end),
        cmocka_unit_test(other_runs_are_named),
        cmocka_unit_test(damaged_checkpoints_are_refused),
        cmocka_unit_test(disks_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
