/* AdamW over one arena: every element on its own, in items of ITEM elements. The two halves of an arena, with
 * and without decay, may meet inside an item. */
#include "cpu/ref/real.h"

enum { ITEM = 16384 };

static int64_t adam_items(const void *args)
{
    const xph_adam_args *a = args;
    return blocks_of(a->count, ITEM);
}

/* Elements [begin, end) with one decay. The corrections are applied as factors. */
static void adam_range(const xph_adam_args *a, int64_t begin, int64_t end, real decay)
{
    real *restrict p = a->p, *restrict m = a->m, *restrict v = a->v;
    const real *restrict grad = a->grad;
    const real scale = (real)a->grad_scale, rate = (real)a->rate, epsilon = (real)a->epsilon;
    const real keep1 = (real)a->beta1, keep2 = (real)a->beta2;
    const real take1 = (real)(1.0 - a->beta1), take2 = (real)(1.0 - a->beta2);
    const real unbias1 = (real)(1.0 / a->correction1), unbias2 = (real)(1.0 / a->correction2);
    XPH_VECTOR
    for (int64_t i = begin; i < end; i++) {
        real g = grad[i] * scale;
        real first = FMA(take1, g, keep1 * m[i]), second = FMA(take2 * g, g, keep2 * v[i]);
        real step = first * unbias1 / (REAL_SQRT(second * unbias2) + epsilon);
        m[i] = first;
        v[i] = second;
        p[i] = FMA(-rate, FMA(decay, p[i], step), p[i]);
    }
}

static void ema_range(const xph_adam_args *a, int64_t begin, int64_t end)
{
    const real *restrict p = a->p;
    real *restrict ema = a->ema;
    const real keep = (real)a->ema_decay, take = (real)(1.0 - a->ema_decay);
    XPH_VECTOR
    for (int64_t i = begin; i < end; i++) ema[i] = FMA(take, p[i], keep * ema[i]);
}

static void adam_run(const void *args, int64_t begin, int64_t end)
{
    const xph_adam_args *a = args;
    int64_t from = begin * ITEM, to = int_min(a->count, end * ITEM);
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
