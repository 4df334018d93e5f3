/* Products with weights of fewer bits on the emulated GPU: packed, multiplied, and bit for bit what the CPU makes
 * (kernels.kernel_narrow_test says what that is). */
#include "device_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct shape {
    int64_t rows, in, out, pad;
    bool bias, residual;
} shape;

static const shape shapes[] = {
    {1, 1, 1, 0, true, true},     {1, 0, 5, 0, true, true},     {0, 5, 3, 0, true, false},
    {1, 2, 16, 0, false, false},  {3, 3, 17, 1, true, false},   {1, 288, 130, 0, true, false},
    {1, 67, 200, 0, true, true},  {2, 33, 130, 3, false, true}, {5, 130, 65, 0, true, true},
    {7, 64, 96, 0, true, true},   {8, 31, 80, 1, true, false},  {13, 258, 65, 0, false, false},
    {23, 515, 47, 2, true, true}, {9, 1030, 33, 0, true, true}, {1, 3001, 20, 0, true, true},
};

/* Ordinary numbers; sizes from 2^-60 to 2^60; terms that cancel; around the flush to 0; overflow. */
enum { PLAIN, SIZES, CANCEL, TINY, HUGE_ONES, KINDS };

static float number(int kind, int64_t i)
{
    float x = (float)case_uniform(-1, 1);
    switch (kind) {
    case SIZES:
        return ldexpf(x, (int)case_below(121) - 60);
    case CANCEL:
        return (i / 2 % 2 ? -1.0f : 1.0f) * (1.0f + (float)(i / 4 % 7) * 0.0078125f) + x * 1e-6f;
    case TINY:
        return case_below(5)
                   ? ldexpf(x < 0 ? -1.0f : 1.0f, -51 + (int)case_below(3)) * (1.0f + 0.00390625f * x)
                   : ldexpf(x, -130);
    case HUGE_ONES:
        return case_below(9) ? x : ldexpf(x, 126);
    default:
        return x;
    }
}

static float *numbers(int kind, int64_t count)
{
    float *x = case_alloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = number(kind, i);
    return x;
}

typedef struct layer {
    shape s;
    float *x, *w, *bias, *residual; /* rows of x and residual are `pad` numbers longer than they say */
} layer;

static layer layer_make(const shape *s, int x_kind, int w_kind)
{
    layer l = {.s = *s};
    l.x = numbers(x_kind, s->rows * (s->in + s->pad));
    l.w = numbers(w_kind, s->out * s->in);
    l.bias = s->bias ? numbers(PLAIN, s->out) : NULL;
    l.residual = numbers(PLAIN, s->rows * (s->out + s->pad));
    return l;
}

static xph_linear_args args_of(const layer *l, xph_type weights)
{
    const shape *s = &l->s;
    return (xph_linear_args){.type = XPH_F32,
                             .weights = weights,
                             .rows = s->rows,
                             .in = s->in,
                             .out = s->out,
                             .ldx = s->in + s->pad,
                             .ldy = s->out + s->pad,
                             .ldr = s->out + s->pad};
}

static size_t bytes_of_y(const layer *l)
{
    return (size_t)(l->s.rows * (l->s.out + l->s.pad)) * sizeof(float);
}

/* y lies where the residual does. */
static float *on_cpu(const layer *l, xph_type weights)
{
    const xph_kernel_set *set = &xph_kernels_f32_ref;
    xph_linear_pack_args pack = {XPH_F32, weights, l->s.in, l->s.out, l->w, NULL, NULL};
    pack.packed = case_alloc(xph_kernels_packed_bytes(XPH_OP_LINEAR_PACK, &pack));
    case_run(xph_kernels_choose(set, XPH_OP_LINEAR_PACK, &pack), &pack, 1);
    xph_linear_args args = args_of(l, weights);
    float *y = case_alloc(bytes_of_y(l));
    memcpy(y, l->residual, bytes_of_y(l));
    args.x = l->x;
    args.packed = pack.packed;
    args.bias = l->bias;
    args.y = y;
    args.residual = l->s.residual ? y : NULL;
    case_run(xph_kernels_choose(set, XPH_OP_LINEAR, &args), &args, 1);
    return y;
}

static void *given(const void *from, size_t bytes)
{
    void *to = emu_alloc(bytes, sizeof(float));
    assert_non_null(to);
    if (from) memcpy(to, from, bytes);
    return to;
}

static void *pack_on_device(const layer *l, xph_type weights)
{
    float *w = given(l->w, (size_t)(l->s.in * l->s.out) * sizeof *w);
    xph_linear_pack_args pack = {XPH_F32, weights, l->s.in, l->s.out, w, NULL, NULL};
    pack.packed = given(NULL, xph_cuda_packed_bytes(XPH_OP_LINEAR_PACK, &pack));
    device_do(xph_cuda_linear_pack, &pack);
    emu_free(w);
    return pack.packed;
}

