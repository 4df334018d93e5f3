/* How a product with weights of fewer bits walks its outputs. A file that includes this must first define:
 *
 *   held, total        type of an input as it is held for the product, and of a sum
 *   STEP               inputs that are multiplied at once: 4 bytes of packed weights
 *   LANE_BYTES, MANY   of a register of weights; rows of the largest tile
 *   tile               adds to the sums of rows x panels
 *   measure, hold      scales of rows, inputs to what is held of them
 *   finish             sums to results
 *   NARROW_ITEMS, NARROW_RUN  names of the functions that count and run items
 *
 * The depth of a product is in / STEP, rounded up. Packed weights lie in groups of NARROW_GROUP panels, a
 * group as [depth][panels][XPH_NARROW_PANEL][STEP], so that a single row reads one stream of memory; the last
 * group has as many panels as are needed, padded with 0.
 *
 * An item is up to ROWS rows by BLOCK columns. Rows run fastest: the weights of a block of columns stay in
 * L2. Inputs are rounded into a piece on the stack (a small one: the caller's stack may have 64 KiB in all),
 * only once if one piece holds all of the rows. Sums continue from piece to piece, so the cuts change
 * nothing. */
#ifndef XPH_CPU_KERNELS_LINEAR_NARROW_H
#define XPH_CPU_KERNELS_LINEAR_NARROW_H

/* Loops over the sums of a tile, so that they stay in registers. */
#if defined(__clang__)
#  define TILE_UNROLL XPH_UNROLL
#else
#  define TILE_UNROLL _Pragma("GCC unroll 32")
#endif

/* each(rows, panels, distance of the rows), in the order in which they are tried. Fewer rows than FEW take FEW_PANELS
 * panels at once, more MANY_PANELS, what is left of a group one; a single row takes LONE_PANELS: whole groups, or 1. */
#if LANE_BYTES == 64
enum { MANY_PANELS = 2, FEW = 8, FEW_PANELS = 4, LONE_PANELS = 8 };
#  define NARROW_TILES(each)                                                                                 \
    each(1, 8, 0) each(4, 4, t->ldx) each(2, 4, t->ldx) each(1, 4, t->ldx) each(MANY, 2, STRIDE)             \
        each(8, 2, STRIDE) each(4, 2, t->ldx) each(2, 2, t->ldx) each(1, 2, t->ldx) each(4, 1, t->ldx)       \
            each(1, 1, t->ldx)
#elif LANE_BYTES == 32 || (LANE_BYTES == 16 && VEC_REGISTERS > 0)
enum { MANY_PANELS = 1, FEW = 3, FEW_PANELS = 2, LONE_PANELS = 4 };
#  if MANY > 4
#    define TILES_OF_4(each) each(4, 1, t->ldx)
#  else
#    define TILES_OF_4(each)
#  endif
#  define NARROW_TILES(each)                                                                                 \
    each(1, 4, 0) each(2, 2, t->ldx) each(1, 2, t->ldx) each(MANY, 1, t->ldx) TILES_OF_4(each)               \
        each(2, 1, t->ldx) each(1, 1, t->ldx)
#else
enum { MANY_PANELS = 1, FEW = 0, FEW_PANELS = 1, LONE_PANELS = 1 };
#  define NARROW_TILES(each) each(MANY, 1, t->ldx) each(1, 1, t->ldx)
#endif

enum {
    BLOCK = 256,
    ROWS = MANY > 12 ? MANY : 12, /* of an item: a multiple of MANY, and more than FEW */
    TILE_SUMS = 32,               /* at most, in registers */
    HELD = 14336 / (int)sizeof(held),
    STRIDE = HELD / ROWS / (16 / (int)sizeof(held)) * (16 / (int)sizeof(held)), /* between many rows */
    PANEL_BYTES = NARROW_PANEL_BYTES
};

typedef struct item {
    int64_t row, rows, column, columns;
} item;

