/* Who is imitated: every reason by entries and replays made here; all fields' limits; all reasons of real replays for many
 * selections as another program counts them; recordings of one match by brute force. */
#include "game_case.h"
#include "match_case.h"
#include "slp_edit.h"

#include "games/format.h"

#include <stdio.h>
#include <stdlib.h>

#define OK(call) assert_int_equal(call, EXPHIL_OK)

/* ---- entries ---- */

/* Fox, human, on port 1 against Falco, human, on port 3 of Battlefield; port 1 won. */
static xph_game_entry plain_entry(void)
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

static xph_selector *selector_of(const exphil_selection *selection)
{
    xph_selector *selector = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (xph_selector_create(context, selection, &selector, &error) < 0) fail_msg("%s", error.message);
    return selector;
}

static int32_t asked(const exphil_selection *selection, const xph_game_entry *entry, int32_t port,
                     int32_t *opponent)
{
    xph_selector *selector = selector_of(selection);
    int32_t reason = xph_selector_refuses(selector, entry, port, opponent);
    xph_selector_free(selector);
    return reason;
}

/* With one field of the selection set, what becomes of port 1, whose opponent is 3 if it is taken. */
static void expect_line(int line, exphil_selection selection, xph_game_entry entry, int32_t reason)
{
    int32_t opponent = -1, found = asked(&selection, &entry, 1, &opponent);
    if (found != reason) fail_msg("line %d: %d is not %d", line, (int)found, (int)reason);
    if (reason < 0) assert_int_equal(opponent, 3);
}
#define EXPECT(field, value, change, reason)                                                                 \
  do {                                                                                                       \
    exphil_selection s = EXPHIL_SELECTION_INIT;                                                              \
    xph_game_entry e = plain_entry();                                                                        \
    s.field = value;                                                                                         \
    change;                                                                                                  \
    expect_line(__LINE__, s, e, reason);                                                                     \
  } while (0)
#define SAME (void)0

static void reasons_of_games(void **state)
{
    EXPECT(stages, "battlefield", SAME, -1);
    EXPECT(stages, "2,  Final-Destination", SAME, EXPHIL_REFUSED_STAGE);
    EXPECT(stages, "31", SAME, -1);
    EXPECT(stages, "65535", e.stage = 65535, -1);
    EXPECT(least_frames, 1000, SAME, -1);
    EXPECT(least_frames, 1001, SAME, EXPHIL_REFUSED_SHORT);
    EXPECT(most_frames, 1000, SAME, -1);
    EXPECT(most_frames, 999, SAME, EXPHIL_REFUSED_LONG);
    EXPECT(first_day, 20000, SAME, -1);
    EXPECT(first_day, 20001, SAME, EXPHIL_REFUSED_EARLY);
    EXPECT(first_day, 1, e.day = 0, EXPHIL_REFUSED_UNKNOWN);
    EXPECT(last_day, 20000, SAME, -1);
    EXPECT(last_day, 19999, SAME, EXPHIL_REFUSED_LATE);
    EXPECT(last_day, 30000, e.day = 0, EXPHIL_REFUSED_UNKNOWN);
    EXPECT(least_version, 0x030E00, SAME, -1);
    EXPECT(least_version, 0x030E01, SAME, EXPHIL_REFUSED_VERSION);
    EXPECT(teams, EXPHIL_WITHOUT, SAME, -1);
    EXPECT(teams, EXPHIL_WITH, SAME, EXPHIL_REFUSED_TEAMS);
    EXPECT(teams, EXPHIL_WITHOUT, e.teams = 1, EXPHIL_REFUSED_TEAMS);
    EXPECT(items, EXPHIL_WITHOUT, SAME, -1);
    EXPECT(items, EXPHIL_WITH, SAME, EXPHIL_REFUSED_ITEMS);
    EXPECT(items, EXPHIL_WITHOUT, e.item_spawn = 0, EXPHIL_REFUSED_ITEMS);
    EXPECT(items, EXPHIL_WITH, e.item_spawn = 4, -1);
    EXPECT(players, 2, SAME, -1);
    EXPECT(players, 3, SAME, EXPHIL_REFUSED_PLAYERS);
    EXPECT(complete, 1, SAME, -1);
    EXPECT(complete, 1, e.flags &= (uint8_t)~XPH_GAME_ENDED, EXPHIL_REFUSED_INCOMPLETE);
    EXPECT(complete, 1, e.flags |= XPH_GAME_CUT, EXPHIL_REFUSED_INCOMPLETE);
    EXPECT(complete, 1, e.flags |= XPH_GAME_GAPS, EXPHIL_REFUSED_INCOMPLETE);
    EXPECT(humans, 1, SAME, -1);
    EXPECT(humans, 1, e.port[2].type = 1, EXPHIL_REFUSED_COMPUTER_GAME);
    EXPECT(humans, 1, e.port[2].type = 2, EXPHIL_REFUSED_COMPUTER_GAME);
    EXPECT(humans, 0, e.port[2].type = 1, -1);
}

static void reasons_of_players(void **state)
{
    EXPECT(humans, 0, e.port[0].type = 1, EXPHIL_REFUSED_COMPUTER);
    EXPECT(humans, 0, e.port[0].type = 2, EXPHIL_REFUSED_COMPUTER);
    EXPECT(characters, "Falco marth,FOX", SAME, -1);
    EXPECT(characters, "falco", SAME, EXPHIL_REFUSED_CHARACTER);
    EXPECT(characters, "255", e.port[0].character = 255, -1);
    EXPECT(port, 1, SAME, -1);
    EXPECT(port, 3, SAME, EXPHIL_REFUSED_PORT);
    EXPECT(result, EXPHIL_RESULT_WON, SAME, -1);
    EXPECT(result, EXPHIL_RESULT_LOST, SAME, EXPHIL_REFUSED_RESULT);
    EXPECT(result, EXPHIL_RESULT_WON, e.winner = 3, EXPHIL_REFUSED_RESULT);
    EXPECT(result, EXPHIL_RESULT_LOST, e.winner = 3, -1);
    EXPECT(result, EXPHIL_RESULT_LOST, e.winner = 0, EXPHIL_REFUSED_UNKNOWN);
    EXPECT(least_damage, 100, SAME, -1);
    EXPECT(least_damage, 101, SAME, EXPHIL_REFUSED_DAMAGE);
    EXPECT(least_stocks, 3, SAME, -1);
    EXPECT(least_stocks, 4, SAME, EXPHIL_REFUSED_STOCKS);
    EXPECT(self_destructs_below, 2, SAME, -1);
    EXPECT(self_destructs_below, 1, SAME, EXPHIL_REFUSED_SELF_DESTRUCTS);
    EXPECT(least_input, 0.25, SAME, -1);
    EXPECT(least_input, 0.2501, SAME, EXPHIL_REFUSED_INPUT);
    EXPECT(opponents, "falco", SAME, -1);
    EXPECT(opponents, "fox", SAME, EXPHIL_REFUSED_OPPONENT);
    EXPECT(opponents, "fox", e.port[2].type = 3, EXPHIL_REFUSED_OPPONENT);
    EXPECT(opponent_port, 3, SAME, -1);
    EXPECT(opponent_port, 4, SAME, EXPHIL_REFUSED_OPPONENT_PORT);
    EXPECT(opponent_port, 1, SAME, EXPHIL_REFUSED_OPPONENT_PORT);
}

