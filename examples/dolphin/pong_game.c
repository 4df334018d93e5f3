/* Reads struct pong as the map's `state` gives it. */
#include "pong_game.h"

#include "../pong/pong.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define FIRST_FRAME 10
#define SEED_MOST   140 /* what controller_send makes of a full trigger */

static unsigned frame_of(const uint8_t *state)
{
    return state[offsetof(struct pong, frame)] + 256u * state[offsetof(struct pong, frame) + 1];
}

/* The game's own counter lies in this word of memory, and changes with every frame. */
static int next_frame(struct dolphin *d, uint32_t address, const uint8_t *state, unsigned *frame)
{
    uint32_t word = address + offsetof(struct pong, frame), now;
    int status = dolphin_wait_word(d, word, dolphin_word(d, word), &now);
    *frame = frame_of(state);
    return status;
}

/* One try; *frame is FIRST_FRAME when all went well. */
static int press_start(struct dolphin *d, uint32_t address, const exphil_pad *start, unsigned *frame)
{
    static const exphil_pad nothing;
    const uint8_t *state = dolphin_memory_at(d, address, PONG_STATE_BYTES);
    int status = DOLPHIN_OK;
    /* A game that is young already is let grow, else nobody could see that it began anew. */
    *frame = frame_of(state);
    while (status == DOLPHIN_OK && *frame <= FIRST_FRAME) status = next_frame(d, address, state, frame);
    if (status == DOLPHIN_OK && controller_send(d->pad, start) < 0) status = dolphin_check(d);
    for (int i = 0; status == DOLPHIN_OK && *frame > FIRST_FRAME && i < 60; i++)
        status = next_frame(d, address, state, frame);
    if (status == DOLPHIN_OK && controller_send(d->pad, &nothing) < 0) status = dolphin_check(d);
    while (status == DOLPHIN_OK && *frame < FIRST_FRAME) status = next_frame(d, address, state, frame);
    return status;
}

int pong_restart(struct dolphin *d, uint32_t address, int seed)
{
    exphil_pad start = {EXPHIL_PAD_START, 0, 0, 0, 0, (float)seed / SEED_MOST};
    int known = dolphin_memory_at(d, address, PONG_STATE_BYTES) && seed >= 0 && seed <= SEED_MOST;
    unsigned frame = 0;
    for (int tries = 0; known && tries < 20; tries++) {
        int status = press_start(d, address, &start, &frame);
        if (status != DOLPHIN_OK || frame == FIRST_FRAME) return status;
    }
    snprintf(d->message, sizeof d->message,
             known ? "START does not begin a new game, or its first frames are always missed"
                   : "no Pong at this address, or no such seed");
    return DOLPHIN_FAILED;
}

void pong_count(struct pong_tally *tally, const uint8_t *state)
{
    struct pong now, before;
    memcpy(&now, state, sizeof now);
    memcpy(&before, tally->before, sizeof before);
    memcpy(tally->before, state, sizeof now);
    if (!before.magic[0]) return;
    tally->lost += now.score[1] > before.score[1];
    tally->won += now.score[0] > before.score[0];
    tally->returned += before.speed_x < 0 && now.speed_x > 0 && now.rally > before.rally;
}
