/* What the tests of matrix products share, on the processor and on the emulated GPU:
 * layers of random numbers, and the cases of kernel_test.h made of them. */
#ifndef EXPHIL_LINEAR_CASE_H
#define EXPHIL_LINEAR_CASE_H

#include "kernel_test.h"

typedef struct linear_shape {
    int64_t rows, in, out, pad;
    bool bias, residual;
} linear_shape;

typedef struct linear_layer {
    linear_shape s;
    double *x, *w, *bias, *residual, *dy;
    double *y; /* what is wanted; NULL: not compared */
} linear_layer;

/* Without what is wanted. */
linear_layer linear_layer_make(const linear_shape *s);
linear_layer linear_row_of(const linear_layer *all, int64_t row);

enum { LINEAR_Y = 4 };                                   /* place among the tensors */
enum { LINEAR_DX = 3, LINEAR_DW = 4, LINEAR_DBIAS = 5 }; /* and of the gradient */

kt_case linear_case(const linear_layer *l);
/* To prepare a case: a residual lies where the result goes. */
void linear_in_place(const kt_case *c, const xph_kernel_set *set, void *given);
/* No gradient is compared yet; they are added to these, that of x only where dx is not NULL. */
kt_case linear_gradient_case(const linear_layer *l, const double *dx, const double *dw, const double *dbias);
/* The case does without the gradient of x, or of weights and bias. */
void linear_without_dx(kt_case *c);
void linear_without_dw(kt_case *c);

#endif
