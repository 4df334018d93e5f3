/* WASI (preview 1) has one thread: locks keep nobody off, and no thread can be started. */
#include "base/system.h"

#include <errno.h>

int32_t xph_lock_begin(xph_lock *lock)
{
    (void)lock;
    return 0;
}
void xph_lock_end(xph_lock *lock)
{
    (void)lock;
}
void xph_lock_take(xph_lock *lock)
{
    (void)lock;
}
void xph_lock_leave(xph_lock *lock)
{
    (void)lock;
}

int32_t xph_condition_begin(xph_condition *condition)
{
    (void)condition;
    return 0;
}
void xph_condition_end(xph_condition *condition)
{
    (void)condition;
}
/* Nobody else could change what is waited for: to go on waiting would be for ever. */
void xph_condition_wait(xph_condition *condition, xph_lock *lock)
{
    (void)condition;
    (void)lock;
    __builtin_trap();
}
void xph_condition_wait_for(xph_condition *condition, xph_lock *lock, int64_t ns)
{
    (void)condition;
    (void)lock;
    xph_sleep(ns);
}
void xph_condition_wake_one(xph_condition *condition)
{
    (void)condition;
}
void xph_condition_wake_all(xph_condition *condition)
{
    (void)condition;
}

int32_t xph_thread_start(xph_running *thread, void (*fn)(void *arg), void *arg)
{
    (void)thread;
    (void)fn;
    (void)arg;
    return ENOTSUP;
}
void xph_thread_end(xph_running *thread)
{
    (void)thread;
}
void xph_thread_yield(void) {}
void xph_thread_step_back(void) {}
