/* Writing a corpus of games: each replay is read, packed and appended; the index and the trailer come last. A file
 * is a function of the replays and their order, and of libzstd's version. In a folder a file is ended when it is
 * large enough, and gets its name then, from its content: what stood there before stays as it is. */
#include "games/pack.h"

#include <stdio.h>

/* Of a file in a folder, unless the caller says otherwise. */
#define SHARD_BYTES ((uint64_t)1 << 30)
#define SHARD_GAMES 8192

struct exphil_games_writer {
    exphil_context *context;
    xph_busy busy;
    char *path; /* of the file, or of the folder */
    size_t path_bytes;
    bool folder, finished;
    bool failed; /* a file could not be written: its games are lost */
    uint64_t shard_bytes;
    xph_file_writer lock; /* of a folder: keeps other writers out of it; nothing is written to it */
    xph_file_writer file; /* begun where file.file is not NULL */
    xph_packers *packers;
    xph_game_entry *entries; /* of this file */
    int64_t count, capacity;
    xph_set sources, contents; /* what is there already, in other files of the folder too */
    exphil_games_info info;    /* of what this writer wrote */
};

/* ---- one game ------------------------------------------------------------------------------------------ */

static exphil_status add_front(xph_file_writer *file, const xph_game_entry *entry,
                               const xph_game_start *start, const xph_game_run *runs,
                               const xph_game_place *places, exphil_error *error)
{
    size_t runs_bytes = entry->runs * sizeof *runs,
           places_bytes = xph_game_blocks(entry->frames) * sizeof *places;
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    xph_hash_add(&hasher, entry, sizeof *entry);
    xph_hash_add(&hasher, start, sizeof *start);
    xph_hash_add(&hasher, runs, runs_bytes);
    uint64_t head = xph_hash_end(&hasher), table = xph_hash(places, places_bytes);
    XPH_TRY(xph_file_add(file, entry, sizeof *entry, error));
    XPH_TRY(xph_file_add(file, start, sizeof *start, error));
    XPH_TRY(xph_file_add(file, runs, runs_bytes, error));
    XPH_TRY(xph_file_add(file, &head, sizeof head, error));
    XPH_TRY(xph_file_add(file, places, places_bytes, error));
    return xph_file_add(file, &table, sizeof table, error);
}

static exphil_status begin_in_folder(exphil_games_writer *writer, const char *name, xph_file_writer *file,
                                     exphil_error *error)
{
    size_t bytes;
    char *path = xph_path_join(writer->context, writer->path, name, &bytes);
    if (!path) return xph_no_memory(bytes, error);
    exphil_status status = xph_file_begin(writer->context, path, file, error);
    xph_free(writer->context, path, bytes);
    return status;
}

/* A file is begun when its first game comes: a folder gets none without games. */
static exphil_status begin_file(exphil_games_writer *writer, exphil_error *error)
{
    if (writer->file.file) return EXPHIL_OK;
    xph_games_header header = {.version = XPH_GAMES_VERSION,
                               .entry_bytes = sizeof(xph_game_entry),
                               .start_bytes = sizeof(xph_game_start),
                               .facts_version = XPH_GAMES_FACTS_VERSION};
    xph_game_widths(&header.frame_bytes, &header.player_bytes, &header.item_bytes);
    memcpy(header.magic, XPH_GAMES_MAGIC, sizeof header.magic);
    header.hash = xph_hash(&header, offsetof(xph_games_header, hash));
    if (writer->folder)
        XPH_TRY(begin_in_folder(writer, "next" XPH_GAMES_SUFFIX, &writer->file, error));
    else
        XPH_TRY(xph_file_begin(writer->context, writer->path, &writer->file, error));
    return xph_file_add(&writer->file, &header, sizeof header, error);
}

static exphil_status make_room(exphil_games_writer *writer, exphil_error *error)
{
    XPH_TRY(xph_set_reserve(&writer->sources, 1, error));
    XPH_TRY(xph_set_reserve(&writer->contents, 1, error));
    if (writer->count < writer->capacity) return EXPHIL_OK;
    int64_t more = writer->capacity ? 2 * writer->capacity : 64;
    xph_game_entry *entries = xph_alloc(writer->context, (size_t)more * sizeof *entries);
    if (!entries) return xph_no_memory((size_t)more * sizeof *entries, error);
    if (writer->count) memcpy(entries, writer->entries, (size_t)writer->count * sizeof *entries);
    xph_free(writer->context, writer->entries, (size_t)writer->capacity * sizeof *entries);
    writer->entries = entries;
    writer->capacity = more;
    return EXPHIL_OK;
}

