/* Left and right exchanged: a mirrored row is the row of the mirrored frame, a mirrored action that of the mirrored
 * controller, bit for bit, for drawn frames of every shape, for all layouts and codecs, and for real replays. */
#include "context_case.h"
#include "melee/codec.h"
#include "melee/layout.h"
#include "melee_frame.h"
#include "test.h"

#include <exphil/slp.h>

#include <stdio.h>

static const char *const layouts[] = {"melee2", "exphil288"};
enum { LAYOUTS = 2 };

static xph_melee_mirror mirror_of(const char *layout)
{
    xph_melee_mirror mirror;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (xph_melee_mirror_make(xph_melee_layout_find(layout), xph_melee_codec_find(NULL), &mirror, &error) < 0)
        fail_msg("%s", error.message);
    return mirror;
}

typedef struct row {
    float floats[XPH_MELEE_FLOATS_MOST];
    int32_t ids[EXPHIL_IDS_MAX];
} row;

static const char *name_of(const char *layout, int64_t at, bool is_id)
{
    static exphil_melee_field field;
    for (int64_t i = 0; i < exphil_melee_field_count(layout); i++) {
        field = (exphil_melee_field)EXPHIL_MELEE_FIELD_INIT;
        assert_int_equal(exphil_melee_field_get(layout, i, &field, NULL), EXPHIL_OK);
        if (field.is_id == is_id && at >= field.offset && at < field.offset + field.count) break;
    }
    return field.name;
}

static void same_row(const char *layout, const char *what, const row *found, const row *wanted)
{
    const xph_melee_layout *of = xph_melee_layout_find(layout);
    for (int32_t i = 0; i < of->float_count; i++)
        if (memcmp(&found->floats[i], &wanted->floats[i], sizeof(float)) != 0)
            fail_msg("%s, %s: %s is %.9g, not %.9g", layout, what, name_of(layout, i, false),
                     (double)found->floats[i], (double)wanted->floats[i]);
    for (int32_t i = 0; i < of->id_count; i++)
        if (found->ids[i] != wanted->ids[i])
            fail_msg("%s, %s: %s is %d, not %d", layout, what, name_of(layout, i, true), (int)found->ids[i],
                     (int)wanted->ids[i]);
}

/* Can it be encoded? Then all that is promised is looked at. */
static bool check_frame(const exphil_melee_frame *frame, const xph_melee_mirror mirrors[LAYOUTS])
{
    exphil_melee_frame other = *frame;
    xph_melee_mirror_frame(&other);
    for (int i = 0; i < LAYOUTS; i++) {
        const xph_melee_layout *layout = xph_melee_layout_find(layouts[i]);
        row made, mirrored;
        const char *culprit[2];
        exphil_status status = xph_melee_encode(layout, frame, made.floats, made.ids, &culprit[0]);
        assert_int_equal(xph_melee_encode(layout, &other, mirrored.floats, mirrored.ids, &culprit[1]),
                         status);
        if (status < 0) {
            assert_string_equal(culprit[0], culprit[1]);
            return false;
        }
        row turned = made;
        xph_melee_mirror_rows(&mirrors[i], turned.floats, turned.ids, 1);
        same_row(layouts[i], "mirrored", &turned, &mirrored);
        xph_melee_mirror_rows(&mirrors[i], turned.floats, turned.ids, 1);
        same_row(layouts[i], "mirrored twice", &turned, &made);
    }
    xph_melee_mirror_frame(&other);
    assert_memory_equal(&other, frame, sizeof other);
    return true;
}

/* ---- drawn frames ---------------------------------------------------------------------------------------- */

static uint32_t below(xph_rng *rng, uint32_t bound)
{
    return (uint32_t)xph_rng_below(rng, bound);
}

/* Zeros of both signs, round values, values that clamp, and any in between. */
static float number(xph_rng *rng)
{
    static const float some[] = {0.0f,    -0.0f, 1,      -1,  63.3475494385f, 1e-30f,
                                 -1e-30f, 3e38f, -3e38f, 500, 0.02f};
    enum { SOME = sizeof some / sizeof some[0] };
    uint32_t which = below(rng, 2 * SOME);
    return which < SOME ? some[which] : (float)((xph_rng_double(rng) - 0.5) * (which % 2 ? 600 : 4));
}

