/* Writing a corpus file: header and spec, one record for each episode, and at the end the footer; a file
 * without one was cut. */
#include "data/corpus.h"

/* ---- pieces ------------------------------------------------------------------------------------------ */

static exphil_status add_padding(xph_file_writer *writer, exphil_error *error)
{
    static const uint8_t zeros[XPH_CORPUS_ALIGN];
    size_t over = (size_t)(writer->written % XPH_CORPUS_ALIGN);
    return over ? xph_file_add(writer, zeros, XPH_CORPUS_ALIGN - over, error) : EXPHIL_OK;
}

/* The hash of a header stands in its last eight bytes. */
static uint64_t header_hash(const void *header, size_t bytes)
{
    return xph_hash(header, bytes - sizeof(uint64_t));
}

/* The longest spec block there can be. */
typedef union spec_block {
    xph_corpus_spec spec;
    uint8_t bytes[sizeof(xph_corpus_spec) + EXPHIL_IDS_MAX * sizeof(xph_corpus_id) +
                  EXPHIL_HEADS_MAX * sizeof(xph_corpus_head) + XPH_CORPUS_ALIGN];
} spec_block;

/* Texts of a spec have at most 31 characters; what is behind them in to is zero already. */
static void put_text(char *to, const char *text)
{
    memcpy(to, text, strlen(text)); /* NOLINT(bugprone-not-null-terminated-result) */
}

/* A spec as the file has it; returns its length, padding included. */
static size_t put_spec(const exphil_spec *spec, spec_block *block)
{
    memset(block, 0, sizeof *block);
    block->spec.floats = (uint32_t)spec->float_count;
    block->spec.ids = (uint32_t)spec->id_count;
    block->spec.heads = (uint32_t)spec->head_count;
    block->spec.layout_hash = spec->layout_hash;
    put_text(block->spec.layout, spec->layout);
    put_text(block->spec.codec, spec->codec);
    size_t at = sizeof block->spec;
    for (int64_t k = 0; k < spec->id_count; k++) {
        xph_corpus_id id = {.entries = spec->ids[k].entries, .width = spec->ids[k].width};
        put_text(id.name, spec->ids[k].name);
        memcpy(block->bytes + at, &id, sizeof id);
        at += sizeof id;
    }
    for (int64_t a = 0; a < spec->head_count; a++) {
        const exphil_head_spec *from = &spec->heads[a];
        xph_corpus_head head = {.kind = from->kind, .count = from->count, .neutral = from->neutral};
        put_text(head.name, from->name);
        memcpy(block->bytes + at, &head, sizeof head);
        at += sizeof head;
    }
    return (at + XPH_CORPUS_ALIGN - 1) / XPH_CORPUS_ALIGN * XPH_CORPUS_ALIGN;
}

static exphil_status add_header(xph_file_writer *writer, const exphil_dataset *dataset, exphil_error *error)
{
    spec_block block;
    size_t bytes = put_spec(dataset->spec, &block);
    xph_corpus_header header = {.version = XPH_CORPUS_VERSION,
                                .type = EXPHIL_TYPE_F32,
                                .spec_bytes = bytes,
                                .spec_hash = dataset->spec_hash,
                                .block_hash = xph_hash(block.bytes, bytes)};
    memcpy(header.magic, XPH_CORPUS_MAGIC, sizeof header.magic);
    header.hash = header_hash(&header, sizeof header);
    XPH_TRY(xph_file_add(writer, &header, sizeof header, error));
    return xph_file_add(writer, block.bytes, bytes, error);
}

/* What a file in the making is made of. */
typedef struct saving {
    const exphil_dataset *dataset;
    xph_file_writer writer;
    uint64_t *offsets;
    xph_piece_buffer buffer;
    xph_hasher content; /* spec, then length and hash of each episode's rows */
} saving;

/* Hashes of an episode's floats, ids and actions, each for itself: rows of a corpus are read twice, for the hashes and
 * then to be written, and must be the same both times. */
typedef struct regions {
    xph_hasher of[3];
} regions;

static void regions_begin(regions *seen)
{
    for (int i = 0; i < 3; i++) xph_hash_begin(&seen->of[i]);
}

static size_t region_bytes(const xph_row_shape *shape, int i)
{
    const int64_t each[3] = {shape->floats * (int64_t)sizeof(float), shape->ids * (int64_t)sizeof(int32_t),
                             shape->action_bytes};
    return (size_t)each[i];
}

