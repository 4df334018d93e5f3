/* Training logs as series of numbers. */
#include "run_log.h"

#include "files.h"
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of exphil train, and of exphil learn. */
static const char *const kinds[] = {"train", "held_out", "train_set", "held_out_all"}, *const of_learn[] = {
                                                                                           "learn", "match",
                                                                                           "score"};

int log_kind(const json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    for (int i = 0; kind && i <= LOG_ALL; i++)
        if (strcmp(kind, kinds[i]) == 0 || (i < LOG_ALL && strcmp(kind, of_learn[i]) == 0)) return i;
    return -1;
}

const json_t *log_number(const json_t *object, const char *field)
{
    char name[128];
    for (const char *slash; (slash = strchr(field, '/')) != NULL; field = slash + 1) {
        (void)snprintf(name, sizeof name, "%.*s", (int)(slash - field), field);
        object = json_object_get(object, name);
    }
    object = json_object_get(object, field);
    return json_is_number(object) ? object : NULL;
}

bool log_each(const char *path, bool (*take)(void *user, json_t *object), void *user)
{
    FILE *file = file_open(path);
    char *line = NULL;
    size_t capacity = 0;
    ptrdiff_t bytes;
    bool fine = file != NULL;
    long torn = 0;
    static char told[4096]; /* of one file once */
    for (long number = 1; fine && (bytes = system_line(&line, &capacity, file)) > 0; number++) {
        json_t *object = json_loads(line, 0, NULL);
        if (json_is_object(object)) {
            fine = take(user, object);
            if (!fine) fprintf(stderr, "exphil: %s line %ld: no memory\n", path, number);
        } else if (line[bytes - 1] == '\n' && !torn++ && strncmp(told, path, sizeof told - 1) != 0) {
            (void)snprintf(told, sizeof told, "%s", path);
            fprintf(stderr, "exphil: warning: %s line %ld is not a JSON object; such lines are passed over\n",
                    path, number);
        }
        json_decref(object);
    }
    free(line);
    if (file) fclose(file);
    return fine;
}

bool log_at(const char *path)
{
    enum { MOST = 1 << 16 };
    if (file_kind_of(path) != FILE_OTHER) return false;
    FILE *file = file_open(path);
    char *line = file ? malloc(MOST) : NULL;
    int first = file ? getc(file) : EOF;
    json_t *object = NULL;
    if (line && first == '{' && ungetc(first, file) == first && fgets(line, MOST, file))
        object = json_loads(line, 0, NULL);
    bool log = object && json_is_string(json_object_get(object, "kind"));
    json_decref(object);
    free(line);
    if (file) fclose(file);
    return log;
}

/* ---- series -------------------------------------------------------------------------------------------- */

static bool add_point(log_series *s, double x, double y)
{
    if (s->count && s->at[s->count - 1].x >= x) s->count--; /* scored once more */
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 256;
        point *more = realloc(s->at, capacity * sizeof *more);
        if (!more) return false;
        s->at = more;
        s->capacity = capacity;
    }
    s->at[s->count++] = (point){x, y};
    return true;
}

typedef struct reading {
    log_series *series;
    size_t count;
    double last, trained; /* update of the line before; of the last of training */
} reading;

/* A run that goes on from a checkpoint makes updates again that are in the log. */
static void go_back(reading *r, double update)
{
    for (size_t i = 0; i < r->count; i++) {
        log_series *s = &r->series[i];
        while (s->count && s->at[s->count - 1].x >= update) s->count--;
    }
}

static bool take_line(void *user, json_t *object)
{
    reading *r = user;
    int kind = log_kind(object);
    const json_t *update = log_number(object, "update"), *value;
    if (kind < 0 || !update) return true;
    double x = json_number_value(update);
    if (x < r->last || (kind == LOG_TRAIN && x <= r->trained)) go_back(r, x);
    r->last = x;
    if (kind == LOG_TRAIN) r->trained = x;
    for (size_t i = 0; i < r->count; i++)
        if (r->series[i].kind == kind && (value = log_number(object, r->series[i].field)) != NULL &&
            !add_point(&r->series[i], x, json_number_value(value)))
            return false;
    return true;
}

bool log_read(const char *path, log_series *series, size_t count)
{
    reading r = {.series = series, .count = count, .last = -1.0, .trained = -1.0};
    return log_each(path, take_line, &r);
}

void log_free(log_series *series, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(series[i].at);
        series[i].at = NULL;
        series[i].count = series[i].capacity = 0;
    }
}
