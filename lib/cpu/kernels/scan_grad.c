/* Gradient of the selective scan (scan.c). It never holds [B,T,D,N]. An item runs one group of channels of
 * one stream through time and keeps the state before every STRETCH-th frame. Then each stretch, the last
 * first, is run again with all states and decays in L1, and gone through backwards. Computing the
 * exponentials twice is cheaper than writing them to L2. With more than `keep` frames, a first run keeps only
 * the states at the start of each span of `keep` frames. Sums over channels (db, dc) and streams (da_log,
 * dskip, ddelta_bias) are taken in later phases, in order.
 */
#include "cpu/kernels/scan_block.h"

enum {
    STRETCH = 2,
    MOST_KEEP = 16 * CHUNK,
    KEPT_BLOCKS =
        64 * MOST_KEEP, /* frames times states times blocks of a span at most, if that is a chunk or more */
    MOST_SLOTS = 32,    /* calls that can be under way, each with its own memory */
    ALIAS_PADDING = 11 * LANES, /* arrays whole pages apart look the same to the loads and stores in flight */
    JOIN_ROWS = 256,
    JOIN_CHANNELS = 64
};

/* Scratch, in reals. A slot holds for a group
 *   rates, zeros, h, carry (gradient of the state), dlog [transposed];  limits, dskip, dbias (of delta)
 *   [WIDE]
 *   marks [keep / STRETCH + 1][transposed]: the state before each stretch;  states, decays
 *   [STRETCH][transposed]: after and in
 *   each of its frames;  spans [spans][transposed]: before each span
 *   delta, inflow, slope (of softplus) [keep][WIDE];  ds, sum_inflow, sum_rate [STRETCH][WIDE];  db, dc
 *   [N][LANES]
 * Behind the slots, what is summed in later phases: db and dc of each group [groups][M][N], da [B][D][N]
 * and dskip, dbias [B][D] of each stream. */
typedef struct layout {
    int64_t groups, pairs, slots, keep, span_count,
        transposed; /* pairs: streams x groups; transposed: of a whole group */
    int64_t frame;  /* from one frame's transposed matrix to the next */
    int64_t rates, zeros, h, carry, dlog, limits, dskip, dbias, decays, marks, states, spans;
    int64_t delta, inflow, slope, ds, sum_inflow, sum_rate, db, dc, slot;
    int64_t all_db, all_dc, all_da, all_dskip, all_dbias, total;
} layout;

static int64_t frames_kept(const xph_scan_args *a)
{
    int64_t fit = KEPT_BLOCKS / (filled_states(a) * blocks_per_group(a)) / CHUNK * CHUNK;
    return int_max(CHUNK, int_min(fit, MOST_KEEP));
}

static int64_t take(int64_t *at, int64_t count)
{
    int64_t here = *at;
    *at += blocks_of(count, LANES) * LANES + ALIAS_PADDING;
    return here;
}

static void layout_slot(layout *l, int64_t states)
{
    int64_t at = 0;
    l->rates = take(&at, l->transposed);
    l->zeros = take(&at, l->transposed);
    l->h = take(&at, l->transposed);
    l->carry = take(&at, l->transposed);
    l->dlog = take(&at, l->transposed);
    l->limits = take(&at, WIDE);
    l->dskip = take(&at, WIDE);
    l->dbias = take(&at, WIDE);
    l->decays = take(&at, STRETCH * l->frame);
    l->marks = take(&at, (l->keep / STRETCH + 1) * l->frame);
    l->states = take(&at, STRETCH * l->frame);
    l->spans = take(&at, l->span_count * l->frame);
    l->delta = take(&at, l->keep * WIDE);
    l->inflow = take(&at, l->keep * WIDE);
    l->slope = take(&at, l->keep * WIDE);
    l->ds = take(&at, STRETCH * WIDE);
    l->sum_inflow = take(&at, STRETCH * WIDE);
    l->sum_rate = take(&at, STRETCH * WIDE);
    l->db = take(&at, states * LANES);
    l->dc = take(&at, states * LANES);
    l->slot = at;
}

