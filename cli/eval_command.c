/* `exphil eval`: scores a policy on recorded play. */
#include "commands.h"
#include "conditions.h"
#include "examine.h"
#include "notes.h"
#include "options.h"
#include "train_outcome.h"
#include "verdict.h"

#include <exphil/slp.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct eval_options {
    data_options data;
    machine_options machine;
    const char *conditions, *play_as;
    int64_t batch, delay, alone, mistakes; /* delay -1: not given */
    bool json;
} eval_options;

/* What single frames show beside the sums of the report, on stdout or into object. */
static int examine(const exphil_model *model, const exphil_dataset *dataset, const exphil_evaluation *how,
                   const eval_options *o, const exphil_report *scores, const exphil_model_info *policy,
                   json_t *object)
{
    const exam_how asked = {.conditions = how->conditions,
                            .delay = how->delay_frames,
                            .condition_count = how->condition_count,
                            .batch = how->batch,
                            .mistakes = o->mistakes};
    exam found;
    int status = exam_make(model, dataset, &asked, &found) ? 0 : 1;
    if (status == 0 && object) {
        json_object_set_new(object, "examination", exam_json(&found));
        if (o->mistakes) json_object_set_new(object, "mistakes", exam_mistakes_json(&found));
    } else if (status == 0 && o->mistakes) {
        exam_print_mistakes(&found);
    } else if (status == 0) {
        exam_print(&found);
    }
    if (status == 0 && !object) {
        json_t *notes = notes_of(model);
        const verdict_facts facts = {.policy = policy,
                                     .options = json_object_get(notes_train(notes), "options"),
                                     .scored = scores,
                                     .seen = &found};
        verdict_print_scored(&facts);
        json_decref(notes);
    }
    exam_free(&found);
    return status;
}

/* ---- at which ports ---- */

/* Bit 0 is port 1. Rows have none. */
static unsigned ports_of(const exphil_dataset *dataset)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_episode_info e = EXPHIL_EPISODE_INFO_INIT;
    unsigned ports = 0;
    if (exphil_dataset_query(dataset, &info, NULL) < 0) return 0;
    for (int64_t i = 0; i < info.episodes; i++)
        if (exphil_dataset_episode(dataset, i, &e, NULL) >= 0 && e.port >= 1 && e.port <= EXPHIL_SLP_PORTS)
            ports |= 1u << (e.port - 1);
    return ports;
}

/* "port 1", "ports 1, 2 and 4"; to has 24 bytes. Returns the first. */
static int ports_words(unsigned ports, char to[24])
{
    int first = 0, left = 0;
    size_t used = 0;
    for (int p = 0; p < EXPHIL_SLP_PORTS; p++) left += (ports >> p & 1u) != 0;
    used += (size_t)snprintf(to, 24, "port%s", plural(left));
    for (int p = 0; p < EXPHIL_SLP_PORTS; p++) {
        if (!(ports >> p & 1)) continue;
        used += (size_t)snprintf(to + used, 24 - used, "%s %d",
                                 !first      ? ""
                                 : left == 1 ? " and"
                                             : ",",
                                 p + 1);
        if (!first) first = p + 1;
        left--;
    }
    return first;
}

/* Scores of players whom it does not imitate say nothing of what it has learnt. */
static void say_ports(const exphil_model *model, const exphil_dataset *dataset, const select_options *asked)
{
    char trained[24], scored[24];
    json_t *notes = notes_of(model);
    unsigned known = notes_learn(notes) ? 0 : notes_ports(notes_train(notes)), here = ports_of(dataset);
    json_decref(notes);
    if (!known || !(here & ~known) || asked->port || asked->character || asked->characters) return;
    int first = ports_words(known, trained);
    (void)ports_words(here, scored);
    fprintf(stderr, "trained on %s; these scores are of %s: ", trained, scored);
    if (known & (known - 1))
        fprintf(stderr, "--port takes one\n");
    else
        fprintf(stderr, "--port %d\n", first);
}

static int tell(const exphil_model *model, const exphil_dataset *dataset, const exphil_evaluation *how,
                const eval_options *o, const exphil_report *scores, const exphil_spec *spec,
                const exphil_model_info *policy)
{
    json_t *object = o->json ? report_json(scores, spec) : NULL;
    if (!o->json) say_ports(model, dataset, &o->data.select);
    if (!o->json) print_report(scores, spec, policy->action_slots);
    int status = examine(model, dataset, how, o, scores, policy, object);
    if (!o->json) return status;
    if (status == 0) return print_json(object);
    json_decref(object);
    return status;
}

/* Of a policy that was trained on what came of recorded play, how well it tells that here. */
static void ask_value(const exphil_model *model, rewards_options *worth, data_options *data)
{
    json_t *notes = notes_of(model);
    if (outcome_rewards(notes_train(notes), worth)) data->rewards = worth;
    worth->optional = true;
    json_decref(notes);
}

