/* Event files: records of length, its checksum, content and its checksum (tensorflow/core/lib/io/record_writer.h); each content
 * is a protocol buffer of type Event (tensorboard/compat/proto/event.proto), of which few fields are needed. Numbers are
 * little-endian. */
#include "events.h"

#include "commands.h"
#include "files.h"
#include "run_log.h"
#include "system.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Readers look for the beginning; by the end files of this program are known. */
#define EVENTS_BEGIN "events.out.tfevents."
#define EVENTS_END   ".exphil"

struct events {
    FILE *file;
    char *path;
    double last, trained; /* update of the line before; of the last of training */
    bool failed;
};

/* ---- bytes --------------------------------------------------------------------------------------------- */

typedef struct bytes {
    uint8_t *data;
    size_t count, capacity;
    bool failed; /* no memory */
} bytes;

static void put(bytes *to, const void *data, size_t count)
{
    if (!count) return;
    if (to->count + count > to->capacity) {
        size_t capacity = 2 * (to->count + count) + 256;
        uint8_t *more = realloc(to->data, capacity);
        if (!more) to->failed = true;
        if (!more) return;
        to->data = more;
        to->capacity = capacity;
    }
    memcpy(to->data + to->count, data, count);
    to->count += count;
}

static void put_fixed(bytes *to, uint64_t value, int count)
{
    uint8_t byte[8];
    for (int i = 0; i < count; i++) byte[i] = (uint8_t)(value >> 8 * i);
    put(to, byte, (size_t)count);
}

static void put_double(bytes *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_fixed(to, bits, 8);
}

static void put_float(bytes *to, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_fixed(to, bits, 4);
}

/* Seven bits a byte, the lowest first. */
static void put_varint(bytes *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) put_fixed(to, (value & 0x7f) | 0x80, 1);
    put_fixed(to, value, 1);
}

/* How a field's content is stored. */
enum { VARINT = 0, FIXED64 = 1, COUNTED = 2, FIXED32 = 5 };

static void put_key(bytes *to, unsigned field, unsigned way)
{
    put_varint(to, field << 3 | way);
}

static void put_counted(bytes *to, unsigned field, const void *data, size_t count)
{
    put_key(to, field, COUNTED);
    put_varint(to, count);
    put(to, data, count);
}

/* CRC-32C (Castagnoli, reflected: 0x82f63b78), turned and shifted as records have it. */
static uint32_t masked_crc(const uint8_t *data, size_t count)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* ---- records ------------------------------------------------------------------------------------------- */

/* In one call, so that a run that is killed leaves a record whole or not at all. */
static void write_record(events *to, const bytes *content)
{
    bytes record = {.data = NULL};
    put_fixed(&record, content->count, 8);
    if (!record.failed) put_fixed(&record, masked_crc(record.data, record.count), 4);
    put(&record, content->data, content->count);
    put_fixed(&record, masked_crc(content->data, content->count), 4);
    bool fine =
        !content->failed && !record.failed && fwrite(record.data, 1, record.count, to->file) == record.count;
    to->failed = to->failed || !fine;
    free(record.data);
}

/* Fields of Event: 1 wall_time, 2 step, 3 file_version, 5 summary, 7 session_log. */
static void begin_event(bytes *event, double time, double step)
{
    put_key(event, 1, FIXED64);
    put_double(event, time);
    put_key(event, 2, VARINT);
    put_varint(event, (uint64_t)step);
}

static void write_version(events *to)
{
    static const char version[] = "brain.Event:2";
    bytes event = {.data = NULL};
    begin_event(&event, (double)time(NULL), 0.0);
    put_counted(&event, 3, version, sizeof version - 1);
    write_record(to, &event);
    free(event.data);
}

/* SessionLog.status (1) is START (1): what is there of this step and later ones does not count. */
static void write_restart(events *to, double time, double step)
{
    bytes event = {.data = NULL}, session = {.data = NULL};
    put_key(&session, 1, VARINT);
    put_varint(&session, 1);
    begin_event(&event, time, step);
    put_counted(&event, 7, session.data, session.count);
    event.failed = event.failed || session.failed;
    write_record(to, &event);
    free(session.data);
    free(event.data);
}

void events_resume(events *to, int64_t updates)
{
    write_restart(to, (double)time(NULL), (double)updates + 1.0);
}

/* Fields of Summary: 1 value, each with 1 tag, 2 simple_value. Objects inside extend the tag. */
static void put_numbers(bytes *summary, const char *tag, json_t *object)
{
    const char *name;
    json_t *member;
    json_object_foreach(object, name, member)
    {
        char path[256];
        bytes value = {.data = NULL};
        (void)snprintf(path, sizeof path, "%s/%s", tag, name);
        if (json_is_object(member)) put_numbers(summary, path, member);
        if (!json_is_number(member) || strcmp(name, "update") == 0) continue;
        put_counted(&value, 1, path, strlen(path));
        put_key(&value, 2, FIXED32);
        put_float(&value, (float)json_number_value(member));
        put_counted(summary, 1, value.data, value.count);
        summary->failed = summary->failed || value.failed;
        free(value.data);
    }
}

