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
    bool fixed; /* rates; a_log is what they would be made of, and not given */
} scan_layer;

/* Without what is wanted. */
scan_layer scan_layer_make(const scan_shape *s);
/* With rates that are fixed. */
scan_layer scan_layer_fixed(const scan_shape *s);
/* One frame of all. */
scan_layer scan_frame_of(const scan_layer *all, int64_t row);

enum { SCAN_Y = 8, SCAN_STATE = 9, SCAN_DX = 11, SCAN_DDT = 12, SCAN_DZ = 15 }; /* places among the tensors */

kt_case scan_case(const scan_layer *l);
/* The state goes from `carried` on, in place. */
kt_case scan_case_carried(const scan_layer *l, const double *carried);
/* All gradients, none of them compared yet; those of a_log, skip and bias are added to random numbers, which
 * are what the tensors hold before. */
kt_case scan_gradient_case(const scan_layer *l);

#endif
