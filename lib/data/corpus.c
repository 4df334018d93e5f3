/* Reading a corpus file. The file is hostile input: every number is checked before it is used, every header
 * and every row against its hash and against the rules for rows. Opening walks the chain of record headers,
 * which reads little of the file; rows are read and checked in pieces when they are first used (rows_read.c),
 * all of them at once if the file was cut.
 *
 * A file that just stops, between records or within one, or after the records, was cut: the whole records
 * before the cut are used. Zeros to the end of the file count as a cut too, since that is what file systems
 * leave after a loss of power. Anything else that is wrong is damage, and refused. */
#include "data/corpus.h"

#include "melee/melee.h"

#include <stdio.h>

const char *xph_corpus_type_name(uint32_t type)
{
    static const char *const names[] = {"f32", "f64", "bf16", "i8", "f16"};
    return type < sizeof names / sizeof *names ? names[type] : "of an unknown type";
}

/* ---- reading ----------------------------------------------------------------------------------------- */

typedef struct reader {
    exphil_context *context;
    const char *name; /* of the file, for messages */
    uint64_t bytes, at;
    xph_corpus *corpus;
    xph_window window;
    exphil_dataset *dataset;
    xph_episode *episodes; /* of the whole records */
    int64_t count, capacity;
    bool torn;
} reader;

static exphil_status damaged(const reader *r, uint64_t offset, const char *what, exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_FORMAT, "\"%s\" byte %llu: %s", r->name, (unsigned long long)offset,
                    what);
}

static uint64_t left(const reader *r)
{
    return r->bytes - r->at;
}

static exphil_status look(reader *r, uint64_t at, size_t bytes, const uint8_t **data, exphil_error *error)
{
    return xph_window_look(&r->window, at, bytes, data, error);
}

static exphil_status copy(reader *r, uint64_t at, void *to, size_t bytes, exphil_error *error)
{
    return xph_window_copy(&r->window, at, to, bytes, error);
}

/* Zeros up to the next multiple of 64, or to a cut. */
static exphil_status skip_padding(reader *r, exphil_error *error)
{
    const uint8_t *data;
    size_t over = (size_t)(r->at % XPH_CORPUS_ALIGN), skip = over ? XPH_CORPUS_ALIGN - over : 0;
    if (skip > left(r)) {
        skip = (size_t)left(r);
        r->torn = true;
    }
    XPH_TRY(look(r, r->at, skip, &data, error));
    if (!xph_all_zero(data, skip)) return damaged(r, r->at, "padding is not zero", error);
    r->at += skip;
    return EXPHIL_OK;
}

/* ---- header and spec --------------------------------------------------------------------------------- */

static exphil_status check_header(const reader *r, const xph_corpus_header *header, exphil_error *error)
{
    if (memcmp(header->magic, XPH_CORPUS_MAGIC, sizeof header->magic) != 0)
        return damaged(r, 0, "this is not a corpus file", error);
    if (!xph_hash_equal(xph_hash(header, offsetof(xph_corpus_header, hash)), header->hash))
        return damaged(r, 0, "the header is damaged", error);
    if (header->version != XPH_CORPUS_VERSION) {
        return xph_fail(error, EXPHIL_E_FORMAT, "\"%s\" byte 8: version %u; this library reads version %d",
                        r->name, (unsigned)header->version, XPH_CORPUS_VERSION);
    }
    if (header->type != EXPHIL_TYPE_F32) {
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "\"%s\" byte 12: its floats are %s (%u); f32 can be read", r->name,
                        xph_corpus_type_name(header->type), (unsigned)header->type);
    }
    if (header->reserved[0] || header->reserved[1]) return damaged(r, 40, "reserved is not zero", error);
    return EXPHIL_OK;
}

/* A text of the file: ended within its 32 bytes, zeros behind it. */
static bool text_fine(const char text[32])
{
    size_t length = 0;
    while (length < 32 && text[length]) length++;
    return length < 32 && xph_all_zero(text + length, 32 - length);
}

