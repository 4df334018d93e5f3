/* The world of a run: the library's game of that name, whoever plays the other seat, and actions that are held. */
#include "learn_run.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names --------------------------------------------------------------------------------------------- */

/* Whether the game itself plays the other seat, if there is one. */
static bool is_game(const learn_options *o)
{
    return o->opponent ? strcmp(o->opponent, "game") == 0 : world_has_seats(o->world, 1);
}

bool learn_world_of_two(const learn_options *o)
{
    return !is_game(o);
}

bool learn_world_known(const learn_options *o)
{
    static const char *const opponents[] = {"game", "self", "frozen", "league"};
    int k = 0;
    while (o->opponent && k < 4 && strcmp(o->opponent, opponents[k]) != 0) k++;
    if (!world_known(o->world))
        fprintf(stderr, "exphil: there is no world %s: %s\n", o->world, WORLD_HELP);
    else if (k == 4)
        fprintf(stderr, "exphil: --opponent wants game, self, frozen or league, not %s\n", o->opponent);
    else if (!world_has_seats(o->world, is_game(o) ? 1 : 2))
        fprintf(stderr, "exphil: --opponent %s: %s has %s\n", o->opponent, o->world,
                is_game(o) ? "no player of its own" : "one seat");
    else if (o->opponent && strcmp(o->opponent, "league") == 0 && o->lanes < LEAGUE_SLOTS)
        fprintf(stderr, "exphil: --opponent league wants at least %d --lanes\n", LEAGUE_SLOTS);
    else
        return true;
    return false;
}

/* ---- actions that are held ------------------------------------------------------------------------------ */

/* A frame of this world is several of the one behind it, with the same actions, until an episode ends. As a control the lanes
 * get each other's rewards, which come as often and answer nothing. */
typedef struct repeat {
    exphil_world of;
    int64_t times;
    bool control;
    float once[]; /* [lanes * seats] rewards of one frame; all lanes are stepped by one call */
} repeat;

static int32_t repeat_reset(void *user, int64_t lane, uint64_t seed, float *floats, int32_t *ids)
{
    const repeat *r = user;
    return r->of.reset(r->of.user, lane, seed, floats, ids);
}

static int32_t repeat_step(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                           int32_t *ids, float *reward, uint8_t *end)
{
    repeat *r = user;
    const int64_t seats = r->of.seats;
    int32_t code = r->of.step(r->of.user, first, count, actions, floats, ids, reward, end);
    for (int64_t t = 1; t < r->times && !code; t++) {
        code = world_step_some(&r->of, first, count, end, actions, floats, ids, r->once, end);
        for (int64_t s = 0; s < count * seats; s++) reward[s] += r->once[s];
    }
    for (int64_t s = 0; r->control && s < seats && !code; s++) {
        float first_lane = reward[s];
        for (int64_t i = 0; i + 1 < count; i++) reward[i * seats + s] = reward[(i + 1) * seats + s];
        reward[(count - 1) * seats + s] = first_lane;
    }
    return code;
}

static int32_t repeat_save(void *user, int64_t lane, void *state)
{
    const repeat *r = user;
    return r->of.save(r->of.user, lane, state);
}

static int32_t repeat_load(void *user, int64_t lane, const void *state)
{
    const repeat *r = user;
    return r->of.load(r->of.user, lane, state);
}

/* of must live as long. */
static bool hold(const exphil_world *of, int64_t times, bool control, exphil_world *world)
{
    repeat *made = malloc(sizeof *made + (size_t)(of->lanes * of->seats) * sizeof made->once[0]);
    if (!made) fprintf(stderr, "exphil: no memory\n");
    if (!made) return false;
    made->of = *of;
    made->times = times;
    made->control = control;
    *world = *of;
    world->user = made;
    world->reset = repeat_reset;
    world->step = repeat_step;
    world->save = of->save ? repeat_save : NULL;
    world->load = of->load ? repeat_load : NULL;
    world->destroy = free;
    return true;
}

/* ---- making -------------------------------------------------------------------------------------------- */

/* held: with a place for the world whose actions are held, if any are. */
static bool make(const learn_run *r, int64_t lanes, bool two, exphil_world *base, exphil_world *held)
{
    if (!world_open(r->context, r->o->world, lanes, two ? 2 : 1, base)) return false;
    return r->o->repeat == 1 || hold(base, r->o->repeat, false, held);
}

bool learn_world_fresh(const learn_run *r, int64_t lanes, exphil_world *base, exphil_world *world)
{
    return make(r, lanes, learn_world_of_two(r->o), base, world);
}

/* Of opponents, actions are held where the world is, behind both. */
static bool make_world(learn_run *r)
{
    const learn_options *o = r->o;
    exphil_error error = EXPHIL_ERROR_INIT;
    bool two = learn_world_of_two(o), others = two && o->opponent && strcmp(o->opponent, "self") != 0;
    if (!make(r, o->lanes, two, &r->base, &r->repeated)) return false;
    r->world = r->repeated.step ? &r->repeated : &r->base;
    if (!others) return true;
    const exphil_model *slots[LEAGUE_SLOTS];
    for (int i = 0; i < LEAGUE_SLOTS; i++) slots[i] = r->start;
    int64_t count = strcmp(o->opponent, "league") == 0 ? LEAGUE_SLOTS : 1;
    if (exphil_world_against(r->context, r->world, slots, count, (uint64_t)o->seed, &r->against, &error) < 0)
        return complain("--opponent", &error) == 0;
    r->world = &r->against;
    return true;
}

/* Behind all else, so that opponents are told who won. */
static bool take_control(learn_run *r)
{
    if (!r->o->control) return true;
    if (!hold(r->world, 1, true, &r->control)) return false;
    r->world = &r->control;
    return true;
}

bool learn_world_make(learn_run *r)
{
    return make_world(r) && take_control(r);
}

void learn_world_free(learn_run *r)
{
    exphil_world_destroy(&r->control);
    exphil_world_destroy(&r->against);
    exphil_world_destroy(&r->repeated);
    exphil_world_destroy(&r->base);
}
