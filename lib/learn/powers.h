/* e^x of many numbers at a time, each with the bits of xph_exp_double: divisions are what it takes, and a processor divides
 * several numbers in the time of one. */
#ifndef XPH_LEARN_POWERS_H
#define XPH_LEARN_POWERS_H

#include "base/scalar.h"

/* x [n] becomes e^x, as xph_power says. */
void xph_powers(double *x, int64_t n);

#endif
