/* Reading a dataset: the columns of all rows and its counts, the check of all rows, single frames, many at once. */
#include "data/dataset.h"

#include <stdio.h>

/* ---- all rows ---------------------------------------------------------------------------------------- */

/* Piece by piece of the block, of which an episode may be a part. */
static exphil_status look_at_episode(const exphil_dataset *dataset, const xph_episode *episode,
                                     xph_piece_buffer *buffer, xph_columns *columns, exphil_error *error)
{
    const xph_row_shape *shape = &dataset->shape;
    int64_t row = episode->offset, end = row + episode->frames;
    while (row < end) {
        int64_t piece = row / XPH_PIECE, skip = row % XPH_PIECE,
                count = xph_piece_frames(end, row - skip) - skip;
        xph_rows rows;
        XPH_TRY(xph_rows_piece(shape, episode->block, piece, buffer, &rows, error));
        xph_columns_add(columns, rows.floats + skip * shape->floats, count);
        row += count;
    }
    return EXPHIL_OK;
}

exphil_status xph_dataset_look(exphil_dataset *dataset, exphil_error *error)
{
    xph_piece_buffer buffer = {.context = dataset->context};
    exphil_status status = EXPHIL_OK;
    while (status >= 0 && dataset->columns_of < dataset->episode_count) {
        const xph_episode *episode = &dataset->episodes[dataset->columns_of];
        status = look_at_episode(dataset, episode, &buffer, &dataset->columns, error);
        if (status >= 0) dataset->columns_of++;
    }
    xph_piece_buffer_free(&buffer);
    return status;
}

/* -1: not known, since rows of games are made when they are needed. */
static int64_t constant_floats(const exphil_dataset *dataset)
{
    const xph_columns *columns = &dataset->columns;
    int64_t constant = 0;
    if (dataset->columns_of < dataset->episode_count) return -1;
    for (int64_t f = 0; f < columns->floats && columns->any; f++) constant += !columns->varies[f];
    return constant;
}

exphil_status exphil_dataset_query(const exphil_dataset *dataset, exphil_dataset_info *info,
                                   exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_dataset_enter(dataset, error));
    exphil_status status = EXPHIL_OK;
    if (!dataset->of_games) status = xph_dataset_look((exphil_dataset *)(uintptr_t)dataset, error);
    if (status < 0) {
        xph_dataset_leave(dataset);
        return status;
    }
    exphil_dataset_info now = {.struct_size = sizeof now,
                               .spec_hash = dataset->spec_hash,
                               .content_hash = xph_dataset_content_hash(dataset),
                               .frames = dataset->frames,
                               .episodes = dataset->episode_count,
                               .games = dataset->table->game_count,
                               .float_count = dataset->shape.floats,
                               .id_count = dataset->shape.ids,
                               .head_count = dataset->shape.heads,
                               .constant_floats = constant_floats(dataset),
                               .recovered = dataset->recovered};
    snprintf(now.layout, sizeof now.layout, "%s", dataset->spec->layout);
    snprintf(now.codec, sizeof now.codec, "%s", dataset->spec->codec);
    xph_dataset_leave(dataset);
    return XPH_GIVE(exphil_dataset_info, info, &now, error);
}

/* Some frames of the dataset, and those that a worker takes at once: a look at the cancel hook between the former. */
enum { VERIFY_SHARE = 16 * XPH_PIECE, VERIFY_SHARES = 64 };

typedef struct verifying {
    const exphil_dataset *dataset;
    int64_t first; /* frame of the dataset */
    exphil_status status[VERIFY_SHARES];
} verifying;

