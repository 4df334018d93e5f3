/* Datasets and prefetchers. Rows are binaries in the machine's byte order: floats f32, ids and actions s32. */
#include "nif.h"

static ERL_NIF_TERM give_dataset(call *c, exphil_dataset *dataset, handle *relative)
{
    return finish_ok(c, make_handle(c, DATASET, dataset, NULL, relative));
}

NIF(nif_dataset_create)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *dataset = NULL;
    handle *context = hold(&c, argv[0], CONTEXT);
    config.spec = read_spec(&c, argv[1]);
    if (!failed(&c)) done(&c, exphil_dataset_create(context->object, &config, &dataset, &c.error));
    return give_dataset(&c, dataset, context);
}

NIF(nif_dataset_open)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_dataset *dataset = NULL;
    handle *context = hold(&c, argv[0], CONTEXT);
    const char *path = read_text(&c, argv[1], "path");
    if (path) done(&c, exphil_dataset_open(context->object, path, &dataset, &c.error));
    return give_dataset(&c, dataset, context);
}

NIF(nif_dataset_save)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *dataset = hold(&c, argv[0], DATASET);
    const char *path = read_text(&c, argv[1], "path");
    if (path) done(&c, exphil_dataset_save(dataset->object, path, &c.error));
    return finish(&c, 0);
}

NIF(nif_dataset_verify)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *dataset = hold(&c, argv[0], DATASET);
    if (dataset) done(&c, exphil_dataset_verify(dataset->object, &c.error));
    return finish(&c, 0);
}

NIF(nif_dataset_add_replay)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_replay_config config = EXPHIL_REPLAY_CONFIG_INIT;
    exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
    handle *dataset = hold(&c, argv[0], DATASET);
    const char *path = read_text(&c, argv[1], "path");
    if (read_record(&c, argv[2], &replay_config, &config))
        done(&c, exphil_dataset_add_replay(dataset->object, path, &config, &result, &c.error));
    return finish_ok(&c, make_record(env, &replay_result, &result));
}

NIF(nif_dataset_add_replay_memory)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_replay_config config = EXPHIL_REPLAY_CONFIG_INIT;
    exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
    ErlNifBinary data;
    handle *dataset = hold(&c, argv[0], DATASET);
    if (read_binary(&c, argv[1], "data", &data) && read_record(&c, argv[2], &replay_config, &config))
        done(&c, exphil_dataset_add_replay_memory(dataset->object, data.data, data.size, &config, &result,
                                                  &c.error));
    return finish_ok(&c, make_record(env, &replay_result, &result));
}

NIF(nif_dataset_add_rows)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    ErlNifUInt64 game = 0;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    handle *dataset = hold(&c, argv[0], DATASET);
    if (!failed(&c) && !enif_get_uint64(env, argv[1], &game))
        fail(&c, EXPHIL_E_INVALID, "game: not an integer in 0..2^64-1");
    int64_t frames = read_integer(&c, argv[2], "frames", 1, INT32_MAX);
    if (!failed(&c)) done(&c, exphil_dataset_query(dataset->object, &info, &c.error));
    const void *floats = read_array(&c, argv[3], "floats", frames * info.float_count, sizeof(float));
    const void *ids = read_array(&c, argv[4], "ids", frames * info.id_count, sizeof(int32_t));
    const void *actions = read_array(&c, argv[5], "actions", frames * info.head_count, sizeof(int32_t));
    if (!failed(&c))
        done(&c, exphil_dataset_add_rows(dataset->object, game, frames, floats, ids, actions, &c.error));
    return finish(&c, 0);
}

NIF(nif_dataset_info)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    handle *dataset = hold(&c, argv[0], DATASET);
    if (dataset) done(&c, exphil_dataset_query(dataset->object, &info, &c.error));
    return finish_ok(&c, make_record(env, &dataset_info, &info));
}

NIF(nif_dataset_spec)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_spec spec = EXPHIL_SPEC_INIT;
    handle *dataset = hold(&c, argv[0], DATASET);
    if (!dataset || !done(&c, exphil_dataset_spec(dataset->object, &spec, &c.error))) return finish(&c, 0);
    return finish_ok(&c, make_spec(env, &spec));
}

