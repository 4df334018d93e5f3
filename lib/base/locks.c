/* Locks, conditions and threads of POSIX: explicit stacks, and none of the host's signals delivered to them. */
#define _GNU_SOURCE
#include "base/system.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#define STACK_BYTES ((size_t)1 << 20)

int32_t xph_lock_begin(xph_lock *lock)
{
    return pthread_mutex_init(&lock->state, NULL);
}
void xph_lock_end(xph_lock *lock)
{
    pthread_mutex_destroy(&lock->state);
}
void xph_lock_take(xph_lock *lock)
{
    pthread_mutex_lock(&lock->state);
}
void xph_lock_leave(xph_lock *lock)
{
    pthread_mutex_unlock(&lock->state);
}

/* Its times are those of a clock that nobody sets. macOS cannot say so, but waits for a span of time. */
int32_t xph_condition_begin(xph_condition *condition)
{
#if defined(__APPLE__)
    return pthread_cond_init(&condition->state, NULL);
#else
    pthread_condattr_t attributes;
    int rc = pthread_condattr_init(&attributes);
    if (rc) return rc;
    rc = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (!rc) rc = pthread_cond_init(&condition->state, &attributes);
    pthread_condattr_destroy(&attributes);
    return rc;
#endif
}
void xph_condition_end(xph_condition *condition)
{
    pthread_cond_destroy(&condition->state);
}
void xph_condition_wait(xph_condition *condition, xph_lock *lock)
{
    pthread_cond_wait(&condition->state, &lock->state);
}
void xph_condition_wait_for(xph_condition *condition, xph_lock *lock, int64_t ns)
{
    enum { SECOND = 1000000000 };
#if defined(__APPLE__)
    const struct timespec span = {.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
    (void)pthread_cond_timedwait_relative_np(&condition->state, &lock->state, &span);
#else
    const int64_t until = xph_clock_ns() + ns;
    const struct timespec at = {.tv_sec = until / SECOND, .tv_nsec = until % SECOND};
    (void)pthread_cond_timedwait(&condition->state, &lock->state, &at);
#endif
}
void xph_condition_wake_one(xph_condition *condition)
{
    pthread_cond_signal(&condition->state);
}
void xph_condition_wake_all(xph_condition *condition)
{
    pthread_cond_broadcast(&condition->state);
}

/* ---- threads ------------------------------------------------------------------------------------------- */

static void *run(void *arg)
{
    const xph_running *thread = arg;
    thread->fn(thread->arg);
    return NULL;
}

int32_t xph_thread_start(xph_running *thread, void (*fn)(void *arg), void *arg)
{
    pthread_attr_t attributes;
    thread->fn = fn;
    thread->arg = arg;
    int rc = pthread_attr_init(&attributes);
    if (rc) return rc;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    /* The new thread inherits the mask of its maker. */
    sigset_t every, saved;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &saved);
    rc = pthread_create(&thread->handle, &attributes, run, thread);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pthread_attr_destroy(&attributes);
    return rc;
}

void xph_thread_end(xph_running *thread)
{
    pthread_join(thread->handle, NULL);
}

void xph_thread_yield(void)
{
    sched_yield();
}

void xph_thread_step_back(void)
{
#ifdef __linux__
    enum { NICE = 10 }; /* about a tenth of the processor time of a thread that wants the same core */
    const struct sched_param plain = {.sched_priority = 0};
    /* A host in real time has made a thread in real time, which would be in its way. */
    (void)pthread_setschedparam(pthread_self(), SCHED_OTHER, &plain);
    errno = 0;
    const int now = getpriority(PRIO_PROCESS, 0); /* of this thread */
    if (errno == 0 && now < NICE) (void)setpriority(PRIO_PROCESS, 0, NICE);
#endif
}
