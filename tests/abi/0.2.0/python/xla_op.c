/* The operations as handlers of XLA's foreign function interface: exphil_xla_scan, exphil_xla_scan_backward and so on for XLA
 * on the CPU, the same with _cuda behind the name for NVIDIA GPUs (compiled, but not yet run on one). With op_call.c this is
 * one shared object that needs libexphil alone: exphil._xla, which exphil.jax registers, and which any other program that runs
 * XLA can load.
 *
 *     cc -shared -fPIC -O2 xla_op.c op_call.c $(pkg-config --cflags --libs exphil) -lpthread -o exphil_xla.so
 *
 * A handler takes the arrays of its operation (op_call.c) that are present, in their order, and backward last what forward
 * saved. It gives those that are wanted, then, from forward with keep, saved, and last its workspace: bytes. Arrays are
 * row-major in the order of ops.h: [batch, frame, column], [batch, frame, head, dim], [row, column]. Attributes, all int64 but
 * real, a double:
 *   present  bit i: input i of the operation is there            first, second, real   exphil_py_numbers
 *   wanted   bit i: output i is given                            keep                  saved is given
 * How large saved and the workspace are exphil_ops_query says. */
#include "op_call.h"
#include "xla_abi.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#if defined(__GNUC__)
#  define SHOWN __attribute__((visibility("default")))
#else
#  define SHOWN
#endif

/* ---- what XLA hands over --------------------------------------------------------------------------------- */

static xla_error *failed(const xla_call *xla, int32_t code, const char *message)
{
    char text[320];
    xla_error_create args = {
        .struct_size = offsetof(xla_error_create, code) + sizeof args.code, .message = text, .code = code};
    snprintf(text, sizeof text, "exphil: %s", message);
    return xla->api->error_create(&args);
}

static int32_t code_of(exphil_status status)
{
    switch (status) {
    case EXPHIL_E_INVALID:
        return XLA_ERROR_INVALID;
    case EXPHIL_E_MEMORY:
        return XLA_ERROR_MEMORY;
    case EXPHIL_E_UNSUPPORTED:
        return XLA_ERROR_UNIMPLEMENTED;
    case EXPHIL_E_CANCELLED:
        return XLA_ERROR_CANCELLED;
    case EXPHIL_E_STATE:
        return XLA_ERROR_PRECONDITION;
    default:
        return XLA_ERROR_INTERNAL;
    }
}

/* An attribute of 8 bytes, zero where it is missing or has another type. at: where XLA, which sorts them, has it. */
static inline void attribute(const xla_call *xla, int64_t at, const char *name, int32_t type, void *value)
{
    const int64_t count = xla->attributes.count;
    const size_t length = strlen(name);
    memset(value, 0, 8);
    for (int64_t i = 0; i < count; i++, at++) {
        if (at >= count) at = 0;
        const xla_text *have = xla->attributes.names[at];
        if (have->length != length || memcmp(have->start, name, length) != 0) continue;
        const xla_scalar *scalar = xla->attributes.attribute[at];
        if (xla->attributes.kinds[at] == XLA_ATTRIBUTE_SCALAR && scalar->type == type)
            memcpy(value, scalar->value, 8);
        return;
    }
}

static int32_t type_of(const xla_buffer *buffer)
{
    switch (buffer->type) {
    case XLA_F32:
        return EXPHIL_OPS_F32;
    case XLA_F64:
        return EXPHIL_OPS_F64;
    case XLA_PRED:
    case XLA_U8:
        return 2;
    default:
        return -1;
    }
}

/* Axes of a buffer are in the order b, f, m, c; those of a field in the order of its public name. */
static void describe(const xla_buffer *buffer, const exphil_py_field *field, exphil_py_array *array)
{
    const int axes = (int)strlen(field->axes) / 2;
    array->data = buffer->data;
    array->type = type_of(buffer);
    array->rank = buffer->rank > EXPHIL_PY_RANK ? EXPHIL_PY_RANK + 1 : (int32_t)buffer->rank;
    if (array->rank != axes) return; /* refused for its rank */
    int64_t stride = 1;
    int at = axes - 1;
    for (const char *place = "cmfb"; *place; place++)
        for (int i = 0; i < axes; i++) {
            if (field->axes[2 * i + 1] != *place) continue;
            array->sizes[i] = buffer->sizes[at];
            array->strides[i] = stride;
            stride *= buffer->sizes[at] > 1 ? buffer->sizes[at] : 1;
            at--;
        }
}

/* What XLA asks when a handler is registered. */
static xla_error *introduce(const xla_call *xla, bool gpu)
{
    xla_metadata *metadata = ((xla_metadata_extension *)xla->extensions)->metadata;
    metadata->version.major = XLA_MAJOR;
    metadata->version.minor = XLA_MINOR;
    metadata->traits = gpu ? XLA_TRAIT_RECORDABLE : 0;
    return NULL;
}

/* ---- one call -------------------------------------------------------------------------------------------- */

typedef struct xla_run {
    exphil_py_call call;
    exphil_py_array arrays[EXPHIL_PY_FIELDS];
    exphil_py_numbers numbers;
    exphil_error error;
    int64_t present, wanted, keep;
    int64_t input, output; /* of XLA's lists: the next one */
} xla_run;

