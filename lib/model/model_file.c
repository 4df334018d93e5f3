/* Weights files: safetensors with the configuration among the metadata. A file is read whole, and
 * everything in it is checked before a model is given out. */
#include "model/model_text.h"
#include "model/tensors.h"

#include <inttypes.h>
#include <stdio.h>

#define FORMAT_KEY  "exphil.format"
#define MODEL_KEY   "exphil.model"
#define SUM_KEY     "exphil.model_xxh64"
#define UPDATES_KEY "exphil.trained_updates"
#define FRAMES_KEY  "exphil.trained_frames"
#define FORMAT      "1" /* another one when readers of this one would misunderstand */
#define OWN_PAIRS   5
#define LABEL       "weights"

/* The numbers of EXPHIL_TYPE_F32 and _F64 come first. */
static const int32_t dtype_of[] = {XPH_DTYPE_F32, XPH_DTYPE_F64};

/* ---- writing ------------------------------------------------------------------------------------------- */

static void describe(const exphil_model *model, const void *host, xph_array *arrays)
{
    for (int64_t i = 0; i < model->tensor_count; i++) {
        const xph_param *param = xph_model_param(model, i);
        xph_array *array = &arrays[i];
        *array = (xph_array){.name = param->name, .dtype = dtype_of[model->shape.type], .rank = param->rank};
        for (int32_t d = 0; d < XPH_TENSORS_RANK; d++) array->dim[d] = d < param->rank ? param->dim[d] : 1;
        array->data = (const char *)host + (size_t)param->offset * model->shape.real_bytes;
        array->bytes = (size_t)param->count * model->shape.real_bytes;
    }
}

/* Own pairs, then the caller's. */
static exphil_status write_arrays(const exphil_model *model, const xph_array *arrays, const xph_pair *own,
                                  const xph_pair *extra, int64_t extra_count, const char *path,
                                  xph_file_writer *writer, exphil_error *error)
{
    size_t bytes;
    if (extra_count < 0 || !xph_size_mul((size_t)extra_count + OWN_PAIRS, sizeof *own, &bytes)) {
        return xph_fail(error, EXPHIL_E_INVALID, "extra_count is %" PRId64, extra_count);
    }
    xph_pair *pairs = xph_alloc(model->context, bytes);
    if (!pairs) return xph_no_memory(bytes, error);
    memcpy(pairs, own, OWN_PAIRS * sizeof *own);
    if (extra_count) memcpy(pairs + OWN_PAIRS, extra, (size_t)extra_count * sizeof *extra);
    exphil_status status = xph_tensors_write(model->context, arrays, model->tensor_count, pairs,
                                             extra_count + OWN_PAIRS, path, writer, error);
    xph_free(model->context, pairs, bytes);
    return status;
}

static exphil_status write_host(const exphil_model *model, const void *host, uint64_t updates,
                                uint64_t frames, const xph_pair *extra, int64_t extra_count, const char *path,
                                xph_file_writer *writer, exphil_error *error)
{
    char updates_text[24], frames_text[24], sum_text[XPH_HEX_TEXT];
    snprintf(updates_text, sizeof updates_text, "%" PRIu64, updates);
    snprintf(frames_text, sizeof frames_text, "%" PRIu64, frames);
    xph_json_out text;
    xph_json_begin(&text, model->context);
    xph_model_text_write(model, &text);
    XPH_TRY(xph_json_end(&text, error));
    size_t bytes = (size_t)model->tensor_count * sizeof(xph_array);
    xph_array *arrays = xph_alloc(model->context, bytes);
    exphil_status status = arrays ? EXPHIL_OK : xph_no_memory(bytes, error);
    if (arrays) {
        const xph_pair own[OWN_PAIRS] = {{FORMAT_KEY, FORMAT},
                                         {MODEL_KEY, text.text},
                                         {SUM_KEY, xph_hex_text(sum_text, xph_hash(text.text, text.bytes))},
                                         {UPDATES_KEY, updates_text},
                                         {FRAMES_KEY, frames_text}};
        describe(model, host, arrays);
        status = write_arrays(model, arrays, own, extra, extra_count, path, writer, error);
    }
    xph_free(model->context, arrays, bytes);
    xph_json_drop(&text);
    return status;
}

exphil_status xph_model_write(const exphil_model *model, const void *weights, uint64_t updates,
                              uint64_t frames, const xph_pair *extra, int64_t extra_count, const char *path,
                              xph_file_writer *writer, exphil_error *error)
{
    size_t bytes = (size_t)model->shape.weights * model->shape.real_bytes;
    void *host = xph_alloc(model->context, bytes);
    if (!host) return xph_no_memory(bytes, error);
    exphil_status status = xph_model_pull(model, weights, 0, model->shape.weights, host, error);
    if (status >= 0) {
        status = write_host(model, host, updates, frames, extra, extra_count, path, writer, error);
    }
    xph_free(model->context, host, bytes);
    return status;
}

