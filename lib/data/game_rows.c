/* Rows of games, made when they are needed by the encoder and the codec of live play. Row r of a block is frame
 * position + r of its game: what was known after the frame before, and the controller that acted in it. */
#include "data/game_rows.h"

exphil_status xph_block_of_game(xph_row_source *source, int64_t game, uint64_t content, int64_t position,
                                int64_t frames, const xph_episode_facts *facts, xph_block **block,
                                exphil_error *error)
{
    xph_block *made = xph_alloc(source->context, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    *made = (xph_block){.context = source->context,
                        .references = 1,
                        .frames = frames,
                        .hash = content,
                        .bytes = sizeof *made,
                        .source = xph_row_source_retain(source),
                        .at = (uint64_t)game,
                        .position = position,
                        .facts = *facts};
    *block = made;
    return EXPHIL_OK;
}

uint64_t xph_game_rows_hash(const xph_block *block, int64_t first, int64_t frames)
{
    const uint64_t what[] = {block->hash, (uint64_t)(block->position + first), (uint64_t)frames,
                             (uint64_t)block->facts.port, (uint64_t)block->facts.opponent_port};
    return xph_hash(what, sizeof what);
}

/* ---- decoded blocks --------------------------------------------------------------------------------------- */

static size_t lane_bytes(int64_t slots)
{
    return sizeof(xph_game_lane) + (size_t)slots * sizeof(xph_game_slot);
}

exphil_status xph_game_lane_create(exphil_context *context, int64_t slots, xph_game_lane **lane,
                                   exphil_error *error)
{
    xph_game_lane *made = xph_calloc(context, 1, lane_bytes(slots));
    if (!made) return xph_no_memory(lane_bytes(slots), error);
    made->context = context;
    made->count = slots;
    *lane = made;
    return EXPHIL_OK;
}

size_t xph_game_lane_bytes(int64_t slots, size_t block_bytes)
{
    return lane_bytes(slots) + (size_t)slots * block_bytes;
}

static void leave_game(xph_game_lane *lane)
{
    xph_game_front_free(lane->front);
    lane->front = NULL;
    for (int64_t i = 0; i < lane->count; i++) lane->slots[i].k = -1;
}

void xph_game_lane_free(xph_game_lane *lane)
{
    if (!lane) return;
    leave_game(lane);
    for (int64_t i = 0; i < lane->count; i++)
        xph_free(lane->context, lane->slots[i].memory, lane->slots[i].bytes);
    xph_free(lane->context, lane, lane_bytes(lane->count));
}

static exphil_status enter_game(xph_game_lane *lane, const xph_block *block, exphil_error *error)
{
    int64_t game = (int64_t)block->at;
    if (lane->front && lane->source == block->source && lane->game == game) return EXPHIL_OK;
    leave_game(lane);
    XPH_TRY(xph_game_front_read(block->source->games, game, &lane->front, error));
    lane->source = block->source;
    lane->game = game;
    return EXPHIL_OK;
}

static exphil_status make_slot(xph_game_lane *lane, xph_game_slot *slot, exphil_error *error)
{
    size_t need = xph_game_front_block_bytes(lane->front);
    slot->k = -1;
    if (slot->bytes >= need) return EXPHIL_OK;
    xph_free(lane->context, slot->memory, slot->bytes);
    slot->bytes = 0;
    slot->memory = xph_alloc(lane->context, need);
    if (!slot->memory) return xph_no_memory(need, error);
    slot->bytes = need;
    return EXPHIL_OK;
}

/* Block k of the lane's game. */
static exphil_status block_at(xph_game_lane *lane, xph_unpacker *unpacker, int64_t k,
                              const xph_game_block **block, exphil_error *error)
{
    xph_game_slot *slot = &lane->slots[k % lane->count];
    if (slot->k != k) {
        XPH_TRY(make_slot(lane, slot, error));
        XPH_TRY(xph_game_front_block(lane->front, k, unpacker, slot->memory, &slot->block, error));
        slot->k = k;
    }
    *block = &slot->block;
    return EXPHIL_OK;
}

/* Who has no place to keep decoded blocks in gets one. */
static exphil_status make_reader(const xph_block *block, xph_piece_buffer *buffer, exphil_error *error)
{
    if (!buffer->unpacker) XPH_TRY(xph_unpacker_create(buffer->context, &buffer->unpacker, error));
    if (!buffer->lane) {
        if (!buffer->own) XPH_TRY(xph_game_lane_create(buffer->context, 2, &buffer->own, error));
        buffer->lane = buffer->own;
    }
    return enter_game(buffer->lane, block, error);
}

/* ---- rows ------------------------------------------------------------------------------------------------- */

/* Where the rows go; NULL: nowhere. */
typedef struct target {
    const xph_row_shape *shape;
    float *floats;
    int32_t *ids;
    uint8_t *actions;
} target;

static exphil_status not_there(const xph_block *block, int64_t position, const char *what,
                               exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_FORMAT, "game %lld: frame %lld of it is no row of port %d: %s",
                    (long long)block->at, (long long)position, (int)block->facts.port, what);
}

