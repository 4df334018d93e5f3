/* Rows of a table that actions take, added to what the heads see; and the gradient of the table. Every element of it sums
 * over the rows in order, and over the heads in order. */
#include "cpu/kernels/trunk.h"

enum { COLUMNS = 32 }; /* of the table, that one item of the gradient takes */

static int64_t block_rows(const xph_codes_args *a)
{
    return rows_per_item(a->heads * a->width);
}

static int64_t codes_items(const void *args)
{
    const xph_codes_args *a = args;
    return blocks_of(a->rows, block_rows(a));
}

static void codes_row(const xph_codes_args *a, int64_t row)
{
    real *y = (real *)a->y + row * a->ldy;
    for (int64_t h = 0; h < a->heads; h++) {
        trunk_rows taken;
        int64_t at = 0;
        trunk_taken(a->table, a->width, &a->head[h], a->actions[row * a->lda + h], &taken);
        for (; at + VEC <= a->width; at += VEC)
            vec_store(y + at, trunk_sum(vec_load(y + at), &taken, at, VEC));
        const int64_t left = a->width - at;
        if (left) vec_store_part(y + at, trunk_sum(vec_load_part(y + at, left), &taken, at, left), left);
    }
}

static void codes_run(const void *args, int64_t begin, int64_t end)
{
    const xph_codes_args *a = args;
    int64_t block = block_rows(a), last = int_min(a->rows, end * block);
    for (int64_t row = begin * block; row < last; row++) codes_row(a, row);
}

/* ---- backward ---- */

static int64_t grad_items(const void *args)
{
    return blocks_of(((const xph_codes_grad_args *)args)->fwd.width, COLUMNS);
}

/* Columns [column, column + columns) of one row of dy to the rows that it took. */
static void give_row(const xph_codes_grad_args *g, int64_t row, int64_t column, int64_t columns)
{
    const xph_codes_args *a = &g->fwd;
    const real *dy = (const real *)g->dy + row * g->lddy + column;
    real *table = g->dtable;
    for (int64_t h = 0; h < a->heads; h++) {
        trunk_rows taken;
        trunk_taken(table, a->width, &a->head[h], a->actions[row * a->lda + h], &taken);
        for (int64_t i = 0; i < taken.count; i++) {
            real *to = table + (taken.row[i] - table) + column;
            XPH_VECTOR
            for (int64_t c = 0; c < columns; c++) to[c] += dy[c];
        }
    }
}

static void grad_run(const void *args, int64_t begin, int64_t end)
{
    const xph_codes_grad_args *g = args;
    for (int64_t i = begin; i < end; i++) {
        int64_t column = i * COLUMNS, columns = int_min(COLUMNS, g->fwd.width - column);
        for (int64_t row = 0; row < g->fwd.rows; row++) give_row(g, row, column, columns);
    }
}

const xph_candidate XPH_LIST(codes)[] = {
    {.name = XPH_LABEL("codes"), .phase = {{codes_items, codes_run}}},
    XPH_LIST_END,
};
const xph_candidate XPH_LIST(codes_grad)[] = {
    {.name = XPH_LABEL("codes_grad"), .phase = {{grad_items, grad_run}}},
    XPH_LIST_END,
};
