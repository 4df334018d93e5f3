/* The writer of tiny replays. Sizes of the layouts are those measured in real files of each version. */
#include "slp_writer.h"

#include <stdlib.h>
#include <string.h>

const slp_layout slp_layouts[SLP_LAYOUTS] = {
    {{0, 1, 0}, 320, 58, 33, 1, 0, 0, 0, 0},    {{1, 0, 0}, 352, 58, 37, 1, 0, 0, 0, 0},
    {{1, 2, 0}, 352, 59, 37, 1, 0, 0, 0, 0},    {{1, 7, 1}, 417, 63, 37, 1, 0, 0, 0, 0},
    {{2, 0, 1}, 418, 63, 51, 2, 0, 0, 0, 0},    {{2, 2, 0}, 418, 63, 52, 2, 8, 0, 0, 0},
    {{3, 6, 0}, 418, 63, 72, 2, 8, 42, 4, 0},   {{3, 7, 0}, 420, 63, 72, 2, 8, 42, 8, 0},
    {{3, 9, 0}, 584, 63, 76, 2, 8, 42, 8, 0},   {{3, 12, 0}, 701, 63, 80, 2, 12, 42, 8, 0},
    {{3, 13, 0}, 701, 63, 80, 6, 12, 42, 8, 0}, {{3, 14, 0}, 760, 63, 80, 6, 12, 42, 8, 0},
    {{3, 15, 0}, 760, 64, 80, 6, 12, 42, 8, 0}, {{3, 16, 0}, 760, 64, 84, 6, 12, 44, 8, 0},
    {{3, 17, 0}, 760, 64, 84, 6, 12, 44, 8, 1}, {{3, 18, 0}, 760, 66, 84, 6, 12, 44, 8, 1},
    {{3, 99, 0}, 421, 65, 62, 4, 10, 39, 6, 1},
};

uint8_t slp_byte(uint8_t code, int32_t frame, uint32_t slot, uint32_t salt, uint32_t offset)
{
    uint32_t x =
        (uint32_t)frame * 0x9E3779B1u ^ (code * 0x85EBCA77u + slot * 0xC2B2AE3Du + salt * 0x27D4EB2Fu);
    x = (x ^ x >> 15) + offset * 0x165667B1u;
    x = (x ^ x >> 13) * 0x85EBCA77u;
    return (uint8_t)(x >> 24);
}

static void put_i32(uint8_t *to, int32_t value)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)((uint32_t)value >> (24 - 8 * i) & 0xFF);
}

void slp_put(slp_writer *writer, const void *bytes, size_t count)
{
    if (writer->bytes + count > writer->capacity) {
        writer->capacity = 2 * (writer->bytes + count);
        writer->data = realloc(writer->data, writer->capacity);
        if (!writer->data) abort();
    }
    if (count) memcpy(writer->data + writer->bytes, bytes, count);
    writer->bytes += count;
}

void slp_free(slp_writer *writer)
{
    free(writer->data);
    *writer = (slp_writer){0};
}

void slp_declare(slp_writer *writer, uint8_t code, uint16_t size)
{
    writer->has[code] = true;
    writer->size[code] = size;
}

void slp_begin(slp_writer *writer, const slp_layout *layout, bool bare)
{
    *writer = (slp_writer){.bare = bare};
    slp_declare(writer, 0x36, layout->start);
    slp_declare(writer, 0x37, layout->pre);
    slp_declare(writer, 0x38, layout->post);
    slp_declare(writer, 0x39, layout->end);
    if (layout->frame_start) slp_declare(writer, 0x3A, layout->frame_start);
    if (layout->item) slp_declare(writer, 0x3B, layout->item);
    if (layout->bookend) slp_declare(writer, 0x3C, layout->bookend);
    if (layout->version[0] == 3 && layout->version[1] >= 7) slp_declare(writer, 0x10, 516);
    if (!layout->stage) return;
    slp_declare(writer, 0x3F, 9);
    slp_declare(writer, 0x40, 5);
    slp_declare(writer, 0x41, 8);
}