/* The state after frame t of a block. */
static exphil_status make_state(const xph_block *block, const exphil_slp_info *info,
                                const xph_game_block *from, int32_t t, const target *to, exphil_error *error)
{
    exphil_melee_frame state;
    float floats[XPH_ROW_FLOATS_MOST];
    int32_t ids[EXPHIL_IDS_MAX];
    const char *culprit = "";
    const xph_episode_facts *facts = &block->facts;
    int64_t position = from->frame[t].frame;
    if (!xph_melee_block_state(info, from, t, facts->port, facts->opponent_port, &state))
        return not_there(block, position, "it has no record before it", error);
    if (xph_melee_encode(block->source->layout, &state, to->floats ? to->floats : floats,
                         to->ids ? to->ids : ids, &culprit) < 0)
        return not_there(block, position, culprit, error);
    return EXPHIL_OK;
}

static exphil_status make_action(const xph_block *block, const xph_game_block *from, int32_t t,
                                 const target *to, exphil_error *error)
{
    exphil_pad pad;
    int32_t action[EXPHIL_HEADS_MAX];
    const char *culprit = "";
    if (!xph_melee_block_pad(from, t, block->facts.port, &pad))
        return not_there(block, from->frame[t].frame, "it has no record", error);
    if (xph_melee_pad_encode(block->source->codec, &pad, action, &culprit) < 0)
        return not_there(block, from->frame[t].frame, culprit, error);
    xph_action_pack(to->shape, action, to->actions);
    return EXPHIL_OK;
}

static exphil_status make_row(const xph_block *block, xph_piece_buffer *buffer, int64_t position,
                              const target *to, exphil_error *error)
{
    xph_game_lane *lane = buffer->lane;
    const xph_game_block *now, *before;
    int64_t last = position - 1;
    int32_t t = (int32_t)(position % XPH_GAME_FRAMES), b = (int32_t)(last % XPH_GAME_FRAMES);
    XPH_TRY(block_at(lane, buffer->unpacker, last / XPH_GAME_FRAMES, &before, error));
    int32_t number = before->frame[b].frame;
    if (to->floats || to->ids)
        XPH_TRY(make_state(block, xph_game_front_info(lane->front), before, b, to, error));
    XPH_TRY(block_at(lane, buffer->unpacker, position / XPH_GAME_FRAMES, &now, error));
    if (now->frame[t].frame != number + 1)
        return not_there(block, position, "a frame before it is missing", error);
    return to->actions ? make_action(block, now, t, to, error) : EXPHIL_OK;
}

exphil_status xph_game_rows_make(const xph_row_shape *shape, const xph_block *block, int64_t first,
                                 int64_t frames, xph_piece_buffer *buffer, float *floats, int32_t *ids,
                                 uint8_t *actions, exphil_error *error)
{
    XPH_TRY(make_reader(block, buffer, error));
    target to = {shape, floats, ids, actions};
    for (int64_t i = 0; i < frames; i++) {
        XPH_TRY(make_row(block, buffer, block->position + first + i, &to, error));
        if (to.floats) to.floats += shape->floats;
        if (to.ids) to.ids += shape->ids;
        if (to.actions) to.actions += shape->action_bytes;
    }
    return EXPHIL_OK;
}

exphil_status xph_game_rows_check(const xph_block *block, int64_t first, int64_t frames,
                                  xph_piece_buffer *buffer, exphil_error *error)
{
    const xph_game_block *decoded;
    XPH_TRY(make_reader(block, buffer, error));
    int64_t low = block->position + first - 1, high = block->position + first + frames - 1;
    for (int64_t k = low / XPH_GAME_FRAMES; k <= high / XPH_GAME_FRAMES; k++)
        XPH_TRY(block_at(buffer->lane, buffer->unpacker, k, &decoded, error));
    return EXPHIL_OK;
}
