/* Many lanes of one of the library's own games, as a world. */
#include "learn/world.h"

static const xph_game *const games[] = {&xph_game_cartpole, &xph_game_cartpole_blind, &xph_game_pong,
                                        &xph_game_pong_two};
enum { LANES_MOST = 4096 };

typedef struct lanes {
    exphil_context *context;
    const xph_game *game;
    int64_t count;
    size_t bytes;
    unsigned char state[]; /* [count, state_bytes] */
} lanes;

static void *lane_at(lanes *l, int64_t lane)
{
    return l->state + (size_t)lane * l->game->state_bytes;
}

static void give_rows(lanes *l, int64_t lane, float *floats, int32_t *ids)
{
    const xph_game *game = l->game;
    for (int64_t s = 0; s < game->seats; s++)
        game->row(lane_at(l, lane), s, floats + s * game->spec->float_count,
                  ids ? ids + s * game->spec->id_count : NULL);
}

static int32_t reset(void *user, int64_t lane, uint64_t seed, float *floats, int32_t *ids)
{
    lanes *l = user;
    if (lane < 0 || lane >= l->count) return 1;
    l->game->reset(lane_at(l, lane), seed);
    give_rows(l, lane, floats, ids);
    return 0;
}

static int32_t step(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                    int32_t *ids, float *reward, uint8_t *end)
{
    lanes *l = user;
    const xph_game *game = l->game;
    if (first < 0 || count < 0 || first > l->count - count) return 1;
    for (int64_t i = 0; i < count; i++) {
        end[i] = game->step(lane_at(l, first + i), actions + i * game->seats * game->spec->head_count,
                            reward + i * game->seats);
        give_rows(l, first + i, floats + i * game->seats * game->spec->float_count,
                  ids ? ids + i * game->seats * game->spec->id_count : NULL);
    }
    return 0;
}

static int32_t save(void *user, int64_t lane, void *state)
{
    lanes *l = user;
    if (lane < 0 || lane >= l->count) return 1;
    memcpy(state, lane_at(l, lane), l->game->state_bytes);
    return 0;
}

static int32_t load(void *user, int64_t lane, const void *state)
{
    lanes *l = user;
    if (lane < 0 || lane >= l->count) return 1;
    memcpy(lane_at(l, lane), state, l->game->state_bytes);
    return 0;
}

static void end(void *user)
{
    lanes *l = user;
    exphil_context *context = l->context;
    xph_free(context, l, l->bytes);
    xph_context_release(context);
}

static const xph_game *find(const char *name)
{
    for (size_t i = 0; i < sizeof games / sizeof games[0]; i++)
        if (strcmp(games[i]->name, name) == 0) return games[i];
    return NULL;
}

exphil_status exphil_world_create(exphil_context *context, const char *name, int64_t count,
                                  exphil_world *world, exphil_error *error)
{
    XPH_TRY(xph_context_check(context, error));
    if (!name || !world) return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", name ? "world" : "name");
    const xph_game *game = find(name);
    if (!game) return xph_fail(error, EXPHIL_E_INVALID, "there is no world \"%.40s\"", name);
    if (count < 1 || count > LANES_MOST)
        return xph_fail(error, EXPHIL_E_INVALID, "lanes is %lld, must be 1..%d", (long long)count,
                        LANES_MOST);
    size_t bytes = sizeof(lanes) + (size_t)count * game->state_bytes;
    lanes *made = xph_calloc(context, 1, bytes);
    if (!made) return xph_no_memory(bytes, error);
    made->context = xph_context_retain(context);
    made->game = game;
    made->count = count;
    made->bytes = bytes;
    const exphil_world known = {.struct_size = sizeof known,
                                .user = made,
                                .spec = game->spec,
                                .lanes = count,
                                .seats = game->seats,
                                .state_bytes = game->state_bytes,
                                .reset = reset,
                                .step = step,
                                .save = save,
                                .load = load,
                                .destroy = end};
    *world = known;
    return EXPHIL_OK;
}

void exphil_world_destroy(exphil_world *world)
{
    if (!world) return;
    const exphil_world before = *world;
    memset(world, 0, sizeof *world);
    if (before.destroy) before.destroy(before.user);
}
