/* The loop of a player in Dolphin: wait for a frame, read it, decide, press; and a count of all that could go wrong in time. */
#ifndef EXPHIL_DOLPHIN_PLAY_H
#define EXPHIL_DOLPHIN_PLAY_H

#include "../libretro/game_map.h"
#include "dolphin.h"

struct play_frame {
    const float *floats;
    const int32_t *ids;
    const uint8_t *state; /* map->state_bytes of them; NULL when the map names none */
    int fresh;            /* 1: the first of an episode, or the one before was missed or no game */
};

/* Fills action [map->heads]. Nonzero stops the loop with p->message, which it has written. */
typedef int (*play_decide_fn)(void *user, const struct play_frame *frame, int32_t *action);
/* A frame and the action that acted after it, both sure. fresh: an episode begins. */
typedef int (*play_record_fn)(void *user, const struct play_frame *frame, const int32_t *action);

struct play_count {
    int64_t frames;  /* seen, each once */
    int64_t missed;  /* gone by before they could be looked at */
    int64_t late;    /* decided when the next frame was there already */
    int64_t untaken; /* decisions that were not what the game took in the next frame */
    int64_t changes,
        latency; /* decisions unlike the one before, and the sum of frames until the game had them */
    int64_t latency_max;
    int64_t time_ns; /* from the first frame to the last */
    int32_t *
        cost_ns; /* [frames, at most cost_room] from when a frame was noticed to when its decision was in the pipe */
    int64_t cost_room;
};

struct play {
    struct dolphin *dolphin;
    const struct game_map *map;
    int frame, acted; /* fields of the map; acted -1: the game does not show what it took */
    play_decide_fn decide;
    play_record_fn record; /* may be NULL */
    void *user;
    struct play_count count;
    char message[2 * DOLPHIN_PATH];
};

/* Finds the fields: `frame`, a raw u32be at an address divisible by four, which the game changes when a frame is whole; and
 * `acted`, if there, what the game took for the first head. Returns DOLPHIN_... with p->message. */
int play_open(struct play *p, struct dolphin *d, const struct game_map *map);
/* Waits until the map's magic and conditions hold. */
int play_wait_game(struct play *p);
int play_frames(struct play *p, int64_t frames);

#endif
