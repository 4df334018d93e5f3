/* Datasets: an ordered list of episodes, whose frames are numbered. An addition is checked first, then all
 * its memory is allocated, and after that nothing can fail: a failed addition leaves no trace. */
#include "data/game_rows.h"
#include "data/row_returns.h"
#include "data/row_weights.h"

#include "melee/melee.h"

#include <exphil/conditions.h>

/* ---- memory ------------------------------------------------------------------------------------------ */

/* Without a table. */
static exphil_status new_dataset(exphil_context *context, const exphil_spec *spec, exphil_dataset **dataset,
                                 exphil_error *error)
{
    exphil_dataset *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->references = 1;
    made->frame_buffer.context = context;
    exphil_status status = xph_spec_copy(context, spec, &made->spec, error);
    if (status == EXPHIL_OK)
        status = xph_columns_create(context, made->spec->float_count, &made->columns, error);
    if (status < 0) {
        xph_dataset_release(made);
        return status;
    }
    made->spec_hash = exphil_spec_hash(made->spec);
    xph_row_shape_of(made->spec, &made->shape);
    xph_hash_begin(&made->content);
    xph_hash_add(&made->content, &made->spec_hash, sizeof made->spec_hash);
    *dataset = made;
    return EXPHIL_OK;
}

exphil_status xph_dataset_new(exphil_context *context, const exphil_spec *spec, exphil_dataset **dataset,
                              exphil_error *error)
{
    exphil_dataset *made = NULL;
    XPH_TRY(new_dataset(context, spec, &made, error));
    exphil_status status = xph_table_create(context, &made->table, error);
    if (status < 0) {
        xph_dataset_release(made);
        return status;
    }
    *dataset = made;
    return EXPHIL_OK;
}

static void free_dataset(exphil_dataset *dataset)
{
    exphil_context *context = dataset->context;
    xph_table_release(dataset->table);
    xph_conditions_release(dataset->conditions);
    xph_row_weights_release(dataset->weights);
    xph_row_returns_release(dataset->returns);
    xph_columns_free(context, &dataset->columns);
    xph_piece_buffer_free(&dataset->frame_buffer);
    xph_spec_free(context, dataset->spec);
    xph_free(context, dataset, sizeof *dataset);
    xph_context_release(context);
}

/* ---- the door ---------------------------------------------------------------------------------------- */

exphil_context *xph_dataset_context(const exphil_dataset *dataset)
{
    return dataset->context;
}

exphil_dataset *xph_dataset_retain(const exphil_dataset *dataset)
{
    exphil_dataset *kept = (exphil_dataset *)(uintptr_t)dataset;
    atomic_fetch_add(&kept->references, 1);
    return kept;
}

void xph_dataset_release(exphil_dataset *dataset)
{
    if (dataset && atomic_fetch_sub(&dataset->references, 1) == 1) free_dataset(dataset);
}

const exphil_spec *xph_dataset_spec_of(const exphil_dataset *dataset)
{
    return dataset->spec;
}

uint64_t xph_dataset_spec_hash(const exphil_dataset *dataset)
{
    return dataset->spec_hash;
}

int64_t xph_dataset_episode_of(const exphil_dataset *dataset, int64_t frame, int64_t *first)
{
    int64_t index = xph_episode_of(dataset, frame);
    *first = dataset->episodes[index].first;
    return index;
}

uint64_t xph_dataset_content_hash(const exphil_dataset *dataset)
{
    return xph_hash_end(&dataset->content);
}

int64_t xph_dataset_frames(const exphil_dataset *dataset)
{
    return dataset->frames;
}

int64_t xph_dataset_games(const exphil_dataset *dataset)
{
    return dataset->table->game_count;
}

const char *xph_dataset_file(const exphil_dataset *dataset)
{
    const xph_block *block = dataset->episode_count ? dataset->episodes[0].block : NULL;
    if (!block) return NULL;
    if (block->source) return xph_games_file(block->source->games, (int64_t)block->at);
    return block->corpus ? block->corpus->name : NULL;
}

int64_t xph_dataset_episodes(const exphil_dataset *dataset)
{
    return dataset->episode_count;
}

exphil_status xph_dataset_enter(const exphil_dataset *dataset, exphil_error *error)
{
    if (!dataset) return xph_fail(error, EXPHIL_E_INVALID, "dataset is NULL");
    XPH_TRY(xph_context_check(dataset->context, error));
    if (!xph_busy_enter(&((exphil_dataset *)(uintptr_t)dataset)->busy))
        return xph_busy_error("dataset", error);
    return EXPHIL_OK;
}

void xph_dataset_leave(const exphil_dataset *dataset)
{
    xph_busy_leave(&((exphil_dataset *)(uintptr_t)dataset)->busy);
}

/* ---- appending --------------------------------------------------------------------------------------- */

