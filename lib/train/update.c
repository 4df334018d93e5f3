/* One update: batches through the net, gradients summed, checked and given to the optimizer. */
#include "train/train.h"

/* What one update gathers over its batches. */
typedef struct gathered {
    double loss, head[EXPHIL_HEADS_MAX];
    int64_t frames, epoch, waited_ns;
    int64_t taken, first_epoch, first_index; /* batches from the prefetcher, and which was the first */
} gathered;

static exphil_status check_batch(const exphil_trainer *trainer, const exphil_batch *batch,
                                 exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    if (batch->batch < 1 || batch->time < 1 || batch->batch > 4096 || batch->time > 65536)
        return xph_fail(error, EXPHIL_E_INVALID, "batch: %lld x %lld is out of range",
                        (long long)batch->batch, (long long)batch->time);
    if (shape->mode == EXPHIL_MODE_WINDOW && batch->time != shape->window)
        return xph_fail(error, EXPHIL_E_MISMATCH, "batch: time is %lld, the model's window is %lld",
                        (long long)batch->time, (long long)shape->window);
    const char *missing = shape->floats && !batch->floats ? "floats"
                          : shape->ids && !batch->ids     ? "ids"
                          : shape->slots && !batch->past  ? "past"
                          : !batch->actions               ? "actions"
                          : !batch->mask                  ? "mask"
                          : !batch->reset                 ? "reset"
                                                          : NULL;
    if (missing) return xph_fail(error, EXPHIL_E_INVALID, "batch: %s is NULL", missing);
    return EXPHIL_OK;
}

/* Ranges of a host's own batch; batches of a prefetcher were checked when their rows were added. */
static exphil_status check_values(const exphil_trainer *trainer, const exphil_batch *batch,
                                  exphil_error *error)
{
    const exphil_spec *spec = xph_model_spec(trainer->model);
    int64_t rows = batch->batch * batch->time, slots = xph_model_shape_of(trainer->model)->slots;
    int64_t bad = xph_find_not_finite(batch->floats, rows * spec->float_count);
    if (bad >= 0)
        return xph_fail(error, EXPHIL_E_NUMERIC, "batch: floats[%lld][%lld] is not finite",
                        (long long)(bad / spec->float_count), (long long)(bad % spec->float_count));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < spec->id_count; i++) {
            int32_t id = batch->ids[r * spec->id_count + i];
            if (id < 0 || id >= spec->ids[i].entries)
                return xph_fail(error, EXPHIL_E_INVALID, "batch: ids[%lld] %s is %d, outside 0..%d",
                                (long long)r, spec->ids[i].name, id, spec->ids[i].entries - 1);
        }
        XPH_TRY(xph_action_check(spec, &batch->actions[r * spec->head_count], r, error));
        for (int64_t s = 0; s < slots; s++)
            XPH_TRY(xph_action_check(spec, &batch->past[(r * slots + s) * spec->head_count], r, error));
        if (!(batch->mask[r] >= 0.0f && batch->mask[r] <= 1e6f))
            return xph_fail(error, EXPHIL_E_INVALID, "batch: mask[%lld] is negative or not finite",
                            (long long)r);
    }
    return EXPHIL_OK;
}

/* Forward and backward of one batch; its share of the objective is added to sum. */
static exphil_status run_batch(exphil_trainer *trainer, const exphil_batch *batch, int64_t parts,
                               gathered *sum, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    double weight = xph_mask_sum(batch), head[EXPHIL_HEADS_MAX] = {0};
    double scale = weight > 0.0 ? 1.0 / (weight * (double)parts) : 0.0;
    exphil_status status = xph_feed_forward(&trainer->feed, xph_trainer_seen(trainer), trainer->packed,
                                            &trainer->losses, batch, scale, true, head);
    if (status < 0) return xph_fail(error, status, "trainer: the device failed in the forward pass");
    for (int64_t i = 0; i < shape->heads; i++) {
        sum->head[i] += head[i] * scale;
        sum->loss += head[i] * scale * trainer->losses.head[i].weight;
    }
    xph_net_io io;
    xph_feed_io(&trainer->feed, &io);
    status = xph_net_backward(trainer->feed.net, xph_trainer_seen(trainer), trainer->packed, &io,
                              trainer->feed.dlogits, trainer->gradients);
    if (status < 0) return xph_fail(error, status, "trainer: the device failed in the backward pass");
    xph_feed_swap(&trainer->feed);
    for (int64_t row = 0; row < batch->batch * batch->time; row++) sum->frames += batch->mask[row] > 0.0f;
    sum->epoch = batch->epoch;
    return EXPHIL_OK;
}

