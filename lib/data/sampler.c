/* Batches from a dataset: defaults and limits of exphil_sampling, then for every batch of the plan the
 * copying of rows, with the targets d frames later and the actions decided before them. Works on a snapshot
 * of the dataset, so that the host may go on adding episodes.
 *
 * Only rows that have a target are sampled: the last d frames of an episode have none, and nothing after
 * them depends on them. So every batch has rows to learn from. */
#include "data/sampler.h"

#include "device/device.h"

#define BATCH_MOST   4096
#define TIME_MOST    65536
#define DELAY_MOST   64
#define SLOTS_MOST   (DELAY_MOST + 1)
#define BUFFERS_MOST 64
#define EPOCH_MOST   ((int64_t)1 << 48)

/* Frames of a span: what is shuffled holds at least one. */
#define SHUFFLE_LEAST 1024

struct xph_sampler {
    exphil_context *context;
    exphil_dataset *dataset; /* a snapshot of its own */
    exphil_sampling sampling;
    xph_order order;
    int64_t planned; /* epoch that the plan is of; -1: none */
    atomic_bool stop;
    xph_batch_buffer own; /* of xph_sampler_batch, made when it is first needed */
    /* Of the one who fills: actions around a stretch of rows, and a piece of a corpus. */
    uint8_t *packed;
    size_t packed_bytes;
    xph_piece_buffer piece;
};

/* ---- configuration ----------------------------------------------------------------------------------- */

static exphil_status check_range(int64_t value, int64_t low, int64_t high, const char *field,
                                 exphil_error *error)
{
    if (value >= low && value <= high) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "sampling.%s is %lld, must be %lld..%lld", field,
                    (long long)value, (long long)low, (long long)high);
}

/* Fields that mean nothing in the mode are refused, not ignored. */
static exphil_status check_mode(const exphil_sampling *how, exphil_error *error)
{
    if (how->mode == EXPHIL_MODE_WINDOW) {
        if (how->segment_frames)
            return xph_fail(error, EXPHIL_E_INVALID, "sampling.segment_frames is for EXPHIL_MODE_CARRY");
        if (how->shuffle_frames && how->in_order)
            return xph_fail(error, EXPHIL_E_INVALID,
                            "sampling.shuffle_frames is for shuffled windows, in_order is 1");
        return EXPHIL_OK;
    }
    if (how->mode != EXPHIL_MODE_CARRY)
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.mode is %d, which is no mode", (int)how->mode);
    if (how->last_only)
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.last_only is for EXPHIL_MODE_WINDOW");
    if (how->stride != 1)
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.stride is for EXPHIL_MODE_WINDOW");
    if (how->shuffle_frames)
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.shuffle_frames is for EXPHIL_MODE_WINDOW");
    return EXPHIL_OK;
}

/* What shuffle_frames 0 means for a dataset: here, all windows together, as in 0.1. The only place where a kind of
 * dataset chooses; neither its size nor a limit of memory may. */
static int64_t usual_shuffle_frames(const exphil_dataset *dataset)
{
    (void)dataset;
    return 0;
}

static exphil_status check_shuffle(const exphil_sampling *how, exphil_error *error)
{
    int64_t frames = how->shuffle_frames;
    if (!frames || (frames >= SHUFFLE_LEAST && frames <= XPH_ORDERED_MAX)) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "sampling.shuffle_frames is %lld, must be 0 or %d..%lld",
                    (long long)frames, SHUFFLE_LEAST, (long long)XPH_ORDERED_MAX);
}

