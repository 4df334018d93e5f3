/* Training on several ranks: one all-reduce over the whole gradient arena per update, through the host's
 * communicator. The communicator takes the sum, in the order of the ranks, so that all ranks get the same
 * bits. With EXPHIL_REDUCTION_MEANS each rank has divided by the weight of its own batch, and here the mean is
 * taken; with EXPHIL_REDUCTION_SUMS the joint weight was known before (ranks.c), and what is summed stays as it is. */
#include "train/ranks.h"

/* ---- means -------------------------------------------------------------------------------------------------------- */

static void scale(void *data, int64_t count, xph_type type, double factor)
{
    for (int64_t i = 0; i < count; i++) {
        if (type == XPH_F64)
            ((double *)data)[i] *= factor;
        else
            ((float *)data)[i] *= (float)factor;
    }
}

/* Makes the sum of all ranks not finite, so that every rank refuses the update that one must refuse. */
static void spoil(void *data, xph_type type)
{
    if (type == XPH_F64)
        ((double *)data)[0] = (double)__builtin_inf();
    else
        ((float *)data)[0] = __builtin_inff();
}

/* Head losses of the update, which has not been settled, as the device has them. */
static exphil_status losses_bad(const exphil_trainer *trainer, bool *bad)
{
    double head[EXPHIL_HEADS_MAX];
    const xph_backend *backend = trainer->device->backend;
    xph_stream *stream = xph_net_stream(trainer->feed.net);
    XPH_TRY(backend->download(stream, head, trainer->control->head, sizeof head));
    XPH_TRY(backend->stream_wait(stream));
    *bad = false;
    for (int64_t i = 0; i < xph_model_shape_of(trainer->model)->heads; i++) *bad |= !xph_finite(head[i]);
    return EXPHIL_OK;
}

static exphil_status average(exphil_trainer *trainer, exphil_error *error)
{
    bool refused = false;
    const exphil_communicator *with = &trainer->communicator;
    const xph_backend *backend = trainer->device->backend;
    const exphil_optimizer *optimizer = trainer->optimizer;
    xph_stream *stream = xph_net_stream(trainer->feed.net);
    exphil_status status = losses_bad(trainer, &refused);
    if (status >= 0)
        status = backend->download(stream, trainer->shared, trainer->gradients, trainer->arena_bytes);
    if (status >= 0) status = backend->stream_wait(stream);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status,
                               "trainer: the device failed to give its gradients");
    if (refused) spoil(trainer->shared, optimizer->type);
    int32_t type = optimizer->type == XPH_F64 ? EXPHIL_TYPE_F64 : EXPHIL_TYPE_F32;
    int32_t code = with->all_reduce(with->user, trainer->shared, optimizer->weights, type);
    if (code)
        return xph_fail(error, EXPHIL_E_IO, "communicator: all_reduce failed with %d on rank %d", code,
                        with->rank);
    scale(trainer->shared, optimizer->weights, optimizer->type, 1.0 / (double)with->ranks);
    status = backend->upload(stream, trainer->gradients, trainer->shared, trainer->arena_bytes);
    if (status >= 0) status = xph_trainer_run(trainer, XPH_PART_LAST);
    if (status >= 0) status = backend->event_mark(trainer->feed.slot[!trainer->feed.parity].read, stream);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status,
                               "trainer: the device failed to take its gradients");
    return EXPHIL_OK;
}

/* ---- sums --------------------------------------------------------------------------------------------------------- */

/* Where an update does not follow its sum on the device, the host is between them: what it has waited for is whole. */
static exphil_status sum_on_device(exphil_trainer *trainer, exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    static const char words[] = "trainer: the device failed in a sum of ranks";
    if (trainer->device_ranks.under_way) return EXPHIL_OK; /* it follows */
    exphil_status status = xph_device_ranks_sum(trainer);
    if (status < 0) return xph_device_ranks_failed(trainer, status, words, error);
    XPH_TRY(xph_device_ranks_wait(trainer, error));
    status = xph_trainer_run(trainer, XPH_PART_LAST);
    if (status >= 0)
        status = backend->event_mark(trainer->feed.slot[!trainer->feed.parity].read,
                                     xph_net_stream(trainer->feed.net));
    return status < 0 ? xph_fail_device(error, trainer->device, status, words) : EXPHIL_OK;
}

