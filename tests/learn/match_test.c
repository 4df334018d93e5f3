/* Matches and worlds with opponents: who is better wins, seats and lanes make no difference, chance is common; what was saved
 * goes on; what is wrong is refused. */
#include "learn_case.h"

#include <exphil/match.h>

#include <math.h>
#include <stdlib.h>

/* ---- a game whose outcome is known -------------------------------------------------------------------------------------- */

/* Each frame both seats name a class of one head; who names the larger has a point, in frame 30 it ends. A row shows the seat
 * and the frame. The first seat has an edge: of equal classes it has the point in every fourth frame. */
enum { ENDS = 30, LANES_MOST = 16 };
typedef struct duel {
    int32_t frame[LANES_MOST];
    uint64_t seed[LANES_MOST];
    int resets;
    int32_t code; /* that step fails with */
} duel;

static const exphil_head_spec pick[] = {{"pick", EXPHIL_CATEGORICAL, 4, 0, 0}};
static const exphil_spec duel_spec = {.struct_size = sizeof duel_spec,
                                      .layout = "duel",
                                      .codec = "pick",
                                      .layout_hash = 77,
                                      .float_count = 3,
                                      .head_count = 1,
                                      .heads = pick};

static void duel_row(const duel *d, int64_t lane, float *floats)
{
    for (int seat = 0; seat < 2; seat++) {
        floats[3 * seat] = seat ? 1.0f : -1.0f;
        floats[3 * seat + 1] = (float)d->frame[lane] / (float)ENDS;
        floats[3 * seat + 2] = (float)(d->seed[lane] % 1000) / 1000.0f;
    }
}

static int32_t duel_reset(void *user, int64_t lane, uint64_t seed, float *floats, int32_t *ids)
{
    duel *d = user;
    d->frame[lane] = 0;
    d->seed[lane] = seed;
    d->resets++;
    duel_row(d, lane, floats);
    return 0;
}

static int32_t duel_step(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                         int32_t *ids, float *reward, uint8_t *end)
{
    duel *d = user;
    for (int64_t i = 0; i < count; i++) {
        int32_t left = actions[2 * i], right = actions[2 * i + 1];
        d->frame[first + i]++;
        float edge = d->frame[first + i] % 4 == 0 ? 1.0f : 0.0f;
        reward[2 * i] = left > right ? 1.0f : left < right ? -1.0f : edge;
        reward[2 * i + 1] = -reward[2 * i];
        end[i] = d->frame[first + i] == ENDS ? EXPHIL_OVER : EXPHIL_GOES_ON;
        duel_row(d, first + i, floats + 6 * i);
    }
    return d->code;
}

static int32_t duel_save(void *user, int64_t lane, void *state)
{
    const duel *d = user;
    memcpy(state, &d->frame[lane], 4);
    memcpy((unsigned char *)state + 4, &d->seed[lane], 8);
    return 0;
}

static int32_t duel_load(void *user, int64_t lane, const void *state)
{
    duel *d = user;
    memcpy(&d->frame[lane], state, 4);
    memcpy(&d->seed[lane], (const unsigned char *)state + 4, 8);
    return 0;
}

static exphil_world duel_world(duel *d, int64_t lanes)
{
    return (exphil_world){.struct_size = sizeof(exphil_world),
                          .user = d,
                          .spec = &duel_spec,
                          .lanes = lanes,
                          .seats = 2,
                          .state_bytes = 12,
                          .reset = duel_reset,
                          .step = duel_step,
                          .save = duel_save,
                          .load = duel_load};
}

/* A policy that prefers a class by so much. */
static exphil_model *policy(exphil_context *context, int32_t class, float by)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    float bias[4] = {0};
    config.spec = &duel_spec;
    config.blocks = "gru";
    config.hidden = config.head_width = 8;
    config.no_previous_action = 1;
    config.neutral_start = 1;
    config.value = EXPHIL_VALUE_SHARED;
    config.seed = (uint64_t) class;
    if (exphil_model_create(context, &config, &model, &error) < 0) fail_msg("%s", error.message);
    bias[class] = by;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_model_query(model, &info, NULL));
    for (int64_t i = 0, found = 0; i < info.tensor_count; i++) {
        exphil_tensor_info tensor = EXPHIL_TENSOR_INFO_INIT;
        assert_ok(exphil_model_tensor_info(model, i, &tensor, NULL));
        if (tensor.size_bytes != sizeof bias || found++) continue;
        if (exphil_model_tensor_set(model, tensor.name, bias, sizeof bias, &error) < 0)
            fail_msg("%s", error.message);
    }
    return model;
}

