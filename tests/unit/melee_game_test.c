/* Replays as frames: the values of a written replay, old recorders, sparse ports, and that a row from a
 * replay is bit for bit the row of a live host that follows the event stream. */
#include "melee/layout.h"
#include "slp_writer.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

enum { MELEE2 = 278, MELEE2_IDS = 18, EXPHIL = 288 };

/* ---- written replays ----------------------------------------------------------------------------------- */

static void put_u16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)(value & 0xFF);
}

static void put_u32(uint8_t *at, uint32_t value)
{
    put_u16(at, value >> 16);
    put_u16(at + 2, value & 0xFFFF);
}

static void put_f32(uint8_t *at, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u32(at, bits);
}

/* Inputs of a port: stick right by 0.5, trigger 0.35, physical A and Z. */
static void write_pre(slp_writer *writer, int32_t frame, uint32_t slot)
{
    uint8_t *pre = slp_event(writer, 0x37, frame, slot);
    put_f32(pre + 0x19, 0.5f);
    put_f32(pre + 0x1D, -0.25f);
    put_f32(pre + 0x21, 0.75f);
    put_f32(pre + 0x25, -1);
    put_f32(pre + 0x29, 0.35f);
    put_u16(pre + 0x31, 0x0110);
}

/* State of a character: each value differs with the slot, all finite. Fields beyond the event are left
 * out. */
static void write_post(slp_writer *writer, int32_t frame, uint32_t slot)
{
    static const uint8_t floats[] = {0x0A, 0x0E, 0x12, 0x16, 0x1A, 0x22, 0x2B,
                                     0x35, 0x39, 0x3D, 0x41, 0x45, 0x49};
    uint8_t *post = slp_event(writer, 0x38, frame, slot);
    uint32_t size = writer->size[0x38];
    post[0x07] = (uint8_t)slot;
    put_u16(post + 0x08, 20 + slot);
    for (uint32_t i = 0; i < sizeof floats && floats[i] + 4u <= size + 1; i++) {
        put_f32(post + floats[i], i == 2 ? 1 : (float)(10 * slot + i) / 4);
    }
    if (size < 0x34) return;
    put_u16(post + 0x30, 5);
    static const uint8_t flags[] = {0x10, 0x08, 0x80, 0x02, 0x00};
    memcpy(post + 0x26, flags, sizeof flags);
    post[0x2F] = slot % 2;
    post[0x32] = 1;
    post[0x33] = 2;
    post[0x34] = 1;
}

static void write_item(slp_writer *writer, int32_t frame, uint32_t number)
{
    uint8_t *item = slp_event(writer, 0x3B, frame, number);
    if (!item) return;
    put_u16(item + 0x05, 0x36 + number);
    item[0x07] = 2;
    for (uint32_t i = 0; i < 5; i++) put_f32(item + 0x08 + 4 * i, (float)(number + i));
    put_u16(item + 0x1C, 7);
    put_f32(item + 0x1E, -3);
    put_u32(item + 0x22, 100 + number);
    item[0x2A] = number == 0 ? 0xFF : (uint8_t)number;
}

static void write_frame(slp_writer *writer, int32_t frame, uint8_t slots, uint32_t items)
{
    slp_event(writer, 0x3A, frame, 0);
    for (uint32_t slot = 0; slot < 8; slot++) {
        if (slots >> slot & 1) write_pre(writer, frame, slot);
    }
    if (frame == -122 && writer->has[0x3F]) {
        uint8_t *left = slp_event(writer, 0x3F, frame, 0);
        left[5] = 1;
        put_f32(left + 6, 15.5f);
        slp_event(writer, 0x40, frame, 0)[5] = 2;
        uint8_t *stadium = slp_event(writer, 0x41, frame, 0);
        put_u16(stadium + 5, 4);
        put_u16(stadium + 7, 9);
    }
    for (uint32_t i = 0; i < items; i++) write_item(writer, frame, i);
    for (uint32_t slot = 0; slot < 8; slot++) {
        if (slots >> slot & 1) write_post(writer, frame, slot);
    }
    slp_event(writer, 0x3C, frame, 0);
}

