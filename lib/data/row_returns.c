/* Discounted returns of whole games, one float a frame: G_f = r_f + gamma G_{f+1}. Where a game was cut off, frames whose return
 * would lack more than a 64th of its weight are not known. Games and ports are an open-addressing table. */
#include "data/row_returns.h"

#include "base/scalar.h"

#define LN_2          0.6931471805599453
#define LACKS_AT_MOST (1.0 / 64.0)
#define NOT_KNOWN     __builtin_nanf("")

typedef struct side {
    uint64_t key; /* of game and port; 0: an empty place */
    int32_t first;
    int64_t count;
    float *returns;
} side;

struct xph_row_returns {
    exphil_context *context;
    atomic_int references;
    side *sides; /* at most half full */
    int64_t count, capacity;
    uint64_t salt;
};

static uint64_t key_of(uint64_t game, int32_t port)
{
    uint64_t key = xph_mix(xph_game_key(game) + (uint64_t)port);
    return key ? key : 1;
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static exphil_status create(exphil_context *context, xph_row_returns **returns, exphil_error *error)
{
    xph_row_returns *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->references = 1;
    made->salt = xph_salt(made);
    *returns = made;
    return EXPHIL_OK;
}

xph_row_returns *xph_row_returns_retain(xph_row_returns *returns)
{
    if (returns) atomic_fetch_add(&returns->references, 1);
    return returns;
}

void xph_row_returns_release(xph_row_returns *returns)
{
    if (!returns || atomic_fetch_sub(&returns->references, 1) != 1) return;
    exphil_context *context = returns->context;
    for (int64_t i = 0; i < returns->capacity; i++)
        xph_free(context, returns->sides[i].returns, (size_t)returns->sides[i].count * sizeof(float));
    xph_free(context, returns->sides, (size_t)returns->capacity * sizeof *returns->sides);
    xph_free(context, returns, sizeof *returns);
    xph_context_release(context);
}

static side *place(const xph_row_returns *returns, side *sides, int64_t capacity, uint64_t key)
{
    uint64_t mask = (uint64_t)capacity - 1, at = xph_mix(key ^ returns->salt) & mask;
    while (sides[at].key && sides[at].key != key) at = (at + 1) & mask;
    return &sides[at];
}

static exphil_status grow(xph_row_returns *returns, int64_t count, exphil_error *error)
{
    int64_t capacity = 16;
    while (capacity < 2 * count) capacity *= 2;
    if (capacity <= returns->capacity) return EXPHIL_OK;
    side *sides = xph_calloc(returns->context, (size_t)capacity, sizeof *sides);
    if (!sides) return xph_no_memory((size_t)capacity * sizeof *sides, error);
    for (int64_t i = 0; i < returns->capacity; i++)
        if (returns->sides[i].key)
            *place(returns, sides, capacity, returns->sides[i].key) = returns->sides[i];
    xph_free(returns->context, returns->sides, (size_t)returns->capacity * sizeof *sides);
    returns->sides = sides;
    returns->capacity = capacity;
    return EXPHIL_OK;
}

static exphil_status copy_side(xph_row_returns *to, const side *from, exphil_error *error)
{
    float *copy = xph_alloc(to->context, (size_t)from->count * sizeof *copy);
    if (!copy) return xph_no_memory((size_t)from->count * sizeof *copy, error);
    memcpy(copy, from->returns, (size_t)from->count * sizeof *copy);
    side *at = place(to, to->sides, to->capacity, from->key);
    *at = *from;
    at->returns = copy;
    to->count++;
    return EXPHIL_OK;
}

/* What others share is left to them. */
static exphil_status make_own(exphil_context *context, xph_row_returns **returns, exphil_error *error)
{
    xph_row_returns *from = *returns, *made = NULL;
    if (from && atomic_load(&from->references) == 1) return EXPHIL_OK;
    XPH_TRY(create(context, &made, error));
    exphil_status status = from ? grow(made, from->count, error) : EXPHIL_OK;
    for (int64_t i = 0; from && status >= 0 && i < from->capacity; i++)
        if (from->sides[i].key) status = copy_side(made, &from->sides[i], error);
    if (status < 0) {
        xph_row_returns_release(made);
        return status;
    }
    xph_row_returns_release(from);
    *returns = made;
    return EXPHIL_OK;
}

/* ---- setting ----------------------------------------------------------------------------------------- */

static void sum_up(const float *rewards, int64_t count, bool over, double half_life, float *to)
{
    const double gamma = xph_exp_double(-LN_2 / half_life);
    double later = 0.0, lacks = over ? 0.0 : 1.0;
    for (int64_t f = count - 1; f >= 0; f--) {
        later = (double)rewards[f] + gamma * later;
        lacks *= gamma;
        to[f] = lacks > LACKS_AT_MOST ? NOT_KNOWN : (float)later;
    }
}

exphil_status xph_row_returns_set(exphil_context *context, xph_row_returns **returns, uint64_t game,
                                  int32_t port, int32_t first, const float *rewards, int64_t count, bool over,
                                  double half_life, exphil_error *error)
{
    float *made = xph_alloc(context, (size_t)count * sizeof *made);
    if (!made) return xph_no_memory((size_t)count * sizeof *made, error);
    exphil_status status = make_own(context, returns, error);
    if (status >= 0) status = grow(*returns, (*returns)->count + 1, error);
    if (status < 0) {
        xph_free(context, made, (size_t)count * sizeof *made);
        return status;
    }
    sum_up(rewards, count, over, half_life, made);
    const uint64_t key = key_of(game, port);
    side *at = place(*returns, (*returns)->sides, (*returns)->capacity, key);
    (*returns)->count += !at->key;
    xph_free(context, at->returns, (size_t)at->count * sizeof *made);
    *at = (side){key, first, count, made};
    return EXPHIL_OK;
}

/* ---- looking up -------------------------------------------------------------------------------------- */

/* Frame of row 0 of an episode. */
static int64_t first_frame(const xph_episode *episode)
{
    const xph_episode_facts *facts = &episode->block->facts;
    return facts->port ? facts->first_game_frame + episode->offset : episode->offset;
}

void xph_row_returns_get(const xph_row_returns *returns, const xph_episode *episode, int64_t t, int64_t count,
                         int64_t delay, float *to)
{
    const xph_episode_facts *facts = &episode->block->facts;
    const side *of = place(returns, returns->sides, returns->capacity, key_of(facts->game, facts->port));
    const int64_t base = first_frame(episode) + delay - (of->key ? of->first : 0);
    for (int64_t i = 0; i < count; i++) {
        int64_t f = base + t + i;
        bool acts = t + i + delay < episode->frames; /* within the episode */
        to[i] = of->key && acts && f >= 0 && f < of->count ? of->returns[f] : NOT_KNOWN;
    }
}
