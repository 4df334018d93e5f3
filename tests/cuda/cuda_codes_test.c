/* The CUDA kernels of rows that actions take, on the emulated GPU: against the CPU's in double, in all types of rows. */
#include "codes_case.h"
#include "device_case.h"

static const codes_shape shapes[] = {{0, 5, 4, 0},  {1, 1, 4, 0},   {3, 7, 1, 2},
                                     {9, 33, 3, 1}, {40, 64, 4, 0}, {70, 130, 4, 3}};

static void rows_and_gradients(void **state)
{
    for (size_t i = 0; i < 2 * DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        const codes_shape *s = &shapes[i / 2 / DEVICE_TYPES];
        case_seed(i);
        int32_t *actions = codes_actions(s->rows);
        const kt_case c = i % 2 ? codes_gradient_case(s, actions) : codes_case(s, actions);
        const device_case d = device_case_of(&c, i % 2 ? xph_cuda_codes_grad : xph_cuda_codes,
                                             device_types[i / 2 % DEVICE_TYPES]);
        device_check(&d);
        case_release();
    }
}

static void too_many_heads_are_not_accepted(void **state)
{
    const xph_codes_grad_args args = {.fwd = {.rows = 1, .heads = 33}};
    assert_false(xph_cuda_codes->accepts(&args.fwd));
    assert_false(xph_cuda_codes_grad->accepts(&args));
}

/* 65535 blocks of 32 columns lie beside each other. */
static void too_wide_rows_are_not_accepted(void **state)
{
    for (int64_t blocks = 65535; blocks <= 65536; blocks++) {
        const xph_codes_grad_args args = {.fwd = {.rows = 1, .heads = 1, .width = 32 * blocks}};
        assert_int_equal(xph_cuda_codes->accepts(&args.fwd), blocks < 65536);
        assert_int_equal(xph_cuda_codes_grad->accepts(&args), blocks < 65536);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_and_gradients),
                                       cmocka_unit_test(too_many_heads_are_not_accepted),
                                       cmocka_unit_test(too_wide_rows_are_not_accepted)};
    return cmocka_run_group_tests_name("cuda_codes", tests, NULL, NULL);
}
