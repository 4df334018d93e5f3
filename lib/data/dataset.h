/* Private to lib/data: how rows are kept.
 *
 * A block is the rows of one stretch of play; it never changes and is shared by counted references, so that
 * splits and prefetchers cost no copies. An episode is a view of a block, whole or a part. A dataset is an
 * ordered list of episodes; its frames are numbered from 0. */
#ifndef XPH_DATA_DATASET_H
#define XPH_DATA_DATASET_H

#include "data/data.h"

/* Rows of one episode are counted in 32 bits where there are many such numbers (2^32 frames are 19,900 hours of
 * play), frames of a dataset in 48, episodes of a dataset in 32. */
#define XPH_FRAMES_MAX         ((int64_t)UINT32_MAX)
#define XPH_DATASET_FRAMES_MAX (((int64_t)1 << 48) - 1)
#define XPH_EPISODES_MAX       ((int64_t)UINT32_MAX)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rows are read from little-endian files");
_Static_assert(sizeof(float) == 4, "rows are IEEE single precision");

/* ---- rows (rows.c) ------------------------------------------------------------------------------------- */

/* Sizes of a row. The value of a head takes 1, 2 or 4 bytes, whatever its range needs; an action is the
 * values of its heads one after the other, without gaps. */
typedef struct xph_row_shape {
    const exphil_spec *spec;
    int64_t floats, ids, heads;      /* F, K, A */
    int64_t action_bytes;            /* P: of one packed action */
    int64_t row_bytes;               /* 4F + 4K + P */
    uint8_t width[EXPHIL_HEADS_MAX]; /* bytes of a head's value */
} xph_row_shape;

void xph_row_shape_of(const exphil_spec *spec, xph_row_shape *shape);
void xph_action_pack(const xph_row_shape *shape, const int32_t *action, uint8_t *packed);
void xph_action_unpack(const xph_row_shape *shape, const uint8_t *packed, int32_t *action);

/* What replays tell of an episode; see exphil_episode_info. */
typedef struct xph_episode_facts {
    uint64_t game;
    int32_t first_game_frame, port, opponent_port, stage, character, opponent_character;
    uint64_t group, match; /* what recordings of one match have in common (xph_game_keys); 0: not known */
} xph_episode_facts;

/* Rows are hashed, and rows of a file checked when they are first used, in pieces of so many frames: a batch
 * out of a large file need not wait for all of it. */
enum { XPH_PIECE = 256 };
static inline int64_t xph_pieces(int64_t frames)
{
    return (frames + XPH_PIECE - 1) / XPH_PIECE;
}

/* Consecutive rows. */
typedef struct xph_rows {
    const float *floats;    /* [T, F] */
    const int32_t *ids;     /* [T, K] */
    const uint8_t *actions; /* [T, P] */
} xph_rows;

/* Where rows are made when they are needed, and where the games that were decoded for it are kept (game_rows.h). */
struct xph_row_source;
typedef struct xph_game_lane xph_game_lane;

typedef struct xph_block {
    exphil_context *context;
    atomic_int references;
    int64_t frames;          /* T, at least 1 */
    xph_rows rows;           /* behind this struct, unless they are in a corpus or made of a game */
    uint64_t hash;           /* xph_rows_hash of all; of rows of a game, the game's content hash */
    size_t bytes;            /* of this piece of memory, what lies behind it included */
    xph_shared_file *corpus; /* where the rows lie; NULL: behind this struct */
    uint64_t at;          /* byte of the corpus at which they begin: [floats | ids | actions]; or the game */
    uint64_t *piece_hash; /* [xph_pieces] behind this struct, of rows in a corpus */
    atomic_bool *checked; /* likewise; the rows of a piece are used only when it is checked */
    struct xph_row_source *source; /* of a game: what makes the rows; NULL: they are there */
    int64_t position;              /* of a game: its frame that is row 0 */
    xph_episode_facts facts;
} xph_block;

/* A block with memory for its rows, which the caller fills and then describes: hash, facts. */
typedef struct xph_block_buffer {
    float *floats;
    int32_t *ids;
    uint8_t *actions;
} xph_block_buffer;
size_t xph_block_head_bytes(void); /* of a block, before its rows */
exphil_status xph_block_create(exphil_context *context, const xph_row_shape *shape, int64_t frames,
                               xph_block **block, xph_block_buffer *buffer, exphil_error *error);
