/* The parts of an update: learning, metrics, numbers that are none, cancelling, a second caller, handles in any order. */
#include "test_modes.h"
#include "train_case.h"

#include <math.h>
#include <stdlib.h>

/* ---- learning -------------------------------------------------------------------------------------------------------- */

static void every_block_learns(void **state)
{
    static const char *const patterns[] = {EACH_BLOCK "(mamba attention)*2"};
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++)
        for (int32_t mode = 0; mode <= 1; mode++) {
            train_plan plan = train_plan_of(patterns[p], mode);
            plan.model.heads = mode ? EXPHIL_HEADS_AUTOREGRESSIVE : EXPHIL_HEADS_INDEPENDENT;
            train_run run = train_begin(&plan);
            double first = train_steps(&run, 1).loss, last = 0.0;
            (void)train_steps(&run, 140);
            for (int i = 0; i < 10; i++) last += train_steps(&run, 1).loss / 10;
            if (!(last < 0.75 * first))
                fail_msg("%s, mode %d: loss from %g to %g only", patterns[p], mode, first, last);
            train_end(&run);
        }
}

static void metrics_tell_what_was_done(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    const exphil_head_loss losses[3] = {{2.0, 0, 0, NULL}, {0, 0.1, 1.5, NULL}, {0.5, 0, 0, NULL}};
    plan.trainer.losses = losses;
    plan.adam.warmup_updates = 4;
    train_run run = train_begin(&plan);
    exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
    assert_ok(exphil_prefetcher_query(run.prefetcher, &info, NULL));
    int64_t frames = 0;
    for (int64_t u = 1; u <= 3 * info.batches_per_epoch; u++) {
        exphil_metrics metrics = train_steps(&run, 1);
        exphil_optimizer_info now = EXPHIL_OPTIMIZER_INFO_INIT;
        assert_int_equal(metrics.update, u);
        assert_int_equal(metrics.epoch, (u - 1) / info.batches_per_epoch);
        assert_true(metrics.frames > frames);
        frames = metrics.frames;
        if (u % info.batches_per_epoch == 0)
            assert_int_equal(frames, u / info.batches_per_epoch * info.frames_per_epoch);
        double sum = 2.0 * metrics.head_loss[0] + metrics.head_loss[1] + 0.5 * metrics.head_loss[2];
        assert_true(fabs(metrics.loss - sum) < 1e-12);
        assert_true(metrics.head_loss[3] == 0.0);
        assert_true(metrics.time_ns >= 0 && metrics.waited_ns >= 0 && metrics.waited_ns <= metrics.time_ns);
        assert_int_equal(metrics.skipped, 0);
        assert_true(metrics.rate == plan.adam.rate * (double)(u < 4 ? u : 4) / 4);
        assert_ok(exphil_optimizer_query(run.optimizer, &now, NULL));
        assert_int_equal(now.updates, u);
        assert_true(now.rate == plan.adam.rate * (double)(u < 3 ? u + 1 : 4) / 4);
    }
    exphil_model *model = NULL;
    exphil_model_info trained = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, NULL));
    assert_ok(exphil_model_query(model, &trained, NULL));
    assert_int_equal(trained.trained_updates, 3 * info.batches_per_epoch);
    assert_int_equal(trained.trained_frames, frames);
    exphil_model_destroy(model);
    train_end(&run);
}

/* A head with negative weight gives no gradient: its bias, which nothing else reaches, stays as it was. */
static void untrained_heads_stay(void **state)
{
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    const exphil_head_loss losses[3] = {{0, 0, 0, NULL}, {-1, 0, 0, NULL}, {0, 0, 0, NULL}};
    plan.trainer.losses = losses;
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 10);
    exphil_model *model = NULL;
    float before[12], after[12];
    assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, NULL));
    assert_ok(exphil_model_tensor_get(run.model, "heads.logits.bias", before, sizeof before, NULL));
    assert_ok(exphil_model_tensor_get(model, "heads.logits.bias", after, sizeof after, NULL));
    for (int i = 0; i < 12; i++) assert_int_equal(before[i] == after[i], i >= 3 && i < 8);
    exphil_model_destroy(model);
    train_end(&run);
}

