/* A map's presses on a GameCube's controller. */
#ifndef EXPHIL_GAMECUBE_PAD_H
#define EXPHIL_GAMECUBE_PAD_H

#include "../libretro/game_map.h"

/* Buttons by their names; r is Z, l2 and r2 are the triggers' clicks; select, l, l3 and r3 are nothing. Axes: lx ly the stick,
 * rx ry the C-stick, up and right positive on the pad. */
exphil_pad gamecube_pad(const struct game_press *press);

#endif
