/* The scripted player that a policy learns from. No C library, no memory of its own: what it does is a function of the
 * game's bytes. */
#ifndef EXPHIL_PONG_TEACHER_H
#define EXPHIL_PONG_TEACHER_H

#include <stdint.h>

/* state: the PONG_STATE_BYTES of struct pong. player: 0 or 1. Returns PONG_UP, PONG_DOWN or 0. */
int pong_teacher(const uint8_t *state, unsigned player);

#endif
