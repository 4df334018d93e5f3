/* The table of functions, and what happens when the VM loads, upgrades or drops this library.
 *
 * An upgrade takes the handles of the old code over. It is refused, so that the old code goes on, when handles look
 * different now or when the new code would use another copy of libexphil than the one that made the objects. */
#include "nif.h"

#define X(name, arity, flags) NIF(nif_##name);
#include "nif_functions.h"

#define X(name, arity, flags) {#name, arity, nif_##name, flags},
static ErlNifFunc functions[] = {
#include "nif_functions.h"
};

/* What load returns, and LibExphil.Nif explains. */
enum { LOAD_FAILED = 1, LOAD_OLD_LIBRARY = 2, UPGRADE_LAYOUT = 3, UPGRADE_LIBRARY = 4 };

struct loaded {
    int32_t layout;
    uint32_t (*library)(void); /* exphil_version of the copy in use */
};

static struct loaded here = {NIF_LAYOUT, exphil_version};

static int open_all(ErlNifEnv *env, void **priv, ErlNifResourceFlags flags)
{
    if (exphil_version() / 100 < EXPHIL_VERSION / 100) return LOAD_OLD_LIBRARY;
    if (!terms_load(env) || !handles_open(env, flags)) return LOAD_FAILED;
    *priv = &here;
    return 0;
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)info;
    return open_all(env, priv, ERL_NIF_RT_CREATE);
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv, ERL_NIF_TERM info)
{
    (void)info;
    const struct loaded *old = *old_priv;
    if (old->layout != here.layout) return UPGRADE_LAYOUT;
    if (old->library != here.library) return UPGRADE_LIBRARY;
    return open_all(env, priv, (ErlNifResourceFlags)(ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER));
}

NIF(nif_version)
{
    (void)argc, (void)argv;
    return make_pair(env, make_text(env, exphil_version_string()), enif_make_uint(env, exphil_version()));
}

ERL_NIF_INIT(Elixir.LibExphil.Nif, functions, load, NULL, upgrade, NULL)
