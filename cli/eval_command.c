/* `exphil eval` and `exphil corpus`: score a policy on recorded play; pack replays into one file. */
#include "commands.h"
#include "conditions.h"
#include "files.h"
#include "games.h"
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct eval_options {
    data_options data;
    machine_options machine;
    const char *conditions, *play_as;
    int64_t batch, delay, alone; /* delay -1: not given */
    bool json;
} eval_options;

static int evaluate(exphil_context *context, const char *weights, const eval_options *o, int count,
                    char **paths)
{
    exphil_evaluation how = EXPHIL_EVALUATION_INIT;
    int32_t values[EXPHIL_CONDITIONS_MAX], delay = (int32_t)o->delay;
    exphil_model *model = NULL;
    exphil_dataset *dataset = NULL;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    int status = 0;
    report.alone_most_frames = o->alone;
    if (!load_weights(context, weights, "eval wants WEIGHTS first, then replays or a corpus", &model))
        return 1;
    how.batch = o->batch;
    if (o->delay >= 0) how.delay_frames = &delay;
    if (o->play_as) how.conditions = values;
    if (o->play_as && !conditions_play_as(model, o->play_as, values, &how.condition_count))
        status = 2;
    else if (exphil_model_spec(model, &spec, &error) < 0 || exphil_model_query(model, &info, &error) < 0)
        status = complain(weights, &error);
    else if (!load_dataset(context, &spec, &o->data, count, paths, &dataset))
        status = 1;
    else if (exphil_evaluate_as(model, dataset, &how, &report, &error) < 0)
        status = complain(weights, &error);
    else if (o->json)
        status = print_json(report_json(&report, &spec));
    else
        print_report(&report, &spec, info.action_slots);
    exphil_dataset_destroy(dataset);
    exphil_model_destroy(model);
    return status;
}

static const char eval_about[] = "Scores a policy on recorded play, teacher-forced (its past "
                                 "actions are the recorded ones), with two\n"
                                 "baselines beside it: majority, always the commonest action, "
                                 "and copy, always the last one again.\n"
                                 "Alone, its past actions are its own decisions, as in play; a policy "
                                 "that is much worse then repeats what\nit is shown.\n"
                                 "nll is summed over heads and bits; the training objective takes "
                                 "the mean over a head's bits.\n"
                                 "FILE: " FILES_HELP;

