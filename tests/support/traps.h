/* Traps for what real-time code must not do: locks of the watched thread, allocations of the C library, and system calls,
 * which end the process. A test that uses them links the library statically, so that these names come first. */
#ifndef EXPHIL_TRAPS_H
#define EXPHIL_TRAPS_H

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_llong trap_locks, trap_mallocs; /* so far; mallocs are not counted under sanitizers */
/* Locks of the calling thread count from now on: those of the pool, on their way to sleep, do not. */
void traps_watch(void);
/* From here on any system call ends the process, but for its end and, where the clock has no page of its own, the clock.
 * False: this system has no such filters. */
bool traps_give_up_system_calls(void);

#endif
