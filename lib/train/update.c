/* One update: batches through the net, gradients summed, checked and given to the optimizer. */
#include "train/ranks.h"

/* What one update gathers over its batches, and what leads back to where it began. */
typedef struct gathered {
    int64_t frames, epoch, waited_ns;
    int64_t taken, first_epoch, first_index; /* batches from the prefetcher, and which was the first */
    int64_t place_epoch, place_index;        /* of the trainer before the first */
    int64_t parts, moved;                    /* batches of the update; those after which the state moved on */
} gathered;

xph_given xph_update_given(const exphil_trainer *trainer, double weight, int64_t parts)
{
    const exphil_optimizer *optimizer = trainer->optimizer;
    int64_t number = optimizer->updates + 1;
    for (int i = 0; i < 2; i++) number += trainer->pending[i].live;
    return (xph_given){.update = number,
                       .scale = weight > 0.0 ? 1.0 / (weight * (double)parts) : 0.0,
                       .rates = {xph_optimizer_rates(optimizer, number),
                                 xph_optimizer_rates(optimizer, number > 1 ? number - 1 : 1)}};
}

/* What a batch weighs with those of the other ranks, where they meet. status is what this rank came to before. */
typedef struct joint {
    double weight;
    int64_t frames;
} joint;

static exphil_status join(exphil_trainer *trainer, const exphil_batch *batch, joint *all,
                          exphil_status status, exphil_error *error)
{
    *all = (joint){0.0, 0};
    if (status >= 0) {
        all->weight = xph_mask_sum(batch, trainer->feed.shards);
        for (int64_t row = 0; row < batch->batch * batch->time; row++) all->frames += batch->mask[row] > 0.0f;
    }
    const struct xph_said own = {
        .lanes = (double)batch->batch, .weight = all->weight, .frames = (double)all->frames};
    XPH_TRY(xph_ranks_say(trainer, XPH_CALL_BATCH, own, status, error));
    if (xph_ranks_meet(trainer)) *all = (joint){xph_ranks_weight(trainer), xph_ranks_frames(trainer)};
    return EXPHIL_OK;
}

/* Forward and backward of the next batch, and after the last one the update, if no other rank is waited for. */
static exphil_status run_batch(exphil_trainer *trainer, const exphil_batch *batch, const joint *all,
                               gathered *sum, exphil_error *error)
{
    const int64_t part = sum->moved, parts = sum->parts;
    uint32_t program = XPH_PART_BATCH | (part ? 0 : XPH_PART_FIRST);
    if (part + 1 == parts) program |= xph_comm_parts(trainer);
    const xph_given given = xph_update_given(trainer, all->weight, parts);
    exphil_status status = xph_feed_take(&trainer->feed, batch, &given);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status, "trainer: the device failed to take a batch");
    status = xph_own_past_take(trainer, batch, given.update, part);
    if (status >= 0) status = xph_trainer_run(trainer, program);
    if (status >= 0) status = xph_feed_swap(&trainer->feed);
    if (status < 0)
        return xph_device_ranks_failed(trainer, status, "trainer: the device failed in a batch", error);
    sum->moved++;
    sum->frames += all->frames;
    sum->epoch = batch->epoch;
    return EXPHIL_OK;
}

exphil_status xph_update_send(exphil_trainer *trainer, int64_t frames, int64_t epoch, exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    xph_stream *stream = xph_net_stream(trainer->feed.net);
    xph_pending *pending = &trainer->pending[trainer->pending_parity];
    pending->frames = frames;
    pending->epoch = epoch;
    exphil_status status =
        backend->download(stream, pending->result, trainer->control, sizeof *pending->result);
    if (status >= 0) status = backend->event_mark(pending->settled, stream);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status, "trainer: the device failed in the update");
    pending->live = 1;
    trainer->pending_parity = !trainer->pending_parity;
    return EXPHIL_OK;
}

static exphil_status give_metrics(const exphil_trainer *trainer, const gathered *sum, int64_t began,
                                  exphil_metrics *metrics, exphil_error *error)
{
    if (!metrics) return EXPHIL_OK;
    exphil_metrics known = trainer->metrics;
    known.time_ns = xph_clock_ns() - began;
    known.waited_ns = sum->waited_ns;
    return XPH_GIVE(exphil_metrics, metrics, &known, error);
}

/* Taking the next batch frees the place of the last one. */
static exphil_status uploaded(const exphil_trainer *trainer, exphil_error *error)
{
    exphil_status status = xph_feed_uploaded(&trainer->feed);
    return status < 0
               ? xph_fail_device(error, trainer->device, status, "trainer: the device failed to take a batch")
               : EXPHIL_OK;
}

