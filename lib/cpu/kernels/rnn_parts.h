/* What forward (rnn.c) and backward (rnn_grad.c) of LSTM and GRU share: sizes, how streams are cut into
 * items, a register of units, and one strip of streams times one panel of weights.
 *
 * The cut depends on the shape alone, and every stream is summed by itself, so neither the cut nor the thread
 * that runs it changes a result. */
#ifndef XPH_CPU_KERNELS_RNN_PARTS_H
#define XPH_CPU_KERNELS_RNN_PARTS_H

#include "cpu/kernels/real.h"
#include "cpu/simd/vec_element.h"

enum { MOST_STREAMS = 96 }; /* that go through time together: their state stays in L2 */

XPH_INLINE int64_t gates_of(const xph_rnn_args *args)
{
    return (args->kind == XPH_RNN_LSTM ? 4 : 3) * args->hidden;
}

XPH_INLINE int64_t state_width(const xph_rnn_args *args)
{
    return (args->kind == XPH_RNN_LSTM ? 2 : 1) * args->hidden;
}

XPH_INLINE int64_t saved_width(const xph_rnn_args *args)
{
    return (args->kind == XPH_RNN_LSTM ? 5 : 4) * args->hidden;
}

/* Streams of an item: few enough for several threads, enough for what is read of the weights to pay. */
XPH_INLINE int64_t streams_per_item(const xph_rnn_args *args)
{
    if (args->batch >= 64) return args->hidden > 320 ? 32 : 16;
    return args->batch >= 16 ? 8 : args->batch >= 8 ? 4 : int_max(1, args->batch);
}

/* The next of `left` streams to go through time together, in blocks as even as they get. */
XPH_INLINE int64_t next_streams(int64_t left)
{
    return blocks_of(left, blocks_of(left, MOST_STREAMS));
}

enum { STRIP = VEC_REGISTERS > 0 ? 6 : 2 }; /* rows of a strip at most */

/* Rows of the next strip when so many are left, as even as they get. */
XPH_INLINE int64_t strip_rows(int64_t left)
{
    return blocks_of(left, blocks_of(left, STRIP));
}

/* Strips of streams times panels of units, in the order in which they are taken: strip by strip while all
 * weights stay in L2, which nothing that only passes through drives them out of then; else
 * panel by panel, so that one panel of every gate stays. */
typedef struct place {
    int64_t r, u;
} place;

XPH_INLINE bool weights_stay(const xph_rnn_args *args)
{
    return gates_of(args) * args->hidden * (int64_t)sizeof(real) <= 1280 << 10;
}

/* The place after one with so many rows; r is `streams` when there is none in this frame. */
XPH_INLINE place next_place(const xph_rnn_args *args, int64_t streams, place at, int64_t rows)
{
    if (weights_stay(args)) {
        at.u += XPH_PANEL;
        return at.u < args->hidden ? at : (place){at.r + rows, 0};
    }
    at.r += rows;
    if (at.r < streams || at.u + XPH_PANEL >= args->hidden) return at;
    return (place){0, at.u + XPH_PANEL};
}

/* ---- a register of units ---- */

/* count: how many of its lanes there are, VEC everywhere but at the end of a width that is no multiple of it. */

XPH_INLINE vec take(const real *from, const int64_t count)
{
    if (count == VEC) return vec_load(from);
    vec v = {0};
    memcpy(&v, from, (size_t)count * sizeof(real));
    return v;
}

XPH_INLINE void give(real *to, vec v, const int64_t count)
{
    memcpy(to, &v, (size_t)count * sizeof(real));
}

/* ---- memory that comes next ---- */

/* Blocks of `rows` rows of XPH_PANEL reals, `ld` apart. They are prefetched line by line while a product
 * runs: a burst would fill the line buffers through which the weights come out of L2. */
typedef struct prefetch_block {
    const real *at;
    int64_t ld;
} prefetch_block;
enum {
    LINE = 64 / (int)sizeof(real),
    LINES = XPH_PANEL / LINE, /* of a row */
    MOST_PREFETCHES = 12,
    PREFETCH_STEPS = 8, /* of a product between two prefetches */
    PREFETCH_LINES = 3
};
typedef struct prefetches {
    prefetch_block of[MOST_PREFETCHES];
    int64_t rows, count, now, line;
} prefetches;

XPH_INLINE void prefetch_add(prefetches *all, const real *at, int64_t ld)
{
    all->of[all->count++] = (prefetch_block){at, ld};
}

XPH_INLINE void prefetch_some(prefetches *all)
{
    for (int i = 0; i < PREFETCH_LINES && all->now < all->count; i++) {
        const prefetch_block *w = &all->of[all->now];
        __builtin_prefetch(w->at + all->line / LINES * w->ld + all->line % LINES * LINE, 0, 3);
        if (++all->line < all->rows * LINES) continue;
        all->line = 0;
        all->now++;
    }
}

/* ---- products ---- */

