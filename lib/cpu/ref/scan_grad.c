/* Selective scan (Mamba's S6) and its gradient.
 *
 * Work is done on blocks of LANES channels of one stream, whose state [N][LANES] stays at hand while time
 * runs; inner loops run over the channels of a block, sums over the states n run in order. Channels beyond
 * the width compute on zeros. The decay exp(-delta A) with A = exp(a_log) is 2^(-delta A log2(e)); A log2(e)
 * is made once per block.
 *
 * The gradient never holds [B,T,D,N]: a first run over time keeps the state at every CHUNK-th frame, then
 * each chunk, last first, is run again, keeping its states, and gone through backwards. See struct layout
 * for the memory.
 */
#include "cpu/ref/vec.h"

enum {
    LANES = 16,
    VECS = LANES / VEC, /* registers of a block */
    CHUNK = 16,         /* frames whose functions are taken together, beside the recurrence */
    MOST_STATES = 256,  /* of the forward, whose state lies on the stack */
    WORK_PER_STATE = 16
};

#define LOG2_E R(1.44269504088896340736)
#define LN_2   R(0.69314718055994530942)

/* A block: count <= LANES channels of one stream from `channel` on. */
typedef struct place {
    const xph_scan_args *a;
    int64_t stream, channel, count;
} place;

static place place_at(const xph_scan_args *a, int64_t stream, int64_t channel)
{
    return (place){a, stream, channel, int_min(LANES, a->width - channel)};
}

static int64_t row_of(const place *p, int64_t t)
{
    return p->stream * p->a->time + t;
}

static bool resets(const place *p, int64_t t)
{
    return p->a->reset && p->a->reset[row_of(p, t)];
}

/* The block's part of a row of a [rows][ld] matrix, zeros behind it. */
XPH_INLINE void lanes_load(real *restrict lanes, const void *matrix, int64_t ld, int64_t row, const place *p)
{
    const real *from = (const real *)matrix + row * ld + p->channel;
    if (p->count == LANES) {
        memcpy(lanes, from, LANES * sizeof(real));
        return;
    }
    memset(lanes, 0, LANES * sizeof(real));
    memcpy(lanes, from, (size_t)p->count * sizeof(real));
}

XPH_INLINE void lanes_store(void *matrix, int64_t ld, int64_t row, const place *p, const real *lanes)
{
    memcpy((real *)matrix + row * ld + p->channel, lanes, (size_t)p->count * sizeof(real));
}

/* The block's part of a [channels][N] matrix, turned to [N][LANES]; NULL: zeros. */
static void turn_in(real *restrict turned, const real *matrix, const place *p)
{
    int64_t states = p->a->states;
    memset(turned, 0, (size_t)states * LANES * sizeof(real));
    for (int64_t c = 0; matrix && c < p->count; c++)
        for (int64_t n = 0; n < states; n++) turned[n * LANES + c] = matrix[(p->channel + c) * states + n];
}

static void turn_out(real *matrix, const real *restrict turned, const place *p)
{
    int64_t states = p->a->states;
    for (int64_t c = 0; matrix && c < p->count; c++)
        for (int64_t n = 0; n < states; n++) matrix[(p->channel + c) * states + n] = turned[n * LANES + c];
}

static real *state_of(const place *p, const void *states)
{
    return states ? (real *)(uintptr_t)states + p->stream * p->a->ld_state : NULL;
}

/* A log2(e), [N][LANES]. */
static void rates_of(real *restrict rates, const place *p)
{
    turn_in(rates, p->a->a_log, p);
    XPH_VECTOR
    for (int64_t i = 0; i < p->a->states * LANES; i++) rates[i] = real_exp(rates[i]) * LOG2_E;
}

/* What a frame brings to a block. */
typedef struct frame {
    real x[LANES], delta[LANES], inflow[LANES]; /* inflow = delta x */
} frame;

