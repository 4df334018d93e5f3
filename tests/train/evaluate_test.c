/* The numbers of a report: worked out by hand where the model always says the same, and against a session that is shown
 * the same frames where it does not. */
#include "train_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void assert_near(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 2e-6 * (1.0 + fabs(want)))) fail_msg("%s is %.9g, not %.9g", what, got, want);
}
#define NEAR(report, field, want) assert_near(#field, (report).field, want)

/* ---- by hand --------------------------------------------------------------------------------------------------------- */

/* Two bits and four classes. The model says the same on every frame: bit 0 on with logit 1, bit 1 off with logit -2; classes
 * in the order 2, 0, 3, 1 with logits 3, 2, 0, -1. */
static const exphil_head_spec heads[2] = {{"bits", EXPHIL_BERNOULLI, 2, 0, 0},
                                          {"class", EXPHIL_CATEGORICAL, 4, 1, 0}};
static const float said[6] = {1, -2, 2, -1, 3, 0};

/* Ten frames in two episodes: (bits, class). */
static const int32_t actions[10][2] = {{1, 2}, {1, 2},           {3, 2}, {3, 0}, {1, 0},
                                       {1, 3}, /* and */ {0, 1}, {0, 1}, {1, 2}, {1, 2}};
enum { FIRST = 6, SECOND = 4 };

typedef struct hand {
    exphil_context *context;
    exphil_dataset *dataset;
    exphil_model *model;
} hand;

/* All weights zero but the biases of the logits. */
static void silence(exphil_model *model)
{
    exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
    for (int64_t i = 0; exphil_model_tensor_info(model, i, &info, NULL) == EXPHIL_OK; i++) {
        float *zero = calloc(1, info.size_bytes);
        if (strcmp(info.name, "heads.logits.bias") == 0) memcpy(zero, said, sizeof said);
        assert_ok(exphil_model_tensor_set(model, info.name, zero, info.size_bytes, NULL));
        free(zero);
    }
}

static hand hand_make(int32_t mode, int32_t delay, int64_t window)
{
    exphil_spec spec = EXPHIL_SPEC_INIT;
    hand h = {.context = test_context(NULL, NULL, 1)};
    spec.layout = spec.codec = "hand";
    spec.float_count = 1;
    spec.head_count = 2;
    spec.heads = heads;
    exphil_dataset_config data = EXPHIL_DATASET_CONFIG_INIT;
    data.spec = &spec;
    float floats[10];
    for (int t = 0; t < 10; t++) floats[t] = (float)t;
    assert_ok(exphil_dataset_create(h.context, &data, &h.dataset, NULL));
    assert_ok(exphil_dataset_add_rows(h.dataset, 1, FIRST, floats, NULL, actions[0], NULL));
    assert_ok(exphil_dataset_add_rows(h.dataset, 2, SECOND, floats, NULL, actions[FIRST], NULL));
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    config.spec = &spec;
    config.delay_frames = delay;
    config.mode = mode;
    config.window_frames = window;
    h.model = model_case_create(h.context, &config);
    silence(h.model);
    return h;
}

static void hand_free(hand *h)
{
    exphil_model_destroy(h->model);
    exphil_dataset_destroy(h->dataset);
    exphil_context_destroy(h->context);
}

static exphil_report report_of(const hand *h, const exphil_head_loss *losses, int64_t batch)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_evaluate(h->model, h->dataset, NULL, losses, batch, &report, &error) < 0)
        fail_msg("%s", error.message);
    return report;
}

static double softplus(double x)
{
    return log1p(exp(x));
}

