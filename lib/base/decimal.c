/* Numbers in text with '.', whatever locale the host has set. The thread's locale is set to "C" for one
 * conversion, which no other thread can see. */
#define _GNU_SOURCE
#include "base/base.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(_WIN32) || defined(__wasi__)
typedef int c_locale;
static c_locale enter_c(void)
{
    return 0;
}
static void leave_c(c_locale pair)
{
    (void)pair;
}
#else
typedef struct c_locale {
    locale_t c, saved;
} c_locale;

/* newlocale of "C" returns a static object in glibc and musl: nothing is allocated, it cannot fail there. */
static c_locale enter_c(void)
{
    c_locale pair = {newlocale(LC_ALL_MASK, "C", (locale_t)0), (locale_t)0};
    if (pair.c) pair.saved = uselocale(pair.c);
    return pair;
}

static void leave_c(c_locale pair)
{
    if (!pair.c) return;
    uselocale(pair.saved);
    freelocale(pair.c);
}
#endif

const char *xph_format_double(char *text, double value, int digits)
{
    if (!xph_finite(value)) {
        snprintf(text, XPH_DOUBLE_TEXT, "%s", value != value ? "nan" : value < 0 ? "-inf" : "inf");
        return text;
    }
    if (digits < 1) digits = 1;
    if (digits > 17) digits = 17;
    c_locale pair = enter_c();
    for (int some = 1; some <= digits; some++) {
        snprintf(text, XPH_DOUBLE_TEXT, "%.*g", some, value);
        if (strtod(text, NULL) == value) break;
    }
    leave_c(pair);
    return text;
}

static const char *skip_digits(const char *c, int *count)
{
    for (; *c >= '0' && *c <= '9'; c++) ++*count;
    return c;
}

/* strtod alone would take white space, hexadecimal, "inf" and "nan". */
static bool is_decimal(const char *c)
{
    int digits = 0;
    if (*c == '-' || *c == '+') c++;
    c = skip_digits(c, &digits);
    if (*c == '.') c = skip_digits(c + 1, &digits);
    if (!digits) return false;
    if (*c == 'e' || *c == 'E') {
        digits = 0;
        c++;
        if (*c == '-' || *c == '+') c++;
        c = skip_digits(c, &digits);
        if (!digits) return false;
    }
    return *c == '\0';
}

bool xph_parse_double(const char *text, double *value)
{
    if (!text || !is_decimal(text)) return false;
    c_locale pair = enter_c();
    double read = strtod(text, NULL);
    leave_c(pair);
    if (!xph_finite(read)) return false;
    *value = read;
    return true;
}
