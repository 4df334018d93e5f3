/* The end of a run: the examination of what was held out, the verdict, and the notes and the log that keep them. */
#include "train_run.h"
#include "verdict.h"

enum { MISTAKES = 10 }; /* in the log */

/* What the weights say to what was held out, or to the training data. */
static bool examine(train_state *r, exam *found)
{
    const exphil_dataset *train = r->few ? r->few : r->train, *held = r->few_held ? r->few_held : r->held;
    const exam_how how = {.mistakes = r->log.file ? MISTAKES : 0};
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    int32_t which = r->options->ema > 0.0 ? EXPHIL_WEIGHTS_AVERAGED : EXPHIL_WEIGHTS;
    if (exphil_trainer_model(r->trainer, which, &model, &error) < 0)
        return complain("examination", &error) == 0;
    bool fine = exam_make(model, r->held ? held : train, &how, found);
    exphil_model_destroy(model);
    return fine;
}

static void log_examination(train_state *r, const exam *found, const verdict *v)
{
    if (r->log.file)
        log_line(&r->log,
                 json_pack("{s:s,s:I,s:s,s:o,s:o,s:o}", "kind", "examination", "update", (json_int_t)r->done,
                           "of", r->held ? "held_out" : "train_set", "verdict", verdict_json(v),
                           "examination", exam_json(found), "mistakes", exam_mistakes_json(found)));
}

bool train_verdict(train_state *r, const exphil_report *train, const exphil_report *held,
                   const exphil_model_info *policy, verdict *v)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT, held_info = EXPHIL_DATASET_INFO_INIT;
    verdict_case c;
    exam found = {.dataset = NULL};
    bool fine = examine(r, &found) && exphil_dataset_query(r->train, &info, NULL) >= 0;
    if (fine) {
        const verdict_facts facts = {.policy = policy,
                                     .options = r->options->given,
                                     .scored = r->held ? held : train,
                                     .train = train,
                                     .seen = &found,
                                     .of = &r->history};
        verdict_measure(&facts, &c);
        c.held = r->held != NULL;
        c.frames = info.frames;
        c.games = info.games;
        if (r->held && exphil_dataset_query(r->held, &held_info, NULL) >= 0) c.held_games = held_info.games;
        c.updates = r->done;
        c.passes = train_passes(r);
        verdict_of(&c, v);
        json_object_set_new(r->notes, "verdict", verdict_json(v));
        json_object_set_new(r->notes, "measured", verdict_case_json(&c));
        log_examination(r, &found, v);
    }
    exam_free(&found);
    return fine;
}
