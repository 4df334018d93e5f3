/* Models with weights of fewer bits: what is rounded and what is not, what they refuse, that they play alike, and that a file
 * brings back the same packed bits. */
#include "quantize_case.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- what is rounded ----------------------------------------------------------------------------------- */

/* By the words of the public header, not by what the layers declare, so a list of its own: of matrices, for no vector is
 * rounded. A block with another matrix that stays as it is fails here until the header and this list have it. 0: not
 * rounded. */
static int32_t layer_rounded_to(const exphil_model *model, const char *name)
{
    exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
    char next[sizeof info.name];
    const char *layer = strrchr(name, '.') - 1;
    if (strcmp(layer + 1, ".weight") != 0) return 0; /* rows of values */
    snprintf(next, sizeof next, "%.*s%d.weight", (int)(layer - name), name, *layer - '0' + 1);
    for (int64_t i = 0; exphil_model_tensor_info(model, i, &info, NULL) == EXPHIL_OK; i++)
        if (strcmp(info.name, next) == 0) return EXPHIL_TYPE_BF16;
    return 0; /* the last layer gives logits */
}

static int32_t rounded_to(const exphil_model *model, const char *name, int32_t rank, int32_t type)
{
    static const char *const stay[] = {"relative_bias", "conv.weight",  "A_log",      "ids.",
                                       "past",          "heads.logits", "heads.embed"};
    if (rank < 2) return 0;
    for (size_t i = 0; i < sizeof stay / sizeof stay[0]; i++)
        if (strstr(name, stay[i])) return 0;
    if (strncmp(name, "heads.", 6) == 0 && strncmp(name, "heads.trunk", 11) != 0)
        return layer_rounded_to(model, name);
    if (strcmp(name, "input.weight") == 0 || strcmp(name, "heads.trunk.weight") == 0) return EXPHIL_TYPE_BF16;
    return type;
}