exphil_status xph_comm_meet(exphil_trainer *trainer, exphil_error *error)
{
    const struct xph_said own = {.frames = (double)trainer->split.frames};
    XPH_TRY(xph_ranks_say(trainer, XPH_CALL_SUM, own, EXPHIL_OK, error));
    trainer->split.frames = xph_ranks_frames(trainer);
    return EXPHIL_OK;
}

/* Losses of the heads of all ranks, where the device can take them from. */
static void sum_heads(const exphil_trainer *trainer)
{
    const int32_t ranks = trainer->communicator.ranks;
    double *number = xph_ranks_numbers(trainer);
    for (int h = 0; h < EXPHIL_HEADS_MAX; h++) {
        for (int32_t r = 0; r < ranks; r++) number[r] = trainer->said[r].number[h];
        trainer->said[ranks].number[h] = xph_ranks_add(trainer, number);
    }
}

static exphil_status fetch(const exphil_trainer *trainer, double head[XPH_SAID_NUMBERS])
{
    const xph_backend *backend = trainer->device->backend;
    xph_stream *stream = xph_net_stream(trainer->feed.net);
    XPH_TRY(backend->download(stream, head, trainer->control->head, sizeof trainer->control->head));
    XPH_TRY(backend->download(stream, trainer->shared, trainer->gradients, trainer->arena_bytes));
    return backend->stream_wait(stream);
}

static exphil_status apply(exphil_trainer *trainer)
{
    const xph_backend *backend = trainer->device->backend;
    xph_stream *stream = xph_net_stream(trainer->feed.net);
    XPH_TRY(backend->upload(stream, trainer->control->head, trainer->said[trainer->communicator.ranks].number,
                            sizeof trainer->control->head));
    XPH_TRY(backend->upload(stream, trainer->gradients, trainer->shared, trainer->arena_bytes));
    XPH_TRY(xph_trainer_run(trainer, XPH_PART_LAST));
    return backend->event_mark(trainer->feed.slot[!trainer->feed.parity].read, stream);
}

static exphil_status sum_gradients(const exphil_trainer *trainer, exphil_error *error)
{
    const exphil_optimizer *optimizer = trainer->optimizer;
    return xph_ranks_reduce(trainer, trainer->shared, optimizer->weights,
                            optimizer->type == XPH_F64 ? EXPHIL_TYPE_F64 : EXPHIL_TYPE_F32, error);
}

static exphil_status sum(exphil_trainer *trainer, exphil_status status, exphil_error *error)
{
    _Static_assert((int)EXPHIL_HEADS_MAX <= (int)XPH_SAID_NUMBERS, "losses of heads have room in a meeting");
    struct xph_said own = {.call = 0.0};
    if (status >= 0) {
        status = fetch(trainer, own.number);
        if (status < 0)
            status = xph_fail_device(error, trainer->device, status,
                                     "trainer: the device failed to give its gradients");
    }
    if (trainer->split.open) own.frames = (double)trainer->split.frames;
    XPH_TRY(xph_ranks_say(trainer, XPH_CALL_SUM, own, status, error));
    if (trainer->split.open) trainer->split.frames = xph_ranks_frames(trainer);
    sum_heads(trainer);
    XPH_TRY(sum_gradients(trainer, error));
    status = apply(trainer);
    return status < 0 ? xph_fail_device(error, trainer->device, status,
                                        "trainer: the device failed to take its gradients")
                      : EXPHIL_OK;
}

/* ---- either ------------------------------------------------------------------------------------------------------ */

exphil_status xph_comm_join(exphil_trainer *trainer, exphil_status status, exphil_error *error)
{
    if (trainer->device_ranks.all_reduce) return status < 0 ? status : sum_on_device(trainer, error);
    if (xph_ranks_meet(trainer)) return sum(trainer, status, error);
    return status >= 0 && trainer->communicator.all_reduce ? average(trainer, error) : status;
}

uint32_t xph_comm_parts(const exphil_trainer *trainer)
{
    if (!trainer->communicator.all_reduce) return XPH_PART_LAST;
    return xph_device_ranks_follow(trainer) ? XPH_PART_SUM | XPH_PART_LAST : 0;
}
