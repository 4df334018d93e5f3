/* The drill as a game that can be learnt: see drill_game.h. */
#include "drill_game.h"

#include "drill_world.h"

#include <stdlib.h>
#include <string.h>

enum { FRAMES = 3600, FAILED = 2 };

typedef struct lane {
    drill_world world;
    int64_t frames; /* of the episode so far */
} lane;

typedef struct drill_game {
    exphil_spec spec;
    int64_t count;
    lane of[]; /* [count] */
} drill_game;

static int32_t give_row(const lane *l, float *floats, int32_t *ids)
{
    exphil_melee_frame frame;
    drill_observe(&l->world, &frame);
    return exphil_melee_encode(NULL, &frame, floats, ids, NULL) < 0 ? FAILED : 0;
}

static int32_t reset(void *user, int64_t at, uint64_t seed, float *floats, int32_t *ids)
{
    static const exphil_pad nothing;
    drill_game *game = user;
    if (at < 0 || at >= game->count) return 1;
    lane *l = &game->of[at];
    drill_begin(&l->world, seed);
    while (l->world.frame < -1) drill_step(&l->world, &nothing);
    l->frames = 0;
    return give_row(l, floats, ids);
}

static int32_t step(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                    int32_t *ids, float *reward, uint8_t *end)
{
    drill_game *game = user;
    if (first < 0 || count < 0 || first > game->count - count) return 1;
    for (int64_t i = 0; i < count; i++) {
        lane *l = &game->of[first + i];
        const int64_t hits = l->world.hits;
        exphil_pad pad;
        if (exphil_melee_pad_decode(NULL, actions + i * game->spec.head_count, &pad, NULL) < 0) return FAILED;
        drill_step(&l->world, &pad);
        reward[i] = (float)(l->world.hits - hits);
        end[i] = ++l->frames < FRAMES ? EXPHIL_GOES_ON : EXPHIL_CUT_OFF;
        int32_t code = give_row(l, floats + i * game->spec.float_count, ids + i * game->spec.id_count);
        if (code) return code;
    }
    return 0;
}

static int32_t save(void *user, int64_t at, void *state)
{
    const drill_game *game = user;
    if (at < 0 || at >= game->count) return 1;
    memcpy(state, &game->of[at], sizeof game->of[at]);
    return 0;
}

static int32_t load(void *user, int64_t at, const void *state)
{
    drill_game *game = user;
    if (at < 0 || at >= game->count) return 1;
    memcpy(&game->of[at], state, sizeof game->of[at]);
    return 0;
}

bool drill_game_look(const exphil_world *world, int64_t at, exphil_melee_frame *frame, exphil_pad *teacher)
{
    if (world->step != step || at < 0 || at >= world->lanes) return false;
    const drill_game *game = world->user;
    drill_observe(&game->of[at].world, frame);
    drill_teach(&game->of[at].world, teacher);
    return true;
}

exphil_status drill_game_open(int64_t lanes, exphil_world *world, exphil_error *error)
{
    drill_game *game = calloc(1, sizeof *game + (size_t)lanes * sizeof game->of[0]);
    if (!game) {
        *error =
            (exphil_error){.struct_size = sizeof *error, .status = EXPHIL_E_MEMORY, .message = "no memory"};
        return EXPHIL_E_MEMORY;
    }
    game->spec = (exphil_spec)EXPHIL_SPEC_INIT;
    game->count = lanes;
    exphil_status status = exphil_melee_spec(NULL, NULL, &game->spec, error);
    if (status < 0) {
        free(game);
        return status;
    }
    *world = (exphil_world){.struct_size = sizeof *world,
                            .user = game,
                            .spec = &game->spec,
                            .lanes = lanes,
                            .seats = 1,
                            .state_bytes = sizeof game->of[0],
                            .reset = reset,
                            .step = step,
                            .save = save,
                            .load = load,
                            .destroy = free};
    return EXPHIL_OK;
}
