/* Causal sliding-window attention, forward and backward, of one head of one stream at a time.
 *
 * Keys are counted along the stream: 0..time-1 are the chunk's own, -1 is the newest of the ring, -2 the one
 * before. A frame sees an unbroken run of them, oldest first, in every method and however the frames were cut
 * into chunks; so the plain method gives the same bits for one long chunk and for single frames with a
 * carried ring.
 *
 * Ring: every frame is written to slot `next`, which then moves on round the window; a reset only sets
 * `filled` to zero before its frame is written. What lies in the slots that are not filled is never read.
 *
 * plain: all scores of a frame, then softmax. chunked: blocks of keys with a running maximum and sum (online
 * softmax: Milakov & Gimelshein 2018; Dao et al. 2022), no row of scores is ever stored. The gradient
 * recomputes probabilities from the saved log-sum-exp (Dao et al. 2022), block of keys by block of keys. */
#include "cpu/ref/real.h"

enum {
    KEYS = 32,        /* keys of one block */
    COLUMNS = 64,     /* columns summed in registers */
    CHUNKED_FROM = 16 /* frames in a chunk from which on blocks pay */
};

/* One head of one stream. */
typedef struct view {
    const xph_attention_args *args;
    const real *qkv, *bias;      /* at the head's columns; bias of the head */
    const real *ring_k, *ring_v; /* NULL: nothing carried */
    const uint8_t *reset;        /* of the stream, or NULL */
    int64_t stream, head, span;  /* span: heads * dim */
    int64_t next, filled;
    real scale;
} view;

/* Slot numbers are kept as reals; whatever was restored from outside must not lead out of the ring. */
static int64_t slot_number(real value, int64_t limit)
{
    return value >= R(0.0) && value <= (real)limit ? (int64_t)value : 0;
}

