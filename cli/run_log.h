/* Reading of training logs: one JSON object a line, in the order of the run; of a run that was resumed, the lines of updates
 * that were made again replace those of before. */
#ifndef EXPHIL_CLI_RUN_LOG_H
#define EXPHIL_CLI_RUN_LOG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct point {
    double x, y;
} point;

/* What training said, the scores of what is held out, and those on the training data: curves. Then the score of all that is
 * held out, at the end, where the curve is of a part. */
enum { LOG_TRAIN, LOG_HELD, LOG_SCORED, LOG_KINDS, LOG_ALL = LOG_KINDS };

/* A number of the lines of one kind, by update. */
typedef struct log_series {
    int kind;
    const char *field; /* as "loss", or inside an object: "heads/buttons", "heads/buttons/nll" */
    point *at;         /* [count], x rising */
    size_t count, capacity;
} log_series;

/* Appends to these series; says on stderr why not and returns false. Free them in any case. */
bool log_read(const char *path, log_series *series, size_t count);
void log_free(log_series *series, size_t count);
/* Each object of the file, from the first line to the last; a line that was torn is passed over, with one
 * warning. take
 * returns false when there is no memory. */
bool log_each(const char *path, bool (*take)(void *user, json_t *object), void *user);
/* LOG_..., or -1 for lines of other kinds. */
int log_kind(const json_t *object);
/* The number of this name, also inside objects; NULL: there is none. */
const json_t *log_number(const json_t *object, const char *field);
/* Does the file begin with a line of a log? */
bool log_at(const char *path);

#endif
