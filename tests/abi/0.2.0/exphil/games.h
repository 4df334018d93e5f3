/*
 * libexphil - corpora of games: replays in large numbers, kept small.
 * SPDX-License-Identifier: MIT
 *
 * A corpus of games holds what replays record, bit for bit, in columns: about 25 bytes a frame of two players,
 * where a .slp takes 300 to 400. It does not depend on a layout or a codec. It is one file, or a folder of files
 * whose names end in ".games". doc/file-format.md describes them. The rules of exphil.h and slp.h apply, with
 * these additions:
 *   Kept      Of every frame: its number, who is there, stage values, items; of every character: what
 *             exphil_slp_player holds but pre_seed, pre_x, pre_y, pre_facing, pre_percent and pre_action_state.
 *             Of the game: settings, how it ended, and what each player did in it. seed, scene_counter,
 *             latest_final, instance and changed of frames and counts of what a reader skipped are not kept. Of
 *             irregularities their number is, up to 15 (exphil_slp_info.problem_count, less one for metadata that cannot
 *             be read), and not which (problems is 0). What is not kept is absent, as in a replay that does not
 *             record it.
 *   Privacy   No name, code, account or match id is kept. Of the match id 24 bits of a hash tell, together
 *             with stage and characters, which two files may be recordings of one match. Of the time the day.
 *   Limits    Frames ascend (EXPHIL_SLP_LAST); at most 64 items in a frame, where recorders send at most 15; what
 *             makes at most 64 MiB of events.
 */
#ifndef EXPHIL_GAMES_H
#define EXPHIL_GAMES_H

#include <exphil/slp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 what is known of corpora and games ------------------------------------------------------------- */

/* A corpus as a whole. */
typedef struct exphil_games_info {
    size_t struct_size;
    int64_t games;
    int64_t frames;    /* of all games together */
    uint64_t bytes;    /* of the files */
    uint64_t hash;     /* of the content of the games, whatever their order, files and compression */
    int32_t recovered; /* 1: the end of a file is missing, and the whole games before it are used; or it is
                        * damaged, and all games are */
    int32_t reserved;
} exphil_games_info;
/* clang-format off */
#define EXPHIL_GAMES_INFO_INIT { sizeof(exphil_games_info), 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* What one player did in a game, counted over the records of the port's leader in their order, of each with the record
 * before. A death is a record with fewer stocks; who caused it is last_hit_by of the record before, or the port itself if
 * that names no port. Damage is a rise of percent by less than 1000 with equal stocks; who dealt it is last_hit_by of
 * the record with more percent. It is added up in double and floored, at most 65535; deaths count to 255. In team games
 * team mates are others, too. */
typedef struct exphil_game_player { /* fixed layout, never extended */
    int32_t damage_dealt;           /* percent that other ports took from this one */
    int32_t damage_taken;           /* percent that this port took, whoever dealt it */
    int32_t stocks_taken;           /* deaths of other ports that this one caused */
    int32_t self_destructs;         /* deaths that no other port caused */
    int32_t end_stocks;             /* of the last record; 0: there is none */
    int32_t input_frames;           /* records with a physical button, or a stick or trigger away from 0 */
} exphil_game_player;

/* What the index says of a game. The winner is not known without a game end event, after "unresolved" (0) and "no
 * contest" (7), and where a player quit; else it is the port whose placement is 0, or, where placements are not
 * recorded, who of two players has more stocks at the end in no team game. */
typedef struct exphil_game_info {
    size_t struct_size;
    uint64_t content_hash; /* equal for equal games: seed, settings, frames */
    uint64_t source_hash;  /* XXH64 of the replay's bytes, as exphil_episode_info.game */
    int32_t match_tag;     /* 24 bits of the hash of match id, game number and tiebreak; 0: not recorded */
    int32_t day;           /* of the recording, since 1970-01-01; 0: not recorded */
    int32_t winner;        /* port 1..4; 0: not known (below) */
    int32_t certain_end; /* frames up to this one cannot have been changed by a rollback: the latest that the
                            * recorder calls final, or 16 before the last */
    int32_t finite;      /* 1: every number that a layout may read is finite */
    int32_t reserved;
    exphil_game_player player[EXPHIL_SLP_PORTS]; /* by port index, 0..3 */
} exphil_game_info;
/* clang-format off */
#define EXPHIL_GAME_PLAYER_ZERO { 0, 0, 0, 0, 0, 0 }
#define EXPHIL_GAME_INFO_INIT \
    { sizeof(exphil_game_info), 0, 0, 0, 0, 0, 0, 0, 0, { EXPHIL_GAME_PLAYER_ZERO, EXPHIL_GAME_PLAYER_ZERO, \
      EXPHIL_GAME_PLAYER_ZERO, EXPHIL_GAME_PLAYER_ZERO } }
