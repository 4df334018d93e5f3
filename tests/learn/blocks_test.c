/* Chunks that were played in other processes: what is learnt from their blocks has the bits of what one process learns, with one
 * player and with several, with delays, resets, teachers and heads of both kinds. */
#include "block_case.h"

#include <stdlib.h>

enum { CHUNKS = 3 };

/* ---- the same bits --------------------------------------------------------------------------------------------------- */

static learn_plan plan_of(int k)
{
    static const char *const patterns[] = {"gru attention", "mamba", "lstm ffn", "mlp", "attention"};
    static const int32_t delays[] = {0, 3, 0, 18, 1};
    learn_plan p = learn_plan_of(patterns[k]);
    p.model.delay_frames = delays[k];
    p.model.neutral_start = 1;
    p.model.heads = k % 2;
    p.taught = k != 3;
    p.learner.to_teacher = k != 3 ? 0.1 : 0.0;
    p.learner.to_old = k % 2 ? 0.1 : 0.0;
    p.learner.most_kl = k == 2 ? 0.01 : 0.0;
    for (int h = 0; h < 3; h++) p.play[h].temperature = k > 1 ? 0.6f + 0.5f * (float)h : 0.0f;
    return p;
}

static void one_player_is_one_process(void **unused)
{
    for (int k = 0; k < 5; k++) {
        learn_plan p = plan_of(k);
        noise here = {.fail_at = 0}, there = {.fail_at = 0};
        learn_run one = learn_begin(&p), player = learn_begin(&p);
        p.threads = 2;
        learn_run learner = learn_begin(&p);
        const exphil_world world = noise_world(&here, p.lanes), far = noise_world(&there, p.lanes);
        int64_t episodes = 0;
        for (int i = 0; i < CHUNKS; i++) {
            exphil_learner_metrics m = learn_chunk(&one, &world), again;
            assert_ok(exphil_rollout_run(player.rollout, &far, NULL));
            assert_int_equal(block_give(&player, &learner, 0), EXPHIL_END);
            again = block_learn(&learner);
            assert_memory_equal(&again, &m, sizeof m);
            assert_true(learn_weights(&learner) == learn_weights(&one));
            block_return(&learner, &player);
            episodes += m.episodes;
        }
        assert_true(episodes > 2);
        assert_memory_equal(here.rng, there.rng, sizeof here.rng);
        learn_end(&one);
        learn_end(&player);
        learn_end(&learner);
    }
}

/* The next frame of streams first .. first + count - 1, whoever plays them. Now and then somebody else decides. */
static exphil_status play_frame(learn_run *r, noise *n, int64_t first, int64_t count)
{
    float floats[13 * NOISE_LANES], reward[NOISE_LANES];
    int32_t ids[2 * NOISE_LANES], actions[3 * NOISE_LANES];
    uint8_t ends[NOISE_LANES];
    static const int32_t other[] = {5, 1, 3};
    for (int64_t b = 0; b < count; b++) noise_row(n, first + b, floats + 13 * b, ids + 2 * b);
    assert_ok(exphil_rollout_step(r->rollout, floats, ids, actions));
    for (int64_t b = 0; b < count; b++) {
        xph_rng *rng = &n->rng[first + b];
        if ((n->frames + first + b) % 5 == 1)
            assert_ok(exphil_session_override(exphil_rollout_session(r->rollout), b, other));
        reward[b] = (float)(actions[3 * b + 1] == 2) + (float)xph_rng_double(rng);
        ends[b] = xph_rng_below(rng, 7) ? EXPHIL_GOES_ON : (uint8_t)(1 + xph_rng_below(rng, 2));
        noise_row(n, first + b, floats + 13 * b, ids + 2 * b);
    }
    n->frames++;
    return exphil_rollout_reward(r->rollout, reward, ends, floats, ids);
}

static void play_chunk(learn_run *r, noise *n, int64_t first, int64_t count)
{
    exphil_status status = EXPHIL_OK;
    while (status == EXPHIL_OK) status = play_frame(r, n, first, count);
    assert_int_equal(status, EXPHIL_END);
}

