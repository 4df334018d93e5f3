/* The encoder against rows worked out by hand, and its treatment of what is absent, unknown, out of range
 * or not a number. */
#include "melee/layout.h"
#include "melee_frame.h"
#include "test.h"

#include <math.h>
#include <stdio.h>

enum { MELEE2 = 278, MELEE2_IDS = 18, EXPHIL = 288 };

typedef struct row {
    float floats[XPH_MELEE_FLOATS_MOST];
    int32_t ids[EXPHIL_IDS_MAX];
} row;

static row encode(const char *layout, const exphil_melee_frame *frame)
{
    row made;
    memset(&made, 0x7F, sizeof made); /* a column that is not written shows */
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_melee_encode(layout, frame, made.floats, made.ids, &error) != EXPHIL_OK)
        fail_msg("%s", error.message);
    return made;
}

static exphil_status encode_status(const char *layout, const exphil_melee_frame *frame, exphil_error *error)
{
    float floats[XPH_MELEE_FLOATS_MOST] = {77};
    int32_t ids[EXPHIL_IDS_MAX] = {77};
    exphil_status status = exphil_melee_encode(layout, frame, floats, ids, error);
    if (status < 0) assert_true(floats[0] == 77 && ids[0] == 77);
    return status;
}

static int64_t offset_of(const char *layout, const char *name)
{
    for (int64_t i = 0; i < exphil_melee_field_count(layout); i++) {
        exphil_melee_field field = EXPHIL_MELEE_FIELD_INIT;
        assert_int_equal(exphil_melee_field_get(layout, i, &field, NULL), EXPHIL_OK);
        if (strcmp(field.name, name) == 0) return field.offset;
    }
    fail_msg("no field %s", name);
    return -1;
}

static float column(const row *made, const char *name)
{
    return made->floats[offset_of("melee2", name)];
}

static void compare(const float *found, const float *expected, int count)
{
    for (int i = 0; i < count; i++) {
        if (found[i] != expected[i]) fail_msg("column %d is %.9g, %.9g expected", i, found[i], expected[i]);
    }
}

/* ---- whole rows ---------------------------------------------------------------------------------------- */

/* By part; what no part has is 0. */

/* own: Fox at (-20, 5), facing left, in hitstun, reflecting */
static const float melee2_own[MELEE2] = {
    [0] = 1,          [1] = 0.42f,   [2] = -1,    [3] = -0.4f, [4] = 0.1f,  [5] = 0.5f, [6] = 0.25f,
    [7] = -1,         [8] = 1,       [9] = -2,    [10] = 0.5f, [11] = 0.5f, [12] = 1,   [13] = 0.75f,
    [14] = 3.5f / 60, [15] = 1,      [16] = 0.2f, [17] = 0.6f, [19] = 1,    [22] = 1,   [23] = 0.5f,
    [24] = 1.355f,    [25] = 1.355f, [28] = 1,    [30] = 1,    [39] = 1,    [41] = 1,   [42] = 1,
    [43] = 1,         [44] = 1,      [45] = 1};

/* opponent: Popo at (90, -10), beyond the edge at 87.75 */
static const float melee2_opponent[MELEE2] = {
    [46] = 1,          [47] = 1.1f, [48] = 1, [49] = 1.8f,    [50] = -0.2f,   [56] = 1, [57] = 1, [59] = 1,
    [60] = -1.0f / 60, [66] = 1,    [67] = 1, [70] = -0.045f, [71] = -0.045f, [72] = 1, [79] = 1, [80] = 1,
    [83] = 1,          [86] = 1,    [87] = 1, [88] = 1,       [89] = 1,       [90] = 1, [91] = 1};

/* 92: no own Nana. 138: Nana at (80, 0) */
static const float melee2_nana[MELEE2] = {
    [138] = 1,      [140] = 1,      [141] = 1.6f, [148] = 1, [149] = 1, [151] = 1, [156] = 1,
    [162] = 0.155f, [163] = 0.155f, [179] = 1,    [180] = 1, [181] = 1, [182] = 1, [183] = 1};