/* The parts of a spec, so that its texts have a place to be. */
typedef struct parts {
    xph_corpus_spec spec;
    xph_corpus_id ids[EXPHIL_IDS_MAX];
    xph_corpus_head heads[EXPHIL_HEADS_MAX];
    exphil_id_spec id_specs[EXPHIL_IDS_MAX];
    exphil_head_spec head_specs[EXPHIL_HEADS_MAX];
} parts;

static exphil_status take_parts(const reader *r, const uint8_t *data, size_t bytes, parts *p,
                                exphil_error *error)
{
    uint64_t at = r->at;
    if (bytes < sizeof p->spec) return damaged(r, at, "the spec is too short", error);
    memcpy(&p->spec, data, sizeof p->spec);
    if (p->spec.ids > EXPHIL_IDS_MAX || p->spec.heads > EXPHIL_HEADS_MAX)
        return damaged(r, at, "too many ids or heads", error);
    size_t ids = p->spec.ids * sizeof *p->ids, heads = p->spec.heads * sizeof *p->heads;
    size_t used = sizeof p->spec + ids + heads;
    size_t whole = (used + XPH_CORPUS_ALIGN - 1) / XPH_CORPUS_ALIGN * XPH_CORPUS_ALIGN;
    if (whole != bytes) return damaged(r, at, "the spec has not the length it should have", error);
    if (!xph_all_zero(data + used, bytes - used)) return damaged(r, at + used, "padding is not zero", error);
    memcpy(p->ids, data + sizeof p->spec, ids);
    memcpy(p->heads, data + sizeof p->spec + ids, heads);
    bool fine = text_fine(p->spec.layout) && text_fine(p->spec.codec) && !p->spec.reserved &&
                !p->spec.reserved_too && p->spec.layout_hash;
    for (uint32_t i = 0; i < p->spec.ids; i++) fine = fine && text_fine(p->ids[i].name);
    for (uint32_t i = 0; i < p->spec.heads; i++) fine = fine && text_fine(p->heads[i].name);
    return fine ? EXPHIL_OK : damaged(r, at, "the spec is damaged", error);
}

static void spec_of(parts *p, exphil_spec *spec)
{
    for (uint32_t i = 0; i < p->spec.ids; i++)
        p->id_specs[i] = (exphil_id_spec){p->ids[i].name, p->ids[i].entries, p->ids[i].width};
    for (uint32_t i = 0; i < p->spec.heads; i++) {
        const xph_corpus_head *head = &p->heads[i];
        p->head_specs[i] =
            (exphil_head_spec){head->name, head->kind, head->count, head->neutral, head->reserved};
    }
    *spec = (exphil_spec){.struct_size = sizeof *spec,
                          .layout = p->spec.layout,
                          .codec = p->spec.codec,
                          .float_count = p->spec.floats,
                          .id_count = p->spec.ids,
                          .ids = p->id_specs,
                          .head_count = p->spec.heads,
                          .heads = p->head_specs,
                          .layout_hash = p->spec.layout_hash};
}

/* A layout that this library knows by name must be the one it knows, or rows mean something else than they
 * seem to. */
static exphil_status check_melee(const reader *r, const exphil_spec *spec, exphil_error *error)
{
    if (!xph_melee_layout_find(spec->layout)) return EXPHIL_OK;
    exphil_spec own = EXPHIL_SPEC_INIT;
    const char *codec = xph_melee_codec_find(spec->codec) ? spec->codec : NULL;
    XPH_TRY(exphil_melee_spec(spec->layout, codec, &own, error));
    if (own.layout_hash != spec->layout_hash) {
        return xph_fail(
            error, EXPHIL_E_MISMATCH,
            "\"%s\": its layout %s has hash %016llx, this library's %016llx; import the replays again",
            r->name, spec->layout, (unsigned long long)spec->layout_hash,
            (unsigned long long)own.layout_hash);
    }
    uint64_t found = exphil_spec_hash(spec), known = exphil_spec_hash(&own);
    if (codec && found != known) {
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "\"%s\": its spec %s/%s has hash %016llx, this library's %016llx", r->name,
                        spec->layout, spec->codec, (unsigned long long)found, (unsigned long long)known);
    }
    return EXPHIL_OK;
}

