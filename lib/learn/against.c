/* A world of two seats as a world of one: policies that do not learn play the other seat. */
#include "learn/learn.h"
#include "learn/world.h"

#include <exphil/match.h>

enum { OPPONENTS_MOST = 64 };

typedef struct opponent {
    exphil_session *session; /* a stream for each of its lanes: lane l is stream l / count */
    exphil_record record;
} opponent;

typedef struct against {
    exphil_context *context;
    xph_busy busy;   /* of all that it does */
    exphil_world of; /* the world of two seats */
    int64_t count;
    opponent opponents[OPPONENTS_MOST];
    size_t session_bytes, row_bytes; /* of a lane's saved state, behind that of the world */
    /* [lanes, 2, ...] of the world; [lanes, ...] of the seat that others play */
    float *floats, *reward, *other_floats;
    int32_t *ids, *actions, *other_ids, *other_actions;
    double *sum; /* [lanes] rewards of the episode so far, of who learns */
    unsigned char *memory;
    size_t memory_bytes;
} against;

/* The seat of who learns. */
static int64_t seat_of(const against *g, int64_t lane)
{
    return lane / g->count % 2;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

/* Both seats' rows of a lane: one goes to whoever learns, one stays. */
static void divide(const against *g, int64_t lane, float *floats, int32_t *ids)
{
    const int64_t F = g->of.spec->float_count, K = g->of.spec->id_count;
    int64_t mine = lane * 2 + seat_of(g, lane), its = lane * 2 + !seat_of(g, lane);
    memcpy(floats, g->floats + mine * F, (size_t)F * sizeof *floats);
    memcpy(ids, g->ids + mine * K, (size_t)K * sizeof *ids);
    memcpy(g->other_floats + lane * F, g->floats + its * F, (size_t)F * sizeof *floats);
    memcpy(g->other_ids + lane * K, g->ids + its * K, (size_t)K * sizeof *ids);
}

static int32_t begin(against *g, int64_t lane, uint64_t seed, float *floats, int32_t *ids)
{
    if (lane < 0 || lane >= g->of.lanes) return 1;
    int32_t code = g->of.reset(g->of.user, lane, seed, g->floats + lane * 2 * g->of.spec->float_count,
                               g->ids + lane * 2 * g->of.spec->id_count);
    if (code) return code;
    g->sum[lane] = 0.0;
    divide(g, lane, floats, ids);
    return exphil_session_reset(g->opponents[lane % g->count].session, lane / g->count) < 0 ? 2 : 0;
}

/* Rows of an opponent's lanes lie apart: they are brought together behind the arrays of all. */
static bool decide(const against *g, int64_t index)
{
    const int64_t F = g->of.spec->float_count, K = g->of.spec->id_count, A = g->of.spec->head_count,
                  lanes = g->of.lanes;
    float *floats = g->other_floats + lanes * F;
    int32_t *ids = g->other_ids + lanes * K, *actions = g->other_actions;
    for (int64_t lane = index, i = 0; lane < lanes; lane += g->count, i++) {
        memcpy(floats + i * F, g->other_floats + lane * F, (size_t)F * sizeof *floats);
        memcpy(ids + i * K, g->other_ids + lane * K, (size_t)K * sizeof *ids);
    }
    if (exphil_session_step_row(g->opponents[index].session, floats, ids, NULL, actions) < 0) return false;
    for (int64_t lane = index, i = 0; lane < lanes; lane += g->count, i++)
        memcpy(g->actions + (lane * 2 + !seat_of(g, lane)) * A, actions + i * A, (size_t)A * sizeof *actions);
    return true;
}

static void note_end(against *g, int64_t lane)
{
    exphil_record *record = &g->opponents[lane % g->count].record;
    record->episodes++;
    record->won += g->sum[lane] > 0.0;
    record->lost += g->sum[lane] < 0.0;
}

static int32_t play(against *g, int64_t first, int64_t count, const int32_t *actions, float *floats,
                    int32_t *ids, float *reward, uint8_t *end)
{
    const int64_t F = g->of.spec->float_count, K = g->of.spec->id_count, A = g->of.spec->head_count;
    if (first != 0 || count != g->of.lanes) return 1;
    for (int64_t lane = 0; lane < count; lane++)
        memcpy(g->actions + (lane * 2 + seat_of(g, lane)) * A, actions + lane * A,
               (size_t)A * sizeof *actions);
    for (int64_t i = 0; i < g->count; i++)
        if (!decide(g, i)) return 2;
    int32_t code = g->of.step(g->of.user, 0, count, g->actions, g->floats, g->ids, g->reward, end);
    for (int64_t lane = 0; code == 0 && lane < count; lane++) {
        divide(g, lane, floats + lane * F, ids + lane * K);
        reward[lane] = g->reward[lane * 2 + seat_of(g, lane)];
        g->sum[lane] += (double)reward[lane];
        if (end[lane] != EXPHIL_GOES_ON) note_end(g, lane);
    }
    return code;
}

/* ---- saving: the game, then the opponent's state, its row and the reward so far ---------------------------- */

static int32_t write_lane(const against *g, int64_t lane, void *state)
{
    const int64_t F = g->of.spec->float_count, K = g->of.spec->id_count;
    unsigned char *to = state;
    if (lane < 0 || lane >= g->of.lanes) return 1;
    int32_t code = g->of.save(g->of.user, lane, to);
    if (code) return code;
    to += g->of.state_bytes;
    const exphil_session *session = g->opponents[lane % g->count].session;
    size_t bytes = exphil_session_state_size(session);
    if (exphil_session_state_save(session, lane / g->count, to, bytes) < 0) return 2;
    to += g->session_bytes;
    memcpy(to, &g->sum[lane], sizeof(double));
    memcpy(to + sizeof(double), g->other_floats + lane * F, (size_t)F * sizeof(float));
    memcpy(to + sizeof(double) + (size_t)F * sizeof(float), g->other_ids + lane * K,
           (size_t)K * sizeof(int32_t));
    return 0;
}

static int32_t read_lane(against *g, int64_t lane, const void *state)
{
    const int64_t F = g->of.spec->float_count, K = g->of.spec->id_count;
    const unsigned char *from = state;
    if (lane < 0 || lane >= g->of.lanes) return 1;
    int32_t code = g->of.load(g->of.user, lane, from);
    if (code) return code;
    from += g->of.state_bytes;
    exphil_session *session = g->opponents[lane % g->count].session;
    size_t bytes = exphil_session_state_size(session);
    if (exphil_session_state_restore(session, lane / g->count, from, bytes) < 0) return 2;
    from += g->session_bytes;
    memcpy(&g->sum[lane], from, sizeof(double));
    memcpy(g->other_floats + lane * F, from + sizeof(double), (size_t)F * sizeof(float));
    memcpy(g->other_ids + lane * K, from + sizeof(double) + (size_t)F * sizeof(float),
           (size_t)K * sizeof(int32_t));
    return 0;
}

/* ---- the functions of the world: one at a time, since opponents are stepped together ------------------------- */

enum { IN_USE = 3 };

static int32_t leave(against *g, int32_t code)
{
    xph_busy_leave(&g->busy);
    return code;
}

static int32_t reset(void *user, int64_t lane, uint64_t seed, float *floats, int32_t *ids)
{
    against *g = user;
    return xph_busy_enter(&g->busy) ? leave(g, begin(g, lane, seed, floats, ids)) : IN_USE;
}

static int32_t step(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                    int32_t *ids, float *reward, uint8_t *end)
{
    against *g = user;
    return xph_busy_enter(&g->busy) ? leave(g, play(g, first, count, actions, floats, ids, reward, end))
                                    : IN_USE;
}

static int32_t save(void *user, int64_t lane, void *state)
{
    against *g = user;
    return xph_busy_enter(&g->busy) ? leave(g, write_lane(g, lane, state)) : IN_USE;
}

static int32_t load(void *user, int64_t lane, const void *state)
{
    against *g = user;
    return xph_busy_enter(&g->busy) ? leave(g, read_lane(g, lane, state)) : IN_USE;
}

/* ---- making and freeing --------------------------------------------------------------------------------- */

static size_t cut_all(against *g, unsigned char *base)
{
    const exphil_spec *spec = g->of.spec;
    const int64_t lanes = g->of.lanes;
    xph_cutter c = {base, 0};
    g->floats = xph_cut(&c, 2 * lanes, spec->float_count, sizeof(float));
    g->ids = xph_cut(&c, 2 * lanes, spec->id_count, sizeof(int32_t));
    g->actions = xph_cut(&c, 2 * lanes, spec->head_count, sizeof(int32_t));
    g->reward = xph_cut(&c, 2 * lanes, 1, sizeof(float));
    g->other_floats = xph_cut(&c, 2 * lanes, spec->float_count, sizeof(float)); /* and of one opponent */
    g->other_ids = xph_cut(&c, 2 * lanes, spec->id_count, sizeof(int32_t));
    g->other_actions = xph_cut(&c, lanes, spec->head_count, sizeof(int32_t));
    g->sum = xph_cut(&c, lanes, 1, sizeof(double));
    return c.at;
}

static void end(void *user)
{
    against *g = user;
    exphil_context *context = g->context;
    for (int64_t i = 0; i < g->count; i++) exphil_session_destroy(g->opponents[i].session);
    xph_free(context, g->memory, g->memory_bytes);
    xph_free(context, g, sizeof *g);
    xph_context_release(context);
}

static exphil_status make(against *g, const exphil_model *const *opponents, uint64_t seed,
                          exphil_error *error)
{
    const exphil_spec *spec = g->of.spec;
    g->memory_bytes = cut_all(g, NULL);
    g->memory = xph_calloc(g->context, 1, g->memory_bytes);
    if (!g->memory) return xph_no_memory(g->memory_bytes, error);
    cut_all(g, g->memory);
    for (int64_t i = 0; i < g->count; i++) {
        exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
        config.streams = (g->of.lanes - i + g->count - 1) / g->count;
        config.seed = seed + (uint64_t)i;
        config.adoptable = 1; /* so that its states go with the policies that come after it */
        g->opponents[i].record = (exphil_record)EXPHIL_RECORD_INIT;
        XPH_TRY(exphil_session_create(opponents[i], &config, &g->opponents[i].session, error));
        size_t bytes = exphil_session_state_size(g->opponents[i].session);
        if (bytes > g->session_bytes) g->session_bytes = bytes;
    }
    g->row_bytes =
        sizeof(double) + (size_t)spec->float_count * sizeof(float) + (size_t)spec->id_count * sizeof(int32_t);
    return EXPHIL_OK;
}

static exphil_status check(exphil_context *context, const exphil_world *world,
                           const exphil_model *const *opponents, int64_t count, exphil_error *error)
{
    XPH_TRY(xph_world_check_two(world, error));
    if (count < 1 || count > OPPONENTS_MOST || count > world->lanes)
        return xph_fail(error, EXPHIL_E_INVALID, "count is %lld, must be 1..%d and at most the %lld lanes",
                        (long long)count, OPPONENTS_MOST, (long long)world->lanes);
    for (int64_t i = 0; i < count; i++) {
        if (!opponents[i]) return xph_fail(error, EXPHIL_E_INVALID, "opponents[%lld] is NULL", (long long)i);
        const xph_model_shape *shape = xph_model_shape_of(opponents[i]);
        if (xph_model_context(opponents[i]) != context)
            return xph_fail(error, EXPHIL_E_MISMATCH, "opponents[%lld] is of another context", (long long)i);
        if (shape->spec_hash != exphil_spec_hash(world->spec))
            return xph_fail(error, EXPHIL_E_MISMATCH,
                            "the world's rows are %s/%s, opponents[%lld] was made for others",
                            world->spec->layout, world->spec->codec, (long long)i);
        if (shape->told)
            return xph_fail(error, EXPHIL_E_UNSUPPORTED, "opponents[%lld] has conditions or several delays",
                            (long long)i);
    }
    return EXPHIL_OK;
}

exphil_status exphil_world_against(exphil_context *context, const exphil_world *world,
                                   const exphil_model *const *opponents, int64_t count, uint64_t seed,
                                   exphil_world *result, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_world known = {.struct_size = sizeof known};
    XPH_TRY(xph_context_check(context, error));
    if (!world || !opponents || !result)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL",
                        !world       ? "world"
                        : !opponents ? "opponents"
                                     : "against");
    XPH_TRY(XPH_TAKE(exphil_world, &known, world, error));
    XPH_TRY(xph_world_check_output(result, error));
    XPH_TRY(check(context, &known, opponents, count, error));
    against *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->of = known;
    made->count = count;
    const bool kept = known.state_bytes && known.save && known.load;
    exphil_status status = make(made, opponents, seed, error);
    size_t rest = made->session_bytes + made->row_bytes;
    if (status >= 0 && kept && known.state_bytes > (size_t)PTRDIFF_MAX - rest)
        status = xph_fail(error, EXPHIL_E_INVALID, "world: state_bytes is %zu, too large", known.state_bytes);
    if (status < 0) {
        end(made);
        return status;
    }
    const exphil_world whole = {.struct_size = sizeof whole,
                                .user = made,
                                .spec = known.spec,
                                .lanes = known.lanes,
                                .seats = 1,
                                .state_bytes = kept ? known.state_bytes + rest : 0,
                                .reset = reset,
                                .step = step,
                                .save = kept ? save : NULL,
                                .load = kept ? load : NULL,
                                .destroy = end};
    xph_world_give(result, &whole);
    return EXPHIL_OK;
}