/* The model itself is never written, and averaged weights lag behind. */
static void the_model_stays(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.adam.ema_decay = 0.99;
    train_run run = train_begin(&plan);
    exphil_model_info before = EXPHIL_MODEL_INFO_INIT, after = EXPHIL_MODEL_INFO_INIT,
                      now = EXPHIL_MODEL_INFO_INIT, slow = EXPHIL_MODEL_INFO_INIT;
    exphil_model *trained = NULL, *average = NULL;
    assert_ok(exphil_model_query(run.model, &before, NULL));
    (void)train_steps(&run, 5);
    assert_ok(exphil_model_query(run.model, &after, NULL));
    assert_true(before.weights_hash == after.weights_hash);
    assert_int_equal(after.trained_updates, 0);
    assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &trained, NULL));
    assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS_AVERAGED, &average, NULL));
    assert_ok(exphil_model_query(trained, &now, NULL));
    assert_ok(exphil_model_query(average, &slow, NULL));
    assert_true(now.weights_hash != before.weights_hash && slow.weights_hash != now.weights_hash);
    exphil_model_destroy(trained);
    exphil_model_destroy(average);
    train_end(&run);
}

/* ---- kernels ---------------------------------------------------------------------------------------------------------- */

static const xph_backend *real;
static int64_t searches;

static exphil_status counted_query(xph_device *device, xph_op op, void *args, xph_op_info *info)
{
    searches += op != XPH_OP_LINEAR_PACK && op != XPH_OP_SCAN_PACK && op != XPH_OP_PACKS;
    return real->query(device, op, args, info);
}

/* All kernels are chosen when a trainer is made: its updates, the first one too, ask for none. Only new weights are packed by
 * what xph_run_once finds. */
static void an_update_searches_no_kernel(void **state)
{
    static xph_backend table;
    train_plan plan = train_plan_of("mamba lstm attention", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    xph_device *device = xph_context_backend(run.context);
    exphil_trainer_destroy(run.trainer);
    real = device->backend;
    table = *real;
    table.query = counted_query;
    device->backend = &table;
    searches = 0;
    assert_ok(
        exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &plan.trainer, &run.trainer, NULL));
    assert_true(searches > 20);
    searches = 0;
    (void)train_steps(&run, 2);
    assert_int_equal(searches, 0);
    train_end(&run);
}

/* ---- numbers that are none -------------------------------------------------------------------------------------------- */

/* Input so large that the first product overflows: the update is refused, the tensor named, nothing moved, and the run goes
 * on as if the batch had not been. */
static void overflow_is_refused(void **state)
{
    train_plan plan = train_plan_of("mamba gru", EXPHIL_MODE_CARRY);
    plan.by_hand = true;
    plan.adam.ema_decay = 0.9;
    plan.adam.warmup_updates = 100;
    train_run run = train_begin(&plan), other = train_begin(&plan);
    exphil_batch good = train_batch(run.model, 3, 8, 0), next = train_batch(run.model, 3, 8, 2),
                 bad = train_batch(run.model, 3, 8, 4);
    float *floats = (float *)(uintptr_t)bad.floats;
    for (int i = 0; i < 13; i++) floats[13 * 9 + i] = i % 2 ? 3e38f : 2.9e38f;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_metrics metrics = EXPHIL_METRICS_INIT, untouched = EXPHIL_METRICS_INIT;
    assert_ok(exphil_trainer_step_batch(run.trainer, &good, NULL, NULL));
    assert_ok(exphil_trainer_step_batch(other.trainer, &good, NULL, NULL));
    size_t bytes, arenas = 4 * run.trainer->arena_bytes;
    unsigned char *before = train_snapshot(run.trainer, &bytes);
    assert_int_equal(exphil_trainer_step_batch(run.trainer, &bad, &metrics, &error), EXPHIL_E_NUMERIC);
    assert_memory_equal(&metrics, &untouched, sizeof metrics);
    assert_says(&error, "update 2 refused: gradient of ");
    const char *name = error.message + strlen("update 2 refused: gradient of ");
    bool known = false;
    for (int64_t i = 0; i < xph_model_param_count(run.model); i++) {
        const char *param = xph_model_param(run.model, i)->name;
        known |= strncmp(name, param, strlen(param)) == 0 && name[strlen(param)] == ' ';
    }
    if (!known) fail_msg("no such tensor: %s", error.message);
    unsigned char *after = train_snapshot(run.trainer, &bytes);
    assert_memory_equal(before, after, arenas);
    assert_memory_equal(before + bytes - 32, after + bytes - 32, 32);
    assert_ok(exphil_trainer_step_batch(run.trainer, &next, &metrics, NULL));
    assert_int_equal(metrics.skipped, 1);
    assert_int_equal(metrics.update, 2);
    assert_ok(exphil_trainer_step_batch(other.trainer, &next, NULL, NULL));
    free(before);
    free(after);
    before = train_snapshot(other.trainer, &bytes);
    after = train_snapshot(run.trainer, &bytes);
    assert_memory_equal(before, after, bytes);
    free(before);
    free(after);
    train_batch_free(&good);
    train_batch_free(&next);
    train_batch_free(&bad);
    train_end(&run);
    train_end(&other);
}

