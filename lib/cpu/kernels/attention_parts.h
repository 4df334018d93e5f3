/* What forward (attention.c) and backward (attention_grad.c) of attention share: one head of one stream,
 * its keys, and the sums over them.
 *
 * Keys are counted along the stream: 0..time-1 are the chunk's own, -1 is the newest of the ring, -2 the
 * one before. A frame sees an unbroken run of them, oldest first. All sums have one order, whatever the
 * method, the cut of frames into chunks, or the width of a register:
 *   q.k      LANES lanes of columns, then halves joined (i with i + 8, + 4, + 2, + 1)
 *   softmax  the largest first; then the sum of exponentials in LANES lanes counted from the oldest key
 *   values   key after key, oldest first, every column alone */
#ifndef XPH_CPU_KERNELS_ATTENTION_PARTS_H
#define XPH_CPU_KERNELS_ATTENTION_PARTS_H

#include "cpu/kernels/real.h"
#include "cpu/simd/lanes.h"
#include "cpu/simd/vec_element.h"

enum {
    /* Of a tile: with VECS registers of columns they fill those there are. */
    FRAMES = VEC_REGISTERS > 0 ? 6 : 2,
    VECS = VEC_REGISTERS == 32   ? 4
           : VEC_REGISTERS == 16 ? 2
                                 : 1,
    KEYS = VEC_REGISTERS > 0 ? (int)VEC : 8, /* whose products are made together */
    KEY_BLOCK = 64,
    PART = 64 /* frames that share one copy of their keys, at least */
};
/* Loops that need all registers are not to be merged with what surrounds them. */
#define ATTENTION_NOINLINE static __attribute__((noinline))

XPH_INLINE int64_t whole_lanes(int64_t count)
{
    return blocks_of(count, LANES) * LANES;
}

/* ---- one head of one stream ---- */

typedef struct view {
    const xph_attention_args *args;
    const real *qkv, *bias;           /* at the head's columns; bias of the head */
    const real *ring_k, *ring_v;      /* NULL: nothing carried */
    const uint8_t *reset;             /* of the stream, or NULL */
    int64_t stream, head, span, wide; /* span: heads * dim; wide: dim in whole lanes */
    int64_t next, filled;
    real scale;
} view;

/* Slot numbers are kept as reals; whatever was restored from outside must not lead out of the ring. */
XPH_INLINE int64_t slot_number(real value, int64_t limit)
{
    return value >= R(0.0) && value <= (real)limit ? (int64_t)value : 0;
}

static view view_of(const xph_attention_args *args, int64_t item)
{
    int64_t stream = item / args->heads, head = item % args->heads, span = args->heads * args->dim;
    view v = {.args = args, .stream = stream, .head = head, .span = span, .wide = whole_lanes(args->dim)};
    v.qkv = (const real *)args->qkv + stream * args->time * args->ldqkv + head * args->dim;
    v.bias = (const real *)args->bias + head * args->window;
    v.reset = args->reset ? args->reset + stream * args->time : NULL;
    v.scale = R(1.0) / REAL_SQRT((real)args->dim);
    if (args->state_in) {
        const real *state = (const real *)args->state_in + stream * args->ld_state;
        const real *counters = state + 2 * args->window * span;
        v.ring_k = state + head * args->dim;
        v.ring_v = v.ring_k + args->window * span;
        v.next = slot_number(counters[0], args->window - 1);
        v.filled = slot_number(counters[1], args->window);
    }
    return v;
}

static int64_t heads_of_streams(const void *given)
{
    const xph_attention_args *args = given;
    return args->batch * args->heads;
}

XPH_INLINE const real *query_at(const view *v, int64_t t)
{
    return v->qkv + t * v->args->ldqkv;
}

/* j in [-filled, time) */
XPH_INLINE int64_t slot_of(const view *v, int64_t j)
{
    int64_t slot = v->next + j;
    return slot < 0 ? slot + v->args->window : slot;
}

XPH_INLINE const real *key_at(const view *v, int64_t j)
{
    return j < 0 ? v->ring_k + slot_of(v, j) * v->span : query_at(v, j) + v->span;
}

