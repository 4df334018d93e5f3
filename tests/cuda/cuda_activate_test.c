/* The CUDA kernels of single-number functions on the emulated GPU: against their formulas in double, also of rows of 16
 * bits, and in place. */
#include "activate_case.h"
#include "device_case.h"

#include <math.h>

static const int64_t counts[] = {0, 1, 33, 1024, 4001};

static void functions_and_gradients(void **state)
{
    for (int32_t i = 0; i < 5 * 2 * ACTIVATE_KINDS; i++) {
        int64_t count = counts[i % 5];
        bool grad = i / 5 % 2;
        case_seed((uint64_t)i);
        double *x = case_random(count, -6, 6), *dy = grad ? case_random(count, -1, 1) : NULL;
        const kt_case c = activate_case(i / 10, x, dy, count);
        device_case d = device_case_of(&c, grad ? xph_cuda_activate_grad : xph_cuda_activate, XPH_F32);
        d.tolerance = 3e-6;
        device_check(&d);
        case_release();
    }
}

/* Rows of 16 bits: computed in float, rounded once. */
static void of_rows(void **state)
{
    enum { COUNT = 999 };
    for (int32_t i = 0; i < DEVICE_TYPES * ACTIVATE_KINDS; i++) {
        xph_type type = device_types[i % DEVICE_TYPES];
        size_t bytes = COUNT * device_bytes(type);
        void *x = emu_alloc(bytes, 4), *y = emu_alloc(bytes, 4), *d = emu_alloc(bytes, 4);
        double dy[COUNT], unit = type == XPH_F32 ? 1e-6 : type == XPH_F16 ? 0x1p-11 : 0x1p-8;
        case_seed(3);
        for (int k = 0; k < COUNT; k++) {
            device_put(type, x, k, case_uniform(-6, 6));
            device_put(type, d, k, case_uniform(-1, 1));
            dy[k] = device_get(type, d, k);
        }
        const xph_activate_args args = {type, i / DEVICE_TYPES, COUNT, activate_low, activate_high, x, y};
        const xph_activate_grad_args grad = {args, d, d};
        device_do(xph_cuda_activate, &args);
        device_do(xph_cuda_activate_grad, &grad);
        for (int k = 0; k < COUNT; k++) {
            double at = device_get(type, x, k), want = activate_of(args.kind, at),
                   slope = dy[k] * activate_slope(args.kind, at);
            assert_true(fabs(device_get(type, y, k) - want) <= 1e-6 + unit * fabs(want));
            assert_true(fabs(device_get(type, d, k) - slope) <= 1e-6 + unit * fabs(slope));
        }
        emu_free(x);
        emu_free(y);
        emu_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(functions_and_gradients), cmocka_unit_test(of_rows)};
    return cmocka_run_group_tests_name("cuda_activate", tests, NULL, NULL);
}
