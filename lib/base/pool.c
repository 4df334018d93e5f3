/* The context's own threads, and the way to the host's. Threads sleep on a condition when there is nothing to
 * do. Only between xph_parallel_hold and xph_parallel_release do they poll for work for a moment before they
 * sleep, and so do callers that wait for the end of their job. Any number of callers may fan out at the same
 * time: each puts a job on the list, works on it itself as worker 0, and idle threads join the oldest job
 * that has items left. A thread is in one job at a time, so that its number is its own within that job, and a
 * caller never waits for another caller's work. */
#include "base/hooks.h"

enum { LOOK_NS = 200000, LOOKS = 24 }; /* for so long at most; between two looks at the clock */

typedef struct xph_job {
    xph_task_fn fn;
    void *arg;
    int64_t count;
    _Atomic int64_t next; /* first item that nobody has taken */
    atomic_int helpers;   /* pool threads inside; changed under the lock */
    struct xph_job *later;
} xph_job;

typedef struct xph_pool_thread {
    struct xph_pool *pool;
    xph_running running;
    int32_t number; /* 1 and up; 0 is the caller */
} xph_pool_thread;

struct xph_pool {
    xph_lock lock;
    xph_condition work, done;
    exphil_context *context;
    xph_job *jobs; /* oldest first */
    int32_t started, sleeping;
    bool ending;
    bool crowded; /* more threads than processors: one that looks takes the place of one that works */
    int32_t capacity;
    atomic_uint posted; /* jobs so far; changed under the lock */
    xph_pool_thread thread[];
};

static void work_on(xph_job *job, int32_t worker)
{
    for (;;) {
        int64_t i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (i >= job->count) return;
        job->fn(job->arg, i, worker);
    }
}

/* Under the lock. */
static xph_job *open_job(struct xph_pool *pool)
{
    for (xph_job *job = pool->jobs; job; job = job->later) {
        if (atomic_load_explicit(&job->next, memory_order_relaxed) < job->count) return job;
    }
    return NULL;
}