/* Team mates are no opponents, and win together; a target test has no opponent. */
static void teams_and_targets(void **state)
{
    xph_game_entry e = plain_entry();
    exphil_selection s = EXPHIL_SELECTION_INIT;
    int32_t opponent = -1;
    e.teams = 1;
    e.port[1] = e.port[0];
    e.port[1].team = e.port[0].team = 2;
    assert_int_equal(asked(&s, &e, 1, &opponent), -1);
    assert_int_equal(opponent, 3);
    s.result = EXPHIL_RESULT_WON;
    assert_int_equal(asked(&s, &e, 2, &opponent), -1);
    assert_int_equal(asked(&s, &e, 3, &opponent), EXPHIL_REFUSED_RESULT);
    e.teams = 0;
    assert_int_equal(asked(&s, &e, 2, &opponent), EXPHIL_REFUSED_RESULT);
    s.result = 0;
    assert_int_equal(asked(&s, &e, 3, &opponent), -1);
    assert_int_equal(opponent, 1);
    e.port[1].type = e.port[2].type = 3;
    assert_int_equal(asked(&s, &e, 1, &opponent), -1);
    assert_int_equal(opponent, 0);
}

/* Where everything fails, the first filter counts; then the next, once that one is not set. */
static void first_reason(void **state)
{
    exphil_selection s = {sizeof s, "venom", 2000, 0,  30000, 0, 0x040000, EXPHIL_WITH, EXPHIL_WITH, 4, 1, 1, "peach",
                          2,        EXPHIL_RESULT_LOST, 500, 4, 1, 0, 0.9, "fox", 4, 0, 0, 0};
    xph_game_entry e = plain_entry();
    int32_t opponent;
    e.flags = 0;
    e.port[2].type = 1;
    static const int32_t want[] = {EXPHIL_REFUSED_STAGE,  EXPHIL_REFUSED_SHORT,         EXPHIL_REFUSED_EARLY,
                                   EXPHIL_REFUSED_VERSION, EXPHIL_REFUSED_TEAMS,         EXPHIL_REFUSED_ITEMS,
                                   EXPHIL_REFUSED_PLAYERS, EXPHIL_REFUSED_INCOMPLETE,    EXPHIL_REFUSED_COMPUTER_GAME,
                                   EXPHIL_REFUSED_CHARACTER, EXPHIL_REFUSED_PORT,        EXPHIL_REFUSED_RESULT,
                                   EXPHIL_REFUSED_DAMAGE, EXPHIL_REFUSED_STOCKS,        EXPHIL_REFUSED_SELF_DESTRUCTS,
                                   EXPHIL_REFUSED_INPUT,  EXPHIL_REFUSED_OPPONENT_PORT, EXPHIL_REFUSED_OPPONENT, -1};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_int_equal(asked(&s, &e, 1, &opponent), want[i]);
        switch (want[i]) {
        case EXPHIL_REFUSED_STAGE: s.stages = NULL; break;
        case EXPHIL_REFUSED_SHORT: s.least_frames = 0; break;
        case EXPHIL_REFUSED_EARLY: s.first_day = 0; break;
        case EXPHIL_REFUSED_VERSION: s.least_version = 0; break;
        case EXPHIL_REFUSED_TEAMS: s.teams = 0; break;
        case EXPHIL_REFUSED_ITEMS: s.items = 0; break;
        case EXPHIL_REFUSED_PLAYERS: s.players = 0; break;
        case EXPHIL_REFUSED_INCOMPLETE: s.complete = 0; break;
        case EXPHIL_REFUSED_COMPUTER_GAME: s.humans = 0; break;
        case EXPHIL_REFUSED_CHARACTER: s.characters = NULL; break;
        case EXPHIL_REFUSED_PORT: s.port = 0; break;
        case EXPHIL_REFUSED_RESULT: s.result = 0; break;
        case EXPHIL_REFUSED_DAMAGE: s.least_damage = 0; break;
        case EXPHIL_REFUSED_STOCKS: s.least_stocks = 0; break;
        case EXPHIL_REFUSED_SELF_DESTRUCTS: s.self_destructs_below = 0; break;
        case EXPHIL_REFUSED_INPUT: s.least_input = 0; break;
        case EXPHIL_REFUSED_OPPONENT_PORT: s.opponent_port = 0; break;
        default: s.opponents = NULL; break;
        }
    }
}

/* ---- what a selection may say ---- */

static void refuse(exphil_selection selection, const char *text)
{
    xph_selector *selector = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(xph_selector_create(context, &selection, &selector, &error), EXPHIL_E_INVALID);
    assert_null(selector);
    assert_says(&error, text);
}
#define REFUSE(field, value, text)                                                                           \
  do {                                                                                                       \
    exphil_selection s = EXPHIL_SELECTION_INIT;                                                              \
    s.field = value;                                                                                         \
    refuse(s, text);                                                                                         \
  } while (0)

