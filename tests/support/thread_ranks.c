#include "thread_ranks.h"

#include <stdlib.h>

struct thread_ranks {
    test_lock *lock;
    int32_t ranks, came, gone;
    int64_t round;
    void *data[THREAD_RANKS_MOST];
    int64_t count[THREAD_RANKS_MOST];
    int32_t type, code; /* code: of the round that ended */
    thread_how how;
    thread_rank rank[THREAD_RANKS_MOST];
    thread_rank_fn fn;
};

/* Element i of rank r, of either type. */
static double get(const struct thread_ranks *all, int32_t r, int64_t i)
{
    return all->type == EXPHIL_TYPE_F64 ? ((double *)all->data[r])[i] : (double)((float *)all->data[r])[i];
}

static double add(const struct thread_ranks *all, double a, double b)
{
    return all->type == EXPHIL_TYPE_F64 ? a + b : (double)((float)a + (float)b);
}

static void fold(const struct thread_ranks *all)
{
    for (int64_t i = 0; i < all->count[0]; i++) {
        double part[THREAD_RANKS_MOST];
        for (int32_t r = 0; r < all->ranks; r++) part[r] = get(all, r, i);
        if (all->how.tree) {
            for (int32_t apart = 1; apart < all->ranks; apart *= 2)
                for (int32_t r = 0; r + apart < all->ranks; r += 2 * apart)
                    part[r] = add(all, part[r], part[r + apart]);
        } else {
            for (int32_t r = 1; r < all->ranks; r++) part[0] = add(all, part[0], part[r]);
        }
        for (int32_t r = 0; r < all->ranks; r++) {
            if (all->type == EXPHIL_TYPE_F64)
                ((double *)all->data[r])[i] = part[0];
            else
                ((float *)all->data[r])[i] = (float)part[0];
        }
    }
}

/* The last one to come adds up. */
static void finish(struct thread_ranks *all)
{
    all->code = 0;
    for (int32_t r = 1; r < all->ranks; r++)
        if (all->count[r] != all->count[0]) all->code = THREAD_RANKS_BROKEN;
    if (!all->code) fold(all);
    all->came = 0;
    all->round++;
    test_lock_wake(all->lock);
}

static int32_t all_reduce(void *user, void *data, int64_t count, int32_t type)
{
    thread_rank *own = user;
    struct thread_ranks *all = own->all;
    const thread_how *how = &all->how;
    const bool fails = ++own->calls == how->fails_at && own->armed;
    if (fails && how->only_rank < 0) return THREAD_RANKS_BROKEN;
    test_lock_enter(all->lock);
    all->data[own->rank] = data;
    all->count[own->rank] = count;
    all->type = type;
    const int64_t round = all->round;
    if (++all->came == all->ranks)
        finish(all);
    else
        while (all->round == round && !all->gone) test_lock_wait(all->lock);
    int32_t code = all->round == round ? THREAD_RANKS_GONE : all->code;
    test_lock_leave(all->lock);
    return fails && how->only_rank == own->rank ? THREAD_RANKS_BROKEN : code;
}

struct thread_ranks *thread_ranks_open(int32_t ranks, thread_how how)
{
    struct thread_ranks *all = calloc(1, sizeof *all);
    assert_non_null(all);
    assert_true(ranks <= THREAD_RANKS_MOST);
    all->ranks = ranks;
    all->how = how;
    all->lock = test_lock_make();
    for (int32_t r = 0; r < ranks; r++) {
        thread_rank *own = &all->rank[r];
        *own = (thread_rank){.all = all, .rank = r, .ranks = ranks};
        own->communicator = (exphil_communicator){sizeof own->communicator, own, all_reduce, r, ranks};
    }
    return all;
}

thread_rank *thread_ranks_of(struct thread_ranks *all, int32_t rank)
{
    return &all->rank[rank];
}

void thread_ranks_leave(thread_rank *rank)
{
    test_lock_enter(rank->all->lock);
    rank->all->gone++;
    test_lock_wake(rank->all->lock);
    test_lock_leave(rank->all->lock);
}

void thread_ranks_close(struct thread_ranks *all)
{
    test_lock_free(all->lock);
    free(all);
}

static void *work(void *given)
{
    thread_rank *own = given;
    own->all->fn(own);
    thread_ranks_leave(own);
    return NULL;
}

void thread_ranks_run(int32_t ranks, thread_rank_fn fn, void *const *user, thread_how how)
{
    struct thread_ranks *all = thread_ranks_open(ranks, how);
    test_thread thread[THREAD_RANKS_MOST];
    all->fn = fn;
    for (int32_t r = 0; r < ranks; r++) {
        all->rank[r].user = user ? user[r] : NULL;
        test_thread_start(&thread[r], work, &all->rank[r]);
    }
    for (int32_t r = 0; r < ranks; r++) (void)test_thread_join(&thread[r]);
    thread_ranks_close(all);
}
