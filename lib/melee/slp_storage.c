/* Where a whole replay keeps its frames, records and items, whether they come of a file or of a corpus. */
#include "melee/melee.h"
#include "melee/slp_internal.h"

/* ---- memory -------------------------------------------------------------------------------------------- */

static void list_slots(exphil_slp *slp, const int64_t *records)
{
    for (uint32_t slot = 0; slot < XPH_SLP_SLOTS; slot++) {
        slp->record_count += (size_t)records[slot];
        slp->column[slot] = UINT8_MAX;
        if (records[slot] == 0) continue;
        slp->slots[slp->slot_count] = (exphil_slp_slot){
            .record_count = records[slot], .port = (int32_t)slot / 2, .follower = (int32_t)slot % 2};
        slp->column[slot] = (uint8_t)slp->slot_count++;
    }
}

static void *make_array(exphil_context *context, size_t count, size_t bytes, exphil_error *error)
{
    size_t total;
    if (!xph_size_mul(count, bytes, &total)) total = SIZE_MAX;
    void *pointer = xph_alloc(context, total);
    if (!pointer) (void)xph_no_memory(total, error);
    return pointer;
}

static exphil_status make_arrays(exphil_slp *slp, exphil_error *error)
{
    exphil_context *context = slp->context;
    size_t places = slp->frame_count * slp->slot_count; /* a frame costs 10 bytes of input: no overflow */
    slp->frames = make_array(context, slp->frame_count, sizeof *slp->frames, error);
    if (!slp->frames) return EXPHIL_E_MEMORY;
    slp->records = make_array(context, slp->record_count, sizeof *slp->records, error);
    if (!slp->records) return EXPHIL_E_MEMORY;
    slp->items = make_array(context, slp->item_count, sizeof *slp->items, error);
    if (!slp->items) return EXPHIL_E_MEMORY;
    slp->record_of = make_array(context, places, sizeof *slp->record_of, error);
    if (!slp->record_of) return EXPHIL_E_MEMORY;
    memset(slp->record_of, 0, places * sizeof *slp->record_of);
    return EXPHIL_OK;
}

exphil_status xph_slp_storage_make(exphil_slp *slp, const int64_t *records, exphil_error *error)
{
    list_slots(slp, records);
    XPH_TRY(make_arrays(slp, error));
    exphil_slp_player *record = slp->records;
    for (size_t i = 0; i < slp->slot_count; i++) {
        slp->next[i] = record;
        slp->slots[i].records = record;
        record += slp->slots[i].record_count;
    }
    return EXPHIL_OK;
}

void xph_slp_next_records(exphil_slp *slp, size_t position, uint8_t slots, exphil_slp_player **player)
{
    for (size_t i = 0; i < slp->slot_count; i++) {
        uint32_t slot = (uint32_t)(2 * slp->slots[i].port + slp->slots[i].follower);
        player[slot] = NULL;
        if (!(slots >> slot & 1)) continue;
        player[slot] = slp->next[i]++;
        slp->record_of[position * slp->slot_count + i] = (uint32_t)(player[slot] - slp->records) + 1;
    }
}

void xph_slp_sum_up(exphil_slp *slp)
{
    exphil_slp_info *info = &slp->info;
    info->frame_count = (int64_t)slp->frame_count;
    info->item_count = (int64_t)slp->item_count;
    for (size_t i = 0; i < slp->frame_count; i++) {
        int32_t frame = slp->frames[i].frame;
        if (i == 0 || frame < info->first_frame) info->first_frame = frame;
        if (i == 0 || frame > info->last_frame) info->last_frame = frame;
    }
    for (size_t i = 0; i < slp->slot_count; i++) {
        exphil_slp_slot *slot = &slp->slots[i];
        slot->first_frame = slot->records[0].frame;
        slot->last_frame = slot->records[slot->record_count - 1].frame;
    }
}

/* ---- from blocks of a corpus ---------------------------------------------------------------------------- */

exphil_status xph_slp_assemble_begin(exphil_context *context, const exphil_slp_info *info, int64_t frames,
                                     int64_t items, const int64_t *records, exphil_slp **slp,
                                     exphil_error *error)
{
    exphil_slp *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->info = *info;
    made->info.frame_count = made->info.item_count = 0;
    made->frame_count = (size_t)frames;
    made->item_count = (size_t)items;
    exphil_status status = xph_slp_storage_make(made, records, error);
    if (status < 0)
        exphil_slp_destroy(made);
    else
        *slp = made;
    return status;
}

