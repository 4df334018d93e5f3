/* slippi and slippi-nana: what the policies of slippi-ai see of a frame (slippi_ai/jax/embed.py, the embedding "simple"
 * without items), in its order, so that a policy trained there sees the same numbers here:
 *
 *     slippi        own 446, opponent 446, world 68
 *     slippi-nana   own 446, own Nana 447, opponent 446, opponent's Nana 447, world 68
 *
 * The previous controller is not in it: it comes in through past actions (the codecs slippi, slippi-fine), the name
 * of the player through a condition. A Nana that is not there is one of zeros, and so is a missing opponent. What
 * the other player's character does is masked as there: for 7 frames a roll out of a tech looks like a tech in
 * place, counted here by the age of the state. A character or stage that slippi-ai would refuse has no column. */
#include "melee/layout.h"

/* By external id: 1 + the number that the game itself has for a tournament stage (libmelee's enums.py Stage); all others
 * are 0. */
static const uint8_t stage[] = {[2] = 9, [3] = 19, [8] = 7, [28] = 27, [31] = 25, [32] = 26};
static const xph_melee_places stages = {.place = stage, .numbers = sizeof stage, .other = 1};
static const xph_melee_places states = {.other = 399};
static const xph_melee_places masked_states = {
    .other = 399, .rule = "199 in place of 200 and of 201 while the state's age is known and below 7"};

#define CHARACTER(p, at, state, places, said)                                                                \
  XPH_NUMBER(p ".percent", at, XPH_CHAR_PERCENT_WHOLE, 0.01, -10, 10,                                        \
             "post 0x16 f32, cut to a whole number"),                                                        \
      XPH_NUMBER(p ".facing", (at) + 1, XPH_CHAR_RIGHT, 1, -1, 1, "post 0x12 f32 > 0 ? 1 : -1"),             \
      XPH_NUMBER(p ".x", (at) + 2, XPH_CHAR_X, 0.05, -10, 10, "post 0x0A f32"),                              \
      XPH_NUMBER(p ".y", (at) + 3, XPH_CHAR_Y, 0.05, -10, 10, "post 0x0E f32"),                              \
      XPH_ONE_HOT(p ".action", (at) + 4, 399, state, places, said),                                          \
      XPH_ONE_HOT(p ".character", (at) + 403, 33, XPH_CHAR_CHARACTER, NULL, "post 0x07 u8"),                 \
      XPH_FLAG(p ".invulnerable", (at) + 436, XPH_CHAR_INVULNERABLE, "post 0x34 u8 != 0"),                   \
      XPH_ONE_HOT(p ".jumps", (at) + 437, 7, XPH_CHAR_JUMPS, NULL, "post 0x32 u8"),                          \
      XPH_NUMBER(p ".shield", (at) + 444, XPH_CHAR_SHIELD, 0.01, -10, 10, "post 0x1A f32"),                  \
      XPH_FLAG(p ".on_ground", (at) + 445, XPH_CHAR_GROUNDED, "post 0x2F u8 == 0, or not recorded")

#define AS_IT_IS "post 0x08 u16, at most 398"
#define OWN(at)  CHARACTER("own", at, XPH_CHAR_STATE, &states, AS_IT_IS)
#define OPPONENT(at)                                                                                         \
  CHARACTER("opponent", at, XPH_CHAR_STATE_MASKED, &masked_states, AS_IT_IS ", rolls from techs masked")
#define NANA(p, at)                                                                                          \
  CHARACTER(p, at, XPH_CHAR_STATE, &states, AS_IT_IS),                                                       \
      XPH_FLAG(p ".exists", (at) + 446, XPH_CHAR_PRESENT, "has pre and post event in this frame")

#define WORLD(at)                                                                                            \
  XPH_ONE_HOT("stage", at, 64, XPH_WORLD_STAGE, &stages,                                                     \
              "game start 0x13 u16: FoD 8, 18, 6, 26, 24, FD 25"),                                           \
      XPH_NUMBER("randall.x", (at) + 64, XPH_WORLD_CLOUD_X, 0.05, -10, 10, "frame index on Yoshi's Story"),  \
      XPH_NUMBER("randall.y", (at) + 65, XPH_WORLD_CLOUD_Y, 0.05, -10, 10, "frame index on Yoshi's Story"),  \
      XPH_NUMBER("platform.left", (at) + 66, XPH_WORLD_PLATFORM_LEFT, 0.05, -10, 10,                         \
                 "Fountain 0x3F f32, held"),                                                                 \
      XPH_NUMBER("platform.right", (at) + 67, XPH_WORLD_PLATFORM_RIGHT, 0.05, -10, 10,                       \
                 "Fountain 0x3F f32, held")

static const xph_melee_field own_fields[] = {OWN(0)};
static const xph_melee_field opponent_fields[] = {OPPONENT(446)};
static const xph_melee_field world_fields[] = {WORLD(892)};
static const xph_melee_section sections[] = {
    XPH_SECTION(XPH_WHO_OWN, own_fields, 1),
    XPH_SECTION(XPH_WHO_OPPONENT, opponent_fields, 1),
    XPH_SECTION(XPH_WHO_WORLD, world_fields, 1),
};

static const xph_melee_field own_nana_fields[] = {NANA("own.nana", 446)};
static const xph_melee_field opponent_beside_fields[] = {OPPONENT(893)};
static const xph_melee_field opponent_nana_fields[] = {NANA("opponent.nana", 1339)};
static const xph_melee_field world_beside_fields[] = {WORLD(1786)};
static const xph_melee_section nana_sections[] = {
    XPH_SECTION(XPH_WHO_OWN, own_fields, 1),
    XPH_SECTION(XPH_WHO_OWN_NANA, own_nana_fields, 1),
    XPH_SECTION(XPH_WHO_OPPONENT, opponent_beside_fields, 1),
    XPH_SECTION(XPH_WHO_OPPONENT_NANA, opponent_nana_fields, 1),
    XPH_SECTION(XPH_WHO_WORLD, world_beside_fields, 1),
};

const xph_melee_layout xph_melee_layout_slippi = {
    .name = "slippi",
    .sections = sections,
    .section_count = sizeof sections / sizeof sections[0],
    .float_count = 960,
};

const xph_melee_layout xph_melee_layout_slippi_nana = {
    .name = "slippi-nana",
    .sections = nana_sections,
    .section_count = sizeof nana_sections / sizeof nana_sections[0],
    .float_count = 1854,
};
