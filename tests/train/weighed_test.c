/* Updates by weighed rows: those of a host that masks by hand, to the last bit; the loss is the weighted mean; a game of
 * weight 0 is as one that is not there; checkpoints know the weights; evaluation does not. */
#include "train_case.h"

#include "file/file.h"

#include <math.h>
#include <stdlib.h>

/* A run whose data weigh what `say` says (NULL: 1). */
typedef void say_fn(exphil_dataset *dataset);

static train_run begin(const train_plan *plan, say_fn *say)
{
    train_plan by_hand = *plan;
    by_hand.by_hand = true;
    train_run run = train_begin(&by_hand);
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT, given = plan->sampling;
    if (say) say(run.dataset);
    exphil_trainer_destroy(run.trainer);
    assert_ok(exphil_model_sampling(run.model, &sampling, NULL));
    given.mode = sampling.mode;
    given.delay_frames = sampling.delay_frames;
    given.action_slots = sampling.action_slots;
    if (sampling.time) given.time = sampling.time;
    assert_ok(exphil_prefetcher_create(run.dataset, &given, &run.prefetcher, NULL));
    exphil_optimizer_destroy(run.optimizer);
    assert_ok(exphil_optimizer_create(run.model, &plan->adam, &run.optimizer, NULL));
    assert_ok(exphil_trainer_create(run.model, run.optimizer, plan->by_hand ? NULL : run.prefetcher,
                                    &plan->trainer, &run.trainer, NULL));
    return run;
}

static void some(exphil_dataset *dataset)
{
    assert_ok(exphil_dataset_weight(dataset, 0, 0, 10, 25, 0, NULL));
    assert_ok(exphil_dataset_weight(dataset, 1, 0, 20, INT32_MAX, 2.5, NULL));
    assert_ok(exphil_dataset_weight(dataset, 3, 0, INT32_MIN, INT32_MAX, 0, NULL));
    assert_ok(exphil_dataset_weight(dataset, 4, 0, 30, 60, 0.125, NULL));
}

static float of_some(int64_t game, int64_t t)
{
    if (game == 0) return t >= 10 && t <= 25 ? 0 : 1;
    if (game == 1) return t >= 20 ? 2.5f : 1;
    if (game == 3) return 0;
    return game == 4 && t >= 30 && t <= 60 ? 0.125f : 1;
}

/* Rows of the task are found again by their floats. */
static bool which_row(const float *floats, int64_t *game, int64_t *t)
{
    for (*game = 0; *game < 5; ++*game)
        for (*t = 0; *t < train_episode_frames(*game); ++*t) {
            float want[13];
            int32_t ids[2], action[3];
            train_row(*game, *t, want, ids, action);
            if (memcmp(floats, want, sizeof want) == 0) return true;
        }
    return false;
}

/* But for the place in the epoch, which a trainer by hand does not have. */
static void same_but_place(const train_run *a, const train_run *b)
{
    size_t bytes;
    unsigned char *x = train_snapshot(a->trainer, &bytes), *y = train_snapshot(b->trainer, &bytes);
    assert_memory_equal(x, y, bytes - 2 * sizeof(int64_t));
    free(x);
    free(y);
}

