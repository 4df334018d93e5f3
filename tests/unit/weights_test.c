/* What rows weigh: ranges of frames against a table of every frame, masks of batches against rows that tell who they are, and
 * balance against its definition, computed here over all rows in the plainest way. */
#include "data_case.h"

#include "data/row_weights.h"
#include "data/weighing.h"

#include <math.h>
#include <stdlib.h>

#define OK(call)                                                                                             \
  do {                                                                                                       \
    exphil_error error_of = EXPHIL_ERROR_INIT, *error = &error_of;                                           \
    if ((call) < 0) fail_msg("%s:%d: %s", __FILE__, __LINE__, error_of.message);                             \
  } while (0)

static exphil_prefetcher *prefetcher_of(const exphil_dataset *dataset, const exphil_sampling *how)
{
    exphil_prefetcher *prefetcher = NULL;
    OK(exphil_prefetcher_create(dataset, how, &prefetcher, error));
    return prefetcher;
}

static exphil_prefetcher_info info_of(exphil_prefetcher *prefetcher)
{
    exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
    OK(exphil_prefetcher_query(prefetcher, &info, error));
    return info;
}

/* ---- ranges ------------------------------------------------------------------------------------------ */

enum { GAMES = 3, PORTS = 5, LOW = -30, FRAMES = 160 };

typedef struct table {
    float weight[GAMES][PORTS][FRAMES]; /* of frames LOW, LOW + 1, ... */
} table;

static void set_table(table *all, int64_t game, int32_t port, int32_t first, int32_t last, float weight)
{
    for (int32_t p = 0; p < PORTS; p++)
        for (int32_t f = 0; f < FRAMES; f++)
            if ((!port || p == port) && LOW + f >= first && LOW + f <= last) all->weight[game][p][f] = weight;
}

/* An episode of all frames of the table, in whatever runs they come. */
static void same_weights(const xph_row_weights *weights, const table *want)
{
    for (int64_t g = 0; g < GAMES; g++)
        for (int32_t p = 0; p < PORTS; p++) {
            xph_block block = {.facts = {.game = (uint64_t)g, .port = p, .first_game_frame = LOW - 7}};
            xph_episode episode = {.block = &block, .offset = p ? 7 : 0, .frames = FRAMES};
            int64_t low = p ? 0 : -LOW, end = p ? FRAMES : FRAMES + LOW; /* rows of a host begin with 0 */
            for (int64_t t = 0, count; t < end; t += count) {
                float weight;
                count = xph_row_weights_run(weights, &episode, t, end, &weight);
                assert_true(count > 0 && count <= end - t);
                for (int64_t i = t; i < t + count; i++) assert_true(weight == want->weight[g][p][i + low]);
            }
        }
}

/* An end of a range, now and then none. */
static int32_t draw_frame(xph_rng *rng, int32_t none)
{
    return xph_rng_below(rng, 8) ? (int32_t)xph_rng_below(rng, FRAMES + 20) + LOW - 10 : none;
}

static void test_ranges(void **state)
{
    static const float steps[] = {0.0f, 1.0f, 0.5f, 2.0f};
    exphil_context *context = test_context(NULL, NULL, 1);
    xph_rng rng = {.seed = 1, .stream = XPH_RNG_TEST};
    for (int round = 0; round < 40; round++) {
        table want;
        xph_row_weights *weights = NULL;
        for (int64_t g = 0; g < GAMES; g++) set_table(&want, g, 0, INT32_MIN, INT32_MAX, 1.0f);
        for (int call = 0; call < 60; call++) {
            int64_t game = (int64_t)xph_rng_below(&rng, GAMES);
            int32_t port = (int32_t)xph_rng_below(&rng, PORTS), first = draw_frame(&rng, INT32_MIN),
                    last = draw_frame(&rng, INT32_MAX);
            float weight = steps[xph_rng_below(&rng, 4)];
            if (first > last) continue;
            set_table(&want, game, port, first, last, weight);
            OK(xph_row_weights_set(context, &weights, (uint64_t)game, port, first, last, weight, error));
            same_weights(weights, &want);
        }
        for (int64_t g = 0; g < GAMES; g++)
            OK(xph_row_weights_set(context, &weights, (uint64_t)g, 0, INT32_MIN, INT32_MAX, 1.0f, error));
        assert_false(xph_row_weights_any(weights)); /* taken back: nothing is left */
        xph_row_weights_release(weights);
    }
    exphil_context_destroy(context);
}