uint8_t *slp_event(slp_writer *writer, uint8_t code, int32_t frame, uint32_t slot)
{
    if (!writer->has[code]) return NULL;
    size_t count = 1 + (size_t)writer->size[code];
    uint8_t *bytes = malloc(count);
    if (!bytes) abort();
    for (uint32_t i = 0; i < count; i++) bytes[i] = slp_byte(code, frame, slot, writer->salt, i);
    bytes[0] = code;
    if (code >= 0x37 && code != 0x39 && count >= 5) put_i32(bytes + 1, frame);
    if ((code == 0x37 || code == 0x38) && count > 6) {
        bytes[5] = (uint8_t)(slot / 2);
        bytes[6] = slot % 2;
    }
    slp_put(writer, bytes, count);
    free(bytes);
    return writer->data + writer->bytes - count;
}

void slp_head(slp_writer *writer, const slp_layout *layout)
{
    static const uint8_t header[15] = {'{', 'U', 3, 'r', 'a', 'w', '[', '$', 'U', '#', 'l'};
    uint8_t table[2 + 3 * 256] = {0x35};
    size_t entries = 0;
    for (uint32_t code = 0; code < 256; code++) {
        uint8_t *entry = table + 2 + 3 * entries;
        if (!writer->has[code]) continue;
        entry[0] = (uint8_t)code;
        entry[1] = (uint8_t)(writer->size[code] >> 8);
        entry[2] = (uint8_t)(writer->size[code] & 0xFF);
        entries++;
    }
    table[1] = (uint8_t)(3 * entries + 1);
    if (!writer->bare) slp_put(writer, header, sizeof header);
    slp_put(writer, table, 2 + 3 * entries);
    uint8_t *start = slp_event(writer, 0x36, 0, 0);
    memcpy(start + 1, layout->version, 3);
    for (uint32_t port = 0; port < 4; port++) start[0x66 + 0x24 * port] = port < 2 ? (uint8_t)port : 3;
}

void slp_open_frame(slp_writer *writer, int32_t frame, uint8_t slots, int items)
{
    uint32_t last = 0;
    slp_event(writer, 0x3A, frame, 0);
    for (uint32_t slot = 0; slot < 8; slot++) {
        if (!(slots >> slot & 1)) continue;
        slp_event(writer, 0x37, frame, slot);
        last = slot;
    }
    for (int i = 0; i < items; i++) slp_event(writer, 0x3B, frame, (uint32_t)i);
    for (uint32_t slot = 0; slot < 8; slot++)
        if (slots >> slot & 1 && (slot != last || writer->has[0x3C])) slp_event(writer, 0x38, frame, slot);
}

void slp_frame(slp_writer *writer, int32_t frame, uint8_t slots, int items)
{
    uint32_t last = 7;
    while (last > 0 && !(slots >> last & 1)) last--;
    slp_open_frame(writer, frame, slots, items);
    if (slots && !writer->has[0x3C]) slp_event(writer, 0x38, frame, last);
    slp_event(writer, 0x3C, frame, 0);
}

void slp_game_end(slp_writer *writer, uint8_t method)
{
    static const uint8_t rest[] = {1, 0, 1, 0xFF, 0xFF}; /* port 1 quit; port 0 won */
    uint8_t *end = slp_event(writer, 0x39, 0, 0);
    end[1] = method;
    for (size_t i = 0; i < sizeof rest && i + 2 <= writer->size[0x39]; i++) end[2 + i] = rest[i];
}

void slp_length(slp_writer *writer, int32_t length)
{
    put_i32(writer->data + 11, length);
}

void slp_metadata(slp_writer *writer, int32_t last_frame)
{
    static const char start[] = "U\x08metadata{U\x07startAtSU\x04"
                                "2026U\x09lastFramel";
    static const char rest[] = "U\x07players{U\x01"
                               "0{U\x0A"
                               "characters{U\x02"
                               "18U\x07}}}U\x08playedOnSU\x07"
                               "dolphin}}";
    uint8_t number[4];
    put_i32(number, last_frame);
    slp_put(writer, start, sizeof start - 1);
    slp_put(writer, number, sizeof number);
    slp_put(writer, rest, sizeof rest - 1);
}

void slp_close(slp_writer *writer, int32_t last_frame)
{
    if (writer->bare) return;
    slp_length(writer, (int32_t)(writer->bytes - 15));
    slp_metadata(writer, last_frame);
}

/* ---- samples ------------------------------------------------------------------------------------------- */

