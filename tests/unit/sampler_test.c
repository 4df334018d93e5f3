/* The sampler, row by row against what must stand there: floats name episode and frame, so every target,
 * past action, mask and reset can be told from them. Every frame once an epoch, in both modes, for delays 0
 * to 3. */
#include "data_case.h"

#include "data/order.h"
#include "data/sampler.h"

#include <stdlib.h>

enum { EPISODES = 7 };
static const int64_t lengths[EPISODES] = {37, 1, 150, 4, 61, 90, 2};

typedef struct fixture {
    exphil_context *context;
    exphil_dataset *dataset;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f.context = test_context(NULL, NULL, 1);
    f.dataset = data_make(f.context, lengths, EPISODES);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    exphil_dataset_destroy(f->dataset);
    exphil_context_destroy(f->context);
    return 0;
}

static xph_sampler *sampler_of(const exphil_dataset *dataset, const exphil_sampling *how)
{
    xph_sampler *sampler = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (xph_sampler_create(dataset, how, &sampler, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    return sampler;
}

/* ---- one row ----------------------------------------------------------------------------------------- */

static bool is_padding(const exphil_batch *batch, int64_t row)
{
    return batch->floats[row * DATA_FLOATS + 3] == 0; /* 2.5 in all rows that are frames */
}

static int64_t episode_of(const exphil_batch *batch, int64_t row)
{
    return (int64_t)batch->floats[row * DATA_FLOATS];
}

static int64_t frame_of(const exphil_batch *batch, int64_t row)
{
    return (int64_t)batch->floats[row * DATA_FLOATS + 1];
}

static void check_padding(const exphil_batch *batch, const exphil_sampling *how, int64_t row)
{
    for (int i = 0; i < DATA_FLOATS; i++) assert_true(batch->floats[row * DATA_FLOATS + i] == 0);
    for (int i = 0; i < DATA_IDS; i++) assert_int_equal(batch->ids[row * DATA_IDS + i], 0);
    for (int i = 0; i < DATA_HEADS; i++) assert_int_equal(batch->actions[row * DATA_HEADS + i], 0);
    int slots = how->action_slots * DATA_HEADS;
    for (int i = 0; i < slots; i++) assert_int_equal(batch->past[row * slots + i], 0);
    assert_true(batch->mask[row] == 0);
}

static void check_frame(const exphil_batch *batch, const exphil_sampling *how, int64_t row)
{
    int64_t e = episode_of(batch, row), t = frame_of(batch, row);
    float floats[DATA_FLOATS];
    int32_t ids[DATA_IDS], action[DATA_HEADS];
    data_row(e, t, floats, ids, action);
    assert_memory_equal(batch->floats + row * DATA_FLOATS, floats, sizeof floats);
    assert_memory_equal(batch->ids + row * DATA_IDS, ids, sizeof ids);
    assert_true(t + how->delay_frames < lengths[e]);
    data_action(e, t + how->delay_frames, action);
    assert_memory_equal(batch->actions + row * DATA_HEADS, action, sizeof action);
    for (int s = 0; s < how->action_slots; s++) {
        data_action(e, t + how->delay_frames - 1 - s, action);
        assert_memory_equal(batch->past + (row * how->action_slots + s) * DATA_HEADS, action, sizeof action);
    }
}

/* ---- CARRY ------------------------------------------------------------------------------------------- */

/* Follows the lanes through an epoch. Counts visits; pieces gets the number of resets; order (may be NULL)
 * the frames of lane 0 as e * 1000 + t. */
typedef struct walk {
    int visits[EPISODES][256];
    int64_t pieces, frames, longest;
    int64_t *order;
} walk;

static void walk_lane(const exphil_batch *batch, const exphil_sampling *how, int64_t lane, int64_t *last,
                      walk *w)
{
    for (int64_t i = 0; i < batch->time; i++) {
        int64_t row = lane * batch->time + i;
        if (is_padding(batch, row)) {
            check_padding(batch, how, row);
            assert_int_equal(batch->reset[row], *last != -2); /* on the first row of padding alone */
            *last = -2;
            continue;
        }
        assert_int_not_equal(*last, -2); /* nothing comes after padding */
        check_frame(batch, how, row);
        assert_true(batch->mask[row] == 1);
        int64_t e = episode_of(batch, row), t = frame_of(batch, row), now = e * 1000 + t;
        if (!batch->reset[row]) assert_int_equal(now, *last + 1); /* goes on, within the episode */
        if (*last < 0) assert_int_equal(batch->reset[row], 1);
        if (lane == 0 && w->order) w->order[w->frames] = now;
        w->pieces += batch->reset[row];
        w->frames++;
        w->visits[e][t]++;
        *last = now;
    }
}

static void walk_epoch(xph_sampler *sampler, const exphil_sampling *how, int64_t epoch, walk *w)
{
    int64_t last[64];
    for (int i = 0; i < 64; i++) last[i] = -1;
    for (int64_t b = 0; b < xph_sampler_batches(sampler); b++) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        int64_t before = w->frames;
        assert_int_equal(xph_sampler_batch(sampler, epoch, b, &batch, NULL), EXPHIL_OK);
        assert_int_equal(batch.epoch, epoch);
        assert_int_equal(batch.index, b);
        assert_int_equal(batch.batch, how->batch);
        assert_int_equal(batch.time, how->time);
        for (int64_t lane = 0; lane < batch.batch; lane++) walk_lane(&batch, how, lane, &last[lane], w);
        assert_int_equal(batch.frames, w->frames - before);
        assert_true(batch.frames > 0);
    }
}

/* Every frame that has a target once, no other ever. */
static void check_visits(const walk *w, int64_t delay)
{
    for (int64_t e = 0; e < EPISODES; e++) {
        for (int64_t t = 0; t < 256; t++) assert_int_equal(w->visits[e][t], t + delay < lengths[e]);
    }
}

static void test_carry(void **state)
{
    fixture *f = *state;
    static const struct {
        int64_t batch, time, segment;
    } shapes[] = {
        {1, 1, 0},  {1, 60, 0},  {4, 10, 0}, {3, 7, 0},  {16, 60, 0},  {64, 5, 0},  {5, 1, 0},
        {1, 7, 10}, {4, 10, 10}, {4, 8, 30}, {3, 16, 1}, {2, 9, 1000}, {64, 4, 13},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int32_t delay = 0; delay <= 3; delay++) {
            for (int32_t in_order = 0; in_order < 2; in_order++) {
                exphil_sampling how = EXPHIL_SAMPLING_INIT;
                how.batch = shapes[i].batch;
                how.time = shapes[i].time;
                how.segment_frames = shapes[i].segment;
                how.delay_frames = delay;
                how.action_slots = delay + 1;
                how.in_order = in_order;
                how.seed = 5;
                xph_sampler *sampler = sampler_of(f->dataset, &how);
                for (int64_t epoch = 0; epoch < 3; epoch++) {
                    walk w = {.frames = 0};
                    walk_epoch(sampler, &how, epoch, &w);
                    check_visits(&w, delay);
                    assert_int_equal(w.frames, xph_sampler_frames(sampler));
                }
                xph_sampler_destroy(sampler);
            }
        }
    }
}

