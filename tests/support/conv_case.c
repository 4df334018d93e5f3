#include "conv_case.h"

conv_layer conv_layer_make(const conv_shape *s)
{
    conv_layer l = {.s = *s, .rows = s->batch * s->time, .state = (s->taps - 1) * s->width};
    l.x = case_random(l.rows * s->width, -2, 2);
    l.w = case_random(s->width * s->taps, -1, 1);
    l.bias = case_random(s->width, -1, 1);
    l.dy = case_random(l.rows * s->width, -1, 1);
    l.in = s->carried ? case_random(s->batch * l.state, -2, 2) : NULL;
    l.dout = s->carried ? case_random(s->batch * l.state, -1, 1) : NULL;
    l.reset = kt_resets(l.rows, s->resets);
    return l;
}

conv_layer conv_frames_of(const conv_layer *all, int64_t row, int64_t frames)
{
    conv_layer some = *all;
    some.s.batch = 1;
    some.s.time = some.rows = frames;
    some.x += row * all->s.width;
    if (some.reset) some.reset += row;
    return some;
}

static xph_conv_args args_of(const conv_layer *l)
{
    const conv_shape *s = &l->s;
    return (xph_conv_args){
        .batch = s->batch, .time = s->time, .width = s->width, .taps = s->taps, .reset = l->reset};
}

kt_case conv_case(const conv_layer *l)
{
    const conv_shape *s = &l->s;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_conv_args, x, ldx, l->rows, s->width, KT_IN, l->x, NULL),
        KT_FLAT(xph_conv_args, w, s->width, s->taps, KT_IN, l->w, NULL),
        KT_FLAT(xph_conv_args, bias, 1, s->width, KT_IN, l->bias, NULL),
        KT_FIELD(xph_conv_args, y, ldy, l->rows, s->width, KT_OUT, NULL, l->y),
        KT_FIELD(xph_conv_args, state_out, ld_state, s->batch, l->state, KT_OUT, NULL, l->out),
        KT_FIELD(xph_conv_args, state_in, ld_state, s->batch, l->state, KT_IN, l->in, NULL),
    };
    const xph_conv_args args = args_of(l);
    kt_case c = KT_CASE("conv", XPH_OP_CONV, args, KT_DENSE, tensors, s->pad);
    c.tolerance64 = 1e-13;
    c.tolerance32 = 3e-6;
    return c;
}

static void in_place(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_conv_args *args = given;
    args->state_in = args->state_out;
}

kt_case conv_case_carried(const conv_layer *l, const double *carried)
{
    kt_case c = conv_case(l);
    c.tensors[CONV_STATE].role = KT_ADD;
    c.tensors[CONV_STATE].x = carried;
    c.count = CONV_STATE + 1;
    c.prepare = in_place;
    return c;
}

kt_case conv_gradient_case(const conv_layer *l, const double *dw, const double *dbias)
{
    const conv_shape *s = &l->s;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_conv_grad_args, fwd.x, fwd.ldx, l->rows, s->width, KT_IN, l->x, NULL),
        KT_FLAT(xph_conv_grad_args, fwd.w, s->width, s->taps, KT_IN, l->w, NULL),
        KT_FLAT(xph_conv_grad_args, fwd.bias, 1, s->width, KT_IN, l->bias, NULL),
        KT_FIELD(xph_conv_grad_args, fwd.state_in, fwd.ld_state, s->batch, l->state, KT_IN, l->in, NULL),
        KT_FIELD(xph_conv_grad_args, dstate_out, fwd.ld_state, s->batch, l->state, KT_IN, l->dout, NULL),
        KT_FIELD(xph_conv_grad_args, dy, lddy, l->rows, s->width, KT_IN, l->dy, NULL),
        KT_FIELD(xph_conv_grad_args, dx, lddx, l->rows, s->width, KT_OUT, NULL, NULL),
        KT_FLAT(xph_conv_grad_args, dw, s->width, s->taps, KT_ADD, dw, NULL),
        KT_FLAT(xph_conv_grad_args, dbias, 1, s->width, KT_ADD, dbias, NULL),
        KT_FIELD(xph_conv_grad_args, dstate_in, fwd.ld_state, s->batch, l->state, KT_OUT, NULL, NULL),
    };
    const xph_conv_grad_args args = {.fwd = args_of(l)};
    kt_case c =
        KT_CASE("conv_grad", XPH_OP_CONV_GRAD, args, offsetof(xph_conv_grad_args, scratch), tensors, s->pad);
    if (!l->in) c.count = CONV_DIN; /* without a carried state nothing flows into one */
    c.tolerance64 = 1e-6;
    c.tolerance32 = 3e-5;
    return c;
}
