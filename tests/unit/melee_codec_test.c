/* Controllers to head values and back, for both codecs. */
#include "melee/codec.h"
#include "test.h"

#include <math.h>
#include <stdio.h>

static exphil_pad pad_at(float main_x, float trigger)
{
    return (exphil_pad){0, main_x, 0, 0, 0, trigger};
}

static int32_t axis_class(const char *codec, float value)
{
    exphil_pad pad = pad_at(value, 0);
    int32_t action[XPH_MELEE_HEADS];
    assert_int_equal(exphil_melee_pad_encode(codec, &pad, action, NULL), EXPHIL_OK);
    return action[1];
}

static int32_t trigger_class(const char *codec, float value)
{
    exphil_pad pad = pad_at(0, value);
    int32_t action[XPH_MELEE_HEADS];
    assert_int_equal(exphil_melee_pad_encode(codec, &pad, action, NULL), EXPHIL_OK);
    return action[5];
}

static void test_neutral(void **state)
{
    exphil_pad rest = {0, 0, 0, 0, 0, 0}, back;
    static const int32_t expected[XPH_MELEE_HEADS] = {0, 8, 8, 8, 8, 0};
    const char *const codecs[] = {NULL, "exphil81", "exphil81-floor"};
    for (int i = 0; i < 3; i++) {
        int32_t action[XPH_MELEE_HEADS];
        assert_int_equal(exphil_melee_pad_encode(codecs[i], &rest, action, NULL), EXPHIL_OK);
        assert_memory_equal(action, expected, sizeof action);
        assert_int_equal(exphil_melee_pad_decode(codecs[i], action, &back, NULL), EXPHIL_OK);
        assert_memory_equal(&back, &rest, sizeof rest);
    }
    for (int i = 0; i < XPH_MELEE_HEADS; i++) assert_int_equal(xph_melee_heads[i].neutral, expected[i]);
}

static void test_buttons(void **state)
{
    static const uint32_t order[8] = {0x100, 0x200, 0x400, 0x800,
                                      0x10,  0x40,  0x20,  0x8}; /* A B X Y Z L R d-up */
    for (int i = 0; i < 8; i++) {
        exphil_pad pad = {order[i], 0, 0, 0, 0, 0}, back;
        int32_t action[XPH_MELEE_HEADS];
        assert_int_equal(exphil_melee_pad_encode("exphil81", &pad, action, NULL), EXPHIL_OK);
        assert_int_equal(action[0], 1 << i);
        assert_int_equal(exphil_melee_pad_decode("exphil81", action, &back, NULL), EXPHIL_OK);
        assert_int_equal(back.buttons, order[i]);
    }
    exphil_pad rest = {0xFFFFF007, 0, 0, 0, 0, 0}; /* Start, d-pad, stick directions: not said */
    int32_t action[XPH_MELEE_HEADS];
    assert_int_equal(exphil_melee_pad_encode("exphil81", &rest, action, NULL), EXPHIL_OK);
    assert_int_equal(action[0], 0);
}

