/* Timing: see harness.h. */
#include "harness.h"

#include <stdlib.h>
#include <time.h>

/* ---- clock --------------------------------------------------------------------------------------------- */

static int64_t read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t bench_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t bench_cpu_now(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

void bench_sleep(int64_t ns)
{
    struct timespec t = {ns / 1000000000, (long)(ns % 1000000000)};
    while (nanosleep(&t, &t) != 0) continue;
}

/* ---- measuring ----------------------------------------------------------------------------------------- */

/* Real-time tasks may have 95 % of a core: after so much work a sleep of a tenth of it. */
enum { STRETCH = 40000000, REST = 10 };

typedef struct stretch {
    int64_t began;
} stretch;

/* Sleeps when it is time to; what was warm is made warm again by one call that does not count. */
static void breathe(stretch *s, bench_work *work)
{
    int64_t worked = bench_now() - s->began;
    if (worked < STRETCH) return;
    bench_sleep(worked / REST);
    if (work) work->run(work->arg, 1);
    s->began = bench_now();
}

bool bench_work_add(bench_work *work, double ns)
{
    if (work->count == work->capacity) {
        size_t capacity = work->capacity ? work->capacity * 2 : 256;
        double *grown = realloc(work->sample, capacity * sizeof *grown);
        if (!grown) return false;
        work->sample = grown;
        work->capacity = capacity;
    }
    work->sample[work->count++] = ns;
    return true;
}

/* One call of unknown cost, then so many that a sample takes long enough. */
static void calibrate(bench_work *work, double sample_ns)
{
    work->run(work->arg, 1);
    if (work->calls) return;
    int64_t calls = 1;
    for (;;) {
        int64_t before = bench_now();
        work->run(work->arg, calls);
        double took = (double)(bench_now() - before);
        if (took >= sample_ns || calls > (int64_t)1 << 40) break;
        double want = took > 0 ? sample_ns / took * 1.2 : 16;
        calls = (int64_t)((double)calls * (want > 16 ? 16 : want < 1.5 ? 1.5 : want)) + 1;
    }
    work->calls = calls;
}

static bool one_turn(bench_work *work, const bench_effort *e, stretch *s)
{
    double round_ns = e->round_ns > 0 ? e->round_ns : 20e6, spent = 0;
    int64_t calls = e->pause_ns ? 1 : work->calls, done = 0;
    if (!e->pause_ns) work->run(work->arg, 1);
    do {
        if (e->pause_ns)
            bench_sleep(e->pause_ns);
        else
            breathe(s, work);
        if (e->before) e->before(e->before_arg);
        int64_t before = bench_now();
        work->run(work->arg, calls);
        double took = (double)(bench_now() - before);
        spent += took + (double)e->pause_ns;
        if (!bench_work_add(work, took / (double)calls)) return false;
        done++;
    } while (e->round_calls ? done < e->round_calls : spent < round_ns);
    return true;
}

bool bench_measure(bench_work *works, int count, const bench_effort *effort)
{
    int rounds = effort->rounds ? effort->rounds : 5;
    double sample_ns = effort->sample_ns > 0 ? effort->sample_ns : 50e3;
    stretch s = {bench_now()};
    int64_t began = bench_now();
    for (int i = 0; i < count; i++) calibrate(&works[i], sample_ns);
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < count; i++)
            if (!one_turn(&works[i], effort, &s)) return false;
        if (effort->most_ns > 0 && (double)(bench_now() - began) > effort->most_ns) break;
    }
    return true;
}

int bench_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bench_stats bench_stats_of(bench_work *work)
{
    bench_stats s = {.samples = (int64_t)work->count};
    if (work->count == 0) return s;
    qsort(work->sample, work->count, sizeof *work->sample, bench_ascending);
    double last = (double)(work->count - 1);
    const double *v = work->sample;
    s.least = v[0];
    s.p25 = v[(size_t)(last * 0.25 + 0.5)];
    s.p50 = v[(size_t)(last * 0.5 + 0.5)];
    s.p75 = v[(size_t)(last * 0.75 + 0.5)];
    s.p99 = v[(size_t)(last * 0.99 + 0.5)];
    s.p999 = v[(size_t)(last * 0.999 + 0.5)];
    s.most = v[work->count - 1];
    return s;
}

void bench_work_free(bench_work *work)
{
    free(work->sample);
    work->sample = NULL;
    work->count = work->capacity = 0;
}
