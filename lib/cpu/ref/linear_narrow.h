/* How a product with weights of fewer bits goes over its outputs. A file that includes this has defined before:
 *
 *   held, total        type of an input as it is held for the product, and of a sum
 *   STEP               inputs that are multiplied at once: 4 bytes of packed weights
 *   MANY, MANY_PANELS  rows and panels of the largest tile
 *   FEW, FEW_PANELS    fewer rows than FEW take FEW_PANELS panels at once
 *   LONE_PANELS        and one row takes so many: whole groups, or 1
 *   tile               adds to the sums of rows x panels
 *   measure, hold      scales of rows, inputs to what is held of them
 *   finish             sums to results
 *   NARROW_RUN         name of the function that runs items; all share xph_narrow_items
 *
 * The depth of a product is in / STEP, rounded up. Packed weights lie in groups of GROUP panels, a group as
 * [depth][panels][XPH_NARROW_PANEL][STEP], so that a row alone reads one stream of memory; the last group has as many panels
 * as are needed, and what is missing is 0.
 *
 * An item is up to ROWS rows by BLOCK columns. Rows run fastest: the weights of a block of columns stay in the second
 * cache. Inputs are rounded into a piece on the stack (small: a caller's may have 64 KiB in all), once where one piece
 * holds all of the rows. Sums go on from piece to piece, so where these are cut changes nothing. */
#ifndef XPH_CPU_REF_LINEAR_NARROW_H
#define XPH_CPU_REF_LINEAR_NARROW_H

enum {
    BLOCK = 256,
    ROWS = NARROW_ROWS,
    HELD = 14336 / (int)sizeof(held),
    PANEL_BYTES = NARROW_PANEL_BYTES
};

typedef struct item {
    int64_t row, rows, column, columns;
} item;

XPH_INLINE void tile(const int rows, const int panels, const held *x, int64_t ldx, narrow_weights w,
                     int64_t depth, total *sums);
static void measure(const xph_linear_args *a, const item *i, float scales[ROWS]);
/* inputs [from, from + count) of the rows of an item, filled up with zeros behind the last */
static void hold(const xph_linear_args *a, const item *i, const float scales[ROWS], int64_t from, int64_t count,
                 held *x);
static void finish(const xph_linear_args *a, const item *i, const float scales[ROWS], const total *sums);

/* ---- sums[r*BLOCK + column] of a piece of the inputs ---- */

XPH_INLINE void strip(int64_t rows, const int panels, const held *x, int64_t ldx, narrow_weights w,
                      int64_t depth, total *sums)
{
    if (panels == MANY_PANELS)
        for (; rows >= MANY; rows -= MANY, x += MANY * ldx, sums += MANY * BLOCK)
            tile(MANY, panels, x, ldx, w, depth, sums);
    if (panels == MANY_PANELS && MANY > 8)
        for (; rows >= 8; rows -= 8, x += 8 * ldx, sums += 8 * BLOCK) tile(8, panels, x, ldx, w, depth, sums);
    if (FEW > 4 || (panels == MANY_PANELS && MANY > 4))
        for (; rows >= 4; rows -= 4, x += 4 * ldx, sums += 4 * BLOCK)
            tile(4, panels, x, ldx, w, depth, sums);
    for (; rows >= 2; rows -= 2, x += 2 * ldx, sums += 2 * BLOCK) tile(2, panels, x, ldx, w, depth, sums);
    if (rows) tile(1, panels, x, ldx, w, depth, sums);
}

/* All panels of one group. */
static void strips(int64_t rows, int64_t panels, const held *x, int64_t ldx, narrow_weights w, int64_t depth,
                   total *sums)
{
    const char *at = w.at;
    int64_t p = 0;
    for (; rows < FEW && p + FEW_PANELS <= panels; p += FEW_PANELS, w.at = at + p * PANEL_BYTES)
        strip(rows, FEW_PANELS, x, ldx, w, depth, sums + p * XPH_NARROW_PANEL);
    for (; p + MANY_PANELS <= panels; p += MANY_PANELS, w.at = at + p * PANEL_BYTES)
        strip(rows, MANY_PANELS, x, ldx, w, depth, sums + p * XPH_NARROW_PANEL);
    for (; MANY_PANELS > 1 && p < panels; p++, w.at = at + p * PANEL_BYTES)
        strip(rows, 1, x, ldx, w, depth, sums + p * XPH_NARROW_PANEL);
}

/* ---- items ---- */

static int64_t depth_of(const xph_linear_args *a)
{
    return blocks_of(a->in, STEP);
}

static item item_of(const xph_linear_args *a, int64_t number)
{
    int64_t per_column = blocks_of(a->rows, ROWS);
    item i = {.row = number % per_column * ROWS, .column = number / per_column * BLOCK};
    i.rows = int_min(ROWS, a->rows - i.row);
    i.columns = int_min(BLOCK, a->out - i.column);
    return i;
}

/* steps [from, from + steps) of the depth, x being what is held of them */
static void block_sums(const xph_linear_args *a, const item *i, const held *x, int64_t from, int64_t steps,
                       total *sums)
{
    int64_t depth = depth_of(a), all = blocks_of(a->out, XPH_NARROW_PANEL), ldx = steps * STEP;
    int64_t panel = i->column / XPH_NARROW_PANEL, end = panel + blocks_of(i->columns, XPH_NARROW_PANEL);
    for (int64_t taken; panel < end; panel += taken, sums += taken * XPH_NARROW_PANEL) {
        int64_t panels = int_min(NARROW_GROUP, all - panel);
        narrow_weights w = {(const char *)a->packed + panel * depth * PANEL_BYTES,
                            NARROW_GROUP * depth * PANEL_BYTES, panels * PANEL_BYTES};
        w.at += from * w.depth;
        taken = panels;
        if (LONE_PANELS > 1 && i->rows == 1 && panel + LONE_PANELS <= end) {
            tile(1, LONE_PANELS, x, ldx, w, steps, sums);
            taken = LONE_PANELS;
        } else {
            strips(i->rows, panels, x, ldx, w, steps, sums);
        }
    }
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
        int64_t piece = int_min(depth, HELD / (i.rows * STEP));
        if (whole != i.row) measure(a, &i, scales);
        for (int64_t r = 0; r < i.rows; r++) memset(sums + r * BLOCK, 0, BLOCK * sizeof(total));
        for (int64_t k = 0; k < depth; k += piece) {
            int64_t steps = int_min(piece, depth - k);
            if (whole != i.row) hold(a, &i, scales, k * STEP, steps * STEP, x);
            block_sums(a, &i, x, k, steps, sums);
        }
        whole = piece == depth ? i.row : -1;
        finish(a, &i, scales, sums);
    }
}

#endif
