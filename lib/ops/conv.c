/* The causal depthwise convolution with SiLU and its gradient. */
#include "ops/ops.h"

static int take_inputs(xph_call *call, const exphil_conv_args *a, xph_conv_args *to)
{
    const uint32_t must = XPH_READ | XPH_REQUIRED;
    *to = (xph_conv_args){.batch = a->batch,
                          .time = a->frames,
                          .width = a->width,
                          .taps = a->taps,
                          .ld_state = (a->taps - 1) * a->width,
                          .ldy = a->width};
    xph_take_rows(call, "x", &a->x, must, 0, a->width, &to->x, &to->ldx);
    xph_take_matrix(call, "weight", &a->weight, must, 0, a->width, a->taps, &to->w);
    xph_take_matrix(call, "bias", &a->bias, XPH_READ, XPH_NEEDED, 1, a->width, &to->bias);
    xph_take_reset(call, &a->reset, &to->reset);
    return xph_take_state(call, "state_in", &a->state_in, XPH_READ, a->taps - 1, a->width, &to->state_in);
}

static void take_forward(xph_call *call, const exphil_conv_args *a)
{
    xph_conv_args *to = &call->args.conv;
    call->kernel_op = XPH_OP_CONV;
    call->carry[0] = take_inputs(call, a, to);
    call->carry[1] =
        xph_take_state(call, "state_out", &a->state_out, XPH_WRITE, a->taps - 1, a->width, &to->state_out);
    call->in_place = true;
    xph_take_rows(call, "y", &a->y, XPH_WRITE | XPH_REQUIRED, 0, a->width, &to->y, &to->ldy);
}

static void take_backward(xph_call *call, const exphil_conv_args *a)
{
    const uint32_t adds = XPH_ADDS | XPH_NEEDED;
    xph_conv_grad_args *to = &call->args.conv_grad;
    const int64_t older = a->taps - 1;
    *to = (xph_conv_grad_args){.scratch = NULL};
    call->kernel_op = XPH_OP_CONV_GRAD;
    (void)take_inputs(call, a, &to->fwd);
    xph_take_absent(call, "dstate_in", &a->dstate_in, "state_in", &a->state_in);
    xph_take_rows(call, "dy", &a->dy, XPH_READ | XPH_REQUIRED, 0, a->width, &to->dy, &to->lddy);
    call->carry[0] =
        xph_take_state(call, "dstate_out", &a->dstate_out, XPH_READ, older, a->width, &to->dstate_out);
    call->carry[1] =
        xph_take_state(call, "dstate_in", &a->dstate_in, XPH_WRITE, older, a->width, &to->dstate_in);
    xph_take_rows(call, "dx", &a->dx, XPH_WRITE, XPH_NEEDED, a->width, &to->dx, &to->lddx);
    xph_take_matrix(call, "dweight", &a->dweight, XPH_WRITE, adds, a->width, a->taps, &to->dw);
    xph_take_matrix(call, "dbias", &a->dbias, XPH_WRITE, adds, 1, a->width, &to->dbias);
    call->scratch_slot = &to->scratch;
}

exphil_status xph_describe_conv(xph_call *call, const void *given)
{
    exphil_conv_args taken = EXPHIL_CONV_ARGS_INIT;
    XPH_TRY(XPH_TAKE(exphil_conv_args, &taken, (const exphil_conv_args *)given, call->error));
    xph_take_count(call, "width", taken.width, 1, (int64_t)1 << 32);
    xph_take_count(call, "taps", taken.taps, 1, 256);
    xph_take_frames(call, taken.batch, taken.frames, xph_times(taken.width, taken.taps));
    XPH_TRY(call->status);
    if (call->op == EXPHIL_OP_CONV)
        take_forward(call, &taken);
    else
        take_backward(call, &taken);
    return call->status;
}
