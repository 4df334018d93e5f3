/* A trainer goes on with other ranks: carried state goes with its lanes, what no rank has starts from zero. */
#include "ranks_case.h"

#include <exphil/ranks.h>
#include <stdio.h>
#include <stdlib.h>

enum { BEFORE = 5, AFTER = 7 };
static test_meeting *together;

static train_plan plan_of(const char *blocks)
{
    train_plan plan = train_plan_of(blocks, EXPHIL_MODE_CARRY);
    plan.model.type = EXPHIL_TYPE_F64;
    plan.sampling.batch = 6;
    plan.sampling.time = 5;
    plan.adam.ema_decay = 0.9;
    plan.trainer.own_past = 0.2;
    plan.trainer.accumulate = 2;
    return plan;
}

/* `ranks` train, those from `left` on are gone, the others go on with each other. */
typedef struct change {
    const char *blocks;
    int32_t ranks, left;
    bool without; /* the one that is left has no communicator */
    struct thread_ranks *others;
    void *weights[THREAD_RANKS_MOST];
    size_t bytes;
    int64_t epoch, index, frames;
    char said[256]; /* the warning of rank 0 */
} change;

static void hear(void *user, exphil_log_level level, const char *message)
{
    snprintf(user, sizeof((change *)NULL)->said, "%s", message);
}

static exphil_prefetcher *lanes_of(const train_run *run, const train_plan *plan, const thread_rank *rank)
{
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_prefetcher *prefetcher = NULL;
    assert_ok(exphil_model_sampling(run->model, &sampling, NULL));
    sampling.batch = plan->sampling.batch;
    sampling.time = plan->sampling.time;
    sampling.seed = plan->sampling.seed;
    assert_ok(exphil_rank_lanes(sampling.batch, rank->rank, rank->ranks, &sampling.first_lane,
                                &sampling.lane_count, NULL));
    assert_ok(exphil_prefetcher_create(run->dataset, &sampling, &prefetcher, NULL));
    return prefetcher;
}

static void keep(change *c, int32_t rank, const train_run *run)
{
    c->weights[rank] = malloc(run->trainer->arena_bytes);
    memcpy(c->weights[rank], run->trainer->weights, run->trainer->arena_bytes);
    if (rank) return;
    c->bytes = run->trainer->arena_bytes;
    c->epoch = run->trainer->epoch;
    c->index = run->trainer->index;
    c->frames = run->trainer->frames;
}

static void one_rank(thread_rank *rank)
{
    change *c = rank->user;
    train_plan plan = plan_of(c->blocks), own = ranks_case_plan(&plan, rank);
    if (rank->rank == 0) {
        own.log = hear;
        own.log_user = c->said;
        own.log_level = EXPHIL_LOG_WARNING;
    }
    train_run run = train_begin(&own);
    (void)train_steps(&run, BEFORE);
    if (rank->rank < c->left) {
        thread_rank *other = thread_ranks_of(c->others, rank->rank);
        exphil_prefetcher *prefetcher = lanes_of(&run, &plan, other);
        exphil_error error = EXPHIL_ERROR_INIT;
        if (exphil_trainer_set_communicator(run.trainer, c->without ? NULL : &other->communicator, prefetcher,
                                            &error) < 0)
            fail_msg("rank %d: %s", rank->rank, error.message);
        exphil_prefetcher_destroy(run.prefetcher);
        run.prefetcher = prefetcher;
        (void)train_steps(&run, AFTER);
        keep(c, rank->rank, &run);
        thread_ranks_leave(other);
    }
    train_end(&run);
}

/* What one rank with all lanes comes to, if those from `lost` on start from zero in between. */
static change alone(const char *blocks, int64_t lost)
{
    change c = {.blocks = blocks};
    train_plan plan = plan_of(blocks);
    train_run run = train_begin(&plan);
    (void)train_steps(&run, BEFORE);
    xph_feed *feed = &run.trainer->feed;
    size_t each = feed->state_bytes / (size_t)feed->batch;
    if (each)
        memset((char *)feed->state[0] + (size_t)lost * each, 0, feed->state_bytes - (size_t)lost * each);
    (void)train_steps(&run, AFTER);
    keep(&c, 0, &run);
    train_end(&run);
    return c;
}

static void same(const change *c, const change *one, const char *what)
{
    double worst = 0.0;
    for (size_t i = 0; i < one->bytes / sizeof(double); i++) {
        double apart = ((double *)c->weights[0])[i] - ((double *)one->weights[0])[i];
        worst = apart > worst ? apart : -apart > worst ? -apart : worst;
    }
    if (!(worst < 1e-8)) fail_msg("%s, %d ranks, %d left: %g", what, c->ranks, c->left, worst);
    for (int r = 1; r < c->left; r++) assert_memory_equal(c->weights[r], c->weights[0], c->bytes);
    assert_int_equal(c->epoch, one->epoch);
    assert_int_equal(c->index, one->index);
    assert_int_equal(c->frames, one->frames);
}

