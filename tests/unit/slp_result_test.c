/* Who won: games written by hand, one for each rule of exphil/slp.h and for what old recorders leave out, and every
 * real replay against facts that were taken down by another reader and judged by eye. */
#include "context_case.h"
#include "slp_writer.h"

#include <exphil/slp.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HUMAN = 0, CPU = 1, EMPTY = 3, STOCK = 1, TIMED = 0 };
enum { V1_0 = 1, V1_7 = 3, V2_0 = 4, V3_9 = 8, V3_13 = 10 }; /* places in slp_layouts */
enum { UNRESOLVED = 0, TIME = 1, GAME = 2, RESOLVED = 3, NO_CONTEST = 7, NO_END = 255 };

typedef struct player {
    uint8_t plays, team, stocks;
    float percent;
    bool gone; /* sends nothing in the last frame */
} player;

typedef struct game {
    const char *what;
    int layout;
    uint8_t mode, teams, method;
    int8_t lras, places[4];
    player port[4];
    int32_t reason, winner, winners, quitter;
    uint8_t scene;
} game;

#define NOBODY                                                                                               \
  {                                                                                                          \
    0                                                                                                        \
  }
#define P(stocks, percent)                                                                                   \
  {                                                                                                          \
    1, 0, stocks, percent, false                                                                             \
  }
#define T(team, stocks, percent)                                                                             \
  {                                                                                                          \
    1, team, stocks, percent, false                                                                          \
  }
#define NO_PLACES                                                                                            \
  {                                                                                                          \
    -1, -1, -1, -1                                                                                           \
  }

