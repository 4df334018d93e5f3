/* Selective scan (Mamba's S6): forward, one frame of it, and the rates prepared for both. See scan_block.h
 * for the use of registers, scan_grad.c for the gradient.
 */
#include "cpu/kernels/scan_block.h"

enum {
    LINE = 64,                 /* bytes of the cache's lines */
    MOST_SLOTS = 64,           /* calls that can be under way, each with its own memory */
    ITEM_WORK = 1 << 14,       /* states of frames of an item, where there are so many */
    ALIAS_PADDING = 15 * LANES /* a page apart, loads of one array would wait for stores to the other */
};

static bool scan_accepts(const void *args)
{
    return scan_fits(args);
}

/* Groups of all streams. */
static int64_t all_groups(const void *args)
{
    const xph_scan_args *a = args;
    return a->batch * groups_of(a);
}

static int64_t transposed_most(const xph_scan_args *a)
{
    return blocks_per_group(a) * filled_states(a) * LANES;
}

/* An item is some groups. */
static int64_t scan_items(const void *args)
{
    int64_t groups = all_groups(args),
            work = groups * transposed_most(args) * ((const xph_scan_args *)args)->time;
    return int_min(groups, int_max(1, int_min(MOST_SLOTS, work / ITEM_WORK)));
}

/* What the functions of a chunk of frames give for the recurrence, and what that gives. */
typedef struct chunk {
    real delta[CHUNK][WIDE], inflow[CHUNK][WIDE]; /* inflow = delta x */
    real sum[CHUNK][WIDE];                        /* sum_n c[n] h[n] */
} chunk;

/* plain, full: constants of the caller. */
XPH_INLINE void load_frames(const group *g, chunk *k, int64_t t, int64_t frames, const bool plain,
                            const bool full)
{
    const xph_scan_args *a = g->a;
    for (int64_t i = 0; i < frames; i++) {
        const int64_t row = row_of(g, t + i);
        for (int64_t c = 0; c < g->blocks * LANES; c += COLUMN) {
            vec delta[VEC_ABREAST], bias[VEC_ABREAST], x[VEC_ABREAST];
            row_column(g, delta, a->dt, a->lddt, row, c, full);
            if (a->delta_bias) {
                row_column(g, bias, a->delta_bias, 0, 0, c, full);
                EACH_VEC(v, VEC_ABREAST) delta[v] += bias[v];
            }
            if (!plain) vecs_softplus(delta, VEC_ABREAST);
            row_column(g, x, a->x, a->ldx, row, c, full);
            EACH_VEC(v, VEC_ABREAST) vec_store(k->delta[i] + c + v * VEC, delta[v]);
            EACH_VEC(v, VEC_ABREAST) vec_store(k->inflow[i] + c + v * VEC, delta[v] * x[v]);
        }
    }
}

static void chunk_load(const group *g, chunk *k, int64_t t, int64_t frames)
{
    if (g->a->plain_delta)
        load_frames(g, k, t, frames, true, false);
    else if (g->count == WIDE)
        load_frames(g, k, t, frames, false, true);
    else
        load_frames(g, k, t, frames, false, false);
}

/* y = (sum + skip x) SiLU(z) */
XPH_INLINE void gate_frames(const group *g, const chunk *k, int64_t t, int64_t frames, const bool full)
{
    const xph_scan_args *a = g->a;
    for (int64_t i = 0; i < frames; i++) {
        const int64_t row = row_of(g, t + i);
        for (int64_t c = 0; c < g->blocks * LANES; c += COLUMN) {
            vec y[VEC_ABREAST], skip[VEC_ABREAST], x[VEC_ABREAST], z[VEC_ABREAST];
            EACH_VEC(v, VEC_ABREAST) y[v] = vec_load(k->sum[i] + c + v * VEC);
            if (a->skip) {
                row_column(g, skip, a->skip, 0, 0, c, full);
                row_column(g, x, a->x, a->ldx, row, c, full);
                EACH_VEC(v, VEC_ABREAST) y[v] = vec_fma(skip[v], x[v], y[v]);
            }
            if (a->z) {
                row_column(g, z, a->z, a->ldz, row, c, full);
                vecs_silu(z, VEC_ABREAST);
                EACH_VEC(v, VEC_ABREAST) y[v] *= z[v];
            }
            row_column_store(g, a->y, a->ldy, row, c, y, full);
        }
    }
}

