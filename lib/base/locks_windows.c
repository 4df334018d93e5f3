/* Locks, conditions and threads of Windows. */
#include "base/wide_windows.h"

#include <errno.h>
#include <process.h>

#define STACK_BYTES 0x100000u

_Static_assert(sizeof(xph_lock) == sizeof(SRWLOCK) && sizeof(xph_condition) == sizeof(CONDITION_VARIABLE),
               "system.h holds them without <windows.h>");

static SRWLOCK *lock_of(xph_lock *lock)
{
    return (SRWLOCK *)(void *)&lock->state;
}
static CONDITION_VARIABLE *condition_of(xph_condition *condition)
{
    return (CONDITION_VARIABLE *)(void *)&condition->state;
}

int32_t xph_lock_begin(xph_lock *lock)
{
    InitializeSRWLock(lock_of(lock));
    return 0;
}
void xph_lock_end(xph_lock *lock)
{
    (void)lock;
}
void xph_lock_take(xph_lock *lock)
{
    AcquireSRWLockExclusive(lock_of(lock));
}
void xph_lock_leave(xph_lock *lock)
{
    ReleaseSRWLockExclusive(lock_of(lock));
}

int32_t xph_condition_begin(xph_condition *condition)
{
    InitializeConditionVariable(condition_of(condition));
    return 0;
}
void xph_condition_end(xph_condition *condition)
{
    (void)condition;
}
void xph_condition_wait(xph_condition *condition, xph_lock *lock)
{
    (void)SleepConditionVariableSRW(condition_of(condition), lock_of(lock), INFINITE, 0);
}
void xph_condition_wait_for(xph_condition *condition, xph_lock *lock, int64_t ns)
{
    enum { MILLISECOND = 1000000 };
    const int64_t span = ns > 0 ? (ns - 1) / MILLISECOND + 1 : 0;
    const DWORD wait = span < (int64_t)INFINITE ? (DWORD)span : INFINITE - 1;
    (void)SleepConditionVariableSRW(condition_of(condition), lock_of(lock), wait, 0);
}
void xph_condition_wake_one(xph_condition *condition)
{
    WakeConditionVariable(condition_of(condition));
}
void xph_condition_wake_all(xph_condition *condition)
{
    WakeAllConditionVariable(condition_of(condition));
}

/* ---- threads ------------------------------------------------------------------------------------------- */

static unsigned __stdcall run(void *arg)
{
    const xph_running *thread = arg;
    thread->fn(thread->arg);
    return 0;
}

/* A thread that has stepped back makes threads that have; Windows gives every new one the normal priority. */
int32_t xph_thread_start(xph_running *thread, void (*fn)(void *arg), void *arg)
{
    thread->fn = fn;
    thread->arg = arg;
    errno = 0;
    const uintptr_t made =
        _beginthreadex(NULL, STACK_BYTES, run, thread, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    if (!made) return errno ? errno : EAGAIN;
    thread->handle = (HANDLE)made;
    const int priority = GetThreadPriority(GetCurrentThread());
    if (priority < THREAD_PRIORITY_NORMAL) (void)SetThreadPriority(thread->handle, priority);
    return 0;
}

void xph_thread_end(xph_running *thread)
{
    WaitForSingleObject(thread->handle, INFINITE);
    CloseHandle(thread->handle);
}

void xph_thread_yield(void)
{
    (void)SwitchToThread();
}

void xph_thread_step_back(void)
{
    if (GetThreadPriority(GetCurrentThread()) > THREAD_PRIORITY_LOWEST)
        (void)SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_LOWEST);
}
