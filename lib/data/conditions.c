/* Conditions of a dataset: values by game and port or by episode, and what an epoch shows of them.
 *
 * Values are kept by the names that a caller gives and looked up when a sampler is made, so that it does not
 * matter whether games or values come first. */
#include "data/dataset.h"

#include <stdio.h>

#define VALUE_MOST 65535
#define PORT_MOST  4

struct xph_game_values {
    uint64_t game;                        /* xph_game_key; 0: empty */
    int32_t port;                         /* 0: all ports of the game */
    int32_t value[EXPHIL_CONDITIONS_MAX]; /* 1 + the value; 0: none */
    int32_t reserved;
};

/* ---- the table ----------------------------------------------------------------------------------------- */

xph_conditions *xph_conditions_retain(xph_conditions *conditions)
{
    if (conditions) atomic_fetch_add(&conditions->references, 1);
    return conditions;
}

void xph_conditions_release(xph_conditions *c)
{
    if (!c || atomic_fetch_sub(&c->references, 1) != 1) return;
    exphil_context *context = c->context;
    for (int64_t i = 0; i < EXPHIL_CONDITIONS_MAX; i++)
        xph_free(context, c->own[i], (size_t)c->own_count[i] * sizeof *c->own[i]);
    xph_free(context, c->games, (size_t)c->capacity * sizeof *c->games);
    xph_free(context, c, sizeof *c);
    xph_context_release(context);
}

static xph_game_values *place(const xph_conditions *c, xph_game_values *games, int64_t capacity,
                              uint64_t game, int32_t port)
{
    uint64_t mask = (uint64_t)capacity - 1, at = xph_mix((game + (uint64_t)port) ^ c->salt) & mask;
    while (games[at].game && (games[at].game != game || games[at].port != port)) at = (at + 1) & mask;
    return &games[at];
}

static exphil_status grow(xph_conditions *c, int64_t count, exphil_error *error)
{
    int64_t capacity = 16;
    while (capacity < 2 * count) capacity *= 2;
    if (capacity <= c->capacity) return EXPHIL_OK;
    xph_game_values *games = xph_calloc(c->context, (size_t)capacity, sizeof *games);
    if (!games) return xph_no_memory((size_t)capacity * sizeof *games, error);
    for (int64_t i = 0; i < c->capacity; i++) {
        const xph_game_values *old = &c->games[i];
        if (old->game) *place(c, games, capacity, old->game, old->port) = *old;
    }
    xph_free(c->context, c->games, (size_t)c->capacity * sizeof *c->games);
    c->games = games;
    c->capacity = capacity;
    return EXPHIL_OK;
}

/* Of the first count episodes at least. */
static exphil_status grow_own(xph_conditions *c, int64_t name, int64_t count, exphil_error *error)
{
    int64_t had = c->own_count[name], capacity = had;
    if (count <= had) return EXPHIL_OK;
    int32_t *own = xph_grow(c->context, c->own[name], &capacity, count, sizeof *own, error);
    if (!own) return EXPHIL_E_MEMORY;
    memset(own + had, 0, (size_t)(capacity - had) * sizeof *own);
    c->own[name] = own;
    c->own_count[name] = capacity;
    return EXPHIL_OK;
}

static exphil_status new_conditions(exphil_context *context, xph_conditions **conditions, exphil_error *error)
{
    xph_conditions *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->references = 1;
    made->salt = xph_salt(made);
    *conditions = made;
    return EXPHIL_OK;
}

static exphil_status copy_into(const xph_conditions *from, bool with_own, xph_conditions *to,
                               exphil_error *error)
{
    if (from->count) XPH_TRY(grow(to, from->count, error));
    for (int64_t i = 0; with_own && i < from->names; i++) {
        XPH_TRY(grow_own(to, i, from->own_count[i], error));
        if (from->own[i]) memcpy(to->own[i], from->own[i], (size_t)from->own_count[i] * sizeof *to->own[i]);
    }
    memcpy(to->name, from->name, sizeof to->name);
    to->names = from->names;
    to->count = from->count;
    for (int64_t i = 0; i < from->capacity; i++) {
        const xph_game_values *one = &from->games[i];
        if (one->game) *place(to, to->games, to->capacity, one->game, one->port) = *one;
    }
    return EXPHIL_OK;
}

static exphil_status copy(const xph_conditions *from, bool with_own, xph_conditions **conditions,
                          exphil_error *error)
{
    xph_conditions *made = NULL;
    XPH_TRY(new_conditions(from->context, &made, error));
    exphil_status status = copy_into(from, with_own, made, error);
    if (status < 0) {
        xph_conditions_release(made);
        return status;
    }
    *conditions = made;
    return EXPHIL_OK;
}

