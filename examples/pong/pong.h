/* A free two-player Pong for any console: rules and state, without a screen, pads or a C library.
 *
 * All that the game is stands in one struct of single bytes at an address fixed by the build (PONG_ADDRESS), so that a
 * host that sees the console's memory reads the same bytes everywhere: no padding, no byte order. A console's own part
 * fills pong.buttons, calls pong_step once a frame and draws what it finds. Without PONG_ADDRESS it is a plain variable.
 *
 * Player 0 has the left paddle, player 1 the right one. Player 1 is played by the game itself (pong_opponent) until
 * player 1 presses something; from then on only pong_start gives the paddle back. Player 0 is never played by the game. */
#ifndef EXPHIL_PONG_H
#define EXPHIL_PONG_H

#include <stdint.h>

/* The field in pixels, (0,0) the upper left corner. A Game Boy's screen below two rows of text is just as large. */
#define PONG_WIDTH        160
#define PONG_HEIGHT       128
#define PONG_BALL         6   /* side of the square ball */
#define PONG_PADDLE       24  /* height of a paddle */
#define PONG_LEFT         8   /* the left paddle covers x in [4, 8) ... */
#define PONG_RIGHT        152 /* ... and the right one [152, 156) */
#define PONG_PADDLE_SPEED 2   /* pixels a frame */
#ifndef PONG_POINTS
#  define PONG_POINTS 11 /* ends a match */
#endif

enum { PONG_UP = 1, PONG_DOWN = 2 }; /* bits of buttons; both together are none */

struct pong {
    uint8_t magic[4];   /*  0: "PONG" once the game runs */
    uint8_t frame[2];   /*  4: frames since pong_start, low byte first */
    uint8_t match;      /*  6: counts matches, from 1 */
    uint8_t pause;      /*  7: frames until the ball moves; 0 in play */
    uint8_t ball_x;     /*  8: its upper left corner, 0 .. PONG_WIDTH - PONG_BALL */
    uint8_t ball_y;     /*  9: 0 .. PONG_HEIGHT - PONG_BALL */
    int8_t speed_x;     /* 10: pixels a frame, -3 .. 3 */
    int8_t speed_y;     /* 11: -3 .. 3 */
    uint8_t paddle[2];  /* 12: upper ends, 0 .. PONG_HEIGHT - PONG_PADDLE */
    uint8_t score[2];   /* 14: points of this match, 0 .. PONG_POINTS */
    uint8_t rally;      /* 16: hits since the serve */
    uint8_t random;     /* 17: state of the generator, never 0 */
    uint8_t buttons[2]; /* 18: PONG_UP, PONG_DOWN as read in this frame */
    uint8_t alone;      /* 20: 1: the game plays player 1 */
    uint8_t lost;       /* 21: who lost the latest point */
};
#define PONG_STATE_BYTES 22

#ifdef PONG_ADDRESS
#  define pong (*(volatile struct pong *)(PONG_ADDRESS))
#else
extern struct pong pong;
#endif

/* A new game; the random numbers begin anew too, so that equal presses give equal games. */
void pong_start(void);
/* One frame. Reads pong.buttons. */
void pong_step(void);

#endif
