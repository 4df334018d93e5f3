/* LayerNorm over the width with an optional SiLU behind it, and its gradient.
 *
 * A row is summed in XPH_LANES lanes and two passes (mean, then squares about it). Gradients of gain and
 * shift are summed over the rows: SUM_ROWS rows from 0 in order, and these sums added in order to what is
 * there.
 */
#include "cpu/ref/real.h"

enum { COLUMNS = 64, SUM_ROWS = 256, WORK_PER_NUMBER = 32 };

static int64_t rows_of_item(const xph_norm_args *a)
{
    return rows_per_item(int_max(1, a->width) * WORK_PER_NUMBER);
}

static int64_t norm_items(const void *args)
{
    const xph_norm_args *a = args;
    return blocks_of(a->rows, rows_of_item(a));
}

/* Sum of the squares of x - mean. */
XPH_INLINE real squares_about(const real *restrict x, int64_t width, real mean)
{
    real lane[XPH_LANES] = {0};
    int64_t at = 0;
    for (; at + XPH_LANES <= width; at += XPH_LANES)
        for (int i = 0; i < XPH_LANES; i++) lane[i] = FMA(x[at + i] - mean, x[at + i] - mean, lane[i]);
    for (int i = 0; at + i < width; i++) lane[i] = FMA(x[at + i] - mean, x[at + i] - mean, lane[i]);
    return sum_lanes(lane);
}

typedef struct moments {
    real mean, rstd;
} moments;

static moments row_moments(const real *x, int64_t width, real epsilon)
{
    real mean = sum(x, width) / (real)width;
    real variance = squares_about(x, width, mean) / (real)width;
    return (moments){mean, R(1.0) / REAL_SQRT(variance + epsilon)};
}

static void norm_row(const real *restrict x, const real *restrict gain, const real *restrict shift, moments m,
                     int64_t width, int32_t act, real *restrict y)
{
    if (act == XPH_ACT_SILU) {
        XPH_VECTOR
        for (int64_t i = 0; i < width; i++)
            y[i] = real_silu(FMA((x[i] - m.mean) * m.rstd, gain[i], shift[i]));
    } else {
        XPH_VECTOR
        for (int64_t i = 0; i < width; i++) y[i] = FMA((x[i] - m.mean) * m.rstd, gain[i], shift[i]);
    }
}

static void norm_run(const void *args, int64_t begin, int64_t end)
{
    const xph_norm_args *a = args;
    const real *x = a->x;
    real *y = a->y, *saved = a->saved;
    int64_t block = rows_of_item(a);
    for (int64_t r = begin * block; r < int_min(a->rows, end * block); r++) {
        moments m = row_moments(x + r * a->ldx, a->width, (real)a->epsilon);
        norm_row(x + r * a->ldx, a->gain, a->shift, m, a->width, a->act, y + r * a->ldy);
        if (saved) {
            saved[2 * r] = m.mean;
            saved[2 * r + 1] = m.rstd;
        }
    }
}

const xph_candidate XPH_LIST(norm)[] = {
    {.name = XPH_LABEL("norm"), .phase = {{norm_items, norm_run}}},
    XPH_LIST_END,
};

/* ---- gradient: scratch holds dn [rows][width], the gradient before the activation ---- */

static size_t norm_grad_scratch(const void *args)
{
    const xph_norm_grad_args *a = args;
    return (size_t)a->fwd.rows * (size_t)a->fwd.width * sizeof(real);
}

static int64_t dx_items(const void *args)
{
    const xph_norm_grad_args *a = args;
    return norm_items(&a->fwd);
}

static void activation_grad(const real *restrict x, const real *restrict dy, const xph_norm_args *f,
                            moments m, real *restrict dn)
{
    const real *gain = f->gain, *shift = f->shift;
    if (f->act == XPH_ACT_SILU) {
        XPH_VECTOR
        for (int64_t i = 0; i < f->width; i++)
            dn[i] = dy[i] * real_silu_slope(FMA((x[i] - m.mean) * m.rstd, gain[i], shift[i]));
    } else {
        memcpy(dn, dy, (size_t)f->width * sizeof(real));
    }
}