/* Calls that are repeated or replaced take no memory; what others share is left to them. */
static void test_shared(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    xph_row_weights *weights = NULL;
    long long bytes = 0;
    for (int64_t i = 0; i < 5000; i++) {
        OK(xph_row_weights_set(context, &weights, 7, 0, (int32_t)(i % 50), (int32_t)(i % 50) + 3, 0.5f,
                               error));
        if (i == 100) bytes = atomic_load(&memory.live_bytes);
    }
    assert_int_equal(atomic_load(&memory.live_bytes), bytes);
    xph_row_weights *other = xph_row_weights_retain(weights);
    OK(xph_row_weights_set(context, &weights, 7, 0, INT32_MIN, INT32_MAX, 4.0f, error));
    assert_ptr_not_equal(weights, other);
    xph_block block = {.facts = {.game = 7}};
    xph_episode episode = {.block = &block, .frames = 200};
    float weight;
    assert_int_equal(xph_row_weights_run(weights, &episode, 0, 200, &weight), 200);
    assert_true(weight == 4.0f);
    assert_int_equal(xph_row_weights_run(other, &episode, 0, 200, &weight), 53);
    assert_true(weight == 0.5f);
    xph_row_weights_release(weights);
    xph_row_weights_release(other);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

/* ---- batches ----------------------------------------------------------------------------------------- */

enum { EPISODES = 6 };
static const int64_t lengths[EPISODES] = {70, 33, 1, 120, 8, 51};

/* Of row t of an episode of the test. */
static float weight_of(int64_t episode, int64_t t)
{
    if (episode == 1) return 0.0f;
    if (episode == 3) return t < 40 ? 1.0f : t < 60 ? 0.25f : t < 61 ? 1.0f : 8.0f;
    return episode == 5 ? 2.0f : 1.0f;
}

static void weigh(exphil_dataset *dataset)
{
    OK(exphil_dataset_weight(dataset, 103, 0, 40, 70, 0.25, error));
    OK(exphil_dataset_weight(dataset, 101, 0, INT32_MIN, INT32_MAX, 0, error));
    OK(exphil_dataset_weight(dataset, 105, 0, INT32_MIN, INT32_MAX, 2, error));
    OK(exphil_dataset_weight(dataset, 103, 0, 61, INT32_MAX, 8, error));
    OK(exphil_dataset_weight(dataset, 103, 2, 0, 10, 3, error)); /* rows are of no port */
    OK(exphil_dataset_weight(dataset, 103, 0, 60, 60, 1, error));
    OK(exphil_dataset_weight(dataset, 999, 0, 0, 10, 3, error)); /* a game that is not there */
}

static void same_but_mask(const exphil_batch *a, const exphil_batch *b, int64_t slots)
{
    size_t rows = (size_t)(b->batch * b->time);
    assert_memory_equal(a->floats, b->floats, rows * DATA_FLOATS * sizeof(float));
    assert_memory_equal(a->ids, b->ids, rows * DATA_IDS * sizeof(int32_t));
    assert_memory_equal(a->past, b->past, rows * (size_t)slots * DATA_HEADS * sizeof(int32_t));
    assert_memory_equal(a->actions, b->actions, rows * DATA_HEADS * sizeof(int32_t));
    assert_memory_equal(a->reset, b->reset, rows);
}

static void test_batches(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *plain = data_make(context, lengths, EPISODES),
                   *dataset = data_make(context, lengths, EPISODES);
    weigh(dataset);
    for (int kind = 0; kind < 24; kind++) {
        exphil_sampling how = EXPHIL_SAMPLING_INIT;
        how.batch = 1 + kind % 5;
        how.time = 9;
        how.mode = kind % 2 ? EXPHIL_MODE_WINDOW : EXPHIL_MODE_CARRY;
        how.segment_frames = kind % 4 == 2 ? 20 : 0;
        how.in_order = kind % 3 == 0;
        how.last_only = kind % 4 == 3;
        how.shuffle_frames = kind % 2 && !how.in_order && kind > 12 ? 1024 : 0;
        how.delay_frames = kind % 7;
        how.action_slots = kind / 8;
        how.workers = 1 + kind % 3;
        exphil_prefetcher *a = prefetcher_of(dataset, &how), *b = prefetcher_of(plain, &how);
        exphil_batch x = EXPHIL_BATCH_INIT, y = EXPHIL_BATCH_INIT;
        int64_t weighed = 0;
        while (exphil_prefetcher_next(a, &x, NULL) == EXPHIL_OK) {
            assert_int_equal(exphil_prefetcher_next(b, &y, NULL), EXPHIL_OK);
            int64_t frames = 0;
            same_but_mask(&x, &y, how.action_slots);
            for (int64_t row = 0; row < x.batch * x.time; row++) {
                int64_t episode = (int64_t)x.floats[row * DATA_FLOATS],
                        t = (int64_t)x.floats[row * DATA_FLOATS + 1];
                assert_true(x.mask[row] == y.mask[row] * weight_of(episode, t));
                frames += x.mask[row] > 0;
                weighed += x.mask[row] != y.mask[row];
            }
            assert_int_equal(x.frames, frames);
        }
        assert_true(weighed > 0);
        assert_int_equal(info_of(a).frames_per_epoch, info_of(b).frames_per_epoch);
        exphil_prefetcher_destroy(a);
        exphil_prefetcher_destroy(b);
    }
    exphil_dataset_destroy(plain);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* Every row weighs what is said, or 1; kinds of rows come in one epoch. */
static void expect_weights(const exphil_dataset *dataset, bool said)
{
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    how.batch = 3;
    exphil_prefetcher *prefetcher = prefetcher_of(dataset, &how);
    exphil_batch batch = EXPHIL_BATCH_INIT;
    int64_t rows = 0;
    while (exphil_prefetcher_next(prefetcher, &batch, NULL) == EXPHIL_OK)
        for (int64_t row = 0; row < batch.batch * batch.time; row++) {
            const float *floats = batch.floats + row * DATA_FLOATS;
            if (floats[3] != 2.5f) continue; /* padding */
            float want = said ? weight_of((int64_t)floats[0], (int64_t)floats[1]) : 1.0f;
            assert_true(batch.mask[row] == want);
            rows++;
        }
    assert_int_equal(rows, data_info(dataset).frames);
    assert_int_equal(xph_prefetcher_weights_hash(prefetcher) != 0, said);
    exphil_prefetcher_destroy(prefetcher);
}

/* By game, port and frame: whenever the games come, whatever the dataset is made of. */
static void test_where_they_hold(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_empty(context), *part[2], *opened = NULL;
    exphil_dataset_info before, after;
    weigh(dataset);
    for (int64_t i = 0; i < EPISODES; i++) OK(data_add(dataset, i, lengths[i], error));
    expect_weights(dataset, true);
    for (int32_t by = 0; by <= 1; by++) {
        exphil_split_config config = EXPHIL_SPLIT_CONFIG_INIT;
        config.by = by;
        config.held_out = 0.4;
        config.seed = 2;
        OK(exphil_dataset_split(dataset, &config, &part[0], &part[1], error));
        for (int side = 0; side < 2; side++) {
            expect_weights(part[side], true);
            exphil_dataset_destroy(part[side]);
        }
    }
    before = data_info(dataset);
    OK(exphil_dataset_save(dataset, test_path("rows.exphil"), error));
    OK(exphil_dataset_open(context, test_path("rows.exphil"), &opened, error));
    expect_weights(opened, false);
    weigh(opened);
    expect_weights(opened, true);
    after = data_info(opened);
    assert_true(before.content_hash == after.content_hash);
    exphil_dataset_destroy(opened);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    test_folder_remove();
}

/* A prefetcher and a split have what was said before they were made. */
static void test_snapshots(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, lengths, EPISODES), *part[2];
    exphil_split_config config = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    config.held_out = 0.5;
    OK(exphil_dataset_weight(dataset, 100, 0, INT32_MIN, INT32_MAX, 0.5, error));
    exphil_prefetcher *prefetcher = prefetcher_of(dataset, &how);
    OK(exphil_dataset_split(dataset, &config, &part[0], &part[1], error));
    OK(exphil_dataset_weight(part[0], 100, 0, INT32_MIN, INT32_MAX, 7, error));
    uint64_t hash = xph_prefetcher_weights_hash(prefetcher);
    for (int64_t game = 100; game < 106; game++)
        OK(exphil_dataset_weight(dataset, (uint64_t)game, 0, INT32_MIN, INT32_MAX, 3, error));
    int64_t half = 0, other = 0;
    while (exphil_prefetcher_next(prefetcher, &batch, NULL) == EXPHIL_OK)
        for (int64_t row = 0; row < batch.batch * batch.time; row++) {
            half += batch.mask[row] == 0.5f;
            other += batch.mask[row] != 0.5f && batch.mask[row] != 1.0f && batch.mask[row] != 0.0f;
        }
    assert_int_equal(half, lengths[0]);
    assert_int_equal(other, 0);
    assert_true(xph_prefetcher_weights_hash(prefetcher) == hash);
    exphil_prefetcher_destroy(prefetcher);
    for (int side = 0; side < 2; side++) {
        xph_weighing *weighing = NULL;
        exphil_sampling resolved = EXPHIL_SAMPLING_INIT;
        OK(xph_weighing_create(part[side], &resolved, &weighing, error));
        exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
        bool has = false;
        for (int64_t i = 0; exphil_dataset_episode(part[side], i, &info, NULL) >= 0; i++)
            has |= info.game == 100;
        assert_int_equal(xph_weighing_hash(weighing) != 0, has);
        xph_weighing_free(weighing);
        exphil_dataset_destroy(part[side]);
    }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static uint64_t hash_of(const exphil_dataset *dataset)
{
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    exphil_prefetcher *prefetcher = prefetcher_of(dataset, &how);
    uint64_t hash = xph_prefetcher_weights_hash(prefetcher);
    exphil_prefetcher_destroy(prefetcher);
    return hash;
}

/* The hash is of what rows weigh, not of calls. */
static void test_hash(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *a = data_make(context, lengths, EPISODES), *b = data_make(context, lengths, EPISODES);
    assert_true(hash_of(a) == 0);
    OK(exphil_dataset_weight(a, 555, 0, 0, 10, 3, error));
    assert_true(hash_of(a) == 0);
    OK(exphil_dataset_weight(a, 100, 0, 5, 20, 3, error));
    OK(exphil_dataset_weight(b, 100, 0, 11, 20, 3, error));
    assert_true(hash_of(a) && hash_of(b) && hash_of(a) != hash_of(b));
    OK(exphil_dataset_weight(b, 100, 0, 5, 12, 3, error));
    assert_true(hash_of(a) == hash_of(b));
    OK(exphil_dataset_weight(b, 100, 0, 5, 5, 2, error));
    assert_true(hash_of(a) != hash_of(b));
    OK(exphil_dataset_weight(b, 100, 0, INT32_MIN, INT32_MAX, 1, error));
    assert_true(hash_of(b) == 0);
    exphil_dataset_destroy(a);
    exphil_dataset_destroy(b);
    exphil_context_destroy(context);
}

static void test_refusals(void **state)
{
    static const struct {
        int32_t port, first, last;
        double weight;
        const char *says;
    } wrong[] = {{-1, 0, 1, 1, "port is -1, must be 0..4"},
                 {5, 0, 1, 1, "port is 5"},
                 {0, 2, 1, 1, "first_frame is 2, behind last_frame 1"},
                 {0, 0, 1, -0.5, "weight is -0.5, must be 0 or 0.000001..1000"},
                 {0, 0, 1, 1000.5, "weight is 1000.5"},
                 {0, 0, 1, 1e-7, "weight is 1e-07"},
                 {0, 0, 1, INFINITY, "weight is"},
                 {0, 0, 1, NAN, "weight is"}};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, lengths, EPISODES);
    exphil_error failure = EXPHIL_ERROR_INIT;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(exphil_dataset_weight(dataset, 100, wrong[i].port, wrong[i].first, wrong[i].last,
                                               wrong[i].weight, &failure),
                         EXPHIL_E_INVALID);
        assert_says(&failure, wrong[i].says);
    }
    assert_true(hash_of(dataset) == 0);
    assert_int_equal(exphil_dataset_weight(NULL, 1, 0, 0, 0, 1, &failure), EXPHIL_E_INVALID);
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    exphil_prefetcher *none = NULL;
    double *const shares[] = {&how.balance_character, &how.balance_action, &how.balance_change};
    static const char *const names[] = {"sampling.balance_character is 1.5, must be 0..1",
                                        "sampling.balance_action is", "sampling.balance_change is -1"};
    static const double bad[] = {1.5, NAN, -1};
    for (int i = 0; i < 3; i++) {
        *shares[i] = bad[i];
        assert_int_equal(exphil_prefetcher_create(dataset, &how, &none, &failure), EXPHIL_E_INVALID);
        assert_says(&failure, names[i]);
        *shares[i] = 0;
    }
    for (int64_t game = 100; game < 106; game++)
        OK(exphil_dataset_weight(dataset, (uint64_t)game, 0, INT32_MIN, INT32_MAX, 0, error));
    assert_int_equal(exphil_prefetcher_create(dataset, &how, &none, &failure), EXPHIL_E_INVALID);
    assert_says(&failure, "none of the 283 rows with a target weighs more than 0");
    assert_null(none);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- balance ----------------------------------------------------------------------------------------- */

enum { HEADS = 2, CLASSES = 6, BITS = 2, CELLS = 2 * BITS + CLASSES };
static const exphil_head_spec heads[HEADS] = {{"bits", EXPHIL_BERNOULLI, BITS, 1, 0},
                                              {"class", EXPHIL_CATEGORICAL, CLASSES, 2, 0}};
static const exphil_spec spec = {sizeof spec, "toy", "toy-2", 2, 0, NULL, HEADS, heads, 0};

typedef void action_fn(int64_t episode, int64_t t, int32_t *action);

/* Rows of one episode a character; floats are episode and frame. */
static exphil_dataset *made_of(exphil_context *context, const int64_t *frames, const int32_t *characters,
                               int64_t count, action_fn *act)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *dataset = NULL;
    config.spec = &spec;
    OK(exphil_dataset_create(context, &config, &dataset, error));
    for (int64_t e = 0; e < count; e++) {
        float *floats = calloc((size_t)frames[e], 2 * sizeof *floats);
        int32_t *actions = calloc((size_t)frames[e], HEADS * sizeof *actions);
        for (int64_t t = 0; t < frames[e]; t++) {
            floats[2 * t] = (float)e;
            floats[2 * t + 1] = (float)t;
            act(e, t, actions + HEADS * t);
        }
        OK(exphil_dataset_add_rows(dataset, (uint64_t)(100 + e), frames[e], floats, NULL, actions, error));
        dataset->episodes[e].block->facts.character = characters[e];
        free(floats);
        free(actions);
    }
    return dataset;
}

