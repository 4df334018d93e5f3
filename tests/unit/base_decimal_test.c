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

/* Any locale with a comma will do; a machine without one cannot run this part and says so. */
static const char *comma_locale(void)
{
    const char *names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fr_FR.utf8", "es_ES.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (setlocale(LC_ALL, names[i])) return names[i];
    }
    return NULL;
}

static void a_comma_locale_does_not_show(void **state)
{
    const char *name = comma_locale();
    if (!name) {
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
        cmocka_unit_test(a_comma_locale_does_not_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
