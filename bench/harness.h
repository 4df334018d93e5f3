/* One way of timing for every subject: works are run in turn, round after round, so that what the machine does meanwhile
 * hits all of them alike; what comes out are quantiles of the samples. On one core, with real-time priority where the
 * system allows it, and with pauses, so that neither the limit of real-time tasks nor heat takes part. */
#ifndef EXPHIL_BENCH_HARNESS_H
#define EXPHIL_BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One thing to time. run does it `calls` times. */
typedef struct bench_work {
    void (*run)(void *arg, int64_t calls);
    void *arg;
    int64_t calls;  /* in one sample; 0: so many that a sample takes long enough for the clock */
    double *sample; /* nanoseconds of one call; made by bench_measure */
    size_t count, capacity;
} bench_work;

typedef struct bench_effort {
    int rounds;                /* turns; 0: 5 */
    double round_ns;           /* of each work in each turn; 0: 20 ms */
    int64_t round_calls;       /* so many samples in each turn instead; 0: by time */
    double sample_ns;          /* least length of a sample when calls is 0; 0: 50 us */
    int64_t pause_ns;          /* sleep before each call (paced): then every call is a sample of its own */
    void (*before)(void *arg); /* not timed, before each sample; NULL: nothing */
    void *before_arg;
    double most_ns; /* stop starting rounds of all works together after this long; 0: never */
} bench_effort;

/* False: no memory. Samples are added to those that are there. */
bool bench_measure(bench_work *works, int count, const bench_effort *effort);
bool bench_work_add(bench_work *work, double ns); /* a sample that was measured elsewhere; false: no memory */
void bench_work_free(bench_work *work);

typedef struct bench_stats {
    int64_t samples;
    double least, p25, p50, p75, p99, p999, most; /* ns */
} bench_stats;
/* Sorts the samples. */
bench_stats bench_stats_of(bench_work *work);
int bench_ascending(const void *a, const void *b); /* of doubles, for qsort */

int64_t bench_now(void);     /* ns, monotonic */
int64_t bench_cpu_now(void); /* ns of processor time of the whole process */
void bench_sleep(int64_t ns);

/* Takes one core (the caller's choice when it has already made one) and real-time priority. Says what it got. */
typedef struct bench_place {
    int core; /* -1: not pinned */
    bool fifo;
} bench_place;
bench_place bench_take_place(bool pin, bool fifo);
/* Back to all cores and plain priority: what starts threads wants this. */
void bench_leave_place(void);

bench_place bench_where(void);
void bench_stay(bench_place place); /* on that core again */
/* Keeps its priority but may use all cores again; threads that are made afterwards may too. */
void bench_roam(void);
/* The cores this process may use, in order. */
int bench_cores(void);
int bench_core(int i);

/* 64-byte aligned, on pages of their own, filled with small numbers; never fails (ends the program). */
void *bench_memory(size_t bytes);
float *bench_floats(size_t count, float scale);
void bench_seed(uint32_t seed); /* of the numbers that follow */
/* Gives back all that bench_memory gave since the mark. */
size_t bench_memory_mark(void);
void bench_memory_release(size_t mark);

/* Clears the lines of [address, bytes) from all caches, where the processor can. */
void bench_clear(const void *address, size_t bytes);
/* Reads and writes other memory than the caller's until nothing of it is left in any cache of this core that is not
 * shared, and clears the lines of [address, bytes) from all caches where the processor can. */
void bench_flush(const void *address, size_t bytes);

#endif
