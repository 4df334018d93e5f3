/* Threads that wait for work between two frames of a batch. */
#include "threads.h"
#include "world.h"

#include <stdlib.h>

struct world_crew {
    worker thread[WORLD_LANES];
    int64_t threads; /* beside the caller */
    gate turn;       /* one run at a time */
    gate lock;
    bell begin, end;
    uint64_t round; /* of work */
    int64_t working;
    int leaving;
    world_job job;
    void *user;
    int64_t count;
    atomic_llong next;
    int64_t failed_at; /* count: none */
    int32_t failure;
};

static void work(struct world_crew *crew)
{
    for (;;) {
        int64_t index = atomic_fetch_add_explicit(&crew->next, 1, memory_order_relaxed);
        if (index >= crew->count) return;
        int32_t code = crew->job(crew->user, index);
        if (!code) continue;
        gate_lock(&crew->lock);
        if (index < crew->failed_at) crew->failed_at = index, crew->failure = code;
        gate_unlock(&crew->lock);
    }
}

static void serve(void *user)
{
    struct world_crew *crew = user;
    uint64_t seen = 0;
    gate_lock(&crew->lock);
    for (;;) {
        while (crew->round == seen && !crew->leaving) bell_wait(&crew->begin, &crew->lock);
        if (crew->leaving) break;
        seen = crew->round;
        gate_unlock(&crew->lock);
        work(crew);
        gate_lock(&crew->lock);
        if (--crew->working == 0) bell_ring_one(&crew->end);
    }
    gate_unlock(&crew->lock);
}

struct world_crew *world_crew_make(int64_t threads)
{
    struct world_crew *crew = calloc(1, sizeof *crew);
    if (!crew) return NULL;
    gate_init(&crew->turn);
    gate_init(&crew->lock);
    bell_init(&crew->begin);
    bell_init(&crew->end);
    while (crew->threads < threads - 1) {
        if (worker_start(&crew->thread[crew->threads], serve, crew)) {
            world_crew_free(crew);
            return NULL;
        }
        crew->threads++;
    }
    return crew;
}

int32_t world_crew_run(struct world_crew *crew, int64_t count, world_job job, void *user)
{
    gate_lock(&crew->turn);
    gate_lock(&crew->lock);
    crew->job = job;
    crew->user = user;
    crew->count = crew->failed_at = count;
    crew->failure = 0;
    atomic_store_explicit(&crew->next, 0, memory_order_relaxed);
    crew->working = crew->threads;
    crew->round++;
    bell_ring_all(&crew->begin);
    gate_unlock(&crew->lock);
    work(crew);
    gate_lock(&crew->lock);
    while (crew->working) bell_wait(&crew->end, &crew->lock);
    gate_unlock(&crew->lock);
    int32_t failure = crew->failure;
    gate_unlock(&crew->turn);
    return failure;
}

void world_crew_free(struct world_crew *crew)
{
    if (!crew) return;
    gate_lock(&crew->lock);
    crew->leaving = 1;
    bell_ring_all(&crew->begin);
    gate_unlock(&crew->lock);
    for (int64_t i = 0; i < crew->threads; i++) worker_join(&crew->thread[i]);
    bell_free(&crew->end);
    bell_free(&crew->begin);
    gate_free(&crew->lock);
    gate_free(&crew->turn);
    free(crew);
}
