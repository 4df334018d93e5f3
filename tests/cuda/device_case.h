/* A case of kernel_test.h on the emulated GPU: every candidate of a CUDA list that accepts it runs under all schedules,
 * in guarded memory of the device; results must be those of the CPU's double kernels within a tolerance (as case_close
 * means it), and the same bits for all candidates and schedules. */
#ifndef EXPHIL_DEVICE_CASE_H
#define EXPHIL_DEVICE_CASE_H

#include "emu_control.h"
#include "kernel_test.h"
#include "kernels.h"

/* The types of rows. */
enum { DEVICE_TYPES = 3 };
extern const xph_type device_types[DEVICE_TYPES];
double device_tolerance(xph_type type); /* of results against those in double */
/* Numbers as they lie in memory, rounded to nearest even. */
size_t device_bytes(xph_type type);
void device_put(xph_type type, void *to, int64_t i, double x);
double device_get(xph_type type, const void *from, int64_t i);
double device_rounded(xph_type type, double x);

/* type: for XPH_BF16 and XPH_F16 the tensors with rows per frame are rounded first (states, and what has no ld,
 * stay float: cuda/kernels.h). reset_at: offset of the pointer to resets in args, or KT_DENSE; of `rows` frames.
 * candidates_differ: some multiply on matrix units, which read fewer bits and sum as they like: every candidate is
 * compared with the double kernels, and only its own schedules must agree bit for bit. wanted: the CPU has no kernel for it,
 * results must be the tensors' `want`. columns_at: offset in args of a float *, or 0: there the kernel adds up the columns of
 * tensor columns_of, in the same bits in every run. */
typedef struct device_case {
    const kt_case *test;
    const xph_cuda_candidate *list;
    xph_type type;
    double tolerance;
    size_t reset_at;
    int64_t rows;
    bool candidates_differ, wanted;
    size_t columns_at;
    int columns_of;
    size_t align; /* of what the kernel is given, in bytes; 0: that of a number */
    int astray; /* 1 + the place of a tensor that lies one number behind where align would have it; 0: none */
    size_t beside; /* bytes of device memory that the test has besides */
} device_case;
/* Of args without resets, within the tolerance of the type. */
device_case device_case_of(const kt_case *test, const xph_cuda_candidate *list, xph_type type);
void device_check(const device_case *d);
/* How many schedules a candidate runs under. The sanitizers are ten times as slow and look for other mistakes: there
 * every candidate has one, all in turn. */
#ifdef EXPHIL_SANITIZE
enum { DEVICE_SCHEDULES = 1 };
#else
enum { DEVICE_SCHEDULES = EMU_SCHEDULES };
#endif
/* The first candidate that accepts, under the first schedule. */
void device_run(const device_case *d, double *results[KT_MOST]);
/* Runs an operation that takes no scratch by the first candidate of its list that accepts. */
void device_do(const xph_cuda_candidate *list, const void *args);

#endif
