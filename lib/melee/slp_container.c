/* Where the event stream of a replay lies, and the table of event sizes at its head. The container is UBJSON,
 * but its first 15 bytes are the same in every file, the length apart, and are read as such. */
#include "melee/slp_internal.h"

/* Offset 0..10: { U 3 "raw" [ $ U # l; offset 11..14: length. */
static const uint8_t header_start[11] = {'{', 'U', 3, 'r', 'a', 'w', '[', '$', 'U', '#', 'l'};

exphil_status xph_slp_header_read(const uint8_t *data, size_t bytes, int32_t *declared, exphil_error *error)
{
    for (size_t i = 0; i < sizeof header_start; i++) {
        if (i >= bytes) break;
        if (data[i] != header_start[i])
            return xph_fail(error, EXPHIL_E_FORMAT,
                            "not a replay: byte 0x%02x at offset %zu, expected 0x%02x", (unsigned)data[i], i,
                            (unsigned)header_start[i]);
    }
    if (bytes < XPH_SLP_HEADER)
        return xph_fail(error, EXPHIL_E_FORMAT,
                        "not a replay: cut at offset %zu, inside the header of %d bytes", bytes,
                        XPH_SLP_HEADER);
    *declared = xph_slp_i32(data + 11);
    return EXPHIL_OK;
}

exphil_status xph_slp_container_read(const uint8_t *data, size_t bytes, struct xph_slp_container *container,
                                     exphil_error *error)
{
    struct xph_slp_container found = {0, bytes, EXPHIL_SLP_BARE, 0, 0, 1};
    if (bytes == 0) return xph_fail(error, EXPHIL_E_FORMAT, "not a replay: empty, no byte at offset 0");
    if (data[0] != XPH_SLP_PAYLOADS) {
        XPH_TRY(xph_slp_header_read(data, bytes, &found.declared, error));
        found.kind = EXPHIL_SLP_CONTAINER;
        found.begin = XPH_SLP_HEADER;
        found.open = found.declared <= 0;
        if (found.declared < 0) found.problems = EXPHIL_SLP_PROBLEM_NEGATIVE_LENGTH;
        if (found.declared > 0) {
            size_t there = bytes - XPH_SLP_HEADER;
            if ((size_t)found.declared <= there)
                found.end = XPH_SLP_HEADER + (size_t)found.declared;
            else
                found.problems = EXPHIL_SLP_PROBLEM_LENGTH;
        }
    }
    *container = found;
    return EXPHIL_OK;
}

/* ---- payload table ------------------------------------------------------------------------------------- */

/* Known events; the shortest payload that can be used, which for the frame events is their 0.1.0 part.
 * Splitter and gecko list carry the game's patches, of which nothing is read: whatever their size, they are
 * skipped. */
static const struct known_event {
    uint8_t code, use;
    uint16_t least;
} known_events[] = {
    {XPH_SLP_SPLITTER, XPH_SLP_SKIP, 516},  {XPH_SLP_PAYLOADS, XPH_SLP_SKIP, 0},
    {XPH_SLP_GAME_START, XPH_SLP_USE, 320}, {XPH_SLP_PRE, XPH_SLP_USE, 58},
    {XPH_SLP_POST, XPH_SLP_USE, 33},        {XPH_SLP_GAME_END, XPH_SLP_USE, 1},
    {XPH_SLP_FRAME_START, XPH_SLP_USE, 4},  {XPH_SLP_ITEM, XPH_SLP_USE, 37},
    {XPH_SLP_BOOKEND, XPH_SLP_USE, 4},      {XPH_SLP_GECKO, XPH_SLP_SKIP, 0},
    {XPH_SLP_FOUNTAIN, XPH_SLP_USE, 9},     {XPH_SLP_WHISPY, XPH_SLP_USE, 5},
    {XPH_SLP_STADIUM, XPH_SLP_USE, 8},
};

/* A field exists when its last byte lies inside the payload; least = offset of that byte, command byte at 0.
 */
