/* JavaScript values to C and back: arguments, errors, typed arrays, structures by tables of their fields, handles. */
#include "addon.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool arguments(napi_env env, napi_callback_info info, size_t count, napi_value *values)
{
    size_t given = count; /* those not given are undefined */
    return napi_get_cb_info(env, info, &given, values, NULL, NULL) == napi_ok;
}

/* Node-API derives no class from Error. */
static const char error_class[] =
    "(class ExphilError extends Error {"
    "  constructor(message, code = 'EXPHIL_E_INVALID', status = -1, nativeCode = 0) {"
    "    super(message);"
    "    Object.assign(this, { code, status, nativeCode });"
    "  }"
    "  get name() { return 'ExphilError'; }"
    "})";

static void forget_class(napi_env env, void *reference, void *hint)
{
    (void)hint;
    napi_delete_reference(env, reference);
}

/* Each thread of Node has a class of its own, kept with its instance of the addon. */
bool make_error_class(napi_env env, napi_value exports)
{
    napi_value script, made;
    napi_ref reference = NULL;
    return napi_create_string_utf8(env, error_class, NAPI_AUTO_LENGTH, &script) == napi_ok &&
           napi_run_script(env, script, &made) == napi_ok &&
           napi_create_reference(env, made, 1, &reference) == napi_ok &&
           napi_set_instance_data(env, reference, forget_class, NULL) == napi_ok &&
           napi_set_named_property(env, exports, "ExphilError", made) == napi_ok;
}

/* An ExphilError with code "EXPHIL_E_...", status and nativeCode. */
static napi_value error_of(napi_env env, exphil_status status, const char *message, int32_t native_code)
{
    napi_value made, value[4], error = NULL;
    void *reference = NULL;
    napi_create_string_utf8(env, message, NAPI_AUTO_LENGTH, &value[0]);
    napi_create_string_utf8(env, exphil_status_name(status), NAPI_AUTO_LENGTH, &value[1]);
    napi_create_int32(env, status, &value[2]);
    napi_create_int32(env, native_code, &value[3]);
    napi_get_instance_data(env, &reference);
    napi_get_reference_value(env, reference, &made);
    napi_new_instance(env, made, 4, value, &error);
    return error;
}

napi_value fail(napi_env env, exphil_status status, const char *message, int32_t native_code)
{
    bool pending = false;
    napi_is_exception_pending(env, &pending);
    if (!pending) napi_throw(env, error_of(env, status, message, native_code));
    return NULL;
}

napi_value make_error(napi_env env, const exphil_error *error, exphil_status status)
{
    return error_of(env, status, error->message, error->native_code);
}

bool check(napi_env env, exphil_status status, const exphil_error *error)
{
    if (status >= 0) return true;
    fail(env, status, error->message, error->native_code);
    return false;
}

bool wrong(napi_env env, const char *name, const char *what)
{
    char message[240];
    snprintf(message, sizeof message, "%s: %s", name, what);
    fail(env, EXPHIL_E_INVALID, message, 0);
    return false;
}

bool is_set(napi_env env, napi_value value)
{
    napi_valuetype type = napi_undefined;
    napi_typeof(env, value, &type);
    return type != napi_undefined && type != napi_null;
}

char *keep_text(napi_env env, struct texts *texts, napi_value value, const char *what)
{
    size_t length = 0;
    if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok)
        return wrong(env, what, "must be a string"), NULL;
    if (texts->count == (int)(sizeof texts->item / sizeof texts->item[0]))
        return wrong(env, what, "too many texts"), NULL;
    char *text = malloc(length + 1);
    if (!text) return fail(env, EXPHIL_E_MEMORY, "no memory for a text", 0), NULL;
    texts->item[texts->count++] = text;
    napi_get_value_string_utf8(env, value, text, length + 1, &length);
    if (strlen(text) != length) return wrong(env, what, "has a NUL character inside"), NULL;
    return text;
}

void drop_texts(struct texts *texts)
{
    while (texts->count) free(texts->item[--texts->count]);
}

bool refuse_number(napi_env env, const char *name, enum field_kind kind, double number)
{
    double low = field_range[kind].low, high = field_range[kind].high;
    char what[160], given[32], range[64] = "";
    snprintf(given, sizeof given, "%.16g", number);
    if (number < low || number > high) snprintf(range, sizeof range, " from %.16g to %.16g", low, high);
    snprintf(what, sizeof what, "is %s, must be a %snumber%s", isnan(number) ? "NaN" : given,
             kind == F_F32 ? "" : "whole ", range);
    return wrong(env, name, what);
}