/* Sums of g = dn gain and of g n, n = (x - mean) rstd, in lanes. */
XPH_INLINE void add_lanes(const real *restrict x, const real *restrict dn, const real *restrict gain,
                          moments m, int lanes, real *restrict plain, real *restrict along)
{
    for (int i = 0; i < lanes; i++) {
        plain[i] = FMA(dn[i], gain[i], plain[i]);
        along[i] = FMA(dn[i] * gain[i], (x[i] - m.mean) * m.rstd, along[i]);
    }
}

/* dx = rstd (g - mean(g) - n mean(g n)). */
static void dx_row(const real *restrict x, const real *restrict dn, const xph_norm_args *f, moments m,
                   bool add, real *restrict dx)
{
    const real *restrict gain = f->gain;
    real plain[XPH_LANES] = {0}, along[XPH_LANES] = {0};
    int64_t at = 0, width = f->width;
    for (; at + XPH_LANES <= width; at += XPH_LANES)
        add_lanes(x + at, dn + at, gain + at, m, XPH_LANES, plain, along);
    add_lanes(x + at, dn + at, gain + at, m, (int)(width - at), plain, along);
    real mean_g = sum_lanes(plain) / (real)width, mean_gn = sum_lanes(along) / (real)width;
    for (int64_t i = 0; i < width; i++) {
        real n = (x[i] - m.mean) * m.rstd;
        real d = m.rstd * FMA(-n, mean_gn, FMA(dn[i], gain[i], -mean_g));
        dx[i] = add ? dx[i] + d : d;
    }
}

static void dx_run(const void *args, int64_t begin, int64_t end)
{
    const xph_norm_grad_args *a = args;
    const xph_norm_args *f = &a->fwd;
    const real *x = f->x, *dy = a->dy, *saved = f->saved;
    real *dx = a->dx, *dn = a->scratch;
    int64_t block = rows_of_item(f);
    for (int64_t r = begin * block; r < int_min(f->rows, end * block); r++) {
        moments m = {saved[2 * r], saved[2 * r + 1]};
        activation_grad(x + r * f->ldx, dy + r * a->lddy, f, m, dn + r * f->width);
        if (dx) dx_row(x + r * f->ldx, dn + r * f->width, f, m, a->dx_add, dx + r * a->lddx);
    }
}

static int64_t dgain_items(const void *args)
{
    const xph_norm_grad_args *a = args;
    return blocks_of(a->fwd.width, COLUMNS);
}

static void dgain_block(const xph_norm_grad_args *a, int64_t column, int64_t columns)
{
    const xph_norm_args *f = &a->fwd;
    const real *x = f->x, *saved = f->saved, *dn = a->scratch;
    real *dgain = a->dgain, *dshift = a->dshift;
    for (int64_t m = 0; m < f->rows; m += SUM_ROWS) {
        real gain[COLUMNS] = {0}, shift[COLUMNS] = {0};
        for (int64_t r = m; r < int_min(f->rows, m + SUM_ROWS); r++) {
            const real *restrict xr = x + r * f->ldx + column, *restrict dr = dn + r * f->width + column;
            real mean = saved[2 * r], rstd = saved[2 * r + 1];
            for (int64_t c = 0; c < columns; c++) {
                gain[c] = FMA(dr[c], (xr[c] - mean) * rstd, gain[c]);
                shift[c] += dr[c];
            }
        }
        for (int64_t c = 0; c < columns; c++) {
            dgain[column + c] += gain[c];
            dshift[column + c] += shift[c];
        }
    }
}

static void dgain_run(const void *args, int64_t begin, int64_t end)
{
    const xph_norm_grad_args *a = args;
    for (int64_t i = begin; i < end; i++)
        dgain_block(a, i * COLUMNS, int_min(COLUMNS, a->fwd.width - i * COLUMNS));
}

const xph_candidate XPH_LIST(norm_grad)[] = {
    {.name = XPH_LABEL("norm_grad"),
     .scratch_bytes = norm_grad_scratch,
     .phase = {{dx_items, dx_run}, {dgain_items, dgain_run}}},
    XPH_LIST_END,
};
