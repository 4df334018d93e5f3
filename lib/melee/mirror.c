/* Left and right exchanged: of frames and controllers, which is the definition, and of rows and actions that were
 * made of them already, which is what training uses. Both give the same bits:
 *
 *     encode(mirror(frame)) = mirror_row(encode(frame))    pad_encode(mirror(pad)) = mirror_action(pad_encode(pad))
 *
 * What is exchanged: the sign of positions, speeds and sticks along x, and of facing; the Fountain's platforms; the
 * wind; action states that name a side. What a field says relative to facing or to the nearer edge is the same on both
 * sides. So is all else: the transformed ground of Pokemon Stadium, the phase of the cloud of Yoshi's Story, the
 * number of the ground under a character (no layout has it), and the d-pad, which points nowhere in a game.
 *
 * A zero keeps its sign: the game has both, what a recorder does not know is +0, and a row does not say which it is.
 * Exact for all numbers but those so small that the encoder rounds them to 0 (below 1e-42). */
#include "melee/codec.h"
#include "melee/layout.h"

#include <float.h>

/* ---- what names a side ----------------------------------------------------------------------------------- */

enum {
    ANYONE = -1,
    MARIO = 0,
    FOX = 1,
    KIRBY = 4,
    LINK = 6,
    JIGGLYPUFF = 15,
    YOUNG_LINK = 20,
    DR_MARIO,
    FALCO
};

/* Pairs of action states of the game's table that name a side (names as in the decompilation of the game, by internal
 * character). Those below 341 are everyone's. The taunt and the Sing of a character whose body is not symmetric are
 * two states, chosen by facing. */
static const struct pair {
    int16_t character, first, second;
} pairs[] = {
    {ANYONE, 1, 2},                                 /* DeadLeft, DeadRight: out over a side */
    {ANYONE, 264, 265},                             /* AppealSR, AppealSL: taunt */
    {MARIO, 341, 342},      {DR_MARIO, 341, 342},   /* AppealSR, AppealSL */
    {LINK, 342, 343},       {YOUNG_LINK, 342, 343}, /* AppealSR, AppealSL */
    {FOX, 370, 371},        {FALCO, 370, 371}, /* AppealSStartR, AppealSStartL: the long taunt of Corneria */
    {FOX, 372, 373},        {FALCO, 372, 373}, /* AppealSR, AppealSL */
    {FOX, 374, 375},        {FALCO, 374, 375}, /* AppealSEndR, AppealSEndL */
    {JIGGLYPUFF, 346, 347}, {KIRBY, 475, 476}, /* SpecialNStartR, SpecialNStartL: Rollout, and Kirby's copy */
    {JIGGLYPUFF, 352, 353}, {KIRBY, 481, 482}, /* SpecialNEndR, SpecialNEndL */
    {JIGGLYPUFF, 354, 355}, {KIRBY, 483, 484}, /* SpecialAirNStartR, SpecialAirNStartL */
    {JIGGLYPUFF, 360, 361}, {KIRBY, 489, 490}, /* SpecialAirNEndR, SpecialAirNEndL */
    {JIGGLYPUFF, 365, 367},                    /* SpecialHiL, SpecialHiR: Sing */
    {JIGGLYPUFF, 366, 368},                    /* SpecialAirHiL, SpecialAirHiR */
    {JIGGLYPUFF, 369, 371},                    /* SpecialLwL, SpecialLwR: Rest */
    {JIGGLYPUFF, 370, 372},                    /* SpecialAirLwL, SpecialAirLwR */
};
#define PAIRS (sizeof pairs / sizeof pairs[0])

static int32_t other_state(int32_t character, int32_t state)
{
    for (size_t i = 0; i < PAIRS; i++) {
        if (pairs[i].character != ANYONE && pairs[i].character != character) continue;
        if (pairs[i].first == state) return pairs[i].second;
        if (pairs[i].second == state) return pairs[i].first;
    }
    return state;
}

/* ---- the definition: frames and controllers -------------------------------------------------------------- */

static float turned(float value)
{
    return value == 0 ? value : -value;
}