static const struct field {
    uint32_t bit;
    uint8_t code, least;
} fields[] = {
    {EXPHIL_SLP_HAS_STATE_AGE, XPH_SLP_POST, 0x25},
    {EXPHIL_SLP_HAS_RAW_JOY_X, XPH_SLP_PRE, 0x3B},
    {EXPHIL_SLP_HAS_PRE_PERCENT, XPH_SLP_PRE, 0x3F},
    {EXPHIL_SLP_HAS_FLAGS, XPH_SLP_POST, 0x33},
    {EXPHIL_SLP_HAS_LRAS, XPH_SLP_GAME_END, 2},
    {EXPHIL_SLP_HAS_HURTBOX, XPH_SLP_POST, 0x34},
    {EXPHIL_SLP_HAS_FRAME_SEED, XPH_SLP_FRAME_START, 8},
    {EXPHIL_SLP_HAS_BOOKEND, XPH_SLP_BOOKEND, 4},
    {EXPHIL_SLP_HAS_ITEMS, XPH_SLP_ITEM, 0x25},
    {EXPHIL_SLP_HAS_ITEM_MISC, XPH_SLP_ITEM, 0x29},
    {EXPHIL_SLP_HAS_VELOCITY, XPH_SLP_POST, 0x48},
    {EXPHIL_SLP_HAS_ITEM_OWNER, XPH_SLP_ITEM, 0x2A},
    {EXPHIL_SLP_HAS_LATEST_FINAL, XPH_SLP_BOOKEND, 8},
    {EXPHIL_SLP_HAS_HITLAG, XPH_SLP_POST, 0x4C},
    {EXPHIL_SLP_HAS_SCENE_COUNTER, XPH_SLP_FRAME_START, 12},
    {EXPHIL_SLP_HAS_ANIMATION, XPH_SLP_POST, 0x50},
    {EXPHIL_SLP_HAS_PLACEMENTS, XPH_SLP_GAME_END, 6},
    {EXPHIL_SLP_HAS_RAW_JOY_Y, XPH_SLP_PRE, 0x40},
    {EXPHIL_SLP_HAS_INSTANCE, XPH_SLP_POST, 0x54},
    {EXPHIL_SLP_HAS_ITEM_INSTANCE, XPH_SLP_ITEM, 0x2C},
    {EXPHIL_SLP_HAS_RAW_C, XPH_SLP_PRE, 0x42},
    {EXPHIL_SLP_HAS_FOUNTAIN, XPH_SLP_FOUNTAIN, 9},
    {EXPHIL_SLP_HAS_WHISPY, XPH_SLP_WHISPY, 5},
    {EXPHIL_SLP_HAS_STADIUM, XPH_SLP_STADIUM, 8},
};

static void table_classify(struct xph_slp_table *table)
{
    for (size_t i = 0; i < sizeof known_events / sizeof known_events[0]; i++) {
        const struct known_event *event = &known_events[i];
        if (table->use[event->code] == XPH_SLP_NO_SIZE) continue;
        table->use[event->code] = table->size[event->code] < event->least ? XPH_SLP_SHORT : event->use;
    }
    table->has_frame_start = table->use[XPH_SLP_FRAME_START] != XPH_SLP_NO_SIZE;
    table->has_bookend = table->use[XPH_SLP_BOOKEND] != XPH_SLP_NO_SIZE;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (table->use[fields[i].code] == XPH_SLP_USE && table->size[fields[i].code] >= fields[i].least)
            table->fields |= fields[i].bit;
}

exphil_status xph_slp_table_read(const uint8_t *data, size_t at, size_t end, struct xph_slp_table *table,
                                 size_t *used, exphil_error *error)
{
    struct xph_slp_table found = {0};
    if (at >= end || data[at] != XPH_SLP_PAYLOADS)
        return xph_fail(error, EXPHIL_E_FORMAT, "no event payloads event (0x35) at offset %zu", at);
    size_t size = end - at > 1 ? data[at + 1] : 0; /* counts itself, not the command byte */
    if (end - at < 2 || size > end - at - 1)
        return xph_fail(error, EXPHIL_E_FORMAT, "event payloads event at offset %zu is cut at offset %zu", at,
                        end);
    if (size % 3 != 1)
        return xph_fail(error, EXPHIL_E_FORMAT,
                        "size %zu of the event payloads event at offset %zu is not 3k+1", size, at + 1);
    for (size_t entry = at + 2; entry < at + 1 + size; entry += 3) {
        found.size[data[entry]] = xph_slp_u16(data + entry + 1);
        found.use[data[entry]] = XPH_SLP_UNKNOWN;
    }
    if (found.use[XPH_SLP_GAME_START] == XPH_SLP_NO_SIZE)
        return xph_fail(error, EXPHIL_E_FORMAT, "event payloads event at offset %zu has no game start (0x36)",
                        at);
    table_classify(&found);
    *table = found;
    *used = 1 + size;
    return EXPHIL_OK;
}
