/* The figures of a policy alone, against a session that is shown the rows of the same episodes: the same bits, for every
 * block, both modes, with and without delay, for any number of lanes and threads. */
#include "train_case.h"

#include "base/double.h"

#include <exphil/conditions.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOGITS = 12, HEADS = 3 };

/* ---- by a session ----------------------------------------------------------------------------------------------------- */

typedef struct figures {
    int64_t frames, changes, exact, exact_change;
    double nll;
} figures;

static double softplus(double x)
{
    return (x > 0 ? x : 0) + xph_log1p_of(xph_exp_of(x > 0 ? -x : x));
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
            sum += xph_exp_of(y - most);
            if (head->kind == EXPHIL_BERNOULLI) nll += softplus(done[h] >> i & 1 ? -y : y);
        }
        if (head->kind == EXPHIL_CATEGORICAL) nll = xph_log_of(sum) + most - (double)logits[first + done[h]];
        total += nll;
        first += head->count;
    }
    return total;
}

static void neutral(int32_t *action)
{
    for (int h = 0; h < HEADS; h++) action[h] = model_case_spec.heads[h].neutral;
}

/* One episode on one stream, from its start; longest: the model's delay, whose rows are played. */
static figures play(exphil_session *session, int64_t episode, int32_t delay, int32_t longest,
                    bool neutral_start)
{
    figures sum = {0, 0, 0, 0, 0};
    int32_t before[HEADS];
    float floats[13], logits[LOGITS];
    int32_t ids[2], done[HEADS], drawn[HEADS];
    neutral(before);
    if (delay && !neutral_start) train_row(episode, delay - 1, floats, ids, before);
    assert_ok(exphil_session_reset(session, 0));
    for (int64_t t = 0; t + longest < train_episode_frames(episode); t++) {
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

static void add(figures *all, figures one)
{
    all->frames += one.frames;
    all->changes += one.changes;
    all->exact += one.exact;
    all->exact_change += one.exact_change;
    all->nll += one.nll;
}

static figures play_all(const exphil_model *model, int64_t episodes, int32_t delay, bool neutral_start)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL;
    figures all = {0, 0, 0, 0, 0};
    config.deterministic = 1;
    config.deliver = EXPHIL_DELIVER_DECIDED;
    assert_ok(exphil_session_create(model, &config, &session, NULL));
    for (int64_t e = episodes - 1; e >= 0; e--) /* the longest first: the order in which they are added */
        add(&all, play(session, e, delay, delay, neutral_start));
    exphil_session_destroy(session);
    return all;
}

static exphil_report measure(const exphil_model *model, const exphil_dataset *dataset, int64_t batch,
                             int64_t most)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    report.alone_most_frames = most;
    if (exphil_evaluate(model, dataset, NULL, NULL, batch, &report, &error) < 0)
        fail_msg("%s", error.message);
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
static int64_t trained_as_a_session(const char *blocks, int32_t mode, int32_t delay, int32_t heads,
                                    int32_t threads, int end)
{
    train_plan plan = train_plan_of(blocks, mode);
    if (end >= 0) model_case_end(&plan.model, end);
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
    static const char *const patterns[] = {EACH_OF_SOME ALL_BLOCKS "gru"};
    int64_t exact = 0;
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++)
        for (int32_t mode = 0; mode <= 1; mode++)
            for (int32_t delay = 0; delay <= 3; delay += 3) {
                const int32_t threads = ((int32_t)p + mode + delay) % 2 ? 3 : 1;
                exact +=
                    trained_as_a_session(patterns[p], mode, delay, EXPHIL_HEADS_INDEPENDENT, threads, -1);
            }
    assert_true(exact > 100); /* the figures are of something */
}

static void as_a_session_head_by_head(void **state)
{
    for (int32_t mode = 0; mode <= 1; mode++)
        for (int end = -1; end < MODEL_CASE_ENDS; end++)
            (void)trained_as_a_session("gru", mode, 3 * mode, EXPHIL_HEADS_AUTOREGRESSIVE, 2, end);
}

