/* melee2, the default layout: 278 numbers and 18 ids.
 *
 *     0  own        46   184  pair     4   208  item0  14
 *    46  opponent   46   188  time     2   222  item1  14
 *    92  own Nana   46   190  stage   18   236  item2  14
 *   138  other Nana 46                     250  item3  14
 *                                          264  item4  14
 *
 * Every character has the same 46 columns. One that is absent is all zeros, ids too, and its first column
 * says so. What an older replay does not record is zero, and the five known_ columns say so (before 3.18
 * there are no stage events: the stage is then as at the start of a game). Scales keep common values
 * within -3..3. The age of an action state comes twice, as a number and as an id of whole frames, because
 * single frames matter at its start. */
#include "melee/layout.h"

/* Columns of one-hots by the numbers of the events: 1 + column. The Stadium is normal before its first event. */
static const uint8_t l_cancel[] = {[1] = 1, [2] = 2}, wind[] = {[1] = 1, [2] = 2},
                     kind[] = {[3] = 1, [4] = 2, [0] = 3, [5] = 3, [6] = 4, [9] = 5},
                     event[] = {[0] = 1, [2] = 2, [3] = 3, [4] = 4, [5] = 5, [6] = 6};
static const xph_melee_places l_cancels = {.place = l_cancel, .numbers = sizeof l_cancel},
                              winds = {.place = wind, .numbers = sizeof wind},
                              kinds = {.place = kind, .numbers = sizeof kind},
                              events = {.place = event, .numbers = sizeof event};

