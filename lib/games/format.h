/* Private to lib/games: the file of a corpus of games, version 3, as doc/file-format.md describes it. All numbers
 * little-endian.
 *
 *   file header 64 | games | index: the entries of all games | trailer 64
 *   game: entry, start record, runs, hash | table of blocks, hash | blocks: header 40, stored bytes */
#ifndef XPH_GAMES_FORMAT_H
#define XPH_GAMES_FORMAT_H

#include "games/games.h"

#define XPH_GAMES_MAGIC         "exphilco" /* of corpora of rows, too */
#define XPH_GAMES_VERSION       3
#define XPH_GAMES_FACTS_VERSION 1
#define XPH_GAMES_TRAILER       "endgames"
#define XPH_GAMES_BLOCK         0x6B6C6267u /* "gblk" */
#define XPH_GAMES_RAW_MOST      ((size_t)1 << 20)
/* What a replay of the same content could have at most, in bytes of its events: bounds what a small file can
 * make of memory. */
#define XPH_GAMES_EVENTS_MOST   ((uint64_t)64 << 20)

/* Each header ends with the XXH64 of its bytes before that. */
typedef struct xph_games_header {
    char magic[8];
    uint32_t version;
    uint32_t type;        /* 0 */
    uint32_t entry_bytes; /* sizeof(xph_game_entry) */
    uint32_t start_bytes; /* sizeof(xph_game_start) */
    uint16_t frame_bytes; /* of one frame, character and item in the columns */
    uint16_t player_bytes;
    uint16_t item_bytes;
    uint16_t facts_version; /* how what happened was counted */
    uint64_t reserved[3];
    uint64_t hash;
} xph_games_header;

typedef struct xph_game_start_port {
    uint32_t dashback_fix, shield_drop_fix;
    float offence_ratio, defence_ratio, model_scale;
    uint16_t start_damage, respawn_damage;
    uint8_t team_shade, handicap, port, reserved;
} xph_game_start_port;

/* The rest of what a replay says of its start, and how many records each character has. */
typedef struct xph_game_start {
    float damage_ratio;
    uint32_t game_number, tiebreak_number;
    int32_t metadata_last_frame;
    uint32_t records[XPH_GAME_SLOTS];
    xph_game_start_port port[EXPHIL_SLP_PORTS];
} xph_game_start;

/* Of the table in front of a game's blocks. */
typedef struct xph_game_place {
    uint32_t end;    /* of the block, behind the first byte of the first one */
    uint32_t inputs; /* low half of the XXH64 of its inputs */
    uint64_t raw_hash;
} xph_game_place;

enum { XPH_CODEC_STORED = 0, XPH_CODEC_ZSTD = 1 };

typedef struct xph_game_block_header {
    uint32_t magic;
    uint32_t position; /* of its first frame in the game: a multiple of XPH_GAME_FRAMES */
    int32_t first_frame;
    uint16_t frames;
    uint8_t slots, codec;
    uint32_t items;
    uint32_t raw_bytes, stored_bytes;
    uint32_t hash; /* low half of the XXH64 of the 28 bytes before */
    uint64_t stored_hash;
} xph_game_block_header;

typedef struct xph_games_trailer {
    char magic[8];
    uint64_t games, frames;
    uint64_t reserved;
    uint64_t index; /* offset of the first entry */
    uint64_t index_hash;
    uint64_t content_hash; /* sum of xph_game_share of all games, whose order does not matter */
    uint64_t hash;
} xph_games_trailer;

_Static_assert(sizeof(xph_games_header) == 64 && sizeof(xph_games_trailer) == 64, "as in the file");
_Static_assert(sizeof(xph_game_entry) == 192 && sizeof(xph_game_port) == 20, "as in the file");
_Static_assert(sizeof(xph_game_start) == 160 && sizeof(xph_game_start_port) == 28, "as in the file");
_Static_assert(sizeof(xph_game_block_header) == 40 && sizeof(xph_game_place) == 16, "as in the file");
_Static_assert(sizeof(xph_game_run) == 16, "as in the file");

/* Blocks of a game of so many frames. */
static inline uint32_t xph_game_blocks(uint32_t frames)
{
    return (frames + XPH_GAME_FRAMES - 1) / XPH_GAME_FRAMES;
}
/* Bytes of a game in front of its blocks: of entry, start record, runs and their hash ... */
static inline uint64_t xph_game_head_bytes(const xph_game_entry *entry)
{
    return sizeof *entry + sizeof(xph_game_start) + (uint64_t)entry->runs * sizeof(xph_game_run) +
           sizeof(uint64_t);
}
/* ... and of the table and its hash. */
static inline uint64_t xph_game_table_bytes(const xph_game_entry *entry)
{
    return (uint64_t)xph_game_blocks(entry->frames) * sizeof(xph_game_place) + sizeof(uint64_t);
}
/* What a game is, whatever file it came in: settings, seed and frames. */
uint64_t xph_game_content(const xph_game_entry *entry, const xph_game_start *start,
                          const xph_game_place *places);
