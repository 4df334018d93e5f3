/* The plan of an epoch.
 *
 * WINDOW: all window starts, shuffled.
 *
 * CARRY without segment_frames: the shuffled episodes are laid end to end on a ring, which is opened at a
 * random place within its first episode and cut into lanes of equal length. All lanes but the last are full,
 * so the number of batches is the least possible; cuts fall elsewhere in every epoch.
 *
 * CARRY with segment_frames S: episodes are cut into units of S frames and one more, which holds the two
 * ends. Where the first end stops is drawn anew in every epoch, so that borders move, while the lengths of
 * the units stay. The units are dealt, longest first, each to the lane with the fewest frames (Graham 1969:
 * at most 4/3 of the best possible), and every lane is shuffled. Since the lengths stay, the longest lane has
 * the same length in all epochs: the number of batches never changes. */
#include "data/order.h"

typedef struct xph_unit {
    xph_piece piece[2]; /* the second has no frames but in a unit of ends */
} xph_unit;

_Static_assert(sizeof(xph_unit) == 16, "what xph_shuffle can move");

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How an episode of that many usable frames is cut: so many whole units, and the ends together. */
typedef struct cut {
    int64_t whole, ends;
} cut;

static cut cut_of(int64_t frames, const exphil_sampling *how)
{
    int64_t segment = how->segment_frames;
    cut made = {.whole = frames / segment, .ends = frames % segment};
    if (!how->in_order && made.whole && made.ends < segment / 2) { /* too short to move borders by much */
        made.whole--;
        made.ends += segment;
    }
    return made;
}

/* ---- CARRY: pieces into lanes ------------------------------------------------------------------------ */

/* Ends of lanes and batches. Lane b has count[b] pieces, which lie one after the other already. */
static void index_lanes(xph_order *order)
{
    int64_t lanes = order->sampling->batch, time = order->sampling->time;
    for (int64_t b = 0; b < lanes; b++) {
        uint32_t p = order->lane[b], end = order->lane[b + 1];
        int64_t at = 0, next = 0; /* frame of the lane; batch whose start is looked for */
        for (; p < end; p++) {
            order->begin[p] = (uint32_t)at;
            at += order->pieces[p].frames;
            for (; next < order->batches && next * time < at; next++)
                order->at[b * order->batches + next] = p;
        }
        for (; next < order->batches; next++) order->at[b * order->batches + next] = end;
    }
}

/* A place on the line that is being cut into lanes. */
typedef struct line {
    xph_order *order;
    int64_t lane, left, length; /* left: frames until the lane is full */
    uint32_t pieces;
} line;

static void lay(line *to, int64_t first, int64_t frames)
{
    while (frames > 0) {
        if (!to->left) {
            to->order->lane[++to->lane] = to->pieces;
            to->left = to->length;
        }
        int64_t take = least(frames, to->left);
        to->order->pieces[to->pieces++] = (xph_piece){(uint32_t)first, (uint32_t)take};
        first += take;
        frames -= take;
        to->left -= take;
    }
}

static bool plan_line(xph_order *order, xph_rng *rng, const atomic_bool *stop)
{
    const exphil_dataset *dataset = order->dataset;
    int64_t count = 0, delay = order->sampling->delay_frames, length = order->batches * order->sampling->time;
    for (int64_t i = 0; i < dataset->episode_count; i++) {
        const xph_episode *episode = &dataset->episodes[i];
        int64_t frames = xph_usable_frames(episode, delay);
        if (frames) order->units[count++].piece[0] = (xph_piece){(uint32_t)episode->first, (uint32_t)frames};
    }
    int64_t opened = 0;
    if (!order->sampling->in_order) {
        if (!xph_shuffle(rng, order->units, count, sizeof *order->units, stop)) return false;
        opened = (int64_t)xph_rng_below(rng, order->units[0].piece[0].frames);
    }
    line to = {.order = order, .left = length, .length = length};
    order->lane[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        xph_piece whole = order->units[i].piece[0];
        int64_t skip = i ? 0 : opened;
        lay(&to, whole.first + skip, whole.frames - skip);
    }
    lay(&to, order->units[0].piece[0].first, opened);
    while (to.lane < order->sampling->batch) order->lane[++to.lane] = to.pieces;
    return true;
}