/* No padding but in the last lanes when nothing limits the pieces, and no more pieces than must be. */
static void test_carry_is_full(void **state)
{
    fixture *f = *state;
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    how.batch = 4;
    how.time = 10;
    xph_sampler *sampler = sampler_of(f->dataset, &how);
    assert_int_equal(xph_sampler_batches(sampler), 9); /* 345 frames, 40 a batch */
    for (int64_t epoch = 0; epoch < 5; epoch++) {
        walk w = {.frames = 0};
        walk_epoch(sampler, &how, epoch, &w);
        assert_in_range(w.pieces, EPISODES, EPISODES + 4); /* three cuts and the opening */
        exphil_batch batch = EXPHIL_BATCH_INIT;
        assert_int_equal(xph_sampler_batch(sampler, epoch, 0, &batch, NULL), EXPHIL_OK);
        assert_int_equal(batch.frames, 40);
    }
    xph_sampler_destroy(sampler);
}

/* Pieces are no longer than requested, borders move from epoch to epoch, and the number of batches does not. */
static void test_segments(void **state)
{
    fixture *f = *state;
    for (int64_t segment = 1; segment < 80; segment++) {
        exphil_sampling how = EXPHIL_SAMPLING_INIT;
        how.batch = 1;
        how.time = 400;
        how.segment_frames = segment;
        how.seed = 3;
        xph_sampler *sampler = sampler_of(f->dataset, &how);
        int starts[256] = {0}, places = 0; /* in episode 2, of 150 frames */
        for (int64_t epoch = 0; epoch < 40; epoch++) {
            exphil_batch batch = EXPHIL_BATCH_INIT;
            assert_int_equal(xph_sampler_batch(sampler, epoch, 0, &batch, NULL), EXPHIL_OK);
            int64_t run = 0;
            for (int64_t row = 0; row < 345; row++) {
                run = batch.reset[row] ? 1 : run + 1;
                assert_true(run <= segment);
                if (batch.reset[row] && episode_of(&batch, row) == 2) starts[frame_of(&batch, row)]++;
            }
        }
        for (int t = 1; t < 256; t++) places += starts[t] > 0;
        if (segment > 8) assert_true(places > 150 / (int)segment + 5);
        xph_sampler_destroy(sampler);
        how.batch = 3;
        how.time = 5;
        sampler = sampler_of(f->dataset, &how);
        for (int64_t epoch = 0; epoch < 10; epoch++) {
            walk w = {.frames = 0};
            walk_epoch(sampler, &how, epoch, &w); /* fails on a batch without frames */
            check_visits(&w, 0);
        }
        /* Graham's bound of the longest lane. */
        int64_t best = (345 + 2) / 3 > 2 * segment ? (345 + 2) / 3 : 2 * segment;
        assert_true((xph_sampler_batches(sampler) - 1) * 5 <= best * 4 / 3 + 5);
        xph_sampler_destroy(sampler);
    }
}

