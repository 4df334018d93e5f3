/* Input rows: parts in their order, one-hot of bits and classes, the tables' gradients, shared tables. */
#include "kernel_case.h"

typedef struct shape {
    int64_t rows, floats, ids, slots, pad;
} shape;

static const shape shapes[] = {{0, 3, 2, 1, 0}, {1, 0, 0, 0, 0}, {1, 5, 0, 0, 0},     {7, 0, 3, 0, 1},
                               {5, 2, 1, 3, 2}, {3, 0, 0, 2, 0}, {1000, 17, 3, 1, 0}, {13, 96, 2, 4, 5}};

enum { HEADS = 4, LOGITS = 8 + 17 + 2 + 31 };
static const xph_head heads[HEADS] = {{EXPHIL_BERNOULLI, 8, 0},
                                      {EXPHIL_CATEGORICAL, 17, 8},
                                      {EXPHIL_CATEGORICAL, 2, 25},
                                      {EXPHIL_BERNOULLI, 31, 27}};
static const int64_t entries[3] = {5, 33, 5}, widths[3] = {3, 37, 3}; /* the third is the first again */

typedef struct embed {
    shape s;
    int64_t width;
    float *x;
    int32_t *id, *actions;
    double *table[2], *dy;
    double *y, *dtable[2]; /* results */
} embed;

static embed embed_make(const shape *s)
{
    embed a = {.s = *s, .width = s->floats + s->slots * LOGITS};
    a.x = case_alloc((size_t)(s->rows * s->floats) * sizeof(float));
    a.id = case_alloc((size_t)(s->rows * s->ids) * sizeof(int32_t));
    a.actions = case_alloc((size_t)(s->rows * s->slots * HEADS) * sizeof(int32_t));
    for (int64_t i = 0; i < s->rows * s->floats; i++) a.x[i] = (float)case_uniform(-2, 2);
    for (int64_t i = 0; i < s->rows * s->ids; i++) a.id[i] = (int32_t)case_below(entries[i % s->ids]);
    for (int64_t i = 0; i < s->rows * s->slots * HEADS; i++) {
        const xph_head *h = &heads[i % HEADS];
        a.actions[i] = (int32_t)case_below(h->kind == EXPHIL_BERNOULLI ? (int64_t)1 << h->count : h->count);
    }
    for (int i = 0; i < 2; i++) a.table[i] = case_random(entries[i] * widths[i], -1, 1);
    for (int64_t i = 0; i < s->ids; i++) a.width += widths[i];
    a.dy = case_random(s->rows * a.width, -1, 1);
    return a;
}

static void embed_args(const embed *a, xph_type type, xph_embed_table tables[3], xph_embed_args *args)
{
    double *half = case_zeros(entries[1] * widths[1]);
    for (int64_t i = 0; i < entries[1] * widths[1]; i++) half[i] = 0.5;
    for (int i = 0; i < 2; i++)
        tables[i] =
            (xph_embed_table){case_give(type, a->table[i], entries[i], widths[i], widths[i]),
                              case_give(type, half, entries[i], widths[i], widths[i]), entries[i], widths[i]};
    tables[2] = tables[0];
    *args = (xph_embed_args){.type = type,
                             .rows = a->s.rows,
                             .floats = a->s.floats,
                             .ids = a->s.ids,
                             .slots = a->s.slots,
                             .heads = HEADS,
                             .logits = LOGITS,
                             .x = a->x,
                             .ldx = a->s.floats,
                             .id = a->id,
                             .ldid = a->s.ids,
                             .tables = tables,
                             .actions = a->actions,
                             .lda = a->s.slots * HEADS,
                             .head = heads,
                             .ldy = a->width + a->s.pad};
    args->y = case_give(type, case_zeros(a->s.rows * a->width), a->s.rows, a->width, args->ldy);
}

