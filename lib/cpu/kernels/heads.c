/* Logits of all action heads from one trunk whose actions are known, and the gradients.
 *
 * Forward is local to a row: some rows together go through all heads, block of columns after block. Backward is
 * local to a column of the trunk: an item is a few columns of all rows, so that v, e and their gradients sum over
 * the rows in order and no partial sums exist. */
#include "cpu/kernels/trunk.h"

/* ---- the products with v ---- */

enum { TRUNK_SUMS = VEC_BYTES == 64 ? 16 : 4 }; /* sums of lanes that stay in registers */

/* to[i] = the lanes of sum i joined. */
XPH_INLINE void join_sums(vec (*lane)[LANE_VECS], int count, real *to)
{
#if VEC_BYTES == 64
    if (count > 4) {
        vec all[TRUNK_SUMS];
        XPH_UNROLL
        for (int i = 0; i < TRUNK_SUMS; i++) all[i] = i < count ? lane[i][0] : vec_all(0.0f);
        vec_store(to, vec_sum_rows(all));
        return;
    }
#endif
    XPH_UNROLL
    for (int i = 0; i < count; i++) to[i] = join_lanes(lane[i]);
}

/* One matrix product: y[r][c] += v[c] . hidden[r], over at most TRUNK_COLUMNS columns. */
typedef struct trunk_job {
    const real *v, *hidden; /* hidden: rows of TRUNK_COLUMNS */
    int64_t width, columns, ldy;
    real *y;
} trunk_job;

/* Columns from `at` on: LANES, or, where not whole, those that are left. */
XPH_INLINE void trunk_step(const trunk_job *job, int64_t at, bool whole, int rows, int classes,
                           vec lane[TRUNK_SUMS][LANE_VECS])
{
    const int some = whole ? VEC_LOADS : 1;
    XPH_UNROLL
    for (int k = 0; k < LANE_VECS; k += some) {
        int64_t from = at + k * VEC;
        vec v[TRUNK_SUMS][VEC_LOADS], h[VEC_LOADS];
        XPH_UNROLL
        for (int c = 0; c < classes; c++) {
            const real *row = job->v + c * job->width + from;
            if (whole)
                vecs_load(v[c], some, row);
            else
                v[c][0] = vec_load_part(row, int_max(0, job->columns - from));
            if (rows > 1) VEC_HOLD(v[c][0]);
        }
        XPH_UNROLL
        for (int r = 0; r < rows; r++) {
            vecs_load(h, some, job->hidden + r * TRUNK_COLUMNS + from);
            if (classes > 1) VEC_HOLD(h[0]);
            XPH_UNROLL
            for (int c = 0; c < classes; c++)
                for (int j = 0; j < some; j++)
                    lane[r * classes + c][k + j] = vec_fma(v[c][j], h[j], lane[r * classes + c][k + j]);
        }
    }
}

XPH_INLINE void trunk_tile(const trunk_job *job, int rows, int classes)
{
    vec lane[TRUNK_SUMS][LANE_VECS] = {{{0}}};
    real sums[LANES];
    int64_t at = 0;
    for (; at + LANES <= job->columns; at += LANES) trunk_step(job, at, true, rows, classes, lane);
    if (at < job->columns) trunk_step(job, at, false, rows, classes, lane);
    join_sums(lane, rows * classes, sums);
    if (rows == 1) { /* one store: what is drawn next reads them at once */
        XPH_UNROLL
        for (int c = 0; c < classes; c += VEC)
            vec_store_part(job->y + c, vec_load_part(job->y + c, classes - c) + vec_load(sums + c),
                           classes - c);
        return;
    }
    XPH_UNROLL
    for (int r = 0; r < rows; r++) {
        XPH_UNROLL
        for (int c = 0; c < classes; c++) job->y[r * job->ldy + c] += sums[r * classes + c];
    }
}

/* Classes that go together, as many of TRUNK_ROWS rows as registers hold. */
XPH_INLINE void trunk_many(trunk_job job, int classes)
{
    int together = TRUNK_SUMS / classes < TRUNK_ROWS ? TRUNK_SUMS / classes : TRUNK_ROWS;
    for (int r = 0; r < TRUNK_ROWS; r += together) {
        trunk_tile(&job, together, classes);
        job.hidden += together * TRUNK_COLUMNS;
        job.y += together * job.ldy;
    }
}

