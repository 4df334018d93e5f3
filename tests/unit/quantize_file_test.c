/* Files of models with weights of fewer bits: a damaged one is refused by tensor and element; the calibration in them. */
#include "quantize_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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
    exphil_model *model = model_case_create(quantize_context, &config),
                 *quantized = quantize_rounded(model, type);
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
    assert_ok(xph_tensors_parse(quantize_context, p->file, bytes, "t", &p->tensors, NULL));
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
    xph_file_writer writer = {.context = quantize_context};
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_ok(
        xph_tensors_write(quantize_context, p->array, p->count, p->pair, p->pairs, path, &writer, NULL));
    assert_ok(xph_file_commit(&writer, NULL));
    exphil_status status = exphil_model_load(quantize_context, path, &model, &error);
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
    exphil_model *quantized = small(EXPHIL_TYPE_I8);
    exphil_comparison given = some_comparison(), got = EXPHIL_COMPARISON_INIT;
    exphil_error e = EXPHIL_ERROR_INIT;
    given.head[9].kl = 77; /* beyond heads: not of this model */
    quantize_refused(exphil_model_calibration_get(quantized, &got, &e), EXPHIL_E_STATE, &e,
                     "not been calibrated");
    assert_ok(exphil_model_calibration_set(quantized, &given, NULL));
    given.head[9].kl = 0;
    assert_ok(exphil_model_calibration_get(quantized, &got, NULL));
    assert_memory_equal(&given, &got, sizeof got);
    assert_ok(exphil_model_save(quantized, test_path("one"), NULL));
    exphil_model *loaded = quantize_load(test_path("one"));
    got = (exphil_comparison)EXPHIL_COMPARISON_INIT;
    assert_int_equal(quantize_info(loaded).calibrated, 1);
    assert_ok(exphil_model_calibration_get(loaded, &got, NULL));
    assert_memory_equal(&given, &got, sizeof got);
    assert_ok(exphil_model_save(loaded, test_path("two"), NULL));
    assert_same_file(test_path("one"), test_path("two"));
    exphil_session *session = play_session(loaded, NULL);
    quantize_refused(exphil_model_calibration_set(loaded, &given, &e), EXPHIL_E_STATE, &e, "in use");
    exphil_session_destroy(session);
    assert_ok(exphil_model_calibration_set(loaded, &given, NULL));
    exphil_model_destroy(loaded);
    exphil_model_destroy(quantized);
}

static void impossible_comparisons_are_refused(void **state)
{
    exphil_model *quantized = small(EXPHIL_TYPE_BF16), *model = quantize_plain("gru");
    exphil_error e = EXPHIL_ERROR_INIT;
    exphil_comparison good = some_comparison(), bad;
    quantize_refused(exphil_model_calibration_set(model, &good, &e), EXPHIL_E_STATE, &e, "not quantised");
#define WRONG(field, value, says)                                                                            \
  do {                                                                                                       \
    bad = good;                                                                                              \
    bad.field = (value);                                                                                     \
    quantize_refused(exphil_model_calibration_set(quantized, &bad, &e), EXPHIL_E_INVALID, &e, says);         \
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
    assert_int_equal(quantize_info(quantized).calibrated, 0);
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

static void every_prefix_and_flip(void **state)
{
    for (int t = 0; t < 2; t++) {
        exphil_model *quantized = small(quantize_types[t]);
        exphil_comparison comparison = some_comparison();
        assert_ok(exphil_model_calibration_set(quantized, &comparison, NULL));
        assert_ok(exphil_model_save(quantized, test_path("damage"), NULL));
        exphil_model_destroy(quantized);
        model_case_damage(quantize_context, test_path("damage"), EXPHIL_E_MISMATCH);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_scales_are_refused),
        cmocka_unit_test(damaged_matrices_are_refused),
        cmocka_unit_test(words_and_tensors_must_agree),
        cmocka_unit_test(calibration_stays_with_the_model),
        cmocka_unit_test(impossible_comparisons_are_refused),
        cmocka_unit_test(damaged_reports_are_refused),
        cmocka_unit_test(every_prefix_and_flip),
    };
    return cmocka_run_group_tests(tests, quantize_begin, quantize_end);
}
