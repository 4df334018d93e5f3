/* `exphil report`: a training run as one page. */
#include "commands.h"
#include "files.h"
#include "options.h"
#include "report.h"
#include "run_log.h"
#include "system.h"

#include <stdlib.h>
#include <string.h>

typedef struct report_options {
    const char *html, *eval;
    bool force, json;
} report_options;

/* ---- what there is ------------------------------------------------------------------------------------- */

/* A record beside this log that names it; NULL: there is none. Free it. */
static char *record_of(const char *log)
{
    const char *slash = strrchr(log, '/'), *name = slash ? slash + 1 : log;
    char *folder = slash ? text_part(log, (size_t)(slash - log) + 1) : strdup("./"), *found = NULL;
    system_folder *open = folder ? system_folder_open(folder) : NULL;
    for (const char *entry; open && !found && (entry = system_folder_next(open)) != NULL;) {
        char path[8192];
        if (!name_ends(entry, ".run.json")) continue;
        (void)snprintf(path, sizeof path, "%s%s", slash ? folder : "", entry);
        json_t *record = file_json(path, NULL), *asked = json_object_get(record, "log");
        const char *text = json_string_value(asked), *last = text ? strrchr(text, '/') : NULL;
        if (text && strcmp(last ? last + 1 : text, name) == 0) found = strdup(path);
        json_decref(record);
    }
    if (open) system_folder_close(open);
    free(folder);
    return found;
}

/* The record beside OUT; of STEM.best.safetensors and STEM.1200.safetensors that of OUT, STEM.safetensors or STEM. */
static void record_beside(const char *path, char record[8192])
{
    static const char suffix[] = ".safetensors";
    (void)snprintf(record, 8192, "%s.run.json", path);
    if (system_there(record) || !name_ends(path, suffix)) return;
    size_t length = strlen(path) - strlen(suffix), word = length;
    while (word && path[word - 1] != '.' && path[word - 1] != '/') word--;
    size_t digits = strspn(path + word, "0123456789");
    bool kept = word > 1 && path[word - 1] == '.' && digits && word + digits == length;
    if (!kept && !(length >= 5 && strncmp(path + length - 5, ".best", 5) == 0)) return;
    char other[8192];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(other, sizeof other, "%.*s%s.run.json", (int)word - 1, path, i ? "" : suffix);
        if (system_there(other)) break;
    }
    if (system_there(other)) (void)snprintf(record, 8192, "%s", other);
}

/* RUN may be any of what a run leaves: its log, its weights, its record. */
static bool find_run(run_list *list, const char *path)
{
    char record[8192];
    char *beside = log_at(path) ? record_of(path) : NULL;
    record_beside(path, record);
    const char *take = beside ? beside : file_kind_of(path) == FILE_WEIGHTS ? record : path;
    bool fine = runs_find(list, take);
    free(beside);
    if (!fine) return false;
    runs_read(list);
    if (list->count == 1) return true;
    fprintf(stderr,
            "exphil: %s: report wants one run: a log, or what stands beside the weights, OUT.run.json\n",
            path);
    return false;
}

/* The last line of each kind, whatever kinds there are. */
static bool take_last(void *user, json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    return !kind || json_object_set(user, kind, object) == 0;
}

/* Blocks and numbers of the weights, where they stand beside the record. */
static json_t *weights_facts(const char *path)
{
    exphil_context *context = NULL;
    exphil_model *model = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    json_t *facts = NULL;
    if (file_kind_of(path) != FILE_WEIGHTS || !open_context(NULL, NULL, &context)) return NULL;
    if (load_weights(context, path, "these should be weights", &model) &&
        exphil_model_query(model, &info, NULL) >= 0)
        facts = json_pack("{s:s,s:I}", "blocks", info.blocks, "parameters", (json_int_t)info.parameter_count);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return facts;
}

