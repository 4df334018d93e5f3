/* Weights of rows by game, port and frame. Games are an open-addressing table; each has its ranges in ascending order of
 * port and frame, which do not overlap, of which no two of one weight touch, and none weighs 1: the same weights are the
 * same ranges, in whatever calls they were given. So memory is bounded by what is said, not by how often. */
#include "data/row_weights.h"

enum { PORTS = 5 }; /* 1..4, and 0: rows of a host */

typedef struct range {
    int32_t port, first, last; /* frames; INT32_MIN and INT32_MAX: without end */
    float weight;
} range;

typedef struct game_weights {
    uint64_t game; /* xph_game_key; 0: an empty place */
    range *ranges;
    int64_t count, capacity;
} game_weights;

struct xph_row_weights {
    exphil_context *context;
    atomic_int references;
    game_weights *games; /* at most half full */
    int64_t count, capacity;
    uint64_t salt;
    int64_t ranges; /* of all games */
};

/* ---- memory ------------------------------------------------------------------------------------------ */

static exphil_status create(exphil_context *context, xph_row_weights **weights, exphil_error *error)
{
    xph_row_weights *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->references = 1;
    made->salt = xph_salt(made);
    *weights = made;
    return EXPHIL_OK;
}

xph_row_weights *xph_row_weights_retain(xph_row_weights *weights)
{
    if (weights) atomic_fetch_add(&weights->references, 1);
    return weights;
}

void xph_row_weights_release(xph_row_weights *weights)
{
    if (!weights || atomic_fetch_sub(&weights->references, 1) != 1) return;
    exphil_context *context = weights->context;
    for (int64_t i = 0; i < weights->capacity; i++) {
        const game_weights *game = &weights->games[i];
        xph_free(context, game->ranges, (size_t)game->capacity * sizeof *game->ranges);
    }
    xph_free(context, weights->games, (size_t)weights->capacity * sizeof *weights->games);
    xph_free(context, weights, sizeof *weights);
    xph_context_release(context);
}

static game_weights *place(const xph_row_weights *weights, game_weights *games, int64_t capacity,
                           uint64_t key)
{
    uint64_t mask = (uint64_t)capacity - 1, at = xph_mix(key ^ weights->salt) & mask;
    while (games[at].game && games[at].game != key) at = (at + 1) & mask;
    return &games[at];
}

static exphil_status grow(xph_row_weights *weights, int64_t count, exphil_error *error)
{
    int64_t capacity = 16;
    while (capacity < 2 * count) capacity *= 2;
    if (capacity <= weights->capacity) return EXPHIL_OK;
    game_weights *games = xph_calloc(weights->context, (size_t)capacity, sizeof *games);
    if (!games) return xph_no_memory((size_t)capacity * sizeof *games, error);
    for (int64_t i = 0; i < weights->capacity; i++) {
        const game_weights *old = &weights->games[i];
        if (old->game) *place(weights, games, capacity, old->game) = *old;
    }
    xph_free(weights->context, weights->games, (size_t)weights->capacity * sizeof *games);
    weights->games = games;
    weights->capacity = capacity;
    return EXPHIL_OK;
}

/* A place for a game, with room for so many more ranges. */
static exphil_status reserve(xph_row_weights *weights, uint64_t key, int64_t more, game_weights **game,
                             exphil_error *error)
{
    XPH_TRY(grow(weights, weights->count + 1, error));
    game_weights *at = place(weights, weights->games, weights->capacity, key);
    range *ranges =
        xph_grow(weights->context, at->ranges, &at->capacity, at->count + more, sizeof *ranges, error);
    if (!ranges) return EXPHIL_E_MEMORY;
    at->ranges = ranges;
    weights->count += !at->game;
    at->game = key;
    *game = at;
    return EXPHIL_OK;
}

static exphil_status copy_games(const xph_row_weights *from, xph_row_weights *to, exphil_error *error)
{
    XPH_TRY(grow(to, from->count, error));
    for (int64_t i = 0; i < from->capacity; i++) {
        const game_weights *old = &from->games[i];
        game_weights *game;
        if (!old->count) continue;
        XPH_TRY(reserve(to, old->game, old->count, &game, error));
        memcpy(game->ranges, old->ranges, (size_t)old->count * sizeof *old->ranges);
        game->count = old->count;
    }
    to->ranges = from->ranges;
    return EXPHIL_OK;
}

