/* Replays (.slp) and the live event stream. Frames and players of a replay are made into maps one at a time: a game has
 * ten thousand of them, and few callers want all. */
#include "nif.h"

static const char *const dump_names[] = {"state", "input", "aux", "items", NULL};

#define LIVE_BYTES 65536 /* of one push: a millisecond at the worst */

NIF(nif_replay_open)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_slp_config config = EXPHIL_SLP_CONFIG_INIT;
    exphil_slp *slp = NULL;
    handle *context = hold(&c, argv[0], CONTEXT);
    const char *path = read_text(&c, argv[1], "path");
    if (read_record(&c, argv[2], &slp_config, &config))
        done(&c, exphil_slp_open(context->object, path, &config, &slp, &c.error));
    return finish_ok(&c, make_handle(&c, REPLAY, slp, NULL, context));
}

NIF(nif_replay_read)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_slp_config config = EXPHIL_SLP_CONFIG_INIT;
    exphil_slp *slp = NULL;
    ErlNifBinary data;
    handle *context = hold(&c, argv[0], CONTEXT);
    if (read_binary(&c, argv[1], "data", &data) && read_record(&c, argv[2], &slp_config, &config))
        done(&c, exphil_slp_read(context->object, data.data, data.size, &config, &slp, &c.error));
    return finish_ok(&c, make_handle(&c, REPLAY, slp, NULL, context));
}

ERL_NIF_TERM make_info(ErlNifEnv *env, const exphil_slp_info *info)
{
    ERL_NIF_TERM ports = enif_make_list(env, 0);
    for (int i = EXPHIL_SLP_PORTS; i-- > 0;)
        ports = enif_make_list_cell(env, make_record(env, &slp_port, &info->ports[i]), ports);
    return with_key(env, make_record(env, &slp_info, info), "ports", ports);
}

NIF(nif_replay_info)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    handle *replay = hold(&c, argv[0], REPLAY);
    if (replay) done(&c, exphil_slp_query(replay->object, &info, &c.error));
    return finish_ok(&c, make_info(env, &info));
}

NIF(nif_replay_position)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *replay = hold(&c, argv[0], REPLAY);
    int64_t frame = read_integer(&c, argv[1], "frame", INT32_MIN, INT32_MAX);
    int64_t position = failed(&c) ? 0 : exphil_slp_position(replay->object, (int32_t)frame);
    if (position < 0) fail(&c, EXPHIL_E_INVALID, "the replay has no frame %lld", (long long)frame);
    return finish_ok(&c, enif_make_int64(env, position));
}

static ERL_NIF_TERM make_slp_frame(ErlNifEnv *env, const exphil_slp_frame *frame)
{
    ERL_NIF_TERM items = enif_make_list(env, 0);
    for (int32_t i = frame->item_count; i-- > 0;)
        items = enif_make_list_cell(env, make_record(env, &slp_item, &frame->items[i]), items);
    return with_key(env, make_record(env, &slp_frame, frame), "items", items);
}

NIF(nif_replay_frame)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *replay = hold(&c, argv[0], REPLAY);
    int64_t position = read_integer(&c, argv[1], "position", INT64_MIN, INT64_MAX);
    const exphil_slp_frame *frame = failed(&c) ? NULL : exphil_slp_frame_at(replay->object, position);
    if (!frame) fail(&c, EXPHIL_E_INVALID, "position: %lld is outside the replay", (long long)position);
    return finish_ok(&c, frame ? make_slp_frame(env, frame) : 0);
}

NIF(nif_replay_slots)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    ERL_NIF_TERM list = enif_make_list(env, 0);
    handle *replay = hold(&c, argv[0], REPLAY);
    for (int32_t i = replay ? exphil_slp_slot_count(replay->object) : 0; i-- > 0;) {
        const exphil_slp_slot *slot = exphil_slp_slot_at(replay->object, i);
        ERL_NIF_TERM one =
            with_key(env, enif_make_new_map(env), "records", enif_make_int64(env, slot->record_count));
        one = with_key(env, one, "first_frame", enif_make_int(env, slot->first_frame));
        one = with_key(env, one, "last_frame", enif_make_int(env, slot->last_frame));
        one = with_key(env, one, "follower", slot->follower ? atom_true : atom_false);
        list = enif_make_list_cell(env, with_key(env, one, "port", enif_make_int(env, slot->port + 1)), list);
    }
    return finish_ok(&c, list);
}

