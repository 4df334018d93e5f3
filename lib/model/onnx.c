/* Models as ONNX files (doc/onnx.md): the graph of a step is made first, without weights, so that its size is known; then
 * the file is written, what describes it in front of the weights. */
#include "model/layer.h"
#include "model/model_text.h"
#include "model/onnx_graph.h"
#include "model/stored.h"

#include <inttypes.h>
#include <stdio.h>

#define IR_VERSION 8
#define OPSET      17
#define MOST_BYTES ((uint64_t)INT32_MAX) /* of a message, by Protocol Buffers */
#define CUT_BYTES  65536                 /* of a matrix, turned at once */

enum {
    MODEL_IR = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_META = 14
};
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2, META_KEY = 1, META_VALUE = 2 };

/* ---- what stands in front of the graph ------------------------------------------------------------------- */

static void add_meta(xph_proto_out *out, const char *key, const char *value)
{
    size_t meta = xph_proto_open(out, MODEL_META);
    xph_proto_add_text(out, META_KEY, key);
    xph_proto_add_text(out, META_VALUE, value);
    xph_proto_close(out, meta, 0);
}

static bool write_model(const exphil_model *model, xph_json_out *out)
{
    xph_model_text_write(model, out);
    return true;
}

/* A text of JSON, where there is one. */
static exphil_status add_json(const exphil_model *model, xph_proto_out *out, const char *key,
                              bool (*write)(const exphil_model *, xph_json_out *), exphil_error *error)
{
    xph_json_out text;
    xph_json_begin(&text, model->context);
    bool any = write(model, &text);
    exphil_status status = xph_json_end(&text, error);
    if (status >= 0 && any) add_meta(out, key, text.text);
    xph_json_drop(&text);
    return status;
}

static exphil_status add_front(const exphil_model *model, xph_proto_out *out, exphil_error *error)
{
    char number[24];
    xph_proto_add_int(out, MODEL_IR, IR_VERSION);
    xph_proto_add_text(out, MODEL_PRODUCER, "libexphil");
    /* exphil_version_string also names the kernels of this processor. */
    (void)snprintf(number, sizeof number, "%d.%d.%d", EXPHIL_VERSION_MAJOR, EXPHIL_VERSION_MINOR,
                   EXPHIL_VERSION_PATCH);
    xph_proto_add_text(out, MODEL_PRODUCER_VERSION, number);
    size_t opset = xph_proto_open(out, MODEL_OPSET);
    xph_proto_add_text(out, OPSET_DOMAIN, "");
    xph_proto_add_int(out, OPSET_VERSION, OPSET);
    xph_proto_close(out, opset, 0);
    XPH_TRY(add_json(model, out, "exphil.model", write_model, error));
    XPH_TRY(add_json(model, out, "exphil.layout", xph_onnx_layout, error));
    XPH_TRY(add_json(model, out, "exphil.codec", xph_onnx_codec, error));
    snprintf(number, sizeof number, "%" PRIu64, model->updates);
    add_meta(out, "exphil.trained_updates", number);
    snprintf(number, sizeof number, "%" PRIu64, model->frames);
    add_meta(out, "exphil.trained_frames", number);
    return EXPHIL_OK;
}

/* The graph is a field, too: its length is known. */
static exphil_status make_front(const exphil_model *model, const xph_onnx *g, xph_proto_out *out,
                                exphil_error *error)
{
    xph_proto_begin(out, model->context);
    exphil_status status = add_front(model, out, error);
    if (status >= 0) xph_proto_add_length(out, MODEL_GRAPH, g->body.bytes + g->heads.bytes + g->weight_bytes);
    if (status >= 0) status = xph_proto_end(out, error);
    const uint64_t bytes = (uint64_t)out->bytes + g->body.bytes + g->heads.bytes + g->weight_bytes;
    if (status < 0 || bytes <= MOST_BYTES) return status;
    return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                    "ONNX: the file would have %" PRIu64 " bytes, and such a message has at most %" PRIu64,
                    bytes, MOST_BYTES);
}

/* ---- weights ------------------------------------------------------------------------------------------- */

static const xph_array *stored_array(const xph_stored *stored, const xph_param *param, int32_t scale)
{
    for (int64_t i = 0; i < stored->count; i++)
        if (strcmp(stored->array[i].name, param->name) == 0)
            return &stored->array[i + scale]; /* its scales follow */
    return NULL;
}

