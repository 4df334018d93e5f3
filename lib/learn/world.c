/* Many lanes of one of the library's own games, as a world. */
#include "learn/world.h"

#include <stdio.h>

static const xph_game *const games[] = {&xph_game_cartpole, &xph_game_cartpole_blind, &xph_game_pong,
                                        &xph_game_pong_two};
enum { LANES_MOST = 4096 };

typedef struct lanes {
    exphil_context *context;
    const xph_game *game;
    int64_t count;
    size_t bytes;
    xph_busy *busy;       /* [count] different lanes may be stepped at once, one lane may not */
    unsigned char *state; /* [count, state_bytes] */
} lanes;

/* What the functions say of themselves: no such lane; two threads are in one lane. */
enum { NO_LANE = 1, IN_USE = 2 };

static void *lane_at(lanes *l, int64_t lane)
{
    return l->state + (size_t)lane * l->game->state_bytes;
}

static int32_t leave(lanes *l, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) xph_busy_leave(&l->busy[first + i]);
    return 0;
}

/* All of these lanes, or none. */
static int32_t enter(lanes *l, int64_t first, int64_t count)
{
    if (first < 0 || count < 0 || first > l->count - count) return NO_LANE;
    for (int64_t i = 0; i < count; i++) {
        if (xph_busy_enter(&l->busy[first + i])) continue;
        (void)leave(l, first, i);
        return IN_USE;
    }
    return 0;
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
    int32_t code = enter(l, lane, 1);
    if (code) return code;
    l->game->reset(lane_at(l, lane), seed);
    give_rows(l, lane, floats, ids);
    return leave(l, lane, 1);
}

static int32_t step(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                    int32_t *ids, float *reward, uint8_t *end)
{
    lanes *l = user;
    const xph_game *game = l->game;
    int32_t code = enter(l, first, count);
    if (code) return code;
    for (int64_t i = 0; i < count; i++) {
        end[i] = game->step(lane_at(l, first + i), actions + i * game->seats * game->spec->head_count,
                            reward + i * game->seats);
        give_rows(l, first + i, floats + i * game->seats * game->spec->float_count,
                  ids ? ids + i * game->seats * game->spec->id_count : NULL);
    }
    return leave(l, first, count);
}

static int32_t save(void *user, int64_t lane, void *state)
{
    lanes *l = user;
    int32_t code = enter(l, lane, 1);
    if (code) return code;
    memcpy(state, lane_at(l, lane), l->game->state_bytes);
    return leave(l, lane, 1);
}

static int32_t load(void *user, int64_t lane, const void *state)
{
    lanes *l = user;
    int32_t code = enter(l, lane, 1);
    if (code) return code;
    memcpy(lane_at(l, lane), state, l->game->state_bytes);
    return leave(l, lane, 1);
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

static exphil_status unknown(const char *name, exphil_error *error)
{
    char names[160] = "";
    size_t at = 0;
    for (size_t i = 0; i < sizeof games / sizeof games[0]; i++) {
        int more = snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", games[i]->name);
        if (more < 0 || at + (size_t)more >= sizeof names) break;
        at += (size_t)more;
    }
    return xph_fail(error, EXPHIL_E_INVALID, "there is no world \"%.40s\"; there are %s", name, names);
}

static lanes *cut_all(xph_cutter *c, const xph_game *game, int64_t count)
{
    lanes *l = xph_cut(c, 1, 1, sizeof *l);
    xph_busy *busy = xph_cut(c, count, 1, sizeof *busy);
    unsigned char *state = xph_cut(c, count, (int64_t)game->state_bytes, 1);
    if (l) l->busy = busy, l->state = state;
    return l;
}

exphil_status exphil_world_create(exphil_context *context, const char *name, int64_t count,
                                  exphil_world *world, exphil_error *error)
{
    XPH_TRY(xph_context_check(context, error));
    if (!name || !world) return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", name ? "world" : "name");
    XPH_TRY(xph_world_check_output(world, error));
    const xph_game *game = find(name);
    if (!game) return unknown(name, error);
    if (count < 1 || count > LANES_MOST)
        return xph_fail(error, EXPHIL_E_INVALID, "lanes is %lld, must be 1..%d", (long long)count,
                        LANES_MOST);
    xph_cutter c = {NULL, 0};
    (void)cut_all(&c, game, count);
    const size_t bytes = c.at;
    c = (xph_cutter){xph_calloc(context, 1, bytes), 0};
    if (!c.base) return xph_no_memory(bytes, error);
    lanes *made = cut_all(&c, game, count);
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
    xph_world_give(world, &known);
    return EXPHIL_OK;
}

/* A struct that is all zero is one of the first release that had worlds, and gets its fields. */
exphil_status xph_world_check_output(const exphil_world *world, exphil_error *error)
{
    return world->struct_size ? XPH_CHECK_OUTPUT(exphil_world, world, error) : EXPHIL_OK;
}

void xph_world_give(exphil_world *world, const exphil_world *known)
{
    if (!world->struct_size) world->struct_size = XPH_LEAST(exphil_world);
    (void)XPH_GIVE(exphil_world, world, known, NULL);
}

/* The caller's struct may be shorter than this library's: what is behind its end is somebody else's. */
void exphil_world_destroy(exphil_world *world)
{
    if (!world || xph_world_check_output(world, NULL) < 0) return;
    exphil_world before = {.struct_size = sizeof before};
    const size_t size = world->struct_size;
    memcpy(&before, world, size < sizeof before ? size : sizeof before);
    memset(world, 0, size);
    if (before.destroy) before.destroy(before.user);
}
