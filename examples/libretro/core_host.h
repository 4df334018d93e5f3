/* A frontend without a screen: one core, one game, pads of its own. libretro's callbacks do not say whose they are: the calls
 * below note it for their thread, so several hosts, each with a core of its own, run in one process, also at once. */
#ifndef EXPHIL_CORE_HOST_H
#define EXPHIL_CORE_HOST_H

#include "core_library.h"
#include "core_memory.h"
#include "game_map.h"

#define CORE_PORTS   16
#define CORE_OPTIONS 16

struct core_host {
    struct core_library core;
    struct core_memory memory;
    struct game_press pad[CORE_PORTS]; /* what is held */
    const char *option_name[CORE_OPTIONS], *option_value[CORE_OPTIONS];
    int options, verbose;
    int blind; /* no picture and no sound is wanted */
    enum retro_pixel_format form;
    unsigned width, height;
    uint8_t *points; /* the latest picture, a byte a point as run_picture has it */
    void *game;
    int loaded;
};

/* 0: the game runs. Options and wishes stand in host before, all else is zero; after a failure core_host_close is called
 * too. */
int core_host_open(struct core_host *host, const char *core, const char *game, char *message,
                   size_t message_bytes);
/* One frame, with the pads as they are held. */
void core_host_frame(struct core_host *host);
/* 0: done. */
int core_host_save(struct core_host *host, void *state, size_t bytes);
int core_host_load(struct core_host *host, const void *state, size_t bytes);
/* -1: the plugin, if the core is one, has told an error. */
int core_host_close(struct core_host *host);
uint64_t core_host_hash(const struct core_host *host,
                        uint64_t before); /* goes on from before; of the system's memory */

/* All fields of a map as they stand in this game; 0: the game runs as the map wants it. -1: not so; *missing is a field that
 * cannot be read, or -1. */
int core_host_read(struct core_host *host, const struct game_map *map, double *values, int *missing);
/* Why core_host_read says -1. */
void core_host_unready(struct core_host *host, const struct game_map *map, char *why, size_t why_bytes);

#endif
