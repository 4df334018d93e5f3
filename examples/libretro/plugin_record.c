/* Recording: rows and actions of a person or a teacher become episodes of a corpus file, which `exphil train` reads. A file
 * that is there is added to. It is written when an episode ends and two minutes have passed, and when the game ends. */
#include "plugin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SAVE_FRAMES 7200
/* Longer than what the library adds while it writes: where this file can be, that one can. */
#define LOCK_ENDING ".exphil-lock"

/* No more is recorded. What there is stays until the game ends, and is saved then. */
static int fail(const char *what, const exphil_error *error)
{
    const struct plugin_record *record = &plugin.record;
    if (record->unsaved)
        plugin_tell(
            "recording stops: %s: %s; %lld frames are kept until the game ends, then saving is tried again",
            what, error->message, (long long)record->unsaved);
    else
        plugin_tell("recording stops: %s: %s", what, error->message);
    plugin.record.failed = 1;
    plugin.mode = MODE_OFF;
    return -1;
}

static int open_dataset(struct plugin_record *record, exphil_error *error)
{
    exphil_context_config context = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    config.spec = &plugin.map.spec;
    context.threads = 1;
    if (exphil_context_create(&context, &record->context, error) < 0) return -1;
    if (!system_is_there(record->path))
        return exphil_dataset_create(record->context, &config, &record->dataset, error) < 0 ? -1 : 0;
    if (exphil_dataset_open(record->context, record->path, &record->dataset, error) < 0 ||
        exphil_dataset_query(record->dataset, &info, error) < 0)
        return -1;
    record->games = (uint64_t)info.games;
    if (info.spec_hash == exphil_spec_hash(&plugin.map.spec)) return 0;
    snprintf(error->message, sizeof error->message,
             "the file was recorded with another map (%s / %s); choose another file", info.layout,
             info.codec);
    return -1;
}

static void lock_name(const struct plugin_record *record, char *name)
{
    snprintf(name, PLUGIN_PATH + sizeof LOCK_ENDING, "%s" LOCK_ENDING, record->path);
}

/* A save replaces the file by all that was read when it was opened, and more: of two recorders one would undo the other.
 * 0: there is no other now. EBUSY: there is. Else why the lock cannot be made. */
static int take_lock(struct plugin_record *record)
{
    char name[PLUGIN_PATH + sizeof LOCK_ENDING];
    lock_name(record, name);
    int why = system_lock(name, &record->lock);
    record->locked = !why;
    return why;
}

static void release_lock(struct plugin_record *record)
{
    char name[PLUGIN_PATH + sizeof LOCK_ENDING];
    if (!record->locked) return;
    lock_name(record, name);
    system_unlock(name, record->lock);
    record->locked = 0;
}

static int refuse(exphil_error *error, const char *why)
{
    snprintf(error->message, sizeof error->message, "%s", why);
    return -1;
}

static int refuse_lock(exphil_error *error, int why)
{
    return refuse(error, why == EBUSY ? "somebody else is recording to it" : strerror(why));
}

/* -1: this file cannot be recorded to. A folder that is missing or may not be written to is told before anything is played,
 * not two minutes later, and recording goes on: whoever reads it can still mend that. */
static int claim(struct plugin_record *record, exphil_error *error)
{
    int why = take_lock(record);
    if (why == EBUSY || why == ENAMETOOLONG) return refuse_lock(error, why);
    if (system_file_seen(record->path, &record->inode, &record->bytes) > 0)
        return refuse(error, "not a regular file; it is not replaced");
    if (why)
        plugin_tell("%s cannot be written: %s; mend that while you play, or the recording will be lost",
                    record->path, strerror(why));
    return 0;
}

/* What could not be locked when the game was loaded is another's if it has changed since: its rows are not among ours. */
static int claim_late(struct plugin_record *record, exphil_error *error)
{
    uint64_t inode;
    int64_t bytes;
    if (record->locked) return 0;
    int why = take_lock(record);
    if (why) return refuse_lock(error, why);
    if (system_file_seen(record->path, &inode, &bytes) < 0 ||
        (inode == record->inode && bytes == record->bytes))
        return 0;
    release_lock(record);
    return refuse(error, "it was written by somebody else meanwhile");
}