static exphil_match_result play(const exphil_model *a, const exphil_model *b, int64_t lanes,
                                const exphil_match_config *config)
{
    duel d = {.resets = 0};
    exphil_match_result result = EXPHIL_MATCH_RESULT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    const exphil_world world = duel_world(&d, lanes);
    if (exphil_match(a, b, &world, config, &result, &error) < 0) fail_msg("%s", error.message);
    assert_int_equal(result.won + result.lost + result.drawn, result.games);
    assert_true(result.low <= result.score && result.score <= result.high);
    return result;
}

/* ---- tests ---------------------------------------------------------------------------------------------------------------- */

static void the_better_one_wins(void **unused)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_model *weak = policy(context, 0, 8.0f), *strong = policy(context, 3, 8.0f);
    exphil_match_config config = EXPHIL_MATCH_CONFIG_INIT;
    config.games = 20;
    exphil_match_result r = play(strong, weak, 4, &config);
    assert_true(r.won == 20 && r.score == 1.0 && r.low == 1.0 && r.high == 1.0);
    assert_true(r.points >= 20 * 11 && r.frames >= 20 * 11 && r.frames < 20 * 20);
    r = play(weak, strong, 4, &config);
    assert_true(r.lost == 20 && r.score == 0.0);
    config.points = -1.0; /* to the end */
    r = play(strong, weak, 4, &config);
    assert_true(r.won == 20 && r.frames == 20.0 * (double)ENDS);
    config.most_frames = 5;
    r = play(strong, weak, 4, &config);
    assert_true(r.won == 20 && r.frames == 20.0 * 5);
    /* against itself both games of a start are one: a score of exactly a half, whatever a seat is worth */
    config = (exphil_match_config)EXPHIL_MATCH_CONFIG_INIT;
    r = play(weak, weak, 8, &config);
    assert_true(r.games == 200 && r.score == 0.5 && r.low == 0.5 && r.high == 0.5 && r.won == r.lost);
    config.deterministic = 1;
    r = play(weak, weak, 8, &config);
    assert_true(r.score == 0.5 && r.won == 100);
    exphil_model_destroy(weak);
    exphil_model_destroy(strong);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

static void lanes_and_threads_make_no_difference(void **unused)
{
    static const int64_t lanes[] = {1, 3, 16, 7};
    exphil_match_config config = EXPHIL_MATCH_CONFIG_INIT;
    exphil_match_result first = EXPHIL_MATCH_RESULT_INIT;
    config.games = 34;
    config.seed = 5;
    for (int i = 0; i < 4; i++) {
        exphil_context *context = test_context(NULL, NULL, i == 3 ? 4 : 1);
        exphil_model *a = policy(context, 1, 0.4f), *b = policy(context, 2, 0.6f);
        exphil_match_result r = play(a, b, lanes[i], &config);
        if (i == 0) first = r;
        assert_memory_equal(&r, &first, sizeof r);
        assert_true(r.low < r.high && r.score < 0.6 && r.won > 0 && r.lost > 0);
        exphil_model_destroy(a);
        exphil_model_destroy(b);
        exphil_context_destroy(context);
    }
}

