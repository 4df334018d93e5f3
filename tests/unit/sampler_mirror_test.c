/* Mirrored games in batches: every row is the row of the dataset or its mirror, all rows of a game alike, both sides of
 * it together, whatever the batches look like; a new choice in every epoch; what has no mirror is refused. */
#include "context_case.h"
#include "data/sampler.h"
#include "melee/melee.h"
#include "melee_frame.h"
#include "test.h"

#include <math.h>

enum {
    GAMES = 40,
    SIDES = 2,
    FRAMES = 50,
    FLOATS = 278,
    IDS = 18,
    HEADS = 6,
    CLOCK = 188,
    STAGE_ID = 12,
    EPOCHS = 8
};

/* Two sides of a game that moves: rows are told apart by the clock (the frame) and by stage and port. */
static void make_row(int64_t game, int64_t side, int64_t t, float *floats, int32_t *ids, int32_t *action)
{
    exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
    exphil_pad pad = {
        t % 3 ? EXPHIL_PAD_B : 0, (float)(t % 21 - 10) / 10, 0.5f, (float)(t % 7 - 3) / 3, 0, 0};
    frame.frame = (int32_t)(SIDES * FRAMES * game + FRAMES * side + t);
    frame.stage = 32;
    frame.own_port = (int32_t)side + 1;
    frame.opponent_port = 2 - (int32_t)side;
    frame.player[0] = melee_character((float)(t - 20), 0);
    frame.player[1] = melee_character((float)(30 - 2 * t), (float)(t % 5));
    frame.player[0].action_state = (uint16_t)(t % 4);
    frame.player[1].facing = -1;
    assert_int_equal(exphil_melee_encode(NULL, &frame, floats, ids, NULL), EXPHIL_OK);
    assert_int_equal(exphil_melee_pad_encode(NULL, &pad, action, NULL), EXPHIL_OK);
}

/* Numbers of games that are no neighbours, but for the first two. */
static uint64_t key_of(int64_t game)
{
    return game < 2 ? (uint64_t)game : (uint64_t)game * 0x9E3779B97F4A7C15u;
}

static void add_episode(exphil_dataset *dataset, int64_t game, int64_t side)
{
    static float floats[FRAMES][FLOATS];
    static int32_t ids[FRAMES][IDS], actions[FRAMES][HEADS];
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int64_t t = 0; t < FRAMES; t++) make_row(game, side, t, floats[t], ids[t], actions[t]);
    if (exphil_dataset_add_rows(dataset, key_of(game), FRAMES, floats[0], ids[0], actions[0], &error) < 0)
        fail_msg("%s", error.message);
}

static exphil_dataset *dataset_of(bool backwards, int64_t games)
{
    exphil_dataset *dataset = NULL;
    assert_int_equal(exphil_dataset_create(context, NULL, &dataset, NULL), EXPHIL_OK);
    for (int64_t i = 0; i < games * SIDES; i++) {
        int64_t at = backwards ? games * SIDES - 1 - i : i;
        add_episode(dataset, at % games, at / games);
    }
    return dataset;
}

/* 1: the rows of this game were mirrored, -1: not; 0: none was seen. */
typedef struct choice {
    int8_t of[EPOCHS][GAMES];
} choice;

static void check_row(const exphil_sampling *how, const xph_melee_mirror *mirror, const exphil_batch *batch,
                      int64_t row, choice *chosen)
{
    float floats[2][FLOATS];
    int32_t ids[2][IDS], action[2][HEADS];
    const float *got = batch->floats + row * FLOATS;
    int64_t frame = lroundf(got[CLOCK] * 28800), game = frame / (SIDES * FRAMES),
            side = frame / FRAMES % SIDES;
    int64_t t = frame % FRAMES;
    make_row(game, side, t, floats[0], ids[0], action[0]);
    memcpy(floats[1], floats[0], sizeof floats[0]);
    memcpy(ids[1], ids[0], sizeof ids[0]);
    xph_melee_mirror_rows(mirror, floats[1], ids[1], 1);
    int which = memcmp(got, floats[1], sizeof floats[1]) == 0;
    assert_memory_equal(got, floats[which], sizeof floats[which]);
    assert_memory_equal(batch->ids + row * IDS, ids[which], sizeof ids[which]);
    int8_t *seen = &chosen->of[batch->epoch][game], now = which ? 1 : -1;
    if (*seen) assert_int_equal(*seen, now);
    *seen = now;
    for (int64_t s = -1; s < how->action_slots; s++) {
        int64_t acted = t + how->delay_frames - 1 - s,
                least = how->neutral_start && s >= 0 ? how->delay_frames : 0;
        static const int32_t neutral[HEADS] = {0, 8, 8, 8, 8, 0};
        float unused[FLOATS];
        int32_t unused_ids[IDS];
        memcpy(action[0], neutral, sizeof neutral);
        if (acted >= least) make_row(game, side, acted, unused, unused_ids, action[0]);
        if (which) xph_melee_mirror_actions(action[0], 1);
        const int32_t *at =
            s < 0 ? batch->actions + row * HEADS : batch->past + (row * how->action_slots + s) * HEADS;
        assert_memory_equal(at, action[0], sizeof action[0]);
    }
}

