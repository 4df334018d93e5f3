/* Addresses of the bus go to the core's descriptors by the rules in libretro.h at struct retro_memory_descriptor. */
#include "core_memory.h"

#include "game_map.h"

#include <string.h>

void core_memory_set_bus(struct core_memory *memory, const struct retro_memory_map *map)
{
    memory->parts = map->num_descriptors < CORE_MEMORY_PARTS ? map->num_descriptors : CORE_MEMORY_PARTS;
    memcpy(memory->part, map->descriptors, memory->parts * sizeof *memory->part);
}

/* Takes the bits of disconnect out of the address; those above move down. */
static size_t squeeze(size_t address, size_t disconnect)
{
    while (disconnect) {
        size_t lowest = disconnect & (~disconnect + 1), below = lowest - 1;
        address = (address & below) | ((address >> 1) & ~below);
        disconnect = (disconnect & ~lowest) >> 1;
    }
    return address;
}

/* Offset of an address within a part, or -1 when the part does not claim it. Without select the part is where its length
 * says. */
static int64_t offset_in(const struct retro_memory_descriptor *part, size_t address)
{
    if (part->select ? ((address ^ part->start) & part->select) != 0
                     : address < part->start || (part->len && address - part->start >= part->len))
        return -1;
    size_t offset = squeeze(address - part->start, part->disconnect);
    while (part->len && offset >= part->len) {
        size_t highest = 1;
        while (highest <= offset / 2) highest *= 2;
        offset -= highest;
    }
    return (int64_t)offset;
}

static const uint8_t *on_bus(const struct core_memory *memory, uint32_t address, uint32_t bytes)
{
    for (unsigned i = 0; i < memory->parts; i++) {
        const struct retro_memory_descriptor *part = &memory->part[i];
        int64_t offset = offset_in(part, address);
        if (offset < 0) continue;
        if (!part->ptr || (part->len && (uint64_t)offset + bytes > part->len)) return NULL;
        return (const uint8_t *)part->ptr + part->offset + offset;
    }
    return NULL;
}

const uint8_t *core_memory_at(void *user, uint32_t address, uint32_t bytes)
{
    const struct core_memory *memory = user;
    if (memory->id == GAME_MAP_BUS) return on_bus(memory, address, bytes);
    const uint8_t *data = memory->core->retro_get_memory_data((unsigned)memory->id);
    size_t size = memory->core->retro_get_memory_size((unsigned)memory->id);
    return data && size >= bytes && address <= size - bytes ? data + address : NULL;
}