static float bf16_of(float value)
{
    uint32_t bits;
    if (fabsf(value) < 0x1p-50f) return 0.0f;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* As lib/device/backend.h says it, in another way of computing: 16 significant bits by frexp, the quotient in
 * double. */
static void i8_row(const float *from, int64_t count, float *to)
{
    float largest = 0.0f;
    for (int64_t k = 0; k < count; k++) largest = fmaxf(largest, fabsf(from[k]));
    int exponent;
    double part = frexp((double)(largest / 127.0f), &exponent),
           scale = ldexp(ceil(ldexp(part, 16)), exponent - 16);
    for (int64_t k = 0; k < count; k++)
        to[k] = (float)(scale * nearbyint((double)(float)((double)from[k] / scale))) + 0.0f;
}

static void check_tensor(const exphil_model *model, const exphil_model *quantized, int32_t type,
                         const char *name)
{
    exphil_tensor_info info, same;
    float *before = quantize_values(model, name, &info), *after = quantize_values(quantized, name, &same);
    float *want = malloc(info.size_bytes);
    int64_t rows = info.dim[0], columns = info.dim[1];
    assert_memory_equal(&info, &same, sizeof info);
    memcpy(want, before, info.size_bytes);
    type = rounded_to(model, name, info.rank, type);
    for (int64_t r = 0; r < rows; r++) {
        if (type == EXPHIL_TYPE_I8) i8_row(before + r * columns, columns, want + r * columns);
        for (int64_t k = 0; type == EXPHIL_TYPE_BF16 && k < columns; k++)
            want[r * columns + k] = bf16_of(before[r * columns + k]);
    }
    for (int64_t i = 0; i < (int64_t)info.size_bytes / 4; i++)
        if (memcmp(want + i, after + i, 4) != 0)
            fail_msg("%s[%d] is %a, not %a: not %a rounded", name, (int)i, (double)after[i], (double)want[i],
                     (double)before[i]);
    if (type && memcmp(before, after, info.size_bytes) == 0) fail_msg("%s stayed as it was", name);
    free(before);
    free(after);
    free(want);
}

static void matrices_are_rounded(void **state)
{
    for (int p = 0; p < QUANTIZE_PATTERNS; p++)
        for (int t = 0; t < 2; t++) {
            exphil_model *model = quantize_plain(quantize_patterns[p]),
                         *quantized = quantize_rounded(model, quantize_types[t]);
            exphil_model_info a = quantize_info(model), b = quantize_info(quantized);
            exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
            for (int64_t i = 0; exphil_model_tensor_info(model, i, &info, NULL) == EXPHIL_OK; i++)
                check_tensor(model, quantized, quantize_types[t], info.name);
            assert_int_equal(a.weights, EXPHIL_TYPE_F32);
            assert_int_equal(b.weights, quantize_types[t]);
            assert_int_equal(b.type, EXPHIL_TYPE_F32);
            assert_int_equal(a.calibrated | b.calibrated, 0);
            assert_true(a.weights_hash != b.weights_hash);
            exphil_model_destroy(model);
            exphil_model_destroy(quantized);
        }
}

/* A float model that happens to hold rounded numbers loses nothing, but it is another model. */
static void rounding_is_done_once(void **state)
{
    for (int t = 0; t < 2; t++) {
        exphil_model *model = quantize_plain("mamba gru"),
                     *quantized = quantize_rounded(model, quantize_types[t]);
        exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
        for (int64_t i = 0; exphil_model_tensor_info(model, i, &info, NULL) == EXPHIL_OK; i++) {
            float *values = quantize_values(quantized, info.name, &info);
            assert_ok(exphil_model_tensor_set(model, info.name, values, info.size_bytes, NULL));
            free(values);
        }
        exphil_model *again = quantize_rounded(model, quantize_types[t]);
        assert_true(quantize_info(again).weights_hash == quantize_info(quantized).weights_hash);
        assert_true(quantize_info(model).weights_hash != quantize_info(quantized).weights_hash);
        assert_true(xph_model_config_hash(model) != xph_model_config_hash(quantized));
        exphil_model_destroy(again);
        exphil_model_destroy(quantized);
        exphil_model_destroy(model);
    }
}

static void counters_go_along(void **state)
{
    exphil_model *model = quantize_plain("gru"), *trained = NULL;
    assert_ok(xph_model_with_weights(model, xph_model_weights(model), 12, 345, &trained, NULL));
    exphil_model *quantized = quantize_rounded(trained, EXPHIL_TYPE_I8);
    exphil_model_info info = quantize_info(quantized);
    assert_int_equal(info.trained_updates, 12);
    assert_int_equal(info.trained_frames, 345);
    exphil_model_destroy(quantized);
    exphil_model_destroy(trained);
    exphil_model_destroy(model);
}

/* ---- what is refused ----------------------------------------------------------------------------------- */

static void only_plain_models_of_floats(void **state)
{
    exphil_model *model = quantize_plain("gru"), *quantized = quantize_rounded(model, EXPHIL_TYPE_I8),
                 *none = NULL;
    exphil_error e = EXPHIL_ERROR_INIT;
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F64);
    exphil_model *wide = model_case_create(quantize_context, &config);
    static const int32_t others[] = {EXPHIL_TYPE_F32, EXPHIL_TYPE_F64, EXPHIL_TYPE_F16};
    for (int i = 0; i < 3; i++)
        quantize_refused(exphil_model_quantize(model, others[i], &none, &e), EXPHIL_E_UNSUPPORTED, &e,
                         "not to EXPHIL_TYPE_F");
    quantize_refused(exphil_model_quantize(model, -1, &none, &e), EXPHIL_E_INVALID, &e, "type is -1");
    quantize_refused(exphil_model_quantize(wide, EXPHIL_TYPE_I8, &none, &e), EXPHIL_E_UNSUPPORTED, &e,
                     "a model of EXPHIL_TYPE_F64 has no form with weights of EXPHIL_TYPE_I8");
    quantize_refused(exphil_model_quantize(quantized, EXPHIL_TYPE_I8, &none, &e), EXPHIL_E_STATE, &e,
                     "quantise the model");
    quantize_refused(exphil_model_quantize(quantized, EXPHIL_TYPE_BF16, &none, &e), EXPHIL_E_STATE, &e,
                     "EXPHIL_TYPE_I8");
    assert_null(none);
    exphil_model_destroy(wide);
    exphil_model_destroy(quantized);
    exphil_model_destroy(model);
}

