/* Walks through folders for what training runs have left. */
#include "runs.h"

#include "commands.h"
#include "files.h"
#include "run_log.h"
#include "system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECORD ".run.json"

bool field_is_share(const char *field)
{
    return strstr(field, "accuracy") || strstr(field, "exact_") || strstr(field, "_share");
}

/* ---- what lies there ----------------------------------------------------------------------------------- */

typedef struct found {
    char *path;
    uint64_t device, number;
    bool log; /* else a record */
} found;

/* system_walk hands nothing on to its visitor. */
static struct {
    found *of;
    size_t count, capacity;
    bool full;
} seen;

static int visit(const char *path, const system_facts *facts)
{
    bool record = name_ends(path, RECORD);
    if (!facts->regular || (!record && !log_at(path))) return 0;
    if (seen.count == seen.capacity) {
        size_t capacity = seen.capacity ? 2 * seen.capacity : 64;
        found *more = realloc(seen.of, capacity * sizeof *more);
        if (!more) return seen.full = true;
        seen.of = more;
        seen.capacity = capacity;
    }
    char *copy = strdup(path);
    if (!copy) return seen.full = true;
    seen.of[seen.count++] =
        (found){.path = copy, .device = facts->device, .number = facts->number, .log = !record};
    return 0;
}

static void forget(void)
{
    for (size_t i = 0; i < seen.count; i++) free(seen.of[i].path);
    free(seen.of);
    memset(&seen, 0, sizeof seen);
}

/* ---- one run ------------------------------------------------------------------------------------------- */

static void day_of(int64_t time, char text[24])
{
    struct tm date;
    if (system_date(time, true, &date)) (void)strftime(text, 24, "%Y-%m-%dT%H:%M:%SZ", &date);
}

/* The file beside the record, where folders were moved together; else where it was written. */
static char *log_of(const char *record, const char *log)
{
    const char *slash = strrchr(record, '/'), *name = strrchr(log, '/');
    size_t folder = slash ? (size_t)(slash - record) + 1 : 0, bytes;
    name = name ? name + 1 : log;
    bytes = folder + strlen(name) + 1;
    char *path = malloc(bytes);
    if (path) (void)snprintf(path, bytes, "%.*s%s", (int)folder, record, name);
    if (path && log_at(path)) return path;
    free(path);
    return log_at(log) ? strdup(log) : NULL;
}

/* Asked for and not, in one; what the program chose in place of nothing. */
static json_t *options_of(json_t *record)
{
    static const char *const facts[] = {"version", "started", "defaults", "chosen"};
    json_t *options = json_copy(json_object_get(record, "defaults"));
    if (!options) return NULL;
    json_object_update(options, record);
    json_object_update(options, json_object_get(record, "chosen"));
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) json_object_del(options, facts[i]);
    return options;
}

static bool read_log(run *one, const char *by)
{
    log_series series[] = {{.kind = LOG_TRAIN, .field = "frames_per_second"},
                           {.kind = LOG_HELD, .field = by},
                           {.kind = LOG_TRAIN, .field = "loss"},
                           {.kind = LOG_ALL, .field = by}};
    bool fine = log_read(one->log, series, 4), more = field_is_share(by);
    const log_series *held = series[1].count ? &series[1] : &series[3]; /* alone: perhaps at the end only */
    if (fine && series[2].count) one->updates = series[2].at[series[2].count - 1].x;
    if (fine && series[0].count) one->speed = series[0].at[series[0].count - 1].y;
    for (size_t i = 0; fine && i < held->count; i++) {
        double y = held->at[i].y;
        if (i == 0 || (more ? y > one->best : y < one->best)) one->best = y, one->best_update = held->at[i].x;
        one->last = y;
        one->scored = true;
    }
    log_free(series, 4);
    return fine;
}

static run *add_run(run_list *list)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        run *more = realloc(list->of, capacity * sizeof *more);
        if (!more) return NULL;
        list->of = more;
        list->capacity = capacity;
    }
    list->of[list->count] = (run){.started = ""};
    return &list->of[list->count++];
}

static void free_run(run *one)
{
    free(one->name);
    free(one->log);
    json_decref(one->record);
    json_decref(one->options);
}

