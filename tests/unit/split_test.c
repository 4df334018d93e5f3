/* Splits: whole games or the ends of episodes, nothing lost, nothing twice, rows shared. */
#include "data_case.h"

#include "data/dataset.h"

/* Episodes of a dataset by the float that names them; sides[e] gets bit 1 << side for every episode seen. */
static void note_episodes(const exphil_dataset *dataset, int side, int *sides)
{
    exphil_dataset_info info = data_info(dataset);
    for (int64_t i = 0; i < info.episodes; i++) {
        exphil_episode_info episode = EXPHIL_EPISODE_INFO_INIT;
        float floats[DATA_FLOATS];
        assert_int_equal(exphil_dataset_episode(dataset, i, &episode, NULL), EXPHIL_OK);
        assert_int_equal(exphil_dataset_frame(dataset, episode.first, floats, NULL, NULL, NULL), EXPHIL_OK);
        sides[(int)floats[0]] |= 1 << side;
    }
}

/* Ten games of two episodes each. */
static exphil_dataset *ten_games(exphil_context *context)
{
    exphil_dataset *dataset = data_empty(context);
    for (int64_t e = 0; e < 20; e++) {
        float floats[3 * DATA_FLOATS];
        int32_t ids[3 * DATA_IDS], actions[3 * DATA_HEADS];
        for (int t = 0; t < 3; t++)
            data_row(e, t, floats + t * DATA_FLOATS, ids + t * DATA_IDS, actions + t * DATA_HEADS);
        exphil_status status =
            exphil_dataset_add_rows(dataset, (uint64_t)(e % 10) * 77, 3, floats, ids, actions, NULL);
        assert_int_equal(status, EXPHIL_OK);
    }
    return dataset;
}

static void test_by_game(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = ten_games(context);
    int held_often[10] = {0}, different = 0, before = -1;
    for (uint64_t seed = 0; seed < 400; seed++) {
        exphil_split_config config = {sizeof config, 0.3, seed, EXPHIL_SPLIT_GAME, 0};
        exphil_dataset *kept = NULL, *held = NULL;
        assert_int_equal(exphil_dataset_split(dataset, &config, &kept, &held, NULL), EXPHIL_OK);
        assert_int_equal(data_info(held).games, 3);
        assert_int_equal(data_info(kept).games, 7);
        assert_int_equal(data_info(held).frames, 18);
        assert_int_equal(data_info(kept).frames, 42);
        int sides[20] = {0}, drawn = 0;
        note_episodes(kept, 0, sides);
        note_episodes(held, 1, sides);
        for (int e = 0; e < 20; e++) {
            assert_true(sides[e] == 1 || sides[e] == 2);
            assert_int_equal(sides[e], sides[e % 10]); /* both episodes of a game on one side */
            if (e < 10 && sides[e] == 2) {
                held_often[e]++;
                drawn |= 1 << e;
            }
        }
        different += drawn != before;
        before = drawn;
        exphil_dataset_destroy(kept);
        exphil_dataset_destroy(held);
    }
    assert_true(different > 390);
    /* 400 draws of 3 in 10: mean 120, deviation 9.2. */
    for (int g = 0; g < 10; g++) assert_in_range(held_often[g], 75, 165);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* The same seed holds out the same games, whatever order they came in. */
static void test_order_of_adding(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *forwards = data_empty(context), *backwards = data_empty(context);
    for (int64_t e = 0; e < 9; e++) {
        assert_int_equal(data_add(forwards, e, 4, NULL), EXPHIL_OK);
        assert_int_equal(data_add(backwards, 8 - e, 4, NULL), EXPHIL_OK);
    }
    int sides[2][9] = {{0}};
    for (int i = 0; i < 2; i++) {
        exphil_split_config config = {sizeof config, 0.5, 11, EXPHIL_SPLIT_GAME, 0};
        exphil_dataset *kept = NULL, *held = NULL;
        exphil_status status = exphil_dataset_split(i ? backwards : forwards, &config, &kept, &held, NULL);
        assert_int_equal(status, EXPHIL_OK);
        note_episodes(kept, 0, sides[i]);
        note_episodes(held, 1, sides[i]);
        exphil_dataset_destroy(kept);
        exphil_dataset_destroy(held);
    }
    assert_memory_equal(sides[0], sides[1], sizeof sides[0]);
    exphil_dataset_destroy(forwards);
    exphil_dataset_destroy(backwards);
    exphil_context_destroy(context);
}

static void test_by_time(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, (const int64_t[]){100, 1, 10, 3}, 4);
    exphil_split_config config = {sizeof config, 0.25, 0, EXPHIL_SPLIT_TIME, 0};
    exphil_dataset *kept = NULL, *held = NULL;
    assert_int_equal(exphil_dataset_split(dataset, &config, &kept, &held, NULL), EXPHIL_OK);
    /* Held out: 25, 0, 3 (2.5 rounded up), 1. */
    static const int64_t want[2][4] = {{75, 1, 7, 2}, {25, 3, 1, 0}};
    static const int64_t episode[2][4] = {{0, 1, 2, 3}, {0, 2, 3, 0}};
    static const int64_t skip[2][4] = {{0, 0, 0, 0}, {75, 7, 2, 0}};
    for (int side = 0; side < 2; side++) {
        const exphil_dataset *part = side ? held : kept;
        assert_int_equal(data_info(part).episodes, side ? 3 : 4);
        for (int64_t i = 0; i < data_info(part).episodes; i++) {
            exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
            assert_int_equal(exphil_dataset_episode(part, i, &info, NULL), EXPHIL_OK);
            assert_int_equal(info.frames, want[side][i]);
            for (int64_t t = 0; t < info.frames; t++) {
                float floats[DATA_FLOATS];
                assert_int_equal(exphil_dataset_frame(part, info.first + t, floats, NULL, NULL, NULL),
                                 EXPHIL_OK);
                assert_int_equal(floats[0], episode[side][i]);
                assert_int_equal(floats[1], skip[side][i] + t);
            }
        }
    }
    /* Parts hash like rows of their own. */
    exphil_dataset *alone = data_make(context, (const int64_t[]){75, 1, 7, 2}, 4);
    assert_true(data_info(alone).content_hash == data_info(kept).content_hash);
    exphil_dataset_destroy(alone);
    /* And live without what they were cut from. */
    exphil_dataset_destroy(dataset);
    exphil_dataset_destroy(kept);
    assert_int_equal(data_info(held).constant_floats, 1);
    exphil_dataset_destroy(held);
    exphil_context_destroy(context);
}