static int evaluate(exphil_context *context, const char *weights, const eval_options *o, int count,
                    char **paths)
{
    exphil_evaluation how = EXPHIL_EVALUATION_INIT;
    int32_t values[EXPHIL_CONDITIONS_MAX], delay = (int32_t)o->delay;
    exphil_model *model = NULL;
    exphil_dataset *dataset = NULL;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_report scores = EXPHIL_REPORT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    data_options data = o->data;
    rewards_options worth;
    int status = 0;
    scores.alone_most_frames = o->alone;
    if (!load_weights(context, weights, "eval wants WEIGHTS first, then replays or a corpus", &model))
        return 1;
    ask_value(model, &worth, &data);
    how.batch = o->batch;
    if (o->delay >= 0) how.delay_frames = &delay;
    if (o->play_as) how.conditions = values;
    if ((o->play_as && !conditions_play_as(model, o->play_as, values, &how.condition_count)) ||
        (o->delay >= 0 && !delay_fits(model, o->delay)))
        status = 2;
    else if (exphil_model_spec(model, &spec, &error) < 0 || exphil_model_query(model, &info, &error) < 0)
        status = complain(weights, &error);
    else if (!load_dataset(context, &spec, &data, count, paths, &dataset))
        status = 1;
    else if (exphil_evaluate_as(model, dataset, &how, &scores, &error) < 0)
        status = complain(weights, &error);
    else
        status = tell(model, dataset, &how, o, &scores, &spec, &info);
    exphil_dataset_destroy(dataset);
    exphil_model_destroy(model);
    return status;
}

static const char eval_about[] =
    "Scores a policy on recorded play, teacher-forced (its past "
    "actions are the recorded ones), with two\n"
    "baselines beside it: majority, always the commonest action, "
    "and copy, always the last one again.\n"
    "Alone, its past actions are its own decisions, as in play; a policy "
    "that is much worse then repeats what\nit is shown.\n"
    "nll is summed over heads and bits; the training objective takes "
    "the mean over a head's bits.\n"
    "exact is the whole action right; top 3, right among the three likeliest; "
    "change, on frames that change the\ninput; freq nll is that of how often each "
    "action occurs.\n"
    "Then, of the same frames: how often each button is pressed, recorded, by the policy's probabilities and "
    "by its "
    "decisions; entropy\n"
    "of its distributions; calibration error, how far its probabilities are from how often it is right; "
    "where it moves the\n"
    "main stick; and scores by character, opponent, stage and phase of the game. --json has all of it.\n"
    "Of a policy that was trained with --value: the variance of what came that its value leaves unexplained, "
    "0 "
    "perfect, 1 as\ngood as the mean.\n"
    "Without --port and --character every human player is scored; where that is at other ports than the "
    "policy was\ntrained on, a line on stderr says so.\n"
    "FILE: " FILES_HELP OR_ROWS_HELP;

int eval_command(int argc, char **argv)
{
    eval_options o = {.data.if_weights = "WEIGHTS comes first, and once", .delay = -1, .alone = ALONE_FRAMES};
    condition_table table = {.count = 0};
    const option_entry entries[] = {
        FILE_OPTIONS(o.data.files),
        {"conditions", OPTION_TEXT, &o.conditions, "FILE",
         "table file,port,NAME,... of who plays, which the policy is told (default: nothing)"},
        {"play-as", OPTION_TEXT, &o.play_as, "NAME=N", PLAY_AS_HELP},
        {"delay", OPTION_INT, &o.delay, "N", "of a policy with several: score this one (default: all)"},
        {"batch", OPTION_INT, &o.batch, "N", "sequences at a time (default 16)"},
        {"alone", OPTION_INT, &o.alone, "N", ALONE_HELP},
        {"mistakes", OPTION_INT, &o.mistakes, "N",
         "show the N frames that cost most, spread over the games, with what was pressed and what is "
         "likeliest "
         "(default 0)"},
        {"threads", OPTION_INT, &o.machine.threads, "N", "processor threads (default 0: one per core)"},
        {"device", OPTION_TEXT, &o.machine.device, "NAME", DEVICE_HELP},
        {"memory-limit", OPTION_BYTES, &o.machine.memory_limit, "BYTES", LIMIT_HELP},
        {"isa", OPTION_TEXT, &o.machine.isa, "NAME", ISA_HELP},
        {"json", OPTION_FLAG, &o.json, NULL, "print one JSON object (default: text)"},
        {NULL, 0, NULL, NULL, "players and games, of replays and corpora of games"},
        SELECT_OPTIONS(o.data.select, "score"),
        FRAME_OPTIONS(o.data.select),
        {NULL, 0, NULL, NULL, NULL},
    };
    const option_command command = {
        .usage = "eval [OPTIONS] WEIGHTS FILE...", .about = eval_about, .entry = entries};
    int count, status;
    exphil_context *context;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count < 1 || !any_files(&o.data, count - 1)) {
        fprintf(stderr, "exphil: eval wants WEIGHTS and then files; see exphil eval --help\n");
        return 2;
    }
    if (!select_check(&o.data.select)) return 2;
    o.data.threads = o.machine.threads;
    if (o.conditions && o.play_as) {
        fprintf(stderr, "exphil: --conditions and --play-as: give one of them\n");
        return 2;
    }
    if (o.conditions && !conditions_read(o.conditions, 0.0, &table)) {
        replay_table_free(&table.of);
        return 1;
    }
    o.data.tables[0] = o.conditions ? &table.of : NULL;
    status = 1;
    if (open_context(&o.machine, NULL, &context)) {
        status = evaluate(context, argv[1], &o, count - 1, argv + 2);
        exphil_context_destroy(context);
    }
    replay_table_free(&table.of);
    return status;
}
