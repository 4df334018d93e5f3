/* Threads that wait for work between two frames of a batch. */
#include "world.h"

#include <pthread.h>
#include <stdlib.h>

struct world_crew {
    pthread_t thread[WORLD_LANES];
    int64_t threads;      /* beside the caller */
    pthread_mutex_t gate; /* one run at a time */
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
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
        pthread_mutex_lock(&crew->lock);
        if (index < crew->failed_at) crew->failed_at = index, crew->failure = code;
        pthread_mutex_unlock(&crew->lock);
    }
}

static void *serve(void *user)
{
    struct world_crew *crew = user;
    uint64_t seen = 0;
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (crew->round == seen && !crew->leaving) pthread_cond_wait(&crew->begin, &crew->lock);
        if (crew->leaving) break;
        seen = crew->round;
        pthread_mutex_unlock(&crew->lock);
        work(crew);
        pthread_mutex_lock(&crew->lock);
        if (--crew->working == 0) pthread_cond_signal(&crew->end);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

struct world_crew *world_crew_make(int64_t threads)
{
    struct world_crew *crew = calloc(1, sizeof *crew);
    if (!crew) return NULL;
    pthread_mutex_init(&crew->gate, NULL);
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->begin, NULL);
    pthread_cond_init(&crew->end, NULL);
    while (crew->threads < threads - 1) {
        if (pthread_create(&crew->thread[crew->threads], NULL, serve, crew)) {
            world_crew_free(crew);
            return NULL;
        }
        crew->threads++;
    }
    return crew;
}

int32_t world_crew_run(struct world_crew *crew, int64_t count, world_job job, void *user)
{
    pthread_mutex_lock(&crew->gate);
    pthread_mutex_lock(&crew->lock);
    crew->job = job;
    crew->user = user;
    crew->count = crew->failed_at = count;
    crew->failure = 0;
    atomic_store_explicit(&crew->next, 0, memory_order_relaxed);
    crew->working = crew->threads;
    crew->round++;
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->lock);
    work(crew);
    pthread_mutex_lock(&crew->lock);
    while (crew->working) pthread_cond_wait(&crew->end, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
    int32_t failure = crew->failure;
    pthread_mutex_unlock(&crew->gate);
    return failure;
}

void world_crew_free(struct world_crew *crew)
{
    if (!crew) return;
    pthread_mutex_lock(&crew->lock);
    crew->leaving = 1;
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->lock);
    for (int64_t i = 0; i < crew->threads; i++) pthread_join(crew->thread[i], NULL);
    pthread_cond_destroy(&crew->end);
    pthread_cond_destroy(&crew->begin);
    pthread_mutex_destroy(&crew->lock);
    pthread_mutex_destroy(&crew->gate);
    free(crew);
}
