/* What a trainer refuses: batches, settings, models and data that do not fit; and it stays as it was. */
#include "train_case.h"

#include <math.h>
#include <stdlib.h>

static void check_batch_refused(train_run *run, exphil_batch *batch, exphil_status status, const char *says)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t bytes;
    unsigned char *before = train_snapshot(run->trainer, &bytes), *after;
    assert_int_equal(exphil_trainer_step_batch(run->trainer, batch, NULL, &error), status);
    assert_says(&error, says);
    after = train_snapshot(run->trainer, &bytes);
    assert_memory_equal(before, after, bytes);
    free(before);
    free(after);
}

static void bad_batches_are_refused(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.by_hand = true;
    train_run run = train_begin(&plan);
    exphil_batch batch = train_batch(run.model, 2, 5, 0);
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, NULL));
#define WRITE(type, field, at, value, status, says)                                                          \
  do {                                                                                                       \
    type *place = (type *)(uintptr_t)batch.field + (at), kept = *place;                                      \
    *place = (value);                                                                                        \
    check_batch_refused(&run, &batch, status, says);                                                         \
    *place = kept;                                                                                           \
  } while (0)
    WRITE(float, floats, 13 * 7 + 4, NAN, EXPHIL_E_NUMERIC, "floats[7][4]");
    WRITE(float, floats, 0, -INFINITY, EXPHIL_E_NUMERIC, "floats[0][0]");
    WRITE(int32_t, ids, 2 * 3 + 1, 7, EXPHIL_E_INVALID, "ids[3] own.character is 7");
    WRITE(int32_t, ids, 0, -1, EXPHIL_E_INVALID, "ids[0] stage is -1");
    WRITE(int32_t, actions, 3 * 9 + 2, 4, EXPHIL_E_INVALID, "row 9: action head trigger is 4");
    WRITE(int32_t, past, 2 * 3 * 2, 8, EXPHIL_E_INVALID, "row 2: action head buttons is 8");
    WRITE(float, mask, 3, -1.0f, EXPHIL_E_INVALID, "mask[3]");
    WRITE(float, mask, 3, NAN, EXPHIL_E_INVALID, "mask[3]");
#undef WRITE
#define WITHOUT(field)                                                                                       \
  do {                                                                                                       \
    exphil_batch without = batch;                                                                            \
    without.field = NULL;                                                                                    \
    check_batch_refused(&run, &without, EXPHIL_E_INVALID, #field " is NULL");                                \
  } while (0)
    WITHOUT(floats);
    WITHOUT(ids);
    WITHOUT(past);
    WITHOUT(actions);
    WITHOUT(mask);
    WITHOUT(reset);
#undef WITHOUT
    exphil_batch other = batch;
    other.time = 10;
    other.batch = 1;
    check_batch_refused(&run, &other, EXPHIL_E_INVALID, "1 x 10, this run has 2 x 5");
    other.batch = 0;
    check_batch_refused(&run, &other, EXPHIL_E_INVALID, "0 x 10");
    other = batch;
    other.struct_size = 12;
    check_batch_refused(&run, &other, EXPHIL_E_INVALID, "struct_size");
    train_batch_free(&batch);
    train_end(&run);
}

/* ---- what does not fit ------------------------------------------------------------------------------------------------ */

