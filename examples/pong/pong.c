/* The rules of Pong. Written for compilers of 8-bit machines: declarations first, bytes only, no division. */
#include "pong.h"

#ifndef PONG_ADDRESS
struct pong pong;
#endif

#define SERVE_PAUSE 30
#define MATCH_PAUSE 120
#define FAST_RALLY  6 /* hits after which the ball flies faster */

/* 8-bit Galois register, taps 8 6 5 4: all 255 states but 0 in turn. */
static uint8_t draw(void)
{
    uint8_t value = pong.random;
    pong.random = (uint8_t)((value >> 1) ^ ((value & 1u) ? 0xB8u : 0u));
    return pong.random;
}

static void serve(uint8_t pause)
{
    uint8_t value = draw();
    pong.ball_x = PONG_WIDTH / 2 - PONG_BALL / 2;
    pong.ball_y = (uint8_t)(30u + (value & 63u));
    value = draw();
    pong.speed_x = (value & 1u) ? 2 : -2;
    pong.speed_y = (int8_t)((value >> 1) & 3u);
    if (value & 8u) pong.speed_y = (int8_t)-pong.speed_y;
    pong.rally = 0;
    pong.pause = pause;
}

static void new_match(void)
{
    pong.match++;
    pong.score[0] = 0;
    pong.score[1] = 0;
    serve(SERVE_PAUSE);
}

void pong_start(void)
{
    pong.magic[0] = 'P';
    pong.magic[1] = 'O';
    pong.magic[2] = 'N';
    pong.magic[3] = 'G';
    pong.frame[0] = 0;
    pong.frame[1] = 0;
    pong.match = 0;
    pong.paddle[0] = (PONG_HEIGHT - PONG_PADDLE) / 2;
    pong.paddle[1] = (PONG_HEIGHT - PONG_PADDLE) / 2;
    pong.random = 0x5A;
    pong.buttons[0] = 0;
    pong.buttons[1] = 0;
    pong.alone = 1;
    pong.lost = 0;
    new_match();
}

static void move_paddle(uint8_t player)
{
    uint8_t buttons = pong.buttons[player], y = pong.paddle[player];
    if (buttons == PONG_UP && y >= PONG_PADDLE_SPEED) y -= PONG_PADDLE_SPEED;
    if (buttons == PONG_DOWN && y <= PONG_HEIGHT - PONG_PADDLE - PONG_PADDLE_SPEED) y += PONG_PADDLE_SPEED;
    pong.paddle[player] = y;
}

/* The opponent in the game: follows the ball where it is now, three frames in four. Steep balls beat it. */
static void pong_opponent(void)
{
    uint8_t ball = (uint8_t)(pong.ball_y + PONG_BALL / 2),
            middle = (uint8_t)(pong.paddle[1] + PONG_PADDLE / 2);
    pong.buttons[1] = 0;
    if (pong.speed_x < 0 || (pong.frame[0] & 3u) == 3u) return;
    if (ball + 3 < middle) pong.buttons[1] = PONG_UP;
    if (ball > middle + 3) pong.buttons[1] = PONG_DOWN;
}

/* Whether the ball at the height of this paddle touches it; if so it flies back, steeper the farther out it is met. A
 * little spin by chance keeps two perfect players from one endless rally. */
static uint8_t strike(uint8_t player)
{
    int8_t off = (int8_t)(pong.ball_y + PONG_BALL / 2 - pong.paddle[player] - PONG_PADDLE / 2);
    int8_t away = off < 0 ? (int8_t)-off : off, steep = 0;
    uint8_t spin = (uint8_t)(draw() & 7u);
    if (away >= PONG_PADDLE / 2 + PONG_BALL / 2) return 0;
    if (away >= 3) steep = 1;
    if (away >= 8) steep = 2;
    if (off < 0) steep = (int8_t)-steep;
    if (spin == 0) steep--;
    if (spin == 1) steep++;
    pong.speed_y = steep;
    if (pong.rally < 255) pong.rally++;
    pong.speed_x = pong.rally < FAST_RALLY ? 2 : 3;
    if (player) pong.speed_x = (int8_t)-pong.speed_x;
    return 1;
}

static void point(uint8_t winner)
{
    pong.score[winner]++;
    pong.lost = (uint8_t)(1u - winner);
    serve(pong.score[winner] < PONG_POINTS ? SERVE_PAUSE : MATCH_PAUSE);
}

static void move_ball_across(void)
{
    uint8_t before = pong.ball_x, x = (uint8_t)(before + pong.speed_x);
    if (before > PONG_LEFT && x <= PONG_LEFT && strike(0)) x = PONG_LEFT;
    if (before < PONG_RIGHT - PONG_BALL && x >= PONG_RIGHT - PONG_BALL && strike(1))
        x = (uint8_t)(PONG_RIGHT - PONG_BALL);
    pong.ball_x = x;
    if (x < 3) point(1);
    if (x > PONG_WIDTH - PONG_BALL - 3) point(0);
}

static void move_ball(void)
{
    int16_t y = (int16_t)(pong.ball_y + pong.speed_y);
    if (y < 0 || y > PONG_HEIGHT - PONG_BALL) {
        y = y < 0 ? 0 : PONG_HEIGHT - PONG_BALL;
        pong.speed_y = (int8_t)-pong.speed_y;
    }
    pong.ball_y = (uint8_t)y;
    move_ball_across();
}

void pong_step(void)
{
    if (++pong.frame[0] == 0) ++pong.frame[1];
    draw();
    if (pong.buttons[1]) pong.alone = 0;
    if (pong.alone) pong_opponent();
    move_paddle(0);
    move_paddle(1);
    if (pong.pause == 0) {
        move_ball();
    } else if (--pong.pause == 0 && (pong.score[0] == PONG_POINTS || pong.score[1] == PONG_POINTS)) {
        new_match();
    }
}
