/* The old program, learning from play: a world of its own and one of the library's, rollouts, a learner with a teacher, its
 * checkpoint, chunks that the host plays and gives over as blocks. */
#include "old.h"

#if EXPHIL_VERSION >= 200

enum { LANES = 4, TIME = 24, CHUNKS = 4, KEPT = 2, ENDS = 12, ACTION = 3 };

/* ---- a world: who moves to where the ball is has a point a frame -------------------------------------------- */

typedef struct game {
    float ball, own;
    int32_t frame;
} game;

static const exphil_head_spec move = {"move", EXPHIL_CATEGORICAL, ACTION, 1, 0};

static exphil_spec *catch_spec(void)
{
    exphil_spec *spec = EDGE(exphil_spec, EXPHIL_SPEC_INIT);
    spec->layout = "catch", spec->codec = "catch", spec->float_count = 2;
    spec->head_count = 1, spec->heads = &move;
    return spec;
}

static void show(const game *g, float *floats)
{
    floats[0] = g->ball;
    floats[1] = g->own;
}

static int32_t catch_reset(void *user, int64_t lane, uint64_t seed, float *floats, int32_t *ids)
{
    game *g = (game *)user + lane;
    (void)ids;
    g->ball = (float)(seed % 17) / 8.0f - 1.0f;
    g->own = (float)(seed % 13) / 6.0f - 1.0f;
    g->frame = 0;
    show(g, floats);
    return 0;
}

static int32_t catch_step(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                          int32_t *ids, float *reward, uint8_t *end)
{
    (void)ids;
    for (int64_t i = 0; i < count; i++) {
        game *g = (game *)user + first + i;
        g->own += 0.125f * (float)(actions[i] - 1);
        float apart = g->own < g->ball ? g->ball - g->own : g->own - g->ball;
        reward[i] = apart < 0.25f ? 1.0f : 0.0f;
        end[i] = ++g->frame < ENDS ? EXPHIL_GOES_ON : g->ball > 0 ? EXPHIL_OVER : EXPHIL_CUT_OFF;
        show(g, floats + 2 * i);
    }
    return 0;
}

static int32_t catch_save(void *user, int64_t lane, void *state)
{
    memcpy(state, (game *)user + lane, sizeof(game));
    return 0;
}

static int32_t catch_load(void *user, int64_t lane, const void *state)
{
    memcpy((game *)user + lane, state, sizeof(game));
    return 0;
}

static exphil_world *catch_world(game *of, const exphil_spec *spec)
{
    exphil_world world = {.struct_size = sizeof world,
                          .user = of,
                          .spec = spec,
                          .lanes = LANES,
                          .seats = 1,
                          .state_bytes = sizeof(game),
                          .reset = catch_reset,
                          .step = catch_step,
                          .save = catch_save,
                          .load = catch_load};
    return EDGE_OF(world);
}

/* ---- a run -------------------------------------------------------------------------------------------------- */

typedef struct run {
    exphil_model *model;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    exphil_rollout *rollout;
    exphil_learner *learner;
} run;

static exphil_rollout *make_rollout(const exphil_model *model, int64_t streams)
{
    exphil_session_config *session = EDGE(exphil_session_config, EXPHIL_SESSION_CONFIG_INIT);
    exphil_rollout_config *config = EDGE(exphil_rollout_config, EXPHIL_ROLLOUT_CONFIG_INIT);
    exphil_rollout *rollout = NULL;
    session->streams = streams;
    session->seed = 6;
    config->time = TIME;
    config->seed = 7;
    DONE(exphil_rollout_create(model, session, config, &rollout, error));
    return rollout;
}

