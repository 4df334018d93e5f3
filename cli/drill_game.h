/* The drill as a game that can be learnt: a minute of it is an episode, and a hit is worth 1. */
#ifndef EXPHIL_CLI_DRILL_GAME_H
#define EXPHIL_CLI_DRILL_GAME_H

#include <exphil/learn.h>

#include <stdbool.h>

/* lanes games of one seat, whose rows and actions are those of melee2 and exphil81. An episode begins where players get control
 * of their characters in `exphil drill`, which counts the same hits over as many frames. */
exphil_status drill_game_open(int64_t lanes, exphil_world *world, exphil_error *error);
/* What is known after the latest frame of a lane, and what the teacher presses next. false: world is another one, or has no such
 * lane. */
bool drill_game_look(const exphil_world *world, int64_t lane, exphil_melee_frame *frame, exphil_pad *teacher);

#endif
