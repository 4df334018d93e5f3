/* The library's own worlds: each says how it is made. */
#ifndef XPH_LEARN_WORLD_H
#define XPH_LEARN_WORLD_H

#include "base/base.h"
#include "device/device.h"

#include <exphil/learn.h>

/* A kind of world: a game is a block of state_bytes, all that its functions know. */
typedef struct xph_game {
    const char *name;
    const exphil_spec *spec;
    size_t state_bytes;
    int64_t seats;
    void (*reset)(void *state, uint64_t seed);
    /* actions [seats, A] -> reward [seats], and how the episode stands */
    uint8_t (*step)(void *state, const int32_t *actions, float *reward);
    void (*row)(const void *state, int64_t seat, float *floats, int32_t *ids);
} xph_game;

extern const xph_game xph_game_cartpole, xph_game_cartpole_blind, xph_game_pong, xph_game_pong_two;

/* Gives a caller's struct of any age a world that this library made, as XPH_CHECK_OUTPUT and XPH_GIVE; a struct_size of 0 is that
 * of the first release that had worlds. */
exphil_status xph_world_check_output(const exphil_world *world, exphil_error *error);
void xph_world_give(exphil_world *world, const exphil_world *known);

#endif
