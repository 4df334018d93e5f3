/* Matrix products: y = x W^T + bias + residual, its gradients, and the packing of W.
 *
 * All are one tile product, acc[row][col] = FMA(a[row][k], b[k][col], acc) for k = 0, 1, 2, ... in order, so
 * an output depends on its own row and column alone: not on the batch, the threads or the width of a
 * register.
 *   forward    acc starts as the bias, k runs over the inputs; the residual is added last
 *   dx         acc starts as 0, k runs over the outputs
 *   dw, dbias  every SUM_ROWS rows are summed from 0, and these sums added in order to what is there
 * b comes in panels of columns: packed weights, or pieces that are packed on the stack.
 */
#include "cpu/ref/vec.h"

/* TILE_ROWS x TILE_PANELS panels of accumulators fill the registers. One row alone takes GROUP panels at
 * once, to have enough independent sums under way. */
#if VEC_BYTES == 64
enum { TILE_ROWS = 8, TILE_PANELS = 2 };
#elif VEC_BYTES == 32
enum { TILE_ROWS = 6, TILE_PANELS = 1 };
#else
enum { TILE_ROWS = 4, TILE_PANELS = 1 };
#endif

enum {
    P = XPH_PANEL,
    BLOCK = 48, /* rows handled together: a multiple of every TILE_ROWS */
    GROUP = 4,  /* panels handled together */
    COLUMNS = GROUP * P,
    PACK_DEPTH = 16384 / (COLUMNS * (int)sizeof(real)), /* of a piece packed on the stack */
    SUM_ROWS = 256,
    ITEM_WORK = 1 << 20 /* multiply-adds of an item */
};

/* a: row r, depth k at at[r*row + k*depth]. b: panel p, depth k at at[p*panel + k*depth], P reals. */
typedef struct left {
    const real *at;
    int64_t row, depth;
} left;
typedef struct right {
    const real *at;
    int64_t panel, depth;
} right;

/* acc[r*COLUMNS + c]; rows and panels are constants at every call. */
XPH_INLINE void tile(const int rows, const int panels, left a, right b, int64_t depth, real *acc)
{
    enum { MOST = TILE_ROWS * TILE_PANELS > GROUP ? TILE_ROWS * TILE_PANELS : GROUP };
    const int columns = panels * P / VEC;
    vec sum[MOST * P / VEC];
    XPH_UNROLL
    for (int i = 0; i < rows * columns; i++)
        sum[i] = vec_load(acc + i / columns * COLUMNS + i % columns * VEC);
    for (int64_t k = 0; k < depth; k++) {
        const real *from = b.at + k * b.depth;
        XPH_UNROLL
        for (int r = 0; r < rows; r++) {
            vec x = vec_all(a.at[r * a.row + k * a.depth]);
            XPH_UNROLL
            for (int c = 0; c < columns; c++) {
                const real *column = from + c * VEC / P * b.panel + c * VEC % P;
                sum[r * columns + c] = vec_fma(x, vec_load(column), sum[r * columns + c]);
            }
        }
    }
    XPH_UNROLL
    for (int i = 0; i < rows * columns; i++)
        vec_store(acc + i / columns * COLUMNS + i % columns * VEC, sum[i]);
}

/* All rows of one or TILE_PANELS panels. */
XPH_INLINE void strip(int64_t rows, const int panels, left a, right b, int64_t depth, real *acc)
{
    for (; rows >= TILE_ROWS; rows -= TILE_ROWS, a.at += TILE_ROWS * a.row, acc += TILE_ROWS * COLUMNS)
        tile(TILE_ROWS, panels, a, b, depth, acc);
    for (; rows >= 4; rows -= 4, a.at += 4 * a.row, acc += 4 * COLUMNS) tile(4, panels, a, b, depth, acc);
    for (; rows >= 2; rows -= 2, a.at += 2 * a.row, acc += 2 * COLUMNS) tile(2, panels, a, b, depth, acc);
    if (rows) tile(1, panels, a, b, depth, acc);
}

/* acc [rows][COLUMNS] += a b for up to GROUP panels. */
static void product(int64_t rows, int64_t panels, left a, right b, int64_t depth, real *acc)
{
    if (rows == 1 && panels == GROUP) {
        tile(1, GROUP, a, b, depth, acc);
        return;
    }
    int64_t p = 0;
    for (; p + TILE_PANELS <= panels; p += TILE_PANELS)
        strip(rows, TILE_PANELS, a, (right){b.at + p * b.panel, b.panel, b.depth}, depth, acc + p * P);
    for (; p < panels; p++)
        strip(rows, 1, a, (right){b.at + p * b.panel, b.panel, b.depth}, depth, acc + p * P);
}