/* What came of an opponent's games, and another model in its place. */
static exphil_status exchange(opponent *o, const exphil_model *model, exphil_record *record,
                              exphil_error *error)
{
    if (model) {
        exphil_model *before = NULL;
        XPH_TRY(exphil_model_prepare(model, error));
        exphil_status status = exphil_session_adopt(o->session, model, &before);
        if (status < 0) {
            (void)exphil_session_error(o->session, error);
            return status;
        }
        exphil_model_destroy(before);
    }
    if (!record) return EXPHIL_OK;
    XPH_TRY(XPH_GIVE(exphil_record, record, &o->record, error));
    o->record = (exphil_record)EXPHIL_RECORD_INIT;
    return EXPHIL_OK;
}

exphil_status exphil_world_opponent(const exphil_world *world, int64_t index, const exphil_model *model,
                                    exphil_record *record, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!world || world->step != step)
        return xph_fail(error, EXPHIL_E_INVALID, "the world does not play against opponents");
    against *g = world->user;
    XPH_TRY(xph_context_check(g->context, error));
    if (index < 0 || index >= g->count)
        return xph_fail(error, EXPHIL_E_INVALID, "index is %lld, there are %lld opponents", (long long)index,
                        (long long)g->count);
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_record, record, error));
    if (!xph_busy_enter(&g->busy)) return xph_busy_error("world", error);
    exphil_status status = exchange(&g->opponents[index], model, record, error);
    xph_busy_leave(&g->busy);
    return status;
}
