/* Values, initializers and nodes of an ONNX graph (onnx.proto of IR 8), written as they are named. Weights are not
 * copied: a graph notes where their numbers will stand. */
#include "model/onnx_graph.h"

#include <stdarg.h>
#include <stdio.h>

/* Fields of the messages. */
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_F = 2, ATTRIBUTE_I = 3, ATTRIBUTE_INTS = 8, ATTRIBUTE_TYPE = 20 };
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_INTS = 7 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, VALUE_DOC = 3 };
enum { TENSOR_TYPE_OF = 1, ELEMENT_TYPE = 1, SHAPE = 2, DIM = 1, DIM_VALUE = 1, DIM_PARAM = 2 };

void xph_onnx_begin(xph_onnx *g, const exphil_model *model, exphil_error *error)
{
    *g = (xph_onnx){.model = model, .error = error};
    xph_proto_begin(&g->body, model->context);
    xph_proto_begin(&g->heads, model->context);
    xph_proto_add_text(&g->body, GRAPH_NAME, "step");
}

exphil_status xph_onnx_end(xph_onnx *g)
{
    XPH_TRY(g->status);
    XPH_TRY(xph_proto_end(&g->body, g->error));
    return xph_proto_end(&g->heads, g->error);
}

void xph_onnx_drop(xph_onnx *g)
{
    xph_proto_drop(&g->body);
    xph_proto_drop(&g->heads);
    xph_free(g->model->context, g->weight, (size_t)g->capacity * sizeof *g->weight);
    g->weight = NULL;
    g->capacity = 0;
}

void xph_onnx_refuse(xph_onnx *g, const char *format, ...)
{
    char text[160];
    va_list args;
    if (g->status < 0) return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    g->status = xph_fail(g->error, EXPHIL_E_UNSUPPORTED, "ONNX: %s", text);
}

int64_t xph_onnx_find(xph_onnx *g, const char *name)
{
    const int64_t index = xph_model_find(g->model, name);
    if (index >= 0) return index;
    xph_onnx_refuse(g, "the heads of this model have no form there: no \"%s\"", name);
    return 0;
}

static xph_onnx_value named(const xph_onnx *g, const char *name)
{
    xph_onnx_value value;
    snprintf(value.name, sizeof value.name, "%s%s", g->prefix, name);
    return value;
}

/* ---- values of the graph ------------------------------------------------------------------------------- */

static void add_value(xph_onnx *g, int32_t field, const char *name, int32_t type, int32_t rank,
                      const int64_t *dims, const char *what)
{
    size_t value = xph_proto_open(&g->body, field);
    xph_proto_add_text(&g->body, VALUE_NAME, name);
    size_t whole = xph_proto_open(&g->body, VALUE_TYPE), tensor = xph_proto_open(&g->body, TENSOR_TYPE_OF);
    xph_proto_add_int(&g->body, ELEMENT_TYPE, type);
    size_t shape = xph_proto_open(&g->body, SHAPE);
    for (int32_t i = 0; i < rank; i++) {
        size_t dim = xph_proto_open(&g->body, DIM);
        if (dims[i] < 0)
            xph_proto_add_text(&g->body, DIM_PARAM, XPH_ONNX_BATCH);
        else
            xph_proto_add_int(&g->body, DIM_VALUE, dims[i]);
        xph_proto_close(&g->body, dim, 0);
    }
    xph_proto_close(&g->body, shape, 0);
    xph_proto_close(&g->body, tensor, 0);
    xph_proto_close(&g->body, whole, 0);
    xph_proto_add_text(&g->body, VALUE_DOC, what);
    xph_proto_close(&g->body, value, 0);
}

xph_onnx_value xph_onnx_input(xph_onnx *g, const char *name, int32_t type, int32_t rank, const int64_t *dims,
                              const char *what)
{
    xph_onnx_value value = named(g, name);
    add_value(g, GRAPH_INPUT, value.name, type, rank, dims, what);
    return value;
}

void xph_onnx_output(xph_onnx *g, xph_onnx_value value, int32_t type, int32_t rank, const int64_t *dims,
                     const char *what)
{
    add_value(g, GRAPH_OUTPUT, value.name, type, rank, dims, what);
}

xph_onnx_value xph_onnx_state(xph_onnx *g, const char *name, int32_t rank, const int64_t *dims)
{
    return xph_onnx_input(g, name, XPH_ONNX_FLOAT, rank, dims, "state: 0 at an episode's start");
}

void xph_onnx_state_out(xph_onnx *g, xph_onnx_value value, int32_t rank, const int64_t *dims)
{
    xph_onnx_output(g, value, XPH_ONNX_FLOAT, rank, dims, "state of the next frame");
}

/* ---- initializers -------------------------------------------------------------------------------------- */

