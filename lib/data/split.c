/* Splitting a dataset in two that share its rows: by whole games, so that nothing of a held-out game is ever
 * seen in training, or by time, when there are too few games for that. Recordings of one match count as one
 * game. */
#include "data/split.h"
#include "data/order.h"
#include "data/row_returns.h"
#include "data/row_weights.h"

/* The two datasets in the making. */
typedef struct split {
    const exphil_dataset *from;
    const exphil_split_config *config;
    xph_split_groups groups;
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
    XPH_TRY(xph_dataset_append(made->side[side], &part, 1, error));
    return xph_conditions_carry(made->from, episode - made->from->episodes, made->side[side], error);
}

/* ---- by game ----------------------------------------------------------------------------------------- */

/* Draws from the ascending list of games, so that the order in which they were added does not matter. A group is there as
 * the least of its games. */
static exphil_status draw_games(split *made, uint64_t **games, int64_t *held, exphil_error *error)
{
    const exphil_dataset *from = made->from;
    xph_split_groups *groups = &made->groups;
    if (groups->group_count < 2) {
        bool one = from->table->game_count < 2;
        return xph_fail(
            error, EXPHIL_E_INVALID,
            "a split by game needs two games%s, this dataset has %lld (EXPHIL_SPLIT_TIME needs one)",
            one ? "" : " that cannot be of one match",
            (long long)(one ? from->table->game_count : groups->group_count));
    }
    size_t bytes = (size_t)groups->group_count * sizeof **games;
    uint64_t *drawn = xph_alloc(from->context, bytes);
    if (!drawn) return xph_no_memory(bytes, error);
    for (int64_t i = 0, at = 0; i < groups->count; i++)
        if (xph_split_group(groups, i) == i) drawn[at++] = groups->game[i];
    xph_sort(drawn, groups->group_count);
    xph_rng rng = {.seed = made->config->seed, .stream = XPH_RNG_SPLIT};
    xph_shuffle(&rng, drawn, groups->group_count, sizeof *drawn, NULL);
    int64_t count = xph_share_of(made->config->held_out, groups->group_count);
    if (count < 1) count = 1;
    if (count > groups->group_count - 1) count = groups->group_count - 1;
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
    xph_split_groups *groups = &made->groups;
    uint64_t *games = NULL;
    int64_t held = 0;
    XPH_TRY(draw_games(made, &games, &held, error));
    exphil_status status = EXPHIL_OK;
    for (int64_t i = 0; i < from->episode_count && status == EXPHIL_OK; i++) {
        const xph_episode *episode = &from->episodes[i];
        int side = among(games, held, groups->game[xph_split_group(groups, i)]);
        status = add_part(made, side, episode, 0, episode->frames, error);
    }
    xph_free(from->context, games, (size_t)groups->group_count * sizeof *games);
    return status;
}

/* Whichever of two datasets is empty, if one is. */
static exphil_status check_sides(const split *made, exphil_error *error)
{
    for (int side = 0; side < 2; side++) {
        if (made->side[side]->frames) continue;
        return xph_fail(error, EXPHIL_E_INVALID, "the %s dataset would be empty", side ? "held-out" : "kept");
    }
    return EXPHIL_OK;
}

/* ---- by number: whatever else there is ------------------------------------------------------------------ */

/* Uniform in [0, 1), 53 bits: of the seed and the number alone. */
static double draw_for(uint64_t seed, uint64_t number)
{
    const uint32_t counter[4] = {(uint32_t)number, (uint32_t)(number >> 32), XPH_RNG_STABLE, 0};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t out[4];
    xph_philox(counter, key, out);
    return (double)(((uint64_t)out[1] << 32 | out[0]) >> 11) * 0x1p-53;
}

static exphil_status split_stable(split *made, exphil_error *error)
{
    const exphil_dataset *from = made->from;
    for (int64_t i = 0; i < from->episode_count; i++) {
        uint64_t number = made->groups.number[xph_split_group(&made->groups, i)];
        int side = draw_for(made->config->seed, number) < made->config->held_out;
        XPH_TRY(add_part(made, side, &from->episodes[i], 0, from->episodes[i].frames, error));
    }
    return check_sides(made, error);
}

/* ---- by time ----------------------------------------------------------------------------------------- */

/* Rows of an episode that are held out: its last ones, or, where several games may be one match, those from a frame of the
 * game on that is the same for all of them. */
static int64_t held_rows(split *made, int64_t i, const int64_t *cut)
{
    const xph_episode *episode = &made->from->episodes[i];
    int64_t first = xph_split_group(&made->groups, i);
    if (!made->groups.several[first]) return xph_share_of(made->config->held_out, episode->frames);
    return xph_rows_from_frame(episode, cut[first]);
}

static exphil_status add_times(split *made, const int64_t *cut, exphil_error *error)
{
    const exphil_dataset *from = made->from;
    for (int64_t i = 0; i < from->episode_count; i++) {
        const xph_episode *episode = &from->episodes[i];
        int64_t held = held_rows(made, i, cut), kept = episode->frames - held;
        if (kept > 0) XPH_TRY(add_part(made, 0, episode, 0, kept, error));
        if (held > 0) XPH_TRY(add_part(made, 1, episode, kept, held, error));
    }
    return check_sides(made, error);
}

static exphil_status split_time(split *made, exphil_error *error)
{
    exphil_context *context = made->from->context;
    size_t bytes = (size_t)made->groups.count * sizeof(int64_t);
    int64_t *cut = xph_alloc(context, bytes);
    if (!cut) return xph_no_memory(bytes, error);
    exphil_status status = xph_split_cuts(&made->groups, made->from, made->config->held_out, cut, error);
    if (status == EXPHIL_OK) status = add_times(made, cut, error);
    xph_free(context, cut, bytes);
    return status;
}

/* ---- public ------------------------------------------------------------------------------------------ */

static exphil_status check_config(const exphil_split_config *config, exphil_error *error)
{
    if (!(config->held_out > 0 && config->held_out < 1)) {
        char text[XPH_DOUBLE_TEXT];
        return xph_fail(error, EXPHIL_E_INVALID, "held_out is %s, must be between 0 and 1",
                        xph_format_double(text, config->held_out, 6));
    }
    if (config->by < EXPHIL_SPLIT_GAME || config->by > EXPHIL_SPLIT_STABLE)
        return xph_fail(error, EXPHIL_E_INVALID, "by is %d, which is no way to split", (int)config->by);
    if (config->reserved) return xph_fail(error, EXPHIL_E_INVALID, "reserved must be 0");
    return EXPHIL_OK;
}

static exphil_status make_split(split *made, exphil_error *error)
{
    const exphil_dataset *from = made->from;
    for (int side = 0; side < 2; side++) {
        XPH_TRY(xph_dataset_new(from->context, from->spec, &made->side[side], error));
        XPH_TRY(xph_conditions_by_game(from, made->side[side], error));
        made->side[side]->weights = xph_row_weights_retain(from->weights);
        made->side[side]->returns = xph_row_returns_retain(from->returns);
    }
    XPH_TRY(xph_split_groups_make(from, &made->groups, error));
    return made->config->by == EXPHIL_SPLIT_GAME   ? split_games(made, error)
           : made->config->by == EXPHIL_SPLIT_TIME ? split_time(made, error)
                                                   : split_stable(made, error);
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
    xph_split_groups_free(&made.groups);
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