XPH_INLINE void frame_load(frame *f, const place *p, int64_t t)
{
    real dt[LANES];
    lanes_load(dt, p->a->dt, p->a->lddt, row_of(p, t), p);
    lanes_load(f->x, p->a->x, p->a->ldx, row_of(p, t), p);
    XPH_VECTOR
    for (int c = 0; c < LANES; c++) f->delta[c] = real_softplus(dt[c]);
    for (int c = 0; c < LANES; c++) f->inflow[c] = f->delta[c] * f->x[c];
}

/* What a chunk of frames needs and gives besides states. */
typedef struct chunk {
    frame frame[CHUNK];
    real sum[CHUNK][LANES]; /* sum_n c[n] h[n] */
} chunk;

static void chunk_load(chunk *k, const place *p, int64_t t, int64_t frames)
{
    for (int64_t i = 0; i < frames; i++) frame_load(&k->frame[i], p, t + i);
}

static void skip_load(real *skip, const place *p)
{
    memset(skip, 0, LANES * sizeof(real));
    if (p->a->skip) memcpy(skip, (const real *)p->a->skip + p->channel, (size_t)p->count * sizeof(real));
}

/* One frame of the recurrence: after = decay before + delta x b, y = sum_n c[n] after[n]. before and after
 * may be the same; decays NULL: not wanted. All [N][LANES]. */
XPH_INLINE void advance(const frame *f, const real *rates, const real *b, const real *c, int64_t states,
                        const real *before, real *after, real *decays, real *y)
{
    vec fall[VECS], inflow[VECS], sum[VECS];
    XPH_UNROLL
    for (int v = 0; v < VECS; v++) {
        fall[v] = -vec_load(f->delta + v * VEC);
        inflow[v] = vec_load(f->inflow + v * VEC);
        sum[v] = vec_all(R(0.0));
    }
    for (int64_t n = 0; n < states; n++) {
        const vec bn = vec_all(b[n]), cn = vec_all(c[n]);
        XPH_UNROLL
        for (int v = 0; v < VECS; v++) {
            const int64_t at = n * LANES + v * VEC;
            vec decay = vec_exp2_falling(fall[v] * vec_load(rates + at));
            vec next = vec_fma(decay, vec_load(before + at), inflow[v] * bn);
            if (decays) vec_store(decays + at, decay);
            vec_store(after + at, next);
            sum[v] = vec_fma(cn, next, sum[v]);
        }
    }
    XPH_UNROLL
    for (int v = 0; v < VECS; v++) vec_store(y + v * VEC, sum[v]);
}

static const real *frame_b(const place *p, int64_t t)
{
    return (const real *)p->a->b + row_of(p, t) * p->a->ldb;
}
static const real *frame_c(const place *p, int64_t t)
{
    return (const real *)p->a->c + row_of(p, t) * p->a->ldc;
}

static bool scan_accepts(const void *args)
{
    const xph_scan_args *a = args;
    return a->states >= 1 && a->states <= MOST_STATES;
}

/* ---- gradient ---- */

enum {
    GROUP = 8,      /* blocks whose terms of db and dc are added up before the lanes are joined */
    MOST_SLOTS = 64 /* items that can be under way, each with its own memory */
};

/* Scratch, in reals. A slot belongs to an item, which takes its groups of channels one after the other:
 *   per group  rates, carry, dlog [GROUP][N][LANES], marks [T/CHUNK][GROUP][N][LANES]:
 *              the states where chunks begin
 *   per block  before [CHUNK+1][N][LANES] (the state before each frame), decay [CHUNK][N][LANES]
 *   per chunk  db, dc [CHUNK][N][LANES]
 * Behind the slots, what is summed in later phases: db and dc of each group [groups][M][N], da [B][D][N] and
 * dskip [B][D] of each stream. */
typedef struct layout {
    int64_t groups, pairs, slots, chunks, states_block; /* pairs: streams x groups; states_block: N*LANES */
    int64_t rates, carry, dlog, marks, before, decay, db, dc, slot; /* offsets in a slot, and its size */
    int64_t all_db, all_dc, all_da, all_dskip, total;               /* offsets in scratch, and its size */
} layout;

