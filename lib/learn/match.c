/* Matches: each start twice, with seats exchanged and the same chance, and an interval over starts. */
#include "learn/learn.h"

#include "data/data.h"

#include <exphil/match.h>

enum { GAMES_USUAL = 200, GAMES_MOST = 1000000, FRAMES_USUAL = 20000, DRAWS = 10000, SIDES = 2 };
#define POINTS_USUAL 11.0

typedef struct match {
    exphil_context *context;
    const exphil_world *world;
    exphil_match_config config;
    exphil_session *side[SIDES]; /* a, b: a stream for each lane */
    int64_t lanes, logits, left; /* left: games under way that are not decided */
    /* [lanes, 2, ...] as the world has them; [lanes, ...] of one side */
    float *floats, *reward, *own_floats, *noise;
    int32_t *ids, *actions, *own_ids, *own_actions;
    uint8_t *end;
    xph_rng *rng;    /* [lanes, 2] chance of each seat */
    double *points;  /* [lanes, 2] by side */
    uint8_t *open;   /* [lanes] the game is not decided */
    double *value;   /* [starts] score of a's two games of a start */
    uint64_t *drawn; /* [DRAWS] the bits of their scores, which are not negative: so they have their order */
    exphil_match_result result;
    unsigned char *memory;
    size_t memory_bytes;
} match;

/* ---- configuration ------------------------------------------------------------------------------------- */

static exphil_status take_config(exphil_match_config *c, exphil_error *error)
{
    const char *bad = c->games < 0 || c->games > GAMES_MOST || c->games % 2 ? "games"
                      : c->most_frames < 0 || c->most_frames > INT32_MAX    ? "most_frames"
                      : !(c->points >= -1e9 && c->points <= 1e9)            ? "points"
                      : c->deterministic != 0 && c->deterministic != 1      ? "deterministic"
                      : c->reserved                                         ? "reserved"
                                                                            : NULL;
    if (bad)
        return xph_fail(error, EXPHIL_E_INVALID, "match config: %s is out of range%s", bad,
                        c->games % 2 ? ": each start is played twice" : "");
    if (!c->games) c->games = GAMES_USUAL;
    if (!c->most_frames) c->most_frames = FRAMES_USUAL;
    if (c->points == 0.0) c->points = POINTS_USUAL;
    return EXPHIL_OK;
}

static exphil_status check_side(const exphil_model *model, const exphil_world *world, const char *which,
                                exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    if (exphil_spec_hash(world->spec) != shape->spec_hash)
        return xph_fail(error, EXPHIL_E_MISMATCH, "the world's rows are %s/%s, model %s was made for %s/%s",
                        world->spec->layout, world->spec->codec, which, xph_model_spec(model)->layout,
                        xph_model_spec(model)->codec);
    if (shape->told)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "model %s has conditions or several delays", which);
    return EXPHIL_OK;
}

exphil_status xph_world_check_two(const exphil_world *world, exphil_error *error)
{
    const char *missing = !world->spec ? "spec" : !world->reset ? "reset" : !world->step ? "step" : NULL;
    if (missing) return xph_fail(error, EXPHIL_E_INVALID, "world: %s is NULL", missing);
    if (world->seats != 2)
        return xph_fail(error, EXPHIL_E_INVALID, "the world has %lld seats, not 2", (long long)world->seats);
    if (world->lanes < 1 || world->lanes > 4096)
        return xph_fail(error, EXPHIL_E_INVALID, "the world has %lld lanes, not 1..4096",
                        (long long)world->lanes);
    return EXPHIL_OK;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static size_t cut_all(match *m, unsigned char *base)
{
    const exphil_spec *spec = m->world->spec;
    const int64_t both = m->lanes * SIDES;
    xph_cutter c = {base, 0};
    m->floats = xph_cut(&c, both, spec->float_count, sizeof(float));
    m->ids = xph_cut(&c, both, spec->id_count, sizeof(int32_t));
    m->actions = xph_cut(&c, both, spec->head_count, sizeof(int32_t));
    m->reward = xph_cut(&c, both, 1, sizeof(float));
    m->end = xph_cut(&c, m->lanes, 1, 1);
    m->own_floats = xph_cut(&c, m->lanes, spec->float_count, sizeof(float));
    m->own_ids = xph_cut(&c, m->lanes, spec->id_count, sizeof(int32_t));
    m->own_actions = xph_cut(&c, m->lanes, spec->head_count, sizeof(int32_t));
    m->noise = xph_cut(&c, m->lanes, m->logits, sizeof(float));
    m->rng = xph_cut(&c, both, 1, sizeof(xph_rng));
    m->points = xph_cut(&c, both, 1, sizeof(double));
    m->open = xph_cut(&c, m->lanes, 1, 1);
    m->value = xph_cut(&c, m->config.games / 2, 1, sizeof(double));
    m->drawn = xph_cut(&c, DRAWS, 1, sizeof(uint64_t));
    return c.at;
}

static exphil_status make(match *m, const exphil_model *a, const exphil_model *b, exphil_error *error)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    m->lanes = m->world->lanes;
    m->logits = xph_model_shape_of(a)->logits;
    m->memory_bytes = cut_all(m, NULL);
    m->memory = xph_calloc(m->context, 1, m->memory_bytes);
    if (!m->memory) return xph_no_memory(m->memory_bytes, error);
    cut_all(m, m->memory);
    config.streams = m->lanes;
    config.deterministic = m->config.deterministic;
    XPH_TRY(exphil_session_create(a, &config, &m->side[0], error));
    return exphil_session_create(b, &config, &m->side[1], error);
}

