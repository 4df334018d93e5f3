/* Models with weights of fewer bits: what is rounded and what is not, what they refuse, and that a file
 * brings back the same packed bits. A damaged file is refused by tensor and element. */
#include "model_case.h"
#include "play_case.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static exphil_context *context;

static int open_context(void **state)
{
    (void)state;
    context = test_context(NULL, NULL, 1);
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    exphil_context_destroy(context);
    test_folder_remove();
    return 0;
}

static const int32_t types[2] = {EXPHIL_TYPE_BF16, EXPHIL_TYPE_I8};
static const char *const patterns[] = {"mamba", "lstm", "gru", "attention", "mlp", "ffn", "(gru ffn)*2"};
enum { PATTERNS = sizeof patterns / sizeof patterns[0] };

static exphil_model *plain(const char *blocks)
{
    exphil_model_config config = model_case_config(blocks, EXPHIL_TYPE_F32);
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    return play_model(context, &config, 0.1);
}

static exphil_model *rounded(const exphil_model *model, int32_t type)
{
    exphil_model *quantized = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_quantize(model, type, &quantized, &error) < 0) fail_msg("%s", error.message);
    return quantized;
}

static exphil_model_info info_of(const exphil_model *model)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_model_query(model, &info, NULL));
    return info;
}

static float *values_of(const exphil_model *model, const char *name, exphil_tensor_info *info)
{
    *info = (exphil_tensor_info)EXPHIL_TENSOR_INFO_INIT;
    for (int64_t i = 0; exphil_model_tensor_info(model, i, info, NULL) == EXPHIL_OK; i++) {
        if (strcmp(info->name, name) != 0) continue;
        float *values = malloc(info->size_bytes);
        assert_ok(exphil_model_tensor_get(model, name, values, info->size_bytes, NULL));
        return values;
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

/* ---- what is rounded ----------------------------------------------------------------------------------- */

/* By the words of the public header, not by what the layers declare. 0: not rounded. */
static int32_t rounded_to(const char *name, int32_t type)
{
    static const char *const stay[] = {"bias", "norm", "conv.",        "A_log",      ".D",
                                       "ids.", "past", "heads.logits", "heads.embed"};
    for (size_t i = 0; i < sizeof stay / sizeof stay[0]; i++)
        if (strstr(name, stay[i])) return 0;
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
    float *before = values_of(model, name, &info), *after = values_of(quantized, name, &same);
    float *want = malloc(info.size_bytes);
    int64_t rows = info.dim[0], columns = info.dim[1];
    assert_memory_equal(&info, &same, sizeof info);
    memcpy(want, before, info.size_bytes);
    type = rounded_to(name, type);
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
    (void)state;
    for (int p = 0; p < PATTERNS; p++)
        for (int t = 0; t < 2; t++) {
            exphil_model *model = plain(patterns[p]), *quantized = rounded(model, types[t]);
            exphil_model_info a = info_of(model), b = info_of(quantized);
            exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
            for (int64_t i = 0; exphil_model_tensor_info(model, i, &info, NULL) == EXPHIL_OK; i++)
                check_tensor(model, quantized, types[t], info.name);
            assert_int_equal(a.weights, EXPHIL_TYPE_F32);
            assert_int_equal(b.weights, types[t]);
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
    (void)state;
    for (int t = 0; t < 2; t++) {
        exphil_model *model = plain("mamba gru"), *quantized = rounded(model, types[t]);
        exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
        for (int64_t i = 0; exphil_model_tensor_info(model, i, &info, NULL) == EXPHIL_OK; i++) {
            float *values = values_of(quantized, info.name, &info);
            assert_ok(exphil_model_tensor_set(model, info.name, values, info.size_bytes, NULL));
            free(values);
        }
        exphil_model *again = rounded(model, types[t]);
        assert_true(info_of(again).weights_hash == info_of(quantized).weights_hash);
        assert_true(info_of(model).weights_hash != info_of(quantized).weights_hash);
        assert_true(xph_model_config_hash(model) != xph_model_config_hash(quantized));
        exphil_model_destroy(again);
        exphil_model_destroy(quantized);
        exphil_model_destroy(model);
    }
}

static void counters_go_along(void **state)
{
    (void)state;
    exphil_model *model = plain("gru"), *trained = NULL;
    assert_ok(xph_model_with_weights(model, xph_model_weights(model), 12, 345, &trained, NULL));
    exphil_model *quantized = rounded(trained, EXPHIL_TYPE_I8);
    exphil_model_info info = info_of(quantized);
    assert_int_equal(info.trained_updates, 12);
    assert_int_equal(info.trained_frames, 345);
    exphil_model_destroy(quantized);
    exphil_model_destroy(trained);
    exphil_model_destroy(model);
}

/* ---- what is refused ----------------------------------------------------------------------------------- */

static void refused(exphil_status got, exphil_status want, const exphil_error *error, const char *says)
{
    if (got != want || !strstr(error->message, says))
        fail_msg("%s: %s, wanted %s: %s", exphil_status_name(got), error->message, exphil_status_name(want),
                 says);
}

static void only_plain_models_of_floats(void **state)
{
    (void)state;
    exphil_model *model = plain("gru"), *quantized = rounded(model, EXPHIL_TYPE_I8), *none = NULL;
    exphil_error e = EXPHIL_ERROR_INIT;
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F64);
    exphil_model *wide = model_case_create(context, &config);
    static const int32_t others[] = {EXPHIL_TYPE_F32, EXPHIL_TYPE_F64, EXPHIL_TYPE_F16};
    for (int i = 0; i < 3; i++)
        refused(exphil_model_quantize(model, others[i], &none, &e), EXPHIL_E_UNSUPPORTED, &e,
                "not to EXPHIL_TYPE_F");
    refused(exphil_model_quantize(model, -1, &none, &e), EXPHIL_E_INVALID, &e, "type is -1");
    refused(exphil_model_quantize(wide, EXPHIL_TYPE_I8, &none, &e), EXPHIL_E_UNSUPPORTED, &e,
            "a model of EXPHIL_TYPE_F64 has no form with weights of EXPHIL_TYPE_I8");
    refused(exphil_model_quantize(quantized, EXPHIL_TYPE_I8, &none, &e), EXPHIL_E_STATE, &e,
            "quantise the model");
    refused(exphil_model_quantize(quantized, EXPHIL_TYPE_BF16, &none, &e), EXPHIL_E_STATE, &e,
            "EXPHIL_TYPE_I8");
    assert_null(none);
    exphil_model_destroy(wide);
    exphil_model_destroy(quantized);
    exphil_model_destroy(model);
}

/* The largest float would round to an infinite bfloat16; int8 holds what it can. */
static void too_large_to_round(void **state)
{
    (void)state;
    exphil_model *model = plain("gru"), *none = NULL;
    exphil_error e = EXPHIL_ERROR_INIT;
    exphil_tensor_info info;
    float *values = values_of(model, "blocks.0.weight_hh", &info);
    values[3 * 24 + 5] = -FLT_MAX;
    assert_ok(exphil_model_tensor_set(model, info.name, values, info.size_bytes, NULL));
    exphil_status status = exphil_model_quantize(model, EXPHIL_TYPE_BF16, &none, &e);
    refused(status, EXPHIL_E_NUMERIC, &e,
            "tensor \"blocks.0.weight_hh\" would not be finite in EXPHIL_TYPE_BF16 at element 77");
    assert_null(none);
    exphil_model *quantized = rounded(model, EXPHIL_TYPE_I8);
    free(values);
    values = values_of(quantized, "blocks.0.weight_hh", &info);
    assert_true(values[77] == -127 * 0x1p120f && values[76] == 0);
    free(values);
    exphil_model_destroy(quantized);
    exphil_model_destroy(model);
}

static void weights_stay(void **state)
{
    (void)state;
    exphil_model *model = plain("gru"), *quantized = rounded(model, EXPHIL_TYPE_BF16);
    exphil_error e = EXPHIL_ERROR_INIT;
    exphil_tensor_info info;
    uint64_t before = info_of(quantized).weights_hash;
    static const char *const names[] = {"input.weight", "norm.bias"};
    for (int i = 0; i < 2; i++) {
        float *values = values_of(quantized, names[i], &info);
        refused(exphil_model_tensor_set(quantized, names[i], values, info.size_bytes, &e), EXPHIL_E_STATE, &e,
                "rounded to EXPHIL_TYPE_BF16: its tensors stay as they are");
        free(values);
    }
    assert_true(info_of(quantized).weights_hash == before);
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
    (void)state;
    static const double most[2] = {0.02, 0.05};
    for (int p = 0; p < PATTERNS; p++) {
        exphil_model *model = plain(patterns[p]);
        play_frames *frames = play_frames_make(model, STREAMS, FRAMES, 5);
        float *exact = play(model, frames);
        for (int t = 0; t < 2; t++) {
            exphil_model *quantized = rounded(model, types[t]);
            float *near = play(quantized, frames);
            double sum = 0;
            for (int64_t row = 0; row < FRAMES * STREAMS; row++)
                sum += distance(near + row * frames->logits, exact + row * frames->logits, 3) /
                       (FRAMES * STREAMS);
            print_message("%-12s %s: %.5f\n", patterns[p], types[t] == EXPHIL_TYPE_I8 ? "int8" : "bf16", sum);
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
    (void)state;
    static const char *const levels[] = {"ref", "avx2", "avx512", NULL};
    for (int p = 0; p < PATTERNS; p++)
        for (int t = 0; t < 2; t++) {
            exphil_model *model = plain(patterns[p]), *quantized = rounded(model, types[t]);
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
                exphil_model *again = rounded(same, types[t]);
                assert_true(info_of(again).weights_hash == info_of(quantized).weights_hash);
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

static exphil_model *load(const char *path)
{
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_load(context, path, &model, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    return model;
}

static void assert_same_file(const char *one, const char *two)
{
    size_t bytes_one, bytes_two;
    char *a = test_read(one, &bytes_one), *b = test_read(two, &bytes_two);
    assert_int_equal(bytes_one, bytes_two);
    assert_memory_equal(a, b, bytes_one);
    free(a);
    free(b);
}

static void assert_same_play(exphil_model *one, exphil_model *two)
{
    exphil_model_info a = info_of(one), b = info_of(two);
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
    (void)state;
    for (int p = 0; p < PATTERNS; p++)
        for (int t = 0; t < 2; t++) {
            const char *one = test_path("one"), *two = test_path("two");
            exphil_model *model = plain(patterns[p]), *quantized = rounded(model, types[t]);
            assert_ok(exphil_model_save(quantized, one, NULL));
            exphil_model *loaded = load(one);
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
    (void)state;
    for (int t = 0; t < 2; t++) {
        exphil_model *model = plain("gru");
        exphil_tensor_info info;
        float *values = values_of(model, "blocks.0.weight_hh", &info);
        static const float sizes[] = {0.0f,   1e-45f,   1e-36f, 0x1p-100f * 127.0f, 0x1p-100f * 60.0f,
                                      1e-20f, 0x1p-50f, 1e30f};
        for (int64_t i = 0; i < 8 * info.dim[1]; i++) {
            float part = (float)(i % 9) / 8.0f - 0.5f;
            values[i] = sizes[i / info.dim[1]] * part;
        }
        assert_ok(exphil_model_tensor_set(model, info.name, values, info.size_bytes, NULL));
        exphil_model *quantized = rounded(model, types[t]);
        const char *one = test_path("odd"), *two = test_path("odd2");
        assert_ok(exphil_model_save(quantized, one, NULL));
        exphil_model *loaded = load(one);
        assert_ok(exphil_model_save(loaded, two, NULL));
        assert_same_file(one, two);
        assert_true(info_of(loaded).weights_hash == info_of(quantized).weights_hash);
        free(values);
        exphil_model_destroy(loaded);
        exphil_model_destroy(quantized);
        exphil_model_destroy(model);
    }
}

static void files_are_smaller(void **state)
{
    (void)state;
    static const double most[2] = {0.52, 0.30};
    exphil_model_config config = model_case_config("lstm*2", EXPHIL_TYPE_F32);
    size_t bytes, small;
    config.hidden = config.head_width = 128;
    exphil_model *model = model_case_create(context, &config);
    assert_ok(exphil_model_save(model, test_path("large"), NULL));
    free(test_read(test_path("large"), &bytes));
    for (int t = 0; t < 2; t++) {
        exphil_model *quantized = rounded(model, types[t]);
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
    (void)state;
    for (int t = 0; t < 2; t++) {
        exphil_model *model = plain("mamba gru attention"), *quantized = rounded(model, types[t]);
        const char *one = test_path("one"), *two = test_path("two"), *three = test_path("three");
        char said[1024];
        assert_ok(exphil_model_save(quantized, one, NULL));
        bool there = test_safetensors_rewrite(one, two, said, sizeof said);
        if (there) {
            exphil_model *loaded = load(two);
            assert_ok(exphil_model_save(loaded, three, NULL));
            assert_same_file(one, three);
            exphil_model_destroy(loaded);
        }
        exphil_model_destroy(quantized);
        exphil_model_destroy(model);
        if (!there) skip();
    }
}

/* ---- damage -------------------------------------------------------------------------------------------- */

/* A small file taken apart; what is changed is put together again and loaded. */
typedef struct parts {
    char *file, *text;
    xph_tensors tensors;
    xph_array array[80];
    int64_t count;
    xph_pair pair[4];
    int64_t pairs;
    unsigned char data[2][65536];
} parts;

static exphil_model *small(int32_t type)
{
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    config.hidden = config.head_width = 4;
    exphil_model *model = model_case_create(context, &config), *quantized = rounded(model, type);
    exphil_model_destroy(model);
    return quantized;
}

static parts *take_apart(int32_t type)
{
    const char *path = test_path("parts");
    exphil_model *quantized = small(type);
    parts *p = calloc(1, sizeof *p);
    size_t bytes;
    assert_ok(exphil_model_save(quantized, path, NULL));
    exphil_model_destroy(quantized);
    p->file = test_read(path, &bytes);
    assert_ok(xph_tensors_parse(context, p->file, bytes, "t", &p->tensors, NULL));
    p->count = p->tensors.count;
    memcpy(p->array, p->tensors.tensor, (size_t)p->count * sizeof *p->array);
    p->text = strdup(xph_tensors_metadata(&p->tensors, "exphil.model"));
    p->pair[p->pairs++] = (xph_pair){"exphil.format", "1"};
    p->pair[p->pairs++] = (xph_pair){"exphil.model", p->text};
    return p;
}

/* The tensor with a copy of its data that may be written to. */
static xph_array *open_array(parts *p, int copy, const char *name)
{
    for (int64_t i = 0; i < p->count; i++) {
        if (strcmp(p->array[i].name, name) != 0) continue;
        assert_true(p->array[i].bytes <= sizeof p->data[copy]);
        memcpy(p->data[copy], p->array[i].data, p->array[i].bytes);
        p->array[i].data = p->data[copy];
        return &p->array[i];
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

static void put_together(parts *p, exphil_status want, const char *says)
{
    const char *path = test_path("changed");
    xph_file_writer writer = {.context = context};
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_ok(xph_tensors_write(context, p->array, p->count, p->pair, p->pairs, path, &writer, NULL));
    assert_ok(xph_file_commit(&writer, NULL));
    exphil_status status = exphil_model_load(context, path, &model, &error);
    if (status != want || (want < 0 && !strstr(error.message, says)))
        fail_msg("%s: %s\n  wanted %s: %s", exphil_status_name(status), error.message,
                 exphil_status_name(want), says);
    exphil_model_destroy(model);
    xph_tensors_free(&p->tensors);
    free(p->file);
    free(p->text);
    free(p);
}

#define MATRIX "blocks.0.weight_hh"
#define SCALE  "blocks.0.weight_hh.scale"

static void set_scale(float value, exphil_status want, const char *says)
{
    parts *p = take_apart(EXPHIL_TYPE_I8);
    xph_array *array = open_array(p, 0, SCALE);
    memcpy(p->data[0] + 2 * sizeof value, &value, sizeof value);
    assert_int_equal(array->bytes, 12 * sizeof value);
    put_together(p, want, says);
}

static void damaged_scales_are_refused(void **state)
{
    (void)state;
    const char *at = "weights: tensor \"" SCALE "\" is ";
    char says[160];
    static const struct {
        float value;
        exphil_status status;
        const char *what;
    } cases[] = {
        {NAN, EXPHIL_E_NUMERIC, "not finite at element 2"},
        {INFINITY, EXPHIL_E_NUMERIC, "not finite at element 2"},
        {0.0f, EXPHIL_E_FORMAT, "not positive at element 2"},
        {-0.0f, EXPHIL_E_FORMAT, "not positive at element 2"},
        {-0.5f, EXPHIL_E_FORMAT, "not positive at element 2"},
        {0.1f, EXPHIL_E_FORMAT, "of more than 16 significant bits at element 2"},
        {0x1p-101f, EXPHIL_E_FORMAT, "below 2^-100 at element 2"},
        {1e-44f, EXPHIL_E_FORMAT, "below 2^-100 at element 2"},
        {0x1p121f, EXPHIL_E_FORMAT, "above 2^120 at element 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(says, sizeof says, "%s%s", at, cases[i].what);
        set_scale(cases[i].value, cases[i].status, says);
    }
    set_scale(0.5f, EXPHIL_OK, "");
    set_scale(0x1p120f, EXPHIL_OK, "");
    parts *p = take_apart(EXPHIL_TYPE_I8);
    for (int64_t i = 0; i < p->count; i++)
        if (strcmp(p->array[i].name, SCALE) == 0) p->array[i] = p->array[--p->count];
    put_together(p, EXPHIL_E_FORMAT, "weights: tensor \"" SCALE "\" is missing");
    p = take_apart(EXPHIL_TYPE_I8);
    open_array(p, 0, SCALE)->dtype = XPH_DTYPE_I32;
    put_together(p, EXPHIL_E_FORMAT, "weights: tensor \"" SCALE "\" is I32, the model is F32");
    p = take_apart(EXPHIL_TYPE_I8);
    xph_array *array = open_array(p, 0, SCALE);
    array->rank = 2;
    array->dim[0] = 6;
    array->dim[1] = 2;
    put_together(p, EXPHIL_E_FORMAT, "weights: tensor \"" SCALE "\" has 2 dimensions [6,2,...]");
}

static void damaged_matrices_are_refused(void **state)
{
    (void)state;
    parts *p = take_apart(EXPHIL_TYPE_I8);
    (void)open_array(p, 0, MATRIX);
    p->data[0][4 * 7 + 1] = 0x80;
    put_together(p, EXPHIL_E_FORMAT, "weights: tensor \"" MATRIX "\" is -128 at element 29");
    p = take_apart(EXPHIL_TYPE_I8);
    (void)open_array(p, 0, MATRIX);
    memset(p->data[0] + 4 * 7, 5, 4);
    put_together(p, EXPHIL_E_FORMAT,
                 "weights: tensor \"" SCALE
                 "\" has no scale of this size at element 7: the largest of the row is 5");
    p = take_apart(EXPHIL_TYPE_I8);
    (void)open_array(p, 0, MATRIX);
    memset(p->data[0] + 4 * 7, 0, 4);
    put_together(p, EXPHIL_E_FORMAT, "at element 7: the largest of the row is 0");
    p = take_apart(EXPHIL_TYPE_I8);
    open_array(p, 0, MATRIX)->dtype = XPH_DTYPE_U8;
    put_together(p, EXPHIL_E_FORMAT, "weights: tensor \"" MATRIX "\" is U8, the model is I8");
    p = take_apart(EXPHIL_TYPE_I8);
    p->array[p->count++] = (xph_array){"norm.weight.scale", XPH_DTYPE_F32, 1, {1, 1, 1, 1}, p->data[0], 4, 0};
    put_together(p, EXPHIL_E_FORMAT, "weights: tensor \"norm.weight.scale\" is not one of the model's");
    static const uint16_t halves[] = {0x7F80, 0xFF81, 0x2600, 0x8000, 0x0001};
    for (int i = 0; i < 5; i++) {
        p = take_apart(EXPHIL_TYPE_BF16);
        (void)open_array(p, 0, MATRIX);
        memcpy(p->data[0] + 2 * 11, &halves[i], 2);
        if (i < 2)
            put_together(p, EXPHIL_E_NUMERIC, "weights: tensor \"" MATRIX "\" is not finite at element 11");
        else
            put_together(p, EXPHIL_E_FORMAT,
                         "weights: tensor \"" MATRIX "\" is below 2^-50 at element 11, but not 0");
    }
    p = take_apart(EXPHIL_TYPE_BF16);
    open_array(p, 0, MATRIX)->dtype = XPH_DTYPE_F16;
    put_together(p, EXPHIL_E_FORMAT, "weights: tensor \"" MATRIX "\" is F16, the model is BF16");
}

/* Exchanges the first occurrence of from in the configuration; `to` is not longer. */
static void edit(parts *p, const char *from, const char *to)
{
    char *at = strstr(p->text, from);
    assert_non_null(at);
    assert_true(strlen(to) <= strlen(from));
    memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
    memcpy(at, to, strlen(to));
}

static void words_and_tensors_must_agree(void **state)
{
    (void)state;
    parts *p = take_apart(EXPHIL_TYPE_I8);
    edit(p, ",\"weights\":\"I8\"", "");
    put_together(p, EXPHIL_E_FORMAT, "tensor \"input.weight\" is BF16, the model is F32");
    p = take_apart(EXPHIL_TYPE_BF16);
    edit(p, "\"BF16\"", "\"I8\"");
    put_together(p, EXPHIL_E_FORMAT, "tensor \"blocks.0.weight_ih\" is BF16, the model is I8");
    p = take_apart(EXPHIL_TYPE_BF16);
    edit(p, "\"BF16\"", "\"F32\"");
    put_together(p, EXPHIL_E_FORMAT, "weights: exphil.model: weights is an unknown word");
    p = take_apart(EXPHIL_TYPE_BF16);
    edit(p, "\"F32\"", "\"F64\"");
    put_together(p, EXPHIL_E_FORMAT, "weights: exphil.model: weights needs type F32");
    p = take_apart(EXPHIL_TYPE_BF16);
    edit(p, "\"weights\"", "\"weight\"");
    put_together(p, EXPHIL_E_FORMAT, "the whole has other fields than this version knows");
}

/* ---- calibration --------------------------------------------------------------------------------------- */

static exphil_comparison some_comparison(void)
{
    exphil_comparison c = EXPHIL_COMPARISON_INIT;
    c.reference_hash = 0x0123456789ABCDEF;
    c.content_hash = UINT64_MAX;
    c.frames = 1000;
    c.heads = 3;
    c.max_error = 0.1;
    c.rms_error = 1.0 / 3.0;
    c.kl = 1e-300;
    c.agreement = 0.999;
    for (int h = 0; h < 3; h++) c.head[h] = (exphil_head_comparison){0.1 * h, 1e-7 * h, 0.0, 1.0};
    return c;
}

static void calibration_stays_with_the_model(void **state)
{
    (void)state;
    exphil_model *quantized = small(EXPHIL_TYPE_I8);
    exphil_comparison given = some_comparison(), got = EXPHIL_COMPARISON_INIT;
    exphil_error e = EXPHIL_ERROR_INIT;
    given.head[9].kl = 77; /* beyond heads: not of this model */
    refused(exphil_model_calibration_get(quantized, &got, &e), EXPHIL_E_STATE, &e, "not been calibrated");
    assert_ok(exphil_model_calibration_set(quantized, &given, NULL));
    given.head[9].kl = 0;
    assert_ok(exphil_model_calibration_get(quantized, &got, NULL));
    assert_memory_equal(&given, &got, sizeof got);
    assert_ok(exphil_model_save(quantized, test_path("one"), NULL));
    exphil_model *loaded = load(test_path("one"));
    got = (exphil_comparison)EXPHIL_COMPARISON_INIT;
    assert_int_equal(info_of(loaded).calibrated, 1);
    assert_ok(exphil_model_calibration_get(loaded, &got, NULL));
    assert_memory_equal(&given, &got, sizeof got);
    assert_ok(exphil_model_save(loaded, test_path("two"), NULL));
    assert_same_file(test_path("one"), test_path("two"));
    exphil_session *session = play_session(loaded, NULL);
    refused(exphil_model_calibration_set(loaded, &given, &e), EXPHIL_E_STATE, &e, "in use");
    exphil_session_destroy(session);
    assert_ok(exphil_model_calibration_set(loaded, &given, NULL));
    exphil_model_destroy(loaded);
    exphil_model_destroy(quantized);
}

static void impossible_comparisons_are_refused(void **state)
{
    (void)state;
    exphil_model *quantized = small(EXPHIL_TYPE_BF16), *model = plain("gru");
    exphil_error e = EXPHIL_ERROR_INIT;
    exphil_comparison good = some_comparison(), bad;
    refused(exphil_model_calibration_set(model, &good, &e), EXPHIL_E_STATE, &e, "not quantised");
#define WRONG(field, value, says)                                                                            \
  do {                                                                                                       \
    bad = good;                                                                                              \
    bad.field = (value);                                                                                     \
    refused(exphil_model_calibration_set(quantized, &bad, &e), EXPHIL_E_INVALID, &e, says);                  \
  } while (0)
    WRONG(frames, 0, "frames");
    WRONG(frames, -1, "frames");
    WRONG(frames, INT64_MAX, "frames");
    WRONG(heads, 2, "heads is 2, the model has 3");
    WRONG(heads, INT64_MIN, "heads is");
    WRONG(max_error, -1, "comparison: max_error");
    WRONG(max_error, NAN, "comparison: max_error");
    WRONG(rms_error, INFINITY, "comparison: rms_error");
    WRONG(kl, -1e-9, "comparison: kl");
    WRONG(agreement, 1.5, "comparison: agreement");
    WRONG(head[2].agreement, NAN, "comparison.head[02]: agreement");
    WRONG(head[0].max_error, INFINITY, "comparison.head[00]: max_error");
    WRONG(head[1].rms_error, -1, "comparison.head[01]: rms_error");
    WRONG(head[1].kl, NAN, "comparison.head[01]: kl");
    assert_int_equal(info_of(quantized).calibrated, 0);
    exphil_model_destroy(model);
    exphil_model_destroy(quantized);
}

/* The good text with one thing exchanged. */
static void load_report(const char *from, const char *to, exphil_status want, const char *says)
{
    static const char text[] =
        "{\"reference\":\"0123456789abcdef\",\"data\":\"0000000000000001\",\"frames\":10,\"max_error\":1,"
        "\"rms_error\":0.5,\"kl\":0.25,\"agreement\":1,\"heads\":[{\"name\":\"buttons\",\"max_error\":1,"
        "\"rms_error\":0.5,\"kl\":0.25,\"agreement\":1},{\"name\":\"stick\",\"max_error\":1,\"rms_error\":0."
        "5,"
        "\"kl\":0.25,\"agreement\":1},{\"name\":\"trigger\",\"max_error\":1,\"rms_error\":0.5,\"kl\":0.25,"
        "\"agreement\":1}]}";
    char changed[2048];
    const char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    parts *p = take_apart(EXPHIL_TYPE_I8);
    p->pair[p->pairs++] = (xph_pair){"exphil.calibration", changed};
    put_together(p, want, says);
}

static void damaged_reports_are_refused(void **state)
{
    (void)state;
    load_report("{", "{", EXPHIL_OK, "");
    load_report("\"frames\":10", "\"frames\":0", EXPHIL_E_FORMAT, "exphil.calibration: frames is 0");
    load_report("\"frames\":10", "\"frames\":1.5", EXPHIL_E_FORMAT, "exphil.calibration: frames");
    load_report("\"frames\":10,", "", EXPHIL_E_FORMAT, "exphil.calibration: the whole has other fields");
    load_report("\"kl\":0.25", "\"kl\":-1", EXPHIL_E_FORMAT,
                "exphil.calibration: comparison: kl is out of range");
    load_report("\"kl\":0.25", "\"kl\":\"x\"", EXPHIL_E_FORMAT, "exphil.calibration: kl is no number");
    load_report("\"kl\":0.25", "\"kl\":1e999", EXPHIL_E_FORMAT, "exphil.calibration: kl");
    load_report("\"stick\"", "\"stock\"", EXPHIL_E_FORMAT, "heads[1].name is not the name of that head");
    load_report("{\"name\":\"buttons\",\"max_error\":1,\"rms_error\":0.5,\"kl\":0.25,\"agreement\":1},", "",
                EXPHIL_E_FORMAT, "heads has not as many items");
    load_report("\"agreement\":1}]}", "\"agreement\":2}]}", EXPHIL_E_FORMAT,
                "comparison.head[02]: agreement");
    load_report("{\"reference\"", "[\"reference\"", EXPHIL_E_FORMAT, "exphil.calibration, byte");
    load_report("0123456789abcdef", "0123456789abcdeF", EXPHIL_E_FORMAT, "reference");
    parts *p = take_apart(EXPHIL_TYPE_I8);
    p->pair[p->pairs++] = (xph_pair){"exphil.calibration", "{}"};
    p->pair[p->pairs++] = (xph_pair){"exphil.calibration_xxh64", "0000000000000000"};
    put_together(p, EXPHIL_E_FORMAT, "weights: exphil.calibration is damaged: checksum ");
}

/* ---- every byte ---------------------------------------------------------------------------------------- */

static exphil_status load_copy(const char *file, size_t bytes, exphil_error *error)
{
    exphil_model *model = NULL;
    char *copy = malloc(bytes ? bytes : 1);
    memcpy(copy, file, bytes);
    exphil_status status = exphil_model_load_memory(context, copy, bytes, &model, error);
    free(copy);
    exphil_model_destroy(model);
    return status;
}

static void every_prefix_and_flip(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        exphil_model *quantized = small(types[t]);
        exphil_comparison comparison = some_comparison();
        size_t bytes, loaded = 0;
        assert_ok(exphil_model_calibration_set(quantized, &comparison, NULL));
        assert_ok(exphil_model_save(quantized, test_path("damage"), NULL));
        exphil_model_destroy(quantized);
        char *file = test_read(test_path("damage"), &bytes);
        for (size_t length = 0; length < bytes; length++) {
            exphil_error error = EXPHIL_ERROR_INIT;
            assert_int_equal(load_copy(file, length, &error), EXPHIL_E_FORMAT);
            assert_true(error.message[0] != '\0');
        }
        for (size_t bit = 0; bit < 8 * bytes; bit++) {
            exphil_error error = EXPHIL_ERROR_INIT;
            file[bit / 8] = (char)(file[bit / 8] ^ (1 << bit % 8));
            exphil_status status = load_copy(file, bytes, &error);
            file[bit / 8] = (char)(file[bit / 8] ^ (1 << bit % 8));
            loaded += status == EXPHIL_OK;
            assert_true(status == EXPHIL_OK || status == EXPHIL_E_FORMAT || status == EXPHIL_E_MISMATCH);
            assert_true(status == EXPHIL_OK || (status == error.status && error.message[0]));
        }
        /* The spelling of keys that may be absent, and digits of the counters. */
        print_message("%zu bytes: %zu of %zu flips load\n", bytes, loaded, 8 * bytes);
        assert_in_range(loaded, 1, bytes);
        free(file);
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
        cmocka_unit_test(damaged_scales_are_refused),
        cmocka_unit_test(damaged_matrices_are_refused),
        cmocka_unit_test(words_and_tensors_must_agree),
        cmocka_unit_test(calibration_stays_with_the_model),
        cmocka_unit_test(impossible_comparisons_are_refused),
        cmocka_unit_test(damaged_reports_are_refused),
        cmocka_unit_test(every_prefix_and_flip),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