static ERL_NIF_TERM player_or_nil(ErlNifEnv *env, const exphil_slp_player *player)
{
    return player ? make_record(env, &slp_player, player) : atom_nil;
}

/* position, port 1..4, follower. */
NIF(nif_replay_player)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *replay = hold(&c, argv[0], REPLAY);
    int64_t position = read_integer(&c, argv[1], "position", INT64_MIN, INT64_MAX);
    int32_t port = (int32_t)read_integer(&c, argv[2], "port", 1, 4);
    int32_t follower = read_flag(&c, argv[3], "follower");
    if (failed(&c)) return finish(&c, 0);
    return finish_ok(&c,
                     player_or_nil(env, exphil_slp_player_at(replay->object, position, port - 1, follower)));
}

NIF(nif_replay_melee_frame)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
    handle *replay = hold(&c, argv[0], REPLAY);
    int64_t position = read_integer(&c, argv[1], "position", INT64_MIN, INT64_MAX);
    int32_t own = (int32_t)read_integer(&c, argv[2], "own_port", INT32_MIN, INT32_MAX);
    int32_t opponent = (int32_t)read_integer(&c, argv[3], "opponent_port", INT32_MIN, INT32_MAX);
    if (!failed(&c))
        done(&c, exphil_slp_melee_frame(replay->object, position, own, opponent, &frame, &c.error));
    return finish_ok(&c, failed(&c) ? 0 : make_frame(env, &frame));
}

NIF(nif_replay_melee_pad)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_pad pad = {0, 0, 0, 0, 0, 0};
    handle *replay = hold(&c, argv[0], REPLAY);
    int64_t position = read_integer(&c, argv[1], "position", INT64_MIN, INT64_MAX);
    int32_t port = (int32_t)read_integer(&c, argv[2], "port", INT32_MIN, INT32_MAX);
    if (!failed(&c)) done(&c, exphil_slp_melee_pad(replay->object, position, port, &pad, &c.error));
    return finish_ok(&c, make_record(env, &melee_pad, &pad));
}

/* kind, index of the slot. */
/* The first rows of an array that has room for more. */
static ERL_NIF_TERM first_rows(ErlNifEnv *env, ERL_NIF_TERM binary, int64_t rows, size_t row_bytes)
{
    return enif_make_sub_binary(env, binary, 0, (size_t)rows * row_bytes);
}

/* layout, codec, config: binaries of all columns. */
NIF(nif_replay_rows)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_replay_config config = EXPHIL_REPLAY_CONFIG_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    int64_t count = 0;
    handle *replay = hold(&c, argv[0], REPLAY);
    const char *layout = read_text_or_nil(&c, argv[1], "layout");
    const char *codec = read_text_or_nil(&c, argv[2], "codec");
    if (!read_record(&c, argv[3], &replay_config, &config) ||
        !done(&c, exphil_melee_spec(layout, codec, &spec, &c.error)))
        return finish(&c, 0);
    int64_t most = exphil_slp_frame_count(replay->object);
    const char *const names[] = {"frames", "floats", "ids", "actions"};
    const size_t bytes[] = {sizeof(int32_t), (size_t)spec.float_count * sizeof(float),
                            (size_t)spec.id_count * sizeof(int32_t),
                            (size_t)spec.head_count * sizeof(int32_t)};
    ERL_NIF_TERM binary[4], map = enif_make_new_map(env);
    void *to[4];
    for (int i = 0; i < 4; i++) to[i] = enif_make_new_binary(env, (size_t)most * bytes[i], &binary[i]);
    done(&c, exphil_slp_melee_rows(replay->object, layout, codec, &config, most, to[0], to[1], to[2], to[3],
                                   &count, &c.error));
    for (int i = 0; i < 4 && !failed(&c); i++)
        map = with_key(env, map, names[i], first_rows(env, binary[i], count, bytes[i]));
    return finish_ok(&c, map);
}