/* pair: 110 to the right, 15 below; behind */
static const float melee2_pair[MELEE2] = {
    [184] = 2.2f, [185] = -0.3f,   [186] = 2.22036033f, [187] = -2.2f, [188] = 0.1f,
    [189] = 1,    [190] = 0.8775f, [199] = 1,           [204] = 1,     [207] = 1.4f};

/* items, nearest first: own laser, older of two at 20, the other, Shy Guy at 30, the one at 120 */
static const float melee2_items[MELEE2] = {
    [208] = 1,     [209] = 1,     [212] = 1,    [213] = -0.4f, [214] = 0.3f, [216] = 0.2f,  [217] = 1,
    [218] = -0.5f, [219] = 0.3f,  [220] = 1.4f, [221] = 0.4f,  [222] = 1,    [226] = 1,     [227] = -0.8f,
    [228] = 0.1f,  [229] = -0.4f, [231] = 1,    [232] = -0.5f, [233] = 0.3f, [234] = 1.4f,  [235] = 0.4f,
    [236] = 1,     [238] = 1,     [240] = 1,    [242] = 0.1f,  [243] = 0.4f, [245] = 1,     [246] = -0.5f,
    [247] = 0.3f,  [248] = 1.4f,  [249] = 0.4f, [250] = 1,     [253] = 1,    [254] = 1,     [255] = -0.4f,
    [256] = 0.7f,  [258] = 0.6f,  [259] = 1,    [260] = -0.5f, [261] = 0.3f, [262] = 1.4f,  [263] = 0.4f,
    [264] = 1,     [267] = 1,     [268] = 1,    [269] = 2,     [271] = 2.4f, [272] = -0.1f, [273] = 1,
    [274] = -0.5f, [275] = 0.3f,  [276] = 1.4f, [277] = 0.4f};

static void test_melee2(void **state)
{
    static const int32_t ids[MELEE2_IDS] = {365, 5,  1, 20, 543,  1,    10,   0,    0,
                                            0,   14, 2, 3,  0x37, 0x37, 0x64, 0xD3, 0x2C};
    exphil_melee_frame frame = melee_frame();
    row made = encode("melee2", &frame);
    static const float *const parts[] = {melee2_own, melee2_opponent, melee2_nana, melee2_pair, melee2_items};
    float floats[MELEE2] = {0};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        for (int i = 0; i < MELEE2; i++) floats[i] += parts[k][i];
    compare(made.floats, floats, MELEE2);
    for (int i = 0; i < MELEE2_IDS; i++) assert_int_equal(made.ids[i], ids[i]);
}

static void test_exphil288(void **state)
{
    static const float expected[EXPHIL] = {
        [0] = 0.42f,    [1] = -1,          [2] = -1,     [3] = 0.25f,  [4] = 1,
        [5] = 1.0f / 6, [6] = 0.3f,        [7] = 0,      [8] = 0.5f,   [9] = 0.25f,
        [10] = -1,      [11] = 2,          [12] = -4,    [13] = 0.05f, [14] = 4.0f / 60,
        [15] = 0.75f,   [16] = 65.0f / 85, [56] = 1.1f,  [57] = 1,     [58] = 4.5f,
        [59] = -0.5f,   [61] = 1.0f / 3,   [62] = 0.6f,  [63] = 1,     [70] = 0,
        [71] = 1,       [72] = -5.0f / 85, [113] = 1,    [132] = 1,    [244] = 0.555090088f,
        [245] = 0.55f,  [246] = -0.15f,    [247] = 0.1f, [283] = 365,  [284] = 398,
        [285] = 1,      [286] = 10,
    };
    exphil_melee_frame frame = melee_frame();
    compare(encode("exphil288", &frame).floats, expected, EXPHIL);
}

/* ---- absent and unknown -------------------------------------------------------------------------------- */

