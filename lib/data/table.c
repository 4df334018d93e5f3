/* Tables of episodes, which datasets share as long as none of them is added to: episodes by number and by frame, and
 * the distinct games. */
#include "data/dataset.h"

void *xph_grow(exphil_context *context, void *items, int64_t *capacity, int64_t need, size_t item_bytes,
               exphil_error *error)
{
    if (items && need <= *capacity) return items;
    int64_t more = *capacity + *capacity / 2;
    if (more < need) more = need;
    if (more < 16) more = 16;
    size_t bytes = SIZE_MAX;
    void *grown = xph_size_mul((size_t)more, item_bytes, &bytes) ? xph_alloc(context, bytes) : NULL;
    if (!grown) {
        xph_no_memory(bytes, error);
        return NULL;
    }
    if (items) memcpy(grown, items, (size_t)*capacity * item_bytes);
    xph_free(context, items, (size_t)*capacity * item_bytes);
    *capacity = more;
    return grown;
}

exphil_status xph_table_create(exphil_context *context, xph_table **table, exphil_error *error)
{
    xph_table *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->references = 1;
    made->salt = xph_salt(made);
    *table = made;
    return EXPHIL_OK;
}

xph_table *xph_table_retain(xph_table *table)
{
    atomic_fetch_add(&table->references, 1);
    return table;
}

void xph_table_release(xph_table *table)
{
    if (!table || atomic_fetch_sub(&table->references, 1) != 1) return;
    exphil_context *context = table->context;
    for (int64_t i = 0; i < table->count; i++) xph_block_release(table->episodes[i].block);
    xph_free(context, table->episodes, (size_t)table->capacity * sizeof *table->episodes);
    xph_free(context, table->buckets, (size_t)table->bucket_capacity * sizeof *table->buckets);
    xph_free(context, table->games, (size_t)table->game_capacity * sizeof *table->games);
    xph_free(context, table, sizeof *table);
    xph_context_release(context);
}

/* ---- games --------------------------------------------------------------------------------------------- */

/* Distinct games are an open-addressing table; no game has the number 0 in it (xph_game_key). Where a game is or would be. */
static int64_t game_place(const xph_table *table, const uint64_t *games, int64_t capacity, uint64_t key)
{
    uint64_t mask = (uint64_t)capacity - 1, at = xph_mix(key ^ table->salt) & mask;
    while (games[at] && games[at] != key) at = (at + 1) & mask;
    return (int64_t)at;
}

static void add_game(xph_table *table, uint64_t game)
{
    uint64_t key = xph_game_key(game);
    int64_t at = game_place(table, table->games, table->game_capacity, key);
    if (table->games[at]) return;
    table->games[at] = key;
    table->game_count++;
}

/* At most half full, so that looking up is short. */
static exphil_status grow_games(xph_table *table, int64_t count, exphil_error *error)
{
    int64_t capacity = 16;
    while (capacity < 2 * count) capacity *= 2;
    if (capacity <= table->game_capacity) return EXPHIL_OK;
    uint64_t *games = xph_calloc(table->context, (size_t)capacity, sizeof *games);
    if (!games) return xph_no_memory((size_t)capacity * sizeof *games, error);
    for (int64_t i = 0; i < table->game_capacity; i++) {
        uint64_t key = table->games[i];
        if (key) games[game_place(table, games, capacity, key)] = key;
    }
    xph_free(table->context, table->games, (size_t)table->game_capacity * sizeof *games);
    table->games = games;
    table->game_capacity = capacity;
    return EXPHIL_OK;
}

/* ---- buckets ------------------------------------------------------------------------------------------- */

/* The largest power of two that is no longer than the mean episode. It stays while it is between a quarter of the mean
 * and twice the mean, so that all buckets are made anew only when the dataset has grown by a part. */
