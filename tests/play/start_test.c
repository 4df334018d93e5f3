/* What stands before an episode with a delay: a model of neutral_start 1 is shown the same past actions at an episode's start
 * in training, evaluation, comparison and play, and the bits agree. Without it all is as in 0.1. */
#include "train_case.h"

#include "play_case.h"

#include <stdlib.h>

enum { LOGITS = 12, LONGEST = 80, WINDOW = 9 };

static exphil_model_config config_of(int32_t mode, int32_t delay, int32_t no_previous, int32_t neutral)
{
    exphil_model_config config = model_case_config("mamba gru attention", EXPHIL_TYPE_F32);
    config.mode = mode;
    config.window_frames = mode ? WINDOW : 0;
    config.delay_frames = delay;
    config.no_previous_action = no_previous;
    config.neutral_start = neutral;
    return config;
}

/* ---- forward over an episode as training and evaluation see it --------------------------------------------------------- */

/* Logits of the first frames, from batches as a trainer gets them. In window mode frame t is the last of the window that
 * ends there; before the first window is full, frame t of it. */
static int64_t forward_logits(exphil_model *model, const exphil_dataset *dataset, double *logits)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    xph_sampler *sampler = NULL;
    xph_feed feed;
    xph_losses losses;
    const void *packed = NULL;
    int64_t usable = train_episode_frames(0) - shape->delay, windows = 1;
    assert_ok(exphil_model_sampling(model, &sampling, NULL));
    assert_int_equal(sampling.neutral_start, shape->neutral_start);
    sampling.batch = 1;
    sampling.in_order = 1;
    if (shape->mode == EXPHIL_MODE_CARRY)
        sampling.time = usable;
    else
        windows = usable - WINDOW + 1;
    assert_ok(xph_sampler_create(dataset, &sampling, &sampler, NULL));
    assert_ok(xph_losses_take(&model_case_spec, NULL, &losses, NULL));
    assert_ok(xph_feed_create(model, &losses, 1, sampling.time, 1, 0, &feed, NULL));
    assert_ok(xph_model_packed(model, &packed, NULL));
    float *narrow = calloc((size_t)(sampling.time * LOGITS), sizeof *narrow);
    double *wide = calloc((size_t)(sampling.time * LOGITS), sizeof *wide), sums[EXPHIL_HEADS_MAX];
    for (int64_t w = 0; w < windows; w++) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        assert_ok(xph_sampler_batch(sampler, 0, w, &batch, NULL));
        assert_int_equal(batch.reset[0], 1);
        assert_ok(xph_feed_measure(&feed, xph_model_weights(model), packed, &losses, &batch, sums));
        assert_ok(xph_feed_logits(&feed, narrow, wide));
        int64_t from = w ? sampling.time - 1 : 0;
        memcpy(logits + (w + from) * LOGITS, wide + from * LOGITS,
               (size_t)((sampling.time - from) * LOGITS) * sizeof *wide);
    }
    free(narrow);
    free(wide);
    xph_feed_destroy(&feed);
    xph_sampler_destroy(sampler);
    return usable;
}

/* The same frames played: what was recorded is what was done. Returns whether every bit is that of logits. */
static bool plays_alike(const exphil_model *model, int64_t frames, const double *logits)
{
    int64_t delay = xph_model_shape_of(model)->delay;
    exphil_session *session = play_session(model, NULL);
    bool same = true;
    for (int64_t t = 0; t < frames; t++) {
        float floats[13], elsewhere[13], got[LOGITS];
        int32_t ids[2], other[2], action[3], done[3];
        train_row(0, t, floats, ids, action);
        train_row(0, t + delay, elsewhere, other, done);
        assert_ok(exphil_session_step_row(session, floats, ids, NULL, action));
        assert_ok(exphil_session_logits(session, 0, got, LOGITS));
        assert_ok(exphil_session_override(session, 0, done));
        for (int i = 0; i < LOGITS; i++) same &= (double)got[i] == logits[t * LOGITS + i];
    }
    exphil_session_destroy(session);
    return same;
}