static void a_match_that_cannot_be_is_refused(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model *a = policy(context, 1, 0.4f);
    exphil_model_config other_config = model_case_config("gru", EXPHIL_TYPE_F32);
    exphil_model *other = model_case_create(context, &other_config);
    exphil_match_config config = EXPHIL_MATCH_CONFIG_INIT;
    exphil_match_result r = EXPHIL_MATCH_RESULT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    duel d = {.resets = 0};
    exphil_world world = duel_world(&d, 4), one = world;
    assert_int_equal(exphil_match(a, NULL, &world, NULL, &r, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_match(a, other, &world, NULL, &r, &error), EXPHIL_E_MISMATCH);
    assert_non_null(strstr(error.message, "model b"));
    config.games = 3;
    assert_int_equal(exphil_match(a, a, &world, &config, &r, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "games"));
    config.games = 4;
    config.points = (double)NAN;
    assert_int_equal(exphil_match(a, a, &world, &config, &r, &error), EXPHIL_E_INVALID);
    one.seats = 1;
    assert_int_equal(exphil_match(a, a, &one, NULL, &r, &error), EXPHIL_E_INVALID);
    d.code = 6;
    assert_int_equal(exphil_match(a, a, &world, NULL, &r, &error), EXPHIL_E_IO);
    assert_non_null(strstr(error.message, "step failed with 6"));
    assert_int_equal(r.games, 0);
    exphil_model_destroy(a);
    exphil_model_destroy(other);
    exphil_context_destroy(context);
}

/* A run against others, learns to beat the weak ones; records say how often. */
static void opponents_play_the_other_seat(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model *const opponents[] = {policy(context, 0, 9.0f), policy(context, 3, 9.0f)};
    const exphil_model *const list[] = {opponents[0], opponents[1]};
    exphil_model *mine = policy(context, 1, 9.0f);
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config how = EXPHIL_ROLLOUT_CONFIG_INIT;
    exphil_rollout *rollout = NULL;
    exphil_record record = EXPHIL_RECORD_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_world against = {0};
    duel d = {.resets = 0};
    const exphil_world world = duel_world(&d, 8);
    assert_ok(exphil_world_against(context, &world, list, 2, 9, &against, &error));
    assert_true(against.seats == 1 && against.lanes == 8 && against.state_bytes > 12);
    session.streams = 8;
    how.time = 4 * ENDS;
    assert_ok(exphil_rollout_create(mine, &session, &how, &rollout, &error));
    if (exphil_rollout_run(rollout, &against, &error) < 0) fail_msg("%s", error.message);
    assert_ok(exphil_world_opponent(&against, 0, NULL, &record, &error));
    assert_true(record.episodes == 16 && record.won == 16);
    assert_ok(exphil_world_opponent(&against, 1, opponents[0], &record, &error));
    assert_true(record.episodes == 16 && record.lost == 16);
    assert_ok(exphil_world_opponent(&against, 1, NULL, &record, &error));
    assert_int_equal(record.episodes, 0);
    xph_rollout_next(rollout);
    assert_ok(exphil_rollout_run(rollout, &against, &error));
    assert_ok(exphil_world_opponent(&against, 1, NULL, &record, &error));
    assert_true(record.episodes == 16 && record.won == 16); /* the strong one went */
    assert_int_equal(exphil_world_opponent(&against, 2, NULL, &record, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_world_opponent(&world, 0, NULL, &record, &error), EXPHIL_E_INVALID);
    assert_int_equal(against.step(against.user, 0, 3, NULL, NULL, NULL, NULL, NULL), 1);
    exphil_world none = {0};
    assert_int_equal(exphil_world_against(context, &world, list, 9, 0, &none, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_world_against(context, &against, list, 1, 0, &none, &error), EXPHIL_E_INVALID);
    exphil_rollout_destroy(rollout);
    exphil_world_destroy(&against);
    exphil_model_destroy(mine);
    for (int i = 0; i < 2; i++) exphil_model_destroy(opponents[i]);
    exphil_context_destroy(context);
}

/* A lane that is saved goes on as it went on, on another world too: game, opponent, rows. */
static void a_game_with_an_opponent_can_be_saved(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    const exphil_model *const list[] = {policy(context, 0, 0.3f), policy(context, 2, 0.3f)};
    duel d[2] = {{.resets = 0}, {.resets = 0}};
    const exphil_world world[2] = {duel_world(&d[0], 4), duel_world(&d[1], 4)};
    exphil_world against[2] = {{0}, {0}};
    float floats[2][12], reward[2][4];
    int32_t ids[1], actions[4] = {1, 2, 3, 0};
    uint8_t end[4];
    for (int i = 0; i < 2; i++) {
        assert_ok(exphil_world_against(context, &world[i], list, 2, 9, &against[i], NULL));
        for (int lane = 0; lane < 4; lane++)
            assert_int_equal(
                against[i].reset(against[i].user, lane, (uint64_t)(i + lane), floats[i] + 3 * lane, ids), 0);
    }
    for (int t = 0; t < 7; t++)
        assert_int_equal(against[0].step(against[0].user, 0, 4, actions, floats[0], ids, reward[0], end), 0);
    void *state = malloc(against[0].state_bytes);
    for (int lane = 0; lane < 4; lane++) {
        assert_int_equal(against[0].save(against[0].user, lane, state), 0);
        assert_int_equal(against[1].load(against[1].user, lane, state), 0);
    }
    for (int t = 0; t < 12; t++) {
        for (int i = 0; i < 2; i++)
            assert_int_equal(against[i].step(against[i].user, 0, 4, actions, floats[i], ids, reward[i], end),
                             0);
        assert_memory_equal(floats[0], floats[1], sizeof floats[0]);
        assert_memory_equal(reward[0], reward[1], sizeof reward[0]);
    }
    free(state);
    for (int i = 0; i < 2; i++) {
        exphil_world_destroy(&against[i]);
        exphil_model_destroy((exphil_model *)(uintptr_t)list[i]);
    }
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_better_one_wins),
        cmocka_unit_test(lanes_and_threads_make_no_difference),
        cmocka_unit_test(a_match_that_cannot_be_is_refused),
        cmocka_unit_test(opponents_play_the_other_seat),
        cmocka_unit_test(a_game_with_an_opponent_can_be_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