static int32_t shift_for(const xph_table *table, int64_t count, int64_t frames)
{
    uint64_t held = (uint64_t)count << table->bucket_shift, all = (uint64_t)frames;
    if (table->bucket_count && held <= 2 * all && all <= 4 * held) return table->bucket_shift;
    int32_t shift = 0;
    while (count && (uint64_t)count << (shift + 1) <= all) shift++;
    return shift;
}

static int64_t buckets_for(int64_t frames, int32_t shift)
{
    return frames ? ((frames - 1) >> shift) + 1 : 0;
}

static void fill_buckets(xph_table *table, int64_t frames, int32_t shift)
{
    if (shift != table->bucket_shift) table->bucket_count = 0;
    table->bucket_shift = shift;
    int64_t i = table->bucket_count, count = buckets_for(frames, shift), e = i ? table->buckets[i - 1] : 0;
    for (; i < count; i++) {
        while (table->episodes[e].first + table->episodes[e].frames <= i << shift) e++;
        table->buckets[i] = (uint32_t)e;
    }
    table->bucket_count = count;
}

int64_t xph_episode_of(const exphil_dataset *dataset, int64_t frame)
{
    const xph_table *table = dataset->table;
    int64_t i = frame >> table->bucket_shift, low = table->buckets[i],
            high = i + 1 < table->bucket_count ? (int64_t)table->buckets[i + 1] + 1 : table->count;
    while (high - low > 1) { /* low begins at the frame or before it, and all from high on behind it */
        int64_t middle = low + (high - low) / 2;
        if (table->episodes[middle].first <= frame) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- adding -------------------------------------------------------------------------------------------- */

/* Memory for so many episodes of so many frames, games included. */
static exphil_status grow(xph_table *table, int64_t count, int64_t frames, exphil_error *error)
{
    exphil_context *context = table->context;
    int64_t buckets = buckets_for(frames, shift_for(table, count, frames));
    xph_episode *episodes =
        xph_grow(context, table->episodes, &table->capacity, count, sizeof *episodes, error);
    if (!episodes) return EXPHIL_E_MEMORY;
    table->episodes = episodes;
    uint32_t *grown =
        xph_grow(context, table->buckets, &table->bucket_capacity, buckets, sizeof *grown, error);
    if (!grown) return EXPHIL_E_MEMORY;
    table->buckets = grown;
    return grow_games(table, table->game_count + count - table->count, error);
}

/* The same episodes in a table of its own, with memory for so many of so many frames. */
static exphil_status copy_table(const xph_table *from, int64_t count, int64_t frames, xph_table **table,
                                exphil_error *error)
{
    xph_table *made = NULL;
    XPH_TRY(xph_table_create(from->context, &made, error));
    exphil_status status = grow(made, count, frames, error);
    if (status < 0) {
        xph_table_release(made);
        return status;
    }
    for (int64_t i = 0; i < from->count; i++) {
        made->episodes[i] = from->episodes[i];
        xph_block_retain(from->episodes[i].block);
        add_game(made, from->episodes[i].block->facts.game);
    }
    made->count = from->count;
    *table = made;
    return EXPHIL_OK;
}

exphil_status xph_table_add(xph_table **table, const xph_episode *episodes, int64_t count, int64_t frames,
                            exphil_error *error)
{
    xph_table *to = *table;
    int64_t total = to->count + count, first = frames;
    for (int64_t i = 0; i < count; i++) frames += episodes[i].frames;
    if (atomic_load(&to->references) > 1) { /* others must not see it grow */
        XPH_TRY(copy_table(to, total, frames, &to, error));
        xph_table_release(*table);
        *table = to;
    } else {
        XPH_TRY(grow(to, total, frames, error));
    }
    int32_t shift = shift_for(to, total, frames);
    for (int64_t i = 0; i < count; i++) {
        xph_episode *episode = &to->episodes[to->count++];
        *episode = episodes[i];
        episode->first = first;
        first += episode->frames;
        xph_block_retain(episode->block);
        add_game(to, episode->block->facts.game);
    }
    fill_buckets(to, frames, shift);
    return EXPHIL_OK;
}
