/* One game of a corpus: its front, and its blocks one by one. The file is hostile input: every number is checked
 * before it is used, and decompression goes into memory whose size is known before. */
#include "games/format.h"

/* ---- the front ------------------------------------------------------------------------------------------- */

/* Runs of each port lie one after the other, in its frames, and the ports ascend. */
static const char *runs_wrong(const xph_game_front *front)
{
    uint64_t end = 1;
    uint32_t port = 1;
    for (uint32_t i = 0; i < front->entry.runs; i++) {
        const xph_game_run *run = &front->runs[i];
        if (run->port < port || run->port > EXPHIL_SLP_PORTS) return "a run of an impossible port";
        if (front->entry.port[run->port - 1].whole) return "a run of a port that is whole";
        if (run->port > port) end = 1;
        if (run->position < end || !run->frames ||
            (uint64_t)run->position + run->frames > front->entry.frames)
            return "a run outside its game";
        if (run->frame <= front->entry.first_frame ||
            (int64_t)run->frame + run->frames - 1 > front->entry.last_frame)
            return "a run with impossible frame numbers";
        end = (uint64_t)run->position + run->frames;
        port = run->port;
    }
    return NULL;
}

static const char *places_wrong(const xph_game_front *front)
{
    uint64_t end = 0, most = front->entry.bytes - (front->blocks - front->at);
    for (uint32_t k = 0; k < xph_game_blocks(front->entry.frames); k++) {
        if (front->places[k].end < end + sizeof(xph_game_block_header)) return "blocks that overlap";
        end = front->places[k].end;
    }
    return end == most ? NULL : "blocks that do not end where their game ends";
}

static exphil_status read_behind(xph_game_front *front, exphil_error *error)
{
    const xph_game_entry *entry = &front->entry;
    uint64_t at = front->at + sizeof *entry, hash;
    size_t runs = (size_t)entry->runs * sizeof *front->runs,
           places = (size_t)xph_game_blocks(entry->frames) * sizeof *front->places;
    xph_hasher hasher;
    XPH_TRY(xph_shared_read(front->file, at, &front->start, sizeof front->start, error));
    at += sizeof front->start;
    XPH_TRY(xph_shared_read(front->file, at, front->runs, runs, error));
    XPH_TRY(xph_shared_read(front->file, at + runs, &hash, sizeof hash, error));
    xph_hash_begin(&hasher);
    xph_hash_add(&hasher, entry, sizeof *entry);
    xph_hash_add(&hasher, &front->start, sizeof front->start);
    xph_hash_add(&hasher, front->runs, runs);
    if (!xph_hash_equal(xph_hash_end(&hasher), hash))
        return xph_game_damaged(front->file, front->game, front->at, "the head of this game is damaged",
                                error);
    at = front->at + xph_game_head_bytes(entry);
    XPH_TRY(xph_shared_read(front->file, at, front->places, places, error));
    XPH_TRY(xph_shared_read(front->file, at + places, &hash, sizeof hash, error));
    if (!xph_hash_equal(xph_hash(front->places, places), hash))
        return xph_game_damaged(front->file, front->game, at, "the table of blocks is damaged", error);
    return EXPHIL_OK;
}

static exphil_status check_front(xph_game_front *front, exphil_error *error)
{
    uint64_t records = 0;
    const char *wrong = runs_wrong(front);
    if (wrong) return xph_game_damaged(front->file, front->game, front->at, wrong, error);
    wrong = places_wrong(front);
    if (wrong)
        return xph_game_damaged(front->file, front->game, front->at + xph_game_head_bytes(&front->entry),
                                wrong, error);
    for (int32_t slot = 0; slot < XPH_GAME_SLOTS; slot++) {
        records += front->start.records[slot];
        if (front->start.records[slot] > front->entry.frames)
            return xph_game_damaged(front->file, front->game, front->at, "more records than frames", error);
    }
    if (records != front->entry.records)
        return xph_game_damaged(front->file, front->game, front->at, "other counts of records than their sum",
                                error);
    if (!xph_hash_equal(xph_game_content(&front->entry, &front->start, front->places),
                        front->entry.content_hash))
        return xph_game_damaged(front->file, front->game, front->at, "the hash of the content is another",
                                error);
    xph_game_info(&front->entry, &front->start, &front->info);
    return EXPHIL_OK;
}

