/* Splitting a dataset in two that share its rows: by whole games, so that nothing of a held-out game is ever
 * seen in training, or by time, when there are too few games for that. */
#include "data/dataset.h"
#include "data/order.h"

/* The two datasets in the making. */
typedef struct split {
    const exphil_dataset *from;
    const exphil_split_config *config;
    exphil_dataset *side[2]; /* kept, held out */
} split;

static exphil_status hash_part(const split *made, xph_episode *part, exphil_error *error)
{
    const xph_row_shape *shape = &made->from->shape;
    xph_piece_buffer buffer = {.context = made->from->context};
    if (part->block->source) {
        part->hash = xph_game_rows_hash(part->block, part->offset, part->frames);
        return EXPHIL_OK;
    }
    exphil_status status = xph_rows_verify(shape, part->block, part->offset, part->frames, &buffer, error);
    if (status >= 0)
        status = xph_rows_hash(shape, part->block, part->offset, part->frames, &buffer, &part->hash, error);
    xph_piece_buffer_free(&buffer);
    return status;
}

static exphil_status add_part(split *made, int side, const xph_episode *episode, int64_t skip, int64_t frames,
                              exphil_error *error)
{
    xph_episode part = *episode;
    part.offset += skip;
    part.frames = frames;
    if (frames != episode->frames) XPH_TRY(hash_part(made, &part, error));
    return xph_dataset_append(made->side[side], &part, 1, error);
}

static int64_t share_of(double share, int64_t count)
{
    return (int64_t)(share * (double)count + 0.5);
}

/* ---- by game ----------------------------------------------------------------------------------------- */

/* Draws from the ascending list of games, so that the order in which they were added does not matter. */
static exphil_status draw_games(const split *made, uint64_t **games, int64_t *held, exphil_error *error)
{
    const exphil_dataset *from = made->from;
    const xph_table *table = from->table;
    if (table->game_count < 2) {
        return xph_fail(
            error, EXPHIL_E_INVALID,
            "a split by game needs two games, this dataset has %lld (EXPHIL_SPLIT_TIME needs one)",
            (long long)table->game_count);
    }
    size_t bytes = (size_t)table->game_count * sizeof **games;
    uint64_t *drawn = xph_alloc(from->context, bytes);
    if (!drawn) return xph_no_memory(bytes, error);
    for (int64_t i = 0, count = 0; i < table->game_capacity; i++)
        if (table->games[i]) drawn[count++] = table->games[i];
    xph_sort(drawn, table->game_count);
    xph_rng rng = {.seed = made->config->seed, .stream = XPH_RNG_SPLIT};
    xph_shuffle(&rng, drawn, table->game_count, sizeof *drawn, NULL);
    int64_t count = share_of(made->config->held_out, table->game_count);
    if (count < 1) count = 1;
    if (count > table->game_count - 1) count = table->game_count - 1;
    xph_sort(drawn, count);
    *games = drawn;
    *held = count;
    return EXPHIL_OK;
}

static bool among(const uint64_t *ascending, int64_t count, uint64_t game)
{
    int64_t low = 0;
    for (int64_t high = count; low < high;) {
        int64_t middle = low + (high - low) / 2;
        if (ascending[middle] < game) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && ascending[low] == game;
}

static exphil_status split_games(split *made, exphil_error *error)
{
    const exphil_dataset *from = made->from;
    uint64_t *games = NULL;
    int64_t held = 0;
    XPH_TRY(draw_games(made, &games, &held, error));
    exphil_status status = EXPHIL_OK;
    for (int64_t i = 0; i < from->episode_count && status == EXPHIL_OK; i++) {
        const xph_episode *episode = &from->episodes[i];
        int side = among(games, held, xph_game_key(episode->block->facts.game));
        status = add_part(made, side, episode, 0, episode->frames, error);
    }
    xph_free(from->context, games, (size_t)from->table->game_count * sizeof *games);
    return status;
}

/* ---- by time ----------------------------------------------------------------------------------------- */

static exphil_status split_time(split *made, exphil_error *error)
{
    const exphil_dataset *from = made->from;
    for (int64_t i = 0; i < from->episode_count; i++) {
        const xph_episode *episode = &from->episodes[i];
        int64_t held = share_of(made->config->held_out, episode->frames);
        int64_t kept = episode->frames - held;
        if (kept > 0) XPH_TRY(add_part(made, 0, episode, 0, kept, error));
        if (held > 0) XPH_TRY(add_part(made, 1, episode, kept, held, error));
    }
    for (int side = 0; side < 2; side++) {
        if (made->side[side]->frames) continue;
        return xph_fail(error, EXPHIL_E_INVALID, "the %s dataset would be empty", side ? "held-out" : "kept");
    }
    return EXPHIL_OK;
}

/* ---- public ------------------------------------------------------------------------------------------ */

static exphil_status check_config(const exphil_split_config *config, exphil_error *error)
{
    if (!(config->held_out > 0 && config->held_out < 1)) {
        char text[XPH_DOUBLE_TEXT];
        return xph_fail(error, EXPHIL_E_INVALID, "held_out is %s, must be between 0 and 1",
                        xph_format_double(text, config->held_out, 6));
    }
    if (config->by != EXPHIL_SPLIT_GAME && config->by != EXPHIL_SPLIT_TIME)
        return xph_fail(error, EXPHIL_E_INVALID, "by is %d, which is no way to split", (int)config->by);
    if (config->reserved) return xph_fail(error, EXPHIL_E_INVALID, "reserved must be 0");
    return EXPHIL_OK;
}

static exphil_status make_split(split *made, exphil_error *error)
{
    const exphil_dataset *from = made->from;
    for (int side = 0; side < 2; side++)
        XPH_TRY(xph_dataset_new(from->context, from->spec, &made->side[side], error));
    return made->config->by == EXPHIL_SPLIT_GAME ? split_games(made, error) : split_time(made, error);
}

exphil_status exphil_dataset_split(const exphil_dataset *dataset, const exphil_split_config *config,
                                   exphil_dataset **kept, exphil_dataset **held_out, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_dataset_enter(dataset, error));
    exphil_split_config known = EXPHIL_SPLIT_CONFIG_INIT;
    split made = {.from = dataset, .config = &known};
    exphil_status status = EXPHIL_OK;
    if (!config || !kept || !held_out) {
        status = xph_fail(error, EXPHIL_E_INVALID, "%s is NULL",
                          !config ? "config"
                          : !kept ? "kept"
                                  : "held_out");
    }
    if (status == EXPHIL_OK) status = XPH_TAKE(exphil_split_config, &known, config, error);
    if (status == EXPHIL_OK) status = check_config(&known, error);
    if (status == EXPHIL_OK) status = make_split(&made, error);
    xph_dataset_leave(dataset);
    if (status < 0) {
        xph_dataset_release(made.side[0]);
        xph_dataset_release(made.side[1]);
        return status;
    }
    *kept = made.side[0];
    *held_out = made.side[1];
    return EXPHIL_OK;
}
