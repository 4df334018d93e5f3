/* y = x W^T + bias + residual, and the packing of W. tile.h says in which order a sum is taken.
 *
 * Many rows: cut by rows; a group of panels stays in L2 while strip after strip of rows passes. Few rows: cut
 * by panels; all rows pass one panel while the next is prefetched. Weights that are not packed are transposed
 * in pieces on the stack.
 */
#define XPH_PRODUCTS /* multiply-adds in line (simd/wasm128.h) */
#include "cpu/kernels/narrow.h"
#include "cpu/kernels/panel.h"
#include "cpu/kernels/tile.h"

enum {
    P = XPH_PANEL,
    BLOCK = 8 * STRIP,               /* rows handled together */
    FEW_ROWS = 4 * BLOCK,            /* up to here cut by panels */
    SOME_ROWS = 16 * BLOCK,          /* up to here cut finer, so that several threads have as much each */
    GROUP_BYTES = 640 << 10,         /* of packed weights that stay in the cache, with space for x, y */
    PIECE = 128 / (int)sizeof(real), /* depth of a piece transposed on the stack */
    STACK_ROWS = 192 / (int)sizeof(real), /* whose sums lie there, too */
    ITEM_WORK = 1 << 20                   /* multiply-adds of an item */
};

#define TILE(rows, vecs)                                                                                     \
  static void tile_##rows##_##vecs(const tile_job *job)                                                      \
  {                                                                                                          \
    tile(rows, vecs, false, job);                                                                            \
  }
#define TILES(vecs) TILE(1, vecs) TILE(2, vecs) TILE(3, vecs) TILE(4, vecs) TILE(5, vecs) TILE(6, vecs)
#define LIST(vecs)                                                                                           \
  {                                                                                                          \
    tile_1_##vecs, tile_2_##vecs, tile_3_##vecs, tile_4_##vecs, tile_5_##vecs, tile_6_##vecs                 \
  }

TILES(1)
TILES(2)
#if VEC_BYTES == 64
TILES(4)
static const tile_fn tiles[TILE_WIDTHS][STRIP] = {LIST(1), LIST(2), LIST(4)};
#elif VEC_REGISTERS == 32
TILES(4)
TILE(1, 8)
TILE(2, 8)
TILE(3, 8)
TILE(1, 16)
static const tile_fn tiles[TILE_WIDTHS][STRIP] = {
    LIST(1), LIST(2), LIST(4), {tile_1_8, tile_2_8, tile_3_8}, {tile_1_16}};
#else
TILE(1, 4)
TILE(2, 4)
TILE(3, 4)
TILE(1, 8)
static const tile_fn tiles[TILE_WIDTHS][STRIP] = {
    LIST(1), LIST(2), {tile_1_4, tile_2_4, tile_3_4}, {tile_1_8}};
#endif

/* rows (at most STRIP) times up to P columns of one panel; job stands at column 0 and is used up. */
static void strip_times_panel(int64_t rows, int64_t columns, tile_job *job)
{
    for (int64_t left = columns; left > 0;) {
        int w = tile_width(rows, left);
        int64_t wide = VEC << w;
        if (left < wide)
            tile_part(tiles[w][rows - 1], rows, left, job);
        else
            tiles[w][rows - 1](job);
        left -= wide;
        job->b += wide;
        job->to += wide;
        if (job->start) job->start += wide;
        if (job->add) job->add += wide;
    }
}

#if VEC_BYTES == 64
/* One row times two whole panels: their sums do not wait for each other. */
static void row_times_pair(const tile_job *job)
{
    enum { VECS = P / VEC };
    const real *b = job->b, *other = b + job->depth * P;
    vec sum[2 * VECS];
    XPH_UNROLL
    for (int c = 0; c < 2 * VECS; c++) sum[c] = job->start ? vec_load(job->start + c * VEC) : vec_all(R(0.0));
    for (int64_t k = 0; k < job->depth; k++, b += P, other += P) {
        vec x = vec_all(job->a[k]);
        XPH_UNROLL
        for (int c = 0; c < VECS; c++) {
            sum[c] = vec_fma(x, vec_load(b + c * VEC), sum[c]);
            sum[VECS + c] = vec_fma(x, vec_load(other + c * VEC), sum[VECS + c]);
        }
    }
    XPH_UNROLL
    for (int c = 0; c < 2 * VECS; c++) {
        if (job->add) sum[c] += vec_load(job->add + c * VEC);
        vec_store(job->to + c * VEC, sum[c]);
    }
}
#endif

