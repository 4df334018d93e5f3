/* What a host puts in the policy's place is imitated: the rows that it says, no others, weighed as it says, with delays, burn-in
 * and through blocks; and a policy comes to do what it is shown. */
#include "block_case.h"

#include <math.h>
#include <stdlib.h>

enum { LANES = 2 };

static learn_plan plan_of(int32_t delay)
{
    learn_plan p = learn_plan_of("gru");
    p.lanes = LANES;
    p.time = 12;
    p.learner.batches = 1;
    p.learner.epochs = 1;
    p.learner.imitation = 0.5;
    p.model.delay_frames = delay;
    p.model.neutral_start = 1;
    return p;
}

static const int32_t shown[3] = {5, 1, 3};

typedef bool overrides(int t, int b);
static bool never(int t, int b)
{
    return false;
}
static bool always(int t, int b)
{
    return true;
}
static bool of_one(int t, int b)
{
    return b == 1 && t % 4 == 1;
}

/* A chunk by hand; late: overrides come behind the reward of their row, so that the last is behind that of the chunk. */
static void play(learn_run *r, noise *n, overrides *when, bool late)
{
    exphil_session *session = exphil_rollout_session(r->rollout);
    const int lanes = (int)r->rollout->streams;
    exphil_status status = EXPHIL_OK;
    for (int t = 0; status == EXPHIL_OK; t++) {
        float floats[13 * LANES], reward[LANES] = {1.0f, 0.5f};
        int32_t ids[2 * LANES], actions[3 * LANES];
        uint8_t ends[LANES] = {EXPHIL_GOES_ON, EXPHIL_GOES_ON};
        for (int b = 0; b < lanes; b++) noise_row(n, b, floats + 13 * b, ids + 2 * b);
        assert_ok(exphil_rollout_step(r->rollout, floats, ids, actions));
        for (int after = 0; after < 2; after++) {
            for (int b = 0; b < lanes && after == late; b++)
                if (when(t, b)) assert_ok(exphil_session_override(session, b, shown));
            if (after == 0) status = exphil_rollout_reward(r->rollout, reward, ends, floats, ids);
        }
    }
    assert_int_equal(status, EXPHIL_END);
}

static exphil_learner_metrics learn(const learn_plan *p, overrides *when, bool late, uint64_t *weights)
{
    noise n = {.fail_at = 0};
    learn_run r = learn_begin(p);
    play(&r, &n, when, late);
    exphil_learner_metrics m = block_learn(&r);
    if (weights) *weights = learn_weights(&r);
    learn_end(&r);
    return m;
}

static void rows_are_those_that_were_overridden(void **unused)
{
    for (int32_t delay = 0; delay < 3; delay++)
        for (int late = 0; late < 2; late++) {
            learn_plan p = plan_of(delay);
            exphil_learner_metrics m = learn(&p, of_one, late, NULL); /* rows 1, 5, 9; with a delay 13 too */
            assert_int_equal(m.imitated, 3);
            assert_int_equal(m.rows, LANES * 12 - 3);
            assert_true(m.nll > 0.0 && m.recomputed == 0.0);
            p.learner.burn_in = 5;
            m = learn(&p, of_one, late, NULL);
            assert_int_equal(m.imitated, 2);
            assert_int_equal(m.rows, LANES * 7 - 2);
            m = learn(&p, never, late, NULL);
            assert_int_equal(m.imitated, 0);
            assert_true(m.nll == 0.0 && m.rows == LANES * 7);
            p.learner.burn_in = 0;
            m = learn(&p, always, late, NULL); /* the last one too, which comes behind the last reward */
            assert_int_equal(m.imitated, LANES * 12);
            assert_int_equal(m.rows, 0);
            assert_true(m.loss == 0.5 * m.nll && m.updates == 1);
        }
}

/* Where the episode ends before an action acts, it is nobody's. */
static void actions_that_never_act_are_left_out(void **unused)
{
    learn_plan p = plan_of(2);
    noise n = {.fail_at = 0};
    learn_run r = learn_begin(&p);
    exphil_session *session = exphil_rollout_session(r.rollout);
    for (int t = 0; t < 14; t++) {
        float floats[13 * LANES], reward[LANES] = {0};
        int32_t ids[2 * LANES], actions[3 * LANES];
        uint8_t ends[LANES] = {EXPHIL_GOES_ON, t == 6 ? EXPHIL_OVER : EXPHIL_GOES_ON};
        for (int b = 0; b < LANES; b++) noise_row(&n, b, floats + 13 * b, ids + 2 * b);
        assert_ok(exphil_rollout_step(r.rollout, floats, ids, actions));
        assert_ok(exphil_session_override(session, 1, shown));
        assert_int_equal(exphil_rollout_reward(r.rollout, reward, ends, floats, ids),
                         t == 13 ? EXPHIL_END : EXPHIL_OK);
    }
    exphil_learner_metrics m = block_learn(&r);
    assert_int_equal(m.imitated, 12 - 2); /* rows 5 and 6 */
    assert_int_equal(m.rows, 12);
    learn_end(&r);
}