static layout layout_of(const xph_scan_args *a)
{
    layout l = {.groups = groups_of(a), .keep = frames_kept(a)};
    int64_t rows = a->batch * a->time, states = filled_states(a);
    l.pairs = a->batch * l.groups;
    l.slots = int_max(1, int_min(l.pairs, MOST_SLOTS));
    l.span_count = int_max(1, blocks_of(a->time, l.keep));
    l.transposed = blocks_per_group(a) * states * LANES;
    l.frame = l.transposed + ALIAS_PADDING;
    layout_slot(&l, states);
    int64_t at = l.slots * l.slot;
    l.all_db = take(&at, l.groups * rows * a->states);
    l.all_dc = take(&at, l.groups * rows * a->states);
    l.all_da = take(&at, a->batch * a->width * a->states);
    l.all_dskip = take(&at, a->batch * a->width);
    l.all_dbias = take(&at, a->batch * a->width);
    l.total = at;
    return l;
}

static size_t grad_scratch(const void *args)
{
    return (size_t)layout_of(&((const xph_scan_grad_args *)args)->fwd).total * sizeof(real);
}

static bool grad_accepts(const void *args)
{
    return scan_fits(&((const xph_scan_grad_args *)args)->fwd);
}

static int64_t grad_items(const void *args)
{
    const layout l = layout_of(&((const xph_scan_grad_args *)args)->fwd);
    return int_min(l.pairs, l.slots);
}

/* One group of one stream at work. */
typedef struct work {
    const xph_scan_grad_args *a;
    const layout *l;
    real *slot;
    group g, next;        /* and the one after it, or itself */
    int64_t number, size; /* of the group in its stream; of a transposed matrix */
} work;

static real *frame_at(const work *w, int64_t array, int64_t i)
{
    return w->slot + array + i * WIDE;
}
static real *transposed_at(const work *w, int64_t array, int64_t i)
{
    return w->slot + array + i * w->l->frame;
}

/* ---- forward once more ---- */

/* The step, and how it follows what it is made of. */
XPH_INLINE vec step_both(const group *g, int64_t row, int64_t c, const bool plain, vec *slope)
{
    const vec dt = step_load(g, row, c);
    if (!plain) return vec_softplus_both(dt, slope);
    *slope = vec_all(R(1.0));
    return dt;
}

/* What the functions give for frames [i, i + frames) of a span that begins at t. */
XPH_INLINE void functions_as(const work *w, int64_t t, int64_t i, int64_t frames, const bool plain)
{
    const group *g = &w->g;
    const xph_scan_args *a = g->a;
    for (int64_t last = i + frames; i < last; i++) {
        int64_t row = row_of(g, t + i);
        for (int64_t c = 0; c < g->blocks * LANES; c += VEC) {
            vec slope, delta = step_both(g, row, c, plain, &slope);
            vec_store(frame_at(w, w->l->delta, i) + c, delta);
            vec_store(frame_at(w, w->l->slope, i) + c, slope);
            vec_store(frame_at(w, w->l->inflow, i) + c, delta * row_load(g, a->x, a->ldx, row, c));
        }
    }
}

static void functions_of(const work *w, int64_t t, int64_t i, int64_t frames)
{
    if (w->g.a->plain_delta)
        functions_as(w, t, i, frames, true);
    else
        functions_as(w, t, i, frames, false);
}

/* Prefetches a line of a row; rows lie pages apart, too far for the processor to foresee them.
 * Into L2: L1 is full. */
XPH_INLINE void prefetch_line(const group *g, const void *matrix, int64_t ld, int64_t t, int64_t c)
{
    if (matrix) __builtin_prefetch((const real *)matrix + row_of(g, t) * ld + g->channel + c, 0, 2);
}

/* What functions_of will load for frame t of the group that comes next, if any. */
XPH_INLINE void prefetch_inputs(const group *g, int64_t t, int64_t c)
{
    if (t >= g->a->time) return;
    prefetch_line(g, g->a->x, g->a->ldx, t, c);
    prefetch_line(g, g->a->dt, g->a->lddt, t, c);
}

