/* Decoding of single events. The offsets are those of the public format description, counted from the command
 * byte; a field exists if its last byte lies inside the declared payload: offset of last byte <= size. Fields
 * stand in ascending order, so that a shorter layout ends the decoding at the first field it does not
 * have. */
#include "melee/slp_internal.h"

static const uint32_t absent_bits = 0x7FC00000u; /* quiet NaN, the same bits as in the canonical dumps */

static float absent_float(void)
{
    float value;
    memcpy(&value, &absent_bits, sizeof value);
    return value;
}

/* ---- players ------------------------------------------------------------------------------------------- */

static void pre_absent(exphil_slp_player *player)
{
    player->raw_joy_x = player->raw_joy_y = player->raw_c_x = player->raw_c_y = -1;
    player->pre_percent = absent_float();
}

void xph_slp_pre_position_absent(exphil_slp_player *player)
{
    player->pre_seed = UINT32_MAX;
    player->pre_x = player->pre_y = player->pre_facing = player->pre_percent = absent_float();
    player->pre_action_state = UINT16_MAX;
}

void xph_slp_decode_pre(const uint8_t *event, size_t size, exphil_slp_player *player)
{
    player->frame = xph_slp_i32(event + 0x01);
    player->port = event[0x05];
    player->follower = event[0x06] != 0;
    player->pre_seed = xph_slp_u32(event + 0x07);
    player->pre_action_state = xph_slp_u16(event + 0x0B);
    player->pre_x = xph_slp_f32(event + 0x0D);
    player->pre_y = xph_slp_f32(event + 0x11);
    player->pre_facing = xph_slp_f32(event + 0x15);
    player->joy_x = xph_slp_f32(event + 0x19);
    player->joy_y = xph_slp_f32(event + 0x1D);
    player->c_x = xph_slp_f32(event + 0x21);
    player->c_y = xph_slp_f32(event + 0x25);
    player->trigger = xph_slp_f32(event + 0x29);
    player->buttons = xph_slp_u32(event + 0x2D);
    player->physical_buttons = xph_slp_u16(event + 0x31);
    player->physical_l = xph_slp_f32(event + 0x33);
    player->physical_r = xph_slp_f32(event + 0x37);
    if (size < 0x42) pre_absent(player);
    if (size < 0x3B) return;
    player->raw_joy_x = xph_slp_i8(event + 0x3B);
    if (size < 0x3F) return;
    player->pre_percent = xph_slp_f32(event + 0x3C);
    if (size < 0x40) return;
    player->raw_joy_y = xph_slp_i8(event + 0x40);
    if (size < 0x41) return;
    player->raw_c_x = xph_slp_i8(event + 0x41);
    if (size < 0x42) return;
    player->raw_c_y = xph_slp_i8(event + 0x42);
}

static void post_absent(exphil_slp_player *player)
{
    float none = absent_float();
    player->state_age = player->misc = player->hitlag = none;
    player->vel_air_x = player->vel_y = player->vel_kb_x = player->vel_kb_y = player->vel_ground_x = none;
    player->animation = UINT32_MAX;
    player->ground_id = player->instance_hit_by = player->instance_id = UINT16_MAX;
    memset(player->flags, UINT8_MAX, sizeof player->flags);
    player->airborne = player->jumps = player->l_cancel = player->hurtbox = UINT8_MAX;
}

/* Fields since 0.2.0 and 2.0.0. */
static void post_middle(const uint8_t *event, size_t size, exphil_slp_player *player)
{
    player->state_age = xph_slp_f32(event + 0x22);
    for (size_t i = 0; i < sizeof player->flags && 0x26 + i <= size; i++) player->flags[i] = event[0x26 + i];
    if (size < 0x2E) return;
    player->misc = xph_slp_f32(event + 0x2B);
    if (size < 0x2F) return;
    player->airborne = event[0x2F];
    if (size < 0x31) return;
    player->ground_id = xph_slp_u16(event + 0x30);
    if (size < 0x32) return;
    player->jumps = event[0x32];
    if (size < 0x33) return;
    player->l_cancel = event[0x33];
    if (size < 0x34) return;
    player->hurtbox = event[0x34];
}

/* Fields since 3.5.0. */
static void post_new(const uint8_t *event, size_t size, exphil_slp_player *player)
{
    player->vel_air_x = xph_slp_f32(event + 0x35);
    if (size < 0x3C) return;
    player->vel_y = xph_slp_f32(event + 0x39);
    if (size < 0x40) return;
    player->vel_kb_x = xph_slp_f32(event + 0x3D);
    if (size < 0x44) return;
    player->vel_kb_y = xph_slp_f32(event + 0x41);
    if (size < 0x48) return;
    player->vel_ground_x = xph_slp_f32(event + 0x45);
    if (size < 0x4C) return;
    player->hitlag = xph_slp_f32(event + 0x49);
    if (size < 0x50) return;
    player->animation = xph_slp_u32(event + 0x4D);
    if (size < 0x52) return;
    player->instance_hit_by = xph_slp_u16(event + 0x51);
    if (size < 0x54) return;
    player->instance_id = xph_slp_u16(event + 0x53);
}