/* clang-format off */
static const game games[] = {
    {"the last stock", V3_9, STOCK, 0, GAME, -1, NO_PLACES, {P(2, 80), P(0, 120)},
     EXPHIL_SLP_RESULT_STOCKS, 1, 1, 0, 2},
    {"the last stock, ports 2 and 4, no placements then", V1_7, STOCK, 0, RESOLVED, -1, NO_PLACES,
     {NOBODY, P(0, 10), NOBODY, P(1, 99)}, EXPHIL_SLP_RESULT_STOCKS, 4, 8, 0, 0},
    {"cut after the last stock", V1_0, STOCK, 0, NO_END, -1, NO_PLACES, {P(3, 51), P(0, 82)},
     EXPHIL_SLP_RESULT_STOCKS, 1, 1, 0, 0},
    {"cut before", V3_9, STOCK, 0, NO_END, -1, NO_PLACES, {P(3, 51), P(1, 82)},
     EXPHIL_SLP_RESULT_UNFINISHED, 0, 0, 0, 2},
    {"the better one quits, placements speak for him", V3_13, STOCK, 0, NO_CONTEST, 0, {0, 1, -1, -1},
     {P(4, 40), P(1, 90)}, EXPHIL_SLP_RESULT_QUIT, 2, 2, 1, 2},
    {"quits before placements were recorded", V2_0, STOCK, 0, NO_CONTEST, 2, NO_PLACES,
     {NOBODY, P(4, 11), P(3, 0), NOBODY}, EXPHIL_SLP_RESULT_QUIT, 2, 2, 3, 0},
    {"broken off, before quitters were recorded", V1_0, STOCK, 0, UNRESOLVED, -1, NO_PLACES, {P(3, 0), P(1, 0)},
     EXPHIL_SLP_RESULT_NO_CONTEST, 0, 0, 0, 0},
    {"one of four quits", V3_9, STOCK, 0, NO_CONTEST, 0, NO_PLACES, {P(4, 0), P(4, 0), P(4, 0), P(4, 0)},
     EXPHIL_SLP_RESULT_NO_CONTEST, 0, 0, 1, 2},
    {"a quitter where nobody plays", V3_9, STOCK, 0, NO_CONTEST, 3, NO_PLACES, {P(4, 0), P(4, 0)},
     EXPHIL_SLP_RESULT_NO_CONTEST, 0, 0, 0, 2},
    {"time, more stocks with more percent", V3_13, STOCK, 0, TIME, -1, {1, 0, -1, -1}, {P(2, 150), P(1, 0)},
     EXPHIL_SLP_RESULT_TIME_STOCKS, 1, 1, 0, 2},
    {"time, equal stocks, placements by port", V3_13, STOCK, 0, TIME, -1, {0, 1, -1, -1}, {P(2, 80), P(2, 79)},
     EXPHIL_SLP_RESULT_TIME_PERCENT, 2, 2, 0, 2},
    {"time, equal in whole percent", V3_13, STOCK, 0, TIME, -1, {0, 1, -1, -1}, {P(2, 79.9F), P(2, 79)},
     EXPHIL_SLP_RESULT_TIE, 0, 0, 0, 2},
    {"time, percent that is no number", V3_9, STOCK, 0, TIME, -1, NO_PLACES, {P(2, NAN), P(2, 3e38F)},
     EXPHIL_SLP_RESULT_TIME_PERCENT, 1, 1, 0, 2},
    {"time, three play, two are ahead", V3_9, STOCK, 0, TIME, -1, NO_PLACES, {P(1, 0), P(3, 50), P(3, 20)},
     EXPHIL_SLP_RESULT_TIME_PERCENT, 3, 4, 0, 2},
    {"sudden death: a stock each at 300 %", V3_9, STOCK, 0, GAME, -1, NO_PLACES, {P(1, 300), P(0, 312)},
     EXPHIL_SLP_RESULT_STOCKS, 1, 1, 0, 2},
    {"both die at once", V3_9, STOCK, 0, GAME, -1, NO_PLACES, {P(0, 300), P(0, 312)},
     EXPHIL_SLP_RESULT_TIE, 0, 0, 0, 2},
    {"both die at once, the recorder knows", V3_13, STOCK, 0, GAME, -1, {1, 0, -1, -1}, {P(0, 300), P(0, 312)},
     EXPHIL_SLP_RESULT_PLACEMENTS, 2, 2, 0, 2},
    {"a ditto is told by its ports", V3_13, STOCK, 0, GAME, -1, {-1, -1, 1, 0}, {NOBODY, NOBODY, P(0, 1), P(4, 1)},
     EXPHIL_SLP_RESULT_STOCKS, 4, 8, 0, 2},
    {"against a computer", V3_9, STOCK, 0, GAME, -1, NO_PLACES, {P(0, 1), {2, 0, 4, 0, false}},
     EXPHIL_SLP_RESULT_STOCKS, 2, 2, 0, 2},
    {"doubles, one of the winners is out", V3_13, STOCK, 1, GAME, -1, {1, 2, 3, 0},
     {T(1, 0, 10), T(2, 0, 10), T(1, 0, 10), T(2, 1, 10)}, EXPHIL_SLP_RESULT_STOCKS, 2, 10, 0, 2},
    {"doubles, cut while both teams live", V3_9, STOCK, 1, NO_END, -1, NO_PLACES,
     {T(1, 0, 10), T(2, 0, 10), T(1, 2, 10), T(2, 1, 10)}, EXPHIL_SLP_RESULT_UNFINISHED, 0, 0, 0, 2},
    {"doubles, one of a team quits", V3_9, STOCK, 1, NO_CONTEST, 2, NO_PLACES,
     {T(1, 4, 0), T(2, 1, 0), T(1, 4, 0), T(2, 1, 0)}, EXPHIL_SLP_RESULT_QUIT, 2, 10, 3, 2},
    {"time, two against one: stocks of a team together", V3_13, STOCK, 1, TIME, -1, {1, 2, 0, -1},
     {T(0, 1, 100), T(0, 2, 100), T(2, 2, 0)}, EXPHIL_SLP_RESULT_TIME_STOCKS, 1, 3, 0, 2},
    {"time, percent of the dead does not count", V3_13, STOCK, 1, TIME, -1, NO_PLACES,
     {T(0, 0, 200), T(0, 2, 50), T(2, 2, 60)}, EXPHIL_SLP_RESULT_TIME_PERCENT, 1, 3, 0, 2},
    {"a team game with one team", V3_9, STOCK, 1, GAME, -1, NO_PLACES, {T(1, 4, 0), T(1, 4, 0)},
     EXPHIL_SLP_RESULT_ALONE, 0, 0, 0, 2},
    {"stocks mean nothing in a game by time", V3_9, TIMED, 0, TIME, -1, NO_PLACES, {P(0, 0), P(1, 0)},
     EXPHIL_SLP_RESULT_UNKNOWN, 0, 0, 0, 2},
    {"placements do", V3_13, TIMED, 0, TIME, -1, {1, 0, -1, -1}, {P(0, 0), P(0, 0)},
     EXPHIL_SLP_RESULT_PLACEMENTS, 2, 2, 0, 2},
    {"placements with two first", V3_13, TIMED, 0, TIME, -1, {0, 0, -1, -1}, {P(0, 0), P(0, 0)},
     EXPHIL_SLP_RESULT_UNKNOWN, 0, 0, 0, 2},
    {"placements of an empty port", V3_13, TIMED, 0, TIME, -1, {1, 1, 0, -1}, {P(0, 0), P(0, 0)},
     EXPHIL_SLP_RESULT_UNKNOWN, 0, 0, 0, 2},
    {"one of the players never appears", V3_9, STOCK, 0, GAME, -1, NO_PLACES, {P(1, 0), {1, 0, 4, 0, true}},
     EXPHIL_SLP_RESULT_UNKNOWN, 0, 0, 0, 2},
    {"a target test", V3_9, STOCK, 0, 6, -1, NO_PLACES, {P(1, 0)}, EXPHIL_SLP_RESULT_ALONE, 0, 0, 0, 15},
    {"a home-run contest against the sandbag", V3_9, STOCK, 0, 9, -1, NO_PLACES, {P(1, 0), {2, 0, 0, 0, false}},
     EXPHIL_SLP_RESULT_ALONE, 0, 0, 0, 32},
};
/* clang-format on */