/* What going back through frame t will load and store. */
XPH_INLINE void prefetch_back(const work *w, int64_t t, int64_t c)
{
    const group *g = &w->g;
    prefetch_line(g, g->a->z, g->a->ldz, t, c);
    prefetch_line(g, w->a->dy, w->a->lddy, t, c);
    prefetch_line(g, w->a->dz, w->a->lddz, t, c);
    prefetch_line(g, w->a->dx, w->a->lddx, t, c);
    prefetch_line(g, w->a->ddt, w->a->ldddt, t, c);
}

/* While frame t is marked: what comes CHUNK frames later, which may be the first frames to go back
 * through. */
XPH_INLINE void prefetch_marking(const work *w, int64_t t, int64_t c)
{
    const int64_t time = w->g.a->time, later = t + CHUNK;
    if (later < time)
        prefetch_inputs(&w->g, later, c);
    else if (2 * time - later > 0)
        prefetch_back(w, 2 * time - later - 1, c);
}

/* While frame t is run again before going back: frames before it, then those of the group that comes next. */
XPH_INLINE void prefetch_going_back(const work *w, int64_t t, int64_t c)
{
    if (t >= CHUNK)
        prefetch_back(w, t - CHUNK, c);
    else
        prefetch_inputs(&w->next, CHUNK - 1 - t, c);
}

/* COLUMN channels through frames [i, i + frames), with a mark before every stretch; h holds the state in
 * between. */
static void keep_column(const work *w, int64_t t, int64_t i, int64_t frames, int64_t c)
{
    const group *g = &w->g;
    const layout *l = w->l;
    const xph_scan_args *a = g->a;
    real buffer_b[MOST_STATES];
    const int64_t at = c / LANES * g->states * LANES + c % LANES;
    for (int64_t last = i + frames; i < last; i++) {
        const real *before = i % STRETCH ? w->slot + l->h : transposed_at(w, l->marks, i / STRETCH);
        const column col = {
            .delta = frame_at(w, l->delta, i) + c,
            .inflow = frame_at(w, l->inflow, i) + c,
            .rates = w->slot + l->rates + at,
            .limits = w->slot + l->limits + c,
            .b = frame_row(g, a->b, a->ldb, t + i, buffer_b),
            .before = (resets(g, t + i) ? w->slot + l->zeros : before) + at,
            .after =
                ((i + 1) % STRETCH ? w->slot + l->h : transposed_at(w, l->marks, (i + 1) / STRETCH)) + at,
            .decays = transposed_at(w, l->decays, i) + at};
        prefetch_marking(w, t + i, c);
        advance(&col, g->states, ONLY_STATES);
    }
}

/* A span from the state in `from`; where the last frame leaves the state. */
static const real *run_span(const work *w, const real *from, int64_t t, int64_t frames)
{
    memcpy(transposed_at(w, w->l->marks, 0), from, (size_t)w->size * sizeof(real));
    for (int64_t i = 0; i < frames; i += CHUNK) {
        int64_t now = int_min(CHUNK, frames - i);
        functions_of(w, t, i, now);
        for (int64_t c = 0; c < w->g.blocks * LANES; c += COLUMN) keep_column(w, t, i, now, c);
    }
    return frames % STRETCH ? w->slot + w->l->h : transposed_at(w, w->l->marks, frames / STRETCH);
}

/* The state before frame first + i of a span, which a reset makes zeros. */
static const real *before_frame(const work *w, int64_t t, int64_t first, int64_t i)
{
    if (resets(&w->g, t + first + i)) return w->slot + w->l->zeros;
    return i ? transposed_at(w, w->l->states, i - 1) : transposed_at(w, w->l->marks, first / STRETCH);
}

