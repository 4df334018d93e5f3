/* a b + c rounded once without an instruction for it: what the processor's own gives, where it has one, and the digests
 * that were kept of it, on every system. */
#include "fma_cases.h"
#include "test.h"

#include "base/base.h"
#include "cpu/kernels.h"
#include "cpu/simd/fma.h"

/* As KEPT_FLOATS. */
#define KEPT_DOUBLES 0x6dd07f9494213e66u

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

static double as_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
/* NaN is one. */
static uint64_t bits_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x == x ? bits : UINT64_MAX;
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
    uint64_t rng = FLOATS_SEED;
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int64_t from = 0; from < CASES; from += BLOCK) {
        draw_floats(&rng, a, b, c);
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
