/* What the tests of the causal convolution share, on the processor and on the emulated GPU:
 * layers of random numbers, and the cases of kernel_test.h made of them. */
#ifndef EXPHIL_CONV_CASE_H
#define EXPHIL_CONV_CASE_H

#include "kernel_test.h"

typedef struct conv_shape {
    int64_t batch, time, width, taps, pad;
    bool carried;
    int64_t resets; /* one frame in so many; 0: none */
} conv_shape;

typedef struct conv_layer {
    conv_shape s;
    int64_t rows, state; /* elements of one state */
    double *x, *w, *bias, *in, *dy, *dout;
    double *y, *out; /* what is wanted; NULL: not compared */
    uint8_t *reset;
} conv_layer;

/* Without what is wanted. */
conv_layer conv_layer_make(const conv_shape *s);
/* So many frames from this row on. */
conv_layer conv_frames_of(const conv_layer *all, int64_t row, int64_t frames);

enum { CONV_Y = 3, CONV_STATE = 4 };                             /* places among the tensors */
enum { CONV_DX = 6, CONV_DW = 7, CONV_DBIAS = 8, CONV_DIN = 9 }; /* and of the gradient */

kt_case conv_case(const conv_layer *l);
/* The state goes from `carried` on, in place. */
kt_case conv_case_carried(const conv_layer *l, const double *carried);
/* No gradient is compared yet; dw and dbias are what those of the weights are added to. */
kt_case conv_gradient_case(const conv_layer *l, const double *dw, const double *dbias);

#endif
