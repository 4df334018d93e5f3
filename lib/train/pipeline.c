/* The device's part of an update: programs of work, recorded if the device can record, the result of an
 * update (lib/device/settle.h), and when the host reads it. A device with its own memory may be one update
 * behind the host: it is given the next update before the host reads the result of the last. */
#include "train/ranks.h"
#include "train/shards.h"

#include <exphil/ranks.h>

/* 1e18: beyond it the square of a gradient leaves the range of a float in the second moment. */
#define LARGEST_F32 1e18
#define LARGEST_F64 1e150
/* Dynamic loss scaling of float16 (Micikevicius et al. 2018): doubled after so many good updates, halved by overflow. */
enum { GROWTH = 2000 };
enum { RECORDINGS_MOST = 32 }; /* that may fail before no more are tried */
#define LOSS_SCALE_LEAST 1.0
#define LOSS_SCALE_MOST  0x1p24

static xph_stream *stream_of(const exphil_trainer *trainer)
{
    return xph_net_stream(trainer->feed.net);
}

/* ---- weights as they are seen ------------------------------------------------------------------------------------ */

const void *xph_trainer_seen(const exphil_trainer *trainer)
{
    return trainer->rounded ? trainer->rounded : trainer->weights;
}

exphil_status xph_trainer_refresh(exphil_trainer *trainer)
{
    if (trainer->rounded)
        XPH_TRY(xph_model_round(trainer->model, xph_net_stream(trainer->feed.net), trainer->fake_quantize,
                                trainer->weights, trainer->rounded));
    return xph_net_pack(trainer->feed.net, xph_trainer_seen(trainer), trainer->packed);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static exphil_status run_first(exphil_trainer *trainer)
{
    const xph_backend *backend = trainer->device->backend;
    XPH_TRY(backend->zero(stream_of(trainer), trainer->gradients, trainer->arena_bytes));
    return backend->zero(stream_of(trainer), trainer->control->head, sizeof trainer->control->head);
}

static exphil_status run_forward(exphil_trainer *trainer)
{
    xph_net_io io;
    xph_feed_io(&trainer->feed, &io);
    return xph_net_forward(trainer->feed.net, xph_trainer_seen(trainer), trainer->packed, &io);
}

static exphil_status run_backward(exphil_trainer *trainer)
{
    const xph_feed *feed = &trainer->feed;
    xph_net_io io;
    xph_feed_io(feed, &io);
    return xph_net_backward(feed->net, xph_trainer_seen(trainer), trainer->packed, &io, feed->dlogits,
                            feed->dvalues, trainer->gradients);
}

static exphil_status run_shard(exphil_trainer *trainer)
{
    return xph_feed_learn(&trainer->feed, xph_trainer_seen(trainer), trainer->packed, &trainer->losses,
                          trainer->control, trainer->gradients);
}

static exphil_status run_batch(exphil_trainer *trainer)
{
    xph_feed *feed = &trainer->feed;
    exphil_status status = EXPHIL_OK;
    for (int64_t s = 0; status >= 0 && s < feed->shards; s++) {
        feed->shard = s;
        if (s) status = run_first(trainer);
        if (status >= 0) status = run_shard(trainer);
        if (status >= 0 && feed->shards > 1) status = xph_shards_join(trainer, s);
    }
    feed->shard = 0;
    return status;
}

static exphil_status run_settle(const exphil_trainer *trainer)
{
    const exphil_optimizer *optimizer = trainer->optimizer;
    bool scaled = trainer->precision == EXPHIL_PRECISION_F16;
    const xph_settle_args settle = {
        .heads = (int32_t)xph_model_shape_of(trainer->model)->heads,
        .ranks = trainer->device_ranks.all_reduce ? trainer->communicator.ranks : 0,
        .control = trainer->control,
        .clip = optimizer->config.clip_norm > 0.0 ? optimizer->config.clip_norm : 0.0,
        .largest = optimizer->type == XPH_F32 ? LARGEST_F32 : LARGEST_F64,
        .loss_scale_least = LOSS_SCALE_LEAST,
        .loss_scale_most = LOSS_SCALE_MOST,
        .growth = scaled ? GROWTH : 0};
    const xph_norm2_args norm = {.type = optimizer->type,
                                 .count = optimizer->weights,
                                 .x = trainer->gradients,
                                 .norm = &trainer->control->norm,
                                 .first_bad = &trainer->control->first_bad,
                                 .settle = &settle,
                                 .scratch = trainer->norm_scratch};
    return trainer->device->backend->run(stream_of(trainer), trainer->norm2, &norm);
}

/* After numbers went wrong the carried state may hold them: all lanes start again from zero. With a batch in the same
 * program the state that it leaves is not yet swapped. */
static exphil_status run_last(exphil_trainer *trainer, bool swapped)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    XPH_TRY(run_settle(trainer));
    XPH_TRY(xph_optimizer_update(trainer->optimizer, stream_of(trainer), trainer->weights, trainer->gradients,
                                 trainer->feed.given, trainer->control));
    xph_clear_args clear = {.type = shape->type,
                            .count = trainer->feed.batch * shape->state,
                            .control = trainer->control,
                            .x = trainer->feed.state[swapped ? 0 : 1]};
    XPH_TRY(trainer->device->backend->run(stream_of(trainer), trainer->clear, &clear));
    return xph_trainer_refresh(trainer);
}