static exphil_status end_file(exphil_games_writer *writer, exphil_error *error);

/* A file that is large enough is ended when the next game comes, so that a game is either added or not. What fails here
 * leaves the writer as it was, or marks it failed. */
static exphil_status make_ready(exphil_games_writer *writer, exphil_error *error)
{
    bool full = writer->file.written >= writer->shard_bytes || writer->count >= SHARD_GAMES;
    if (writer->folder && writer->count && full) XPH_TRY(end_file(writer, error));
    XPH_TRY(make_room(writer, error));
    return begin_file(writer, error);
}

/* The game is in the file. */
static void note(exphil_games_writer *writer, const xph_game_entry *entry)
{
    writer->entries[writer->count++] = *entry;
    xph_set_add(&writer->sources, entry->source_hash);
    xph_set_add(&writer->contents, entry->content_hash);
    writer->info.games++;
    writer->info.frames += entry->frames;
    writer->info.hash += xph_game_share(entry->content_hash);
}

/* Bytes of a game that no index knows must not be in a file: it is given up, and what it held is lost. */
static exphil_status give_up(exphil_games_writer *writer, exphil_status status)
{
    xph_file_cancel(&writer->file);
    writer->failed = true;
    return status;
}

static exphil_status add_blocks(xph_file_writer *file, const xph_packed_game *game, exphil_error *error)
{
    for (int64_t i = 0; i < game->count; i++) {
        const xph_packed *block = &game->blocks[i];
        XPH_TRY(xph_file_add(file, &block->header, sizeof block->header, error));
        XPH_TRY(xph_file_add(file, block->stored, block->header.stored_bytes, error));
    }
    return EXPHIL_OK;
}

static exphil_status write_game(exphil_games_writer *writer, xph_packed_game *game, exphil_error *error)
{
    XPH_TRY(make_ready(writer, error));
    game->entry.offset = writer->file.written;
    exphil_status status =
        add_front(&writer->file, &game->entry, &game->start, game->runs, game->places, error);
    if (status == EXPHIL_OK) status = add_blocks(&writer->file, game, error);
    if (status < 0) return give_up(writer, status);
    note(writer, &game->entry);
    return EXPHIL_OK;
}

static exphil_status add_slp(exphil_games_writer *writer, const exphil_slp *slp, uint64_t source,
                             exphil_games_added *added, exphil_error *error)
{
    xph_packed_game game;
    XPH_TRY(xph_packed_game_make(writer->packers, slp, &game, error));
    game.entry.source_hash = source;
    *added = (exphil_games_added){.struct_size = sizeof *added,
                                  .content_hash = game.entry.content_hash,
                                  .source_hash = source,
                                  .frames = game.entry.frames,
                                  .duplicate = xph_set_has(&writer->contents, game.entry.content_hash),
                                  .truncated = game.entry.flags & XPH_GAME_CUT ? 1 : 0};
    exphil_status status = added->duplicate ? EXPHIL_OK : write_game(writer, &game, error);
    xph_packed_game_free(&game);
    return status;
}

static exphil_status add_bytes(exphil_games_writer *writer, const void *data, size_t bytes,
                               exphil_games_added *added, exphil_error *error)
{
    uint64_t source = xph_hash(data, bytes);
    if (xph_set_has(&writer->sources, source)) {
        *added = (exphil_games_added){.struct_size = sizeof *added, .source_hash = source, .duplicate = 1};
        return EXPHIL_OK;
    }
    exphil_slp *slp = NULL;
    XPH_TRY(exphil_slp_read(writer->context, data, bytes, NULL, &slp, error));
    exphil_status status = add_slp(writer, slp, source, added, error);
    exphil_slp_destroy(slp);
    return status;
}

/* ---- a game of another corpus ----------------------------------------------------------------------------- */

typedef struct copier {
    xph_unpacker *unpacker;
    void *memory; /* of one block */
} copier;