/* A block whose rows begin at byte `at` of a corpus, of which it takes a reference. The caller fills
 * piece_hash. */
exphil_status xph_block_of(xph_shared_file *corpus, uint64_t at, int64_t frames, xph_block **block,
                           exphil_error *error);
xph_block *xph_block_retain(xph_block *block);
void xph_block_release(xph_block *block);

/* Memory for the rows of one piece, and what makes rows of games; begin with only the context set: it gets memory
 * when it is first needed. */
typedef struct xph_piece_buffer {
    exphil_context *context;
    uint8_t *memory;
    size_t bytes;
    struct xph_unpacker *unpacker;
    xph_game_lane *lane, *own; /* where decoded games are kept: the caller's, or made here */
} xph_piece_buffer;
exphil_status xph_piece_buffer_make(xph_piece_buffer *buffer, const xph_row_shape *shape,
                                    exphil_error *error);
void xph_piece_buffer_free(xph_piece_buffer *buffer);

/* Rows wherever they lie (rows_read.c), as they are: copied, each of the three unless it is NULL ... */
exphil_status xph_rows_copy(const xph_row_shape *shape, const xph_block *block, int64_t first, int64_t frames,
                            xph_piece_buffer *buffer, float *floats, int32_t *ids, uint8_t *actions,
                            exphil_error *error);
/* ... or at most XPH_PIECE of them in place, or in the buffer. */
exphil_status xph_rows_take(const xph_row_shape *shape, const xph_block *block, int64_t first, int64_t frames,
                            xph_piece_buffer *buffer, xph_rows *rows, exphil_error *error);
/* Rows of piece i of a block after the gate, in place or in the buffer. */
exphil_status xph_rows_piece(const xph_row_shape *shape, const xph_block *block, int64_t i,
                             xph_piece_buffer *buffer, xph_rows *rows, exphil_error *error);
static inline xph_rows xph_rows_from(const xph_row_shape *shape, const xph_rows *rows, int64_t first)
{
    return (xph_rows){rows->floats + first * shape->floats, rows->ids + first * shape->ids,
                      rows->actions + first * shape->action_bytes};
}
static inline int64_t xph_piece_frames(int64_t frames, int64_t at)
{
    return frames - at < XPH_PIECE ? frames - at : XPH_PIECE;
}

/* What stands for the hash of rows [first, first + frames) of a block of a game: of the game, not of rows. */
uint64_t xph_game_rows_hash(const xph_block *block, int64_t first, int64_t frames);
/* XXH64 over floats [T,F], ids [T,K], packed actions [T,P] of at most XPH_PIECE frames, and XXH64 over these
 * hashes of all pieces: the same for rows in memory and in a file. */
uint64_t xph_piece_hash(const xph_row_shape *shape, const xph_rows *rows, int64_t frames);
exphil_status xph_rows_hash(const xph_row_shape *shape, const xph_block *block, int64_t first, int64_t frames,
                            xph_piece_buffer *buffer, uint64_t *hash, exphil_error *error);
/* The gate for rows [first, first + frames) of a corpus, on any thread: EXPHIL_E_FORMAT with the byte offset
 * if they are not what was saved, or could never have been. Rows in memory have passed it when they came
 * in. */
exphil_status xph_rows_verify(const xph_row_shape *shape, const xph_block *block, int64_t first,
                              int64_t frames, xph_piece_buffer *buffer, exphil_error *error);

/* Rows copied from a corpus, and actions [action_rows, heads]: a file that another program writes to may have
 * changed after the gate, and these would index tables. EXPHIL_E_FORMAT. Rows in memory pass. */
exphil_status xph_rows_recheck(const xph_row_shape *shape, const xph_block *block, const int32_t *ids,
                               int64_t rows, const int32_t *actions, int64_t action_rows,
                               exphil_error *error);

/* The first value that must not be in a dataset. */
enum { XPH_FLAW_NONE = 0, XPH_FLAW_FLOAT = 1, XPH_FLAW_ID = 2, XPH_FLAW_ACTION = 3 };
typedef struct xph_flaw {
    int32_t kind;
    int32_t value;
    int64_t row, column;
} xph_flaw;
/* The first of rows has the number first in messages. */
xph_flaw xph_rows_flaw(const xph_row_shape *shape, const xph_rows *rows, int64_t first, int64_t frames);
/* EXPHIL_E_NUMERIC or EXPHIL_E_INVALID with row and column. */
exphil_status xph_flaw_fail(const xph_row_shape *shape, const xph_flaw *flaw, exphil_error *error);

