/* `exphil eval` and `exphil corpus`: score a policy on recorded play; pack replays into one file. */
#include "commands.h"
#include "files.h"
#include "options.h"

#include <inttypes.h>
#include <stdio.h>

static int evaluate(exphil_context *context, const char *weights, const data_options *data, int count,
                    char **paths, int64_t batch, int64_t alone, bool json)
{
    exphil_model *model = NULL;
    exphil_dataset *dataset = NULL;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    int status = 0;
    report.alone_most_frames = alone;
    if (!load_weights(context, weights, "eval wants WEIGHTS first, then replays or a corpus", &model))
        return 1;
    if (exphil_model_spec(model, &spec, &error) < 0 || exphil_model_query(model, &info, &error) < 0)
        status = complain(weights, &error);
    else if (!load_dataset(context, &spec, data, count, paths, &dataset))
        status = 1;
    else if (exphil_evaluate(model, dataset, NULL, NULL, batch, &report, &error) < 0)
        status = complain(weights, &error);
    else if (json)
        status = print_json(report_json(&report, &spec));
    else
        print_report(&report, &spec, info.action_slots);
    exphil_dataset_destroy(dataset);
    exphil_model_destroy(model);
    return status;
}

int eval_command(int argc, char **argv)
{
    data_options data = {.if_weights = "WEIGHTS comes first, and once"};
    machine_options machine = {0};
    int64_t batch = 0, alone = ALONE_FRAMES;
    bool json = false;
    const option_entry entries[] = {
        {"port", OPTION_INT, &data.port, "N", "score this port (default: every human player)"},
        {"opponent", OPTION_INT, &data.opponent, "N", "the other port (default: the first other player)"},
        {"character", OPTION_TEXT, &data.character, "NAME", "only this character (default: any)"},
        {"first", OPTION_INT, &data.first, "FRAME", "first game frame (default 0)"},
        {"last", OPTION_INT, &data.last, "FRAME", "last game frame (default: all)"},
        FILE_OPTIONS(data.files),
        {"batch", OPTION_INT, &batch, "N", "sequences at a time (default 16)"},
        {"alone", OPTION_INT, &alone, "N", ALONE_HELP},
        {"threads", OPTION_INT, &machine.threads, "N", "processor threads (default 0: one per core)"},
        {"device", OPTION_TEXT, &machine.device, "NAME", DEVICE_HELP},
        {"memory-limit", OPTION_BYTES, &machine.memory_limit, "BYTES", LIMIT_HELP},
        {"isa", OPTION_TEXT, &machine.isa, "NAME", ISA_HELP},
        {"json", OPTION_FLAG, &json, NULL, "print one JSON object (default: text)"},
        {NULL, 0, NULL, NULL, NULL},
    };
    const option_command command = {.usage = "eval [OPTIONS] WEIGHTS FILE...",
                                    .about =
                                        "Scores a policy on recorded play, teacher-forced (its past "
                                        "actions are the recorded ones), with two\n"
                                        "baselines beside it: majority, always the commonest action, "
                                        "and copy, always the last one again.\n"
                                        "Alone, its past actions are its own decisions, as in play; a policy "
                                        "that is much worse then repeats what\nit is shown.\n"
                                        "nll is summed over heads and bits; the training objective takes "
                                        "the mean over a head's bits.\n"
                                        "FILE: " FILES_HELP,
                                    .entry = entries};
    int count, status;
    exphil_context *context;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count < 1 || !any_files(&data, count - 1)) {
        fprintf(stderr, "exphil: eval wants WEIGHTS and then files; see exphil eval --help\n");
        return 2;
    }
    if (!check_data_options(&data)) return 2;
    if (!open_context(&machine, NULL, &context)) return 1;
    status = evaluate(context, argv[1], &data, count - 1, argv + 2, batch, alone, json);
    exphil_context_destroy(context);
    return status;
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
        printf("%s: %" PRId64 " frames, %" PRId64 " episode%s, %" PRId64 " game%s; %" PRId64 " of %" PRId64
               " inputs never change\n",
               out, info.frames, info.episodes, plural(info.episodes), info.games, plural(info.games),
               info.constant_floats, info.float_count);
    exphil_dataset_destroy(dataset);
    return status;
}

int corpus_command(int argc, char **argv)
{
    data_options data = {.if_weights = "a corpus is made of replays"};
    const char *out = NULL;
    bool json = false, force = false;
    const option_entry entries[] = {
        {"out", OPTION_TEXT, &out, "FILE", "the corpus to write (no default)"},
        {"force", OPTION_FLAG, &force, NULL, "replace OUT if it is there (default: refuse)"},
        {"layout", OPTION_TEXT, &data.layout, "NAME", "melee2 (default) or exphil288"},
        {"codec", OPTION_TEXT, &data.codec, "NAME", "exphil81 (default) or exphil81-floor"},
        {"port", OPTION_INT, &data.port, "N", "take this port (default: every human player)"},
        {"opponent", OPTION_INT, &data.opponent, "N", "the other port (default: the first other player)"},
        {"character", OPTION_TEXT, &data.character, "NAME", "only this character (default: any)"},
        {"first", OPTION_INT, &data.first, "FRAME", "first game frame (default 0)"},
        {"last", OPTION_INT, &data.last, "FRAME", "last game frame (default: all)"},
        FILE_OPTIONS(data.files),
        {"json", OPTION_FLAG, &json, NULL, "print one JSON object (default: text)"},
        {NULL, 0, NULL, NULL, NULL},
    };
    const option_command command = {.usage = "corpus [OPTIONS] --out FILE.corpus FILE...",
                                    .about = "Reads replays once and writes one file that opens in no time.\n"
                                             "FILE: " FILES_HELP,
                                    .entry = entries};
    int count, status;
    exphil_context *context;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (!any_files(&data, count) || !out) {
        fprintf(stderr, "exphil: corpus wants %s; see exphil corpus --help\n",
                out ? "replays" : "--out FILE");
        return 2;
    }
    if (!check_data_options(&data)) return 2;
    data.outputs[0].option = "out";
    data.outputs[0].path = out;
    if (!output_free("out", out, OUTPUT_REPLACED, force)) return 1;
    if (!open_context(NULL, NULL, &context)) return 1;
    status = pack(context, &data, out, count, argv + 1, json);
    exphil_context_destroy(context);
    return status;
}
