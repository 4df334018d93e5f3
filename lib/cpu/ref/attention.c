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
#include "cpu/ref/lanes.h"

enum {
    KEYS = 32,        /* keys of one block */
    TILE = 4,         /* frames that share what is loaded */
    WIDE = 2 * VEC,   /* columns of a tile: TILE * 2 sums fill the pipeline */
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

/* y = sum over the keys first..t of p[j - first] values[j] / total */
static void weigh_values(const view *v, const real *p, int64_t first, int64_t t, real total, real *y)
{
    enum { SUMS = 4, COLUMNS = SUMS * VEC };
    int64_t dim = v->args->dim, column = 0;
    for (; column + COLUMNS <= dim; column += COLUMNS) {
        vec acc[SUMS] = {0}, all = vec_all(total);
        for (int64_t j = first; j <= t; j++) {
            const real *value = value_at(v, j) + column;
            vec weight = vec_all(p[j - first]);
            XPH_UNROLL
            for (int i = 0; i < SUMS; i++) acc[i] = vec_fma(weight, vec_load(value + i * VEC), acc[i]);
        }
        for (int i = 0; i < SUMS; i++) vec_store(y + column + i * VEC, acc[i] / all);
    }
    for (; column < dim; column++) {
        real acc = R(0.0);
        for (int64_t j = first; j <= t; j++) acc = FMA(p[j - first], value_at(v, j)[column], acc);
        y[column] = acc / total;
    }
}

/* p: room for the scores of one window */
static void plain_frame(const view *v, int64_t t, int64_t first, real *p)
{
    const xph_attention_args *args = v->args;
    int64_t count = t - first + 1, row = v->stream * args->time + t;
    const real *q = query_at(v, t);
    for (int64_t j = first; j <= t; j++)
        p[j - first] = FMA(lanes_dot(q, key_at(v, j), args->dim), v->scale, v->bias[t - j]);
    real most = lanes_max(p, count);
    XPH_VECTOR
    for (int64_t i = 0; i < count; i++) p[i] = real_exp(p[i] - most);
    real total = lanes_sum(p, count);
    weigh_values(v, p, first, t, total, (real *)args->y + row * args->ldy + v->head * args->dim);
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

/* Keys begin..end of the stream; which of its keys a frame sees is a part of it, counted from begin. */
typedef struct block {
    int64_t begin, end;
    const real *key[KEYS], *value[KEYS];
} block;
typedef struct part {
    int64_t begin, end;
} part;

static block block_of(const view *v, int64_t begin)
{
    block keys = {.begin = begin, .end = int_min(begin + KEYS, v->args->time)};
    for (int64_t j = begin; j < keys.end; j++) {
        keys.key[j - begin] = key_at(v, j);
        keys.value[j - begin] = value_at(v, j);
    }
    return keys;
}

XPH_INLINE part seen_part(const block *keys, int64_t first, int64_t t)
{
    return (part){int_max(keys->begin, first) - keys->begin, int_min(keys->end, t + 1) - keys->begin};
}

/* to[d][i] = rows[i][d]; columns past the end of the block are zero */
static void turn(const block *keys, const real *const *rows, int64_t dim, real *to)
{
    int64_t count = keys->end - keys->begin;
    for (int64_t i = 0; i < count; i++)
        for (int64_t d = 0; d < dim; d++) to[d * KEYS + i] = rows[i][d];
    for (int64_t d = 0; d < dim; d++)
        for (int64_t i = count; i < KEYS; i++) to[d * KEYS + i] = R(0.0);
}

/* s[r][i] = sum_d x[r][d] turned[d][i] */
XPH_INLINE void products(const int frames, const real *const *x, const real *turned, int64_t dim,
                         real (*s)[KEYS])
{
    for (int c = 0; c < KEYS; c += WIDE) {
        vec acc[TILE * 2];
        XPH_UNROLL
        for (int r = 0; r < frames * 2; r++) acc[r] = vec_all(R(0.0));
        for (int64_t d = 0; d < dim; d++) {
            vec low = vec_load(turned + d * KEYS + c), high = vec_load(turned + d * KEYS + c + VEC);
            XPH_UNROLL
            for (int r = 0; r < frames; r++) {
                vec q = vec_all(x[r][d]);
                acc[2 * r] = vec_fma(q, low, acc[2 * r]);
                acc[2 * r + 1] = vec_fma(q, high, acc[2 * r + 1]);
            }
        }
        XPH_UNROLL
        for (int r = 0; r < frames; r++) {
            vec_store(s[r] + c, acc[2 * r]);
            vec_store(s[r] + c + VEC, acc[2 * r + 1]);
        }
    }
}

/* to[r] += sum over i of p[r][i] rows[i] */
XPH_INLINE void add_rows(const int frames, real (*p)[KEYS], part range, const real *const *rows, int64_t dim,
                         real *const *to)
{
    int64_t column = 0;
    for (; column + WIDE <= dim && range.begin < range.end; column += WIDE) {
        vec acc[TILE * 2];
        XPH_UNROLL
        for (int r = 0; r < frames * 2; r++) acc[r] = vec_load(to[r / 2] + column + r % 2 * VEC);
        for (int64_t i = range.begin; i < range.end; i++) {
            vec low = vec_load(rows[i] + column), high = vec_load(rows[i] + column + VEC);
            XPH_UNROLL
            for (int r = 0; r < frames; r++) {
                vec weight = vec_all(p[r][i]);
                acc[2 * r] = vec_fma(weight, low, acc[2 * r]);
                acc[2 * r + 1] = vec_fma(weight, high, acc[2 * r + 1]);
            }
        }
        XPH_UNROLL
        for (int r = 0; r < frames * 2; r++) vec_store(to[r / 2] + column + r % 2 * VEC, acc[r]);
    }
    for (; column < dim; column++)
        for (int r = 0; r < frames; r++)
            for (int64_t i = range.begin; i < range.end; i++)
                to[r][column] = FMA(p[r][i], rows[i][column], to[r][column]);
}

/* to[i] += sum over r of p[r][i] x[r]; to: [KEYS, dim] */
XPH_INLINE void add_outer(const int frames, real (*p)[KEYS], part range, const real *const *x, int64_t dim,
                          real *to)
{
    int64_t column = 0;
    for (; column + WIDE <= dim && range.begin < range.end; column += WIDE) {
        vec row[TILE * 2];
        XPH_UNROLL
        for (int r = 0; r < frames * 2; r++) row[r] = vec_load(x[r / 2] + column + r % 2 * VEC);
        for (int64_t i = range.begin; i < range.end; i++) {
            real *into = to + i * dim + column;
            vec low = vec_load(into), high = vec_load(into + VEC);
            XPH_UNROLL
            for (int r = 0; r < frames; r++) {
                vec weight = vec_all(p[r][i]);
                low = vec_fma(weight, row[2 * r], low);
                high = vec_fma(weight, row[2 * r + 1], high);
            }
            vec_store(into, low);
            vec_store(into + VEC, high);
        }
    }
    for (; column < dim; column++)
        for (int64_t i = range.begin; i < range.end; i++)
            for (int r = 0; r < frames; r++)
                to[i * dim + column] = FMA(p[r][i], x[r][column], to[i * dim + column]);
}

/* What all frames of a tile see; empty when it is not worth it. */
static part common_part(int frames, const part *seen)
{
    part common = seen[0];
    for (int r = 1; r < frames; r++)
        common = (part){int_max(common.begin, seen[r].begin), int_min(common.end, seen[r].end)};
    return frames > 1 && common.begin < common.end ? common : (part){seen[0].end, seen[0].end};
}

/* The same for what each frame sees: edges one by one, the common part together. What is not seen is not
 * touched, so that a NaN in it does not spread; every sum runs over ascending keys, or ascending frames, in
 * any case. */
XPH_INLINE void add_rows_seen(const int frames, real (*p)[KEYS], const part *seen, const real *const *rows,
                              int64_t dim, real *const *to)
{
    part common = common_part(frames, seen);
    bool together = common.begin < common.end;
    for (int r = 0; r < frames; r++)
        add_rows(1, p + r, together ? (part){seen[r].begin, common.begin} : seen[r], rows, dim, to + r);
    if (!together) return;
    add_rows(frames, p, common, rows, dim, to);
    for (int r = 0; r < frames; r++) add_rows(1, p + r, (part){common.end, seen[r].end}, rows, dim, to + r);
}

XPH_INLINE void add_outer_seen(const int frames, real (*p)[KEYS], const part *seen, const real *const *x,
                               int64_t dim, real *to)
{
    part common = common_part(frames, seen);
    bool together = common.begin < common.end;
    for (int r = 0; r < frames; r++)
        add_outer(1, p + r, together ? (part){seen[r].begin, common.begin} : seen[r], x + r, dim, to);
    if (!together) return;
    add_outer(frames, p, common, x, dim, to);
    for (int r = 0; r < frames; r++) add_outer(1, p + r, (part){common.end, seen[r].end}, x + r, dim, to);
}

/* The bias from the far end to the near one, so that it runs along the keys; KEYS zeros on both sides. */
static void turn_bias(const view *v, real *to)
{
    int64_t window = v->args->window;
    memset(to, 0, (size_t)(window + 2 * KEYS) * sizeof(real));
    for (int64_t i = 0; i < window; i++) to[KEYS + i] = v->bias[window - 1 - i];
}

/* Where in the turned bias the first key of a block stands for frame t. */
XPH_INLINE int64_t bias_at(const view *v, const block *keys, int64_t t)
{
    return KEYS + v->args->window - 1 - (t - keys->begin);
}

/* Products become scores; what is not seen becomes `rest`. */
XPH_INLINE void score_seen(part seen, const real *bias, real scale, real rest, real *s)
{
    XPH_VECTOR
    for (int i = 0; i < KEYS; i++) {
        real score = FMA(s[i], scale, bias[i]);
        s[i] = ((i >= (int)seen.begin) & (i < (int)seen.end)) ? score : rest;
    }
}

static size_t aligned_bytes(int64_t reals)
{
    return ((size_t)reals * sizeof(real) + 63) & ~(size_t)63;
}

static size_t frames_bytes(int64_t frames)
{
    return ((size_t)frames * sizeof(int64_t) + 63) & ~(size_t)63;
}

static void first_of_frames(const view *v, int64_t *first)
{
    int64_t start = 0;
    for (int64_t t = 0; t < v->args->time; t++) {
        start = episode_start(v, t, start);
        first[t] = first_seen(v, t, start);
    }
}

/* Frames that may see a key of the block. */
XPH_INLINE part frames_of(const view *v, const block *keys)
{
    return (part){int_max(0, keys->begin), int_min(v->args->time, keys->end - 1 + v->args->window)};
}

/* Whether all frames of a tile see something of the block; seen: of each. */
XPH_INLINE bool tile_seen(const int frames, const block *keys, const int64_t *first, int64_t t, part *seen)
{
    bool all = true;
    for (int r = 0; r < frames; r++) {
        seen[r] = seen_part(keys, first[t + r], t + r);
        all = all && seen[r].begin < seen[r].end;
    }
    return all;
}

/* ---- chunked ---- */

/* Scratch of one item: the block's keys turned [dim, KEYS], the bias turned, of every frame the running
 * maximum and sum and the first key it sees. The values gather in y. */
typedef struct chunk {
    real *kt, *bias, *most, *total;
    int64_t *first;
} chunk;

static int64_t chunk_reals(const xph_attention_args *args)
{
    return args->dim * KEYS + args->window + 2 * KEYS + 2 * args->time;
}

static size_t chunk_bytes(const xph_attention_args *args)
{
    return aligned_bytes(chunk_reals(args)) + frames_bytes(args->time);
}

static chunk chunk_of(const xph_attention_args *args, int64_t item)
{
    char *base = (char *)args->scratch + (size_t)item * chunk_bytes(args);
    chunk c = {.kt = (real *)(void *)base};
    c.bias = c.kt + args->dim * KEYS;
    c.most = c.bias + args->window + 2 * KEYS;
    c.total = c.most + args->time;
    c.first = (int64_t *)(void *)(base + aligned_bytes(chunk_reals(args)));
    return c;
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

/* Scores of one frame become weights under the new maximum; what the frame had is shrunk to it. No
 * exponential of what is not seen is taken: it would be a denormal on its way to zero, and these are slow. */
XPH_INLINE void weights_of_frame(const chunk *c, part seen, int64_t t, int64_t dim, real *s, real *y)
{
    real most = lanes_max(s, KEYS), before = c->most[t];
    most = most > before ? most : before;
    XPH_VECTOR
    for (int i = 0; i < KEYS; i++) {
        bool in = (i >= (int)seen.begin) & (i < (int)seen.end);
        real e = real_exp((in ? s[i] : most) - most);
        s[i] = in ? e : R(0.0);
    }
    real total = lanes_sum(s, KEYS);
    if (most > before && before > -REAL_INFINITY) {
        real shrink = real_exp(before - most);
        c->total[t] *= shrink;
        XPH_VECTOR
        for (int64_t d = 0; d < dim; d++) y[d] *= shrink;
    }
    c->total[t] += total;
    c->most[t] = most;
}

/* Takes one block of keys into the frames t, t + 1, ... */
XPH_INLINE bool chunked_tile(const int frames, const view *v, const block *keys, int64_t t, const chunk *c,
                             real *y)
{
    part seen[TILE];
    const real *q[TILE];
    real s[TILE][KEYS], *to[TILE];
    if (!tile_seen(frames, keys, c->first, t, seen)) return false;
    for (int r = 0; r < frames; r++) {
        q[r] = query_at(v, t + r);
        to[r] = y + (t + r) * v->args->ldy;
    }
    products(frames, q, c->kt, v->args->dim, s);
    for (int r = 0; r < frames; r++) {
        score_seen(seen[r], c->bias + bias_at(v, keys, t + r), v->scale, -REAL_INFINITY, s[r]);
        weights_of_frame(c, seen[r], t + r, v->args->dim, s[r], to[r]);
    }
    add_rows_seen(frames, s, seen, keys->value, v->args->dim, to);
    return true;
}

static void chunked_block(const view *v, const block *keys, const chunk *c, real *y)
{
    part frames = frames_of(v, keys);
    turn(keys, keys->key, v->args->dim, c->kt);
    for (int64_t t = frames.begin; t < frames.end;) {
        if (t + TILE <= frames.end && chunked_tile(TILE, v, keys, t, c, y))
            t += TILE;
        else
            chunked_tile(1, v, keys, t, c, y), t++;
    }
}

static void chunked_begin(const view *v, const chunk *c, real *y)
{
    turn_bias(v, c->bias);
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
    real *saved = args->saved ? (real *)args->saved + v->stream * args->time * args->heads + v->head : NULL;
    for (int64_t t = 0; t < args->time; t++) {
        XPH_VECTOR
        for (int64_t d = 0; d < args->dim; d++) y[t * args->ldy + d] /= c->total[t];
        if (saved) saved[t * args->heads] = c->most[t] + real_log(c->total[t]);
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
            block keys = block_of(&v, j);
            chunked_block(&v, &keys, &c, y);
        }
        chunked_end(&v, &c, y);
        ring_write(&v);
    }
}

/* ---- backward ---- */

/* Scratch of one item: the block's keys and values turned [dim, KEYS], their gradients [KEYS, dim], the bias
 * and its gradient turned, of every frame y.dy and the first key it sees. Before all items: partial gradients
 * of the bias [batch, heads, window]. */
typedef struct back {
    real *kt, *vt, *dk, *dv, *bias, *dbias, *along;
    int64_t *first;
} back;

static int64_t back_reals(const xph_attention_args *args)
{
    return 4 * args->dim * KEYS + 2 * (args->window + 2 * KEYS) + args->time;
}

static size_t back_bytes(const xph_attention_args *args)
{
    return aligned_bytes(back_reals(args)) + frames_bytes(args->time);
}

static size_t partial_bytes(const xph_attention_args *args)
{
    return aligned_bytes(args->batch * args->heads * args->window);
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
    back k = {.kt = (real *)(void *)base};
    k.vt = k.kt + args->dim * KEYS;
    k.dk = k.vt + args->dim * KEYS;
    k.dv = k.dk + args->dim * KEYS;
    k.bias = k.dv + args->dim * KEYS;
    k.dbias = k.bias + args->window + 2 * KEYS;
    k.along = k.dbias + args->window + 2 * KEYS;
    k.first = (int64_t *)(void *)(base + aligned_bytes(back_reals(args)));
    return k;
}

XPH_INLINE const real *dy_at(const xph_attention_grad_args *grad, const view *v, int64_t t)
{
    return (const real *)grad->dy + (v->stream * grad->fwd.time + t) * grad->lddy + v->head * grad->fwd.dim;
}

/* Gradient of the queries of this head at frame t; keys and values lie span and 2 span further. */
XPH_INLINE real *dq_at(const xph_attention_grad_args *grad, const view *v, int64_t t)
{
    return (real *)grad->dqkv + (v->stream * grad->fwd.time + t) * grad->lddqkv + v->head * grad->fwd.dim;
}

static void back_begin(const xph_attention_grad_args *grad, const view *v, const back *k)
{
    const xph_attention_args *args = &grad->fwd;
    turn_bias(v, k->bias);
    first_of_frames(v, k->first);
    memset(k->dbias, 0, (size_t)(args->window + 2 * KEYS) * sizeof(real));
    for (int64_t t = 0; t < args->time; t++) {
        const real *y =
            (const real *)args->y + (v->stream * args->time + t) * args->ldy + v->head * args->dim;
        k->along[t] = lanes_dot(y, dy_at(grad, v, t), args->dim);
        memset(dq_at(grad, v, t), 0, (size_t)args->dim * sizeof(real));
    }
}

/* Scores s become p = exp(score - log-sum-exp), products with values ds become p (v.dy - y.dy) scale. */
XPH_INLINE void back_frame(const xph_attention_grad_args *grad, const view *v, const block *keys, part seen,
                           int64_t t, const back *k, real *s, real *ds)
{
    const xph_attention_args *args = &grad->fwd;
    int64_t at = bias_at(v, keys, t);
    real lse = ((const real *)args->saved)[(v->stream * args->time + t) * args->heads + v->head];
    real along = k->along[t], *dbias = k->dbias + at;
    score_seen(seen, k->bias + at, v->scale, lse, s);
    XPH_VECTOR
    for (int i = 0; i < KEYS; i++) {
        real p = real_exp(s[i] - lse), d = p * (ds[i] - along);
        d = ((i >= (int)seen.begin) & (i < (int)seen.end)) ? d : R(0.0);
        s[i] = p;
        dbias[i] += d;
        ds[i] = d * v->scale;
    }
}

XPH_INLINE bool back_tile(const int frames, const xph_attention_grad_args *grad, const view *v,
                          const block *keys, int64_t t, const back *k)
{
    part seen[TILE];
    const real *q[TILE], *dy[TILE];
    real p[TILE][KEYS], ds[TILE][KEYS], *dq[TILE];
    int64_t dim = grad->fwd.dim;
    if (!tile_seen(frames, keys, k->first, t, seen)) return false;
    for (int r = 0; r < frames; r++) {
        q[r] = query_at(v, t + r);
        dy[r] = dy_at(grad, v, t + r);
        dq[r] = dq_at(grad, v, t + r);
    }
    products(frames, q, k->kt, dim, p);
    products(frames, dy, k->vt, dim, ds);
    for (int r = 0; r < frames; r++) back_frame(grad, v, keys, seen[r], t + r, k, p[r], ds[r]);
    add_rows_seen(frames, ds, seen, keys->key, dim, dq);
    if (keys->end <= 0) return true;
    add_outer_seen(frames, ds, seen, q, dim, k->dk);
    add_outer_seen(frames, p, seen, dy, dim, k->dv);
    return true;
}

static void back_block(const xph_attention_grad_args *grad, const view *v, const block *keys, const back *k)
{
    int64_t dim = grad->fwd.dim;
    size_t bytes = (size_t)dim * sizeof(real);
    part frames = frames_of(v, keys);
    turn(keys, keys->key, dim, k->kt);
    turn(keys, keys->value, dim, k->vt);
    memset(k->dk, 0, KEYS * bytes);
    memset(k->dv, 0, KEYS * bytes);
    for (int64_t t = frames.begin; t < frames.end;) {
        if (t + TILE <= frames.end && back_tile(TILE, grad, v, keys, t, k))
            t += TILE;
        else
            back_tile(1, grad, v, keys, t, k), t++;
    }
    for (int64_t j = int_max(0, keys->begin); j < keys->end; j++) {
        real *dq = dq_at(grad, v, j);
        memcpy(dq + v->span, k->dk + (j - keys->begin) * dim, bytes);
        memcpy(dq + 2 * v->span, k->dv + (j - keys->begin) * dim, bytes);
    }
}

static void grad_run(const void *given, int64_t begin, int64_t end)
{
    const xph_attention_grad_args *grad = given;
    int64_t window = grad->fwd.window;
    for (int64_t item = begin; item < end; item++) {
        view v = view_of(&grad->fwd, item);
        back k = back_of(grad, item);
        real *part_of_bias = (real *)grad->scratch + item * window;
        back_begin(grad, &v, &k);
        for (int64_t j = -v.filled; j < grad->fwd.time; j += KEYS) {
            block keys = block_of(&v, j);
            back_block(grad, &v, &keys, &k);
        }
        for (int64_t i = 0; i < window; i++) part_of_bias[i] = k.dbias[KEYS + window - 1 - i];
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
