/* Signals that end a long command: it keeps what it has, says so, and ends with 128 + the signal's number. One place for
 * all commands. */
#ifndef EXPHIL_CLI_STOP_H
#define EXPHIL_CLI_STOP_H

#include <stdbool.h>
#include <stdint.h>

/* From here on SIGINT (Ctrl-C), SIGTERM and SIGHUP ask for an end; the second one ends the program as usual. A SIGHUP that
 * is ignored, as under nohup, stays ignored. A reader of the output that has gone, and a file that may not grow, fail a
 * write and do not end the program. */
void stop_catch(void);
bool stop_asked(void);
/* The number of the signal, 0: none; and an end that a signal to another process has asked for, 0: none. */
int stop_number(void);
void stop_ask(int which);
/* An exphil_cancel_fn: long calls ask this. What is being saved is saved whole. */
int32_t stop_cancel(void *user);
void stop_hold(bool held);
/* 128 + the signal's number: the exit status. */
int stop_status(void);
/* "Ctrl-C", "SIGTERM", "SIGHUP". */
const char *stop_name(void);

#endif