/* A rate beyond reason: whatever updates are refused, weights and moments are finite always. */
static void wild_rates_are_caught(void **state)
{
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    plan.adam.rate = 9e5;
    plan.adam.decay = 1e-6;
    plan.adam.clip_norm = -1;
    train_run run = train_begin(&plan);
    int refused = 0;
    for (int u = 0; u < 60; u++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        size_t bytes;
        unsigned char *before = train_snapshot(run.trainer, &bytes), *after;
        exphil_status status = exphil_trainer_step(run.trainer, NULL, &error);
        after = train_snapshot(run.trainer, &bytes);
        if (status < 0) {
            assert_int_equal(status, EXPHIL_E_NUMERIC);
            assert_memory_equal(before, after, 3 * run.trainer->arena_bytes);
            assert_says(&error, "refused: ");
            refused++;
        }
        for (size_t i = 0; i < 3 * run.trainer->arena_bytes / sizeof(float); i++) {
            float value;
            memcpy(&value, after + i * sizeof value, sizeof value);
            if (!isfinite(value)) fail_msg("update %d left a number that is none", u);
        }
        free(before);
        free(after);
    }
    print_message("%d of 60 updates refused\n", refused);
    train_end(&run);
}

/* Rows that do not count change nothing, however wild they are within their ranges. */
static void masked_rows_do_not_count(void **state)
{
    train_plan plan = train_plan_of("lstm", EXPHIL_MODE_CARRY);
    plan.by_hand = true;
    train_run run = train_begin(&plan), other = train_begin(&plan);
    exphil_batch one = train_batch(run.model, 2, 6, 0), two = train_batch(run.model, 2, 6, 0);
    for (int row = 0; row < 12; row++)
        if (row % 6 >= 4) { /* the end of each lane */
            ((float *)(uintptr_t)one.mask)[row] = ((float *)(uintptr_t)two.mask)[row] = 0;
            for (int i = 0; i < 13; i++) ((float *)(uintptr_t)two.floats)[row * 13 + i] = 9;
            ((int32_t *)(uintptr_t)two.actions)[row * 3 + 1] = 0;
        }
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    one.frames = -77; /* counted, not believed */
    assert_ok(exphil_trainer_step_batch(run.trainer, &one, &metrics, NULL));
    assert_ok(exphil_trainer_step_batch(other.trainer, &two, NULL, NULL));
    assert_int_equal(metrics.frames, 8);
    assert_memory_equal(run.trainer->weights, other.trainer->weights, run.trainer->arena_bytes);
    train_batch_free(&one);
    train_batch_free(&two);
    train_end(&run);
    train_end(&other);
}

/* The place in the data is that of the prefetcher, whatever a host's batch says of itself. */
static void own_batches_do_not_move_the_data(void **state)
{
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 3);
    exphil_batch batch = train_batch(run.model, 4, 8, 0);
    batch.epoch = 1000;
    batch.index = -5;
    int64_t index = run.trainer->index, epoch = run.trainer->epoch;
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, NULL));
    assert_int_equal(run.trainer->index, index);
    assert_int_equal(run.trainer->epoch, epoch);
    train_batch_free(&batch);
    train_end(&run);
}

/* ---- cancelling, a second caller ---------------------------------------------------------------------------------------- */

typedef struct stopper {
    int asked, at;
} stopper;

