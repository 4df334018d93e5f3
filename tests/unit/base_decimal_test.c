/* Numbers in text: shortest that reads back equal, '.' under a comma locale too, nothing but decimals accepted. */
#include "test.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *text_of(double value, int digits)
{
    static char text[XPH_DOUBLE_TEXT];
    return xph_format_double(text, value, digits);
}

static void shortest_texts(void **state)
{
    assert_string_equal(text_of(0.1, 17), "0.1");
    assert_string_equal(text_of(0, 17), "0");
    assert_string_equal(text_of(-0.0, 17), "-0");
    assert_string_equal(text_of(1.0 / 3, 17), "0.3333333333333333");
    assert_string_equal(text_of(1.0 / 3, 3), "0.333");
    assert_string_equal(text_of(5e-324, 17), "5e-324");
    assert_string_equal(text_of(-1.7976931348623157e308, 17), "-1.7976931348623157e+308");
    assert_string_equal(text_of((double)0.1f, 9), "0.100000001");
    assert_string_equal(text_of(12, 0), "1e+01");
    assert_string_equal(text_of(INFINITY, 17), "inf");
    assert_string_equal(text_of(-INFINITY, 17), "-inf");
    assert_string_equal(text_of(NAN, 17), "nan");
    assert_string_equal(text_of(-(double)NAN, 17), "nan");
}

static void round_trips(void **state)
{
    xph_rng rng = {.seed = 1, .stream = XPH_RNG_TEST};
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = xph_rng_u64(&rng);
        double value, back;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        assert_true(xph_parse_double(text_of(value, 17), &back));
        assert_memory_equal(&back, &value, sizeof value);
    }
}