static exphil_status make_front(xph_shared_file *file, int64_t game, uint64_t offset,
                                const xph_game_entry *entry, xph_game_front **front, exphil_error *error)
{
    exphil_context *context = file->context;
    uint32_t blocks = xph_game_blocks(entry->frames);
    size_t places = blocks * sizeof(xph_game_place), runs = entry->runs * sizeof(xph_game_run);
    size_t head = (sizeof **front + 15) / 16 * 16, bytes = head + places + runs;
    xph_game_front *made = xph_alloc(context, bytes);
    if (!made) return xph_no_memory(bytes, error);
    *made = (xph_game_front){
        .context = context, .file = xph_shared_retain(file), .game = game, .at = offset, .bytes = bytes};
    made->entry = *entry;
    made->blocks = offset + xph_game_head_bytes(entry) + xph_game_table_bytes(entry);
    made->places = (xph_game_place *)(void *)((uint8_t *)made + head);
    made->runs = (xph_game_run *)(void *)((uint8_t *)made + head + places);
    exphil_status status = read_behind(made, error);
    if (status == EXPHIL_OK) status = check_front(made, error);
    if (status < 0)
        xph_game_front_free(made);
    else
        *front = made;
    return status;
}

exphil_status xph_game_front_at(xph_shared_file *file, int64_t game, uint64_t offset, xph_game_front **front,
                                exphil_error *error)
{
    xph_game_entry entry;
    XPH_TRY(xph_shared_read(file, offset, &entry, sizeof entry, error));
    const char *wrong = xph_game_entry_wrong(&entry);
    if (!wrong && (entry.offset != offset || entry.bytes > file->file.bytes - offset))
        wrong = "no game begins here";
    if (wrong) return xph_game_damaged(file, game, offset, wrong, error);
    return make_front(file, game, offset, &entry, front, error);
}

exphil_status xph_game_front_read(const exphil_games *games, int64_t game, xph_game_front **front,
                                  exphil_error *error)
{
    const xph_shard *shard;
    uint64_t offset;
    XPH_TRY(xph_games_find(games, game, &shard, &offset, error));
    return xph_game_front_at(shard->file, game, offset, front, error);
}

void xph_game_front_free(xph_game_front *front)
{
    if (!front) return;
    xph_shared_release(front->file);
    xph_free(front->context, front, front->bytes);
}

const xph_game_entry *xph_game_front_entry(const xph_game_front *front)
{
    return &front->entry;
}

const exphil_slp_info *xph_game_front_info(const xph_game_front *front)
{
    return &front->info;
}

const xph_game_run *xph_game_front_runs(const xph_game_front *front, int64_t *count)
{
    *count = front->entry.runs;
    return front->runs;
}

/* ---- blocks ---------------------------------------------------------------------------------------------- */

struct xph_unpacker {
    exphil_context *context;
    xph_zstd_decoder *decoder;
    uint8_t *stored, *raw; /* of XPH_GAMES_RAW_MOST bytes each, with room for a header before the first */
    size_t stored_bytes;   /* of the block that was read last, its header too */
};

enum { STORED_MOST = XPH_GAMES_RAW_MOST + sizeof(xph_game_block_header) };

exphil_status xph_unpacker_create(exphil_context *context, xph_unpacker **unpacker, exphil_error *error)
{
    xph_unpacker *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = context;
    exphil_status status = xph_zstd_decoder_create(context, &made->decoder, error);
    if (status == EXPHIL_OK && (!(made->stored = xph_alloc(context, STORED_MOST)) ||
                                !(made->raw = xph_alloc(context, XPH_GAMES_RAW_MOST))))
        status = xph_no_memory(STORED_MOST, error);
    if (status < 0)
        xph_unpacker_free(made);
    else
        *unpacker = made;
    return status;
}

size_t xph_unpacker_bytes(void)
{
    return sizeof(xph_unpacker) + STORED_MOST + XPH_GAMES_RAW_MOST + xph_zstd_decoder_bytes();
}

void xph_unpacker_free(xph_unpacker *unpacker)
{
    if (!unpacker) return;
    xph_zstd_decoder_destroy(unpacker->decoder);
    xph_free(unpacker->context, unpacker->stored, STORED_MOST);
    xph_free(unpacker->context, unpacker->raw, XPH_GAMES_RAW_MOST);
    xph_free(unpacker->context, unpacker, sizeof *unpacker);
}

const uint8_t *xph_unpacker_stored(const xph_unpacker *unpacker, size_t *bytes)
{
    *bytes = unpacker->stored_bytes;
    return unpacker->stored;
}

static xph_game_shape shape_of(const xph_game_block_header *header)
{
    return (xph_game_shape){.frames = header->frames,
                            .items = (int32_t)header->items,
                            .first_frame = header->first_frame,
                            .slots = header->slots};
}