static void begin(run *r, exphil_context *context, const exphil_spec *spec, int taught)
{
    exphil_model_config *config = task_config();
    exphil_trainer_config *training = EDGE(exphil_trainer_config, EXPHIL_TRAINER_CONFIG_INIT);
    exphil_learner_config *learning = EDGE(exphil_learner_config, EXPHIL_LEARNER_CONFIG_INIT);
    config->spec = spec;
    config->no_previous_action = 1;
    config->value = EXPHIL_VALUE_SHARED;
    training->as_played = 1;
    learning->epochs = 2;
    learning->half_life_frames = 8;
    learning->entropy = 0.01;
    learning->imitation = 0.5;
    learning->to_teacher = taught ? 0.05 : 0;
    r->model = task_model(context, config);
    r->optimizer = task_optimizer(r->model);
    DONE(exphil_trainer_create(r->model, r->optimizer, NULL, training, &r->trainer, error));
    DONE(exphil_learner_create(r->trainer, taught ? r->model : NULL, learning, &r->learner, error));
    r->rollout = make_rollout(r->model, LANES);
}

static void finish(run *r)
{
    exphil_learner_destroy(r->learner);
    exphil_rollout_destroy(r->rollout);
    exphil_trainer_destroy(r->trainer);
    exphil_optimizer_destroy(r->optimizer);
    exphil_model_destroy(r->model);
}

static exphil_learner_metrics *chunk(run *r, const exphil_world *world)
{
    exphil_learner_metrics *metrics = EDGE(exphil_learner_metrics, EXPHIL_LEARNER_METRICS_INIT);
    DONE(exphil_rollout_run(r->rollout, world, error));
    DONE(exphil_learner_update(r->learner, r->rollout, metrics, error));
    CHECK(metrics->recomputed == 0 && metrics->rows > 0 && metrics->entropy > 0);
    return metrics;
}

static void digest_run(const run *r)
{
    exphil_model *model = NULL;
    DONE(exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS, &model, error));
    digest_weights(model);
    exphil_model_destroy(model);
}

/* Its second half is played again from the checkpoint, by other objects and games. */
static void own_world(exphil_context *context, const exphil_spec *spec)
{
    game games[2][LANES];
    exphil_world *world[2] = {catch_world(games[0], spec), catch_world(games[1], spec)};
    exphil_learner_metrics *metrics[CHUNKS];
    run first, again;
    begin(&first, context, spec, 1);
    begin(&again, context, spec, 1);
    for (int i = 0; i < CHUNKS; i++) {
        metrics[i] = chunk(&first, world[0]);
        DIGEST(metrics[i]);
        if (i + 1 == KEPT) DONE(exphil_learner_save(first.learner, first.rollout, world[0], "learnt", error));
    }
    CHECK(metrics[CHUNKS - 1]->chunks == CHUNKS && metrics[CHUNKS - 1]->episodes > 0);
    digest_run(&first);
    digest_end("learnt");
    DONE(exphil_learner_resume(again.learner, again.rollout, world[1], "learnt", error));
    for (int i = KEPT; i < CHUNKS; i++) {
        exphil_learner_metrics *same = chunk(&again, world[1]);
        CHECK(memcmp(same, metrics[i], sizeof *same) == 0);
    }
    CHECK(memcmp(games[0], games[1], sizeof games[0]) == 0);
    exphil_world_destroy(world[0]); /* it has no destroy, and is zero then */
    CHECK(!world[0]->struct_size && !world[0]->step);
    finish(&first);
    finish(&again);
}

static void library_world(exphil_context *context)
{
    exphil_world *world = EDGE(exphil_world, {0}), *same = EDGE(exphil_world, {0});
    run r;
    same->struct_size = sizeof *same;
    DONE(exphil_world_create(context, "cartpole", LANES, world, error));
    DONE(exphil_world_create(context, "cartpole", LANES, same, error));
    CHECK(world->lanes == LANES && world->seats == 1 && world->state_bytes == same->state_bytes);
    CHECK(world->struct_size == sizeof *world && same->struct_size == sizeof *same);
    begin(&r, context, world->spec, 0);
    for (int i = 0; i < CHUNKS; i++) {
        exphil_learner_metrics *metrics = chunk(&r, world);
        CHECK(metrics->reward > 0);
        DIGEST(metrics);
    }
    digest_run(&r);
    digest_end("cartpole");
    finish(&r);
    exphil_world_destroy(world);
    exphil_world_destroy(same);
    CHECK(!world->user && !same->user);
    CHECK(exphil_world_create(context, "chess", LANES, world, error) == EXPHIL_E_INVALID);
}

