/* The layouts and codecs of slippi-ai: rows worked out by hand from its embedding, its rounding, and what has no
 * mirror. */
#include "melee/codec.h"
#include "melee/layout.h"
#include "melee_frame.h"
#include "test.h"

#include <math.h>
#include <stdio.h>

enum { SLIPPI = 960, SLIPPI_NANA = 1854, OPPONENT = 446, WORLD = 892 };
enum { NANA_OWN = 446, NANA_OPPONENT = 893, NANA_OTHER = 1339, NANA_WORLD = 1786 };

typedef struct row {
    float floats[XPH_MELEE_FLOATS_MOST];
} row;

static row encode(const char *layout, const exphil_melee_frame *frame)
{
    row made;
    memset(&made, 0x7F, sizeof made); /* a column that is not written shows */
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_melee_encode(layout, frame, made.floats, NULL, &error) != EXPHIL_OK)
        fail_msg("%s", error.message);
    return made;
}

static void compare(const row *made, const float *expected, int count)
{
    for (int i = 0; i < count; i++)
        if (made->floats[i] != expected[i])
            fail_msg("column %d is %.9g, %.9g expected", i, (double)made->floats[i], (double)expected[i]);
}

/* A character's columns from `at` on: those that are not 0, all by hand. */
typedef struct character {
    float percent, facing, x, y;
    int action, character, invulnerable, jumps;
    float shield;
    int grounded;
} character;

static void put(float *floats, const character *c)
{
    floats[0] = c->percent;
    floats[1] = c->facing;
    floats[2] = c->x;
    floats[3] = c->y;
    floats[4 + c->action] = 1;
    floats[403 + c->character] = 1;
    floats[436] = (float)c->invulnerable;
    floats[437 + c->jumps] = 1;
    floats[444] = c->shield;
    floats[445] = (float)c->grounded;
}

/* own: Fox at (-20, 5), facing left, in the air. opponent: Popo at (90, -10), state 600. */
static const character fox = {0.42f, -1, -1, 0.25f, 365, 1, 1, 1, 0.3f, 0};
static const character popo = {1.1f, 1, 4.5f, -0.5f, 398, 10, 1, 2, 0.6f, 1};
static const character nana = {0, 1, 4, 0, 14, 11, 0, 2, 0.6f, 1};
static const character nobody = {0, -1, 0, 0, 0, 0, 0, 0, 0, 0};

static void test_row(void **state)
{
    exphil_melee_frame frame = melee_frame();
    row expected = {{0}}, made = encode("slippi", &frame);
    put(expected.floats, &fox);
    put(expected.floats + OPPONENT, &popo);
    expected.floats[WORLD + 0x12] = 1; /* Pokemon Stadium */
    compare(&made, expected.floats, SLIPPI);
}

static void test_nana_row(void **state)
{
    exphil_melee_frame frame = melee_frame();
    row expected = {{0}}, made = encode("slippi-nana", &frame);
    put(expected.floats, &fox);
    put(expected.floats + NANA_OWN, &nobody);
    put(expected.floats + NANA_OPPONENT, &popo);
    put(expected.floats + NANA_OTHER, &nana);
    expected.floats[NANA_OTHER + 446] = 1;
    expected.floats[NANA_WORLD + 0x12] = 1;
    compare(&made, expected.floats, SLIPPI_NANA);
}

static void test_no_opponent(void **state)
{
    exphil_melee_frame frame = melee_frame();
    frame.player[3].present = frame.follower[3].present = 0;
    row expected = {{0}}, made = encode("slippi", &frame);
    put(expected.floats, &fox);
    put(expected.floats + OPPONENT, &nobody);
    expected.floats[WORLD + 0x12] = 1;
    compare(&made, expected.floats, SLIPPI);
}

