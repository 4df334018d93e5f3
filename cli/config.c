/* Options from a JSON file. Names are those of the command line; the version of the program and when it ran are for people. */
#include "config.h"

#include "commands.h"
#include "files.h"
#include "system.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a value stands, for messages. */
typedef struct place {
    const option_command *command;
    const char *path, *text; /* the file and what is in it */
    const char *section;     /* "defaults", or NULL: the object itself */
} place;

enum { WHERE = 512, CONFIG_MOST = 1 << 20, FILES_MOST = 1 << 16 };

/* ---- lines --------------------------------------------------------------------------------------------- */

/* Behind the string that begins here; the text is JSON that has been read. */
static const char *string_end(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1]) at++;
    return *at ? at + 1 : at;
}

static bool is_text(const char *at, const char *end, const char *text)
{
    return text && (size_t)(end - at) == strlen(text) + 2 && strncmp(at + 1, text, strlen(text)) == 0;
}

/* The line of a member of the object, or of one in the object that is its section; 0: its name was written otherwise. */
static long line_of(const place *where, const char *name)
{
    long line = 1;
    int depth = 0;
    bool inside = !where->section;
    for (const char *at = where->text; *at; at++) {
        line += *at == '\n';
        if (*at == '{' || *at == '[') depth++;
        if (*at == '}' || *at == ']') depth--;
        if (*at != '"') continue;
        const char *end = string_end(at), *behind = end + strspn(end, " \t\r\n");
        if (*behind == ':' && depth == 1 && where->section) inside = is_text(at, end, where->section);
        if (*behind == ':' && depth == (where->section ? 2 : 1) && inside && is_text(at, end, name))
            return line;
        at = end - 1;
    }
    return 0;
}

/* "run.json line 3: "hidden"". */
static const char *name_place(const place *where, const char *name, char text[WHERE])
{
    long line = line_of(where, name);
    char shown[101];
    foreign_text(name, shown, sizeof shown);
    if (line)
        (void)snprintf(text, WHERE, "%.300s line %ld: \"%s\"", where->path, line, shown);
    else
        (void)snprintf(text, WHERE, "%.300s: \"%s\"", where->path, shown);
    return text;
}