static void chunk_gate(const group *g, const chunk *k, int64_t t, int64_t frames)
{
    if (g->count == WIDE)
        gate_frames(g, k, t, frames, true);
    else
        gate_frames(g, k, t, frames, false);
}

/* A slot of scratch: the group's state and rates, transposed, and a chunk. */
typedef struct carried {
    real *h, *rates;
    chunk *frames;
    real limits[WIDE];
} carried;

static int64_t slot_reals(const xph_scan_args *a)
{
    return 2 * (transposed_most(a) + ALIAS_PADDING) + (int64_t)(sizeof(chunk) / sizeof(real));
}

static carried carried_at(const xph_scan_args *a, int64_t slot)
{
    real *h = (real *)a->scratch + slot * slot_reals(a), *rates = h + transposed_most(a) + ALIAS_PADDING;
    return (carried){h, rates, (chunk *)(void *)(rates + transposed_most(a) + ALIAS_PADDING), {0}};
}

static size_t scan_scratch(const void *args)
{
    return (size_t)(scan_items(args) * slot_reals(args)) * sizeof(real);
}

/* Where the chunk after this one begins. */
typedef struct next_chunk {
    const group *g;
    int64_t t;
} next_chunk;

/* Rows of other frames lie pages apart, too far for the processor to foresee them. */
XPH_INLINE void prefetch_ahead(const next_chunk *next, int64_t i, int64_t c)
{
    const group *g = next->g;
    const xph_scan_args *a = g->a;
    if (next->t + i >= a->time || c * (int64_t)sizeof(real) % LINE) return;
    int64_t row = row_of(g, next->t + i), at = g->channel + c;
    __builtin_prefetch((const real *)a->dt + row * a->lddt + at);
    __builtin_prefetch((const real *)a->x + row * a->ldx + at);
    if (a->z) __builtin_prefetch((const real *)a->z + row * a->ldz + at);
    __builtin_prefetch((const real *)a->y + row * a->ldy + at, 1);
}

/* COLUMN channels through the frames of a chunk; states: of the group. */
XPH_INLINE void column_frames(const group *g, chunk *k, carried *s, int64_t t, int64_t frames, int64_t c,
                              const next_chunk *next, const int64_t states)
{
    const xph_scan_args *a = g->a;
    real buffer_b[MOST_STATES], buffer_c[MOST_STATES];
    const int64_t at = c / LANES * states * LANES + c % LANES, row = row_of(g, t), ldb = a->ldb, ldc = a->ldc;
    const real *const b = (const real *)a->b + row * ldb, *const c_rows = (const real *)a->c + row * ldc;
    const uint8_t *reset = a->reset ? a->reset + row : NULL;
    real *const h = s->h + at, *const rates = s->rates + at, *const limits = s->limits + c;
    for (int64_t i = 0; i < frames; i++) {
        const column col = {.delta = k->delta[i] + c,
                            .inflow = k->inflow[i] + c,
                            .rates = rates,
                            .limits = limits,
                            .b = filled_row(g, b + i * ldb, buffer_b),
                            .c = filled_row(g, c_rows + i * ldc, buffer_c),
                            .before = h,
                            .after = h,
                            .sum = k->sum[i] + c};
        prefetch_ahead(next, i, c);
        for (int64_t n = 0; reset && reset[i] && n < states; n++)
            EACH_VEC(v, VEC_ABREAST) vec_store(h + n * LANES + v * VEC, vec_all(R(0.0)));
        advance(&col, states, SUMS);
    }
}

static void chunk_column(const group *g, chunk *k, carried *s, int64_t t, int64_t frames, int64_t c,
                         const next_chunk *next)
{
    if (g->states == STRAIGHT)
        column_frames(g, k, s, t, frames, c, next, STRAIGHT);
    else
        column_frames(g, k, s, t, frames, c, next, g->states);
}

static void scan_group(const group *g, const group *after, carried *s)
{
    const xph_scan_args *a = g->a;
    chunk *k = s->frames;
    rates_of(g, s->rates);
    limits_of(g, s->rates, s->limits);
    transpose_in(g, s->h, state_of(g, a->state_in));
    for (int64_t t = 0; t < a->time; t += CHUNK) {
        int64_t frames = int_min(CHUNK, a->time - t);
        const next_chunk next = t + CHUNK < a->time ? (next_chunk){g, t + CHUNK} : (next_chunk){after, 0};
        chunk_load(g, k, t, frames);
        for (int64_t c = 0; c < g->blocks * LANES; c += COLUMN) chunk_column(g, k, s, t, frames, c, &next);
        chunk_gate(g, k, t, frames);
    }
    transpose_out(g, state_of(g, a->state_out), s->h);
}

