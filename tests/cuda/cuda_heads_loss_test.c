/* Heads, loss and gradients in one kernel on the emulated GPU, against the CPU's three operations in double: every kind of
 * loss, heads in a chain and not, masks, odd rows and widths. */
#include "device_case.h"

#include <math.h>
#include <string.h>

typedef struct shape {
    int64_t rows, width, pad;
    int heads;
    bool chained, based, masked, leaves; /* leaves: dlogits are wanted */
} shape;

static const shape shapes[] = {
    {1, 1, 3, 1, false, false, false, true},   {64, 256, 0, 5, true, true, false, true},
    {70, 64, 0, 5, true, false, true, false},  {33, 37, 1, 3, false, true, true, true},
    {129, 96, 0, 5, true, true, true, true},   {5, 250, 2, 2, true, true, false, true},
    {200, 33, 1, 4, false, false, true, true},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

enum { MOST = 5 };
static const xph_head heads[MOST] = {{EXPHIL_BERNOULLI, 8, 0},
                                     {EXPHIL_CATEGORICAL, 17, 8},
                                     {EXPHIL_CATEGORICAL, 2, 25},
                                     {EXPHIL_BERNOULLI, 31, 27},
                                     {EXPHIL_CATEGORICAL, 9, 58}};
static const float positive[31] = {1, 2, 0.5f, 30, 1, 1.25f, 4, 1, 1, 3};
static const xph_head_loss losses[][MOST] = {
    {{1, 0, 0, NULL}, {1, 0, 0, NULL}, {1, 0, 0, NULL}, {1, 0, 0, NULL}, {1, 0, 0, NULL}},
    {{2, 0, 3, positive},
     {0.5, 0.125, 2, NULL},
     {1, 0, 1, NULL},
     {0, 0, 0, positive},
     {1.5, 0.25, 0.5, NULL}},
    {{1, 0, 0.5, NULL}, {1, 0.5, 0.25, NULL}, {1, 0.125, 0, NULL}, {1, 0, 1, NULL}, {1, 0, 4, NULL}},
};
enum { LOSSES = sizeof losses / sizeof *losses };

/* Sums of numbers of which 10 bits count, and of rows of that type. */
static double tolerance_of(xph_type type)
{
    return type == XPH_BF16 ? 2e-2 : 4e-3;
}

typedef struct layer {
    shape s;
    xph_type type;
    int64_t logits;
    double *z, *v, *bias, *e, *base, *dv, *dbias, *de, *dz_sum;
    double *dy, *dz; /* results of the reference, which adds to the others */
    double *want_dv, *want_dbias, *want_de, *want_sum;
    int32_t *actions;
    float *mask;
    xph_loss_args loss;
    double sums[MOST];
} layer;

static double *rounded(xph_type type, double *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) x[i] = device_rounded(type, x[i]);
    return x;
}

static double *number(int64_t count, double reach)
{
    return rounded(XPH_F32, case_random(count, -reach, reach), count);
}

static layer layer_make(const shape *s, const xph_head_loss *how, xph_type type)
{
    layer l = {.s = *s, .type = type, .logits = heads[s->heads - 1].first + heads[s->heads - 1].count};
    const int64_t weights = l.logits * s->width;
    l.z = rounded(type, case_random(s->rows * s->width, -2, 2), s->rows * s->width);
    l.base = s->based ? rounded(type, case_random(s->rows * l.logits, -1, 1), s->rows * l.logits) : NULL;
    l.v = number(weights, 0.5);
    l.bias = number(l.logits, 1);
    l.e = s->chained ? number(weights, 0.5) : NULL;
    l.dv = number(weights, 1);
    l.dbias = number(l.logits, 1);
    l.de = number(weights, 1);
    l.dz_sum = number(s->width, 1);
    l.actions = case_alloc((size_t)(s->rows * s->heads) * sizeof *l.actions);
    for (int64_t i = 0; i < s->rows * s->heads; i++) {
        const xph_head *h = &heads[i % s->heads];
        l.actions[i] = (int32_t)case_below(h->kind == EXPHIL_BERNOULLI ? (int64_t)1 << h->count : h->count);
    }
    l.mask = s->masked ? case_alloc((size_t)s->rows * sizeof *l.mask) : NULL;
    for (int64_t i = 0; s->masked && i < s->rows; i++)
        l.mask[i] = i / 64 % 2 || case_below(3) == 0
                        ? 0.0f
                        : (float)case_uniform(0, 2); /* of every second tile: none */
    l.loss = (xph_loss_args){.rows = s->rows,
                             .heads = s->heads,
                             .logits = l.logits,
                             .head = heads,
                             .loss = how,
                             .actions = l.actions,
                             .lda = s->heads,
                             .mask = l.mask,
                             .scale = 0.75 / (double)s->rows};
    l.loss.sums = case_alloc((size_t)s->heads * sizeof(double));
    l.loss.rows_loss = case_alloc((size_t)(s->rows * s->heads) * sizeof(double));
    return l;
}

