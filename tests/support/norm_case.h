/* What the tests of LayerNorm share, on the processor and on the emulated GPU:
 * layers of random numbers, and the cases of kernel_test.h made of them. */
#ifndef EXPHIL_NORM_CASE_H
#define EXPHIL_NORM_CASE_H

#include "kernel_test.h"

typedef struct norm_shape {
    int64_t rows, width, pad;
    int32_t act;
} norm_shape;

typedef struct norm_layer {
    norm_shape s;
    double epsilon;
    double *x, *gain, *shift, *dy;
    double *y, *saved; /* what is wanted, saved for the gradient, too; NULL: not compared */
} norm_layer;

/* Without what is wanted. */
norm_layer norm_layer_make(const norm_shape *s);

enum { NORM_Y = 3, NORM_SAVED = 4 };                   /* places among the tensors */
enum { NORM_DX = 5, NORM_DGAIN = 6, NORM_DSHIFT = 7 }; /* and of the gradient */

kt_case norm_case(const norm_layer *l);
/* One row, without what the gradient needs. */
kt_case norm_case_of_row(const norm_layer *all, int64_t row);
/* No gradient is compared yet; they are added to these, that of x only where dx is not NULL. */
kt_case norm_gradient_case(const norm_layer *l, const double *dx, const double *dgain, const double *dshift);

#endif
