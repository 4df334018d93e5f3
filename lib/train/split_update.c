/* An update in two halves, between which somebody else computes the loss, the host or an operation of the device: forward gives
 * logits and values, backward takes their gradients. */
#include "train/ranks.h"

/* ---- forward ------------------------------------------------------------------------------------------------------ */

exphil_status xph_split_possible(const exphil_trainer *trainer, exphil_error *error)
{
    const char *why = trainer->accumulate > 1                      ? "accumulate above 1"
                      : trainer->own_past.share > 0.0              ? "own_past"
                      : trainer->shards > 1                        ? "shards"
                      : trainer->precision == EXPHIL_PRECISION_F16 ? "EXPHIL_PRECISION_F16"
                                                                   : NULL;
    if (!why) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                    "trainer has %s, which a loss that is not its own does not go with", why);
}

static exphil_status run_forward(exphil_trainer *trainer, const exphil_batch *batch, const void *states)
{
    const xph_backend *backend = trainer->device->backend;
    xph_split *split = &trainer->split;
    xph_feed *feed = &trainer->feed;
    xph_stream *stream = xph_net_stream(feed->net);
    const xph_given given = xph_update_given(trainer, xph_mask_sum(batch, 1), 1);
    if (states && feed->state_bytes) {
        memcpy(split->states, states, feed->state_bytes);
        XPH_TRY(backend->upload(stream, feed->state[0], split->states, feed->state_bytes));
    }
    XPH_TRY(xph_feed_take(feed, batch, &given));
    XPH_TRY(xph_trainer_run(trainer, XPH_PART_FIRST | XPH_PART_FORWARD));
    if (split->here) return EXPHIL_OK;
    XPH_TRY(backend->download(stream, split->logits, xph_net_logits(feed->net), split->logits_bytes));
    if (split->values)
        XPH_TRY(backend->download(stream, split->values, xph_net_values(feed->net), split->values_bytes));
    return backend->stream_wait(stream);
}

static exphil_status forward(exphil_trainer *trainer, const exphil_batch *batch, const void *states,
                             bool here, exphil_error *error)
{
    xph_split *split = &trainer->split;
    XPH_TRY(xph_split_possible(trainer, error));
    XPH_TRY(xph_batch_check(trainer->model, batch, error));
    XPH_TRY(xph_trainer_settle(trainer, error));
    XPH_TRY(xph_trainer_shape(trainer, batch->batch, batch->time, error));
    XPH_TRY(xph_split_make(trainer, states != NULL, !here, error));
    split->here = here;
    split->began = xph_clock_ns();
    exphil_status status = run_forward(trainer, batch, states);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status, "trainer: the device failed in forward");
    split->frames = 0;
    for (int64_t row = 0; row < batch->batch * batch->time; row++) split->frames += batch->mask[row] > 0.0f;
    split->epoch = batch->epoch;
    split->open = true;
    return EXPHIL_OK;
}

/* Gives what forward has left: to the host, or where it is. */
static exphil_status give(const exphil_trainer *trainer, int64_t rows, exphil_forward *forward,
                          xph_halves *halves, exphil_error *error)
{
    const xph_feed *feed = &trainer->feed;
    if (halves) {
        *halves = (xph_halves){.stream = xph_net_stream(feed->net),
                               .logits = xph_net_logits(feed->net),
                               .values = feed->dvalues ? xph_net_values(feed->net) : NULL,
                               .actions = feed->actions,
                               .dlogits = feed->dlogits,
                               .dvalues = feed->dvalues};
        return EXPHIL_OK;
    }
    exphil_forward result = EXPHIL_FORWARD_INIT;
    result.rows = rows;
    result.logit_count = xph_model_shape_of(trainer->model)->logits;
    result.logits = trainer->split.logits;
    result.values = trainer->split.values;
    return XPH_GIVE(exphil_forward, forward, &result, error);
}