static bool leave_out(run_list *list, size_t at, const char *path, const char *why)
{
    fprintf(stderr, "exphil: %s: %s; it is left out\n", path, why);
    free_run(&list->of[at]);
    list->count--;
    memmove(&list->of[at], &list->of[at + 1], (list->count - at) * sizeof *list->of);
    return true;
}

/* Marks the log as taken: it is no run of its own. */
static void take_log(const char *path)
{
    system_facts facts;
    if (!system_look(path, &facts)) return;
    for (size_t i = 0; i < seen.count; i++) {
        const found *one = &seen.of[i];
        if (one->log && (facts.number ? one->device == facts.device && one->number == facts.number
                                      : system_same_name(one->path, path)))
            one->path[0] = 0;
    }
}

static bool add_record(run_list *list, const char *path)
{
    json_error_t error;
    run *one = add_run(list);
    if (!one) return false;
    one->record = file_json(path, &error);
    one->options = options_of(one->record);
    if (!one->options)
        return leave_out(list, list->count - 1, path,
                         one->record ? "this is no record of a run" : error.text);
    one->name = text_part(path, strlen(path) - strlen(RECORD));
    if (!one->name) return false;
    const char *started = json_string_value(json_object_get(one->record, "started")),
               *log = json_string_value(json_object_get(one->options, "log"));
    (void)snprintf(one->started, sizeof one->started, "%.23s", started ? started : "");
    one->planned = json_number_value(json_object_get(one->options, "updates"));
    one->log = log ? log_of(path, log) : NULL;
    if (one->log) take_log(one->log);
    return true;
}

static bool add_log(run_list *list, const char *path)
{
    system_facts facts;
    run *one = add_run(list);
    if (!one) return false;
    one->name = strdup(path);
    one->log = strdup(path);
    if (!one->name || !one->log) return false;
    if (system_look(path, &facts)) day_of(facts.modified, one->started);
    return true;
}

bool runs_find(run_list *list, const char *path)
{
    if (file_kind_of(path) == FILE_UNREADABLE) return complain_of_file(path);
    bool walked = system_walk(path, visit) == 0, fine = walked;
    int why = errno;
    for (size_t i = 0; fine && i < seen.count; i++)
        if (!seen.of[i].log) fine = add_record(list, seen.of[i].path);
    for (size_t i = 0; fine && i < seen.count; i++)
        if (seen.of[i].log && seen.of[i].path[0]) fine = add_log(list, seen.of[i].path);
    if (!fine)
        fprintf(stderr, "exphil: %s: %s\n", path,
                walked || seen.full ? "no memory for what lies there" : strerror(why));
    forget();
    return fine;
}

/* ---- their scores -------------------------------------------------------------------------------------- */

/* The field of --best in a log. */
static const char *field_of(const run *one)
{
    static const char *const fields[][2] = {{"nll", "nll"},
                                            {"loss", "loss"},
                                            {"exact", "exact_accuracy"},
                                            {"change", "exact_change_accuracy"},
                                            {"alone", "alone_nll"},
                                            {"unexplained", "unexplained"}};
    const char *best = json_string_value(json_object_get(one->options, "best"));
    for (size_t i = 0; best && i < sizeof fields / sizeof fields[0]; i++)
        if (strcmp(best, fields[i][0]) == 0) return fields[i][1];
    return fields[0][1];
}

void runs_read(run_list *list)
{
    const char *by = list->count ? field_of(&list->of[0]) : "nll";
    for (size_t i = 1; i < list->count; i++)
        if (strcmp(field_of(&list->of[i]), by) != 0) by = "nll";
    if (!list->by) list->by = by;
    for (size_t i = 0; i < list->count;) {
        run *one = &list->of[i];
        char *log = one->log && !read_log(one, list->by) ? strdup(one->log) : NULL;
        if (log)
            (void)leave_out(list, i, log, "that is damaged");
        else
            i++;
        free(log);
    }
}

void runs_free(run_list *list)
{
    for (size_t i = 0; i < list->count; i++) free_run(&list->of[i]);
    free(list->of);
    list->of = NULL;
    list->count = list->capacity = 0;
}
