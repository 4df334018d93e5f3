/* Runs of models that are told something: files keep what they are told, trainers and checkpoints compare it, evaluation
 * chooses it, and a policy learns to use it. */
#include "train_case.h"

#include <exphil/conditions.h>
#include <stdio.h>
#include <stdlib.h>

static exphil_condition_spec specs[2] = {{"player", 3, 4, 0.25}, {"rank", 2, 0, 0.5}};
static const int32_t delays[3] = {0, 2, 5}, fewer[2] = {0, 5}, others[3] = {0, 3, 5};

static train_plan plan_of(const char *blocks, int32_t mode)
{
    train_plan plan = train_plan_of(blocks, mode);
    plan.model.delay_frames = 0;
    plan.model.conditions = specs;
    plan.model.condition_count = 2;
    plan.model.delays = delays;
    plan.model.delay_count = 3;
    return plan;
}

/* ---- files --------------------------------------------------------------------------------------------------------------- */

static void check_told(const exphil_model *model)
{
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_model_sampling(model, &sampling, NULL));
    assert_ok(exphil_model_query(model, &info, NULL));
    assert_int_equal(info.condition_count, 2);
    assert_int_equal(info.delay_count, 3);
    assert_int_equal(info.delay_frames, 5);
    assert_int_equal(info.action_slots, 6);
    assert_int_equal(info.id_count, 2);
    assert_int_equal(sampling.delay_frames, 5);
    assert_int_equal(sampling.condition_count, 2);
    assert_int_equal(sampling.delay_count, 3);
    assert_memory_equal(sampling.delays, delays, sizeof delays);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(sampling.conditions[i].name, specs[i].name);
        assert_int_equal(sampling.conditions[i].values, specs[i].values);
        assert_int_equal(sampling.conditions[i].width, specs[i].width ? specs[i].width : 8);
        assert_true(sampling.conditions[i].mask == specs[i].mask);
    }
}

static void files_keep_what_is_told(void **state)
{
    static const struct {
        const char *name;
        int64_t rows, width;
    } tables[] = {
        {"conditions.player.weight", 4, 4}, {"conditions.rank.weight", 3, 8}, {"delay.weight", 4, 8}};
    exphil_context *context = test_context(NULL, NULL, 1);
    train_plan plan = plan_of("gru", EXPHIL_MODE_CARRY);
    exphil_model *model = model_case_create(context, &plan.model), *loaded = NULL, *rounded = NULL;
    exphil_model_info a = EXPHIL_MODEL_INFO_INIT, b = EXPHIL_MODEL_INFO_INIT;
    check_told(model);
    for (int64_t i = 0; i < 3; i++) { /* behind those of the ids */
        exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
        assert_ok(exphil_model_tensor_info(model, 4 + i, &info, NULL));
        assert_string_equal(info.name, tables[i].name);
        assert_int_equal(info.dim[0], tables[i].rows);
        assert_int_equal(info.dim[1], tables[i].width);
    }
    assert_ok(exphil_model_save(model, test_path("told"), NULL));
    assert_ok(exphil_model_load(context, test_path("told"), &loaded, NULL));
    check_told(loaded);
    assert_ok(exphil_model_query(model, &a, NULL));
    assert_ok(exphil_model_query(loaded, &b, NULL));
    assert_true(a.weights_hash == b.weights_hash);
    assert_ok(exphil_model_quantize(loaded, EXPHIL_TYPE_I8, &rounded, NULL));
    exphil_model_destroy(loaded);
    check_told(rounded);
    assert_ok(exphil_model_save(rounded, test_path("rounded"), NULL));
    assert_ok(exphil_model_load(context, test_path("rounded"), &loaded, NULL));
    check_told(loaded);
    exphil_model_destroy(loaded);
    exphil_model_destroy(rounded);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    test_folder_remove();
}

