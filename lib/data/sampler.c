/* Batches from a dataset, of a snapshot of it, so that the host may go on adding episodes: memory, and one batch of the plan
 * after the other.
 *
 * Only rows that have a target are sampled: the last d frames of an episode have none, and nothing after
 * them depends on them. So every batch has rows to learn from, unless they weigh nothing. */
#include "data/filling.h"
#include "device/device.h"

#define EPOCH_MOST ((int64_t)1 << 48)

/* ---- memory for a batch -------------------------------------------------------------------------------- */

exphil_status xph_batch_buffer_create(const xph_sampler *sampler, xph_batch_buffer *buffer,
                                      exphil_error *error)
{
    const exphil_sampling *how = &sampler->sampling;
    xph_batch_places at;
    XPH_TRY(xph_batch_place(&sampler->dataset->shape, how, &sampler->told, sampler->before,
                            sampler->dataset->returns != NULL, &at, error));
    size_t bytes = at.bytes;
    xph_device *device = xph_context_backend(sampler->context);
    void *block = NULL;
    exphil_status status = device->backend->host_alloc(device, bytes, &block);
    if (status < 0) return xph_no_device_memory(error, device, status, bytes);
    uint8_t *memory = block;
    *buffer = (xph_batch_buffer){.memory = memory,
                                 .bytes = bytes,
                                 .floats = (float *)(void *)(memory + at.floats),
                                 .mask = (float *)(void *)(memory + at.mask),
                                 .ids = (int32_t *)(void *)(memory + at.ids),
                                 .past = (int32_t *)(void *)(memory + at.past),
                                 .actions = (int32_t *)(void *)(memory + at.actions),
                                 .rows = (int64_t *)(void *)(memory + at.rows),
                                 .reset = memory + at.reset,
                                 .dropped = how->drop_past > 0.0 ? memory + at.dropped : NULL};
    if (xph_told_columns(&sampler->told)) buffer->told = (int32_t *)(void *)(memory + at.told);
    if (sampler->dataset->returns) buffer->returns = (float *)(void *)(memory + at.returns);
    if (sampler->before) buffer->before = (int32_t *)(void *)(memory + at.before);
    if (how->mode != EXPHIL_MODE_WINDOW || !how->shuffle_frames) return EXPHIL_OK;
    buffer->windows = xph_calloc(sampler->context, (size_t)how->lane_count, sizeof *buffer->windows);
    if (buffer->windows) return EXPHIL_OK;
    xph_batch_buffer_free(sampler, buffer);
    return xph_no_memory((size_t)how->lane_count * sizeof *buffer->windows, error);
}

void xph_sampler_end(const xph_sampler *sampler, xph_batch_buffer *buffer)
{
    for (int64_t b = 0; buffer->windows && b < sampler->sampling.lane_count; b++) {
        xph_window_rows_release(buffer->windows[b].rows);
        buffer->windows[b].rows = NULL;
    }
    xph_window_rows_release(buffer->fresh);
    buffer->fresh = NULL;
}

void xph_batch_buffer_free(const xph_sampler *sampler, xph_batch_buffer *buffer)
{
    xph_sampler_end(sampler, buffer);
    xph_free(sampler->context, buffer->windows,
             (size_t)sampler->sampling.lane_count * sizeof *buffer->windows);
    xph_device *device = xph_context_backend(sampler->context);
    if (buffer->memory) device->backend->host_free(device, buffer->memory, buffer->bytes);
    *buffer = (xph_batch_buffer){.memory = NULL};
}

void xph_batch_buffer_show(const xph_sampler *sampler, const xph_batch_buffer *buffer, exphil_batch *batch)
{
    *batch = (exphil_batch){.struct_size = sizeof *batch,
                            .batch = sampler->sampling.lane_count,
                            .time = sampler->sampling.time,
                            .epoch = buffer->epoch,
                            .index = buffer->index,
                            .frames = atomic_load(&buffer->frames),
                            .floats = buffer->floats,
                            .ids = buffer->ids,
                            .past = buffer->past,
                            .actions = buffer->actions,
                            .mask = buffer->mask,
                            .reset = buffer->reset,
                            .dropped = buffer->dropped,
                            .conditions = buffer->told,
                            .rows = buffer->rows,
                            .returns = buffer->returns};
}

