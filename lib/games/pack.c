/* A replay as it goes into a file: what its front says, and its blocks, packed by all workers of the context. */
#include "games/pack.h"

/* What one worker packs in. */
typedef struct packer {
    xph_zstd_encoder *encoder; /* NULL: blocks are stored as they are */
    uint8_t *memory, *raw;
    size_t memory_bytes, raw_bytes;
} packer;

struct xph_packers {
    exphil_context *context;
    int32_t count;
    packer each[];
};

/* One replay on its way. */
typedef struct packing {
    xph_packers *packers;
    const exphil_slp *slp;
    xph_packed_game *game;
} packing;

/* ---- workers ------------------------------------------------------------------------------------------- */

exphil_status xph_packers_create(exphil_context *context, int32_t level, xph_packers **packers,
                                 exphil_error *error)
{
    int32_t workers = xph_workers(context);
    size_t bytes = sizeof **packers + (size_t)workers * sizeof(packer);
    xph_packers *made = xph_calloc(context, 1, bytes);
    if (!made) return xph_no_memory(bytes, error);
    made->context = context;
    made->count = workers;
    exphil_status status = EXPHIL_OK;
    for (int32_t i = 0; level && status == EXPHIL_OK && i < workers; i++)
        status = xph_zstd_encoder_create(context, level, XPH_GAMES_RAW_MOST, &made->each[i].encoder, error);
    if (status < 0)
        xph_packers_free(made);
    else
        *packers = made;
    return status;
}

void xph_packers_free(xph_packers *packers)
{
    if (!packers) return;
    exphil_context *context = packers->context;
    for (int32_t i = 0; i < packers->count; i++) {
        packer *with = &packers->each[i];
        xph_zstd_encoder_destroy(with->encoder);
        xph_free(context, with->memory, with->memory_bytes);
        xph_free(context, with->raw, with->raw_bytes);
    }
    xph_free(context, packers, sizeof *packers + (size_t)packers->count * sizeof(packer));
}

/* ---- blocks -------------------------------------------------------------------------------------------- */

static int32_t frames_of(const xph_packed_game *game, int64_t i)
{
    int64_t left = game->entry.frames - i * XPH_GAME_FRAMES;
    return left < XPH_GAME_FRAMES ? (int32_t)left : XPH_GAME_FRAMES;
}

static bool make_buffer(exphil_context *context, uint8_t **memory, size_t *bytes, size_t need)
{
    if (*bytes >= need) return true;
    xph_free(context, *memory, *bytes);
    *bytes = 0;
    *memory = xph_alloc(context, need);
    if (*memory) *bytes = need;
    return *memory != NULL;
}

static exphil_status store(const packer *with, xph_packed *block, size_t raw_bytes, exphil_error *error)
{
    size_t stored = raw_bytes;
    if (with->encoder)
        XPH_TRY(xph_zstd_encode(with->encoder, with->raw, raw_bytes, block->stored, block->capacity, &stored,
                                error));
    block->header.codec = with->encoder && stored < raw_bytes ? XPH_CODEC_ZSTD : XPH_CODEC_STORED;
    if (block->header.codec == XPH_CODEC_STORED) {
        memcpy(block->stored, with->raw, raw_bytes);
        stored = raw_bytes;
    }
    block->header.stored_bytes = (uint32_t)stored;
    block->header.stored_hash = xph_hash(block->stored, stored);
    return EXPHIL_OK;
}

static exphil_status pack_block(const packing *p, int64_t i, packer *with, exphil_error *error)
{
    exphil_context *context = p->packers->context;
    xph_packed *made = &p->game->blocks[i];
    int64_t position = i * XPH_GAME_FRAMES;
    xph_game_shape shape;
    xph_game_block block;
    made->capacity = 0;
    XPH_TRY(xph_game_shape_of(p->slp, position, frames_of(p->game, i), &shape, error));
    size_t memory = xph_game_memory_bytes(&shape), raw = xph_game_block_bytes(&shape);
    made->capacity = raw + raw / 128 + 512;
    made->stored = xph_alloc(context, made->capacity);
    if (!made->stored) return xph_no_memory(made->capacity, error);
    if (!make_buffer(context, &with->memory, &with->memory_bytes, memory))
        return xph_no_memory(memory, error);
    if (!make_buffer(context, &with->raw, &with->raw_bytes, raw)) return xph_no_memory(raw, error);
    xph_game_block_place(&shape, with->memory, &block);
    xph_game_pack(p->slp, position, &block, with->raw);
    made->raw_hash = xph_hash(with->raw, raw);
    made->header = (xph_game_block_header){.magic = XPH_GAMES_BLOCK,
                                           .position = (uint32_t)position,
                                           .first_frame = shape.first_frame,
                                           .frames = (uint16_t)shape.frames,
                                           .slots = shape.slots,
                                           .items = (uint32_t)shape.items,
                                           .raw_bytes = (uint32_t)raw};
    XPH_TRY(store(with, made, raw, error));
    made->header.hash = (uint32_t)xph_hash(&made->header, offsetof(xph_game_block_header, hash));
    return EXPHIL_OK;
}