static exphil_status run_parts(exphil_trainer *trainer, uint32_t parts)
{
    if (parts & XPH_PART_FIRST) XPH_TRY(run_first(trainer));
    if (parts & XPH_PART_BATCH) XPH_TRY(run_batch(trainer));
    if (parts & XPH_PART_FORWARD) XPH_TRY(run_forward(trainer));
    if (parts & XPH_PART_BACKWARD) XPH_TRY(run_backward(trainer));
    if (parts & XPH_PART_SUM) XPH_TRY(xph_device_ranks_sum(trainer));
    bool swapped = !(parts & (XPH_PART_BATCH | XPH_PART_BACKWARD));
    return parts & XPH_PART_LAST ? run_last(trainer, swapped) : EXPHIL_OK;
}

typedef struct recording {
    exphil_trainer *trainer;
    uint32_t parts;
} recording;

static exphil_status run_recorded(void *arg)
{
    const recording *r = arg;
    return run_parts(r->trainer, r->parts);
}

/* Later updates are three programs, between which the host waits. */
static void refuse_sums(exphil_trainer *trainer)
{
    xph_device_ranks *ranks = &trainer->device_ranks;
    const int32_t code = ranks->code;
    ranks->code = 0;
    if (ranks->state(ranks->user) != EXPHIL_RANKS_OK) return; /* the program tells it */
    ranks->follows = false;
    xph_log(
        trainer->context, EXPHIL_LOG_WARNING,
        "trainer: all_reduce of the device_communicator refuses to be recorded (%d), the host waits for sums",
        code);
}

/* What fails in a recording alone ends nothing: the program runs as it is, and is recorded another time. */
static void record(exphil_trainer *trainer, uint32_t parts, xph_graph **graph)
{
    recording r = {trainer, parts};
    xph_device_ranks *ranks = &trainer->device_ranks;
    ranks->recording = true;
    exphil_status status = xph_net_record(trainer->feed.net, run_recorded, &r, graph);
    ranks->recording = false;
    if (status >= 0) return;
    if (ranks->code)
        refuse_sums(trainer);
    else if (++trainer->unrecorded == RECORDINGS_MOST)
        xph_log(trainer->context, EXPHIL_LOG_WARNING,
                "trainer: %s does not record updates, they run operation by operation",
                trainer->device->backend->name);
}

/* Addresses in a program depend on the feed's parity alone. The first time it runs as it is: libraries find their ways then,
 * and what they refuse is settled. */