void xph_slp_decode_post(const uint8_t *event, size_t size, exphil_slp_player *player)
{
    player->character = event[0x07];
    player->action_state = xph_slp_u16(event + 0x08);
    player->x = xph_slp_f32(event + 0x0A);
    player->y = xph_slp_f32(event + 0x0E);
    player->facing = xph_slp_f32(event + 0x12);
    player->percent = xph_slp_f32(event + 0x16);
    player->shield = xph_slp_f32(event + 0x1A);
    player->last_attack = event[0x1E];
    player->combo = event[0x1F];
    player->last_hit_by = event[0x20];
    player->stocks = event[0x21];
    if (size < 0x54) post_absent(player);
    if (size < 0x25) return;
    post_middle(event, size, player);
    if (size < 0x38) return;
    post_new(event, size, player);
}

/* ---- items --------------------------------------------------------------------------------------------- */

void xph_slp_decode_item(const uint8_t *event, size_t size, exphil_slp_item *item)
{
    item->type = xph_slp_u16(event + 0x05);
    item->state = event[0x07];
    item->facing = xph_slp_f32(event + 0x08);
    item->vel_x = xph_slp_f32(event + 0x0C);
    item->vel_y = xph_slp_f32(event + 0x10);
    item->x = xph_slp_f32(event + 0x14);
    item->y = xph_slp_f32(event + 0x18);
    item->damage = xph_slp_u16(event + 0x1C);
    item->timer = xph_slp_f32(event + 0x1E);
    item->spawn_id = xph_slp_u32(event + 0x22);
    memset(item->misc, UINT8_MAX, sizeof item->misc);
    for (size_t i = 0; i < sizeof item->misc && 0x26 + i <= size; i++) item->misc[i] = event[0x26 + i];
    item->owner = -1;
    if (size >= 0x2A) item->owner = xph_slp_i8(event + 0x2A);
    item->instance_id = size < 0x2C ? UINT16_MAX : xph_slp_u16(event + 0x2B);
}

/* ---- frames -------------------------------------------------------------------------------------------- */

void xph_slp_blank_frame(const struct xph_slp_table *table, exphil_slp_frame *frame)
{
    *frame = (exphil_slp_frame){0};
    frame->fountain_left = frame->fountain_right = absent_float();
    frame->whispy = UINT8_MAX;
    frame->stadium_event = frame->stadium_kind = UINT16_MAX;
    if (table->fields & EXPHIL_SLP_HAS_FOUNTAIN) {
        frame->fountain_left = 20.0F; /* where the platforms are before the first event */
        frame->fountain_right = 28.0F;
    }
    if (table->fields & EXPHIL_SLP_HAS_WHISPY) frame->whispy = 0;
    if (table->fields & EXPHIL_SLP_HAS_STADIUM) {
        frame->stadium_event = 0;
        frame->stadium_kind = 5; /* normal */
    }
}

void xph_slp_next_frame(exphil_slp_frame *frame, const struct xph_slp_instance *instance)
{
    frame->items = NULL;
    frame->item_count = 0;
    frame->frame = instance->frame;
    frame->instance = instance->ordinal;
    frame->seed = frame->scene_counter = UINT32_MAX;
    frame->latest_final = XPH_SLP_NO_FRAME;
    frame->slots = frame->changed = 0;
}

void xph_slp_decode_frame(const uint8_t *event, size_t size, exphil_slp_frame *frame)
{
    switch (event[0]) {
    case XPH_SLP_FRAME_START:
        if (size >= 8) frame->seed = xph_slp_u32(event + 5);
        if (size >= 12) frame->scene_counter = xph_slp_u32(event + 9);
        break;
    case XPH_SLP_BOOKEND:
        if (size >= 8) frame->latest_final = xph_slp_i32(event + 5);
        break;
    case XPH_SLP_FOUNTAIN:
        if (event[5] == 0) frame->fountain_right = xph_slp_f32(event + 6);
        if (event[5] == 1) frame->fountain_left = xph_slp_f32(event + 6);
        frame->changed |= 1;
        break;
    case XPH_SLP_WHISPY:
        frame->whispy = event[5];
        frame->changed |= 2;
        break;
    case XPH_SLP_STADIUM:
        frame->stadium_event = xph_slp_u16(event + 5);
        frame->stadium_kind = xph_slp_u16(event + 7);
        frame->changed |= 4;
        break;
    default:
        break;
    }
}