static void pack_one(void *arg, int64_t i, int32_t worker)
{
    packing *p = arg;
    p->game->blocks[i].status = pack_block(p, i, &p->packers->each[worker], NULL);
}

/* All blocks; the first that failed, in their order, says why. */
static exphil_status pack_all(packing *p, exphil_error *error)
{
    exphil_context *context = p->packers->context;
    if (xph_cancelled(context)) return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
    xph_parallel(context, pack_one, p, p->game->count);
    for (int64_t i = 0; i < p->game->count; i++) {
        xph_packed *block = &p->game->blocks[i];
        if (block->status >= 0) continue;
        xph_free(context, block->stored, block->capacity); /* again, for the message */
        block->stored = NULL;
        XPH_TRY(pack_block(p, i, &p->packers->each[0], error));
    }
    return EXPHIL_OK;
}

/* ---- the game ------------------------------------------------------------------------------------------ */

/* The table of blocks, and what follows from it. */
static exphil_status fill_places(const packing *p, exphil_error *error)
{
    xph_packed_game *game = p->game;
    xph_game_entry *entry = &game->entry;
    uint64_t end = 0;
    for (int64_t i = 0; i < game->count; i++) {
        const xph_packed *block = &game->blocks[i];
        end += sizeof block->header + block->header.stored_bytes;
        game->places[i] =
            (xph_game_place){.end = (uint32_t)end,
                             .inputs = xph_game_inputs(p->slp, i * XPH_GAME_FRAMES, frames_of(game, i)),
                             .raw_hash = block->raw_hash};
        if (block->header.raw_bytes > entry->raw_most) entry->raw_most = block->header.raw_bytes;
    }
    uint64_t bytes = xph_game_head_bytes(entry) + xph_game_table_bytes(entry) + end;
    if (bytes > UINT32_MAX) return xph_fail(error, EXPHIL_E_UNSUPPORTED, "a game of more than 4 GiB");
    entry->bytes = (uint32_t)bytes;
    entry->content_hash = xph_game_content(entry, &game->start, game->places);
    return EXPHIL_OK;
}

static exphil_status make_game(packing *p, const exphil_slp_info *info, exphil_error *error)
{
    xph_packed_game *game = p->game;
    xph_game_describe(p->slp, info, &game->entry, &game->start);
    if (!xph_game_fits(&game->entry))
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "a game of %u frames and %u records is more than a corpus keeps",
                        (unsigned)game->entry.frames, (unsigned)game->entry.records);
    XPH_TRY(xph_game_runs(game->context, p->slp, &game->entry, &game->runs, error));
    size_t count = (size_t)xph_game_blocks(game->entry.frames);
    game->places = xph_calloc(game->context, count, sizeof *game->places);
    game->blocks = xph_calloc(game->context, count, sizeof *game->blocks);
    game->count = (int64_t)count;
    if (!game->places || !game->blocks) return xph_no_memory(count * sizeof *game->blocks, error);
    XPH_TRY(pack_all(p, error));
    return fill_places(p, error);
}

exphil_status xph_packed_game_make(xph_packers *packers, const exphil_slp *slp, xph_packed_game *game,
                                   exphil_error *error)
{
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    memset(game, 0, sizeof *game);
    game->context = packers->context;
    XPH_TRY(exphil_slp_query(slp, &info, error));
    if (!info.frame_count) return xph_fail(error, EXPHIL_E_UNSUPPORTED, "the replay has no frames");
    packing p = {packers, slp, game};
    exphil_status status = make_game(&p, &info, error);
    if (status < 0) xph_packed_game_free(game);
    return status;
}

void xph_packed_game_free(xph_packed_game *game)
{
    exphil_context *context = game->context;
    size_t count = (size_t)game->count;
    for (size_t i = 0; game->blocks && i < count; i++)
        xph_free(context, game->blocks[i].stored, game->blocks[i].capacity);
    xph_free(context, game->blocks, count * sizeof *game->blocks);
    xph_free(context, game->places, count * sizeof *game->places);
    xph_free(context, game->runs, game->entry.runs * sizeof *game->runs);
}
