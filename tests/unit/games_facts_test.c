/* What a corpus of games notes of a replay, on replays whose every hit is known: damage, deaths, inputs, winners, days,
 * tags, runs and digests. */
#include "context_case.h"
#include "slp_writer.h"

#include "games/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* One record of a port's leader. */
typedef struct record {
    float percent;
    uint8_t stocks, hit_by; /* 6: nobody */
    uint16_t buttons;
    float joy_x, c_y, trigger;
} record;

enum { NOBODY = 6, LEADERS = 4 };

/* A game that is being made; each frame has the records that are not absent. */
typedef struct making {
    slp_writer to;
    const slp_layout *layout;
    size_t start; /* of the game start event */
} making;

static void put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void put_f32(uint8_t *to, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u32(to, bits);
}

static uint8_t *start_of(const making *m)
{
    return m->to.data + m->start;
}

/* Ports 1 and 2 play unless a test says else; no match id. */
static void begin(making *m, int layout, bool bare)
{
    m->layout = &slp_layouts[layout];
    slp_begin(&m->to, m->layout, bare);
    slp_head(&m->to, m->layout);
    m->start = m->to.bytes - 1 - m->layout->start;
    start_of(m)[0x0D] = 0;
    for (int port = 0; port < LEADERS; port++) start_of(m)[0x66 + 0x24 * port] = port < 2 ? 0 : 3;
    if (m->layout->start >= 0x2BE) start_of(m)[0x2BE] = 0;
}

static void put_pre(making *m, int32_t frame, uint32_t slot, const record *r)
{
    uint8_t *event = slp_event(&m->to, 0x37, frame, slot);
    memset(event + 7, 0, (size_t)m->layout->pre - 6);
    put_f32(event + 0x19, r->joy_x);
    put_f32(event + 0x25, r->c_y);
    put_f32(event + 0x29, r->trigger);
    event[0x31] = (uint8_t)(r->buttons >> 8);
    event[0x32] = (uint8_t)r->buttons;
}

static void put_post(making *m, int32_t frame, uint32_t slot, const record *r)
{
    uint8_t *event = slp_event(&m->to, 0x38, frame, slot);
    memset(event + 7, 0, (size_t)m->layout->post - 6);
    put_f32(event + 0x16, r->percent);
    event[0x20] = r->hit_by;
    event[0x21] = r->stocks;
}

static void add_frame(making *m, int32_t frame, const record *const records[LEADERS], int32_t final)
{
    slp_event(&m->to, 0x3A, frame, 0);
    for (uint32_t port = 0; port < LEADERS; port++)
        if (records[port]) put_pre(m, frame, 2 * port, records[port]);
    for (uint32_t port = 0; port < LEADERS; port++)
        if (records[port]) put_post(m, frame, 2 * port, records[port]);
    uint8_t *end = slp_event(&m->to, 0x3C, frame, 0);
    if (end && m->layout->bookend >= 8) put_u32(end + 5, (uint32_t) final);
}

/* Frames from -123 on, in which each port has the records of its column. */
static void add_frames(making *m, const record *records, int frames, int ports)
{
    for (int t = 0; t < frames; t++) {
        const record *all[LEADERS] = {NULL};
        for (int port = 0; port < ports; port++) all[port] = &records[t * ports + port];
        add_frame(m, t - 123, all, t - 123);
    }
}

typedef struct facts {
    xph_game_entry entry;
    xph_game_run *runs;
    exphil_slp *slp;
} facts;

