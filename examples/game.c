/* A game of one's own to learn in: balls fall, drift and bounce off the walls, and a paddle catches them or not.
 *   cc -O2 -shared -fPIC examples/game.c $(pkg-config --cflags exphil) -o game.so
 *   exphil learn --world ./game.so --no-previous-action --out catcher.safetensors
 *   cc -O2 -DTEACHER examples/game.c $(pkg-config --cflags exphil) -lm -o teacher && ./teacher   what a script catches */
#include <exphil/learn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct game {
    float x, y, drift, paddle; /* all from 0 to 1; drift: of x a frame */
    int32_t balls;             /* so far; 20 are an episode */
    uint32_t chance;
} game;

static void drop_ball(game *g)
{
    g->chance = g->chance * 1664525u + 1013904223u;
    g->x = (float)(g->chance >> 8 & 0xFFF) / 4095.0f;
    g->drift = ((float)(g->chance >> 20) / 4095.0f - 0.5f) * 0.08f;
    g->y = 1.0f;
}

static void show(const game *g, float *row)
{
    row[0] = g->x - 0.5f, row[1] = g->y - 0.5f, row[2] = g->drift * 25.0f, row[3] = g->paddle - 0.5f;
}

static int32_t reset(void *user, int64_t lane, uint64_t seed, float *row, int32_t *ids)
{
    game *g = (game *)user + lane;
    (void)ids;
    *g = (game){.paddle = 0.5f, .chance = (uint32_t)(seed ^ seed >> 32)};
    drop_ball(g);
    show(g, row);
    return 0;
}

static float move(game *g, int32_t action, uint8_t *end) /* 0: stay, 1: left, 2: right */
{
    float way = action == 1 ? -0.02f : action == 2 ? 0.02f : 0.0f, worth = 0.0f;
    g->paddle = fminf(1.0f, fmaxf(0.0f, g->paddle + way));
    g->x += g->drift;
    g->y -= 1.0f / 45.0f;
    if (g->x < 0.0f || g->x > 1.0f) g->x = g->x < 0.0f ? -g->x : 2.0f - g->x, g->drift = -g->drift;
    if (g->y <= 0.0f) {
        worth = fabsf(g->x - g->paddle) < 0.08f ? 1.0f : -1.0f;
        g->balls++;
        drop_ball(g);
    }
    *end = g->balls == 20 ? EXPHIL_OVER : EXPHIL_GOES_ON;
    return worth;
}

static int32_t step(void *user, int64_t first, int64_t count, const int32_t *actions, float *rows,
                    int32_t *ids, float *reward, uint8_t *end)
{
    game *g = (game *)user + first;
    (void)ids;
    for (int64_t i = 0; i < count; i++) {
        reward[i] = move(&g[i], actions[i], &end[i]);
        show(&g[i], rows + 4 * i);
    }
    return 0;
}

static int32_t save(void *user, int64_t lane, void *state)
{
    return memcpy(state, (game *)user + lane, sizeof(game)), 0;
}

static int32_t load(void *user, int64_t lane, const void *state)
{
    return memcpy((game *)user + lane, state, sizeof(game)), 0;
}

static exphil_status refuse(exphil_error *error, exphil_status status, const char *why)
{
    if (error) error->status = status, snprintf(error->message, sizeof error->message, "%s", why);
    return status;
}

/* What exphil learn --world asks for; a host of your own fills the same struct itself. */
exphil_status exphil_world_open(const char *arguments, int64_t lanes, int64_t seats, exphil_world *world,
                                exphil_error *error);
exphil_status exphil_world_open(const char *arguments, int64_t lanes, int64_t seats, exphil_world *world,
                                exphil_error *error)
{
    static const exphil_head_spec move_head[] = {{"move", EXPHIL_CATEGORICAL, 3, 0, 0}};
    static const exphil_spec spec = {.struct_size = sizeof spec,
                                     .layout = "catch",
                                     .codec = "move",
                                     .float_count = 4,
                                     .head_count = 1,
                                     .heads = move_head};
    (void)arguments;
    if (world->struct_size < sizeof *world)
        return refuse(error, EXPHIL_E_VERSION, "catch is newer than the program");
    game *games = seats == 1 ? calloc((size_t)lanes, sizeof *games) : NULL;
    if (!games)
        return refuse(error, seats == 1 ? EXPHIL_E_MEMORY : EXPHIL_E_UNSUPPORTED, "catch has one seat");
    *world = (exphil_world){.struct_size = sizeof *world,
                            .user = games,
                            .spec = &spec,
                            .lanes = lanes,
                            .seats = 1,
                            .state_bytes = sizeof(game),
                            .reset = reset,
                            .step = step,
                            .save = save,
                            .load = load,
                            .destroy = free};
    return EXPHIL_OK;
}

#ifdef TEACHER /* runs after the ball where it is now */
int main(void)
{
    double points = 0.0; /* one for a ball that is caught, less one for each that is missed */
    float row[4];
    uint8_t end = 0;
    for (uint64_t seed = 0; seed < 100; seed++, end = 0) {
        game g;
        for (reset(&g, 0, seed, row, NULL); !end;)
            points += (double)move(&g, g.x < g.paddle - 0.02f ? 1 : g.x > g.paddle + 0.02f ? 2 : 0, &end);
    }
    printf("the script: mean return %.2f, so it catches %.1f of 20\n", points / 100.0, 10.0 + points / 200.0);
    return 0;
}
#endif
