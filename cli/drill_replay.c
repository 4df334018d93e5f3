/* The drill as a replay file: the bytes a recorder of version 3.16 would have written, see lib/melee for the reader. */
#include "drill_world.h"
#include "system.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { START = 760, PRE = 64, POST = 84, END = 6, FRAME = 12, ITEM = 44, BOOKEND = 8 };

typedef struct writer {
    FILE *file;
    uint8_t event[1 + START];
    long stream;
} writer;

static void put16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static void put32(uint8_t *to, uint32_t value)
{
    put16(to, value >> 16);
    put16(to + 2, value & 0xFFFF);
}

static void put_float(uint8_t *to, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put32(to, bits);
}

static uint8_t *begin(writer *w, uint8_t code, int32_t frame, int port)
{
    memset(w->event, 0, sizeof w->event);
    w->event[0] = code;
    put32(w->event + 1, (uint32_t)frame);
    w->event[5] = (uint8_t)port;
    return w->event;
}

static void end(writer *w, size_t payload)
{
    fwrite(w->event, 1, payload + 1, w->file);
    w->stream += (long)payload + 1;
}

static void write_head(writer *w)
{
    static const uint8_t container[15] = {'{', 'U', 3, 'r', 'a', 'w', '[', '$', 'U', '#', 'l', 0, 0, 0, 0};
    static const struct {
        uint8_t code;
        uint16_t size;
    } table[] = {{0x36, START}, {0x37, PRE},  {0x38, POST},   {0x39, END},
                 {0x3A, FRAME}, {0x3B, ITEM}, {0x3C, BOOKEND}};
    uint8_t *e = w->event;
    fwrite(container, 1, sizeof container, w->file);
    memset(e, 0, sizeof w->event);
    e[0] = 0x35;
    e[1] = 3 * 7 + 1;
    for (size_t i = 0; i < 7; i++) {
        e[2 + 3 * i] = table[i].code;
        put16(e + 3 + 3 * i, table[i].size);
    }
    end(w, 3 * 7 + 1);
    memset(e, 0, sizeof w->event);
    e[0] = 0x36;
    e[1] = 3;
    e[2] = 16;
    e[5] = 0x32;    /* stock mode, time runs down */
    e[0x10] = 0xFF; /* no items */
    put16(e + 0x13, 32);
    put32(e + 0x15, 480);
    put_float(e + 0x35, 1.0f);
    for (int i = 0; i < 6; i++) {
        e[0x65 + 0x24 * i] = 2; /* Fox */
        e[0x66 + 0x24 * i] = i < 2 ? 0 : 3;
        e[0x67 + 0x24 * i] = 4;
    }
    e[0x1A3] = 2;
    e[0x1A4] = 2;
    end(w, START);
}

static void write_pre(writer *w, int32_t frame, int port, const exphil_melee_character *was,
                      const exphil_pad *pad)
{
    uint8_t *e = begin(w, 0x37, frame, port);
    put16(e + 0x0B, was->action_state);
    put_float(e + 0x0D, was->x);
    put_float(e + 0x11, was->y);
    put_float(e + 0x15, was->facing);
    put_float(e + 0x19, pad->main_x);
    put_float(e + 0x1D, pad->main_y);
    put_float(e + 0x21, pad->c_x);
    put_float(e + 0x25, pad->c_y);
    put_float(e + 0x29, pad->trigger);
    put32(e + 0x2D, pad->buttons);
    put16(e + 0x31, pad->buttons);
    e[0x3B] = (uint8_t)(int8_t)lrintf(80.0f * pad->main_x);
    put_float(e + 0x3C, was->percent);
    e[0x40] = (uint8_t)(int8_t)lrintf(80.0f * pad->main_y);
    end(w, PRE);
}

static void write_post(writer *w, int32_t frame, int port, const exphil_melee_character *now)
{
    uint8_t *e = begin(w, 0x38, frame, port);
    e[0x07] = now->character;
    put16(e + 0x08, now->action_state);
    put_float(e + 0x0A, now->x);
    put_float(e + 0x0E, now->y);
    put_float(e + 0x12, now->facing);
    put_float(e + 0x16, now->percent);
    put_float(e + 0x1A, now->shield);
    e[0x20] = now->last_hit_by;
    e[0x21] = now->stocks;
    put_float(e + 0x22, now->state_age);
    e[0x2F] = now->airborne;
    e[0x32] = now->jumps;
    put_float(e + 0x35, now->speed_air_x);
    put_float(e + 0x39, now->speed_y);
    put_float(e + 0x45, now->speed_ground_x);
    end(w, POST);
}

/* One frame: both players' controllers, then both players' states. */
static void write_frame(writer *w, const exphil_melee_frame *was, const exphil_pad *pad,
                        const exphil_melee_frame *now)
{
    static const exphil_pad nothing;
    begin(w, 0x3A, now->frame, 0)[5] = 0;
    put32(w->event + 9, (uint32_t)(now->frame + COUNTDOWN));
    end(w, FRAME);
    for (int port = 0; port < 2; port++)
        write_pre(w, now->frame, port, &was->player[port], port ? &nothing : pad);
    for (int port = 0; port < 2; port++) write_post(w, now->frame, port, &now->player[port]);
    begin(w, 0x3C, now->frame, 0);
    put32(w->event + 5, (uint32_t)now->frame);
    end(w, BOOKEND);
}

static void write_tail(writer *w)
{
    uint8_t length[4];
    memset(w->event, 0xFF, sizeof w->event);
    w->event[0] = 0x39;
    w->event[1] = 7;
    end(w, END);
    fputs("U\x08metadata{}}", w->file);
    put32(length, (uint32_t)w->stream);
    fseek(w->file, 11, SEEK_SET);
    fwrite(length, 1, sizeof length, w->file);
}

int drill_write_replay(const char *path, uint64_t seed, int64_t frames)
{
    writer w = {.file = system_open(path, "wb")};
    drill_world world;
    exphil_melee_frame was, now;
    if (!w.file) return 0;
    drill_begin(&world, seed);
    world.frame = -124;
    write_head(&w);
    drill_observe(&world, &was);
    for (int64_t i = 0; i < frames + COUNTDOWN; i++) {
        exphil_pad pad;
        drill_teach(&world, &pad);
        drill_step(&world, &pad);
        drill_observe(&world, &now);
        write_frame(&w, &was, &pad, &now);
        was = now;
    }
    write_tail(&w);
    int fine = !ferror(w.file);
    return fclose(w.file) == 0 && fine;
}
