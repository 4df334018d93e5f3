/* The end of a run: scores of the last weights and of the best, the verdict, and the tables. */
#include "train_run.h"

#include "stop.h"

#include <inttypes.h>
#include <stdio.h>

/* Returns false. */
static bool say_unscored(const train_state *r)
{
    if (stop_asked()) return false;
    fprintf(stderr, "exphil: only the scores are missing: the weights, after update %" PRId64 ", are in %s\n",
            r->done, r->options->out);
    if (r->damaged) train_advise_damage(r);
    return false;
}

/* Of what is held out and of the training data; a score of all of that after the last update may be there already, and be
 * in the log. Alone, a policy is measured where it is scored on what it has not seen. */
static bool score_all(train_state *r, exphil_report *train, exphil_report *held)
{
    exphil_status status;
    const exphil_dataset *of = r->few ? r->few : r->train;
    bool logged = !r->watch && scores_have(&r->scores, r->done), scored = logged && r->held_report.frames;
    train->alone_most_frames = r->held ? 0 : r->options->alone;
    held->alone_most_frames = r->options->alone;
    if (scored)
        *held = r->held_report;
    else if (r->held && !evaluate(r, r->few_held ? r->few_held : r->held, of, held, &status))
        return false;
    if (r->held && !logged) log_report(r, r->watch ? "held_out_all" : "held_out", held);
    if (r->held && !logged && !r->watch) history_held(&r->history, r->done, held);
    return evaluate(r, of, of, train, &status);
}

/* The best weights, where they are not the last; frames 0: they are, or nothing is held out, or their file is gone. */
static bool score_best(train_state *r, int64_t *update, exphil_report *best)
{
    standing now = scores_stand(&r->scores, r->options->least_gain);
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_trainer_config config;
    train_losses losses;
    if (!r->held || !now.best || now.best == now.last) return true;
    if (exphil_model_load(r->context, r->options->best_weights, &model, NULL) < 0) return true;
    *update = now.best->update;
    best->alone_most_frames = r->options->alone;
    train_trainer_config(r, &losses, &config);
    exphil_status status = exphil_evaluate(model, r->few_held ? r->few_held : r->held,
                                           r->few ? r->few : r->train, config.losses, 0, best, &error);
    exphil_model_destroy(model);
    if (status < 0) return complain(r->options->best_weights, &error) == 0;
    json_t *line = report_json(best, &r->spec);
    json_object_update_new(line, json_pack("{s:s,s:I,s:I}", "kind", "held_out_best", "update",
                                           (json_int_t)r->done, "of_update", (json_int_t)*update));
    log_line(&r->log, line);
    return true;
}

/* What a run leaves, in scores. */
typedef struct finished {
    exphil_report train, held, best; /* best.frames 0: the last weights are the best */
    int64_t best_update;
    exphil_model_info info;
    verdict said;
} finished;

static bool print_as_json(const train_state *r, const finished *f)
{
    json_t *object = json_pack("{s:o,s:s,s:I,s:I,s:f,s:f,s:o}", "weights", path_json(r->options->out),
                               "blocks", f->info.blocks, "parameters", (json_int_t)f->info.parameter_count,
                               "updates", (json_int_t)r->done, "loss", r->loss, "frames_per_second",
                               r->frames_per_second, "train", report_json(&f->train, &r->spec));
    json_object_set_new(object, "trainer_bytes", json_integer((json_int_t)r->memory));
    if (train_weighs(r->options))
        json_object_set_new(object, "effective_share", json_real(r->data.effective_share));
    json_object_set_new(object, "verdict", verdict_json(&f->said));
    if (r->held) json_object_set_new(object, "held_out", report_json(&f->held, &r->spec));
    watch_json(r, object);
    if (f->best.frames)
        json_object_set_new(json_object_get(object, "best"), "held_out", report_json(&f->best, &r->spec));
    return print_json(object) == 0;
}

/* What is held out is told of the weights that are to be used. */
static void print_held(const train_state *r, const finished *f)
{
    const int64_t slots = f->info.action_slots;
    if (!f->best.frames) {
        printf("\nheld out\n");
        print_report(&f->held, &r->spec, slots);
        printf("\n");
        return;
    }
    printf("\nheld out, the best weights: %s, of update %" PRId64 "\n", r->options->best_weights,
           f->best_update);
    print_report(&f->best, &r->spec, slots);
    printf("\nthe last weights there: exact %.3f%%, ", 100.0 * f->held.exact_accuracy);
    if (f->held.alone_frames && slots) printf("alone %.3f%%, ", 100.0 * f->held.alone_accuracy);
    printf("nll %.5f\n\n", f->held.nll);
}

static bool print(const train_state *r, const finished *f)
{
    printf("%s: %s, %" PRId64 " parameters, %" PRId64 " update%s\n", r->options->out, f->info.blocks,
           f->info.parameter_count, r->done, plural(r->done));
    printf("the trainer took %.1f MB: weights, moments, gradients, activations, batches\n\non the training "
           "data\n",
           (double)r->memory / 1e6);
    print_report(&f->train, &r->spec, f->info.action_slots);
    if (r->held) print_held(r, f);
    watch_print(r);
    verdict_print(&f->said);
    if (r->options->log) print_paragraph("A page of it: exphil report --html run.html %s", r->options->log);
    return true;
}

bool train_finish(train_state *r)
{
    finished f = {.train = EXPHIL_REPORT_INIT,
                  .held = EXPHIL_REPORT_INIT,
                  .best = EXPHIL_REPORT_INIT,
                  .info = EXPHIL_MODEL_INFO_INIT};
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!score_all(r, &f.train, &f.held) || !score_best(r, &f.best_update, &f.best)) return say_unscored(r);
    if (exphil_model_query(r->model, &f.info, &error) < 0) return complain("model", &error) == 0;
    if (!train_verdict(r, &f.train, &f.held, &f.info, &f.said) || !train_notes_finish(r))
        return say_unscored(r);
    log_report(r, "train_set", &f.train); /* the last line: the run is whole */
    return r->options->json ? print_as_json(r, &f) : print(r, &f);
}
