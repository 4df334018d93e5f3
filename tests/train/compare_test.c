/* Two models beside each other: numbers worked out by hand where both always say the same, a model against
 * itself and its quantised forms, and everything that does not belong together. */
#include "play_case.h"
#include "train_case.h"

#include <math.h>
#include <stdlib.h>

static void assert_near(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * (1.0 + fabs(want)))) fail_msg("%s is %.9g, not %.9g", what, got, want);
}
#define NEAR(got, field, want) assert_near(#field, (got).field, want)

static exphil_comparison compare(const exphil_model *reference, const exphil_model *model,
                                 const exphil_dataset *dataset, int64_t batch)
{
    exphil_comparison c = EXPHIL_COMPARISON_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_compare(reference, model, dataset, batch, &c, &error) < 0) fail_msg("%s", error.message);
    return c;
}

/* ---- by hand ------------------------------------------------------------------------------------------- */

/* 3 bits, 5 and 4 classes. All weights zero but the biases of the logits: the model says this on every
 * frame. */
static exphil_model *says(exphil_context *context, const float logits[12])
{
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(context, &config);
    exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
    for (int64_t i = 0; exphil_model_tensor_info(model, i, &info, NULL) == EXPHIL_OK; i++) {
        float *zero = calloc(1, info.size_bytes);
        if (strcmp(info.name, "heads.logits.bias") == 0) memcpy(zero, logits, 12 * sizeof *zero);
        assert_ok(exphil_model_tensor_set(model, info.name, zero, info.size_bytes, NULL));
        free(zero);
    }
    return model;
}

static double kl_of_bit(double a, double b)
{
    double p = 1 / (1 + exp(-a)), q = 1 / (1 + exp(-b));
    return p * log(p / q) + (1 - p) * log((1 - p) / (1 - q));
}

static double kl_of_classes(const float *a, const float *b, int count)
{
    double sum_a = 0, sum_b = 0, kl = 0;
    for (int k = 0; k < count; k++) {
        sum_a += exp((double)a[k]);
        sum_b += exp((double)b[k]);
    }
    for (int k = 0; k < count; k++) {
        double p = exp((double)a[k]) / sum_a, q = exp((double)b[k]) / sum_b;
        kl += p * log(p / q);
    }
    return kl;
}