/* The slot of the first item serves all of this call: its memory stays in the cache. */
static void scan_run(const void *args, int64_t begin, int64_t end)
{
    const xph_scan_args *a = args;
    if (begin >= end) return;
    const int64_t groups = groups_of(a), all = all_groups(a), items = scan_items(a),
                  last = end * all / items - 1;
    carried s = carried_at(a, begin);
    for (int64_t i = begin * all / items; i <= last; i++) {
        int64_t next = int_min(i + 1, last);
        group g = group_at(a, i / groups, i % groups), after = group_at(a, next / groups, next % groups);
        scan_group(&g, &after, &s);
    }
}

/* ---- one frame ---- */

#if VEC_REGISTERS > 0
/* Nothing is transposed: the states of a channel lie in the lanes, as in memory, QUARTERS chains of four to a
 * register; only for the sums channels meet. The same operations on every number, so the same bits. */
enum { QUARTERS = VEC / CHAINS, STEP_STATES = 16 };

/* The channels of a group in one frame. Softplus and SiLU are taken for all of them together: alone each would
 * wait for itself. */
typedef struct step_rows {
    const real *in; /* states of the first of VEC channels */
    real *out;      /* or NULL */
    int64_t ld_in;  /* 0: in is one channel of zeros */
    const real *rates;
    int64_t ld_rates; /* 0: all channels have those of one */
    const real *b, *c;
} step_rows;
typedef struct step_place {
    const group *g;
    step_rows rows;
    real fall[WIDE], inflow[WIDE], sum[WIDE]; /* -delta, delta x, sum_n c[n] h[n] */
} step_place;

/* VEC of the states of channel c + k: from n on. */
XPH_INLINE vec step_states(const step_place *p, const step_rows *rows, const int64_t states, const bool given,
                           int64_t c, int64_t k, int64_t n)
{
    const xph_scan_args *a = p->g->a;
    vec rate = vec_load(rows->rates + (c + k) * (given ? states : rows->ld_rates) + n);
    if (!given && !a->decay && !a->fixed) rate = rate_of(rate);
    if (!given && a->plain_a) rate = -rate;
    vec decay = vec_exp2_falling(vec_all(p->fall[c + k]) * rate);
    vec next = vec_fma(decay, vec_load(rows->in + (c + k) * rows->ld_in + n),
                       vec_all(p->inflow[c + k]) * vec_load(rows->b + n));
    if (given || rows->out) vec_store(rows->out + (c + k) * states + n, next);
    return next;
}

/* sum_n c[n] h[n] of VEC channels, of which `count` are there. states, given (rates prepared, new states
 * wanted) and, where it is VEC, count are constants of a caller in a hurry. */
XPH_INLINE vec step_sums(const step_place *p, const int64_t states, const bool given, int64_t at,
                         const int64_t count)
{
    const step_rows rows = p->rows; /* any store might change what is not here */
    vec sum[CHAINS] = {{0}};
    for (int64_t i = 0; i < CHAINS; i++) {
        for (int64_t n = 0; n < states; n += VEC) {
            vec q[QUARTERS];
            XPH_UNROLL
            for (int64_t l = 0; l < QUARTERS; l++) {
                int64_t k = CHAINS * l + i;
                q[l] = k < count ? step_states(p, &rows, states, given, at, k, n) : vec_all(0.0f);
            }
            vec_transpose_quarters(q); /* [channel][quarter] to [quarter][channel] */
            XPH_UNROLL
            for (int64_t l = 0; l < QUARTERS; l++)
                sum[i] = vec_fma(vec_repeat_four(rows.c + n + l * CHAINS), q[l], sum[i]);
        }
    }
    return vec_sum_fours(sum);
}

XPH_INLINE void step_deltas(step_place *p, const bool plain)
{
    const group *g = p->g;
    const xph_scan_args *a = g->a;
    for (int64_t c = 0; c < g->count; c += VEC) {
        vec delta = step_of(g, g->stream, c, plain);
        vec_store(p->fall + c, -delta);
        vec_store(p->inflow + c, delta * row_load(g, a->x, a->ldx, g->stream, c));
    }
}

