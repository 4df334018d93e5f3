/* Synthetic rows for tests of datasets. */
#include "data_case.h"

#include <stdlib.h>

const exphil_spec *data_spec(void)
{
    static const exphil_id_spec ids[DATA_IDS] = {{"seven", 7, 4}, {"wide", 65536, 0}};
    static const exphil_head_spec heads[DATA_HEADS] = {{"bits", EXPHIL_BERNOULLI, 5, 1, 0},
                                                       {"class", EXPHIL_CATEGORICAL, 300, 7, 0},
                                                       {"many", EXPHIL_BERNOULLI, 31, 0, 0}};
    static const exphil_spec spec = {sizeof spec, "toy", "toy-3", DATA_FLOATS, DATA_IDS, ids,
                                     DATA_HEADS,  heads, 0};
    return &spec;
}

void data_action(int64_t episode, int64_t t, int32_t *action)
{
    if (t < 0) {
        for (int a = 0; a < DATA_HEADS; a++) action[a] = data_spec()->heads[a].neutral;
        return;
    }
    uint32_t mixed = (uint32_t)(episode * 1000003 + t * 7919) * 2654435761u;
    action[0] = (int32_t)(mixed >> 27);
    action[1] = (int32_t)((episode * 31 + t * 7) % 300);
    action[2] = (int32_t)(mixed & 0x7FFFFFFF);
}

void data_row(int64_t episode, int64_t t, float *floats, int32_t *ids, int32_t *action)
{
    floats[0] = (float)episode;
    floats[1] = (float)t;
    floats[2] = (float)(episode + t) / 3;
    floats[3] = 2.5f;
    ids[0] = (int32_t)(t % 7);
    ids[1] = (int32_t)((episode * 977 + t) % 65536);
    data_action(episode, t, action);
}

exphil_dataset *data_empty(exphil_context *context)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset *dataset = NULL;
    config.spec = data_spec();
    if (exphil_dataset_create(context, &config, &dataset, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    return dataset;
}

exphil_status data_add(exphil_dataset *dataset, int64_t episode, int64_t frames, exphil_error *error)
{
    size_t rows = (size_t)frames;
    float *floats = calloc(rows, DATA_FLOATS * sizeof *floats);
    int32_t *ids = calloc(rows, DATA_IDS * sizeof *ids),
            *actions = calloc(rows, DATA_HEADS * sizeof *actions);
    for (int64_t t = 0; t < frames; t++)
        data_row(episode, t, floats + t * DATA_FLOATS, ids + t * DATA_IDS, actions + t * DATA_HEADS);
    exphil_status status =
        exphil_dataset_add_rows(dataset, (uint64_t)(100 + episode), frames, floats, ids, actions, error);
    free(floats);
    free(ids);
    free(actions);
    return status;
}

exphil_dataset *data_make(exphil_context *context, const int64_t *frames, int64_t count)
{
    exphil_dataset *dataset = data_empty(context);
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int64_t i = 0; i < count; i++) {
        if (data_add(dataset, i, frames[i], &error) != EXPHIL_OK) fail_msg("%s", error.message);
    }
    return dataset;
}

exphil_dataset_info data_info(const exphil_dataset *dataset)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    assert_int_equal(exphil_dataset_query(dataset, &info, NULL), EXPHIL_OK);
    return info;
}

static void same_episode(const exphil_dataset *a, const exphil_dataset *b, int64_t index)
{
    exphil_episode_info x = EXPHIL_EPISODE_INFO_INIT, y = EXPHIL_EPISODE_INFO_INIT;
    assert_int_equal(exphil_dataset_episode(a, index, &x, NULL), EXPHIL_OK);
    assert_int_equal(exphil_dataset_episode(b, index, &y, NULL), EXPHIL_OK);
    if (!x.group || !y.group) x.group = y.group = 0; /* a corpus of rows does not keep it */
    assert_memory_equal(&x, &y, sizeof x);
}

void data_same(const exphil_dataset *a, const exphil_dataset *b)
{
    exphil_dataset_info x = data_info(a), y = data_info(b);
    assert_int_equal(x.frames, y.frames);
    assert_int_equal(x.episodes, y.episodes);
    assert_int_equal(x.games, y.games);
    assert_int_equal(x.constant_floats, y.constant_floats);
    assert_true(x.content_hash == y.content_hash && x.spec_hash == y.spec_hash);
    for (int64_t i = 0; i < x.episodes; i++) same_episode(a, b, i);
    static float floats[2][4096];
    static int32_t ids[2][EXPHIL_IDS_MAX], actions[2][EXPHIL_HEADS_MAX];
    for (int64_t i = 0; i < x.frames; i++) {
        assert_int_equal(exphil_dataset_frame(a, i, floats[0], ids[0], actions[0], NULL), EXPHIL_OK);
        assert_int_equal(exphil_dataset_frame(b, i, floats[1], ids[1], actions[1], NULL), EXPHIL_OK);
        assert_memory_equal(floats[0], floats[1], (size_t)x.float_count * sizeof(float));
        assert_memory_equal(ids[0], ids[1], (size_t)x.id_count * sizeof(int32_t));
        assert_memory_equal(actions[0], actions[1], (size_t)x.head_count * sizeof(int32_t));
    }
}

