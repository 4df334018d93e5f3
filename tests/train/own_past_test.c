/* Past actions that are the policy's own: what they are, the update that is made of them, its continuation, and what it
 * and dropped past actions do against copying. */
#include "train_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 3, LOGITS = 12, LANES = 3, TIME = 11, ROWS = LANES * TIME, DELAYS = 3 };
static const int32_t delays[DELAYS] = {0, 2, 5};

static train_plan plan_of(const char *blocks, int32_t delay, double share)
{
    train_plan plan = train_plan_of(blocks, EXPHIL_MODE_CARRY);
    plan.by_hand = true;
    plan.model.delay_frames = delay;
    plan.trainer.own_past = share;
    plan.trainer.own_past_seed = 77;
    return plan;
}

/* ---- what the past becomes ------------------------------------------------------------------------------------------- */

/* The numbers of a row, as own_past.c says: the first takes the decision, the others draw it. */
static bool row_noise(int64_t number, int64_t row, double share, float *noise)
{
    xph_rng rng = {77, XPH_RNG_OWN | (uint64_t)number << 8, (uint64_t)(row * 16)};
    bool taken = (double)xph_rng_float(&rng) < share;
    xph_rng_floats(&rng, noise, LOGITS);
    return taken;
}

/* Rows of the same episode before this one: lanes begin with an episode, and the second has another from its row 4 on. */
static int64_t since_start(int64_t r)
{
    return r / TIME == 1 && r % TIME >= 4 ? r % TIME - 4 : r % TIME;
}

/* With several delays an episode has one: which of them; else 0. */
static int which(int64_t r)
{
    return (int)((r / TIME + (r / TIME == 1 && r % TIME >= 4)) % DELAYS);
}

/* Slots that a row sees: with delay d the d under way and the one before. */
static int64_t seen(const exphil_batch *batch, int64_t r, int64_t slots)
{
    return batch->conditions ? delays[which(r)] + 1 : slots;
}

/* By sessions, one for each delay, that are shown the rows and told what was recorded, and draw with the same noise. */
static void expected_past(const exphil_model *model, const exphil_batch *batch, int64_t slots, int64_t number,
                          double share, int32_t *past)
{
    exphil_session *sessions[DELAYS] = {NULL};
    int32_t drawn[ROWS][HEADS];
    bool taken[ROWS], several = batch->conditions != NULL;
    for (int k = 0; k < (several ? DELAYS : 1); k++) {
        exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
        config.deliver = EXPHIL_DELIVER_DECIDED;
        config.delay_frames = several ? &delays[k] : NULL;
        assert_ok(exphil_session_create(model, &config, &sessions[k], NULL));
    }
    for (int64_t r = 0; r < ROWS; r++) {
        exphil_session *session = sessions[several ? which(r) : 0];
        float noise[LOGITS];
        taken[r] = row_noise(number, r, share, noise);
        if (batch->reset[r]) assert_ok(exphil_session_reset(session, 0));
        assert_ok(
            exphil_session_step_row(session, batch->floats + r * 13, batch->ids + r * 2, noise, drawn[r]));
        assert_ok(exphil_session_override(session, 0, batch->actions + r * HEADS));
    }
    for (int k = 0; k < DELAYS; k++) exphil_session_destroy(sessions[k]);
    memcpy(past, batch->past, (size_t)(ROWS * slots * HEADS) * sizeof *past);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t s = 0; s < seen(batch, r, slots) && s < since_start(r); s++)
            if (taken[r - 1 - s]) memcpy(past + (r * slots + s) * HEADS, drawn[r - 1 - s], sizeof drawn[0]);
}

/* Past actions before an episode are neutral in a session, and so are those that it does not see: in the batch too. */
static void neutral_starts(exphil_batch *batch, int64_t slots)
{
    int32_t *past = (int32_t *)(uintptr_t)batch->past, *told = (int32_t *)(uintptr_t)batch->conditions;
    ((uint8_t *)(uintptr_t)batch->reset)[TIME + 4] = 1;
    for (int64_t r = 0; told && r < ROWS; r++) told[r] = 1 + which(r);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t s = since_start(r) < seen(batch, r, slots) ? since_start(r) : seen(batch, r, slots);
             s < slots; s++)
            for (int h = 0; h < HEADS; h++)
                past[(r * slots + s) * HEADS + h] = model_case_spec.heads[h].neutral;
}

/* An update with own_past, and one of a batch whose past was replaced by hand: gradients, and all that follows, are the
 * same to the last bit. */
