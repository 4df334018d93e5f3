/* Causal sliding-window attention, backward, of one head of one stream at a time. Probabilities are
 * recomputed from the saved log-sum-exp (Dao et al. 2022), tile of frames by tile of frames against a copy of
 * all keys they see:
 *   p = exp(score - log-sum-exp)   ds = p (v.dy - y.dy)   dbias += ds
 *   dq = scale sum ds k            dk += scale ds q       dv += p dy       frames one after the other
 * Nothing flows into the keys and values of the ring. */
#include "cpu/kernels/attention_parts.h"

/* Frames that share one copy of their keys. */
XPH_INLINE int64_t frames_of_part(const xph_attention_args *args)
{
    return int_min(args->time, int_max(PART, args->window));
}

XPH_INLINE int64_t row_ld(const xph_attention_args *args)
{
    return whole_lanes(args->window + FRAMES + 2 * LANES);
}

/* Scratch of one item: keys, values and their gradients [window + part + KEYS, wide], queries and dy
 * [FRAMES, wide], p and ds [FRAMES, ld], the bias and its gradient reversed. Before all items: gradients of
 * the bias [batch, heads, window]. */
typedef struct desk {
    real *k, *v, *dk, *dv, *q, *dy, *p, *ds, *bias, *dbias;
    int64_t ld;
} desk;

static int64_t desk_reals(const xph_attention_args *args)
{
    int64_t wide = whole_lanes(args->dim), keys = args->window + frames_of_part(args) + KEYS;
    return (4 * keys + 2 * FRAMES) * wide + (2 * FRAMES + 2) * row_ld(args);
}

static int64_t partial_reals(const xph_attention_args *args)
{
    return whole_lanes(args->batch * args->heads * args->window);
}

static size_t grad_scratch(const void *given)
{
    const xph_attention_args *args = &((const xph_attention_grad_args *)given)->fwd;
    return (size_t)(partial_reals(args) + args->batch * args->heads * desk_reals(args)) * sizeof(real);
}

static desk desk_of(const xph_attention_grad_args *grad, int64_t item)
{
    const xph_attention_args *args = &grad->fwd;
    int64_t wide = whole_lanes(args->dim), keys = args->window + frames_of_part(args) + KEYS;
    desk d = {.k = (real *)grad->scratch + partial_reals(args) + item * desk_reals(args), .ld = row_ld(args)};
    d.v = d.k + keys * wide;
    d.dk = d.v + keys * wide;
    d.dv = d.dk + keys * wide;
    d.q = d.dv + keys * wide;
    d.dy = d.q + FRAMES * wide;
    d.p = d.dy + FRAMES * wide;
    d.ds = d.p + FRAMES * d.ld;
    d.bias = d.ds + FRAMES * d.ld;
    d.dbias = d.bias + d.ld;
    return d;
}

XPH_INLINE int64_t row_of(const view *v, int64_t t)
{
    return v->stream * v->args->time + t;
}

/* Gradient of the queries of this head at frame t; keys and values lie span and 2 span further. */
XPH_INLINE real *dq_at(const xph_attention_grad_args *grad, const view *v, int64_t t)
{
    return (real *)grad->dqkv + row_of(v, t) * grad->lddqkv + v->head * grad->fwd.dim;
}

/* ---- one frame: p and ds of the keys it sees ---- */

/* s: products with queries become p; ds: products of values with dy become scale times the gradient of the
 * score. */
ATTENTION_NOINLINE void frame_back(real *s, real *ds, int64_t count, real scale, real lse, real along,
                                   const real *bias, real *dbias)
{
    int64_t all = whole_lanes(count);
    vec factor = vec_all(scale), whole = vec_all(lse), straight = vec_all(along);
    for (int64_t i = 0; i < all; i += VEC) {
        vec p = vec_exp(score(s, i, count, factor, bias) - whole), d = p * (vec_load(ds + i) - straight);
        if (i + VEC > count) d = vec_first(int_max(0, count - i), d, vec_all(R(0.0)));
        vec_store(s + i, p);
        vec_store(dbias + i, vec_load(dbias + i) + d);
        vec_store(ds + i, d * factor);
    }
}

/* ---- a tile of frames ---- */