static void limits(void **state)
{
    REFUSE(least_frames, -1, "least_frames is -1");
    REFUSE(most_frames, -5, "most_frames is -5");
    REFUSE(first_day, -1, "first_day is -1");
    REFUSE(last_day, -1, "last_day is -1");
    REFUSE(least_version, 0x1000000, "least_version is 16777216");
    REFUSE(teams, 3, "teams is 3, must be 0..2");
    REFUSE(items, -1, "items is -1");
    REFUSE(players, 5, "players is 5");
    REFUSE(complete, 2, "complete is 2");
    REFUSE(humans, 2, "humans is 2");
    REFUSE(port, 5, "port is 5");
    REFUSE(result, 3, "result is 3");
    REFUSE(least_damage, -1, "least_damage is -1");
    REFUSE(least_stocks, -1, "least_stocks is -1");
    REFUSE(self_destructs_below, -1, "self_destructs_below is -1");
    REFUSE(reserved, 1, "reserved is 1");
    REFUSE(opponent_port, -1, "opponent_port is -1");
    REFUSE(duplicates, 2, "duplicates is 2");
    REFUSE(least_input, 1.5, "least_input is 1.5");
    REFUSE(least_input, 0.0 / 0.0, "least_input is");
    REFUSE(last_frame, -1, "last_frame -1 is before first_frame 0");
    REFUSE(struct_size, 8, "exphil_selection");
    REFUSE(stages, "batlefield", "stages: stage \"batlefield\" is unknown; there is");
    REFUSE(stages, "battlefield, 65536", "stages: a stage is a name or a number of 0..65535");
    REFUSE(stages, "99999999999999999999", "stages: a stage is a name");
    REFUSE(stages, "", "stages names no stage");
    REFUSE(characters, " , ", "characters names no character");
    REFUSE(characters, "fox foxx", "characters: character \"foxx\" is unknown; there is fox, falco");
    REFUSE(characters, "256", "characters: a character is a name or a number of 0..255");
    REFUSE(characters, "-2", "characters: character \"-2\" is unknown");
    REFUSE(characters, "fox___________________________________________________________________x",
           "characters: character \"fox__");
    REFUSE(opponents, "xyz", "opponents: character \"xyz\" is unknown");
    exphil_selection s = EXPHIL_SELECTION_INIT;
    s.least_frames = 10;
    s.most_frames = 9;
    refuse(s, "most_frames 9 is less than least_frames 10");
    s = (exphil_selection)EXPHIL_SELECTION_INIT;
    s.first_day = 10;
    s.last_day = 9;
    refuse(s, "last_day 9 is before first_day 10");
    s = (exphil_selection)EXPHIL_SELECTION_INIT;
    s.port = s.opponent_port = 2;
    refuse(s, "port and opponent_port are both 2");
    xph_selector *selector = selector_of(NULL);
    s = (exphil_selection)EXPHIL_SELECTION_INIT;
    assert_memory_equal(xph_selector_of(selector), &s, sizeof s);
    xph_selector_free(selector);
}

static void names(void **state)
{
    assert_null(exphil_refused_name(-1));
    assert_null(exphil_refused_name(EXPHIL_REFUSED_REASONS));
    for (int32_t i = 0; i < EXPHIL_REFUSED_REASONS; i++) {
        assert_true(strlen(exphil_refused_name(i)) > 2);
        for (int32_t k = 0; k < i; k++)
            assert_string_not_equal(exphil_refused_name(i), exphil_refused_name(k));
    }
    assert_string_equal(exphil_refused_name(EXPHIL_REFUSED_UNKNOWN), "unknown");
    assert_string_equal(exphil_refused_name(EXPHIL_REFUSED_DUPLICATE), "duplicate");
}

static void memory_failures(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *own = test_context(&memory, NULL, 1);
    xph_selector *selector = NULL;
    memory.fail_at = atomic_load(&memory.calls) + 1;
    assert_int_equal(xph_selector_create(own, NULL, &selector, NULL), EXPHIL_E_MEMORY);
    OK(xph_selector_create(own, NULL, &selector, NULL));
    xph_selector_free(selector);
    exphil_context_destroy(own);
    assert_memory_clean(&memory);
}

/* ---- replays made here ---- */

static exphil_games_writer *create(const char *path)
{
    exphil_games_writer *writer = NULL;
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    if (exphil_games_create(context, path, &config, &writer, NULL) == EXPHIL_OK) return writer;
    config.stored = 1; /* there is no libzstd */
    OK(exphil_games_create(context, path, &config, &writer, NULL));
    return writer;
}

static bool add(exphil_games_writer *writer, const slp_writer *w)
{
    exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_games_add_memory(writer, w->data, w->bytes, &added, &error) < 0) fail_msg("%s", error.message);
    return !added.duplicate;
}

static exphil_games *finish(exphil_games_writer *writer, const char *path)
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
static exphil_selection_report count(const exphil_games *games, const exphil_selection *selection)
{
    counting c = {.report = EXPHIL_SELECTION_REPORT_INIT};
    xph_game_groups *groups = NULL;
    xph_selector *selector = selector_of(selection);
    OK(xph_game_groups_make(games, selector, &groups, NULL));
    c.selector = selector;
    c.groups = groups;
    OK(xph_games_each(games, look_at, &c, NULL));
    xph_game_groups_free(groups);
    xph_selector_free(selector);
    return c.report;
}

static void expect_counts(const exphil_games *games, const exphil_selection *s, int64_t taken, int32_t reason,
                          int64_t refused)
{
    exphil_selection_report report = count(games, s);
    assert_int_equal(report.games, 1);
    assert_int_equal(report.players, 2);
    assert_int_equal(report.taken, taken);
    assert_int_equal(report.refused[reason], refused);
    assert_int_equal(taken + refused, 2);
}

static void one_game(const match_made *m, const exphil_selection *s, int64_t taken, int32_t reason)
{
    const char *path = test_path("one.games");
    exphil_games_writer *writer = create(path);
    slp_writer w;
    match_make(&w, m);
    add(writer, &w);
    slp_free(&w);
    exphil_games *games = finish(writer, path);
    expect_counts(games, s, taken, reason, 2 - taken);
    exphil_games_destroy(games);
}

#define ONE(change, field, value, taken, reason)                                                             \
  do {                                                                                                       \
    match_made m = match_usual;                                                                                          \
    exphil_selection s = EXPHIL_SELECTION_INIT;                                                              \
    change;                                                                                                  \
    s.field = value;                                                                                         \
    one_game(&m, &s, taken, reason);                                                                         \
  } while (0)