static void embed_run(embed *a, const xph_kernel_set *set, int threads)
{
    xph_embed_table tables[3];
    xph_embed_args args;
    embed_args(a, set->type, tables, &args);
    case_run(set->op[XPH_OP_EMBED], &args, threads);
    a->y = case_take(set->type, args.y, a->s.rows, a->width, args.ldy);
    case_padding_intact(set->type, args.y, a->s.rows, a->width, args.ldy);
    xph_embed_grad_args grad = {.fwd = args, .lddy = a->width + 1};
    grad.dy = case_give(set->type, a->dy, a->s.rows, a->width, grad.lddy);
    case_run(set->op[XPH_OP_EMBED_GRAD], &grad, threads);
    for (int i = 0; i < 2; i++) {
        a->dtable[i] = case_take(set->type, tables[i].dtable, entries[i], widths[i], widths[i]);
        for (int64_t k = 0; k < entries[i] * widths[i]; k++) a->dtable[i][k] -= 0.5;
    }
}

/* ---- reference: one number after the other ---- */

static void reference_row(const embed *a, int64_t row, double *y)
{
    for (int64_t i = 0; i < a->s.floats; i++) *y++ = (double)a->x[row * a->s.floats + i];
    for (int64_t i = 0; i < a->s.ids; i++)
        for (int64_t k = 0; k < widths[i]; k++)
            *y++ = a->table[i % 2][a->id[row * a->s.ids + i] * widths[i] + k];
    for (int64_t s = 0; s < a->s.slots; s++) {
        for (int h = 0; h < HEADS; h++) {
            int32_t action = a->actions[(row * a->s.slots + s) * HEADS + h];
            for (int32_t i = 0; i < heads[h].count; i++)
                *y++ = heads[h].kind == EXPHIL_BERNOULLI ? action >> i & 1 : action == i;
        }
    }
}

static void reference(embed *a)
{
    a->y = case_zeros(a->s.rows * a->width);
    for (int i = 0; i < 2; i++) a->dtable[i] = case_zeros(entries[i] * widths[i]);
    for (int64_t row = 0; row < a->s.rows; row++) {
        reference_row(a, row, a->y + row * a->width);
        const double *dy = a->dy + row * a->width + a->s.floats;
        for (int64_t i = 0; i < a->s.ids; i++)
            for (int64_t k = 0; k < widths[i]; k++)
                a->dtable[i % 2][a->id[row * a->s.ids + i] * widths[i] + k] += *dy++;
    }
}

static void rows_and_gradients_are_right_everywhere(void **state)
{
    const xph_kernel_set *sets[CASE_SETS];
    int count = case_sets(sets);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        case_seed(i);
        case_guard_front(i % 2);
        embed a = embed_make(&shapes[i]), expected = a, first = a;
        reference(&expected);
        embed_run(&first, &xph_kernels_f32_ref, 1);
        for (int s = 0; s < count; s++) {
            embed_run(&a, sets[s], s + 1);
            case_same("y", a.y, expected.y, a.s.rows * a.width);
            for (int t = 0; t < 2; t++) {
                int64_t numbers = entries[t] * widths[t];
                case_close("dtable", a.dtable[t], expected.dtable[t], numbers, s ? 1e-5 : 1e-12);
                if (s) case_same("dtable", a.dtable[t], first.dtable[t], numbers);
            }
        }
        case_release();
    }
}

/* No past actions: their part is zero. A class that is none sets nothing. */
static void missing_actions_are_zero(void **state)
{
    static const shape s = {2, 1, 0, 1, 0};
    EACH_SET(set) {
        xph_embed_table tables[3];
        xph_embed_args args;
        case_seed(1);
        embed a = embed_make(&s);
        for (int k = 0; k < 2 * HEADS; k++) a.actions[k] = heads[k % HEADS].kind == EXPHIL_BERNOULLI ? 0 : -1;
        for (int none = 0; none < 2; none++) {
            embed_args(&a, set->type, tables, &args);
            if (none) args.actions = NULL;
            case_run(set->op[XPH_OP_EMBED], &args, 1);
            double *y = case_take(set->type, args.y, 2, a.width, a.width);
            for (int64_t k = 0; k < 2 * a.width; k++) assert_true(k % a.width == 0 || y[k] == 0.0);
        }
        case_release();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_gradients_are_right_everywhere),
        cmocka_unit_test(missing_actions_are_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
