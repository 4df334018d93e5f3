/* Training with rounded weights in the forward pass: what is seen is what quantize makes, gradients are
 * those of the rounded weights and go to the weights as they are, runs go on to the last bit. */
#include "train_case.h"

#include <stdlib.h>

static const int32_t types[2] = {EXPHIL_TYPE_BF16, EXPHIL_TYPE_I8};

static train_plan fake_plan(const char *blocks, int32_t type)
{
    train_plan plan = train_plan_of(blocks, EXPHIL_MODE_CARRY);
    plan.trainer.fake_quantize = type;
    return plan;
}

static exphil_model *trained_model(const train_run *run, int32_t which)
{
    exphil_model *model = NULL;
    assert_ok(exphil_trainer_model(run->trainer, which, &model, NULL));
    return model;
}

/* A plain model with the weights that a quantised one has. */
static exphil_model *rounded_floats(const exphil_model *model, int32_t type)
{
    exphil_model *quantized = NULL, *floats = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_quantize(model, type, &quantized, &error) < 0) fail_msg("%s", error.message);
    assert_ok(xph_model_with_weights(model, xph_model_weights(quantized), 0, 0, &floats, NULL));
    exphil_model_destroy(quantized);
    return floats;
}

/* After any number of updates forward sees what quantize would make of the trained model now. */
static void what_is_seen_is_what_quantize_makes(void **state)
{
    static const char *const blocks[] = {
        "(mamba attention)*2 gru ffn", "mamba_exphil lstm_bare ffn_gelu norm gru_only relu dense lstm_only"};
    for (int i = 0; i < 4; i++) {
        const int t = i % 2;
        train_plan plan = fake_plan(blocks[i / 2], types[t]);
        plan.model.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
        if (i > 1) model_case_end(&plan.model, i - 2); /* heads with layers of their own */
        train_run run = train_begin(&plan);
        for (int n = 0; n < 3; n++) {
            exphil_model *model = trained_model(&run, EXPHIL_WEIGHTS),
                         *floats = rounded_floats(model, types[t]);
            const xph_model_shape *shape = xph_model_shape_of(model);
            size_t bytes = (size_t)shape->weights * shape->real_bytes;
            assert_memory_equal(xph_trainer_seen(run.trainer), xph_model_weights(floats), bytes);
            assert_memory_equal(run.trainer->weights, xph_model_weights(model), bytes);
            assert_true(memcmp(run.trainer->weights, xph_trainer_seen(run.trainer), bytes) != 0);
            exphil_model_destroy(floats);
            exphil_model_destroy(model);
            (void)train_steps(&run, 2);
        }
        train_end(&run);
    }
}

/* The first update from weights W has the loss and the gradient of a plain run from the rounded W. */
static void gradients_go_straight_through(void **state)
{
    for (int t = 0; t < 2; t++) {
        train_plan plan = fake_plan("gru mlp", types[t]);
        plan.by_hand = true;
        train_run run = train_begin(&plan);
        exphil_model *floats = rounded_floats(run.model, types[t]);
        exphil_optimizer *optimizer = NULL;
        exphil_trainer *plain = NULL;
        exphil_metrics a = EXPHIL_METRICS_INIT, b = EXPHIL_METRICS_INIT;
        exphil_batch batch = train_batch(run.model, 2, 6, 0);
        assert_ok(exphil_optimizer_create(floats, &plan.adam, &optimizer, NULL));
        assert_ok(exphil_trainer_create(floats, optimizer, NULL, NULL, &plain, NULL));
        assert_ok(exphil_trainer_step_batch(run.trainer, &batch, &a, NULL));
        assert_ok(exphil_trainer_step_batch(plain, &batch, &b, NULL));
        assert_true(a.loss == b.loss && a.gradient_norm == b.gradient_norm);
        assert_memory_equal(run.trainer->gradients, plain->gradients, plain->arena_bytes);
        /* the step itself was taken by W: a first step of Adam is as large everywhere, so both moved alike */
        const float *from = xph_model_weights(run.model), *to = run.trainer->weights;
        const float *from_rounded = xph_model_weights(floats), *to_rounded = plain->weights;
        int64_t moved = 0;
        for (int64_t i = 0; i < xph_model_shape_of(floats)->weights; i++) {
            float one = to[i] - from[i], other = to_rounded[i] - from_rounded[i];
            assert_true(one - other < 1e-6f && other - one < 1e-6f);
            moved += one != 0.0f;
        }
        assert_true(moved > 1000);
        train_batch_free(&batch);
        exphil_trainer_destroy(plain);
        exphil_optimizer_destroy(optimizer);
        exphil_model_destroy(floats);
        train_end(&run);
    }
}

/* Scores are those of the weights that forward sees. */
static void scores_are_of_rounded_weights(void **state)
{
    for (int t = 0; t < 2; t++)
        for (int32_t which = 0; which < 2; which++) {
            train_plan plan = fake_plan("gru", types[t]);
            plan.adam.ema_decay = 0.9;
            train_run run = train_begin(&plan);
            (void)train_steps(&run, 4);
            exphil_model *model = trained_model(&run, which), *floats = rounded_floats(model, types[t]);
            exphil_report got = EXPHIL_REPORT_INIT, want = EXPHIL_REPORT_INIT, other = EXPHIL_REPORT_INIT;
            assert_ok(exphil_trainer_evaluate(run.trainer, which, run.dataset, NULL, &got, NULL));
            assert_ok(exphil_evaluate(floats, run.dataset, NULL, NULL, 0, &want, NULL));
            assert_ok(exphil_evaluate(model, run.dataset, NULL, NULL, 0, &other, NULL));
            assert_memory_equal(&got, &want, sizeof got);
            assert_true(got.nll != other.nll);
            exphil_model_destroy(floats);
            exphil_model_destroy(model);
            train_end(&run);
        }
}