static bool same_float(float a, float b)
{
    return isnan(a) ? isnan(b) : memcmp(&a, &b, sizeof a) == 0;
}

static void check_layer(const layer *l, xph_type weights)
{
    const shape *s = &l->s;
    float *want = on_cpu(l, weights);
    for (int schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
        emu_schedule(schedule);
        void *packed = pack_on_device(l, weights);
        float *x = given(l->x, (size_t)(s->rows * (s->in + s->pad)) * sizeof *x);
        float *bias = given(l->bias, l->bias ? (size_t)s->out * sizeof *bias : 0);
        float *y = given(l->residual, bytes_of_y(l));
        xph_linear_args args = args_of(l, weights);
        args.x = x;
        args.packed = packed;
        args.bias = l->bias ? bias : NULL;
        args.y = y;
        args.residual = s->residual ? y : NULL;
        device_do(xph_cuda_linear, &args);
        if (emu_fault()) fail_msg("%s", emu_fault());
        for (int64_t i = 0; i < s->rows * (s->out + s->pad); i++) /* between rows lies what was there */
            if (!same_float(y[i], want[i]))
                fail_msg("%lld x %lld x %lld, weights %d: y[%lld] = %.9g, expected %.9g", (long long)s->rows,
                         (long long)s->in, (long long)s->out, weights, (long long)i, (double)y[i],
                         (double)want[i]);
        emu_free(packed);
        emu_free(x);
        emu_free(bias);
        emu_free(y);
    }
    assert_int_equal(emu_allocated(), 0);
}

static void products(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        layer l = layer_make(&shapes[i], PLAIN, PLAIN);
        check_layer(&l, XPH_BF16);
        check_layer(&l, XPH_I8);
        case_release();
    }
}

/* Numbers that would tell an fma from two roundings, flushed denormals from kept ones, one order from another. */
static void nasty_numbers(void **state)
{
    const shape some[] = {{1, 203, 37, 0, true, false}, {9, 64, 18, 0, false, true}};
    for (int i = 0; i < 2 * KINDS * KINDS; i++) {
        case_seed((uint64_t)(1000 + i));
        layer l = layer_make(&some[i % 2], i / 2 % KINDS, i / 2 / KINDS);
        check_layer(&l, XPH_BF16);
        check_layer(&l, XPH_I8);
        case_release();
    }
}

/* A NaN or an infinity is seen in all of its row or column, and nowhere else. */
static void bad_numbers(void **state)
{
    const shape s = {9, 35, 37, 0, true, false};
    const float bad[] = {NAN, INFINITY, -INFINITY};
    case_seed(5);
    for (int i = 0; i < 12; i++) {
        layer l = layer_make(&s, PLAIN, PLAIN);
        int64_t at = case_below(i / 3 % 2 ? s.rows * s.in : s.out * s.in);
        (i / 3 % 2 ? l.x : l.w)[at] = bad[i % 3];
        check_layer(&l, i / 6 ? XPH_I8 : XPH_BF16);
        case_release();
    }
}

/* The most that int32 sums must hold, of either sign. */
static void largest_sums(void **state)
{
    const shape s = {2, 131072, 3, 0, false, false};
    layer l = layer_make(&s, PLAIN, PLAIN);
    for (int64_t i = 0; i < s.rows * s.in; i++) l.x[i] = i < s.in ? 1.0f : -1.0f;
    for (int64_t i = 0; i < s.out * s.in; i++) l.w[i] = i < s.in ? 2.0f : i < 2 * s.in ? -2.0f : l.w[i];
    check_layer(&l, XPH_I8);
    case_release();
}

static void refused(void **state)
{
    for (xph_type weights = 1; weights < 8; weights++) {
        bool known = weights == XPH_BF16 || weights == XPH_I8;
        xph_linear_args args = {.type = XPH_F32, .weights = weights, .rows = 3, .in = 8, .out = 8};
        xph_linear_pack_args pack = {.type = XPH_F32, .weights = weights, .in = 8, .out = 8};
        assert_int_equal(xph_narrow_accepts(&args), known);
        assert_int_equal(xph_narrow_accepts_pack(&pack), known);
        args.in = pack.in = 131073; /* more than int32 holds the sums of */
        assert_int_equal(xph_narrow_accepts(&args), weights == XPH_BF16);
        assert_int_equal(xph_narrow_accepts_pack(&pack), weights == XPH_BF16);
        args.type = pack.type = XPH_BF16; /* the arithmetic around them is float */
        assert_false(xph_narrow_accepts(&args));
        assert_false(xph_narrow_accepts_pack(&pack));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(nasty_numbers),
                                       cmocka_unit_test(bad_numbers), cmocka_unit_test(largest_sums),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests_name("cuda_narrow", tests, NULL, NULL);
}
