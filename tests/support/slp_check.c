/* Consistency of replays read from arbitrary bytes. */
#include "slp_check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Touches every byte, so that a sanitizer sees memory that was never written or is not ours. */
static uint32_t touch(const void *data, size_t bytes)
{
    const uint8_t *p = data;
    uint32_t sum = 1;
    for (size_t i = 0; i < bytes; i++) sum = sum * 31 + p[i];
    return sum;
}

static const char *check_players(const exphil_slp *slp, int64_t position, int64_t *records)
{
    const exphil_slp_frame *frame = exphil_slp_frame_at(slp, position);
    for (int32_t slot = 0; slot < 8; slot++) {
        const exphil_slp_player *player = exphil_slp_player_at(slp, position, slot / 2, slot % 2);
        if ((player != NULL) != (frame->slots >> slot & 1)) return "a record and its bit in slots differ";
        if (!player) continue;
        if (player->frame != frame->frame) return "a record is of another frame";
        if (2 * player->port + player->follower != slot) return "a record is of another slot";
        ++*records;
    }
    return NULL;
}

static const char *check_frames(const exphil_slp *slp, const exphil_slp_info *info, int64_t *records)
{
    int64_t items = 0;
    volatile uint32_t sum = 0;
    for (int64_t i = 0; i < exphil_slp_frame_count(slp); i++) {
        const exphil_slp_frame *frame = exphil_slp_frame_at(slp, i);
        const char *wrong = check_players(slp, i, records);
        if (wrong) return wrong;
        if (i && info->rollback != EXPHIL_SLP_ALL && frame[-1].frame >= frame->frame)
            return "frames do not ascend";
        if (frame->frame < info->first_frame || frame->frame > info->last_frame)
            return "frame outside first..last";
        if (frame->instance < 0 || frame->instance >= info->instance_count)
            return "instance outside the count";
        sum = sum + touch(frame->items, (size_t)frame->item_count * sizeof *frame->items);
        items += frame->item_count;
    }
    return items == info->item_count ? NULL : "items are miscounted";
}

const char *slp_inconsistent(const exphil_slp *slp)
{
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    int64_t records = 0, listed = 0;
    volatile uint32_t sum = 0;
    if (exphil_slp_query(slp, &info, NULL) < 0) return "no information";
    if (info.frame_count != exphil_slp_frame_count(slp)) return "frame counts differ";
    if (info.frame_count + info.incomplete_count > info.instance_count) return "instances are miscounted";
    if (info.stop_offset > info.input_bytes) return "stopped beyond the input";
    if ((info.problem_count > 0) != (info.problems != 0)) return "problems are miscounted";
    const char *wrong = check_frames(slp, &info, &records);
    if (wrong) return wrong;
    for (int32_t i = 0; i < exphil_slp_slot_count(slp); i++) {
        const exphil_slp_slot *slot = exphil_slp_slot_at(slp, i);
        if (slot->record_count < 1) return "an empty slot";
        sum = sum + touch(slot->records, (size_t)slot->record_count * sizeof *slot->records);
        listed += slot->record_count;
    }
    return records == listed ? NULL : "records are miscounted";
}

/* ---- the stream ---------------------------------------------------------------------------------------- */

static bool same_bits(const void *a, const void *b, size_t bytes)
{
    return bytes == 0 || memcmp(a, b, bytes) == 0;
}

static const char *same_frame(const exphil_slp_stream *stream, const exphil_slp *slp, int64_t position)
{
    const exphil_slp_frame *live = exphil_slp_stream_frame(stream),
                           *filed = exphil_slp_frame_at(slp, position);
    if (!filed) return "the stream has more frames";
    if (live->frame != filed->frame || live->instance != filed->instance)
        return "the stream has other frames";
    if (live->slots != filed->slots) return "the stream has other players";
    for (int32_t slot = 0; slot < 8; slot++) {
        const exphil_slp_player *a = exphil_slp_stream_player(stream, slot / 2, slot % 2);
        const exphil_slp_player *b = exphil_slp_player_at(slp, position, slot / 2, slot % 2);
        if (a && !same_bits(a, b, sizeof *a)) return "the stream has other records";
    }
    int32_t items = live->item_count < filed->item_count ? live->item_count : filed->item_count;
    if (items < live->item_count) return "the stream has more items";
    if (!same_bits(live->items, filed->items, (size_t)items * sizeof *live->items))
        return "the stream has other items";
    return NULL;
}

/* slp: all simulations of the same bytes, or NULL when they cannot be read as a file. */
static const char *check_stream(exphil_slp_stream *stream, const uint8_t *data, size_t bytes, size_t piece,
                                const exphil_slp *slp)
{
    size_t at = 0;
    int64_t frames = 0;
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    while (at < bytes) {
        size_t count = bytes - at < piece ? bytes - at : piece, used = 0;
        exphil_status status = exphil_slp_stream_push(stream, data + at, count, &used, NULL);
        if (status < 0 || status == EXPHIL_END) return NULL;
        if (used > count) return "the stream took more than there was";
        if (status == EXPHIL_AGAIN && used < count) return "the stream wants more and did not take all";
        at += used;
        if (status != EXPHIL_OK) continue;
        /* Behind the game end a file may still complete the frame that the stream had to give up or cut. */
        if (slp && exphil_slp_stream_query(stream, &info, NULL) < 0) return "the stream has no information";
        const char *wrong = slp && info.end_count == 0 ? same_frame(stream, slp, frames) : NULL;
        if (wrong) return wrong;
        frames++;
    }
    return NULL;
}

const char *slp_check_bytes(exphil_context *context, const void *data, size_t bytes, size_t piece)
{
    exphil_slp *slp = NULL;
    exphil_slp_stream *stream = NULL;
    const char *wrong = NULL;
    for (int32_t rollback = EXPHIL_SLP_LAST; rollback <= EXPHIL_SLP_ALL && !wrong; rollback++) {
        exphil_slp_config config = {sizeof config, 0, rollback, 0};
        exphil_slp_destroy(slp);
        slp = NULL;
        if (exphil_slp_read(context, data, bytes, &config, &slp, NULL) == EXPHIL_OK)
            wrong = slp_inconsistent(slp);
    }
    if (!wrong && exphil_slp_stream_create(context, &stream, NULL) < 0) wrong = "no stream";
    if (!wrong) wrong = check_stream(stream, data, bytes, piece, slp);
    exphil_slp_stream_destroy(stream);
    exphil_slp_destroy(slp);
    return wrong;
}