static void it_learns(void **state)
{
    for (int i = 0; i < 4; i++) {
        const int t = i % 2;
        train_plan plan = fake_plan(i < 2 ? "gru" : "mamba_exphil ffn_gelu", types[t]);
        if (i > 1) model_case_end(&plan.model, 2 * i - 4);
        train_run run = train_begin(&plan);
        double first = train_steps(&run, 1).loss, last = train_steps(&run, 200).loss;
        exphil_model *model = trained_model(&run, EXPHIL_WEIGHTS), *quantized = NULL;
        exphil_comparison c = EXPHIL_COMPARISON_INIT;
        exphil_model *floats = rounded_floats(model, types[t]);
        assert_ok(exphil_model_quantize(model, types[t], &quantized, NULL));
        assert_ok(exphil_model_compare(floats, quantized, run.dataset, 0, &c, NULL));
        print_message("loss %.4f, after 200 updates %.4f; rounded inputs too: %.3f %% act alike\n", first,
                      last, 100 * c.agreement);
        assert_true(last < 0.5 * first);
        assert_true(c.agreement > 0.98);
        exphil_model_destroy(floats);
        exphil_model_destroy(quantized);
        exphil_model_destroy(model);
        train_end(&run);
    }
}

static void runs_go_on_to_the_last_bit(void **state)
{
    for (int t = 0; t < 2; t++) {
        train_plan plan = fake_plan("mamba gru", types[t]);
        plan.trainer.accumulate = 2;
        size_t bytes;
        train_run run = train_begin(&plan);
        (void)train_steps(&run, 3);
        assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
        (void)train_steps(&run, 4);
        unsigned char *want = train_snapshot(run.trainer, &bytes);
        train_end(&run);
        run = train_begin(&plan);
        assert_ok(exphil_trainer_resume(run.trainer, test_path("net"), NULL));
        (void)train_steps(&run, 4);
        unsigned char *got = train_snapshot(run.trainer, &bytes);
        assert_memory_equal(got, want, bytes);
        train_end(&run);
        free(got);
        free(want);
    }
    test_folder_remove();
}

static void other_roundings_do_not_go_on(void **state)
{
    train_plan plan = fake_plan("gru", EXPHIL_TYPE_I8);
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 1);
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    train_end(&run);
    for (int32_t other = 0; other <= EXPHIL_TYPE_BF16; other += EXPHIL_TYPE_BF16) {
        exphil_error e = EXPHIL_ERROR_INIT;
        plan.trainer.fake_quantize = other;
        run = train_begin(&plan);
        assert_int_equal(exphil_trainer_resume(run.trainer, test_path("net"), &e), EXPHIL_E_MISMATCH);
        assert_non_null(strstr(e.message, "fake_quantize 3, this run has"));
        train_end(&run);
    }
    test_folder_remove();
}

static void threads_do_not_matter(void **state)
{
    size_t bytes;
    unsigned char *first = NULL;
    for (int32_t threads = 1; threads <= 4; threads *= 2) {
        train_plan plan = fake_plan("mamba lstm", EXPHIL_TYPE_I8);
        plan.threads = threads;
        train_run run = train_begin(&plan);
        (void)train_steps(&run, 3);
        unsigned char *all = train_snapshot(run.trainer, &bytes);
        if (first)
            assert_memory_equal(all, first, bytes);
        else
            first = all;
        if (all != first) free(all);
        train_end(&run);
    }
    free(first);
}

static void quantised_models_are_not_trained(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    exphil_model *quantized = NULL;
    exphil_optimizer *none = NULL, *own = NULL;
    exphil_trainer *trainer = NULL;
    exphil_error e = EXPHIL_ERROR_INIT;
    assert_ok(exphil_model_quantize(run.model, EXPHIL_TYPE_I8, &quantized, NULL));
    assert_int_equal(exphil_optimizer_create(quantized, NULL, &none, &e), EXPHIL_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "fake_quantize"));
    assert_ok(exphil_optimizer_create(run.model, NULL, &own, NULL));
    assert_int_equal(exphil_trainer_create(quantized, own, NULL, NULL, &trainer, &e), EXPHIL_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "fake_quantize"));
    assert_null(none);
    assert_null(trainer);
    exphil_optimizer_destroy(own);
    exphil_model_destroy(quantized);
    train_end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_seen_is_what_quantize_makes),
        cmocka_unit_test(gradients_go_straight_through),
        cmocka_unit_test(scores_are_of_rounded_weights),
        cmocka_unit_test(it_learns),
        cmocka_unit_test(runs_go_on_to_the_last_bit),
        cmocka_unit_test(other_roundings_do_not_go_on),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(quantised_models_are_not_trained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