/* Percent is cut, facing is right only above 0, numbers end at 10, what is in no table has no column. */
static void test_values(void **state)
{
    exphil_melee_frame frame = melee_frame();
    exphil_melee_character *own = &frame.player[1];
    own->percent = 99.99f;
    own->facing = 0;
    own->x = 3e38f;
    own->y = -3e38f;
    own->character = 33;
    own->jumps = 7;
    own->hurtbox = 0;
    own->action_state = 398;
    row made = encode("slippi", &frame);
    assert_true(made.floats[0] == 0.99f && made.floats[1] == -1);
    assert_true(made.floats[2] == 10 && made.floats[3] == -10);
    assert_true(made.floats[4 + 398] == 1 && made.floats[436] == 0);
    for (int i = 403; i < 436; i++) assert_true(made.floats[i] == 0);
    for (int i = 437; i < 444; i++) assert_true(made.floats[i] == 0);
    own->known = 0;
    own->hurtbox = 2;
    made = encode("slippi", &frame);
    assert_true(made.floats[436] == 0 && made.floats[437] == 1 && made.floats[445] == 1);
    own->percent = NAN;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_melee_encode("slippi", &frame, made.floats, NULL, &error), EXPHIL_E_NUMERIC);
    assert_string_equal(error.message, "own.percent is not finite");
}

/* The other's roll out of a tech is a tech in place for seven frames; one's own never is. */
static void test_masked_techs(void **state)
{
    exphil_melee_frame frame = melee_frame();
    for (int tech = 199; tech <= 202; tech++) {
        for (int age = 0; age < 10; age++) {
            frame.player[1].action_state = frame.player[3].action_state = (uint16_t)tech;
            frame.player[1].state_age = frame.player[3].state_age = (float)age;
            row made = encode("slippi", &frame);
            int seen = tech != 202 && age < 7 ? 199 : tech;
            assert_true(made.floats[4 + tech] == 1);
            assert_true(made.floats[OPPONENT + 4 + seen] == 1);
            frame.player[3].known = 0; /* age not known: as it is */
            made = encode("slippi", &frame);
            assert_true(made.floats[OPPONENT + 4 + tech] == 1);
            frame.player[3].known = EXPHIL_MELEE_HAS_ALL;
        }
    }
}

static void test_stages(void **state)
{
    static const int stages[][2] = {{2, 0x08},  {3, 0x12},  {8, 0x06}, {28, 0x1A},
                                    {31, 0x18}, {32, 0x19}, {4, 0},    {-1, 0}};
    exphil_melee_frame frame = melee_frame();
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        frame.stage = stages[i][0];
        row made = encode("slippi", &frame);
        for (int j = 0; j < 64; j++) assert_true(made.floats[WORLD + j] == (j == stages[i][1]));
        assert_true((made.floats[WORLD + 64] != 0) == (frame.stage == 8));
        assert_true((made.floats[WORLD + 66] != 0) == (frame.stage == 2));
    }
    frame.stage = 2;
    row made = encode("slippi", &frame);
    assert_true(made.floats[WORLD + 66] == 1 && made.floats[WORLD + 67] == 1.4f);
}

