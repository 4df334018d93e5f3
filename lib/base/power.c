/* Powers by multiplications alone, so that every system computes the same. */
#include "base/base.h"

double xph_whole_power(double base, int64_t exponent)
{
    double result = 1.0;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result *= base;
        base *= base;
    }
    return result;
}
