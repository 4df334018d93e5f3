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

#define ARGS(name) ((const xph_##name##_args *)args)

static plan_shape heads_shape(const void *args)
{
    return SHAPE({"rows", ARGS(heads)->rows}, {"width", ARGS(heads)->width}, {"heads", ARGS(heads)->heads},
                 {"logits", ARGS(heads)->logits});
}

static plan_shape linear_grad_shape(const void *args)
{
    const xph_linear_grad_args *a = args;
    return SHAPE({"rows", a->rows}, {"in", a->in}, {"out", a->out});
}

static plan_shape codes_shape(const void *args)
{
    return SHAPE({"rows", ARGS(codes)->rows}, {"width", ARGS(codes)->width}, {"heads", ARGS(codes)->heads});
}

/* No default: the compiler complains of an operation that has no case here. But for linear,
 * the arguments of a gradient begin with those of its operation. */
static plan_shape shape_of(enum xph_op_number op, const void *args)
{
    switch (op) {
    case XPH_OP_LINEAR:
        return SHAPE({"rows", ARGS(linear)->rows}, {"in", ARGS(linear)->in}, {"out", ARGS(linear)->out});
    case XPH_OP_LINEAR_GRAD:
        return linear_grad_shape(args);
    case XPH_OP_NORM:
    case XPH_OP_NORM_GRAD:
        return SHAPE({"rows", ARGS(norm)->rows}, {"width", ARGS(norm)->width});
    case XPH_OP_CONV:
    case XPH_OP_CONV_GRAD:
        return SHAPE({"batch", ARGS(conv)->batch}, {"time", ARGS(conv)->time}, {"width", ARGS(conv)->width},
                     {"taps", ARGS(conv)->taps});
    case XPH_OP_SCAN:
    case XPH_OP_SCAN_GRAD:
        return SHAPE({"batch", ARGS(scan)->batch}, {"time", ARGS(scan)->time}, {"width", ARGS(scan)->width},
                     {"states", ARGS(scan)->states});
    case XPH_OP_ATTENTION:
    case XPH_OP_ATTENTION_GRAD:
        return SHAPE({"batch", ARGS(attention)->batch}, {"time", ARGS(attention)->time},
                     {"heads", ARGS(attention)->heads}, {"dim", ARGS(attention)->dim},
                     {"window", ARGS(attention)->window});
    case XPH_OP_RNN:
    case XPH_OP_RNN_GRAD:
        return SHAPE({"batch", ARGS(rnn)->batch}, {"time", ARGS(rnn)->time}, {"hidden", ARGS(rnn)->hidden},
                     {ARGS(rnn)->input.rows ? "in" : NULL, ARGS(rnn)->input.in});
    case XPH_OP_EMBED:
    case XPH_OP_EMBED_GRAD:
        return SHAPE({"rows", ARGS(embed)->rows}, {"floats", ARGS(embed)->floats}, {"ids", ARGS(embed)->ids},
                     {"past", ARGS(embed)->slots}, {"logits", ARGS(embed)->logits});
    case XPH_OP_HEADS:
    case XPH_OP_HEADS_GRAD:
    case XPH_OP_HEADS_LOSS:
    case XPH_OP_SAMPLE:
        return heads_shape(args);
    case XPH_OP_AXPBY:
        return SHAPE({"count", ARGS(axpby)->count});
    case XPH_OP_CODES:
    case XPH_OP_CODES_GRAD:
        return codes_shape(args);
    case XPH_OP_ACTIVATE:
    case XPH_OP_ACTIVATE_GRAD:
        return SHAPE({"count", ARGS(activate)->count});
    case XPH_OP_CAST:
        return SHAPE({"count", ARGS(cast)->count});
    case XPH_OP_LINEAR_PACK:
    case XPH_OP_PACKS:
    case XPH_OP_LOSS:
    case XPH_OP_POLICY_LOSS:
    case XPH_OP_ADAM:
    case XPH_OP_NORM2:
    case XPH_OP_ROUND:
    case XPH_OP_SCAN_PACK:
    case XPH_OP_CLEAR:
    case XPH_OP_COUNT: /* a copy; the others are in no plan of a net */
        break;
    }
    return SHAPE({NULL, 0});
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
    const plan_shape shape = shape_of((enum xph_op_number)op, args);
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
        printf("%-9s %-15s %-28s %12lld %10lld  %s\n", json_string_value(json_object_get(one, "part")),
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
    printf("part: where in the network; bytes: what must be read and written at least, weights included;\n"
           "scratch: memory that the operation needs for itself, in bytes; shape: its dimensions\n");
    if (xph_net_joins(net)) printf("joined_step: all of them in one launch\n");
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
    const uint32_t play =
        XPH_NET_INLINE | (o.time == 1 && shape->mode == EXPHIL_MODE_CARRY ? XPH_NET_JOINS : 0);
    if (xph_net_create(model, o.batch, o.time, o.train ? XPH_NET_TRAIN : play, &net, &error) < 0)
        return complain(path, &error);
    listing list = {.left_out = o.train ? "draw" : "heads", .operations = json_array()};
    xph_net_show(net, list_operation, &list);
    int status = give(model, net, &list, &o, json);
    json_decref(list.operations);
    xph_net_destroy(net);
    return status;
}