XPH_INLINE void spread_key(const int from, const int rows, const int vecs, weights p, int64_t i, const vec *x,
                           real *to)
{
    vec row[VECS];
    XPH_UNROLL
    for (int c = 0; c < vecs; c++) row[c] = vec_load(to + c * VEC);
    XPH_UNROLL
    for (int r = from; r < rows; r++) {
        vec weight = vec_all(p.at[r * p.ld + i]);
        XPH_UNROLL
        for (int c = 0; c < vecs; c++) row[c] = vec_fma(weight, x[r * vecs + c], row[c]);
    }
    XPH_UNROLL
    for (int c = 0; c < vecs; c++) vec_store(to + c * VEC, row[c]);
}

/* to[i] += sum over the frames that see key i of p[r][i] x[r], `vecs` registers of columns */
XPH_INLINE void spread(const int rows, const int vecs, const tile *a, weights p, const real *x, real *to,
                       int64_t ld)
{
    int64_t i = 0, last = a->last;
    vec row[FRAMES * VECS];
    XPH_UNROLL
    for (int r = 0; r < rows; r++) {
        XPH_UNROLL
        for (int c = 0; c < vecs; c++) row[r * vecs + c] = vec_load(x + r * ld + c * VEC);
    }
    if (a->moves) {
        XPH_UNROLL
        for (int r = 0; r < rows - 1; r++) spread_key(0, r + 1, vecs, p, r, row, to + r * ld);
        i = rows - 1;
    }
    for (; i <= last; i++) spread_key(0, rows, vecs, p, i, row, to + i * ld);
    XPH_UNROLL
    for (int r = 1; r < rows; r++) spread_key(r, rows, vecs, p, last + r, row, to + (last + r) * ld);
}

#define SPREAD(name, rows, vecs)                                                                             \
  ATTENTION_NOINLINE void name(const tile *a, weights p, const real *x, real *to, int64_t ld)                \
  {                                                                                                          \
    spread(rows, vecs, a, p, x, to, ld);                                                                     \
  }
SPREAD(spread_wide, FRAMES, VECS)
SPREAD(spread_thin, FRAMES, 1)
SPREAD(spread_wide_frame, 1, VECS)
SPREAD(spread_thin_frame, 1, 1)

static void spread_all(const view *v, const tile *a, weights p, const real *x, real *to)
{
    int64_t column = 0;
    for (; column + VECS * VEC <= v->wide; column += VECS * VEC)
        (a->rows == 1 ? spread_wide_frame : spread_wide)(a, p, x + column, to + column, v->wide);
    for (; column < v->wide; column += VEC)
        (a->rows == 1 ? spread_thin_frame : spread_thin)(a, p, x + column, to + column, v->wide);
}

XPH_INLINE void prefetch_back(const xph_attention_grad_args *grad, const view *v, int64_t t)
{
    int64_t row = row_of(v, t), column = v->head * v->args->dim;
    prefetch_frame(v, t);
    for (int part = 0; part < 3; part++) prefetch_row(v, dq_at(grad, v, t) + part * v->span);
    prefetch_row(v, (const real *)v->args->y + row * v->args->ldy + column);
    prefetch_row(v, (const real *)grad->dy + row * grad->lddy + column);
}

/* What d keeps per key begins with `oldest`; `next` is what comes after v. */
static void tile_back(const xph_attention_grad_args *grad, const view *v, const view *next, const tile *a,
                      const desk *d, int64_t oldest)
{
    const xph_attention_args *args = v->args;
    int64_t wide = v->wide, at = (a->base - oldest) * wide;
    real along[FRAMES], one[FRAMES];
    for (int r = 0; r < a->rows; r++) {
        int64_t t = a->t + r, row = row_of(v, t);
        real *q = d->q + r * wide, *dy = d->dy + r * wide;
        prefetch_back(grad, next, t);
        row_to_lanes(v, (const real *)args->y + row * args->ldy + v->head * args->dim, q);
        row_to_lanes(v, (const real *)grad->dy + row * grad->lddy + v->head * args->dim, dy);
        along[r] = lane_dot(q, dy, wide);
        one[r] = R(1.0);
        row_to_lanes(v, query_at(v, t), q);
    }
    dots_of_tile(a, d->q, d->k + at, wide, d->p, d->ld);
    dots_of_tile(a, d->dy, d->v + at, wide, d->ds, d->ld);
    for (int r = 0; r < a->rows; r++) {
        int64_t first = a->first[r], t = a->t + r, bias = bias_at(v, t, a->base + first);
        frame_back(d->p + r * d->ld + first, d->ds + r * d->ld + first, a->last + r - first + 1, v->scale,
                   ((const real *)args->saved)[row_of(v, t) * args->heads + v->head], along[r],
                   d->bias + bias, d->dbias + bias);
    }
    const weights p = {d->p, d->ld}, ds = {d->ds, d->ld};
    weigh_all(v, a, ds, d->k + at, one, dq_at(grad, v, a->t), grad->lddqkv);
    spread_all(v, a, ds, d->q, d->dk + at);
    spread_all(v, a, p, d->dy, d->dv + at);
}