/* ---- blocks ------------------------------------------------------------------------------------------------- */

/* A chunk of half of the streams, by a host that now and then decides itself. */
static void play_chunk(exphil_rollout *rollout, game *games, int64_t streams)
{
    exphil_status status = EXPHIL_OK;
    float floats[LANES * 2], reward[LANES];
    uint8_t end[LANES];
    for (int64_t i = 0; i < streams; i++) catch_reset(games, i, (uint64_t)i + 20, floats + 2 * i, NULL);
    for (int64_t t = 0; status == EXPHIL_OK; t++) {
        int32_t actions[LANES], other = 2;
        DONE(exphil_rollout_step(rollout, floats, NULL, actions));
        if (t % 5 == 1) {
            DONE(exphil_session_override(exphil_rollout_session(rollout), 0, &other));
            actions[0] = other;
        }
        catch_step(games, 0, streams, actions, floats, NULL, reward, end);
        status = exphil_rollout_reward(rollout, reward, end, floats, NULL);
        for (int64_t i = 0; i < streams; i++)
            if (end[i]) catch_reset(games, i, (uint64_t)(t + i), floats + 2 * i, NULL);
    }
    CHECK(status == EXPHIL_END);
}

static void blocks(exphil_context *context, const exphil_spec *spec)
{
    exphil_block_info *info = EDGE(exphil_block_info, EXPHIL_BLOCK_INFO_INIT);
    exphil_learner_metrics *metrics = EDGE(exphil_learner_metrics, EXPHIL_LEARNER_METRICS_INIT);
    exphil_rollout *player;
    exphil_model *model = NULL;
    game games[LANES];
    run r;
    begin(&r, context, spec, 0);
    player = make_rollout(r.model, LANES / 2);
    size_t size = exphil_rollout_block_size(player);
    void *block = malloc(size);
    CHECK(block);
    for (int i = 0; i < 2; i++) {
        play_chunk(player, games, LANES / 2);
        DONE(exphil_rollout_block_save(player, block, size, error));
        DONE(exphil_block_query(block, size, info, error));
        CHECK(info->streams == LANES / 2 && info->time == TIME && info->spec_hash == exphil_spec_hash(spec));
        DIGEST(info);
        DONE(exphil_rollout_block_take(r.rollout, 0, EXPHIL_BLOCK_CURRENT, block, size, error));
        CHECK(exphil_rollout_block_take(r.rollout, 2, EXPHIL_BLOCK_CURRENT, block, size, error) ==
              EXPHIL_END);
        DONE(exphil_learner_update(r.learner, r.rollout, metrics, error));
        CHECK(metrics->imitated > 0 && metrics->recomputed == 0);
        DIGEST(metrics);
        DONE(exphil_trainer_model(r.trainer, EXPHIL_WEIGHTS, &model, error));
        DONE(exphil_rollout_adopt(player, model, error));
        exphil_model_destroy(model);
    }
    ((unsigned char *)block)[size / 2] ^= 1;
    CHECK(exphil_block_query(block, size, info, error) == EXPHIL_E_FORMAT);
    digest_run(&r);
    digest_end("blocks");
    free(block);
    exphil_rollout_destroy(player);
    finish(&r);
}

void learn(exphil_context *context)
{
    exphil_spec *spec = catch_spec();
    own_world(context, spec);
    library_world(context);
    blocks(context, spec);
}

#else
typedef int nothing_before_0_2;
#endif
