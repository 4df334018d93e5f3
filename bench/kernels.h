/* Kernels of table B, timed beside their floors. */
#ifndef EXPHIL_BENCH_KERNELS_H
#define EXPHIL_BENCH_KERNELS_H

#include "bench.h"

#include "cpu/kernels.h"

#define BENCH_NO_SCRATCH SIZE_MAX

/* One operation with its shapes and memory. */
typedef struct kernel_case {
    const char *subject;
    char what[72];
    xph_op op;
    void *args;        /* its scratch is set here */
    size_t scratch_at; /* offset of args' scratch, or BENCH_NO_SCRATCH */
    double items;
    const char *item;
    int floor;     /* FLOOR_... */
    double amount; /* of the floor's work in one call; 0: one call of the floor */
    bench_pass pass;
    double bar_floors; /* at most so many times the floor; 0: none */
    double bar_ns;     /* or so long */
} kernel_case;

typedef struct kernel_bench {
    bench_report *report;
    const bench_options *options;
    const xph_kernel_set *set;
    exphil_context *context; /* of more than one thread, or NULL */
    xph_stream *stream;
    bool failed;
} kernel_bench;

bool kernel_wanted(const kernel_bench *k, const char *subject, const char *what);
void kernel_time(kernel_bench *k, kernel_case *c);
/* Weights [out, in] packed by the set; bytes may be NULL. */
void *kernel_pack(const kernel_bench *k, xph_type weights, int64_t in, int64_t out, const float *w,
                  size_t *bytes);

/* Cases by subject. */
void kernel_cases_linear(kernel_bench *k);
void kernel_cases_recurrent(kernel_bench *k);
void kernel_cases_sequence(kernel_bench *k);
void kernel_cases_rows(kernel_bench *k);

#endif