/* Stored bytes as they are, each block checked before. */
static exphil_status copy_blocks(exphil_games_writer *writer, const xph_game_front *front, const copier *with,
                                 exphil_error *error)
{
    for (uint32_t k = 0; k < xph_game_blocks(front->entry.frames); k++) {
        xph_game_block block;
        size_t bytes;
        XPH_TRY(xph_game_front_block(front, k, with->unpacker, with->memory, &block, error));
        const uint8_t *stored = xph_unpacker_stored(with->unpacker, &bytes);
        XPH_TRY(xph_file_add(&writer->file, stored, bytes, error));
    }
    return EXPHIL_OK;
}

static exphil_status copy_with(exphil_games_writer *writer, const xph_game_front *front, const copier *with,
                               exphil_error *error)
{
    xph_game_entry entry = front->entry;
    XPH_TRY(make_ready(writer, error));
    entry.offset = writer->file.written;
    exphil_status status = add_front(&writer->file, &entry, &front->start, front->runs, front->places, error);
    if (status == EXPHIL_OK) status = copy_blocks(writer, front, with, error);
    if (status < 0) return give_up(writer, status); /* the other file has changed, or the disk is full */
    note(writer, &entry);
    return EXPHIL_OK;
}

/* What can fail fails before a byte is written, if it can: a game of another file that turned out to be damaged half-way
 * would cost this one. */
static exphil_status copy_game(exphil_games_writer *writer, const exphil_games *from, int64_t index,
                               const xph_game_front *front, exphil_games_added *added, exphil_error *error)
{
    const xph_game_entry *entry = &front->entry;
    size_t bytes = xph_game_front_block_bytes(front);
    copier with = {NULL, NULL};
    exphil_slp *whole = NULL;
    *added = (exphil_games_added){.struct_size = sizeof *added,
                                  .content_hash = entry->content_hash,
                                  .source_hash = entry->source_hash,
                                  .frames = entry->frames,
                                  .duplicate = xph_set_has(&writer->contents, entry->content_hash),
                                  .truncated = entry->flags & XPH_GAME_CUT ? 1 : 0};
    if (added->duplicate) return EXPHIL_OK;
    XPH_TRY(exphil_games_read(from, index, &whole, error));
    exphil_slp_destroy(whole);
    XPH_TRY(xph_unpacker_create(writer->context, &with.unpacker, error));
    with.memory = xph_alloc(writer->context, bytes);
    exphil_status status = with.memory ? copy_with(writer, front, &with, error) : xph_no_memory(bytes, error);
    xph_unpacker_free(with.unpacker);
    xph_free(writer->context, with.memory, bytes);
    return status;
}

/* ---- ending ------------------------------------------------------------------------------------------------ */

static uint64_t content_of(const exphil_games_writer *writer)
{
    uint64_t content = 0;
    for (int64_t i = 0; i < writer->count; i++) content += xph_game_share(writer->entries[i].content_hash);
    return content;
}

static exphil_status add_end(exphil_games_writer *writer, exphil_error *error)
{
    xph_file_writer *file = &writer->file;
    size_t bytes = (size_t)writer->count * sizeof *writer->entries;
    xph_games_trailer trailer = {.games = (uint64_t)writer->count,
                                 .index = file->written,
                                 .index_hash = xph_hash(writer->entries, bytes),
                                 .content_hash = content_of(writer)};
    for (int64_t i = 0; i < writer->count; i++) trailer.frames += writer->entries[i].frames;
    memcpy(trailer.magic, XPH_GAMES_TRAILER, sizeof trailer.magic);
    trailer.hash = xph_hash(&trailer, offsetof(xph_games_trailer, hash));
    XPH_TRY(xph_file_add(file, writer->entries, bytes, error));
    return xph_file_add(file, &trailer, sizeof trailer, error);
}

/* Two folders that hold the same games have files of the same names. Where another file has taken the name, a number
 * follows it. */
static exphil_status name_shard(exphil_games_writer *writer, exphil_error *error)
{
    enum { NAMES_MOST = 1000 };
    exphil_status status = EXPHIL_OK;
    int32_t kind = EXPHIL_IO_FILE;
    for (int i = 1; status == EXPHIL_OK && kind != EXPHIL_IO_ABSENT && i <= NAMES_MOST; i++) {
        char name[40], number[8] = "";
        size_t bytes;
        if (i > 1) snprintf(number, sizeof number, "-%d", i);
        snprintf(name, sizeof name, "%016llx%s" XPH_GAMES_SUFFIX, (unsigned long long)content_of(writer),
                 number);
        char *path = xph_path_join(writer->context, writer->path, name, &bytes);
        if (!path) return xph_no_memory(bytes, error);
        status = xph_path_kind(writer->context, path, &kind, error);
        if (status == EXPHIL_OK && (kind == EXPHIL_IO_ABSENT || i == NAMES_MOST))
            status = xph_file_rename(&writer->file, path, error);
        xph_free(writer->context, path, bytes);
    }
    return status;
}

