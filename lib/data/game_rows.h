/* Private to lib/data: rows that are made of games when they are needed (game_rows.c). */
#ifndef XPH_DATA_GAME_ROWS_H
#define XPH_DATA_GAME_ROWS_H

#include "data/dataset.h"

#include "games/games.h"

enum { XPH_ROW_FLOATS_MOST = 2048 }; /* wider than any layout (lib/melee/layout.h) */

/* Layout and codec of a dataset that replays can be added to (replay_import.c). */
exphil_status xph_melee_of_dataset(const exphil_dataset *dataset, const xph_melee_layout **layout,
                                   const xph_melee_codec **codec, exphil_error *error);

/* A dataset of all human players of a corpus of games, with the usual spec (add_games.c). */
exphil_status xph_dataset_of_games(exphil_context *context, const char *path, exphil_dataset **dataset,
                                   exphil_error *error);

/* What makes rows of games; the blocks of one exphil_dataset_add_games share it. */
typedef struct xph_row_source {
    exphil_context *context;
    atomic_int references;
    exphil_games *games;
    const xph_melee_layout *layout;
    const xph_melee_codec *codec;
    size_t block_bytes; /* that any block of the games that are used takes in memory */
} xph_row_source;
exphil_status xph_row_source_create(const exphil_games *games, const xph_melee_layout *layout,
                                    const xph_melee_codec *codec, xph_row_source **source,
                                    exphil_error *error);
xph_row_source *xph_row_source_retain(xph_row_source *source);
void xph_row_source_release(xph_row_source *source);

/* Decoded blocks of the game that a reader is in: the last so many that were asked for. Made with as many as the reader
 * goes back and forth in. Memory comes when a game is entered. */
typedef struct xph_game_slot {
    int64_t k; /* of its game; -1: none */
    void *memory;
    size_t bytes;
    xph_game_block block;
} xph_game_slot;

struct xph_game_lane {
    exphil_context *context;
    const xph_row_source *source;
    int64_t game;
    xph_game_front *front;
    int64_t count;
    xph_game_slot slots[];
};
exphil_status xph_game_lane_create(exphil_context *context, int64_t slots, xph_game_lane **lane,
                                   exphil_error *error);
void xph_game_lane_free(xph_game_lane *lane);

/* Bytes of a lane, and of an unpacker, with so many blocks of block_bytes. */
size_t xph_game_lane_bytes(int64_t slots, size_t block_bytes);

/* Rows [first, first + frames) of a block of a game; each of the three may be NULL. EXPHIL_E_FORMAT with the byte. */
exphil_status xph_game_rows_make(const xph_row_shape *shape, const xph_block *block, int64_t first,
                                 int64_t frames, xph_piece_buffer *buffer, float *floats, int32_t *ids,
                                 uint8_t *actions, exphil_error *error);
/* What xph_game_rows_make would say, without making them. */
exphil_status xph_game_rows_check(const xph_block *block, int64_t first, int64_t frames,
                                  xph_piece_buffer *buffer, exphil_error *error);
/* A block of rows [position, position + frames) of the player of facts; content is the game's hash. */
exphil_status xph_block_of_game(xph_row_source *source, int64_t game, uint64_t content, int64_t position,
                                int64_t frames, const xph_episode_facts *facts, xph_block **block,
                                exphil_error *error);

#endif
