/* Matrix products: every candidate against sums in double, packed and not, on odd shapes; gradients against
 * differences; a row alone and in a batch. */
#include "kernel_test.h"

#include <math.h>

typedef struct shape {
    int64_t rows, in, out, pad;
    bool packed, bias, residual;
} shape;

static const shape shapes[] = {
    {1, 1, 1, 0, true, true, true},
    {1, 1, 1, 0, false, false, false},
    {0, 5, 3, 0, true, true, false},
    {3, 0, 4, 1, true, true, true},
    {5, 7, 0, 1, true, false, false},
    {2, 3, 5, 2, true, false, true},
    {7, 17, 31, 3, true, true, true},
    {7, 17, 31, 3, false, true, true},
    {1, 64, 129, 0, true, true, false},
    {1, 33, 64, 1, false, true, false},
    {49, 65, 130, 0, true, true, true},
    {97, 70, 67, 5, false, true, true},
    {13, 130, 16, 0, true, false, false},
    {300, 13, 21, 0, true, true, false},
    {6, 257, 80, 1, false, true, true},
    {8, 15, 47, 0, true, true, false},
    {48, 128, 64, 0, true, false, false},
    {100, 3, 2, 1, true, true, false},
    /* cut by rows or by panels, one row and two panels, groups of panels larger than a cache */
    {192, 9, 200, 0, true, true, true},
    {193, 20, 190, 3, true, true, true},
    {241, 20, 128, 0, false, true, true},
    {1, 70, 128, 0, true, true, true},
    {1, 70, 191, 0, true, false, true},
    {1, 9, 323, 1, true, true, false},
    {197, 1300, 150, 1, true, true, true},
};

typedef struct layer {
    shape s;
    double *x, *w, *bias, *residual, *y, *dy;
} layer;

static layer layer_make(const shape *s)
{
    layer l = {.s = *s};
    l.x = case_random(s->rows * s->in, -1, 1);
    l.w = case_random(s->out * s->in, -1, 1);
    l.bias = s->bias ? case_random(s->out, -1, 1) : NULL;
    l.residual = s->residual ? case_random(s->rows * s->out, -2, 2) : NULL;
    l.y = case_zeros(s->rows * s->out);
    l.dy = case_random(s->rows * s->out, -1, 1);
    return l;
}

static void layer_forward(layer *l)
{
    const shape *s = &l->s;
    for (int64_t m = 0; m < s->rows; m++) {
        for (int64_t n = 0; n < s->out; n++) {
            double y = case_dot(l->x + m * s->in, l->w + n * s->in, s->in);
            if (l->bias) y += l->bias[n];
            if (l->residual) y += l->residual[m * s->out + n];
            l->y[m * s->out + n] = y;
        }
    }
}

/* Packs w where the shape asks for it, else takes packed away; in place when there is a residual. */
static void prepare(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_linear_args *args = given;
    const layer *l = c->context;
    xph_linear_pack_args pack = {set->type, 0, args->in, args->out, args->w, NULL, NULL};
    pack.packed = case_alloc(xph_kernels_packed_bytes(XPH_OP_LINEAR_PACK, &pack));
    case_run(xph_kernels_choose(set, XPH_OP_LINEAR_PACK, &pack), &pack, 1);
    args->packed = l->s.packed ? pack.packed : NULL;
    if (l->s.packed) args->w = NULL;
    if (l->residual) {
        args->residual = args->y;
        args->ldr = args->ldy;
    }
}

/* Each time the other way round. */
static kt_case forward_case(const layer *l, kt_tensor tensors[KT_MOST], xph_linear_args *args)
{
    static int32_t back;
    const shape *s = &l->s;
    const kt_tensor list[] = {
        KT_FIELD(xph_linear_args, x, ldx, s->rows, s->in, KT_IN, l->x, NULL),
        KT_FLAT(xph_linear_args, w, s->out, s->in, KT_IN, l->w, NULL),
        KT_FLAT(xph_linear_args, bias, 1, s->out, KT_IN, l->bias, NULL),
        KT_FIELD(xph_linear_args, y, ldy, s->rows, s->out, KT_ADD, l->residual, l->y),
    };
    memcpy(tensors, list, sizeof list);
    *args = (xph_linear_args){.rows = s->rows, .in = s->in, .out = s->out, .back = back = !back};
    return (kt_case){"linear", XPH_OP_LINEAR, args,  sizeof *args, KT_DENSE, tensors,
                     4,        s->pad,        1e-13, 3e-6,         prepare,  l};
}