/* The encoders take a facing of 0 for the right, so its other side must lie below 0. The game never has it; the
 * smallest number that computes as others do stands for it, and comes back as 0. */
static float faced(float facing)
{
    if (facing == 0) return -FLT_MIN;
    return facing == -FLT_MIN ? 0 : -facing;
}

/* character ANYONE: its own states have no sides. */
static void mirror_character(exphil_melee_character *c, int32_t character)
{
    c->x = turned(c->x);
    c->facing = faced(c->facing);
    c->speed_air_x = turned(c->speed_air_x);
    c->speed_ground_x = turned(c->speed_ground_x);
    c->speed_attack_x = turned(c->speed_attack_x);
    c->action_state = (uint16_t)other_state(character, c->action_state);
}

/* Nana's own states have no sides, and rows do not say who a follower is. */
void xph_melee_mirror_frame(exphil_melee_frame *frame)
{
    for (int32_t i = 0; i < 4; i++) {
        mirror_character(&frame->player[i], frame->player[i].character);
        mirror_character(&frame->follower[i], ANYONE);
    }
    for (int32_t i = 0; i < EXPHIL_MELEE_ITEMS_MAX; i++) {
        exphil_melee_item *item = &frame->item[i];
        item->x = turned(item->x);
        item->facing = turned(item->facing);
        item->speed_x = turned(item->speed_x);
    }
    float left = frame->platform_left;
    frame->platform_left = frame->platform_right;
    frame->platform_right = left;
    if (frame->wind == 1 || frame->wind == 2) frame->wind = 3 - frame->wind;
}

void xph_melee_mirror_pad(exphil_pad *pad)
{
    pad->main_x = turned(pad->main_x);
    pad->c_x = turned(pad->c_x);
}

/* ---- the columns of a layout ----------------------------------------------------------------------------- */

enum { KEEP, NEGATE, FACING, AHEAD, STATE, SWAP_TWO, SWAP_NEXT };

/* What becomes of a gathered number; KEEP unless it stands here. */
static const uint8_t char_turn[XPH_CHAR_COUNT] = {
    [XPH_CHAR_FACING] = FACING, [XPH_CHAR_SIDE] = NEGATE,     [XPH_CHAR_X] = NEGATE,
    [XPH_CHAR_AIR_X] = NEGATE,  [XPH_CHAR_GROUND_X] = NEGATE, [XPH_CHAR_ATTACK_X] = NEGATE,
    [XPH_CHAR_STATE] = STATE,   [XPH_CHAR_RIGHT] = FACING,    [XPH_CHAR_STATE_MASKED] = STATE,
};
_Static_assert(XPH_WORLD_PLATFORM_RIGHT == XPH_WORLD_PLATFORM_LEFT + 1,
               "what SWAP_NEXT takes for the other side");
static const uint8_t world_turn[XPH_WORLD_COUNT] = {
    [XPH_WORLD_DX] = NEGATE,     [XPH_WORLD_AHEAD] = AHEAD,    [XPH_WORLD_PLATFORM_LEFT] = SWAP_NEXT,
    [XPH_WORLD_WIND] = SWAP_TWO, [XPH_WORLD_CLOUD_X] = NEGATE,
};
static const uint8_t item_turn[XPH_ITEM_COUNT] = {
    [XPH_ITEM_FACING] = NEGATE,
    [XPH_ITEM_X] = NEGATE,
    [XPH_ITEM_DX] = NEGATE,
    [XPH_ITEM_SPEED_X] = NEGATE,
};

static const uint8_t *turns_of(int32_t who)
{
    return who == XPH_WHO_WORLD ? world_turn : who >= XPH_WHO_ITEM ? item_turn : char_turn;
}

/* The field of a section that holds this number; NULL: none does. */
static const xph_melee_field *field_of(const xph_melee_layout *layout, int32_t who, int32_t from)
{
    for (int32_t i = 0; i < layout->section_count; i++) {
        const xph_melee_section *section = &layout->sections[i];
        for (int32_t j = 0; section->who == who && j < section->count; j++)
            if (section->fields[j].from == from && section->fields[j].kind != XPH_FIELD_ZERO)
                return &section->fields[j];
    }
    return NULL;
}