/* Logits in double, and of rounded weights: a session gives floats of the former. */
static void of_other_types(void **state)
{
    for (int32_t kind = 0; kind < 2; kind++) {
        train_plan plan = train_plan_of("gru attention", EXPHIL_MODE_CARRY);
        plan.model.delay_frames = 0;
        plan.model.type = kind ? EXPHIL_TYPE_F32 : EXPHIL_TYPE_F64;
        train_run run = train_begin(&plan);
        exphil_model *model = NULL, *rounded = NULL;
        (void)train_steps(&run, 40);
        assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, NULL));
        if (kind) assert_ok(exphil_model_quantize(model, EXPHIL_TYPE_I8, &rounded, NULL));
        const exphil_model *played = kind ? rounded : model;
        figures want = play_all(played, plan.episodes, 0, false);
        exphil_report report = measure(played, run.dataset, 0, INT64_MAX);
        assert_figures(&report, &want, kind == 1);
        if (!(fabs(report.alone_nll - want.nll / (double)want.frames) < 1e-5))
            fail_msg("nll %g", report.alone_nll);
        exphil_model_destroy(rounded);
        exphil_model_destroy(model);
        train_end(&run);
    }
}

/* ---- of a policy that is told something ------------------------------------------------------------------------------- */

static const exphil_condition_spec conditions[2] = {{"player", 3, 4, 0.5}, {"rank", 2, 0, 0.5}};
static const int32_t delays[3] = {0, 2, 5};

/* What an evaluation shows: everything of the dataset but a delay that is drawn (how 0), or only this delay and these
 * values (how 1..3). */
static figures play_told(const exphil_model *model, const exphil_dataset *dataset, int64_t episodes, int how,
                         bool neutral_start)
{
    exphil_session *session[3] = {NULL};
    exphil_condition_spec unmasked[2] = {conditions[0], conditions[1]};
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    xph_sampler *sampler = NULL;
    figures all = {0, 0, 0, 0, 0};
    for (int k = 0; k < 3; k++) {
        exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
        config.deterministic = 1;
        config.deliver = EXPHIL_DELIVER_DECIDED;
        config.delay_frames = &delays[k];
        assert_ok(exphil_session_create(model, &config, &session[k], NULL));
    }
    for (int i = 0; i < 2; i++) unmasked[i].mask = 0;
    assert_ok(exphil_model_sampling(model, &sampling, NULL));
    sampling.conditions = unmasked;
    assert_ok(xph_sampler_create(dataset, &sampling, &sampler, NULL));
    for (int64_t e = episodes - 1; e >= 0; e--) {
        const xph_shown shown = xph_sampler_shown(sampler, 0, e);
        int k = how ? how - 1 : shown.told[2] - 1;
        int32_t values[2];
        for (int i = 0; i < 2; i++) values[i] = how ? (how + i) % 3 : train_value(e, &conditions[i]);
        assert_ok(exphil_session_conditions_set(session[k], 0, values, 2));
        add(&all, play(session[k], e, delays[k], delays[2], neutral_start));
    }
    xph_sampler_destroy(sampler);
    for (int k = 0; k < 3; k++) exphil_session_destroy(session[k]);
    return all;
}

static exphil_report measure_told(const exphil_model *model, const exphil_dataset *dataset, int how,
                                  int64_t batch)
{
    const int32_t values[2] = {how % 3, (how + 1) % 3};
    exphil_evaluation as = EXPHIL_EVALUATION_INIT;
    exphil_report report = EXPHIL_REPORT_INIT;
    report.alone_most_frames = INT64_MAX;
    as.batch = batch;
    as.conditions = how ? values : NULL;
    as.condition_count = how ? 2 : 0;
    as.delay_frames = how ? &delays[how - 1] : NULL;
    assert_ok(exphil_evaluate_as(model, dataset, &as, &report, NULL));
    return report;
}

static void told_as_a_session(const char *blocks, int32_t mode, int32_t no_previous, int32_t heads)
{
    train_plan plan = train_plan_of(blocks, mode);
    plan.episodes = 9;
    plan.threads = 1 + 2 * mode;
    plan.model.delay_frames = 0;
    plan.model.delays = delays;
    plan.model.delay_count = 3;
    plan.model.conditions = conditions;
    plan.model.condition_count = 2;
    plan.model.no_previous_action = no_previous;
    plan.model.neutral_start = no_previous;
    plan.model.heads = heads;
    plan.adam.rate = 2e-2;
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 40);
    exphil_model *model = NULL;
    double nll[4];
    assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, NULL));
    for (int how = 0; how < 4; how++) {
        figures want = play_told(model, run.dataset, plan.episodes, how, no_previous);
        for (int64_t batch = 1; batch <= 16; batch *= 4) {
            exphil_report report = measure_told(model, run.dataset, how, batch);
            assert_figures(&report, &want, heads == EXPHIL_HEADS_INDEPENDENT);
            if (mode ==
                EXPHIL_MODE_CARRY) /* the same rows; of windows only the full ones are teacher-forced */
                assert_true(report.frames == want.frames && report.change_frames == want.changes);
            nll[how] = report.alone_nll;
        }
    }
    for (int how = 0; how < 3; how++) assert_true(nll[how] != nll[how + 1]); /* it matters what it is told */
    exphil_model_destroy(model);
    train_end(&run);
}

