/* Reading a corpus file. The file is hostile input: every number is checked before it is used, every header
 * and every row against its hash and against the rules for rows. Opening walks the chain of record headers,
 * which reads little of the file; rows are read and checked in pieces when they are first used (rows_read.c),
 * all of them at once if the file was cut.
 *
 * A file that just stops, between records or within one, or after the records, was cut: the whole records
 * before the cut are used. Zeros to the end of the file count as a cut too, since that is what file systems
 * leave after a loss of power. Anything else that is wrong is damage, and refused. */
#include "data/corpus_reader.h"
#include "data/game_rows.h"

/* ---- records ----------------------------------------------------------------------------------------- */

/* Zeros up to the next multiple of 64, or to a cut. */
static exphil_status skip_padding(xph_corpus_reader *r, exphil_error *error)
{
    const uint8_t *data;
    size_t over = (size_t)(r->at % XPH_CORPUS_ALIGN), skip = over ? XPH_CORPUS_ALIGN - over : 0;
    if (skip > xph_corpus_left(r)) {
        skip = (size_t)xph_corpus_left(r);
        r->torn = true;
    }
    XPH_TRY(xph_window_look(&r->window, r->at, skip, &data, error));
    if (!xph_all_zero(data, skip)) return xph_corpus_damaged(r, r->at, "padding is not zero", error);
    r->at += skip;
    return EXPHIL_OK;
}

/* Beyond what the replay reader gives. */
#define FRAME_INDEX_MAX 1000000

static exphil_status check_record(const xph_corpus_reader *r, const xph_corpus_record *record,
                                  exphil_error *error)
{
    const xph_row_shape *shape = &r->dataset->shape;
    if (memcmp(record->magic, XPH_RECORD_MAGIC, sizeof record->magic) != 0)
        return xph_corpus_damaged(r, r->at, "neither a record nor a footer", error);
    if (!xph_hash_equal(xph_hash(record, offsetof(xph_corpus_record, hash)), record->hash))
        return xph_corpus_damaged(r, r->at, "the header of this record is damaged", error);
    size_t bytes;
    if (record->frames < 1 || record->frames > (uint64_t)XPH_FRAMES_MAX ||
        !xph_size_mul((size_t)record->frames, (size_t)shape->row_bytes, &bytes) ||
        bytes != record->rows_bytes)
        return xph_corpus_damaged(r, r->at + 16, "the sizes of this record are impossible", error);
    if (record->index != (uint64_t)r->count)
        return xph_corpus_damaged(r, r->at + 8, "a record out of order", error);
    if (record->first_game_frame < -FRAME_INDEX_MAX || record->first_game_frame > FRAME_INDEX_MAX ||
        record->port < 0 || record->port > 4 || record->opponent_port < 0 || record->opponent_port > 4)
        return xph_corpus_damaged(r, r->at + offsetof(xph_corpus_record, first_game_frame),
                                  "an impossible frame or port", error);
    if (!xph_all_zero(record->reserved, sizeof record->reserved))
        return xph_corpus_damaged(r, r->at + offsetof(xph_corpus_record, reserved), "reserved is not zero",
                                  error);
    return EXPHIL_OK;
}

/* Bytes of the hashes of a record's pieces, padding included. */
static size_t hashes_bytes(int64_t frames)
{
    size_t bytes = (size_t)xph_pieces(frames) * sizeof(uint64_t);
    return (bytes + XPH_CORPUS_ALIGN - 1) / XPH_CORPUS_ALIGN * XPH_CORPUS_ALIGN;
}

/* The hashes of a record's pieces, checked, into its block. */
static exphil_status read_hashes(xph_corpus_reader *r, const xph_corpus_record *record, xph_block *block,
                                 exphil_error *error)
{
    uint64_t at = r->at + sizeof *record;
    size_t used = (size_t)xph_pieces(block->frames) * sizeof(uint64_t), padded = hashes_bytes(block->frames);
    const uint8_t *padding;
    XPH_TRY(xph_window_copy(&r->window, at, block->piece_hash, used, error));
    if (!xph_hash_equal(xph_hash(block->piece_hash, used), record->rows_hash))
        return xph_corpus_damaged(r, at, "the hashes of this record's rows are damaged", error);
    XPH_TRY(xph_window_look(&r->window, at + used, padded - used, &padding, error));
    if (!xph_all_zero(padding, padded - used))
        return xph_corpus_damaged(r, at + used, "padding is not zero", error);
    return EXPHIL_OK;
}

