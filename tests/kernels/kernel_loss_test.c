/* The loss of the action heads: the formula in double, its gradient against differences, extreme logits,
 * masks, and where the loss has its optimum. */
#include "kernel_case.h"

#include <math.h>

enum { HEADS = 5, LOGITS = 8 + 17 + 2 + 1 + 100 };
static const xph_head heads[HEADS] = {{EXPHIL_BERNOULLI, 8, 0},
                                      {EXPHIL_CATEGORICAL, 17, 8},
                                      {EXPHIL_CATEGORICAL, 2, 25},
                                      {EXPHIL_BERNOULLI, 1, 27},
                                      {EXPHIL_CATEGORICAL, 100, 28}};
static const float positive[8] = {1, 2, 0.5f, 30, 1, 1.25f, 4, 1};

/* Plain, everything on, focal below one with much smoothing, and one term each. */
static const xph_head_loss losses[][HEADS] = {
    {{1, 0, 0, NULL}, {1, 0, 0, NULL}, {1, 0, 0, NULL}, {1, 0, 0, NULL}, {1, 0, 0, NULL}},
    {{2, 0, 3, positive},
     {0.5, 0.125, 2, NULL},
     {1, 0, 1, NULL},
     {0, 0, 0, positive},
     {1.5, 0.25, 0.5, NULL}},
    {{1, 0, 0.5, NULL}, {1, 0.5, 0.25, NULL}, {1, 0.125, 0, NULL}, {1, 0, 1, NULL}, {1, 0, 4, NULL}},
};

typedef struct loss {
    int64_t rows, pad;
    const xph_head_loss *how;
    double scale, *x;
    int32_t *actions;
    float *mask;             /* NULL: none */
    double *dx, sums[HEADS]; /* results */
} loss;

static loss loss_make(int64_t rows, const xph_head_loss *how, bool masked, double reach)
{
    loss a = {.rows = rows,
              .pad = rows % 3,
              .how = how,
              .scale = 0.75,
              .x = case_random(rows * LOGITS, -reach, reach)};
    a.actions = case_alloc((size_t)(rows * HEADS) * sizeof(int32_t));
    for (int64_t i = 0; i < rows * HEADS; i++) {
        const xph_head *h = &heads[i % HEADS];
        a.actions[i] = (int32_t)case_below(h->kind == EXPHIL_BERNOULLI ? (int64_t)1 << h->count : h->count);
    }
    if (masked) a.mask = case_alloc((size_t)rows * sizeof(float));
    for (int64_t i = 0; i < rows && masked; i++) a.mask[i] = case_below(3) ? (float)case_uniform(0, 2) : 0.0f;
    return a;
}

static void loss_run(loss *a, const xph_kernel_set *set, int threads, bool gradient)
{
    xph_type type = set->type;
    xph_loss_args args = {.type = type,
                          .rows = a->rows,
                          .heads = HEADS,
                          .logits = LOGITS,
                          .head = heads,
                          .loss = a->how,
                          .ldy = LOGITS + a->pad,
                          .actions = a->actions,
                          .lda = HEADS,
                          .mask = a->mask,
                          .scale = a->scale,
                          .lddy = LOGITS + 2 * a->pad};
    args.y = case_give(type, a->x, a->rows, LOGITS, args.ldy);
    if (gradient) args.dy = case_give(type, case_zeros(a->rows * LOGITS), a->rows, LOGITS, args.lddy);
    args.sums = case_alloc(HEADS * sizeof(double));
    args.rows_loss = case_alloc((size_t)(a->rows * HEADS) * sizeof(double));
    case_run(set->op[XPH_OP_LOSS], &args, threads);
    memcpy(a->sums, args.sums, sizeof a->sums);
    if (gradient) a->dx = case_take(type, args.dy, a->rows, LOGITS, args.lddy);
    if (gradient) case_padding_intact(type, args.dy, a->rows, LOGITS, args.lddy);
}

/* ---- reference ---- */

static double bits_loss(const xph_head *head, const xph_head_loss *how, const double *x, int32_t action)
{
    double total = 0;
    for (int32_t i = 0; i < head->count; i++) {
        bool on = action >> i & 1;
        double p = 1 / (1 + exp(on ? -x[i] : x[i])),
               weight = on && how->positive_weight ? how->positive_weight[i] : 1;
        total += pow(1 - p, how->focal_gamma) * weight * -log(p);
    }
    return total / head->count;
}

static double class_loss(const xph_head *head, const xph_head_loss *how, const double *x, int32_t action)
{
    double total = 0, hit = 0, entropy = 0;
    for (int32_t i = 0; i < head->count; i++) total += exp(x[i]);
    for (int32_t i = 0; i < head->count; i++) {
        double target = (i == action) * (1 - how->smoothing) + how->smoothing / head->count,
               p = exp(x[i]) / total;
        hit += p * target;
        entropy -= target * log(p);
    }
    return pow(1 - hit, how->focal_gamma) * entropy;
}

