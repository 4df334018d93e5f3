/* What differs between systems, beside the pipe (pipe.h): arguments and paths in UTF-8, which the library takes, a clock, and how
 * a program is told to end. system_posix.c or system_windows.c, whichever the build has. */
#ifndef SLIPPI_SYSTEM_H
#define SLIPPI_SYSTEM_H

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In main, first: argv in UTF-8. Where it is that already it stays. */
void system_arguments(int *argc, char ***argv);
/* What is opened later must not get the numbers of closed standard streams: text would go into it. */
void system_hold_streams(void);
/* stop is called when the program is interrupted or asked to end. It may only set a flag. */
void system_on_stop(void (*stop)(void));
int64_t system_now_ns(void); /* of a clock that only goes forward */
/* fopen with a path in UTF-8. */
FILE *system_open(const char *path, const char *mode);
/* Why the latest call of a socket failed; before it system_socket_forget(). */
void system_socket_forget(void);
const char *system_socket_why(void);

#ifdef __cplusplus
}
#endif
#endif