static void a_constant_model_by_hand(void **state)
{
    for (int64_t batch = 0; batch <= 3; batch++) {
        hand h = hand_make(EXPHIL_MODE_CARRY, 0, 0);
        exphil_report r = report_of(&h, NULL, batch);
        assert_int_equal(r.frames, 10);
        assert_int_equal(r.heads, 2);
        /* against the frame before, neutral (0, 1) at the start of an episode: all but frames 1, 6, 7, 9 are changes */
        assert_int_equal(r.change_frames, 6);
        /* bits: 1 is said; frames 0 1 4 5 8 9 have it; they change on 0 2 4 8 (there 0, 4, 8 right) */
        NEAR(r, head[0].accuracy, 0.6);
        NEAR(r, head[0].top3, 0.6);
        NEAR(r, head[0].change_accuracy, 3.0 / 4.0);
        NEAR(r, head[0].majority_accuracy, 0.6);
        NEAR(r, head[0].copy_accuracy, 0.6);
        /* class: 2 is said; frames 0 1 2 8 9; the three likeliest are 2, 0, 3: all but frames 6, 7; changes on 0 3 5 8 */
        NEAR(r, head[1].accuracy, 0.5);
        NEAR(r, head[1].top3, 0.8);
        NEAR(r, head[1].change_accuracy, 2.0 / 4.0);
        NEAR(r, head[1].majority_accuracy, 0.5);
        NEAR(r, head[1].copy_accuracy, 0.6);
        /* both: (1, 2) is said, and is the commonest: frames 0 1 8 9; of the changes 0 2 3 4 5 8, frames 0 and 8 */
        NEAR(r, exact_accuracy, 0.4);
        NEAR(r, exact_change_accuracy, 2.0 / 6.0);
        NEAR(r, exact_majority, 0.4);
        NEAR(r, exact_majority_change, 2.0 / 6.0);
        NEAR(r, exact_copy, 0.4);
        /* bit 0 is on in 8 of 10 frames, bit 1 in 2; classes 0..3 are there 2, 2, 5, 1 times */
        double bits = (8 * softplus(-1) + 2 * softplus(1) + 2 * softplus(2) + 8 * softplus(-2)) / 10;
        double all = exp(2) + exp(-1) + exp(3) + exp(0),
               classes = log(all) - (2 * 2 + 2 * -1 + 5 * 3 + 1 * 0) / 10.0;
        NEAR(r, head[0].nll, bits);
        NEAR(r, head[1].nll, classes);
        NEAR(r, nll, bits + classes);
        NEAR(r, head[0].loss, bits / 2); /* the mean over bits */
        NEAR(r, head[1].loss, classes);
        NEAR(r, loss, bits / 2 + classes);
        /* frequencies, half a count added to each value */
        double bit = -(8 * log(8.5 / 11) + 2 * log(2.5 / 11)) / 10;
        double class = -(2 * log(2.5 / 12) + 2 * log(2.5 / 12) + 5 * log(5.5 / 12) + log(1.5 / 12)) / 10;
        NEAR(r, head[0].frequency_nll, 2 * bit);
        NEAR(r, head[1].frequency_nll, class);
        NEAR(r, frequency_nll, 2 * bit + class);
        hand_free(&h);
    }
}

static void losses_by_hand(void **state)
{
    static const float positive[2] = {3, 0.5f};
    const exphil_head_loss losses[2] = {{2, 0, 2, positive}, {-1, 0.2, 1, NULL}};
    hand h = hand_make(EXPHIL_MODE_CARRY, 0, 0);
    exphil_report r = report_of(&h, losses, 0), plain = report_of(&h, NULL, 0);
    double want = 0, p[2] = {1 / (1 + exp(-1)), 1 / (1 + exp(2))};
    for (int t = 0; t < 10; t++)
        for (int bit = 0; bit < 2; bit++) {
            bool on = actions[t][0] >> bit & 1;
            double hit = on ? p[bit] : 1 - p[bit];
            want -= (on ? (double)positive[bit] : 1) * pow(1 - hit, 2) * log(hit) / 20;
        }
    NEAR(r, head[0].loss, want);
    double all = exp(2) + exp(-1) + exp(3) + exp(0), smooth = 0;
    for (int t = 0; t < 10; t++) {
        double cross = 0, hit = 0;
        for (int k = 0; k < 4; k++) {
            double target = 0.2 / 4 + (k == actions[t][1] ? 0.8 : 0), share = exp((double)said[2 + k]) / all;
            cross -= target * log(share);
            hit += target * share;
        }
        smooth += (1 - hit) * cross / 10;
    }
    NEAR(r, head[1].loss, smooth);
    NEAR(r, loss, 2 * want); /* a head that is not trained does not count */
    NEAR(r, nll, plain.nll); /* the plain likelihood does not know losses */
    NEAR(r, exact_accuracy, plain.exact_accuracy);
    hand_free(&h);
}