/* What every row weighs in an epoch of lanes: [episode][t], -1 where it did not come. */
static void masks_of(const exphil_dataset *dataset, const exphil_sampling *how, int64_t most, double *mask,
                     double *share)
{
    exphil_prefetcher *prefetcher = prefetcher_of(dataset, how);
    exphil_batch batch = EXPHIL_BATCH_INIT;
    for (int64_t i = 0; i < dataset->episode_count * most; i++) mask[i] = -1;
    while (exphil_prefetcher_next(prefetcher, &batch, NULL) == EXPHIL_OK)
        for (int64_t row = 0; row < batch.batch * batch.time; row++) {
            int64_t at = (int64_t)batch.floats[2 * row] * most + (int64_t)batch.floats[2 * row + 1];
            if (batch.mask[row] > 0) mask[at] = (double)batch.mask[row];
        }
    *share = info_of(prefetcher).effective_share;
    exphil_prefetcher_destroy(prefetcher);
}

/* Classes of 50, 25, 15 and 10 % of the rows, by the class head; bits stay. */
static void four_classes(int64_t episode, int64_t t, int32_t *action)
{
    static const int32_t class[20] = {0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2};
    (void)episode;
    action[0] = 1;
    action[1] = class[t % 20];
}

/* Five frames of one class, then five of the other: a fifth of the targets differ. */
static void long_presses(int64_t episode, int64_t t, int32_t *action)
{
    (void)episode;
    action[0] = (int32_t)(1 + (t / 5) % 2);
    action[1] = 2;
}