static void test_nearest(void **state)
{
    static const struct {
        float value;
        int32_t class;
    } cases[] = {
        {-1, 0},       {1, 16},       {0, 8},        {0.95f, 16}, {0.9375f, 16}, {0.93f, 15},
        {0.06f, 8},    {0.0625f, 9},  {-0.0625f, 7}, {-0.06f, 8}, {0.3125f, 11}, {-0.3125f, 5},
        {0.2875f, 10}, {-0.2875f, 6}, {1.22f, 16},   {-1.22f, 0}, {3e38f, 16},   {-3e38f, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(axis_class("exphil81", cases[i].value), cases[i].class);
    }
    static const struct {
        float value;
        int32_t class;
    } triggers[] = {
        {0, 0},    {-1, 0},   {0.124f, 0}, {0.125f, 1}, {0.35f, 1}, {0.374f, 1}, {0.375f, 2},
        {0.5f, 2}, {0.8f, 3}, {0.875f, 4}, {1, 4},      {3e38f, 4}, {-3e38f, 0},
    };
    for (size_t i = 0; i < sizeof triggers / sizeof triggers[0]; i++) {
        assert_int_equal(trigger_class("exphil81", triggers[i].value), triggers[i].class);
    }
}

static void test_floor(void **state)
{
    static const struct {
        float value;
        int32_t class;
    } cases[] = {
        {-1, 0},      {1, 15},      {0, 8},      {-0.001f, 7}, {0.124f, 8}, {0.125f, 9}, {0.875f, 15},
        {0.874f, 14}, {-0.875f, 1}, {1.22f, 15}, {-1.22f, 0},  {3e38f, 15}, {-3e38f, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(axis_class("exphil81-floor", cases[i].value), cases[i].class);
    }
    static const struct {
        float value;
        int32_t class;
    } triggers[] = {
        {0, 0}, {0.249f, 0}, {0.25f, 1}, {0.35f, 1}, {0.75f, 3}, {1, 3}, {3e38f, 3}, {-1, 0},
    };
    for (size_t i = 0; i < sizeof triggers / sizeof triggers[0]; i++) {
        assert_int_equal(trigger_class("exphil81-floor", triggers[i].value), triggers[i].class);
    }
}

/* Every action comes back from its pad (floor: every one it can make); left and right mirror each other. */
static void test_round_trip(void **state)
{
    const char *const codecs[] = {"exphil81", "exphil81-floor"};
    for (int c = 0; c < 2; c++) {
        for (int32_t i = 0; i < 17 * 256; i++) {
            int32_t x = i % 17, shoulder = i % 5;
            if (c == 1 && (x == 16 || x == 0 || shoulder == 4)) continue;
            int32_t action[XPH_MELEE_HEADS] = {i / 17, x, 16 - x, x, 16 - x, shoulder},
                    again[XPH_MELEE_HEADS];
            exphil_pad pad;
            assert_int_equal(exphil_melee_pad_decode(codecs[c], action, &pad, NULL), EXPHIL_OK);
            assert_true(pad.main_x == (float)(x - 8) / 8 && pad.main_y == -pad.main_x);
            assert_true(pad.trigger == (float)shoulder / 4);
            assert_int_equal(exphil_melee_pad_encode(codecs[c], &pad, again, NULL), EXPHIL_OK);
            assert_memory_equal(again, action, sizeof action);
        }
    }
    for (int32_t k = -80; k <= 80; k++) {
        float value = (float)k / 80;
        assert_int_equal(axis_class("exphil81", value) + axis_class("exphil81", -value), 16);
    }
}

/* decode(encode(pad)) is the nearest that can be said: no class lies nearer. */
static void test_nearest_random(void **state)
{
    xph_rng rng = {2, XPH_RNG_TEST, 0};
    for (int round = 0; round < 20000; round++) {
        float stick = 2 * xph_rng_float(&rng) - 1, trigger = xph_rng_float(&rng);
        exphil_pad pad = {xph_rng_u32(&rng), stick, -stick, 0, 0, trigger}, back;
        int32_t action[XPH_MELEE_HEADS];
        assert_int_equal(exphil_melee_pad_encode("exphil81", &pad, action, NULL), EXPHIL_OK);
        assert_int_equal(exphil_melee_pad_decode("exphil81", action, &back, NULL), EXPHIL_OK);
        assert_true(fabsf(back.main_x - stick) <= 0.0625f && fabsf(back.main_y + stick) <= 0.0625f);
        assert_true(fabsf(back.trigger - trigger) <= 0.125f);
        assert_int_equal(back.buttons, pad.buttons & 0xF78);
    }
}

static void test_refused(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    static const char *const places[] = {"main_x", "main_y", "c_x", "c_y", "trigger"};
    for (int i = 0; i < 5; i++) {
        exphil_pad pad = {0, 0, 0, 0, 0, 0};
        float *values[] = {&pad.main_x, &pad.main_y, &pad.c_x, &pad.c_y, &pad.trigger};
        *values[i] = i % 2 ? NAN : INFINITY;
        int32_t action[XPH_MELEE_HEADS] = {77};
        assert_int_equal(exphil_melee_pad_encode("exphil81", &pad, action, &error), EXPHIL_E_NUMERIC);
        assert_non_null(strstr(error.message, places[i]));
        assert_int_equal(action[0], 77);
    }
    static const int32_t limits[XPH_MELEE_HEADS] = {256, 17, 17, 17, 17, 5};
    for (int i = 0; i < XPH_MELEE_HEADS; i++) {
        int32_t action[XPH_MELEE_HEADS] = {0};
        exphil_pad pad = {.buttons = 77};
        action[i] = limits[i];
        assert_int_equal(exphil_melee_pad_decode("exphil81", action, &pad, &error), EXPHIL_E_INVALID);
        assert_non_null(strstr(error.message, xph_melee_heads[i].name));
        action[i] = -1;
        assert_int_equal(exphil_melee_pad_decode("exphil81", action, &pad, &error), EXPHIL_E_INVALID);
        assert_int_equal(pad.buttons, 77);
    }
    exphil_pad pad = {0};
    int32_t action[XPH_MELEE_HEADS] = {0};
    assert_int_equal(exphil_melee_pad_encode("exphil", &pad, action, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_melee_pad_decode("exphil", action, &pad, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_melee_pad_encode("exphil81", NULL, action, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_melee_pad_decode("exphil81", NULL, &pad, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_melee_pad_encode("exphil81", &pad, NULL, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_melee_pad_decode("exphil81", action, NULL, &error), EXPHIL_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neutral),    cmocka_unit_test(test_buttons),
        cmocka_unit_test(test_nearest),    cmocka_unit_test(test_floor),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_nearest_random),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
