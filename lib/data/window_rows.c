/* See window_rows.h. */
#include "data/window_rows.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Past actions that act before the rows: those that are decided before them. */
static int64_t rows_before(const exphil_sampling *how)
{
    int64_t slots = how->action_slots ? how->action_slots : how->balance_change > 0;
    return slots > how->delay_frames ? slots - how->delay_frames : 0;
}

static int64_t run_windows(const xph_windows *windows, int64_t i)
{
    int64_t end = i + 1 < windows->run_count ? windows->runs[i + 1].begin : windows->end - windows->first;
    return end - windows->runs[i].begin;
}

exphil_status xph_window_rows_create(const xph_order *order, xph_window_rows **rows, exphil_error *error)
{
    const xph_windows *from = &order->windows;
    const exphil_sampling *how = order->sampling;
    size_t bytes = sizeof **rows + (size_t)from->run_count * sizeof(struct xph_window_run);
    xph_window_rows *made = xph_alloc(order->context, bytes);
    if (!made) return xph_no_memory(bytes, error);
    *made = (xph_window_rows){.context = order->context,
                              .references = 1,
                              .first = from->first,
                              .end = from->end,
                              .epoch = from->epoch,
                              .count = from->run_count,
                              .bytes = bytes};
    for (int64_t i = 0; i < made->count; i++) {
        const xph_episode *episode = &order->dataset->episodes[from->runs[i].episode];
        int64_t row = from->runs[i].first * how->stride,
                last = row + (run_windows(from, i) - 1) * how->stride;
        int64_t end = least(last + how->time + how->delay_frames, episode->frames);
        row = row > rows_before(how) ? row - rows_before(how) : 0;
        made->runs[i] = (struct xph_window_run){episode, row, end - row, NULL};
    }
    *rows = made;
    return EXPHIL_OK;
}

xph_window_rows *xph_window_rows_retain(xph_window_rows *rows)
{
    if (rows) atomic_fetch_add(&rows->references, 1);
    return rows;
}

void xph_window_rows_release(xph_window_rows *rows)
{
    if (!rows || atomic_fetch_sub(&rows->references, 1) != 1) return;
    for (int64_t i = 0; i < rows->count; i++) xph_block_release(rows->runs[i].block);
    xph_free(rows->context, rows, rows->bytes);
}

exphil_status xph_window_rows_make(xph_window_rows *rows, const xph_row_shape *shape, int64_t i,
                                   xph_piece_buffer *buffer, exphil_error *error)
{
    struct xph_window_run *run = &rows->runs[i];
    xph_block *block;
    xph_block_buffer to;
    if (run->block) return EXPHIL_OK;
    XPH_TRY(xph_block_create(rows->context, shape, run->frames, &block, &to, error));
    exphil_status status = xph_rows_copy(shape, run->episode->block, run->episode->offset + run->row,
                                         run->frames, buffer, to.floats, to.ids, to.actions, error);
    if (status < 0) {
        xph_block_release(block);
        return status;
    }
    block->facts = run->episode->block->facts;
    run->block = block;
    return EXPHIL_OK;
}

size_t xph_window_rows_most(const exphil_sampling *how, const xph_row_shape *shape)
{
    int64_t span = 1024 + how->time + how->delay_frames,
            most = how->shuffle_frames > span ? how->shuffle_frames : span;
    int64_t runs = most / (how->time + how->delay_frames) + 1; /* each has rows before it, and a header */
    return (size_t)((most + runs * rows_before(how)) * shape->row_bytes) + (size_t)runs * 1024;
}
