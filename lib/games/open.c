/* Opening a corpus of games: a file, or a folder of them. Only headers, trailers and indices are read and checked. A
 * file without its trailer was cut, since finishing writes it last: its games are looked for one after the
 * other, and those before the cut are used. So they are where trailer or index is damaged. What no cut explains is noted:
 * games behind it are lost, and a check of the file fails. */
#include "games/format.h"

/* ---- one file -------------------------------------------------------------------------------------------- */

static exphil_status check_header(xph_shared_file *file, exphil_error *error)
{
    xph_games_header header;
    uint16_t frame, player, item;
    if (file->file.bytes < sizeof header)
        return xph_games_damaged(file, file->file.bytes, "no corpus: it is too short", error);
    XPH_TRY(xph_shared_read(file, 0, &header, sizeof header, error));
    if (memcmp(header.magic, XPH_GAMES_MAGIC, sizeof header.magic) != 0)
        return xph_games_damaged(file, 0, "no corpus begins here", error);
    if (header.version < XPH_GAMES_VERSION)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "\"%s\" byte 8: a corpus of rows, version %u; exphil_dataset_open reads it",
                        file->name, (unsigned)header.version);
    if (!xph_hash_equal(xph_hash(&header, offsetof(xph_games_header, hash)), header.hash))
        return xph_games_damaged(file, 0, "the header of the file is damaged", error);
    xph_game_widths(&frame, &player, &item);
    bool known = header.version == XPH_GAMES_VERSION && !header.type &&
                 header.entry_bytes == sizeof(xph_game_entry) &&
                 header.start_bytes == sizeof(xph_game_start) && header.frame_bytes == frame &&
                 header.player_bytes == player && header.item_bytes == item &&
                 header.facts_version == XPH_GAMES_FACTS_VERSION;
    if (!known)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "\"%s\" byte 8: version %u with columns or facts of a later library", file->name,
                        (unsigned)header.version);
    return EXPHIL_OK;
}

/* Entries that are read at once. */
enum { AT_ONCE = 256 };

typedef struct index_reader {
    const xph_shared_file *file;
    xph_game_entry entries[AT_ONCE];
} index_reader;

/* Each game ends where the next begins, the last one at the index. */
static exphil_status check_entries(const xph_shard *shard, const index_reader *r, int64_t first,
                                   int64_t count, uint64_t *end, uint64_t *frames, exphil_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        const xph_game_entry *entry = &r->entries[i];
        const char *wrong = xph_game_entry_wrong(entry);
        if (!wrong && (entry->offset != *end || entry->bytes > shard->index - *end))
            wrong = "a game that does not begin where the one before ends";
        if (wrong)
            return xph_games_damaged(r->file, shard->index + (uint64_t)(first + i) * sizeof *entry, wrong,
                                     error);
        *end += entry->bytes;
        *frames += entry->frames;
    }
    return EXPHIL_OK;
}

