/* a b + c rounded once without an instruction for it: what the processor's own gives, where it has one, and the digests
 * that were kept of it, on every system. Half of the numbers are drawn so that roundings are hard: results that lie between
 * two numbers or next to there, sums that cancel, subnormal and infinite ones. */
#include "test.h"

#include "base/base.h"
#include "cpu/kernels.h"
#include "cpu/simd/fma.h"

/* Digests of 300,000 results of an x86-64 processor with FMA. */
#define KEPT_DOUBLES 0x6dd07f9494213e66u
#define KEPT_FLOATS  0x04d2bccd8e24ef95u
enum { CASES = 300000, BLOCK = 1000 };

#if defined(__x86_64__)
__attribute__((target("fma"))) static double processor_fma(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}
__attribute__((target("fma"))) static float processor_fmaf(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}
static bool has_fma(void)
{
    return xph_cpu_has(XPH_ISA_AVX2);
}
#elif defined(XPH_HAVE_FMA)
static double processor_fma(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}
static float processor_fmaf(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}
static bool has_fma(void)
{
    return true;
}
#else
static double processor_fma(double a, double b, double c)
{
    return xph_fma(a, b, c);
}
static float processor_fmaf(float a, float b, float c)
{
    return xph_fmaf(a, b, c);
}
static bool has_fma(void)
{
    return false;
}
#endif

/* ---- numbers ------------------------------------------------------------------------------------------------------ */

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

static double as_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static float as_float(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return x;
}
/* NaN is one. */
static uint64_t bits_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x == x ? bits : UINT64_MAX;
}
static uint64_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x == x ? bits : UINT32_MAX;
}

/* ---- tests -------------------------------------------------------------------------------------------------------- */

/* Asked once: virtual machines take long over it. */
static bool compared;

static int look(void **state)
{
    compared = has_fma();
    if (!compared) print_message("no FMA here: compared with the kept digests alone\n");
    return 0;
}

static void same_double(double a, double b, double c)
{
    const uint64_t one = bits_of_double(xph_fma(a, b, c)), two = bits_of_double(xph_fma_by_integers(a, b, c));
    if (one != two) fail_msg("fma(%a, %a, %a): %a, by integers %a", a, b, c, as_double(one), as_double(two));
    if (compared && one != bits_of_double(processor_fma(a, b, c)))
        fail_msg("fma(%a, %a, %a): %a, the processor's %a", a, b, c, as_double(one), processor_fma(a, b, c));
}

static void doubles(void **state)
{
    uint64_t rng = 88172645463325252u;
    xph_hasher hasher;
    int64_t direct = 0;
    xph_hash_begin(&hasher);
    for (int64_t i = 0; i < CASES; i++) {
        uint64_t x[3];
        draw(&rng, &of_double, x);
        const double a = as_double(x[0]), b = as_double(x[1]);
        const double c = as_double(made_of(&rng, &of_double, bits_of_double(a * b), x[2]));
        same_double(a, b, c);
        const uint64_t bits = bits_of_double(xph_fma(a, b, c));
        xph_hash_add(&hasher, &bits, sizeof bits);
        direct += xph_fma_in_range(a, b, c);
    }
    assert_true(direct > CASES / 4 && direct < CASES * 3 / 4);
    if (xph_hash_end(&hasher) != KEPT_DOUBLES)
        fail_msg("digest 0x%016llx", (unsigned long long)xph_hash_end(&hasher));
}