static void test_in_order(void **state)
{
    fixture *f = *state;
    for (int64_t segment = 0; segment < 70; segment += 23) {
        exphil_sampling how = EXPHIL_SAMPLING_INIT;
        how.batch = 1;
        how.time = 13;
        how.segment_frames = segment;
        how.in_order = 1;
        int64_t order[400], n = 0;
        xph_sampler *sampler = sampler_of(f->dataset, &how);
        walk w = {.order = order};
        walk_epoch(sampler, &how, 7, &w);
        for (int64_t e = 0; e < EPISODES; e++) {
            for (int64_t t = 0; t < lengths[e]; t++) assert_int_equal(order[n++], e * 1000 + t);
        }
        xph_sampler_destroy(sampler);
    }
    /* Longer than any episode: never cut, however many lanes. */
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    how.batch = 5;
    how.time = 8;
    how.segment_frames = INT64_MAX;
    how.in_order = 1;
    xph_sampler *sampler = sampler_of(f->dataset, &how);
    walk w = {.frames = 0};
    walk_epoch(sampler, &how, 0, &w);
    assert_int_equal(w.pieces, EPISODES);
    xph_sampler_destroy(sampler);
}

/* ---- WINDOW ------------------------------------------------------------------------------------------ */

static void check_window(const exphil_batch *batch, const exphil_sampling *how, int64_t lane,
                         int starts[EPISODES][256], bool last_batch)
{
    int64_t row = lane * batch->time, count = 0;
    while (count < batch->time && !is_padding(batch, row + count)) count++;
    for (int64_t i = 0; i < batch->time; i++) {
        if (i >= count) {
            check_padding(batch, how, row + i);
            assert_int_equal(batch->reset[row + i], i == count);
            continue;
        }
        check_frame(batch, how, row + i);
        assert_int_equal(batch->reset[row + i], i == 0);
        assert_true(batch->mask[row + i] == (!how->last_only || i == count - 1 ? 1.0f : 0.0f));
        assert_int_equal(episode_of(batch, row + i), episode_of(batch, row));
        assert_int_equal(frame_of(batch, row + i), frame_of(batch, row) + i);
    }
    if (!count) {
        assert_true(last_batch);
        return;
    }
    int64_t usable = lengths[episode_of(batch, row)] - how->delay_frames;
    assert_int_equal(count, usable < batch->time ? usable : batch->time);
    starts[episode_of(batch, row)][frame_of(batch, row)]++;
}

