/* Private to lib/data: rows of games for shuffled windows (window_rows.c). A row lies in as many windows as they are long:
 * it is made once for a group of windows (order_window.c), and copied from there. */
#ifndef XPH_DATA_WINDOW_ROWS_H
#define XPH_DATA_WINDOW_ROWS_H

#include "data/order.h"

/* The rows that the windows of a group need: of each of its runs, from its first window on. */
typedef struct xph_window_rows {
    exphil_context *context;
    atomic_int references;
    int64_t first, end; /* windows of the epoch */
    int64_t epoch;
    int64_t count; /* runs */
    size_t bytes;  /* of this struct and what lies behind it */
    struct xph_window_run {
        const xph_episode *episode;
        int64_t row, frames; /* of the episode */
        xph_block *block;    /* NULL: not made yet */
    } runs[];
} xph_window_rows;
/* Of the group that the order has at hand, without rows yet. */
exphil_status xph_window_rows_create(const xph_order *order, xph_window_rows **rows, exphil_error *error);
xph_window_rows *xph_window_rows_retain(xph_window_rows *rows);
void xph_window_rows_release(xph_window_rows *rows);
/* Makes the rows of run i; different ones on different threads. */
exphil_status xph_window_rows_make(xph_window_rows *rows, const xph_row_shape *shape, int64_t i,
                                   xph_piece_buffer *buffer, exphil_error *error);
/* Most bytes of rows that a group takes. */
size_t xph_window_rows_most(const exphil_sampling *how, const xph_row_shape *shape);

#endif