static exphil_status run_program(exphil_trainer *trainer, uint32_t parts)
{
    const xph_backend *backend = trainer->device->backend;
    xph_graph **graph = &trainer->recorded[trainer->feed.parity][parts];
    bool known = trainer->ran >> parts & 1u;
    if (backend->record_begin && known && !*graph && trainer->unrecorded < RECORDINGS_MOST)
        record(trainer, parts, graph);
    if (*graph) return backend->replay(stream_of(trainer), *graph);
    XPH_TRY(run_parts(trainer, parts));
    trainer->ran |= (uint64_t)1 << parts;
    return EXPHIL_OK;
}

exphil_status xph_trainer_run(exphil_trainer *trainer, uint32_t parts)
{
    exphil_status status = run_program(trainer, parts);
    trainer->device_ranks.under_way = status >= 0 && parts & XPH_PART_SUM;
    return status;
}

void xph_trainer_forget(exphil_trainer *trainer)
{
    trainer->ran = 0;
    trainer->unrecorded = 0;
    for (int parity = 0; parity < 2; parity++)
        for (int parts = 0; parts < XPH_PARTS; parts++) {
            xph_graph *graph = trainer->recorded[parity][parts];
            if (graph) trainer->device->backend->graph_destroy(graph);
            trainer->recorded[parity][parts] = NULL;
        }
}

/* ---- control ------------------------------------------------------------------------------------------------------ */

exphil_status xph_control_put(exphil_trainer *trainer, xph_stream *stream, double loss_scale, int64_t good)
{
    const xph_backend *backend = trainer->device->backend;
    const xph_control control = {.done = trainer->optimizer->updates,
                                 .good = good,
                                 .loss_scale = loss_scale,
                                 .self = (double)trainer->optimizer->updates + 1.0,
                                 .first_bad = -1};
    exphil_status status = backend->upload(stream, trainer->control, &control, sizeof control);
    for (int i = 0; status >= 0 && i < 2; i++)
        status = backend->download(stream, trainer->pending[i].result, trainer->control, sizeof control);
    return status < 0 ? status : backend->stream_wait(stream);
}

exphil_status xph_control_begin(exphil_trainer *trainer, double loss_scale, int64_t good, exphil_error *error)
{
    xph_stream *stream;
    exphil_status status = trainer->device->backend->stream_create(trainer->device, 0, &stream);
    if (status >= 0) status = xph_stream_end(stream, xph_control_put(trainer, stream, loss_scale, good));
    return status < 0 ? xph_fail_device(error, trainer->device, status,
                                        "trainer: the device could not take its control block")
                      : EXPHIL_OK;
}

/* ---- results ------------------------------------------------------------------------------------------------------ */

exphil_status xph_pending_create(exphil_trainer *trainer, exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    /* With past actions of its own the host waits for every batch anyway, and numbers of an update are its own. */
    trainer->ahead = backend->host_memory || trainer->own_past.share > 0.0 ? 0 : 1;
    for (int i = 0; i < 2; i++) {
        void *result = NULL;
        exphil_status status = backend->host_alloc(trainer->device, sizeof(xph_control), &result);
        if (status < 0) return xph_no_device_memory(error, trainer->device, status, sizeof(xph_control));
        trainer->pending[i].result = result;
        status = backend->event_create(trainer->device, 0, &trainer->pending[i].settled);
        if (status < 0)
            return xph_fail_device(error, trainer->device, status, "trainer: the device made no event");
    }
    return EXPHIL_OK;
}

void xph_pending_destroy(exphil_trainer *trainer)
{
    const xph_backend *backend = trainer->device->backend;
    for (int i = 0; i < 2; i++) {
        xph_pending *pending = &trainer->pending[i];
        if (pending->live) backend->event_wait(pending->settled);
        if (pending->settled) backend->event_destroy(pending->settled);
        if (pending->result) backend->host_free(trainer->device, pending->result, sizeof(xph_control));
        *pending = (xph_pending){.live = 0};
    }
}

