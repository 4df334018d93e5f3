/* Timing: see harness.h. */
#include "harness.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

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
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    while (nanosleep(&t, &t) != 0) continue;
}

/* ---- place --------------------------------------------------------------------------------------------- */

static cpu_set_t all_cores;
static bool placed;
static bench_place taken = {-1, false};

int bench_core(int i)
{
    if (!placed) placed = sched_getaffinity(0, sizeof all_cores, &all_cores) == 0;
    for (size_t core = 0; placed && core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &all_cores) && i-- == 0) return (int)core;
    return -1;
}

int bench_cores(void)
{
    int count = 0;
    while (bench_core(count) >= 0) count++;
    return count;
}

static bool pin_to(int core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

bench_place bench_take_place(bool pin, bool fifo)
{
    bench_place place = {-1, false};
    if (sched_getaffinity(0, sizeof all_cores, &all_cores) != 0) return place;
    placed = true;
    /* The last core: interrupts like the first one. */
    for (size_t i = 0; pin && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all_cores)) place.core = (int)i;
    if (place.core >= 0 && !pin_to(place.core)) place.core = -1;
    struct sched_param parameter = {.sched_priority = 50};
    place.fifo =
        sched_getscheduler(0) == SCHED_FIFO || (fifo && sched_setscheduler(0, SCHED_FIFO, &parameter) == 0);
    taken = place;
    return place;
}

bench_place bench_where(void)
{
    return taken;
}

void bench_stay(bench_place place)
{
    if (place.core >= 0) (void)pin_to(place.core);
}

void bench_roam(void)
{
    if (placed) (void)sched_setaffinity(0, sizeof all_cores, &all_cores);
}

void bench_leave_place(void)
{
    struct sched_param parameter = {.sched_priority = 0};
    (void)sched_setscheduler(0, SCHED_OTHER, &parameter);
    if (placed) (void)sched_setaffinity(0, sizeof all_cores, &all_cores);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

enum { BLOCKS = 512 };
static struct {
    void *address;
    size_t bytes;
} blocks[BLOCKS];
static size_t block_count;
static uint32_t noise = 12345;

static float noise_next(void)
{
    noise = noise * 1664525u + 1013904223u;
    return (float)(noise >> 8) * (2.0f / 16777216.0f) - 1.0f;
}

void bench_seed(uint32_t seed)
{
    noise = seed;
}

static void give_up(const char *why)
{
    fprintf(stderr, "exphil: bench: %s\n", why);
    exit(1);
}

void *bench_memory(size_t bytes)
{
    if (bytes == 0) bytes = 1;
    if (block_count == BLOCKS) give_up("too many blocks of memory");
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) give_up("no memory");
    blocks[block_count].address = p;
    blocks[block_count++].bytes = bytes;
    memset(p, 0, bytes);
    return p;
}

float *bench_floats(size_t count, float scale)
{
    float *p = bench_memory(count * sizeof *p);
    for (size_t i = 0; i < count; i++) p[i] = scale * noise_next();
    return p;
}

size_t bench_memory_mark(void)
{
    return block_count;
}

void bench_memory_release(size_t mark)
{
    while (block_count > mark) {
        block_count--;
        (void)munmap(blocks[block_count].address, blocks[block_count].bytes);
    }
}

void bench_clear(const void *address, size_t bytes)
{
#if defined(__x86_64__)
    const char *p = address;
    for (size_t i = 0; i < bytes; i += 64) _mm_clflush(p + i);
    _mm_mfence();
#else
    (void)address, (void)bytes;
#endif
}

void bench_flush(const void *address, size_t bytes)
{
    static char *other;
    enum { OTHER = 8 << 20 }; /* more than the caches that a core has for itself */
    bench_clear(address, bytes);
    if (!other) other = calloc(1, OTHER);
    for (size_t i = 0; other && i < OTHER; i += 64) other[i]++;
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

static bool add_sample(bench_work *work, double ns)
{
    if (work->count == work->room) {
        size_t room = work->room ? work->room * 2 : 256;
        double *grown = realloc(work->sample, room * sizeof *grown);
        if (!grown) return false;
        work->sample = grown;
        work->room = room;
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
        if (!add_sample(work, took / (double)calls)) return false;
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

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bench_stats bench_stats_of(bench_work *work)
{
    bench_stats s = {.samples = (int64_t)work->count};
    if (work->count == 0) return s;
    qsort(work->sample, work->count, sizeof *work->sample, by_size);
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
    work->count = work->room = 0;
}
