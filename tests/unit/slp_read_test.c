/* The replay reader against replays of our own making: each field of each layout, and each rule about frames,
 * rollback, containers and stops. */
#include "context_case.h"
#include "slp_writer.h"

#include <exphil/slp.h>

static exphil_slp *read_as(const slp_writer *writer, int32_t rollback)
{
    exphil_slp_config config = EXPHIL_SLP_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp *slp = NULL;
    config.rollback = rollback;
    if (exphil_slp_read(context, writer->data, writer->bytes, &config, &slp, &error) < 0)
        fail_msg("%s", error.message);
    return slp;
}

static exphil_slp_info info_of(const exphil_slp *slp)
{
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    assert_int_equal(exphil_slp_query(slp, &info, NULL), EXPHIL_OK);
    return info;
}

/* Reading must fail as a format error whose message holds the text. */
static void refused(const void *data, size_t bytes, const char *text)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp *slp = NULL;
    assert_int_equal(exphil_slp_read(context, data, bytes, NULL, &slp, &error), EXPHIL_E_FORMAT);
    assert_null(slp);
    assert_says(&error, text);
}

/* ---- fields -------------------------------------------------------------------------------------------- */

#define NAN_BITS 0x7FC00000u

/* Where a field lies in the struct and in the event, and what it holds when the event is too short. */
typedef struct place {
    size_t at;
    uint32_t code, offset, width, absent;
} place;

#define PRE(name, offset, width, absent)                                                                     \
  {                                                                                                          \
    offsetof(exphil_slp_player, name), 0x37, offset, width, absent                                           \
  }
#define POST(name, offset, width, absent)                                                                    \
  {                                                                                                          \
    offsetof(exphil_slp_player, name), 0x38, offset, width, absent                                           \
  }
#define ITEM(name, offset, width, absent)                                                                    \
  {                                                                                                          \
    offsetof(exphil_slp_item, name), 0x3B, offset, width, absent                                             \
  }

static const place player_fields[] = {
    PRE(pre_seed, 0x07, 4, 0),
    PRE(pre_action_state, 0x0B, 2, 0),
    PRE(pre_x, 0x0D, 4, 0),
    PRE(pre_y, 0x11, 4, 0),
    PRE(pre_facing, 0x15, 4, 0),
    PRE(joy_x, 0x19, 4, 0),
    PRE(joy_y, 0x1D, 4, 0),
    PRE(c_x, 0x21, 4, 0),
    PRE(c_y, 0x25, 4, 0),
    PRE(trigger, 0x29, 4, 0),
    PRE(buttons, 0x2D, 4, 0),
    PRE(physical_buttons, 0x31, 2, 0),
    PRE(physical_l, 0x33, 4, 0),
    PRE(physical_r, 0x37, 4, 0),
    PRE(raw_joy_x, 0x3B, 1, 0xFF),
    PRE(pre_percent, 0x3C, 4, NAN_BITS),
    PRE(raw_joy_y, 0x40, 1, 0xFF),
    PRE(raw_c_x, 0x41, 1, 0xFF),
    PRE(raw_c_y, 0x42, 1, 0xFF),
    POST(character, 0x07, 1, 0),
    POST(action_state, 0x08, 2, 0),
    POST(x, 0x0A, 4, 0),
    POST(y, 0x0E, 4, 0),
    POST(facing, 0x12, 4, 0),
    POST(percent, 0x16, 4, 0),
    POST(shield, 0x1A, 4, 0),
    POST(last_attack, 0x1E, 1, 0),
    POST(combo, 0x1F, 1, 0),
    POST(last_hit_by, 0x20, 1, 0),
    POST(stocks, 0x21, 1, 0),
    POST(state_age, 0x22, 4, NAN_BITS),
    POST(flags[0], 0x26, 1, 0xFF),
    POST(flags[1], 0x27, 1, 0xFF),
    POST(flags[2], 0x28, 1, 0xFF),
    POST(flags[3], 0x29, 1, 0xFF),
    POST(flags[4], 0x2A, 1, 0xFF),
    POST(misc, 0x2B, 4, NAN_BITS),
    POST(airborne, 0x2F, 1, 0xFF),
    POST(ground_id, 0x30, 2, 0xFFFF),
    POST(jumps, 0x32, 1, 0xFF),
    POST(l_cancel, 0x33, 1, 0xFF),
    POST(hurtbox, 0x34, 1, 0xFF),
    POST(vel_air_x, 0x35, 4, NAN_BITS),
    POST(vel_y, 0x39, 4, NAN_BITS),
    POST(vel_kb_x, 0x3D, 4, NAN_BITS),
    POST(vel_kb_y, 0x41, 4, NAN_BITS),
    POST(vel_ground_x, 0x45, 4, NAN_BITS),
    POST(hitlag, 0x49, 4, NAN_BITS),
    POST(animation, 0x4D, 4, 0xFFFFFFFF),
    POST(instance_hit_by, 0x51, 2, 0xFFFF),
    POST(instance_id, 0x53, 2, 0xFFFF),
};

