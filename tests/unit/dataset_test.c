/* Datasets of synthetic rows: what goes in comes out, bad rows are refused by place, a failed addition
 * leaves no trace, and the hash of the content follows the rows and nothing else. */
#include "data_case.h"

#include "data/dataset.h"

#include <math.h>
#include <stdlib.h>

static void test_rows_come_back(void **state)
{
    /* Lengths around 64, where a page of the frame index ends. */
    static const int64_t frames[] = {1, 1, 62, 63, 64, 65, 1, 200, 1, 1, 1, 128, 3};
    enum { COUNT = sizeof frames / sizeof *frames };
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, frames, COUNT);
    int64_t first = 0;
    for (int64_t e = 0; e < COUNT; e++) {
        exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
        assert_int_equal(exphil_dataset_episode(dataset, e, &info, NULL), EXPHIL_OK);
        assert_int_equal(info.first, first);
        assert_int_equal(info.frames, frames[e]);
        assert_int_equal(info.game, 100 + e);
        assert_int_equal(info.port, 0);
        assert_int_equal(info.character, -1);
        assert_int_equal(info.opponent_character, -1);
        for (int64_t t = 0; t < frames[e]; t++) {
            float floats[DATA_FLOATS], want[DATA_FLOATS];
            int32_t ids[DATA_IDS], want_ids[DATA_IDS], action[DATA_HEADS], want_action[DATA_HEADS];
            data_row(e, t, want, want_ids, want_action);
            assert_int_equal(exphil_dataset_frame(dataset, first + t, floats, ids, action, NULL), EXPHIL_OK);
            assert_memory_equal(floats, want, sizeof want);
            assert_memory_equal(ids, want_ids, sizeof want_ids);
            assert_memory_equal(action, want_action, sizeof want_action);
            assert_int_equal(xph_episode_of(dataset, first + t), e);
        }
        first += frames[e];
    }
    exphil_dataset_info info = data_info(dataset);
    assert_int_equal(info.frames, first);
    assert_int_equal(info.episodes, COUNT);
    assert_int_equal(info.games, COUNT);
    assert_int_equal(info.float_count, DATA_FLOATS);
    assert_int_equal(info.id_count, DATA_IDS);
    assert_int_equal(info.head_count, DATA_HEADS);
    assert_int_equal(info.constant_floats, 1);
    assert_string_equal(info.layout, "toy");
    assert_string_equal(info.codec, "toy-3");
    assert_true(info.spec_hash == exphil_spec_hash(data_spec()));
    assert_int_equal(exphil_dataset_frame(dataset, first - 1, NULL, NULL, NULL, NULL), EXPHIL_OK);
    assert_int_equal(exphil_dataset_frame(dataset, first, NULL, NULL, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_frame(dataset, -1, NULL, NULL, NULL, NULL), EXPHIL_E_INVALID);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static void test_rows_at_once(void **state)
{
    static const int64_t frames[] = {1, 1, 255, 256, 257, 1, 700, 3};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, frames, sizeof frames / sizeof *frames);
    exphil_split_config split = {sizeof split, 0.3, 0, EXPHIL_SPLIT_TIME, 0};
    exphil_dataset *kept = NULL, *held = NULL, *empty = data_empty(context);
    data_rows_at_once(dataset);
    assert_int_equal(exphil_dataset_split(dataset, &split, &kept, &held, NULL), EXPHIL_OK);
    data_rows_at_once(held); /* its episodes are the ends of others' */
    assert_int_equal(exphil_dataset_rows(empty, 0, 0, NULL, NULL, NULL, NULL, NULL), EXPHIL_OK);
    exphil_dataset_destroy(empty);
    exphil_dataset_destroy(kept);
    exphil_dataset_destroy(held);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* Games are counted once however their episodes lie. */
static void test_games(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_empty(context);
    static const uint64_t games[] = {9, 3, 9, UINT64_MAX, 0, 3, 7, 9};
    for (size_t i = 0; i < sizeof games / sizeof *games; i++) {
        float floats[DATA_FLOATS];
        int32_t ids[DATA_IDS], action[DATA_HEADS];
        data_row((int64_t)i, 0, floats, ids, action);
        assert_int_equal(exphil_dataset_add_rows(dataset, games[i], 1, floats, ids, action, NULL), EXPHIL_OK);
    }
    assert_int_equal(data_info(dataset).games, 5);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* Adds three good rows of which one value was made bad; the message must say where. */
static void refuse(exphil_dataset *dataset, const float *floats, const int32_t *ids, const int32_t *actions,
                   exphil_status status, const char *text)
{
    exphil_dataset_info before = data_info(dataset);
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_dataset_add_rows(dataset, 1, 3, floats, ids, actions, &error), status);
    assert_int_equal(error.status, status);
    assert_says(&error, text);
    exphil_dataset_info after = data_info(dataset);
    assert_memory_equal(&before, &after, sizeof before);
}

static void test_bad_rows(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, (const int64_t[]){5, 6}, 2);
    float floats[3 * DATA_FLOATS];
    int32_t ids[3 * DATA_IDS], actions[3 * DATA_HEADS];
    for (int t = 0; t < 3; t++)
        data_row(4, t, floats + t * DATA_FLOATS, ids + t * DATA_IDS, actions + t * DATA_HEADS);
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        float kept = floats[2 * DATA_FLOATS + 1];
        floats[2 * DATA_FLOATS + 1] = bad[i];
        refuse(dataset, floats, ids, actions, EXPHIL_E_NUMERIC, "row 2: float 1");
        floats[2 * DATA_FLOATS + 1] = kept;
    }
    ids[1 * DATA_IDS] = 7;
    refuse(dataset, floats, ids, actions, EXPHIL_E_INVALID, "row 1: id 0 (seven) is 7, must be 0..6");
    ids[1 * DATA_IDS] = -1;
    refuse(dataset, floats, ids, actions, EXPHIL_E_INVALID, "row 1: id 0 (seven) is -1");
    ids[1 * DATA_IDS] = 0;
    actions[2 * DATA_HEADS + 1] = 300;
    refuse(dataset, floats, ids, actions, EXPHIL_E_INVALID, "row 2: action head class is 300");
    actions[2 * DATA_HEADS + 1] = 256 + 300; /* would look fine after packing into a byte */
    refuse(dataset, floats, ids, actions, EXPHIL_E_INVALID, "class is 556");
    actions[2 * DATA_HEADS + 1] = 299;
    actions[0] = 32;
    refuse(dataset, floats, ids, actions, EXPHIL_E_INVALID, "row 0: action head bits is 32");
    actions[0] = 31;
    actions[2] = -1;
    refuse(dataset, floats, ids, actions, EXPHIL_E_INVALID, "row 0: action head many is -1");
    actions[2] = INT32_MAX;
    refuse(dataset, NULL, ids, actions, EXPHIL_E_INVALID, "floats is NULL");
    refuse(dataset, floats, NULL, actions, EXPHIL_E_INVALID, "ids is NULL");
    refuse(dataset, floats, ids, NULL, EXPHIL_E_INVALID, "actions is NULL");
    assert_int_equal(exphil_dataset_add_rows(dataset, 1, 0, floats, ids, actions, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_add_rows(dataset, 1, -1, floats, ids, actions, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_add_rows(dataset, 1, INT64_MAX, floats, ids, actions, NULL),
                     EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_add_rows(dataset, 1, 3, floats, ids, actions, NULL), EXPHIL_OK);
    assert_int_equal(data_info(dataset).frames, 14);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static uint64_t hash_of(exphil_context *context, const int64_t *frames, int64_t count)
{
    exphil_dataset *dataset = data_make(context, frames, count);
    uint64_t hash = data_info(dataset).content_hash;
    exphil_dataset_destroy(dataset);
    return hash;
}

static void test_content_hash(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    uint64_t hash = hash_of(context, (const int64_t[]){5, 9}, 2);
    assert_true(hash == hash_of(context, (const int64_t[]){5, 9}, 2));
    assert_true(hash != hash_of(context, (const int64_t[]){9, 5}, 2));
    assert_true(hash != hash_of(context, (const int64_t[]){5, 8}, 2));
    assert_true(hash != hash_of(context, (const int64_t[]){5}, 1));
    assert_true(hash != hash_of(context, NULL, 0));
    /* The same rows, cut into episodes elsewhere. */
    float floats[2 * DATA_FLOATS];
    int32_t ids[2 * DATA_IDS], actions[2 * DATA_HEADS];
    for (int t = 0; t < 2; t++)
        data_row(0, t, floats + t * DATA_FLOATS, ids + t * DATA_IDS, actions + t * DATA_HEADS);
    exphil_dataset *one = data_empty(context), *two = data_empty(context), *other = data_empty(context);
    assert_int_equal(exphil_dataset_add_rows(one, 100, 2, floats, ids, actions, NULL), EXPHIL_OK);
    assert_int_equal(exphil_dataset_add_rows(two, 100, 1, floats, ids, actions, NULL), EXPHIL_OK);
    assert_int_equal(exphil_dataset_add_rows(two, 100, 1, floats + DATA_FLOATS, ids + DATA_IDS,
                                             actions + DATA_HEADS, NULL),
                     EXPHIL_OK);
    assert_true(data_info(one).content_hash == hash_of(context, (const int64_t[]){2}, 1));
    assert_true(data_info(one).content_hash != data_info(two).content_hash);
    /* Any one value. */
    actions[DATA_HEADS + 2] ^= 1;
    assert_int_equal(exphil_dataset_add_rows(other, 100, 2, floats, ids, actions, NULL), EXPHIL_OK);
    assert_true(data_info(one).content_hash != data_info(other).content_hash);
    exphil_dataset_destroy(one);
    exphil_dataset_destroy(two);
    exphil_dataset_destroy(other);
    exphil_context_destroy(context);
}

static void test_constant_columns(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_empty(context);
    assert_int_equal(data_info(dataset).constant_floats, 0); /* nothing is known yet */
    float floats[2][DATA_FLOATS] = {{0, 1, 2, 3}, {-0.0f, 1, 2, 3}};
    int32_t ids[2 * DATA_IDS] = {0}, actions[2 * DATA_HEADS] = {0};
    assert_int_equal(exphil_dataset_add_rows(dataset, 1, 2, floats[0], ids, actions, NULL), EXPHIL_OK);
    assert_int_equal(data_info(dataset).constant_floats, 4); /* -0 is 0 */
    floats[1][2] = 0x1p-149f;
    assert_int_equal(exphil_dataset_add_rows(dataset, 1, 2, floats[0], ids, actions, NULL), EXPHIL_OK);
    assert_int_equal(data_info(dataset).constant_floats, 3);
    floats[0][0] = 0x1p-149f;
    assert_int_equal(exphil_dataset_add_rows(dataset, 1, 2, floats[0], ids, actions, NULL), EXPHIL_OK);
    assert_int_equal(data_info(dataset).constant_floats, 2);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* A spec without floats, and one without ids. */
static void test_lean_specs(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    for (int without = 0; without < 2; without++) {
        exphil_spec spec = *data_spec();
        if (without) {
            spec.float_count = 0;
        } else {
            spec.id_count = 0;
            spec.ids = NULL;
        }
        exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
        config.spec = &spec;
        exphil_dataset *dataset = NULL;
        assert_int_equal(exphil_dataset_create(context, &config, &dataset, NULL), EXPHIL_OK);
        float floats[DATA_FLOATS] = {1, 2, 3, 4}, back[DATA_FLOATS] = {0};
        int32_t ids[DATA_IDS] = {1, 2}, back_ids[DATA_IDS] = {0}, action[DATA_HEADS] = {3, 4, 5};
        exphil_status status = exphil_dataset_add_rows(dataset, 1, 1, without ? NULL : floats,
                                                       without ? ids : NULL, action, NULL);
        assert_int_equal(status, EXPHIL_OK);
        assert_int_equal(exphil_dataset_frame(dataset, 0, back, back_ids, action, NULL), EXPHIL_OK);
        assert_int_equal(back[3], without ? 0 : 4);
        assert_int_equal(back_ids[1], without ? 2 : 0);
        exphil_dataset_destroy(dataset);
    }
    exphil_context_destroy(context);
}

static void test_arguments(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset *dataset = (exphil_dataset *)(uintptr_t)64;
    assert_int_equal(exphil_dataset_create(NULL, NULL, &dataset, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_create(context, NULL, NULL, &error), EXPHIL_E_INVALID);
    exphil_spec spec = *data_spec();
    spec.head_count = 0;
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    config.spec = &spec;
    assert_int_equal(exphil_dataset_create(context, &config, &dataset, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "head_count"));
    config.struct_size = 3;
    assert_int_equal(exphil_dataset_create(context, &config, &dataset, &error), EXPHIL_E_INVALID);
    assert_ptr_equal(dataset, (void *)(uintptr_t)64);
    assert_int_equal(exphil_dataset_query(NULL, NULL, &error), EXPHIL_E_INVALID);
    dataset = data_make(context, (const int64_t[]){3}, 1);
    exphil_dataset_info info = {.struct_size = 8};
    assert_int_equal(exphil_dataset_query(dataset, &info, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_query(dataset, NULL, &error), EXPHIL_E_INVALID);
    exphil_episode_info episode = EXPHIL_EPISODE_INFO_INIT;
    assert_int_equal(exphil_dataset_episode(dataset, 1, &episode, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_episode(dataset, -1, &episode, &error), EXPHIL_E_INVALID);
    exphil_spec back = EXPHIL_SPEC_INIT;
    assert_int_equal(exphil_dataset_spec(dataset, &back, &error), EXPHIL_OK);
    assert_true(exphil_spec_hash(&back) == exphil_spec_hash(data_spec()));
    exphil_dataset_destroy(NULL);
    exphil_context_destroy(context); /* the dataset keeps it alive */
    assert_int_equal(data_info(dataset).frames, 3);
    exphil_dataset_destroy(dataset);
}

/* Somebody else is inside: every call says so, none changes anything. */
static void test_busy(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, (const int64_t[]){3, 4}, 2), *a = NULL, *b = NULL;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_episode_info episode = EXPHIL_EPISODE_INFO_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_split_config split = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_prefetcher *prefetcher = NULL;
    split.held_out = 0.5;
    assert_int_equal(xph_dataset_enter(dataset, NULL), EXPHIL_OK);
    assert_int_equal(exphil_dataset_query(dataset, &info, NULL), EXPHIL_E_BUSY);
    assert_int_equal(exphil_dataset_episode(dataset, 0, &episode, NULL), EXPHIL_E_BUSY);
    assert_int_equal(exphil_dataset_frame(dataset, 0, NULL, NULL, NULL, NULL), EXPHIL_E_BUSY);
    assert_int_equal(exphil_dataset_rows(dataset, 0, 1, NULL, NULL, NULL, NULL, NULL), EXPHIL_E_BUSY);
    assert_int_equal(exphil_dataset_spec(dataset, &spec, NULL), EXPHIL_E_BUSY);
    assert_int_equal(exphil_dataset_save(dataset, test_path("busy"), NULL), EXPHIL_E_BUSY);
    assert_int_equal(exphil_dataset_split(dataset, &split, &a, &b, NULL), EXPHIL_E_BUSY);
    assert_int_equal(exphil_dataset_add_replay(dataset, "x", NULL, NULL, NULL), EXPHIL_E_BUSY);
    assert_int_equal(exphil_prefetcher_create(dataset, NULL, &prefetcher, NULL), EXPHIL_E_BUSY);
    assert_int_equal(data_add(dataset, 2, 5, NULL), EXPHIL_E_BUSY);
    xph_dataset_leave(dataset);
    assert_null(a);
    assert_null(prefetcher);
    assert_int_equal(data_info(dataset).frames, 7);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* Memory refused at every call in turn: a failure each time, the dataset as before, nothing lost. */
static void test_memory_failures(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    config.spec = data_spec();
    exphil_dataset *dataset = NULL;
    for (int n = 1; !dataset; n++) {
        memory.fail_at = atomic_load(&memory.calls) + n;
        exphil_status status = exphil_dataset_create(context, &config, &dataset, NULL);
        assert_int_equal(status, dataset ? EXPHIL_OK : EXPHIL_E_MEMORY);
    }
    memory.fail_at = 0;
    /* Enough episodes that all arrays must grow in between. */
    int64_t failures = 0;
    for (int64_t e = 0; e < 40; e++) {
        exphil_dataset_info before = data_info(dataset);
        exphil_status status = EXPHIL_E_MEMORY;
        for (int n = 1; status != EXPHIL_OK; n++) {
            memory.fail_at = atomic_load(&memory.calls) + n;
            status = data_add(dataset, e, 50, NULL);
            memory.fail_at = 0;
            if (status == EXPHIL_OK) break;
            failures++;
            assert_int_equal(status, EXPHIL_E_MEMORY);
            exphil_dataset_info after = data_info(dataset);
            assert_memory_equal(&before, &after, sizeof before);
        }
    }
    assert_true(failures > 45);
    assert_int_equal(data_info(dataset).frames, 2000);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_come_back),   cmocka_unit_test(test_games),
        cmocka_unit_test(test_bad_rows),         cmocka_unit_test(test_content_hash),
        cmocka_unit_test(test_constant_columns), cmocka_unit_test(test_lean_specs),
        cmocka_unit_test(test_arguments),        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_memory_failures),  cmocka_unit_test(test_rows_at_once),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_folder_remove();
    return failed;
}
