/* Layers and cases for the tests of the selective scan. */
#include "scan_case.h"

#include <string.h>

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

void scan_in_place(const kt_case *c, const xph_kernel_set *set, void *given)
{
    xph_scan_args *args = given;
    args->state_in = args->state_out;
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

kt_case scan_case(const scan_layer *l, kt_tensor tensors[KT_MOST], xph_scan_args *args)
{
    const scan_shape *s = &l->s;
    const kt_tensor list[] = {
        KT_FIELD(xph_scan_args, x, ldx, l->rows, s->width, KT_IN, l->x, NULL),
        KT_FIELD(xph_scan_args, dt, lddt, l->rows, s->width, KT_IN, l->dt, NULL),
        KT_FLAT(xph_scan_args, delta_bias, 1, s->width, KT_IN, l->bias, NULL),
        KT_FLAT(xph_scan_args, a_log, s->width, s->states, KT_IN, l->a_log, NULL),
        KT_FIELD(xph_scan_args, b, ldb, l->rows, s->states, KT_IN, l->b, NULL),
        KT_FIELD(xph_scan_args, c, ldc, l->rows, s->states, KT_IN, l->c, NULL),
        KT_FLAT(xph_scan_args, skip, 1, s->width, KT_IN, l->skip, NULL),
        KT_FIELD(xph_scan_args, z, ldz, l->rows, s->width, KT_IN, l->z, NULL),
        KT_FIELD(xph_scan_args, y, ldy, l->rows, s->width, KT_OUT, NULL, l->y),
        KT_FIELD(xph_scan_args, state_out, ld_state, s->batch, l->state, KT_OUT, NULL, l->out),
        KT_FIELD(xph_scan_args, state_in, ld_state, s->batch, l->state, KT_IN, l->in, NULL),
    };
    memcpy(tensors, list, sizeof list);
    *args = (xph_scan_args){
        .batch = s->batch, .time = s->time, .width = s->width, .states = s->states, .reset = l->reset};
    return (kt_case){"scan",  XPH_OP_SCAN, args,   sizeof *args, offsetof(xph_scan_args, scratch),
                     tensors, 11,          s->pad, 1e-12,        5e-6,
                     NULL,    NULL};
}

kt_case scan_gradient_case(const scan_layer *l, scan_gradient *g)
{
    const scan_shape *s = &l->s;
    int64_t rows = l->rows, width = s->width, states = s->states;
    g->da = case_random(l->state, -1, 1);
    g->dskip = l->skip ? case_random(width, -1, 1) : NULL;
    g->dbias = l->bias ? case_random(width, -1, 1) : NULL;
    double *dz = l->z ? case_random(rows * width, 5, 6) : NULL;
    double *din = l->in ? case_zeros(s->batch * l->state) : NULL;
    const int32_t role_z = l->z ? KT_ADD : KT_IN, role_skip = l->skip ? KT_ADD : KT_IN,
                  role_in = l->in ? KT_ADD : KT_IN;
    const kt_tensor tensors[SCAN_GRADIENTS] = {
        KT_FIELD(xph_scan_grad_args, fwd.x, fwd.ldx, rows, width, KT_IN, l->x, NULL),
        KT_FIELD(xph_scan_grad_args, fwd.dt, fwd.lddt, rows, width, KT_IN, l->dt, NULL),
        KT_FLAT(xph_scan_grad_args, fwd.delta_bias, 1, width, KT_IN, l->bias, NULL),
        KT_FLAT(xph_scan_grad_args, fwd.a_log, width, states, KT_IN, l->a_log, NULL),
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
        KT_FLAT(xph_scan_grad_args, da_log, width, states, KT_ADD, g->da, NULL),
        KT_FLAT(xph_scan_grad_args, dskip, 1, width, role_skip, g->dskip, NULL),
        KT_FLAT(xph_scan_grad_args, ddelta_bias, 1, width, l->bias ? KT_ADD : KT_IN, g->dbias, NULL),
        KT_FIELD(xph_scan_grad_args, dstate_in, fwd.ld_state, s->batch, l->state, role_in, din, NULL),
    };
    memcpy(g->tensors, tensors, sizeof tensors);
    g->args = (xph_scan_grad_args){
        .fwd = {.batch = s->batch, .time = s->time, .width = width, .states = states, .reset = l->reset}};
    return (kt_case){.name = "scan_grad",
                     .op = XPH_OP_SCAN_GRAD,
                     .args = &g->args,
                     .args_bytes = sizeof g->args,
                     .scratch_at = offsetof(xph_scan_grad_args, scratch),
                     .tensors = g->tensors,
                     .count = SCAN_GRADIENTS,
                     .pad = s->pad,
                     .tolerance64 = 1e-6,
                     .tolerance32 = 3e-5};
}
