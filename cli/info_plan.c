/* Plans a net and lists its operations: the kernel that was chosen, shapes, the bytes that must move, scratch. Plans are no
 * part of the library's interface: this file sees its inside. */
#include "info_plan.h"

#include "op_work.h"

#include "base/base.h"
#include "device/device.h"
#include "model/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- shapes -------------------------------------------------------------------------------------------- */

enum { NUMBERS = 5 };
typedef struct plan_shape {
    struct {
        const char *name;
        int64_t value;
    } of[NUMBERS];
} plan_shape;

#define SHAPE(...)                                                                                           \
  (plan_shape)                                                                                               \
  {                                                                                                          \
    {                                                                                                        \
      __VA_ARGS__                                                                                            \
    }                                                                                                        \
  }

static plan_shape shape_of(xph_op op, const void *args)
{
    const xph_linear_args *linear = args;
    const xph_linear_grad_args *linear_grad = args;
    const xph_norm_args *norm = args; /* the first member of its gradient's, and so on */
    const xph_conv_args *conv = args;
    const xph_scan_args *scan = args;
    const xph_attention_args *attention = args;
    const xph_rnn_args *rnn = args;
    const xph_embed_args *embed = args;
    const xph_heads_args *heads = args;
    const xph_axpby_args *axpby = args;
    const xph_cast_args *cast = args;
    switch (op) {
    case XPH_OP_LINEAR:
        return SHAPE({"rows", linear->rows}, {"in", linear->in}, {"out", linear->out});
    case XPH_OP_LINEAR_GRAD:
        return SHAPE({"rows", linear_grad->rows}, {"in", linear_grad->in}, {"out", linear_grad->out});
    case XPH_OP_NORM:
    case XPH_OP_NORM_GRAD:
        return SHAPE({"rows", norm->rows}, {"width", norm->width});
    case XPH_OP_CONV:
    case XPH_OP_CONV_GRAD:
        return SHAPE({"batch", conv->batch}, {"time", conv->time}, {"width", conv->width},
                     {"taps", conv->taps});
    case XPH_OP_SCAN:
    case XPH_OP_SCAN_GRAD:
        return SHAPE({"batch", scan->batch}, {"time", scan->time}, {"width", scan->width},
                     {"states", scan->states});
    case XPH_OP_ATTENTION:
    case XPH_OP_ATTENTION_GRAD:
        return SHAPE({"batch", attention->batch}, {"time", attention->time}, {"heads", attention->heads},
                     {"dim", attention->dim}, {"window", attention->window});
    case XPH_OP_RNN:
    case XPH_OP_RNN_GRAD:
        return SHAPE({"batch", rnn->batch}, {"time", rnn->time}, {"hidden", rnn->hidden},
                     {rnn->input.rows ? "in" : NULL, rnn->input.in});
    case XPH_OP_EMBED:
    case XPH_OP_EMBED_GRAD:
        return SHAPE({"rows", embed->rows}, {"floats", embed->floats}, {"ids", embed->ids},
                     {"past", embed->slots}, {"logits", embed->logits});
    case XPH_OP_HEADS:
    case XPH_OP_HEADS_GRAD:
    case XPH_OP_SAMPLE:
        return SHAPE({"rows", heads->rows}, {"width", heads->width}, {"heads", heads->heads},
                     {"logits", heads->logits});
    case XPH_OP_AXPBY:
        return SHAPE({"count", axpby->count});
    case XPH_OP_CAST:
        return SHAPE({"count", cast->count});
    default:
        return SHAPE({NULL, 0});
    }
}

static json_t *shape_json(const plan_shape *shape)
{
    json_t *object = json_object();
    for (int i = 0; i < NUMBERS && shape->of[i].name; i++)
        json_object_set_new(object, shape->of[i].name, json_integer(shape->of[i].value));
    return object;
}

static const char *shape_text(const plan_shape *shape, char text[128])
{
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < NUMBERS && shape->of[i].name && at < 100; i++)
        at += (size_t)snprintf(text + at, 128 - at, "%s%s %" PRId64, i ? ", " : "", shape->of[i].name,
                               shape->of[i].value);
    return text;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

