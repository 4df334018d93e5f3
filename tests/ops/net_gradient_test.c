/* Gradients of whole networks in double against central differences, tensor by tensor: every kind of
 * block, mixtures, independent and autoregressive heads, resets inside a chunk, a carried state. */
#include "model_case.h"

#include <math.h>
#include <stdlib.h>

#define STEP      1e-5
#define TOLERANCE 1e-6
#define PROBES    6 /* elements per tensor */

typedef struct probe {
    model_case *c;
    xph_net *net;
    void *state_in;
    void *state_out;
} probe;

/* sum dlogits * logits + dvalues * values, so that these are its gradients. */
static double objective(const probe *p)
{
    model_case *c = p->c;
    xph_net_io io = model_case_io(c, p->state_in, p->state_out);
    assert_ok(xph_net_pack(p->net, c->weights, c->packed));
    assert_ok(xph_net_forward(p->net, c->weights, c->packed, &io));
    const double *logits = xph_net_logits(p->net), *weight = c->dlogits;
    double sum = 0.0;
    for (int64_t i = 0; i < c->rows * c->shape->logits; i++) sum += logits[i] * weight[i];
    const double *values = xph_net_values(p->net), *by_value = c->dvalues;
    for (int64_t i = 0; values && i < c->rows; i++) sum += values[i] * by_value[i];
    return sum;
}

static double difference(const probe *p, int64_t element)
{
    double *w = (double *)p->c->weights + element, kept = *w;
    *w = kept + STEP;
    double above = objective(p);
    *w = kept - STEP;
    double below = objective(p);
    *w = kept;
    return (above - below) / (2.0 * STEP);
}

static void check_param(const probe *p, const xph_param *param, xph_rng *rng, const char *pattern)
{
    const double *gradient = (const double *)p->c->gradients + param->offset;
    double square = 0.0;
    for (int64_t i = 0; i < param->count; i++) square += gradient[i] * gradient[i];
    double rms = sqrt(square / (double)param->count);
    if (!(rms > 1e-5)) fail_msg("%s: %s has no gradient (%g)", pattern, param->name, rms);
    for (int k = 0; k < PROBES; k++) {
        int64_t i = (int64_t)xph_rng_below(rng, (uint64_t)param->count);
        double found = difference(p, param->offset + i), error = fabs(found - gradient[i]);
        if (!(error <= TOLERANCE * (fabs(gradient[i]) + rms)))
            fail_msg("%s: %s[%lld] gradient %.12g, differences say %.12g", pattern, param->name, (long long)i,
                     gradient[i], found);
    }
}

/* Steps dt near 1 instead of the initial 1e-3..1e-1, so that all that hangs on dt has gradients well above
 * the noise of differences; but not of blocks that limit them, which have no A_log. */
static void widen_steps(model_case *c)
{
    for (int64_t i = 0; i < xph_model_param_count(c->model); i++) {
        const xph_param *param = xph_model_param(c->model, i);
        const char *next =
            xph_model_param(c->model, i + 1 < xph_model_param_count(c->model) ? i + 1 : i)->name;
        if (!strstr(param->name, "dt_proj.bias") || !strstr(next, "A_log")) continue;
        for (int64_t k = 0; k < param->count; k++) ((double *)c->weights)[param->offset + k] += 4.0;
    }
}

/* Carried state: what a chunk before this one has left. */
static void *previous_state(model_case *c, exphil_model *model)
{
    xph_net *net = NULL;
    assert_ok(xph_net_create(model, c->batch, c->time, 0, &net, NULL));
    xph_net_io io = model_case_io(c, NULL, c->state);
    assert_ok(xph_net_pack(net, c->weights, c->packed));
    assert_ok(xph_net_forward(net, c->weights, c->packed, &io));
    xph_net_destroy(net);
    return c->state;
}

