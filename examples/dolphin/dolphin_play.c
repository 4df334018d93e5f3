/* One thread, which sleeps a fifth of a millisecond between two looks at the game's frame counter. A row is read between two looks
 * at the counter that agree, so it is all of one frame. */
#define _POSIX_C_SOURCE 200809L
#include "dolphin_play.h"

#include "gamecube_pad.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What is carried from one frame to the next. */
struct turn {
    uint32_t number; /* of the frame */
    double values[GAME_MAP_FIELDS];
    float *floats, *before_floats; /* [map->floats] of this frame, and of the one before ... */
    int32_t *ids, *before_ids;
    uint8_t *state;                    /* [map->state_bytes] */
    int32_t action[EXPHIL_HEADS_MAX];  /* decided last ... */
    int32_t waiting[EXPHIL_HEADS_MAX]; /* ... and the last change, that the game has not shown yet */
    int64_t changed;                   /* frame of that change by count, -1: shown */
    double episode;                    /* the map's episode field in the frame before */
    int fresh, decided, before_fresh;  /* decided: action was in the pipe in time */
};

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int take_over(struct play *p, int status)
{
    if (status != DOLPHIN_OK) snprintf(p->message, sizeof p->message, "%s", p->dolphin->message);
    return status;
}

static int find_raw(const struct game_map *map, const char *name)
{
    for (int i = 0; i < map->fields; i++)
        if (!strcmp(map->field[i].name, name)) return i;
    return -1;
}

int play_open(struct play *p, struct dolphin *d, const struct game_map *map)
{
    p->dolphin = d;
    p->map = map;
    p->frame = find_raw(map, "frame");
    p->acted = find_raw(map, "acted");
    const struct game_field *frame = p->frame < 0 ? NULL : &map->field[p->frame];
    if (frame && frame->bytes == 4 && frame->big && frame->form == 'u' && frame->address % 4 == 0)
        return DOLPHIN_OK;
    snprintf(p->message, sizeof p->message,
             "the map needs: raw frame ADDRESS u32be (divisible by 4), a counter of whole frames");
    return DOLPHIN_FAILED;
}