static exphil_status refused(const exphil_trainer *trainer, const xph_control *result, bool loss_bad,
                             exphil_error *error)
{
    int64_t bad = result->first_bad, tensor = bad < 0 ? -1 : xph_model_param_at(trainer->model, bad);
    long long number = (long long)trainer->optimizer->updates + 1;
    if (tensor >= 0) {
        const xph_param *param = xph_model_param(trainer->model, tensor);
        return xph_fail(error, EXPHIL_E_NUMERIC,
                        "update %lld refused: gradient of %s is not finite at element %lld%s", number,
                        param->name, (long long)(bad - param->offset), loss_bad ? ", nor is the loss" : "");
    }
    return xph_fail(error, EXPHIL_E_NUMERIC, "update %lld refused: %s", number,
                    loss_bad ? "the loss is not finite" : "the gradient is too large to square");
}

/* Nothing of the update is there. */
static exphil_status stopped(const exphil_trainer *trainer, const exphil_error *why, exphil_error *error)
{
    if (why->status < 0) return xph_fail(error, EXPHIL_E_IO, "%s", why->message);
    return xph_fail(error, EXPHIL_E_IO, "device_communicator: all_reduce gave rank %d no sum of all ranks",
                    trainer->communicator.rank);
}

static void note_metrics(exphil_trainer *trainer, const xph_pending *pending)
{
    const xph_control *result = pending->result;
    exphil_metrics *known = &trainer->metrics;
    *known = (exphil_metrics)EXPHIL_METRICS_INIT;
    known->update = trainer->optimizer->updates;
    known->epoch = pending->epoch;
    known->frames = trainer->frames;
    for (int64_t i = 0; i < xph_model_shape_of(trainer->model)->heads; i++) {
        known->head_loss[i] = result->head[i];
        known->loss += result->head[i] * trainer->losses.head[i].weight;
    }
    known->gradient_norm = result->norm;
    /* Which update it was is known now: the one before may have been refused when this one was sent. */
    known->rate = xph_schedule_rate(&trainer->optimizer->config,
                                    trainer->optimizer->updates - (result->verdict == XPH_UPDATE_DONE));
    known->loss_scale = result->loss_scale;
    known->skipped = trainer->skipped;
}

exphil_status xph_pending_settle(exphil_trainer *trainer, xph_pending *pending, exphil_error *error)
{
    const xph_control *result = pending->result;
    bool loss_bad = false;
    if (!pending->live) return EXPHIL_OK;
    pending->live = 0;
    exphil_error why = EXPHIL_ERROR_INIT;
    exphil_status status = trainer->device_ranks.under_way
                               ? xph_device_ranks_watch(trainer, pending->settled, &why)
                               : trainer->device->backend->event_wait(pending->settled);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status, "trainer: the device failed in an update");
    if (result->verdict == XPH_UPDATE_STOPPED) return stopped(trainer, &why, error);
    for (int64_t i = 0; i < xph_model_shape_of(trainer->model)->heads; i++)
        loss_bad |= !xph_finite(result->head[i]);
    if (result->verdict == XPH_UPDATE_DONE) {
        trainer->optimizer->updates = result->done;
        trainer->frames += pending->frames;
    } else {
        trainer->skipped++;
    }
    note_metrics(trainer, pending);
    if (result->verdict == XPH_UPDATE_DONE || result->verdict == XPH_UPDATE_OVERFLOW) return EXPHIL_OK;
    return refused(trainer, result, loss_bad, error);
}

exphil_status xph_trainer_settle(exphil_trainer *trainer, exphil_error *error)
{
    for (int i = 0; i < 2; i++) {
        exphil_error why = EXPHIL_ERROR_INIT;
        exphil_status status =
            xph_pending_settle(trainer, &trainer->pending[(trainer->pending_parity + i) % 2], &why);
        if (status == EXPHIL_E_NUMERIC)
            trainer->late = why;
        else if (status < 0)
            return xph_fail(error, status, "%s", why.message);
    }
    return EXPHIL_OK;
}
