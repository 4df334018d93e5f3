/* Shards: the same bits for any number of ranks that divides them, over a resume with another number too. */
#include "ranks_case.h"

#include <exphil/plan.h>
#include <stdlib.h>

enum { UPDATES = 100, SHARDS = 4 };

static train_plan plan_of(const char *blocks)
{
    train_plan plan = train_plan_of(blocks, EXPHIL_MODE_CARRY);
    plan.sampling.batch = 8;
    plan.sampling.time = 6;
    plan.sampling.segment_frames = 25;
    plan.adam.ema_decay = 0.9;
    plan.trainer.shards = SHARDS;
    return plan;
}

/* ranks 0: one trainer without any. */
static ranks_case run(const train_plan *plan, int32_t ranks, int64_t updates, const char *resumed,
                      const char *saved)
{
    ranks_case c = {.plan = *plan,
                    .ranks = ranks,
                    .updates = updates,
                    .how = {0, -1, true},
                    .resumed = resumed,
                    .saved = saved};
    ranks_case_run(&c);
    ranks_case_agree(&c);
    return c;
}

static void same(const ranks_case *a, const ranks_case *b)
{
    assert_int_equal(a->weights_bytes, b->weights_bytes);
    if (memcmp(a->weights[0], b->weights[0], a->weights_bytes) != 0)
        fail_msg("%d and %d ranks: %g apart", a->ranks, b->ranks, ranks_case_distance(a, b));
    assert_memory_equal(&a->metrics[0].loss, &b->metrics[0].loss, sizeof(double));
    assert_memory_equal(a->metrics[0].head_loss, b->metrics[0].head_loss, sizeof a->metrics[0].head_loss);
    assert_memory_equal(&a->metrics[0].gradient_norm, &b->metrics[0].gradient_norm, sizeof(double));
    assert_int_equal(a->metrics[0].frames, b->metrics[0].frames);
    assert_int_equal(a->index[0], b->index[0]);
}

static void any_number_of_ranks(const train_plan *plan)
{
    ranks_case one = run(plan, 0, UPDATES, NULL, NULL);
    for (int32_t ranks = 1; ranks <= SHARDS; ranks *= 2) {
        ranks_case c = run(plan, ranks, UPDATES, NULL, NULL);
        same(&c, &one);
        ranks_case_free(&c);
    }
    train_plan whole = *plan;
    whole.trainer.shards = 0;
    ranks_case other = run(&whole, 0, UPDATES, NULL, NULL);
    double apart = ranks_case_distance(&other, &one);
    if (!(apart > 0.0 && apart < 1e-3)) fail_msg("shards are %g from a batch at once", apart);
    ranks_case_free(&other);
    ranks_case_free(&one);
}

static void same_bits(void **state)
{
    static const char *const blocks[] = {"lstm", "mamba", "attention mlp"};
    for (int i = 0; i < 3; i++) {
        train_plan plan = plan_of(blocks[i]);
        any_number_of_ranks(&plan);
    }
}

static void same_bits_in_windows(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_WINDOW);
    plan.sampling.batch = 8;
    plan.sampling.last_only = 1;
    plan.trainer.shards = 8;
    any_number_of_ranks(&plan);
}

static void same_bits_of_all_that_is_drawn(void **state)
{
    const exphil_condition_spec condition = {.name = "who", .values = 3, .width = 4, .mask = 0.3f};
    train_plan plan = plan_of("lstm");
    plan.model.conditions = &condition;
    plan.model.condition_count = 1;
    plan.model.delay_frames = 2;
    plan.sampling.drop_past = 0.3;
    plan.sampling.balance_change = 0.5; /* weights that are no whole numbers */
    plan.trainer.own_past = 0.5;
    any_number_of_ranks(&plan);
}

static void same_bits_over_a_resume(void **state)
{
    train_plan plan = plan_of("lstm");
    ranks_case whole = run(&plan, 0, 30, NULL, NULL);
    for (int32_t before = 1; before <= 4; before *= 2)
        for (int32_t after = 1; after <= 4; after *= 2) {
            ranks_case first = run(&plan, before, 13, NULL, "half"), c = run(&plan, after, 17, "half", NULL);
            same(&c, &whole);
            ranks_case_free(&first);
            ranks_case_free(&c);
        }
    ranks_case_free(&whole);
    test_folder_remove();
}

/* ---- refusals ------------------------------------------------------------------------------------------------------- */

