/* Ranks that go on without one that was lost, where what joins them can (ranks_shrink). All of them notice in the same call, which
 * has changed nothing then: so it is made again, and the run goes its way. If it was rank 0, which alone writes and tells, the
 * next one takes that up. */
#include "log_write.h"
#include "train_run.h"

#include <inttypes.h>
#include <stdio.h>

/* A call of all that are left: batches of other lanes, then the trainer's own meeting, in which the carried state finds its
 * lanes. */
static bool join(train_state *r)
{
    ranks *all = r->options->ranks;
    exphil_sampling sampling = r->sampling;
    exphil_prefetcher *prefetcher = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    bool fine = train_lanes(r, r->batch, &sampling);
    if (fine && exphil_prefetcher_create(r->train, &sampling, &prefetcher, &error) < 0)
        fine = complain("prefetcher", &error) == 0;
    fine = ranks_all(all, fine);
    if (fine && exphil_trainer_set_communicator(r->trainer, ranks_communicator(all), prefetcher, &error) < 0)
        fine = complain("trainer", &error) == 0;
    if (!fine) {
        exphil_prefetcher_destroy(prefetcher);
        return false;
    }
    exphil_prefetcher_destroy(r->prefetcher);
    r->prefetcher = prefetcher;
    r->sampling = sampling;
    return true;
}

/* OUT.lock is there where this rank sees the folder in which the first one wrote. */
static bool take_over(train_state *r)
{
    train_options *o = r->options;
    o->quiet = o->silent;
    progress_begin(&r->bar, r->done, r->updates, o->quiet || o->json);
    return run_lock_take_over(o->out) && train_take_up(o) && log_take_over(&r->log, o->log, o->tensorboard);
}

static void say(train_state *r, int32_t before)
{
    const int32_t left = ranks_count(r->options->ranks);
    if (!train_first(r)) return;
    fprintf(stderr,
            "\nexphil: warning: %s: lost after update %" PRId64 ": %s of %" PRId32 "; the other %" PRId32
            " go on\n",
            ranks_name(r->options->ranks), r->done, ranks_lost(r->options->ranks), before, left);
}

bool train_mend(train_state *r, const exphil_error *error)
{
    ranks *all = r->options->ranks;
    const int32_t before = ranks_count(all);
    bool first = train_first(r), again = false;
    if (!r->running || error->status != EXPHIL_E_IO) return false;
    while (ranks_shrink(all)) {
        again = true;
        if (!join(r)) continue; /* one more may be lost */
        bool fine = first || !train_first(r) || take_over(r);
        first = train_first(r);
        if (!ranks_all(all, fine)) continue;
        ranks_together(all, true);
        say(r, before);
        json_t *line = json_pack("{s:s,s:I,s:i,s:i}", "kind", "ranks", "update", (json_int_t)r->done, "lost",
                                 (int)(before - ranks_count(all)), "ranks", (int)ranks_count(all));
        log_line(&r->log, line);
        return true;
    }
    if (again) ranks_give_up(all);
    return false;
}