static int32_t stop_at(void *user)
{
    stopper *s = user;
    return s->at && ++s->asked >= s->at;
}

/* Cancelled wherever it is asked, the update leaves everything as it was, and the next call does what it would have. */
static void cancelled_updates_are_taken_again(void **state)
{
    for (int64_t accumulate = 1; accumulate <= 3; accumulate += 2) {
        stopper s = {0, 0};
        train_plan plan = train_plan_of("gru mamba", EXPHIL_MODE_CARRY);
        plan.trainer.accumulate = accumulate;
        train_run plain = train_begin(&plan);
        plan.cancel = stop_at;
        plan.cancel_user = &s;
        train_run run = train_begin(&plan);
        int cancelled = 0;
        for (int64_t u = 0; u < 30; u++) { /* over the end of epochs too */
            size_t bytes;
            exphil_error error = EXPHIL_ERROR_INIT;
            (void)train_steps(&plain, 1);
            exphil_status status = EXPHIL_E_CANCELLED;
            for (s.at = 1; status == EXPHIL_E_CANCELLED; s.at++) {
                unsigned char *before = train_snapshot(run.trainer, &bytes), *after;
                s.asked = 0;
                status = exphil_trainer_step(run.trainer, NULL, &error);
                after = train_snapshot(run.trainer, &bytes);
                assert_int_equal(error.status,
                                 status == EXPHIL_OK && !cancelled ? EXPHIL_OK : EXPHIL_E_CANCELLED);
                if (status == EXPHIL_E_CANCELLED) assert_memory_equal(before, after, bytes - 16);
                cancelled += status == EXPHIL_E_CANCELLED;
                free(before);
                free(after);
            }
            assert_int_equal(status, EXPHIL_OK);
            unsigned char *a = train_snapshot(plain.trainer, &bytes),
                          *b = train_snapshot(run.trainer, &bytes);
            assert_memory_equal(a, b, bytes);
            free(a);
            free(b);
        }
        assert_true(cancelled >= 30 * accumulate);
        s.at = 0;
        train_end(&plain);
        train_end(&run);
    }
}

/* Another thread comes while an update is under way: the cancel hook is asked from inside. */
typedef struct intruder {
    exphil_trainer *trainer;
    int calls;
    exphil_status step, save, model, resume;
} intruder;

static void *intrude(void *arg)
{
    intruder *i = arg;
    exphil_model *model = NULL;
    i->step = exphil_trainer_step(i->trainer, NULL, NULL);
    i->save = exphil_trainer_save(i->trainer, "nowhere", NULL);
    i->resume = exphil_trainer_resume(i->trainer, "nowhere", NULL);
    i->model = exphil_trainer_model(i->trainer, EXPHIL_WEIGHTS, &model, NULL);
    return NULL;
}

static int32_t let_in(void *user)
{
    intruder *i = user;
    test_thread thread;
    if (!i->trainer || i->calls++) return 0;
    test_thread_start(&thread, intrude, i);
    (void)test_thread_join(&thread);
    return 0;
}

static void a_second_thread_is_refused(void **state)
{
    intruder i = {NULL, 0, 0, 0, 0, 0};
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.cancel = let_in;
    plan.cancel_user = &i;
    train_run run = train_begin(&plan);
    i.trainer = run.trainer;
    (void)train_steps(&run, 1);
    assert_int_equal(i.calls > 0, 1);
    assert_int_equal(i.step, EXPHIL_E_BUSY);
    assert_int_equal(i.save, EXPHIL_E_BUSY);
    assert_int_equal(i.resume, EXPHIL_E_BUSY);
    assert_int_equal(i.model, EXPHIL_E_BUSY);
    (void)train_steps(&run, 1);
    train_end(&run);
}

/* ---- handles in any order ------------------------------------------------------------------------------------------------ */

static void destroy(train_run *run, int which)
{
    switch (which) {
    case 0:
        exphil_context_destroy(run->context);
        break;
    case 1:
        exphil_dataset_destroy(run->dataset);
        break;
    case 2:
        exphil_model_destroy(run->model);
        break;
    case 3:
        exphil_prefetcher_destroy(run->prefetcher);
        break;
    case 4:
        exphil_optimizer_destroy(run->optimizer);
        break;
    default:
        exphil_trainer_destroy(run->trainer);
        break;
    }
}