NIF(nif_dataset_episode)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
    handle *dataset = hold(&c, argv[0], DATASET);
    int64_t index = read_integer(&c, argv[1], "index", INT64_MIN, INT64_MAX);
    if (!failed(&c)) done(&c, exphil_dataset_episode(dataset->object, index, &info, &c.error));
    return finish_ok(&c, make_record(env, &episode_info, &info));
}

NIF(nif_dataset_frame)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    handle *dataset = hold(&c, argv[0], DATASET);
    int64_t index = read_integer(&c, argv[1], "index", INT64_MIN, INT64_MAX);
    if (failed(&c) || !done(&c, exphil_dataset_query(dataset->object, &info, &c.error))) return finish(&c, 0);
    ERL_NIF_TERM floats, ids, action;
    void *f = enif_make_new_binary(env, (size_t)info.float_count * sizeof(float), &floats);
    void *k = enif_make_new_binary(env, (size_t)info.id_count * sizeof(int32_t), &ids);
    void *a = enif_make_new_binary(env, (size_t)info.head_count * sizeof(int32_t), &action);
    done(&c, exphil_dataset_frame(dataset->object, index, f, k, a, &c.error));
    return finish_ok(&c, enif_make_tuple3(env, floats, ids, action));
}

/* first, count: binaries of all columns. What is outside is refused before there is memory for it. */
NIF(nif_dataset_rows)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    handle *dataset = hold(&c, argv[0], DATASET);
    int64_t first = read_integer(&c, argv[1], "first", INT64_MIN, INT64_MAX);
    int64_t count = read_integer(&c, argv[2], "count", INT64_MIN, INT64_MAX);
    if (failed(&c) || !done(&c, exphil_dataset_query(dataset->object, &info, &c.error))) return finish(&c, 0);
    bool fits = first >= 0 && first <= info.frames && count >= 0 && count <= info.frames - first;
    size_t rows = fits ? (size_t)count : 0;
    const char *const names[] = {"floats", "ids", "actions", "episodes"};
    const size_t bytes[] = {(size_t)info.float_count * sizeof(float), (size_t)info.id_count * sizeof(int32_t),
                            (size_t)info.head_count * sizeof(int32_t), sizeof(int64_t)};
    ERL_NIF_TERM map = enif_make_new_map(env);
    void *to[4];
    for (int i = 0; i < 4; i++) {
        ERL_NIF_TERM binary;
        to[i] = enif_make_new_binary(env, rows * bytes[i], &binary);
        map = with_key(env, map, names[i], binary);
    }
    done(&c, exphil_dataset_rows(dataset->object, first, count, to[0], to[1], to[2], to[3], &c.error));
    return finish_ok(&c, map);
}

struct rewards_in {
    int32_t port, first_frame, over;
    double half_life_frames;
};
#define REWARDS(member, type) FIELD(struct rewards_in, member, type, 1, NULL, NULL)
static const field rewards_fields[] = {REWARDS(port, T_I32), REWARDS(first_frame, T_I32),
                                       REWARDS(over, T_BOOL), REWARDS(half_life_frames, T_F64)};
record rewards_map = {
    .name = "rewards", .bytes = sizeof(struct rewards_in), .fields = rewards_fields, .field_count = 4};

/* dataset, game, rewards, options. */
NIF(nif_dataset_put_rewards)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    ErlNifUInt64 game = 0;
    ErlNifBinary rewards;
    struct rewards_in in = {0, 0, 1, 0};
    handle *dataset = hold(&c, argv[0], DATASET);
    if (dataset && !enif_get_uint64(env, argv[1], &game))
        fail(&c, EXPHIL_E_INVALID, "game: not an integer in 0..2^64-1");
    if (!read_binary(&c, argv[2], "rewards", &rewards) || !read_record(&c, argv[3], &rewards_map, &in))
        return finish(&c, 0);
    int64_t count = (int64_t)(rewards.size / sizeof(float));
    const float *values = read_array(&c, argv[2], "rewards", count, sizeof *values);
    if (!failed(&c))
        done(&c, exphil_dataset_rewards_set(dataset->object, game, in.port, in.first_frame, values, count,
                                            in.over, in.half_life_frames, &c.error));
    return finish(&c, 0);
}

