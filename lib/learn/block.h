/* A chunk as a flat block: head, then the parts in the order of xph_flat_parts, each at a multiple of 64 bytes, by stream and
 * row as a rollout keeps them. */
#ifndef XPH_LEARN_BLOCK_H
#define XPH_LEARN_BLOCK_H

#include "learn/learn.h"

/* The hash is of all bytes behind it. */
typedef struct xph_flat_head {
    uint64_t magic, hash, bytes;
    uint64_t spec, model, weights; /* hashes: layout; configuration; both and the weights */
    int64_t streams, time, delay, heads;
    double temperature[EXPHIL_HEADS_MAX]; /* those behind the last head are 0 */
} xph_flat_head;

/* What the numbers of a part are, and so what they must be. */
typedef enum xph_flat_kind {
    XPH_FLAT_FLOATS,
    XPH_FLAT_DOUBLES,
    XPH_FLAT_IDS,
    XPH_FLAT_ACTIONS,
    XPH_FLAT_LOGS,
    XPH_FLAT_FRAMES,
    XPH_FLAT_ENDS,
    XPH_FLAT_FLAGS,
    XPH_FLAT_RESETS
} xph_flat_kind;
typedef struct xph_flat_part {
    const char *name;
    xph_flat_kind kind;
    unsigned char *base; /* of the rollout's first stream */
    int64_t rows, width; /* of a stream: rows, numbers of a row */
    size_t element;
    size_t at; /* in the block */
} xph_flat_part;

enum { XPH_FLAT_PARTS = 16 };
/* Parts of a block of so many streams; returns its bytes, or SIZE_MAX. */
size_t xph_flat_parts(const exphil_rollout *rollout, int64_t streams, xph_flat_part parts[XPH_FLAT_PARTS]);

/* The numbers of these streams, which were copied into the rollout: EXPHIL_E_FORMAT names the first that is out of range. */
exphil_status xph_flat_check(const exphil_rollout *rollout, int64_t first, int64_t streams,
                             const xph_flat_part parts[XPH_FLAT_PARTS], exphil_error *error);

#endif
