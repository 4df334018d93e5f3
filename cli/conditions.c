/* Tables of conditions as text, and the words of --play-as and --delay. */
#include "conditions.h"
#include "commands.h"
#include "files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS_MOST = 2 + EXPHIL_CONDITIONS_MAX };

/* The line that is being read, cut into fields. */
typedef struct reading {
    condition_table *table;
    int64_t number;
    char *field[FIELDS_MOST];
    int64_t fields, capacity;
} reading;

static bool wrong(const reading *r, int64_t column, const char *what)
{
    if (column < 0)
        fprintf(stderr, "exphil: --conditions: %s:%" PRId64 ": %s\n", r->table->path, r->number, what);
    else
        fprintf(stderr, "exphil: --conditions: %s:%" PRId64 ": column %" PRId64 " (%s): %s\n", r->table->path,
                r->number, column + 1,
                column == 0   ? "file"
                : column == 1 ? "port"
                              : r->table->name[column - 2],
                what);
    return false;
}

/* ---- one line -------------------------------------------------------------------------------------------- */

/* A field in quotes, in its place: doubled quotes are one. NULL: it has no end. Else what is behind it. */
static char *unquote(char *at)
{
    char *to = at;
    for (char *from = at + 1; *from; from++) {
        if (*from == '"' && from[1] != '"') {
            *to = 0;
            return from + 1;
        }
        from += *from == '"';
        *to++ = *from;
    }
    return NULL;
}

static bool cut(reading *r, char *line)
{
    r->fields = 0;
    for (char *at = line;; at++) {
        if (r->fields == FIELDS_MOST) return wrong(r, -1, "there are more than 10 columns");
        bool quoted = *at == '"';
        char *end = quoted ? unquote(at) : at + strcspn(at, ",");
        if (!end) return wrong(r, -1, "a quote is not closed");
        if (*end && *end != ',') return wrong(r, -1, "behind a quote there must be a comma");
        r->field[r->fields++] = at;
        bool more = *end == ',';
        *end = 0;
        if (!more) return true;
        at = end;
    }
}