/* Middle and height of the cloud, by libmelee. */
static void test_cloud(void **state)
{
    static const struct {
        int32_t frame;
        float x, y;
    } places[] = {
        {0, -51.5450f, -33.2489f},    {415, 95.7136f, -33.2489f},   {416, 95.7026f, -33.1845f},
        {420, 96.8746f, -32.4926f},   {423, 97.2940f, -31.5139f},   {424, 97.3000f, -31.1602f},
        {450, 97.3000f, -21.9344f},   {468, 97.3000f, -15.5473f},   {469, 97.2871f, -15.1949f},
        {472, 96.8678f, -14.2165f},   {476, 95.6368f, -13.6747f},   {477, 95.2854f, -13.6499f},
        {800, -19.3279f, -13.6499f},  {1015, -95.6185f, -13.6499f}, {1016, -95.9697f, -13.6798f},
        {1019, -96.9481f, -14.0991f}, {1022, -97.5150f, -14.9549f}, {1023, -97.6500f, -15.2779f},
        {1050, -97.6500f, -24.8585f}, {1068, -97.6500f, -31.2456f}, {1069, -97.6049f, -31.5900f},
        {1072, -97.1289f, -32.5422f}, {1075, -96.2081f, -33.0738f}, {1076, -95.9000f, -33.2489f},
        {1199, -52.2547f, -33.2489f}, {-1, -52.2547f, -33.2489f},   {-123, -95.5452f, -33.2489f},
    };
    exphil_melee_frame frame = melee_frame();
    frame.stage = 8;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        frame.frame = places[i].frame;
        row made = encode("slippi", &frame);
        assert_float_equal(made.floats[WORLD + 64], 0.05f * places[i].x, 1e-5f);
        assert_float_equal(made.floats[WORLD + 65], 0.05f * places[i].y, 1e-5f);
    }
    for (frame.frame = 0; frame.frame < 1200;
         frame.frame++) { /* no leap, but for the double step of libmelee at its end */
        exphil_melee_frame next = frame;
        next.frame++;
        row made = encode("slippi", &frame), after = encode("slippi", &next);
        float dx = after.floats[WORLD + 64] - made.floats[WORLD + 64],
              dy = after.floats[WORLD + 65] - made.floats[WORLD + 65];
        assert_true(sqrtf(dx * dx + dy * dy) < 0.05f * (frame.frame == 1199 ? 0.72f : 0.36f));
    }
}

