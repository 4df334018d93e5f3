/* Reading rows, from their block or from a corpus. Rows of a corpus are checked in pieces: the first reader
 * of a row reads its whole piece, compares the hash and checks every value; later readers read only what they
 * need. */
#include "data/game_rows.h"

/* ---- memory -------------------------------------------------------------------------------------------- */

exphil_status xph_piece_buffer_make(xph_piece_buffer *buffer, const xph_row_shape *shape, exphil_error *error)
{
    size_t bytes = XPH_PIECE * (size_t)shape->row_bytes;
    if (buffer->memory) return EXPHIL_OK;
    buffer->memory = xph_alloc(buffer->context, bytes);
    buffer->bytes = bytes;
    return buffer->memory ? EXPHIL_OK : xph_no_memory(bytes, error);
}

void xph_piece_buffer_free(xph_piece_buffer *buffer)
{
    xph_free(buffer->context, buffer->memory, buffer->bytes);
    buffer->memory = NULL;
    xph_unpacker_free(buffer->unpacker);
    xph_game_lane_free(buffer->own);
    buffer->unpacker = NULL;
    buffer->lane = buffer->own = NULL;
}

/* ---- reading ----------------------------------------------------------------------------------------- */

/* Where row `first` of a block lies in its corpus. */
typedef struct places {
    uint64_t floats, ids, actions;
} places;

static places places_of(const xph_row_shape *shape, const xph_block *block, int64_t first)
{
    uint64_t frames = (uint64_t)block->frames, row = (uint64_t)first;
    uint64_t floats = (uint64_t)shape->floats * sizeof(float), ids = (uint64_t)shape->ids * sizeof(int32_t);
    uint64_t ids_at = block->at + frames * floats, actions_at = ids_at + frames * ids;
    return (places){block->at + row * floats, ids_at + row * ids,
                    actions_at + row * (uint64_t)shape->action_bytes};
}

static void copy_bytes(void *to, const void *from, size_t bytes)
{
    if (to && bytes) memcpy(to, from, bytes);
}

static exphil_status read_bytes(const xph_block *block, uint64_t at, void *to, size_t bytes,
                                exphil_error *error)
{
    return to && bytes ? xph_shared_read(block->corpus, at, to, bytes, error) : EXPHIL_OK;
}

exphil_status xph_rows_copy(const xph_row_shape *shape, const xph_block *block, int64_t first, int64_t frames,
                            xph_piece_buffer *buffer, float *floats, int32_t *ids, uint8_t *actions,
                            exphil_error *error)
{
    if (block->source)
        return xph_game_rows_make(shape, block, first, frames, buffer, floats, ids, actions, error);
    size_t floats_bytes = (size_t)(frames * shape->floats) * sizeof(float),
           ids_bytes = (size_t)(frames * shape->ids) * sizeof(int32_t),
           actions_bytes = (size_t)(frames * shape->action_bytes);
    if (block->corpus) {
        places at = places_of(shape, block, first);
        XPH_TRY(read_bytes(block, at.floats, floats, floats_bytes, error));
        XPH_TRY(read_bytes(block, at.ids, ids, ids_bytes, error));
        return read_bytes(block, at.actions, actions, actions_bytes, error);
    }
    xph_rows rows = xph_rows_from(shape, &block->rows, first);
    copy_bytes(floats, rows.floats, floats_bytes);
    copy_bytes(ids, rows.ids, ids_bytes);
    copy_bytes(actions, rows.actions, actions_bytes);
    return EXPHIL_OK;
}

exphil_status xph_rows_take(const xph_row_shape *shape, const xph_block *block, int64_t first, int64_t frames,
                            xph_piece_buffer *buffer, xph_rows *rows, exphil_error *error)
{
    if (!block->corpus && !block->source) {
        *rows = xph_rows_from(shape, &block->rows, first);
        return EXPHIL_OK;
    }
    XPH_TRY(xph_piece_buffer_make(buffer, shape, error));
    float *floats = (float *)(void *)buffer->memory;
    int32_t *ids = (int32_t *)(void *)(floats + frames * shape->floats);
    uint8_t *actions = (uint8_t *)(ids + frames * shape->ids);
    *rows = (xph_rows){floats, ids, actions};
    return xph_rows_copy(shape, block, first, frames, buffer, floats, ids, actions, error);
}

