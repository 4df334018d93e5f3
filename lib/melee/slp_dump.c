/* Canonical dumps: the same bytes from every correct reader. slp.h gives the layouts. */
#include "melee/slp_internal.h"

enum { STATE_BYTES = 24, INPUT_BYTES = 30, AUX_BYTES = 54, FRAME_BYTES = 6, ITEM_BYTES = 34 };

/* ---- little-endian ------------------------------------------------------------------------------------- */

static uint8_t *put_u8(uint8_t *to, uint8_t value)
{
    *to = value;
    return to + 1;
}

static uint8_t *put_i8(uint8_t *to, int8_t value)
{
    memcpy(to, &value, 1);
    return to + 1;
}

static uint8_t *put_u16(uint8_t *to, uint16_t value)
{
    to[0] = (uint8_t)(value & 0xFF);
    to[1] = (uint8_t)(value >> 8);
    return to + 2;
}

static uint8_t *put_u32(uint8_t *to, uint32_t value)
{
    for (uint32_t i = 0; i < 4; i++) to[i] = (uint8_t)(value >> 8 * i & 0xFF);
    return to + 4;
}

static uint8_t *put_i32(uint8_t *to, int32_t value)
{
    return put_u32(to, (uint32_t)value);
}

static uint8_t *put_f32(uint8_t *to, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return put_u32(to, bits);
}

/* ---- records ------------------------------------------------------------------------------------------- */

static uint8_t *put_state(uint8_t *to, const exphil_slp_player *p)
{
    const float values[] = {p->x, p->y, p->percent, p->shield, p->facing};
    to = put_i32(to, p->frame);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) to = put_f32(to, values[i]);
    return to;
}

static uint8_t *put_input(uint8_t *to, const exphil_slp_player *p)
{
    const float values[] = {p->joy_x, p->joy_y, p->c_x, p->c_y, p->trigger};
    to = put_i32(to, p->frame);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) to = put_f32(to, values[i]);
    to = put_u32(to, p->buttons);
    return put_u16(to, p->physical_buttons);
}

static uint8_t *put_aux(uint8_t *to, const exphil_slp_player *p)
{
    const uint8_t bytes[] = {p->character, p->stocks,   p->last_attack, p->combo,   p->last_hit_by,
                             p->airborne,  p->jumps,    p->l_cancel,    p->hurtbox, p->flags[0],
                             p->flags[1],  p->flags[2], p->flags[3],    p->flags[4]};
    const float values[] = {p->state_age, p->misc,     p->vel_air_x,    p->vel_y,
                            p->vel_kb_x,  p->vel_kb_y, p->vel_ground_x, p->hitlag};
    to = put_i32(to, p->frame);
    to = put_u16(to, p->action_state);
    for (size_t i = 0; i < sizeof bytes; i++) to = put_u8(to, bytes[i]);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) to = put_f32(to, values[i]);
    to = put_i8(to, p->raw_joy_x);
    return put_i8(to, p->raw_joy_y);
}

static uint8_t *put_item(uint8_t *to, const exphil_slp_item *item)
{
    const float values[] = {item->facing, item->vel_x, item->vel_y, item->x, item->y};
    to = put_u16(to, item->type);
    to = put_u8(to, item->state);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) to = put_f32(to, values[i]);
    to = put_u16(to, item->damage);
    to = put_f32(to, item->timer);
    to = put_u32(to, item->spawn_id);
    return put_i8(to, item->owner);
}

/* The count has 16 bits; recorders send at most 15. */
static size_t items_of(const exphil_slp_frame *frame)
{
    return frame->item_count > UINT16_MAX ? UINT16_MAX : (size_t)frame->item_count;
}

static uint8_t *put_frame_items(uint8_t *to, const exphil_slp_frame *frame)
{
    to = put_i32(to, frame->frame);
    to = put_u16(to, (uint16_t)items_of(frame));
    for (size_t i = 0; i < items_of(frame); i++) to = put_item(to, &frame->items[i]);
    return to;
}

/* ---- public -------------------------------------------------------------------------------------------- */

static const struct kind {
    size_t bytes;
    uint8_t *(*put)(uint8_t *to, const exphil_slp_player *player);
} kinds[] = {
    [EXPHIL_SLP_DUMP_STATE] = {STATE_BYTES, put_state},
    [EXPHIL_SLP_DUMP_INPUT] = {INPUT_BYTES, put_input},
    [EXPHIL_SLP_DUMP_AUX] = {AUX_BYTES, put_aux},
};

static size_t item_dump_bytes(const exphil_slp *slp)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < exphil_slp_frame_count(slp); i++)
        bytes += FRAME_BYTES + ITEM_BYTES * items_of(exphil_slp_frame_at(slp, i));
    return bytes;
}

size_t exphil_slp_dump_bytes(const exphil_slp *slp, int32_t kind, int32_t slot)
{
    XPH_OWN_FPU;
    if (kind == EXPHIL_SLP_DUMP_ITEMS) return item_dump_bytes(slp);
    const exphil_slp_slot *one = exphil_slp_slot_at(slp, slot);
    if (kind < 0 || kind > EXPHIL_SLP_DUMP_ITEMS || !one) return 0;
    return kinds[kind].bytes * (size_t)one->record_count;
}

static void put_items(const exphil_slp *slp, uint8_t *to)
{
    for (int64_t i = 0; i < exphil_slp_frame_count(slp); i++)
        to = put_frame_items(to, exphil_slp_frame_at(slp, i));
}

static void put_records(const exphil_slp_slot *slot, const struct kind *kind, uint8_t *to)
{
    for (int64_t i = 0; i < slot->record_count; i++) to = kind->put(to, &slot->records[i]);
}

exphil_status exphil_slp_dump(const exphil_slp *slp, int32_t kind, int32_t slot, void *buffer,
                              size_t buffer_bytes, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!slp) return xph_fail(error, EXPHIL_E_INVALID, "slp is NULL");
    if (kind < 0 || kind > EXPHIL_SLP_DUMP_ITEMS)
        return xph_fail(error, EXPHIL_E_INVALID, "kind is %d, not one of EXPHIL_SLP_DUMP_*", (int)kind);
    const exphil_slp_slot *one = exphil_slp_slot_at(slp, slot);
    if (kind != EXPHIL_SLP_DUMP_ITEMS && !one)
        return xph_fail(error, EXPHIL_E_INVALID, "slot is %d, the replay has %d", (int)slot,
                        (int)exphil_slp_slot_count(slp));
    size_t bytes = exphil_slp_dump_bytes(slp, kind, slot);
    if (buffer_bytes != bytes)
        return xph_fail(error, EXPHIL_E_INVALID, "buffer_bytes is %zu, the dump has %zu", buffer_bytes,
                        bytes);
    if (bytes == 0) return EXPHIL_OK;
    if (!buffer) return xph_fail(error, EXPHIL_E_INVALID, "buffer is NULL");
    if (kind == EXPHIL_SLP_DUMP_ITEMS)
        put_items(slp, buffer);
    else
        put_records(one, &kinds[kind], buffer);
    return EXPHIL_OK;
}
