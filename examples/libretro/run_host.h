/* A frontend without a screen: one core, one game, pads of its own. Used by the runner. */
#ifndef EXPHIL_RUN_HOST_H
#define EXPHIL_RUN_HOST_H

#include "core_library.h"
#include "core_memory.h"
#include "game_map.h"

#define RUN_PORTS   16
#define RUN_OPTIONS 16

struct run_host {
    struct core_library core;
    struct core_memory memory;
    struct game_press pad[RUN_PORTS]; /* what is held */
    const char *option_name[RUN_OPTIONS], *option_value[RUN_OPTIONS];
    int options, verbose;
    enum retro_pixel_format form;
    unsigned width, height;
    uint8_t *points; /* the latest picture, a byte a point as run_picture has it */
    void *game;
};

extern struct run_host host;

/* 0: the game runs. Else it has been told why not. */
int run_host_open(const char *core, const char *game);
/* -1: the plugin, if the core is one, has told an error. */
int run_host_close(void);
uint64_t run_host_hash(uint64_t before); /* goes on from before; of the system's memory */

#endif