enum { CHARACTERS, ACTIONS, CHANGES };

static int64_t class_of(int kind, const int32_t *characters, int64_t e, int64_t t)
{
    int32_t action[HEADS], before[HEADS] = {1, 2};
    if (kind == CHARACTERS) return characters[e];
    four_classes(e, t, action);
    if (kind == ACTIONS) return action[1];
    long_presses(e, t, action);
    if (t) long_presses(e, t - 1, before);
    return action[0] != before[0];
}

/* b of the weight is given evenly, the rest as it lies. */
static void test_shares(void **state)
{
    static const int64_t frames[] = {600, 300, 70, 30};
    static const int32_t characters[] = {2, 0, 3, 1};
    static double mask[4 * 600];
    exphil_context *context = test_context(NULL, NULL, 1);
    for (int kind = 0; kind < 3; kind++)
        for (int step = 0; step <= 4; step++) {
            exphil_dataset *dataset =
                made_of(context, frames, characters, 4, kind == CHANGES ? long_presses : four_classes);
            exphil_sampling how = EXPHIL_SAMPLING_INIT;
            double share = 0.25 * step, natural[4] = {0}, got[4] = {0}, rows = 0, sum = 0, squares = 0,
                   effective;
            int64_t classes = kind == CHANGES ? 2 : 4;
            how.batch = 3;
            *(kind == CHARACTERS ? &how.balance_character
              : kind == ACTIONS  ? &how.balance_action
                                 : &how.balance_change) = share;
            masks_of(dataset, &how, 600, mask, &effective);
            for (int64_t e = 0; e < 4; e++)
                for (int64_t t = 0; t < frames[e]; t++) {
                    double weight = mask[e * 600 + t];
                    assert_true(weight > 0);
                    natural[class_of(kind, characters, e, t)] += 1;
                    got[class_of(kind, characters, e, t)] += weight;
                    rows += 1;
                    sum += weight;
                    squares += weight * weight;
                }
            for (int64_t k = 0; k < classes; k++) {
                double want = (1 - share) * natural[k] / rows + share / (double)classes;
                if (!(fabs(got[k] / sum - want) < 1e-5 * want))
                    fail_msg("kind %d, share %g, class %d: %g, not %g", kind, share, (int)k, got[k] / sum,
                             want);
            }
            assert_true(fabs(sum / rows - 1) < 1e-6); /* the mean is 1 */
            assert_true(fabs(effective - sum * sum / (rows * squares)) < 1e-6);
            assert_true(step ? effective < 1 : effective == 1);
            exphil_dataset_destroy(dataset);
        }
    exphil_context_destroy(context);
}