void events_write(events *to, json_t *line, double time)
{
    int kind = log_kind(line);
    const json_t *update = log_number(line, "update");
    if (kind < 0 || !update) return;
    double step = json_number_value(update);
    if (step < to->last || (kind == LOG_TRAIN && step <= to->trained)) write_restart(to, time, step);
    to->last = step;
    if (kind == LOG_TRAIN) to->trained = step;
    bytes event = {.data = NULL}, summary = {.data = NULL};
    put_numbers(&summary, json_string_value(json_object_get(line, "kind")), line);
    begin_event(&event, time, step);
    put_counted(&event, 5, summary.data, summary.count);
    event.failed = event.failed || summary.failed;
    write_record(to, &event);
    free(summary.data);
    free(event.data);
}

/* ---- files --------------------------------------------------------------------------------------------- */

static bool is_ours(const char *name)
{
    return strncmp(name, EVENTS_BEGIN, sizeof EVENTS_BEGIN - 1) == 0 && name_ends(name, EVENTS_END);
}

static char *path_in(const char *folder, const char *name)
{
    size_t length = strlen(folder) + strlen(name) + 2;
    char *path = malloc(length);
    if (path) (void)snprintf(path, length, "%s/%s", folder, name);
    return path;
}

/* How many files of events of this program lie there; removes: they are no more. */
static int count_ours(const char *folder, bool removes)
{
    int count = 0;
    system_folder *open = system_folder_open(folder);
    for (const char *name; open && (name = system_folder_next(open)) != NULL;) {
        if (!is_ours(name)) continue;
        count++;
        char *path = removes ? path_in(folder, name) : NULL;
        if (path) (void)system_remove(path);
        free(path);
    }
    if (open) system_folder_close(open);
    return count;
}

static bool refuse(const char *folder, const char *why)
{
    fprintf(stderr, "exphil: --tensorboard %s: %s\n", folder, why);
    return false;
}

/* The folder, or what there is of those above it. */
static char *folder_there(const char *folder)
{
    system_facts facts;
    char *above = strdup(folder), *slash;
    while (above && !system_look(above, &facts) && errno == ENOENT) {
        slash = strrchr(above, '/');
        if (slash && slash != above)
            *slash = 0;
        else
            (void)snprintf(above, strlen(above) + 1, "%s", slash ? "/" : ".");
    }
    return above;
}

bool events_free(const char *folder, bool may)
{
    system_facts facts;
    bool there;
    if (!*folder) return refuse("\"\"", "the name is empty");
    char *above = folder_there(folder), *trial = above ? path_in(above, EVENTS_BEGIN "0" EVENTS_END) : NULL;
    bool fine = trial != NULL;
    if (!fine)
        refuse(folder, "no memory");
    else if (!system_look(above, &facts) || !facts.folder)
        fine = refuse(folder, "that is no folder");
    else
        fine = output_possible("tensorboard", trial, OUTPUT_IN_PLACE, &there);
    if (fine && !may && count_ours(folder, false))
        fine = refuse(
            folder, "the events of an earlier run are there: name another folder, or --force replaces them");
    free(trial);
    free(above);
    return fine;
}

/* With the folders above it, as far as they are missing. */
static bool make_folder(const char *folder)
{
    char *path = strdup(folder);
    if (!path) return refuse(folder, "no memory");
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        (void)system_make_folder(path);
        *slash = '/';
    }
    bool fine = system_make_folder(path) || errno == EEXIST;
    if (!fine) refuse(folder, strerror(errno));
    free(path);
    return fine;
}

/* Readers take files in the order of their names: that of a run that goes on comes behind the others, also in one second. */
static FILE *make_file(const char *folder, char **path)
{
    for (unsigned number = 0; number < 1000000; number++) {
        char name[128];
        (void)snprintf(name, sizeof name, "%s%010lld.%06u%s", EVENTS_BEGIN, (long long)time(NULL), number,
                       EVENTS_END);
        *path = path_in(folder, name);
        FILE *file = *path ? system_create(*path) : NULL;
        if (file) (void)setvbuf(file, NULL, _IONBF, 0);
        if (file) return file;
        if (!*path || errno != EEXIST) break;
        free(*path);
    }
    return NULL;
}

events *events_open(const char *folder, bool replaces)
{
    if (!make_folder(folder)) return NULL;
    if (replaces) (void)count_ours(folder, true);
    events *made = calloc(1, sizeof *made);
    if (made) made->file = make_file(folder, &made->path);
    if (made && made->file) {
        made->last = made->trained = -1.0;
        write_version(made);
        return made;
    }
    refuse(folder, made ? strerror(errno) : "no memory");
    if (made) free(made->path);
    free(made);
    return NULL;
}

bool events_close(events *to)
{
    if (!to) return true;
    bool fine = !to->failed;
    if (fclose(to->file) != 0) fine = false;
    if (!fine) fprintf(stderr, "exphil: --tensorboard %s could not be written in full\n", to->path);
    free(to->path);
    free(to);
    return fine;
}