static void product_many(trunk_job job, int64_t classes)
{
    while (classes > 0) {
        int now = classes >= 8 && TRUNK_SUMS >= 8 ? 8 : classes >= 4 ? 4 : classes >= 2 ? 2 : 1;
        if (now == 8)
            trunk_many(job, TRUNK_SUMS >= 8 ? 8 : 1);
        else if (now == 4)
            trunk_many(job, 4);
        else if (now == 2)
            trunk_many(job, 2);
        else
            trunk_many(job, 1);
        job.v += now * job.width;
        job.y += now;
        classes -= now;
    }
}

/* One row: the sums of all classes of a group run side by side, a last class alone would wait for itself. */
static void product_one(trunk_job job, int64_t classes)
{
    while (classes > 0) {
        int now = (int)(classes <= TRUNK_SUMS      ? classes
                        : classes < 2 * TRUNK_SUMS ? classes / 2
                                                   : TRUNK_SUMS);
        switch (now) {
#define TRUNK_ONE(count)                                                                                     \
  case count:                                                                                                \
    trunk_tile(&job, 1, (count) <= TRUNK_SUMS ? (count) : 1);                                                \
    break;
            TRUNK_ONE(1)
            TRUNK_ONE(2)
            TRUNK_ONE(3)
            TRUNK_ONE(4)
            TRUNK_ONE(5)
            TRUNK_ONE(6)
            TRUNK_ONE(7)
            TRUNK_ONE(8)
            TRUNK_ONE(9)
            TRUNK_ONE(10)
            TRUNK_ONE(11)
            TRUNK_ONE(12)
            TRUNK_ONE(13)
            TRUNK_ONE(14)
            TRUNK_ONE(15)
            TRUNK_ONE(16)
#undef TRUNK_ONE
        default:
            break;
        }
        job.v += now * job.width;
        job.y += now;
        classes -= now;
    }
}

void XPH_FN(xph_trunk_logits)(const xph_heads_args *args, const xph_head *head, int64_t column,
                              int64_t columns, const real *hidden, bool many, real *y)
{
    const real *v = (const real *)args->v + head->first * args->width + column;
    const trunk_job job = {v, hidden, args->width, columns, args->ldy, y + head->first};
    if (many)
        product_many(job, head->count);
    else
        product_one(job, head->count);
}

/* ---- forward ---- */

static int64_t block_rows(const xph_heads_args *args)
{
    return blocks_of(rows_per_item(args->logits * args->width), TRUNK_ROWS) * TRUNK_ROWS;
}

static int64_t heads_items(const void *given)
{
    const xph_heads_args *args = given;
    return blocks_of(args->rows, block_rows(args));
}

/* Some columns of TRUNK_ROWS rows from `row` on, or of one. */
XPH_INLINE void heads_block(const xph_heads_args *args, int64_t row, bool many, int64_t column, real *y)
{
    int64_t columns = int_min(TRUNK_COLUMNS, args->width - column);
    const int rows = many ? TRUNK_ROWS : 1;
    real s[TRUNK_ROWS * TRUNK_COLUMNS], hidden[TRUNK_ROWS * TRUNK_COLUMNS];
    trunk_rows taken = {.count = 0};
    for (int64_t h = 0; h < args->heads; h++) {
        for (int r = 0; r < rows && (h == 0 || args->e); r++) {
            const real *from = (const real *)args->z + (row + r) * args->ldz + column;
            real *to = s + r * TRUNK_COLUMNS;
            if (h > 0)
                trunk_taken(args->e, args->width, &args->head[h - 1],
                            args->actions[(row + r) * args->lda + h - 1], &taken);
            trunk_next(h > 0 ? to : from, &taken, column, columns, to, hidden + r * TRUNK_COLUMNS);
        }
        XPH_FN(xph_trunk_logits)(args, &args->head[h], column, columns, hidden, many, y);
    }
}

static void heads_one(const xph_heads_args *args, int64_t row)
{
    real *y = (real *)args->y + row * args->ldy;
    trunk_bias(args, row, 0, args->logits, y);
    for (int64_t column = 0; column < args->width; column += TRUNK_COLUMNS)
        heads_block(args, row, false, column, y);
}

static void heads_many(const xph_heads_args *args, int64_t row)
{
    real *y = (real *)args->y + row * args->ldy;
    for (int64_t r = 0; r < TRUNK_ROWS; r++) trunk_bias(args, row + r, 0, args->logits, y + r * args->ldy);
    for (int64_t column = 0; column < args->width; column += TRUNK_COLUMNS)
        heads_block(args, row, true, column, y);
}