static exphil_status resolve(const exphil_dataset *dataset, const exphil_sampling *given,
                             exphil_sampling *how, exphil_error *error)
{
    exphil_sampling known = EXPHIL_SAMPLING_INIT;
    XPH_TRY(XPH_TAKE(exphil_sampling, &known, given, error));
    if (!known.batch) known.batch = 16;
    if (!known.time) known.time = 60;
    if (!known.stride) known.stride = 1;
    if (!known.buffers) known.buffers = 2;
    if (!known.shuffle_frames && known.mode == EXPHIL_MODE_WINDOW && !known.in_order)
        known.shuffle_frames = usual_shuffle_frames(dataset);
    XPH_TRY(check_mode(&known, error));
    XPH_TRY(check_range(known.batch, 1, BATCH_MOST, "batch", error));
    XPH_TRY(check_range(known.time, 1, TIME_MOST, "time", error));
    XPH_TRY(check_range(known.stride, 1, XPH_FRAMES_MAX, "stride", error));
    XPH_TRY(check_range(known.segment_frames, 0, INT64_MAX, "segment_frames", error));
    XPH_TRY(check_shuffle(&known, error));
    XPH_TRY(check_range(known.delay_frames, 0, DELAY_MOST, "delay_frames", error));
    XPH_TRY(check_range(known.action_slots, 0, SLOTS_MOST, "action_slots", error));
    XPH_TRY(check_range(known.in_order, 0, 1, "in_order", error));
    XPH_TRY(check_range(known.last_only, 0, 1, "last_only", error));
    XPH_TRY(check_range(known.buffers, 1, BUFFERS_MOST, "buffers", error));
    XPH_TRY(check_range(known.neutral_start, 0, 1, "neutral_start", error));
    XPH_TRY(check_range(known.reserved, 0, 0, "reserved", error));
    if (known.segment_frames > XPH_FRAMES_MAX) known.segment_frames = XPH_FRAMES_MAX; /* never cuts */
    *how = known;
    return EXPHIL_OK;
}

/* ---- memory for a batch -------------------------------------------------------------------------------- */

/* Takes count items of item_bytes behind *at, which stays a multiple of 64. */
static bool take(size_t *at, size_t rows, int64_t count, size_t item_bytes, size_t *offset)
{
    size_t bytes;
    *offset = *at;
    return xph_size_mul(rows, (size_t)count, &bytes) && xph_size_mul(bytes, item_bytes, &bytes) &&
           xph_size_add(*at, bytes, at) && xph_size_align(*at, 64, at);
}

exphil_status xph_batch_buffer_create(const xph_sampler *sampler, xph_batch_buffer *buffer,
                                      exphil_error *error)
{
    const xph_row_shape *shape = &sampler->dataset->shape;
    const exphil_sampling *how = &sampler->sampling;
    size_t bytes = 0, floats, ids, past, actions, mask, reset, rows = (size_t)(how->batch * how->time);
    if (!take(&bytes, rows, shape->floats, sizeof(float), &floats) ||
        !take(&bytes, rows, shape->ids, sizeof(int32_t), &ids) ||
        !take(&bytes, rows, how->action_slots * shape->heads, sizeof(int32_t), &past) ||
        !take(&bytes, rows, shape->heads, sizeof(int32_t), &actions) ||
        !take(&bytes, rows, 1, sizeof(float), &mask) || !take(&bytes, rows, 1, 1, &reset)) {
        return xph_fail(error, EXPHIL_E_INVALID, "a batch of %lld x %lld rows is too large",
                        (long long)how->batch, (long long)how->time);
    }
    xph_device *device = xph_context_backend(sampler->context);
    void *block = NULL;
    exphil_status status = device->backend->host_alloc(device, bytes, &block);
    if (status < 0) return xph_no_device_memory(error, device, status, bytes);
    uint8_t *memory = block;
    *buffer = (xph_batch_buffer){.memory = memory,
                                 .bytes = bytes,
                                 .floats = (float *)(void *)(memory + floats),
                                 .mask = (float *)(void *)(memory + mask),
                                 .ids = (int32_t *)(void *)(memory + ids),
                                 .past = (int32_t *)(void *)(memory + past),
                                 .actions = (int32_t *)(void *)(memory + actions),
                                 .reset = memory + reset};
    return EXPHIL_OK;
}

void xph_batch_buffer_free(const xph_sampler *sampler, xph_batch_buffer *buffer)
{
    xph_device *device = xph_context_backend(sampler->context);
    if (buffer->memory) device->backend->host_free(device, buffer->memory, buffer->bytes);
    *buffer = (xph_batch_buffer){.memory = NULL};
}