static void forward_is_play(void **state)
{
    static const int32_t delays[] = {0, 1, 5, 18};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = train_dataset(context, 1);
    assert_true(train_episode_frames(0) <= LONGEST);
    for (int32_t mode = 0; mode <= 1; mode++)
        for (int d = 0; d < 4; d++)
            for (int32_t previous = 0; previous <= 1; previous++)
                for (int32_t neutral = 0; neutral <= 1; neutral++) {
                    exphil_model_config config = config_of(mode, delays[d], previous, neutral);
                    exphil_model *model = play_model(context, &config, 0.2);
                    double logits[LONGEST * LOGITS];
                    int64_t frames = forward_logits(model, dataset, logits);
                    bool same = plays_alike(model, frames, logits), expected = neutral || !delays[d];
                    if (same != expected)
                        fail_msg("mode %d, delay %d, no_previous_action %d, neutral_start %d: %s", mode,
                                 delays[d], previous, neutral, same ? "equal" : "different");
                    exphil_model_destroy(model);
                }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- nothing sees what was recorded there ------------------------------------------------------------------------------ */

/* Episodes whose first `delay` actions are others. */
static exphil_dataset *with_other_starts(exphil_context *context, int64_t delay)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *dataset = NULL;
    config.spec = &model_case_spec;
    assert_ok(exphil_dataset_create(context, &config, &dataset, NULL));
    for (int64_t e = 0; e < 3; e++) {
        int64_t frames = train_episode_frames(e);
        float *floats = calloc((size_t)(frames * 13), sizeof *floats);
        int32_t *ids = calloc((size_t)(frames * 2), sizeof *ids),
                *actions = calloc((size_t)(frames * 3), sizeof *actions);
        for (int64_t t = 0; t < frames; t++) {
            train_row(e, t, floats + t * 13, ids + t * 2, actions + t * 3);
            for (int h = 0; t < delay && h < 3; h++)
                actions[t * 3 + h] = (actions[t * 3 + h] + 1) % model_case_spec.heads[h].count;
        }
        assert_ok(exphil_dataset_add_rows(dataset, (uint64_t)e, frames, floats, ids, actions, NULL));
        free(floats);
        free(ids);
        free(actions);
    }
    return dataset;
}

typedef struct results {
    exphil_report report;
    exphil_comparison comparison;
    uint64_t weights;
} results;

static results run_all(exphil_context *context, const exphil_model_config *config, int64_t segment,
                       const exphil_dataset *dataset)
{
    results r = {EXPHIL_REPORT_INIT, EXPHIL_COMPARISON_INIT, 0};
    exphil_model *model = play_model(context, config, 0.2), *rounded = NULL, *trained = NULL;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_prefetcher *prefetcher = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_evaluate(model, dataset, NULL, NULL, 0, &r.report, NULL));
    assert_ok(exphil_model_quantize(model, EXPHIL_TYPE_I8, &rounded, NULL));
    assert_ok(exphil_model_compare(model, rounded, dataset, 0, &r.comparison, NULL));
    r.comparison.content_hash = 0;
    assert_ok(exphil_model_sampling(model, &sampling, NULL));
    sampling.batch = 2;
    sampling.segment_frames = segment;
    if (!config->mode) sampling.time = 8;
    assert_ok(exphil_prefetcher_create(dataset, &sampling, &prefetcher, NULL));
    assert_ok(exphil_optimizer_create(model, NULL, &optimizer, NULL));
    assert_ok(exphil_trainer_create(model, optimizer, prefetcher, NULL, &trainer, NULL));
    for (int u = 0; u < 20; u++) assert_ok(exphil_trainer_step(trainer, NULL, NULL));
    assert_ok(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &trained, NULL));
    assert_ok(exphil_model_query(trained, &info, NULL));
    r.weights = info.weights_hash;
    exphil_model_destroy(trained);
    exphil_model_destroy(rounded);
    exphil_model_destroy(model);
    exphil_prefetcher_destroy(prefetcher);
    exphil_optimizer_destroy(optimizer);
    exphil_trainer_destroy(trainer);
    return r;
}

static void recorded_starts_are_not_seen(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *one = with_other_starts(context, 0), *other = with_other_starts(context, 5);
    for (int32_t mode = 0; mode <= 1; mode++)
        for (int32_t neutral = 0; neutral <= 1; neutral++)
            for (int64_t segment = 0; segment <= (mode ? 0 : 12); segment += 12) {
                exphil_model_config config = config_of(mode, 5, 0, neutral);
                results a = run_all(context, &config, segment, one),
                        b = run_all(context, &config, segment, other);
                /* baselines are of the whole dataset, actions that are no targets included */
                assert_int_equal(a.report.nll == b.report.nll, neutral);
                assert_int_equal(a.report.loss == b.report.loss, neutral);
                if (neutral) assert_int_equal(a.report.change_frames, b.report.change_frames);
                assert_int_equal(a.comparison.kl == b.comparison.kl, neutral);
                assert_int_equal(a.weights == b.weights, neutral);
            }
    exphil_dataset_destroy(one);
    exphil_dataset_destroy(other);
    exphil_context_destroy(context);
}

