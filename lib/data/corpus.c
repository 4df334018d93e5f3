/* Reading a corpus file. The file is hostile input: every number is checked before it is used, every header
 * and every row against its hash and against the rules for rows. Opening walks the chain of record headers,
 * which touches little of the file; rows are checked in pieces when they are first used (xph_rows_verify),
 * all of them at once if the file was cut.
 *
 * A file that just stops, between records or within one, or after the records, was cut: the whole records
 * before the cut are used. Zeros to the end of the file count as a cut too, since that is what file systems
 * leave after a loss of power. Anything else that is wrong is damage, and refused. */
#include "data/corpus.h"

#include "melee/melee.h"

#include <stdio.h>

void xph_corpus_release(xph_corpus *corpus)
{
    if (!corpus || atomic_fetch_sub(&corpus->references, 1) != 1) return;
    xph_file_release(&corpus->file);
    exphil_context *context = corpus->context;
    xph_free(context, corpus, corpus->bytes);
    xph_context_release(context);
}

const char *xph_corpus_type_name(uint32_t type)
{
    static const char *const names[] = {"f32", "f64", "bf16", "i8", "f16"};
    return type < sizeof names / sizeof *names ? names[type] : "of an unknown type";
}

/* ---- reading ----------------------------------------------------------------------------------------- */

typedef struct reader {
    exphil_context *context;
    const char *name; /* of the file, for messages */
    const uint8_t *data;
    size_t bytes, at;
    xph_corpus *corpus;
    exphil_dataset *dataset;
    xph_episode *episodes; /* of the whole records */
    int64_t count, room;
    bool torn;
} reader;

static exphil_status damaged(const reader *r, size_t offset, const char *what, exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_FORMAT, "\"%s\" byte %zu: %s", r->name, offset, what);
}

static size_t left(const reader *r)
{
    return r->bytes - r->at;
}

static bool all_zero(const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (data[i]) return false;
    }
    return true;
}

/* Zeros up to the next multiple of 64, or to a cut. */
static exphil_status skip_padding(reader *r, exphil_error *error)
{
    size_t over = r->at % XPH_CORPUS_ALIGN, skip = over ? XPH_CORPUS_ALIGN - over : 0;
    if (skip > left(r)) {
        skip = left(r);
        r->torn = true;
    }
    if (!all_zero(r->data + r->at, skip)) return damaged(r, r->at, "padding is not zero", error);
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
    return length < 32 && all_zero((const uint8_t *)text + length, 32 - length);
}

/* The parts of a spec, so that its texts have a place to be. */
typedef struct parts {
    xph_corpus_spec spec;
    xph_corpus_id ids[EXPHIL_IDS_MAX];
    xph_corpus_head heads[EXPHIL_HEADS_MAX];
    exphil_id_spec id_specs[EXPHIL_IDS_MAX];
    exphil_head_spec head_specs[EXPHIL_HEADS_MAX];
} parts;

