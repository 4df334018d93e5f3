/* Splits: whole games or the ends of episodes, nothing lost, nothing twice, rows shared; recordings of one match never on
 * both sides; splits that stay when games are added. */
#include "data_case.h"
#include "match_case.h"
#include "slp_edit.h"

#include "data/dataset.h"

#include <stdlib.h>

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

/* ---- as released ---- */

static exphil_dataset *twelve_games(exphil_context *context)
{
    exphil_dataset *dataset = data_empty(context);
    for (int64_t e = 0; e < 12; e++) {
        float floats[DATA_FLOATS];
        int32_t ids[DATA_IDS], actions[DATA_HEADS];
        data_row(e, 0, floats, ids, actions);
        assert_int_equal(exphil_dataset_add_rows(dataset, (uint64_t)(e + 1) * 0x9E3779B97F4A7C15u, 1, floats,
                                                 ids, actions, NULL),
                         EXPHIL_OK);
    }
    return dataset;
}

/* The games that 0.1.0 holds out of twelve, as bits, for seeds 0, 1, ... */
static void test_as_released(void **state)
{
    static const int held_out[16] = {0x8a2, 0xa05, 0x702, 0x162, 0x249, 0x684, 0xd20, 0x470,
                                     0x115, 0x650, 0x988, 0xca0, 0x312, 0x492, 0xe08, 0x107};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = twelve_games(context);
    for (uint64_t seed = 0; seed < 16; seed++) {
        exphil_split_config config = {sizeof config, 0.3, seed, EXPHIL_SPLIT_GAME, 0};
        exphil_dataset *kept = NULL, *held = NULL;
        int sides[12] = {0}, mask = 0;
        assert_int_equal(exphil_dataset_split(dataset, &config, &kept, &held, NULL), EXPHIL_OK);
        note_episodes(held, 1, sides);
        for (int e = 0; e < 12; e++) mask |= (sides[e] != 0) << e;
        assert_int_equal(mask, held_out[seed]);
        exphil_dataset_destroy(kept);
        exphil_dataset_destroy(held);
    }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- recordings of one match ---- */

enum { MATCHES = 9, RECORDINGS = 20, FRAMES = 40 };

/* Of match m there are 1 + m % 3 recordings, of other lengths and, the third, of another seed with the same tag. */
typedef struct recorded {
    uint64_t game[RECORDINGS];
    int match[RECORDINGS], count;
} recorded;

static void tag(slp_writer *w, int match)
{
    uint8_t *start = w->data + 15 + 1 + w->data[16];
    while (*start != 0x36) start++;
    start[0x2BE] = 'm';
    start[0x2BF] = (uint8_t)('a' + match);
    memset(start + 0x2F1, 0, 8);
}

static void add_recording(exphil_dataset *dataset, const slp_writer *w, int match, recorded *all)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_replay_config config = EXPHIL_REPLAY_CONFIG_INIT;
    config.first_frame = -123;
    if (exphil_dataset_add_replay_memory(dataset, w->data, w->bytes, &config, NULL, &error) < 0)
        fail_msg("%s", error.message);
    all->game[all->count] = xph_hash(w->data, w->bytes);
    all->match[all->count++] = match;
}

static exphil_dataset *matches(exphil_context *context, int from, int to, recorded *all)
{
    exphil_dataset *dataset = NULL;
    assert_int_equal(exphil_dataset_create(context, NULL, &dataset, NULL), EXPHIL_OK);
    all->count = 0;
    for (int m = from; m < to; m++) {
        slp_writer first;
        match_made made = match_usual;
        made.seed = (uint32_t)(1000 + m);
        made.frames = FRAMES + m;
        match_make(&first, &made);
        if (m % 3 == 2) tag(&first, m);
        for (int i = 0; i <= m % 3; i++) {
            slp_writer w;
            slp_edit_make(first.data, first.bytes, &(slp_edit){.drop = 3 * i, .seed = i == 2 ? 77 : 0}, &w);
            add_recording(dataset, &w, m, all);
            slp_free(&w);
        }
        slp_free(&first);
    }
    return dataset;
}

static int match_of(const recorded *all, uint64_t game)
{
    for (int i = 0; i < all->count; i++)
        if (all->game[i] == game) return all->match[i];
    fail_msg("a game that was not added");
    return -1;
}

