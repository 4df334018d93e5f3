/* The trunk of the action heads: logits by the recurrence in double, with and without e, and all gradients
 * against differences. */
#include "kernel_case.h"

#include <math.h>

typedef struct shape {
    int64_t rows, width;
    int first, heads; /* which of the heads below */
    bool chained;
    int64_t pad;
} shape;

enum { HEADS = 5 };
static const int32_t kinds[HEADS] = {EXPHIL_BERNOULLI, EXPHIL_CATEGORICAL, EXPHIL_CATEGORICAL,
                                     EXPHIL_BERNOULLI, EXPHIL_CATEGORICAL};
static const int32_t counts[HEADS] = {8, 17, 2, 1, 33};

static const shape shapes[] = {{0, 4, 0, 5, true, 0},   {1, 1, 3, 1, false, 0},  {1, 256, 0, 5, true, 0},
                               {9, 300, 0, 5, true, 3}, {5, 37, 1, 3, false, 1}, {70, 64, 0, 2, true, 0},
                               {3, 513, 2, 3, true, 0}, {2, 31, 0, 5, true, 7}};

typedef struct heads {
    shape s;
    int64_t logits;
    xph_head head[HEADS];
    double *z, *v, *bias, *base, *e, *dy;
    int32_t *actions;
    double *y, *dz, *dv, *dbias, *de; /* results */
} heads;

static heads heads_make(const shape *s)
{
    heads a = {.s = *s};
    for (int h = 0; h < s->heads; h++) {
        a.head[h] = (xph_head){kinds[s->first + h], counts[s->first + h], a.logits};
        a.logits += a.head[h].count;
    }
    a.z = case_random(s->rows * s->width, -2, 2);
    a.v = case_random(a.logits * s->width, -1, 1);
    a.bias = case_random(a.logits, -1, 1);
    if (s->chained) a.e = case_random(a.logits * s->width, -1, 1);
    if (s->rows != 1) a.base = case_random(s->rows * a.logits, -1, 1);
    a.dy = case_random(s->rows * a.logits, -1, 1);
    a.actions = case_alloc((size_t)(s->rows * s->heads) * sizeof(int32_t));
    for (int64_t i = 0; i < s->rows * s->heads; i++) {
        const xph_head *h = &a.head[i % s->heads];
        a.actions[i] = (int32_t)case_below(h->kind == EXPHIL_BERNOULLI ? (int64_t)1 << h->count : h->count);
    }
    return a;
}

static xph_heads_args heads_args(const heads *a, xph_type type)
{
    int64_t rows = a->s.rows, width = a->s.width;
    xph_heads_args args = {.type = type,
                           .rows = rows,
                           .width = width,
                           .heads = a->s.heads,
                           .logits = a->logits,
                           .head = a->head,
                           .ldz = width + a->s.pad,
                           .lda = a->s.heads,
                           .ldy = a->logits + a->s.pad};
    args.z = case_give(type, a->z, rows, width, args.ldz);
    args.v = case_give(type, a->v, a->logits, width, width);
    args.bias = case_give(type, a->bias, 1, a->logits, a->logits);
    args.e = case_give(type, a->e, a->logits, width, width);
    args.ldbase = a->logits + 2 * a->s.pad;
    args.base = case_give(type, a->base, rows, a->logits, args.ldbase);
    args.actions = a->e ? a->actions : NULL;
    args.y = case_give(type, case_zeros(rows * a->logits), rows, a->logits, args.ldy);
    return args;
}

static void heads_run(heads *a, const xph_kernel_set *set, int threads)
{
    xph_heads_args args = heads_args(a, set->type);
    case_run(set->op[XPH_OP_HEADS], &args, threads);
    a->y = case_take(set->type, args.y, a->s.rows, a->logits, args.ldy);
    case_padding_intact(set->type, args.y, a->s.rows, a->logits, args.ldy);
}

