/* Causal sliding-window attention, forward, of one head of one stream at a time.
 *
 * Ring: every frame is written to slot `next`, which then advances around the window; a reset only sets
 * `filled` to zero before its frame is written. Slots that are not filled are never used.
 *
 * plain: frame by frame, keys and values read in place. tiled: tiles of FRAMES frames against a copy of all
 * keys they see. The same sums in the same order (attention_parts.h), so the same bits. */
#include "cpu/kernels/attention_parts.h"

/* ---- ring ---- */

static void copy_slot(const view *v, int64_t slot, real *k, real *values)
{
    size_t bytes = (size_t)v->args->dim * sizeof(real);
    memcpy(k + slot * v->span, v->ring_k + slot * v->span, bytes);
    memcpy(values + slot * v->span, v->ring_v + slot * v->span, bytes);
}

/* What the ring contained before: all of it, or where state_out lags one frame behind only the newest slot. */
static void carry_ring(const view *v, real *k, real *values)
{
    const xph_attention_args *args = v->args;
    size_t bytes = (size_t)args->dim * sizeof(real);
    if (args->state_in == args->state_out) return;
    if (v->ring_k && args->lagging) {
        copy_slot(v, (v->next + args->window - 1) % args->window, k, values);
        return;
    }
    for (int64_t s = 0; s < args->window; s++) {
        if (v->ring_k)
            copy_slot(v, s, k, values);
        else
            memset(k + s * v->span, 0, bytes), memset(values + s * v->span, 0, bytes);
    }
}

/* Brings the head's columns of state_out to the end of the chunk. Runs after all reading of state_in by this
 * head. */