/* Two frames; ports 2 and 4, with Nana on 4 in the second one. */
static exphil_slp *written(exphil_context *context, int layout, uint16_t stage)
{
    slp_writer writer;
    slp_begin(&writer, &slp_layouts[layout], false);
    slp_head(&writer, &slp_layouts[layout]);
    put_u16(writer.data + writer.bytes - 1 - writer.size[0x36] + 0x13, stage);
    write_frame(&writer, -123, 0x44, 0);
    write_frame(&writer, -122, 0xC4, 3);
    slp_game_end(&writer, 2);
    slp_close(&writer, -122);
    exphil_slp *slp = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_slp_read(context, writer.data, writer.bytes, NULL, &slp, &error) != EXPHIL_OK) {
        fail_msg("%s", error.message);
    }
    slp_free(&writer);
    return slp;
}

static void check_character(const exphil_melee_character *c, uint32_t slot)
{
    float base = (float)(10 * slot);
    assert_int_equal(c->present, 1);
    assert_int_equal(c->known, EXPHIL_MELEE_HAS_ALL);
    assert_true(c->x == base / 4 && c->y == (base + 1) / 4 && c->facing == 1 && c->percent == (base + 3) / 4);
    assert_true(c->shield == (base + 4) / 4 && c->state_age == (base + 5) / 4 && c->misc == (base + 6) / 4);
    assert_true(c->speed_air_x == (base + 7) / 4 && c->speed_y == (base + 8) / 4);
    assert_true(c->speed_attack_x == (base + 9) / 4 && c->speed_attack_y == (base + 10) / 4);
    assert_true(c->speed_ground_x == (base + 11) / 4 && c->hitlag == (base + 12) / 4);
    assert_int_equal(c->action_state, 20 + slot);
    assert_int_equal(c->character, slot);
    assert_int_equal(c->ground, 5);
    assert_int_equal(c->airborne, slot % 2);
    assert_int_equal(c->jumps, 1);
    assert_int_equal(c->l_cancel, 2);
    assert_int_equal(c->hurtbox, 1);
    assert_memory_equal(c->flags, "\x10\x08\x80\x02", 5);
    assert_int_equal(c->last_attack, slp_byte(0x38, -122, slot, 0, 0x1E));
    assert_int_equal(c->combo, slp_byte(0x38, -122, slot, 0, 0x1F));
    assert_int_equal(c->last_hit_by, slp_byte(0x38, -122, slot, 0, 0x20));
    assert_int_equal(c->stocks, slp_byte(0x38, -122, slot, 0, 0x21));
}

static void check_items(const exphil_melee_frame *frame)
{
    assert_int_equal(frame->item_count, 3);
    for (int i = 0; i < 3; i++) {
        const exphil_melee_item *item = &frame->item[i];
        float n = (float)i;
        assert_true(item->facing == n && item->speed_x == n + 1 && item->speed_y == n + 2);
        assert_true(item->x == n + 3 && item->y == n + 4 && item->timer == -3);
        assert_int_equal(item->spawn_id, 100 + i);
        assert_int_equal(item->type, 0x36 + i);
        assert_int_equal(item->damage, 7);
        assert_int_equal(item->state, 2);
        assert_int_equal(item->owner, i == 0 ? -1 : i);
    }
}

static void test_values(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_slp *slp = written(context, SLP_NEWEST, 2);
    exphil_melee_frame frame;
    assert_true(xph_melee_game_state(slp, 1, 2, 4, &frame));
    assert_int_equal(frame.struct_size, sizeof frame);
    assert_int_equal(frame.frame, -122);
    assert_int_equal(frame.stage, 2);
    assert_int_equal(frame.own_port, 2);
    assert_int_equal(frame.opponent_port, 4);
    check_character(&frame.player[1], 2);
    check_character(&frame.player[3], 6);
    check_character(&frame.follower[3], 7);
    assert_false(frame.player[0].present || frame.player[2].present || frame.follower[1].present);
    check_items(&frame);
    assert_true(frame.platform_left == 15.5f && frame.platform_right == 28);
    assert_int_equal(frame.wind, 2);
    assert_int_equal(frame.stadium_event, 4);
    assert_int_equal(frame.stadium_kind, 9);
    exphil_pad pad;
    assert_true(xph_melee_game_pad(slp, 1, 4, &pad));
    assert_int_equal(pad.buttons, 0x0110);
    assert_true(pad.main_x == 0.5f && pad.main_y == -0.25f && pad.c_x == 0.75f && pad.c_y == -1);
    assert_true(pad.trigger == 0.35f);
    exphil_slp_destroy(slp);
    exphil_context_destroy(context);
}

