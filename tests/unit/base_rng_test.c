/* Random numbers: known answers of Philox4x32-10, bounds, freedom from bias, independence of streams. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

/* kat_vectors of the Random123 distribution, lines "philox4x32 10". */
static void known_answers(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } answer[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof answer / sizeof *answer; i++) {
        uint32_t out[4];
        xph_philox(answer[i].counter, answer[i].key, out);
        assert_memory_equal(out, answer[i].out, sizeof out);
    }
}

static void numbers_come_from_the_blocks_in_order(void **state)
{
    xph_rng rng = {.seed = 0x299f31d0a4093822, .stream = 0x0370734413198a2e, .position = 0};
    rng.position = 4 * (uint64_t)0x05a308d3243f6a88;
    const uint32_t counter[4] = {0x243f6a88, 0x05a308d3, 0x13198a2e, 0x03707344};
    const uint32_t key[2] = {0xa4093822, 0x299f31d0};
    uint32_t out[4];
    xph_philox(counter, key, out);
    xph_rng copy = rng;
    for (int i = 0; i < 4; i++) assert_int_equal(xph_rng_u32(&rng), out[i]);
    assert_true(xph_rng_u64(&copy) == ((uint64_t)out[1] << 32 | out[0]));
    assert_int_equal(copy.position, rng.position - 2);
}

static void streams_and_seeds_differ(void **state)
{
    xph_rng a = {.seed = 1, .stream = 1}, b = {.seed = 1, .stream = 2}, c = {.seed = 2, .stream = 1};
    int same = 0;
    for (int i = 0; i < 1000; i++) {
        uint32_t x = xph_rng_u32(&a), y = xph_rng_u32(&b), z = xph_rng_u32(&c);
        same += (x == y) + (x == z) + (y == z);
    }
    assert_int_equal(same, 0);
}

/* Three eighths of 2^64 as the bound: a modulo without rejection would give the lower half 4/3 of its share. */
static void below_has_no_bias(void **state)
{
    xph_rng rng = {.seed = 7, .stream = XPH_RNG_TEST};
    const uint64_t bound = (uint64_t)3 << 61;
    int low = 0;
    const int n = 40000;
    for (int i = 0; i < n; i++) {
        uint64_t x = xph_rng_below(&rng, bound);
        assert_true(x < bound);
        low += x < bound / 2;
    }
    assert_true(abs(low - n / 2) < 5 * 100); /* five standard deviations */
    int seen[7] = {0};
    for (int i = 0; i < 70000; i++) seen[xph_rng_below(&rng, 7)]++;
    for (int i = 0; i < 7; i++) assert_true(abs(seen[i] - 10000) < 500);
    for (int i = 0; i < 10; i++) assert_true(xph_rng_below(&rng, 1) == 0);
}

static void reals_keep_their_bounds(void **state)
{
    xph_rng rng = {.seed = 3, .stream = XPH_RNG_TEST};
    double sum = 0, sum2 = 0;
    const int n = 100000;
    for (int i = 0; i < n; i++) {
        float f = xph_rng_float(&rng);
        double d = xph_rng_double(&rng);
        assert_true(f > 0 && f < 1);
        assert_true(d >= 0 && d < 1);
        sum += (double)f + d;
        sum2 += d * d;
    }
    assert_true(fabs(sum / (2 * n) - 0.5) < 0.005);
    assert_true(fabs(sum2 / n - 1.0 / 3) < 0.005);
}

/* Many at a time are the same numbers, wherever a block begins and beyond 2^32 blocks. */
static void floats_are_the_same_numbers(void **state)
{
    for (uint64_t at = 0; at < 9; at++) {
        for (int64_t count = 0; count < 80; count++) {
            float many[80];
            xph_rng one = {.seed = 7 + at, .stream = XPH_RNG_TEST, .position = ((uint64_t)1 << 34) - 5 + at},
                    all = one;
            xph_rng_floats(&all, many, count);
            for (int64_t i = 0; i < count; i++) assert_true(many[i] == xph_rng_float(&one));
            assert_int_equal(all.position, one.position);
        }
    }
}

/* The ends of xph_rng_float, by the same arithmetic on the extreme words. */
static void float_ends_are_open(void **state)
{
    bool low = false, high = false;
    for (uint64_t seed = 0; seed < 64 && !(low && high); seed++) {
        xph_rng rng = {.seed = seed, .stream = XPH_RNG_TEST};
        for (int i = 0; i < 65536; i++) {
            float f = xph_rng_float(&rng);
            low = low || f < 0x1p-17f;
            high = high || f > 1 - 0x1p-17f;
            assert_true(f >= 0x1p-24f && f <= 1 - 0x1p-24f);
        }
    }
    assert_true(low && high);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(numbers_come_from_the_blocks_in_order),
        cmocka_unit_test(streams_and_seeds_differ),
        cmocka_unit_test(below_has_no_bias),
        cmocka_unit_test(reals_keep_their_bounds),
        cmocka_unit_test(floats_are_the_same_numbers),
        cmocka_unit_test(float_ends_are_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
