/* POSIX's half of threads.h. */
#ifndef EXPHIL_LIBRETRO_THREADS_POSIX_H
#define EXPHIL_LIBRETRO_THREADS_POSIX_H

#include <pthread.h>

typedef pthread_mutex_t gate;
typedef pthread_cond_t bell;
typedef void (*worker_work)(void *user);
typedef struct worker {
    pthread_t thread;
    worker_work work;
    void *user;
} worker;

static inline void gate_init(gate *g)
{
    pthread_mutex_init(g, NULL);
}

static inline void gate_free(gate *g)
{
    pthread_mutex_destroy(g);
}

static inline void gate_lock(gate *g)
{
    pthread_mutex_lock(g);
}

static inline void gate_unlock(gate *g)
{
    pthread_mutex_unlock(g);
}

static inline void bell_init(bell *b)
{
    pthread_cond_init(b, NULL);
}

static inline void bell_free(bell *b)
{
    pthread_cond_destroy(b);
}

static inline void bell_wait(bell *b, gate *g)
{
    pthread_cond_wait(b, g);
}

static inline void bell_ring_one(bell *b)
{
    pthread_cond_signal(b);
}

static inline void bell_ring_all(bell *b)
{
    pthread_cond_broadcast(b);
}

static inline void *worker_run(void *user)
{
    worker *w = user;
    w->work(w->user);
    return NULL;
}

static inline int worker_start(worker *w, worker_work work, void *user)
{
    w->work = work, w->user = user;
    return pthread_create(&w->thread, NULL, worker_run, w) ? -1 : 0;
}

static inline void worker_join(worker *w)
{
    pthread_join(w->thread, NULL);
}
#endif
