/* e^x of many numbers at a time, each with the bits of xph_exp_double: divisions are what it takes, and a processor divides
 * several numbers in the time of one. */
#ifndef XPH_LEARN_POWERS_H
#define XPH_LEARN_POWERS_H

#include "base/scalar.h"

/* e^-700 is next to nothing beside 1, and the smallest that xph_exp_double takes: below it is 0. Above 700: e^700. */
#define XPH_POWER_MOST 700.0

static inline double xph_power(double x)
{
    return x < -XPH_POWER_MOST ? 0.0 : xph_exp_double(x < XPH_POWER_MOST ? x : XPH_POWER_MOST);
}

/* x [n] becomes e^x, as xph_power says. */
void xph_powers(double *x, int64_t n);

#endif