static exphil_status measure(exphil_trainer *trainer, const void *x, int64_t count, double *norm,
                             int64_t *bad)
{
    const xph_backend *backend = trainer->device->backend;
    xph_stream *stream = xph_net_stream(trainer->feed.net);
    xph_norm2_args args = {.type = xph_model_shape_of(trainer->model)->type,
                           .count = count,
                           .x = x,
                           .norm = trainer->norm_out,
                           .first_bad = trainer->bad_out,
                           .scratch = trainer->norm_scratch};
    XPH_TRY(backend->run(stream, XPH_OP_NORM2, &args));
    XPH_TRY(backend->download(stream, norm, trainer->norm_out, sizeof *norm));
    XPH_TRY(backend->download(stream, bad, trainer->bad_out, sizeof *bad));
    return backend->stream_wait(stream);
}

/* After numbers went wrong the carried state may hold them: all lanes start again from zero. */
static exphil_status refuse(exphil_trainer *trainer)
{
    trainer->skipped++;
    return trainer->device->backend->zero(xph_net_stream(trainer->feed.net), trainer->feed.state[0],
                                          trainer->feed.bytes[6]);
}

static exphil_status check_gradients(exphil_trainer *trainer, const gathered *sum, double *norm,
                                     exphil_error *error)
{
    /* 1e18: beyond it the square of a gradient leaves the range of a float in the second moment. */
    const double largest = trainer->optimizer->type == XPH_F32 ? 1e18 : 1e150;
    int64_t bad = -1;
    exphil_status status = measure(trainer, trainer->gradients, trainer->optimizer->weights, norm, &bad);
    if (status < 0) return xph_fail(error, status, "trainer: the device failed to measure the gradient");
    double clip = trainer->optimizer->config.clip_norm;
    bool loss_bad = !xph_finite(sum->loss), large = *norm > largest && clip <= 0.0;
    if (bad < 0 && !loss_bad && !large) return EXPHIL_OK;
    XPH_TRY(refuse(trainer));
    int64_t tensor = bad < 0 ? -1 : xph_model_param_at(trainer->model, bad);
    if (tensor >= 0) {
        const xph_param *param = xph_model_param(trainer->model, tensor);
        return xph_fail(error, EXPHIL_E_NUMERIC,
                        "update %lld refused: gradient of %s is not finite at element %lld%s",
                        (long long)trainer->optimizer->updates + 1, param->name,
                        (long long)(bad - param->offset), loss_bad ? ", nor is the loss" : "");
    }
    return xph_fail(error, EXPHIL_E_NUMERIC, "update %lld refused: %s",
                    (long long)trainer->optimizer->updates + 1,
                    loss_bad ? "the loss is not finite" : "the gradient is too large to square");
}

static exphil_status finish(exphil_trainer *trainer, const gathered *sum, double *norm, exphil_error *error)
{
    XPH_TRY(check_gradients(trainer, sum, norm, error));
    exphil_status status = xph_optimizer_update(trainer->optimizer, xph_net_stream(trainer->feed.net),
                                                trainer->weights, trainer->gradients, *norm);
    if (status >= 0) status = xph_trainer_refresh(trainer);
    if (status < 0) return xph_fail(error, status, "trainer: the device failed in the update");
    trainer->frames += sum->frames;
    return EXPHIL_OK;
}

static exphil_status give_metrics(const exphil_trainer *trainer, const gathered *sum, double norm,
                                  int64_t began, double rate, exphil_metrics *metrics, exphil_error *error)
{
    if (!metrics) return EXPHIL_OK;
    exphil_metrics known = EXPHIL_METRICS_INIT;
    known.update = trainer->optimizer->updates;
    known.epoch = sum->epoch;
    known.frames = trainer->frames;
    known.loss = sum->loss;
    memcpy(known.head_loss, sum->head, sizeof known.head_loss);
    known.gradient_norm = norm;
    known.rate = rate;
    known.loss_scale = 1.0;
    known.time_ns = xph_clock_ns() - began;
    known.waited_ns = sum->waited_ns;
    known.skipped = trainer->skipped;
    return xph_config_give(metrics, &known, sizeof known, sizeof known, "exphil_metrics", error);
}

/* The next batch; the end of an epoch leads on to the next one. */
static exphil_status next_batch(exphil_trainer *trainer, exphil_batch *batch, gathered *sum,
                                exphil_error *error)
{
    int64_t began = xph_clock_ns();
    exphil_status status = exphil_prefetcher_next(trainer->prefetcher, batch, error);
    if (status == EXPHIL_END) status = exphil_prefetcher_next(trainer->prefetcher, batch, error);
    sum->waited_ns += xph_clock_ns() - began;
    if (status == EXPHIL_END) return xph_fail(error, EXPHIL_E_INTERNAL, "an epoch without batches");
    XPH_TRY(status);
    if (sum->taken++ == 0) {
        sum->first_epoch = batch->epoch;
        sum->first_index = batch->index;
    }
    trainer->epoch = batch->epoch;
    trainer->index = batch->index + 1;
    return EXPHIL_OK;
}