exphil_status exphil_model_save(const exphil_model *model, const char *path, exphil_error *error)
{
    if (!model) return xph_fail(error, EXPHIL_E_INVALID, "model is NULL");
    XPH_TRY(xph_context_check(model->context, error));
    xph_file_writer writer = {.context = model->context};
    XPH_TRY(xph_model_write(model, NULL, model->updates, model->frames, NULL, 0, path, &writer, error));
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

static exphil_status check_array(const exphil_model *model, const xph_param *param, const xph_array *array,
                                 exphil_error *error)
{
    if (!array) return xph_fail(error, EXPHIL_E_FORMAT, LABEL ": tensor \"%s\" is missing", param->name);
    int32_t wanted = dtype_of[model->shape.type];
    if (array->dtype != wanted) {
        return xph_fail(error, EXPHIL_E_FORMAT, LABEL ": tensor \"%s\" is %s, the model is %s", param->name,
                        xph_dtype_name(array->dtype), xph_dtype_name(wanted));
    }
    bool same = array->rank == param->rank;
    for (int32_t d = 0; same && d < param->rank; d++) same = array->dim[d] == param->dim[d];
    if (same) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_FORMAT,
                    LABEL ": tensor \"%s\" has %d dimensions [%" PRId64 ",%" PRId64
                          ",...], the model needs %d [%" PRId64 ",%" PRId64 ",...]",
                    param->name, (int)array->rank, array->dim[0], array->dim[1], (int)param->rank,
                    param->dim[0], param->rank > 1 ? param->dim[1] : 1);
}

static exphil_status check_arrays(const exphil_model *model, const xph_tensors *file, exphil_error *error)
{
    for (int64_t i = 0; i < model->tensor_count; i++) {
        const xph_param *param = xph_model_param(model, i);
        const xph_array *array = xph_tensors_find(file, param->name);
        XPH_TRY(check_array(model, param, array, error));
        int64_t bad = xph_first_bad(model->shape.type, array->data, param->count);
        if (bad >= 0) {
            return xph_fail(error, EXPHIL_E_NUMERIC,
                            LABEL ": tensor \"%s\" is not finite at element %" PRId64, param->name, bad);
        }
    }
    for (int64_t i = 0; i < file->count; i++) {
        if (xph_model_find(model, file->tensor[i].name) >= 0) continue;
        return xph_fail(error, EXPHIL_E_FORMAT, LABEL ": tensor \"%s\" is not one of the model's",
                        file->tensor[i].name);
    }
    return EXPHIL_OK;
}

static exphil_status fill(exphil_model *model, const xph_tensors *file, exphil_error *error)
{
    XPH_TRY(check_arrays(model, file, error));
    XPH_TRY(xph_model_zero(model, error));
    for (int64_t i = 0; i < model->tensor_count; i++) {
        const xph_param *param = xph_model_param(model, i);
        if (xph_cancelled(model->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        XPH_TRY(xph_model_push(model, param->offset, param->count, xph_tensors_find(file, param->name)->data,
                               error));
    }
    XPH_TRY(read_counter(file, UPDATES_KEY, &model->updates, error));
    return read_counter(file, FRAMES_KEY, &model->frames, error);
}

static exphil_status build(exphil_context *context, const xph_tensors *file, const xph_json *json,
                           exphil_model **model, exphil_error *error)
{
    xph_model_text text;
    exphil_model *made;
    XPH_TRY(xph_model_text_read(json, &text, error));
    XPH_TRY(check_layout(&text.spec, error));
    exphil_status status = xph_model_outline(context, &text.config, &made, error);
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

/* XXH64 of the configuration's text, for what its grammar cannot show; absent in files made elsewhere. */
static exphil_status check_text(const xph_tensors *file, const char *text, exphil_error *error)
{
    uint64_t expected, found = xph_hash(text, strlen(text));
    const char *sum = xph_tensors_metadata(file, SUM_KEY);
    if (!sum) return EXPHIL_OK;
    if (xph_hex_value(sum, &expected) && xph_hash_equal(found, expected)) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_FORMAT,
                    LABEL ": " MODEL_KEY " is damaged: checksum %016" PRIx64 ", %.16s expected", found, sum);
}

static exphil_status read_model(exphil_context *context, const xph_tensors *file, exphil_model **model,
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
    XPH_TRY(check_text(file, text, error));
    xph_json *json;
    XPH_TRY(xph_json_parse(context, text, strlen(text), LABEL ": " MODEL_KEY, 0, &json, error));
    exphil_status status = build(context, file, json, model, error);
    xph_json_free(json);
    return status;
}

static exphil_status load(exphil_context *context, const void *data, size_t bytes, exphil_model **model,
                          exphil_error *error)
{
    xph_tensors file;
    XPH_TRY(xph_tensors_parse(context, data, bytes, LABEL, &file, error));
    exphil_status status = read_model(context, &file, model, error);
    xph_tensors_free(&file);
    return status;
}

exphil_status exphil_model_load_memory(exphil_context *context, const void *data, size_t size_bytes,
                                       exphil_model **model, exphil_error *error)
{
    XPH_TRY(xph_context_check(context, error));
    if (!data) return xph_fail(error, EXPHIL_E_INVALID, "data is NULL");
    if (!model) return xph_fail(error, EXPHIL_E_INVALID, "model is NULL");
    return load(context, data, size_bytes, model, error);
}

/* Read, not mapped: a file that somebody shortens would take the process down with it. */
exphil_status exphil_model_load(exphil_context *context, const char *path, exphil_model **model,
                                exphil_error *error)
{
    XPH_TRY(xph_context_check(context, error));
    if (!model) return xph_fail(error, EXPHIL_E_INVALID, "model is NULL");
    xph_file_data file;
    XPH_TRY(xph_file_read(context, path, XPH_TENSORS_MOST_BYTES, false, &file, error));
    exphil_status status = load(context, file.data, file.bytes, model, error);
    xph_file_release(&file);
    return status < 0 ? xph_fail_within(error, status, "\"%s\"", path) : EXPHIL_OK;
}