static exphil_status first_half(exphil_trainer *trainer, const exphil_batch *batch, const void *states,
                                exphil_forward *given, xph_halves *halves, exphil_error *error)
{
    exphil_batch known = EXPHIL_BATCH_INIT;
    XPH_TRY(XPH_TAKE(exphil_batch, &known, batch, error));
    XPH_TRY(xph_trainer_enter(trainer, error));
    bool shaped = xph_trainer_shaped(trainer);
    xph_parallel_hold(trainer->context);
    exphil_status status = forward(trainer, &known, states, halves != NULL, error);
    xph_parallel_release(trainer->context);
    if (status < 0 && !shaped) xph_trainer_drop_shape(trainer);
    if (status >= 0) status = give(trainer, known.batch * known.time, given, halves, error);
    xph_trainer_leave(trainer);
    xph_log_flush(trainer->context);
    return status;
}

exphil_status xph_trainer_forward(exphil_trainer *trainer, const exphil_batch *batch, const void *states,
                                  exphil_forward *given, exphil_error *error)
{
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_forward, given, error));
    return first_half(trainer, batch, states, given, NULL, error);
}

exphil_status xph_trainer_forward_here(exphil_trainer *trainer, const exphil_batch *batch, const void *states,
                                       xph_halves *halves, exphil_error *error)
{
    return first_half(trainer, batch, states, NULL, halves, error);
}

/* ---- backward ----------------------------------------------------------------------------------------------------- */

/* The host's, or here: in their place on the device, and what was found in them. */
typedef struct gradients {
    const void *dlogits, *dvalues;
    double loss;
    bool here;
    int64_t bad_logit, bad_value;
} gradients;

static exphil_status check_finite(const char *name, int64_t bad, exphil_error *error)
{
    if (bad < 0) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_NUMERIC, "%s[%lld] is not finite", name, (long long)bad);
}

static exphil_status check_gradient(const exphil_trainer *trainer, const char *name, const void *gradient,
                                    size_t bytes, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    int64_t count = (int64_t)(bytes / shape->real_bytes), bad = -1;
    if (!gradient) return EXPHIL_OK;
    if (shape->type != XPH_F64) bad = xph_find_not_finite(gradient, count);
    for (int64_t i = 0; shape->type == XPH_F64 && bad < 0 && i < count; i++)
        if (!xph_finite(((const double *)gradient)[i])) bad = i;
    return check_finite(name, bad, error);
}

static exphil_status take_gradients(exphil_trainer *trainer, const void *dlogits, const void *dvalues)
{
    const xph_backend *backend = trainer->device->backend;
    xph_split *split = &trainer->split;
    xph_feed *feed = &trainer->feed;
    xph_stream *stream = xph_net_stream(feed->net);
    memmove(split->logits, dlogits, split->logits_bytes);
    XPH_TRY(backend->upload(stream, feed->dlogits, split->logits, split->logits_bytes));
    if (!split->values) return EXPHIL_OK;
    if (dvalues)
        memmove(split->values, dvalues, split->values_bytes);
    else
        memset(split->values, 0, split->values_bytes);
    return backend->upload(stream, feed->dvalues, split->values, split->values_bytes);
}

/* Other updates of the trainer ask nothing of the values. */
static exphil_status forget_values(const exphil_trainer *trainer)
{
    const xph_feed *feed = &trainer->feed;
    if (!feed->dvalues) return EXPHIL_OK;
    return trainer->device->backend->zero(xph_net_stream(feed->net), feed->dvalues,
                                          trainer->split.values_bytes);
}

/* moved: the state went on. */
static exphil_status run_backward(exphil_trainer *trainer, const gradients *given, bool *moved,
                                  exphil_error *error)
{
    exphil_status status = given->here ? EXPHIL_OK : take_gradients(trainer, given->dlogits, given->dvalues);
    if (status >= 0) status = xph_trainer_run(trainer, XPH_PART_BACKWARD | xph_comm_parts(trainer));
    if (status >= 0) status = forget_values(trainer);
    if (status >= 0) status = xph_feed_swap(&trainer->feed);
    *moved = status >= 0;
    if (status < 0)
        status = xph_device_ranks_failed(trainer, status, "trainer: the device failed in backward", error);
    return xph_comm_join(trainer, status, error);
}

