/* Tables of how much frames count, as text. */
#include "weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_COLUMN = 2, LAST_COLUMN, WEIGHT_COLUMN, COLUMNS };
static const char *const names[COLUMNS] = {"file", "port", "first", "last", "weight"};

typedef struct weight_line {
    replay_line of;
    int32_t first, last;
    double weight;
} weight_line;

static bool wrong(const csv *from, int column, const char *what)
{
    return csv_wrong(from, column + 1, names[column], what);
}

static bool read_head(replay_table *table, const csv *from)
{
    (void)table;
    bool fine = from->fields == COLUMNS;
    for (int i = 0; fine && i < COLUMNS; i++) fine = strcmp(from->field[i], names[i]) == 0;
    return fine || csv_wrong(from, 0, NULL, "the first line must be file,port,first,last,weight");
}

/* A game frame, which may be below 0; empty: none. */
static bool read_frame(const csv *from, int column, int32_t none, int32_t *frame)
{
    const char *text = from->field[column], *digits = text + (text[0] == '-');
    char *end;
    *frame = none;
    if (!text[0]) return true;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (digits[0] < '0' || digits[0] > '9' || *end || errno || number < INT32_MIN || number > INT32_MAX)
        return wrong(from, column, "must be a game frame, a whole number, or empty");
    *frame = (int32_t)number;
    return true;
}

static bool read_weight(const csv *from, double *weight)
{
    const char *text = from->field[WEIGHT_COLUMN];
    char *end;
    *weight = strtod(text, &end);
    bool begins = text[0] == '.' || (text[0] >= '0' && text[0] <= '9');
    if (begins && !*end && (*weight == 0.0 || (*weight >= 1e-6 && *weight <= 1000.0))) return true;
    return wrong(from, WEIGHT_COLUMN, "must be 0, or a number from 0.000001 to 1000");
}

static bool read_line(replay_table *table, const csv *from, replay_line *of)
{
    weight_line *line = (weight_line *)of;
    (void)table;
    if (!read_frame(from, FIRST_COLUMN, INT32_MIN, &line->first) ||
        !read_frame(from, LAST_COLUMN, INT32_MAX, &line->last) || !read_weight(from, &line->weight))
        return false;
    return line->last >= line->first || wrong(from, LAST_COLUMN, "it is before the first");
}

static exphil_status give(const replay_table *table, const replay_line *of, uint64_t game,
                          exphil_dataset *dataset, exphil_error *error)
{
    const weight_line *line = (const weight_line *)of;
    (void)table;
    return exphil_dataset_weight(dataset, game, of->port, line->first, line->last, line->weight, error);
}

bool weights_read(const char *path, replay_table *table)
{
    static const replay_table_kind kind = {"frame-weights", sizeof(weight_line), read_head, read_line, give};
    return replay_table_read(table, &kind, path);
}
