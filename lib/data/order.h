/* Private to lib/data: the order in which an epoch visits the frames of a dataset. The plan of an epoch is a
 * pure function of the dataset, the sampling, and the epoch's number; making it takes time in proportion to
 * what it orders, and all its memory is allocated once. After that, any batch is found in constant time. */
#ifndef XPH_DATA_ORDER_H
#define XPH_DATA_ORDER_H

#include "data/dataset.h"

/* Fisher-Yates: every order of the items is equally likely. item_bytes is at most 16. stop (may be NULL) is
 * looked at now and then; false: it was set, and the items are in no particular order. */
bool xph_shuffle(xph_rng *rng, void *items, int64_t count, size_t item_bytes, const atomic_bool *stop);

/* Consecutive frames of one episode that start from a zero state. */
typedef struct xph_piece {
    uint32_t first, frames;
} xph_piece;

/* CARRY: lane b is the pieces [lane[b], lane[b+1]), one after the other; piece p begins at frame begin[p] of
 * its lane. Batch i starts in piece at[b * batches + i] of lane b, which is lane[b+1] when the lane has
 * ended by then. WINDOW: window w of the epoch starts at frame windows[w]. */
typedef struct xph_order {
    exphil_context *context;
    const exphil_dataset *dataset;
    const exphil_sampling *sampling; /* defaults filled in */
    int64_t batches;                 /* per epoch, the same for all epochs */
    int64_t frames;                  /* rows that have a target and are not padding */
    int64_t piece_capacity, unit_capacity, window_count;
    xph_piece *pieces;
    uint32_t *begin, *lane, *at, *windows;
    struct xph_unit *units; /* what lanes are dealt */
    uint64_t *keys;         /* [max(units, B)] */
} xph_order;

/* Rows of an episode that have a target: all but the last d. */
static inline int64_t xph_usable_frames(const xph_episode *episode, int64_t delay)
{
    return episode->frames > delay ? episode->frames - delay : 0;
}

/* EXPHIL_E_INVALID when no row of the dataset has a target. dataset and sampling must outlive the order. */
exphil_status xph_order_create(const exphil_dataset *dataset, const exphil_sampling *sampling,
                               xph_order *order, exphil_error *error);
void xph_order_free(xph_order *order);
/* false: stop was set; the plan is then of no epoch. */
bool xph_order_plan(xph_order *order, int64_t epoch, const atomic_bool *stop);

#endif