static void write_start(const game *g, uint8_t *start)
{
    start[0x05] = (uint8_t)(g->mode << 5);
    start[0x0D] = g->teams;
    for (int i = 0; i < 4; i++) {
        start[0x66 + 0x24 * i] = g->port[i].plays ? (uint8_t)(g->port[i].plays - 1) : EMPTY;
        start[0x6E + 0x24 * i] = g->port[i].team;
    }
    if (slp_layouts[g->layout].start >= 0x1A4) start[0x1A4] = g->scene;
}

/* A frame, then the one that counts; a follower's stocks are no player's. */
static void write_frames(slp_writer *writer, const game *g)
{
    for (int32_t frame = -123; frame < -121; frame++) {
        slp_event(writer, 0x3A, frame, 0);
        for (uint32_t slot = 0; slot < 8; slot++)
            if (g->port[slot / 2].plays && !g->port[slot / 2].gone) slp_event(writer, 0x37, frame, slot);
        for (uint32_t slot = 0; slot < 8; slot++) {
            const player *p = &g->port[slot / 2];
            if (!p->plays || p->gone) continue;
            uint8_t *post = slp_event(writer, 0x38, frame, slot);
            uint32_t bits;
            memcpy(&bits, &p->percent, sizeof bits);
            for (int i = 0; i < 4; i++) post[0x16 + i] = (uint8_t)(bits >> (24 - 8 * i));
            post[0x21] = slot % 2 ? 9 : (uint8_t)(p->stocks + (frame < -122));
        }
        slp_event(writer, 0x3C, frame, 0);
    }
}

static exphil_slp *make(const game *g)
{
    slp_writer writer;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp *slp = NULL;
    slp_begin(&writer, &slp_layouts[g->layout], false);
    slp_head(&writer, &slp_layouts[g->layout]);
    write_start(g, writer.data + writer.bytes - 1 - writer.size[0x36]);
    write_frames(&writer, g);
    if (g->method != NO_END) {
        slp_game_end(&writer, g->method);
        uint8_t *end = writer.data + writer.bytes - 1 - writer.size[0x39];
        if (writer.size[0x39] >= 2) end[2] = (uint8_t)g->lras;
        if (writer.size[0x39] >= 6) memcpy(end + 3, g->places, 4);
    }
    slp_close(&writer, -122);
    if (exphil_slp_read(context, writer.data, writer.bytes, NULL, &slp, &error) < 0)
        fail_msg("%s", error.message);
    slp_free(&writer);
    return slp;
}

static void compare(const char *what, const exphil_slp_result *r, int32_t reason, int32_t winner,
                    int32_t winners, int32_t quitter)
{
    if (r->reason == reason && r->winner == winner && r->winners == winners && r->quitter == quitter) return;
    fail_msg("%s: reason %d winner %d of %d, quitter %d; expected %d, %d of %d, %d", what, (int)r->reason,
             (int)r->winner, (int)r->winners, (int)r->quitter, (int)reason, (int)winner, (int)winners,
             (int)quitter);
}