static exphil_status end_file(exphil_games_writer *writer, exphil_error *error)
{
    if (writer->folder) XPH_TRY(name_shard(writer, error)); /* nothing is written before */
    exphil_status status = add_end(writer, error);
    if (status < 0) return give_up(writer, status);
    writer->info.bytes += writer->file.written;
    writer->count = 0;
    status = xph_file_commit(&writer->file, error);
    writer->failed = status < 0;
    return status;
}

/* ---- public ------------------------------------------------------------------------------------------------ */

static exphil_status know_game(void *arg, int64_t game, const xph_game_entry *entry, exphil_error *error)
{
    exphil_games_writer *writer = arg;
    (void)game;
    XPH_TRY(xph_set_reserve(&writer->sources, 1, error));
    XPH_TRY(xph_set_reserve(&writer->contents, 1, error));
    xph_set_add(&writer->sources, entry->source_hash);
    xph_set_add(&writer->contents, entry->content_hash);
    return EXPHIL_OK;
}

/* What a folder holds already. */
static exphil_status know_folder(exphil_games_writer *writer, exphil_error *error)
{
    exphil_games *there;
    XPH_TRY(xph_games_open_any(writer->context, writer->path, &there, error));
    exphil_status status = xph_games_each(there, know_game, writer, error);
    xph_games_release(there);
    return status;
}

static exphil_status check_config(const exphil_games_config *config, exphil_error *error)
{
    if (config->level < 0 || config->level > 19)
        return xph_fail(error, EXPHIL_E_INVALID, "level is %d, must be 0..19", (int)config->level);
    if (config->stored != 0 && config->stored != 1)
        return xph_fail(error, EXPHIL_E_INVALID, "stored is %d, must be 0 or 1", (int)config->stored);
    if (config->shard_bytes < 0)
        return xph_fail(error, EXPHIL_E_INVALID, "shard_bytes is %lld, must not be negative",
                        (long long)config->shard_bytes);
    return EXPHIL_OK;
}

static exphil_status begin(exphil_games_writer *writer, const char *path, const exphil_games_config *config,
                           exphil_error *error)
{
    int32_t kind = EXPHIL_IO_ABSENT;
    XPH_TRY(check_config(config, error));
    XPH_TRY(xph_path_kind(writer->context, path, &kind, error));
    writer->path_bytes = strlen(path) + 1;
    writer->path = xph_alloc(writer->context, writer->path_bytes);
    if (!writer->path) return xph_no_memory(writer->path_bytes, error);
    memcpy(writer->path, path, writer->path_bytes);
    writer->folder = kind == EXPHIL_IO_FOLDER;
    writer->shard_bytes = config->shard_bytes ? (uint64_t)config->shard_bytes : SHARD_BYTES;
    int32_t level = config->stored ? 0 : config->level ? config->level : 3;
    XPH_TRY(xph_packers_create(writer->context, level, &writer->packers, error));
    if (!writer->folder) return begin_file(writer, error);
    XPH_TRY(begin_in_folder(writer, "new" XPH_GAMES_SUFFIX, &writer->lock, error));
    return know_folder(writer, error);
}

exphil_status exphil_games_create(exphil_context *context, const char *path,
                                  const exphil_games_config *config, exphil_games_writer **writer,
                                  exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_context_check(context, error));
    if (!writer) return xph_fail(error, EXPHIL_E_INVALID, "writer is NULL");
    exphil_games_config known = EXPHIL_GAMES_CONFIG_INIT;
    XPH_TRY(XPH_TAKE(exphil_games_config, &known, config, error));
    exphil_games_writer *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->info.struct_size = sizeof made->info;
    xph_set_begin(context, &made->sources);
    xph_set_begin(context, &made->contents);
    exphil_status status = begin(made, path, &known, error);
    if (status < 0)
        exphil_games_writer_destroy(made);
    else
        *writer = made;
    return status;
}