/* Those of a dataset, which nobody else sees: they may be changed. */
static exphil_status own_conditions(exphil_dataset *dataset, xph_conditions **conditions, exphil_error *error)
{
    xph_conditions *c = dataset->conditions;
    if (!c) {
        XPH_TRY(new_conditions(dataset->context, &dataset->conditions, error));
    } else if (atomic_load(&c->references) > 1) {
        XPH_TRY(copy(c, true, &dataset->conditions, error));
        xph_conditions_release(c);
    }
    *conditions = dataset->conditions;
    return EXPHIL_OK;
}

exphil_status xph_conditions_by_game(const exphil_dataset *from, exphil_dataset *to, exphil_error *error)
{
    const xph_conditions *c = from->conditions;
    bool own = false;
    for (int64_t i = 0; c && i < c->names; i++) own |= c->own[i] != NULL;
    if (own) return copy(c, false, &to->conditions, error);
    to->conditions = xph_conditions_retain(from->conditions);
    return EXPHIL_OK;
}

/* Names have the same numbers in both. */
exphil_status xph_conditions_carry(const exphil_dataset *from, int64_t episode, exphil_dataset *to,
                                   exphil_error *error)
{
    const xph_conditions *c = from->conditions;
    int64_t last = to->episode_count - 1;
    for (int64_t i = 0; c && i < c->names; i++) {
        if (episode >= c->own_count[i] || !c->own[i][episode]) continue;
        XPH_TRY(grow_own(to->conditions, i, last + 1, error));
        to->conditions->own[i][last] = c->own[i][episode];
    }
    return EXPHIL_OK;
}

static int64_t find_name(const xph_conditions *c, const char *name)
{
    for (int64_t i = 0; c && i < c->names; i++)
        if (strcmp(c->name[i], name) == 0) return i;
    return -1;
}

/* ---- giving values ------------------------------------------------------------------------------------- */

static exphil_status check_value(const exphil_dataset *dataset, const char *name, int32_t value,
                                 exphil_error *error)
{
    const xph_conditions *c = dataset->conditions;
    if (!xph_name_fine(name))
        return xph_fail(error, EXPHIL_E_INVALID, "name must be 1..31 of [a-z0-9_.]%s",
                        name ? "" : ", is NULL");
    if (value < 0 || value > VALUE_MOST)
        return xph_fail(error, EXPHIL_E_INVALID, "condition %s: value is %d, must be 0..%d", name, (int)value,
                        VALUE_MOST);
    if (c && find_name(c, name) < 0 && c->names == EXPHIL_CONDITIONS_MAX)
        return xph_fail(error, EXPHIL_E_INVALID, "condition %s would be one more than the %d of a dataset",
                        name, EXPHIL_CONDITIONS_MAX);
    return EXPHIL_OK;
}

/* The number that a name has or will have. */
static int64_t name_number(const xph_conditions *c, const char *name)
{
    int64_t at = find_name(c, name);
    return at >= 0 ? at : c->names;
}

static void take_name(xph_conditions *c, int64_t number, const char *name)
{
    if (number < c->names) return;
    memcpy(c->name[number], name, strlen(name) + 1); /* NOLINT(bugprone-not-null-terminated-result) */
    c->names++;
}

exphil_status xph_conditions_set_game(exphil_dataset *dataset, const char *name, uint64_t game, int32_t port,
                                      int32_t value, exphil_error *error)
{
    xph_conditions *c;
    XPH_TRY(check_value(dataset, name, value, error));
    if (port < 0 || port > PORT_MOST)
        return xph_fail(error, EXPHIL_E_INVALID, "port is %d, must be 0..%d", (int)port, PORT_MOST);
    XPH_TRY(own_conditions(dataset, &c, error));
    XPH_TRY(grow(c, c->count + 1, error));
    int64_t number = name_number(c, name);
    take_name(c, number, name);
    xph_game_values *at = place(c, c->games, c->capacity, xph_game_key(game), port);
    c->count += !at->game;
    at->game = xph_game_key(game);
    at->port = port;
    at->value[number] = value + 1;
    return EXPHIL_OK;
}