static const place item_fields[] = {
    ITEM(type, 0x05, 2, 0),       ITEM(state, 0x07, 1, 0),
    ITEM(facing, 0x08, 4, 0),     ITEM(vel_x, 0x0C, 4, 0),
    ITEM(vel_y, 0x10, 4, 0),      ITEM(x, 0x14, 4, 0),
    ITEM(y, 0x18, 4, 0),          ITEM(damage, 0x1C, 2, 0),
    ITEM(timer, 0x1E, 4, 0),      ITEM(spawn_id, 0x22, 4, 0),
    ITEM(misc[0], 0x26, 1, 0xFF), ITEM(misc[1], 0x27, 1, 0xFF),
    ITEM(misc[2], 0x28, 1, 0xFF), ITEM(misc[3], 0x29, 1, 0xFF),
    ITEM(owner, 0x2A, 1, 0xFF),   ITEM(instance_id, 0x2B, 2, 0xFFFF),
};

static uint32_t expected(const place *field, uint16_t size, int32_t frame, uint32_t slot, uint32_t salt)
{
    uint32_t value = 0;
    if (field->offset + field->width - 1 > size) return field->absent;
    for (uint32_t i = 0; i < field->width; i++)
        value = value << 8 | slp_byte((uint8_t)field->code, frame, slot, salt, field->offset + i);
    return value;
}

static void check_fields(const place *fields, size_t count, const slp_writer *writer, const void *record,
                         int32_t frame, uint32_t slot, uint32_t salt)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = (const uint8_t *)record + fields[i].at;
        uint32_t found = 0, right = expected(&fields[i], writer->size[fields[i].code], frame, slot, salt);
        memcpy(&found, at, fields[i].width); /* little-endian */
        if (found != right)
            fail_msg("event %02x field at %02x of frame %d is %08x, not %08x", (unsigned)fields[i].code,
                     (unsigned)fields[i].offset, (int)frame, (unsigned)found, (unsigned)right);
    }
}

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void check_player(const slp_writer *writer, const exphil_slp_player *player, int32_t frame,
                         uint32_t slot, uint32_t salt)
{
    assert_non_null(player);
    assert_int_equal(player->frame, frame);
    assert_int_equal(player->port, slot / 2);
    assert_int_equal(player->follower, slot % 2);
    check_fields(player_fields, COUNT(player_fields), writer, player, frame, slot, salt);
}

/* All of a sample made of plain frames. */
static void check_layout(const slp_writer *writer, const exphil_slp *slp)
{
    assert_int_equal(exphil_slp_frame_count(slp), 3);
    for (int32_t i = 0; i < 3; i++) {
        const exphil_slp_frame *frame = exphil_slp_frame_at(slp, i);
        assert_int_equal(frame->frame, -123 + i);
        assert_int_equal(frame->instance, i);
        assert_int_equal(frame->slots, i < 2 ? 0x23 : 0x03);
        assert_int_equal(frame->item_count, writer->has[0x3B] ? i : 0);
        for (int32_t slot = 0; slot < 8; slot++) {
            const exphil_slp_player *player = exphil_slp_player_at(slp, i, slot / 2, slot % 2);
            if (frame->slots >> slot & 1)
                check_player(writer, player, frame->frame, (uint32_t)slot, 0);
            else
                assert_null(player);
        }
        for (int32_t item = 0; item < frame->item_count; item++)
            check_fields(item_fields, COUNT(item_fields), writer, &frame->items[item], frame->frame,
                         (uint32_t)item, 0);
    }
}

static uint32_t word(uint8_t code, int32_t frame, uint32_t slot, uint32_t offset)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < 4; i++) value = value << 8 | slp_byte(code, frame, slot, 0, offset + i);
    return value;
}