/* Every row of all epochs; mask, reset and padding as without the mirror. */
static void walk(const exphil_dataset *dataset, const exphil_sampling *how, choice *chosen)
{
    xph_sampler *sampler = NULL, *plain = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_sampling without = *how;
    xph_melee_mirror mirror;
    without.mirror = 0;
    if (xph_sampler_create(dataset, how, &sampler, &error) < 0 ||
        xph_sampler_create(dataset, &without, &plain, &error) < 0 ||
        xph_melee_mirror_make(xph_melee_layout_find(NULL), xph_melee_codec_find(NULL), &mirror, &error) < 0)
        fail_msg("%s", error.message);
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++)
        for (int64_t i = 0; i < xph_sampler_batches(sampler); i++) {
            exphil_batch batch = EXPHIL_BATCH_INIT, other = EXPHIL_BATCH_INIT;
            assert_int_equal(xph_sampler_batch(sampler, epoch, i, &batch, NULL), EXPHIL_OK);
            assert_int_equal(xph_sampler_batch(plain, epoch, i, &other, NULL), EXPHIL_OK);
            int64_t rows = batch.batch * batch.time;
            assert_memory_equal(batch.mask, other.mask, (size_t)rows * sizeof *batch.mask);
            assert_memory_equal(batch.reset, other.reset, (size_t)rows);
            assert_int_equal(batch.frames, other.frames);
            for (int64_t row = 0; row < rows; row++) {
                if (batch.floats[row * FLOATS] != 0)
                    check_row(how, &mirror, &batch, row, chosen);
                else
                    assert_memory_equal(batch.floats + row * FLOATS, other.floats + row * FLOATS,
                                        FLOATS * sizeof(float));
            }
        }
    xph_sampler_destroy(sampler);
    xph_sampler_destroy(plain);
}

static int64_t count_of(const choice *chosen, int64_t epoch)
{
    int64_t count = 0;
    for (int64_t game = 0; game < GAMES; game++) {
        assert_int_not_equal(chosen->of[epoch][game], 0);
        count += chosen->of[epoch][game] > 0;
    }
    return count;
}

/* Whatever the order of the data, the sizes of the batches, the way of cutting, delay and slots: the same games. */
static void test_choice(void **state)
{
    exphil_dataset *forward = dataset_of(false, GAMES), *backward = dataset_of(true, GAMES);
    const exphil_sampling hows[] = {
        {.batch = 4, .time = 16},
        {.batch = 1, .time = 7, .in_order = 1, .action_slots = 1},
        {.batch = 9,
         .time = 25,
         .segment_frames = 20,
         .delay_frames = 3,
         .action_slots = 4,
         .neutral_start = 1},
        {.batch = 5,
         .time = 12,
         .stride = 5,
         .mode = EXPHIL_MODE_WINDOW,
         .delay_frames = 2,
         .action_slots = 2},
        {.batch = 3, .time = 12, .stride = 9, .mode = EXPHIL_MODE_WINDOW, .last_only = 1, .buffers = 7},
    };
    choice first = {{{0}}};
    for (size_t i = 0; i < sizeof hows / sizeof hows[0]; i++) {
        choice chosen = {{{0}}};
        exphil_sampling how = hows[i];
        how.struct_size = sizeof how;
        how.seed = 5;
        how.mirror = 0.5;
        walk(i % 2 ? backward : forward, &how, &chosen);
        if (i == 0) first = chosen;
        assert_memory_equal(&chosen, &first, sizeof chosen);
    }
    exphil_dataset_destroy(forward);
    exphil_dataset_destroy(backward);
    int64_t all = 0;
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) all += count_of(&first, epoch);
    assert_true(10 * all > 4 * GAMES * EPOCHS && 10 * all < 6 * GAMES * EPOCHS);
    for (int64_t epoch = 1; epoch < EPOCHS; epoch++)
        assert_memory_not_equal(first.of[epoch], first.of[0], sizeof first.of[0]);
    int64_t both = 0;
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) both += first.of[epoch][0] == first.of[epoch][1];
    assert_true(both > 0 && both < EPOCHS); /* the games 0 and 1 go their own ways */
}