/* The longest spec block there can be. */
enum { SPEC_MOST = sizeof(parts) + XPH_CORPUS_ALIGN };
_Static_assert((int)SPEC_MOST <= (int)XPH_WINDOW, "a spec is looked at whole");

static exphil_status read_spec(reader *r, exphil_error *error)
{
    xph_corpus_header header;
    const uint8_t *data;
    if (left(r) < sizeof header) return damaged(r, r->bytes, "the file ends within its header", error);
    XPH_TRY(copy(r, 0, &header, sizeof header, error));
    XPH_TRY(check_header(r, &header, error));
    r->at = sizeof header;
    if (header.spec_bytes > left(r)) return damaged(r, r->bytes, "the file ends within its spec", error);
    if (header.spec_bytes > SPEC_MOST)
        return damaged(r, r->at, "the spec has not the length it should have", error);
    size_t bytes = (size_t)header.spec_bytes;
    XPH_TRY(look(r, r->at, bytes, &data, error));
    if (!xph_hash_equal(xph_hash(data, bytes), header.block_hash))
        return damaged(r, r->at, "the spec is damaged", error);
    parts p;
    XPH_TRY(take_parts(r, data, bytes, &p, error));
    exphil_spec spec;
    spec_of(&p, &spec);
    exphil_status status = xph_spec_check(&spec, error);
    if (status < 0)
        return xph_fail_within(error, EXPHIL_E_FORMAT, "\"%s\" byte %llu", r->name,
                               (unsigned long long)r->at);
    if (!xph_hash_equal(exphil_spec_hash(&spec), header.spec_hash))
        return damaged(r, 24, "the hash of the spec is another", error);
    XPH_TRY(check_melee(r, &spec, error));
    r->at += bytes;
    return xph_dataset_new(r->context, &spec, &r->dataset, error);
}

/* ---- records ----------------------------------------------------------------------------------------- */

/* Beyond what the replay reader gives. */
#define FRAME_INDEX_MAX 1000000

static exphil_status check_record(const reader *r, const xph_corpus_record *record, exphil_error *error)
{
    const xph_row_shape *shape = &r->dataset->shape;
    if (memcmp(record->magic, XPH_RECORD_MAGIC, sizeof record->magic) != 0)
        return damaged(r, r->at, "neither a record nor a footer", error);
    if (!xph_hash_equal(xph_hash(record, offsetof(xph_corpus_record, hash)), record->hash))
        return damaged(r, r->at, "the header of this record is damaged", error);
    size_t bytes;
    if (record->frames < 1 || record->frames > (uint64_t)XPH_FRAMES_MAX ||
        !xph_size_mul((size_t)record->frames, (size_t)shape->row_bytes, &bytes) ||
        bytes != record->rows_bytes)
        return damaged(r, r->at + 16, "the sizes of this record are impossible", error);
    if (record->index != (uint64_t)r->count) return damaged(r, r->at + 8, "a record out of order", error);
    if (record->first_game_frame < -FRAME_INDEX_MAX || record->first_game_frame > FRAME_INDEX_MAX ||
        record->port < 0 || record->port > 4 || record->opponent_port < 0 || record->opponent_port > 4)
        return damaged(r, r->at + offsetof(xph_corpus_record, first_game_frame),
                       "an impossible frame or port", error);
    if (!xph_all_zero(record->reserved, sizeof record->reserved))
        return damaged(r, r->at + offsetof(xph_corpus_record, reserved), "reserved is not zero", error);
    return EXPHIL_OK;
}

