/* Learning behind a game: a session, and the library's thread that learns from what it played. The calls of a frame run where those
 * of a session would; what waits for the thread is dirty. */
#include "nif.h"

static const char *const end_names[] = {"goes_on", "over", "cut_off", NULL};

void destroy_live(void *object)
{
    struct live *live = object;
    exphil_live_destroy(live->of);
    for (int i = 0; i < 2; i++)
        if (live->contexts[i]) enif_release_resource(live->contexts[i]);
    enif_free(live);
}

/* What the configuration points to. */
struct parts {
    exphil_session_config session;
    exphil_optimizer_config optimizer;
    exphil_trainer_config trainer;
    exphil_sampling sampling;
    exphil_learner_config learner;
    exphil_context_config context;
};

static bool given(ERL_NIF_TERM term)
{
    return !enif_is_identical(term, atom_nil);
}

/* {session, optimizer, trainer, sampling, learner, context}, of which the last three may be nil. */
static bool read_parts(call *c, ERL_NIF_TERM tuple, const exphil_model *model, struct parts *parts,
                       exphil_live_config *config, struct option *option)
{
    const ERL_NIF_TERM *of;
    int count = 0;
    if (!enif_get_tuple(c->env, tuple, &count, &of) || count != 6)
        return fail(c, EXPHIL_E_INVALID, "live: not the groups of its options");
    if (!read_session(c, of[0], model, &parts->session, option) ||
        !read_record(c, of[1], &optimizer_config, &parts->optimizer) ||
        !read_record(c, of[2], &trainer_config, &parts->trainer))
        return false;
    config->session = &parts->session;
    config->optimizer = &parts->optimizer;
    config->trainer = &parts->trainer;
    if (given(of[3])) {
        config->sampling = &parts->sampling;
        if (!done(c, exphil_model_sampling(model, &parts->sampling, &c->error)) ||
            !read_record(c, of[3], &sampling_config, &parts->sampling))
            return false;
    }
    if (given(of[4])) {
        config->learner = &parts->learner;
        if (!read_record(c, of[4], &learner_config, &parts->learner)) return false;
    }
    if (!given(of[5])) return true;
    config->context = &parts->context;
    return read_record(c, of[5], &context_config, &parts->context);
}

static struct live *live_new(call *c, const handle *dataset, const handle *teacher)
{
    struct live *live = failed(c) ? NULL : enif_alloc(sizeof *live);
    if (!live) {
        fail(c, EXPHIL_E_MEMORY, "could not make a live learner");
        return NULL;
    }
    *live = (struct live){NULL, {dataset ? dataset->context : NULL, teacher ? teacher->context : NULL}};
    for (int i = 0; i < 2; i++)
        if (live->contexts[i]) enif_keep_resource(live->contexts[i]);
    return live;
}

/* model, options, groups of options, dataset or nil, teacher or nil. */
NIF(nif_live_learner_create)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_live_config config = EXPHIL_LIVE_CONFIG_INIT;
    struct parts parts = {EXPHIL_SESSION_CONFIG_INIT, EXPHIL_OPTIMIZER_CONFIG_INIT,
                          EXPHIL_TRAINER_CONFIG_INIT, EXPHIL_SAMPLING_INIT,
                          EXPHIL_LEARNER_CONFIG_INIT, EXPHIL_CONTEXT_CONFIG_INIT};
    struct option option;
    handle *model = hold(&c, argv[0], MODEL);
    const handle *dataset = given(argv[3]) ? hold(&c, argv[3], DATASET) : NULL;
    const handle *teacher = given(argv[4]) ? hold(&c, argv[4], MODEL) : NULL;
    if (failed(&c) || !read_record(&c, argv[1], &live_config, &config) ||
        !read_parts(&c, argv[2], model->object, &parts, &config, &option))
        return finish(&c, 0);
    config.dataset = dataset ? dataset->object : NULL;
    config.teacher = teacher ? teacher->object : NULL;
    struct live *live = live_new(&c, dataset, teacher);
    if (!live || !done(&c, exphil_live_create(model->object, &config, &live->of, &c.error))) {
        if (live) destroy_live(live);
        return finish(&c, 0);
    }
    struct play *play = play_create(&c, model->context, exphil_live_session(live->of), &option);
    if (failed(&c)) {
        destroy_live(live);
        if (play) enif_free(play);
    }
    return finish_ok(&c, make_handle(&c, LIVE_LEARNER, live, play, model));
}

/* ---- a frame ----------------------------------------------------------------------------------------------- */

static exphil_live *live_of(const handle *h)
{
    return ((const struct live *)h->object)->of;
}

