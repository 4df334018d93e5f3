/* Private to lib/data: makes batches from a dataset, in memory that is allocated once. */
#ifndef XPH_DATA_SAMPLER_H
#define XPH_DATA_SAMPLER_H

#include "data/weighing.h"
#include "data/window_rows.h"

/* Where a lane of a batch of windows comes from: rows that were made for its group, or its episode (NULL). */
typedef struct xph_window_place {
    xph_place at;
    xph_window_rows *rows;
} xph_window_place;

/* Memory for one batch, shaped as exphil_batch says: B are the lanes that are filled, exphil_sampling.lane_count, here and
 * in all that is numbered by lane. */
typedef struct xph_batch_buffer {
    void *memory;
    size_t bytes;
    float *floats, *mask;
    int32_t *ids, *past, *actions;
    int64_t *rows;            /* [B*T] exphil_batch.rows */
    uint8_t *reset, *dropped; /* dropped: NULL without drop_past */
    int32_t *told;            /* exphil_batch.conditions; NULL: it has no columns */
    float *returns;           /* exphil_batch.returns; NULL: the dataset has no rewards */
    int32_t *before;          /* [B*T, A] the action one frame before the target's; NULL: nobody asked */
    int64_t epoch, index;
    atomic_llong frames;
    xph_window_place
        *windows; /* [B], of groups of windows; NULL: without shuffle_frames any lane finds its own */
    xph_window_rows *fresh; /* what must be made before the lanes can be filled; NULL: nothing */
} xph_batch_buffer;

exphil_status xph_batch_buffer_create(const xph_sampler *sampler, xph_batch_buffer *buffer,
                                      exphil_error *error);
void xph_batch_buffer_free(const xph_sampler *sampler, xph_batch_buffer *buffer);
/* What the caller of the library sees of it. */
void xph_batch_buffer_show(const xph_sampler *sampler, const xph_batch_buffer *buffer, exphil_batch *batch);

/* Before the first batch: masks are what rows weigh, from here on. What does not train is not weighed. */
exphil_status xph_sampler_weigh(xph_sampler *sampler, exphil_error *error);
const xph_weighing *xph_sampler_weighing(const xph_sampler *sampler); /* NULL: all rows weigh 1 */

const exphil_sampling *xph_sampler_sampling(const xph_sampler *sampler);
const xph_told *xph_sampler_told(const xph_sampler *sampler);
uint64_t xph_sampler_values_hash(const xph_sampler *sampler);
int64_t xph_sampler_frames(const xph_sampler *sampler); /* per epoch, without padding */
/* EXPHIL_E_INVALID unless there is such a batch. */
exphil_status xph_sampler_place(const xph_sampler *sampler, int64_t epoch, int64_t index,
                                exphil_error *error);
/* A batch is begun, the runs of buffer->fresh are made, the lanes are filled. Beginning is for one thread at a time, and
 * for none beside it when the epoch is another than before (xph_sampler_planned); runs and lanes may be made by
 * any worker at the same time, but a lane in the order of its batches. EXPHIL_E_FORMAT: rows of a file are
 * damaged; EXPHIL_E_CANCELLED: xph_sampler_stop was called meanwhile. */
exphil_status xph_sampler_begin(xph_sampler *sampler, int64_t epoch, int64_t index, xph_batch_buffer *buffer,
                                exphil_error *error);
exphil_status xph_sampler_run(xph_sampler *sampler, int32_t worker, int64_t run, xph_batch_buffer *buffer,
                              exphil_error *error);
exphil_status xph_sampler_lane(xph_sampler *sampler, int32_t worker, int64_t lane, xph_batch_buffer *buffer,
                               exphil_error *error);
/* All lanes are filled: what they were filled from is not needed any more. */
void xph_sampler_end(const xph_sampler *sampler, xph_batch_buffer *buffer);
/* Batches that were begun are not ended: what was to be made for them is forgotten. For one thread, with nothing else
 * under way. */
void xph_sampler_forget(xph_sampler *sampler);
int64_t xph_sampler_planned(const xph_sampler *sampler);
int32_t xph_sampler_workers(const xph_sampler *sampler);
void xph_sampler_stop(xph_sampler *sampler); /* from any thread; there is no way back */

#endif