typedef struct listing {
    const char *left_out; /* the part that this net does not run */
    json_t *operations;
    double bytes;
} listing;

static void list_operation(void *arg, const char *part, xph_op op, const xph_op_info *chosen,
                           const void *args)
{
    listing *list = arg;
    if (strcmp(part, list->left_out) == 0) return;
    const bool copy = op == XPH_OP_COUNT;
    const plan_shape shape = copy ? SHAPE({NULL, 0}) : shape_of(op, args);
    const op_work work = copy ? (op_work){0} : op_work_of(op, args);
    char text[128];
    list->bytes += work.bytes;
    json_t *one = json_pack("{s:s,s:s,s:s,s:o,s:s,s:I,s:I}", "part", part, "operation",
                            copy ? "copy" : xph_op_name(op), "kernel", copy ? "copy" : chosen->name, "shape",
                            shape_json(&shape), "text", shape_text(&shape, text), "bytes",
                            (json_int_t)work.bytes, "scratch_bytes", (json_int_t)chosen->scratch_bytes);
    json_array_append_new(list->operations, one);
}

static void print_operations(const json_t *operations)
{
    size_t i;
    const json_t *one;
    printf("%-9s %-15s %-28s %12s %10s  %s\n", "part", "operation", "kernel", "bytes", "scratch", "shape");
    json_array_foreach(operations, i, one)
    {
        printf("%-9s %-15s %-28s %12" JSON_INTEGER_FORMAT " %10" JSON_INTEGER_FORMAT "  %s\n",
               json_string_value(json_object_get(one, "part")),
               json_string_value(json_object_get(one, "operation")),
               json_string_value(json_object_get(one, "kernel")),
               json_integer_value(json_object_get(one, "bytes")),
               json_integer_value(json_object_get(one, "scratch_bytes")),
               json_string_value(json_object_get(one, "text")));
    }
}

static int give(const exphil_model *model, const xph_net *net, const listing *list, const plan_options *o,
                bool json)
{
    exphil_device_info device = EXPHIL_DEVICE_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    const size_t prepared = xph_model_shape_of(model)->packed_bytes, memory = xph_net_bytes(net);
    size_t i;
    json_t *one;
    if (exphil_context_device(xph_model_context(model), &device, &error) < 0) return complain("info", &error);
    if (json) {
        json_array_foreach(list->operations, i, one) json_object_del(one, "text");
        return print_json(json_pack("{s:s,s:s,s:s,s:I,s:I,s:b,s:I,s:I,s:I,s:O}", "kind", "plan", "device",
                                    device.id, "isa", device.isa, "batch", (json_int_t)o->batch, "time",
                                    (json_int_t)o->time, "train", o->train, "bytes", (json_int_t)list->bytes,
                                    "memory_bytes", (json_int_t)memory, "prepared_bytes",
                                    (json_int_t)prepared, "operations", list->operations));
    }
    printf("%s of %" PRId64 " stream%s of %" PRId64 " frame%s on %s (%s)\n",
           o->train ? "an update" : "a step", o->batch, plural(o->batch), o->time, plural(o->time), device.id,
           device.isa);
    print_operations(list->operations);
    printf("%zu operations that move %.0f bytes; %zu bytes of activations and scratch, %zu of prepared "
           "weights\n",
           json_array_size(list->operations), list->bytes, memory, prepared);
    return 0;
}

int show_plan(const exphil_model *model, const char *path, const plan_options *options, bool json)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    exphil_error error = EXPHIL_ERROR_INIT;
    plan_options o = *options;
    xph_net *net = NULL;
    if (!o.time) o.time = shape->window ? shape->window : 1;
    if (o.train && shape->narrow) {
        fprintf(stderr, "exphil: %s: a quantised model is not trained\n", path);
        return 1;
    }
    if (xph_net_create(model, o.batch, o.time, o.train ? XPH_NET_TRAIN : XPH_NET_INLINE, &net, &error) < 0)
        return complain(path, &error);
    listing list = {.left_out = o.train ? "draw" : "heads", .operations = json_array()};
    xph_net_show(net, list_operation, &list);
    int status = give(model, net, &list, &o, json);
    json_decref(list.operations);
    xph_net_destroy(net);
    return status;
}
