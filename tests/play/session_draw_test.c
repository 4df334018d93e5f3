/* How sessions draw actions: as asked for each head, with hysteresis, with noise of the seed, the stream and the step. */
#include "play_case.h"

#include <math.h>

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* Checks one action against logits; comparisons that are too close to call are passed over. */
static void check_drawn(const float *logits, const float *noise, const exphil_head_play *play,
                        const int32_t *before, const int32_t *action)
{
    int first = 0;
    for (int h = 0; h < PLAY_HEADS; h++) {
        const exphil_head_spec *head = &model_case_spec.heads[h];
        double temperature = play[h].temperature > 0 ? (double)play[h].temperature : 1.0, score[8];
        int best = 0;
        for (int i = 0; i < head->count; i++) {
            double y = (double)logits[first + i], u = noise ? (double)noise[first + i] : 0.5;
            if (head->kind == EXPHIL_BERNOULLI) {
                double edge = u, p = sigmoid(y / temperature);
                if (play[h].deterministic) {
                    p = sigmoid(y);
                    edge = before[h] >> i & 1 ? (double)play[h].release : (double)play[h].press;
                    if (edge == 0.0) edge = 0.5;
                }
                if (fabs(p - edge) > 1e-5) assert_int_equal(action[h] >> i & 1, p > edge);
            } else {
                score[i] = play[h].deterministic ? y : y / temperature - log(-log(u));
                if (score[i] > score[best]) best = i;
            }
        }
        if (head->kind == EXPHIL_CATEGORICAL && score[best] - score[action[h]] > 1e-4)
            assert_int_equal(action[h], best);
        first += head->count;
    }
}

static void check_play_of(const char *blocks, const exphil_head_play play[PLAY_HEADS],
                          int32_t all_deterministic)
{
    enum { FRAMES = 300 };
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.heads = play;
    how.deliver = EXPHIL_DELIVER_DECIDED;
    how.deterministic = all_deterministic;
    play_pair p = play_pair_make(blocks, 1, how, how, FRAMES);
    int32_t before[PLAY_HEADS], action[PLAY_HEADS], changes = 0;
    float logits[PLAY_LOGITS];
    exphil_head_play effective[PLAY_HEADS];
    memcpy(effective, play, sizeof effective);
    for (int h = 0; h < PLAY_HEADS; h++) effective[h].deterministic |= all_deterministic;
    memcpy(before, play_neutral, sizeof before);
    for (int64_t t = 0; t < FRAMES; t++) {
        play_step(p.a, p.f, t, false, action);
        play_logits(p.a, p.f, logits);
        check_drawn(logits, p.f->noise + t * PLAY_LOGITS, effective, before, action);
        changes += memcmp(before, action, sizeof before) != 0;
        memcpy(before, action, sizeof before);
    }
    assert_true(changes > 5);
    play_pair_free(&p);
}

static void check_play(const exphil_head_play play[PLAY_HEADS], int32_t all_deterministic)
{
    check_play_of("mamba", play, all_deterministic);
    check_play_of("1:gru", play, all_deterministic);
    check_play_of("2:mlp", play, all_deterministic);
}

