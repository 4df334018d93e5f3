/* Loss of the action heads and its gradient in one pass over the rows; then the sums of each head, in row
 * order.
 *
 * No exponential has a positive argument and no difference of near numbers stands for a small one: with z =
 * +-x so that p_t = sigmoid(z), 1 - p_t is sigmoid(-z) and its power exp(-gamma softplus(z)); for classes the
 * sum of the others is kept apart from the largest. So logits of +-1e4 give finite numbers and the gradient
 * of a nearly certain class keeps its digits. A row whose mask is zero is not looked at. */
#include "cpu/ref/real.h"

static int64_t block_rows(const xph_loss_args *args)
{
    return rows_per_item(16 * args->logits);
}

static int64_t row_items(const void *given)
{
    const xph_loss_args *args = given;
    return blocks_of(args->rows, block_rows(args));
}

/* ---- Bernoulli ---- */

/* Loss of one bit and, in *slope, its derivative by the logit:
 * L = w q^gamma softplus(-z), q = sigmoid(-z);  dL/dz = -w q^gamma (q + gamma p_t softplus(-z)). */
XPH_INLINE real bit_loss(real x, bool on, real positive, real gamma, real *slope)
{
    real z = on ? x : -x, weight = on ? positive : R(1.0);
    real e = real_exp(-REAL_ABS(z)), near = real_log1p_unit(e), one = R(1.0) / (R(1.0) + e);
    real missed = (z > R(0.0) ? R(0.0) : -z) + near; /* softplus(-z) */
    real hit = (z > R(0.0) ? z : R(0.0)) + near;     /* softplus(z) = -log q */
    real q = (z > R(0.0) ? e : R(1.0)) * one, p = (z > R(0.0) ? R(1.0) : e) * one;
    real power = gamma == R(0.0) ? R(1.0) : real_exp(-gamma * hit);
    real dz = -weight * power * FMA(gamma * p, missed, q);
    *slope = on ? dz : -dz;
    return weight * power * missed;
}

/* factor: of the gradient, for the mean over bits */
static double bernoulli(const xph_head *head, const xph_head_loss *how, const real *x, int32_t target,
                        real factor, real *dx)
{
    double total = 0.0;
    real mean = factor / (real)head->count;
    for (int32_t i = 0; i < head->count; i++) {
        real positive = how->positive_weight ? (real)how->positive_weight[i] : R(1.0), slope;
        total += (double)bit_loss(x[i], (uint32_t)target >> i & 1u, positive, (real)how->focal_gamma, &slope);
        if (dx) dx[i] = mean * slope;
    }
    return total / (double)head->count;
}

/* ---- categorical ---- */

static int64_t top_of(const real *x, int64_t count)
{
    int64_t top = 0;
    for (int64_t i = 1; i < count; i++) top = x[i] > x[top] ? i : top;
    return top;
}

/* sum of e^(x - x_top) over all but the top */
static real sum_of_others(const real *x, int64_t count, int64_t top)
{
    real lane[XPH_LANES] = {0};
    for (int64_t at = 0; at < count; at += XPH_LANES) {
        int64_t part = int_min(XPH_LANES, count - at);
        for (int64_t i = 0; i < part; i++) {
            real e = real_exp(x[at + i] - x[top]);
            lane[i] += at + i == top ? R(0.0) : e;
        }
    }
    return sum_lanes(lane);
}

/* sum of x_top - x, all terms >= 0 */
static real sum_below(const real *x, int64_t count, int64_t top)
{
    real lane[XPH_LANES] = {0};
    for (int64_t at = 0; at < count; at += XPH_LANES) {
        int64_t part = int_min(XPH_LANES, count - at);
        for (int64_t i = 0; i < part; i++) lane[i] += x[top] - x[at + i];
    }
    return sum_lanes(lane);
}

/* What the loss and gradient of one categorical head need. Target t = (1 - smoothing) onehot + even, so p_t =
 * (1 - smoothing) p_c + even. */
typedef struct target {
    real top, total;    /* largest logit; sum of e^(x - top) */
    real p, rest;       /* of the target class: p_c, 1 - p_c */
    real keep, even, q; /* 1 - smoothing, smoothing / classes, 1 - p_t */
    real entropy;       /* cross-entropy */
} target;

