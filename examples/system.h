/* What the examples want of a system and C does not have: arguments and paths in UTF-8, which the library takes, a clock that only
 * goes forward, and the files of a folder. A program of one system needs none of this. */
#ifndef EXAMPLES_SYSTEM_H
#define EXAMPLES_SYSTEM_H

#include <stdint.h>

/* In main, first: argv in UTF-8. Where it is that already it stays. */
static inline void system_arguments(int *argc, char ***argv);
static inline int64_t system_now_ns(void);
/* Until a point in time, not for a while: a late frame does not delay those after it. */
static inline void system_wait_until(int64_t ns);
/* Whether path can become a file: one beside it is made and removed again. 0, with errno: it cannot. */
static inline int system_can_write(const char *path, const char *beside);
/* Names of a folder that end so, in order: how many, or -1 where path is no folder. The caller frees each, and names. */
static inline int system_list(const char *path, const char *ending, char ***names);

#ifdef _WIN32
#  include "system_windows.h"
#else
#  include "system_posix.h"
#endif
#endif