static void check_frame_fields(const slp_writer *writer, const exphil_slp *slp)
{
    const exphil_slp_frame *first = exphil_slp_frame_at(slp, 0), *second = exphil_slp_frame_at(slp, 1);
    uint32_t left;
    assert_int_equal(first->seed, writer->size[0x3A] >= 8 ? word(0x3A, -123, 0, 5) : UINT32_MAX);
    assert_int_equal(first->scene_counter, writer->size[0x3A] >= 12 ? word(0x3A, -123, 0, 9) : UINT32_MAX);
    if (writer->size[0x3C] >= 8)
        assert_int_equal((uint32_t)first->latest_final, word(0x3C, -123, 0, 5));
    else
        assert_int_equal(first->latest_final, INT32_MIN);
    memcpy(&left, &first->fountain_left, sizeof left);
    if (!writer->has[0x3F]) {
        assert_int_equal(left, NAN_BITS);
        assert_int_equal(first->whispy, 0xFF);
        assert_int_equal(first->stadium_kind, 0xFFFF);
        return;
    }
    assert_true(first->fountain_left == 20.0F && first->fountain_right == 28.0F);
    assert_int_equal(first->whispy, 0);
    assert_int_equal(first->stadium_kind, 5);
    assert_int_equal(second->changed, 7);
    for (int i = 1; i < 3; i++) { /* the last value holds */
        const exphil_slp_frame *frame = exphil_slp_frame_at(slp, i);
        memcpy(&left, &frame->fountain_left, sizeof left);
        assert_int_equal(left, word(0x3F, -122, 1, 6));
        memcpy(&left, &frame->fountain_right, sizeof left);
        assert_int_equal(left, word(0x3F, -122, 0, 6));
        assert_int_equal(frame->whispy, slp_byte(0x40, -122, 0, 0, 5));
        assert_int_equal((uint32_t)frame->stadium_event << 16 | frame->stadium_kind, word(0x41, -122, 0, 5));
    }
    assert_int_equal(exphil_slp_frame_at(slp, 2)->changed, 0);
}

static void test_layouts(void **state)
{
    for (int which = 0; which < SLP_LAYOUTS; which++) {
        slp_writer writer;
        slp_sample(&writer, which < 16 ? which : 24);
        exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
        check_layout(&writer, slp);
        check_frame_fields(&writer, slp);
        exphil_slp_info info = info_of(slp);
        assert_memory_equal(info.version, slp_layouts[which].version, 3);
        assert_int_equal(info.stop, EXPHIL_SLP_STOP_COMPLETE);
        assert_int_equal(info.problem_count, 0);
        assert_int_equal(info.first_frame, -123);
        assert_int_equal(info.last_frame, -121);
        assert_int_equal(info.instance_count, 3);
        assert_int_equal(info.item_count, writer.has[0x3B] ? 3 : 0);
        assert_int_equal(info.metadata, EXPHIL_SLP_METADATA_OK);
        assert_int_equal(info.metadata_last_frame, -121);
        assert_string_equal(info.played_on, "dolphin");
        exphil_slp_destroy(slp);
        slp_free(&writer);
    }
}

/* The bits of each layout, in the order of exphil_slp_info.fields, as recorders of that version have them. */
static void test_presence(void **state)
{
    static const uint32_t fields[SLP_LAYOUTS] = {0x0,     0x1,     0x3,      0x7,      0x1F,    0x7F,
                                                 0xFFF,   0x1FFF,  0x3FFF,   0xFFFF,   0x1FFFF, 0x1FFFF,
                                                 0x3FFFF, 0xFFFFF, 0xEFFFFF, 0xFFFFFF, 0xE201FF};
    for (int which = 0; which < SLP_LAYOUTS; which++) {
        slp_writer writer;
        slp_sample(&writer, which < 16 ? which : 24);
        exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
        assert_int_equal(info_of(slp).fields, fields[which]);
        exphil_slp_destroy(slp);
        slp_free(&writer);
    }
}

/* ---- settings ------------------------------------------------------------------------------------------ */

static uint8_t start_byte(uint32_t offset)
{
    return slp_byte(0x36, 0, 0, 0, offset);
}

static uint32_t start_word(uint32_t offset, uint16_t size)
{
    return offset + 3 <= size ? word(0x36, 0, 0, offset) : UINT32_MAX;
}