static xph_heads_args args_of(const layer *l)
{
    return (xph_heads_args){.type = l->type,
                            .rows = l->s.rows,
                            .width = l->s.width,
                            .heads = l->s.heads,
                            .logits = l->logits,
                            .head = heads,
                            .actions = l->actions,
                            .lda = l->s.heads};
}

/* ---- the reference ---- */

static void refer_logits(layer *l)
{
    const shape *s = &l->s;
    double *results[KT_MOST];
    const kt_tensor tensors[] = {
        KT_FIELD(xph_heads_args, z, ldz, s->rows, s->width, KT_IN, l->z, NULL),
        KT_FLAT(xph_heads_args, v, l->logits, s->width, KT_IN, l->v, NULL),
        KT_FLAT(xph_heads_args, bias, 1, l->logits, KT_IN, l->bias, NULL),
        KT_FLAT(xph_heads_args, e, l->logits, s->width, KT_IN, l->e, NULL),
        KT_FIELD(xph_heads_args, base, ldbase, s->rows, l->logits, KT_IN, l->base, NULL),
        KT_FIELD(xph_heads_args, y, ldy, s->rows, l->logits, KT_OUT, NULL, NULL)};
    const xph_heads_args args = args_of(l);
    const kt_case forward = KT_CASE("heads", XPH_OP_HEADS, args, KT_DENSE, tensors, 0);
    kt_reference(&forward, results);
    const kt_tensor of_loss[] = {KT_FIELD(xph_loss_args, y, ldy, s->rows, l->logits, KT_IN, results[5], NULL),
                                 KT_FIELD(xph_loss_args, dy, lddy, s->rows, l->logits, KT_OUT, NULL, NULL)};
    const kt_case loss = KT_CASE("loss", XPH_OP_LOSS, l->loss, KT_DENSE, of_loss, 0);
    double *made[KT_MOST];
    kt_reference(&loss, made);
    l->dy = made[1];
    memcpy(l->sums, l->loss.sums, (size_t)s->heads * sizeof(double));
}

static void refer_gradients(layer *l)
{
    const shape *s = &l->s;
    double *results[KT_MOST];
    const kt_tensor tensors[] = {
        KT_FIELD(xph_heads_grad_args, fwd.z, fwd.ldz, s->rows, s->width, KT_IN, l->z, NULL),
        KT_FLAT(xph_heads_grad_args, fwd.v, l->logits, s->width, KT_IN, l->v, NULL),
        KT_FLAT(xph_heads_grad_args, fwd.bias, 1, l->logits, KT_IN, l->bias, NULL),
        KT_FLAT(xph_heads_grad_args, fwd.e, l->logits, s->width, KT_IN, l->e, NULL),
        KT_FIELD(xph_heads_grad_args, dy, lddy, s->rows, l->logits, KT_IN, l->dy, NULL),
        KT_FIELD(xph_heads_grad_args, dz, lddz, s->rows, s->width, KT_OUT, NULL, NULL),
        KT_FLAT(xph_heads_grad_args, dv, l->logits, s->width, KT_ADD, l->dv, NULL),
        KT_FLAT(xph_heads_grad_args, dbias, 1, l->logits, KT_ADD, l->dbias, NULL),
        KT_FLAT(xph_heads_grad_args, de, l->logits, s->width, s->chained ? KT_ADD : KT_IN, l->de, NULL),
    };
    const xph_heads_grad_args args = {.fwd = args_of(l)};
    const kt_case back =
        KT_CASE("heads_grad", XPH_OP_HEADS_GRAD, args, offsetof(xph_heads_grad_args, scratch), tensors, 0);
    kt_reference(&back, results);
    l->dz = results[5];
    l->want_dv = results[6];
    l->want_dbias = results[7];
    l->want_de = results[8];
    l->want_sum = case_zeros(s->width);
    for (int64_t c = 0; c < s->width; c++) {
        l->want_sum[c] = l->dz_sum[c];
        for (int64_t r = 0; r < s->rows; r++) l->want_sum[c] += l->dz[r * s->width + c];
    }
}

/* ---- the kernel ---- */

