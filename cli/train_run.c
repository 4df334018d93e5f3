/* The run itself: update after update, with log, checkpoints and Ctrl-C; then the scores. */
#include "train_run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

/* ---- Ctrl-C -------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted, saving;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* Long calls ask this; what is being saved is saved whole. */
static int32_t stop_asked(void *user)
{
    (void)user;
    return interrupted && !saving;
}

/* The second Ctrl-C ends the program as usual. */
static void catch_interrupt(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

/* ---- the log ------------------------------------------------------------------------------------------- */

static bool open_log(train_state *r)
{
    if (!r->options->log) return true;
    r->log = fopen(r->options->log, r->options->resume ? "a" : "w");
    if (r->log) return true;
    return complain_of_file(r->options->log);
}

static void log_object(train_state *r, json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    if (r->log && text) {
        fprintf(r->log, "%s\n", text);
        fflush(r->log);
    }
    free(text);
    json_decref(object);
}

static void log_metrics(train_state *r, const exphil_metrics *m)
{
    if (!r->log) return;
    json_t *heads = json_object();
    for (int64_t h = 0; h < r->spec.head_count; h++)
        json_object_set_new(heads, r->spec.heads[h].name, json_real(m->head_loss[h]));
    log_object(r, json_pack("{s:s,s:I,s:I,s:I,s:f,s:f,s:f,s:f,s:I,s:o}", "kind", "train", "update",
                            (json_int_t)m->update, "epoch", (json_int_t)m->epoch, "frames",
                            (json_int_t)m->frames, "loss", m->loss, "gradient_norm", m->gradient_norm, "rate",
                            m->rate, "frames_per_second", r->frames_per_second, "waited_ns",
                            (json_int_t)m->waited_ns, "heads", heads));
}

/* Says what failed, and notes whether data are at fault; returns false. */
static bool fail(train_state *r, const char *what, const exphil_error *error)
{
    r->damaged = error->status == EXPHIL_E_FORMAT || error->status == EXPHIL_E_IO;
    return complain(what, error) == 0;
}

static bool evaluate(train_state *r, bool held_out, exphil_report *report)
{
    const exphil_dataset *train = r->few ? r->few : r->train, *held = r->few_held ? r->few_held : r->held;
    exphil_error error = EXPHIL_ERROR_INIT;
    int32_t which = r->options->ema > 0.0 ? EXPHIL_WEIGHTS_AVERAGED : EXPHIL_WEIGHTS;
    if (exphil_trainer_evaluate(r->trainer, which, held_out ? held : train, train, report, &error) < 0)
        return fail(r, "evaluation", &error);
    json_t *object = report_json(report, &r->spec);
    json_object_set_new(object, "kind", json_string(held_out ? "held_out" : "train_set"));
    json_object_set_new(object, "update", json_integer(r->done));
    log_object(r, object);
    if (held_out) history_held(&r->history, r->done, report);
    return true;
}

/* The averaged weights are what one plays: they replace the plain ones in the weights file. */
static bool export_average(train_state *r)
{
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (r->options->ema <= 0.0) return true;
    bool fine = exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS_AVERAGED, &model, &error) >= 0 &&
                exphil_model_save(model, r->options->out, &error) >= 0;
    exphil_model_destroy(model);
    return fine || complain("averaged weights", &error) == 0;
}

static bool save(train_state *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!train_notes_take(r)) return false;
    saving = 1;
    bool fine = exphil_trainer_save(r->trainer, r->options->out, &error) >= 0;
    if (!fine) complain(r->options->out, &error);
    fine = fine && export_average(r);
    saving = 0;
    return fine;
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

/* One update and what is due after it. */
static bool one_update(train_state *r, progress *bar)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = exphil_trainer_step(r->trainer, &metrics, &error);
    if (status == EXPHIL_E_NUMERIC) {
        complain("update", &error);
        keep_bad_batch(r, &error);
        r->history.refused++;
        r->skipped++;
        return true;
    }
    if (status == EXPHIL_E_CANCELLED) return true;
    if (status < 0) return fail(r, "update", &error);
    measure(r, &metrics);
    if (due(r->done, r->options->log_every) || r->done == r->updates) log_metrics(r, &metrics);
    progress_show(bar, r->done, r->loss, r->frames_per_second, r->done == r->updates);
    exphil_report report = EXPHIL_REPORT_INIT;
    if (r->held && due(r->done, r->options->eval_every) && !evaluate(r, true, &report))
        return interrupted != 0;
    return !due(r->done, r->options->save_every) || r->done == r->updates || save(r);
}

/* What to do about rows that cannot be read. */
static void advise(const train_state *r)
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
    if (!r->done) {
        fprintf(stderr, "exphil: that was the first update; nothing was written\n");
    } else if (save(r)) {
        fprintf(stderr,
                "exphil: stopped after update %" PRId64 " of %" PRId64
                "; the weights are in %s, the checkpoint is %s.optimizer\n",
                r->done, r->updates, r->options->out, r->options->out);
        advise(r);
    }
    return false;
}

