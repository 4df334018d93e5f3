/* Drawing actions: the trunk as trained, every rule written out, frequencies against probabilities, ties,
 * hysteresis. */
#include "kernel_case.h"

#include <math.h>
#include <stdlib.h>

enum { HEADS = 4, LOGITS = 6 + 17 + 1 + 40, WIDTH = 70 };
static const xph_head heads[HEADS] = {{EXPHIL_BERNOULLI, 6, 0},
                                      {EXPHIL_CATEGORICAL, 17, 6},
                                      {EXPHIL_BERNOULLI, 1, 23},
                                      {EXPHIL_CATEGORICAL, 40, 24}};

typedef struct sample {
    int64_t rows, width;
    bool chained;
    xph_sample_head how[HEADS];
    double *z, *v, *bias, *base, *e;
    float *noise;
    int32_t *previous;
    double *y; /* results */
    int32_t *actions;
} sample;

static sample sample_make(int64_t rows, int64_t width, bool chained)
{
    sample a = {.rows = rows, .width = width, .chained = chained};
    a.z = case_random(rows * width, -2, 2);
    a.v = case_random(LOGITS * width, -0.5, 0.5);
    a.bias = case_random(LOGITS, -1, 1);
    if (chained) a.e = case_random(LOGITS * width, -1, 1);
    if (chained) a.base = case_random(rows * LOGITS, -1, 1);
    a.noise = case_alloc((size_t)(rows * LOGITS) * sizeof(float));
    a.previous = case_alloc((size_t)(rows * HEADS) * sizeof(int32_t));
    for (int64_t i = 0; i < rows * LOGITS; i++)
        a.noise[i] = (float)((double)(case_below(1 << 24)) + 0.5) / 16777216.0f;
    for (int64_t i = 0; i < rows * HEADS; i++) a.previous[i] = (int32_t)case_below(64);
    for (int h = 0; h < HEADS; h++) a.how[h] = (xph_sample_head){1, 0, 0, 0};
    return a;
}

static xph_heads_args heads_args(const sample *a, xph_type type)
{
    xph_heads_args args = {.type = type,
                           .rows = a->rows,
                           .width = a->width,
                           .heads = HEADS,
                           .logits = LOGITS,
                           .head = heads,
                           .ldz = a->width,
                           .lda = HEADS,
                           .ldy = LOGITS};
    args.z = case_give(type, a->z, a->rows, a->width, a->width);
    args.v = case_give(type, a->v, LOGITS, a->width, a->width);
    args.bias = case_give(type, a->bias, 1, LOGITS, LOGITS);
    args.e = case_give(type, a->e, LOGITS, a->width, a->width);
    args.ldbase = LOGITS + 1;
    args.base = case_give(type, a->base, a->rows, LOGITS, args.ldbase);
    args.y = case_alloc((size_t)(a->rows * LOGITS) * case_bytes(type));
    return args;
}

static void sample_run(sample *a, const xph_kernel_set *set, int threads)
{
    const xph_candidate *c = set->op[XPH_OP_SAMPLE];
    xph_sample_args args = {.heads = heads_args(a, set->type),
                            .how = a->how,
                            .noise = a->noise,
                            .ldn = LOGITS,
                            .previous = a->previous,
                            .ldp = HEADS,
                            .lda = HEADS};
    a->actions = args.actions = case_alloc((size_t)(a->rows * HEADS) * sizeof(int32_t));
    args.scratch = case_scratch(c, &args);
    case_run(c, &args, threads);
    a->y = case_take(set->type, args.heads.y, a->rows, LOGITS, LOGITS);
}

