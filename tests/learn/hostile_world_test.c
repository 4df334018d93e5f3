/* Worlds that lie: rewards, rows and ends that are none, steps and resets that fail at any moment. The rollout says what is wrong
 * and is done with; weights, moments and the learner are as if it had never been, and go on with another one to the bits of a
 * run that nobody disturbed. */
#include "block_case.h"

#include <exphil/match.h>

#include <math.h>
#include <stdlib.h>

enum { LANES = 6, CHUNKS = 2 };

typedef enum lie { LIE_REWARD, LIE_FLOATS, LIE_IDS, LIE_END, LIE_STEP, LIE_RESET } lie;

/* The noise world, which tells one lie: in its call number at (steps or resets, from 1), at this place. */
typedef struct liar {
    noise noise;
    exphil_world of;
    lie what;
    int32_t at, calls, id;
    int64_t place;
    float bad;
} liar;

static bool lies(liar *w, lie what)
{
    return w->what == what && w->calls == w->at;
}

static int32_t liar_reset(void *user, int64_t lane, uint64_t seed, float *floats, int32_t *ids)
{
    liar *w = user;
    w->calls += w->what == LIE_RESET;
    int32_t code = w->of.reset(&w->noise, lane, seed, floats, ids);
    return lies(w, LIE_RESET) ? -3 : code;
}

static int32_t liar_step(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                         int32_t *ids, float *reward, uint8_t *end)
{
    liar *w = user;
    w->calls += w->what != LIE_RESET;
    int32_t code = w->of.step(&w->noise, first, count, actions, floats, ids, reward, end);
    if (lies(w, LIE_REWARD)) reward[w->place % LANES] = w->bad;
    if (lies(w, LIE_FLOATS)) floats[w->place] = w->bad, end[w->place / 13] = EXPHIL_GOES_ON;
    if (lies(w, LIE_IDS))
        ids[w->place % (2 * LANES)] = w->id, end[w->place % (2 * LANES) / 2] = EXPHIL_GOES_ON;
    if (lies(w, LIE_END)) end[w->place % LANES] = (uint8_t)w->id;
    return lies(w, LIE_STEP) ? 77 : code;
}

static exphil_world liar_world(liar *w)
{
    w->of = noise_world(&w->noise, LANES);
    exphil_world world = w->of;
    world.user = w;
    world.reset = liar_reset;
    world.step = liar_step;
    return world;
}

static learn_plan plan_of(int32_t delay)
{
    learn_plan p = learn_plan_of("gru");
    p.model.hidden = 8;
    p.model.delay_frames = delay;
    p.model.neutral_start = 1;
    p.lanes = LANES;
    p.time = 5;
    return p;
}

static exphil_rollout *another(const learn_run *r, const learn_plan *p)
{
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config config = EXPHIL_ROLLOUT_CONFIG_INIT;
    exphil_rollout *rollout = NULL;
    session.streams = p->lanes;
    session.seed = 5;
    config.time = p->time;
    config.seed = 6;
    assert_ok(exphil_rollout_create(r->model, &session, &config, &rollout, NULL));
    return rollout;
}

/* Weights after CHUNKS chunks of a world that does not lie. */
static uint64_t go_on(learn_run *r)
{
    noise n = {.fail_at = 0};
    const exphil_world world = noise_world(&n, LANES);
    for (int i = 0; i < CHUNKS; i++) learn_chunk(r, &world);
    return learn_weights(r);
}

static uint64_t undisturbed(const learn_plan *p)
{
    learn_run r = learn_begin(p);
    uint64_t weights = go_on(&r);
    learn_end(&r);
    return weights;
}

/* Whatever is asked of a rollout whose world has failed: it says so, and does nothing. */
static void is_done_with(learn_run *r, const exphil_world *world)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    float floats[13 * LANES] = {0}, reward[LANES] = {0};
    int32_t ids[2 * LANES] = {0}, actions[3 * LANES];
    uint8_t ends[LANES] = {0};
    size_t bytes = exphil_rollout_block_size(r->rollout);
    unsigned char *block = calloc(1, bytes);
    assert_non_null(block);
    const exphil_status found[] = {exphil_rollout_run(r->rollout, world, &error),
                                   exphil_rollout_step(r->rollout, floats, ids, actions),
                                   exphil_rollout_reward(r->rollout, reward, ends, floats, ids),
                                   exphil_rollout_adopt(r->rollout, NULL, &error),
                                   exphil_rollout_block_save(r->rollout, block, bytes, &error),
                                   exphil_rollout_block_take(r->rollout, 0, 0, block, bytes, &error),
                                   exphil_learner_save(r->learner, r->rollout, NULL, test_path("no"), &error),
                                   exphil_learner_update(r->learner, r->rollout, NULL, &error)};
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        if (found[i] != EXPHIL_E_STATE) fail_msg("call %zu gave %d", i, found[i]);
    assert_says(&error, "its world has failed before");
    free(block);
}