static void begin_tensor(xph_proto_out *out, const char *name, int32_t type, int32_t rank,
                         const int64_t *dims)
{
    for (int32_t i = 0; i < rank; i++) xph_proto_add_int(out, TENSOR_DIMS, dims[i]);
    xph_proto_add_int(out, TENSOR_TYPE, type);
    xph_proto_add_text(out, TENSOR_NAME, name);
}

/* rank 0 or 1; the library's machines are little-endian, as raw data are. */
static xph_onnx_value constant(xph_onnx *g, const char *name, int32_t type, int32_t rank, int64_t count,
                               const void *data, size_t each)
{
    xph_onnx_value value = named(g, name);
    size_t tensor = xph_proto_open(&g->body, GRAPH_INITIALIZER);
    begin_tensor(&g->body, value.name, type, rank, &count);
    xph_proto_add_bytes(&g->body, TENSOR_RAW, data, (size_t)count * each);
    xph_proto_close(&g->body, tensor, 0);
    return value;
}

xph_onnx_value xph_onnx_floats(xph_onnx *g, const char *name, int64_t count, const float *values)
{
    return constant(g, name, XPH_ONNX_FLOAT, 1, count, values, sizeof *values);
}

xph_onnx_value xph_onnx_ints(xph_onnx *g, const char *name, int64_t count, const int64_t *values)
{
    return constant(g, name, XPH_ONNX_INT64, 1, count, values, sizeof *values);
}

xph_onnx_value xph_onnx_float(xph_onnx *g, const char *name, float value)
{
    return constant(g, name, XPH_ONNX_FLOAT, 0, 1, &value, sizeof value);
}

xph_onnx_value xph_onnx_int(xph_onnx *g, const char *name, int64_t value)
{
    return constant(g, name, XPH_ONNX_INT64, 0, 1, &value, sizeof value);
}

xph_onnx_value xph_onnx_axis(xph_onnx *g, int32_t axis)
{
    xph_onnx_value value;
    const int64_t number = axis;
    snprintf(value.name, sizeof value.name, "axis.%d", (int)axis);
    if (g->axes >> axis & 1) return value;
    g->axes |= 1u << axis;
    size_t tensor = xph_proto_open(&g->body, GRAPH_INITIALIZER);
    const int64_t one = 1;
    begin_tensor(&g->body, value.name, XPH_ONNX_INT64, 1, &one);
    xph_proto_add_bytes(&g->body, TENSOR_RAW, &number, sizeof number);
    xph_proto_close(&g->body, tensor, 0);
    return value;
}

static bool room_for_weight(xph_onnx *g)
{
    if (g->status < 0) return false;
    if (g->weights < g->capacity) return true;
    exphil_context *context = g->model->context;
    int64_t capacity = g->capacity ? 2 * g->capacity : 64;
    size_t bytes = (size_t)capacity * sizeof *g->weight, old = (size_t)g->capacity * sizeof *g->weight;
    xph_onnx_weight *more = xph_alloc(context, bytes);
    if (!more) {
        g->status = xph_no_memory(bytes, g->error);
        return false;
    }
    if (old) memcpy(more, g->weight, old);
    xph_free(context, g->weight, old);
    g->weight = more;
    g->capacity = capacity;
    return true;
}

/* Its message up to the numbers; name: the tensor's with a part behind it. */
static xph_onnx_value note_weight(xph_onnx *g, const char *part, xph_onnx_weight weight)
{
    const xph_param *param = xph_model_param(g->model, weight.index);
    xph_type narrow = weight.scale ? 0 : xph_model_narrow(g->model, weight.index);
    int32_t type = narrow == XPH_I8     ? XPH_ONNX_UINT8
                   : narrow == XPH_BF16 ? XPH_ONNX_BFLOAT16
                                        : XPH_ONNX_FLOAT;
    int64_t columns = weight.scale || param->rank < 2 ? 1 : param->dim[1];
    const int64_t dims[XPH_TENSORS_RANK] = {weight.turned ? columns : weight.rows,
                                            weight.turned ? weight.rows : columns, 1, 1};
    xph_onnx_value value;
    snprintf(value.name, sizeof value.name, "%s%s", param->name, part);
    if (!room_for_weight(g)) return value;
    weight.bytes = (size_t)(weight.rows * columns) * (narrow == XPH_I8 ? 1 : narrow ? 2 : sizeof(float));
    weight.head_at = g->heads.bytes;
    size_t tensor = xph_proto_open(&g->heads, GRAPH_INITIALIZER);
    begin_tensor(&g->heads, value.name, type, weight.scale ? 1 : param->rank, dims);
    xph_proto_add_length(&g->heads, TENSOR_RAW, weight.bytes);
    xph_proto_close(&g->heads, tensor, weight.bytes);
    weight.head_bytes = g->heads.bytes - weight.head_at;
    g->weight_bytes += weight.bytes;
    g->weight[g->weights++] = weight;
    return value;
}

