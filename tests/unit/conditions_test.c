/* Conditions and delays in datasets and batches: whose value an episode has, what is masked and drawn, and every row of a
 * batch against the rule, whatever the batch is. */
#include "data_case.h"

#include "data/dataset.h"
#include "data/sampler.h"

#include <exphil/conditions.h>
#include <stdlib.h>

enum { EPISODES = 9, TOLD = 3 };
static const int64_t lengths[EPISODES] = {37, 12, 150, 24, 61, 90, 33, 9, 70};
static const int32_t delays[3] = {0, 2, 7};

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

static exphil_condition_spec specs[2] = {{"player", 6, 0, 0.0}, {"rank", 3, 4, 0.0}};

static exphil_sampling sampling_of(int32_t mode)
{
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    how.mode = mode;
    how.batch = 2;
    how.time = 8;
    how.seed = 5;
    how.action_slots = 8;
    how.conditions = specs;
    how.condition_count = 2;
    how.delays = delays;
    how.delay_count = 3;
    return how;
}

static xph_sampler *sampler_of(const exphil_dataset *dataset, const exphil_sampling *how)
{
    xph_sampler *sampler = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (xph_sampler_create(dataset, how, &sampler, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    return sampler;
}

/* What the first frame of every episode is shown in an epoch: [EPISODES][TOLD]. */
static void shown(xph_sampler *sampler, int64_t epoch, int32_t told[EPISODES][TOLD])
{
    for (int64_t i = 0; i < xph_sampler_batches(sampler); i++) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        assert_int_equal(xph_sampler_batch(sampler, epoch, i, &batch, NULL), EXPHIL_OK);
        for (int64_t row = 0; row < batch.batch * batch.time; row++)
            if (batch.mask[row] > 0)
                memcpy(told[(int64_t)batch.floats[row * DATA_FLOATS]], batch.conditions + row * TOLD,
                       sizeof told[0]);
    }
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static void set(exphil_dataset *dataset, const char *name, int64_t episode, int32_t port, int32_t value)
{
    assert_int_equal(exphil_dataset_condition(dataset, name, (uint64_t)(100 + episode), port, value, NULL),
                     EXPHIL_OK);
}

/* Values of the whole games but for episode 3, which has one of its own, and episode 4, whose port has. Rows have
 * port 0. */
static void expected(int32_t values[EPISODES])
{
    for (int e = 0; e < EPISODES; e++) values[e] = e % 7;
    values[3] = 6;
}

static void give(exphil_dataset *dataset)
{
    for (int e = 0; e < EPISODES; e++) set(dataset, "player", e, 0, e % 7);
    set(dataset, "player", 5, 1, 2); /* of another side of that game */
    set(dataset, "rank", 1, 0, 3);
    assert_int_equal(exphil_dataset_condition_episodes(dataset, "player", 3, 1, 6, NULL), EXPHIL_OK);
}

static void same_values(const exphil_dataset *dataset, int64_t first, int64_t count)
{
    int32_t told[EPISODES][TOLD] = {{0}}, values[EPISODES];
    exphil_sampling how = sampling_of(EXPHIL_MODE_CARRY);
    xph_sampler *sampler = sampler_of(dataset, &how);
    shown(sampler, 0, told);
    expected(values);
    for (int64_t e = first; e < first + count; e++) {
        assert_int_equal(told[e][0], values[e]);
        assert_int_equal(told[e][1], e == 1 ? 3 : 0);
    }
    xph_sampler_destroy(sampler);
}

/* Before and after the games are there, in splits, and not in what was made before. */
static void values_belong_to_games(void **state)
{
    fixture *f = *state;
    exphil_dataset *early = data_empty(f->context), *kept = NULL, *held = NULL;
    exphil_sampling how = sampling_of(EXPHIL_MODE_CARRY);
    int32_t told[EPISODES][TOLD] = {{0}};
    xph_sampler *before = sampler_of(f->dataset, &how);
    give(f->dataset);
    same_values(f->dataset, 0, EPISODES);
    shown(before, 0, told);
    for (int e = 0; e < EPISODES; e++) assert_int_equal(told[e][0] | told[e][1], 0);
    xph_sampler_destroy(before);
    for (int e = 0; e < EPISODES; e++) set(early, "player", e, 0, e % 7);
    set(early, "rank", 1, 0, 2);
    set(early, "rank", 1, 0, 3); /* the later call counts */
    for (int e = 0; e < EPISODES; e++) {
        assert_int_equal(data_add(early, e, lengths[e], NULL), EXPHIL_OK);
        if (e == 3)
            assert_int_equal(exphil_dataset_condition_episodes(early, "player", 3, 1, 6, NULL), EXPHIL_OK);
    }
    same_values(early, 0, EPISODES);
    exphil_split_config split = EXPHIL_SPLIT_CONFIG_INIT;
    split.held_out = 0.3;
    split.by = EXPHIL_SPLIT_TIME;
    assert_int_equal(exphil_dataset_split(early, &split, &kept, &held, NULL), EXPHIL_OK);
    set(early, "player", 0, 0, 5); /* too late for them */
    same_values(kept, 0, EPISODES);
    exphil_dataset_destroy(kept);
    exphil_dataset_destroy(held);
    exphil_dataset_destroy(early);
}

/* All values of a dataset, by the first name. */
static void values_of(const exphil_dataset *dataset, uint16_t values[EPISODES])
{
    xph_told told;
    int32_t none = 0;
    uint16_t *all = NULL;
    size_t bytes = 0;
    assert_int_equal(xph_told_take(&told, specs, 1, NULL, 0, &none, "test", NULL), EXPHIL_OK);
    assert_int_equal(xph_conditions_of(dataset, &told, &all, &bytes, NULL), EXPHIL_OK);
    assert_int_equal(bytes, 2 * dataset->episode_count); /* two bytes each */
    memcpy(values, all, bytes);
    xph_free(dataset->context, all, bytes);
}

/* Values by episode go with their episodes into both sides of a split, whose numbers are others, and of what snapshots and
 * splits share nobody changes anything for the others. */
static void values_are_shared_until_they_change(void **state)
{
    fixture *f = *state;
    exphil_dataset *kept = NULL, *held = NULL, *snapshot = NULL, *later = NULL;
    exphil_split_config split = EXPHIL_SPLIT_CONFIG_INIT;
    uint16_t values[EPISODES];
    int32_t want[EPISODES];
    give(f->dataset);
    expected(want);
    assert_int_equal(xph_dataset_snapshot(f->dataset, &snapshot, NULL), EXPHIL_OK);
    assert_ptr_equal(snapshot->conditions, f->dataset->conditions);
    assert_int_equal(exphil_dataset_condition_episodes(f->dataset, "player", 8, 1, 5, NULL), EXPHIL_OK);
    assert_ptr_not_equal(snapshot->conditions, f->dataset->conditions);
    values_of(snapshot, values);
    for (int e = 0; e < EPISODES; e++) assert_int_equal(values[e], want[e]);
    want[8] = 5;
    values_of(f->dataset, values);
    for (int e = 0; e < EPISODES; e++) assert_int_equal(values[e], want[e]);
    split.held_out = 0.4;
    split.by = EXPHIL_SPLIT_GAME;
    assert_int_equal(exphil_dataset_split(f->dataset, &split, &kept, &held, NULL), EXPHIL_OK);
    for (int side = 0; side < 2; side++) {
        const exphil_dataset *d = side ? held : kept;
        values_of(d, values);
        for (int64_t i = 0; i < d->episode_count; i++)
            assert_int_equal(values[i], want[d->episodes[i].block->facts.game - 100]);
    }
    assert_int_equal(kept->episode_count + held->episode_count, EPISODES);
    exphil_dataset_destroy(f->dataset); /* nothing is lost with the first */
    f->dataset = snapshot;
    assert_int_equal(xph_dataset_snapshot(f->dataset, &later, NULL), EXPHIL_OK);
    set(later, "player", 0, 0, 1);
    values_of(f->dataset, values);
    assert_int_equal(values[0], 0);
    values_of(later, values);
    assert_int_equal(values[0], 1);
    exphil_dataset_destroy(later);
    exphil_dataset_destroy(kept);
    exphil_dataset_destroy(held);
}

/* Every allocation of giving a value fails once: it says so, and the dataset has what it had. */
static void memory_runs_out(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_dataset *dataset = data_make(context, lengths, EPISODES), *snapshot = NULL;
    uint16_t before[EPISODES], now[EPISODES];
    int32_t refused = 0;
    give(dataset);
    values_of(dataset, before);
    assert_int_equal(xph_dataset_snapshot(dataset, &snapshot, NULL), EXPHIL_OK);
    for (int64_t at = 1;; at++) {
        memory.fail_at = atomic_load(&memory.calls) + at;
        exphil_status status = exphil_dataset_condition_episodes(dataset, "player", 7, 2, 4, NULL);
        memory.fail_at = -1;
        if (status == EXPHIL_OK) break;
        assert_int_equal(status, EXPHIL_E_MEMORY);
        values_of(dataset, now);
        assert_memory_equal(before, now, sizeof before);
        refused++;
    }
    assert_true(refused >= 2); /* a copy, for the snapshot has the other, and its parts */
    values_of(dataset, now);
    assert_true(now[7] == 4 && now[8] == 4 && memcmp(before, now, 7 * sizeof *now) == 0);
    exphil_dataset_destroy(snapshot);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

/* Many games: the table grows, and both ports of a game stay apart. */
static void ports_have_their_own(void **state)
{
    fixture *f = *state;
    exphil_dataset *dataset = data_empty(f->context);
    xph_told told;
    int32_t none = 0;
    uint16_t *values = NULL;
    size_t bytes = 0;
    assert_int_equal(xph_told_take(&told, specs, 1, NULL, 0, &none, "test", NULL), EXPHIL_OK);
    for (int e = 0; e < 500; e++) {
        assert_int_equal(data_add(dataset, e, 3, NULL), EXPHIL_OK);
        dataset->episodes[e].block->facts.port = e % 3; /* as if replays had brought them */
        set(dataset, "player", e, 0, 1);
        if (e % 2) set(dataset, "player", e, 1, 2 + e % 4);
        set(dataset, "player", e, 4, 6);
    }
    assert_int_equal(xph_conditions_of(dataset, &told, &values, &bytes, NULL), EXPHIL_OK);
    for (int e = 0; e < 500; e++) assert_int_equal(values[e], e % 3 == 1 && e % 2 ? 2 + e % 4 : 1);
    xph_free(f->context, values, bytes);
    exphil_dataset_destroy(dataset);
}

static void wrong_values_are_refused(void **state)
{
    fixture *f = *state;
    exphil_dataset *d = f->dataset;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_sampling how = sampling_of(EXPHIL_MODE_CARRY);
    exphil_prefetcher *prefetcher = NULL;
    xph_sampler *sampler = NULL;
#define REFUSED(call, words)                                                                                 \
  do {                                                                                                       \
    assert_int_equal(call, EXPHIL_E_INVALID);                                                                \
    assert_says(&error, words);                                                                              \
  } while (0)
    REFUSED(exphil_dataset_condition(NULL, "a", 1, 0, 1, &error), "dataset is NULL");
    REFUSED(exphil_dataset_condition(d, NULL, 1, 0, 1, &error), "name must be 1..31");
    REFUSED(exphil_dataset_condition(d, "Player", 1, 0, 1, &error), "name must be 1..31");
    REFUSED(exphil_dataset_condition(d, "a", 1, 5, 1, &error), "port is 5, must be 0..4");
    REFUSED(exphil_dataset_condition(d, "a", 1, 0, -1, &error), "condition a: value is -1, must be 0..65535");
    REFUSED(exphil_dataset_condition(d, "a", 1, 0, 65536, &error), "value is 65536");
    REFUSED(exphil_dataset_condition_episodes(d, "a", 5, 5, 1, &error), "there are 9");
    REFUSED(exphil_dataset_condition_episodes(d, "a", -1, 1, 1, &error), "there are 9");
    REFUSED(exphil_prefetcher_create(d, &how, &prefetcher, &error), "no values of condition player");
    set(d, "rank", 2, 0, 4);
    REFUSED(xph_sampler_create(d, &how, &sampler, &error),
            "condition rank of episode 2 (game 0000000000000066, port 0) is 4, outside 0..3");
    for (int i = 0; i < EXPHIL_CONDITIONS_MAX - 1; i++) {
        char name[8] = {'n', (char)('0' + i), 0};
        set(d, name, 0, 0, 1);
    }
    REFUSED(exphil_dataset_condition(d, "ninth", 1, 0, 1, &error), "one more than the 8 of a dataset");
    how.condition_count = 9;
    REFUSED(xph_sampler_create(d, &how, &sampler, &error), "sampling.condition_count is 9, must be 0..8");
    how.condition_count = 2;
    how.conditions = NULL;
    REFUSED(xph_sampler_create(d, &how, &sampler, &error), "sampling.conditions is NULL");
    how = sampling_of(EXPHIL_MODE_CARRY);
    how.delay_frames = 2;
    REFUSED(xph_sampler_create(d, &how, &sampler, &error),
            "sampling.delay_frames is 2, must be 0 or the longest of delays, 7");
    static const int32_t falling[2] = {3, 3}, far[1] = {65};
    how.delay_frames = 0;
    how.delays = falling;
    how.delay_count = 2;
    REFUSED(xph_sampler_create(d, &how, &sampler, &error), "sampling.delays[1] is 3 after 3");
    how.delays = far;
    how.delay_count = 1;
    REFUSED(xph_sampler_create(d, &how, &sampler, &error), "sampling.delays[0] is 65, must be 0..64");
    assert_null(sampler);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static void check_row(const exphil_batch *batch, const exphil_sampling *how, int64_t row, int32_t *drawn)
{
    int64_t e = (int64_t)batch->floats[row * DATA_FLOATS], t = (int64_t)batch->floats[row * DATA_FLOATS + 1];
    const int32_t *told = batch->conditions + row * TOLD;
    int32_t action[DATA_HEADS], id = told[2];
    assert_in_range(id, 1, 3);
    if (!drawn[e]) drawn[e] = id;
    assert_int_equal(drawn[e], id); /* one for the whole episode */
    int64_t d = delays[id - 1], first = how->neutral_start ? d : 0;
    assert_true(t + delays[2] < lengths[e]);
    data_action(e, t + d, action);
    assert_memory_equal(batch->actions + row * DATA_HEADS, action, sizeof action);
    for (int s = 0; s < how->action_slots; s++) {
        int64_t acts = t + d - 1 - s, seen = d + (how->action_slots == 8);
        if (s >= seen) acts = -1; /* what a policy of this delay alone does not see */
        data_action(e, acts < first ? -1 : acts, action);
        assert_memory_equal(batch->past + (row * how->action_slots + s) * DATA_HEADS, action, sizeof action);
    }
    assert_int_equal(told[0], e == 3 ? 6 : e % 7);
    assert_int_equal(told[1], e == 1 ? 3 : 0);
}

/* Every row of three epochs: target and past actions follow from the delay that the row names; each delay is drawn. */
static void rows_follow_their_delay(void **state)
{
    fixture *f = *state;
    give(f->dataset);
    int seen[4] = {0};
    for (int variant = 0; variant < 12; variant++) {
        exphil_sampling how = sampling_of(variant % 2);
        how.neutral_start = variant / 2 % 2;
        how.action_slots = variant < 4 ? 8 : variant < 8 ? 7 : 3;
        how.batch = 1 + variant;
        if (how.mode == EXPHIL_MODE_WINDOW) how.last_only = variant % 3 == 0;
        xph_sampler *sampler = sampler_of(f->dataset, &how);
        assert_int_equal(xph_sampler_sampling(sampler)->delay_frames, 7);
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            int32_t drawn[EPISODES] = {0};
            for (int64_t i = 0; i < xph_sampler_batches(sampler); i++) {
                exphil_batch batch = EXPHIL_BATCH_INIT;
                assert_int_equal(xph_sampler_batch(sampler, epoch, i, &batch, NULL), EXPHIL_OK);
                for (int64_t row = 0; row < batch.batch * batch.time; row++) {
                    if (batch.floats[row * DATA_FLOATS + 3] == 0) {
                        for (int k = 0; k < TOLD; k++) assert_int_equal(batch.conditions[row * TOLD + k], 0);
                        continue;
                    }
                    check_row(&batch, &how, row, drawn);
                }
            }
            for (int e = 0; e < EPISODES; e++) seen[drawn[e]]++;
        }
        xph_sampler_destroy(sampler);
    }
    for (int id = 1; id <= 3; id++) assert_true(seen[id] > 60);
}

/* The same frames in the same order as with the longest delay alone: nothing of the plan depends on what is drawn. */
static void order_is_that_of_the_longest(void **state)
{
    fixture *f = *state;
    give(f->dataset);
    for (int32_t mode = 0; mode <= 1; mode++) {
        exphil_sampling how = sampling_of(mode), plain = sampling_of(mode);
        plain.conditions = NULL;
        plain.delays = NULL;
        plain.condition_count = plain.delay_count = 0;
        plain.delay_frames = 7;
        xph_sampler *a = sampler_of(f->dataset, &how), *b = sampler_of(f->dataset, &plain);
        assert_int_equal(xph_sampler_batches(a), xph_sampler_batches(b));
        for (int64_t i = 0; i < xph_sampler_batches(a); i++) {
            exphil_batch x = EXPHIL_BATCH_INIT, y = EXPHIL_BATCH_INIT;
            assert_int_equal(xph_sampler_batch(a, 1, i, &x, NULL), EXPHIL_OK);
            assert_int_equal(xph_sampler_batch(b, 1, i, &y, NULL), EXPHIL_OK);
            assert_null(y.conditions);
            size_t rows = (size_t)(x.batch * x.time);
            assert_memory_equal(x.floats, y.floats, rows * DATA_FLOATS * sizeof(float));
            assert_memory_equal(x.mask, y.mask, rows * sizeof(float));
            assert_memory_equal(x.reset, y.reset, rows);
        }
        xph_sampler_destroy(a);
        xph_sampler_destroy(b);
    }
}

/* ---- drawing --------------------------------------------------------------------------------------------------- */

/* What an episode is shown depends on seed, epoch and episode alone: not on batches, mode, other episodes, nor on what the
 * other conditions are. */
static void draws_are_of_the_episode(void **state)
{
    fixture *f = *state;
    exphil_dataset *more = data_make(f->context, lengths, EPISODES);
    assert_int_equal(data_add(more, 77, 50, NULL), EXPHIL_OK);
    give(f->dataset);
    give(more);
    specs[0].mask = specs[1].mask = 0.5;
    exphil_sampling how = sampling_of(EXPHIL_MODE_CARRY), other = sampling_of(EXPHIL_MODE_WINDOW);
    other.batch = 7;
    other.time = 3;
    xph_sampler *a = sampler_of(f->dataset, &how), *b = sampler_of(f->dataset, &other);
    int changes = 0;
    int32_t last[EPISODES][TOLD] = {{0}};
    for (int64_t epoch = 0; epoch < 20; epoch++) {
        int32_t x[EPISODES][TOLD] = {{0}}, y[EPISODES][TOLD] = {{0}};
        shown(a, epoch, x);
        shown(b, epoch, y);
        assert_memory_equal(x, y, sizeof x);
        changes += memcmp(x, last, sizeof x) != 0;
        memcpy(last, x, sizeof x);
    }
    assert_int_equal(changes, 20);
    xph_sampler_destroy(b);
    other.seed = 6;
    b = sampler_of(f->dataset, &other);
    int32_t x[EPISODES][TOLD] = {{0}};
    shown(b, 19, x);
    assert_memory_not_equal(x, last, sizeof x);
    xph_sampler_destroy(a);
    xph_sampler_destroy(b);
    exphil_dataset_destroy(more);
    specs[0].mask = specs[1].mask = 0;
}

/* The share of masked episodes, and of each delay: 4000 draws, within four standard deviations. */
static void shares_are_kept(void **state)
{
    fixture *f = *state;
    xph_told told;
    const uint16_t given[2] = {4, 2};
    int32_t none = 0, masked[2] = {0}, each[3] = {0}, both = 0;
    const exphil_condition_spec some[2] = {{"player", 6, 0, 0.25}, {"rank", 3, 4, 0.9}};
    assert_int_equal(xph_told_take(&told, some, 2, delays, 3, &none, "test", NULL), EXPHIL_OK);
    for (int i = 0; i < 4000; i++) {
        int32_t values[TOLD];
        xph_told_draw(&told, &f->dataset->episodes[i % 4], 11, i / 4, given, values);
        assert_true((values[0] == 0 || values[0] == 4) && (values[1] == 0 || values[1] == 2));
        masked[0] += !values[0];
        masked[1] += !values[1];
        both += !values[0] && !values[1];
        each[values[2] - 1]++;
    }
    assert_in_range(masked[0], 1000 - 110, 1000 + 110);
    assert_in_range(masked[1], 3600 - 76, 3600 + 76);
    assert_in_range(both, 900 - 106, 900 + 106); /* independent of each other */
    for (int d = 0; d < 3; d++) assert_in_range(each[d], 1333 - 120, 1333 + 120);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_belong_to_games, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_are_shared_until_they_change, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_runs_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ports_have_their_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_values_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_follow_their_delay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(order_is_that_of_the_longest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(draws_are_of_the_episode, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shares_are_kept, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