static void grad_run(heads *a, const xph_kernel_set *set, int threads)
{
    const xph_candidate *c = set->op[XPH_OP_HEADS_GRAD];
    xph_type type = set->type;
    int64_t width = a->s.width, weights = a->logits * width;
    double *half = case_zeros(weights + a->logits);
    for (int64_t i = 0; i < weights + a->logits; i++) half[i] = 0.5;
    xph_heads_grad_args args = {.fwd = heads_args(a, type), .lddy = a->logits + 1, .lddz = width + a->s.pad};
    args.dy = case_give(type, a->dy, a->s.rows, a->logits, args.lddy);
    args.dz = case_give(type, case_zeros(a->s.rows * width), a->s.rows, width, args.lddz);
    args.dv = case_give(type, half, a->logits, width, width);
    args.dbias = case_give(type, half, 1, a->logits, a->logits);
    if (a->e) args.de = case_give(type, half, a->logits, width, width);
    args.scratch = case_scratch(c, &args);
    case_run(c, &args, threads);
    a->dz = case_take(type, args.dz, a->s.rows, width, args.lddz);
    a->dv = case_take(type, args.dv, a->logits, width, width);
    a->dbias = case_take(type, args.dbias, 1, a->logits, a->logits);
    a->de = a->e ? case_take(type, args.de, a->logits, width, width) : case_zeros(weights);
    for (int64_t i = 0; i < weights; i++) a->dv[i] -= 0.5;
    for (int64_t i = 0; i < a->logits; i++) a->dbias[i] -= 0.5;
    for (int64_t i = 0; i < weights && a->e; i++) a->de[i] -= 0.5;
    case_padding_intact(type, args.dz, a->s.rows, width, args.lddz);
}

/* ---- reference ---- */

static bool taken(const xph_head *head, int32_t action, int32_t i)
{
    return head->kind == EXPHIL_BERNOULLI ? action >> i & 1 : action == i;
}

static void reference(heads *a)
{
    int64_t width = a->s.width;
    double *s = case_zeros(width);
    a->y = case_zeros(a->s.rows * a->logits);
    for (int64_t row = 0; row < a->s.rows; row++) {
        memcpy(s, a->z + row * width, (size_t)width * sizeof *s);
        for (int h = 0; h < a->s.heads; h++) {
            const xph_head *head = &a->head[h];
            for (int64_t l = head->first; l < head->first + head->count; l++) {
                double *y = &a->y[row * a->logits + l];
                *y = a->bias[l] + (a->base ? a->base[row * a->logits + l] : 0);
                for (int64_t k = 0; k < width; k++) *y += a->v[l * width + k] * s[k] / (1 + exp(-s[k]));
            }
            for (int32_t i = 0; i < head->count && a->e; i++)
                for (int64_t k = 0; k < width && taken(head, a->actions[row * a->s.heads + h], i); k++)
                    s[k] += a->e[(head->first + i) * width + k];
        }
    }
}

static void logits_are_the_recurrence(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        case_guard_front(i % 2);
        heads a = heads_make(&shapes[i]), expected = a;
        reference(&expected);
        EACH_SET(set) {
            heads_run(&a, set, 1);
            case_close("y", a.y, expected.y, a.s.rows * a.logits, set->type == XPH_F64 ? 1e-13 : 5e-6);
        }
        case_release();
    }
}

static void bits_do_not_depend_on_set_threads_or_rows(void **state)
{
    const xph_kernel_set *sets[CASE_SETS];
    int count = case_sets(sets);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        heads a = heads_make(&shapes[i]), first = a;
        int64_t weights = a.logits * a.s.width;
        heads_run(&first, &xph_kernels_f32_ref, 1);
        grad_run(&first, &xph_kernels_f32_ref, 1);
        for (int s = 1; s < count; s++) {
            int threads = s == 1 ? 4 : s;
            heads_run(&a, sets[s], threads);
            grad_run(&a, sets[s], threads);
            case_same("y", a.y, first.y, a.s.rows * a.logits);
            case_same("dz", a.dz, first.dz, a.s.rows * a.s.width);
            case_same("dv", a.dv, first.dv, weights);
            case_same("dbias", a.dbias, first.dbias, a.logits);
            case_same("de", a.de, first.de, weights);
            if (!a.s.rows) continue;
            heads last = a;
            last.s.rows = 1;
            last.z = a.z + (a.s.rows - 1) * a.s.width;
            if (a.base) last.base = a.base + (a.s.rows - 1) * a.logits;
            last.actions = a.actions + (a.s.rows - 1) * a.s.heads;
            heads_run(&last, sets[s], 1);
            case_same("row alone", last.y, first.y + (a.s.rows - 1) * a.logits, a.logits);
        }
        case_release();
    }
}