enum {
    SUMS = VEC_REGISTERS == 32   ? 24
           : VEC_REGISTERS == 16 ? 12
                                 : 4,
    MOST_VECS = 4 /* registers of columns */
};

/* to[r][c] = start[r][c] + sum over k of a[r][k] b[k][c], k = 0, 1, ... in order, each fused; + add[r][c].
 * c: VEC columns of a panel and more, up to `columns`. ld_start 0: the same for all rows. */
typedef struct job {
    const real *a, *b, *start, *add;
    int64_t lda, ld_start, ld_add, depth, columns, ld;
    real *to;
    prefetches *prefetch;
} job;

XPH_INLINE void step(const int rows, const int vecs, const real *const *a, int64_t lda, int64_t k,
                     const real *b, vec *sum)
{
    vec w[MOST_VECS];
    XPH_UNROLL
    for (int c = 0; c < vecs; c++) {
        w[c] = vec_load(b + c * VEC);
        VEC_HOLD(w[c]);
    }
    XPH_UNROLL
    for (int r = 0; r < rows; r++) {
        multiplier x = multiplier_of(a[r / 3][r % 3 * lda + k]);
        XPH_UNROLL
        for (int c = 0; c < vecs; c++) VEC_FMA_HELD(sum[r * vecs + c], x, w[c]);
    }
}

XPH_INLINE void finish(const int rows, const int vecs, const job *j, const int64_t count, const bool adds,
                       const vec *sum)
{
    XPH_UNROLL
    for (int r = 0; r < rows; r++) {
        XPH_UNROLL
        for (int c = 0; c < vecs; c++) {
            int64_t lanes = c == vecs - 1 ? count : VEC;
            vec all = sum[r * vecs + c];
            if (adds) all += take(j->add + r * j->ld_add + c * VEC, lanes);
            give(j->to + r * j->ld + c * VEC, all, lanes);
        }
    }
}

/* rows and vecs are constants at every call; count: lanes of the last register. */
XPH_INLINE void tile(const int rows, const int vecs, const job *j, const int64_t count)
{
    const real *b = j->b, *const a[2] = {j->a, j->a + (rows > 3 ? 3 * j->lda : 0)};
    const int64_t depth = j->depth, lda = j->lda;
    int64_t k = 0;
    vec sum[SUMS];
    XPH_UNROLL
    for (int r = 0; r < rows; r++) {
        XPH_UNROLL
        for (int c = 0; c < vecs; c++)
            sum[r * vecs + c] = take(j->start + r * j->ld_start + c * VEC, c == vecs - 1 ? count : VEC);
    }
    for (; k + PREFETCH_STEPS <= depth; k += PREFETCH_STEPS) {
        prefetch_some(j->prefetch);
        XPH_UNROLL
        for (int i = 0; i < PREFETCH_STEPS; i++, b += XPH_PANEL) step(rows, vecs, a, lda, k + i, b, sum);
    }
    for (; k < depth; k++, b += XPH_PANEL) step(rows, vecs, a, lda, k, b, sum);
    if (j->add)
        finish(rows, vecs, j, count, true, sum);
    else
        finish(rows, vecs, j, count, false, sum);
}

/* With these, rows fill the registers there are; few rows at least give enough sums to have under way. */
XPH_INLINE int vecs_of(const int rows)
{
    return rows * 4 <= SUMS ? 4 : 2;
}

#define RNN_TILE(rows)                                                                                       \
  static void tile_##rows(const job *j)                                                                      \
  {                                                                                                          \
    tile(rows, rows * 4 <= SUMS ? 4 : 2, j, VEC);                                                            \
  }                                                                                                          \
  static void thin_##rows(const job *j)                                                                      \
  {                                                                                                          \
    tile(rows, 1, j, int_min(VEC, j->columns));                                                              \
  }
RNN_TILE(1)
RNN_TILE(2)
#if VEC_REGISTERS > 0
RNN_TILE(3)
RNN_TILE(4)
RNN_TILE(5)
RNN_TILE(6)
#  define EACH_TILE(name)                                                                                    \
    {                                                                                                        \
      name##1, name##2, name##3, name##4, name##5, name##6                                                   \
    }
#else
#  define EACH_TILE(name)                                                                                    \
    {                                                                                                        \
      name##1, name##2                                                                                       \
    }
#endif

/* rows (at most STRIP) times one panel. */
static void strip_times_panel(int64_t rows, job j)
{
    static void (*const wide[])(const job *) = EACH_TILE(tile_);
    static void (*const thin[])(const job *) = EACH_TILE(thin_);
    while (j.columns > 0) {
        bool whole = j.columns >= vecs_of((int)rows) * VEC;
        int64_t done = whole ? vecs_of((int)rows) * VEC : VEC;
        (whole ? wide : thin)[rows - 1](&j);
        j.columns -= done;
        j.b += done;
        j.to += done;
        j.start += done;
        if (j.add) j.add += done;
    }
}

#endif