void xph_batch_buffer_show(const xph_sampler *sampler, const xph_batch_buffer *buffer, exphil_batch *batch)
{
    *batch = (exphil_batch){.struct_size = sizeof *batch,
                            .batch = sampler->sampling.batch,
                            .time = sampler->sampling.time,
                            .epoch = buffer->epoch,
                            .index = buffer->index,
                            .frames = buffer->frames,
                            .floats = buffer->floats,
                            .ids = buffer->ids,
                            .past = buffer->past,
                            .actions = buffer->actions,
                            .mask = buffer->mask,
                            .reset = buffer->reset};
}

/* ---- rows -------------------------------------------------------------------------------------------- */

static void neutral_action(const xph_row_shape *shape, int32_t *action)
{
    for (int64_t a = 0; a < shape->heads; a++) action[a] = shape->spec->heads[a].neutral;
}

/* Packed actions of an episode from frame `first` on. */
typedef struct stretch {
    const uint8_t *packed;
    int64_t first, end;
} stretch;

/* The action of frame t, neutral before frame `first`. */
static void action_at(const xph_row_shape *shape, const stretch *acted, int64_t t, int64_t first,
                      int32_t *action)
{
    if (t < first) {
        neutral_action(shape, action);
    } else {
        xph_action_unpack(shape, acted->packed + (t - acted->first) * shape->action_bytes, action);
    }
}

/* Targets, and the actions decided before them: row t has t+d, then t+d-1, t+d-2, ... The first that an episode can have
 * decided acts in its frame d. */
static void copy_actions(const xph_sampler *sampler, const stretch *acted, int64_t t, int64_t count,
                         int64_t row, xph_batch_buffer *buffer)
{
    const xph_row_shape *shape = &sampler->dataset->shape;
    const exphil_sampling *how = &sampler->sampling;
    int64_t heads = shape->heads, slots = how->action_slots,
            first = how->neutral_start ? how->delay_frames : 0;
    for (int64_t i = 0; i < count; i++, t++, row++) {
        int64_t decided = t + how->delay_frames;
        action_at(shape, acted, decided, 0, buffer->actions + row * heads);
        int32_t *past = buffer->past + row * slots * heads;
        for (int64_t s = 0; s < slots; s++) action_at(shape, acted, decided - 1 - s, first, past + s * heads);
    }
}

/* All that copying count frames from t on looks at: actions before and after them too. */
static stretch stretch_of(const xph_sampler *sampler, const xph_episode *episode, int64_t t, int64_t count)
{
    int64_t delay = sampler->sampling.delay_frames, slots = sampler->sampling.action_slots;
    int64_t first = t + (delay < slots ? delay - slots : 0), end = t + count + delay;
    return (stretch){sampler->packed, first < 0 ? 0 : first, end > episode->frames ? episode->frames : end};
}

/* Copies count frames of one episode, from its row t on, to the rows from row on. */
static exphil_status copy_rows(xph_sampler *sampler, const xph_episode *episode, int64_t t, int64_t count,
                               int64_t row, xph_batch_buffer *buffer, exphil_error *error)
{
    const xph_row_shape *shape = &sampler->dataset->shape;
    const xph_block *block = episode->block;
    int64_t offset = episode->offset;
    stretch acted = stretch_of(sampler, episode, t, count);
    int64_t acts = acted.end - acted.first;
    XPH_TRY(xph_rows_verify(shape, block, offset + acted.first, acts, &sampler->piece, error));
    XPH_TRY(xph_rows_copy(shape, block, offset + t, count, buffer->floats + row * shape->floats,
                          buffer->ids + row * shape->ids, NULL, error));
    XPH_TRY(xph_rows_copy(shape, block, offset + acted.first, acts, NULL, NULL, sampler->packed, error));
    copy_actions(sampler, &acted, t, count, row, buffer);
    int64_t slots = sampler->sampling.action_slots;
    XPH_TRY(xph_rows_recheck(shape, block, buffer->ids + row * shape->ids, count,
                             buffer->actions + row * shape->heads, count, error));
    XPH_TRY(xph_rows_recheck(shape, block, NULL, 0, buffer->past + row * slots * shape->heads, count * slots,
                             error));
    bool last_only = sampler->sampling.last_only;
    for (int64_t i = 0; i < count; i++) {
        bool counts = !last_only || i == count - 1;
        buffer->mask[row + i] = counts ? 1.0f : 0.0f;
        buffer->reset[row + i] = 0;
        buffer->frames += counts;
    }
    return EXPHIL_OK;
}