NIF(nif_replay_dump)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    ERL_NIF_TERM dump = 0;
    handle *replay = hold(&c, argv[0], REPLAY);
    int32_t kind = read_name(&c, argv[1], "kind", dump_names);
    int32_t slot = (int32_t)read_integer(&c, argv[2], "slot", INT32_MIN, INT32_MAX);
    size_t bytes = failed(&c) ? 0 : exphil_slp_dump_bytes(replay->object, kind, slot);
    if (bytes == 0) fail(&c, EXPHIL_E_INVALID, "the replay has no slot %d", (int)slot);
    if (failed(&c)) return finish(&c, 0);
    void *to = enif_make_new_binary(env, bytes, &dump);
    done(&c, exphil_slp_dump(replay->object, kind, slot, to, bytes, &c.error));
    return finish_ok(&c, dump);
}

/* ---- live -------------------------------------------------------------------------------------------------- */

NIF(nif_live_create)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_slp_stream *live = NULL;
    handle *context = hold(&c, argv[0], CONTEXT);
    if (context) done(&c, exphil_slp_stream_create(context->object, &live, &c.error));
    return finish_ok(&c, make_handle(&c, STREAM, live, NULL, context));
}

/* {:frame, rest}, :again or {:end, rest}. rest shares the memory of the data. */
NIF(nif_live_push)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    ErlNifBinary data;
    size_t used = 0;
    handle *live = hold(&c, argv[0], STREAM);
    if (!read_binary(&c, argv[1], "data", &data)) return finish(&c, 0);
    size_t offered = data.size < LIVE_BYTES ? data.size : LIVE_BYTES;
    exphil_status status = exphil_slp_stream_push(live->object, data.data, offered, &used, &c.error);
    if (!done(&c, status)) return finish(&c, 0);
    ERL_NIF_TERM rest = enif_make_sub_binary(env, argv[1], used, data.size - used);
    if (status == EXPHIL_AGAIN)
        return finish(&c, used == data.size ? atom(env, "again") : make_pair(env, atom(env, "more"), rest));
    return finish(&c, make_pair(env, atom(env, status == EXPHIL_END ? "end" : "frame"), rest));
}

NIF(nif_live_reset)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *live = hold(&c, argv[0], STREAM);
    if (live) done(&c, exphil_slp_stream_reset(live->object, &c.error));
    return finish(&c, 0);
}

NIF(nif_live_info)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    handle *live = hold(&c, argv[0], STREAM);
    if (live) done(&c, exphil_slp_stream_query(live->object, &info, &c.error));
    return finish_ok(&c, make_info(env, &info));
}

NIF(nif_live_frame)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *live = hold(&c, argv[0], STREAM);
    const exphil_slp_frame *frame = live ? exphil_slp_stream_frame(live->object) : NULL;
    if (!frame) fail(&c, EXPHIL_E_STATE, "no frame is ready");
    return finish_ok(&c, frame ? make_slp_frame(env, frame) : 0);
}

NIF(nif_live_player)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *live = hold(&c, argv[0], STREAM);
    int32_t port = (int32_t)read_integer(&c, argv[1], "port", 1, 4);
    int32_t follower = read_flag(&c, argv[2], "follower");
    if (failed(&c)) return finish(&c, 0);
    return finish_ok(&c, player_or_nil(env, exphil_slp_stream_player(live->object, port - 1, follower)));
}

NIF(nif_live_melee_frame)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
    handle *live = hold(&c, argv[0], STREAM);
    int32_t own = (int32_t)read_integer(&c, argv[1], "own_port", INT32_MIN, INT32_MAX);
    int32_t opponent = (int32_t)read_integer(&c, argv[2], "opponent_port", INT32_MIN, INT32_MAX);
    if (!failed(&c)) done(&c, exphil_slp_stream_melee_frame(live->object, own, opponent, &frame, &c.error));
    return finish_ok(&c, failed(&c) ? 0 : make_frame(env, &frame));
}
