/* Door of lib/melee, the first game that the library knows. Replays themselves are read through
 * exphil/slp.h. */
#ifndef XPH_MELEE_MELEE_H
#define XPH_MELEE_MELEE_H

#include "base/base.h"

#include <exphil/slp.h>

/* A layout or codec, found once by name so that hot calls do not compare strings; NULL for an unknown
 * name. */
typedef struct xph_melee_layout xph_melee_layout;
typedef struct xph_melee_codec xph_melee_codec;
const xph_melee_layout *xph_melee_layout_find(const char *name);
const xph_melee_codec *xph_melee_codec_find(const char *name);

/* Is field `index` a one-hot? *rule: how its number is made of what the source says, NULL: it is that. */
bool xph_melee_one_hot(const xph_melee_layout *layout, int64_t index, const char **rule);
/* The column of a one-hot that a number sets, -1: none. Numbers outside 0..XPH_MELEE_NUMBERS-1 have no column of their own:
 * what -1 gives is that of all others. */
enum { XPH_MELEE_NUMBERS = 544 };
int32_t xph_melee_one_hot_column(const xph_melee_layout *layout, int64_t index, int32_t number);

/* Hot: no allocation. On EXPHIL_E_NUMERIC / EXPHIL_E_INVALID *culprit is a static text, ready to be the
 * message: "own.x is not finite". Nothing else is written then. Pointers must not be NULL (ids may be where
 * the layout has none); frame is one of the library's own, a caller's was taken by its struct_size. */
exphil_status xph_melee_encode(const xph_melee_layout *layout, const exphil_melee_frame *frame, float *floats,
                               int32_t *ids, const char **culprit);
exphil_status xph_melee_pad_encode(const xph_melee_codec *codec, const exphil_pad *pad, int32_t *action,
                                   const char **culprit);
exphil_status xph_melee_pad_decode(const xph_melee_codec *codec, const int32_t *action, exphil_pad *pad,
                                   const char **culprit);

/* ---- left and right exchanged (mirror.c) --------------------------------------------------------------- */

/* The definition; in place. Twice is as before, but for a facing of -0, which comes back as 0. */
void xph_melee_mirror_frame(exphil_melee_frame *frame);
void xph_melee_mirror_pad(exphil_pad *pad);

enum { XPH_MELEE_STATES = 544 }; /* action states that some layout tells apart; no character has more */

typedef struct xph_melee_mirror_beside {
    uint16_t at, other; /* columns */
} xph_melee_mirror_beside;
typedef struct xph_melee_mirror_state {
    int32_t at, character, end; /* character -1: not needed; states from end on have no sides */
    int32_t is_id;              /* both are ids, else both are numbers */
} xph_melee_mirror_state;
/* What the mirror does to a row of one layout. Columns that are in no list stay as they are. */
typedef struct xph_melee_mirror {
    int32_t floats, ids;
    int32_t negates, facings, aheads, swaps, states;
    uint16_t negate[64]; /* more than any layout has */
    xph_melee_mirror_beside facing[4], ahead[1], swap[4];
    xph_melee_mirror_state state[4];
    uint8_t sided[XPH_MELEE_STATES]; /* by action state: some character's has a side */
} xph_melee_mirror;
/* EXPHIL_E_UNSUPPORTED names the layout or the codec that has no exact mirror. */
exphil_status xph_melee_mirror_make(const xph_melee_layout *layout, const xph_melee_codec *codec,
                                    xph_melee_mirror *mirror, exphil_error *error);
/* Rows and actions as the layout and codec made them, in place, on any thread: the bits that the mirrored frames and
 * controllers would have given. */
void xph_melee_mirror_rows(const xph_melee_mirror *mirror, float *floats, int32_t *ids, int64_t rows);
void xph_melee_mirror_actions(int32_t *actions, int64_t count);

/* Characters by external id: "fox", "mewtwo", ...; NULL and -1 when unknown. */
const char *xph_melee_character_name(int32_t external);
int32_t xph_melee_character_find(const char *name);
const char *xph_melee_stage_name(int32_t external); /* "battlefield" */
int32_t xph_melee_stage_find(const char *name);
/* For a message about an unknown name: "; there is fox, falco", those that begin with the same letter; all of them
 * would not fit. Empty: none does. */
void xph_melee_character_alike(const char *name, char *text, size_t bytes);
void xph_melee_stage_alike(const char *name, char *text, size_t bytes);

/* A whole replay file; limit_bytes 0: 64 MiB. EXPHIL_E_FORMAT when it is longer or does not begin as a replay
 * does, before there is memory for it. Messages have the path. */
exphil_status xph_slp_file_read(exphil_context *context, const char *path, size_t limit_bytes,
                                xph_file_data *data, exphil_error *error);

