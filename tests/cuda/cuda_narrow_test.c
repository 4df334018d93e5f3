/* Products with weights of fewer bits on the emulated GPU: packed, multiplied, and bit for bit what the CPU makes
 * (kernels.kernel_narrow_test says what that is). */
#include "device_case.h"
#include "narrow_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const narrow_shape shapes[] = {
    {1, 1, 1, 0, true, true},     {1, 0, 5, 0, true, true},     {0, 5, 3, 0, true, false},
    {1, 2, 16, 0, false, false},  {3, 3, 17, 1, true, false},   {1, 288, 130, 0, true, false},
    {1, 67, 200, 0, true, true},  {2, 33, 130, 3, false, true}, {5, 130, 65, 0, true, true},
    {7, 64, 96, 0, true, true},   {8, 31, 80, 1, true, false},  {13, 258, 65, 0, false, false},
    {23, 515, 47, 2, true, true}, {9, 1030, 33, 0, true, true}, {1, 3001, 20, 0, true, true},
};

static xph_linear_args args_of(const narrow_layer *l, xph_type weights)
{
    const narrow_shape *s = &l->s;
    return (xph_linear_args){.type = XPH_F32,
                             .weights = weights,
                             .rows = s->rows,
                             .in = s->in,
                             .out = s->out,
                             .ldx = s->in + s->pad,
                             .ldy = s->out + s->pad,
                             .ldr = s->out + s->pad};
}

/* Rows as the shape has them; those of y are written on those of the residual. */
static float *rows_of_x(const narrow_layer *l)
{
    return narrow_padded(l->x, l->s.rows, l->s.in, l->s.in + l->s.pad);
}

static float *rows_of_y(const narrow_layer *l)
{
    return narrow_padded(l->residual, l->s.rows, l->s.out, l->s.out + l->s.pad);
}

static size_t bytes_of(int64_t rows, int64_t width, int64_t pad)
{
    return rows > 0 ? (size_t)(rows * (width + pad) - pad) * sizeof(float) : 0;
}

static float *on_cpu(const narrow_layer *l, xph_type weights)
{
    const xph_kernel_set *set = &xph_kernels_f32_ref;
    xph_linear_pack_args pack = {XPH_F32, weights, l->s.in, l->s.out, l->w, NULL, NULL};
    pack.packed = case_alloc(xph_kernels_packed_bytes(XPH_OP_LINEAR_PACK, &pack));
    case_run(xph_kernels_choose(set, XPH_OP_LINEAR_PACK, &pack), &pack, 1);
    xph_linear_args args = args_of(l, weights);
    float *y = rows_of_y(l);
    args.x = rows_of_x(l);
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

static void *pack_on_device(const narrow_layer *l, xph_type weights)
{
    float *w = given(l->w, (size_t)(l->s.in * l->s.out) * sizeof *w);
    xph_linear_pack_args pack = {XPH_F32, weights, l->s.in, l->s.out, w, NULL, NULL};
    pack.packed = given(NULL, xph_cuda_packed_bytes(XPH_OP_LINEAR_PACK, &pack));
    device_do(xph_cuda_linear_pack, &pack);
    emu_free(w);
    return pack.packed;
}

static void check_layer(const narrow_layer *l, xph_type weights)
{
    const narrow_shape *s = &l->s;
    float *want = on_cpu(l, weights);
    for (int schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
        emu_schedule(schedule);
        void *packed = pack_on_device(l, weights);
        float *x = given(rows_of_x(l), bytes_of(s->rows, s->in, s->pad));
        float *bias = given(l->bias, l->bias ? (size_t)s->out * sizeof *bias : 0);
        float *y = given(rows_of_y(l), bytes_of(s->rows, s->out, s->pad));
        xph_linear_args args = args_of(l, weights);
        args.x = x;
        args.packed = packed;
        args.bias = l->bias ? bias : NULL;
        args.y = y;
        args.residual = s->residual ? y : NULL;
        device_do(xph_cuda_linear, &args);
        if (emu_fault()) fail_msg("%s", emu_fault());
        for (int64_t i = 0; i < (int64_t)(bytes_of(s->rows, s->out, s->pad) / sizeof *y);
             i++) /* between rows lies what was there */
            if (!narrow_same(y[i], want[i]))
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
    narrow_products(shapes, sizeof shapes / sizeof *shapes, XPH_BF16, check_layer);
    narrow_products(shapes, sizeof shapes / sizeof *shapes, XPH_I8, check_layer);
}

static void nasty_numbers(void **state)
{
    const narrow_shape some[] = {{1, 203, 37, 0, true, false}, {9, 64, 18, 0, false, true}};
    narrow_nasty_numbers(some, check_layer);
}

static void bad_numbers(void **state)
{
    narrow_bad_numbers(check_layer);
}

static void largest_sums(void **state)
{
    narrow_largest_sums(check_layer);
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
        args.in = 1;
        args.out = 65535 * 64; /* blocks beside each other, each of so many */
        assert_int_equal(xph_narrow_accepts(&args), known);
        args.out++;
        assert_false(xph_narrow_accepts(&args));
        args.in = 131073, args.out = 8;
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
