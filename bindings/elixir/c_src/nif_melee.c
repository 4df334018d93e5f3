/* Melee: frames and controllers between Elixir's structs and C's, and the library's one encoder. */
#include "nif.h"

/* Of a frame all but its characters and items, which are lists and maps of their own. */
#define FRAME(member, type) FIELD(exphil_melee_frame, member, type, 1, NULL, NULL)
static const field frame_fields[] = {
    FRAME(frame, T_I32),         FRAME(stage, T_I32),         FRAME(own_port, T_I32),
    FRAME(opponent_port, T_I32), FRAME(platform_left, T_F32), FRAME(platform_right, T_F32),
    FRAME(wind, T_I32),          FRAME(stadium_kind, T_I32),  FRAME(stadium_event, T_I32)};
record frame_map = {.name = "frame",
                    .module = "Elixir.LibExphil.Melee.Frame",
                    .bytes = sizeof(exphil_melee_frame),
                    .fields = frame_fields,
                    .field_count = 9};

/* Says which one of several was refused: a player by its port, an item by its place in the list. */
static bool read_one_of(call *c, ERL_NIF_TERM map, const char *what, int64_t which, const record *r, void *to)
{
    char said[sizeof c->error.message];
    if (read_record(c, map, r, to)) return true;
    exphil_status status = c->error.status;
    memcpy(said, c->error.message, sizeof said);
    c->error.status = EXPHIL_OK;
    return fail(c, status, "%s: %lld: %s", what, (long long)which, said);
}

static bool read_characters(call *c, ERL_NIF_TERM map, const char *what, exphil_melee_character *to)
{
    ErlNifMapIterator at;
    ERL_NIF_TERM key, value;
    if (!enif_is_map(c->env, map)) return fail(c, EXPHIL_E_INVALID, "frame: %s: not a map of ports", what);
    enif_map_iterator_create(c->env, map, &at, ERL_NIF_MAP_ITERATOR_FIRST);
    for (; !failed(c) && enif_map_iterator_get_pair(c->env, &at, &key, &value);
         enif_map_iterator_next(c->env, &at)) {
        int64_t port = read_integer(c, key, what, 1, 4);
        if (failed(c)) break;
        to[port - 1].present = 1;
        to[port - 1].known = EXPHIL_MELEE_HAS_ALL;
        read_one_of(c, value, what, port, &melee_character, &to[port - 1]);
    }
    enif_map_iterator_destroy(c->env, &at);
    return !failed(c);
}

static bool read_items(call *c, ERL_NIF_TERM list, exphil_melee_frame *frame)
{
    unsigned count = 0;
    ERL_NIF_TERM each;
    if (!enif_get_list_length(c->env, list, &count) || count > EXPHIL_MELEE_ITEMS_MAX)
        return fail(c, EXPHIL_E_INVALID, "frame: items: not a list of at most %d", EXPHIL_MELEE_ITEMS_MAX);
    frame->item_count = (int32_t)count;
    for (int i = 0; enif_get_list_cell(c->env, list, &each, &list); i++) {
        frame->item[i].owner = -1;
        if (!read_one_of(c, each, "items", i, &melee_item, &frame->item[i])) return false;
    }
    return true;
}

/* Takes a key out of the map if it is there. */
static bool take(call *c, ERL_NIF_TERM *map, const char *key, ERL_NIF_TERM *value)
{
    ERL_NIF_TERM name = atom(c->env, key);
    return enif_get_map_value(c->env, *map, name, value) && enif_make_map_remove(c->env, *map, name, map);
}

bool read_frame(call *c, ERL_NIF_TERM term, exphil_melee_frame *frame)
{
    ERL_NIF_TERM value;
    if (failed(c)) return false;
    if (!enif_is_map(c->env, term)) return fail(c, EXPHIL_E_INVALID, "frame: not a map");
    *frame = (exphil_melee_frame)EXPHIL_MELEE_FRAME_INIT;
    frame->platform_left = 20;
    frame->platform_right = 28;
    if (take(c, &term, "players", &value) && !read_characters(c, value, "players", frame->player))
        return false;
    if (take(c, &term, "followers", &value) && !read_characters(c, value, "followers", frame->follower))
        return false;
    if (take(c, &term, "items", &value) && !read_items(c, value, frame)) return false;
    return read_record(c, term, &frame_map, frame);
}

static ERL_NIF_TERM make_characters(ErlNifEnv *env, const exphil_melee_character *characters)
{
    ERL_NIF_TERM map = enif_make_new_map(env);
    for (int i = 0; i < 4; i++) {
        if (!characters[i].present) continue;
        ERL_NIF_TERM one = make_record(env, &melee_character, &characters[i]);
        enif_make_map_put(env, map, enif_make_int(env, i + 1), one, &map);
    }
    return map;
}

ERL_NIF_TERM make_frame(ErlNifEnv *env, const exphil_melee_frame *frame)
{
    ERL_NIF_TERM items = enif_make_list(env, 0);
    for (int32_t i = frame->item_count; i-- > 0;)
        items = enif_make_list_cell(env, make_record(env, &melee_item, &frame->item[i]), items);
    ERL_NIF_TERM map = with_key(env, make_record(env, &frame_map, frame), "items", items);
    map = with_key(env, map, "players", make_characters(env, frame->player));
    return with_key(env, map, "followers", make_characters(env, frame->follower));
}