/* A stretch of the span: frames [first, first + frames), with all states and their sums, which lie in ds. */
static void stretch_column(const work *w, int64_t t, int64_t first, int64_t frames, int64_t c)
{
    const group *g = &w->g;
    const layout *l = w->l;
    const xph_scan_args *a = g->a;
    real buffer_b[MOST_STATES], buffer_c[MOST_STATES];
    const int64_t at = c / LANES * g->states * LANES + c % LANES;
    for (int64_t i = 0; i < frames; i++) {
        const column col = {.delta = frame_at(w, l->delta, first + i) + c,
                            .inflow = frame_at(w, l->inflow, first + i) + c,
                            .rates = w->slot + l->rates + at,
                            .limits = w->slot + l->limits + c,
                            .b = frame_row(g, a->b, a->ldb, t + first + i, buffer_b),
                            .c = frame_row(g, a->c, a->ldc, t + first + i, buffer_c),
                            .before = before_frame(w, t, first, i) + at,
                            .after = transposed_at(w, l->states, i) + at,
                            .decays = transposed_at(w, l->decays, i) + at,
                            .sum = frame_at(w, l->ds, i) + c};
        prefetch_going_back(w, t + first + i, c);
        advance(&col, g->states, SUMS_AND_DECAYS);
    }
}

/* Back through the gate: ds becomes the gradient of sum_n c h + skip x; dz. */
static void back_gate(const work *w, int64_t t, int64_t first, int64_t frames)
{
    const group *g = &w->g;
    const xph_scan_args *a = g->a;
    for (int64_t i = frames - 1; i >= 0; i--) {
        int64_t row = row_of(g, t + first + i);
        for (int64_t c = 0; c < g->blocks * LANES; c += VEC) {
            real *ds = frame_at(w, w->l->ds, i) + c, *dskip = w->slot + w->l->dskip + c;
            vec dy = row_load(g, w->a->dy, w->a->lddy, row, c), sum = vec_load(ds);
            vec x = row_load(g, a->x, a->ldx, row, c);
            if (a->skip) sum = vec_fma(row_load(g, a->skip, 0, 0, c), x, sum);
            if (a->z) {
                vec sigmoid, z = row_load(g, a->z, a->ldz, row, c), slope = vec_silu_parts(z, &sigmoid);
                row_store(g, w->a->dz, w->a->lddz, row, c, dy * sum * slope);
                dy *= z * sigmoid;
            }
            vec_store(ds, dy);
            vec_store(dskip, vec_fma(dy, x, vec_load(dskip)));
        }
    }
}

/* ---- back ---- */

/* VEC channels of each of some blocks in one frame. */
typedef struct back {
    const real *b, *c, *before, *after, *decays, *rates;
    const real *delta, *inflow, *ds;
    real *carry, *dlog; /* gradient of the state after the frame without this frame's use of it, in; of that
                                       before it, out */
    real *db, *dc;      /* [N][LANES]; `first`: nothing there yet */
    real *sum_inflow, *sum_rate; /* gradient of delta x; sum_n of dh decay before A log2(e) */
    bool first;
} back;

XPH_INLINE void back_blocks(const back *k, int64_t states, const int blocks)
{
    vec s[GROUP], delta[GROUP], inflow[GROUP], sum_inflow[GROUP], sum_rate[GROUP];
    XPH_UNROLL
    for (int j = 0; j < blocks; j++) {
        s[j] = vec_load(k->ds + j * LANES);
        delta[j] = vec_load(k->delta + j * LANES);
        inflow[j] = vec_load(k->inflow + j * LANES);
        sum_inflow[j] = sum_rate[j] = vec_all(R(0.0));
    }
    for (int64_t n = 0; n < states; n++) {
        const vec bn = vec_all(k->b[n]), cn = vec_all(k->c[n]);
        vec db = vec_all(R(0.0)), dc = vec_all(R(0.0)), rate[GROUP];
        if (!k->first) db = vec_load(k->db + n * LANES), dc = vec_load(k->dc + n * LANES);
        XPH_UNROLL
        for (int j = 0; j < blocks; j++) rate[j] = vec_load(k->rates + (j * states + n) * LANES);
        XPH_UNROLL
        for (int j = 0; j < blocks; j++) {
            const int64_t at = (j * states + n) * LANES;
            const vec dlog = vec_load(k->dlog + at), after = vec_load(k->after + at);
            vec dh = vec_fma(s[j], cn, vec_load(k->carry + at));
            vec carry = dh * vec_load(k->decays + at), through = carry * vec_load(k->before + at);
            vec_store(k->carry + at, carry);
            vec_store(k->dlog + at, vec_fma(through, delta[j], dlog));
            dc = vec_fma(s[j], after, dc);
            db = vec_fma(dh, inflow[j], db);
            sum_inflow[j] = vec_fma(dh, bn, sum_inflow[j]);
            sum_rate[j] = vec_fma(through, rate[j], sum_rate[j]);
        }
        vec_store(k->db + n * LANES, db);
        vec_store(k->dc + n * LANES, dc);
    }
    XPH_UNROLL
    for (int j = 0; j < blocks; j++) {
        vec_store(k->sum_inflow + j * LANES, sum_inflow[j]);
        vec_store(k->sum_rate + j * LANES, sum_rate[j]);
    }
}