static void forward(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        kt_tensor tensors[KT_MOST];
        xph_linear_args args;
        case_seed(i);
        layer l = layer_make(&shapes[i]);
        layer_forward(&l);
        kt_case c = forward_case(&l, tensors, &args);
        kt_check(&c);
        case_release();
    }
}

/* Packed and not, alone and in a batch: the same bits. */
static void rows_alone(void **state)
{
    const shape s = {23, 70, 83, 0, true, true, false};
    const xph_kernel_set *sets[8];
    int count = case_sets(sets);
    case_seed(77);
    layer all = layer_make(&s);
    for (int k = 0; k < count; k++) {
        double *together[KT_MOST], *result[KT_MOST];
        kt_tensor tensors[KT_MOST];
        xph_linear_args args;
        kt_case c = forward_case(&all, tensors, &args);
        kt_run(&c, sets[k], NULL, 1, together);
        all.s.packed = false;
        kt_run(&c, sets[k], NULL, 2, result);
        all.s.packed = true;
        case_same("not packed", result[3], together[3], s.rows * s.out);
        for (int64_t m = 0; m < s.rows; m++) {
            layer one = all;
            one.s.rows = 1;
            one.x = all.x + m * s.in;
            c = forward_case(&one, tensors, &args);
            kt_run(&c, sets[k], NULL, 1, result);
            case_same("row alone", result[3], together[3] + m * s.out, s.out);
        }
    }
    case_release();
}

static double objective(void *context)
{
    layer *l = context;
    layer_forward(l);
    return case_dot(l->y, l->dy, l->s.rows * l->s.out);
}

static void gradient_shape(const shape *s, bool dx_add, bool dx_wanted, bool dw_wanted)
{
    layer l = layer_make(s);
    int64_t rows = s->rows, in = s->in, out = s->out;
    double *before_w = case_random(out * in, -1, 1), *before_b = case_random(out, -1, 1);
    double *before_x = dx_add ? case_random(rows * in, -1, 1) : NULL;
    if (!l.bias) l.bias = case_zeros(out);
    double *want_x = kt_differences(objective, &l, l.x, rows * in, before_x);
    double *want_w = kt_differences(objective, &l, l.w, out * in, before_w);
    double *want_b = kt_differences(objective, &l, l.bias, out, before_b);
    kt_tensor tensors[] = {
        KT_FIELD(xph_linear_grad_args, x, ldx, rows, in, KT_IN, l.x, NULL),
        KT_FLAT(xph_linear_grad_args, w, out, in, KT_IN, l.w, NULL),
        KT_FIELD(xph_linear_grad_args, dy, lddy, rows, out, KT_IN, l.dy, NULL),
        KT_FIELD(xph_linear_grad_args, dx, lddx, rows, in, dx_wanted ? KT_ADD : KT_IN, before_x, want_x),
        KT_FLAT(xph_linear_grad_args, dw, out, in, dw_wanted ? KT_ADD : KT_IN, dw_wanted ? before_w : NULL,
                want_w),
        KT_FLAT(xph_linear_grad_args, dbias, 1, out, dw_wanted ? KT_ADD : KT_IN, dw_wanted ? before_b : NULL,
                want_b),
    };
    xph_linear_grad_args args = {.rows = rows, .in = in, .out = out, .dx_add = dx_add};
    kt_case c = {"linear_grad",
                 XPH_OP_LINEAR_GRAD,
                 &args,
                 sizeof args,
                 offsetof(xph_linear_grad_args, scratch),
                 tensors,
                 6,
                 s->pad,
                 1e-6,
                 3e-5,
                 NULL,
                 NULL};
    kt_check(&c);
    case_release();
}

