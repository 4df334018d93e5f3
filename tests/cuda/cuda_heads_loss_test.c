/* Heads, loss and gradients in one kernel on the emulated GPU, against the CPU's three operations in double, and its parts,
 * logits alone and gradients from those of the logits: every kind of loss, heads in a chain and not, heads of many choices,
 * masks, odd rows and widths, no rows. */
#include "heads_bed.h"

#include <math.h>
#include <string.h>

/* masked: some rows do not count, and of every second tile of 64 none; leaves: dlogits are wanted. */
typedef struct shape {
    bed_shape s;
    bool masked, leaves;
} shape;

static const xph_head one_number[] = {{EXPHIL_BERNOULLI, 1, 0}};
static const xph_head large[] = {
    {EXPHIL_CATEGORICAL, 128, 0}, {EXPHIL_BERNOULLI, 31, 128}, {EXPHIL_CATEGORICAL, 33, 159}};
static const xph_head largest[] = {{EXPHIL_CATEGORICAL, 1024, 0}, {EXPHIL_CATEGORICAL, 3, 1024}};

static const shape shapes[] = {
    {{1, 1, 3, 1, false, false, NULL}, false, true},
    {{64, 256, 0, 4, true, true, NULL}, false, true},
    {{70, 64, 0, 4, true, false, NULL}, true, false},
    {{33, 37, 1, 3, false, true, NULL}, true, true},
    {{5, 250, 2, 2, true, true, NULL}, false, true},
    {{129, 96, 0, 4, true, true, NULL}, true, true},
    {{135, 33, 1, 4, false, false, NULL}, true, true},
    {{66, 48, 1, 5, true, true, NULL}, true, true},
    {{37, 300, 0, 3, true, true, NULL}, true, true},
    {{3, 512, 1, 2, false, false, NULL}, false, false},
    {{40, 80, 0, 3, true, true, large}, true, true},
    {{7, 24, 0, 2, true, false, largest}, false, true},
    {{131, 65, 0, 1, false, false, one_number}, true, true},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, SLOW = 5 }; /* from here on: many rows, columns or choices */

/* Sums of numbers of which 10 bits count, and of rows of that type. A focal loss makes of what its logits are off gamma times
 * that, and of many logits there are more such sums. */
static double tolerance_of(xph_type type, int64_t logits)
{
    return type == XPH_BF16 ? 2e-2 : logits > 100 ? 8e-3 : 6e-3;
}

static bool counts_not(int64_t row)
{
    return row / 64 % 2 || case_below(3) == 0;
}

/* ---- what is wanted ---- */

typedef struct wanted {
    bed_layer l;
    bool masked, leaves;
    xph_loss_args loss;
    double sums[BED_HEADS];
    double *y, *dy, *dz, *dv, *dbias, *de, *dz_sum, *before; /* before: what dz_sum is added to */
} wanted;

static xph_loss_args loss_args(const wanted *w, const xph_head_loss *how)
{
    const bed_shape *s = &w->l.s;
    float *mask = w->masked ? case_alloc((size_t)s->rows * sizeof *mask) : NULL;
    for (int64_t i = 0; mask && i < s->rows; i++) mask[i] = counts_not(i) ? 0.0f : (float)case_uniform(0, 2);
    return (xph_loss_args){.rows = s->rows,
                           .heads = s->heads,
                           .logits = w->l.logits,
                           .head = s->head,
                           .loss = how,
                           .actions = w->l.actions,
                           .lda = s->heads,
                           .mask = mask,
                           .scale = 0.75 / (double)s->rows,
                           .sums = case_alloc((size_t)s->heads * sizeof(double)),
                           .rows_loss = case_alloc((size_t)(s->rows * s->heads) * sizeof(double))};
}

static void want_logits(wanted *w)
{
    double *results[KT_MOST];
    const kt_case forward = bed_forward(&w->l);
    kt_reference(&forward, results);
    w->y = results[BED_Y];
}

static void want_loss(wanted *w)
{
    const bed_shape *s = &w->l.s;
    double *results[KT_MOST];
    const kt_tensor tensors[] = {KT_FIELD(xph_loss_args, y, ldy, s->rows, w->l.logits, KT_IN, w->y, NULL),
                                 KT_FIELD(xph_loss_args, dy, lddy, s->rows, w->l.logits, KT_OUT, NULL, NULL)};
    const kt_case loss = KT_CASE("loss", XPH_OP_LOSS, w->loss, KT_DENSE, tensors, 0);
    kt_reference(&loss, results);
    w->l.dy = w->dy = results[1];
    memcpy(w->sums, w->loss.sums, (size_t)s->heads * sizeof(double));
}

