/* Threads, as a crew wants them. threads_posix.h or threads_windows.h. */
#ifndef EXPHIL_LIBRETRO_THREADS_H
#define EXPHIL_LIBRETRO_THREADS_H

#ifdef _WIN32
#  include "threads_windows.h"
#else
#  include "threads_posix.h"
#endif

static inline void gate_init(gate *g);
static inline void gate_free(gate *g);
static inline void gate_lock(gate *g);
static inline void gate_unlock(gate *g);
static inline void bell_init(bell *b);
static inline void bell_free(bell *b);
static inline void bell_wait(bell *b, gate *g); /* g is locked before and after */
static inline void bell_ring_one(bell *b);
static inline void bell_ring_all(bell *b);
/* -1: no thread. */
static inline int worker_start(worker *w, worker_work work, void *user);
static inline void worker_join(worker *w);

#endif
