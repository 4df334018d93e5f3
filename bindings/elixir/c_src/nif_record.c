/* Records: maps of Elixir to structs of C by their tables, and back. */
#include "nif.h"

#include <math.h>
#include <stdio.h>

/* ---- one value ------------------------------------------------------------------------------------------- */

static size_t bytes_of(enum type type)
{
    static const size_t bytes[] = {[T_I8] = 1,  [T_U8] = 1,  [T_I16] = 2, [T_U16] = 2, [T_I32] = 4,
                                   [T_U32] = 4, [T_I64] = 8, [T_U64] = 8, [T_F32] = 4, [T_F64] = 8};
    return bytes[type];
}

double read_number(call *c, ERL_NIF_TERM term, const char *what)
{
    double value = 0;
    ErlNifSInt64 integer;
    if (enif_get_double(c->env, term, &value)) return value;
    if (enif_get_int64(c->env, term, &integer)) return (double)integer;
    if (enif_is_identical(term, atom_nil)) return (double)NAN;
    if (enif_is_identical(term, atom(c->env, "infinity"))) return (double)INFINITY;
    if (enif_is_identical(term, atom(c->env, "neg_infinity"))) return (double)-INFINITY;
    fail(c, EXPHIL_E_INVALID, "%s: not a number", what);
    return 0;
}

static uint64_t read_u64(call *c, ERL_NIF_TERM term, const char *what)
{
    ErlNifUInt64 value = 0;
    if (!enif_get_uint64(c->env, term, &value))
        fail(c, EXPHIL_E_INVALID, "%s: not an integer in 0..2^64-1", what);
    return value;
}

static void read_number_at(call *c, ERL_NIF_TERM term, const char *what, enum type type, char *to)
{
    static const int64_t low[] = {[T_I8] = INT8_MIN,   [T_U8] = 0,  [T_I16] = INT16_MIN, [T_U16] = 0,
                                  [T_I32] = INT32_MIN, [T_U32] = 0, [T_I64] = INT64_MIN};
    static const int64_t high[] = {
        [T_I8] = INT8_MAX,   [T_U8] = UINT8_MAX,   [T_I16] = INT16_MAX, [T_U16] = UINT16_MAX,
        [T_I32] = INT32_MAX, [T_U32] = UINT32_MAX, [T_I64] = INT64_MAX};
    if (type == T_F32) {
        float value = (float)read_number(c, term, what);
        memcpy(to, &value, sizeof value);
    } else if (type == T_F64) {
        double value = read_number(c, term, what);
        memcpy(to, &value, sizeof value);
    } else if (type == T_U64) {
        uint64_t value = read_u64(c, term, what);
        memcpy(to, &value, sizeof value);
    } else {
        /* Little-endian: the low bytes come first. */
        int64_t value = read_integer(c, term, what, low[type], high[type]);
        memcpy(to, &value, bytes_of(type));
    }
}

static ERL_NIF_TERM make_number_at(ErlNifEnv *env, enum type type, const char *from)
{
    uint64_t bits = 0;
    float single;
    double number;
    memcpy(&bits, from, bytes_of(type));
    switch (type) {
    case T_F32:
        memcpy(&single, from, sizeof single);
        return make_number(env, (double)single);
    case T_F64:
        memcpy(&number, from, sizeof number);
        return make_number(env, number);
    case T_I8:
        return enif_make_int(env, (int8_t)bits);
    case T_I16:
        return enif_make_int(env, (int16_t)bits);
    case T_I32:
        return enif_make_int(env, (int32_t)bits);
    case T_I64:
        return enif_make_int64(env, (int64_t)bits);
    default:
        return enif_make_uint64(env, bits);
    }
}

/* ---- lists and what is pointed to -------------------------------------------------------------------------- */

/* The elements of a list of exactly this length. */
static bool list_of(call *c, ERL_NIF_TERM list, const char *what, int64_t count)
{
    unsigned length = 0;
    if (failed(c)) return false;
    if (!enif_get_list_length(c->env, list, &length))
        return fail(c, EXPHIL_E_INVALID, "%s: not a list", what);
    if ((int64_t)length != count)
        return fail(c, EXPHIL_E_INVALID, "%s: has %u elements, not %lld", what, length, (long long)count);
    return true;
}

static void read_numbers(call *c, ERL_NIF_TERM list, const char *what, enum type type, int64_t count,
                         char *to)
{
    ERL_NIF_TERM head;
    if (!list_of(c, list, what, count)) return;
    for (; enif_get_list_cell(c->env, list, &head, &list); to += bytes_of(type))
        read_number_at(c, head, what, type, to);
}

static void point(char *to, const void *pointer)
{
    memcpy(to, &pointer, sizeof pointer);
}

static void read_floats_at(call *c, ERL_NIF_TERM list, const char *what, int64_t head, char *to)
{
    if (!c->spec || head >= c->spec->head_count) {
        fail(c, EXPHIL_E_INVALID, "%s: not here", what);
        return;
    }
    int64_t count = c->spec->heads[head].count;
    char *values = chunk(c, (size_t)count * sizeof(float));
    if (values) read_numbers(c, list, what, T_F32, count, values);
    point(to, values);
}

/* Records in a list hold no lists of records: the recursion is two deep. NOLINTBEGIN(misc-no-recursion) */
static bool read_fields(call *c, ERL_NIF_TERM map, const record *r, void *to, int64_t head);

static void read_records_at(call *c, ERL_NIF_TERM list, const char *what, const record *r, char *to)
{
    ERL_NIF_TERM head;
    if (!c->spec || !list_of(c, list, what, c->spec->head_count)) return;
    char *records = chunk(c, (size_t)c->spec->head_count * r->bytes);
    if (!records) return;
    for (int64_t i = 0; enif_get_list_cell(c->env, list, &head, &list); i++)
        if (!read_fields(c, head, r, records + (size_t)i * r->bytes, i)) return;
    point(to, records);
}