/* Facts come from the frames: port 1 deals 10 in each of 95 frames and takes 4 stocks of port 3 (frames 20, 40, 60, 80). */
static void from_replays(void **state)
{
    ONE(SAME, stages, "yoshis_story", 0, EXPHIL_REFUSED_STAGE);
    ONE(SAME, least_frames, 101, 0, EXPHIL_REFUSED_SHORT);
    ONE(SAME, most_frames, 99, 0, EXPHIL_REFUSED_LONG);
    ONE(SAME, first_day, 19850, 0, EXPHIL_REFUSED_EARLY);
    ONE(SAME, first_day, 19849, 2, 0);
    ONE(SAME, last_day, 19848, 0, EXPHIL_REFUSED_LATE);
    ONE(m.day = "once upon ", last_day, 19848, 0, EXPHIL_REFUSED_UNKNOWN);
    ONE(SAME, least_version, 0x031201, 0, EXPHIL_REFUSED_VERSION);
    ONE(m.team_game = true, teams, EXPHIL_WITHOUT, 0, EXPHIL_REFUSED_TEAMS);
    ONE(m.item_spawn = 2, items, EXPHIL_WITHOUT, 0, EXPHIL_REFUSED_ITEMS);
    ONE(SAME, players, 1, 0, EXPHIL_REFUSED_PLAYERS);
    ONE(m.ended = false, complete, 1, 0, EXPHIL_REFUSED_INCOMPLETE);
    ONE(m.types[1] = 1, humans, 1, 0, EXPHIL_REFUSED_COMPUTER_GAME);
    ONE(m.types[1] = 1, humans, 0, 1, EXPHIL_REFUSED_COMPUTER);
    ONE(SAME, characters, "falco", 1, EXPHIL_REFUSED_CHARACTER);
    ONE(SAME, port, 3, 1, EXPHIL_REFUSED_PORT);
    ONE(SAME, result, EXPHIL_RESULT_WON, 1, EXPHIL_REFUSED_RESULT);
    ONE(m.quit = 0, result, EXPHIL_RESULT_WON, 1, EXPHIL_REFUSED_RESULT);
    ONE(m.method = 7, result, EXPHIL_RESULT_WON, 0, EXPHIL_REFUSED_UNKNOWN);
    ONE(m.ended = false, result, EXPHIL_RESULT_LOST, 0, EXPHIL_REFUSED_UNKNOWN);
    ONE(SAME, least_damage, 950, 1, EXPHIL_REFUSED_DAMAGE);
    ONE(SAME, least_damage, 951, 0, EXPHIL_REFUSED_DAMAGE);
    ONE(m.hitter = 6, least_damage, 1, 0, EXPHIL_REFUSED_DAMAGE);
    ONE(SAME, least_stocks, 4, 1, EXPHIL_REFUSED_STOCKS);
    ONE(SAME, least_stocks, 5, 0, EXPHIL_REFUSED_STOCKS);
    ONE(m.hitter = 6, self_destructs_below, 4, 1, EXPHIL_REFUSED_SELF_DESTRUCTS);
    ONE(m.hitter = 2, self_destructs_below, 5, 2, 0);
    ONE(m.idle = true, least_input, 1, 1, EXPHIL_REFUSED_INPUT);
    ONE(SAME, opponents, "fox", 1, EXPHIL_REFUSED_OPPONENT);
    ONE(SAME, opponent_port, 3, 1, EXPHIL_REFUSED_OPPONENT_PORT);
    ONE(m.team_game = true, opponents, "fox", 0, EXPHIL_REFUSED_OPPONENT);
}

/* ---- recordings of one match ---- */

static int64_t index_of(const exphil_games *games, const slp_writer *w)
{
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    OK(exphil_games_query(games, &info, NULL));
    for (int64_t i = 0; i < info.games; i++) {
        exphil_game_info game = EXPHIL_GAME_INFO_INIT;
        OK(exphil_games_game(games, i, &game, NULL, NULL));
        if (game.source_hash == xph_hash(w->data, w->bytes)) return i;
    }
    return -1;
}

/* Of two replays: in one group, and is one left out, as said? The first is to be kept. In either order. */
static void expect_pair(const slp_writer *a, const slp_writer *b, bool together, bool left_out)
{
    for (int order = 0; order < 2; order++) {
        const char *path = test_path("pair.games");
        exphil_games_writer *writer = create(path);
        xph_game_groups *groups = NULL;
        assert_true(add(writer, order ? b : a));
        assert_true(add(writer, order ? a : b));
        exphil_games *games = finish(writer, path);
        OK(xph_game_groups_make(games, NULL, &groups, NULL));
        int64_t one = index_of(games, a), other = index_of(games, b);
        assert_int_equal(xph_game_group(groups, one) == xph_game_group(groups, other), together);
        assert_false(xph_game_is_duplicate(groups, one));
        assert_int_equal(xph_game_is_duplicate(groups, other), left_out);
        xph_game_groups_free(groups);
        exphil_games_destroy(games);
    }
}

static void expect_edit(const slp_writer *from, slp_edit edit, bool together, bool left_out)
{
    slp_writer to;
    slp_edit_make(from->data, from->bytes, &edit, &to);
    expect_pair(from, &to, together, left_out);
    slp_free(&to);
}

static const char other_metadata[] = "{U\x07startAtSU\x0A"
                                     "2025-01-02U\x08playedOnSU\x07network}";

/* The other console's file, as far as one can be made of this one. */
#define OTHER_CONSOLE {.rollback = 50, .padding = 4, .drop = 3, .metadata = other_metadata}

static void all_edits(const slp_writer *from, bool certain, bool tag)
{
    expect_edit(from, (slp_edit)OTHER_CONSOLE, true, certain || tag);
    expect_edit(from, (slp_edit){.drop = 1}, true, certain || tag);
    expect_edit(from, (slp_edit){.drop = 30, .no_end = true, .rollback = 9}, true, certain || tag);
    expect_edit(from, (slp_edit){.drop = 3, .seed = 1}, tag, tag && certain);
    expect_edit(from, (slp_edit){.drop = 3, .input = 200}, true, tag);
}

