/* What a training run leaves of itself beside its weights, and what a run that goes on takes up from that. */
#include "config.h"
#include "files.h"
#include "system.h"
#include "train_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool train_record(const train_state *r, int count, char **paths, bool over)
{
    if (over && system_there(r->options->record)) return true;
    config_facts facts = {.count = count, .files = paths};
    facts.chosen = json_pack("{s:I,s:I,s:f}", "updates", (json_int_t)r->updates, "batch",
                             (json_int_t)r->batch, "mirror", r->mirror);
    if (r->options->preset) json_object_set_new(facts.chosen, "preset", json_string(r->options->preset));
    return config_write(r->options->command, r->options->record, &facts);
}

/* ---- the run before ------------------------------------------------------------------------------------ */

/* Beside OUT, where folders were moved or copied together; else where it was. Free it. */
static char *place_of(const char *out, const char *text)
{
    const char *name = strrchr(text, '/'), *slash = strrchr(out, '/');
    size_t folder = slash ? (size_t)(slash - out) + 1 : 0, bytes;
    name = name ? name + 1 : text;
    bytes = folder + strlen(name) + 1;
    char *path = malloc(bytes);
    if (path) (void)snprintf(path, bytes, "%.*s%s", (int)folder, out, name);
    if (path && name[0] && system_there(path)) return path;
    free(path);
    return strdup(text);
}

/* A log or a folder of events that the run had goes on, as if it had been asked for again. */
static bool take_up(train_options *o, const json_t *record, const char *name)
{
    const option_entry *entry = options_find(o->command, name);
    const char *text = json_string_value(json_object_get(record, name));
    if (!text || !text[0] || options_given(o->command, name)) return true;
    char *path = place_of(o->out, text);
    if (!path) {
        fprintf(stderr, "exphil: no memory for the name of --%s\n", name);
        return false;
    }
    *(const char **)entry->value = path; /* as what a configuration says, it stays */
    o->command->given[entry - o->command->entry] = true;
    if (!o->quiet && !o->json) fprintf(stderr, "--%s %s, as before\n", name, path);
    return true;
}

/* A record may be all that is left of a run that was moved away. One that died before its first checkpoint left a log without an
 * end. */
static bool died_early(const train_options *o, const json_t *record)
{
    const char *log = json_string_value(json_object_get(record, "log"));
    char *path = log ? place_of(o->out, log) : NULL;
    bool died = path && log_is_unfinished(path);
    free(path);
    return died;
}

bool train_take_up(train_options *o)
{
    if (!o->resume && !o->began) return true;
    json_t *record = file_json(o->record, NULL);
    bool fine = (o->began && !died_early(o, record)) ||
                (take_up(o, record, "log") && take_up(o, record, "tensorboard"));
    json_decref(record);
    return fine;
}