static void reference(const loss *a, double sums[HEADS])
{
    for (int h = 0; h < HEADS; h++) {
        sums[h] = 0;
        for (int64_t row = 0; row < a->rows; row++) {
            const double *x = a->x + row * LOGITS + heads[h].first;
            int32_t action = a->actions[row * HEADS + h];
            sums[h] += (a->mask ? (double)a->mask[row] : 1.0) *
                       (heads[h].kind == EXPHIL_BERNOULLI ? bits_loss(&heads[h], &a->how[h], x, action)
                                                          : class_loss(&heads[h], &a->how[h], x, action));
        }
    }
}

static void sums_are_the_formula(void **state)
{
    const xph_kernel_set *sets[CASE_SETS];
    int count = case_sets(sets);
    for (int i = 0; i < 24; i++) {
        static const int64_t rows[] = {0, 1, 7, 300};
        case_seed((uint64_t)i);
        loss a = loss_make(rows[i % 4], losses[i / 8], i / 4 % 2, 4);
        double expected[HEADS];
        reference(&a, expected);
        for (int s = 0; s < count; s++) {
            loss_run(&a, sets[s], 1, s % 2);
            for (int h = 0; h < HEADS; h++) case_close("sum", &a.sums[h], &expected[h], 1, s ? 2e-6 : 1e-13);
        }
        case_release();
    }
}

static void bits_do_not_depend_on_set_or_threads(void **state)
{
    const xph_kernel_set *sets[CASE_SETS];
    int count = case_sets(sets);
    for (int i = 0; i < 3; i++) {
        case_seed((uint64_t)i);
        loss a = loss_make(301, losses[i], true, 20), first = a;
        loss_run(&first, &xph_kernels_f32_ref, 1, true);
        for (int s = 1; s < count; s++) {
            loss_run(&a, sets[s], s == 1 ? 4 : s, true);
            case_same("dx", a.dx, first.dx, a.rows * LOGITS);
            case_same("sums", a.sums, first.sums, HEADS);
        }
        case_release();
    }
}

/* ---- gradient ---- */

static double objective(void *context)
{
    loss *a = context;
    void *mark = case_mark();
    double total = 0;
    loss_run(a, &xph_kernels_f64_ref, 1, false);
    for (int h = 0; h < HEADS; h++) total += a->scale * a->how[h].weight * a->sums[h];
    case_release_to(mark);
    return total;
}

static void gradient_is_the_derivative(void **state)
{
    const xph_kernel_set *set = xph_kernels_pick(XPH_F32, xph_cpu_detect());
    for (int i = 0; i < 6; i++) {
        case_seed((uint64_t)i + 30);
        loss a = loss_make(6, losses[i / 2], i % 2, 3), single = a;
        loss_run(&a, &xph_kernels_f64_ref, 1, true);
        case_gradient("dx", objective, &a, a.x, a.dx, a.rows * LOGITS, 1e-6);
        loss_run(&single, set, 1, true);
        case_close("dx in single", single.dx, a.dx, a.rows * LOGITS, 1e-5);
        case_release();
    }
}

/* One row: head h's first logit is x, its other classes are 0, its other bits off for certain. Derivative of
 * the head's loss by x, measured and given. */
static void steep(const xph_kernel_set *set, const xph_head_loss *how, int h, bool on, double x,
                  double *numeric, double *given)
{
    double sums[3];
    loss a = loss_make(1, how, false, 0);
    a.scale = 1;
    a.actions[h] = heads[h].kind == EXPHIL_BERNOULLI ? on : 0;
    for (int32_t k = 1; k < 8; k++) a.x[heads[0].first + k] = -1e4;
    for (int i = 0; i < 3; i++) {
        a.x[heads[h].first] = x + (i - 1) * 1e-5;
        loss_run(&a, i == 1 ? set : &xph_kernels_f64_ref, 1, true);
        sums[i] = a.sums[h];
        if (i == 1) *given = a.dx[heads[h].first];
    }
    *numeric = (sums[2] - sums[0]) / 2e-5 * how[h].weight;
}

/* Nearly certain answers keep a gradient that is right digit by digit; nothing is clamped. */
static void gradient_is_right_far_out(void **state)
{
    static const double places[] = {-90, -40, 40, 90};
    for (int i = 0; i < 3 * 4 * HEADS * 2; i++) {
        int h = i / 12 % HEADS;
        double numeric, given;
        steep(&xph_kernels_f64_ref, losses[i % 3], h, i / 60, places[i / 3 % 4], &numeric, &given);
        if (fabs(given - numeric) > 1e-6 * fabs(numeric) + 1e-300)
            fail_msg("head %d at %g: %.9g, expected %.9g", h, places[i / 3 % 4], given, numeric);
        steep(xph_kernels_pick(XPH_F32, xph_cpu_detect()), losses[i % 3], h, i / 60, places[i / 3 % 4],
              &numeric, &given);
        if (fabs(given - numeric) > 2e-5 * fabs(numeric) + 1e-37)
            fail_msg("in single, head %d at %g: %.9g, expected %.9g", h, places[i / 3 % 4], given, numeric);
        case_release();
    }
}