static bool loop(train_state *r)
{
    progress bar;
    int64_t refused = 0;
    progress_begin(&bar, r->done, r->updates, r->options->quiet || r->options->json);
    while (r->done < r->updates && !interrupted) {
        int64_t before = r->done;
        if (!one_update(r, &bar)) return r->damaged && keep_learnt(r);
        refused = r->done == before && !interrupted ? refused + 1 : 0;
        if (refused == 10) {
            fprintf(stderr, "exphil: ten updates in a row were refused; stopping\n");
            return false;
        }
    }
    r->memory = train_memory(r) - r->memory;
    if (!save(r)) return false;
    if (interrupted)
        fprintf(stderr,
                "\nexphil: stopped after update %" PRId64 " of %" PRId64 "; the checkpoint is %s.optimizer, "
                "the same command with --resume goes on\n",
                r->done, r->updates, r->options->out);
    return true;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* Returns false. */
static bool say_unscored(const train_state *r)
{
    if (interrupted) return false;
    fprintf(stderr, "exphil: only the scores are missing: the weights, after update %" PRId64 ", are in %s\n",
            r->done, r->options->out);
    if (r->damaged) advise(r);
    return false;
}

static bool finish(train_state *r)
{
    exphil_report train = EXPHIL_REPORT_INIT, held = EXPHIL_REPORT_INIT;
    train.alone_most_frames =
        r->held ? 0 : r->options->alone; /* where it is scored on what it has not seen */
    held.alone_most_frames = r->options->alone;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    verdict said;
    if (!evaluate(r, false, &train) || (r->held && !evaluate(r, true, &held))) return say_unscored(r);
    if (exphil_model_query(r->model, &info, &error) < 0) return complain("model", &error) == 0;
    if (!train_verdict(r, &train, &held, info.action_slots, &said) || !train_notes_finish(r))
        return say_unscored(r);
    if (r->options->json) {
        json_t *object = json_pack("{s:o,s:s,s:I,s:I,s:f,s:f,s:o}", "weights", path_json(r->options->out),
                                   "blocks", info.blocks, "parameters", (json_int_t)info.parameter_count,
                                   "updates", (json_int_t)r->done, "loss", r->loss, "frames_per_second",
                                   r->frames_per_second, "train", report_json(&train, &r->spec));
        json_object_set_new(object, "trainer_bytes", json_integer((json_int_t)r->memory));
        if (train_weighs(r->options))
            json_object_set_new(object, "effective_share", json_real(r->data.effective_share));
        json_object_set_new(object, "verdict", verdict_json(&said));
        if (r->held) json_object_set_new(object, "held_out", report_json(&held, &r->spec));
        return print_json(object) == 0;
    }
    printf("%s: %s, %" PRId64 " parameters, %" PRId64 " update%s\n", r->options->out, info.blocks,
           info.parameter_count, r->done, plural(r->done));
    printf("the trainer took %.1f MB: weights, moments, gradients, activations, batches\n\non the training "
           "data\n",
           (double)r->memory / 1e6);
    print_report(&train, &r->spec, info.action_slots);
    if (r->held) printf("\nheld out\n");
    if (r->held) print_report(&held, &r->spec, info.action_slots);
    verdict_print(&said);
    return true;
}

/* Lines that were not written, as on a full disk, are reported. */
static bool close_log(train_state *r)
{
    if (!r->log) return true;
    bool fine = !ferror(r->log);
    if (fclose(r->log) == 0 && fine) return true;
    fprintf(stderr, "exphil: --log %s could not be written in full\n", r->options->log);
    return false;
}

static void close_run(train_state *r)
{
    json_decref(r->notes);
    exphil_trainer_destroy(r->trainer);
    exphil_optimizer_destroy(r->optimizer);
    exphil_prefetcher_destroy(r->prefetcher);
    exphil_dataset_destroy(r->few_held);
    exphil_dataset_destroy(r->few);
    exphil_dataset_destroy(r->held);
    exphil_dataset_destroy(r->train);
    exphil_dataset_destroy(r->all);
    exphil_model_destroy(r->model);
    exphil_context_destroy(r->context);
}

int train_run(train_options *options, int count, char **paths)
{
    train_state r = {.options = options, .rows = is_one_corpus(&options->data, count, paths)};
    options->data.cancel = stop_asked;
    catch_interrupt();
    bool ready = train_make(&r, count, paths) && open_log(&r);
    if (ready) train_notes_begin(&r);
    bool trained = ready && loop(&r);
    if (!ready && interrupted)
        fprintf(stderr, "\nexphil: stopped before the first update; nothing was written\n");
    bool stopped = interrupted != 0, fine = trained && !stopped && finish(&r);
    if (trained && !stopped && interrupted)
        fprintf(stderr, "\nexphil: stopped while scoring; the weights are in %s\n", options->out);
    close_run(&r);
    fine = close_log(&r) && fine;
    if (interrupted && (trained || !ready)) return STOPPED;
    return fine ? 0 : 1;
}