static void test_no_opponent(void **state)
{
    exphil_melee_frame frame = melee_frame();
    frame.player[3].present = frame.follower[3].present = 0;
    frame.player[3].x = NAN; /* not looked at */
    for (int32_t port = 0; port <= 4; port += 4) {
        frame.opponent_port = port;
        row made = encode("melee2", &frame);
        for (int i = 46; i < 188; i++) assert_true(made.floats[i] == 0);
        for (int i = 4; i < 12; i++) assert_int_equal(made.ids[i], 0);
        row old = encode("exphil288", &frame);
        for (int i = 56; i < 112; i++) assert_true(old.floats[i] == (i == 72 ? 1 : 0));
        for (int i = 244; i < 247; i++) assert_true(old.floats[i] == 0);
    }
}

/* Older recorders: what they lack is not read, whatever stands there, and the mask says so. */
static void test_old_versions(void **state)
{
    exphil_melee_frame frame = melee_frame();
    exphil_melee_character *own = &frame.player[1];
    own->known = 0;
    own->state_age = own->misc = own->hitlag = own->speed_y = own->speed_air_x = own->speed_ground_x = NAN;
    own->speed_attack_x = own->speed_attack_y = INFINITY;
    memset(own->flags, 0xFF, sizeof own->flags);
    own->airborne = own->jumps = own->l_cancel = own->hurtbox = 0xFF;
    row made = encode("melee2", &frame);
    static const int zero[] = {5, 6, 7, 8, 9, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22};
    for (size_t i = 0; i < sizeof zero / sizeof zero[0]; i++) assert_true(made.floats[zero[i]] == 0);
    for (int i = 26; i < 46; i++) assert_true(made.floats[i] == 0);
    assert_int_equal(made.ids[1], 0);
    assert_true(made.floats[1] == 0.42f);
    row old = encode("exphil288", &frame);
    assert_true(old.floats[7] == 1); /* not recorded: on the ground */
    for (int i = 8; i < 15; i++) assert_true(old.floats[i] == 0);
    assert_true(old.floats[4] == 0 && old.floats[5] == 0);
}

static void test_masks(void **state)
{
    for (int bit = 0; bit < 5; bit++) {
        exphil_melee_frame frame = melee_frame();
        frame.player[1].known = 1u << bit;
        row made = encode("melee2", &frame);
        for (int i = 0; i < 5; i++) assert_true(made.floats[41 + i] == (i == bit));
        assert_int_equal(made.ids[1] != 0, bit == 0);
        assert_int_equal(made.floats[15] != 0, bit == 1);
        assert_int_equal(made.floats[19] != 0, bit == 2);
        assert_int_equal(made.floats[7] != 0, bit == 3);
        assert_int_equal(made.floats[17] != 0, bit == 4);
    }
}

/* ---- values -------------------------------------------------------------------------------------------- */

static void test_hitstun(void **state)
{
    exphil_melee_frame frame = melee_frame();
    exphil_melee_character *own = &frame.player[1];
    own->misc = -3;
    assert_true(column(&(row){0}, "own.hitstun") == 0);
    row made = encode("melee2", &frame);
    assert_true(column(&made, "own.hitstun") == 0 && column(&made, "own.in_hitstun") == 1);
    own->misc = 600;
    made = encode("melee2", &frame);
    assert_true(column(&made, "own.hitstun") == 4);
    own->flags[3] = 0;
    own->misc = NAN; /* means something else now */
    made = encode("melee2", &frame);
    assert_true(column(&made, "own.hitstun") == 0 && column(&made, "own.in_hitstun") == 0);
    own->flags[3] = 2;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(encode_status("melee2", &frame, &error), EXPHIL_E_NUMERIC);
    assert_string_equal(error.message, "own.hitstun is not finite");
    assert_int_equal(encode_status("exphil288", &frame, &error), EXPHIL_OK); /* has no true hitstun */
}