static void want_gradients(wanted *w)
{
    const bed_shape *s = &w->l.s;
    double *results[KT_MOST];
    const kt_case back = bed_gradient(&w->l);
    kt_reference(&back, results);
    w->dz = results[BED_DZ];
    w->dv = results[BED_DV];
    w->dbias = results[BED_DBIAS];
    w->de = results[BED_DE];
    w->before = bed_numbers(XPH_F32, s->width, 1);
    w->dz_sum = case_zeros(s->width);
    for (int64_t c = 0; c < s->width; c++) {
        w->dz_sum[c] = w->before[c];
        for (int64_t r = 0; r < s->rows; r++) w->dz_sum[c] += w->dz[r * s->width + c];
    }
}

/* how NULL: the gradients of the logits are made up, of some rows zero. */
static wanted wanted_of(const shape *s, const xph_head_loss *how, xph_type type)
{
    wanted w = {.l = bed_layer_make(&s->s, type), .masked = s->masked, .leaves = s->leaves};
    want_logits(&w);
    if (how) {
        w.loss = loss_args(&w, how);
        want_loss(&w);
    } else {
        w.l.dy = bed_numbers(XPH_F32, s->s.rows * w.l.logits, 1.0 / (double)s->s.rows);
        for (int64_t r = 0; s->masked && r < s->s.rows; r++)
            if (counts_not(r)) memset(w.l.dy + r * w.l.logits, 0, (size_t)w.l.logits * sizeof(double));
    }
    want_gradients(&w);
    return w;
}

/* ---- the kernel ---- */

enum { DY = 5, LAST = 10 }; /* places in the table: gradients from here on */

static xph_heads_loss_args args_of(const wanted *w, int32_t part)
{
    xph_heads_loss_args args = {.grad.fwd = bed_args(&w->l), .math = XPH_MATH_TF32, .part = part};
    args.loss = part == XPH_HEADS_ALL ? &w->loss : NULL;
    args.grad.fwd.ldy = args.grad.lddy = w->l.logits;
    if (part == XPH_HEADS_ALL) args.grad.fwd.actions = w->l.actions;
    return args;
}

/* y, and the gradient of the logits that is given, are floats whatever rows are. */
static kt_case case_of(const wanted *w, int32_t part)
{
    const bed_layer *l = &w->l;
    const bed_shape *s = &l->s;
    const bool logits = part == XPH_HEADS_LOGITS, given = part == XPH_HEADS_GIVEN;
    const int32_t out = logits ? KT_IN : KT_OUT, add = logits ? KT_IN : KT_ADD;
    const kt_tensor left = KT_FIELD(xph_heads_loss_args, grad.dy, grad.lddy, s->rows, l->logits,
                                    w->leaves && !logits ? KT_OUT : KT_IN, NULL, w->dy);
    const kt_tensor taken =
        KT_FLAT(xph_heads_loss_args, grad.dy, s->rows, l->logits, KT_IN, given ? l->dy : NULL, NULL);
    const kt_tensor tensors[] = {
        KT_FIELD(xph_heads_loss_args, grad.fwd.z, grad.fwd.ldz, s->rows, s->width, KT_IN, l->z, NULL),
        KT_FLAT(xph_heads_loss_args, grad.fwd.v, l->logits, s->width, KT_IN, l->v, NULL),
        KT_FLAT(xph_heads_loss_args, grad.fwd.bias, 1, l->logits, KT_IN, l->bias, NULL),
        KT_FLAT(xph_heads_loss_args, grad.fwd.e, l->logits, s->width, KT_IN, l->e, NULL),
        KT_FIELD(xph_heads_loss_args, grad.fwd.base, grad.fwd.ldbase, s->rows, l->logits, KT_IN, l->base,
                 NULL),
        given ? taken : left,
        KT_FIELD(xph_heads_loss_args, grad.dz, grad.lddz, s->rows, s->width, out, NULL, w->dz),
        KT_FLAT(xph_heads_loss_args, grad.dv, l->logits, s->width, add, l->dv, w->dv),
        KT_FLAT(xph_heads_loss_args, grad.dbias, 1, l->logits, add, l->dbias, w->dbias),
        KT_FLAT(xph_heads_loss_args, grad.de, l->logits, s->width, s->chained ? add : KT_IN, l->de, w->de),
        KT_FLAT(xph_heads_loss_args, grad.dz_sum, 1, s->width, add, w->before, w->dz_sum),
        KT_FLAT(xph_heads_loss_args, grad.fwd.y, s->rows, l->logits, logits ? KT_OUT : KT_IN, NULL, w->y),
    };
    const xph_heads_loss_args args = args_of(w, part);
    return KT_CASE("heads_loss", XPH_OP_HEADS_LOSS, args, offsetof(xph_heads_loss_args, grad.scratch),
                   tensors, s->pad);
}

