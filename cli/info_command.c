/* `exphil info`: what a file holds, by its kind. */
#include "commands.h"
#include "files.h"
#include "games.h"
#include "info_plan.h"
#include "network.h"
#include "notes.h"
#include "options.h"
#include "slp_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static json_t *tensors_json(const exphil_model *model, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) {
        exphil_tensor_info tensor = EXPHIL_TENSOR_INFO_INIT;
        if (exphil_model_tensor_info(model, i, &tensor, NULL) < 0) continue;
        json_t *shape = json_array();
        for (int32_t d = 0; d < tensor.rank; d++) json_array_append_new(shape, json_integer(tensor.dim[d]));
        json_array_append_new(list, json_pack("{s:s,s:o}", "name", tensor.name, "shape", shape));
    }
    return list;
}

static void print_tensors(const exphil_model *model, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        exphil_tensor_info tensor = EXPHIL_TENSOR_INFO_INIT;
        if (exphil_model_tensor_info(model, i, &tensor, NULL) < 0) continue;
        printf("  %-40s [", tensor.name);
        for (int32_t d = 0; d < tensor.rank; d++) printf("%s%" PRId64, d ? ", " : "", tensor.dim[d]);
        printf("]\n");
    }
}

/* What one stream of a session takes to save; 0: no session can be made. */
static size_t snapshot_bytes(const exphil_model *model)
{
    exphil_session *session = NULL;
    size_t bytes = 0;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_sampling told = EXPHIL_SAMPLING_INIT;
    if (exphil_model_sampling(model, &told, NULL) < 0) return 0;
    config.delay_frames = &told.delay_frames; /* of several the longest; the size is that of all */
    if (exphil_session_create(model, &config, &session, NULL) >= 0)
        bytes = exphil_session_state_size(session);
    exphil_session_destroy(session);
    return bytes;
}

/* In window mode no state is carried: a session keeps the frames of the window instead. */
static void print_state(const exphil_model *model, const exphil_model_info *info)
{
    printf("a stream's snapshot %zu bytes", snapshot_bytes(model));
    if (info->mode == EXPHIL_MODE_CARRY)
        printf(", of which recurrent state %" PRIu64 "\n", info->state_bytes);
    else
        printf(": the frames of a window; state inside a window %" PRIu64 ", never kept\n",
               info->state_bytes);
}

static void print_told(const exphil_model *model)
{
    exphil_sampling told = EXPHIL_SAMPLING_INIT;
    if (exphil_model_sampling(model, &told, NULL) < 0) return;
    for (int64_t i = 0; i < told.delay_count; i++)
        printf("%s %d%s", i ? "," : "one policy for the delays", told.delays[i],
               i == told.delay_count - 1 ? "\n" : "");
    for (int64_t i = 0; i < told.condition_count; i++)
        printf("%s %s=0..%d%s", i ? "," : "is told", told.conditions[i].name, told.conditions[i].values,
               i == told.condition_count - 1 ? " (--play-as; 0: not known)\n" : "");
}

static void told_json(const exphil_model *model, json_t *object)
{
    exphil_sampling told = EXPHIL_SAMPLING_INIT;
    json_t *delays = json_array(), *conditions = json_array();
    if (exphil_model_sampling(model, &told, NULL) >= 0) {
        for (int64_t i = 0; i < told.delay_count; i++)
            json_array_append_new(delays, json_integer(told.delays[i]));
        for (int64_t i = 0; i < told.condition_count; i++) {
            const exphil_condition_spec *c = &told.conditions[i];
            json_array_append_new(conditions, json_pack("{s:s,s:i,s:f}", "name", c->name, "values", c->values,
                                                        "mask", c->mask));
        }
    }
    json_object_set_new(object, "delays", delays);
    json_object_set_new(object, "conditions", conditions);
}