/* Rows without frames: all zero; the first starts from a zero state, so that no state runs on into
 * padding. */
static void pad_rows(const xph_sampler *sampler, int64_t row, int64_t count, bool first,
                     xph_batch_buffer *buffer)
{
    const xph_row_shape *shape = &sampler->dataset->shape;
    int64_t heads = shape->heads, slots = sampler->sampling.action_slots;
    size_t rows = (size_t)count;
    memset(buffer->floats + row * shape->floats, 0, rows * (size_t)shape->floats * sizeof(float));
    memset(buffer->ids + row * shape->ids, 0, rows * (size_t)shape->ids * sizeof(int32_t));
    memset(buffer->past + row * slots * heads, 0, rows * (size_t)(slots * heads) * sizeof(int32_t));
    memset(buffer->actions + row * heads, 0, rows * (size_t)heads * sizeof(int32_t));
    memset(buffer->mask + row, 0, rows * sizeof(float));
    memset(buffer->reset + row, 0, rows);
    if (first && count) buffer->reset[row] = 1;
}

static exphil_status fill_lane(xph_sampler *sampler, int64_t lane, int64_t index, xph_batch_buffer *buffer,
                               exphil_error *error)
{
    const xph_order *order = &sampler->order;
    const xph_lanes *lanes = &order->lanes;
    int64_t time = sampler->sampling.time, row = lane * time, end = row + time, at = index * time;
    int64_t p = xph_order_piece(order, lane, at), pieces = lanes->lane[lane + 1];
    for (; row < end && p < pieces; p++) {
        const xph_piece *piece = &lanes->pieces[p];
        int64_t skip = at - lanes->begin[p], count = piece->frames - skip;
        if (count > end - row) count = end - row;
        const xph_episode *episode = &sampler->dataset->episodes[piece->episode];
        XPH_TRY(copy_rows(sampler, episode, piece->first + skip, count, row, buffer, error));
        if (!skip) buffer->reset[row] = 1;
        row += count;
        at += count;
    }
    pad_rows(sampler, row, end - row, xph_order_lane_frames(order, lane) >= index * time, buffer);
    return EXPHIL_OK;
}

static exphil_status fill_window(xph_sampler *sampler, int64_t lane, int64_t index, xph_batch_buffer *buffer,
                                 exphil_error *error)
{
    int64_t time = sampler->sampling.time, row = lane * time, count = 0;
    int64_t window = index * sampler->sampling.batch + lane;
    if (window < sampler->order.windows.count) {
        xph_place place;
        if (!xph_order_window(&sampler->order, window, &sampler->stop, &place)) return EXPHIL_E_CANCELLED;
        const xph_episode *episode = &sampler->dataset->episodes[place.episode];
        count = xph_usable_frames(episode, sampler->sampling.delay_frames) - place.row;
        if (count > time) count = time;
        XPH_TRY(copy_rows(sampler, episode, place.row, count, row, buffer, error));
        buffer->reset[row] = 1;
    }
    pad_rows(sampler, row + count, time - count, true, buffer);
    return EXPHIL_OK;
}

/* ---- sampler ----------------------------------------------------------------------------------------- */

/* All that filling needs, so that it cannot run out of memory. */
static exphil_status make_places(xph_sampler *made, exphil_error *error)
{
    const exphil_dataset *dataset = made->dataset;
    const exphil_sampling *how = &made->sampling;
    int64_t most = how->time + how->delay_frames + how->action_slots;
    made->packed_bytes = (size_t)(most * dataset->shape.action_bytes);
    made->packed = xph_alloc(made->context, made->packed_bytes);
    if (!made->packed) return xph_no_memory(made->packed_bytes, error);
    for (int64_t i = 0; i < dataset->episode_count; i++)
        if (dataset->episodes[i].block->corpus)
            return xph_piece_buffer_make(&made->piece, &dataset->shape, error);
    return EXPHIL_OK;
}

