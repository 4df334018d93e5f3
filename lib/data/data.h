/* Door of lib/data: what training may use of datasets and prefetchers. Stands on lib/melee. */
#ifndef XPH_DATA_DATA_H
#define XPH_DATA_DATA_H

#include "base/base.h"

exphil_context *xph_dataset_context(const exphil_dataset *dataset);
exphil_dataset *xph_dataset_retain(const exphil_dataset *dataset);
void xph_dataset_release(exphil_dataset *dataset);
/* The same episodes in a dataset of its own, which later additions do not reach; the table is shared until then.
 * EXPHIL_E_BUSY. */
exphil_status xph_dataset_snapshot(const exphil_dataset *dataset, exphil_dataset **snapshot,
                                   exphil_error *error);
const exphil_spec *xph_dataset_spec_of(const exphil_dataset *dataset);
uint64_t xph_dataset_spec_hash(const exphil_dataset *dataset);
uint64_t xph_dataset_content_hash(const exphil_dataset *dataset);
int64_t xph_dataset_frames(const exphil_dataset *dataset);
int64_t xph_dataset_episodes(const exphil_dataset *dataset);
int64_t xph_dataset_games(const exphil_dataset *dataset);
const char *xph_dataset_file(const exphil_dataset *dataset); /* of its first rows; NULL: they are in none */
/* The episode that has this frame, and where that begins. */
int64_t xph_dataset_episode_of(const exphil_dataset *dataset, int64_t frame, int64_t *first);

/* Rows whose actions tell how frequent each is: all of them, or of games at most XPH_ACTIONS_MOST, in stretches that are
 * always the same ones. */
#define XPH_ACTIONS_MOST ((int64_t)1 << 18)
int64_t xph_dataset_action_rows(const exphil_dataset *dataset);
/* Their actions [count, A] when they are made of games; else NULL: exphil_dataset_frame reads each. The caller frees
 * count * A of them. */
bool xph_dataset_copies_actions(const exphil_dataset *dataset); /* they are */
/* Bytes of what reads single rows of a file or a game; 0: they are in memory. */
size_t xph_dataset_reader_bytes(const exphil_dataset *dataset);
exphil_status xph_dataset_actions(const exphil_dataset *dataset, int32_t **actions, exphil_error *error);

size_t xph_prefetcher_bytes(int64_t lanes); /* beside what xph_data_bytes_of tells */
exphil_prefetcher *xph_prefetcher_retain(exphil_prefetcher *prefetcher);
void xph_prefetcher_release(exphil_prefetcher *prefetcher);
const exphil_sampling *
xph_prefetcher_sampling(const exphil_prefetcher *prefetcher); /* defaults filled in: lane_count too */
/* Of what exphil_dataset_weight said of its rows; 0: nothing. */
uint64_t xph_prefetcher_weights_hash(const exphil_prefetcher *prefetcher);
const xph_told *xph_prefetcher_told(const exphil_prefetcher *prefetcher);
/* Of the values that all episodes have; 0 without conditions. */
uint64_t xph_prefetcher_values_hash(const exphil_prefetcher *prefetcher);
const exphil_dataset *xph_prefetcher_dataset(const exphil_prefetcher *prefetcher);

/* Ascending, in place, no allocation. */
void xph_sort(uint64_t *keys, int64_t count);

/* Bytes that a prefetcher takes, or with evaluates the sampler of an evaluation, but for its snapshot. */
typedef struct xph_data_bytes {
    exphil_sampling how; /* defaults filled in; conditions and delays are those of told */
    xph_told told;
    uint64_t batches; /* of host_alloc of the device */
    uint64_t games;   /* decoded, and what decodes them: when all lanes have entered one */
    uint64_t order;   /* the order of an epoch, values of conditions, weights of rows, lists */
} xph_data_bytes;
/* dataset NULL: rows of spec in memory, whose order counts nothing. sampling as exphil_prefetcher_create takes it. */
exphil_status xph_data_bytes_of(const exphil_dataset *dataset, const exphil_spec *spec,
                                const exphil_sampling *sampling, bool evaluates, xph_data_bytes *bytes,
                                exphil_error *error);

/* The sampler without a thread: batch `index` of `epoch` into memory of the sampler. What evaluation uses. */
typedef struct xph_sampler xph_sampler;
exphil_status xph_sampler_create(const exphil_dataset *dataset, const exphil_sampling *sampling,
                                 xph_sampler **sampler, exphil_error *error);
void xph_sampler_destroy(xph_sampler *sampler);
/* Before the first batch: all rows have these values (NULL: those of the dataset) and this delay (its id; 0: drawn), and
 * xph_sampler_before has for the latest batch the actions one frame before the targets, [B*T, A]. */
void xph_sampler_fix(xph_sampler *sampler, const int32_t *conditions, int32_t delay_id);
const int32_t *xph_sampler_before(const xph_sampler *sampler);
int64_t xph_sampler_batches(const xph_sampler *sampler); /* per epoch */
/* What its batches show of an episode in an epoch. From any thread. */
typedef struct xph_shown {
    int64_t delay, slots;                    /* d; past actions that it sees, the other slots are neutral */
    int32_t told[EXPHIL_CONDITIONS_MAX + 1]; /* columns */
} xph_shown;
xph_shown xph_sampler_shown(const xph_sampler *sampler, int64_t epoch, int64_t episode);
/* Its snapshot of the dataset, which nobody else uses. */
const exphil_dataset *xph_sampler_dataset(const xph_sampler *sampler);
exphil_status xph_sampler_batch(xph_sampler *sampler, int64_t epoch, int64_t index, exphil_batch *batch,
                                exphil_error *error);

#endif
