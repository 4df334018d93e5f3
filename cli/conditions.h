/* Tables of conditions, and what a policy plays as. */
#ifndef EXPHIL_CLI_CONDITIONS_H
#define EXPHIL_CLI_CONDITIONS_H

#include <exphil/conditions.h>

#include <stdbool.h>

/* One line: values of the table's conditions for a port of a replay (0: all its ports). */
typedef struct condition_line {
    char *file; /* its path or name; NULL: game */
    uint64_t game;
    int64_t number; /* of the line in the table */
    int32_t port;
    int32_t value[EXPHIL_CONDITIONS_MAX];
    bool used; /* a replay that was given is its own */
} condition_line;

typedef struct condition_table {
    const char *path; /* borrowed */
    char name[EXPHIL_CONDITIONS_MAX][32];
    exphil_condition_spec spec[EXPHIL_CONDITIONS_MAX]; /* values: the largest in the column */
    int64_t count;                                     /* of conditions */
    condition_line *line;                              /* by file and port, those of games first */
    int64_t lines;
} condition_table;

/* A file of comma-separated values: a head "file,port,NAME,..." and lines; file is a path, the name of a file, or 16
 * hexadecimal digits, XXH64 of the replay's bytes; of an archive's entry "a.zip:game.slp" or its name in there. Says on
 * stderr, with line and column, what is wrong. */
bool conditions_read(const char *path, double mask, condition_table *table);
void conditions_free(condition_table *table);
/* The lines of the replay at path, which is the game; path NULL: those that name the game. */
bool conditions_give(condition_table *table, const char *path, uint64_t game, exphil_dataset *dataset);
/* Says how many lines are of no replay that was given; false: all of them. */
bool conditions_used(const condition_table *table, bool quiet);

/* Values of a model's conditions from "player=3,rank=2" (NULL: all 0). Says on stderr what is wrong. */
bool conditions_play_as(const exphil_model *model, const char *text, int32_t values[EXPHIL_CONDITIONS_MAX],
                        int64_t *count);
/* "0,2,4" in ascending order, as --delay has it. */
bool delays_read(const char *text, int32_t delays[EXPHIL_DELAYS_MAX], int64_t *count);
#define PLAY_AS_HELP "tell the policy who it is, as player=3,rank=2 (default: nothing)"

#endif
