/* One net over T frames, the same frames one by one, and in chunks, with the state carried: the same
 * numbers, whatever the pattern of blocks, with resets anywhere. Also: drawing decides the last frame,
 * training nets compute what others do. */
#include "model_case.h"

#include <stdlib.h>

static const char *const patterns[] = {EACH_BLOCK "mamba*2", "(lstm ffn)*2", "mamba attention gru mlp ffn"};
#define PATTERNS (sizeof patterns / sizeof patterns[0])

/* Logits of all frames as doubles, and behind each frame's its value, where the model has that; the state is carried in
 * state (NULL: none in, none out). */
static void forward(exphil_model *model, model_case *c, void *state, uint32_t flags, double *logits)
{
    xph_net *net = NULL;
    assert_ok(xph_net_create(model, c->batch, c->time, flags, &net, NULL));
    assert_ok(xph_net_pack(net, c->weights, c->packed));
    xph_net_io io = model_case_io(c, state, state);
    assert_ok(xph_net_forward(net, c->weights, c->packed, &io));
    int64_t width = c->shape->logits, all = width + c->shape->value;
    for (int64_t r = 0; r < c->rows; r++) {
        for (int64_t i = 0; i < width; i++)
            logits[r * all + i] = model_case_get(c, xph_net_logits(net), r * width + i);
        if (c->shape->value) logits[r * all + width] = model_case_get(c, xph_net_values(net), r);
    }
    xph_net_destroy(net);
}

static void *zero_state(const model_case *c)
{
    void *state = calloc((size_t)(c->batch * c->shape->state) + 1, c->shape->real_bytes);
    assert_non_null(state);
    return state;
}

/* Chunks of `length` frames, the last one shorter. */
static void in_chunks(exphil_model *model, const model_case *c, int64_t length, uint32_t flags,
                      double *logits, void *state)
{
    int64_t classes = c->shape->logits + c->shape->value;
    double *part = malloc((size_t)(c->batch * length * classes) * sizeof *part);
    for (int64_t first = 0; first < c->time; first += length) {
        int64_t time = first + length < c->time ? length : c->time - first;
        model_case *chunk = model_case_cut(c, first, time);
        forward(model, chunk, state, flags, part);
        for (int64_t b = 0; b < c->batch; b++)
            memcpy(logits + (b * c->time + first) * classes, part + b * time * classes,
                   (size_t)(time * classes) * sizeof *part);
        model_case_free(chunk);
    }
    free(part);
}

typedef struct variant {
    const char *blocks;
    int32_t type, heads;
    int64_t hidden, batch, time, resets, window;
    int32_t value;
} variant;

static double largest_difference(const double *a, const double *b, int64_t count)
{
    return model_case_error(a, b, count);
}