static void heads_run(const void *given, int64_t begin, int64_t end)
{
    const xph_heads_args *args = given;
    int64_t block = block_rows(args), row = begin * block, last = int_min(args->rows, end * block);
    for (; row + TRUNK_ROWS <= last; row += TRUNK_ROWS) heads_many(args, row);
    for (; row < last; row++) heads_one(args, row);
}

/* ---- backward: an item is COLUMNS columns. It copies its columns of v, e and their gradients into dense panels
 * (rows a power of two apart share few places in a cache), takes the rows in blocks, and copies the gradients
 * back. What is not there in the last columns is zero. ---- */

enum {
    COLUMNS = 32,
    COLUMN_VECS = COLUMNS / VEC,
    BLOCK = 32,
    TILE = VEC_BYTES == 64     ? 8
           : VEC_REGISTERS > 0 ? 2
                               : 1, /* rows, or classes, whose columns stay in registers */
};

static size_t item_reals(const xph_heads_args *args)
{
    return (size_t)((4 * args->logits + (args->heads + 2) * BLOCK) * COLUMNS);
}

static size_t grad_scratch(const void *given)
{
    const xph_heads_args *args = &((const xph_heads_grad_args *)given)->fwd;
    return (size_t)blocks_of(args->width, COLUMNS) * item_reals(args) * sizeof(real);
}

/* The last item is the bias. */
static int64_t grad_items(const void *given)
{
    const xph_heads_args *args = &((const xph_heads_grad_args *)given)->fwd;
    return blocks_of(args->width, COLUMNS) + 1;
}

typedef struct part {
    const xph_heads_grad_args *grad;
    int64_t column, columns; /* in the trunk; columns: at most COLUMNS */
    int64_t row, rows;       /* the block at hand */
    real *v, *dv, *e, *de;   /* panels [L, COLUMNS]; dv, e, de: NULL when not there or not wanted */
    real *s;                 /* [heads, BLOCK, COLUMNS] what heads see, then SiLU of it */
    real *slope, *ds;        /* [BLOCK, COLUMNS] of the head at hand; gradient of what the next head sees */
} part;

/* The item's columns of one row, filled up with zeros; and back. The lengths that a compiler knows are registers. */
XPH_INLINE void columns_in(const part *p, const real *from, real *to)
{
    if (p->columns == COLUMNS) {
        XPH_UNROLL
        for (int k = 0; k < COLUMNS; k += VEC) vec_store(to + k, vec_load(from + k));
        return;
    }
    memset(to, 0, COLUMNS * sizeof(real));
    memcpy(to, from, (size_t)p->columns * sizeof(real));
}

XPH_INLINE void columns_out(const part *p, const real *from, real *to)
{
    if (p->columns < COLUMNS) {
        memcpy(to, from, (size_t)p->columns * sizeof(real));
        return;
    }
    XPH_UNROLL
    for (int k = 0; k < COLUMNS; k += VEC) vec_store(to + k, vec_load(from + k));
}

static real *panel_in(const part *p, const void *from, real *panel)
{
    const xph_heads_args *args = &p->grad->fwd;
    if (!from) return NULL;
    for (int64_t l = 0; l < args->logits; l++)
        columns_in(p, (const real *)from + l * args->width + p->column, panel + l * COLUMNS);
    return panel;
}

static void panel_out(const part *p, const real *panel, void *to)
{
    const xph_heads_args *args = &p->grad->fwd;
    for (int64_t l = 0; panel && l < args->logits; l++)
        columns_out(p, panel + l * COLUMNS, (real *)to + l * args->width + p->column);
}

static part part_make(const xph_heads_grad_args *grad, int64_t item)
{
    const xph_heads_args *args = &grad->fwd;
    real *memory = (real *)grad->scratch + (size_t)item * item_reals(args);
    int64_t panel = args->logits * COLUMNS, block = BLOCK * COLUMNS;
    part p = {.grad = grad, .column = item * COLUMNS};
    p.columns = int_min(COLUMNS, args->width - p.column);
    p.v = panel_in(&p, args->v, memory);
    p.dv = panel_in(&p, grad->dv, memory + panel);
    p.e = panel_in(&p, args->e, memory + 2 * panel);
    p.de = panel_in(&p, args->e ? grad->de : NULL, memory + 3 * panel);
    p.s = memory + 4 * panel;
    p.slope = p.s + args->heads * block;
    p.ds = p.slope + block;
    return p;
}