/* ---- parts of the frames ---- */

/* Gradients of the keys oldest..last-1: of those before `from` what the parts before have left. */
static void take_gradients(const xph_attention_grad_args *grad, const view *v, const desk *d, int64_t oldest,
                           int64_t from, int64_t last)
{
    memset(d->dk, 0, (size_t)((last - oldest) * v->wide) * sizeof(real));
    memset(d->dv, 0, (size_t)((last - oldest) * v->wide) * sizeof(real));
    for (int64_t j = int_max(0, oldest); j < from; j++) {
        const real *dq = dq_at(grad, v, j);
        row_to_lanes(v, dq + v->span, d->dk + (j - oldest) * v->wide);
        row_to_lanes(v, dq + 2 * v->span, d->dv + (j - oldest) * v->wide);
    }
}

static void give_gradients(const xph_attention_grad_args *grad, const view *v, const desk *d, int64_t oldest,
                           int64_t last)
{
    size_t bytes = (size_t)v->args->dim * sizeof(real);
    for (int64_t j = int_max(0, oldest); j < last; j++) {
        real *dq = dq_at(grad, v, j);
        memcpy(dq + v->span, d->dk + (j - oldest) * v->wide, bytes);
        memcpy(dq + 2 * v->span, d->dv + (j - oldest) * v->wide, bytes);
    }
}

static void part_back(const xph_attention_grad_args *grad, const view *v, const view *next, const desk *d,
                      int64_t from, int64_t last, int64_t *start)
{
    int64_t oldest = first_seen(v, from, *start);
    keys_to_lanes(v, oldest, last, d->k, d->v);
    take_gradients(grad, v, d, oldest, from, last);
    for (int64_t t = from; t < last;) {
        tile a = tile_of(v, t, last, start);
        tile_back(grad, v, next, &a, d, oldest);
        t += a.rows;
    }
    give_gradients(grad, v, d, oldest, last);
}

static void grad_run(const void *given, int64_t begin, int64_t end)
{
    const xph_attention_grad_args *grad = given;
    const xph_attention_args *args = &grad->fwd;
    desk d = desk_of(grad, begin); /* of the first item, for all: it stays warm */
    for (int64_t item = begin; item < end; item++) {
        view v = view_of(args, item), next = view_of(args, int_min(item + 1, end - 1));
        int64_t start = -v.filled, part = frames_of_part(args);
        real *of_bias = (real *)grad->scratch + item * args->window;
        reverse_bias(&v, d.bias);
        memset(d.dbias, 0, (size_t)d.ld * sizeof(real));
        for (int64_t from = 0; from < args->time; from += part)
            part_back(grad, &v, &next, &d, from, int_min(args->time, from + part), &start);
        for (int64_t i = 0; i < args->window; i++) of_bias[i] = d.dbias[args->window - 1 - i];
    }
}

static int64_t grad_items(const void *given)
{
    return heads_of_streams(&((const xph_attention_grad_args *)given)->fwd);
}

/* Second phase, one head an item: the streams' partial sums, in their order. */
static int64_t bias_items(const void *given)
{
    const xph_attention_grad_args *grad = given;
    return grad->dbias ? grad->fwd.heads : 0;
}

static void bias_run(const void *given, int64_t begin, int64_t end)
{
    const xph_attention_grad_args *grad = given;
    const xph_attention_args *args = &grad->fwd;
    for (int64_t head = begin; head < end; head++) {
        real *dbias = (real *)grad->dbias + head * args->window;
        for (int64_t b = 0; b < args->batch; b++) {
            const real *from = (const real *)grad->scratch + (b * args->heads + head) * args->window;
            XPH_VECTOR
            for (int64_t i = 0; i < args->window; i++) dbias[i] += from[i];
        }
    }
}

const xph_candidate XPH_LIST(attention_grad)[] = {
    {XPH_LABEL("attention_grad"), NULL, grad_scratch, {{grad_items, grad_run}, {bias_items, bias_run}}},
    XPH_LIST_END,
};
