/* Other ranks for a trainer that goes on: some are gone, or more have come. */
#include "train/ranks.h"

#include "train/settings.h"
#include "train/shards.h"

#include <exphil/ranks.h>

/* What a trainer has of its ranks, and gets back if others cannot be. */
typedef struct share {
    exphil_communicator communicator;
    xph_device_ranks device_ranks;
    struct xph_said *said;
    exphil_prefetcher *prefetcher;
} share;

static share swap(exphil_trainer *trainer, share with)
{
    const share before = {trainer->communicator, trainer->device_ranks, trainer->said, trainer->prefetcher};
    trainer->communicator = with.communicator;
    trainer->device_ranks = with.device_ranks;
    trainer->said = with.said;
    trainer->prefetcher = with.prefetcher;
    return before;
}

/* All but the lanes must be as before. */
static exphil_status check_same(exphil_trainer *trainer, const uint64_t before[XPH_SETTINGS_MOST],
                                int64_t count, exphil_error *error)
{
    uint64_t now[XPH_SETTINGS_MOST];
    int64_t found = xph_settings_values(trainer, now);
    if (found != count || memcmp(now, before, (size_t)count * sizeof *now) != 0)
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "prefetcher: its data or sampling are not those of the trainer's, of which lanes "
                        "alone may differ");
    return EXPHIL_OK;
}

/* ---- the carried state -------------------------------------------------------------------------------------------- */

/* Of all lanes: their state, and behind it a byte for each that says whether a rank has it. */
typedef struct lanes {
    unsigned char *memory, *there;
    void *own;                     /* room for this rank's new lanes */
    size_t bytes, own_bytes, each; /* each: of a lane's state */
    int64_t batch;
} lanes;

static exphil_status make_lanes(const exphil_trainer *trainer, const exphil_sampling *next, lanes *all,
                                exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    all->batch = xph_prefetcher_sampling(trainer->prefetcher)->batch;
    all->each = (size_t)shape->state * shape->real_bytes;
    all->bytes = (size_t)all->batch * (all->each + 1);
    all->memory = xph_calloc(trainer->context, 1, all->bytes);
    if (!all->memory) return xph_no_memory(all->bytes, error);
    all->own_bytes = (size_t)next->lane_count * all->each;
    all->own = all->own_bytes ? xph_alloc(trainer->context, all->own_bytes) : NULL;
    if (all->own_bytes && !all->own) return xph_no_memory(all->own_bytes, error);
    all->there = all->memory + (size_t)all->batch * all->each;
    return EXPHIL_OK;
}

/* What this rank has, where the lanes of before lie. */
static exphil_status put_own(const exphil_trainer *trainer, const exphil_sampling *before, const lanes *all,
                             exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    unsigned char *to = all->memory + (size_t)before->first_lane * all->each;
    size_t bytes = (size_t)before->lane_count * all->each;
    memset(all->there + before->first_lane, 1, (size_t)before->lane_count);
    if (!trainer->feed.net) {
        if (trainer->resumed.state) memcpy(to, trainer->resumed.state, bytes);
        return EXPHIL_OK;
    }
    exphil_status status =
        bytes ? backend->download(xph_net_stream(trainer->feed.net), to, trainer->feed.state[0], bytes)
              : EXPHIL_OK;
    if (status >= 0) status = backend->stream_wait(xph_net_stream(trainer->feed.net));
    return status < 0 ? xph_fail_device(error, trainer->device, status,
                                        "trainer: the device failed to give its state")
                      : EXPHIL_OK;
}