/* Bytes of the hashes of a record's pieces, padding included. */
static size_t hashes_bytes(int64_t frames)
{
    size_t bytes = (size_t)xph_pieces(frames) * sizeof(uint64_t);
    return (bytes + XPH_CORPUS_ALIGN - 1) / XPH_CORPUS_ALIGN * XPH_CORPUS_ALIGN;
}

/* The hashes of a record's pieces, checked, into its block. */
static exphil_status read_hashes(reader *r, const xph_corpus_record *record, xph_block *block,
                                 exphil_error *error)
{
    uint64_t at = r->at + sizeof *record;
    size_t used = (size_t)xph_pieces(block->frames) * sizeof(uint64_t), padded = hashes_bytes(block->frames);
    const uint8_t *padding;
    XPH_TRY(copy(r, at, block->piece_hash, used, error));
    if (!xph_hash_equal(xph_hash(block->piece_hash, used), record->rows_hash))
        return damaged(r, at, "the hashes of this record's rows are damaged", error);
    XPH_TRY(look(r, at + used, padded - used, &padding, error));
    if (!xph_all_zero(padding, padded - used)) return damaged(r, at + used, "padding is not zero", error);
    return EXPHIL_OK;
}

/* Notes a record whose header is fine and whose rows are in the file; they are looked at later. */
static exphil_status note_record(reader *r, const xph_corpus_record *record, exphil_error *error)
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
                                       .opponent_character = record->opponent_character};
    episodes[r->count++] = (xph_episode){.block = block, .frames = frames, .hash = record->rows_hash};
    r->at = rows + record->rows_bytes;
    return EXPHIL_OK;
}

/* One record, unless the file was cut within it. */
static exphil_status read_record(reader *r, exphil_error *error)
{
    xph_corpus_record record;
    if (left(r) < sizeof record) {
        r->torn = true;
        return EXPHIL_OK;
    }
    XPH_TRY(copy(r, r->at, &record, sizeof record, error));
    if (!record.magic[0]) { /* perhaps the file was made longer, then never filled */
        XPH_TRY(xph_window_zero(&r->window, r->at, &r->torn, error));
        if (r->torn) return EXPHIL_OK;
    }
    XPH_TRY(check_record(r, &record, error));
    uint64_t behind = left(r) - sizeof record, hashes = hashes_bytes((int64_t)record.frames);
    if (hashes > behind || record.rows_bytes > behind - hashes) {
        r->torn = true;
        return EXPHIL_OK;
    }
    XPH_TRY(note_record(r, &record, error));
    return skip_padding(r, error);
}

/* ---- footer ------------------------------------------------------------------------------------------ */

static exphil_status at_footer(reader *r, bool *found, exphil_error *error)
{
    const uint8_t *magic;
    *found = false;
    if (left(r) < sizeof(xph_corpus_footer)) return EXPHIL_OK;
    XPH_TRY(look(r, r->at, 8, &magic, error));
    *found = memcmp(magic, XPH_FOOTER_MAGIC, 8) == 0;
    return EXPHIL_OK;
}

/* Each record's header lies in front of the hashes of its rows. */
static uint64_t record_offset(const xph_block *block)
{
    return block->at - hashes_bytes(block->frames) - sizeof(xph_corpus_record);
}

static exphil_status read_offsets(reader *r, const xph_corpus_footer *footer, exphil_error *error)
{
    enum { CHUNK = XPH_WINDOW / sizeof(uint64_t) };
    xph_hasher hasher;
    bool fit = true;
    xph_hash_begin(&hasher);
    for (int64_t i = 0; i < r->count; i += CHUNK) {
        int64_t count = r->count - i < CHUNK ? r->count - i : CHUNK;
        const uint8_t *data;
        XPH_TRY(
            look(r, r->at + (uint64_t)i * sizeof(uint64_t), (size_t)count * sizeof(uint64_t), &data, error));
        xph_hash_add(&hasher, data, (size_t)count * sizeof(uint64_t));
        for (int64_t k = 0; k < count; k++) {
            uint64_t offset;
            memcpy(&offset, data + (size_t)k * sizeof offset, sizeof offset);
            fit = fit && offset == record_offset(r->episodes[i + k].block);
        }
    }
    if (fit && xph_hash_equal(xph_hash_end(&hasher), footer->offsets_hash)) return EXPHIL_OK;
    return damaged(r, r->at, "the offsets of the footer are wrong", error);
}