/* Notes a record whose header is fine and whose rows are in the file; they are looked at later. */
static exphil_status note_record(xph_corpus_reader *r, const xph_corpus_record *record, exphil_error *error)
{
    int64_t frames = (int64_t)record->frames;
    xph_episode *episodes =
        xph_grow(r->context, r->episodes, &r->capacity, r->count + 1, sizeof *episodes, error);
    if (!episodes) return EXPHIL_E_MEMORY;
    r->episodes = episodes;
    uint64_t rows = r->at + sizeof *record + hashes_bytes(frames);
    xph_block *block;
    XPH_TRY(xph_block_of(r->corpus, rows, frames, &block, error));
    exphil_status status = read_hashes(r, record, block, error);
    if (status < 0) {
        xph_block_release(block);
        return status;
    }
    block->hash = record->rows_hash;
    block->facts = (xph_episode_facts){.game = record->game,
                                       .first_game_frame = record->first_game_frame,
                                       .port = record->port,
                                       .opponent_port = record->opponent_port,
                                       .stage = record->stage,
                                       .character = record->character,
                                       .opponent_character = record->opponent_character,
                                       .group = record->group,
                                       .match = record->match};
    episodes[r->count++] = (xph_episode){.block = block, .frames = frames, .hash = record->rows_hash};
    r->at = rows + record->rows_bytes;
    return EXPHIL_OK;
}

/* One record, unless the file was cut within it. */
static exphil_status read_record(xph_corpus_reader *r, exphil_error *error)
{
    xph_corpus_record record;
    if (xph_corpus_left(r) < sizeof record) {
        r->torn = true;
        return EXPHIL_OK;
    }
    XPH_TRY(xph_window_copy(&r->window, r->at, &record, sizeof record, error));
    if (!record.magic[0]) { /* perhaps the file was made longer, then never filled */
        XPH_TRY(xph_window_zero(&r->window, r->at, &r->torn, error));
        if (r->torn) return EXPHIL_OK;
    }
    XPH_TRY(check_record(r, &record, error));
    uint64_t behind = xph_corpus_left(r) - sizeof record, hashes = hashes_bytes((int64_t)record.frames);
    if (hashes > behind || record.rows_bytes > behind - hashes) {
        r->torn = true;
        return EXPHIL_OK;
    }
    XPH_TRY(note_record(r, &record, error));
    return skip_padding(r, error);
}

/* ---- footer ------------------------------------------------------------------------------------------ */

static exphil_status at_footer(xph_corpus_reader *r, bool *found, exphil_error *error)
{
    const uint8_t *magic;
    *found = false;
    if (xph_corpus_left(r) < sizeof(xph_corpus_footer)) return EXPHIL_OK;
    XPH_TRY(xph_window_look(&r->window, r->at, 8, &magic, error));
    *found = memcmp(magic, XPH_FOOTER_MAGIC, 8) == 0;
    return EXPHIL_OK;
}

/* Each record's header lies in front of the hashes of its rows. */
static uint64_t record_offset(const xph_block *block)
{
    return block->at - hashes_bytes(block->frames) - sizeof(xph_corpus_record);
}

static exphil_status read_offsets(xph_corpus_reader *r, const xph_corpus_footer *footer, exphil_error *error)
{
    enum { CHUNK = XPH_WINDOW / sizeof(uint64_t) };
    xph_hasher hasher;
    bool fit = true;
    xph_hash_begin(&hasher);
    for (int64_t i = 0; i < r->count; i += CHUNK) {
        int64_t count = r->count - i < CHUNK ? r->count - i : CHUNK;
        const uint8_t *data;
        XPH_TRY(xph_window_look(&r->window, r->at + (uint64_t)i * sizeof(uint64_t),
                                (size_t)count * sizeof(uint64_t), &data, error));
        xph_hash_add(&hasher, data, (size_t)count * sizeof(uint64_t));
        for (int64_t k = 0; k < count; k++) {
            uint64_t offset;
            memcpy(&offset, data + (size_t)k * sizeof offset, sizeof offset);
            fit = fit && offset == record_offset(r->episodes[i + k].block);
        }
    }
    if (fit && xph_hash_equal(xph_hash_end(&hasher), footer->offsets_hash)) return EXPHIL_OK;
    return xph_corpus_damaged(r, r->at, "the offsets of the footer are wrong", error);
}

/* The columns of all records. Whether they tell the truth shows only when all rows are read; nothing but the
 * count of dead inputs depends on them. */
static exphil_status read_columns(xph_corpus_reader *r, const xph_corpus_footer *footer, exphil_error *error)
{
    xph_columns *columns = &r->dataset->columns;
    size_t floats = (size_t)r->dataset->shape.floats, first = floats * sizeof *columns->first;
    const uint8_t *at;
    if (first + floats > xph_corpus_left(r)) {
        r->torn = true;
        return EXPHIL_OK;
    }
    XPH_TRY(xph_window_look(&r->window, r->at, first + floats, &at, error));
    if (!xph_hash_equal(xph_hash(at, first + floats), footer->columns_hash))
        return xph_corpus_damaged(r, r->at, "the columns of the footer are damaged", error);
    if (first) memcpy(columns->first, at, first);
    for (size_t f = 0; f < floats; f++) columns->varies[f] = at[first + f] != 0;
    columns->any = r->count > 0;
    r->at += first + floats;
    return EXPHIL_OK;
}