static layout layout_of(const xph_scan_args *a)
{
    layout l = {.groups = blocks_of(a->width, GROUP * LANES), .states_block = a->states * LANES};
    int64_t rows = a->batch * a->time, group = GROUP * l.states_block, kept = CHUNK * l.states_block;
    l.pairs = a->batch * l.groups;
    l.slots = int_min(l.pairs, MOST_SLOTS);
    l.chunks = blocks_of(a->time, CHUNK);
    l.carry = l.rates + group;
    l.dlog = l.carry + group;
    l.before = l.dlog + group;
    l.decay = l.before + kept + l.states_block;
    l.db = l.decay + kept;
    l.dc = l.db + kept;
    l.marks = l.dc + kept;
    l.slot = l.marks + l.chunks * group;
    l.all_db = l.slots * l.slot;
    l.all_dc = l.all_db + l.groups * rows * a->states;
    l.all_da = l.all_dc + l.groups * rows * a->states;
    l.all_dskip = l.all_da + a->batch * a->width * a->states;
    l.total = l.all_dskip + a->batch * a->width;
    return l;
}

static size_t grad_scratch(const void *args)
{
    const xph_scan_grad_args *g = args;
    return (size_t)layout_of(&g->fwd).total * sizeof(real);
}

static bool grad_accepts(const void *args)
{
    return scan_accepts(&((const xph_scan_grad_args *)args)->fwd);
}

static int64_t grad_items(const void *args)
{
    const xph_scan_grad_args *g = args;
    return layout_of(&g->fwd).slots;
}

/* One group of one stream at work. */
typedef struct work {
    const xph_scan_grad_args *g;
    const layout *l;
    real *slot;
    int64_t stream, first_channel, blocks, group;
} work;

static place work_place(const work *w, int64_t block)
{
    return place_at(&w->g->fwd, w->stream, w->first_channel + block * LANES);
}

static real *mark_at(const work *w, int64_t number, int64_t block)
{
    return w->slot + w->l->marks + (number * GROUP + block) * w->l->states_block;
}

/* Rates, the first mark, and the gradient that arrives from after the last frame. */
static void start_block(const work *w, int64_t block)
{
    place p = work_place(w, block);
    int64_t size = w->l->states_block;
    rates_of(w->slot + w->l->rates + block * size, &p);
    turn_in(w->slot + w->l->carry + block * size, state_of(&p, w->g->dstate_out), &p);
    memset(w->slot + w->l->dlog + block * size, 0, (size_t)size * sizeof(real));
    if (w->l->chunks) turn_in(mark_at(w, 0, block), state_of(&p, p.a->state_in), &p);
}

/* A chunk of the first run over time: from its mark to the next. */
static void run_ahead(const work *w, int64_t block, int64_t first)
{
    const xph_scan_args *a = &w->g->fwd;
    place p = work_place(w, block);
    int64_t size = w->l->states_block;
    const real *rates = w->slot + w->l->rates + block * size;
    real *h = mark_at(w, first / CHUNK + 1, block);
    chunk k;
    memcpy(h, mark_at(w, first / CHUNK, block), (size_t)size * sizeof(real));
    chunk_load(&k, &p, first, CHUNK);
    for (int64_t i = 0; i < CHUNK; i++) {
        int64_t t = first + i;
        if (resets(&p, t)) memset(h, 0, (size_t)size * sizeof(real));
        advance(&k.frame[i], rates, frame_b(&p, t), frame_c(&p, t), a->states, h, h, NULL, k.sum[i]);
    }
}

/* The frames of a chunk once more from its mark, keeping states and decays. */
static void run_again(const work *w, int64_t block, int64_t first, int64_t frames, chunk *k)
{
    const xph_scan_args *a = &w->g->fwd;
    place p = work_place(w, block);
    int64_t size = w->l->states_block;
    const real *rates = w->slot + w->l->rates + block * size;
    memcpy(w->slot + w->l->before, mark_at(w, first / CHUNK, block), (size_t)size * sizeof(real));
    chunk_load(k, &p, first, frames);
    for (int64_t i = 0; i < frames; i++) {
        int64_t t = first + i;
        real *before = w->slot + w->l->before + i * size, *decays = w->slot + w->l->decay + i * size;
        if (resets(&p, t)) memset(before, 0, (size_t)size * sizeof(real));
        advance(&k->frame[i], rates, frame_b(&p, t), frame_c(&p, t), a->states, before, before + size, decays,
                k->sum[i]);
    }
}