static void as_replaced_by_hand(const char *blocks, int32_t delay, double share, int32_t heads, bool several,
                                int end)
{
    train_plan plan = plan_of(blocks, delay, share), plain = plan_of(blocks, delay, 0);
    if (end >= 0) model_case_end(&plan.model, end);
    if (end >= 0) model_case_end(&plain.model, end);
    plan.model.heads = plain.model.heads = heads;
    plan.model.delays = plain.model.delays = several ? delays : NULL;
    plan.model.delay_count = plain.model.delay_count = several ? DELAYS : 0;
    train_run run = train_begin(&plan), other = train_begin(&plain);
    int64_t slots = delay + 1;
    exphil_batch batch = train_batch(run.model, LANES, TIME, 0);
    neutral_starts(&batch, slots);
    int32_t *past = malloc((size_t)(ROWS * slots * HEADS) * sizeof *past);
    for (int64_t number = 1; number <= 3; number++) {
        exphil_model *now = NULL;
        exphil_metrics mine = EXPHIL_METRICS_INIT, theirs = EXPHIL_METRICS_INIT;
        assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &now, NULL));
        expected_past(now, &batch, slots, number, share, past);
        assert_true((memcmp(past, batch.past, (size_t)(ROWS * slots * HEADS) * sizeof *past) != 0) ==
                    (share > 0));
        exphil_batch by_hand = batch;
        by_hand.past = past;
        assert_ok(exphil_trainer_step_batch(run.trainer, &batch, &mine, NULL));
        assert_ok(exphil_trainer_step_batch(other.trainer, &by_hand, &theirs, NULL));
        assert_true(mine.loss == theirs.loss && mine.gradient_norm == theirs.gradient_norm);
        assert_memory_equal(run.trainer->gradients, other.trainer->gradients, run.trainer->arena_bytes);
        size_t bytes = 0, others = 0;
        unsigned char *a = train_snapshot(run.trainer, &bytes), *b = train_snapshot(other.trainer, &others);
        assert_int_equal(bytes, others);
        assert_memory_equal(a, b, bytes); /* the carried state too */
        free(a);
        free(b);
        exphil_model_destroy(now);
    }
    free(past);
    train_batch_free(&batch);
    train_end(&other);
    train_end(&run);
}

static void the_update_is_that_of_its_mixed_past(void **state)
{
    static const char *const patterns[] = {EACH_BLOCK ALL_BLOCKS};
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++)
        for (int32_t delay = 0; delay <= 2; delay += 2) {
            as_replaced_by_hand(patterns[p], delay, 0.5, EXPHIL_HEADS_INDEPENDENT, false, (int)p % 5 - 1);
            as_replaced_by_hand(patterns[p], delay, 1.0, EXPHIL_HEADS_AUTOREGRESSIVE, false, (int)p % 5 - 1);
        }
}

/* With several delays: a row's own decisions stand only where its delay sees past actions. */
static void slots_that_are_not_seen_stay_neutral(void **state)
{
    static const char *const patterns[] = {EACH_BLOCK ALL_BLOCKS};
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
        as_replaced_by_hand(patterns[p], delays[DELAYS - 1], 0.5, EXPHIL_HEADS_INDEPENDENT, true,
                            (int)p % 5 - 1);
        as_replaced_by_hand(patterns[p], delays[DELAYS - 1], 1.0, EXPHIL_HEADS_AUTOREGRESSIVE, true,
                            (int)p % 5 - 1);
    }
}

/* Rows that were dropped keep their neutral past; the first row of an episode what it has. */
static void dropped_rows_stay(void **state)
{
    train_plan plan = plan_of("gru", 0, 1.0);
    train_run run = train_begin(&plan);
    exphil_batch batch = train_batch(run.model, LANES, TIME, 0);
    uint8_t dropped[ROWS] = {0};
    for (int r = 5; r < 20; r++) dropped[r] = 1;
    batch.dropped = dropped;
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, NULL));
    int64_t differ = 0;
    for (int r = 0; r < ROWS; r++) {
        bool same = memcmp(run.trainer->own_past.past + r * HEADS, batch.past + r * HEADS, 12) == 0;
        assert_true(same || !(dropped[r] || batch.reset[r]));
        differ += !same;
    }
    assert_true(differ > 5);
    train_batch_free(&batch);
    train_end(&run);
}

/* ---- a run ----------------------------------------------------------------------------------------------------------- */

