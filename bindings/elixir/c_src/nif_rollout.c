/* Rollouts: sessions that record what they play, by themselves in a world or for a process that steps its own game; and the
 * learner. Where the calls of a frame run is told as for sessions. */
#include "nif.h"

static const char *const block_weights_names[] = {"current", "any", NULL};

/* model, options of a session, options of a rollout. */
NIF(nif_rollout_create)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config config = EXPHIL_ROLLOUT_CONFIG_INIT;
    exphil_rollout *rollout = NULL;
    struct option option;
    handle *model = hold(&c, argv[0], MODEL);
    if (!model || !read_session(&c, argv[1], model->object, &session, &option) ||
        !read_record(&c, argv[2], &rollout_config, &config) ||
        !done(&c, exphil_rollout_create(model->object, &session, &config, &rollout, &c.error)))
        return finish(&c, 0);
    struct play *play = play_create(&c, model->context, exphil_rollout_session(rollout), &option);
    if (failed(&c)) {
        exphil_rollout_destroy(rollout);
        if (play) enif_free(play);
    }
    return finish_ok(&c, make_handle(&c, ROLLOUT, rollout, play, model));
}

/* rollout, floats, ids. */
static ERL_NIF_TERM step(call *c, handle *rollout, const ERL_NIF_TERM argv[])
{
    const struct play *play = rollout->extra;
    ERL_NIF_TERM actions;
    const float *floats = read_array(c, argv[1], "floats", play->streams * play->floats, sizeof *floats);
    const int32_t *ids = read_array(c, argv[2], "ids", play->streams * play->ids, sizeof *ids);
    if (failed(c)) return finish(c, 0);
    void *to =
        enif_make_new_binary(c->env, (size_t)(play->streams * play->heads) * sizeof(int32_t), &actions);
    stepped(c, rollout, exphil_rollout_step(rollout->object, floats, ids, to));
    return finish_ok(c, actions);
}

/* rollout, reward, end, floats or nil, ids or nil. */
static ERL_NIF_TERM reward(call *c, handle *rollout, const ERL_NIF_TERM argv[])
{
    const struct play *play = rollout->extra;
    const float *won = read_array(c, argv[1], "reward", play->streams, sizeof *won), *floats = NULL;
    const uint8_t *end = read_array(c, argv[2], "end", play->streams, 1);
    const int32_t *ids = NULL;
    if (!enif_is_identical(argv[3], atom_nil))
        floats = read_array(c, argv[3], "floats", play->streams * play->floats, sizeof *floats);
    if (!enif_is_identical(argv[4], atom_nil))
        ids = read_array(c, argv[4], "ids", play->streams * play->ids, sizeof *ids);
    if (failed(c)) return finish(c, 0);
    exphil_status status = exphil_rollout_reward(rollout->object, won, end, floats, ids);
    if (!stepped(c, rollout, status)) return finish(c, 0);
    return finish_ok(c, atom(c->env, status == EXPHIL_END ? "full" : "more"));
}

HOT(rollout, step, ROLLOUT)
HOT(rollout, reward, ROLLOUT)

static exphil_world *world_of(const handle *h)
{
    return &((struct world *)h->object)->of;
}

NIF(nif_rollout_run)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *rollout = hold(&c, argv[0], ROLLOUT), *world = hold(&c, argv[1], WORLD);
    if (!failed(&c)) done(&c, exphil_rollout_run(rollout->object, world_of(world), &c.error));
    return finish(&c, 0);
}

/* rollout, model or nil. */
NIF(nif_rollout_adopt)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *rollout = hold(&c, argv[0], ROLLOUT);
    const handle *model = enif_is_identical(argv[1], atom_nil) ? NULL : hold(&c, argv[1], MODEL);
    if (!failed(&c)) done(&c, exphil_rollout_adopt(rollout->object, model ? model->object : NULL, &c.error));
    return finish(&c, 0);
}