static void drop(match *m)
{
    for (int s = 0; s < SIDES; s++) exphil_session_destroy(m->side[s]);
    xph_free(m->context, m->memory, m->memory_bytes);
}

/* ---- a batch of games: one in each lane ------------------------------------------------------------------ */

/* Of the game in a lane: side a sits in the first seat of even games. */
static int64_t seat_of(int64_t game, int side)
{
    return (game + side) % 2;
}

static exphil_status begin(match *m, int64_t lane, int64_t game, exphil_error *error)
{
    const exphil_spec *spec = m->world->spec;
    const uint64_t start = (uint64_t)(game / 2);
    xph_rng seeds = {.seed = m->config.seed, .stream = XPH_RNG_MATCH | start << 8};
    for (uint64_t seat = 0; seat < SIDES; seat++)
        m->rng[lane * SIDES + (int64_t)seat] =
            (xph_rng){.seed = m->config.seed, .stream = XPH_RNG_CHANCE | (2 * start + seat) << 8};
    int32_t code =
        m->world->reset(m->world->user, lane, xph_rng_u64(&seeds),
                        m->floats + lane * SIDES * spec->float_count, m->ids + lane * SIDES * spec->id_count);
    return code ? xph_fail(error, EXPHIL_E_IO, "the world's reset failed with %d", (int)code) : EXPHIL_OK;
}

static exphil_status decide(match *m, int64_t first, int side, exphil_error *error)
{
    const exphil_spec *spec = m->world->spec;
    const int64_t F = spec->float_count, K = spec->id_count, A = spec->head_count, L = m->logits;
    for (int64_t lane = 0; lane < m->lanes; lane++) {
        int64_t from = lane * SIDES + seat_of(first + lane, side);
        memcpy(m->own_floats + lane * F, m->floats + from * F, (size_t)F * sizeof(float));
        memcpy(m->own_ids + lane * K, m->ids + from * K, (size_t)K * sizeof(int32_t));
        xph_rng_floats(&m->rng[from], m->noise + lane * L, L);
    }
    exphil_status status = exphil_session_step_row(m->side[side], m->own_floats, m->own_ids,
                                                   m->config.deterministic ? NULL : m->noise, m->own_actions);
    if (status < 0) {
        exphil_error why = EXPHIL_ERROR_INIT;
        (void)exphil_session_error(m->side[side], &why);
        return xph_fail(error, status, "model %s: %s", side ? "b" : "a", why.message);
    }
    for (int64_t lane = 0; lane < m->lanes; lane++)
        memcpy(m->actions + (lane * SIDES + seat_of(first + lane, side)) * A, m->own_actions + lane * A,
               (size_t)A * sizeof(int32_t));
    return EXPHIL_OK;
}

static void decided(match *m, int64_t lane, int64_t game, int64_t frames)
{
    const double *points = m->points + lane * SIDES;
    double value = points[0] > points[1] ? 1.0 : points[0] < points[1] ? 0.0 : 0.5;
    m->open[lane] = 0;
    m->left--;
    m->value[game / 2] += value / 2.0;
    m->result.won += value > 0.5;
    m->result.lost += value < 0.5;
    m->result.drawn += value == 0.5;
    m->result.points += points[0];
    m->result.points_against += points[1];
    m->result.frames += (double)frames;
}