static int show_model(const exphil_model *model, const exphil_model_info *info, bool json)
{
    static const char *const mode[] = {"carry", "window"}, *const heads[] = {"independent", "autoregressive"};
    exphil_comparison calibration = EXPHIL_COMPARISON_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    bool calibrated = info->calibrated && exphil_model_spec(model, &spec, NULL) >= 0 &&
                      exphil_model_calibration_get(model, &calibration, NULL) >= 0;
    char hash[20];
    json_t *notes = notes_of(model);
    snprintf(hash, sizeof hash, "%016" PRIx64, info->weights_hash);
    if (json) {
        json_t *object =
            json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:i,s:i,s:I,s:I,s:I,s:s,s:s,s:o}", "kind", "weights",
                      "blocks", info->blocks, "layout", info->layout, "codec", info->codec, "mode",
                      mode[info->mode], "heads", heads[info->heads], "hidden", (json_int_t)info->hidden,
                      "parameters", (json_int_t)info->parameter_count, "delay_frames", info->delay_frames,
                      "action_slots", info->action_slots, "state_bytes", (json_int_t)info->state_bytes,
                      "trained_updates", (json_int_t)info->trained_updates, "trained_frames",
                      (json_int_t)info->trained_frames, "weights_hash", hash, "weights",
                      weights_word(info->weights), "tensors", tensors_json(model, info->tensor_count));
        json_object_set_new(object, "snapshot_bytes", json_integer((json_int_t)snapshot_bytes(model)));
        json_object_set_new(object, "neutral_start", json_integer(info->neutral_start));
        told_json(model, object);
        network_json(info, object);
        if (notes) json_object_set_new(object, "notes", notes);
        if (calibrated) json_object_set_new(object, "calibration", comparison_json(&calibration, &spec));
        return print_json(object);
    }
    printf("policy of %" PRId64 " parameters: %s, hidden %" PRId64 ", %s heads\n", info->parameter_count,
           info->blocks, info->hidden, heads[info->heads]);
    printf("observes %s, acts in %s, mode %s, delay %d, %d past actions as input\n", info->layout,
           info->codec, mode[info->mode], info->delay_frames, info->action_slots);
    if (info->delay_frames)
        printf("past actions at an episode's start: %s\n",
               info->neutral_start ? "neutral, as in play" : "recorded ones in training, neutral in play");
    network_print(info);
    print_told(model);
    print_state(model, info);
    if (info->weights != info->type)
        printf("matrices in %s%s\n", weights_word(info->weights),
               calibrated ? ", compared" : ", not compared");
    if (calibrated) print_comparison(&calibration, &spec);
    print_tensors(model, info->tensor_count);
    /* The end of a long list is what is seen. */
    printf("trained %" PRIu64 " update%s on %" PRIu64 " frames, each counted in every pass; weights %s\n",
           info->trained_updates, plural((int64_t)info->trained_updates), info->trained_frames, hash);
    notes_print(notes);
    json_decref(notes);
    return 0;
}

static int model_plan(exphil_context *context, const char *path, const plan_options *options, bool json)
{
    exphil_model *model = NULL;
    if (!load_weights(context, path, "", &model)) return 1;
    int status = show_plan(model, path, options, json);
    exphil_model_destroy(model);
    return status;
}

static int model_info(exphil_context *context, const char *path, bool json)
{
    exphil_model *model = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!load_weights(context, path, "", &model)) return 1;
    int status = exphil_model_query(model, &info, &error) < 0 ? complain(path, &error) : 0;
    if (status == 0) status = show_model(model, &info, json);
    exphil_model_destroy(model);
    return status;
}

static int show_corpus(const exphil_dataset_info *info, bool json)
{
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, info->content_hash);
    if (json) {
        return print_json(json_pack(
            "{s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:b,s:s}", "kind", "corpus", "layout", info->layout, "codec",
            info->codec, "frames", (json_int_t)info->frames, "episodes", (json_int_t)info->episodes, "games",
            (json_int_t)info->games, "floats", (json_int_t)info->float_count, "constant_floats",
            (json_int_t)info->constant_floats, "recovered", info->recovered, "content_hash", hash));
    }
    printf("corpus of %" PRId64 " frames, %" PRId64 " episode%s, %" PRId64 " game%s%s\n", info->frames,
           info->episodes, plural(info->episodes), info->games, plural(info->games),
           info->recovered ? " (torn tail: only whole episodes)" : "");
    printf("%s / %s: %" PRId64 " floats (%" PRId64 " never change), %" PRId64 " ids, %" PRId64
           " heads; content %s\n",
           info->layout, info->codec, info->float_count, info->constant_floats, info->id_count,
           info->head_count, hash);
    return 0;
}

