/* How long this machine stops at times, with the library and without it: eight threads at 60 Hz, each a session of the
 * default policy; then the same threads, which read as much memory as a decision does instead. No host can do better than the
 * second line: what it shows is the system's, the virtual machine's, the caches'.
 *   pauses [SECONDS]      of each half, default 60 */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include <exphil/exphil.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    PLAYERS = 8,
    RATE = 60,
    STRIDE = 128
}; /* bytes: two lines of a cache, which processors fetch together */

typedef struct player {
    pthread_t thread;
    exphil_session *session;
    const unsigned char *memory; /* NULL: play */
    size_t bytes;
    int frames, sum;
    int over, preempted_over; /* work of over 1 ms of processor time: uninterrupted, and not */
    double total_ms, most_ms;
    exphil_status status;
} player;

static double milliseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static long preemptions(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

static void sleep_until(double ms)
{
    struct timespec at = {(time_t)(ms / 1e3), 0};
    at.tv_nsec = (long)((ms - (double)at.tv_sec * 1e3) * 1e6);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void work(player *p, int frame)
{
    if (p->memory) {
        for (size_t i = 0; i < p->bytes; i += STRIDE) p->sum += p->memory[i];
        return;
    }
    exphil_melee_frame seen = EXPHIL_MELEE_FRAME_INIT;
    exphil_pad pad;
    seen.frame = frame;
    seen.stage = 32; /* Final Destination */
    seen.own_port = 1;
    for (int i = 0; i < 2; i++) seen.player[i].present = 1, seen.player[i].known = EXPHIL_MELEE_HAS_ALL;
    exphil_status status = exphil_session_step(p->session, &seen, &pad);
    if (status < 0) p->status = status;
}

static void *play(void *argument)
{
    player *p = argument;
    double begin = milliseconds(CLOCK_MONOTONIC);
    for (int frame = 0; frame < p->frames; frame++) {
        sleep_until(begin + (frame + 1) * 1e3 / RATE);
        long before = preemptions();
        double from = milliseconds(CLOCK_THREAD_CPUTIME_ID);
        work(p, frame);
        double took = milliseconds(CLOCK_THREAD_CPUTIME_ID) - from;
        p->total_ms += took;
        if (took > p->most_ms) p->most_ms = took;
        if (took > 1 && preemptions() == before)
            p->over++;
        else if (took > 1)
            p->preempted_over++;
    }
    return NULL;
}

/* All players at once; false: one failed. */
static int run(player *players, const char *name)
{
    player all = {0};
    for (int i = 0; i < PLAYERS; i++)
        if (pthread_create(&players[i].thread, NULL, play, &players[i]) != 0) exit(1);
    for (int i = 0; i < PLAYERS; i++) {
        const player *p = &players[i];
        pthread_join(p->thread, NULL);
        all.frames += p->frames, all.total_ms += p->total_ms;
        all.over += p->over, all.preempted_over += p->preempted_over;
        if (p->most_ms > all.most_ms) all.most_ms = p->most_ms;
        if (p->status < 0) all.status = p->status;
    }
    printf("%s: %d threads at %d Hz: %d times %.3f ms of processor time, over 1 ms %d, and %d that were "
           "preempted, longest %.3f ms\n",
           name, PLAYERS, RATE, all.frames, all.total_ms / all.frames, all.over, all.preempted_over,
           all.most_ms);
    if (all.status < 0) fprintf(stderr, "pauses: %s\n", exphil_status_name(all.status));
    return all.status >= 0;
}

int main(int argc, char **argv)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = NULL;
    exphil_model *model = NULL;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    player players[PLAYERS] = {0}, readers[PLAYERS] = {0};
    int frames = RATE * (argc > 1 ? atoi(argv[1]) : 60);
    if (frames < RATE) return fprintf(stderr, "usage: pauses [SECONDS]\n"), 2;
    if (exphil_context_create(NULL, &context, &error) < 0 ||
        exphil_model_create(context, &config, &model, &error) < 0 ||
        exphil_model_query(model, &info, &error) < 0)
        return fprintf(stderr, "pauses: %s\n", error.message), 1;
    size_t bytes = (size_t)info.parameter_count * sizeof(float);
    unsigned char *memory = malloc(bytes);
    if (!memory) return fprintf(stderr, "pauses: no memory\n"), 1;
    memset(memory, 1, bytes);
    for (int i = 0; i < PLAYERS; i++) {
        players[i].frames = readers[i].frames = frames;
        readers[i].memory = memory, readers[i].bytes = bytes;
        if (exphil_session_create(model, NULL, &players[i].session, &error) < 0)
            return fprintf(stderr, "pauses: %s\n", error.message), 1;
    }
    int good = run(players, "libexphil") & run(readers, "reading as much memory");
    for (int i = 0; i < PLAYERS; i++) exphil_session_destroy(players[i].session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    free(memory);
    return good ? 0 : 1;
}
