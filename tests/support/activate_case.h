/* What the tests of single-number functions share, on the processor and on the emulated GPU. */
#ifndef EXPHIL_ACTIVATE_CASE_H
#define EXPHIL_ACTIVATE_CASE_H

#include "kernel_test.h"

enum { ACTIVATE_KINDS = XPH_ACTIVATE_CLAMP + 1 };
extern const double activate_low, activate_high; /* of CLAMP */

/* The formula in double, and its derivative. */
double activate_of(int32_t kind, double x);
double activate_slope(int32_t kind, double x);
/* Of x, or with dy the gradient; with what is wanted. */
kt_case activate_case(int32_t kind, const double *x, const double *dy, int64_t count);

#endif
