/* The run itself: update after update, with log, scores, checkpoints and signals; then the table. */
#include "train_run.h"
#include "stop.h"

#include <inttypes.h>
#include <string.h>

/* ---- scores and lines of the log ------------------------------------------------------------------------- */

static bool open_events(train_state *r)
{
    if (!r->options->tensorboard || !train_first(r)) return true;
    r->log.events = events_open(r->options->tensorboard, r->options->force);
    if (r->log.events && (r->done || r->options->began)) events_resume(r->log.events, r->done);
    return r->log.events != NULL;
}

static void log_metrics(train_state *r, const exphil_metrics *m)
{
    if (!log_wanted(&r->log)) return;
    json_t *heads = json_object();
    for (int64_t h = 0; h < r->spec.head_count; h++)
        json_object_set_new(heads, r->spec.heads[h].name, json_real(m->head_loss[h]));
    json_t *line = json_pack("{s:s,s:I,s:I,s:I,s:f,s:f,s:f,s:f}", "kind", "train", "update",
                             (json_int_t)m->update, "epoch", (json_int_t)m->epoch, "frames",
                             (json_int_t)m->frames, "loss", m->loss, "gradient_norm", m->gradient_norm,
                             "rate", m->rate, "frames_per_second", r->frames_per_second);
    if (r->options->outcome.learns) /* has neither losses of heads nor time to wait */
        outcome_log(r, line);
    else
        json_object_update_new(line,
                               json_pack("{s:I,s:O}", "waited_ns", (json_int_t)m->waited_ns, "heads", heads));
    json_decref(heads);
    log_line(&r->log, line);
}

/* Says what failed, and notes whether data are at fault; returns false. */
static bool fail(train_state *r, const char *what, const exphil_error *error)
{
    r->damaged = error->status == EXPHIL_E_FORMAT || error->status == EXPHIL_E_IO;
    return complain(what, error) == 0;
}

bool evaluate(train_state *r, const exphil_dataset *data, const exphil_dataset *frequencies,
              exphil_report *report, exphil_status *status)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    int32_t which = r->options->ema > 0.0 ? EXPHIL_WEIGHTS_AVERAGED : EXPHIL_WEIGHTS;
    *status = exphil_trainer_evaluate(r->trainer, which, data, frequencies, report, &error);
    return *status >= 0 || fail(r, "evaluation", &error);
}

void log_report(train_state *r, const char *kind, const exphil_report *report)
{
    json_t *object = report_json(report, &r->spec);
    json_object_set_new(object, "kind", json_string(kind));
    json_object_set_new(object, "update", json_integer(r->done));
    log_line(&r->log, object);
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

static bool due(int64_t done, int64_t every)
{
    return every > 0 && done % every == 0;
}

/* The speed of late. After --resume the frames of the run before are in the counter, so the first update here
 * counts as an average one. */
static void measure(train_state *r, const exphil_metrics *m)
{
    double batches = (double)(r->data.batches_per_epoch > 0 ? r->data.batches_per_epoch : 1);
    double frames = (double)(m->frames - r->frames);
    if (r->frames == 0 && r->done > 0)
        frames = (double)r->data.frames_per_epoch / batches * (double)r->options->accumulate;
    double rate = m->time_ns > 0 ? frames * 1e9 / (double)m->time_ns : 0.0;
    r->frames_per_second = r->frames_per_second > 0.0 ? 0.95 * r->frames_per_second + 0.05 * rate : rate;
    r->frames = m->frames;
    r->done = m->update;
    r->loss = m->loss;
    history_update(&r->history, m->loss);
}

/* All ranks fail where one does; rows are damaged where it says so that read them. */
static bool fail_update(train_state *r, const exphil_error *error)
{
    (void)fail(r, "update", error);
    if (!r->options->ranks || train_apart(r, error)) return false;
    bool damaged = r->damaged && strncmp(error->message, "rank ", 5) != 0;
    r->damaged = train_agree(r, true, &damaged) && damaged;
    return false;
}

/* Behind the loss, in the line of progress. */
static void show_words(const train_state *r, char *to, size_t size)
{
    outcome_words(r, to, size);
    size_t used = strlen(to);
    if (ranks_count(r->options->ranks) > 1)
        (void)snprintf(to + used, size - used, "  %" PRId32 " ranks", ranks_count(r->options->ranks));
}

/* A GPU tells of an update in a later call, and of the first one twice. */
static void take(train_state *r, const exphil_metrics *m)
{
    if (m->update <= r->done) return;
    measure(r, m);
    train_estimate(r, m, &r->bar);
    if (due(r->done, r->options->log_every) || r->done == r->updates) log_metrics(r, m);
}

static void take_refused(train_state *r, const exphil_error *error)
{
    if (train_first(r)) complain("update", error);
    keep_bad_batch(r, error);
    r->history.refused++;
    r->skipped++;
}

/* The update that a GPU is still at comes to its end, and counts: what is done at an update is then done at that one. */
static bool settle(train_state *r)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = exphil_trainer_wait(r->trainer, &metrics, &error);
    if (status == EXPHIL_E_NUMERIC)
        take_refused(r, &error);
    else if (status < 0)
        return fail_update(r, &error);
    else
        take(r, &metrics);
    return true;
}