static void told_and_delayed_as_a_session(void **state)
{
    for (int32_t mode = 0; mode <= 1; mode++)
        for (int32_t no_previous = 0; no_previous <= 1; no_previous++) {
            told_as_a_session("gru attention", mode, no_previous, EXPHIL_HEADS_INDEPENDENT);
            told_as_a_session("mamba", mode, no_previous, EXPHIL_HEADS_AUTOREGRESSIVE);
        }
}

/* ---- what is measured ------------------------------------------------------------------------------------------------- */

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want)))) fail_msg("%.9g, not %.9g", got, want);
}

/* Whole episodes until there are enough frames: one for a frame, all for very many; nothing where it is not asked. */
static void enough_whole_episodes(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.episodes = 9;
    plan.model.delay_frames = 0;
    train_run run = train_begin(&plan);
    int64_t all = 0, before = 0;
    for (int64_t e = 0; e < plan.episodes; e++) all += train_episode_frames(e);
    exphil_report none = measure(run.model, run.dataset, 0, 0);
    assert_true(none.alone_frames == 0 && none.alone_change_frames == 0 && none.alone_nll == 0 &&
                none.alone_accuracy == 0 && none.alone_change_accuracy == 0);
    for (int64_t most = 1; most < all + 100; most += 37) {
        exphil_report r = measure(run.model, run.dataset, 0, most),
                      again = measure(run.model, run.dataset, 3, most);
        assert_true(r.alone_frames >= (most < all ? most : all) && r.alone_frames >= before);
        assert_true(r.alone_frames < most + train_episode_frames(plan.episodes - 1));
        assert_true(r.alone_nll == again.alone_nll && r.alone_frames == again.alone_frames);
        assert_true(r.frames == none.frames && r.nll == none.nll && r.exact_accuracy == none.exact_accuracy);
        before = r.alone_frames;
    }
    assert_int_equal(before, all);
    train_end(&run);
}

/* A model that is not told past actions has its teacher-forced figures. */
static void without_past_actions_it_is_the_same(void **state)
{
    train_plan plan = train_plan_of("mamba", EXPHIL_MODE_CARRY);
    plan.model.no_previous_action = 1;
    plan.model.delay_frames = 0; /* nor queued ones */
    train_run run = train_begin(&plan);
    exphil_report r = measure(run.model, run.dataset, 0, 1);
    assert_true(r.alone_frames == r.frames && r.alone_change_frames == r.change_frames &&
                r.alone_nll == r.nll);
    assert_true(r.alone_accuracy == r.exact_accuracy && r.alone_change_accuracy == r.exact_change_accuracy);
    train_end(&run);
}

/* Where the recorded actions are the policy's own decisions, it is always right, and the recorded past is its own. */
static void of_its_own_decisions(void **state)
{
    for (int32_t heads = 0; heads <= 1; heads++) {
        train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
        plan.model.heads = heads;
        plan.model.delay_frames = 0;
        train_run run = train_begin(&plan);
        (void)train_steps(&run, 200);
        exphil_model *model = NULL;
        exphil_session *session = NULL;
        exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
        exphil_dataset_config data = EXPHIL_DATASET_CONFIG_INIT;
        exphil_dataset *own = NULL;
        float floats[60][13];
        int32_t ids[60][2], decided[60][HEADS], done[HEADS];
        config.deterministic = 1;
        data.spec = &model_case_spec;
        assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, NULL));
        assert_ok(exphil_session_create(model, &config, &session, NULL));
        assert_ok(exphil_dataset_create(run.context, &data, &own, NULL));
        for (int64_t e = 0; e < 4; e++) {
            assert_ok(exphil_session_reset(session, 0));
            for (int64_t t = 0; t < 60; t++) {
                train_row(e + 50, t, floats[t], ids[t], done);
                assert_ok(exphil_session_step_row(session, floats[t], ids[t], NULL, decided[t]));
            }
            assert_ok(exphil_dataset_add_rows(own, (uint64_t)e, 60, floats[0], ids[0], decided[0], NULL));
        }
        exphil_report r = measure(model, own, 0, INT64_MAX);
        assert_int_equal(r.alone_frames, 240);
        assert_true(r.alone_accuracy == 1.0 && r.alone_change_accuracy == 1.0 && r.alone_change_frames > 20);
        assert_near(r.alone_nll, r.nll);
        exphil_dataset_destroy(own);
        exphil_session_destroy(session);
        exphil_model_destroy(model);
        train_end(&run);
    }
}