static void any_action(int64_t episode, int64_t t, int32_t *action)
{
    const int64_t key[2] = {episode, t / 2};
    uint64_t drawn = xph_hash(key, sizeof key);
    action[0] = drawn % 17 == 0 ? 2 : drawn % 5 == 0 ? 3 : 1;
    action[1] = drawn % 101 == 7 ? 5 : drawn % 30 == 3 ? 4 : (int32_t)((drawn >> 20) % 3);
}

/* The definition, row by row. */
typedef struct reference {
    const int64_t *frames;
    const int32_t *characters;
    const exphil_sampling *how;
    double value[CELLS], action[CELLS], character[8], change[2], all;
} reference;

static double said(int64_t e, int64_t t)
{
    return e == 2 && t >= 100 ? 3.0 : e == 4 && t < 50 ? 0.0 : 1.0;
}

static int64_t rarest(const reference *r, const int32_t *action)
{
    int64_t cell[BITS + 1], best;
    for (int i = 0; i < BITS; i++) cell[i] = 2 * i + ((action[0] >> i) & 1);
    cell[BITS] = 2 * BITS + action[1];
    best = cell[0];
    for (int i = 1; i <= BITS; i++)
        if (r->value[cell[i]] < r->value[best]) best = cell[i];
    return best;
}