static void test_absent(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_slp *slp = written(context, SLP_NEWEST, 2);
    exphil_melee_frame frame = {.own_port = 77};
    exphil_pad pad = {.buttons = 77};
    static const int32_t ports[] = {-1, 0, 1, 3, 5, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
        assert_false(xph_melee_game_state(slp, 0, ports[i], 4, &frame));
        assert_false(xph_melee_game_pad(slp, 0, ports[i], &pad));
    }
    assert_false(xph_melee_game_state(slp, 2, 2, 4, &frame));
    assert_false(xph_melee_game_state(slp, -1, 2, 4, &frame));
    assert_false(xph_melee_game_pad(slp, 2, 2, &pad));
    assert_true(frame.own_port == 77 && pad.buttons == 77);
    assert_true(xph_melee_game_state(slp, 0, 2, 0, &frame));
    assert_false(frame.follower[3].present);
    assert_int_equal(frame.item_count, 0);
    assert_true(frame.platform_left == 20 && frame.platform_right == 28 && frame.wind == 0);
    exphil_slp_destroy(slp);
    exphil_context_destroy(context);
}

/* Every recorder gives a row; what it does not know is masked. */
static void test_versions(void **state)
{
    static const uint32_t known[16] = {0, 1, 1, 1, 3, 7, 15, 15, 31, 31, 31, 31, 31, 31, 31, 31};
    exphil_context *context = test_context(NULL, NULL, 1);
    for (int layout = 0; layout < 16; layout++) {
        exphil_slp *slp = written(context, layout, 3);
        exphil_melee_frame frame;
        assert_true(xph_melee_game_state(slp, 1, 4, 2, &frame));
        assert_int_equal(frame.player[3].known, known[layout]);
        assert_int_equal(frame.item_count, layout >= 6 ? 3 : 0);
        float floats[MELEE2];
        int32_t ids[MELEE2_IDS];
        exphil_error error = EXPHIL_ERROR_INIT;
        exphil_status status = exphil_melee_encode("melee2", &frame, floats, ids, &error);
        if (status != EXPHIL_OK) fail_msg("layout %d: %s", layout, error.message);
        for (int i = 0; i < 5; i++) assert_true(floats[41 + i] == (float)(known[layout] >> i & 1));
        assert_true(floats[0] == 1 && floats[46] == 1 && floats[92] == 1 && floats[138] == 0);
        assert_true(floats[layout >= 14 ? 199 : 197] == 1); /* before 3.17 no events: as at the start */
        exphil_slp_destroy(slp);
    }
    exphil_context_destroy(context);
}

/* ---- replay and live host ------------------------------------------------------------------------------ */

/* What a live host would write: its own way from the stream to a frame, sharing nothing with game.c. */
static exphil_melee_character live_character(const exphil_slp_player *p)
{
    if (!p) return (exphil_melee_character){0};
    exphil_melee_character c = {.present = 1};
    c.known = (p->state_age == p->state_age ? 1u : 0) | (p->jumps != 255 ? 2u : 0) |
              (p->hurtbox != 255 ? 4u : 0) | (p->vel_y == p->vel_y ? 8u : 0) |
              (p->hitlag == p->hitlag ? 16u : 0);
    c.x = p->x, c.y = p->y, c.facing = p->facing, c.percent = p->percent, c.shield = p->shield;
    c.state_age = p->state_age, c.misc = p->misc, c.speed_air_x = p->vel_air_x, c.speed_y = p->vel_y;
    c.speed_attack_x = p->vel_kb_x, c.speed_attack_y = p->vel_kb_y, c.speed_ground_x = p->vel_ground_x;
    c.hitlag = p->hitlag, c.action_state = p->action_state, c.character = p->character, c.stocks = p->stocks;
    c.last_attack = p->last_attack, c.combo = p->combo, c.airborne = p->airborne, c.jumps = p->jumps;
    c.l_cancel = p->l_cancel, c.hurtbox = p->hurtbox;
    memcpy(c.flags, p->flags, 5);
    return c;
}