NIF(nif_dataset_split)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_split_config config = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_dataset *kept = NULL, *held_out = NULL;
    handle *dataset = hold(&c, argv[0], DATASET);
    if (read_record(&c, argv[1], &split_config, &config))
        done(&c, exphil_dataset_split(dataset->object, &config, &kept, &held_out, &c.error));
    if (failed(&c)) return finish(&c, 0);
    ERL_NIF_TERM first = make_handle(&c, DATASET, kept, NULL, dataset);
    if (failed(&c)) exphil_dataset_destroy(held_out);
    ERL_NIF_TERM second = make_handle(&c, DATASET, held_out, NULL, dataset);
    return finish_ok(&c, failed(&c) ? 0 : make_pair(env, first, second));
}

/* ---- prefetchers ------------------------------------------------------------------------------------------- */

NIF(nif_prefetcher_create)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_prefetcher *prefetcher = NULL;
    handle *dataset = hold(&c, argv[0], DATASET);
    if (!read_record(&c, argv[1], &sampling_config, &sampling) ||
        !done(&c, exphil_dataset_query(dataset->object, &info, &c.error)))
        return finish(&c, 0);
    struct widths *widths = enif_alloc(sizeof *widths);
    if (!widths) return fail(&c, EXPHIL_E_MEMORY, "could not make a handle"), finish(&c, 0);
    *widths = (struct widths){.floats = info.float_count,
                              .ids = info.id_count,
                              .heads = info.head_count,
                              .slots = sampling.action_slots};
    if (!done(&c, exphil_prefetcher_create(dataset->object, &sampling, &prefetcher, &c.error))) {
        enif_free(widths);
        return finish(&c, 0);
    }
    return finish_ok(&c, make_handle(&c, PREFETCHER, prefetcher, widths, dataset));
}

static ERL_NIF_TERM make_batch(ErlNifEnv *env, const exphil_batch *b, const struct widths *w)
{
    size_t rows = (size_t)(b->batch * b->time);
    const char *names[] = {"batch", "time", "epoch",   "index", "frames", "floats",
                           "ids",   "past", "actions", "mask",  "reset"};
    ERL_NIF_TERM keys[11], map;
    ERL_NIF_TERM values[] = {
        enif_make_int64(env, b->batch),
        enif_make_int64(env, b->time),
        enif_make_int64(env, b->epoch),
        enif_make_int64(env, b->index),
        enif_make_int64(env, b->frames),
        make_binary(env, b->floats, rows * (size_t)w->floats * sizeof(float)),
        make_binary(env, b->ids, rows * (size_t)w->ids * sizeof(int32_t)),
        make_binary(env, b->past, rows * (size_t)(w->heads * w->slots) * sizeof(int32_t)),
        make_binary(env, b->actions, rows * (size_t)w->heads * sizeof(int32_t)),
        make_binary(env, b->mask, rows * sizeof(float)),
        make_binary(env, b->reset, rows)};
    for (int i = 0; i < 11; i++) keys[i] = atom(env, names[i]);
    enif_make_map_from_arrays(env, keys, values, 11, &map);
    return b->returns ? with_key(env, map, "returns", make_binary(env, b->returns, rows * sizeof(float)))
                      : map;
}

NIF(nif_prefetcher_next)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_batch batch = EXPHIL_BATCH_INIT;
    handle *prefetcher = hold(&c, argv[0], PREFETCHER);
    if (!prefetcher) return finish(&c, 0);
    exphil_status status = exphil_prefetcher_next(prefetcher->object, &batch, &c.error);
    if (status == EXPHIL_END) return finish(&c, atom(env, "end"));
    if (!done(&c, status)) return finish(&c, 0);
    return finish_ok(&c, make_batch(env, &batch, prefetcher->extra));
}

NIF(nif_prefetcher_seek)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *prefetcher = hold(&c, argv[0], PREFETCHER);
    int64_t epoch = read_integer(&c, argv[1], "epoch", INT64_MIN, INT64_MAX);
    int64_t index = read_integer(&c, argv[2], "index", INT64_MIN, INT64_MAX);
    if (!failed(&c)) done(&c, exphil_prefetcher_seek(prefetcher->object, epoch, index, &c.error));
    return finish(&c, 0);
}

NIF(nif_prefetcher_info)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
    handle *prefetcher = hold(&c, argv[0], PREFETCHER);
    if (prefetcher) done(&c, exphil_prefetcher_query(prefetcher->object, &info, &c.error));
    return finish_ok(&c, make_record(env, &prefetcher_info, &info));
}
