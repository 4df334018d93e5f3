/* The CUDA kernels of the action heads on the emulated GPU: against the CPU's in double, autoregressive and not, rows
 * alone against all. */
#include "heads_bed.h"

static const bed_shape shapes[] = {
    {0, 4, 0, 5, true, true, NULL},    {1, 1, 3, 1, false, false, NULL}, {1, 256, 0, 4, true, true, NULL},
    {9, 300, 0, 2, true, false, NULL}, {5, 37, 1, 3, false, true, NULL}, {70, 64, 0, 2, true, true, NULL},
    {3, 513, 2, 1, true, true, NULL},  {2, 31, 0, 5, true, false, NULL}, {2, 1024, 0, 1, false, true, NULL},
    {35, 33, 1, 5, true, true, NULL},
};
/* So many that a warp has two of 256 numbers or four of 128, of which the last has not all; and several slices. */
static const bed_shape many[] = {{2049, 256, 0, 2, true, true, NULL},
                                 {2050, 128, 0, 3, true, true, NULL},
                                 {2051, 128, 0, 2, false, false, NULL},
                                 {1025, 70, 1, 2, true, false, NULL}};

static const xph_head gapped[] = {{EXPHIL_CATEGORICAL, 5, 0}, {EXPHIL_BERNOULLI, 12, 9}};

static void check(const bed_shape *s, xph_type type, bool gradient)
{
    const bed_layer l = bed_layer_make(s, type);
    const kt_case c = gradient ? bed_gradient(&l) : bed_forward(&l);
    const device_case d = device_case_of(&c, gradient ? xph_cuda_heads_grad : xph_cuda_heads, type);
    device_check(&d);
    case_release();
}

static void forward(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        case_seed(i / DEVICE_TYPES);
        check(&shapes[i / DEVICE_TYPES], device_types[i % DEVICE_TYPES], false);
    }
}

static void rows_alone(void **state)
{
    const bed_shape s = {11, 70, 0, 5, true, true, NULL};
    double *together[KT_MOST], *result[KT_MOST];
    case_seed(3);
    const bed_layer all = bed_layer_make(&s, XPH_F32);
    kt_case c = bed_forward(&all);
    device_case d = device_case_of(&c, xph_cuda_heads, XPH_F32);
    device_run(&d, together);
    for (int64_t m = 0; m < s.rows; m++) {
        bed_layer one = all;
        one.s.rows = 1;
        one.z += m * s.width;
        one.base += m * all.logits;
        one.actions += m * s.heads;
        c = bed_forward(&one);
        device_run(&d, result);
        case_same("row alone", result[BED_Y], together[BED_Y] + m * all.logits, all.logits);
    }
    case_release();
}

static void gradient(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        case_seed(50 + i / DEVICE_TYPES);
        check(&shapes[i / DEVICE_TYPES], device_types[i % DEVICE_TYPES], true);
    }
}

static void many_rows(void **state)
{
    for (size_t i = 0; i < 2 * (sizeof many / sizeof *many); i++) {
        case_seed(90 + i);
        check(&many[i / 2], XPH_F32, i % 2);
    }
}

/* Logits of no head have no gradients. */
static void gaps_are_left_alone(void **state)
{
    const bed_shape s = {20, 40, 0, 2, true, false, gapped};
    double *results[KT_MOST];
    case_seed(99);
    const bed_layer l = bed_layer_make(&s, XPH_F32);
    const kt_case c = bed_gradient(&l);
    const device_case d = device_case_of(&c, xph_cuda_heads_grad, XPH_F32);
    const int64_t first = gapped[0].count, gap = gapped[1].first - first;
    device_run(&d, results);
    case_same("dv", results[BED_DV] + first * s.width, l.dv + first * s.width, gap * s.width);
    case_same("de", results[BED_DE] + first * s.width, l.de + first * s.width, gap * s.width);
    case_same("dbias", results[BED_DBIAS] + first, l.dbias + first, gap);
    assert_false(kt_any_bad(results[BED_DV], l.logits * s.width));
    case_release();
}

static void wide_trunks_are_not_accepted(void **state)
{
    const xph_heads_grad_args args = {.fwd = {.rows = 1, .width = 1025, .heads = 1}};
    for (const xph_cuda_candidate *k = xph_cuda_heads; k->name; k++) assert_false(k->accepts(&args.fwd));
    for (const xph_cuda_candidate *k = xph_cuda_heads_grad; k->name; k++) assert_false(k->accepts(&args));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward),
                                       cmocka_unit_test(rows_alone),
                                       cmocka_unit_test(gradient),
                                       cmocka_unit_test(many_rows),
                                       cmocka_unit_test(gaps_are_left_alone),
                                       cmocka_unit_test(wide_trunks_are_not_accepted)};
    return cmocka_run_group_tests_name("cuda_heads", tests, NULL, NULL);
}
