/* WINDOW: where the windows of an epoch start.
 *
 * Without shuffle_frames all windows are shuffled together.
 *
 * With shuffle_frames F: the windows of an episode are cut into spans of S = 1024 / stride windows (one, if
 * the stride is longer), whose starts lie within 1024 frames; the last span of an episode is shorter. An epoch
 * shuffles the spans. Groups are the next spans of that order, as many as need no more than F rows together, at least
 * one, and the windows of a group are shuffled by numbers of its own. So the rows that a stretch of
 * batches needs lie in few places, and only one group is held. Seeking a batch finds its group by binary
 * search and shuffles that.
 *
 * In order, a window's number says where it is. */
#include "data/order.h"

enum { SPAN_FRAMES = 1024, LOOK_EVERY = 65536 }; /* spans between looks at stop: below a millisecond */

static int64_t windows_of(const xph_order *order, int64_t episode)
{
    const exphil_sampling *how = order->sampling;
    int64_t frames = xph_usable_frames(&order->dataset->episodes[episode], how->delay_frames);
    return !frames ? 0 : frames <= how->time ? 1 : (frames - how->time) / how->stride + 1;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* At most this many windows in a span, and in a group. */
static int64_t span_windows(const exphil_sampling *how)
{
    return how->stride < SPAN_FRAMES ? SPAN_FRAMES / how->stride : 1;
}

static int64_t group_windows(const exphil_sampling *how)
{
    return how->stride < how->shuffle_frames ? how->shuffle_frames / how->stride : 1;
}

int64_t xph_windows_spans(const xph_order *order, int64_t episode)
{
    int64_t most = span_windows(order->sampling);
    return (windows_of(order, episode) + most - 1) / most;
}

/* ---- planning ------------------------------------------------------------------------------------------ */

static bool shuffle_numbers(uint32_t *numbers, int64_t count, xph_rng *rng, const atomic_bool *stop)
{
    for (int64_t i = 0; i < count; i++) numbers[i] = (uint32_t)i;
    return xph_shuffle(rng, numbers, count, sizeof *numbers, stop);
}

/* Where the windows of a span are. */
static void place_run(const xph_order *order, uint32_t span, xph_run *run)
{
    const uint32_t *before = order->windows.before;
    int64_t low = 0, high = order->dataset->episode_count, most = span_windows(order->sampling);
    while (high - low > 1) { /* the last episode with before[] <= span: those without windows come earlier */
        int64_t middle = low + (high - low) / 2;
        if (before[middle] <= span) {
            low = middle;
        } else {
            high = middle;
        }
    }
    run->episode = (uint32_t)low;
    run->first = (uint32_t)((int64_t)(span - before[low]) * most);
}

/* Rows that so many windows of a span need, with those that they overlap. */
static int64_t span_rows(const exphil_sampling *how, int64_t windows)
{
    return windows * how->stride + how->time + how->delay_frames;
}

/* Where the groups of shuffled spans begin. */
static bool cut_groups(xph_order *order, const atomic_bool *stop)
{
    xph_windows *to = &order->windows;
    int64_t rows = 0, window = 0;
    to->groups[0] = (xph_group){0, 0};
    to->group_count = 0;
    for (int64_t s = 0; s < to->span_count; s++) {
        if (stop && s % LOOK_EVERY == 0 && atomic_load_explicit(stop, memory_order_relaxed)) return false;
        int64_t count = to->sizes[to->spans[s]];
        int64_t more = span_rows(order->sampling, count);
        if (rows && rows + more > order->sampling->shuffle_frames) {
            to->groups[++to->group_count] = (xph_group){window, s};
            rows = 0;
        }
        rows += more;
        window += count;
    }
    to->groups[++to->group_count] = (xph_group){window, to->span_count};
    return true;
}

bool xph_windows_plan(xph_order *order, xph_rng *rng, int64_t epoch, const atomic_bool *stop)
{
    xph_windows *to = &order->windows;
    if (!to->shuffled) return true;
    to->epoch = epoch;
    if (!order->sampling->shuffle_frames) return shuffle_numbers(to->shuffled, to->count, rng, stop);
    to->first = to->end = 0; /* no group */
    return shuffle_numbers(to->spans, to->span_count, rng, stop) && cut_groups(order, stop);
}

/* ---- finding ------------------------------------------------------------------------------------------- */

/* The group that holds a window becomes the one that is at hand. Each has its own numbers of the epoch's stream:
 * a window takes two, seldom more, and begins four behind the one before. */
static bool load_group(xph_order *order, int64_t w, const atomic_bool *stop)
{
    xph_windows *to = &order->windows;
    int64_t low = 0, high = to->group_count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (to->groups[middle].window <= w) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const xph_group *group = &to->groups[low];
    int64_t count = 0;
    to->first = to->end = to->run_count = 0;
    for (int64_t s = group[0].span; s < group[1].span; s++) {
        xph_run *run = &to->runs[to->run_count++];
        run->begin = count;
        place_run(order, to->spans[s], run);
        count += to->sizes[to->spans[s]];
    }
    xph_rng rng = {.seed = order->sampling->seed,
                   .stream = XPH_RNG_GROUP | (uint64_t)to->epoch << 8,
                   .position = 4 * (uint64_t)group->window};
    if (!shuffle_numbers(to->shuffled, count, &rng, stop)) return false;
    to->first = group->window;
    to->end = group->window + count;
    return true;
}

bool xph_order_window(xph_order *order, int64_t w, const atomic_bool *stop, xph_place *place)
{
    const xph_windows *from = &order->windows;
    if ((w < from->first || w >= from->end) && !load_group(order, w, stop)) return false;
    int64_t n = from->shuffled ? from->shuffled[w - from->first] : w, low = 0, high = from->run_count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (from->runs[middle].begin <= n) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const xph_run *run = &from->runs[low];
    *place = (xph_place){run->episode, (run->first + n - run->begin) * order->sampling->stride, low};
    return true;
}

/* ---- making -------------------------------------------------------------------------------------------- */

static exphil_status count_windows(xph_order *order, exphil_error *error)
{
    const exphil_sampling *how = order->sampling;
    xph_windows *to = &order->windows;
    for (int64_t i = 0; i < order->dataset->episode_count; i++) {
        int64_t windows = windows_of(order, i);
        if (!windows) continue;
        int64_t usable = xph_usable_frames(&order->dataset->episodes[i], how->delay_frames);
        int64_t each = how->last_only ? 1 : least(usable, how->time);
        if (windows > (INT64_MAX - order->frames) / each) {
            return xph_fail(
                error, EXPHIL_E_UNSUPPORTED,
                "windows of %lld frames, one every %lld: an epoch has more than 2^63 frames, make "
                "sampling.stride greater",
                (long long)how->time, (long long)how->stride);
        }
        order->frames += windows * each;
        to->count += windows;
        to->run_count++;
        if (how->shuffle_frames) to->span_count += xph_windows_spans(order, i);
    }
    order->batches = (to->count + how->batch - 1) / how->batch;
    return EXPHIL_OK;
}

static exphil_status too_many(const char *what, int64_t count, const char *instead, exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                    "this dataset has %lld %s; at most %lld are shuffled together: %s", (long long)count,
                    what, (long long)XPH_ORDERED_MAX, instead);
}

