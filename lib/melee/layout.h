/* Observation layouts of Melee as declared tables. A layout is a list of sections (one character, the
 * world, one item); a section is a list of fields; a field says which gathered number goes where and how
 * it is scaled. One function walks the tables (encode.c), and the layout hash covers every property of
 * every field. */
#ifndef XPH_MELEE_LAYOUT_H
#define XPH_MELEE_LAYOUT_H

#include "melee/melee.h"

enum { XPH_MELEE_FLOATS_MOST = 2048 }; /* no layout is wider; rows are built in a local array of this size */
enum { XPH_MELEE_ITEMS = 5 };          /* item slots of melee2 */

/* How a gathered number becomes columns. */
enum {
    XPH_FIELD_NUMBER,  /* clamp(value * scale, low, high); must be finite */
    XPH_FIELD_FLAG,    /* 1 when the value is not 0 */
    XPH_FIELD_ONE_HOT, /* one of count columns, as its places say (xph_melee_place) */
    XPH_FIELD_ID,      /* ids[offset] = clamp(value, 0, high) */
    XPH_FIELD_ZERO     /* always 0 */
};

/* Which column of a one-hot a number sets. */
typedef struct xph_melee_places {
    const uint8_t *place; /* by number: 1 + column, 0: none. NULL: each number below count has its own */
    int32_t numbers;      /* that place has */
    int32_t other;        /* 1 + the column of all numbers that have none; 0: they set none */
    const char *rule;     /* how the number is made of what the source says; NULL: it is that */
} xph_melee_places;

typedef struct xph_melee_field {
    const char *name;    /* "own.percent" */
    const char *trouble; /* what to say when the value is not finite; NUMBER only */
    const char *source;  /* where it comes from: event, offset and type in a replay, or a formula */
    uint16_t offset, count;
    uint8_t kind;
    uint8_t from; /* XPH_CHAR_..., XPH_WORLD_... or XPH_ITEM_..., as the section goes */
    double scale, low, high;
    const xph_melee_places *places; /* ONE_HOT only; NULL: each number below count has its own column */
} xph_melee_field;

/* The column of a one-hot that this number sets; -1: none. */
int32_t xph_melee_place(const xph_melee_field *field, double number);

/* What a section is about. */
enum {
    XPH_WHO_OWN,
    XPH_WHO_OPPONENT,
    XPH_WHO_OWN_NANA,
    XPH_WHO_OPPONENT_NANA,
    XPH_WHO_WORLD,
    XPH_WHO_ITEM /* + slot */
};

typedef struct xph_melee_section {
    const xph_melee_field *fields;
    uint16_t count;
    uint8_t who;
    uint8_t fill_absent; /* 1: an absent character is encoded like one of zeros; 0: its columns are all 0 */
} xph_melee_section;

struct xph_melee_layout {
    const char *name;
    const xph_melee_section *sections;
    int32_t section_count;
    int32_t float_count, id_count;
    const exphil_id_spec *ids;
};

extern const xph_melee_layout xph_melee_layout_melee2, xph_melee_layout_exphil288;
extern const xph_melee_layout xph_melee_layout_slippi, xph_melee_layout_slippi_nana;

/* Hash over every property of every field; differs for any two layouts that could mean something else. */
uint64_t xph_melee_layout_hash(const xph_melee_layout *layout);

/* ---- what is gathered about a character (gather.c) ----------------------------------------------------- */

enum {
    XPH_CHAR_PRESENT,
    XPH_CHAR_PERCENT,
    XPH_CHAR_FACING,
    XPH_CHAR_SIDE, /* -1 when facing < 0, else 1 */
    XPH_CHAR_X,
    XPH_CHAR_Y,
    XPH_CHAR_AIR_X,
    XPH_CHAR_GROUND_X,
    XPH_CHAR_SPEED_Y,
    XPH_CHAR_ATTACK_X,
    XPH_CHAR_ATTACK_Y,
    XPH_CHAR_SHIELD,
    XPH_CHAR_JUMPS,
    XPH_CHAR_AIRBORNE,
    XPH_CHAR_GROUNDED,
    XPH_CHAR_STOCKS,
    XPH_CHAR_AGE,
    XPH_CHAR_AGE_ROUNDED,
    XPH_CHAR_HITSTUN,
    XPH_CHAR_IN_HITSTUN,
    XPH_CHAR_HITLAG,
    XPH_CHAR_HURTBOX, /* -1 unknown */
    XPH_CHAR_LCANCEL, /* -1 unknown */
    XPH_CHAR_COMBO,
    XPH_CHAR_EDGE,       /* distance to the nearer edge, negative beyond it; 0 where no edge is known */
    XPH_CHAR_EDGE_AHEAD, /* distance to the edge it faces */
    XPH_CHAR_EDGE_85,    /* 85 - |x| on any stage */
    XPH_CHAR_REFLECTING, /* flags 1 & 0x14 */
    XPH_CHAR_HAS_AGE,    /* these five in the order of EXPHIL_MELEE_HAS_* */
    XPH_CHAR_HAS_FLAGS,
    XPH_CHAR_HAS_HURTBOX,
    XPH_CHAR_HAS_SPEED,
    XPH_CHAR_HAS_HITLAG,
    XPH_CHAR_STATE,
    XPH_CHAR_AGE_ID, /* 2 + whole frames, at least 0; 0 unknown */
    XPH_CHAR_CHARACTER,
    XPH_CHAR_LAST_ATTACK,
    XPH_CHAR_PERCENT_WHOLE, /* cut to a whole number, 0..65535 */
    XPH_CHAR_RIGHT,         /* 1 when facing > 0, else -1 */
    XPH_CHAR_STATE_MASKED, /* the action state, but a roll out of a tech is a tech in place in its first frames */
    XPH_CHAR_INVULNERABLE, /* hurtbox is known and not open */
    XPH_CHAR_BIT,          /* and the 15 after it: state bits in the order of gather.c */
    XPH_CHAR_COUNT = XPH_CHAR_BIT + 15
};

