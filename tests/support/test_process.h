/* Other processes, and what the system has to say of this one, on every system. */
#ifndef EXPHIL_TEST_PROCESS_H
#define EXPHIL_TEST_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- this program once more --------------------------------------------------------------------------------- */

typedef intptr_t test_process;
enum { TEST_KILLED = 256 }; /* what wait says of a process that did not end by itself */

/* Starts this program with these arguments, the last of which is NULL; through $EXPHIL_EMULATOR, words apart, where that is set.
 * Then main has to look at them. */
test_process test_start_self(const char *const *arguments);
/* Its exit status (0 to 255), or TEST_KILLED. */
int test_wait(test_process process);
/* Ends it in the middle of whatever it does. */
void test_kill(test_process process);
/* Ends this one so. */
void test_die(void);

/* ---- a copy of this process --------------------------------------------------------------------------------- */

/* Where a process can be copied (fork): runs fn in the copy and returns what it returned (0 to 255), or TEST_KILLED. Where it
 * cannot, the test is left out, and says so. */
int test_in_copy(int (*fn)(void *arg), void *arg);

/* ---- the rest ----------------------------------------------------------------------------------------------- */

/* Is this program run by an emulator of another processor or system? Then what the system promises is not the emulator's. */
bool test_emulated(void);
void test_setenv(const char *name, const char *value); /* NULL: not set */
/* Ends the program after so long: only what hangs. */
void test_end_after(int seconds);
/* Memory that this process has in the machine's. */
int64_t test_resident_bytes(void);
/* From here on this process gets no more than so many bytes of addresses. False: this system has no such limit. */
bool test_limit_memory(size_t more_bytes);
int64_t test_clock_ns(void);     /* the system's monotonic clock */
int64_t test_processor_ns(void); /* that all threads of this process have used */
/* Could a signal be delivered to the calling thread? Never on a system without signals, which has_signals says. */
bool test_signals_open(void);
bool test_has_signals(void);

#endif