exphil_status xph_conditions_set_episodes(exphil_dataset *dataset, const char *name, int64_t first,
                                          int64_t count, int32_t value, exphil_error *error)
{
    int64_t episodes = dataset->episode_count;
    xph_conditions *c;
    XPH_TRY(check_value(dataset, name, value, error));
    if (first < 0 || first > episodes || count < 0 || count > episodes - first)
        return xph_fail(error, EXPHIL_E_INVALID, "episodes %lld.. (%lld of them): there are %lld",
                        (long long)first, (long long)count, (long long)episodes);
    XPH_TRY(own_conditions(dataset, &c, error));
    int64_t number = name_number(c, name);
    if (count) XPH_TRY(grow_own(c, number, first + count, error));
    take_name(c, number, name);
    for (int64_t i = first; i < first + count; i++) c->own[number][i] = value + 1;
    return EXPHIL_OK;
}

/* ---- looking them up ----------------------------------------------------------------------------------- */

/* 1 + the value, 0 if there is none: the episode's own, that of its game and port, that of its game. */
static int32_t value_of(const exphil_dataset *dataset, int64_t episode, int64_t name)
{
    const xph_conditions *c = dataset->conditions;
    const xph_episode_facts *facts = &dataset->episodes[episode].block->facts;
    if (name < 0) return 0;
    if (episode < c->own_count[name] && c->own[name][episode]) return c->own[name][episode];
    if (!c->count) return 0;
    uint64_t game = xph_game_key(facts->game);
    int32_t own = place(c, c->games, c->capacity, game, facts->port)->value[name];
    return own ? own : place(c, c->games, c->capacity, game, 0)->value[name];
}

exphil_status xph_conditions_of(const exphil_dataset *dataset, const xph_told *told, uint16_t **values,
                                size_t *bytes, exphil_error *error)
{
    int64_t conditions = told->conditions;
    *values = NULL;
    *bytes = (size_t)(dataset->episode_count * conditions) * sizeof **values;
    if (!*bytes) return EXPHIL_OK;
    uint16_t *made = xph_alloc(dataset->context, *bytes);
    if (!made) return xph_no_memory(*bytes, error);
    for (int64_t k = 0; k < conditions; k++) {
        const exphil_condition_spec *c = &told->condition[k];
        int64_t name = find_name(dataset->conditions, c->name);
        for (int64_t i = 0; i < dataset->episode_count; i++) {
            const xph_episode_facts *facts = &dataset->episodes[i].block->facts;
            int32_t value = value_of(dataset, i, name);
            made[i * conditions + k] = (uint16_t)(value ? value - 1 : 0);
            if (value - 1 <= c->values) continue;
            xph_free(dataset->context, made, *bytes);
            return xph_fail(error, EXPHIL_E_INVALID,
                            "condition %s of episode %lld (game %016llx, port %d) is %d, outside 0..%d",
                            c->name, (long long)i, (unsigned long long)facts->game, (int)facts->port,
                            (int)value - 1, (int)c->values);
        }
    }
    *values = made;
    return EXPHIL_OK;
}

const char *xph_conditions_missing(const exphil_dataset *dataset, const xph_told *told)
{
    for (int64_t k = 0; k < told->conditions; k++)
        if (find_name(dataset->conditions, told->condition[k].name) < 0) return told->condition[k].name;
    return NULL;
}

/* ---- drawing ------------------------------------------------------------------------------------------- */

enum { NUMBERS = 64 }; /* of an episode and epoch: two words for each condition, then those of the delay */

/* The content is part of it because rows of a host may all have one game. */
static uint64_t identity(const xph_episode *episode)
{
    const xph_episode_facts *facts = &episode->block->facts;
    int64_t first =
        facts->port ? facts->first_game_frame + episode->offset : 0; /* rows have no frame numbers */
    const uint64_t numbers[] = {facts->game, (uint64_t)facts->port, (uint64_t)first, episode->hash};
    return xph_hash(numbers, sizeof numbers);
}

void xph_told_draw(const xph_told *told, const xph_episode *episode, uint64_t seed, int64_t epoch,
                   const uint16_t *given, int32_t *values)
{
    const uint64_t first = identity(episode) & ~(uint64_t)(NUMBERS - 1);
    xph_rng rng = {.seed = seed, .stream = XPH_RNG_EPISODE | (uint64_t)epoch << 8};
    for (int64_t i = 0; i < told->conditions; i++) {
        rng.position = first + 2 * (uint64_t)i;
        values[i] = xph_rng_double(&rng) < told->condition[i].mask ? 0 : given[i];
    }
    rng.position = first + (uint64_t)2 * EXPHIL_CONDITIONS_MAX;
    if (told->delays) values[told->conditions] = 1 + (int32_t)xph_rng_below(&rng, (uint64_t)told->delays);
}