static float facing(xph_rng *rng)
{
    static const float some[] = {1, -1, 1, -1, 1, -1, 0, 0.25f, -3, 2};
    return some[below(rng, sizeof some / sizeof some[0])];
}

static uint16_t state(xph_rng *rng)
{
    static const uint16_t some[] = {0,   1,   2,   3,   264, 265, 341, 342, 343, 346, 347, 352, 353, 354,
                                    355, 360, 361, 365, 366, 367, 368, 369, 370, 371, 372, 373, 374, 375,
                                    398, 399, 475, 476, 481, 482, 483, 484, 489, 490, 542, 543, 544, 65535};
    enum { SOME = sizeof some / sizeof some[0] };
    uint32_t which = below(rng, SOME + 8);
    return which < SOME ? some[which] : (uint16_t)below(rng, 600);
}

static void draw_character(xph_rng *rng, exphil_melee_character *c)
{
    static const uint8_t some[] = {0, 1, 4, 6, 15, 20, 21, 22, 2, 10, 11, 32, 33, 255};
    *c = melee_character(number(rng), number(rng));
    c->present = below(rng, 4) != 0;
    c->known = below(rng, 3) ? EXPHIL_MELEE_HAS_ALL : below(rng, 32);
    c->facing = facing(rng);
    c->character = below(rng, 3) ? some[below(rng, sizeof some)] : (uint8_t)below(rng, 40);
    c->action_state = state(rng);
    c->speed_air_x = number(rng);
    c->speed_y = number(rng);
    c->speed_attack_x = number(rng);
    c->speed_attack_y = number(rng);
    c->speed_ground_x = number(rng);
    c->state_age = (float)below(rng, 100) / 2 - 2;
    c->misc = number(rng);
    c->airborne = (uint8_t)below(rng, 2);
    for (int i = 0; i < 5; i++) c->flags[i] = (uint8_t)below(rng, 256);
}

static void draw_item(xph_rng *rng, exphil_melee_item *item)
{
    *item = (exphil_melee_item){.facing = below(rng, 4) ? facing(rng) : -0.0f,
                                .speed_x = number(rng),
                                .speed_y = number(rng),
                                .x = number(rng),
                                .y = below(rng, 2) ? 0 : number(rng),
                                .spawn_id = below(rng, 4),
                                .type = (uint16_t)below(rng, 300),
                                .owner = (int8_t)((int)below(rng, 6) - 1)};
}

static void draw_frame(xph_rng *rng, exphil_melee_frame *frame)
{
    static const int32_t stages[] = {2, 3, 8, 28, 31, 32, 5, -1, 70000};
    *frame = (exphil_melee_frame)EXPHIL_MELEE_FRAME_INIT;
    frame->frame = (int32_t)below(rng, 30000) - 123;
    frame->stage = stages[below(rng, sizeof stages / sizeof stages[0])];
    frame->own_port = 1 + (int32_t)below(rng, 4);
    frame->opponent_port = (int32_t)below(rng, 5);
    for (int i = 0; i < 4; i++) {
        draw_character(rng, &frame->player[i]);
        draw_character(rng, &frame->follower[i]);
        if (i && below(rng, 4) == 0) frame->player[i].x = frame->player[i - 1].x; /* no distance */
    }
    frame->platform_left = number(rng);
    frame->platform_right = number(rng);
    frame->wind = (int32_t)below(rng, 4);
    frame->stadium_kind = (int32_t)below(rng, 10);
    frame->stadium_event = (int32_t)below(rng, 8);
    frame->item_count = (int32_t)below(rng, EXPHIL_MELEE_ITEMS_MAX + 1);
    for (int i = 0; i < EXPHIL_MELEE_ITEMS_MAX; i++) draw_item(rng, &frame->item[i]);
}

static void test_drawn_frames(void **state)
{
    const xph_melee_mirror mirrors[LAYOUTS] = {mirror_of(layouts[0]), mirror_of(layouts[1])};
    xph_rng rng = {.seed = 14, .stream = XPH_RNG_TEST};
    exphil_melee_frame frame;
    int checked = 0;
    for (int i = 0; i < 60000; i++) {
        draw_frame(&rng, &frame);
        checked += check_frame(&frame, mirrors);
    }
    assert_true(checked > 20000);
}

