/* Weights files: safetensors with the configuration among the metadata. The data is read only after the
 * header has been found to fit the model; everything is checked before a model is returned. */
#include "model/calibration.h"
#include "model/model_text.h"
#include "model/stored.h"

#include <inttypes.h>
#include <stdio.h>

#define FORMAT_KEY  "exphil.format"
#define MODEL_KEY   "exphil.model"
#define SUM_KEY     "exphil.model_xxh64"
#define UPDATES_KEY "exphil.trained_updates"
#define FRAMES_KEY  "exphil.trained_frames"
#define FORMAT      "1" /* another one when readers of this one would misunderstand */
#define REPORT_KEY  "exphil.calibration"
#define REPORT_SUM  "exphil.calibration_xxh64"
#define NOTES_KEY   "exphil.notes"
#define NOTES_SUM   "exphil.notes_xxh64"
#define OWN_MOST    9
#define LABEL       "weights"

/* ---- writing ------------------------------------------------------------------------------------------- */

/* The pairs that are this library's own, and the texts they point to. */
typedef struct own_pairs {
    xph_pair pair[OWN_MOST];
    int64_t count;
    char updates[24], frames[24], sum[XPH_HEX_TEXT], report_sum[XPH_HEX_TEXT], notes_sum[XPH_HEX_TEXT];
    xph_json_out model, report;
} own_pairs;

static void add_pair(own_pairs *own, const char *key, const char *value)
{
    own->pair[own->count++] = (xph_pair){key, value};
}

/* Texts of the model, of its notes and of its calibration, each with its checksum. */
static exphil_status make_own(const exphil_model *model, const xph_trained *trained, own_pairs *own,
                              exphil_error *error)
{
    const char *notes = trained->notes;
    snprintf(own->updates, sizeof own->updates, "%" PRIu64, trained->updates);
    snprintf(own->frames, sizeof own->frames, "%" PRIu64, trained->frames);
    xph_json_begin(&own->report, model->context);
    xph_json_begin(&own->model, model->context);
    xph_model_text_write(model, &own->model);
    XPH_TRY(xph_json_end(&own->model, error));
    add_pair(own, FORMAT_KEY, FORMAT);
    add_pair(own, MODEL_KEY, own->model.text);
    add_pair(own, SUM_KEY, xph_hex_text(own->sum, xph_hash(own->model.text, own->model.bytes)));
    add_pair(own, UPDATES_KEY, own->updates);
    add_pair(own, FRAMES_KEY, own->frames);
    if (notes) {
        add_pair(own, NOTES_KEY, notes);
        add_pair(own, NOTES_SUM, xph_hex_text(own->notes_sum, xph_hash(notes, strlen(notes))));
    }
    if (!model->calibrated) return EXPHIL_OK;
    xph_calibration_write(model, &own->report);
    XPH_TRY(xph_json_end(&own->report, error));
    add_pair(own, REPORT_KEY, own->report.text);
    add_pair(own, REPORT_SUM, xph_hex_text(own->report_sum, xph_hash(own->report.text, own->report.bytes)));
    return EXPHIL_OK;
}

/* Own pairs, then the caller's. */
static exphil_status write_arrays(const exphil_model *model, const xph_stored *stored, const own_pairs *own,
                                  const xph_pair *extra, int64_t extra_count, const char *path,
                                  xph_file_writer *writer, exphil_error *error)
{
    size_t bytes;
    if (extra_count < 0 || !xph_size_mul((size_t)extra_count + OWN_MOST, sizeof(xph_pair), &bytes)) {
        return xph_fail(error, EXPHIL_E_INVALID, "extra_count is %" PRId64, extra_count);
    }
    xph_pair *pairs = xph_alloc(model->context, bytes);
    if (!pairs) return xph_no_memory(bytes, error);
    memcpy(pairs, own->pair, (size_t)own->count * sizeof *pairs);
    if (extra_count) memcpy(pairs + own->count, extra, (size_t)extra_count * sizeof *extra);
    exphil_status status = xph_tensors_write(model->context, stored->array, stored->count, pairs,
                                             own->count + extra_count, path, writer, error);
    xph_free(model->context, pairs, bytes);
    return status;
}

static exphil_status write_host(const exphil_model *model, const void *host, const xph_trained *trained,
                                const xph_pair *extra, int64_t extra_count, const char *path,
                                xph_file_writer *writer, exphil_error *error)
{
    own_pairs own = {.count = 0};
    xph_stored stored;
    exphil_status status = xph_stored_make(model, host, &stored, error);
    if (status >= 0) {
        status = make_own(model, trained, &own, error);
        if (status >= 0) status = write_arrays(model, &stored, &own, extra, extra_count, path, writer, error);
        xph_json_drop(&own.model);
        xph_json_drop(&own.report);
    }
    xph_stored_free(&stored);
    return status;
}