/* Of a block that would take most memory. */
size_t xph_game_front_block_bytes(const xph_game_front *front)
{
    uint16_t frame, player, item;
    xph_game_widths(&frame, &player, &item);
    uint32_t frames = front->entry.frames < XPH_GAME_FRAMES ? front->entry.frames : XPH_GAME_FRAMES;
    xph_game_shape shape = {.frames = (int32_t)frames};
    uint32_t items = front->entry.raw_most / item;
    if (items > frames * XPH_GAME_ITEMS) items = frames * XPH_GAME_ITEMS;
    if (items > front->entry.items) items = front->entry.items;
    shape.items = (int32_t)items;
    for (int32_t slot = 0; slot < XPH_GAME_SLOTS; slot++)
        if (front->start.records[slot]) shape.slots |= (uint8_t)(1u << slot);
    return xph_game_memory_bytes(&shape);
}

/* Everything that the header says, before a byte is decoded. */
static const char *header_wrong(const xph_game_front *front, int64_t k, const xph_game_block_header *header,
                                size_t stored)
{
    uint64_t position = (uint64_t)k * XPH_GAME_FRAMES, left = front->entry.frames - position;
    if (header->magic != XPH_GAMES_BLOCK) return "no block begins here";
    if (!xph_hash_equal((uint32_t)xph_hash(header, offsetof(xph_game_block_header, hash)), header->hash))
        return "the header of this block is damaged";
    if (header->position != position || header->frames != (left < XPH_GAME_FRAMES ? left : XPH_GAME_FRAMES))
        return "a block of other frames";
    if (header->stored_bytes != stored) return "a block of another length";
    if (header->items > (uint32_t)XPH_GAME_FRAMES * XPH_GAME_ITEMS || header->items > front->entry.items)
        return "a block of too many items";
    for (int32_t slot = 0; slot < XPH_GAME_SLOTS; slot++)
        if (header->slots >> slot & 1 && !front->start.records[slot])
            return "a block with a character that its game does not have";
    xph_game_shape shape = shape_of(header);
    if (header->raw_bytes != xph_game_block_bytes(&shape) || header->raw_bytes > front->entry.raw_most)
        return "a block of another size";
    if (header->codec > XPH_CODEC_ZSTD || (header->codec == XPH_CODEC_STORED && stored != header->raw_bytes))
        return "a block of an unknown codec";
    return NULL;
}

static const char *decode(const xph_game_block_header *header, xph_unpacker *unpacker, const uint8_t **raw)
{
    const uint8_t *stored = unpacker->stored + sizeof *header;
    if (!xph_hash_equal(xph_hash(stored, header->stored_bytes), header->stored_hash))
        return "this block is damaged";
    *raw = header->codec == XPH_CODEC_STORED ? stored : unpacker->raw;
    if (header->codec == XPH_CODEC_STORED) return NULL;
    return xph_zstd_decode(unpacker->decoder, stored, header->stored_bytes, unpacker->raw, header->raw_bytes);
}

exphil_status xph_game_front_block(const xph_game_front *front, int64_t k, xph_unpacker *unpacker,
                                   void *memory, xph_game_block *block, exphil_error *error)
{
    uint64_t at = front->blocks + (k ? front->places[k - 1].end : 0);
    size_t bytes = (size_t)(front->blocks + front->places[k].end - at);
    xph_game_block_header header;
    const uint8_t *raw;
    if (bytes > STORED_MOST)
        return xph_game_damaged(front->file, front->game, at, "a block of more than 1 MiB", error);
    unpacker->stored_bytes = 0;
    XPH_TRY(xph_shared_read(front->file, at, unpacker->stored, bytes, error));
    unpacker->stored_bytes = bytes;
    memcpy(&header, unpacker->stored, sizeof header);
    const char *wrong = header_wrong(front, k, &header, bytes - sizeof header);
    if (!wrong) wrong = decode(&header, unpacker, &raw);
    if (!wrong && !xph_hash_equal(xph_hash(raw, header.raw_bytes), front->places[k].raw_hash))
        wrong = "this block holds other frames than its game";
    if (wrong) return xph_game_damaged(front->file, front->game, at, wrong, error);
    xph_game_shape shape = shape_of(&header);
    xph_game_block_place(&shape, memory, block);
    wrong = xph_game_unpack(raw, block);
    if (!wrong && (block->frame[0].frame < front->entry.first_frame ||
                   block->frame[shape.frames - 1].frame > front->entry.last_frame))
        wrong = "a block with frames outside its game";
    return wrong ? xph_game_damaged(front->file, front->game, at, wrong, error) : EXPHIL_OK;
}
