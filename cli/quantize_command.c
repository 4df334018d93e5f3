/* `exphil quantize`: makes weights of fewer bits and measures, on given replays, how far their decisions are
 * from those before. */
#include "commands.h"
#include "files.h"
#include "options.h"
#include "system.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct quantize_options {
    data_options data;
    machine_options machine;
    const char *weights, *out, *type;
    int64_t batch;
    double least;
    bool json, force;
} quantize_options;

/* What a run holds. */
typedef struct quantize_state {
    const quantize_options *options;
    exphil_context *context;
    exphil_model *model, *quantized;
    exphil_spec spec;
    exphil_comparison comparison;
    bool calibrated;
} quantize_state;

static bool read_type(const char *word, int32_t *type)
{
    *type = strcmp(word, "int8") == 0 ? EXPHIL_TYPE_I8 : EXPHIL_TYPE_BF16;
    if (strcmp(word, "int8") == 0 || strcmp(word, "bf16") == 0) return true;
    fprintf(stderr, "exphil: --type wants int8 or bf16, not %s\n", word);
    return false;
}

/* Both models over all frames; the result stays with the new one. */
static bool calibrate(quantize_state *s, int count, char **paths)
{
    const quantize_options *o = s->options;
    exphil_dataset *dataset = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!any_files(&o->data, count)) return true;
    if (!load_dataset(s->context, &s->spec, &o->data, count, paths, &dataset)) return false;
    s->comparison = (exphil_comparison)EXPHIL_COMPARISON_INIT;
    s->calibrated =
        exphil_model_compare(s->model, s->quantized, dataset, o->batch, &s->comparison, &error) >= 0 &&
        exphil_model_calibration_set(s->quantized, &s->comparison, &error) >= 0;
    exphil_dataset_destroy(dataset);
    return s->calibrated || complain("calibration", &error) == 0;
}

static bool good_enough(const quantize_state *s)
{
    if (!s->calibrated || s->comparison.agreement >= s->options->least) return true;
    fprintf(stderr,
            "exphil: %.3f%% of the actions agree, less than --least %g asks for; nothing was written\n",
            100.0 * s->comparison.agreement, s->options->least);
    return false;
}

static int64_t file_bytes(const char *path)
{
    system_facts facts;
    return system_look(path, &facts) ? (int64_t)facts.bytes : 0;
}

static int show(const quantize_state *s)
{
    const quantize_options *o = s->options;
    int64_t before = file_bytes(o->weights), after = file_bytes(o->out);
    if (o->json) {
        json_t *object = json_pack("{s:o,s:s,s:I,s:I}", "weights", path_json(o->out), "type", o->type,
                                   "bytes_before", (json_int_t)before, "bytes", (json_int_t)after);
        if (s->calibrated)
            json_object_set_new(object, "calibration", comparison_json(&s->comparison, &s->spec));
        return print_json(object);
    }
    printf("%s: weights in %s, %" PRId64 " bytes instead of %" PRId64 "\n", o->out, o->type, after, before);
    if (s->calibrated)
        print_comparison(&s->comparison, &s->spec);
    else
        printf("not calibrated: name replays or a corpus after WEIGHTS to see how far its actions differ\n");
    return 0;
}

static int quantize(quantize_state *s, int32_t type, int count, char **paths)
{
    const quantize_options *o = s->options;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!load_weights(s->context, o->weights, "quantize wants WEIGHTS first, then replays or a corpus",
                      &s->model))
        return 1;
    s->spec = (exphil_spec)EXPHIL_SPEC_INIT;
    if (exphil_model_spec(s->model, &s->spec, &error) < 0 ||
        exphil_model_quantize(s->model, type, &s->quantized, &error) < 0)
        return complain(o->weights, &error);
    if (!calibrate(s, count, paths)) return 1;
    if (!good_enough(s)) return 1;
    if (exphil_model_save(s->quantized, o->out, &error) < 0) return complain(o->out, &error);
    return show(s);
}

static int run(const quantize_options *o, int32_t type, int count, char **paths)
{
    quantize_state s = {.options = o};
    if (!open_context(&o->machine, NULL, &s.context)) return 1;
    int status = quantize(&s, type, count, paths);
    exphil_model_destroy(s.quantized);
    exphil_model_destroy(s.model);
    exphil_context_destroy(s.context);
    return status;
}

/* What can be refused before anything is read. */
static bool check_options(const quantize_options *o, int count)
{
    if (!select_check(&o->data.select)) return false;
    if (o->least <= 0.0 || any_files(&o->data, count)) return true;
    fprintf(stderr, "exphil: --least: no replays or corpus to measure it on\n");
    return false;
}

int quantize_command(int argc, char **argv)
{
    quantize_options o = {.type = "int8", .data = {.if_weights = "WEIGHTS comes first, and once"}};
    const option_entry entries[] = {
        {"type", OPTION_TEXT, &o.type, "TYPE", "of the weights: int8 (default) or bf16"},
        {"out", OPTION_TEXT, &o.out, "FILE", "the weights to write (no default)"},
        {"force", OPTION_FLAG, &o.force, NULL, "replace OUT if it is there (default: refuse)"},
        {"least", OPTION_NUMBER, &o.least, "X", "write nothing if fewer actions agree, 0 to 1 (default 0)"},
        FILE_OPTIONS(o.data.files),
        {"batch", OPTION_INT, &o.batch, "N", "sequences at a time (default 16)"},
        {"threads", OPTION_INT, &o.machine.threads, "N", "processor threads (default 0: one per core)"},
        {"device", OPTION_TEXT, &o.machine.device, "NAME", DEVICE_HELP},
        {"memory-limit", OPTION_BYTES, &o.machine.memory_limit, "BYTES", LIMIT_HELP},
        {"isa", OPTION_TEXT, &o.machine.isa, "NAME", ISA_HELP},
        {"json", OPTION_FLAG, &o.json, NULL, "print one JSON object (default: a table)"},
        {NULL, 0, NULL, NULL, "players and games, of replays and corpora of games"},
        SELECT_OPTIONS(o.data.select, "compare on"),
        FRAME_OPTIONS(o.data.select),
        {NULL, 0, NULL, NULL, NULL},
    };
    const option_command command = {
        .usage = "quantize [OPTIONS] --out FILE.safetensors WEIGHTS [FILE...]",
        .about =
            "Rounds the matrices of a policy to fewer bits: 16 (bf16) or 8 (int8) for 32, smaller and\n"
            "faster to play. On FILEs both policies are run (past actions as recorded) and compared; the\n"
            "result is printed and kept in the weights.\n"
            "FILE: " FILES_HELP OR_ROWS_HELP,
        .entry = entries};
    int count, status;
    int32_t type;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count == 0 || !o.out) {
        fprintf(stderr, "exphil: quantize wants %s; see exphil quantize --help\n",
                o.out ? "WEIGHTS" : "--out FILE");
        return 2;
    }
    o.weights = argv[1];
    o.data.threads = o.machine.threads;
    if (!read_type(o.type, &type) || !check_options(&o, count - 1)) return 2;
    o.data.outputs[0].option = "out";
    o.data.outputs[0].path = o.out;
    if (!output_spares("out", o.out, o.weights) || !output_free("out", o.out, OUTPUT_REPLACED, o.force))
        return 1;
    return run(&o, type, count - 1, argv + 2);
}