xph_onnx_value xph_onnx_rows(xph_onnx *g, int64_t index, const char *part, int64_t first, int64_t rows)
{
    return note_weight(g, part, (xph_onnx_weight){.index = (int32_t)index, .first = first, .rows = rows});
}

/* Numbers of 16 bits become floats when the graph is loaded: runtimes compute what is constant once. */
xph_onnx_value xph_onnx_tensor(xph_onnx *g, int64_t index)
{
    const xph_param *param = xph_model_param(g->model, index);
    xph_onnx_value value = xph_onnx_rows(g, index, "", 0, param->dim[0]), wide;
    if (xph_model_narrow(g->model, index) != XPH_BF16) return value;
    xph_onnx_node(g, "Cast");
    xph_onnx_in(g, value);
    xph_onnx_set_int(g, "to", XPH_ONNX_FLOAT);
    snprintf(wide.name, sizeof wide.name, "%s.f32", param->name);
    xph_proto_add_text(&g->body, NODE_OUTPUT, wide.name);
    xph_proto_add_text(&g->body, NODE_NAME, wide.name);
    xph_proto_close(&g->body, g->node, 0);
    return wide;
}

xph_onnx_bytes xph_onnx_int8(xph_onnx *g, int64_t index)
{
    static const uint8_t middle = 128;
    const int64_t rows = xph_model_param(g->model, index)->dim[0];
    const xph_onnx_weight numbers = {.index = (int32_t)index, .rows = rows, .turned = 1},
                          scale = {.index = (int32_t)index, .rows = rows, .scale = 1};
    xph_onnx_bytes bytes = {.middle = {"middle"}};
    bytes.numbers = note_weight(g, ".T", numbers);
    bytes.scale = note_weight(g, ".scale", scale);
    if (g->middle) return bytes;
    g->middle = true;
    size_t tensor = xph_proto_open(&g->body, GRAPH_INITIALIZER);
    begin_tensor(&g->body, bytes.middle.name, XPH_ONNX_UINT8, 0, NULL);
    xph_proto_add_bytes(&g->body, TENSOR_RAW, &middle, sizeof middle);
    xph_proto_close(&g->body, tensor, 0);
    return bytes;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

void xph_onnx_node(xph_onnx *g, const char *op)
{
    g->node = xph_proto_open(&g->body, GRAPH_NODE);
    xph_proto_add_text(&g->body, NODE_OP, op);
}

void xph_onnx_in(xph_onnx *g, xph_onnx_value value)
{
    xph_proto_add_text(&g->body, NODE_INPUT, value.name);
}

void xph_onnx_set_int(xph_onnx *g, const char *name, int64_t value)
{
    size_t attribute = xph_proto_open(&g->body, NODE_ATTRIBUTE);
    xph_proto_add_text(&g->body, ATTRIBUTE_NAME, name);
    xph_proto_add_int(&g->body, ATTRIBUTE_I, value);
    xph_proto_add_int(&g->body, ATTRIBUTE_TYPE, TYPE_INT);
    xph_proto_close(&g->body, attribute, 0);
}

void xph_onnx_set_ints(xph_onnx *g, const char *name, int64_t count, const int64_t *values)
{
    size_t attribute = xph_proto_open(&g->body, NODE_ATTRIBUTE);
    xph_proto_add_text(&g->body, ATTRIBUTE_NAME, name);
    for (int64_t i = 0; i < count; i++) xph_proto_add_int(&g->body, ATTRIBUTE_INTS, values[i]);
    xph_proto_add_int(&g->body, ATTRIBUTE_TYPE, TYPE_INTS);
    xph_proto_close(&g->body, attribute, 0);
}

void xph_onnx_set_float(xph_onnx *g, const char *name, float value)
{
    size_t attribute = xph_proto_open(&g->body, NODE_ATTRIBUTE);
    xph_proto_add_text(&g->body, ATTRIBUTE_NAME, name);
    xph_proto_add_float(&g->body, ATTRIBUTE_F, value);
    xph_proto_add_int(&g->body, ATTRIBUTE_TYPE, TYPE_FLOAT);
    xph_proto_close(&g->body, attribute, 0);
}

xph_onnx_value xph_onnx_also(xph_onnx *g, const char *name)
{
    xph_onnx_value value = named(g, name);
    xph_proto_add_text(&g->body, NODE_OUTPUT, value.name);
    return value;
}

xph_onnx_value xph_onnx_out(xph_onnx *g, const char *name)
{
    xph_onnx_value value = xph_onnx_also(g, name);
    xph_proto_add_text(&g->body, NODE_NAME, value.name);
    xph_proto_close(&g->body, g->node, 0);
    return value;
}
