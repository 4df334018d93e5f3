/* The rules of Pong without a console: see pong.c. */
#ifndef XPH_LEARN_PONG_H
#define XPH_LEARN_PONG_H

#include "base/base.h"

/* The field in pixels, as in examples/pong/pong.h. */
#define XPH_PONG_WIDTH  160
#define XPH_PONG_HEIGHT 128
#define XPH_PONG_BALL   6
#define XPH_PONG_PADDLE 24
#define XPH_PONG_LEFT   8
#define XPH_PONG_RIGHT  152
#define XPH_PONG_SPEED  2
#define XPH_PONG_MIDDLE ((XPH_PONG_HEIGHT - XPH_PONG_PADDLE) / 2)
#define XPH_PONG_POINTS 21

typedef struct xph_pong {
    uint16_t frame;
    uint8_t pause, ball_x, ball_y;
    int8_t speed_x, speed_y;
    uint8_t paddle[2], score[2], rally, random;
} xph_pong;

void xph_pong_start(xph_pong *game, uint8_t random); /* random: 1..255 */
/* One frame; buttons: 0, 1 up, 2 down. */
void xph_pong_step(xph_pong *game, uint8_t left, uint8_t right);
/* What the game's own player presses on the right in this frame. */
uint8_t xph_pong_opponent(const xph_pong *game);

#endif
