/* What is Pong's own in the Dolphin bot: a game from a seed, and who returned what. */
#ifndef EXPHIL_PONG_GAME_H
#define EXPHIL_PONG_GAME_H

#include "dolphin.h"

struct pong_tally {
    int64_t returned, lost, won; /* balls that came to player 0: hit, or missed; points it made */
    uint8_t before[32];          /* state of the frame before; before[0] 0: none */
};

/* Presses START with the seed (1..140; 0: the game's own) in the left trigger, and returns in the tenth frame of the new game,
 * when the ball still rests: what follows depends on the seed and the presses alone. Needs the game's address. */
int pong_restart(struct dolphin *d, uint32_t address, int seed);
/* Takes the PONG_STATE_BYTES of every frame. */
void pong_count(struct pong_tally *tally, const uint8_t *state);

#endif
