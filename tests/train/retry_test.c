/* An update that failed and is called again is one that never failed, to the last bit, in every mode and with every
 * setting that changes what an update is; the same for a save in between. */
#include "retry_case.h"

#include <errno.h>
#include <stdlib.h>

static train_plan plan_of(int32_t mode, int64_t accumulate)
{
    train_plan plan = train_plan_of(mode ? "gru attention" : "mamba lstm attention ffn", mode);
    plan.adam.ema_decay = 0.98;
    plan.adam.decay = 0.01;
    plan.trainer.accumulate = accumulate;
    plan.episodes = 2; /* several epochs, so that ends of them lie within an update */
    plan.sampling.batch = 2;
    return plan;
}

static void each_plan(retry_cause cause)
{
    for (int32_t mode = EXPHIL_MODE_CARRY; mode <= EXPHIL_MODE_WINDOW; mode++)
        for (int64_t accumulate = 1; accumulate <= 3; accumulate++) {
            train_plan plan = plan_of(mode, accumulate);
            retry_as_never_failed(plan, cause, true);
            plan.by_hand = true;
            retry_as_never_failed(plan, cause, true);
        }
}

static void a_failed_reduction(void **state)
{
    each_plan(RETRY_REDUCE);
}

static void a_cancelled_update(void **state)
{
    each_plan(RETRY_CANCEL);
}

static void with_every_setting(void **state)
{
    for (int64_t accumulate = 1; accumulate <= 2; accumulate++) {
        train_plan plan = plan_of(EXPHIL_MODE_CARRY, accumulate);
        plan.threads = 3;
        plan.trainer.checkpoint_blocks = 1;
        plan.trainer.fake_quantize = EXPHIL_TYPE_I8;
        retry_as_never_failed(plan, RETRY_REDUCE, true);
        plan.trainer.fake_quantize = EXPHIL_TYPE_BF16;
        plan.trainer.activations = EXPHIL_TYPE_BF16;
        plan.trainer.checkpoint_blocks = 0;
        plan.sampling.segment_frames = 20;
        retry_as_never_failed(plan, RETRY_REDUCE, true);
    }
    train_plan plan = plan_of(EXPHIL_MODE_CARRY, 1);
    plan.model.type = EXPHIL_TYPE_F64;
    retry_as_never_failed(plan, RETRY_REDUCE, true);
}

/* Rows that turn out damaged while an update gathers its batches: it took none of them, whenever it is called. */
static void damaged_rows_change_nothing(int64_t accumulate)
{
    train_plan plan = plan_of(EXPHIL_MODE_CARRY, accumulate);
    exphil_dataset *damaged = NULL;
    exphil_prefetcher *prefetcher = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_status status = EXPHIL_OK;
    size_t bytes, other;
    int64_t good = 0;
    plan.episodes = 3;
    train_run run = train_begin(&plan);
    assert_ok(exphil_dataset_save(run.dataset, test_path("corpus"), NULL));
    char *file = test_read(test_path("corpus"), &bytes);
    float floats[13];
    int32_t ids[2], action[3];
    train_row(2, 30, floats, ids, action);
    char *row = test_find(file, bytes, floats, sizeof floats);
    assert_non_null(row);
    *row ^= 1;
    test_write(test_path("corpus"), file, bytes);
    assert_ok(exphil_dataset_open(run.context, test_path("corpus"), &damaged, NULL));
    assert_ok(exphil_model_sampling(run.model, &sampling, NULL));
    sampling.batch = 1;
    sampling.time = 8;
    sampling.in_order = 1;
    assert_ok(exphil_prefetcher_create(damaged, &sampling, &prefetcher, NULL));
    assert_ok(exphil_optimizer_create(run.model, NULL, &optimizer, NULL));
    assert_ok(exphil_trainer_create(run.model, optimizer, prefetcher, &plan.trainer, &trainer, NULL));
    unsigned char *before = train_snapshot(trainer, &bytes), *after;
    while ((status = exphil_trainer_step(trainer, NULL, NULL)) == EXPHIL_OK) {
        free(before);
        before = train_snapshot(trainer, &bytes);
        good++;
    }
    assert_true(good > 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(status, EXPHIL_E_FORMAT);
        after = train_snapshot(trainer, &other);
        assert_memory_equal(before, after, bytes);
        free(after);
        status = exphil_trainer_step(trainer, NULL, NULL);
    }
    free(before);
    free(file);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_prefetcher_destroy(prefetcher);
    exphil_dataset_destroy(damaged);
    train_end(&run);
    test_folder_remove();
}

static void damaged_rows(void **state)
{
    for (int64_t accumulate = 1; accumulate <= 5; accumulate++) damaged_rows_change_nothing(accumulate);
}