static void masks_by_hand(void **state)
{
    for (int32_t kind = 0; kind < 4; kind++) {
        train_plan plan = train_plan_of(kind % 2 ? "gru attention" : "lstm mamba", kind % 2);
        float *mask = NULL;
        plan.adam.ema_decay = 0.9;
        plan.model.delay_frames = kind / 2 * 2;
        train_run run = begin(&plan, some), plain = begin(&plan, NULL);
        plan.by_hand = true;
        train_run hand = begin(&plan, NULL);
        int64_t zero = 0;
        for (int update = 0; update < 12; update++) {
            exphil_batch batch = EXPHIL_BATCH_INIT;
            exphil_status status = exphil_prefetcher_next(plain.prefetcher, &batch, NULL);
            if (status == EXPHIL_END) status = exphil_prefetcher_next(plain.prefetcher, &batch, NULL);
            assert_ok(status);
            int64_t rows = batch.batch * batch.time, game, t;
            mask = realloc(mask, (size_t)rows * sizeof *mask);
            for (int64_t row = 0; row < rows; row++) {
                mask[row] = batch.mask[row];
                if (mask[row] > 0 && which_row(batch.floats + row * 13, &game, &t))
                    mask[row] *= of_some(game, t);
                zero += batch.mask[row] > 0 && !(mask[row] > 0);
            }
            batch.mask = mask;
            exphil_metrics a = train_steps(&run, 1), b = EXPHIL_METRICS_INIT;
            assert_ok(exphil_trainer_step_batch(hand.trainer, &batch, &b, NULL));
            assert_true(a.loss == b.loss && a.gradient_norm == b.gradient_norm && a.frames == b.frames);
        }
        assert_true(zero > 10);
        same_but_place(&run, &hand);
        free(mask);
        train_end(&run);
        train_end(&plain);
        train_end(&hand);
    }
}

/* Of the first batch, whose rows weigh a, b, or nothing. */
static double first_loss(double of_even, double of_odd, double *weight)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.by_hand = true;
    train_run run = begin(&plan, NULL);
    exphil_batch batch = train_batch(run.model, 4, 8, 0);
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    float *mask = (float *)(uintptr_t)batch.mask;
    *weight = 0;
    for (int64_t row = 0; row < 32; row++) {
        mask[row] = (float)(row % 3 ? of_odd : of_even);
        *weight += (double)mask[row];
    }
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, &metrics, NULL));
    train_batch_free(&batch);
    train_end(&run);
    return metrics.loss;
}

/* sum w l / sum w, over both kinds of rows and over each alone. */
static void loss_is_the_weighted_mean(void **state)
{
    double even, odd, both, scaled;
    double even_loss = first_loss(3, 0, &even), odd_loss = first_loss(0, 0.25, &odd),
           loss = first_loss(3, 0.25, &both), again = first_loss(6, 0.5, &scaled);
    assert_true(fabs(loss - (even * even_loss + odd * odd_loss) / both) < 1e-6 * loss);
    assert_true(fabs(even_loss - odd_loss) > 1e-3);
    assert_true(again == loss); /* what counts is how weights compare */
}

static void last_is_nothing(exphil_dataset *dataset)
{
    assert_ok(exphil_dataset_weight(dataset, 2, 0, INT32_MIN, INT32_MAX, 0, NULL));
}

/* In order: batches of the games before it have rows of the last one where the others have padding. */
static void a_game_of_weight_zero_is_not_there(void **state)
{
    for (int32_t kind = 0; kind < 2; kind++) {
        train_plan plan = train_plan_of(kind ? "gru attention" : ALL_BLOCKS, kind);
        plan.sampling.in_order = 1;
        plan.sampling.batch = kind ? 4 : 1;
        plan.episodes = 3;
        train_run run = begin(&plan, last_is_nothing);
        plan.episodes = 2;
        train_run without = begin(&plan, NULL);
        exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
        assert_ok(exphil_prefetcher_query(without.prefetcher, &info, NULL));
        assert_true(info.frames_per_epoch % (kind ? 4 : 8) != 0); /* the last batch is shared */
        for (int64_t i = 0; i < info.batches_per_epoch; i++) {
            exphil_metrics a = train_steps(&run, 1), b = train_steps(&without, 1);
            assert_true(a.loss == b.loss && a.gradient_norm == b.gradient_norm && a.frames == b.frames);
        }
        size_t bytes, weights = 4 * run.trainer->arena_bytes;
        unsigned char *x = train_snapshot(run.trainer, &bytes), *y = train_snapshot(without.trainer, &bytes);
        assert_memory_equal(x, y, weights); /* the state went on through rows instead of padding */
        free(x);
        free(y);
        train_end(&run);
        train_end(&without);
    }
}