XPH_INLINE const real *value_at(const view *v, int64_t j)
{
    return j < 0 ? v->ring_v + slot_of(v, j) * v->span : query_at(v, j) + 2 * v->span;
}

/* Oldest key of the episode of frame t, given that of frame t - 1 (t = 0: anything). */
XPH_INLINE int64_t episode_start(const view *v, int64_t t, int64_t before)
{
    if (v->reset && v->reset[t]) return t;
    return t ? before : -v->filled;
}

XPH_INLINE int64_t first_seen(const view *v, int64_t t, int64_t start)
{
    return int_max(start, t - v->args->window + 1);
}

/* Prefetches a row of this head, to read or to write. */
XPH_INLINE void prefetch_row(const view *v, const real *row)
{
    for (int64_t d = 0; d < v->args->dim; d += 64 / (int)sizeof(real)) __builtin_prefetch(row + d, 0, 2);
}

XPH_INLINE void prefetch_frame(const view *v, int64_t t)
{
    for (int part = 0; part < 3; part++) prefetch_row(v, query_at(v, t) + part * v->span);
}

/* ---- rows of whole lanes ---- */

/* What is beyond dim becomes 0 and adds nothing to any sum. */
XPH_INLINE void row_to_lanes(const view *v, const real *from, real *to)
{
    int64_t dim = v->args->dim;
    if (dim == v->wide) {
        for (int64_t d = 0; d < dim; d += VEC) vec_store(to + d, vec_load(from + d));
        return;
    }
    memcpy(to, from, (size_t)dim * sizeof(real));
    for (int64_t d = dim; d < v->wide; d++) to[d] = R(0.0);
}

/* Keys and values first..end-1, row behind row. */
static void keys_to_lanes(const view *v, int64_t first, int64_t end, real *k, real *values)
{
    for (int64_t j = first; j < end; j++, k += v->wide, values += v->wide) {
        row_to_lanes(v, key_at(v, j), k);
        row_to_lanes(v, value_at(v, j), values);
    }
}

/* The bias from the far end to the near one, so that it runs along the keys; space for whole lanes behind
 * it. */
static void reverse_bias(const view *v, real *to)
{
    int64_t window = v->args->window;
    XPH_VECTOR
    for (int64_t i = 0; i < window; i++) to[i] = v->bias[window - 1 - i];
    for (int64_t i = 0; i < LANES; i++) to[window + i] = R(0.0);
}

/* Where in the reversed bias key j stands for frame t. */
XPH_INLINE int64_t bias_at(const view *v, int64_t t, int64_t j)
{
    return v->args->window - 1 - (t - j);
}

/* ---- products with keys ---- */

/* a.b over whole lanes */
XPH_INLINE real lane_dot(const real *a, const real *b, int64_t wide)
{
    vec lane[LANE_VECS] = {0};
    for (int64_t d = 0; d < wide; d += LANES) {
        XPH_UNROLL
        for (int i = 0; i < LANE_VECS; i++)
            lane[i] = vec_fma(vec_load(a + d + i * VEC), vec_load(b + d + i * VEC), lane[i]);
    }
    return join_lanes(lane);
}

/* Products i..i+VEC-1 of `count` become scores: times factor, plus bias; -infinity beyond them. */
XPH_INLINE vec score(const real *s, int64_t i, int64_t count, vec factor, const real *bias)
{
    vec all = vec_fma(vec_load(s + i), factor, vec_load(bias + i));
    return i + VEC <= count ? all : vec_first(int_max(0, count - i), all, vec_all(-REAL_INFINITY));
}

