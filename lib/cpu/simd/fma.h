/* a b + c rounded once, for processors without such an instruction and for their C libraries, of which not all round right
 * (mingw-w64's fmaf does not). Sylvie Boldo and Guillaume Melquiond, "Emulation of FMA and correctly rounded sums: proved
 * algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008.
 *
 * Rounding to odd: a number between two neighbouring doubles becomes the one of them whose last bit is 1; what is a double
 * stays. Rounded once more to two bits less or fewer, to nearest, that gives what rounding once would: a tie is only
 * seen where there is one. All of it needs rounding to nearest and doubles that are no wider (fpu.c; no x87). */
#ifndef XPH_CPU_SIMD_FMA_H
#define XPH_CPU_SIMD_FMA_H

#include <stdint.h>
#include <string.h>

/* gcc says so by __FP_FAST_FMA, clang by the processor alone. */
#if defined(__FP_FAST_FMA) || defined(__FMA__) || defined(__aarch64__)
#  define XPH_HAVE_FMA
#endif
#if defined(__i386__) && !defined(__SSE2_MATH__)
#  error "the x87 rounds twice: compile with -msse2 -mfpmath=sse"
#endif

#define XPH_FMA_INLINE static inline __attribute__((always_inline, unused))

/* The double sum, that of two numbers, was rounded to, to odd; rest: what it lacks, exact. NaN, as of infinite
 * numbers, is no rest. No branches, so that loops of it become vectors. */
XPH_FMA_INLINE double xph_to_odd(double sum, double rest)
{
    uint64_t bits, of_rest;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&of_rest, &rest, sizeof of_rest);
    uint64_t away = 1u - 2u * ((bits ^ of_rest) >> 63); /* 1, or -1 where the rest makes it smaller */
    bits += away & ((bits & 1u) - 1u);
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return ((rest > 0.0) | (rest < 0.0)) ? odd : sum;
}

/* What the rounded sum of a and b lacks, exact (Knuth's TwoSum). */
XPH_FMA_INLINE double xph_sum_rest(double a, double b, double sum)
{
    double t = sum - a;
    return (a - (sum - t)) + (b - t);
}

/* fmaf. The product of two floats is exact in double; 53 bits are more than 24 + 2, and of subnormal floats more than
 * that. */
XPH_FMA_INLINE float xph_fmaf(float a, float b, float c)
{
    double product = (double)a * (double)b, sum = product + (double)c;
    return (float)xph_to_odd(sum, xph_sum_rest(product, (double)c, sum));
}

/* fma of any doubles, by integers (lib/cpu/fma.c). */
double xph_fma_by_integers(double a, double b, double c);

/* 27 bits of x, so that products of halves are exact (Veltkamp, Dekker). */
XPH_FMA_INLINE double xph_high_half(double x)
{
    double t = x * 0x1p27 + x;
    return t - (t - x);
}

/* Exponents as they stand in the bits, from 1 to 2046 of normal numbers; 1023 is that of 1. */
XPH_FMA_INLINE int32_t xph_exponent(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int32_t)(bits >> 52) & 0x7ff;
}

/* Whether nothing below overflows, and the product's parts are multiples of 2^-1006, so that none is too small: a, b in
 * [2^-1022, 2^971), their product from 2^-900 on and below 2^902, c below 2^901. Sums lose nothing, however small. */
XPH_FMA_INLINE int xph_fma_in_range(double a, double b, double c)
{
    const int32_t of_a = xph_exponent(a), of_b = xph_exponent(b), both = of_a + of_b;
    return (of_a >= 1) & (of_b >= 1) & (of_a <= 1993) & (of_b <= 1993) & (both >= 1146) & (both <= 2946) &
           (xph_exponent(c) <= 1923);
}

/* fma: the product as high + low (Dekker), low + c as two numbers, the larger of which joins high; what both sums lack
 * is added to odd, and that to the rest is rounded once (figure 4 of the paper). */
XPH_FMA_INLINE double xph_fma(double a, double b, double c)
{
    if (!xph_fma_in_range(a, b, c)) return xph_fma_by_integers(a, b, c);
    double a_high = xph_high_half(a), b_high = xph_high_half(b), a_low = a - a_high, b_low = b - b_high;
    double high = a * b;
    double low = a_low * b_low - (((high - a_high * b_high) - a_low * b_high) - a_high * b_low);
    double with_c = low + c, of_c = xph_sum_rest(low, c, with_c);
    double sum = high + with_c, of_sum = xph_sum_rest(high, with_c, sum);
    double rest = of_c + of_sum;
    return sum + xph_to_odd(rest, xph_sum_rest(of_c, of_sum, rest));
}

#endif
