/* Private to lib/data: the order in which an epoch visits the frames of a dataset. The plan of an epoch is a
 * pure function of the dataset, the sampling, and the epoch's number. Making it takes time and memory in
 * proportion to what it orders: episodes, segments or spans of windows. Only windows that are all shuffled
 * together cost memory each (4 bytes). All memory is allocated once; then any batch is found by binary
 * search. */
#ifndef XPH_DATA_ORDER_H
#define XPH_DATA_ORDER_H

#include "data/dataset.h"

/* Fisher-Yates: every order of the items is equally likely. item_bytes is at most 16. stop (may be NULL) is
 * looked at now and then; false: it was set, and the items are in no particular order. */
bool xph_shuffle(xph_rng *rng, void *items, int64_t count, size_t item_bytes, const atomic_bool *stop);

/* What is shuffled or dealt is numbered in 32 bits. */
#define XPH_ORDERED_MAX ((int64_t)UINT32_MAX)

/* Consecutive frames of one episode that start from a zero state; first is a row of the episode. */
typedef struct xph_piece {
    uint32_t episode, first, frames;
} xph_piece;

/* CARRY (order_lanes.c): lane b is the pieces [lane[b], lane[b+1]), one after the other; piece p begins at
 * frame begin[p] of its lane. */
typedef struct xph_lanes {
    xph_piece *pieces;
    int64_t *begin, *lane;
    struct xph_unit *units; /* what lanes are cut from, or dealt */
    uint64_t *keys;         /* dealt lanes: [units + B] */
    int64_t piece_capacity, unit_capacity, key_capacity;
} xph_lanes;

/* Consecutive windows of one episode: from its window `first` on. begin: those of the runs before. */
typedef struct xph_run {
    int64_t begin;
    uint32_t episode, first;
} xph_run;

/* Windows and spans of the groups before. */
typedef struct xph_group {
    int64_t window, span;
} xph_group;

/* WINDOW (order_window.c): windows [first, end) of the epoch are those of the runs, in the order of shuffled.
 * With shuffle_frames that is one group at a time. */
typedef struct xph_windows {
    int64_t count; /* of an epoch */
    int64_t first, end;
    xph_run *runs;
    int64_t run_count, run_capacity;
    uint32_t *shuffled; /* NULL: in order */
    int64_t shuffled_capacity;
    /* With shuffle_frames: the spans as they are shuffled, how many the episodes before have, the windows of each
     * span, the groups. */
    uint32_t *spans, *before; /* [spans], [episodes + 1] */
    uint16_t *sizes;          /* [spans] */
    int64_t span_count, before_capacity;
    xph_group *groups; /* [groups + 1] */
    int64_t group_count, group_capacity;
    int64_t epoch;
} xph_windows;

typedef struct xph_order {
    exphil_context *context;
    const exphil_dataset *dataset;
    const exphil_sampling *sampling; /* defaults filled in */
    int64_t batches;                 /* per epoch, the same for all epochs */
    int64_t frames;                  /* rows that have a target and are not padding */
    xph_lanes lanes;
    xph_windows windows;
} xph_order;

/* Rows of an episode that have a target: all but the last d. */
static inline int64_t xph_usable_frames(const xph_episode *episode, int64_t delay)
{
    return episode->frames > delay ? episode->frames - delay : 0;
}

/* EXPHIL_E_INVALID when no row of the dataset has a target, EXPHIL_E_UNSUPPORTED when there is more than can
 * be numbered. dataset and sampling must outlive the order. */
exphil_status xph_order_create(const exphil_dataset *dataset, const exphil_sampling *sampling,
                               xph_order *order, exphil_error *error);
void xph_order_free(xph_order *order);
/* The same sizes without memory: order needs no freeing. Of dealt lanes it has no number of batches. */
exphil_status xph_order_count(const exphil_dataset *dataset, const exphil_sampling *sampling,
                              xph_order *order, exphil_error *error);
size_t xph_order_bytes(const xph_order *order);
/* false: stop was set; the plan is then of no epoch. */
bool xph_order_plan(xph_order *order, int64_t epoch, const atomic_bool *stop);

/* CARRY: frames of a lane before its padding; its piece that holds frame `at` of it, lane[b+1] if it has ended
 * by then. */
int64_t xph_order_lane_frames(const xph_order *order, int64_t lane);
int64_t xph_order_piece(const xph_order *order, int64_t lane, int64_t at);

/* WINDOW: where window w of the epoch starts. false: stop was set. */
typedef struct xph_place {
    int64_t episode, row;
    int64_t run; /* of the windows at hand */
} xph_place;
bool xph_order_window(xph_order *order, int64_t w, const atomic_bool *stop, xph_place *place);

/* ---- between order.c and its two halves ----------------------------------------------------------------- */

/* count: sizes of everything, without memory; create: with it. */
exphil_status xph_lanes_count(xph_order *order, exphil_error *error);
size_t xph_lanes_bytes(const xph_order *order);
exphil_status xph_lanes_create(xph_order *order, exphil_error *error);
void xph_lanes_free(xph_order *order);
bool xph_lanes_plan(xph_order *order, xph_rng *rng, const atomic_bool *stop);
exphil_status xph_windows_count(xph_order *order, exphil_error *error);
size_t xph_windows_bytes(const xph_order *order);
int64_t xph_windows_spans(const xph_order *order, int64_t episode); /* with shuffle_frames: of its windows */
exphil_status xph_windows_create(xph_order *order, exphil_error *error);
void xph_windows_free(xph_order *order);
bool xph_windows_plan(xph_order *order, xph_rng *rng, int64_t epoch, const atomic_bool *stop);

static inline void *xph_order_get(const xph_order *order, int64_t count, size_t item_bytes,
                                  exphil_error *error)
{
    size_t bytes = SIZE_MAX;
    void *memory = xph_size_mul((size_t)count, item_bytes, &bytes) ? xph_alloc(order->context, bytes) : NULL;
    if (!memory) xph_no_memory(bytes, error);
    return memory;
}

static inline void xph_order_drop(const xph_order *order, void *memory, int64_t count, size_t item_bytes)
{
    if (memory) xph_free(order->context, memory, (size_t)count * item_bytes);
}

#endif