/* clang-format on */

/* ---- 2 writing ---------------------------------------------------------------------------------------- */

/* Writes a corpus; one thread at a time. Blocks are packed by all workers of the context. */
typedef struct exphil_games_writer exphil_games_writer;

/* How a corpus is written. */
typedef struct exphil_games_config {
    size_t struct_size;
    int64_t
        shard_bytes; /* in a folder: a file with so many bytes or 8,192 games is ended when the next game comes;
                      * 0 = 1 GiB */
    int32_t level;   /* of zstd, 1..19; 0 = 3 */
    int32_t stored; /* 1: blocks are not compressed: needs no libzstd, takes ten times the bytes */
} exphil_games_config;
/* clang-format off */
#define EXPHIL_GAMES_CONFIG_INIT { sizeof(exphil_games_config), 0, 0, 0 }
/* clang-format on */

/* What became of a replay that was added. */
typedef struct exphil_games_added {
    size_t struct_size;
    uint64_t content_hash; /* as in exphil_game_info; 0: the file was known, and was not read again */
    uint64_t source_hash;
    int64_t frames;
    int32_t duplicate; /* 1: its content is there already, and was not added again */
    int32_t truncated; /* 1: the replay ends early; the frames before its end were added */
} exphil_games_added;
/* clang-format off */
#define EXPHIL_GAMES_ADDED_INIT { sizeof(exphil_games_added), 0, 0, 0, 0, 0 }
/* clang-format on */

/* Begins a corpus. path is a file, which is written beside it and replaced by exphil_games_finish; or a folder that
 * exists: games are added to what it holds in new files, each whole when it gets its name, which is made of
 * its content; no file that is there changes, and what the folder holds already is not added again. One writer
 * at a time, from here to exphil_games_finish: EXPHIL_E_BUSY. config may be NULL. Blocks are compressed by
 * the system's libzstd (libzstd.so.1, libzstd.1.dylib, libzstd.dll), with memory of the C library;
 * EXPHIL_E_UNSUPPORTED: there is none. A library that was built with an encoder of its own, as that of Python's
 * wheels, needs none. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_games_create(exphil_context *context, const char *path,
                                                              const exphil_games_config *config,
                                                              exphil_games_writer **writer,
                                                              exphil_error *error);
/* Adds a replay file; added may be NULL. On failure nothing was added, and the writer goes on; unless a file of the
 * corpus cannot be written, EXPHIL_E_IO that names it: then what it held is gone, and the rest is EXPHIL_E_STATE.
 * Files of a folder that were ended before stay, and another writer, which knows their games, adds what is
 * missing. EXPHIL_E_UNSUPPORTED: a replay without frames, or more than a corpus keeps. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_games_add(exphil_games_writer *writer, const char *path,
                                                           exphil_games_added *added, exphil_error *error);
/* The same from memory; data is not needed after the call. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_games_add_memory(exphil_games_writer *writer,
                                                                  const void *data, size_t size_bytes,
                                                                  exphil_games_added *added,
                                                                  exphil_error *error);
/* An open corpus. */
typedef struct exphil_games exphil_games;
/* Adds a game of another corpus, its compressed blocks as they are, after a check: merges and selects. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_games_copy(exphil_games_writer *writer,
                                                            const exphil_games *from, int64_t index,
                                                            exphil_games_added *added, exphil_error *error);
/* Ends the last file: index, sync, rename. info, which may be NULL, gets what this writer wrote. The writer can only
 * be destroyed then. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_games_finish(exphil_games_writer *writer,
                                                              exphil_games_info *info, exphil_error *error);
/* Without exphil_games_finish before: nothing was written of what was not whole yet. */
EXPHIL_API void exphil_games_writer_destroy(exphil_games_writer *writer);

/* ---- 3 reading ---------------------------------------------------------------------------------------- */

