/* The same network in single and in double precision, at sizes that are really used; and the same bits
 * from every instruction set and any number of threads. */
#include "model_case.h"

#include <stdlib.h>

#define TWO(NAME, name) #name "*2",
static const char *const patterns[] = {XPH_BLOCKS(TWO) "mamba attention gru ffn"};
#define PATTERNS (sizeof patterns / sizeof patterns[0])

static exphil_model_config config_of(const char *blocks, int32_t type)
{
    exphil_model_config config = model_case_config(blocks, type);
    config.hidden = 64;
    config.head_width = 32;
    config.mamba_states = 16;
    config.mamba_rank = 0;
    config.attention_heads = 2;
    config.attention_dim = 32;
    config.attention_window_frames = 60;
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    return config;
}

/* What a training step computes, as doubles. */
typedef struct outcome {
    double *logits, *gradients;
    int64_t logits_count, weights;
} outcome;

static outcome train(exphil_context *context, const char *blocks, int32_t type, int64_t batch, int64_t time)
{
    exphil_model_config config = config_of(blocks, type);
    exphil_model *model = model_case_create(context, &config);
    model_case *c = model_case_make(model, batch, time, 50, 0.05, 41);
    xph_net *net = NULL;
    assert_ok(xph_net_create(model, batch, time, XPH_NET_TRAIN, &net, NULL));
    xph_net_io io = model_case_io(c, NULL, c->state);
    assert_ok(xph_net_pack(net, c->weights, c->packed));
    assert_ok(xph_net_forward(net, c->weights, c->packed, &io));
    assert_ok(xph_net_backward(net, c->weights, c->packed, &io, c->dlogits, c->dvalues, c->gradients));
    outcome o = {.logits_count = c->rows * c->shape->logits, .weights = c->shape->weights};
    o.logits = malloc((size_t)o.logits_count * sizeof *o.logits);
    o.gradients = malloc((size_t)o.weights * sizeof *o.gradients);
    for (int64_t i = 0; i < o.logits_count; i++) o.logits[i] = model_case_get(c, xph_net_logits(net), i);
    for (int64_t i = 0; i < o.weights; i++) o.gradients[i] = model_case_get(c, c->gradients, i);
    xph_net_destroy(net);
    model_case_free(c);
    exphil_model_destroy(model);
    return o;
}

static void forget(outcome *o)
{
    free(o->logits);
    free(o->gradients);
}

static void single_is_near_double(void **unused)
{
    for (size_t i = 0; i < PATTERNS; i++) {
        exphil_context *context = test_context(NULL, NULL, 2);
        outcome exact = train(context, patterns[i], EXPHIL_TYPE_F64, 2, 80);
        outcome single = train(context, patterns[i], EXPHIL_TYPE_F32, 2, 80);
        double error = model_case_error(single.logits, exact.logits, exact.logits_count);
        if (!(error <= 1e-5)) fail_msg("%s: logits differ by %.3g", patterns[i], error);
        exphil_model_config config = config_of(patterns[i], EXPHIL_TYPE_F64);
        exphil_model *model = model_case_create(context, &config);
        for (int64_t p = 0; p < xph_model_param_count(model); p++) {
            const xph_param *param = xph_model_param(model, p);
            error = model_case_error(single.gradients + param->offset, exact.gradients + param->offset,
                                     param->count);
            if (!(error <= 1e-4))
                fail_msg("%s: gradient of %s differs by %.3g", patterns[i], param->name, error);
        }
        exphil_model_destroy(model);
        forget(&exact);
        forget(&single);
        exphil_context_destroy(context);
    }
}

static exphil_context *context_with(const char *isa, int32_t threads)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    config.cpu_isa = isa;
    config.threads = threads;
    if (exphil_context_create(&config, &context, NULL) < 0) return NULL;
    return context;
}

static void bits_are_the_same_everywhere(void **unused)
{
    static const char *const levels[] = {"ref", "avx2", "avx512"};
    for (size_t i = 0; i < PATTERNS; i++) {
        exphil_context *first = context_with("ref", 1);
        assert_non_null(first);
        outcome expected = train(first, patterns[i], EXPHIL_TYPE_F32, 3, 33);
        exphil_context_destroy(first);
        for (size_t k = 0; k < 6; k++) {
            exphil_context *context = context_with(levels[k % 3], k < 3 ? 1 : 5);
            if (!context) continue; /* this processor has no such level */
            outcome found = train(context, patterns[i], EXPHIL_TYPE_F32, 3, 33);
            bool same = memcmp(found.logits, expected.logits,
                               (size_t)expected.logits_count * sizeof *found.logits) == 0 &&
                        memcmp(found.gradients, expected.gradients,
                               (size_t)expected.weights * sizeof *found.gradients) == 0;
            if (!same)
                fail_msg("%s: other bits with %s and %d threads", patterns[i], levels[k % 3], k < 3 ? 1 : 5);
            forget(&found);
            exphil_context_destroy(context);
        }
        forget(&expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_is_near_double),
        cmocka_unit_test(bits_are_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
