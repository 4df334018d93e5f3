/* The CUDA kernels over whole arenas on the emulated GPU: AdamW and y = a x + b y against the CPU's in double, the norm
 * against its formula, casts against every number of 16 bits. */
#include "adam_case.h"
#include "device_case.h"

#include "emu_control.h"

#include <math.h>
#include <string.h>

static void check(const kt_case *c, const xph_cuda_candidate *list)
{
    device_case d = device_case_of(c, list, XPH_F32);
    d.tolerance = 1e-6;
    device_check(&d);
    case_release();
}

static void adam_shape(int64_t count, int64_t decay_count, bool averaged)
{
    const kt_case c = adam_case(count, decay_count, averaged);
    check(&c, xph_cuda_adam);
}

static void adam(void **state)
{
    case_seed(1);
    adam_shape(0, 0, true);
    adam_shape(1, 1, true);
    adam_shape(37, 13, true);
    adam_shape(1024, 0, false);
    adam_shape(5001, 2390, true);
    adam_shape(3000, 40000, false);
}

static void axpby(void **state)
{
    static const int64_t counts[] = {0, 1, 33, 1024, 4001};
    for (int i = 0; i < 10; i++) {
        int64_t count = counts[i / 2];
        case_seed((uint64_t)i);
        double *x = case_random(count, -1, 1), *y = case_random(count, -1, 1);
        double *from = i % 2 ? case_random(count, -1, 1) : NULL;
        const kt_tensor tensors[] = {KT_FLAT(xph_axpby_args, x, 1, count, KT_IN, x, NULL),
                                     KT_FLAT(xph_axpby_args, y, 1, count, KT_ADD, y, NULL),
                                     KT_FLAT(xph_axpby_args, from, 1, count, KT_IN, from, NULL)};
        const xph_axpby_args args = {.count = count, .a = 0.75, .b = -1.5};
        const kt_case c = KT_CASE("axpby", XPH_OP_AXPBY, args, KT_DENSE, tensors, 0);
        check(&c, xph_cuda_axpby);
    }
}

typedef struct norm {
    double norm;
    int64_t bad;
} norm;

static norm norm_of(const double *x, int64_t count, int schedule)
{
    emu_schedule(schedule);
    float *numbers = emu_alloc((size_t)count * sizeof(float), sizeof(float));
    norm *out = emu_alloc(sizeof(norm), sizeof(double));
    for (int64_t i = 0; i < count; i++) numbers[i] = (float)x[i];
    xph_norm2_args args = {.count = count, .x = numbers, .norm = &out->norm, .first_bad = &out->bad};
    args.scratch = emu_alloc(xph_cuda_norm2->scratch_bytes(&args), sizeof(double));
    assert_int_equal(xph_cuda_norm2->launch(&args, NULL), 0);
    norm n = *out;
    emu_free(numbers);
    emu_free(out);
    emu_free(args.scratch);
    return n;
}

static void norm2_shape(int64_t count, double low, double high)
{
    double *x = case_random(count, low, high), sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i] * x[i];
    norm first = norm_of(x, count, 0);
    assert_true(fabs(first.norm - sqrt(sum)) <= 1e-12 * sqrt(sum) && first.bad == -1);
    for (int s = 1; s < EMU_SCHEDULES; s++) {
        norm n = norm_of(x, count, s);
        assert_true(n.norm == first.norm && n.bad == -1);
    }
    case_release();
}

static void norm2(void **state)
{
    case_seed(2);
    norm2_shape(0, 0, 1);
    norm2_shape(1, -3, -3);
    norm2_shape(31, -1, 1);
    norm2_shape(4097, -1, 1);
    norm2_shape(100003, -1e-3, 1e-3);
    norm2_shape(5000, -3e38, 3e38);
}

static void norm2_names_the_first_bad(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 9; i++) {
        double *x = case_zeros(20000);
        x[10001 + 4096 * (i / 3)] = NAN;
        x[10001] = bad[i % 3];
        norm n = norm_of(x, 20000, i / 3);
        assert_true(n.bad == 10001 && !isfinite(n.norm));
        case_release();
    }
}