/* A run on a corpus of this context: its updates, each called until it is done. Failed calls are counted. */
static unsigned char *run_on_corpus(train_plan plan, long long fail_after, int *failures, size_t *bytes)
{
    test_io io;
    exphil_dataset *corpus = NULL;
    exphil_prefetcher *prefetcher = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    test_io_init(&io);
    plan.io = &io;
    train_run run = train_begin(&plan);
    assert_ok(exphil_dataset_save(run.dataset, test_path("corpus"), NULL));
    assert_ok(exphil_dataset_open(run.context, test_path("corpus"), &corpus, NULL));
    assert_ok(exphil_model_sampling(run.model, &sampling, NULL));
    sampling.batch = 4;
    sampling.time = 8;
    if (fail_after) {
        io.code = EIO;
        io.fail_at = atomic_load(&io.calls) + fail_after;
    }
    assert_ok(exphil_prefetcher_create(corpus, &sampling, &prefetcher, NULL));
    assert_ok(exphil_optimizer_create(run.model, &plan.adam, &optimizer, NULL));
    assert_ok(exphil_trainer_create(run.model, optimizer, prefetcher, &plan.trainer, &trainer, NULL));
    for (int update = 0; update < 40;) {
        exphil_status status = exphil_trainer_step(trainer, NULL, NULL);
        update += status == EXPHIL_OK;
        *failures += status != EXPHIL_OK;
        if (status != EXPHIL_OK) assert_int_equal(status, EXPHIL_E_IO);
        assert_true(*failures < 20);
    }
    unsigned char *all = train_snapshot(trainer, bytes);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_prefetcher_destroy(prefetcher);
    exphil_dataset_destroy(corpus);
    train_end(&run);
    test_folder_remove();
    return all;
}

/* A disk that fails once is no end of the run, whichever batch it was, of this update or fetched ahead for the next. */
static void a_read_that_fails_once(void **state)
{
    for (int64_t accumulate = 1; accumulate <= 3; accumulate++) {
        train_plan plan = plan_of(EXPHIL_MODE_CARRY, accumulate);
        int failures = 0, none = 0;
        size_t bytes;
        plan.episodes = 12;
        unsigned char *want = run_on_corpus(plan, 0, &none, &bytes);
        assert_int_equal(none, 0);
        for (long long read = 1; read <= 181; read += 20) {
            unsigned char *got = run_on_corpus(plan, read, &failures, &bytes);
            assert_memory_equal(got, want, bytes);
            free(got);
        }
        assert_true(failures > 0);
        free(want);
    }
}

/* A batch that is refused for its numbers is passed over: it is no failure of the call's, and nothing is taken again. The
 * carried state, which may hold such numbers too, starts from zero; all else is as before. */
static void refused_numbers_are_passed_over(void **state)
{
    train_plan plan = plan_of(EXPHIL_MODE_CARRY, 1);
    plan.by_hand = true;
    train_run run = train_begin(&plan);
    exphil_batch good = train_batch(run.model, 3, 6, 0), bad = train_batch(run.model, 3, 6, 2);
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    size_t bytes, other;
    for (int64_t i = 0; i < 3 * 6 * 13; i++) ((float *)(uintptr_t)bad.floats)[i] *= 3e38f;
    for (int i = 0; i < 3; i++) assert_ok(exphil_trainer_step_batch(run.trainer, &good, &metrics, NULL));
    unsigned char *before = train_snapshot(run.trainer, &bytes);
    assert_int_equal(exphil_trainer_step_batch(run.trainer, &bad, NULL, NULL), EXPHIL_E_NUMERIC);
    unsigned char *after = train_snapshot(run.trainer, &other);
    const size_t state_bytes = run.trainer->feed.state_bytes,
                 kept = bytes - state_bytes - 4 * sizeof(int64_t);
    assert_int_equal(bytes, other);
    assert_memory_equal(before, after, kept);
    assert_memory_equal(before + kept + state_bytes, after + kept + state_bytes, 4 * sizeof(int64_t));
    for (size_t i = 0; i < state_bytes; i++) assert_int_equal(after[kept + i], 0);
    assert_ok(exphil_trainer_step_batch(run.trainer, &good, &metrics, NULL));
    assert_int_equal(metrics.skipped, 1);
    assert_int_equal(metrics.update, 4);
    free(before);
    free(after);
    train_batch_free(&good);
    train_batch_free(&bad);
    train_end(&run);
}

static int32_t stop_once(void *user)
{
    int *stops = user;
    return *stops > 0 ? (*stops)-- : 0;
}

/* The first batch of a host tells the shape; an update that came to nothing told nothing. */
static void a_first_batch_that_failed_binds_nothing(void **state)
{
    int stops = 0;
    train_plan plan = plan_of(EXPHIL_MODE_CARRY, 1);
    plan.by_hand = true;
    plan.cancel = stop_once;
    plan.cancel_user = &stops;
    train_run run = train_begin(&plan);
    exphil_batch small = train_batch(run.model, 2, 5, 0), large = train_batch(run.model, 4, 7, 0);
    stops = 1;
    assert_int_equal(exphil_trainer_step_batch(run.trainer, &small, NULL, NULL), EXPHIL_E_CANCELLED);
    assert_int_equal(exphil_trainer_save(run.trainer, test_path("none"), NULL), EXPHIL_E_STATE);
    assert_ok(exphil_trainer_step_batch(run.trainer, &large, NULL, NULL));
    assert_int_equal(exphil_trainer_step_batch(run.trainer, &small, NULL, NULL), EXPHIL_E_INVALID);
    train_batch_free(&small);
    train_batch_free(&large);
    train_end(&run);
    test_folder_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_reduction),
        cmocka_unit_test(a_cancelled_update),
        cmocka_unit_test(with_every_setting),
        cmocka_unit_test(damaged_rows),
        cmocka_unit_test(a_read_that_fails_once),
        cmocka_unit_test(refused_numbers_are_passed_over),
        cmocka_unit_test(a_first_batch_that_failed_binds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
