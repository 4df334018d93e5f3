/* Games of a libretro core as a world to learn in: for each lane a core of its own, whose memory is read by maps.
 *
 *   world.c         the functions of exphil_world       world_open.c    arguments, cores, the state where episodes begin
 *   world_lane.c    one lane: a frame, its reward       world_crew.c    threads that step lanes */
#ifndef EXPHIL_LIBRETRO_WORLD_H
#define EXPHIL_LIBRETRO_WORLD_H

#include "core_host.h"

#include <exphil/learn.h>
#include <stdatomic.h>

#define WORLD_SEATS   4
#define WORLD_LANES   256
#define WORLD_MESSAGE 1024

/* Where an episode stands: with the core's state all that a lane is. */
struct lane_episode {
    int64_t frames;
    double points[WORLD_SEATS][2];
    double rewards[WORLD_SEATS][GAME_MAP_CONDITIONS]; /* the fields as they stood */
    double episode[WORLD_SEATS];                      /* likewise */
};

struct lane {
    struct core_host host;
    struct lane_episode now;
};

struct world_crew;

struct world {
    const char *core, *rom, *start, *map_path[WORLD_SEATS];
    struct game_map map[WORLD_SEATS];
    int64_t lanes, seats, threads;
    struct lane *lane;
    char *arguments; /* what the paths point into */
    const char *option_name[CORE_OPTIONS], *option_value[CORE_OPTIONS];
    int options;
    unsigned char *begin; /* the state from which episodes begin */
    size_t state_bytes;   /* of a core */
    struct world_crew *crew;
};

/* What a lane is asked to do in world_crew_run; 0: done. */
typedef int32_t (*world_job)(void *user, int64_t index);

/* threads of them, the caller among them. NULL: there is no memory, or no thread. */
struct world_crew *world_crew_make(int64_t threads);
/* Each index below count once, by any of the threads; what failed first by index, or 0. */
int32_t world_crew_run(struct world_crew *crew, int64_t count, world_job job, void *user);
void world_crew_free(struct world_crew *crew);

void world_fill(struct world *made, exphil_world *world);
void world_free(void *world);

/* Arrays are of this lane: [seats, ...]. 0, or it is said on the error stream. */
int32_t world_lane_reset(struct world *world, int64_t lane, uint64_t seed, float *floats, int32_t *ids);
int32_t world_lane_step(struct world *world, int64_t lane, const int32_t *actions, float *floats,
                        int32_t *ids, float *reward, uint8_t *end);

#endif
