/* A pole on a cart, pushed left or right (Barto, Sutton & Anderson 1983, "Neuronlike adaptive elements that can solve
 * difficult learning control problems"), with the usual constants and Euler's method at 50 steps a second. Of + - * / alone:
 * the same game on every system. */
#include "learn/world.h"

#define GRAVITY   9.8
#define POLE_MASS 0.1
#define MASS      1.1 /* of both */
#define HALF_POLE 0.5
#define FORCE     10.0
#define SECONDS   0.02
#define WIDEST    2.4
#define STEEPEST  0.20943951023931953 /* 12 degrees */
#define STARTS    0.05

enum { FRAMES_MOST = 500 };

typedef struct cartpole {
    double x, speed, angle, turning;
    int64_t frames;
} cartpole;

/* Taylor series; exact to a few ulp where the game goes on. */
static double sine(double a)
{
    double s = a * a;
    return a * (1.0 - s / 6.0 * (1.0 - s / 20.0 * (1.0 - s / 42.0 * (1.0 - s / 72.0 * (1.0 - s / 110.0)))));
}

static double cosine(double a)
{
    double s = a * a;
    return 1.0 - s / 2.0 * (1.0 - s / 12.0 * (1.0 - s / 30.0 * (1.0 - s / 56.0 * (1.0 - s / 90.0))));
}

static void reset(void *state, uint64_t seed)
{
    xph_rng rng = {.seed = seed, .stream = XPH_RNG_WORLD};
    cartpole *c = state;
    double *const first[] = {&c->x, &c->speed, &c->angle, &c->turning};
    for (int i = 0; i < 4; i++) *first[i] = STARTS * (2.0 * xph_rng_double(&rng) - 1.0);
    c->frames = 0;
}

static uint8_t step(void *state, const int32_t *actions, float *reward)
{
    cartpole *c = state;
    double sin = sine(c->angle), cos = cosine(c->angle), force = actions[0] ? FORCE : -FORCE;
    double pushed = (force + POLE_MASS * HALF_POLE * c->turning * c->turning * sin) / MASS;
    double turned = (GRAVITY * sin - cos * pushed) / (HALF_POLE * (4.0 / 3.0 - POLE_MASS * cos * cos / MASS));
    double moved = pushed - POLE_MASS * HALF_POLE * turned * cos / MASS;
    c->x += SECONDS * c->speed;
    c->speed += SECONDS * moved;
    c->angle += SECONDS * c->turning;
    c->turning += SECONDS * turned;
    c->frames++;
    *reward = 1.0f;
    if (c->x < -WIDEST || c->x > WIDEST || c->angle < -STEEPEST || c->angle > STEEPEST) return EXPHIL_OVER;
    return c->frames >= FRAMES_MOST ? EXPHIL_CUT_OFF : EXPHIL_GOES_ON;
}

/* In units in which all that can be seen is about 1. */
static void row(const void *state, int64_t seat, float *floats, int32_t *ids)
{
    const cartpole *c = state;
    (void)seat;
    (void)ids;
    floats[0] = (float)(c->x / WIDEST);
    floats[1] = (float)(c->speed / 2.0);
    floats[2] = (float)(c->angle / STEEPEST);
    floats[3] = (float)(c->turning / 2.0);
}

static void blind_row(const void *state, int64_t seat, float *floats, int32_t *ids)
{
    float all[4];
    row(state, seat, all, ids);
    floats[0] = all[0];
    floats[1] = all[2];
}

static const exphil_head_spec push[] = {{"push", EXPHIL_CATEGORICAL, 2, 0, 0}};
static const exphil_spec spec = {.struct_size = sizeof spec,
                                 .layout = "cartpole",
                                 .codec = "cartpole",
                                 .layout_hash = 0x63617274706f6c31u,
                                 .float_count = 4,
                                 .head_count = 1,
                                 .heads = push};
static const exphil_spec blind_spec = {.struct_size = sizeof blind_spec,
                                       .layout = "cartpole-blind",
                                       .codec = "cartpole",
                                       .layout_hash = 0x63617274706f6c32u,
                                       .float_count = 2,
                                       .head_count = 1,
                                       .heads = push};

const xph_game xph_game_cartpole = {"cartpole", &spec, sizeof(cartpole), 1, reset, step, row};
const xph_game xph_game_cartpole_blind = {"cartpole-blind", &blind_spec, sizeof(cartpole), 1, reset, step,
                                          blind_row};