/* ---- the rule is told, kept and compared -------------------------------------------------------------------------------- */

static void models_tell_their_rule(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = config_of(EXPHIL_MODE_CARRY, 3, 0, 1);
    exphil_model *model = NULL, *loaded = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t bytes;
    assert_ok(exphil_model_create(context, &config, &model, NULL));
    assert_ok(exphil_model_save(model, test_path("new"), NULL));
    assert_ok(exphil_model_load(context, test_path("new"), &loaded, NULL));
    assert_ok(exphil_model_query(loaded, &info, NULL));
    assert_int_equal(info.neutral_start, 1);
    uint64_t hash = info.weights_hash;
    exphil_model_destroy(model);
    exphil_model_destroy(loaded);
    config.neutral_start = 0;
    assert_ok(exphil_model_create(context, &config, &model, NULL));
    assert_ok(exphil_model_save(model, test_path("old"), NULL));
    assert_ok(exphil_model_query(model, &info, NULL));
    assert_int_equal(info.neutral_start, 0);
    assert_true(info.weights_hash != hash); /* they are not trained alike */
    char *text = test_read(test_path("old"), &bytes);
    assert_null(test_find(text, bytes, "neutral_start", 13));
    free(text);
    text = test_read(test_path("new"), &bytes);
    assert_non_null(test_find(text, bytes, "neutral_start\\\":1", 17));
    free(text);
    exphil_model_destroy(model);
    config.neutral_start = 2;
    assert_int_equal(exphil_model_create(context, &config, &model, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "neutral_start"));
    config.neutral_start = 0;
    config.reserved_2 = 1;
    assert_int_equal(exphil_model_create(context, &config, &model, &error), EXPHIL_E_INVALID);
    exphil_context_destroy(context);
    test_folder_remove();
}

static void another_rule_is_refused(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    exphil_model *other = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_comparison comparison = EXPHIL_COMPARISON_INIT;
    plan.model.delay_frames = 2;
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 1);
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    plan.model.neutral_start = 1;
    assert_ok(exphil_model_create(run.context, &plan.model, &other, NULL));
    assert_ok(exphil_optimizer_create(other, NULL, &optimizer, NULL));
    assert_int_equal(exphil_trainer_create(other, optimizer, run.prefetcher, NULL, &trainer, &error),
                     EXPHIL_E_MISMATCH);
    assert_non_null(strstr(error.message, "neutral_start is 0, the model's is 1"));
    assert_int_equal(exphil_model_compare(run.model, other, run.dataset, 0, &comparison, &error),
                     EXPHIL_E_MISMATCH);
    assert_non_null(strstr(error.message, "neutral_start"));
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(other);
    train_end(&run);
    run = train_begin(&plan);
    assert_int_equal(exphil_trainer_resume(run.trainer, test_path("net"), &error), EXPHIL_E_MISMATCH);
    assert_non_null(strstr(error.message, "model.neutral_start 0, this run has 1"));
    (void)train_steps(&run, 1);
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    assert_ok(exphil_trainer_resume(run.trainer, test_path("net"), NULL));
    train_end(&run);
    test_folder_remove();
}

/* A program of 0.1 has shorter structs: it makes what 0.1 made, and a model of the other rule it cannot feed. */
static void short_structs_are_of_the_old_rule(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = train_dataset(context, 2);
    exphil_model_config config = config_of(EXPHIL_MODE_CARRY, 2, 0, 1);
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_model *model = NULL;
    exphil_prefetcher *prefetcher = NULL;
    config.struct_size = offsetof(exphil_model_config, neutral_start);
    sampling.struct_size = offsetof(exphil_sampling, neutral_start);
    info.struct_size = offsetof(exphil_model_info, neutral_start);
    info.neutral_start = 77;
    assert_ok(exphil_model_create(context, &config, &model, NULL));
    assert_ok(exphil_model_query(model, &info, NULL));
    assert_int_equal(info.neutral_start, 77);
    assert_int_equal(xph_model_shape_of(model)->neutral_start, 0);
    assert_ok(exphil_model_sampling(model, &sampling, NULL));
    assert_ok(exphil_prefetcher_create(dataset, &sampling, &prefetcher, NULL));
    assert_int_equal(xph_prefetcher_sampling(prefetcher)->neutral_start, 0);
    exphil_prefetcher_destroy(prefetcher);
    exphil_model_destroy(model);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_play),
        cmocka_unit_test(recorded_starts_are_not_seen),
        cmocka_unit_test(models_tell_their_rule),
        cmocka_unit_test(another_rule_is_refused),
        cmocka_unit_test(short_structs_are_of_the_old_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
