/* AdamW over one arena: elements are independent, in items of ITEM elements. The two halves of an arena, with
 * and without decay, may meet inside an item.
 *
 * Step: m unbias1 / (sqrt(v unbias2) + epsilon). In single precision the quotient is made of multiplications:
 * the unit that divides also computes the roots, and both take ten times as long as anything else here. */
#include "cpu/kernels/real.h"
#include "cpu/simd/vec.h"
#include "device/settle.h"

/* FAR: elements whose four arrays no longer fit the last cache; AHEAD: bytes. */
enum { ITEM = 16384, FAR = 1 << 21, AHEAD = 4096 };

static int64_t adam_items(const void *args)
{
    const xph_adam_args *a = args;
    return blocks_of(a->count, ITEM);
}

#if defined(XPH_REAL_F32)
/* 1 / x for positive normal x, within 1.3 * 2^-24 of it: the exponent negated gives it within 5.1 %, an
 * iteration of third order within 1.3e-4, one of second order the rest. NaN and infinity give NaN. */
XPH_INLINE vec vec_inverse(vec x)
{
    const vec one = vec_all(1.0f);
    vec r = (vec)(0x7ef311c0u - (vec_bits)x), e = vec_fma(-x, r, one);
    r = vec_fma(r, vec_fma(e, e, e), r);
    return vec_fma(r, vec_fma(-x, r, one), r);
}
#else
XPH_INLINE vec vec_inverse(vec x)
{
    return vec_all(R(1.0)) / x;
}
#endif

/* What is the same for all elements; take: 1 - beta, scaled by that of the gradient. */
typedef struct rates {
    real keep1, keep2, take1, take2, scale, unbias1, unbias2, epsilon, rate, decay;
} rates;

static xph_rates live(const xph_adam_args *a)
{
    if (a->given) return xph_live_rates(a->given, a->control);
    return (xph_rates){a->rate, a->correction1, a->correction2, a->ema_decay};
}

static rates rates_of(const xph_adam_args *a)
{
    const xph_rates r = live(a);
    return (rates){(real)a->beta1,
                   (real)a->beta2,
                   (real)(1.0 - a->beta1),
                   (real)(1.0 - a->beta2),
                   (real)(a->given ? a->control->grad_scale : a->grad_scale),
                   (real)(1.0 / r.correction1),
                   (real)(1.0 / r.correction2),
                   (real)a->epsilon,
                   (real)r.rate,
                   (real)a->decay};
}

/* New p of VEC elements; m and v in place. */
XPH_INLINE vec adam_step(vec p, vec grad, vec *m, vec *v, const rates *k, real decay)
{
    vec g = grad * vec_all(k->scale);
    *m = vec_fma(vec_all(k->take1), g, vec_all(k->keep1) * *m);
    *v = vec_fma(vec_all(k->take2) * g, g, vec_all(k->keep2) * *v);
    vec below = vec_sqrt(*v * vec_all(k->unbias2)) + vec_all(k->epsilon);
    vec step = *m * vec_all(k->unbias1) * vec_inverse(below);
    return vec_fma(vec_all(-k->rate), vec_fma(vec_all(decay), p, step), p);
}

/* Prefetches what comes later of an arena from memory (a third less time; from a cache it would only disturb):
 * addresses alone, nothing is read. */
XPH_INLINE void prefetch_ahead(const xph_adam_args *a, int64_t at)
{
    const real *arrays[] = {a->p, a->m, a->v, a->grad};
    for (int i = 0; i < 4; i++) __builtin_prefetch((const void *)((uintptr_t)(arrays[i] + at) + AHEAD), 0, 2);
}

/* Elements [begin, end) with one decay. */
static void adam_range(const xph_adam_args *a, int64_t begin, int64_t end, real decay)
{
    const rates k = rates_of(a);
    const real *grad = a->grad;
    real *p = a->p, *m = a->m, *v = a->v;
    int64_t at = begin, left;
    for (; at + VEC <= end; at += VEC) {
        if (a->count >= FAR) prefetch_ahead(a, at);
        vec first = vec_load(m + at), second = vec_load(v + at);
        vec_store(p + at, adam_step(vec_load(p + at), vec_load(grad + at), &first, &second, &k, decay));
        vec_store(m + at, first);
        vec_store(v + at, second);
    }
    if ((left = end - at) <= 0) return;
    vec first = vec_load_part(m + at, left), second = vec_load_part(v + at, left);
    vec next =
        adam_step(vec_load_part(p + at, left), vec_load_part(grad + at, left), &first, &second, &k, decay);
    vec_store_part(p + at, next, left);
    vec_store_part(m + at, first, left);
    vec_store_part(v + at, second, left);
}

static void ema_range(const xph_adam_args *a, int64_t begin, int64_t end)
{
    const real *restrict p = a->p;
    real *restrict ema = a->ema;
    const double decay = live(a).ema_decay;
    const real keep = (real)decay, take = (real)(1.0 - decay);
    XPH_VECTOR
    for (int64_t i = begin; i < end; i++) ema[i] = FMA(take, p[i], keep * ema[i]);
}

static void adam_run(const void *args, int64_t begin, int64_t end)
{
    const xph_adam_args *a = args;
    int64_t from = begin * ITEM, to = int_min(a->count, end * ITEM);
    if (a->given && a->control->verdict != XPH_UPDATE_DONE) return;
    for (; from < to; from += ITEM) {
        int64_t stop = int_min(to, from + ITEM), middle = int_min(stop, int_max(from, a->decay_count));
        adam_range(a, from, middle, (real)a->decay);
        adam_range(a, middle, stop, R(0.0));
        if (a->ema) ema_range(a, from, stop);
    }
}

const xph_candidate XPH_LIST(adam)[] = {
    {.name = XPH_LABEL("adam"), .phase = {{adam_items, adam_run}}},
    XPH_LIST_END,
};