/* The next batch; the end of an epoch leads on to the next one. */
static exphil_status next_batch(exphil_trainer *trainer, exphil_batch *batch, gathered *sum,
                                exphil_error *error)
{
    XPH_TRY(uploaded(trainer, error));
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

/* The first of several batches leaves the state in place, the second writes over it. */
static exphil_status keep_state(const exphil_trainer *trainer, exphil_error *error)
{
    if (!trainer->kept) return EXPHIL_OK;
    exphil_status status = trainer->device->backend->copy(xph_net_stream(trainer->feed.net), trainer->kept,
                                                          trainer->feed.state[0], trainer->feed.state_bytes);
    return status < 0 ? xph_fail_device(error, trainer->device, status,
                                        "trainer: the device could not keep its state")
                      : EXPHIL_OK;
}

static void restore_state(exphil_trainer *trainer, const gathered *sum)
{
    if (!sum->moved) return;
    if (sum->parts == 1)
        xph_feed_swap_back(&trainer->feed);
    else if (trainer->kept)
        (void)trainer->device->backend->copy(xph_net_stream(trainer->feed.net), trainer->feed.state[0],
                                             trainer->kept, trainer->feed.state_bytes);
}

/* What a batch came to on this rank the others hear where they meet next: before the next batch, or the sum of gradients. */
static exphil_status gather(exphil_trainer *trainer, const exphil_batch *given, gathered *sum,
                            exphil_status status, exphil_error *error)
{
    joint all;
    if (status >= 0 && sum->parts > 1) status = keep_state(trainer, error);
    do {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        if (given)
            batch = *given;
        else if (status >= 0)
            status = next_batch(trainer, &batch, sum, error);
        XPH_TRY(join(trainer, &batch, &all, status, error));
        status = run_batch(trainer, &batch, &all, sum, error);
    } while (sum->moved < sum->parts && (status >= 0 || sum->moved + 1 < sum->parts));
    if (status >= 0 && given) status = uploaded(trainer, error);
    return xph_comm_join(trainer, status, error);
}

/* An update that ended early (cancelled between two batches, damaged rows, or the communicator failed) takes its batches
 * again, from the state it began with. A batch of the host's own may be freed by it now. */
static void give_back(exphil_trainer *trainer, const gathered *sum)
{
    if (uploaded(trainer, NULL) < 0) return;
    restore_state(trainer, sum);
    if (sum->taken == 0) return;
    if (exphil_prefetcher_seek(trainer->prefetcher, sum->first_epoch, sum->first_index, NULL) < 0) return;
    trainer->epoch = sum->place_epoch;
    trainer->index = sum->place_index;
}

/* What an update came to that another call has settled. */
static exphil_status say_late(exphil_trainer *trainer, exphil_error *error)
{
    if (trainer->late.status >= 0) return EXPHIL_OK;
    exphil_error late = trainer->late;
    trainer->late = (exphil_error)EXPHIL_ERROR_INIT;
    return xph_fail(error, late.status, "%s", late.message);
}

/* Before anything is done: it costs no update. */
static exphil_status may_begin(exphil_trainer *trainer, const exphil_metrics *metrics, exphil_error *error)
{
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_metrics, metrics, error));
    if (xph_cancelled(trainer->context))
        return xph_fail(error, EXPHIL_E_CANCELLED, "update cancelled by the host");
    if (trainer->prefetcher &&
        !trainer->feed.net) { /* after a change of ranks for whose shape there was no memory */
        const exphil_sampling *sampling = xph_prefetcher_sampling(trainer->prefetcher);
        XPH_TRY(xph_trainer_shape(trainer, sampling->lane_count, sampling->time, error));
    }
    /* ranks that meet make this update together: one that knows already what the last came to says it when the others do */
    return xph_ranks_meet(trainer) ? EXPHIL_OK : say_late(trainer, error);
}

static exphil_status update(exphil_trainer *trainer, const exphil_batch *given, exphil_metrics *metrics,
                            exphil_error *error)
{
    int64_t began = xph_clock_ns();
    gathered sum = {.place_epoch = trainer->epoch,
                    .place_index = trainer->index,
                    .parts = given ? 1 : trainer->accumulate};
    exphil_status status = gather(trainer, given, &sum, may_begin(trainer, metrics, error), error);
    if (status < 0) {
        give_back(trainer, &sum);
        return status;
    }
    XPH_TRY(xph_update_send(trainer, sum.frames, sum.epoch, error));
    /* The first update is waited for, so that there are numbers to give. One with a sum over ranks on the device is given back
     * by the call that began it if it is stopped. */
    bool waits = !trainer->ahead || trainer->device_ranks.all_reduce || trainer->metrics.update == 0;
    status = xph_pending_settle(trainer, &trainer->pending[trainer->pending_parity], error);
    if (status >= 0 && waits)
        status = xph_pending_settle(trainer, &trainer->pending[!trainer->pending_parity], error);
    if (status >= 0 && xph_ranks_meet(trainer)) status = say_late(trainer, error);
    if (status == EXPHIL_E_IO) give_back(trainer, &sum); /* it was stopped on the device */
    return status < 0 ? status : give_metrics(trainer, &sum, began, metrics, error);
}