static void casts_of(xph_type type, uint16_t infinity)
{
    enum { COUNT = 0x10000 };
    uint16_t *narrow = emu_alloc(COUNT * sizeof *narrow, 2), *again = emu_alloc(COUNT * sizeof *again, 2);
    float *wide = emu_alloc(COUNT * sizeof *wide, 4);
    for (int i = 0; i < COUNT; i++) narrow[i] = (uint16_t)i;
    const xph_cast_args back = {.as = type, .count = COUNT, .x = narrow, .y = wide};
    const xph_cast_args there = {.as = type, .narrow = 1, .count = COUNT, .x = wide, .y = again};
    assert_true(xph_cuda_cast->accepts(&back));
    assert_int_equal(xph_cuda_cast->launch(&back, NULL), 0);
    assert_int_equal(xph_cuda_cast->launch(&there, NULL), 0);
    for (int i = 0; i < COUNT; i++) {
        double want = device_get(type, narrow, i);
        assert_true(isnan(want) ? isnan(wide[i]) : (double)wide[i] == want);
        if (isnan(want))
            assert_true((again[i] & 0x7fff) > infinity);
        else
            assert_int_equal(again[i], i);
    }
    emu_free(narrow);
    emu_free(again);
    emu_free(wide);
    assert_int_equal(emu_allocated(), 0);
}

static void casts_are_exact_back_and_nearest_there(void **state)
{
    casts_of(XPH_BF16, 0x7f80);
    casts_of(XPH_F16, 0x7c00);
    const xph_cast_args same = {.as = XPH_F32}, bytes = {.as = XPH_I8};
    assert_false(xph_cuda_cast->accepts(&same));
    assert_false(xph_cuda_cast->accepts(&bytes));
}

/* y += a x in rows as they are stored: in float, rounded once. */
static void axpby_of_rows(void **state)
{
    enum { COUNT = 1999 };
    const float by = 0.75f, before = -1.5f;
    for (int k = 0; k < DEVICE_TYPES; k++) {
        xph_type type = device_types[k];
        void *x = emu_alloc(COUNT * device_bytes(type), 4), *y = emu_alloc(COUNT * device_bytes(type), 4);
        float want[COUNT];
        case_seed(3);
        for (int i = 0; i < COUNT; i++) {
            device_put(type, x, i, case_uniform(-1, 1));
            device_put(type, y, i, case_uniform(-1, 1));
            want[i] = fmaf((float)device_get(type, x, i), by, (float)device_get(type, y, i) * before);
        }
        const xph_axpby_args args = {
            .type = type, .count = COUNT, .x = x, .y = y, .a = (double)by, .b = (double)before};
        assert_true(xph_cuda_axpby->accepts(&args));
        assert_int_equal(xph_cuda_axpby->launch(&args, NULL), 0);
        for (int i = 0; i < COUNT; i++)
            assert_true(device_get(type, y, i) == device_rounded(type, (double)want[i]));
        emu_free(x);
        emu_free(y);
    }
}

/* More bits than a float has. */
static double *doubles(int64_t count)
{
    double *x = emu_alloc((size_t)count * sizeof *x, sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = case_uniform(-1, 1) / 3.0;
    return x;
}

static void axpby_wide(int64_t count, bool with_from)
{
    const double by = 0.7, before = -1.3;
    double *x = doubles(count), *y = doubles(count), *from = with_from ? doubles(count) : NULL;
    double *want = case_zeros(count);
    for (int64_t i = 0; i < count; i++) want[i] = fma(x[i], by, (from ? from : y)[i] * before);
    const xph_axpby_args args = {XPH_F64, count, x, y, by, before, from};
    device_do(xph_cuda_axpby, &args);
    for (int64_t i = 0; i < count; i++) assert_true(y[i] == want[i]);
    emu_free(x);
    emu_free(y);
    if (from) emu_free(from);
    case_release();
}

/* In double: the bits of a plain loop under every schedule. */
static void axpby_of_doubles(void **state)
{
    static const int64_t counts[] = {0, 1, 37, 1025, 4001};
    case_seed(4);
    for (int i = 0; i < 10 * EMU_SCHEDULES; i++) {
        emu_schedule(i / 10);
        axpby_wide(counts[i % 10 / 2], i % 2);
    }
    emu_schedule(EMU_FORWARD);
    assert_int_equal(emu_allocated(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(adam),
                                       cmocka_unit_test(axpby),
                                       cmocka_unit_test(axpby_of_rows),
                                       cmocka_unit_test(axpby_of_doubles),
                                       cmocka_unit_test(norm2),
                                       cmocka_unit_test(norm2_names_the_first_bad),
                                       cmocka_unit_test(casts_are_exact_back_and_nearest_there)};
    return cmocka_run_group_tests_name("cuda_arena", tests, NULL, NULL);
}