/* The text of a saved model with one thing in it replaced by another of the same length, without its checksum. */
static void load_changed(exphil_context *context, const char *from, const char *to, exphil_status status,
                         const char *words)
{
    size_t bytes, length = strlen(from);
    char *file = test_read(test_path("told"), &bytes);
    exphil_model *loaded = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    char *at = test_find(file, bytes, from, length), *sum = test_find(file, bytes, "exphil.model_xxh64", 18);
    assert_non_null(at);
    assert_non_null(sum);
    assert_int_equal(strlen(to), length);
    memcpy(at, to, length);
    memcpy(sum, "exphil.model_other", 18);
    char *copy = malloc(bytes);
    memcpy(copy, file, bytes);
    assert_int_equal(exphil_model_load_memory(context, copy, bytes, &loaded, &error), status);
    assert_says(&error, words);
    free(copy);
    free(file);
}

static void damaged_texts_are_refused(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    train_plan plan = plan_of("gru", EXPHIL_MODE_CARRY);
    exphil_model *model = model_case_create(context, &plan.model);
    assert_ok(exphil_model_save(model, test_path("told"), NULL));
    load_changed(context, "[0,2,5]", "[0,5,2]", EXPHIL_E_FORMAT, "delay_frames");
    load_changed(context, "[0,2,5]", "[2,2,5]", EXPHIL_E_FORMAT, "delays[1] is 2 after 2");
    load_changed(context, "[0,2,5]", "[]     ", EXPHIL_E_FORMAT, "delays is empty");
    load_changed(context, "[0,2,5]", "[0,\\\"5]", EXPHIL_E_FORMAT, "exphil.model");
    load_changed(context, "\\\"mask\\\":0.25", "\\\"mask\\\":7.25", EXPHIL_E_FORMAT, "mask must lie in 0..1");
    load_changed(context, "\\\"values\\\":3", "\\\"values\\\":0", EXPHIL_E_FORMAT, "values is 0");
    load_changed(context, "\\\"values\\\":3", "\\\"values\\\":4", EXPHIL_E_FORMAT,
                 "conditions.player.weight");
    load_changed(context, "\\\"mask\\\":0.25", "\\\"musk\\\":0.25", EXPHIL_E_FORMAT, "mask is missing");
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    test_folder_remove();
}

static void bad_configurations_are_refused(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    static const exphil_condition_spec twice[2] = {{"a", 1, 0, 0}, {"a", 2, 0, 0}},
                                       named[1] = {{"A", 1, 0, 0}}, wide[1] = {{"a", 1, 257, 0}},
                                       nan[1] = {{"a", 1, 0, 0.0 / 0.0}};
    static exphil_id_spec ids[EXPHIL_IDS_MAX];
    static char names[EXPHIL_IDS_MAX][8];
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
#define REFUSED(change, words)                                                                               \
  do {                                                                                                       \
    exphil_model_config config = plan_of("gru", 0).model;                                                    \
    change;                                                                                                  \
    assert_int_equal(exphil_model_create(context, &config, &model, &error), EXPHIL_E_INVALID);               \
    assert_says(&error, words);                                                                              \
  } while (0)
    REFUSED(config.conditions = twice, "conditions[0] and [1] are both called a");
    REFUSED((config.conditions = named, config.condition_count = 1), "conditions[0].name must be");
    REFUSED((config.conditions = wide, config.condition_count = 1), "width is 257");
    REFUSED((config.conditions = nan, config.condition_count = 1), "mask must lie in 0..1");
    REFUSED(config.condition_count = -1, "condition_count is -1");
    REFUSED(config.delay_count = 17, "delay_count is 17, must be 0..16");
    REFUSED(config.delays = NULL, "delays is NULL");
    REFUSED(config.delay_frames = 2, "delay_frames is 2, must be 0 or the longest of delays, 5");
    exphil_spec many = model_case_spec;
    for (int i = 0; i < 62; i++) {
        snprintf(names[i], sizeof names[i], "i%d", i);
        ids[i] = (exphil_id_spec){names[i], 2, 1};
    }
    many.ids = ids;
    many.id_count = 62;
    REFUSED(config.spec = &many, "the spec has 62 ids, conditions and delays are 3 tables more: at most 64");
    exphil_context_destroy(context);
}

/* ---- trainers and checkpoints -------------------------------------------------------------------------------------------- */