static void huge_logits_stay_finite(void **state)
{
    EACH_SET(set) {
        for (int i = 0; i < 3; i++) {
            case_seed((uint64_t)i);
            loss a = loss_make(50, losses[i], false, 1e4);
            for (int64_t k = 0; k < 10 * LOGITS; k++) a.x[k] = k % 2 ? 1e4 : -1e4;
            for (int64_t k = 10 * LOGITS; k < 20 * LOGITS; k++) a.x[k] = k % 3 ? -1e4 : 3e38 / 1e30;
            loss_run(&a, set, 1, true);
            for (int h = 0; h < HEADS; h++) assert_true(isfinite(a.sums[h]) && a.sums[h] >= 0);
            for (int64_t k = 0; k < a.rows * LOGITS; k++) assert_true(isfinite(a.dx[k]));
            case_release();
        }
    }
}

/* ---- masks ---- */

static void masked_rows_are_nothing(void **state)
{
    EACH_SET(set) {
        case_seed(4);
        loss a = loss_make(3, losses[1], true, 3), alone;
        a.mask[0] = a.mask[2] = 0.0f;
        a.mask[1] = 1.0f;
        alone = a;
        for (int64_t k = 0; k < LOGITS; k++) a.x[k] = k % 2 ? INFINITY : NAN;
        a.actions[2 * HEADS + 1] = -1;
        loss_run(&a, set, 1, true);
        for (int64_t k = 0; k < LOGITS; k++) assert_true(a.dx[k] == 0.0 && a.dx[2 * LOGITS + k] == 0.0);
        alone.rows = 1;
        alone.mask = NULL;
        alone.x = a.x + LOGITS;
        alone.actions = a.actions + HEADS;
        loss_run(&alone, set, 1, true);
        case_same("the row that counts", a.dx + LOGITS, alone.dx, LOGITS);
        case_same("sums", a.sums, alone.sums, HEADS);
        a.mask[0] = 1.0f;
        for (int64_t k = 0; k < LOGITS; k++) a.x[k] = NAN;
        loss_run(&a, set, 1, true);
        for (int h = 0; h < HEADS; h++) assert_true(isnan(a.sums[h]));
        case_release();
    }
}

/* ---- optimum ---- */

/* Smoothed cross-entropy is least where the probabilities are the smoothed target; with a positive weight w
 * and bits that are on in a part r of the rows, at w r / (w r + 1 - r). There the gradient is zero, and with
 * focal weight 0 exactly the plain loss comes out. */
static void optimum_is_where_it_should_be(void **state)
{
    static const float w[8] = {3, 3, 3, 3, 3, 3, 3, 3};
    static const xph_head_loss how[HEADS] = {
        {1, 0, 0, w}, {1, 0.2, 0, NULL}, {1, 0.1, 0, NULL}, {1, 0, 0, w}, {1, 0.3, 0, NULL}};
    case_seed(1);
    loss a = loss_make(4, how, false, 0);
    double totals[LOGITS] = {0}, p = 3 * 0.25 / (3 * 0.25 + 0.75);
    for (int64_t row = 0; row < 4; row++) {
        for (int h = 0; h < HEADS; h++) {
            bool bits = heads[h].kind == EXPHIL_BERNOULLI;
            a.actions[row * HEADS + h] = bits ? (row == 0 ? -1 : 0) : 1;
            double even = how[h].smoothing / heads[h].count;
            for (int32_t i = 0; i < heads[h].count; i++)
                a.x[row * LOGITS + heads[h].first + i] =
                    bits ? log(p / (1 - p)) : log(even + (i == 1) * (1 - how[h].smoothing)) + 5.0;
        }
    }
    loss_run(&a, &xph_kernels_f64_ref, 1, true);
    for (int64_t k = 0; k < 4 * LOGITS; k++) totals[k % LOGITS] += a.dx[k];
    for (int64_t k = 0; k < LOGITS; k++) assert_true(fabs(totals[k]) < 1e-15);
    case_release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_the_formula),
        cmocka_unit_test(bits_do_not_depend_on_set_or_threads),
        cmocka_unit_test(gradient_is_the_derivative),
        cmocka_unit_test(gradient_is_right_far_out),
        cmocka_unit_test(huge_logits_stay_finite),
        cmocka_unit_test(masked_rows_are_nothing),
        cmocka_unit_test(optimum_is_where_it_should_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
