/* Save states. Behind the core's own bytes stand ours: the session's block, then a tail that says where the game stood and
 * how long our part is. So a state with our part is known by its end, whatever core and weights it is from, and loading a
 * state, rewind, run-ahead and rollback give the same presses again. */
#include "plugin.h"

#include <string.h>

static const char tail_magic[8] = {'e', 'x', 'p', 'h', 'r', 'e', 't', '1'};

struct state_tail {
    struct plugin_game game;
    uint64_t weights;
    uint64_t hash;       /* of all of it, with 0 here: what is damaged is not ours */
    uint64_t part_bytes; /* of the session's block and this tail */
    char magic[8];
};

/* 64-bit FNV-1a. */
static uint64_t hash_of(const uint8_t *bytes, size_t count, uint64_t hash)
{
    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001B3u;
    return hash;
}

static uint64_t hash_of_part(const uint8_t *block, struct state_tail tail)
{
    tail.hash = 0;
    uint64_t hash = hash_of(block, (size_t)tail.part_bytes - sizeof tail, 0xCBF29CE484222325u);
    return hash_of((const uint8_t *)&tail, sizeof tail, hash);
}

size_t plugin_state_bytes(void)
{
    return plugin.player.session ? sizeof(struct state_tail) + (size_t)plugin.player.info.state_bytes : 0;
}

void plugin_state_save(void *part)
{
    struct state_tail tail;
    size_t block_bytes = (size_t)plugin.player.info.state_bytes;
    memset(&tail, 0, sizeof tail);
    tail.game = plugin.game;
    tail.weights = plugin.player.weights;
    tail.part_bytes = plugin_state_bytes();
    memcpy(tail.magic, tail_magic, sizeof tail_magic);
    if (exphil_session_state_save(plugin.player.session, 0, part, block_bytes) < 0)
        memset(tail.magic, 0, sizeof tail.magic); /* read back as a state from elsewhere */
    tail.hash = hash_of_part(part, tail);
    memcpy((uint8_t *)part + block_bytes, &tail, sizeof tail);
}

size_t plugin_state_find(const void *state, size_t bytes)
{
    struct state_tail tail;
    if (bytes < sizeof tail) return 0;
    memcpy(&tail, (const uint8_t *)state + bytes - sizeof tail, sizeof tail);
    if (memcmp(tail.magic, tail_magic, sizeof tail_magic) != 0) return 0;
    if (tail.part_bytes < sizeof tail || tail.part_bytes > bytes) return 0;
    const uint8_t *part = (const uint8_t *)state + bytes - tail.part_bytes;
    return hash_of_part(part, tail) == tail.hash ? (size_t)tail.part_bytes : 0;
}

static void start_anew(const char *why)
{
    if (!plugin.foreign_told) plugin_say(RETRO_LOG_WARN, "%s: the policy starts anew", why);
    plugin.foreign_told = 1;
    plugin_new_start();
}

void plugin_state_restore(const void *part, size_t bytes)
{
    struct state_tail tail;
    size_t block_bytes = (size_t)plugin.player.info.state_bytes;
    plugin_trace_end("a state that was loaded");
    if (!plugin.player.session) {
        plugin_new_start();
        return;
    }
    if (bytes == 0) {
        start_anew("the state has no whole part of this plugin");
        return;
    }
    memcpy(&tail, (const uint8_t *)part + bytes - sizeof tail, sizeof tail);
    if (bytes != plugin_state_bytes() || tail.weights != plugin.player.weights ||
        exphil_session_state_restore(plugin.player.session, 0, part, block_bytes) < 0) {
        start_anew("the state is of other weights");
        return;
    }
    plugin.game = tail.game;
    plugin.game.running = tail.game.running != 0;
}