/* A game's part of the content hash of its corpus. */
static inline uint64_t xph_game_share(uint64_t content_hash)
{
    return xph_hash(&content_hash, sizeof content_hash);
}
/* Does a corpus keep a game with these counts? */
bool xph_game_fits(const xph_game_entry *entry);

/* ---- facts of a replay (facts.c) ------------------------------------------------------------------------ */

/* Everything of entry and start but offset, bytes, hashes and runs. */
void xph_game_describe(const exphil_slp *slp, const exphil_slp_info *info, xph_game_entry *entry,
                       xph_game_start *start);
/* The way back: what a replay with these two says. */
void xph_game_info(const xph_game_entry *entry, const xph_game_start *start, exphil_slp_info *info);
/* Low half of the XXH64 of all inputs in these frames. */
uint32_t xph_game_inputs(const exphil_slp *slp, int64_t first, int64_t frames);
/* xph_game_entry.digest[0] of a replay. */
uint32_t xph_game_first_inputs(const exphil_slp *slp, const exphil_slp_info *info);
/* Marks whole ports, and gives the runs of the others; *runs is NULL without any, else entry->runs of them in
 * context memory. */
exphil_status xph_game_runs(exphil_context *context, const exphil_slp *slp, xph_game_entry *entry,
                            xph_game_run **runs, exphil_error *error);

/* ---- one game (front.c) ----------------------------------------------------------------------------------- */

struct xph_game_front {
    exphil_context *context;
    xph_shared_file *file;
    int64_t game;        /* number in the corpus; -1: none yet */
    uint64_t at, blocks; /* bytes of the file where the game and its first block begin */
    size_t bytes;        /* of this struct and what lies behind it */
    exphil_slp_info info;
    xph_game_entry entry;
    xph_game_start start;
    xph_game_place *places;
    xph_game_run *runs;
};

/* The block that was read last, as it stands in its file. */
const uint8_t *xph_unpacker_stored(const xph_unpacker *unpacker, size_t *bytes);

/* ---- files (open.c) -------------------------------------------------------------------------------------- */

typedef struct xph_shard {
    xph_shared_file *file;
    int64_t first, games; /* number of its first game, how many */
    uint64_t index;       /* byte of its first entry */
    uint64_t *offsets;    /* of its games, where the index is missing or damaged; NULL: it is whole */
    int64_t capacity;     /* of offsets */
    const char *damage;   /* games from damaged_at on cannot be found; NULL: all are */
    uint64_t damaged_at;
    uint64_t content; /* sum of the games' shares, as the trailer has it or as they were found */
} xph_shard;

struct exphil_games {
    exphil_context *context;
    atomic_int references;
    xph_shard *shards;
    int64_t shard_count, shard_capacity;
    exphil_games_info info;
};

/* A file, or a folder that may be empty. */
exphil_status xph_games_open_any(exphil_context *context, const char *path, exphil_games **games,
                                 exphil_error *error);
/* EXPHIL_E_FORMAT: file, byte, what. */
exphil_status xph_games_damaged(const xph_shared_file *file, uint64_t offset, const char *what,
                                exphil_error *error);
/* The same of a game by its number in the corpus; -1: it has none yet. */
exphil_status xph_game_damaged(const xph_shared_file *file, int64_t game, uint64_t offset, const char *what,
                               exphil_error *error);
/* What can be checked of an entry alone; NULL, or what is wrong. */
const char *xph_game_entry_wrong(const xph_game_entry *entry);
/* The front of the game at this byte of a file; game: its number in the corpus, -1: none yet. */
exphil_status xph_game_front_at(xph_shared_file *file, int64_t game, uint64_t offset, xph_game_front **front,
                                exphil_error *error);
/* The shard that holds a game, and the game's first byte. */
exphil_status xph_games_find(const exphil_games *games, int64_t game, const xph_shard **shard,
                             uint64_t *offset, exphil_error *error);

/* What the index says of a game. */
exphil_status xph_games_entry(const exphil_games *games, int64_t game, xph_game_entry *entry,
                              exphil_error *error);

/* Name of what makes up a folder. */
#define XPH_GAMES_SUFFIX ".games"

#endif
