/* See log_write.h. */
#include "log_write.h"

#include "commands.h"
#include "files.h"
#include "run_log.h"
#include "system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool is_regular(const char *path)
{
    system_facts facts;
    return system_look(path, &facts) && facts.regular;
}

static bool is_kind(const json_t *line, const char *kind)
{
    const char *word = json_string_value(json_object_get(line, "kind"));
    return word && strcmp(word, kind) == 0;
}

/* ---- a log that is there already ----------------------------------------------------------------------- */

/* Lines that were torn, by a kill, a full disk or a loss of power, are nobody's. */
bool log_is_unfinished(const char *path)
{
    system_facts facts;
    bool empty = system_look(path, &facts) && facts.regular && facts.bytes == 0;
    FILE *file = empty || log_at(path) ? system_open(path, "r") : NULL;
    char *text = NULL;
    size_t capacity = 0;
    bool unfinished = file != NULL;
    while (unfinished && system_line(&text, &capacity, file) > 0) {
        json_t *line = json_loads(text, 0, NULL);
        unfinished = !line || (json_object_get(line, "kind") && !is_kind(line, "train_set") &&
                               !is_kind(line, "score"));
        json_decref(line);
    }
    free(text);
    if (file) fclose(file);
    return unfinished;
}

/* The first free name of LOG.1, LOG.2, ... */
static bool move_away(const char *path)
{
    system_facts facts;
    char other[SYSTEM_PATH];
    if (!system_look(path, &facts) || !facts.regular || facts.bytes == 0) return true;
    for (int i = 1; i < 1000000; i++) {
        if (snprintf(other, sizeof other, "%s.%d", path, i) >= (int)sizeof other) break;
        if (system_taken(other)) continue;
        if (!system_rename(path, other)) break;
        fprintf(stderr, "exphil: %s is of a run that did not come to its end; it is %s now\n", path, other);
        return true;
    }
    return complain_of_file(path);
}

/* ---- the log of a run that goes on ----------------------------------------------------------------------- */

/* Lines beyond the checkpoint will come again, and those of the end too if the run is only scored again: the examination, of
 * the training data, of all that is held out where only some of it was scored while it ran, and of fresh episodes. What is no
 * line, as after a kill or on a full disk, goes. */
static bool stays(int64_t done, bool over, const char *text)
{
    json_t *line = json_loads(text, 0, NULL), *update = json_object_get(line, "update");
    int64_t at = json_is_integer(update) ? json_integer_value(update) : 0;
    bool again =
        over && (is_kind(line, "examination") || is_kind(line, "train_set") ||
                 is_kind(line, "held_out_all") || is_kind(line, "held_out_best") || is_kind(line, "score"));
    bool fine = json_is_object(line) && at <= done && !(again && at == done);
    json_decref(line);
    return fine;
}

typedef struct kept_lines {
    char *text;
    size_t bytes;
    int64_t dropped;
} kept_lines;

static bool read_lines(int64_t done, bool over, FILE *file, kept_lines *kept)
{
    char *line = NULL;
    size_t capacity = 0, space = 0;
    ptrdiff_t length;
    bool fine = true;
    while (fine && (length = system_line(&line, &capacity, file)) > 0) {
        if (!stays(done, over, line) || line[length - 1] != '\n') {
            kept->dropped++;
            continue;
        }
        if (!kept->text || kept->bytes + (size_t)length > space) {
            space = 2 * (kept->bytes + (size_t)length);
            char *more = realloc(kept->text, space);
            fine = more != NULL;
            if (!fine) break;
            kept->text = more;
        }
        memcpy(kept->text + kept->bytes, line, (size_t)length);
        kept->bytes += (size_t)length;
    }
    free(line);
    if (!fine) fprintf(stderr, "exphil: no memory for the log\n");
    return fine;
}

/* A link stays one. What is no log stays as it is. */
static bool cut(const char *log, int64_t done, bool over)
{
    kept_lines kept = {NULL, 0, 0};
    system_facts facts;
    if (system_look(log, &facts) && facts.regular && facts.bytes > 0 && !log_at(log)) {
        fprintf(stderr, "exphil: --log %s: this is no log of exphil, to which lines could be added\n", log);
        return false;
    }
    char *path = is_regular(log) ? system_real(log) : NULL;
    FILE *file = path ? system_open(path, "r") : NULL;
    bool fine = !file || read_lines(done, over, file, &kept);
    if (file) fclose(file);
    if (fine && kept.dropped) fine = file_write_whole(path, kept.text ? kept.text : "", kept.bytes);
    free(kept.text);
    free(path);
    return fine;
}

bool log_begin(log_writer *to, const char *path, bool resume, bool force, int64_t done, bool over)
{
    to->path = path;
    if (!path) return true;
    if (resume ? !cut(path, done, over) : !force && !move_away(path)) return false;
    to->file = system_open(path, resume ? "a" : "w");
    return to->file || complain_of_file(path);
}

/* ---- lines ----------------------------------------------------------------------------------------------- */

bool log_wanted(const log_writer *to)
{
    return to->file || to->events || to->kept;
}

static void keep_line(log_writer *to, json_t *object)
{
    const json_t *update = json_object_get(object, "update");
    if (json_is_integer(update) && json_integer_value(update) != to->kept_of) {
        to->kept_of = json_integer_value(update);
        json_array_clear(to->kept);
    }
    json_array_append(to->kept, object);
}

void log_keep(log_writer *to, int64_t done)
{
    to->kept = json_array();
    to->kept_of = done + 1; /* what was done before is not made again */
}

bool log_take_over(log_writer *to, const char *path, const char *folder)
{
    json_t *kept = to->kept, *line;
    size_t i;
    to->kept = NULL;
    bool fine = log_begin(to, path, true, false, to->kept_of - 1, false);
    if (fine && folder) {
        to->events = events_open(folder, false);
        fine = to->events != NULL;
        if (fine) events_resume(to->events, to->kept_of - 1);
    }
    if (fine) json_array_foreach(kept, i, line) log_line(to, json_incref(line));
    json_decref(kept);
    return fine;
}

void log_line(log_writer *to, json_t *object)
{
    if (to->kept && object) keep_line(to, object);
    if (to->events) events_write(to->events, object, (double)time(NULL));
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    if (to->file && text) {
        bool before = ferror(to->file) != 0;
        fprintf(to->file, "%s\n", text);
        if ((fflush(to->file) != 0 || ferror(to->file)) && !before)
            fprintf(stderr, "\nexphil: warning: --log %s cannot be written now: %s; the run goes on\n",
                    to->path, strerror(errno));
    }
    free(text);
    json_decref(object);
}

bool log_end(log_writer *to)
{
    bool fine = !to->file || !ferror(to->file);
    json_decref(to->kept);
    if (to->file && fclose(to->file) != 0) fine = false;
    if (!fine) fprintf(stderr, "exphil: --log %s could not be written in full\n", to->path);
    return events_close(to->events) && fine;
}
