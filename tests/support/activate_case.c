#include "activate_case.h"

#include <math.h>

const double activate_low = -1.25, activate_high = 0.5;

static double gelu_inner(double x)
{
    return 2.0 * sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x);
}

double activate_of(int32_t kind, double x)
{
    switch (kind) {
    case XPH_ACTIVATE_RELU:
        return x > 0 ? x : 0;
    case XPH_ACTIVATE_GELU_TANH:
        return x / (1 + exp(-gelu_inner(x)));
    case XPH_ACTIVATE_CLAMP:
        return fmin(fmax(x, activate_low), activate_high);
    default:
        return x / (1 + exp(-x));
    }
}

double activate_slope(int32_t kind, double x)
{
    double inner = kind == XPH_ACTIVATE_SILU ? x : gelu_inner(x), s = 1 / (1 + exp(-inner)),
           rest = 1 / (1 + exp(inner));
    double steep =
        kind == XPH_ACTIVATE_SILU ? 1 : 2 * sqrt(2 / 3.14159265358979323846) * (1 + 0.134145 * x * x);
    if (kind == XPH_ACTIVATE_RELU) return x > 0;
    if (kind == XPH_ACTIVATE_CLAMP) return x > activate_low && x < activate_high;
    return s + x * s * rest * steep;
}

static kt_case forward_case(const xph_activate_args *args, const double *x)
{
    int64_t count = args->count;
    double *want = case_zeros(count);
    for (int64_t i = 0; i < count; i++) want[i] = activate_of(args->kind, x[i]);
    const kt_tensor tensors[] = {KT_FLAT(xph_activate_args, x, 1, count, KT_IN, x, NULL),
                                 KT_FLAT(xph_activate_args, y, 1, count, KT_OUT, NULL, want)};
    return KT_CASE("activate", XPH_OP_ACTIVATE, *args, KT_DENSE, tensors, 0);
}

kt_case activate_case(int32_t kind, const double *x, const double *dy, int64_t count)
{
    const xph_activate_args fwd = {.kind = kind, .count = count, .low = activate_low, .high = activate_high};
    const xph_activate_grad_args args = {.fwd = fwd};
    kt_case c = forward_case(&fwd, x);
    if (dy) {
        double *want = case_zeros(count);
        for (int64_t i = 0; i < count; i++) want[i] = dy[i] * activate_slope(kind, x[i]);
        const kt_tensor tensors[] = {KT_FLAT(xph_activate_grad_args, fwd.x, 1, count, KT_IN, x, NULL),
                                     KT_FLAT(xph_activate_grad_args, dy, 1, count, KT_IN, dy, NULL),
                                     KT_FLAT(xph_activate_grad_args, dx, 1, count, KT_OUT, NULL, want)};
        c = KT_CASE("activate_grad", XPH_OP_ACTIVATE_GRAD, args, KT_DENSE, tensors, 0);
    }
    c.tolerance64 = 1e-13;
    c.tolerance32 = 3e-6;
    return c;
}
