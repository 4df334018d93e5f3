/* CARRY: episodes, whole or cut, in lanes.
 *
 * Without segment_frames: the shuffled episodes are laid end to end on a ring, which is opened at a
 * random place within its first episode and cut into lanes of equal length. All lanes but the last are full,
 * so the number of batches is the least possible; cuts fall elsewhere in every epoch.
 *
 * With segment_frames S: episodes are cut into units of S frames and one more, which holds the two
 * ends. Where the first end stops is drawn anew in every epoch, so that borders move, while the lengths of
 * the units stay. The units are dealt, longest first, each to the lane with the fewest frames (Graham 1969:
 * at most 4/3 of the best possible), and every lane is shuffled. Since the lengths stay, the longest lane has
 * the same length in all epochs: the number of batches never changes. */
#include "data/order.h"

/* Frames from row `first` of an episode on; back > 0: as many more at the end of the episode. */
typedef struct xph_unit {
    uint32_t episode, first, frames, back;
} xph_unit;

_Static_assert(sizeof(xph_unit) == 16, "what xph_shuffle can move");

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t usable(const xph_order *order, int64_t episode)
{
    return xph_usable_frames(&order->dataset->episodes[episode], order->sampling->delay_frames);
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

/* ---- a line, cut into lanes ---------------------------------------------------------------------------- */

/* A place on the line that is being cut into lanes. */
typedef struct line {
    xph_lanes *lanes;
    int64_t lane, left, length, pieces; /* left: frames until the lane is full */
} line;

static void lay(line *to, const xph_unit *unit, int64_t skip, int64_t frames)
{
    int64_t first = unit->first + skip;
    while (frames > 0) {
        if (!to->left) {
            to->lanes->lane[++to->lane] = to->pieces;
            to->left = to->length;
        }
        int64_t take = least(frames, to->left);
        to->lanes->pieces[to->pieces++] = (xph_piece){unit->episode, (uint32_t)first, (uint32_t)take};
        first += take;
        frames -= take;
        to->left -= take;
    }
}

static bool plan_line(xph_order *order, xph_rng *rng, const atomic_bool *stop)
{
    xph_unit *units = order->lanes.units;
    int64_t count = 0, length = order->batches * order->sampling->time, opened = 0;
    for (int64_t i = 0; i < order->dataset->episode_count; i++) {
        int64_t frames = usable(order, i);
        if (frames) units[count++] = (xph_unit){(uint32_t)i, 0, (uint32_t)frames, 0};
    }
    if (!order->sampling->in_order) {
        if (!xph_shuffle(rng, units, count, sizeof *units, stop)) return false;
        opened = (int64_t)xph_rng_below(rng, units[0].frames);
    }
    line to = {.lanes = &order->lanes, .left = length, .length = length};
    order->lanes.lane[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t skip = i ? 0 : opened;
        lay(&to, &units[i], skip, units[i].frames - skip);
    }
    lay(&to, &units[0], 0, opened);
    while (to.lane < order->sampling->batch) order->lanes.lane[++to.lane] = to.pieces;
    return true;
}

/* ---- units, dealt to lanes ----------------------------------------------------------------------------- */

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
    xph_unit *units = order->lanes.units;
    for (int64_t i = 0; i < order->dataset->episode_count; i++) {
        int64_t frames = usable(order, i);
        if (!frames) continue;
        cut made = cut_of(frames, order->sampling);
        int64_t front = first_end(order, &made, rng);
        uint32_t episode = (uint32_t)i, back = (uint32_t)(made.ends - front);
        for (int64_t w = 0; w < made.whole; w++)
            units[count++] = (xph_unit){episode, (uint32_t)(front + w * segment), (uint32_t)segment, 0};
        if (made.ends)
            units[count++] = front ? (xph_unit){episode, 0, (uint32_t)front, back}
                                   : (xph_unit){episode, (uint32_t)frames - back, back, 0};
    }
    return count;
}