bool read_number(napi_env env, napi_value value, const char *name, enum field_kind kind, void *place)
{
    napi_valuetype type = napi_undefined;
    bool flag = false, lossless = false;
    double number = 0;
    napi_typeof(env, value, &type);
    if (type == napi_bigint && kind == F_U64) {
        uint64_t big = 0;
        napi_get_value_bigint_uint64(env, value, &big, &lossless);
        if (!lossless) return wrong(env, name, "must fit into 64 bits without a sign");
        return memcpy(place, &big, sizeof big), true;
    }
    if (type == napi_boolean && kind == F_FLAG) {
        napi_get_value_bool(env, value, &flag);
        number = flag;
    } else if (napi_get_value_double(env, value, &number) != napi_ok) {
        return wrong(env, name, kind == F_FLAG ? "must be a boolean or a number" : "must be a number");
    }
    if (!fits(kind, number)) return refuse_number(env, name, kind, number);
    return store(kind, number, place), true;
}

static bool fill_field(napi_env env, napi_value value, const struct field *field, void *raw,
                       struct texts *texts)
{
    char *place = (char *)raw + field->offset;
    if (field->kind == F_TEXT) return wrong(env, field->name, "is only told");
    if (field->kind != F_NAME) return read_number(env, value, field->name, field->kind, place);
    char *text = keep_text(env, texts, value, field->name);
    return memcpy(place, &text, sizeof text), text != NULL;
}

/* Sets what the object names; a name that the table lacks is refused, undefined is as if not named. */
bool fill(napi_env env, napi_value object, const struct field *fields, void *raw, struct texts *texts)
{
    napi_value names, name, value;
    uint32_t count = 0;
    napi_valuetype type = napi_undefined;
    if (!is_set(env, object)) return true;
    napi_typeof(env, object, &type);
    if (type != napi_object || napi_get_property_names(env, object, &names) != napi_ok)
        return wrong(env, "options", "must be an object");
    napi_get_array_length(env, names, &count);
    for (uint32_t i = 0; i < count; i++) {
        char text[64] = {0};
        size_t length = 0;
        const struct field *field = fields;
        if (napi_get_element(env, names, i, &name) != napi_ok ||
            napi_get_value_string_utf8(env, name, text, sizeof text, &length) != napi_ok ||
            napi_get_property(env, object, name, &value) != napi_ok)
            return wrong(env, "options", "cannot be read");
        while (field->name && strcmp(field->name, text)) field++;
        if (!field->name || strlen(text) != length) return wrong(env, text, "there is no such option");
        if (is_set(env, value) && !fill_field(env, value, field, raw, texts)) return false;
    }
    return true;
}

napi_value tell(napi_env env, const struct field *fields, const void *raw)
{
    napi_value object, value = NULL;
    napi_create_object(env, &object);
    for (const struct field *field = fields; field->name; field++) {
        const char *place = (const char *)raw + field->offset;
        const void *data = place;
        switch (field->kind) {
        case F_I32:
        case F_FLAG:
            napi_create_int32(env, *(const int32_t *)data, &value);
            break;
        case F_I64:
            napi_create_int64(env, *(const int64_t *)data, &value);
            break;
        case F_U64:
            napi_create_bigint_uint64(env, *(const uint64_t *)data, &value);
            break;
        case F_F64:
            napi_create_double(env, *(const double *)data, &value);
            break;
        case F_F32:
            napi_create_double(env, (double)*(const float *)data, &value);
            break;
        case F_U32:
            napi_create_uint32(env, *(const uint32_t *)data, &value);
            break;
        case F_NAME:
            napi_create_string_utf8(env, *(const char *const *)data, NAPI_AUTO_LENGTH, &value);
            break;
        case F_TEXT:
            napi_create_string_utf8(env, place, NAPI_AUTO_LENGTH, &value);
            break;
        default:
            continue; /* the others are only given */
        }
        napi_set_named_property(env, object, field->name, value);
    }
    return object;
}

napi_value tell_list(napi_env env, const struct field *fields, const void *raw, size_t size, int64_t count)
{
    napi_value list;
    napi_create_array_with_length(env, (size_t)count, &list);
    for (int64_t i = 0; i < count; i++)
        napi_set_element(env, list, (uint32_t)i, tell(env, fields, (const char *)raw + (size_t)i * size));
    return list;
}

