/* Writing the log of a run, one JSON object a line, each update once; the same lines as events of TensorBoard; and the lock
 * that keeps two runs from one OUT. */
#ifndef EXPHIL_CLI_LOG_WRITE_H
#define EXPHIL_CLI_LOG_WRITE_H

#include "events.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct log_writer {
    const char *path; /* of --log, or NULL */
    FILE *file;
    events *events; /* of --tensorboard, or NULL */
} log_writer;

/* Is it the log of a run that did not come to its end? */
bool log_is_unfinished(const char *path);
/* resume: lines beyond the update done go, and those of an end that will come again (over); else force: replaces a log, and
 * without it the log of a run that did not come to its end is moved to PATH.1. path NULL: none. */
bool log_begin(log_writer *to, const char *path, bool resume, bool force, int64_t done, bool over);
/* Is there anything to write to? */
bool log_wanted(const log_writer *to);
/* Takes the reference; NULL is passed over. */
void log_line(log_writer *to, json_t *object);
/* False: lines or events are missing, as on a full disk; said. */
bool log_end(log_writer *to);

/* OUT.lock, while the run lasts (run_lock.c); false: another run has it, or it cannot be made, said on stderr. */
bool run_lock(const char *out);
void run_unlock(void);

#endif