static noise noise_begin(void)
{
    noise n = {.fail_at = 0};
    for (int i = 0; i < NOISE_LANES; i++)
        n.rng[i] = (xph_rng){.seed = (uint64_t)i + 1, .stream = XPH_RNG_TEST};
    return n;
}

/* Streams of a player draw as streams first, first + 1, ... of one process. */
static void draw_as(learn_run *r, int64_t first)
{
    const exphil_session *session = exphil_rollout_session(r->rollout);
    for (int64_t b = 0; b < session->streams; b++)
        xph_play_at(session, b)->rng.stream = XPH_RNG_SAMPLE | (uint64_t)(first + b) << 8;
}

static void check_players(int32_t delay)
{
    static const int64_t first[] = {0, 3, 5}, count[] = {3, 2, 1};
    learn_plan p = learn_plan_of("gru attention mlp");
    p.model.delay_frames = delay;
    p.model.neutral_start = 1;
    p.taught = true;
    p.learner.to_teacher = 0.1;
    noise here = noise_begin(), there[3] = {noise_begin(), noise_begin(), noise_begin()};
    learn_run one = learn_begin(&p), learner = learn_begin(&p), player[3];
    for (int k = 0; k < 3; k++) {
        p.lanes = count[k];
        player[k] = learn_begin(&p);
        draw_as(&player[k], first[k]);
    }
    for (int i = 0; i < CHUNKS; i++) {
        play_chunk(&one, &here, 0, 6);
        for (int k = 0; k < 3; k++) play_chunk(&player[k], &there[k], first[k], count[k]);
        for (int k = 2; k >= 0; k--)
            assert_int_equal(block_give(&player[k], &learner, first[k]), k ? EXPHIL_OK : EXPHIL_END);
        exphil_learner_metrics m = block_learn(&one), again = block_learn(&learner);
        assert_memory_equal(&again, &m, sizeof m);
        assert_true(m.recomputed == 0.0 && m.episodes > 0 && m.rows < 6 * p.time);
        assert_true(learn_weights(&learner) == learn_weights(&one));
        for (int k = 0; k < 3; k++) block_return(&learner, &player[k]);
    }
    learn_end(&one);
    learn_end(&learner);
    for (int k = 0; k < 3; k++) learn_end(&player[k]);
}