/* The largest float would round to an infinite bfloat16; int8 holds what it can. */
static void too_large_to_round(void **state)
{
    exphil_model *model = quantize_plain("gru"), *none = NULL;
    exphil_error e = EXPHIL_ERROR_INIT;
    exphil_tensor_info info;
    float *values = quantize_values(model, "blocks.0.weight_hh", &info);
    values[3 * 24 + 5] = -FLT_MAX;
    assert_ok(exphil_model_tensor_set(model, info.name, values, info.size_bytes, NULL));
    exphil_status status = exphil_model_quantize(model, EXPHIL_TYPE_BF16, &none, &e);
    quantize_refused(status, EXPHIL_E_NUMERIC, &e,
                     "tensor \"blocks.0.weight_hh\" would not be finite in EXPHIL_TYPE_BF16 at element 77");
    assert_null(none);
    exphil_model *quantized = quantize_rounded(model, EXPHIL_TYPE_I8);
    free(values);
    values = quantize_values(quantized, "blocks.0.weight_hh", &info);
    assert_true(values[77] == -127 * 0x1p120f && values[76] == 0);
    free(values);
    exphil_model_destroy(quantized);
    exphil_model_destroy(model);
}

static void weights_stay(void **state)
{
    exphil_model *model = quantize_plain("gru"), *quantized = quantize_rounded(model, EXPHIL_TYPE_BF16);
    exphil_error e = EXPHIL_ERROR_INIT;
    exphil_tensor_info info;
    uint64_t before = quantize_info(quantized).weights_hash;
    static const char *const names[] = {"input.weight", "norm.bias"};
    for (int i = 0; i < 2; i++) {
        float *values = quantize_values(quantized, names[i], &info);
        quantize_refused(exphil_model_tensor_set(quantized, names[i], values, info.size_bytes, &e),
                         EXPHIL_E_STATE, &e, "rounded to EXPHIL_TYPE_BF16: its tensors stay as they are");
        free(values);
    }
    assert_true(quantize_info(quantized).weights_hash == before);
    exphil_model_destroy(quantized);
    exphil_model_destroy(model);
}

/* ---- playing ------------------------------------------------------------------------------------------- */

enum { STREAMS = 3, FRAMES = 20 };

/* Logits of a session over the same frames; [FRAMES, STREAMS, L]. */
static float *play(exphil_model *model, const play_frames *frames)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    int32_t actions[STREAMS * EXPHIL_HEADS_MAX];
    int64_t each = STREAMS * frames->logits;
    float *logits = calloc((size_t)(FRAMES * each), sizeof *logits);
    config.streams = STREAMS;
    exphil_session *session = play_session(model, &config);
    for (int64_t t = 0; t < FRAMES; t++) {
        const int32_t same[EXPHIL_HEADS_MAX] = {0};
        play_step(session, frames, t, false, actions);
        play_logits(session, frames, logits + t * each);
        for (int64_t b = 0; b < STREAMS; b++) assert_ok(exphil_session_override(session, b, same));
    }
    exphil_session_destroy(session);
    return logits;
}

static double distance(const float *a, const float *b, int64_t count)
{
    double squares = 0, scale = 0;
    for (int64_t i = 0; i < count; i++) {
        squares += (double)(a[i] - b[i]) * (double)(a[i] - b[i]);
        scale += (double)b[i] * (double)b[i];
    }
    return sqrt(squares / scale);
}

/* Past actions are those overridden, the same for both; of drawn heads the noise decides alike but for a
 * near tie, so the first head's logits are looked at, which no draw of the frame comes before. */
