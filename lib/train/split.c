/* Host memory between the two halves of an update whose loss is not the trainer's own. */
#include "train/train.h"

void xph_split_drop(exphil_trainer *trainer)
{
    const xph_backend *backend = trainer->device->backend;
    xph_split *split = &trainer->split;
    if (split->logits) backend->host_free(trainer->device, split->logits, split->logits_bytes);
    if (split->values) backend->host_free(trainer->device, split->values, split->values_bytes);
    if (split->states) backend->host_free(trainer->device, split->states, trainer->feed.state_bytes);
    *split = (xph_split){.open = false};
}

static exphil_status host_block(const exphil_trainer *trainer, size_t bytes, void **block,
                                exphil_error *error)
{
    if (*block || !bytes) return EXPHIL_OK;
    exphil_status status = trainer->device->backend->host_alloc(trainer->device, bytes, block);
    return status < 0 ? xph_no_device_memory(error, trainer->device, status, bytes) : EXPHIL_OK;
}

/* The net of this shape could be made, so that products do not overflow. */
exphil_status xph_split_make(exphil_trainer *trainer, bool states, bool by_host, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    xph_split *split = &trainer->split;
    size_t rows = (size_t)(trainer->feed.batch * trainer->feed.time);
    split->logits_bytes = rows * (size_t)shape->logits * shape->real_bytes;
    split->values_bytes = shape->value ? rows * shape->real_bytes : 0;
    if (by_host) XPH_TRY(host_block(trainer, split->logits_bytes, &split->logits, error));
    if (by_host) XPH_TRY(host_block(trainer, split->values_bytes, &split->values, error));
    return states ? host_block(trainer, trainer->feed.state_bytes, &split->states, error) : EXPHIL_OK;
}