static void refuse(const exphil_dataset *dataset, double share, int32_t by, const char *text)
{
    exphil_split_config config = {sizeof config, share, 0, by, 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset *kept = NULL, *held = NULL;
    assert_int_equal(exphil_dataset_split(dataset, &config, &kept, &held, &error), EXPHIL_E_INVALID);
    assert_null(kept);
    assert_null(held);
    assert_says(&error, text);
}

static void test_refusals(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *one = data_make(context, (const int64_t[]){2}, 1);
    exphil_dataset *two = data_make(context, (const int64_t[]){2, 2}, 2);
    refuse(one, 0.5, EXPHIL_SPLIT_GAME, "two games");
    refuse(two, 0, EXPHIL_SPLIT_GAME, "held_out is 0");
    refuse(two, 1, EXPHIL_SPLIT_GAME, "held_out is 1");
    refuse(two, -0.5, EXPHIL_SPLIT_TIME, "held_out");
    refuse(two, 0.0 / 0.0, EXPHIL_SPLIT_TIME, "held_out");
    refuse(two, 0.5, 3, "by is 3");
    refuse(two, 0.1, EXPHIL_SPLIT_TIME, "held-out dataset would be empty");
    refuse(two, 0.9, EXPHIL_SPLIT_TIME, "kept dataset would be empty");
    exphil_split_config config = {sizeof config, 0.5, 0, 0, 0};
    exphil_dataset *kept = NULL, *held = NULL;
    assert_int_equal(exphil_dataset_split(two, NULL, &kept, &held, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_split(two, &config, NULL, &held, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_split(two, &config, &kept, NULL, NULL), EXPHIL_E_INVALID);
    /* A share that rounds to no game, or to all, still leaves one on each side. */
    for (int i = 0; i < 2; i++) {
        config.held_out = i ? 0.999 : 0.001;
        assert_int_equal(exphil_dataset_split(two, &config, &kept, &held, NULL), EXPHIL_OK);
        assert_int_equal(data_info(kept).games, 1);
        assert_int_equal(data_info(held).games, 1);
        exphil_dataset_destroy(kept);
        exphil_dataset_destroy(held);
    }
    exphil_dataset_destroy(one);
    exphil_dataset_destroy(two);
    exphil_context_destroy(context);
}

static void test_memory_failures(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_dataset *dataset = data_make(context, (const int64_t[]){9, 8, 7, 6}, 4);
    for (int by = 0; by < 3; by++) {
        exphil_split_config config = {sizeof config, 0.4, 3, by, 0};
        exphil_dataset *kept = NULL, *held = NULL;
        long long failures = 0;
        for (; !kept; failures++) {
            memory.fail_at = atomic_load(&memory.calls) + failures + 1;
            exphil_status status = exphil_dataset_split(dataset, &config, &kept, &held, NULL);
            assert_int_equal(status, kept ? EXPHIL_OK : EXPHIL_E_MEMORY);
        }
        memory.fail_at = 0;
        assert_true(failures > 10);
        exphil_dataset_destroy(kept);
        exphil_dataset_destroy(held);
    }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_game),         cmocka_unit_test(test_order_of_adding),
        cmocka_unit_test(test_by_time),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_memory_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
