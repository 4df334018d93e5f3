/* LayerNorm over the width with an optional SiLU behind it, and its gradient.
 *
 * Rows are summed in lanes and two passes (mean, then squares about it). Gradients of gain and shift are summed
 * over the rows: SUM_ROWS rows from 0 in order, and these sums added in order to what is there. The
 * passes over one row alternate with those over its neighbours, because each would have to wait for the last. */
#include "cpu/kernels/real.h"
#include "cpu/simd/lanes.h"
#include "cpu/simd/silu.h"

enum { COLUMNS = 64, SUM_ROWS = 128, WORK_PER_NUMBER = 32, SUM_VECS = XPH_LANES / VEC };
enum { AHEAD = 4096 };

static int64_t rows_of_item(const xph_norm_args *a)
{
    return rows_per_item(int_max(1, a->width) * WORK_PER_NUMBER);
}

static int64_t norm_items(const void *args)
{
    const xph_norm_args *a = args;
    return blocks_of(a->rows, rows_of_item(a));
}

typedef struct moments {
    real mean, rstd;
} moments;

/* The lanes in halves. */
XPH_INLINE real join_sums(vec lane[SUM_VECS])
{
    XPH_UNROLL
    for (int i = 0; i < LANE_VECS; i++) lane[i] += lane[i + LANE_VECS];
    return join_lanes(lane);
}

static real row_mean(const real *x, int64_t width)
{
    vec lane[SUM_VECS] = {0};
    int64_t at = 0;
    for (; at + XPH_LANES <= width; at += XPH_LANES) {
        XPH_UNROLL
        for (int i = 0; i < SUM_VECS; i++) lane[i] += vec_load(x + at + i * VEC);
    }
    XPH_UNROLL
    for (int i = 0; i < SUM_VECS; i++, at += VEC)
        if (at < width) lane[i] += vec_load_part(x + at, width - at);
    return join_sums(lane) / (real)width;
}

/* From the squares of x - mean; what lies behind the row counts as the mean. */
static real row_rstd(const real *x, int64_t width, real mean, real epsilon)
{
    vec lane[SUM_VECS] = {0}, means = vec_all(mean);
    real fill[VEC];
    int64_t at = 0;
    for (; at + XPH_LANES <= width; at += XPH_LANES) {
        XPH_UNROLL
        for (int i = 0; i < SUM_VECS; i++) {
            vec d = vec_load(x + at + i * VEC) - means;
            lane[i] = vec_fma(d, d, lane[i]);
        }
    }
    vec_store(fill, means);
    XPH_UNROLL
    for (int i = 0; i < SUM_VECS; i++, at += VEC) {
        if (at >= width) continue;
        vec d = vec_load_part(x + at, width - at) - vec_load_part(fill, width - at);
        lane[i] = vec_fma(d, d, lane[i]);
    }
    return R(1.0) / REAL_SQRT(join_sums(lane) / (real)width + epsilon);
}

/* Prefetches what comes some rows later: an address alone, nothing is read. Where every row takes long, the
 * processor does not look that far by itself (a quarter less time for SiLU from memory). */
XPH_INLINE void prefetch_ahead(const real *x)
{
    __builtin_prefetch((const void *)((uintptr_t)x + AHEAD), 0, 3);
}

/* Not x rstd - mean rstd: numbers near their mean would lose digits. */
XPH_INLINE vec norm_of(vec x, vec mean, vec rstd)
{
    return (x - mean) * rstd;
}

XPH_INLINE void norm_row(const xph_norm_args *a, const real *x, moments m, bool silu, real *y)
{
    const real *gain = a->gain, *shift = a->shift;
    vec mean = vec_all(m.mean), rstd = vec_all(m.rstd);
    int64_t at = 0, left;
    for (; at + VEC <= a->width; at += VEC) {
        if (silu) prefetch_ahead(x + at);
        vec n = norm_of(vec_load(x + at), mean, rstd);
        n = vec_fma(n, vec_load(gain + at), vec_load(shift + at));
        vec_store(y + at, silu ? silu_vec(n) : n);
    }
    if ((left = a->width - at) == 0) return;
    vec n = norm_of(vec_load_part(x + at, left), mean, rstd);
    n = vec_fma(n, vec_load_part(gain + at, left), vec_load_part(shift + at, left));
    vec_store_part(y + at, silu ? silu_vec(n) : n, left);
}

/* Rows [row, last). The mean is taken two rows ahead and the deviation one, so that nothing waits for a join of
 * lanes, a division or a root. Row i is in place i % 4 of m. */