/* The same in other calls. */
static void some_again(exphil_dataset *dataset)
{
    for (int64_t game = 0; game < 5; game++)
        for (int64_t t = 0; t < train_episode_frames(game); t++)
            assert_ok(exphil_dataset_weight(dataset, (uint64_t)game, 0, (int32_t)t, (int32_t)t,
                                            (double)of_some(game, t), NULL));
}

static void others(exphil_dataset *dataset)
{
    some(dataset);
    assert_ok(exphil_dataset_weight(dataset, 2, 0, 3, 3, 2, NULL));
}

static void refuse(const train_plan *plan, say_fn *say, const char *says)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    train_run run = begin(plan, say);
    assert_int_equal(exphil_trainer_resume(run.trainer, test_path("net"), &error), EXPHIL_E_MISMATCH);
    assert_says(&error, says);
    train_end(&run);
}

static void checkpoints_know_weights(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.sampling.balance_action = 0.5;
    plan.sampling.balance_change = 0.25;
    train_run run = begin(&plan, some);
    (void)train_steps(&run, 7);
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    (void)train_steps(&run, 7);
    train_run second = begin(&plan, some_again);
    assert_ok(exphil_trainer_resume(second.trainer, test_path("net"), NULL));
    (void)train_steps(&second, 7);
    same_but_place(&run, &second);
    train_end(&run);
    train_end(&second);
    refuse(&plan, others, "made with dataset.weights ");
    refuse(&plan, NULL, "this run has 0000000000000000");
    train_plan other = plan;
    other.sampling.balance_action = 0.25;
    refuse(&other, some, "sampling.balance_action 0.5, this run has 0.25");
    other = plan;
    other.sampling.balance_change = 0;
    refuse(&other, some, "sampling.balance_change 0.25, this run has 0");
    other = plan;
    other.sampling.balance_character = 1;
    refuse(&other, some, "sampling.balance_character 0, this run has 1");
    /* without any of it, the file is as before */
    other = train_plan_of("gru", EXPHIL_MODE_CARRY);
    run = begin(&other, NULL);
    (void)train_steps(&run, 1);
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    train_end(&run);
    size_t bytes;
    char *file = test_read(test_path("net.optimizer"), &bytes);
    assert_null(test_find(file, bytes, "dataset.weights", 15));
    assert_null(test_find(file, bytes, "balance", 7));
    assert_non_null(test_find(file, bytes, "sampling.seed", 13));
    free(file);
    refuse(&other, some, "made with dataset.weights 0000000000000000, this run has ");
    test_folder_remove();
}

static void all_but_one(exphil_dataset *dataset)
{
    for (uint64_t game = 1; game < 5; game++)
        assert_ok(exphil_dataset_weight(dataset, game, 0, INT32_MIN, INT32_MAX, 0, NULL));
}

static void evaluation_counts_every_row(void **state)
{
    for (int32_t mode = 0; mode <= 1; mode++) {
        train_plan plan = train_plan_of("gru attention", mode);
        exphil_report a = EXPHIL_REPORT_INIT, b = EXPHIL_REPORT_INIT;
        train_run run = begin(&plan, all_but_one);
        exphil_dataset *plain = train_dataset(run.context, plan.episodes);
        assert_ok(exphil_evaluate(run.model, run.dataset, NULL, NULL, 0, &a, NULL));
        assert_ok(exphil_evaluate(run.model, plain, NULL, NULL, 0, &b, NULL));
        assert_memory_equal(&a, &b, sizeof a);
        exphil_dataset_destroy(plain);
        train_end(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_by_hand),
        cmocka_unit_test(loss_is_the_weighted_mean),
        cmocka_unit_test(a_game_of_weight_zero_is_not_there),
        cmocka_unit_test(checkpoints_know_weights),
        cmocka_unit_test(evaluation_counts_every_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