/* p: prefix; at: first column. */
#define CHARACTER(p, at)                                                                                     \
  XPH_FLAG(p ".present", at, XPH_CHAR_PRESENT, "has pre and post event in this frame"),                      \
      XPH_NUMBER(p ".percent", (at) + 1, XPH_CHAR_PERCENT, 0.01, 0, 10, "post 0x16 f32"),                    \
      XPH_NUMBER(p ".facing", (at) + 2, XPH_CHAR_FACING, 1, -1, 1, "post 0x12 f32"),                         \
      XPH_NUMBER(p ".x", (at) + 3, XPH_CHAR_X, 0.02, -10, 10, "post 0x0A f32"),                              \
      XPH_NUMBER(p ".y", (at) + 4, XPH_CHAR_Y, 0.02, -10, 10, "post 0x0E f32"),                              \
      XPH_NUMBER(p ".speed_air_x", (at) + 5, XPH_CHAR_AIR_X, 0.5, -10, 10, "post 0x35 f32"),                 \
      XPH_NUMBER(p ".speed_ground_x", (at) + 6, XPH_CHAR_GROUND_X, 0.5, -10, 10, "post 0x45 f32"),           \
      XPH_NUMBER(p ".speed_y", (at) + 7, XPH_CHAR_SPEED_Y, 0.5, -10, 10, "post 0x39 f32"),                   \
      XPH_NUMBER(p ".speed_attack_x", (at) + 8, XPH_CHAR_ATTACK_X, 0.25, -10, 10, "post 0x3D f32"),          \
      XPH_NUMBER(p ".speed_attack_y", (at) + 9, XPH_CHAR_ATTACK_Y, 0.25, -10, 10, "post 0x41 f32"),          \
      XPH_NUMBER(p ".shield", (at) + 10, XPH_CHAR_SHIELD, 1.0 / 60, 0, 1, "post 0x1A f32"),                  \
      XPH_NUMBER(p ".jumps", (at) + 11, XPH_CHAR_JUMPS, 0.5, 0, 3, "post 0x32 u8"),                          \
      XPH_FLAG(p ".airborne", (at) + 12, XPH_CHAR_AIRBORNE, "post 0x2F u8"),                                 \
      XPH_NUMBER(p ".stocks", (at) + 13, XPH_CHAR_STOCKS, 0.25, 0, 5, "post 0x21 u8"),                       \
      XPH_NUMBER(p ".state_age", (at) + 14, XPH_CHAR_AGE, 1.0 / 60, -1, 10, "post 0x22 f32"),                \
      XPH_FLAG(p ".in_hitstun", (at) + 15, XPH_CHAR_IN_HITSTUN, "post 0x29 u8 bit 02"),                      \
      XPH_NUMBER(p ".hitstun", (at) + 16, XPH_CHAR_HITSTUN, 1.0 / 60, 0, 4,                                  \
                 "post 0x2B f32 >= 0 while in_hitstun"),                                                     \
      XPH_NUMBER(p ".hitlag", (at) + 17, XPH_CHAR_HITLAG, 0.1, 0, 4, "post 0x49 f32"),                       \
      XPH_ONE_HOT(p ".hurtbox", (at) + 18, 3, XPH_CHAR_HURTBOX, NULL,                                        \
                  "post 0x34 u8: open, invulnerable, intangible"),                                           \
      XPH_ONE_HOT(p ".l_cancel", (at) + 21, 2, XPH_CHAR_LCANCEL, &l_cancels, "post 0x33 u8: hit, missed"),   \
      XPH_NUMBER(p ".combo", (at) + 23, XPH_CHAR_COMBO, 0.1, 0, 5, "post 0x1F u8"),                          \
      XPH_NUMBER(p ".edge", (at) + 24, XPH_CHAR_EDGE, 0.02, -10, 10,                                         \
                 "stage edge - |x|; 0 if no edge is known"),                                                 \
      XPH_NUMBER(p ".edge_ahead", (at) + 25, XPH_CHAR_EDGE_AHEAD, 0.02, -10, 10,                             \
                 "stage edge - x * sign(facing)"),                                                           \
      XPH_FLAG(p ".absorbing", (at) + 26, XPH_CHAR_BIT, "post 0x26 u8 bit 02"),                              \
      XPH_FLAG(p ".reflecting_owner", (at) + 27, XPH_CHAR_BIT + 1, "post 0x26 u8 bit 08"),                   \
      XPH_FLAG(p ".reflecting", (at) + 28, XPH_CHAR_BIT + 2, "post 0x26 u8 bit 10"),                         \
      XPH_FLAG(p ".intangible", (at) + 29, XPH_CHAR_BIT + 3, "post 0x27 u8 bit 04"),                         \
      XPH_FLAG(p ".fast_falling", (at) + 30, XPH_CHAR_BIT + 4, "post 0x27 u8 bit 08"),                       \
      XPH_FLAG(p ".in_hitlag_hit", (at) + 31, XPH_CHAR_BIT + 5, "post 0x27 u8 bit 10"),                      \
      XPH_FLAG(p ".in_hitlag", (at) + 32, XPH_CHAR_BIT + 6, "post 0x27 u8 bit 20"),                          \
      XPH_FLAG(p ".holding", (at) + 33, XPH_CHAR_BIT + 7, "post 0x28 u8 bit 04"),                            \
      XPH_FLAG(p ".in_shield", (at) + 34, XPH_CHAR_BIT + 8, "post 0x28 u8 bit 80"),                          \
      XPH_FLAG(p ".shield_touched", (at) + 35, XPH_CHAR_BIT + 9, "post 0x29 u8 bit 04"),                     \
      XPH_FLAG(p ".powershield", (at) + 36, XPH_CHAR_BIT + 10, "post 0x29 u8 bit 20"),                       \
      XPH_FLAG(p ".cloaked", (at) + 37, XPH_CHAR_BIT + 11, "post 0x2A u8 bit 02"),                           \
      XPH_FLAG(p ".inactive", (at) + 38, XPH_CHAR_BIT + 12, "post 0x2A u8 bit 10"),                          \
      XPH_FLAG(p ".dead", (at) + 39, XPH_CHAR_BIT + 13, "post 0x2A u8 bit 40"),                              \
      XPH_FLAG(p ".offscreen", (at) + 40, XPH_CHAR_BIT + 14, "post 0x2A u8 bit 80"),                         \
      XPH_FLAG(p ".known_age", (at) + 41, XPH_CHAR_HAS_AGE, "recorder 0.2.0 or later"),                      \
      XPH_FLAG(p ".known_flags", (at) + 42, XPH_CHAR_HAS_FLAGS, "recorder 2.0.0 or later"),                  \
      XPH_FLAG(p ".known_hurtbox", (at) + 43, XPH_CHAR_HAS_HURTBOX, "recorder 2.1.0 or later"),              \
      XPH_FLAG(p ".known_speed", (at) + 44, XPH_CHAR_HAS_SPEED, "recorder 3.5.0 or later"),                  \
      XPH_FLAG(p ".known_hitlag", (at) + 45, XPH_CHAR_HAS_HITLAG, "recorder 3.8.0 or later")

