/* The walk of an evaluation: all frames of a dataset, teacher-forced. Past actions are the recorded ones, state is carried
 * through whole episodes. alone.c has the walk of a policy whose past actions are its own. */
#include "train/walk.h"

exphil_status xph_feed_logits(const xph_feed *feed, float *narrow, double *wide)
{
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    const xph_backend *backend = feed->device->backend;
    xph_stream *stream = xph_net_stream(feed->net);
    size_t count = (size_t)(feed->batch * feed->time * shape->logits);
    void *to = shape->type == XPH_F64 ? (void *)wide : (void *)narrow;
    XPH_TRY(backend->download(stream, to, xph_net_logits(feed->net), count * shape->real_bytes));
    XPH_TRY(backend->stream_wait(stream));
    if (shape->type != XPH_F64)
        for (size_t i = 0; i < count; i++) wide[i] = (double)narrow[i];
    return EXPHIL_OK;
}

exphil_status xph_check_spec(const exphil_model *model, const exphil_dataset *dataset, exphil_error *error)
{
    const exphil_spec *data = xph_dataset_spec_of(dataset), *own = xph_model_spec(model);
    if (xph_dataset_context(dataset) != xph_model_context(model))
        return xph_fail(error, EXPHIL_E_MISMATCH, "dataset and model are of different contexts");
    if (xph_dataset_spec_hash(dataset) == xph_model_shape_of(model)->spec_hash) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH, "the dataset is %s/%s, the model wants %s/%s", data->layout,
                    data->codec, own->layout, own->codec);
}

exphil_status xph_whole_sampling(const exphil_model *model, const exphil_dataset *dataset, int64_t batch,
                                 exphil_sampling *sampling,
                                 exphil_condition_spec conditions[EXPHIL_CONDITIONS_MAX], exphil_error *error)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    if (batch < 0 || batch > 4096) return xph_fail(error, EXPHIL_E_INVALID, "batch must lie in 0..4096");
    XPH_TRY(exphil_dataset_query(dataset, &info, error));
    if (info.frames == 0) return xph_fail(error, EXPHIL_E_INVALID, "dataset is empty");
    *sampling = (exphil_sampling)EXPHIL_SAMPLING_INIT;
    XPH_TRY(exphil_model_sampling(model, sampling, error));
    bool window = sampling->mode == EXPHIL_MODE_WINDOW;
    sampling->batch = batch ? batch : 16;
    if (!window && sampling->batch > info.episodes) sampling->batch = info.episodes;
    sampling->in_order = 1;
    for (int64_t i = 0; i < sampling->condition_count; i++) {
        conditions[i] = sampling->conditions[i];
        conditions[i].mask = 0.0;
    }
    sampling->conditions = conditions;
    sampling->last_only = window;
    sampling->segment_frames = window ? 0 : info.frames;
    return EXPHIL_OK;
}

exphil_status xph_whole_sampler(const exphil_model *model, const exphil_dataset *dataset, int64_t batch,
                                const xph_fixed *fixed, xph_sampler **sampler, exphil_batch *first,
                                exphil_error *error)
{
    exphil_condition_spec conditions[EXPHIL_CONDITIONS_MAX];
    exphil_sampling sampling;
    XPH_TRY(xph_check_spec(model, dataset, error));
    XPH_TRY(xph_whole_sampling(model, dataset, batch, &sampling, conditions, error));
    XPH_TRY(xph_sampler_create(dataset, &sampling, sampler, error));
    xph_sampler_fix(*sampler, fixed ? fixed->conditions : NULL, fixed ? fixed->delay_id : 0);
    return xph_sampler_batch(*sampler, 0, 0, first, error);
}

void xph_walk_free(xph_walk *walk)
{
    xph_free(walk->context, walk->narrow, walk->narrow_bytes);
    xph_free(walk->context, walk->wide, walk->wide_bytes);
    xph_free(walk->context, walk->values, walk->values_bytes);
    xph_feed_destroy(&walk->feed);
    xph_sampler_destroy(walk->sampler);
}

void xph_walk_size(xph_walk *walk, const exphil_model *model, int64_t rows)
{
    size_t count = (size_t)(rows * xph_model_shape_of(model)->logits);
    walk->narrow_bytes = count * sizeof(float);
    walk->wide_bytes = count * sizeof(double);
    walk->values_bytes = xph_model_shape_of(model)->value ? (size_t)rows * sizeof(double) : 0;
}