static exphil_status gather(exphil_trainer *trainer, const exphil_batch *given, gathered *sum,
                            exphil_error *error)
{
    int64_t parts = given ? 1 : trainer->accumulate;
    const xph_backend *backend = trainer->device->backend;
    xph_stream *stream = xph_net_stream(trainer->feed.net);
    exphil_status status = backend->zero(stream, trainer->gradients, trainer->arena_bytes);
    if (status >= 0 && trainer->kept)
        status = backend->copy(stream, trainer->kept, trainer->feed.state[0], trainer->feed.bytes[6]);
    if (status < 0) return xph_fail(error, status, "trainer: the device could not clear the gradient");
    for (int64_t part = 0; part < parts; part++) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        if (given)
            batch = *given;
        else
            XPH_TRY(next_batch(trainer, &batch, sum, error));
        XPH_TRY(run_batch(trainer, &batch, parts, sum, error));
    }
    return EXPHIL_OK;
}

/* An update that ended early (cancelled between two batches, or the communicator failed) takes its batches again. */
static void give_back(exphil_trainer *trainer, const gathered *sum)
{
    if (sum->taken == 0) return;
    if (exphil_prefetcher_seek(trainer->prefetcher, sum->first_epoch, sum->first_index, NULL) < 0) return;
    trainer->epoch = sum->first_epoch;
    trainer->index = sum->first_index;
    if (trainer->kept)
        (void)trainer->device->backend->copy(xph_net_stream(trainer->feed.net), trainer->feed.state[0],
                                             trainer->kept, trainer->feed.bytes[6]);
}

/* Refused before anything is done, so that a bad output costs no update. */
static exphil_status check_metrics(const exphil_metrics *metrics, exphil_error *error)
{
    exphil_metrics trial = EXPHIL_METRICS_INIT, known = EXPHIL_METRICS_INIT;
    if (!metrics) return EXPHIL_OK;
    trial.struct_size = metrics->struct_size;
    return xph_config_give(&trial, &known, sizeof known, sizeof known, "exphil_metrics", error);
}

static exphil_status update(exphil_trainer *trainer, const exphil_batch *given, exphil_metrics *metrics,
                            exphil_error *error)
{
    int64_t began = xph_clock_ns();
    gathered sum = {0};
    double norm = 0.0, rate = xph_schedule_rate(&trainer->optimizer->config, trainer->optimizer->updates);
    XPH_TRY(check_metrics(metrics, error));
    if (xph_cancelled(trainer->context))
        return xph_fail(error, EXPHIL_E_CANCELLED, "update cancelled by the host");
    exphil_status status = gather(trainer, given, &sum, error);
    if (status >= 0) status = xph_comm_average(trainer, !xph_finite(sum.loss), error);
    if (status < 0) {
        give_back(trainer, &sum);
        return status;
    }
    XPH_TRY(finish(trainer, &sum, &norm, error));
    return give_metrics(trainer, &sum, norm, began, rate, metrics, error);
}

static exphil_status enter(exphil_trainer *trainer, exphil_error *error)
{
    if (!trainer) return xph_fail(error, EXPHIL_E_INVALID, "trainer is NULL");
    XPH_TRY(xph_context_check(trainer->context, error));
    if (!xph_busy_enter(&trainer->busy)) return xph_busy_error("trainer", error);
    return EXPHIL_OK;
}

static exphil_status guarded_update(exphil_trainer *trainer, const exphil_batch *batch,
                                    exphil_metrics *metrics, exphil_error *error)
{
    xph_fpu saved = xph_fpu_push();
    xph_parallel_hold(trainer->context);
    exphil_status status = update(trainer, batch, metrics, error);
    xph_parallel_release(trainer->context);
    xph_fpu_pop(saved);
    xph_busy_leave(&trainer->busy);
    xph_log_flush(trainer->context);
    return status;
}

exphil_status exphil_trainer_step(exphil_trainer *trainer, exphil_metrics *metrics, exphil_error *error)
{
    XPH_TRY(enter(trainer, error));
    if (!trainer->prefetcher) {
        xph_busy_leave(&trainer->busy);
        return xph_fail(error, EXPHIL_E_STATE,
                        "trainer has no prefetcher: give batches to exphil_trainer_step_batch");
    }
    return guarded_update(trainer, NULL, metrics, error);
}

exphil_status exphil_trainer_step_batch(exphil_trainer *trainer, const exphil_batch *batch,
                                        exphil_metrics *metrics, exphil_error *error)
{
    exphil_batch known = EXPHIL_BATCH_INIT;
    if (!batch) return xph_fail(error, EXPHIL_E_INVALID, "batch is NULL");
    XPH_TRY(xph_config_take(&known, sizeof known, batch, sizeof known, "exphil_batch", error));
    XPH_TRY(enter(trainer, error));
    xph_fpu saved = xph_fpu_push();
    exphil_status status = check_batch(trainer, &known, error);
    if (status >= 0) status = check_values(trainer, &known, error);
    if (status >= 0) status = xph_trainer_shape(trainer, known.batch, known.time, error);
    xph_fpu_pop(saved);
    if (status < 0) {
        xph_busy_leave(&trainer->busy);
        return status;
    }
    return guarded_update(trainer, &known, metrics, error);
}
