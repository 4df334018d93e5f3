/* Gradients of y = x W^T + bias.
 *
 *   dx     a product as in forward, of dy and W packed transposed; a sum starts from 0
 *   dw     every SUM_ROWS rows are summed from 0 in order, and these sums added in order to what is there
 *   dbias  likewise, taken while dy is copied for dw
 *
 * dw is dy^T times x: of every SUM_ROWS rows the dy of a chunk of outputs is copied, once for all panels of
 * inputs, and the x of a panel too where its rows are so far apart that they would fall into few sets of a
 * cache; the next rows are prefetched meanwhile. The copies are too large for a host's stack, so they lie in
 * scratch, where dx had its packed W.
 */
#include "cpu/kernels/panel.h"
#include "cpu/kernels/tile.h"
#include "cpu/simd/lanes.h"

enum {
    P = XPH_PANEL,
    SUM_ROWS = 512 / (int)sizeof(real),
    CHUNK = 48 * STRIP,                /* outputs packed together, whole registers */
    PACK_VECS = 4,                     /* registers of a row copied together */
    DIRECT = 2048 / (int)sizeof(real), /* rows of x not further apart need no copy */
    DW_BYTES = 800 << 10,              /* of dw that stay in L2 while all rows pass */
    GROUP = 2,                         /* panels of inputs of an item */
    ITEMS = 8,                         /* at least, where there is so much */
    MOST_SLOTS = 64,                   /* calls that can be under way, each with its own copies */
    COPY = SUM_ROWS * (CHUNK + P),     /* reals of them */
    SPAN = SUM_ROWS / TILE_STEPS * LINE
};

/* ---- dx ---- */

static int64_t pack_items(const void *args)
{
    const xph_linear_grad_args *a = args;
    return a->dx && a->rows ? blocks_of(a->in, P) : 0;
}

static void pack_run(const void *args, int64_t begin, int64_t end)
{
    const xph_linear_grad_args *a = args;
    for (int64_t panel = begin; panel < end; panel++)
        panel_straight((const real *)a->w + panel * P, a->in, a->out, int_min(P, a->in - panel * P),
                       (real *)a->scratch + panel * P * a->out);
}

static xph_linear_args as_forward(const xph_linear_grad_args *a)
{
    return (xph_linear_args){.type = a->type,
                             .rows = a->rows,
                             .in = a->out,
                             .out = a->in,
                             .x = a->dy,
                             .ldx = a->lddy,
                             .packed = a->scratch,
                             .residual = a->dx_add ? a->dx : NULL,
                             .ldr = a->lddx,
                             .y = a->dx,
                             .ldy = a->lddx};
}

/* The candidate that takes everything. */
static const xph_phase *forward_phase(void)
{
    const xph_candidate *list = XPH_LIST(linear);
    while (list[1].name) list++;
    return list->phase;
}

static int64_t dx_items(const void *args)
{
    const xph_linear_grad_args *a = args;
    xph_linear_args forward = as_forward(a);
    return a->dx ? forward_phase()->items(&forward) : 0;
}

static void dx_run(const void *args, int64_t begin, int64_t end)
{
    xph_linear_args forward = as_forward(args);
    if (begin < end) forward_phase()->run(&forward, begin, end);
}

/* ---- dw ---- */

#define TRANSPOSED_TILE(vecs)                                                                                \
  static void transposed_tile_##vecs(const tile_job *job)                                                    \
  {                                                                                                          \
    tile(STRIP, vecs, true, job);                                                                            \
  }
TRANSPOSED_TILE(1)
TRANSPOSED_TILE(2)
#if VEC_REGISTERS == 32
TRANSPOSED_TILE(4)
static const tile_fn transposed_tiles[] = {transposed_tile_1, transposed_tile_2, transposed_tile_4};
#else
static const tile_fn transposed_tiles[] = {transposed_tile_1, transposed_tile_2};
#endif

/* dw is cut into parts of `strips` strips (one chunk) by GROUP panels, group after group of one chunk. An item is as
 * many parts as make at most MOST_SLOTS items. */
typedef struct cut {
    int64_t strips, chunks, groups;
} cut;

static cut cut_of(const xph_linear_grad_args *a)
{
    int64_t strips = blocks_of(a->out, STRIP), groups = blocks_of(a->in, GROUP * P), chunks;
    chunks = int_max(blocks_of(strips, CHUNK / STRIP),
                     int_min(blocks_of(strips, CHUNK / STRIP / 3), blocks_of(ITEMS, int_max(1, groups))));
    cut c = {blocks_of(strips, int_max(1, chunks)), 0, groups};
    c.chunks = blocks_of(strips, int_max(1, c.strips));
    return c;
}

static int64_t slots_of(const cut *c)
{
    return int_min(c->chunks * c->groups, MOST_SLOTS);
}

/* The work of dw in order: of every SUM_ROWS rows the chunks, of every chunk the panels. */
typedef struct place {
    int64_t row, chunk, panel;
} place;
typedef struct walk {
    const xph_linear_grad_args *a;
    cut cut;
    int64_t begin, end; /* parts */
} walk;