/* What the rules say for the logits that came out. */
static int32_t expected_action(const sample *a, int64_t row, int h)
{
    const xph_sample_head *how = &a->how[h];
    const double *y = a->y + row * LOGITS + heads[h].first;
    const float *u = a->noise ? a->noise + row * LOGITS + heads[h].first : NULL;
    double best = -INFINITY, temperature = how->temperature > 0 ? (double)how->temperature : 1;
    int32_t bits = 0, class = 0;
    bool bernoulli = heads[h].kind == EXPHIL_BERNOULLI;
    for (int32_t i = 0; i < heads[h].count; i++) {
        bool was = bernoulli && a->previous && a->previous[row * HEADS + h] >> i & 1;
        double threshold = was ? (double)how->release : (double)how->press;
        double p = 1 / (1 + exp(-y[i])), score = y[i];
        if (threshold == 0) threshold = 0.5;
        if (!how->deterministic) {
            p = 1 / (1 + exp(-y[i] / temperature));
            score = y[i] / temperature - log(-log((double)u[i]));
        }
        if (bernoulli && (how->deterministic ? p > threshold : (double)u[i] < p)) bits |= (int32_t)(1u << i);
        if (score > best) best = score, class = i;
    }
    return bernoulli ? bits : class;
}

static void actions_follow_the_rules(void **state)
{
    const xph_kernel_set *sets[CASE_SETS];
    int count = case_sets(sets), wrong = 0;
    for (int i = 0; i < 8; i++) {
        static const int64_t rows[] = {0, 1, 5, 200};
        case_seed((uint64_t)i);
        case_guard_front(i % 2);
        sample a = sample_make(rows[i % 4], i % 2 ? 300 : WIDTH, i / 4);
        a.how[0] = (xph_sample_head){0.5f, 0.6f, 0.3f, i % 2};
        a.how[1] = (xph_sample_head){0.0f, 0, 0, i % 2};
        a.how[2] = (xph_sample_head){2.0f, 0, 0.25f, i / 2 % 2};
        a.how[3] = (xph_sample_head){1.5f, 0, 0, 0};
        for (int s = 0; s < count; s++) {
            sample_run(&a, sets[s], s + 1);
            for (int64_t k = 0; k < a.rows * HEADS; k++)
                wrong += a.actions[k] != expected_action(&a, k / HEADS, (int)(k % HEADS));
        }
        case_release();
    }
    assert_int_equal(wrong, 0); /* no draw of these lies within rounding of its threshold */
}

/* The logits are those of the heads operation given what was drawn: bit for bit. */
static void logits_are_those_of_the_heads(void **state)
{
    for (int i = 0; i < 4; i++) {
        case_seed((uint64_t)i + 3);
        sample a = sample_make(9, i % 2 ? 517 : WIDTH, i / 2);
        EACH_SET(set) {
            sample_run(&a, set, 1);
            xph_heads_args args = heads_args(&a, set->type);
            args.actions = a.actions;
            case_run(set->op[XPH_OP_HEADS], &args, 1);
            case_same("logits", a.y, case_take(set->type, args.y, a.rows, LOGITS, LOGITS), a.rows * LOGITS);
        }
        case_release();
    }
}

static void bits_do_not_depend_on_set_threads_or_rows(void **state)
{
    const xph_kernel_set *sets[CASE_SETS];
    int count = case_sets(sets);
    case_seed(11);
    sample a = sample_make(500, WIDTH, true), first = a;
    sample_run(&first, &xph_kernels_f32_ref, 1);
    for (int s = 1; s < count; s++) {
        sample_run(&a, sets[s], s == 1 ? 4 : s);
        case_same("logits", a.y, first.y, a.rows * LOGITS);
        assert_memory_equal(a.actions, first.actions, (size_t)(a.rows * HEADS) * sizeof(int32_t));
        sample last = a;
        last.rows = 1;
        last.z = a.z + 499 * WIDTH;
        last.base = a.base + 499 * LOGITS;
        last.noise = a.noise + 499 * LOGITS;
        last.previous = a.previous + 499 * HEADS;
        sample_run(&last, sets[s], 1);
        assert_memory_equal(last.actions, first.actions + 499 * HEADS, HEADS * sizeof(int32_t));
    }
    case_release();
}

/* Many draws of one row: chi-square of the 17 classes (16 degrees of freedom: above 45 once in 7000 runs, and
 * every run is the same) and the rate of each bit, at the temperature given. */
