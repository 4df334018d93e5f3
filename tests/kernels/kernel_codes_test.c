/* Rows of a table that actions take: against sums in double, one number after the other. */
#include "codes_case.h"

static const codes_shape shapes[] = {{0, 5, 4, 0},    {1, 1, 4, 0},   {3, 7, 1, 2},
                                     {5, 16, 2, 0},   {9, 33, 3, 1},  {40, 64, 4, 0},
                                     {300, 19, 4, 3}, {2, 130, 4, 0}, {4, 8, 0, 0}};

static void rows_are_added(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        kt_case c = codes_case(&shapes[i], codes_actions(shapes[i].rows));
        kt_check(&c);
        case_release();
    }
}

static void gradients_are_gathered(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(20 + i);
        kt_case c = codes_gradient_case(&shapes[i], codes_actions(shapes[i].rows));
        kt_check(&c);
        case_release();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_added),
                                       cmocka_unit_test(gradients_are_gathered)};
    return cmocka_run_group_tests_name("kernel_codes", tests, NULL, NULL);
}