static void several_players_are_one_process(void **unused)
{
    check_players(0);
    check_players(2);
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------- */

/* The same chunk, the same bytes, at any address; a block says whose it is. */
static void a_block_says_what_it_is(void **unused)
{
    learn_plan p = learn_plan_of("gru");
    p.model.delay_frames = 2;
    noise n = {.fail_at = 0};
    exphil_block_info info = EXPHIL_BLOCK_INFO_INIT;
    exphil_model_info model = EXPHIL_MODEL_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    learn_run player = learn_begin(&p), learner = learn_begin(&p);
    const exphil_world world = noise_world(&n, p.lanes);
    assert_ok(exphil_rollout_run(player.rollout, &world, NULL));
    size_t bytes, again;
    unsigned char *block = block_of(&player, &bytes), *other = block_of(&player, &again);
    assert_true(bytes == again);
    assert_memory_equal(block, other, bytes);
    assert_ok(exphil_block_query(block, bytes, &info, NULL));
    assert_ok(exphil_model_query(player.model, &model, NULL));
    assert_true(info.streams == 6 && info.time == 11 && info.delay_frames == 2 && !info.reserved);
    assert_true(info.spec_hash == exphil_spec_hash(&model_case_spec));
    assert_true(info.weights_hash == model.weights_hash);
    for (size_t shift = 1; shift < 8; shift += 2) {
        unsigned char *odd = malloc(bytes + shift);
        assert_non_null(odd);
        memcpy(odd + shift, block, bytes);
        assert_int_equal(
            exphil_rollout_block_take(learner.rollout, 0, EXPHIL_BLOCK_CURRENT, odd + shift, bytes, &error),
            EXPHIL_END);
        unsigned char *kept = block_of(&learner, &again); /* what was taken can be given on */
        assert_memory_equal(kept, block, bytes);
        free(kept);
        free(odd);
        assert_ok(exphil_rollout_adopt(learner.rollout, NULL, NULL));
    }
    free(block);
    free(other);
    learn_end(&player);
    learn_end(&learner);
}

/* A player that does not wait: refused, or taken and told. */
static void older_weights_are_told(void **unused)
{
    learn_plan p = learn_plan_of("gru");
    noise n = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_block_info info = EXPHIL_BLOCK_INFO_INIT;
    learn_run player = learn_begin(&p), learner = learn_begin(&p);
    const exphil_world world = noise_world(&n, p.lanes);
    for (int i = 0; i < CHUNKS; i++) {
        size_t bytes;
        uint64_t before = learn_weights(&learner);
        assert_ok(exphil_rollout_run(player.rollout, &world, NULL));
        unsigned char *block = block_of(&player, &bytes);
        assert_ok(exphil_rollout_adopt(player.rollout, NULL, NULL));
        assert_ok(exphil_block_query(block, bytes, &info, NULL));
        assert_true((info.weights_hash == before) == (i == 0));
        exphil_status status =
            exphil_rollout_block_take(learner.rollout, 0, EXPHIL_BLOCK_CURRENT, block, bytes, &error);
        assert_int_equal(status, i ? EXPHIL_E_MISMATCH : EXPHIL_END);
        if (i) {
            assert_says(&error, "played by weights");
            assert_int_equal(
                exphil_rollout_block_take(learner.rollout, 0, EXPHIL_BLOCK_ANY, block, bytes, &error),
                EXPHIL_END);
        }
        exphil_learner_metrics m = block_learn(&learner);
        assert_true(i ? m.recomputed > 1e-6 : m.recomputed == 0.0);
        assert_true(learn_weights(&learner) != before);
        free(block);
    }
    learn_end(&player);
    learn_end(&learner);
}

/* ---- order of calls -------------------------------------------------------------------------------------------------- */

/* Of six streams, of which the last three are there. */
static void refuse_places(exphil_rollout *rollout, const void *block, size_t bytes)
{
    static const struct {
        int64_t first;
        int32_t weights;
        exphil_status status;
    } wrong[] = {{1, 0, EXPHIL_E_STATE},
                 {4, 0, EXPHIL_E_MISMATCH},
                 {-1, 0, EXPHIL_E_INVALID},
                 {6, 0, EXPHIL_E_INVALID},
                 {0, 2, EXPHIL_E_INVALID}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(
            exphil_rollout_block_take(rollout, wrong[i].first, wrong[i].weights, block, bytes, NULL),
            wrong[i].status);
}

/* While blocks come nothing is played, and nothing of the session's own play has changed when they were given up. */
static void chunks_are_of_blocks_or_of_play(void **unused)
{
    learn_plan p = learn_plan_of("gru attention");
    p.model.delay_frames = 1;
    noise one = {.fail_at = 0}, two = {.fail_at = 0}, far = {.fail_at = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    float floats[13 * 6] = {0}, reward[6] = {0};
    int32_t ids[2 * 6] = {0}, actions[3 * 6];
    uint8_t ends[6] = {0};
    learn_run learner = learn_begin(&p), plain = learn_begin(&p);
    const exphil_world world = noise_world(&one, 6), same = noise_world(&two, 6);
    p.lanes = 3;
    p.seed = 77;
    learn_run player = learn_begin(&p);
    const exphil_world half = noise_world(&far, 3);
    for (int i = 0; i < CHUNKS; i++) {
        size_t bytes, again;
        assert_int_equal(exphil_rollout_block_save(player.rollout, floats, 1, &error), EXPHIL_E_STATE);
        assert_ok(exphil_rollout_run(player.rollout, &half, NULL));
        assert_int_equal(block_give(&player, &learner, 3), EXPHIL_OK);
        unsigned char *block = block_of(&player, &bytes);
        assert_int_equal(exphil_rollout_block_take(learner.rollout, 3, 0, block, bytes, &error),
                         EXPHIL_E_STATE);
        assert_says(&error, "stream 3 of this chunk is there already");
        refuse_places(learner.rollout, block, bytes);
        assert_int_equal(exphil_rollout_block_save(player.rollout, block, bytes - 1, &error),
                         EXPHIL_E_INVALID);
        assert_int_equal(exphil_rollout_step(learner.rollout, floats, ids, actions), EXPHIL_E_STATE);
        assert_int_equal(exphil_rollout_reward(learner.rollout, reward, ends, floats, ids), EXPHIL_E_STATE);
        assert_int_equal(exphil_rollout_run(learner.rollout, &world, &error), EXPHIL_E_STATE);
        assert_says(&error, "3 of its streams came as blocks");
        assert_int_equal(exphil_learner_update(learner.learner, learner.rollout, NULL, &error),
                         EXPHIL_E_STATE);
        assert_says(&error, "3 of 6 streams");
        assert_int_equal(exphil_learner_save(learner.learner, learner.rollout, NULL, test_path("x"), &error),
                         EXPHIL_E_STATE);
        assert_ok(exphil_rollout_adopt(learner.rollout, NULL, NULL));
        assert_ok(exphil_rollout_adopt(player.rollout, NULL, NULL));
        assert_ok(exphil_rollout_run(learner.rollout, &world, NULL));
        assert_ok(exphil_rollout_run(plain.rollout, &same, NULL));
        assert_int_equal(exphil_rollout_block_take(learner.rollout, 3, 0, block, bytes, &error),
                         EXPHIL_E_STATE);
        free(block);
        unsigned char *played = block_of(&learner, &bytes), *expected = block_of(&plain, &again);
        assert_memory_equal(played, expected, bytes);
        free(played);
        free(expected);
        assert_ok(exphil_rollout_adopt(learner.rollout, NULL, NULL));
        assert_ok(exphil_rollout_adopt(plain.rollout, NULL, NULL));
    }
    learn_end(&learner);
    learner = learn_begin(&p);
    assert_ok(exphil_rollout_step(learner.rollout, floats, ids, actions));
    assert_int_equal(exphil_rollout_adopt(learner.rollout, NULL, &error), EXPHIL_E_STATE);
    assert_says(&error, "under way");
    learn_end(&learner);
    learn_end(&plain);
    learn_end(&player);
}

/* A learner of blocks goes on from its checkpoint to the last bit. */
static void a_learner_of_blocks_is_resumed(void **unused)
{
    learn_plan p = learn_plan_of("lstm");
    noise n = {.fail_at = 0};
    unsigned char *block[CHUNKS];
    size_t bytes;
    const char *path = test_path("learner");
    learn_run player = learn_begin(&p), learner = learn_begin(&p);
    const exphil_world world = noise_world(&n, p.lanes);
    for (int i = 0; i < CHUNKS; i++) {
        assert_ok(exphil_rollout_run(player.rollout, &world, NULL));
        block[i] = block_of(&player, &bytes);
        assert_int_equal(block_give(&player, &learner, 0), EXPHIL_END);
        block_learn(&learner);
        if (i == 0) assert_ok(exphil_learner_save(learner.learner, learner.rollout, NULL, path, NULL));
        block_return(&learner, &player);
    }
    learn_run again = learn_begin(&p);
    assert_ok(exphil_learner_resume(again.learner, again.rollout, NULL, path, NULL));
    for (int i = 1; i < CHUNKS; i++) {
        assert_int_equal(
            exphil_rollout_block_take(again.rollout, 0, EXPHIL_BLOCK_CURRENT, block[i], bytes, NULL),
            EXPHIL_END);
        block_learn(&again);
    }
    assert_true(learn_weights(&again) == learn_weights(&learner));
    for (int i = 0; i < CHUNKS; i++) free(block[i]);
    learn_end(&again);
    learn_end(&learner);
    learn_end(&player);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_player_is_one_process),       cmocka_unit_test(several_players_are_one_process),
        cmocka_unit_test(a_block_says_what_it_is),         cmocka_unit_test(older_weights_are_told),
        cmocka_unit_test(chunks_are_of_blocks_or_of_play), cmocka_unit_test(a_learner_of_blocks_is_resumed),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
