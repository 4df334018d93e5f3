/* The order of an epoch without rows: datasets of lengths alone, whose blocks nobody reads, up to the 2^48 frames
 * that a dataset may have. Small ones by brute force; large ones by formulas, and in bytes that grow with
 * episodes. */
#include "data_case.h"

#include "data/order.h"

#include <stdlib.h>

/* ---- datasets without rows ----------------------------------------------------------------------------- */

static xph_block no_rows = {.references = 1, .frames = XPH_FRAMES_MAX};

static exphil_status add_length(exphil_dataset *dataset, int64_t frames, exphil_error *error)
{
    xph_episode episode = {.block = &no_rows, .frames = frames, .hash = 1};
    return xph_dataset_append(dataset, &episode, 1, error);
}

static exphil_dataset *of_lengths(exphil_context *context, const int64_t *frames, int64_t count)
{
    exphil_dataset *dataset = data_empty(context);
    for (int64_t i = 0; i < count; i++) assert_int_equal(add_length(dataset, frames[i], NULL), EXPHIL_OK);
    return dataset;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCDu;
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53u;
    return x ^ x >> 33;
}

enum { MANY = 1000000, LONGEST = 17300 };
#define TWO_33 ((int64_t)1 << 33)

static int64_t many_length(int64_t i)
{
    return 1 + (int64_t)(mix((uint64_t)i) % LONGEST);
}

/* More than 2^33 frames in a million episodes; before[i]: frames of those before episode i. */
static exphil_dataset *of_many(exphil_context *context, int64_t **before)
{
    exphil_dataset *dataset = data_empty(context);
    xph_episode *episodes = calloc(MANY, sizeof *episodes);
    *before = calloc(MANY + 1, sizeof **before);
    for (int64_t i = 0; i < MANY; i++) {
        episodes[i] = (xph_episode){.block = &no_rows, .frames = many_length(i), .hash = (uint64_t)i};
        (*before)[i + 1] = (*before)[i] + many_length(i);
    }
    assert_int_equal(xph_dataset_append(dataset, episodes, MANY, NULL), EXPHIL_OK);
    free(episodes);
    assert_int_equal(dataset->frames, (*before)[MANY]);
    assert_true(dataset->frames > TWO_33);
    return dataset;
}