/* Reads one frame whole; when the game moves on meanwhile, the next one instead. */
static int read_frame(struct play *p, struct turn *t)
{
    const struct game_map *map = p->map;
    uint32_t address = map->field[p->frame].address;
    int field;
    do {
        t->number = dolphin_word(p->dolphin, address);
        const uint8_t *state = dolphin_memory_at(p->dolphin, map->state_address, map->state_bytes);
        int unread = game_map_read(map, dolphin_memory_at, p->dolphin, t->values, &field);
        if (unread || (map->state_bytes && !state)) {
            snprintf(p->message, sizeof p->message, "the map's %.31s at 0x%08X is not in a GameCube's memory",
                     unread ? map->field[field].name : "state",
                     (unsigned)(unread ? map->field[field].address : map->state_address));
            return DOLPHIN_FAILED;
        }
        if (map->state_bytes) memcpy(t->state, state, map->state_bytes);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (dolphin_word(p->dolphin, address) != t->number);
    return DOLPHIN_OK;
}

static int row_of(struct play *p, struct turn *t)
{
    int field;
    if (game_map_row(p->map, t->values, t->floats, t->ids, &field) == 0) return DOLPHIN_OK;
    snprintf(p->message, sizeof p->message, "the map's %.31s: the game has %g there, which is no such value",
             p->map->field[field].name, t->values[field]);
    return DOLPHIN_FAILED;
}

/* How many frames after a change the game shows it. */
static void count_latency(struct play *p, struct turn *t)
{
    struct play_count *count = &p->count;
    if (p->acted < 0 || t->changed < 0 || (int32_t)t->values[p->acted] != t->waiting[0]) return;
    int64_t frames = count->frames + count->missed - t->changed;
    count->latency += frames;
    count->changes++;
    if (frames > count->latency_max) count->latency_max = frames;
    t->changed = -1;
}

/* The frame before is settled now: its action acted if no frame was missed and the game shows it. */
static int settle(struct play *p, struct turn *t, int missed)
{
    struct play_frame frame = {t->before_floats, t->before_ids, NULL, t->before_fresh};
    if (!t->decided || missed) return DOLPHIN_OK;
    if (p->acted >= 0 && (int32_t)t->values[p->acted] != t->action[0]) {
        p->count.untaken++;
        t->fresh = 1;
        return DOLPHIN_OK;
    }
    return p->record && p->record(p->user, &frame, t->action) ? DOLPHIN_FAILED : DOLPHIN_OK;
}

static int decide(struct play *p, struct turn *t, int64_t noticed)
{
    struct play_frame frame = {t->floats, t->ids, p->map->state_bytes ? t->state : NULL, t->fresh};
    struct play_count *count = &p->count;
    struct game_press press;
    int32_t before = t->action[0];
    if (row_of(p, t) || p->decide(p->user, &frame, t->action)) return DOLPHIN_FAILED;
    game_map_press(p->map, t->action, &press);
    exphil_pad pad = gamecube_pad(&press);
    int status = controller_send(p->dolphin->pad, &pad);
    if (status < 0 || status == CONTROLLER_NO_READER) {
        int check = dolphin_check(p->dolphin);
        if (check != DOLPHIN_OK) return take_over(p, check);
        snprintf(p->message, sizeof p->message, "Dolphin has closed the controller's pipe");
        return DOLPHIN_FAILED;
    }
    if (count->frames <= count->cost_room) count->cost_ns[count->frames - 1] = (int32_t)(now_ns() - noticed);
    t->decided =
        status == CONTROLLER_OK && dolphin_word(p->dolphin, p->map->field[p->frame].address) == t->number;
    count->late += !t->decided;
    if (t->action[0] != before) {
        t->changed = count->frames + count->missed;
        memcpy(t->waiting, t->action, sizeof t->waiting);
    }
    return DOLPHIN_OK;
}

static void keep_row(struct turn *t)
{
    float *floats = t->floats;
    int32_t *ids = t->ids;
    t->floats = t->before_floats, t->before_floats = floats;
    t->ids = t->before_ids, t->before_ids = ids;
    t->before_fresh = t->fresh;
}

static int play_one(struct play *p, struct turn *t)
{
    uint32_t before = t->number, now;
    int status = dolphin_wait_word(p->dolphin, p->map->field[p->frame].address, before, &now);
    int64_t noticed = now_ns();
    if (status != DOLPHIN_OK) return take_over(p, status);
    if (read_frame(p, t)) return DOLPHIN_FAILED;
    uint32_t missed = t->number - before - 1;
    p->count.frames++;
    p->count.missed += missed;
    count_latency(p, t);
    t->fresh = missed || !t->decided;
    if (p->map->episode >= 0 && t->values[p->map->episode] != t->episode) {
        t->episode = t->values[p->map->episode];
        t->fresh = 1;
    }
    if (settle(p, t, missed != 0)) return DOLPHIN_FAILED;
    t->decided = 0;
    if (!game_map_ready(p->map, dolphin_memory_at, p->dolphin, t->values)) return DOLPHIN_OK;
    if (decide(p, t, noticed)) return DOLPHIN_FAILED;
    keep_row(t);
    return DOLPHIN_OK;
}

static int make_turn(struct play *p, struct turn *t)
{
    size_t floats = (size_t)p->map->floats + 1, ids = (size_t)p->map->ids + 1;
    memset(t, 0, sizeof *t);
    t->floats = calloc(2 * floats, sizeof *t->floats);
    t->ids = calloc(2 * ids, sizeof *t->ids);
    t->state = calloc(1, p->map->state_bytes + 1u);
    t->changed = -1;
    if (!t->floats || !t->ids || !t->state) {
        snprintf(p->message, sizeof p->message, "no memory");
        return DOLPHIN_FAILED;
    }
    t->before_floats = t->floats + floats;
    t->before_ids = t->ids + ids;
    for (int i = 0; i < p->map->heads; i++) t->action[i] = p->map->head[i].neutral;
    return read_frame(p, t);
}

int play_frames(struct play *p, int64_t frames)
{
    struct turn t;
    int status = make_turn(p, &t);
    float *floats = t.floats;
    int32_t *ids = t.ids;
    int64_t begin = now_ns();
    for (int64_t i = 0; i < frames && status == DOLPHIN_OK; i++) status = play_one(p, &t);
    p->count.time_ns += now_ns() - begin;
    free(floats), free(ids), free(t.state);
    return status;
}

int play_wait_game(struct play *p)
{
    struct timespec nap = {0, 10000000};
    struct turn t;
    int status = make_turn(p, &t);
    int ready = 0;
    for (int i = 0; status == DOLPHIN_OK && i < 100 * p->dolphin->patience_s && !ready; i++) {
        status = take_over(p, dolphin_check(p->dolphin));
        if (status == DOLPHIN_OK) status = read_frame(p, &t);
        ready = status == DOLPHIN_OK && game_map_ready(p->map, dolphin_memory_at, p->dolphin, t.values);
        if (!ready) nanosleep(&nap, NULL);
    }
    free(t.floats), free(t.ids), free(t.state);
    if (status != DOLPHIN_OK || ready) return status;
    snprintf(p->message, sizeof p->message,
             "the game of this map does not begin within %d s: no magic, or a condition fails",
             p->dolphin->patience_s);
    return DOLPHIN_FAILED;
}
