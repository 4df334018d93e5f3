/* Tables about replays, as comma-separated values. */
#include "replay_table.h"
#include "commands.h"
#include "system.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------------------------------------- */

bool whole_number(const char *text, int32_t most, int32_t *value)
{
    char *end;
    if (text[0] < '0' || text[0] > '9' || strlen(text) > 9) return false;
    *value = (int32_t)strtol(text, &end, 10);
    return !*end && *value <= most;
}

/* 16 hexadecimal digits and nothing else. */
static bool is_game(const char *text, uint64_t *game)
{
    if (strlen(text) != 16 || strspn(text, "0123456789abcdefABCDEF") != 16) return false;
    *game = strtoull(text, NULL, 16);
    return true;
}

replay_line *replay_table_line(const replay_table *table, int64_t index)
{
    return (replay_line *)(void *)(table->lines + (size_t)index * table->kind->line_bytes);
}

static bool read_line(replay_table *t, const csv *from, replay_line *line)
{
    if (from->fields != t->columns)
        return csv_wrong(from, 0, NULL, "it has not as many columns as the first line");
    if (!from->field[0][0]) return csv_wrong(from, 1, "file", "it is empty");
    if (!whole_number(from->field[1], 4, &line->port))
        return csv_wrong(from, 2, "port", "must be 1 to 4, or 0 for all ports");
    if (!t->kind->read_line(t, from, line)) return false;
    if (is_game(from->field[0], &line->game)) return true;
    line->file = strdup(from->field[0]);
    if (line->file) system_path(line->file);
    return line->file || csv_wrong(from, 0, NULL, "there is no memory for so many lines");
}

static bool add_line(replay_table *t, const csv *from)
{
    size_t bytes = t->kind->line_bytes;
    if (t->count == t->capacity) {
        int64_t capacity = t->capacity ? 2 * t->capacity : 64;
        char *more = realloc(t->lines, (size_t)capacity * bytes);
        if (!more) return csv_wrong(from, 0, NULL, "there is no memory for so many lines");
        t->lines = more;
        t->capacity = capacity;
    }
    replay_line *line = replay_table_line(t, t->count);
    memset(line, 0, bytes);
    line->number = from->line;
    bool fine = read_line(t, from, line);
    t->count += fine;
    return fine;
}

static bool read_first(replay_table *t, const csv *from)
{
    t->columns = from->fields;
    return t->kind->read_head(t, from);
}

static int by_replay(const replay_line *a, const replay_line *b)
{
    if (!a->file || !b->file)
        return a->file || b->file ? (a->file ? 1 : -1) : (a->game > b->game) - (a->game < b->game);
    return strcmp(a->file, b->file);
}

static int by_line(const void *one, const void *other)
{
    const replay_line *a = one, *b = other;
    int order = by_replay(a, b);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

bool replay_table_read(replay_table *table, const replay_table_kind *kind, const char *path)
{
    csv from;
    int status = 0;
    *table = (replay_table){.kind = kind, .path = path};
    if (!csv_open(&from, kind->option, path)) return false;
    bool fine = true;
    while (fine && (status = csv_next(&from)) > 0)
        fine = table->columns ? add_line(table, &from) : read_first(table, &from);
    csv_close(&from);
    if (!fine || status < 0) return false;
    if (!table->count) {
        fprintf(stderr, "exphil: --%s: %s has no lines\n", kind->option, path);
        return false;
    }
    qsort(table->lines, (size_t)table->count, kind->line_bytes, by_line);
    return true;
}

void replay_table_free(replay_table *table)
{
    for (int64_t i = 0; i < table->count; i++) free(replay_table_line(table, i)->file);
    free(table->lines);
    *table = (replay_table){.kind = NULL};
}

/* ---- giving -------------------------------------------------------------------------------------------- */

/* Lines of one replay under one of its names. */
typedef struct run {
    int64_t at, end;
} run;

static run find(const replay_table *t, const replay_line *wanted)
{
    run found = {0, 0};
    for (int64_t high = t->count; found.at < high;) {
        int64_t middle = found.at + (high - found.at) / 2;
        if (by_replay(replay_table_line(t, middle), wanted) < 0)
            found.at = middle + 1;
        else
            high = middle;
    }
    found.end = found.at;
    while (found.end < t->count && by_replay(replay_table_line(t, found.end), wanted) == 0) found.end++;
    return found;
}

/* Under whatever name: the line that comes first in the file. */
static replay_line *next_line(const replay_table *t, run *of, int count)
{
    run *first = NULL;
    for (int i = 0; i < count; i++)
        if (of[i].at < of[i].end &&
            (!first || replay_table_line(t, of[i].at)->number < replay_table_line(t, first->at)->number))
            first = &of[i];
    return first ? replay_table_line(t, first->at++) : NULL;
}

/* A replay goes by its hash, its whole name, what is behind the last slash, and its name in an archive. */
static int find_all(const replay_table *t, const char *name, const char *inside, uint64_t game, run of[4])
{
    const char *slash = name ? strrchr(name, '/') : NULL;
    const char *const names[] = {name, slash ? slash + 1 : NULL, inside};
    replay_line wanted = {.game = game};
    int count = 0;
    of[count++] = find(t, &wanted);
    for (int i = 0; i < 3; i++) {
        if (!names[i]) continue;
        char copy[4096];
        if (snprintf(copy, sizeof copy, "%s", names[i]) >= (int)sizeof copy) continue;
        wanted.file = copy;
        of[count++] = find(t, &wanted);
    }
    return count;
}

bool replay_table_give(replay_table *table, const char *name, const char *inside, uint64_t game,
                       exphil_dataset *dataset)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    run of[4];
    int count = find_all(table, name, inside, game, of);
    for (replay_line *line; (line = next_line(table, of, count)) != NULL; line->used = true)
        if (table->kind->give(table, line, game, dataset, &error) < 0)
            return complain(table->path, &error) == 0;
    return true;
}

bool replay_table_used(const replay_table *table, bool quiet)
{
    int64_t unused = 0;
    for (int64_t i = 0; i < table->count; i++) unused += !replay_table_line(table, i)->used;
    if (unused == table->count)
        fprintf(
            stderr,
            "exphil: --%s: no line of %s is of a replay that was taken; in a corpus of games replays have "
            "no names, and go by their hash: exphil corpus --report FILE has both\n",
            table->kind->option, table->path);
    else if (unused && !quiet)
        fprintf(stderr, "%s: %" PRId64 " of %" PRId64 " lines are of replays that were not given or taken\n",
                table->path, unused, table->count);
    return unused < table->count;
}