static void test_ages(void **state)
{
    static const struct {
        float age;
        int32_t id;
        float frames;
    } cases[] = {
        {-2, 0, 0},   {-1, 1, 0},     {-3, 0, 0},       {0, 2, 0},      {0.49f, 2, 0},
        {0.5f, 2, 1}, {1, 3, 1},      {2.5f, 4, 3},     {60, 62, 60},   {61, 63, 61},
        {62, 63, 62}, {505, 63, 120}, {3e38f, 63, 120}, {-3e38f, 0, 0},
    };
    exphil_melee_frame frame = melee_frame();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frame.player[1].state_age = cases[i].age;
        assert_int_equal(encode("melee2", &frame).ids[1], cases[i].id);
        assert_true(encode("exphil288", &frame).floats[14] == (float)(cases[i].frames / 60.0));
    }
}

static void test_bits(void **state)
{
    static const struct {
        const char *name;
        int byte, mask;
    } cases[] = {
        {"absorbing", 0, 0x02},    {"reflecting_owner", 0, 0x08},
        {"reflecting", 0, 0x10},   {"intangible", 1, 0x04},
        {"fast_falling", 1, 0x08}, {"in_hitlag_hit", 1, 0x10},
        {"in_hitlag", 1, 0x20},    {"holding", 2, 0x04},
        {"in_shield", 2, 0x80},    {"shield_touched", 3, 0x04},
        {"powershield", 3, 0x20},  {"cloaked", 4, 0x02},
        {"inactive", 4, 0x10},     {"dead", 4, 0x40},
        {"offscreen", 4, 0x80},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        exphil_melee_frame frame = melee_frame();
        char name[64];
        memset(frame.player[3].flags, 0, 5);
        frame.player[3].flags[cases[i].byte] = (uint8_t)cases[i].mask;
        row made = encode("melee2", &frame);
        snprintf(name, sizeof name, "opponent.%s", cases[i].name);
        assert_true(column(&made, name) == 1);
        float sum = 0;
        for (int j = 72; j < 87; j++) sum += made.floats[j];
        assert_true(sum == 1);
    }
}

static void test_invulnerable(void **state)
{
    exphil_melee_frame frame = melee_frame();
    for (int bit = 0; bit < 8; bit++) {
        frame.player[1].flags[0] = (uint8_t)(1 << bit);
        assert_true(encode("exphil288", &frame).floats[4] == (bit == 2 || bit == 4));
    }
}

static void test_one_hots(void **state)
{
    exphil_melee_frame frame = melee_frame();
    for (int value = 0; value < 256; value += value < 4 ? 1 : 63) {
        frame.player[1].hurtbox = frame.player[1].l_cancel = (uint8_t)value;
        row made = encode("melee2", &frame);
        for (int i = 0; i < 3; i++) assert_true(made.floats[18 + i] == (value == i));
        for (int i = 0; i < 2; i++) assert_true(made.floats[21 + i] == (value == i + 1));
    }
}

static void test_stages(void **state)
{
    static const struct {
        int32_t stage, id, seven;
        float edge;
    } cases[] = {
        {2, 2, 0, 0.633475494f},   {3, 3, 1, 0.8775f},        {8, 8, 2, 0.56f}, {28, 28, 3, 0.772713013f},
        {31, 31, 4, 0.684000015f}, {32, 32, 5, 0.855656967f}, {4, 4, 6, 0},     {126, 126, 6, 0},
        {127, 127, 6, 0},          {65535, 127, 6, 0},        {-1, 127, 6, 0},  {INT32_MIN, 127, 6, 0},
        {INT32_MAX, 127, 6, 0},
    };
    exphil_melee_frame frame = melee_frame();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frame.stage = cases[i].stage;
        row made = encode("melee2", &frame), old = encode("exphil288", &frame);
        assert_int_equal(made.ids[12], cases[i].id);
        assert_float_equal(made.floats[190], cases[i].edge, 1e-7f);
        if (cases[i].edge == 0) assert_true(made.floats[24] == 0 && made.floats[25] == 0);
        for (int j = 0; j < 7; j++) assert_true(old.floats[112 + j] == (j == cases[i].seven));
    }
}