/* The gate for frames [first, end) of the dataset, episode by episode. */
static exphil_status verify_frames(const exphil_dataset *dataset, int64_t first, int64_t end,
                                   exphil_error *error)
{
    xph_piece_buffer buffer = {.context = dataset->context};
    exphil_status status = EXPHIL_OK;
    while (status >= 0 && first < end) {
        const xph_episode *episode = &dataset->episodes[xph_episode_of(dataset, first)];
        int64_t at = first - episode->first, frames = episode->frames - at;
        if (frames > end - first) frames = end - first;
        status =
            xph_rows_verify(&dataset->shape, episode->block, episode->offset + at, frames, &buffer, error);
        first += frames;
    }
    xph_piece_buffer_free(&buffer);
    return status;
}

static int64_t share_end(const exphil_dataset *dataset, int64_t first)
{
    return dataset->frames - first < VERIFY_SHARE ? dataset->frames : first + VERIFY_SHARE;
}

static void verify_share(void *arg, int64_t i, int32_t worker)
{
    verifying *v = arg;
    int64_t first = v->first + i * VERIFY_SHARE;
    (void)worker;
    v->status[i] = verify_frames(v->dataset, first, share_end(v->dataset, first), NULL);
}

exphil_status xph_dataset_verify(const exphil_dataset *dataset, exphil_error *error)
{
    verifying v = {.dataset = dataset};
    for (; v.first < dataset->frames; v.first += (int64_t)VERIFY_SHARES * VERIFY_SHARE) {
        int64_t shares = (dataset->frames - v.first + VERIFY_SHARE - 1) / VERIFY_SHARE;
        if (shares > VERIFY_SHARES) shares = VERIFY_SHARES;
        if (xph_cancelled(dataset->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        xph_parallel(dataset->context, verify_share, &v, shares);
        for (int64_t i = 0; i < shares; i++) {
            int64_t first = v.first + i * VERIFY_SHARE;
            if (v.status[i] < 0) /* again, for the message */
                XPH_TRY(verify_frames(dataset, first, share_end(dataset, first), error));
        }
    }
    return EXPHIL_OK;
}

exphil_status exphil_dataset_verify(const exphil_dataset *dataset, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_dataset_enter(dataset, error));
    exphil_status status = xph_dataset_verify(dataset, error);
    xph_dataset_leave(dataset);
    return status;
}

/* ---- single frames ----------------------------------------------------------------------------------- */

/* A row of a corpus, or of a game. Its piece is read whole, and kept for the next calls, when it must be checked or is
 * entered at its first row, as by a loop over all frames; else the row alone, so that jumping about stays cheap. */
static exphil_status read_row(exphil_dataset *dataset, const xph_block *block, int64_t row, xph_rows *rows,
                              exphil_error *error)
{
    const xph_row_shape *shape = &dataset->shape;
    int64_t piece = row / XPH_PIECE, skip = row % XPH_PIECE;
    bool kept = dataset->frame_block == block && dataset->frame_piece == piece;
    bool whole =
        !skip || block->source || !atomic_load_explicit(&block->checked[piece], memory_order_relaxed);
    if (!kept) dataset->frame_block = NULL;
    if (!kept && !whole) return xph_rows_take(shape, block, row, 1, &dataset->frame_buffer, rows, error);
    if (!kept)
        XPH_TRY(xph_rows_piece(shape, block, piece, &dataset->frame_buffer, &dataset->frame_rows, error));
    dataset->frame_block = block;
    dataset->frame_piece = piece;
    *rows = xph_rows_from(shape, &dataset->frame_rows, skip);
    return EXPHIL_OK;
}

static exphil_status read_frame(exphil_dataset *dataset, int64_t index, float *floats, int32_t *ids,
                                int32_t *action, exphil_error *error)
{
    const xph_row_shape *shape = &dataset->shape;
    const xph_episode *episode = &dataset->episodes[xph_episode_of(dataset, index)];
    const xph_block *block = episode->block;
    int64_t row = index - episode->first + episode->offset;
    int32_t acted[EXPHIL_HEADS_MAX];
    xph_rows rows;
    XPH_TRY(block->corpus || block->source ? read_row(dataset, block, row, &rows, error)
                                           : xph_rows_take(shape, block, row, 1, NULL, &rows, error));
    xph_action_unpack(shape, rows.actions, acted);
    XPH_TRY(xph_rows_recheck(shape, block, rows.ids, 1, acted, 1, error));
    if (floats) memcpy(floats, rows.floats, (size_t)shape->floats * sizeof *floats);
    if (ids) memcpy(ids, rows.ids, (size_t)shape->ids * sizeof *ids);
    if (action) memcpy(action, acted, (size_t)shape->heads * sizeof *action);
    return EXPHIL_OK;
}

exphil_status exphil_dataset_frame(const exphil_dataset *dataset, int64_t index, float *floats, int32_t *ids,
                                   int32_t *action, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_dataset_enter(dataset, error));
    exphil_status status = EXPHIL_OK;
    if (index < 0 || index >= dataset->frames) {
        status = xph_fail(error, EXPHIL_E_INVALID, "index is %lld; there are %lld frames", (long long)index,
                          (long long)dataset->frames);
    } else {
        status = read_frame((exphil_dataset *)(uintptr_t)dataset, index, floats, ids, action, error);
    }
    xph_dataset_leave(dataset);
    return status;
}