/* ---- packed ---- */

typedef struct range {
    int64_t row, rows, panel, panels;
} range;

static void job_at(const xph_linear_args *a, int64_t row, int64_t panel, tile_job *job)
{
    int64_t column = panel * P;
    const real *bias = a->bias, *residual = a->residual;
    job->a = (const real *)a->x + row * a->ldx;
    job->lda = a->ldx;
    job->b = a->packed ? (const real *)a->packed + column * a->in : NULL;
    job->depth = a->in;
    job->start = bias ? bias + column : NULL;
    job->ld_start = 0;
    job->to = (real *)a->y + row * a->ldy + column;
    job->ld = a->ldy;
    job->add = residual ? residual + row * a->ldr + column : NULL;
    job->ld_add = a->ldr;
}

/* All rows pass panel after panel; each strip prefetches its share of the next one. */
static void panels_outside(const xph_linear_args *a, range r)
{
    int64_t strips = blocks_of(r.rows, STRIP), share = blocks_of(P * TILE_STEPS / LINE, strips);
    tile_job job;
    for (int64_t i = 0; i < r.panels; i++) {
        int64_t panel = r.panel + (a->back ? r.panels - 1 - i : i), next = panel + (a->back ? -1 : 1);
        bool prefetch = strips > 2 && a->in * a->out * (int64_t)sizeof(real) > 3 << 19 && i + 1 < r.panels;
        job.next = (ahead){(const real *)a->packed + (prefetch ? next : panel) * P * a->in, P, LINE,
                           prefetch ? share : 0};
        for (int64_t done = 0, rows; done < r.rows; done += rows) {
            rows = tile_rows(r.rows - done);
            job_at(a, r.row + done, panel, &job);
            strip_times_panel(rows, int_min(P, a->out - panel * P), &job);
            job.next.at += share * LINE;
        }
    }
}

/* One row: whole panels two by two. */
static void row_alone(const xph_linear_args *a, range r)
{
    int64_t pairs = 0;
#if VEC_BYTES == 64
    pairs = int_min(r.panels, a->out / P - r.panel) / 2;
#endif
    const range rest = {r.row, 1, r.panel + 2 * pairs, r.panels - 2 * pairs};
    if (a->back) panels_outside(a, rest);
    for (int64_t i = 0; i < pairs; i++) {
#if VEC_BYTES == 64
        tile_job job;
        job_at(a, r.row, r.panel + 2 * (a->back ? pairs - 1 - i : i), &job);
        row_times_pair(&job);
#endif
    }
    if (!a->back) panels_outside(a, rest);
}

/* All panels pass strip after strip; each panel prefetches its share of the next strip. */
static void rows_outside(const xph_linear_args *a, range r)
{
    int64_t share = blocks_of(STRIP, r.panels);
    tile_job job;
    for (int64_t done = 0, rows; done < r.rows; done += rows) {
        int64_t left = r.rows - done - STRIP;
        const real *next = (const real *)a->x + (r.row + done + STRIP) * a->ldx;
        rows = tile_rows(r.rows - done);
        for (int64_t panel = 0; panel < r.panels; panel++) {
            int64_t at = panel * share;
            job_at(a, r.row + done, r.panel + panel, &job);
            job.next =
                (ahead){next + at * a->ldx, 1, a->ldx, int_max(0, int_min(int_min(left, STRIP) - at, share))};
            strip_times_panel(rows, int_min(P, a->out - (r.panel + panel) * P), &job);
        }
    }
}

static void packed_run(const xph_linear_args *a, range r)
{
    int64_t most = int_max(1, GROUP_BYTES / int_max(1, P * a->in * (int64_t)sizeof(real)));
    if (a->rows == 1) {
        row_alone(a, r);
        return;
    }
    if (a->rows <= FEW_ROWS) {
        panels_outside(a, r);
        return;
    }
    int64_t group = blocks_of(r.panels, blocks_of(r.panels, most));
    for (int64_t done = 0; done < r.panels; done += group)
        rows_outside(a, (range){r.row, r.rows, r.panel + done, int_min(group, r.panels - done)});
}

