/* LayerNorm, with SiLU or without, and its gradient. */
#include "ops/ops.h"

static void take_inputs(xph_call *call, const exphil_norm_args *a, xph_norm_args *to, bool backward)
{
    const uint32_t must = XPH_READ | XPH_REQUIRED;
    *to = (xph_norm_args){.act = a->silu ? XPH_ACT_SILU : XPH_ACT_NONE,
                          .rows = a->batch * a->frames,
                          .width = a->width,
                          .epsilon = a->epsilon == 0.0 ? 1e-5 : a->epsilon,
                          .ldy = a->width};
    xph_take_rows(call, "x", &a->x, must, 0, a->width, &to->x, &to->ldx);
    xph_take_matrix(call, "gain", &a->gain, must, 0, 1, a->width, &to->gain);
    xph_take_matrix(call, "shift", &a->shift, must, 0, 1, a->width, &to->shift);
    xph_take_saved(call, a->saved, a->saved_bytes, 2 * to->rows, backward, &to->saved);
}

static void take_forward(xph_call *call, const exphil_norm_args *a)
{
    xph_norm_args *to = &call->args.norm;
    call->kernel_op = XPH_OP_NORM;
    take_inputs(call, a, to, false);
    xph_take_rows(call, "y", &a->y, XPH_WRITE | XPH_REQUIRED, 0, a->width, &to->y, &to->ldy);
}

static void take_backward(xph_call *call, const exphil_norm_args *a)
{
    const uint32_t adds = XPH_ADDS | XPH_NEEDED;
    xph_norm_grad_args *to = &call->args.norm_grad;
    *to = (xph_norm_grad_args){.scratch = NULL};
    call->kernel_op = XPH_OP_NORM_GRAD;
    take_inputs(call, a, &to->fwd, true);
    xph_take_rows(call, "dy", &a->dy, XPH_READ | XPH_REQUIRED, 0, a->width, &to->dy, &to->lddy);
    xph_take_rows(call, "dx", &a->dx, XPH_WRITE, XPH_NEEDED, a->width, &to->dx, &to->lddx);
    xph_take_matrix(call, "dgain", &a->dgain, XPH_WRITE, adds, 1, a->width, &to->dgain);
    xph_take_matrix(call, "dshift", &a->dshift, XPH_WRITE, adds, 1, a->width, &to->dshift);
    call->scratch_slot = &to->scratch;
}

exphil_status xph_describe_norm(xph_call *call, const void *given)
{
    exphil_norm_args taken = EXPHIL_NORM_ARGS_INIT;
    XPH_TRY(XPH_TAKE(exphil_norm_args, &taken, (const exphil_norm_args *)given, call->error));
    xph_take_count(call, "width", taken.width, 1, (int64_t)1 << 32);
    xph_take_real(call, "epsilon", taken.epsilon, 0.0, 1.0);
    xph_take_reserved(call, taken.reserved);
    xph_take_frames(call, taken.batch, taken.frames, xph_times(2, taken.width));
    XPH_TRY(call->status);
    if (call->op == EXPHIL_OP_NORM)
        take_forward(call, &taken);
    else
        take_backward(call, &taken);
    return call->status;
}