/* With delay 2 the target of row t is the action of frame t + 2; what was done before it is known, even at the start. */
static void delays_by_hand(void **state)
{
    hand h = hand_make(EXPHIL_MODE_CARRY, 2, 0);
    exphil_report r = report_of(&h, NULL, 0);
    /* targets: frames 2..5 and 8, 9; changes: 2 3 4 5 8 */
    assert_int_equal(r.frames, 6);
    assert_int_equal(r.change_frames, 5);
    NEAR(r, exact_accuracy, 2.0 / 6.0);
    NEAR(r, exact_change_accuracy, 1.0 / 5.0);
    NEAR(r, exact_copy, 1.0 / 6.0);
    NEAR(r, head[0].change_accuracy, 2.0 / 3.0); /* changes on 2, 4, 8 */
    NEAR(r, head[1].change_accuracy, 1.0 / 3.0); /* changes on 3, 5, 8 */
    hand_free(&h);
}

/* A window counts its last frame: frames 2..5 and 8, 9 for windows of 3; all frames for windows of 1. */
static void windows_by_hand(void **state)
{
    hand h = hand_make(EXPHIL_MODE_WINDOW, 0, 3);
    exphil_report r = report_of(&h, NULL, 0);
    assert_int_equal(r.frames, 6);
    assert_int_equal(r.change_frames, 5);
    NEAR(r, exact_accuracy, 2.0 / 6.0);
    NEAR(r, exact_change_accuracy, 1.0 / 5.0);
    NEAR(r, exact_copy, 1.0 / 6.0);
    NEAR(r, head[0].majority_accuracy, 4.0 / 6.0);
    hand_free(&h);
    h = hand_make(EXPHIL_MODE_WINDOW, 0, 1);
    r = report_of(&h, NULL, 4);
    assert_int_equal(r.frames, 10);
    assert_int_equal(r.change_frames, 6);
    NEAR(r, exact_copy, 0.4);
    hand_free(&h);
}

/* Baselines of other data: there bits are always 3 and the class is always 0. */
static void frequencies_of_other_data(void **state)
{
    hand h = hand_make(EXPHIL_MODE_CARRY, 0, 0), other = {.context = NULL};
    exphil_dataset_config data = EXPHIL_DATASET_CONFIG_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    float floats[4] = {0, 0, 0, 0};
    const int32_t always[4][2] = {{3, 0}, {3, 0}, {3, 0}, {3, 0}};
    assert_ok(exphil_dataset_spec(h.dataset, &spec, NULL));
    data.spec = &spec;
    assert_ok(exphil_dataset_create(h.context, &data, &other.dataset, NULL));
    assert_ok(exphil_dataset_add_rows(other.dataset, 9, 4, floats, NULL, always[0], NULL));
    exphil_report r = EXPHIL_REPORT_INIT;
    assert_ok(exphil_evaluate(h.model, h.dataset, other.dataset, NULL, 0, &r, NULL));
    NEAR(r, head[0].majority_accuracy, 0.2); /* frames 2, 3 */
    NEAR(r, head[1].majority_accuracy, 0.2); /* frames 3, 4 */
    NEAR(r, exact_majority, 0.1);
    NEAR(r, exact_majority_change, 1.0 / 6.0);
    NEAR(r, head[1].frequency_nll, -(2 * log(4.5 / 6) + 8 * log(0.5 / 6)) / 10);
    NEAR(r, head[0].frequency_nll,
         -(8 * log(4.5 / 5) + 2 * log(0.5 / 5) + 2 * log(4.5 / 5) + 8 * log(0.5 / 5)) / 10);
    exphil_dataset_destroy(other.dataset);
    hand_free(&h);
}

