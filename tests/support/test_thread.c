/* Threads of POSIX. */
#include "test_thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(pthread_t) <= sizeof(uintptr_t), "a thread is known by a number");

struct test_lock {
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static void must(const char *what, int rc)
{
    if (!rc) return;
    fprintf(stderr, "%s: %s\n", what, strerror(rc));
    abort();
}

static void *run(void *given)
{
    const test_thread *thread = given;
    return thread->fn(thread->arg);
}

static void start(test_thread *thread, const pthread_attr_t *how)
{
    pthread_t id;
    must("pthread_create", pthread_create(&id, how, run, thread));
    thread->id = (uintptr_t)id;
}

void test_thread_start(test_thread *thread, void *(*fn)(void *arg), void *arg)
{
    *thread = (test_thread){.fn = fn, .arg = arg};
    start(thread, NULL);
}

void *test_thread_join(test_thread *thread)
{
    must("pthread_join", pthread_join((pthread_t)thread->id, &thread->result));
    return thread->result;
}

void test_thread_yield(void)
{
    sched_yield();
}

test_lock *test_lock_make(void)
{
    test_lock *made = malloc(sizeof *made);
    if (!made) abort();
    must("pthread_mutex_init", pthread_mutex_init(&made->lock, NULL));
    must("pthread_cond_init", pthread_cond_init(&made->changed, NULL));
    return made;
}

void test_lock_free(test_lock *lock)
{
    pthread_cond_destroy(&lock->changed);
    pthread_mutex_destroy(&lock->lock);
    free(lock);
}

void test_lock_enter(test_lock *lock)
{
    must("pthread_mutex_lock", pthread_mutex_lock(&lock->lock));
}

void test_lock_leave(test_lock *lock)
{
    must("pthread_mutex_unlock", pthread_mutex_unlock(&lock->lock));
}

void test_lock_wait(test_lock *lock)
{
    must("pthread_cond_wait", pthread_cond_wait(&lock->changed, &lock->lock));
}

void test_lock_wake(test_lock *lock)
{
    pthread_cond_broadcast(&lock->changed);
}

/* The stack is painted before; so wide a guard below it that no array reaches over it. Some processors' threads want more than
 * the test gives: 128 KiB with ARM's. */
void *test_on_small_stack(size_t bytes, void *(*fn)(void *arg), void *arg, size_t *used)
{
    enum { GUARD = 64 << 10, PAINT = 0xA5 };
    const long least = sysconf(_SC_THREAD_STACK_MIN);
    if (least > 0 && bytes < (size_t)least) bytes = (size_t)least;
    unsigned char *memory =
        mmap(NULL, GUARD + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *stack = memory + GUARD;
    test_thread thread = {.fn = fn, .arg = arg};
    pthread_attr_t how;
    size_t untouched = 0;
    if (memory == MAP_FAILED || mprotect(memory, GUARD, PROT_NONE) != 0) abort();
    memset(stack, PAINT, bytes);
    pthread_attr_init(&how);
    must("pthread_attr_setstack", pthread_attr_setstack(&how, stack, bytes));
    start(&thread, &how);
    void *result = test_thread_join(&thread);
    pthread_attr_destroy(&how);
    while (untouched < bytes && stack[untouched] == PAINT) untouched++;
    if (used) *used = bytes - untouched;
    munmap(memory, GUARD + bytes);
    return result;
}