static train_plan run_plan(int32_t mode, int32_t threads)
{
    train_plan plan = train_plan_of("mamba gru", mode);
    plan.threads = threads;
    plan.model.delay_frames = 2;
    plan.model.neutral_start = 1;
    plan.sampling.drop_past = 0.4;
    plan.trainer.own_past = 0.6;
    plan.trainer.own_past_ramp_updates = 8;
    plan.trainer.own_past_seed = 5;
    plan.trainer.accumulate = 2;
    return plan;
}

static unsigned char *after(const train_plan *plan, int64_t updates, size_t *bytes)
{
    train_run run = train_begin(plan);
    (void)train_steps(&run, updates);
    unsigned char *all = train_snapshot(run.trainer, bytes);
    train_end(&run);
    return all;
}

static void threads_and_resume_give_the_same_bits(void **state)
{
    const char *path = test_path("own_past");
    for (int32_t mode = 0; mode <= 1; mode++) {
        train_plan plan = run_plan(mode, 1), wide = run_plan(mode, 3);
        size_t bytes, others;
        unsigned char *want = after(&plan, 12, &bytes), *got = after(&wide, 12, &others);
        assert_int_equal(bytes, others);
        assert_memory_equal(want, got, bytes);
        free(got);
        train_run run = train_begin(&plan);
        (void)train_steps(&run, 5);
        assert_ok(exphil_trainer_save(run.trainer, path, NULL));
        train_end(&run);
        run = train_begin(&wide);
        assert_ok(exphil_trainer_resume(run.trainer, path, NULL));
        (void)train_steps(&run, 7);
        got = train_snapshot(run.trainer, &others);
        assert_int_equal(bytes, others);
        assert_memory_equal(want, got, bytes);
        train_end(&run);
        free(got);
        free(want);
    }
}

/* Each setting of the checkpoint must be that of the run. */
static void resume_names_what_differs(void **state)
{
    const char *path = test_path("own_past_settings");
    train_plan plan = run_plan(EXPHIL_MODE_CARRY, 1);
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 1);
    assert_ok(exphil_trainer_save(run.trainer, path, NULL));
    train_end(&run);
    static const char *const names[] = {"sampling.drop_past", "own_past ", "own_past_ramp_updates",
                                        "own_past_seed"};
    for (int i = 0; i < 4; i++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        train_plan other = plan;
        if (i == 0) other.sampling.drop_past = 0.5;
        if (i == 1) other.trainer.own_past = 0.5;
        if (i == 2) other.trainer.own_past_ramp_updates = 9;
        if (i == 3) other.trainer.own_past_seed = 6;
        run = train_begin(&other);
        assert_int_equal(exphil_trainer_resume(run.trainer, path, &error), EXPHIL_E_MISMATCH);
        assert_says(&error, names[i]);
        train_end(&run);
    }
}

/* ---- what is not right ------------------------------------------------------------------------------------------------ */

static void refused(const train_plan *plan, const exphil_trainer_config *config, const char *says)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_trainer *trainer = NULL;
    train_run run = train_begin(plan);
    exphil_optimizer *optimizer = NULL;
    assert_ok(exphil_optimizer_create(run.model, NULL, &optimizer, NULL));
    assert_int_equal(exphil_trainer_create(run.model, optimizer, NULL, config, &trainer, &error),
                     EXPHIL_E_INVALID);
    assert_says(&error, says);
    assert_null(trainer);
    exphil_optimizer_destroy(optimizer);
    train_end(&run);
}

static void bad_settings_are_refused(void **state)
{
    train_plan plan = plan_of("mlp", 0, 0), blind = plan;
    blind.model.no_previous_action = 1;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    config.own_past = 1.5;
    refused(&plan, &config, "own_past is 1.5");
    config.own_past = (double)NAN;
    refused(&plan, &config, "own_past is");
    config.own_past = 0.5;
    refused(&blind, &config, "the model has no past actions");
    config.own_past_ramp_updates = -3;
    refused(&plan, &config, "own_past_ramp_updates is -3");
    train_run run = train_begin(&plan);
    const double shares[] = {-0.1, 1.1, (double)NAN, 0.5};
    for (int i = 0; i < 4; i++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        exphil_prefetcher *prefetcher = NULL;
        exphil_sampling sampling = EXPHIL_SAMPLING_INIT; /* no action slots */
        sampling.drop_past = shares[i];
        assert_int_equal(exphil_prefetcher_create(run.dataset, &sampling, &prefetcher, &error),
                         EXPHIL_E_INVALID);
        assert_says(&error, i < 3 ? "sampling.drop_past is" : "action_slots is 0");
    }
    train_end(&run);
}

