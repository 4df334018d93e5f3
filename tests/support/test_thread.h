/* Threads, locks and meetings of the tests, on every system. What cannot be had ends the program. */
#ifndef EXPHIL_TEST_THREAD_H
#define EXPHIL_TEST_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct test_thread {
    void *(*fn)(void *arg);
    void *arg, *result;
    uintptr_t id; /* the system's */
} test_thread;

/* The struct stays where it is until join, which returns what fn did. */
void test_thread_start(test_thread *thread, void *(*fn)(void *arg), void *arg);
void *test_thread_join(test_thread *thread);
void test_thread_yield(void);

/* A lock with one condition: wait lets go of it until somebody calls wake, and has it again when it returns. */
typedef struct test_lock test_lock;
test_lock *test_lock_make(void);
void test_lock_free(test_lock *lock);
void test_lock_enter(test_lock *lock);
void test_lock_leave(test_lock *lock);
void test_lock_wait(test_lock *lock);
void test_lock_wake(test_lock *lock); /* all that wait */

/* A place where `count` threads wait for each other, again and again; come is true on the last of them. */
typedef struct test_meeting test_meeting;
test_meeting *test_meeting_make(int32_t count);
void test_meeting_free(test_meeting *meeting);
bool test_meeting_come(test_meeting *meeting);

/* Runs fn on a thread of its own with a stack of no more than this, and returns what fn did. used: bytes of the stack that were
 * written, or NULL. Whoever needs more runs into pages that cannot be touched. */
void *test_on_small_stack(size_t bytes, void *(*fn)(void *arg), void *arg, size_t *used);

#endif