/* What a value is, for a sentence: "Float64Array of 3", "Array of 3", "string". */
static void describe(napi_env env, napi_value value, char *text, size_t size)
{
    static const char *const types[] = {"undefined", "null",   "boolean",  "number",   "string",
                                        "symbol",    "object", "function", "external", "bigint"};
    napi_valuetype type = napi_undefined;
    napi_value length, name;
    char kind[40] = "";
    uint32_t count = 0;
    napi_typeof(env, value, &type);
    snprintf(text, size, "%s", (size_t)type < sizeof types / sizeof *types ? types[type] : "?");
    if (type != napi_object || napi_get_named_property(env, value, "constructor", &name) != napi_ok ||
        !is_set(env, name) || napi_get_named_property(env, name, "name", &name) != napi_ok ||
        napi_get_value_string_utf8(env, name, kind, sizeof kind, NULL) != napi_ok)
        return;
    snprintf(text, size, "%s", kind);
    if (napi_get_named_property(env, value, "length", &length) == napi_ok &&
        napi_get_value_uint32(env, length, &count) == napi_ok)
        snprintf(text, size, "%s of %u", kind, (unsigned)count);
}

bool array(napi_env env, napi_value value, napi_typedarray_type type, int64_t count, const char *what,
           void **data)
{
    napi_typedarray_type found = type;
    size_t length = 0;
    bool is_array = false, pending = false;
    char message[160], given[64];
    *data = NULL;
    if (!count && !is_set(env, value)) return true;
    napi_is_typedarray(env, value, &is_array);
    if (is_array) napi_get_typedarray_info(env, value, &found, &length, data, NULL, NULL);
    if (is_array && found == type && (int64_t)length == count) return true;
    describe(env, value, given, sizeof given);
    napi_is_exception_pending(env, &pending); /* a getter of the value threw */
    if (pending) return false;
    const char *wanted = type == napi_float32_array   ? "a Float32Array"
                         : type == napi_float64_array ? "a Float64Array"
                         : type == napi_int32_array   ? "an Int32Array"
                                                      : "a Uint8Array";
    if (count < 0)
        snprintf(message, sizeof message, "is %s, must be %s", given, wanted);
    else
        snprintf(message, sizeof message, "is %s, must be %s of %lld", given, wanted, (long long)count);
    return wrong(env, what, message);
}

/* Elements of a list of objects, each of size bytes; -1: an exception is pending. */
int64_t fill_list(napi_env env, napi_value list, const struct field *fields, void *raw, size_t size,
                  uint32_t most, const char *what, struct texts *texts)
{
    napi_value item;
    uint32_t count = 0;
    if (napi_get_array_length(env, list, &count) != napi_ok || count > most)
        return wrong(env, what, "must be an array, and not too long"), -1;
    for (uint32_t i = 0; i < count; i++)
        if (napi_get_element(env, list, i, &item) != napi_ok ||
            !fill(env, item, fields, (char *)raw + i * size, texts))
            return -1;
    return count;
}

/* { fields: { layout, codec, float_count }, ids: [], heads: [] }, as exphil.js arranges it. */
bool fill_spec(napi_env env, napi_value object, exphil_spec *spec, struct texts *texts, exphil_id_spec *ids,
               exphil_head_spec *heads)
{
    napi_value fields, list;
    if (napi_get_named_property(env, object, "fields", &fields) != napi_ok ||
        !fill(env, fields, spec_fields, spec, texts))
        return wrong(env, "spec", "cannot be read");
    if (napi_get_named_property(env, object, "ids", &list) != napi_ok) return false;
    spec->id_count = fill_list(env, list, id_fields, ids, sizeof *ids, EXPHIL_IDS_MAX, "spec.ids", texts);
    if (napi_get_named_property(env, object, "heads", &list) != napi_ok) return false;
    spec->head_count = spec->id_count < 0 ? -1
                                          : fill_list(env, list, head_fields, heads, sizeof *heads,
                                                      EXPHIL_HEADS_MAX, "spec.heads", texts);
    spec->ids = ids, spec->heads = heads;
    return spec->head_count >= 0;
}

/* As fill_spec reads it. */
napi_value tell_spec(napi_env env, const exphil_spec *spec)
{
    napi_value object, value;
    napi_create_object(env, &object);
    napi_set_named_property(env, object, "fields", tell(env, spec_fields, spec));
    value = tell_list(env, id_fields, spec->ids, sizeof *spec->ids, spec->id_count);
    napi_set_named_property(env, object, "ids", value);
    value = tell_list(env, head_fields, spec->heads, sizeof *spec->heads, spec->head_count);
    napi_set_named_property(env, object, "heads", value);
    return object;
}

