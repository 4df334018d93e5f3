/* Ranks that train a joint batch: the run of one rank with all lanes to rounding, the same bits on all ranks, and what one
 * cannot do none does. */
#include "ranks_case.h"

#include <exphil/conditions.h>
#include <exphil/ranks.h>
#include <math.h>
#include <stdlib.h>

enum { UPDATES = 100 };

/* Episodes end at different times, so that masks and resets differ from rank to rank, and the end of an epoch is padded. */
static train_plan plan_of(const char *blocks, int32_t type)
{
    train_plan plan = train_plan_of(blocks, EXPHIL_MODE_CARRY);
    plan.model.type = type;
    plan.sampling.batch = 7;
    plan.sampling.time = 6;
    plan.sampling.segment_frames = 25;
    plan.adam.ema_decay = 0.9;
    return plan;
}

static void near_one_rank(train_plan plan, double bar)
{
    ranks_case one = {.plan = plan, .updates = UPDATES};
    ranks_case_run(&one);
    ranks_case_agree(&one);
    for (int32_t ranks = 1; ranks <= 4; ranks++) {
        ranks_case several = {.plan = plan, .ranks = ranks, .updates = UPDATES};
        ranks_case_run(&several);
        ranks_case_agree(&several);
        double apart = ranks_case_distance(&several, &one);
        if (!(apart <= bar)) fail_msg("%d ranks are %g from one", ranks, apart);
        if (ranks == 1) assert_true(apart == 0.0);
        if (ranks == 1) assert_memory_equal(&several.metrics[0].loss, &one.metrics[0].loss, sizeof(double));
        assert_int_equal(several.metrics[0].frames, one.metrics[0].frames);
        assert_int_equal(several.epoch[0], one.epoch[0]);
        assert_int_equal(several.index[0], one.index[0]);
        ranks_case_free(&several);
    }
    ranks_case_free(&one);
}

static void doubles(void **state)
{
    near_one_rank(plan_of("lstm", EXPHIL_TYPE_F64), 1e-6);
    near_one_rank(plan_of("mamba", EXPHIL_TYPE_F64), 1e-6);
}

static void floats(void **state)
{
    near_one_rank(plan_of("lstm", EXPHIL_TYPE_F32), 1e-6);
    near_one_rank(plan_of("mamba", EXPHIL_TYPE_F32), 1e-6);
}

static void ring_and_window(void **state)
{
    train_plan ring = plan_of("gru", EXPHIL_TYPE_F64), window = train_plan_of("mlp", EXPHIL_MODE_WINDOW);
    ring.sampling.segment_frames = 0;
    near_one_rank(ring, 1e-6);
    window.model.type = EXPHIL_TYPE_F64;
    window.sampling.batch = 10;
    window.sampling.last_only = 1;
    window.sampling.shuffle_frames = 1024;
    near_one_rank(window, 1e-6);
}

static void all_that_is_drawn(void **state)
{
    const exphil_condition_spec condition = {.name = "who", .values = 3, .width = 4, .mask = 0.3f};
    train_plan plan = plan_of("lstm", EXPHIL_TYPE_F64);
    plan.model.conditions = &condition;
    plan.model.condition_count = 1;
    plan.model.delay_frames = 2;
    plan.sampling.drop_past = 0.3;
    plan.sampling.workers = 2;
    plan.trainer.own_past = 0.5;
    plan.trainer.accumulate = 3;
    near_one_rank(plan, 1e-6);
}

/* ---- what fails --------------------------------------------------------------------------------------------------- */

/* Whichever call of all_reduce fails, on all ranks or on one: nothing has changed, and the next call of step goes on. */
static void failures_change_nothing(void **state)
{
    train_plan plan = plan_of("gru", EXPHIL_TYPE_F32);
    plan.trainer.accumulate = 2;
    ranks_case calm = {.plan = plan, .ranks = 3, .updates = 4};
    ranks_case_run(&calm);
    ranks_case_agree(&calm);
    for (int64_t at = 1; at <= calm.calls; at++) {
        ranks_case other = {.plan = plan, .ranks = 3, .updates = 4, .how = {at, -1, false}, .again = 1};
        ranks_case_run(&other);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(other.status[r], EXPHIL_E_IO);
            assert_non_null(strstr(other.error[r].message, "all_reduce failed with 78"));
            assert_memory_equal(other.weights[r], calm.weights[0], calm.weights_bytes);
            assert_int_equal(other.index[r], calm.index[0]);
        }
        ranks_case_free(&other);
    }
    ranks_case_free(&calm);
}

