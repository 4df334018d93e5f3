/* One lane: presses, a frame of its core, what came of it. */
#include "world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WAIT_MOST 600 /* frames without presses, until the map says that the game runs */

enum { FAILED_STATE = 1, FAILED_READY, FAILED_ROW, FAILED_NUMBER };

static int32_t complain(int64_t lane, int32_t code, const char *what)
{
    fprintf(stderr, "exphil-world-libretro: lane %lld: %s\n", (long long)lane, what);
    return code;
}

/* ---- rows --------------------------------------------------------------------------------------------------------------- */

/* values [seats][fields]. 0: the game runs as every map wants it. */
static int read_all(struct world *world, struct core_host *host, double values[][GAME_MAP_FIELDS])
{
    int missing;
    for (int64_t s = 0; s < world->seats; s++)
        if (core_host_read(host, &world->map[s], values[s], &missing)) return -1;
    return 0;
}

static int32_t give_rows(struct world *world, int64_t lane, double values[][GAME_MAP_FIELDS], float *floats,
                         int32_t *ids)
{
    for (int64_t s = 0; s < world->seats; s++) {
        const struct game_map *map = &world->map[s];
        char why[128];
        int wrong;
        if (!game_map_row(map, values[s], floats + s * map->floats, ids + s * map->ids, &wrong)) continue;
        snprintf(why, sizeof why, "'%s' is %g, which no row can have", map->field[wrong].name,
                 values[s][wrong]);
        return complain(lane, FAILED_ROW, why);
    }
    return 0;
}

/* ---- the start of an episode -------------------------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea & Flood 2014). */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static int64_t draw_below(uint64_t *state, int64_t count)
{
    return (int64_t)((draw(state) >> 32) * (uint64_t)count >> 32);
}

/* The first seat's map says what is drawn. */
static int32_t take_chance(struct world *world, struct core_host *host, uint64_t *random)
{
    const struct game_map *map = &world->map[0];
    const struct game_goals *goals = &map->goals;
    if (goals->chance < 0) return 0;
    host->memory.id = map->memory;
    /* memory of the core that it shows for writing, too: cheats do */
    uint8_t *byte = (uint8_t *)(uintptr_t)core_memory_at(&host->memory, map->field[goals->chance].address, 1);
    if (!byte) return FAILED_READY;
    int32_t least = goals->chance_range[0];
    *byte = (uint8_t)(least + draw_below(random, goals->chance_range[1] - least + 1));
    return 0;
}

static void begin_episode(struct world *world, struct lane_episode *now, double values[][GAME_MAP_FIELDS])
{
    memset(now, 0, sizeof *now);
    for (int64_t s = 0; s < world->seats; s++) {
        const struct game_map *map = &world->map[s];
        for (int side = 0; side < 2 && map->score[0] >= 0; side++)
            now->points[s][side] = values[s][map->score[side]];
        for (int i = 0; i < map->goals.rewards; i++)
            now->rewards[s][i] = values[s][map->goals.reward[i].field];
        if (map->episode >= 0) now->episode[s] = values[s][map->episode];
    }
}

int32_t world_lane_reset(struct world *world, int64_t lane, uint64_t seed, float *floats, int32_t *ids)
{
    struct lane *l = &world->lane[lane];
    double values[WORLD_SEATS][GAME_MAP_FIELDS];
    char why[WORLD_MESSAGE];
    if (core_host_load(&l->host, world->begin, world->state_bytes))
        return complain(lane, FAILED_STATE, "the core refuses its own state");
    memset(l->host.pad, 0, sizeof l->host.pad);
    if (take_chance(world, &l->host, &seed))
        return complain(lane, FAILED_READY, "the field of 'chance' cannot be written");
    for (int64_t idle = draw_below(&seed, world->map[0].goals.idle + 1); idle > 0; idle--)
        core_host_frame(&l->host);
    for (int waited = 0; read_all(world, &l->host, values); waited++) {
        core_host_unready(&l->host, &world->map[0], why, sizeof why);
        if (waited == WAIT_MOST) return complain(lane, FAILED_READY, why);
        core_host_frame(&l->host);
    }
    begin_episode(world, &l->now, values);
    return give_rows(world, lane, values, floats, ids);
}

/* ---- a frame ------------------------------------------------------------------------------------------------------------ */

static void press_all(struct world *world, struct core_host *host, const int32_t *actions)
{
    memset(host->pad, 0, sizeof host->pad);
    for (int64_t s = 0; s < world->seats; s++) {
        const struct game_map *map = &world->map[s];
        struct game_press press, *pad = &host->pad[map->port - 1];
        game_map_press(map, actions + s * map->heads, &press);
        pad->buttons |= press.buttons;
        for (int i = 0; i < GAME_MAP_AXES; i++)
            if (press.given & 1u << i) pad->axis[i] = press.axis[i];
    }
}

static double reward_of(const struct game_map *map, const double *values, double *points, double *rewards)
{
    double sum = 0;
    for (int i = 0; i < map->goals.rewards; i++) {
        double value = values[map->goals.reward[i].field];
        sum += map->goals.reward[i].factor * (value - rewards[i]);
        rewards[i] = value;
    }
    if (map->goals.rewards || map->score[0] < 0) return sum;
    int64_t own = game_map_points(values[map->score[0]], &points[0]);
    return (double)(own - game_map_points(values[map->score[1]], &points[1]));
}

/* An episode is over where a goal says so, and where the field of `episode` changes. */
static int is_over(const struct world *world, const struct lane_episode *now,
                   double values[][GAME_MAP_FIELDS])
{
    for (int64_t s = 0; s < world->seats; s++) {
        const struct game_map *map = &world->map[s];
        if (game_map_over(map, values[s])) return 1;
        if (map->episode >= 0 && values[s][map->episode] != now->episode[s]) return 1;
    }
    return 0;
}

/* A game that does not run any more, by its map, is over: what its memory says then is no row, and counts for nothing. */
int32_t world_lane_step(struct world *world, int64_t lane, const int32_t *actions, float *floats,
                        int32_t *ids, float *reward, uint8_t *end)
{
    struct lane *l = &world->lane[lane];
    const struct game_goals *goals = &world->map[0].goals;
    double values[WORLD_SEATS][GAME_MAP_FIELDS];
    press_all(world, &l->host, actions);
    core_host_frame(&l->host);
    l->now.frames++;
    for (int64_t s = 0; s < world->seats; s++) reward[s] = 0.0f;
    *end = EXPHIL_OVER;
    if (read_all(world, &l->host, values)) return 0;
    for (int64_t s = 0; s < world->seats; s++) {
        double sum = reward_of(&world->map[s], values[s], l->now.points[s], l->now.rewards[s]);
        if (!isfinite((float)sum)) return complain(lane, FAILED_NUMBER, "the reward of a frame is no number");
        reward[s] = (float)sum;
    }
    int late = goals->most_frames && l->now.frames >= goals->most_frames;
    if (!is_over(world, &l->now, values)) *end = late ? EXPHIL_CUT_OFF : EXPHIL_GOES_ON;
    return give_rows(world, lane, values, floats, ids);
}