/* Stage events count on their own stage only. */
static void test_stage_events(void **state)
{
    exphil_melee_frame frame = melee_frame();
    frame.platform_left = NAN; /* no Fountain: not looked at */
    frame.wind = 2;
    row made = encode("melee2", &frame);
    for (int i = 191; i < 195; i++) assert_true(made.floats[i] == 0);
    static const int32_t kinds[] = {3, 4, 5, 6, 9}, events[] = {0, 2, 3, 4, 5, 6};
    for (int k = 0; k < 5; k++) {
        frame.stadium_kind = kinds[k];
        made = encode("melee2", &frame);
        for (int i = 0; i < 5; i++) assert_true(made.floats[195 + i] == (i == k));
    }
    for (int k = 0; k < 6; k++) {
        frame.stadium_event = events[k];
        made = encode("melee2", &frame);
        for (int i = 0; i < 6; i++) assert_true(made.floats[200 + i] == (i == k));
    }
    frame.stadium_kind = 0; /* before the first event: normal */
    frame.stadium_event = 77;
    made = encode("melee2", &frame);
    assert_true(made.floats[197] == 1);
    for (int i = 200; i < 206; i++) assert_true(made.floats[i] == 0);
    frame.stage = 28;
    made = encode("melee2", &frame);
    assert_true(made.floats[193] == 0 && made.floats[194] == 1 && made.floats[197] == 0);
    frame.stage = 2;
    frame.platform_left = 20;
    frame.platform_right = -30;
    made = encode("melee2", &frame);
    assert_true(made.floats[191] == 1 && made.floats[192] == -1.5f && made.floats[194] == 0);
    frame.platform_left = NAN;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(encode_status("melee2", &frame, &error), EXPHIL_E_NUMERIC);
    assert_string_equal(error.message, "stage.platform_left is not finite");
}

static void test_clock(void **state)
{
    exphil_melee_frame frame = melee_frame();
    frame.stage = 8;
    frame.frame = -123;
    row made = encode("melee2", &frame);
    assert_true(made.floats[188] == (float)(-123 / 28800.0) && made.floats[189] == 0);
    assert_true(made.floats[206] == (float)(1077 / 600.0));
    assert_true(encode("exphil288", &frame).floats[247] == 0);
    frame.frame = -39;
    assert_true(encode("melee2", &frame).floats[189] == 1);
    frame.frame = 2700;
    assert_true(encode("melee2", &frame).floats[206] == 0.5f);
    frame.frame = INT32_MIN;
    assert_true(encode("melee2", &frame).floats[188] == -1);
    frame.frame = 40000;
    assert_true(encode("exphil288", &frame).floats[247] == 1);
}

/* Values far out are cut, never passed on. */
static void test_clamps(void **state)
{
    exphil_melee_frame frame = melee_frame();
    exphil_melee_character *own = &frame.player[1];
    own->x = own->y = own->percent = own->shield = own->speed_air_x = own->speed_y = own->hitlag = 3e38f;
    own->speed_ground_x = own->speed_attack_x = own->speed_attack_y = -3e38f;
    own->jumps = own->stocks = own->combo = own->last_attack = own->character = 255;
    own->action_state = 65535;
    row made = encode("melee2", &frame);
    for (int64_t i = 0; i < exphil_melee_field_count("melee2"); i++) {
        exphil_melee_field field = EXPHIL_MELEE_FIELD_INIT;
        assert_int_equal(exphil_melee_field_get("melee2", i, &field, NULL), EXPHIL_OK);
        for (int64_t j = field.offset; j < field.offset + field.count; j++) {
            double value = field.is_id ? made.ids[j] : (double)made.floats[j];
            assert_true(value >= field.low && value <= field.high);
        }
    }
    assert_int_equal(made.ids[0], 543);
    assert_int_equal(made.ids[2], 33);
    assert_int_equal(made.ids[3], 63);
    row old = encode("exphil288", &frame);
    assert_true(old.floats[283] == 398 && old.floats[285] == 32 && old.floats[244] == 1.5f);
}

