/* A second thread that calls whatever it can while another one plays and learns: each of its calls is refused, or harmless, and
 * the run ends with the bits of one that was left alone. */
#include "block_case.h"

#include <exphil/match.h>

#include <stdlib.h>

enum { CHUNKS = 12, LANES = 4 };

static learn_plan plan_of(void)
{
    learn_plan p = learn_plan_of("gru");
    p.model.hidden = 8;
    p.model.neutral_start = 1;
    p.lanes = LANES;
    p.time = 6;
    p.learner.batches = 2;
    return p;
}

typedef struct meddler {
    learn_run *run;
    const exphil_model *foreign; /* of the same context and another configuration */
    const exphil_world *other, *world;
    atomic_int stop, calls_made;
    int busy, wrong;
} meddler;

static void note(meddler *m, exphil_status status, exphil_status refusal)
{
    atomic_fetch_add(&m->calls_made, 1);
    m->busy += status == EXPHIL_E_BUSY;
    m->wrong += status != EXPHIL_E_BUSY && status != EXPHIL_E_STATE && status != refusal;
}

static void *meddle(void *arg)
{
    meddler *m = arg;
    learn_run *r = m->run;
    exphil_session *session = exphil_rollout_session(r->rollout);
    exphil_error error = EXPHIL_ERROR_INIT;
    float floats[13 * LANES] = {0}, reward[LANES] = {0}, value;
    int32_t ids[2 * LANES] = {0}, actions[3 * LANES];
    uint8_t ends[LANES] = {0};
    const size_t bytes = exphil_rollout_block_size(r->rollout);
    unsigned char *block = malloc(bytes);
    exphil_model *before = NULL;
    while (!atomic_load(&m->stop)) {
        note(m, exphil_rollout_step(r->rollout, floats, ids, actions), EXPHIL_E_STATE);
        note(m, exphil_rollout_reward(r->rollout, reward, ends, floats, ids), EXPHIL_E_STATE);
        note(m, exphil_rollout_run(r->rollout, m->other, &error), EXPHIL_E_STATE);
        note(m, exphil_rollout_adopt(r->rollout, m->foreign, &error), EXPHIL_E_MISMATCH);
        note(m, exphil_rollout_block_save(r->rollout, block, bytes, &error), EXPHIL_OK);
        note(m, exphil_rollout_block_take(r->rollout, 0, 0, block, 3, &error), EXPHIL_E_FORMAT);
        note(m, exphil_session_step_row(session, floats, ids, NULL, actions), EXPHIL_E_STATE);
        note(m, exphil_session_reset(session, 0), EXPHIL_E_STATE);
        note(m, exphil_session_value(session, 0, &value), EXPHIL_OK);
        note(m, exphil_session_adopt(session, m->foreign, &before), EXPHIL_E_STATE);
        note(m, exphil_learner_save(r->learner, r->rollout, m->other, "/nowhere/at-all", &error),
             EXPHIL_E_UNSUPPORTED);
        note(m, exphil_learner_resume(r->learner, r->rollout, m->other, "/nowhere/at-all", &error),
             EXPHIL_E_UNSUPPORTED);
    }
    free(block);
    return NULL;
}

/* What is refused because somebody else is in it is made again, as a host would. */
static void learn_all(learn_run *r, const exphil_world *world)
{
    for (int i = 0; i < CHUNKS; i++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        exphil_status status;
        do {
            status = exphil_rollout_run(r->rollout, world, &error);
        } while (status == EXPHIL_E_BUSY);
        if (status < 0) fail_msg("chunk %d is not played: %s", i, error.message);
        do {
            status = exphil_learner_update(r->learner, r->rollout, NULL, &error);
        } while (status == EXPHIL_E_BUSY);
        if (status < 0) fail_msg("chunk %d is not learnt: %s", i, error.message);
    }
}

static void a_second_thread_changes_nothing(void **unused)
{
    learn_plan p = plan_of();
    uint64_t found[2];
    for (int meddled = 0; meddled < 2; meddled++) {
        noise n = {.fail_at = 0}, far = {.fail_at = 0};
        learn_run r = learn_begin(&p);
        exphil_model_config config = p.model;
        config.hidden = 16;
        exphil_model *foreign = model_case_create(r.context, &config);
        const exphil_world world = noise_world(&n, LANES), other = noise_world(&far, LANES);
        meddler m = {.run = &r, .foreign = foreign, .other = &other, .world = &world};
        test_thread thread;
        learn_chunk(&r, &world); /* from here on it has a world */
        if (meddled) test_thread_start(&thread, meddle, &m);
        while (meddled && !atomic_load(&m.calls_made)) test_thread_yield();
        learn_all(&r, &world);
        atomic_store(&m.stop, 1);
        if (meddled) (void)test_thread_join(&thread);
        assert_int_equal(m.wrong, 0);
        assert_int_equal(far.frames, 0);
        found[meddled] = learn_weights(&r);
        exphil_model_destroy(foreign);
        learn_end(&r);
    }
    assert_true(found[1] == found[0]);
}

