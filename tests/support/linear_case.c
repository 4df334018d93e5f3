#include "linear_case.h"

linear_layer linear_layer_make(const linear_shape *s)
{
    linear_layer l = {.s = *s};
    l.x = case_random(s->rows * s->in, -1, 1);
    l.w = case_random(s->out * s->in, -1, 1);
    l.bias = s->bias ? case_random(s->out, -1, 1) : NULL;
    l.residual = s->residual ? case_random(s->rows * s->out, -2, 2) : NULL;
    l.dy = case_random(s->rows * s->out, -1, 1);
    return l;
}

linear_layer linear_row_of(const linear_layer *all, int64_t row)
{
    linear_layer one = *all;
    one.s.rows = 1;
    one.x += row * one.s.in;
    if (one.residual) one.residual += row * one.s.out;
    return one;
}

kt_case linear_case(const linear_layer *l)
{
    const linear_shape *s = &l->s;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_linear_args, x, ldx, s->rows, s->in, KT_IN, l->x, NULL),
        KT_FLAT(xph_linear_args, w, s->out, s->in, KT_IN, l->w, NULL),
        KT_FLAT(xph_linear_args, bias, 1, s->out, KT_IN, l->bias, NULL),
        KT_FIELD(xph_linear_args, residual, ldr, s->rows, s->out, KT_IN, l->residual, NULL),
        KT_FIELD(xph_linear_args, y, ldy, s->rows, s->out, KT_ADD, l->residual, l->y),
    };
    const xph_linear_args args = {.rows = s->rows, .in = s->in, .out = s->out};
    kt_case c = KT_CASE("linear", XPH_OP_LINEAR, args, KT_DENSE, tensors, s->pad);
    c.tolerance64 = 1e-13;
    c.tolerance32 = 3e-6;
    return c;
}

void linear_in_place(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_linear_args *args = given;
    if (!args->residual) return;
    args->residual = args->y;
    args->ldr = args->ldy;
}

kt_case linear_gradient_case(const linear_layer *l, const double *dx, const double *dw, const double *dbias)
{
    int64_t rows = l->s.rows, in = l->s.in, out = l->s.out;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_linear_grad_args, x, ldx, rows, in, KT_IN, l->x, NULL),
        KT_FLAT(xph_linear_grad_args, w, out, in, KT_IN, l->w, NULL),
        KT_FIELD(xph_linear_grad_args, dy, lddy, rows, out, KT_IN, l->dy, NULL),
        KT_FIELD(xph_linear_grad_args, dx, lddx, rows, in, KT_ADD, dx, NULL),
        KT_FLAT(xph_linear_grad_args, dw, out, in, KT_ADD, dw, NULL),
        KT_FLAT(xph_linear_grad_args, dbias, 1, out, KT_ADD, dbias, NULL),
    };
    const xph_linear_grad_args args = {.rows = rows, .in = in, .out = out, .dx_add = dx != NULL};
    kt_case c = KT_CASE("linear_grad", XPH_OP_LINEAR_GRAD, args, offsetof(xph_linear_grad_args, scratch),
                        tensors, l->s.pad);
    c.tolerance64 = 1e-6;
    c.tolerance32 = 3e-5;
    return c;
}

static void without(kt_tensor *t)
{
    t->role = KT_IN;
    t->x = NULL;
}

void linear_without_dx(kt_case *c)
{
    without(&c->tensors[LINEAR_DX]);
}

void linear_without_dw(kt_case *c)
{
    without(&c->tensors[LINEAR_DW]);
    without(&c->tensors[LINEAR_DBIAS]);
}