static bool read_head(reading *r)
{
    condition_table *t = r->table;
    if (r->fields < 3 || strcmp(r->field[0], "file") != 0 || strcmp(r->field[1], "port") != 0)
        return wrong(r, -1, "the first line must be file,port,NAME,... with a name for each condition");
    for (int64_t i = 2; i < r->fields; i++) {
        const char *name = r->field[i];
        size_t length = strlen(name);
        if (length < 1 || length > 31 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") != length)
            return wrong(r, -1, "names of conditions are 1 to 31 of a-z, 0-9, _ and .");
        for (int64_t k = 0; k < t->count; k++)
            if (strcmp(t->name[k], name) == 0) return wrong(r, -1, "two columns have the same name");
        memcpy(t->name[t->count], name, length + 1);
        t->spec[t->count].name = t->name[t->count];
        t->count++;
    }
    return true;
}

static bool whole(const char *text, int32_t most, int32_t *value)
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

static bool add_line(reading *r)
{
    condition_table *t = r->table;
    if (t->lines == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 64;
        condition_line *more = realloc(t->line, (size_t)r->capacity * sizeof *more);
        if (!more) return wrong(r, -1, "there is no memory for so many lines");
        t->line = more;
    }
    condition_line *line = &t->line[t->lines];
    *line = (condition_line){.number = r->number};
    if (r->fields != t->count + 2) return wrong(r, -1, "it has not as many columns as the first line");
    if (!r->field[0][0]) return wrong(r, 0, "it is empty");
    if (!whole(r->field[1], 4, &line->port)) return wrong(r, 1, "must be 1 to 4, or 0 for all ports");
    for (int64_t i = 0; i < t->count; i++) {
        const char *text = r->field[2 + i];
        if (text[0] && !whole(text, 65535, &line->value[i]))
            return wrong(r, 2 + i, "must be a whole number from 0 to 65535, or empty");
        if (line->value[i] > t->spec[i].values) t->spec[i].values = line->value[i];
    }
    if (!is_game(r->field[0], &line->game)) line->file = strdup(r->field[0]);
    t->lines++;
    return true;
}

/* ---- the table ------------------------------------------------------------------------------------------- */

static int by_replay(const condition_line *a, const condition_line *b)
{
    if (!a->file || !b->file)
        return a->file || b->file ? (a->file ? 1 : -1) : (a->game > b->game) - (a->game < b->game);
    return strcmp(a->file, b->file);
}

static int by_line(const void *one, const void *other)
{
    const condition_line *a = one, *b = other;
    int order = by_replay(a, b);
    return order ? order : a->port - b->port;
}

static bool check_table(condition_table *t)
{
    if (!t->lines) {
        fprintf(stderr, "exphil: --conditions: %s has no lines\n", t->path);
        return false;
    }
    for (int64_t i = 0; i < t->count; i++) {
        if (t->spec[i].values) continue;
        fprintf(stderr, "exphil: --conditions: %s: column %" PRId64 " (%s) has no value above 0\n", t->path,
                i + 3, t->name[i]);
        return false;
    }
    qsort(t->line, (size_t)t->lines, sizeof *t->line, by_line);
    for (int64_t i = 1; i < t->lines; i++) {
        if (by_line(&t->line[i - 1], &t->line[i]) != 0) continue;
        int64_t a = t->line[i - 1].number, b = t->line[i].number;
        fprintf(stderr,
                "exphil: --conditions: %s: lines %" PRId64 " and %" PRId64 " are of the same file and port\n",
                t->path, a < b ? a : b, a < b ? b : a);
        return false;
    }
    return true;
}

static bool read_lines(reading *r, FILE *file)
{
    char *line = NULL;
    size_t room = 0;
    bool fine = true, head = false;
    for (r->number = 1; fine; r->number++) {
        ssize_t length = getline(&line, &room, file);
        if (length < 0) break;
        if (strlen(line) != (size_t)length) {
            fine = wrong(r, -1, "it holds a zero byte");
            break;
        }
        line[strcspn(line, "\r\n")] = 0;
        char *text = r->number == 1 && strncmp(line, "\xEF\xBB\xBF", 3) == 0 ? line + 3 : line;
        if (!text[0]) continue;
        fine = cut(r, text) && (head ? add_line(r) : read_head(r));
        head = true;
    }
    free(line);
    if (fine && ferror(file)) fine = complain_of_file(r->table->path);
    return fine;
}

bool conditions_read(const char *path, double mask, condition_table *table)
{
    *table = (condition_table){.path = path};
    reading r = {.table = table};
    FILE *file = file_open(path);
    if (!file) return false;
    bool fine = read_lines(&r, file) && check_table(table);
    for (int64_t i = 0; i < table->count; i++) table->spec[i].mask = mask;
    fclose(file);
    return fine;
}

void conditions_free(condition_table *table)
{
    for (int64_t i = 0; i < table->lines; i++) free(table->line[i].file);
    free(table->line);
    *table = (condition_table){.path = NULL};
}

/* ---- giving ---------------------------------------------------------------------------------------------- */

/* Index of the first line of a replay, or that of where it would be. */
static int64_t first_line(const condition_table *t, const condition_line *wanted)
{
    int64_t low = 0;
    for (int64_t high = t->lines; low < high;) {
        int64_t middle = low + (high - low) / 2;
        if (by_replay(&t->line[middle], wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool give(condition_table *t, const condition_line *wanted, uint64_t game, exphil_dataset *dataset)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int64_t i = first_line(t, wanted); i < t->lines && by_replay(&t->line[i], wanted) == 0; i++) {
        condition_line *line = &t->line[i];
        line->used = true;
        for (int64_t k = 0; k < t->count; k++)
            if (exphil_dataset_condition(dataset, t->name[k], game, line->port, line->value[k], &error) < 0)
                return complain(t->path, &error) == 0;
    }
    return true;
}

bool conditions_give(condition_table *table, const char *path, uint64_t game, exphil_dataset *dataset)
{
    condition_line wanted = {.game = game};
    if (!path) return give(table, &wanted, game, dataset);
    const char *slash = strrchr(path, '/');
    char *text = strdup(path);
    wanted.file = text;
    bool fine = text && give(table, &wanted, game, dataset);
    if (fine && slash) {
        wanted.file = text + (slash - path) + 1;
        fine = give(table, &wanted, game, dataset);
    }
    free(text);
    return fine;
}

bool conditions_used(const condition_table *table, bool quiet)
{
    int64_t unused = 0;
    for (int64_t i = 0; i < table->lines; i++) unused += !table->line[i].used;
    if (unused == table->lines)
        fprintf(stderr, "exphil: --conditions: no line of %s is of a replay that was given\n", table->path);
    else if (unused && !quiet)
        fprintf(stderr, "%s: %" PRId64 " of %" PRId64 " lines are of other replays\n", table->path, unused,
                table->lines);
    return unused < table->lines;
}

/* ---- words ----------------------------------------------------------------------------------------------- */

static bool play_as_wants(const exphil_sampling *model, const char *text)
{
    if (!model->condition_count) {
        fprintf(stderr, "exphil: --play-as: this policy has no conditions\n");
        return false;
    }
    fprintf(stderr, "exphil: --play-as wants");
    for (int64_t i = 0; i < model->condition_count; i++)
        fprintf(stderr, "%s %s=0..%d", i ? "," : "", model->conditions[i].name, model->conditions[i].values);
    fprintf(stderr, ", not %s\n", text);
    return false;
}

bool conditions_play_as(const exphil_model *model, const char *text, int32_t values[EXPHIL_CONDITIONS_MAX],
                        int64_t *count)
{
    exphil_sampling told = EXPHIL_SAMPLING_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_sampling(model, &told, &error) < 0) return complain("model", &error) == 0;
    memset(values, 0, EXPHIL_CONDITIONS_MAX * sizeof *values);
    *count = told.condition_count;
    for (const char *at = text; at && *at;) {
        size_t length = strcspn(at, ",");
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        char *equals = strchr(word, '=');
        int64_t i = 0;
        if (length >= sizeof word || !equals) return play_as_wants(&told, text);
        *equals = 0;
        while (i < told.condition_count && strcmp(told.conditions[i].name, word) != 0) i++;
        if (i == told.condition_count || !whole(equals + 1, told.conditions[i].values, &values[i]))
            return play_as_wants(&told, text);
        at += length + (at[length] == ',');
    }
    return true;
}

bool delays_read(const char *text, int32_t delays[EXPHIL_DELAYS_MAX], int64_t *count)
{
    *count = 0;
    for (const char *at = text;;) {
        size_t length = strcspn(at, ",");
        char word[16];
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        bool fine = *count < EXPHIL_DELAYS_MAX && length < sizeof word && whole(word, 64, &delays[*count]) &&
                    (!*count || delays[*count] > delays[*count - 1]);
        if (!fine) {
            fprintf(stderr,
                    "exphil: --delay wants 0 to 64, or up to %d such numbers that ascend, as 0,2,4, not %s\n",
                    EXPHIL_DELAYS_MAX, text);
            return false;
        }
        ++*count;
        if (!at[length]) return true;
        at += length + 1;
    }
}