/* Through the gate: ds, the gradient of sum_n c h + skip x, and dz. */
static void back_gate(const work *w, const place *p, int64_t t, const frame *f, const real *sum,
                      const real *skip, real *restrict ds)
{
    const xph_scan_args *a = &w->g->fwd;
    real dy[LANES], z[LANES], dz[LANES];
    lanes_load(dy, w->g->dy, w->g->lddy, row_of(p, t), p);
    memcpy(ds, dy, sizeof dy);
    if (!a->z) return;
    lanes_load(z, a->z, a->ldz, row_of(p, t), p);
    XPH_VECTOR
    for (int j = 0; j < LANES; j++) {
        ds[j] = dy[j] * real_silu(z[j]);
        dz[j] = dy[j] * FMA(skip[j], f->x[j], sum[j]) * real_silu_slope(z[j]);
    }
    lanes_store(w->g->dz, w->g->lddz, row_of(p, t), p, dz);
}

/* Gradients that meet in one frame, summed over the states. */
typedef struct meeting {
    real inflow[LANES]; /* of delta x */
    real rate[LANES];   /* sum of dh decay before A log2(e) */
} meeting;

/* One frame of the recurrence backwards. carry: gradient of the state after the frame without this frame's
 * use of it, in; of the state before it, out. */
XPH_INLINE void back_states(const work *w, int64_t block, int64_t i, const frame *f, const real *ds,
                            const real *b, const real *c, meeting *m)
{
    int64_t size = w->l->states_block, states = w->g->fwd.states;
    const real *before = w->slot + w->l->before + i * size, *decays = w->slot + w->l->decay + i * size;
    const real *rates = w->slot + w->l->rates + block * size;
    real *carry = w->slot + w->l->carry + block * size, *dlog = w->slot + w->l->dlog + block * size;
    real *db = w->slot + w->l->db + i * size, *dc = w->slot + w->l->dc + i * size;
    XPH_UNROLL
    for (int v = 0; v < VECS; v++) {
        const vec s = vec_load(ds + v * VEC), delta = vec_load(f->delta + v * VEC);
        const vec inflow = vec_load(f->inflow + v * VEC);
        vec sum_inflow = vec_all(R(0.0)), sum_rate = vec_all(R(0.0));
        for (int64_t n = 0; n < states; n++) {
            const vec bn = vec_all(b[n]), cn = vec_all(c[n]);
            const int64_t at = n * LANES + v * VEC;
            vec decay = vec_load(decays + at), decayed = decay * vec_load(before + at);
            vec after = vec_fma(decay, vec_load(before + at), inflow * bn);
            vec dh = vec_fma(s, cn, vec_load(carry + at)), through = dh * decayed;
            vec_store(dc + at, vec_fma(s, after, vec_load(dc + at)));
            vec_store(db + at, vec_fma(dh, inflow, vec_load(db + at)));
            vec_store(dlog + at, vec_fma(through, delta, vec_load(dlog + at)));
            vec_store(carry + at, dh * decay);
            sum_inflow = vec_fma(dh, bn, sum_inflow);
            sum_rate = vec_fma(through, vec_load(rates + at), sum_rate);
        }
        vec_store(m->inflow + v * VEC, sum_inflow);
        vec_store(m->rate + v * VEC, sum_rate);
    }
}

/* From the frame's sums to the gradients of x and dt. */
static void back_inputs(const work *w, const place *p, int64_t t, const frame *f, const real *skip,
                        const real *ds, const meeting *m)
{
    const xph_scan_args *a = &w->g->fwd;
    real dx[LANES], ddt[LANES], dt[LANES];
    lanes_load(dt, a->dt, a->lddt, row_of(p, t), p);
    XPH_VECTOR
    for (int j = 0; j < LANES; j++) {
        dx[j] = FMA(m->inflow[j], f->delta[j], ds[j] * skip[j]);
        ddt[j] = FMA(m->inflow[j], f->x[j], -LN_2 * m->rate[j]) * real_sigmoid(dt[j]);
    }
    lanes_store(w->g->dx, w->g->lddx, row_of(p, t), p, dx);
    lanes_store(w->g->ddt, w->g->ldddt, row_of(p, t), p, ddt);
}