static void goes_on(const char *blocks, int32_t ranks, int32_t left, bool without)
{
    change c = {.blocks = blocks,
                .ranks = ranks,
                .left = left,
                .without = without,
                .others = thread_ranks_open(left, (thread_how){0, -1, false})};
    void *user[THREAD_RANKS_MOST];
    int64_t lost = 0, count = 0;
    for (int r = 0; r < THREAD_RANKS_MOST; r++) user[r] = &c;
    thread_ranks_run(ranks, one_rank, user, (thread_how){0, -1, false});
    assert_ok(exphil_rank_lanes(6, left - 1, ranks, &lost, &count, NULL));
    lost += count;
    change one = alone(blocks, lost);
    same(&c, &one, blocks);
    char expected[256];
    snprintf(expected, sizeof expected,
             "trainer: no rank has the carried state of %d of 6 lanes, they start from zero",
             (int)(6 - lost));
    assert_string_equal(c.said, left < ranks ? expected : "");
    for (int r = 0; r < left; r++) free(c.weights[r]);
    free(one.weights[0]);
    thread_ranks_close(c.others);
}

static void fewer_go_on(void **state)
{
    goes_on("lstm", 3, 2, false);
    goes_on("lstm", 4, 1, false);
    goes_on("lstm", 3, 1, true);
    goes_on("mlp", 3, 2, false);
}

static void as_many_go_on(void **state)
{
    goes_on("lstm", 3, 3, false);
    goes_on("mamba", 1, 1, false);
    goes_on("lstm", 1, 1, true);
}

/* Rank 0 trains without a communicator and saves; the others resume that, also without, and all go on together. */
static void comes_later(thread_rank *rank)
{
    change *c = rank->user;
    train_plan plan = plan_of(c->blocks);
    plan.trainer.reduction = EXPHIL_REDUCTION_SUMS;
    train_run run = train_begin(&plan);
    if (rank->rank == 0) {
        (void)train_steps(&run, BEFORE);
        assert_ok(exphil_trainer_save(run.trainer, test_path("later"), NULL));
    }
    (void)test_meeting_come(together);
    if (rank->rank) assert_ok(exphil_trainer_resume(run.trainer, test_path("later"), NULL));
    exphil_prefetcher *prefetcher = lanes_of(&run, &plan, rank);
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_trainer_set_communicator(run.trainer, &rank->communicator, prefetcher, &error) < 0)
        fail_msg("rank %d: %s", rank->rank, error.message);
    exphil_prefetcher_destroy(run.prefetcher);
    run.prefetcher = prefetcher;
    (void)train_steps(&run, AFTER);
    keep(c, rank->rank, &run);
    train_end(&run);
}

static void more_come(void **state)
{
    change c = {.blocks = "lstm", .ranks = 3, .left = 3}, one = alone("lstm", 6);
    void *user[3] = {&c, &c, &c};
    (void)test_folder();
    together = test_meeting_make(3);
    thread_ranks_run(3, comes_later, user, (thread_how){0, -1, false});
    test_meeting_free(together);
    same(&c, &one, "more come");
    for (int r = 0; r < 3; r++) free(c.weights[r]);
    free(one.weights[0]);
    test_folder_remove();
}

/* ---- refusals ------------------------------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    train_plan plan = plan_of("lstm");
    struct thread_ranks *all = thread_ranks_open(1, (thread_how){0, -1, false});
    thread_rank *rank = thread_ranks_of(all, 0);
    train_run plain = train_begin(&plan);
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(
        exphil_trainer_set_communicator(plain.trainer, &rank->communicator, plain.prefetcher, &error),
        EXPHIL_E_STATE);
    train_end(&plain);
    train_plan own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    (void)train_steps(&run, 2);
    size_t bytes[2];
    unsigned char *before = train_snapshot(run.trainer, &bytes[0]);
    assert_int_equal(exphil_trainer_set_communicator(NULL, &rank->communicator, run.prefetcher, &error),
                     EXPHIL_E_INVALID);
    assert_int_equal(exphil_trainer_set_communicator(run.trainer, &rank->communicator, NULL, &error),
                     EXPHIL_E_INVALID);
    plan.sampling.seed = 99;
    exphil_prefetcher *other = lanes_of(&run, &plan, rank);
    assert_int_equal(exphil_trainer_set_communicator(run.trainer, &rank->communicator, other, &error),
                     EXPHIL_E_MISMATCH);
    assert_non_null(strstr(error.message, "of which lanes alone may differ"));
    exphil_prefetcher_destroy(other);
    unsigned char *after = train_snapshot(run.trainer, &bytes[1]);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(before, after, bytes[0]);
    (void)train_steps(&run, 1);
    train_end(&run);
    own.by_hand = true;
    run = train_begin(&own);
    assert_int_equal(exphil_trainer_set_communicator(run.trainer, &rank->communicator, NULL, &error),
                     EXPHIL_E_UNSUPPORTED);
    train_end(&run);
    free(before);
    free(after);
    thread_ranks_close(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fewer_go_on), cmocka_unit_test(as_many_go_on),
                                       cmocka_unit_test(more_come), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