/* ---- not packed ---- */

static void block_transposing(const xph_linear_args *a, int64_t row, int64_t rows, int64_t panel)
{
    int64_t columns = int_min(P, a->out - panel * P);
    _Alignas(64) real piece[PIECE * P], sums[STACK_ROWS * P];
    real first[P] = {0};
    tile_job whole, part = {0};
    job_at(a, row, panel, &whole);
    if (whole.start) memcpy(first, whole.start, (size_t)columns * sizeof(real));
    for (int64_t r = 0; r < rows; r++) memcpy(sums + r * P, first, sizeof first);
    for (int64_t k = 0; k < a->in; k += PIECE) {
        part.depth = int_min(PIECE, a->in - k);
        panel_transposed((const real *)a->w + panel * P * a->in + k, a->in, part.depth, columns, piece);
        for (int64_t r = 0; r < rows; r += STRIP) {
            part.a = whole.a + r * a->ldx + k;
            part.lda = a->ldx;
            part.b = piece;
            part.start = part.to = sums + r * P;
            part.ld_start = part.ld = P;
            strip_times_panel(int_min(STRIP, rows - r), P, &part);
        }
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            whole.to[r * a->ldy + c] =
                whole.add ? sums[r * P + c] + whole.add[r * a->ldr + c] : sums[r * P + c];
}

static void transposing_run(const xph_linear_args *a, range r)
{
    for (int64_t done = 0; done < r.rows; done += STACK_ROWS)
        for (int64_t panel = r.panel; panel < r.panel + r.panels; panel++)
            block_transposing(a, r.row + done, int_min(STACK_ROWS, r.rows - done), panel);
}

/* ---- items ---- */

/* Rows of an item (0: the items are panels), or panels. */
static int64_t rows_per_cut(const xph_linear_args *a)
{
    int64_t block = a->rows <= SOME_ROWS ? BLOCK / 2 : BLOCK;
    if (a->rows <= FEW_ROWS) return 0;
    return block * int_max(1, ITEM_WORK / int_max(1, block * a->in * a->out));
}

static int64_t panels_per_cut(const xph_linear_args *a)
{
    return int_max(1, ITEM_WORK / int_max(1, a->rows * a->in * P));
}

static int64_t linear_items(const void *args)
{
    const xph_linear_args *a = args;
    int64_t rows = rows_per_cut(a), panels = blocks_of(a->out, P);
    if (a->rows == 0) return 0;
    return rows ? (panels ? blocks_of(a->rows, rows) : 0) : blocks_of(panels, panels_per_cut(a));
}

static void linear_run(const void *args, int64_t begin, int64_t end)
{
    const xph_linear_args *a = args;
    int64_t rows = rows_per_cut(a), panels = panels_per_cut(a), all = blocks_of(a->out, P);
    range r;
    if (begin >= end) return;
    if (rows)
        r = (range){begin * rows, int_min(a->rows, end * rows) - begin * rows, 0, all};
    else
        r = (range){0, a->rows, begin * panels, int_min(all, end * panels) - begin * panels};
    if (a->packed)
        packed_run(a, r);
    else
        transposing_run(a, r);
}

/* clang-format off */
const xph_candidate XPH_LIST(linear)[] = {
    XPH_NARROW_LINEAR
    {.name = XPH_LABEL("linear"), .accepts = linear_plain_accepts, .phase = {{linear_items, linear_run}}},
    XPH_LIST_END,
};
/* clang-format on */

/* ---- packing ---- */

static int64_t pack_items(const void *args)
{
    const xph_linear_pack_args *a = args;
    return blocks_of(a->out, P);
}

static void pack_run(const void *args, int64_t begin, int64_t end)
{
    const xph_linear_pack_args *a = args;
    for (int64_t panel = begin; panel < end; panel++)
        panel_transposed((const real *)a->w + panel * P * a->in, a->in, a->in, int_min(P, a->out - panel * P),
                         (real *)a->packed + panel * P * a->in);
}

/* clang-format off */
const xph_candidate XPH_LIST(linear_pack)[] = {
    XPH_NARROW_PACK
    {.name = XPH_LABEL("linear_pack"), .accepts = pack_plain_accepts, .phase = {{pack_items, pack_run}}},
    XPH_LIST_END,
};
/* clang-format on */