/* Rows of each match and frame of the game on each side. */
typedef struct sides {
    int64_t rows[2][MATCHES][FRAMES + MATCHES];
    int64_t all[2];
} sides;

static void look_at(const exphil_dataset *dataset, const recorded *all, int side, sides *seen)
{
    exphil_dataset_info info = data_info(dataset);
    for (int64_t i = 0; i < info.episodes; i++) {
        exphil_episode_info e = EXPHIL_EPISODE_INFO_INIT;
        assert_int_equal(exphil_dataset_episode(dataset, i, &e, NULL), EXPHIL_OK);
        assert_true(e.group != 0);
        for (int64_t t = 0; t < e.frames; t++)
            seen->rows[side][match_of(all, e.game)][e.first_game_frame + 123 + t]++;
        seen->all[side] += e.frames;
    }
}

/* False: one of the sides would be empty. */
static bool split_matches(const exphil_dataset *dataset, const recorded *all,
                          const exphil_split_config *config, sides *seen)
{
    exphil_dataset *kept = NULL, *held = NULL;
    memset(seen, 0, sizeof *seen);
    exphil_status status = exphil_dataset_split(dataset, config, &kept, &held, NULL);
    if (status < 0) {
        assert_int_equal(status, EXPHIL_E_INVALID);
        return false;
    }
    look_at(kept, all, 0, seen);
    look_at(held, all, 1, seen);
    exphil_dataset_destroy(kept);
    exphil_dataset_destroy(held);
    return true;
}

/* Of a match of several recordings the held-out rows begin at one frame, and are as many as fit into the part. */
static void expect_cut(const sides *seen, int match, double share)
{
    int64_t held = 0, rows = 0, before = 0;
    for (int frame = 0; frame < FRAMES + MATCHES; frame++) {
        rows += seen->rows[0][match][frame] + seen->rows[1][match][frame];
        held += seen->rows[1][match][frame];
        if (seen->rows[0][match][frame])
            before = seen->rows[0][match][frame]; /* the last frame that is kept */
    }
    int64_t may = (int64_t)(share * (double)rows + 0.5);
    assert_true(held <= may && held + before > may);
}

static void expect_together(const sides *seen, const exphil_split_config *config)
{
    for (int m = 0; m < MATCHES; m++) {
        bool on[2] = {false, false};
        for (int frame = 0; frame < FRAMES + MATCHES; frame++) {
            assert_false(seen->rows[0][m][frame] && seen->rows[1][m][frame]);
            for (int side = 0; side < 2; side++) on[side] = on[side] || seen->rows[side][m][frame];
        }
        if (config->by != EXPHIL_SPLIT_TIME) assert_false(on[0] && on[1]);
        if (config->by == EXPHIL_SPLIT_TIME && m % 3) expect_cut(seen, m, config->held_out);
    }
}

