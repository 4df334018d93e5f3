/* What an entry of the index can say, and what makes two games the same. */
#include "games/format.h"

bool xph_game_fits(const xph_game_entry *entry)
{
    uint64_t events =
        (uint64_t)entry->records * 91 + (uint64_t)entry->items * 38 + (uint64_t)entry->frames * 10;
    return events <= XPH_GAMES_EVENTS_MOST;
}

const char *xph_game_entry_wrong(const xph_game_entry *entry)
{
    uint64_t front = xph_game_head_bytes(entry) + xph_game_table_bytes(entry);
    uint64_t blocks = (uint64_t)xph_game_blocks(entry->frames) * sizeof(xph_game_block_header);
    if (!entry->frames) return "a game without frames";
    if (!xph_game_fits(entry)) return "a game of more than a replay can hold";
    if (entry->records > (uint64_t)entry->frames * XPH_GAME_SLOTS) return "more records than frames";
    if (entry->items > (uint64_t)entry->frames * XPH_GAME_ITEMS) return "more items than its frames hold";
    if (front + blocks > entry->bytes) return "a game with too few bytes for its frames";
    if (entry->raw_most > XPH_GAMES_RAW_MOST) return "a block of more than 1 MiB";
    if (entry->first_frame <= -EXPHIL_SLP_FRAME_LIMIT || entry->last_frame >= EXPHIL_SLP_FRAME_LIMIT ||
        (int64_t)entry->last_frame - entry->first_frame + 1 < (int64_t)entry->frames)
        return "a game with impossible frame numbers";
    if (entry->runs > (uint64_t)entry->frames * EXPHIL_SLP_PORTS) return "more runs than frames";
    if (entry->winner > EXPHIL_SLP_PORTS) return "an impossible winner";
    for (int32_t i = 0; i < EXPHIL_SLP_PORTS; i++)
        if (entry->port[i].whole > 1) return "a port neither whole nor not";
    return NULL;
}

uint64_t xph_game_content(const xph_game_entry *entry, const xph_game_start *start,
                          const xph_game_place *places)
{
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    xph_hash_add(&hasher, "game\0\0\0", 8);
    xph_hash_add(&hasher, &entry->seed, sizeof entry->seed);
    xph_hash_add(&hasher, &entry->fields, sizeof entry->fields);
    xph_hash_add(&hasher, &entry->stage, sizeof entry->stage);
    xph_hash_add(&hasher, &entry->game_mode, sizeof entry->game_mode);
    xph_hash_add(&hasher, &entry->teams, sizeof entry->teams);
    for (int32_t i = 0; i < EXPHIL_SLP_PORTS; i++)
        xph_hash_add(&hasher, &entry->port[i], offsetof(xph_game_port, whole));
    xph_hash_add(&hasher, start->port, sizeof start->port);
    for (uint32_t k = 0; k < xph_game_blocks(entry->frames); k++)
        xph_hash_add(&hasher, &places[k].raw_hash, sizeof places[k].raw_hash);
    return xph_hash_end(&hasher);
}

exphil_status xph_games_damaged(const xph_shared_file *file, uint64_t offset, const char *what,
                                exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_FORMAT, "\"%s\" byte %llu: %s", file->name, (unsigned long long)offset,
                    what);
}

exphil_status xph_game_damaged(const xph_shared_file *file, int64_t game, uint64_t offset, const char *what,
                               exphil_error *error)
{
    if (game < 0) return xph_games_damaged(file, offset, what, error);
    return xph_fail(error, EXPHIL_E_FORMAT, "\"%s\" game %lld, byte %llu: %s", file->name, (long long)game,
                    (unsigned long long)offset, what);
}