typedef struct panel_tile {
    const held *x;
    int64_t ldx;
    narrow_weights w;
    int64_t depth;
    total *sums;
    bool more; /* sums go on, else they start from zeros; seeing constants a compiler would make these */
    const total *zeros;        /* of an array in memory, and leave it there */
    struct prefetch *prefetch; /* for tiles of at least 8 rows */
} panel_tile;

/* Memory that comes next, prefetched line by line while tiles of many rows multiply: what of the inputs comes
 * next, and where this item's results go. All at once prefetches would take the buffers that the weights need. */
typedef struct lines {
    const char *at;
    int64_t in_row, of_row; /* lines prefetched in this row, of how many */
    int64_t next_row, rows; /* bytes from its end to the next, rows left */
} lines;
typedef struct prefetch {
    lines x, y;
} prefetch;

static lines lines_of(const float *at, int64_t ld, int64_t rows, int64_t width)
{
    int64_t bytes = (width * (int64_t)sizeof *at + 127) / 64 * 64; /* rows need not begin with a line */
    return (lines){(const char *)at, 0, bytes / 64, ld * (int64_t)sizeof *at - bytes, width > 0 ? rows : 0};
}

XPH_INLINE void prefetch_line(lines *l)
{
    if (l->rows <= 0) return;
    __builtin_prefetch(l->at, 0, 2);
    l->at += 64;
    if (++l->in_row < l->of_row) return;
    l->at += l->next_row, l->in_row = 0, l->rows--;
}

XPH_INLINE void tile(const int rows, const int panels, const int64_t ldx, const panel_tile *t);
static void measure(const xph_linear_args *a, const item *i, float scales[ROWS]);
/* inputs [from, from + count) of the rows of an item, filled up with zeros behind the last */
static void hold(const xph_linear_args *a, const item *i, const float scales[ROWS], int64_t from,
                 int64_t count, held *x, int64_t ldx);
static void finish(const xph_linear_args *a, const item *i, const float scales[ROWS], const total *sums);

/* ---- sums[r*BLOCK + column] of a piece of the inputs ---- */

/* Each alone, so that its sums stay in registers. */
#define TILE_NAME(rows, panels) XPH_JOIN(XPH_JOIN(tile_, rows), XPH_JOIN(_, panels))
/* clang-format off */
#define TILE(rows, panels, ldx)                                                                              \
    static __attribute__((noinline)) void TILE_NAME(rows, panels)(const panel_tile *t)                       \
    {                                                                                                        \
        tile(rows, panels, ldx, t);                                                                          \
    }
NARROW_TILES(TILE)

static void rows_on(panel_tile *t, int64_t *rows, int64_t done)
{
    *rows -= done, t->x += done * t->ldx, t->sums += done * BLOCK;
}

#define STRIP(rows_, panels, ldx)                                                                            \
    for (; rows >= rows_ && panels == width; rows_on(t, &rows, rows_)) TILE_NAME(rows_, panels)(t);
/* clang-format on */
static void strip(int64_t rows, int width, panel_tile *t)
{
    const held *x = t->x;
    total *sums = t->sums;
    NARROW_TILES(STRIP)
    t->x = x, t->sums = sums;
}

/* All panels of one group, the most at once that there are tiles for. */
static void strips(int64_t rows, int64_t panels, panel_tile *t)
{
    while (panels > 0) {
        int width = rows < FEW && panels >= FEW_PANELS ? FEW_PANELS : panels >= MANY_PANELS ? MANY_PANELS : 1;
        strip(rows, width, t);
        panels -= width, t->w.at += width * PANEL_BYTES, t->sums += width * XPH_NARROW_PANEL;
    }
}

/* ---- items ---- */

static int64_t depth_of(const xph_linear_args *a)
{
    return blocks_of(a->in, STEP);
}