static void back_chunk(const work *w, int64_t block, int64_t first, int64_t frames, const chunk *k)
{
    place p = work_place(w, block);
    int64_t size = w->l->states_block;
    real skip[LANES], ds[CHUNK][LANES], dskip[LANES] = {0};
    real *all_dskip = (real *)w->g->scratch + w->l->all_dskip + p.stream * p.a->width + p.channel;
    meeting m[CHUNK];
    skip_load(skip, &p);
    for (int64_t i = 0; i < frames; i++) back_gate(w, &p, first + i, &k->frame[i], k->sum[i], skip, ds[i]);
    for (int64_t i = frames - 1; i >= 0; i--) {
        int64_t t = first + i;
        back_states(w, block, i, &k->frame[i], ds[i], frame_b(&p, t), frame_c(&p, t), &m[i]);
        if (resets(&p, t)) memset(w->slot + w->l->carry + block * size, 0, (size_t)size * sizeof(real));
    }
    for (int64_t i = 0; i < frames; i++) {
        back_inputs(w, &p, first + i, &k->frame[i], skip, ds[i], &m[i]);
        for (int j = 0; j < LANES; j++) dskip[j] = FMA(ds[i][j], k->frame[i].x[j], dskip[j]);
    }
    for (int64_t j = 0; j < p.count; j++) all_dskip[j] += dskip[j];
}

/* Joins the lanes of [rows][LANES] sums: to[row]. */
static void join_lanes(real *restrict sums, int64_t rows, real *restrict to)
{
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int64_t r = 0; r < rows; r++)
            for (int j = 0; j < width; j++) sums[r * LANES + j] += sums[r * LANES + j + width];
    for (int64_t r = 0; r < rows; r++) to[r] = sums[r * LANES];
}

static void join_chunk(const work *w, int64_t first, int64_t frames)
{
    const xph_scan_args *a = &w->g->fwd;
    real *scratch = w->g->scratch;
    int64_t row = w->stream * a->time + first, at = (w->group * a->batch * a->time + row) * a->states;
    join_lanes(w->slot + w->l->db, frames * a->states, scratch + w->l->all_db + at);
    join_lanes(w->slot + w->l->dc, frames * a->states, scratch + w->l->all_dc + at);
}

/* d a_log = -A delta dh decay before, summed over time. */
static void end_block(const work *w, int64_t block)
{
    place p = work_place(w, block);
    int64_t size = w->l->states_block;
    const real *restrict rates = w->slot + w->l->rates + block * size;
    real *restrict dlog = w->slot + w->l->dlog + block * size;
    XPH_VECTOR
    for (int64_t i = 0; i < size; i++) dlog[i] *= -LN_2 * rates[i];
    real *all_da = (real *)w->g->scratch + w->l->all_da + p.stream * p.a->width * p.a->states;
    turn_out(all_da, dlog, &p);
    turn_out(state_of(&p, w->g->dstate_in), w->slot + w->l->carry + block * size, &p);
}

static void grad_pair(const work *w)
{
    const xph_scan_args *a = &w->g->fwd;
    real *all_dskip = (real *)w->g->scratch + w->l->all_dskip + w->stream * a->width + w->first_channel;
    int64_t width = int_min(a->width - w->first_channel, GROUP * LANES);
    memset(all_dskip, 0, (size_t)width * sizeof(real));
    for (int64_t block = 0; block < w->blocks; block++) start_block(w, block);
    for (int64_t first = 0; first + CHUNK < a->time; first += CHUNK)
        for (int64_t block = 0; block < w->blocks; block++) run_ahead(w, block, first);
    for (int64_t first = (w->l->chunks - 1) * CHUNK; first >= 0; first -= CHUNK) {
        int64_t frames = int_min(CHUNK, a->time - first);
        memset(w->slot + w->l->db, 0, (size_t)(w->l->marks - w->l->db) * sizeof(real));
        for (int64_t block = 0; block < w->blocks; block++) {
            chunk k;
            run_again(w, block, first, frames, &k);
            back_chunk(w, block, first, frames, &k);
        }
        join_chunk(w, first, frames);
    }
    for (int64_t block = 0; block < w->blocks; block++) end_block(w, block);
}

