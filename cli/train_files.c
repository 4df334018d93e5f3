/* The files of a training run: their names, and whether they may be written. */
#include "files.h"
#include "system.h"
#include "train_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* OUT without .safetensors. */
static int stem_length(const char *out)
{
    size_t length = strlen(out);
    return (int)(name_ends(out, ".safetensors") ? length - strlen(".safetensors") : length);
}

void keep_numbered(const train_options *o, int64_t update, char path[TRAIN_PATH])
{
    (void)snprintf(path, TRAIN_PATH, "%.*s.%lld.safetensors", stem_length(o->out), o->out, (long long)update);
}

bool keep_names(train_options *o)
{
    char longest[TRAIN_PATH];
    keep_numbered(o, INT64_MAX, longest);
    (void)snprintf(o->checkpoint, TRAIN_PATH, "%s.optimizer", o->out);
    (void)snprintf(o->scores, TRAIN_PATH, "%s.scores", o->out);
    (void)snprintf(o->record, TRAIN_PATH, "%s.run.json", o->out);
    (void)snprintf(o->best_weights, TRAIN_PATH, "%.*s.best.safetensors", stem_length(o->out), o->out);
    if (strlen(o->out) + sizeof ".9223372036854775807.safetensors.optimizer" <= TRAIN_PATH) return true;
    fprintf(stderr, "exphil: --out: the path is too long\n");
    return false;
}

/* Is this the name of a numbered checkpoint, or of its weights? */
static bool is_numbered(const train_options *o, const char *name, int64_t *update)
{
    const char *base = strrchr(o->out, '/');
    int before = stem_length(o->out) - (base ? (int)(base + 1 - o->out) : 0), behind = 0;
    long long number = -1;
    base = base ? base + 1 : o->out;
    if (strncmp(name, base, (size_t)before) != 0 ||
        sscanf(name + before, ".%lld.safetensors%n", &number, &behind) != 1 || !behind || number < 0)
        return false;
    *update = number;
    name += before + behind;
    return !*name || strcmp(name, ".optimizer") == 0;
}

static bool is_own(const train_scores *own, int64_t update)
{
    for (size_t i = 0; i < own->checkpoint_count; i++)
        if (own->checkpoints[i] == update) return true;
    return false;
}

bool keep_numbers_free(const train_options *o, const train_scores *own)
{
    char *folder = file_folder(o->out), path[TRAIN_PATH];
    system_folder *list = o->keep > 0 && folder ? system_folder_open(folder) : NULL;
    bool fine = true;
    int64_t update;
    for (const char *name; fine && list && (name = system_folder_next(list)) != NULL;) {
        if (!is_numbered(o, name, &update) || is_own(own, update)) continue;
        keep_numbered(o, update, path);
        fine = o->force ? output_spares("keep", path, o->init) : false;
        if (!o->force)
            fprintf(stderr, "exphil: --keep: %s is there already, of another run: move it away\n", path);
    }
    if (list) system_folder_close(list);
    free(folder);
    return fine;
}

void keep_begins(train_options *o)
{
    o->began =
        o->resume && !system_there(o->out) && !system_there(o->checkpoint) && !system_there(o->best_weights);
    if (!o->began) return;
    o->resume = false;
    if (!ranks_first(o->ranks)) return;
    fprintf(stderr, "exphil: --resume: there is no checkpoint yet; it begins from the start\n");
}

/* A log is the only trace of a run that left no weights. */
static bool log_may_begin(const train_options *o)
{
    if (!o->log || strcmp(o->log, "/dev/stderr") == 0) return true;
    return output_free("log", o->log, OUTPUT_IN_PLACE, o->force || o->resume || log_is_unfinished(o->log));
}

static bool bad_batch_may_begin(const train_options *o)
{
    return !o->bad_batch ||
           output_free("keep-bad-batch", o->bad_batch, OUTPUT_IN_PLACE, o->force || o->resume || o->began);
}

bool keep_may_begin(const train_options *o)
{
    const char *const written[] = {o->out, o->checkpoint, o->best_weights, o->scores, o->record};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        bool exists;
        if (!output_possible("out", written[i], OUTPUT_REPLACED, &exists)) return false;
        if (exists && !found && written[i] != o->scores && written[i] != o->record) found = written[i];
    }
    if (o->resume && !system_there(o->checkpoint))
        fprintf(
            stderr,
            "exphil: --resume: there is no checkpoint %s beside %s: move %s away to begin from the start, "
            "or --init %s --out OTHER starts a new run from its weights\n",
            o->checkpoint, found ? found : o->out, found ? found : o->out, found ? found : o->out);
    else if (found && !o->resume && !o->force)
        fprintf(stderr,
                "exphil: %s is there already: --resume goes on from its checkpoint, --force replaces it\n",
                found);
    else if (!o->tensorboard || events_free(o->tensorboard, o->force || o->resume || o->began))
        return log_may_begin(o) && bad_batch_may_begin(o) &&
               (o->resume || keep_numbers_free(o, &(train_scores){.at = NULL}));
    return false;
}