static void breathe(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* True as soon as *counter is not `seen`; false when that takes long, or nobody holds the threads any more. Whoever else
 * wants the processor gets it. */
static bool look_for(const struct xph_pool *pool, const void *counter,
                     bool (*changed)(const void *counter, unsigned seen), unsigned seen)
{
    int64_t until = 0;
    while (!pool->crowded && atomic_load_explicit(&pool->context->held, memory_order_relaxed) > 0) {
        for (int i = 0; i < LOOKS; i++) {
            if (changed(counter, seen)) return true;
            breathe();
        }
        int64_t now = xph_clock_ns();
        if (until == 0) until = now + LOOK_NS;
        if (now >= until) return false;
        xph_thread_yield();
    }
    return false;
}

static bool more_posted(const void *counter, unsigned seen)
{
    return atomic_load_explicit((const atomic_uint *)counter, memory_order_acquire) != seen;
}

static bool all_left(const void *counter, unsigned seen)
{
    (void)seen;
    return atomic_load_explicit((const atomic_int *)counter, memory_order_acquire) == 0;
}

/* Under the lock, which is open meanwhile. */
static bool look_for_job(struct xph_pool *pool)
{
    if (atomic_load_explicit(&pool->context->held, memory_order_relaxed) <= 0) return false;
    unsigned seen = atomic_load_explicit(&pool->posted, memory_order_relaxed);
    xph_lock_leave(&pool->lock);
    bool found = look_for(pool, &pool->posted, more_posted, seen);
    xph_lock_take(&pool->lock);
    return found || atomic_load_explicit(&pool->posted, memory_order_relaxed) != seen;
}

static void pool_thread(void *arg)
{
    xph_pool_thread *self = arg;
    struct xph_pool *pool = self->pool;
    xph_fpu_push();
    xph_lock_take(&pool->lock);
    for (;;) {
        xph_job *job = open_job(pool);
        if (!job) {
            if (pool->ending) break;
            if (look_for_job(pool)) continue;
            if (pool->ending) break;
            pool->sleeping++;
            xph_condition_wait(&pool->work, &pool->lock);
            pool->sleeping--;
            continue;
        }
        job->helpers++;
        xph_lock_leave(&pool->lock);
        work_on(job, self->number);
        xph_lock_take(&pool->lock);
        if (--job->helpers == 0) xph_condition_wake_all(&pool->done);
    }
    xph_lock_leave(&pool->lock);
}

/* ---- making and ending ----------------------------------------------------------------------------------- */

static size_t pool_bytes(int32_t threads)
{
    return sizeof(struct xph_pool) + (size_t)threads * sizeof(xph_pool_thread);
}

static bool init_locks(struct xph_pool *pool)
{
    if (xph_lock_begin(&pool->lock) != 0) return false;
    if (xph_condition_begin(&pool->work) == 0) {
        if (xph_condition_begin(&pool->done) == 0) return true;
        xph_condition_end(&pool->work);
    }
    xph_lock_end(&pool->lock);
    return false;
}

/* Starts as many threads as the system gives: the work is done with fewer, or by the caller alone. */
static struct xph_pool *make_pool(exphil_context *context)
{
    int32_t wanted = context->threads - 1;
    struct xph_pool *pool = xph_calloc(context, 1, pool_bytes(wanted));
    if (!pool) return NULL;
    if (!init_locks(pool)) {
        xph_free(context, pool, pool_bytes(wanted));
        return NULL;
    }
    pool->context = context;
    pool->crowded = context->threads > xph_cpu_count();
    pool->capacity = wanted;
    for (; pool->started < wanted; pool->started++) {
        xph_pool_thread *thread = &pool->thread[pool->started];
        *thread = (xph_pool_thread){.pool = pool, .number = pool->started + 1};
        int32_t rc = xph_thread_start(&thread->running, pool_thread, thread);
        if (rc) {
            xph_log_from_worker(context, EXPHIL_LOG_WARNING,
                                "only %d of %d threads could be started (errno %d)", (int)pool->started + 1,
                                (int)context->threads, (int)rc);
            break;
        }
    }
    return pool;
}

static struct xph_pool *the_pool(exphil_context *context)
{
    struct xph_pool *pool = atomic_load_explicit(&context->pool, memory_order_acquire);
    if (pool) return pool;
    xph_lock_take(&context->pool_lock);
    pool = atomic_load_explicit(&context->pool, memory_order_relaxed);
    if (!pool) {
        pool = make_pool(context);
        atomic_store_explicit(&context->pool, pool, memory_order_release);
    }
    xph_lock_leave(&context->pool_lock);
    return pool;
}

void xph_pool_destroy(exphil_context *context)
{
    struct xph_pool *pool = atomic_exchange(&context->pool, NULL);
    if (!pool) return;
    xph_lock_take(&pool->lock);
    pool->ending = true;
    xph_condition_wake_all(&pool->work);
    xph_lock_leave(&pool->lock);
    for (int32_t i = 0; i < pool->started; i++) xph_thread_end(&pool->thread[i].running);
    xph_condition_end(&pool->done);
    xph_condition_end(&pool->work);
    xph_lock_end(&pool->lock);
    xph_free(context, pool, pool_bytes(pool->capacity));
}

/* ---- use --------------------------------------------------------------------------------------------------- */

static void add_job(struct xph_pool *pool, xph_job *job)
{
    xph_lock_take(&pool->lock);
    xph_job **end = &pool->jobs;
    while (*end) end = &(*end)->later;
    *end = job;
    atomic_fetch_add_explicit(&pool->posted, 1, memory_order_release);
    int64_t wake = job->count - 1 < pool->sleeping ? job->count - 1 : pool->sleeping;
    while (wake-- > 0) xph_condition_wake_one(&pool->work);
    xph_lock_leave(&pool->lock);
}

/* The job lies on the caller's stack: no thread may be inside when this returns. */
static void finish_job(struct xph_pool *pool, xph_job *job)
{
    xph_lock_take(&pool->lock);
    xph_job **link = &pool->jobs;
    while (*link != job) link = &(*link)->later;
    *link = job->later;
    if (job->helpers > 0) {
        xph_lock_leave(&pool->lock);
        (void)look_for(pool, &job->helpers, all_left, 0);
        xph_lock_take(&pool->lock);
    }
    while (job->helpers > 0) xph_condition_wait(&pool->done, &pool->lock);
    xph_lock_leave(&pool->lock);
}

static void run_alone(xph_task_fn fn, void *arg, int64_t count)
{
    for (int64_t i = 0; i < count; i++) fn(arg, i, 0);
}

typedef struct hosted {
    xph_task_fn fn;
    void *arg;
} hosted;

/* Threads of the host run in whatever mode the host has set. */
static void run_hosted(void *arg, int64_t i, int32_t worker)
{
    XPH_OWN_FPU;
    const hosted *task = arg;
    task->fn(task->arg, i, worker);
}

void xph_parallel(exphil_context *context, xph_task_fn fn, void *arg, int64_t count)
{
    if (count <= 1 || xph_workers(context) == 1) {
        run_alone(fn, arg, count);
        return;
    }
    if (context->executor.parallel_for) {
        hosted task = {fn, arg};
        context->executor.parallel_for(context->executor.user, run_hosted, &task, count);
        return;
    }
    struct xph_pool *pool = the_pool(context);
    if (!pool || pool->started == 0) {
        run_alone(fn, arg, count);
        return;
    }
    xph_job job = {.fn = fn, .arg = arg, .count = count};
    add_job(pool, &job);
    work_on(&job, 0);
    finish_job(pool, &job);
}

size_t xph_parallel_bytes(const exphil_context *context)
{
    bool none = context->executor.parallel_for || context->threads == 1;
    return none || atomic_load(&context->pool) ? 0 : pool_bytes(context->threads - 1);
}

int32_t xph_workers(const exphil_context *context)
{
    return context->executor.parallel_for ? context->executor.workers : context->threads;
}

void xph_parallel_hold(exphil_context *context)
{
    atomic_fetch_add(&context->held, 1);
}

void xph_parallel_release(exphil_context *context)
{
    atomic_fetch_sub(&context->held, 1);
}