size_t xph_model_write_bytes(const exphil_model *model)
{
    return (size_t)model->shape.weights * model->shape.real_bytes;
}

exphil_status xph_model_write(const exphil_model *model, const void *weights, const xph_trained *trained,
                              const xph_pair *extra, int64_t extra_count, const char *path,
                              xph_file_writer *writer, exphil_error *error)
{
    size_t bytes = xph_model_write_bytes(model);
    void *host = xph_alloc(model->context, bytes);
    if (!host) return xph_no_memory(bytes, error);
    exphil_status status = xph_model_pull(model, weights, 0, model->shape.weights, host, error);
    if (status >= 0) {
        status = write_host(model, host, trained, extra, extra_count, path, writer, error);
    }
    xph_free(model->context, host, bytes);
    return status;
}

exphil_status exphil_model_save(const exphil_model *model, const char *path, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_model_check(model, error));
    xph_file_writer writer = {.context = model->context};
    const xph_trained trained = {model->updates, model->frames, model->notes.text};
    XPH_TRY(xph_model_write(model, NULL, &trained, NULL, 0, path, &writer, error));
    return xph_file_commit(&writer, error);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* A decimal number of 64 bits, written as this library writes it. Absent: 0, for files made elsewhere. */
static exphil_status read_counter(const xph_tensors *file, const char *key, uint64_t *value,
                                  exphil_error *error)
{
    const char *text = xph_tensors_metadata(file, key);
    uint64_t sum = 0;
    bool good = !text || (*text && (*text != '0' || !text[1]));
    for (const char *c = text; c && *c && good; c++) {
        uint64_t digit = (uint64_t)(unsigned char)*c - '0';
        good = digit <= 9 && sum <= (UINT64_MAX - digit) / 10;
        if (good) sum = sum * 10 + digit;
    }
    if (!good)
        return xph_fail(error, EXPHIL_E_FORMAT, LABEL ": __metadata__.%s is no number of 64 bits", key);
    *value = sum;
    return EXPHIL_OK;
}

/* A Melee layout may have changed its meaning since the file was written: then its weights are of no use. */
static exphil_status check_layout(const exphil_spec *spec, exphil_error *error)
{
    exphil_spec known = EXPHIL_SPEC_INIT;
    if (exphil_melee_spec(spec->layout, spec->codec, &known, NULL) < 0) return EXPHIL_OK;
    if (known.layout_hash == spec->layout_hash) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH,
                    LABEL ": made for layout %s with hash %016" PRIx64 ", which is %016" PRIx64
                          " in this library",
                    spec->layout, spec->layout_hash, known.layout_hash);
}

/* XXH64 of a text, for what its grammar cannot show; absent in files made elsewhere. */
static exphil_status check_text(const xph_tensors *file, const char *key, const char *sum_key,
                                const char *text, exphil_error *error)
{
    uint64_t expected, found = xph_hash(text, strlen(text));
    const char *sum = xph_tensors_metadata(file, sum_key);
    if (!sum) return EXPHIL_OK;
    if (xph_hex_value(sum, &expected) && xph_hash_equal(found, expected)) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_FORMAT, LABEL ": %s is damaged: checksum %016" PRIx64 ", %.16s expected",
                    key, found, sum);
}

/* Of a quantised model only: elsewhere the key is one of others. */
static exphil_status read_calibration(exphil_model *model, const xph_tensors *file, exphil_error *error)
{
    const char *text = xph_tensors_metadata(file, REPORT_KEY);
    xph_json *json;
    if (!text || !model->shape.narrow) return EXPHIL_OK;
    XPH_TRY(check_text(file, REPORT_KEY, REPORT_SUM, text, error));
    XPH_TRY(xph_json_parse(model->context, text, strlen(text), LABEL ": " REPORT_KEY, 0, &json, error));
    exphil_status status = xph_calibration_read(model, json, error);
    xph_json_free(json);
    return status == EXPHIL_E_INVALID ? xph_fail_within(error, EXPHIL_E_FORMAT, LABEL ": " REPORT_KEY)
                                      : status;
}

static exphil_status read_notes(exphil_model *model, const xph_tensors *file, exphil_error *error)
{
    const char *text = xph_tensors_metadata(file, NOTES_KEY);
    if (!text) return EXPHIL_OK;
    XPH_TRY(check_text(file, NOTES_KEY, NOTES_SUM, text, error));
    exphil_status status = xph_model_take_notes(model, text, error);
    return status == EXPHIL_E_INVALID ? xph_fail_within(error, EXPHIL_E_FORMAT, LABEL ": " NOTES_KEY)
                                      : status;
}

/* Bytes of the largest tensor as reals: a buffer for what a file holds in fewer bits. */
static size_t largest_bytes(const exphil_model *model)
{
    int64_t most = 1;
    for (int64_t i = 0; i < model->tensor_count; i++) {
        int64_t count = xph_model_param(model, i)->count;
        if (xph_model_narrow(model, i) && count > most) most = count;
    }
    return (size_t)most * model->shape.real_bytes;
}