int eval_command(int argc, char **argv)
{
    eval_options o = {.data.if_weights = "WEIGHTS comes first, and once", .delay = -1, .alone = ALONE_FRAMES};
    condition_table table = {.count = 0};
    const option_entry entries[] = {
        {"port", OPTION_INT, &o.data.port, "N", "score this port (default: every human player)"},
        {"opponent", OPTION_INT, &o.data.opponent, "N", "the other port (default: the first other player)"},
        {"character", OPTION_TEXT, &o.data.character, "NAME", "only this character (default: any)"},
        {"first", OPTION_INT, &o.data.first, "FRAME", "first game frame (default 0)"},
        {"last", OPTION_INT, &o.data.last, "FRAME", "last game frame (default: all)"},
        FILE_OPTIONS(o.data.files),
        {"conditions", OPTION_TEXT, &o.conditions, "FILE",
         "table file,port,NAME,... of who plays, which the policy is told (default: nothing)"},
        {"play-as", OPTION_TEXT, &o.play_as, "NAME=N", PLAY_AS_HELP},
        {"delay", OPTION_INT, &o.delay, "N", "of a policy with several: score this one (default: all)"},
        {"batch", OPTION_INT, &o.batch, "N", "sequences at a time (default 16)"},
        {"alone", OPTION_INT, &o.alone, "N", ALONE_HELP},
        {"threads", OPTION_INT, &o.machine.threads, "N", "processor threads (default 0: one per core)"},
        {"device", OPTION_TEXT, &o.machine.device, "NAME", DEVICE_HELP},
        {"memory-limit", OPTION_BYTES, &o.machine.memory_limit, "BYTES", LIMIT_HELP},
        {"isa", OPTION_TEXT, &o.machine.isa, "NAME", ISA_HELP},
        {"json", OPTION_FLAG, &o.json, NULL, "print one JSON object (default: text)"},
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
    if (!check_data_options(&o.data)) return 2;
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

/* Of rows of games it is not known how many inputs never change. */
static void print_packed(const char *out, const exphil_dataset_info *info)
{
    printf("%s: %" PRId64 " frames, %" PRId64 " episode%s, %" PRId64 " game%s", out, info->frames,
           info->episodes, plural(info->episodes), info->games, plural(info->games));
    if (info->constant_floats >= 0)
        printf("; %" PRId64 " of %" PRId64 " inputs never change", info->constant_floats, info->float_count);
    printf("\n");
}

static int pack(exphil_context *context, const data_options *data, const char *out, int count, char **paths,
                bool json)
{
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_dataset *dataset = NULL;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    int status = 0;
    if (!preset_spec(data, &spec) || !load_dataset(context, &spec, data, count, paths, &dataset)) return 1;
    if (exphil_dataset_save(dataset, out, &error) < 0 || exphil_dataset_query(dataset, &info, &error) < 0)
        status = complain(out, &error);
    else if (json)
        status = print_json(json_pack("{s:o,s:I,s:I,s:I}", "corpus", path_json(out), "frames",
                                      (json_int_t)info.frames, "episodes", (json_int_t)info.episodes, "games",
                                      (json_int_t)info.games));
    else
        print_packed(out, &info);
    exphil_dataset_destroy(dataset);
    return status;
}

/* Options that choose rows mean nothing to games, and the other way round. */
static bool check_corpus_options(const option_command *command, bool games)
{
    static const char *const of_rows[] = {"layout",    "codec", "port", "opponent",
                                          "character", "first", "last"},
                             *const of_games[] = {"shard-size", "level",   "stored",
                                                  "report",     "threads", "quiet"};
    const char *const *wrong = games ? of_rows : of_games;
    size_t count = games ? sizeof of_rows / sizeof *of_rows : sizeof of_games / sizeof *of_games;
    for (size_t i = 0; i < count; i++) {
        if (!options_given(command, wrong[i])) continue;
        fprintf(stderr, "exphil: --%s goes %s --games\n", wrong[i], games ? "without" : "with");
        return false;
    }
    return true;
}

static struct corpus_options {
    data_options data;
    games_options games;
    const char *out;
    bool of_games, json, force;
} asked = {.data.if_weights = "a corpus is made of replays"};

static const option_entry corpus_entries[] = {
    {"out", OPTION_TEXT, &asked.out, "FILE", "the corpus to write (no default)"},
    {"force", OPTION_FLAG, &asked.force, NULL, "replace OUT if it is there (default: refuse)"},
    FILE_OPTIONS(asked.data.files),
    {"json", OPTION_FLAG, &asked.json, NULL, "print one JSON object (default: text)"},
    {NULL, 0, NULL, NULL, "rows"},
    {"layout", OPTION_TEXT, &asked.data.layout, "NAME", "melee2 (default) or exphil288"},
    {"codec", OPTION_TEXT, &asked.data.codec, "NAME", "exphil81 (default) or exphil81-floor"},
    {"port", OPTION_INT, &asked.data.port, "N", "take this port (default: every human player)"},
    {"opponent", OPTION_INT, &asked.data.opponent, "N", "the other port (default: the first other player)"},
    {"character", OPTION_TEXT, &asked.data.character, "NAME", "only this character (default: any)"},
    {"first", OPTION_INT, &asked.data.first, "FRAME", "first game frame (default 0)"},
    {"last", OPTION_INT, &asked.data.last, "FRAME", "last game frame (default: all)"},
    {NULL, 0, NULL, NULL, "games"},
    {"games", OPTION_FLAG, &asked.of_games, NULL,
     "keep whole games, every frame and player, in about 25 bytes a frame (default: rows)"},
    {"shard-size", OPTION_BYTES, &asked.games.shard_bytes, "BYTES",
     "OUT is a folder of files of about so many bytes, as 256MiB (default: one file; in a folder 1GiB)"},
    {"level", OPTION_INT, &asked.games.level, "N", "of the compression, 1 to 19 (default 3)"},
    {"stored", OPTION_FLAG, &asked.games.stored, NULL,
     "do not compress: ten times the bytes (default: compress)"},
    {"report", OPTION_TEXT, &asked.games.report, "FILE",
     "a table of all files, tab-separated: added, duplicate or refused, and why (default: none)"},
    {"threads", OPTION_INT, &asked.games.threads, "N", "processor threads (default 0: one per core)"},
    {"quiet", OPTION_FLAG, &asked.games.quiet, NULL, "no progress (default: shown; --json: none)"},
    {NULL, 0, NULL, NULL, NULL},
};

static int write_games(int count, char **paths)
{
    asked.games.files = &asked.data.files;
    asked.games.out = asked.out;
    asked.games.force = asked.force;
    asked.games.json = asked.json;
    return games_write(&asked.games, count, paths);
}

int corpus_command(int argc, char **argv)
{
    static bool given[sizeof corpus_entries / sizeof corpus_entries[0]];
    static const option_command command = {
        .usage = "corpus [OPTIONS] --out FILE.corpus FILE...",
        .about =
            "Reads replays once and writes one file that opens in no time: rows for one layout and codec.\n"
            "With --games: what the replays record, for any layout and codec. OUT: a file; or a folder, made "
            "where "
            "its name\nends in /, to which games are added. Games that are there already are not added "
            "again. Ctrl-C "
            "keeps what is\nwhole and ends with status 130.\n"
            "FILE: " FILES_HELP "\n"
            "exphil corpus verify CORPUS... checks every byte of corpora of either kind.",
        .entry = corpus_entries,
        .given = given};
    int count, status;
    exphil_context *context;
    if (argc > 1 && strcmp(argv[1], "verify") == 0) return corpus_verify_command(argc - 1, argv + 1);
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (!any_files(&asked.data, count) || !asked.out) {
        fprintf(stderr, "exphil: corpus wants %s; see exphil corpus --help\n",
                asked.out ? "replays" : "--out FILE");
        return 2;
    }
    if (!check_corpus_options(&command, asked.of_games) || !check_data_options(&asked.data)) return 2;
    if (asked.of_games) return write_games(count, argv + 1);
    asked.data.outputs[0].option = "out";
    asked.data.outputs[0].path = asked.out;
    if (!output_free("out", asked.out, OUTPUT_REPLACED, asked.force)) return 1;
    if (!open_context(NULL, NULL, &context)) return 1;
    status = pack(context, &asked.data, asked.out, count, argv + 1, asked.json);
    exphil_context_destroy(context);
    return status;
}