/* The term is the weight times the mean: seen in the loss before the update, and in the length of the gradient. */
static void the_term_is_weighed(void **unused)
{
    learn_plan p = plan_of(0);
    exphil_learner_metrics m[3];
    uint64_t weights[3];
    for (int k = 0; k < 3; k++) {
        p.learner.imitation = 0.75 * k;
        m[k] = learn(&p, of_one, false, &weights[k]);
        assert_true(m[k].nll == m[0].nll && m[k].rows == m[0].rows && m[k].entropy == m[0].entropy);
        assert_true(fabs(m[k].loss - m[0].loss - 0.75 * k * m[0].nll) < 1e-12 * m[0].nll);
    }
    assert_true(weights[0] != weights[1] && weights[1] != weights[2]);
    for (int k = 1; k < 3; k++) {
        p.learner.imitation = 0.75 * k;
        m[k] = learn(&p, always, false, NULL);
    }
    assert_true(fabs(m[2].gradient_norm / m[1].gradient_norm - 2.0) < 1e-5);
    /* a mean: what two lanes say alike is what one of them says */
    learn_plan one = p;
    one.lanes = 1;
    exphil_learner_metrics alone = learn(&one, always, false, NULL);
    assert_true(fabs(alone.nll - m[2].nll) < 1e-12 * alone.nll);
    assert_true(fabs(alone.gradient_norm / m[2].gradient_norm - 1.0) < 1e-5);
    p.learner.imitation = 0.0; /* nothing is learnt from, and nothing changes */
    learn_run r = learn_begin(&p);
    const uint64_t before = learn_weights(&r);
    learn_end(&r);
    m[0] = learn(&p, always, false, &weights[0]);
    assert_true(weights[0] == before && m[0].updates == 0);
    p.learner.imitation = 1.0;
    p.learner.value_only = 1;
    m[0] = learn(&p, always, false, &weights[0]);
    assert_true(weights[0] == before && m[0].updates == 0);
}

/* What a block brings is imitated as what was played here. */
static void blocks_bring_what_the_host_did(void **unused)
{
    for (int32_t delay = 0; delay < 3; delay++) {
        learn_plan p = plan_of(delay);
        uint64_t weights;
        exphil_learner_metrics expected = learn(&p, always, true, &weights);
        noise n = {.fail_at = 0};
        learn_run player = learn_begin(&p), learner = learn_begin(&p);
        play(&player, &n, always, true);
        assert_int_equal(block_give(&player, &learner, 0), EXPHIL_END);
        exphil_learner_metrics m = block_learn(&learner);
        assert_memory_equal(&m, &expected, sizeof m);
        assert_true(learn_weights(&learner) == weights);
        learn_end(&player);
        learn_end(&learner);
    }
}

/* A person who always does the same is soon understood, while PPO learns beside from the other stream. */
static void a_policy_comes_to_do_what_it_is_shown(void **unused)
{
    learn_plan p = plan_of(1);
    p.learner.imitation = 1.0;
    noise n = {.fail_at = 0};
    learn_run r = learn_begin(&p);
    double first = 0.0, last = 0.0;
    for (int i = 0; i < 150; i++) {
        play(&r, &n, of_one, false);
        exphil_learner_metrics m = block_learn(&r);
        assert_true(m.recomputed == 0.0 && m.imitated == 3);
        if (i == 0) first = m.nll;
        last = m.nll;
    }
    assert_true(first > 3.0 && last < 0.2 * first);
    learn_end(&r);
}

static void weights_are_checked(void **unused)
{
    static const double wrong[] = {-1.0, NAN, INFINITY, 1e7};
    learn_plan p = plan_of(0);
    learn_run r = learn_begin(&p);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        exphil_learner *learner = NULL;
        p.learner.imitation = wrong[i];
        assert_int_equal(exphil_learner_create(r.trainer, NULL, &p.learner, &learner, &error),
                         EXPHIL_E_INVALID);
        assert_says(&error, "imitation");
    }
    learn_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_that_were_overridden),
        cmocka_unit_test(actions_that_never_act_are_left_out),
        cmocka_unit_test(the_term_is_weighed),
        cmocka_unit_test(blocks_bring_what_the_host_did),
        cmocka_unit_test(a_policy_comes_to_do_what_it_is_shown),
        cmocka_unit_test(weights_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