/* Opens a corpus: a file, or a folder, of which the files whose names end in ".games" count. An exphil_games never
 * changes: shared freely. Its files stay open. Only the index is read, and checked: 192 bytes a game. A file
 * whose end (index and trailer) is missing or damaged is read from game to game instead, with a line in the log:
 * exphil_games_info.recovered. EXPHIL_E_FORMAT with the byte offset; EXPHIL_E_UNSUPPORTED: a corpus of rows, or of a
 * later library. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_games_open(exphil_context *context, const char *path,
                                                            exphil_games **games, exphil_error *error);
EXPHIL_API void exphil_games_destroy(exphil_games *games);
/* Counts and hash of a corpus, from any thread. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_games_query(const exphil_games *games,
                                                             exphil_games_info *info, exphil_error *error);
/* One game, 0 <= index < games, in the order of the files' names and in each file's order. settings gets what
 * exphil_slp_query gives of exphil_games_read. Both may be NULL. Reads about 1 KB. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_games_game(const exphil_games *games, int64_t index,
                                                            exphil_game_info *info, exphil_slp_info *settings,
                                                            exphil_error *error);
/* A game as a replay, for the functions of slp.h; the caller destroys it. Every block is checked. EXPHIL_E_FORMAT names
 * the game's number and the byte of its file. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_games_read(const exphil_games *games, int64_t index,
                                                            exphil_slp **slp, exphil_error *error);
/* Reads and checks everything, by all workers of the context, and counts again what each player did. Every damaged game
 * is a line of the log, EXPHIL_LOG_ERROR, with its number and the byte of its file; the first of them is the error,
 * EXPHIL_E_FORMAT, or EXPHIL_E_IO if the file could not be read there. The other games are whole then. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_games_verify(const exphil_games *games, exphil_error *error);

/* ---- 4 training data ---------------------------------------------------------------------------------- */

/* Who won, of whom rows are made (exphil_selection.result). */
enum { EXPHIL_RESULT_ANY = 0, EXPHIL_RESULT_WON = 1, EXPHIL_RESULT_LOST = 2 };
/* exphil_selection.teams and .items. */
enum { EXPHIL_WITH_OR_WITHOUT = 0, EXPHIL_WITHOUT = 1, EXPHIL_WITH = 2 };

/* Which players of which games are imitated. All of 0 takes every human player, of recordings of one match from one.
 * Filters are tried in the order of these fields, those of the game first, then of the player at hand (that it is human
 * first of all), then of its opponent (opponent_port before opponents), then duplicates, then rows; the first that
 * fails is counted (exphil_selection_report). Where a filter is set and the game does not tell, it is refused as
 * EXPHIL_REFUSED_UNKNOWN: the day, and who won. Lists are names of exphil_melee_character_name or _stage_name, without
 * regard to case and signs, or numbers, with spaces or commas between them; NULL: any. Characters are those that the
 * game starts with. EXPHIL_E_INVALID names the field: out of its range, two that nothing fulfils, a list with an
 * unknown name or none.
 *   Duplicates  Games that may be recordings of one match are equal in content; or in seed, stage, mode and each port's
 *               kind, character, costume and team, where a seed of 0 counts as none and the inputs of the first 512
 *               frames from -39 on stand for it; or in match tag, stage and characters. They are one match for certain if
 *               content is equal; if seed and match tag both are; or if the inputs of all ports are, in 512, 2,048 or 8,192
 *               frames from -39 on, the most that are certain in both (exphil_game_info.certain_end), and both end at
 *               about the same time, unless one is not complete: their last frames plus 1,000,000, divided by 64, are 1
 *               apart at most. Of the recordings of which a player is taken one is kept: complete before not, then the
 *               one with more frames, then with fewer irregularities, then with the lower content hash, then with the
 *               lower source hash. Games of equal content are never taken twice. */