static double objective(void *context)
{
    heads *a = context;
    void *mark = case_mark();
    heads_run(a, &xph_kernels_f64_ref, 1);
    double sum = case_dot(a->y, a->dy, a->s.rows * a->logits);
    case_release_to(mark);
    return sum;
}

static void gradient_is_the_derivative(void **state)
{
    static const shape grad_shapes[] = {
        {1, 1, 3, 1, false, 0}, {4, 3, 0, 5, true, 0}, {3, 35, 0, 4, true, 1}, {5, 7, 1, 3, false, 2}};
    for (size_t i = 0; i < sizeof grad_shapes / sizeof *grad_shapes; i++) {
        case_seed(i + 7);
        heads a = heads_make(&grad_shapes[i]);
        grad_run(&a, &xph_kernels_f64_ref, 1);
        case_gradient("dz", objective, &a, a.z, a.dz, a.s.rows * a.s.width, 1e-6);
        case_gradient("dv", objective, &a, a.v, a.dv, a.logits * a.s.width, 1e-6);
        case_gradient("dbias", objective, &a, a.bias, a.dbias, a.logits, 1e-6);
        if (a.e) case_gradient("de", objective, &a, a.e, a.de, a.logits * a.s.width, 1e-6);
        case_release();
    }
}

static void gradient_in_single_is_that_in_double(void **state)
{
    const xph_kernel_set *set = xph_kernels_pick(XPH_F32, xph_cpu_detect());
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        heads a = heads_make(&shapes[i]), exact = a;
        grad_run(&exact, &xph_kernels_f64_ref, 1);
        grad_run(&a, set, 2);
        case_close("dz", a.dz, exact.dz, a.s.rows * a.s.width, 1e-5);
        case_close("dv", a.dv, exact.dv, a.logits * a.s.width, 1e-5);
        case_close("dbias", a.dbias, exact.dbias, a.logits, 1e-5);
        case_close("de", a.de, exact.de, a.logits * a.s.width, 1e-5);
        case_release();
    }
}

/* A bad number in any input reaches what it goes into, on both ways, and no other row or logit. */
static void bad_numbers_come_out(void **state)
{
    static const shape s = {11, 70, 0, 4, true, 1};
    const double bad[] = {NAN, INFINITY, -INFINITY};
    const xph_kernel_set *sets[CASE_SETS];
    int count = case_sets(sets);
    for (int i = 0; i < count * 3; i++) {
        case_seed(5);
        heads a = heads_make(&s);
        a.z[4 * s.width + 69] = bad[i % 3];
        a.base[6 * a.logits + 3] = bad[i % 3];
        a.dy[2 * a.logits + 20] = bad[i % 3];
        heads_run(&a, sets[i / 3], 1);
        grad_run(&a, sets[i / 3], 1);
        for (int64_t k = 0; k < s.rows * a.logits; k++)
            assert_int_equal(!isfinite(a.y[k]), k / a.logits == 4 || k == 6 * a.logits + 3);
        for (int64_t k = 0; k < s.rows * s.width; k++)
            assert_int_equal(!isfinite(a.dz[k]), k / s.width == 2 || k == 4 * s.width + 69);
        for (int64_t k = 0; k < s.width; k++) assert_true(!isfinite(a.dv[20 * s.width + k]));
        assert_true(!isfinite(a.dbias[20]));
        case_release();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_the_recurrence),
        cmocka_unit_test(bits_do_not_depend_on_set_threads_or_rows),
        cmocka_unit_test(gradient_is_the_derivative),
        cmocka_unit_test(gradient_in_single_is_that_in_double),
        cmocka_unit_test(bad_numbers_come_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