/* [out,in] as [in,out] and as bytes about 128, some columns at a time. */
static exphil_status add_turned(const exphil_model *model, const xph_array *array, xph_file_writer *writer,
                                exphil_error *error)
{
    const int8_t *from = array->data;
    const int64_t out = array->dim[0], in = array->dim[1], most = out < CUT_BYTES ? CUT_BYTES / out : 1;
    const size_t bytes = (size_t)(out * most);
    uint8_t *to = xph_alloc(model->context, bytes);
    exphil_status status = to ? EXPHIL_OK : xph_no_memory(bytes, error);
    for (int64_t first = 0; status >= 0 && first < in; first += most) {
        const int64_t count = in - first < most ? in - first : most;
        for (int64_t o = 0; o < out; o++)
            for (int64_t k = 0; k < count; k++) to[k * out + o] = (uint8_t)(from[o * in + first + k] + 128);
        status = xph_file_add(writer, to, (size_t)(count * out), error);
    }
    xph_free(model->context, to, bytes);
    return status;
}

static exphil_status add_weight(const xph_onnx *g, const xph_onnx_weight *weight, const xph_stored *stored,
                                xph_file_writer *writer, exphil_error *error)
{
    const xph_param *param = xph_model_param(g->model, weight->index);
    const xph_array *array = stored_array(stored, param, weight->scale);
    if (!array) return xph_fail(error, EXPHIL_E_INTERNAL, "ONNX: no tensor \"%s\"", param->name);
    XPH_TRY(xph_file_add(writer, g->heads.data + weight->head_at, weight->head_bytes, error));
    if (weight->turned) return add_turned(g->model, array, writer, error);
    const size_t each = array->bytes / (size_t)array->dim[0];
    return xph_file_add(writer, (const unsigned char *)array->data + (size_t)weight->first * each,
                        weight->bytes, error);
}

static exphil_status write_file(const xph_onnx *g, const xph_proto_out *front, const xph_stored *stored,
                                const char *path, exphil_error *error)
{
    xph_file_writer writer = {.context = g->model->context};
    XPH_TRY(xph_file_begin(g->model->context, path, &writer, error));
    exphil_status status = xph_file_add(&writer, front->data, front->bytes, error);
    if (status >= 0) status = xph_file_add(&writer, g->body.data, g->body.bytes, error);
    for (int64_t i = 0; status >= 0 && i < g->weights; i++)
        status = add_weight(g, &g->weight[i], stored, &writer, error);
    if (status >= 0) return xph_file_commit(&writer, error);
    xph_file_cancel(&writer);
    return status;
}

static exphil_status write_weights(const xph_onnx *g, const xph_proto_out *front, const char *path,
                                   exphil_error *error)
{
    const exphil_model *model = g->model;
    const size_t bytes = (size_t)model->shape.weights * model->shape.real_bytes;
    void *host = xph_alloc(model->context, bytes);
    if (!host) return xph_no_memory(bytes, error);
    exphil_status status = xph_model_pull(model, NULL, 0, model->shape.weights, host, error);
    if (status >= 0) {
        xph_stored stored;
        status = xph_stored_make(model, host, &stored, error);
        if (status >= 0) status = write_file(g, front, &stored, path, error);
        xph_stored_free(&stored);
    }
    xph_free(model->context, host, bytes);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------------------ */

static exphil_status check_model(const exphil_model *model, exphil_error *error)
{
    if (model->shape.type != XPH_F32)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "ONNX: the model is of %s, a step is exported in floats",
                        xph_type_word(model->config.type));
    if (model->shape.mode == EXPHIL_MODE_WINDOW)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "ONNX: the model is of mode window, which has no step of one frame");
    return EXPHIL_OK;
}

/* Whatever a model has must be in its graph, but for what the value of an only head would add. */
static void check_whole(xph_onnx *g)
{
    for (int64_t i = 0; i < g->model->tensor_count && g->status >= 0; i++) {
        const char *name = xph_model_param(g->model, i)->name;
        int64_t at = 0;
        while (at < g->weights && g->weight[at].index != i) at++;
        if (at < g->weights || (g->model->shape.heads == 1 && strcmp(name, "heads.embed") == 0)) continue;
        xph_onnx_refuse(g, "tensor \"%s\" has no form there", name);
    }
}

static exphil_status make_graph(xph_onnx *g, const exphil_model *model, exphil_error *error)
{
    xph_onnx_row row;
    xph_onnx_begin(g, model, error);
    xph_onnx_value x = xph_onnx_enter(g, &row);
    x = xph_onnx_blocks(g, x);
    xph_onnx_heads(g, x, &row);
    check_whole(g);
    return xph_onnx_end(g);
}

exphil_status exphil_model_export_onnx(const exphil_model *model, const char *path, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_model_check(model, error));
    if (!path || !*path) return xph_fail(error, EXPHIL_E_INVALID, "path is %s", path ? "empty" : "NULL");
    XPH_TRY(check_model(model, error));
    xph_onnx g;
    xph_proto_out front;
    xph_proto_begin(&front, model->context);
    exphil_status status = make_graph(&g, model, error);
    if (status >= 0) status = make_front(model, &g, &front, error);
    if (status >= 0) status = write_weights(&g, &front, path, error);
    xph_proto_drop(&front);
    xph_onnx_drop(&g);
    return status;
}
