/* A person at the pad of Pong, as a script: plays as the teacher does, but only while it is wanted. It takes over when a ball is
 * coming that the paddle will miss unless it is moved now, and hands back some time after it was met. */
#include "../pong/pong.h"
#include "../pong/teacher.h"

#include <libretro-common/libretro.h> /* RETRO_API: what a library shows */

#define FARTHEST (PONG_HEIGHT - PONG_BALL)
#define MARGIN   16 /* pixels: how long before it would be too late */
#define STAYS    40 /* frames that it plays on when the ball flies away */

RETRO_API int32_t exphil_teacher(const uint8_t *state, uint32_t bytes, int32_t player, int32_t *action);
RETRO_API int32_t exphil_takes_over(const uint8_t *state, uint32_t bytes, int32_t player);

/* The map's head "move": 0 nothing, 1 up, 2 down. */
int32_t exphil_teacher(const uint8_t *state, uint32_t bytes, int32_t player, int32_t *action)
{
    if (bytes < PONG_STATE_BYTES || player < 1 || player > 2) return -1;
    int buttons = pong_teacher(state, (unsigned)player - 1);
    action[0] = buttons == PONG_UP ? 1 : buttons == PONG_DOWN ? 2 : 0;
    return 0;
}

/* Pixels that the middle of the paddle is off where the ball will arrive, less those that it may be, and less those that it can
 * still move: above 0 it is too late. */
static int too_late_by(const struct pong *game, int left)
{
    int distance = left ? game->ball_x - PONG_LEFT : PONG_RIGHT - PONG_BALL - game->ball_x;
    int speed = game->speed_x < 0 ? -game->speed_x : game->speed_x;
    int frames = distance > 0 ? (distance + speed - 1) / speed : 0;
    int y = game->ball_y + frames * game->speed_y;
    while (y < 0 || y > FARTHEST) y = y < 0 ? -y : 2 * FARTHEST - y;
    int off = y + PONG_BALL / 2 - (game->paddle[left ? 0 : 1] + PONG_PADDLE / 2);
    return (off < 0 ? -off : off) - PONG_PADDLE / 2 - frames * PONG_PADDLE_SPEED;
}

/* 1: it wants to play. */
int32_t exphil_takes_over(const uint8_t *state, uint32_t bytes, int32_t player)
{
    static int plays, stays;
    const struct pong *game = (const struct pong *)(const void *)state;
    if (bytes < PONG_STATE_BYTES || player < 1 || player > 2) return 0;
    int left = player == 1, coming = left ? game->speed_x < 0 : game->speed_x > 0;
    if (coming && !game->pause) {
        if (too_late_by(game, left) > -MARGIN) plays = 1;
        stays = STAYS;
    } else if (--stays <= 0) {
        plays = 0;
    }
    return plays;
}
