/* Kernels of table B, timed beside their floors. */
#ifndef EXPHIL_BENCH_KERNELS_H
#define EXPHIL_BENCH_KERNELS_H

#include "bench.h"

#include "cpu/kernels.h"

/* One operation with its shapes and memory. */
typedef struct kernel_case {
    const char *subject;
    char what[72];
    xph_op op;
    void *args;        /* its scratch is set here */
    size_t scratch_at; /* offset of args' scratch; 0: none */
    size_t mark;       /* memory of the benchmark before the case took its own */
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

/* Is a case of this subject and shape asked for? What it takes of the benchmark's memory from here on goes
 * back when it is timed. */
__attribute__((format(printf, 3, 4))) bool kernel_begin(const kernel_bench *k, kernel_case *c,
                                                        const char *what, ...);
void kernel_time(kernel_bench *k, kernel_case *c, void *args);
/* Weights [out, in] packed by the set; bytes may be NULL. */
void *kernel_pack(const kernel_bench *k, xph_type weights, int64_t in, int64_t out, const float *w,
                  size_t *bytes);

/* Rows, gain and shift of small numbers; nothing is saved. */
void bench_give_norm(xph_norm_args *a, int64_t rows, int64_t width);

/* Cases by subject. */
void kernel_cases_linear(kernel_bench *k);
void kernel_cases_recurrent(kernel_bench *k);
void kernel_cases_sequence(kernel_bench *k);
void kernel_cases_rows(kernel_bench *k);

#endif