/* ---- sampler ----------------------------------------------------------------------------------------- */

static exphil_status make_filler(const xph_sampler *made, xph_filler *filler, bool corpus,
                                 exphil_error *error)
{
    filler->piece.context = made->context;
    filler->packed = xph_alloc(made->context, made->packed_bytes);
    if (!filler->packed) return xph_no_memory(made->packed_bytes, error);
    if (corpus) XPH_TRY(xph_piece_buffer_make(&filler->piece, &made->dataset->shape, error));
    if (!made->dataset->of_games) return EXPHIL_OK;
    XPH_TRY(xph_unpacker_create(made->context, &filler->piece.unpacker, error));
    return xph_game_lane_create(made->context, xph_chunk_blocks(&made->sampling), &filler->piece.own, error);
}

/* All that filling needs, so that it cannot run out of memory but for the games that lanes enter. */
static exphil_status make_places(xph_sampler *made, exphil_error *error)
{
    const exphil_dataset *dataset = made->dataset;
    const exphil_sampling *how = &made->sampling;
    int64_t lanes = 0;
    made->packed_bytes = xph_packed_bytes(&dataset->shape, how);
    XPH_TRY(xph_game_lanes(dataset, how, &made->told, &lanes, error));
    bool corpus = xph_dataset_of_corpus(dataset);
    made->fillers = xph_calloc(made->context, (size_t)how->workers, sizeof *made->fillers);
    if (!made->fillers) return xph_no_memory((size_t)how->workers * sizeof *made->fillers, error);
    for (int32_t i = 0; i < how->workers; i++) XPH_TRY(make_filler(made, &made->fillers[i], corpus, error));
    made->lanes = xph_calloc(made->context, (size_t)how->lane_count, sizeof(void *));
    if (!made->lanes) return xph_no_memory((size_t)how->lane_count * sizeof(void *), error);
    for (int64_t b = 0; b < lanes; b++)
        XPH_TRY(xph_game_lane_create(made->context, xph_chunk_blocks(how), &made->lanes[b], error));
    return EXPHIL_OK;
}

static exphil_status make_mirror(xph_sampler *made, exphil_error *error)
{
    const exphil_spec *spec = made->dataset->spec;
    exphil_spec preset = EXPHIL_SPEC_INIT;
    if (!(made->sampling.mirror > 0)) return EXPHIL_OK;
    if (exphil_melee_spec(spec->layout, spec->codec, &preset, NULL) < 0 ||
        exphil_spec_hash(&preset) != made->dataset->spec_hash)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "sampling.mirror is for a Melee spec; layout \"%s\" with codec \"%s\" is none",
                        spec->layout, spec->codec);
    exphil_status status = xph_melee_mirror_make(xph_melee_layout_find(spec->layout),
                                                 xph_melee_codec_find(spec->codec), &made->mirror, error);
    return status < 0 ? xph_fail_within(error, status, "sampling.mirror") : EXPHIL_OK;
}

static exphil_status make_sampler(xph_sampler *made, const exphil_dataset *dataset,
                                  const exphil_sampling *sampling, exphil_error *error)
{
    XPH_TRY(xph_sampling_resolve(dataset, sampling, &made->sampling, &made->told, error));
    XPH_TRY(xph_dataset_snapshot(dataset, &made->dataset, error));
    XPH_TRY(make_mirror(made, error));
    XPH_TRY(xph_conditions_of(made->dataset, &made->told, &made->values, &made->values_bytes, error));
    XPH_TRY(make_places(made, error));
    return xph_order_create(made->dataset, &made->sampling, &made->order, error);
}