static void check_model(const exphil_model_config *config, int64_t batch, int64_t time, int64_t resets,
                        bool carried)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model *model = model_case_create(context, config);
    probe p = {.c = model_case_make(model, batch, time, resets, 0.4, 11)};
    widen_steps(p.c);
    /* a carried state is an input: what the recurrent layers compute from it is part of the objective, but
     * nothing flows back through it, and weights moved here do not change it */
    if (carried) p.state_in = previous_state(p.c, model);
    p.state_out = malloc((size_t)(batch * p.c->shape->state + 1) * sizeof(double));
    exphil_error error = EXPHIL_ERROR_INIT;
    if (xph_net_create(model, batch, time, XPH_NET_TRAIN, &p.net, &error) < 0) fail_msg("%s", error.message);
    objective(&p);
    xph_net_io io = model_case_io(p.c, p.state_in, p.state_out);
    assert_ok(
        xph_net_backward(p.net, p.c->weights, p.c->packed, &io, p.c->dlogits, p.c->dvalues, p.c->gradients));
    xph_rng rng = {.seed = 5, .stream = XPH_RNG_TEST};
    for (int64_t i = 0; i < xph_model_param_count(model); i++)
        check_param(&p, xph_model_param(model, i), &rng, config->blocks);
    xph_net_destroy(p.net);
    free(p.state_out);
    model_case_free(p.c);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

static const char *const patterns[] = {EACH_BLOCK "mamba*2", "(lstm ffn)*2", "mamba attention gru mlp ffn"};

static void every_pattern(void **unused)
{
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        exphil_model_config config = model_case_config(patterns[i], EXPHIL_TYPE_F64);
        config.hidden = 10;
        check_model(&config, 2, 7, 0, false);
    }
}

static void autoregressive_with_resets_and_state(void **unused)
{
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        exphil_model_config config = model_case_config(patterns[i], EXPHIL_TYPE_F64);
        config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
        config.hidden = 11;
        check_model(&config, 3, 6, 4, true);
    }
}

static void long_chunks(void **unused)
{
    for (size_t i = 0; i < XPH_BLOCK_KINDS; i++) {
        exphil_model_config config = model_case_config(patterns[i], EXPHIL_TYPE_F64);
        config.attention_window_frames = 33;
        config.hidden = 8;
        check_model(&config, 1, 70, 30, true);
    }
}

/* Games of other shapes: nothing about past actions, no ids, nothing but ids. */
static void other_games(void **unused)
{
    exphil_spec spec = model_case_spec;
    exphil_model_config config = model_case_config("mlp gru", EXPHIL_TYPE_F64);
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    config.delay_frames = 0;
    config.no_previous_action = 1;
    check_model(&config, 2, 4, 3, false);
    config.spec = &spec;
    spec.id_count = 0;
    check_model(&config, 2, 4, 3, false);
    config.delay_frames = 3;
    check_model(&config, 2, 4, 3, true);
    spec = model_case_spec;
    spec.float_count = 0;
    config.heads = EXPHIL_HEADS_INDEPENDENT;
    config.no_previous_action = 0;
    check_model(&config, 1, 5, 3, false);
}

static void shared_values(void **unused)
{
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        exphil_model_config config = model_case_config(patterns[i], EXPHIL_TYPE_F64);
        config.value = EXPHIL_VALUE_SHARED;
        config.heads = (int32_t)i % 2;
        config.hidden = 9;
        check_model(&config, 3, 6, 4, true);
    }
}

/* Heads with layers of their own, and no LayerNorm behind the blocks: every tensor, in both orders of heads. */
static void other_ends(void **unused)
{
    for (int i = 0; i < 4 * MODEL_CASE_ENDS; i++) {
        exphil_model_config config =
            model_case_config(i & 1 ? "gru" : "norm relu dense mlp", EXPHIL_TYPE_F64);
        config.heads = i / 2 & 1;
        config.value = i & 1 ? EXPHIL_VALUE_SHARED : EXPHIL_VALUE_NONE;
        config.hidden = 9;
        if (!(i & 1)) config.input_width = i & 2 ? 14 : 5;
        model_case_end(&config, i / 4);
        check_model(&config, 3, 6, 4, true);
    }
}

