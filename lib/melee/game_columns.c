/* Frames of a replay as columns, for corpora of games (doc/file-format.md). A column holds one field of all
 * frames of a block. A value is stored as the bits in which it differs from the frame before, its bytes apart:
 * the lowest byte of all values, then the next. What does not change becomes zeros, which compress to nothing.
 *
 *   fields of the frame | for every slot that occurs: fields of a character
 *   | fields of the items of all frames, one after the other
 *
 * A character without a record in a frame repeats its last one. An item is compared with the first one of the
 * same spawn id in the frame before, its spawn id with that at the same place. */
#include "melee/melee.h"
#include "melee/slp_internal.h"

typedef struct field {
    uint16_t offset, width;
} field;
#define FIELD(type, name)                                                                                    \
  {                                                                                                          \
    offsetof(type, name), sizeof((type *)0)->name                                                            \
  }
#define FRAME(name)  FIELD(exphil_slp_frame, name)
#define PLAYER(name) FIELD(exphil_slp_player, name)
#define ITEM(name)   FIELD(exphil_slp_item, name)
#define COUNT(list)  ((int32_t)(sizeof(list) / sizeof(list)[0]))

/* A format: order and widths stay as they are, new fields come last. */
static const field frame_fields[] = {
    FRAME(frame), /* less that of the frame before, less 1; 0 in the first frame of a block */
    FRAME(slots),
    FRAME(fountain_left),
    FRAME(fountain_right),
    FRAME(whispy),
    FRAME(stadium_event),
    FRAME(stadium_kind),
    {offsetof(exphil_slp_frame, item_count), sizeof(uint16_t)},
};
static const field player_fields[] = {
    PLAYER(joy_x),
    PLAYER(joy_y),
    PLAYER(c_x),
    PLAYER(c_y),
    PLAYER(trigger),
    PLAYER(buttons),
    PLAYER(physical_l),
    PLAYER(physical_r),
    PLAYER(x),
    PLAYER(y),
    PLAYER(facing),
    PLAYER(percent),
    PLAYER(shield),
    PLAYER(state_age),
    PLAYER(misc),
    PLAYER(vel_air_x),
    PLAYER(vel_y),
    PLAYER(vel_kb_x),
    PLAYER(vel_kb_y),
    PLAYER(vel_ground_x),
    PLAYER(hitlag),
    PLAYER(animation),
    PLAYER(physical_buttons),
    PLAYER(action_state),
    PLAYER(ground_id),
    PLAYER(instance_hit_by),
    PLAYER(instance_id),
    PLAYER(raw_joy_x),
    PLAYER(raw_joy_y),
    PLAYER(raw_c_x),
    PLAYER(raw_c_y),
    PLAYER(character),
    PLAYER(last_attack),
    PLAYER(combo),
    PLAYER(last_hit_by),
    PLAYER(stocks),
    PLAYER(flags[0]),
    PLAYER(flags[1]),
    PLAYER(flags[2]),
    PLAYER(flags[3]),
    PLAYER(flags[4]),
    PLAYER(airborne),
    PLAYER(jumps),
    PLAYER(l_cancel),
    PLAYER(hurtbox),
};
static const field item_fields[] = {
    ITEM(spawn_id), ITEM(type),   ITEM(state), ITEM(facing), ITEM(vel_x), ITEM(vel_y),       ITEM(x),
    ITEM(y),        ITEM(damage), ITEM(timer), ITEM(misc),   ITEM(owner), ITEM(instance_id),
};

static size_t widths(const field *fields, int32_t count)
{
    size_t sum = 0;
    for (int32_t i = 0; i < count; i++) sum += fields[i].width;
    return sum;
}

static int32_t slots_in(uint8_t mask)
{
    int32_t count = 0;
    for (; mask; mask = (uint8_t)(mask & (mask - 1))) count++;
    return count;
}

