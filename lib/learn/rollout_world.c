/* A rollout plays a world: its lanes are the session's streams, and their episodes follow from seeds. */
#include "learn/learn.h"

exphil_status xph_rollout_check_world(const exphil_rollout *r, const exphil_world *world, exphil_error *error)
{
    const char *missing = !world->spec ? "spec" : !world->reset ? "reset" : !world->step ? "step" : NULL;
    if (missing) return xph_fail(error, EXPHIL_E_INVALID, "world: %s is NULL", missing);
    if (exphil_spec_hash(world->spec) != r->shape->spec_hash)
        return xph_fail(error, EXPHIL_E_MISMATCH, "the world's rows are %s/%s, the model was made for %s/%s",
                        world->spec->layout, world->spec->codec, r->session->spec->layout,
                        r->session->spec->codec);
    if (world->seats < 1 || world->seats > 8 || r->streams % world->seats ||
        world->lanes != r->streams / world->seats)
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "the world has %lld lanes of %lld seats, the session has %lld streams",
                        (long long)world->lanes, (long long)world->seats, (long long)r->streams);
    const bool other = r->of.step && (r->of.user != world->user || r->of.step != world->step);
    if (other || r->by_host)
        return xph_fail(error, EXPHIL_E_STATE, "rollout: %s",
                        other ? "it plays another world already"
                              : "its rows are steps of the host's, not of a world");
    return EXPHIL_OK;
}

void xph_rollout_bind(exphil_rollout *r, const exphil_world *world)
{
    r->of.user = world->user;
    r->of.step = world->step;
}

static exphil_status world_failed(exphil_rollout *r, const char *what, int32_t code, exphil_error *error)
{
    r->broken = true;
    return xph_fail(error, EXPHIL_E_IO, "the world's %s failed with %d", what, (int)code);
}

static exphil_status begin_episode(exphil_rollout *r, const exphil_world *world, int64_t lane,
                                   exphil_error *error)
{
    const int64_t first = lane * world->seats;
    xph_rng rng = {.seed = r->seed,
                   .stream = XPH_RNG_GAMES | (uint64_t)lane << 8,
                   .position = 2 * (uint64_t)r->episodes[first]};
    r->episodes[first]++;
    int32_t code =
        world->reset(world->user, lane, xph_rng_u64(&rng), r->world_floats + first * r->shape->floats,
                     r->world_ids + first * r->shape->ids);
    return code ? world_failed(r, "reset", code, error) : EXPHIL_OK;
}

/* Rows that no world may show are why a step was refused; of numbers that overflowed in the policy it goes on. */
static bool shows_nonsense(const exphil_rollout *r)
{
    const exphil_spec *spec = r->session->spec;
    if (xph_find_not_finite(r->world_floats, r->streams * r->shape->floats) >= 0) return true;
    for (int64_t i = 0; i < r->streams * r->shape->ids; i++)
        if (r->world_ids[i] < 0 || r->world_ids[i] >= spec->ids[i % r->shape->ids].entries) return true;
    return false;
}

/* The policy decides, and the world makes a frame of it. */
static exphil_status step_world(exphil_rollout *r, const exphil_world *world, exphil_error *error)
{
    exphil_status status = xph_rollout_step(r, XPH_OF_WORLD, r->world_floats, r->world_ids, r->world_actions);
    if (status < 0) {
        r->broken = status != EXPHIL_E_BUSY && shows_nonsense(r);
        return xph_rollout_fail(r, status, error);
    }
    int32_t code = world->step(world->user, 0, world->lanes, r->world_actions, r->world_floats, r->world_ids,
                               r->world_reward, r->world_end);
    if (code) return world_failed(r, "step", code, error);
    for (int64_t b = 0; b < r->streams; b++) r->stream_end[b] = r->world_end[b / world->seats];
    r->stepped = true;
    return EXPHIL_OK;
}

static exphil_status play_frame(exphil_rollout *r, const exphil_world *world, exphil_error *error)
{
    if (!r->stepped) XPH_TRY(step_world(r, world, error));
    exphil_status status =
        xph_rollout_reward(r, XPH_OF_WORLD, r->world_reward, r->stream_end, r->world_floats, r->world_ids);
    if (status < 0) {
        r->broken = status != EXPHIL_E_BUSY;
        return xph_rollout_fail(r, status, error);
    }
    r->stepped = false;
    for (int64_t lane = 0; lane < world->lanes; lane++)
        if (r->world_end[lane] != EXPHIL_GOES_ON) XPH_TRY(begin_episode(r, world, lane, error));
    return status;
}

static exphil_status run(exphil_rollout *r, const exphil_world *world, exphil_error *error)
{
    exphil_world known = {.struct_size = sizeof known};
    XPH_TRY(XPH_TAKE(exphil_world, &known, world, error));
    XPH_TRY(xph_rollout_check_whole(r, error));
    XPH_TRY(xph_rollout_check_world(r, &known, error));
    if (xph_rollout_full(r))
        return xph_fail(error, EXPHIL_E_STATE, "rollout: the chunk is full: a learner takes it first");
    if (r->received) return xph_rollout_check_empty(r, error);
    xph_rollout_bind(r, &known);
    for (int64_t lane = 0; !r->playing && lane < known.lanes; lane++)
        XPH_TRY(begin_episode(r, &known, lane, error));
    r->playing = true;
    exphil_status status = EXPHIL_OK;
    while (status == EXPHIL_OK) {
        if (xph_cancelled(r->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "rollout cancelled by the host");
        status = play_frame(r, &known, error);
    }
    return status < 0 ? status : EXPHIL_OK;
}

exphil_status exphil_rollout_run(exphil_rollout *rollout, const exphil_world *world, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!rollout || !world)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", rollout ? "world" : "rollout");
    XPH_TRY(xph_context_check(rollout->context, error));
    if (!xph_busy_enter(&rollout->busy)) return xph_busy_error("rollout", error);
    exphil_status status = run(rollout, world, error);
    xph_busy_leave(&rollout->busy);
    return status;
}
