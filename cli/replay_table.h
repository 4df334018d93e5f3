/* Tables about replays, as comma-separated values: who plays in them, how much their frames count. */
#ifndef EXPHIL_CLI_REPLAY_TABLE_H
#define EXPHIL_CLI_REPLAY_TABLE_H

#include "csv.h"

#include <exphil/exphil.h>

#include <stdbool.h>

/* What every line begins with: the columns file and port. */
typedef struct replay_line {
    char *file; /* path or name of the replay, as given; NULL: game */
    uint64_t game;
    int64_t number; /* of the line in the file */
    int32_t port;   /* 0: all */
    bool used;      /* its replay was given */
} replay_line;

typedef struct replay_table replay_table;

/* What the tables differ in. A line is a struct that begins with a replay_line. */
typedef struct replay_table_kind {
    const char *option; /* without the dashes */
    size_t line_bytes;
    bool (*read_head)(replay_table *table, const csv *from);
    /* file and port are read; the number of fields is that of the head. */
    bool (*read_line)(replay_table *table, const csv *from, replay_line *line);
    exphil_status (*give)(const replay_table *table, const replay_line *line, uint64_t game,
                          exphil_dataset *dataset, exphil_error *error);
} replay_table_kind;

struct replay_table {
    const replay_table_kind *kind; /* NULL: nothing was read */
    const char *path;              /* borrowed */
    char *lines;                   /* of kind->line_bytes, by replay, those of games first, then by number */
    int64_t count, capacity, columns;
};

/* Reads a table with its head; file is a path, the name of a file, or 16 hexadecimal digits, XXH64 of the replay's
 * bytes; of an archive's entry "a.zip:game.slp" or its name in there; port is 1 to 4, or 0. Says on stderr, with line
 * and column, what is wrong. */
bool replay_table_read(replay_table *table, const replay_table_kind *kind, const char *path);
void replay_table_free(replay_table *table);
replay_line *replay_table_line(const replay_table *table, int64_t index);
/* Gives the lines of a replay, by the order of their numbers. name NULL: those that name the game; inside: its name in
 * an archive, or NULL. */
bool replay_table_give(replay_table *table, const char *name, const char *inside, uint64_t game,
                       exphil_dataset *dataset);
/* Says how many lines are of no replay that was given; false: all of them. */
bool replay_table_used(const replay_table *table, bool quiet);
/* A whole number from 0 to most, and nothing else. */
bool whole_number(const char *text, int32_t most, int32_t *value);

#endif