static item item_of(const xph_linear_args *a, int64_t number)
{
    int64_t per_column = blocks_of(a->rows, ROWS);
    if (a->back) number = NARROW_ITEMS(a) - 1 - number;
    item i = {.row = number % per_column * ROWS, .column = number / per_column * BLOCK};
    i.rows = int_min(ROWS, a->rows - i.row);
    i.columns = int_min(BLOCK, a->out - i.column);
    return i;
}

static const total zeros[64 / sizeof(total)];

/* steps [from, from + steps) of the depth, x being what is held of them */
static void block_sums(const xph_linear_args *a, const item *i, const held *x, int64_t from, int64_t steps,
                       total *sums, prefetch *later)
{
    int64_t depth = depth_of(a), all = blocks_of(a->out, XPH_NARROW_PANEL);
    int64_t panel = i->column / XPH_NARROW_PANEL, end = panel + blocks_of(i->columns, XPH_NARROW_PANEL);
    for (int64_t taken; panel < end; panel += taken, sums += taken * XPH_NARROW_PANEL) {
        int64_t panels = int_min(NARROW_GROUP, all - panel);
        panel_tile t = {x, i->rows >= 8 ? STRIDE : steps * STEP, {0}, steps, sums, from > 0, zeros, later};
        t.w = (narrow_weights){(const char *)a->packed + panel * depth * PANEL_BYTES,
                               NARROW_GROUP * depth * PANEL_BYTES, panels * PANEL_BYTES};
        t.w.at += from * t.w.depth;
        taken = panels;
        if (LONE_PANELS > 1 && i->rows == 1 && panel + LONE_PANELS <= end)
            strip(1, LONE_PANELS, &t), taken = LONE_PANELS;
        else
            strips(i->rows, panels, &t);
    }
}

/* While the piece at `from` of the item is multiplied; `number` is that of the next item, if there is one. */
static prefetch prefetch_of(const xph_linear_args *a, const item *i, int64_t number, int64_t end,
                            int64_t from, int64_t width)
{
    prefetch s = {0};
    item next = *i;
    int64_t at = from + width;
    if (at >= a->in) {
        s.y = lines_of((const float *)a->y + i->row * a->ldy + i->column, a->ldy, i->rows, i->columns);
        if (number >= end) return s;
        next = item_of(a, number), at = 0;
    }
    const float *x = (const float *)a->x + next.row * a->ldx + at;
    s.x = lines_of(x, a->ldx, next.rows, int_min(width, a->in - at));
    return s;
}

int64_t NARROW_ITEMS(const void *args)
{
    const xph_linear_args *a = args;
    return blocks_of(a->rows, ROWS) * blocks_of(a->out, BLOCK);
}

void NARROW_RUN(const void *args, int64_t begin, int64_t end)
{
    const xph_linear_args *a = args;
    _Alignas(64) held x[HELD];
    _Alignas(64) total sums[ROWS * BLOCK];
    int64_t depth = depth_of(a), whole = -1; /* row of which x holds all, or -1 */
    float scales[ROWS] = {0};
    for (int64_t number = begin; number < end; number++) {
        item i = item_of(a, number);
        int64_t most = (i.rows >= 8 ? STRIDE : HELD / i.rows) / STEP;
        int64_t piece = int_max(1, blocks_of(depth, int_max(1, blocks_of(depth, most))));
        if (whole != i.row) measure(a, &i, scales);
        for (int64_t k = 0; k == 0 || k < depth; k += piece) {
            int64_t steps = int_min(piece, depth - k);
            if (whole != i.row)
                hold(a, &i, scales, k * STEP, steps * STEP, x, i.rows >= 8 ? STRIDE : steps * STEP);
            prefetch s =
                i.rows < 8 ? (prefetch){0} : prefetch_of(a, &i, number + 1, end, k * STEP, steps * STEP);
            block_sums(a, &i, x, k, steps, sums, &s);
        }
        whole = piece >= depth ? i.row : -1;
        finish(a, &i, scales, sums);
    }
}

#endif