static facts look(making *m)
{
    facts f = {.slp = NULL};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    xph_game_start start;
    memset(&start, 0, sizeof start);
    if (exphil_slp_read(context, m->to.data, m->to.bytes, NULL, &f.slp, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(exphil_slp_query(f.slp, &info, NULL), EXPHIL_OK);
    xph_game_describe(f.slp, &info, &f.entry, &start);
    assert_int_equal(xph_game_runs(context, f.slp, &f.entry, &f.runs, NULL), EXPHIL_OK);
    slp_free(&m->to);
    return f;
}

static void forget(facts *f)
{
    xph_free(context, f->runs, f->entry.runs * sizeof *f->runs);
    exphil_slp_destroy(f->slp);
}

static void assert_port(const facts *f, int port, int dealt, int taken, int stocks_taken, int self,
                        int stocks)
{
    const xph_game_port *p = &f->entry.port[port];
    assert_int_equal(p->damage_dealt, dealt);
    assert_int_equal(p->damage_taken, taken);
    assert_int_equal(p->stocks_taken, stocks_taken);
    assert_int_equal(p->self_destructs, self);
    assert_int_equal(p->end_stocks, stocks);
}

/* ---- damage and deaths ---- */

static void hits_and_deaths(void **state)
{
    static const record records[][2] = {
        {{.stocks = 4, .hit_by = NOBODY}, {.stocks = 4, .hit_by = NOBODY}},
        {{.stocks = 4, .hit_by = NOBODY}, {.percent = 12.5f, .stocks = 4, .hit_by = 0}},
        {{.stocks = 4, .hit_by = NOBODY}, {.percent = 20.75f, .stocks = 4, .hit_by = 0}},
        /* a death: the record before says by whom, this one nobody; its percent is a new life's */
        {{.stocks = 4, .hit_by = NOBODY}, {.percent = 30, .stocks = 3, .hit_by = NOBODY}},
        {{.percent = 5, .stocks = 4, .hit_by = 0}, {.percent = 30, .stocks = 3, .hit_by = NOBODY}},
        {{.percent = 9.5f, .stocks = 4, .hit_by = NOBODY}, {.percent = 25, .stocks = 3, .hit_by = NOBODY}},
        /* a self-destruct, then two stocks at once by the other, which is one death */
        {{.stocks = 3, .hit_by = NOBODY}, {.percent = 25, .stocks = 3, .hit_by = NOBODY}},
        {{.percent = 1, .stocks = 3, .hit_by = 1}, {.percent = 25, .stocks = 3, .hit_by = NOBODY}},
        {{.stocks = 1, .hit_by = 1}, {.percent = 25, .stocks = 3, .hit_by = NOBODY}},
        /* a port that does not play hit last: it is noted there */
        {{.percent = 2, .stocks = 1, .hit_by = 3}, {.percent = 25, .stocks = 3, .hit_by = NOBODY}},
        /* no damage: 1000 at once, and what is no number */
        {{.percent = 1002, .stocks = 1, .hit_by = 1}, {.percent = 25, .stocks = 3, .hit_by = 200}},
        {{.percent = 1003, .stocks = 1, .hit_by = 1}, {.percent = 26, .stocks = 3, .hit_by = 200}},
    };
    making m;
    begin(&m, SLP_NEWEST, true);
    add_frames(&m, records[0], 12, 2);
    facts f = look(&m);
    assert_port(&f, 0, 20, 13, 1, 1, 1); /* took 5 + 4.5 + 1 + 2 + 1 */
    assert_port(&f, 1, 2, 21, 1, 0, 3);  /* took 12.5 + 8.25 + 1, dealt 1 + 1 */
    assert_port(&f, 3, 2, 0, 0, 0, 0);
    assert_true(f.entry.flags & XPH_GAME_FINITE);
    assert_int_equal(f.entry.records, 24);
    forget(&f);
    /* percent that is no number counts as nothing, and the game is not finite */
    record broken[12][2];
    memcpy(broken, records, sizeof broken);
    broken[2][1].percent = NAN;
    begin(&m, SLP_NEWEST, true);
    add_frames(&m, broken[0], 12, 2);
    f = look(&m);
    assert_port(&f, 0, 12, 13, 1, 1, 1);
    assert_port(&f, 1, 2, 13, 1, 0, 3);
    assert_false(f.entry.flags & XPH_GAME_FINITE);
    forget(&f);
}

/* Who dies in the first record of a gap dies against the record before it. */
static void absence_is_no_record(void **state)
{
    static const record alive = {.percent = 10, .stocks = 2, .hit_by = 1},
                        dead = {.stocks = 1, .hit_by = NOBODY};
    static const record other = {.stocks = 4, .hit_by = NOBODY};
    making m;
    begin(&m, SLP_NEWEST, true);
    for (int32_t t = 0; t < 9; t++) {
        const record *all[LEADERS] = {t < 3 ? &alive : t < 6 ? NULL : &dead, &other};
        add_frame(&m, t - 123, all, t - 123);
    }
    facts f = look(&m);
    assert_port(&f, 0, 0, 0, 0, 0, 1);
    assert_port(&f, 1, 0, 0, 1, 0, 4);
    assert_int_equal(f.entry.port[0].whole, 0);
    assert_int_equal(f.entry.port[1].whole, 1);
    assert_int_equal(f.entry.runs, 2);
    assert_int_equal(f.runs[0].port, 1);
    assert_int_equal(f.runs[0].position, 1);
    assert_int_equal(f.runs[0].frame, -122);
    assert_int_equal(f.runs[0].frames, 2);
    assert_int_equal(f.runs[1].position, 7);
    assert_int_equal(f.runs[1].frame, -116);
    assert_int_equal(f.runs[1].frames, 2);
    forget(&f);
}

/* Counts end where their fields do. */
static void counts_are_bounded(void **state)
{
    enum { FRAMES = 700 };
    static record records[FRAMES][2];
    for (int t = 0; t < FRAMES; t++) {
        records[t][0] = (record){.stocks = t % 2 ? 1 : 2, .hit_by = 1};
        records[t][1] = (record){.percent = t % 2 ? 500 : 0, .stocks = 4, .hit_by = 0};
    }
    making m;
    begin(&m, SLP_NEWEST, true);
    add_frames(&m, records[0], FRAMES, 2);
    facts f = look(&m);
    assert_port(&f, 0, UINT16_MAX, 0, 0, 0, 1);
    assert_port(&f, 1, 0, UINT16_MAX, UINT8_MAX, 0, 4);
    forget(&f);
}

/* Team mates count as others; the same character twice is two ports. */
static void teams_and_dittos(void **state)
{
    static const record records[][4] = {
        {{.stocks = 4, .hit_by = 6},
         {.stocks = 4, .hit_by = 6},
         {.stocks = 4, .hit_by = 6},
         {.stocks = 4, .hit_by = 6}},
        {{.percent = 3, .stocks = 4, .hit_by = 2}, /* its own mate */
         {.percent = 7, .stocks = 4, .hit_by = 0},
         {.stocks = 4, .hit_by = 6},
         {.percent = 11, .stocks = 4, .hit_by = 0}},
        {{.percent = 3, .stocks = 4, .hit_by = 2},
         {.stocks = 3, .hit_by = 6},
         {.stocks = 3, .hit_by = 6},
         {.percent = 13, .stocks = 4, .hit_by = 2}},
    };
    making m;
    begin(&m, SLP_NEWEST, true);
    start_of(&m)[0x0D] = 1;
    for (int port = 0; port < 4; port++) {
        start_of(&m)[0x65 + 0x24 * port] = 2; /* all of them Fox */
        start_of(&m)[0x66 + 0x24 * port] = 0;
        start_of(&m)[0x6E + 0x24 * port] = (uint8_t)(port % 2);
    }
    add_frames(&m, records[0], 3, 4);
    facts f = look(&m);
    assert_port(&f, 0, 18, 3, 1, 0, 4);
    assert_port(&f, 1, 0, 7, 0, 0, 3);
    assert_port(&f, 2, 5, 0, 0, 1, 3);
    assert_port(&f, 3, 0, 13, 0, 0, 4);
    for (int port = 0; port < 4; port++) {
        assert_int_equal(f.entry.port[port].character, 2);
        assert_int_equal(f.entry.port[port].whole, 1);
    }
    assert_int_equal(f.entry.teams, 1);
    assert_int_equal(f.entry.winner, 0);
    forget(&f);
}

/* ---- inputs ---- */

static void frames_with_input(void **state)
{
    static const record records[][2] = {
        {{.buttons = 0x100}, {.joy_x = -0.0f}}, {{.joy_x = -0.5f}, {.stocks = 0}},
        {{.c_y = 1}, {.trigger = 0}},           {{.trigger = 0.3f}, {.stocks = 0}},
        {{.stocks = 0}, {.stocks = 0}},
    };
    making m;
    begin(&m, SLP_NEWEST, true);
    add_frames(&m, records[0], 5, 2);
    facts f = look(&m);
    assert_int_equal(f.entry.port[0].input_frames, 4);
    assert_int_equal(f.entry.port[1].input_frames, 0);
    forget(&f);
}

/* Digests are of the inputs alone, of whole rungs, and of nothing that a rollback may still change. */
static facts long_game(int frames, int32_t final, float percent, uint16_t last_button)
{
    making m;
    begin(&m, SLP_NEWEST, true);
    for (int32_t t = 0; t < frames; t++) {
        record one = {.percent = percent, .stocks = 4, .hit_by = 6, .buttons = (uint16_t)(t % 7)};
        record two = {.stocks = 4, .hit_by = 6, .joy_x = (float)(t % 5) / 8};
        if (t == frames - 1) one.buttons = last_button;
        const record *all[LEADERS] = {&one, &two};
        add_frame(&m, t - 123, all, final < t - 123 ? final : t - 123);
    }
    return look(&m);
}

static void digests_of_inputs(void **state)
{
    facts one = long_game(2200, 3000, 0, 0), other = long_game(2200, 3000, 9, 1),
          early = long_game(2200, 472, 0, 0), late = long_game(2200, 471, 0, 0),
          brief = long_game(511, 3000, 0, 0);
    assert_true(one.entry.digest[0] && one.entry.digest[1] && one.entry.digest[0] != one.entry.digest[1]);
    assert_int_equal(one.entry.digest[2], 0);
    assert_memory_equal(one.entry.digest, other.entry.digest, sizeof one.entry.digest);
    assert_int_equal(one.entry.certain_end, 2200 - 124);
    assert_int_equal(early.entry.certain_end, 472); /* the 512th frame from -39 on */
    assert_int_equal(early.entry.digest[0], one.entry.digest[0]);
    assert_int_equal(early.entry.digest[1], 0);
    assert_int_equal(late.entry.certain_end, 471);
    assert_int_equal(late.entry.digest[0], 0);
    assert_int_equal(brief.entry.digest[0], 0);
    facts *all[] = {&one, &other, &early, &late, &brief};
    for (int i = 0; i < 5; i++) forget(all[i]);
    making m; /* a recorder that does not say which frames are final */
    static const record records[40][2];
    begin(&m, 6, true);
    add_frames(&m, records[0], 40, 2);
    facts old = look(&m);
    assert_int_equal(old.entry.certain_end, 39 - 123 - 16);
    forget(&old);
}

/* ---- who won ---- */

typedef struct ended {
    int layout, stocks[2], winner;
    bool end, teams, third;
    int8_t quit, placements[4];
} ended;

/* By the rules of exphil_slp_result_get, of stock games: the index says the same. */
static void winners(void **state)
{
    static const ended cases[] = {
        {SLP_NEWEST, {1, 0}, 1, true, false, false, -1, {1, 0, -1, -1}}, /* stocks before placements */
        {SLP_NEWEST, {1, 3}, 1, true, false, false, -1, {0, 1, -1, -1}},
        {SLP_NEWEST, {1, 3}, 2, true, false, false, -1, {1, 0, -1, -1}},
        {SLP_NEWEST, {1, 3}, 1, true, true, true, -1, {2, 1, 0, 3}}, /* the first port of the team */
        {SLP_NEWEST, {1, 3}, 0, true, false, false, -1, {-1, -1, -1, -1}},
        {SLP_NEWEST, {1, 3}, 2, true, false, false, 0, {0, 1, -1, -1}}, /* who quits has lost */
        {9, {0, 3}, 2, true, false, false, -1, {0}},                    /* no placements are recorded */
        {9, {3, 0}, 1, false, false, false, -1, {0}},
        {9, {2, 2}, 0, true, false, false, -1, {0}},
        {9, {1, 3}, 0, false, false, false, -1, {0}},
        {9, {1, 3}, 0, true, false, true, -1, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const ended *c = &cases[i];
        const record records[3] = {
            {.stocks = (uint8_t)c->stocks[0]}, {.stocks = (uint8_t)c->stocks[1]}, {.stocks = 2}};
        making m;
        begin(&m, c->layout, true);
        start_of(&m)[0x05] = 1 << 5; /* stock mode */
        start_of(&m)[0x0D] = c->teams;
        for (int port = 0; port < 4; port++) start_of(&m)[0x6E + 0x24 * port] = (uint8_t)(port % 2);
        if (c->third) start_of(&m)[0x66 + 0x48] = 0;
        add_frames(&m, records, 1, c->third ? 3 : 2);
        if (c->end) {
            slp_game_end(&m.to, 2);
            uint8_t *end = m.to.data + m.to.bytes - m.layout->end;
            end[1] = (uint8_t)c->quit;
            if (m.layout->end >= 6) memcpy(end + 2, c->placements, 4);
        }
        facts f = look(&m);
        exphil_slp_result result = EXPHIL_SLP_RESULT_INIT;
        assert_int_equal(exphil_slp_result_get(f.slp, &result, NULL), EXPHIL_OK);
        assert_int_equal(result.winner, c->winner);
        if (f.entry.winner != c->winner) fail_msg("case %zu: port %d won", i, (int)f.entry.winner);
        assert_int_equal((f.entry.flags & XPH_GAME_ENDED) != 0, c->end);
        forget(&f);
    }
}

/* ---- days and matches ---- */

static uint16_t day_of(const char *date)
{
    making m;
    static const record records[2];
    uint8_t length = (uint8_t)strlen(date);
    begin(&m, SLP_NEWEST, false);
    add_frames(&m, records, 1, 2);
    slp_length(&m.to, (int32_t)(m.to.bytes - 15));
    slp_put(&m.to, "U\x08metadata{U\x07startAtSU", 22);
    slp_put(&m.to, &length, 1);
    slp_put(&m.to, date, length);
    slp_put(&m.to, "}}", 2);
    facts f = look(&m);
    uint16_t day = f.entry.day;
    exphil_slp_info info;
    xph_game_start start = {.metadata_last_frame = 0};
    xph_game_info(&f.entry, &start, &info);
    if (day ? strncmp(info.started_at, date, 10) != 0 : info.started_at[0] != 0)
        fail_msg("%s comes back as \"%s\"", date, info.started_at);
    forget(&f);
    return day;
}

static bool leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* The first and last day of each month, counted one by one. */
static void days(void **state)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int day = 0;
    for (int year = 1970; year <= 2148; year++) {
        for (int month = 1; month <= 12; month++) {
            char text[64];
            int length = lengths[month - 1] + (month == 2 && leap(year));
            snprintf(text, sizeof text, "%04d-%02d-01", year, month);
            assert_int_equal(day_of(text), day);
            snprintf(text, sizeof text, "%04d-%02d-%02dT23:59:59.999+09:00", year, month, length);
            assert_int_equal(day_of(text), day + length - 1);
            day += length;
        }
    }
    assert_int_equal(day_of("2026-07-07"), 20641);
}

static void no_days(void **state)
{
    static const char *const texts[] = {"",           "2026",        "2026-07-0",  "1969-12-31",
                                        "2149-01-01", "0000-01-01",  "9999-12-31", "2026-00-01",
                                        "2026-13-01", "2026-01-00",  "2026-01-32", "2026/01/01",
                                        "20260101T0", "2026-1-01x",  "2026-01-1x", "+026-01-01",
                                        "-026-01-01", " 2026-01-01", "2026-01:01", "yesterday, at noon"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (day_of(texts[i])) fail_msg("\"%s\" is a day", texts[i]);
    }
}

static uint32_t tag_of(int layout, const char *id, uint8_t game, uint8_t seed)
{
    making m;
    static const record records[2];
    begin(&m, layout, true);
    start_of(&m)[0x13D] = seed;
    if (m.layout->start >= 0x2F8) {
        memset(start_of(&m) + 0x2BE, 0, 0x2F9 - 0x2BE);
        memcpy(start_of(&m) + 0x2BE, id, strlen(id));
        start_of(&m)[0x2F4] = game;
    }
    add_frames(&m, records, 1, 2);
    facts f = look(&m);
    uint32_t tag = f.entry.tag;
    forget(&f);
    return tag;
}

static void matches(void **state)
{
    uint32_t tag = tag_of(SLP_NEWEST, "mode.unranked-2026", 1, 0);
    assert_true(tag && tag <= 0xFFFFFF);
    assert_int_equal(tag_of(SLP_NEWEST, "mode.unranked-2026", 1, 5), tag); /* the other side's recording */
    assert_int_not_equal(tag_of(SLP_NEWEST, "mode.unranked-2026", 2, 0), tag);
    assert_int_not_equal(tag_of(SLP_NEWEST, "mode.unranked-2027", 1, 0), tag);
    assert_int_equal(tag_of(SLP_NEWEST, "", 1, 0), 0);
    assert_int_equal(tag_of(10, "", 0, 0), 0);           /* a recorder that has none */
    uint8_t bytes[0x2F9 - 0x2BE] = "mode.unranked-2026"; /* as doc/file-format.md says */
    bytes[0x2F4 - 0x2BE] = 1;
    assert_int_equal(tag, xph_hash(bytes, sizeof bytes) & 0xFFFFFF);
}

/* ---- runs, by brute force ---- */

static void runs_of_gaps(void **state)
{
    static const record one;
    for (uint64_t seed = 0; seed < 60; seed++) {
        enum { MOST = 40 };
        xph_rng rng = {seed, XPH_RNG_TEST, 0};
        int32_t number[MOST], count = 1 + (int32_t)xph_rng_below(&rng, MOST);
        bool there[MOST][LEADERS];
        making m;
        begin(&m, SLP_NEWEST, true);
        for (int32_t t = 0; t < count; t++) {
            const record *all[LEADERS] = {NULL};
            number[t] = t ? number[t - 1] + 1 + (xph_rng_below(&rng, 6) == 0) : -123;
            for (int port = 0; port < LEADERS; port++) {
                there[t][port] = xph_rng_below(&rng, 10) < 2 + 3 * (uint64_t)port;
                all[port] = there[t][port] ? &one : NULL;
            }
            add_frame(&m, number[t], all, number[t]);
        }
        facts f = look(&m);
        uint32_t run = 0;
        bool gaps = false;
        for (int port = 0; port < LEADERS; port++) {
            bool whole = count > 1;
            for (int32_t t = 1; t < count; t++)
                whole = whole && there[t][port] && there[t - 1][port] && number[t] == number[t - 1] + 1;
            assert_int_equal(f.entry.port[port].whole, whole);
            for (int32_t t = 1; !whole && t < count; t++) {
                int32_t from = t;
                while (t < count && there[t][port] && there[t - 1][port] && number[t] == number[t - 1] + 1)
                    t++;
                if (t == from) continue;
                assert_true(run < f.entry.runs);
                assert_int_equal(f.runs[run].port, port + 1);
                assert_int_equal(f.runs[run].position, from);
                assert_int_equal(f.runs[run].frame, number[from]);
                assert_int_equal(f.runs[run++].frames, t - from);
            }
        }
        assert_int_equal(run, f.entry.runs);
        for (int32_t t = 1; t < count; t++) gaps = gaps || number[t] != number[t - 1] + 1;
        assert_int_equal((f.entry.flags & XPH_GAME_GAPS) != 0, gaps);
        forget(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hits_and_deaths),
        cmocka_unit_test(absence_is_no_record),
        cmocka_unit_test(counts_are_bounded),
        cmocka_unit_test(teams_and_dittos),
        cmocka_unit_test(frames_with_input),
        cmocka_unit_test(digests_of_inputs),
        cmocka_unit_test(winners),
        cmocka_unit_test(days),
        cmocka_unit_test(no_days),
        cmocka_unit_test(matches),
        cmocka_unit_test(runs_of_gaps),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
