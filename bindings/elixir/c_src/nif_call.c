/* One call from Elixir: what it holds, how it fails, how it answers. A thread-local pointer tells hooks of the library
 * which call they run in; the library asks them from the calling thread only. */
#include "nif.h"

#include <stdarg.h>
#include <stdio.h>

struct chunk {
    struct chunk *next;
    max_align_t data[];
};

static _Thread_local call *current;

call *call_current(void)
{
    return current;
}

void call_begin(call *c, ErlNifEnv *env)
{
    c->env = env;
    c->outer = current;
    c->stop = NULL;
    c->chunks = NULL;
    c->spec = NULL;
    c->held_count = 0;
    c->error.struct_size = sizeof c->error;
    c->error.status = EXPHIL_OK;
    c->error.native_code = 0;
    c->error.message[0] = '\0';
    current = c;
}

void call_end(call *c)
{
    while (c->held_count > 0) leave(c->held[--c->held_count]);
    while (c->chunks) {
        struct chunk *next = c->chunks->next;
        enif_free(c->chunks);
        c->chunks = next;
    }
    current = c->outer;
}

bool fail(call *c, exphil_status status, const char *format, ...)
{
    if (failed(c)) return false;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(c->error.message, sizeof c->error.message, format, args);
    va_end(args);
    c->error.status = status;
    return false;
}

bool done(call *c, exphil_status status)
{
    if (status >= 0) return true;
    if (!failed(c)) fail(c, status, "%s", exphil_status_name(status));
    return false;
}

void *chunk(call *c, size_t bytes)
{
    if (failed(c)) return NULL;
    struct chunk *made = enif_alloc(sizeof *made + bytes);
    if (!made) {
        fail(c, EXPHIL_E_MEMORY, "could not get %zu bytes", bytes);
        return NULL;
    }
    made->next = c->chunks;
    c->chunks = made;
    return memset(made->data, 0, bytes);
}

ERL_NIF_TERM status_atom(ErlNifEnv *env, exphil_status status)
{
    const char *name = exphil_status_name(status);
    const char *start = strncmp(name, "EXPHIL_E_", 9) == 0 ? name + 9 : name + 7;
    char lower[32];
    size_t i = 0;
    for (; i < sizeof lower - 1 && start[i]; i++)
        lower[i] = (char)(start[i] >= 'A' && start[i] <= 'Z' ? start[i] + 32 : start[i]);
    lower[i] = '\0';
    return atom(env, lower);
}

ERL_NIF_TERM error_term(ErlNifEnv *env, const exphil_error *error)
{
    ERL_NIF_TERM keys[] = {atom_struct, atom(env, "__exception__"), atom(env, "status"),
                           atom(env, "native_code"), atom(env, "message")};
    ERL_NIF_TERM values[] = {atom(env, "Elixir.LibExphil.Error"), atom_true, status_atom(env, error->status),
                             enif_make_int(env, error->native_code), make_text(env, error->message)};
    ERL_NIF_TERM map;
    enif_make_map_from_arrays(env, keys, values, 5, &map);
    return map;
}

ERL_NIF_TERM finish(call *c, ERL_NIF_TERM value)
{
    ErlNifEnv *env = c->env;
    call_end(c);
    if (failed(c)) return make_pair(env, atom_error, error_term(env, &c->error));
    return value ? value : atom_ok;
}

ERL_NIF_TERM finish_ok(call *c, ERL_NIF_TERM value)
{
    return finish(c, failed(c) ? 0 : make_pair(c->env, atom_ok, value));
}