static void read_i32_at(call *c, int32_t value, char *to)
{
    int32_t *kept = chunk(c, sizeof *kept);
    if (kept) *kept = value;
    point(to, kept);
}

static void read_field(call *c, ERL_NIF_TERM term, const record *r, const field *f, int64_t head, char *to)
{
    char what[96];
    (void)snprintf(what, sizeof what, "%s: %s", r->name, f->name);
    int32_t word;
    switch (f->type) {
    case T_BOOL:
        word = read_flag(c, term, what);
        memcpy(to, &word, sizeof word);
        break;
    case T_ENUM:
        word = read_name(c, term, what, f->names);
        memcpy(to, &word, sizeof word);
        break;
    case T_ENUM_AT:
        read_i32_at(c, read_name(c, term, what, f->names), to);
        break;
    case T_I32_AT:
        read_i32_at(c, (int32_t)read_integer(c, term, what, INT32_MIN, INT32_MAX), to);
        break;
    case T_TEXT:
        point(to, read_text_or_nil(c, term, what));
        break;
    case T_SPEC:
        point(to, read_spec(c, term));
        break;
    case T_FLOATS_AT:
        read_floats_at(c, term, what, head, to);
        break;
    case T_RECORDS_AT:
        read_records_at(c, term, what, f->record, to);
        break;
    case T_CHARS:
        fail(c, EXPHIL_E_INVALID, "%s: cannot be set", what);
        break;
    default:
        if (f->count > 1)
            read_numbers(c, term, what, f->type, f->count, to);
        else
            read_number_at(c, term, what, f->type, to);
    }
}

/* ---- whole records ----------------------------------------------------------------------------------------- */

static bool name_unknown_key(call *c, ERL_NIF_TERM map, const record *r)
{
    ErlNifMapIterator at;
    ERL_NIF_TERM key, value;
    enif_map_iterator_create(c->env, map, &at, ERL_NIF_MAP_ITERATOR_FIRST);
    for (; enif_map_iterator_get_pair(c->env, &at, &key, &value); enif_map_iterator_next(c->env, &at)) {
        size_t i = 0;
        while (i <= r->field_count && !enif_is_identical(key, r->keys[i])) i++;
        if (i <= r->field_count) continue;
        char name[96];
        enif_snprintf(name, sizeof name, "%T", key);
        enif_map_iterator_destroy(c->env, &at);
        return fail(c, EXPHIL_E_INVALID, "%s: there is no %s", r->name, name);
    }
    enif_map_iterator_destroy(c->env, &at);
    return fail(c, EXPHIL_E_INTERNAL, "%s: keys were miscounted", r->name);
}

static bool read_fields(call *c, ERL_NIF_TERM map, const record *r, void *to, int64_t head)
{
    size_t size = 0, found = 0;
    ERL_NIF_TERM value;
    if (failed(c)) return false;
    if (!enif_get_map_size(c->env, map, &size)) return fail(c, EXPHIL_E_INVALID, "%s: not a map", r->name);
    for (size_t i = 0; i < r->field_count; i++) {
        if (!enif_get_map_value(c->env, map, r->keys[i], &value)) continue;
        read_field(c, value, r, &r->fields[i], head, (char *)to + r->fields[i].offset);
        if (failed(c)) return false;
        found++;
    }
    if (found < size && enif_get_map_value(c->env, map, atom_struct, &value)) found++;
    return found == size || name_unknown_key(c, map, r);
}

/* NOLINTEND(misc-no-recursion) */

bool read_record(call *c, ERL_NIF_TERM map, const record *r, void *to)
{
    return read_fields(c, map, r, to, 0);
}

/* A number that is newer than the list stays a number. */
static ERL_NIF_TERM make_name(ErlNifEnv *env, const char *const *names, int32_t number)
{
    for (int32_t i = 0; names[i]; i++)
        if (i == number) return atom(env, names[i]);
    return enif_make_int(env, number);
}

static ERL_NIF_TERM make_field(ErlNifEnv *env, const field *f, const char *from)
{
    int32_t word;
    if (f->type == T_CHARS) return make_text(env, from);
    if (f->type == T_BOOL || f->type == T_ENUM) {
        memcpy(&word, from, sizeof word);
        if (f->type == T_ENUM) return make_name(env, f->names, word);
        return word ? atom_true : atom_false;
    }
    if (f->count <= 1) return make_number_at(env, f->type, from);
    ERL_NIF_TERM list = enif_make_list(env, 0);
    for (int32_t i = f->count; i-- > 0;)
        list = enif_make_list_cell(env, make_number_at(env, f->type, from + (size_t)i * bytes_of(f->type)),
                                   list);
    return list;
}

ERL_NIF_TERM make_record(ErlNifEnv *env, const record *r, const void *from)
{
    ERL_NIF_TERM values[RECORD_FIELDS + 1], keys[RECORD_FIELDS + 1], map;
    size_t count = r->field_count;
    memcpy(keys, r->keys, (count + 1) * sizeof *keys);
    for (size_t i = 0; i < count; i++)
        values[i] = make_field(env, &r->fields[i], (const char *)from + r->fields[i].offset);
    values[count] = r->module_atom;
    enif_make_map_from_arrays(env, keys, values, count + (r->module != NULL), &map);
    return map;
}

ERL_NIF_TERM with_key(ErlNifEnv *env, ERL_NIF_TERM map, const char *key, ERL_NIF_TERM value)
{
    ERL_NIF_TERM more;
    enif_make_map_put(env, map, atom(env, key), value, &more);
    return more;
}