static void ring_write(const view *v)
{
    const xph_attention_args *args = v->args;
    if (!args->state_out) return;
    real *k = (real *)args->state_out + v->stream * args->ld_state + v->head * args->dim;
    real *values = k + args->window * v->span;
    size_t bytes = (size_t)args->dim * sizeof(real);
    carry_ring(v, k, values);
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

/* ---- softmax ---- */

/* Of the frames of a tile, with space for whole lanes. */
typedef struct softmax {
    real most[LANES], total[LANES], factor[LANES];
} softmax;

/* Products become exponentials, 0 up to whole lanes; bias: of the first of the keys. */
ATTENTION_NOINLINE void exponentials(real *s, int64_t count, real scale, const real *bias, real *most,
                                     real *sum)
{
    int64_t all = whole_lanes(count);
    vec factor = vec_all(scale), large[LANE_VECS], total[LANE_VECS];
    XPH_UNROLL
    for (int c = 0; c < LANE_VECS; c++) {
        large[c] = vec_all(-REAL_INFINITY);
        total[c] = vec_all(R(0.0));
    }
    for (int64_t i = 0; i < all; i += LANES) {
        XPH_UNROLL
        for (int c = 0; c < LANE_VECS; c++) {
            vec x = score(s, i + c * VEC, count, factor, bias);
            large[c] = vec_max(x, large[c]);
            vec_store(s + i + c * VEC, x);
        }
    }
    *most = top_of_lanes(large);
    vec base = vec_all(*most);
    for (int64_t i = 0; i < all; i += LANES) {
        XPH_UNROLL
        for (int c = 0; c < LANE_VECS; c++) {
            vec e = vec_exp(vec_load(s + i + c * VEC) - base);
            vec_store(s + i + c * VEC, e);
            total[c] += e;
        }
    }
    *sum = join_lanes(total);
}

/* Logarithms and quotients of all frames at once. */
static void finish_softmax(const view *v, int64_t t, int64_t rows, softmax *of)
{
    const xph_attention_args *args = v->args;
    for (int64_t r = rows; r < LANES; r++) of->most[r] = of->total[r] = R(1.0);
    XPH_VECTOR
    for (int r = 0; r < LANES; r++) {
        of->factor[r] = R(1.0) / of->total[r];
        of->most[r] += real_log(of->total[r]);
    }
    if (args->saved) {
        real *saved = (real *)args->saved + (v->stream * args->time + t) * args->heads + v->head;
        for (int64_t r = 0; r < rows; r++) saved[r * args->heads] = of->most[r];
    }
}

/* ---- plain ---- */

/* to[i] = a.k[i] for keys that lie evenly; to has space for whole lanes. */
ATTENTION_NOINLINE void dots(const real *a, const real *k, int64_t stride, int64_t count, int64_t wide,
                             real *to)
{
    int64_t i = 0;
    for (; i + KEYS <= count; i += KEYS) dots_of_group(a, k + i * stride, stride, KEYS - 1, wide, to + i);
    if (i < count) dots_of_group(a, k + i * stride, stride, count - i - 1, wide, to + i);
}

/* Keys that lie evenly: in the ring up to its end, in the ring from its start on, in the chunk. */
typedef struct run {
    const real *k, *v;
    int64_t stride, count;
} run;

static int runs_of(const view *v, int64_t first, int64_t t, run *runs)
{
    int count = 0;
    while (first < 0) {
        int64_t slot = slot_of(v, first), keys = int_min(-first, v->args->window - slot);
        runs[count++] = (run){key_at(v, first), value_at(v, first), v->span, keys};
        first += keys;
    }
    runs[count++] = (run){key_at(v, first), value_at(v, first), v->args->ldqkv, t - first + 1};
    return count;
}

/* y = sum of the values times p, times factor; columns are whole registers. */
XPH_INLINE void weigh_runs(const int vecs, const run *runs, int count, int64_t column, const real *p,
                           real factor, real *y)
{
    const int some = vecs < VEC_LOADS ? vecs : VEC_LOADS;
    vec sum[4] = {0};
    for (int n = 0; n < count; n++) {
        const real *value = runs[n].v + column;
        for (int64_t i = 0; i < runs[n].count; i++, value += runs[n].stride) {
            multiplier weight = multiplier_of(*p++);
            XPH_UNROLL
            for (int c = 0; c < vecs; c += some) {
                vec v[VEC_LOADS];
                vecs_load(v, some, value + c * VEC);
                XPH_UNROLL
                for (int j = 0; j < some; j++) sum[c + j] = vec_fma_by(weight, v[j], sum[c + j]);
            }
        }
    }
    XPH_UNROLL
    for (int c = 0; c < vecs; c++) vec_store(y + column + c * VEC, sum[c] * vec_all(factor));
}

/* Scratch of one item: the bias reversed, one row of scores, query, y, keys and values in whole lanes where
 * dim is not. */
static int64_t plain_reals(const xph_attention_args *args)
{
    int64_t wide = whole_lanes(args->dim), copies = wide == args->dim ? 0 : 2 * args->window + 2;
    return 2 * whole_lanes(args->window + 2 * LANES) + copies * wide;
}

static size_t plain_scratch(const void *given)
{
    const xph_attention_args *args = given;
    return (size_t)(args->batch * args->heads * plain_reals(args)) * sizeof(real);
}

static void plain_frame(const view *v, int64_t t, int64_t first, real *scratch)
{
    const xph_attention_args *args = v->args;
    int64_t lanes = whole_lanes(args->window + 2 * LANES), count = t - first + 1, wide = v->wide, column = 0;
    real *bias = scratch, *p = bias + lanes, *copies = p + lanes;
    real *y = (real *)args->y + (v->stream * args->time + t) * args->ldy + v->head * args->dim, *to = y;
    const real *q = query_at(v, t);
    run runs[3] = {{0}};
    softmax of;
    int parts = 1;
    if (wide == args->dim) {
        parts = runs_of(v, first, t, runs);
    } else {
        runs[0] = (run){copies + 2 * wide, copies + (2 + count) * wide, wide, count};
        keys_to_lanes(v, first, t + 1, copies + 2 * wide, copies + (2 + count) * wide);
        row_to_lanes(v, q, copies);
        q = copies;
        to = copies + wide;
    }
    for (int n = 0, at = 0; n < parts; at += (int)runs[n].count, n++)
        dots(q, runs[n].k, runs[n].stride, runs[n].count, wide, p + at);
    exponentials(p, count, v->scale, bias + bias_at(v, t, first), of.most, of.total);
    finish_softmax(v, t, 1, &of);
    for (; column + 4 * VEC <= wide; column += 4 * VEC)
        weigh_runs(4, runs, parts, column, p, of.factor[0], to);
    for (; column < wide; column += VEC) weigh_runs(1, runs, parts, column, p, of.factor[0], to);
    if (to != y) memcpy(y, to, (size_t)args->dim * sizeof(real));
}

static void plain_run(const void *given, int64_t begin, int64_t end)
{
    const xph_attention_args *args = given;
    real *scratch =
        (real *)args->scratch + begin * plain_reals(args); /* of the first item, for all: it stays warm */
    for (int64_t item = begin; item < end; item++) {
        view v = view_of(args, item);
        int64_t start = 0;
        reverse_bias(&v, scratch);
        for (int64_t t = 0; t < args->time; t++) {
            start = episode_start(&v, t, start);
            plain_frame(&v, t, first_seen(&v, t, start), scratch);
        }
        ring_write(&v);
    }
}

/* ---- tiled ---- */

/* Frames that share one copy of their keys. */
XPH_INLINE int64_t frames_of_part(const xph_attention_args *args)
{
    return int_min(args->time, int_max(PART, args->window));
}

/* Scratch of one item: keys and values [window + part + KEYS, wide], queries [FRAMES, wide], scores
 * [FRAMES, ld], the bias reversed. */
typedef struct desk {
    real *k, *v, *q, *scores, *bias;
    int64_t ld;
} desk;

static int64_t score_ld(const xph_attention_args *args)
{
    return whole_lanes(args->window + FRAMES + 2 * LANES);
}

static int64_t desk_reals(const xph_attention_args *args)
{
    int64_t wide = whole_lanes(args->dim), keys = args->window + frames_of_part(args) + KEYS;
    return (2 * keys + FRAMES) * wide + (FRAMES + 1) * score_ld(args);
}

static desk desk_of(const xph_attention_args *args, int64_t item)
{
    int64_t wide = whole_lanes(args->dim), keys = args->window + frames_of_part(args) + KEYS;
    desk d = {.k = (real *)args->scratch + item * desk_reals(args), .ld = score_ld(args)};
    d.v = d.k + keys * wide;
    d.q = d.v + keys * wide;
    d.scores = d.q + FRAMES * wide;
    d.bias = d.scores + FRAMES * d.ld;
    return d;
}

static size_t tiled_scratch(const void *given)
{
    const xph_attention_args *args = given;
    return (size_t)(args->batch * args->heads * desk_reals(args)) * sizeof(real);
}

static bool tiled_accepts(const void *given)
{
    const xph_attention_args *args = given;
    return args->time > 1 && args->method != XPH_ATTENTION_PLAIN;
}

/* The keys of `d` begin with `oldest`; `next` is what comes after v. */
static void tile_forward(const view *v, const view *next, const tile *a, const desk *d, int64_t oldest)
{
    const xph_attention_args *args = v->args;
    const real *keys = d->k + (a->base - oldest) * v->wide, *values = d->v + (a->base - oldest) * v->wide;
    real *y = (real *)args->y + (v->stream * args->time + a->t) * args->ldy + v->head * args->dim;
    softmax of;
    for (int r = 0; r < a->rows; r++) {
        prefetch_frame(next, a->t + r);
        row_to_lanes(v, query_at(v, a->t + r), d->q + r * v->wide);
    }
    dots_of_tile(a, d->q, keys, v->wide, d->scores, d->ld);
    for (int r = 0; r < a->rows; r++) {
        int64_t first = a->first[r], bias = bias_at(v, a->t + r, a->base + first);
        exponentials(d->scores + r * d->ld + first, a->last + r - first + 1, v->scale, d->bias + bias,
                     of.most + r, of.total + r);
    }
    finish_softmax(v, a->t, a->rows, &of);
    weigh_all(v, a, (weights){d->scores, d->ld}, values, of.factor, y, args->ldy);
}

static void tiled_run(const void *given, int64_t begin, int64_t end)
{
    const xph_attention_args *args = given;
    desk d = desk_of(args, begin); /* of the first item, for all: it stays warm */
    for (int64_t item = begin; item < end; item++) {
        view v = view_of(args, item), next = view_of(args, int_min(item + 1, end - 1));
        int64_t start = -v.filled, part = frames_of_part(args);
        reverse_bias(&v, d.bias);
        for (int64_t from = 0; from < args->time; from += part) {
            int64_t last = int_min(args->time, from + part), oldest = first_seen(&v, from, start);
            keys_to_lanes(&v, oldest, last, d.k, d.v);
            for (int64_t t = from; t < last;) {
                tile a = tile_of(&v, t, last, &start);
                tile_forward(&v, &next, &a, &d, oldest);
                t += a.rows;
            }
        }
        ring_write(&v);
    }
}

const xph_candidate XPH_LIST(attention)[] = {{XPH_LABEL("attention_tiled"),
                                              tiled_accepts,
                                              tiled_scratch,
                                              {{heads_of_streams, tiled_run}, {streams, count_slots}}},
                                             {XPH_LABEL("attention_plain"),
                                              NULL,
                                              plain_scratch,
                                              {{heads_of_streams, plain_run}, {streams, count_slots}}},
                                             XPH_LIST_END};
