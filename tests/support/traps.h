/* Traps for what real-time code must not do: locks of the watched thread, allocations of the C library, and system calls,
 * which end the process. A test that uses them links the library statically, so that these names come first. */
#ifndef EXPHIL_TRAPS_H
#define EXPHIL_TRAPS_H

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_llong trap_locks, trap_mallocs; /* so far; mallocs are not counted under sanitizers */
/* Does this system let a program count them? Elsewhere both stay 0. */
bool traps_count(void);
/* Locks of the calling thread count from now on: those of the pool, on their way to sleep, do not. */
void traps_watch(void);

/* A life that is lived in a copy of this process: it makes what it needs, gives up system calls, and goes on. It returns one of
 * these; what it made before would be refused there. */
typedef int (*trap_life)(void *arg);
enum { TRAPS_FINE = 0, TRAPS_WRONG = 3, TRAPS_NO_FILTER = 4 };
/* From here on any system call ends the process, but for its end and, where the clock has no page of its own, the clock.
 * False: this system has no such filters, and the life ends with TRAPS_NO_FILTER. */
bool traps_give_up_system_calls(void);
void traps_call_the_system(void);
/* The life ends well, and without a system call. Where there are no filters the test is left out. */
void assert_quiet_life(trap_life life, void *arg);
/* It ends with its first system call. */
void assert_guilty_life(trap_life life, void *arg);

#endif