static exphil_status take_parts(const reader *r, size_t at, size_t bytes, parts *p, exphil_error *error)
{
    const uint8_t *data = r->data + at;
    if (bytes < sizeof p->spec) return damaged(r, at, "the spec is too short", error);
    memcpy(&p->spec, data, sizeof p->spec);
    if (p->spec.ids > EXPHIL_IDS_MAX || p->spec.heads > EXPHIL_HEADS_MAX)
        return damaged(r, at, "too many ids or heads", error);
    size_t ids = p->spec.ids * sizeof *p->ids, heads = p->spec.heads * sizeof *p->heads;
    size_t used = sizeof p->spec + ids + heads;
    size_t whole = (used + XPH_CORPUS_ALIGN - 1) / XPH_CORPUS_ALIGN * XPH_CORPUS_ALIGN;
    if (whole != bytes) return damaged(r, at, "the spec has not the length it should have", error);
    if (!all_zero(data + used, bytes - used)) return damaged(r, at + used, "padding is not zero", error);
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

static exphil_status read_spec(reader *r, exphil_error *error)
{
    xph_corpus_header header;
    if (left(r) < sizeof header) return damaged(r, r->bytes, "the file ends within its header", error);
    memcpy(&header, r->data, sizeof header);
    XPH_TRY(check_header(r, &header, error));
    r->at = sizeof header;
    if (header.spec_bytes > left(r)) return damaged(r, r->bytes, "the file ends within its spec", error);
    size_t bytes = (size_t)header.spec_bytes;
    if (!xph_hash_equal(xph_hash(r->data + r->at, bytes), header.block_hash))
        return damaged(r, r->at, "the spec is damaged", error);
    parts p;
    XPH_TRY(take_parts(r, r->at, bytes, &p, error));
    exphil_spec spec;
    spec_of(&p, &spec);
    exphil_status status = xph_spec_check(&spec, error);
    if (status < 0) return xph_fail_within(error, EXPHIL_E_FORMAT, "\"%s\" byte %zu", r->name, r->at);
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
    if (!all_zero((const uint8_t *)record->reserved, sizeof record->reserved))
        return damaged(r, r->at + offsetof(xph_corpus_record, reserved), "reserved is not zero", error);
    return EXPHIL_OK;
}

/* Bytes of the hashes of a record's pieces, padding included. */
static size_t hashes_bytes(const xph_corpus_record *record)
{
    size_t bytes = (size_t)xph_pieces((int64_t)record->frames) * sizeof(uint64_t);
    return (bytes + XPH_CORPUS_ALIGN - 1) / XPH_CORPUS_ALIGN * XPH_CORPUS_ALIGN;
}

/* Notes a record whose header is fine and whose rows are in the file; they are looked at later. */
static exphil_status note_record(reader *r, const xph_corpus_record *record, exphil_error *error)
{
    const uint8_t *hashes = r->data + r->at + sizeof *record;
    size_t used = (size_t)xph_pieces((int64_t)record->frames) * sizeof(uint64_t),
           padded = hashes_bytes(record);
    if (!xph_hash_equal(xph_hash(hashes, used), record->rows_hash))
        return damaged(r, r->at + sizeof *record, "the hashes of this record's rows are damaged", error);
    if (!all_zero(hashes + used, padded - used))
        return damaged(r, r->at + sizeof *record + used, "padding is not zero", error);
    xph_episode *episodes =
        xph_grow(r->context, r->episodes, &r->room, r->count + 1, sizeof *episodes, error);
    if (!episodes) return EXPHIL_E_MEMORY;
    r->episodes = episodes;
    const uint8_t *rows = hashes + padded;
    xph_block *block;
    int64_t frames = (int64_t)record->frames;
    XPH_TRY(xph_block_map(r->corpus, &r->dataset->shape, (const uint64_t *)(const void *)hashes, rows, frames,
                          &block, error));
    block->hash = record->rows_hash;
    block->facts = (xph_episode_facts){.game = record->game,
                                       .first_game_frame = record->first_game_frame,
                                       .port = record->port,
                                       .opponent_port = record->opponent_port,
                                       .stage = record->stage,
                                       .character = record->character,
                                       .opponent_character = record->opponent_character};
    episodes[r->count++] = (xph_episode){.block = block, .frames = frames, .hash = record->rows_hash};
    r->at += sizeof *record + padded + (size_t)record->rows_bytes;
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
    memcpy(&record, r->data + r->at, sizeof record);
    if (!record.magic[0] &&
        all_zero(r->data + r->at, left(r))) { /* the file was made longer, then never filled */
        r->torn = true;
        return EXPHIL_OK;
    }
    XPH_TRY(check_record(r, &record, error));
    size_t behind = left(r) - sizeof record, hashes = hashes_bytes(&record);
    if (hashes > behind || record.rows_bytes > behind - hashes) {
        r->torn = true;
        return EXPHIL_OK;
    }
    XPH_TRY(note_record(r, &record, error));
    return skip_padding(r, error);
}

/* ---- footer ------------------------------------------------------------------------------------------ */

static bool at_footer(const reader *r)
{
    return left(r) >= sizeof(xph_corpus_footer) && memcmp(r->data + r->at, XPH_FOOTER_MAGIC, 8) == 0;
}

/* Each record's header lies in front of the hashes of its rows. */
static bool offsets_fit(const reader *r, const uint8_t *offsets)
{
    for (int64_t i = 0; i < r->count; i++) {
        uint64_t offset;
        memcpy(&offset, offsets + (size_t)i * sizeof offset, sizeof offset);
        const uint8_t *hashes = (const uint8_t *)r->episodes[i].block->piece_hash;
        if (offset != (uint64_t)(hashes - r->data) - sizeof(xph_corpus_record)) return false;
    }
    return true;
}

/* The columns of all records. Whether they tell the truth shows only when all rows are read; nothing but the
 * count of dead inputs depends on them. */
static exphil_status read_columns(reader *r, const xph_corpus_footer *footer, exphil_error *error)
{
    xph_columns *columns = &r->dataset->columns;
    size_t floats = (size_t)r->dataset->shape.floats, first = floats * sizeof *columns->first;
    if (first + floats > left(r)) {
        r->torn = true;
        return EXPHIL_OK;
    }
    const uint8_t *at = r->data + r->at;
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
    size_t start = r->at;
    memcpy(footer, r->data + start, sizeof *footer);
    if (!xph_hash_equal(xph_hash(footer, offsetof(xph_corpus_footer, hash)), footer->hash))
        return damaged(r, start, "the footer is damaged", error);
    if (footer->reserved) return damaged(r, start, "reserved is not zero", error);
    int64_t frames = 0;
    for (int64_t i = 0; i < r->count; i++) frames += r->episodes[i].frames;
    if (footer->records != (uint64_t)r->count || footer->frames != (uint64_t)frames)
        return damaged(r, start, "the footer counts other records than there are", error);
    r->at += sizeof *footer;
    size_t bytes = (size_t)r->count * sizeof(uint64_t);
    if (bytes > left(r)) {
        r->torn = true;
        return EXPHIL_OK;
    }
    const uint8_t *offsets = r->data + r->at;
    if (!xph_hash_equal(xph_hash(offsets, bytes), footer->offsets_hash) || !offsets_fit(r, offsets))
        return damaged(r, r->at, "the offsets of the footer are wrong", error);
    r->at += bytes;
    XPH_TRY(read_columns(r, footer, error));
    if (r->torn) return EXPHIL_OK;
    XPH_TRY(skip_padding(r, error));
    return r->at == r->bytes ? EXPHIL_OK : damaged(r, r->at, "there is something behind the footer", error);
}

/* ---- the file ---------------------------------------------------------------------------------------- */

static exphil_status read_all(reader *r, exphil_error *error)
{
    XPH_TRY(read_spec(r, error));
    xph_corpus_footer footer = {.records = 0};
    size_t footer_at = 0;
    bool ended = false;
    while (!ended && !r->torn) {
        ended = at_footer(r);
        footer_at = r->at;
        XPH_TRY(ended ? read_footer(r, &footer, error) : read_record(r, error));
        if (!ended && xph_cancelled(r->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
    }
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

exphil_status xph_corpus_open(exphil_context *context, xph_file_data *file, const char *name,
                              exphil_dataset **dataset, exphil_error *error)
{
    reader r = {.context = context, .name = name, .data = file->data, .bytes = file->bytes};
    size_t bytes = sizeof *r.corpus + strlen(name) + 1;
    r.corpus = xph_alloc(context, bytes);
    if (!r.corpus) {
        xph_file_release(file);
        return xph_no_memory(bytes, error);
    }
    *r.corpus =
        (xph_corpus){.context = xph_context_retain(context), .references = 1, .file = *file, .bytes = bytes};
    memcpy(r.corpus->name, name, strlen(name) + 1);
    exphil_status status = read_all(&r, error);
    for (int64_t i = 0; i < r.count; i++) xph_block_release(r.episodes[i].block);
    xph_free(context, r.episodes, (size_t)r.room * sizeof *r.episodes);
    if (status < 0) {
        xph_dataset_release(r.dataset);
    } else {
        *dataset = r.dataset;
    }
    xph_corpus_release(r.corpus);
    return status;
}

exphil_status exphil_dataset_open(exphil_context *context, const char *path, exphil_dataset **dataset,
                                  exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_context_check(context, error));
    if (!dataset) return xph_fail(error, EXPHIL_E_INVALID, "dataset is NULL");
    xph_file_data file = {.context = context};
    XPH_TRY(xph_file_read(context, path, PTRDIFF_MAX, true, &file, error));
    return xph_corpus_open(context, &file, path, dataset, error);
}