/* Which float columns never change. first [F] holds the bits of the first row; -0 counts as 0. */
typedef struct xph_columns {
    uint32_t *first;
    uint8_t *varies;
    int64_t floats;
    bool any;
} xph_columns;
exphil_status xph_columns_create(exphil_context *context, int64_t floats, xph_columns *columns,
                                 exphil_error *error);
void xph_columns_free(exphil_context *context, xph_columns *columns);
void xph_columns_add(xph_columns *columns, const float *rows, int64_t frames);
void xph_columns_merge(xph_columns *columns, const xph_columns *other);

/* ---- dataset (dataset.c) ------------------------------------------------------------------------------- */

typedef struct xph_episode {
    xph_block *block;
    int64_t first;  /* its first frame in the dataset */
    int64_t offset; /* its first row in the block */
    int64_t frames; /* at least 1 */
    uint64_t hash;  /* of its rows */
} xph_episode;

/* The episodes of datasets that share them: of a dataset and its snapshots, until one of them is added to, which
 * then gets a table of its own. */
typedef struct xph_table {
    exphil_context *context;
    atomic_int references;
    xph_episode *episodes;
    int64_t count, capacity; /* episodes; the table has a reference to the block of each */
    /* buckets[i] is the episode that frame i << bucket_shift lies in. A bucket has about as many frames as an
     * episode on average: there are at most four for each episode. */
    uint32_t *buckets;
    int64_t bucket_count, bucket_capacity;
    int32_t bucket_shift, reserved;
    uint64_t *games; /* distinct, in an open-addressing table of game_capacity slots; 0: empty */
    int64_t game_count, game_capacity;
    uint64_t salt; /* of that table's order, which nothing shows */
} xph_table;

/* Values of conditions (conditions.c), of a dataset and its snapshots and splits until one of them gets another value,
 * which then gets a copy of its own. */
typedef struct xph_game_values xph_game_values;
typedef struct xph_conditions {
    exphil_context *context;
    atomic_int references;
    char name[EXPHIL_CONDITIONS_MAX][32];
    int64_t names;
    /* By (game, port): an open-addressing table, at most half full; salt is of its order, which nothing shows */
    xph_game_values *games;
    int64_t count, capacity;
    uint64_t salt;
    /* By the number of the name, of the first episodes: 1 + the value that this very episode was given; 0: none */
    int32_t *own[EXPHIL_CONDITIONS_MAX];
    int64_t own_count[EXPHIL_CONDITIONS_MAX];
} xph_conditions;

struct exphil_dataset {
    exphil_context *context;
    atomic_int references;
    xph_busy busy;
    exphil_spec *spec;
    uint64_t spec_hash;
    xph_row_shape shape;
    xph_table *table;
    const xph_episode *episodes; /* of the table */
    int64_t episode_count, frames;
    xph_conditions *conditions; /* NULL: none was given */
    xph_columns columns;        /* of the first columns_of episodes; exphil_dataset_query looks at the rest */
    int64_t columns_of;
    xph_hasher content; /* spec, then length and hash of each episode */
    int32_t recovered;
    bool of_games;                   /* some rows are made of games: nobody has looked at them all */
    struct xph_row_weights *weights; /* row_weights.h; NULL: all rows weigh 1 */
    struct xph_row_returns *returns; /* row_returns.h; NULL: no rewards were given */
    /* The piece of a corpus that exphil_dataset_frame read last; NULL: none. */
    xph_piece_buffer frame_buffer;
    const xph_block *frame_block;
    int64_t frame_piece;
    xph_rows frame_rows;
};

/* A game's number among table->games, where 0 marks an empty place: the game 0 shares that of one in 2^64
 * others. */
static inline uint64_t xph_game_key(uint64_t game)
{
    return game ? game : 0x9E3779B97F4A7C15u;
}

/* An array with capacity for at least need items: the given one or a longer copy, the old then being freed.
 * NULL: there is no memory and nothing has changed. */
void *xph_grow(exphil_context *context, void *items, int64_t *capacity, int64_t need, size_t item_bytes,
               exphil_error *error);