/* ---- what one rank cannot ------------------------------------------------------------------------------------------ */

/* A rank asks its host whether it may go on; the host of rank 1 says no, once. */
typedef struct asked {
    int64_t at, asked;
    train_plan plan;
    exphil_status status[4];
    exphil_error error;
    unsigned char *all;
    size_t bytes;
} asked;

static int32_t says_no(void *user)
{
    asked *a = user;
    return ++a->asked == a->at;
}

static void cancelled_rank(thread_rank *rank)
{
    asked *a = rank->user;
    train_plan own = ranks_case_plan(&a->plan, rank);
    own.cancel = says_no;
    own.cancel_user = a;
    train_run run = train_begin(&own);
    a->asked = 0;
    for (int u = 0; u < 4; u++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        a->status[u] = exphil_trainer_step(run.trainer, NULL, &error);
        if (a->status[u] < 0) a->error = error;
    }
    a->all = train_snapshot(run.trainer, &a->bytes);
    train_end(&run);
}

static void all_are_cancelled_with_one(void **state)
{
    asked a[3], calm[3];
    void *user[3] = {&a[0], &a[1], &a[2]}, *others[3] = {&calm[0], &calm[1], &calm[2]};
    for (int r = 0; r < 3; r++) {
        a[r] = (asked){.at = r == 1 ? 2 : 0, .plan = plan_of("mlp", EXPHIL_TYPE_F32)};
        calm[r] = (asked){.at = 0, .plan = plan_of("mlp", EXPHIL_TYPE_F32)};
    }
    thread_ranks_run(3, cancelled_rank, user, (thread_how){0, -1, false});
    thread_ranks_run(3, cancelled_rank, others, (thread_how){0, -1, false});
    int failed = 0;
    for (int u = 0; u < 4; u++) {
        for (int r = 0; r < 3; r++) assert_int_equal(a[r].status[u], a[0].status[u]);
        failed += a[0].status[u] < 0;
        if (a[0].status[u] < 0) assert_int_equal(a[0].status[u], EXPHIL_E_CANCELLED);
    }
    assert_int_equal(failed, 1);
    assert_string_equal(a[0].error.message, "rank 1 was cancelled by its host");
    for (int r = 0; r < 3; r++) {
        free(a[r].all);
        free(calm[r].all);
    }
}

/* ---- batches of the host's own ------------------------------------------------------------------------------------- */

typedef struct by_hand {
    exphil_status status[3];
    exphil_error error;
    exphil_metrics metrics;
    void *weights;
    size_t bytes;
    int64_t lanes, first;
    bool bad; /* the second batch */
} by_hand;

static train_plan hand_plan(void)
{
    train_plan plan = plan_of("lstm", EXPHIL_TYPE_F64);
    plan.by_hand = true;
    plan.trainer.own_past = 0.4;
    return plan;
}

static void hand_steps(by_hand *h, exphil_trainer *trainer, const exphil_model *model)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    for (int u = 0; u < 3; u++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        exphil_batch batch = train_batch(model, h->lanes, 6, h->first + 2 * u);
        if (h->bad && u == 1) ((float *)(uintptr_t)batch.mask)[3] = -1.0f;
        h->status[u] = exphil_trainer_step_batch(trainer, &batch, &metrics, &error);
        if (h->status[u] < 0) h->error = error;
        train_batch_free(&batch);
    }
    h->metrics = metrics;
    h->bytes = trainer->arena_bytes;
    h->weights = malloc(h->bytes);
    memcpy(h->weights, trainer->weights, h->bytes);
}

static void hand_rank(thread_rank *rank)
{
    train_plan plan = hand_plan(), own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    hand_steps(rank->user, run.trainer, run.model);
    train_end(&run);
}

