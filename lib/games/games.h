/* Door of lib/games: corpora of games (exphil/games.h) for whoever makes rows of them. Stands on lib/melee and
 * lib/file. Everything here is for any thread, but an unpacker for one at a time. */
#ifndef XPH_GAMES_GAMES_H
#define XPH_GAMES_GAMES_H

#include "file/file.h"
#include "melee/melee.h"

#include <exphil/games.h>

/* ---- what the index says of a game ---------------------------------------------------------------------- */

enum {
    XPH_GAME_FINITE = 1,    /* every number that a layout may read is finite */
    XPH_GAME_ENDED = 2,     /* has a game end event */
    XPH_GAME_CUT = 4,       /* the replay ends too early */
    XPH_GAME_GAPS = 8,      /* frames are missing */
    XPH_GAME_PROBLEMS = 16, /* times the irregularities of the replay, XPH_GAME_PROBLEMS_MOST or more */
    XPH_GAME_PROBLEMS_MOST = 15
};

typedef struct xph_game_port {
    uint8_t character, type, stocks, costume, team, flags, cpu_level;
    uint8_t whole; /* 1: one run (xph_game_run), from position 1 to the last */
    uint8_t end_stocks, stocks_taken, self_destructs;
    int8_t placement;
    uint16_t damage_dealt, damage_taken; /* whole percent */
    uint32_t input_frames;
} xph_game_port;

/* What filters, splits and opening need of a game; as it stands in the file, little-endian. */
typedef struct xph_game_entry {
    uint64_t offset;
    uint64_t content_hash; /* XXH64 of the start record, the seed and the raw hashes of the blocks */
    uint64_t source_hash;  /* XXH64 of the replay's bytes */
    uint32_t bytes;        /* of the game in the file */
    uint32_t frames;
    int32_t first_frame, last_frame;
    int32_t certain_end; /* no rollback can have changed frames up to this one */
    uint32_t seed;
    uint32_t tag;    /* 24 bits of the hash of match id, game and tiebreak; 0: none */
    uint32_t fields; /* EXPHIL_SLP_HAS_* */
    uint32_t
        digest[3]; /* of all inputs in 512, 2048, 8192 frames from -39 on; 0: not all certain, or one lacks */
    uint32_t raw_most; /* raw bytes of the largest block */
    uint32_t records, items;
    uint32_t runs; /* of ports that are not whole, in the game */
    uint32_t timer_seconds;
    uint16_t stage;
    uint16_t day; /* since 1970-01-01; 0: unknown */
    uint8_t version[3], flags;
    uint8_t game_mode, teams, pal, frozen;
    uint8_t minor_scene, major_scene;
    int8_t item_spawn;
    uint8_t end_method;
    int8_t end_lras;
    uint8_t stop, played_on, language;
    uint8_t timer_kind, friendly_fire;
    int8_t self_destruct;
    uint8_t winner; /* port 1..4; 0: unknown */
    xph_game_port port[EXPHIL_SLP_PORTS];
} xph_game_entry;

static inline int32_t xph_game_problems(const xph_game_entry *entry)
{
    return entry->flags / XPH_GAME_PROBLEMS;
}

/* Consecutive frames in which a port's leader has a record, and had one in the frame before, whose number is one
 * less: each makes a row. */
typedef struct xph_game_run {
    uint32_t port; /* 1..4 */
    int32_t frame; /* number of its first one */
    uint32_t position, frames;
} xph_game_run;

/* Does a corpus of games, or a folder, lie there? */
exphil_status xph_games_at(exphil_context *context, const char *path, bool *games, exphil_error *error);
exphil_games *xph_games_retain(const exphil_games *games);
void xph_games_release(exphil_games *games);
exphil_context *xph_games_context(const exphil_games *games);
const char *xph_games_file(const exphil_games *games, int64_t game); /* its name; NULL: no such game */
/* Calls fn for the entries in order until one returns a status below 0. */
typedef exphil_status (*xph_games_fn)(void *arg, int64_t game, const xph_game_entry *entry,
                                      exphil_error *error);
exphil_status xph_games_each(const exphil_games *games, xph_games_fn fn, void *arg, exphil_error *error);

