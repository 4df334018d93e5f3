/* Weights of a matrix rounded to fewer bits (XPH_OP_ROUND), and casts between float and bfloat16. Rounding
 * twice changes nothing: a model read from such a file packs to the same numbers.
 *
 * bfloat16 is the upper half of a float (Kalamkar et al. 2019). Numbers below 2^-50 become 0 in weights, so
 * that no product and no sum of products of two of them can be a denormal: some instructions would flush
 * it. */
#include "cpu/kernels/narrow.h"

static int64_t round_items(const void *args)
{
    const xph_round_args *a = args;
    return a->out;
}

/* q before to, which may be w. */
static void round_bf16_row(const xph_round_args *a, int64_t row)
{
    const real *w = (const real *)a->w + row * a->in;
    if (a->q) {
        uint16_t *q = (uint16_t *)a->q + row * a->in;
        XPH_VECTOR
        for (int64_t k = 0; k < a->in; k++) q[k] = narrow_bf16((float)w[k]);
    }
    if (a->to) {
        real *to = (real *)a->to + row * a->in;
        XPH_VECTOR
        for (int64_t k = 0; k < a->in; k++) to[k] = (real)wide_bf16(narrow_bf16((float)w[k]));
    }
}

static void round_i8_row(const xph_round_args *a, int64_t row)
{
    const real *w = (const real *)a->w + row * a->in;
    float scale = i8_scale(float_of_bits(largest_size(w, a->in)));
    if (a->scale) a->scale[row] = scale;
    if (a->q) {
        int8_t *q = (int8_t *)a->q + row * a->in;
        XPH_VECTOR
        for (int64_t k = 0; k < a->in; k++) q[k] = i8_of((float)w[k], scale);
    }
    if (a->to) {
        real *to = (real *)a->to + row * a->in;
        XPH_VECTOR
        for (int64_t k = 0; k < a->in; k++) to[k] = (real)(scale * (float)i8_of((float)w[k], scale));
    }
}

static void round_run(const void *args, int64_t begin, int64_t end)
{
    const xph_round_args *a = args;
    for (int64_t row = begin; row < end; row++) {
        if (a->weights == XPH_I8)
            round_i8_row(a, row);
        else
            round_bf16_row(a, row);
    }
}

static bool round_accepts(const void *args)
{
    const xph_round_args *a = args;
    return a->weights == XPH_BF16 || a->weights == XPH_I8;
}

const xph_candidate XPH_LIST(round)[] = {
    {.name = XPH_LABEL("round"), .accepts = round_accepts, .phase = {{round_items, round_run}}},
    XPH_LIST_END,
};

/* ---- cast: float <-> bfloat16, nearest even; NaN stays NaN, nothing is flushed ---- */

enum { CAST_ITEM = 16384 };

static bool cast_accepts(const void *args)
{
    return ((const xph_cast_args *)args)->as == XPH_BF16;
}

static int64_t cast_items(const void *args)
{
    const xph_cast_args *a = args;
    return blocks_of(a->count, CAST_ITEM);
}

static void cast_run(const void *args, int64_t begin, int64_t end)
{
    const xph_cast_args *a = args;
    int64_t first = begin * CAST_ITEM, last = int_min(a->count, end * CAST_ITEM);
    if (a->narrow) {
        const real *x = a->x;
        uint16_t *y = a->y;
        XPH_VECTOR
        for (int64_t i = first; i < last; i++) y[i] = nearest_bf16((float)x[i]);
    } else {
        const uint16_t *x = a->x;
        real *y = a->y;
        XPH_VECTOR
        for (int64_t i = first; i < last; i++) y[i] = (real)wide_bf16(x[i]);
    }
}

const xph_candidate XPH_LIST(cast)[] = {
    {.name = XPH_LABEL("cast"), .accepts = cast_accepts, .phase = {{cast_items, cast_run}}},
    XPH_LIST_END,
};
