/* Threads of Windows. */
#define WIN32_LEAN_AND_MEAN
#include "test_thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

struct test_lock {
    SRWLOCK lock;
    CONDITION_VARIABLE changed;
};

static DWORD WINAPI run(void *given)
{
    test_thread *thread = given;
    thread->result = thread->fn(thread->arg);
    return 0;
}

static void start(test_thread *thread, size_t stack)
{
    HANDLE made = CreateThread(NULL, stack, run, thread, stack ? STACK_SIZE_PARAM_IS_A_RESERVATION : 0, NULL);
    if (!made) {
        fprintf(stderr, "CreateThread: error %lu\n", GetLastError());
        abort();
    }
    thread->id = (uintptr_t)made;
}

void test_thread_start(test_thread *thread, void *(*fn)(void *arg), void *arg)
{
    *thread = (test_thread){.fn = fn, .arg = arg};
    start(thread, 0);
}

void *test_thread_join(test_thread *thread)
{
    HANDLE made = (HANDLE)thread->id;
    if (WaitForSingleObject(made, INFINITE) != WAIT_OBJECT_0) abort();
    CloseHandle(made);
    return thread->result;
}

void test_thread_yield(void)
{
    SwitchToThread();
}

test_lock *test_lock_make(void)
{
    test_lock *made = malloc(sizeof *made);
    if (!made) abort();
    InitializeSRWLock(&made->lock);
    InitializeConditionVariable(&made->changed);
    return made;
}

void test_lock_free(test_lock *lock)
{
    free(lock);
}

void test_lock_enter(test_lock *lock)
{
    AcquireSRWLockExclusive(&lock->lock);
}

void test_lock_leave(test_lock *lock)
{
    ReleaseSRWLockExclusive(&lock->lock);
}

void test_lock_wait(test_lock *lock)
{
    if (!SleepConditionVariableSRW(&lock->changed, &lock->lock, INFINITE, 0)) abort();
}

void test_lock_wake(test_lock *lock)
{
    WakeAllConditionVariable(&lock->changed);
}

/* A stack grows downwards, by a page that guards the next: it is painted in that order, down to the pages that Windows keeps
 * for the handler of an overflow. */
enum { PAINT = 0xA5, ROOM = 1024, KEPT = 16 << 10 };

typedef struct small_stack {
    void *(*fn)(void *arg);
    void *arg;
    size_t used;
} small_stack;

static void *measured(void *given)
{
    small_stack *s = given;
    ULONG_PTR low, high;
    GetCurrentThreadStackLimits(&low, &high);
    volatile unsigned char *at =
        (volatile unsigned char *)&low - ROOM; /* below is no frame but those of calls */
    volatile unsigned char *const last = (volatile unsigned char *)low + KEPT;
    while (at > last) *--at = PAINT;
    void *result = s->fn(s->arg);
    while ((ULONG_PTR)at < high && *at == PAINT) at++;
    s->used = (size_t)(high - (ULONG_PTR)at);
    return result;
}

void *test_on_small_stack(size_t bytes, void *(*fn)(void *arg), void *arg, size_t *used)
{
    small_stack s = {fn, arg, 0};
    test_thread thread = {.fn = measured, .arg = &s};
    start(&thread, bytes);
    void *result = test_thread_join(&thread);
    if (used) *used = s.used;
    return result;
}