static int corpus_info(exphil_context *context, const char *path, bool json)
{
    exphil_dataset *dataset = NULL;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_dataset_open(context, path, &dataset, &error) < 0) return complain(path, &error);
    bool fine =
        exphil_dataset_verify(dataset, &error) >= 0 && exphil_dataset_query(dataset, &info, &error) >= 0;
    int status = fine ? 0 : complain(path, &error);
    if (status == 0) status = show_corpus(&info, json);
    exphil_dataset_destroy(dataset);
    return status;
}

static int replay_info(char *path, bool json)
{
    char slp[] = "slp", info[] = "info", flag[] = "--json";
    char *arguments[] = {slp, info, path, json ? flag : NULL, NULL};
    return slp_command(json ? 4 : 3, arguments);
}

/* ARCHIVE:ENTRY is no file's name. */
static bool holds_replays(const char *path, file_kind kind)
{
    return kind == FILE_REPLAY || kind == FILE_ARCHIVE || (kind == FILE_UNREADABLE && strchr(path, ':'));
}

static int file_info(exphil_context *context, const char *path, file_kind kind, bool json)
{
    if (games_at(path)) return games_summary(context, path, json);
    if (kind == FILE_CORPUS) return corpus_info(context, path, json);
    if (kind == FILE_WEIGHTS) return model_info(context, path, json);
    file_refuse(path, kind, "info wants one file");
    return 1;
}

int info_command(int argc, char **argv)
{
    bool json = false, plan = false, given[8] = {false};
    plan_options planned = {.batch = 1};
    machine_options machine = {.threads = 1};
    const option_entry entries[] = {
        {"json", OPTION_FLAG, &json, NULL, "print one JSON object (default: text)"},
        {"plan", OPTION_FLAG, &plan, NULL,
         "of weights: the operations of a session's step, with kernel, shape, bytes that move and scratch"},
        {NULL, 0, NULL, NULL, "of a plan:"},
        {"batch", OPTION_INT, &planned.batch, "N", "streams (default 1)"},
        {"time", OPTION_INT, &planned.time, "N", "frames (default: what a step computes, 1 or the window)"},
        {"train", OPTION_FLAG, &planned.train, NULL, "forward and backward of an update (default: a step)"},
        {"device", OPTION_TEXT, &machine.device, "NAME", DEVICE_HELP},
        {NULL, 0, NULL, NULL, NULL}};
    const option_command command = {
        .usage = "info [--json] [--plan [--batch N] [--time N] [--train] [--device NAME]] FILE",
        .given = given,
        .about =
            "What a file holds: weights, a corpus of rows or of games (a folder, too) or a replay, told "
            "apart "
            "by their\ncontent. Of replays, and of the games of a corpus, exphil slp info tells more.\n"
            "A policy's snapshot is what exphil_session_state_size tells: all that one stream needs to go "
            "on.\n"
            "Columns of a plan: part of the network; operation; kernel, the function that was chosen for "
            "this\n"
            "machine; bytes that must be read and written at least, weights included; scratch, bytes of "
            "memory "
            "that\nthe operation needs for itself; shape, its dimensions.",
        .entry = entries};
    int count, status;
    exphil_context *context;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count != 1) {
        fprintf(stderr, "exphil: info wants one file; see exphil info --help\n");
        return 2;
    }
    for (int i = 3; i < 7 && !plan; i++)
        if (given[i]) {
            fprintf(stderr, "exphil: --%s goes with --plan\n", entries[i].name);
            return 2;
        }
    file_kind kind = file_kind_of(argv[1]);
    if (plan && kind != FILE_WEIGHTS) {
        file_refuse(argv[1], kind, "--plan wants weights");
        return 1;
    }
    if (holds_replays(argv[1], kind)) return replay_info(argv[1], json);
    if (!open_context(plan ? &machine : NULL, NULL, &context)) return 1;
    status = plan ? model_plan(context, argv[1], &planned, json) : file_info(context, argv[1], kind, json);
    exphil_context_destroy(context);
    return status;
}