static void regions_add(regions *seen, const xph_row_shape *shape, const xph_rows *rows, int64_t frames)
{
    const void *const from[3] = {rows->floats, rows->ids, rows->actions};
    for (int i = 0; i < 3; i++) xph_hash_add(&seen->of[i], from[i], (size_t)frames * region_bytes(shape, i));
}

static bool regions_same(const regions *a, const regions *b)
{
    bool same = true;
    for (int i = 0; i < 3; i++) same = same && xph_hash_end(&a->of[i]) == xph_hash_end(&b->of[i]);
    return same;
}

static bool in_memory(const xph_episode *episode)
{
    return !episode->block->corpus && !episode->block->source;
}

/* Of the rows; a dataset of games has another in its place. */
static exphil_status rows_hash(saving *s, const xph_episode *episode, uint64_t *hash, exphil_error *error)
{
    *hash = episode->hash;
    if (!episode->block->source) return EXPHIL_OK;
    return xph_rows_hash(&s->dataset->shape, episode->block, episode->offset, episode->frames, &s->buffer,
                         hash, error);
}

static exphil_status add_hashes(saving *s, const xph_episode *episode, regions *seen, exphil_error *error)
{
    const xph_row_shape *shape = &s->dataset->shape;
    for (int64_t at = 0; at < episode->frames; at += XPH_PIECE) {
        int64_t frames = xph_piece_frames(episode->frames, at);
        xph_rows rows;
        XPH_TRY(xph_rows_take(shape, episode->block, episode->offset + at, frames, &s->buffer, &rows, error));
        uint64_t hash = xph_piece_hash(shape, &rows, frames);
        XPH_TRY(xph_file_add(&s->writer, &hash, sizeof hash, error));
        if (!in_memory(episode)) regions_add(seen, shape, &rows, frames);
    }
    return add_padding(&s->writer, error);
}

static exphil_status add_region_in_memory(saving *s, const xph_episode *episode, int i, exphil_error *error)
{
    const xph_row_shape *shape = &s->dataset->shape;
    xph_rows rows = xph_rows_from(shape, &episode->block->rows, episode->offset);
    const void *const from[3] = {rows.floats, rows.ids, rows.actions};
    return xph_file_add(&s->writer, from[i], (size_t)episode->frames * region_bytes(shape, i), error);
}

static exphil_status add_region_of_corpus(saving *s, const xph_episode *episode, int i, regions *written,
                                          exphil_error *error)
{
    const xph_row_shape *shape = &s->dataset->shape;
    XPH_TRY(xph_piece_buffer_make(&s->buffer, shape, error));
    void *to = s->buffer.memory;
    for (int64_t at = 0; at < episode->frames; at += XPH_PIECE) {
        int64_t frames = xph_piece_frames(episode->frames, at);
        size_t bytes = (size_t)frames * region_bytes(shape, i);
        XPH_TRY(xph_rows_copy(shape, episode->block, episode->offset + at, frames, &s->buffer,
                              i == 0 ? to : NULL, i == 1 ? to : NULL, i == 2 ? to : NULL, error));
        XPH_TRY(xph_file_add(&s->writer, to, bytes, error));
        xph_hash_add(&written->of[i], to, bytes);
    }
    return EXPHIL_OK;
}

/* The hashes of an episode's rows and the rows. */
static exphil_status add_rows(saving *s, const xph_episode *episode, exphil_error *error)
{
    regions hashed, written;
    regions_begin(&hashed);
    regions_begin(&written);
    XPH_TRY(add_hashes(s, episode, &hashed, error));
    for (int i = 0; i < 3; i++)
        XPH_TRY(in_memory(episode) ? add_region_in_memory(s, episode, i, error)
                                   : add_region_of_corpus(s, episode, i, &written, error));
    if (regions_same(&hashed, &written)) return EXPHIL_OK;
    const xph_shared_file *file = episode->block->corpus;
    return xph_fail(error, EXPHIL_E_FORMAT, "\"%s\" was changed while it was saved",
                    file ? file->name : "a corpus of games");
}