enum {
    XPH_WORLD_DX, /* opponent minus own; all four 0 without opponent */
    XPH_WORLD_DY,
    XPH_WORLD_DISTANCE,
    XPH_WORLD_AHEAD, /* dx times the own side: positive when the opponent is in front */
    XPH_WORLD_FRAME,
    XPH_WORLD_PLAYABLE,
    XPH_WORLD_STAGE, /* external id; 65535 for a negative one */
    XPH_WORLD_EDGE,
    XPH_WORLD_PLATFORM_LEFT,
    XPH_WORLD_PLATFORM_RIGHT,
    XPH_WORLD_WIND,          /* as the event has it; -1 on other stages */
    XPH_WORLD_STADIUM_KIND,  /* likewise */
    XPH_WORLD_STADIUM_EVENT, /* likewise */
    XPH_WORLD_CLOUD,
    XPH_WORLD_CLOUD_X, /* middle of the cloud of Yoshi's Story (Randall), 0 elsewhere */
    XPH_WORLD_CLOUD_Y,
    XPH_WORLD_ITEM_COUNT,
    XPH_WORLD_ZERO,
    XPH_WORLD_COUNT
};

enum {
    XPH_ITEM_PRESENT,
    XPH_ITEM_OWN,
    XPH_ITEM_OPPONENT,
    XPH_ITEM_NOBODY,
    XPH_ITEM_FACING,
    XPH_ITEM_X,
    XPH_ITEM_Y,
    XPH_ITEM_DX,
    XPH_ITEM_DY,
    XPH_ITEM_SPEED_X,
    XPH_ITEM_SPEED_Y,
    XPH_ITEM_STATE,
    XPH_ITEM_TIMER,
    XPH_ITEM_DAMAGE,
    XPH_ITEM_TYPE, /* 1 + type; 0 absent */
    XPH_ITEM_COUNT
};

enum { XPH_MELEE_VALUES = XPH_CHAR_COUNT }; /* the longest of the three lists */

/* A frame seen from one player. Absent characters and items are NULL. */
typedef struct xph_melee_scene {
    const exphil_melee_frame *frame;
    const exphil_melee_character *character[4]; /* by XPH_WHO_OWN .. XPH_WHO_OPPONENT_NANA */
    const exphil_melee_item *item[XPH_MELEE_ITEMS];
    int32_t opponent_port; /* 1..4, 0 none */
    double edge;           /* x of the right edge; 0 where none is known */
} xph_melee_scene;

exphil_status xph_melee_scene_make(const exphil_melee_frame *frame, xph_melee_scene *scene,
                                   const char **culprit);
/* Numbers of one section into value; false when its character or item is absent (value is then all zeros,
 * with the exception of XPH_CHAR_EDGE_85, which ExPhil computes from an x of 0, and of XPH_CHAR_RIGHT, which is
 * -1 where slippi-ai's "faces right" is false). */
bool xph_melee_gather(const xph_melee_scene *scene, int32_t who, double value[XPH_MELEE_VALUES]);

/* x of the right edge of a tournament stage, by external id; 0 for any other. */
double xph_melee_stage_edge(int32_t stage);

/* ---- words of the tables ------------------------------------------------------------------------------- */

#define XPH_NUMBER(name, at, from, scale, low, high, source)                                                 \
  {                                                                                                          \
    name, name " is not finite", source, at, 1, XPH_FIELD_NUMBER, from, scale, low, high, NULL               \
  }
#define XPH_FLAG(name, at, from, source)                                                                     \
  {                                                                                                          \
    name, NULL, source, at, 1, XPH_FIELD_FLAG, from, 0, 0, 1, NULL                                           \
  }
#define XPH_ONE_HOT(name, at, count, from, places, source)                                                   \
  {                                                                                                          \
    name, NULL, source, at, count, XPH_FIELD_ONE_HOT, from, 0, 0, 1, places                                  \
  }
#define XPH_ID(name, at, from, last, source)                                                                 \
  {                                                                                                          \
    name, NULL, source, at, 1, XPH_FIELD_ID, from, 1, 0, last, NULL                                          \
  }
#define XPH_ZERO(name, at, count, source)                                                                    \
  {                                                                                                          \
    name, NULL, source, at, count, XPH_FIELD_ZERO, 0, 0, 0, 0, NULL                                          \
  }
#define XPH_SECTION(who, fields, fill_absent)                                                                \
  {                                                                                                          \
    fields, sizeof(fields) / sizeof(fields)[0], who, fill_absent                                             \
  }

#endif