/* ---- blocks ------------------------------------------------------------------------------------------------ */

NIF(nif_block_save)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    ERL_NIF_TERM block;
    handle *rollout = hold(&c, argv[0], ROLLOUT);
    if (!rollout) return finish(&c, 0);
    size_t bytes = exphil_rollout_block_size(rollout->object);
    void *to = enif_make_new_binary(env, bytes, &block);
    done(&c, exphil_rollout_block_save(rollout->object, to, bytes, &c.error));
    return finish_ok(&c, block);
}

/* rollout, first stream, which weights, block. */
NIF(nif_block_take)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    ErlNifBinary block;
    exphil_status status = EXPHIL_OK;
    handle *rollout = hold(&c, argv[0], ROLLOUT);
    int64_t first = read_integer(&c, argv[1], "first_stream", INT64_MIN, INT64_MAX);
    int32_t weights = read_name(&c, argv[2], "weights", block_weights_names);
    if (!read_binary(&c, argv[3], "block", &block)) return finish(&c, 0);
    status = exphil_rollout_block_take(rollout->object, first, weights, block.data, block.size, &c.error);
    if (!done(&c, status)) return finish(&c, 0);
    return finish_ok(&c, atom(env, status == EXPHIL_END ? "full" : "more"));
}

NIF(nif_block_info)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_block_info info = EXPHIL_BLOCK_INFO_INIT;
    ErlNifBinary block;
    if (read_binary(&c, argv[0], "block", &block))
        done(&c, exphil_block_query(block.data, block.size, &info, &c.error));
    return finish_ok(&c, make_record(env, &block_info, &info));
}

/* ---- the learner ------------------------------------------------------------------------------------------- */

/* trainer, teacher or nil, options. */
NIF(nif_learner_create)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_learner_config config = EXPHIL_LEARNER_CONFIG_INIT;
    exphil_learner *learner = NULL;
    handle *trainer = hold(&c, argv[0], TRAINER);
    const handle *teacher = enif_is_identical(argv[1], atom_nil) ? NULL : hold(&c, argv[1], MODEL);
    if (read_record(&c, argv[2], &learner_config, &config))
        done(&c, exphil_learner_create(trainer->object, teacher ? teacher->object : NULL, &config, &learner,
                                       &c.error));
    return finish_ok(&c, make_handle(&c, LEARNER, learner, NULL, trainer));
}

NIF(nif_learner_update)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_learner_metrics metrics = EXPHIL_LEARNER_METRICS_INIT;
    handle *learner = hold(&c, argv[0], LEARNER), *rollout = hold(&c, argv[1], ROLLOUT);
    if (!failed(&c)) done(&c, exphil_learner_update(learner->object, rollout->object, &metrics, &c.error));
    return finish_ok(&c, make_record(env, &learner_metrics, &metrics));
}

/* learner, rollout, world or nil, path. */
static ERL_NIF_TERM keep(ErlNifEnv *env, const ERL_NIF_TERM argv[], bool save)
{
    call c;
    call_begin(&c, env);
    handle *learner = hold(&c, argv[0], LEARNER), *rollout = hold(&c, argv[1], ROLLOUT);
    const handle *held = enif_is_identical(argv[2], atom_nil) ? NULL : hold(&c, argv[2], WORLD);
    const exphil_world *world = held ? world_of(held) : NULL;
    const char *path = read_text(&c, argv[3], "path");
    if (failed(&c)) return finish(&c, 0);
    done(&c, save ? exphil_learner_save(learner->object, rollout->object, world, path, &c.error)
                  : exphil_learner_resume(learner->object, rollout->object, world, path, &c.error));
    return finish(&c, 0);
}

NIF(nif_learner_save)
{
    (void)argc;
    return keep(env, argv, true);
}

NIF(nif_learner_resume)
{
    (void)argc;
    return keep(env, argv, false);
}
