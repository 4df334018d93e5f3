/* Pong as a world: the rules of examples/pong/pong.c, byte for byte (learn.pong_test holds them against each other), but for
 * a match of 21 points, a generator that begins where the seed says, and up to 60 idle frames before play. In "pong" one
 * seat plays the game's own opponent, in "pong-two" both seats play. */
#include "learn/pong.h"
#include "learn/world.h"

#define SERVE_PAUSE 30
#define FAST_RALLY  6 /* hits after which the ball flies faster */

enum { UP = 1, DOWN = 2, IDLE_MOST = 60, FRAMES_MOST = 20000 };

static uint8_t draw(xph_pong *g)
{
    uint8_t value = g->random;
    g->random = (uint8_t)((value >> 1) ^ (value & 1u ? 0xB8u : 0u));
    return g->random;
}

static void serve(xph_pong *g)
{
    uint8_t value = draw(g);
    g->ball_x = XPH_PONG_WIDTH / 2 - XPH_PONG_BALL / 2;
    g->ball_y = (uint8_t)(30u + (value & 63u));
    value = draw(g);
    g->speed_x = value & 1u ? 2 : -2;
    g->speed_y = (int8_t)(value >> 1 & 3u);
    if (value & 8u) g->speed_y = (int8_t)-g->speed_y;
    g->rally = 0;
    g->pause = SERVE_PAUSE;
}

void xph_pong_start(xph_pong *g, uint8_t random)
{
    *g = (xph_pong){.paddle = {XPH_PONG_MIDDLE, XPH_PONG_MIDDLE}, .random = random};
    serve(g);
}

static void move_paddle(xph_pong *g, int player, uint8_t buttons)
{
    int y = g->paddle[player];
    if (buttons == UP && y >= XPH_PONG_SPEED) y -= XPH_PONG_SPEED;
    if (buttons == DOWN && y <= XPH_PONG_HEIGHT - XPH_PONG_PADDLE - XPH_PONG_SPEED) y += XPH_PONG_SPEED;
    g->paddle[player] = (uint8_t)y;
}

uint8_t xph_pong_opponent(const xph_pong *g)
{
    int ball = g->ball_y + XPH_PONG_BALL / 2, middle = g->paddle[1] + XPH_PONG_PADDLE / 2;
    if (g->speed_x < 0 || (g->frame & 3u) == 3u) return 0;
    if (ball + 3 < middle) return UP;
    return ball > middle + 3 ? DOWN : 0;
}

/* Whether the ball touches this paddle; if so it flies back, steeper the farther out it is met, and with a little spin by
 * chance. */
static bool strike(xph_pong *g, int player)
{
    int off = g->ball_y + XPH_PONG_BALL / 2 - g->paddle[player] - XPH_PONG_PADDLE / 2;
    int away = off < 0 ? -off : off, steep = away >= 8 ? 2 : away >= 3 ? 1 : 0;
    uint8_t spin = draw(g) & 7u;
    if (away >= XPH_PONG_PADDLE / 2 + XPH_PONG_BALL / 2) return false;
    if (off < 0) steep = -steep;
    g->speed_y = (int8_t)(steep - (spin == 0) + (spin == 1));
    if (g->rally < 255) g->rally++;
    g->speed_x = g->rally < FAST_RALLY ? 2 : 3;
    if (player) g->speed_x = (int8_t)-g->speed_x;
    return true;
}

static void point(xph_pong *g, int winner)
{
    g->score[winner]++;
    serve(g);
}

static void move_ball(xph_pong *g)
{
    const int farthest = XPH_PONG_HEIGHT - XPH_PONG_BALL, right = XPH_PONG_RIGHT - XPH_PONG_BALL;
    int y = g->ball_y + g->speed_y, before = g->ball_x, x = before + g->speed_x;
    if (y < 0 || y > farthest) {
        y = y < 0 ? 0 : farthest;
        g->speed_y = (int8_t)-g->speed_y;
    }
    g->ball_y = (uint8_t)y;
    if (before > XPH_PONG_LEFT && x <= XPH_PONG_LEFT && strike(g, 0)) x = XPH_PONG_LEFT;
    if (before < right && x >= right && strike(g, 1)) x = right;
    g->ball_x = (uint8_t)x;
    if (x < 3) point(g, 1);
    if (x > XPH_PONG_WIDTH - XPH_PONG_BALL - 3) point(g, 0);
}

