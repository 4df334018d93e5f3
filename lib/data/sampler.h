/* Private to lib/data: makes batches from a dataset, in memory that is allocated once. */
#ifndef XPH_DATA_SAMPLER_H
#define XPH_DATA_SAMPLER_H

#include "data/order.h"

/* Memory for one batch, shaped as exphil_batch says. */
typedef struct xph_batch_buffer {
    void *memory;
    size_t bytes;
    float *floats, *mask;
    int32_t *ids, *past, *actions;
    uint8_t *reset;
    int64_t epoch, index, frames;
} xph_batch_buffer;

exphil_status xph_batch_buffer_create(const xph_sampler *sampler, xph_batch_buffer *buffer,
                                      exphil_error *error);
void xph_batch_buffer_free(const xph_sampler *sampler, xph_batch_buffer *buffer);
/* What the caller of the library sees of it. */
void xph_batch_buffer_show(const xph_sampler *sampler, const xph_batch_buffer *buffer, exphil_batch *batch);

const exphil_sampling *xph_sampler_sampling(const xph_sampler *sampler);
const exphil_dataset *xph_sampler_dataset(const xph_sampler *sampler);
int64_t xph_sampler_frames(const xph_sampler *sampler); /* per epoch, with a mask above 0 */
/* EXPHIL_E_INVALID unless there is such a batch. */
exphil_status xph_sampler_place(const xph_sampler *sampler, int64_t epoch, int64_t index,
                                exphil_error *error);
/* Fills buffer with a batch whose place is valid. EXPHIL_E_FORMAT: rows of a file are damaged;
 * EXPHIL_E_CANCELLED: xph_sampler_stop was called meanwhile. */
exphil_status xph_sampler_fill(xph_sampler *sampler, int64_t epoch, int64_t index, xph_batch_buffer *buffer,
                               exphil_error *error);
void xph_sampler_stop(xph_sampler *sampler); /* from any thread; there is no way back */

#endif