static void bad_optimizers_are_refused(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = model_case_config("mlp", EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(context, &config);
    const struct {
        exphil_optimizer_config config;
        const char *says;
    } cases[] = {
        {{.rate = -1}, "rate"},
        {{.rate = NAN}, "rate"},
        {{.beta1 = 1}, "beta1"},
        {{.beta2 = -0.1}, "beta2"},
        {{.epsilon = -1}, "epsilon"},
        {{.decay = INFINITY}, "decay"},
        {{.rate = 0.5, .decay = 3}, "rate times decay"},
        {{.ema_decay = 1}, "ema_decay"},
        {{.clip_norm = NAN}, "clip_norm"},
        {{.low_ratio = 1.5}, "low_ratio"},
        {{.warmup_updates = -1}, "warmup_updates"},
        {{.total_updates = -1}, "total_updates"},
        {{.restart_updates = -1}, "restart_updates"},
        {{.schedule = 3}, "schedule"},
        {{.schedule = EXPHIL_SCHEDULE_COSINE}, "total_updates"},
        {{.schedule = EXPHIL_SCHEDULE_COSINE, .warmup_updates = 5, .total_updates = 5}, "total_updates"},
        {{.schedule = EXPHIL_SCHEDULE_RESTARTS}, "restart_updates"},
        {{.restart_factor = 0.5}, "restart_factor"},
        {{.reserved = 1}, "reserved must"},
        {{.reserved_2 = 1}, "reserved_2 must"},
        {{.resume_new_total = 2}, "resume_new_total is 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        exphil_optimizer_config how = cases[i].config;
        exphil_optimizer *optimizer = NULL;
        exphil_error error = EXPHIL_ERROR_INIT;
        how.struct_size = sizeof how;
        assert_int_equal(exphil_optimizer_create(model, &how, &optimizer, &error), EXPHIL_E_INVALID);
        assert_null(optimizer);
        assert_says(&error, cases[i].says);
    }
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* A trainer of this run and configuration is refused. */
static void refused(train_run *run, const exphil_trainer_config *config, exphil_status status,
                    const char *says)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(
        exphil_trainer_create(run->model, run->optimizer, run->prefetcher, config, &run->trainer, &error),
        status);
    assert_says(&error, says);
    assert_null(run->trainer);
}

static void bad_losses_are_refused(train_run *run)
{
    static const float weights[5] = {1, 1, 1, 1, 1}, zero[5] = {1, 0, 1, 1, 1}, nan[5] = {1, 1, NAN, 1, 1};
    const struct {
        exphil_head_loss loss[3];
        const char *says;
    } losses[] = {
        {{{NAN, 0, 0, NULL}}, "losses[0].weight"},
        {{{0, 0.1, 0, NULL}}, "losses[0].smoothing: head buttons"},
        {{{0, 0, 0, NULL}, {0, 1.0, 0, NULL}}, "losses[1].smoothing"},
        {{{0, 0, 0, NULL}, {0, -0.1, 0, NULL}}, "losses[1].smoothing"},
        {{{0, 0, -1, NULL}}, "losses[0].focal_gamma"},
        {{{0, 0, 0, NULL}, {0, 0, NAN, NULL}}, "losses[1].focal_gamma"},
        {{{0, 0, 0, NULL}, {0, 0, 0, weights}}, "losses[1].positive_weight: head stick"},
        {{{0, 0, 0, zero}}, "losses[0].positive_weight[1]"},
        {{{0, 0, 0, nan}}, "losses[0].positive_weight[2]"},
    };
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
        config.losses = losses[i].loss;
        refused(run, &config, EXPHIL_E_INVALID, losses[i].says);
    }
}

static void bad_trainers_are_refused(void **state)
{
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    bad_losses_are_refused(&run);
    config.accumulate = -1;
    refused(&run, &config, EXPHIL_E_INVALID, "accumulate");
    config.accumulate = 0;
    config.checkpoint_blocks = -1;
    refused(&run, &config, EXPHIL_E_INVALID, "checkpoint_blocks");
    config.checkpoint_blocks = 0;
    config.activations = EXPHIL_TYPE_F16;
    refused(&run, &config, EXPHIL_E_UNSUPPORTED, "activations");
    config.activations = 0;
    config.saved_weights = 2;
    refused(&run, &config, EXPHIL_E_INVALID, "saved_weights is 2");
    config.saved_weights = EXPHIL_WEIGHTS_AVERAGED;
    refused(&run, &config, EXPHIL_E_INVALID, "saved_weights wants averaged weights, and ema_decay is 0");
    config.saved_weights = 0;
    config.as_played = 2;
    refused(&run, &config, EXPHIL_E_INVALID, "as_played is 2");
    config.as_played = 0;
    config.precision = EXPHIL_PRECISION_BF16;
    refused(&run, &config, EXPHIL_E_UNSUPPORTED, "precision");
    assert_ok(exphil_trainer_create(run.model, run.optimizer, run.prefetcher, NULL, &run.trainer,
                                    NULL)); /* still free */
    exphil_trainer *second = NULL;
    assert_int_equal(exphil_trainer_create(run.model, run.optimizer, NULL, NULL, &second, &error),
                     EXPHIL_E_STATE);
    assert_says(&error, "optimizer already serves another trainer");
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    assert_ok(exphil_trainer_create(run.model, run.optimizer, NULL, NULL, &run.trainer, NULL));
    assert_int_equal(exphil_trainer_step(run.trainer, NULL, &error), EXPHIL_E_STATE);
    assert_says(&error, "no prefetcher");
    assert_int_equal(exphil_trainer_save(run.trainer, test_path("x"), &error), EXPHIL_E_STATE);
    exphil_model *model = NULL;
    assert_int_equal(exphil_trainer_model(run.trainer, 2, &model, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS_AVERAGED, &model, &error),
                     EXPHIL_E_STATE);
    assert_says(&error, "ema_decay");
    assert_null(model);
    train_end(&run);
    test_folder_remove();
}

static void mismatch(const train_run *run, const exphil_model_config *config, const char *one,
                     const char *two)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = model_case_create(run->context, config);
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    assert_ok(exphil_optimizer_create(model, NULL, &optimizer, NULL));
    assert_int_equal(exphil_trainer_create(model, optimizer, run->prefetcher, NULL, &trainer, &error),
                     EXPHIL_E_MISMATCH);
    assert_null(trainer);
    assert_says(&error, one);
    assert_says(&error, two);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
}

