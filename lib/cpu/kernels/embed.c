/* Input rows: floats, then table rows picked by ids, then one-hot past actions; and the gradient of the
 * tables.
 *
 * Two ids may share one table (both players' characters): the first of them then gathers the gradient for
 * all, so that no two items write the same numbers. Every element of dtable sums over the ids in order, and
 * over the rows in order. */
#include "cpu/kernels/real.h"

enum { TABLE_COLUMNS = 16 }; /* columns of a table that one item of the gradient takes */

static int64_t tables_width(const xph_embed_args *args)
{
    int64_t width = 0;
    for (int64_t i = 0; i < args->ids; i++) width += args->tables[i].width;
    return width;
}

static int64_t block_rows(const xph_embed_args *args)
{
    return rows_per_item(args->floats + tables_width(args) + args->slots * args->logits);
}

static int64_t embed_items(const void *given)
{
    const xph_embed_args *args = given;
    return blocks_of(args->rows, block_rows(args));
}

/* One slot of past actions; a class outside its head sets nothing. */
static void one_hot(const xph_embed_args *args, const int32_t *actions, real *y)
{
    for (int64_t l = 0; l < args->logits; l++) y[l] = R(0.0);
    for (int64_t h = 0; h < args->heads; h++) {
        const xph_head *head = &args->head[h];
        uint32_t action = (uint32_t)actions[h];
        if (head->kind == EXPHIL_BERNOULLI)
            for (int32_t i = 0; i < head->count; i++) y[head->first + i] = (real)(action >> i & 1u);
        else if (action < (uint32_t)head->count)
            y[head->first + action] = R(1.0);
    }
}

static void embed_row(const xph_embed_args *args, int64_t row)
{
    const float *x = args->floats ? args->x + row * args->ldx : NULL;
    real *y = (real *)args->y + row * args->ldy;
    XPH_VECTOR
    for (int64_t i = 0; i < args->floats; i++) y[i] = (real)x[i];
    y += args->floats;
    for (int64_t i = 0; i < args->ids; i++) {
        const xph_embed_table *t = &args->tables[i];
        const real *from = (const real *)t->table + (int64_t)args->id[row * args->ldid + i] * t->width;
        memcpy(y, from, (size_t)t->width * sizeof(real));
        y += t->width;
    }
    for (int64_t s = 0; s < args->slots; s++, y += args->logits) {
        if (args->actions)
            one_hot(args, args->actions + row * args->lda + s * args->heads, y);
        else
            memset(y, 0, (size_t)args->logits * sizeof(real));
    }
}

static void embed_run(const void *given, int64_t begin, int64_t end)
{
    const xph_embed_args *args = given;
    int64_t block = block_rows(args), last = int_min(args->rows, end * block);
    for (int64_t row = begin * block; row < last; row++) embed_row(args, row);
}

/* ---- backward ---- */

static int64_t table_items(const xph_embed_table *t)
{
    return t->dtable ? blocks_of(t->width, TABLE_COLUMNS) : 0;
}

static int64_t grad_items(const void *given)
{
    const xph_embed_args *args = &((const xph_embed_grad_args *)given)->fwd;
    int64_t items = 0;
    for (int64_t i = 0; i < args->ids; i++) items += table_items(&args->tables[i]);
    return items;
}

static bool seen_before(const xph_embed_args *args, int64_t id)
{
    for (int64_t i = 0; i < id; i++)
        if (args->tables[i].dtable == args->tables[id].dtable) return true;
    return false;
}

/* Adds the rows' gradients of one id, whose part of dy starts at column `at`. */
static void add_id(const xph_embed_grad_args *grad, int64_t id, int64_t at, int64_t column)
{
    const xph_embed_args *args = &grad->fwd;
    const xph_embed_table *t = &args->tables[id];
    int64_t columns = int_min(TABLE_COLUMNS, t->width - column);
    for (int64_t row = 0; row < args->rows; row++) {
        const real *dy = (const real *)grad->dy + row * grad->lddy + at + column;
        real *to = (real *)t->dtable + (int64_t)args->id[row * args->ldid + id] * t->width + column;
        XPH_VECTOR
        for (int64_t i = 0; i < columns; i++) to[i] += dy[i];
    }
}

static void add_table(const xph_embed_grad_args *grad, int64_t id, int64_t column)
{
    const xph_embed_args *args = &grad->fwd;
    if (seen_before(args, id)) return;
    for (int64_t i = 0, at = args->floats; i < args->ids; at += args->tables[i].width, i++)
        if (args->tables[i].dtable == args->tables[id].dtable) add_id(grad, i, at, column);
}

static void grad_run(const void *given, int64_t begin, int64_t end)
{
    const xph_embed_grad_args *grad = given;
    int64_t item = 0;
    for (int64_t id = 0; id < grad->fwd.ids; id++) {
        int64_t last = item + table_items(&grad->fwd.tables[id]);
        for (int64_t i = int_max(begin, item); i < int_min(end, last); i++)
            add_table(grad, id, (i - item) * TABLE_COLUMNS);
        item = last;
    }
}

const xph_candidate XPH_LIST(embed)[] = {{XPH_LABEL("embed"), NULL, NULL, {{embed_items, embed_run}}},
                                         XPH_LIST_END};

const xph_candidate XPH_LIST(embed_grad)[] = {{XPH_LABEL("embed_grad"), NULL, NULL, {{grad_items, grad_run}}},
                                              XPH_LIST_END};