/* Piece [depth][COLUMNS] of a matrix with rows along depth; columns beyond `columns` are 0. */
static void pack_straight(const real *from, int64_t ld, int64_t depth, int64_t columns, real *piece)
{
    for (int64_t k = 0; k < depth; k++) {
        memcpy(piece + k * COLUMNS, from + k * ld, (size_t)columns * sizeof(real));
        for (int64_t c = columns; c < COLUMNS; c++) piece[k * COLUMNS + c] = 0;
    }
}

/* The same of a matrix with rows along columns. */
static void pack_turned(const real *from, int64_t ld, int64_t depth, int64_t columns, real *piece)
{
    for (int64_t c = 0; c < COLUMNS; c++)
        for (int64_t k = 0; k < depth; k++) piece[k * COLUMNS + c] = c < columns ? from[c * ld + k] : 0;
}

typedef void (*pack_fn)(const real *from, int64_t ld, int64_t depth, int64_t columns, real *piece);

/* acc += a b with b taken from `from` in pieces: step elements apart along the depth. */
static void product_packing(int64_t rows, int64_t columns, left a, pack_fn pack, const real *from, int64_t ld,
                            int64_t step, int64_t depth, real *acc)
{
    real piece[PACK_DEPTH * COLUMNS];
    for (int64_t k = 0; k < depth; k += PACK_DEPTH) {
        int64_t count = int_min(PACK_DEPTH, depth - k);
        pack(from + k * step, ld, count, columns, piece);
        left from_k = {a.at + k * a.depth, a.row, a.depth};
        product(rows, blocks_of(columns, P), from_k, (right){piece, P, COLUMNS}, count, acc);
    }
}

/* ---- how a result [rows][columns] is cut into items ---- */

typedef struct cut {
    int64_t row_blocks, groups, groups_per_item, items;
} cut;

static cut cut_of(int64_t rows, int64_t columns, int64_t depth)
{
    cut c = {blocks_of(rows, BLOCK), blocks_of(columns, COLUMNS), 1, 0};
    int64_t work = int_max(1, int_min(rows, BLOCK) * COLUMNS * depth);
    c.groups_per_item = int_max(1, int_min(c.groups, ITEM_WORK / work));
    c.items = c.row_blocks * blocks_of(c.groups, c.groups_per_item);
    return c;
}

/* The blocks of a range of items; next_block is false after the last. */
typedef struct block {
    cut cut;
    int64_t rows_all, columns_all, item, end, group;
    int64_t row, rows, column, columns; /* of the current block */
} block;

static block first_block(cut c, int64_t rows, int64_t columns, int64_t begin, int64_t end)
{
    return (block){.cut = c, .rows_all = rows, .columns_all = columns, .item = begin, .end = end, .group = 0};
}

static bool next_block(block *b)
{
    int64_t per_row = blocks_of(b->cut.groups, b->cut.groups_per_item), group;
    if (b->item >= b->end) return false;
    group = b->item % per_row * b->cut.groups_per_item + b->group;
    b->row = b->item / per_row * BLOCK;
    b->rows = int_min(BLOCK, b->rows_all - b->row);
    b->column = group * COLUMNS;
    b->columns = int_min(COLUMNS, b->columns_all - b->column);
    b->group++;
    if (b->group == b->cut.groups_per_item || group + 1 == b->cut.groups) {
        b->group = 0;
        b->item++;
    }
    return true;
}

/* ---- forward ---- */

static void start_with(real *acc, int64_t rows, const real *bias, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < COLUMNS; c++) acc[r * COLUMNS + c] = bias && c < columns ? bias[c] : 0;
}

/* to[r][c] = acc + add (NULL: nothing); to and add may be the same. */
static void finish(const real *acc, int64_t rows, int64_t columns, real *to, int64_t ld, const real *add,
                   int64_t ld_add)
{
    for (int64_t r = 0; r < rows; r++) {
        const real *from = acc + r * COLUMNS, *more = add ? add + r * ld_add : NULL;
        real *into = to + r * ld;
        if (add) {
            XPH_VECTOR
            for (int64_t c = 0; c < columns; c++) into[c] = from[c] + more[c];
        } else {
            memcpy(into, from, (size_t)columns * sizeof(real));
        }
    }
}

static int64_t linear_items(const void *args)
{
    const xph_linear_args *a = args;
    return cut_of(a->rows, a->out, a->in).items;
}

static void linear_run(const void *args, int64_t begin, int64_t end)
{
    const xph_linear_args *a = args;
    const real *x = a->x, *w = a->w, *packed = a->packed, *bias = a->bias, *residual = a->residual;
    real *y = a->y, acc[BLOCK * COLUMNS];
    block b = first_block(cut_of(a->rows, a->out, a->in), a->rows, a->out, begin, end);
    while (next_block(&b)) {
        left rows = {x + b.row * a->ldx, a->ldx, 1};
        start_with(acc, b.rows, bias ? bias + b.column : NULL, b.columns);
        if (packed) {
            right panels = {packed + b.column * a->in, a->in * P, P};
            product(b.rows, blocks_of(b.columns, P), rows, panels, a->in, acc);
        } else {
            product_packing(b.rows, b.columns, rows, pack_turned, w + b.column * a->in, a->in, 1, a->in, acc);
        }
        const real *add = residual ? residual + b.row * a->ldr + b.column : NULL;
        finish(acc, b.rows, b.columns, y + b.row * a->ldy + b.column, a->ldy, add, a->ldr);
    }
}

