/* Logits of all action heads from one trunk whose actions are known, and the gradients.
 *
 * Everything but the logits' sums is local to a column of the trunk: forward cuts a row into blocks of
 * columns and needs no memory, backward gives each item a few columns of all rows, so that v, e and their
 * gradients sum over the rows in order and no partial sums exist. */
#include "cpu/ref/trunk.h"

enum { GRAD_COLUMNS = 32 };

static int64_t block_rows(const xph_heads_args *args)
{
    return rows_per_item(args->logits * args->width);
}

static int64_t heads_items(const void *given)
{
    const xph_heads_args *args = given;
    return blocks_of(args->rows, block_rows(args));
}

static void heads_row(const xph_heads_args *args, int64_t row)
{
    const real *z = (const real *)args->z + row * args->ldz;
    const int32_t *actions = args->e ? args->actions + row * args->lda : NULL;
    real *y = (real *)args->y + row * args->ldy;
    real s[TRUNK_COLUMNS], hidden[TRUNK_COLUMNS];
    trunk_bias(args, row, 0, args->logits, y);
    for (int64_t column = 0; column < args->width; column += TRUNK_COLUMNS) {
        int64_t columns = int_min(TRUNK_COLUMNS, args->width - column);
        memcpy(s, z + column, (size_t)columns * sizeof(real));
        trunk_hidden(s, columns, hidden);
        for (int64_t h = 0; h < args->heads; h++) {
            if (h > 0 && args->e) trunk_hidden(s, columns, hidden);
            trunk_logits(args, &args->head[h], column, columns, hidden, y);
            if (args->e) trunk_take(args, &args->head[h], actions[h], column, columns, s);
        }
    }
}

static void heads_run(const void *given, int64_t begin, int64_t end)
{
    const xph_heads_args *args = given;
    int64_t block = block_rows(args), last = int_min(args->rows, end * block);
    for (int64_t row = begin * block; row < last; row++) heads_row(args, row);
}

/* ---- backward ---- */

/* Scratch: per item, s of every head of the row at hand [heads, GRAD_COLUMNS]. */
static size_t grad_scratch(const void *given)
{
    const xph_heads_args *args = &((const xph_heads_grad_args *)given)->fwd;
    return (size_t)(blocks_of(args->width, GRAD_COLUMNS) * args->heads * GRAD_COLUMNS) * sizeof(real);
}

/* The last item is the bias. */
static int64_t grad_items(const void *given)
{
    const xph_heads_args *args = &((const xph_heads_grad_args *)given)->fwd;
    return blocks_of(args->width, GRAD_COLUMNS) + 1;
}

/* Some columns of one row on the way back: s of each head, ds behind the head at hand. */
typedef struct columns {
    int64_t at, count;
    real *s;
} columns;

static void trunk_again(const xph_heads_args *args, const columns *c, int64_t row)
{
    memcpy(c->s, (const real *)args->z + row * args->ldz + c->at, (size_t)c->count * sizeof(real));
    for (int64_t h = 0; h + 1 < args->heads; h++) {
        real *next = c->s + (h + 1) * GRAD_COLUMNS;
        memcpy(next, c->s + h * GRAD_COLUMNS, (size_t)c->count * sizeof(real));
        if (args->e)
            trunk_take(args, &args->head[h], args->actions[row * args->lda + h], c->at, c->count, next);
    }
}

/* de at the rows taken += ds */
static void give_taken(const xph_heads_grad_args *grad, const xph_head *head, int32_t action,
                       const columns *c, const real *ds)
{
    const xph_heads_args *args = &grad->fwd;
    real *de = (real *)grad->de + head->first * args->width + c->at;
    uint32_t taken = (uint32_t)action;
    for (int32_t i = 0; i < head->count; i++) {
        if (head->kind == XPH_HEAD_BERNOULLI ? !(taken >> i & 1u) : taken != (uint32_t)i) continue;
        real *row = de + i * args->width;
        XPH_VECTOR
        for (int64_t k = 0; k < c->count; k++) row[k] += ds[k];
    }
}