static void play_is_near(void **state)
{
    static const double most[2] = {0.02, 0.05};
    for (int p = 0; p < QUANTIZE_PATTERNS; p++) {
        exphil_model *model = quantize_plain(quantize_patterns[p]);
        play_frames *frames = play_frames_make(model, STREAMS, FRAMES, 5);
        float *exact = play(model, frames);
        for (int t = 0; t < 2; t++) {
            exphil_model *quantized = quantize_rounded(model, quantize_types[t]);
            float *near = play(quantized, frames);
            double sum = 0;
            for (int64_t row = 0; row < FRAMES * STREAMS; row++)
                sum += distance(near + row * frames->logits, exact + row * frames->logits, 3) /
                       (FRAMES * STREAMS);
            print_message("%-12s %s: %.5f\n", quantize_patterns[p],
                          quantize_types[t] == EXPHIL_TYPE_I8 ? "int8" : "bf16", sum);
            assert_true(sum < most[t] && sum > 0);
            free(near);
            exphil_model_destroy(quantized);
        }
        free(exact);
        play_frames_free(frames);
        exphil_model_destroy(model);
    }
}

/* A context that may use no more than this. */
static exphil_context *limited(const char *isa, int32_t threads)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *made = NULL;
    config.cpu_isa = isa;
    config.threads = threads;
    return exphil_context_create(&config, &made, NULL) == EXPHIL_OK ? made : NULL;
}

/* Rounded anew on every level: the same weights, and the same logits played with them. */
static void bits_are_the_same_everywhere(void **state)
{
    static const char *const levels[] = {"ref", "avx2", "avx512", NULL};
    for (int p = 0; p < QUANTIZE_PATTERNS; p++)
        for (int t = 0; t < 2; t++) {
            exphil_model *model = quantize_plain(quantize_patterns[p]),
                         *quantized = quantize_rounded(model, quantize_types[t]);
            play_frames *frames = play_frames_make(model, STREAMS, FRAMES, 7);
            float *want = play(quantized, frames);
            size_t bytes;
            assert_ok(exphil_model_save(model, test_path("plain"), NULL));
            char *file = test_read(test_path("plain"), &bytes);
            for (int i = 0; i < 8; i++) {
                exphil_context *there = limited(levels[i / 2], i % 2 ? 3 : 1);
                exphil_model *same = NULL;
                if (!there) {
                    print_message("SKIPPED: this processor has no %s\n", levels[i / 2]);
                    continue;
                }
                assert_ok(exphil_model_load_memory(there, file, bytes, &same, NULL));
                exphil_model *again = quantize_rounded(same, quantize_types[t]);
                assert_true(quantize_info(again).weights_hash == quantize_info(quantized).weights_hash);
                float *got = play(again, frames);
                assert_memory_equal(got, want, (size_t)(FRAMES * STREAMS * frames->logits) * sizeof *got);
                free(got);
                exphil_model_destroy(again);
                exphil_model_destroy(same);
                exphil_context_destroy(there);
            }
            free(file);
            free(want);
            play_frames_free(frames);
            exphil_model_destroy(quantized);
            exphil_model_destroy(model);
        }
}

/* ---- files --------------------------------------------------------------------------------------------- */

static void assert_same_play(exphil_model *one, exphil_model *two)
{
    exphil_model_info a = quantize_info(one), b = quantize_info(two);
    const void *packed_one, *packed_two;
    assert_memory_equal(&a, &b, sizeof a);
    assert_ok(xph_model_packed(one, &packed_one, NULL));
    assert_ok(xph_model_packed(two, &packed_two, NULL));
    assert_int_equal(xph_model_shape_of(one)->packed_bytes, xph_model_shape_of(two)->packed_bytes);
    assert_memory_equal(packed_one, packed_two, xph_model_shape_of(one)->packed_bytes);
    play_frames *frames = play_frames_make(one, STREAMS, FRAMES, 6);
    float *logits_one = play(one, frames), *logits_two = play(two, frames);
    assert_memory_equal(logits_one, logits_two, (size_t)(FRAMES * STREAMS * frames->logits) * sizeof(float));
    free(logits_one);
    free(logits_two);
    play_frames_free(frames);
}

static void files_bring_back_the_same_bits(void **state)
{
    for (int p = 0; p < QUANTIZE_PATTERNS; p++)
        for (int t = 0; t < 2; t++) {
            const char *one = test_path("one"), *two = test_path("two");
            exphil_model *model = quantize_plain(quantize_patterns[p]),
                         *quantized = quantize_rounded(model, quantize_types[t]);
            assert_ok(exphil_model_save(quantized, one, NULL));
            exphil_model *loaded = quantize_load(one);
            assert_ok(exphil_model_save(loaded, two, NULL));
            assert_same_file(one, two);
            assert_same_play(quantized, loaded);
            exphil_model_destroy(loaded);
            exphil_model_destroy(quantized);
            exphil_model_destroy(model);
        }
}

