/* The functions of exphil_world over lanes. */
#include "world.h"

#include <stdlib.h>
#include <string.h>

struct frame {
    struct world *world;
    int64_t first;
    const int32_t *actions;
    float *floats, *reward;
    int32_t *ids;
    uint8_t *end;
};

static int32_t reset(void *user, int64_t lane, uint64_t seed, float *floats, int32_t *ids)
{
    return world_lane_reset(user, lane, seed, floats, ids);
}

static int32_t step_one(void *user, int64_t index)
{
    const struct frame *f = user;
    const struct game_map *map = &f->world->map[0];
    const int64_t seat = index * f->world->seats;
    return world_lane_step(f->world, f->first + index, f->actions + seat * map->heads,
                           f->floats + seat * map->floats, f->ids + seat * map->ids, f->reward + seat,
                           f->end + index);
}

static int32_t step(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                    int32_t *ids, float *reward, uint8_t *end)
{
    struct world *world = user;
    struct frame frame = {world, first, actions, floats, reward, ids, end};
    return world_crew_run(world->crew, count, step_one, &frame);
}

/* A game: the episode so far, and the core's own state. */
static int32_t save(void *user, int64_t lane, void *state)
{
    struct world *world = user;
    struct lane *l = &world->lane[lane];
    memcpy(state, &l->now, sizeof l->now);
    return core_host_save(&l->host, (unsigned char *)state + sizeof l->now, world->state_bytes);
}

static int32_t load(void *user, int64_t lane, const void *state)
{
    struct world *world = user;
    struct lane *l = &world->lane[lane];
    if (core_host_load(&l->host, (const unsigned char *)state + sizeof l->now, world->state_bytes)) return -1;
    memcpy(&l->now, state, sizeof l->now);
    return 0;
}

void world_fill(struct world *made, exphil_world *world)
{
    *world = (exphil_world){.struct_size = sizeof *world,
                            .user = made,
                            .spec = &made->map[0].spec,
                            .lanes = made->lanes,
                            .seats = made->seats,
                            .state_bytes = sizeof(struct lane_episode) + made->state_bytes,
                            .reset = reset,
                            .step = step,
                            .save = save,
                            .load = load,
                            .destroy = world_free};
}
