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
    json_t *kept;   /* log_keep: the lines of the last update that had any; NULL: none are kept */
    int64_t kept_of;
} log_writer;

/* Is it the log of a run that did not come to its end? */
bool log_is_unfinished(const char *path);
/* resume: lines beyond the update done go, and those of an end that will come again (over); else force: replaces a log, and
 * without it the log of a run that did not come to its end is moved to PATH.1. path NULL: none. */
bool log_begin(log_writer *to, const char *path, bool resume, bool force, int64_t done, bool over);
/* Of a process that writes nothing, but may have to go on with what another writes, which makes the same lines: it keeps those of
 * the last update. log_take_over then opens the log and the events of the other (NULL: none), whose process has ended anywhere:
 * what it wrote of that update goes, and the lines that are kept come. Said why not: false. */
void log_keep(log_writer *to, int64_t done);
bool log_take_over(log_writer *to, const char *path, const char *folder);
/* Is there anything to write to? */
bool log_wanted(const log_writer *to);
/* Takes the reference; NULL is passed over. */
void log_line(log_writer *to, json_t *object);
/* False: lines or events are missing, as on a full disk; said. */
bool log_end(log_writer *to);

/* OUT.lock, while the run lasts (run_lock.c); false: another run has it, or it cannot be made, said on stderr. */
bool run_lock(const char *out);
/* The lock of a process that has been killed, which may take a moment to let go of it. False: there is none, said on stderr. */
bool run_lock_take_over(const char *out);
void run_unlock(void);

#endif
