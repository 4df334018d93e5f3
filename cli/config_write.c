/* Options into a JSON file, which config_read takes again. */
#include "config.h"

#include "commands.h"
#include "notes.h"
#include "system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values -------------------------------------------------------------------------------------------- */

/* What JSON cannot hold is said; the rest is written. */
static json_t *text_json(const char *path, const char *text)
{
    json_t *value = json_string(text);
    if (value) return value;
    fprintf(stderr, "exphil: warning: %s: %s is not UTF-8, which JSON wants; it is left out\n", path, text);
    return json_null();
}

static json_t *texts_json(const char *path, const text_list *list)
{
    json_t *values = list->count ? json_array() : json_null();
    for (int i = 0; i < list->count; i++) json_array_append_new(values, text_json(path, list->text[i]));
    return values;
}

static json_t *whole_json(const option_entry *entry)
{
    int64_t whole = *(const int64_t *)entry->value;
    return options_allows(entry, (double)whole) ? json_integer(whole) : json_null();
}

/* null where nothing was asked for: 0 where an option cannot be 0, no text. */
static json_t *value_json(const char *path, const option_entry *entry)
{
    switch (entry->kind) {
    case OPTION_FLAG:
        return json_boolean(*(const bool *)entry->value);
    case OPTION_AUTO:
        if (*(const int64_t *)entry->value < 0) return json_string("auto");
        return whole_json(entry);
    case OPTION_INT:
        return whole_json(entry);
    case OPTION_NUMBER: {
        double number = *(const double *)entry->value;
        return options_allows(entry, number) ? json_real(number) : json_null();
    }
    case OPTION_TEXT: {
        const char *text = *(const char *const *)entry->value;
        return text ? text_json(path, text) : json_null();
    }
    case OPTION_BYTES: {
        uint64_t bytes = *(const uint64_t *)entry->value;
        return bytes ? json_integer((json_int_t)bytes) : json_null();
    }
    case OPTION_TEXTS:
        return texts_json(path, entry->value);
    }
    return json_null();
}

/* Of this start, not of the run: what a preset stands for is written out. */
static bool of_the_start(const char *name)
{
    static const char *const names[] = {"config", "preset", "resume", "force", "mpi", "ranks-timeout"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static void add_options(const option_command *command, const char *path, json_t *object, bool given)
{
    for (const option_entry *e = command->entry; e->help; e++)
        if (e->name && !of_the_start(e->name) && command->given[e - command->entry] == given)
            json_object_set_new(object, e->name, value_json(path, e));
}

/* Digits that bring each number back to the last bit: most have few. */
static size_t digits_of(const option_command *command)
{
    size_t digits = 15;
    char text[40];
    for (const option_entry *e = command->entry; e->help; e++) {
        if (!e->name || e->kind != OPTION_NUMBER) continue;
        double number = *(const double *)e->value;
        for (; digits < 17; digits++) {
            (void)snprintf(text, sizeof text, "%.*g", (int)digits, number);
            if (strtod(text, NULL) == number) break;
        }
    }
    return digits;
}

/* ---- the file ------------------------------------------------------------------------------------------ */

static json_t *make_object(const option_command *command, const char *path, const config_facts *facts)
{
    char started[32] = "";
    struct tm date;
    json_t *files = json_array(), *defaults = json_object(), *object = json_object();
    if (system_date(time(NULL), true, &date))
        (void)strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &date);
    for (int i = 0; i < facts->count; i++) json_array_append_new(files, text_json(path, facts->files[i]));
    json_object_set_new(object, "version", json_string(notes_version()));
    json_object_set_new(object, "started", json_string(started));
    json_object_set_new(object, "files", files);
    add_options(command, path, object, true);
    add_options(command, path, defaults, false);
    json_object_set_new(object, "defaults", defaults);
    json_object_set_new(object, "chosen", facts->chosen);
    return object;
}

static bool write_text(const char *path, const char *text)
{
    FILE *file = system_open(path, "w");
    bool fine = file && fprintf(file, "%s\n", text) > 0 && system_sync(file);
    int why = errno;
    if (file && fclose(file) != 0 && fine) why = errno, fine = false;
    errno = why;
    return fine;
}

bool config_write(const option_command *command, const char *path, const config_facts *facts)
{
    json_t *object = make_object(command, path, facts);
    char *text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(digits_of(command)));
    size_t bytes = strlen(path) + sizeof ".exphil-tmp";
    char *beside = malloc(bytes);
    bool fine = false;
    errno = ENOMEM;
    if (text && beside) {
        (void)snprintf(beside, bytes, "%s.exphil-tmp", path);
        (void)system_remove(beside); /* what a run that was killed left */
        fine = write_text(beside, text) && system_rename(beside, path);
        int why = errno;
        if (!fine) (void)system_remove(beside);
        errno = why;
    }
    if (!fine) complain_of_file(path);
    free(beside);
    free(text);
    json_decref(object);
    return fine;
}