/* live, floats, ids, what a person presses or nil. */
static ERL_NIF_TERM step_row(call *c, handle *live, const ERL_NIF_TERM argv[])
{
    struct play *play = live->extra;
    ERL_NIF_TERM actions;
    const int32_t *person = NULL;
    const float *floats = read_array(c, argv[1], "floats", play->floats, sizeof *floats);
    const int32_t *ids = read_array(c, argv[2], "ids", play->ids, sizeof *ids);
    if (given(argv[3])) person = read_array(c, argv[3], "person", play->heads, sizeof *person);
    if (failed(c)) return finish(c, 0);
    void *to = enif_make_new_binary(c->env, (size_t)play->heads * sizeof(int32_t), &actions);
    struct cost from = cost_now(play);
    exphil_status status = exphil_live_step_row(live_of(live), floats, ids, person, to);
    track(play, from);
    stepped(c, live, status);
    return finish_ok(c, actions);
}

/* live, frame, a person's pad or nil. */
static ERL_NIF_TERM step(call *c, handle *live, const ERL_NIF_TERM argv[])
{
    struct play *play = live->extra;
    exphil_pad person = {0, 0, 0, 0, 0, 0};
    ErlNifBinary packed;
    if (!enif_inspect_binary(c->env, argv[1], &packed))
        read_frame(c, argv[1], play->frame);
    else if (packed.size != sizeof *play->frame)
        fail(c, EXPHIL_E_INVALID, "frame: %zu bytes, %zu are wanted", packed.size, sizeof *play->frame);
    else
        memcpy(play->frame, packed.data, sizeof *play->frame);
    if (given(argv[2]) && !enif_is_map(c->env, argv[2])) fail(c, EXPHIL_E_INVALID, "person: not a pad");
    if (given(argv[2])) read_record(c, argv[2], &melee_pad, &person);
    if (failed(c)) return finish(c, 0);
    struct cost from = cost_now(play);
    exphil_status status =
        exphil_live_step(live_of(live), play->frame, given(argv[2]) ? &person : NULL, play->pad);
    track(play, from);
    return finish_ok(c, stepped(c, live, status) ? make_record(c->env, &melee_pad, play->pad) : 0);
}

/* live, reward, end, floats or nil, ids or nil. */
static ERL_NIF_TERM reward(call *c, handle *live, const ERL_NIF_TERM argv[])
{
    const struct play *play = live->extra;
    const float won = (float)read_number(c, argv[1], "reward"), *floats = NULL;
    const int32_t end = read_name(c, argv[2], "ending", end_names), *ids = NULL;
    if (given(argv[3])) floats = read_array(c, argv[3], "floats", play->floats, sizeof *floats);
    if (given(argv[4])) ids = read_array(c, argv[4], "ids", play->ids, sizeof *ids);
    if (!failed(c)) stepped(c, live, exphil_live_reward(live_of(live), won, (uint8_t)end, floats, ids));
    return finish(c, 0);
}

HOT(live_learner, step_row, LIVE_LEARNER)
HOT(live_learner, step, LIVE_LEARNER)
HOT(live_learner, reward, LIVE_LEARNER)

/* ---- what came of it ----------------------------------------------------------------------------------------- */

NIF(nif_live_learner_info)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_live_info info = EXPHIL_LIVE_INFO_INIT;
    handle *live = hold(&c, argv[0], LIVE_LEARNER);
    if (!live || !done(&c, exphil_live_query(live_of(live), &info, &c.error))) return finish(&c, 0);
    ERL_NIF_TERM map = make_record(env, &live_info, &info);
    map = with_key(env, map, "failed", info.failed ? status_atom(env, info.failed) : atom_nil);
    map = with_key(env, map, "unsaved", info.unsaved ? status_atom(env, info.unsaved) : atom_nil);
    return finish_ok(&c, map);
}

NIF(nif_live_learner_settle)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *live = hold(&c, argv[0], LIVE_LEARNER);
    if (live) done(&c, exphil_live_settle(live_of(live), &c.error));
    return finish(&c, 0);
}

NIF(nif_live_learner_model)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_model *model = NULL;
    handle *live = hold(&c, argv[0], LIVE_LEARNER);
    if (live) done(&c, exphil_live_model(live_of(live), &model, &c.error));
    return finish_ok(&c, make_handle(&c, MODEL, model, NULL, live));
}

/* live, path. */
static ERL_NIF_TERM keep(ErlNifEnv *env, const ERL_NIF_TERM argv[], bool save)
{
    call c;
    call_begin(&c, env);
    handle *live = hold(&c, argv[0], LIVE_LEARNER);
    const char *path = read_text(&c, argv[1], "path");
    if (failed(&c)) return finish(&c, 0);
    done(&c, save ? exphil_live_save(live_of(live), path, &c.error)
                  : exphil_live_resume(live_of(live), path, &c.error));
    return finish(&c, 0);
}

NIF(nif_live_learner_save)
{
    (void)argc;
    return keep(env, argv, true);
}

NIF(nif_live_learner_resume)
{
    (void)argc;
    return keep(env, argv, false);
}
