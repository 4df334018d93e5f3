/* exphil288: the default vector of ExPhil (287 features and one zero), as its training path fills it from
 * replays, so that a policy trained there sees the same numbers here. Names say what a column really holds,
 * even where ExPhil's name differs: "hitstun" holds hitlag and "invulnerable" the reflector bits, because its
 * parser reads those. Columns that its parser or its defaults never fill (Nana, previous controller,
 * projectiles) are zero. The player name is always number 0, "unknown", which is a one in the first of its
 * 112 columns. A missing opponent is encoded as one at x = 0 with all else zero, again as ExPhil does. */
#include "melee/layout.h"

/* By external id: 1 + column. */
static const uint8_t stage[] = {[2] = 1, [3] = 2, [8] = 3, [28] = 4, [31] = 5, [32] = 6};
static const xph_melee_places stages = {.place = stage, .numbers = sizeof stage, .other = 7};

#define UNFILLED "0: ExPhil's replay parser never fills it"

#define PLAYER(p, at)                                                                                        \
  XPH_NUMBER(p ".percent", at, XPH_CHAR_PERCENT, 0.01, 0, 5, "post 0x16 f32"),                               \
      XPH_NUMBER(p ".facing", (at) + 1, XPH_CHAR_SIDE, 1, -1, 1, "post 0x12 f32 < 0 ? -1 : 1"),              \
      XPH_NUMBER(p ".x", (at) + 2, XPH_CHAR_X, 0.05, -10, 10, "post 0x0A f32"),                              \
      XPH_NUMBER(p ".y", (at) + 3, XPH_CHAR_Y, 0.05, -10, 10, "post 0x0E f32"),                              \
      XPH_FLAG(p ".invulnerable", (at) + 4, XPH_CHAR_REFLECTING, "post 0x26 u8 bits 04 and 10 (reflect)"),   \
      XPH_NUMBER(p ".jumps", (at) + 5, XPH_CHAR_JUMPS, 1.0 / 6, 0, 1, "post 0x32 u8"),                       \
      XPH_NUMBER(p ".shield", (at) + 6, XPH_CHAR_SHIELD, 0.01, 0, 1, "post 0x1A f32"),                       \
      XPH_FLAG(p ".on_ground", (at) + 7, XPH_CHAR_GROUNDED, "post 0x2F u8 == 0, or not recorded"),           \
      XPH_NUMBER(p ".speed_air_x", (at) + 8, XPH_CHAR_AIR_X, 0.5, -10, 10, "post 0x35 f32"),                 \
      XPH_NUMBER(p ".speed_ground_x", (at) + 9, XPH_CHAR_GROUND_X, 0.5, -10, 10, "post 0x45 f32"),           \
      XPH_NUMBER(p ".speed_y", (at) + 10, XPH_CHAR_SPEED_Y, 0.5, -10, 10, "post 0x39 f32"),                  \
      XPH_NUMBER(p ".speed_attack_x", (at) + 11, XPH_CHAR_ATTACK_X, 0.5, -10, 10, "post 0x3D f32"),          \
      XPH_NUMBER(p ".speed_attack_y", (at) + 12, XPH_CHAR_ATTACK_Y, 0.5, -10, 10, "post 0x41 f32"),          \
      XPH_NUMBER(p ".hitstun", (at) + 13, XPH_CHAR_HITLAG, 1.0 / 120, 0, 1, "post 0x49 f32 (hitlag)"),       \
      XPH_NUMBER(p ".action_frame", (at) + 14, XPH_CHAR_AGE_ROUNDED, 1.0 / 60, 0, 2,                         \
                 "post 0x22 f32, rounded, >= 0"),                                                            \
      XPH_NUMBER(p ".stock", (at) + 15, XPH_CHAR_STOCKS, 0.25, 0, 1, "post 0x21 u8"),                        \
      XPH_NUMBER(p ".ledge_distance", (at) + 16, XPH_CHAR_EDGE_85, 1.0 / 85, -10, 10,                        \
                 "85 - |x|, on any stage"),                                                                  \
      XPH_ZERO(p ".nana", (at) + 17, 39, UNFILLED)

static const xph_melee_field own_fields[] = {
    PLAYER("own", 0),
    XPH_NUMBER("own.action", 283, XPH_CHAR_STATE, 1, 0, 398, "post 0x08 u16, as a plain number"),
    XPH_NUMBER("own.character", 285, XPH_CHAR_CHARACTER, 1, 0, 32, "post 0x07 u8, as a plain number"),
};

static const xph_melee_field opponent_fields[] = {
    PLAYER("opponent", 56),
    XPH_NUMBER("opponent.action", 284, XPH_CHAR_STATE, 1, 0, 398, "post 0x08 u16, as a plain number"),
    XPH_NUMBER("opponent.character", 286, XPH_CHAR_CHARACTER, 1, 0, 32, "post 0x07 u8, as a plain number"),
};

static const xph_melee_field world_fields[] = {
    XPH_ONE_HOT("stage", 112, 7, XPH_WORLD_STAGE, &stages, "game start 0x13 u16: 2, 3, 8, 28, 31, 32, other"),
    XPH_ZERO("previous_controller", 119, 13, "0: off by default in ExPhil"),
    XPH_ONE_HOT("name", 132, 112, XPH_WORLD_ZERO, NULL, "player name 0 (unknown)"),
    XPH_NUMBER("distance", 244, XPH_WORLD_DISTANCE, 1.0 / 200, 0, 1.5, "sqrt(dx * dx + dy * dy)"),
    XPH_NUMBER("dx", 245, XPH_WORLD_DX, 1.0 / 200, -10, 10, "opponent x - own x"),
    XPH_NUMBER("dy", 246, XPH_WORLD_DY, 1.0 / 100, -10, 10, "opponent y - own y"),
    XPH_NUMBER("frame", 247, XPH_WORLD_FRAME, 1.0 / 28800, 0, 1, "frame index"),
    XPH_ZERO("projectiles", 248, 35, UNFILLED),
    XPH_ZERO("pad", 287, 1, "0: makes the width a multiple of 8"),
};

static const xph_melee_section sections[] = {
    XPH_SECTION(XPH_WHO_OWN, own_fields, 1),
    XPH_SECTION(XPH_WHO_OPPONENT, opponent_fields, 1),
    XPH_SECTION(XPH_WHO_WORLD, world_fields, 1),
};

const xph_melee_layout xph_melee_layout_exphil288 = {
    .name = "exphil288",
    .sections = sections,
    .section_count = sizeof sections / sizeof sections[0],
    .float_count = 288,
    .id_count = 0,
    .ids = NULL,
};