NIF(nif_melee_pack)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_melee_frame frame;
    read_frame(&c, argv[0], &frame);
    return finish_ok(&c, failed(&c) ? 0 : make_binary(env, &frame, sizeof frame));
}

NIF(nif_melee_unpack)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_melee_frame frame;
    ErlNifBinary packed;
    if (read_binary(&c, argv[0], "frame", &packed) && packed.size != sizeof frame)
        fail(&c, EXPHIL_E_INVALID, "frame: %zu bytes, %zu are wanted", packed.size, sizeof frame);
    if (failed(&c)) return finish(&c, 0);
    memcpy(&frame, packed.data, sizeof frame);
    if (frame.item_count < 0 || frame.item_count > EXPHIL_MELEE_ITEMS_MAX)
        return fail(&c, EXPHIL_E_INVALID, "frame: %d items", (int)frame.item_count), finish(&c, 0);
    return finish_ok(&c, make_frame(env, &frame));
}

/* ---- the encoder ------------------------------------------------------------------------------------------- */

NIF(nif_melee_spec)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_spec spec = EXPHIL_SPEC_INIT;
    const char *layout = read_text_or_nil(&c, argv[0], "layout"),
               *codec = read_text_or_nil(&c, argv[1], "codec");
    if (failed(&c) || !done(&c, exphil_melee_spec(layout, codec, &spec, &c.error))) return finish(&c, 0);
    return finish_ok(&c, make_spec(env, &spec));
}

NIF(nif_melee_fields)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    ERL_NIF_TERM list = enif_make_list(env, 0);
    const char *layout = read_text_or_nil(&c, argv[0], "layout");
    int64_t count = failed(&c) ? 0 : exphil_melee_field_count(layout);
    if (count == 0) fail(&c, EXPHIL_E_INVALID, "layout: %s is not known", layout ? layout : "nil");
    for (int64_t i = count; i-- > 0;) {
        exphil_melee_field info = EXPHIL_MELEE_FIELD_INIT;
        if (!done(&c, exphil_melee_field_get(layout, i, &info, &c.error))) break;
        list = enif_make_list_cell(env, make_record(env, &melee_field, &info), list);
    }
    return finish_ok(&c, list);
}

NIF(nif_melee_encode)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_melee_frame frame;
    ERL_NIF_TERM floats, ids;
    const char *layout = read_text_or_nil(&c, argv[0], "layout");
    if (!read_frame(&c, argv[1], &frame) || !done(&c, exphil_melee_spec(layout, NULL, &spec, &c.error)))
        return finish(&c, 0);
    void *f = enif_make_new_binary(env, (size_t)spec.float_count * sizeof(float), &floats);
    void *k = enif_make_new_binary(env, (size_t)spec.id_count * sizeof(int32_t), &ids);
    done(&c, exphil_melee_encode(layout, &frame, f, k, &c.error));
    return finish_ok(&c, make_pair(env, floats, ids));
}

/* options, before, now. */
NIF(nif_melee_reward)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_melee_reward_config config = EXPHIL_MELEE_REWARD_CONFIG_INIT;
    exphil_melee_frame before, now;
    float reward = 0;
    if (read_record(&c, argv[0], &reward_config, &config) && read_frame(&c, argv[1], &before) &&
        read_frame(&c, argv[2], &now))
        done(&c, exphil_melee_reward(&config, &before, &now, &reward, &c.error));
    return finish_ok(&c, make_number(env, (double)reward));
}

NIF(nif_melee_pad_encode)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_pad pad = {0, 0, 0, 0, 0, 0};
    ERL_NIF_TERM action;
    const char *codec = read_text_or_nil(&c, argv[0], "codec");
    if (!read_record(&c, argv[1], &melee_pad, &pad) ||
        !done(&c, exphil_melee_spec(NULL, codec, &spec, &c.error)))
        return finish(&c, 0);
    void *to = enif_make_new_binary(env, (size_t)spec.head_count * sizeof(int32_t), &action);
    done(&c, exphil_melee_pad_encode(codec, &pad, to, &c.error));
    return finish_ok(&c, action);
}

NIF(nif_melee_pad_decode)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_pad pad = {0, 0, 0, 0, 0, 0};
    const char *codec = read_text_or_nil(&c, argv[0], "codec");
    if (failed(&c) || !done(&c, exphil_melee_spec(NULL, codec, &spec, &c.error))) return finish(&c, 0);
    const int32_t *action = read_array(&c, argv[1], "action", spec.head_count, sizeof *action);
    if (action) done(&c, exphil_melee_pad_decode(codec, action, &pad, &c.error));
    return finish_ok(&c, make_record(env, &melee_pad, &pad));
}

NIF(nif_melee_character_name)
{
    (void)argc;
    int id;
    return enif_get_int(env, argv[0], &id) ? make_text(env, exphil_melee_character_name(id))
                                           : enif_make_badarg(env);
}

NIF(nif_melee_stage_name)
{
    (void)argc;
    int id;
    return enif_get_int(env, argv[0], &id) ? make_text(env, exphil_melee_stage_name(id))
                                           : enif_make_badarg(env);
}