static target target_of(const xph_head *head, const xph_head_loss *how, const real *x, int64_t class)
{
    int64_t top = top_of(x, head->count);
    real others = sum_of_others(x, head->count, top), e = real_exp(x[class] - x[top]);
    real smoothing = (real)how->smoothing, classes = (real)head->count;
    target t = {
        .top = x[top], .total = R(1.0) + others, .keep = R(1.0) - smoothing, .even = smoothing / classes};
    real norm = others <= R(1.0) ? real_log1p_unit(others) : real_log(t.total);
    t.p = e / t.total;
    t.rest = (class == top ? others : R(1.0) + (others - e)) / t.total;
    t.q = FMA(t.keep, t.rest, smoothing - t.even);
    t.entropy = t.keep * (x[top] - x[class] + norm);
    if (smoothing > R(0.0))
        t.entropy = FMA(t.even, FMA(classes, norm, sum_below(x, head->count, top)), t.entropy);
    return t;
}

/* L = q^gamma CE;  dCE/dx_k = p_k - t_k;  dp_t/dx_k = p_k (t_k - p_t). */
static double categorical(const xph_head *head, const xph_head_loss *how, const real *x, int32_t action,
                          real factor, real *dx)
{
    int64_t class = (uint32_t)action < (uint32_t)head->count ? action : 0;
    target t = target_of(head, how, x, class);
    real gamma = (real)how->focal_gamma, power = R(1.0), pull = R(0.0);
    if (gamma > R(0.0)) {
        power = t.q > R(0.0) ? real_exp(gamma * real_log(t.q)) : t.q; /* a NaN stays one */
        pull = t.q > R(0.0) ? gamma * power * (t.entropy / t.q) : t.q;
    }
    if (dx) {
        real scale = FMA(pull * t.keep, t.p, power) * factor, even = power * t.even * factor;
        real spread = (real)how->smoothing - t.even;
        XPH_VECTOR
        for (int64_t k = 0; k < head->count; k++) {
            real p = real_exp(x[k] - t.top) / t.total;
            dx[k] = FMA(scale, p, -even);
        }
        dx[class] = factor * FMA(power, spread - t.rest, -pull * t.keep * t.p * t.rest);
    }
    return (double)power * (double)t.entropy;
}

/* ---- rows ---- */

static void loss_row(const xph_loss_args *args, int64_t row)
{
    double mask = args->mask ? (double)args->mask[row] : 1.0;
    double *losses = args->rows_loss + row * args->heads;
    const real *x = (const real *)args->y + row * args->ldy;
    real *dx = args->dy ? (real *)args->dy + row * args->lddy : NULL;
    if (mask == 0.0) {
        memset(losses, 0, (size_t)args->heads * sizeof *losses);
        if (dx) memset(dx, 0, (size_t)args->logits * sizeof *dx);
        return;
    }
    for (int64_t h = 0; h < args->heads; h++) {
        const xph_head *head = &args->head[h];
        const xph_head_loss *how = &args->loss[h];
        real factor = (real)(args->scale * mask * how->weight), *to = dx ? dx + head->first : NULL;
        int32_t action = args->actions[row * args->lda + h];
        double loss = head->kind == XPH_HEAD_BERNOULLI
                          ? bernoulli(head, how, x + head->first, action, factor, to)
                          : categorical(head, how, x + head->first, action, factor, to);
        losses[h] = mask * loss;
    }
}

static void rows_run(const void *given, int64_t begin, int64_t end)
{
    const xph_loss_args *args = given;
    int64_t block = block_rows(args), last = int_min(args->rows, end * block);
    for (int64_t row = begin * block; row < last; row++) loss_row(args, row);
}

static int64_t head_items(const void *given)
{
    return ((const xph_loss_args *)given)->heads;
}

static void sums_run(const void *given, int64_t begin, int64_t end)
{
    const xph_loss_args *args = given;
    for (int64_t h = begin; h < end; h++) {
        double total = 0.0;
        for (int64_t row = 0; row < args->rows; row++) total += args->rows_loss[row * args->heads + h];
        args->sums[h] = total;
    }
}

const xph_candidate XPH_LIST(loss)[] = {
    {XPH_LABEL("loss"), NULL, NULL, {{row_items, rows_run}, {head_items, sums_run}}}, XPH_LIST_END};