/* ---- by a session ----------------------------------------------------------------------------------------------------- */

/* Shows a session the frames of the dataset and tells it after each what was really done. */
typedef struct shown {
    int64_t frames, exact;
    double nll;
} shown;

static void judge(const float *logits, const int32_t *target, shown *to)
{
    bool all = true;
    int first = 0;
    for (int h = 0; h < 3; h++) {
        const exphil_head_spec *head = &model_case_spec.heads[h];
        int best = 0;
        double sum = 0;
        for (int i = 0; i < head->count; i++) {
            double y = (double)logits[first + i];
            if (head->kind == EXPHIL_BERNOULLI) {
                bool on = target[h] >> i & 1;
                to->nll += softplus(on ? -y : y);
                all &= on == (y > 0);
            } else {
                sum += exp(y);
                if (y > (double)logits[first + best]) best = i;
            }
        }
        if (head->kind == EXPHIL_CATEGORICAL) {
            to->nll += log(sum) - (double)logits[first + target[h]];
            all &= best == target[h];
        }
        first += head->count;
    }
    to->frames++;
    to->exact += all;
}

static shown show(exphil_session *session, int64_t episodes, int64_t skip)
{
    shown sum = {0, 0, 0};
    for (int64_t e = 0; e < episodes; e++) {
        assert_ok(exphil_session_reset(session, 0));
        for (int64_t t = 0; t < train_episode_frames(e); t++) {
            float floats[13], logits[12];
            int32_t ids[2], done[3], drawn[3];
            train_row(e, t, floats, ids, done);
            assert_ok(exphil_session_step_row(session, floats, ids, NULL, drawn));
            assert_ok(exphil_session_logits(session, 0, logits, 12));
            assert_ok(exphil_session_override(session, 0, done));
            if (t >= skip) judge(logits, done, &sum);
        }
    }
    return sum;
}

static void a_session_sees_the_same(void **state)
{
    static const char *const patterns[] = {"mamba lstm", "gru attention", "mlp", "(mamba attention)*2 ffn"};
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++)
        for (int32_t mode = 0; mode <= 1; mode++) {
            train_plan plan = train_plan_of(patterns[p], mode);
            plan.model.delay_frames = 0; /* then a session's queue begins as an episode does */
            train_run run = train_begin(&plan);
            (void)train_steps(&run, 30);
            exphil_model *model = NULL;
            exphil_session *session = NULL;
            assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, NULL));
            assert_ok(exphil_session_create(model, NULL, &session, NULL));
            shown want = show(session, plan.episodes, mode ? 5 : 0);
            for (int64_t batch = 1; batch <= 16; batch *= 4) {
                exphil_report report = EXPHIL_REPORT_INIT, of_trainer = EXPHIL_REPORT_INIT;
                assert_ok(exphil_evaluate(model, run.dataset, NULL, NULL, batch, &report, NULL));
                assert_int_equal(report.frames, want.frames);
                assert_near("exact_accuracy", report.exact_accuracy,
                            (double)want.exact / (double)want.frames);
                assert_near("nll", report.nll, want.nll / (double)want.frames);
                assert_ok(exphil_trainer_evaluate(run.trainer, EXPHIL_WEIGHTS, run.dataset, NULL, &of_trainer,
                                                  NULL));
                assert_near("nll of the trainer", of_trainer.nll, report.nll);
            }
            exphil_session_destroy(session);
            exphil_model_destroy(model);
            train_end(&run);
        }
}