/* By hand, so that the definition itself is not what is tested with. */
static void test_one_frame(void **state)
{
    exphil_melee_frame frame = melee_frame(), other;
    frame.player[1].action_state = 1;
    frame.player[1].x = 0;
    frame.player[3].action_state = 265;
    frame.follower[3].action_state = 341;
    frame.wind = 1;
    other = frame;
    xph_melee_mirror_frame(&other);
    assert_true(other.player[1].x == 0 && other.player[1].facing == 1 && other.player[1].y == 5);
    assert_true(other.player[1].speed_air_x == -1 && other.player[1].speed_ground_x == -0.5f);
    assert_true(other.player[1].speed_attack_x == -4 && other.player[1].speed_attack_y == -8);
    assert_int_equal(other.player[1].action_state, 2);
    assert_int_equal(other.player[3].action_state, 264);
    assert_int_equal(other.follower[3].action_state, 341);
    assert_true(other.player[3].x == -90 && other.player[3].facing == -1 && other.follower[3].x == -80);
    assert_true(other.item[2].x == 0 && other.item[3].x == 40 && other.item[3].y == 5);
    assert_true(other.item[3].speed_x == -2 && other.item[3].speed_y == -1 && other.item[3].facing == -1);
    assert_true(other.platform_left == 28 && other.platform_right == 20);
    assert_int_equal(other.wind, 2);
    assert_int_equal(other.stadium_kind, frame.stadium_kind);
    assert_int_equal(other.frame, frame.frame);
    frame.wind = other.wind = 0;
    xph_melee_mirror_frame(&other);
    assert_int_equal(other.wind, 0);
    exphil_pad pad = {0xFFF, 0.5f, -0.25f, -1, 0.75f, 0.35f};
    xph_melee_mirror_pad(&pad);
    const exphil_pad wanted = {0xFFF, -0.5f, -0.25f, 1, 0.75f, 0.35f};
    assert_memory_equal(&pad, &wanted, sizeof pad);
}

/* Every pair of states with a side, and that nobody else's states change. */
static void test_states(void **state)
{
    static const struct {
        int character, first, second;
    } sided[] = {
        {-1, 1, 2},     {-1, 264, 265}, {0, 341, 342},  {21, 341, 342}, {6, 342, 343},  {20, 342, 343},
        {1, 370, 371},  {22, 370, 371}, {1, 372, 373},  {22, 372, 373}, {1, 374, 375},  {22, 374, 375},
        {15, 346, 347}, {15, 352, 353}, {15, 354, 355}, {15, 360, 361}, {15, 365, 367}, {15, 366, 368},
        {15, 369, 371}, {15, 370, 372}, {4, 475, 476},  {4, 481, 482},  {4, 483, 484},  {4, 489, 490},
    };
    for (int who = 0; who < 256; who++)
        for (int from = 0; from < 700; from++) {
            exphil_melee_frame frame = melee_frame();
            int wanted = from;
            for (size_t i = 0; i < sizeof sided / sizeof sided[0]; i++) {
                if (sided[i].character != -1 && sided[i].character != who) continue;
                if (sided[i].first == from) wanted = sided[i].second;
                if (sided[i].second == from) wanted = sided[i].first;
            }
            frame.player[0].character = frame.follower[0].character = (uint8_t)who;
            frame.player[0].action_state = frame.follower[0].action_state = (uint16_t)from;
            xph_melee_mirror_frame(&frame);
            assert_int_equal(frame.player[0].action_state, wanted);
            assert_int_equal(frame.follower[0].action_state, from < 341 ? wanted : from);
        }
}