static view view_of(const xph_attention_args *args, int64_t item)
{
    int64_t stream = item / args->heads, head = item % args->heads, span = args->heads * args->dim;
    view v = {.args = args, .stream = stream, .head = head, .span = span};
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

/* The largest of count numbers; a NaN may be passed over, its exponential will show. */
static real largest(const real *x, int64_t count)
{
    real lane[XPH_LANES], most = -REAL_INFINITY;
    int64_t at = 0;
    for (int i = 0; i < XPH_LANES; i++) lane[i] = -REAL_INFINITY;
    for (; at + XPH_LANES <= count; at += XPH_LANES)
        for (int i = 0; i < XPH_LANES; i++) lane[i] = x[at + i] > lane[i] ? x[at + i] : lane[i];
    for (int i = 0; at + i < count; i++) lane[i] = x[at + i] > lane[i] ? x[at + i] : lane[i];
    for (int i = 0; i < XPH_LANES; i++) most = lane[i] > most ? lane[i] : most;
    return most;
}

/* ---- ring ---- */

/* Brings the head's columns of state_out to the end of the chunk. Runs after all reading of state_in by this
 * head. */
static void ring_write(const view *v)
{
    const xph_attention_args *args = v->args;
    if (!args->state_out) return;
    real *k = (real *)args->state_out + v->stream * args->ld_state + v->head * args->dim;
    real *values = k + args->window * v->span;
    size_t bytes = (size_t)args->dim * sizeof(real);
    for (int64_t s = 0; s < args->window && args->state_in != args->state_out; s++) {
        real *to_k = k + s * v->span, *to_v = values + s * v->span;
        if (v->ring_k)
            memcpy(to_k, v->ring_k + s * v->span, bytes), memcpy(to_v, v->ring_v + s * v->span, bytes);
        else
            memset(to_k, 0, bytes), memset(to_v, 0, bytes);
    }
    for (int64_t t = int_max(0, args->time - args->window); t < args->time; t++) {
        int64_t slot = (v->next + t) % args->window;
        memcpy(k + slot * v->span, key_at(v, t), bytes);
        memcpy(values + slot * v->span, value_at(v, t), bytes);
    }
}

/* Second phase, one stream an item: the two numbers are read by every head of the first. */
static int64_t streams(const void *args)
{
    return ((const xph_attention_args *)args)->batch;
}

static void count_slots(const void *given, int64_t begin, int64_t end)
{
    const xph_attention_args *args = given;
    for (int64_t b = begin; b < end && args->state_out; b++) {
        view v = view_of(args, b * args->heads);
        int64_t filled = v.filled;
        for (int64_t t = 0; t < args->time; t++)
            filled = int_min(args->window, (v.reset && v.reset[t] ? 0 : filled) + 1);
        real *counters = (real *)args->state_out + b * args->ld_state + 2 * args->window * v.span;
        counters[0] = (real)((v.next + args->time) % args->window);
        counters[1] = (real)filled;
    }
}

/* ---- plain ---- */

static int64_t heads_of_streams(const void *given)
{
    const xph_attention_args *args = given;
    return args->batch * args->heads;
}

/* y[0..columns) = sum over keys of p[j - first] values[j][column], divided by total */
XPH_INLINE void weigh_values(const view *v, const real *p, int64_t first, int64_t t, int64_t column,
                             int64_t columns, real total, real *y)
{
    real acc[COLUMNS] = {0};
    for (int64_t j = first; j <= t; j++) {
        const real *value = value_at(v, j) + column;
        real weight = p[j - first];
        XPH_VECTOR
        for (int64_t i = 0; i < columns; i++) acc[i] = FMA(weight, value[i], acc[i]);
    }
    XPH_VECTOR
    for (int64_t i = 0; i < columns; i++) y[column + i] = acc[i] / total;
}

/* p: room for the scores of one window */
static void plain_frame(const view *v, int64_t t, int64_t first, real *p)
{
    const xph_attention_args *args = v->args;
    int64_t count = t - first + 1, row = v->stream * args->time + t, column = 0;
    const real *q = query_at(v, t);
    for (int64_t j = first; j <= t; j++)
        p[j - first] = FMA(dot(q, key_at(v, j), args->dim), v->scale, v->bias[t - j]);
    real most = largest(p, count);
    XPH_VECTOR
    for (int64_t i = 0; i < count; i++) p[i] = real_exp(p[i] - most);
    real total = sum(p, count);
    real *y = (real *)args->y + row * args->ldy + v->head * args->dim;
    for (; column + COLUMNS <= args->dim; column += COLUMNS)
        weigh_values(v, p, first, t, column, COLUMNS, total, y);
    if (column < args->dim) weigh_values(v, p, first, t, column, args->dim - column, total, y);
    if (args->saved) ((real *)args->saved)[row * args->heads + v->head] = most + real_log(total);
}

static size_t plain_scratch(const void *given)
{
    const xph_attention_args *args = given;
    return (size_t)(args->batch * args->heads * args->window) * sizeof(real);
}

static void plain_run(const void *given, int64_t begin, int64_t end)
{
    const xph_attention_args *args = given;
    for (int64_t item = begin; item < end; item++) {
        view v = view_of(args, item);
        int64_t start = 0;
        for (int64_t t = 0; t < args->time; t++) {
            start = episode_start(&v, t, start);
            plain_frame(&v, t, first_seen(&v, t, start), (real *)args->scratch + item * args->window);
        }
        ring_write(&v);
    }
}

/* ---- blocks of keys ---- */

/* Keys [begin, end) of a block, at most KEYS, and the part of it that one frame sees. */
typedef struct block {
    int64_t begin, end;
} block;

/* to[d][i] = from the row of key begin + i; columns past the end are zero */
static void transpose_keys(const view *v, block keys, bool values, real *to)
{
    for (int64_t i = 0; i < KEYS; i++) {
        int64_t j = keys.begin + i;
        const real *from = j >= keys.end ? NULL : values ? value_at(v, j) : key_at(v, j);
        for (int64_t d = 0; d < v->args->dim; d++) to[d * KEYS + i] = from ? from[d] : R(0.0);
    }
}

/* s[i] = sum_d x[d] columns[d][i] */
XPH_INLINE void products(const real *restrict x, const real *restrict columns, int64_t dim, real *restrict s)
{
    real acc[KEYS] = {0};
    for (int64_t d = 0; d < dim; d++) {
        XPH_VECTOR
        for (int i = 0; i < KEYS; i++) acc[i] = FMA(x[d], columns[d * KEYS + i], acc[i]);
    }
    XPH_VECTOR
    for (int i = 0; i < KEYS; i++) s[i] = acc[i];
}

XPH_INLINE block seen_part(block keys, int64_t first, int64_t t)
{
    return (block){int_max(keys.begin, first), int_min(keys.end, t + 1)};
}

/* Scores of the keys that frame t sees; minus infinity for the others. */
XPH_INLINE void scores(const view *v, block keys, block seen, int64_t t, const real *kt, real *s)
{
    products(query_at(v, t), kt, v->args->dim, s);
    for (int64_t i = 0; i < KEYS; i++) {
        int64_t j = keys.begin + i;
        s[i] = j >= seen.begin && j < seen.end ? FMA(s[i], v->scale, v->bias[t - j]) : -REAL_INFINITY;
    }
}

/* row += sum over the seen keys of p[j] rows[j], where rows are keys or values; columns <= COLUMNS */
XPH_INLINE void add_rows(const view *v, block keys, block seen, bool values, const real *p, int64_t column,
                         int64_t columns, real *row)
{
    real acc[COLUMNS];
    XPH_VECTOR
    for (int64_t i = 0; i < columns; i++) acc[i] = row[column + i];
    for (int64_t j = seen.begin; j < seen.end; j++) {
        const real *from = (values ? value_at(v, j) : key_at(v, j)) + column;
        real weight = p[j - keys.begin];
        XPH_VECTOR
        for (int64_t i = 0; i < columns; i++) acc[i] = FMA(weight, from[i], acc[i]);
    }
    XPH_VECTOR
    for (int64_t i = 0; i < columns; i++) row[column + i] = acc[i];
}

XPH_INLINE void add_weighted(const view *v, block keys, block seen, bool values, const real *p, real *row)
{
    int64_t dim = v->args->dim, column = 0;
    for (; column + COLUMNS <= dim; column += COLUMNS)
        add_rows(v, keys, seen, values, p, column, COLUMNS, row);
    if (column < dim) add_rows(v, keys, seen, values, p, column, dim - column, row);
}

/* ---- chunked ---- */

/* Scratch of one item: transposed keys [dim, KEYS], then of every frame the running maximum and sum and the
 * first key it sees (as a real: below 2^24 in any chunk that fits in memory). The values gather in y. */
typedef struct chunk {
    real *kt, *most, *total;
    int64_t *first;
} chunk;

static size_t chunk_bytes(const xph_attention_args *args)
{
    size_t reals = (size_t)(args->dim * KEYS + 2 * args->time) * sizeof(real);
    return ((reals + 63) & ~(size_t)63) + (((size_t)args->time * sizeof(int64_t) + 63) & ~(size_t)63);
}

static chunk chunk_of(const xph_attention_args *args, int64_t item)
{
    char *base = (char *)args->scratch + (size_t)item * chunk_bytes(args);
    size_t reals = (size_t)(args->dim * KEYS + 2 * args->time) * sizeof(real);
    real *kt = (real *)(void *)base;
    return (chunk){kt, kt + args->dim * KEYS, kt + args->dim * KEYS + args->time,
                   (int64_t *)(void *)(base + ((reals + 63) & ~(size_t)63))};
}

static size_t chunked_scratch(const void *given)
{
    const xph_attention_args *args = given;
    return (size_t)(args->batch * args->heads) * chunk_bytes(args);
}

static bool chunked_accepts(const void *given)
{
    const xph_attention_args *args = given;
    if (args->method == XPH_ATTENTION_AUTO) return args->time >= CHUNKED_FROM;
    return args->method == XPH_ATTENTION_CHUNKED && args->time > 1;
}

static void first_of_frames(const view *v, int64_t *first)
{
    int64_t start = 0;
    for (int64_t t = 0; t < v->args->time; t++) {
        start = episode_start(v, t, start);
        first[t] = first_seen(v, t, start);
    }
}

/* Takes one block of keys into frame t. */
static void chunked_frame(const view *v, block keys, int64_t t, const chunk *c, real *y)
{
    block seen = seen_part(keys, c->first[t], t);
    if (seen.begin >= seen.end) return;
    real s[KEYS];
    scores(v, keys, seen, t, c->kt, s);
    real most = largest(s, KEYS);
    most = most > c->most[t] ? most : c->most[t];
    real shrink = real_exp(c->most[t] - most);
    XPH_VECTOR
    for (int i = 0; i < KEYS; i++) s[i] = real_exp(s[i] - most);
    c->total[t] = FMA(c->total[t], shrink, sum(s, KEYS));
    c->most[t] = most;
    XPH_VECTOR
    for (int64_t d = 0; d < v->args->dim; d++) y[d] *= shrink;
    add_weighted(v, keys, seen, true, s, y);
}

static void chunked_begin(const view *v, const chunk *c, real *y)
{
    first_of_frames(v, c->first);
    for (int64_t t = 0; t < v->args->time; t++) {
        c->most[t] = -REAL_INFINITY;
        c->total[t] = R(0.0);
        memset(y + t * v->args->ldy, 0, (size_t)v->args->dim * sizeof(real));
    }
}

static void chunked_end(const view *v, const chunk *c, real *y)
{
    const xph_attention_args *args = v->args;
    for (int64_t t = 0; t < args->time; t++) {
        XPH_VECTOR
        for (int64_t d = 0; d < args->dim; d++) y[t * args->ldy + d] /= c->total[t];
        if (args->saved)
            ((real *)args->saved)[(v->stream * args->time + t) * args->heads + v->head] =
                c->most[t] + real_log(c->total[t]);
    }
}

static void chunked_run(const void *given, int64_t begin, int64_t end)
{
    const xph_attention_args *args = given;
    for (int64_t item = begin; item < end; item++) {
        view v = view_of(args, item);
        chunk c = chunk_of(args, item);
        real *y = (real *)args->y + v.stream * args->time * args->ldy + v.head * args->dim;
        chunked_begin(&v, &c, y);
        for (int64_t j = -v.filled; j < args->time; j += KEYS) {
            block keys = {j, int_min(j + KEYS, args->time)};
            int64_t last = int_min(args->time, keys.end - 1 + args->window);
            transpose_keys(&v, keys, false, c.kt);
            for (int64_t t = int_max(0, j); t < last; t++) chunked_frame(&v, keys, t, &c, y + t * args->ldy);
        }
        chunked_end(&v, &c, y);
        ring_write(&v);
    }
}

/* ---- backward ---- */

/* Scratch of one item: transposed keys and values [dim, KEYS], gradients of the block's keys and values
 * [KEYS, dim], of every frame y.dy and the first key it sees. Before all items: partial gradients of the bias
 * [batch, heads, window]. */
typedef struct back {
    real *kt, *vt, *dk, *dv, *along, *dbias;
    int64_t *first;
} back;

static size_t back_reals(const xph_attention_args *args)
{
    return ((size_t)(4 * args->dim * KEYS + args->time) * sizeof(real) + 63) & ~(size_t)63;
}

static size_t back_bytes(const xph_attention_args *args)
{
    return back_reals(args) + (((size_t)args->time * sizeof(int64_t) + 63) & ~(size_t)63);
}

static size_t partial_bytes(const xph_attention_args *args)
{
    return ((size_t)(args->batch * args->heads * args->window) * sizeof(real) + 63) & ~(size_t)63;
}

static size_t grad_scratch(const void *given)
{
    const xph_attention_args *args = &((const xph_attention_grad_args *)given)->fwd;
    return partial_bytes(args) + (size_t)(args->batch * args->heads) * back_bytes(args);
}

static back back_of(const xph_attention_grad_args *grad, int64_t item)
{
    const xph_attention_args *args = &grad->fwd;
    char *base = (char *)grad->scratch + partial_bytes(args) + (size_t)item * back_bytes(args);
    int64_t size = args->dim * KEYS;
    real *kt = (real *)(void *)base;
    return (back){kt,
                  kt + size,
                  kt + 2 * size,
                  kt + 3 * size,
                  kt + 4 * size,
                  (real *)grad->scratch + item * args->window,
                  (int64_t *)(void *)(base + back_reals(args))};
}

static const real *dy_at(const xph_attention_grad_args *grad, const view *v, int64_t t)
{
    return (const real *)grad->dy + (v->stream * grad->fwd.time + t) * grad->lddy + v->head * grad->fwd.dim;
}

/* Gradient of the queries of this head at frame t; keys and values lie span and 2 span further. */
static real *dq_at(const xph_attention_grad_args *grad, const view *v, int64_t t)
{
    return (real *)grad->dqkv + (v->stream * grad->fwd.time + t) * grad->lddqkv + v->head * grad->fwd.dim;
}

static void back_begin(const xph_attention_grad_args *grad, const view *v, const back *k)
{
    const xph_attention_args *args = &grad->fwd;
    first_of_frames(v, k->first);
    memset(k->dbias, 0, (size_t)args->window * sizeof(real));
    for (int64_t t = 0; t < args->time; t++) {
        const real *y =
            (const real *)args->y + (v->stream * args->time + t) * args->ldy + v->head * args->dim;
        k->along[t] = dot(y, dy_at(grad, v, t), args->dim);
        memset(dq_at(grad, v, t), 0, (size_t)args->dim * sizeof(real));
    }
}

/* dk[j] += ds[j] q, dv[j] += p[j] dy for the seen keys of the block that are the chunk's own */
XPH_INLINE void add_outer(block keys, block seen, int64_t dim, const real *restrict p, const real *restrict x,
                          real *restrict to)
{
    for (int64_t i = int_max(0, seen.begin) - keys.begin; i < seen.end - keys.begin; i++) {
        real weight = p[i], *row = to + i * dim;
        XPH_VECTOR
        for (int64_t d = 0; d < dim; d++) row[d] = FMA(weight, x[d], row[d]);
    }
}

/* One frame against one block: p = exp(score - log-sum-exp), ds = p (v.dy - y.dy). */
static void back_frame(const xph_attention_grad_args *grad, const view *v, block keys, int64_t t,
                       const back *k)
{
    const xph_attention_args *args = &grad->fwd;
    block seen = seen_part(keys, k->first[t], t);
    if (seen.begin >= seen.end) return;
    const real *dy = dy_at(grad, v, t);
    real lse = ((const real *)args->saved)[(v->stream * args->time + t) * args->heads + v->head];
    real p[KEYS], ds[KEYS];
    scores(v, keys, seen, t, k->kt, p);
    products(dy, k->vt, args->dim, ds);
    XPH_VECTOR
    for (int i = 0; i < KEYS; i++) {
        p[i] = real_exp(p[i] - lse);
        ds[i] = p[i] * (ds[i] - k->along[t]);
    }
    for (int64_t j = seen.begin; j < seen.end; j++) k->dbias[t - j] += ds[j - keys.begin];
    XPH_VECTOR
    for (int i = 0; i < KEYS; i++) ds[i] *= v->scale;
    add_weighted(v, keys, seen, false, ds, dq_at(grad, v, t));
    add_outer(keys, seen, args->dim, ds, query_at(v, t), k->dk);
    add_outer(keys, seen, args->dim, p, dy, k->dv);
}

static void back_block(const xph_attention_grad_args *grad, const view *v, block keys, const back *k)
{
    int64_t dim = grad->fwd.dim, last = int_min(grad->fwd.time, keys.end - 1 + grad->fwd.window);
    size_t bytes = (size_t)dim * sizeof(real);
    transpose_keys(v, keys, false, k->kt);
    transpose_keys(v, keys, true, k->vt);
    memset(k->dk, 0, KEYS * bytes);
    memset(k->dv, 0, KEYS * bytes);
    for (int64_t t = int_max(0, keys.begin); t < last; t++) back_frame(grad, v, keys, t, k);
    for (int64_t j = int_max(0, keys.begin); j < keys.end; j++) {
        real *dq = dq_at(grad, v, j);
        memcpy(dq + v->span, k->dk + (j - keys.begin) * dim, bytes);
        memcpy(dq + 2 * v->span, k->dv + (j - keys.begin) * dim, bytes);
    }
}

static void grad_run(const void *given, int64_t begin, int64_t end)
{
    const xph_attention_grad_args *grad = given;
    for (int64_t item = begin; item < end; item++) {
        view v = view_of(&grad->fwd, item);
        back k = back_of(grad, item);
        back_begin(grad, &v, &k);
        for (int64_t j = -v.filled; j < grad->fwd.time; j += KEYS)
            back_block(grad, &v, (block){j, int_min(j + KEYS, grad->fwd.time)}, &k);
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
            const real *part = (const real *)grad->scratch + (b * args->heads + head) * args->window;
            XPH_VECTOR
            for (int64_t i = 0; i < args->window; i++) dbias[i] += part[i];
        }
    }
}

const xph_candidate XPH_LIST(attention)[] = {{XPH_LABEL("attention_chunked"),
                                              chunked_accepts,
                                              chunked_scratch,
                                              {{heads_of_streams, chunked_run}, {streams, count_slots}}},
                                             {XPH_LABEL("attention_plain"),
                                              NULL,
                                              plain_scratch,
                                              {{heads_of_streams, plain_run}, {streams, count_slots}}},
                                             XPH_LIST_END};

const xph_candidate XPH_LIST(attention_grad)[] = {
    {XPH_LABEL("attention_grad"), NULL, grad_scratch, {{grad_items, grad_run}, {bias_items, bias_run}}},
    XPH_LIST_END};
