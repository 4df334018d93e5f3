/* Private to lib/data: a sampler from the inside, for the files that it consists of: sampling.c (what is asked for),
 * sampler.c (memory, batches), fill.c (rows of a batch). */
#ifndef XPH_DATA_FILLING_H
#define XPH_DATA_FILLING_H

#include "data/game_rows.h"
#include "data/sampler.h"
#include "data/weighing.h"

/* Of one who fills: actions around a stretch of rows, and a piece of a corpus. */
typedef struct xph_filler {
    uint8_t *packed;
    xph_piece_buffer piece;
} xph_filler;

struct xph_sampler {
    exphil_context *context;
    exphil_dataset *dataset; /* a snapshot of its own */
    exphil_sampling sampling;
    xph_order order;
    int64_t planned; /* epoch that the plan is of; -1: none */
    atomic_bool stop;
    xph_batch_buffer own;    /* of xph_sampler_batch, made when it is first needed */
    xph_melee_mirror mirror; /* of its rows, if sampling.mirror is above 0 */
    xph_filler *fillers;     /* [workers] */
    size_t packed_bytes;
    xph_told told;
    uint16_t *values; /* [episodes, conditions] of the dataset; NULL: none */
    size_t values_bytes;
    int32_t fixed[EXPHIL_CONDITIONS_MAX + 1]; /* by xph_sampler_fix: values, then the id of the delay */
    bool fixes, before;                       /* before: batches have what buffer->before is */
    xph_game_lane *
        *lanes; /* [lanes]: where games are kept that a lane goes through; NULL: the filler keeps them */
    xph_window_rows *group; /* of the windows that were begun last; NULL: none */
    xph_weighing *weighing; /* NULL: all rows weigh 1 */
};

/* sampling.c: the sampling with its defaults, and what rows are told. dataset may be NULL: some rows in memory.
 * EXPHIL_E_INVALID names the field. */
exphil_status xph_sampling_resolve(const exphil_dataset *dataset, const exphil_sampling *given,
                                   exphil_sampling *how, xph_told *told, exphil_error *error);

/* sampler_size.c: how much memory a sampler takes. Where the parts of a batch lie in its memory, and how much that is. */
typedef struct xph_batch_places {
    size_t bytes, floats, ids, past, actions, rows, mask, reset, dropped, told, before, returns;
} xph_batch_places;
exphil_status xph_batch_place(const xph_row_shape *shape, const exphil_sampling *how, const xph_told *told,
                              bool before, bool returns, xph_batch_places *at, exphil_error *error);
int64_t xph_chunk_blocks(const exphil_sampling *how); /* blocks of a game that a chunk touches */
size_t xph_packed_bytes(const xph_row_shape *shape, const exphil_sampling *how);
bool xph_dataset_of_corpus(const exphil_dataset *dataset); /* some rows are in a file */
/* Lanes that keep decoded blocks of their own, within sampling.memory_bytes; the others use their worker's, and decode
 * again what another lane has pushed out. None without games. */
exphil_status xph_game_lanes(const exphil_dataset *dataset, const exphil_sampling *how, const xph_told *told,
                             int64_t *lanes, exphil_error *error);

/* Of a batch of windows: the epoch's window that its first own lane shows, the others show the next ones. */
static inline int64_t xph_sampler_window(const xph_sampler *sampler, int64_t index)
{
    return index * sampler->sampling.batch + sampler->sampling.first_lane;
}

/* fill.c: a lane of a batch that was begun, of lanes and of windows. */
exphil_status xph_fill_lane(const xph_sampler *sampler, xph_filler *with, int64_t lane,
                            xph_batch_buffer *buffer, exphil_error *error);
exphil_status xph_fill_window(xph_sampler *sampler, xph_filler *with, int64_t lane, xph_batch_buffer *buffer,
                              exphil_error *error);

#endif