static exphil_melee_frame live_frame(exphil_slp_stream *stream, int32_t stage, int32_t own_port)
{
    exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
    const exphil_slp_frame *from = exphil_slp_stream_frame(stream);
    frame.frame = from->frame;
    frame.stage = stage;
    frame.own_port = own_port;
    for (int port = 0; port < 4; port++) {
        frame.player[port] = live_character(exphil_slp_stream_player(stream, port, 0));
        frame.follower[port] = live_character(exphil_slp_stream_player(stream, port, 1));
    }
    bool events = from->fountain_left == from->fountain_left; /* NaN: no such events in this recorder */
    frame.platform_left = events ? from->fountain_left : 20;
    frame.platform_right = events ? from->fountain_right : 28;
    frame.wind = from->whispy == 255 ? 0 : from->whispy;
    frame.stadium_event = events ? from->stadium_event : 0;
    frame.stadium_kind = events ? from->stadium_kind : 0;
    for (int i = 0; i < from->item_count && i < 15; i++) {
        const exphil_slp_item *it = &from->items[i];
        exphil_melee_item *to = &frame.item[frame.item_count++];
        to->facing = it->facing, to->speed_x = it->vel_x, to->speed_y = it->vel_y, to->x = it->x,
        to->y = it->y;
        to->timer = it->timer, to->spawn_id = it->spawn_id, to->type = it->type, to->damage = it->damage;
        to->state = it->state, to->owner = it->owner;
    }
    return frame;
}

typedef struct row {
    float floats[MELEE2];
    int32_t ids[MELEE2_IDS];
    float old[EXPHIL];
    bool there;
} row;

static row encode(const exphil_melee_frame *frame)
{
    row made;
    memset(&made, 0, sizeof made);
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_melee_encode("melee2", frame, made.floats, made.ids, &error) != EXPHIL_OK ||
        exphil_melee_encode("exphil288", frame, made.old, NULL, &error) != EXPHIL_OK) {
        fail_msg("frame %d: %s", (int)frame->frame, error.message);
    }
    made.there = true;
    return made;
}

/* Rows by frame index, corrections replacing what was known. */
static row *live_rows(exphil_context *context, const char *data, size_t bytes, int64_t count,
                      int32_t own_port)
{
    row *rows = calloc((size_t)count, sizeof *rows);
    exphil_slp_stream *stream = NULL;
    assert_non_null(rows);
    assert_int_equal(exphil_slp_stream_create(context, &stream, NULL), EXPHIL_OK);
    int32_t stage = -1;
    for (size_t at = 0, used = 0; at < bytes; at += used) {
        exphil_status status = exphil_slp_stream_push(stream, data + at, bytes - at, &used, NULL);
        if (status != EXPHIL_OK) break;
        exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
        if (stage < 0) {
            assert_int_equal(exphil_slp_stream_query(stream, &info, NULL), EXPHIL_OK);
            stage = info.stage;
        }
        exphil_melee_frame frame = live_frame(stream, stage, own_port);
        int64_t place = frame.frame + 123;
        if (place < 0 || place >= count) continue;
        rows[place].there = false;
        if (frame.player[own_port - 1].present) rows[place] = encode(&frame);
    }
    exphil_slp_stream_destroy(stream);
    return rows;
}

static int64_t compare_rows(const exphil_slp *slp, const row *live, int64_t count, int32_t own_port)
{
    int64_t compared = 0;
    for (int64_t i = 0; i < count; i++) {
        exphil_melee_frame frame;
        bool there = xph_melee_game_state(slp, i, own_port, 0, &frame);
        if (!live[i].there && i == count - 1)
            break; /* the stream gives the last frame of old files at the next one */
        assert_int_equal(there, live[i].there);
        if (!there) continue;
        row made = encode(&frame);
        assert_memory_equal(made.floats, live[i].floats, sizeof made.floats);
        assert_memory_equal(made.ids, live[i].ids, sizeof made.ids);
        assert_memory_equal(made.old, live[i].old, sizeof made.old);
        compared++;
    }
    return compared;
}

