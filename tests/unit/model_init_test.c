/* Initial weights: distributions tensor by tensor, the same bits for the same seed, tensors that do not
 * change when others come or go, and the scalar functions they are made with. */
#include "model_case.h"

#include "base/scalar.h"

#include <math.h>
#include <stdlib.h>

typedef struct sample {
    int64_t count, rows, columns;
    double *x, low, high, mean, deviation;
} sample;

static exphil_model *create(exphil_context *context, const char *blocks, uint64_t seed, int32_t type)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    config.spec = &model_case_spec;
    config.blocks = blocks;
    config.seed = seed;
    config.type = type;
    config.hidden = 64;
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    return model_case_create(context, &config);
}

static const xph_param *find(const exphil_model *model, const char *name)
{
    for (int64_t i = 0; i < xph_model_param_count(model); i++)
        if (strcmp(xph_model_param(model, i)->name, name) == 0) return xph_model_param(model, i);
    fail_msg("no tensor %s", name);
    return NULL;
}

static sample take(const exphil_model *model, const char *name)
{
    const xph_param *param = find(model, name);
    const float *weights = (const float *)xph_model_weights(model) + param->offset;
    sample s = {.count = param->count,
                .rows = param->dim[0],
                .columns = param->dim[1],
                .low = INFINITY,
                .high = -INFINITY};
    s.x = malloc((size_t)s.count * sizeof *s.x);
    for (int64_t i = 0; i < s.count; i++) {
        s.x[i] = (double)weights[i];
        s.mean += s.x[i] / (double)s.count;
        if (s.x[i] < s.low) s.low = s.x[i];
        if (s.x[i] > s.high) s.high = s.x[i];
    }
    for (int64_t i = 0; i < s.count; i++)
        s.deviation += (s.x[i] - s.mean) * (s.x[i] - s.mean) / (double)s.count;
    s.deviation = sqrt(s.deviation);
    return s;
}

/* Within the half-width, near it on both sides, the mean near 0 and the deviation near scale / sqrt(3). */
static void expect_uniform(const exphil_model *model, const char *name, double scale)
{
    sample s = take(model, name);
    double n = sqrt((double)s.count);
    bool fits = s.low >= -scale * 1.0000001 && s.high <= scale * 1.0000001 && s.low < -0.9 * scale &&
                s.high > 0.9 * scale && fabs(s.mean) < 4.0 * scale / n &&
                fabs(s.deviation * sqrt(3.0) / scale - 1.0) < 4.0 / n;
    if (!fits)
        fail_msg("%s: %g..%g, mean %g, deviation %g; expected uniform +-%g", name, s.low, s.high, s.mean,
                 s.deviation, scale);
    free(s.x);
}

static void expect_constant(const exphil_model *model, const char *name, double value)
{
    sample s = take(model, name);
    assert_true(s.low == value && s.high == value);
    free(s.x);
}

/* Where past actions are inputs, the heads begin by repeating the newest one. */
static void expect_repeat(const exphil_model *model, const char *name, double scale)
{
    sample s = take(model, name);
    for (int64_t r = 0; r < s.rows; r++)
        for (int64_t c = 0; c < s.columns; c++) assert_true(s.x[r * s.columns + c] == (r == c ? scale : 0.0));
    free(s.x);
}

