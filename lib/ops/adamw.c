/* One step of AdamW. */
#include "ops/ops.h"

static double or_else(double given, double usual)
{
    return given == 0.0 ? usual : given;
}

static void check(xph_call *call, const exphil_adamw_args *a)
{
    const double large = 1e30, below_one = 1.0 - 0x1p-53;
    xph_take_count(call, "count", a->count, 0, (int64_t)1 << 44);
    xph_take_count(call, "step", a->step, 1, INT64_MAX);
    xph_take_real(call, "rate", a->rate, 0.0, large);
    xph_take_real(call, "beta1", a->beta1, 0.0, below_one);
    xph_take_real(call, "beta2", a->beta2, 0.0, below_one);
    xph_take_real(call, "epsilon", or_else(a->epsilon, 1e-8), 1e-30, 1e6);
    xph_take_real(call, "decay", a->decay, 0.0, large);
    xph_take_real(call, "grad_scale", a->grad_scale, -large, large);
    xph_take_real(call, "average_decay", a->average_decay, 0.0, 1.0);
}

exphil_status xph_describe_adamw(xph_call *call, const void *given)
{
    const uint32_t both = XPH_READ | XPH_WRITE;
    exphil_adamw_args a = EXPHIL_ADAMW_ARGS_INIT;
    XPH_TRY(XPH_TAKE(exphil_adamw_args, &a, (const exphil_adamw_args *)given, call->error));
    check(call, &a);
    XPH_TRY(call->status);
    xph_adam_args *to = &call->args.adam;
    *to = (xph_adam_args){.count = a.count,
                          .decay_count = a.count,
                          .rate = a.rate,
                          .beta1 = or_else(a.beta1, 0.9),
                          .beta2 = or_else(a.beta2, 0.999),
                          .epsilon = or_else(a.epsilon, 1e-8),
                          .decay = a.decay,
                          .grad_scale = or_else(a.grad_scale, 1.0),
                          .ema_decay = a.average_decay};
    to->correction1 = 1.0 - xph_whole_power(to->beta1, a.step);
    to->correction2 = 1.0 - xph_whole_power(to->beta2, a.step);
    call->kernel_op = XPH_OP_ADAM;
    call->frames = a.count;
    xph_take_matrix(call, "p", &a.p, both | XPH_REQUIRED, 0, 1, a.count, &to->p);
    xph_take_matrix(call, "m", &a.m, both | XPH_REQUIRED, 0, 1, a.count, &to->m);
    xph_take_matrix(call, "v", &a.v, both | XPH_REQUIRED, 0, 1, a.count, &to->v);
    xph_take_matrix(call, "grad", &a.grad, XPH_READ | XPH_REQUIRED, 0, 1, a.count, &to->grad);
    xph_take_matrix(call, "average", &a.average, both, 0, 1, a.count, &to->ema);
    return call->status;
}
