/* A trainer whose prefetcher has lanes of a rank: it is of that many lanes, its updates are those of the same rows given by hand,
 * and its checkpoint knows the joint batch. */
#include "train_case.h"

#include <stdlib.h>

enum { JOINT = 7, FIRST = 2, LANES = 3, UPDATES = 12 };

static train_plan plan_of(int kind)
{
    static const char *const blocks[] = {"mamba", "lstm attention", "gru"};
    train_plan plan = train_plan_of(blocks[kind], kind == 2 ? EXPHIL_MODE_WINDOW : EXPHIL_MODE_CARRY);
    plan.sampling.batch = JOINT;
    plan.sampling.first_lane = FIRST;
    plan.sampling.lane_count = LANES;
    plan.sampling.segment_frames = kind == 1 ? 30 : 0;
    plan.model.delay_frames = kind;
    plan.adam.ema_decay = 0.9;
    return plan;
}

/* The rows of the rank, of a batch of all lanes. */
static exphil_batch lanes_of(const exphil_batch *all, const exphil_model *model)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_batch own = *all;
    const int64_t at = FIRST * all->time;
    assert_ok(exphil_model_query(model, &info, NULL));
    own.batch = LANES;
    own.floats += at * info.float_count;
    own.ids += at * info.id_count;
    own.past += at * info.action_slots * info.head_count;
    own.actions += at * info.head_count;
    own.mask += at;
    own.reset += at;
    own.rows = NULL;
    own.frames = 0;
    for (int64_t row = 0; row < LANES * all->time; row++) own.frames += own.mask[row] > 0.0f;
    return own;
}

static void next(exphil_prefetcher *prefetcher, exphil_batch *batch)
{
    exphil_status status = exphil_prefetcher_next(prefetcher, batch, NULL);
    if (status == EXPHIL_END) status = exphil_prefetcher_next(prefetcher, batch, NULL);
    assert_ok(status);
}

static void same_but_place(const train_run *a, const train_run *b)
{
    size_t bytes, other;
    unsigned char *x = train_snapshot(a->trainer, &bytes), *y = train_snapshot(b->trainer, &other);
    assert_int_equal(bytes, other);
    assert_memory_equal(x, y, bytes - 2 * sizeof(int64_t));
    free(x);
    free(y);
}

static void rows_by_hand(void **state)
{
    for (int kind = 0; kind < 3; kind++) {
        train_plan plan = plan_of(kind), whole = plan, by_hand = plan;
        whole.sampling.first_lane = whole.sampling.lane_count = 0;
        by_hand.by_hand = true;
        train_run run = train_begin(&plan), all = train_begin(&whole), hand = train_begin(&by_hand);
        assert_int_equal(run.trainer->feed.batch, LANES);
        assert_int_equal(all.trainer->feed.batch, JOINT);
        for (int update = 0; update < UPDATES; update++) {
            exphil_batch batch = EXPHIL_BATCH_INIT;
            next(all.prefetcher, &batch);
            const exphil_batch own = lanes_of(&batch, run.model);
            exphil_metrics a = train_steps(&run, 1), b = EXPHIL_METRICS_INIT;
            assert_ok(exphil_trainer_step_batch(hand.trainer, &own, &b, NULL));
            assert_true(a.loss == b.loss && a.gradient_norm == b.gradient_norm && a.frames == b.frames);
            same_but_place(&run, &hand);
        }
        train_end(&run);
        train_end(&all);
        train_end(&hand);
    }
}

/* It goes on from its own to the last bit; another joint batch is refused by name, and so are so many lanes. */
static void checkpoints(void **state)
{
    const train_plan plan = plan_of(0);
    train_plan other = plan;
    exphil_error error = EXPHIL_ERROR_INIT;
    const char *path = test_path("lanes.safetensors");
    train_run straight = train_begin(&plan), again = train_begin(&plan);
    train_steps(&straight, 5);
    assert_ok(exphil_trainer_save(straight.trainer, path, &error));
    train_steps(&straight, 9);
    assert_ok(exphil_trainer_resume(again.trainer, path, &error));
    train_steps(&again, 9);
    same_but_place(&straight, &again);
    other.sampling.batch = JOINT + 1;
    train_run refused = train_begin(&other);
    assert_int_equal(exphil_trainer_resume(refused.trainer, path, &error), EXPHIL_E_MISMATCH);
    assert_says(&error, "sampling.batch 7, this run has 8");
    train_end(&refused);
    other = plan;
    other.sampling.lane_count = LANES + 1;
    refused = train_begin(&other);
    assert_int_equal(exphil_trainer_resume(refused.trainer, path, &error), EXPHIL_E_MISMATCH);
    assert_says(&error, "3 x 8, this run of 4 x 8");
    train_end(&refused);
    train_end(&straight);
    train_end(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_by_hand),
                                       cmocka_unit_test_teardown(checkpoints, test_leave)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
