/* How much memory batches of a dataset take: sampler.c and prefetch.c allocate by these numbers, and a plan of memory
 * (exphil/plan.h) adds them up. */
#include "data/filling.h"

/* ---- one batch ------------------------------------------------------------------------------------------- */

/* Takes count items of item_bytes behind *at, which stays a multiple of 64. */
static bool take(size_t *at, size_t rows, int64_t count, size_t item_bytes, size_t *offset)
{
    size_t bytes;
    *offset = *at;
    return xph_size_mul(rows, (size_t)count, &bytes) && xph_size_mul(bytes, item_bytes, &bytes) &&
           xph_size_add(*at, bytes, at) && xph_size_align(*at, 64, at);
}

exphil_status xph_batch_place(const xph_row_shape *shape, const exphil_sampling *how, const xph_told *told,
                              bool before, bool returns, xph_batch_places *at, exphil_error *error)
{
    size_t rows = (size_t)(how->lane_count * how->time);
    *at = (xph_batch_places){.bytes = 0};
    if (take(&at->bytes, rows, shape->floats, sizeof(float), &at->floats) &&
        take(&at->bytes, rows, shape->ids, sizeof(int32_t), &at->ids) &&
        take(&at->bytes, rows, how->action_slots * shape->heads, sizeof(int32_t), &at->past) &&
        take(&at->bytes, rows, shape->heads, sizeof(int32_t), &at->actions) &&
        take(&at->bytes, rows, 1, sizeof(int64_t), &at->rows) &&
        take(&at->bytes, rows, 1, sizeof(float), &at->mask) && take(&at->bytes, rows, 1, 1, &at->reset) &&
        take(&at->bytes, rows, how->drop_past > 0.0, 1, &at->dropped) &&
        take(&at->bytes, rows, xph_told_columns(told), sizeof(int32_t), &at->told) &&
        take(&at->bytes, rows, before ? shape->heads : 0, sizeof(int32_t), &at->before) &&
        take(&at->bytes, rows, returns, sizeof(float), &at->returns))
        return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "a batch of %lld x %lld rows is too large",
                    (long long)how->lane_count, (long long)how->time);
}

/* Of exphil_sampling.shuffle_frames: where each lane of a batch comes from. */
static size_t window_places(const exphil_sampling *how)
{
    bool noted = how->mode == EXPHIL_MODE_WINDOW && how->shuffle_frames;
    return noted ? (size_t)how->lane_count * sizeof(xph_window_place) : 0;
}

size_t xph_packed_bytes(const xph_row_shape *shape, const exphil_sampling *how)
{
    return (size_t)((how->time + how->delay_frames + how->action_slots + 1) * shape->action_bytes);
}

bool xph_dataset_of_corpus(const exphil_dataset *dataset)
{
    for (int64_t i = 0; i < dataset->episode_count; i++)
        if (dataset->episodes[i].block->corpus) return true;
    return false;
}

/* ---- games ----------------------------------------------------------------------------------------------- */

int64_t xph_chunk_blocks(const exphil_sampling *how)
{
    int64_t slots = how->action_slots > how->delay_frames ? how->action_slots - how->delay_frames : 1;
    return (how->time + how->delay_frames + slots + XPH_GAME_FRAMES - 1) / XPH_GAME_FRAMES + 1;
}

static size_t most_block_bytes(const exphil_dataset *dataset)
{
    size_t most = 0;
    const xph_row_source *last = NULL;
    for (int64_t i = 0; dataset->of_games && i < dataset->episode_count; i++) {
        const xph_row_source *source = dataset->episodes[i].block->source;
        if (source && source != last && source->block_bytes > most) most = source->block_bytes;
        last = source;
    }
    return most;
}

exphil_status xph_game_lanes(const exphil_dataset *dataset, const exphil_sampling *how, const xph_told *told,
                             int64_t *lanes, exphil_error *error)
{
    bool windows = how->mode == EXPHIL_MODE_WINDOW;
    xph_batch_places batch;
    *lanes = dataset->of_games && !windows ? how->lane_count : 0;
    if (!dataset->of_games || !how->memory_bytes) return EXPHIL_OK;
    size_t lane = xph_game_lane_bytes(xph_chunk_blocks(how), most_block_bytes(dataset));
    XPH_TRY(xph_batch_place(&dataset->shape, how, told, false, dataset->returns != NULL, &batch, error));
    uint64_t least =
        (uint64_t)(how->buffers + 1) * batch.bytes +
        (uint64_t)how->workers * (xph_unpacker_bytes() + lane + xph_packed_bytes(&dataset->shape, how));
    if (windows) least += 2 * xph_window_rows_most(how, &dataset->shape);
    if ((uint64_t)how->memory_bytes < least)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "sampling.memory_bytes is %lld, these batches need at least %llu",
                        (long long)how->memory_bytes, (unsigned long long)least);
    uint64_t fit = ((uint64_t)how->memory_bytes - least) / lane;
    if (fit < (uint64_t)*lanes) *lanes = (int64_t)fit;
    return EXPHIL_OK;
}

