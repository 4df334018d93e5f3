#include "heads_bed.h"

const xph_head bed_heads[BED_HEADS] = {{EXPHIL_BERNOULLI, 8, 0},
                                       {EXPHIL_CATEGORICAL, 17, 8},
                                       {EXPHIL_CATEGORICAL, 2, 25},
                                       {EXPHIL_BERNOULLI, 31, 27},
                                       {EXPHIL_CATEGORICAL, 100, 58}};
const float bed_positive[31] = {1, 2, 0.5f, 30, 1, 1.25f, 4, 1, 1, 3};
const xph_head_loss bed_losses[BED_LOSSES][BED_HEADS] = {
    {{1, 0, 0, NULL}, {1, 0, 0, NULL}, {1, 0, 0, NULL}, {1, 0, 0, NULL}, {1, 0, 0, NULL}},
    {{2, 0, 3, bed_positive},
     {0.5, 0.125, 2, NULL},
     {1, 0, 1, NULL},
     {0, 0, 0, bed_positive},
     {1.5, 0.25, 0.5, NULL}},
    {{1, 0, 0.5, NULL}, {1, 0.5, 0.25, NULL}, {1, 0.125, 0, NULL}, {1, 0, 1, NULL}, {1, 0, 4, NULL}},
};

int64_t bed_logits(const xph_head *head, int64_t heads)
{
    return head[heads - 1].first + head[heads - 1].count;
}

int32_t *bed_actions(const xph_head *head, int64_t heads, int64_t rows)
{
    int32_t *actions = case_alloc((size_t)(rows * heads) * sizeof *actions);
    for (int64_t i = 0; i < rows * heads; i++) {
        const xph_head *h = &head[i % heads];
        actions[i] = (int32_t)case_below(h->kind == EXPHIL_BERNOULLI ? (int64_t)1 << h->count : h->count);
    }
    return actions;
}

double *bed_numbers(xph_type type, int64_t count, double reach)
{
    double *x = case_random(count, -reach, reach);
    for (int64_t i = 0; i < count; i++) x[i] = device_rounded(type, x[i]);
    return x;
}

bed_layer bed_layer_make(const bed_shape *s, xph_type type)
{
    bed_layer l = {.s = *s, .type = type};
    if (!s->head) l.s.head = bed_heads;
    l.logits = bed_logits(l.s.head, s->heads);
    const int64_t weights = l.logits * s->width;
    l.z = bed_numbers(type, s->rows * s->width, 2);
    l.v = bed_numbers(XPH_F32, weights, 0.5);
    l.bias = bed_numbers(XPH_F32, l.logits, 1);
    l.e = s->chained ? bed_numbers(XPH_F32, weights, 0.5) : NULL;
    l.base = s->based ? bed_numbers(type, s->rows * l.logits, 1) : NULL;
    l.dy = bed_numbers(type, s->rows * l.logits, 1);
    l.dv = bed_numbers(XPH_F32, weights, 1);
    l.dbias = bed_numbers(XPH_F32, l.logits, 1);
    l.de = bed_numbers(XPH_F32, weights, 1);
    l.actions = bed_actions(l.s.head, s->heads, s->rows);
    return l;
}

xph_heads_args bed_args(const bed_layer *l)
{
    return (xph_heads_args){.rows = l->s.rows,
                            .width = l->s.width,
                            .heads = l->s.heads,
                            .logits = l->logits,
                            .head = l->s.head,
                            .actions = l->s.chained ? l->actions : NULL,
                            .lda = l->s.heads};
}

kt_case bed_forward(const bed_layer *l)
{
    const bed_shape *s = &l->s;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_heads_args, z, ldz, s->rows, s->width, KT_IN, l->z, NULL),
        KT_FLAT(xph_heads_args, v, l->logits, s->width, KT_IN, l->v, NULL),
        KT_FLAT(xph_heads_args, bias, 1, l->logits, KT_IN, l->bias, NULL),
        KT_FLAT(xph_heads_args, e, l->logits, s->width, KT_IN, l->e, NULL),
        KT_FIELD(xph_heads_args, base, ldbase, s->rows, l->logits, KT_IN, l->base, NULL),
        KT_FIELD(xph_heads_args, y, ldy, s->rows, l->logits, KT_OUT, NULL, NULL),
    };
    const xph_heads_args args = bed_args(l);
    return KT_CASE("heads", XPH_OP_HEADS, args, KT_DENSE, tensors, s->pad);
}

kt_case bed_gradient(const bed_layer *l)
{
    const bed_shape *s = &l->s;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_heads_grad_args, fwd.z, fwd.ldz, s->rows, s->width, KT_IN, l->z, NULL),
        KT_FLAT(xph_heads_grad_args, fwd.v, l->logits, s->width, KT_IN, l->v, NULL),
        KT_FLAT(xph_heads_grad_args, fwd.bias, 1, l->logits, KT_IN, l->bias, NULL),
        KT_FLAT(xph_heads_grad_args, fwd.e, l->logits, s->width, KT_IN, l->e, NULL),
        KT_FIELD(xph_heads_grad_args, dy, lddy, s->rows, l->logits, KT_IN, l->dy, NULL),
        KT_FIELD(xph_heads_grad_args, dz, lddz, s->rows, s->width, KT_OUT, NULL, NULL),
        KT_FLAT(xph_heads_grad_args, dv, l->logits, s->width, KT_ADD, l->dv, NULL),
        KT_FLAT(xph_heads_grad_args, dbias, 1, l->logits, KT_ADD, l->dbias, NULL),
        KT_FLAT(xph_heads_grad_args, de, l->logits, s->width, s->chained ? KT_ADD : KT_IN,
                s->chained ? l->de : NULL, NULL),
    };
    const xph_heads_grad_args args = {.fwd = bed_args(l)};
    return KT_CASE("heads_grad", XPH_OP_HEADS_GRAD, args, offsetof(xph_heads_grad_args, scratch), tensors,
                   s->pad);
}
