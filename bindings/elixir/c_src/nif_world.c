/* Worlds: the library's own games, which it steps without asking the VM; opponents in them, and matches. A game that is
 * written in Elixir is no world: a scheduler cannot wait for a process. Its process plays with nif_rollout.c. */
#include "nif.h"

void destroy_world(void *object)
{
    struct world *world = object;
    exphil_world_destroy(&world->of);
    if (world->beneath) give_back(world->beneath);
    enif_free(world);
}

static struct world *world_new(call *c)
{
    struct world *world = failed(c) ? NULL : enif_alloc(sizeof *world);
    if (world)
        *world = (struct world){.of = {.struct_size = sizeof world->of}};
    else
        fail(c, EXPHIL_E_MEMORY, "could not make a world");
    return world;
}

/* Gives the handle, or drops what has failed. */
static ERL_NIF_TERM give_world(call *c, struct world *world, handle *relative)
{
    if (failed(c) && world) enif_free(world);
    return finish_ok(c, make_handle(c, WORLD, world, NULL, relative));
}

/* context, name, lanes. */
NIF(nif_world_create)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *context = hold(&c, argv[0], CONTEXT);
    const char *name = read_text(&c, argv[1], "name");
    int64_t lanes = read_integer(&c, argv[2], "lanes", INT64_MIN, INT64_MAX);
    struct world *world = world_new(&c);
    if (world) {
        world->context = context->object;
        done(&c, exphil_world_create(context->object, name, lanes, &world->of, &c.error));
    }
    return give_world(&c, world, context);
}

/* The models of a list, which this call then holds. */
static int64_t hold_models(call *c, ERL_NIF_TERM list, const exphil_model **models)
{
    ERL_NIF_TERM each;
    unsigned count = 0;
    if (!failed(c) && (!enif_get_list_length(c->env, list, &count) || count > OPPONENTS_MAX))
        fail(c, EXPHIL_E_INVALID, "opponents: not a list of at most %d", OPPONENTS_MAX);
    for (int64_t i = 0; !failed(c) && enif_get_list_cell(c->env, list, &each, &list); i++) {
        const handle *model = hold(c, each, MODEL);
        if (model) models[i] = model->object;
    }
    return count;
}

/* world, models, seed. The world beneath stays in use until the new one is gone. */
NIF(nif_world_against)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    const exphil_model *models[OPPONENTS_MAX] = {NULL};
    ErlNifUInt64 seed = 0;
    int64_t count = hold_models(&c, argv[1], models);
    handle *beneath = hold(&c, argv[0], WORLD);
    if (!failed(&c) && !enif_get_uint64(env, argv[2], &seed))
        fail(&c, EXPHIL_E_INVALID, "seed: not an integer in 0..2^64-1");
    struct world *world = world_new(&c);
    if (!world) return finish(&c, 0);
    const struct world *of = beneath->object;
    world->context = of->context;
    if (done(&c, exphil_world_against(of->context, &of->of, models, count, seed, &world->of, &c.error))) {
        world->beneath = beneath;
        enif_keep_resource(beneath);
        c.held_count--; /* it was held last: what was entered is the new world's now */
    }
    return give_world(&c, world, beneath);
}

/* world, index, model or nil. */
NIF(nif_world_opponent)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_record record = EXPHIL_RECORD_INIT;
    handle *world = hold(&c, argv[0], WORLD);
    int64_t index = read_integer(&c, argv[1], "index", INT64_MIN, INT64_MAX);
    const handle *model = enif_is_identical(argv[2], atom_nil) ? NULL : hold(&c, argv[2], MODEL);
    if (!failed(&c))
        done(&c, exphil_world_opponent(&((struct world *)world->object)->of, index,
                                       model ? model->object : NULL, &record, &c.error));
    return finish_ok(&c, make_record(env, &opponent_record, &record));
}

NIF(nif_world_info)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *world = hold(&c, argv[0], WORLD);
    if (!world) return finish(&c, 0);
    const exphil_world *of = &((const struct world *)world->object)->of;
    ERL_NIF_TERM map = with_key(env, enif_make_new_map(env), "lanes", enif_make_int64(env, of->lanes));
    map = with_key(env, map, "seats", enif_make_int64(env, of->seats));
    map = with_key(env, map, "streams", enif_make_int64(env, of->lanes * of->seats));
    map = with_key(env, map, "state_bytes", enif_make_uint64(env, of->state_bytes));
    return finish_ok(&c, with_key(env, map, "spec", make_spec(env, of->spec)));
}

/* ---- played by hand ---------------------------------------------------------------------------------------- */

static bool played(call *c, const char *what, int32_t code)
{
    return code == 0 || fail(c, EXPHIL_E_IO, "the world's %s failed with %d", what, (int)code);
}