/* The first other player, of another team in team games; 0: nobody. Ports are 1..4 as in
 * exphil_melee_frame. */
int32_t xph_melee_opponent(const exphil_slp_info *info, int32_t own_port);
/* The rules of exphil_slp_result_get (slp_result.c), which fill reason, winner, winners and quitter; of each port
 * index its stocks and percent at the end are there, -1 and NaN for none. */
void xph_slp_judge(const exphil_slp_info *info, exphil_slp_result *result);
/* Frame table of a replay (lib/melee/game.c); opponent_port 0: xph_melee_opponent. position counts final
 * frames from 0; frames ascend but may have gaps. state fills what is known after the frame at this position:
 * it is the observation for the next one. false: own_port has no record there. live_state: the same for the
 * frame that a stream has ready; info is the stream's. */
bool xph_melee_game_state(const exphil_slp *slp, int64_t position, int32_t own_port, int32_t opponent_port,
                          exphil_melee_frame *frame);
bool xph_melee_live_state(const exphil_slp_stream *stream, const exphil_slp_info *info, int32_t own_port,
                          int32_t opponent_port, exphil_melee_frame *frame);
/* The controller of a port on the frame at this position (what a policy should have done): processed sticks
 * and trigger, physical buttons (slp.md section 8). false: no record. */
bool xph_melee_game_pad(const exphil_slp *slp, int64_t position, int32_t port, exphil_pad *pad);

/* Which recordings may be of one match (xph_slp_decode_match). */
uint32_t xph_slp_match_tag(const exphil_slp *slp);

/* ---- frames as columns (game_columns.c) ---------------------------------------------------------------- */

/* Most frames of a block; most items of one frame (recorders send at most 15). */
enum { XPH_GAME_FRAMES = 256, XPH_GAME_ITEMS = 64, XPH_GAME_SLOTS = 2 * EXPHIL_SLP_PORTS };

typedef struct xph_game_shape {
    int32_t frames, items; /* items of all frames together */
    int32_t first_frame;
    uint8_t slots; /* that occur, as in exphil_slp_frame */
} xph_game_shape;

/* A block in memory. Frames ascend. Frame t has the character of a slot only if its own slots say so; else its
 * record is another frame's. */
typedef struct xph_game_block {
    xph_game_shape shape;
    exphil_slp_frame *frame;                   /* [frames] */
    exphil_slp_player *player[XPH_GAME_SLOTS]; /* [frames] each; NULL: does not occur */
    exphil_slp_item *item;                     /* [items] */
    int32_t *base;                             /* [items], for packing and unpacking */
} xph_game_block;

/* The shape of frames [position, position + frames) of a replay. EXPHIL_E_UNSUPPORTED: too many items, or a
 * frame index twice. */
exphil_status xph_game_shape_of(const exphil_slp *slp, int64_t position, int32_t frames,
                                xph_game_shape *shape, exphil_error *error);
/* Bytes of one frame, one character and one item in the columns. */
void xph_game_widths(uint16_t *frame, uint16_t *player, uint16_t *item);
/* Bytes of its columns, less than 1 MiB, and of a block in memory. */
size_t xph_game_block_bytes(const xph_game_shape *shape);
size_t xph_game_memory_bytes(const xph_game_shape *shape);
/* Lays a block into memory of that size, aligned for pointers. */
void xph_game_block_place(const xph_game_shape *shape, void *memory, xph_game_block *block);
/* Columns of frames from `position` on into raw; the block is used as scratch. */
void xph_game_pack(const exphil_slp *slp, int64_t position, const xph_game_block *block, uint8_t *raw);
/* From columns that may be hostile: NULL, or what is wrong, as a static text. */
const char *xph_game_unpack(const uint8_t *raw, const xph_game_block *block);

/* As xph_melee_game_state and xph_melee_game_pad, of frame t of a block: only what the encoder looks at is filled in.
 * info is the game's. */
bool xph_melee_block_state(const exphil_slp_info *info, const xph_game_block *block, int32_t t,
                           int32_t own_port, int32_t opponent_port, exphil_melee_frame *frame);
bool xph_melee_block_pad(const xph_game_block *block, int32_t t, int32_t port, exphil_pad *pad);

/* A replay out of its blocks (slp_storage.c): begin with the counts of all, then each block in order, then end.
 * records: of each [2 * port + follower]. false: these blocks are not of such a replay; then destroy it. */
exphil_status xph_slp_assemble_begin(exphil_context *context, const exphil_slp_info *info, int64_t frames,
                                     int64_t items, const int64_t *records, exphil_slp **slp,
                                     exphil_error *error);
bool xph_slp_assemble(exphil_slp *slp, const xph_game_block *block);
bool xph_slp_assemble_end(exphil_slp *slp);

#endif
