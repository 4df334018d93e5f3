/* Windows' half of threads.h. */
#ifndef EXPHIL_LIBRETRO_THREADS_WINDOWS_H
#define EXPHIL_LIBRETRO_THREADS_WINDOWS_H

#ifndef WIN32_LEAN_AND_MEAN
#  define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

typedef SRWLOCK gate;
typedef CONDITION_VARIABLE bell;
typedef void (*worker_work)(void *user);
typedef struct worker {
    HANDLE thread;
    worker_work work;
    void *user;
} worker;

static inline void gate_init(gate *g)
{
    InitializeSRWLock(g);
}

static inline void gate_free(gate *g)
{
    (void)g;
}

static inline void gate_lock(gate *g)
{
    AcquireSRWLockExclusive(g);
}

static inline void gate_unlock(gate *g)
{
    ReleaseSRWLockExclusive(g);
}

static inline void bell_init(bell *b)
{
    InitializeConditionVariable(b);
}

static inline void bell_free(bell *b)
{
    (void)b;
}

static inline void bell_wait(bell *b, gate *g)
{
    SleepConditionVariableSRW(b, g, INFINITE, 0);
}

static inline void bell_ring_one(bell *b)
{
    WakeConditionVariable(b);
}

static inline void bell_ring_all(bell *b)
{
    WakeAllConditionVariable(b);
}

static inline DWORD WINAPI worker_run(void *user)
{
    worker *w = user;
    w->work(w->user);
    return 0;
}

static inline int worker_start(worker *w, worker_work work, void *user)
{
    w->work = work, w->user = user;
    w->thread = CreateThread(NULL, 0, worker_run, w, 0, NULL);
    return w->thread ? 0 : -1;
}

static inline void worker_join(worker *w)
{
    WaitForSingleObject(w->thread, INFINITE);
    CloseHandle(w->thread);
}
#endif