/* An empty table with one reference. */
exphil_status xph_table_create(exphil_context *context, xph_table **table, exphil_error *error);
xph_table *xph_table_retain(xph_table *table);
void xph_table_release(xph_table *table);
/* Adds all of the episodes or none, behind `frames` frames; takes references to their blocks. A table that others
 * share is left to them, and *table becomes a new one. */
exphil_status xph_table_add(xph_table **table, const xph_episode *episodes, int64_t count, int64_t frames,
                            exphil_error *error);

/* An empty dataset with one reference. */
exphil_status xph_dataset_new(exphil_context *context, const exphil_spec *spec, exphil_dataset **dataset,
                              exphil_error *error);
/* Appends all of the episodes or none; takes references to their blocks. first is filled in here, the rest
 * by the caller. */
exphil_status xph_dataset_append(exphil_dataset *dataset, const xph_episode *episodes, int64_t count,
                                 exphil_error *error);
/* The gate for all rows, by all workers; the first bad piece in the order of the episodes is reported. Under the
 * flag. */
exphil_status xph_dataset_verify(const exphil_dataset *dataset, exphil_error *error);
/* Columns up to the last episode, whose rows pass the gate. Under the flag. */
exphil_status xph_dataset_look(exphil_dataset *dataset, exphil_error *error);
/* Enters the busy flag of a dataset that the caller may read; the flag is no part of its value. */
exphil_status xph_dataset_enter(const exphil_dataset *dataset, exphil_error *error);
void xph_dataset_leave(const exphil_dataset *dataset);

/* ---- conditions (conditions.c) ------------------------------------------------------------------------- */

exphil_status xph_conditions_set_game(exphil_dataset *dataset, const char *name, uint64_t game, int32_t port,
                                      int32_t value, exphil_error *error);
exphil_status xph_conditions_set_episodes(exphil_dataset *dataset, const char *name, int64_t first,
                                          int64_t count, int32_t value, exphil_error *error);
xph_conditions *xph_conditions_retain(xph_conditions *conditions); /* NULL is fine */
void xph_conditions_release(xph_conditions *conditions);
/* What `to` has from now on, none so far, with nothing by episode: shared where from has nothing by episode either. */
exphil_status xph_conditions_by_game(const exphil_dataset *from, exphil_dataset *to, exphil_error *error);
/* The last episode of `to` is that one of `from`, or a part of it: it gets what was given to this very episode. */
exphil_status xph_conditions_carry(const exphil_dataset *from, int64_t episode, exphil_dataset *to,
                                   exphil_error *error);
/* Values of all episodes for the conditions of told, [episodes, conditions], which the caller frees with the size given.
 * EXPHIL_E_INVALID names a value that told does not have. NULL without conditions. */
exphil_status xph_conditions_of(const exphil_dataset *dataset, const xph_told *told, uint16_t **values,
                                size_t *bytes, exphil_error *error);
/* The names of told that nobody gave a value: NULL if there is none. */
const char *xph_conditions_missing(const exphil_dataset *dataset, const xph_told *told);
/* What an epoch shows of an episode: values [columns of told] from given [conditions], of which a share is
 * masked, with the delay drawn. A function of (seed, epoch, episode): of its game, port, rows, and its
 * first frame; not of the other episodes. */
void xph_told_draw(const xph_told *told, const xph_episode *episode, uint64_t seed, int64_t epoch,
                   const uint16_t *given, int32_t *values);

/* Which rows xph_dataset_actions takes: the one numbered `done` of them is frame *first of the dataset; so many from there
 * on, all of one episode, lie together and are at most XPH_PIECE. */
int64_t xph_dataset_action_run(const exphil_dataset *dataset, int64_t done, int64_t *first);
/* Actions [count, A] of frames [first, first + count) of the dataset, all of one episode, count being at most
 * XPH_PIECE + 1. */
exphil_status xph_dataset_read_actions(const exphil_dataset *dataset, xph_piece_buffer *buffer, int64_t first,
                                       int64_t count, int32_t *actions, exphil_error *error);

/* Index of the episode that a frame belongs to; 0 <= frame < frames. In constant time on average over the
 * frames: a bucket holds few episodes. */
int64_t xph_episode_of(const exphil_dataset *dataset, int64_t frame);

#endif