/* ---- ports and items ----------------------------------------------------------------------------------- */

static void test_ports(void **state)
{
    exphil_melee_frame frame = melee_frame();
    row asked = encode("melee2", &frame);
    frame.opponent_port = 0;
    row found = encode("melee2", &frame);
    assert_memory_equal(&asked, &found, sizeof asked);
    frame.player[0] = melee_character(50, 0); /* now the first other port */
    assert_true(encode("melee2", &frame).floats[49] == 1);
    frame.own_port = 4;
    frame.opponent_port = 2;
    row other = encode("melee2", &frame);
    assert_true(other.floats[3] == 1.8f && other.floats[49] == -0.4f);
    assert_true(other.floats[92] == 1 && other.floats[138] == 0); /* its own Nana now */
    assert_true(other.floats[184] == -2.2f);
    assert_true(other.ids[8] == 14 && other.ids[10] == 0);
}

static void test_items(void **state)
{
    exphil_melee_frame frame = melee_frame();
    row made = encode("melee2", &frame);
    exphil_melee_item swap = frame.item[1]; /* the order of the list means nothing */
    frame.item[1] = frame.item[5];
    frame.item[5] = swap;
    row same = encode("melee2", &frame);
    assert_memory_equal(&made, &same, sizeof made);
    frame.item_count = 1;
    made = encode("melee2", &frame);
    assert_true(made.floats[208] == 1 && made.floats[222] == 0 && made.floats[207] == 0.2f);
    for (int i = 14; i < 18; i++) assert_int_equal(made.ids[i], 0);
    frame.item_count = 15;
    for (int i = 0; i < 15; i++) {
        frame.item[i] = swap;
        frame.item[i].spawn_id = (uint32_t)(100 - i);
        frame.item[i].type = (uint16_t)(300 + i);
        frame.item[i].timer = (float)-i;
    }
    made = encode("melee2", &frame); /* equally near: oldest first, which is the last one */
    assert_true(made.floats[220] == -0.14f && made.floats[234] == -0.13f && made.floats[207] == 3);
    assert_int_equal(made.ids[13], 255);
    frame.item[14].speed_x = NAN;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(encode_status("melee2", &frame, &error), EXPHIL_E_NUMERIC);
    assert_string_equal(error.message, "item0.speed_x is not finite");
    frame.item[3].y = INFINITY;
    assert_int_equal(encode_status("melee2", &frame, &error), EXPHIL_E_NUMERIC);
    assert_string_equal(error.message, "item.y is not finite");
}

/* ---- refused ------------------------------------------------------------------------------------------- */

static float *place_of(exphil_melee_character *c, int which)
{
    float *places[] = {&c->x,
                       &c->y,
                       &c->facing,
                       &c->percent,
                       &c->shield,
                       &c->state_age,
                       &c->misc,
                       &c->hitlag,
                       &c->speed_air_x,
                       &c->speed_y,
                       &c->speed_attack_x,
                       &c->speed_attack_y,
                       &c->speed_ground_x};
    return places[which];
}

static void test_not_finite(void **state)
{
    static const char *const fields[] = {
        "x",      "y",           "facing",  "percent",        "shield",         "state_age",     "hitstun",
        "hitlag", "speed_air_x", "speed_y", "speed_attack_x", "speed_attack_y", "speed_ground_x"};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int which = 0; which < 13; which++) {
        for (int who = 0; who < 3; who++) {
            exphil_melee_frame frame = melee_frame();
            exphil_melee_character *c = who == 0   ? &frame.player[1]
                                        : who == 1 ? &frame.player[3]
                                                   : &frame.follower[3];
            c->flags[3] |= 2;
            *place_of(c, which) = which == 6 ? NAN : bad[(which + who) % 3];
            exphil_error error = EXPHIL_ERROR_INIT;
            char expected[64];
            const char *const names[] = {"own", "opponent", "opponent.nana"};
            snprintf(expected, sizeof expected, "%s.%s is not finite", names[who], fields[which]);
            assert_int_equal(encode_status("melee2", &frame, &error), EXPHIL_E_NUMERIC);
            assert_string_equal(error.message, expected);
            c->present = who == 0; /* nobody there: nothing is read */
            assert_int_equal(encode_status("melee2", &frame, &error),
                             who == 0 ? EXPHIL_E_NUMERIC : EXPHIL_OK);
        }
    }
}

