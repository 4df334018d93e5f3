/* Layers and cases for the tests of the selective scan. */
#include "scan_case.h"

#include <math.h>

scan_layer scan_layer_make(const scan_shape *s)
{
    scan_layer l = {.s = *s, .rows = s->batch * s->time, .state = s->width * s->states};
    l.x = case_random(l.rows * s->width, -2, 2);
    l.dt = case_random(l.rows * s->width, -4, 2);
    l.a_log = case_random(l.state, -1, 2);
    l.b = case_random(l.rows * s->states, -1, 1);
    l.c = case_random(l.rows * s->states, -1, 1);
    l.skip = s->skip ? case_random(s->width, -1, 1) : NULL;
    l.z = s->gate ? case_random(l.rows * s->width, -2, 2) : NULL;
    l.in = s->carried ? case_random(s->batch * l.state, -1, 1) : NULL;
    l.dout = s->carried ? case_random(s->batch * l.state, -1, 1) : NULL;
    l.dy = case_random(l.rows * s->width, -1, 1);
    l.bias = (s->width + s->time) % 2 ? case_random(s->width, -1, 1) : NULL;
    l.reset = kt_resets(l.rows, s->resets);
    return l;
}

scan_layer scan_layer_fixed(const scan_shape *s)
{
    scan_layer l = scan_layer_make(s);
    l.fixed = true;
    for (int64_t i = 0; i < l.state; i++) l.a_log[i] = log((double)(i % s->states + 1));
    return l;
}

static xph_scan_args args_of(const scan_layer *l)
{
    const scan_shape *s = &l->s;
    return (xph_scan_args){.batch = s->batch,
                           .time = s->time,
                           .width = s->width,
                           .states = s->states,
                           .reset = l->reset,
                           .fixed = l->fixed};
}

scan_layer scan_frame_of(const scan_layer *all, int64_t row)
{
    scan_layer one = *all;
    one.s.batch = one.s.time = one.rows = 1;
    one.x += row * one.s.width;
    one.dt += row * one.s.width;
    one.b += row * one.s.states;
    one.c += row * one.s.states;
    if (one.z) one.z += row * one.s.width;
    if (one.reset) one.reset += row;
    return one;
}

kt_case scan_case(const scan_layer *l)
{
    const scan_shape *s = &l->s;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_scan_args, x, ldx, l->rows, s->width, KT_IN, l->x, NULL),
        KT_FIELD(xph_scan_args, dt, lddt, l->rows, s->width, KT_IN, l->dt, NULL),
        KT_FLAT(xph_scan_args, delta_bias, 1, s->width, KT_IN, l->bias, NULL),
        KT_FLAT(xph_scan_args, a_log, s->width, s->states, KT_IN, l->fixed ? NULL : l->a_log, NULL),
        KT_FIELD(xph_scan_args, b, ldb, l->rows, s->states, KT_IN, l->b, NULL),
        KT_FIELD(xph_scan_args, c, ldc, l->rows, s->states, KT_IN, l->c, NULL),
        KT_FLAT(xph_scan_args, skip, 1, s->width, KT_IN, l->skip, NULL),
        KT_FIELD(xph_scan_args, z, ldz, l->rows, s->width, KT_IN, l->z, NULL),
        KT_FIELD(xph_scan_args, y, ldy, l->rows, s->width, KT_OUT, NULL, l->y),
        KT_FIELD(xph_scan_args, state_out, ld_state, s->batch, l->state, KT_OUT, NULL, l->out),
        KT_FIELD(xph_scan_args, state_in, ld_state, s->batch, l->state, KT_IN, l->in, NULL),
    };
    const xph_scan_args args = args_of(l);
    kt_case c = KT_CASE("scan", XPH_OP_SCAN, args, offsetof(xph_scan_args, scratch), tensors, s->pad);
    c.tolerance64 = 1e-12;
    c.tolerance32 = 5e-6;
    return c;
}

static void in_place(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_scan_args *args = given;
    args->state_in = args->state_out;
}