exphil_status xph_sampler_create(const exphil_dataset *dataset, const exphil_sampling *sampling,
                                 xph_sampler **sampler, exphil_error *error)
{
    exphil_context *context = xph_dataset_context(dataset);
    xph_sampler *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
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
    for (int32_t i = 0; sampler->fillers && i < sampler->sampling.workers; i++) {
        xph_free(context, sampler->fillers[i].packed, sampler->packed_bytes);
        if (sampler->fillers[i].piece.context) xph_piece_buffer_free(&sampler->fillers[i].piece);
    }
    xph_free(context, sampler->fillers, (size_t)sampler->sampling.workers * sizeof *sampler->fillers);
    for (int64_t b = 0; sampler->lanes && b < sampler->sampling.lane_count; b++)
        xph_game_lane_free(sampler->lanes[b]);
    xph_free(context, sampler->lanes, (size_t)sampler->sampling.lane_count * sizeof(void *));
    xph_window_rows_release(sampler->group);
    xph_free(context, sampler->values, sampler->values_bytes);
    xph_weighing_free(sampler->weighing);
    xph_order_free(&sampler->order);
    xph_dataset_release(sampler->dataset);
    xph_free(context, sampler, sizeof *sampler);
    xph_context_release(context);
}

exphil_status xph_sampler_weigh(xph_sampler *sampler, exphil_error *error)
{
    return xph_weighing_create(sampler->dataset, &sampler->sampling, &sampler->weighing, error);
}

const xph_weighing *xph_sampler_weighing(const xph_sampler *sampler)
{
    return sampler->weighing;
}

const exphil_sampling *xph_sampler_sampling(const xph_sampler *sampler)
{
    return &sampler->sampling;
}

const xph_told *xph_sampler_told(const xph_sampler *sampler)
{
    return &sampler->told;
}

uint64_t xph_sampler_values_hash(const xph_sampler *sampler)
{
    return sampler->values ? xph_hash(sampler->values, sampler->values_bytes) : 0;
}

void xph_sampler_fix(xph_sampler *sampler, const int32_t *conditions, int32_t delay_id)
{
    sampler->fixes = conditions != NULL;
    if (conditions) memcpy(sampler->fixed, conditions, (size_t)sampler->told.conditions * sizeof *conditions);
    sampler->fixed[EXPHIL_CONDITIONS_MAX] = delay_id;
    sampler->before = true;
}

