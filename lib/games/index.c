/* An open corpus of games as a whole: its references, its counts, the entries of its index. */
#include "games/format.h"

/* ---- the handle -------------------------------------------------------------------------------------------- */

exphil_games *xph_games_retain(const exphil_games *games)
{
    exphil_games *kept = (exphil_games *)(uintptr_t)games;
    atomic_fetch_add(&kept->references, 1);
    return kept;
}

void xph_games_release(exphil_games *games)
{
    if (!games || atomic_fetch_sub(&games->references, 1) != 1) return;
    exphil_context *context = games->context;
    for (int64_t i = 0; i < games->shard_capacity; i++) {
        xph_shard *shard = &games->shards[i];
        xph_free(context, shard->offsets, (size_t)shard->capacity * sizeof *shard->offsets);
        xph_shared_release(shard->file);
    }
    xph_free(context, games->shards, (size_t)games->shard_capacity * sizeof *games->shards);
    xph_free(context, games, sizeof *games);
    xph_context_release(context);
}

void exphil_games_destroy(exphil_games *games)
{
    xph_games_release(games);
}

exphil_context *xph_games_context(const exphil_games *games)
{
    return games->context;
}

exphil_status exphil_games_query(const exphil_games *games, exphil_games_info *info, exphil_error *error)
{
    if (!games) return xph_fail(error, EXPHIL_E_INVALID, "games is NULL");
    return XPH_GIVE(exphil_games_info, info, &games->info, error);
}

/* ---- entries ----------------------------------------------------------------------------------------------- */

/* Where an entry is read. */
static uint64_t entry_byte(const xph_shard *shard, int64_t game)
{
    return shard->offsets ? shard->offsets[game] : shard->index + (uint64_t)game * sizeof(xph_game_entry);
}

static const xph_shard *shard_of(const exphil_games *games, int64_t game)
{
    int64_t low = 0, high = games->shard_count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (games->shards[middle].first <= game)
            low = middle;
        else
            high = middle;
    }
    return &games->shards[low];
}

const char *xph_games_file(const exphil_games *games, int64_t game)
{
    return game >= 0 && game < games->info.games ? shard_of(games, game)->file->name : NULL;
}

exphil_status xph_games_find(const exphil_games *games, int64_t game, const xph_shard **shard,
                             uint64_t *offset, exphil_error *error)
{
    if (game < 0 || game >= games->info.games)
        return xph_fail(error, EXPHIL_E_INVALID, "index is %lld; there are %lld games", (long long)game,
                        (long long)games->info.games);
    const xph_shard *found = *shard = shard_of(games, game);
    int64_t i = game - found->first;
    if (found->offsets) {
        *offset = found->offsets[i];
        return EXPHIL_OK;
    }
    xph_game_entry entry;
    XPH_TRY(xph_shared_read(found->file, entry_byte(found, i), &entry, sizeof entry, error));
    const char *wrong = xph_game_entry_wrong(&entry);
    if (wrong) return xph_game_damaged(found->file, game, entry_byte(found, i), wrong, error);
    *offset = entry.offset;
    return EXPHIL_OK;
}

enum { AT_ONCE = 64 };

static exphil_status read_entries(const xph_shard *shard, int64_t first, int64_t count,
                                  xph_game_entry *entries, exphil_error *error)
{
    if (!shard->offsets)
        return xph_shared_read(shard->file, shard->index + (uint64_t)first * sizeof *entries, entries,
                               (size_t)count * sizeof *entries, error);
    for (int64_t i = 0; i < count; i++)
        XPH_TRY(
            xph_shared_read(shard->file, shard->offsets[first + i], &entries[i], sizeof entries[i], error));
    return EXPHIL_OK;
}

exphil_status xph_games_entry(const exphil_games *games, int64_t game, xph_game_entry *entry,
                              exphil_error *error)
{
    const xph_shard *shard;
    uint64_t offset;
    XPH_TRY(xph_games_find(games, game, &shard, &offset, error));
    return read_entries(shard, game - shard->first, 1, entry, error);
}

exphil_status xph_games_each(const exphil_games *games, xph_games_fn fn, void *arg, exphil_error *error)
{
    xph_game_entry entries[AT_ONCE];
    for (int64_t s = 0; s < games->shard_count; s++) {
        const xph_shard *shard = &games->shards[s];
        for (int64_t i = 0; i < shard->games; i += AT_ONCE) {
            int64_t count = shard->games - i < AT_ONCE ? shard->games - i : AT_ONCE;
            XPH_TRY(read_entries(shard, i, count, entries, error));
            for (int64_t k = 0; k < count; k++) {
                const char *wrong = xph_game_entry_wrong(&entries[k]); /* the file may have changed */
                if (wrong)
                    return xph_game_damaged(shard->file, shard->first + i + k, entry_byte(shard, i + k),
                                            wrong, error);
                XPH_TRY(fn(arg, shard->first + i + k, &entries[k], error));
            }
        }
    }
    return EXPHIL_OK;
}
