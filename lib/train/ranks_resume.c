/* Resuming on all ranks: rank 0 reads the file, all get what is in it, and each takes the state of its own lanes. A file may be
 * of any number of ranks, or of one. */
#include "train/checkpoint.h"
#include "train/ranks.h"

#include <inttypes.h>

#include <exphil/ranks.h>

/* What rank 0 tells of the file beside its arrays. */
typedef struct told_run {
    uint64_t counters[XPH_CHECKPOINT_COUNTERS];
    double loss_scale;
    int64_t good, batch, time;
    uint64_t notes_bytes; /* with the zero; 0: none */
} told_run;

static exphil_status share_numbers(xph_stored_run *run, told_run *told, exphil_status status,
                                   exphil_error *error)
{
    exphil_trainer *trainer = run->copies.trainer;
    if (status >= 0 && trainer->communicator.rank == 0) {
        memcpy(told->counters, run->counters, sizeof told->counters);
        told->loss_scale = run->loss_scale;
        told->good = run->good;
        told->batch = run->copies.batch;
        told->time = run->copies.time;
        told->notes_bytes = run->noted ? strlen(run->notes.text) + 1 : 0;
    }
    XPH_TRY(xph_ranks_join(trainer, told, sizeof *told, status, error));
    memcpy(run->counters, told->counters, sizeof told->counters);
    run->loss_scale = told->loss_scale;
    run->good = told->good;
    run->noted = told->notes_bytes != 0;
    return EXPHIL_OK;
}

/* Memory for what comes. */
static exphil_status make_copies(xph_stored_run *run, const told_run *told, exphil_error *error)
{
    xph_checkpoint *c = &run->copies;
    exphil_trainer *trainer = c->trainer;
    if (trainer->communicator.rank == 0) return EXPHIL_OK;
    const int64_t first = c->first_lane, lanes = c->lanes;
    XPH_TRY(xph_checkpoint_make(c, trainer, told->batch, told->time, "", NULL, error));
    c->first_lane = first;
    c->lanes = lanes;
    for (int64_t k = 0; k < c->kinds; k++) memset(c->arena[k], 0, trainer->arena_bytes);
    if (c->state) memset(c->state, 0, c->state_bytes);
    return EXPHIL_OK;
}

/* Notes of rank 0, as text. NULL: there are none, or no memory. */
static char *copy_notes(const xph_stored_run *run, const told_run *told)
{
    exphil_trainer *trainer = run->copies.trainer;
    const size_t bytes = (size_t)told->notes_bytes;
    char *text = bytes ? xph_calloc(trainer->context, 1, bytes) : NULL;
    if (text && run->notes.text && trainer->communicator.rank == 0) memcpy(text, run->notes.text, bytes);
    return text;
}

/* After a meeting that failed nobody meets again: what fails on a rank alone is told in the next one. */
static exphil_status share_arrays(xph_stored_run *run, char *notes, size_t notes_bytes, exphil_status status,
                                  exphil_error *error)
{
    xph_checkpoint *c = &run->copies;
    int64_t kinds = c->trainer->optimizer->average ? 4 : 3;
    XPH_TRY(xph_ranks_join(c->trainer, notes, notes_bytes, status, error));
    for (int64_t k = 0; k < kinds; k++)
        XPH_TRY(xph_ranks_join(c->trainer, c->arena[k], c->trainer->arena_bytes, EXPHIL_OK, error));
    return xph_ranks_join(c->trainer, c->state, c->state_bytes, EXPHIL_OK, error);
}

/* The state becomes that of this rank's lanes. Without batches of a known shape they are those that the rule gives. */
static exphil_status cut_state(xph_checkpoint *c, exphil_error *error)
{
    exphil_trainer *trainer = c->trainer;
    const exphil_communicator *with = &trainer->communicator;
    if (!trainer->feed.net)
        XPH_TRY(exphil_rank_lanes(c->batch, with->rank, with->ranks, &c->first_lane, &c->lanes, error));
    if (c->state_bytes && c->first_lane + c->lanes > c->batch)
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "the checkpoint has %" PRId64 " lanes: rank %d has %" PRId64 " from lane %" PRId64
                        " on",
                        c->batch, with->rank, c->lanes, c->first_lane);
    size_t bytes = xph_checkpoint_state_bytes(trainer, c->lanes);
    void *own = bytes ? xph_alloc(trainer->context, bytes) : NULL;
    if (bytes && !own) return xph_no_memory(bytes, error);
    if (own) memcpy(own, xph_checkpoint_own_state(c), bytes);
    xph_free(trainer->context, c->state, c->state_bytes);
    c->state = own;
    c->state_bytes = bytes;
    c->batch = c->lanes;
    return EXPHIL_OK;
}

/* All that is in the file, on every rank. */
static exphil_status share(xph_stored_run *run, exphil_status status, exphil_error *error)
{
    exphil_trainer *trainer = run->copies.trainer;
    told_run told = {.batch = 0};
    XPH_TRY(share_numbers(run, &told, status, error));
    const size_t notes_bytes = (size_t)told.notes_bytes;
    char *notes = copy_notes(run, &told);
    status = make_copies(run, &told, error);
    if (status >= 0 && notes_bytes && !notes) status = xph_no_memory(notes_bytes, error);
    status = share_arrays(run, notes, notes_bytes, status, error);
    if (status >= 0) {
        if (notes && trainer->communicator.rank != 0)
            status = xph_notes_take(trainer->context, notes, &run->notes, error);
        if (status >= 0) status = cut_state(&run->copies, error);
        status = xph_ranks_tell(trainer, XPH_CALL_RESUME, status, error);
    }
    xph_free(trainer->context, notes, notes_bytes);
    return status;
}

exphil_status xph_ranks_resume(exphil_trainer *trainer, const char *path, exphil_status status,
                               exphil_error *error)
{
    xph_stored_run run = {.copies = {.trainer = trainer}, .loss_scale = 1.0};
    if (status >= 0 && trainer->prefetcher &&
        !trainer->feed.net) { /* as before an update: no memory for it was there */
        const exphil_sampling *sampling = xph_prefetcher_sampling(trainer->prefetcher);
        status = xph_trainer_shape(trainer, sampling->lane_count, sampling->time, error);
    }
    const int64_t lanes = trainer->feed.net ? trainer->feed.batch : 0;
    const struct xph_said own = {.lanes = (double)lanes};
    XPH_TRY(xph_ranks_say(trainer, XPH_CALL_RESUME, own, status, error));
    int64_t first = 0, batch = xph_ranks_lanes(trainer, &first);
    if (trainer->communicator.rank == 0) status = xph_run_read(&run, trainer, path, batch, NULL, error);
    run.copies.first_lane = first;
    run.copies.lanes = lanes;
    status = share(&run, status, error);
    if (status >= 0) status = xph_run_install(&run, error);
    xph_run_free(&run);
    return status;
}
