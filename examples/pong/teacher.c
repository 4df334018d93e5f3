/* A near perfect player with human limits: it looks at a coming ball only when that has flown a part of the way, works out
 * where it will arrive with its bounces, does not bother about a few pixels, and strolls back to the middle meanwhile. */
#include "teacher.h"

#include "pong.h"

#define REACTION  24 /* pixels of flight before it looks */
#define DEAD_ZONE 2  /* pixels that are near enough on the way to the ball ... */
#define IDLE_ZONE 6  /* ... and when nothing comes */
#define FARTHEST  (PONG_HEIGHT - PONG_BALL)

static int bounce_of(int y)
{
    while (y < 0 || y > FARTHEST) y = y < 0 ? -y : 2 * FARTHEST - y;
    return y;
}

/* Height of the ball's middle when it reaches the player's paddle; distance: pixels left to fly, at least 0. */
static int arrival(const struct pong *game, int distance)
{
    int speed = game->speed_x < 0 ? -game->speed_x : game->speed_x;
    int frames = (distance + speed - 1) / speed;
    return bounce_of(game->ball_y + frames * game->speed_y) + PONG_BALL / 2;
}

int pong_teacher(const uint8_t *state, unsigned player)
{
    const struct pong *game = (const struct pong *)(const void *)state;
    int distance = player ? PONG_RIGHT - PONG_BALL - game->ball_x : game->ball_x - PONG_LEFT;
    int coming = player ? game->speed_x > 0 : game->speed_x < 0;
    int aim = PONG_HEIGHT / 2, zone = IDLE_ZONE, off = 0;
    if (coming && !game->pause && distance >= 0 &&
        distance <= PONG_RIGHT - PONG_BALL - PONG_LEFT - REACTION) {
        /* Met off its middle, the ball flies away from where the other one stands: as far off as that is from the middle. */
        int other = game->paddle[player ? 0 : 1] + PONG_PADDLE / 2 - PONG_HEIGHT / 2;
        aim = arrival(game, distance) + other / 8;
        zone = DEAD_ZONE;
    }
    off = aim - (game->paddle[player ? 1 : 0] + PONG_PADDLE / 2);
    return off < -zone ? PONG_UP : off > zone ? PONG_DOWN : 0;
}