/* Action states above 543 share its row; the highest one ever seen is 529 (Kirby). */
#define MOTION_IDS(p, at)                                                                                    \
  XPH_ID(p ".state", at, XPH_CHAR_STATE, 543, "post 0x08 u16"),                                              \
      XPH_ID(p ".age", (at) + 1, XPH_CHAR_AGE_ID, 63, "post 0x22 f32, whole part + 2; 0 not known")

/* Internal characters are 0..32; 33 stands for all others. */
#define IDENTITY_IDS(p, at)                                                                                  \
  XPH_ID(p ".character", at, XPH_CHAR_CHARACTER, 33, "post 0x07 u8"),                                        \
      XPH_ID(p ".last_attack", (at) + 1, XPH_CHAR_LAST_ATTACK, 63, "post 0x1E u8")

static const xph_melee_field own_fields[] = {CHARACTER("own", 0), MOTION_IDS("own", 0),
                                             IDENTITY_IDS("own", 2)};
static const xph_melee_field opponent_fields[] = {CHARACTER("opponent", 46), MOTION_IDS("opponent", 4),
                                                  IDENTITY_IDS("opponent", 6)};
static const xph_melee_field own_nana_fields[] = {CHARACTER("own.nana", 92), MOTION_IDS("own.nana", 8)};
static const xph_melee_field opponent_nana_fields[] = {CHARACTER("opponent.nana", 138),
                                                       MOTION_IDS("opponent.nana", 10)};

static const xph_melee_field world_fields[] = {
    XPH_NUMBER("pair.dx", 184, XPH_WORLD_DX, 0.02, -10, 10, "opponent x - own x"),
    XPH_NUMBER("pair.dy", 185, XPH_WORLD_DY, 0.02, -10, 10, "opponent y - own y"),
    XPH_NUMBER("pair.distance", 186, XPH_WORLD_DISTANCE, 0.02, 0, 10, "sqrt(dx * dx + dy * dy)"),
    XPH_NUMBER("pair.ahead", 187, XPH_WORLD_AHEAD, 0.02, -10, 10, "dx * sign(own facing)"),
    XPH_NUMBER("time.clock", 188, XPH_WORLD_FRAME, 1.0 / 28800, -1, 4,
               "frame index; 28800 are eight minutes"),
    XPH_FLAG("time.playable", 189, XPH_WORLD_PLAYABLE, "frame index >= -39"),
    XPH_NUMBER("stage.edge", 190, XPH_WORLD_EDGE, 0.01, 0, 2, "x of the right edge; 0 if not known"),
    XPH_NUMBER("stage.platform_left", 191, XPH_WORLD_PLATFORM_LEFT, 0.05, -3, 3, "Fountain 0x3F f32, held"),
    XPH_NUMBER("stage.platform_right", 192, XPH_WORLD_PLATFORM_RIGHT, 0.05, -3, 3, "Fountain 0x3F f32, held"),
    XPH_ONE_HOT("stage.wind", 193, 2, XPH_WORLD_WIND, &winds, "Dream Land 0x40 u8, held: left, right"),
    XPH_ONE_HOT("stage.stadium_kind", 195, 5, XPH_WORLD_STADIUM_KIND, &kinds,
                "Stadium 0x41 u16, held: fire grass normal rock water"),
    XPH_ONE_HOT("stage.stadium_event", 200, 6, XPH_WORLD_STADIUM_EVENT, &events,
                "Stadium 0x41 u16, held: 0 finished 2 3 4 5 6 finalise"),
    XPH_NUMBER("stage.cloud", 206, XPH_WORLD_CLOUD, 1.0 / 600, 0, 2, "frame index mod 1200 on Yoshi's Story"),
    XPH_NUMBER("items.count", 207, XPH_WORLD_ITEM_COUNT, 0.2, 0, 3,
               "items in the frame, also those without slot"),
    XPH_ID("stage", 12, XPH_WORLD_STAGE, 127, "game start 0x13 u16; 127 any above"),
};

