/* A busy neighbour: the other load of a machine that runs a game. */
#include "step.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MOST = 64, WALK = 64 << 20 };

typedef struct walker {
    bench_neighbour *of;
    int core;
} walker;

struct bench_neighbour {
    pthread_t id[MOST];
    walker walker[MOST];
    int count;
    atomic_int stop;
};

static void *walk(void *arg)
{
    const walker *w = arg;
    bench_neighbour *n = w->of;
    bench_stay((bench_place){w->core, false});
    volatile uint64_t *memory = calloc(1, WALK);
    uint64_t sum = 1;
    while (memory && !atomic_load(&n->stop))
        for (size_t i = 0; i < WALK / sizeof *memory && !atomic_load(&n->stop); i += 8) {
            sum = sum * 6364136223846793005u + memory[i];
            memory[i] = sum;
        }
    free((void *)(uintptr_t)memory);
    return NULL;
}

static bool start(bench_neighbour *n, int core)
{
    pthread_attr_t attr;
    struct sched_param parameter = {.sched_priority = 0};
    n->walker[n->count] = (walker){n, core};
    if (pthread_attr_init(&attr) != 0) return false;
    bool good = pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED) == 0 &&
                pthread_attr_setschedpolicy(&attr, SCHED_OTHER) == 0 &&
                pthread_attr_setschedparam(&attr, &parameter) == 0 &&
                pthread_create(&n->id[n->count], &attr, walk, &n->walker[n->count]) == 0;
    n->count += good;
    pthread_attr_destroy(&attr);
    return good;
}

bench_neighbour *bench_neighbour_begin(void)
{
    bench_neighbour *n = calloc(1, sizeof *n);
    if (!n) return NULL;
    int cores = bench_cores();
    for (int i = 0; i < cores && n->count < MOST; i++) (void)start(n, bench_core(i));
    return n;
}

void bench_neighbour_end(bench_neighbour *n)
{
    if (!n) return;
    atomic_store(&n->stop, 1);
    for (int i = 0; i < n->count; i++) pthread_join(n->id[i], NULL);
    free(n);
}