const int32_t *xph_sampler_before(const xph_sampler *sampler)
{
    return sampler->own.before;
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

void xph_sampler_forget(xph_sampler *sampler)
{
    xph_window_rows_release(sampler->group);
    sampler->group = NULL;
}

int64_t xph_sampler_planned(const xph_sampler *sampler)
{
    return sampler->planned;
}

int32_t xph_sampler_workers(const xph_sampler *sampler)
{
    return sampler->sampling.workers;
}

/* The group that the order has at hand becomes the one whose rows are made next. One that was to be made before it is
 * made at once: batches seldom reach over two borders. */
static exphil_status enter_group(xph_sampler *sampler, xph_batch_buffer *buffer, exphil_error *error)
{
    for (int64_t i = 0; buffer->fresh && i < buffer->fresh->count; i++)
        XPH_TRY(xph_sampler_run(sampler, 0, i, buffer, error));
    xph_window_rows_release(buffer->fresh);
    xph_window_rows_release(sampler->group);
    buffer->fresh = sampler->group = NULL;
    XPH_TRY(xph_window_rows_create(&sampler->order, &sampler->group, error));
    buffer->fresh = xph_window_rows_retain(sampler->group);
    return EXPHIL_OK;
}

static exphil_status find_windows(xph_sampler *sampler, xph_batch_buffer *buffer, exphil_error *error)
{
    const xph_windows *windows = &sampler->order.windows;
    int64_t first = xph_sampler_window(sampler, buffer->index), left = windows->count - first;
    for (int64_t b = 0; b < sampler->sampling.lane_count && b < left; b++) {
        xph_window_place *place = &buffer->windows[b];
        if (!xph_order_window(&sampler->order, first + b, &sampler->stop, &place->at))
            return EXPHIL_E_CANCELLED;
        const xph_window_rows *group = sampler->group;
        bool there = group && group->epoch == buffer->epoch && group->first == windows->first;
        if (!sampler->dataset->of_games) continue;
        if (!there) XPH_TRY(enter_group(sampler, buffer, error));
        place->rows = xph_window_rows_retain(sampler->group);
    }
    return EXPHIL_OK;
}

exphil_status xph_sampler_begin(xph_sampler *sampler, int64_t epoch, int64_t index, xph_batch_buffer *buffer,
                                exphil_error *error)
{
    xph_sampler_end(sampler, buffer);
    if (sampler->planned != epoch) {
        sampler->planned = -1;
        if (!xph_order_plan(&sampler->order, epoch, &sampler->stop)) return EXPHIL_E_CANCELLED;
        sampler->planned = epoch;
    }
    buffer->epoch = epoch;
    buffer->index = index;
    atomic_store(&buffer->frames, 0);
    return buffer->windows ? find_windows(sampler, buffer, error) : EXPHIL_OK;
}

exphil_status xph_sampler_run(xph_sampler *sampler, int32_t worker, int64_t run, xph_batch_buffer *buffer,
                              exphil_error *error)
{
    xph_filler *with = &sampler->fillers[worker];
    with->piece.lane = NULL;
    return xph_window_rows_make(buffer->fresh, &sampler->dataset->shape, run, &with->piece, error);
}

exphil_status xph_sampler_lane(xph_sampler *sampler, int32_t worker, int64_t lane, xph_batch_buffer *buffer,
                               exphil_error *error)
{
    xph_filler *with = &sampler->fillers[worker];
    with->piece.lane = sampler->lanes[lane];
    return sampler->sampling.mode == EXPHIL_MODE_WINDOW ? xph_fill_window(sampler, with, lane, buffer, error)
                                                        : xph_fill_lane(sampler, with, lane, buffer, error);
}

static exphil_status fill_all(xph_sampler *sampler, int64_t epoch, int64_t index, xph_batch_buffer *buffer,
                              exphil_error *error)
{
    XPH_TRY(xph_sampler_begin(sampler, epoch, index, buffer, error));
    for (int64_t i = 0; buffer->fresh && i < buffer->fresh->count; i++)
        XPH_TRY(xph_sampler_run(sampler, 0, i, buffer, error));
    for (int64_t lane = 0; lane < sampler->sampling.lane_count; lane++)
        XPH_TRY(xph_sampler_lane(sampler, 0, lane, buffer, error));
    return EXPHIL_OK;
}

/* All of a batch, by the caller alone. */
static exphil_status fill(xph_sampler *sampler, int64_t epoch, int64_t index, xph_batch_buffer *buffer,
                          exphil_error *error)
{
    exphil_status status = fill_all(sampler, epoch, index, buffer, error);
    if (status < 0) xph_sampler_forget(sampler);
    xph_sampler_end(sampler, buffer);
    return status;
}

exphil_status xph_sampler_batch(xph_sampler *sampler, int64_t epoch, int64_t index, exphil_batch *batch,
                                exphil_error *error)
{
    XPH_TRY(xph_sampler_place(sampler, epoch, index, error));
    if (!sampler->own.memory) XPH_TRY(xph_batch_buffer_create(sampler, &sampler->own, error));
    XPH_TRY(fill(sampler, epoch, index, &sampler->own, error));
    exphil_batch now;
    xph_batch_buffer_show(sampler, &sampler->own, &now);
    return XPH_GIVE(exphil_batch, batch, &now, error);
}
