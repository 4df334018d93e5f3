#include "codes_case.h"

const xph_head codes_heads[CODES_HEADS] = {{EXPHIL_BERNOULLI, 8, 0},
                                           {EXPHIL_CATEGORICAL, 17, 8},
                                           {EXPHIL_CATEGORICAL, 2, 25},
                                           {EXPHIL_BERNOULLI, 31, 27}};

int32_t *codes_actions(int64_t rows)
{
    int32_t *actions = case_alloc((size_t)(rows * CODES_HEADS) * sizeof *actions);
    for (int64_t i = 0; i < rows * CODES_HEADS; i++) {
        const xph_head *h = &codes_heads[i % CODES_HEADS];
        actions[i] = (int32_t)case_below(h->kind == EXPHIL_BERNOULLI ? (int64_t)1 << h->count : h->count + 1);
        if (i % 13 == 1) actions[i] = -1;
        if (h->kind == EXPHIL_BERNOULLI && actions[i] < 0) actions[i] = 0;
    }
    return actions;
}

static bool takes(int64_t logit, const int32_t *actions, int64_t heads)
{
    for (int64_t h = 0; h < heads; h++) {
        int64_t k = logit - codes_heads[h].first;
        if (k < 0 || k >= codes_heads[h].count) continue;
        if (codes_heads[h].kind == EXPHIL_BERNOULLI) return actions[h] >> k & 1;
        return actions[h] == k;
    }
    return false;
}

static xph_codes_args args_of(const codes_shape *s, const int32_t *actions)
{
    return (xph_codes_args){.rows = s->rows,
                            .width = s->width,
                            .heads = s->heads,
                            .head = codes_heads,
                            .actions = actions,
                            .lda = CODES_HEADS};
}

kt_case codes_case(const codes_shape *s, const int32_t *actions)
{
    int64_t count = s->rows * s->width;
    double *table = case_random(CODES_LOGITS * s->width, -1, 1), *y = case_random(count, -1, 1);
    double *want = kt_copy(y, count);
    for (int64_t i = 0; i < count; i++)
        for (int64_t l = 0; l < CODES_LOGITS; l++)
            if (takes(l, actions + i / s->width * CODES_HEADS, s->heads))
                want[i] += table[l * s->width + i % s->width];
    const kt_tensor tensors[] = {
        KT_FLAT(xph_codes_args, table, CODES_LOGITS, s->width, KT_IN, table, NULL),
        KT_FIELD(xph_codes_args, y, ldy, s->rows, s->width, KT_ADD, y, want),
    };
    const xph_codes_args args = args_of(s, actions);
    kt_case c = KT_CASE("codes", XPH_OP_CODES, args, KT_DENSE, tensors, s->pad);
    c.tolerance64 = 1e-13;
    c.tolerance32 = 1e-5;
    return c;
}

kt_case codes_gradient_case(const codes_shape *s, const int32_t *actions)
{
    int64_t count = CODES_LOGITS * s->width;
    double *dy = case_random(s->rows * s->width, -1, 1), *dtable = case_random(count, -1, 1);
    double *want = kt_copy(dtable, count);
    for (int64_t i = 0; i < count; i++)
        for (int64_t row = 0; row < s->rows; row++)
            if (takes(i / s->width, actions + row * CODES_HEADS, s->heads))
                want[i] += dy[row * s->width + i % s->width];
    const kt_tensor tensors[] = {
        KT_FIELD(xph_codes_grad_args, dy, lddy, s->rows, s->width, KT_IN, dy, NULL),
        KT_FLAT(xph_codes_grad_args, dtable, CODES_LOGITS, s->width, KT_ADD, dtable, want),
    };
    const xph_codes_grad_args args = {.fwd = args_of(s, actions)};
    kt_case c = KT_CASE("codes_grad", XPH_OP_CODES_GRAD, args, KT_DENSE, tensors, s->pad);
    c.tolerance64 = 1e-12;
    c.tolerance32 = 1e-5;
    return c;
}
