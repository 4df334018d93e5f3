/* Corpora of games: open, look, read; written in one call; and what a dataset takes of them. */
#include "nif.h"

NIF(nif_games_open)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_games *games = NULL;
    handle *context = hold(&c, argv[0], CONTEXT);
    const char *path = read_text(&c, argv[1], "path");
    if (path) done(&c, exphil_games_open(context->object, path, &games, &c.error));
    return finish_ok(&c, make_handle(&c, GAMES, games, NULL, context));
}

NIF(nif_games_info)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    handle *games = hold(&c, argv[0], GAMES);
    if (games) done(&c, exphil_games_query(games->object, &info, &c.error));
    return finish_ok(&c, make_record(env, &games_info, &info));
}

/* {what the index says, what replay_info would} */
NIF(nif_games_game)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_game_info info = EXPHIL_GAME_INFO_INIT;
    exphil_slp_info settings = EXPHIL_SLP_INFO_INIT;
    handle *games = hold(&c, argv[0], GAMES);
    int64_t index = read_integer(&c, argv[1], "index", INT64_MIN, INT64_MAX);
    if (failed(&c) || !done(&c, exphil_games_game(games->object, index, &info, &settings, &c.error)))
        return finish(&c, 0);
    ERL_NIF_TERM players = enif_make_list(env, 0);
    for (int i = EXPHIL_SLP_PORTS; i-- > 0;)
        players = enif_make_list_cell(env, make_record(env, &game_player, &info.player[i]), players);
    ERL_NIF_TERM game = with_key(env, make_record(env, &game_info, &info), "players", players);
    return finish_ok(&c, make_pair(env, game, make_info(env, &settings)));
}

NIF(nif_games_read)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_slp *slp = NULL;
    handle *games = hold(&c, argv[0], GAMES);
    int64_t index = read_integer(&c, argv[1], "index", INT64_MIN, INT64_MAX);
    if (!failed(&c)) done(&c, exphil_games_read(games->object, index, &slp, &c.error));
    return finish_ok(&c, make_handle(&c, REPLAY, slp, NULL, games));
}

NIF(nif_games_verify)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *games = hold(&c, argv[0], GAMES);
    if (games) done(&c, exphil_games_verify(games->object, &c.error));
    return finish(&c, 0);
}

/* ---- writing ----------------------------------------------------------------------------------------------- */

/* What a single replay can be at fault for; anything else ends the whole. */
static bool of_a_file(exphil_status status)
{
    return status == EXPHIL_E_FORMAT || status == EXPHIL_E_UNSUPPORTED || status == EXPHIL_E_IO ||
           status == EXPHIL_E_INVALID;
}

/* {path, {:ok, map} | {:error, error}}. If it was the corpus that could not be written, finishing it fails. */
static ERL_NIF_TERM add_one(call *c, exphil_games_writer *writer, ERL_NIF_TERM name)
{
    exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    const char *path = read_text(c, name, "paths: path");
    if (!path) return 0;
    exphil_status status = exphil_games_add(writer, path, &added, &error);
    if (status < 0 && !of_a_file(status)) {
        c->error = error;
        return 0;
    }
    ERL_NIF_TERM result = status < 0 ? make_pair(c->env, atom_error, error_term(c->env, &error))
                                     : make_pair(c->env, atom_ok, make_record(c->env, &games_added, &added));
    return make_pair(c->env, name, result);
}

static ERL_NIF_TERM add_paths(call *c, exphil_games_writer *writer, ERL_NIF_TERM paths)
{
    ERL_NIF_TERM each, made = enif_make_list(c->env, 0), results;
    while (!failed(c) && enif_get_list_cell(c->env, paths, &each, &paths)) {
        ERL_NIF_TERM one = add_one(c, writer, each);
        if (!failed(c)) made = enif_make_list_cell(c->env, one, made);
    }
    return enif_make_reverse_list(c->env, made, &results) ? results : made;
}

/* context, path, replays, config: {info, [{replay, result}]}. Nothing is written that is not whole. */
NIF(nif_games_write)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    exphil_games_writer *writer = NULL;
    unsigned count = 0;
    handle *context = hold(&c, argv[0], CONTEXT);
    const char *path = read_text(&c, argv[1], "path");
    if (!failed(&c) && !enif_get_list_length(env, argv[2], &count))
        fail(&c, EXPHIL_E_INVALID, "paths: not a list");
    if (!read_record(&c, argv[3], &games_config, &config) ||
        !done(&c, exphil_games_create(context->object, path, &config, &writer, &c.error)))
        return finish(&c, 0);
    ERL_NIF_TERM results = add_paths(&c, writer, argv[2]);
    if (!failed(&c)) done(&c, exphil_games_finish(writer, &info, &c.error));
    exphil_games_writer_destroy(writer);
    return finish_ok(&c, make_pair(env, make_record(env, &games_info, &info), results));
}

/* ---- training data ----------------------------------------------------------------------------------------- */

/* The counts in words, of reasons that refused somebody. */
static ERL_NIF_TERM make_reasons(ErlNifEnv *env, const exphil_selection_report *report)
{
    ERL_NIF_TERM map = enif_make_new_map(env);
    for (int32_t i = 0; i < EXPHIL_REFUSED_REASONS; i++) {
        const char *name = exphil_refused_name(i);
        if (report->refused[i] && name)
            enif_make_map_put(env, map, make_text(env, name), enif_make_int64(env, report->refused[i]), &map);
    }
    return map;
}

NIF(nif_dataset_add_games)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_selection selection = EXPHIL_SELECTION_INIT;
    exphil_selection_report report = EXPHIL_SELECTION_REPORT_INIT;
    handle *dataset = hold(&c, argv[0], DATASET), *games = hold(&c, argv[1], GAMES);
    if (!read_record(&c, argv[2], &selection_config, &selection) ||
        !done(&c, exphil_dataset_add_games(dataset->object, games->object, &selection, &report, &c.error)))
        return finish(&c, 0);
    ERL_NIF_TERM map = make_record(env, &selection_report, &report);
    return finish_ok(&c, with_key(env, map, "refused", make_reasons(env, &report)));
}
