/* What a frame of a game looks like: a map with lists of heads and ids, or the names of a Melee preset. */
#include "nif.h"

static const char *const head_kinds[] = {"bernoulli", "categorical", NULL};

struct head_in {
    const char *name;
    int32_t kind, count, neutral;
};
struct id_in {
    const char *name;
    int32_t entries, width;
};
struct spec_in {
    const char *layout, *codec;
    int64_t floats;
    uint64_t layout_hash;
};

#define ONE(in, member, type, names) FIELD(struct in, member, type, 1, names, NULL)
static const field head_fields[] = {ONE(head_in, name, T_TEXT, NULL), ONE(head_in, kind, T_ENUM, head_kinds),
                                    ONE(head_in, count, T_I32, NULL), ONE(head_in, neutral, T_I32, NULL)};
static const field id_fields[] = {ONE(id_in, name, T_TEXT, NULL), ONE(id_in, entries, T_I32, NULL),
                                  ONE(id_in, width, T_I32, NULL)};
static const field spec_fields[] = {ONE(spec_in, layout, T_TEXT, NULL), ONE(spec_in, codec, T_TEXT, NULL),
                                    ONE(spec_in, floats, T_I64, NULL),
                                    ONE(spec_in, layout_hash, T_U64, NULL)};
record spec_head = {.name = "head", .bytes = sizeof(struct head_in), .fields = head_fields, .field_count = 4};
record spec_id = {.name = "id", .bytes = sizeof(struct id_in), .fields = id_fields, .field_count = 3};
record spec_map = {.name = "spec", .bytes = sizeof(struct spec_in), .fields = spec_fields, .field_count = 4};

/* The list under key, taken out of the map; an empty list when it is not there. */
static unsigned take_list(call *c, ERL_NIF_TERM *map, const char *key, unsigned most, ERL_NIF_TERM *list)
{
    unsigned length = 0;
    *list = enif_make_list(c->env, 0);
    if (enif_get_map_value(c->env, *map, atom(c->env, key), list)) {
        enif_make_map_remove(c->env, *map, atom(c->env, key), map);
        if (!enif_get_list_length(c->env, *list, &length) || length > most)
            fail(c, EXPHIL_E_INVALID, "spec: %s: not a list of at most %u", key, most);
    }
    return length;
}

static const exphil_spec *read_own_spec(call *c, ERL_NIF_TERM map)
{
    ERL_NIF_TERM heads, ids, each;
    struct spec_in in = {0};
    unsigned head_count = take_list(c, &map, "heads", EXPHIL_HEADS_MAX, &heads);
    unsigned id_count = take_list(c, &map, "ids", EXPHIL_IDS_MAX, &ids);
    exphil_spec *spec = chunk(c, sizeof *spec);
    exphil_head_spec *head = chunk(c, (head_count + 1) * sizeof *head);
    exphil_id_spec *id = chunk(c, (id_count + 1) * sizeof *id);
    if (!read_record(c, map, &spec_map, &in)) return NULL;
    *spec = (exphil_spec){sizeof *spec, in.layout,  in.codec, in.floats,     id_count,
                          id,           head_count, head,     in.layout_hash};
    for (; enif_get_list_cell(c->env, heads, &each, &heads); head++) {
        struct head_in one = {0};
        read_record(c, each, &spec_head, &one);
        *head = (exphil_head_spec){one.name, one.kind, one.count, one.neutral, 0};
    }
    for (; enif_get_list_cell(c->env, ids, &each, &ids); id++) {
        struct id_in one = {0};
        read_record(c, each, &spec_id, &one);
        *id = (exphil_id_spec){one.name, one.entries, one.width};
    }
    return failed(c) ? NULL : spec;
}

const exphil_spec *read_spec(call *c, ERL_NIF_TERM term)
{
    const ERL_NIF_TERM *pair;
    int arity;
    if (failed(c) || enif_is_identical(term, atom_nil)) return NULL;
    if (enif_is_map(c->env, term)) return read_own_spec(c, term);
    if (!enif_get_tuple(c->env, term, &arity, &pair) || arity != 2) {
        fail(c, EXPHIL_E_INVALID, "spec: neither a map nor {layout, codec}");
        return NULL;
    }
    const char *layout = read_text_or_nil(c, pair[0], "spec: layout");
    const char *codec = read_text_or_nil(c, pair[1], "spec: codec");
    exphil_spec *spec = chunk(c, sizeof *spec);
    if (!spec) return NULL;
    *spec = (exphil_spec)EXPHIL_SPEC_INIT;
    return done(c, exphil_melee_spec(layout, codec, spec, &c->error)) ? spec : NULL;
}

ERL_NIF_TERM make_spec(ErlNifEnv *env, const exphil_spec *spec)
{
    struct spec_in in = {spec->layout, spec->codec, spec->float_count, spec->layout_hash};
    ERL_NIF_TERM heads = enif_make_list(env, 0), ids = heads, map = enif_make_new_map(env);
    for (int64_t i = spec->head_count; i-- > 0;) {
        const exphil_head_spec *head = &spec->heads[i];
        ERL_NIF_TERM one = with_key(env, enif_make_new_map(env), "name", make_text(env, head->name));
        one = with_key(env, one, "kind", atom(env, head_kinds[head->kind]));
        one = with_key(env, one, "count", enif_make_int(env, head->count));
        heads =
            enif_make_list_cell(env, with_key(env, one, "neutral", enif_make_int(env, head->neutral)), heads);
    }
    for (int64_t i = spec->id_count; i-- > 0;) {
        const exphil_id_spec *id = &spec->ids[i];
        ERL_NIF_TERM one = with_key(env, enif_make_new_map(env), "name", make_text(env, id->name));
        one = with_key(env, one, "entries", enif_make_int(env, id->entries));
        ids = enif_make_list_cell(env, with_key(env, one, "width", enif_make_int(env, id->width)), ids);
    }
    map = with_key(env, map, "layout", make_text(env, in.layout));
    map = with_key(env, map, "codec", make_text(env, in.codec));
    map = with_key(env, map, "floats", enif_make_int64(env, in.floats));
    map = with_key(env, map, "layout_hash", enif_make_uint64(env, in.layout_hash));
    return with_key(env, with_key(env, map, "heads", heads), "ids", ids);
}
