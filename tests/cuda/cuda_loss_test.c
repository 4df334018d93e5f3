/* The CUDA kernel of the loss on the emulated GPU: sums and gradient against the CPU's in double, masks, extreme
 * logits, more heads than a launch takes. */
#include "heads_bed.h"

#include <math.h>
#include <string.h>

enum { HEADS = BED_HEADS, LOGITS = 8 + 17 + 2 + 31 + 100 };

typedef struct loss {
    int64_t rows;
    double *x;
    xph_loss_args args;
    kt_case test;
} loss;

/* Logits that bfloat16 holds: eighths up to +-reach / 8. */
static void loss_make(loss *a, int64_t rows, const xph_head_loss *how, bool masked, int64_t reach)
{
    float *mask = masked ? case_alloc((size_t)rows * sizeof *mask) : NULL;
    a->rows = rows;
    a->x = case_zeros(rows * LOGITS);
    for (int64_t i = 0; i < rows * LOGITS; i++) a->x[i] = (double)(case_below(2 * reach + 1) - reach) / 8;
    for (int64_t i = 0; masked && i < rows; i++) mask[i] = case_below(3) ? (float)case_uniform(0, 2) : 0.0f;
    a->args = (xph_loss_args){.rows = rows,
                              .heads = HEADS,
                              .logits = LOGITS,
                              .head = bed_heads,
                              .loss = how,
                              .actions = bed_actions(bed_heads, HEADS, rows),
                              .lda = HEADS,
                              .mask = mask,
                              .scale = 0.75};
    a->args.sums = case_alloc(HEADS * sizeof(double));
    a->args.rows_loss = case_alloc((size_t)(rows * HEADS) * sizeof(double));
    const kt_tensor tensors[] = {KT_FIELD(xph_loss_args, y, ldy, rows, LOGITS, KT_IN, a->x, NULL),
                                 KT_FIELD(xph_loss_args, dy, lddy, rows, LOGITS, KT_OUT, NULL, NULL)};
    a->test = KT_CASE("loss", XPH_OP_LOSS, a->args, KT_DENSE, tensors, rows % 3);
}

static void check(loss *a, xph_type type)
{
    double *results[KT_MOST], got[HEADS];
    device_case d = device_case_of(&a->test, xph_cuda_loss, type);
    device_check(&d);
    device_run(&d, results);
    memcpy(got, a->args.sums, sizeof got);
    kt_reference(&a->test, results);
    case_close("sums", got, a->args.sums, HEADS, 2e-6);
    a->test.count = 1; /* without the gradient: the same sums */
    device_run(&d, results);
    case_same("sums", a->args.sums, got, HEADS);
}

static void sums_and_gradient(void **state)
{
    static const int64_t rows[] = {0, 1, 7, 64, 203};
    for (size_t i = 0; i < 15 * DEVICE_TYPES; i++) {
        loss a;
        case_seed(i);
        loss_make(&a, rows[i % 5], bed_losses[i / 5 % BED_LOSSES], i % 2, 32);
        check(&a, device_types[i / 15]);
        case_release();
    }
}

/* Logits of +-1e4 give finite numbers; a row without weight counts for nothing, whatever is in it. */
static void extremes(void **state)
{
    for (size_t i = 0; i < 3; i++) {
        double *results[KT_MOST];
        loss a;
        case_seed(40 + i);
        loss_make(&a, 21, bed_losses[i], true, 8);
        for (int64_t k = 0; k < a.rows * LOGITS; k++) a.x[k] *= 1e4;
        ((float *)(uintptr_t)a.args.mask)[4] = 0;
        for (int64_t k = 0; k < LOGITS; k++) a.x[4 * LOGITS + k] = k % 2 ? NAN : INFINITY;
        device_case d = device_case_of(&a.test, xph_cuda_loss, XPH_F32);
        device_run(&d, results);
        assert_false(kt_any_bad(results[1], a.rows * LOGITS));
        assert_false(kt_any_bad(a.args.sums, HEADS));
        for (int64_t k = 0; k < LOGITS; k++) assert_true(results[1][4 * LOGITS + k] == 0);
        case_release();
    }
}

static void too_many_heads_are_not_accepted(void **state)
{
    xph_head many[33];
    xph_head_loss how[33] = {{1, 0, 0, NULL}};
    for (int i = 0; i < 33; i++) many[i] = (xph_head){EXPHIL_BERNOULLI, 31, 31 * i};
    xph_loss_args args = {.heads = 33, .head = many, .loss = how};
    assert_false(xph_cuda_loss->accepts(&args));
    args.heads = 32;
    assert_true(xph_cuda_loss->accepts(&args));
    for (int i = 0; i < 9; i++) how[i].positive_weight = bed_positive;
    assert_false(xph_cuda_loss->accepts(&args));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_and_gradient), cmocka_unit_test(extremes),
                                       cmocka_unit_test(too_many_heads_are_not_accepted)};
    return cmocka_run_group_tests_name("cuda_loss", tests, NULL, NULL);
}