/* Is there a record left for each of the slots? */
static bool has_records(const exphil_slp *slp, uint8_t slots)
{
    for (int32_t slot = 0; slot < XPH_SLP_SLOTS; slot++) {
        if (!(slots >> slot & 1)) continue;
        size_t i = slp->column[slot];
        if (i >= slp->slot_count || slp->next[i] == slp->slots[i].records + slp->slots[i].record_count)
            return false;
    }
    return true;
}

bool xph_slp_assemble(exphil_slp *slp, const xph_game_block *block)
{
    exphil_slp_info *info = &slp->info; /* counts what has come */
    const exphil_slp_item *item = block->item;
    if ((size_t)block->shape.frames > slp->frame_count - (size_t)info->frame_count ||
        (size_t)block->shape.items > slp->item_count - (size_t)info->item_count)
        return false;
    for (int32_t t = 0; t < block->shape.frames; t++) {
        exphil_slp_player *player[XPH_SLP_SLOTS] = {NULL};
        size_t position = (size_t)info->frame_count++;
        exphil_slp_frame *frame = &slp->frames[position];
        *frame = block->frame[t];
        if (!has_records(slp, frame->slots)) return false;
        xph_slp_next_records(slp, position, frame->slots, player);
        for (int32_t slot = 0; slot < XPH_SLP_SLOTS; slot++)
            if (player[slot]) *player[slot] = block->player[slot][t];
        frame->instance = (int32_t)position;
        frame->items = slp->items + info->item_count;
        if (frame->item_count)
            memcpy(slp->items + info->item_count, item, (size_t)frame->item_count * sizeof *item);
        info->item_count += frame->item_count;
        item += frame->item_count;
    }
    return true;
}

bool xph_slp_assemble_end(exphil_slp *slp)
{
    bool whole =
        (size_t)slp->info.frame_count == slp->frame_count && (size_t)slp->info.item_count == slp->item_count;
    for (size_t i = 0; i < slp->slot_count; i++)
        whole = whole && slp->next[i] == slp->slots[i].records + slp->slots[i].record_count;
    if (whole) xph_slp_sum_up(slp);
    return whole;
}

uint32_t xph_slp_match_tag(const exphil_slp *slp)
{
    return slp->match_tag;
}

/* ---- public -------------------------------------------------------------------------------------------- */

void exphil_slp_destroy(exphil_slp *slp)
{
    if (!slp) return;
    exphil_context *context = slp->context;
    if (slp->frames) xph_free(context, slp->frames, slp->frame_count * sizeof *slp->frames);
    if (slp->records) xph_free(context, slp->records, slp->record_count * sizeof *slp->records);
    if (slp->items) xph_free(context, slp->items, slp->item_count * sizeof *slp->items);
    if (slp->record_of)
        xph_free(context, slp->record_of, slp->frame_count * slp->slot_count * sizeof *slp->record_of);
    xph_free(context, slp, sizeof *slp);
    xph_context_release(context);
}

exphil_status exphil_slp_query(const exphil_slp *slp, exphil_slp_info *info, exphil_error *error)
{
    if (!slp) return xph_fail(error, EXPHIL_E_INVALID, "slp is NULL");
    XPH_TRY(xph_context_check(slp->context, error));
    return XPH_GIVE(exphil_slp_info, info, &slp->info, error);
}

int64_t exphil_slp_frame_count(const exphil_slp *slp)
{
    return slp ? (int64_t)slp->frame_count : 0;
}

const exphil_slp_frame *exphil_slp_frame_at(const exphil_slp *slp, int64_t position)
{
    if (!slp || position < 0 || (uint64_t)position >= slp->frame_count) return NULL;
    return &slp->frames[position];
}

int32_t exphil_slp_slot_count(const exphil_slp *slp)
{
    return slp ? (int32_t)slp->slot_count : 0;
}

const exphil_slp_slot *exphil_slp_slot_at(const exphil_slp *slp, int32_t index)
{
    if (!slp || index < 0 || (size_t)index >= slp->slot_count) return NULL;
    return &slp->slots[index];
}

const exphil_slp_player *exphil_slp_player_at(const exphil_slp *slp, int64_t position, int32_t port,
                                              int32_t follower)
{
    if (!slp || position < 0 || (uint64_t)position >= slp->frame_count) return NULL;
    if (port < 0 || port >= EXPHIL_SLP_PORTS || follower < 0 || follower > 1) return NULL;
    size_t column = slp->column[2 * port + follower];
    if (column >= slp->slot_count) return NULL;
    uint32_t record = slp->record_of[(size_t)position * slp->slot_count + column];
    return record ? &slp->records[record - 1] : NULL;
}