/* New ranks have each resumed a file with all lanes: what several have, the first of them gives. */
static exphil_status leave_to_first(exphil_trainer *trainer, const exphil_sampling *before, const lanes *all,
                                    exphil_error *error)
{
    const struct xph_said own = {.number = {(double)before->first_lane, (double)before->lane_count}};
    XPH_TRY(xph_ranks_say(trainer, XPH_CALL_CHANGE, own, EXPHIL_OK, error));
    for (int32_t r = 0; r < trainer->communicator.rank; r++) {
        const double *number = trainer->said[r].number;
        if (!(number[0] >= 0.0 && number[1] >= 0.0 && number[0] + number[1] <= (double)all->batch))
            return xph_fail(error, EXPHIL_E_IO, "communicator: all_reduce gave no sum of doubles");
        const size_t first = (size_t)number[0], count = (size_t)number[1];
        memset(all->memory + first * all->each, 0, count * all->each);
        memset(all->there + first, 0, count);
    }
    return EXPHIL_OK;
}

static void say_lost(const exphil_trainer *trainer, const lanes *all)
{
    int64_t lost = 0;
    for (int64_t b = 0; b < all->batch; b++) lost += !all->there[b];
    if (lost)
        xph_log(trainer->context, EXPHIL_LOG_WARNING,
                "trainer: no rank has the carried state of %lld of %lld lanes, they start from zero",
                (long long)lost, (long long)all->batch);
}

/* This rank's new lanes wait as those of a file do, until their shape is made. */
static void take_own(exphil_trainer *trainer, lanes *all)
{
    const exphil_sampling *sampling = xph_prefetcher_sampling(trainer->prefetcher);
    if (all->own) memcpy(all->own, all->memory + (size_t)sampling->first_lane * all->each, all->own_bytes);
    xph_trainer_drop_shape(trainer);
    xph_resumed_drop(trainer);
    trainer->resumed = (xph_resumed){sampling->lane_count, sampling->time, all->own, all->own_bytes};
    all->own = NULL;
}

/* From here on the trainer is one of the new ranks, whatever fails. */
static exphil_status go_on(exphil_trainer *trainer, lanes *all, exphil_error *error)
{
    const exphil_sampling *sampling = xph_prefetcher_sampling(trainer->prefetcher);
    exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
    say_lost(trainer, all);
    take_own(trainer, all);
    exphil_status status = exphil_prefetcher_query(trainer->prefetcher, &info, error);
    const bool ended = trainer->index == info.batches_per_epoch;
    if (status >= 0)
        status = exphil_prefetcher_seek(trainer->prefetcher, trainer->epoch + ended,
                                        ended ? 0 : trainer->index, error);
    if (status >= 0) status = xph_trainer_shape(trainer, sampling->lane_count, sampling->time, error);
    return xph_ranks_tell(trainer, XPH_CALL_CHANGE, status, error);
}

/* ---- the call ------------------------------------------------------------------------------------------------------- */

/* What this rank brings: its settings, its lanes, and room for what is summed, which one that was alone has not. */
static exphil_status bring(exphil_trainer *trainer, const exphil_sampling *before, const share *with,
                           lanes *all, exphil_error *error)
{
    if (with->said) XPH_TRY(xph_trainer_share(trainer, error));
    XPH_TRY(make_lanes(trainer, xph_prefetcher_sampling(with->prefetcher), all, error));
    return put_own(trainer, before, all, error);
}

/* status: what this rank came to before; it meets the new ranks all the same. */
static exphil_status change(exphil_trainer *trainer, share *with, exphil_status status, exphil_error *error)
{
    uint64_t settings[XPH_SETTINGS_MOST];
    lanes all = {.memory = NULL};
    int64_t count = 0;
    exphil_sampling before = EXPHIL_SAMPLING_INIT;
    if (status >= 0) {
        count = xph_settings_values(trainer, settings);
        before = *xph_prefetcher_sampling(trainer->prefetcher);
        status = bring(trainer, &before, with, &all, error);
    }
    *with = swap(trainer, *with);
    if (status >= 0) status = check_same(trainer, settings, count, error);
    if (status >= 0) status = xph_ranks_lanes_check(trainer, error);
    if (status >= 0) status = xph_shards_check(trainer, before.batch, error);
    status = xph_ranks_check(trainer, status, error);
    if (status >= 0) status = leave_to_first(trainer, &before, &all, error);
    if (status >= 0) status = xph_ranks_join(trainer, all.memory, all.bytes, EXPHIL_OK, error);
    if (status >= 0)
        status = go_on(trainer, &all, error);
    else
        *with = swap(trainer, *with);
    xph_free(trainer->context, all.memory, all.bytes);
    xph_free(trainer->context, all.own, all.own_bytes);
    return status;
}