static bool read_eval(const char *path, json_t **examined)
{
    json_error_t error;
    FILE *file = path ? file_open_text(path) : NULL;
    *examined = file ? json_loadf(file, 0, &error) : NULL;
    if (file) fclose(file);
    if (!path || json_is_object(*examined)) return true;
    if (file)
        fprintf(stderr, "exphil: --eval %s line %d: this wants what exphil eval --json prints: %s\n", path,
                *examined ? 1 : error.line, *examined ? "one object" : error.text);
    return false;
}

/* ---- the command --------------------------------------------------------------------------------------- */

/* A page is replaced as its run goes on; any other file only with --force. */
static bool may_write(const report_options *o)
{
    static const char begins[] = "<!DOCTYPE html>";
    char begin[sizeof begins] = "";
    FILE *file = file_kind_of(o->html) == FILE_OTHER ? file_open(o->html) : NULL;
    bool page =
        file && fread(begin, 1, sizeof begins - 1, file) == sizeof begins - 1 && strcmp(begin, begins) == 0;
    if (file) fclose(file);
    return output_free("html", o->html, OUTPUT_IN_PLACE, o->force || page);
}

static bool write_page(const char *path, const report_parts *parts)
{
    FILE *file = system_open(path, "w");
    if (!file) return complain_of_file(path);
    report_page(file, parts);
    bool fine = !ferror(file);
    if (fclose(file) == 0 && fine) return true;
    return complain_of_file(path);
}

static bool make(const report_options *o, run_list *list, const char *path)
{
    report_parts parts = {.run = NULL};
    json_t *examined = NULL, *weights = NULL, *lines = json_object();
    bool fine = read_eval(o->eval, &examined) && find_run(list, path);
    const run *one = fine ? &list->of[0] : NULL;
    fine = fine && output_spares("html", o->html, path) && output_spares("html", o->html, o->eval) &&
           output_spares("html", o->html, one->log) && may_write(o) &&
           (!one->log || log_each(one->log, take_last, lines));
    if (fine) {
        weights = one->record ? weights_facts(one->name) : NULL;
        parts = (report_parts){.run = one,
                               .by = list->by,
                               .weights = weights,
                               .lines = lines,
                               .examined = examined,
                               .eval = o->eval};
        fine = write_page(o->html, &parts);
    }
    json_decref(lines);
    json_decref(weights);
    json_decref(examined);
    return fine;
}

int report_command(int argc, char **argv)
{
    report_options o = {.html = NULL};
    run_list list = {.by = NULL};
    const option_entry entries[] = {
        {"html", OPTION_TEXT, &o.html, "FILE", "the page to write (no default)"},
        {"eval", OPTION_TEXT, &o.eval, "FILE",
         "what exphil eval --json --mistakes 10 has printed of other data, in the place of the examination "
         "that the log has (default: the log's)"},
        {"force", OPTION_FLAG, &o.force, NULL, "replace FILE if it is no page (default: refuse)"},
        {"json", OPTION_FLAG, &o.json, NULL, "print one JSON object (default: the page's name)"},
        {NULL, 0, NULL, NULL, NULL},
    };
    const option_command command = {
        .usage = "report [OPTIONS] --html FILE RUN",
        .about =
            "Tells a training run on one page of HTML, which needs no network and no script: options, data, "
            "verdict,\ncurves, scores of all parts of the controller, how often buttons are pressed, "
            "calibration, where the main\nstick goes, scores by character and stage, and the frames that "
            "cost most. What the log has not is left out.\n"
            "RUN: the log of exphil train --log, or the weights, the best or earlier ones too, beside which "
            "OUT.run.json\nlies.",
        .entry = entries};
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count != 1 || !o.html) {
        fprintf(stderr, "exphil: report wants %s; see exphil report --help\n",
                o.html ? "one RUN" : "--html FILE");
        return 2;
    }
    bool fine = make(&o, &list, argv[1]);
    runs_free(&list);
    if (!fine) return 1;
    if (o.json) return print_json(json_pack("{s:o}", "html", path_json(o.html)));
    printf("%s\n", o.html);
    return 0;
}
