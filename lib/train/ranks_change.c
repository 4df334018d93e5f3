/* Other ranks for a trainer that goes on: some are gone, or more have come. */
#include "train/ranks.h"

#include "train/settings.h"

#include <exphil/ranks.h>

/* What a trainer has of its ranks, and gets back if others cannot be. */
typedef struct share {
    exphil_communicator communicator;
    struct xph_said *said;
    exphil_prefetcher *prefetcher;
} share;

static share swap(exphil_trainer *trainer, share with)
{
    const share before = {trainer->communicator, trainer->said, trainer->prefetcher};
    trainer->communicator = with.communicator;
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
    size_t bytes, each; /* each: of a lane's state */
    int64_t batch;
} lanes;

static exphil_status make_lanes(const exphil_trainer *trainer, lanes *all, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    all->batch = xph_prefetcher_sampling(trainer->prefetcher)->batch;
    all->each = (size_t)shape->state * shape->real_bytes;
    all->bytes = (size_t)all->batch * (all->each + 1);
    all->memory = xph_calloc(trainer->context, 1, all->bytes);
    if (!all->memory) return xph_no_memory(all->bytes, error);
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
static exphil_status take_own(exphil_trainer *trainer, const lanes *all, exphil_error *error)
{
    const exphil_sampling *sampling = xph_prefetcher_sampling(trainer->prefetcher);
    size_t bytes = (size_t)sampling->lane_count * all->each;
    void *state = bytes ? xph_alloc(trainer->context, bytes) : NULL;
    if (bytes && !state) return xph_no_memory(bytes, error);
    if (state) memcpy(state, all->memory + (size_t)sampling->first_lane * all->each, bytes);
    xph_trainer_drop_shape(trainer);
    xph_resumed_drop(trainer);
    trainer->resumed = (xph_resumed){sampling->lane_count, sampling->time, state, bytes};
    return EXPHIL_OK;
}

/* From here on the trainer is one of the new ranks, whatever fails. */
static exphil_status go_on(exphil_trainer *trainer, const lanes *all, exphil_error *error)
{
    const exphil_sampling *sampling = xph_prefetcher_sampling(trainer->prefetcher);
    exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
    say_lost(trainer, all);
    exphil_status status = take_own(trainer, all, error);
    if (status >= 0) status = xph_trainer_shape(trainer, sampling->lane_count, sampling->time, error);
    if (status >= 0) status = exphil_prefetcher_query(trainer->prefetcher, &info, error);
    const bool ended = trainer->index == info.batches_per_epoch;
    if (status >= 0)
        status = exphil_prefetcher_seek(trainer->prefetcher, trainer->epoch + ended,
                                        ended ? 0 : trainer->index, error);
    return xph_ranks_tell(trainer, XPH_CALL_CHANGE, status, error);
}

/* ---- the call ------------------------------------------------------------------------------------------------------- */

static exphil_status change(exphil_trainer *trainer, share *with, exphil_error *error)
{
    uint64_t settings[XPH_SETTINGS_MOST];
    lanes all = {.memory = NULL};
    int64_t count = xph_settings_values(trainer, settings);
    const exphil_sampling before = *xph_prefetcher_sampling(trainer->prefetcher);
    exphil_status status = make_lanes(trainer, &all, error);
    if (status >= 0) status = put_own(trainer, &before, &all, error);
    *with = swap(trainer, *with);
    if (status >= 0) status = check_same(trainer, settings, count, error);
    status = xph_ranks_check(trainer, status, error);
    if (status >= 0) status = xph_ranks_join(trainer, all.memory, all.bytes, EXPHIL_OK, error);
    if (status >= 0)
        status = go_on(trainer, &all, error);
    else
        *with = swap(trainer, *with);
    xph_free(trainer->context, all.memory, all.bytes);
    return status;
}

static exphil_status check(const exphil_trainer *trainer, const exphil_prefetcher *prefetcher,
                           exphil_error *error)
{
    if (!xph_ranks_meet(trainer))
        return xph_fail(error, EXPHIL_E_STATE, "trainer: its reduction is not EXPHIL_REDUCTION_SUMS");
    if (trainer->device_ranks.all_reduce)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "trainer with a device_communicator: save, and resume with the other ranks");
    if (!trainer->prefetcher)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "trainer without a prefetcher: save, and resume with the other ranks");
    if (!prefetcher) return xph_fail(error, EXPHIL_E_INVALID, "prefetcher is NULL");
    return xph_trainer_check_data(trainer->model, prefetcher, error);
}

exphil_status exphil_trainer_set_communicator(exphil_trainer *trainer,
                                              const exphil_communicator *communicator,
                                              exphil_prefetcher *prefetcher, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!trainer || !communicator)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", trainer ? "communicator" : "trainer");
    XPH_TRY(xph_trainer_enter(trainer, error));
    share with = {.prefetcher = prefetcher};
    exphil_status status = xph_trainer_settle(trainer, error);
    if (status >= 0) status = check(trainer, prefetcher, error);
    if (status >= 0) status = xph_communicator_take(communicator, &with.communicator, error);
    if (status >= 0) {
        with.said = xph_ranks_said(trainer->context, with.communicator.ranks, error);
        status = with.said ? EXPHIL_OK : EXPHIL_E_MEMORY;
    }
    if (status >= 0) {
        xph_prefetcher_retain(prefetcher);
        status = change(trainer, &with, error); /* with is what is not used any more */
        xph_prefetcher_release(with.prefetcher);
        xph_ranks_forget(trainer->context, with.said, with.communicator.ranks);
    }
    xph_trainer_leave(trainer);
    return status;
}