/* The collector sees only small externals: it is told what lies behind them whenever there is one more or one less. */
static void weigh(napi_env env, struct owner *owner)
{
    exphil_memory_info memory = EXPHIL_MEMORY_INFO_INIT;
    int64_t total;
    if (exphil_context_memory(owner->context, &memory, NULL) < 0) return;
    int64_t bytes = (int64_t)(memory.host_used_bytes + memory.device_used_bytes);
    int64_t more = bytes - owner->told;
    owner->told = bytes; /* first: what is told may start the collector, whose finalizers come here, too */
    napi_adjust_external_memory(env, more, &total);
}

static void leave(napi_env env, struct owner *owner)
{
    int64_t total;
    if (--owner->handles) {
        weigh(env, owner);
        return;
    }
    napi_adjust_external_memory(env, -owner->told, &total);
    exphil_context_destroy(owner->context);
    free(owner);
}

static void destroy(napi_env env, struct handle *handle)
{
    void *raw = handle->raw;
    if (!raw) return;
    handle->raw = NULL;
    switch (handle->kind) {
    case A_CONTEXT:
        break; /* by its owner */
    case A_MODEL:
        exphil_model_destroy(raw);
        break;
    case A_SESSION:
        exphil_session_destroy(raw);
        break;
    case A_DATASET:
        exphil_dataset_destroy(raw);
        break;
    case A_TRAINER:
        exphil_trainer_destroy(raw);
        break;
    }
    leave(env, handle->owner);
}

/* All handles of this thread, closed or not: what an external of another addon points to is looked for here, never read. */
#define BUCKETS 1024
static _Thread_local struct handle *made_here[BUCKETS];

/* The link to a handle, or the empty one at the end of its bucket. */
static struct handle **link_of(const void *data)
{
    struct handle **link = &made_here[(uintptr_t)data / 64 % BUCKETS];
    while (*link && *link != data) link = &(*link)->next;
    return link;
}

static void collected(napi_env env, void *data, void *hint)
{
    struct handle **link = link_of(data);
    (void)hint;
    if (*link) *link = (*link)->next;
    destroy(env, data);
    free(data);
}

/* Takes the object over; it is destroyed when there is no memory. */
napi_value wrap(napi_env env, enum kind kind, void *raw, struct owner *owner, struct handle **made)
{
    napi_value external = NULL;
    if (kind == A_CONTEXT && (owner = calloc(1, sizeof *owner))) owner->context = raw;
    struct handle *handle = calloc(1, sizeof *handle), lost = {.kind = kind, .raw = raw, .owner = owner};
    if (owner) owner->handles++;
    if (handle) *handle = lost;
    if (!owner || !handle || napi_create_external(env, handle, collected, NULL, &external) != napi_ok) {
        if (owner)
            destroy(env, &lost);
        else
            exphil_context_destroy(raw);
        free(handle);
        return fail(env, EXPHIL_E_MEMORY, "no memory for a handle", 0);
    }
    *link_of(handle) = handle;
    weigh(env, owner);
    if (made) *made = handle;
    return external;
}

/* Of an external that wrap made, closed or not; NULL of any other value. */
static struct handle *unwrap(napi_env env, napi_value value)
{
    napi_valuetype type = napi_undefined;
    void *data = NULL;
    napi_typeof(env, value, &type);
    if (type == napi_external) napi_get_value_external(env, value, &data);
    return *link_of(data);
}

/* "Model", the class in exphil.js; undefined of what the addon did not make. */
napi_value object_kind(napi_env env, napi_callback_info info)
{
    static const char *const names[] = {"Context", "Model", "Session", "Dataset", "Trainer"};
    napi_value value, name = NULL;
    if (!arguments(env, info, 1, &value)) return NULL;
    struct handle *handle = unwrap(env, value);
    if (handle) napi_create_string_utf8(env, names[handle->kind], NAPI_AUTO_LENGTH, &name);
    return name;
}

struct handle *handle_of(napi_env env, napi_value value, enum kind kind)
{
    static const char *const names[] = {"context", "model", "session", "dataset", "trainer"};
    struct handle *handle = unwrap(env, value);
    if (handle && handle->kind == kind && handle->raw) return handle;
    wrong(env, names[kind], "is closed, or is none");
    return NULL;
}

napi_value object_close(napi_env env, napi_callback_info info)
{
    napi_value value;
    if (!arguments(env, info, 1, &value)) return NULL;
    struct handle *handle = unwrap(env, value);
    if (!handle) return wrong(env, "close", "takes what the addon made"), NULL;
    if (handle->busy)
        return fail(env, EXPHIL_E_BUSY, "trainer: is in use on a worker; await train() first", 0);
    destroy(env, handle);
    return NULL;
}
