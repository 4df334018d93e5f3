/* Before the first update: ranks must have the same of everything that the update of a joint batch depends on. */
#include "train/ranks.h"
#include "train/settings.h"
#include "train/shards.h"

#include <exphil/ranks.h>

/* What is compared beside the settings of a checkpoint. */
enum {
    VERSION,
    PROCESSOR,
    COUNT,
    SETTINGS,
    WEIGHTS = SETTINGS + XPH_SETTINGS_MOST,
    MOMENTS,
    SCALE,
    PLAYED,
    WORDS
};
static const char *const name[WORDS] = {[VERSION] = "another version of the library",
                                        [PROCESSOR] = "another kind of processor",
                                        [COUNT] = "another number of settings",
                                        [WEIGHTS] = "other weights",
                                        [MOMENTS] = "other moments of the optimizer",
                                        [SCALE] = "another loss scale",
                                        [PLAYED] = "another as_played"};

/* Processors of one architecture compute the same bits, whatever they are called; GPUs of one name do. */
static uint64_t processor(const exphil_trainer *trainer)
{
#if defined(__x86_64__)
    const char *architecture = "x86-64";
#elif defined(__aarch64__)
    const char *architecture = "aarch64";
#else
    const char *architecture = "other";
#endif
    exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    xph_hash_add(&hasher, trainer->device->backend->name, strlen(trainer->device->backend->name));
    if (trainer->device->backend->host_memory)
        xph_hash_add(&hasher, architecture, strlen(architecture));
    else if (exphil_context_device(trainer->context, &info, NULL) >= 0)
        xph_hash_add(&hasher, info.name, strlen(info.name));
    return xph_hash_end(&hasher);
}

static exphil_status hash_arena(const exphil_trainer *trainer, xph_stream *stream, const void *arena,
                                xph_hasher *hasher)
{
    const xph_backend *backend = trainer->device->backend;
    if (!arena) return EXPHIL_OK;
    XPH_TRY(backend->download(stream, trainer->shared, arena, trainer->arena_bytes));
    XPH_TRY(backend->stream_wait(stream));
    xph_hash_add(hasher, trainer->shared, trainer->arena_bytes);
    return EXPHIL_OK;
}

static exphil_status hash_arenas(const exphil_trainer *trainer, uint64_t word[WORDS], exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    const exphil_optimizer *optimizer = trainer->optimizer;
    xph_hasher weights, moments, scale;
    xph_stream *stream;
    xph_hash_begin(&weights);
    xph_hash_begin(&moments);
    xph_hash_begin(&scale);
    xph_control control = {.done = 0};
    exphil_status status = backend->stream_create(trainer->device, 0, &stream);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status, "trainer: no stream on the device");
    status = hash_arena(trainer, stream, trainer->weights, &weights);
    if (status >= 0) status = hash_arena(trainer, stream, optimizer->m, &moments);
    if (status >= 0) status = hash_arena(trainer, stream, optimizer->v, &moments);
    if (status >= 0) status = hash_arena(trainer, stream, optimizer->average, &moments);
    if (status >= 0) status = backend->download(stream, &control, trainer->control, sizeof control);
    status = xph_stream_end(stream, status);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status,
                               "trainer: the device failed to give its weights");
    xph_hash_add(&scale, &control.loss_scale,
                 sizeof control.loss_scale); /* gradients are summed as they are scaled */
    xph_hash_add(&scale, &control.good, sizeof control.good);
    word[SCALE] = trainer->precision == EXPHIL_PRECISION_F16 ? xph_hash_end(&scale) : 0;
    word[WEIGHTS] = xph_hash_end(&weights);
    word[MOMENTS] = xph_hash_end(&moments);
    return EXPHIL_OK;
}