static int changed(int64_t e, int64_t f)
{
    int32_t now[HEADS], before[HEADS] = {1, 2};
    any_action(e, f, now);
    if (f) any_action(e, f - 1, before);
    return now[0] != before[0] || now[1] != before[1];
}

static double factor_of(const double *classes, int count, int at, double share)
{
    double occur = 0, all = 0;
    for (int i = 0; i < count; i++) {
        occur += classes[i] > 0;
        all += classes[i];
    }
    double ratio = all / occur / classes[at];
    return 1 - share + share * fmin(10.0, fmax(0.1, ratio));
}

static double product(const reference *r, int64_t e, int64_t t)
{
    int32_t action[HEADS];
    any_action(e, t + r->how->delay_frames, action);
    return fmin(10.0,
                factor_of(r->character, 8, r->characters[e] + 1, r->how->balance_character) *
                    factor_of(r->action, CELLS, (int)rarest(r, action), r->how->balance_action) *
                    factor_of(r->change, 2, changed(e, t + r->how->delay_frames), r->how->balance_change));
}

#define EACH_ROW(r, e, t)                                                                                    \
  for (int64_t e = 0; e < 5; e++)                                                                            \
    for (int64_t t = 0; t < (r)->frames[e] - (r)->how->delay_frames; t++)

static void count(reference *r)
{
    int32_t action[HEADS];
    EACH_ROW(r, e, t)
    {
        any_action(e, t + r->how->delay_frames, action);
        for (int i = 0; i < BITS; i++) r->value[2 * i + ((action[0] >> i) & 1)] += said(e, t);
        r->value[2 * BITS + action[1]] += said(e, t);
        r->character[r->characters[e] + 1] += said(e, t);
        r->change[changed(e, t + r->how->delay_frames)] += said(e, t);
        r->all += said(e, t);
    }
    EACH_ROW(r, e, t)
    {
        any_action(e, t + r->how->delay_frames, action);
        r->action[rarest(r, action)] += said(e, t);
    }
}