void xph_pong_step(xph_pong *g, uint8_t left, uint8_t right)
{
    g->frame++;
    draw(g);
    move_paddle(g, 0, left);
    move_paddle(g, 1, right);
    if (g->pause == 0)
        move_ball(g);
    else
        g->pause--;
}

/* ---- the world ---------------------------------------------------------------------------------------------------------- */

/* Idle frames: nobody presses anything, and the ball waits. */
static void reset(void *state, uint64_t seed)
{
    xph_pong *g = state;
    xph_rng rng = {.seed = seed, .stream = XPH_RNG_WORLD};
    xph_pong_start(g, (uint8_t)(1 + xph_rng_below(&rng, 255)));
    for (uint64_t idle = xph_rng_below(&rng, IDLE_MOST + 1); idle > 0; idle--) {
        draw(g);
        g->frame++;
    }
}

static uint8_t ended(const xph_pong *g)
{
    if (g->score[0] >= XPH_PONG_POINTS || g->score[1] >= XPH_PONG_POINTS) return EXPHIL_OVER;
    return g->frame >= FRAMES_MOST ? EXPHIL_CUT_OFF : EXPHIL_GOES_ON;
}

static float scored(const xph_pong *g, const uint8_t before[2])
{
    return (float)(g->score[0] - before[0]) - (float)(g->score[1] - before[1]);
}

static uint8_t step(void *state, const int32_t *actions, float *reward)
{
    xph_pong *g = state;
    const uint8_t before[2] = {g->score[0], g->score[1]};
    /* as on a console: the opponent looks at the frame that is counted already */
    xph_pong seen = *g;
    seen.frame++;
    xph_pong_step(g, (uint8_t)actions[0], xph_pong_opponent(&seen));
    reward[0] = scored(g, before);
    return ended(g);
}

static uint8_t step_two(void *state, const int32_t *actions, float *reward)
{
    xph_pong *g = state;
    const uint8_t before[2] = {g->score[0], g->score[1]};
    xph_pong_step(g, (uint8_t)actions[0], (uint8_t)actions[1]);
    reward[0] = scored(g, before);
    reward[1] = -reward[0];
    return ended(g);
}

/* From the left: the right player sees the field mirrored. */
static void row(const void *state, int64_t seat, float *floats, int32_t *ids)
{
    const xph_pong *g = state;
    const float side = seat ? -1.0f : 1.0f;
    const int middle = XPH_PONG_MIDDLE;
    (void)ids;
    floats[0] = side * (float)(g->ball_x - 77) / 80.0f;
    floats[1] = (float)(g->ball_y - 61) / 64.0f;
    floats[2] = side * (float)g->speed_x / 3.0f;
    floats[3] = (float)g->speed_y / 3.0f;
    floats[4] = (float)(g->paddle[seat ? 1 : 0] - middle) / 64.0f;
    floats[5] = (float)(g->paddle[seat ? 0 : 1] - middle) / 64.0f;
    floats[6] = (float)g->pause / 30.0f;
}

static const exphil_head_spec move[] = {{"move", EXPHIL_CATEGORICAL, 3, 0, 0}};
static const exphil_spec spec = {.struct_size = sizeof spec,
                                 .layout = "pong-rows",
                                 .codec = "updown",
                                 .layout_hash = 0x706f6e672d726f77u,
                                 .float_count = 7,
                                 .head_count = 1,
                                 .heads = move};

const xph_game xph_game_pong = {"pong", &spec, sizeof(xph_pong), 1, reset, step, row};
const xph_game xph_game_pong_two = {"pong-two", &spec, sizeof(xph_pong), 2, reset, step_two, row};