static void check_replay(exphil_context *context, const char *name)
{
    const char *path = test_replay(name);
    if (!path) return;
    size_t bytes = 0;
    char *data = test_read(path, &bytes);
    exphil_slp *slp = NULL;
    assert_non_null(data);
    assert_int_equal(exphil_slp_read(context, data, bytes, NULL, &slp, NULL), EXPHIL_OK);
    int64_t count = exphil_slp_frame_count(slp);
    for (int32_t port = 1; port <= 4; port++) {
        if (!exphil_slp_player_at(slp, 0, port - 1, 0)) continue;
        row *live = live_rows(context, data, bytes, count, port);
        assert_true(compare_rows(slp, live, count, port) > count / 2);
        free(live);
    }
    exphil_slp_destroy(slp);
    free(data);
}

static void test_replay_is_live(void **state)
{
    static const char *const names[] = {"formats/v0.1.slp",
                                        "formats/ics.slp",
                                        "formats/transform.slp",
                                        "formats/v2.0.slp",
                                        "formats/items.slp",
                                        "formats/v3.18.slp",
                                        "formats/crazy_name_tags.slp",
                                        "formats/duplicate_game_end.slp"};
    exphil_context *context = test_context(NULL, NULL, 1);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) check_replay(context, names[i]);
    exphil_context_destroy(context);
}

/* ---- what the demonstrations rest on ------------------------------------------------------------------- */

typedef struct rule {
    int32_t state, age;
    float airborne;
    int32_t action[6];
} rule;

/* The closed-loop expert: three columns of the row before decide the controller, nine cases in all. */
static void test_multishine(void **state)
{
    const char *path = test_replay("training/fox_multishine_closed.slp");
    if (!path) return;
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_slp *slp = NULL;
    assert_int_equal(exphil_slp_open(context, path, NULL, &slp, NULL), EXPHIL_OK);
    rule rules[32];
    int count = 0;
    for (int32_t index = 1; index <= 1678; index++) {
        int64_t position = index + 123;
        exphil_melee_frame frame;
        exphil_pad pad;
        rule now;
        assert_true(xph_melee_game_state(slp, position - 1, 1, 0, &frame));
        assert_true(xph_melee_game_pad(slp, position, 1, &pad));
        assert_int_equal(frame.frame, index - 1);
        row made = encode(&frame);
        now.state = made.ids[0], now.age = made.ids[1], now.airborne = made.floats[12];
        assert_int_equal(exphil_melee_pad_encode("exphil81", &pad, now.action, NULL), EXPHIL_OK);
        int i = 0;
        while (i < count &&
               (rules[i].state != now.state || rules[i].age != now.age || rules[i].airborne != now.airborne))
            i++;
        assert_true(i < 32);
        if (i == count) rules[count++] = now;
        assert_memory_equal(rules[i].action, now.action, sizeof now.action);
    }
    assert_int_equal(count, 9);
    exphil_slp_destroy(slp);
    exphil_context_destroy(context);
}

/* L or R beside a trigger of 1, Z alone beside 0.35: the class repeats the buttons. */
static void test_triggers(void **state)
{
    const char *path = test_replay("formats/buttons_lrzs.slp");
    if (!path) return;
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_slp *slp = NULL;
    assert_int_equal(exphil_slp_open(context, path, NULL, &slp, NULL), EXPHIL_OK);
    int seen = 0;
    for (int64_t i = 84; i < exphil_slp_frame_count(slp); i++) {
        exphil_pad pad;
        int32_t action[6];
        if (!xph_melee_game_pad(slp, i, 1, &pad)) continue;
        assert_int_equal(exphil_melee_pad_encode("exphil81", &pad, action, NULL), EXPHIL_OK);
        if ((action[0] & 0x70) != 0x10) continue;
        assert_int_equal(action[5], 1);
        seen++;
    }
    assert_true(seen > 0);
    exphil_slp_destroy(slp);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),     cmocka_unit_test(test_absent),
        cmocka_unit_test(test_versions),   cmocka_unit_test(test_replay_is_live),
        cmocka_unit_test(test_multishine), cmocka_unit_test(test_triggers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
