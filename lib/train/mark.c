/* A place to return to: all that updates change but the carried state, in host memory. */
#include "train/train.h"

typedef struct mark_head {
    int64_t updates, frames, skipped;
    xph_control control;
    exphil_metrics metrics;
} mark_head;

enum { HEAD_BYTES = (sizeof(mark_head) + 63) / 64 * 64, ARENAS = 4 };

static int list_arenas(const exphil_trainer *trainer, void *arena[ARENAS])
{
    const exphil_optimizer *optimizer = trainer->optimizer;
    arena[0] = trainer->weights;
    arena[1] = optimizer->m;
    arena[2] = optimizer->v;
    arena[3] = optimizer->average;
    return optimizer->average ? ARENAS : ARENAS - 1;
}

size_t xph_mark_bytes(const exphil_trainer *trainer)
{
    void *arena[ARENAS];
    size_t bytes, all;
    if (!xph_size_mul((size_t)list_arenas(trainer, arena), trainer->arena_bytes, &bytes) ||
        !xph_size_add(HEAD_BYTES, bytes, &all))
        return SIZE_MAX;
    return all;
}

static exphil_status fail(const exphil_trainer *trainer, exphil_status status, exphil_error *error)
{
    if (status >= 0) return EXPHIL_OK;
    return xph_fail_device(error, trainer->device, status, "trainer: the device could not copy its weights");
}

exphil_status xph_trainer_mark(exphil_trainer *trainer, void *mark, exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    void *arena[ARENAS];
    int count = list_arenas(trainer, arena);
    XPH_TRY(xph_trainer_settle(trainer, error));
    mark_head *head = mark;
    *head = (mark_head){.updates = trainer->optimizer->updates,
                        .frames = trainer->frames,
                        .skipped = trainer->skipped,
                        .metrics = trainer->metrics};
    xph_stream *stream = xph_net_stream(trainer->feed.net);
    exphil_status status = backend->download(stream, &head->control, trainer->control, sizeof head->control);
    for (int i = 0; status >= 0 && i < count; i++)
        status =
            backend->download(stream, (unsigned char *)mark + HEAD_BYTES + (size_t)i * trainer->arena_bytes,
                              arena[i], trainer->arena_bytes);
    if (status >= 0) status = backend->stream_wait(stream);
    return fail(trainer, status, error);
}

exphil_status xph_trainer_return(exphil_trainer *trainer, const void *mark, exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    const mark_head *head = mark;
    void *arena[ARENAS];
    int count = list_arenas(trainer, arena);
    XPH_TRY(xph_trainer_settle(trainer, error));
    xph_stream *stream = xph_net_stream(trainer->feed.net);
    exphil_status status = backend->upload(stream, trainer->control, &head->control, sizeof head->control);
    for (int i = 0; status >= 0 && i < count; i++)
        status = backend->upload(stream, arena[i],
                                 (const unsigned char *)mark + HEAD_BYTES + (size_t)i * trainer->arena_bytes,
                                 trainer->arena_bytes);
    if (status >= 0) status = xph_trainer_refresh(trainer);
    if (status >= 0) status = backend->stream_wait(stream);
    XPH_TRY(fail(trainer, status, error));
    trainer->optimizer->updates = head->updates;
    trainer->frames = head->frames;
    trainer->skipped = head->skipped;
    trainer->metrics = head->metrics;
    return EXPHIL_OK;
}