void xph_game_widths(uint16_t *frame, uint16_t *player, uint16_t *item)
{
    *frame = (uint16_t)widths(frame_fields, COUNT(frame_fields));
    *player = (uint16_t)widths(player_fields, COUNT(player_fields));
    *item = (uint16_t)widths(item_fields, COUNT(item_fields));
}

size_t xph_game_block_bytes(const xph_game_shape *shape)
{
    return (size_t)shape->frames * widths(frame_fields, COUNT(frame_fields)) +
           (size_t)shape->frames * (size_t)slots_in(shape->slots) *
               widths(player_fields, COUNT(player_fields)) +
           (size_t)shape->items * widths(item_fields, COUNT(item_fields));
}

/* ---- planes ------------------------------------------------------------------------------------------- */

/* Records of one kind. */
typedef struct series {
    uint8_t *first;
    size_t stride;
    int32_t count;
    const int32_t
        *base; /* the place of the record that each is compared with, -1: none; NULL: the one before */
} series;

static uint8_t *value_at(const series *of, const field *f, int32_t i)
{
    return of->first + (size_t)i * of->stride + f->offset;
}

static uint8_t *put(uint8_t *to, const series *from, const field *f)
{
    for (int32_t i = 0; i < from->count; i++, to++) {
        int32_t base = from->base ? from->base[i] : i - 1;
        uint32_t value = 0, on = 0;
        memcpy(&value, value_at(from, f, i), f->width);
        if (base >= 0) memcpy(&on, value_at(from, f, base), f->width);
        for (size_t b = 0; b < f->width; b++) to[b * (size_t)from->count] = (uint8_t)((value ^ on) >> 8 * b);
    }
    return to + (size_t)(f->width - 1) * (size_t)from->count;
}

/* The loop over a field of `width` bytes, once for each width, so that the compiler knows it. */
static inline void get_wide(const uint8_t *from, const series *to, const field *f, int32_t width)
{
    uint32_t value = 0;
    for (int32_t i = 0; i < to->count; i++) {
        uint32_t bits = 0;
        for (int32_t b = 0; b < width; b++) bits |= (uint32_t)from[b * to->count + i] << 8 * b;
        if (to->base) {
            value = 0;
            if (to->base[i] >= 0) memcpy(&value, value_at(to, f, to->base[i]), (size_t)width);
        }
        value ^= bits;
        memcpy(value_at(to, f, i), &value, (size_t)width);
    }
}

static const uint8_t *get(const uint8_t *from, const series *to, const field *f)
{
    if (f->width == 4)
        get_wide(from, to, f, 4);
    else if (f->width == 2)
        get_wide(from, to, f, 2);
    else
        get_wide(from, to, f, 1);
    return from + (size_t)f->width * (size_t)to->count;
}

/* ---- items -------------------------------------------------------------------------------------------- */

/* For each item the one at the same place of the frame before. */
static void base_on_place(const xph_game_block *block)
{
    int32_t before = 0, last = 0, *base = block->base;
    for (int32_t t = 0; t < block->shape.frames; t++) {
        int32_t count = block->frame[t].item_count;
        for (int32_t i = 0; i < count; i++) *base++ = i < last ? before + i : -1;
        before += last;
        last = count;
    }
}

static int32_t find_id(const exphil_slp_item *items, int32_t count, uint32_t id)
{
    for (int32_t i = 0; i < count; i++) {
        if (items[i].spawn_id == id) return i;
    }
    return -1;
}

/* For each item the first one of its spawn id in the frame before. */
static void base_on_id(const xph_game_block *block)
{
    int32_t before = 0, last = 0, *base = block->base;
    const exphil_slp_item *item = block->item;
    for (int32_t t = 0; t < block->shape.frames; t++) {
        int32_t count = block->frame[t].item_count;
        for (int32_t i = 0; i < count; i++, item++) {
            int32_t found = find_id(block->item + before, last, item->spawn_id);
            *base++ = found < 0 ? -1 : before + found;
        }
        before += last;
        last = count;
    }
}

/* ---- memory ------------------------------------------------------------------------------------------- */