/* 700 frames have a rung of inputs; 500 do not, and are left in. */
static void recordings(void **state)
{
    slp_writer w;
    match_made m = match_usual;
    m.frames = 700;
    match_make(&w, &m);
    all_edits(&w, true, false);
    expect_edit(&w, (slp_edit){.drop = 3, .input = 84}, true, true); /* acts on nothing */
    expect_edit(&w, (slp_edit){.drop = 3, .input = 85}, true, false);
    expect_edit(&w, (slp_edit){.drop = 3, .input = 596}, true, false);
    expect_edit(&w, (slp_edit){.drop = 3, .input = 597}, true, true); /* behind 512 frames from -39 on */
    slp_free(&w);
    m.frames = 500;
    match_make(&w, &m);
    all_edits(&w, false, false);
    slp_free(&w);
    /* Other players, or another stage. */
    slp_writer other;
    m = match_usual;
    m.frames = 701;
    match_make(&w, &m);
    for (int i = 0; i < 6; i++) {
        m = match_usual;
        m.frames = 700;
        if (i == 0) m.stage = 32;
        if (i == 1) m.characters[0] = 3;
        if (i == 2) m.types[1] = 1;
        if (i == 3) m.team_game = true;
        if (i == 4) m.seed = 8;
        match_make(&other, &m);
        expect_pair(&w, &other, i == 5, i == 5);
        slp_free(&other);
    }
    slp_free(&w);
}

/* A match tag with the seed: certain without inputs. A tag alone: only together. */
static void tags(void **state)
{
    slp_writer w;
    match_made m = match_usual;
    m.frames = 300;
    match_make(&w, &m);
    uint8_t *start = w.data + 15 + 1 + w.data[16];
    while (*start != 0x36) start++;
    memcpy(start + 0x2BE, "mode.unranked-2024", 19);
    expect_edit(&w, (slp_edit){.drop = 3, .input = 200}, true, true);
    expect_edit(&w, (slp_edit){.drop = 3, .seed = 5}, true, false);
    slp_free(&w);
}

typedef struct real_edits {
    int64_t seen, certain;
} real_edits;

static void edit_real(const char *path, exphil_slp *slp, void *arg)
{
    real_edits *seen = arg;
    slp_writer w = {0};
    size_t bytes;
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    xph_game_entry entry;
    xph_game_start start;
    OK(exphil_slp_query(slp, &info, NULL));
    if (info.frame_count < 40 || info.container != EXPHIL_SLP_CONTAINER) return;
    if (info.stop != EXPHIL_SLP_STOP_COMPLETE || info.unknown_event_count) return;
    char *data = test_read(path, &bytes);
    slp_put(&w, data, bytes);
    free(data);
    memset(&entry, 0, sizeof entry);
    xph_game_describe(slp, &info, &entry, &start);
    /* Others' last frames are less certain where the recorder calls none final: a rung must not lie there. */
    bool certain = entry.digest[0] != 0 && entry.certain_end >= 472 + 30 + 16;
    all_edits(&w, certain, entry.tag != 0);
    slp_free(&w);
    seen->seen++;
    seen->certain += certain;
}

static void real_recordings(void **state)
{
    real_edits seen = {0, 0};
    if (!game_each_real(edit_real, &seen)) skip();
    print_message("%d real replays, of %d of them recordings are certain\n", (int)seen.seen, (int)seen.certain);
    assert_true(seen.seen >= 10 && seen.certain >= 5);
}

/* What is kept: complete before not, more frames, whatever the selection takes; copies are never taken twice. */
static void what_is_kept(void **state)
{
    const char *path = test_path("kept.games");
    slp_writer w, cut, later;
    match_made m = match_usual;
    exphil_selection s = EXPHIL_SELECTION_INIT;
    m.frames = 700;
    match_make(&w, &m);
    slp_edit_make(w.data, w.bytes, &(slp_edit){.drop = 1, .no_end = true}, &cut);
    slp_edit_make(w.data, w.bytes, &(slp_edit){.drop = 2, .metadata = other_metadata}, &later);
    exphil_games_writer *writer = create(path);
    assert_true(add(writer, &cut));
    assert_true(add(writer, &later));
    assert_true(add(writer, &w));
    exphil_games *games = finish(writer, path);
    exphil_selection_report report = count(games, &s);
    assert_int_equal(report.taken, 2);
    assert_int_equal(report.refused[EXPHIL_REFUSED_DUPLICATE], 4);
    s.duplicates = 1;
    report = count(games, &s);
    assert_int_equal(report.taken, 6);
    s.duplicates = 0;
    s.first_day = 20000; /* only the later one, which is not the best of the three */
    report = count(games, &s);
    assert_int_equal(report.taken, 2);
    assert_int_equal(report.refused[EXPHIL_REFUSED_DUPLICATE], 0);
    assert_int_equal(report.refused[EXPHIL_REFUSED_EARLY], 4);
    exphil_games_destroy(games);
    slp_free(&w);
    slp_free(&cut);
    slp_free(&later);
}

/* ---- by brute force ---- */

/* A corpus that is an index alone; behind the header is a hole where games would be. */
static exphil_games *index_of_entries(xph_game_entry *entries, int64_t count)
{
    const char *path = test_path("index.games");
    uint64_t at = sizeof(xph_games_header), frames = 0, content = 0;
    uint16_t widths[3];
    xph_games_header header = {.version = XPH_GAMES_VERSION,
                               .entry_bytes = sizeof(xph_game_entry),
                               .start_bytes = sizeof(xph_game_start),
                               .facts_version = XPH_GAMES_FACTS_VERSION};
    xph_game_widths(&widths[0], &widths[1], &widths[2]);
    memcpy(header.magic, XPH_GAMES_MAGIC, 8);
    header.frame_bytes = widths[0];
    header.player_bytes = widths[1];
    header.item_bytes = widths[2];
    header.hash = xph_hash(&header, offsetof(xph_games_header, hash));
    for (int64_t i = 0; i < count; i++) {
        xph_game_entry *e = &entries[i];
        e->offset = at;
        e->first_frame = e->last_frame - (int32_t)e->frames + 1;
        e->bytes = (uint32_t)(xph_game_head_bytes(e) + xph_game_table_bytes(e)) + 40 * xph_game_blocks(e->frames);
        at += e->bytes;
        frames += e->frames;
        content += xph_game_share(e->content_hash);
    }
    xph_games_trailer trailer = {.games = (uint64_t)count, .frames = frames, .index = at, .content_hash = content};
    memcpy(trailer.magic, XPH_GAMES_TRAILER, 8);
    trailer.index_hash = xph_hash(entries, (size_t)count * sizeof *entries);
    trailer.hash = xph_hash(&trailer, offsetof(xph_games_trailer, hash));
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(&header, sizeof header, 1, file), 1);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(entries, sizeof *entries, (size_t)count, file), (size_t)count);
    assert_int_equal(fwrite(&trailer, sizeof trailer, 1, file), 1);
    fclose(file);
    exphil_games *games = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_games_open(context, path, &games, &error) < 0) fail_msg("%s", error.message);
    return games;
}