static void handles_go_in_any_order(void **state)
{
    for (int code = 0; code < 720; code++) {
        test_memory memory;
        train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
        int left[6] = {0, 1, 2, 3, 4, 5}, rest = code;
        test_memory_init(&memory);
        plan.memory = &memory;
        plan.episodes = 2;
        plan.model.hidden = 4;
        train_run run = train_begin(&plan);
        bool alive = true;
        for (int count = 6; count > 0; count--) {
            int at = rest % count;
            rest /= count;
            destroy(&run, left[at]);
            alive &= left[at] != 5;
            memmove(left + at, left + at + 1, (size_t)(count - 1 - at) * sizeof *left);
            if (alive && code % 7 == 0) (void)train_steps(&run, 1); /* the trainer keeps what it needs */
        }
        assert_memory_clean(&memory);
    }
}

/* The same run to the bit, whatever the number of threads. */
static void threads_do_not_matter(void **state)
{
    unsigned char *want = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        train_plan plan = train_plan_of("(mamba attention)*2 lstm ffn", EXPHIL_MODE_CARRY);
        plan.threads = threads;
        plan.model.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
        plan.adam.ema_decay = 0.9;
        plan.trainer.accumulate = 2;
        train_run run = train_begin(&plan);
        (void)train_steps(&run, 20);
        size_t bytes;
        unsigned char *got = train_snapshot(run.trainer, &bytes);
        if (want) assert_memory_equal(want, got, bytes);
        if (want)
            free(got);
        else
            want = got;
        train_end(&run);
    }
    free(want);
}

static void host_modes_are_not_felt(void **state)
{
    test_needs_modes();
    unsigned char *want = NULL;
    exphil_report first = EXPHIL_REPORT_INIT;
    for (int i = -1; i < TEST_MODE_COUNT; i++) {
        const uint32_t mode = i < 0 ? TEST_PLAIN : test_modes[i];
        train_plan plan = train_plan_of("mamba gru", EXPHIL_MODE_CARRY);
        plan.adam.schedule = EXPHIL_SCHEDULE_COSINE;
        plan.adam.total_updates = 37;
        exphil_report report = EXPHIL_REPORT_INIT;
        exphil_optimizer_info info = EXPHIL_OPTIMIZER_INFO_INIT;
        exphil_status status = EXPHIL_OK;
        bool kept = true;
        train_run run = train_begin(&plan);
        test_mode_set(mode);
        for (int u = 0; u < 5 && status == EXPHIL_OK; u++) {
            status = exphil_trainer_step(run.trainer, NULL, NULL);
            kept &= test_mode() == mode;
        }
        if (status == EXPHIL_OK)
            status = exphil_trainer_evaluate(run.trainer, EXPHIL_WEIGHTS, run.dataset, NULL, &report, NULL);
        if (status == EXPHIL_OK) status = exphil_optimizer_query(run.optimizer, &info, NULL);
        kept &= test_mode() == mode;
        test_mode_set(TEST_PLAIN);
        assert_int_equal(status, EXPHIL_OK);
        assert_true(kept);
        size_t bytes;
        unsigned char *got = train_snapshot(run.trainer, &bytes);
        if (want) {
            assert_memory_equal(want, got, bytes);
            assert_memory_equal(&report, &first, sizeof report);
            free(got);
        } else {
            want = got;
            first = report;
        }
        assert_true(info.rate == xph_schedule_rate(&run.optimizer->config, 5));
        train_end(&run);
    }
    free(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_learns),
        cmocka_unit_test(metrics_tell_what_was_done),
        cmocka_unit_test(untrained_heads_stay),
        cmocka_unit_test(the_model_stays),
        cmocka_unit_test(an_update_searches_no_kernel),
        cmocka_unit_test(overflow_is_refused),
        cmocka_unit_test(wild_rates_are_caught),
        cmocka_unit_test(masked_rows_do_not_count),
        cmocka_unit_test(own_batches_do_not_move_the_data),
        cmocka_unit_test(cancelled_updates_are_taken_again),
        cmocka_unit_test(a_second_thread_is_refused),
        cmocka_unit_test(handles_go_in_any_order),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(host_modes_are_not_felt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
