/* The CUDA kernels of the action heads on the emulated GPU: against the CPU's in double, autoregressive and not, rows
 * alone against all. */
#include "device_case.h"

#include <math.h>
#include <string.h>

typedef struct shape {
    int64_t rows, width, pad;
    int heads;
    bool chained, based; /* each head sees the ones before it; logits start from something */
} shape;

static const shape shapes[] = {{0, 4, 0, 5, true, true},     {1, 1, 3, 1, false, false},
                               {1, 256, 0, 4, true, true},   {9, 300, 0, 2, true, false},
                               {5, 37, 1, 3, false, true},   {70, 64, 0, 2, true, true},
                               {3, 513, 2, 1, true, true},   {2, 31, 0, 5, true, false},
                               {2, 1024, 0, 1, false, true}, {35, 33, 1, 5, true, true}};

enum { MOST = 5 };
static const xph_head heads[MOST] = {{EXPHIL_BERNOULLI, 8, 0},
                                     {EXPHIL_CATEGORICAL, 17, 8},
                                     {EXPHIL_CATEGORICAL, 2, 25},
                                     {EXPHIL_BERNOULLI, 31, 27},
                                     {EXPHIL_CATEGORICAL, 5, 58}};

typedef struct layer {
    shape s;
    int64_t logits;
    double *z, *v, *bias, *e, *base, *dy;
    int32_t *actions;
} layer;

static layer layer_make(const shape *s)
{
    layer l = {.s = *s, .logits = heads[s->heads - 1].first + heads[s->heads - 1].count};
    l.z = case_random(s->rows * s->width, -2, 2);
    l.v = case_random(l.logits * s->width, -1, 1);
    l.bias = case_random(l.logits, -1, 1);
    l.e = s->chained ? case_random(l.logits * s->width, -1, 1) : NULL;
    l.base = s->based ? case_random(s->rows * l.logits, -1, 1) : NULL;
    l.dy = case_random(s->rows * l.logits, -1, 1);
    l.actions = case_alloc((size_t)(s->rows * s->heads) * sizeof *l.actions);
    for (int64_t i = 0; i < s->rows * s->heads; i++) {
        const xph_head *h = &heads[i % s->heads];
        l.actions[i] = (int32_t)case_below(h->kind == EXPHIL_BERNOULLI ? (int64_t)1 << h->count : h->count);
    }
    return l;
}

static xph_heads_args args_of(const layer *l)
{
    return (xph_heads_args){.rows = l->s.rows,
                            .width = l->s.width,
                            .heads = l->s.heads,
                            .logits = l->logits,
                            .head = heads,
                            .actions = l->s.chained ? l->actions : NULL,
                            .lda = l->s.heads};
}

enum { Y = 5 }; /* place in the table below */

static kt_case forward_case(const layer *l)
{
    const shape *s = &l->s;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_heads_args, z, ldz, s->rows, s->width, KT_IN, l->z, NULL),
        KT_FLAT(xph_heads_args, v, l->logits, s->width, KT_IN, l->v, NULL),
        KT_FLAT(xph_heads_args, bias, 1, l->logits, KT_IN, l->bias, NULL),
        KT_FLAT(xph_heads_args, e, l->logits, s->width, KT_IN, l->e, NULL),
        KT_FIELD(xph_heads_args, base, ldbase, s->rows, l->logits, KT_IN, l->base, NULL),
        KT_FIELD(xph_heads_args, y, ldy, s->rows, l->logits, KT_OUT, NULL, NULL),
    };
    const xph_heads_args args = args_of(l);
    return KT_CASE("heads", XPH_OP_HEADS, args, KT_DENSE, tensors, s->pad);
}

static void forward(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        case_seed(i / DEVICE_TYPES);
        layer l = layer_make(&shapes[i / DEVICE_TYPES]);
        kt_case c = forward_case(&l);
        device_case d = device_case_of(&c, xph_cuda_heads, device_types[i % DEVICE_TYPES]);
        device_check(&d);
        case_release();
    }
}

static void rows_alone(void **state)
{
    const shape s = {11, 70, 0, 5, true, true};
    double *together[KT_MOST], *result[KT_MOST];
    case_seed(3);
    layer all = layer_make(&s);
    kt_case c = forward_case(&all);
    device_case d = device_case_of(&c, xph_cuda_heads, XPH_F32);
    device_run(&d, together);
    for (int64_t m = 0; m < s.rows; m++) {
        layer one = all;
        one.s.rows = 1;
        one.z += m * s.width;
        one.base += m * all.logits;
        one.actions += m * s.heads;
        c = forward_case(&one);
        device_run(&d, result);
        case_same("row alone", result[Y], together[Y] + m * all.logits, all.logits);
    }
    case_release();
}

static void gradient_shape(const shape *s, xph_type type)
{
    layer l = layer_make(s);
    int64_t numbers = l.logits * s->width;
    double *dv = case_random(numbers, -1, 1), *dbias = case_random(l.logits, -1, 1);
    double *de = s->chained ? case_random(numbers, -1, 1) : NULL;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_heads_grad_args, fwd.z, fwd.ldz, s->rows, s->width, KT_IN, l.z, NULL),
        KT_FLAT(xph_heads_grad_args, fwd.v, l.logits, s->width, KT_IN, l.v, NULL),
        KT_FLAT(xph_heads_grad_args, fwd.bias, 1, l.logits, KT_IN, l.bias, NULL),
        KT_FLAT(xph_heads_grad_args, fwd.e, l.logits, s->width, KT_IN, l.e, NULL),
        KT_FIELD(xph_heads_grad_args, dy, lddy, s->rows, l.logits, KT_IN, l.dy, NULL),
        KT_FIELD(xph_heads_grad_args, dz, lddz, s->rows, s->width, KT_OUT, NULL, NULL),
        KT_FLAT(xph_heads_grad_args, dv, l.logits, s->width, KT_ADD, dv, NULL),
        KT_FLAT(xph_heads_grad_args, dbias, 1, l.logits, KT_ADD, dbias, NULL),
        KT_FLAT(xph_heads_grad_args, de, l.logits, s->width, s->chained ? KT_ADD : KT_IN, de, NULL),
    };
    const xph_heads_grad_args args = {.fwd = args_of(&l)};
    const kt_case c = KT_CASE("heads_grad", XPH_OP_HEADS_GRAD, args, offsetof(xph_heads_grad_args, scratch),
                              tensors, s->pad);
    const device_case d = device_case_of(&c, xph_cuda_heads_grad, type);
    device_check(&d);
    case_release();
}

static void gradient(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        case_seed(50 + i / DEVICE_TYPES);
        gradient_shape(&shapes[i / DEVICE_TYPES], device_types[i % DEVICE_TYPES]);
    }
}

static void wide_trunks_are_not_accepted(void **state)
{
    const xph_heads_grad_args args = {.fwd = {.rows = 1, .width = 1025, .heads = 1}};
    for (const xph_cuda_candidate *k = xph_cuda_heads; k->name; k++) assert_false(k->accepts(&args.fwd));
    for (const xph_cuda_candidate *k = xph_cuda_heads_grad; k->name; k++) assert_false(k->accepts(&args));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward), cmocka_unit_test(rows_alone),
                                       cmocka_unit_test(gradient),
                                       cmocka_unit_test(wide_trunks_are_not_accepted)};
    return cmocka_run_group_tests_name("cuda_heads", tests, NULL, NULL);
}
