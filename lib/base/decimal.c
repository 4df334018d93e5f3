/* Numbers in text with '.', exactly rounded, by arithmetic of our own: the C library's would show the host's locale and its
 * rounding mode, and not every system's is exact. */
#include "base/base.h"

#include <stdio.h>

/* ---- decimal numbers of any length ----------------------------------------------------------------------- */

/* Nine digits in each place, WHOLE places before the point: up to 10^315, down to 10^-1152. Every double is one of these
 * (1074 places behind the point at most), and so is each of the numbers between two of them where rounding turns (767 digits
 * at most): what is cut off behind counts only as more than nothing. */
enum { NINE = 1000000000, WHOLE = 35, PLACES = WHOLE + 128, STEP = 29 };

typedef struct number {
    uint32_t place[PLACES];
    int32_t first, end; /* outside of [first, end) are zeros */
    bool more;          /* and something behind the last place */
} number;

static void grow(number *n, int32_t at)
{
    if (at < n->first) n->first = at;
    if (at >= n->end) n->end = at + 1;
}

/* times 2^bits, at most 2^STEP; the result must be less than 10^315. */
static void multiply(number *n, int32_t bits)
{
    uint64_t carry = 0;
    for (int32_t i = n->end - 1; i >= n->first || carry; i--) {
        carry += (uint64_t)n->place[i] << bits;
        n->place[i] = (uint32_t)(carry % NINE);
        carry /= NINE;
        if (n->place[i]) grow(n, i);
    }
}