static void test_window(void **state)
{
    fixture *f = *state;
    static const struct {
        int64_t batch, time, stride;
    } shapes[] = {
        {1, 1, 1}, {4, 10, 1}, {16, 60, 0}, {7, 10, 3}, {3, 200, 1}, {5, 30, 1000},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int32_t delay = 0; delay <= 3; delay++) {
            for (int32_t kind = 0; kind < 4; kind++) {
                exphil_sampling how = EXPHIL_SAMPLING_INIT;
                how.mode = EXPHIL_MODE_WINDOW;
                how.batch = shapes[i].batch;
                how.time = shapes[i].time;
                how.stride = shapes[i].stride;
                how.delay_frames = delay;
                how.action_slots = delay;
                how.last_only = kind & 1;
                how.shuffle_frames = kind & 2 ? 1024 : 0;
                xph_sampler *sampler = sampler_of(f->dataset, &how);
                int64_t stride = how.stride ? how.stride : 1, batches = xph_sampler_batches(sampler);
                int starts[EPISODES][256] = {{0}};
                int64_t frames = 0;
                for (int64_t b = 0; b < batches; b++) {
                    exphil_batch batch = EXPHIL_BATCH_INIT;
                    assert_int_equal(xph_sampler_batch(sampler, 1, b, &batch, NULL), EXPHIL_OK);
                    for (int64_t lane = 0; lane < batch.batch; lane++)
                        check_window(&batch, &how, lane, starts, b == batches - 1);
                    assert_true(batch.frames > 0);
                    frames += batch.frames;
                }
                assert_int_equal(frames, xph_sampler_frames(sampler));
                for (int64_t e = 0; e < EPISODES; e++) {
                    int64_t usable = lengths[e] - delay, last = usable - how.time;
                    for (int64_t t = 0; t < 256; t++) {
                        bool window = usable > 0 && t % stride == 0 && (last < 0 ? t == 0 : t <= last);
                        assert_int_equal(starts[e][t], window);
                    }
                }
                xph_sampler_destroy(sampler);
            }
        }
    }
}

/* ---- order ------------------------------------------------------------------------------------------- */

/* Chi-square over positions: each of the items as often in each place. */
static void test_shuffle_is_uniform(void **state)
{
    enum { ITEMS = 10, ROUNDS = 20000 };
    static int seen[ITEMS][ITEMS];
    xph_rng rng = {.seed = 17, .stream = XPH_RNG_TEST};
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t items[ITEMS];
        for (uint32_t i = 0; i < ITEMS; i++) items[i] = i;
        assert_true(xph_shuffle(&rng, items, ITEMS, sizeof *items, NULL));
        for (int i = 0; i < ITEMS; i++) seen[items[i]][i]++;
    }
    double chi = 0, expected = (double)ROUNDS / (double)ITEMS;
    for (int i = 0; i < ITEMS; i++) {
        for (int j = 0; j < ITEMS; j++) chi += (seen[i][j] - expected) * (seen[i][j] - expected) / expected;
    }
    /* 81 degrees of freedom: mean 81, deviation 12.7; 150 is beyond one in a million. */
    assert_true(chi > 40 && chi < 150);
}

/* All 24 orders of four items, of each size that is shuffled. */
static void test_all_orders(void **state)
{
    for (size_t bytes = 4; bytes <= 16; bytes += 4) {
        int seen[256] = {0}, orders = 0;
        xph_rng rng = {.seed = bytes, .stream = XPH_RNG_TEST};
        for (int round = 0; round < 24000; round++) {
            uint8_t items[4][16];
            for (int i = 0; i < 4; i++) memset((uint8_t *)items + (size_t)i * bytes, i, bytes);
            xph_shuffle(&rng, items, 4, bytes, NULL);
            int code = 0;
            for (int i = 0; i < 4; i++) {
                const uint8_t *item = (uint8_t *)items + (size_t)i * bytes;
                for (size_t b = 1; b < bytes; b++) assert_int_equal(item[b], item[0]);
                code = code * 4 + item[0];
            }
            seen[code]++;
        }
        for (int i = 0; i < 256; i++) {
            if (!seen[i]) continue;
            orders++;
            assert_in_range(seen[i], 850, 1150); /* mean 1000, deviation 31 */
        }
        assert_int_equal(orders, 24);
    }
}

