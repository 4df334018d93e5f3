/* What the ranks of a run decide together: each acts by its own clock and signals no more, but by what any rank was told. */
#include "notes.h"
#include "ranks.h"
#include "stop.h"
#include "train_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool train_first(const train_state *r)
{
    return ranks_first(r->options->ranks);
}

bool train_stopping(const train_state *r)
{
    return r->options->ranks ? r->stopping : stop_asked();
}

bool train_apart(const train_state *r, const exphil_error *error)
{
    bool apart = error->status == EXPHIL_E_DEVICE || error->status == EXPHIL_E_MISMATCH;
    if (apart) ranks_together(r->options->ranks, false);
    return apart;
}

bool train_agree(train_state *r, bool fine, bool *any)
{
    enum { STOP, FAILED, ANY, NUMBERS };
    int32_t rank = 0;
    double number[NUMBERS];
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!r->options->ranks) return fine;
    exphil_status status;
    do {
        rank = ranks_rank(r->options->ranks);
        number[STOP] = stop_number();
        number[FAILED] = fine ? 0.0 : (double)rank + 1.0;
        number[ANY] = any && *any ? 1.0 : 0.0;
        status = exphil_trainer_agree(r->trainer, number, NUMBERS, &error);
    } while (status < 0 && train_mend(r, &error));
    if (status < 0) {
        (void)train_apart(r, &error);
        return complain(ranks_name(r->options->ranks), &error) == 0;
    }
    stop_ask((int)number[STOP]);
    r->stopping = number[STOP] > 0.0;
    if (any) *any = number[ANY] > 0.0;
    if (number[FAILED] > 0.0 && fine && rank == 0 && !r->stopping)
        fprintf(stderr, "exphil: %s: rank %.0f cannot go on, and so none can\n",
                ranks_name(r->options->ranks), number[FAILED] - 1.0);
    return number[FAILED] <= 0.0;
}

/* ---- options --------------------------------------------------------------------------------------------- */

/* What a rank may have otherwise: its machine, its clock, what it shows, names of files that are read, whose content is
 * compared; and what is told better elsewhere. */
static bool may_differ(const char *name)
{
    static const char *const names[] = {
        "config",      "preset",  "resume",         "force",       "quiet",
        "json",        "threads", "workers",        "device",      "memory",
        "isa",         "init",    "memory-limit",   "mpi",         "ranks-timeout",
        "conditions",  "layout",  "frame-weights",  "codec",       "log",
        "tensorboard", "out",     "keep-bad-batch", "save-minutes"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static double hash_option(const option_entry *entry, double before)
{
    json_t *value = notes_option(entry);
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    const double hash = text ? ranks_hash(text, strlen(text), before) : before;
    free(text);
    json_decref(value);
    return hash;
}

/* All at once, and where that differs one by one. */
bool train_options_same(ranks *all, const option_command *command)
{
    double whole = 0.0;
    int32_t other = 0;
    if (!all) return true;
    for (const option_entry *entry = command->entry; entry->name || entry->help; entry++)
        if (entry->name && !may_differ(entry->name)) whole = hash_option(entry, whole);
    if (!ranks_other(all, whole, &other)) return false;
    for (const option_entry *entry = command->entry; other && (entry->name || entry->help); entry++) {
        char what[64];
        if (!entry->name || may_differ(entry->name)) continue;
        (void)snprintf(what, sizeof what, "another --%s", entry->name);
        if (!ranks_same(all, hash_option(entry, 0.0), what)) return false;
    }
    return true;
}
