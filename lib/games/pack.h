/* Private to lib/games: a replay as it goes into a file (pack.c). */
#ifndef XPH_GAMES_PACK_H
#define XPH_GAMES_PACK_H

#include "games/format.h"

/* What the workers of a context pack with. level of zstd; 0: blocks are stored as they are. */
typedef struct xph_packers xph_packers;
exphil_status xph_packers_create(exphil_context *context, int32_t level, xph_packers **packers,
                                 exphil_error *error);
void xph_packers_free(xph_packers *packers);

typedef struct xph_packed {
    exphil_status status;
    xph_game_block_header header;
    uint64_t raw_hash;
    uint8_t *stored; /* header.stored_bytes of them */
    size_t capacity;
} xph_packed;

/* Everything of a game but where it lies and what file it came from. */
typedef struct xph_packed_game {
    exphil_context *context;
    xph_game_entry entry;
    xph_game_start start;
    xph_game_run *runs;
    xph_game_place *places;
    xph_packed *blocks; /* [count] */
    int64_t count;
} xph_packed_game;
/* By all workers of the context; which of them packs a block changes nothing. EXPHIL_E_UNSUPPORTED: no corpus keeps
 * such a replay. */
exphil_status xph_packed_game_make(xph_packers *packers, const exphil_slp *slp, xph_packed_game *game,
                                   exphil_error *error);
void xph_packed_game_free(xph_packed_game *game);

#endif