static int64_t first_panel(const walk *w, int64_t chunk)
{
    return chunk == w->begin / w->cut.groups ? w->begin % w->cut.groups * GROUP : 0;
}

static int64_t end_panel(const walk *w, int64_t chunk)
{
    int64_t rest = w->end - chunk * w->cut.groups;
    return int_min(blocks_of(w->a->in, P), rest * GROUP);
}

static int64_t rows_of(const walk *w, int64_t row)
{
    return int_min(SUM_ROWS, w->a->rows - row);
}

static int64_t outputs_of(const walk *w, int64_t chunk)
{
    return int_min(w->cut.strips * STRIP, w->a->out - chunk * w->cut.strips * STRIP);
}

/* Some registers of columns, copied and summed: vecs whole ones, or one of which `count` columns are there. */
XPH_INLINE void pack_columns(const int vecs, int64_t count, const real *from, int64_t ld, int64_t rows,
                             real *to, real *sums)
{
    vec sum[PACK_VECS], zero = {0};
    XPH_UNROLL
    for (int v = 0; v < vecs; v++) sum[v] = zero;
    for (int64_t m = 0; m < rows; m++, from += ld, to += CHUNK) {
        XPH_UNROLL
        for (int v = 0; v < vecs; v++) {
            vec dy = count == VEC ? vec_load(from + v * VEC) : vec_load_part(from, count);
            vec_store(to + v * VEC, dy);
            sum[v] += dy;
        }
    }
    XPH_UNROLL
    for (int v = 0; v < vecs; v++) vec_store(sums + v * VEC, sum[v]);
}

/* dy of a chunk, [rows][CHUNK]; outputs that do not exist are 0. sums: those of the rows. */
static void pack_chunk(const walk *w, int64_t row, int64_t chunk, real *to, real *sums)
{
    int64_t rows = rows_of(w, row), outputs = outputs_of(w, chunk), ld = w->a->lddy, at = 0;
    const real *from = (const real *)w->a->dy + row * ld + chunk * w->cut.strips * STRIP;
    for (; at + PACK_VECS * VEC <= outputs; at += PACK_VECS * VEC)
        pack_columns(PACK_VECS, VEC, from + at, ld, rows, to + at, sums + at);
    for (; at + VEC <= outputs; at += VEC) pack_columns(1, VEC, from + at, ld, rows, to + at, sums + at);
    if (at < outputs) pack_columns(1, outputs - at, from + at, ld, rows, to + at, sums + at);
    for (int64_t i = outputs; i % STRIP; i++)
        for (int64_t m = 0; m < rows; m++) to[m * CHUNK + i] = R(0.0);
}

/* The same, and its rows summed into dbias by whoever has the first panels. */
static void take_chunk(const walk *w, int64_t row, int64_t chunk, real *to)
{
    real sums[CHUNK], *dbias = w->a->dbias;
    pack_chunk(w, row, chunk, to, sums);
    if (!dbias || first_panel(w, chunk) > 0) return;
    for (int64_t i = 0; i < outputs_of(w, chunk); i++) dbias[chunk * w->cut.strips * STRIP + i] += sums[i];
}

/* What the tiles of one block of rows prefetch of the next: its x, then its dy, a span of a row at a time. */
typedef struct ahead_rows {
    const real *at, *row_end;
    int64_t width, ld, rows;
} ahead_rows;
typedef struct plan {
    ahead_rows part[2];
    int64_t each; /* spans of a tile */
} plan;

static ahead_rows ahead_rows_of(const real *at, int64_t width, int64_t ld, int64_t rows)
{
    if (rows > 0 && ld == width) { /* all rows in one */
        width *= rows;
        rows = 1;
    }
    return (ahead_rows){at, at + width, width, ld, rows};
}

static plan plan_of(const walk *w, int64_t row)
{
    const xph_linear_grad_args *a = w->a;
    int64_t first = w->begin / w->cut.groups, last = (w->end - 1) / w->cut.groups;
    int64_t panel = first == last ? first_panel(w, first) : 0;
    int64_t panels = (first == last ? end_panel(w, last) : blocks_of(a->in, P)) - panel;
    int64_t inputs = int_min(a->in - panel * P, panels * P), output = first * w->cut.strips * STRIP;
    int64_t outputs = int_min(a->out, (last + 1) * w->cut.strips * STRIP) - output;
    int64_t rows = int_max(0, int_min(SUM_ROWS, a->rows - row)), tiles = panels * blocks_of(outputs, STRIP);
    if (rows == 0) return (plan){0};
    return (plan){{ahead_rows_of((const real *)a->x + row * a->ldx + panel * P, inputs, a->ldx, rows),
                   ahead_rows_of((const real *)a->dy + row * a->lddy + output, outputs, a->lddy, rows)},
                  blocks_of(rows * (inputs + outputs), tiles * SPAN)};
}

static ahead share_of(plan *p)
{
    ahead_rows *c = p->part[0].rows ? &p->part[0] : &p->part[1];
    if (!c->rows) return (ahead){0};
    ahead share = {c->at, LINE / TILE_STEPS, SPAN, p->each};
    c->at += p->each * SPAN;
    if (c->at >= c->row_end && --c->rows) {
        c->row_end += c->ld;
        c->at = c->row_end - c->width;
    }
    return share;
}

