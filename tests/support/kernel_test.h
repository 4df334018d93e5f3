/* A kernel test as a table: which tensors an operation has, what goes in, what must come out. kt_check gives
 * it to every candidate of every set that this processor runs, in memory guarded behind and before, on 1, 2
 * and 4 threads, and demands: double results within `tolerance64` of what is wanted, single ones within
 * `tolerance32`, and all single results bit for bit the same. Built on kernel_case.h.
 */
#ifndef EXPHIL_KERNEL_TEST_H
#define EXPHIL_KERNEL_TEST_H

#include "kernel_case.h"

enum { KT_IN, KT_OUT, KT_ADD }; /* KT_ADD: has a value before and another after */
#define KT_DENSE SIZE_MAX

typedef struct kt_tensor {
    const char *name;
    size_t at, ld_at; /* offsets of the pointer and of its ld in args; KT_DENSE: rows lie together */
    int64_t rows, width;
    int32_t role;
    const double *x; /* before; NULL for KT_IN: the pointer stays NULL */
    double *want;    /* after; NULL: not compared */
} kt_tensor;

enum { KT_MOST = 24, KT_ARGS_MOST = 512 };

typedef struct kt_case {
    const char *name;
    xph_op op;
    _Alignas(64) unsigned char args[KT_ARGS_MOST]; /* all but tensors and type; type is the first member */
    size_t args_bytes;
    size_t scratch_at; /* offset of the scratch pointer, or KT_DENSE */
    kt_tensor tensors[KT_MOST];
    int count;
    int64_t pad; /* ld = width + pad */
    double tolerance64, tolerance32;
    /* When every tensor is in place; may be NULL. */
    void (*prepare)(const struct kt_case *c, const xph_kernel_set *set, void *args);
    const void *context; /* for prepare */
} kt_case;

#define KT_FIELD(args, pointer, ld, ...)                                                                     \
  {                                                                                                          \
#    pointer, offsetof(args, pointer), offsetof(args, ld), __VA_ARGS__                                       \
  }
#define KT_FLAT(args, pointer, ...)                                                                          \
  {                                                                                                          \
#    pointer, offsetof(args, pointer), KT_DENSE, __VA_ARGS__                                                 \
  }

/* A case that holds copies of these args and tensors; it has no tolerances and nothing to prepare. */
#define KT_CASE(name, op, args, scratch_at, tensors, pad)                                                    \
  kt_case_of(name, op, &(args), sizeof(args), scratch_at, tensors, sizeof(tensors), pad)
kt_case kt_case_of(const char *name, xph_op op, const void *args, size_t args_bytes, size_t scratch_at,
                   const kt_tensor *tensors, size_t tensors_bytes, int64_t pad);
/* The args that the case holds. */
#define KT_ARGS(c, type) ((type *)(void *)(c)->args)

/* One run: results[i] is what tensor i holds afterwards (NULL for KT_IN). candidate NULL: the one that
 * would be chosen. False: the candidate does not accept. */
bool kt_run(const kt_case *c, const xph_kernel_set *set, const xph_candidate *candidate, int threads,
            double *results[KT_MOST]);
void kt_check(const kt_case *c);
/* Results of the double set's candidate that would be chosen. */
void kt_reference(const kt_case *c, double *results[KT_MOST]);

/* before[i] + central difference of objective by x[i]; before NULL: 0. */
double *kt_differences(double (*objective)(void *context), void *context, double *x, int64_t count,
                       const double *before);
/* Any NaN or infinity among count results. */
bool kt_any_bad(const double *x, int64_t count);
double *kt_copy(const double *x, int64_t count);
/* Resets in about one of `every` frames; NULL for 0. */
uint8_t *kt_resets(int64_t count, int64_t every);

#endif
