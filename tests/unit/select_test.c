/* Who is imitated: every reason by entries and replays made here; all fields' limits; all reasons of real replays for many
 * selections as another program counts them. */
#include "game_case.h"
#include "match_case.h"
#include "select_case.h"
#include "slp_edit.h"
#include "test_places.h"

#include <stdio.h>
#include <stdlib.h>

#define OK(call) assert_int_equal(call, EXPHIL_OK)

/* ---- entries ---- */

static int32_t asked(const exphil_selection *selection, const xph_game_entry *entry, int32_t port,
                     int32_t *opponent)
{
    xph_selector *selector = select_selector(selection);
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
    xph_game_entry e = select_entry();                                                                       \
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
    xph_game_entry e = select_entry();
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

/* A filter, the reason that it refuses for, and where it stands. */
#define FILTER(reason, field)                                                                                \
  {                                                                                                          \
    reason, offsetof(exphil_selection, field), sizeof((exphil_selection *)0)->field                          \
  }
static const struct {
    int32_t reason;
    size_t at, bytes;
} filters[] = {FILTER(EXPHIL_REFUSED_STAGE, stages),
               FILTER(EXPHIL_REFUSED_SHORT, least_frames),
               FILTER(EXPHIL_REFUSED_EARLY, first_day),
               FILTER(EXPHIL_REFUSED_VERSION, least_version),
               FILTER(EXPHIL_REFUSED_TEAMS, teams),
               FILTER(EXPHIL_REFUSED_ITEMS, items),
               FILTER(EXPHIL_REFUSED_PLAYERS, players),
               FILTER(EXPHIL_REFUSED_INCOMPLETE, complete),
               FILTER(EXPHIL_REFUSED_COMPUTER_GAME, humans),
               FILTER(EXPHIL_REFUSED_CHARACTER, characters),
               FILTER(EXPHIL_REFUSED_PORT, port),
               FILTER(EXPHIL_REFUSED_RESULT, result),
               FILTER(EXPHIL_REFUSED_DAMAGE, least_damage),
               FILTER(EXPHIL_REFUSED_STOCKS, least_stocks),
               FILTER(EXPHIL_REFUSED_SELF_DESTRUCTS, self_destructs_below),
               FILTER(EXPHIL_REFUSED_INPUT, least_input),
               FILTER(EXPHIL_REFUSED_OPPONENT_PORT, opponent_port),
               FILTER(EXPHIL_REFUSED_OPPONENT, opponents)};

/* Where everything fails, the first filter counts; then the next, once that one is not set. */
static void first_reason(void **state)
{
    exphil_selection s = {.struct_size = sizeof s,
                          .stages = "venom",
                          .least_frames = 2000,
                          .first_day = 30000,
                          .least_version = 0x040000,
                          .teams = EXPHIL_WITH,
                          .items = EXPHIL_WITH,
                          .players = 4,
                          .complete = 1,
                          .humans = 1,
                          .characters = "peach",
                          .port = 2,
                          .result = EXPHIL_RESULT_LOST,
                          .least_damage = 500,
                          .least_stocks = 4,
                          .self_destructs_below = 1,
                          .least_input = 0.9,
                          .opponents = "fox",
                          .opponent_port = 4};
    xph_game_entry e = select_entry();
    int32_t opponent;
    e.flags = 0;
    e.port[2].type = 1;
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        assert_int_equal(asked(&s, &e, 1, &opponent), filters[i].reason);
        memset((char *)&s + filters[i].at, 0, filters[i].bytes);
    }
    assert_int_equal(asked(&s, &e, 1, &opponent), -1);
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
    REFUSE(stages, "batlefield", "stages: stage \"batlefield\" is unknown; some are");
    REFUSE(stages, "battlefield, 65536", "stages: a stage is a name or a number of 0..65535");
    REFUSE(stages, "99999999999999999999", "stages: a stage is a name");
    REFUSE(stages, "", "stages names no stage");
    REFUSE(characters, " , ", "characters names no character");
    REFUSE(characters, "fox foxx", "characters: character \"foxx\" is unknown; some are fox, falco");
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
    xph_selector *selector = select_selector(NULL);
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

static void expect_counts(const exphil_games *games, const exphil_selection *s, int64_t taken, int32_t reason,
                          int64_t refused)
{
    exphil_selection_report report = select_count(games, s);
    assert_int_equal(report.games, 1);
    assert_int_equal(report.players, 2);
    assert_int_equal(report.taken, taken);
    assert_int_equal(report.refused[reason], refused);
    assert_int_equal(taken + refused, 2);
}

static void one_game(const match_made *m, const exphil_selection *s, int64_t taken, int32_t reason)
{
    const char *path = test_path("one.games");
    exphil_games_writer *writer = select_create(path);
    slp_writer w;
    match_make(&w, m);
    select_add(writer, &w);
    slp_free(&w);
    exphil_games *games = select_finish(writer, path);
    expect_counts(games, s, taken, reason, 2 - taken);
    exphil_games_destroy(games);
}

#define ONE(change, field, value, taken, reason)                                                             \
  do {                                                                                                       \
    match_made m = match_usual;                                                                              \
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
    static const slp_edit edits[] = {SELECT_OTHER_CONSOLE,
                                     {.drop = 40, .no_end = true},
                                     {.drop = 2, .input = 300},
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

static uint32_t below(xph_rng *rng, uint32_t bound)
{
    return (uint32_t)xph_rng_below(rng, bound);
}

static const char *const stage_lists[] = {NULL,    NULL,       "battlefield",
                                          "2 3 8", "31,32,28", "final_destination fountain_of_dreams"};
static const char *const character_lists[] = {
    NULL, NULL, "fox", "fox,falco,marth", "peach 0 9", "sheik, zelda, 4", "12"};

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
    static const exphil_selection alone[] = {{.port = 0},
                                             {.duplicates = 1},
                                             {.stages = "battlefield"},
                                             {.least_frames = 3600},
                                             {.most_frames = 5000},
                                             {.first_day = 18000},
                                             {.last_day = 18000},
                                             {.least_version = 0x030700},
                                             {.teams = EXPHIL_WITH},
                                             {.items = EXPHIL_WITH},
                                             {.players = 2},
                                             {.complete = 1},
                                             {.humans = 1},
                                             {.characters = "fox falco"},
                                             {.port = 1},
                                             {.result = EXPHIL_RESULT_WON},
                                             {.result = EXPHIL_RESULT_LOST},
                                             {.least_damage = 200},
                                             {.least_stocks = 3},
                                             {.self_destructs_below = 1},
                                             {.least_input = 0.5},
                                             {.opponents = "marth"},
                                             {.opponent_port = 2}};
    if (which >= (int)(sizeof alone / sizeof alone[0])) return random_selection(rng);
    exphil_selection s = alone[which];
    s.struct_size = sizeof s;
    return s;
}

static void write_selection(FILE *to, const exphil_selection *s)
{
    const struct {
        const char *name;
        int64_t value;
    } fields[] = {{"least_frames", s->least_frames},
                  {"most_frames", s->most_frames},
                  {"first_day", s->first_day},
                  {"last_day", s->last_day},
                  {"least_version", s->least_version},
                  {"teams", s->teams},
                  {"items", s->items},
                  {"players", s->players},
                  {"complete", s->complete},
                  {"humans", s->humans},
                  {"port", s->port},
                  {"result", s->result},
                  {"least_damage", s->least_damage},
                  {"least_stocks", s->least_stocks},
                  {"self_destructs_below", s->self_destructs_below},
                  {"opponent_port", s->opponent_port},
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
        exphil_selection_report report = select_count(games, &s);
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
    if (!reader || !test_exists(reader))
        test_left_out("there is no ../shared/slp_reference.py to count with");
    if (!test_has_command("python3")) test_left_out("there is no python3 to count with");
    char command[4096], corpus[512], list[512], selections[512];
    snprintf(corpus, sizeof corpus, "%s", test_path("all.games"));
    snprintf(list, sizeof list, "%s", test_path("list"));
    snprintf(selections, sizeof selections, "%s", test_path("selections"));
    xph_rng rng = {.seed = 13, .stream = XPH_RNG_TEST};
    listing l = {.writer = select_create(corpus), .list = fopen(list, "w")};
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
    exphil_games *games = select_finish(l.writer, corpus);
    FILE *said = test_command(command);
    int64_t reasons[EXPHIL_REFUSED_REASONS] = {0};
    assert_non_null(said);
    same_counts(games, said, reasons);
    assert_int_equal(test_command_end(said), 0);
    for (int32_t k = 0; k < EXPHIL_REFUSED_REASONS; k++)
        if (k != EXPHIL_REFUSED_EMPTY && !reasons[k])
            fail_msg("nobody is refused for \"%s\"", exphil_refused_name(k));
    print_message("%lld games, %d selections: the same counts\n", (long long)l.games, SELECTIONS);
    exphil_games_destroy(games);
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
        cmocka_unit_test(as_counted_elsewhere),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