/* ---- many frames -------------------------------------------------------------------------------------- */

/* Rows that are read at once; a look at the cancel hook between. */
enum { STRETCH = XPH_PIECE };

/* How many of count frames from first on are read at once: of one episode. */
static int64_t stretch_of(const xph_episode *episode, int64_t first, int64_t count)
{
    int64_t left = episode->first + episode->frames - first;
    if (count > left) count = left;
    return count < STRETCH ? count : STRETCH;
}

/* Frames [first, first + count) of the dataset, all of one episode, a stretch and one at most; each of the three may be NULL. */
static exphil_status read_stretch(const exphil_dataset *dataset, const xph_episode *episode,
                                  xph_piece_buffer *buffer, int64_t first, int64_t count, float *floats,
                                  int32_t *ids, int32_t *actions, exphil_error *error)
{
    const xph_row_shape *shape = &dataset->shape;
    uint8_t packed[(STRETCH + 1) * 4 * EXPHIL_HEADS_MAX];
    int64_t row = episode->offset + first - episode->first;
    XPH_TRY(xph_rows_verify(shape, episode->block, row, count, buffer, error));
    XPH_TRY(xph_rows_copy(shape, episode->block, row, count, buffer, floats, ids, actions ? packed : NULL,
                          error));
    for (int64_t i = 0; actions && i < count; i++)
        xph_action_unpack(shape, packed + i * shape->action_bytes, actions + i * shape->heads);
    return xph_rows_recheck(shape, episode->block, ids, ids ? count : 0, actions, actions ? count : 0, error);
}