static uint32_t below(xph_rng *rng, uint32_t bound)
{
    return (uint32_t)xph_rng_below(rng, bound);
}

/* Few seeds, tags and inputs, so that all that can be equal often is. */
static void random_entry(xph_rng *rng, uint32_t variety, xph_game_entry *e)
{
    *e = plain_entry();
    e->seed = below(rng, variety);
    e->stage = (uint16_t)(30 + below(rng, 2));
    e->tag = below(rng, 3) ? 0 : 1 + below(rng, variety);
    e->frames = 100 + 40 * below(rng, 8);
    e->last_frame = (int32_t)e->frames - 124;
    if (below(rng, 4) == 0) e->flags = (uint8_t)(below(rng, 2) ? XPH_GAME_ENDED | XPH_GAME_CUT : 0);
    for (uint32_t i = 0, rungs = below(rng, 4); i < rungs; i++) e->digest[i] = 1 + below(rng, 2);
    e->content_hash = xph_rng_u64(rng) % (100 * (uint64_t)variety) + 1;
    e->source_hash = xph_rng_u64(rng);
    e->port[0].damage_dealt = (uint16_t)(95 + below(rng, 10));
}

static bool same_start(const xph_game_entry *a, const xph_game_entry *b)
{
    return a->seed == b->seed && a->stage == b->stage;
}

static bool same_tag(const xph_game_entry *a, const xph_game_entry *b)
{
    return a->tag && a->tag == b->tag && a->stage == b->stage;
}

static bool complete(const xph_game_entry *e)
{
    return (e->flags & XPH_GAME_ENDED) && !(e->flags & (XPH_GAME_CUT | XPH_GAME_GAPS));
}

static bool confirmed(const xph_game_entry *a, const xph_game_entry *b)
{
    int rung = 0;
    if (a->content_hash == b->content_hash) return true;
    if (same_start(a, b) && same_tag(a, b)) return true;
    while (rung < 3 && a->digest[rung] && b->digest[rung]) rung++;
    for (int i = 0; i < rung; i++)
        if (a->digest[i] != b->digest[i]) return false;
    if (!rung) return false;
    return !complete(a) || !complete(b) ||
           abs((a->last_frame + 1000000) / 64 - (b->last_frame + 1000000) / 64) <= 1;
}

static const xph_game_entry *sorting;

static int by_worth(const void *x, const void *y)
{
    const xph_game_entry *a = &sorting[*(const int64_t *)x], *b = &sorting[*(const int64_t *)y];
    if (complete(a) != complete(b)) return complete(a) ? -1 : 1;
    if (a->frames != b->frames) return a->frames > b->frames ? -1 : 1;
    if (a->content_hash != b->content_hash) return a->content_hash < b->content_hash ? -1 : 1;
    return a->source_hash < b->source_hash ? -1 : 1;
}

/* group[i]: the least game that i is in a group with. */
static void reference(const xph_game_entry *e, int64_t count, int32_t least_damage, bool copies_only,
                      int64_t *group, bool *left_out)
{
    int64_t *order = calloc((size_t)count, sizeof *order);
    bool *kept = calloc((size_t)count, sizeof *kept);
    for (int64_t i = 0; i < count; i++) order[i] = group[i] = i;
    for (bool changed = true; changed;) {
        changed = false;
        for (int64_t i = 0; i < count; i++)
            for (int64_t k = 0; k < i; k++) {
                if (group[i] == group[k] || !(same_start(&e[i], &e[k]) || same_tag(&e[i], &e[k]))) continue;
                group[i] = group[k] = group[i] < group[k] ? group[i] : group[k];
                changed = true;
            }
    }
    sorting = e;
    qsort(order, (size_t)count, sizeof *order, by_worth);
    for (int64_t n = 0; n < count; n++) {
        int64_t i = order[n];
        left_out[i] = false;
        if (e[i].port[0].damage_dealt < least_damage) continue;
        for (int64_t k = 0; k < count && !left_out[i]; k++) {
            if (!kept[k] || group[k] != group[i]) continue;
            left_out[i] = copies_only ? e[i].content_hash == e[k].content_hash : confirmed(&e[i], &e[k]);
        }
        kept[i] = !left_out[i];
    }
    free(order);
    free(kept);
}

static void expect_groups(xph_game_entry *e, int64_t count, int32_t least_damage, bool duplicates)
{
    int64_t *group = calloc((size_t)count, sizeof *group);
    bool *left_out = calloc((size_t)count, sizeof *left_out);
    exphil_selection s = EXPHIL_SELECTION_INIT;
    xph_game_groups *groups = NULL;
    s.least_damage = least_damage;
    s.port = 1;
    s.duplicates = duplicates;
    exphil_games *games = index_of_entries(e, count);
    xph_selector *selector = selector_of(&s);
    OK(xph_game_groups_make(games, selector, &groups, NULL));
    reference(e, count, least_damage, duplicates, group, left_out);
    for (int64_t i = 0; i < count; i++) {
        uint64_t least = UINT64_MAX;
        for (int64_t k = 0; k < count; k++) {
            uint64_t key = xph_game_keys_of(&e[k]).start;
            if (group[k] == group[i] && key < least) least = key;
        }
        assert_true(xph_game_group(groups, i) == least);
        assert_int_equal(xph_game_is_duplicate(groups, i), left_out[i]);
    }
    xph_game_groups_free(groups);
    xph_selector_free(selector);
    exphil_games_destroy(games);
    free(group);
    free(left_out);
}

static void brute_force(void **state)
{
    enum { MOST = 120 };
    xph_game_entry *e = calloc(MOST, sizeof *e);
    xph_rng rng = {.seed = 11, .stream = XPH_RNG_TEST};
    for (int round = 0; round < 150; round++) {
        int64_t count = 2 + below(&rng, MOST - 1);
        uint32_t variety = 1 + below(&rng, 40);
        for (int64_t i = 0; i < count; i++) random_entry(&rng, variety, &e[i]);
        expect_groups(e, count, round % 3 == 2 ? 100 : 0, round % 5 == 4);
    }
    free(e);
}