static bool is_flag(const xph_melee_field *field)
{
    return field && field->kind == XPH_FIELD_FLAG;
}

/* A whole number as it is, or an id; what is above the highest one is the highest one. */
static bool is_whole(const xph_melee_field *field)
{
    return field && field->low == 0 && field->scale == 1 &&
           (field->kind == XPH_FIELD_ID || field->kind == XPH_FIELD_NUMBER);
}

/* States, and characters who have some of their own, are told apart below the highest number. */
static bool states_fit(const xph_melee_field *state, const xph_melee_field *character)
{
    for (size_t i = 0; i < PAIRS; i++) {
        if ((pairs[i].first < state->high) != (pairs[i].second < state->high)) return false;
        if (character && pairs[i].character >= character->high) return false;
    }
    return true;
}

/* These give NULL, or what is missing for a field's sides to be exchanged in a row. */
static const char *add_number(const xph_melee_field *field, xph_melee_mirror *mirror)
{
    if (field->kind != XPH_FIELD_NUMBER || field->low != -field->high) return "its clamp is not symmetric";
    mirror->negate[mirror->negates++] = field->offset;
    return NULL;
}

static const char *add_beside(const xph_melee_field *field, const xph_melee_field *present,
                              xph_melee_mirror_beside *list, int32_t *count)
{
    if (field->kind != XPH_FIELD_NUMBER || field->low != -field->high) return "its clamp is not symmetric";
    if (!is_flag(present)) return "no column says whether it is there";
    list[(*count)++] = (xph_melee_mirror_beside){field->offset, present->offset};
    return NULL;
}

static const char *add_state(const xph_melee_layout *layout, int32_t who, const xph_melee_field *field,
                             xph_melee_mirror *mirror)
{
    const xph_melee_field *character = field_of(layout, who, XPH_CHAR_CHARACTER);
    bool follower = who == XPH_WHO_OWN_NANA || who == XPH_WHO_OPPONENT_NANA;
    if (!is_whole(field) || field->high >= (double)XPH_MELEE_STATES || !states_fit(field, character))
        return "its states are not told apart";
    if (!follower && (!is_whole(character) || character->kind != field->kind))
        return "no character beside it";
    mirror->state[mirror->states++] = (xph_melee_mirror_state){
        .at = field->offset,
        .character = follower ? -1 : (int32_t)character->offset,
        .end = (int32_t)field->high,
        .is_id = field->kind == XPH_FIELD_ID,
    };
    return NULL;
}

static const char *add_swap(int32_t one, const xph_melee_field *other, int32_t offset,
                            xph_melee_mirror *mirror)
{
    if (!other) return "the other side has no column";
    mirror->swap[mirror->swaps++] =
        (xph_melee_mirror_beside){(uint16_t)one, (uint16_t)(other->offset + offset)};
    return NULL;
}

static const char *add_field(const xph_melee_layout *layout, int32_t who, const xph_melee_field *field,
                             xph_melee_mirror *mirror)
{
    if (field->kind == XPH_FIELD_ZERO) return NULL;
    switch (turns_of(who)[field->from]) {
    case NEGATE:
        return add_number(field, mirror);
    case FACING:
        return add_beside(field, field_of(layout, who, XPH_CHAR_PRESENT), mirror->facing, &mirror->facings);
    case AHEAD:
        return add_beside(field, field_of(layout, XPH_WHO_OPPONENT, XPH_CHAR_PRESENT), mirror->ahead,
                          &mirror->aheads);
    case STATE:
        return add_state(layout, who, field, mirror);
    case SWAP_TWO:
        return field->kind == XPH_FIELD_ONE_HOT && field->count == 2
                   ? add_swap(field->offset, field, 1, mirror)
                   : "its sides are not two columns";
    case SWAP_NEXT:
        return add_swap(field->offset, field_of(layout, who, field->from + 1), 0, mirror);
    default:
        return NULL;
    }
}