/* A game that is there alone is mirrored when it is among others; another seed chooses others; 1 is all. */
static void test_share(void **state)
{
    exphil_dataset *all = dataset_of(false, GAMES), *few = dataset_of(false, 3);
    exphil_sampling how = {.struct_size = sizeof how, .batch = 4, .time = 25, .seed = 77, .mirror = 0.25};
    choice quarter = {{{0}}}, three = {{{0}}}, other = {{{0}}}, whole = {{{0}}}, half = {{{0}}};
    walk(all, &how, &quarter);
    walk(few, &how, &three);
    how.seed = 78;
    walk(all, &how, &other);
    how.mirror = 1;
    walk(all, &how, &whole);
    how.seed = 77;
    how.mirror = 0.5;
    walk(all, &how, &half);
    int64_t count = 0;
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        assert_memory_equal(three.of[epoch], quarter.of[epoch], 3);
        assert_int_equal(count_of(&whole, epoch), GAMES);
        count += count_of(&quarter, epoch);
        for (int64_t game = 0; game < GAMES; game++) /* a larger share has the games of a smaller one */
            if (quarter.of[epoch][game] > 0) assert_int_equal(half.of[epoch][game], 1);
    }
    assert_true(6 * count > GAMES * EPOCHS && 3 * count < GAMES * EPOCHS);
    assert_memory_not_equal(&other, &quarter, sizeof other);
    exphil_dataset_destroy(all);
    exphil_dataset_destroy(few);
}

/* The thread gives the sampler's batches; a split keeps the choice. */
static void test_other_threads(void **state)
{
    exphil_dataset *all = dataset_of(false, GAMES);
    const exphil_sampling how = {
        .struct_size = sizeof how, .batch = 6, .time = 25, .seed = 9, .mirror = 0.5, .buffers = 5};
    exphil_prefetcher *prefetcher = NULL;
    xph_sampler *sampler = NULL;
    assert_int_equal(exphil_prefetcher_create(all, &how, &prefetcher, NULL), EXPHIL_OK);
    assert_int_equal(xph_sampler_create(all, &how, &sampler, NULL), EXPHIL_OK);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        exphil_batch got = EXPHIL_BATCH_INIT, wanted = EXPHIL_BATCH_INIT;
        for (int64_t i = 0; i < xph_sampler_batches(sampler); i++) {
            assert_int_equal(exphil_prefetcher_next(prefetcher, &got, NULL), EXPHIL_OK);
            assert_int_equal(xph_sampler_batch(sampler, epoch, i, &wanted, NULL), EXPHIL_OK);
            size_t rows = (size_t)(got.batch * got.time);
            assert_memory_equal(got.floats, wanted.floats, rows * FLOATS * sizeof *got.floats);
            assert_memory_equal(got.ids, wanted.ids, rows * IDS * sizeof *got.ids);
            assert_memory_equal(got.actions, wanted.actions, rows * HEADS * sizeof *got.actions);
        }
        assert_int_equal(exphil_prefetcher_next(prefetcher, &got, NULL), EXPHIL_END);
    }
    exphil_prefetcher_destroy(prefetcher);
    xph_sampler_destroy(sampler);
    exphil_split_config config = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_dataset *kept = NULL, *held = NULL;
    config.held_out = 0.3;
    config.by = EXPHIL_SPLIT_TIME;
    assert_int_equal(exphil_dataset_split(all, &config, &kept, &held, NULL), EXPHIL_OK);
    choice whole = {{{0}}}, part = {{{0}}};
    walk(all, &how, &whole);
    walk(kept, &how, &part);
    assert_memory_equal(&whole, &part, sizeof whole);
    exphil_dataset_destroy(kept);
    exphil_dataset_destroy(held);
    exphil_dataset_destroy(all);
}

static void refuse(const exphil_spec *spec, exphil_status wanted, const char *says)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *dataset = NULL;
    exphil_prefetcher *prefetcher = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    config.spec = spec;
    assert_int_equal(exphil_dataset_create(context, &config, &dataset, &error), EXPHIL_OK);
    how.mirror = 0.5;
    assert_int_equal(exphil_prefetcher_create(dataset, &how, &prefetcher, &error), wanted);
    assert_null(prefetcher);
    assert_says(&error, "sampling.mirror");
    assert_says(&error, says);
    exphil_dataset_destroy(dataset);
}

static void test_refusals(void **state)
{
    exphil_spec spec = EXPHIL_SPEC_INIT;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(exphil_melee_spec(i ? "melee2" : "exphil288", "exphil81-floor", &spec, NULL),
                         EXPHIL_OK);
        refuse(&spec, EXPHIL_E_UNSUPPORTED, "codec exphil81-floor");
    }
    spec.layout = "pong";
    refuse(&spec, EXPHIL_E_INVALID, "layout \"pong\"");
    assert_int_equal(exphil_melee_spec(NULL, NULL, &spec, NULL), EXPHIL_OK);
    spec.float_count--; /* by the name alone it is one */
    refuse(&spec, EXPHIL_E_INVALID, "sampling.mirror is for a Melee spec");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_other_threads),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