/* Frames of the unit of ends that come first in the episode: anywhere, as long as neither end is longer than
 * S. In order, the rest of an episode comes last. */
static int64_t first_end(const xph_order *order, const cut *made, xph_rng *rng)
{
    int64_t segment = order->sampling->segment_frames;
    if (order->sampling->in_order) return 0;
    int64_t low = made->ends > segment ? made->ends - segment : 0, high = least(made->ends, segment);
    return low + (int64_t)xph_rng_below(rng, (uint64_t)(high - low) + 1);
}

static int64_t make_units(xph_order *order, xph_rng *rng)
{
    int64_t count = 0, segment = order->sampling->segment_frames;
    for (int64_t i = 0; i < order->dataset->episode_count; i++) {
        const xph_episode *episode = &order->dataset->episodes[i];
        int64_t frames = xph_usable_frames(episode, order->sampling->delay_frames);
        if (!frames) continue;
        cut made = cut_of(frames, order->sampling);
        int64_t front = first_end(order, &made, rng), back = made.ends - front, at = episode->first;
        for (int64_t w = 0; w < made.whole; w++) {
            xph_piece whole = {(uint32_t)(at + front + w * segment), (uint32_t)segment};
            order->units[count++] = (xph_unit){{whole, {0, 0}}};
        }
        if (made.ends) {
            xph_piece one = {(uint32_t)at, (uint32_t)front};
            xph_piece other = {(uint32_t)(at + frames - back), (uint32_t)back};
            order->units[count++] = front ? (xph_unit){{one, other}} : (xph_unit){{other, one}};
        }
    }
    return count;
}

static uint32_t unit_frames(const xph_unit *unit)
{
    return unit->piece[0].frames + unit->piece[1].frames;
}

/* Lanes as a heap of (frames << 16 | lane), the emptiest on top, the lowest lane among equals. */
static void deepen(uint64_t *heap, int64_t lanes)
{
    uint64_t key = heap[0];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < lanes; i = child) {
        if (child + 1 < lanes && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= key) break;
        heap[i] = heap[child];
    }
    heap[i] = key;
}

/* Deals the units in the order of keys[], whose low 32 bits are unit numbers; lane_of[unit] is where each
 * went. Returns the frames of the longest lane. */
static int64_t deal(const xph_unit *units, int64_t count, const uint64_t *keys, uint64_t *heap, int64_t lanes,
                    uint32_t *lane_of)
{
    int64_t longest = 0;
    for (int64_t b = 0; b < lanes; b++) heap[b] = (uint64_t)b;
    for (int64_t i = 0; i < count; i++) {
        uint32_t unit = (uint32_t)keys[i];
        heap[0] += (uint64_t)unit_frames(&units[unit]) << 16;
        if (lane_of) lane_of[unit] = (uint32_t)(heap[0] & 0xFFFF);
        if ((int64_t)(heap[0] >> 16) > longest) longest = (int64_t)(heap[0] >> 16);
        deepen(heap, lanes);
    }
    return longest;
}

/* Keys that put units in the order of dealing: as they come, or the longest first. */
static void order_units(const xph_order *order, int64_t count)
{
    bool sorted = !order->sampling->in_order;
    for (int64_t i = 0; i < count; i++) {
        uint64_t rank = sorted ? UINT32_MAX - unit_frames(&order->units[i]) : 0;
        order->keys[i] = rank << 32 | (uint64_t)i;
    }
    if (sorted) xph_sort(order->keys, count);
}