static void cannot_train(const train_run *run, const exphil_model_config *config, const char *words)
{
    exphil_model *model = model_case_create(run->context, config);
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_comparison comparison = EXPHIL_COMPARISON_INIT;
    assert_ok(exphil_optimizer_create(model, NULL, &optimizer, NULL));
    assert_int_equal(exphil_trainer_create(model, optimizer, run->prefetcher, NULL, &trainer, &error),
                     EXPHIL_E_MISMATCH);
    assert_says(&error, words);
    assert_int_equal(exphil_model_compare(run->model, model, run->dataset, 0, &comparison, &error),
                     EXPHIL_E_MISMATCH);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
}

static void other_data_is_refused(void **state)
{
    train_plan plan = plan_of("gru", EXPHIL_MODE_CARRY);
    static const exphil_condition_spec more[2] = {{"player", 4, 4, 0.25}, {"rank", 2, 0, 0.5}};
    train_run run = train_begin(&plan);
    exphil_model_config config = plan.model;
    config.conditions = more;
    cannot_train(&run, &config,
                 "prefetcher's conditions[0] is player with 3 values, the model's player with 4");
    config = plan.model;
    config.condition_count = 1;
    cannot_train(&run, &config, "prefetcher's condition_count is 2, the model's 1");
    config = plan.model;
    config.delays = fewer;
    config.delay_count = 2;
    cannot_train(&run, &config, "prefetcher's delays are {0, 2, 5}, the model's {0, 5}");
    config = plan.model;
    config.delay_count = 0;
    config.delay_frames = 5;
    cannot_train(&run, &config, "prefetcher's delays are {0, 2, 5}, the model's {}");
    train_end(&run);
}

static void a_hosts_batches_are_checked(void **state)
{
    train_plan plan = plan_of("gru", EXPHIL_MODE_CARRY);
    plan.by_hand = true;
    train_run run = train_begin(&plan);
    exphil_batch batch = train_batch(run.model, 2, 3, 0), given = batch;
    exphil_error error = EXPHIL_ERROR_INIT;
    int32_t *told = (int32_t *)(uintptr_t)batch.conditions;
    float *mask = (float *)(uintptr_t)batch.mask;
    given.conditions = NULL;
    assert_int_equal(exphil_trainer_step_batch(run.trainer, &given, NULL, &error), EXPHIL_E_INVALID);
    assert_says(&error, "batch: conditions is NULL");
    told[4 * 3] = 4;
    assert_int_equal(exphil_trainer_step_batch(run.trainer, &batch, NULL, &error), EXPHIL_E_INVALID);
    assert_says(&error, "batch: conditions[4] player is 4, outside 0..3");
    told[4 * 3] = 0;
    told[5 * 3 + 2] = 0;
    assert_int_equal(exphil_trainer_step_batch(run.trainer, &batch, NULL, &error), EXPHIL_E_INVALID);
    assert_says(&error, "batch: conditions[5] delay is 0, outside 1..3");
    mask[5] = 0; /* padding has no delay */
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, &error));
    train_batch_free(&batch);
    train_end(&run);
}

static void runs_go_on(void **state)
{
    for (int32_t mode = 0; mode <= 1; mode++) {
        train_plan plan = plan_of("mamba attention", mode);
        size_t bytes;
        train_run whole = train_begin(&plan), part = train_begin(&plan);
        (void)train_steps(&whole, 60);
        (void)train_steps(&part, 37);
        assert_ok(exphil_trainer_save(part.trainer, test_path("net"), NULL));
        train_end(&part);
        plan.threads = 2;
        part = train_begin(&plan);
        assert_ok(exphil_trainer_resume(part.trainer, test_path("net"), NULL));
        (void)train_steps(&part, 23);
        unsigned char *one = train_snapshot(whole.trainer, &bytes),
                      *two = train_snapshot(part.trainer, &bytes);
        assert_memory_equal(one, two, bytes);
        free(one);
        free(two);
        train_end(&whole);
        train_end(&part);
    }
    test_folder_remove();
}

