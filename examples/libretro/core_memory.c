/* Addresses of the bus go to the core's descriptors by the rules in libretro.h at struct retro_memory_descriptor. */
#include "core_memory.h"

#include "game_map.h"

#include <stdio.h>
#include <string.h>

int core_memory_set_bus(struct core_memory *memory, const struct retro_memory_map *map)
{
    memory->parts = memory->told = 0;
    if (!map || (map->num_descriptors && !map->descriptors)) return -1;
    memory->told = map->num_descriptors;
    memory->parts = memory->told < CORE_MEMORY_PARTS ? memory->told : CORE_MEMORY_PARTS;
    if (memory->parts) memcpy(memory->part, map->descriptors, memory->parts * sizeof *memory->part);
    return 0;
}

/* Of a memory with a number. */
static size_t size_of(const struct core_memory *memory)
{
    if (!memory->core->retro_get_memory_data((unsigned)memory->id)) return 0;
    return memory->core->retro_get_memory_size((unsigned)memory->id);
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

/* All addresses that a part's own bits can tell apart: a mask. */
static size_t space_of(const struct retro_memory_descriptor *part)
{
    size_t space = part->start | part->select;
    for (unsigned shift = 1; shift < 8 * sizeof space; shift *= 2) space |= space >> shift;
    return space;
}

/* Bytes of a part. Where the core names no length, what select and disconnect leave open says it; 0: nothing does. */
static size_t length_of(const struct retro_memory_descriptor *part)
{
    if (part->len) return part->len;
    if (!part->select || (part->start & ~part->select)) return 0;
    return squeeze(space_of(part) & ~part->select, part->disconnect) + 1;
}

/* Offset of an address within a part of length bytes, or -1 when the part does not claim it. Without select the part is
 * where its length says. */
static int64_t offset_in(const struct retro_memory_descriptor *part, size_t length, size_t address)
{
    if (part->select ? ((address ^ part->start) & part->select) != 0
                     : address < part->start || address - part->start >= length)
        return -1;
    if (!part->len && (address & ~space_of(part))) return -1;
    size_t offset = squeeze(address - part->start, part->disconnect);
    while (offset >= length) {
        size_t highest = 1;
        while (highest <= offset / 2) highest *= 2;
        offset -= highest;
    }
    return (int64_t)offset;
}

/* All bytes must lie in one part, one behind the other. An offset grows by 1 at most from an address to the next, so the
 * first and the last tell it of all. */
static const uint8_t *on_bus(const struct core_memory *memory, uint32_t address, uint32_t bytes)
{
    for (unsigned i = 0; i < memory->parts; i++) {
        const struct retro_memory_descriptor *part = &memory->part[i];
        size_t length = length_of(part), more = bytes ? bytes - 1 : 0;
        int64_t offset = length ? offset_in(part, length, address) : -1;
        if (offset < 0) continue;
        if (!part->ptr || offset_in(part, length, address + more) != offset + (int64_t)more) return NULL;
        return (const uint8_t *)part->ptr + part->offset + offset;
    }
    return NULL;
}

static void number_missing(const struct core_memory *memory, char *why, size_t why_bytes)
{
    const char *name = game_map_memory_name(memory->id);
    size_t size = size_of(memory);
    char number[16];
    snprintf(number, sizeof number, "%d", memory->id);
    if (!name) name = number;
    if (size)
        snprintf(why, why_bytes, "'%s' has 0x%zX bytes; try another 'memory'", name, size);
    else
        snprintf(why, why_bytes, "this core shows no memory '%s'; try another 'memory'", name);
}

void core_memory_missing(const struct core_memory *memory, uint32_t address, char *why, size_t why_bytes)
{
    if (memory->id != GAME_MAP_BUS) {
        number_missing(memory, why, why_bytes);
        return;
    }
    for (unsigned i = 0; i < memory->parts; i++) {
        const struct retro_memory_descriptor *part = &memory->part[i];
        if (!part->ptr || length_of(part) || address < part->start) continue;
        snprintf(why, why_bytes, "of the 'bus' there the core does not tell the size; try another 'memory'");
        return;
    }
    if (memory->told > memory->parts)
        snprintf(why, why_bytes,
                 "of the %u parts of its 'bus' that the core shows only the first %u are looked at",
                 memory->told, memory->parts);
    else
        snprintf(why, why_bytes, "the core shows no memory of its 'bus' there%s",
                 memory->parts ? "" : ", nor anywhere; try another 'memory'");
}

const uint8_t *core_memory_at(void *user, uint32_t address, uint32_t bytes)
{
    const struct core_memory *memory = user;
    if (memory->id == GAME_MAP_BUS) return on_bus(memory, address, bytes);
    const uint8_t *data = memory->core->retro_get_memory_data((unsigned)memory->id);
    size_t size = size_of(memory);
    return data && size >= bytes && address <= size - bytes ? data + address : NULL;
}
