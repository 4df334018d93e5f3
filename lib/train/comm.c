/* Training on several ranks: one all-reduce over the whole gradient arena per update, through the host's communicator.
 * The sum is the communicator's; that it is made in the order of the ranks gives all of them the same bits. */
#include "train/train.h"

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

exphil_status xph_comm_average(exphil_trainer *trainer, bool refused, exphil_error *error)
{
    const exphil_communicator *with = &trainer->communicator;
    const xph_backend *backend = trainer->device->backend;
    const exphil_optimizer *optimizer = trainer->optimizer;
    xph_stream *stream = xph_net_stream(trainer->feed.net);
    if (!with->all_reduce) return EXPHIL_OK;
    exphil_status status =
        backend->download(stream, trainer->shared, trainer->gradients, trainer->arena_bytes);
    if (status >= 0) status = backend->stream_wait(stream);
    if (status < 0) return xph_fail(error, status, "trainer: the device failed to give its gradients");
    if (refused) spoil(trainer->shared, optimizer->type);
    int32_t type = optimizer->type == XPH_F64 ? EXPHIL_TYPE_F64 : EXPHIL_TYPE_F32;
    int32_t code = with->all_reduce(with->user, trainer->shared, optimizer->weights, type);
    if (code)
        return xph_fail(error, EXPHIL_E_IO, "communicator: all_reduce failed with %d on rank %d", code,
                        with->rank);
    scale(trainer->shared, optimizer->weights, optimizer->type, 1.0 / (double)with->ranks);
    status = backend->upload(stream, trainer->gradients, trainer->shared, trainer->arena_bytes);
    if (status < 0) return xph_fail(error, status, "trainer: the device failed to take its gradients");
    return EXPHIL_OK;
}