/* ---- what is not right ------------------------------------------------------------------------------------------------ */

static int32_t asked; /* times until the host cancels; below 0: never */

static int32_t cancels(void *user)
{
    return asked >= 0 && asked-- == 0;
}

static void bad_calls_leave_the_report(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.cancel = cancels;
    asked = -1;
    train_run run = train_begin(&plan);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_report report, untouched;
    memset(&report, 0x33, sizeof report);
    report.struct_size = sizeof report;
    report.alone_most_frames = -1;
    untouched = report;
    assert_int_equal(exphil_evaluate(run.model, run.dataset, NULL, NULL, 0, &report, &error),
                     EXPHIL_E_INVALID);
    assert_says(&error, "alone_most_frames is -1");
    assert_memory_equal(&report, &untouched, sizeof report);
    report.alone_most_frames = untouched.alone_most_frames = 1000;
    int32_t stopped = 0;
    for (int32_t at = 0; at < 100; at++) {
        asked = at;
        exphil_status status = exphil_evaluate(run.model, run.dataset, NULL, NULL, 0, &report, &error);
        if (status == EXPHIL_OK) break;
        assert_int_equal(status, EXPHIL_E_CANCELLED);
        assert_memory_equal(&report, &untouched, sizeof report);
        stopped++;
    }
    assert_true(stopped > 5 && stopped < 100); /* in both parts */
    asked = -1;
    train_end(&run);
}

/* A report of 0.1 ends before the figures: it is filled as then, and nothing behind it is read or written. */
static void a_report_of_0_1(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    exphil_report report, now = EXPHIL_REPORT_INIT;
    memset(&report, 0x33, sizeof report);
    report.struct_size = offsetof(exphil_report, alone_most_frames);
    assert_ok(exphil_evaluate(run.model, run.dataset, NULL, NULL, 0, &report, NULL));
    assert_ok(exphil_evaluate(run.model, run.dataset, NULL, NULL, 0, &now, NULL));
    assert_int_equal(report.alone_most_frames, 0x3333333333333333);
    now.struct_size = report.struct_size;
    assert_memory_equal(&report, &now, report.struct_size);
    train_end(&run);
}

/* Every allocation fails once: the call says so, and nothing is lost. */
static void memory_runs_out(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.memory = &memory;
    plan.threads = 2;
    train_run run = train_begin(&plan);
    int32_t refused = 0;
    for (int64_t at = 1; at < 1000; at++) {
        exphil_report report = EXPHIL_REPORT_INIT;
        report.alone_most_frames = 1000;
        memory.fail_at = atomic_load(&memory.calls) + at;
        exphil_status status = exphil_evaluate(run.model, run.dataset, NULL, NULL, 0, &report, NULL);
        memory.fail_at = -1;
        if (status == EXPHIL_OK) break;
        assert_int_equal(status, EXPHIL_E_MEMORY);
        assert_int_equal(report.frames, 0);
        refused++;
    }
    assert_true(refused > 20 && refused < 1000);
    train_end(&run);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_a_session),          cmocka_unit_test(as_a_session_head_by_head),
        cmocka_unit_test(of_other_types),        cmocka_unit_test(told_and_delayed_as_a_session),
        cmocka_unit_test(enough_whole_episodes), cmocka_unit_test(without_past_actions_it_is_the_same),
        cmocka_unit_test(of_its_own_decisions),  cmocka_unit_test(bad_calls_leave_the_report),
        cmocka_unit_test(a_report_of_0_1),       cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
