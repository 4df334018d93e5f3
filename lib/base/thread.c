/* Threads and locks for the other rooms. */
#include "base/system.h"

#include <errno.h>

struct xph_thread {
    exphil_context *context;
    xph_running running;
    void (*fn)(void *arg);
    void *arg;
};

struct xph_mutex {
    exphil_context *context;
    xph_lock lock;
    xph_condition changed;
};

static void thread_main(void *arg)
{
    xph_thread *thread = arg;
    xph_fpu_push();
    thread->fn(thread->arg);
}

exphil_status xph_thread_create(exphil_context *context, void (*fn)(void *arg), void *arg,
                                xph_thread **thread, exphil_error *error)
{
    xph_thread *made = xph_alloc(context, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    *made = (xph_thread){.context = context, .fn = fn, .arg = arg};
    int32_t rc = xph_thread_start(&made->running, thread_main, made);
    if (rc) {
        xph_free(context, made, sizeof *made);
        if (rc == ENOTSUP) return xph_fail(error, EXPHIL_E_UNSUPPORTED, "this system starts no threads");
        return xph_fail_errno(error, EXPHIL_E_MEMORY, rc, "could not start a thread");
    }
    *thread = made;
    return EXPHIL_OK;
}

void xph_thread_join(xph_thread *thread)
{
    if (!thread) return;
    xph_thread_end(&thread->running);
    xph_free(thread->context, thread, sizeof *thread);
}

exphil_status xph_mutex_create(exphil_context *context, xph_mutex **mutex, exphil_error *error)
{
    xph_mutex *made = xph_alloc(context, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = context;
    int32_t rc = xph_lock_begin(&made->lock);
    if (!rc) {
        rc = xph_condition_begin(&made->changed);
        if (rc) xph_lock_end(&made->lock);
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
    xph_condition_end(&mutex->changed);
    xph_lock_end(&mutex->lock);
    xph_free(mutex->context, mutex, sizeof *mutex);
}

void xph_mutex_lock(xph_mutex *mutex)
{
    xph_lock_take(&mutex->lock);
}
void xph_mutex_unlock(xph_mutex *mutex)
{
    xph_lock_leave(&mutex->lock);
}
void xph_mutex_wait(xph_mutex *mutex)
{
    xph_condition_wait(&mutex->changed, &mutex->lock);
}
void xph_mutex_wait_for(xph_mutex *mutex, int64_t ns)
{
    xph_condition_wait_for(&mutex->changed, &mutex->lock, ns);
}
void xph_mutex_broadcast(xph_mutex *mutex)
{
    xph_condition_wake_all(&mutex->changed);
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