/* One lie, at every call until it has no place any more in CHUNKS chunks; one place in `every`. */
static void tell(liar like, int32_t delay, int64_t places, exphil_status expected, const char *words)
{
    learn_plan p = plan_of(delay);
    const uint64_t straight = undisturbed(&p);
    learn_run r = learn_begin(&p);
    const uint64_t before = learn_weights(&r);
    int told = 0;
    bool told_any = true;
    for (int32_t at = 1; told_any; at++) {
        liar w = like;
        exphil_error error = EXPHIL_ERROR_INIT;
        exphil_optimizer_info info = EXPHIL_OPTIMIZER_INFO_INIT;
        const exphil_world world = liar_world(&w);
        w.at = at;
        w.place = (5 * at + 3) % places;
        exphil_rollout_destroy(r.rollout);
        r.rollout = another(&r, &p);
        exphil_status status = EXPHIL_OK;
        for (int i = 0; status >= 0 && i < CHUNKS; i++) {
            status = exphil_rollout_run(r.rollout, &world, &error);
            if (status >= 0 && i + 1 < CHUNKS) assert_ok(exphil_rollout_adopt(r.rollout, NULL, NULL));
        }
        told_any = w.calls >= at && status < 0;
        if (!told_any) break;
        told++;
        if (status != expected) fail_msg("lie %d at %d: %d, %s", w.what, at, status, error.message);
        assert_says(&error, words);
        is_done_with(&r, &world);
        assert_true(learn_weights(&r) == before);
        assert_ok(exphil_optimizer_query(r.optimizer, &info, NULL));
        assert_int_equal(info.updates, 0);
    }
    /* the last chunk's last row is shown to nobody; every other moment was one */
    assert_true(told >= CHUNKS * 5 - 1);
    exphil_rollout_destroy(r.rollout);
    r.rollout = another(&r, &p);
    assert_true(go_on(&r) == straight);
    learn_end(&r);
}

static void rewards(void **unused)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int32_t delay = 0; delay < 3; delay++)
        tell((liar){.what = LIE_REWARD, .bad = bad[delay]}, delay, LANES, EXPHIL_E_NUMERIC,
             "] is not finite");
}

static void rows(void **unused)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    static const int32_t id[] = {-1, 7, INT32_MAX};
    for (int32_t delay = 0; delay < 3; delay++) {
        tell((liar){.what = LIE_FLOATS, .bad = bad[delay]}, delay, 13 * LANES, EXPHIL_E_NUMERIC, "floats");
        tell((liar){.what = LIE_IDS, .id = id[delay]}, delay, 2 * LANES, EXPHIL_E_INVALID, "ids");
    }
}

static void ends(void **unused)
{
    static const int32_t end[] = {3, 7, 255};
    for (int32_t delay = 0; delay < 3; delay++)
        tell((liar){.what = LIE_END, .id = end[delay]}, delay, LANES, EXPHIL_E_INVALID, "end[");
}

static void steps_that_fail(void **unused)
{
    for (int32_t delay = 0; delay < 3; delay++)
        tell((liar){.what = LIE_STEP}, delay, 1, EXPHIL_E_IO, "the world's step failed with 77");
}

/* At the first reset of each lane, and at those in the middle; also behind the last frame of a chunk, which is full then. */
static void resets_that_fail(void **unused)
{
    for (int32_t delay = 0; delay < 3; delay++)
        tell((liar){.what = LIE_RESET}, delay, 1, EXPHIL_E_IO, "the world's reset failed with -3");
}

/* A match is refused too, and leaves nothing behind. */
static exphil_world pong_of;
static int32_t pong_step(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                         int32_t *ids, float *reward, uint8_t *end)
{
    int32_t code = pong_of.step(user, first, count, actions, floats, ids, reward, end);
    end[0] = 9;
    return code;
}

static void a_match_is_refused(void **unused)
{
    test_memory memory;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_match_result result = EXPHIL_MATCH_RESULT_INIT;
    exphil_model *model = NULL;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    assert_ok(exphil_world_create(context, "pong-two", 2, &pong_of, NULL));
    exphil_world world = pong_of;
    world.step = pong_step;
    config.spec = world.spec;
    config.blocks = "mlp";
    config.hidden = 8;
    assert_ok(exphil_model_create(context, &config, &model, NULL));
    assert_int_equal(exphil_match(model, model, &world, NULL, &result, &error), EXPHIL_E_INVALID);
    assert_says(&error, "an end of 9");
    assert_int_equal(result.games, 0);
    exphil_model_destroy(model);
    exphil_world_destroy(&pong_of);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rewards),
        cmocka_unit_test(rows),
        cmocka_unit_test(ends),
        cmocka_unit_test(steps_that_fail),
        cmocka_unit_test(resets_that_fail),
        cmocka_unit_test(a_match_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