/* One strip times one panel into dw. */
static void strip_times_panel(int64_t outputs, int64_t columns, tile_job *job)
{
    for (int64_t left = columns; left > 0;) {
        int w = tile_width(STRIP, left);
        int64_t wide = VEC << w;
        if (left < wide || outputs < STRIP)
            tile_part(transposed_tiles[w], outputs, int_min(left, wide), job);
        else
            transposed_tiles[w](job);
        left -= wide;
        job->b += wide;
        job->to += wide;
        job->add += wide;
    }
}

static void chunk_times_panel(const walk *w, place at, const real *dy, real *panel, plan *next)
{
    const xph_linear_grad_args *a = w->a;
    int64_t rows = rows_of(w, at.row), column = at.panel * P, columns = int_min(P, a->in - column);
    int64_t output = at.chunk * w->cut.strips * STRIP, end = output + outputs_of(w, at.chunk);
    tile_job job = {.lda = CHUNK, .depth = rows, .ld = a->in, .ld_add = a->in};
    const real *x = (const real *)a->x + at.row * a->ldx + column;
    job.ldb = a->ldx;
    if (columns < P || a->ldx > DIRECT) {
        panel_straight(x, a->ldx, rows, columns, panel);
        x = panel;
        job.ldb = P;
    }
    for (; output < end; output += STRIP, dy += STRIP) {
        job.a = dy;
        job.b = x;
        job.to = (real *)a->dw + output * a->in + column;
        job.add = job.to;
        job.next = share_of(next);
        strip_times_panel(int_min(STRIP, end - output), columns, &job);
    }
}

static void dw_part(const xph_linear_grad_args *a, int64_t begin, int64_t end, real *copy)
{
    const walk w = {a, cut_of(a), begin, end};
    real *dy = copy, *panel = copy + SUM_ROWS * CHUNK;
    for (int64_t row = 0; row < a->rows; row += SUM_ROWS) {
        plan next = plan_of(&w, row + SUM_ROWS);
        for (int64_t chunk = begin / w.cut.groups; chunk <= (end - 1) / w.cut.groups; chunk++) {
            take_chunk(&w, row, chunk, dy);
            for (int64_t p = first_panel(&w, chunk); p < end_panel(&w, chunk); p++)
                chunk_times_panel(&w, (place){row, chunk, p}, dy, panel, &next);
        }
    }
}

/* So many chunks at a time that their dw stays in L2. The slot of the first item serves all
 * of this call: its memory stays there, too. */
static void dw_run(const void *args, int64_t begin, int64_t end)
{
    const xph_linear_grad_args *a = args;
    cut c = cut_of(a);
    int64_t bytes = c.strips * STRIP * a->in * (int64_t)sizeof(real),
            most = int_max(1, DW_BYTES / int_max(1, bytes));
    if (begin >= end) return;
    int64_t parts = c.chunks * c.groups, slots = slots_of(&c);
    int64_t at = begin * parts / slots, last = end * parts / slots;
    for (int64_t next; at < last; at = next) {
        next = int_min(last, (at / c.groups + most) * c.groups);
        dw_part(a, at, next, (real *)a->scratch + begin * COPY);
    }
}

static int64_t dw_items(const void *args)
{
    const xph_linear_grad_args *a = args;
    cut c = cut_of(a);
    return a->dw && a->rows ? slots_of(&c) : 0;
}

/* ---- dbias where there is no dw ---- */

static int64_t dbias_items(const void *args)
{
    const xph_linear_grad_args *a = args;
    return a->dbias && !dw_items(a) ? blocks_of(a->out, P) : 0;
}

static void dbias_run(const void *args, int64_t begin, int64_t end)
{
    const xph_linear_grad_args *a = args;
    const real *dy = a->dy;
    real *dbias = a->dbias;
    for (int64_t column = begin * P; column < int_min(a->out, end * P); column += P) {
        int64_t columns = int_min(P, a->out - column);
        for (int64_t m = 0; m < a->rows; m += SUM_ROWS) {
            real acc[P] = {0};
            for (int64_t r = m; r < int_min(m + SUM_ROWS, a->rows); r++)
                for (int64_t c = 0; c < columns; c++) acc[c] += dy[r * a->lddy + column + c];
            for (int64_t c = 0; c < columns; c++) dbias[column + c] += acc[c];
        }
    }
}

static size_t grad_scratch(const void *args)
{
    const xph_linear_grad_args *a = args;
    cut c = cut_of(a);
    return (size_t)int_max(blocks_of(a->in, P) * P * a->out, slots_of(&c) * COPY) * sizeof(real);
}

const xph_candidate XPH_LIST(linear_grad)[] = {
    {.name = XPH_LABEL("linear_grad"),
     .scratch_bytes = grad_scratch,
     .phase = {{pack_items, pack_run}, {dx_items, dx_run}, {dw_items, dw_run}, {dbias_items, dbias_run}}},
    XPH_LIST_END,
};