/* Is the next update one at which something is done? */
static bool nears(const train_state *r)
{
    const int64_t next = r->done + 1;
    return next >= r->updates || due(next, r->options->save_every) || due(next, r->every);
}

/* What is due after an update. */
static bool go_on(train_state *r)
{
    char words[224];
    if (watch_due(r) && !watch_score(r)) return train_stopping(r);
    bool last = r->done == r->updates || watch_over(r), save = keep_due(r);
    show_words(r, words, sizeof words);
    progress_show(&r->bar, r->done, r->loss, words, r->frames_per_second, last);
    return train_agree(r, true, &save) && (last || !save || (settle(r) && keep_save(r)));
}

/* One update and what is due after it. */
static bool one_update(train_state *r)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status;
    do
        status = r->options->outcome.learns ? outcome_step(r, &metrics, &error)
                                            : exphil_trainer_step(r->trainer, &metrics, &error);
    while (status < 0 && train_mend(r, &error));
    if (status == EXPHIL_E_NUMERIC) {
        take_refused(r, &error);
        return true;
    }
    if (status == EXPHIL_E_CANCELLED) return !r->options->ranks || train_agree(r, true, NULL);
    if (status < 0) return fail_update(r, &error);
    take(r, &metrics);
    return (!nears(r) || settle(r)) && go_on(r);
}

void train_advise_damage(const train_state *r)
{
    if (r->rows)
        fprintf(stderr, "exphil: make the corpus of rows anew from its replays; ");
    else
        fprintf(stderr,
                "exphil: exphil corpus --out whole.games FILE... keeps what is whole of these FILEs; ");
    fprintf(stderr,
            "a new run on that with --init %s goes on from these weights (--resume wants the same data, "
            "undamaged)\n",
            r->options->out);
}

/* A failed update leaves the trainer as it was before: what the updates before have learnt is kept. Returns false. */
static bool keep_learnt(train_state *r)
{
    if (!r->done && train_first(r)) {
        fprintf(stderr, "exphil: that was the first update; nothing was written\n");
    } else if (r->done && keep_save(r) && train_first(r)) {
        fprintf(stderr,
                "exphil: stopped after update %" PRId64 " of %" PRId64
                "; the weights are in %s, the checkpoint is %s.optimizer\n",
                r->done, r->updates, r->options->out, r->options->out);
        train_advise_damage(r);
    }
    return false;
}

static void say_ended(const train_state *r)
{
    const char *out = r->options->out;
    if (!train_first(r)) return;
    if (r->stopped)
        fprintf(stderr,
                "\nexphil: stopped by %s after update %" PRId64 " of %" PRId64 "; the checkpoint is "
                "%s.optimizer, the same command with --resume goes on\n",
                stop_name(), r->done, r->updates, out);
    else if (r->done < r->updates) {
        int64_t scores = scores_stand(&r->scores, r->options->least_gain).without_gain;
        fprintf(stderr,
                "exphil: ended by --patience after update %" PRId64 " of %" PRId64 ": %" PRId64
                " held-out score%s without a gain\n",
                r->done, r->updates, scores, plural(scores));
    }
}