static exphil_status push_all(exphil_model *model, const xph_tensors *file, void *buffer, exphil_error *error)
{
    for (int64_t i = 0; i < model->tensor_count; i++) {
        const xph_param *param = xph_model_param(model, i);
        if (xph_cancelled(model->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        const void *values = xph_stored_values(model, i, file, buffer);
        XPH_TRY(xph_model_push(model, param->offset, param->count, values, error));
    }
    return EXPHIL_OK;
}

static exphil_status fill(exphil_model *model, xph_tensors *file, exphil_error *error)
{
    XPH_TRY(xph_stored_check_shapes(model, file, error));
    XPH_TRY(xph_tensors_load(file, error));
    XPH_TRY(xph_stored_check_values(model, file, error));
    XPH_TRY(xph_model_zero(model, error));
    size_t bytes = largest_bytes(model);
    void *buffer = xph_alloc(model->context, bytes);
    if (!buffer) return xph_no_memory(bytes, error);
    exphil_status status = push_all(model, file, buffer, error);
    xph_free(model->context, buffer, bytes);
    XPH_TRY(status);
    XPH_TRY(read_counter(file, UPDATES_KEY, &model->updates, error));
    XPH_TRY(read_counter(file, FRAMES_KEY, &model->frames, error));
    XPH_TRY(read_notes(model, file, error));
    return read_calibration(model, file, error);
}

static exphil_status build(exphil_context *context, xph_tensors *file, const xph_json *json,
                           exphil_model **model, exphil_error *error)
{
    xph_model_text text;
    exphil_model *made;
    XPH_TRY(xph_model_text_read(json, &text, error));
    XPH_TRY(check_layout(&text.spec, error));
    exphil_status status = xph_model_outline(context, &text.config, text.narrow, &made, error);
    /* What would be a wrong argument from a caller is wrong content in a file. */
    if (status == EXPHIL_E_INVALID) return xph_fail_within(error, EXPHIL_E_FORMAT, LABEL ": " MODEL_KEY);
    if (status < 0) return status;
    status = fill(made, file, error);
    if (status < 0) {
        exphil_model_destroy(made);
        return status;
    }
    *model = made;
    return EXPHIL_OK;
}

static exphil_status read_model(exphil_context *context, xph_tensors *file, exphil_model **model,
                                exphil_error *error)
{
    const char *format = xph_tensors_metadata(file, FORMAT_KEY),
               *text = xph_tensors_metadata(file, MODEL_KEY);
    if (!format || !text) {
        return xph_fail(error, EXPHIL_E_FORMAT,
                        LABEL ": __metadata__.%s is missing: these are not the weights of a libexphil model",
                        format ? MODEL_KEY : FORMAT_KEY);
    }
    if (strcmp(format, FORMAT) != 0) {
        return xph_fail(error, EXPHIL_E_FORMAT,
                        LABEL ": " FORMAT_KEY " is \"%s\", this library reads \"" FORMAT "\"", format);
    }
    XPH_TRY(check_text(file, MODEL_KEY, SUM_KEY, text, error));
    xph_json *json;
    XPH_TRY(xph_json_parse(context, text, strlen(text), LABEL ": " MODEL_KEY, 0, &json, error));
    exphil_status status = build(context, file, json, model, error);
    xph_json_free(json);
    return status;
}

static exphil_status load(exphil_context *context, xph_tensors *file, exphil_model **model,
                          exphil_error *error)
{
    exphil_status status = read_model(context, file, model, error);
    xph_tensors_free(file);
    return status;
}

exphil_status exphil_model_load_memory(exphil_context *context, const void *data, size_t size_bytes,
                                       exphil_model **model, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_context_check(context, error));
    if (!data) return xph_fail(error, EXPHIL_E_INVALID, "data is NULL");
    if (!model) return xph_fail(error, EXPHIL_E_INVALID, "model is NULL");
    xph_tensors file;
    XPH_TRY(xph_tensors_parse(context, data, size_bytes, LABEL, &file, error));
    return load(context, &file, model, error);
}

exphil_status exphil_model_load(exphil_context *context, const char *path, exphil_model **model,
                                exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_context_check(context, error));
    if (!model) return xph_fail(error, EXPHIL_E_INVALID, "model is NULL");
    xph_tensors file;
    exphil_status status = xph_tensors_open(context, path, LABEL, &file, error);
    if (status == EXPHIL_E_IO || status == EXPHIL_E_INVALID) return status; /* says the path already */
    if (status >= 0) status = load(context, &file, model, error);
    return status < 0 ? xph_fail_within(error, status, "\"%s\"", path) : EXPHIL_OK;
}