/* Rows that no frame gives, as a host may add them: nothing is written outside, and twice is as before. */
static void test_any_rows(void **state)
{
    const xph_melee_mirror mirror = mirror_of("exphil288");
    static const float odd[] = {-1, 1.5f, 397.99f, 398, 1e30f, -1e30f, 370.5f, 264.25f};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        for (size_t j = 0; j < sizeof odd / sizeof odd[0]; j++) {
            row made = {{0}, {0}}, before;
            made.floats[283] = odd[i];
            made.floats[285] = odd[j];
            made.floats[284] = 370;
            made.floats[286] = odd[j];
            before = made;
            xph_melee_mirror_rows(&mirror, made.floats, made.ids, 1);
            same_row("exphil288", "no frame's row", &made, &before);
        }
}

/* ---- real replays ---------------------------------------------------------------------------------------- */

static int check_replay(const exphil_slp *slp, const xph_melee_mirror mirrors[LAYOUTS])
{
    int checked = 0;
    for (int64_t at = 0; at < exphil_slp_frame_count(slp); at++)
        for (int32_t port = 1; port <= 4; port++) {
            exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
            if (xph_melee_game_state(slp, at, port, 0, &frame)) checked += check_frame(&frame, mirrors);
        }
    return checked;
}

static void check_folder(const char *name, int least)
{
    const xph_melee_mirror mirrors[LAYOUTS] = {mirror_of(layouts[0]), mirror_of(layouts[1])};
    const char *folder = test_replay(name);
    if (!folder) skip();
    char **all = NULL;
    const int count = test_list(folder, &all);
    int seen = 0;
    for (int i = 0; i < count; i++) {
        char path[1024];
        exphil_slp *slp = NULL;
        const char *dot = strrchr(all[i], '.');
        if (!dot || strcmp(dot, ".slp") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, all[i]);
        if (exphil_slp_open(context, path, NULL, &slp, NULL) < 0) continue;
        seen += check_replay(slp, mirrors) > 100;
        exphil_slp_destroy(slp);
    }
    test_list_free(all, count);
    assert_true(seen >= least);
}

static void test_formats(void **state)
{
    check_folder("formats", 10);
}

static void test_training(void **state)
{
    check_folder("training", 3);
}

/* Whatever else lies beside them. */
static void test_games(void **state)
{
    check_folder("../games", 0);
}

/* ---- controllers ----------------------------------------------------------------------------------------- */

static void check_pad(float x, float c_x, uint32_t buttons)
{
    exphil_pad pad = {buttons, x, 0.3f, c_x, -0.7f, 0.5f}, other = pad;
    int32_t action[XPH_MELEE_HEADS], mirrored[XPH_MELEE_HEADS];
    xph_melee_mirror_pad(&other);
    assert_int_equal(exphil_melee_pad_encode("exphil81", &pad, action, NULL), EXPHIL_OK);
    assert_int_equal(exphil_melee_pad_encode("exphil81", &other, mirrored, NULL), EXPHIL_OK);
    int32_t turned[XPH_MELEE_HEADS];
    memcpy(turned, action, sizeof turned);
    xph_melee_mirror_actions(turned, 1);
    assert_memory_equal(turned, mirrored, sizeof turned);
    xph_melee_mirror_actions(turned, 1);
    assert_memory_equal(turned, action, sizeof turned);
    xph_melee_mirror_pad(&other);
    assert_memory_equal(&other, &pad, sizeof pad);
}

/* What a game can send, every border of a class with its neighbours, and a hundred thousand bit patterns. */
static void test_pads(void **state)
{
    for (int k = -127; k <= 127; k++) check_pad((float)k / 80, (float)-k / 80, (uint32_t)k & 0xFFF);
    for (int k = -33; k <= 33; k++) {
        float border = (float)k / 16, near[3] = {border, border, border};
        uint32_t bits;
        for (int side = -1; side <= 1; side += 2) {
            memcpy(&bits, &border, sizeof bits);
            bits += (uint32_t)side;
            memcpy(&near[side + 1], &bits, sizeof bits);
        }
        for (int i = 0; k && i < 3; i++) check_pad(near[i], near[2 - i], 0);
    }
    check_pad(0.0f, -0.0f, 0xFFF);
    for (uint32_t bits = 0; bits < UINT32_MAX - 40961; bits += 40961) {
        float value;
        memcpy(&value, &bits, sizeof value);
        if (value - value == 0) check_pad(value, -value / 2, bits & 0xFFF);
    }
}

