/* The memory of a running game as its core shows it: by number, or by the addresses of the console's bus. */
#ifndef EXPHIL_CORE_MEMORY_H
#define EXPHIL_CORE_MEMORY_H

#include "core_library.h"

#include <stdint.h>

#define CORE_MEMORY_PARTS 256

struct core_memory {
    const struct core_library *core;
    int id;         /* RETRO_MEMORY_..., or GAME_MAP_BUS */
    unsigned parts; /* what the core has told of its bus, and ... */
    unsigned told;  /* ... how many it had to tell */
    struct retro_memory_descriptor part[CORE_MEMORY_PARTS];
};

/* RETRO_ENVIRONMENT_SET_MEMORY_MAPS. -1: the map points nowhere, and must not be passed on; the bus has no parts then. */
int core_memory_set_bus(struct core_memory *memory, const struct retro_memory_map *map);
/* bytes at an address, or NULL. user: struct core_memory; the form of game_memory_fn. */
const uint8_t *core_memory_at(void *user, uint32_t address, uint32_t bytes);
/* Why there are no bytes at an address. */
void core_memory_missing(const struct core_memory *memory, uint32_t address, char *why, size_t why_bytes);

#endif