static void gradient(void **state)
{
    const shape some[] = {{1, 1, 1, 0, false, true, false},    {0, 3, 2, 0, false, true, false},
                          {3, 0, 2, 0, false, true, false},    {3, 2, 0, 0, false, true, false},
                          {5, 17, 33, 3, false, true, false},  {51, 7, 11, 0, false, true, false},
                          {2, 70, 19, 1, false, false, false}, {300, 2, 3, 1, false, true, false}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        case_seed(100 + i);
        gradient_shape(&some[i], i % 2, true, true);
    }
    gradient_shape(&some[4], false, false, true);
    gradient_shape(&some[4], true, true, false);
}

/* Larger than every block that a gradient is cut into, against sums in double. */
static void large_gradient_shape(const shape *s)
{
    layer l = layer_make(s);
    int64_t rows = s->rows, in = s->in, out = s->out;
    double *before_w = case_random(out * in, -1, 1), *before_b = case_random(out, -1, 1);
    double *before_x = case_random(rows * in, -1, 1);
    double *want_x = kt_copy(before_x, rows * in), *want_w = kt_copy(before_w, out * in);
    double *want_b = kt_copy(before_b, out);
    for (int64_t m = 0; m < rows; m++) {
        for (int64_t n = 0; n < out; n++) {
            double dy = l.dy[m * out + n];
            want_b[n] += dy;
            for (int64_t k = 0; k < in; k++) want_x[m * in + k] += dy * l.w[n * in + k];
            for (int64_t k = 0; k < in; k++) want_w[n * in + k] += dy * l.x[m * in + k];
        }
    }
    kt_tensor tensors[] = {
        KT_FIELD(xph_linear_grad_args, x, ldx, rows, in, KT_IN, l.x, NULL),
        KT_FLAT(xph_linear_grad_args, w, out, in, KT_IN, l.w, NULL),
        KT_FIELD(xph_linear_grad_args, dy, lddy, rows, out, KT_IN, l.dy, NULL),
        KT_FIELD(xph_linear_grad_args, dx, lddx, rows, in, KT_ADD, before_x, want_x),
        KT_FLAT(xph_linear_grad_args, dw, out, in, KT_ADD, before_w, want_w),
        KT_FLAT(xph_linear_grad_args, dbias, 1, out, KT_ADD, before_b, want_b),
    };
    xph_linear_grad_args args = {.rows = rows, .in = in, .out = out, .dx_add = 1};
    kt_case c = {"linear_grad",
                 XPH_OP_LINEAR_GRAD,
                 &args,
                 sizeof args,
                 offsetof(xph_linear_grad_args, scratch),
                 tensors,
                 6,
                 s->pad,
                 1e-13,
                 1e-5,
                 NULL,
                 NULL};
    kt_check(&c);
    case_release();
}

static void large_gradient(void **state)
{
    const shape some[] = {
        {300, 70, 331, 0, false, true, false},
        {129, 530, 291, 0, false, true, false},
        {261, 140, 13, 2, false, true, false},
        {128, 64, 576, 0, false, true, false},
        {2, 1090, 2330, 0, false, true, false}}; /* more parts of dw than slots of scratch */
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        case_seed(200 + i);
        large_gradient_shape(&some[i]);
    }
}

/* A NaN or an infinity in any slot of x and w is seen in its row or column, and nowhere else. */
static void bad_forward(const shape *s)
{
    const double bad[] = {NAN, INFINITY, -INFINITY};
    const xph_kernel_set *sets[8];
    int count = case_sets(sets);
    layer l = layer_make(s);
    for (int i = 0; i < 6; i++) {
        double *at = i < 3 ? &l.x[case_below(s->rows * s->in)] : &l.w[case_below(s->out * s->in)], kept = *at;
        *at = bad[i % 3];
        for (int k = 0; k < count; k++) {
            double *result[KT_MOST];
            kt_tensor tensors[KT_MOST];
            xph_linear_args args;
            kt_case c = forward_case(&l, tensors, &args);
            kt_run(&c, sets[k], NULL, 1, result);
            int64_t row = i < 3 ? (at - l.x) / s->in : -1, column = i < 3 ? -1 : (at - l.w) / s->in;
            for (int64_t m = 0; m < s->rows; m++)
                for (int64_t n = 0; n < s->out; n++)
                    assert_int_equal(isfinite(result[3][m * s->out + n]) == 0, m == row || n == column);
        }
        *at = kept;
    }
    case_release();
}