typedef struct exphil_selection {
    size_t struct_size;
    /* the game */
    const char *stages;
    int64_t least_frames;  /* frames of the game, from its first: at least */
    int64_t most_frames;   /* at most; 0: no limit */
    int32_t first_day;     /* of the recording, since 1970-01-01: not before; 0: any */
    int32_t last_day;      /* not after; 0: any */
    int32_t least_version; /* of the recorder, 0x030E00 is 3.14.0: not before; 0: any */
    int32_t teams;         /* EXPHIL_WITH...: team games */
    int32_t items;         /* EXPHIL_WITH...: games in which items may appear (item_spawn is not off) */
    int32_t players;       /* ports that play: exactly; 0: any */
    int32_t complete; /* 1: only games with a game end event, that were not cut and lack no frame between */
    int32_t humans;   /* 1: only games in which every player is human, type 0 */
    /* the player that is imitated; it is always human, since of others no buttons are recorded */
    const char *characters;
    int32_t port;                 /* 1..4; 0: any */
    int32_t result;               /* EXPHIL_RESULT_...; in team games the winner's team has won */
    int32_t least_damage;         /* exphil_game_player.damage_dealt: at least */
    int32_t least_stocks;         /* .stocks_taken: at least */
    int32_t self_destructs_below; /* .self_destructs: less than this; 0: any */
    int32_t reserved;             /* must be 0 */
    double least_input;           /* .input_frames / frames of the game, in double: at least; 0..1 */
    /* its opponent */
    const char *opponents; /* its character; nobody, as in a target test, has none of them */
    int32_t opponent_port; /* 0: the first other player, of another team in team games */
    /* frames of the game that become rows */
    int32_t first_frame; /* default 0, where the clock starts */
    int32_t last_frame;  /* inclusive; 0: to the end of the game */
    int32_t duplicates;  /* 1: all recordings of a match are taken; 0: one (EXPHIL_REFUSED_DUPLICATE) */
} exphil_selection;
/* clang-format off */
#define EXPHIL_SELECTION_INIT \
    { sizeof(exphil_selection), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Why a player of a game was not taken. A game's reason counts once for each port that plays (type below 3). */
enum {
    EXPHIL_REFUSED_STAGE = 0,
    EXPHIL_REFUSED_SHORT = 1,
    EXPHIL_REFUSED_LONG = 2,
    EXPHIL_REFUSED_EARLY = 3, /* before first_day */
    EXPHIL_REFUSED_LATE = 4,
    EXPHIL_REFUSED_VERSION = 5,
    EXPHIL_REFUSED_TEAMS = 6,
    EXPHIL_REFUSED_ITEMS = 7,
    EXPHIL_REFUSED_PLAYERS = 8,
    EXPHIL_REFUSED_INCOMPLETE = 9,
    EXPHIL_REFUSED_COMPUTER_GAME = 10, /* a computer plays too */
    EXPHIL_REFUSED_COMPUTER = 11,      /* the player is no human */
    EXPHIL_REFUSED_CHARACTER = 12,
    EXPHIL_REFUSED_PORT = 13,
    EXPHIL_REFUSED_RESULT = 14,
    EXPHIL_REFUSED_DAMAGE = 15,
    EXPHIL_REFUSED_STOCKS = 16,
    EXPHIL_REFUSED_SELF_DESTRUCTS = 17,
    EXPHIL_REFUSED_INPUT = 18,
    EXPHIL_REFUSED_OPPONENT = 19,      /* its character */
    EXPHIL_REFUSED_OPPONENT_PORT = 20, /* nobody plays there, or it is the player's own */
    EXPHIL_REFUSED_EMPTY = 21,         /* no frame becomes a row */
    EXPHIL_REFUSED_DUPLICATE = 22,     /* another recording of the match, or of the content, is taken */
    EXPHIL_REFUSED_UNKNOWN = 23        /* a filter asks what the game does not tell */
};
enum { EXPHIL_REFUSED_REASONS = 24 }; /* so many */
/* "stage", "too short", ...: what a table of reasons says; NULL for another number. Static storage. */
EXPHIL_API const char *exphil_refused_name(int32_t reason);

/* What a selection took and what it refused, in players of games: taken and refused together are players. */
typedef struct exphil_selection_report {
    size_t struct_size;
    int64_t games;         /* of the corpus */
    int64_t players;       /* ports that play, of all games */
    int64_t taken;         /* players of whom rows were added */
    int64_t episodes;      /* added */
    int64_t frames;        /* rows added */
    int64_t frames_masked; /* left out of taken players: a character is absent, or a value is not finite */
    int64_t refused[32];   /* by EXPHIL_REFUSED_... */
} exphil_selection_report;
/* clang-format off */
#define EXPHIL_SELECTION_REPORT_INIT { sizeof(exphil_selection_report), 0, 0, 0, 0, 0, 0, { 0 } }
/* clang-format on */

/* Adds rows of a corpus of games to a dataset with a Melee spec: they are made when they are needed, so that the
 * dataset takes some hundred bytes for each player of a game. The dataset keeps games open. selection and
 * report may be NULL. Episodes come in the order of (content hash, port, frame), whatever the order of the
 * corpus. All is added or nothing; nothing that fits is no error: report says why. A game whose numbers are
 * not all finite is read through; of others only the index and, where a player comes and goes, the head.
 * Rows are then as if each game had been added by exphil_dataset_add_replay; exphil_dataset_info.content_hash
 * is another number: of the games' hashes, not of rows; constant_floats is -1, not known. Damage found
 * later is EXPHIL_E_FORMAT with game and byte offset from whatever call needed the rows. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_add_games(exphil_dataset *dataset,
                                                                   const exphil_games *games,
                                                                   const exphil_selection *selection,
                                                                   exphil_selection_report *report,
                                                                   exphil_error *error);

#ifdef __cplusplus
}
#endif

#endif