static void heads_are_drawn_as_asked(void **state)
{
    check_play((exphil_head_play[PLAY_HEADS]){{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}, 0);
    check_play((exphil_head_play[PLAY_HEADS]){{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}, 1);
    check_play((exphil_head_play[PLAY_HEADS]){{0.5f, 0, 0, 0}, {2.0f, 0, 0, 0}, {0.01f, 0, 0, 0}}, 0);
    check_play((exphil_head_play[PLAY_HEADS]){{0, 1, 0.55f, 0.45f}, {0, 0, 0, 0}, {0, 1, 0, 0}}, 0);
    check_play((exphil_head_play[PLAY_HEADS]){{0, 0, 0.9f, 0.1f}, {0, 1, 0, 0}, {3.0f, 0, 0, 0}}, 0);
}

/* A bit stays on between release and press: without hysteresis the two sessions would do the same. */
static void hysteresis_matters(void **state)
{
    const exphil_head_play wide[PLAY_HEADS] = {{0, 1, 0.62f, 0.38f}, {0, 1, 0, 0}, {0, 1, 0, 0}};
    exphil_session_config plain = EXPHIL_SESSION_CONFIG_INIT;
    plain.deterministic = 1;
    exphil_session_config held = plain;
    held.heads = wide;
    play_pair p = play_pair_make("ffn", 0, plain, held, 400);
    int changes[2] = {0}, last[2] = {0};
    for (int64_t t = 0; t < 400; t++) {
        int32_t action[2][PLAY_HEADS];
        play_step(p.a, p.f, t, true, action[0]);
        play_step(p.b, p.f, t, true, action[1]);
        for (int i = 0; i < 2; i++) {
            changes[i] += t && action[i][0] != last[i];
            last[i] = action[i][0];
        }
    }
    assert_true(changes[0] > 20);
    assert_true(changes[1] < changes[0]);
    play_pair_free(&p);
}

static void noise_is_a_function_of_the_seed(void **state)
{
    exphil_session_config one = EXPHIL_SESSION_CONFIG_INIT;
    one.seed = 1;
    one.streams = 3;
    exphil_session_config two = one;
    two.seed = 2;
    play_pair p = play_pair_make("mamba", 1, one, one, 40);
    assert_true(play_same_run(&p, 40, true));
    play_pair_free(&p);
    p = play_pair_make("mamba", 1, one, two, 40);
    assert_false(play_same_run(&p, 40, true));
    play_pair_free(&p);
    p = play_pair_make("mamba", 1, one, two, 40); /* the caller's noise: the seed does not matter */
    assert_true(play_same_run(&p, 40, false));
    play_pair_free(&p);
}

/* Streams of one session draw different numbers. */
static void streams_have_noise_of_their_own(void **state)
{
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = 2;
    play_pair p = play_pair_make("mlp", 0, how, how, 60);
    int differ = 0;
    for (int64_t t = 0; t < 60; t++) {
        float floats[2 * 13];
        int32_t ids[4], action[2 * PLAY_HEADS];
        for (int b = 0; b < 2; b++) {
            memcpy(floats + 13 * b, p.f->floats + t * 26, 13 * sizeof(float));
            memcpy(ids + 2 * b, p.f->ids + t * 4, 2 * sizeof(int32_t));
        }
        assert_ok(exphil_session_step_row(p.a, floats, ids, NULL, action));
        differ += memcmp(action, action + PLAY_HEADS, sizeof play_neutral) != 0;
    }
    assert_true(differ > 10);
    play_pair_free(&p);
}

/* A step with the caller's noise does not move the session's own; a reset neither. */
static void own_noise_goes_on(void **state)
{
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.seed = 77;
    play_pair p = play_pair_make("gru", 2, how, how, 20);
    int32_t a[PLAY_HEADS], b[PLAY_HEADS];
    for (int64_t t = 0; t < 5; t++) play_step(p.a, p.f, t, true, a);
    for (int64_t t = 0; t < 5; t++) play_step(p.b, p.f, t, true, b);
    for (int64_t t = 5; t < 9; t++) play_step(p.b, p.f, t, false, b);
    assert_ok(exphil_session_reset(p.a, 0));
    assert_ok(exphil_session_reset(p.b, -1));
    for (int64_t t = 9; t < 20; t++) {
        play_step(p.a, p.f, t, true, a);
        play_step(p.b, p.f, t, true, b);
        assert_memory_equal(a, b, sizeof a);
    }
    play_pair_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_drawn_as_asked),
        cmocka_unit_test(hysteresis_matters),
        cmocka_unit_test(noise_is_a_function_of_the_seed),
        cmocka_unit_test(streams_have_noise_of_their_own),
        cmocka_unit_test(own_noise_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