/* ---- copying ---------------------------------------------------------------------------------------------------------- */

/* Two actions, held for 150 to 250 frames: whether an odd number of signs, which are held as long, is up. Copying is right
 * on all frames but those of a change and is learnt at once; the signs say all, but few frames show that. */
enum { CLASSES = 3, EPISODES = 12, FRAMES = 600, SEEN = 3 };
static const exphil_head_spec held_head = {"held", EXPHIL_CATEGORICAL, CLASSES, 0, 0};

static double noise_of(int64_t episode, int64_t t, int64_t i)
{
    const int64_t key[3] = {episode, t, i};
    return (double)(xph_hash(key, sizeof key) >> 11) * 0x1p-53;
}

static exphil_dataset *held_actions(exphil_context *context, int64_t first)
{
    exphil_spec spec = EXPHIL_SPEC_INIT;
    spec.layout = spec.codec = "held";
    spec.float_count = SEEN;
    spec.head_count = 1;
    spec.heads = &held_head;
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    config.spec = &spec;
    exphil_dataset *dataset = NULL;
    assert_ok(exphil_dataset_create(context, &config, &dataset, NULL));
    static float floats[FRAMES][SEEN];
    static int32_t actions[FRAMES];
    for (int64_t e = first; e < first + EPISODES; e++) {
        int64_t left = 0;
        bool up[SEEN] = {false};
        for (int64_t t = 0; t < FRAMES; t++) {
            if (left-- == 0) {
                left = 149 + (int64_t)(101 * noise_of(e, t, 0));
                for (int i = 0; i < SEEN; i++) up[i] = noise_of(e, t, 1 + i) < 0.5;
            }
            actions[t] = 1 + (up[0] ^ up[1] ^ up[2]);
            for (int i = 0; i < SEEN; i++) floats[t][i] = up[i] ? 1.0f : -1.0f;
        }
        assert_ok(exphil_dataset_add_rows(dataset, (uint64_t)e, FRAMES, floats[0], NULL, actions, NULL));
    }
    return dataset;
}

typedef struct scores {
    double forced, alone;
} scores;

static scores learn(double drop, double own)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *shown = held_actions(context, 0), *unseen = held_actions(context, EPISODES);
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config how = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_report report = EXPHIL_REPORT_INIT;
    train_run run = {.context = context, .dataset = shown};
    assert_ok(exphil_dataset_spec(shown, &spec, NULL));
    config.spec = &spec;
    config.blocks = "gru";
    config.hidden = config.head_width = 16;
    config.seed = 4;
    assert_ok(exphil_model_create(context, &config, &run.model, NULL));
    assert_ok(exphil_model_sampling(run.model, &sampling, NULL));
    sampling.drop_past = drop;
    sampling.seed = 3;
    adam.rate = 4e-3;
    how.own_past = own;
    assert_ok(exphil_prefetcher_create(shown, &sampling, &run.prefetcher, NULL));
    assert_ok(exphil_optimizer_create(run.model, &adam, &run.optimizer, NULL));
    assert_ok(exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &how, &run.trainer, NULL));
    (void)train_steps(&run, 225);
    report.alone_most_frames = INT64_MAX;
    assert_ok(exphil_trainer_evaluate(run.trainer, EXPHIL_WEIGHTS, unseen, NULL, &report, NULL));
    exphil_dataset_destroy(unseen);
    train_end(&run);
    print_message("drop_past %.1f own_past %.1f: teacher-forced %.3f, alone %.3f\n", drop, own,
                  report.exact_accuracy, report.alone_accuracy);
    return (scores){report.exact_accuracy, report.alone_accuracy};
}

static void copying_shows_and_is_cured(void **state)
{
    scores plain = learn(0, 0), drop = learn(0.5, 0), own = learn(0, 0.5), both = learn(0.5, 0.5);
    assert_true(plain.forced > 0.99 && plain.alone < 0.8);
    assert_true(drop.alone > 0.95 && both.alone > 0.95);
    assert_true(own.alone > plain.alone + 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_update_is_that_of_its_mixed_past),
        cmocka_unit_test(slots_that_are_not_seen_stay_neutral),
        cmocka_unit_test(dropped_rows_stay),
        cmocka_unit_test(threads_and_resume_give_the_same_bits),
        cmocka_unit_test(resume_names_what_differs),
        cmocka_unit_test(bad_settings_are_refused),
        cmocka_unit_test(copying_shows_and_is_cured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