/* In loops that compilers make vectors of, as kernels have them, and one by one. */
static void floats(void **state)
{
    static float a[BLOCK], b[BLOCK], c[BLOCK], y[BLOCK];
    uint64_t rng = 362436069521288629u;
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int64_t from = 0; from < CASES; from += BLOCK) {
        for (int i = 0; i < BLOCK; i++) {
            uint64_t x[3];
            draw(&rng, &of_float, x);
            a[i] = as_float(x[0]), b[i] = as_float(x[1]);
            c[i] = as_float(made_of(&rng, &of_float, bits_of_float(a[i] * b[i]), x[2]));
        }
        for (int i = 0; i < BLOCK; i++) y[i] = xph_fmaf(a[i], b[i], c[i]);
        for (int i = 0; i < BLOCK; i++) {
            const uint64_t bits = bits_of_float(y[i]);
            volatile float alone = a[i];
            if (bits != bits_of_float(xph_fmaf(alone, b[i], c[i])) ||
                (compared && bits != bits_of_float(processor_fmaf(a[i], b[i], c[i]))))
                fail_msg("fmaf(%a, %a, %a): %a, the processor's %a", (double)a[i], (double)b[i], (double)c[i],
                         (double)y[i], (double)processor_fmaf(a[i], b[i], c[i]));
            xph_hash_add(&hasher, &bits, sizeof bits);
        }
    }
    if (xph_hash_end(&hasher) != KEPT_FLOATS)
        fail_msg("digest 0x%016llx", (unsigned long long)xph_hash_end(&hasher));
}

/* Every sign of nothing, everything and what is no number; ends of both ranges; and numbers that only one rounding gets
 * right, with their results. */
static void by_hand(void **state)
{
    static const double ends[] = {0.0,
                                  -0.0,
                                  1.0,
                                  -1.0,
                                  0x1p-1074,
                                  -0x1p-1074,
                                  0x1p-1022,
                                  0x1p-900,
                                  0x1p971,
                                  0x1p902,
                                  0x1.fffffffffffffp1023,
                                  0x1p-537};
    enum { ENDS = sizeof ends / sizeof *ends, ALL = ENDS + 3 };
    double x[ALL];
    memcpy(x, ends, sizeof ends);
    x[ENDS] = __builtin_inf(), x[ENDS + 1] = -__builtin_inf(), x[ENDS + 2] = __builtin_nan("");
    for (int i = 0; i < ALL; i++)
        for (int j = 0; j < ALL; j++)
            for (int k = 0; k < ALL; k++) same_double(x[i], x[j], x[k]);
    assert_true(xph_fma(0x1p-1074, 0.5, 0.0) == 0.0 && xph_fma(0x1.8p-1074, 0.5, 0x0p0) == 0x1p-1074);
    assert_true(xph_fma(0x1.0000000000001p0, 0x1.0000000000001p0, -0x1.0000000000002p0) == 0x1p-104);
    /* 257 times 65281 is 2^24 + 1, between two floats; a little more or less is seen beyond the digits of a double */
    assert_true(xph_fmaf(257.0f, 65281.0f, 0.0f) == 0x1p24f &&
                xph_fmaf(257.0f, 65281.0f, -0x1p-60f) == 0x1p24f);
    assert_true(xph_fmaf(257.0f, 65281.0f, 0x1p-60f) == 0x1.000002p24f);
    /* and this product between two doubles */
    assert_true(xph_fma(113740631.0, 107678193.0, 0.0) == 12247385616759784.0);
    assert_true(xph_fma(113740631.0, 107678193.0, 0x1p-400) == 12247385616759784.0);
    assert_true(xph_fma(113740631.0, 107678193.0, -0x1p-400) == 12247385616759782.0);
    assert_true(xph_fma(113740631.0, 107678193.0, -0x1p-1074) == 12247385616759782.0);
    assert_true(xph_fmaf(0x1.fffffep127f, 2.0f, -0x1.fffffep127f) == 0x1.fffffep127f);
    assert_true(bits_of_float(xph_fmaf(-1.0f, 0.0f, -0.0f)) == 0x80000000u &&
                xph_fmaf(3.0f, 2.0f, -6.0f) == 0.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(doubles), cmocka_unit_test(floats),
                                       cmocka_unit_test(by_hand)};
    return cmocka_run_group_tests(tests, look, NULL);
}