/* Update after update. A score that a stop kept from being made comes first. */
static bool update_all(train_state *r)
{
    int64_t refused = 0;
    progress_begin(&r->bar, r->done, r->updates, r->options->quiet || r->options->json);
    if (watch_due(r) && !watch_score(r) && !train_stopping(r)) return false;
    while (r->done < r->updates && !train_stopping(r) && !watch_over(r)) {
        int64_t before = r->done;
        if (!one_update(r)) return r->damaged && settle(r) && keep_learnt(r);
        refused = r->done == before && !train_stopping(r) ? refused + 1 : 0;
        if (refused == 10) {
            if (train_first(r)) fprintf(stderr, "exphil: ten updates in a row were refused; stopping\n");
            return false;
        }
    }
    return settle(r);
}

static bool loop(train_state *r)
{
    r->saved_ns = now_ns();
    if (!keep_complete(r)) return false;
    r->running = true;
    if (!update_all(r)) return false;
    r->memory = train_memory(r) - r->memory;
    if (!keep_save(r)) return false;
    r->running = false;
    r->stopped = train_stopping(r);
    say_ended(r);
    return true;
}

static void close_run(train_state *r)
{
    json_decref(r->notes);
    exphil_trainer_destroy(r->trainer);
    exphil_optimizer_destroy(r->optimizer);
    exphil_prefetcher_destroy(r->prefetcher);
    scores_free(&r->scores);
    exphil_dataset_destroy(r->watch);
    exphil_dataset_destroy(r->few_held);
    exphil_dataset_destroy(r->few);
    exphil_dataset_destroy(r->held);
    exphil_dataset_destroy(r->train);
    exphil_dataset_destroy(r->all);
    exphil_model_destroy(r->model);
    exphil_context_destroy(r->context);
}

/* A run that has come to its end is only scored. */
static bool begin(train_state *r, int count, char **paths)
{
    bool over = r->options->resume && (r->done >= r->updates || watch_over(r));
    if (!train_first(r)) {
        log_keep(&r->log, r->done);
        return true;
    }
    if (!train_record(r, count, paths, over) ||
        !log_begin(&r->log, r->options->log, r->options->resume, r->options->force, r->done, over))
        return false;
    if (r->options->resume && !over) train_say_resumed(r);
    if (over)
        fprintf(stderr,
                "exphil: the run has ended: %" PRId64 " of %" PRId64 " updates are made%s; %s goes on\n",
                r->done, r->updates, r->done < r->updates ? ", and --patience is over" : "",
                r->done < r->updates ? "--resume with more --patience"
                                     : "--resume --updates N, or --epochs N, with more");
    return true;
}

/* Before the trainer is there a rank that fails ends the others; from then on all end together. */
static bool make_ready(train_state *r, int count, char **paths)
{
    if (!train_make(r, count, paths)) return false;
    ranks_together(r->options->ranks, true);
    return train_agree(r, watch_plan(r) && begin(r, count, paths) && open_events(r), NULL);
}

/* Scores at the end are of the first rank: the others are no more. */
static bool finish(train_state *r)
{
    return ranks_close(r->options->ranks) && (!train_first(r) || train_finish(r));
}

int train_run(train_options *options, int count, char **paths)
{
    train_state r = {.options = options,
                     .rows = is_one_corpus(&options->data, count, paths),
                     .scores.metric = (score_metric)options->chosen.best};
    options->data.cancel = stop_cancel;
    stop_catch();
    bool ready = make_ready(&r, count, paths), early = !ready && stop_asked(), trained = ready && loop(&r);
    if (early && (train_first(&r) || !r.trainer))
        fprintf(stderr, "\nexphil: stopped by %s before the first update; nothing was written\n",
                stop_name());
    bool fine = trained && !r.stopped && finish(&r), late = trained && !r.stopped && !fine && stop_asked();
    if (late)
        fprintf(stderr, "\nexphil: stopped by %s while scoring; the weights are in %s\n", stop_name(),
                options->out);
    close_run(&r);
    fine = log_end(&r.log) && fine;
    if (early || late || r.stopped) return stop_status();
    return fine ? 0 : 1;
}
