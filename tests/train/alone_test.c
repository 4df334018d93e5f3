/* The figures of a policy alone, against a session that is shown the rows of the same episodes: the same bits, for every
 * block, both modes, with and without delay, for any number of lanes and threads. */
#include "train_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOGITS = 12, HEADS = 3, BATCH_ORDERS = 3 };

/* ---- by a session ----------------------------------------------------------------------------------------------------- */

typedef struct figures {
    int64_t frames, changes, exact, exact_change;
    double nll;
} figures;

static double softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(x > 0 ? -x : x));
}

/* -log p of what was done, summed over heads, of one frame. */
static double nll_of(const float *logits, const int32_t *done)
{
    double total = 0;
    int first = 0;
    for (int h = 0; h < HEADS; h++) {
        const exphil_head_spec *head = &model_case_spec.heads[h];
        double sum = 0, most = (double)logits[first], nll = 0;
        for (int i = 0; i < head->count; i++) most = fmax(most, (double)logits[first + i]);
        for (int i = 0; i < head->count; i++) {
            double y = (double)logits[first + i];
            sum += exp(y - most);
            if (head->kind == EXPHIL_BERNOULLI) nll += softplus(done[h] >> i & 1 ? -y : y);
        }
        if (head->kind == EXPHIL_CATEGORICAL) nll = log(sum) + most - (double)logits[first + done[h]];
        total += nll;
        first += head->count;
    }
    return total;
}

static void neutral(int32_t *action)
{
    for (int h = 0; h < HEADS; h++) action[h] = model_case_spec.heads[h].neutral;
}

/* One episode on one stream, from its start. */
static figures play(exphil_session *session, int64_t episode, int32_t delay, bool neutral_start)
{
    figures sum = {0, 0, 0, 0, 0};
    int32_t before[HEADS];
    float floats[13], logits[LOGITS];
    int32_t ids[2], done[HEADS], drawn[HEADS];
    neutral(before);
    if (delay && !neutral_start) train_row(episode, delay - 1, floats, ids, before);
    assert_ok(exphil_session_reset(session, 0));
    for (int64_t t = 0; t + delay < train_episode_frames(episode); t++) {
        train_row(episode, t + delay, floats, ids, done);
        train_row(episode, t, floats, ids, drawn); /* the row of frame t; its action is not looked at */
        assert_ok(exphil_session_step_row(session, floats, ids, NULL, drawn));
        assert_ok(exphil_session_logits(session, 0, logits, LOGITS));
        bool exact = memcmp(drawn, done, sizeof done) == 0, change = memcmp(before, done, sizeof done) != 0;
        sum.frames++;
        sum.exact += exact;
        sum.changes += change;
        sum.exact_change += exact && change;
        sum.nll += nll_of(logits, done);
        memcpy(before, done, sizeof done);
    }
    return sum;
}

static figures play_all(const exphil_model *model, int64_t episodes, int32_t delay, bool neutral_start)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL;
    figures all = {0, 0, 0, 0, 0};
    config.deterministic = 1;
    config.deliver = EXPHIL_DELIVER_DECIDED;
    assert_ok(exphil_session_create(model, &config, &session, NULL));
    for (int64_t e = episodes - 1; e >= 0; e--) { /* the longest first: the order in which they are added */
        figures one = play(session, e, delay, neutral_start);
        all.frames += one.frames;
        all.changes += one.changes;
        all.exact += one.exact;
        all.exact_change += one.exact_change;
        all.nll += one.nll;
    }
    exphil_session_destroy(session);
    return all;
}

static exphil_report measure(const exphil_model *model, const exphil_dataset *dataset, int64_t batch,
                             int64_t most)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    report.alone_most_frames = most;
    if (exphil_evaluate(model, dataset, NULL, NULL, batch, &report, &error) < 0) fail_msg("%s", error.message);
    assert_int_equal(report.alone_most_frames, most);
    return report;
}

static void assert_figures(const exphil_report *got, const figures *want, bool likelihood)
{
    assert_int_equal(got->alone_frames, want->frames);
    assert_int_equal(got->alone_change_frames, want->changes);
    assert_true(got->alone_accuracy == (double)want->exact / (double)want->frames);
    assert_true(got->alone_change_accuracy == (double)want->exact_change / (double)want->changes);
    if (likelihood && got->alone_nll != want->nll / (double)want->frames)
        fail_msg("nll %.17g, not %.17g", got->alone_nll, want->nll / (double)want->frames);
}

/* A policy after a few updates: what it was born with repeats whatever it did last. */
static int64_t trained_as_a_session(const char *blocks, int32_t mode, int32_t delay, int32_t heads, int32_t threads)
{
    train_plan plan = train_plan_of(blocks, mode);
    plan.episodes = 9;
    plan.threads = threads;
    plan.model.delay_frames = delay;
    plan.model.heads = heads;
    plan.model.neutral_start = delay > 0 && threads > 1;
    plan.adam.rate = 2e-2;
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 40);
    exphil_model *model = NULL;
    assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, NULL));
    figures want = play_all(model, plan.episodes, delay, plan.model.neutral_start);
    for (int64_t batch = 1; batch <= 16; batch *= 4) {
        exphil_report report = measure(model, run.dataset, batch, INT64_MAX);
        assert_figures(&report, &want, heads == EXPHIL_HEADS_INDEPENDENT);
    }
    exphil_model_destroy(model);
    train_end(&run);
    return want.exact;
}

static void as_a_session(void **state)
{
    static const char *const patterns[] = {EACH_BLOCK ALL_BLOCKS "gru"};
    int64_t exact = 0;
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++)
        for (int32_t mode = 0; mode <= 1; mode++)
            for (int32_t delay = 0; delay <= 3; delay += 3)
                for (int32_t threads = 1; threads <= 3; threads += 2)
                    exact +=
                        trained_as_a_session(patterns[p], mode, delay, EXPHIL_HEADS_INDEPENDENT, threads);
    assert_true(exact > 100); /* the figures are of something */
}

static void as_a_session_head_by_head(void **state)
{
    for (int32_t mode = 0; mode <= 1; mode++)
        (void)trained_as_a_session("gru", mode, 3 * mode, EXPHIL_HEADS_AUTOREGRESSIVE, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_a_session),
        cmocka_unit_test(as_a_session_head_by_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