/* Pieces of dealt units to their lanes, in the order of the units. */
static void fill_lanes(xph_order *order, int64_t count, const uint32_t *lane_of)
{
    int64_t lanes = order->sampling->batch;
    memset(order->lane, 0, (size_t)(lanes + 1) * sizeof *order->lane);
    for (int64_t i = 0; i < count; i++) order->lane[lane_of[i]] += order->units[i].piece[1].frames ? 2 : 1;
    uint32_t total = 0;
    for (int64_t b = 0; b <= lanes; b++) { /* counts become ends of the lanes before */
        uint32_t pieces = order->lane[b];
        order->lane[b] = total;
        total += pieces;
    }
    for (int64_t i = 0; i < count; i++) {
        uint32_t *next = &order->lane[lane_of[i]];
        order->pieces[(*next)++] = order->units[i].piece[0];
        if (order->units[i].piece[1].frames) order->pieces[(*next)++] = order->units[i].piece[1];
    }
    for (int64_t b = lanes; b > 0; b--) order->lane[b] = order->lane[b - 1];
    order->lane[0] = 0;
}

static bool plan_deal(xph_order *order, xph_rng *rng, const atomic_bool *stop)
{
    int64_t lanes = order->sampling->batch, count = make_units(order, rng);
    bool shuffled = !order->sampling->in_order;
    if (shuffled && !xph_shuffle(rng, order->units, count, sizeof *order->units, stop)) return false;
    order_units(order, count);
    uint32_t *lane_of = order->begin; /* free until the lanes are indexed */
    deal(order->units, count, order->keys, order->keys + order->unit_capacity, lanes, lane_of);
    fill_lanes(order, count, lane_of);
    for (int64_t b = 0; shuffled && b < lanes; b++) {
        int64_t pieces = order->lane[b + 1] - order->lane[b];
        if (!xph_shuffle(rng, order->pieces + order->lane[b], pieces, sizeof *order->pieces, stop))
            return false;
    }
    return true;
}

/* ---- WINDOW ------------------------------------------------------------------------------------------ */

static int64_t windows_of(int64_t frames, int64_t time, int64_t stride)
{
    return !frames ? 0 : frames <= time ? 1 : (frames - time) / stride + 1;
}

static bool plan_windows(xph_order *order, xph_rng *rng, const atomic_bool *stop)
{
    const exphil_sampling *how = order->sampling;
    int64_t w = 0;
    for (int64_t i = 0; i < order->dataset->episode_count; i++) {
        const xph_episode *episode = &order->dataset->episodes[i];
        int64_t count = windows_of(xph_usable_frames(episode, how->delay_frames), how->time, how->stride);
        for (int64_t n = 0; n < count; n++)
            order->windows[w++] = (uint32_t)(episode->first + n * how->stride);
    }
    return how->in_order || xph_shuffle(rng, order->windows, w, sizeof *order->windows, stop);
}

/* ---- making an order --------------------------------------------------------------------------------- */

/* Sizes of everything but the number of batches in dealt lanes. */
static void count_all(xph_order *order)
{
    const exphil_sampling *how = order->sampling;
    int64_t time = how->time, row = how->batch * time;
    for (int64_t i = 0; i < order->dataset->episode_count; i++) {
        int64_t frames = xph_usable_frames(&order->dataset->episodes[i], how->delay_frames);
        if (!frames) continue;
        if (how->mode == EXPHIL_MODE_WINDOW) {
            int64_t windows = windows_of(frames, time, how->stride);
            order->window_count += windows;
            order->frames += how->last_only ? windows : windows == 1 ? least(frames, time) : windows * time;
            continue;
        }
        order->frames += frames;
        cut made = how->segment_frames ? cut_of(frames, how) : (cut){1, 0};
        order->unit_capacity += made.whole + (made.ends > 0);
        order->piece_capacity += made.whole + (made.ends ? 2 : 0);
    }
    if (how->mode == EXPHIL_MODE_WINDOW) {
        order->batches = (order->window_count + how->batch - 1) / how->batch;
    } else if (!how->segment_frames) {
        order->batches = (order->frames + row - 1) / row;
        order->piece_capacity += how->batch + 1; /* where lanes cut, and the opening */
    }
}

static void *get(const xph_order *order, int64_t count, size_t item_bytes, exphil_error *error)
{
    size_t bytes = SIZE_MAX;
    void *memory = xph_size_mul((size_t)count, item_bytes, &bytes) ? xph_alloc(order->context, bytes) : NULL;
    if (!memory) xph_no_memory(bytes, error);
    return memory;
}