exphil_status xph_dataset_append(exphil_dataset *dataset, const xph_episode *episodes, int64_t count,
                                 exphil_error *error)
{
    int64_t frames = dataset->frames;
    for (int64_t i = 0; i < count; i++) {
        if (episodes[i].frames > XPH_DATASET_FRAMES_MAX - frames) {
            return xph_fail(error, EXPHIL_E_UNSUPPORTED, "a dataset holds at most %lld frames",
                            (long long)XPH_DATASET_FRAMES_MAX);
        }
        frames += episodes[i].frames;
    }
    if (count > XPH_EPISODES_MAX - dataset->episode_count) {
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "a dataset holds at most %lld episodes",
                        (long long)XPH_EPISODES_MAX);
    }
    XPH_TRY(xph_table_add(&dataset->table, episodes, count, dataset->frames, error));
    for (int64_t i = 0; i < count; i++) {
        uint64_t length = (uint64_t)episodes[i].frames;
        xph_hash_add(&dataset->content, &length, sizeof length);
        xph_hash_add(&dataset->content, &episodes[i].hash, sizeof episodes[i].hash);
        if (episodes[i].block->source) dataset->of_games = true;
    }
    dataset->episodes = dataset->table->episodes;
    dataset->episode_count += count;
    dataset->frames = frames;
    return EXPHIL_OK;
}

exphil_status xph_dataset_snapshot(const exphil_dataset *dataset, exphil_dataset **snapshot,
                                   exphil_error *error)
{
    XPH_TRY(xph_dataset_enter(dataset, error));
    exphil_dataset *made = NULL;
    exphil_status status = new_dataset(dataset->context, dataset->spec, &made, error);
    if (status == EXPHIL_OK) {
        made->table = xph_table_retain(dataset->table);
        made->episodes = dataset->episodes;
        made->episode_count = dataset->episode_count;
        made->frames = dataset->frames;
        made->weights = xph_row_weights_retain(dataset->weights);
        made->returns = xph_row_returns_retain(dataset->returns);
        made->content = dataset->content;
        made->recovered = dataset->recovered;
        made->of_games = dataset->of_games;
        made->conditions = xph_conditions_retain(dataset->conditions);
        *snapshot = made;
    }
    xph_dataset_leave(dataset);
    return status;
}

/* ---- public: create, rows ---------------------------------------------------------------------------- */

exphil_status exphil_dataset_create(exphil_context *context, const exphil_dataset_config *config,
                                    exphil_dataset **dataset, exphil_error *error)
{
    XPH_TRY(xph_context_check(context, error));
    if (!dataset) return xph_fail(error, EXPHIL_E_INVALID, "dataset is NULL");
    exphil_dataset_config known = EXPHIL_DATASET_CONFIG_INIT;
    XPH_TRY(XPH_TAKE(exphil_dataset_config, &known, config, error));
    exphil_spec usual = EXPHIL_SPEC_INIT;
    if (!known.spec) {
        XPH_TRY(exphil_melee_spec(NULL, NULL, &usual, error));
        known.spec = &usual;
    }
    return xph_dataset_new(context, known.spec, dataset, error);
}

void exphil_dataset_destroy(exphil_dataset *dataset)
{
    xph_dataset_release(dataset);
}

static exphil_status check_pointers(const xph_row_shape *shape, const float *floats, const int32_t *ids,
                                    const int32_t *actions, exphil_error *error)
{
    const char *missing = !floats && shape->floats ? "floats"
                          : !ids && shape->ids     ? "ids"
                          : !actions               ? "actions"
                                                   : NULL;
    return missing ? xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", missing) : EXPHIL_OK;
}

/* Actions are checked before they are packed, the rest in place. */
static exphil_status fill_block(const xph_row_shape *shape, xph_block *block, const xph_block_buffer *buffer,
                                const int32_t *actions, exphil_error *error)
{
    for (int64_t t = 0; t < block->frames; t++) {
        const int32_t *action = actions + t * shape->heads;
        XPH_TRY(xph_action_check(shape->spec, action, t, error));
        xph_action_pack(shape, action, buffer->actions + t * shape->action_bytes);
    }
    xph_flaw flaw = xph_rows_flaw(shape, &block->rows, 0, block->frames);
    if (flaw.kind != XPH_FLAW_NONE) return xph_flaw_fail(shape, &flaw, error);
    return xph_rows_hash(shape, block, 0, block->frames, NULL, &block->hash, error);
}

static exphil_status add_rows(exphil_dataset *dataset, uint64_t game, int64_t frames, const float *floats,
                              const int32_t *ids, const int32_t *actions, exphil_error *error)
{
    const xph_row_shape *shape = &dataset->shape;
    xph_block *block;
    xph_block_buffer buffer;
    XPH_TRY(xph_block_create(dataset->context, shape, frames, &block, &buffer, error));
    block->facts = (xph_episode_facts){.game = game, .character = -1, .opponent_character = -1};
    if (floats) memcpy(buffer.floats, floats, (size_t)(frames * shape->floats) * sizeof *floats);
    if (ids) memcpy(buffer.ids, ids, (size_t)(frames * shape->ids) * sizeof *ids);
    exphil_status status = fill_block(shape, block, &buffer, actions, error);
    xph_episode episode = {.block = block, .frames = frames, .hash = block->hash};
    if (status == EXPHIL_OK) status = xph_dataset_append(dataset, &episode, 1, error);
    xph_block_release(block);
    return status;
}

