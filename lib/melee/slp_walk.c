/* Walks events and groups them into instances: one simulation of one frame each. An instance is opened by its
 * frame start (2.2.0), or by the first player event of another frame; it is complete when its bookend was
 * read, or, in replays that have none, when it has at least one pre-frame and each pre-frame has its
 * post-frame. */
#include "melee/slp_internal.h"

void xph_slp_walk_begin(struct xph_slp_walk *walk)
{
    *walk = (struct xph_slp_walk){0};
    xph_slp_blank_info(&walk->info);
}

static void problem(struct xph_slp_walk *walk, uint32_t bit)
{
    walk->info.problems |= bit;
    walk->info.problem_count++;
}

bool xph_slp_complete(const struct xph_slp_table *table, const struct xph_slp_instance *instance)
{
    if (instance->frame <= -EXPHIL_SLP_FRAME_LIMIT || instance->frame >= EXPHIL_SLP_FRAME_LIMIT) return false;
    if (table->has_bookend) return instance->bookend;
    return instance->pre != 0 && (instance->pre & ~instance->post) == 0;
}

bool xph_slp_walk_close(struct xph_slp_walk *walk, uint64_t at)
{
    if (!walk->now.open) return false;
    walk->before = walk->now;
    walk->before.end = at;
    walk->now.open = 0;
    if (xph_slp_complete(&walk->table, &walk->before)) return true;
    walk->info.incomplete_count++;
    return false;
}

static uint32_t open_instance(struct xph_slp_walk *walk, int32_t frame, uint64_t at)
{
    uint32_t did = xph_slp_walk_close(walk, at) ? XPH_SLP_CLOSED : 0;
    walk->now = (struct xph_slp_instance){
        .begin = at, .frame = frame, .ordinal = (int32_t)walk->info.instance_count, .open = 1};
    walk->info.instance_count++;
    if (frame <= -EXPHIL_SLP_FRAME_LIMIT || frame >= EXPHIL_SLP_FRAME_LIMIT)
        problem(walk, EXPHIL_SLP_PROBLEM_FRAME_LIMIT);
    return did | XPH_SLP_OPENED;
}

/* Pre-frame or post-frame of one character. */
static uint32_t player_event(struct xph_slp_walk *walk, const uint8_t *event, uint64_t at, bool pre)
{
    if (event[5] >= EXPHIL_SLP_PORTS) {
        problem(walk, EXPHIL_SLP_PROBLEM_PORT);
        return 0;
    }
    uint32_t did = XPH_SLP_TAKEN;
    uint8_t bit = (uint8_t)(1u << xph_slp_slot_of(event));
    int32_t frame = xph_slp_i32(event + 1);
    if (!walk->now.open || walk->now.frame != frame || walk->now.bookend) {
        if (walk->table.has_frame_start) problem(walk, EXPHIL_SLP_PROBLEM_FRAME_START);
        did |= open_instance(walk, frame, at);
    } else if (pre && !walk->table.has_frame_start && (walk->now.pre & bit)) {
        did |= open_instance(walk, frame, at); /* the same frame again, in replays without frame starts */
    }
    if (pre)
        walk->now.pre |= bit;
    else
        walk->now.post |= bit;
    return did;
}

static uint32_t item_event(struct xph_slp_walk *walk, const uint8_t *event)
{
    if (!walk->now.open || walk->now.frame != xph_slp_i32(event + 1)) {
        problem(walk, EXPHIL_SLP_PROBLEM_ITEM);
        return 0;
    }
    walk->now.items++;
    return XPH_SLP_TAKEN;
}

static uint32_t bookend_event(struct xph_slp_walk *walk, const uint8_t *event)
{
    if (!walk->now.open || walk->now.frame != xph_slp_i32(event + 1)) {
        problem(walk, EXPHIL_SLP_PROBLEM_BOOKEND);
        return 0;
    }
    walk->now.bookend = 1;
    return XPH_SLP_TAKEN;
}

static uint32_t end_event(struct xph_slp_walk *walk, const uint8_t *event)
{
    if (walk->info.end_count < INT32_MAX) walk->info.end_count++;
    if (walk->info.end_count == 1) xph_slp_decode_end(event, walk->table.size[XPH_SLP_GAME_END], &walk->info);
    return XPH_SLP_ENDED;
}

static uint32_t used_event(struct xph_slp_walk *walk, const uint8_t *event, uint64_t at)
{
    switch (event[0]) {
    case XPH_SLP_PRE:
        return player_event(walk, event, at, true);
    case XPH_SLP_POST:
        return player_event(walk, event, at, false);
    case XPH_SLP_FRAME_START:
        return XPH_SLP_TAKEN | open_instance(walk, xph_slp_i32(event + 1), at);
    case XPH_SLP_BOOKEND:
        return bookend_event(walk, event);
    case XPH_SLP_ITEM:
        return item_event(walk, event);
    case XPH_SLP_GAME_END:
        return end_event(walk, event);
    case XPH_SLP_GAME_START:
        problem(walk, EXPHIL_SLP_PROBLEM_SECOND_START);
        return 0;
    default:
        return walk->now.open ? XPH_SLP_TAKEN : 0; /* stage events */
    }
}

/* An event declared too short to be used: noted once for each kind. */
static exphil_status short_event(struct xph_slp_walk *walk, const uint8_t *event, uint64_t at,
                                 exphil_error *error)
{
    uint8_t code = event[0];
    if (code == XPH_SLP_GAME_START)
        return xph_fail(error, EXPHIL_E_FORMAT,
                        "game start at offset %llu is declared with %u bytes, fewer than 320",
                        (unsigned long long)at, (unsigned)walk->table.size[code]);
    if (!(walk->short_seen[code / 8] >> code % 8 & 1)) problem(walk, EXPHIL_SLP_PROBLEM_SHORT_EVENT);
    walk->short_seen[code / 8] = (uint8_t)(walk->short_seen[code / 8] | 1u << code % 8);
    return EXPHIL_OK;
}

/* Until the game start nothing else may come but what is skipped by size. */
static exphil_status first_events(struct xph_slp_walk *walk, const uint8_t *event, uint64_t at,
                                  exphil_error *error)
{
    if (event[0] == XPH_SLP_PAYLOADS) return EXPHIL_OK;
    if (event[0] != XPH_SLP_GAME_START)
        return xph_fail(error, EXPHIL_E_FORMAT, "event 0x%02x at offset %llu comes before the game start",
                        (unsigned)event[0], (unsigned long long)at);
    xph_slp_decode_start(event, walk->table.size[XPH_SLP_GAME_START], &walk->info);
    walk->match_tag = xph_slp_decode_match(event, walk->table.size[XPH_SLP_GAME_START]);
    walk->info.fields = walk->table.fields;
    walk->started = 1;
    return EXPHIL_OK;
}

exphil_status xph_slp_walk_event(struct xph_slp_walk *walk, const uint8_t *event, uint64_t at, uint32_t *did,
                                 exphil_error *error)
{
    uint8_t use = walk->table.use[event[0]];
    *did = 0;
    if (use == XPH_SLP_SHORT) return short_event(walk, event, at, error);
    if (!walk->started) return first_events(walk, event, at, error);
    if (use == XPH_SLP_USE)
        *did = used_event(walk, event, at);
    else if (use == XPH_SLP_UNKNOWN)
        walk->info.unknown_event_count++;
    return EXPHIL_OK;
}