static void test_sort(void **state)
{
    xph_rng rng = {.seed = 1, .stream = XPH_RNG_TEST};
    for (int64_t count = 0; count < 70; count++) {
        uint64_t keys[70], sum = 0, after = 0;
        for (int64_t i = 0; i < count; i++) sum += keys[i] = xph_rng_below(&rng, 20) << 60 | (uint64_t)i;
        xph_sort(keys, count);
        for (int64_t i = 0; i < count; i++) {
            after += keys[i];
            if (i) assert_true(keys[i - 1] < keys[i]);
        }
        assert_true(sum == after);
    }
}

/* Everything that a batch holds, in one number. */
static uint64_t batch_hash(xph_sampler *sampler, int64_t epoch, int64_t index)
{
    exphil_batch batch = EXPHIL_BATCH_INIT;
    assert_int_equal(xph_sampler_batch(sampler, epoch, index, &batch, NULL), EXPHIL_OK);
    size_t rows = (size_t)(batch.batch * batch.time), slots = 2;
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    xph_hash_add(&hasher, batch.floats, rows * DATA_FLOATS * sizeof(float));
    xph_hash_add(&hasher, batch.ids, rows * DATA_IDS * sizeof(int32_t));
    xph_hash_add(&hasher, batch.past, rows * slots * DATA_HEADS * sizeof(int32_t));
    xph_hash_add(&hasher, batch.actions, rows * DATA_HEADS * sizeof(int32_t));
    xph_hash_add(&hasher, batch.mask, rows * sizeof(float));
    xph_hash_add(&hasher, batch.reset, rows);
    return xph_hash_end(&hasher);
}

/* A batch is a function of data, sampling, epoch and index, whatever was asked before; seeds and epochs
 * differ. */
static void test_plan_is_pure(void **state)
{
    fixture *f = *state;
    for (int kind = 0; kind < 4; kind++) {
        exphil_sampling how = EXPHIL_SAMPLING_INIT;
        how.batch = 4;
        how.time = 12;
        how.action_slots = 2;
        how.mode = kind >= 2 ? EXPHIL_MODE_WINDOW : EXPHIL_MODE_CARRY;
        how.segment_frames = kind == 1 ? 20 : 0;
        how.shuffle_frames = kind == 3 ? 1024 : 0;
        xph_sampler *a = sampler_of(f->dataset, &how), *b = sampler_of(f->dataset, &how);
        how.seed = 1;
        xph_sampler *other = sampler_of(f->dataset, &how);
        int64_t batches = xph_sampler_batches(a);
        uint64_t first[3];
        int differ = 0;
        for (int64_t epoch = 0; epoch < 3; epoch++) first[epoch] = batch_hash(a, epoch, 0);
        for (int64_t epoch = 2; epoch >= 0; epoch--) {
            for (int64_t i = batches - 1; i >= 0; i--)
                assert_true(batch_hash(b, epoch, i) == batch_hash(a, epoch, i));
            assert_true(batch_hash(b, epoch, 0) == first[epoch]);
            differ += batch_hash(other, epoch, 0) != first[epoch];
        }
        assert_true(first[0] != first[1] && first[1] != first[2] && first[0] != first[2]);
        assert_int_equal(differ, 3);
        xph_sampler_destroy(a);
        xph_sampler_destroy(b);
        xph_sampler_destroy(other);
    }
}

