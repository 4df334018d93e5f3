/* a b + c of doubles of any size, rounded once, by integers: numbers are magnitudes of 128 bits times a power of two. What
 * falls off at the right leaves a 1 in the last bit, which rounds as it would. */
#include "cpu/simd/fma.h"

#include <stdbool.h>

typedef struct wide {
    uint64_t high, low;
} wide;

/* x = mantissa 2^exponent, with bit 52 the highest one. Not 0, infinite or NaN. */
typedef struct parts {
    uint64_t mantissa;
    int32_t exponent;
    bool minus;
} parts;

static parts parts_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    parts p = {bits & 0xfffffffffffffu, (int32_t)(bits >> 52 & 0x7ff) - 1075, bits >> 63};
    if (p.exponent > -1075) {
        p.mantissa |= (uint64_t)1 << 52;
        return p;
    }
    for (p.exponent = -1074; !(p.mantissa >> 52); p.exponent--) p.mantissa <<= 1;
    return p;
}

/* By halves of 32 bits. */
static wide product(uint64_t a, uint64_t b)
{
    const uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    const uint64_t low = a_low * b_low, one = a_high * b_low + (low >> 32),
                   two = a_low * b_high + (uint32_t)one;
    return (wide){a_high * b_high + (one >> 32) + (two >> 32), two << 32 | (uint32_t)low};
}

static wide left(wide x, int32_t by)
{
    if (by == 0) return x;
    if (by >= 64) return (wide){x.low << (by - 64), 0};
    return (wide){x.high << by | x.low >> (64 - by), x.low << by};
}

static wide right(wide x, int32_t by)
{
    if (by == 0) return x;
    if (by > 127) return (wide){0, (x.high | x.low) != 0};
    wide y =
        by >= 64 ? (wide){0, x.high >> (by - 64)} : (wide){x.high >> by, x.high << (64 - by) | x.low >> by};
    wide back = left(y, by);
    y.low |= back.high != x.high || back.low != x.low;
    return y;
}

static bool less(wide a, wide b)
{
    return a.high < b.high || (a.high == b.high && a.low < b.low);
}

static wide added(wide a, wide b)
{
    return (wide){a.high + b.high + (a.low + b.low < a.low), a.low + b.low};
}

static wide subtracted(wide a, wide b)
{
    return (wide){a.high - b.high - (a.low < b.low), a.low - b.low};
}

static double power_of_two(int32_t n)
{
    uint64_t bits = n < -1022 ? (uint64_t)1 << (n + 1074) : (uint64_t)(n + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x 2^exponent to the nearest double, ties to even. x is not 0. */
static double rounded(wide x, int32_t exponent, bool minus)
{
    int32_t top = 127;
    while (!(left(x, 127 - top).high >> 63)) top--;
    if (exponent + top > 1023) return minus ? -__builtin_inf() : __builtin_inf();
    int32_t unit = exponent + top - 52; /* exponent of the last bit that is kept */
    if (unit < -1074) unit = -1074;
    /* Two bits more: half a unit, and whether there is anything else. */
    const int32_t fall = unit - 2 - exponent;
    const uint64_t quarters = (fall > 0 ? right(x, fall) : left(x, -fall)).low;
    uint64_t kept = quarters >> 2;
    kept += (quarters & 3) > 2 || ((quarters & 3) == 2 && (kept & 1));
    const double y = (double)kept * power_of_two(unit);
    return minus ? -y : y;
}

/* The product lies 20 bits higher than it came out, c 73: the highest bits are 124 or 125, with room for a carry. Where one
 * of them is moved so far that bits fall off, the other is larger by so much that at most one bit cancels. */
static double sum_of(parts a, parts b, parts c)
{
    wide ab = left(product(a.mantissa, b.mantissa), 20), with = left((wide){0, c.mantissa}, 73);
    int32_t exponent = a.exponent + b.exponent - 20;
    const int32_t apart = exponent - (c.exponent - 73);
    const bool minus = a.minus != b.minus;
    if (apart > 0) {
        with = right(with, apart);
    } else {
        ab = right(ab, -apart);
        exponent -= apart;
    }
    if (minus == c.minus) return rounded(added(ab, with), exponent, minus);
    if (less(ab, with)) return rounded(subtracted(with, ab), exponent, c.minus);
    if (less(with, ab)) return rounded(subtracted(ab, with), exponent, minus);
    return 0.0;
}

double xph_fma_by_integers(double a, double b, double c)
{
    const int32_t most = 0x7ff;
    if (xph_exponent(a) == most || xph_exponent(b) == most || a == 0.0 || b == 0.0) return a * b + c;
    if (xph_exponent(c) == most) return c;
    const parts of_a = parts_of(a), of_b = parts_of(b);
    if (c == 0.0)
        return rounded(product(of_a.mantissa, of_b.mantissa), of_a.exponent + of_b.exponent,
                       of_a.minus != of_b.minus);
    return sum_of(of_a, of_b, parts_of(c));
}