/* Room for a dataset's rows, with one row more that nobody may touch. */
typedef struct all_rows {
    float *floats;
    int32_t *ids, *actions;
    int64_t *episodes;
} all_rows;

static all_rows make_rows(const exphil_dataset_info *info)
{
    size_t rows = (size_t)info->frames + 1;
    all_rows made = {malloc(rows * (size_t)info->float_count * sizeof(float) + 1),
                     malloc(rows * (size_t)info->id_count * sizeof(int32_t) + 1),
                     malloc(rows * (size_t)info->head_count * sizeof(int32_t)),
                     malloc(rows * sizeof(int64_t))};
    return made;
}

static void free_rows(all_rows *rows)
{
    free(rows->floats);
    free(rows->ids);
    free(rows->actions);
    free(rows->episodes);
}

static void read_one_by_one(const exphil_dataset *dataset, const exphil_dataset_info *info, all_rows *rows)
{
    for (int64_t i = 0; i < info->frames; i++)
        assert_int_equal(exphil_dataset_frame(dataset, i, rows->floats + i * info->float_count,
                                              rows->ids + i * info->id_count,
                                              rows->actions + i * info->head_count, NULL),
                         EXPHIL_OK);
    for (int64_t e = 0; e < info->episodes; e++) {
        exphil_episode_info episode = EXPHIL_EPISODE_INFO_INIT;
        assert_int_equal(exphil_dataset_episode(dataset, e, &episode, NULL), EXPHIL_OK);
        for (int64_t t = 0; t < episode.frames; t++) rows->episodes[episode.first + t] = e;
    }
}

/* A range whose arrays are there as the bits of which say: the rows of want, and nothing behind them. */
static void check_range(const exphil_dataset *dataset, const exphil_dataset_info *info, const all_rows *want,
                        all_rows *room, int64_t first, int64_t count, int which)
{
    size_t f = (size_t)info->float_count * sizeof(float), k = (size_t)info->id_count * sizeof(int32_t),
           a = (size_t)info->head_count * sizeof(int32_t), n = (size_t)count;
    memset(room->floats, 0xA5, (n + 1) * f);
    memset(room->ids, 0xA5, (n + 1) * k);
    memset(room->actions, 0xA5, (n + 1) * a);
    memset(room->episodes, 0xA5, (n + 1) * sizeof(int64_t));
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = exphil_dataset_rows(dataset, first, count, which & 1 ? room->floats : NULL,
                                               which & 2 ? room->ids : NULL, which & 4 ? room->actions : NULL,
                                               which & 8 ? room->episodes : NULL, &error);
    if (status != EXPHIL_OK)
        fail_msg("rows %lld, %lld: %s", (long long)first, (long long)count, error.message);
    if (which & 1) assert_memory_equal(room->floats, want->floats + first * info->float_count, n * f);
    if (which & 2) assert_memory_equal(room->ids, want->ids + first * info->id_count, n * k);
    if (which & 4) assert_memory_equal(room->actions, want->actions + first * info->head_count, n * a);
    if (which & 8) assert_memory_equal(room->episodes, want->episodes + first, n * sizeof(int64_t));
    static const uint8_t untouched = 0xA5;
    const uint8_t *behind[] = {(uint8_t *)room->floats + n * f, (uint8_t *)room->ids + n * k,
                               (uint8_t *)room->actions + n * a, (uint8_t *)(room->episodes + n)};
    const size_t bytes[] = {f, k, a, sizeof(int64_t)};
    for (int i = 0; i < 4; i++)
        for (size_t b = 0; b < bytes[i]; b++) assert_int_equal(behind[i][b], untouched);
}

void data_rows_at_once(const exphil_dataset *dataset)
{
    exphil_dataset_info info = data_info(dataset);
    all_rows want = make_rows(&info), room = make_rows(&info);
    read_one_by_one(dataset, &info, &want);
    for (int which = 0; which < 16; which++) check_range(dataset, &info, &want, &room, 0, info.frames, which);
    static const int64_t lengths[] = {0, 1, 2, 255, 256, 257, 700};
    for (int64_t i = 0; i < 40; i++) {
        int64_t first = i * 7919 % (info.frames + 1), left = info.frames - first;
        int64_t count = lengths[i % 7] < left ? lengths[i % 7] : left;
        check_range(dataset, &info, &want, &room, first, count, 15);
        if (!count) continue; /* the frame that is kept for the next call is not mixed up with them */
        assert_int_equal(exphil_dataset_frame(dataset, first, room.floats, room.ids, room.actions, NULL),
                         EXPHIL_OK);
        assert_memory_equal(room.floats, want.floats + first * info.float_count,
                            (size_t)info.float_count * sizeof(float));
        assert_memory_equal(room.actions, want.actions + first * info.head_count,
                            (size_t)info.head_count * sizeof(int32_t));
    }
    free_rows(&want);
    free_rows(&room);
}