/* by 2^bits, at most 2^STEP. */
static void divide(number *n, int32_t bits)
{
    uint64_t rest = 0;
    for (int32_t i = n->first; i < PLACES && (i < n->end || rest); i++) {
        rest = rest * NINE + n->place[i];
        n->place[i] = (uint32_t)(rest >> bits);
        rest &= ((uint64_t)1 << bits) - 1;
        if (n->place[i]) grow(n, i);
    }
    if (rest) n->more = true;
    while (n->first < n->end && !n->place[n->first]) n->first++;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

enum { DIGITS = 17, MANTISSA_BITS = 52, LEAST_EXPONENT = -1074 };

typedef struct digits {
    uint8_t digit[DIGITS + 1]; /* the first of a number, the value of each */
    bool more;                 /* and not only zeros behind them */
    int32_t exponent;          /* of ten, of the first */
} digits;

static void exact_number(uint64_t bits, number *n)
{
    uint64_t mantissa = bits & (((uint64_t)1 << MANTISSA_BITS) - 1);
    int32_t exponent = (int32_t)(bits >> MANTISSA_BITS & 0x7FF);
    if (exponent) mantissa |= (uint64_t)1 << MANTISSA_BITS;
    exponent += LEAST_EXPONENT - (exponent != 0);
    *n = (number){.first = WHOLE - 2, .end = WHOLE};
    n->place[WHOLE - 2] = (uint32_t)(mantissa / NINE);
    n->place[WHOLE - 1] = (uint32_t)(mantissa % NINE);
    while (exponent) {
        const int32_t away = exponent < 0 ? -exponent : exponent, step = away < STEP ? away : STEP;
        if (exponent > 0)
            multiply(n, step);
        else
            divide(n, step);
        exponent += exponent > 0 ? -step : step;
    }
    while (n->first < n->end && !n->place[n->first]) n->first++;
}

/* Of a number that is not 0. */
static digits first_digits(const number *n)
{
    digits of = {0};
    int32_t have = 0;
    for (int32_t i = n->first; i < n->end; i++) {
        uint32_t unit = NINE / 10;
        for (int32_t at = 8; at >= 0; at--, unit /= 10) {
            const uint32_t digit = n->place[i] / unit % 10;
            if (have == 0 && digit == 0) continue;
            if (have == 0) of.exponent = 9 * (WHOLE - 1 - i) + at;
            if (have <= DIGITS)
                of.digit[have++] = (uint8_t)digit;
            else
                of.more = of.more || digit;
        }
    }
    return of;
}

/* To `count` digits, to even where it lies between two. */
static digits rounded(const digits *of, int32_t count)
{
    digits to = *of;
    bool behind = of->more;
    for (int32_t i = count + 1; i <= DIGITS; i++) behind = behind || of->digit[i];
    const int32_t next = of->digit[count];
    memset(to.digit + count, 0, (size_t)(DIGITS + 1 - count));
    if (next < 5 || (next == 5 && !behind && of->digit[count - 1] % 2 == 0)) return to;
    int32_t at = count - 1;
    while (at >= 0 && to.digit[at] == 9) to.digit[at--] = 0;
    if (at >= 0) {
        to.digit[at]++;
    } else {
        to.digit[0] = 1;
        to.exponent++;
    }
    return to;
}

/* As %.*g does it. */
static void write_digits(char *to, const digits *of, int32_t precision)
{
    int32_t last = DIGITS, exponent = of->exponent;
    while (last > 0 && !of->digit[last]) last--;
    if (exponent < -4 || exponent >= precision) {
        *to++ = (char)('0' + of->digit[0]);
        if (last > 0) *to++ = '.';
        for (int32_t i = 1; i <= last; i++) *to++ = (char)('0' + of->digit[i]);
        const int32_t away = exponent < 0 ? -exponent : exponent; /* at most 324 */
        *to++ = 'e';
        *to++ = exponent < 0 ? '-' : '+';
        if (away >= 100) *to++ = (char)('0' + away / 100);
        *to++ = (char)('0' + away / 10 % 10);
        *to++ = (char)('0' + away % 10);
        *to = '\0';
        return;
    }
    for (int32_t i = exponent < 0 ? exponent : 0; i <= last || i <= exponent; i++) {
        if (i == exponent + 1) *to++ = '.';
        *to++ = (char)('0' + (i >= 0 && i <= last ? of->digit[i] : 0));
    }
    *to = '\0';
}

const char *xph_format_double(char *text, double value, int precision)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const bool negative = bits >> 63;
    bits &= UINT64_MAX >> 1;
    if (!xph_finite(value)) {
        const bool nan = (bits & (((uint64_t)1 << MANTISSA_BITS) - 1)) != 0;
        snprintf(text, XPH_DOUBLE_TEXT, "%s", nan ? "nan" : negative ? "-inf" : "inf");
        return text;
    }
    if (precision < 1) precision = 1;
    if (precision > DIGITS) precision = DIGITS;
    char *to = text;
    if (negative) *to++ = '-';
    if (!bits) {
        memcpy(to, "0", 2);
        return text;
    }
    number n;
    exact_number(bits, &n);
    const digits all = first_digits(&n);
    for (int32_t some = 1; some <= precision; some++) {
        const digits shorter = rounded(&all, some);
        double back;
        write_digits(to, &shorter, some);
        if (xph_parse_double(text, &back) && back == value) break;
    }
    return text;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static const char *skip_digits(const char *c, int64_t *count)
{
    for (; *c >= '0' && *c <= '9'; c++) ++*count;
    return c;
}

typedef struct decimal {
    const char *digit; /* up to the end of them, a '.' among them */
    int64_t before;    /* digits before the '.' */
    int64_t exponent;
    bool negative;
} decimal;

/* No white space, hexadecimal, "inf" and "nan". */
static bool is_decimal(const char *c, decimal *found)
{
    enum { MOST = 1000000000 }; /* of the exponent: what is more is as much too much */
    int64_t count = 0;
    *found = (decimal){.negative = *c == '-'};
    if (*c == '-' || *c == '+') c++;
    found->digit = c;
    c = skip_digits(c, &count);
    found->before = count;
    if (*c == '.') c = skip_digits(c + 1, &count);
    if (!count) return false;
    if (*c == 'e' || *c == 'E') {
        c++;
        const bool minus = *c == '-';
        if (*c == '-' || *c == '+') c++;
        if (*c < '0' || *c > '9') return false;
        for (; *c >= '0' && *c <= '9'; c++)
            if (found->exponent < MOST) found->exponent = 10 * found->exponent + (*c - '0');
        if (minus) found->exponent = -found->exponent;
    }
    return *c == '\0';
}

/* false: 10^315 or more. */
static bool take_digits(const decimal *found, number *n)
{
    static const uint32_t unit[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    const int64_t most = 9 * (int64_t)WHOLE, least = -9 * (int64_t)(PLACES - WHOLE);
    *n = (number){.first = PLACES, .end = 0};
    int64_t power = found->before + found->exponent;
    for (const char *c = found->digit; (*c >= '0' && *c <= '9') || *c == '.'; c++) {
        if (*c == '.') continue;
        power--;
        if (*c == '0') continue;
        if (power >= most) return false;
        if (power < least) {
            n->more = true;
            continue;
        }
        const int64_t from_top = most - 1 - power;
        n->place[from_top / 9] += (uint32_t)(*c - '0') * unit[8 - from_top % 9];
        grow(n, (int32_t)(from_top / 9));
    }
    return true;
}

/* value * 2^exponent, rounded to even; at least 2^54 of `value`, and `more` behind it. */
static uint64_t round_bits(uint64_t value, int32_t exponent, bool more)
{
    int32_t away = 1;
    while (value >> away >> (MANTISSA_BITS + 1)) away++;
    if (exponent + away < LEAST_EXPONENT) away = LEAST_EXPONENT - exponent;
    for (; away > 60; away--, exponent++) { /* only numbers that are hardly more than 0 */
        more = more || value & 1;
        value >>= 1;
    }
    const uint64_t rest = value & (((uint64_t)1 << away) - 1), half = (uint64_t)1 << (away - 1);
    uint64_t kept = value >> away;
    if (rest > half || (rest == half && (more || kept & 1))) kept++;
    /* A carry into the next power of two is one into the exponent. */
    const uint64_t scale = (uint64_t)(exponent + away - LEAST_EXPONENT);
    if (!(kept >> MANTISSA_BITS)) return kept;
    return (scale << MANTISSA_BITS) + kept;
}

/* Bits of the nearest double. */
static uint64_t nearest(number *n)
{
    enum { ONES = WHOLE - 1 };
    int32_t exponent = 0;
    if (n->first >= n->end) return 0; /* what may lie behind is far from half of the least */
    while (n->first < ONES - 1) {     /* down to less than 10^18, and at least 2^54 */
        const int32_t bits = n->first < ONES - 2 ? STEP : 5;
        divide(n, bits);
        exponent += bits;
    }
    for (; n->first > ONES && exponent > LEAST_EXPONENT - 3 * STEP; exponent -= STEP) multiply(n, STEP);
    uint64_t value = (uint64_t)n->place[ONES - 1] * NINE + n->place[ONES];
    for (; value && value < (uint64_t)1 << (MANTISSA_BITS + 2); exponent -= 5) {
        multiply(n, 5);
        value = (uint64_t)n->place[ONES - 1] * NINE + n->place[ONES];
    }
    bool more = n->more;
    for (int32_t i = WHOLE; i < n->end; i++) more = more || n->place[i];
    return value ? round_bits(value, exponent, more) : 0;
}

bool xph_parse_double(const char *text, double *value)
{
    decimal found;
    number n;
    if (!text || !is_decimal(text, &found) || !take_digits(&found, &n)) return false;
    uint64_t bits = nearest(&n);
    if (bits >> MANTISSA_BITS >= 0x7FF) return false;
    bits |= (uint64_t)found.negative << 63;
    memcpy(value, &bits, sizeof bits);
    return true;
}
