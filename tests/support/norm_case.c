#include "norm_case.h"

norm_layer norm_layer_make(const norm_shape *s)
{
    norm_layer l = {.s = *s, .epsilon = 1e-5};
    l.x = case_random(s->rows * s->width, -1, 4);
    l.gain = case_random(s->width, -2, 2);
    l.shift = case_random(s->width, -1, 1);
    l.dy = case_random(s->rows * s->width, -1, 1);
    return l;
}

static xph_norm_args args_of(const norm_layer *l)
{
    return (xph_norm_args){.act = l->s.act, .rows = l->s.rows, .width = l->s.width, .epsilon = l->epsilon};
}

kt_case norm_case(const norm_layer *l)
{
    const norm_shape *s = &l->s;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_norm_args, x, ldx, s->rows, s->width, KT_IN, l->x, NULL),
        KT_FLAT(xph_norm_args, gain, 1, s->width, KT_IN, l->gain, NULL),
        KT_FLAT(xph_norm_args, shift, 1, s->width, KT_IN, l->shift, NULL),
        KT_FIELD(xph_norm_args, y, ldy, s->rows, s->width, KT_OUT, NULL, l->y),
        KT_FLAT(xph_norm_args, saved, s->rows, 2, KT_OUT, NULL, l->saved),
    };
    const xph_norm_args args = args_of(l);
    kt_case c = KT_CASE("norm", XPH_OP_NORM, args, KT_DENSE, tensors, s->pad);
    c.tolerance64 = 1e-12;
    c.tolerance32 = 5e-6;
    return c;
}

kt_case norm_case_of_row(const norm_layer *all, int64_t row)
{
    norm_layer one = *all;
    one.s.rows = 1;
    one.x += row * one.s.width;
    kt_case c = norm_case(&one);
    c.count = NORM_SAVED;
    return c;
}

kt_case norm_gradient_case(const norm_layer *l, const double *dx, const double *dgain, const double *dshift)
{
    int64_t rows = l->s.rows, width = l->s.width;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_norm_grad_args, fwd.x, fwd.ldx, rows, width, KT_IN, l->x, NULL),
        KT_FLAT(xph_norm_grad_args, fwd.gain, 1, width, KT_IN, l->gain, NULL),
        KT_FLAT(xph_norm_grad_args, fwd.shift, 1, width, KT_IN, l->shift, NULL),
        KT_FLAT(xph_norm_grad_args, fwd.saved, rows, 2, KT_IN, l->saved, NULL),
        KT_FIELD(xph_norm_grad_args, dy, lddy, rows, width, KT_IN, l->dy, NULL),
        KT_FIELD(xph_norm_grad_args, dx, lddx, rows, width, dx ? KT_ADD : KT_OUT, dx, NULL),
        KT_FLAT(xph_norm_grad_args, dgain, 1, width, KT_ADD, dgain, NULL),
        KT_FLAT(xph_norm_grad_args, dshift, 1, width, KT_ADD, dshift, NULL),
    };
    const xph_norm_grad_args args = {.fwd = args_of(l), .dx_add = dx != NULL};
    kt_case c = KT_CASE("norm_grad", XPH_OP_NORM_GRAD, args, offsetof(xph_norm_grad_args, scratch), tensors,
                        l->s.pad);
    c.tolerance64 = 1e-6;
    c.tolerance32 = 3e-5;
    return c;
}
