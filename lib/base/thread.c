/* Threads and locks for the other rooms: explicit stacks, and none of the host's signals delivered to
 * them. */
#define _GNU_SOURCE
#include "base/hooks.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#define STACK_BYTES ((size_t)1 << 20)

struct xph_thread {
    exphil_context *context;
    pthread_t id;
    void (*fn)(void *arg);
    void *arg;
};

struct xph_mutex {
    exphil_context *context;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

int32_t xph_pthread_start(pthread_t *id, void *(*fn)(void *arg), void *arg)
{
    pthread_attr_t attributes;
    int rc = pthread_attr_init(&attributes);
    if (rc) return rc;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    /* The new thread inherits the mask of its maker. */
    sigset_t every, saved;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &saved);
    rc = pthread_create(id, &attributes, fn, arg);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pthread_attr_destroy(&attributes);
    return rc;
}

static void *thread_main(void *arg)
{
    xph_thread *thread = arg;
    xph_fpu_push();
    thread->fn(thread->arg);
    return NULL;
}

exphil_status xph_thread_create(exphil_context *context, void (*fn)(void *arg), void *arg,
                                xph_thread **thread, exphil_error *error)
{
    xph_thread *made = xph_alloc(context, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    *made = (xph_thread){.context = context, .fn = fn, .arg = arg};
    int32_t rc = xph_pthread_start(&made->id, thread_main, made);
    if (rc) {
        xph_free(context, made, sizeof *made);
        return xph_fail_errno(error, EXPHIL_E_MEMORY, rc, "could not start a thread");
    }
    *thread = made;
    return EXPHIL_OK;
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

void xph_thread_join(xph_thread *thread)
{
    if (!thread) return;
    pthread_join(thread->id, NULL);
    xph_free(thread->context, thread, sizeof *thread);
}

/* Its times are those of a clock that nobody sets. */
static int make_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int rc = pthread_condattr_init(&attributes);
    if (rc) return rc;
    rc = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (!rc) rc = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return rc;
}

exphil_status xph_mutex_create(exphil_context *context, xph_mutex **mutex, exphil_error *error)
{
    xph_mutex *made = xph_alloc(context, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = context;
    int rc = pthread_mutex_init(&made->lock, NULL);
    if (!rc) {
        rc = make_condition(&made->changed);
        if (rc) pthread_mutex_destroy(&made->lock);
    }
    if (rc) {
        xph_free(context, made, sizeof *made);
        return xph_fail_errno(error, EXPHIL_E_MEMORY, rc, "could not make a lock");
    }
    *mutex = made;
    return EXPHIL_OK;
}

void xph_mutex_destroy(xph_mutex *mutex)
{
    if (!mutex) return;
    pthread_cond_destroy(&mutex->changed);
    pthread_mutex_destroy(&mutex->lock);
    xph_free(mutex->context, mutex, sizeof *mutex);
}

void xph_mutex_lock(xph_mutex *mutex)
{
    pthread_mutex_lock(&mutex->lock);
}
void xph_mutex_unlock(xph_mutex *mutex)
{
    pthread_mutex_unlock(&mutex->lock);
}
void xph_mutex_wait(xph_mutex *mutex)
{
    pthread_cond_wait(&mutex->changed, &mutex->lock);
}
void xph_mutex_wait_for(xph_mutex *mutex, int64_t ns)
{
    enum { SECOND = 1000000000 };
    const int64_t until = xph_clock_ns() + ns;
    const struct timespec at = {.tv_sec = until / SECOND, .tv_nsec = until % SECOND};
    (void)pthread_cond_timedwait(&mutex->changed, &mutex->lock, &at);
}
void xph_mutex_broadcast(xph_mutex *mutex)
{
    pthread_cond_broadcast(&mutex->changed);
}

bool xph_busy_enter(xph_busy *busy)
{
    return atomic_exchange_explicit(&busy->inside, 1, memory_order_acquire) == 0;
}

void xph_busy_leave(xph_busy *busy)
{
    atomic_store_explicit(&busy->inside, 0, memory_order_release);
}

exphil_status xph_busy_error(const char *object, exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_BUSY, "%s is in use on another thread", object);
}