static exphil_status add_record(saving *s, int64_t index, exphil_error *error)
{
    const exphil_dataset *dataset = s->dataset;
    const xph_episode *episode = &dataset->episodes[index];
    const xph_episode_facts *facts = &episode->block->facts;
    uint64_t hash, frames = (uint64_t)episode->frames;
    XPH_TRY(rows_hash(s, episode, &hash, error));
    xph_hash_add(&s->content, &frames, sizeof frames);
    xph_hash_add(&s->content, &hash, sizeof hash);
    int32_t shift = facts->port ? (int32_t)episode->offset : 0; /* rows of a host have no frame numbers */
    xph_corpus_record record = {.index = (uint64_t)index,
                                .frames = frames,
                                .rows_bytes = (uint64_t)(episode->frames * dataset->shape.row_bytes),
                                .rows_hash = hash,
                                .game = facts->game,
                                .first_game_frame = facts->first_game_frame + shift,
                                .port = facts->port,
                                .opponent_port = facts->opponent_port,
                                .stage = facts->stage,
                                .character = facts->character,
                                .opponent_character = facts->opponent_character,
                                .group = facts->group,
                                .match = facts->match};
    memcpy(record.magic, XPH_RECORD_MAGIC, sizeof record.magic);
    record.hash = header_hash(&record, sizeof record);
    XPH_TRY(xph_file_add(&s->writer, &record, sizeof record, error));
    XPH_TRY(add_rows(s, episode, error));
    return add_padding(&s->writer, error);
}

static exphil_status add_footer(saving *s, exphil_error *error)
{
    const exphil_dataset *dataset = s->dataset;
    const uint64_t *offsets = s->offsets;
    xph_file_writer *writer = &s->writer;
    size_t bytes = (size_t)dataset->episode_count * sizeof *offsets, floats = (size_t)dataset->shape.floats;
    const xph_columns *columns = &dataset->columns;
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    xph_hash_add(&hasher, columns->first, floats * sizeof *columns->first);
    xph_hash_add(&hasher, columns->varies, floats);
    xph_corpus_footer footer = {.records = (uint64_t)dataset->episode_count,
                                .frames = (uint64_t)dataset->frames,
                                .content_hash = xph_hash_end(&s->content),
                                .offsets_hash = xph_hash(offsets, bytes),
                                .columns_hash = xph_hash_end(&hasher)};
    memcpy(footer.magic, XPH_FOOTER_MAGIC, sizeof footer.magic);
    footer.hash = header_hash(&footer, sizeof footer);
    XPH_TRY(xph_file_add(writer, &footer, sizeof footer, error));
    XPH_TRY(xph_file_add(writer, offsets, bytes, error));
    XPH_TRY(xph_file_add(writer, columns->first, floats * sizeof *columns->first, error));
    XPH_TRY(xph_file_add(writer, columns->varies, floats, error));
    return add_padding(writer, error);
}

/* ---- the file ---------------------------------------------------------------------------------------- */

static exphil_status write_all(saving *s, exphil_error *error)
{
    const exphil_dataset *dataset = s->dataset;
    XPH_TRY(add_header(&s->writer, dataset, error));
    for (int64_t i = 0; i < dataset->episode_count; i++) {
        if (xph_cancelled(dataset->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        s->offsets[i] = s->writer.written;
        XPH_TRY(add_record(s, i, error));
    }
    return add_footer(s, error);
}

static exphil_status save(const exphil_dataset *dataset, const char *path, exphil_error *error)
{
    saving s = {.dataset = dataset, .buffer.context = dataset->context};
    xph_hash_begin(&s.content);
    xph_hash_add(&s.content, &dataset->spec_hash, sizeof dataset->spec_hash);
    size_t bytes = (size_t)dataset->episode_count * sizeof(uint64_t);
    s.offsets = xph_alloc(dataset->context, bytes);
    if (!s.offsets) return xph_no_memory(bytes, error);
    exphil_status status = xph_file_begin(dataset->context, path, &s.writer, error);
    if (status == EXPHIL_OK) {
        status = write_all(&s, error);
        if (status < 0) {
            xph_file_cancel(&s.writer);
        } else {
            status = xph_file_commit(&s.writer, error);
        }
    }
    xph_piece_buffer_free(&s.buffer);
    xph_free(dataset->context, s.offsets, bytes);
    return status;
}

exphil_status exphil_dataset_save(const exphil_dataset *dataset, const char *path, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_dataset_enter(dataset, error));
    exphil_status status = xph_dataset_verify(dataset, error);
    if (status == EXPHIL_OK) status = xph_dataset_look((exphil_dataset *)(uintptr_t)dataset, error);
    if (status == EXPHIL_OK) status = save(dataset, path, error);
    xph_dataset_leave(dataset);
    return status;
}