static void check_balance(const exphil_dataset *dataset, const int64_t *frames, const int32_t *characters,
                          const exphil_sampling *how)
{
    static double mask[5 * 700];
    reference r = {.frames = frames, .characters = characters, .how = how};
    double effective, mean = 0, rows = 0, sum = 0, squares = 0;
    masks_of(dataset, how, 700, mask, &effective);
    count(&r);
    EACH_ROW(&r, e, t) mean += said(e, t) * product(&r, e, t) / r.all;
    EACH_ROW(&r, e, t)
    {
        double want = said(e, t) * product(&r, e, t) / mean, got = mask[e * 700 + t];
        if (want == 0) assert_true(got == -1);
        if (want > 0 && !(fabs(got - want) < 1e-6 * want))
            fail_msg("episode %d, row %d: %g, not %g", (int)e, (int)t, got, want);
        rows += 1;
        sum += want;
        squares += want * want;
    }
    assert_true(fabs(effective - sum * sum / (rows * squares)) < 1e-9);
}

static void test_definition(void **state)
{
    static const int64_t frames[] = {700, 300, 250, 20, 90};
    static const int32_t characters[] = {2, 0, 2, -1, 6};
    static const double shares[] = {0, 0.3, 1};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = made_of(context, frames, characters, 5, any_action);
    OK(exphil_dataset_weight(dataset, 102, 0, 100, INT32_MAX, 3, error));
    OK(exphil_dataset_weight(dataset, 104, 0, INT32_MIN, 49, 0, error));
    for (int kind = 0; kind < 54; kind++) {
        exphil_sampling how = EXPHIL_SAMPLING_INIT;
        how.balance_character = shares[kind % 3];
        how.balance_action = shares[kind / 3 % 3];
        how.balance_change = shares[kind / 9 % 3];
        how.delay_frames = kind < 27 ? 0 : 3;
        how.action_slots = kind % 2;
        how.batch = 1 + kind % 4;
        how.workers = 1 + kind % 3;
        check_balance(dataset, frames, characters, &how);
    }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* One row weighs the same in any batch, however batches are made. */
static void test_independent(void **state)
{
    static const int64_t frames[] = {700, 300, 250, 20, 90};
    static const int32_t characters[] = {2, 0, 2, -1, 6};
    static double want[5 * 700];
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = made_of(context, frames, characters, 5, any_action);
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    double share;
    how.balance_character = how.balance_action = how.balance_change = 0.5;
    masks_of(dataset, &how, 700, want, &share);
    for (int kind = 0; kind < 12; kind++) {
        how.mode = kind % 2 ? EXPHIL_MODE_WINDOW : EXPHIL_MODE_CARRY;
        how.batch = 1 + kind;
        how.time = 5 + 7 * kind;
        how.workers = 1 + kind % 4;
        how.seed = (uint64_t)kind;
        how.action_slots = kind % 3;
        how.shuffle_frames = kind % 4 == 3 ? 1024 : 0;
        exphil_prefetcher *prefetcher = prefetcher_of(dataset, &how);
        exphil_batch batch = EXPHIL_BATCH_INIT;
        while (exphil_prefetcher_next(prefetcher, &batch, NULL) == EXPHIL_OK)
            for (int64_t row = 0; row < batch.batch * batch.time; row++)
                if (batch.mask[row] > 0)
                    assert_true(
                        (double)batch.mask[row] ==
                        want[(int64_t)batch.floats[2 * row] * 700 + (int64_t)batch.floats[2 * row + 1]]);
        assert_true(info_of(prefetcher).effective_share == share);
        exphil_prefetcher_destroy(prefetcher);
    }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* Rows that are made for a group of windows are as those that lie there; so is the one before them. */
static void test_groups(void **state)
{
    static const int64_t frames[] = {5000, 300};
    static const int32_t characters[] = {2, 0};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *there = made_of(context, frames, characters, 2, any_action),
                   *made = made_of(context, frames, characters, 2, any_action);
    made->of_games = true; /* of which rows are made, in groups */
    for (int kind = 0; kind < 6; kind++) {
        exphil_sampling how = EXPHIL_SAMPLING_INIT;
        exphil_batch x = EXPHIL_BATCH_INIT, y = EXPHIL_BATCH_INIT;
        how.mode = EXPHIL_MODE_WINDOW;
        how.time = 7;
        how.stride = 3;
        how.shuffle_frames = 1200;
        how.action_slots = kind % 3;
        how.delay_frames = kind / 3;
        how.balance_change = 1;
        exphil_prefetcher *a = prefetcher_of(there, &how), *b = prefetcher_of(made, &how);
        while (exphil_prefetcher_next(a, &x, NULL) == EXPHIL_OK) {
            assert_int_equal(exphil_prefetcher_next(b, &y, NULL), EXPHIL_OK);
            assert_memory_equal(x.mask, y.mask, (size_t)(x.batch * x.time) * sizeof *x.mask);
            assert_memory_equal(x.floats, y.floats, (size_t)(x.batch * x.time) * 2 * sizeof *x.floats);
        }
        exphil_prefetcher_destroy(a);
        exphil_prefetcher_destroy(b);
    }
    made->of_games = false;
    exphil_dataset_destroy(there);
    exphil_dataset_destroy(made);
    exphil_context_destroy(context);
}

/* Many rows of games are counted in stretches: in bounded time, the same ones each time, near to the whole. */
static void test_sampled(void **state)
{
    static const int64_t frames[] = {300000, 150000, 90000};
    static const int32_t characters[] = {2, 0, 3};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = made_of(context, frames, characters, 3, any_action);
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    xph_weighing *weighing[3] = {NULL, NULL, NULL};
    float mask[3][256];
    uint8_t packed[257 * 2];
    how.balance_action = how.balance_change = how.balance_character = 0.5;
    for (int64_t t = 0; t < 256; t++) {
        int32_t action[HEADS];
        any_action(0, t, action);
        xph_action_pack(&dataset->shape, action, packed + t * dataset->shape.action_bytes);
    }
    for (int i = 0; i < 3; i++) {
        dataset->of_games = i > 0; /* how rows come does not matter to counting */
        OK(xph_weighing_create(dataset, &how, &weighing[i], error));
        for (int k = 0; k < 256; k++) mask[i][k] = 1;
        (void)xph_weighing_rows(weighing[i], &dataset->episodes[0], 0, 0, 256, packed, 0, mask[i]);
    }
    assert_memory_equal(mask[1], mask[2], sizeof mask[1]);
    assert_memory_not_equal(mask[0], mask[1], sizeof mask[0]);
    for (int k = 0; k < 256; k++) assert_true(fabs((double)(mask[1][k] / mask[0][k]) - 1) < 0.05);
    assert_true(fabs(xph_weighing_share(weighing[1]) / xph_weighing_share(weighing[0]) - 1) < 0.02);
    for (int i = 0; i < 3; i++) xph_weighing_free(weighing[i]);
    dataset->of_games = false;
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* Wherever memory ends, nothing is left behind and nothing is half said. */
static void test_memory_ends(void **state)
{
    static const int64_t frames[] = {70, 30};
    static const int32_t characters[] = {2, 0};
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_dataset *dataset = made_of(context, frames, characters, 2, any_action);
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    exphil_prefetcher *prefetcher = NULL;
    exphil_status status = EXPHIL_E_MEMORY;
    how.balance_action = how.balance_change = how.balance_character = 0.5;
    OK(exphil_dataset_weight(dataset, 100, 0, 3, 9, 2, error));
    exphil_prefetcher *before = prefetcher_of(dataset, &how);
    uint64_t hash = xph_prefetcher_weights_hash(before);
    for (int fails = 1; status == EXPHIL_E_MEMORY; fails++) {
        memory.fail_at = atomic_load(&memory.calls) + fails;
        status = exphil_dataset_weight(dataset, 101, 0, 0, 5, 2, NULL);
        memory.fail_at = 0;
        if (status == EXPHIL_E_MEMORY) assert_true(hash_of(dataset) == hash);
        assert_true(fails > 1 || status == EXPHIL_E_MEMORY);
    }
    assert_int_equal(status, EXPHIL_OK);
    assert_true(hash_of(dataset) != hash);
    for (int fails = 1; !prefetcher; fails++) {
        memory.fail_at = atomic_load(&memory.calls) + fails;
        status = exphil_prefetcher_create(dataset, &how, &prefetcher, NULL);
        memory.fail_at = 0;
        assert_int_equal(status, prefetcher ? EXPHIL_OK : EXPHIL_E_MEMORY);
    }
    exphil_prefetcher_destroy(prefetcher);
    exphil_prefetcher_destroy(before);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),      cmocka_unit_test(test_shared),
        cmocka_unit_test(test_batches),     cmocka_unit_test(test_where_they_hold),
        cmocka_unit_test(test_snapshots),   cmocka_unit_test(test_hash),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_shares),
        cmocka_unit_test(test_definition),  cmocka_unit_test(test_independent),
        cmocka_unit_test(test_groups),      cmocka_unit_test(test_sampled),
        cmocka_unit_test(test_memory_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