static void distributions(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model *model = create(context, "mamba lstm attention ffn", 1, EXPHIL_TYPE_F32);
    expect_uniform(model, "input.weight", 1.0 / sqrt(13 + 3 + 8 + 12));
    expect_constant(model, "input.bias", 0.0);
    expect_uniform(model, "ids.own.character.weight", 0.5);
    expect_constant(model, "blocks.0.norm.weight", 1.0);
    expect_constant(model, "blocks.0.norm.bias", 0.0);
    expect_uniform(model, "blocks.0.in_proj.weight", 1.0 / 8);
    expect_uniform(model, "blocks.0.conv.weight", 0.5);
    expect_uniform(model, "blocks.0.conv.bias", 0.5);
    expect_uniform(model, "blocks.0.x_proj.weight", 1.0 / sqrt(128));
    expect_uniform(model, "blocks.0.dt_proj.weight", 0.5);
    expect_constant(model, "blocks.0.D", 1.0);
    expect_uniform(model, "blocks.0.out_proj.weight", 0.5 / sqrt(128));
    expect_uniform(model, "blocks.1.weight_ih", 1.0 / 8);
    expect_uniform(model, "blocks.1.weight_hh", 1.0 / 8);
    expect_uniform(model, "blocks.1.bias_hh", 1.0 / 8);
    expect_constant(model, "blocks.2.relative_bias", 0.0);
    expect_uniform(model, "blocks.3.down.weight", 0.5 / sqrt(128));
    expect_uniform(model, "heads.logits.weight", 1.0 / sqrt(128));
    expect_repeat(model, "heads.past.weight", 4.0);
    expect_uniform(model, "heads.embed", 0.1);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

static void mamba_starts_as_in_the_paper(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model *model = create(context, "mamba", 1, EXPHIL_TYPE_F32);
    sample a = take(model, "blocks.0.A_log"), dt = take(model, "blocks.0.dt_proj.bias");
    for (int64_t i = 0; i < a.count; i++)
        assert_true(a.x[i] == (double)(float)log((double)(i % a.columns + 1)));
    double mean = 0.0, most = -INFINITY, least = INFINITY;
    for (int64_t i = 0; i < dt.count; i++) {
        double step = log(log1p(exp(dt.x[i]))); /* uniform in [log 1e-3, log 1e-1] */
        mean += step / (double)dt.count;
        most = step > most ? step : most;
        least = step < least ? step : least;
    }
    assert_true(least > log(1e-3) - 1e-4 && most < log(1e-1) + 1e-4 && most - least > 0.9 * log(100));
    assert_true(fabs(mean - 0.5 * (log(1e-3) + log(1e-1))) < 4.0 * log(100) / sqrt(12.0 * (double)dt.count));
    free(a.x);
    free(dt.x);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

static void seeds_repeat(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model *one = create(context, "mamba gru", 5, EXPHIL_TYPE_F32),
                 *two = create(context, "mamba gru", 5, EXPHIL_TYPE_F32);
    exphil_model *other = create(context, "mamba gru", 6, EXPHIL_TYPE_F32);
    size_t bytes = (size_t)xph_model_shape_of(one)->weights * sizeof(float);
    assert_memory_equal(xph_model_weights(one), xph_model_weights(two), bytes);
    assert_memory_not_equal(xph_model_weights(one), xph_model_weights(other), bytes);
    exphil_model *wide = create(context, "mamba gru", 5, EXPHIL_TYPE_F64);
    const double *exact = xph_model_weights(wide);
    const float *rounded = xph_model_weights(one);
    for (int64_t i = 0; i < xph_model_shape_of(one)->weights; i++) assert_true((float)exact[i] == rounded[i]);
    exphil_model_destroy(one);
    exphil_model_destroy(two);
    exphil_model_destroy(other);
    exphil_model_destroy(wide);
    exphil_context_destroy(context);
}

/* One block more leaves the tensors of the others as they were. */
static void tensors_draw_apart(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model *small = create(context, "gru", 5, EXPHIL_TYPE_F32),
                 *large = create(context, "gru gru", 5, EXPHIL_TYPE_F32);
    for (int64_t i = 0; i < xph_model_param_count(small); i++) {
        const xph_param *param = xph_model_param(small, i), *same = find(large, param->name);
        assert_memory_equal((const float *)xph_model_weights(small) + param->offset,
                            (const float *)xph_model_weights(large) + same->offset,
                            (size_t)param->count * sizeof(float));
    }
    const xph_param *first = find(large, "blocks.0.weight_hh"), *second = find(large, "blocks.1.weight_hh");
    const float *weights = xph_model_weights(large);
    assert_memory_not_equal(weights + first->offset, weights + second->offset,
                            (size_t)first->count * sizeof(float));
    exphil_model_destroy(small);
    exphil_model_destroy(large);
    exphil_context_destroy(context);
}

/* The values themselves, so that a change of the generator is seen. */
static void scalars_are_exact(void **unused)
{
    xph_rng rng = {.seed = 3, .stream = XPH_RNG_TEST};
    for (int i = 0; i < 20000; i++) {
        double x = model_case_uniform(&rng, -700.0, 700.0), y = exp(model_case_uniform(&rng, -300.0, 300.0));
        if (fabs(xph_exp_double(x) / exp(x) - 1.0) > 4e-16) fail_msg("exp %a: %a", x, xph_exp_double(x));
        if (fabs(xph_log_double(y) - log(y)) > 3e-16 * fabs(log(y)))
            fail_msg("log %a: %a", y, xph_log_double(y));
        double near = model_case_uniform(&rng, 0.7, 1.5), small = model_case_uniform(&rng, -0.4, 0.4);
        if (fabs(xph_log_double(near) - log(near)) > 5e-16 * fabs(log(near)))
            fail_msg("log %a: %a", near, xph_log_double(near));
        if (fabs(xph_exp_double(small) / exp(small) - 1.0) > 4e-16)
            fail_msg("exp %a: %a", small, xph_exp_double(small));
    }
    assert_true(xph_log_double(1.0) == 0.0);
    assert_true(xph_exp_double(0.0) == 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions),     cmocka_unit_test(mamba_starts_as_in_the_paper),
        cmocka_unit_test(seeds_repeat),      cmocka_unit_test(tensors_draw_apart),
        cmocka_unit_test(scalars_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