const xph_candidate XPH_LIST(linear)[] = {
    {.name = XPH_LABEL("linear"), .phase = {{linear_items, linear_run}}},
    XPH_LIST_END,
};

/* ---- gradients ---- */

static int64_t dx_items(const void *args)
{
    const xph_linear_grad_args *a = args;
    return a->dx ? cut_of(a->rows, a->in, a->out).items : 0;
}

static void dx_run(const void *args, int64_t begin, int64_t end)
{
    const xph_linear_grad_args *a = args;
    const real *dy = a->dy, *w = a->w;
    real *dx = a->dx, acc[BLOCK * COLUMNS];
    block b = first_block(cut_of(a->rows, a->in, a->out), a->rows, a->in, begin, end);
    while (next_block(&b)) {
        left rows = {dy + b.row * a->lddy, a->lddy, 1};
        real *to = dx + b.row * a->lddx + b.column;
        start_with(acc, b.rows, NULL, 0);
        product_packing(b.rows, b.columns, rows, pack_straight, w + b.column, a->in, a->in, a->out, acc);
        finish(acc, b.rows, b.columns, to, a->lddx, a->dx_add ? to : NULL, a->lddx);
    }
}

static int64_t dw_items(const void *args)
{
    const xph_linear_grad_args *a = args;
    return a->dw ? cut_of(a->out, a->in, a->rows).items : 0;
}

static void dw_run(const void *args, int64_t begin, int64_t end)
{
    const xph_linear_grad_args *a = args;
    const real *x = a->x, *dy = a->dy;
    real *dw = a->dw, acc[BLOCK * COLUMNS];
    block b = first_block(cut_of(a->out, a->in, a->rows), a->out, a->in, begin, end);
    while (next_block(&b)) {
        real *to = dw + b.row * a->in + b.column;
        for (int64_t m = 0; m < a->rows; m += SUM_ROWS) {
            left turned = {dy + m * a->lddy + b.row, 1, a->lddy};
            start_with(acc, b.rows, NULL, 0);
            product_packing(b.rows, b.columns, turned, pack_straight, x + m * a->ldx + b.column, a->ldx,
                            a->ldx, int_min(SUM_ROWS, a->rows - m), acc);
            finish(acc, b.rows, b.columns, to, a->in, to, a->in);
        }
    }
}

static int64_t dbias_items(const void *args)
{
    const xph_linear_grad_args *a = args;
    return a->dbias ? blocks_of(a->out, COLUMNS) : 0;
}

static void dbias_run(const void *args, int64_t begin, int64_t end)
{
    const xph_linear_grad_args *a = args;
    const real *dy = a->dy;
    real *dbias = a->dbias;
    for (int64_t column = begin * COLUMNS; column < int_min(a->out, end * COLUMNS); column += COLUMNS) {
        int64_t columns = int_min(COLUMNS, a->out - column);
        for (int64_t m = 0; m < a->rows; m += SUM_ROWS) {
            real acc[COLUMNS] = {0};
            for (int64_t r = m; r < int_min(m + SUM_ROWS, a->rows); r++)
                for (int64_t c = 0; c < columns; c++) acc[c] += dy[r * a->lddy + column + c];
            for (int64_t c = 0; c < columns; c++) dbias[column + c] += acc[c];
        }
    }
}

const xph_candidate XPH_LIST(linear_grad)[] = {
    {.name = XPH_LABEL("linear_grad"),
     .phase = {{dx_items, dx_run}, {dw_items, dw_run}, {dbias_items, dbias_run}}},
    XPH_LIST_END,
};

/* ---- packing: [out,in] to panels [in][P] ---- */

static int64_t pack_items(const void *args)
{
    const xph_linear_pack_args *a = args;
    return blocks_of(a->out, P);
}

static void pack_run(const void *args, int64_t begin, int64_t end)
{
    const xph_linear_pack_args *a = args;
    const real *w = a->w;
    real *packed = a->packed;
    for (int64_t panel = begin; panel < end; panel++) {
        real *to = packed + panel * P * a->in;
        const real *from = w + panel * P * a->in;
        int64_t columns = int_min(P, a->out - panel * P);
        for (int64_t k = 0; k < a->in; k++)
            for (int64_t c = 0; c < P; c++) to[k * P + c] = c < columns ? from[c * a->in + k] : 0;
    }
}

const xph_candidate XPH_LIST(linear_pack)[] = {
    {.name = XPH_LABEL("linear_pack"), .phase = {{pack_items, pack_run}}},
    XPH_LIST_END,
};