exphil_status xph_walk_make(xph_walk *walk, const exphil_model *model, const exphil_dataset *dataset,
                            const xph_losses *losses, int64_t batch, const xph_fixed *fixed,
                            exphil_error *error)
{
    exphil_batch first = EXPHIL_BATCH_INIT;
    *walk = (xph_walk){.context = xph_model_context(model)};
    XPH_TRY(xph_whole_sampler(model, dataset, batch, fixed, &walk->sampler, &first, error));
    XPH_TRY(xph_feed_create(model, losses, first.batch, first.time, 1, 0, &walk->feed, error));
    xph_walk_size(walk, model, first.batch * first.time);
    walk->narrow = xph_alloc(walk->context, walk->narrow_bytes);
    walk->wide = xph_alloc(walk->context, walk->wide_bytes);
    if (walk->values_bytes) walk->values = xph_alloc(walk->context, walk->values_bytes);
    bool all = walk->narrow && walk->wide && (walk->values || !walk->values_bytes);
    return all ? EXPHIL_OK : xph_no_memory(walk->wide_bytes, error);
}

/* What the value head says; the narrow logits are wide by now, and give their place. */
static exphil_status take_values(const xph_walk *walk)
{
    const xph_feed *feed = &walk->feed;
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    xph_stream *stream = xph_net_stream(feed->net);
    const size_t rows = (size_t)(feed->batch * feed->time);
    void *to = shape->type == XPH_F64 ? (void *)walk->values : (void *)walk->narrow;
    if (!walk->values) return EXPHIL_OK;
    XPH_TRY(feed->device->backend->download(stream, to, xph_net_values(feed->net), rows * shape->real_bytes));
    XPH_TRY(feed->device->backend->stream_wait(stream));
    for (size_t i = 0; shape->type != XPH_F64 && i < rows; i++) walk->values[i] = (double)walk->narrow[i];
    return EXPHIL_OK;
}

/* Frames in the order of lanes, then of time. */
static exphil_status show_batch(const xph_walk *walk, const exphil_batch *batch, xph_see see, void *arg,
                                exphil_error *error)
{
    const exphil_model *model = walk->feed.model;
    const xph_model_shape *shape = xph_model_shape_of(model);
    const int64_t heads = shape->heads, width = shape->logits;
    const int32_t *before = xph_sampler_before(walk->sampler);
    xph_seen seen;
    for (int64_t row = 0; row < batch->batch * batch->time; row++) {
        if (!(batch->mask[row] > 0.0f)) continue;
        seen.frame = batch->rows[row];
        seen.floats = batch->floats + row * shape->floats;
        seen.ids = batch->ids + row * shape->ids;
        seen.target = &batch->actions[row * heads];
        seen.before = &before[row * heads];
        seen.logits = walk->wide + row * width;
        seen.value = walk->values ? walk->values[row] : __builtin_nan("");
        seen.outcome = batch->returns ? (double)batch->returns[row] : __builtin_nan("");
        (void)xph_judge(model, &seen);
        XPH_TRY(see(arg, &seen, error));
    }
    return EXPHIL_OK;
}

exphil_status xph_walk_run(xph_walk *walk, const void *weights, const void *packed, const xph_losses *losses,
                           double *loss_sums, xph_see see, void *arg, exphil_error *error)
{
    const exphil_spec *spec = xph_model_spec(walk->feed.model);
    int64_t batches = xph_sampler_batches(walk->sampler);
    for (int64_t i = 0; i < batches; i++) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        double sums[EXPHIL_HEADS_MAX] = {0};
        if (xph_cancelled(walk->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "evaluation cancelled by the host");
        XPH_TRY(xph_sampler_batch(walk->sampler, 0, i, &batch, error));
        exphil_status status = xph_feed_measure(&walk->feed, weights, packed, losses, &batch, sums);
        if (status >= 0) status = xph_feed_logits(&walk->feed, walk->narrow, walk->wide);
        if (status >= 0) status = take_values(walk);
        if (status >= 0) status = xph_feed_swap(&walk->feed);
        if (status < 0) return xph_fail(error, status, "evaluation: the device failed");
        for (int64_t h = 0; h < spec->head_count; h++) {
            if (!(sums[h] - sums[h] == 0.0))
                return xph_fail(error, EXPHIL_E_NUMERIC,
                                "evaluation: the loss of head %s is not finite in batch %lld",
                                spec->heads[h].name, (long long)i);
            loss_sums[h] += sums[h];
        }
        XPH_TRY(show_batch(walk, &batch, see, arg, error));
    }
    return EXPHIL_OK;
}
