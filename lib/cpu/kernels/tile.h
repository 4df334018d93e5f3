/* The product that all matrix products are made of: a tile of some rows and columns,
 *
 *   to[r][c] = start[c] (or 0) + a[r][0] b[0][c] + a[r][1] b[1][c] + ... (fused, in this order) + add[r][c]
 *
 * with its sums in registers. An output depends on its own row and column alone: not on the tile it is in,
 * the batch, the threads or the width of a register.
 *
 * b is a panel of XPH_PANEL columns, [depth][XPH_PANEL]. a is a matrix with the depth along its rows, or
 * transposed, [depth][rows].
 *
 * The lines that a tile will write and that the next tiles will read are prefetched one by one while it
 * multiplies. A burst of prefetches would fill the line buffers through which b comes from L2; without
 * prefetches up to a fifth of the time is spent waiting for memory.
 */
#ifndef XPH_CPU_KERNELS_TILE_H
#define XPH_CPU_KERNELS_TILE_H

#include "cpu/kernels/real.h"
#include "cpu/simd/vec.h"

enum {
    /* In registers; the widest tile of STRIP rows has all of them. */
    TILE_SUMS = VEC_REGISTERS == 32 ? 24 : 12,
    STRIP = 6,                                             /* rows of a tile at most */
    TILE_STEPS = 8,                                        /* of the depth between two prefetches */
    TILE_WIDTHS = VEC_REGISTERS == 32 && VEC == 4 ? 5 : 4, /* 1, 2, 4, 8, 16 registers */
    LINE = 64 / (int)sizeof(real)
};

/* Lines that later tiles will read: at depth k those at[k * step + i * apart], i < each. */
typedef struct ahead {
    const real *at;
    int64_t step, apart, each;
} ahead;

typedef struct tile_job {
    const real *a;
    int64_t lda;
    const real *b;
    int64_t depth;
    const real *start; /* NULL: 0 */
    int64_t ld_start;  /* 0: the same for all rows */
    real *to;
    int64_t ld;
    const real *add; /* NULL: nothing; may be `to` */
    int64_t ld_add;
    ahead next;
    int64_t ldb; /* of b, for a transposed: its rows may lie apart */
} tile_job;

typedef void (*tile_fn)(const tile_job *job);

/* Under sanitizers one tile for all shapes: one for each, checked access by access, takes clang minutes. */
#if defined(EXPHIL_SANITIZE)
#  define TILE_INLINE static __attribute__((noinline, unused))
#else
#  define TILE_INLINE XPH_INLINE
#endif

/* One step of the depth: the fewer of rows and columns are held, the others pass. a: the rows 0 and 3. */
XPH_INLINE void tile_step(const int rows, const int vecs, const bool transposed, const real *const *a,
                          int64_t lda, int64_t k, const real *b, vec *sum)
{
    multiplier x[STRIP];
    vec held[STRIP];
    if (rows == 1) { /* every column is used once, where it is loaded */
        x[0] = multiplier_of(transposed ? a[0][k * lda] : a[0][k]);
        const int some = vecs < VEC_LOADS ? vecs : VEC_LOADS;
        XPH_UNROLL
        for (int c = 0; c < vecs; c += some) {
            vecs_load(held, some, b + c * VEC);
            XPH_UNROLL
            for (int i = 0; i < some; i++) sum[c + i] = vec_fma_by(x[0], held[i], sum[c + i]);
        }
        return;
    }
    if (rows < vecs) {
        XPH_UNROLL
        for (int r = 0; r < rows; r++)
            x[r] = multiplier_of(transposed ? a[0][k * lda + r] : a[r / 3][r % 3 * lda + k]);
        XPH_UNROLL
        for (int c = 0; c < vecs; c++) {
            vec column = vec_load(b + c * VEC);
            VEC_HOLD(column);
            XPH_UNROLL
            for (int r = 0; r < rows; r++) VEC_FMA_HELD(sum[r * vecs + c], x[r], column);
        }
        return;
    }
    XPH_UNROLL
    for (int c = 0; c < vecs; c++) {
        held[c] = vec_load(b + c * VEC);
        VEC_HOLD(held[c]);
    }
    XPH_UNROLL
    for (int r = 0; r < rows; r++) {
        x[r] = multiplier_of(transposed ? a[0][k * lda + r] : a[r / 3][r % 3 * lda + k]);
        XPH_UNROLL
        for (int c = 0; c < vecs; c++) VEC_FMA_HELD(sum[r * vecs + c], x[r], held[c]);
    }
}

XPH_INLINE void tile_start(const int rows, const int vecs, const tile_job *job, vec *sum)
{
    if (!job->start) {
        XPH_UNROLL
        for (int r = 0; r < rows; r++) {
            XPH_UNROLL
            for (int c = 0; c < vecs; c++) sum[r * vecs + c] = vec_all(R(0.0));
        }
        return;
    }
    XPH_UNROLL
    for (int r = 0; r < rows; r++) {
        XPH_UNROLL
        for (int c = 0; c < vecs; c++) sum[r * vecs + c] = vec_load(job->start + r * job->ld_start + c * VEC);
    }
}