/* ---- hashes ------------------------------------------------------------------------------------------ */

uint64_t xph_piece_hash(const xph_row_shape *shape, const xph_rows *rows, int64_t frames)
{
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    xph_hash_add(&hasher, rows->floats, (size_t)(frames * shape->floats) * sizeof(float));
    xph_hash_add(&hasher, rows->ids, (size_t)(frames * shape->ids) * sizeof(int32_t));
    xph_hash_add(&hasher, rows->actions, (size_t)(frames * shape->action_bytes));
    return xph_hash_end(&hasher);
}

exphil_status xph_rows_hash(const xph_row_shape *shape, const xph_block *block, int64_t first, int64_t frames,
                            xph_piece_buffer *buffer, uint64_t *hash, exphil_error *error)
{
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int64_t at = 0; at < frames; at += XPH_PIECE) {
        xph_rows rows;
        int64_t count = xph_piece_frames(frames, at);
        XPH_TRY(xph_rows_take(shape, block, first + at, count, buffer, &rows, error));
        uint64_t piece = xph_piece_hash(shape, &rows, count);
        xph_hash_add(&hasher, &piece, sizeof piece);
    }
    *hash = xph_hash_end(&hasher);
    return EXPHIL_OK;
}

/* ---- the gate for a corpus --------------------------------------------------------------------------- */

static bool is_checked(const xph_block *block, int64_t piece)
{
    return atomic_load_explicit(&block->checked[piece], memory_order_relaxed);
}

static exphil_status check_piece(const xph_row_shape *shape, const xph_block *block, int64_t piece,
                                 const xph_rows *rows, exphil_error *error)
{
    int64_t first = piece * XPH_PIECE, frames = xph_piece_frames(block->frames, first);
    unsigned long long offset = places_of(shape, block, first).floats;
    if (!xph_hash_equal(xph_piece_hash(shape, rows, frames), block->piece_hash[piece])) {
        return xph_fail(error, EXPHIL_E_FORMAT,
                        "\"%s\" byte %llu: rows %lld to %lld of this record are damaged", block->corpus->name,
                        offset, (long long)first, (long long)(first + frames - 1));
    }
    xph_flaw flaw = xph_rows_flaw(shape, rows, first, frames);
    if (flaw.kind != XPH_FLAW_NONE) {
        xph_flaw_fail(shape, &flaw, error);
        return xph_fail_within(error, EXPHIL_E_FORMAT, "\"%s\" byte %llu", block->corpus->name, offset);
    }
    atomic_store_explicit(&block->checked[piece], true, memory_order_relaxed);
    return EXPHIL_OK;
}

exphil_status xph_rows_piece(const xph_row_shape *shape, const xph_block *block, int64_t i,
                             xph_piece_buffer *buffer, xph_rows *rows, exphil_error *error)
{
    int64_t first = i * XPH_PIECE, frames = xph_piece_frames(block->frames, first);
    XPH_TRY(xph_rows_take(shape, block, first, frames, buffer, rows, error));
    if (!block->corpus || is_checked(block, i)) return EXPHIL_OK;
    return check_piece(shape, block, i, rows, error);
}

exphil_status xph_rows_verify(const xph_row_shape *shape, const xph_block *block, int64_t first,
                              int64_t frames, xph_piece_buffer *buffer, exphil_error *error)
{
    if (block->source && frames > 0) return xph_game_rows_check(block, first, frames, buffer, error);
    if (!block->corpus || frames <= 0) return EXPHIL_OK;
    for (int64_t i = first / XPH_PIECE; i <= (first + frames - 1) / XPH_PIECE; i++) {
        xph_rows rows;
        if (!is_checked(block, i)) XPH_TRY(xph_rows_piece(shape, block, i, buffer, &rows, error));
    }
    return EXPHIL_OK;
}