static void test_classes(void **state)
{
    static const struct {
        float value;
        int32_t axis, fine;
    } cases[] = {{-1, 0, 0},       {1, 16, 32},       {0, 8, 16},      {0.0625f, 9, 17}, {-0.0625f, 8, 15},
                 {0.0624f, 8, 17}, {-0.0626f, 7, 15}, {0.95f, 16, 31}, {3e38f, 16, 32},  {-3e38f, 0, 0}};
    static const struct {
        float value;
        int32_t trigger, fine;
    } triggers[] = {{0, 0, 0},  {0.124f, 0, 1}, {0.125f, 1, 1}, {0.35f, 1, 4},
                    {1, 4, 10}, {-1, 0, 0},     {9, 4, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int32_t action[XPH_SLIPPI_HEADS], fine[XPH_SLIPPI_HEADS];
        exphil_pad pad = {0, cases[i].value, -1, 0, 1, 0};
        assert_int_equal(exphil_melee_pad_encode("slippi", &pad, action, NULL), EXPHIL_OK);
        assert_int_equal(exphil_melee_pad_encode("slippi-fine", &pad, fine, NULL), EXPHIL_OK);
        assert_int_equal(action[8], cases[i].axis);
        assert_int_equal(fine[8], cases[i].fine);
        assert_true(action[9] == 0 && action[10] == 8 && action[11] == 16 && fine[10] == 16 &&
                    fine[11] == 32);
    }
    for (size_t i = 0; i < sizeof triggers / sizeof triggers[0]; i++) {
        int32_t action[XPH_SLIPPI_HEADS], fine[XPH_SLIPPI_HEADS];
        exphil_pad pad = {0, 0, 0, 0, 0, triggers[i].value};
        assert_int_equal(exphil_melee_pad_encode("slippi", &pad, action, NULL), EXPHIL_OK);
        assert_int_equal(exphil_melee_pad_encode("slippi-fine", &pad, fine, NULL), EXPHIL_OK);
        assert_int_equal(action[12], triggers[i].trigger);
        assert_int_equal(fine[12], triggers[i].fine);
    }
}

/* Every button is a head of its own, in slippi-ai's order; every action comes back from its pad. */
static void test_round_trip(void **state)
{
    static const uint32_t order[8] = {0x100, 0x200, 0x400, 0x800, 0x10, 0x40, 0x20, 0x8};
    const char *const codecs[] = {"slippi", "slippi-fine"};
    for (int c = 0; c < 2; c++) {
        int32_t classes = c ? 33 : 17, triggers = c ? 11 : 5;
        exphil_spec spec = EXPHIL_SPEC_INIT;
        assert_int_equal(exphil_melee_spec("slippi", codecs[c], &spec, NULL), EXPHIL_OK);
        assert_int_equal(spec.head_count, XPH_SLIPPI_HEADS);
        assert_int_equal(xph_spec_logits(&spec), 8 + 4 * classes + triggers);
        for (int32_t i = 0; i < 256 * classes; i++) {
            int32_t action[XPH_SLIPPI_HEADS] = {0}, again[XPH_SLIPPI_HEADS];
            uint32_t buttons = 0;
            exphil_pad pad;
            for (int bit = 0; bit < 8; bit++) {
                action[bit] = i / classes >> bit & 1;
                if (action[bit]) buttons |= order[bit];
            }
            action[8] = action[10] = i % classes;
            action[9] = action[11] = classes - 1 - i % classes;
            action[12] = i % triggers;
            assert_int_equal(exphil_melee_pad_decode(codecs[c], action, &pad, NULL), EXPHIL_OK);
            assert_int_equal(pad.buttons, buttons);
            assert_true(pad.main_x == (float)(2 * (i % classes)) / (float)(classes - 1) - 1);
            assert_true(pad.trigger == (float)action[12] / (float)(triggers - 1));
            assert_int_equal(exphil_melee_pad_encode(codecs[c], &pad, again, NULL), EXPHIL_OK);
            assert_memory_equal(again, action, sizeof action);
        }
        const exphil_pad rest = {0, 0, 0, 0, 0, 0};
        int32_t neutral[XPH_SLIPPI_HEADS];
        assert_int_equal(exphil_melee_pad_encode(codecs[c], &rest, neutral, NULL), EXPHIL_OK);
        for (int i = 0; i < XPH_SLIPPI_HEADS; i++) assert_int_equal(spec.heads[i].neutral, neutral[i]);
    }
}

static void test_refused(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    assert_int_equal(exphil_melee_spec("slippi", "slippi", &spec, NULL), EXPHIL_OK);
    for (int i = 0; i < XPH_SLIPPI_HEADS; i++) {
        char text[64];
        int32_t action[XPH_SLIPPI_HEADS] = {0};
        exphil_pad pad = {.buttons = 77};
        action[i] = i < 8 ? 2 : spec.heads[i].count;
        snprintf(text, sizeof text, "action head %s is out of range", spec.heads[i].name);
        assert_int_equal(exphil_melee_pad_decode("slippi", action, &pad, &error), EXPHIL_E_INVALID);
        assert_string_equal(error.message, text);
        action[i] = -1;
        assert_int_equal(exphil_melee_pad_decode("slippi", action, &pad, &error), EXPHIL_E_INVALID);
        assert_int_equal(pad.buttons, 77);
    }
}

static void test_no_mirror(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_melee_mirror mirror;
    for (int i = 0; i < 2; i++) {
        const char *layout = i ? "slippi-nana" : "slippi";
        assert_int_equal(xph_melee_mirror_make(xph_melee_layout_find(layout),
                                               xph_melee_codec_find("exphil81"), &mirror, &error),
                         EXPHIL_E_UNSUPPORTED);
        assert_non_null(strstr(error.message, "layout slippi"));
        assert_int_equal(xph_melee_mirror_make(xph_melee_layout_find("melee2"),
                                               xph_melee_codec_find(i ? "slippi-fine" : "slippi"), &mirror,
                                               &error),
                         EXPHIL_E_UNSUPPORTED);
        assert_non_null(strstr(error.message, "it rounds halves up"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row),          cmocka_unit_test(test_nana_row),
        cmocka_unit_test(test_no_opponent),  cmocka_unit_test(test_values),
        cmocka_unit_test(test_masked_techs), cmocka_unit_test(test_stages),
        cmocka_unit_test(test_cloud),        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_mirror),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
