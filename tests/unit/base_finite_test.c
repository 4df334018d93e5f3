/* Numbers that are not finite are found by their bits, and rows are copied as they are. */
#include "test.h"

#include "base/base.h"

#include <math.h>
#include <string.h>

enum { MOST = 2100 };

static float of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Infinities, and quiet and signalling NaN of either sign. */
static const uint32_t bad[] = {0x7F800000u, 0xFF800000u, 0x7FC00000u, 0xFFC00000u, 0x7F800001u, 0xFFBFFFFFu};

static void fill(float *x, int64_t count)
{
    static const uint32_t fine[] = {0, 0x80000000u, 1, 0x7F7FFFFFu, 0xFF7FFFFFu, 0x3F800000u, 0x807FFFFFu};
    for (int64_t i = 0; i < count; i++) x[i] = of_bits(fine[i % 7]);
}

static void check(const float *x, int64_t count, int64_t where)
{
    static float copy[MOST + 1];
    const float mark = 42.0f;
    copy[count] = mark;
    assert_int_equal(xph_find_not_finite(x, count), where);
    assert_int_equal(xph_copy_finite(copy, x, count), where);
    assert_memory_equal(copy, x, (size_t)count * sizeof *x);
    assert_memory_equal(&copy[count], &mark, sizeof mark);
}

/* In every place of a short row; at the ends of pieces in a long one; the first of two. */
static void the_first_is_found(void **state)
{
    static const int64_t counts[] = {0, 1, 2, 7, 16, 33, 288, 1023, 1024, 1025, MOST};
    static float x[MOST];
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const int64_t count = counts[i], step = count > 300 ? 61 : 1;
        fill(x, count);
        check(x, count, -1);
        for (int64_t at = 0; at < count; at += step) {
            x[at] = of_bits(bad[at % 6]);
            check(x, count, at);
            x[count - 1] = of_bits(bad[(at + 1) % 6]);
            check(x, count, at);
            fill(x, count);
            x[count - 1] = of_bits(bad[at % 6]);
            check(x, count, count - 1);
            fill(x, count);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_is_found)};
    return cmocka_run_group_tests_name("base_finite", tests, NULL, NULL);
}