static exphil_status make_sampler(xph_sampler *made, const exphil_dataset *dataset,
                                  const exphil_sampling *sampling, exphil_error *error)
{
    XPH_TRY(resolve(dataset, sampling, &made->sampling, error));
    XPH_TRY(xph_dataset_snapshot(dataset, &made->dataset, error));
    XPH_TRY(make_places(made, error));
    return xph_order_create(made->dataset, &made->sampling, &made->order, error);
}

exphil_status xph_sampler_create(const exphil_dataset *dataset, const exphil_sampling *sampling,
                                 xph_sampler **sampler, exphil_error *error)
{
    exphil_context *context = xph_dataset_context(dataset);
    xph_sampler *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = made->piece.context = xph_context_retain(context);
    made->planned = -1;
    exphil_status status = make_sampler(made, dataset, sampling, error);
    if (status < 0) {
        xph_sampler_destroy(made);
        return status;
    }
    *sampler = made;
    return EXPHIL_OK;
}

void xph_sampler_destroy(xph_sampler *sampler)
{
    if (!sampler) return;
    exphil_context *context = sampler->context;
    xph_batch_buffer_free(sampler, &sampler->own);
    xph_piece_buffer_free(&sampler->piece);
    xph_free(context, sampler->packed, sampler->packed_bytes);
    xph_order_free(&sampler->order);
    xph_dataset_release(sampler->dataset);
    xph_free(context, sampler, sizeof *sampler);
    xph_context_release(context);
}

const exphil_sampling *xph_sampler_sampling(const xph_sampler *sampler)
{
    return &sampler->sampling;
}

const exphil_dataset *xph_sampler_dataset(const xph_sampler *sampler)
{
    return sampler->dataset;
}

int64_t xph_sampler_batches(const xph_sampler *sampler)
{
    return sampler->order.batches;
}

int64_t xph_sampler_frames(const xph_sampler *sampler)
{
    return sampler->order.frames;
}

void xph_sampler_stop(xph_sampler *sampler)
{
    atomic_store_explicit(&sampler->stop, true, memory_order_relaxed);
}

exphil_status xph_sampler_place(const xph_sampler *sampler, int64_t epoch, int64_t index, exphil_error *error)
{
    if (epoch < 0 || epoch >= EPOCH_MOST)
        return xph_fail(error, EXPHIL_E_INVALID, "epoch is %lld, must be 0..2^48-1", (long long)epoch);
    if (index < 0 || index >= sampler->order.batches) {
        return xph_fail(error, EXPHIL_E_INVALID, "index is %lld; an epoch has %lld batches", (long long)index,
                        (long long)sampler->order.batches);
    }
    return EXPHIL_OK;
}

exphil_status xph_sampler_fill(xph_sampler *sampler, int64_t epoch, int64_t index, xph_batch_buffer *buffer,
                               exphil_error *error)
{
    if (sampler->planned != epoch) {
        sampler->planned = -1;
        if (!xph_order_plan(&sampler->order, epoch, &sampler->stop)) return EXPHIL_E_CANCELLED;
        sampler->planned = epoch;
    }
    buffer->epoch = epoch;
    buffer->index = index;
    buffer->frames = 0;
    bool windows = sampler->sampling.mode == EXPHIL_MODE_WINDOW;
    for (int64_t lane = 0; lane < sampler->sampling.batch; lane++) {
        XPH_TRY(windows ? fill_window(sampler, lane, index, buffer, error)
                        : fill_lane(sampler, lane, index, buffer, error));
    }
    return EXPHIL_OK;
}

exphil_status xph_sampler_batch(xph_sampler *sampler, int64_t epoch, int64_t index, exphil_batch *batch,
                                exphil_error *error)
{
    XPH_TRY(xph_sampler_place(sampler, epoch, index, error));
    if (!sampler->own.memory) XPH_TRY(xph_batch_buffer_create(sampler, &sampler->own, error));
    XPH_TRY(xph_sampler_fill(sampler, epoch, index, &sampler->own, error));
    exphil_batch now;
    xph_batch_buffer_show(sampler, &sampler->own, &now);
    return XPH_GIVE(exphil_batch, batch, &now, error);
}