/* ---- worlds ---------------------------------------------------------------------------------------------------------- */

enum { MANY = 4096 };

/* Steps its lanes until somebody says that it has seen enough. */
typedef struct player {
    const exphil_world *world;
    int64_t first, count;
    atomic_int *stop, *refused;
    int until; /* calls after which it says so by itself; 0: when one is refused */
    int wrong;
} player;

static void *play_lanes(void *arg)
{
    player *p = arg;
    const exphil_world *w = p->world;
    float *floats = calloc(4 * MANY, sizeof *floats), *reward = calloc(MANY, sizeof *reward);
    int32_t *actions = calloc(MANY, sizeof *actions), ids[1];
    uint8_t *ends = calloc(MANY, 1);
    for (int t = 1; !atomic_load(p->stop); t++) {
        int32_t code = w->step(w->user, p->first, p->count, actions, floats, ids, reward, ends);
        p->wrong += code != 0 && code != 2;
        if (code == 2) atomic_fetch_add(p->refused, 1);
        if (p->until ? t >= p->until : atomic_load(p->refused) > 0) atomic_store(p->stop, 1);
    }
    free(floats);
    free(reward);
    free(actions);
    free(ends);
    return NULL;
}

/* Returns how many calls were refused. */
static int play_both(const exphil_world *world, int64_t first, int until)
{
    atomic_int stop = 0, refused = 0;
    test_thread thread[2];
    player both[2] = {{world, 0, MANY / 2, &stop, &refused, until, 0},
                      {world, first, 8, &stop, &refused, until, 0}};
    for (int i = 0; i < 2; i++) test_thread_start(&thread[i], play_lanes, &both[i]);
    for (int i = 0; i < 2; i++) (void)test_thread_join(&thread[i]);
    for (int i = 0; i < 2; i++) assert_int_equal(both[i].wrong, 0);
    return atomic_load(&refused);
}

/* Different lanes go together; one lane has one thread at a time, and the other is told. */
static void lanes_have_one_thread_each(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_world world = {0};
    float floats[4];
    int32_t ids[1];
    assert_ok(exphil_world_create(context, "cartpole", MANY, &world, NULL));
    for (int64_t lane = 0; lane < MANY; lane++)
        assert_int_equal(world.reset(world.user, lane, 3, floats, ids), 0);
    assert_int_equal(play_both(&world, MANY / 2, 500), 0);
    assert_true(play_both(&world, MANY / 2 - 1, 0) > 0); /* as long as it takes */
    exphil_world_destroy(&world);
    exphil_context_destroy(context);
}

/* The inner world, in whose step the outer one is called again. */
static exphil_world inner, outer;
static int32_t again;
static int32_t call_again(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                          int32_t *ids, float *reward, uint8_t *end)
{
    float rows[64], rewards[LANES];
    int32_t numbers[8], acts[LANES] = {0};
    uint8_t ends[LANES];
    exphil_error error = EXPHIL_ERROR_INIT;
    again = outer.step(outer.user, 0, outer.lanes, acts, rows, numbers, rewards, ends);
    assert_int_equal(exphil_world_opponent(&outer, 0, NULL, NULL, &error), EXPHIL_E_BUSY);
    return inner.step(user, first, count, actions, floats, ids, reward, end);
}

static void a_world_with_opponents_has_one_thread(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_model *model = NULL;
    float floats[64], reward[LANES];
    int32_t ids[8], actions[LANES] = {0};
    uint8_t ends[LANES];
    assert_ok(exphil_world_create(context, "pong-two", LANES, &inner, NULL));
    config.spec = inner.spec;
    config.blocks = "mlp";
    config.hidden = 8;
    assert_ok(exphil_model_create(context, &config, &model, NULL));
    exphil_world calling = inner;
    calling.step = call_again;
    const exphil_model *others[] = {model};
    assert_ok(exphil_world_against(context, &calling, others, 1, 1, &outer, NULL));
    for (int64_t lane = 0; lane < LANES; lane++)
        assert_int_equal(outer.reset(outer.user, lane, 3, floats, ids), 0);
    assert_int_equal(outer.step(outer.user, 0, LANES, actions, floats, ids, reward, ends), 0);
    assert_int_equal(again, 3);
    exphil_world_destroy(&outer);
    exphil_world_destroy(&inner);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_thread_changes_nothing),
        cmocka_unit_test(lanes_have_one_thread_each),
        cmocka_unit_test(a_world_with_opponents_has_one_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