static void test_rules(void **state)
{
    for (size_t i = 0; i < sizeof games / sizeof games[0]; i++) {
        const game *g = &games[i];
        exphil_slp_result result = EXPHIL_SLP_RESULT_INIT;
        exphil_slp *slp = make(g);
        assert_int_equal(exphil_slp_result_get(slp, &result, NULL), EXPHIL_OK);
        compare(g->what, &result, g->reason, g->winner, g->winners, g->quitter);
        for (int p = 0; p < 4; p++) {
            bool there = g->port[p].plays && !g->port[p].gone;
            assert_int_equal(result.stocks[p], there ? g->port[p].stocks : -1);
            if (!there || isnan(g->port[p].percent))
                assert_true(isnan(result.percent[p]));
            else
                assert_true(result.percent[p] == g->port[p].percent);
        }
        exphil_slp_destroy(slp);
    }
}

static void test_misuse(void **state)
{
    exphil_slp_result result = EXPHIL_SLP_RESULT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp *slp = make(&games[0]);
    assert_int_equal(exphil_slp_result_get(NULL, &result, &error), EXPHIL_E_INVALID);
    assert_says(&error, "slp is NULL");
    assert_int_equal(exphil_slp_result_get(slp, NULL, &error), EXPHIL_E_INVALID);
    assert_says(&error, "exphil_slp_result");
    result.struct_size = 4;
    result.winner = 77;
    assert_int_equal(exphil_slp_result_get(slp, &result, &error), EXPHIL_E_INVALID);
    assert_int_equal(result.winner, 77);
    exphil_slp_destroy(slp);
}

/* ---- real replays ---------------------------------------------------------------------------------------- */

enum {
    S = EXPHIL_SLP_RESULT_STOCKS,
    TS = EXPHIL_SLP_RESULT_TIME_STOCKS,
    Q = EXPHIL_SLP_RESULT_QUIT,
    N = EXPHIL_SLP_RESULT_NO_CONTEST,
    U = EXPHIL_SLP_RESULT_UNFINISHED,
    A = EXPHIL_SLP_RESULT_ALONE
};

