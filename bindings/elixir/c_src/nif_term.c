/* Single terms to C values and back. What does not fit is EXPHIL_E_INVALID with the name of the argument. */
#include "nif.h"

#include <math.h>
#include <stdio.h>

ERL_NIF_TERM atom_ok, atom_error, atom_nil, atom_true, atom_false, atom_struct;

ERL_NIF_TERM atom(ErlNifEnv *env, const char *name)
{
    return enif_make_atom(env, name);
}

bool terms_load(ErlNifEnv *env)
{
    atom_ok = atom(env, "ok");
    atom_error = atom(env, "error");
    atom_nil = atom(env, "nil");
    atom_true = atom(env, "true");
    atom_false = atom(env, "false");
    atom_struct = atom(env, "__struct__");
    for (record *const *r = all_records; *r; r++) {
        if ((*r)->field_count > RECORD_FIELDS) return false;
        for (size_t i = 0; i < (*r)->field_count; i++) (*r)->keys[i] = atom(env, (*r)->fields[i].name);
        (*r)->keys[(*r)->field_count] = atom_struct;
        if ((*r)->module) (*r)->module_atom = atom(env, (*r)->module);
    }
    return true;
}

bool read_binary(call *c, ERL_NIF_TERM term, const char *what, ErlNifBinary *binary)
{
    if (failed(c)) return false;
    return enif_inspect_binary(c->env, term, binary) || fail(c, EXPHIL_E_INVALID, "%s: not a binary", what);
}

const char *read_text(call *c, ERL_NIF_TERM term, const char *what)
{
    ErlNifBinary binary;
    if (!read_binary(c, term, what, &binary)) return NULL;
    if (memchr(binary.data, 0, binary.size)) {
        fail(c, EXPHIL_E_INVALID, "%s: has a zero byte", what);
        return NULL;
    }
    char *text = chunk(c, binary.size + 1);
    if (text) memcpy(text, binary.data, binary.size);
    return text;
}

const char *read_text_or_nil(call *c, ERL_NIF_TERM term, const char *what)
{
    return enif_is_identical(term, atom_nil) ? NULL : read_text(c, term, what);
}

int64_t read_integer(call *c, ERL_NIF_TERM term, const char *what, int64_t low, int64_t high)
{
    ErlNifSInt64 value = 0;
    if (failed(c)) return 0;
    if (!enif_get_int64(c->env, term, &value))
        fail(c, EXPHIL_E_INVALID, "%s: not an integer of 64 bits", what);
    else if (value < low || value > high)
        fail(c, EXPHIL_E_INVALID, "%s: %lld is not in %lld..%lld", what, (long long)value, (long long)low,
             (long long)high);
    return value;
}

int32_t read_flag(call *c, ERL_NIF_TERM term, const char *what)
{
    int32_t flag = enif_is_identical(term, atom_true);
    if (!flag && !enif_is_identical(term, atom_false)) fail(c, EXPHIL_E_INVALID, "%s: not a boolean", what);
    return flag;
}

int32_t read_name(call *c, ERL_NIF_TERM term, const char *what, const char *const *names)
{
    char name[32];
    if (failed(c)) return 0;
    if (enif_get_atom(c->env, term, name, sizeof name, ERL_NIF_LATIN1) > 0)
        for (int32_t i = 0; names[i]; i++)
            if (strcmp(name, names[i]) == 0) return i;
    char list[160];
    size_t used = 0;
    for (int32_t i = 0; names[i] && used < sizeof list; i++) {
        int more = snprintf(list + used, sizeof list - used, "%s:%s", i ? ", " : "", names[i]);
        used += more > 0 ? (size_t)more : 0;
    }
    fail(c, EXPHIL_E_INVALID, "%s: not one of %s", what, list);
    return 0;
}

const void *read_array(call *c, ERL_NIF_TERM term, const char *what, int64_t count, size_t element_bytes)
{
    ErlNifBinary binary;
    if (!read_binary(c, term, what, &binary)) return NULL;
    if (count < 0 || (uint64_t)count > SIZE_MAX / element_bytes ||
        binary.size != (size_t)count * element_bytes) {
        fail(c, EXPHIL_E_INVALID, "%s: has %zu bytes, %lld elements of %zu are wanted", what, binary.size,
             (long long)count, element_bytes);
        return NULL;
    }
    if ((uintptr_t)binary.data % element_bytes == 0) return binary.data;
    void *copy = chunk(c, binary.size);
    return copy ? memcpy(copy, binary.data, binary.size) : NULL;
}

ERL_NIF_TERM make_binary(ErlNifEnv *env, const void *data, size_t bytes)
{
    ERL_NIF_TERM term;
    unsigned char *to = enif_make_new_binary(env, bytes, &term);
    if (bytes) memcpy(to, data, bytes);
    return term;
}

ERL_NIF_TERM make_text(ErlNifEnv *env, const char *text)
{
    return text ? make_binary(env, text, strlen(text)) : atom_nil;
}

ERL_NIF_TERM make_number(ErlNifEnv *env, double value)
{
    if (isnan(value)) return atom_nil;
    if (isinf(value)) return atom(env, value > 0 ? "infinity" : "neg_infinity");
    return enif_make_double(env, value);
}

ERL_NIF_TERM make_pair(ErlNifEnv *env, ERL_NIF_TERM a, ERL_NIF_TERM b)
{
    return enif_make_tuple2(env, a, b);
}