static void bad_numbers(void **state)
{
    const shape some[] = {{9, 35, 37, 0, true, false, false},
                          {1, 21, 130, 0, true, false, false},
                          {5, 66, 70, 0, false, true, true},
                          {200, 10, 66, 0, true, false, false}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        case_seed(5 + i);
        bad_forward(&some[i]);
    }
}

/* The same of dy and x in the gradients: tensors that share their row or column, and no others. */
static void bad_in_gradient(void **state)
{
    const int64_t rows = 133, in = 70, out = 20, row = 130, input = 65, output = 13;
    const xph_kernel_set *sets[8];
    int count = case_sets(sets);
    case_seed(9);
    for (int i = 0; i < 2 * count; i++) {
        bool of_x = i % 2;
        double *x = case_random(rows * in, -1, 1), *dy = case_random(rows * out, -1, 1), *result[KT_MOST];
        if (of_x)
            x[row * in + input] = NAN;
        else
            dy[row * out + output] = INFINITY;
        kt_tensor tensors[] = {
            KT_FIELD(xph_linear_grad_args, x, ldx, rows, in, KT_IN, x, NULL),
            KT_FLAT(xph_linear_grad_args, w, out, in, KT_IN, case_random(out * in, -1, 1), NULL),
            KT_FIELD(xph_linear_grad_args, dy, lddy, rows, out, KT_IN, dy, NULL),
            KT_FIELD(xph_linear_grad_args, dx, lddx, rows, in, KT_OUT, NULL, NULL),
            KT_FLAT(xph_linear_grad_args, dw, out, in, KT_ADD, case_zeros(out * in), NULL),
            KT_FLAT(xph_linear_grad_args, dbias, 1, out, KT_ADD, case_zeros(out), NULL),
        };
        xph_linear_grad_args args = {.rows = rows, .in = in, .out = out};
        kt_case c = {"linear_grad",
                     XPH_OP_LINEAR_GRAD,
                     &args,
                     sizeof args,
                     offsetof(xph_linear_grad_args, scratch),
                     tensors,
                     6,
                     0,
                     0,
                     0,
                     NULL,
                     NULL};
        kt_run(&c, sets[i / 2], NULL, 1, result);
        for (int64_t m = 0; m < rows; m++)
            for (int64_t k = 0; k < in; k++)
                assert_int_equal(isfinite(result[3][m * in + k]) == 0, !of_x && m == row);
        for (int64_t n = 0; n < out; n++)
            for (int64_t k = 0; k < in; k++)
                assert_int_equal(isfinite(result[4][n * in + k]) == 0, of_x ? k == input : n == output);
        for (int64_t n = 0; n < out; n++) assert_int_equal(isfinite(result[5][n]) == 0, !of_x && n == output);
    }
    case_release();
}

/* Numbers below the normal range are multiplied and added like all others: here every sum is exact. */
static void denormals(void **state)
{
    const shape some[] = {{1, 40, 130, 0, true, false, false},
                          {7, 33, 70, 0, true, false, false},
                          {200, 9, 20, 0, true, false, false},
                          {7, 70, 20, 0, false, false, false}};
    const xph_kernel_set *sets[8];
    int count = case_sets(sets);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        const shape *s = &some[i];
        case_seed(300 + i);
        layer l = layer_make(s);
        for (int64_t k = 0; k < s->rows * s->in; k++) l.x[k] = ldexp((double)case_below(2001) - 1000, -149);
        for (int64_t k = 0; k < s->out * s->in; k++) l.w[k] = (double)case_below(9) - 4;
        layer_forward(&l);
        for (int k = 0; k < count; k++) {
            double *result[KT_MOST];
            kt_tensor tensors[KT_MOST];
            xph_linear_args args;
            kt_case c = forward_case(&l, tensors, &args);
            kt_run(&c, sets[k], NULL, 1, result);
            case_same("denormal", result[3], l.y, s->rows * s->out);
        }
        case_release();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward),     cmocka_unit_test(rows_alone),
                                       cmocka_unit_test(gradient),    cmocka_unit_test(large_gradient),
                                       cmocka_unit_test(bad_numbers), cmocka_unit_test(bad_in_gradient),
                                       cmocka_unit_test(denormals)};
    return cmocka_run_group_tests_name("kernel_linear", tests, NULL, NULL);
}