static exphil_status check(const exphil_trainer *trainer, const exphil_prefetcher *prefetcher,
                           exphil_error *error)
{
    if (!trainer->sums)
        return xph_fail(error, EXPHIL_E_STATE, "trainer: its reduction is not EXPHIL_REDUCTION_SUMS");
    if (!trainer->prefetcher)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "trainer without a prefetcher: save, and resume with the other ranks");
    if (!prefetcher) return xph_fail(error, EXPHIL_E_INVALID, "prefetcher is NULL");
    return xph_trainer_check_data(trainer->model, prefetcher, error);
}

/* The others would wait. */
static exphil_status no_meeting(exphil_trainer *trainer, share *with, const exphil_error *error)
{
    *with = swap(trainer, *with); /* what meets through the device finds there what it needs */
    xph_ranks_tell_early(&trainer->communicator, XPH_CALL_CHANGE, EXPHIL_E_MEMORY, error);
    *with = swap(trainer, *with);
    return EXPHIL_E_MEMORY;
}

/* with has a communicator; from here on the others hear of what fails. */
static exphil_status change_to(exphil_trainer *trainer, share with, exphil_prefetcher *prefetcher,
                               exphil_error *error)
{
    exphil_status status = EXPHIL_OK;
    if (with.communicator.all_reduce) {
        with.said = xph_ranks_said(trainer->context, with.communicator.ranks, error);
        status = with.said ? EXPHIL_OK : no_meeting(trainer, &with, error);
    }
    if (status >= 0) {
        status = xph_trainer_settle(trainer, error);
        if (status >= 0) status = check(trainer, prefetcher, error);
        if (prefetcher) with.prefetcher = xph_prefetcher_retain(prefetcher);
        status = change(trainer, &with, status, error); /* with is what is not used any more */
    }
    xph_device_ranks_drop(trainer, &with.device_ranks);
    if (with.prefetcher) xph_prefetcher_release(with.prefetcher);
    xph_ranks_forget(trainer->context, with.said, with.communicator.ranks);
    return status;
}

exphil_status exphil_trainer_set_communicator(exphil_trainer *trainer,
                                              const exphil_communicator *communicator,
                                              exphil_prefetcher *prefetcher, exphil_error *error)
{
    XPH_OWN_FPU;
    share with = {.prefetcher = NULL};
    XPH_TRY(xph_trainer_enter(trainer, error));
    exphil_status status = xph_communicator_take(communicator, &with.communicator, error);
    if (status >= 0) status = change_to(trainer, with, prefetcher, error);
    xph_trainer_leave(trainer);
    return status;
}

exphil_status exphil_trainer_set_device_communicator(exphil_trainer *trainer,
                                                     const exphil_device_communicator *communicator,
                                                     exphil_prefetcher *prefetcher, exphil_error *error)
{
    XPH_OWN_FPU;
    share with = {.prefetcher = NULL};
    if (!trainer || !communicator)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", trainer ? "communicator" : "trainer");
    XPH_TRY(xph_trainer_enter(trainer, error));
    exphil_status status =
        xph_device_ranks_make(trainer, communicator, &with.communicator, &with.device_ranks, error);
    if (status >= 0)
        status = change_to(trainer, with, prefetcher, error);
    else
        xph_device_ranks_drop(trainer, &with.device_ranks);
    xph_trainer_leave(trainer);
    return status;
}