static uint32_t unit_frames(const xph_unit *unit)
{
    return unit->frames + unit->back;
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

_Static_assert(XPH_DATASET_FRAMES_MAX < (int64_t)1 << 48, "frames of a lane are above 16 bits in the heap");

/* Deals the units in the order of keys[], whose low 32 bits are unit numbers; lane_of[unit] is where each
 * went. Returns the frames of the longest lane. */
static int64_t deal(const xph_order *order, int64_t count, int64_t *lane_of)
{
    const uint64_t *keys = order->lanes.keys;
    uint64_t *heap = order->lanes.keys + order->lanes.unit_capacity;
    int64_t longest = 0, lanes = order->sampling->batch;
    for (int64_t b = 0; b < lanes; b++) heap[b] = (uint64_t)b;
    for (int64_t i = 0; i < count; i++) {
        uint32_t unit = (uint32_t)keys[i];
        heap[0] += (uint64_t)unit_frames(&order->lanes.units[unit]) << 16;
        if (lane_of) lane_of[unit] = (int64_t)(heap[0] & 0xFFFF);
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
        uint64_t rank = sorted ? UINT32_MAX - unit_frames(&order->lanes.units[i]) : 0;
        order->lanes.keys[i] = rank << 32 | (uint64_t)i;
    }
    if (sorted) xph_sort(order->lanes.keys, count);
}

/* Pieces of dealt units to their lanes, in the order of the units. */
static void fill_lanes(xph_order *order, int64_t count, const int64_t *lane_of)
{
    int64_t lanes = order->sampling->batch, total = 0, *lane = order->lanes.lane;
    const xph_unit *units = order->lanes.units;
    memset(lane, 0, (size_t)(lanes + 1) * sizeof *lane);
    for (int64_t i = 0; i < count; i++) lane[lane_of[i]] += units[i].back ? 2 : 1;
    for (int64_t b = 0; b <= lanes; b++) { /* counts become ends of the lanes before */
        int64_t pieces = lane[b];
        lane[b] = total;
        total += pieces;
    }
    for (int64_t i = 0; i < count; i++) {
        const xph_unit *unit = &units[i];
        xph_piece *to = &order->lanes.pieces[lane[lane_of[i]]];
        to[0] = (xph_piece){unit->episode, unit->first, unit->frames};
        if (unit->back) {
            uint32_t end = (uint32_t)usable(order, unit->episode);
            to[1] = (xph_piece){unit->episode, end - unit->back, unit->back};
        }
        lane[lane_of[i]] += unit->back ? 2 : 1;
    }
    for (int64_t b = lanes; b > 0; b--) lane[b] = lane[b - 1];
    lane[0] = 0;
}

static bool plan_deal(xph_order *order, xph_rng *rng, const atomic_bool *stop)
{
    xph_lanes *to = &order->lanes;
    int64_t lanes = order->sampling->batch, count = make_units(order, rng);
    bool shuffled = !order->sampling->in_order;
    if (shuffled && !xph_shuffle(rng, to->units, count, sizeof *to->units, stop)) return false;
    order_units(order, count);
    int64_t *lane_of = to->begin; /* free until the lanes are filled */
    deal(order, count, lane_of);
    fill_lanes(order, count, lane_of);
    for (int64_t b = 0; shuffled && b < lanes; b++) {
        int64_t pieces = to->lane[b + 1] - to->lane[b];
        if (!xph_shuffle(rng, to->pieces + to->lane[b], pieces, sizeof *to->pieces, stop)) return false;
    }
    return true;
}

/* ---- finding ------------------------------------------------------------------------------------------- */

/* Each piece's place in its lane. */
static void index_lanes(xph_order *order)
{
    xph_lanes *lanes = &order->lanes;
    for (int64_t b = 0; b < order->sampling->batch; b++) {
        int64_t at = 0;
        for (int64_t p = lanes->lane[b]; p < lanes->lane[b + 1]; p++) {
            lanes->begin[p] = at;
            at += lanes->pieces[p].frames;
        }
    }
}

bool xph_lanes_plan(xph_order *order, xph_rng *rng, const atomic_bool *stop)
{
    bool planned =
        order->sampling->segment_frames ? plan_deal(order, rng, stop) : plan_line(order, rng, stop);
    if (planned) index_lanes(order);
    return planned;
}

int64_t xph_order_lane_frames(const xph_order *order, int64_t lane)
{
    const xph_lanes *lanes = &order->lanes;
    int64_t last = lanes->lane[lane + 1] - 1;
    return last < lanes->lane[lane] ? 0 : lanes->begin[last] + lanes->pieces[last].frames;
}

int64_t xph_order_piece(const xph_order *order, int64_t lane, int64_t at)
{
    const xph_lanes *lanes = &order->lanes;
    int64_t low = lanes->lane[lane], high = lanes->lane[lane + 1];
    if (at >= xph_order_lane_frames(order, lane)) return high;
    while (high - low > 1) { /* begin[low] <= at, and all from high on begin later */
        int64_t middle = low + (high - low) / 2;
        if (lanes->begin[middle] <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- making -------------------------------------------------------------------------------------------- */

/* Sizes of everything but the number of batches in dealt lanes. */
static void count_pieces(xph_order *order)
{
    const exphil_sampling *how = order->sampling;
    xph_lanes *lanes = &order->lanes;
    int64_t row = how->batch * how->time;
    for (int64_t i = 0; i < order->dataset->episode_count; i++) {
        int64_t frames = usable(order, i);
        if (!frames) continue;
        order->frames += frames;
        cut made = how->segment_frames ? cut_of(frames, how) : (cut){1, 0};
        lanes->unit_capacity += made.whole + (made.ends > 0);
        lanes->piece_capacity += made.whole + (made.ends ? 2 : 0);
    }
    if (how->segment_frames) {
        lanes->key_capacity = lanes->unit_capacity + how->batch;
    } else {
        order->batches = (order->frames + row - 1) / row;
        lanes->piece_capacity += how->batch + 1; /* where lanes cut, and the opening */
    }
}

/* Dealt lanes are as long in every epoch as in this one. */
static void count_dealt(xph_order *order)
{
    int64_t time = order->sampling->time;
    xph_rng rng = {.seed = 0};
    int64_t count = make_units(order, &rng);
    order_units(order, count);
    order->batches = (deal(order, count, NULL) + time - 1) / time;
}

exphil_status xph_lanes_count(xph_order *order, exphil_error *error)
{
    xph_lanes *lanes = &order->lanes;
    count_pieces(order);
    if (lanes->unit_capacity <= XPH_ORDERED_MAX) return EXPHIL_OK;
    return xph_fail(
        error, EXPHIL_E_UNSUPPORTED,
        "sampling.segment_frames is %lld, which cuts this dataset into %lld segments; at most %lld "
        "are ordered: make segments longer",
        (long long)order->sampling->segment_frames, (long long)lanes->unit_capacity,
        (long long)XPH_ORDERED_MAX);
}

size_t xph_lanes_bytes(const xph_order *order)
{
    const xph_lanes *lanes = &order->lanes;
    return (size_t)lanes->piece_capacity * (sizeof *lanes->pieces + sizeof *lanes->begin) +
           (size_t)lanes->unit_capacity * sizeof *lanes->units +
           (size_t)lanes->key_capacity * sizeof *lanes->keys +
           (size_t)(order->sampling->batch + 1) * sizeof *lanes->lane;
}

exphil_status xph_lanes_create(xph_order *order, exphil_error *error)
{
    xph_lanes *lanes = &order->lanes;
    XPH_TRY(xph_lanes_count(order, error));
    if (!(lanes->pieces = xph_order_get(order, lanes->piece_capacity, sizeof *lanes->pieces, error)) ||
        !(lanes->begin = xph_order_get(order, lanes->piece_capacity, sizeof *lanes->begin, error)) ||
        !(lanes->units = xph_order_get(order, lanes->unit_capacity, sizeof *lanes->units, error)) ||
        !(lanes->lane = xph_order_get(order, order->sampling->batch + 1, sizeof *lanes->lane, error)))
        return EXPHIL_E_MEMORY;
    if (!order->sampling->segment_frames) return EXPHIL_OK;
    lanes->keys = xph_order_get(order, lanes->key_capacity, sizeof *lanes->keys, error);
    if (!lanes->keys) return EXPHIL_E_MEMORY;
    count_dealt(order);
    return EXPHIL_OK;
}

void xph_lanes_free(xph_order *order)
{
    xph_lanes *lanes = &order->lanes;
    xph_order_drop(order, lanes->pieces, lanes->piece_capacity, sizeof *lanes->pieces);
    xph_order_drop(order, lanes->begin, lanes->piece_capacity, sizeof *lanes->begin);
    xph_order_drop(order, lanes->units, lanes->unit_capacity, sizeof *lanes->units);
    if (lanes->lane) xph_order_drop(order, lanes->lane, order->sampling->batch + 1, sizeof *lanes->lane);
    xph_order_drop(order, lanes->keys, lanes->key_capacity, sizeof *lanes->keys);
}
