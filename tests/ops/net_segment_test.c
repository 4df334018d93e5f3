/* Nets that drop activations and make them again, or keep them as bfloat16 (lib/model/segment.c): the same logits, states
 * and gradients to the last bit where nothing is rounded, near and the same on every run where it is, in less memory. */
#include "model_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What two chunks of one stream leave: gradients of both together, logits and state of the second. */
typedef struct outcome {
    unsigned char *all;
    size_t bytes, gradient_bytes, net_bytes;
} outcome;

static void run_chunk(model_case *c, xph_net *net, const void *state_in, void *state_out)
{
    xph_net_io io = model_case_io(c, state_in, state_out);
    assert_ok(xph_net_forward(net, c->weights, c->packed, &io));
    assert_ok(xph_net_backward(net, c->weights, c->packed, &io, c->dlogits, c->dvalues, c->gradients));
}

static outcome run(model_case *c, uint32_t flags)
{
    xph_net *net = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (xph_net_create(c->model, c->batch, c->time, XPH_NET_TRAIN | flags, &net, &error) < 0)
        fail_msg("%s", error.message);
    size_t real = c->shape->real_bytes, gradients = (size_t)c->shape->weights * real,
           logits = (size_t)(c->rows * c->shape->logits) * real,
           state = (size_t)(c->batch * c->shape->state) * real;
    unsigned char *middle = calloc(1, state + 1), *end = calloc(1, state + 1);
    memset(c->gradients, 0, gradients);
    assert_ok(xph_net_pack(net, c->weights, c->packed));
    run_chunk(c, net, c->state, middle);
    run_chunk(c, net, middle, end);
    outcome o = {
        .bytes = gradients + logits + state, .gradient_bytes = gradients, .net_bytes = xph_net_bytes(net)};
    o.all = calloc(1, o.bytes);
    memcpy(o.all, c->gradients, gradients);
    memcpy(o.all + gradients, xph_net_logits(net), logits);
    memcpy(o.all + gradients + logits, end, state);
    free(middle);
    free(end);
    xph_net_destroy(net);
    return o;
}

/* Checkpoints of 1 to 4 blocks divide 5, 7 and 8 of them in every way. */
#define FIVE(NAME, name) #name "*5",
static const char *const patterns[] = {XPH_BLOCKS(FIVE) "mamba", "(lstm ffn)*2 mamba attention gru mlp",
                                       "gru attention mamba mlp lstm ffn mamba"};
enum { PATTERNS = sizeof patterns / sizeof patterns[0] };

typedef void (*check_fn)(model_case *c, const char *pattern);

static void each_case(int32_t type, int32_t threads, check_fn check)
{
    for (int i = 0; i < PATTERNS; i++) {
        exphil_context *context = test_context(NULL, NULL, threads);
        exphil_model_config config = model_case_config(patterns[i], type);
        config.heads = i % 2 ? EXPHIL_HEADS_AUTOREGRESSIVE : EXPHIL_HEADS_INDEPENDENT;
        config.no_previous_action = i % 3 == 2;
        if (i % 5 < MODEL_CASE_ENDS) model_case_end(&config, (int)(i % 5));
        bool free_width = strstr(patterns[i], "_only*5") || strstr(patterns[i], "dense*5");
        if (free_width) config.input_width = i % 2 ? 31 : 13;
        exphil_model *model = model_case_create(context, &config);
        model_case *c = model_case_make(model, 3, 11, i % 2 ? 5 : 0, 0.1, (uint64_t)i + 1);
        check(c, patterns[i]);
        model_case_free(c);
        exphil_model_destroy(model);
        exphil_context_destroy(context);
    }
}

/* ---- checkpoints ------------------------------------------------------------------------------------------- */

static void check_checkpoints(model_case *c, const char *pattern)
{
    static const int64_t blocks[] = {1, 2, 3, 4, 64};
    outcome all = run(c, 0);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        outcome some = run(c, XPH_NET_CHECKPOINT(blocks[i]));
        if (memcmp(some.all, all.all, all.bytes) != 0)
            fail_msg("%s: checkpoints of %d blocks change bits", pattern, (int)blocks[i]);
        free(some.all);
    }
    free(all.all);
}

static void checkpoints_change_no_bit(void **unused)
{
    each_case(EXPHIL_TYPE_F32, 1, check_checkpoints);
    each_case(EXPHIL_TYPE_F32, 3, check_checkpoints);
    each_case(EXPHIL_TYPE_F64, 2, check_checkpoints);
}