/* Gradients of a model with this kind of value head, in its own order of tensors, for dlogits and dvalues or without the
 * latter. */
static model_case *gradients_of(exphil_context *context, int32_t value, bool asked)
{
    exphil_model_config config = model_case_config("mamba lstm", EXPHIL_TYPE_F64);
    config.value = value;
    exphil_model *model = model_case_create(context, &config);
    model_case *c = model_case_make(model, 2, 5, 3, 0.3, 3);
    if (!asked) memset(c->dvalues, 0, (size_t)c->rows * sizeof(double));
    probe p = {.c = c};
    assert_ok(xph_net_create(model, 2, 5, XPH_NET_TRAIN, &p.net, NULL));
    objective(&p);
    xph_net_io io = model_case_io(c, NULL, NULL);
    assert_ok(xph_net_backward(p.net, c->weights, c->packed, &io, c->dlogits, c->dvalues, c->gradients));
    xph_net_destroy(p.net);
    return c;
}

static void free_gradients(model_case *c)
{
    exphil_model *model = c->model;
    model_case_free(c);
    exphil_model_destroy(model);
}

/* What a detached value head learns is what a shared one does, and the rest learns as if there were none. */
static void detached_values(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    model_case *shared = gradients_of(context, EXPHIL_VALUE_SHARED, true),
               *detached = gradients_of(context, EXPHIL_VALUE_DETACHED, true),
               *silent = gradients_of(context, EXPHIL_VALUE_DETACHED, false);
    for (int64_t i = 0; i < xph_model_param_count(detached->model); i++) {
        const xph_param *param = xph_model_param(detached->model, i);
        const double *found = (const double *)detached->gradients + param->offset;
        bool of_value = strncmp(param->name, "value.", 6) == 0;
        const model_case *other = of_value ? shared : silent;
        const double *wanted = (const double *)other->gradients + param->offset;
        assert_memory_equal(found, wanted, (size_t)param->count * sizeof *found);
        for (int64_t k = 0; of_value && k < param->count; k++)
            assert_true(((const double *)silent->gradients)[param->offset + k] == 0.0);
    }
    free_gradients(shared);
    free_gradients(detached);
    free_gradients(silent);
    exphil_context_destroy(context);
}

/* Gradients are added, not written. */
static void gradients_accumulate(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = model_case_config(ALL_BLOCKS, EXPHIL_TYPE_F64);
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    exphil_model *model = model_case_create(context, &config);
    model_case *c = model_case_make(model, 2, 5, 3, 0.1, 3);
    probe p = {.c = c};
    assert_ok(xph_net_create(model, 2, 5, XPH_NET_TRAIN, &p.net, NULL));
    objective(&p);
    xph_net_io io = model_case_io(c, NULL, NULL);
    assert_ok(xph_net_backward(p.net, c->weights, c->packed, &io, c->dlogits, c->dvalues, c->gradients));
    size_t bytes = (size_t)c->shape->weights * sizeof(double);
    double *once = malloc(bytes), *twice = c->gradients;
    memcpy(once, c->gradients, bytes);
    assert_ok(xph_net_backward(p.net, c->weights, c->packed, &io, c->dlogits, c->dvalues, c->gradients));
    double most = 0.0;
    for (int64_t i = 0; i < c->shape->weights; i++)
        if (fabs(twice[i] - 2.0 * once[i]) > most) most = fabs(twice[i] - 2.0 * once[i]);
    assert_true(most < 1e-9);
    free(once);
    xph_net_destroy(p.net);
    model_case_free(c);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern),        cmocka_unit_test(autoregressive_with_resets_and_state),
        cmocka_unit_test(long_chunks),          cmocka_unit_test(other_games),
        cmocka_unit_test(gradients_accumulate), cmocka_unit_test(shared_values),
        cmocka_unit_test(other_ends),           cmocka_unit_test(detached_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