typedef struct attempt {
    train_plan plan;
    int32_t reduction;
    exphil_status status[4];
    exphil_error error[4];
} attempt;

static void try_rank(thread_rank *rank)
{
    attempt *a = rank->user;
    train_plan own = ranks_case_plan(&a->plan, rank);
    exphil_trainer_config how = own.trainer;
    exphil_trainer *trainer = NULL;
    how.reduction = a->reduction;
    own.trainer.communicator = NULL;
    own.trainer.shards = 0;
    own.trainer.accumulate = 0;
    train_run run = train_begin(&own);
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    a->error[rank->rank] = (exphil_error)EXPHIL_ERROR_INIT;
    a->status[rank->rank] = exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &how, &trainer,
                                                  &a->error[rank->rank]);
    exphil_trainer_destroy(trainer);
    train_end(&run);
}

static void refused(train_plan plan, int32_t ranks, int32_t reduction, bool tree, exphil_status status,
                    const char *message)
{
    attempt a = {.plan = plan, .reduction = reduction};
    void *user[4] = {&a, &a, &a, &a};
    thread_ranks_run(ranks, try_rank, user, (thread_how){0, -1, tree});
    for (int r = 0; r < ranks; r++) {
        if (a.status[r] != status) fail_msg("rank %d: %s", r, a.error[r].message);
        if (message) assert_string_equal(a.error[r].message, message);
    }
}

static void what_cannot_be(void **state)
{
    train_plan plan = plan_of("mlp");
    refused(plan, 4, EXPHIL_REDUCTION_SUMS, true, EXPHIL_OK, NULL);
    refused(plan, 2, EXPHIL_REDUCTION_SUMS, false, EXPHIL_OK, NULL); /* two ranks are a tree */
    refused(plan, 4, EXPHIL_REDUCTION_SUMS, false, EXPHIL_E_UNSUPPORTED,
            "communicator: shards of 4 ranks need sums by a tree, ((0 + 1) + (2 + 3)) + ...");
    refused(plan, 3, EXPHIL_REDUCTION_SUMS, true, EXPHIL_E_INVALID,
            "trainer config: 3 ranks do not divide 4 shards");
    refused(plan, 2, EXPHIL_REDUCTION_MEANS, true, EXPHIL_E_INVALID,
            "trainer config: shards of several ranks need EXPHIL_REDUCTION_SUMS");
    plan.trainer.accumulate = 2;
    refused(
        plan, 2, EXPHIL_REDUCTION_SUMS, true, EXPHIL_E_UNSUPPORTED,
        "trainer config: accumulate is 2 with shards: a larger batch in more shards takes no more memory");
    plan.trainer.accumulate = 0;
    plan.trainer.shards = 6;
    refused(plan, 2, EXPHIL_REDUCTION_SUMS, true, EXPHIL_E_INVALID,
            "trainer config: shards is 6, must be a power of two up to 1024");
    plan.trainer.shards = 16;
    refused(plan, 2, EXPHIL_REDUCTION_SUMS, true, EXPHIL_E_INVALID,
            "trainer config: shards is 16, which does not divide a batch of 8");
}

/* A loss of the host's has no shards, and a checkpoint goes on with as many. */
static void what_shards_do_not_do(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_forward forward = EXPHIL_FORWARD_INIT;
    train_plan plan = plan_of("mlp");
    train_run run = train_begin(&plan);
    exphil_batch batch = train_batch(run.model, 8, 6, 0);
    (void)train_steps(&run, 1);
    assert_int_equal(exphil_trainer_forward(run.trainer, &batch, NULL, 0, &forward, &error),
                     EXPHIL_E_UNSUPPORTED);
    assert_ok(exphil_trainer_save(run.trainer, test_path("sharded"), NULL));
    train_batch_free(&batch);
    train_end(&run);
    plan.trainer.shards = 0;
    run = train_begin(&plan);
    assert_int_equal(exphil_trainer_resume(run.trainer, test_path("sharded"), &error), EXPHIL_E_MISMATCH);
    assert_non_null(strstr(error.message, "checkpoint was made with shards 4, this run has 0"));
    train_end(&run);
    test_folder_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(same_bits_in_windows),
        cmocka_unit_test(same_bits_of_all_that_is_drawn),
        cmocka_unit_test(same_bits_over_a_resume),
        cmocka_unit_test(what_cannot_be),
        cmocka_unit_test(what_shards_do_not_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