static void check(const wanted *w, int32_t part)
{
    const kt_case c = case_of(w, part);
    device_case d = device_case_of(&c, xph_cuda_heads_loss, w->l.type);
    d.tolerance = tolerance_of(w->l.type, w->l.logits);
    d.candidates_differ = d.wanted = true;
    device_check(&d);
}

/* The slow shapes have one type of rows each. */
static void all_kinds(void **state)
{
    for (size_t i = 0; i < SHAPES * DEVICE_TYPES; i++) {
        const size_t which = i % SHAPES, type = i / SHAPES;
        if (which >= SLOW && which % DEVICE_TYPES != type) continue;
        case_seed(i);
        const wanted w = wanted_of(&shapes[which], bed_losses[(which / DEVICE_TYPES + type) % BED_LOSSES],
                                   device_types[type]);
        memset(w.loss.sums, 0xff, (size_t)w.l.s.heads * sizeof(double));
        check(&w, XPH_HEADS_ALL);
        case_close("sums", w.loss.sums, w.sums, w.l.s.heads, 2e-3);
        case_release();
    }
}

/* Each shape with one type of rows. */
static void part_alone(int32_t part)
{
    for (size_t i = 0; i < SHAPES; i++) {
        case_seed(200 + i);
        const wanted w = wanted_of(&shapes[i], NULL, device_types[(i + (size_t)part) % DEVICE_TYPES]);
        check(&w, part);
        case_release();
    }
}

/* Scratch of no bytes lies nowhere. */
static void no_rows_and_no_scratch(const wanted *w)
{
    const xph_heads_loss_args args = args_of(w, XPH_HEADS_ALL);
    for (const xph_cuda_candidate *k = xph_cuda_heads_loss; k->name; k++) {
        memset(w->loss.sums, 0xff, (size_t)w->l.s.heads * sizeof(double));
        assert_int_equal(k->scratch_bytes(&args), 0);
        assert_int_equal(k->launch(&args, NULL), 0);
        for (int64_t h = 0; h < w->l.s.heads; h++) assert_true(w->loss.sums[h] == 0.0);
    }
}

/* Nothing is added to what is there, and the losses are 0. */
static void no_rows(void **state)
{
    static const shape s = {{0, 64, 0, 4, true, true, NULL}, false, true};
    for (int32_t part = XPH_HEADS_ALL; part <= XPH_HEADS_GIVEN; part++) {
        case_seed(300);
        const wanted w = wanted_of(&s, part == XPH_HEADS_ALL ? bed_losses[0] : NULL, device_types[part]);
        if (part == XPH_HEADS_ALL) memset(w.loss.sums, 0xff, (size_t)s.s.heads * sizeof(double));
        check(&w, part);
        for (int64_t h = 0; part == XPH_HEADS_ALL && h < s.s.heads; h++) assert_true(w.loss.sums[h] == 0.0);
        if (part == XPH_HEADS_ALL) no_rows_and_no_scratch(&w);
        case_release();
    }
}

static void logits_alone(void **state)
{
    part_alone(XPH_HEADS_LOGITS);
}

static void gradients_of_given(void **state)
{
    part_alone(XPH_HEADS_GIVEN);
}

