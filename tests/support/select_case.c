/* See select_case.h. */
#include "select_case.h"

#define OK(call) assert_int_equal(call, EXPHIL_OK)

/* Fox, human, on port 1 against Falco, human, on port 3 of Battlefield; port 1 won. */
xph_game_entry select_entry(void)
{
    xph_game_entry e;
    memset(&e, 0, sizeof e);
    e.frames = 1000;
    e.last_frame = 876;
    e.stage = 31;
    e.day = 20000;
    e.version[0] = 3;
    e.version[1] = 14;
    e.flags = XPH_GAME_ENDED | XPH_GAME_FINITE;
    e.item_spawn = -1;
    e.winner = 1;
    for (int i = 0; i < 4; i++) e.port[i].type = 3;
    e.port[0] = (xph_game_port){.character = 2, .damage_dealt = 100, .stocks_taken = 3, .self_destructs = 1};
    e.port[2] = (xph_game_port){.character = 20, .damage_dealt = 80, .stocks_taken = 2};
    e.port[0].input_frames = 250;
    e.port[2].input_frames = 1000;
    return e;
}

xph_selector *select_selector(const exphil_selection *selection)
{
    xph_selector *selector = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (xph_selector_create(context, selection, &selector, &error) < 0) fail_msg("%s", error.message);
    return selector;
}

exphil_games_writer *select_create(const char *path)
{
    exphil_games_writer *writer = NULL;
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    if (exphil_games_create(context, path, &config, &writer, NULL) == EXPHIL_OK) return writer;
    config.stored = 1; /* there is no libzstd */
    OK(exphil_games_create(context, path, &config, &writer, NULL));
    return writer;
}

bool select_add(exphil_games_writer *writer, const slp_writer *w)
{
    exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_games_add_memory(writer, w->data, w->bytes, &added, &error) < 0) fail_msg("%s", error.message);
    return !added.duplicate;
}

exphil_games *select_finish(exphil_games_writer *writer, const char *path)
{
    exphil_games *games = NULL;
    OK(exphil_games_finish(writer, NULL, NULL));
    exphil_games_writer_destroy(writer);
    OK(exphil_games_open(context, path, &games, NULL));
    return games;
}

/* ---- counting ---- */

typedef struct counting {
    const xph_selector *selector;
    const xph_game_groups *groups;
    exphil_selection_report report;
} counting;

static exphil_status look_at(void *arg, int64_t game, const xph_game_entry *entry, exphil_error *error)
{
    counting *c = arg;
    c->report.games++;
    for (int32_t port = 1; port <= EXPHIL_SLP_PORTS; port++) {
        int32_t opponent;
        if (!xph_game_plays(entry, port)) continue;
        int32_t reason = xph_selector_refuses(c->selector, entry, port, &opponent);
        if (reason < 0 && xph_game_is_duplicate(c->groups, game)) reason = EXPHIL_REFUSED_DUPLICATE;
        c->report.players++;
        if (reason < 0)
            c->report.taken++;
        else
            c->report.refused[reason]++;
    }
    return EXPHIL_OK;
}

/* As exphil_dataset_add_games counts, but for rows. */
exphil_selection_report select_count(const exphil_games *games, const exphil_selection *selection)
{
    counting c = {.report = EXPHIL_SELECTION_REPORT_INIT};
    xph_game_groups *groups = NULL;
    xph_selector *selector = select_selector(selection);
    OK(xph_game_groups_make(games, selector, &groups, NULL));
    c.selector = selector;
    c.groups = groups;
    OK(xph_games_each(games, look_at, &c, NULL));
    xph_game_groups_free(groups);
    xph_selector_free(selector);
    return c.report;
}

const char select_other_metadata[] = "{U\x07startAtSU\x0A"
                                     "2025-01-02U\x08playedOnSU\x07network}";