/* One with three lanes, one with one: the joint batch has the lanes in the order of the ranks. */
static void unequal_batches(void **state)
{
    by_hand one = {.lanes = 4}, h[2] = {{.lanes = 3}, {.lanes = 1, .first = 3}};
    void *user[2] = {&h[0], &h[1]};
    train_plan plan = hand_plan();
    train_run run = train_begin(&plan);
    hand_steps(&one, run.trainer, run.model);
    train_end(&run);
    thread_ranks_run(2, hand_rank, user, (thread_how){0, -1, false});
    assert_memory_equal(h[0].weights, h[1].weights, h[0].bytes);
    assert_int_equal(h[0].metrics.frames, one.metrics.frames);
    for (size_t i = 0; i < one.bytes / sizeof(double); i++)
        assert_true(fabs(((double *)h[0].weights)[i] - ((double *)one.weights)[i]) < 1e-9);
    for (int r = 0; r < 2; r++) free(h[r].weights);
    free(one.weights);
}

static void bad_batch_of_one(void **state)
{
    by_hand h[2] = {{.lanes = 2}, {.lanes = 2, .first = 2, .bad = true}};
    void *user[2] = {&h[0], &h[1]};
    thread_ranks_run(2, hand_rank, user, (thread_how){0, -1, false});
    assert_int_equal(h[0].status[1], EXPHIL_E_IO);
    assert_int_equal(h[1].status[1], EXPHIL_E_INVALID);
    ranks_case_heard(&h[0].error, "rank 1 failed with EXPHIL_E_INVALID in training a batch", &h[1].error);
    assert_non_null(strstr(h[1].error.message, "mask"));
    for (int u = 0; u < 3; u += 2)
        for (int r = 0; r < 2; r++) assert_int_equal(h[r].status[u], EXPHIL_OK);
    assert_memory_equal(h[0].weights, h[1].weights, h[0].bytes);
    for (int r = 0; r < 2; r++) free(h[r].weights);
}

/* ---- agreeing ------------------------------------------------------------------------------------------------------- */

static void agreeing_rank(thread_rank *rank)
{
    double *numbers = rank->user;
    train_plan plan = plan_of("mlp", EXPHIL_TYPE_F32), own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    exphil_error error = EXPHIL_ERROR_INIT;
    numbers[0] = rank->rank == 1;
    numbers[1] = -rank->rank - 1;
    assert_ok(exphil_trainer_agree(run.trainer, numbers, 2, &error));
    double wrong[2] = {0, rank->rank == 1 ? NAN : 0};
    exphil_status status = exphil_trainer_agree(run.trainer, wrong, 2, &error);
    assert_int_equal(status, rank->rank == 1 ? EXPHIL_E_INVALID : EXPHIL_E_IO);
    assert_true(wrong[0] == 0);
    assert_int_equal(exphil_trainer_agree(run.trainer, numbers, 17, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_trainer_agree(run.trainer, NULL, 1, &error), EXPHIL_E_INVALID);
    train_end(&run);
}

static void ranks_agree_on_numbers(void **state)
{
    double numbers[3][2], alone[2] = {-3, 4};
    void *user[3] = {numbers[0], numbers[1], numbers[2]};
    thread_ranks_run(3, agreeing_rank, user, (thread_how){0, -1, false});
    for (int r = 0; r < 3; r++) {
        assert_true(numbers[r][0] == 1.0);
        assert_true(numbers[r][1] == -1.0);
    }
    train_plan plan = plan_of("mlp", EXPHIL_TYPE_F32);
    train_run run = train_begin(&plan);
    assert_ok(exphil_trainer_agree(run.trainer, alone, 2, NULL));
    assert_true(alone[0] == -3.0 && alone[1] == 4.0);
    train_end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles),
        cmocka_unit_test(floats),
        cmocka_unit_test(ring_and_window),
        cmocka_unit_test(all_that_is_drawn),
        cmocka_unit_test(failures_change_nothing),
        cmocka_unit_test(all_are_cancelled_with_one),
        cmocka_unit_test(unequal_batches),
        cmocka_unit_test(bad_batch_of_one),
        cmocka_unit_test(ranks_agree_on_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