static size_t arrays_bytes(const xph_game_shape *shape, size_t *players, size_t *items, size_t *base)
{
    size_t frames = (size_t)shape->frames, count = (size_t)shape->items;
    *players = frames * sizeof(exphil_slp_frame);
    *items = *players + frames * (size_t)slots_in(shape->slots) * sizeof(exphil_slp_player);
    *base = *items + count * sizeof(exphil_slp_item);
    return *base + count * sizeof(int32_t);
}

size_t xph_game_memory_bytes(const xph_game_shape *shape)
{
    size_t players, items, base;
    return arrays_bytes(shape, &players, &items, &base);
}

void xph_game_block_place(const xph_game_shape *shape, void *memory, xph_game_block *block)
{
    size_t players, items, base;
    uint8_t *at = memory;
    arrays_bytes(shape, &players, &items, &base);
    *block = (xph_game_block){.shape = *shape,
                              .frame = memory,
                              .item = (exphil_slp_item *)(void *)(at + items),
                              .base = (int32_t *)(void *)(at + base)};
    exphil_slp_player *player = (exphil_slp_player *)(void *)(at + players);
    for (int32_t slot = 0; slot < XPH_SLP_SLOTS; slot++) {
        if (!(shape->slots >> slot & 1)) continue;
        block->player[slot] = player;
        player += shape->frames;
    }
}

/* ---- packing ------------------------------------------------------------------------------------------ */

exphil_status xph_game_shape_of(const exphil_slp *slp, int64_t position, int32_t frames,
                                xph_game_shape *shape, exphil_error *error)
{
    *shape = (xph_game_shape){.frames = frames, .first_frame = exphil_slp_frame_at(slp, position)->frame};
    for (int32_t t = 0; t < frames; t++) {
        const exphil_slp_frame *frame = exphil_slp_frame_at(slp, position + t);
        if (frame->item_count > XPH_GAME_ITEMS)
            return xph_fail(error, EXPHIL_E_UNSUPPORTED, "frame %d has %d items, a corpus keeps %d",
                            (int)frame->frame, (int)frame->item_count, XPH_GAME_ITEMS);
        if (t && frame->frame <= frame[-1].frame)
            return xph_fail(error, EXPHIL_E_UNSUPPORTED, "frame %d comes again: a corpus keeps one of each",
                            (int)frame->frame);
        shape->items += frame->item_count;
        shape->slots |= frame->slots;
    }
    return EXPHIL_OK;
}

/* Frames as they are stored, copied from the replay. */
static void copy_frames(const exphil_slp *slp, int64_t position, const xph_game_block *block)
{
    exphil_slp_item *item = block->item;
    for (int32_t t = 0; t < block->shape.frames; t++) {
        const exphil_slp_frame *from = exphil_slp_frame_at(slp, position + t);
        block->frame[t] = *from;
        block->frame[t].frame = t ? from->frame - from[-1].frame - 1 : 0;
        if (from->item_count) memcpy(item, from->items, (size_t)from->item_count * sizeof *item);
        item += from->item_count;
    }
}

static void copy_records(const exphil_slp *slp, int64_t position, int32_t slot, const xph_game_block *block)
{
    exphil_slp_player last;
    memset(&last, 0, sizeof last);
    for (int32_t t = 0; t < block->shape.frames; t++) {
        const exphil_slp_player *record = exphil_slp_player_at(slp, position + t, slot / 2, slot % 2);
        if (record) last = *record;
        block->player[slot][t] = last;
    }
}

static uint8_t *put_all(uint8_t *to, const series *from, const field *fields, int32_t count)
{
    for (int32_t i = 0; i < count; i++) to = put(to, from, &fields[i]);
    return to;
}

static series frames_of(const xph_game_block *block)
{
    return (series){(uint8_t *)block->frame, sizeof *block->frame, block->shape.frames, NULL};
}

static series players_of(const xph_game_block *block, int32_t slot)
{
    return (series){(uint8_t *)block->player[slot], sizeof *block->player[slot], block->shape.frames, NULL};
}

