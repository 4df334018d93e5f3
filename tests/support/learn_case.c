/* Worlds and runs for the tests of learning from play. */
#include "learn_case.h"

void noise_row(noise *n, int64_t lane, float *floats, int32_t *ids)
{
    for (int i = 0; i < 13; i++) floats[i] = (float)model_case_uniform(&n->rng[lane], -1.0, 1.0);
    ids[0] = (int32_t)xph_rng_below(&n->rng[lane], 5);
    ids[1] = (int32_t)xph_rng_below(&n->rng[lane], 7);
}

static int32_t noise_reset(void *user, int64_t lane, uint64_t seed, float *floats, int32_t *ids)
{
    noise *n = user;
    n->rng[lane] = (xph_rng){.seed = seed, .stream = XPH_RNG_TEST};
    noise_row(n, lane, floats, ids);
    return 0;
}

static int32_t noise_step(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                          int32_t *ids, float *reward, uint8_t *end)
{
    noise *n = user;
    for (int64_t i = 0; i < count; i++) {
        xph_rng *rng = &n->rng[first + i];
        reward[i] = (float)(actions[3 * i + 1] == 2) + (float)xph_rng_double(rng);
        end[i] = xph_rng_below(rng, 25) ? EXPHIL_GOES_ON : (uint8_t)(1 + xph_rng_below(rng, 2));
        noise_row(n, first + i, floats + 13 * i, ids + 2 * i);
    }
    if (++n->frames == n->fail_at && n->bad != 0.0f) reward[0] = n->bad;
    return n->frames == n->fail_at && n->bad == 0.0f ? 7 : 0;
}

exphil_world noise_world(noise *n, int64_t lanes)
{
    return (exphil_world){.struct_size = sizeof(exphil_world),
                          .user = n,
                          .spec = &model_case_spec,
                          .lanes = lanes,
                          .seats = 1,
                          .reset = noise_reset,
                          .step = noise_step};
}

static int32_t noise_save(void *user, int64_t lane, void *state)
{
    memcpy(state, &((noise *)user)->rng[lane], sizeof(xph_rng));
    return 0;
}

static int32_t noise_load(void *user, int64_t lane, const void *state)
{
    memcpy(&((noise *)user)->rng[lane], state, sizeof(xph_rng));
    return 0;
}

exphil_world noise_kept_world(noise *n, int64_t lanes)
{
    exphil_world world = noise_world(n, lanes);
    world.state_bytes = sizeof(xph_rng);
    world.save = noise_save;
    world.load = noise_load;
    return world;
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

learn_plan learn_plan_of(const char *blocks)
{
    learn_plan p = {.model = model_case_config(blocks, EXPHIL_TYPE_F32),
                    .learner = EXPHIL_LEARNER_CONFIG_INIT,
                    .lanes = 6,
                    .time = 11,
                    .threads = 1};
    p.model.value = EXPHIL_VALUE_SHARED;
    p.learner.batches = 3;
    p.learner.epochs = 2;
    return p;
}

static exphil_context *context_of(const learn_plan *p)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!p->device) return test_context(p->memory, p->io, p->threads);
    config.device = p->device;
    config.backend_path = p->backend_path;
    config.threads = p->threads;
    if (exphil_context_create(&config, &context, &error) < 0) fail_msg("no context: %s", error.message);
    return context;
}

learn_run learn_begin(const learn_plan *p)
{
    learn_run r = {.context = context_of(p)};
    exphil_trainer_config how = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config rollout = EXPHIL_ROLLOUT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    how.as_played = 1;
    how.precision = p->precision;
    session.streams = p->lanes;
    session.seed = p->seed ? p->seed : 5;
    session.heads = p->play;
    rollout.time = p->time;
    rollout.seed = 6;
    r.model = model_case_create(r.context, &p->model);
    assert_ok(exphil_optimizer_create(r.model, NULL, &r.optimizer, NULL));
    assert_ok(exphil_trainer_create(r.model, r.optimizer, NULL, &how, &r.trainer, NULL));
    assert_ok(exphil_rollout_create(r.model, &session, &rollout, &r.rollout, NULL));
    if (exphil_learner_create(r.trainer, p->taught ? r.model : NULL, &p->learner, &r.learner, &error) < 0)
        fail_msg("%s", error.message);
    return r;
}

void learn_end(learn_run *r)
{
    exphil_trainer_destroy(r->trainer); /* the learner keeps it */
    exphil_learner_destroy(r->learner);
    exphil_rollout_destroy(r->rollout);
    exphil_optimizer_destroy(r->optimizer);
    exphil_model_destroy(r->model);
    exphil_context_destroy(r->context);
}

exphil_learner_metrics learn_chunk(learn_run *r, const exphil_world *world)
{
    exphil_learner_metrics m = EXPHIL_LEARNER_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_rollout_run(r->rollout, world, &error) < 0) fail_msg("%s", error.message);
    if (exphil_learner_update(r->learner, r->rollout, &m, &error) < 0) fail_msg("%s", error.message);
    return m;
}

uint64_t learn_weights(const learn_run *r)
{
    exphil_model *model = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS, &model, NULL));
    assert_ok(exphil_model_query(model, &info, NULL));
    exphil_model_destroy(model);
    return info.weights_hash;
}
