/* See slp_edit.h. */
#include "slp_edit.h"

#include "test.h"

#include <stdlib.h>

enum { HEADER = 15, START = 0x36, PRE = 0x37, POST = 0x38, END = 0x39, FRAME = 0x3A, BOOKEND = 0x3C };

static bool of_a_frame(uint8_t code)
{
    static const uint8_t codes[] = {PRE, POST, FRAME, 0x3B, BOOKEND, 0x3F, 0x40, 0x41};
    return memchr(codes, code, sizeof codes) != NULL;
}

/* The events of one simulation of a frame, or one event that belongs to none. */
typedef struct chunk {
    size_t at, bytes;
    int32_t frame;
    bool of_frame;
} chunk;

typedef struct editing {
    const uint8_t *data;
    size_t begin, end; /* of the events */
    const slp_edit *edit;
    slp_writer *to;
    uint16_t size[256];
    chunk *chunks;
    size_t count;
    int32_t last; /* frame */
} editing;

static int32_t i32_at(const uint8_t *from)
{
    return (int32_t)((uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3]);
}

static void i32_to(uint8_t *to, int32_t value)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)((uint32_t)value >> (24 - 8 * i));
}

/* Does this event begin another simulation than the one before it belongs to? */
static bool begins(const editing *e, const chunk *now, size_t at, bool posts)
{
    const uint8_t code = e->data[at];
    if (!of_a_frame(code) || !now->of_frame) return true;
    if (e->size[FRAME]) return code == FRAME;
    return code == PRE && (posts || i32_at(e->data + at + 1) != now->frame);
}

static void find_chunks(editing *e)
{
    bool posts = false;
    e->chunks = calloc(e->end - e->begin + 1, sizeof *e->chunks);
    e->last = INT32_MIN;
    for (size_t at = e->begin, bytes; at < e->end; at += bytes) {
        const uint8_t code = e->data[at];
        bytes = 1 + (size_t)e->size[code];
        assert_true(at + bytes <= e->end);
        if (!e->count || begins(e, &e->chunks[e->count - 1], at, posts)) {
            bool of_frame = of_a_frame(code);
            e->chunks[e->count++] = (chunk){at, 0, of_frame ? i32_at(e->data + at + 1) : 0, of_frame};
            posts = false;
        }
        chunk *now = &e->chunks[e->count - 1];
        now->bytes += bytes;
        posts = posts || code == POST;
        if (now->of_frame && now->frame > e->last) e->last = now->frame;
    }
}

/* other: with other sticks, of a frame that is not final. */
static void put_chunk(editing *e, const chunk *c, bool other, bool final)
{
    for (size_t at = c->at; at < c->at + c->bytes; at += 1 + (size_t)e->size[e->data[at]]) {
        const uint8_t code = e->data[at];
        const size_t from = e->to->bytes;
        if (code == END && e->edit->no_end) continue;
        slp_put(e->to, e->data + at, 1 + (size_t)e->size[code]);
        uint8_t *event = e->to->data + from;
        if (code == START) i32_to(event + 0x13D, i32_at(event + 0x13D) ^ (int32_t)e->edit->seed);
        if (code == PRE && other) i32_to(event + 0x19, 0x3F000000 + c->frame);
        if (code == BOOKEND && !final && e->size[BOOKEND] >= 8) i32_to(event + 5, c->frame - 7);
        for (int32_t i = 0; code == BOOKEND && i < e->edit->padding; i++) slp_put(e->to, "\xA5", 1);
    }
}

static void put_chunks(editing *e)
{
    int32_t frames = 0;
    for (size_t i = 0; i < e->count; i++) {
        const chunk *c = &e->chunks[i];
        if (c->of_frame && c->frame > e->last - e->edit->drop) continue;
        bool again = c->of_frame && e->edit->rollback && e->size[BOOKEND] && frames % e->edit->rollback == 1;
        for (size_t k = i; again && k < i + 3 && k < e->count && e->chunks[k].of_frame; k++)
            if (e->chunks[k].frame <= e->last - e->edit->drop) put_chunk(e, &e->chunks[k], true, false);
        frames += c->of_frame;
        put_chunk(e, c, c->of_frame && c->frame + 124 == e->edit->input, true);
    }
}

void slp_edit_make(const uint8_t *data, size_t bytes, const slp_edit *edit, slp_writer *to)
{
    editing e = {.data = data, .edit = edit, .to = to};
    *to = (slp_writer){0};
    assert_true(bytes > HEADER && data[HEADER] == 0x35);
    int32_t raw = i32_at(data + 11);
    e.end = raw > 0 && (size_t)raw + HEADER <= bytes ? HEADER + (size_t)raw : bytes;
    e.begin = HEADER + 1 + (size_t)data[HEADER + 1];
    slp_put(to, data, e.begin);
    for (size_t at = HEADER + 2; at + 3 <= e.begin; at += 3) {
        uint16_t size = e.size[data[at]] = (uint16_t)(data[at + 1] << 8 | data[at + 2]);
        if (data[at] != BOOKEND) continue;
        to->data[at + 1] = (uint8_t)((size + edit->padding) >> 8);
        to->data[at + 2] = (uint8_t)(size + edit->padding);
    }
    find_chunks(&e);
    put_chunks(&e);
    slp_length(to, (int32_t)(to->bytes - HEADER));
    if (edit->metadata) {
        slp_put(to, "U\x08metadata", 10);
        slp_put(to, edit->metadata, strlen(edit->metadata));
        slp_put(to, "}", 1);
    } else {
        slp_put(to, data + e.end, bytes - e.end);
    }
    free(e.chunks);
}
