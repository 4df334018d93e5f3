/* What the tests of weights of fewer bits share, on the processor and on the emulated GPU: numbers that lie
 * around every bound of rounding, layers of them, and the cases that every implementation goes through. */
#ifndef EXPHIL_NARROW_CASE_H
#define EXPHIL_NARROW_CASE_H

#include "kernel_case.h"

/* Ordinary numbers; sizes from 2^-60 to 2^60; terms that cancel; around the flush to 0; overflow. */
enum { NARROW_PLAIN, NARROW_SIZES, NARROW_CANCEL, NARROW_TINY, NARROW_HUGE, NARROW_KINDS };
float *narrow_numbers(int kind, int64_t count);
/* Zeros, limits, halves between two neighbours, infinities and a NaN. */
enum { NARROW_SPECIAL = 17 };
extern const float narrow_special[NARROW_SPECIAL];
/* The same bits, or both a NaN. */
bool narrow_same(float a, float b);

typedef struct narrow_shape {
    int64_t rows, in, out, pad;
    bool bias, residual;
} narrow_shape;

typedef struct narrow_layer {
    narrow_shape s;
    float *x, *w, *bias, *residual; /* rows lie together */
} narrow_layer;

/* Copies rows to a distance of ld; NULL leaves NaN everywhere. */
float *narrow_padded(const float *x, int64_t rows, int64_t width, int64_t ld);

/* Each gives its layers, with weights of BF16 and of I8, to a check. */
typedef void (*narrow_check)(const narrow_layer *l, xph_type weights);
void narrow_products(const narrow_shape *shapes, size_t count, xph_type weights, narrow_check check);
/* Numbers that would tell an fma from two roundings, flushed denormals from kept ones, an order from another. */
void narrow_nasty_numbers(const narrow_shape shapes[2], narrow_check check);
/* A NaN or an infinity somewhere in x or in w. */
void narrow_bad_numbers(narrow_check check);
/* The most that int32 sums must hold, of either sign; I8 alone. */
void narrow_largest_sums(narrow_check check);

#endif
