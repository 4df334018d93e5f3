/* The addon of Node: C functions that exphil.js calls and wraps as classes. Objects are externals that hold a struct handle;
 * structures of the header are filled from plain JavaScript objects, and told as such, by tables of their fields. */
#ifndef EXPHIL_ADDON_H
#define EXPHIL_ADDON_H

#include <exphil/exphil.h>
#include <float.h>
#include <math.h>
#include <node_api.h>
#include <stdatomic.h>
#include <stdbool.h>

enum kind { A_CONTEXT, A_MODEL, A_SESSION, A_DATASET, A_TRAINER };

/* A context, which lives until the last handle of it and of what lives on it is closed. told: how much memory of all that the
 * collector was last told of. */
struct owner {
    exphil_context *context;
    int64_t told;
    int handles;
};

/* One object of the library. counts are what arrays must hold: of a session for all streams together. */
struct handle {
    struct handle *next; /* of its bucket in the table of all */
    enum kind kind;
    void *raw; /* NULL: closed, and owner too */
    struct owner *owner;
    bool busy; /* a worker trains it */
    atomic_int stop;
    int64_t streams, floats, ids, actions, noise, logits, heads;
};

enum field_kind { F_I32, F_FLAG, F_I64, F_U64, F_F64, F_F32, F_U32, F_U16, F_U8, F_I8, F_NAME, F_TEXT };

/* F_FLAG is an int32_t that may be given as a boolean, F_NAME a const char *, F_TEXT an array of characters. A table ends with a
 * name of NULL. */
struct field {
    const char *name;
    size_t offset;
    enum field_kind kind;
};
#define FIELD(type, kind, name)                                                                              \
  {                                                                                                          \
#    name, offsetof(type, name), kind                                                                        \
  }
#define FIELDS_END                                                                                           \
  {                                                                                                          \
    NULL, 0, F_I32                                                                                           \
  }

#define SAFE 9007199254740991.0 /* 2^53 - 1: up to it a double tells all whole numbers apart */
static const struct {
    double low, high;
} field_range[] = {[F_I32] = {INT32_MIN, INT32_MAX}, [F_FLAG] = {INT32_MIN, INT32_MAX},
                   [F_I64] = {-SAFE, SAFE},          [F_U64] = {0, SAFE},
                   [F_F64] = {-DBL_MAX, DBL_MAX},    [F_F32] = {-(double)FLT_MAX, (double)FLT_MAX},
                   [F_U32] = {0, UINT32_MAX},        [F_U16] = {0, UINT16_MAX},
                   [F_U8] = {0, UINT8_MAX},          [F_I8] = {INT8_MIN, INT8_MAX}};

/* NaN and infinity fit where the library will see them: it refuses them with a sentence of its own. */
static inline bool fits(enum field_kind kind, double number)
{
    bool within = number >= field_range[kind].low && number <= field_range[kind].high;
    if (kind == F_F32 || kind == F_F64) return within || !isfinite(number);
    return within && (double)(int64_t)number == number;
}

static inline void store(enum field_kind kind, double number, void *place)
{
    switch (kind) {
    case F_I32:
    case F_FLAG:
        *(int32_t *)place = (int32_t)number;
        break;
    case F_I64:
        *(int64_t *)place = (int64_t)number;
        break;
    case F_U64:
        *(uint64_t *)place = (uint64_t)number;
        break;
    case F_F64:
        *(double *)place = number;
        break;
    case F_F32:
        *(float *)place = (float)number;
        break;
    case F_U32:
        *(uint32_t *)place = (uint32_t)number;
        break;
    case F_U16:
        *(uint16_t *)place = (uint16_t)number;
        break;
    case F_U8:
        *(uint8_t *)place = (uint8_t)number;
        break;
    default:
        *(int8_t *)place = (int8_t)number;
        break;
    }
}

/* A field of exphil_melee_frame or of what it holds: count elements of size bytes each; of: they are structures with members of
 * their own. known: which EXPHIL_MELEE_HAS_... it belongs to. Ends as a table of fields does. */
struct member {
    const char *name;
    size_t offset, size;
    enum field_kind kind;
    uint32_t count, known;
    const struct member *of;
};

struct constant {
    const char *name;
    uint32_t value;
};

/* Tables (addon_fields.c, which is made of the headers). */
extern const struct field context_fields[], memory_fields[], id_fields[], head_fields[], spec_fields[],
    pad_fields[], model_fields[], info_fields[], replay_fields[], result_fields[], dataset_info_fields[],
    sampling_fields[], optimizer_fields[], trainer_fields[], metrics_fields[], report_fields[], play_fields[],
    session_fields[], session_info_fields[];
extern const struct member character_members[], item_members[], frame_members[];
extern const struct constant buttons[], known[];

/* Texts of a call, which the library reads until it returns. */
struct texts {
    char *item[128];
    int count;
};

/* Values (addon_values.c). false: an exception is pending. */
bool make_error_class(napi_env env, napi_value exports);
bool arguments(napi_env env, napi_callback_info info, size_t count, napi_value *values);
napi_value fail(napi_env env, exphil_status status, const char *message, int32_t native_code);
napi_value make_error(napi_env env, const exphil_error *error, exphil_status status);
bool check(napi_env env, exphil_status status, const exphil_error *error);
bool wrong(napi_env env, const char *name, const char *what);
bool is_set(napi_env env, napi_value value);
/* Every number goes this way, through fits: one that its type cannot hold is refused by name, never cut. */
bool refuse_number(napi_env env, const char *name, enum field_kind kind, double number);
bool read_number(napi_env env, napi_value value, const char *name, enum field_kind kind, void *place);
char *keep_text(napi_env env, struct texts *texts, napi_value value, const char *what);
void drop_texts(struct texts *texts);
bool fill(napi_env env, napi_value object, const struct field *fields, void *raw, struct texts *texts);
napi_value tell(napi_env env, const struct field *fields, const void *raw);
napi_value tell_list(napi_env env, const struct field *fields, const void *raw, size_t size, int64_t count);
int64_t fill_list(napi_env env, napi_value list, const struct field *fields, void *raw, size_t size,
                  uint32_t most, const char *what, struct texts *texts);
/* A typed array of this type and count; a count below 0 fits none. */
bool array(napi_env env, napi_value value, napi_typedarray_type type, int64_t count, const char *what,
           void **data);
bool fill_spec(napi_env env, napi_value object, exphil_spec *spec, struct texts *texts, exphil_id_spec *ids,
               exphil_head_spec *heads);
napi_value tell_spec(napi_env env, const exphil_spec *spec);

/* Handles. */
struct handle *handle_of(napi_env env, napi_value value, enum kind kind);
/* owner: of what the object lives on; NULL for a context. */
napi_value wrap(napi_env env, enum kind kind, void *raw, struct owner *owner, struct handle **handle);
napi_value wrap_model(napi_env env, exphil_model *model, struct owner *owner);
napi_value session_done(napi_env env, struct handle *session, exphil_status status);
napi_value object_close(napi_env env, napi_callback_info info);
napi_value object_kind(napi_env env, napi_callback_info info);

/* What exphil.js calls. */
struct entry {
    const char *name;
    napi_callback call;
};
extern const struct entry play_entries[], train_entries[], melee_entries[];

#endif