/* tolerance 0: the same bits. */
static void check_chunks(const variant *v, int64_t length, uint32_t flags, double tolerance)
{
    exphil_context *context = test_context(NULL, NULL, 2);
    exphil_model_config config = model_case_config(v->blocks, v->type);
    config.heads = v->heads;
    config.hidden = v->hidden;
    config.attention_window_frames = v->window;
    config.value = v->value;
    exphil_model *model = model_case_create(context, &config);
    model_case *c = model_case_make(model, v->batch, v->time, v->resets, 0.2, 17);
    int64_t count = c->rows * (c->shape->logits + c->shape->value), states = v->batch * c->shape->state;
    double *whole = malloc((size_t)count * sizeof *whole), *parts = malloc((size_t)count * sizeof *parts);
    void *end = zero_state(c), *carried = zero_state(c);
    forward(model, c, end, flags, whole);
    in_chunks(model, c, length, flags, parts, carried);
    double error = largest_difference(parts, whole, count);
    if (!(error <= tolerance))
        fail_msg("%s, chunks of %lld: logits differ by %g", v->blocks, (long long)length, error);
    double *one = calloc((size_t)states + 1, sizeof *one), *other = calloc((size_t)states + 1, sizeof *other);
    for (int64_t i = 0; i < states; i++)
        one[i] = model_case_get(c, end, i), other[i] = model_case_get(c, carried, i);
    error = largest_difference(other, one, states);
    if (!(error <= tolerance)) fail_msg("%s: states differ by %g", v->blocks, error);
    free(one);
    free(other);
    free(whole);
    free(parts);
    free(end);
    free(carried);
    model_case_free(c);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

static void steps_have_the_bits_of_a_chunk(void **unused)
{
    for (size_t i = 0; i < PATTERNS; i++) {
        for (int32_t type = XPH_F32; type <= XPH_F64; type++) {
            variant v = {patterns[i], type, EXPHIL_HEADS_AUTOREGRESSIVE, 24, 3, 7, 4, 5, EXPHIL_VALUE_SHARED};
            check_chunks(&v, 1, XPH_NET_PLAIN, 0.0);
            v = (variant){patterns[i], type, EXPHIL_HEADS_INDEPENDENT, 40, 1, 33, 0, 60, 0};
            check_chunks(&v, 1, XPH_NET_PLAIN, 0.0);
        }
    }
}

static void chunks_have_the_bits_of_one(void **unused)
{
    for (size_t i = 0; i < PATTERNS; i++) {
        variant v = {patterns[i], XPH_F32, EXPHIL_HEADS_AUTOREGRESSIVE, 24, 5, 23,
                     9,           6,       EXPHIL_VALUE_DETACHED};
        check_chunks(&v, 4, XPH_NET_PLAIN, 0.0);
        check_chunks(&v, 11, XPH_NET_PLAIN | XPH_NET_INLINE, 0.0);
    }
}

/* Whatever method the device picks for long chunks. */
static void chosen_methods_agree(void **unused)
{
    for (size_t i = 0; i < PATTERNS; i++) {
        variant v = {patterns[i], XPH_F32, EXPHIL_HEADS_INDEPENDENT, 24, 2, 100, 40, 29, EXPHIL_VALUE_SHARED};
        check_chunks(&v, 1, 0, 1e-5);
        check_chunks(&v, 32, 0, 1e-5);
    }
}

/* A stream does not see the others. */
static void streams_are_apart(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = model_case_config(ALL_BLOCKS, XPH_F32);
    exphil_model *model = model_case_create(context, &config);
    model_case *c = model_case_make(model, 4, 6, 3, 0.1, 23);
    int64_t count = c->rows * c->shape->logits, per_stream = c->time * c->shape->logits;
    double *before = malloc((size_t)count * sizeof *before), *after = malloc((size_t)count * sizeof *after);
    forward(model, c, NULL, XPH_NET_PLAIN, before);
    for (int64_t i = 0; i < c->time * c->shape->floats; i++)
        c->floats[c->time * c->shape->floats + i] += 1.0f;
    forward(model, c, NULL, XPH_NET_PLAIN, after);
    assert_memory_equal(before, after, (size_t)per_stream * sizeof *before);
    assert_memory_not_equal(before + per_stream, after + per_stream, (size_t)per_stream * sizeof *before);
    assert_memory_equal(before + 2 * per_stream, after + 2 * per_stream,
                        (size_t)(2 * per_stream) * sizeof *before);
    free(before);
    free(after);
    model_case_free(c);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* A reset at frame t: what follows equals a start from nothing, NaN states and frames before it
 * notwithstanding. */
static void resets_forget_everything(void **unused)
{
    enum { CUT = 3 };
    for (size_t i = 0; i < PATTERNS; i++) {
        exphil_context *context = test_context(NULL, NULL, 1);
        exphil_model_config config = model_case_config(patterns[i], XPH_F32);
        exphil_model *model = model_case_create(context, &config);
        model_case *c = model_case_make(model, 2, 8, 100000, 0.1, 29);
        for (int64_t b = 0; b < c->batch; b++) c->reset[b * c->time] = 0, c->reset[b * c->time + CUT] = 1;
        model_case *rest = model_case_cut(c, CUT, c->time - CUT);
        memset(rest->reset, 0, (size_t)rest->rows);
        double *whole = malloc((size_t)(c->rows * c->shape->logits) * sizeof *whole);
        double *alone = malloc((size_t)(rest->rows * c->shape->logits) * sizeof *alone);
        void *state = zero_state(c);
        memset(state, 0xFF, (size_t)(c->batch * c->shape->state) * sizeof(float));
        forward(model, c, state, XPH_NET_PLAIN, whole);
        forward(model, rest, NULL, XPH_NET_PLAIN, alone);
        assert_true(model_case_error(alone, alone, rest->rows * c->shape->logits) == 0.0);
        for (int64_t b = 0; b < c->batch; b++)
            assert_memory_equal(whole + (b * c->time + CUT) * c->shape->logits,
                                alone + b * rest->time * c->shape->logits,
                                (size_t)(rest->time * c->shape->logits) * sizeof *whole);
        free(state);
        free(whole);
        free(alone);
        model_case_free(rest);
        model_case_free(c);
        exphil_model_destroy(model);
        exphil_context_destroy(context);
    }
}

/* A net for training keeps more but computes the same bits. */
static void training_computes_the_same(void **unused)
{
    for (size_t i = 0; i < PATTERNS; i++) {
        exphil_context *context = test_context(NULL, NULL, 2);
        exphil_model_config config = model_case_config(patterns[i], XPH_F32);
        config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
        if (i % 5 < MODEL_CASE_ENDS) model_case_end(&config, (int)(i % 5));
        exphil_model *model = model_case_create(context, &config);
        model_case *c = model_case_make(model, 3, 20, 6, 0.2, 31);
        size_t bytes = (size_t)(c->rows * c->shape->logits) * sizeof(double);
        double *play = malloc(bytes), *train = malloc(bytes);
        forward(model, c, NULL, 0, play);
        forward(model, c, NULL, XPH_NET_TRAIN, train);
        assert_memory_equal(play, train, bytes);
        free(play);
        free(train);
        model_case_free(c);
        exphil_model_destroy(model);
        exphil_context_destroy(context);
    }
}

/* ---- drawing ------------------------------------------------------------------------------------------- */

static int32_t most_likely(const double *logit, const xph_head *head)
{
    int32_t best = 0;
    if (head->kind == EXPHIL_BERNOULLI) {
        for (int32_t i = 0; i < head->count; i++) best |= (int32_t)(logit[head->first + i] > 0.0) << i;
        return best;
    }
    for (int32_t i = 1; i < head->count; i++)
        if (logit[head->first + i] > logit[head->first + best]) best = i;
    return best;
}

/* Deterministic drawing takes what is likeliest by its own logits, and these are the logits that the net
 * gives when it is told that these actions were taken. */
static void draw_the_last_frame(int32_t heads_of, int end)
{
    enum { B = 3, T = 6 };
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = model_case_config("mamba attention", XPH_F32);
    config.heads = heads_of;
    if (end >= 0) model_case_end(&config, end);
    config.mode = EXPHIL_MODE_WINDOW;
    config.window_frames = T;
    exphil_model *model = model_case_create(context, &config);
    assert_int_equal(xph_model_shape_of(model)->window, T);
    model_case *c = model_case_make(model, B, T, 0, 0.3, 37);
    int64_t heads = c->shape->heads, classes = c->shape->logits;
    xph_net *net = NULL;
    assert_ok(xph_net_create(model, B, T, XPH_NET_INLINE, &net, NULL));
    assert_ok(xph_net_pack(net, c->weights, c->packed));
    xph_net_io io = model_case_io(c, NULL, NULL);
    xph_sample_head how[EXPHIL_HEADS_MAX];
    for (int i = 0; i < EXPHIL_HEADS_MAX; i++) how[i] = (xph_sample_head){1.0f, 0.5f, 0.5f, 1};
    int32_t drawn[B * EXPHIL_HEADS_MAX];
    assert_ok(xph_net_sample(net, c->weights, c->packed, &io, how, NULL, NULL, drawn));
    double *logits = malloc((size_t)(B * classes) * sizeof *logits);
    for (int64_t i = 0; i < B * classes; i++) logits[i] = model_case_get(c, xph_net_logits(net), i);
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < heads; h++) {
            assert_int_equal(drawn[b * heads + h],
                             most_likely(logits + b * classes, &xph_model_heads(model)[h]));
            c->actions[(b * T + T - 1) * heads + h] = drawn[b * heads + h];
        }
    double *forced = malloc((size_t)(c->rows * classes) * sizeof *forced);
    forward(model, c, NULL, 0, forced);
    for (int64_t b = 0; b < B; b++)
        assert_memory_equal(logits + b * classes, forced + (b * T + T - 1) * classes,
                            (size_t)classes * sizeof *logits);
    xph_net_destroy(net);
    free(logits);
    free(forced);
    model_case_free(c);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

static void drawing_decides_the_last_frame(void **unused)
{
    for (int end = -1; end < MODEL_CASE_ENDS; end++)
        for (int32_t heads = 0; heads <= 1; heads++) draw_the_last_frame(heads, end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_have_the_bits_of_a_chunk), cmocka_unit_test(chunks_have_the_bits_of_one),
        cmocka_unit_test(chosen_methods_agree),           cmocka_unit_test(streams_are_apart),
        cmocka_unit_test(resets_forget_everything),       cmocka_unit_test(training_computes_the_same),
        cmocka_unit_test(drawing_decides_the_last_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