static void cannot_resume(const train_plan *plan, const char *words)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    train_run run = train_begin(plan);
    assert_int_equal(exphil_trainer_resume(run.trainer, test_path("net"), &error), EXPHIL_E_MISMATCH);
    assert_says(&error, words);
    train_end(&run);
}

static void other_runs_are_refused(void **state)
{
    const train_plan plan = plan_of("gru", EXPHIL_MODE_CARRY);
    train_plan other = plan;
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 1);
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    train_end(&run);
    other.model.delays = others;
    cannot_resume(&other, "model.shorter_delays {0 2}, this run has {0 3}");
    other = plan;
    other.model.delay_count = 0;
    other.model.delay_frames = 5;
    cannot_resume(&other, "model.shorter_delays {0 2}, this run has {}");
    other = plan;
    other.model.condition_count = 1;
    cannot_resume(&other, "model.conditions");
    specs[0].mask = 0.75; /* free between trainer and model, but not for a run that goes on */
    cannot_resume(&plan, "sampling.masks");
    specs[0].mask = 0.25;
    specs[1].name = "style"; /* of as many values */
    cannot_resume(&plan, "model.conditions");
    specs[1].name = "rank";
    run = train_begin(&plan);
    exphil_prefetcher *prefetcher = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_sampling sampling = *xph_prefetcher_sampling(run.prefetcher);
    assert_ok(exphil_dataset_condition(run.dataset, "rank", 2, 0, 0, NULL));
    assert_ok(exphil_prefetcher_create(run.dataset, &sampling, &prefetcher, NULL));
    assert_ok(exphil_optimizer_create(run.model, &plan.adam, &optimizer, NULL));
    assert_ok(exphil_trainer_create(run.model, optimizer, prefetcher, NULL, &trainer, NULL));
    assert_int_equal(exphil_trainer_resume(trainer, test_path("net"), &error), EXPHIL_E_MISMATCH);
    assert_says(&error, "dataset.conditions");
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_prefetcher_destroy(prefetcher);
    train_end(&run);
    test_folder_remove();
}

/* ---- what a policy makes of it --------------------------------------------------------------------------------------------- */

/* Actions that follow from the condition alone: stick and trigger of player p are p and p - 1. */
static exphil_dataset *habits(exphil_context *context)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *dataset = NULL;
    config.spec = &model_case_spec;
    assert_ok(exphil_dataset_create(context, &config, &dataset, NULL));
    for (int64_t e = 0; e < 12; e++) {
        enum { T = 40 };
        float floats[T * 13];
        int32_t ids[T * 2], actions[T * 3];
        for (int64_t t = 0; t < T; t++) {
            train_row(e, t, floats + t * 13, ids + t * 2, actions + t * 3);
            ids[t * 2] = 0;
            actions[t * 3] = 0;
            actions[t * 3 + 1] = (int32_t)(1 + e % 3);
            actions[t * 3 + 2] = (int32_t)(e % 3);
        }
        assert_ok(exphil_dataset_add_rows(dataset, (uint64_t)e, T, floats, ids, actions, NULL));
        assert_ok(exphil_dataset_condition(dataset, "player", (uint64_t)e, 0, (int32_t)(1 + e % 3), NULL));
    }
    return dataset;
}

static exphil_model *trained_on(exphil_context *context, const exphil_dataset *dataset)
{
    exphil_model_config config = model_case_config("mlp", EXPHIL_TYPE_F32);
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_model *model = NULL, *trained = NULL;
    exphil_prefetcher *prefetcher = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    config.conditions = specs;
    config.condition_count = 1;
    config.delay_frames = 0;
    config.no_previous_action = 1; /* the last action would tell who it is */
    adam.rate = 3e-3;
    model = model_case_create(context, &config);
    assert_ok(exphil_model_sampling(model, &sampling, NULL));
    sampling.batch = 12;
    sampling.time = 10;
    assert_ok(exphil_prefetcher_create(dataset, &sampling, &prefetcher, NULL));
    assert_ok(exphil_optimizer_create(model, &adam, &optimizer, NULL));
    assert_ok(exphil_trainer_create(model, optimizer, prefetcher, NULL, &trainer, NULL));
    for (int u = 0; u < 400; u++) assert_ok(exphil_trainer_step(trainer, NULL, NULL));
    assert_ok(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &trained, NULL));
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_prefetcher_destroy(prefetcher);
    exphil_model_destroy(model);
    return trained;
}