/* A row without weight, or of whose logits nothing is asked, counts for nothing, whatever is in it. */
static void masked_rows_may_hold_anything(void **state)
{
    static const shape s = {{70, 64, 0, 5, true, true, NULL}, true, true};
    for (int32_t part = XPH_HEADS_ALL; part <= XPH_HEADS_GIVEN; part++) {
        if (part == XPH_HEADS_LOGITS) continue;
        double *results[KT_MOST];
        case_seed(77);
        const wanted w = wanted_of(&s, part == XPH_HEADS_ALL ? bed_losses[1] : NULL, XPH_F32);
        if (w.loss.mask) ((float *)(uintptr_t)w.loss.mask)[4] = 0;
        for (int64_t c = 0; c < w.l.logits; c++) w.l.dy[4 * w.l.logits + c] = 0;
        for (int64_t c = 0; c < s.s.width; c++) w.l.z[4 * s.s.width + c] = c % 2 ? NAN : INFINITY;
        for (int64_t c = 0; c < w.l.logits; c++) w.l.base[4 * w.l.logits + c] = c % 2 ? NAN : -INFINITY;
        const kt_case c = case_of(&w, part);
        const device_case d = device_case_of(&c, xph_cuda_heads_loss, XPH_F32);
        device_run(&d, results);
        for (int i = part == XPH_HEADS_ALL ? DY : DY + 1; i <= LAST; i++)
            assert_false(kt_any_bad(results[i], c.tensors[i].rows * c.tensors[i].width));
        for (int64_t k = 0; k < s.s.width; k++) assert_true(results[DY + 1][4 * s.s.width + k] == 0);
        if (part == XPH_HEADS_ALL) {
            assert_false(kt_any_bad(w.loss.sums, s.s.heads));
            for (int64_t k = 0; k < w.l.logits; k++) assert_true(results[DY][4 * w.l.logits + k] == 0);
        }
        case_release();
    }
}

/* A number that is not finite among the gradients of the logits is not lost. */
static void broken_gradients_are_seen(void **state)
{
    static const shape s = {{70, 64, 0, 5, true, true, NULL}, true, true};
    double *results[KT_MOST];
    case_seed(78);
    const wanted w = wanted_of(&s, NULL, XPH_F32);
    w.l.dy[3 * w.l.logits + 11] = NAN;
    const kt_case c = case_of(&w, XPH_HEADS_GIVEN);
    const device_case d = device_case_of(&c, xph_cuda_heads_loss, XPH_F32);
    device_run(&d, results);
    assert_true(isnan(results[DY + 3][11])); /* dbias */
    case_release();
}

static int accepted_by(int64_t width, const xph_head *head, int64_t heads, int32_t math)
{
    const xph_heads_loss_args args = {
        .grad.fwd = {.rows = 1, .width = width, .heads = heads, .logits = 64, .head = head}, .math = math};
    int by = 0;
    for (const xph_cuda_candidate *k = xph_cuda_heads_loss; k->name; k++) by += k->accepts(&args);
    return by;
}

static void what_is_not_accepted(void **state)
{
    xph_head many[33];
    for (int i = 0; i < 33; i++) many[i] = (xph_head){EXPHIL_BERNOULLI, 2, 2 * i};
    assert_int_equal(accepted_by(256, many, 32, XPH_MATH_TF32), 3);
    assert_int_equal(accepted_by(257, many, 32, XPH_MATH_TF32), 1);
    assert_int_equal(accepted_by(512, many, 32, XPH_MATH_TF32), 1);
    assert_int_equal(accepted_by(513, many, 32, XPH_MATH_TF32), 0);
    assert_int_equal(accepted_by(256, many, 33, XPH_MATH_TF32), 0);
    assert_int_equal(accepted_by(256, many, 32, XPH_MATH_F32), 0);
    for (int i = 0; i < 3; i++) many[i] = (xph_head){EXPHIL_CATEGORICAL, 1024, 1024 * i};
    assert_int_equal(accepted_by(64, many, 3, XPH_MATH_TF32), 0); /* more than shared memory takes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_kinds),
                                       cmocka_unit_test(logits_alone),
                                       cmocka_unit_test(gradients_of_given),
                                       cmocka_unit_test(no_rows),
                                       cmocka_unit_test(masked_rows_may_hold_anything),
                                       cmocka_unit_test(broken_gradients_are_seen),
                                       cmocka_unit_test(what_is_not_accepted)};
    return cmocka_run_group_tests_name("cuda_heads_loss", tests, NULL, NULL);
}
