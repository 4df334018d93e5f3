/* Saving a run so that after a kill at any moment it goes on from this checkpoint or the one before.
 *
 * OUT.scores is written before the checkpoint that it belongs to, and what it has beyond that is left out when a run goes
 * on. The best weights are written after the checkpoint of their own update: when they are missing, that checkpoint makes
 * them again. */
#include "stop.h"
#include "system.h"
#include "train_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Has the run anything to say in OUT.scores? */
static bool has_scores(const train_state *r)
{
    return r->held || r->options->keep > 0;
}

static bool remove_file(const train_state *r, const char *path)
{
    return !train_first(r) || system_remove(path) || errno == ENOENT || complain_of_file(path);
}

/* A checkpoint that this run wrote under its number, and its weights; the scores still name it. */
static bool remove_numbered(const train_state *r, size_t index)
{
    char path[TRAIN_PATH], checkpoint[TRAIN_PATH + 16];
    keep_numbered(r->options, r->scores.checkpoints[index], path);
    (void)snprintf(checkpoint, sizeof checkpoint, "%s.optimizer", path);
    return remove_file(r, path) && remove_file(r, checkpoint);
}

/* What rank 0 does for all. A call of all ranks: where it was lost meanwhile, the rank that is the first then does it again. */
static bool by_first(train_state *r, bool (*work)(train_state *r))
{
    int32_t lost;
    do {
        lost = ranks_firsts_lost(r->options->ranks);
        if (!train_agree(r, work(r), NULL)) return false;
    } while (ranks_firsts_lost(r->options->ranks) != lost);
    return true;
}

static bool remove_oldest(train_state *r)
{
    return remove_numbered(r, 0);
}

static bool drop_earlier(train_state *r)
{
    while (r->options->keep > 0 && (int64_t)r->scores.checkpoint_count > r->options->keep) {
        if (!by_first(r, remove_oldest)) return false;
        scores_drop_checkpoint(&r->scores, 0);
    }
    return true;
}

static bool write_scores(train_state *r)
{
    return !has_scores(r) || !train_first(r) || scores_write(&r->scores, r->options->scores);
}

/* A call of all ranks. */
static bool save_as(train_state *r, const char *path)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status;
    do status = exphil_trainer_save(r->trainer, path, &error);
    while (status < 0 && train_mend(r, &error));
    if (status >= 0) return true;
    (void)train_apart(r, &error);
    return complain(path, &error) == 0;
}

/* Under its number too. */
static bool save_numbered(train_state *r)
{
    char path[TRAIN_PATH];
    if (r->options->keep == 0) return true;
    keep_numbered(r->options, r->done, path);
    return save_as(r, path) && drop_earlier(r);
}

static bool remove_others(train_state *r)
{
    return remove_file(r, r->options->scores) && remove_file(r, r->options->best_weights);
}

/* The first save of a new run replaces what another one left: its checkpoint goes before its scores come. */
static bool save_first(train_state *r)
{
    return by_first(r, remove_others) && save_as(r, r->options->out) && by_first(r, write_scores);
}

static bool save_next(train_state *r)
{
    return by_first(r, write_scores) && save_as(r, r->options->out);
}

/* What is to be written under a number is noted before. */
static bool save_all(train_state *r)
{
    r->scores.updates = r->updates;
    bool noted =
        train_notes_take(r) && (r->options->keep <= 0 || scores_keep_checkpoint(&r->scores, r->done));
    return train_agree(r, noted, NULL) && (r->saved || r->options->resume ? save_next(r) : save_first(r)) &&
           save_numbered(r);
}

static bool hold(train_state *r, bool (*write)(train_state *r))
{
    stop_hold(true);
    bool fine = write(r);
    stop_hold(false);
    if (!fine && train_first(r) && system_there(r->options->checkpoint))
        fprintf(stderr,
                "exphil: update %" PRId64 " of %" PRId64
                " was not saved in full; %s is whole, of this save or the one before: --resume goes on from "
                "it\n",
                r->done, r->updates, r->options->checkpoint);
    return fine;
}

bool keep_save(train_state *r)
{
    if (r->saved && r->saved == r->done) return true;
    if (!hold(r, save_all)) return false;
    r->saved = r->done;
    r->saved_ns = now_ns();
    ranks_saved(r->options->ranks);
    return true;
}

static bool write_best(train_state *r)
{
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    int32_t which = r->options->ema > 0.0 ? EXPHIL_WEIGHTS_AVERAGED : EXPHIL_WEIGHTS;
    if (!train_first(r)) return true;
    bool fine = exphil_trainer_model(r->trainer, which, &model, &error) >= 0 &&
                exphil_model_save(model, r->options->best_weights, &error) >= 0;
    exphil_model_destroy(model);
    return fine || complain(r->options->best_weights, &error) == 0;
}

static bool hold_best(train_state *r)
{
    return hold(r, write_best);
}

bool keep_best(train_state *r)
{
    return keep_save(r) && by_first(r, hold_best);
}

bool keep_due(const train_state *r)
{
    const train_options *o = r->options;
    if (o->save_every > 0 && r->done % o->save_every == 0) return true;
    return o->save_minutes > 0.0 && (double)(now_ns() - r->saved_ns) >= o->save_minutes * 60e9;
}

/* ---- going on -------------------------------------------------------------------------------------------- */

static bool check_metric(const train_state *r, const train_scores *found)
{
    if (!found->count || found->metric == r->scores.metric) return true;
    fprintf(stderr,
            "exphil: --best: the run has chosen its best weights by %s so far, this one would by %s\n",
            score_names[found->metric], score_names[r->scores.metric]);
    return false;
}

/* Numbered checkpoints beyond this one are made again, by the clock at other updates. */
static bool drop_later(train_state *r)
{
    for (size_t i = r->scores.checkpoint_count; i-- > 0;)
        if (r->scores.checkpoints[i] > r->done) {
            if (!remove_numbered(r, i)) return false;
            scores_drop_checkpoint(&r->scores, i);
        }
    return true;
}

bool keep_complete(train_state *r)
{
    const train_scores *s = &r->scores;
    char path[TRAIN_PATH];
    standing now = scores_stand(s, r->options->least_gain);
    if (!r->options->resume || !r->done) return true;
    bool fine = drop_later(r) && (!now.best || now.best->update != r->done || hold(r, write_best));
    if (!train_agree(r, fine, NULL)) return false;
    if (now.best && train_first(r) && !system_there(r->options->best_weights))
        fprintf(stderr,
                "exphil: warning: %s, the best weights so far, of update %" PRId64
                ", is not there any more\n",
                r->options->best_weights, now.best->update);
    if (!s->checkpoint_count || s->checkpoints[s->checkpoint_count - 1] != r->done) return true;
    keep_numbered(r->options, r->done, path);
    return save_as(r, path);
}

bool keep_resume(train_state *r)
{
    const train_options *o = r->options;
    train_scores found = {.metric = r->scores.metric};
    bool there = false, fine = !has_scores(r) || scores_read(&found, o->scores, r->done, &there);
    if (!fine || !check_metric(r, &found)) {
        scores_free(&found);
        return false;
    }
    if (!found.count) found.metric = r->scores.metric;
    scores_free(&r->scores);
    r->scores = found;
    return ranks_same(o->ranks, (double)(r->scores.count * 4096 + r->scores.checkpoint_count),
                      "another OUT.scores: --resume wants it in a folder that all ranks see") &&
           (!train_first(r) || keep_numbers_free(o, &r->scores));
}