exphil_status xph_trainer_take(exphil_trainer *trainer, exphil_batch *batch, xph_taken *taken,
                               exphil_error *error)
{
    gathered sum = {.place_epoch = trainer->epoch, .place_index = trainer->index};
    XPH_TRY(xph_trainer_enter(trainer, error));
    exphil_status status = xph_trainer_settle(trainer, error);
    if (status >= 0) status = next_batch(trainer, batch, &sum, error);
    *taken = (xph_taken){sum.first_epoch, sum.first_index, sum.place_epoch, sum.place_index};
    if (status < 0) {
        trainer->epoch = sum.place_epoch;
        trainer->index = sum.place_index;
    }
    xph_trainer_leave(trainer);
    return status;
}

void xph_trainer_put_back(exphil_trainer *trainer, const xph_taken *taken)
{
    if (exphil_prefetcher_seek(trainer->prefetcher, taken->epoch, taken->index, NULL) < 0) return;
    trainer->epoch = taken->place_epoch;
    trainer->index = taken->place_index;
}

/* The first batch sets the shape. If its update fails, it is unset again, but not for EXPHIL_E_NUMERIC. */
static exphil_status update_by_hand(exphil_trainer *trainer, const exphil_batch *batch,
                                    exphil_metrics *metrics, exphil_error *error)
{
    bool shaped = xph_trainer_shaped(trainer);
    exphil_status status = xph_batch_check(trainer->model, batch, error);
    if (status >= 0) status = xph_trainer_shape(trainer, batch->batch, batch->time, error);
    if (status < 0) return xph_ranks_tell(trainer, XPH_CALL_BATCH, status, error);
    status = update(trainer, batch, metrics, error);
    if (status < 0 && status != EXPHIL_E_NUMERIC && !shaped) xph_trainer_drop_shape(trainer);
    return status;
}

static exphil_status guarded_update(exphil_trainer *trainer, const exphil_batch *batch,
                                    exphil_metrics *metrics, exphil_error *error)
{
    XPH_OWN_FPU;
    xph_parallel_hold(trainer->context);
    exphil_status status =
        batch ? update_by_hand(trainer, batch, metrics, error) : update(trainer, NULL, metrics, error);
    xph_parallel_release(trainer->context);
    return status;
}

/* What is logged reaches the host in its own floating-point mode. */
static exphil_status step(exphil_trainer *trainer, const exphil_batch *batch, exphil_metrics *metrics,
                          exphil_error *error)
{
    exphil_status status = guarded_update(trainer, batch, metrics, error);
    xph_trainer_leave(trainer);
    xph_log_flush(trainer->context);
    return status;
}

exphil_status exphil_trainer_step(exphil_trainer *trainer, exphil_metrics *metrics, exphil_error *error)
{
    XPH_TRY(xph_trainer_enter(trainer, error));
    if (!trainer->prefetcher) {
        exphil_status status = xph_fail(
            error, EXPHIL_E_STATE, "trainer has no prefetcher: give batches to exphil_trainer_step_batch");
        status = xph_ranks_tell(trainer, XPH_CALL_BATCH, status, error);
        xph_trainer_leave(trainer);
        return status;
    }
    return step(trainer, NULL, metrics, error);
}

exphil_status exphil_trainer_step_batch(exphil_trainer *trainer, const exphil_batch *batch,
                                        exphil_metrics *metrics, exphil_error *error)
{
    exphil_batch known = EXPHIL_BATCH_INIT;
    XPH_TRY(xph_trainer_enter(trainer, error));
    exphil_status status = batch ? XPH_TAKE(exphil_batch, &known, batch, error)
                                 : xph_fail(error, EXPHIL_E_INVALID, "batch is NULL");
    if (status >= 0) return step(trainer, &known, metrics, error);
    status = xph_ranks_tell(trainer, XPH_CALL_BATCH, status, error);
    xph_trainer_leave(trainer);
    return status;
}

exphil_status exphil_trainer_wait(exphil_trainer *trainer, exphil_metrics *metrics, exphil_error *error)
{
    XPH_TRY(xph_trainer_enter(trainer, error));
    const int64_t began = xph_clock_ns();
    const gathered none = {.parts = 0};
    exphil_status status = XPH_CHECK_OUTPUT(exphil_metrics, metrics, error);
    if (status >= 0) status = xph_trainer_settle(trainer, error);
    if (status >= 0) status = say_late(trainer, error);
    if (status >= 0) status = give_metrics(trainer, &none, began, metrics, error);
    xph_trainer_leave(trainer);
    return status;
}