void exphil_games_writer_destroy(exphil_games_writer *writer)
{
    if (!writer) return;
    exphil_context *context = writer->context;
    if (writer->file.context) xph_file_cancel(&writer->file);
    if (writer->lock.context) xph_file_cancel(&writer->lock);
    xph_packers_free(writer->packers);
    xph_free(context, writer->entries, (size_t)writer->capacity * sizeof *writer->entries);
    xph_free(context, writer->path, writer->path_bytes);
    xph_set_free(&writer->sources);
    xph_set_free(&writer->contents);
    xph_free(context, writer, sizeof *writer);
    xph_context_release(context);
}

static exphil_status enter(exphil_games_writer *writer, exphil_error *error)
{
    if (!writer) return xph_fail(error, EXPHIL_E_INVALID, "writer is NULL");
    XPH_TRY(xph_context_check(writer->context, error));
    if (!xph_busy_enter(&writer->busy)) return xph_busy_error("writer", error);
    if (!writer->finished && !writer->failed) return EXPHIL_OK;
    xph_busy_leave(&writer->busy);
    return xph_fail(error, EXPHIL_E_STATE,
                    writer->finished ? "the corpus is finished"
                                     : "writing failed before; a new writer knows which games are there");
}

static exphil_status leave(exphil_games_writer *writer, exphil_status status)
{
    xph_busy_leave(&writer->busy);
    return status;
}

exphil_status exphil_games_add_memory(exphil_games_writer *writer, const void *data, size_t size_bytes,
                                      exphil_games_added *added, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_games_added made;
    XPH_TRY(enter(writer, error));
    exphil_status status = data ? XPH_CHECK_OUTPUT(exphil_games_added, added, error)
                                : xph_fail(error, EXPHIL_E_INVALID, "data is NULL");
    if (status == EXPHIL_OK) status = add_bytes(writer, data, size_bytes, &made, error);
    if (status == EXPHIL_OK && added) status = XPH_GIVE(exphil_games_added, added, &made, error);
    return leave(writer, status);
}

exphil_status exphil_games_add(exphil_games_writer *writer, const char *path, exphil_games_added *added,
                               exphil_error *error)
{
    XPH_OWN_FPU;
    xph_file_data data;
    exphil_games_added made;
    XPH_TRY(enter(writer, error));
    exphil_status status = XPH_CHECK_OUTPUT(exphil_games_added, added, error);
    if (status == EXPHIL_OK) status = xph_slp_file_read(writer->context, path, 0, &data, error);
    if (status == EXPHIL_OK) {
        status = add_bytes(writer, data.data, data.bytes, &made, error);
        xph_file_release(&data);
    }
    if (status == EXPHIL_OK && added) status = XPH_GIVE(exphil_games_added, added, &made, error);
    return leave(writer, status);
}

exphil_status exphil_games_copy(exphil_games_writer *writer, const exphil_games *from, int64_t index,
                                exphil_games_added *added, exphil_error *error)
{
    XPH_OWN_FPU;
    xph_game_front *front;
    exphil_games_added made;
    if (!from) return xph_fail(error, EXPHIL_E_INVALID, "from is NULL");
    XPH_TRY(enter(writer, error));
    exphil_status status = XPH_CHECK_OUTPUT(exphil_games_added, added, error);
    if (status == EXPHIL_OK) status = xph_game_front_read(from, index, &front, error);
    if (status == EXPHIL_OK) {
        status = copy_game(writer, from, index, front, &made, error);
        xph_game_front_free(front);
    }
    if (status == EXPHIL_OK && added) status = XPH_GIVE(exphil_games_added, added, &made, error);
    return leave(writer, status);
}

exphil_status exphil_games_finish(exphil_games_writer *writer, exphil_games_info *info, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(enter(writer, error));
    exphil_status status = XPH_CHECK_OUTPUT(exphil_games_info, info, error);
    if (status == EXPHIL_OK && writer->file.file) status = end_file(writer, error);
    if (status == EXPHIL_OK) {
        if (writer->folder) xph_file_cancel(&writer->lock);
        writer->finished = true;
        if (info) status = XPH_GIVE(exphil_games_info, info, &writer->info, error);
    }
    return leave(writer, status);
}