/* Nothing given, nothing requested: as in window mode. */
static void windows_have_no_state(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = model_case_config(patterns[PATTERNS - 1], EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(context, &config);
    model_case *c = model_case_make(model, 2, 6, 0, 0.1, 3);
    size_t bytes = (size_t)c->shape->weights * sizeof(float);
    void *want = malloc(bytes);
    for (uint32_t n = 0; n < 4; n++) {
        xph_net *net = NULL;
        assert_ok(xph_net_create(model, 2, 6, XPH_NET_TRAIN | XPH_NET_CHECKPOINT(n), &net, NULL));
        assert_ok(xph_net_pack(net, c->weights, c->packed));
        memset(c->gradients, 0, bytes);
        run_chunk(c, net, NULL, NULL);
        if (n == 0) memcpy(want, c->gradients, bytes);
        assert_memory_equal(c->gradients, want, bytes);
        xph_net_destroy(net);
    }
    free(want);
    model_case_free(c);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* ---- bfloat16 ---------------------------------------------------------------------------------------------- */

/* Of the whole gradient: bfloat16 is off by 2^-9 at most per number, and errors of many numbers cancel. */
#define TOLERANCE 0.01

static double distance(const model_case *c, const void *a, const void *b)
{
    double error = 0.0, square = 0.0;
    for (int64_t i = 0; i < c->shape->weights; i++) {
        double x = model_case_get(c, a, i), y = model_case_get(c, b, i);
        error += (x - y) * (x - y);
        square += y * y;
    }
    return sqrt(error / square);
}

static void check_rounded(model_case *c, const char *pattern)
{
    static const uint32_t blocks[] = {0, 1, 2, 3};
    outcome exact = run(c, 0);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        outcome once = run(c, XPH_NET_BF16 | XPH_NET_CHECKPOINT(blocks[i])),
                again = run(c, XPH_NET_BF16 | XPH_NET_CHECKPOINT(blocks[i]));
        double far = distance(c, once.all, exact.all);
        if (!(far <= TOLERANCE)) fail_msg("%s, %u blocks: off by %g", pattern, blocks[i], far);
        assert_memory_equal(once.all, again.all, once.bytes);
        /* forward sees nothing rounded */
        assert_memory_equal(once.all + exact.gradient_bytes, exact.all + exact.gradient_bytes,
                            exact.bytes - exact.gradient_bytes);
        bool signs =
            strncmp(pattern, "relu", 4) == 0; /* what is kept of it says where x is above 0, and no more */
        if (c->model && strchr(pattern, '*') && blocks[i] == 0 && far == 0.0 && !signs)
            fail_msg("%s: nothing was rounded", pattern);
        free(once.all);
        free(again.all);
    }
    free(exact.all);
}

static void rounded_activations_stay_near(void **unused)
{
    each_case(EXPHIL_TYPE_F32, 1, check_rounded);
    each_case(EXPHIL_TYPE_F64, 2, check_rounded);
}

static unsigned char *first_outcome;
static size_t first_bytes;

static void compare_outcome(model_case *c, const char *pattern)
{
    outcome o = run(c, XPH_NET_BF16);
    if (strcmp(pattern, patterns[PATTERNS - 1]) == 0) {
        if (first_outcome) {
            assert_int_equal(o.bytes, first_bytes);
            assert_memory_equal(o.all, first_outcome, o.bytes);
        } else {
            first_outcome = o.all;
            first_bytes = o.bytes;
            return;
        }
    }
    free(o.all);
}

static void rounded_activations_do_not_depend_on_threads(void **unused)
{
    for (int32_t threads = 1; threads <= 4; threads *= 2)
        each_case(EXPHIL_TYPE_F32, threads, compare_outcome);
    free(first_outcome);
    first_outcome = NULL;
}

/* ---- memory ------------------------------------------------------------------------------------------------ */

static size_t bytes_of(const exphil_model *model, int64_t time, uint32_t flags)
{
    xph_net *net = NULL;
    assert_ok(xph_net_create(model, 64, time, XPH_NET_TRAIN | flags, &net, NULL));
    size_t bytes = xph_net_bytes(net);
    xph_net_destroy(net);
    return bytes;
}

/* Six blocks of usual size, 64 sequences of three seconds. Nothing is run, so the system gives no memory for it. */
static void memory_is_less(void **unused)
{
    static const struct {
        const char *blocks;
        double checkpoint, rounded, both; /* shares of the whole at most */
    } cases[] = {
        {"mamba*6", 0.45, 0.75, 0.42}, {"lstm*6", 0.60, 0.90, 0.60}, {"attention*6", 0.60, 0.90, 0.60}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        exphil_context *context = test_context(NULL, NULL, 1);
        exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
        config.spec = &model_case_spec;
        config.blocks = cases[i].blocks;
        config.hidden = 256;
        exphil_model *model = model_case_create(context, &config);
        double whole = (double)bytes_of(model, 180, 0),
               checkpoint = (double)bytes_of(model, 180, XPH_NET_CHECKPOINT(1)) / whole,
               three = (double)bytes_of(model, 180, XPH_NET_CHECKPOINT(3)) / whole,
               rounded = (double)bytes_of(model, 180, XPH_NET_BF16) / whole,
               both = (double)bytes_of(model, 180, XPH_NET_BF16 | XPH_NET_CHECKPOINT(1)) / whole;
        print_message("%s: %.1f MB for 11520 frames; checkpoints of 1 block %.3f, of 3 %.3f; bfloat16 %.3f; "
                      "both %.3f\n",
                      cases[i].blocks, whole / 1e6, checkpoint, three, rounded, both);
        assert_true(checkpoint <= cases[i].checkpoint);
        assert_true(three > checkpoint && three < 1.0);
        assert_true(rounded <= cases[i].rounded);
        assert_true(both <= cases[i].both && both < checkpoint);
        exphil_model_destroy(model);
        exphil_context_destroy(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_change_no_bit),
        cmocka_unit_test(windows_have_no_state),
        cmocka_unit_test(rounded_activations_stay_near),
        cmocka_unit_test(rounded_activations_do_not_depend_on_threads),
        cmocka_unit_test(memory_is_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
