/* What the tests of the selective scan share, on the processor and on the emulated GPU: shapes, layers of random numbers, and
 * the cases of kernel_test.h made of them. */
#ifndef EXPHIL_SCAN_CASE_H
#define EXPHIL_SCAN_CASE_H

#include "kernel_test.h"

typedef struct scan_shape {
    int64_t batch, time, width, states, pad;
    bool carried, skip, gate;
    int64_t resets; /* one frame in so many; 0: none */
} scan_shape;

typedef struct scan_layer {
    scan_shape s;
    int64_t rows, state;
    double *x, *dt, *bias, *a_log, *b, *c, *skip, *z, *in, *dy, *dout;
    double *y, *out; /* what is wanted; NULL: not compared */
    uint8_t *reset;
} scan_layer;

/* Without what is wanted. */
scan_layer scan_layer_make(const scan_shape *s);
/* One frame of all. */
scan_layer scan_frame_of(const scan_layer *all, int64_t row);

enum { SCAN_Y = 8, SCAN_STATE = 9, SCAN_DX = 11, SCAN_GRADIENTS = 20 }; /* places among the tensors */

kt_case scan_case(const scan_layer *l, kt_tensor tensors[KT_MOST], xph_scan_args *args);
/* To prepare a case: the state is carried in place. */
void scan_in_place(const kt_case *c, const xph_kernel_set *set, void *given);

/* All gradients, none of them compared yet; da, dskip and dbias are what those of a_log, skip and bias are added to. */
typedef struct scan_gradient {
    kt_tensor tensors[SCAN_GRADIENTS];
    xph_scan_grad_args args;
    double *da, *dskip, *dbias;
} scan_gradient;
kt_case scan_gradient_case(const scan_layer *l, scan_gradient *g);

#endif