/* All channels of frame first + i. */
static void back_frame(const work *w, int64_t t, int64_t first, int64_t i)
{
    const group *g = &w->g;
    const layout *l = w->l;
    const xph_scan_args *a = g->a;
    real buffer_b[MOST_STATES], buffer_c[MOST_STATES];
    const real *b = frame_row(g, a->b, a->ldb, t + first + i, buffer_b);
    const real *c = frame_row(g, a->c, a->ldc, t + first + i, buffer_c);
    const int64_t together = g->blocks == GROUP ? GROUP : 1;
    for (int64_t block = 0; block < g->blocks; block += together) {
        for (int64_t v = 0; v < LANES; v += VEC) {
            const int64_t at = block * g->states * LANES + v, wide = block * LANES + v;
            const back k = {.b = b,
                            .c = c,
                            .before = before_frame(w, t, first, i) + at,
                            .after = transposed_at(w, l->states, i) + at,
                            .decays = transposed_at(w, l->decays, i) + at,
                            .rates = w->slot + l->rates + at,
                            .delta = frame_at(w, l->delta, first + i) + wide,
                            .inflow = frame_at(w, l->inflow, first + i) + wide,
                            .ds = frame_at(w, l->ds, i) + wide,
                            .carry = w->slot + l->carry + at,
                            .dlog = w->slot + l->dlog + at,
                            .db = w->slot + l->db + v,
                            .dc = w->slot + l->dc + v,
                            .sum_inflow = frame_at(w, l->sum_inflow, i) + wide,
                            .sum_rate = frame_at(w, l->sum_rate, i) + wide,
                            .first = block == 0};
            if (together == GROUP)
                back_blocks(&k, g->states, GROUP);
            else
                back_blocks(&k, g->states, 1);
        }
    }
    if (resets(g, t + first + i)) memset(w->slot + l->carry, 0, (size_t)w->size * sizeof(real));
}

/* From the sums of the frames to the gradients of x and dt. */
static void back_inputs(const work *w, int64_t t, int64_t first, int64_t frames)
{
    const group *g = &w->g;
    const layout *l = w->l;
    const xph_scan_args *a = g->a;
    real *dbias = w->slot + l->dbias;
    for (int64_t i = frames - 1; i >= 0; i--) {
        int64_t row = row_of(g, t + first + i);
        for (int64_t c = 0; c < g->blocks * LANES; c += VEC) {
            vec delta = vec_load(frame_at(w, l->delta, first + i) + c),
                ds = vec_load(frame_at(w, l->ds, i) + c);
            vec inflow = vec_load(frame_at(w, l->sum_inflow, i) + c);
            vec rate = vec_load(frame_at(w, l->sum_rate, i) + c) * vec_all(-LN_2), dx = vec_all(R(0.0));
            if (a->skip) dx = ds * row_load(g, a->skip, 0, 0, c);
            row_store(g, w->a->dx, w->a->lddx, row, c, vec_fma(inflow, delta, dx));
            vec ddt = vec_fma(inflow, row_load(g, a->x, a->ldx, row, c), rate) *
                      vec_load(frame_at(w, l->slope, first + i) + c);
            row_store(g, w->a->ddt, w->a->ldddt, row, c, ddt);
            if (w->a->ddelta_bias) vec_store(dbias + c, vec_load(dbias + c) + ddt);
        }
    }
}