static int64_t at_count(const xph_order *order)
{
    return order->sampling->batch * order->batches;
}

static void drop(xph_order *order, void *memory, int64_t count, size_t item_bytes)
{
    if (memory) xph_free(order->context, memory, (size_t)count * item_bytes);
}

void xph_order_free(xph_order *order)
{
    drop(order, order->windows, order->window_count, sizeof *order->windows);
    drop(order, order->pieces, order->piece_capacity, sizeof *order->pieces);
    drop(order, order->begin, order->piece_capacity, sizeof *order->begin);
    drop(order, order->units, order->unit_capacity, sizeof *order->units);
    if (order->sampling) {
        int64_t lanes = order->sampling->batch;
        drop(order, order->lane, lanes + 1, sizeof *order->lane);
        drop(order, order->keys, order->unit_capacity + lanes, sizeof *order->keys);
        drop(order, order->at, at_count(order), sizeof *order->at);
    }
    *order = (xph_order){.context = NULL};
}

/* Dealt lanes are as long in every epoch as in this one. */
static void count_dealt(xph_order *order)
{
    int64_t time = order->sampling->time;
    xph_rng rng = {.seed = 0};
    int64_t count = make_units(order, &rng);
    order_units(order, count);
    uint64_t *heap = order->keys + order->unit_capacity;
    int64_t longest = deal(order->units, count, order->keys, heap, order->sampling->batch, NULL);
    order->batches = (longest + time - 1) / time;
}

static exphil_status get_lanes(xph_order *order, exphil_error *error)
{
    int64_t lanes = order->sampling->batch;
    if (!(order->pieces = get(order, order->piece_capacity, sizeof *order->pieces, error)) ||
        !(order->begin = get(order, order->piece_capacity, sizeof *order->begin, error)) ||
        !(order->units = get(order, order->unit_capacity, sizeof *order->units, error)) ||
        !(order->lane = get(order, lanes + 1, sizeof *order->lane, error)) ||
        !(order->keys = get(order, order->unit_capacity + lanes, sizeof *order->keys, error))) {
        return EXPHIL_E_MEMORY;
    }
    if (order->sampling->segment_frames) count_dealt(order);
    order->at = get(order, at_count(order), sizeof *order->at, error);
    return order->at ? EXPHIL_OK : EXPHIL_E_MEMORY;
}

exphil_status xph_order_create(const exphil_dataset *dataset, const exphil_sampling *sampling,
                               xph_order *order, exphil_error *error)
{
    xph_order made = {.context = dataset->context, .dataset = dataset, .sampling = sampling};
    count_all(&made);
    if (!made.frames) {
        return xph_fail(error, EXPHIL_E_INVALID,
                        "nothing to sample: no episode is longer than delay_frames, which is %d",
                        (int)sampling->delay_frames);
    }
    exphil_status status = EXPHIL_OK;
    if (sampling->mode == EXPHIL_MODE_WINDOW) {
        made.windows = get(&made, made.window_count, sizeof *made.windows, error);
        if (!made.windows) status = EXPHIL_E_MEMORY;
    } else {
        status = get_lanes(&made, error);
    }
    if (status < 0) {
        xph_order_free(&made);
        return status;
    }
    *order = made;
    return EXPHIL_OK;
}

bool xph_order_plan(xph_order *order, int64_t epoch, const atomic_bool *stop)
{
    /* A stream of its own for each epoch; the low byte is what the numbers are for. */
    xph_rng rng = {.seed = order->sampling->seed, .stream = XPH_RNG_SHUFFLE | (uint64_t)epoch << 8};
    if (order->sampling->mode == EXPHIL_MODE_WINDOW) return plan_windows(order, &rng, stop);
    bool planned =
        order->sampling->segment_frames ? plan_deal(order, &rng, stop) : plan_line(order, &rng, stop);
    if (planned) index_lanes(order);
    return planned;
}