static void refuse(const exphil_melee_frame *frame, const char *part)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(encode_status("melee2", frame, &error), EXPHIL_E_INVALID);
    assert_says(&error, part);
}

static void test_refused(void **state)
{
    exphil_melee_frame frame = melee_frame();
    frame.own_port = 1;
    refuse(&frame, "not present");
    frame.own_port = 0;
    refuse(&frame, "own_port must be 1..4");
    frame.own_port = 5;
    refuse(&frame, "own_port must be 1..4");
    frame = melee_frame();
    frame.opponent_port = 5;
    refuse(&frame, "opponent_port must be 0..4");
    frame.opponent_port = 2;
    refuse(&frame, "is frame.own_port");
    frame = melee_frame();
    frame.item_count = 16;
    refuse(&frame, "item_count");
    frame.item_count = -1;
    refuse(&frame, "item_count");
    frame = melee_frame();
    frame.struct_size = 0;
    refuse(&frame, "struct_size");
    frame = melee_frame();
    float floats[MELEE2];
    assert_int_equal(exphil_melee_encode("melee2", NULL, floats, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_melee_encode("melee2", &frame, NULL, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_melee_encode("melee2", &frame, floats, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_melee_encode("melee3", &frame, floats, NULL, NULL), EXPHIL_E_INVALID);
    float old[EXPHIL];
    assert_int_equal(exphil_melee_encode("exphil288", &frame, old, NULL, NULL), EXPHIL_OK);
}

/* Any bytes at all: a status, never a crash or a value outside its bounds. */
static void test_any_bytes(void **state)
{
    xph_rng rng = {1, XPH_RNG_TEST, 0};
    int fine = 0;
    for (int round = 0; round < 3000; round++) {
        exphil_melee_frame frame;
        for (size_t i = 0; i < sizeof frame; i++) ((uint8_t *)&frame)[i] = (uint8_t)xph_rng_u32(&rng);
        frame.struct_size = sizeof frame;
        frame.own_port = 1 + (int32_t)xph_rng_below(&rng, 4);
        frame.opponent_port = frame.own_port % 4 + 1;
        frame.item_count = (int32_t)xph_rng_below(&rng, 16);
        if (round % 2) frame.stage = (int32_t)xph_rng_below(&rng, 40);
        float floats[XPH_MELEE_FLOATS_MOST];
        int32_t ids[EXPHIL_IDS_MAX];
        exphil_status status = exphil_melee_encode("melee2", &frame, floats, ids, NULL);
        assert_true(status == EXPHIL_OK || status == EXPHIL_E_NUMERIC);
        if (status < 0) continue;
        fine++;
        for (int i = 0; i < MELEE2; i++) assert_true(floats[i] >= -10 && floats[i] <= 20);
    }
    assert_true(fine > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_melee2),       cmocka_unit_test(test_exphil288),
        cmocka_unit_test(test_no_opponent),  cmocka_unit_test(test_old_versions),
        cmocka_unit_test(test_masks),        cmocka_unit_test(test_hitstun),
        cmocka_unit_test(test_ages),         cmocka_unit_test(test_bits),
        cmocka_unit_test(test_invulnerable), cmocka_unit_test(test_one_hots),
        cmocka_unit_test(test_stages),       cmocka_unit_test(test_stage_events),
        cmocka_unit_test(test_clock),        cmocka_unit_test(test_clamps),
        cmocka_unit_test(test_ports),        cmocka_unit_test(test_items),
        cmocka_unit_test(test_not_finite),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