/* Row n of [N][LANES] sums, in one register. */
XPH_INLINE vec joined_row(const real *sums, int64_t n)
{
    vec row[LANE_VECS];
    XPH_UNROLL
    for (int i = 0; i < LANE_VECS; i++) row[i] = vec_load(sums + n * LANES + i * VEC);
    return join_vecs(row);
}

/* The lanes of [N][LANES] sums joined. */
static void join_states(const real *sums, real *to, int64_t states)
{
    int64_t n = 0;
    for (; n + VEC <= states; n += VEC) {
        vec rows[VEC];
        XPH_UNROLL
        for (int i = 0; i < VEC; i++) rows[i] = joined_row(sums, n + i);
        vec_store(to + n, vec_sum_rows(rows));
    }
    for (; n < states; n++) to[n] = vec_sum(joined_row(sums, n));
}

static void back_stretch(const work *w, int64_t t, int64_t first, int64_t frames)
{
    const group *g = &w->g;
    const layout *l = w->l;
    const xph_scan_args *a = g->a;
    real *scratch = w->a->scratch;
    for (int64_t c = 0; c < g->blocks * LANES; c += COLUMN) stretch_column(w, t, first, frames, c);
    back_gate(w, t, first, frames);
    for (int64_t i = frames - 1; i >= 0; i--) {
        int64_t at = (w->number * a->batch * a->time + row_of(g, t + first + i)) * a->states;
        back_frame(w, t, first, i);
        join_states(w->slot + l->db, scratch + l->all_db + at, a->states);
        join_states(w->slot + l->dc, scratch + l->all_dc + at, a->states);
    }
    back_inputs(w, t, first, frames);
}

static void start(const work *w)
{
    const group *g = &w->g;
    const layout *l = w->l;
    rates_of(g, w->slot + l->rates);
    limits_of(g, w->slot + l->rates, w->slot + l->limits);
    transpose_in(g, w->slot + l->carry, state_of(g, w->a->dstate_out));
    transpose_in(g, w->slot + l->spans, state_of(g, g->a->state_in));
    memset(w->slot + l->zeros, 0, (size_t)w->size * sizeof(real));
    memset(w->slot + l->dlog, 0, (size_t)w->size * sizeof(real));
    memset(w->slot + l->dskip, 0, WIDE * sizeof(real));
    memset(w->slot + l->dbias, 0, WIDE * sizeof(real));
}

/* d A = delta dh decay before, summed over time; d a_log = A d A. */
static void finish(const work *w)
{
    const group *g = &w->g;
    const layout *l = w->l;
    const xph_scan_args *a = g->a;
    real *scratch = w->a->scratch, *dlog = w->slot + l->dlog, *rates = w->slot + l->rates;
    for (int64_t i = 0; !a->plain_a && i < w->size; i += VEC)
        vec_store(dlog + i, vec_load(dlog + i) * (vec_load(rates + i) * vec_all(-LN_2)));
    transpose_out(g, scratch + l->all_da + g->stream * a->width * a->states, dlog);
    const int64_t channels = g->stream * a->width + g->channel;
    memcpy(scratch + l->all_dskip + channels, w->slot + l->dskip, (size_t)g->count * sizeof(real));
    memcpy(scratch + l->all_dbias + channels, w->slot + l->dbias, (size_t)g->count * sizeof(real));
    transpose_out(g, state_of(g, w->a->dstate_in), w->slot + l->carry);
}

static void grad_pair(const work *w)
{
    const int64_t time = w->g.a->time, keep = w->l->keep, count = blocks_of(time, keep);
    start(w);
    for (int64_t span = 0; span < count - 1; span++)
        memcpy(transposed_at(w, w->l->spans, span + 1),
               run_span(w, transposed_at(w, w->l->spans, span), span * keep, keep),
               (size_t)w->size * sizeof(real));
    for (int64_t span = count - 1; span >= 0; span--) {
        int64_t t = span * keep, frames = int_min(keep, time - t);
        run_span(w, transposed_at(w, w->l->spans, span), t, frames);
        for (int64_t first = (frames - 1) / STRETCH * STRETCH; first >= 0; first -= STRETCH)
            back_stretch(w, t, first, int_min(STRETCH, frames - first));
    }
    finish(w);
}