static void constant_models_by_hand(void **state)
{
    /*                          bits           stick                trigger: a tie goes to the lower class */
    static const float a[12] = {1, -2, 0.5f, /**/ 0, 1, 3, -1, 0, /**/ 2, 2, 0, -1};
    static const float b[12] = {1, -2, -0.5f, /**/ 0, 1, 2, -1, 0.5f, /**/ 2, 1, 0, -1};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = train_dataset(context, 3);
    exphil_model *one = says(context, a), *two = says(context, b);
    exphil_comparison c = compare(one, two, dataset, 2);
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_dataset_info data = EXPHIL_DATASET_INFO_INIT;
    assert_ok(exphil_model_query(one, &info, NULL));
    assert_ok(exphil_dataset_query(dataset, &data, NULL));
    assert_true(c.reference_hash == info.weights_hash && c.content_hash == data.content_hash);
    assert_int_equal(c.frames, 40 + 53 + 66); /* the last of each episode has no target: delay 1 */
    assert_int_equal(c.heads, 3);
    NEAR(c, agreement, 0);
    NEAR(c, head[0].agreement, 0);
    NEAR(c, head[1].agreement, 1);
    NEAR(c, head[2].agreement, 1);
    NEAR(c, max_error, 1);
    NEAR(c, head[0].max_error, 1);
    NEAR(c, head[1].max_error, 1);
    NEAR(c, head[2].max_error, 1);
    NEAR(c, rms_error, sqrt((1 + 1.25 + 1) / 12));
    NEAR(c, head[0].rms_error, sqrt(1 / 3.0));
    NEAR(c, head[1].rms_error, sqrt(1.25 / 5));
    NEAR(c, head[2].rms_error, sqrt(1 / 4.0));
    double kl[3] = {kl_of_bit(0.5, -0.5), kl_of_classes(a + 3, b + 3, 5), kl_of_classes(a + 8, b + 8, 4)};
    for (int h = 0; h < 3; h++) NEAR(c, head[h].kl, kl[h]);
    NEAR(c, kl, kl[0] + kl[1] + kl[2]);
    exphil_model_destroy(one);
    exphil_model_destroy(two);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static void a_model_is_itself(void **state)
{
    static const char *const patterns[] = {"mamba", "attention gru", "lstm ffn"};
    exphil_context *context = test_context(NULL, NULL, 2);
    exphil_dataset *dataset = train_dataset(context, 4);
    for (int i = 0; i < 6; i++) {
        exphil_model_config config = model_case_config(patterns[i % 3], EXPHIL_TYPE_F32);
        config.mode = i < 3 ? EXPHIL_MODE_CARRY : EXPHIL_MODE_WINDOW;
        config.window_frames = i < 3 ? 0 : 5;
        config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
        config.delay_frames = i % 2;
        config.no_previous_action = i == 4;
        exphil_model *model = play_model(context, &config, 0.2);
        exphil_comparison c = compare(model, model, dataset, 0);
        assert_true(c.max_error == 0 && c.rms_error == 0 && c.kl == 0 && c.agreement == 1 && c.frames > 100);
        config.type = EXPHIL_TYPE_F64; /* a model in double says nearly the same */
        exphil_model *other = play_model(context, &config, 0.2);
        exphil_comparison near = compare(other, model, dataset, 0);
        assert_true(near.max_error > 0 && near.max_error < 1e-3 && near.agreement > 0.97);
        assert_int_equal(near.frames, c.frames);
        exphil_model_destroy(other);
        exphil_model_destroy(model);
    }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* The state of each model is its own and goes through whole episodes, so the number of lanes does not
 * matter. */
static void lanes_do_not_matter(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 2);
    exphil_dataset *dataset = train_dataset(context, 5);
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32), narrower = config;
    narrower.hidden = 16;
    exphil_model *one = play_model(context, &config, 0.2), *two = play_model(context, &narrower, 0.2);
    exphil_comparison first = compare(one, two, dataset, 1);
    assert_true(first.agreement < 1 && first.kl > 0.01);
    for (int64_t batch = 2; batch < 7; batch++) {
        exphil_comparison c = compare(one, two, dataset, batch);
        assert_int_equal(c.frames, first.frames);
        NEAR(c, agreement, first.agreement);
        NEAR(c, max_error, first.max_error);
        NEAR(c, rms_error, first.rms_error);
        NEAR(c, kl, first.kl);
    }
    exphil_model_destroy(one);
    exphil_model_destroy(two);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- what does not belong together --------------------------------------------------------------------- */

static exphil_status try(const exphil_model *reference, const exphil_model *model,
                         const exphil_dataset *dataset, exphil_status want, const char *text)
{
    exphil_comparison c = EXPHIL_COMPARISON_INIT, before = c;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = exphil_model_compare(reference, model, dataset, 0, &c, &error);
    if (status != want || !strstr(error.message, text))
        fail_msg("%s: %s, wanted %s: %s", exphil_status_name(status), error.message, exphil_status_name(want),
                 text);
    assert_memory_equal(&c, &before, sizeof c);
    return status;
}

static void strangers_are_refused(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1), *elsewhere = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = train_dataset(context, 2);
    exphil_model_config config = model_case_config("mlp", EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(context, &config);
    const struct {
        int32_t mode, delay, no_previous;
        const char *says;
    } cases[] = {{1, 1, 0, "mode of the reference is 0, of the model 1"},
                 {0, 2, 1, "delay_frames of the reference is 1, of the model 2"},
                 {0, 1, 1, "action_slots of the reference is 2, of the model 1"}};
    for (int i = 0; i < 3; i++) {
        exphil_model_config other = config;
        other.mode = cases[i].mode;
        other.delay_frames = cases[i].delay;
        other.no_previous_action = cases[i].no_previous;
        exphil_model *stranger = model_case_create(context, &other);
        try(model, stranger, dataset, EXPHIL_E_MISMATCH, cases[i].says);
        exphil_model_destroy(stranger);
    }
    exphil_model_config window = config, longer = config;
    window.mode = longer.mode = EXPHIL_MODE_WINDOW;
    window.window_frames = 4;
    longer.window_frames = 5;
    exphil_model *short_one = model_case_create(context, &window),
                 *long_one = model_case_create(context, &longer);
    try(short_one, long_one, dataset, EXPHIL_E_MISMATCH,
        "window_frames of the reference is 4, of the model 5");
    exphil_model_config melee = config;
    melee.spec = NULL;
    exphil_model *fox = model_case_create(context, &melee), *far = model_case_create(elsewhere, &config);
    try(model, fox, dataset, EXPHIL_E_MISMATCH, "made-up/made-up");
    try(fox, fox, dataset, EXPHIL_E_MISMATCH, "the dataset is made-up");
    try(model, far, dataset, EXPHIL_E_MISMATCH, "different contexts");
    try(far, far, dataset, EXPHIL_E_MISMATCH, "different contexts");
    exphil_model_destroy(far);
    exphil_model_destroy(fox);
    exphil_model_destroy(long_one);
    exphil_model_destroy(short_one);
    exphil_model_destroy(model);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(elsewhere);
    exphil_context_destroy(context);
}

/* Weights whose logits overflow: the head is named, and the model. */
static void overflow_is_named(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = train_dataset(context, 2);
    exphil_model_config config = model_case_config("mlp", EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(context, &config), *wild = model_case_create(context, &config);
    float huge[12 * 18];
    for (int i = 0; i < 12 * 18; i++) huge[i] = 3e38f;
    assert_ok(exphil_model_tensor_set(wild, "heads.logits.weight", huge, sizeof huge, NULL));
    try(model, wild, dataset, EXPHIL_E_NUMERIC, "a logit of head buttons is not finite in the model");
    try(wild, model, dataset, EXPHIL_E_NUMERIC, "a logit of head buttons is not finite in the reference");
    exphil_model_destroy(wild);
    exphil_model_destroy(model);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static int32_t asked;

static int32_t second_time(void *user)
{
    return ++asked >= 2;
}

static void it_can_be_cancelled(void **state)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    config.cancel = second_time;
    config.threads = 1;
    assert_ok(exphil_context_create(&config, &context, NULL));
    exphil_dataset *dataset = train_dataset(context, 5);
    exphil_model_config small = model_case_config("mlp", EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(context, &small);
    asked = 0;
    try(model, model, dataset, EXPHIL_E_CANCELLED, "cancelled");
    exphil_model_destroy(model);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- quantised models ---------------------------------------------------------------------------------- */

static exphil_model *rounded(const exphil_model *model, int32_t type)
{
    exphil_model *quantized = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_quantize(model, type, &quantized, &error) < 0) fail_msg("%s", error.message);
    return quantized;
}

/* A policy that has learnt what can be learnt acts alike with a quarter of the bits, but for near ties. */
static void quantised_policies_act_alike(void **state)
{
    static const char *const patterns[] = {"gru", "mamba", "attention ffn"};
    for (int p = 0; p < 3; p++) {
        train_plan plan = train_plan_of(patterns[p], EXPHIL_MODE_CARRY);
        plan.model.hidden = plan.model.head_width = 32;
        plan.episodes = 8;
        train_run run = train_begin(&plan);
        (void)train_steps(&run, 300);
        exphil_model *trained = NULL;
        assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &trained, NULL));
        for (int t = 0; t < 2; t++) {
            exphil_model *quantized = rounded(trained, t ? EXPHIL_TYPE_I8 : EXPHIL_TYPE_BF16);
            exphil_comparison c = compare(trained, quantized, run.dataset, 0);
            print_message("%-14s %s: %.3f %% of %d actions, kl %.6f, logits by %.4f at most, %.5f rms\n",
                          patterns[p], t ? "int8" : "bf16", 100 * c.agreement, (int)c.frames, c.kl,
                          c.max_error, c.rms_error);
            assert_true(c.agreement >= (t ? 0.97 : 0.985));
            assert_true(c.kl < (t ? 1e-2 : 1e-3) && c.kl > 0 && c.max_error > 0);
            assert_ok(exphil_model_calibration_set(quantized, &c, NULL));
            exphil_model_destroy(quantized);
        }
        exphil_model_destroy(trained);
        train_end(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_models_by_hand),
        cmocka_unit_test(a_model_is_itself),
        cmocka_unit_test(lanes_do_not_matter),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(overflow_is_named),
        cmocka_unit_test(it_can_be_cancelled),
        cmocka_unit_test(quantised_policies_act_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