static exphil_status check_backward(const exphil_trainer *trainer, const gradients *given,
                                    exphil_error *error)
{
    const xph_split *split = &trainer->split;
    if (given->here) {
        XPH_TRY(check_finite("dlogits", given->bad_logit, error));
        XPH_TRY(check_finite("dvalues", given->bad_value, error));
    } else {
        if (!given->dlogits) return xph_fail(error, EXPHIL_E_INVALID, "dlogits is NULL");
        if (given->dvalues && !split->values)
            return xph_fail(error, EXPHIL_E_INVALID, "dvalues: the model has no value head");
        XPH_TRY(check_gradient(trainer, "dlogits", given->dlogits, split->logits_bytes, error));
        XPH_TRY(check_gradient(trainer, "dvalues", given->dvalues, split->values_bytes, error));
    }
    return xph_finite(given->loss) ? EXPHIL_OK : xph_fail(error, EXPHIL_E_NUMERIC, "loss is not finite");
}

static exphil_status backward(exphil_trainer *trainer, const gradients *given, exphil_error *error)
{
    const xph_split *split = &trainer->split;
    bool moved = false;
    exphil_status status = check_backward(trainer, given, error);
    if (status < 0 && given->here && forget_values(trainer) < 0)
        status = xph_fail(error, EXPHIL_E_DEVICE, "trainer: the device failed in backward");
    if (status < 0) return xph_ranks_tell(trainer, XPH_CALL_SUM, status, error);
    if (trainer->device_ranks.all_reduce) XPH_TRY(xph_comm_meet(trainer, error));
    status = run_backward(trainer, given, &moved, error);
    if (status >= 0) status = xph_update_send(trainer, split->frames, split->epoch, error);
    if (status >= 0) status = xph_pending_settle(trainer, &trainer->pending[!trainer->pending_parity], error);
    if (moved && status < 0 && status != EXPHIL_E_NUMERIC) xph_feed_swap_back(&trainer->feed);
    return status;
}

/* The busy flag is held until leave. */
static exphil_status enter_split(const exphil_trainer *trainer, exphil_error *error)
{
    XPH_TRY(xph_trainer_enter_open(trainer, error));
    if (trainer->split.open) return EXPHIL_OK;
    xph_trainer_leave(trainer);
    return xph_fail(error, EXPHIL_E_STATE, "trainer: backward and abandon follow a forward");
}

static exphil_status second_half(exphil_trainer *trainer, const gradients *given, exphil_metrics *metrics,
                                 exphil_error *error)
{
    XPH_TRY(enter_split(trainer, error));
    exphil_status status = XPH_CHECK_OUTPUT(exphil_metrics, metrics, error);
    if (status >= 0) {
        xph_parallel_hold(trainer->context);
        status = backward(trainer, given, error);
        xph_parallel_release(trainer->context);
    }
    trainer->split.open = false;
    if (status >= 0) {
        trainer->metrics.loss = given->loss;
        trainer->metrics.time_ns = xph_clock_ns() - trainer->split.began;
        if (metrics) status = XPH_GIVE(exphil_metrics, metrics, &trainer->metrics, error);
    }
    xph_trainer_leave(trainer);
    xph_log_flush(trainer->context);
    return status;
}

exphil_status exphil_trainer_backward(exphil_trainer *trainer, const void *dlogits, const void *dvalues,
                                      double loss, exphil_metrics *metrics, exphil_error *error)
{
    XPH_OWN_FPU;
    const gradients given = {.dlogits = dlogits, .dvalues = dvalues, .loss = loss};
    return second_half(trainer, &given, metrics, error);
}

exphil_status xph_trainer_backward_here(exphil_trainer *trainer, int64_t bad_logit, int64_t bad_value,
                                        double loss, exphil_metrics *metrics, exphil_error *error)
{
    const gradients given = {.loss = loss, .here = true, .bad_logit = bad_logit, .bad_value = bad_value};
    return second_half(trainer, &given, metrics, error);
}

exphil_status exphil_trainer_abandon(exphil_trainer *trainer, exphil_error *error)
{
    XPH_TRY(enter_split(trainer, error));
    trainer->split.open = false;
    exphil_status status = EXPHIL_OK;
    if (trainer->split.here && forget_values(trainer) < 0)
        status = xph_fail(error, EXPHIL_E_DEVICE, "trainer: the device failed at its gradients");
    xph_trainer_leave(trainer);
    return status;
}
