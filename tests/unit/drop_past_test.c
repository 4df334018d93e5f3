/* Dropped past actions: by stretches of 256 frames, drawn anew in every epoch, the same whatever the batches look like; in their
 * place are those of one other stretch; all else in a batch is as without them. */
#include "data_case.h"

#include "data/sampler.h"

#include <stdlib.h>

enum { EPISODES = 3, FRAMES_MOST = 1100, STRETCH = 256, EPOCHS = 40 };
static const int64_t lengths[EPISODES] = {700, FRAMES_MOST, 300};
static const int32_t delays[3] = {0, 2, 5};

/* From where the past actions of a stretch may be: places that fit all its rows so far. */
enum { STRETCHES_MOST = 5, PLACES_MOST = 64 };
typedef struct place {
    int64_t episode, start;
} place;
typedef struct places {
    bool known[EPISODES][STRETCHES_MOST];
    int64_t count[EPISODES][STRETCHES_MOST];
    place place[EPISODES][STRETCHES_MOST][PLACES_MOST];
} places;

/* What was dropped in an epoch: 1 yes, 2 no, 0 not seen. */
typedef struct drops {
    uint8_t at[EPISODES][FRAMES_MOST];
    places from;
} drops;

static xph_sampler *sampler_of(const exphil_dataset *dataset, const exphil_sampling *how)
{
    xph_sampler *sampler = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (xph_sampler_create(dataset, how, &sampler, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    return sampler;
}

/* Past actions of one place: episode 10..., frame u. The values of the last head name both. */
static bool is_of(int64_t e, int64_t u, int64_t slots, const int32_t *past)
{
    int32_t want[DATA_HEADS];
    for (int64_t s = 0; s < slots; s++) {
        data_action(e, u - 1 - s < 0 || u - 1 - s >= lengths[e] ? -1 : u - 1 - s, want);
        if (memcmp(want, past + s * DATA_HEADS, sizeof want) != 0) return false;
    }
    return true;
}

/* There is one stretch of the dataset, of the place's own choice in this epoch, from which all its rows are. */
static void check_elsewhere(int64_t e, int64_t t, const int32_t *past, int64_t slots, places *from)
{
    int64_t i = t / STRETCH, skip = t % STRETCH;
    if (!from->known[e][i])
        for (int64_t o = 0; o < EPISODES; o++)
            for (int64_t start = 0; start == 0 || start + STRETCH <= lengths[o]; start++)
                if (from->count[e][i] < PLACES_MOST && is_of(o, start + skip, slots, past))
                    from->place[e][i][from->count[e][i]++] = (place){o, start};
    from->known[e][i] = true;
    int64_t left = 0;
    for (int64_t k = 0; k < from->count[e][i]; k++) {
        place p = from->place[e][i][k];
        if (is_of(p.episode, p.start + skip, slots, past)) from->place[e][i][left++] = p;
    }
    from->count[e][i] = left;
    assert_true(left > 0);
}

/* Of several delays the row's own says how many. */
static int64_t seen_slots(const exphil_batch *batch, int64_t row, int64_t slots)
{
    return batch->conditions ? xph_told_slots(delays[batch->conditions[row] - 1], delays[2], slots) : slots;
}

/* A row against the same row of a batch without drops. */
static void check_row(const exphil_dataset *dataset, const exphil_batch *got, const exphil_batch *plain,
                      int64_t row, int64_t slots, drops *seen, places *now_at)
{
    const exphil_spec *spec = xph_dataset_spec_of(dataset);
    size_t action = (size_t)spec->head_count * sizeof(int32_t);
    const int32_t *past = got->past + row * slots * spec->head_count,
                  *recorded = plain->past + row * slots * spec->head_count;
    assert_memory_equal(got->floats + row * DATA_FLOATS, plain->floats + row * DATA_FLOATS,
                        DATA_FLOATS * sizeof(float));
    assert_memory_equal(got->actions + row * spec->head_count, plain->actions + row * spec->head_count,
                        action);
    assert_true(got->mask[row] == plain->mask[row] && got->reset[row] == plain->reset[row]);
    if (plain->floats[row * DATA_FLOATS + 3] == 0) { /* padding */
        assert_int_equal(got->dropped[row], 0);
        return;
    }
    int64_t e = (int64_t)plain->floats[row * DATA_FLOATS], t = (int64_t)plain->floats[row * DATA_FLOATS + 1];
    uint8_t now = got->dropped[row] ? 1 : 2;
    assert_true(seen->at[e][t] == 0 || seen->at[e][t] == now);
    seen->at[e][t] = now;
    if (!got->dropped[row]) assert_memory_equal(past, recorded, (size_t)slots * action);
    if (got->dropped[row]) check_elsewhere(e, t, past, seen_slots(got, row, slots), now_at);
    for (int64_t s = seen_slots(got, row, slots); s < slots; s++) { /* unseen with this delay */
        int32_t neutral[DATA_HEADS];
        data_action(0, -1, neutral);
        assert_memory_equal(past + s * DATA_HEADS, neutral, action);
    }
}

static void walk_epoch(const exphil_dataset *dataset, exphil_sampling how, int64_t epoch, drops *seen)
{
    xph_sampler *dropping = sampler_of(dataset, &how);
    how.drop_past = 0.0;
    xph_sampler *plain = sampler_of(dataset, &how);
    for (int64_t i = 0; i < xph_sampler_batches(plain); i++) {
        exphil_batch got = EXPHIL_BATCH_INIT, want = EXPHIL_BATCH_INIT;
        assert_int_equal(xph_sampler_batch(dropping, epoch, i, &got, NULL), EXPHIL_OK);
        assert_int_equal(xph_sampler_batch(plain, epoch, i, &want, NULL), EXPHIL_OK);
        assert_non_null(got.dropped);
        assert_null(want.dropped);
        for (int64_t row = 0; row < got.batch * got.time; row++)
            check_row(dataset, &got, &want, row, how.action_slots, seen, &seen->from);
    }
    xph_sampler_destroy(plain);
    xph_sampler_destroy(dropping);
}

static exphil_sampling sampling_of(int64_t batch, int64_t time, int32_t mode)
{
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    how.batch = batch;
    how.time = time;
    how.mode = mode;
    how.seed = 11;
    how.action_slots = 3;
    how.drop_past = 0.3;
    return how;
}

static void assert_stretches(const drops *seen, int64_t delay, int64_t *dropped, int64_t *stretches)
{
    for (int64_t e = 0; e < EPISODES; e++)
        for (int64_t t = 0; t + delay < lengths[e]; t++) {
            assert_int_not_equal(seen->at[e][t], 0);
            assert_int_equal(seen->at[e][t], seen->at[e][t - t % STRETCH]);
            *stretches += t % STRETCH == 0;
            *dropped += t % STRETCH == 0 && seen->at[e][t] == 1;
        }
}

static void the_same_whatever_the_batches(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, lengths, EPISODES);
    int64_t dropped = 0, stretches = 0, changes = 0;
    drops *seen = calloc(EPOCHS, sizeof *seen);
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        for (int64_t batch = 1; batch <= 7; batch += 3)
            walk_epoch(dataset, sampling_of(batch, 10 * batch + 7, EXPHIL_MODE_CARRY), epoch, &seen[epoch]);
        exphil_sampling cut = sampling_of(5, 16, EXPHIL_MODE_CARRY);
        cut.segment_frames = 50;
        walk_epoch(dataset, cut, epoch, &seen[epoch]);
        if (epoch < 2) walk_epoch(dataset, sampling_of(6, 9, EXPHIL_MODE_WINDOW), epoch, &seen[epoch]);
        assert_stretches(&seen[epoch], 0, &dropped, &stretches);
        changes += epoch && memcmp(seen[epoch].at, seen[epoch - 1].at, sizeof seen->at) != 0;
    }
    assert_int_equal(stretches, EPOCHS * 10);
    assert_in_range(dropped, 88, 152); /* 3.5 standard deviations of 400 draws */
    assert_true(changes > EPOCHS / 2);
    free(seen);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* All and none; a delay, whose rows look at later actions; another seed. */
static void shares_delays_and_seeds(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, lengths, EPISODES);
    drops *one = calloc(1, sizeof *one), *other = calloc(1, sizeof *other), *all = calloc(1, sizeof *all);
    int64_t dropped = 0, stretches = 0;
    exphil_sampling how = sampling_of(4, 20, EXPHIL_MODE_CARRY);
    how.delay_frames = 2;
    how.neutral_start = 1;
    how.drop_past = 1.0;
    walk_epoch(dataset, how, 0, all);
    assert_stretches(all, 2, &dropped, &stretches);
    assert_int_equal(dropped, stretches);
    how.drop_past = 0.5;
    walk_epoch(dataset, how, 0, one);
    how.seed++;
    walk_epoch(dataset, how, 0, other);
    assert_memory_not_equal(one->at, other->at, sizeof one->at);
    free(all);
    free(other);
    free(one);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* With several delays: the stand-in has as many past actions as the row's own delay sees, and the same stretches are
 * dropped as with one. */
static void of_several_delays(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_make(context, lengths, EPISODES);
    drops *several = calloc(1, sizeof *several), *one = calloc(1, sizeof *one);
    int64_t dropped = 0, stretches = 0;
    for (int64_t epoch = 0; epoch < 4; epoch++)
        for (int64_t slots = 5; slots <= 6; slots++) {
            exphil_sampling how = sampling_of(4, 20, EXPHIL_MODE_CARRY);
            memset(several, 0, sizeof *several);
            memset(one, 0, sizeof *one);
            how.drop_past = 0.6;
            how.action_slots = (int32_t)slots;
            how.delay_frames = 5;
            walk_epoch(dataset, how, epoch, one);
            how.delays = delays;
            how.delay_count = 3;
            walk_epoch(dataset, how, epoch, several);
            how.mode = EXPHIL_MODE_WINDOW;
            walk_epoch(dataset, how, epoch, several);
            assert_stretches(several, 5, &dropped, &stretches);
            assert_memory_equal(several->at, one->at, sizeof one->at);
        }
    assert_true(10 * dropped > 4 * stretches && 10 * dropped < 8 * stretches);
    free(several);
    free(one);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_whatever_the_batches),
        cmocka_unit_test(shares_delays_and_seeds),
        cmocka_unit_test(of_several_delays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