/* ---- who is taken (select.c, duplicates.c) ---------------------------------------------------------------- */

/* A selection with its lists understood. EXPHIL_E_INVALID names the field. */
typedef struct xph_selector xph_selector;
exphil_status xph_selector_create(exphil_context *context, const exphil_selection *selection,
                                  xph_selector **selector, exphil_error *error);
void xph_selector_free(xph_selector *selector);
/* The selection with its defaults; its texts are gone. */
const exphil_selection *xph_selector_of(const xph_selector *selector);
/* EXPHIL_REFUSED_..., or -1: the player on this port, 1..4, is taken, and *opponent is who it plays against (0: nobody).
 * Duplicates and rows are not looked at. The port must be one that plays. */
int32_t xph_selector_refuses(const xph_selector *selector, const xph_game_entry *entry, int32_t port,
                             int32_t *opponent);
static inline bool xph_game_plays(const xph_game_entry *entry, int32_t port)
{
    return entry->port[port - 1].type < 3;
}
/* Ended, not cut, without a gap. */
static inline bool xph_game_complete(const xph_game_entry *entry)
{
    return (entry->flags & (XPH_GAME_ENDED | XPH_GAME_CUT | XPH_GAME_GAPS)) == XPH_GAME_ENDED;
}

/* Recordings of one match are equal in one of these, none of them by chance alone: numbers that never change. A dataset
 * has them of each episode, so that a split keeps the games together wherever they came from. */
typedef struct xph_game_keys {
    uint64_t
        start; /* of seed, stage, mode, and who plays; without a seed of the first inputs as well; never 0 */
    uint64_t match; /* of match tag, stage and characters; 0: no tag */
} xph_game_keys;
xph_game_keys xph_game_keys_of(const xph_game_entry *entry);
xph_game_keys xph_slp_keys(const exphil_slp *slp, const exphil_slp_info *info, uint64_t source_hash);

/* Which games of a corpus are recordings of one match, by its index alone. Of a match one recording is kept among those
 * of which the selector, which may be NULL, takes a player: duplicates are the others. Logs the largest group. */
typedef struct xph_game_groups xph_game_groups;
exphil_status xph_game_groups_make(const exphil_games *games, const xph_selector *selector,
                                   xph_game_groups **groups, exphil_error *error);
void xph_game_groups_free(xph_game_groups *groups);
/* Equal for all games of the corpus that may be recordings of one match: the least of their keys `start`, of a game alone its
 * own. */
uint64_t xph_game_group(const xph_game_groups *groups, int64_t game);
/* Left out: it has the content of a game that is kept, or, where the selection does not take all recordings, it is
 * certainly one of a match of which another one is kept. */
bool xph_game_is_duplicate(const xph_game_groups *groups, int64_t game);

/* ---- one game ------------------------------------------------------------------------------------------- */

/* A game without its blocks: what its front says, checked. */
typedef struct xph_game_front xph_game_front;
exphil_status xph_game_front_read(const exphil_games *games, int64_t game, xph_game_front **front,
                                  exphil_error *error);
void xph_game_front_free(xph_game_front *front);
const xph_game_entry *xph_game_front_entry(const xph_game_front *front);
const exphil_slp_info *xph_game_front_info(const xph_game_front *front);
/* Runs of a port that is not whole. */
const xph_game_run *xph_game_front_runs(const xph_game_front *front, int64_t *count);

/* Memory that a thread decodes with. */
typedef struct xph_unpacker xph_unpacker;
exphil_status xph_unpacker_create(exphil_context *context, xph_unpacker **unpacker, exphil_error *error);
void xph_unpacker_free(xph_unpacker *unpacker);
size_t xph_unpacker_bytes(void);
/* Bytes that any block of this game needs in memory. */
size_t xph_game_front_block_bytes(const xph_game_front *front);
/* Reads, checks and decodes block k, of frames [256k, 256k + 256), into memory of that many bytes, aligned for
 * pointers. EXPHIL_E_FORMAT with the byte. */
exphil_status xph_game_front_block(const xph_game_front *front, int64_t k, xph_unpacker *unpacker,
                                   void *memory, xph_game_block *block, exphil_error *error);

#endif