/* The items nearest to the own character, nearest first (of equals the older); anyone's, of any kind. */
#define ITEM(p, at, id)                                                                                      \
  XPH_FLAG(p ".present", at, XPH_ITEM_PRESENT, "item 0x3B of this frame"),                                   \
      XPH_FLAG(p ".own", (at) + 1, XPH_ITEM_OWN, "item 0x2A i8 is the own port"),                            \
      XPH_FLAG(p ".opponent", (at) + 2, XPH_ITEM_OPPONENT, "item 0x2A i8 is the opponent's port"),           \
      XPH_FLAG(p ".nobody", (at) + 3, XPH_ITEM_NOBODY, "item 0x2A i8 < 0; always before 3.6.0"),             \
      XPH_NUMBER(p ".facing", (at) + 4, XPH_ITEM_FACING, 1, -1, 1, "item 0x08 f32"),                         \
      XPH_NUMBER(p ".x", (at) + 5, XPH_ITEM_X, 0.02, -10, 10, "item 0x14 f32"),                              \
      XPH_NUMBER(p ".y", (at) + 6, XPH_ITEM_Y, 0.02, -10, 10, "item 0x18 f32"),                              \
      XPH_NUMBER(p ".dx", (at) + 7, XPH_ITEM_DX, 0.02, -10, 10, "item x - own x"),                           \
      XPH_NUMBER(p ".dy", (at) + 8, XPH_ITEM_DY, 0.02, -10, 10, "item y - own y"),                           \
      XPH_NUMBER(p ".speed_x", (at) + 9, XPH_ITEM_SPEED_X, 0.5, -10, 10, "item 0x0C f32"),                   \
      XPH_NUMBER(p ".speed_y", (at) + 10, XPH_ITEM_SPEED_Y, 0.5, -10, 10, "item 0x10 f32"),                  \
      XPH_NUMBER(p ".state", (at) + 11, XPH_ITEM_STATE, 0.1, 0, 3, "item 0x07 u8"),                          \
      XPH_NUMBER(p ".timer", (at) + 12, XPH_ITEM_TIMER, 0.01, -1, 10, "item 0x1E f32"),                      \
      XPH_NUMBER(p ".damage", (at) + 13, XPH_ITEM_DAMAGE, 0.05, 0, 5, "item 0x1C u16"),                      \
      XPH_ID(p ".type", id, XPH_ITEM_TYPE, 255, "item 0x05 u16, + 1; 0 absent")

static const xph_melee_field item0_fields[] = {ITEM("item0", 208, 13)};
static const xph_melee_field item1_fields[] = {ITEM("item1", 222, 14)};
static const xph_melee_field item2_fields[] = {ITEM("item2", 236, 15)};
static const xph_melee_field item3_fields[] = {ITEM("item3", 250, 16)};
static const xph_melee_field item4_fields[] = {ITEM("item4", 264, 17)};

static const xph_melee_section sections[] = {
    XPH_SECTION(XPH_WHO_OWN, own_fields, 0),
    XPH_SECTION(XPH_WHO_OPPONENT, opponent_fields, 0),
    XPH_SECTION(XPH_WHO_OWN_NANA, own_nana_fields, 0),
    XPH_SECTION(XPH_WHO_OPPONENT_NANA, opponent_nana_fields, 0),
    XPH_SECTION(XPH_WHO_WORLD, world_fields, 0),
    XPH_SECTION(XPH_WHO_ITEM, item0_fields, 0),
    XPH_SECTION(XPH_WHO_ITEM + 1, item1_fields, 0),
    XPH_SECTION(XPH_WHO_ITEM + 2, item2_fields, 0),
    XPH_SECTION(XPH_WHO_ITEM + 3, item3_fields, 0),
    XPH_SECTION(XPH_WHO_ITEM + 4, item4_fields, 0),
};

/* Names and sizes of the id fields above, with the widths of their learned rows. */
static const exphil_id_spec ids[] = {
    {"own.state", 544, 32},
    {"own.age", 64, 16},
    {"own.character", 34, 8},
    {"own.last_attack", 64, 8},
    {"opponent.state", 544, 32},
    {"opponent.age", 64, 16},
    {"opponent.character", 34, 8},
    {"opponent.last_attack", 64, 8},
    {"own.nana.state", 544, 8},
    {"own.nana.age", 64, 8},
    {"opponent.nana.state", 544, 8},
    {"opponent.nana.age", 64, 8},
    {"stage", 128, 8},
    {"item0.type", 256, 8},
    {"item1.type", 256, 8},
    {"item2.type", 256, 8},
    {"item3.type", 256, 8},
    {"item4.type", 256, 8},
};

const xph_melee_layout xph_melee_layout_melee2 = {
    .name = "melee2",
    .sections = sections,
    .section_count = sizeof sections / sizeof sections[0],
    .float_count = 278,
    .id_count = sizeof ids / sizeof ids[0],
    .ids = ids,
};