/* One order of one joint batch is dealt to all ranks, each lane to one of them. */
exphil_status xph_ranks_lanes_check(const exphil_trainer *trainer, exphil_error *error)
{
    const exphil_communicator *with = &trainer->communicator;
    int64_t first, count;
    if (!trainer->prefetcher) return EXPHIL_OK;
    const exphil_sampling *sampling = xph_prefetcher_sampling(trainer->prefetcher);
    XPH_TRY(exphil_rank_lanes(sampling->batch, with->rank, with->ranks, &first, &count, error));
    if (sampling->first_lane == first && sampling->lane_count == count) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH,
                    "prefetcher has %lld lanes from lane %lld on, rank %d of %d has %lld from %lld on "
                    "(exphil_rank_lanes)",
                    (long long)sampling->lane_count, (long long)sampling->first_lane, with->rank, with->ranks,
                    (long long)count, (long long)first);
}

static exphil_status own_words(const exphil_trainer *trainer, uint64_t word[WORDS], exphil_error *error)
{
    XPH_TRY(xph_ranks_lanes_check(trainer, error));
    word[PLAYED] = (uint64_t)trainer->as_played;
    word[VERSION] = exphil_version();
    word[PROCESSOR] = processor(trainer);
    word[COUNT] = (uint64_t)xph_settings_values(trainer, word + SETTINGS);
    return hash_arenas(trainer, word, error);
}

/* The first rank that differs, and in what first. */
static exphil_status compare(const exphil_trainer *trainer, const uint64_t (*word)[WORDS],
                             exphil_error *error)
{
    for (int32_t r = 1; r < trainer->communicator.ranks; r++)
        for (int i = 0; i < WORDS; i++) {
            if (word[r][i] == word[0][i]) continue;
            if (name[i]) return xph_fail(error, EXPHIL_E_MISMATCH, "rank %d has %s than rank 0", r, name[i]);
            return xph_settings_differ(trainer, i - SETTINGS, word[r][i], word[0][i], r, error);
        }
    return EXPHIL_OK;
}

/* Numbers of which a sum tells in which order it was taken: 1 is lost beside the first, 1 + 1 is not. */
static exphil_status probe(const exphil_trainer *trainer, exphil_error *error)
{
    const exphil_communicator *with = &trainer->communicator;
    const bool wide = trainer->optimizer->type == XPH_F64;
    const double first = wide ? 0x1p53 : 0x1p24, own = with->rank ? 1.0 : first,
                 expected = first + (double)(with->ranks - 2);
    const int64_t count = trainer->optimizer->weights;
    bool tree = true;
    if (!xph_is_sharded(trainer) || with->ranks < 3) return EXPHIL_OK;
    for (int64_t i = 0; i < count; i++) {
        if (wide)
            ((double *)trainer->shared)[i] = own;
        else
            ((float *)trainer->shared)[i] = (float)own;
    }
    XPH_TRY(
        xph_ranks_reduce(trainer, trainer->shared, count, wide ? EXPHIL_TYPE_F64 : EXPHIL_TYPE_F32, error));
    for (int64_t i = 0; i < count; i++)
        tree &= (wide ? ((double *)trainer->shared)[i] : (double)((float *)trainer->shared)[i]) == expected;
    return tree ? EXPHIL_OK
                : xph_fail(error, EXPHIL_E_UNSUPPORTED,
                           "communicator: shards of %d ranks need sums by a tree, ((0 + 1) + (2 + 3)) + ...",
                           with->ranks);
}

exphil_status xph_ranks_check(exphil_trainer *trainer, exphil_status status, exphil_error *error)
{
    const exphil_communicator *with = &trainer->communicator;
    const size_t bytes = (size_t)with->ranks * sizeof(uint64_t[WORDS]);
    if (!xph_ranks_meet(trainer)) return status;
    uint64_t(*word)[WORDS] = status >= 0 ? xph_calloc(trainer->context, 1, bytes) : NULL;
    if (status >= 0)
        status = word ? own_words(trainer, word[with->rank], error) : xph_no_memory(bytes, error);
    status = xph_ranks_tell(trainer, XPH_CALL_CREATE, status, error);
    if (status >= 0) status = xph_ranks_join(trainer, word, bytes, EXPHIL_OK, error);
    if (status >= 0 && word) status = compare(trainer, (const uint64_t(*)[WORDS])word, error);
    if (status >= 0) status = probe(trainer, error);
    xph_free(trainer->context, word, bytes);
    return status;
}