/* What a frame came to; a lane that has ended is begun again, and what it plays then counts for nothing. */
static exphil_status settle(match *m, int64_t lane, int64_t game, int64_t frames, exphil_error *error)
{
    double *points = m->points + lane * SIDES;
    bool over = m->end[lane] != EXPHIL_GOES_ON || frames >= m->config.most_frames;
    for (int side = 0; side < SIDES; side++) {
        float reward = m->reward[lane * SIDES + seat_of(game, side)];
        if (!xph_finite((double)reward))
            return xph_fail(error, EXPHIL_E_NUMERIC, "the world gave a reward that is not finite");
        if (m->end[lane] > EXPHIL_CUT_OFF)
            return xph_fail(error, EXPHIL_E_INVALID, "the world gave an end of %d", m->end[lane]);
        if (m->open[lane] && reward > 0.0f) points[side] += (double)reward;
        over |= m->config.points > 0.0 && points[side] >= m->config.points;
    }
    if (m->open[lane] && over) decided(m, lane, game, frames);
    if (m->end[lane] == EXPHIL_GOES_ON) return EXPHIL_OK;
    for (int side = 0; side < SIDES; side++) XPH_TRY(exphil_session_reset(m->side[side], lane));
    return begin(m, lane, game, error);
}

static exphil_status play_frame(match *m, int64_t first, int64_t frames, exphil_error *error)
{
    const exphil_world *world = m->world;
    if (xph_cancelled(m->context)) return xph_fail(error, EXPHIL_E_CANCELLED, "match cancelled by the host");
    for (int side = 0; side < SIDES; side++) XPH_TRY(decide(m, first, side, error));
    int32_t code = world->step(world->user, 0, m->lanes, m->actions, m->floats, m->ids, m->reward, m->end);
    if (code) return xph_fail(error, EXPHIL_E_IO, "the world's step failed with %d", (int)code);
    for (int64_t lane = 0; lane < m->lanes; lane++) XPH_TRY(settle(m, lane, first + lane, frames, error));
    return EXPHIL_OK;
}

static exphil_status play_batch(match *m, int64_t first, exphil_error *error)
{
    m->left = 0;
    for (int side = 0; side < SIDES; side++) XPH_TRY(exphil_session_reset(m->side[side], -1));
    memset(m->points, 0, (size_t)(m->lanes * SIDES) * sizeof *m->points);
    for (int64_t lane = 0; lane < m->lanes; lane++) {
        m->open[lane] = first + lane < m->config.games;
        m->left += m->open[lane];
        XPH_TRY(begin(m, lane, first + lane, error));
    }
    for (int64_t frames = 1; m->left > 0; frames++) XPH_TRY(play_frame(m, first, frames, error));
    return EXPHIL_OK;
}

/* ---- the interval --------------------------------------------------------------------------------------- */

static void find_interval(match *m)
{
    const int64_t starts = m->config.games / 2;
    xph_rng rng = {.seed = m->config.seed, .stream = XPH_RNG_MATCH | ~(uint64_t)0 << 8};
    for (int k = 0; k < DRAWS; k++) {
        double sum = 0.0;
        for (int64_t i = 0; i < starts; i++) sum += m->value[xph_rng_below(&rng, (uint64_t)starts)];
        sum /= (double)starts;
        memcpy(&m->drawn[k], &sum, sizeof sum);
    }
    xph_sort(m->drawn, DRAWS);
    memcpy(&m->result.low, &m->drawn[DRAWS / 40], sizeof m->result.low);
    memcpy(&m->result.high, &m->drawn[DRAWS - 1 - DRAWS / 40], sizeof m->result.high);
}

static exphil_status play(match *m, exphil_error *error)
{
    for (int64_t first = 0; first < m->config.games; first += m->lanes) XPH_TRY(play_batch(m, first, error));
    m->result.games = m->config.games;
    m->result.score = ((double)m->result.won + 0.5 * (double)m->result.drawn) / (double)m->config.games;
    find_interval(m);
    return EXPHIL_OK;
}

exphil_status exphil_match(const exphil_model *a, const exphil_model *b, const exphil_world *world,
                           const exphil_match_config *config, exphil_match_result *result,
                           exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_world known = {.struct_size = sizeof known};
    match m = {.config = EXPHIL_MATCH_CONFIG_INIT, .result = EXPHIL_MATCH_RESULT_INIT, .world = &known};
    if (!a || !b || !world)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", !a ? "a" : !b ? "b" : "world");
    m.context = xph_model_context(a);
    XPH_TRY(xph_context_check(m.context, error));
    if (xph_model_context(b) != m.context)
        return xph_fail(error, EXPHIL_E_MISMATCH, "the models are of different contexts");
    XPH_TRY(XPH_TAKE(exphil_match_config, &m.config, config, error));
    XPH_TRY(XPH_TAKE(exphil_world, &known, world, error));
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_match_result, result, error));
    XPH_TRY(take_config(&m.config, error));
    XPH_TRY(xph_world_check_two(&known, error));
    XPH_TRY(check_side(a, &known, "a", error));
    XPH_TRY(check_side(b, &known, "b", error));
    exphil_status status = make(&m, a, b, error);
    if (status >= 0) status = play(&m, error);
    drop(&m);
    if (status < 0 || !result) return status;
    return XPH_GIVE(exphil_match_result, result, &m.result, error);
}