static bool refuse(const place *where, const char *name, const char *why)
{
    char text[WHERE];
    fprintf(stderr, "exphil: %s %s\n", name_place(where, name, text), why);
    return false;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* --null is how the list of --files-from is written. */
static bool outdone(const option_command *command, const bool *before, const char *name)
{
    return options_outdone(command, before, strcmp(name, "null") == 0 ? "files-from" : name);
}

/* Texts of options stay until the program ends. Takes the reference; NULL: there is no memory. */
static json_t *keep(json_t *value)
{
    static json_t *kept;
    if (!kept) kept = json_array();
    json_array_append_new(kept, value);
    return json_array_get(kept, json_array_size(kept) - 1);
}

/* Texts may be paths, as those of the command line are. */
static const char *path_of(const json_t *value)
{
    char *text = (char *)(uintptr_t)json_string_value(value);
    system_path(text);
    return text;
}

/* A number as the command line would have it; texts stay as they are. NULL: this is no value for such an option. */
static const char *text_of(const option_entry *entry, const json_t *value)
{
    char number[64];
    bool whole = json_is_integer(value);
    if (json_is_string(value))
        return entry->kind == OPTION_INT || entry->kind == OPTION_NUMBER ? NULL : path_of(value);
    if (!whole && !(json_is_real(value) && entry->kind == OPTION_NUMBER)) return NULL;
    if (whole)
        (void)snprintf(number, sizeof number, "%lld", json_integer_value(value));
    else
        (void)snprintf(number, sizeof number, "%.17g", json_real_value(value));
    return json_string_value(keep(json_string(number)));
}

static const char *wanted(const option_entry *entry)
{
    switch (entry->kind) {
    case OPTION_FLAG:
        return "true or false";
    case OPTION_TEXT:
        return "a string";
    case OPTION_TEXTS:
        return "a string or an array of strings";
    default:
        return options_wanted(entry);
    }
}

static bool store_texts(const option_entry *entry, const json_t *values, const char *where)
{
    size_t i;
    json_t *value;
    json_array_foreach(values, i, value)
    {
        if (json_is_string(value) ? !options_store(entry, path_of(value), where)
                                  : (fprintf(stderr, "exphil: %s wants %s\n", where, wanted(entry)), true))
            return false;
    }
    return true;
}

/* Sets one option. */
static bool set(const place *at, const option_entry *entry, const json_t *value, bool skip)
{
    char where[WHERE];
    name_place(at, entry->name, where);
    if (entry->kind == OPTION_FLAG && json_is_boolean(value)) {
        if (!skip) *(bool *)entry->value = json_is_true(value);
        return true;
    }
    if (entry->kind == OPTION_TEXTS && json_is_array(value)) return skip || store_texts(entry, value, where);
    const char *text = entry->kind == OPTION_FLAG ? NULL : text_of(entry, value);
    if (text) return skip || options_store(entry, text, where);
    fprintf(stderr, "exphil: %s wants %s\n", where, wanted(entry));
    return false;
}

/* Members of the object that are no options. */
static bool is_fact(const char *name)
{
    static const char *const names[] = {"version", "started", "files", "defaults", "chosen"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static bool set_all(const place *at, json_t *object, const bool *before)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        const option_entry *entry = options_find(at->command, name);
        if (!at->section && is_fact(name)) continue;
        if (!entry) return refuse(at, name, "is no option of this command");
        if (strcmp(name, "config") == 0) return refuse(at, name, "cannot stand in a configuration");
        if (json_is_null(value)) continue; /* nothing is asked for */
        bool skip = outdone(at->command, before, name);
        if (!set(at, entry, value, skip)) return false;
        if (!skip && !at->section && !json_is_false(value))
            at->command->given[entry - at->command->entry] = true;
    }
    return true;
}

static bool take_files(const place *at, const json_t *files, bool skip, int *count, char ***paths)
{
    static char *kept[FILES_MOST + 1];
    size_t i;
    json_t *value;
    if (!files) return true;
    if (!json_is_array(files) || json_array_size(files) > FILES_MOST)
        return refuse(at, "files", "wants an array of at most 65536 strings");
    json_array_foreach(files, i, value)
    {
        if (skip && json_is_null(value)) continue; /* a name that was no UTF-8 */
        if (!json_is_string(value)) return refuse(at, "files", "wants an array of strings");
        if (skip) continue;
        kept[i] = strdup(json_string_value(value));
        if (!kept[i]) return refuse(at, "files", "is too much: no memory");
        system_path(kept[i]);
    }
    if (skip) return true;
    *count = (int)json_array_size(files);
    *paths = kept;
    return true;
}

/* What is in the file, with a zero behind it; NULL: said why not. */
static char *read_text(const char *path)
{
    file_kind kind = file_kind_of(path);
    if (kind != FILE_OTHER) {
        file_refuse(path, kind, "--config wants a JSON file");
        return NULL;
    }
    FILE *file = file_open_text(path);
    char *text = file ? malloc(CONFIG_MOST + 1) : NULL;
    size_t bytes = text ? fread(text, 1, CONFIG_MOST + 1, file) : 0;
    bool fine = text && !ferror(file) && bytes <= CONFIG_MOST;
    if (fine)
        text[bytes] = 0;
    else if (file)
        fprintf(stderr, "exphil: --config %s: %s\n", path,
                bytes > CONFIG_MOST ? "that is no configuration: it is larger than 1 MiB"
                                    : "it cannot be read");
    if (file) fclose(file);
    if (fine) return text;
    free(text);
    return NULL;
}

/* Which entries the command line has; files there are instead of any list. */
static bool *note_given(const option_command *command, bool files)
{
    size_t entries = 0;
    while (command->entry[entries].help) entries++;
    bool *before = malloc(entries * sizeof *before);
    const option_entry *list = options_find(command, "files-from");
    if (before) memcpy(before, command->given, entries * sizeof *before);
    if (before && list && files) before[list - command->entry] = true;
    return before;
}

static bool read_object(const place *at, json_t *object, int *count, char ***files)
{
    place defaults = *at;
    defaults.section = "defaults";
    json_t *kept = json_object_get(object, "defaults");
    if (kept && !json_is_object(kept)) return refuse(at, "defaults", "wants an object");
    bool *before = note_given(at->command, *count > 0);
    if (!before) return refuse(at, "files", "is too much: no memory");
    bool named = *count > 0 || options_given(at->command, "files-from");
    bool fine = (!kept || set_all(&defaults, kept, before)) && set_all(at, object, before) &&
                take_files(at, json_object_get(object, "files"), named, count, files);
    free(before);
    return fine;
}

bool config_read(const option_command *command, const char *path, int *count, char ***files)
{
    json_error_t error;
    char *text = read_text(path);
    place at = {.command = command, .path = path, .text = text};
    bool fine = false;
    if (!text) return false;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (object) object = keep(object);
    if (!object)
        fprintf(stderr, "exphil: %s line %d: %s\n", path, error.line, error.text);
    else if (!json_is_object(object))
        fprintf(stderr, "exphil: %s: this wants one JSON object, {\"hidden\": 256, ...}\n", path);
    else
        fine = read_object(&at, object, count, files);
    free(text);
    return fine;
}

int64_t config_whole(const char *path, const char *name, int64_t otherwise)
{
    json_t *object = file_json(path, NULL), *value = json_object_get(object, name);
    if (!value) value = json_object_get(json_object_get(object, "defaults"), name);
    const int64_t whole = json_is_integer(value) ? (int64_t)json_integer_value(value) : otherwise;
    json_decref(object);
    return whole;
}