static void stage_events(slp_writer *writer, int32_t frame)
{
    for (uint32_t platform = 0; platform < 2; platform++) {
        uint8_t *event = slp_event(writer, 0x3F, frame, platform);
        if (event) event[5] = (uint8_t)platform;
    }
    slp_event(writer, 0x40, frame, 0);
    slp_event(writer, 0x41, frame, 0);
}

/* Three frames in the order of the recorder; Nana in the first two. */
static void plain_frames(slp_writer *writer)
{
    slp_event(writer, 0x10, 0, 0);
    for (int32_t i = 0; i < 3; i++) {
        slp_open_frame(writer, -123 + i, i < 2 ? 0x23 : 0x03, i);
        if (i == 1) stage_events(writer, -122);
        if (!writer->has[0x3C]) slp_event(writer, 0x38, -123 + i, i < 2 ? 5 : 1);
        slp_event(writer, 0x3C, -123 + i, 0);
    }
}

/* Netplay: two steps back, then on; the bytes differ in the second simulation. */
static void rollback_frames(slp_writer *writer)
{
    static const int32_t frames[] = {-123, -122, -121, -122, -121, -120};
    for (uint32_t i = 0; i < 6; i++) {
        writer->salt = i;
        slp_frame(writer, frames[i], 0x05, i == 2 || i == 4);
    }
}

static void odd_events(slp_writer *writer)
{
    slp_event(writer, 0xFF, 0, 0);
    slp_frame(writer, -123, 0x03, 1);
    slp_event(writer, 0xFE, 0, 0);
    slp_event(writer, 0x36, 0, 0);  /* a second start */
    slp_event(writer, 0x3C, 77, 0); /* bookend and item of no frame */
    slp_event(writer, 0x3B, 77, 0);
    slp_event(writer, 0x37, -122, 9); /* port 4; no frame start */
    slp_event(writer, 0x37, -122, 0);
    slp_event(writer, 0x38, -122, 0);
    slp_event(writer, 0x3C, -122, 0);
    slp_frame(writer, 1 << 20, 0x01, 0); /* beyond the limit */
    slp_game_end(writer, 9);
    slp_frame(writer, -121, 0x01, 0);
}

static void team_frames(slp_writer *writer)
{
    static const uint8_t slots[] = {0x55, 0x51, 0x00, 0x55, 0xFF};
    for (int32_t i = 0; i < 5; i++) slp_frame(writer, -123 + i, slots[i], 0);
}

/* Before frame starts existed: an incomplete frame, and the same frame again. */
static void old_rollback(slp_writer *writer)
{
    slp_frame(writer, -123, 0x03, 0);
    slp_open_frame(writer, -122, 0x03, 0);
    writer->salt = 1;
    slp_frame(writer, -122, 0x03, 0);
    slp_frame(writer, -122, 0x03, 0);
    slp_open_frame(writer, -121, 0x03, 0);
}

static void ending(slp_writer *writer, int which)
{
    if (which != 19) slp_game_end(writer, 2);
    if (which == 18) slp_length(writer, (int32_t)writer->bytes + 100);
    if (which == 18) writer->bytes -= 5;
    if (which == 20) slp_metadata(writer, -121);
    if (which < 18 || which > 20) slp_close(writer, -121);
    if (which == 26) slp_length(writer, -1);
}

void slp_sample(slp_writer *writer, int which)
{
    static void (*const frames[])(slp_writer *) = {rollback_frames, team_frames,  plain_frames,
                                                   plain_frames,    plain_frames, odd_events,
                                                   plain_frames,    old_rollback, plain_frames};
    static const int layouts[] = {SLP_NEWEST, 10, 12, 2, SLP_NEWEST, SLP_NEWEST, SLP_NEWEST, 1, SLP_ODD};
    const slp_layout *layout = &slp_layouts[which < 16   ? which
                                            : which < 25 ? layouts[which - 16]
                                                         : SLP_NEWEST];
    slp_begin(writer, layout, which == 22);
    if (which == 21) {
        slp_declare(writer, 0xFE, 0);
        slp_declare(writer, 0xFF, 1);
    }
    if (which == 25) slp_declare(writer, 0x41, 3); /* too short to be used */
    slp_head(writer, layout);
    if (which < 16 || which >= 25)
        plain_frames(writer);
    else
        frames[which - 16](writer);
    ending(writer, which);
}
