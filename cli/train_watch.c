/* Scores of what is held out while a run goes on: how often, on what, and what follows from them. They cost about a tenth of a
 * long run where the options do not say otherwise, and depend on updates alone, never on a clock. */
#include "train_run.h"

#include "stop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Scores of a run, and how many there are in any; frames learnt from for each that is scored, all scores together: scoring goes
 * forward only, in about half of the time. Fewer frames than these say little, and cost seconds. */
enum { SCORES_MOST = 20, SCORES_LEAST = 5, FRAMES_FOR_ONE = 8, FRAMES_LEAST = 20000, ALONE_LEAST = 5000 };

static const exphil_dataset *all_held(const train_state *r)
{
    return r->few_held ? r->few_held : r->held;
}

static const exphil_dataset *watched(const train_state *r)
{
    return r->watch ? r->watch : all_held(r);
}

/* games NULL: not asked for. */
static bool frames_in(const exphil_dataset *data, int64_t *frames, int64_t *games)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_dataset_query(data, &info, &error) < 0) return complain("dataset", &error) == 0;
    *frames = info.frames;
    if (games) *games = info.games;
    return true;
}

/* ---- how often, and on what ------------------------------------------------------------------------------- */

/* Frames that the run learns from, all updates together. */
static double frames_of_run(const train_state *r)
{
    double batches = (double)(r->data.batches_per_epoch > 0 ? r->data.batches_per_epoch : 1);
    return (double)r->updates * (double)r->options->accumulate * (double)r->data.frames_per_epoch / batches;
}

/* Of all that is held out, or of a part where that would be scored too seldom: so much that the end of a game has frames to
 * score behind the delay. */
static void choose_part(train_state *r, double spare, int64_t held, int64_t games)
{
    const train_options *o = r->options;
    double least = fmax((double)games * ((double)r->sampling.delay_frames + 2.0), FRAMES_LEAST);
    if (o->eval_every < 0 && spare < (double)SCORES_LEAST * (double)held)
        r->scores.most_frames = (int64_t)fmax(spare / SCORES_LEAST, least);
    if (r->scores.metric != SCORE_ALONE) return;
    double alone = fmax(spare / 2.0 / SCORES_MOST, ALONE_LEAST);
    r->scores.alone_frames = o->eval_every < 0 && alone < (double)o->alone ? (int64_t)alone : o->alone;
}

/* The end of each game: of every game something. */
static bool draw_part(train_state *r, int64_t held)
{
    exphil_split_config config = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset *rest = NULL;
    int64_t most = r->scores.most_frames;
    if (!most || most >= held) return true;
    config.held_out = (double)most / (double)held;
    config.by = EXPHIL_SPLIT_TIME;
    exphil_status status = exphil_dataset_split(all_held(r), &config, &rest, &r->watch, &error);
    exphil_dataset_destroy(rest);
    return status >= 0 || status == EXPHIL_E_INVALID ||
           complain("split", &error) == 0; /* too little to divide */
}

static int64_t choose_every(const train_state *r, double spare)
{
    double count = fmin(floor(spare / fmax((double)r->scores.frames, 1.0)), SCORES_MOST);
    if (r->options->eval_every >= 0) return r->options->eval_every;
    return (int64_t)ceil((double)r->updates / fmax(count, SCORES_LEAST));
}

static bool same_frames(const train_state *r, int64_t frames)
{
    if (!r->scores.count || r->scores.frames == frames) return true;
    fprintf(stderr,
            "exphil: --score-frames: the scores so far are of %" PRId64 " frames, this run's would be of "
            "%" PRId64 "\n",
            r->scores.frames, frames);
    return false;
}

static void say_part(const train_state *r, int64_t held)
{
    if (r->options->quiet || r->options->json || !r->watch) return;
    fprintf(stderr,
            "while it runs %" PRId64 " of %" PRId64
            " held-out frames, the end of each game, are scored every %" PRId64 " updates (--eval-every)\n",
            r->scores.frames, held, r->every);
}

bool watch_plan(train_state *r)
{
    int64_t held = 0, games = 0, frames = 0;
    double spare = frames_of_run(r) / FRAMES_FOR_ONE;
    if (!r->held) return true;
    if (!frames_in(all_held(r), &held, &games)) return false;
    if (!r->scores.count) choose_part(r, spare, held, games);
    if (!draw_part(r, held)) return false;
    if (!frames_in(watched(r), &frames, NULL) || !same_frames(r, frames)) return false;
    r->scores.frames = frames;
    r->every = choose_every(r, spare);
    say_part(r, held);
    return true;
}