/* An item takes few columns of each row, which a processor does not foresee: z of the next block, and where dz
 * of this one will go. Addresses alone, nothing is read. */
static void part_prefetch(const part *p, int64_t r)
{
    const xph_heads_args *args = &p->grad->fwd;
    const int64_t bytes = (int64_t)sizeof(real), row = p->row + r;
    uintptr_t z = (uintptr_t)args->z + (uintptr_t)(((row + BLOCK) * args->ldz + p->column) * bytes);
    uintptr_t dz = (uintptr_t)p->grad->dz + (uintptr_t)((row * p->grad->lddz + p->column) * bytes);
    for (int64_t i = 0; i < p->columns * bytes; i += 64) {
        __builtin_prefetch((const void *)(z + (uintptr_t)i), 0, 3);
        if (p->grad->dz) __builtin_prefetch((const void *)(dz + (uintptr_t)i), 1, 3);
    }
}

/* What every head saw, in every row of the block; ds = 0. */
static void part_again(const part *p)
{
    const xph_heads_args *args = &p->grad->fwd;
    for (int64_t i = 0; i < BLOCK * COLUMNS; i += VEC) vec_store(p->ds + i, vec_all(R(0.0)));
    trunk_rows taken;
    for (int64_t r = 0; r < p->rows; r++) {
        const int32_t *actions = args->e ? args->actions + (p->row + r) * args->lda : NULL;
        const real *z = (const real *)args->z + (p->row + r) * args->ldz + p->column;
        real *s = p->s + r * COLUMNS;
        part_prefetch(p, r);
        columns_in(p, z, s);
        for (int64_t h = 0; h + 1 < args->heads; h++) {
            real *next = s + BLOCK * COLUMNS;
            taken.count = 0;
            if (p->e) trunk_taken(p->e, COLUMNS, &args->head[h], actions[h], &taken);
            for (int k = 0; k < COLUMNS; k += VEC)
                vec_store(next + k, trunk_sum(vec_load(s + k), &taken, k, VEC));
            s = next;
        }
    }
}

/* de at the rows taken += ds */
static void give_taken(const part *p, const xph_head *head, int64_t h)
{
    const xph_heads_args *args = &p->grad->fwd;
    trunk_rows taken;
    for (int64_t r = 0; r < p->rows; r++) {
        const real *ds = p->ds + r * COLUMNS;
        trunk_taken(p->de, COLUMNS, head, args->actions[(p->row + r) * args->lda + h], &taken);
        for (int64_t i = 0; i < taken.count; i++) {
            real *row = p->de + (taken.row[i] - p->de);
            XPH_UNROLL
            for (int k = 0; k < COLUMNS; k += VEC) vec_store(row + k, vec_load(row + k) + vec_load(ds + k));
        }
    }
}

static void part_slopes(const part *p, real *s)
{
    for (int64_t i = 0; i < p->rows * COLUMNS; i += VEC) {
        vec slope;
        vec_store(s + i, silu_slope_vec(vec_load(s + i), &slope));
        vec_store(p->slope + i, slope);
    }
}

/* to[i] += sum over k of factor[i ld_i + k ld_k] from[k]: `lines` rows of COLUMNS, in registers over all k. */
XPH_INLINE void tile_sum(const real *factor, int64_t ld_i, int64_t ld_k, int64_t count, const real *from,
                         int lines, vec sum[TILE][COLUMN_VECS])
{
    for (int64_t k = 0; k < count; k++) {
        vec x[COLUMN_VECS];
        XPH_UNROLL
        for (int c = 0; c < COLUMN_VECS; c++) {
            x[c] = vec_load(from + k * COLUMNS + c * VEC);
            VEC_HOLD(x[c]);
        }
        XPH_UNROLL
        for (int i = 0; i < lines; i++) {
            vec f = vec_all(factor[i * ld_i + k * ld_k]);
            VEC_HOLD(f);
            XPH_UNROLL
            for (int c = 0; c < COLUMN_VECS; c++) sum[i][c] = vec_fma(f, x[c], sum[i][c]);
        }
    }
}