/* What others share is left to them. */
static exphil_status make_own(exphil_context *context, xph_row_weights **weights, exphil_error *error)
{
    xph_row_weights *from = *weights, *made = NULL;
    if (from && atomic_load(&from->references) == 1) return EXPHIL_OK;
    XPH_TRY(create(context, &made, error));
    exphil_status status = from ? copy_games(from, made, error) : EXPHIL_OK;
    if (status < 0) {
        xph_row_weights_release(made);
        return status;
    }
    xph_row_weights_release(from);
    *weights = made;
    return EXPHIL_OK;
}

/* ---- setting ----------------------------------------------------------------------------------------- */

/* The first range of a port that ends at a frame or behind it, or of a later port. */
static int64_t find(const game_weights *game, int32_t port, int64_t frame)
{
    int64_t low = 0;
    for (int64_t high = game->count; low < high;) {
        int64_t middle = low + (high - low) / 2;
        const range *r = &game->ranges[middle];
        if (r->port < port || (r->port == port && r->last < frame)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Ranges [low, high) overlap the new one or touch it: what they leave of themselves, and the new one, come in their place. */
static void set_port(game_weights *game, const range *given)
{
    range made = *given, part[3];
    int64_t low = find(game, given->port, (int64_t)given->first - 1), high = low, parts = 0;
    while (high < game->count && game->ranges[high].port == given->port &&
           game->ranges[high].first <= (int64_t)given->last + 1)
        high++;
    range left = low < high ? game->ranges[low] : made, right = low < high ? game->ranges[high - 1] : made;
    bool keeps_left = left.first<given->first, keeps_right = right.last> given->last;
    if (keeps_left && left.weight == made.weight) {
        made.first = left.first;
        keeps_left = false;
    }
    if (keeps_right && right.weight == made.weight) {
        made.last = right.last;
        keeps_right = false;
    }
    if (keeps_left) {
        if (left.last >= given->first) left.last = given->first - 1;
        part[parts++] = left;
    }
    if (made.weight != 1.0f) part[parts++] = made;
    if (keeps_right) {
        if (right.first <= given->last) right.first = given->last + 1;
        part[parts++] = right;
    }
    memmove(game->ranges + low + parts, game->ranges + high, (size_t)(game->count - high) * sizeof made);
    memcpy(game->ranges + low, part, (size_t)parts * sizeof made);
    game->count += parts - (high - low);
}

exphil_status xph_row_weights_set(exphil_context *context, xph_row_weights **weights, uint64_t game,
                                  int32_t port, int32_t first, int32_t last, float weight,
                                  exphil_error *error)
{
    game_weights *to;
    XPH_TRY(make_own(context, weights, error));
    XPH_TRY(reserve(*weights, xph_game_key(game), 2 * PORTS, &to, error));
    (*weights)->ranges -= to->count;
    for (int32_t p = port ? port : 0; p < (port ? port + 1 : PORTS); p++)
        set_port(to, &(range){p, first, last, weight});
    (*weights)->ranges += to->count;
    return EXPHIL_OK;
}

/* ---- looking up -------------------------------------------------------------------------------------- */

bool xph_row_weights_any(const xph_row_weights *weights)
{
    return weights && weights->ranges;
}

/* Frame of row 0 of an episode. */
static int64_t first_frame(const xph_episode *episode)
{
    const xph_episode_facts *facts = &episode->block->facts;
    return facts->port ? facts->first_game_frame + episode->offset : episode->offset;
}

int64_t xph_row_weights_run(const xph_row_weights *weights, const xph_episode *episode, int64_t t,
                            int64_t end, float *weight)
{
    *weight = 1.0f;
    if (!xph_row_weights_any(weights)) return end - t;
    const xph_episode_facts *facts = &episode->block->facts;
    const game_weights *game = place(weights, weights->games, weights->capacity, xph_game_key(facts->game));
    int64_t base = first_frame(episode), frame = base + t, until = end;
    int64_t i = find(game, facts->port, frame < INT32_MAX ? frame : INT32_MAX);
    const range *r = i < game->count ? &game->ranges[i] : NULL;
    if (!r || r->port != facts->port) return end - t;
    if (r->first <= frame) {
        *weight = r->weight;
        if (r->last < INT32_MAX) until = r->last + 1 - base;
    } else {
        until = r->first - base;
    }
    return (until < end ? until : end) - t;
}