/* ---- what is not right ------------------------------------------------------------------------------------------------ */

static int32_t always(void *user)
{
    return *(int32_t *)user;
}

static void refuse(const exphil_model *model, const exphil_dataset *dataset, const exphil_dataset *from,
                   int64_t batch, exphil_status status, const char *says)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_report report, untouched;
    memset(&report, 0x33, sizeof report);
    report.struct_size = sizeof report;
    untouched = report;
    assert_int_equal(exphil_evaluate(model, dataset, from, NULL, batch, &report, &error), status);
    assert_memory_equal(&report, &untouched, sizeof report);
    assert_says(&error, says);
}

static void bad_calls_are_refused(void **state)
{
    int32_t cancelled = 0;
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    plan.cancel = always;
    plan.cancel_user = &cancelled;
    train_run run = train_begin(&plan);
    hand h = hand_make(EXPHIL_MODE_CARRY, 0, 0);
    exphil_dataset *empty = NULL;
    exphil_dataset_config data = EXPHIL_DATASET_CONFIG_INIT;
    data.spec = &model_case_spec;
    assert_ok(exphil_dataset_create(run.context, &data, &empty, NULL));
    refuse(NULL, run.dataset, NULL, 0, EXPHIL_E_INVALID, "model is NULL");
    refuse(run.model, NULL, NULL, 0, EXPHIL_E_INVALID, "dataset is NULL");
    refuse(run.model, empty, NULL, 0, EXPHIL_E_INVALID, "dataset is empty");
    refuse(run.model, run.dataset, empty, 0, EXPHIL_E_INVALID, "frequencies is empty");
    refuse(run.model, run.dataset, NULL, -1, EXPHIL_E_INVALID, "batch");
    refuse(run.model, run.dataset, NULL, 5000, EXPHIL_E_INVALID, "batch");
    refuse(run.model, h.dataset, NULL, 0, EXPHIL_E_MISMATCH, "context");
    cancelled = 1;
    refuse(run.model, run.dataset, NULL, 0, EXPHIL_E_CANCELLED, "cancelled");
    cancelled = 0;
    exphil_report report = EXPHIL_REPORT_INIT;
    assert_int_equal(exphil_evaluate(run.model, run.dataset, NULL, NULL, 0, NULL, NULL), EXPHIL_E_INVALID);
    report.struct_size = 8;
    assert_int_equal(exphil_evaluate(run.model, run.dataset, NULL, NULL, 0, &report, NULL), EXPHIL_E_INVALID);
    report.struct_size = sizeof report;
    assert_int_equal(exphil_trainer_evaluate(run.trainer, 5, run.dataset, NULL, &report, NULL),
                     EXPHIL_E_INVALID);
    assert_int_equal(
        exphil_trainer_evaluate(run.trainer, EXPHIL_WEIGHTS_AVERAGED, run.dataset, NULL, &report, NULL),
        EXPHIL_E_STATE);
    exphil_dataset_destroy(empty);
    hand_free(&h);
    train_end(&run);
}

/* Rows that overflow inside the net: said, not averaged in. */
static void overflow_is_said(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    float floats[3 * 13];
    int32_t ids[6] = {0}, done[9] = {0};
    for (int i = 0; i < 39; i++) floats[i] = 3e38f;
    assert_ok(exphil_dataset_add_rows(run.dataset, 99, 3, floats, ids, done, NULL));
    refuse(run.model, run.dataset, NULL, 0, EXPHIL_E_NUMERIC, "head buttons is not finite");
    train_end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_model_by_hand),
        cmocka_unit_test(losses_by_hand),
        cmocka_unit_test(delays_by_hand),
        cmocka_unit_test(windows_by_hand),
        cmocka_unit_test(frequencies_of_other_data),
        cmocka_unit_test(a_session_sees_the_same),
        cmocka_unit_test(bad_calls_are_refused),
        cmocka_unit_test(overflow_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