/* The world of a call, and a lane of it. */
static const exphil_world *lane_of(call *c, const ERL_NIF_TERM argv[], int64_t *lane)
{
    handle *world = hold(c, argv[0], WORLD);
    if (!world) return NULL;
    const exphil_world *of = &((const struct world *)world->object)->of;
    *lane = read_integer(c, argv[1], "lane", 0, of->lanes - 1);
    return failed(c) ? NULL : of;
}

/* world, lane, seed. */
NIF(nif_world_reset)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    ErlNifUInt64 seed = 0;
    int64_t lane = 0;
    const exphil_world *of = lane_of(&c, argv, &lane);
    if (of && !enif_get_uint64(env, argv[2], &seed))
        fail(&c, EXPHIL_E_INVALID, "seed: not an integer in 0..2^64-1");
    if (failed(&c)) return finish(&c, 0);
    ERL_NIF_TERM floats, ids;
    void *f = enif_make_new_binary(env, (size_t)(of->seats * of->spec->float_count) * sizeof(float), &floats);
    void *k = enif_make_new_binary(env, (size_t)(of->seats * of->spec->id_count) * sizeof(int32_t), &ids);
    played(&c, "reset", of->reset(of->user, lane, seed, f, k));
    return finish_ok(&c, make_pair(env, floats, ids));
}

/* A world trusts that actions have values that there are. */
static bool check_actions(call *c, const exphil_spec *spec, const int32_t *actions, int64_t count)
{
    for (int64_t i = 0; !failed(c) && i < count; i++) {
        const exphil_head_spec *head = &spec->heads[i % spec->head_count];
        int64_t limit = head->kind == EXPHIL_BERNOULLI ? (int64_t)1 << head->count : head->count;
        if (actions[i] < 0 || actions[i] >= limit)
            fail(c, EXPHIL_E_INVALID, "actions: element %lld is %d, which %s has not", (long long)i,
                 (int)actions[i], head->name);
    }
    return !failed(c);
}

/* world, actions. */
NIF(nif_world_step)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *world = hold(&c, argv[0], WORLD);
    if (!world) return finish(&c, 0);
    const exphil_world *of = &((const struct world *)world->object)->of;
    const size_t streams = (size_t)(of->lanes * of->seats);
    const int64_t count = (int64_t)streams * of->spec->head_count;
    const int32_t *actions = read_array(&c, argv[1], "actions", count, sizeof *actions);
    if (failed(&c) || !check_actions(&c, of->spec, actions, count)) return finish(&c, 0);
    const char *const names[] = {"floats", "ids", "reward", "end"};
    const size_t bytes[] = {streams * (size_t)of->spec->float_count * sizeof(float),
                            streams * (size_t)of->spec->id_count * sizeof(int32_t), streams * sizeof(float),
                            (size_t)of->lanes};
    ERL_NIF_TERM map = enif_make_new_map(env), binary;
    void *to[4];
    for (int i = 0; i < 4; i++) {
        to[i] = enif_make_new_binary(env, bytes[i], &binary);
        map = with_key(env, map, names[i], binary);
    }
    played(&c, "step", of->step(of->user, 0, of->lanes, actions, to[0], to[1], to[2], to[3]));
    return finish_ok(&c, map);
}

static bool can_be_saved(call *c, const exphil_world *of)
{
    return of->state_bytes || fail(c, EXPHIL_E_UNSUPPORTED, "the world cannot be saved");
}

NIF(nif_world_save)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    ERL_NIF_TERM state;
    int64_t lane = 0;
    const exphil_world *of = lane_of(&c, argv, &lane);
    if (!of || !can_be_saved(&c, of)) return finish(&c, 0);
    void *to = enif_make_new_binary(env, of->state_bytes, &state);
    played(&c, "save", of->save(of->user, lane, to));
    return finish_ok(&c, state);
}

NIF(nif_world_load)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    int64_t lane = 0;
    const exphil_world *of = lane_of(&c, argv, &lane);
    if (!of || !can_be_saved(&c, of)) return finish(&c, 0);
    const void *state = read_array(&c, argv[2], "state", (int64_t)of->state_bytes, 1);
    if (!failed(&c)) played(&c, "load", of->load(of->user, lane, state));
    return finish(&c, 0);
}

/* ---- matches ----------------------------------------------------------------------------------------------- */

/* a, b, world, options. */
NIF(nif_match)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_match_config config = EXPHIL_MATCH_CONFIG_INIT;
    exphil_match_result result = EXPHIL_MATCH_RESULT_INIT;
    handle *a = hold(&c, argv[0], MODEL), *b = hold(&c, argv[1], MODEL), *world = hold(&c, argv[2], WORLD);
    if (read_record(&c, argv[3], &match_config, &config))
        done(&c, exphil_match(a->object, b->object, &((struct world *)world->object)->of, &config, &result,
                              &c.error));
    return finish_ok(&c, make_record(env, &match_result, &result));
}
