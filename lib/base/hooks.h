/* The context as the files of this room see it. What other rooms may do with one is in base.h. */
#ifndef XPH_BASE_HOOKS_H
#define XPH_BASE_HOOKS_H

#include "base/base.h"
#include "base/system.h"

#define XPH_LOG_LINE  240 /* bytes of one line, with its end */
#define XPH_LOG_QUEUE 32  /* lines that wait for a flush; more are counted and dropped */

#define XPH_MOST_WORKERS    1024
#define XPH_MOST_INTERRUPTS 1000 /* EINTR in a row before a file operation counts as failed */

typedef struct xph_log_queue {
    xph_lock lock;
    int32_t first, count;
    uint64_t dropped;
    exphil_log_level level[XPH_LOG_QUEUE];
    char line[XPH_LOG_QUEUE][XPH_LOG_LINE];
} xph_log_queue;

typedef struct xph_pool xph_pool;

struct exphil_context {
    atomic_int references;
    int32_t threads;                     /* of the own pool, the caller among them; at least 1 */
    const volatile unsigned char *birth; /* a page that reads 0 in a forked child; NULL: ask for the pid */
    int64_t pid;
    exphil_allocator allocator;
    exphil_io io;
    exphil_executor executor; /* parallel_for NULL: own pool */
    exphil_log_fn log;
    void *log_user;
    exphil_cancel_fn cancel;
    void *cancel_user;
    exphil_log_level log_level;
    xph_isa isa;
    atomic_uint_fast64_t used, peak, allocations;
    xph_lock pool_lock;     /* guards the making of the pool */
    xph_pool *_Atomic pool; /* made by the first call that has work for two */
    atomic_int held;        /* xph_parallel_hold: more than 0 while work follows work */
    void *attached;         /* of lib/device; goes to close */
    void (*close)(void *attached);
    xph_log_queue queue;
};

/* True in a process that is not the one that made the context. */
bool xph_forked(const exphil_context *context);

void xph_pool_destroy(exphil_context *context);

#endif