static exphil_status check_index(const xph_shard *shard, const xph_games_trailer *trailer, index_reader *r,
                                 exphil_error *error)
{
    uint64_t end = sizeof(xph_games_header), frames = 0;
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int64_t i = 0; i < shard->games; i += AT_ONCE) {
        int64_t count = shard->games - i < AT_ONCE ? shard->games - i : AT_ONCE;
        uint64_t at = shard->index + (uint64_t)i * sizeof *r->entries;
        if (xph_cancelled(shard->file->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        XPH_TRY(xph_shared_read(shard->file, at, r->entries, (size_t)count * sizeof *r->entries, error));
        xph_hash_add(&hasher, r->entries, (size_t)count * sizeof *r->entries);
        XPH_TRY(check_entries(shard, r, i, count, &end, &frames, error));
    }
    if (!xph_hash_equal(xph_hash_end(&hasher), trailer->index_hash))
        return xph_games_damaged(shard->file, shard->index, "the index is damaged", error);
    if (end != shard->index)
        return xph_games_damaged(shard->file, end, "bytes that belong to no game", error);
    if (frames != trailer->frames)
        return xph_games_damaged(shard->file, shard->file->file.bytes - sizeof *trailer + 16,
                                 "the games have other frames than counted", error);
    return EXPHIL_OK;
}

/* False: the file has none. */
static exphil_status read_trailer(xph_shared_file *file, xph_games_trailer *trailer, bool *found,
                                  exphil_error *error)
{
    uint64_t bytes = file->file.bytes, at = bytes - sizeof *trailer;
    *found = false;
    if (bytes < sizeof(xph_games_header) + sizeof *trailer) return EXPHIL_OK;
    XPH_TRY(xph_shared_read(file, at, trailer, sizeof *trailer, error));
    if (memcmp(trailer->magic, XPH_GAMES_TRAILER, sizeof trailer->magic) != 0) return EXPHIL_OK;
    if (!xph_hash_equal(xph_hash(trailer, offsetof(xph_games_trailer, hash)), trailer->hash))
        return xph_games_damaged(file, at, "the trailer is damaged", error);
    uint64_t index;
    if (trailer->games > INT64_MAX / sizeof(xph_game_entry))
        return xph_games_damaged(file, at + 8, "an impossible number of games", error);
    index = trailer->games * sizeof(xph_game_entry);
    if (trailer->index < sizeof(xph_games_header) || trailer->index > at || at - trailer->index != index)
        return xph_games_damaged(file, at + offsetof(xph_games_trailer, index), "the index is somewhere else",
                                 error);
    *found = true;
    return EXPHIL_OK;
}

/* EXPHIL_E_FORMAT: one of both is damaged. */
static exphil_status read_index(exphil_games *games, xph_shard *shard, xph_games_trailer *trailer,
                                bool *found, exphil_error *error)
{
    XPH_TRY(read_trailer(shard->file, trailer, found, error));
    if (!*found) return EXPHIL_OK;
    index_reader *r = xph_alloc(games->context, sizeof *r);
    if (!r) return xph_no_memory(sizeof *r, error);
    r->file = shard->file;
    shard->games = (int64_t)trailer->games;
    shard->index = trailer->index;
    exphil_status status = check_index(shard, trailer, r, error);
    xph_free(games->context, r, sizeof *r);
    return status;
}

/* ---- without them ------------------------------------------------------------------------------------------ */

typedef struct walk {
    xph_shard *shard;
    uint64_t at, frames, content;
} walk;

/* Is what is left of the file as long as the index of the games before it, and the trailer? */
static bool at_index(const walk *w)
{
    uint64_t index = (uint64_t)w->shard->games * sizeof(xph_game_entry);
    return w->shard->file->file.bytes - w->at == index + sizeof(xph_games_trailer);
}

static exphil_status note_game(walk *w, exphil_error *error)
{
    xph_shard *shard = w->shard;
    exphil_context *context = shard->file->context;
    if (shard->games == shard->capacity) {
        int64_t more = shard->capacity ? 2 * shard->capacity : 64;
        uint64_t *offsets = xph_alloc(context, (size_t)more * sizeof *offsets);
        if (!offsets) return xph_no_memory((size_t)more * sizeof *offsets, error);
        if (shard->capacity) memcpy(offsets, shard->offsets, (size_t)shard->capacity * sizeof *offsets);
        xph_free(context, shard->offsets, (size_t)shard->capacity * sizeof *offsets);
        shard->offsets = offsets;
        shard->capacity = more;
    }
    shard->offsets[shard->games++] = w->at;
    return EXPHIL_OK;
}

static exphil_status note_damage(walk *w, const char *what)
{
    w->shard->damage = what;
    w->shard->damaged_at = w->at;
    return EXPHIL_OK;
}

/* The host may stop what takes long: a file may be a hole of any size. */
static exphil_status find_other(const xph_shared_file *file, uint64_t at, void *piece, size_t most,
                                bool *zero, exphil_error *error)
{
    *zero = true;
    while (*zero && at < file->file.bytes) {
        uint64_t left = file->file.bytes - at;
        size_t bytes = left < most ? (size_t)left : most;
        if (xph_cancelled(file->context)) return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        XPH_TRY(xph_shared_read(file, at, piece, bytes, error));
        const uint8_t *from = piece;
        *zero = !from[0] && memcmp(from, from + 1, bytes - 1) == 0;
        at += bytes;
    }
    return EXPHIL_OK;
}

/* Zeros up to the end of the file, which a loss of power leaves? */
static exphil_status only_zeros(const xph_shared_file *file, uint64_t at, bool *zero, exphil_error *error)
{
    const size_t most = (size_t)1 << 16;
    void *piece = xph_alloc(file->context, most);
    if (!piece) return xph_no_memory(most, error);
    exphil_status status = find_other(file, at, piece, most, zero, error);
    xph_free(file->context, piece, most);
    return status;
}

/* A game that is longer than what is left was cut, if its head is sound as far as it is there. A head is a few KiB. */
static exphil_status check_cut(walk *w, const xph_game_entry *entry, exphil_error *error)
{
    const xph_shared_file *file = w->shard->file;
    uint64_t left = file->file.bytes - w->at, head = xph_game_head_bytes(entry), hash;
    size_t bytes = (size_t)head - sizeof hash;
    if (head > left) return left > (1 << 20) ? note_damage(w, "no game begins here") : EXPHIL_OK;
    void *memory = xph_alloc(file->context, bytes);
    if (!memory) return xph_no_memory(bytes, error);
    exphil_status status = xph_shared_read(file, w->at, memory, bytes, error);
    if (status == EXPHIL_OK) status = xph_shared_read(file, w->at + bytes, &hash, sizeof hash, error);
    if (status == EXPHIL_OK && !xph_hash_equal(xph_hash(memory, bytes), hash))
        status = note_damage(w, "the head of this game is damaged");
    xph_free(file->context, memory, bytes);
    return status;
}

/* Does the game at w->at end in the file? What does not begin as a game is the index, zeros, or damage. */
static exphil_status next_game(walk *w, bool *more, exphil_error *error)
{
    const xph_shared_file *file = w->shard->file;
    uint64_t left = file->file.bytes - w->at;
    xph_game_entry entry;
    *more = false;
    if (left < sizeof entry) return EXPHIL_OK;
    XPH_TRY(xph_shared_read(file, w->at, &entry, sizeof entry, error));
    if (w->shard->games && entry.offset == sizeof(xph_games_header)) return EXPHIL_OK; /* the index */
    if (entry.offset != w->at || xph_game_entry_wrong(&entry)) {
        bool zero;
        if (at_index(w)) return EXPHIL_OK; /* which is damaged */
        XPH_TRY(only_zeros(file, w->at, &zero, error));
        return zero ? EXPHIL_OK : note_damage(w, "neither a game nor the index begins here");
    }
    if (entry.bytes > left) return check_cut(w, &entry, error);
    *more = true;
    XPH_TRY(note_game(w, error));
    w->at += entry.bytes;
    w->frames += entry.frames;
    w->content += xph_game_share(entry.content_hash);
    return EXPHIL_OK;
}

static exphil_status check_blocks(xph_game_front *front, exphil_error *error)
{
    xph_unpacker *unpacker = NULL;
    size_t bytes = xph_game_front_block_bytes(front);
    void *memory = xph_alloc(front->context, bytes);
    exphil_status status =
        memory ? xph_unpacker_create(front->context, &unpacker, error) : xph_no_memory(bytes, error);
    for (uint32_t k = 0; status == EXPHIL_OK && k < xph_game_blocks(front->entry.frames); k++) {
        xph_game_block block;
        status = xph_game_front_block(front, k, unpacker, memory, &block, error);
    }
    xph_unpacker_free(unpacker);
    xph_free(front->context, memory, bytes);
    return status;
}

/* Of the last game all blocks: a loss of power may have left only its length. Damaged, it is left out. */
static exphil_status check_last(walk *w, exphil_error *error)
{
    xph_game_front *front = NULL;
    if (!w->shard->games) return EXPHIL_OK;
    uint64_t at = w->shard->offsets[w->shard->games - 1];
    exphil_status status = xph_game_front_at(w->shard->file, -1, at, &front, error);
    if (status == EXPHIL_OK) {
        status = check_blocks(front, error);
        xph_game_front_free(front);
    }
    if (status != EXPHIL_E_FORMAT) return status;
    xph_game_entry entry;
    XPH_TRY(xph_shared_read(w->shard->file, at, &entry, sizeof entry, error));
    w->frames -= entry.frames;
    w->content -= xph_game_share(entry.content_hash);
    w->shard->games--;
    return EXPHIL_OK;
}

static exphil_status walk_games(walk *w, exphil_error *error)
{
    bool more = true;
    w->shard->games = 0;
    while (more) {
        if (xph_cancelled(w->shard->file->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        XPH_TRY(next_game(w, &more, error));
    }
    return EXPHIL_OK;
}

static exphil_status fail_damaged(const xph_shard *shard, exphil_error *error)
{
    return xph_games_damaged(shard->file, shard->damaged_at, shard->damage, error);
}

/* Games behind damage are lost; without one before it the file is refused. */
static exphil_status warn_damaged(const xph_shard *shard, exphil_error *error)
{
    if (!shard->games) return fail_damaged(shard, error);
    xph_log(shard->file->context, EXPHIL_LOG_WARNING,
            "\"%s\" byte %llu: %s; %lld games before it are used, others are lost", shard->file->name,
            (unsigned long long)shard->damaged_at, shard->damage, (long long)shard->games);
    return EXPHIL_OK;
}

/* The end was never written. */
static exphil_status recover_cut(walk *w, exphil_error *error)
{
    XPH_TRY(walk_games(w, error));
    if (w->shard->damage) return warn_damaged(w->shard, error);
    XPH_TRY(check_last(w, error));
    xph_log(w->shard->file->context, EXPHIL_LOG_WARNING,
            "\"%s\": its end is missing; the %lld games before it are used", w->shard->file->name,
            (long long)w->shard->games);
    return EXPHIL_OK;
}

/* The end was written, and is damaged: from the first game on each must lead to the next, the last one to the index. */
static exphil_status recover_damaged(walk *w, const exphil_error *damage, exphil_error *error)
{
    XPH_TRY(walk_games(w, error));
    if (!w->shard->damage && !at_index(w)) (void)note_damage(w, "the index was to begin here");
    if (w->shard->damage && !w->shard->games) return xph_fail_with(error, damage);
    if (w->shard->damage) return warn_damaged(w->shard, error);
    xph_log(w->shard->file->context, EXPHIL_LOG_WARNING, "%s; all %lld games are found without it",
            damage->message, (long long)w->shard->games);
    return EXPHIL_OK;
}

/* ---- all --------------------------------------------------------------------------------------------------- */

static exphil_status read_shard(exphil_games *games, xph_shard *shard, exphil_error *error)
{
    xph_games_trailer trailer;
    walk w = {.shard = shard, .at = sizeof(xph_games_header)};
    exphil_error damage = EXPHIL_ERROR_INIT;
    bool found = false;
    XPH_TRY(check_header(shard->file, error));
    exphil_status status = read_index(games, shard, &trailer, &found, &damage);
    if (status == EXPHIL_OK && found) {
        w.frames = trailer.frames;
        w.content = trailer.content_hash;
    } else {
        if (status == EXPHIL_OK)
            status = recover_cut(&w, error);
        else if (status == EXPHIL_E_FORMAT)
            status = recover_damaged(&w, &damage, error);
        else
            status = xph_fail_with(error, &damage);
        if (status < 0) return status;
        games->info.recovered = 1;
    }
    games->info.hash += shard->content = w.content;
    shard->first = games->info.games;
    games->info.games += shard->games;
    games->info.frames += (int64_t)w.frames;
    games->info.bytes += shard->file->file.bytes;
    return EXPHIL_OK;
}

static exphil_status add_shard(exphil_games *games, const char *path, exphil_error *error)
{
    xph_shard *shard = &games->shards[games->shard_count];
    *shard = (xph_shard){.file = NULL};
    XPH_TRY(xph_shared_open(games->context, path, &shard->file, error));
    games->shard_count++;
    return read_shard(games, shard, error);
}

static exphil_status get_shards(exphil_games *games, int64_t count, exphil_error *error)
{
    games->shards = xph_calloc(games->context, (size_t)count, sizeof *games->shards);
    if (!games->shards) return xph_no_memory((size_t)count * sizeof *games->shards, error);
    games->shard_capacity = count;
    return EXPHIL_OK;
}

static exphil_status add_folder(exphil_games *games, const char *path, exphil_error *error)
{
    xph_folder folder;
    XPH_TRY(xph_folder_list(games->context, path, XPH_GAMES_SUFFIX, &folder, error));
    exphil_status status = folder.count ? get_shards(games, folder.count, error) : EXPHIL_OK;
    for (int64_t i = 0; status == EXPHIL_OK && i < folder.count; i++) {
        size_t bytes;
        int32_t kind = EXPHIL_IO_FILE;
        char *name = xph_path_join(games->context, path, folder.names[i], &bytes);
        status = name ? xph_path_kind(games->context, name, &kind, error) : xph_no_memory(bytes, error);
        if (status == EXPHIL_OK && kind != EXPHIL_IO_FOLDER) status = add_shard(games, name, error);
        xph_free(games->context, name, bytes);
    }
    xph_folder_free(&folder);
    return status;
}

static exphil_status open_games(exphil_games *games, const char *path, exphil_error *error)
{
    int32_t kind = EXPHIL_IO_FILE;
    XPH_TRY(xph_path_kind(games->context, path, &kind, error));
    if (kind == EXPHIL_IO_FOLDER) return add_folder(games, path, error);
    XPH_TRY(get_shards(games, 1, error));
    return add_shard(games, path, error);
}

exphil_status xph_games_open_any(exphil_context *context, const char *path, exphil_games **games,
                                 exphil_error *error)
{
    exphil_games *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->references = 1;
    made->info.struct_size = sizeof made->info;
    exphil_status status = open_games(made, path, error);
    if (status < 0)
        xph_games_release(made);
    else
        *games = made;
    return status;
}

exphil_status exphil_games_open(exphil_context *context, const char *path, exphil_games **games,
                                exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_context_check(context, error));
    if (!games) return xph_fail(error, EXPHIL_E_INVALID, "games is NULL");
    exphil_games *made = NULL;
    XPH_TRY(xph_games_open_any(context, path, &made, error));
    if (!made->shard_count) {
        xph_games_release(made);
        return xph_fail(error, EXPHIL_E_FORMAT, "\"%s\" has no file whose name ends in " XPH_GAMES_SUFFIX,
                        path);
    }
    *games = made;
    return EXPHIL_OK;
}

exphil_status xph_games_at(exphil_context *context, const char *path, bool *games, exphil_error *error)
{
    int32_t kind = EXPHIL_IO_FILE;
    xph_file file;
    struct {
        char magic[8];
        uint32_t version;
    } head = {.version = 0};
    XPH_TRY(xph_path_kind(context, path, &kind, error));
    *games = kind == EXPHIL_IO_FOLDER;
    if (*games) return EXPHIL_OK;
    XPH_TRY(xph_file_open(context, path, INT64_MAX, &file, error));
    exphil_status status =
        file.bytes < sizeof(xph_games_header) ? EXPHIL_OK : xph_file_read(&file, 0, &head, 12, error);
    xph_file_close(&file);
    *games = memcmp(head.magic, XPH_GAMES_MAGIC, sizeof head.magic) == 0 && head.version == XPH_GAMES_VERSION;
    return status;
}