/* The columns of all records. Whether they tell the truth shows only when all rows are read; nothing but the
 * count of dead inputs depends on them. */
static exphil_status read_columns(reader *r, const xph_corpus_footer *footer, exphil_error *error)
{
    xph_columns *columns = &r->dataset->columns;
    size_t floats = (size_t)r->dataset->shape.floats, first = floats * sizeof *columns->first;
    const uint8_t *at;
    if (first + floats > left(r)) {
        r->torn = true;
        return EXPHIL_OK;
    }
    XPH_TRY(look(r, r->at, first + floats, &at, error));
    if (!xph_hash_equal(xph_hash(at, first + floats), footer->columns_hash))
        return damaged(r, r->at, "the columns of the footer are damaged", error);
    if (first) memcpy(columns->first, at, first);
    for (size_t f = 0; f < floats; f++) columns->varies[f] = at[first + f] != 0;
    columns->any = r->count > 0;
    r->at += first + floats;
    return EXPHIL_OK;
}

static exphil_status read_footer(reader *r, xph_corpus_footer *footer, exphil_error *error)
{
    uint64_t start = r->at;
    XPH_TRY(copy(r, start, footer, sizeof *footer, error));
    if (!xph_hash_equal(xph_hash(footer, offsetof(xph_corpus_footer, hash)), footer->hash))
        return damaged(r, start, "the footer is damaged", error);
    if (footer->reserved) return damaged(r, start, "reserved is not zero", error);
    int64_t frames = 0;
    for (int64_t i = 0; i < r->count; i++) frames += r->episodes[i].frames;
    if (footer->records != (uint64_t)r->count || footer->frames != (uint64_t)frames)
        return damaged(r, start, "the footer counts other records than there are", error);
    r->at += sizeof *footer;
    uint64_t bytes = (uint64_t)r->count * sizeof(uint64_t);
    if (bytes > left(r)) {
        r->torn = true;
        return EXPHIL_OK;
    }
    XPH_TRY(read_offsets(r, footer, error));
    r->at += bytes;
    XPH_TRY(read_columns(r, footer, error));
    if (r->torn) return EXPHIL_OK;
    XPH_TRY(skip_padding(r, error));
    return r->at == r->bytes ? EXPHIL_OK : damaged(r, r->at, "there is something behind the footer", error);
}

/* ---- the file ---------------------------------------------------------------------------------------- */

/* Records up to the footer or a cut. */
static exphil_status read_records(reader *r, xph_corpus_footer *footer, uint64_t *footer_at, bool *ended,
                                  exphil_error *error)
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

static exphil_status read_all(reader *r, exphil_error *error)
{
    XPH_TRY(read_spec(r, error));
    xph_corpus_footer footer = {.records = 0};
    uint64_t footer_at = 0;
    bool ended;
    XPH_TRY(read_records(r, &footer, &footer_at, &ended, error));
    XPH_TRY(xph_dataset_append(r->dataset, r->episodes, r->count, error));
    if (ended && !xph_hash_equal(xph_dataset_content_hash(r->dataset), footer.content_hash))
        return damaged(r, footer_at, "the hash of the content is another", error);
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

static exphil_status read_corpus(xph_corpus *corpus, exphil_dataset **dataset, exphil_error *error)
{
    exphil_context *context = corpus->context;
    reader r = {.context = context, .name = corpus->name, .bytes = corpus->file.bytes, .corpus = corpus};
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
    xph_corpus *corpus = NULL;
    XPH_TRY(xph_corpus_open(context, path, &corpus, error));
    exphil_status status = read_corpus(corpus, dataset, error);
    xph_corpus_release(corpus);
    return status;
}