static void frequencies_are_the_probabilities(void **state)
{
    enum { DRAWS = 20000 };
    const xph_kernel_set *set = xph_kernels_pick(XPH_F32, xph_cpu_detect());
    static const float temperatures[] = {1, 0.5f, 2};
    for (int i = 0; i < 3; i++) {
        case_seed((uint64_t)i + 20);
        sample a = sample_make(DRAWS, 3, false);
        for (int64_t k = 3; k < DRAWS * 3; k++) a.z[k] = a.z[k % 3];
        for (int h = 0; h < HEADS; h++) a.how[h].temperature = temperatures[i];
        sample_run(&a, set, 1);
        double total = 0, chi = 0, seen[17] = {0}, on[6] = {0};
        for (int64_t row = 0; row < DRAWS; row++) {
            seen[a.actions[row * HEADS + 1]] += 1;
            for (int k = 0; k < 6; k++) on[k] += a.actions[row * HEADS] >> k & 1;
        }
        for (int k = 0; k < 17; k++) total += exp(a.y[6 + k] / (double)temperatures[i]);
        for (int k = 0; k < 17; k++) {
            double expected = (double)DRAWS * exp(a.y[6 + k] / (double)temperatures[i]) / total;
            chi += (seen[k] - expected) * (seen[k] - expected) / expected;
        }
        assert_true(chi < 45);
        for (int k = 0; k < 6; k++) {
            double p = 1 / (1 + exp(-a.y[k] / (double)temperatures[i]));
            assert_true(fabs(on[k] - (double)DRAWS * p) < 4 * sqrt((double)DRAWS * p * (1 - p)));
        }
        case_release();
    }
}

/* Equal logits: the lowest class; logits of infinity and NaN never lead outside the classes. */
static void ties_and_broken_logits(void **state)
{
    EACH_SET(set) {
        case_seed(9);
        sample a = sample_make(3, 2, false);
        for (int64_t k = 0; k < LOGITS * 2; k++) a.v[k] = 0;
        for (int64_t k = 0; k < LOGITS; k++) a.bias[k] = 1;
        for (int h = 0; h < HEADS; h++) a.how[h].deterministic = 1;
        a.bias[6 + 3] = a.bias[6 + 11] = 4;
        a.noise = NULL;
        sample_run(&a, set, 1);
        assert_int_equal(a.actions[1], 3);
        assert_int_equal(a.actions[3], 0);
        for (int64_t k = 0; k < LOGITS; k++) a.bias[k] = k % 2 ? NAN : -INFINITY;
        sample_run(&a, set, 1);
        for (int h = 0; h < HEADS; h++) assert_int_equal(a.actions[h], 0);
        case_release();
    }
}

/* A bit that is on stays on down to release, one that is off comes on above press. */
static void hysteresis_holds(void **state)
{
    static const double p[6] = {0.2, 0.35, 0.45, 0.55, 0.65, 0.3};
    EACH_SET(set) {
        case_seed(2);
        sample a = sample_make(2, 1, false);
        for (int64_t k = 0; k < LOGITS; k++) a.v[k] = 0;
        for (int k = 0; k < 6; k++) a.bias[k] = (double)(float)log(p[k] / (1 - p[k]));
        for (int h = 0; h < HEADS; h++) a.how[h] = (xph_sample_head){1, 0.6f, 0.3f, 1};
        a.previous[0] = 0;
        a.previous[HEADS] = 63;
        sample_run(&a, set, 1);
        assert_int_equal(a.actions[0], 1 << 4);
        assert_int_equal(a.actions[HEADS] & 31, 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4);
        a.previous = NULL;
        sample_run(&a, set, 1);
        assert_int_equal(a.actions[HEADS], 1 << 4);
        case_release();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_follow_the_rules),
        cmocka_unit_test(logits_are_those_of_the_heads),
        cmocka_unit_test(bits_do_not_depend_on_set_threads_or_rows),
        cmocka_unit_test(frequencies_are_the_probabilities),
        cmocka_unit_test(ties_and_broken_logits),
        cmocka_unit_test(hysteresis_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