int plugin_record_open(void)
{
    struct plugin_record *record = &plugin.record;
    exphil_error error = EXPHIL_ERROR_INIT;
    uint64_t most = INT64_MAX;
    memset(record, 0, sizeof *record);
    if (plugin.teacher.missing) {
        plugin_tell("nothing is recorded: its teacher is not to be had as asked");
        plugin.mode = MODE_OFF;
        return -1;
    }
    if (plugin_number("EXPHIL_RECORD_FRAMES", 1, INT64_MAX, &most)) {
        plugin.mode = MODE_OFF;
        return -1;
    }
    if (plugin_path("EXPHIL_RECORD", ".corpus", 1, record->path)) {
        snprintf(error.message, sizeof error.message, "set EXPHIL_RECORD to a file");
        return fail("where to?", &error);
    }
    if (claim(record, &error) || open_dataset(record, &error)) {
        fail(record->path, &error);
        plugin_record_close();
        return -1;
    }
    record->most = (int64_t)most;
    plugin_say(RETRO_LOG_INFO, "recording port %u to %s", plugin.port + 1, record->path);
    return 0;
}

/* Room for half as many again. */
static int grow(struct plugin_record *record)
{
    int64_t room = record->room + record->room / 2 + 4096;
    float *floats = realloc(record->floats, (size_t)(room * plugin.map.floats + 1) * sizeof(float));
    if (floats) record->floats = floats;
    int32_t *ids = realloc(record->ids, (size_t)(room * plugin.map.ids + 1) * sizeof(int32_t));
    if (ids) record->ids = ids;
    int32_t *actions = realloc(record->actions, (size_t)(room * plugin.map.heads) * sizeof(int32_t));
    if (actions) record->actions = actions;
    if (!floats || !ids || !actions) return -1;
    record->room = room;
    return 0;
}

void plugin_record_frame(void)
{
    struct plugin_record *record = &plugin.record;
    if (!record->dataset || record->total >= record->most) return;
    if (record->frames == record->room && grow(record)) {
        plugin_tell("no memory");
        plugin_record_stop();
        return;
    }
    memcpy(record->floats + record->frames * plugin.map.floats, plugin.floats,
           (size_t)plugin.map.floats * sizeof(float));
    memcpy(record->ids + record->frames * plugin.map.ids, plugin.ids,
           (size_t)plugin.map.ids * sizeof(int32_t));
    memcpy(record->actions + record->frames * plugin.map.heads, plugin.action,
           (size_t)plugin.map.heads * sizeof(int32_t));
    record->frames++;
    if (++record->total == record->most) plugin_record_end_episode();
}

/* last: there is no later. */
static void save(struct plugin_record *record, int last)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!record->unsaved) return;
    if (!claim_late(record, &error) && exphil_dataset_save(record->dataset, record->path, &error) >= 0) {
        plugin_say(RETRO_LOG_INFO, "%lld frames added to %s", (long long)record->unsaved, record->path);
        record->unsaved = 0;
    } else if (last) {
        plugin_tell("%lld recorded frames are lost: %s: %s", (long long)record->unsaved, record->path,
                    error.message);
    } else {
        fail(record->path, &error);
    }
}

static void add_episode(struct plugin_record *record)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    int64_t frames = record->frames;
    record->frames = 0;
    if (!record->dataset || frames < PLUGIN_LEAST_FRAMES) return;
    if (exphil_dataset_add_rows(record->dataset, record->games++, frames, record->floats, record->ids,
                                record->actions, &error) < 0) {
        plugin_tell("an episode of %lld frames is lost", (long long)frames);
        fail("adding it", &error);
        return;
    }
    record->unsaved += frames;
    record->added += frames;
}

void plugin_record_end_episode(void)
{
    struct plugin_record *record = &plugin.record;
    add_episode(record);
    if (record->unsaved >= SAVE_FRAMES && !record->failed) save(record, 0);
}

void plugin_record_stop(void)
{
    add_episode(&plugin.record);
    if (plugin.record.failed) return;
    plugin_tell("recording stops; %lld frames are saved when the game ends",
                (long long)plugin.record.unsaved);
    plugin.record.failed = 1;
    plugin.mode = MODE_OFF;
}

void plugin_record_close(void)
{
    struct plugin_record *record = &plugin.record;
    if (record->dataset) {
        add_episode(record);
        if (!record->added && !record->failed) plugin_watch_empty();
        save(record, 1);
    }
    exphil_dataset_destroy(record->dataset);
    exphil_context_destroy(record->context);
    free(record->floats);
    free(record->ids);
    free(record->actions);
    release_lock(record);
    memset(record, 0, sizeof *record);
}