/* One run for each episode: all windows are at hand. */
static exphil_status make_runs(xph_order *order, exphil_error *error)
{
    xph_windows *to = &order->windows;
    to->runs = xph_order_get(order, to->run_capacity, sizeof *to->runs, error);
    if (!to->runs) return EXPHIL_E_MEMORY;
    to->run_count = 0;
    for (int64_t i = 0; i < order->dataset->episode_count; i++) {
        int64_t windows = windows_of(order, i);
        if (!windows) continue;
        to->runs[to->run_count++] = (xph_run){to->end, (uint32_t)i, 0};
        to->end += windows;
    }
    return EXPHIL_OK;
}

/* Two groups in a row need more rows than one may, so there are at most twice as many as full ones. */
static void size_spans(xph_order *order)
{
    xph_windows *to = &order->windows;
    const exphil_sampling *how = order->sampling;
    double rows =
        (double)to->count * (double)how->stride + (double)to->span_count * (double)span_rows(how, 0);
    double full = rows / (double)how->shuffle_frames;
    to->run_capacity = least(group_windows(how), to->span_count);
    to->group_capacity = (full < 1e9 ? least(2 * (int64_t)full + 2, to->span_count) : to->span_count) + 1;
    to->before_capacity = order->dataset->episode_count + 1;
}