static void check_port(const exphil_slp_port *port, uint32_t i, uint16_t size)
{
    uint32_t at = 0x65 + 0x24 * i, ratio;
    assert_int_equal(port->port, i);
    assert_int_equal(port->type, i < 2 ? i : 3);
    assert_int_equal(port->character, start_byte(at));
    assert_int_equal(port->stocks, start_byte(at + 2));
    assert_int_equal(port->costume, start_byte(at + 3));
    assert_int_equal(port->team_shade, start_byte(at + 7));
    assert_int_equal(port->handicap, start_byte(at + 8));
    assert_int_equal(port->team, start_byte(at + 9));
    assert_int_equal(port->flags, start_byte(at + 12));
    assert_int_equal(port->cpu_level, start_byte(at + 15));
    assert_int_equal((uint32_t)port->start_damage << 16 | port->respawn_damage, word(0x36, 0, 0, at + 16));
    memcpy(&ratio, &port->model_scale, sizeof ratio);
    assert_int_equal(ratio, word(0x36, 0, 0, at + 32));
    memcpy(&ratio, &port->offence_ratio, sizeof ratio);
    assert_int_equal(ratio, word(0x36, 0, 0, at + 24));
    memcpy(&ratio, &port->defence_ratio, sizeof ratio);
    assert_int_equal(ratio, word(0x36, 0, 0, at + 28));
    assert_int_equal(port->dashback_fix, start_word(0x141 + 8 * i, size));
    assert_int_equal(port->shield_drop_fix, start_word(0x145 + 8 * i, size));
}

static void check_settings(const exphil_slp_info *info, uint16_t size)
{
    assert_int_equal(info->timer_kind, start_byte(5) & 3);
    assert_int_equal(info->game_mode, start_byte(5) >> 5);
    assert_int_equal(info->friendly_fire, start_byte(6) & 1);
    assert_int_equal(info->teams, start_byte(0x0D));
    assert_int_equal((uint8_t)info->item_spawn, start_byte(0x10));
    assert_int_equal((uint8_t)info->self_destruct, start_byte(0x11));
    assert_int_equal(info->stage, word(0x36, 0, 0, 0x13) >> 16);
    assert_int_equal(info->timer_seconds, word(0x36, 0, 0, 0x15));
    assert_int_equal(info->seed, word(0x36, 0, 0, 0x13D));
    assert_int_equal(info->pal, size >= 0x1A1 ? start_byte(0x1A1) : 0xFF);
    assert_int_equal(info->frozen, size >= 0x1A2 ? start_byte(0x1A2) : 0xFF);
    assert_int_equal(info->minor_scene, size >= 0x1A3 ? start_byte(0x1A3) : 0xFF);
    assert_int_equal(info->major_scene, size >= 0x1A4 ? start_byte(0x1A4) : 0xFF);
    assert_int_equal(info->language, size >= 0x2BD ? start_byte(0x2BD) : 0xFF);
    assert_int_equal(info->game_number, start_word(0x2F1, size));
    assert_int_equal(info->tiebreak_number, start_word(0x2F5, size));
    assert_int_equal(info->player_count, 2);
}

static void test_settings(void **state)
{
    for (int which = 0; which < 16; which++) {
        slp_writer writer;
        slp_sample(&writer, which);
        exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
        exphil_slp_info info = info_of(slp);
        check_settings(&info, writer.size[0x36]);
        for (uint32_t i = 0; i < 4; i++) check_port(&info.ports[i], i, writer.size[0x36]);
        assert_int_equal(info.end_count, 1);
        assert_int_equal(info.end_method, 2);
        assert_int_equal(info.end_lras, writer.size[0x39] >= 2 ? 1 : -1);
        static const int8_t placements[2][4] = {{-1, -1, -1, -1}, {0, 1, -1, -1}};
        assert_memory_equal(info.placements, placements[writer.size[0x39] >= 6], 4);
        exphil_slp_destroy(slp);
        slp_free(&writer);
    }
}

/* ---- rollback and completeness ------------------------------------------------------------------------- */

static void check_order(int which, int32_t rollback, const int32_t *frames, const uint32_t *salts,
                        int64_t count)
{
    slp_writer writer;
    slp_sample(&writer, which);
    exphil_slp *slp = read_as(&writer, rollback);
    assert_int_equal(exphil_slp_frame_count(slp), count);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(exphil_slp_frame_at(slp, i)->frame, frames[i]);
        check_player(&writer, exphil_slp_player_at(slp, i, 0, 0), frames[i], 0, salts[i]);
        assert_ptr_equal(exphil_slp_player_at(slp, i, 0, 0), &exphil_slp_slot_at(slp, 0)->records[i]);
    }
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

static void test_rollback(void **state)
{
    check_order(16, EXPHIL_SLP_LAST, (const int32_t[]){-123, -122, -121, -120},
                (const uint32_t[]){0, 3, 4, 5}, 4);
    check_order(16, EXPHIL_SLP_FIRST, (const int32_t[]){-123, -122, -121, -120},
                (const uint32_t[]){0, 1, 2, 5}, 4);
    check_order(16, EXPHIL_SLP_ALL, (const int32_t[]){-123, -122, -121, -122, -121, -120},
                (const uint32_t[]){0, 1, 2, 3, 4, 5}, 6);
}