static series items_of(const xph_game_block *block)
{
    return (series){(uint8_t *)block->item, sizeof *block->item, block->shape.items, block->base};
}

void xph_game_pack(const exphil_slp *slp, int64_t position, const xph_game_block *block, uint8_t *raw)
{
    series frames = frames_of(block), items = items_of(block);
    copy_frames(slp, position, block);
    raw = put_all(raw, &frames, frame_fields, COUNT(frame_fields));
    for (int32_t slot = 0; slot < XPH_SLP_SLOTS; slot++) {
        if (!block->player[slot]) continue;
        series players = players_of(block, slot);
        copy_records(slp, position, slot, block);
        raw = put_all(raw, &players, player_fields, COUNT(player_fields));
    }
    base_on_place(block);
    raw = put(raw, &items, &item_fields[0]);
    base_on_id(block);
    put_all(raw, &items, item_fields + 1, COUNT(item_fields) - 1);
}

/* ---- unpacking ---------------------------------------------------------------------------------------- */

static const uint8_t *get_all(const uint8_t *from, const series *to, const field *fields, int32_t count)
{
    for (int32_t i = 0; i < count; i++) from = get(from, to, &fields[i]);
    return from;
}

/* Numbers, slots and counts of items must be those of the shape; NULL, or what is wrong. */
static const char *check_frames(const xph_game_block *block)
{
    int64_t number = block->shape.first_frame, items = 0;
    uint8_t slots = 0;
    for (int32_t t = 0; t < block->shape.frames; t++) {
        exphil_slp_frame *frame = &block->frame[t];
        number += t ? (int64_t)(uint32_t)frame->frame + 1 : 0;
        if (t == 0 && frame->frame) return "the first frame of a block has a step";
        if (number <= -EXPHIL_SLP_FRAME_LIMIT || number >= EXPHIL_SLP_FRAME_LIMIT)
            return "a frame number is impossible";
        if (frame->item_count > XPH_GAME_ITEMS) return "a frame has too many items";
        frame->frame = (int32_t)number;
        frame->instance = -1; /* not kept */
        frame->seed = frame->scene_counter = UINT32_MAX;
        frame->latest_final = XPH_SLP_NO_FRAME;
        frame->items = block->item + items;
        items += frame->item_count;
        slots |= frame->slots;
        if (items > block->shape.items) break;
    }
    if (items != block->shape.items) return "there are other items than the block's header says";
    return slots == block->shape.slots ? NULL : "there are other characters than the block's header says";
}

/* What a corpus does not keep is absent, as in a replay that does not record it. */
static void finish_records(const xph_game_block *block, int32_t slot)
{
    for (int32_t t = 0; t < block->shape.frames; t++) {
        exphil_slp_player *record = &block->player[slot][t];
        record->frame = block->frame[t].frame;
        record->port = (uint8_t)(slot / 2);
        record->follower = (uint8_t)(slot % 2);
        xph_slp_pre_position_absent(record);
    }
}

const char *xph_game_unpack(const uint8_t *raw, const xph_game_block *block)
{
    series frames = frames_of(block), items = items_of(block);
    memset(block->frame, 0, (size_t)block->shape.frames * sizeof *block->frame);
    raw = get_all(raw, &frames, frame_fields, COUNT(frame_fields));
    const char *wrong = check_frames(block);
    if (wrong) return wrong;
    for (int32_t slot = 0; slot < XPH_SLP_SLOTS; slot++) {
        if (!block->player[slot]) continue;
        series players = players_of(block, slot);
        raw = get_all(raw, &players, player_fields, COUNT(player_fields));
        finish_records(block, slot);
    }
    memset(block->item, 0, (size_t)block->shape.items * sizeof *block->item);
    base_on_place(block);
    raw = get(raw, &items, &item_fields[0]);
    base_on_id(block);
    get_all(raw, &items, item_fields + 1, COUNT(item_fields) - 1);
    return NULL;
}
