#include "narrow_case.h"

#include <float.h>
#include <math.h>

/* ---- numbers ---- */

const float narrow_special[NARROW_SPECIAL] = {
    0.0f,      -0.0f,       1.0f,        FLT_MAX,   -FLT_MAX, FLT_MIN,  1e-45f, 0x1p-50f, 0x1.fffffep-51f,
    -0x1p-50f, 1.00390625f, 1.01171875f, 0x1p-100f, 3.0f,     INFINITY, NAN,    -INFINITY};

static float number(int kind, int64_t i)
{
    float x = (float)case_uniform(-1, 1);
    switch (kind) {
    case NARROW_SIZES:
        return ldexpf(x, (int)case_below(121) - 60);
    case NARROW_CANCEL:
        return (i / 2 % 2 ? -1.0f : 1.0f) * (1.0f + (float)(i / 4 % 7) * 0.0078125f) + x * 1e-6f;
    case NARROW_TINY:
        return case_below(5)
                   ? ldexpf(x < 0 ? -1.0f : 1.0f, -51 + (int)case_below(3)) * (1.0f + 0.00390625f * x)
                   : ldexpf(x, -130);
    case NARROW_HUGE:
        return case_below(9) ? x : ldexpf(x, 126);
    default:
        return x;
    }
}

float *narrow_numbers(int kind, int64_t count)
{
    float *x = case_alloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = number(kind, i);
    return x;
}

bool narrow_same(float a, float b)
{
    return isnan(a) ? isnan(b) : memcmp(&a, &b, sizeof a) == 0;
}

/* ---- layers ---- */

static narrow_layer layer_make(const narrow_shape *s, int x_kind, int w_kind)
{
    narrow_layer l = {.s = *s};
    l.x = narrow_numbers(x_kind, s->rows * s->in);
    l.w = narrow_numbers(w_kind, s->out * s->in);
    l.bias = s->bias ? narrow_numbers(NARROW_PLAIN, s->out) : NULL;
    l.residual = s->residual ? narrow_numbers(NARROW_PLAIN, s->rows * s->out) : NULL;
    return l;
}

float *narrow_padded(const float *x, int64_t rows, int64_t width, int64_t ld)
{
    float *to = case_alloc(rows > 0 ? (size_t)((rows - 1) * ld + width) * sizeof *to : 0);
    for (int64_t r = 0; r < rows && x; r++) memcpy(to + r * ld, x + r * width, (size_t)width * sizeof *to);
    return to;
}

/* ---- cases ---- */

void narrow_products(const narrow_shape *shapes, size_t count, xph_type weights, narrow_check check)
{
    for (size_t i = 0; i < count; i++) {
        case_seed(i);
        narrow_layer l = layer_make(&shapes[i], NARROW_PLAIN, NARROW_PLAIN);
        check(&l, weights);
        case_release();
    }
}

void narrow_nasty_numbers(const narrow_shape shapes[2], narrow_check check)
{
    for (int i = 0; i < 2 * NARROW_KINDS * NARROW_KINDS; i++) {
        case_seed((uint64_t)(1000 + i));
        narrow_layer l = layer_make(&shapes[i % 2], i / 2 % NARROW_KINDS, i / 2 / NARROW_KINDS);
        check(&l, XPH_BF16);
        check(&l, XPH_I8);
        case_release();
    }
}

void narrow_bad_numbers(narrow_check check)
{
    const narrow_shape s = {9, 35, 37, 0, true, false};
    const float bad[] = {NAN, INFINITY, -INFINITY};
    case_seed(5);
    for (int i = 0; i < 12; i++) {
        narrow_layer l = layer_make(&s, NARROW_PLAIN, NARROW_PLAIN);
        int64_t at = case_below(i / 3 % 2 ? s.rows * s.in : s.out * s.in);
        (i / 3 % 2 ? l.x : l.w)[at] = bad[i % 3];
        check(&l, i / 6 ? XPH_I8 : XPH_BF16);
        case_release();
    }
}

void narrow_largest_sums(narrow_check check)
{
    const narrow_shape s = {2, 131072, 3, 0, false, false};
    narrow_layer l = layer_make(&s, NARROW_PLAIN, NARROW_PLAIN);
    for (int64_t i = 0; i < s.rows * s.in; i++) l.x[i] = i < s.in ? 1.0f : -1.0f;
    for (int64_t i = 0; i < s.out * s.in; i++) l.w[i] = i < s.in ? 2.0f : i < 2 * s.in ? -2.0f : l.w[i];
    check(&l, XPH_I8);
    case_release();
}