XPH_INLINE void tile_end(const int rows, const int vecs, const tile_job *job, vec *sum)
{
    if (job->add) {
        XPH_UNROLL
        for (int r = 0; r < rows; r++) {
            XPH_UNROLL
            for (int c = 0; c < vecs; c++)
                sum[r * vecs + c] += vec_load(job->add + r * job->ld_add + c * VEC);
        }
    }
    XPH_UNROLL
    for (int r = 0; r < rows; r++) {
        XPH_UNROLL
        for (int c = 0; c < vecs; c++) vec_store(job->to + r * job->ld + c * VEC, sum[r * vecs + c]);
    }
}

/* What is needed around depth k: a row that the tile will write (and add), and the lines ahead. */
XPH_INLINE void tile_prefetch(const int rows, const int lines, const tile_job *job, int64_t k)
{
    int64_t r = int_min(k / TILE_STEPS, rows - 1);
    const real *to = job->to + r * job->ld;
    XPH_UNROLL
    for (int i = 0; i < lines; i++) __builtin_prefetch(to + i * LINE, 1, 3);
    if (job->add && job->add != job->to) {
        const real *add = job->add + r * job->ld_add;
        XPH_UNROLL
        for (int i = 0; i < lines; i++) __builtin_prefetch(add + i * LINE, 0, 3);
    }
    if (job->next.each) {
        const real *at = job->next.at + k * job->next.step;
        for (int64_t i = 0; i < job->next.each; i++) __builtin_prefetch(at + i * job->next.apart, 0, 2);
    }
}

/* rows, vecs (registers of columns) and transposed are constants at every call. */
TILE_INLINE void tile(const int rows, const int vecs, const bool transposed, const tile_job *job)
{
    const int lines = (vecs * VEC + LINE - 1) / LINE;
    const int64_t depth = job->depth, lda = job->lda, ldb = transposed ? job->ldb : XPH_PANEL;
    const real *const a[2] = {job->a, job->a + (!transposed && rows > 3 ? 3 * lda : 0)}, *b = job->b;
    vec sum[TILE_SUMS];
    int64_t k = 0;
    tile_start(rows, vecs, job, sum);
    /* few rows wait for b alone: a short loop, which the processor reads ahead of; unknown registers, none */
    for (; VEC_REGISTERS > 0 && (rows > 3 || VEC_BYTES < 64) && k + TILE_STEPS <= depth; k += TILE_STEPS) {
        if (rows > 3) tile_prefetch(rows, lines, job, k);
        if (transposed) { /* rows that lie apart have no addresses ready made */
            for (int step = 0; step < TILE_STEPS; step++, b += ldb)
                tile_step(rows, vecs, transposed, a, lda, k + step, b, sum);
        } else {
            XPH_UNROLL
            for (int step = 0; step < TILE_STEPS; step++, b += ldb)
                tile_step(rows, vecs, transposed, a, lda, k + step, b, sum);
        }
    }
    for (; k < depth; k++, b += ldb) tile_step(rows, vecs, transposed, a, lda, k, b, sum);
    tile_end(rows, vecs, job, sum);
}

/* Widest tile (registers as a power of two) for so many rows, not wider than the columns left need. */
XPH_INLINE int tile_width(int64_t rows, int64_t columns)
{
    int w = TILE_WIDTHS - 1;
    while (w > 0 && (rows << w > TILE_SUMS || VEC << w > XPH_PANEL || VEC << (w - 1) >= columns)) w--;
    return w;
}

/* Rows of the next tile when so many are left: as even as can be. */
XPH_INLINE int64_t tile_rows(int64_t left)
{
    return left <= STRIP ? left : blocks_of(left, blocks_of(left, STRIP));
}

/* A tile of which only `columns` exist. */
XPH_INLINE void tile_part(tile_fn whole, int64_t rows, int64_t columns, const tile_job *job)
{
    _Alignas(64) real first[STRIP * XPH_PANEL], sums[STRIP * XPH_PANEL];
    tile_job full = *job;
    if (job->start) {
        for (int64_t r = 0; r < rows; r++)
            memcpy(first + r * XPH_PANEL, job->start + r * job->ld_start, (size_t)columns * sizeof(real));
        full.start = first;
        full.ld_start = XPH_PANEL;
    }
    full.to = sums;
    full.ld = XPH_PANEL;
    full.add = NULL;
    whole(&full);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            job->to[r * job->ld + c] =
                job->add ? sums[r * XPH_PANEL + c] + job->add[r * job->ld_add + c] : sums[r * XPH_PANEL + c];
}

#endif