/* Told who plays, it plays like them; told nothing, it knows what all of them do; told another, it plays like that one. */
static void policies_learn_conditions(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = habits(context);
    exphil_model *model = trained_on(context, dataset);
    exphil_report told = EXPHIL_REPORT_INIT, masked = EXPHIL_REPORT_INIT, other = EXPHIL_REPORT_INIT;
    exphil_evaluation how = EXPHIL_EVALUATION_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    int32_t value = 0, delay = 0;
    assert_ok(exphil_evaluate(model, dataset, NULL, NULL, 0, &told, NULL));
    how.conditions = &value;
    how.condition_count = 1;
    how.delay_frames = &delay;
    assert_ok(exphil_evaluate_as(model, dataset, &how, &masked, NULL));
    value = 2;
    assert_ok(exphil_evaluate_as(model, dataset, &how, &other, NULL));
    assert_true(told.exact_accuracy == 1.0);
    assert_true(told.nll < 0.05);
    assert_true(masked.nll > 1.0 && masked.nll < 2.6); /* who of three it is: log 3, a head each */
    assert_true(masked.exact_accuracy < 0.6);
    assert_true(other.exact_accuracy > 0.33 && other.exact_accuracy < 0.34);
    value = 4;
    assert_int_equal(exphil_evaluate_as(model, dataset, &how, &other, &error), EXPHIL_E_INVALID);
    assert_says(&error, "evaluation: conditions[0] player is 4, outside 0..3");
    value = 1;
    how.condition_count = 2;
    assert_int_equal(exphil_evaluate_as(model, dataset, &how, &other, &error), EXPHIL_E_INVALID);
    assert_says(&error, "condition_count is 2, the model has 1");
    how.condition_count = 1;
    delay = 1;
    assert_int_equal(exphil_evaluate_as(model, dataset, &how, &other, &error), EXPHIL_E_MISMATCH);
    assert_says(&error, "delay_frames is 1, the model was trained with 0");
    exphil_model_destroy(model);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* An evaluation is of the delay that it asks for, else of the same draw every time. */
static void delays_are_evaluated_apart(void **state)
{
    train_plan plan = plan_of("gru", EXPHIL_MODE_CARRY);
    plan.episodes = 9;
    train_run run = train_begin(&plan);
    exphil_report mixed = EXPHIL_REPORT_INIT, again = EXPHIL_REPORT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    double nll[4];
    assert_ok(exphil_evaluate(run.model, run.dataset, NULL, NULL, 0, &mixed, NULL));
    assert_ok(exphil_evaluate(run.model, run.dataset, NULL, NULL, 0, &again, NULL));
    assert_true(mixed.nll == again.nll);
    exphil_evaluation how = EXPHIL_EVALUATION_INIT;
    for (int i = 0; i < 3; i++) {
        exphil_report one = EXPHIL_REPORT_INIT;
        how.delay_frames = &delays[i];
        assert_ok(exphil_evaluate_as(run.model, run.dataset, &how, &one, NULL));
        assert_int_equal(one.frames, mixed.frames);
        nll[i] = one.nll;
    }
    nll[3] = mixed.nll;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++) assert_true(nll[i] != nll[k]);
    how.delay_frames = &others[1];
    assert_int_equal(exphil_evaluate_as(run.model, run.dataset, &how, &again, &error), EXPHIL_E_MISMATCH);
    assert_says(&error, "delay_frames is 3, the model was trained with 0, 2, 5");
    train_end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_keep_what_is_told),        cmocka_unit_test(damaged_texts_are_refused),
        cmocka_unit_test(bad_configurations_are_refused), cmocka_unit_test(other_data_is_refused),
        cmocka_unit_test(a_hosts_batches_are_checked),    cmocka_unit_test(runs_go_on),
        cmocka_unit_test(other_runs_are_refused),         cmocka_unit_test(policies_learn_conditions),
        cmocka_unit_test(delays_are_evaluated_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