exphil_status exphil_dataset_add_rows(exphil_dataset *dataset, uint64_t game, int64_t frames,
                                      const float *floats, const int32_t *ids, const int32_t *actions,
                                      exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_dataset_enter(dataset, error));
    exphil_status status = check_pointers(&dataset->shape, floats, ids, actions, error);
    if (status == EXPHIL_OK && (frames < 1 || frames > XPH_FRAMES_MAX)) {
        status = xph_fail(error, EXPHIL_E_INVALID, "frames is %lld, must be 1..%lld", (long long)frames,
                          (long long)XPH_FRAMES_MAX);
    }
    if (status == EXPHIL_OK) status = add_rows(dataset, game, frames, floats, ids, actions, error);
    xph_dataset_leave(dataset);
    return status;
}

exphil_status exphil_dataset_condition(exphil_dataset *dataset, const char *name, uint64_t game, int32_t port,
                                       int32_t value, exphil_error *error)
{
    XPH_TRY(xph_dataset_enter(dataset, error));
    exphil_status status = xph_conditions_set_game(dataset, name, game, port, value, error);
    xph_dataset_leave(dataset);
    return status;
}

exphil_status exphil_dataset_condition_episodes(exphil_dataset *dataset, const char *name, int64_t first,
                                                int64_t count, int32_t value, exphil_error *error)
{
    XPH_TRY(xph_dataset_enter(dataset, error));
    exphil_status status = xph_conditions_set_episodes(dataset, name, first, count, value, error);
    xph_dataset_leave(dataset);
    return status;
}

/* ---- public: weights --------------------------------------------------------------------------------- */

#define PORT_MOST    4
#define WEIGHT_LEAST 1e-6
#define WEIGHT_MOST  1000.0

static exphil_status check_weight(int32_t port, int32_t first, int32_t last, double weight,
                                  exphil_error *error)
{
    char text[XPH_DOUBLE_TEXT];
    if (port < 0 || port > PORT_MOST)
        return xph_fail(error, EXPHIL_E_INVALID, "port is %d, must be 0..%d", (int)port, PORT_MOST);
    if (first > last)
        return xph_fail(error, EXPHIL_E_INVALID, "first_frame is %d, behind last_frame %d", (int)first,
                        (int)last);
    if (weight == 0.0 || (weight >= WEIGHT_LEAST && weight <= WEIGHT_MOST)) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "weight is %s, must be 0 or 0.000001..1000",
                    xph_format_double(text, weight, 9));
}

exphil_status exphil_dataset_weight(exphil_dataset *dataset, uint64_t game, int32_t port, int32_t first_frame,
                                    int32_t last_frame, double weight, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_dataset_enter(dataset, error));
    exphil_status status = check_weight(port, first_frame, last_frame, weight, error);
    if (status == EXPHIL_OK)
        status = xph_row_weights_set(dataset->context, &dataset->weights, game, port, first_frame, last_frame,
                                     (float)weight, error);
    xph_dataset_leave(dataset);
    return status;
}

/* ---- public: looking --------------------------------------------------------------------------------- */

exphil_status exphil_dataset_spec(const exphil_dataset *dataset, exphil_spec *spec, exphil_error *error)
{
    XPH_TRY(xph_dataset_enter(dataset, error));
    xph_dataset_leave(dataset); /* a spec never changes */
    return XPH_GIVE(exphil_spec, spec, dataset->spec, error);
}

exphil_status exphil_dataset_episode(const exphil_dataset *dataset, int64_t index, exphil_episode_info *info,
                                     exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_dataset_enter(dataset, error));
    if (index < 0 || index >= dataset->episode_count) {
        exphil_status status = xph_fail(error, EXPHIL_E_INVALID, "index is %lld; there are %lld episodes",
                                        (long long)index, (long long)dataset->episode_count);
        xph_dataset_leave(dataset);
        return status;
    }
    const xph_episode *episode = &dataset->episodes[index];
    const xph_episode_facts *facts = &episode->block->facts;
    bool rows = !facts->port; /* of a host: it has no frame numbers to shift */
    exphil_episode_info now = {.struct_size = sizeof now,
                               .game = facts->game,
                               .first = episode->first,
                               .frames = episode->frames,
                               .first_game_frame =
                                   rows ? 0 : facts->first_game_frame + (int32_t)episode->offset,
                               .port = facts->port,
                               .opponent_port = facts->opponent_port,
                               .stage = facts->stage,
                               .character = facts->character,
                               .opponent_character = facts->opponent_character,
                               .group = facts->group};
    xph_dataset_leave(dataset);
    return XPH_GIVE(exphil_episode_info, info, &now, error);
}