static xla_error *take_inputs(const xla_call *xla, xla_run *run, const exphil_py_op *op)
{
    int number = 0;
    for (int i = 0; i < op->fields; i++) {
        if (!exphil_py_takes(&op->field[i], run->call.backward)) continue;
        exphil_py_array *array = &run->arrays[number];
        array->type = array->rank = -1;
        if (run->present >> number++ & 1) {
            if (run->input >= xla->inputs.count)
                return failed(xla, XLA_ERROR_INVALID, "fewer inputs than present says");
            describe(xla->inputs.buffer[run->input++], &op->field[i], array);
        }
    }
    switch (exphil_py_begin(&run->call, op, run->call.backward, run->arrays, &run->numbers)) {
    case 0:
        return NULL;
    default:
        return failed(xla, XLA_ERROR_INVALID, run->call.message);
    }
}

static size_t bytes_of(const xla_buffer *buffer)
{
    return buffer->rank == 1 && buffer->type == XLA_U8 ? (size_t)buffer->sizes[0] : 0;
}

static xla_error *take_outputs(const xla_call *xla, xla_run *run, const exphil_py_op *op)
{
    int number = 0;
    for (int i = 0; i < op->fields; i++) {
        exphil_py_array array = {0};
        if (!exphil_py_gives(&op->field[i], run->call.backward) || !(run->wanted >> number++ & 1)) continue;
        if (run->output >= xla->outputs.count)
            return failed(xla, XLA_ERROR_INVALID, "fewer outputs than wanted says");
        describe(xla->outputs.buffer[run->output++], &op->field[i], &array);
        if (exphil_py_put_array(&run->call, &op->field[i], &array))
            return failed(xla, XLA_ERROR_INVALID, run->call.message);
    }
    const xla_buffers *list = run->call.backward ? &xla->inputs : &xla->outputs;
    int64_t *at = run->call.backward ? &run->input : &run->output;
    if (op->saves && (run->call.backward || run->keep)) {
        if (*at >= list->count) return failed(xla, XLA_ERROR_INVALID, "saved is missing");
        const xla_buffer *saved = list->buffer[(*at)++];
        exphil_py_put_saved(&run->call, saved->data ? saved->data : &run->call, bytes_of(saved));
    }
    if (run->input != xla->inputs.count || run->output + 1 != xla->outputs.count)
        return failed(xla, XLA_ERROR_INVALID, "more arrays than present and wanted say, or no workspace");
    return NULL;
}

/* The stream and the number of XLA's device. */
static xla_error *gpu_of(const xla_call *xla, void **stream, int32_t *device)
{
    const xla_api *api = xla->api;
    xla_stream_get get = {.struct_size = sizeof get, .context = xla->context};
    xla_error *error = api->stream_get(&get);
    if (error) return error;
    *stream = get.stream;
    *device = 0;
    if (api->struct_size < offsetof(xla_api, device_get) + sizeof api->device_get) return NULL;
    xla_device_get which = {.struct_size = offsetof(xla_device_get, device) + sizeof which.device,
                            .context = xla->context};
    error = api->device_get(&which);
    *device = which.device;
    return error;
}

static xla_error *handle(const xla_call *xla, int number, bool backward, bool gpu)
{
    const exphil_py_op *op = &exphil_py_op_table()[number];
    xla_run run; /* kilobytes, of which a call needs few */
    void *stream = NULL;
    int32_t device = -1;
    if (xla->extensions && xla->extensions->type == XLA_EXTENSION_METADATA) return introduce(xla, gpu);
    if (xla->stage != XLA_STAGE_EXECUTE) return NULL;
    run.error = (exphil_error)EXPHIL_ERROR_INIT;
    run.call.backward = backward;
    run.input = run.output = 0;
    attribute(xla, 0, "first", XLA_I64, &run.numbers.first);
    attribute(xla, 1, "keep", XLA_I64, &run.keep);
    attribute(xla, 2, "present", XLA_I64, &run.present);
    attribute(xla, 3, "real", XLA_F64, &run.numbers.real);
    attribute(xla, 4, "second", XLA_I64, &run.numbers.second);
    attribute(xla, 5, "wanted", XLA_I64, &run.wanted);
    xla_error *error = take_inputs(xla, &run, op);
    if (!error) error = take_outputs(xla, &run, op);
    if (!error && gpu) error = gpu_of(xla, &stream, &device);
    if (error) return error;
    const xla_buffer *workspace = xla->outputs.buffer[run.output];
    exphil_ops *ops = exphil_py_ops(device, &run.error);
    if (!ops ||
        exphil_ops_run(ops, &run.call.args, workspace->data, bytes_of(workspace), stream, &run.error) < 0)
        return failed(xla, code_of(run.error.status), run.error.message);
    return NULL;
}

/* ---- the handlers, in the order of the table ------------------------------------------------------------- */

#define HANDLER(name, number, backward, gpu)                                                                 \
  SHOWN xla_error *exphil_xla_##name(const xla_call *xla);                                                   \
  SHOWN xla_error *exphil_xla_##name(const xla_call *xla)                                                    \
  {                                                                                                          \
    return handle(xla, number, backward, gpu);                                                               \
  }
#define HANDLERS(name, number)                                                                               \
  HANDLER(name, number, false, false)                                                                        \
  HANDLER(name##_backward, number, true, false)                                                              \
  HANDLER(name##_cuda, number, false, true)                                                                  \
  HANDLER(name##_backward_cuda, number, true, true)
HANDLERS(scan, 0)
HANDLERS(attention, 1)
HANDLERS(lstm, 2)
HANDLERS(gru, 3)
HANDLERS(norm, 4)
HANDLERS(conv, 5)

/* Kernels of the caller's instead of those of a context of its own, as exphil_py_ops_set. */
SHOWN void exphil_xla_ops_set(int32_t device, exphil_ops *ops);
SHOWN void exphil_xla_ops_set(int32_t device, exphil_ops *ops)
{
    exphil_py_ops_set(device, ops);
}