/* All batches of three epochs are those that 0.1.0 made: its numbers, computed by its code. */
static void test_kept_order(void **state)
{
    fixture *f = *state;
    static const struct {
        int64_t batch, time, stride, segment;
        int32_t mode, delay, in_order, last_only;
        uint64_t hash;
    } kept[] = {
        {1, 1, 0, 0, EXPHIL_MODE_CARRY, 0, 0, 0, 0xf00f75e214352db8},
        {4, 10, 0, 0, EXPHIL_MODE_CARRY, 1, 0, 0, 0x5a35bb052a215a04},
        {16, 60, 0, 0, EXPHIL_MODE_CARRY, 3, 0, 0, 0x88ad36d5ad71ae7a},
        {3, 7, 0, 0, EXPHIL_MODE_CARRY, 2, 1, 0, 0xc8ea8c5cd00cc7b9},
        {64, 5, 0, 0, EXPHIL_MODE_CARRY, 0, 1, 0, 0x008db18226da0513},
        {4, 10, 0, 10, EXPHIL_MODE_CARRY, 0, 0, 0, 0xf8e85432e215551d},
        {3, 16, 0, 1, EXPHIL_MODE_CARRY, 1, 0, 0, 0x48317506b37a4a8b},
        {2, 9, 0, 1000, EXPHIL_MODE_CARRY, 0, 0, 0, 0x7887fb31104191b0},
        {64, 4, 0, 13, EXPHIL_MODE_CARRY, 3, 0, 0, 0x77b543852502c733},
        {4, 8, 0, 30, EXPHIL_MODE_CARRY, 2, 1, 0, 0x50838c9382b2995d},
        {5, 8, 0, 90, EXPHIL_MODE_CARRY, 0, 0, 0, 0x5d71508d01b4682c},
        {4, 10, 1, 0, EXPHIL_MODE_WINDOW, 0, 0, 0, 0x8673151f4fd7cbec},
        {16, 60, 0, 0, EXPHIL_MODE_WINDOW, 1, 0, 1, 0x7b0c5d8aca25ffc7},
        {7, 10, 3, 0, EXPHIL_MODE_WINDOW, 2, 0, 0, 0x94c2c0b3a84fd1e0},
        {5, 30, 1000, 0, EXPHIL_MODE_WINDOW, 0, 0, 0, 0xbc9fb2b88eb1620b},
        {3, 20, 2, 0, EXPHIL_MODE_WINDOW, 1, 1, 0, 0x9b1bff78533f3a3f},
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        exphil_sampling how = EXPHIL_SAMPLING_INIT;
        how.batch = kept[i].batch;
        how.time = kept[i].time;
        how.stride = kept[i].stride;
        how.segment_frames = kept[i].segment;
        how.mode = kept[i].mode;
        how.delay_frames = kept[i].delay;
        how.in_order = kept[i].in_order;
        how.last_only = kept[i].last_only;
        how.action_slots = 2;
        how.seed = 11 + i;
        xph_sampler *sampler = sampler_of(f->dataset, &how);
        xph_hasher hasher;
        xph_hash_begin(&hasher);
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            for (int64_t b = 0; b < xph_sampler_batches(sampler); b++) {
                uint64_t hash = batch_hash(sampler, epoch, b);
                xph_hash_add(&hasher, &hash, sizeof hash);
            }
        }
        if (xph_hash_end(&hasher) != kept[i].hash) fail_msg("order %zu is another one", i);
        xph_sampler_destroy(sampler);
    }
}

/* In ten thousand epochs each of five equal episodes comes first on the line equally often. */
static void test_first_episode(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, (const int64_t[]){4, 4, 4, 4, 4}, 5);
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    how.batch = 1;
    how.time = 1;
    xph_sampler *sampler = sampler_of(dataset, &how);
    int first[5][4] = {{0}};
    for (int64_t epoch = 0; epoch < 10000; epoch++) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        assert_int_equal(xph_sampler_batch(sampler, epoch, 0, &batch, NULL), EXPHIL_OK);
        first[(int)batch.floats[0]][(int)batch.floats[1]]++;
    }
    for (int e = 0; e < 5; e++) {
        for (int t = 0; t < 4; t++) assert_in_range(first[e][t], 390, 610); /* mean 500, deviation 22 */
    }
    xph_sampler_destroy(sampler);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- configuration ----------------------------------------------------------------------------------- */