/* The last i with before[i] <= at. */
static int64_t find(const int64_t *before, int64_t count, int64_t at)
{
    int64_t low = 0, high = count;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (before[middle] <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- orders -------------------------------------------------------------------------------------------- */

static exphil_sampling sampling_of(int32_t mode, int64_t batch, int64_t time)
{
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    how.mode = mode;
    how.batch = batch;
    how.time = time;
    how.stride = 1;
    return how;
}

static xph_order order_of(const exphil_dataset *dataset, const exphil_sampling *how)
{
    xph_order order;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (xph_order_create(dataset, how, &order, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    return order;
}

/* Bytes that the allocator has given and not got back. */
static int64_t live(test_memory *memory)
{
    return (int64_t)atomic_load(&memory->live_bytes);
}

static void refused(const exphil_dataset *dataset, const exphil_sampling *how, const char *number,
                    const char *advice)
{
    xph_order order;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(xph_order_create(dataset, how, &order, &error), EXPHIL_E_UNSUPPORTED);
    assert_says(&error, number);
    assert_says(&error, advice);
}

/* Every row that has a target lies in exactly one piece: as many pieces begin as end at each row, but for the first
 * row and the end of each episode. Sums of mixed numbers stand for the multisets. */
static void check_cover(const xph_order *order)
{
    const xph_lanes *lanes = &order->lanes;
    uint64_t begun = 0, ended = 0;
    int64_t frames = 0, batch = order->sampling->batch, most = order->batches * order->sampling->time;
    for (int64_t b = 0; b < batch; b++) {
        assert_true(xph_order_lane_frames(order, b) <= most);
        for (int64_t p = lanes->lane[b]; p < lanes->lane[b + 1]; p++) {
            const xph_piece *piece = &lanes->pieces[p];
            uint64_t at = (uint64_t)piece->episode << 32;
            assert_true(piece->frames > 0);
            begun += mix(at + piece->first);
            ended += mix(at + piece->first + piece->frames);
            frames += piece->frames;
        }
    }
    assert_int_equal(frames, order->frames);
    for (int64_t i = 0; i < order->dataset->episode_count; i++) {
        int64_t end = xph_usable_frames(&order->dataset->episodes[i], order->sampling->delay_frames);
        if (!end) continue;
        begun += mix(((uint64_t)i << 32) + (uint64_t)end);
        ended += mix((uint64_t)i << 32);
    }
    assert_true(begun == ended);
}

/* The piece at `at` of a lane as a walk from the lane's beginning finds it. */
static void check_piece(const xph_order *order, int64_t lane, int64_t at)
{
    const xph_lanes *lanes = &order->lanes;
    int64_t p = lanes->lane[lane], begin = 0;
    while (p < lanes->lane[lane + 1] && begin + lanes->pieces[p].frames <= at)
        begin += lanes->pieces[p++].frames;
    assert_int_equal(xph_order_piece(order, lane, at), p);
    if (p < lanes->lane[lane + 1]) assert_int_equal(lanes->begin[p], begin);
}

/* ---- CARRY --------------------------------------------------------------------------------------------- */

static void test_small_lanes(void **state)
{
    static const int64_t lengths[] = {37, 1, 150, 4, 61, 90, 2, 1, 1, 700};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = of_lengths(context, lengths, sizeof lengths / sizeof *lengths);
    for (int kind = 0; kind < 16; kind++) {
        exphil_sampling how = sampling_of(EXPHIL_MODE_CARRY, kind & 1 ? 5 : 40, 7);
        how.segment_frames = kind & 2 ? 50 : 0;
        how.in_order = kind & 4 ? 1 : 0;
        how.delay_frames = kind & 8 ? 3 : 0;
        xph_order order = order_of(dataset, &how);
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            assert_true(xph_order_plan(&order, epoch, NULL));
            check_cover(&order);
            for (int64_t b = 0; b < how.batch; b++)
                for (int64_t at = 0; at < order.batches * how.time; at++) check_piece(&order, b, at);
        }
        xph_order_free(&order);
    }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static void check_line(const xph_order *order, const int64_t *before)
{
    int64_t length = order->batches * order->sampling->time;
    xph_rng rng = {.seed = 1, .stream = XPH_RNG_TEST};
    for (int i = 0; i < 100000; i++) {
        int64_t position = (int64_t)xph_rng_below(&rng, (uint64_t)order->frames);
        int64_t lane = position / length, at = position % length, episode = find(before, MANY, position);
        int64_t p = xph_order_piece(order, lane, at);
        const xph_piece *piece = &order->lanes.pieces[p];
        assert_int_equal(piece->episode, episode);
        assert_int_equal(piece->first + at - order->lanes.begin[p], position - before[episode]);
    }
}

static void test_large_lanes(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    int64_t *before, own;
    exphil_dataset *dataset = of_many(context, &before);
    own = live(&memory);
    exphil_sampling how = sampling_of(EXPHIL_MODE_CARRY, 64, 60);
    how.in_order = 1;
    xph_order order = order_of(dataset, &how);
    assert_true(live(&memory) - own <= 36 * (int64_t)MANY + 4096); /* unit, piece and its beginning */
    assert_true(xph_order_plan(&order, 0, NULL));
    check_cover(&order);
    check_line(&order, before);
    xph_order_free(&order);
    how.in_order = 0;
    order = order_of(dataset, &how);
    assert_true(xph_order_plan(&order, 3, NULL));
    check_cover(&order);
    xph_order_free(&order);
    how.segment_frames = 8192;
    order = order_of(dataset, &how);
    int64_t units = MANY + dataset->frames / 8192; /* as many at most, and one piece more for an episode */
    assert_true(live(&memory) - own <= 44 * units + 20 * (int64_t)MANY + 4096);
    assert_true(xph_order_plan(&order, 3, NULL));
    check_cover(&order);
    xph_order_free(&order);
    how.segment_frames = 1;
    refused(dataset, &how, "segment_frames is 1,", "make segments longer");
    assert_int_equal(live(&memory), own);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    free(before);
    assert_memory_clean(&memory);
}

/* 2^48 - 1 frames, and lanes of more than 2^32. */
static void test_longest(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = data_empty(context);
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int i = 0; i < 65536; i++) assert_int_equal(add_length(dataset, XPH_FRAMES_MAX, NULL), EXPHIL_OK);
    assert_int_equal(add_length(dataset, XPH_FRAMES_MAX, &error), EXPHIL_E_UNSUPPORTED);
    assert_says(&error, "281474976710655 frames");
    assert_int_equal(add_length(dataset, 65535, NULL), EXPHIL_OK);
    assert_int_equal(dataset->frames, ((int64_t)1 << 48) - 1);
    assert_int_equal(add_length(dataset, 1, NULL), EXPHIL_E_UNSUPPORTED);
    assert_int_equal(xph_episode_of(dataset, dataset->frames - 65536), 65535);
    assert_int_equal(xph_episode_of(dataset, dataset->frames - 65535), 65536);
    assert_int_equal(xph_episode_of(dataset, XPH_FRAMES_MAX), 1);
    for (int kind = 0; kind < 4; kind++) {
        exphil_sampling how = sampling_of(EXPHIL_MODE_CARRY, kind & 1 ? 4096 : 1, 65536);
        how.segment_frames = kind & 2 ? (int64_t)3 << 30 : 0;
        xph_order order = order_of(dataset, &how);
        assert_int_equal(order.frames, dataset->frames);
        assert_true(xph_order_plan(&order, 1, NULL));
        check_cover(&order);
        for (int64_t b = 0; b < how.batch; b += 1000)
            check_piece(&order, b, xph_order_lane_frames(&order, b) - 1);
        xph_order_free(&order);
    }
    exphil_sampling how = sampling_of(EXPHIL_MODE_WINDOW, 16, 65536);
    refused(dataset, &how, "more than 2^63 frames", "stride");
    how.last_only = 1;
    refused(dataset, &how, "windows", "shuffle_frames");
    how.shuffle_frames = 65536;
    refused(dataset, &how, "spans", "a part of it");
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- WINDOW -------------------------------------------------------------------------------------------- */

enum { REFERENCE_MOST = 40000 };

/* The windows of an epoch, from the words of order_window.c: episode << 32 | row. */
typedef struct reference {
    uint64_t window[REFERENCE_MOST];
    int64_t count, groups;
} reference;

typedef struct reference_span {
    int64_t episode, first, count;
} reference_span;

static void add_group(reference *to, const exphil_sampling *how, int64_t epoch, const reference_span *spans,
                      uint32_t *number, int64_t count)
{
    uint64_t plain[REFERENCE_MOST];
    int64_t windows = 0;
    for (int64_t s = 0; s < count; s++)
        for (int64_t n = 0; n < spans[number[s]].count; n++)
            plain[windows++] = (uint64_t)spans[number[s]].episode << 32 |
                               (uint64_t)((spans[number[s]].first + n) * how->stride);
    uint32_t order[REFERENCE_MOST];
    for (int64_t i = 0; i < windows; i++) order[i] = (uint32_t)i;
    xph_rng rng = {.seed = how->seed,
                   .stream = XPH_RNG_GROUP | (uint64_t)epoch << 8,
                   .position = 4 * (uint64_t)to->count};
    xph_shuffle(&rng, order, windows, sizeof *order, NULL);
    for (int64_t i = 0; i < windows; i++) to->window[to->count++] = plain[order[i]];
    to->groups++;
}

static void make_reference(reference *to, const exphil_dataset *dataset, const exphil_sampling *how,
                           int64_t epoch)
{
    static reference_span spans[REFERENCE_MOST];
    static uint32_t number[REFERENCE_MOST];
    int64_t count = 0, most = 1024 / how->stride > 1 ? 1024 / how->stride : 1;
    for (int64_t i = 0; i < dataset->episode_count; i++) {
        int64_t usable = dataset->episodes[i].frames - how->delay_frames, windows = 0;
        for (int64_t t = 0; t < usable && (t == 0 || t + how->time <= usable); t += how->stride) windows++;
        for (int64_t first = 0; first < windows; first += most)
            spans[count++] = (reference_span){i, first, windows - first < most ? windows - first : most};
    }
    for (int64_t s = 0; s < count; s++) number[s] = (uint32_t)s;
    xph_rng rng = {.seed = how->seed, .stream = XPH_RNG_SHUFFLE | (uint64_t)epoch << 8};
    xph_shuffle(&rng, number, count, sizeof *number, NULL);
    to->count = to->groups = 0;
    for (int64_t s = 0, end; s < count; s = end) {
        int64_t frames = 0;
        for (end = s; end < count; end++) {
            frames += spans[number[end]].count * how->stride + how->time + how->delay_frames;
            if (end > s && frames > how->shuffle_frames) break;
        }
        add_group(to, how, epoch, spans, number + s, end - s);
    }
}

static void check_window(xph_order *order, const reference *want, int64_t w)
{
    xph_place place;
    assert_true(xph_order_window(order, w, NULL, &place));
    if (((uint64_t)place.episode << 32 | (uint64_t)place.row) != want->window[w])
        fail_msg("window %lld is row %lld of episode %lld", (long long)w, (long long)place.row,
                 (long long)place.episode);
}

/* In order, backwards, and wherever one looks. */
static void check_windows(xph_order *order, const exphil_sampling *how, int64_t epoch)
{
    static reference want;
    make_reference(&want, order->dataset, how, epoch);
    assert_int_equal(order->windows.count, want.count);
    assert_true(xph_order_plan(order, epoch, NULL));
    assert_int_equal(order->windows.group_count, want.groups);
    assert_true(order->windows.group_count < order->windows.group_capacity);
    for (int64_t w = 0; w < want.count; w++) check_window(order, &want, w);
    xph_rng rng = {.seed = 7, .stream = XPH_RNG_TEST};
    for (int i = 0; i < 200; i++)
        check_window(order, &want, (int64_t)xph_rng_below(&rng, (uint64_t)want.count));
    for (int64_t w = want.count - 1; w >= 0; w -= 1 + w / 97) check_window(order, &want, w);
    xph_sort(want.window, want.count); /* each of them once */
    for (int64_t w = 1; w < want.count; w++) assert_true(want.window[w - 1] < want.window[w]);
}

static void test_small_windows(void **state)
{
    static const int64_t lengths[] = {37, 1, 2500, 4, 3000, 1083, 1084, 5000, 2, 60, 8000, 1, 1, 700};
    static const int64_t strides[] = {1, 3, 700, 1024, 2000},
                         shuffles[] = {1024, 2047, 5000, 65536, UINT32_MAX};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = of_lengths(context, lengths, sizeof lengths / sizeof *lengths);
    int64_t groups = 0;
    for (int i = 0; i < 50; i++) {
        exphil_sampling how = sampling_of(EXPHIL_MODE_WINDOW, 16, 60);
        how.stride = strides[i % 5];
        how.shuffle_frames = shuffles[i / 5 % 5];
        how.delay_frames = i / 25;
        how.seed = (uint64_t)i;
        xph_order order = order_of(dataset, &how);
        for (int64_t epoch = 0; epoch < 3; epoch++) check_windows(&order, &how, epoch);
        groups += order.windows.group_count;
        xph_order_free(&order);
    }
    assert_true(groups > 200);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* Groups, epochs and seeds have orders of their own: windows as far into their group as others are from elsewhere in
 * theirs. */
static void test_groups_differ(void **state)
{
    static const int64_t lengths[] = {1024, 1024};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = of_lengths(context, lengths, 2);
    int64_t row[4][1024];
    int first_of[2] = {0};
    for (int i = 0; i < 3; i++) { /* two groups; another epoch; another seed */
        exphil_sampling how = sampling_of(EXPHIL_MODE_WINDOW, 16, 1);
        how.shuffle_frames = 1024;
        how.seed = i == 2;
        xph_order order = order_of(dataset, &how);
        assert_true(xph_order_plan(&order, i == 1, NULL));
        for (int64_t w = 0; w < (i ? 1024 : 2048); w++) {
            xph_place place;
            assert_true(xph_order_window(&order, w, NULL, &place));
            row[i ? 1 + i : w / 1024][w % 1024] = place.row;
        }
        xph_order_free(&order);
    }
    for (int a = 0; a < 4; a++) {
        for (int b = 0; b < a; b++) {
            int same = 0;
            for (int i = 0; i < 1024; i++) same += row[a][i] == row[b][i];
            assert_in_range(same, 0, 10); /* one on average */
        }
    }
    for (int64_t epoch = 0; epoch < 1000; epoch++) { /* either span comes first equally often */
        exphil_sampling how = sampling_of(EXPHIL_MODE_WINDOW, 16, 1);
        how.shuffle_frames = 1024;
        xph_order order = order_of(dataset, &how);
        xph_place place;
        assert_true(xph_order_plan(&order, epoch, NULL) && xph_order_window(&order, 0, NULL, &place));
        first_of[place.episode]++;
        xph_order_free(&order);
    }
    assert_in_range(first_of[0], 420, 580); /* deviation 16 */
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* Window w of the dataset in order, where before[] counts the windows. */
static void check_in_order(const exphil_dataset *dataset, exphil_sampling how)
{
    int64_t *before = calloc(MANY + 1, sizeof *before);
    for (int64_t i = 0; i < MANY; i++) {
        int64_t usable = many_length(i) - how.delay_frames;
        before[i + 1] = before[i] + (usable <= 0 ? 0 : usable <= how.time ? 1 : usable - how.time + 1);
    }
    how.in_order = 1;
    xph_order order = order_of(dataset, &how);
    assert_int_equal(order.windows.count, before[MANY]);
    assert_true(xph_order_plan(&order, 0, NULL));
    xph_rng rng = {.seed = 2, .stream = XPH_RNG_TEST};
    for (int i = 0; i < 100000; i++) {
        int64_t w = (int64_t)xph_rng_below(&rng, (uint64_t)before[MANY]), episode = find(before, MANY, w);
        xph_place place;
        assert_true(xph_order_window(&order, w, NULL, &place));
        assert_int_equal(place.episode, episode);
        assert_int_equal(place.row, w - before[episode]);
    }
    xph_order_free(&order);
    free(before);
}

/* All windows of the group that w is in, each once: the rows of its spans. */
static void check_group(xph_order *order, int64_t w)
{
    xph_place place, again;
    assert_true(xph_order_window(order, w, NULL, &place));
    int64_t first = order->windows.first, end = order->windows.end;
    assert_true(first <= w && w < end && end - first <= order->sampling->shuffle_frames);
    uint64_t *seen = calloc((size_t)(end - first), sizeof *seen);
    for (int64_t i = first; i < end; i++) {
        xph_place at;
        assert_true(xph_order_window(order, i, NULL, &at));
        int64_t usable = many_length(at.episode) - order->sampling->delay_frames;
        assert_true(at.row == 0 || at.row + order->sampling->time <= usable);
        seen[i - first] = (uint64_t)at.episode << 32 | (uint64_t)at.row;
    }
    xph_sort(seen, end - first);
    for (int64_t i = 1; i < end - first; i++) {
        assert_true(seen[i] > seen[i - 1]);
        if (seen[i] >> 32 != seen[i - 1] >> 32 || (uint32_t)seen[i] % 1024 == 0) continue;
        assert_true(seen[i] == seen[i - 1] + 1); /* within a span none is left out */
    }
    free(seen);
    assert_true(xph_order_window(order, order->windows.count - 1 - w, NULL, &again));
    assert_true(xph_order_window(order, w, NULL, &again));
    assert_int_equal(again.episode, place.episode);
    assert_int_equal(again.row, place.row);
}

static void test_large_windows(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    int64_t *before;
    exphil_dataset *dataset = of_many(context, &before);
    int64_t own = live(&memory);
    exphil_sampling how = sampling_of(EXPHIL_MODE_WINDOW, 64, 60);
    how.delay_frames = 3;
    how.last_only = 1;
    check_in_order(dataset, how);
    refused(dataset, &how, "at most 4294967295", "shuffle_frames");
    how.shuffle_frames = 65536;
    xph_order order = order_of(dataset, &how);
    int64_t spans = MANY + dataset->frames / 1024, groups = 2 * (dataset->frames / 65536) + 3;
    assert_true(live(&memory) - own <= 4 * (MANY + 1) + 6 * spans + 16 * groups + 65536 * 20);
    assert_true(xph_order_plan(&order, 5, NULL));
    uint8_t *seen = calloc((size_t)order.windows.span_count, 1); /* every span once */
    for (int64_t s = 0; s < order.windows.span_count; s++) {
        assert_true(order.windows.spans[s] < order.windows.span_count && !seen[order.windows.spans[s]]);
        seen[order.windows.spans[s]] = 1;
    }
    free(seen);
    for (int64_t w = 12345; w < order.windows.count; w += order.windows.count / 20) check_group(&order, w);
    check_group(&order, order.windows.count - 1);
    xph_order_free(&order);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    free(before);
    assert_memory_clean(&memory);
}

/* Stopped while a group is shuffled, the order can still be asked. */
static void test_stop(void **state)
{
    static const int64_t lengths[] = {200000, 200000};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = of_lengths(context, lengths, 2);
    exphil_sampling how = sampling_of(EXPHIL_MODE_WINDOW, 16, 1);
    how.shuffle_frames = 150000;
    xph_order order = order_of(dataset, &how);
    atomic_bool stop = true;
    xph_place place, again;
    assert_false(xph_order_plan(&order, 0, &stop));
    assert_true(xph_order_plan(&order, 0, NULL));
    assert_true(xph_order_window(&order, 160000, NULL, &place));
    assert_false(xph_order_window(&order, 0, &stop, &again));
    assert_true(xph_order_window(&order, 160000, NULL, &again));
    assert_true(again.episode == place.episode && again.row == place.row);
    xph_order_free(&order);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- tables of episodes -------------------------------------------------------------------------------- */

static void test_frames_of_many(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    int64_t *before, without = live(&memory);
    exphil_dataset *dataset = of_many(context, &before);
    /* An episode, up to four buckets, up to four places for its game. */
    assert_true(live(&memory) - without <= 96 * (int64_t)MANY + 65536);
    xph_rng rng = {.seed = 4, .stream = XPH_RNG_TEST};
    for (int i = 0; i < 1000000; i++) {
        int64_t frame = (int64_t)xph_rng_below(&rng, (uint64_t)dataset->frames);
        assert_int_equal(xph_episode_of(dataset, frame), find(before, MANY, frame));
    }
    for (int64_t i = 0; i < MANY; i++) {
        assert_int_equal(xph_episode_of(dataset, before[i]), i);
        assert_int_equal(xph_episode_of(dataset, before[i + 1] - 1), i);
    }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    free(before);
    assert_memory_clean(&memory);
}

/* Episodes one by one, as their mean goes up and down: frames are found at every length, in few buckets, which are made
 * anew seldom. */
static void test_buckets_follow(void **state)
{
    enum { COUNT = 3000 };
    exphil_context *context = test_context(NULL, NULL, 1);
    for (int kind = 0; kind < 4; kind++) {
        exphil_dataset *dataset = data_empty(context);
        int64_t before[COUNT + 1] = {0};
        int32_t shift = 0, changes = 0;
        for (int64_t i = 0; i < COUNT; i++) {
            int64_t length = kind == 0   ? 15 + (i & 1) * 2 /* the mean is below 16 and not, in turn */
                             : kind == 1 ? (i ? 1 : 1 << 20)
                             : kind == 2 ? 1 + i * i * i
                                         : (i / 500 & 1 ? 100000 : 3);
            assert_int_equal(add_length(dataset, length, NULL), EXPHIL_OK);
            before[i + 1] = before[i] + length;
            const xph_table *table = dataset->table;
            changes += table->bucket_shift != shift;
            shift = table->bucket_shift;
            assert_true(table->bucket_count <= 4 * (i + 1) + 1);
            assert_true((i + 1) << shift <= 2 * dataset->frames);
            for (int64_t e = i; e >= 0; e -= 1 + (i - e)) {
                assert_int_equal(xph_episode_of(dataset, before[e]), e);
                assert_int_equal(xph_episode_of(dataset, before[e + 1] - 1), e);
            }
        }
        assert_in_range(changes, 1, 40);
        exphil_dataset_destroy(dataset);
    }
    exphil_context_destroy(context);
}

/* Snapshots cost no episodes, and see nothing that is added later; nor does one to the other. */
static void test_shared(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    int64_t *before, own, table;
    exphil_dataset *dataset = of_many(context, &before), *snapshot[2] = {NULL, NULL};
    own = live(&memory);
    for (int i = 0; i < 2; i++)
        assert_int_equal(xph_dataset_snapshot(dataset, &snapshot[i], NULL), EXPHIL_OK);
    assert_true(live(&memory) - own < 16384);
    assert_ptr_equal(snapshot[0]->episodes, dataset->episodes);
    uint64_t hash = xph_dataset_content_hash(dataset);
    table = live(&memory);
    memory.fail_at = atomic_load(&memory.calls) + 2; /* the first is the struct */
    assert_int_equal(add_length(dataset, 50, NULL), EXPHIL_E_MEMORY);
    memory.fail_at = 0;
    assert_int_equal(live(&memory), table);
    assert_ptr_equal(snapshot[0]->episodes, dataset->episodes);
    assert_int_equal(add_length(dataset, 50, NULL), EXPHIL_OK);
    table = live(&memory);
    assert_int_equal(add_length(dataset, 50, NULL), EXPHIL_OK); /* its own by now */
    assert_true(live(&memory) - table < 100 * (int64_t)MANY);
    assert_int_equal(dataset->episode_count, MANY + 2);
    assert_int_equal(xph_episode_of(dataset, dataset->frames - 1), MANY + 1);
    assert_int_equal(xph_episode_of(dataset, before[MANY] - 1), MANY - 1);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(snapshot[i]->episodes, snapshot[0]->episodes);
        assert_int_equal(snapshot[i]->episode_count, MANY);
        assert_int_equal(snapshot[i]->frames, before[MANY]);
        assert_true(xph_dataset_content_hash(snapshot[i]) == hash);
        assert_int_equal(xph_episode_of(snapshot[i], before[MANY] - 1), MANY - 1);
    }
    assert_true(xph_dataset_content_hash(dataset) != hash);
    exphil_dataset_destroy(dataset);
    xph_dataset_release(snapshot[0]);
    assert_int_equal(xph_episode_of(snapshot[1], before[1]), 1);
    xph_dataset_release(snapshot[1]);
    exphil_context_destroy(context);
    free(before);
    assert_int_equal(atomic_load(&no_rows.references), 1);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_lanes),    cmocka_unit_test(test_large_lanes),
        cmocka_unit_test(test_longest),        cmocka_unit_test(test_small_windows),
        cmocka_unit_test(test_groups_differ),  cmocka_unit_test(test_large_windows),
        cmocka_unit_test(test_stop),           cmocka_unit_test(test_frames_of_many),
        cmocka_unit_test(test_buckets_follow), cmocka_unit_test(test_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
