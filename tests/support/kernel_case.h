/* What the kernel tests of layers with several inputs share. A case keeps everything as doubles that single
 * precision holds exactly; a run gives them to a candidate in the set's type, in memory that ends at (or
 * begins after) a page that cannot be touched, and takes the results back as doubles. So equal bits are equal
 * doubles, in any set. */
#ifndef EXPHIL_KERNEL_CASE_H
#define EXPHIL_KERNEL_CASE_H

#include "test.h"

#include "cpu/kernels.h"

/* ---- guarded memory, all given back by case_release ---- */

/* Filled with 0xff bytes (NaN, -1). Ends at the guard page; with case_guard_front it begins after one, up to
 * alignment 64. */
void *case_alloc(size_t bytes);
void case_guard_front(bool front);
void case_release(void);
/* Gives back what was taken after the mark. */
void *case_mark(void);
void case_release_to(void *mark);

/* Numbers drawn from one stream, the same in every run. */
void case_seed(uint64_t seed);
double case_uniform(double low, double high);
int64_t case_below(int64_t bound);
/* Rounded to float; alive until case_release. */
double *case_random(int64_t count, double low, double high);
double *case_zeros(int64_t count);

/* Matrix [rows, width] into type at row distance ld, and back. NULL gives NULL. */
void *case_give(xph_type type, const double *x, int64_t rows, int64_t width, int64_t ld);
double *case_take(xph_type type, const void *x, int64_t rows, int64_t width, int64_t ld);
/* Padding between the rows must still be what case_alloc put there. */
void case_padding_intact(xph_type type, const void *x, int64_t rows, int64_t width, int64_t ld);
size_t case_bytes(xph_type type);

/* ---- sets and candidates ---- */

/* Sets this processor runs, the double one first. */
#define EACH_SET(set)                                                                                        \
  for (const xph_kernel_set *set = case_next_set(NULL); set != NULL; set = case_next_set(set))
const xph_kernel_set *case_next_set(const xph_kernel_set *last);
enum { CASE_SETS = 16 };
/* The same as a list; returns how many. */
int case_sets(const xph_kernel_set *sets[CASE_SETS]);
/* All phases, items handed to `threads` threads in a scattered order. */
void case_run(const xph_candidate *candidate, const void *args, int threads);
/* Scratch as large as the candidate asks, filled with NaN. */
void *case_scratch(const xph_candidate *candidate, const void *args);

/* ---- judging ---- */

/* Fails unless |a - b| <= tolerance * (|b| + rms(b)) everywhere; b is the reference. */
void case_close(const char *what, const double *a, const double *b, int64_t count, double tolerance);
/* The same bits, NaN included. */
void case_same(const char *what, const double *a, const double *b, int64_t count);
/* gradient[i] against central differences of objective(context) by x[i]. */
void case_gradient(const char *what, double (*objective)(void *context), void *context, double *x,
                   const double *gradient, int64_t count, double tolerance);
double case_dot(const double *a, const double *b, int64_t count);

#endif