static void test_defaults(void **state)
{
    fixture *f = *state;
    xph_sampler *sampler = sampler_of(f->dataset, NULL);
    const exphil_sampling *how = xph_sampler_sampling(sampler);
    assert_int_equal(how->batch, 16);
    assert_int_equal(how->time, 60);
    assert_int_equal(how->stride, 1);
    assert_int_equal(how->buffers, 2);
    assert_int_equal(how->segment_frames, 0);
    xph_sampler *again = sampler_of(f->dataset, how); /* resolved ones are valid */
    xph_sampler_destroy(again);
    xph_sampler_destroy(sampler);
}

typedef struct mistake {
    const char *text;
    size_t offset, bytes;
    int64_t value;
} mistake;

#define MISTAKE(text, field, value)                                                                          \
  {                                                                                                          \
    text, offsetof(exphil_sampling, field), sizeof(((exphil_sampling *)0)->field), value                     \
  }

static void test_mistakes(void **state)
{
    fixture *f = *state;
    static const mistake mistakes[] = {
        MISTAKE("batch", batch, -1),
        MISTAKE("batch", batch, 4097),
        MISTAKE("time", time, -1),
        MISTAKE("time", time, 65537),
        MISTAKE("stride", stride, -1),
        MISTAKE("stride", stride, 2),
        MISTAKE("segment", segment_frames, -1),
        MISTAKE("mode", mode, 2),
        MISTAKE("delay", delay_frames, -1),
        MISTAKE("delay", delay_frames, 65),
        MISTAKE("slots", action_slots, -1),
        MISTAKE("slots", action_slots, 66),
        MISTAKE("in_order", in_order, 2),
        MISTAKE("last_only", last_only, 1),
        MISTAKE("buffers", buffers, -1),
        MISTAKE("buffers", buffers, 65),
        MISTAKE("sampling.shuffle_frames is for EXPHIL_MODE_WINDOW", shuffle_frames, 65536),
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        exphil_sampling how = EXPHIL_SAMPLING_INIT;
        memcpy((char *)&how + mistakes[i].offset, &mistakes[i].value, mistakes[i].bytes);
        xph_sampler *sampler = NULL;
        exphil_error error = EXPHIL_ERROR_INIT;
        assert_int_equal(xph_sampler_create(f->dataset, &how, &sampler, &error), EXPHIL_E_INVALID);
        assert_null(sampler);
        if (!strstr(error.message, mistakes[i].text)) fail_msg("%s: %s", mistakes[i].text, error.message);
    }
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    how.mode = EXPHIL_MODE_WINDOW;
    how.segment_frames = 60;
    xph_sampler *sampler = NULL;
    assert_int_equal(xph_sampler_create(f->dataset, &how, &sampler, NULL), EXPHIL_E_INVALID);
    /* Nothing to learn from: empty, or all too short for the delay. */
    exphil_dataset *dataset = data_empty(f->context);
    assert_int_equal(xph_sampler_create(dataset, NULL, &sampler, NULL), EXPHIL_E_INVALID);
    assert_int_equal(data_add(dataset, 1, 2, NULL), EXPHIL_OK);
    how = (exphil_sampling)EXPHIL_SAMPLING_INIT;
    how.delay_frames = 2;
    assert_int_equal(xph_sampler_create(dataset, &how, &sampler, NULL), EXPHIL_E_INVALID);
    how.delay_frames = 1;
    sampler = sampler_of(dataset, &how);
    exphil_batch batch = EXPHIL_BATCH_INIT;
    assert_int_equal(xph_sampler_batch(sampler, 0, 1, &batch, NULL), EXPHIL_E_INVALID);
    assert_int_equal(xph_sampler_batch(sampler, 0, -1, &batch, NULL), EXPHIL_E_INVALID);
    assert_int_equal(xph_sampler_batch(sampler, -1, 0, &batch, NULL), EXPHIL_E_INVALID);
    assert_int_equal(xph_sampler_batch(sampler, (int64_t)1 << 48, 0, &batch, NULL), EXPHIL_E_INVALID);
    assert_int_equal(batch.frames, 0);
    assert_int_equal(xph_sampler_batch(sampler, ((int64_t)1 << 48) - 1, 0, &batch, NULL), EXPHIL_OK);
    assert_int_equal(batch.frames, 1);
    xph_sampler_destroy(sampler);
    exphil_dataset_destroy(dataset);
}

