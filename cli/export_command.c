/* `exphil export`: a policy as a file of another format. */
#include "commands.h"
#include "files.h"
#include "options.h"
#include "system.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct export_options {
    const char *weights, *onnx;
    bool int8, json, force;
} export_options;

static int show(const export_options *o, const exphil_model *model)
{
    system_facts facts;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    if (exphil_model_query(model, &info, &error) < 0) return complain(o->weights, &error);
    const int64_t bytes = system_look(o->onnx, &facts) ? (int64_t)facts.bytes : 0;
    const char *weights = weights_word(info.weights);
    if (o->json)
        return print_json(json_pack("{s:o,s:s,s:s,s:I}", "onnx", path_json(o->onnx), "blocks", info.blocks,
                                    "weights", weights, "bytes", (json_int_t)bytes));
    printf("%s: a step of %s, weights in %s, %" PRId64 " bytes\n", o->onnx, info.blocks, weights, bytes);
    return 0;
}

static int run(const export_options *o)
{
    exphil_context *context;
    exphil_model *model = NULL, *narrow = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    int status = 0;
    if (!open_context(NULL, NULL, &context)) return 1;
    if (!load_weights(context, o->weights, "export wants WEIGHTS", &model))
        status = 1;
    else if (o->int8 && exphil_model_quantize(model, EXPHIL_TYPE_I8, &narrow, &error) < 0)
        status = complain(o->weights, &error);
    else if (exphil_model_export_onnx(narrow ? narrow : model, o->onnx, &error) < 0)
        status = complain(o->onnx, &error);
    if (status == 0) status = show(o, narrow ? narrow : model);
    exphil_model_destroy(narrow);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return status;
}

int export_command(int argc, char **argv)
{
    export_options o = {.weights = NULL};
    const option_entry entries[] = {
        {"onnx", OPTION_TEXT, &o.onnx, "FILE", "write the step of one frame as an ONNX graph (no default)"},
        {"int8", OPTION_FLAG, &o.int8, NULL, "quantise to int8 first (default: the weights as they are)"},
        {"force", OPTION_FLAG, &o.force, NULL, "replace FILE if it is there (default: refuse)"},
        {"json", OPTION_FLAG, &o.json, NULL, "print one JSON object (default: a line)"},
        {NULL, 0, NULL, NULL, NULL},
    };
    const option_command command = {
        .usage = "export [OPTIONS] --onnx FILE.onnx WEIGHTS",
        .about =
            "Writes a policy for other runtimes. The graph computes what play computes, a frame at a time, "
            "for any\n"
            "number of streams, with its state as inputs and outputs (doc/onnx.md). Weights of quantize are\n"
            "exported as they play.",
        .entry = entries};
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count != 1 || !o.onnx) {
        fprintf(stderr, "exphil: export wants %s; see exphil export --help\n",
                !o.onnx ? "--onnx FILE" : "WEIGHTS, one file");
        return 2;
    }
    o.weights = argv[1];
    if (!output_spares("onnx", o.onnx, o.weights) || !output_free("onnx", o.onnx, OUTPUT_REPLACED, o.force))
        return 1;
    return run(&o);
}
