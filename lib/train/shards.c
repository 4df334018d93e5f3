/* The tree over a rank's own shards, on the device: as in a binary counter, two sums of as many shards become one. So as many sums
 * wait as there are bits, not shards. */
#include "train/shards.h"

/* A sum that waits: losses of heads, then gradients. */
enum { HEADS_BYTES = 128 };
_Static_assert((size_t)HEADS_BYTES >= sizeof(((xph_control *)NULL)->head),
               "losses of heads have room before the gradients");

static int64_t levels(const exphil_trainer *trainer)
{
    int64_t count = 0;
    for (int64_t shards = xph_own_shards(trainer); shards > 1; shards /= 2) count++;
    return count;
}

static size_t bytes_each(const exphil_trainer *trainer)
{
    return HEADS_BYTES + (trainer->arena_bytes + 63) / 64 * 64;
}

static unsigned char *waiting(const exphil_trainer *trainer, int64_t level)
{
    return (unsigned char *)trainer->joining + (size_t)level * bytes_each(trainer);
}

exphil_status xph_shards_check(const exphil_trainer *trainer, int64_t batch, exphil_error *error)
{
    const exphil_communicator *with = &trainer->communicator;
    const int32_t shards = trainer->shards;
    if (shards < 1 || shards > XPH_SHARDS_MOST || (shards & (shards - 1)))
        return xph_fail(error, EXPHIL_E_INVALID,
                        "trainer config: shards is %d, must be a power of two up to %d", shards,
                        XPH_SHARDS_MOST);
    if (shards == 1) return EXPHIL_OK;
    if (trainer->accumulate > 1)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "trainer config: accumulate is %lld with shards: a larger batch in more shards takes "
                        "no more memory",
                        (long long)trainer->accumulate);
    if (with->all_reduce && !trainer->said)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "trainer config: shards of several ranks need EXPHIL_REDUCTION_SUMS");
    if (shards % with->ranks)
        return xph_fail(error, EXPHIL_E_INVALID, "trainer config: %d ranks do not divide %d shards",
                        with->ranks, shards);
    if (batch % shards)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "trainer config: shards is %d, which does not divide a batch of %lld", shards,
                        (long long)batch);
    return EXPHIL_OK;
}

exphil_status xph_shards_make(exphil_trainer *trainer, exphil_error *error)
{
    size_t bytes = (size_t)levels(trainer) * bytes_each(trainer);
    if (!bytes) return EXPHIL_OK;
    exphil_status status = trainer->device->backend->alloc(trainer->device, bytes, &trainer->joining);
    if (status < 0) return xph_no_device_memory(error, trainer->device, status, bytes);
    trainer->joining_bytes = bytes;
    return EXPHIL_OK;
}

void xph_shards_drop(exphil_trainer *trainer)
{
    if (trainer->joining)
        trainer->device->backend->free(trainer->device, trainer->joining, trainer->joining_bytes);
    trainer->joining = NULL;
    trainer->joining_bytes = 0;
}

/* to += from, one rounding for each number. */
static exphil_status add(const exphil_trainer *trainer, xph_type type, int64_t count, void *to,
                         const void *from)
{
    xph_axpby_args args = {.type = type, .count = count, .x = from, .y = to, .a = 1.0, .b = 1.0};
    const xph_kernel *kernel = NULL;
    XPH_TRY(xph_choose_kernel(trainer->device, XPH_OP_AXPBY, &args, &kernel));
    return trainer->device->backend->run(xph_net_stream(trainer->feed.net), kernel, &args);
}

exphil_status xph_shards_join(exphil_trainer *trainer, int64_t shard)
{
    const xph_backend *backend = trainer->device->backend;
    const exphil_optimizer *optimizer = trainer->optimizer;
    xph_stream *stream = xph_net_stream(trainer->feed.net);
    double *head = trainer->control->head;
    int64_t level = 0;
    for (; shard >> level & 1; level++) {
        unsigned char *before = waiting(trainer, level);
        XPH_TRY(add(trainer, XPH_F64, EXPHIL_HEADS_MAX, head, before));
        XPH_TRY(add(trainer, optimizer->type, optimizer->weights, trainer->gradients, before + HEADS_BYTES));
    }
    if (shard + 1 == trainer->feed.shards) return EXPHIL_OK;
    XPH_TRY(backend->copy(stream, waiting(trainer, level), head, sizeof trainer->control->head));
    return backend->copy(stream, waiting(trainer, level) + HEADS_BYTES, trainer->gradients,
                         trainer->arena_bytes);
}