/* Rows of the group of windows at hand, and of the one before while lanes of it are still filled. An epoch that is one
 * group has every row once, and again what spans of an episode share. */
static uint64_t group_bytes(const xph_order *order)
{
    const exphil_sampling *how = order->sampling;
    const xph_row_shape *shape = &order->dataset->shape;
    int64_t shared = how->time + how->delay_frames + how->action_slots;
    uint64_t most = xph_window_rows_most(how, shape), all = 0;
    for (int64_t i = 0; i < order->dataset->episode_count && all <= most; i++) {
        int64_t spans = xph_windows_spans(order, i), frames = order->dataset->episodes[i].frames;
        if (!spans) continue;
        uint64_t rows = (uint64_t)(frames + (spans - 1) * shared);
        all += rows * (uint64_t)shape->row_bytes +
               (uint64_t)spans * (sizeof(struct xph_window_run) + xph_block_head_bytes());
    }
    return all <= most ? all : 2 * most;
}

/* What decodes games, what is decoded, rows that windows are cut from. */
static exphil_status game_bytes(const exphil_dataset *dataset, const exphil_sampling *how,
                                const xph_told *told, const xph_order *order, uint64_t *bytes,
                                exphil_error *error)
{
    int64_t lanes = 0;
    XPH_TRY(xph_game_lanes(dataset, how, told, &lanes, error));
    uint64_t workers = (uint64_t)how->workers;
    size_t slots = (size_t)xph_chunk_blocks(how), block = most_block_bytes(dataset);
    bool windows = how->mode == EXPHIL_MODE_WINDOW, shared = windows || lanes < how->lane_count;
    *bytes = 0;
    if (xph_dataset_of_corpus(dataset)) *bytes += workers * XPH_PIECE * (uint64_t)dataset->shape.row_bytes;
    if (!dataset->of_games) return EXPHIL_OK;
    *bytes += workers * (xph_unpacker_bytes() + xph_game_lane_bytes((int64_t)slots, shared ? block : 0)) +
              (uint64_t)lanes * xph_game_lane_bytes((int64_t)slots, block);
    if (windows && how->shuffle_frames) *bytes += group_bytes(order);
    return EXPHIL_OK;
}

size_t xph_dataset_reader_bytes(const exphil_dataset *dataset)
{
    bool pieces = dataset->of_games || xph_dataset_of_corpus(dataset);
    size_t bytes = pieces ? XPH_PIECE * (size_t)dataset->shape.row_bytes : 0;
    if (dataset->of_games) bytes += xph_unpacker_bytes() + xph_game_lane_bytes(2, most_block_bytes(dataset));
    return bytes;
}

/* ---- all of it ------------------------------------------------------------------------------------------- */

static exphil_status of_dataset(const exphil_dataset *dataset, const exphil_sampling *how,
                                const xph_told *told, bool evaluates, xph_data_bytes *bytes,
                                exphil_error *error)
{
    xph_order order;
    XPH_TRY(xph_order_count(dataset, how, &order, error));
    XPH_TRY(game_bytes(dataset, how, told, &order, &bytes->games, error));
    bytes->order +=
        xph_order_bytes(&order) + (uint64_t)(dataset->episode_count * told->conditions) * sizeof(uint16_t);
    if (!evaluates) bytes->order += xph_weighing_bytes(dataset, how);
    return EXPHIL_OK;
}

exphil_status xph_data_bytes_of(const exphil_dataset *dataset, const exphil_spec *spec,
                                const exphil_sampling *sampling, bool evaluates, xph_data_bytes *bytes,
                                exphil_error *error)
{
    exphil_sampling how;
    xph_told told;
    xph_row_shape shape;
    xph_batch_places batch;
    XPH_TRY(xph_sampling_resolve(dataset, sampling, &how, &told, error));
    xph_row_shape_of(dataset ? dataset->spec : spec, &shape);
    XPH_TRY(xph_batch_place(&shape, &how, &told, evaluates, dataset && dataset->returns, &batch, error));
    uint64_t buffers = evaluates ? 1 : (uint64_t)how.buffers + 1;
    *bytes = (xph_data_bytes){.how = how, .told = told, .batches = buffers * batch.bytes};
    bytes->how.conditions = NULL;
    bytes->how.delays = NULL;
    bytes->order = buffers * window_places(&how) + sizeof(xph_sampler) +
                   (uint64_t)how.workers * (sizeof(xph_filler) + xph_packed_bytes(&shape, &how)) +
                   (uint64_t)how.lane_count * sizeof(xph_game_lane *);
    return dataset ? of_dataset(dataset, &how, &told, evaluates, bytes, error) : EXPHIL_OK;
}