/* dv[l] += sum over the rows of dy[l] SiLU(s) */
XPH_INLINE void dv_tile(const part *p, const real *dy, const real *hidden, int lines, real *dv)
{
    vec sum[TILE][COLUMN_VECS];
    XPH_UNROLL
    for (int i = 0; i < lines * COLUMN_VECS; i++)
        sum[i / COLUMN_VECS][i % COLUMN_VECS] = vec_load(dv + i * VEC);
    tile_sum(dy, 1, p->grad->lddy, p->rows, hidden, lines, sum);
    XPH_UNROLL
    for (int i = 0; i < lines * COLUMN_VECS; i++)
        vec_store(dv + i * VEC, sum[i / COLUMN_VECS][i % COLUMN_VECS]);
}

/* dh = sum over the head of dy[l] v[l]; ds += dh SiLU'(s) */
XPH_INLINE void ds_tile(const part *p, const xph_head *head, const real *dy, int64_t r, int lines)
{
    vec sum[TILE][COLUMN_VECS] = {{{0}}};
    real *ds = p->ds + r * COLUMNS, *slope = p->slope + r * COLUMNS;
    tile_sum(dy + r * p->grad->lddy, p->grad->lddy, 1, head->count, p->v + head->first * COLUMNS, lines, sum);
    XPH_UNROLL
    for (int i = 0; i < lines * COLUMN_VECS; i++)
        vec_store(ds + i * VEC, vec_fma(sum[i / COLUMN_VECS][i % COLUMN_VECS], vec_load(slope + i * VEC),
                                        vec_load(ds + i * VEC)));
}

static void part_head(const part *p, int64_t h)
{
    const xph_heads_args *args = &p->grad->fwd;
    const xph_head *head = &args->head[h];
    const real *dy = (const real *)p->grad->dy + p->row * p->grad->lddy + head->first;
    real *s = p->s + h * BLOCK * COLUMNS, *dv = p->dv ? p->dv + head->first * COLUMNS : NULL;
    int64_t l = 0, r = 0;
    if (p->de) give_taken(p, head, h);
    part_slopes(p, s);
    for (; dv && l + TILE <= head->count; l += TILE) dv_tile(p, dy + l, s, TILE, dv + l * COLUMNS);
    for (; dv && l < head->count; l++) dv_tile(p, dy + l, s, 1, dv + l * COLUMNS);
    for (; r + TILE <= p->rows; r += TILE) ds_tile(p, head, dy, r, TILE);
    for (; r < p->rows; r++) ds_tile(p, head, dy, r, 1);
}

static void grad_part(const xph_heads_grad_args *grad, int64_t item)
{
    const xph_heads_args *args = &grad->fwd;
    part p = part_make(grad, item);
    for (p.row = 0; p.row < args->rows; p.row += BLOCK) {
        p.rows = int_min(BLOCK, args->rows - p.row);
        part_again(&p);
        for (int64_t h = args->heads; h-- > 0;) part_head(&p, h);
        for (int64_t r = 0; grad->dz && r < p.rows; r++)
            columns_out(&p, p.ds + r * COLUMNS, (real *)grad->dz + (p.row + r) * grad->lddz + p.column);
    }
    panel_out(&p, p.dv, grad->dv);
    panel_out(&p, p.de, grad->de);
}

static void grad_bias(const xph_heads_grad_args *grad)
{
    real *restrict dbias = grad->dbias;
    for (int64_t row = 0; dbias && row < grad->fwd.rows; row++) {
        const real *restrict dy = (const real *)grad->dy + row * grad->lddy;
        XPH_VECTOR
        for (int64_t l = 0; l < grad->fwd.logits; l++) dbias[l] += dy[l];
    }
}

static void grad_run(const void *given, int64_t begin, int64_t end)
{
    const xph_heads_grad_args *grad = given;
    int64_t bias_item = blocks_of(grad->fwd.width, COLUMNS);
    for (int64_t item = begin; item < end; item++) {
        if (item == bias_item)
            grad_bias(grad);
        else
            grad_part(grad, item);
    }
}

const xph_candidate XPH_LIST(heads)[] = {{XPH_LABEL("heads"), NULL, NULL, {{heads_items, heads_run}}},
                                         XPH_LIST_END};

const xph_candidate XPH_LIST(heads_grad)[] = {
    {XPH_LABEL("heads_grad"), NULL, grad_scratch, {{grad_items, grad_run}}}, XPH_LIST_END};
