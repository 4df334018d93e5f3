/* `exphil runs`: a table of training runs, and in which options they differ. */
#include "commands.h"
#include "options.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- order and differences ----------------------------------------------------------------------------- */

static bool more_is_better; /* qsort hands nothing on */

static int by_score(const void *a, const void *b)
{
    const run *one = a, *two = b;
    if (one->scored != two->scored) return one->scored ? -1 : 1;
    if (one->scored && (one->best < two->best || one->best > two->best))
        return (one->best < two->best) == more_is_better ? 1 : -1;
    return strcmp(one->name, two->name);
}

void runs_sort(run_list *list)
{
    more_is_better = field_is_share(list->by);
    if (list->count) qsort(list->of, list->count, sizeof *list->of, by_score);
}

/* Where results go differs always, what is printed changes nothing, and updates have a column of their own. */
static bool says_nothing(const char *name)
{
    static const char *const names[] = {"out", "log", "tensorboard", "quiet", "json", "updates"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* An option that the version of a run did not have was not asked for. */
static bool same(const json_t *a, const json_t *b)
{
    if (!a || json_is_null(a)) return !b || json_is_null(b);
    return b && json_equal(a, b);
}

static bool differs(const run_list *list, const char *name)
{
    const json_t *first = NULL;
    bool any = false;
    for (size_t i = 0; i < list->count; i++) {
        const json_t *value = json_object_get(list->of[i].options, name);
        if (!list->of[i].options) continue;
        if (any && !same(first, value)) return true;
        first = value;
        any = true;
    }
    return false;
}

json_t *runs_differences(const run_list *list)
{
    json_t *names = json_array(), *seen = json_object(), *value;
    const char *name;
    for (size_t i = 0; i < list->count; i++) json_object_foreach(list->of[i].options, name, value)
        {
            if (says_nothing(name) || json_object_get(seen, name)) continue;
            json_object_set_new(seen, name, json_true());
            if (differs(list, name)) json_array_append_new(names, json_string(name));
        }
    json_decref(seen);
    return names;
}

/* ---- the table ----------------------------------------------------------------------------------------- */

enum { CELL = 40, FACTS = 6, LEAST = 10, WIDE = 120 };

/* What follows the last slash, but for one at the end. */
static const char *last_part(const char *path)
{
    size_t length = strlen(path);
    while (length && path[length - 1] == '/') length--;
    while (length && path[length - 1] != '/') length--;
    return path + length;
}

/* "fox.games", "fox.games +2": the others are counted. */
static void files_text(const json_t *files, char text[CELL + 1])
{
    const char *first = json_string_value(json_array_get(files, 0));
    size_t others = json_array_size(files);
    char more[24] = "";
    if (others > 1) (void)snprintf(more, sizeof more, " +%zu", others - 1);
    (void)snprintf(text, CELL + 1, "%.*s%s", CELL - (int)strlen(more), first ? last_part(first) : "-", more);
}

/* As a person would type it; files without their folders. */
static void option_text(const run *one, const char *name, char text[CELL + 1])
{
    const json_t *value = json_object_get(one->options, name);
    char *dumped = NULL;
    const char *plain = json_string_value(value);
    if (json_is_array(value)) {
        files_text(value, text);
        return;
    }
    if (!one->options)
        plain = "?";
    else if (!value || json_is_null(value))
        plain = "-";
    else if (!plain)
        plain = dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(10));
    bool cut = plain && strlen(plain) > CELL;
    (void)snprintf(text, CELL + 1, "%.*s%s", cut ? CELL - 3 : CELL, plain ? plain : "", cut ? "..." : "");
    free(dumped);
}

static void fact_text(const run *one, int column, char text[CELL + 1])
{
    text[0] = 0;
    if (column == 0)
        (void)snprintf(text, CELL + 1, "%.10s %.5s", one->started, one->started[0] ? one->started + 11 : "");
    else if (column == 1 && !one->log)
        (void)snprintf(text, CELL + 1, "?/%.0f", one->planned);
    else if (column == 1 && one->planned > 0.0)
        (void)snprintf(text, CELL + 1, "%.0f/%.0f", one->updates, one->planned);
    else if (column == 1)
        (void)snprintf(text, CELL + 1, "%.0f", one->updates);
    else if (column == 2 && one->speed > 0.0)
        (void)snprintf(text, CELL + 1, "%.0f", one->speed);
    else if (column == 3 && one->scored)
        (void)snprintf(text, CELL + 1, "%.5f", one->best);
    else if (column == 4 && one->scored)
        (void)snprintf(text, CELL + 1, "%.0f", one->best_update);
    else if (column == 5 && one->scored)
        (void)snprintf(text, CELL + 1, "%.5f", one->last);
    if (!text[0]) (void)snprintf(text, CELL + 1, "-");
}

/* Row -1 is the heading. Records may be anybody's. */
static void cell_text(const run_list *list, const json_t *names, long row, size_t column, char text[CELL + 1])
{
    static const char *const facts[FACTS] = {"started (UTC)", "updates", "frames/s", "best", "at", "last"};
    const char *option = column < FACTS ? NULL : json_string_value(json_array_get(names, column - FACTS));
    char plain[CELL + 1];
    if (row < 0)
        (void)snprintf(plain, CELL + 1, "%s", option ? option : facts[column]);
    else if (option)
        option_text(&list->of[row], option, plain);
    else
        fact_text(&list->of[row], (int)column, plain);
    foreign_text(plain, text, CELL + 1);
}

/* The widest columns of options give way, down to their heading. */
static void narrow(const run_list *list, const json_t *names, size_t *widths, size_t columns)
{
    size_t total = strlen("run");
    for (size_t i = 0; i < list->count; i++)
        if (strlen(list->of[i].name) > total) total = strlen(list->of[i].name);
    for (size_t column = 0; column < columns; column++) total += widths[column] + 2;
    for (; total > WIDE; total--) {
        size_t widest = 0;
        for (size_t column = FACTS; column < columns; column++) {
            size_t heading = strlen(json_string_value(json_array_get(names, column - FACTS)));
            bool may = widths[column] > (heading > LEAST ? heading : LEAST);
            if (may && (!widest || widths[column] > widths[widest])) widest = column;
        }
        if (!widest) return;
        widths[widest]--;
    }
}

/* Of a path the end says most. */
static void print_cell(const char *text, size_t width)
{
    size_t length = strlen(text);
    if (length <= width)
        printf("%*s  ", (int)width, text);
    else if (strchr(text, '/'))
        printf("...%s  ", text + length - (width - 3));
    else
        printf("%.*s...  ", (int)width - 3, text);
}

/* Columns as wide as what stands in them; the name is the last, as it may be long. */
static bool print_table(const run_list *list, const json_t *names)
{
    char text[CELL + 1], name[4096];
    size_t columns = FACTS + json_array_size(names), *widths = calloc(columns, sizeof *widths);
    if (!widths) {
        fprintf(stderr, "exphil: no memory for a table of %zu columns\n", columns);
        return false;
    }
    for (long row = -1; row < (long)list->count; row++)
        for (size_t column = 0; column < columns; column++) {
            cell_text(list, names, row, column, text);
            if (strlen(text) > widths[column]) widths[column] = strlen(text);
        }
    narrow(list, names, widths, columns);
    printf("best and last: held-out %s\n", list->by);
    for (long row = -1; row < (long)list->count; row++) {
        for (size_t column = 0; column < columns; column++) {
            cell_text(list, names, row, column, text);
            print_cell(text, widths[column]);
        }
        foreign_text(row < 0 ? "run" : list->of[row].name, name, sizeof name);
        printf("%s\n", name);
    }
    free(widths);
    return true;
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static json_t *known(bool is, double number)
{
    return is ? json_real(number) : json_null();
}

static json_t *run_json(const run *one, const json_t *names)
{
    json_t *options = one->options ? json_object() : json_null(), *name;
    size_t i;
    json_array_foreach(names, i, name)
    {
        json_t *value = json_object_get(one->options, json_string_value(name));
        if (one->options) json_object_set(options, json_string_value(name), value ? value : json_null());
    }
    return json_pack("{s:o,s:o,s:s,s:I,s:o,s:o,s:o,s:o,s:o,s:o}", "run", path_json(one->name), "log",
                     one->log ? path_json(one->log) : json_null(), "started", one->started, "updates",
                     (json_int_t)one->updates, "planned",
                     one->planned > 0.0 ? json_integer((json_int_t)one->planned) : json_null(),
                     "frames_per_second", known(one->speed > 0.0, one->speed), "best",
                     known(one->scored, one->best), "best_update",
                     one->scored ? json_integer((json_int_t)one->best_update) : json_null(), "last",
                     known(one->scored, one->last), "options", options);
}

static int print_runs(const run_list *list, json_t *names)
{
    json_t *runs = json_array();
    for (size_t i = 0; i < list->count; i++) json_array_append_new(runs, run_json(&list->of[i], names));
    return print_json(json_pack("{s:s,s:O,s:o}", "by", list->by, "differ", names, "runs", runs));
}

int runs_command(int argc, char **argv)
{
    run_list list = {.by = NULL};
    bool json = false;
    const option_entry entries[] = {
        {"by", OPTION_TEXT, &list.by, "NAME",
         "order by this field of the held-out scores: nll, loss, exact_accuracy, alone_accuracy, ... "
         "(default: "
         "what all runs chose their best weights by, --best, else nll)"},
        {"json", OPTION_FLAG, &json, NULL, "print one JSON object (default: a table)"},
        {NULL, 0, NULL, NULL, NULL},
    };
    const option_command command = {
        .usage = "runs [OPTIONS] DIR...",
        .about =
            "A table of the training runs in folders: how far they came, how fast, their best and last "
            "held-out\n"
            "scores, and the options in which they differ; the best first. A run is known by its "
            "OUT.run.json, "
            "which\n"
            "exphil train writes, and by its log, which is looked for beside it and where it was written; a "
            "log "
            "alone\n"
            "counts too. Held-out scores want train --held-out and --log, and --eval-every for more than the "
            "last.",
        .entry = entries};
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count == 0) {
        fprintf(stderr, "exphil: runs wants folders; see exphil runs --help\n");
        return 2;
    }
    status = 0;
    for (int i = 1; i <= count && status == 0; i++) status = runs_find(&list, argv[i]) ? 0 : 1;
    if (status == 0 && !list.count) {
        fprintf(stderr, "exphil: no run in %s: neither OUT.run.json nor a log\n", argv[1]);
        status = 1;
    }
    if (status == 0) {
        runs_read(&list);
        runs_sort(&list);
        json_t *names = runs_differences(&list);
        if (json)
            status = print_runs(&list, names);
        else
            status = print_table(&list, names) ? 0 : 1;
        json_decref(names);
    }
    runs_free(&list);
    return status;
}