/* A class that an action can have becomes one, of the stick that points the other way. */
static void test_actions(void **state)
{
    for (int32_t x = 0; x < xph_melee_heads[1].count; x++)
        for (int32_t c = 0; c < xph_melee_heads[3].count; c++) {
            int32_t action[2][XPH_MELEE_HEADS] = {{0x55, x, 3, c, 9, 2}, {0, 8, 8, 8, 8, 0}};
            exphil_pad before, after;
            assert_int_equal(exphil_melee_pad_decode(NULL, action[0], &before, NULL), EXPHIL_OK);
            xph_melee_mirror_actions(action[0], 2);
            assert_int_equal(exphil_melee_pad_decode(NULL, action[0], &after, NULL), EXPHIL_OK);
            xph_melee_mirror_pad(&before);
            assert_memory_equal(&before, &after, sizeof before);
            const int32_t neutral[XPH_MELEE_HEADS] = {0, 8, 8, 8, 8, 0};
            assert_memory_equal(action[1], neutral, sizeof neutral);
        }
}

/* exphil81-floor puts a stick of 1/16 and one of 0 into one class, those of -1/16 and 0 into two. */
static void test_no_mirror(void **state)
{
    xph_melee_mirror mirror;
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int i = 0; i < LAYOUTS; i++) {
        assert_int_equal(xph_melee_mirror_make(xph_melee_layout_find(layouts[i]),
                                               xph_melee_codec_find("exphil81-floor"), &mirror, &error),
                         EXPHIL_E_UNSUPPORTED);
        assert_says(&error, "exphil81-floor");
    }
}

/* A layout whose row does not say enough is refused by its name and the field's. */
static void test_no_layout(void **state)
{
    static const xph_melee_field lopsided[] = {XPH_NUMBER("own.x", 0, XPH_CHAR_X, 1, 0, 10, "x")},
                                 faceless[] = {XPH_NUMBER("own.facing", 0, XPH_CHAR_FACING, 1, -1, 1, "f")},
                                 nobody[] = {XPH_ID("own.state", 0, XPH_CHAR_STATE, 543, "s")},
                                 few[] = {XPH_ID("own.nana.state", 0, XPH_CHAR_STATE, 265, "s")},
                                 half[] = {XPH_NUMBER("left", 0, XPH_WORLD_PLATFORM_LEFT, 1, -1, 1, "l")},
                                 blow[] = {XPH_FLAG("wind", 0, XPH_WORLD_WIND, "w")},
                                 ahead[] = {XPH_NUMBER("ahead", 0, XPH_WORLD_AHEAD, 1, -1, 1, "a")};
    const xph_melee_section sections[] = {
        XPH_SECTION(XPH_WHO_OWN, lopsided, 0), XPH_SECTION(XPH_WHO_OWN, faceless, 0),
        XPH_SECTION(XPH_WHO_OWN, nobody, 0),   XPH_SECTION(XPH_WHO_OWN_NANA, few, 0),
        XPH_SECTION(XPH_WHO_WORLD, half, 0),   XPH_SECTION(XPH_WHO_WORLD, blow, 0),
        XPH_SECTION(XPH_WHO_WORLD, ahead, 0),
    };
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        const xph_melee_layout layout = {
            .name = "made_up", .sections = &sections[i], .section_count = 1, .float_count = 1};
        xph_melee_mirror mirror;
        exphil_error error = EXPHIL_ERROR_INIT;
        assert_int_equal(xph_melee_mirror_make(&layout, xph_melee_codec_find(NULL), &mirror, &error),
                         EXPHIL_E_UNSUPPORTED);
        assert_says(&error, "made_up");
        assert_says(&error, sections[i].fields[0].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_frame),    cmocka_unit_test(test_states),
        cmocka_unit_test(test_drawn_frames), cmocka_unit_test(test_any_rows),
        cmocka_unit_test(test_formats),      cmocka_unit_test(test_training),
        cmocka_unit_test(test_games),        cmocka_unit_test(test_pads),
        cmocka_unit_test(test_actions),      cmocka_unit_test(test_no_mirror),
        cmocka_unit_test(test_no_layout),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