static exphil_status read_footer(xph_corpus_reader *r, xph_corpus_footer *footer, exphil_error *error)
{
    uint64_t start = r->at;
    XPH_TRY(xph_window_copy(&r->window, start, footer, sizeof *footer, error));
    if (!xph_hash_equal(xph_hash(footer, offsetof(xph_corpus_footer, hash)), footer->hash))
        return xph_corpus_damaged(r, start, "the footer is damaged", error);
    if (footer->reserved) return xph_corpus_damaged(r, start, "reserved is not zero", error);
    int64_t frames = 0;
    for (int64_t i = 0; i < r->count; i++) frames += r->episodes[i].frames;
    if (footer->records != (uint64_t)r->count || footer->frames != (uint64_t)frames)
        return xph_corpus_damaged(r, start, "the footer counts other records than there are", error);
    r->at += sizeof *footer;
    uint64_t bytes = (uint64_t)r->count * sizeof(uint64_t);
    if (bytes > xph_corpus_left(r)) {
        r->torn = true;
        return EXPHIL_OK;
    }
    XPH_TRY(read_offsets(r, footer, error));
    r->at += bytes;
    XPH_TRY(read_columns(r, footer, error));
    if (r->torn) return EXPHIL_OK;
    XPH_TRY(skip_padding(r, error));
    return r->at == r->bytes ? EXPHIL_OK
                             : xph_corpus_damaged(r, r->at, "there is something behind the footer", error);
}

/* ---- the file ---------------------------------------------------------------------------------------- */

/* Records up to the footer or a cut. */
static exphil_status read_records(xph_corpus_reader *r, xph_corpus_footer *footer, uint64_t *footer_at,
                                  bool *ended, exphil_error *error)
{
    *ended = false;
    while (!*ended && !r->torn) {
        *footer_at = r->at;
        XPH_TRY(at_footer(r, ended, error));
        XPH_TRY(*ended ? read_footer(r, footer, error) : read_record(r, error));
        if (!*ended && xph_cancelled(r->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
    }
    return EXPHIL_OK;
}

static exphil_status read_all(xph_corpus_reader *r, exphil_error *error)
{
    XPH_TRY(xph_corpus_read_spec(r, error));
    xph_corpus_footer footer = {.records = 0};
    uint64_t footer_at = 0;
    bool ended;
    XPH_TRY(read_records(r, &footer, &footer_at, &ended, error));
    XPH_TRY(xph_dataset_append(r->dataset, r->episodes, r->count, error));
    if (ended && !xph_hash_equal(xph_dataset_content_hash(r->dataset), footer.content_hash))
        return xph_corpus_damaged(r, footer_at, "the hash of the content is another", error);
    r->dataset->recovered = r->torn;
    if (!r->torn) {
        r->dataset->columns_of = r->count;
        return EXPHIL_OK;
    }
    r->dataset->columns.any = false;
    if (r->dataset->shape.floats) memset(r->dataset->columns.varies, 0, (size_t)r->dataset->shape.floats);
    XPH_TRY(xph_dataset_verify(r->dataset, error));
    xph_log(r->context, EXPHIL_LOG_WARNING, "%s: its end is missing; the %lld episodes before it are used",
            r->name, (long long)r->count);
    return EXPHIL_OK;
}

static exphil_status read_corpus(xph_shared_file *corpus, exphil_dataset **dataset, exphil_error *error)
{
    exphil_context *context = corpus->context;
    xph_corpus_reader r = {
        .context = context, .name = corpus->name, .bytes = corpus->file.bytes, .corpus = corpus};
    XPH_TRY(xph_window_make(&r.window, corpus, error));
    exphil_status status = read_all(&r, error);
    for (int64_t i = 0; i < r.count; i++) xph_block_release(r.episodes[i].block);
    xph_free(context, r.episodes, (size_t)r.capacity * sizeof *r.episodes);
    xph_window_free(&r.window);
    if (status < 0) {
        xph_dataset_release(r.dataset);
    } else {
        *dataset = r.dataset;
    }
    return status;
}

exphil_status exphil_dataset_open(exphil_context *context, const char *path, exphil_dataset **dataset,
                                  exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_context_check(context, error));
    if (!dataset) return xph_fail(error, EXPHIL_E_INVALID, "dataset is NULL");
    bool games;
    XPH_TRY(xph_games_at(context, path, &games, error));
    if (games) return xph_dataset_of_games(context, path, dataset, error);
    xph_shared_file *corpus = NULL;
    XPH_TRY(xph_shared_open(context, path, &corpus, error));
    exphil_status status = read_corpus(corpus, dataset, error);
    xph_shared_release(corpus);
    return status;
}