/* Rows of zeros, of tiny and of huge numbers: each has its own scale, and the file tells it. */
static void odd_rows_come_back(void **state)
{
    for (int t = 0; t < 2; t++) {
        exphil_model *model = quantize_plain("gru");
        exphil_tensor_info info;
        float *values = quantize_values(model, "blocks.0.weight_hh", &info);
        static const float sizes[] = {0.0f,   1e-45f,   1e-36f, 0x1p-100f * 127.0f, 0x1p-100f * 60.0f,
                                      1e-20f, 0x1p-50f, 1e30f};
        for (int64_t i = 0; i < 8 * info.dim[1]; i++) {
            float part = (float)(i % 9) / 8.0f - 0.5f;
            values[i] = sizes[i / info.dim[1]] * part;
        }
        assert_ok(exphil_model_tensor_set(model, info.name, values, info.size_bytes, NULL));
        exphil_model *quantized = quantize_rounded(model, quantize_types[t]);
        const char *one = test_path("odd"), *two = test_path("odd2");
        assert_ok(exphil_model_save(quantized, one, NULL));
        exphil_model *loaded = quantize_load(one);
        assert_ok(exphil_model_save(loaded, two, NULL));
        assert_same_file(one, two);
        assert_true(quantize_info(loaded).weights_hash == quantize_info(quantized).weights_hash);
        free(values);
        exphil_model_destroy(loaded);
        exphil_model_destroy(quantized);
        exphil_model_destroy(model);
    }
}

static void files_are_smaller(void **state)
{
    static const double most[2] = {0.52, 0.30};
    exphil_model_config config = model_case_config("lstm*2", EXPHIL_TYPE_F32);
    size_t bytes, small;
    config.hidden = config.head_width = 128;
    exphil_model *model = model_case_create(quantize_context, &config);
    assert_ok(exphil_model_save(model, test_path("large"), NULL));
    free(test_read(test_path("large"), &bytes));
    for (int t = 0; t < 2; t++) {
        exphil_model *quantized = quantize_rounded(model, quantize_types[t]);
        assert_ok(exphil_model_save(quantized, test_path("small"), NULL));
        free(test_read(test_path("small"), &small));
        print_message("%zu bytes instead of %zu\n", small, bytes);
        assert_true((double)small < most[t] * (double)bytes);
        exphil_model_destroy(quantized);
    }
    exphil_model_destroy(model);
}

static void python_reads_them(void **state)
{
    for (int t = 0; t < 2; t++) {
        exphil_model *model = quantize_plain("mamba gru attention"),
                     *quantized = quantize_rounded(model, quantize_types[t]);
        const char *one = test_path("one"), *two = test_path("two"), *three = test_path("three");
        char said[1024];
        assert_ok(exphil_model_save(quantized, one, NULL));
        bool there = test_safetensors_rewrite(one, two, said, sizeof said);
        if (there) {
            exphil_model *loaded = quantize_load(two);
            assert_ok(exphil_model_save(loaded, three, NULL));
            assert_same_file(one, three);
            exphil_model_destroy(loaded);
        }
        exphil_model_destroy(quantized);
        exphil_model_destroy(model);
        if (!there) skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_are_rounded),
        cmocka_unit_test(rounding_is_done_once),
        cmocka_unit_test(counters_go_along),
        cmocka_unit_test(only_plain_models_of_floats),
        cmocka_unit_test(too_large_to_round),
        cmocka_unit_test(weights_stay),
        cmocka_unit_test(play_is_near),
        cmocka_unit_test(bits_are_the_same_everywhere),
        cmocka_unit_test(files_bring_back_the_same_bits),
        cmocka_unit_test(odd_rows_come_back),
        cmocka_unit_test(files_are_smaller),
        cmocka_unit_test(python_reads_them),
    };
    return cmocka_run_group_tests(tests, quantize_begin, quantize_end);
}