static void grad_run(const void *args, int64_t begin, int64_t end)
{
    const xph_scan_grad_args *g = args;
    layout l = layout_of(&g->fwd);
    int64_t blocks = blocks_of(g->fwd.width, LANES);
    for (int64_t item = begin; item < end; item++) {
        work w = {.g = g, .l = &l, .slot = (real *)g->scratch + item * l.slot};
        for (int64_t pair = item * l.pairs / l.slots; pair < (item + 1) * l.pairs / l.slots; pair++) {
            w.stream = pair / l.groups;
            w.group = pair % l.groups;
            w.first_channel = w.group * GROUP * LANES;
            w.blocks = int_min(GROUP, blocks - w.group * GROUP);
            grad_pair(&w);
        }
    }
}

/* ---- gradient, later phases: sums over groups and over streams, in order ---- */

enum { JOIN_ROWS = 256, JOIN_CHANNELS = 64 };

static int64_t rows_items(const void *args)
{
    const xph_scan_args *a = &((const xph_scan_grad_args *)args)->fwd;
    return blocks_of(a->batch * a->time, JOIN_ROWS);
}

static void join_groups(const real *all, int64_t groups, int64_t rows, int64_t states, int64_t row, real *to)
{
    for (int64_t n = 0; n < states; n++) {
        real sum = 0;
        for (int64_t g = 0; g < groups; g++) sum += all[(g * rows + row) * states + n];
        to[n] = sum;
    }
}

static void rows_run(const void *args, int64_t begin, int64_t end)
{
    const xph_scan_grad_args *g = args;
    const xph_scan_args *a = &g->fwd;
    layout l = layout_of(a);
    const real *scratch = g->scratch;
    int64_t rows = a->batch * a->time;
    for (int64_t r = begin * JOIN_ROWS; r < int_min(rows, end * JOIN_ROWS); r++) {
        join_groups(scratch + l.all_db, l.groups, rows, a->states, r, (real *)g->db + r * g->lddb);
        join_groups(scratch + l.all_dc, l.groups, rows, a->states, r, (real *)g->dc + r * g->lddc);
    }
}

static int64_t channels_items(const void *args)
{
    const xph_scan_args *a = &((const xph_scan_grad_args *)args)->fwd;
    return blocks_of(a->width, JOIN_CHANNELS);
}

/* to[i] += sum over the streams of all[stream][i]. */
static void join_streams(const real *all, int64_t streams, int64_t size, int64_t begin, int64_t end, real *to)
{
    for (int64_t i = begin; to && i < end; i++) {
        real sum = 0;
        for (int64_t s = 0; s < streams; s++) sum += all[s * size + i];
        to[i] += sum;
    }
}

static void channels_run(const void *args, int64_t begin, int64_t end)
{
    const xph_scan_grad_args *g = args;
    const xph_scan_args *a = &g->fwd;
    layout l = layout_of(a);
    const real *scratch = g->scratch;
    int64_t from = begin * JOIN_CHANNELS, to = int_min(a->width, end * JOIN_CHANNELS), n = a->states;
    join_streams(scratch + l.all_da, a->batch, a->width * n, from * n, to * n, g->da_log);
    join_streams(scratch + l.all_dskip, a->batch, a->width, from, to, g->dskip);
}

const xph_candidate XPH_LIST(scan_grad)[] = {
    {.name = XPH_LABEL("scan_grad"),
     .accepts = grad_accepts,
     .scratch_bytes = grad_scratch,
     .phase = {{grad_items, grad_run}, {rows_items, rows_run}, {channels_items, channels_run}}},
    XPH_LIST_END,
};
