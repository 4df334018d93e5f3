/* Over flat arrays: Euclidean norm and the first element that is not finite, and y = a x + b y. */
#include "cpu/kernels/real.h"
#include "cpu/simd/lanes.h"
#include "device/settle.h"

enum { ITEM = 16384 };

/* ---- norm2: every item leaves sum = sum of (x / scale)^2 in XPH_LANES lanes of double; the last phase joins
 * them in order. Squares of floats fit a double; doubles are scaled by the largest power of two below their
 * largest. ---- */

typedef struct partial {
    double scale, sum;
    int64_t first_bad; /* -1: none */
} partial;

static size_t norm2_scratch(const void *args)
{
    const xph_norm2_args *a = args;
    return (size_t)blocks_of(a->count, ITEM) * sizeof(partial);
}

static int64_t norm2_items(const void *args)
{
    const xph_norm2_args *a = args;
    return blocks_of(a->count, ITEM);
}

#if defined(XPH_REAL_F64)
/* Largest power of two not above |x|, by its bits; the smallest normal for less, 1 for infinity. */
static double power_below(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0x7ff0000000000000u;
    if (bits == 0) return 0x1p-1022;
    if (bits == 0x7ff0000000000000u) return 1.0;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double scale_of(const real *x, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) most = REAL_ABS(x[i]) > most ? REAL_ABS(x[i]) : most;
    return power_below(most);
}
#else
static double scale_of(const real *x, int64_t count)
{
    (void)x, (void)count;
    return 1.0;
}
#endif

/* Squares of floats are exact in double, so that a fused step rounds as two do. */
XPH_INLINE double add_square(double x, double sum)
{
#if defined(XPH_REAL_F64)
    return FMA(x, x, sum);
#else
    return x * x + sum;
#endif
}

static double squares(const real *restrict x, int64_t count, double scale)
{
    double lane[XPH_LANES] = {0}, total = 0;
    const double factor = 1.0 / scale;
    int64_t at = 0;
    for (; at + XPH_LANES <= count; at += XPH_LANES)
        for (int i = 0; i < XPH_LANES; i++) lane[i] = add_square((double)x[at + i] * factor, lane[i]);
    for (int i = 0; at + i < count; i++) lane[i] = add_square((double)x[at + i] * factor, lane[i]);
    for (int i = 0; i < XPH_LANES; i++) total += lane[i];
    return total;
}

/* Finite: x - x is 0 rather than NaN. */
static int64_t first_bad(const real *x, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        if (x[i] - x[i] != R(0.0)) return i;
    return -1;
}

static void norm2_run(const void *args, int64_t begin, int64_t end)
{
    const xph_norm2_args *a = args;
    const real *x = a->x;
    partial *parts = a->scratch;
    for (int64_t i = begin; i < end; i++) {
        int64_t from = i * ITEM, to = int_min(a->count, from + ITEM);
        double scale = scale_of(x + from, to - from), total = squares(x + from, to - from, scale);
        parts[i] = (partial){scale, total, total - total == 0.0 ? -1 : first_bad(x, from, to)};
    }
}

static int64_t one_item(const void *args)
{
    (void)args;
    return 1;
}

static void norm2_join(const void *args, int64_t begin, int64_t end)
{
    const xph_norm2_args *a = args;
    const partial *parts = a->scratch;
    int64_t count = blocks_of(a->count, ITEM), bad = -1;
    double scale = 0, total = 0;
    (void)begin, (void)end;
    for (int64_t i = 0; i < count; i++) scale = parts[i].scale > scale ? parts[i].scale : scale;
    for (int64_t i = 0; i < count; i++) {
        double share = parts[i].scale / scale;
        total += parts[i].sum * share * share;
        if (bad < 0) bad = parts[i].first_bad;
    }
    *a->norm = scale * __builtin_sqrt(total);
    *a->first_bad = bad;
    if (a->settle) xph_settle(a->settle);
}

const xph_candidate XPH_LIST(norm2)[] = {
    {.name = XPH_LABEL("norm2"),
     .scratch_bytes = norm2_scratch,
     .phase = {{norm2_items, norm2_run}, {one_item, norm2_join}}},
    XPH_LIST_END,
};

/* ---- axpby ---- */

static int64_t axpby_items(const void *args)
{
    const xph_axpby_args *a = args;
    return blocks_of(a->count, ITEM);
}

/* Written for registers: x and y may be the same, which keeps a compiler from it. */
static void axpby_run(const void *args, int64_t begin, int64_t end)
{
    const xph_axpby_args *p = args;
    const vec a = vec_all((real)p->a), b = vec_all((real)p->b);
    const real *x = p->x, *from = p->from ? p->from : p->y;
    real *y = p->y;
    int64_t at = begin * ITEM, last = int_min(p->count, end * ITEM);
    for (; at + VEC <= last; at += VEC)
        vec_store(y + at, vec_fma(vec_load(x + at), a, vec_load(from + at) * b));
    if (at >= last) return;
    vec rest = vec_load_part(from + at, last - at) * b;
    vec_store_part(y + at, vec_fma(vec_load_part(x + at, last - at), a, rest), last - at);
}

const xph_candidate XPH_LIST(axpby)[] = {
    {.name = XPH_LABEL("axpby"), .phase = {{axpby_items, axpby_run}}},
    XPH_LIST_END,
};
