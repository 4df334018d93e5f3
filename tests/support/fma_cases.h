/* Numbers for multiply-adds that are rounded once: half of them are drawn so that roundings are hard: results that lie between
 * two numbers or next to there, sums that cancel, subnormal and infinite ones. */
#ifndef EXPHIL_FMA_CASES_H
#define EXPHIL_FMA_CASES_H

#include <stdint.h>
#include <string.h>

/* A digest of 300,000 results of an x86-64 processor with FMA, the first of the generator's seed. */
#define KEPT_FLOATS 0x04d2bccd8e24ef95u
#define FLOATS_SEED 362436069521288629u
enum { CASES = 300000, BLOCK = 1000 };

/* What differs between the two sizes. */
typedef struct format {
    int32_t digits, most; /* bits of the mantissa that are stored; the exponent of infinity */
} format;
static const format of_double = {52, 2047}, of_float = {23, 255};

/* Marsaglia's xorshift: a good one would take most of the time. */
static uint64_t below(uint64_t *rng, uint64_t count)
{
    *rng ^= *rng << 13;
    *rng ^= *rng >> 7;
    *rng ^= *rng << 17;
    return (*rng >> 4) % count;
}

/* Few bits, long runs of them, or any. */
static uint64_t mantissa(uint64_t *rng, const format *f)
{
    const uint64_t all = ((uint64_t)1 << f->digits) - 1, some = below(rng, all + 1);
    const uint64_t place = below(rng, (uint64_t)f->digits);
    switch (below(rng, 6)) {
    case 0:
        return 0;
    case 1:
        return all;
    case 2:
        return some & (all << place);
    case 3:
        return some | (((uint64_t)1 << place) - 1);
    case 4:
        return (uint64_t)1 << place;
    default:
        return some;
    }
}

static uint64_t number(uint64_t *rng, const format *f, int64_t exponent)
{
    exponent = exponent < 0 ? 0 : exponent > f->most ? f->most : exponent;
    const uint64_t sign = below(rng, 2) * ((uint64_t)f->most + 1);
    return (sign | (uint64_t)exponent) << f->digits | mantissa(rng, f);
}

static int64_t about(uint64_t *rng, int64_t exponent, uint64_t spread)
{
    return exponent + (int64_t)below(rng, 2 * spread + 1) - (int64_t)spread;
}

/* Bits of a, b, c. */
static void draw(uint64_t *rng, const format *f, uint64_t x[3])
{
    const int64_t one = f->most / 2, any = (int64_t)f->most + 1;
    int64_t a = (int64_t)below(rng, (uint64_t)any), b = (int64_t)below(rng, (uint64_t)any), c;
    switch (below(rng, 8)) {
    case 0:
        a = about(rng, one, 3), b = about(rng, one, 3);
        break;
    case 1:
        a = (int64_t)below(rng, 3);
        break;
    case 2:
        b = about(rng, one - a, (uint64_t)f->digits);
        break; /* products that are subnormal */
    case 3:
        a = one + a / 2, b = about(rng, f->most + one - 1 - a, 3);
        break; /* or nearly infinite */
    default:
        break;
    }
    const int64_t product = a + b - one;
    switch (below(rng, 4)) {
    case 0:
        c = (int64_t)below(rng, (uint64_t)any);
        break;
    case 1:
        c = about(rng, product, 3);
        break;
    case 2:
        c = about(rng, product - f->digits - 1, 3);
        break;
    default:
        c = about(rng, product, 2 * (uint64_t)f->digits + 4);
        break;
    }
    x[0] = number(rng, f, a), x[1] = number(rng, f, b), x[2] = number(rng, f, c);
}

/* Some of c are made of the product, as it was rounded: so that it nearly cancels, or is half a unit. */
static uint64_t made_of(uint64_t *rng, const format *f, uint64_t product, uint64_t c)
{
    const uint64_t sign = ((uint64_t)f->most + 1) << f->digits, half = (uint64_t)(f->digits + 1) << f->digits;
    switch (below(rng, 12)) {
    case 0:
        return product ^ sign;
    case 1:
        return (product ^ sign) + below(rng, 5) - 2;
    case 2:
        return (product & (sign - 1)) > half ? product - half : c;
    case 3:
        return c & sign;
    default:
        return c;
    }
}

static float as_float(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return x;
}
/* NaN is one. */
static uint64_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x == x ? bits : UINT32_MAX;
}

/* The next BLOCK triples of floats. */
static void draw_floats(uint64_t *rng, float *a, float *b, float *c)
{
    for (int i = 0; i < BLOCK; i++) {
        uint64_t x[3];
        draw(rng, &of_float, x);
        a[i] = as_float(x[0]), b[i] = as_float(x[1]);
        c[i] = as_float(made_of(rng, &of_float, bits_of_float(a[i] * b[i]), x[2]));
    }
}

#endif