static kt_case case_of(const layer *l)
{
    const shape *s = &l->s;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_heads_loss_args, grad.fwd.z, grad.fwd.ldz, s->rows, s->width, KT_IN, l->z, NULL),
        KT_FLAT(xph_heads_loss_args, grad.fwd.v, l->logits, s->width, KT_IN, l->v, NULL),
        KT_FLAT(xph_heads_loss_args, grad.fwd.bias, 1, l->logits, KT_IN, l->bias, NULL),
        KT_FLAT(xph_heads_loss_args, grad.fwd.e, l->logits, s->width, KT_IN, l->e, NULL),
        KT_FIELD(xph_heads_loss_args, grad.fwd.base, grad.fwd.ldbase, s->rows, l->logits, KT_IN, l->base,
                 NULL),
        KT_FIELD(xph_heads_loss_args, grad.dy, grad.lddy, s->rows, l->logits, s->leaves ? KT_OUT : KT_IN,
                 NULL, l->dy),
        KT_FIELD(xph_heads_loss_args, grad.dz, grad.lddz, s->rows, s->width, KT_OUT, NULL, l->dz),
        KT_FLAT(xph_heads_loss_args, grad.dv, l->logits, s->width, KT_ADD, l->dv, l->want_dv),
        KT_FLAT(xph_heads_loss_args, grad.dbias, 1, l->logits, KT_ADD, l->dbias, l->want_dbias),
        KT_FLAT(xph_heads_loss_args, grad.de, l->logits, s->width, s->chained ? KT_ADD : KT_IN, l->de,
                l->want_de),
        KT_FLAT(xph_heads_loss_args, grad.dz_sum, 1, s->width, KT_ADD, l->dz_sum, l->want_sum),
    };
    xph_heads_loss_args args = {.grad.fwd = args_of(l), .math = XPH_MATH_TF32, .loss = &l->loss};
    return KT_CASE("heads_loss", XPH_OP_HEADS_LOSS, args, offsetof(xph_heads_loss_args, grad.scratch),
                   tensors, s->pad);
}

static void check(const shape *s, const xph_head_loss *how, xph_type type)
{
    layer l = layer_make(s, how, type);
    refer_logits(&l);
    refer_gradients(&l);
    const kt_case c = case_of(&l);
    device_case d = device_case_of(&c, xph_cuda_heads_loss, type);
    d.tolerance = tolerance_of(type);
    d.candidates_differ = d.wanted = true;
    memset(l.loss.sums, 0xff, (size_t)s->heads * sizeof(double));
    device_check(&d);
    case_close("sums", l.loss.sums, l.sums, s->heads, 2e-3);
    case_release();
}

static void all_kinds(void **state)
{
    for (size_t i = 0; i < SHAPES * DEVICE_TYPES; i++) {
        case_seed(i);
        check(&shapes[i % SHAPES], losses[(i + i / SHAPES) % LOSSES], device_types[i / SHAPES]);
    }
}

/* A row without weight counts for nothing, whatever is in it. */
static void masked_rows_may_hold_anything(void **state)
{
    const shape s = {70, 64, 0, 5, true, true, true, true};
    double *results[KT_MOST];
    case_seed(77);
    layer l = layer_make(&s, losses[1], XPH_F32);
    l.mask[4] = 0;
    for (int64_t c = 0; c < s.width; c++) l.z[4 * s.width + c] = c % 2 ? NAN : INFINITY;
    for (int64_t c = 0; c < l.logits; c++) l.base[4 * l.logits + c] = c % 2 ? NAN : -INFINITY;
    const kt_case c = case_of(&l);
    const device_case d = device_case_of(&c, xph_cuda_heads_loss, XPH_F32);
    device_run(&d, results);
    for (int i = 5; i < 11; i++) assert_false(kt_any_bad(results[i], c.tensors[i].rows * c.tensors[i].width));
    assert_false(kt_any_bad(l.loss.sums, s.heads));
    for (int64_t k = 0; k < l.logits; k++) assert_true(results[5][4 * l.logits + k] == 0);
    case_release();
}

static void what_is_not_accepted(void **state)
{
    const xph_head large = {EXPHIL_CATEGORICAL, 33, 0};
    xph_heads_loss_args args = {
        .grad.fwd = {.rows = 1, .width = 64, .heads = 1, .logits = 33, .head = &large},
        .math = XPH_MATH_TF32};
    const xph_head small = {EXPHIL_CATEGORICAL, 32, 0};
    for (const xph_cuda_candidate *k = xph_cuda_heads_loss; k->name; k++) assert_false(k->accepts(&args));
    args.grad.fwd.head = &small;
    assert_true(xph_cuda_heads_loss->accepts(&args));
    args.math = XPH_MATH_F32;
    assert_false(xph_cuda_heads_loss->accepts(&args));
    args.math = XPH_MATH_TF32;
    args.grad.fwd.width = 257;
    assert_false(xph_cuda_heads_loss->accepts(&args));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_kinds),
                                       cmocka_unit_test(masked_rows_may_hold_anything),
                                       cmocka_unit_test(what_is_not_accepted)};
    return cmocka_run_group_tests_name("cuda_heads_loss", tests, NULL, NULL);
}