/* dv[l] += dy[l] SiLU(s); dh = sum_l dy[l] v[l]; ds += dh SiLU'(s). count: of the columns, a constant for
 * most. */
XPH_INLINE void head_back(const xph_heads_grad_args *grad, const xph_head *head, const real *dy,
                          const columns *c, int64_t count, const real *s, real *ds)
{
    const xph_heads_args *args = &grad->fwd;
    const real *v = (const real *)args->v + head->first * args->width + c->at;
    real *dv = grad->dv ? (real *)grad->dv + head->first * args->width + c->at : NULL;
    real hidden[GRAD_COLUMNS], slope[GRAD_COLUMNS], dh[GRAD_COLUMNS] = {0};
    XPH_VECTOR
    for (int64_t k = 0; k < count; k++) {
        hidden[k] = real_silu(s[k]);
        slope[k] = real_silu_slope(s[k]);
    }
    for (int64_t l = 0; l < head->count; l++) {
        real d = dy[head->first + l];
        const real *from = v + l * args->width;
        XPH_VECTOR
        for (int64_t k = 0; k < count; k++) dh[k] = FMA(d, from[k], dh[k]);
        if (!dv) continue;
        real *to = dv + l * args->width;
        XPH_VECTOR
        for (int64_t k = 0; k < count; k++) to[k] = FMA(d, hidden[k], to[k]);
    }
    XPH_VECTOR
    for (int64_t k = 0; k < count; k++) ds[k] = FMA(dh[k], slope[k], ds[k]);
}

static void grad_row(const xph_heads_grad_args *grad, const columns *c, int64_t row)
{
    const xph_heads_args *args = &grad->fwd;
    const real *dy = (const real *)grad->dy + row * grad->lddy;
    real ds[GRAD_COLUMNS] = {0};
    trunk_again(args, c, row);
    for (int64_t h = args->heads; h-- > 0;) {
        const xph_head *head = &args->head[h];
        if (args->e && grad->de) give_taken(grad, head, args->actions[row * args->lda + h], c, ds);
        if (c->count == GRAD_COLUMNS)
            head_back(grad, head, dy, c, GRAD_COLUMNS, c->s + h * GRAD_COLUMNS, ds);
        else
            head_back(grad, head, dy, c, c->count, c->s + h * GRAD_COLUMNS, ds);
    }
    if (grad->dz) memcpy((real *)grad->dz + row * grad->lddz + c->at, ds, (size_t)c->count * sizeof(real));
}

static void grad_bias(const xph_heads_grad_args *grad)
{
    real *dbias = grad->dbias;
    for (int64_t row = 0; dbias && row < grad->fwd.rows; row++) {
        const real *dy = (const real *)grad->dy + row * grad->lddy;
        XPH_VECTOR
        for (int64_t l = 0; l < grad->fwd.logits; l++) dbias[l] += dy[l];
    }
}

static void grad_run(const void *given, int64_t begin, int64_t end)
{
    const xph_heads_grad_args *grad = given;
    int64_t bias_item = blocks_of(grad->fwd.width, GRAD_COLUMNS);
    for (int64_t item = begin; item < end; item++) {
        if (item == bias_item) {
            grad_bias(grad);
            continue;
        }
        columns c = {item * GRAD_COLUMNS, int_min(GRAD_COLUMNS, grad->fwd.width - item * GRAD_COLUMNS),
                     (real *)grad->scratch + item * grad->fwd.heads * GRAD_COLUMNS};
        for (int64_t row = 0; row < grad->fwd.rows; row++) grad_row(grad, &c, row);
    }
}

const xph_candidate XPH_LIST(heads)[] = {{XPH_LABEL("heads"), NULL, NULL, {{heads_items, heads_run}}},
                                         XPH_LIST_END};

const xph_candidate XPH_LIST(heads_grad)[] = {
    {XPH_LABEL("heads_grad"), NULL, grad_scratch, {{grad_items, grad_run}}}, XPH_LIST_END};