/* Groups of a large index; $SELECT_TEST_GAMES of them, and how long it took, are for whoever measures. */
static void many_games(void **state)
{
    const char *given = getenv("SELECT_TEST_GAMES");
    int64_t count = given ? atoll(given) : 20000, dropped = 0;
    xph_game_entry *e = calloc((size_t)count, sizeof *e);
    xph_rng rng = {.seed = 12, .stream = XPH_RNG_TEST};
    xph_game_groups *groups = NULL;
    for (int64_t i = 0; i < count; i += 2) { /* of every match both recordings, in random places */
        random_entry(&rng, 1u << 31, &e[i]);
        e[i].digest[0] = xph_rng_u32(&rng) | 1;
        e[i + 1] = e[i];
        e[i + 1].last_frame--;
        e[i + 1].frames--;
        e[i].content_hash = xph_rng_u64(&rng);
        e[i + 1].content_hash = xph_rng_u64(&rng);
    }
    for (int64_t i = count - 1; i > 0; i--) {
        xph_game_entry kept = e[i], *other = &e[below(&rng, (uint32_t)i + 1)];
        e[i] = *other;
        *other = kept;
    }
    exphil_games *games = index_of_entries(e, count);
    int64_t begun = xph_clock_ns();
    OK(xph_game_groups_make(games, NULL, &groups, NULL));
    if (given) print_message("%lld games: %.2f s\n", (long long)count, (double)(xph_clock_ns() - begun) * 1e-9);
    for (int64_t i = 0; i < count; i++) dropped += xph_game_is_duplicate(groups, i);
    assert_int_equal(dropped, count / 2);
    xph_game_groups_free(groups);
    exphil_games_destroy(games);
    free(e);
}

/* ---- real replays, counted by another program ---- */

typedef struct listing {
    exphil_games_writer *writer;
    FILE *list;
    int64_t games;
} listing;

static void list_replay(listing *l, const char *path)
{
    exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = exphil_games_add(l->writer, path, &added, &error);
    if (status == EXPHIL_E_UNSUPPORTED) return; /* without frames */
    if (status < 0) fail_msg("%s: %s", path, error.message);
    if (added.duplicate) return;
    fprintf(l->list, "%s\n", path);
    l->games++;
}

/* Every fourth with copies as other consoles would have written them, one of them cut. */
static void list_real(const char *path, exphil_slp *slp, void *arg)
{
    static const slp_edit edits[] = {OTHER_CONSOLE, {.drop = 40, .no_end = true}, {.drop = 2, .input = 300},
                                     {.drop = 1, .seed = 0x55}};
    listing *l = arg;
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    OK(exphil_slp_query(slp, &info, NULL));
    int64_t number = l->games;
    list_replay(l, path);
    if (number % 4 || info.frame_count < 600 || info.stop != EXPHIL_SLP_STOP_COMPLETE) return;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        slp_writer w;
        size_t bytes;
        char name[32], *data = test_read(path, &bytes);
        slp_edit_make((const uint8_t *)data, bytes, &edits[i], &w);
        snprintf(name, sizeof name, "copy%lld_%d.slp", (long long)number, (int)i);
        const char *copy = test_path(name);
        test_write(copy, w.data, w.bytes);
        list_replay(l, copy);
        slp_free(&w);
        free(data);
    }
}

static const char *const stage_lists[] = {NULL, NULL, "battlefield", "2 3 8", "31,32,28", "final_destination fountain_of_dreams"};
static const char *const character_lists[] = {NULL, NULL, "fox", "fox,falco,marth", "peach 0 9", "sheik, zelda, 4", "12"};

#define PICK(from) from[below(rng, sizeof from / sizeof from[0])]

/* Each field is set now and then. */
static exphil_selection random_selection(xph_rng *rng)
{
    exphil_selection s = EXPHIL_SELECTION_INIT;
    static const int32_t versions[] = {0, 0, 0, 0x010000, 0x020000, 0x020001, 0x030700, 0x030900, 0x030D00};
    static const int32_t days[] = {0, 0, 0, 16000, 17500, 18000, 18500, 19500};
    s.stages = PICK(stage_lists);
    s.characters = PICK(character_lists);
    s.opponents = PICK(character_lists);
    if (!below(rng, 3)) s.least_frames = 100 * below(rng, 100);
    if (!below(rng, 4)) s.most_frames = s.least_frames + 100 * below(rng, 200) + 1;
    s.first_day = PICK(days);
    s.last_day = PICK(days);
    if (s.last_day && s.last_day < s.first_day) s.last_day = s.first_day + 300;
    s.least_version = PICK(versions);
    s.teams = below(rng, 4) ? 0 : 1 + (int32_t)below(rng, 2);
    s.items = below(rng, 4) ? 0 : 1 + (int32_t)below(rng, 2);
    s.players = below(rng, 3) ? 0 : 1 + (int32_t)below(rng, 4);
    s.complete = !below(rng, 3);
    s.humans = !below(rng, 3);
    s.port = below(rng, 4) ? 0 : 1 + (int32_t)below(rng, 4);
    s.result = below(rng, 3) ? 0 : 1 + (int32_t)below(rng, 2);
    if (!below(rng, 3)) s.least_damage = 20 * (int32_t)below(rng, 20);
    if (!below(rng, 4)) s.least_stocks = (int32_t)below(rng, 5);
    if (!below(rng, 4)) s.self_destructs_below = 1 + (int32_t)below(rng, 3);
    if (!below(rng, 3)) s.least_input = below(rng, 100) / 100.0;
    s.opponent_port = below(rng, 4) ? 0 : 1 + (int32_t)below(rng, 4);
    if (s.port && s.port == s.opponent_port) s.opponent_port = 0;
    s.duplicates = !below(rng, 4);
    return s;
}

/* The fields one at a time first. */
static exphil_selection selection_of(int which, xph_rng *rng)
{
    exphil_selection s = EXPHIL_SELECTION_INIT;
    switch (which) {
    case 0: return s;
    case 1: s.duplicates = 1; return s;
    case 2: s.stages = "battlefield"; return s;
    case 3: s.least_frames = 3600; return s;
    case 4: s.most_frames = 5000; return s;
    case 5: s.first_day = 18000; return s;
    case 6: s.last_day = 18000; return s;
    case 7: s.least_version = 0x030700; return s;
    case 8: s.teams = EXPHIL_WITH; return s;
    case 9: s.items = EXPHIL_WITH; return s;
    case 10: s.players = 2; return s;
    case 11: s.complete = 1; return s;
    case 12: s.humans = 1; return s;
    case 13: s.characters = "fox falco"; return s;
    case 14: s.port = 1; return s;
    case 15: s.result = EXPHIL_RESULT_WON; return s;
    case 16: s.result = EXPHIL_RESULT_LOST; return s;
    case 17: s.least_damage = 200; return s;
    case 18: s.least_stocks = 3; return s;
    case 19: s.self_destructs_below = 1; return s;
    case 20: s.least_input = 0.5; return s;
    case 21: s.opponents = "marth"; return s;
    case 22: s.opponent_port = 2; return s;
    default: return random_selection(rng);
    }
}