#if VEC_REGISTERS > 0
/* to[i] = a.row[i] for KEYS rows, as many as a register has lanes. */
XPH_INLINE void dots_of_rows(const real *a, const real *const *row, int64_t wide, real *to)
{
    vec sum[KEYS][LANE_VECS], joined[KEYS];
    XPH_UNROLL
    for (int i = 0; i < KEYS; i++) {
        XPH_UNROLL
        for (int h = 0; h < LANE_VECS; h++) sum[i][h] = vec_all(0.0f);
    }
    for (int64_t d = 0; d < wide; d += LANES) {
        XPH_UNROLL
        for (int h = 0; h < LANE_VECS; h += VEC_LOADS) {
            vec x[VEC_LOADS], k[VEC_LOADS];
            vecs_load(x, VEC_LOADS, a + d + h * VEC);
            XPH_UNROLL
            for (int i = 0; i < KEYS; i++) {
                vecs_load(k, VEC_LOADS, row[i] + d + h * VEC);
                XPH_UNROLL
                for (int j = 0; j < VEC_LOADS; j++) sum[i][h + j] = vec_fma(x[j], k[j], sum[i][h + j]);
            }
        }
    }
    XPH_UNROLL
    for (int i = 0; i < KEYS; i++) joined[i] = join_vecs(sum[i]);
    vec_store(to, vec_sum_rows(joined));
}

/* KEYS rows evenly apart, the last of which is `last` and stands for those beyond it. */
XPH_INLINE void dots_of_group(const real *a, const real *k, const int64_t stride, int64_t last,
                              const int64_t wide, real *to)
{
    const real *row[KEYS];
    XPH_UNROLL
    for (int i = 0; i < KEYS; i++) row[i] = k + (last == KEYS - 1 ? i : int_min(i, last)) * stride;
    dots_of_rows(a, row, wide, to);
}
#else
XPH_INLINE void dots_of_group(const real *a, const real *k, int64_t stride, int64_t last, int64_t wide,
                              real *to)
{
    for (int64_t i = 0; i <= last; i++) to[i] = lane_dot(a, k + i * stride, wide);
}
#endif

/* to[i] = a.k[i] for rows of whole lanes behind each other. There is space for whole lanes in `to`, and for
 * KEYS rows more in k: whatever stands there becomes numbers that nobody reads. */
ATTENTION_NOINLINE void dots_dense(const real *a, const real *k, int64_t count, int64_t wide, real *to)
{
    for (int64_t i = 0; i < count; i += KEYS) {
        if (wide == 64)
            dots_of_group(a, k + i * 64, 64, KEYS - 1, 64, to + i);
        else
            dots_of_group(a, k + i * wide, wide, KEYS - 1, wide, to + i);
    }
}

/* ---- frames of a tile ---- */

/* Frames t..t+rows-1. Column i of what is kept per key is key base + i: frame r sees the columns
 * first[r]..last + r, `last` being its first frame itself. Regular: all first are 0, or first[r] is r and
 * the window has moved on. */
typedef struct tile {
    int64_t t, base, last, rows, first[FRAMES];
    bool moves;
} tile;

/* As many frames as fit together, with the oldest key of each episode; start as in episode_start. */
static tile tile_of(const view *v, int64_t t, int64_t end, int64_t *start)
{
    tile a = {.t = t};
    *start = episode_start(v, t, *start);
    a.base = first_seen(v, t, *start);
    a.last = t - a.base;
    a.rows = 1;
    if (t + FRAMES > end || v->args->window < FRAMES) return a;
    for (int64_t r = 1; r < FRAMES; r++) {
        if (v->reset && v->reset[t + r]) return a;
        a.first[r] = first_seen(v, t + r, *start) - a.base;
    }
    a.moves = a.first[FRAMES - 1] != 0;
    for (int64_t r = 1; r < FRAMES; r++)
        if (a.first[r] != (a.moves ? r : 0)) return a;
    a.rows = FRAMES;
    return a;
}

/* Rows of p, ld apart. */
typedef struct weights {
    const real *at;
    int64_t ld;
} weights;

/* to[r][i] = x[r].k[i] for what frame r sees; x in whole lanes, space as in dots_dense. A block of keys
 * stays in L1 for all frames. */
static void dots_of_tile(const tile *a, const real *x, const real *k, int64_t wide, real *to, int64_t ld)
{
    for (int64_t from = 0; from <= a->last; from += KEY_BLOCK)
        for (int64_t r = 0; r < a->rows; r++) {
            int64_t begin = a->first[r] + from, end = a->last + r + 1;
            if (from + KEY_BLOCK <= a->last) end = int_min(end, begin + KEY_BLOCK);
            if (begin < end)
                dots_dense(x + r * wide, k + begin * wide, end - begin, wide, to + r * ld + begin);
        }
}