static void norm_rows(const xph_norm_args *a, int64_t row, int64_t last)
{
    const real *x = a->x;
    real *y = a->y, *saved = a->saved;
    moments m[4];
    for (int64_t i = row - 2; i < last; i++) {
        moments *mean = &m[(i + 2) & 3], *deviation = &m[(i + 1) & 3], *now = &m[i & 3];
        if (i + 2 < last) mean->mean = row_mean(x + (i + 2) * a->ldx, a->width);
        if (i + 1 >= row && i + 1 < last)
            deviation->rstd = row_rstd(x + (i + 1) * a->ldx, a->width, deviation->mean, (real)a->epsilon);
        if (i < row) continue;
        if (a->act == XPH_ACT_SILU)
            norm_row(a, x + i * a->ldx, *now, true, y + i * a->ldy);
        else
            norm_row(a, x + i * a->ldx, *now, false, y + i * a->ldy);
        if (!saved) continue;
        saved[2 * i] = now->mean;
        saved[2 * i + 1] = now->rstd;
    }
}

static void norm_run(const void *args, int64_t begin, int64_t end)
{
    const xph_norm_args *a = args;
    int64_t block = rows_of_item(a), first = begin * block, last = int_min(a->rows, end * block);
    if (first < last && a->width > 0) norm_rows(a, first, last);
}

const xph_candidate XPH_LIST(norm)[] = {
    {.name = XPH_LABEL("norm"), .phase = {{norm_items, norm_run}}},
    XPH_LIST_END,
};

/* ---- gradient: an item is SUM_ROWS rows. Its scratch: the sums of dgain and dshift over them, and g = dn gain
 * of two rows, where dn is the gradient before the activation. All in whole registers. ---- */

enum { SCRATCH_ROWS = 4 };

static int64_t padded(int64_t width)
{
    return blocks_of(width, XPH_LANES) * XPH_LANES;
}

static int64_t dx_items(const void *args)
{
    const xph_norm_grad_args *a = args;
    return blocks_of(a->fwd.rows, SUM_ROWS);
}

static size_t norm_grad_scratch(const void *args)
{
    const xph_norm_grad_args *a = args;
    return (size_t)dx_items(args) * SCRATCH_ROWS * (size_t)padded(a->fwd.width) * sizeof(real);
}

/* A row on its way back. */
typedef struct back {
    const real *x, *dy;
    moments m, means;                     /* means: of g and g n */
    real *kept;                           /* g */
    vec plain[SUM_VECS], along[SUM_VECS]; /* lanes of g and g n */
} back;

/* VEC numbers from `at` on, or the `left` that there are; i: their place among the lanes. Numbers that are not
 * there are zeros in x, dy and gain: they add nothing to the sums of the row, and what they leave in scratch is
 * not read. */
XPH_INLINE void back_part(const xph_norm_args *f, back *b, int64_t at, int64_t left, bool silu, real *dgain,
                          real *dshift, int i)
{
    const real *gains = (const real *)f->gain + at, *shifts = (const real *)f->shift + at;
    bool whole = left >= VEC;
    if (silu) prefetch_ahead(b->x + at);
    vec x = whole ? vec_load(b->x + at) : vec_load_part(b->x + at, left);
    vec dn = whole ? vec_load(b->dy + at) : vec_load_part(b->dy + at, left), slope;
    vec gain = whole ? vec_load(gains) : vec_load_part(gains, left);
    vec shift = whole ? vec_load(shifts) : vec_load_part(shifts, left);
    vec n = norm_of(x, vec_all(b->m.mean), vec_all(b->m.rstd));
    if (silu) {
        (void)silu_slope_vec(vec_fma(n, gain, shift), &slope);
        dn *= slope;
    }
    vec g = dn * gain;
    vec_store(dgain + at, vec_fma(dn, n, vec_load(dgain + at)));
    vec_store(dshift + at, vec_load(dshift + at) + dn);
    vec_store(b->kept + at, g);
    b->plain[i] += g;
    b->along[i] = vec_fma(g, n, b->along[i]);
}

XPH_INLINE void back_row(const xph_norm_grad_args *a, back *to, bool silu, real *dgain, real *dshift)
{
    const xph_norm_args *f = &a->fwd;
    int64_t at = 0, width = f->width;
    back b = *to;
    XPH_UNROLL
    for (int i = 0; i < SUM_VECS; i++) b.plain[i] = b.along[i] = vec_all(R(0.0));
    for (; at + XPH_LANES <= width; at += XPH_LANES) {
        XPH_UNROLL
        for (int i = 0; i < SUM_VECS; i++) back_part(f, &b, at + i * VEC, VEC, silu, dgain, dshift, i);
    }
    XPH_UNROLL
    for (int i = 0; i < SUM_VECS; i++, at += VEC)
        if (at < width) back_part(f, &b, at, width - at, silu, dgain, dshift, i);
    to->means = (moments){join_sums(b.plain) / (real)width, join_sums(b.along) / (real)width};
}