/* Items belong to their simulation: the first of frame -121 had one, the last has one, other bytes. */
static void test_rollback_items(void **state)
{
    slp_writer writer;
    slp_sample(&writer, 16);
    exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
    const exphil_slp_frame *frame = exphil_slp_frame_at(slp, 2);
    assert_int_equal(frame->item_count, 1);
    check_fields(item_fields, COUNT(item_fields), &writer, frame->items, -121, 0, 4);
    assert_int_equal(info_of(slp).item_count, 1);
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

/* Without frame starts a repeated pre-frame opens the frame anew; without bookends a frame that lacks a
 * post-frame is not complete and replaces nothing. */
static void test_old_rollback(void **state)
{
    slp_writer writer;
    check_order(23, EXPHIL_SLP_LAST, (const int32_t[]){-123, -122}, (const uint32_t[]){0, 1}, 2);
    check_order(23, EXPHIL_SLP_ALL, (const int32_t[]){-123, -122, -122}, (const uint32_t[]){0, 1, 1}, 3);
    slp_sample(&writer, 23);
    exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
    assert_int_equal(info_of(slp).instance_count, 5);
    assert_int_equal(info_of(slp).incomplete_count, 2);
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

/* An unfinished simulation of a frame does not replace a finished one. */
static void test_incomplete_keeps(void **state)
{
    slp_writer writer;
    slp_begin(&writer, &slp_layouts[SLP_NEWEST], false);
    slp_head(&writer, &slp_layouts[SLP_NEWEST]);
    slp_frame(&writer, -123, 0x05, 0);
    slp_frame(&writer, -122, 0x05, 0);
    writer.salt = 1;
    slp_open_frame(&writer, -122, 0x05, 2);
    slp_close(&writer, -122);
    exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
    assert_int_equal(exphil_slp_frame_count(slp), 2);
    check_player(&writer, exphil_slp_player_at(slp, 1, 1, 0), -122, 2, 0);
    assert_int_equal(exphil_slp_frame_at(slp, 1)->item_count, 0);
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

/* Frames in any order come out ascending, equal ones once. */
static void test_any_order(void **state)
{
    slp_writer writer;
    slp_begin(&writer, &slp_layouts[SLP_NEWEST], false);
    slp_head(&writer, &slp_layouts[SLP_NEWEST]);
    for (int32_t i = 0; i < 2000; i++) slp_frame(&writer, i * 7919 % 1000 * (i % 3 ? 997 : -997), 0x01, 0);
    slp_close(&writer, 0);
    exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
    const exphil_slp_slot *slot = exphil_slp_slot_at(slp, 0);
    assert_int_equal(slot->record_count, exphil_slp_frame_count(slp));
    for (int64_t i = 0; i < slot->record_count; i++) {
        const exphil_slp_frame *frame = exphil_slp_frame_at(slp, i);
        if (i) assert_true(frame[-1].frame < frame->frame);
        assert_int_equal(slot->records[i].frame, frame->frame);
    }
    assert_true(slot->record_count > 1000 && slot->record_count < 2000);
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

/* Players vanish and come back; a frame may have nobody; ports are sparse. */
static void test_absent_players(void **state)
{
    slp_writer writer;
    slp_sample(&writer, 17);
    exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
    static const int64_t records[8] = {4, 1, 3, 1, 4, 1, 4, 1};
    assert_int_equal(exphil_slp_frame_count(slp), 5);
    assert_int_equal(exphil_slp_slot_count(slp), 8);
    for (int32_t i = 0; i < 8; i++) {
        const exphil_slp_slot *slot = exphil_slp_slot_at(slp, i);
        assert_int_equal(2 * slot->port + slot->follower, i);
        assert_int_equal(slot->record_count, records[i]);
        assert_int_equal(slot->last_frame, -119);
    }
    assert_int_equal(exphil_slp_slot_at(slp, 1)->first_frame, -119);
    for (int32_t slot = 0; slot < 8; slot++) assert_null(exphil_slp_player_at(slp, 2, slot / 2, slot % 2));
    assert_int_equal(exphil_slp_frame_at(slp, 2)->slots, 0);
    check_player(&writer, exphil_slp_player_at(slp, 3, 3, 0), -120, 6, 0);
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

/* ---- stops --------------------------------------------------------------------------------------------- */

static void check_stop(int which, int32_t stop, int32_t truncated, int32_t metadata, int64_t frames,
                       uint32_t problems)
{
    slp_writer writer;
    slp_sample(&writer, which);
    exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
    exphil_slp_info info = info_of(slp);
    assert_int_equal(info.stop, stop);
    assert_int_equal(info.truncated, truncated);
    assert_int_equal(info.metadata, metadata);
    assert_int_equal(info.frame_count, frames);
    assert_int_equal(info.problems, problems);
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

static void test_stops(void **state)
{
    check_stop(0, EXPHIL_SLP_STOP_COMPLETE, 0, EXPHIL_SLP_METADATA_OK, 3, 0);
    check_stop(18, EXPHIL_SLP_STOP_TRUNCATED, 1, EXPHIL_SLP_METADATA_ABSENT, 3, EXPHIL_SLP_PROBLEM_LENGTH);
    check_stop(19, EXPHIL_SLP_STOP_END_OF_FILE, 0, EXPHIL_SLP_METADATA_ABSENT, 3, 0);
    check_stop(20, EXPHIL_SLP_STOP_METADATA, 0, EXPHIL_SLP_METADATA_OK, 3, 0);
    check_stop(22, EXPHIL_SLP_STOP_COMPLETE, 0, EXPHIL_SLP_METADATA_ABSENT, 3, 0);
    check_stop(26, EXPHIL_SLP_STOP_METADATA, 0, EXPHIL_SLP_METADATA_OK, 3,
               EXPHIL_SLP_PROBLEM_NEGATIVE_LENGTH);
}

static void test_unknown_code(void **state)
{
    slp_writer writer;
    slp_begin(&writer, &slp_layouts[SLP_NEWEST], false);
    slp_head(&writer, &slp_layouts[SLP_NEWEST]);
    slp_frame(&writer, -123, 0x01, 0);
    uint64_t at = writer.bytes;
    slp_put(&writer,
            "\xEE"
            "abc",
            4);
    slp_frame(&writer, -122, 0x01, 0);
    slp_close(&writer, -122);
    exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
    exphil_slp_info info = info_of(slp);
    assert_int_equal(info.stop, EXPHIL_SLP_STOP_UNKNOWN_CODE);
    assert_int_equal(info.stop_offset, at);
    assert_int_equal(info.frame_count, 1);
    assert_int_equal(info.metadata, EXPHIL_SLP_METADATA_OK); /* stands where the length says */
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

static void test_odd_events(void **state)
{
    slp_writer writer;
    slp_sample(&writer, 21);
    exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
    exphil_slp_info info = info_of(slp);
    assert_int_equal(info.unknown_event_count, 2);
    assert_int_equal(info.end_count, 2);
    assert_int_equal(info.end_method, 9); /* the first one counts */
    assert_int_equal(info.frame_count, 3);
    assert_int_equal(info.instance_count, 4);
    assert_int_equal(info.incomplete_count, 1);
    assert_int_equal(info.problem_count, 6);
    assert_int_equal(info.problems, EXPHIL_SLP_PROBLEM_SECOND_START | EXPHIL_SLP_PROBLEM_BOOKEND |
                                        EXPHIL_SLP_PROBLEM_ITEM | EXPHIL_SLP_PROBLEM_PORT |
                                        EXPHIL_SLP_PROBLEM_FRAME_START | EXPHIL_SLP_PROBLEM_FRAME_LIMIT);
    assert_int_equal(exphil_slp_frame_at(slp, 1)->seed, UINT32_MAX);
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

/* Events declared too short are skipped, noted once for each kind, and their fields do not exist. */
static void test_short_events(void **state)
{
    static const uint8_t codes[] = {0x37, 0x38, 0x3A, 0x3B, 0x3C, 0x39, 0x3F, 0x40, 0x41, 0x10};
    static const uint16_t sizes[] = {57, 32, 3, 36, 3, 0, 8, 4, 7, 515};
    for (size_t i = 0; i < sizeof codes; i++) {
        slp_writer writer;
        slp_begin(&writer, &slp_layouts[SLP_NEWEST], false);
        slp_declare(&writer, codes[i], sizes[i]);
        slp_head(&writer, &slp_layouts[SLP_NEWEST]);
        for (int32_t frame = 0; frame < 3; frame++) slp_frame(&writer, frame, 0x01, 1);
        slp_event(&writer, codes[i], 2, 0);
        slp_close(&writer, 2);
        exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
        exphil_slp_info info = info_of(slp);
        assert_int_equal(info.problems & EXPHIL_SLP_PROBLEM_SHORT_EVENT, EXPHIL_SLP_PROBLEM_SHORT_EVENT);
        assert_int_equal(info.frame_count, codes[i] == 0x3C ? 0 : 3);
        assert_int_equal(exphil_slp_slot_count(slp),
                         codes[i] != 0x37 && codes[i] != 0x38 && codes[i] != 0x3C);
        if (codes[i] != 0x3A) assert_int_equal(info.problem_count, 1);
        exphil_slp_destroy(slp);
        slp_free(&writer);
    }
}

/* ---- what is not a replay ------------------------------------------------------------------------------ */

static void test_not_a_replay(void **state)
{
    static const uint8_t random[] = {'{', 'U', 3, 'r', 'a', 'w', '[', '$', 'U', '#',
                                     'l', 0,   0, 1,   0,   9,   8,   7,   6};
    refused("", 0, "empty");
    refused("\x89PNG\r\n\x1A\n", 8, "byte 0x89 at offset 0");
    refused("{\"a\": 1, \"bcdefgh\": 3}", 22, "byte 0x22 at offset 1");
    refused("{U\x03raw[$I#lxxxxxxxx", 20, "offset 8");
    refused("{U\x03raw[", 7, "offset 7");
    refused(random, 15, "no event payloads event (0x35) at offset 15");
    refused(random, sizeof random, "no event payloads event (0x35) at offset 15");
    refused("\x36", 1, "offset 0");
}

static void test_bad_tables(void **state)
{
    refused("\x35", 1, "cut at offset 1");
    refused("\x35\x04\x36\x01", 4, "cut at offset 4");
    refused("\x35\x00", 2, "size 0 of the event payloads event at offset 1");
    refused("\x35\x05\x36\x01\x40\x00", 6, "not 3k+1");
    refused("\x35\x04\x37\x00\x3A", 5, "no game start (0x36)");
    refused("\x35\x01", 2, "no game start (0x36)");
    refused("\x35\x04\x36\x01\x40", 5, "no game start event: end at offset 5");
    refused("\x35\x04\x36\x01\x40\x36", 6, "no game start event: a cut event at offset 5");
    refused("\x35\x04\x36\x01\x40\x99", 6, "no game start event: an event without size at offset 5");
    refused("\x35\x04\x36\x00\x02\x36"
            "12",
            8, "game start at offset 5 is declared with 2 bytes");
    refused("\x35\x07\x36\x01\x40\x99\x00\x00\x99", 9, "event 0x99 at offset 8 comes before the game start");
}

/* A second payload table, if it declares itself, is skipped; so is one before the start. */
static void test_table_again(void **state)
{
    slp_writer writer;
    slp_begin(&writer, &slp_layouts[0], false);
    slp_declare(&writer, 0x35, 2);
    slp_head(&writer, &slp_layouts[0]);
    size_t start = 1 + (size_t)writer.size[0x36];
    uint8_t copy[321];
    memcpy(copy, writer.data + writer.bytes - start, start);
    writer.bytes -= start;
    slp_put(&writer, "\x35\x02\x03", 3);
    slp_put(&writer, copy, start);
    slp_put(&writer, "\x35\x02\x03", 3);
    slp_frame(&writer, 0, 0x03, 0);
    slp_close(&writer, 0);
    exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
    assert_int_equal(exphil_slp_frame_count(slp), 1);
    assert_int_equal(info_of(slp).unknown_event_count, 0);
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

/* ---- metadata ------------------------------------------------------------------------------------------ */

static exphil_slp_info with_metadata(const char *text, size_t bytes)
{
    slp_writer writer;
    slp_begin(&writer, &slp_layouts[0], false);
    slp_head(&writer, &slp_layouts[0]);
    slp_frame(&writer, -123, 0x01, 0);
    slp_length(&writer, (int32_t)(writer.bytes - 15));
    slp_put(&writer, text, bytes);
    exphil_slp *slp = read_as(&writer, EXPHIL_SLP_LAST);
    exphil_slp_info info = info_of(slp);
    assert_int_equal(info.frame_count, 1); /* whatever the metadata are */
    assert_int_equal(info.problem_count, info.metadata == EXPHIL_SLP_METADATA_UNREADABLE);
    exphil_slp_destroy(slp);
    slp_free(&writer);
    return info;
}

#define KEY            "U\x08metadata"
#define METADATA(text) with_metadata(KEY text, sizeof KEY text - 1)

static void test_metadata(void **state)
{
    assert_int_equal(with_metadata("", 0).metadata, EXPHIL_SLP_METADATA_ABSENT);
    assert_int_equal(with_metadata("}", 1).metadata, EXPHIL_SLP_METADATA_ABSENT);
    assert_int_equal(METADATA("{}}").metadata, EXPHIL_SLP_METADATA_OK);
    assert_int_equal(METADATA("{U\x09lastFramei\x85}").metadata_last_frame, -123);
    assert_int_equal(METADATA("{U\x09lastFrameU\x85}").metadata_last_frame, 133);
    assert_int_equal(METADATA("{NI\x00\x09lastFrameNI\xFF\x00N}").metadata_last_frame, -256);
    assert_int_equal(METADATA("{U\x09lastFrameL\x00\x00\x00\x00\x00\x00\x12\x34}").metadata_last_frame,
                     0x1234);
    assert_int_equal(METADATA("{U\x09lastFrameL\x00\x00\x01\x00\x00\x00\x12\x34}").metadata_last_frame,
                     INT32_MIN);
    assert_int_equal(METADATA("{U\x09lastFrameSU\x01"
                              "1}")
                         .metadata_last_frame,
                     INT32_MIN);
    assert_int_equal(METADATA("{U\x01"
                              "a{U\x09lastFrameU\x07}}")
                         .metadata_last_frame,
                     INT32_MIN);
    assert_string_equal(METADATA("{U\x08playedOnSU\x05"
                                 "a\x01\xFF z}")
                            .played_on,
                        "a?? z");
    assert_string_equal(METADATA("{U\x08playedOnSU\x28"
                                 "0123456789012345678901234567890123456789}")
                            .played_on,
                        "0123456789012345678901234567890");
    assert_string_equal(METADATA("{U\x08playedOnU\x05}").played_on, "");
    assert_int_equal(METADATA("{U\x01"
                              "a[TFZCxd1234D12345678[]{}HU\x01"
                              "1]U\x01"
                              "bSU\x00}")
                         .metadata,
                     EXPHIL_SLP_METADATA_OK);
}

static void test_broken_metadata(void **state)
{
    static const char *const texts[] = {"{",
                                        "{U",
                                        "{U\x05"
                                        "a",
                                        "[]",
                                        "i\x05",
                                        "{U\x01"
                                        "ai",
                                        "{U\x01"
                                        "aX}",
                                        "{U\x01"
                                        "a[",
                                        "{Si\xFFxx}",
                                        "{U\x01"
                                        "aSl\x7F\x7F\x7F\x7F",
                                        "{$i#i\x01",
                                        "{U\x01"
                                        "a[$Z#l",
                                        "{U\x01"
                                        "a[#i\x02TT}",
                                        "{U\x01"
                                        "a[}]}",
                                        "{U\x01"
                                        "aD123",
                                        "{U\x01"
                                        "aC",
                                        "{T\x01",
                                        "{U\x09lastFrameU\x05"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        char all[64] = KEY;
        strcat(all, texts[i]);
        exphil_slp_info info = with_metadata(all, strlen(all));
        if (info.metadata != EXPHIL_SLP_METADATA_UNREADABLE) fail_msg("\"%s\" was accepted", texts[i]);
        assert_int_equal(info.metadata_last_frame, INT32_MIN);
    }
    assert_int_equal(with_metadata("U\x08metadatA{}", 12).metadata, EXPHIL_SLP_METADATA_UNREADABLE);
    assert_int_equal(with_metadata("x", 1).metadata, EXPHIL_SLP_METADATA_UNREADABLE);
}

static void test_deep_metadata(void **state)
{
    for (int depth = 30; depth < 35; depth++) { /* nested arrays inside the outer object */
        char text[128] = KEY "{U\x01"
                             "a";
        size_t at = sizeof KEY "{U\x01"
                               "a" -
                    1;
        memset(text + at, '[', (size_t)depth);
        memset(text + at + depth, ']', (size_t)depth);
        text[at + 2 * (size_t)depth] = '}';
        exphil_slp_info info = with_metadata(text, at + 2 * (size_t)depth + 1);
        assert_int_equal(info.metadata, depth < 32 ? EXPHIL_SLP_METADATA_OK : EXPHIL_SLP_METADATA_UNREADABLE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),          cmocka_unit_test(test_presence),
        cmocka_unit_test(test_settings),         cmocka_unit_test(test_rollback),
        cmocka_unit_test(test_rollback_items),   cmocka_unit_test(test_old_rollback),
        cmocka_unit_test(test_incomplete_keeps), cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_absent_players),   cmocka_unit_test(test_stops),
        cmocka_unit_test(test_unknown_code),     cmocka_unit_test(test_odd_events),
        cmocka_unit_test(test_short_events),     cmocka_unit_test(test_not_a_replay),
        cmocka_unit_test(test_bad_tables),       cmocka_unit_test(test_table_again),
        cmocka_unit_test(test_metadata),         cmocka_unit_test(test_broken_metadata),
        cmocka_unit_test(test_deep_metadata),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
