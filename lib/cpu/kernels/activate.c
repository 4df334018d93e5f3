/* Functions of single numbers over flat arrays, and their gradients. */
#include "cpu/kernels/real.h"
#include "cpu/simd/silu.h"

enum { ITEM = 16384 };

/* gelu(x) = x sigmoid(2 t), t = sqrt(2/pi) (x + 0.044715 x^3), which is x / 2 (1 + tanh(t)) without losing digits
 * where tanh is near -1. Beyond +-FAR sigmoid has ended and x^3 need not grow. */
#define TWICE_ROOT R(1.59576912160573071176) /* 2 sqrt(2/pi) */
#define CUBIC      R(0.044715)
#define FAR        R(30.0)

/* 2 t, and in *slope its derivative, of x within +-FAR. */
XPH_INLINE vec gelu_inner(vec x, vec *slope)
{
    const vec square = x * x, one = vec_all(R(1.0));
    *slope = vec_fma(square, vec_all(R(3.0) * CUBIC), one) * vec_all(TWICE_ROOT);
    return x * vec_fma(square, vec_all(CUBIC), one) * vec_all(TWICE_ROOT);
}

XPH_INLINE vec gelu_vec(vec x)
{
    vec slope;
    return x * vec_sigmoid(gelu_inner(vec_within(x, FAR), &slope));
}

XPH_INLINE vec gelu_slope_vec(vec x)
{
    vec c = vec_within(x, FAR), inner, slope;
    inner = gelu_inner(c, &slope);
    vec s = vec_sigmoid(inner), rest = vec_sigmoid(-inner);
    return vec_fma(c * slope, s * rest, s);
}

XPH_INLINE vec activate_vec(const xph_activate_args *a, vec x)
{
    switch (a->kind) {
    case XPH_ACTIVATE_RELU:
        return vec_at_least(x, vec_all(R(0.0)));
    case XPH_ACTIVATE_GELU_TANH:
        return gelu_vec(x);
    case XPH_ACTIVATE_CLAMP:
        return vec_at_most(vec_at_least(x, vec_all((real)a->low)), vec_all((real)a->high));
    default:
        return silu_vec(x);
    }
}

XPH_INLINE vec slope_vec(const xph_activate_args *a, vec x)
{
    const vec zero = vec_all(R(0.0)), one = vec_all(R(1.0));
    vec slope;
    switch (a->kind) {
    case XPH_ACTIVATE_RELU:
        return vec_where_greater(x, zero, one, zero);
    case XPH_ACTIVATE_GELU_TANH:
        return gelu_slope_vec(x);
    case XPH_ACTIVATE_CLAMP:
        slope = vec_where_greater(x, vec_all((real)a->low), one, zero);
        return vec_where_greater(vec_all((real)a->high), x, slope, zero);
    default:
        (void)silu_slope_vec(x, &slope);
        return slope;
    }
}

static int64_t activate_items(const void *args)
{
    return blocks_of(((const xph_activate_args *)args)->count, ITEM);
}

static void activate_run(const void *args, int64_t begin, int64_t end)
{
    const xph_activate_args *a = args;
    const real *x = a->x;
    real *y = a->y;
    int64_t at = begin * ITEM, last = int_min(a->count, end * ITEM);
    for (; at + VEC <= last; at += VEC) vec_store(y + at, activate_vec(a, vec_load(x + at)));
    if (at < last) vec_store_part(y + at, activate_vec(a, vec_load_part(x + at, last - at)), last - at);
}

static int64_t grad_items(const void *args)
{
    return activate_items(&((const xph_activate_grad_args *)args)->fwd);
}

static void grad_run(const void *args, int64_t begin, int64_t end)
{
    const xph_activate_grad_args *g = args;
    const xph_activate_args *a = &g->fwd;
    const real *x = a->x, *dy = g->dy;
    real *dx = g->dx;
    int64_t at = begin * ITEM, last = int_min(a->count, end * ITEM);
    for (; at + VEC <= last; at += VEC)
        vec_store(dx + at, vec_load(dy + at) * slope_vec(a, vec_load(x + at)));
    if (at >= last) return;
    vec slope = slope_vec(a, vec_load_part(x + at, last - at));
    vec_store_part(dx + at, vec_load_part(dy + at, last - at) * slope, last - at);
}

const xph_candidate XPH_LIST(activate)[] = {
    {.name = XPH_LABEL("activate"), .phase = {{activate_items, activate_run}}},
    XPH_LIST_END,
};
const xph_candidate XPH_LIST(activate_grad)[] = {
    {.name = XPH_LABEL("activate_grad"), .phase = {{grad_items, grad_run}}},
    XPH_LIST_END,
};