static void number_spans(xph_order *order)
{
    xph_windows *to = &order->windows;
    int64_t episodes = order->dataset->episode_count, most = span_windows(order->sampling), span = 0;
    for (int64_t i = 0; i < episodes; i++) {
        to->before[i] = (uint32_t)span;
        for (int64_t left = windows_of(order, i); left > 0; left -= most)
            to->sizes[span++] = (uint16_t)least(left, most);
    }
    to->before[episodes] = (uint32_t)span;
}

static exphil_status make_spans(xph_order *order, exphil_error *error)
{
    xph_windows *to = &order->windows;
    if (!(to->runs = xph_order_get(order, to->run_capacity, sizeof *to->runs, error)) ||
        !(to->spans = xph_order_get(order, to->span_count, sizeof *to->spans, error)) ||
        !(to->sizes = xph_order_get(order, to->span_count, sizeof *to->sizes, error)) ||
        !(to->before = xph_order_get(order, to->before_capacity, sizeof *to->before, error)) ||
        !(to->groups = xph_order_get(order, to->group_capacity, sizeof *to->groups, error)))
        return EXPHIL_E_MEMORY;
    number_spans(order);
    return EXPHIL_OK;
}

exphil_status xph_windows_count(xph_order *order, exphil_error *error)
{
    const exphil_sampling *how = order->sampling;
    xph_windows *to = &order->windows;
    XPH_TRY(count_windows(order, error));
    bool groups = how->shuffle_frames > 0;
    if (groups && to->span_count > XPH_ORDERED_MAX)
        return too_many("spans of 1024 frames", to->span_count, "train on a part of it", error);
    if (!groups && !how->in_order && to->count > XPH_ORDERED_MAX)
        return too_many("windows", to->count, "set sampling.shuffle_frames, to 65536 for example", error);
    to->run_capacity = to->run_count;
    if (groups) size_spans(order);
    to->shuffled_capacity = how->in_order ? 0 : groups ? least(group_windows(how), to->count) : to->count;
    return EXPHIL_OK;
}

size_t xph_windows_bytes(const xph_order *order)
{
    const xph_windows *to = &order->windows;
    return (size_t)to->run_capacity * sizeof *to->runs +
           (size_t)to->shuffled_capacity * sizeof *to->shuffled +
           (size_t)to->span_count * (sizeof *to->spans + sizeof *to->sizes) +
           (size_t)to->before_capacity * sizeof *to->before + (size_t)to->group_capacity * sizeof *to->groups;
}

exphil_status xph_windows_create(xph_order *order, exphil_error *error)
{
    xph_windows *to = &order->windows;
    XPH_TRY(xph_windows_count(order, error));
    XPH_TRY(order->sampling->shuffle_frames ? make_spans(order, error) : make_runs(order, error));
    if (order->sampling->in_order) return EXPHIL_OK;
    to->shuffled = xph_order_get(order, to->shuffled_capacity, sizeof *to->shuffled, error);
    return to->shuffled ? EXPHIL_OK : EXPHIL_E_MEMORY;
}

void xph_windows_free(xph_order *order)
{
    xph_windows *to = &order->windows;
    xph_order_drop(order, to->runs, to->run_capacity, sizeof *to->runs);
    xph_order_drop(order, to->shuffled, to->shuffled_capacity, sizeof *to->shuffled);
    xph_order_drop(order, to->spans, to->span_count, sizeof *to->spans);
    xph_order_drop(order, to->sizes, to->span_count, sizeof *to->sizes);
    xph_order_drop(order, to->before, to->before_capacity, sizeof *to->before);
    xph_order_drop(order, to->groups, to->group_capacity, sizeof *to->groups);
}