/* A thousand splits of each kind: no frame of a match is on both sides, and none is lost. */
static void test_recordings(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    recorded all;
    exphil_dataset *dataset = matches(context, 0, MATCHES, &all);
    xph_rng rng = {.seed = 5, .stream = XPH_RNG_TEST};
    int done[3] = {0};
    sides *seen = malloc(sizeof *seen);
    assert_int_equal(data_info(dataset).games, 18);
    for (int i = 0; i < 3000; i++) {
        exphil_split_config config = {sizeof config, 0.02 + 0.96 * xph_rng_double(&rng), xph_rng_u64(&rng),
                                      i % 3, 0};
        if (!split_matches(dataset, &all, &config, seen)) continue;
        assert_int_equal(seen->all[0] + seen->all[1], data_info(dataset).frames);
        expect_together(seen, &config);
        done[i % 3]++;
    }
    assert_int_equal(done[EXPHIL_SPLIT_GAME], 1000);
    assert_true(done[EXPHIL_SPLIT_TIME] > 950 &&
                done[EXPHIL_SPLIT_STABLE] > 600); /* others leave a side empty */
    free(seen);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* What is saved and opened again is split as it was before. */
static void test_saved(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    recorded all;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset *dataset = matches(context, 0, MATCHES, &all), *opened = NULL;
    xph_rng rng = {.seed = 6, .stream = XPH_RNG_TEST};
    sides *seen = malloc(2 * sizeof *seen);
    if (exphil_dataset_save(dataset, test_path("matches.exphil"), &error) < 0 ||
        exphil_dataset_open(context, test_path("matches.exphil"), &opened, &error) < 0)
        fail_msg("%s", error.message);
    for (int i = 0; i < 300; i++) {
        exphil_split_config config = {sizeof config, 0.1 + 0.8 * xph_rng_double(&rng), xph_rng_u64(&rng),
                                      i % 3, 0};
        bool split = split_matches(dataset, &all, &config, &seen[0]);
        assert_int_equal(split_matches(opened, &all, &config, &seen[1]), split);
        assert_memory_equal(&seen[0], &seen[1], sizeof *seen);
    }
    free(seen);
    exphil_dataset_destroy(opened);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* Two recordings are one game, and that is too few. */
static void test_one_match(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    recorded all;
    exphil_dataset *dataset = matches(context, 2, 3, &all), *kept = NULL, *held = NULL;
    exphil_split_config config = {sizeof config, 0.5, 0, EXPHIL_SPLIT_GAME, 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_dataset_split(dataset, &config, &kept, &held, &error), EXPHIL_E_INVALID);
    assert_says(&error, "two games that cannot be of one match, this dataset has 1");
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- splits that stay ---- */

/* Uniform in [0, 1), of seed and number alone. */
static double draw_of(uint64_t seed, uint64_t number)
{
    const uint32_t counter[4] = {(uint32_t)number, (uint32_t)(number >> 32), 7, 0},
                   key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t out[4];
    xph_philox(counter, key, out);
    return (double)(((uint64_t)out[1] << 32 | out[0]) >> 11) / 9007199254740992.0;
}

static void test_stable_rows(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = twelve_games(context);
    int held_often = 0, splits = 0;
    for (uint64_t seed = 0; seed < 500; seed++) {
        exphil_split_config config = {sizeof config, 0.3, seed, EXPHIL_SPLIT_STABLE, 0};
        exphil_dataset *kept = NULL, *held = NULL;
        int at[12] = {0}, expected = 0;
        for (int e = 0; e < 12; e++) expected += draw_of(seed, (uint64_t)(e + 1) * 0x9E3779B97F4A7C15u) < 0.3;
        exphil_status status = exphil_dataset_split(dataset, &config, &kept, &held, NULL);
        assert_int_equal(status, expected && expected < 12 ? EXPHIL_OK : EXPHIL_E_INVALID);
        if (status < 0) continue;
        note_episodes(kept, 0, at);
        note_episodes(held, 1, at);
        for (int e = 0; e < 12; e++) {
            bool out = draw_of(seed, (uint64_t)(e + 1) * 0x9E3779B97F4A7C15u) < 0.3;
            assert_int_equal(at[e], out ? 2 : 1);
            held_often += out;
        }
        splits++;
        exphil_dataset_destroy(kept);
        exphil_dataset_destroy(held);
    }
    /* Of 12 in 10 draws 3.6 are held out: mean of 490 splits, deviation 35. */
    assert_true(splits > 480 && labs(held_often - (long)(3.6 * splits)) < 150);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* Games that come later, recordings of matches that are there among them, leave all others where they are. */
static void test_stable_additions(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    recorded few, all;
    exphil_dataset *before = matches(context, 3, 6, &few), *after = matches(context, 0, MATCHES, &all);
    sides *seen = malloc(sizeof *seen), *later = malloc(sizeof *later);
    int compared = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        exphil_split_config config = {sizeof config, 0.4, seed, EXPHIL_SPLIT_STABLE, 0};
        if (!split_matches(before, &few, &config, seen) || !split_matches(after, &all, &config, later))
            continue;
        for (int m = 3; m < 6; m++)
            assert_memory_equal(seen->rows[1][m], later->rows[1][m], sizeof seen->rows[1][m]);
        compared++;
    }
    assert_true(compared > 150);
    free(seen);
    free(later);
    exphil_dataset_destroy(before);
    exphil_dataset_destroy(after);
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
        cmocka_unit_test(test_memory_failures), cmocka_unit_test(test_as_released),
        cmocka_unit_test(test_recordings),      cmocka_unit_test(test_one_match),
        cmocka_unit_test(test_stable_rows),     cmocka_unit_test(test_stable_additions),
        cmocka_unit_test(test_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