/* dx = rstd (g - mean(g) - n mean(g n)). */
typedef struct slopes {
    vec mean, rstd, along, rest;
} slopes;

XPH_INLINE vec dx_part(vec x, vec g, const slopes *s)
{
    return vec_fma(norm_of(x, s->mean, s->rstd), s->along, vec_fma(g, s->rstd, s->rest));
}

static void dx_row(const back *b, int64_t width, bool add, real *dx)
{
    const slopes s = {vec_all(b->m.mean), vec_all(b->m.rstd), vec_all(-b->m.rstd * b->means.rstd),
                      vec_all(-b->m.rstd * b->means.mean)};
    int64_t at = 0, left;
    for (; at + VEC <= width; at += VEC) {
        vec d = dx_part(vec_load(b->x + at), vec_load(b->kept + at), &s);
        vec_store(dx + at, add ? vec_load(dx + at) + d : d);
    }
    if ((left = width - at) == 0) return;
    vec d = dx_part(vec_load_part(b->x + at, left), vec_load(b->kept + at), &s);
    vec_store_part(dx + at, add ? vec_load_part(dx + at, left) + d : d, left);
}

/* dx of a row is made behind the sums of the next row: it would have to wait for its own. */
static void dx_item(const xph_norm_grad_args *a, int64_t item)
{
    const xph_norm_args *f = &a->fwd;
    const real *saved = f->saved;
    int64_t stride = padded(f->width), first = item * SUM_ROWS, last = int_min(f->rows, first + SUM_ROWS);
    real *dx = a->dx, *scratch = (real *)a->scratch + item * SCRATCH_ROWS * stride;
    back rows[2];
    memset(scratch, 0, (size_t)(2 * stride) * sizeof *scratch);
    for (int64_t r = first; r <= last; r++) {
        back *now = &rows[r & 1];
        if (r < last) {
            now->x = (const real *)f->x + r * f->ldx;
            now->dy = (const real *)a->dy + r * a->lddy;
            now->m = (moments){saved[2 * r], saved[2 * r + 1]};
            now->kept = scratch + (2 + (r & 1)) * stride;
            if (f->act == XPH_ACT_SILU)
                back_row(a, now, true, scratch, scratch + stride);
            else
                back_row(a, now, false, scratch, scratch + stride);
        }
        if (dx && r > first) dx_row(&rows[!(r & 1)], f->width, a->dx_add, dx + (r - 1) * a->lddx);
    }
}

static void dx_run(const void *args, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) dx_item(args, i);
}

static int64_t dgain_items(const void *args)
{
    const xph_norm_grad_args *a = args;
    return blocks_of(a->fwd.width, COLUMNS);
}

static void add_blocks(const real *restrict from, int64_t stride, int64_t blocks, int64_t columns,
                       real *restrict to)
{
    real total[COLUMNS];
    memcpy(total, to, (size_t)columns * sizeof *to);
    for (int64_t b = 0; b < blocks; b++) {
        XPH_VECTOR
        for (int64_t c = 0; c < columns; c++) total[c] += from[b * stride + c];
    }
    memcpy(to, total, (size_t)columns * sizeof *to);
}

static void dgain_run(const void *args, int64_t begin, int64_t end)
{
    const xph_norm_grad_args *a = args;
    int64_t stride = padded(a->fwd.width), blocks = dx_items(args);
    for (int64_t i = begin; i < end; i++) {
        int64_t column = i * COLUMNS, columns = int_min(COLUMNS, a->fwd.width - column);
        const real *from = (const real *)a->scratch + column;
        add_blocks(from, SCRATCH_ROWS * stride, blocks, columns, (real *)a->dgain + column);
        add_blocks(from + stride, SCRATCH_ROWS * stride, blocks, columns, (real *)a->dshift + column);
    }
}

const xph_candidate XPH_LIST(norm_grad)[] = {
    {.name = XPH_LABEL("norm_grad"),
     .scratch_bytes = norm_grad_scratch,
     .phase = {{dx_items, dx_run}, {dgain_items, dgain_run}}},
    XPH_LIST_END,
};