static void other_data_is_refused(void **state)
{
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    exphil_model_config config = plan.model;
    config.delay_frames = 4;
    mismatch(&run, &config, "delay_frames is 1", "model's is 4");
    config = plan.model;
    config.no_previous_action = 1;
    mismatch(&run, &config, "action_slots is 2", "model's is 1");
    config = plan.model;
    config.mode = EXPHIL_MODE_WINDOW;
    mismatch(&run, &config, "mode is 0", "model's is 1");
    config = plan.model;
    config.spec = NULL;
    mismatch(&run, &config, "made-up/made-up", "melee2/exphil81");
    /* an optimizer of another model, and objects of another context */
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_trainer *trainer = NULL;
    config = plan.model;
    config.hidden = 16;
    exphil_model *other = model_case_create(run.context, &config);
    assert_int_equal(exphil_trainer_create(other, run.optimizer, NULL, NULL, &trainer, &error),
                     EXPHIL_E_MISMATCH);
    assert_says(&error, "optimizer was made for a model of another configuration");
    exphil_model_destroy(other);
    train_run elsewhere = train_begin(&plan);
    assert_int_equal(exphil_trainer_create(run.model, elsewhere.optimizer, NULL, NULL, &trainer, &error),
                     EXPHIL_E_MISMATCH);
    assert_says(&error, "contexts");
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    assert_int_equal(
        exphil_trainer_create(run.model, run.optimizer, elsewhere.prefetcher, NULL, &trainer, &error),
        EXPHIL_E_MISMATCH);
    assert_says(&error, "contexts");
    assert_null(trainer);
    train_end(&elsewhere);
    train_end(&run);
    plan = train_plan_of("mlp", EXPHIL_MODE_WINDOW);
    run = train_begin(&plan);
    config = plan.model;
    config.window_frames = 7;
    mismatch(&run, &config, "time is 6", "model's is 7");
    train_end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_batches_are_refused),
        cmocka_unit_test(bad_optimizers_are_refused),
        cmocka_unit_test(bad_trainers_are_refused),
        cmocka_unit_test(other_data_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