XPH_INLINE void weigh_key(const int from, const int rows, const int vecs, weights p, int64_t i, const real *x,
                          vec *sum)
{
    vec row[VECS];
    XPH_UNROLL
    for (int c = 0; c < vecs; c++) row[c] = vec_load(x + c * VEC);
    XPH_UNROLL
    for (int r = from; r < rows; r++) {
        multiplier weight = multiplier_of(p.at[r * p.ld + i]);
        XPH_UNROLL
        for (int c = 0; c < vecs; c++) sum[r * vecs + c] = vec_fma_by(weight, row[c], sum[r * vecs + c]);
    }
}

/* sum[r] += sum over what frame r sees of p[r][i] x[i], `vecs` registers of columns */
XPH_INLINE void weigh(const int rows, const int vecs, const tile *a, weights p, const real *x, int64_t stride,
                      vec *sum)
{
    int64_t i = 0, last = a->last;
    if (a->moves) {
        XPH_UNROLL
        for (int r = 0; r < rows - 1; r++) weigh_key(0, r + 1, vecs, p, r, x + r * stride, sum);
        i = rows - 1;
    }
    for (; i <= last; i++) weigh_key(0, rows, vecs, p, i, x + i * stride, sum);
    XPH_UNROLL
    for (int r = 1; r < rows; r++) weigh_key(r, rows, vecs, p, last + r, x + (last + r) * stride, sum);
}

/* `count` reals of a register */
XPH_INLINE void give_part(real *to, vec v, int64_t count)
{
    if (count >= VEC)
        vec_store(to, v);
    else if (count > 0)
        memcpy(to, &v, (size_t)count * sizeof(real));
}

/* to[r] = factor[r] times what weigh gives, of `columns` columns; rows ld apart */
XPH_INLINE void weigh_columns(const int rows, const int vecs, const tile *a, weights p, const real *x,
                              int64_t stride, const real *factor, real *to, int64_t ld, int64_t columns)
{
    vec sum[FRAMES * VECS];
    XPH_UNROLL
    for (int r = 0; r < rows; r++) {
        XPH_UNROLL
        for (int c = 0; c < vecs; c++) sum[r * vecs + c] = vec_all(R(0.0));
    }
    weigh(rows, vecs, a, p, x, stride, sum);
    XPH_UNROLL
    for (int r = 0; r < rows; r++) {
        XPH_UNROLL
        for (int c = 0; c < vecs; c++)
            give_part(to + r * ld + c * VEC, sum[r * vecs + c] * vec_all(factor[r]), columns - c * VEC);
    }
}

#define WEIGH(name, rows, vecs)                                                                              \
  ATTENTION_NOINLINE void name(const tile *a, weights p, const real *x, int64_t stride, const real *factor,  \
                               real *to, int64_t ld, int64_t columns)                                        \
  {                                                                                                          \
    weigh_columns(rows, vecs, a, p, x, stride, factor, to, ld, columns);                                     \
  }
WEIGH(weigh_wide, FRAMES, VECS)
WEIGH(weigh_thin, FRAMES, 1)
WEIGH(weigh_wide_frame, 1, VECS)
WEIGH(weigh_thin_frame, 1, 1)

/* The same of dim columns. */
static void weigh_all(const view *v, const tile *a, weights p, const real *x, const real *factor, real *to,
                      int64_t ld)
{
    int64_t dim = v->args->dim, column = 0;
    for (; column + VECS * VEC <= v->wide; column += VECS * VEC)
        (a->rows == 1 ? weigh_wide_frame : weigh_wide)(a, p, x + column, v->wide, factor, to + column, ld,
                                                       dim - column);
    for (; column < v->wide; column += VEC)
        (a->rows == 1 ? weigh_thin_frame : weigh_thin)(a, p, x + column, v->wide, factor, to + column, ld,
                                                       dim - column);
}

#endif