static void write_selection(FILE *to, const exphil_selection *s)
{
    const struct {
        const char *name;
        int64_t value;
    } fields[] = {{"least_frames", s->least_frames}, {"most_frames", s->most_frames},
                  {"first_day", s->first_day},       {"last_day", s->last_day},
                  {"least_version", s->least_version}, {"teams", s->teams},
                  {"items", s->items},               {"players", s->players},
                  {"complete", s->complete},         {"humans", s->humans},
                  {"port", s->port},                 {"result", s->result},
                  {"least_damage", s->least_damage}, {"least_stocks", s->least_stocks},
                  {"self_destructs_below", s->self_destructs_below}, {"opponent_port", s->opponent_port},
                  {"duplicates", s->duplicates}};
    fprintf(to, "{\"least_input\": %.17g", s->least_input);
    if (s->stages) fprintf(to, ", \"stages\": \"%s\"", s->stages);
    if (s->characters) fprintf(to, ", \"characters\": \"%s\"", s->characters);
    if (s->opponents) fprintf(to, ", \"opponents\": \"%s\"", s->opponents);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].value) fprintf(to, ", \"%s\": %lld", fields[i].name, (long long)fields[i].value);
    fprintf(to, "}\n");
}

enum { SELECTIONS = 200 };

static void same_counts(const exphil_games *games, FILE *said, int64_t *reasons)
{
    xph_rng rng = {.seed = 13, .stream = XPH_RNG_TEST};
    for (int i = 0; i < SELECTIONS; i++) {
        exphil_selection s = selection_of(i, &rng);
        exphil_selection_report report = count(games, &s);
        long long players = -1, taken = -1, refused;
        assert_int_equal(fscanf(said, "%lld %lld", &players, &taken), 2);
        if (players != report.players || taken != report.taken)
            fail_msg("selection %d: %lld of %lld players, not %lld of %lld", i, (long long)report.taken,
                     (long long)report.players, taken, players);
        for (int32_t k = 0; k < EXPHIL_REFUSED_REASONS; k++) {
            assert_int_equal(fscanf(said, "%lld", &refused), 1);
            if (refused != report.refused[k])
                fail_msg("selection %d: %lld refused for \"%s\", not %lld", i, (long long)report.refused[k],
                         exphil_refused_name(k), refused);
            reasons[k] += refused;
        }
    }
}

/* All reasons but that there are no rows, which others count, occur. */
static void as_counted_elsewhere(void **state)
{
    const char *reader = test_replay("../slp_reference.py");
    if (!reader || !test_exists(reader)) {
        print_message("SKIPPED: there is no ../shared/slp_reference.py to count with\n");
        skip();
    }
    char command[4096], corpus[512], list[512], selections[512];
    snprintf(corpus, sizeof corpus, "%s", test_path("all.games"));
    snprintf(list, sizeof list, "%s", test_path("list"));
    snprintf(selections, sizeof selections, "%s", test_path("selections"));
    xph_rng rng = {.seed = 13, .stream = XPH_RNG_TEST};
    listing l = {.writer = create(corpus), .list = fopen(list, "w")};
    FILE *to = fopen(selections, "w");
    for (int i = 0; i < SELECTIONS; i++) {
        exphil_selection s = selection_of(i, &rng);
        write_selection(to, &s);
    }
    fclose(to);
    snprintf(command, sizeof command, "python3 \"%s\" \"%s\" \"%s\" \"%s\"",
             EXPHIL_SOURCE_DIR "/tests/support/select_reference.py", reader, selections, list);
    assert_true(game_each_real(list_real, &l));
    fclose(l.list);
    exphil_games *games = finish(l.writer, corpus);
    FILE *said = popen(command, "r");
    int64_t reasons[EXPHIL_REFUSED_REASONS] = {0};
    assert_non_null(said);
    same_counts(games, said, reasons);
    assert_int_equal(pclose(said), 0);
    for (int32_t k = 0; k < EXPHIL_REFUSED_REASONS; k++)
        if (k != EXPHIL_REFUSED_EMPTY && !reasons[k]) fail_msg("nobody is refused for \"%s\"", exphil_refused_name(k));
    print_message("%lld games, %d selections: the same counts\n", (long long)l.games, SELECTIONS);
    exphil_games_destroy(games);
}

static void group_memory_failures(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    xph_game_entry e[6];
    xph_rng rng = {.seed = 14, .stream = XPH_RNG_TEST};
    for (int i = 0; i < 6; i++) random_entry(&rng, 1, &e[i]);
    exphil_games_destroy(index_of_entries(e, 6));
    exphil_context *own = test_context(&memory, NULL, 1);
    exphil_games *games = NULL;
    xph_game_groups *groups = NULL;
    OK(exphil_games_open(own, test_path("index.games"), &games, NULL));
    long long failures = 0;
    for (exphil_status status = EXPHIL_E_MEMORY; status < 0; failures++) {
        memory.fail_at = atomic_load(&memory.calls) + failures + 1;
        status = xph_game_groups_make(games, NULL, &groups, NULL);
        assert_true(status == EXPHIL_OK || status == EXPHIL_E_MEMORY);
    }
    assert_true(failures > 4);
    xph_game_groups_free(groups);
    exphil_games_destroy(games);
    exphil_context_destroy(own);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_of_games),
        cmocka_unit_test(reasons_of_players),
        cmocka_unit_test(teams_and_targets),
        cmocka_unit_test(first_reason),
        cmocka_unit_test(limits),
        cmocka_unit_test(names),
        cmocka_unit_test(memory_failures),
        cmocka_unit_test(from_replays),
        cmocka_unit_test(recordings),
        cmocka_unit_test(tags),
        cmocka_unit_test(real_recordings),
        cmocka_unit_test(what_is_kept),
        cmocka_unit_test(brute_force),
        cmocka_unit_test(many_games),
        cmocka_unit_test(as_counted_elsewhere),
        cmocka_unit_test(group_memory_failures),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
