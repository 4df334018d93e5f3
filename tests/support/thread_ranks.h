/* Ranks that are threads of the test, each with a context of its own: a communicator that folds in the order of the ranks, and
 * what goes wrong with one. */
#ifndef EXPHIL_THREAD_RANKS_H
#define EXPHIL_THREAD_RANKS_H

#include "test.h"

enum { THREAD_RANKS_MOST = 8, THREAD_RANKS_GONE = 77, THREAD_RANKS_BROKEN = 78 };

/* One rank, as its function is given it. */
typedef struct thread_rank {
    struct thread_ranks *all;
    int32_t rank, ranks;
    exphil_communicator communicator;
    int64_t calls; /* of all_reduce, since the test set it to 0 */
    bool armed;    /* trouble begins here */
    void *user;    /* the test's own */
} thread_rank;

typedef void (*thread_rank_fn)(thread_rank *rank);

/* What may be asked for: call number fails_at (from 1; 0: none) fails on all ranks, or on only_rank alone (-1: all). */
typedef struct thread_how {
    int64_t fails_at;
    int32_t only_rank;
    bool
        tree; /* sums are ((0 + 1) + (2 + 3)) + ..., of a power of two of ranks; else in the order of the ranks */
} thread_how;

/* Communicators for ranks that the test runs itself: it calls leave for each at its end, then close. */
struct thread_ranks *thread_ranks_open(int32_t ranks, thread_how how);
thread_rank *thread_ranks_of(struct thread_ranks *all, int32_t rank);
void thread_ranks_leave(thread_rank *rank);
void thread_ranks_close(struct thread_ranks *all);

/* Runs fn on so many ranks at once, user[r] for rank r (or NULL), and waits for all. A rank whose fn returns is gone: the others'
 * calls then end with THREAD_RANKS_GONE, so that nobody waits for ever. */
void thread_ranks_run(int32_t ranks, thread_rank_fn fn, void *const *user, thread_how how);

#endif