/* The slot of the first item serves all of this call: its memory stays in the cache. */
static void grad_run(const void *args, int64_t begin, int64_t end)
{
    const xph_scan_grad_args *a = args;
    const layout l = layout_of(&a->fwd);
    const int64_t last = end * l.pairs / l.slots - 1;
    for (int64_t pair = begin * l.pairs / l.slots; pair <= last; pair++) {
        const int64_t next = int_min(pair + 1, last);
        work w = {.a = a, .l = &l, .slot = (real *)a->scratch + begin * l.slot, .number = pair % l.groups};
        w.g = group_at(&a->fwd, pair / l.groups, w.number);
        w.next = group_at(&a->fwd, next / l.groups, next % l.groups);
        w.size = transposed_size(&w.g);
        grad_pair(&w);
    }
}

/* ---- later phases: sums over groups and over streams, in order ---- */

static int64_t rows_items(const void *args)
{
    const xph_scan_args *a = &((const xph_scan_grad_args *)args)->fwd;
    return blocks_of(a->batch * a->time, JOIN_ROWS);
}

/* to = sum over the groups of all[group][i], i < states */
static void join_groups(const real *all, int64_t groups, int64_t stride, int64_t states, real *to)
{
    for (int64_t n = 0; n < states; n += VEC) {
        vec sum = vec_all(R(0.0));
        for (int64_t g = 0; g < groups; g++) sum += vec_load_part(all + g * stride + n, states - n);
        vec_store_part(to + n, sum, states - n);
    }
}

static void rows_run(const void *args, int64_t begin, int64_t end)
{
    const xph_scan_grad_args *g = args;
    const xph_scan_args *a = &g->fwd;
    const layout l = layout_of(a);
    const real *scratch = g->scratch;
    int64_t rows = a->batch * a->time, n = a->states;
    for (int64_t r = begin * JOIN_ROWS; r < int_min(rows, end * JOIN_ROWS); r++) {
        join_groups(scratch + l.all_db + r * n, l.groups, rows * n, n, (real *)g->db + r * g->lddb);
        join_groups(scratch + l.all_dc + r * n, l.groups, rows * n, n, (real *)g->dc + r * g->lddc);
    }
}

static int64_t channels_items(const void *args)
{
    const xph_scan_args *a = &((const xph_scan_grad_args *)args)->fwd;
    return blocks_of(a->width, JOIN_CHANNELS);
}

/* to[i] += sum over the streams of all[stream][i]; to NULL: nothing. */
static void join_streams(const real *all, int64_t streams, int64_t size, int64_t begin, int64_t end, real *to)
{
    for (int64_t i = begin; to && i < end; i += VEC) {
        vec sum = vec_all(R(0.0));
        for (int64_t s = 0; s < streams; s++) sum += vec_load_part(all + s * size + i, end - i);
        vec_store_part(to + i, vec_load_part(to + i, end - i) + sum, end - i);
    }
}

static void channels_run(const void *args, int64_t begin, int64_t end)
{
    const xph_scan_grad_args *g = args;
    const xph_scan_args *a = &g->fwd;
    const layout l = layout_of(a);
    const real *scratch = g->scratch;
    int64_t from = begin * JOIN_CHANNELS, to = int_min(a->width, end * JOIN_CHANNELS), n = a->states;
    join_streams(scratch + l.all_da, a->batch, a->width * n, from * n, to * n, g->da_log);
    join_streams(scratch + l.all_dskip, a->batch, a->width, from, to, g->dskip);
    join_streams(scratch + l.all_dbias, a->batch, a->width, from, to, g->ddelta_bias);
}

const xph_candidate XPH_LIST(scan_grad)[] = {
    {.name = XPH_LABEL("scan_grad"),
     .accepts = grad_accepts,
     .scratch_bytes = grad_scratch,
     .phase = {{grad_items, grad_run}, {rows_items, rows_run}, {channels_items, channels_run}}},
    XPH_LIST_END,
};