static void test_shuffle_mistakes(void **state)
{
    fixture *f = *state;
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_sampler *sampler = NULL;
    how.mode = EXPHIL_MODE_WINDOW;
    static const int64_t shuffles[] = {-1, 1, 1023, 4294967296};
    for (int i = 0; i < 4; i++) {
        how.shuffle_frames = shuffles[i];
        assert_int_equal(xph_sampler_create(f->dataset, &how, &sampler, &error), EXPHIL_E_INVALID);
        assert_says(&error, "must be 0 or 1024..4294967295");
    }
    how.shuffle_frames = 1024;
    how.in_order = 1;
    assert_int_equal(xph_sampler_create(f->dataset, &how, &sampler, &error), EXPHIL_E_INVALID);
    assert_says(&error, "in_order is 1");
}

/* Episodes added later do not reach a sampler that exists. */
static void test_snapshot(void **state)
{
    fixture *f = *state;
    exphil_dataset *dataset = data_make(f->context, lengths, EPISODES);
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    how.action_slots = 2;
    xph_sampler *sampler = sampler_of(dataset, &how);
    uint64_t hash = batch_hash(sampler, 0, 0), content = data_info(dataset).content_hash;
    int64_t batches = xph_sampler_batches(sampler);
    for (int64_t e = 0; e < 50; e++) assert_int_equal(data_add(dataset, e, 100, NULL), EXPHIL_OK);
    exphil_dataset_destroy(dataset);
    assert_int_equal(xph_sampler_batches(sampler), batches);
    assert_true(batch_hash(sampler, 0, 0) == hash);
    assert_true(xph_dataset_content_hash(xph_sampler_dataset(sampler)) == content);
    xph_sampler_destroy(sampler);
}

static void test_memory_failures(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_dataset *dataset = data_make(context, lengths, EPISODES);
    for (int kind = 0; kind < 4; kind++) {
        exphil_sampling how = EXPHIL_SAMPLING_INIT;
        how.mode = kind >= 2 ? EXPHIL_MODE_WINDOW : EXPHIL_MODE_CARRY;
        how.segment_frames = kind == 1 ? 20 : 0;
        how.shuffle_frames = kind == 3 ? 1024 : 0;
        xph_sampler *sampler = NULL;
        long long failures = 0;
        for (; !sampler; failures++) {
            memory.fail_at = atomic_load(&memory.calls) + failures + 1;
            exphil_status status = xph_sampler_create(dataset, &how, &sampler, NULL);
            assert_int_equal(status, sampler ? EXPHIL_OK : EXPHIL_E_MEMORY);
        }
        assert_true(failures > 5);
        exphil_batch batch = EXPHIL_BATCH_INIT;
        memory.fail_at = atomic_load(&memory.calls) + 1;
        assert_int_equal(xph_sampler_batch(sampler, 0, 0, &batch, NULL), EXPHIL_E_MEMORY);
        assert_int_equal(xph_sampler_batch(sampler, 0, 0, &batch, NULL), EXPHIL_OK);
        long long calls = atomic_load(&memory.calls);
        for (int64_t epoch = 0; epoch < 5; epoch++)
            assert_int_equal(xph_sampler_batch(sampler, epoch, 0, &batch, NULL), EXPHIL_OK);
        assert_int_equal(atomic_load(&memory.calls), calls); /* a new epoch needs no memory */
        xph_sampler_destroy(sampler);
    }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_carry),
        cmocka_unit_test(test_carry_is_full),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_shuffle_is_uniform),
        cmocka_unit_test(test_all_orders),
        cmocka_unit_test(test_sort),
        cmocka_unit_test(test_plan_is_pure),
        cmocka_unit_test(test_first_episode),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_shuffle_mistakes),
        cmocka_unit_test(test_kept_order),
        cmocka_unit_test(test_snapshot),
        cmocka_unit_test(test_memory_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