/* buffer: for fixed rates. */
static void step_enter(step_place *p, real buffer[MOST_STATES])
{
    static const real zeros[MOST_STATES] = {0};
    const group *g = p->g;
    const xph_scan_args *a = g->a;
    const real *in = resets(g, 0) ? NULL : state_of(g, a->state_in);
    real *out = state_of(g, a->state_out);
    const int64_t first = g->channel * a->states;
    p->rows.in = in ? in + first : zeros;
    p->rows.ld_in = in ? a->states : 0;
    p->rows.out = out ? out + first : NULL;
    p->rows.ld_rates = a->fixed ? 0 : a->states;
    for (int64_t n = 0; a->fixed && n < a->states; n++) buffer[n] = fixed_rate(n);
    p->rows.rates = a->fixed ? buffer : (const real *)(a->decay ? a->decay : a->a_log) + first;
    p->rows.b = (const real *)a->b + g->stream * a->ldb;
    p->rows.c = (const real *)a->c + g->stream * a->ldc;
    if (a->plain_delta)
        step_deltas(p, true);
    else
        step_deltas(p, false);
}

static void step_leave(const step_place *p)
{
    const group *g = p->g;
    const xph_scan_args *a = g->a;
    for (int64_t c = 0; c < g->count; c += VEC) {
        vec y = vec_load(p->sum + c);
        if (a->skip) y = vec_fma(row_load(g, a->skip, 0, 0, c), row_load(g, a->x, a->ldx, g->stream, c), y);
        if (a->z) y *= vec_silu(row_load(g, a->z, a->ldz, g->stream, c));
        row_store(g, a->y, a->ldy, g->stream, c, y);
    }
}

static void step_group(const group *g)
{
    const xph_scan_args *a = g->a;
    step_place p = {.g = g};
    real buffer[MOST_STATES];
    step_enter(&p, buffer);
    bool given = a->decay && !a->plain_a && p.rows.out && a->states == STEP_STATES;
    for (int64_t c = 0; c < g->count; c += VEC) {
        int64_t count = int_min(VEC, g->count - c);
        vec_store(p.sum + c, given && count == VEC ? step_sums(&p, STEP_STATES, true, c, VEC)
                                                   : step_sums(&p, a->states, false, c, count));
    }
    step_leave(&p);
}

static bool step_accepts(const void *args)
{
    const xph_scan_args *a = args;
    return a->time == 1 && a->states % STEP_STATES == 0 && scan_fits(a);
}

static void step_run(const void *args, int64_t begin, int64_t end)
{
    const xph_scan_args *a = args;
    int64_t groups = groups_of(a);
    for (int64_t i = begin; i < end; i++) {
        group g = group_at(a, i / groups, i % groups);
        step_group(&g);
    }
}
#endif

const xph_candidate XPH_LIST(scan)[] = {
#if VEC_REGISTERS > 0
    {.name = XPH_LABEL("scan_step"), .accepts = step_accepts, .phase = {{all_groups, step_run}}},
#endif
    {.name = XPH_LABEL("scan"),
     .accepts = scan_accepts,
     .scratch_bytes = scan_scratch,
     .phase = {{scan_items, scan_run}}},
    XPH_LIST_END,
};

/* ---- rates prepared ---- */

enum { PACK_ITEM = 1 << 14 };

static int64_t pack_items(const void *args)
{
    const xph_scan_pack_args *a = args;
    return blocks_of(a->width * a->states, PACK_ITEM);
}

static void pack_run(const void *args, int64_t begin, int64_t end)
{
    const xph_scan_pack_args *a = args;
    const real *from = a->a_log;
    real *to = a->decay;
    const int64_t last = int_min(a->width * a->states, end * PACK_ITEM);
    for (int64_t i = begin * PACK_ITEM; i < last; i += VEC)
        vec_store_part(to + i, rate_of(vec_load_part(from + i, last - i)), last - i);
}

const xph_candidate XPH_LIST(scan_pack)[] = {
    {.name = XPH_LABEL("scan_pack"), .phase = {{pack_items, pack_run}}},
    XPH_LIST_END,
};

/* One by one is as good here. */
const xph_candidate XPH_LIST(packs)[] = {XPH_LIST_END};