exphil_status xph_melee_mirror_make(const xph_melee_layout *layout, const xph_melee_codec *codec,
                                    xph_melee_mirror *mirror, exphil_error *error)
{
    *mirror = (xph_melee_mirror){.floats = layout->float_count, .ids = layout->id_count};
    if (codec->rounding != XPH_CODEC_NEAREST)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "codec %s has no mirror: it rounds %s, so left and right are not the same classes",
                        codec->name, codec->rounding == XPH_CODEC_DOWN ? "down" : "halves up");
    for (int32_t i = 0; i < layout->section_count; i++) {
        const xph_melee_section *section = &layout->sections[i];
        for (int32_t j = 0; j < section->count; j++) {
            const xph_melee_field *field = &section->fields[j];
            const char *lacks = add_field(layout, section->who, field, mirror);
            if (lacks)
                return xph_fail(error, EXPHIL_E_UNSUPPORTED, "layout %s has no mirror: %s: %s", layout->name,
                                field->name, lacks);
        }
    }
    for (size_t i = 0; i < PAIRS; i++) {
        mirror->sided[pairs[i].first] = 1;
        mirror->sided[pairs[i].second] = 1;
    }
    return EXPHIL_OK;
}

/* ---- rows and actions ------------------------------------------------------------------------------------ */

/* As turned(), on the bits and without a branch. */
static void turn(float *value)
{
    uint32_t bits;
    memcpy(&bits, value, sizeof bits);
    bits ^= (uint32_t)(bits << 1 != 0) << 31;
    memcpy(value, &bits, sizeof bits);
}

static void swap(float *one, float *other)
{
    float kept = *one;
    *one = *other;
    *other = kept;
}

/* The whole number in a column of a row that anyone may have made; -1: none below end. */
static int32_t whole_at(const xph_melee_mirror_state *in, int32_t at, int32_t end, const float *floats,
                        const int32_t *ids)
{
    if (in->is_id) return ids[at] < end ? ids[at] : -1;
    return floats[at] >= 0 && floats[at] < (float)end && floats[at] == (float)(int32_t)floats[at]
               ? (int32_t)floats[at]
               : -1;
}

static void mirror_state(const xph_melee_mirror *mirror, const xph_melee_mirror_state *at, float *floats,
                         int32_t *ids)
{
    int32_t state = whole_at(at, at->at, at->end, floats, ids), character = ANYONE;
    if (state < 0 || !mirror->sided[state]) return;
    if (at->character >= 0) character = whole_at(at, at->character, UINT8_MAX, floats, ids);
    state = other_state(character, state);
    if (at->is_id) {
        ids[at->at] = state;
    } else {
        floats[at->at] = (float)state;
    }
}

static void mirror_row(const xph_melee_mirror *mirror, float *floats, int32_t *ids)
{
    for (int32_t i = 0; i < mirror->negates; i++) turn(&floats[mirror->negate[i]]);
    for (int32_t i = 0; i < mirror->facings; i++) {
        float *facing = &floats[mirror->facing[i].at];
        if (floats[mirror->facing[i].other] != 0) *facing = faced(*facing);
    }
    for (int32_t i = 0; i < mirror->aheads; i++) { /* dx times the own side: a zero has the side's sign */
        float *ahead = &floats[mirror->ahead[i].at];
        if (*ahead == 0 && floats[mirror->ahead[i].other] != 0) *ahead = -*ahead;
    }
    for (int32_t i = 0; i < mirror->swaps; i++)
        swap(&floats[mirror->swap[i].at], &floats[mirror->swap[i].other]);
    for (int32_t i = 0; i < mirror->states; i++) mirror_state(mirror, &mirror->state[i], floats, ids);
}

void xph_melee_mirror_rows(const xph_melee_mirror *mirror, float *floats, int32_t *ids, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) mirror_row(mirror, floats + i * mirror->floats, ids + i * mirror->ids);
}

void xph_melee_mirror_actions(int32_t *actions, int64_t count)
{
    for (int64_t i = 0; i < count; i++, actions += XPH_MELEE_HEADS) {
        actions[XPH_HEAD_MAIN_X] = xph_melee_heads[XPH_HEAD_MAIN_X].count - 1 - actions[XPH_HEAD_MAIN_X];
        actions[XPH_HEAD_C_X] = xph_melee_heads[XPH_HEAD_C_X].count - 1 - actions[XPH_HEAD_C_X];
    }
}