static void parses_decimals_only(void **state)
{
    double value = 0;
    assert_true(xph_parse_double("-1.5e+2", &value) && value == -150);
    assert_true(xph_parse_double(".5", &value) && value == 0.5);
    assert_true(xph_parse_double("5.", &value) && value == 5);
    assert_true(xph_parse_double("+7E-1", &value) && value == 0.7);
    assert_true(xph_parse_double("1e-999", &value) && value == 0);
    value = 42;
    const char *bad[] = {"",  " 1", "1 ",   "0x10",  "inf",   "nan", "1,5", "1e",   "1e+",
                         ".", "-",  "+.e1", "1.2.3", "1e999", "--1", "1f",  "1_000"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(xph_parse_double(bad[i], &value));
    assert_false(xph_parse_double(NULL, &value));
    assert_true(value == 42);
}

static void reads_as(const char *text, double expected)
{
    double value = 0;
    assert_true(xph_parse_double(text, &value));
    assert_memory_equal(&value, &expected, sizeof value);
}

/* Where other readers went wrong, and halves between two doubles. */
static void hard_texts_are_rounded_exactly(void **state)
{
    reads_as("9007199254740993", 0x1p53);
    reads_as("9007199254740993.00000000000000000000000000000000000000000000000001", 0x1.0000000000001p53);
    reads_as("9007199254740995", 0x1.0000000000002p53);
    reads_as("2.2250738585072011e-308", 0x0.fffffffffffffp-1022);
    reads_as("2.2250738585072012e-308", 0x1p-1022);
    reads_as("2.4703282292062327e-324", 0);
    reads_as("2.4703282292062328e-324", 0x1p-1074);
    reads_as("1.7976931348623158e308", 0x1.fffffffffffffp1023);
    reads_as("6929495644600919.5", 0x1.89e56ee5e7a58p52);
    reads_as("-0", -0.0);
    reads_as("0.000000000000000000000000000000000000001e39", 1);
    reads_as("1e23", 0x1.52d02c7e14af6p76);
    double large = 0;
    reads_as("1e-18446744073709551616", 0); /* 2^64 */
    reads_as("0e18446744073709551617", 0);
    assert_false(xph_parse_double("1e18446744073709551616", &large));
    assert_false(xph_parse_double("1e18446744073709551516", &large)); /* 2^64 - 100 */
    assert_string_equal(text_of(1e23, 17), "1e+23");
    assert_string_equal(text_of(9007199254740993.0, 17), "9007199254740992");
    assert_string_equal(text_of(0.5, 1), "0.5");
    assert_string_equal(text_of(2.5, 1), "2"); /* to even */
    assert_string_equal(text_of(3.5, 1), "4");
    assert_string_equal(text_of(99.96, 3), "100");
    assert_string_equal(text_of(0.00001, 17), "1e-05");
    assert_string_equal(text_of(0.0001, 17), "0.0001");
}

/* The text of a whole number below 10 times 2^-halvings, every digit of it. */
static char *halved(char *text, int whole, int halvings)
{
    size_t length = (size_t)sprintf(text, "%d.", whole);
    for (int i = 0; i < halvings; i++) {
        int rest = 0;
        for (size_t at = 0; at < length; at++) {
            if (text[at] == '.') continue;
            const int digit = 10 * rest + text[at] - '0';
            text[at] = (char)('0' + digit / 2);
            rest = digit % 2;
        }
        if (rest) text[length++] = '5';
    }
    text[length] = '\0';
    return text;
}

/* The same times 2^doublings. */
static char *doubled(char *text, const char *whole, int doublings)
{
    strcpy(text, whole);
    for (int i = 0; i < doublings; i++) {
        int carry = 0;
        for (size_t at = strlen(text); at-- > 0; carry /= 10) {
            carry += 2 * (text[at] - '0');
            text[at] = (char)('0' + carry % 10);
        }
        if (!carry) continue;
        memmove(text + 1, text, strlen(text) + 1);
        text[0] = '1';
    }
    return text;
}

/* Halves between the least numbers: the last of 1075 digits decides, and any digit behind it. */
static void the_last_digit_decides(void **state)
{
    char text[1400];
    reads_as(halved(text, 1, 1075), 0);
    reads_as(strcat(text, "1"), 0x1p-1074);
    reads_as(halved(text, 3, 1075), 0x2p-1074);
    text[strlen(text) - 1] = '4';
    reads_as(text, 0x1p-1074);
    reads_as(halved(text, 5, 1075), 0x2p-1074);
    for (int i = 0; i < 90; i++) strcat(text, "0");
    reads_as(text, 0x2p-1074);
    reads_as(strcat(text, "1"), 0x3p-1074);
    reads_as(doubled(text, "9007199254740993", 960), 0x1p1013);
    strcat(text, ".");
    for (int i = 0; i < 1000; i++) strcat(text, "0");
    reads_as(strcat(text, "1"), 0x1.0000000000001p1013);
}

#if defined(__GLIBC__)
/* glibc's conversions are exact. */
static void conversions_are_those_of_glibc(void **state)
{
    xph_rng rng = {.seed = 2, .stream = XPH_RNG_TEST};
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = xph_rng_u64(&rng);
        double value, read = 0;
        char text[64], same[64];
        if (i % 2) bits = (bits & UINT64_C(0x800FFFFFFFFFFFFF)) | (uint64_t)(1003 + i % 60) << 52;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        const int digits = 1 + (int)xph_rng_below(&rng, 17);
        for (int some = 1; some <= digits; some++) {
            snprintf(same, sizeof same, "%.*g", some, value);
            if (strtod(same, NULL) == value) break;
        }
        assert_string_equal(text_of(value, digits), same);
        snprintf(text, sizeof text, "%.*e", (int)xph_rng_below(&rng, 25), value);
        const double expected = strtod(text, NULL);
        if (!isfinite(expected)) continue;
        assert_true(xph_parse_double(text, &read));
        assert_memory_equal(&read, &expected, sizeof read);
    }
}
#endif

/* Any locale with a comma will do; a machine without one cannot run this part and says so. */
static const char *comma_locale(void)
{
    const char *names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fr_FR.utf8", "es_ES.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *taken = setlocale(LC_ALL, names[i]);
        /* As the system calls it; musl takes every name and writes points. */
        if (taken && strcmp(localeconv()->decimal_point, ",") == 0) return taken;
    }
    return NULL;
}

static void a_comma_locale_does_not_show(void **state)
{
    char name[128];
    const char *taken = comma_locale();
    if (taken) snprintf(name, sizeof name, "%s", taken);
    if (!taken) {
        printf("SKIPPED: no locale with a decimal comma is installed (de_DE.UTF-8)\n");
        skip();
    }
    char host[32];
    snprintf(host, sizeof host, "%.1f", 1.5);
    assert_string_equal(host, "1,5");
    double value = 0;
    assert_string_equal(text_of(1.5, 17), "1.5");
    assert_true(xph_parse_double("2.25", &value) && value == 2.25);
    assert_false(xph_parse_double("2,25", &value));
    snprintf(host, sizeof host, "%.1f", 1.5);
    assert_string_equal(host, "1,5");
    assert_string_equal(setlocale(LC_ALL, NULL), name);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shortest_texts),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(parses_decimals_only),
        cmocka_unit_test(hard_texts_are_rounded_exactly),
        cmocka_unit_test(the_last_digit_decides),
#if defined(__GLIBC__)
        cmocka_unit_test(conversions_are_those_of_glibc),
#endif
        cmocka_unit_test(a_comma_locale_does_not_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