static exphil_status read_rows(exphil_dataset *dataset, int64_t first, int64_t count, float *floats,
                               int32_t *ids, int32_t *actions, int64_t *episodes, exphil_error *error)
{
    const xph_row_shape *shape = &dataset->shape;
    dataset->frame_block = NULL; /* the buffer gets other rows */
    for (int64_t done = 0; done < count;) {
        int64_t e = xph_episode_of(dataset, first + done);
        int64_t now = stretch_of(&dataset->episodes[e], first + done, count - done);
        if (xph_cancelled(dataset->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        XPH_TRY(read_stretch(dataset, &dataset->episodes[e], &dataset->frame_buffer, first + done, now,
                             floats ? floats + done * shape->floats : NULL,
                             ids ? ids + done * shape->ids : NULL,
                             actions ? actions + done * shape->heads : NULL, error));
        for (int64_t i = 0; episodes && i < now; i++) episodes[done + i] = e;
        done += now;
    }
    return EXPHIL_OK;
}

static exphil_status check_range(const exphil_dataset *dataset, int64_t first, int64_t count,
                                 exphil_error *error)
{
    long long frames = dataset->frames;
    if (first < 0 || first > frames)
        return xph_fail(error, EXPHIL_E_INVALID, "first is %lld; there are %lld frames", (long long)first,
                        frames);
    if (count < 0 || count > frames - first)
        return xph_fail(error, EXPHIL_E_INVALID, "count is %lld; from %lld on there are %lld frames",
                        (long long)count, (long long)first, frames - (long long)first);
    return EXPHIL_OK;
}

exphil_status exphil_dataset_rows(const exphil_dataset *dataset, int64_t first, int64_t count, float *floats,
                                  int32_t *ids, int32_t *actions, int64_t *episodes, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_dataset_enter(dataset, error));
    exphil_status status = check_range(dataset, first, count, error);
    if (status == EXPHIL_OK)
        status = read_rows((exphil_dataset *)(uintptr_t)dataset, first, count, floats, ids, actions, episodes,
                           error);
    xph_dataset_leave(dataset);
    return status;
}

/* ---- actions ------------------------------------------------------------------------------------------ */

int64_t xph_dataset_action_rows(const exphil_dataset *dataset)
{
    bool all = !dataset->of_games || dataset->frames <= XPH_ACTIONS_MOST;
    return all ? dataset->frames : XPH_ACTIONS_MOST;
}

/* Stretch s of n, each of as many rows, at even distances. */
int64_t xph_dataset_action_run(const exphil_dataset *dataset, int64_t done, int64_t *first)
{
    int64_t rows = xph_dataset_action_rows(dataset), stretches = (rows + STRETCH - 1) / STRETCH;
    *first = rows == dataset->frames ? done : dataset->frames / stretches * (done / STRETCH) + done % STRETCH;
    const xph_episode *episode = &dataset->episodes[xph_episode_of(dataset, *first)];
    int64_t most = STRETCH - done % STRETCH;
    return stretch_of(episode, *first, most < rows - done ? most : rows - done);
}

exphil_status xph_dataset_read_actions(const exphil_dataset *dataset, xph_piece_buffer *buffer, int64_t first,
                                       int64_t count, int32_t *actions, exphil_error *error)
{
    const xph_episode *episode = &dataset->episodes[xph_episode_of(dataset, first)];
    return read_stretch(dataset, episode, buffer, first, count, NULL, NULL, actions, error);
}

static exphil_status read_stretches(const exphil_dataset *dataset, int64_t rows, int32_t *actions,
                                    exphil_error *error)
{
    xph_piece_buffer buffer = {.context = dataset->context};
    exphil_status status = EXPHIL_OK;
    for (int64_t done = 0, first, count; done < rows && status >= 0; done += count) {
        count = xph_dataset_action_run(dataset, done, &first);
        if (xph_cancelled(dataset->context))
            status = xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        if (status >= 0)
            status = xph_dataset_read_actions(dataset, &buffer, first, count,
                                              actions + done * dataset->shape.heads, error);
    }
    xph_piece_buffer_free(&buffer);
    return status;
}

bool xph_dataset_copies_actions(const exphil_dataset *dataset)
{
    return dataset->of_games;
}

exphil_status xph_dataset_actions(const exphil_dataset *dataset, int32_t **actions, exphil_error *error)
{
    int64_t rows = xph_dataset_action_rows(dataset);
    size_t bytes = (size_t)(rows * dataset->shape.heads) * sizeof **actions;
    *actions = NULL;
    if (!xph_dataset_copies_actions(dataset)) return EXPHIL_OK;
    XPH_TRY(xph_dataset_enter(dataset, error));
    int32_t *made = xph_alloc(dataset->context, bytes);
    exphil_status status = made ? read_stretches(dataset, rows, made, error) : xph_no_memory(bytes, error);
    xph_dataset_leave(dataset);
    if (status < 0)
        xph_free(dataset->context, made, bytes);
    else
        *actions = made;
    return status;
}