kt_case scan_case_carried(const scan_layer *l, const double *carried)
{
    kt_case c = scan_case(l);
    c.tensors[SCAN_STATE].role = KT_ADD;
    c.tensors[SCAN_STATE].x = carried;
    c.count = SCAN_STATE + 1;
    c.prepare = in_place;
    return c;
}

kt_case scan_gradient_case(const scan_layer *l)
{
    const scan_shape *s = &l->s;
    int64_t rows = l->rows, width = s->width, states = s->states;
    double *da = l->fixed ? NULL : case_random(l->state, -1, 1);
    double *dskip = l->skip ? case_random(width, -1, 1) : NULL;
    double *dbias = l->bias ? case_random(width, -1, 1) : NULL;
    double *dz = l->z ? case_random(rows * width, 5, 6) : NULL;
    double *din = l->in ? case_zeros(s->batch * l->state) : NULL;
    const int32_t role_z = l->z ? KT_ADD : KT_IN, role_skip = l->skip ? KT_ADD : KT_IN,
                  role_in = l->in ? KT_ADD : KT_IN;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_scan_grad_args, fwd.x, fwd.ldx, rows, width, KT_IN, l->x, NULL),
        KT_FIELD(xph_scan_grad_args, fwd.dt, fwd.lddt, rows, width, KT_IN, l->dt, NULL),
        KT_FLAT(xph_scan_grad_args, fwd.delta_bias, 1, width, KT_IN, l->bias, NULL),
        KT_FLAT(xph_scan_grad_args, fwd.a_log, width, states, KT_IN, l->fixed ? NULL : l->a_log, NULL),
        KT_FIELD(xph_scan_grad_args, fwd.b, fwd.ldb, rows, states, KT_IN, l->b, NULL),
        KT_FIELD(xph_scan_grad_args, fwd.c, fwd.ldc, rows, states, KT_IN, l->c, NULL),
        KT_FLAT(xph_scan_grad_args, fwd.skip, 1, width, KT_IN, l->skip, NULL),
        KT_FIELD(xph_scan_grad_args, fwd.z, fwd.ldz, rows, width, KT_IN, l->z, NULL),
        KT_FIELD(xph_scan_grad_args, fwd.state_in, fwd.ld_state, s->batch, l->state, KT_IN, l->in, NULL),
        KT_FIELD(xph_scan_grad_args, dstate_out, fwd.ld_state, s->batch, l->state, KT_IN, l->dout, NULL),
        KT_FIELD(xph_scan_grad_args, dy, lddy, rows, width, KT_IN, l->dy, NULL),
        KT_FIELD(xph_scan_grad_args, dx, lddx, rows, width, KT_OUT, NULL, NULL),
        KT_FIELD(xph_scan_grad_args, ddt, ldddt, rows, width, KT_OUT, NULL, NULL),
        KT_FIELD(xph_scan_grad_args, db, lddb, rows, states, KT_OUT, NULL, NULL),
        KT_FIELD(xph_scan_grad_args, dc, lddc, rows, states, KT_OUT, NULL, NULL),
        KT_FIELD(xph_scan_grad_args, dz, lddz, rows, width, role_z, dz, NULL),
        KT_FLAT(xph_scan_grad_args, da_log, width, states, l->fixed ? KT_IN : KT_ADD, da, NULL),
        KT_FLAT(xph_scan_grad_args, dskip, 1, width, role_skip, dskip, NULL),
        KT_FLAT(xph_scan_grad_args, ddelta_bias, 1, width, l->bias ? KT_ADD : KT_IN, dbias, NULL),
        KT_FIELD(xph_scan_grad_args, dstate_in, fwd.ld_state, s->batch, l->state, role_in, din, NULL),
    };
    const xph_scan_grad_args args = {.fwd = args_of(l)};
    kt_case c =
        KT_CASE("scan_grad", XPH_OP_SCAN_GRAD, args, offsetof(xph_scan_grad_args, scratch), tensors, s->pad);
    c.tolerance64 = 1e-6;
    c.tolerance32 = 3e-5;
    return c;
}