bool watch_due(const train_state *r)
{
    bool last = r->done == r->updates, wanted = r->every > 0 && r->done % r->every == 0;
    return r->held && r->done > 0 && (last || wanted) && !scores_have(&r->scores, r->done);
}

/* ---- a score ------------------------------------------------------------------------------------------------ */

static held_score none(int64_t update)
{
    held_score one = {.update = update};
    for (int m = 0; m < SCORE_METRICS; m++) one.of[m] = NAN;
    return one;
}

/* Weights that have become infinite are a score too, the worst. In full, for the table at the end, the policy is measured
 * alone too, and the baselines are those of the training data, which takes a pass over them. */
static bool measure(train_state *r, bool in_full, held_score *one)
{
    exphil_status status;
    const exphil_dataset *data = watched(r), *train = r->few ? r->few : r->train;
    *one = none(r->done);
    r->held_report = (exphil_report)EXPHIL_REPORT_INIT;
    r->held_report.alone_most_frames = in_full ? r->options->alone : r->scores.alone_frames;
    if (evaluate(r, data, in_full ? train : data, &r->held_report, &status))
        *one = score_of(r->done, &r->held_report);
    else
        r->held_report.frames = 0;
    return status >= 0 || status == EXPHIL_E_NUMERIC;
}

bool watch_score(train_state *r)
{
    held_score one, again;
    bool last = r->done == r->updates && !r->watch;
    if (!train_agree(r, measure(r, last, &one), &r->damaged)) return false;
    bool fine = scores_add(&r->scores, &one);
    if (fine && !last && !r->watch && watch_over(r)) fine = measure(r, true, &again);
    if (!train_agree(r, fine, &r->damaged)) return false;
    if (r->held_report.frames) {
        log_report(r, "held_out", &r->held_report);
        history_held(&r->history, r->done, &r->held_report);
    }
    standing now = scores_stand(&r->scores, r->options->least_gain);
    const int m = (int)r->scores.metric;
    (void)snprintf(r->words, sizeof r->words, "  held out %s %.4f, best %.4f", score_names[m], one.of[m],
                   now.best->of[m]);
    return now.best != now.last || keep_best(r);
}

bool watch_over(const train_state *r)
{
    const train_options *o = r->options;
    return o->patience > 0 && scores_stand(&r->scores, o->least_gain).without_gain >= o->patience;
}

/* ---- the end -------------------------------------------------------------------------------------------------- */

void watch_print(const train_state *r)
{
    const train_options *o = r->options;
    standing now = scores_stand(&r->scores, o->least_gain);
    const char *name = score_names[r->scores.metric];
    char of[80] = "";
    if (!now.best) return;
    double best = now.best->of[r->scores.metric], last = now.last->of[r->scores.metric];
    if (r->watch)
        (void)snprintf(of, sizeof of, " on the %" PRId64 " frames that are scored while it runs",
                       r->scores.frames);
    if (now.best == now.last)
        print_paragraph("The last weights, of update %" PRId64
                        ", are the best by held-out %s%s, %.5f: %s and %s are "
                        "the same.",
                        now.best->update, name, of, best, o->out, o->best_weights);
    else
        print_paragraph("Held-out %s%s was best at update %" PRId64
                        ", %.5f: those weights are %s. After the last, "
                        "update %" PRId64 ", it is %.5f: %s.",
                        name, of, now.best->update, best, o->best_weights, now.last->update, last, o->out);
}

void watch_json(const train_state *r, json_t *object)
{
    const train_options *o = r->options;
    standing now = scores_stand(&r->scores, o->least_gain);
    const int m = (int)r->scores.metric;
    if (!now.best) return;
    json_t *best = json_pack("{s:o,s:s,s:I,s:I,s:b}", "weights", path_json(o->best_weights), "by",
                             score_names[m], "update", (json_int_t)now.best->update, "without_gain",
                             (json_int_t)now.without_gain, "stopped_early", watch_over(r));
    if (isfinite(now.best->of[m])) json_object_set_new(best, "score", json_real(now.best->of[m]));
    if (isfinite(now.last->of[m])) json_object_set_new(best, "last_score", json_real(now.last->of[m]));
    json_object_set_new(object, "best", best);
}