/* Beside the folder of the replays lies the one of the games. */
static const struct real {
    const char *file;
    int32_t reason, winners, quitter;
    const char *date;
} reals[] = {
    {"formats/BTTDK.slp", A, 0, 0, "2022-01-09T18:59:18Z"},
    {"formats/buttons_lrzs.slp", N, 0, 0, "2018-06-28T04:17:22Z"},
    {"formats/corrupt.slp", U, 0, 0, ""},
    {"formats/crazy_name_tags.slp", N, 0, 1, "2022-08-25T07:19:42Z"},
    {"formats/duplicate_game_end.slp", S, 1, 0, ""},
    {"formats/fox_multishine.slp", S, 2, 0, "2026-07-07T18:06:12Z"},
    {"formats/ics.slp", N, 0, 0, "2018-06-25T09:11:51Z"},
    {"formats/incomplete.slp", S, 1, 0, ""},
    {"formats/items.slp", S, 1, 0, "2020-08-03T21:54:17Z"},
    {"formats/short_game_tbh10.slp", Q, 8, 1, "2022-10-10T16:45:05"},
    {"formats/teams_p1p2_blueVSp4_green_winner_green.slp", S, 8, 0, "2022-08-30T18:20:22Z"},
    {"formats/teams_time_p3_redVSp1p2_blueVSp4_green_winner_blue.slp", TS, 3, 0, "2022-08-30T18:21:46Z"},
    {"formats/transform.slp", N, 0, 0, "2019-03-24T12:04:01"},
    {"formats/unknown_event.slp", S, 1, 0, "2018-06-22T07:52:59Z"},
    {"formats/v0.1.slp", S, 2, 0, "2018-01-24T06:19:54Z"},
    {"formats/v2.0.slp", S, 1, 0, "2019-04-21T19:50:33"},
    {"formats/v3.18.slp", Q, 2, 1, "2025-02-09T22:56:19Z"},
    {"training/fox_ms_teacher_2min.slp", S, 2, 0, "2026-07-26T19:19:13Z"},
    {"training/fox_multishine_closed.slp", S, 2, 0, "2026-07-24T06:29:03Z"},
    {"training/mewtwo_shfair_only.slp", S, 1, 0, "2026-07-08T19:44:51Z"},
    {"../games/1-7-0-singles-irl-phoenix-blue-2.slp", S, 2, 0, "2019-02-25T01:37:44"},
    {"../games/2-0-1-singles-irl-genesis.slp", S, 1, 0, "2020-01-26T17:23:56"},
    {"../games/2-0-1-singles-irl-mainstage-2019.slp", S, 1, 0, "2019-09-22T19:31:50"},
    {"../games/2-0-1-singles-irl-shine-2019.slp", S, 1, 0, "2019-08-25T16:39:30"},
    {"../games/2-0-1-singles-irl-summit11.slp", S, 2, 0, "2021-07-18T21:22:00"},
    {"../games/2-0-1-singles-irl-summit8.slp", S, 2, 0, "2019-06-16T20:03:01"},
    {"../games/2-0-1-singles-irl.slp", S, 4, 0, "2020-02-22T13:38:12"},
    {"../games/2-0-1-singles-net.slp", S, 1, 0, "2020-01-01T17:10:04Z"},
    {"../games/3-12-0-singles-net.slp", S, 2, 0, "2022-02-08T12:08:53Z"},
    {"../games/3-7-0-first-item-not-id-0.slp", S, 1, 0, "2021-01-18T03:49:51Z"},
    {"../games/3-7-0-singles-net.slp", S, 1, 0, "2020-10-01T05:06:45Z"},
    {"../games/3-7-0-singles-online-summit10.slp", S, 1, 0, "2020-11-23T04:29:31"},
    {"../games/3-9-0-copious-items.slp", S, 2, 0, "2021-09-27T22:56:25Z"},
    {"../games/3-9-0-singles-irl-pinnacle.slp", S, 1, 0, "2022-08-05T02:04:09"},
    {"../games/3-9-0-singles-irl-summit12.slp", S, 4, 0, "2021-12-13T10:55:05"},
    {"../games/3-9-1-singles-net.slp", S, 1, 0, "2022-02-05T02:14:48Z"},
    {"../games/FodPlatforms.slp", S, 1, 0, "2024-03-22T05:41:46Z"},
    {"../games/actionEdgeCases.slp", Q, 4, 2, "2022-05-02T23:48:09Z"},
    {"../games/console_name.slp", S, 1, 0, "2019-03-24T11:12:04"},
    {"../games/facingDirection.slp", S, 1, 0, "2021-07-30T02:26:23Z"},
    {"../games/game.slp", S, 1, 0, "2018-06-22T07:52:59Z"},
    {"../games/itemExport.slp", Q, 1, 2, "2020-10-10T11:08:51Z"},
    {"../games/lCancel.slp", Q, 2, 1, "2021-01-27T13:12:10Z"},
    {"../games/nintendont.slp", S, 8, 0, "2019-03-09T21:22:17"},
    {"../games/old_ver_thegang.slp", S, 8, 0, "2019-03-09T19:01:13"},
    {"../games/realtimeTest.slp", Q, 4, 2, "2019-06-13T11:31:07"},
    {"../games/rollbackFrameTest.slp", S, 1, 0, "2021-10-11T22:36:14Z"},
    {"../games/techTester.slp", S, 1, 0, "2021-08-05T17:27:25Z"},
    {"../games/test.slp", S, 1, 0, "2017-12-18T21:14:14Z"},
    {"../games/test_game_2.slp", Q, 4, 2, "2019-05-14T00:09:40"},
    {"../games/throwGrab.slp", Q, 2, 1, "2021-01-28T23:31:05Z"},
};

static void test_real(void **state)
{
    int absent = 0;
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        const struct real *real = &reals[i];
        exphil_slp_result result = EXPHIL_SLP_RESULT_INIT;
        exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
        exphil_error error = EXPHIL_ERROR_INIT;
        exphil_slp *slp = NULL;
        const char *path = test_replay(real->file);
        int32_t first = 0;
        if (!path) {
            absent++;
            continue;
        }
        if (exphil_slp_open(context, path, NULL, &slp, &error) < 0) fail_msg("%s", error.message);
        assert_int_equal(exphil_slp_result_get(slp, &result, &error), EXPHIL_OK);
        for (int32_t p = 4; p > 0; p--)
            if (real->winners >> (p - 1) & 1) first = p;
        compare(real->file, &result, real->reason, first, real->winners, real->quitter);
        assert_int_equal(exphil_slp_query(slp, &info, &error), EXPHIL_OK);
        assert_string_equal(info.started_at, real->date);
        exphil_slp_destroy(slp);
    }
    if (absent)
        print_message("SKIPPED: %d of %zu real replays are not there\n", absent,
                      sizeof reals / sizeof reals[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
