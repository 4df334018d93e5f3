/* What the peers written in C share: the arrays of a case, and the conversation of `exphil bench serve`. */
#ifndef EXPHIL_BENCH_PEER_H
#define EXPHIL_BENCH_PEER_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t peer_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void peer_sleep(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    while (nanosleep(&t, &t) != 0) continue;
}

static void peer_fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void *peer_memory(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, (bytes + 63) / 64 * 64) != 0) peer_fail("no memory");
    memset(p, 0, bytes);
    return p;
}

/* A whole file of numbers of four bytes, which must be count. */
static float *peer_load(const char *folder, const char *name, size_t count)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.bin", folder, name);
    FILE *f = fopen(path, "rb");
    float *data = peer_memory(count * sizeof *data);
    if (!f || fread(data, sizeof *data, count, f) != count) peer_fail(path);
    fclose(f);
    return data;
}

/* What came out, for the driver to compare. */
static void peer_save(const char *folder, const char *name, const float *data, size_t count)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.bin", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, sizeof *data, count, f) != count || fclose(f) != 0) peer_fail(path);
}

/* Real-time tasks may have 95 % of a core: after 40 ms of work a tenth of that is slept. */
static void peer_breathe(int64_t *began, void (*run)(void *arg), void *arg)
{
    int64_t worked = peer_now() - *began;
    if (worked < 40000000) return;
    peer_sleep(worked / 10);
    run(arg);
    *began = peer_now();
}

static void peer_round(void (*run)(void *arg), void *arg, int64_t calls, int64_t pause)
{
    double *ns = peer_memory((size_t)calls * sizeof *ns);
    int64_t began = peer_now();
    run(arg);
    for (int64_t i = 0; i < calls; i++) {
        if (pause)
            peer_sleep(pause);
        else
            peer_breathe(&began, run, arg);
        int64_t before = peer_now();
        run(arg);
        ns[i] = (double)(peer_now() - before);
    }
    printf("{\"ns\":[");
    for (int64_t i = 0; i < calls; i++) printf("%s%.0f", i ? "," : "", ns[i]);
    printf("]}\n");
    fflush(stdout);
    free(ns);
}

static void peer_converse(void (*run)(void *arg), void *arg)
{
    char line[128];
    int64_t calls, pause;
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "quit", 4) == 0) return;
        if (sscanf(line, "round %" SCNd64 " %" SCNd64, &calls, &pause) != 2) peer_fail("not understood");
        peer_round(run, arg, calls, pause);
    }
}

#endif
